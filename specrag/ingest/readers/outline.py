"""The outline of a PDF (its bookmarks): which page falls under what, and where headings are in the text.

An entry names a page and seldom a place on it. If its title stands on that page it is a heading there, and
what is above it still belongs to the entry before.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from specrag.ingest.text import prose
from specrag.types import Heading, Page

_MOST = 5000
"""Entries that are looked at."""
_MOST_ON_A_PAGE = 50
_DEEPEST = 4
_LONGEST = 200
_AT_THE_TOP = 100
"""Characters that may stand above a heading which begins its page: a running head, a number."""


def outline(pdf: Any) -> dict[int, list[str]]:
    """Titles by the index of the page that they point to, in order."""
    titles: dict[int, list[str]] = defaultdict(list)
    for entry in islice(pdf.get_toc(max_depth=_DEEPEST), _MOST):
        place = entry.get_dest()
        index = place.get_index() if place else None
        title = prose(entry.get_title().replace("\n", " "))[:_LONGEST].strip()
        if index is not None and title and len(titles[index]) < _MOST_ON_A_PAGE:
            titles[index].append(title)
    return titles


def set_apart(titles: Sequence[str], text: str) -> str:
    """Text of a page as pdfium gives it, with empty lines around its headings, so that they stay lines."""
    for title in titles:
        text = re.sub(
            rf"^{_spelled(title)}[ \t]*\r?$",
            lambda found: f"\n{' '.join(found[0].split())}\n",
            text,
            count=1,
            flags=re.IGNORECASE | re.MULTILINE,
        )
    return text


def under(titles: dict[int, list[str]], pages: Sequence[Page]) -> tuple[Page, ...]:
    """The pages with their sections and headings."""
    labelled: list[Page] = []
    before: str | None = None
    for index, page in enumerate(pages):
        here = titles.get(index, [])
        headings = _located(here, page.text)
        labelled.append(replace(page, section=_section(before, here, headings), headings=headings))
        before = here[-1] if here else before
    return tuple(labelled)


def _section(before: str | None, here: Sequence[str], headings: Sequence[Heading]) -> str | None:
    """What the beginning of a page falls under."""
    if not here:
        return before
    first = next((heading for heading in headings if heading.text == here[0]), None)
    if before is None or first is None or first.start <= _AT_THE_TOP:
        return here[0]
    return before


def _located(titles: Sequence[str], text: str) -> tuple[Heading, ...]:
    """Titles that stand at the beginning of a line, one after the other."""
    headings: list[Heading] = []
    start = 0
    for title in titles:
        found = re.compile(f"^{_spelled(title)}", re.IGNORECASE | re.MULTILINE).search(text, start)
        if found:
            headings.append(Heading(start=found.start(), text=title))
            start = found.end()
    return tuple(headings)


def _spelled(title: str) -> str:
    """A pattern; the number of a section is often part of the page and not of the entry."""
    return r"(?:[\w.]{1,12}[ \t]+)?" + r"\s+".join(map(re.escape, title.split()))
