"""Runs as events, with prompts and a perspective map, for the detail of one run. Test data: no model wrote it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from specrag import events as e
from specrag.config import PRESETS, ScoreWeights
from specrag.decide import decide
from specrag.tracing.trace import Trace, fold
from specrag.types import (
    Draft,
    LogSums,
    Part,
    Passage,
    PipelineName,
    Prompt,
    RoleUsage,
    Scores,
    Spot,
    Subset,
    TokenLogprob,
    Verdict,
)
from tests.ui_traces import PASSAGES

_RATIONALE = (
    "The notice of March 2025 shortens the stay at the north quay to three nights and replaces section 4."
)
_ANSWERS = ("Three nights.", "Seven nights.", "Three nights.", "Not in the passages.")


class Clock:
    """Gives every event its time."""

    def __init__(self, step_ms: float) -> None:
        self._now = -step_ms
        self._step = step_ms

    def __call__(self) -> float:
        self._now += self._step
        return round(self._now, 3)


def events_of_run(
    *,
    drafts: int = 4,
    words: int = 18,
    passages: Sequence[Passage] = PASSAGES,
    pipeline: PipelineName = "speculative",
    step_ms: float = 10.0,
    spots: bool = True,
    **config: Any,
) -> list[e.Event]:
    """A whole speculative run: the drafts are written a token each in turn, as one batch does it."""
    told = _events(
        drafts, words, tuple(passages), now=Clock(step_ms), pipeline=pipeline, spots=spots, config=config
    )
    return list(told)


def run_of(**settings: Any) -> Trace:
    """The same, folded."""
    return fold(events_of_run(**settings))


def _events(
    count: int,
    words: int,
    passages: tuple[Passage, ...],
    *,
    now: Clock,
    pipeline: PipelineName,
    spots: bool,
    config: dict[str, Any],
) -> Iterator[e.Event]:
    subsets = subsets_of(count, passages)
    config = {"weights": dict(PRESETS["default"]), "threshold": 0.0, "pool": True, "drafts": count, **config}
    yield e.RunStarted(
        at_ms=now(),
        run_id="run-detail",
        pipeline=pipeline,
        question="How long may a boat stay at the north quay?",
        created_at="2026-01-01T10:00:00+00:00",
        config=config,
    )
    yield e.SpanStarted(at_ms=now(), span_id="run", parent_id=None, name="run")
    yield e.SpanStarted(at_ms=now(), span_id="ret", parent_id="run", name="retrieve")
    yield e.SpanStarted(at_ms=now(), span_id="emb", parent_id="ret", name="embed")
    yield e.SpanEnded(at_ms=now(), span_id="emb")
    yield e.PassagesRetrieved(at_ms=now(), passages=passages)
    yield e.SpanEnded(at_ms=now(), span_id="ret", attributes={"passages": len(passages)})
    yield e.SpanStarted(at_ms=now(), span_id="par", parent_id="run", name="partition")
    yield e.SubsetsFormed(
        at_ms=now(), subsets=subsets, spots=spots_of(passages) if spots else (), singletons=(passages[-1].id,)
    )
    yield e.SpanEnded(
        at_ms=now(), span_id="par", attributes={"subsets": count, **({"map_variance": 0.42} if spots else {})}
    )
    yield e.SpanStarted(at_ms=now(), span_id="all", parent_id="run", name="draft")
    yield from _drafting(subsets, words, now)
    yield e.SpanEnded(at_ms=now(), span_id="all", attributes={"drafts": count})
    yield from _verifying(subsets, words, now)
    done = fold_drafts(subsets, words)
    ruling = decide(
        done,
        weights=ScoreWeights(**config["weights"]),
        threshold=config["threshold"],
        pool=config["pool"],
        passages=passages,
    )
    yield e.SpanStarted(at_ms=now(), span_id="dec", parent_id="run", name="decide")
    yield e.DraftsVerified(
        at_ms=now(),
        verdicts=tuple(
            Verdict(
                subset_id=draft.subset_id,
                scores=draft.scores,
                log_sums=draft.log_sums,
                verifier_tokens=draft.verifier_tokens,
            )
            for draft in ruling.drafts
        ),
    )
    yield e.Decided(at_ms=now(), decision=ruling.decision)
    yield e.SpanEnded(at_ms=now(), span_id="dec")
    if ruling.answer is not None:
        yield e.Answered(at_ms=now(), answer=ruling.answer)
    yield e.SpanEnded(at_ms=now(), span_id="run")
    yield e.RunFinished(at_ms=now())


def subsets_of(count: int, passages: Sequence[Passage]) -> tuple[Subset, ...]:
    """Two passages each, some of them in several."""
    size = len(passages)
    return tuple(
        Subset(
            id=f"s{number}",
            perspective=f"view {number}, quay",
            passage_ids=(passages[number % size].id, passages[(3 * number + 1) % size].id),
            clusters=(number % 3, (number + 1) % 3),
        )
        for number in range(1, count + 1)
    )


def spots_of(passages: Sequence[Passage]) -> tuple[Spot, ...]:
    """A ring of passages in three clusters."""
    return tuple(
        Spot(
            passage_id=passage.id,
            x=math.cos(2.4 * place) * (0.4 + 0.6 * place / len(passages)),
            y=math.sin(2.4 * place) * (0.4 + 0.6 * place / len(passages)),
            cluster=place % 3,
        )
        for place, passage in enumerate(passages)
    )


def _pieces(number: int, words: int) -> list[tuple[Part, str, float]]:
    """Part, text and log-probability of each token of a draft."""
    rationale = (f"{_RATIONALE} " * (1 + words // 18)).split()[:words]
    answer = _ANSWERS[number % len(_ANSWERS)].split()
    told: list[tuple[Part, str]] = [
        *(("rationale", f" {word}") for word in rationale),
        *(("answer", f" {word}") for word in answer),
    ]
    return [
        (part, text, math.log(0.3 + 0.65 * abs(math.sin(1.7 * place + number))))
        for place, (part, text) in enumerate(told)
    ]


def fold_drafts(subsets: Sequence[Subset], words: int) -> tuple[Draft, ...]:
    """The drafts as they are when the verifier has read them."""
    made = []
    for number, subset in enumerate(subsets):
        draft = _draft(number, subset, words, times=())
        verdict = _verdict(number, subset, words)
        made.append(
            replace(
                draft,
                scores=verdict.scores,
                log_sums=verdict.log_sums,
                verifier_tokens=verdict.verifier_tokens,
            )
        )
    return tuple(made)


def _draft(number: int, subset: Subset, words: int, times: Sequence[float]) -> Draft:
    pieces = _pieces(number, words)
    tokens = tuple(
        TokenLogprob(text=text, logprob=logprob, part=part, at_ms=times[place] if times else None)
        for place, (part, text, logprob) in enumerate(pieces)
    )
    return Draft(
        subset_id=subset.id,
        rationale="".join(text for part, text, _ in pieces if part == "rationale").strip(),
        answer="".join(text for part, text, _ in pieces if part == "answer").strip(),
        citations=subset.passage_ids[:1],
        abstained=number % len(_ANSWERS) == 3,
        finish_reason="stop",
        tokens=tokens,
        prompt=_prompt(subset),
        prompt_tokens=210 + number,
    )


def _prompt(subset: Subset) -> str:
    evidence = "\n".join(f"[{place}] {id_}" for place, id_ in enumerate(subset.passage_ids, 1))
    return f"<|im_start|>user\nUse only the evidence.\n{evidence}\nQuestion: How long?<|im_end|>\n<|im_start|>assistant\n"


def _drafting(subsets: Sequence[Subset], words: int, now: Clock) -> Iterator[e.Event]:
    for number, subset in enumerate(subsets):
        yield e.SpanStarted(
            at_ms=now(),
            span_id=f"d{number}",
            parent_id="all",
            name="draft",
            attributes={"subset_id": subset.id},
        )
        yield e.DraftStarted(
            at_ms=now(), subset_id=subset.id, prompt=_prompt(subset), prompt_tokens=210 + number
        )
    pieces = [_pieces(number, words) for number in range(len(subsets))]
    times: list[list[float]] = [[] for _ in subsets]
    for number in range(len(subsets)):
        yield e.SpanStarted(at_ms=now(), span_id=f"w{number}", parent_id=f"d{number}", name="decode")
    for place in range(max(map(len, pieces))):
        for number, subset in enumerate(subsets):
            if place < len(pieces[number]):
                part, text, logprob = pieces[number][place]
                at = now()
                times[number].append(at)
                yield e.DraftToken(at_ms=at, subset_id=subset.id, part=part, text=text, logprob=logprob)
    for number, subset in enumerate(subsets):
        yield e.DraftFinished(at_ms=now(), draft=_draft(number, subset, words, times[number]))
        yield e.SpanEnded(at_ms=now(), span_id=f"w{number}")
        yield e.SpanEnded(at_ms=now(), span_id=f"d{number}")
    yield e.UsageCounted(
        at_ms=now(),
        role="drafter",
        prompt_tokens=sum(210 + number for number in range(len(subsets))),
        completion_tokens=sum(map(len, pieces)),
    )


def _verifying(subsets: Sequence[Subset], words: int, now: Clock) -> Iterator[e.Event]:
    yield e.SpanStarted(at_ms=now(), span_id="ver", parent_id="run", name="verify")
    for subset in subsets:
        yield e.PromptSent(
            at_ms=now(),
            prompt=Prompt(
                role="verifier",
                step="verify",
                text=f"<|im_start|>user\nQuestion\n{_RATIONALE}<|im_end|>\n",
                tokens=80,
                draft=subset.id,
            ),
        )
    verdicts = tuple(_verdict(number, subset, words) for number, subset in enumerate(subsets))
    yield e.DraftsVerified(at_ms=now(), verdicts=verdicts)
    read = RoleUsage(prompt_tokens=20 + 60 * len(subsets), forward_passes=1)
    yield e.UsageCounted(
        at_ms=now(), role="verifier", prompt_tokens=read.prompt_tokens, forward_passes=read.forward_passes
    )
    yield e.SpanEnded(at_ms=now(), span_id="ver")


def _verdict(number: int, subset: Subset, words: int) -> Verdict:
    pieces = _pieces(number, words)
    rationale = [logprob for part, _, logprob in pieces if part == "rationale"]
    answer = [logprob for part, _, logprob in pieces if part == "answer"]
    return Verdict(
        subset_id=subset.id,
        scores=Scores(
            draft=(math.exp(sum(rationale) / len(rationale)) + math.exp(sum(answer) / len(answer))) / 2,
            self_containment=0.3 + 0.02 * (number % 7),
            self_reflection=0.4 + 0.07 * (number % 8),
            relevance=0.5 + 0.03 * ((5 * number) % 13),
        ),
        log_sums=LogSums(
            rationale=math.fsum(rationale),
            rationale_tokens=len(rationale),
            answer=math.fsum(answer),
            answer_tokens=len(answer),
            self_containment=len(pieces) * math.log(0.3 + 0.02 * (number % 7)),
            self_containment_tokens=len(pieces),
        ),
        verifier_tokens=tuple(
            TokenLogprob(text=text, logprob=logprob / 2, part=part) for part, text, logprob in pieces
        ),
    )
