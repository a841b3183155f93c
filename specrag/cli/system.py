"""`specrag weights`, `doctor` and `serve`: the machine around the program."""

from typing import Annotated

import typer

from specrag.cli.common import FAILURE, Json, friendly, print_json
from specrag.config import load_settings
from specrag.doctor import diagnose
from specrag.models.weights import Weights
from specrag.terminal import bar

weights_app = typer.Typer(help="The embedded weights.", no_args_is_help=True)


@weights_app.callback()
def weights() -> None:
    """The embedded weights."""


@weights_app.command("pull")
def pull(as_json: Json = False) -> None:
    """Fetch, check and convert the models of the settings; does nothing for those that are ready."""
    with friendly():
        settings = load_settings()
        names = dict.fromkeys((settings.embedder, *settings.models_here))
        with bar() as progress:
            made = Weights(home=settings.home, progress=progress)
            folders = {name: str(made.ensure(name)) for name in names}
    if as_json:
        print_json({"schema": "specrag.weights/1", "models": folders})
    else:
        for name, folder in folders.items():
            typer.echo(f"{name}: ready in {folder}")


@weights_app.command("path")
def path(name: Annotated[str, typer.Argument(help="Name of the model.")]) -> None:
    """The folder of one model, fetched first if need be."""
    with friendly(), bar() as progress:
        typer.echo(Weights(home=load_settings().home, progress=progress).ensure(name))


def doctor(
    measure: Annotated[bool, typer.Option(help="Also measure GFLOP/s and GB/s (some seconds).")] = False,
    as_json: Json = False,
) -> None:
    """Check this machine, and say what to do where something is wrong."""
    with friendly():
        report = diagnose(load_settings(), measure=measure)
    if as_json:
        print_json(report.to_dict())
    else:
        for check in report.checks:
            typer.echo(f"{'ok  ' if check.ok else 'FAIL'} {check.name}: {check.detail}")
            if not check.ok and check.remedy:
                typer.echo(f"     {check.remedy}")
    if not report.ok:
        raise typer.Exit(FAILURE)


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
) -> None:
    """Serve the page."""
    from specrag.ui.app import serve as serve_page

    with friendly():
        serve_page(load_settings(host=host, port=port))
