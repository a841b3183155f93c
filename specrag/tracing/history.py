"""The kept runs as somebody may see them, and those that still go on.

Where everything is shared, everybody's runs are everybody's. Else a visitor sees their own runs, and by link
those that their owners have shared; only the owner deletes, rates and shares. A run that they may not see is
refused in the same words as one that does not exist, so that nothing can be learned by guessing.
"""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, get_args

from specrag.config import Settings
from specrag.errors import TraceError, UsageError
from specrag.events import Event, RunStarted
from specrag.library.shelves import visible
from specrag.library.visitors import VISITOR, Visitor
from specrag.runs import Runs
from specrag.tracing.search import RunFilter, RunSummary
from specrag.tracing.store import TraceStore, missing
from specrag.tracing.trace import Trace, fold
from specrag.types import Rating

COMMENT_LENGTH: Final = 500
_PASSING: Final = "You cannot be known again, so nothing is kept for you; allow cookies for this page."
_NOBODY: Final = "\x00"
"""An owner that no run has."""


class History:
    """The runs of one store and of this process. All methods may be called from any thread.

    Deleting waits for a run that is stopped, so it must not be called in the thread of the runs themselves.
    """

    def __init__(self, store: TraceStore, runs: Runs, settings: Settings) -> None:
        self._store = store
        self._runs = runs
        self._shared = settings.access == "shared"
        self._kept_for = timedelta(days=settings.visitor_days)

    def find(
        self, who: Visitor, wanted: RunFilter, *, limit: int = 50, offset: int = 0
    ) -> tuple[list[RunSummary], int]:
        """A page of their runs that have ended, newest first, and how many there are.

        Raises:
            UsageError: a date cannot be read.
        """
        return self._store.find(self._owner(who), wanted, limit=limit, offset=offset)

    def summary(self, who: Visitor, run_id: str) -> RunSummary:
        """What a list shows of a run that has ended.

        Raises:
            TraceError: as `check_readable`.
        """
        found = self._store.summary(run_id)
        if not (found.shared or self._owns(who, found.owner)):
            raise missing(run_id)
        return found

    def check_readable(self, who: Visitor, run_id: str) -> None:
        """Refuse a run, live or kept, that somebody may not see.

        Raises:
            TraceError: there is no such run, or it is somebody else's.
        """
        owner = self._runs.owner(run_id)
        if owner is None:
            self.summary(who, run_id)
        elif not self._owns(who, owner):
            raise missing(run_id)

    def check_own(self, who: Visitor, run_id: str) -> None:
        """Refuse a run, live or kept, that is not theirs to change.

        Raises:
            TraceError: as `check_readable`; or it is somebody else's who has shared it.
        """
        self.check_readable(who, run_id)
        if not self.owns(who, run_id):
            raise TraceError("This run is somebody else's; only they can change, share or delete it.")

    def owns(self, who: Visitor, run_id: str) -> bool:
        """Whether a run is theirs to rate, share and delete; False if there is none."""
        owner = self._runs.owner(run_id)
        try:
            return self._owns(who, self._store.summary(run_id).owner if owner is None else owner)
        except TraceError:
            return False

    def trace(self, who: Visitor, run_id: str) -> Trace:
        """A run as it is now.

        Raises:
            TraceError: as `check_readable`, or it has not begun yet.
        """
        self.check_readable(who, run_id)
        events = self._runs.recorded(run_id)
        if events is None:
            return self._store.load(run_id)
        if not events:
            raise TraceError("This run has not begun yet; try again in a moment.")
        return fold(events)

    def question(self, who: Visitor, run_id: str) -> str:
        """What was asked in a run, read from its line in the list: also of one whose trace is damaged.

        Raises:
            TraceError: as `check_readable`.
        """
        live = self._runs.owner(run_id) is not None
        return self.trace(who, run_id).question if live else self.summary(who, run_id).question

    def events(self, who: Visitor, run_id: str) -> list[Event]:
        """The events of a run so far.

        Raises:
            TraceError: as `check_readable`.
        """
        self.check_readable(who, run_id)
        events = self._runs.recorded(run_id)
        return self._store.events(run_id) if events is None else events

    def children(self, who: Visitor, run_id: str) -> list[RunSummary]:
        """The runs that were forked from a run, of those that they may see, oldest first.

        Raises:
            TraceError: as `check_readable`.
        """
        self.check_readable(who, run_id)
        forks = self._store.children(run_id)
        return [fork for fork in forks if fork.shared or self._owns(who, fork.owner)]

    # Changing

    def delete(self, who: Visitor, run_ids: Sequence[str]) -> int:
        """Delete what is theirs of some runs; one that goes on is stopped first. Returns how many."""
        unkept = 0
        for run_id in dict.fromkeys(run_ids):
            owner = self._runs.owner(run_id)
            if owner is not None and self._owns(who, owner):
                unkept += self._runs.drop(run_id)
        return unkept + self._store.delete(run_ids, self._owner(who))

    def clear(self, who: Visitor, wanted: RunFilter) -> int:
        """Delete what is wanted of their runs that have ended; returns how many.

        Raises:
            UsageError: a date cannot be read.
        """
        return self._store.clear(self._owner(who), wanted)

    def expire(self, now: datetime | None = None) -> int:
        """Delete what visitors without a login have kept for their days and do not share; how many."""
        moment = datetime.now(UTC) if now is None else now
        return self._store.expire(moment - self._kept_for, VISITOR)

    def rate(self, who: Visitor, run_id: str, rating: Rating | None, comment: str = "") -> None:
        """Note what they thought of a run that has ended; None takes it back.

        Raises:
            UsageError: it is no rating, or the comment is too long.
            TraceError: as `check_own`.
        """
        if rating is not None and rating not in get_args(Rating):
            raise UsageError("A rating is up, down or nothing.")
        said = visible(comment)
        if len(said) > COMMENT_LENGTH:
            raise UsageError(f"A comment has at most {COMMENT_LENGTH} characters; shorten it.")
        self.check_own(who, run_id)
        self._store.rate(run_id, rating, said)

    def share(self, who: Visitor, run_id: str, shared: bool) -> None:
        """Let anybody see a run that has ended who has its link, or nobody else any more.

        Raises:
            TraceError: as `check_own`.
        """
        self.check_own(who, run_id)
        self._store.share(run_id, shared)

    def add(self, who: Visitor, trace: Trace, events: Sequence[Event]) -> str:
        """Keep a run that comes from a file, as theirs; returns its id, a fresh one if its own is taken.

        Raises:
            TraceError: they cannot be known again.
            UsageError: what they have imported would take more than it may.
        """
        if who.passing:
            raise TraceError(_PASSING)
        taken = self._runs.owner(trace.run_id) is not None
        while taken or not self._store.add(trace, events, owner=who.owner or ""):
            trace, events = _renamed(trace, events, uuid.uuid4().hex[:12])
            taken = False
        return trace.run_id

    def _owner(self, who: Visitor) -> str | None:
        """Whose runs they see in lists; None for everybody's."""
        return None if who.operator or self._shared else who.owner or _NOBODY

    def _owns(self, who: Visitor, owner: str) -> bool:
        return self._owner(who) in (None, owner)


def _renamed(trace: Trace, events: Sequence[Event], run_id: str) -> tuple[Trace, list[Event]]:
    """The same run under another id."""
    told = [replace(event, run_id=run_id) if isinstance(event, RunStarted) else event for event in events]
    return replace(trace, run_id=run_id), told
