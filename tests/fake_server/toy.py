"""The model behind the fake server: a tokenizer of bytes and a few words, and a script that it writes.

Every token has an id that never changes, so a draft that begins on one server can go on upon another. The
probabilities follow from the text before a token and the token, so reading a draft gives exactly the values
that writing it gave, as with a real model.
"""

import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from specrag import prompts
from specrag.types import Part
from tests.toys import PAGES

Script: TypeAlias = Callable[[str], Mapping[Part, str]]
"""From the text of a prompt to what the model writes after each label, each with the space before it."""

SPECIALS: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
START: Final = 1
END: Final = 2
_FIRST_BYTE: Final = len(SPECIALS)
_FIRST_WORD: Final = _FIRST_BYTE + 256
_SYSTEM: Final = "You are a helpful assistant."
_OPEN: Final = b"<|im_start|>assistant\n"
_LABELS: Final[Mapping[bytes, tuple[Part, bytes | None]]] = {
    prompts.RATIONALE_LABEL.encode(): ("rationale", prompts.ANSWER_LABEL.encode()),
    prompts.ANSWER_LABEL.encode(): ("answer", None),
    prompts.NOTE_LABEL.encode(): ("note", prompts.QUERY_LABEL.encode()),
    prompts.QUERY_LABEL.encode(): ("query", None),
    prompts.SYNTHESIS_LABEL.encode(): ("answer", None),
}
"""Label to the part behind it and the label that the model would write next, if it were left alone."""


def _words() -> tuple[str, ...]:
    """Whole words of the toy pages and of our prompts, and a full stop that brings its newline along."""
    text = " ".join(
        (
            *(f"{title} {page}" for title, page in PAGES),
            *(
                value
                for name, value in vars(prompts).items()
                if isinstance(value, str) and "\x00" not in value and not name.startswith("__")
            ),
            "Question Yes No yes no user assistant system",
        )
    )
    bare = set(re.findall(r"\w+", text))
    return (".\n", "\n\n", *sorted(bare | {f" {word}" for word in bare}))


class Vocabulary:
    """Text to ids and back. Longest word first, and single bytes where no word fits."""

    def __init__(self) -> None:
        words = _words()
        self._word_ids = {word: _FIRST_WORD + place for place, word in enumerate(words)}
        self._bytes = (
            *(special.encode() for special in SPECIALS),
            *(bytes([value]) for value in range(256)),
            *(word.encode() for word in words),
        )
        longest_first = sorted(words, key=len, reverse=True)
        self._pieces = re.compile("|".join(map(re.escape, longest_first)) + r"|.", re.DOTALL)
        self._specials = re.compile("(" + "|".join(map(re.escape, SPECIALS)) + ")")

    @property
    def size(self) -> int:
        """How many ids there are, from 0."""
        return len(self._bytes)

    def encode(self, text: str) -> list[int]:
        """Ids of a text; like the real tokenizer it turns the names of special tokens into these."""
        ids: list[int] = []
        for part in self._specials.split(text):
            ids += [SPECIALS.index(part)] if part in SPECIALS else self._plain(part)
        return ids

    def bytes_of(self, ids: Sequence[int]) -> bytes:
        """The bytes of the ids, special tokens by their names."""
        return b"".join(self._bytes[id_] for id_ in ids)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids; half a character becomes a replacement mark."""
        return self.bytes_of(ids).decode("utf-8", "replace")

    def chat(self, messages: Sequence[Mapping[str, str]], *, generate: bool, open_end: bool) -> str:
        """ChatML, with the system turn that SmolLM2's template puts before a conversation without one."""
        turns = [(message["role"], message["content"]) for message in messages]
        if turns[0][0] != "system":
            turns.insert(0, ("system", _SYSTEM))
        text = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in turns)
        if open_end:
            text = text.removesuffix("<|im_end|>\n")
        return f"{text}<|im_start|>assistant\n" if generate else text

    def _plain(self, text: str) -> list[int]:
        ids: list[int] = []
        for piece in self._pieces.findall(text):
            word = self._word_ids.get(piece)
            ids += [_FIRST_BYTE + value for value in piece.encode()] if word is None else [word]
        return ids


class Toy:
    """Greedy tokens and log-probabilities of a script."""

    def __init__(self, write: Script, judge: Callable[[str], float]) -> None:
        self.vocabulary = Vocabulary()
        self._write = lru_cache(maxsize=4096)(write)
        self._judge = lru_cache(maxsize=4096)(judge)
        self._yes_no = tuple(self.vocabulary.encode(word)[0] for word in ("Yes", "No"))

    def ranked(self, ids: Sequence[int], *, wanted: Sequence[int] = ()) -> dict[int, float]:
        """Natural log-probabilities of the next token, the likeliest first; of `wanted` only, if given."""
        known = self._known(self.vocabulary.bytes_of(ids))
        last = ids[-1] if ids else 0
        tokens = wanted or range(self.vocabulary.size)
        values = {token: known.get(token, _unlikely(last, token)) for token in tokens}
        return dict(sorted(values.items(), key=lambda item: -item[1]))

    def greedy(self, ids: Sequence[int]) -> int:
        """The likeliest next token."""
        known = self._known(self.vocabulary.bytes_of(ids))
        return max(known, key=known.__getitem__)

    def _known(self, text: bytes) -> dict[int, float]:
        """The tokens that the script makes likely after this text."""
        before, opened, tail = text.rpartition(_OPEN)
        if not opened or b"<|im_end|>" in tail:
            return {END: _likely(text, END)}
        if not tail:
            yes = self._judge(_readable(before))
            values = (math.log(max(0.98 * p, 1e-6)) for p in (yes, 1 - yes))
            return dict(zip(self._yes_no, values, strict=True))
        token = self._next(before, tail)
        return {token: _likely(text, token)}

    def _next(self, before: bytes, tail: bytes) -> int:
        place, label = max((tail.rfind(label), label) for label in _LABELS)
        if place < 0:
            return END
        part, following = _LABELS[label]
        shown = tail[place + len(label) :]
        words = self._write(_readable(before + _OPEN + tail[: place + len(label)])).get(part, "").encode()
        whole = words if following is None else words + b"\n" + following
        if shown == whole or not whole.startswith(shown):
            return END
        rest = whole[len(shown) :]
        if rest[0] & 0xC0 == 0x80:  # in the middle of a character
            return _FIRST_BYTE + rest[0]
        return self.vocabulary.encode(rest.decode())[0]


def _readable(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _likely(text: bytes, token: int) -> float:
    return -0.02 - zlib.crc32(text[-24:] + token.to_bytes(4, "big")) % 97 / 400


def _unlikely(last: int, token: int) -> float:
    return -9.0 - zlib.crc32(last.to_bytes(4, "big") + token.to_bytes(4, "big")) % 97 / 20
