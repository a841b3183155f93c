"""Hand-written traces in every state that the page can show. Test data: no model wrote any of it."""

import math
from dataclasses import replace

from specrag.tracing.trace import Trace, Usage
from specrag.types import (
    Answer,
    Decision,
    Draft,
    ErrorInfo,
    Part,
    Passage,
    RoleUsage,
    Scores,
    Side,
    Span,
    Subset,
    TokenLogprob,
)

HOSTILE = (
    "<script>alert(1)</script> ${document.title} {{ 7*7 }} \"quoted\" 'single' </div></bdi> "
    "javascript:alert(1) \u202egnp.exe\u202c \x00\ud800 <img src=x onerror=alert(1)>"
)
LONG_WORD = "x" * 10_000

_RULES = (
    "4.1 Visiting boats report on arrival. Visiting boats may stay at the north quay for seven nights. "
    "4.2 The permit is shown on request."
)
_NOTICE = (
    "From 1 March 2025 the stay at the north quay is shortened to three nights. "
    "This notice replaces section 4 of the rules of 2019. Dogs are kept on a lead."
)
_TARIFF = (
    "Boats up to 10 m pay 18 a night. Nights count from noon to noon. Electricity is charged by the meter."
)
_TEXTS = (
    ("Harbour rules 2019", 4, "2019-05-01", 0.71, _RULES),
    ("Quay notice 2025", 1, "2025-03-01", 0.69, _NOTICE),
    ("Tariff sheet", 2, "2024-01-10", 0.55, _TARIFF),
    ("Dry dock manual", 11, None, 0.52, "The dry dock takes hulls of up to 22 m."),
    (
        "Minutes of May",
        3,
        "2025-05-12",
        0.48,
        "The board noted that the new limit of three nights is respected.",
    ),
    ("Festival leaflet", None, None, 0.41, "On Saturday there is music, and the mooring is crowded."),
    ("Harbour map", None, None, 0.40, "The north quay lies behind the lighthouse."),
    ("Cafe menu", 1, None, 0.33, "Soup of the day, bread, tea."),
)

PASSAGES = tuple(
    Passage(
        id=f"p{number}",
        document_id=f"d{number}",
        title=title,
        text=text,
        page=page,
        source=f"{title.lower().replace(' ', '-')}.pdf",
        published_at=date,
        score=score,
    )
    for number, (title, page, date, score, text) in enumerate(_TEXTS, 1)
)
SUBSETS = (
    Subset(id="s1", perspective="rules, nights, permit", passage_ids=("p1", "p3")),
    Subset(id="s2", perspective="notice, 2025, shortened", passage_ids=("p2", "p5")),
    Subset(id="s3", perspective="prices, length, electricity", passage_ids=("p3", "p2")),
    Subset(id="s4", perspective="festival, mooring, crowd", passage_ids=("p6", "p7")),
)


def tokens(text: str, part: Part, begin_ms: float, step_ms: float = 45.0) -> tuple[TokenLogprob, ...]:
    """One token a word, with probabilities that differ."""
    words = text.split(" ")
    return tuple(
        TokenLogprob(
            text=word if index == 0 else f" {word}",
            logprob=math.log(0.35 + 0.63 * abs(math.sin(index * 1.7 + len(word)))),
            part=part,
            at_ms=begin_ms + index * step_ms,
        )
        for index, word in enumerate(words)
    )


def draft(
    number: int, rationale: str, answer: str, *, citations: tuple[str, ...] = (), abstained: bool = False
) -> Draft:
    """A finished draft that nobody has scored yet."""
    first = tokens(rationale, "rationale", 910.0)
    both = (*first, *tokens(answer, "answer", 910.0 + 45.0 * len(first)))
    return Draft(
        subset_id=f"s{number}",
        rationale=rationale,
        answer=answer,
        citations=citations,
        abstained=abstained,
        finish_reason="stop",
        tokens=both,
        prompt=f"<|im_start|>user\nUse only the evidence.\n[1] text of subset {number}\nQuestion: How long?<|im_end|>\n",
        prompt_tokens=300 + number,
    )


