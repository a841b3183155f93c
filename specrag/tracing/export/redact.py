"""A run without its texts: what a run cost and how it was decided, and not a word of what it was about.

Nothing is looked for and taken out; only what is known to be harmless is kept. Numbers stay, and of all
strings those few that this program itself chooses from a fixed list. Ids become numbers, because an id from
outside may hold anything. Answers that were equal stay equal ("[answer 2]"), so that agreement between drafts
can still be seen, and decided again.
"""

import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from specrag import events as e
from specrag.text import normalise_answer
from specrag.tracing.trace import Trace
from specrag.types import Draft

QUESTION: Final = "[question left out]"
LEFT_OUT: Final = "[left out]"

_KEPT: Final = frozenset(
    {
        "schema",
        "run_id",
        "status",
        "pipeline",
        "created_at",
        "kind",
        "finish_reason",
        "part",
        "role",
    }
)
"""Fields whose values the types allow no choice in, and the run's own id and time."""
_IDS: Final = {
    "passage_id": "p",
    "passage_ids": "p",
    "citations": "p",
    "singletons": "p",
    "document_id": "d",
    "subset_id": "s",
    "draft": "s",
    "span_id": "n",
    "parent_id": "n",
}
"""Fields that hold ids, and the letter of the ids that take their place."""
_OWN_IDS: Final = {"Passage": "p", "Subset": "s", "Span": "n"}
_QUESTIONS: Final = frozenset(
    {
        ("Trace", "question"),
        ("Trace", "rewritten"),
        ("RunStarted", "question"),
        ("QuestionRewritten", "question"),
    }
)
_ANSWERS: Final = frozenset({("Draft", "answer"), ("Answer", "text"), ("Side", "answer")})
_STEPS: Final = frozenset(
    {
        "run",
        "queue",
        "rewrite",
        "retrieve",
        "embed",
        "search",
        "fuse",
        "rerank",
        "evidence",
        "partition",
        "draft",
        "decode",
        "verify",
        "decide",
        "answer",
        "fallback",
        "synthesise",
        "hop",
        "note",
    }
)
_WORDS: Final = frozenset(
    {
        "precision",
        "search",
        "partition",
        "decision",
        "preset",
        "dtype",
        "role",
        "how",
        "kind",
        "finish_reason",
    }
)
"""Settings and attributes whose values are words of this program."""
_MODELS: Final = frozenset({"drafter", "verifier", "embedder", "name", "draft_with", "verify_with"})
_PLACES: Final = ("cpu", "cuda", "mps")
"""Devices of this machine; what else a device is called may be the address of a server."""
_KEY: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_NAME: Final = re.compile(r"[A-Za-z0-9][\w .,/:+-]{0,79}")
_VERSION: Final = re.compile(r"\d+(\.[0-9a-z]+)+(\+[0-9a-z.]+)?")


def without_texts(trace: Trace, events: Sequence[e.Event] = ()) -> tuple[Trace, tuple[e.Event, ...]]:
    """The run with its figures, steps, scores and token counts, and none of its texts."""
    redactor = _Redactor(keeps_tokens=bool(trace.answer_tokens))
    bare = redactor.bare(trace)
    return bare, tuple(redactor.bare_event(event) for event in events)


class _Redactor:
    """Gives the same new name to the same id and the same answer, in a trace and in its events."""

    def __init__(self, *, keeps_tokens: bool) -> None:
        self._names: dict[str, dict[str, str]] = {}
        self._answers: dict[str, str] = {}
        self._keeps_tokens = keeps_tokens
        """Whether the trace keeps the tokens of its answer; else its text was put aside."""
        self._written = ""
        """What the first token of the answer is, so that its tokens still make up its text."""

    def bare(self, trace: Trace) -> Trace:
        bare: Trace = self._value(trace)
        if bare.answer is not None:
            self._written = bare.answer.text
        first = tuple(replace(token, text=self._written) for token in bare.answer_tokens[:1])
        return replace(bare, answer_tokens=(*first, *bare.answer_tokens[1:]))

    def bare_event(self, event: e.Event) -> e.Event:
        bare: e.Event = self._value(event)
        if isinstance(bare, e.AnswerToken) and self._keeps_tokens:
            text, self._written = self._written, ""
            return replace(bare, text=text)
        return replace(bare, reason=LEFT_OUT) if isinstance(bare, e.RunCancelled) else bare

    def _value(self, value: Any) -> Any:
        """Any value of a trace; a string that nobody spoke for is dropped."""
        made: Any
        match value:
            case str():
                made = ""
            case tuple() | list():
                made = type(value)(self._value(part) for part in value)
            case dict():
                made = self._facts(value)
            case _ if is_dataclass(value) and not isinstance(value, type):
                made = replace(value, **{one.name: self._field(value, one.name) for one in fields(value)})
            case _:
                made = value
        return made

    def _field(self, owner: Any, name: str) -> Any:
        value = getattr(owner, name)
        own = _OWN_IDS.get(type(owner).__name__) if name == "id" else None
        match value:
            case str() if name in _KEPT:
                return value
            case str() if own is not None:
                return self._renamed(own, value)
            case str() if name in _IDS:
                return self._renamed(_IDS[name], value)
            case tuple() if name in _IDS:
                return tuple(self._renamed(_IDS[name], one) for one in value)
            case str():
                return self._text(owner, name, value)
            case _:
                return self._value(value)

    def _text(self, owner: Any, name: str, value: str) -> str:
        place = (type(owner).__name__, name)
        if not value or place in _QUESTIONS:
            return QUESTION if value else ""
        if place in _ANSWERS:
            # an unfinished one is made of its tokens, and they have no text any more
            unfinished = isinstance(owner, Draft) and owner.finish_reason is None
            return "" if unfinished else self._answer(value)
        if name in ("name", "step"):
            return value if value in _STEPS else "step"
        if place == ("ErrorInfo", "type"):
            return value if _KEY.fullmatch(value) else "error"
        return LEFT_OUT if name in ("message", "error", "conflict") else ""

    def _answer(self, text: str) -> str:
        """A number for each answer; those that count as equal have the same."""
        key = normalise_answer(text)
        return self._answers.setdefault(key, f"[answer {len(self._answers) + 1}]")

    def _renamed(self, letter: str, old: str) -> str:
        known = self._names.setdefault(letter, {})
        return known.setdefault(old, f"{letter}{len(known) + 1}")

    def _facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Settings, environment or attributes: numbers, and words and names that are the program's."""
        return {name: self._fact(name, value) for name, value in facts.items() if _KEY.fullmatch(name)}

    def _fact(self, name: str, value: Any) -> Any:
        match value:
            case str() if name in ("subset_id", "draft"):
                return self._renamed("s", value)
            case str():
                return value if _is_ours(name, value) else ""
            case _:
                return self._value(value)


def _is_ours(name: str, value: str) -> bool:
    """Whether a fact is a word or a name that this program gives, or the version of a package."""
    if name == "device":
        return value.startswith(_PLACES) and bool(_NAME.fullmatch(value))
    return bool(_VERSION.fullmatch(value) or (name in _WORDS | _MODELS and _NAME.fullmatch(value)))
