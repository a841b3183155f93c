"""Opening and closing Chroma: a folder that one process owns, memory that one store owns, or a server.

All stores in memory share one database of Chroma; each gets a database of its own within it, which goes away
when the store is closed. Telemetry is off.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from specrag.errors import StoreError
from specrag.retrieval.address import ChromaServer
from specrag.retrieval.lock import StoreLock
from specrag.retrieval.naming import GONE

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.collection_configuration import CreateCollectionConfiguration
    from chromadb.api.models.Collection import Collection
    from chromadb.config import Settings

_INDEX: "CreateCollectionConfiguration" = {
    "hnsw": {"space": "cosine", "ef_construction": 200, "ef_search": 512, "max_neighbors": 32}
}
_FOR_EVER = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A client of Chroma."""

    client: "Client"
    close: Callable[[], None]
    silence_s: float = _FOR_EVER
    """After how long a silent writer counts as dead; for ever where this process is the only one."""

    @property
    def shared(self) -> bool:
        """Whether other processes may work on the same store."""
        return self.silence_s != _FOR_EVER


def open_client(place: Path | ChromaServer | None) -> Opened:
    """A client of a folder, of a server, or of memory.

    Raises:
        StoreLocked: another process owns the folder.
        StoreUnreachable: the server does not answer.
        StoreError: the folder holds no store that can be opened, or the server refuses.
    """
    if place is None:
        return _in_memory()
    return _in_folder(place) if isinstance(place, Path) else _on_server(place)


def _in_folder(path: Path) -> Opened:
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

    return Opened(client=client, close=close)


def _in_memory() -> Opened:
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

    return Opened(client=client, close=close)


def _on_server(server: ChromaServer) -> Opened:
    from specrag.retrieval.server import connect

    client = connect(server)
    return Opened(client=client, close=client.close, silence_s=server.silence_s)


def _settings() -> "Settings":
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)


def find(client: "Client", name: str) -> "Collection | None":
    """A collection of Chroma, or None."""
    import chromadb.errors

    try:
        return client.get_collection(name, embedding_function=None)
    except chromadb.errors.NotFoundError:
        return None


def make(client: "Client", name: str, metadata: dict[str, Any]) -> "Collection":
    """A collection of Chroma, made if it is missing; one that exists keeps its metadata."""
    import chromadb.errors

    try:
        return client.get_or_create_collection(
            name, metadata=metadata or None, embedding_function=None, configuration=_INDEX
        )
    except chromadb.errors.ChromaError:
        found = find(client, name)  # another replica made it at the same moment
        if found is None:
            raise
        return found


def drop(client: "Client", name: str) -> None:
    """Delete a collection of Chroma; one that is gone already is no error."""
    import chromadb.errors

    try:
        client.delete_collection(name)
    except chromadb.errors.NotFoundError:
        return


def put_aside(target: "Collection") -> str:
    """Give a collection a name that nobody else uses, and return it.

    Chroma renames by id and deletes by name, and another process may have put a collection of its own under
    the name that we know; what has a name of its own can be dropped safely.

    Raises:
        chromadb.errors.NotFoundError: it is gone already.
    """
    name = f"{GONE}{uuid.uuid4().hex}"
    target.modify(name=name)
    return name


def discard(client: "Client", target: "Collection") -> None:
    """Delete this very collection and none that has taken its name; one that is gone already is no error."""
    import chromadb.errors

    try:
        drop(client, put_aside(target))
    except chromadb.errors.NotFoundError:
        return


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
