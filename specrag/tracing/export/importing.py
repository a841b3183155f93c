"""A run from a file that somebody else may have made.

The file is taken apart in steps, each of which can only refuse: its size, its JSON, how much it holds, the
type of every field, and whether a run can have been so. Its events are taken only if they tell the story of
its trace; else they are made anew, since a replay must not show another run than the one that was opened.
What a newer version has added is left out and never shown.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json as parse

from specrag import events as e
from specrag.errors import TraceError
from specrag.tracing.codec import event_of, from_dict
from specrag.tracing.export.bounds import BYTES, check_size, check_values
from specrag.tracing.export.events_of import events_of
from specrag.tracing.export.sound import LETTERS, TOKENS, check_sound
from specrag.tracing.trace import Trace, fold

_MOST: Final = 2000
"""Of any kind of event but tokens: folding takes time by the square of some of them."""
_SUBSETS: Final = 100
_HOPS: Final = 100
"""Every token of a hop, and there may be many, looks at all of them."""


def import_file(path: str | Path) -> tuple[Trace, tuple[e.Event, ...]]:
    """The run in a file.

    Raises:
        TraceError: the file cannot be read, or as `import_run`.
    """
    return import_run(read_bytes(path))


def read_bytes(path: str | Path) -> bytes:
    """What is in a file, or so much of it that it is seen to be too long.

    Raises:
        TraceError: the file cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(BYTES + 1)
    except OSError as error:
        raise TraceError(f"The trace {path} cannot be read: {error.strerror}.") from error


def import_run(data: bytes) -> tuple[Trace, tuple[e.Event, ...]]:
    """The trace and the events of an exported run.

    Raises:
        TraceError: the file is no run that has ended, in one sentence that names the first thing wrong.
    """
    document = document_of(data)
    trace = read_trace(document)
    if trace.status == "running":
        raise TraceError("This run had not ended when it was exported; export it again when it has.")
    return trace, _events(trace, document.get("events"))


def read_trace(document: dict[str, Any]) -> Trace:
    """The trace in a parsed file.

    Raises:
        TraceError: as `import_run`.
    """
    trace = from_dict({name: value for name, value in document.items() if name != "events"})
    check_sound(trace)
    return trace


def document_of(data: bytes) -> dict[str, Any]:
    """The values in a file, as many as a run may have and no deeper.

    Raises:
        TraceError: it is not JSON, no object, or too much of it.
    """
    check_size(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TraceError("This file cannot be read as a run: it is not a text file.") from error
    try:
        document = parse(text, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        raise TraceError(f"This file is not JSON as a run is exported: {str(error)[:200]}.") from error
    if not isinstance(document, dict):
        raise TraceError("This file is JSON, and not a run: it does not begin with an object.")
    check_values(document)
    return document


def _events(trace: Trace, rows: Any) -> tuple[e.Event, ...]:
    told = tuple(_read(rows)) if isinstance(rows, list) else ()
    return told if told and _is_story_of(trace, told) else events_of(trace)


def _read(rows: Sequence[Any]) -> Iterable[e.Event]:
    for row in rows:
        match row:
            case [str(name), dict(fields)]:
                try:
                    yield event_of(name, fields)
                except KeyError:  # of a newer version
                    continue
            case _:
                raise TraceError("An event of this run is wrong: it is not a name with fields.")


def _is_story_of(trace: Trace, events: Sequence[e.Event]) -> bool:
    times = [event.at_ms for event in events]
    if times != sorted(times) or times[0] < 0 or not _is_foldable(events):
        return False
    try:
        return fold(events) == trace
    except (ValueError, AttributeError, RuntimeError, StopIteration):  # a draft or a text that is not there
        return False


def _is_foldable(events: Sequence[e.Event]) -> bool:
    """Whether folding takes moments: texts grow token by token, and each time they are copied."""
    kinds, counts, letters = Counter[str](), Counter[str](), Counter[str]()
    for event in events:
        match event:
            case e.DraftToken() | e.HopToken() | e.AnswerToken():
                counts[_text_of(event)] += 1
                letters[_text_of(event)] += len(event.text)
            case e.SubsetsFormed() if len(event.subsets) > _SUBSETS:
                return False
            case e.DraftsVerified():
                kinds["verdicts"] += len(event.verdicts)
            case _:
                kinds[type(event).__name__] += 1
    return (
        max(kinds.values(), default=0) <= _MOST
        and max(kinds["HopStarted"], kinds["HopFinished"]) <= _HOPS
        and max(counts.values(), default=0) <= TOKENS
        and max(letters.values(), default=0) <= LETTERS
    )


def _text_of(token: e.DraftToken | e.HopToken | e.AnswerToken) -> str:
    match token:
        case e.DraftToken():
            return f"draft {token.subset_id}"
        case e.HopToken():
            return f"hop {token.number}"
        case e.AnswerToken():
            return "answer"
