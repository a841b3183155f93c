"""The Plotly figures of an evaluation: what answers are worth, and what else could be chosen."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from specrag.ui import theme
from specrag.ui.report.looks import LINE, SYMBOLS, axis, dots, layout, plain, rows_figure, shown, whiskers
from specrag.ui.report.parts import Estimate, difference, estimate

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

PLAIN_CHOICES: Final = ("selected", "oracle", "first", "random", "majority", "longest")
ALONE: Final = "alone: "
_SHARE: Final = {"range": [-0.03, 1.03]}
_BIGGEST: Final = 34
"""Diameter of the fullest bin, in pixels."""
_ROOMY: Final = {"range": [-0.05, 1.05]}
"""Room for such a circle at either end."""


def accuracy(pipelines: Mapping[str, Any]) -> "Figure | None":
    """The score of each pipeline over the median time of its runs; those with own settings are elsewhere.

    Names stand in a legend: beside the dots of pipelines that are alike they would cover each other.
    """
    from plotly.graph_objects import Figure, Scatter

    known = [(name, estimate(one, "score"), one["latency"].get("total_ms")) for name, one in main(pipelines)]
    points = [(name, found, ms / 1000) for name, found, ms in known if found and isinstance(ms, int | float)]
    if not points:
        return None
    longest = max(seconds for _, _, seconds in points) or 1.0
    figure = Figure(
        [
            Scatter(
                name=plain(name),
                mode="markers",
                x=[seconds],
                y=[found[0]],
                marker={"size": 12, "symbol": SYMBOLS[place % len(SYMBOLS)], "color": theme.PLOT_TEXT},
                error_y=whiskers([found]),
                hovertext=[f"{plain(name, 120)}<br>score {shown(found)}<br>{seconds:.2f} s"],
                hovertemplate="%{hovertext}<extra></extra>",
            )
            for place, (name, found, seconds) in enumerate(points)
        ]
    )
    figure.update_layout(
        layout(
            height=340 + LINE * len(points),
            showlegend=True,
            xaxis=axis("median seconds of a run", range=[0, 1.08 * longest]),
            yaxis=axis("score", **_SHARE),
        )
    )
    return figure


def main(pipelines: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Pipelines as they are, without those that only change one of their settings."""
    found = [(name, one) for name, one in pipelines.items() if ":" not in name and "(" not in name]
    return found or list(pipelines.items())


def choosing(found: Mapping[str, Any]) -> "Figure | None":
    """What was selected beside other ways of choosing from the same drafts; gold is what was selected."""
    names = [*PLAIN_CHOICES, *(name for name in found["worth"] if name.startswith(ALONE))]
    rows = [(name, one) for name in names if (one := estimate(found, name, "worth")) is not None]
    if not rows:
        return None
    trace = dots(
        range(len(rows)),
        [one for _, one in rows],
        [f"{name}: {shown(one)}" for name, one in rows],
        colours=[theme.GOLD if name == "selected" else theme.PLOT_TEXT for name, _ in rows],
    )
    labels = [name.replace("_", "-") for name, _ in rows]
    selected = [one[0] for name, one in rows if name == "selected"]
    return rows_figure(labels, [trace], axis("score", **_SHARE), lines=selected)


def differences(found: Sequence[Mapping[str, Any]]) -> "Figure | None":
    """How much each pipeline is above the one it is set against; filled where that is shown."""
    rows = [
        (one, span) for one in found if one["metric"] == "score" and (span := difference(one)) is not None
    ]
    if not rows:
        return None
    trace = dots(
        range(len(rows)),
        [span for _, span in rows],
        [f"{one['pipeline']} minus {one['against']}: {shown(span)}" for one, span in rows],
        symbol=["circle" if one["clear"] else "circle-open" for one, _ in rows],
    )
    labels = [one["pipeline"].removeprefix(f"{one['against']}:") for one, _ in rows]
    far = max(abs(end) for _, span in rows for end in span) or 0.1
    return rows_figure(
        labels, [trace], axis("difference in score", range=[-1.08 * far, 1.08 * far]), lines=(0.0,)
    )


def by_file(datasets: Mapping[str, Any], pipelines: Mapping[str, Any]) -> "Figure | None":
    """The score of each pipeline in each file, the files beside each other within a row."""
    names = [name for name, _ in main(pipelines)]
    step = 0.6 / max(1, len(datasets))
    traces = []
    for place, (file, one) in enumerate(datasets.items()):
        rows: list[tuple[float, str, Estimate]] = []
        for row, name in enumerate(names):
            found = estimate(one["pipelines"][name], "score") if name in one["pipelines"] else None
            if found is not None:
                rows.append((row + (place - (len(datasets) - 1) / 2) * step, name, found))
        traces.append(
            dots(
                [at for at, _, _ in rows],
                [found for _, _, found in rows],
                [f"{name}, {file}: {shown(found)}" for _, name, found in rows],
                name=file,
                symbol=SYMBOLS[place % len(SYMBOLS)],
            )
        )
    return rows_figure(names, traces, axis("score", **_SHARE)) if traces else None


def calibration(bins: Sequence[Mapping[str, Any]]) -> "Figure | None":
    """Confidence against the share that was right; on the line, a run is as good as it says it is."""
    from plotly.graph_objects import Figure, Scatter

    known = [one for one in bins if one["confidence"] is not None and one["accuracy"] is not None]
    if not known:
        return None
    most = max(one["n"] for one in known) or 1
    line = {"color": theme.PLOT_TEXT, "width": 1.5, "dash": "dash"}
    figure = Figure(
        [
            Scatter(x=[0, 1], y=[0, 1], mode="lines", line=line, hoverinfo="skip"),
            Scatter(
                cliponaxis=False,
                x=[one["confidence"] for one in known],
                y=[one["accuracy"] for one in known],
                mode="markers",
                marker={
                    "color": theme.PLOT_TEXT,
                    "opacity": 0.8,
                    "size": [max(8.0, _BIGGEST * (one["n"] / most) ** 0.5) for one in known],
                },
                hovertext=[
                    f"{one['accuracy']:.2f} of {one['n']} right at {one['confidence']:.2f}" for one in known
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            ),
        ]
    )
    figure.update_layout(
        layout(height=380, xaxis=axis("mean confidence", **_ROOMY), yaxis=axis("share right", **_ROOMY))
    )
    return figure
