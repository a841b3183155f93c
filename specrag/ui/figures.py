"""Where the time of a run went: the lanes of the live timeline, and the Plotly waterfall of a finished run.

A lane is one row: all bars of one step, or one draft with its reading and its writing apart. The live
timeline (`cards.timeline`) and the waterfall name and colour them alike; the waterfall adds the spans that
only group others. Times are milliseconds since the run began; an open bar ends at the last event.
"""

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from specrag.tracing.trace import Trace
from specrag.types import Draft, Span
from specrag.ui import theme
from specrag.ui.markup import tick_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

BarKind: TypeAlias = Literal["step", "read", "decode"]

MIN_BAR_SHARE: Final = 0.004
"""Least width of a bar in the waterfall, as a share of the axis: a step of 1 ms can be seen and hovered."""

_MODEL_SPANS: Final = frozenset({"embed", "evidence", "draft", "verify", "fallback", "synthesise"})
"""Spans during which a model computes, the embedder included."""
_DETAILS: Final = frozenset({"embed", "search", "evidence"})
"""Parts of a step; the waterfall shows them, the timeline shows the step."""
_TICKS: Final = 6
_LABEL: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A stretch of a lane."""

    kind: BarKind
    start_ms: float
    end_ms: float
    open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One row of a timeline."""

    label: str
    draft: int | None
    """Number of the draft from 1, which gives the hue; None for the other steps."""
    bars: tuple[Bar, ...]


def draft_numbers(trace: Trace) -> dict[str, int]:
    """Number of each draft by its subset; drafts without a subset of their own come last."""
    known = [*(subset.id for subset in trace.subsets), *(draft.subset_id for draft in trace.drafts)]
    return {subset_id: number for number, subset_id in enumerate(dict.fromkeys(known), 1)}


def lanes(trace: Trace) -> tuple[Lane, ...]:
    """The rows in the order in which their steps began; drafts stand in the order of their subsets."""
    rows: dict[str, list[Bar]] = {}
    numbers: dict[str, int | None] = {}
    for span in sorted(_steps(trace), key=lambda span: (span.start_ms, _draft_number(trace, span) or 0)):
        label = _label(trace, span)
        rows.setdefault(label, []).extend(_bars(trace, span))
        numbers[label] = _draft_number(trace, span)
    return tuple(Lane(label=label, draft=numbers[label], bars=tuple(bars)) for label, bars in rows.items())


def ticks(end_ms: float) -> tuple[float, ...]:
    """Round times from 0 to the first one at or after `end_ms`, at most seven of them."""
    least = max(end_ms, 1.0) / _TICKS
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)
    return tuple(step * index for index in range(math.ceil(max(end_ms, 1.0) / step) + 1))


def first_token_ms(trace: Trace) -> float | None:
    """When the first token of any draft was there."""
    return min(
        (token.at_ms for draft in trace.drafts for token in draft.tokens if token.at_ms is not None),
        default=None,
    )


def verdict_ms(trace: Trace) -> float | None:
    """When the verifier had read the drafts."""
    return max(
        (span.end_ms for span in trace.spans if span.name == "verify" and span.end_ms is not None),
        default=None,
    )


def models_share(trace: Trace) -> float | None:
    """Share of the run during which at least one model worked; overlapping spans count once."""
    busy, until = 0.0, 0.0
    for span in sorted(trace.spans, key=lambda span: span.start_ms):
        if span.name in _MODEL_SPANS:
            end = _end(trace, span)
            busy += max(0.0, end - max(span.start_ms, until))
            until = max(until, end)
    return min(1.0, busy / trace.elapsed_ms) if trace.elapsed_ms > 0 and busy > 0 else None


