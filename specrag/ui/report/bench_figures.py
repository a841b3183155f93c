"""The Plotly figures of a benchmark: phases beside their floors, the ratio, and where it begins to pay.

Phases are shades and patterns of one neutral colour, as the steps of a comparison are.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from specrag.evaluation.latency import words
from specrag.ui import theme
from specrag.ui.lanes import ticks
from specrag.ui.markup import tick_text
from specrag.ui.report.looks import (
    LINE,
    axis,
    dots,
    layout,
    names_axis,
    plain,
    rows_figure,
    shown,
    upright,
    whiskers,
)
from specrag.ui.report.parts import Estimate

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

WAYS: Final = ("standard", "speculative")
_LOOKS: Final[dict[str, tuple[float, str]]] = {
    "read": (0.4, ""),
    "write": (1.0, ""),
    "draft read": (0.3, "/"),
    "draft write": (0.7, "\\"),
    "verify": (0.8, "-"),
    "decide": (0.25, "."),
}
"""Opacity and pattern of each phase."""
_OTHER: Final = (0.15, "|")
_MOST_DOUBLINGS: Final = 7
_LEAST: Final = 1e-6
"""Ratios are drawn on a logarithmic axis, which has no 0."""


def phases(found: Mapping[str, Any]) -> "Figure":
    """Each way's phases end to end, and under them the least time that they can take on this machine."""
    from plotly.graph_objects import Bar, Figure

    floored = any(phase["floor_ms"] is not None for way in WAYS for phase in found[way]["phases"])
    rows = [f"{way}{kind}" for way in WAYS for kind in ("", ", floor") if floored or not kind]
    names = list(dict.fromkeys(phase["name"] for way in WAYS for phase in found[way]["phases"]))
    bars = []
    for name in names:
        taken = [0.0] * len(rows)
        for way in WAYS:
            for phase in (one for one in found[way]["phases"] if one["name"] == name):
                taken[rows.index(way)] += max(0.0, phase["ms"])
                if floored:
                    taken[rows.index(f"{way}, floor")] += max(0.0, phase["floor_ms"] or 0.0)
        bars.append(
            Bar(
                name=plain(name),
                orientation="h",
                x=taken,
                y=list(range(len(rows))),
                marker=_look(name),
                hovertext=[
                    f"{row}<br>{plain(name)}: {words.ms(value)}"
                    for row, value in zip(rows, taken, strict=True)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    figure = Figure(bars)
    longest = max(1.0, *(sum(bar.x[row] for bar in bars) for row in range(len(rows))))
    marks = ticks(longest)
    *_, unit = tick_text(marks[-1], marks[-1]).split()
    figure.update_layout(
        layout(
            barmode="stack",
            bargap=0.4,
            height=100 + LINE * len(names) + 36 * len(rows),
            showlegend=True,
            xaxis=axis(
                f"median time, {unit}",
                range=[0, marks[-1] * 1.01],
                tickvals=marks,
                ticktext=[tick_text(tick, marks[-1]).partition(" ")[0] for tick in marks],
            ),
            yaxis=names_axis(rows),
        )
    )
    return figure


def _look(name: str) -> dict[str, Any]:
    opacity, shape = _LOOKS.get(name, _OTHER)
    red, green, blue = (int(theme.PLOT_TEXT[at : at + 2], 16) for at in (1, 3, 5))
    return {
        "color": f"rgba({red},{green},{blue},{opacity})",
        "line": {"width": 1, "color": theme.PLOT_TEXT},
        "pattern": {"shape": shape, "fgcolor": theme.PLOT_TEXT, "solidity": 0.35, "size": 7},
    }


def ratio(found: Mapping[str, Any]) -> "Figure":
    """How many times as long standard RAG takes; right of 1, speculative RAG is faster."""
    titles = {"ttft": "first token", "total": "whole answer"}
    one = found["ratio"]
    spans = [_span(one, key) for key in titles]
    measured = dots(
        range(len(titles)),
        spans,
        [f"{title}: {shown(span)}" for title, span in zip(titles.values(), spans, strict=True)],
        name="measured",
    )
    traces, values = [measured], [1.0, *(span[2] for span in spans)]
    floors = [found["floor"]["ratio"][key] for key in titles] if found["floor"] else []
    known = [(place, value) for place, value in enumerate(floors) if value is not None]
    if known:
        values += [value for _, value in known]
        traces.append(
            dots(
                [place for place, _ in known],
                [(value, value, value) for _, value in known],
                [f"by the floor: {value:.2f}" for _, value in known],
                name="by the floor",
                symbol="diamond-open",
            )
        )
    x = axis("standard / speculative", range=[0, 1.08 * max(values)])
    return rows_figure(list(titles.values()), traces, x, lines=(1.0,))


def _span(one: Mapping[str, Any], key: str) -> Estimate:
    """A ratio with the ends of its interval; of a single repetition all are the same."""
    low, high = one[f"{key}_interval"] or (one[key], one[key])
    return (one[key], low, high)


def _step(spans: Iterable[Sequence[Estimate]]) -> float:
    """Between the marks of a logarithmic axis: doublings, or powers of ten where those would be too many."""
    ends = [max(end, _LEAST) for some in spans for one in some for end in one]
    doublings = math.log2(max(ends) / min(ends))
    return 1.0 if doublings > _MOST_DOUBLINGS else math.log10(2)


def curve(points: Sequence[Mapping[str, Any]], even: Mapping[str, Any]) -> "Figure | None":
    """The ratio over how many times larger the verifier is; above the line, speculative RAG is faster."""
    from plotly.graph_objects import Figure, Scatter

    if not points:
        return None
    across = [one["size_ratio"] for one in points]
    spans = {key: [_span(one, key) for one in points] for key in ("total", "ttft")}
    looks = (("total", "whole answer", "circle", "solid"), ("ttft", "first token", "square", "dot"))
    traces = [
        Scatter(
            name=title,
            mode="lines+markers",
            x=across,
            y=[max(one[key], _LEAST) for one in points],
            marker={"size": 10, "symbol": symbol, "color": theme.PLOT_TEXT},
            line={"color": theme.PLOT_TEXT, "dash": dash},
            error_y=whiskers(spans[key]),
            hovertext=[
                f"{plain(one['verifier'], 80)}<br>{title}: {shown(span)}"
                for one, span in zip(points, spans[key], strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
        for key, title, symbol, dash in looks
    ]
    floors = [
        (one["size_ratio"], one["floor"]) for one in points if one["floor"] is not None and one["floor"] > 0
    ]
    if floors:
        traces.append(
            Scatter(
                name="by the floor",
                mode="lines+markers",
                x=[at for at, _ in floors],
                y=[value for _, value in floors],
                marker={"size": 9, "symbol": "diamond-open", "color": theme.PLOT_TEXT},
                line={"color": theme.PLOT_TEXT, "dash": "dash", "width": 1},
            )
        )
    level = {"color": theme.PLOT_TEXT, "width": 1.5, "dash": "dash"}
    shapes = [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1, "line": level}]
    if even["total"] is not None and even["total"] > 0:
        shapes.append(upright(even["total"]))
    figure = Figure(traces)
    span = [math.log10(min(across)) - 0.05, math.log10(max(across)) + 0.05]
    figure.update_layout(
        layout(
            height=420,
            showlegend=True,
            shapes=shapes,
            xaxis=axis(
                "verifier's size / drafter's size",
                type="log",
                range=span,
                tickvals=across,
                ticktext=[f"{at:.3g}" for at in across],
            ),
            yaxis=axis("standard / speculative", type="log", dtick=_step(spans.values()), tickformat=".3~g"),
        )
    )
    return figure
