"""`specrag bench`: standard against speculative RAG on equal hardware, by the shapes of the models alone."""

from pathlib import Path
from typing import Annotated, Any

import typer

from specrag.cli.common import check_places, friendly, put_out
from specrag.cli.reports import keep_report
from specrag.config import Settings, load_settings
from specrag.errors import UsageError
from specrag.evaluation.form_parts import MOST_SIZES
from specrag.prices import EXAMPLE, EXAMPLE_MACHINE, Prices, prices_from
from specrag.terminal import say
from specrag.types import Precision

_FEWEST, _MOST = 1, 1000


def bench(  # noqa: PLR0917 - typer passes every one by name
    drafter: Annotated[
        str | None, typer.Option(help="Shape that drafts, such as smollm2-135m or llama:hidden=512,layers=8.")
    ] = None,
    verifier: Annotated[str | None, typer.Option(help="Shape that verifies, and answers alone.")] = None,
    server_drafter: Annotated[
        str | None, typer.Option(help="Measure a served drafter instead: the address of its server.")
    ] = None,
    server_verifier: Annotated[
        str | None, typer.Option(help="Measure a served verifier instead: the address of its server.")
    ] = None,
    passages: Annotated[int, typer.Option(help="K: passages that are read.")] = 10,
    passage_tokens: Annotated[int, typer.Option(help="Tokens of a passage.")] = 100,
    drafts: Annotated[int, typer.Option(help="m: drafts, written at once.")] = 5,
    per_draft: Annotated[int, typer.Option(help="k: passages that a draft reads.")] = 2,
    tokens: Annotated[int, typer.Option(help="L: tokens that are written, by either way.")] = 64,
    rationale: Annotated[
        int | None, typer.Option(help="Of a draft's tokens, those of its rationale; else half of them.")
    ] = None,
    repeats: Annotated[
        int, typer.Option(help="Repetitions of both ways, in turn.", min=_FEWEST, max=_MOST)
    ] = 5,
    warmups: Annotated[int, typer.Option(help="Repetitions before them, not counted.", min=0, max=_MOST)] = 1,
    sweep: Annotated[
        str | None,
        typer.Option(help="Also verifiers of these multiples of the drafter's size, such as 1,2,4,8,16."),
    ] = None,
    precision: Annotated[Precision | None, typer.Option(help="Layout of the weights.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads that compute.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of texts and weights.", min=0)] = 0,
    million: Annotated[
        str | None,
        typer.Option(help="Dollars for a million tokens: drafter read, written, verifier read, written."),
    ] = None,
    hour: Annotated[str | None, typer.Option(help="Dollars for an hour of the machine.")] = None,
    as_json: Annotated[
        Path | None, typer.Option("--json", help="File for the JSON document; - prints it.")
    ] = None,
    as_markdown: Annotated[Path | None, typer.Option("--markdown", help="File for the tables.")] = None,
    as_html: Annotated[
        Path | None,
        typer.Option("--html", help="File for one page with figures and tables, to open anywhere."),
    ] = None,
) -> None:
    """Time standard and speculative RAG on this machine, with random weights in the shapes of real models."""
    from specrag.evaluation.latency.interleave import Plan
    from specrag.evaluation.latency.markdown import markdown
    from specrag.evaluation.latency.texts import Lengths

    with friendly():
        check_places(as_json, as_markdown, as_html)
        served = server_drafter is not None or server_verifier is not None
        if served:
            _insist_on_none(
                drafter=drafter, verifier=verifier, sweep=sweep, precision=precision, threads=threads
            )
        settings = load_settings(
            drafter_url=server_drafter,
            verifier_url=server_verifier,
            precision=precision,
            threads=threads,
            seed=seed,
        )
        plan = Plan(
            lengths=Lengths(
                passages=passages,
                passage_tokens=passage_tokens,
                drafts=drafts,
                per_draft=per_draft,
                tokens=tokens,
                rationale=tokens // 2 if rationale is None else rationale,
            ),
            repeats=repeats,
            warmups=warmups,
            seed=seed,
        )
        prices = _prices(million, hour)
        if served:
            found = _served(settings, plan, prices)
        else:
            found = _here(settings, plan, prices, drafter=drafter, verifier=verifier, sizes=sweep)
        keep_report(settings, found)
        put_out(found, markdown(found), as_json, as_markdown, as_html)


def _insist_on_none(**given: object) -> None:
    """Behind servers these have no meaning, and who typed them believes that they are what was measured."""
    typed = [f"--{name}" for name, value in given.items() if value is not None]
    if typed:
        raise UsageError(
            f"{' and '.join(typed)} cannot be given together with servers, which have models and settings "
            "of their own; leave out one or the other."
        )


def _prices(million: str | None, hour: str | None) -> tuple[Prices, ...]:
    """What was typed, else the examples."""
    by_tokens: Prices | None = EXAMPLE
    if million is not None:
        typed = tuple(part.strip() for part in million.split(","))
        if len(typed) != 4:  # noqa: PLR2004 - read and written, by each of two models
            raise UsageError(
                f"“{million[:40]}” is not four prices; give drafter read, drafter written, verifier read and "
                "verifier written, such as 0.1,0.1,1,1."
            )
        by_tokens = prices_from("tokens", typed, None)
    by_hour = EXAMPLE_MACHINE if hour is None else prices_from("machine", (), hour)
    return tuple(one for one in (by_tokens, by_hour) if one is not None)


def _here(
    settings: Settings,
    plan: Any,
    prices: tuple[Prices, ...],
    *,
    drafter: str | None,
    verifier: str | None,
    sizes: str | None,
) -> dict[str, Any]:
    """Shapes in this process."""
    from specrag.evaluation.latency.bench import Bench
    from specrag.evaluation.latency.document import document
    from specrag.evaluation.latency.shapes import shape_of
    from specrag.evaluation.latency.sweep import larger, sweep

    if drafter is None or verifier is None:
        raise UsageError("Give two shapes, such as --drafter smollm2-135m --verifier smollm2-1.7b.")
    small, large = shape_of(drafter), shape_of(verifier)
    verifiers = None if sizes is None else larger(small, _multiples(sizes))
    bench_ = Bench(settings, tell=say)
    try:
        result = bench_.run(small, large, plan)
        curve = sweep(bench_, small, verifiers, plan, settings=settings, tell=say) if verifiers else None
    finally:
        bench_.close()
    return document(result, prices=prices, curve=curve, threads=settings.threads)


def _multiples(sizes: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in sizes.split(",") if part.strip())
    except ValueError:
        found = ()
    if not found:
        raise UsageError(f"--sweep “{sizes[:40]}” is not numbers such as 1,2,4,8.")
    if len(found) > MOST_SIZES:
        raise UsageError(f"--sweep names {len(found)} sizes; a report holds {MOST_SIZES} at most.")
    return found


def _served(settings: Settings, plan: Any, prices: tuple[Prices, ...]) -> dict[str, Any]:
    """Models behind servers."""
    from specrag.evaluation.latency.bench import over_servers
    from specrag.evaluation.latency.document import document

    return document(over_servers(settings, plan, tell=say), prices=prices)
