"""Endpoints of the documents of a collection: list, add, delete, and how far uploads are."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from gradio.utils import get_upload_folder

from specrag.build import Parts
from specrag.errors import SpecragError, StoreError, UsageError
from specrag.ingest.jobs.state import JobState
from specrag.library.library import documents_of
from specrag.library.visitors import Visitor

MOST_FILES: Final = 100
_NAME_LENGTH: Final = 255


def documents(parts: Parts, who: Visitor, collection: str = "sample") -> list[dict[str, Any]]:
    """The documents of a collection, by its name or title, newest first.

    Example: `Client(url).predict("sample", api_name="/documents")[0]["id"]`.
    """
    name = parts.library.find(who, collection)
    parts.library.touch(who, name)
    return [asdict(document) for document in documents_of(parts.store, name)]


def add_documents(  # noqa: PLR0917 - gradio passes what a program names
    parts: Parts,
    who: Visitor,
    files: list[dict[str, Any]],
    collection: str | None = None,
    replace: bool = False,
    password: str = "",
) -> list[dict[str, Any]]:
    """Add files to a collection, to your first one if none is named; returns one state for each file.

    Example: `Client(url).predict([handle_file("rules.pdf")], api_name="/add_documents")[0]["id"]`.

    Files are read in the background: `/documents_status` says how far they are. With `replace` older
    documents of the same file name are deleted when the new one is ready. `password`: of files that have one.
    """
    if not 1 <= len(files) <= MOST_FILES:
        raise UsageError(f"1 to {MOST_FILES} files can be added at once, and there are {len(files)}.")
    paths = [uploaded(file) for file in files]
    try:
        name = _place(parts, who, collection)
        parts.library.check_writable(who, name)
        parts.library.touch(who, name)
        return [
            _submitted(parts, who, name, path, _name(file, path), replace=replace, password=password)
            for file, path in zip(files, paths, strict=True)
        ]
    finally:
        for path in paths:  # gradio's copies, which anybody could fetch by their address
            path.unlink(missing_ok=True)


def documents_status(parts: Parts, who: Visitor, collection: str | None = None) -> list[dict[str, Any]]:
    """The files that were added to a collection lately, newest first, and how far each is.

    Example: `Client(url).predict(api_name="/documents_status")[0]["state"]`.

    `state`: queued, reading, embedding, ready, duplicate, failed or cancelled; `message` says why.
    """
    name = _place(parts, who, collection)
    parts.library.check_readable(who, name)
    return [_told(job) for job in parts.jobs.jobs(name)]


def document(
    parts: Parts, who: Visitor, document_id: str, collection: str = "sample"
) -> list[dict[str, Any]]:
    """The text of a document, in the chunks that it was cut into, with page and section.

    Example: `Client(url).predict("0123456789abcdef", "My papers", api_name="/document")[0]["text"]`.
    """
    name = parts.library.find(who, collection)
    parts.store.document(name, document_id)
    return [asdict(chunk) for chunk in parts.store.chunks(name, document_id)]


def retry_documents(
    parts: Parts, who: Visitor, ids: list[str], collection: str | None = None, password: str = ""
) -> int:
    """Read files again that have failed or were cancelled; returns how many.

    Example: `Client(url).predict(["0123456789ab"], password="secret", api_name="/retry_documents")`.

    `ids` are those of `/documents_status`; a file whose state has `retryable` is still here.
    """
    found = _jobs(parts, who, ids, collection)
    for job in found:
        parts.jobs.retry(job.id, password=password or None)
    return len(found)


def dismiss_documents(parts: Parts, who: Visitor, ids: list[str], collection: str | None = None) -> int:
    """Take files that have ended off the list of `/documents_status`; returns how many were found.

    Example: `Client(url).predict(["0123456789ab"], api_name="/dismiss_documents")`.
    """
    found = _jobs(parts, who, ids, collection)
    for job in found:
        parts.jobs.dismiss(job.id)
    return len(found)


def cancel_documents(parts: Parts, who: Visitor, ids: list[str], collection: str | None = None) -> int:
    """Stop files that are on their way into a collection; returns how many were found.

    Example: `Client(url).predict(["0123456789ab"], api_name="/cancel_documents")`.

    `ids` are those of `/documents_status`.
    """
    found = _jobs(parts, who, ids, collection)
    for job in found:
        parts.jobs.cancel(job.id)
    return len(found)


def delete_documents(parts: Parts, who: Visitor, ids: list[str], collection: str | None = None) -> int:
    """Delete documents of a collection; returns how many. Nothing of them can be found any more.

    Example: `Client(url).predict(["0123456789ab"], "My papers", api_name="/delete_documents")`.

    `ids` are those of `/documents`.
    """
    name = _place(parts, who, collection)
    parts.library.check_writable(who, name)
    there = {document.id for document in documents_of(parts.store, name)}
    missing = next((identity for identity in ids if identity not in there), None)
    if missing is not None:
        raise StoreError(f"There is no document {missing[:40]} in this collection; nothing was deleted.")
    for identity in dict.fromkeys(ids):
        parts.library.delete_document(who, name, identity)
    return len(set(ids))


ENDPOINTS: Final = (
    documents,
    document,
    add_documents,
    documents_status,
    cancel_documents,
    retry_documents,
    dismiss_documents,
    delete_documents,
)


def _place(parts: Parts, who: Visitor, collection: str | None) -> str:
    """The name of a collection; that of somebody's first one if none is named."""
    return parts.library.default(who) if collection is None else parts.library.find(who, collection)


def _jobs(parts: Parts, who: Visitor, ids: list[str], collection: str | None) -> list[JobState]:
    """The uploads of these ids into a collection that they may change."""
    name = _place(parts, who, collection)
    parts.library.check_writable(who, name)
    return [job for job in parts.jobs.jobs(name) if job.id in set(ids)]


def _submitted(
    parts: Parts, who: Visitor, name: str, path: Path, shown: str, *, replace: bool, password: str
) -> dict[str, Any]:
    """Queue a file; one that is refused is told like one that failed, so that the others go on."""
    try:
        job = parts.jobs.submit(path, shown, name, owner=who.id, replace=replace, password=password or None)
    except SpecragError as error:
        return {"id": None, "name": shown, "state": "failed", "message": str(error)}
    return next((_told(state) for state in parts.jobs.jobs(name) if state.id == job), {"id": job})


def _told(job: JobState) -> dict[str, Any]:
    """A job as its collection's reader may see it; who brought it stays here."""
    return {name: value for name, value in asdict(job).items() if name != "owner"}


def uploaded(file: dict[str, Any]) -> Path:
    """Where gradio has put a file that came with this call.

    A program can write any path into its request, and gradio looks only at what says that it is a file.

    Raises:
        UsageError: it is not a file that was uploaded.
    """
    meta, path = file.get("meta"), file.get("path")
    known = isinstance(meta, dict) and meta.get("_type") == "gradio.FileData" and isinstance(path, str)
    if known and isinstance(path, str) and "\x00" not in path:
        place = Path(path).resolve()
        if place.is_file() and place.is_relative_to(Path(get_upload_folder()).resolve()):
            return place
    raise UsageError("Files are uploaded with the call; wrap each path in handle_file of gradio_client.")


def _name(file: dict[str, Any], path: Path) -> str:
    """The file's name as its owner knows it; never a path."""
    name = file.get("orig_name")
    return (
        Path(name.replace("\\", "/")).name[:_NAME_LENGTH] or path.name if isinstance(name, str) else path.name
    )
