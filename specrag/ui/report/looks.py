"""How the figures of a report look: dots with their intervals, in a neutral colour that either ground bears.

Hues belong to drafts on this page and gold to the winner, so rows are told apart by names and series by
symbols. What comes from a report is escaped: Plotly reads texts as HTML.
"""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from specrag.ui import theme
from specrag.ui.report.parts import Estimate

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter

SYMBOLS: Final = ("circle", "square", "diamond", "cross", "x", "triangle-up", "star", "hexagon")
_LABEL: Final = 26
"""Characters of a name beside an axis, so that a phone has room for the figure."""
_HOVER: Final = 120
_ROW: Final = 34
_LEGEND: Final = {
    "orientation": "h",
    "traceorder": "normal",
    "x": 0,
    "y": 1.02,
    "yanchor": "bottom",
}
LINE: Final = 19
"""Height of a name in a legend: on a phone each has a line of its own, and the rows need their room."""
GRID: Final = "rgba(122,130,139,0.25)"


def plain(text: str, most: int = _LABEL) -> str:
    """A name of a report as Plotly may show it."""
    one_line = " ".join(text.split())
    return escape(one_line if len(one_line) <= most else f"{one_line[: most - 1]}…")


def layout(**changes: Any) -> dict[str, Any]:
    """What all figures have in common."""
    return {
        "template": "none",
        "margin": {"l": 8, "r": 16, "t": 8, "b": 48},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": theme.PLOT_TEXT, "size": 13, "family": "ui-sans-serif, system-ui, sans-serif"},
        "showlegend": False,
        "legend": _LEGEND,
        "hoverlabel": {"align": "left"},
        "dragmode": False,
        **changes,
    }


def axis(title: str, **changes: Any) -> dict[str, Any]:
    """A number axis."""
    return {
        "title": {"text": title, "standoff": 8, "font": {"size": 13}},
        "gridcolor": GRID,
        "zeroline": False,
        "fixedrange": True,
        "automargin": True,
        **changes,
    }


def names_axis(names: Sequence[str]) -> dict[str, Any]:
    """The rows, the first at the top. Places are numbers, since two long names may look the same."""
    return {
        "tickvals": list(range(len(names))),
        "ticktext": [plain(name) for name in names],
        "range": [len(names) - 0.4, -0.6],
        "automargin": True,
        "fixedrange": True,
        "zeroline": False,
        "gridcolor": GRID,
        "ticks": "outside",
        "tickcolor": "rgba(0,0,0,0)",
    }


def dots(
    places: Sequence[float],
    found: Sequence[Estimate],
    hovers: Sequence[str],
    *,
    name: str = "",
    symbol: Sequence[str] | str = "circle",
    colours: Sequence[str] | str = theme.PLOT_TEXT,
) -> "Scatter":
    """Means with their intervals, side by side along the axis of numbers."""
    from plotly.graph_objects import Scatter

    return Scatter(
        name=plain(name),
        mode="markers",
        x=[one[0] for one in found],
        y=list(places),
        marker={
            "size": 11,
            "symbol": symbol if isinstance(symbol, str) else list(symbol),
            "color": colours,
            "line": {"width": 1, "color": theme.PLOT_TEXT},
        },
        error_x=whiskers(found),
        hovertext=[plain(text, _HOVER) for text in hovers],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def whiskers(found: Sequence[Estimate]) -> dict[str, Any]:
    """The intervals of means, as Plotly draws them."""
    return {
        "type": "data",
        "visible": any(one[1] < one[2] for one in found),
        "symmetric": False,
        "array": [max(0.0, one[2] - one[0]) for one in found],
        "arrayminus": [max(0.0, one[0] - one[1]) for one in found],
        "color": theme.PLOT_TEXT,
        "thickness": 1.6,
        "width": 5,
    }


def rows_figure(
    names: Sequence[str], traces: Sequence["Scatter"], x: dict[str, Any], *, lines: Sequence[float] = ()
) -> "Figure":
    """Rows of dots over one axis of numbers; `lines` are values to compare them with."""
    from plotly.graph_objects import Figure

    figure = Figure(list(traces))
    legend = len(traces) > 1
    figure.update_layout(
        layout(
            height=86 + _ROW * len(names) + (LINE * (1 + len(traces)) if legend else 0),
            xaxis=x,
            yaxis=names_axis(names),
            showlegend=legend,
            shapes=[upright(value) for value in lines],
        )
    )
    return figure


def upright(value: float) -> dict[str, Any]:
    """A line at a value of the axis of numbers."""
    line = {"color": theme.PLOT_TEXT, "width": 1.5, "dash": "dash"}
    return {"type": "line", "x0": value, "x1": value, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def shown(one: Estimate) -> str:
    """An estimate as a hover says it; without an interval of no width, which would look sure."""
    return f"{one[0]:.3f}" + (f" ({one[1]:.3f} to {one[2]:.3f})" if one[1] < one[2] else "")
