"""The Evaluate tab's own HTML: how far an evaluation is, and which reports are kept."""

from collections.abc import Sequence
from typing import Final

from specrag.evaluation.shelf import Kept
from specrag.evaluation.trials import Trial
from specrag.evaluation.words import left_words
from specrag.ui.markup import render

NOT_HERE: Final = (
    "This page is open to strangers, so it starts no evaluations: they would keep the models busy for "
    "minutes. Use `specrag eval` on the machine, or a page with a login (SPECRAG_ACCESS=login)."
)


def status_line(text: str) -> str:
    """The one line that a screen reader is told of."""
    return render("status", text=text)


def progress(trial: Trial | None, *, mine: bool) -> str:
    """How far it is; nothing once it has ended."""
    if trial is None or trial.ended:
        return ""
    return render("evaluate_progress", trial=trial, mine=mine, said=_said(trial))


def status(trial: Trial | None, *, mine: bool) -> str:
    """What is told when it changes, without numbers that change all the time."""
    if trial is None or not mine:
        return ""
    match trial.stage:
        case "starting" | "running":
            return "The evaluation is under way."
        case "stopping":
            return "The evaluation is being stopped."
        case "done":
            return "The evaluation is done; its report is below."
        case "stopped":
            return (
                "The evaluation was stopped; the report below is of the runs that were finished."
                if trial.report
                else "The evaluation was stopped before a run was finished."
            )
        case "failed":
            return "The evaluation failed."


def shown(file: str) -> str:
    """What is told when the report of a file is on the page."""
    return f"The report of {file[:80]} is shown."


def kept(reports: Sequence[Kept], current: str) -> str:
    """The reports of the shelf, to open; nothing where there is none."""
    return render("evaluate_list", rows=reports, current=current) if reports else ""


def idle() -> str:
    """No report yet."""
    return render(
        "empty",
        title="No report yet",
        text="An evaluation asks questions with known answers of several pipelines and says how sure the "
        "difference is; a benchmark says what they take on this machine. Their reports appear here.",
        hints=(
            "Run a small evaluation above, or in a terminal: specrag eval --data questions.jsonl",
            "For latency: specrag bench --drafter smollm2-135m --verifier smollm2-1.7b",
        ),
    )


def _said(trial: Trial) -> str:
    if trial.stage == "stopping":
        return "stopping"
    if not trial.done and trial.stage == "starting":
        return "preparing"
    failed = f", {trial.failed:,} failed" if trial.failed else ""
    left = left_words(trial.left_s)
    return f"{trial.done:,} of {trial.total:,} runs{failed}{f', about {left}' if left else ''}"
