"""`specrag trace`: the runs that were kept, as a list, as text, as files, and from files."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.table import Table

from specrag.cli.common import Json, friendly, parts, pass_on, print_json
from specrag.errors import TraceError, UsageError
from specrag.library.visitors import OPERATOR
from specrag.terminal import say
from specrag.tracing.codec import to_dict
from specrag.tracing.export.formats import ExportFormat
from specrag.tracing.export.importing import import_file
from specrag.tracing.files import write_file
from specrag.tracing.search import RunFilter, RunSummary
from specrag.tracing.trace import Trace
from specrag.types import Draft

app = typer.Typer(help="List, show, export, import and delete kept runs.", invoke_without_command=True)

RunId = Annotated[str, typer.Argument(metavar="ID", help="Id of the run.")]
_FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)


@app.callback()
def trace(context: typer.Context, as_json: Json = False) -> None:
    """List, show, export, import and delete kept runs."""
    pass_on(context, as_json=as_json)
    if context.invoked_subcommand is None:
        list_runs(as_json=as_json)


@app.command("list")
def list_runs(
    text: Annotated[str, typer.Argument(metavar="[TEXT]", help="Words of the question or the answer.")] = "",
    as_json: Json = False,
    limit: Annotated[int, typer.Option(min=1, help="How many runs at most.")] = 20,
) -> None:
    """The newest runs, or those in which all words of TEXT occur."""
    with friendly(), parts() as made:
        runs, total = made.traces.find(None, RunFilter(text=text), limit=limit)
    if as_json:
        print_json({"schema": "specrag.traces/1", "total": total, "runs": [asdict(run) for run in runs]})
        return
    if not runs:
        typer.echo(f"No run has “{text}”." if text else "No runs yet.")
        return
    _print_list(runs)
    if total > len(runs):
        say(f"{len(runs)} of {total:,} runs; --limit shows more")


@app.command("show")
def show(run_id: RunId, as_json: Json = False) -> None:
    """One run: its drafts, scores and decision."""
    with friendly(), parts() as made:
        found = made.traces.load(run_id)
    if as_json:
        print_json(to_dict(found))
    else:
        _print(found)


@app.command("export")
def export(
    run_id: RunId,
    form: Annotated[str, typer.Option("--format", help=", ".join(_FORMATS) + ".")] = "json",
    without_texts: Annotated[
        bool,
        typer.Option("--without-texts", help="Leave out all that was asked, read and written; keep figures."),
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write; stdout by default.")] = None,
) -> None:
    """Write one run to a file: to import it again, for a trace viewer, or to read in a browser."""
    from specrag.ui.exporting import export_run

    with friendly():
        known = next((one for one in _FORMATS if one == form), None)
        if known is None:
            raise UsageError(f"“{form}” is no format of runs; choose one of {', '.join(_FORMATS)}.")
        with parts() as made:
            found, events = made.traces.load(run_id), made.traces.events(run_id)
        data = export_run(found, events, known, texts=not without_texts)
        if out is None:
            typer.echo(data, nl=False)
        else:
            write_file(data, out)


@app.command("import")
def import_run(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A run that was exported as JSON.")],
    as_json: Json = False,
) -> None:
    """Take a run from a file into the history; it gets another id if its own is taken."""
    with friendly():
        found, events = import_file(path)
        with parts() as made:
            run_id = made.history.add(OPERATOR, found, events)
    if as_json:
        print_json({"schema": "specrag.imported/1", "run_id": run_id, "question": found.question})
    else:
        typer.echo(run_id)


@app.command("delete")
def delete(
    run_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of the runs.")],
    as_json: Json = False,
) -> None:
    """Delete runs for good. Ids that no run has are named, and the exit status is 1."""
    with friendly():
        wanted = list(dict.fromkeys(run_ids))
        deleted: list[str] = []
        with parts() as made:
            deleted = [run_id for run_id in wanted if made.traces.delete([run_id], None)]
        missing = [run_id for run_id in wanted if run_id not in deleted]
        if as_json:
            print_json({"schema": "specrag.deleted/1", "deleted": deleted, "missing": missing})
        if missing:
            names = ", ".join(f"“{run_id[:40]}”" for run_id in missing)
            raise TraceError(f"There is no run {names} here; deleted {len(deleted)} of {len(wanted)}.")
    if not as_json:
        say(f"Deleted {len(deleted)} {'run' if len(deleted) == 1 else 'runs'}.")


def _print_list(runs: list[RunSummary]) -> None:
    table = Table("id", "when", "question", "decision", "seconds")
    for run in runs:
        seconds = f"{run.elapsed_ms / 1000:.1f}"
        table.add_row(run.run_id, run.created_at[:19], run.question[:60], run.decision or run.status, seconds)
    Console().print(table)


def _print(found: Trace) -> None:
    typer.echo(f"{found.question}\n")
    if found.answer is not None:
        typer.echo(f"  {found.answer.text}")
    if found.decision is not None:
        typer.echo(f"  {found.decision.kind}: {found.decision.reason}")
        if found.decision.conflict:
            typer.echo(f"  disputed: {found.decision.conflict}")
    if found.error is not None:
        typer.echo(f"  {found.error.message}")
    table = Table("draft", "answer", "draft score", "self-cont.", "self-refl.", "relevance", "combined")
    for number, draft in enumerate(found.drafts, 1):
        table.add_row(str(number), _answer(draft), *_scores(draft))
    Console().print(table)
    typer.echo(f"{found.elapsed_ms / 1000:.1f} s, {found.created_at}")


def _answer(draft: Draft) -> str:
    return draft.answer or draft.error or "-"


def _scores(draft: Draft) -> list[str]:
    scores = draft.scores
    values = (
        scores.draft,
        scores.self_containment,
        scores.self_reflection,
        scores.relevance,
        scores.combined,
    )
    return ["-" if value is None else f"{value:.3f}" for value in values]
