"""`specrag trace`: the runs that were kept."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from specrag.cli.common import Json, friendly, parts, pass_on, print_json
from specrag.errors import UsageError
from specrag.tracing.codec import to_dict, to_json
from specrag.tracing.trace import Trace
from specrag.types import Draft

app = typer.Typer(help="List, show and export kept runs.", invoke_without_command=True)

RunId = Annotated[str, typer.Argument(metavar="ID", help="Id of the run.")]


@app.callback()
def trace(context: typer.Context, as_json: Json = False) -> None:
    """List, show and export kept runs."""
    pass_on(context, as_json=as_json)
    if context.invoked_subcommand is None:
        list_runs(as_json=as_json)


@app.command("list")
def list_runs(as_json: Json = False, limit: int = 20) -> None:
    """The newest runs."""
    with friendly(), parts() as made:
        runs = made.traces.recent(limit)
    if as_json:
        print_json({"schema": "specrag.traces/1", "runs": [asdict(run) for run in runs]})
        return
    table = Table("id", "when", "question", "decision", "seconds")
    for run in runs:
        seconds = f"{run.elapsed_ms / 1000:.1f}"
        table.add_row(run.run_id, run.created_at[:19], run.question[:60], run.decision or run.status, seconds)
    Console().print(table if runs else "No runs yet.")


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
    form: Annotated[str, typer.Option("--format", help="json.")] = "json",
    out: Annotated[Path | None, typer.Option(help="File to write; stdout by default.")] = None,
) -> None:
    """Write one run to a file."""
    with friendly():
        if form != "json":
            raise UsageError(f"Traces cannot be exported as “{form}” yet; use --format json.")
        with parts() as made:
            text = to_json(made.traces.load(run_id), indent=2)
        if out is None:
            typer.echo(text)
        else:
            out.write_text(text + "\n", encoding="utf-8")


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
