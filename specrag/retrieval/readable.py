"""How much of a question the embedder can read, by its own tokenizer.

An embedder has learnt the languages whose words its tokenizer keeps in one or a few pieces. What falls apart
into single letters, or is unknown, it has hardly seen, and a similarity of such vectors says little; then the
words count more. Nothing here knows a language: another embedder reads other questions.
"""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Span = tuple[int, int]


class Readability:
    """Tells it by a `tokenizer.json`."""

    def __init__(self, tokenizer_file: Path) -> None:
        from tokenizers import Tokenizer

        self._tokenizer: Tokenizer = Tokenizer.from_file(str(tokenizer_file))
        # files come with the padding and the cuts of the training
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._unknown = _unknown(self._tokenizer.model, self._tokenizer)

    def of(self, text: str) -> float:
        """Share of the letters that are read as words or parts of words, in [0, 1]; 1 if there are none."""
        clean = text.encode("utf-8", "replace").decode()
        total = _letters(clean)
        encoding = self._tokenizer.encode(clean, add_special_tokens=False)
        spans: list[Span] = [(start, end) for start, end in encoding.offsets]
        # bytes of one letter share its place, so the letter itself is not known
        shared = Counter(spans)
        read = sum(
            _letters(clean[start:end])
            for identity, (start, end) in zip(encoding.ids, spans, strict=True)
            if identity != self._unknown and shared[start, end] == 1 and _is_word(clean, start, end)
        )
        return min(1.0, read / total) if total else 1.0


def _is_word(text: str, start: int, end: int) -> bool:
    """Whether a piece is more than one letter out of a word; a Chinese character is a word."""
    if _letters(text[start:end]) != 1:
        return True
    at = next(at for at in range(start, end) if text[at].isalpha())
    alone = not (text[at - 1 : at].isalpha() or text[at + 1 : at + 2].isalpha())
    return alone or _is_han(text[at])


def _is_han(character: str) -> bool:
    return "\u3400" <= character <= "\u9fff" or "\U00020000" <= character <= "\U0003ffff"


def _letters(text: str) -> int:
    return sum(character.isalpha() for character in text)


def _unknown(model: Any, tokenizer: "Tokenizer") -> int | None:
    """The id of the token for what is not in the vocabulary, if there is one."""
    name = getattr(model, "unk_token", None) or "<unk>"
    found: int | None = tokenizer.token_to_id(name)
    return found
