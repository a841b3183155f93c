"""Reports as one HTML file that opens from a disk, in a mail or in years, with figures that can be hovered.

Plotly's library is carried along, once, which makes the file 5 MB: the tab draws the same figures, and images
of them would need a second way of drawing or a browser to make them. A policy inside the file lets only our
two scripts run, by their digests, and nothing be loaded; a report is data to them, whatever it holds.
"""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from specrag import __version__
from specrag.ui.markup import render
from specrag.ui.report import cards
from specrag.ui.report.parts import Part
from specrag.ui.report.summary import parts_of, title_of
from specrag.ui.theme import CSS_PATH

CSS: Final = CSS_PATH.with_name("evaluate.css")
_DRAW: Final = Path(__file__).with_name("draw.js")
_LIBRARY: Final = "plotly.js stands here"
"""`render` takes what looks like a template out of its texts, and the library is full of that."""
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_DARK: Final = re.compile(r"^\.dark \{(.*?)^\}", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    words: Markup
    figure: Markup | None
    height: int
    tables: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    head: Markup
    sections: tuple[_Section, ...]


def report_page(reports: Sequence[Mapping[str, Any]]) -> str:
    """The whole file; the reports are checked ones."""
    shown = tuple(
        _Shown(head=_ours(cards.head(one)), sections=tuple(map(_section, parts_of(one)))) for one in reports
    )
    drawn = any(section.figure is not None for one in shown for section in one.sections)
    plotly, draw = _scripts()
    return render(
        "report_page",
        title="; ".join(title_of(one)[:120] for one in reports),
        css=_ours(_style()),
        reports=shown,
        plotly=_LIBRARY if drawn else "",
        draw=_ours(draw),
        scripts=_ours(" ".join(map(_digest, (plotly, draw))) if drawn else "'none'"),
        version=__version__,
    ).replace(f"<script>{_LIBRARY}</script>", f"<script>{plotly}</script>")


def _section(part: Part) -> _Section:
    figure = part.figure
    return _Section(
        words=_ours(cards.words(part)),
        figure=None if figure is None else _ours(_data(figure.to_json())),
        height=0 if figure is None else int(figure.layout.height),
        tables=_ours(cards.tables(part)),
    )


def _data(told: str) -> str:
    """JSON that cannot end the element that it stands in, nor look like a template."""
    for sign in "<>&$\u2028\u2029":
        told = told.replace(sign, f"\\u{ord(sign):04x}")
    return told.replace("{{", "{\\u007b")


def _ours(html: str) -> Markup:
    return Markup(html)  # noqa: S704 - our own style sheet and scripts, or escaped by its own template


@cache
def _style() -> str:
    """The page's style sheets, whose dark colours follow the system: no one sets a class on this file."""
    css = "\n".join(path.read_text(encoding="utf-8") for path in (CSS_PATH, CSS))
    return _DARK.sub(r"@media (prefers-color-scheme: dark) { :root {\1} }", _COMMENT.sub("", css))


@cache
def _scripts() -> tuple[str, str]:
    from plotly.offline import get_plotlyjs

    library: str = get_plotlyjs()
    return library.replace("</script", "<\\/script"), _DRAW.read_text(encoding="utf-8").strip()


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
