"""A small reading of HTML for the tests: elements in order, with attributes, text and ancestors."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


@dataclass(slots=True, eq=False)
class Element:
    """One element; `text` is everything inside it, as a reader sees it."""

    tag: str
    attributes: dict[str, str]
    parents: tuple["Element", ...]
    pieces: list[str] = field(default_factory=list)

    @property
    def classes(self) -> set[str]:
        return set(self.attributes.get("class", "").split())

    @property
    def text(self) -> str:
        return " ".join("".join(self.pieces).split())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {key: value or "" for key, value in attrs}, tuple(self._open))
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.pieces.append(data)

    def close(self) -> None:
        super().close()
        assert not self._open, f"never closed: {[element.tag for element in self._open]}"


def read(html: str) -> list[Element]:
    """All elements; fails when tags do not nest."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.elements


def find(html: str, name: str) -> list[Element]:
    """Elements with this class, or this tag."""
    return [one for one in read(html) if one.tag == name or name in one.classes]


def inside(html: str, outer: Element, name: str) -> list[Element]:
    """Elements with this class or tag within the first element that equals `outer` in place."""
    position = read(html)
    mine = next(one for one in position if one.attributes == outer.attributes and one.text == outer.text)
    return [one for one in position if mine in one.parents and (one.tag == name or name in one.classes)]
