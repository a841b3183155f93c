"""Whatever a person names becomes documents: a file one, an archive one for each file in it.

For those who wait for the end, the command line and `Rag`; uploads of the page go through the queue, where
each file of an archive has its own line.
"""

import tempfile
from dataclasses import replace as changed
from pathlib import Path

from specrag.errors import DocumentError
from specrag.ingest.archive import is_archive, unpack
from specrag.ingest.base import Cancelled, never
from specrag.ingest.index import Indexer
from specrag.ingest.loaders import check_size
from specrag.ingest.results import IngestResult, Progress, silent
from specrag.ingest.text import clean_name


def take(
    indexer: Indexer,
    path: Path,
    name: str,
    collection: str,
    *,
    progress: Progress = silent,
    cancelled: Cancelled = never,
    password: str | None = None,
    replace: bool = False,
) -> list[IngestResult]:
    """Index a file, or every file of an archive; one result for each, whose `path` is what was given.

    A file in an archive is called "archive.zip/inner/file.pdf". The arguments are those of `Indexer.ingest`.
    """

    def ingest(file: Path, called: str) -> IngestResult:
        result = indexer.ingest(
            file, called, collection, progress, cancelled, password=password, replace=replace
        )
        return changed(result, path=path)

    if not is_archive(path, name):
        return [ingest(path, name)]
    with tempfile.TemporaryDirectory(prefix="specrag-archive-") as folder:
        try:
            check_size(path.stat().st_size, clean_name(name), indexer.settings)
            members = unpack(path, name, indexer.settings, Path(folder))
        except DocumentError as failure:
            return [_refused(path, name, failure)]
        return [ingest(member.path, member.name) for member in members]


def _refused(path: Path, name: str, failure: DocumentError) -> IngestResult:
    return IngestResult(
        path=path, name=clean_name(name), status="failed", error=str(failure), reason=failure.reason
    )
