"""The figures of a run: when the first token and the verdict came, and the Plotly waterfall of all spans.

The waterfall names and colours its lanes as the live timeline does (`lanes.py`); it adds the spans that only
group others. Times are milliseconds since the run began.
"""

from html import escape
from typing import TYPE_CHECKING, Any, Final

from specrag.tracing.trace import Trace
from specrag.types import Span
from specrag.ui import theme
from specrag.ui.lanes import end_of, is_faint, label_of, number_of, ticks
from specrag.ui.markup import tick_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MIN_BAR_SHARE: Final = 0.004
"""Least width of a bar in the waterfall, as a share of the axis: a step of 1 ms can be seen and hovered."""

_MODEL_SPANS: Final = frozenset(
    {"embed", "evidence", "draft", "verify", "note", "query", "answer", "fallback", "synthesise"}
)
"""Spans during which a model computes, the embedder included."""
_LABEL: Final = 80
_FAINT_ALPHA: Final = 0.4


def first_token_ms(trace: Trace) -> float | None:
    """When the first token was there, of any draft or of an answer that a model wrote itself."""
    written = [*(token for draft in trace.drafts for token in draft.tokens), *trace.answer_tokens]
    return min((token.at_ms for token in written if token.at_ms is not None), default=None)


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
            end = end_of(trace, span)
            busy += max(0.0, end - max(span.start_ms, until))
            until = max(until, end)
    return min(1.0, busy / trace.elapsed_ms) if trace.elapsed_ms > 0 and busy > 0 else None


def waterfall(trace: Trace) -> "Figure":
    """Every span of the run as a bar in its lane. The text is escaped: Plotly reads labels as HTML."""
    from plotly.graph_objects import Bar as PlotBar
    from plotly.graph_objects import Figure

    spans = sorted(trace.spans, key=lambda span: (span.start_ms, span.name == "decode"))
    axis = ticks(max([trace.elapsed_ms, *(end_of(trace, span) for span in spans)]))
    least = axis[-1] * MIN_BAR_SHARE
    order = list(dict.fromkeys(_plain(label_of(trace, span)) for span in spans))
    figure = Figure(
        PlotBar(
            orientation="h",
            base=[span.start_ms for span in spans],
            x=[max(end_of(trace, span) - span.start_ms, least) for span in spans],
            y=[_plain(label_of(trace, span)) for span in spans],
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
    number = number_of(trace, span)
    base = theme.STEP if number is None else theme.HUES[(number - 1) % len(theme.HUES)]
    red, green, blue = (int(base[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{_FAINT_ALPHA if is_faint(trace, span) else 1})"


def _hover(trace: Trace, span: Span) -> str:
    end = end_of(trace, span)
    still = ", still open" if span.end_ms is None else ""
    head = f"<b>{_plain(label_of(trace, span))}: {_plain(span.name)}</b>"
    times = f"{end - span.start_ms:,.1f} ms, from {span.start_ms:,.1f} to {end:,.1f} ms{still}"
    return "<br>".join(
        [head, times, *(f"{_plain(key)} = {_plain(str(value))}" for key, value in span.attributes.items())]
    )


def _plain(text: str) -> str:
    short = text if len(text) <= _LABEL else f"{text[:_LABEL]}…"
    return escape(" ".join(short.split()))
