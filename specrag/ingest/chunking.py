"""A document becomes chunks: a few sentences each, counted in the embedder's own tokens.

semantic-text-splitter (Rust) finds the places to cut: paragraphs, then sentence ends of all scripts, then
words. It is helped twice. Headings are glued to what follows, by splitting a shadow of the text, exactly as
long as the text itself, in which the break after a heading is weaker. And a scrap at the end of a page does
not stand alone: the last two pieces are divided anew.

What the embedder cannot see it cannot find, so the limit is hard, in tokens and also in characters: scripts
that a tokenizer does not know count as one token however long they are.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from specrag.types import Chunk, Document

if TYPE_CHECKING:
    from semantic_text_splitter import TextSplitter

Span: TypeAlias = tuple[int, int]

_CHARACTERS_PER_TOKEN = 8
_SCRAP = 6
"""A last piece of less than this share (one sixth) of a chunk is a scrap."""
_HEADING = re.compile(r"#{1,6} .*|(?!.*[.!?\u2026\u3002\uff01\uff1f\u061f\u0964]$).{1,80}")
"""A short line that does not end as a sentence does."""
_PARAGRAPH = 81
_MARKS = ("\n\n", "\n", ". ", "\u3002", " ")
_BLOCK = 8192
"""The splitter's time grows with the square of a paragraph, so no more than this is given to it at once."""
_VERSION = 1


class Chunker:
    """Splits documents. Immutable, and safe to share between threads."""

    def __init__(self, tokenizer_file: Path, *, tokens: int, overlap: int) -> None:
        """Load the tokenizer.

        Args:
            tokenizer_file: the `tokenizer.json` of the embedder.
            tokens: the hard limit of a chunk, special tokens not counted.
            overlap: tokens that neighbours share, at most.
        """
        from tokenizers import Tokenizer

        self.tokens = tokens
        self.overlap = overlap
        self._tokenizer = Tokenizer.from_file(str(tokenizer_file))
        # As shipped, many tokenizers cut or pad to the model's window, and then every count is wrong.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    @property
    def fingerprint(self) -> str:
        """Names the way of chunking; equal for equal chunks."""
        return f"chunks-v{_VERSION}-{self.tokens}-{self.overlap}"

    def chunk(self, document: Document) -> list[Chunk]:
        """The chunks of all pages in order. A chunk never crosses a page, and none is empty."""
        pieces = ((page, text) for page in document.pages for text in self._texts(page.text))
        return [
            Chunk(
                id=f"{document.id}-{position:05d}",
                document_id=document.id,
                title=document.title,
                source=document.source,
                text=text,
                position=position,
                page=page.number,
                published_at=document.published_at,
            )
            for position, (page, text) in enumerate(pieces)
        ]

    def count(self, text: str) -> int:
        """Tokens of `text` without special tokens."""
        return len(self._tokenizer.encode(text, add_special_tokens=False))

    def _texts(self, text: str) -> Iterator[str]:
        for block in _blocks(text):
            for start, end in self._without_scrap(block, self._spans(block)):
                piece = block[start:end].strip()
                if piece:
                    yield piece

    def _spans(self, text: str) -> list[Span]:
        return self._hard(text, _split(self._splitter(self.tokens, self.overlap), _shadow(text)))

    def _hard(self, text: str, spans: Sequence[Span]) -> list[Span]:
        """Spans that are still too long, cut by characters."""
        from semantic_text_splitter import TextSplitter

        limit = self.tokens * _CHARACTERS_PER_TOKEN
        fitting: list[Span] = []
        for start, end in spans:
            if end - start <= limit and self.count(text[start:end]) <= self.tokens:
                fitting.append((start, end))
                continue
            size = min(limit, max(1, (end - start) // 2))
            parts = _split(TextSplitter(size), text[start:end])
            fitting += self._hard(text, [(start + first, start + last) for first, last in parts])
        return fitting

    def _without_scrap(self, text: str, spans: list[Span]) -> list[Span]:
        if len(spans) < 2 or self.count(text[slice(*spans[-1])]) * _SCRAP >= self.tokens:  # noqa: PLR2004 - a pair
            return spans
        start, end = spans[-2][0], spans[-1][1]
        total = self.count(text[start:end])
        if total <= self.tokens:
            short = end - start <= self.tokens * _CHARACTERS_PER_TOKEN
            return [*spans[:-2], (start, end)] if short else spans
        halves = _split(self._splitter(min(self.tokens, total * 2 // 3), 0), text[start:end])
        if len(halves) != 2:  # noqa: PLR2004
            return spans
        return [*spans[:-2], *self._hard(text, [(start + first, start + last) for first, last in halves])]

    def _splitter(self, tokens: int, overlap: int) -> "TextSplitter":
        from semantic_text_splitter import TextSplitter

        return TextSplitter.from_huggingface_tokenizer(self._tokenizer, tokens, overlap)


def _blocks(text: str) -> Iterator[str]:
    """The text in parts of a bounded size, cut at the best place in the second half of each."""
    start = 0
    while len(text) - start > _BLOCK:
        half, full = start + _BLOCK // 2, start + _BLOCK
        cuts = (text.rfind(mark, half, full) + len(mark) for mark in _MARKS if mark in text[half:full])
        end = next(cuts, full)
        yield text[start:end]
        start = end
    yield text[start:]


def _shadow(text: str) -> str:
    """The text with weaker breaks after headings: blanks before a paragraph, one line break before a list."""
    parts = re.split(r"(\n+)", text)
    glued = False
    for at in range(len(parts) - 3, -1, -2):  # backwards: is the next heading glued?
        line, breaks, after = parts[at : at + 3]
        heading = _HEADING.fullmatch(line) is not None and bool(after)
        alone = len(breaks) > 1 or line.startswith("#")
        glued = heading and (len(after) >= _PARAGRAPH or (glued and alone))
        if glued:
            parts[at + 1] = " " * len(breaks)
        elif heading:
            parts[at + 1] = " " * (len(breaks) - 1) + "\n"
    return "".join(parts)


def _split(splitter: "TextSplitter", text: str) -> list[Span]:
    return [(start, start + len(piece)) for start, piece in splitter.chunk_indices(text)]
