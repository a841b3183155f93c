"""The Plotly figure of a comparison: one stacked bar a pipeline, cut into its steps.

Hues belong to drafts on this page, so steps are told apart by shades of one neutral colour and by patterns,
which also works without colour vision. The same numbers stand in a table beneath (`compare_cards.steps`).
"""

from typing import TYPE_CHECKING, Any, Final

from specrag.race import Race
from specrag.ui import theme
from specrag.ui.compare_phases import WORDS, PhaseKind, phases, sums
from specrag.ui.compare_words import name_of
from specrag.ui.lanes import ticks
from specrag.ui.markup import tick_text, time_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

COMMON: Final = "finding (common)"
_LOOKS: Final[dict[PhaseKind, tuple[float, str]]] = {
    "find": (0.3, "/"),
    "weigh": (0.25, "."),
    "divide": (0.45, "|"),
    "read": (0.4, ""),
    "note": (0.75, "\\"),
    "write": (1.0, ""),
    "verify": (0.8, "-"),
    "other": (0.15, ""),
}
"""Opacity and pattern of each step, as compare.css has them for the race: one key serves both."""


def stacked(race: Race) -> "Figure | None":
    """The ended runs as stacked bars; None if there is none."""
    from plotly.graph_objects import Bar, Figure

    before = race.comparison.retrieve_ms or 0.0
    rows = {
        name_of(name): sums(phases(trace))
        for name, trace in zip(race.comparison.pipelines, race.traces, strict=True)
        if trace is not None and trace.status != "running"
    }
    if not rows:
        return None
    layers: list[tuple[str, PhaseKind, list[float]]] = [(COMMON, "find", [before] * len(rows))]
    layers += [
        ("finding more" if kind == "find" else word, kind, [taken.get(kind, 0.0) for taken in rows.values()])
        for kind, word in WORDS.items()
        if any(kind in taken for taken in rows.values())
    ]
    figure = Figure(
        [
            Bar(
                name=name,
                orientation="h",
                x=values,
                y=list(rows),
                marker=_look(kind),
                hovertext=[f"{name}: {time_text(value)}" for value in values],
                hovertemplate="%{y}<br>%{hovertext}<extra></extra>",
            )
            for name, kind, values in layers
        ]
    )
    longest = max(before + sum(taken.values()) for taken in rows.values())
    figure.update_layout(_layout(ticks(longest), len(rows)))
    return figure


def _look(kind: PhaseKind) -> dict[str, Any]:
    opacity, shape = _LOOKS[kind]
    red, green, blue = (int(theme.STEP[at : at + 2], 16) for at in (1, 3, 5))
    return {
        "color": f"rgba({red},{green},{blue},{opacity})",
        "line": {"width": 1, "color": theme.PLOT_TEXT},
        "pattern": {"shape": shape, "fgcolor": theme.PLOT_TEXT, "solidity": 0.35, "size": 7},
    }


def _layout(axis: tuple[float, ...], bars: int) -> dict[str, Any]:
    return {
        "template": "none",
        "barmode": "stack",
        "bargap": 0.35,
        "height": 60 + 44 * bars,
        "margin": {"l": 8, "r": 16, "t": 8, "b": 40},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": theme.PLOT_TEXT, "size": 13, "family": "ui-sans-serif, system-ui, sans-serif"},
        "showlegend": False,
        "hoverlabel": {"align": "left"},
        "xaxis": {
            "gridcolor": "rgba(122,130,139,0.25)",
            "zeroline": False,
            "range": [0, axis[-1] * 1.01],
            "tickvals": axis,
            "ticktext": [tick_text(tick, axis[-1]) for tick in axis],
            "fixedrange": True,
        },
        "yaxis": {"autorange": "reversed", "automargin": True, "fixedrange": True, "ticksuffix": "  "},
    }
