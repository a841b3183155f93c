"""What an evaluation asks: a question with its accepted answers and its passages, and what a system may see.

A file may tell everything about the right answer. A system is handed `Seen` values only, whose ids follow
from their texts, so that neither a field nor an id nor a name can tell it which passage is the right one.
"""

import hashlib
from dataclasses import dataclass
from typing import Literal, TypeAlias

from specrag.types import Exchange

Kind: TypeAlias = Literal["short", "yes-no", "long", "unanswerable"]
"""How an answer is judged: by words, by yes or no, by overlap with a text, or by saying there is none."""

TRUE_WORDS = frozenset({"yes", "true", "correct"})
FALSE_WORDS = frozenset({"no", "false", "incorrect"})
_LONG_TASKS = frozenset({"long_form_qa", "multi_turn_qa"})
_LONG_WORDS = 15
"""Accepted answers of so many words on the average are texts, which nobody repeats word by word."""
_CLAIMS = "fact_verification"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A passage as a system sees it."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question of a file."""

    id: str
    question: str
    answers: tuple[str, ...]
    """Accepted answers; empty means that the right response is to say that the passages do not answer."""
    passages: tuple[Seen, ...]
    gold: frozenset[str] = frozenset()
    """Ids of the passages that carry the evidence."""
    task: str = ""
    all_required: bool = False
    """Whether every accepted answer has to be said, as where sources disagree."""
    earlier: tuple[Exchange, ...] = ()
    """The conversation before it."""

    @property
    def asked(self) -> str:
        """The words that are asked; a claim is asked for its truth."""
        if self.task == _CLAIMS and not self.question.rstrip().endswith("?"):
            return f"Is this claim true or false? {self.question}"
        return self.question

    @property
    def kind(self) -> Kind:
        """How its answers are judged."""
        if not self.answers:
            return "unanswerable"
        words = [answer.split() for answer in self.answers]
        if all(len(one) == 1 and one[0].casefold() in TRUE_WORDS | FALSE_WORDS for one in words):
            return "yes-no"
        mean = sum(map(len, words)) / len(words)
        return "long" if self.task in _LONG_TASKS or mean >= _LONG_WORDS else "short"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """The questions of one file."""

    name: str
    sha256: str
    """Of the file."""
    questions: tuple[Question, ...]
    form: str = ""
    """How the file was read; the same file read otherwise asks other questions."""
    left_out: int = 0
    """Questions without any passage, which no system could be asked."""


def seen(title: str, text: str) -> Seen:
    """A passage under an id that follows from what it says."""
    digest = hashlib.sha256(f"{title}\n{text}".encode("utf-8", "replace")).hexdigest()
    return Seen(id=f"p{digest[:16]}", title=title, text=text)
