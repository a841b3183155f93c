"""What can go wrong with a server, and how it is said.

A fault that may pass (the server is away, busy, or broke off) is worth another try. One that a person has to
mend (a wrong key, another model) may not hold of another server. No sentence ever holds the key.
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal, TypeAlias

from specrag.errors import ContextTooLong, ModelError, ServerUnreachable
from specrag.models.server.access import Access
from specrag.text import printable

FaultKind: TypeAlias = Literal[
    "unreachable",
    "dropped",
    "silent",
    "busy",
    "failed",
    "malformed",
    "refused",
    "no_model",
    "too_long",
    "rejected",
    "unable",
]
_PASSING: frozenset[FaultKind] = frozenset(
    ("unreachable", "dropped", "silent", "busy", "failed", "malformed")
)
_LONGEST = 200
"""Characters that are kept of what a server says."""


@dataclass(eq=False)
class Fault(Exception):
    """A request to one server that came to nothing."""

    kind: FaultKind
    url: str
    detail: str = ""
    retry_after_s: float | None = None
    """How long the server asks to be left alone."""
    status: int | None = None
    """Of the HTTP answer that refused the request, where that is all that is known."""

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later or elsewhere."""
        return self.kind in _PASSING

    @property
    def again(self) -> bool:
        """Whether it is worth asking the same server once more: it may also have been replaced by another."""
        return self.passing or self.kind == "unable"

    @property
    def of_server(self) -> bool:
        """Whether another server may do better; the others are faults of the request."""
        return self.kind not in ("too_long", "rejected")

    @property
    def gone(self) -> bool:
        """Whether what is known of the server may no longer hold: another one may come up in its place."""
        return self.kind in ("unreachable", "dropped", "no_model", "unable")


def of_status(url: str, status: int, message: str, *, retry_after: str | None = None) -> Fault:
    """The fault behind an HTTP status, with what the server said about it."""
    said = _tidy(message)
    detail = f"status {status}: {said}" if said else f"status {status}"
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return Fault("refused", url, f"status {status}")
    if status == HTTPStatus.NOT_FOUND and "model" in said.lower():
        return Fault("no_model", url, detail)
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        return Fault("busy", url, f"status {status}", _seconds(retry_after))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Fault("failed", url, detail)
    if status == HTTPStatus.BAD_REQUEST and any(
        word in said.lower() for word in ("context length", "context_length")
    ):
        return Fault("too_long", url, said)
    return Fault("rejected", url, detail, status=status)


_SENTENCES: dict[FaultKind, str] = {
    "unreachable": "{who} cannot be reached ({detail}); start it, or correct {name}_URL.",
    "dropped": "{who} broke off in the middle of its answer ({detail}); ask again, and look at its log.",
    "silent": "{who} was silent for {detail}; ask again, or raise SPECRAG_STALL_TIMEOUT_S if it is slow.",
    "busy": "{who} takes no more requests ({detail}); ask again soon, or add servers to {name}_URL.",
    "failed": "{who} failed ({detail}); ask again, and look at its log.",
    "malformed": "{who} sent no answer of an OpenAI-compatible server ({detail}); check {name}_URL.",
    "refused": "{who} refused the key ({detail}); set {name}_KEY.",
    "no_model": "{who} does not serve this model ({detail}); correct {name}.",
    "too_long": "{who} finds a prompt too long ({detail}); lower SPECRAG_PASSAGES_PER_DRAFT.",
    "unable": "{who} cannot be used: {detail}; correct {name}_URL, or see `specrag doctor`.",
    "rejected": "{who} refused the request ({detail}); `specrag doctor` tells what it can do.",
}


def sentence(fault: Fault, access: Access) -> str:
    """The fault for a person, on one line of a terminal, which the server's own words must not steer."""
    who = f"The {access.role}'s server {fault.url}"
    said = _SENTENCES[fault.kind].format(who=who, detail=fault.detail, name=access.setting)
    text = printable(said)
    return text if access.key is None else text.replace(access.key, "…")


def raised(fault: Fault, access: Access) -> ModelError:
    """The fault as the error that the rest of the program knows."""
    text = sentence(fault, access)
    if fault.kind == "too_long":
        return ContextTooLong(text)
    return ServerUnreachable(text) if fault.passing else ModelError(text)


def _tidy(message: str) -> str:
    text = " ".join(message.split()).rstrip(".")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _seconds(retry_after: str | None) -> float | None:
    """A `Retry-After` in seconds; one that names a date is left to our own back-off."""
    try:
        return max(0.0, float(retry_after)) if retry_after else None
    except ValueError:
        return None
