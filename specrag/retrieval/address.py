"""Where a Chroma server is and what it wants to hear, read from the settings. Loads nothing heavy."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from pydantic import SecretStr

from specrag.config import Settings
from specrag.errors import UsageError

_HOSTED = ".trychroma.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChromaServer:
    """A server, and how long to wait for it."""

    url: str
    """`http(s)://host[:port][/path]`, without credentials."""
    tenant: str = "default_tenant"
    database: str = "default_database"
    token: SecretStr | None = None
    ca: Path | None = None
    """File of the authority that signed its certificate; None trusts those of the system."""
    connect_s: float = 5.0
    stall_s: float = 15.0
    """Longest silence within one request."""
    patience_s: float = 10.0
    """How long a request is tried again while the server cannot be reached: the time of a restart."""
    silence_s: float = 600.0
    """A replica that says nothing for so long is dead; what it left half done is removed."""

    @property
    def identity(self) -> str:
        """Names the store behind it, in words that a folder may have."""
        place = f"{self.url} {self.tenant} {self.database}"
        return hashlib.sha256(place.encode()).hexdigest()[:16]

    @property
    def headers(self) -> dict[str, str]:
        """The token as the server wants it: Chroma Cloud in a header of its own, all others as a bearer."""
        if self.token is None:
            return {}
        secret = self.token.get_secret_value()
        if (urlsplit(self.url).hostname or "").endswith(_HOSTED):
            return {"X-Chroma-Token": secret}
        return {"Authorization": f"Bearer {secret}"}


def server_of(settings: Settings) -> ChromaServer:
    """The server of the settings.

    Raises:
        UsageError: SPECRAG_CHROMA_URL is no address of a server, or SPECRAG_CHROMA_TOKEN no token.
    """
    return ChromaServer(
        url=_checked(settings.chroma_url),
        tenant=settings.chroma_tenant,
        database=settings.chroma_database,
        token=_token(settings.chroma_token),
        ca=settings.server_ca,
        connect_s=settings.connect_timeout_s,
        stall_s=settings.chroma_timeout_s,
    )


def _token(given: SecretStr | None) -> SecretStr | None:
    """The token without the line end that files have; never shown when it is wrong."""
    secret = given.get_secret_value().strip() if given is not None else ""
    if not (secret.isascii() and secret.isprintable()):
        raise UsageError("SPECRAG_CHROMA_TOKEN holds characters that no token has; copy it again.")
    return SecretStr(secret) if secret else None


def _checked(url: str) -> str:
    """The URL without a slash at its end. Never shown when it is wrong: it may hold a secret."""
    try:
        parts = urlsplit(url.strip())
        proper = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        proper = False
    if not proper:
        raise UsageError("SPECRAG_CHROMA_URL is no address of a server; write it as http://host:8000.")
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "SPECRAG_CHROMA_URL must not hold a name or password; put the token into SPECRAG_CHROMA_TOKEN."
        )
    if parts.query or parts.fragment:
        raise UsageError("SPECRAG_CHROMA_URL ends after the path; leave out what follows “?” or “#”.")
    return SplitResult(parts.scheme, parts.netloc, parts.path.rstrip("/"), "", "").geturl()
