"""Chunks and documents as flat records of a vector database, and back. Pure.

The databases refuse None, NUL and lone surrogates, and Chroma drops a whole batch for one of them; so absent
values are left out, and text is made storable here, in one place. What an older version did not store reads
as absent.

A row is a chunk of one *edition* of a document: each time a document is written, its rows get ids of their
own, so a row never changes, and two writers of the same document never touch each other's. Rows of older
versions of this program have no edition and the chunk's id; their edition is the empty string.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from specrag.types import Chunk, DocumentInfo, Passage

Record: TypeAlias = dict[str, str | int | float | bool]

_SURROGATES = re.compile(r"[\ud800-\udfff]")


def storable(text: str) -> str:
    """Text without NUL and halves of surrogate pairs."""
    return _SURROGATES.sub("\ufffd", text).replace("\0", "")


def row_id(chunk: Chunk, edition: str) -> str:
    """The id of a chunk's row."""
    return f"{chunk.id}@{edition}"


def edition_of(record: Mapping[str, Any]) -> str:
    """The edition that a row or a line belongs to."""
    return str(record.get("edition", ""))


def chunk_record(chunk: Chunk, edition: str) -> Record:
    """Everything of a row but its id and text."""
    return _present(
        chunk_id=chunk.id,
        edition=edition,
        document_id=chunk.document_id,
        title=chunk.title,
        source=chunk.source,
        position=chunk.position,
        page=chunk.page,
        published_at=chunk.published_at,
        section=chunk.section,
        lead=chunk.lead,
        part=chunk.part or None,
        start=chunk.start or None,
        gap=chunk.gap or None,
    )


def to_chunk(row: str, text: str, record: Mapping[str, Any]) -> Chunk:
    """The chunk that was stored as the row of this id."""
    return Chunk(
        id=str(record.get("chunk_id", row)),
        document_id=str(record["document_id"]),
        title=str(record["title"]),
        source=str(record["source"]),
        text=text,
        position=int(record["position"]),
        page=record.get("page"),
        published_at=record.get("published_at"),
        section=record.get("section"),
        lead=record.get("lead"),
        part=int(record.get("part", 0)),
        start=int(record.get("start", 0)),
        gap=str(record.get("gap", "")),
    )


def to_passage(chunk: Chunk, similarity: float) -> Passage:
    """A chunk with its similarity, cut to [0, 1]."""
    return Passage(
        id=chunk.id,
        document_id=chunk.document_id,
        title=chunk.title,
        text=chunk.text,
        page=chunk.page,
        source=chunk.source,
        published_at=chunk.published_at,
        score=min(1.0, max(0.0, similarity)),
        section=chunk.section,
        lead=chunk.lead,
    )


def document_record(collection: str, document: DocumentInfo, edition: str, stamp: int) -> Record:
    """A line of the catalogue."""
    return _present(
        collection=collection,
        edition=edition,
        stamp=stamp,
        document_id=document.id,
        title=document.title,
        source=document.source,
        pages=document.pages,
        chunks=document.chunks,
        added_at=document.added_at,
        published_at=document.published_at,
        encoding=document.encoding,
        media_type=document.media_type or None,
        characters=document.characters or None,
        bytes=document.bytes or None,
        chunker=document.chunker or None,
    )


def to_document(record: Mapping[str, Any]) -> DocumentInfo:
    """The document that a line of the catalogue describes."""
    return DocumentInfo(
        id=str(record["document_id"]),
        title=str(record["title"]),
        source=str(record["source"]),
        pages=int(record["pages"]),
        chunks=int(record["chunks"]),
        added_at=str(record["added_at"]),
        published_at=record.get("published_at"),
        encoding=record.get("encoding"),
        media_type=str(record.get("media_type", "")),
        characters=int(record.get("characters", 0)),
        bytes=int(record.get("bytes", 0)),
        chunker=str(record.get("chunker", "")),
    )


def _present(**values: str | float | None) -> Record:
    return {
        key: storable(value) if isinstance(value, str) else value
        for key, value in values.items()
        if value is not None
    }
