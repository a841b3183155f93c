"""The numbers of a comparison: what a table row says of a run, and who agrees with whom. Pure.

Times count from the question: the passages, which were found once for all, are part of every pipeline's time,
and each run has its own zero after that. A run that waited for its turn is not blamed for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from specrag.events import AnswerToken, DraftToken, Event, HopToken
from specrag.prices import Prices, cost
from specrag.race import Race
from specrag.text import normalise_answer
from specrag.tracing.trace import Trace, Usage
from specrag.types import PipelineName
from specrag.ui.compare_phases import begun_ms, own_ms
from specrag.ui.written import answer_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What is compared of one run that has ended with an answer."""

    pipeline: PipelineName
    first_ms: float | None
    """From the question to the first token that a model wrote, be it of a draft, a note or the answer."""
    answer_ms: float | None
    """From the question to the first word of the answer; of a draft that won, to the decision."""
    total_ms: float
    own_ms: float
    """Without finding the passages."""
    usage: Usage
    dollars: float | None
    """For a thousand such questions; None without prices."""
    ratio: float | None
    """Its total as a multiple of that of standard RAG; None without one, and for that one itself."""
    side: str
    """Letter of the answer that it gives; those with the same letter agree."""
    answer: str


def measured(
    race: Race, events: Sequence[Sequence[Event]], prices: Prices | None
) -> tuple[Measured | None, ...]:
    """The numbers by column; None for a run without an end of its own."""
    before = race.comparison.retrieve_ms or 0.0
    answers = {place: trace for place, trace in enumerate(race.traces) if trace is not None and _told(trace)}
    letters = sides([answer_key(trace) for trace in answers.values()])
    side = dict(zip(answers, letters, strict=True))
    standard = next((one for one in answers.values() if one.pipeline == "standard"), None)
    base = None if standard is None else before + own_ms(standard)
    rows: list[Measured | None] = []
    for place, pipeline in enumerate(race.comparison.pipelines):
        trace = answers.get(place)
        if trace is None:
            rows.append(None)
            continue
        zero, total = before - begun_ms(trace), before + own_ms(trace)
        rows.append(
            Measured(
                pipeline=pipeline,
                first_ms=_after(zero, _first(events[place])),
                answer_ms=_after(zero, _answer_begins(trace)),
                total_ms=total,
                own_ms=own_ms(trace),
                usage=trace.usage,
                dollars=None if prices is None else cost(prices, trace.usage, total),
                ratio=total / base if base and trace is not standard else None,
                side=side[place],
                answer=answer_text(trace),
            )
        )
    return tuple(rows)


def sides(keys: Sequence[str]) -> tuple[str, ...]:
    """A letter for each answer: equal answers have equal letters, and the first one is A."""
    letters: dict[str, str] = {}
    return tuple(letters.setdefault(key, chr(ord("A") + len(letters))) for key in keys)


def answer_key(trace: Trace) -> str:
    """What makes two answers equal; all that say that there is none are."""
    if abstained(trace):
        return ""
    text = answer_text(trace)
    return normalise_answer(text) or text


def abstained(trace: Trace) -> bool:
    """Whether the run ended without an answer in the documents."""
    return trace.decision is not None and trace.decision.kind == "abstained"


def _told(trace: Trace) -> bool:
    return trace.status == "done"


def _after(zero: float, at_ms: float | None) -> float | None:
    return None if at_ms is None else zero + at_ms


def _first(events: Sequence[Event]) -> float | None:
    return next(
        (event.at_ms for event in events if isinstance(event, DraftToken | HopToken | AnswerToken)), None
    )


def _answer_begins(trace: Trace) -> float | None:
    """When the first word of the final answer was there to read."""
    times = [token.at_ms for token in trace.answer_tokens if token.at_ms is not None]
    if times:
        return min(times)
    decided = [span.end_ms for span in trace.spans if span.name == "decide" and span.end_ms is not None]
    return max(decided, default=trace.elapsed_ms)
