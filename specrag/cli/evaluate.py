"""`specrag eval`: pipelines side by side on files of questions, and a report that says what is shown."""

import asyncio
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from specrag.cli.common import check_places, friendly, put_out
from specrag.cli.judge import panel_of
from specrag.cli.reports import keep_report
from specrag.config import Settings, load_settings
from specrag.errors import UsageError
from specrag.evaluation.converters import Format
from specrag.evaluation.corpus import CorpusName
from specrag.evaluation.datasets import read_questions
from specrag.evaluation.evaluate import EvaluationParts, evaluate
from specrag.evaluation.folder import CORPUS
from specrag.evaluation.form_parts import MOST, MOST_FILES, MOST_SYSTEMS
from specrag.evaluation.judge.panel import Panel
from specrag.evaluation.markdown import markdown
from specrag.evaluation.plan import Plan
from specrag.evaluation.problems import EvaluationError
from specrag.evaluation.questions import Dataset
from specrag.evaluation.runner import Progress
from specrag.evaluation.systems import System, ablations, system_of, systems_of
from specrag.evaluation.words import left_words
from specrag.terminal import bar, say


def evaluate_command(  # noqa: PLR0917 - typer passes every one by name
    data: Annotated[
        list[Path], typer.Option("--data", help="A file of questions, one JSON object a line; repeatable.")
    ],
    pipelines: Annotated[
        str,
        typer.Option(
            help="What is compared, with commas; a pipeline may have settings: speculative:drafts=2."
        ),
    ] = "standard,speculative",
    limit: Annotated[int | None, typer.Option(min=1, help="Questions of each file; else all.")] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=int(MOST), help="Of the sample, the orders and the intervals.")
    ] = 0,
    corpus: Annotated[
        CorpusName, typer.Option(help="Look among a question's own passages, or in those of all.")
    ] = "given",
    form: Annotated[
        Format | None, typer.Option("--format", help="Form of the files; else it is recognised.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder that keeps every run; the same command goes on there.")
    ] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Remove the runs in --out first.")] = False,
    with_ablations: Annotated[
        bool, typer.Option("--ablations", help="Add the paper's ablations of the speculative pipeline.")
    ] = False,
    judge: Annotated[
        str | None,
        typer.Option(help="Address of an OpenAI-compatible server whose model judges the answers."),
    ] = None,
    judge_model: Annotated[
        str | None, typer.Option(help="Name of that model; its key comes from SPECRAG_JUDGE_KEY.")
    ] = None,
    with_ragas: Annotated[
        bool, typer.Option("--ragas", help="Also RAGAS' faithfulness, asked of the judge.")
    ] = False,
    json_out: Annotated[
        Path | None, typer.Option("--json", help="File for the report as JSON; - prints it instead.")
    ] = None,
    markdown_out: Annotated[
        Path | None, typer.Option("--markdown", help="File for the tables, beside printing them.")
    ] = None,
    html_out: Annotated[
        Path | None,
        typer.Option("--html", help="File for one page with figures and tables, to open anywhere."),
    ] = None,
) -> None:
    """Compare pipelines on questions with known answers."""
    with friendly():
        settings = load_settings(judge_url=judge, judge=judge_model)
        panel = panel_of(settings, ragas=with_ragas)
        check_places(json_out, markdown_out, html_out)
        datasets = _datasets(data, form)
        systems = _few(systems_of(pipelines))
        for system in systems:
            system.under(settings)
        with _folder(out) as folder, _parts(settings, folder, corpus) as parts:
            if with_ablations:
                systems = _few(_with_ablations(systems, padded=parts.can_pad))
            plan = Plan(
                datasets=datasets, systems=systems, settings=settings, seed=seed, limit=limit, corpus=corpus
            )
            report = _report(parts, plan, folder, kept=out is not None, restart=restart, panel=panel)
        if _any_ran(report):
            keep_report(settings, report)
        put_out(report, markdown(report), json_out, markdown_out, html_out)
        _check_any(report)
        _check_judge(report, kept=out is not None)