DRAFTS = (
    draft(
        1,
        "Section 4 allows visiting boats to stay seven nights at the north quay.",
        "Seven nights",
        citations=("p1",),
    ),
    draft(
        2,
        "The notice of March 2025 shortens the stay to three nights and replaces section 4.",
        "Three nights, since the 2025 notice.",
        citations=("p2", "p5"),
    ),
    draft(
        3,
        "The notice sets three nights; the tariff counts them from noon.",
        "three nights since the 2025 notice",
        citations=("p2",),
    ),
    draft(4, "The documents describe the festival only.", "Not in these documents", abstained=True),
)
SCORES = (
    Scores(draft=0.81, self_containment=0.42, self_reflection=0.71, relevance=0.74, combined=0.62),
    Scores(draft=0.84, self_containment=0.55, self_reflection=0.93, relevance=0.79, combined=0.83),
    Scores(draft=0.72, self_containment=0.47, self_reflection=0.80, relevance=0.70, combined=0.61),
    Scores(draft=0.66, self_containment=0.38, self_reflection=0.21, relevance=0.004, combined=0.19),
)
USAGE = Usage(
    drafter=RoleUsage(prompt_tokens=1284, completion_tokens=171),
    verifier=RoleUsage(prompt_tokens=412, forward_passes=1),
)


def _spans(*, until: float) -> tuple[Span, ...]:
    """The spans of a run that has come to `until`, as the pipeline writes them."""
    planned: list[tuple[str, str | None, str, float, float, dict[str, str | int]]] = [
        ("run", None, "run", 0.0, 4600.0, {}),
        ("ret", "run", "retrieve", 0.0, 150.0, {"passages": 8}),
        ("par", "run", "partition", 150.0, 178.0, {"subsets": 4}),
        ("dra", "run", "draft", 180.0, 3900.0, {"drafts": 4}),
    ]
    for number, end in enumerate((3520.0, 3900.0, 3330.0, 2220.0), 1):
        planned.append((f"d{number}", "dra", "draft", 180.0, end, {"subset_id": f"s{number}"}))
        planned.append((f"e{number}", f"d{number}", "decode", 900.0, end, {}))
    planned.append(("ver", "run", "verify", 3900.0, 4550.0, {"passes": 1}))
    planned.append(("dec", "run", "decide", 4550.0, 4552.0, {}))
    return tuple(
        Span(
            id=key,
            parent_id=parent,
            name=name,
            start_ms=start,
            end_ms=end if end <= until else None,
            attributes=dict(more),
        )
        for key, parent, name, start, end, more in planned
        if start < until
    )


STARTED = Trace(
    run_id="run-1",
    status="running",
    pipeline="speculative",
    question="How long may a boat stay?",
    created_at="2026-01-01",
)
RETRIEVED = replace(STARTED, passages=PASSAGES, spans=_spans(until=160.0), elapsed_ms=160.0)


def _partly(done: Draft, count: int) -> Draft:
    kept = done.tokens[:count]
    return replace(
        done,
        tokens=kept,
        rationale="".join(token.text for token in kept if token.part == "rationale"),
        answer="".join(token.text for token in kept if token.part == "answer"),
        citations=(),
        finish_reason=None,
    )


