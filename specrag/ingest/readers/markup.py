"""Text of an element tree as a reader sees it: blocks on lines of their own, rows with cells side by side.

Knows the elements of HTML and those of trafilatura's own trees, so that DOCX (as HTML), HTML with a main text
and HTML without one all come out alike. Scripts, styles and other invisible parts are left out.
"""

import re
from collections.abc import Iterator
from typing import Any

from specrag.ingest.readers.headings import located, mark, unmarked
from specrag.ingest.readers.tables import beside
from specrag.ingest.text import prose, verbatim
from specrag.types import Heading

_INVISIBLE = frozenset((
    "script", "style", "noscript", "template", "head", "svg", "math", "iframe", "object", "canvas",
    "select", "option", "button", "input", "textarea",
))  # fmt: skip
_PARAGRAPHS = frozenset((
    "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "dl", "table", "blockquote", "pre", "section",
    "article", "main", "header", "footer", "nav", "aside", "figure", "form", "head", "quote", "list",
    "details", "fieldset", "center", "menu", "dialog",
))  # fmt: skip
_LINES = frozenset((
    "div", "li", "item", "dt", "dd", "tr", "row", "br", "lb", "hr", "figcaption", "caption", "address",
    "body", "summary", "legend",
))  # fmt: skip
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "head"))
_CELLS = frozenset(("td", "th", "cell"))
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_KEPT = _INVISIBLE | {"html", "body", "title", "meta"}
_TAG = re.compile(r"</?([a-z][a-z0-9]*)\b[^<>]*>", re.IGNORECASE)
_DEPTH = 400
"""Python frames that a walk may take; below, and in sources deeper than this, blocks are no longer nested."""
_FRAMES = 2
"""What `_walk` and `_inside` take for each level."""
_ROW_FRAMES = 2
"""What `_row` and its generator take between a row and its cells."""
_GAP = "\x1e"
"""Stands for the empty line around a paragraph, until neighbouring breaks are merged."""
_AS_WRITTEN = str.maketrans({" ": "\ufdd2", "\n": "\ufdd3"})
_RESTORED = str.maketrans({"\ufdd2": " ", "\ufdd3": "\n"})
"""Blanks and breaks of listings, hidden from all that merges others; no text may contain these characters."""


def flow(root: Any) -> str:
    """The visible text of `root`; blank lines between paragraphs, ` | ` between cells."""
    return unmarked(_text(root)).translate(_RESTORED)


def flowed(root: Any) -> tuple[str, tuple[Heading, ...]]:
    """The visible text of `root` as prose, and the headings in it."""
    text, headings = located(prose(_text(root)))
    return text.translate(_RESTORED), headings


def _text(root: Any) -> str:
    text = re.sub(r" +", " ", "".join(_walk(root, 0)))
    breaks = re.compile(rf"[\n {_GAP}]*[\n{_GAP}][\n {_GAP}]*")
    return breaks.sub(lambda run: "\n\n" if _GAP in run[0] else "\n", text).strip()


def too_deep(root: Any) -> bool:
    """Whether elements are nested deeper than libraries that recurse (and libxml2 itself) can follow."""
    from lxml import etree

    depth = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        if depth > _DEPTH:
            return True
    return False


def flattened(source: str) -> str:
    """The HTML of a page with all its lines, but nothing nested, for a page that is `too_deep`."""
    return _TAG.sub(
        lambda tag: tag[0] if tag[1].lower() in _KEPT else "<br>" if _edge(tag[1].lower()) else "", source
    )


def _walk(node: Any, depth: int, number: int = 0) -> Iterator[str]:
    """Pieces of text. Every blank of the source is one blank; only this function breaks lines.

    `number` is the node's place among its siblings, for numbered lists.
    """
    if not isinstance(node.tag, str) or _invisible(node, depth):
        return
    if depth > _DEPTH:
        yield from _flat(node)
        return
    tag = node.tag.rpartition("}")[2].lower()
    edge = _edge(tag)
    yield edge
    if tag == "pre" or (tag == "code" and "\n" in "".join(node.itertext())):
        yield f"{_GAP}{_listing(node)}{_GAP}"
    elif tag in ("tr", "row"):
        yield _row(node, depth)
    elif tag in _HEADINGS and node.getparent() is not None:
        yield mark(_on_one_line(unmarked("".join(_inside(node, depth)))))
    else:
        yield _bullet(node, tag, number)
        yield from _inside(node, depth)
    yield edge


def _inside(node: Any, depth: int) -> Iterator[str]:
    yield _inline(node.text)
    for place, child in enumerate(node, start=1):
        yield from _walk(child, depth + _FRAMES, place)
        yield _inline(child.tail)


def _flat(node: Any) -> Iterator[str]:
    """The visible text below a node that lies too deep to be walked, without recursion."""
    from lxml import etree

    walk = etree.iterwalk(node, events=("start", "end", "comment", "pi"))
    for event, element in walk:
        edge = _edge(element.tag) if isinstance(element.tag, str) else ""
        if event != "start":
            yield edge + (_inline(element.tail) if element is not node else "")
        elif _invisible(element, 1):
            walk.skip_subtree()
        else:
            yield edge + _inline(element.text)


def _edge(tag: str) -> str:
    return _GAP if tag in _PARAGRAPHS else "\n" if tag in _LINES else " " if tag in _CELLS else ""


def _row(node: Any, depth: int) -> str:
    cells = [child for child in node if isinstance(child.tag, str) and child.tag.lower() in _CELLS]
    texts = (_on_one_line("".join(_walk(cell, depth + 1 + _ROW_FRAMES))) for cell in cells)
    return beside(list(texts))


def _invisible(node: Any, depth: int) -> bool:
    # trafilatura calls headings `head`, and only the root of a page has an HTML head below it.
    in_page = node.tag != "head" or (node.getparent() is not None and node.getparent().tag == "html")
    hidden = node.get("hidden") is not None or _HIDDEN.search(node.get("style") or "")
    return depth > 0 and ((node.tag in _INVISIBLE and in_page) or bool(hidden))


def _bullet(node: Any, tag: str, number: int) -> str:
    parent = node.getparent()
    if tag not in ("li", "item") or parent is None or re.match("footnote|endnote", node.get("id") or ""):
        return ""
    if parent.tag == "ol" or parent.get("rend") == "ol":
        return f"{number}. "
    return "- "


def _inline(text: str | None) -> str:
    return re.sub(rf"[\s{_GAP}\ufdd2\ufdd3]+", " ", unmarked(text or ""))


def _listing(node: Any) -> str:
    """Code with its lines and indentation."""
    text = unmarked("".join(node.itertext()).translate(_RESTORED)).replace(_GAP, " ").expandtabs(4)
    return verbatim(text).translate(_AS_WRITTEN)


def _on_one_line(text: str) -> str:
    return " ".join(text.translate(_RESTORED).replace(_GAP, " ").split())
