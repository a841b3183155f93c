"""One draft while it is decoded in this process: which token it takes and which one is fed, without tensors.

The guide (`guide.py`) tells where a line ends; then the label of the next one is forced, read by the model
and never counted.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from specrag.models.base import Line, Output
from specrag.models.guide import Ending, Guide, label_after

Candidates: TypeAlias = Sequence[tuple[int, float]]
"""Token ids with the natural log of their probability, likeliest first."""


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
        self._guide = Guide(lines)
        self._tokenizer = tokenizer
        self._encode = encode
        self._end_ids = _end_ids(tokenizer)
        self._forced: deque[int] = deque()
        self._written: list[int] = []

    def advance(self, candidates: Candidates, emit: Callable[[tuple[int, Output]], None]) -> int | None:
        """Take the likeliest tokens, best first; return the one to feed, or None when the row is done."""
        if self._forced:
            return self._forced.popleft()
        best, logprob = self._first_that_goes_on(candidates) if self._guide.hollow else candidates[0]
        ends = best in self._end_ids
        taken = self._guide.take("" if ends else self._text_of(best), logprob, ends=ends)
        if taken.piece is not None:
            self._written.append(best)
            emit((self.index, taken.piece))
        if taken.ending is None:
            return best
        return self._end_line(taken.ending, emit, feed=None if taken.piece is None else best)

    def _end_line(
        self, ending: Ending, emit: Callable[[tuple[int, Output]], None], *, feed: int | None
    ) -> int | None:
        """Queue the next label (after `feed`), or end the row."""
        self._written = []
        if self._guide.done:
            emit((self.index, self._guide.end))
            return None
        label = self._encode(label_after(ending, self._guide.line))
        self._forced.extend(label if feed is None else [feed, *label])
        return self._forced.popleft()

    def _first_that_goes_on(self, candidates: Candidates) -> tuple[int, float]:
        """The likeliest token that the guide does not pass over, if there is one among the candidates."""
        for token, logprob in candidates:
            ends = token in self._end_ids
            if not self._guide.passes_over("" if ends else self._text_of(token), ends=ends):
                return token, logprob
        return candidates[0]

    def _text_of(self, token: int) -> str:
        """What `token` adds to the text of the line; empty while a character is incomplete."""
        whole: str = self._tokenizer.decode([*self._written, token])
        return "" if whole.endswith("\ufffd") else whole.removeprefix(self._guide.shown)


def _end_ids(tokenizer: Any) -> frozenset[int]:
    known = (getattr(tokenizer, "eos_token_id", None), getattr(tokenizer, "pad_token_id", None))
    return frozenset(token for token in known if token is not None) | frozenset(tokenizer.all_special_ids)
