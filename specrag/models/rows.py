"""One draft while it is decoded: the guided template as a small state machine, without tensors.

A line ends at a newline, at the end-of-turn token, after its sentences, or at its token limit; then the label
of the next line is forced, read by the model and never counted. A line that says nothing yet ("The answer
is:") goes on with the likeliest token that does not end it, since a small model would rather end its turn.
"""

import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from specrag.models.base import End, Line, Output, Piece
from specrag.text import is_hollow, sentences
from specrag.types import FinishReason

Candidates: TypeAlias = Sequence[tuple[int, float]]
"""Token ids with the natural log of their probability, likeliest first."""

_TERMINATORS = (".", "!", "?", "…", "。", "！", "？")  # noqa: RUF001 - full-width ones
_MIN_WORDS = 3
"""Fewer words ("Yes.", "St.") do not make a sentence."""
_LIST_NUMBER = re.compile(r"(^|\s)\d{1,2}\.$")
"""A full stop after such a number more often begins a list than ends a sentence."""


class Row:
    """Decides for every step what the row feeds next, and emits what it wrote."""

    def __init__(
        self,
        index: int,
        ids: tuple[int, ...],
        lines: Sequence[Line],
        *,
        tokenizer: Any,
        encode: Callable[[str], list[int]],
    ) -> None:
        self.index = index
        self.ids = ids
        self._lines = list(lines)
        self._tokenizer = tokenizer
        self._encode = encode
        self._end_ids = _end_ids(tokenizer)
        self._forced: deque[int] = deque()
        self._line = 0
        self._written: list[int] = []
        self._shown = ""
        self._count = 0
        self._cut = False

    def advance(  # noqa: PLR0911 - one return for each way a line goes on
        self, candidates: Candidates, emit: Callable[[tuple[int, Output]], None]
    ) -> int | None:
        """Take the likeliest tokens, best first; return the one to feed, or None when the row is done."""
        if self._forced:
            return self._forced.popleft()
        best, logprob = self._first_that_goes_on(candidates) if is_hollow(self._shown) else candidates[0]
        if best in self._end_ids:
            return self._end_line(emit, newline="\n")
        head, newline, _ = self._text_of(best).partition("\n")
        if self._is_complete(head):
            return self._end_line(emit, newline="\n")
        if newline and not head:
            return self._end_line(emit, newline="\n")
        self._written.append(best)
        self._shown += head
        self._count += 1
        part = self._lines[self._line].part
        emit((self.index, Piece(part=part, text=head, logprob=min(logprob, 0.0))))
        if newline:  # the token holds text and its newline: it is read, the label follows at once
            return self._end_line(emit, newline="", feed=best)
        if len(self._written) >= self._lines[self._line].max_tokens:
            self._cut = True
            return self._end_line(emit, newline="\n", feed=best)
        return best

    def _end_line(
        self, emit: Callable[[tuple[int, Output]], None], *, newline: str, feed: int | None = None
    ) -> int | None:
        """Queue the next label (after `feed`), or end the row."""
        self._line += 1
        self._written, self._shown = [], ""
        if self._line >= len(self._lines):
            reason: FinishReason = "length" if self._cut else "stop"
            emit((self.index, End(finish_reason=reason, completion_tokens=self._count)))
            return None
        label = self._encode(newline + self._lines[self._line].label)
        self._forced.extend(label if feed is None else [feed, *label])
        return self._forced.popleft()

    def _first_that_goes_on(self, candidates: Candidates) -> tuple[int, float]:
        """The likeliest token that does not end the line, if there is one among the candidates."""
        for token, logprob in candidates:
            if token not in self._end_ids and "\n" not in self._text_of(token):
                return token, logprob
        return candidates[0]

    def _is_complete(self, following: str) -> bool:
        """Whether the line has its sentences: the next token would begin another one."""
        wanted = self._lines[self._line].sentences
        shown = self._shown.rstrip()
        if wanted is None or not following[:1].isspace() or not shown.endswith(_TERMINATORS):
            return False
        if _LIST_NUMBER.search(shown):
            return False
        done = [part for part in sentences(self._shown) if len(part.split()) >= _MIN_WORDS]
        return len(done) >= wanted

    def _text_of(self, token: int) -> str:
        """What `token` adds to the text of the line; empty while a character is incomplete."""
        whole: str = self._tokenizer.decode([*self._written, token])
        return "" if whole.endswith("\ufffd") else whole.removeprefix(self._shown)


def _end_ids(tokenizer: Any) -> frozenset[int]:
    known = (getattr(tokenizer, "eos_token_id", None), getattr(tokenizer, "pad_token_id", None))
    return frozenset(token for token in known if token is not None) | frozenset(tokenizer.all_special_ids)
