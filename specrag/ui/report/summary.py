"""What any report begins with: its title, and the facts by which its figures can be made again."""

from collections.abc import Mapping
from typing import Any

from specrag.evaluation.latency.words import conditions, place_words
from specrag.evaluation.reading import EVALUATION
from specrag.ui.report.bench_parts import bench_figures
from specrag.ui.report.eval_parts import eval_figures
from specrag.ui.report.parts import Part


def parts_of(report: Mapping[str, Any]) -> tuple[Part, ...]:
    """The parts of either report."""
    return eval_figures(report) if report["schema"] == EVALUATION else bench_figures(report)


def title_of(report: Mapping[str, Any]) -> str:
    """Its title."""
    if report["schema"] == EVALUATION:
        return f"Evaluation: {report['dataset']}"
    return f"Latency: {report['drafter']} drafts, {report['verifier']} verifies"


def facts_of(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Lines beneath the title."""
    lines = _evaluated(report) if report["schema"] == EVALUATION else _measured(report)
    return tuple(line for line in lines if line)


def _evaluated(report: Mapping[str, Any]) -> tuple[str, ...]:
    environment = report["environment"]
    models = ", ".join(f"{role} {model['name']}" for role, model in environment["models"].items())
    versions = ", ".join(f"{name} {version}" for name, version in environment["versions"].items())
    left_out = sum(one["left_out"] for one in report["datasets"].values())
    return (
        f"{report['n']:,} questions, seed {report['seed']}, corpus {report['corpus']}",
        f"{left_out:,} questions without passages were left out" if left_out else "",
        "" if report["finished"] else "Not finished: the figures are of the runs so far",
        f"Models: {models}" if models else "",
        f"Device: {environment['device']}",
        f"Versions: {versions}" if versions else "",
    )


def _measured(report: Mapping[str, Any]) -> tuple[str, ...]:
    return (report["label"], conditions(report), place_words(report["environment"]))


def command_of(report: Mapping[str, Any]) -> str:
    """How to make it again; empty where it was not typed."""
    told: str = report.get("command", "")
    return told
