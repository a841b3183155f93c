"""The dividing step of a speculative run: from passages to subsets, made anew or taken over."""

import asyncio
from collections.abc import AsyncGenerator
from functools import partial

from specrag.clusters import condition_on_question
from specrag.events import Event, SpanStarted, SubsetsFormed
from specrag.partition import Partition, partition
from specrag.perspective_map import PerspectiveMap, perspective_map
from specrag.pipelines.base import Given, Tools
from specrag.pipelines.steps import taken_over
from specrag.retrieval.retriever import Retrieved
from specrag.timeline import Timeline
from specrag.types import Subset


class Dividing:
    """One run's partition; `subsets` are there once `events` is through."""

    def __init__(self, tools: Tools, timeline: Timeline, question: str, given: Given | None) -> None:
        """Subsets that are given are taken as they are."""
        self._tools = tools
        self._t = timeline
        self._question = question
        self._given = given if given is not None and given.subsets else None
        self.subsets: tuple[Subset, ...] = ()

    async def events(self, found: Retrieved | None, parent: SpanStarted) -> AsyncGenerator[Event]:
        """Divide what was found, which subsets that are given do not need.

        Raises:
            UsageError: a partition of one's own fails or breaks the rules.
        """
        span = self._t.start("partition", parent, **taken_over(self._given))
        yield span
        if self._given is not None:
            made, drawn = _again(self._given)
        else:
            assert found is not None, "without given subsets there is something to divide"
            made, drawn = await self._divided(found)
        self.subsets = made.subsets
        yield SubsetsFormed(
            at_ms=self._t.now(),
            subsets=made.subsets,
            note=made.note,
            singletons=made.singletons,
            spots=drawn.spots,
        )
        said = {} if drawn.variance is None else {"map_variance": drawn.variance}
        yield self._t.end(span, subsets=len(made.subsets), **said)

    async def _divided(self, found: Retrieved) -> tuple[Partition, PerspectiveMap]:
        """Ours on the event loop: they take milliseconds, and their warnings filter is global.

        A function of one's own gets a thread, since nobody knows how long it takes.
        """
        settings, own = self._tools.settings, self._tools.partitioner
        vectors = condition_on_question(found.vectors, found.question_vector)
        make = partial(
            partition,
            found.passages,
            vectors,
            strategy=settings.partition if own is None else own,
            m=settings.drafts,
            k=settings.passages_per_draft,
            seed=settings.seed,
            question=self._question,
        )
        made = make() if own is None else await asyncio.to_thread(make)
        return made, perspective_map(found.passages, vectors, made.clusters)


def _again(given: Given) -> tuple[Partition, PerspectiveMap]:
    made = Partition(subsets=given.subsets, note=given.partition_note, singletons=given.singletons)
    return made, PerspectiveMap(spots=given.spots, variance=given.map_variance)
