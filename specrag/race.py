"""A comparison under way, and what a reader sees of it at one moment."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from specrag.errors import TraceError
from specrag.events import Event
from specrag.tracing.comparisons import Comparison
from specrag.tracing.store import TraceStore
from specrag.tracing.trace import Trace

Stage: TypeAlias = Literal["waiting", "warming", "finding", "running", "ended"]
"""What is being done: another comparison is under way, the models are warmed up, passages are looked for."""
STOPPED = "The comparison was stopped."


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """A comparison at one moment."""

    comparison: Comparison
    stage: Stage
    traces: tuple[Trace | None, ...]
    """By column; None where a run has not begun, was never started, or was deleted since."""


class Live:
    """A comparison under way. Its task is given to it when it begins."""

    def __init__(self, comparison: Comparison, *, starter: str, abandoned_s: float) -> None:
        """`starter` tells visitors apart; after `abandoned_s` without a reader it is given up, never if 0."""
        self.comparison = comparison
        self.starter = starter
        self.stage: Stage = "waiting"
        self.task: asyncio.Task[None] | None = None
        self.stop_reason = STOPPED
        self._abandoned_s = abandoned_s
        self._readers = 0
        self._left = 0

    @property
    def begun(self) -> tuple[str, ...]:
        """The runs that have begun, in their order."""
        made = self.comparison
        return tuple(made.run_ids[column] for column in made.order[: made.begun])

    def change(self, **values: Any) -> None:
        """Replace what is known of it, by the names of `Comparison`."""
        self.comparison = replace(self.comparison, **values)

    def race(self, traces: Mapping[str, Trace | None]) -> Race:
        """How it stands, with the traces of its runs as far as they are known."""
        made = self.comparison
        return Race(
            comparison=made, stage=self.stage, traces=tuple(traces.get(run_id) for run_id in made.run_ids)
        )

    async def rest(self, seconds: float) -> None:
        """Wait, and no longer than it goes on."""
        if self.task is not None:
            await asyncio.wait([self.task], timeout=seconds)

    async def stop(self, reason: str) -> None:
        """End it here, and wait until it has."""
        self.give_up(reason)
        if self.task is not None and not self.task.done():
            await asyncio.wait([self.task])

    def give_up(self, reason: str) -> None:
        """End it here, without waiting until it has."""
        if self.task is not None and not self.task.done():
            self.stop_reason = reason
            self.task.cancel()

    def joined(self) -> None:
        """Somebody follows it."""
        self._readers += 1

    def left(self) -> None:
        """Somebody follows it no longer; give it up if nobody does for so long."""
        self._readers -= 1
        self.wait_for_readers()

    def wait_for_readers(self) -> None:
        """Give it up if nobody comes in time."""
        if not self._abandoned_s or self._readers:
            return

        def give_up() -> None:
            if self.task is not None and not self._readers and turn == self._left:
                self.stop_reason = (
                    f"Nobody followed the comparison for {self._abandoned_s:g} s (SPECRAG_ABANDONED_S)."
                )
                self.task.cancel()

        self._left = turn = self._left + 1
        asyncio.get_running_loop().call_later(self._abandoned_s, give_up)


def traces_of(store: TraceStore, comparison: Comparison) -> tuple[Trace | None, ...]:
    """The kept traces by column; None where a run never began, or was deleted since."""

    def trace(run_id: str) -> Trace | None:
        try:
            return store.load(run_id)
        except TraceError:
            return None

    return tuple(map(trace, comparison.run_ids))


def events_of(store: TraceStore, comparison: Comparison) -> tuple[list[Event], ...]:
    """The kept events by column; empty where there are none."""

    def events(run_id: str) -> list[Event]:
        try:
            return store.events(run_id)
        except TraceError:
            return []

    return tuple(map(events, comparison.run_ids))
