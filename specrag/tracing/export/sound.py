"""Whether a trace from outside can be true: ids, numbers and spans that a run could have had.

Types are checked before. What is left would otherwise crash or freeze a page that trusts its own traces: a
span that is its own parent, a score of 40, an id with a line break, a million tokens.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from specrag.errors import TraceError
from specrag.tracing.schema import is_id
from specrag.tracing.trace import Trace
from specrag.types import Scores, Span, TokenLogprob

TOKENS: Final = 5000
"""Of one text; the settings allow 2,048."""
LETTERS: Final = 200_000
"""Of all tokens of one text."""
_MOST: Final = {
    "passages": 1000,
    "subsets": 100,
    "singletons": 1000,
    "spots": 1000,
    "drafts": 100,
    "prompts": 1000,
    "hops": 100,
    "spans": 2000,
    "earlier": 100,
}
_FIRST_YEAR, _LAST_YEAR = 1970, 2200
_LATEST_MS: Final = 1e10
"""Four months; nobody waits so long, and nanoseconds of it still are a whole number everywhere."""
_ROUNDING: Final = 0.01
"""A log-probability may lie above 0 by what a model rounds."""
_LEAST: Final = -1e6
"""Far below any log-probability; servers cut at -9999."""
_QUESTION: Final = 100_000
"""Characters; the settings allow no more."""


def check_sound(trace: Trace) -> None:
    """Refuse a trace that no run can have had.

    Raises:
        TraceError: one sentence on the first thing that cannot be.
    """
    _check_counts(trace)
    _check_ids(trace)
    _check_times(trace)
    _check_spans(trace.spans)
    _check_numbers(trace)
    _check_sums(trace)
    _check_places(trace)
    if max(len(trace.question), len(trace.rewritten or "")) > _QUESTION:
        _refuse(f"its question is longer than {_QUESTION:,} characters")


def check_tokens(tokens: Iterable[tuple[str, float]], *, of: str) -> None:
    """Refuse more tokens than a text can have: putting them together takes time by the square.

    Raises:
        TraceError: there are too many, they are too long, or one is no probability.
    """
    count = letters = 0
    for text, logprob in tokens:
        count, letters = count + 1, letters + len(text)
        if not _LEAST <= logprob <= _ROUNDING:
            _refuse(f"a token of {of} has a log-probability above 0 or below {_LEAST:,.0f}")
    if count > TOKENS:
        _refuse(f"{of} has {count:,} tokens, and {TOKENS:,} are the most")
    if letters > LETTERS:
        _refuse(f"the tokens of {of} have {letters:,} characters, and {LETTERS:,} are the most")


def _refuse(what: str) -> None:
    raise TraceError(f"This trace cannot be of a run: {what}.")


def _check_counts(trace: Trace) -> None:
    for name, most in _MOST.items():
        count = len(getattr(trace, name))
        if count > most:
            _refuse(f"it has {count:,} {name}, and {most:,} are the most")
    for number, draft in enumerate(trace.drafts, 1):
        for tokens in (draft.tokens, draft.verifier_tokens):
            check_tokens(_pairs(tokens), of=f"draft {number}")
    check_tokens(_pairs(trace.answer_tokens), of="the answer")


def _pairs(tokens: Iterable[TokenLogprob]) -> Iterator[tuple[str, float]]:
    return ((token.text, token.logprob) for token in tokens)


def _check_ids(trace: Trace) -> None:
    if not trace.run_id.strip():
        _refuse("it has no run_id")
    for name, ids in _ids(trace):
        for one in ids:
            if not is_id(one):
                _refuse(f"an id in {name} is too long or holds control characters")
    for name, owned in (
        ("passages", [passage.id for passage in trace.passages]),
        ("subsets", [subset.id for subset in trace.subsets]),
        ("drafts", [draft.subset_id for draft in trace.drafts]),
        ("spans", [span.id for span in trace.spans]),
    ):
        if len(set(owned)) < len(owned):
            _refuse(f"two of its {name} have the same id")


def _ids(trace: Trace) -> Iterator[tuple[str, Iterable[str]]]:
    yield "run_id", [trace.run_id]
    yield "parent", [trace.parent.run_id] if trace.parent else []
    yield "passages", [one for passage in trace.passages for one in (passage.id, passage.document_id)]
    yield "subsets", [one for subset in trace.subsets for one in (subset.id, *subset.passage_ids)]
    yield "drafts", [one for draft in trace.drafts for one in (draft.subset_id, *draft.citations)]
    yield "spans", [one for span in trace.spans for one in (span.id, span.parent_id or "")]
    yield "hops", [one for hop in trace.hops for one in hop.passage_ids]
    yield "answer", trace.answer.citations if trace.answer else []


def _check_times(trace: Trace) -> None:
    try:
        year = datetime.fromisoformat(trace.created_at).year
    except ValueError:
        year = 0
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        _refuse("created_at is not a date and time")
    tokens = [token for draft in trace.drafts for token in draft.tokens] + list(trace.answer_tokens)
    times = [trace.elapsed_ms, *(token.at_ms for token in tokens if token.at_ms is not None)]
    for span in trace.spans:
        times.append(span.start_ms)
        if span.end_ms is not None:
            times.append(span.end_ms)
            if span.end_ms < span.start_ms:
                _refuse("a span ends before it begins")
    if not all(0 <= time <= _LATEST_MS for time in times):
        _refuse("a time is below 0 or months after the start")


def _check_spans(spans: Iterable[Span]) -> None:
    above = {span.id: span.parent_id for span in spans}
    rooted: set[str | None] = {None}
    for first in above:
        way: list[str] = []
        one: str | None = first
        while one is not None and one not in rooted:
            if len(way) > len(above):
                _refuse("a span is its own ancestor")
            way.append(one)
            one = above.get(one)
        rooted.update(way)


def _check_numbers(trace: Trace) -> None:
    for number, draft in enumerate(trace.drafts, 1):
        for name, value in _scores(draft.scores):
            if value is not None and not 0 < value <= 1:
                _refuse(f"the score {name} of draft {number} is {value:g}, not above 0 and at most 1")
    if not all(0 <= passage.score <= 1 for passage in trace.passages):
        _refuse("the score of a passage is not between 0 and 1")
    decision, answer = trace.decision, trace.answer
    shares = [decision.margin, decision.agreement] if decision else []
    shares += [answer.confidence] if answer else []
    if not all(0 <= share <= 1 for share in shares if share is not None):
        _refuse("a margin, agreement or confidence is not between 0 and 1")
    if min(_counts(trace), default=0) < 0:
        _refuse("a count is below 0")


def _check_sums(trace: Trace) -> None:
    """Sums of log-probabilities, of which somebody will take the exponential."""
    for number, draft in enumerate(trace.drafts, 1):
        sums = draft.log_sums
        for total, tokens in (
            (sums.rationale, sums.rationale_tokens),
            (sums.answer, sums.answer_tokens),
            (sums.self_containment, sums.self_containment_tokens),
        ):
            if total is not None and not _LEAST * TOKENS <= total <= _ROUNDING * max(1, tokens):
                _refuse(f"a sum of log-probabilities of draft {number} is above 0 or far too small")
    if any(max(abs(spot.x), abs(spot.y)) > 1 + _ROUNDING for spot in trace.spots):
        _refuse("a passage lies outside its map")


def _scores(scores: Scores) -> Iterator[tuple[str, float | None]]:
    return ((name, getattr(scores, name)) for name in Scores.__slots__)


def _counts(trace: Trace) -> Iterator[int]:
    yield trace.ahead
    for usage in (trace.usage.drafter, trace.usage.verifier):
        yield from (usage.prompt_tokens, usage.completion_tokens, usage.forward_passes)
    for draft in trace.drafts:
        yield draft.prompt_tokens
        sums = draft.log_sums
        yield from (sums.rationale_tokens, sums.answer_tokens, sums.self_containment_tokens)
    yield from (prompt.tokens for prompt in trace.prompts)


def _check_places(trace: Trace) -> None:
    """Whoever is named by place has to be there."""
    places = [trace.decision.draft_index] if trace.decision else []
    places += [side.draft_index for side in trace.decision.sides] if trace.decision else []
    if not all(0 <= place < len(trace.drafts) for place in places if place is not None):
        _refuse("its decision names a draft that it does not have")
