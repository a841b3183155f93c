"""What becomes of a file, and how far it is: the words in which the indexer speaks to its callers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from specrag.ingest.ocr import warning as by_ocr
from specrag.types import Document

Status: TypeAlias = Literal["ready", "duplicate", "failed"]
Progress: TypeAlias = Callable[[str, int, int], None]
"""Called as (stage, done, total); the stages are "reading" (pages) and "embedding" (chunks)."""
_FEW = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResult:
    """What became of one file."""

    path: Path
    name: str
    status: Status
    document_id: str | None = None
    pages: int = 0
    chunks: int = 0
    encoding: str | None = None
    seconds: float = 0.0
    error: str | None = None
    """A sentence for a person, if the status is "failed"."""
    reason: str | None = None
    """The stable word of a failure: that of `DocumentError`, "cancelled", or the kind of the error."""
    warning: str | None = None
    """A sentence about a file that is ready, but not all of it."""
    replaced: tuple[str, ...] = ()
    """Ids of the older documents of the same name that were removed for it."""


def silent(_stage: str, _done: int, _total: int) -> None:
    """The listener of someone who does not care."""


def warning_of(document: Document) -> str | None:
    """Pages that OCR has read, and pages that hold no text; an empty sheet or slide is nothing to tell."""
    return " ".join(filter(None, (by_ocr(document.encoding), _without_text(document)))) or None


def _without_text(document: Document) -> str | None:
    empty = [str(page.number) for page in document.pages if not page.text.strip()]
    if not empty or document.media_type != "application/pdf":
        return None
    listed = ", ".join(empty[:_FEW]) + (" and others" if len(empty) > _FEW else "")
    return (
        f"{len(empty)} of {len(document.pages)} pages have no text (page {listed}); if they are scans, OCR"
        " reads them (requirements-ocr.txt)."
    )
