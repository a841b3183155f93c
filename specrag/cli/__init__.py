"""The command line: thin commands over the same parts as the page.

With `--json` exactly one document goes to stdout; progress and everything else goes to stderr. Exit status 0
is success, 1 an expected failure told in one sentence, 2 wrong usage.
"""

import sys
from collections.abc import Sequence

import typer

from specrag import __version__
from specrag.cli import ask, bench, collections, documents, evaluate, system, traces, vllm

app = typer.Typer(
    name="specrag",
    help="Speculative RAG: draft in parallel, verify in one pass, see every score.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("ask")(ask.ask)
app.command("ingest")(documents.ingest)
app.add_typer(documents.app, name="documents")
app.add_typer(collections.app, name="collections")
app.add_typer(traces.app, name="trace")
app.add_typer(system.weights_app, name="weights")
app.command("bench")(bench.bench)
app.command("eval")(evaluate.evaluate_command)
app.command("doctor")(system.doctor)
app.command("serve")(system.serve)
app.command("vllm")(vllm.vllm)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    """Speculative RAG: draft in parallel, verify in one pass, see every score."""
    if version:
        typer.echo(f"specrag {__version__}")
        raise typer.Exit


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of `specrag` and `python -m specrag`."""
    app(args=spread_docs(list(sys.argv[1:] if argv is None else argv)), prog_name="specrag")


def spread_docs(argv: list[str]) -> list[str]:
    """Let `--docs` and `--documents` take several: `--docs A B` reads as `--docs A --docs B`."""
    spread: list[str] = []
    collecting: str | None = None
    for word in argv:
        if word in ("--docs", "--documents"):
            collecting = word
        elif collecting and not word.startswith("-"):
            spread += [collecting, word]
        else:
            collecting = None
            spread.append(word)
    return spread
