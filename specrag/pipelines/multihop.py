"""Iterative multi-hop RAG: what a hop finds decides what the next one looks for.

Each hop retrieves, and the verifier notes what was found and names what is missing: the next query. It stops
when nothing is missing, when a note or a query comes back, or after the last hop, and then answers from all
passages found and its notes. The hops wait for each other, which is what speculative drafts avoid.

The answer reads the best passage of every hop first: where not all fit, the evidence of the bridge, which
only a later hop can find, is not what is left out.
"""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from itertools import chain, zip_longest

from specrag.direct import Shortened, fitting
from specrag.events import Decided, Event, HopFinished, HopStarted, HopToken, SpanStarted, UsageCounted
from specrag.models.base import Begin, End, Line, Piece, Read
from specrag.pipelines.base import Request, Tools, as_run
from specrag.pipelines.steps import Retrieval, answer_from_all, counted, joined
from specrag.prompts import NOTE_LABEL, QUERY_LABEL, hop_conversation
from specrag.sent import read_events
from specrag.text import is_hollow, normalise_answer
from specrag.timeline import Timeline
from specrag.types import Decision, Hop, Part, Passage, PipelineName

_NOTHING = re.compile(
    r"\W*(there(’s|'s| is| are) )?(nothing|none|no|n/?a)\b"  # noqa: RUF001 - models write both apostrophes
    r"( (is|are|else|more|further|other|missing|needed|left|facts?|information)\b.*)?\W*",
    re.IGNORECASE,
)
"""A query may well begin with the name of a thing called Nothing, so the rest counts too."""
_QUOTES = "\"'“”‘’`* "  # noqa: RUF001 - models like to quote their queries


class MultiHopPipeline:
    """Retrieve, note, ask on, at most `settings.hops` times; then one answer."""

    name: PipelineName = "multihop"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def run(self, request: Request) -> AsyncGenerator[Event]:
        """See `Pipeline.run`."""
        return as_run(
            lambda t, question, root: self._steps(t, question, request, root),
            tools=self._tools,
            request=request,
            name=self.name,
        )

    async def _steps(
        self, t: Timeline, question: str, request: Request, root: SpanStarted
    ) -> AsyncGenerator[Event]:
        search = _Search(self._tools, t, question, request)
        query: str | None = question
        while query is not None:
            async with aclosing(search.hop(query, root)) as hopping:
                async for event in hopping:
                    yield event
            query = search.hops[-1].next_query

        decision = Decision(kind="direct", draft_index=None, reason=search.reason)
        yield Decided(at_ms=t.now(), decision=decision)
        answering = answer_from_all(
            self._tools, t, question, search.best_first, root, decision=decision, notes=search.notes
        )
        async with aclosing(answering):
            async for event in answering:
                yield event


class _Search:
    """The hops of one run and what they have found so far."""

    def __init__(self, tools: Tools, timeline: Timeline, question: str, request: Request) -> None:
        self._tools = tools
        self._t = timeline
        self._question = question
        self._request = request
        self._stopped = ""
        self.passages: tuple[Passage, ...] = ()
        self.hops: list[Hop] = []
        self._found: list[tuple[Passage, ...]] = []

    @property
    def best_first(self) -> tuple[Passage, ...]:
        """All passages as the answer reads them: the best of each hop, then the second of each, and so on."""
        ranks = zip_longest(*self._found)
        return joined((), [passage for passage in chain.from_iterable(ranks) if passage is not None])

    @property
    def notes(self) -> list[str]:
        """What the hops wrote down, without the empty notes."""
        return [hop.note for hop in self.hops if hop.note]

    @property
    def reason(self) -> str:
        """Why the answer is written now, and from what."""
        made = "1 hop was" if len(self.hops) == 1 else f"{len(self.hops)} hops were"
        return (
            f"Multi-hop RAG: {made} made and then {self._stopped}; the verifier answers from its notes and "
            f"{counted(len(self.passages))}."
        )

    async def hop(self, query: str, root: SpanStarted) -> AsyncGenerator[Event]:
        """One hop; afterwards it is the last one of `hops`."""
        t, number = self._t, len(self.hops) + 1
        span = t.start("hop", root, number=number)
        yield span
        yield HopStarted(at_ms=t.now(), number=number, query=query)
        given = self._request.given if number == 1 else None
        retrieval = Retrieval(self._tools, t, self._request, given=given)
        async with aclosing(retrieval.events(query, span, known=self.passages)) as retrieving:
            async for event in retrieving:
                yield event
        found = retrieval.passages
        self.passages = joined(self.passages, found)
        self._found.append(found)
        async with aclosing(self._note(number, query, found, span)) as noting:
            async for event in noting:
                yield event
        yield t.end(span, passages=len(found))

    async def _note(
        self, number: int, query: str, found: Sequence[Passage], parent: SpanStarted
    ) -> AsyncGenerator[Event]:
        t = self._t
        span = t.start("note", parent)
        yield span
        written: dict[Part, str] = {"note": "", "query": ""}
        sent: Begin | None = None
        read = len(found)
        outputs = fitting(
            self._tools.verifier,
            lambda kept: hop_conversation(self._question, kept, self.notes),
            found,
            self._lines(number),
        )
        async with aclosing(outputs):
            async for output in outputs:
                match output:
                    case Shortened():
                        read = output.kept
                    case Begin():
                        sent = output
                    case Read() if sent is not None:
                        for event in read_events(sent, t, role="verifier", step="note"):
                            yield event
                    case Piece():
                        written[output.part] += output.text
                        yield HopToken(
                            at_ms=t.now(),
                            number=number,
                            part=output.part,
                            text=output.text,
                            logprob=output.logprob,
                        )
                    case End() if output.completion_tokens:
                        tokens = output.completion_tokens
                        yield UsageCounted(at_ms=t.now(), role="verifier", completion_tokens=tokens)
        wanted = written["query"].strip().strip(_QUOTES)
        note = "" if is_hollow(written["note"]) else written["note"].strip()
        if number == self._tools.settings.hops:
            self._stopped = "no further one is allowed"
        elif normalise_answer(note) in {normalise_answer(earlier) for earlier in self.notes}:
            self._stopped = "the last one found nothing new"
        else:
            self._stopped = why_stop(wanted, [self._question, *(hop.query for hop in self.hops), query])
        hop = Hop(
            number=number,
            query=query,
            passage_ids=tuple(passage.id for passage in found[:read]),
            note=note,
            next_query=None if self._stopped else wanted,
            finished=True,
        )
        self.hops.append(hop)
        yield HopFinished(at_ms=t.now(), hop=hop)
        yield t.end(span, passages=read)

    def _lines(self, number: int) -> tuple[Line, ...]:
        """A note, and unless this hop is the last one the next query."""
        settings = self._tools.settings
        note = Line(part="note", max_tokens=settings.note_tokens, label=NOTE_LABEL, sentences=1)
        query = Line(part="query", max_tokens=settings.query_tokens, label=QUERY_LABEL, sentences=1)
        return (note, query) if number < settings.hops else (note,)


def why_stop(wanted: str, asked: Sequence[str]) -> str:
    """Why no hop follows on `wanted`, in words that go on "then ..."; empty if one does."""
    if is_hollow(wanted) or _NOTHING.fullmatch(wanted):
        return "nothing was missing"
    if normalise_answer(wanted) in {normalise_answer(query) for query in asked}:
        return "the next query repeated an earlier one"
    return ""
