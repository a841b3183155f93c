"""The clock of one run, and the spans that are cut from it.

Every event of a run takes its `at_ms` here, so times never run backwards and spans nest by construction.
"""

import itertools
from collections.abc import Callable

from specrag.events import SpanEnded, SpanStarted

Clock = Callable[[], float]
"""Seconds, monotonic."""


class Timeline:
    """Milliseconds since the run began."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._zero = clock()
        self._ids = itertools.count(1)

    def now(self) -> float:
        """Milliseconds since the start, to a microsecond."""
        return round((self._clock() - self._zero) * 1000, 3)

    def start(
        self, name: str, parent: SpanStarted | None = None, **attributes: str | float | bool
    ) -> SpanStarted:
        """Open a span."""
        return SpanStarted(
            at_ms=self.now(),
            span_id=f"{next(self._ids):04d}",
            parent_id=None if parent is None else parent.span_id,
            name=name,
            attributes=dict(attributes),
        )

    def end(self, span: SpanStarted, **attributes: str | float | bool) -> SpanEnded:
        """Close a span."""
        return SpanEnded(at_ms=self.now(), span_id=span.span_id, attributes=dict(attributes))
