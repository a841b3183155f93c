"""What the Compare tab says in sentences: order and fairness, agreement, and where a comparison stands."""

from collections.abc import Sequence

from specrag.fairness import COLUMNS
from specrag.prices import MachinePrice, Prices
from specrag.race import Race
from specrag.types import PipelineName
from specrag.ui.compare_numbers import Measured
from specrag.ui.markup import UNKNOWN, time_text
from specrag.ui.options import PIPELINES
from specrag.ui.sentences import counted


def name_of(pipeline: PipelineName) -> str:
    """What a pipeline is called on the page."""
    return PIPELINES[pipeline]


def joined(names: Sequence[str], last: str = "and") -> str:
    """Names as a person lists them: "A, B and C"."""
    return f"{', '.join(names[:-1])} {last} {names[-1]}" if len(names) > 1 else "".join(names)


def status(race: Race) -> str:
    """Where the comparison stands, in one sentence without a running clock."""
    made = race.comparison
    match made.status:
        case "failed":
            return f"Failed: {made.error}"
        case "cancelled":
            return f"Stopped: {made.error}"
        case "done":
            return f"Done: {counted(len(made.pipelines), 'pipeline')} compared on the same passages."
        case "running":
            return _progress(race)


def _progress(race: Race) -> str:
    made = race.comparison
    match race.stage:
        case "waiting":
            return "Others use the models; this one begins when it is its turn."
        case "warming":
            return "Warming the models up; this is not measured."
        case "finding":
            return "Looking for the passages that all pipelines will read."
        case "running" | "ended":
            names = [name_of(made.pipelines[column]) for column in made.order]
            at = max(0, made.begun - 1)
            return f"Running {at + 1} of {len(names)}: {names[at]}."


def fairness(race: Race) -> tuple[str, ...]:
    """How the runs were made comparable, a sentence each."""
    made = race.comparison
    names = [name_of(made.pipelines[column]) for column in made.order]
    sentences = [
        f"Run in the order {joined(names)}, one after the other, since {made.order_note}.",
        "The order rotates from one comparison to the next; warming the models up before is not measured.",
    ]
    if made.retrieve_ms is not None:
        found, took = counted(made.passages, "passage"), time_text(made.retrieve_ms)
        sentences.append(f"Finding the {found} took {took}, once, and is part of every time here.")
    if "multihop" in made.pipelines:
        sentences.append("Multi-hop RAG takes these passages as its first hop and may find more.")
    if made.others:
        sentences.append(
            f"Up to {counted(made.others, 'other run')} used the models meanwhile, so these times are longer "
            "than on a quiet machine."
        )
    return tuple(sentences)


def agreement(rows: Sequence[Measured | None]) -> str:
    """Who gives the same answer as whom; empty with fewer than two answers."""
    given = [row for row in rows if row is not None]
    if len(given) < len(COLUMNS[:2]):
        return ""
    groups: dict[str, list[str]] = {}
    for row in given:
        groups.setdefault(row.side, []).append(name_of(row.pipeline))
    if len(groups) == 1:
        return f"{'Both' if len(given) == 2 else f'All {len(given)}'} give the same answer."  # noqa: PLR2004 - both
    if len(groups) == len(given):
        return "Every pipeline gives another answer."
    same = "; ".join(f"{joined(names)} give the same answer" for names in groups.values() if len(names) > 1)
    alone = [names[0] for names in groups.values() if len(names) == 1]
    return f"{same}; {joined(alone)} {'differs' if len(alone) == 1 else 'differ'}." if alone else f"{same}."


def price_note(prices: Prices | None, *, example: bool) -> str:
    """What the cost stands on; never presented as a fact."""
    if prices is None:
        return ""
    basis = (
        "the time that a question takes, from finding its passages to the end"
        if isinstance(prices, MachinePrice)
        else "the tokens that each model read and wrote"
    )
    whose = (
        "example prices, which are an assumption; put in yours" if example else "the prices that you typed"
    )
    return f"Cost for 1,000 such questions, from {basis}, under {whose}."


def ratio_text(ratio: float | None) -> str:
    """A multiple of standard RAG's time in words that cannot be read the wrong way round."""
    if ratio is None:
        return UNKNOWN
    if f"{ratio:.2f}" == "1.00":
        return "as long"
    return f"{ratio:.2f} times as long" if ratio > 1 else f"{1 / ratio:.2f} times as fast"


def absent(race: Race, column: int) -> str:
    """Why there is no run in a column."""
    made = race.comparison
    if made.status == "running":
        turn = made.order.index(column) + 1
        return "Begins next" if turn == made.begun + 1 else f"Runs as number {turn}"
    return "Its run was deleted" if made.has_begun(column) else "Not run"