DRAFTING = replace(
    RETRIEVED,
    subsets=SUBSETS,
    drafts=(DRAFTS[0], _partly(DRAFTS[1], 16), _partly(DRAFTS[2], 5), _partly(DRAFTS[3], 0)),
    spans=tuple(span for span in _spans(until=1600.0) if span.id != "e4"),
    elapsed_ms=1600.0,
)
VERIFYING = replace(DRAFTING, drafts=DRAFTS, spans=_spans(until=4000.0), elapsed_ms=4000.0)
SELECTED = replace(
    VERIFYING,
    status="done",
    drafts=tuple(
        replace(
            one,
            scores=scores,
            verifier_tokens=tuple(
                replace(token, logprob=token.logprob / 2, at_ms=None) for token in one.tokens
            ),
        )
        for one, scores in zip(DRAFTS, SCORES, strict=True)
    ),
    decision=Decision(
        kind="selected",
        draft_index=1,
        reason="Draft 2 scores 0.83 and draft 3 gives the same answer; together they hold 70% of the score mass, the next answer (draft 1) 30%. One abstained.",
        margin=0.4,
        agreement=0.67,
    ),
    answer=Answer(text=DRAFTS[1].answer, citations=("p2", "p5"), confidence=0.7),
    spans=_spans(until=5000.0),
    usage=USAGE,
    elapsed_ms=4600.0,
)
assert SELECTED.decision is not None
DISPUTED = replace(
    SELECTED,
    run_id="run-2",
    decision=replace(
        SELECTED.decision,
        conflict="Harbour rules 2019, p. 4 says seven nights. The newer source is Quay notice 2025. Both are shown.",
        sides=(
            Side(
                draft_index=1,
                answer="Three nights, since the 2025 notice.",
                passage_ids=("p2", "p5"),
                sources=("Quay notice 2025 (2025-03-01)", "Minutes of May (2025-05-12)"),
            ),
            Side(
                draft_index=0,
                answer="Seven nights",
                passage_ids=("p1",),
                sources=("Harbour rules 2019 (2019-05-01)",),
            ),
        ),
    ),
)
FALLBACK_WRITING = replace(
    VERIFYING,
    run_id="run-3",
    drafts=SELECTED.drafts,
    decision=Decision(
        kind="fallback",
        draft_index=None,
        reason="The best draft scores 0.62, below the threshold of 0.90, so the verifier answers from all passages.",
    ),
    answer=Answer(text="Three nights, as the notice of"),
    spans=(
        *_spans(until=5000.0)[1:],
        Span(id="fal", parent_id="run", name="fallback", start_ms=4552.0, end_ms=None),
    ),
    usage=USAGE,
    elapsed_ms=5800.0,
)
FALLBACK = replace(
    FALLBACK_WRITING,
    status="done",
    answer=Answer(text="Three nights, as the notice of March 2025 says.", citations=("p2",)),
    spans=(*FALLBACK_WRITING.spans[:-1], replace(FALLBACK_WRITING.spans[-1], end_ms=6400.0)),
    elapsed_ms=6400.0,
)
ABSTAINED = replace(
    SELECTED,
    run_id="run-4",
    drafts=tuple(replace(one, abstained=True, answer="Not in these documents") for one in SELECTED.drafts),
    decision=Decision(
        kind="abstained",
        draft_index=None,
        reason="All 4 drafts say that their passages do not hold the answer.",
    ),
    answer=Answer(text="The passages do not answer this question."),
)
FAILED = replace(
    DRAFTING,
    run_id="run-5",
    status="failed",
    drafts=tuple(
        replace(
            one,
            tokens=(),
            rationale="",
            answer="",
            finish_reason="error",
            error="The drafter ran out of memory.",
        )
        for one in DRAFTING.drafts
    ),
    error=ErrorInfo(
        type="model",
        message="No draft could be written: the drafter ran out of memory; choose a smaller model.",
    ),
)
CANCELLED = replace(
    DRAFTING,
    run_id="run-6",
    status="cancelled",
    error=ErrorInfo(type="cancelled", message="the visitor pressed Stop."),
)
HOSTILE_TRACE = replace(
    DISPUTED,
    run_id='r"><script>7',
    question=HOSTILE,
    passages=(
        replace(
            PASSAGES[0],
            title=HOSTILE,
            source="javascript:alert(1)",
            text=HOSTILE + LONG_WORD,
            published_at=HOSTILE,
        ),
        replace(
            PASSAGES[1],
            title=LONG_WORD,
            source='https://example.org/a?b="><script>',
            text="\u05e9\u05dc\u05d5\u05dd \u202eevil",
        ),
        *PASSAGES[2:],
    ),
    subsets=(
        replace(SUBSETS[0], perspective=HOSTILE),
        replace(SUBSETS[1], perspective=LONG_WORD),
        *SUBSETS[2:],
    ),
    drafts=(
        replace(
            SELECTED.drafts[0],
            rationale=HOSTILE,
            answer=LONG_WORD,
            prompt=HOSTILE,
            tokens=(
                TokenLogprob(text="<b>", logprob=-math.inf, part="rationale"),
                TokenLogprob(text="x", logprob=math.nan, part="answer"),
            ),
        ),
        replace(SELECTED.drafts[1], rationale=LONG_WORD, answer=HOSTILE),
        replace(SELECTED.drafts[2], finish_reason="error", error=HOSTILE),
        SELECTED.drafts[3],
    ),
    decision=replace(
        SELECTED.decision,
        reason=HOSTILE,
        conflict=HOSTILE,
        sides=(
            Side(draft_index=1, answer=HOSTILE, passage_ids=("p1",), sources=(HOSTILE,)),
            Side(draft_index=99, answer=LONG_WORD, passage_ids=("gone", "p2"), sources=(HOSTILE,)),
        ),
    ),
    singletons=("p1", "nowhere"),
    answer=Answer(text=HOSTILE, citations=("p1", "p2", "nowhere")),
    partition_note=HOSTILE,
    error=ErrorInfo(type="x", message=HOSTILE),
    spans=(
        *SELECTED.spans,
        Span(id="x", parent_id="run", name=HOSTILE, start_ms=10, end_ms=20, attributes={HOSTILE: HOSTILE}),
    ),
)
STATES = {
    "started": STARTED,
    "retrieved": RETRIEVED,
    "drafting": DRAFTING,
    "verifying": VERIFYING,
    "selected": SELECTED,
    "disputed": DISPUTED,
    "fallback-writing": FALLBACK_WRITING,
    "fallback": FALLBACK,
    "abstained": ABSTAINED,
    "failed": FAILED,
    "cancelled": CANCELLED,
    "hostile": HOSTILE_TRACE,
}
