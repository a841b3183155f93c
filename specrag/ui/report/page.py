"""A report as one HTML file, with figures that can be hovered.

Plotly's library is carried along, which makes the file 5 MB: the tab draws the same figures, and images of
them would need a second way of drawing or a browser to make them. The policy of the file lets only our two
scripts run; a report is data to them, whatever it holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from specrag.evaluation.reading import checked
from specrag.ui.html_file import html_file, ours
from specrag.ui.report import cards
from specrag.ui.report.parts import Part
from specrag.ui.report.summary import parts_of, title_of
from specrag.ui.theme import CSS_PATH

CSS: Final = CSS_PATH.with_name("evaluate.css")
_DRAW: Final = Path(__file__).with_name("draw.js")
_LIBRARY: Final = "plotly.js stands here"
"""`render` takes what looks like a template out of its texts, and the library is full of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    words: Markup
    figure: Markup | None
    height: int
    tables: Markup


def report_page(report: Mapping[str, Any]) -> str:
    """The whole file of what `evaluate` or a benchmark returns, or `--json` has written.

    Raises:
        EvaluationError: it is no report.
    """
    report = checked(report)
    sections = tuple(map(_section, parts_of(report)))
    drawn = any(section.figure is not None for section in sections)
    plotly, draw = _scripts()
    return html_file(
        "report_page",
        title=title_of(report)[:120],
        sheets=(CSS,),
        scripts=(plotly, draw) if drawn else (),
        head=ours(cards.head(report)),
        sections=sections,
        plotly=_LIBRARY if drawn else "",
        draw=ours(draw),
    ).replace(f"<script>{_LIBRARY}</script>", f"<script>{plotly}</script>")


def _section(part: Part) -> _Section:
    figure = part.figure
    return _Section(
        words=ours(cards.words(part)),
        figure=None if figure is None else ours(_data(figure.to_json())),
        height=0 if figure is None else int(figure.layout.height),
        tables=ours(cards.tables(part)),
    )


def _data(told: str) -> str:
    """JSON that cannot end the element that it stands in, nor look like a template."""
    for sign in "<>&$\u2028\u2029":
        told = told.replace(sign, f"\\u{ord(sign):04x}")
    return told.replace("{{", "{\\u007b")


@cache
def _scripts() -> tuple[str, str]:
    from plotly.offline import get_plotlyjs

    library: str = get_plotlyjs()
    return library.replace("</script", "<\\/script"), _DRAW.read_text(encoding="utf-8").strip()
