"""Files of questions, read line by line, each checked before anything looks at it.

The form is the project's own, one JSON object a line: `{"id", "question", "answers", "passages": [{"title",
"text", "is_gold"}], "task"}`. HotpotQA, NQ and FEVER-like files are converted (`converters`). A file is
somebody else's, so every refusal names the file, the line and the field.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from specrag.evaluation.converters import Format, converted, format_of
from specrag.evaluation.problems import EvaluationError
from specrag.evaluation.questions import Dataset, Question, Seen, seen
from specrag.pipelines.base import readable
from specrag.types import Exchange

MOST_BYTES: Final = 1 << 30
MOST_LINE: Final = 16 << 20
"""Characters of one line."""
MOST_QUESTIONS: Final = 200_000
MOST_PASSAGES: Final = 1_000
MOST_TEXT: Final = 100_000
"""Characters of a passage, a question or an answer."""
MOST_ANSWERS: Final = 500


def read_questions(
    path: Path, form: Format | None = None, *, most: int = MOST_BYTES, instead: str = "split it"
) -> Dataset:
    """The questions of a file; `form` None recognises it by its first row.

    No more than `most` bytes are read; `instead` is what to do with a larger file, for the sentence.

    Raises:
        EvaluationError: the file cannot be read or is too large, or a line is wrong.
    """
    data = _bytes(path, most, instead)
    questions: dict[str, Question] = {}
    left_out = 0
    for where, row in _rows(path.name, data):
        form = form or format_of(row)
        if form is None:
            raise EvaluationError(f"{where}: its form is not known; name one with --format.")
        one = _question(where, converted(where, row, form))
        if one.id in questions:
            raise EvaluationError(f"{where}: the id “{one.id[:80]}” stands in an earlier line as well.")
        if len(questions) == MOST_QUESTIONS:
            raise EvaluationError(f"{where}: at most {MOST_QUESTIONS:,} questions are read; split the file.")
        left_out += not one.passages
        questions[one.id] = one
    kept = tuple(one for one in questions.values() if one.passages)
    if not kept:
        raise EvaluationError(f"{path.name} holds no question with passages.")
    digest = hashlib.sha256(data).hexdigest()
    return Dataset(name=_name(path), sha256=digest, questions=kept, form=form or "", left_out=left_out)


def _name(path: Path) -> str:
    """What a report calls the file: its name without endings such as .dev.jsonl."""
    return readable(path.name).split(".")[0] or "data"


def _bytes(path: Path, most: int, instead: str) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise EvaluationError(f"{path.name} cannot be read: {error.strerror or error}.") from error
    if len(data) > most:
        raise EvaluationError(f"{path.name} is larger than {most >> 20} MiB; {instead}.")
    return data


def _rows(name: str, data: bytes) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every object of the file with its place: one a line, or all in one JSON list as HotpotQA has them."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        broken = data[: error.start].count(b"\n") + 1
        raise EvaluationError(f"{name}, line {broken}: it is not UTF-8; save the file as UTF-8.") from error
    if text.lstrip().startswith("["):
        rows = _parsed(name, text)
        for place, row in enumerate(rows, 1):
            yield _object(f"{name}, entry {place}", row)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        if len(line) > MOST_LINE:
            raise EvaluationError(f"{where}: it has more than {MOST_LINE:,} characters.")
        yield _object(where, _parsed(where, line))


def _parsed(where: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        why = error.msg if isinstance(error, json.JSONDecodeError) else "it is nested too deeply"
        raise EvaluationError(f"{where}: it is not JSON: {why}.") from error


def _object(where: str, row: Any) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(row, dict):
        raise EvaluationError(f"{where}: it is not an object with “question” and “answers”.")
    return where, row


def _question(where: str, row: Mapping[str, Any]) -> Question:
    told = row.get("meta")
    meta: Mapping[str, Any] = told if isinstance(told, dict) else {}
    pairs = [_passage(f"{where}, passage {n}", one) for n, one in enumerate(_list(where, row, "passages"), 1)]
    if len(pairs) > MOST_PASSAGES:
        raise EvaluationError(f"{where}: it has {len(pairs):,} passages; at most {MOST_PASSAGES:,} are read.")
    answers = _list(where, row, "answers")
    if len(answers) > MOST_ANSWERS:
        raise EvaluationError(f"{where}: it has {len(answers):,} answers; at most {MOST_ANSWERS} are read.")
    return Question(
        id=text_of(where, row, "id", needed=True),
        question=text_of(where, row, "question", needed=True),
        answers=tuple(_text(f"{where}, answer {n}", one) for n, one in enumerate(answers, 1)),
        passages=tuple({one.id: one for one, _ in pairs}.values()),
        gold=frozenset(one.id for one, gold in pairs if gold),
        task=text_of(where, row, "task"),
        all_required=bool(row.get("all_answers_required") or meta.get("all_answers_required")),
        earlier=_earlier(where, meta.get("history") or row.get("history") or []),
    )


def _passage(where: str, one: Any) -> tuple[Seen, bool]:
    if not isinstance(one, dict):
        raise EvaluationError(f"{where}: it is not an object with “title” and “text”.")
    return seen(text_of(where, one, "title"), text_of(where, one, "text", needed=True)), one.get(
        "is_gold"
    ) is True


def _earlier(where: str, history: Any) -> tuple[Exchange, ...]:
    """The turns before, in pairs of question and answer."""
    if not isinstance(history, list) or not all(isinstance(turn, dict) for turn in history):
        raise EvaluationError(f"{where}: “history” is not a list of turns with “role” and “text”.")
    asked: str | None = None
    pairs: list[Exchange] = []
    for turn in history:
        text = text_of(f"{where}, history", turn, "text")
        if turn.get("role") == "user":
            asked = text
        elif asked is not None:
            pairs.append(Exchange(question=asked, answer=text))
            asked = None
    return tuple(pairs)


def _list(where: str, row: Mapping[str, Any], name: str) -> list[Any]:
    value = row.get(name)
    if not isinstance(value, list):
        raise EvaluationError(f"{where}: “{name}” is missing or not a list.")
    return value


def text_of(where: str, row: Mapping[str, Any], name: str, *, needed: bool = False) -> str:
    """A text field, readable by tokenizers and stores; numbers count as texts.

    Raises:
        EvaluationError: it is no text, too long, or empty though it is needed.
    """
    value = row.get(name)
    text = "" if value is None else _text(f"{where}: “{name}”", value)
    if needed and not text.strip():
        raise EvaluationError(f"{where}: “{name}” is missing or empty.")
    return text


def _text(where: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise EvaluationError(f"{where} is not a text.")
    text = readable(str(value))
    if len(text) > MOST_TEXT:
        raise EvaluationError(f"{where} has {len(text):,} characters; at most {MOST_TEXT:,} are read.")
    return text
