"""Tokens that were written and not yet counted when a run stopped early.

A prompt is counted when it was read, and what a model writes when it ends. A run that is cancelled or fails
in between has decoded tokens that no event counts; they are known from the tokens themselves.
"""

from specrag import events as e
from specrag.types import Role

_ROLES: dict[object, Role] = {"drafter": "drafter", "verifier": "verifier"}


class Uncounted:
    """Follows the events of one run."""

    def __init__(self) -> None:
        self._drafts: dict[str, int] = {}
        self._alone: dict[Role, int] = {}
        self._writer: Role = "verifier"
        """Who writes an answer or a note; the span around the writing names it where it may be either."""

    def see(self, event: e.Event) -> None:
        """Take one more event."""
        match event:
            case e.DraftToken():
                self._drafts[event.subset_id] = self._drafts.get(event.subset_id, 0) + 1
            case e.DraftFinished():
                self._drafts.pop(event.draft.subset_id, None)
            case e.SpanStarted():
                self._writer = _ROLES.get(event.attributes.get("role"), "verifier")
            case e.AnswerToken() | e.HopToken():
                self._alone[self._writer] = self._alone.get(self._writer, 0) + 1
            case e.UsageCounted() if event.completion_tokens:
                self._alone.pop(event.role, None)
            case _:
                pass

    def left(self, role: Role) -> int:
        """Tokens that this role has written since they were last counted."""
        return self._alone.get(role, 0) + (sum(self._drafts.values()) if role == "drafter" else 0)