def _datasets(data: Sequence[Path], form: Format | None) -> tuple[Dataset, ...]:
    if len(data) > MOST_FILES:
        raise UsageError(f"{len(data)} files of questions are named; a report holds {MOST_FILES} at most.")
    made = tuple(read_questions(path, form) for path in data)
    names = [one.name for one in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"Two files of questions are called “{twice}”; rename one of them.")
    for one in made:
        if one.left_out:
            say(f"{one.name}: {one.left_out} questions without passages are left out.")
    return made


def _few(systems: tuple[System, ...]) -> tuple[System, ...]:
    if len(systems) > MOST_SYSTEMS:
        raise UsageError(f"{len(systems)} pipelines are named; a report holds {MOST_SYSTEMS} at most.")
    return systems


def _with_ablations(systems: Sequence[System], *, padded: bool) -> tuple[System, ...]:
    """The plain speculative run is what the ablations are forked from and compared with."""
    plain = () if any(one.name == "speculative" for one in systems) else (system_of("speculative"),)
    added = [one for one in ablations(padded=padded) if one.name not in {other.name for other in systems}]
    return (*plain, *systems, *added)


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="specrag-eval-") as made:
        yield Path(made)


@contextmanager
def _parts(settings: Settings, folder: Path, corpus: CorpusName) -> Iterator[EvaluationParts]:
    with bar() as tell:
        place = folder / CORPUS if corpus == "open" else None
        made = EvaluationParts(settings, place=place, progress=tell)
        try:
            yield made
        finally:
            made.close()


def _report(
    parts: EvaluationParts,
    plan: Plan,
    folder: Path,
    *,
    kept: bool,
    restart: bool,
    panel: Panel | None,
) -> dict[str, Any]:
    teller = _Teller(folder if kept else None)
    if panel is not None:
        panel.heard = teller.judged
    try:
        return asyncio.run(
            evaluate(
                parts,
                plan,
                folder,
                command=("python", "-m", "specrag", *sys.argv[1:]),
                restart=restart,
                panel=panel,
                tell=teller.ran,
                indexed=teller.indexed,
            )
        )
    except KeyboardInterrupt:
        say(teller.farewell)
        raise


class _Teller:
    """Says on stderr how far it is and how long the rest will take."""

    def __init__(self, kept: Path | None) -> None:
        self._kept = kept
        self._last: Progress | None = None

    def ran(self, state: Progress) -> None:
        """A run is finished, or the first one is about to begin."""
        first, self._last = self._last is None, state
        if not first:
            said = "".join(sign if sign.isprintable() else "?" for sign in state.text)
            say(f"[{state.done}/{state.total}] {said}{_left(state.left_s)}")
        elif state.done:
            say(f"Going on: {state.done} of {state.total} runs are finished and not repeated.")
        else:
            say(f"{state.total} runs.")

    def indexed(self, done: int, total: int) -> None:
        """So many passages of the open corpus are in."""
        say(f"indexed {done} of {total} passages")

    def judged(self, done: int, total: int, left_s: float | None) -> None:
        """So many runs are judged."""
        say(f"judged {done} of {total}{_left(left_s)}")

    @property
    def farewell(self) -> str:
        """What becomes of an evaluation that is stopped."""
        done = self._last.done if self._last else 0
        total = self._last.total if self._last else 0
        if self._kept is None:
            return "Nothing is kept; give a folder with --out, and the same command goes on there."
        return f"{done} of {total} runs are finished and kept in {self._kept}; the same command goes on."


def _left(seconds: float | None) -> str:
    left = left_words(seconds)
    return f"; {left}" if left else ""


def _any_ran(report: dict[str, Any]) -> bool:
    return any(len(one["failed"]) < one["n"] for one in report["pipelines"].values())


def _check_any(report: dict[str, Any]) -> None:
    """Where nothing at all could be run, the report is no result."""
    if not _any_ran(report):
        first = next(fault["error"] for one in report["pipelines"].values() for fault in one["failed"])
        raise EvaluationError(f"All runs failed, so nothing is shown. The first: {first}")


def _check_judge(report: dict[str, Any], *, kept: bool) -> None:
    """The report is out by now; that a part of it is missing must not go unnoticed by a script."""
    problem = report.get("judge", {}).get("problem")
    if problem:
        again = "the same command goes on" if kept else "with --out the same command would go on"
        raise EvaluationError(f"Not everything was judged, and {again}. {problem}")
