"""Plain text, Markdown and code: kept as written, with the title and date that Markdown states."""

import re
from datetime import date

from specrag.errors import DocumentError
from specrag.ingest.readers.content import Content
from specrag.ingest.text import decode, prose, verbatim
from specrag.types import Page

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"^(title|date)[ \t]*:[ \t]*(.+?)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_HEADING = re.compile(r"^#[ \t](.*\S.*)$", re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def read_text(data: bytes, name: str) -> Content:
    """Plain text with blanks put in order."""
    text, encoding = _decoded(data, name)
    return Content(pages=(Page(text=prose(text)),), encoding=encoding)


def read_code(data: bytes, name: str) -> Content:
    """Code and data with its indentation."""
    text, encoding = _decoded(data, name)
    return Content(pages=(Page(text=verbatim(text)),), encoding=encoding)


def read_markdown(data: bytes, name: str) -> Content:
    """Markdown as its author wrote it, without the front matter, whose title and date are kept."""
    raw, encoding = _decoded(data, name)
    text = verbatim(raw)
    front = _FRONT_MATTER.match(text)
    fields = {key.lower(): value.strip("\"'") for key, value in _FIELD.findall(front[1])} if front else {}
    body = text[front.end() :].strip("\n") if front else text
    heading = _HEADING.search(_FENCE.sub("", body))
    return Content(
        pages=(Page(text=body),),
        title=fields.get("title") or (heading[1].rstrip().rstrip("#").strip() if heading else None),
        published_at=_iso_date(fields.get("date", "")),
        encoding=encoding,
    )


def _decoded(data: bytes, name: str) -> tuple[str, str]:
    decoded = decode(data)
    if decoded is None:
        raise DocumentError("corrupt", f"{name} is called a text file but holds no text.")
    return decoded


def _iso_date(value: str) -> str | None:
    try:
        return date.fromisoformat(value[:10]).isoformat()
    except ValueError:
        return None
