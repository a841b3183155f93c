"""JSON and JSON Lines as lines that a person can read, with every value as the file spells it.

Nested keys are indented; a list of objects, like each line of JSON Lines, becomes records with the whole path
of each value (`address.city: Rome`), which mean something alone. What is no proper JSON is read as it stands.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from specrag.ingest.readers.content import Content, Gathering, Source, counted
from specrag.ingest.readers.embedded import without_runs
from specrag.ingest.readers.plain import decoded
from specrag.ingest.text import verbatim

_LINE = 300
"""Characters up to which a record stands on one line."""
_SHORT = 100


class _Literal(str):
    """A number or word of JSON, as it was spelled."""

    __slots__ = ()


class _Object(list[tuple[str, Any]]):
    """Pairs, which unlike a dict keep keys that are written twice."""


def read_json(source: Source) -> Content:
    """The values of a JSON file under their keys."""
    return _read(source, _whole)


def read_json_lines(source: Source) -> Content:
    """The values of each line under their keys."""
    return _read(source, _line_by_line)


def _read(source: Source, lines: Callable[[str], Iterator[str]]) -> Content:
    text, encoding = decoded(source, cut=without_runs)
    try:
        shown = verbatim("\n".join(counted(lines(text), source)))
    except (ValueError, RecursionError):
        shown = verbatim(text)
    gathering = Gathering(source)
    gathering.add(shown)
    return Content(pages=gathering.pages, encoding=encoding)


def _whole(text: str) -> Iterator[str]:
    try:
        value = _parsed(text)
    except ValueError:
        if "\n" not in text.strip():
            raise
        # Many a `.json` holds one value on each line.
        return _line_by_line(text)
    return _shown(value, "")


def _line_by_line(text: str) -> Iterator[str]:
    return _entries([_parsed(line) for line in text.split("\n") if line.strip()], "")


def _parsed(text: str) -> Any:
    return json.loads(
        text, object_pairs_hook=_Object, parse_float=_Literal, parse_int=_Literal, parse_constant=_Literal
    )


def _shown(value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, _Object):
        for key, inner in value:
            yield from _pair(key, inner, indent)
    elif isinstance(value, list):
        yield from _entries(value, indent)
    else:
        yield from _indented(_scalar(value), indent, indent)


def _pair(key: str, value: Any, indent: str) -> Iterator[str]:
    short = _short(value)
    if short is not None:
        yield f"{indent}{key}: {short}".rstrip()
    else:
        yield f"{indent}{key}:"
        yield from _shown(value, f"{indent}  ")


def _entries(values: list[Any], indent: str) -> Iterator[str]:
    """A list: records for objects, a dash for anything else."""
    for value in values:
        if isinstance(value, _Object):
            yield from _record(value, indent)
        elif isinstance(value, list):
            short = _short(value)
            if short is not None:
                yield f"{indent}- {short}"
            else:
                yield f"{indent}-"
                yield from _entries(value, f"{indent}  ")
        else:
            yield from _indented(_scalar(value), f"{indent}- ", f"{indent}  ")


def _record(value: _Object, indent: str) -> Iterator[str]:
    """One line, or where that would be too long, one line for each value and an empty one behind."""
    pairs = [f"{path}: {text}" for path, text in _paths(value, "")]
    line = "; ".join(pairs)
    if len(line) <= _LINE and "\n" not in line:
        yield f"{indent}{line}"
        return
    for pair in pairs:
        yield from _indented(pair, indent, f"{indent}  ")
    yield ""


def _paths(value: Any, path: str) -> Iterator[tuple[str, str]]:
    short = _short(value)
    if short is not None:
        yield path, short
    elif isinstance(value, _Object):
        for key, inner in value:
            yield from _paths(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for place, inner in enumerate(value, start=1):
            yield from _paths(inner, f"{path}.{place}")
    else:
        yield path, _scalar(value)


def _short(value: Any) -> str | None:
    """The value on one line, if it is a single one or a short list of such."""
    if isinstance(value, _Object):
        return None if value else ""
    if not isinstance(value, list):
        text = _scalar(value)
        return None if "\n" in text else text
    if any(isinstance(inner, list) or "\n" in _scalar(inner) for inner in value):
        return None
    joined = ", ".join(map(_scalar, value))
    return joined if len(joined) <= _SHORT else None


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _indented(text: str, first: str, others: str) -> Iterator[str]:
    for place, line in enumerate(text.splitlines() or [""]):
        yield f"{others if place else first}{line}"
