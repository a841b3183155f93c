"""The report as one JSON document, `specrag.eval/1`.

Plain numbers where a script looks for them (`pipelines.NAME.metrics.exact_match`), with intervals and counts
beside them under the same names.
"""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from specrag.evaluation.bootstrap import DRAWS, LEVEL, Estimate
from specrag.evaluation.outcome import Outcome
from specrag.evaluation.plan import Plan
from specrag.evaluation.summary import Choices, Spread, Summary, compared, summary
from specrag.evaluation.systems import System

SCHEMA: Final = "specrag.eval/1"
_DIGITS: Final = 6
COMPARED: Final = (
    *("score", "judged", "exact_match", "f1", "citation_precision", "citation_recall", "faithfulness"),
)
"""Metrics whose difference to another system is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What a reader needs to make the same report again."""

    command: Sequence[str]
    environment: Mapping[str, Any]
    config: Mapping[str, Any]


def document(plan: Plan, outcomes: Sequence[Outcome], origin: Origin) -> dict[str, Any]:
    """The whole report; every figure is over the questions of all files, and again for each file."""
    names = [dataset.name for dataset in plan.datasets]
    return {
        "schema": SCHEMA,
        "dataset": ", ".join(names),
        "n": len(plan.questions),
        "finished": len(outcomes) == len(plan.questions) * len(plan.systems),
        "seed": plan.seed,
        "limit": plan.limit,
        "corpus": plan.corpus,
        "command": shlex.join(origin.command),
        "bootstrap": {"draws": DRAWS, "level": LEVEL, "seed": plan.seed},
        "pipelines": _pipelines(plan, outcomes),
        "differences": _differences(plan, outcomes),
        "datasets": {
            dataset.name: {
                "sha256": dataset.sha256,
                "n": sum(one.name == dataset.name for one, _ in plan.questions),
                "left_out": dataset.left_out,
                "pipelines": _pipelines(plan, [one for one in outcomes if one.dataset == dataset.name]),
            }
            for dataset in plan.datasets
        },
        "settings": dict(origin.config),
        "environment": dict(origin.environment),
    }


def _pipelines(plan: Plan, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        system.name: _pipeline(system, summary(of(outcomes, system), seed=plan.seed))
        for system in plan.systems
    }


def of(outcomes: Sequence[Outcome], system: System) -> list[Outcome]:
    """Those of one system."""
    return [one for one in outcomes if one.system == system.name]


def _pipeline(system: System, found: Summary) -> dict[str, Any]:
    made: dict[str, Any] = {
        "method": system.method,
        "settings": dict(system.settings),
        "fork": system.fork,
        "n": found.n,
        "failed": [{"question": question, "error": error} for question, error in found.failed],
        **_estimates(found.metrics, "metrics"),
        "latency": _spreads(found.times),
        "usage": _by_role(found.tokens),
        "calibration": {
            "error": _rounded(found.calibration.error),
            "bins": [
                {
                    "low": one.low,
                    "high": one.high,
                    "n": one.n,
                    "confidence": _rounded(one.confidence),
                    "accuracy": _rounded(one.accuracy),
                }
                for one in found.calibration.bins
            ],
        },
    }
    if found.choices is not None:
        made["choices"] = _choices(found.choices)
    return made


def _choices(found: Choices) -> dict[str, Any]:
    return {
        "n": found.n,
        "by_no_draft": found.by_no_draft,
        **_estimates(found.worth, "worth"),
        "selected_minus": {name: interval(one) for name, one in found.against.items()},
        "auc": {
            name: {
                "within": _rounded(one.within),
                "pooled": _rounded(one.pooled),
                "questions": one.questions,
                "drafts": one.drafts,
            }
            for name, one in found.separation.items()
        },
    }


def _differences(plan: Plan, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Every system against its plain form, if that was asked too, else against the first of the command."""
    pairs = [(one, _rival(one, plan.systems)) for one in plan.systems]
    found = (
        (one, other, metric, compared(of(outcomes, one), of(outcomes, other), metric, seed=plan.seed))
        for one, other in pairs
        if one != other
        for metric in COMPARED
    )
    return [
        {"pipeline": one.name, "against": other.name, "metric": metric, **interval(value)}
        for one, other, metric, value in found
        if value is not None
    ]


def _rival(system: System, systems: Sequence[System]) -> System:
    return next((one for one in systems if one.name == system.method and one != system), systems[0])


def interval(one: Estimate) -> dict[str, Any]:
    """A mean with its interval."""
    return {
        "mean": _rounded(one.mean),
        "low": _rounded(one.low),
        "high": _rounded(one.high),
        "n": one.n,
        "p": _rounded(one.p),
        "clear": one.clear,
    }


def _estimates(found: Mapping[str, Estimate], name: str) -> dict[str, Any]:
    return {
        name: {metric: _rounded(one.mean) for metric, one in found.items()},
        "intervals": {metric: [_rounded(one.low), _rounded(one.high)] for metric, one in found.items()},
        "counts": {metric: one.n for metric, one in found.items()},
    }


def _spreads(found: Mapping[str, Spread]) -> dict[str, Any]:
    """Medians under their own names, and again in a part of its own what is exceeded by one in twenty."""
    medians = {name: _rounded(one.median) for name, one in found.items()}
    return {**medians, "p95": {name: _rounded(one.p95) for name, one in found.items()}} if found else {}


def _by_role(found: Mapping[str, Spread]) -> dict[str, Any]:
    roles: dict[str, Any] = {}
    for name, one in found.items():
        role, _, kind = name.partition(".")
        roles.setdefault(role, {})[kind] = _rounded(one.median)
        roles[role].setdefault("p95", {})[kind] = _rounded(one.p95)
    return roles


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, _DIGITS)
