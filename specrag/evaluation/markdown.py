"""The report for a person: tables in Markdown, and beneath each what it shows in words.

Words are made from the numbers and say no more than the intervals allow: what is not clear is called not
clear, and what makes things worse is called worse.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from specrag.evaluation.cells import code, number, plain, table
from specrag.evaluation.judge.words import judge_words
from specrag.evaluation.words import METRICS, MOST_FAILURES, NOTES, TIMES, choice_words, difference_words


def markdown(report: Mapping[str, Any]) -> str:
    """The report of `document` in Markdown."""
    parts = [
        f"# Evaluation: {plain(report['dataset'])}",
        _head(report),
        "## Answers",
        _table(report["pipelines"]),
        NOTES,
        *judge_words(report.get("judge")),
        *_differences(report),
        *_by_dataset(report),
        "## Time and tokens",
        _times(report["pipelines"]),
        *(part for name, one in report["pipelines"].items() for part in _pipeline(name, one)),
        *_failures(report["pipelines"]),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _head(report: Mapping[str, Any]) -> str:
    environment = report["environment"]
    models = ", ".join(
        f"{role} {plain(str(model.get('name', '?')))}"
        for role, model in environment.get("models", {}).items()
        if isinstance(model, Mapping)
    )
    versions = ", ".join(f"{name} {version}" for name, version in environment.get("versions", {}).items())
    left_out = sum(one["left_out"] for one in report["datasets"].values())
    lines = [
        f"- {report['n']} questions, seed {report['seed']}, corpus {report['corpus']}",
        f"- {left_out} questions without passages were left out" if left_out else "",
        "" if report["finished"] else "- not finished: the figures are of the runs so far",
        f"- models: {models}" if models else "",
        f"- device: {plain(str(environment.get('device', 'unknown')))}",
        f"- versions: {versions}" if versions else "",
        f"- command: `{report['command'].replace('`', '')}`",
    ]
    return "\n".join(line for line in lines if line)


def _table(pipelines: Mapping[str, Any]) -> str:
    there = [name for name in METRICS if any(name in one["metrics"] for one in pipelines.values())]
    rows = (
        [
            code(name),
            str(one["n"]),
            *(_estimate(one, metric) for metric in there),
            str(len(one["failed"])),
        ]
        for name, one in pipelines.items()
    )
    return table(["pipeline", "n", *(METRICS[name] for name in there), "failed"], rows)


def _estimate(one: Mapping[str, Any], metric: str, of: str = "metrics", *, n: int | None = None) -> str:
    """A mean with its interval, and over how many if these are not the `n` that the reader expects."""
    if metric not in one[of]:
        return ""
    low, high = one["intervals"][metric]
    count = one["counts"][metric]
    some = "" if count == (one["n"] if n is None else n) else f", n = {count}"
    return f"{one[of][metric]:.3f} ({low:.3f} to {high:.3f}{some})"


def _differences(report: Mapping[str, Any]) -> Iterator[str]:
    found = report["differences"]
    if not found:
        return
    yield "## Differences on the same questions"
    yield table(
        ["pipeline", "against", "metric", "difference", "n", "in words"],
        (
            [
                code(one["pipeline"]),
                code(one["against"]),
                METRICS[one["metric"]],
                _signed(one),
                str(one["n"]),
                difference_words(one),
            ]
            for one in found
        ),
    )


def _by_dataset(report: Mapping[str, Any]) -> Iterator[str]:
    if len(report["datasets"]) < 2:  # noqa: PLR2004 - of one file the table above is all
        return
    yield "## Score by file"
    files = report["datasets"]
    names = list(files)
    rows = (
        [
            code(system),
            *(_estimate(files[name]["pipelines"][system], "score", n=files[name]["n"]) for name in names),
        ]
        for system in report["pipelines"]
    )
    heads = [f"{plain(name)} (n = {files[name]['n']})" for name in names]
    yield table(["pipeline", *heads], rows)


def _times(pipelines: Mapping[str, Any]) -> str:
    roles = ("drafter", "verifier")
    heads = [f"{name}, s: median (p95)" for name in TIMES.values()]
    tokens = [f"{role} tokens read / written" for role in roles]

    def row(name: str, one: Mapping[str, Any]) -> list[str]:
        latency, usage = one["latency"], one["usage"]
        spans = [
            f"{latency[time] / 1000:.2f} ({latency['p95'][time] / 1000:.2f})" if time in latency else ""
            for time in TIMES
        ]
        spent = [
            f"{usage[role]['prompt_tokens']:.0f} / {usage[role]['completion_tokens']:.0f}"
            if role in usage
            else ""
            for role in roles
        ]
        return [code(name), *spans, *spent]

    return table(["pipeline", *heads, *tokens], (row(name, one) for name, one in pipelines.items()))


def _pipeline(name: str, one: Mapping[str, Any]) -> Iterator[str]:
    """What was chosen, what could have been, and whether the scores know it; only where there are drafts."""
    found = one.get("choices")
    if found is None:
        return
    yield f"## What {code(name)} chose from its drafts (n = {found['n']})"
    order = sorted(found["worth"], key=lambda choice: (choice != "selected", -found["worth"][choice]))
    yield table(
        ["choice", "score", "selected minus this"],
        (
            [choice, _estimate(found, choice, "worth"), _signed(found["selected_minus"].get(choice))]
            for choice in order
        ),
    )
    yield f"Answered by no draft: {found['by_no_draft']} (not among the n, since nothing was chosen)."
    yield choice_words(found)
    yield table(
        ["score", "AUC within a question", "AUC pooled", "questions with both", "drafts"],
        (
            [score, number(auc["within"]), number(auc["pooled"]), str(auc["questions"]), str(auc["drafts"])]
            for score, auc in found["auc"].items()
        ),
    )
    yield from _calibration(one["calibration"])


def _calibration(found: Mapping[str, Any]) -> Iterator[str]:
    if not found["bins"]:
        return
    yield f"Confidence beside the truth (expected calibration error {number(found['error'])}):"
    yield table(
        ["confidence", "n", "mean confidence", "share right"],
        (
            [
                f"{one['low']:.1f} to {one['high']:.1f}",
                str(one["n"]),
                number(one["confidence"]),
                number(one["accuracy"]),
            ]
            for one in found["bins"]
        ),
    )


def _failures(pipelines: Mapping[str, Any]) -> Iterator[str]:
    failed = [(name, one) for name, system in pipelines.items() for one in system["failed"]]
    if not failed:
        return
    yield "## Failed"
    shown = [
        f"- {code(name)} {plain(one['question'])}: {plain(one['error'])}"
        for name, one in failed[:MOST_FAILURES]
    ]
    more = len(failed) - len(shown)
    yield "\n".join([*shown, *([f"- and {more} more"] if more else [])])


def _signed(one: Mapping[str, Any] | None) -> str:
    return "" if one is None else f"{one['mean']:+.3f} ({one['low']:+.3f} to {one['high']:+.3f})"
