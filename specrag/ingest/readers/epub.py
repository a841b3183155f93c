"""Books: the chapters in the order of the spine, read as the web pages that they are.

A page for each chapter, named as the table of contents names it, else by its first heading. Only the parts
that the book itself lists are looked at, and nothing outside the container is ever fetched.
"""

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urldefrag

from specrag.errors import DocumentError
from specrag.ingest.readers.cells import arrange
from specrag.ingest.readers.container import members
from specrag.ingest.readers.content import Content, Gathering, Source
from specrag.ingest.readers.dates import stated_date
from specrag.ingest.readers.html import tree
from specrag.ingest.readers.markup import flowed
from specrag.ingest.readers.office import parsed
from specrag.ingest.readers.typography import spell_out
from specrag.ingest.text import prose

_CONTAINER, _LOCKS = "META-INF/container.xml", "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")


def read_epub(source: Source) -> Content:
    """The text of a book, a page for each chapter that has any.

    Raises:
        DocumentError: `corrupt`, `encrypted`, `no_pages` or `too_large`.
    """
    parts = members(source)
    where = _package_path(parts)
    package = parsed(parts.get(where, b""))
    if package is None:
        raise DocumentError("corrupt", f"{source.name} is damaged: its list of chapters is missing.")
    spine = list(_spine(package, where, parts))
    if not spine:
        raise DocumentError("no_pages", f"{source.name} is a book without a single chapter; export it again.")
    _refuse_locked(parts, spine, source.name)
    names = _contents(package, where, parts)
    gathering = Gathering(source, unit="chapters")
    gathering.expect(len(spine))
    for place, chapter in enumerate(spine):
        source.on_page(place, len(spine))
        root, _ = tree(parts[chapter], source.name)
        spell_out(root)
        arrange(root)
        text, headings = flowed(root)
        if text:
            section = names.get(chapter) or (headings[0].text if headings else None)
            gathering.add(text, section=section, headings=headings)
    source.on_page(len(spine), len(spine))
    return Content(
        pages=gathering.pages,
        title=_first(package, "title"),
        published_at=stated_date(_first(package, "date")),
    )


def _package_path(parts: Mapping[str, bytes]) -> str:
    container = parsed(parts.get(_CONTAINER, b""))
    found = [] if container is None else container.xpath("//*[local-name()='rootfile']/@full-path")
    stated = [str(path) for path in found if path in parts]
    return stated[0] if stated else next((name for name in parts if name.endswith(".opf")), "")


def _items(package: Any, where: str) -> dict[str, tuple[str, str, str]]:
    """Id of each item of the book: its path, type and properties."""
    return {
        item.get("id", ""): (
            _path(where, item.get("href", "")),
            item.get("media-type", ""),
            item.get("properties", ""),
        )
        for item in package.xpath("//*[local-name()='manifest']/*[local-name()='item']")
    }


def _spine(package: Any, where: str, parts: Mapping[str, bytes]) -> Iterator[str]:
    """Paths of the chapters, each once; the page of contents is none."""
    items = _items(package, where)
    seen: set[str] = set()
    for reference in package.xpath("//*[local-name()='spine']/*[local-name()='itemref']/@idref"):
        path, kind, properties = items.get(str(reference), ("", "", ""))
        if path in parts and kind in _PAGES and path not in seen and "nav" not in properties.split():
            seen.add(path)
            if parts[path].strip():
                yield path


def _contents(package: Any, where: str, parts: Mapping[str, bytes]) -> dict[str, str]:
    """What the table of contents calls each chapter, by the chapter's path."""
    names: dict[str, str] = {}
    for path, kind, properties in _items(package, where).values():
        root = parsed(parts.get(path, b""))
        if root is None:
            continue
        if "nav" in properties.split():
            found = root.xpath("//*[local-name()='nav']//*[local-name()='a'][@href]")
            entries = [(link.get("href"), "".join(link.itertext())) for link in found]
        elif kind == "application/x-dtbncx+xml":
            entries = [_entry(point) for point in root.xpath("//*[local-name()='navPoint']")]
        else:
            continue
        for target, name in entries:
            # A chapter is listed before its sections, which lie in the same file.
            names.setdefault(_path(path, target), prose(" ".join(name.split()))[:300])
    return {path: name for path, name in names.items() if name}


def _entry(point: Any) -> tuple[str, str]:
    targets = point.xpath("./*[local-name()='content']/@src")
    names = point.xpath("./*[local-name()='navLabel']//*[local-name()='text']//text()")
    return (str(targets[0]) if targets else "", "".join(map(str, names)))


def _path(base: str, target: str) -> str:
    """A reference as the name of a member; one that leads outside simply names no member."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), unquote(urldefrag(target)[0])))


def _refuse_locked(parts: Mapping[str, bytes], spine: list[str], name: str) -> None:
    """Fonts are often encrypted, and do not matter; chapters of a bought book may be."""
    locks = parsed(parts.get(_LOCKS, b""))
    found = [] if locks is None else locks.xpath("//*[local-name()='CipherReference']/@URI")
    if {posixpath.normpath(unquote(str(path))) for path in found} & set(spine):
        raise DocumentError("encrypted", f"{name} is locked by its seller (DRM); get a copy without it.")


def _first(package: Any, word: str) -> str | None:
    found = package.xpath(f"//*[local-name()='metadata']//*[local-name()='{word}']")
    return next((text for item in found if (text := prose("".join(item.itertext())))), None)
