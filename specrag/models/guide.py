"""The guided template as a small state machine over text: where its lines end, whoever decodes.

A line ends at a newline, at the end-of-turn token, after its sentences, or at its token limit; an exact one
at its limit alone. A line that says nothing yet ("The answer is:") should not end, and one that answers a
question should not begin by asking it again: whoever decodes then looks for the likeliest token that goes on,
since a small model would rather do just that.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from specrag.models.base import End, Line, Piece
from specrag.sentences import is_abbreviated, sentences
from specrag.text import is_hollow

Ending: TypeAlias = Literal["before", "newline", "limit"]
"""Why a line is over: before this token, at a newline inside it, or because it may take no more."""

_TERMINATORS = (".", "!", "?", "…", "。", "！", "？")  # noqa: RUF001 - full-width ones
_MIN_WORDS = 3
"""Fewer words ("Yes.", "St.") do not make a sentence."""
_LIST_NUMBER = re.compile(r"(^|\s)\d{1,2}\.$")
"""A full stop after such a number more often begins a list than ends a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of a token: the piece that it adds, if it is taken, and whether its line is over."""

    piece: Piece | None
    ending: Ending | None


class Guide:
    """Follows one draft through its lines."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = list(lines)
        self._number = 0
        self._shown = ""
        self._tokens = 0
        self._count = 0
        self._cut = False

    @property
    def done(self) -> bool:
        """Whether all lines are written."""
        return self._number >= len(self._lines)

    @property
    def line(self) -> Line:
        """The line that is being written."""
        return self._lines[self._number]

    @property
    def shown(self) -> str:
        """The text of the line so far."""
        return self._shown

    @property
    def left(self) -> int:
        """Tokens that the line may still take."""
        return self.line.max_tokens - self._tokens

    @property
    def hollow(self) -> bool:
        """Whether the line says nothing yet, and should; what an exact one says is of no interest."""
        return not self.line.exact and is_hollow(self._shown)

    def passes_over(self, text: str, *, ends: bool = False) -> bool:
        """Whether a likelier token is not taken while the line is hollow: it ends it, or asks again."""
        if ends or "\n" in text:
            return True
        return not self._shown.strip() and text.strip().casefold() in self.line.not_first

    @property
    def end(self) -> End:
        """The end of a draft whose lines are all written."""
        return End(finish_reason="length" if self._cut else "stop", completion_tokens=self._count)

    @property
    def written(self) -> int:
        """Tokens taken in all lines."""
        return self._count

    def take(self, text: str, logprob: float, *, ends: bool = False) -> Taken:
        """Take the next token: the text that it adds to the line, and whether it ends the turn."""
        if self.line.exact:
            return self._add(text, logprob, newline=False)
        head, newline, _ = text.partition("\n")
        if ends or self._is_complete(head) or (newline and not head):
            return self._over(None, "before")
        return self._add(head, logprob, newline=bool(newline))

    def _add(self, head: str, logprob: float, *, newline: bool) -> Taken:
        self._shown += head
        self._tokens += 1
        self._count += 1
        piece = Piece(part=self.line.part, text=head, logprob=min(logprob, 0.0))
        if newline:
            return self._over(piece, "newline")
        if self.left <= 0:
            self._cut = True
            return self._over(piece, "limit")
        return Taken(piece=piece, ending=None)

    def _over(self, piece: Piece | None, ending: Ending) -> Taken:
        self._number += 1
        self._shown, self._tokens = "", 0
        return Taken(piece=piece, ending=ending)

    def _is_complete(self, following: str) -> bool:
        """Whether the line has its sentences: the next token would begin another one."""
        wanted = self.line.sentences
        shown = self._shown.rstrip()
        if wanted is None or not following[:1].isspace() or not shown.endswith(_TERMINATORS):
            return False
        if _LIST_NUMBER.search(shown) or is_abbreviated(shown, following):
            return False
        done = [part for part in sentences(self._shown) if len(part.split()) >= _MIN_WORDS]
        return len(done) >= wanted


def label_after(ending: Ending, line: Line) -> str:
    """What the template puts before `line`: its label, behind a newline unless the last token held one."""
    return line.label if ending == "newline" else f"\n{line.label}"