def waterfall(trace: Trace) -> "Figure":
    """Every span of the run as a bar in its lane. The text is escaped: Plotly reads labels as HTML."""
    from plotly.graph_objects import Bar as PlotBar
    from plotly.graph_objects import Figure

    spans = sorted(trace.spans, key=lambda span: (span.start_ms, span.name == "decode"))
    axis = ticks(max([trace.elapsed_ms, *(_end(trace, span) for span in spans)]))
    least = axis[-1] * MIN_BAR_SHARE
    order = list(dict.fromkeys(_plain(_label(trace, span)) for span in spans))
    figure = Figure(
        PlotBar(
            orientation="h",
            base=[span.start_ms for span in spans],
            x=[max(_end(trace, span) - span.start_ms, least) for span in spans],
            y=[_plain(_label(trace, span)) for span in spans],
            marker={
                "color": [_colour(trace, span) for span in spans],
                "cornerradius": 4,
                "line": {"width": 0},
            },
            hovertext=[_hover(trace, span) for span in spans],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    figure.update_layout(_layout(axis, order))
    return figure


def _layout(axis: tuple[float, ...], order: list[str]) -> dict[str, Any]:
    grid = {"gridcolor": "rgba(122,130,139,0.25)", "zeroline": False, "fixedrange": False}
    return {
        "barmode": "overlay",
        "bargap": 0.35,
        "height": 90 + 30 * max(1, len(order)),
        "margin": {"l": 8, "r": 16, "t": 8, "b": 40},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": theme.PLOT_TEXT, "size": 13, "family": "ui-sans-serif, system-ui, sans-serif"},
        "showlegend": False,
        "hoverlabel": {"align": "left"},
        "xaxis": {
            **grid,
            "range": [0, axis[-1] * 1.01],
            "tickvals": axis,
            "ticktext": [tick_text(tick, axis[-1]) for tick in axis],
        },
        "yaxis": {
            "categoryorder": "array",
            "categoryarray": order,
            "autorange": "reversed",
            "automargin": True,
            "fixedrange": True,
            "ticksuffix": "  ",
        },
    }


def _colour(trace: Trace, span: Span) -> str:
    number = _draft_number(trace, span)
    base = theme.STEP if number is None else theme.HUES[(number - 1) % len(theme.HUES)]
    red, green, blue = (int(base[at : at + 2], 16) for at in (1, 3, 5))
    faint = span.name == "draft" and _decoding(trace, span) is not None
    return f"rgba({red},{green},{blue},{0.4 if faint else 1})"


def _hover(trace: Trace, span: Span) -> str:
    end = _end(trace, span)
    still = ", still open" if span.end_ms is None else ""
    head = f"<b>{_plain(_label(trace, span))}: {_plain(span.name)}</b>"
    times = f"{end - span.start_ms:,.1f} ms, from {span.start_ms:,.1f} to {end:,.1f} ms{still}"
    return "<br>".join(
        [head, times, *(f"{_plain(key)} = {_plain(str(value))}" for key, value in span.attributes.items())]
    )


def _plain(text: str) -> str:
    short = text if len(text) <= _LABEL else f"{text[:_LABEL]}…"
    return escape(" ".join(short.split()))


def _steps(trace: Trace) -> list[Span]:
    """Spans with a lane of their own: not the whole run, the group of all drafts, or parts of a step."""
    groups = {span.parent_id for span in trace.spans if span.name == "draft"}
    groups |= {span.id for span in trace.spans if span.name == "run"}
    groups |= {span.id for span in trace.spans if span.name in _DETAILS}
    return [span for span in trace.spans if _owner(trace, span) is span and span.id not in groups]


def _owner(trace: Trace, span: Span) -> Span:
    """The draft to which a span belongs, or the span itself."""
    parent = next((other for other in trace.spans if other.id == span.parent_id), None)
    return parent if parent and "subset_id" in parent.attributes else span


def _draft_number(trace: Trace, span: Span) -> int | None:
    subset_id = _owner(trace, span).attributes.get("subset_id")
    return None if subset_id is None else draft_numbers(trace).get(str(subset_id))


def _label(trace: Trace, span: Span) -> str:
    number = _draft_number(trace, span)
    if number is not None:
        return f"draft {number}"
    group = span.name == "draft" and "subset_id" not in span.attributes
    return "all drafts" if group else span.name


def _bars(trace: Trace, span: Span) -> tuple[Bar, ...]:
    end, still = _end(trace, span), span.end_ms is None
    if span.name != "draft":
        return (Bar(kind="step", start_ms=span.start_ms, end_ms=end, open=still),)
    turn = _decoding(trace, span)
    if turn is None:
        return (Bar(kind="read" if still else "decode", start_ms=span.start_ms, end_ms=end, open=still),)
    return (
        Bar(kind="read", start_ms=span.start_ms, end_ms=turn),
        Bar(kind="decode", start_ms=turn, end_ms=max(end, turn), open=still),
    )


def _decoding(trace: Trace, span: Span) -> float | None:
    """When a draft stopped reading: its child span says so, or else its first token."""
    child = next(
        (other for other in trace.spans if other.parent_id == span.id and other.name == "decode"), None
    )
    if child is not None:
        return child.start_ms
    drafts = [draft for draft in trace.drafts if draft.subset_id == span.attributes.get("subset_id")]
    return min((at for draft in drafts if (at := _first_at(draft)) is not None), default=None)


def _first_at(draft: Draft) -> float | None:
    return next((token.at_ms for token in draft.tokens if token.at_ms is not None), None)


def _end(trace: Trace, span: Span) -> float:
    return max(span.start_ms, trace.elapsed_ms if span.end_ms is None else span.end_ms)
