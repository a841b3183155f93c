"""What a page says by its typography, said in its characters before the page is read as text.

An exponent is above the line, code is in another typeface, and a program's lines are where its author broke
them. Without that, `10⁶` becomes 106, a footnote's number becomes part of a word, and whoever looks for the
main text takes a listing for a quotation.
"""

import re
from typing import Any

_BASE = re.compile(r"(?:\d|(?<![^\W_])(?:[^\W\d_]|[kcmdµ]m|ft|in|mi|yd))$")
"""What a raised number is the exponent of: a number, a unit of length or a single letter."""
_EXPONENT = re.compile(r"[-\u2212+]?\d+")
_APART = re.compile(r"[\w\[(]")
"""How raised text begins that must not grow together with the word before it."""
_ORDINAL = re.compile(r"[^\W\d_]{1,3}")
_NEAR = 20


def spell_out(root: Any) -> None:
    """Write exponents as `^6`, keep notes off the words, and keep the lines of listings as code."""
    for raised in list(root.iter("sup")):
        _raise(raised)
    for listing in list(root.iter("pre")):
        _keep_lines(listing)
    for code in root.iter("code"):
        if next(code.iterancestors("pre"), None) is None:
            _on_one_line(code)
    for summary in root.iter("summary"):
        _own_paragraph(summary)


def _raise(node: Any) -> None:
    before, text = _before(node), node.text_content().strip()
    sign = ""
    if _EXPONENT.fullmatch(text) and _BASE.search(before):
        sign = "^"
    elif not _joined(before, text):
        sign = " "
        if node.tail and node.tail[0].isalnum():
            node.tail = f" {node.tail}"
    node.text = f"{sign}{(node.text or '').lstrip()}"
    node.tag = "span"  # To drop the tag would copy all text before it, for each of a hundred thousand notes.


def _joined(before: str, text: str) -> bool:
    """Whether raised text belongs to the word before it, as in 1st or Na+, or stands apart from it anyway."""
    ordinal = before[-1:].isdigit() and _ORDINAL.fullmatch(text)
    return not before or before[-1].isspace() or bool(ordinal) or not _APART.match(text)


def _before(node: Any) -> str:
    """The text just before a node, without looking further than its neighbour."""
    previous = node.getprevious()
    if previous is None:
        return str(node.getparent().text or "")[-_NEAR:] if node.getparent() is not None else ""
    inner = previous.text_content() if isinstance(previous.tag, str) else ""
    return str(previous.tail or inner or "")[-_NEAR:]


def _keep_lines(listing: Any) -> None:
    """Text only, as code, because that is how listings survive the search for the main text."""
    from lxml import etree

    for line_break in list(listing.iter("br")):
        line_break.tail = "\n" + (line_break.tail or "")
    etree.strip_elements(listing, "script", "style", "button", with_tail=False)
    text = listing.text_content()
    for child in list(listing):
        listing.remove(child)
    listing.text = None
    code = listing.makeelement("code", {})
    code.text = "\n" + text.replace("\r\n", "\n").strip(
        "\n"
    )  # The break at its head tells it from other code.
    listing.append(code)


def _on_one_line(code: Any) -> None:
    for node in code.iter():
        node.text = re.sub(r"\s+", " ", node.text) if node.text else node.text
        if node is not code and node.tail:
            node.tail = re.sub(r"\s+", " ", node.tail)


def _own_paragraph(summary: Any) -> None:
    """Put bare text behind a summary into a paragraph; loose, it is dropped from the main text."""
    if summary.tail and summary.tail.strip():
        paragraph = summary.makeelement("p", {})
        paragraph.text, summary.tail = summary.tail, None
        summary.addnext(paragraph)
