"""Opening and closing Chroma: a folder that one process owns, or memory that one store owns.

All stores in memory share one database of Chroma; each gets a database of its own within it, which goes away
when the store is closed. Telemetry is off.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from specrag.errors import StoreError
from specrag.retrieval.lock import StoreLock

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.config import Settings


def open_client(path: Path | None) -> "tuple[Client, Callable[[], None]]":
    """A client, and what closes it.

    Raises:
        StoreLocked: another process owns the folder.
        StoreError: the folder holds no store that can be opened.
    """
    return _in_memory() if path is None else _in_folder(path)


def _in_folder(path: Path) -> "tuple[Client, Callable[[], None]]":
    import chromadb

    lock = StoreLock(path)
    try:
        with translated(f"The store {path} cannot be opened"):
            client = cast("Client", chromadb.PersistentClient(path / "chroma", _settings()))
    except StoreError:
        lock.release()
        raise

    def close() -> None:
        client.close()
        lock.release()

    return client, close


def _in_memory() -> "tuple[Client, Callable[[], None]]":
    import chromadb

    database = f"specrag-{uuid.uuid4().hex}"
    admin = chromadb.AdminClient(_settings())
    admin.create_database(database)
    client = cast("Client", chromadb.EphemeralClient(_settings(), database=database))

    def close() -> None:
        for collection in client.list_collections():
            client.delete_collection(collection.name)
        admin.delete_database(database)
        client.close()

    return client, close


def _settings() -> "Settings":
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Errors of Chroma as one sentence of ours."""
    import chromadb.errors

    try:
        yield
    except (
        chromadb.errors.ChromaError,
        ValueError,
        TypeError,
        AttributeError,
        RuntimeError,
        OSError,
    ) as error:
        cause = str(error).strip().rstrip(".") or type(error).__name__
        raise StoreError(f"{what}: {cause}.") from error
