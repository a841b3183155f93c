"""Markdown: kept as written, with the title, date and headings that it states.

HTML in between (tables above all) becomes text as a reader sees it, because tags would fill chunks without
saying anything. Nothing inside a fence is a heading or HTML.
"""

import re
from collections.abc import Iterator
from html import unescape

from specrag.ingest.readers.cells import arrange
from specrag.ingest.readers.content import Content, Gathering, Source
from specrag.ingest.readers.dates import stated_date
from specrag.ingest.readers.markup import flattened, flow, too_deep
from specrag.ingest.readers.plain import decoded
from specrag.ingest.readers.typography import spell_out
from specrag.ingest.text import verbatim
from specrag.types import Heading

_FRONT_MATTER = re.compile(
    r"\A(?:---[ \t]*\n(?P<yaml>.*?)\n(?:---|\.\.\.)|\+\+\+[ \t]*\n(?P<toml>.*?)\n\+\+\+)[ \t]*(?:\n|\Z)",
    re.DOTALL,
)
_FIELD = re.compile(r"^(title|date)[ \t]*[:=][ \t]*(.+?)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_TEXT = re.compile(r" {0,3}(?![-*+>|#]|\d+[.)]|\s)\S")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_BLOCK = re.compile(
    r" {0,3}(?:<!--|</?(?:address|article|aside|blockquote|center|dd|details|div|dl|dt|figcaption|figure"
    r"|footer|h[1-6]|header|hr|li|main|nav|ol|p|picture|pre|script|section|style|summary|table|tbody|td|tfoot|th"
    r"|thead|tr|ul)\b)",
    re.IGNORECASE,
)
_WHOLE = re.compile(r" {0,3}<(table|pre|script|style|!--)", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FENCED = "~" * 8
"""Around the listings of HTML, in which no line is a heading."""
_TAG = re.compile(r"</?[a-z][a-z0-9]*(?:\s[^<>]*)?/?>|<!--.*?-->", re.IGNORECASE)
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")


def read_markdown(source: Source) -> Content:
    """Markdown without its front matter, whose title and date are kept."""
    raw, encoding = decoded(source)
    text = verbatim(raw)
    front = _FRONT_MATTER.match(text)
    fields = (
        {
            key.lower(): value.strip("\"'")
            for key, value in _FIELD.findall(front["yaml"] or front["toml"] or "")
        }
        if front
        else {}
    )
    body = verbatim("\n".join(_without_html((text[front.end() :] if front else text).split("\n"))))
    found = list(_headings(body))
    first = next((heading.text for level, heading in found if level == 1), None)
    gathering = Gathering(source)
    gathering.add(body, headings=tuple(heading for _, heading in found))
    return Content(
        pages=gathering.pages,
        title=fields.get("title") or first,
        published_at=stated_date(fields.get("date")),
        encoding=encoding,
    )


def _headings(body: str) -> Iterator[tuple[int, Heading]]:
    """Level and place of each heading."""
    start, fence, before = 0, "", ""
    for line in body.split("\n"):
        was, fence = fence, _fence(line, fence)
        if not was and not fence:
            if atx := _ATX.match(line):
                yield len(atx[1]), Heading(start=start, text=_plain(re.sub(r"\s#+\s*$", "", atx[2])))
            elif (under := _UNDERLINE.match(line)) and _TEXT.match(before):
                yield (
                    1 if under[1][0] == "=" else 2,
                    Heading(start=start - len(before) - 1, text=_plain(before)),
                )
        before = "" if was or fence else line
        start += len(line) + 1


def _fence(line: str, fence: str) -> str:
    """The marker of the fence that is open behind this line, empty if there is none."""
    found = _FENCE.match(line)
    if not fence:
        return found[1] if found else ""
    closes = found is not None and found[1].startswith(fence) and not line.strip().strip(fence[0])
    return "" if closes else fence


def _plain(heading: str) -> str:
    """A heading without its markup; what is quoted as code may look like a tag, and stays."""
    parts = _CODE.split(_LINK.sub(r"\1", heading))
    parts[::2] = (
        re.sub(r"[*`]+|(?<!\w)_+|_+(?!\w)", "", unescape(_TAG.sub("", part))) for part in parts[::2]
    )
    return " ".join("".join(parts).split())[:300]


def _without_html(lines: list[str]) -> Iterator[str]:
    """Lines with each block of HTML replaced by its text."""
    at, fence = 0, ""
    while at < len(lines):
        was, fence = fence, _fence(lines[at], fence)
        if was or fence or not _BLOCK.match(lines[at]):
            yield lines[at]
            at += 1
            continue
        end = _end(lines, at)
        yield _text_of("\n".join(lines[at:end]))
        at = end


def _end(lines: list[str], at: int) -> int:
    """Where a block of HTML ends: behind its closing tag for the kinds that may hold empty lines."""
    whole = _WHOLE.match(lines[at])
    if whole:
        closing = "-->" if whole[1] == "!--" else f"</{whole[1].lower()}"
        found = next((place for place in range(at, len(lines)) if closing in lines[place].lower()), None)
        if found is not None:
            return found + 1
    return next((place for place in range(at, len(lines)) if not lines[place].strip()), len(lines))


def _text_of(block: str) -> str:
    from lxml import etree, html

    block = _COMMENT.sub("", block)
    if not block.strip():
        return ""
    try:
        root = html.fromstring(f"<body>{block}</body>")
        if too_deep(root):
            root = html.fromstring(f"<body>{flattened(block)}</body>")
    except (etree.LxmlError, ValueError, AssertionError):
        return block
    spell_out(root)
    for code in [listing[0] for listing in root.iter("pre")]:
        code.text = f"\n{_FENCED}\n{(code.text or '').strip(chr(10))}\n{_FENCED}"
    arrange(root)
    return flow(root)
