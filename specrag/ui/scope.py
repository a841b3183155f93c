"""What a question is asked of: a collection, and documents of it if only those are to be looked in.

Both come from a page that may be older than what is there now, or from no page at all: neither is believed.
"""

from collections.abc import Sequence
from dataclasses import replace

from specrag.build import Parts
from specrag.errors import StoreError
from specrag.library.library import documents_of
from specrag.library.visitors import Visitor
from specrag.pipelines.base import Request
from specrag.types import DocumentInfo, PipelineName


def scope_of(parts: Parts, who: Visitor, chosen: object, only: object) -> tuple[str, tuple[str, ...]]:
    """What is about to be asked, a collection and documents of it; that it is asked keeps it from ending.

    Raises:
        StoreError: they see no such collection, or nothing is left of the documents.
    """
    name = chosen if isinstance(chosen, str) else ""
    parts.library.check_readable(who, name)
    parts.library.touch(who, name)
    wanted = documents_from(only)
    there = {item.id for item in documents_of(parts.store, name)} if wanted else set()
    if wanted and there.isdisjoint(wanted):
        raise StoreError("The documents that are chosen are gone; choose others, or none to ask all.")
    return name, tuple(item for item in wanted if item in there)


def document_choices(documents: Sequence[DocumentInfo]) -> list[tuple[str, str]]:
    """Documents as a person chooses them, by title and file name, and their ids."""
    return [(f"{item.title} ({item.source})", item.id) for item in documents]


def documents_from(chosen: object) -> tuple[str, ...]:
    """Ids of documents, whatever a client may have sent; the store knows no others than its own."""
    return tuple(item for item in chosen if isinstance(item, str)) if isinstance(chosen, list) else ()


def fork_scope(parts: Parts, who: Visitor, asked: Request, pipeline: PipelineName) -> Request:
    """A fork, if they may ask its collection; one that needs no collection any more does without.

    The collection is what a trace says, and a trace may come from anybody's file.

    Raises:
        StoreError: they see no such collection, and the fork would look for passages in it.
    """
    try:
        parts.library.check_readable(who, asked.collection)
        parts.library.touch(who, asked.collection)
    except StoreError:
        if asked.given is None or pipeline == "multihop":  # whose later hops look for more
            raise
        return replace(asked, collection="", documents=())
    return asked
