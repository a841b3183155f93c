"""Endpoints of the collections: list, make, change, index anew, delete."""

from dataclasses import asdict
from typing import Any, Final

from specrag.build import Parts
from specrag.library.visitors import Visitor
from specrag.ui.endpoints.documents import uploaded
from specrag.ui.tabs.exports import exported


def collections(parts: Parts, who: Visitor) -> list[dict[str, Any]]:
    """The collections that you see: the sample, your first one, and the others by title.

    Example: `Client(url).predict(api_name="/collections")[0]["title"]`.
    """
    return [asdict(shelf) for shelf in parts.library.collections(who)]


def create_collection(parts: Parts, who: Visitor, title: str, description: str = "") -> dict[str, Any]:
    """Make an empty collection; returns it with its `name`.

    Example: `Client(url).predict("My papers", api_name="/create_collection")["name"]`.
    """
    return asdict(parts.library.create(who, title, description))


def change_collection(
    parts: Parts, who: Visitor, collection: str, title: str | None = None, description: str | None = None
) -> dict[str, Any]:
    """Give a collection another title or description; what is left out stays.

    Example: `Client(url).predict("My papers", title="Papers of 2026", api_name="/change_collection")`.
    """
    name = parts.library.find(who, collection)
    if title is not None:
        parts.library.rename(who, name, title)
    if description is not None:
        parts.library.describe(who, name, description)
    return asdict(parts.library.shelf(who, name))


def reindex_collection(parts: Parts, who: Visitor, collection: str) -> dict[str, Any]:
    """Index a collection anew in the background, after another embedder or chunk size was set.

    Example: `Client(url).predict("My papers", api_name="/reindex_collection")`.
    """
    name = parts.library.find(who, collection)
    parts.library.check_writable(who, name)
    parts.reindexing.start(name)
    return asdict(parts.library.shelf(who, name))


def export_collection(parts: Parts, who: Visitor, collection: str) -> dict[str, Any]:
    """A collection as one file, with its vectors and the files that it was read from.

    Example: `Client(url).predict("My papers", api_name="/export_collection")["path"]`.
    """
    path = exported(parts.library, who, parts.library.shelf(who, parts.library.find(who, collection)))
    return {"path": str(path), "orig_name": path.name, "meta": {"_type": "gradio.FileData"}}


def import_collection(
    parts: Parts, who: Visitor, file: dict[str, Any], title: str | None = None
) -> dict[str, Any]:
    """Make a collection of a file that was exported, of this program or of another one.

    Example: `Client(url).predict(handle_file("My-papers.zip"), api_name="/import_collection")["name"]`.

    Without `title` it is called as the file says.
    """
    path = uploaded(file)
    try:
        return asdict(parts.library.import_(who, path, title=title))
    finally:
        path.unlink(missing_ok=True)


def delete_collection(parts: Parts, who: Visitor, collection: str) -> int:
    """Delete a collection with all of its documents; returns how many there were.

    Example: `Client(url).predict("My papers", api_name="/delete_collection")`.
    """
    return parts.library.delete(who, parts.library.find(who, collection))


ENDPOINTS: Final = (
    collections,
    create_collection,
    change_collection,
    reindex_collection,
    export_collection,
    import_collection,
    delete_collection,
)
