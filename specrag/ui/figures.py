"""The figures of a run: when the first token and the verdict came, and the Plotly waterfall of all spans.

The waterfall names and colours its rows as the live timeline does its lanes (`lanes.py`); every span has one
of its own, under the span around it. Times are milliseconds since the run began.
"""

from html import escape
from typing import TYPE_CHECKING, Any, Final

from specrag.tracing.trace import Trace
from specrag.ui import theme
from specrag.ui.lanes import end_of, ticks
from specrag.ui.markup import tick_text
from specrag.ui.span_rows import SpanRow, span_rows

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MIN_BAR_SHARE: Final = 0.004
"""Least width of a bar in the waterfall, as a share of the axis: a step of 1 ms can be seen and hovered."""

_MODEL_SPANS: Final = frozenset(
    {"embed", "evidence", "draft", "verify", "note", "query", "answer", "fallback", "synthesise"}
)
"""Spans during which a model computes, the embedder included."""
_ROW: Final = 24
"""Height of a row, in pixels."""
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
    """Every span of the run as a bar in a row of its own. Texts are escaped: Plotly reads them as HTML."""
    from plotly.graph_objects import Bar as PlotBar
    from plotly.graph_objects import Figure

    rows = span_rows(trace)
    axis = ticks(max([trace.elapsed_ms, *(row.end_ms for row in rows)]))
    least = axis[-1] * MIN_BAR_SHARE
    figure = Figure(
        PlotBar(
            orientation="h",
            base=[row.span.start_ms for row in rows],
            x=[max(row.end_ms - row.span.start_ms, least) for row in rows],
            y=list(range(len(rows))),
            marker={
                "color": [_colour(row) for row in rows],
                "cornerradius": 3,
                "line": {"width": 0},
            },
            hovertext=[_hover(row) for row in rows],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    figure.update_layout(_layout(axis, [_plain(row.label) for row in rows]))
    return figure


def _layout(axis: tuple[float, ...], labels: list[str]) -> dict[str, Any]:
    grid = {"gridcolor": "rgba(122,130,139,0.25)", "zeroline": False}
    return {
        "template": "none",
        "bargap": 0.3,
        "height": 70 + _ROW * max(1, len(labels)),
        "margin": {"l": 8, "r": 16, "t": 8, "b": 40},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": theme.PLOT_TEXT, "size": 13, "family": "ui-sans-serif, system-ui, sans-serif"},
        "showlegend": False,
        "hoverlabel": {"align": "left"},
        "dragmode": "pan",
        "xaxis": {
            **grid,
            "range": [0, axis[-1] * 1.01],
            "tickvals": axis,
            "ticktext": [tick_text(tick, axis[-1]) for tick in axis],
            "fixedrange": False,
        },
        "yaxis": {
            **grid,
            "tickvals": list(range(len(labels))),
            "ticktext": labels,
            "range": [len(labels) - 0.5, -0.5],
            "automargin": True,
            "fixedrange": True,
            "showgrid": False,
            "ticksuffix": "  ",
        },
    }


def _colour(row: SpanRow) -> str:
    base = theme.STEP if row.number is None else theme.HUES[(row.number - 1) % len(theme.HUES)]
    red, green, blue = (int(base[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{_FAINT_ALPHA if row.faint else 1})"


def _hover(row: SpanRow) -> str:
    span = row.span
    still = ", still open" if span.end_ms is None else ""
    head = f"<b>{_plain(row.label)}</b>"
    times = f"{row.end_ms - span.start_ms:,.1f} ms, from {span.start_ms:,.1f} to {row.end_ms:,.1f} ms{still}"
    return "<br>".join(
        [head, times, *(f"{_plain(key)} = {_plain(str(value))}" for key, value in span.attributes.items())]
    )


def _plain(text: str) -> str:
    short = text if len(text) <= _LABEL else f"{text[:_LABEL]}…"
    return escape(" ".join(short.split()))
