"""A document from a file of somebody else: refused where it contradicts itself, else cleaned. Pure.

A document that was exported by this program comes through unchanged, so a collection that is imported and
exported again gives the same file.
"""

import re
from dataclasses import replace
from datetime import date
from typing import Final

from specrag.config import Settings
from specrag.ingest.text import clean_name
from specrag.library.exchange import Packed
from specrag.library.exchange_zip import corrupt
from specrag.library.expiry import moment_of
from specrag.types import Chunk, DocumentInfo

_CHUNK_LENGTH: Final = 20_000
"""Characters of a chunk: more than any setting makes."""
_TITLE_LENGTH: Final = 1000
_OVERLAP: Final = 2
"""Neighbours share text, but never more than half of each."""
_COUNT: Final = 2**53
_CONTROLS: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
_SHAPES: Final = {
    "encoding": re.compile(r"[\w.-]{1,40}"),
    "media_type": re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}"),
    "chunker": re.compile(r"[\w.:/+-]{1,200}"),
}


def cleaned(packed: Packed, document_id: str, settings: Settings) -> Packed:
    """The document as it may be stored.

    Raises:
        DocumentError: it contradicts itself or the limits of the settings.
    """
    info = packed.info
    wrong = _wrong_of(info, document_id, len(packed.chunks), settings) or _wrong_chunk(packed, settings)
    if wrong:
        raise corrupt(f"{wrong} (document {document_id})")
    kept = replace(
        info,
        title=_line(info.title),
        source=clean_name(info.source),
        published_at=_date(info.published_at),
        encoding=_shaped("encoding", info.encoding or "") or None,
        media_type=_shaped("media_type", info.media_type),
        chunker=_shaped("chunker", info.chunker),
    )
    return Packed(info=kept, chunks=tuple(_clean(chunk, kept) for chunk in packed.chunks))


def _wrong_of(info: DocumentInfo, document_id: str, chunks: int, settings: Settings) -> str | None:
    numbers = (info.pages, info.chunks, info.characters, info.bytes)
    if info.id != document_id:
        return "a document has another id than its part"
    if not chunks or info.chunks != chunks:
        return "the number of its chunks is wrong"
    if not all(0 <= number < _COUNT for number in numbers) or moment_of(info.added_at) is None:
        return "a number or a time is wrong"
    if info.pages > settings.max_pages:
        return f"it has more than {settings.max_pages:,} pages, the limit of SPECRAG_MAX_PAGES"
    return None


def _wrong_chunk(packed: Packed, settings: Settings) -> str | None:
    """What is wrong with the chunks, taken one by one and together."""
    if sum(len(chunk.text) for chunk in packed.chunks) > _OVERLAP * settings.max_characters:
        return f"it has more than {settings.max_characters:,} characters, the limit of SPECRAG_MAX_CHARACTERS"
    if len({chunk.id for chunk in packed.chunks}) != len(packed.chunks):
        return "two chunks have the same id"
    ours = re.compile(re.escape(packed.info.id) + r"-[0-9a-z-]{1,64}")
    for position, chunk in enumerate(packed.chunks):
        if chunk.document_id != packed.info.id or not ours.fullmatch(chunk.id):
            return "a chunk belongs to another document"
        if chunk.position != position or not _placed(chunk):
            return "a chunk is out of place"
        if not _clean_text(chunk.text).strip() or not _short(chunk):
            return "a chunk is empty or too long"
    return None


def _placed(chunk: Chunk) -> bool:
    page = 1 if chunk.page is None else chunk.page
    return 1 <= page < _COUNT and 0 <= chunk.part < _COUNT and 0 <= chunk.start < _COUNT


def _short(chunk: Chunk) -> bool:
    texts = (chunk.text, chunk.section or "", chunk.lead or "", chunk.gap)
    return max(map(len, texts)) <= _CHUNK_LENGTH and not chunk.gap.strip()


def _clean(chunk: Chunk, info: DocumentInfo) -> Chunk:
    """What the catalogue says of the document goes for all its chunks."""
    return replace(
        chunk,
        title=info.title,
        source=info.source,
        published_at=info.published_at,
        text=_clean_text(chunk.text),
        section=_line(chunk.section) if chunk.section is not None else None,
        lead=_clean_text(chunk.lead) if chunk.lead is not None else None,
        gap=_clean_text(chunk.gap),
    )


def _clean_text(text: str) -> str:
    return _CONTROLS.sub("", text)


def _line(text: str) -> str:
    return re.sub(r"[\n\t]", " ", _clean_text(text))[:_TITLE_LENGTH]


def _date(text: str | None) -> str | None:
    try:
        date.fromisoformat((text or "")[:10])
    except ValueError:
        return None
    return text if text is not None and re.fullmatch(r"[0-9T:.+Z-]{10,40}", text) else None


def _shaped(field: str, text: str) -> str:
    return text if _SHAPES[field].fullmatch(text) else ""
