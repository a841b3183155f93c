"""A document becomes chunks: a few sentences each, counted in the embedder's own tokens.

semantic-text-splitter (Rust) finds the places to cut: paragraphs, then sentence ends of all scripts, then
words. It is helped twice. Headings are glued to what follows, by splitting a shadow of the text, exactly as
long as the text itself, in which the break after a heading is weaker. And a scrap at the end of a page does
not stand alone: the last two pieces are divided anew.

What the embedder cannot see it cannot find, so the limit is hard, in tokens and also in characters: scripts
that a tokenizer does not know count as one token however long they are.

Every chunk notes where it begins and what white space stood before it, so that the text can be put together
again (`rebuilt`), and what it stands under: its heading, and the header row of a table that it continues.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from specrag.ingest.chunks.context import Context
from specrag.ingest.chunks.rebuilding import rebuilt
from specrag.types import Chunk, Document, Page

if TYPE_CHECKING:
    from semantic_text_splitter import TextSplitter

__all__ = ["Chunker", "rebuilt"]

Span: TypeAlias = tuple[int, int]

_CHARACTERS_PER_TOKEN = 8
_SCRAP = 6
"""A last piece of less than this share (one sixth) of a chunk is a scrap."""
_HEADING = re.compile(r"#{1,6} .*|(?!.*[.!?\u2026\u3002\uff01\uff1f\u061f\u0964]$).{1,80}")
"""A short line that does not end as a sentence does."""
_PARAGRAPH = 81
_MARKS = (
    *("\n\n", "\n", ". ", "! ", "? "),
    *("\u3002", "\uff01", "\uff1f", "\u0964 ", "\u061f ", "\u06d4 ", " "),
)
"""Where a block may end, the best place first: paragraphs, lines, sentences of several scripts, words."""
_BLOCK = 8192
"""The splitter's time grows with the square of a paragraph, so no more than this is given to it at once."""
_VERSION = 2
_DIGEST = 6
"""Digits of a hash that tell two texts, or two tokenizers, apart."""
_JOINER = "\u200d"
_LONGEST_CHARACTER = 64
"""Code points that a visible character may have; what is longer is cut."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of a page that becomes a chunk."""

    start: int
    text: str
    gap: str


class Chunker:
    """Splits documents. Immutable, and safe to share between threads."""

    def __init__(self, tokenizer_file: Path, *, tokens: int, overlap: int) -> None:
        """Load the tokenizer.

        Args:
            tokenizer_file: the `tokenizer.json` of the embedder.
            tokens: the hard limit of a chunk, special tokens not counted.
            overlap: tokens that neighbours share, at most.
        """
        from semantic_text_splitter import TextSplitter
        from tokenizers import Tokenizer

        self.tokens = tokens
        self.overlap = overlap
        content = tokenizer_file.read_bytes()
        self._digest = hashlib.sha256(content).hexdigest()[:_DIGEST]
        self._tokenizer = Tokenizer.from_buffer(content)
        # As shipped, many tokenizers cut or pad to the model's window, and then every count is wrong.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        # Made once: the splitter copies the tokenizer, which takes longer than splitting a few pages.
        self._splitter = TextSplitter.from_huggingface_tokenizer(self._tokenizer, tokens, overlap)

    @property
    def fingerprint(self) -> str:
        """Names the way of chunking; equal for equal chunks."""
        return f"chunks-v{_VERSION}-{self.tokens}-{self.overlap}-{self._digest}"

    def chunk(self, document: Document) -> list[Chunk]:
        """The chunks of all pages in order. A chunk never crosses a page, and none is empty."""
        return list(self.each(document))

    def each(self, document: Document) -> Iterator[Chunk]:
        """The same, one after the other, for whoever may want to stop in between."""
        position = 0
        for part, page in enumerate(document.pages):
            context = Context(page)
            for piece in self._pieces(page):
                yield _chunk(document, page, context, piece, part=part, position=position)
                position += 1

    def count(self, text: str) -> int:
        """Tokens of `text` without special tokens."""
        return len(self._tokenizer.encode(text, add_special_tokens=False))

    def _pieces(self, page: Page) -> Iterator[_Piece]:
        reached = offset = 0
        for block in _blocks(page.text):
            for start, end in self._without_scrap(block, self._spans(block)):
                text = block[start:end].strip()
                begin = offset + block.index(text, start) if text else 0
                if begin + len(text) > reached:
                    yield _Piece(begin, text, page.text[reached:begin])
                    reached = begin + len(text)
            offset += len(block)

    def _spans(self, text: str) -> list[Span]:
        return self._hard(text, _split(self._splitter, _shadow(text)))

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
        from semantic_text_splitter import TextSplitter

        if len(spans) < 2 or self.count(text[slice(*spans[-1])]) * _SCRAP >= self.tokens:  # noqa: PLR2004 - a pair
            return spans
        start, end = spans[-2][0], spans[-1][1]
        total = self.count(text[start:end])
        if total <= self.tokens:
            short = end - start <= self.tokens * _CHARACTERS_PER_TOKEN
            return [*spans[:-2], (start, end)] if short else spans
        half = TextSplitter.from_callback(self.count, min(self.tokens, total * 2 // 3))
        halves = _split(half, text[start:end])
        if len(halves) != 2:  # noqa: PLR2004
            return spans
        return [*spans[:-2], *self._hard(text, [(start + first, start + last) for first, last in halves])]


def _chunk(
    document: Document, page: Page, context: Context, piece: _Piece, *, part: int, position: int
) -> Chunk:
    digest = hashlib.sha256(piece.text.encode("utf-8", "replace")).hexdigest()[:_DIGEST]
    return Chunk(
        id=f"{document.id}-{position:05d}-{digest}",
        document_id=document.id,
        title=document.title,
        source=document.source,
        text=piece.text,
        position=position,
        page=page.number,
        published_at=document.published_at,
        section=context.section(piece.start),
        lead=context.lead(piece.start),
        part=part,
        start=piece.start,
        gap=piece.gap,
    )


def _blocks(text: str) -> Iterator[str]:
    """The text in parts of a bounded size, cut at the best place in the second half of each."""
    start = 0
    while len(text) - start > _BLOCK:
        half, full = start + _BLOCK // 2, start + _BLOCK
        cuts = (text.rfind(mark, half, full) + len(mark) for mark in _MARKS if mark in text[half:full])
        end = _between_characters(text, next(cuts, full))
        yield text[start:end]
        start = end
    yield text[start:]


def _between_characters(text: str, place: int) -> int:
    """The nearest place at or before `place` that is not within a visible character, if one is near."""
    for at in range(place, max(0, place - _LONGEST_CHARACTER), -1):
        if not _joined(text[at - 1], text[at]):
            return at
    return place


def _joined(before: str, after: str) -> bool:
    """Whether two code points are seen as one character: marks, joined or toned emoji, flags, Hangul."""
    if _JOINER in (before, after) or unicodedata.category(after) in ("Mn", "Mc", "Me"):
        return True
    tone = "\U0001f3fb" <= after <= "\U0001f3ff"
    flag = all("\U0001f1e6" <= char <= "\U0001f1ff" for char in (before, after))
    jamo = "\u1100" <= before <= "\u11ff" and "\u1160" <= after <= "\u11ff"
    return tone or flag or jamo


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
