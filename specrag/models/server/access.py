"""How the servers of one role are reached, from the settings and checked."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from specrag.config import Settings
from specrag.errors import UsageError
from specrag.types import Role

Whose: TypeAlias = Role | Literal["judge"]
"""What the model behind the servers does: a role in a run, or judging the answers of an evaluation."""

_VERSION = "/v1"
"""The path under which OpenAI-compatible servers answer; taken if an address has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Addresses and keys of the servers that run one model. The key is in no representation of this."""

    role: Whose
    urls: tuple[str, ...]
    """Base URLs, without a slash at the end: "http://127.0.0.1:8001/v1"."""
    model: str | None = None
    """Name under which the model is served; None takes the only one that is."""
    any_model: bool = False
    """Whether a name that is not served gives way to the only one that is: nobody chose it."""
    key: str | None = field(default=None, repr=False)
    tokenizer: str = ""
    """Hugging Face id or folder of the model's tokenizer; empty asks the server."""
    ca: Path | None = None
    connect_timeout_s: float = 5.0
    stall_timeout_s: float = 120.0
    pause_s: float = 1.0
    """How long a second try waits where there is only the same server to ask."""

    @property
    def setting(self) -> str:
        """Beginning of the names of the settings that a person would correct."""
        return f"SPECRAG_{self.role.upper()}"


def access_of(settings: Settings, role: Whose) -> Access | None:
    """The servers of a role, or None where the model runs in this process.

    Raises:
        UsageError: an address or the file of the authority is not one.
    """
    given: str = getattr(settings, f"{role}_url")
    urls = tuple(dict.fromkeys(_base(url, role) for url in given.replace(",", " ").split()))
    if not urls:
        return None
    if settings.server_ca is not None and not settings.server_ca.is_file():
        raise UsageError(f"SPECRAG_SERVER_CA: there is no file {settings.server_ca}.")
    secret = getattr(settings, f"{role}_key")
    key = secret.get_secret_value().strip() if secret is not None else ""
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"SPECRAG_{role.upper()}_KEY holds characters that no key has; copy it again.")
    return Access(
        role=role,
        urls=urls,
        model=getattr(settings, role),
        any_model=role not in settings.model_fields_set,
        key=key or None,
        tokenizer=getattr(settings, f"{role}_tokenizer", ""),
        ca=settings.server_ca,
        connect_timeout_s=settings.connect_timeout_s,
        stall_timeout_s=settings.stall_timeout_s,
    )


def _base(url: str, role: Whose) -> str:
    setting = f"SPECRAG_{role.upper()}_URL"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{setting}: “{_shown(url)}” is no address such as http://127.0.0.1:8001/v1.")
    if parts.username or parts.password:
        raise UsageError(
            f"{setting}: leave the password out of the address and set SPECRAG_{role.upper()}_KEY."
        )
    if parts.query or parts.fragment:
        raise UsageError(f"{setting}: “{_shown(url)}” must end with its path, such as /v1.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    where = host if port is None else f"{host}:{port}"
    return f"{parts.scheme}://{where}{parts.path.rstrip('/') or _VERSION}"


def _shown(url: str) -> str:
    """What may be a secret is left out: everything before an @ and after a ?."""
    return url.rsplit("@", 1)[-1].partition("?")[0][:120]
