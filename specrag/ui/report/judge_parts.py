"""Who judged the answers, and whether to trust it: a judged figure alone would be taken for a counted one."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specrag.ui.report.parts import Cell, Part, Table, number, signed_cell

_COUNTS: Final = {"asked": "asked", "unread": "unread", "unheard": "not reached"}
_VERDICTS: Final = ("correct", "incorrect", "declined")
_NOTE: Final = (
    "Judged is 1 where the judge finds that an answer says what an accepted one says, or that it declines "
    "where the passages do not answer. Agreement is with a score that counts as right; kappa takes off what "
    "luck alone would give: 1 is full agreement, 0 is luck. It does not say which of the two is right."
)


def judged(found: Mapping[str, Any] | None) -> Iterator[Part]:
    """Nothing if nobody judged."""
    if found is None:
        return
    rows = tuple((Cell(name), *_cells(one)) for name, one in found["pipelines"].items())
    heads = ("pipeline", *_COUNTS.values(), *_VERDICTS, "agreement with score", "kappa")
    yield Part(
        title=f"The judge: {found['model']}",
        words=tuple(_words(found)),
        tables=(Table(caption="Verdicts of the judge", heads=heads, rows=rows),) if rows else (),
        notes=(_NOTE,),
    )


def _words(found: Mapping[str, Any]) -> Iterator[str]:
    one = found["agreement"]
    if one is not None and one["share"] is not None:
        said = f"Over {one['n']:,} answers judge and score agree on {one['share']:.0%}"
        shown = one["kappa"] is not None and one["kappa"]["clear"]
        yield f"{said}." if shown else f"{said}, and no agreement beyond luck is shown."
    if found["problem"]:
        yield f"It ended early: {found['problem']}"


def _cells(one: Mapping[str, Any]) -> Iterator[Cell]:
    counts = one["marks"].get("judged", {})
    yield from (_count(counts.get(name)) for name in _COUNTS)
    yield from (_count(one["verdicts"].get(word)) for word in _VERDICTS)
    agreement = one["agreement"]
    yield Cell("" if agreement is None else number(agreement["share"]))
    yield signed_cell(None if agreement is None else agreement["kappa"])


def _count(value: int | None) -> Cell:
    return Cell("" if value is None else f"{value:,}")
