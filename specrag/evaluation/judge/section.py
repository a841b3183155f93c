"""The judge's part of the report: who judged, how often, at which cost, and how far to trust it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from specrag.evaluation.bootstrap import Estimate
from specrag.evaluation.judge.agreement import Agreement, Pair, agreement
from specrag.evaluation.judge.answers import AnswerExaminer, counts
from specrag.evaluation.judge.book import Opinion
from specrag.evaluation.judge.chat import Chat
from specrag.evaluation.judge.panel import Key, Ruling
from specrag.evaluation.judging import right
from specrag.evaluation.outcome import Outcome
from specrag.evaluation.plan import Plan

_MARK = AnswerExaminer.mark


def judged(outcomes: Sequence[Outcome], ruling: Ruling) -> list[Outcome]:
    """Outcomes with the judge's figures among their marks."""
    return [replace(one, marks={**one.marks, **ruling.marks(_key(one))}) for one in outcomes]


def section(plan: Plan, outcomes: Sequence[Outcome], ruling: Ruling, chat: Chat) -> dict[str, Any]:
    """The part as JSON."""
    every = [one for of_run in ruling.opinions.values() for one in of_run.values() if one.asked]
    pairs = _pairs(plan, outcomes, ruling)
    return {
        "model": chat.access.model,
        "answered_as": sorted({one.answered_as for one in every if one.answered_as}),
        "servers": list(chat.access.urls),
        "temperature": _temperature(every, chat),
        "problem": ruling.problem,
        "tokens": _tokens(every),
        "agreement": _agreement([pair for _, pair in pairs], plan.seed),
        "datasets": {
            one.name: {
                "agreement": _agreement([pair for key, pair in pairs if key[0] == one.name], plan.seed)
            }
            for one in plan.datasets
        },
        "marks": {mark: {"by": by, **_counts(plan, ruling, mark)} for mark, by in ruling.by.items()},
        "pipelines": {
            one.name: {
                "verdicts": counts(Counter(opinion.word for opinion in _of(ruling, _MARK, one.name))),
                "agreement": _agreement([pair for key, pair in pairs if key[2] == one.name], plan.seed),
                "marks": {mark: _counts_of(ruling, mark, one.name) for mark in ruling.by},
            }
            for one in plan.systems
        },
    }


def _temperature(every: Sequence[Opinion], chat: Chat) -> float | None:
    """At which all was judged; None if some of it was not told one. What was judged before may differ."""
    found = {one.temperature for one in every if one.value is not None} or {chat.temperature}
    return next(iter(found)) if len(found) == 1 else None


def _key(one: Outcome) -> Key:
    return (one.dataset, one.question, one.system)


def _pairs(plan: Plan, outcomes: Sequence[Outcome], ruling: Ruling) -> list[tuple[Key, Pair]]:
    """The answers that the judge was asked about and gave a verdict on."""
    questions = {(dataset.name, question.id): question for dataset, question in plan.questions}
    made = []
    for one in outcomes:
        opinion = ruling.opinions.get(_key(one), {}).get(_MARK)
        if opinion is None or not opinion.asked or opinion.value is None:
            continue
        scored = right(questions[one.dataset, one.question], one.marks["score"])
        name = f"{one.dataset} {one.question}"
        made.append((_key(one), Pair(question=name, judged=opinion.value == 1.0, scored=scored)))
    return made


def _agreement(pairs: Sequence[Pair], seed: int) -> dict[str, Any]:
    found = agreement(pairs, seed=seed)
    return {
        "n": found.n,
        "share": None if found.share is None else round(found.share, 6),
        "both_right": found.both,
        "judge_only": found.judge_only,
        "score_only": found.score_only,
        "both_wrong": found.neither,
        "kappa": None if found.kappa is None else _kappa(found.kappa, found),
    }


def _kappa(value: Estimate, found: Agreement) -> dict[str, Any]:
    numbers = {"mean": value.mean, "low": value.low, "high": value.high, "luck_p": found.luck_p}
    rounded = {name: round(number, 6) for name, number in numbers.items()}
    return {**rounded, "n": value.n, "clear": found.clear}


def _of(ruling: Ruling, mark: str, system: str) -> list[Opinion]:
    """What was asked about the runs of a system."""
    found = (of_run.get(mark) for key, of_run in ruling.opinions.items() if key[2] == system)
    return [one for one in found if one is not None and one.asked]


def _counts(plan: Plan, ruling: Ruling, mark: str) -> dict[str, int]:
    found: Counter[str] = Counter()
    for system in plan.systems:
        found.update(_counts_of(ruling, mark, system.name))
    return {name: found[name] for name in ("asked", "repeated", "unread", "unheard")}


def _counts_of(ruling: Ruling, mark: str, system: str) -> dict[str, int]:
    """Of the runs of a system: judged at all, without a request of their own, not readable, not reached."""
    opinions = _of(ruling, mark, system)
    return {
        "asked": len(opinions),
        "repeated": sum(one.again for one in opinions),
        "unread": sum(one.value is None for one in opinions),
        "unheard": ruling.unheard[mark, system],
    }


def _tokens(opinions: Sequence[Opinion]) -> Mapping[str, int]:
    """What the opinions in this report cost when they were asked; of some a server may tell nothing."""
    return {
        "prompt": sum(one.prompt_tokens or 0 for one in opinions),
        "completion": sum(one.completion_tokens or 0 for one in opinions),
        "uncounted": sum(one.prompt_tokens is None or one.completion_tokens is None for one in opinions),
    }
