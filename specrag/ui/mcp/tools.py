"""The three tools, as short as a language model wants them: no trace, but where each statement is from."""

from typing import Annotated, Any, Final

from pydantic import Field

from specrag.build import Parts
from specrag.library.visitors import Visitor
from specrag.types import PipelineName
from specrag.ui.endpoints import asking
from specrag.ui.endpoints import documents as listing

_TEXT: Final = ("title", "source", "page", "section", "published_at", "text")
_KNOWN: Final = ("id", "title", "source", "pages", "published_at")

Question = Annotated[str, Field(description="The question, in any language that the documents are in.")]
Collection = Annotated[
    str, Field(description="Name or title of the collection; `documents` without one lists them.")
]


async def ask(
    parts: Parts,
    who: Visitor,
    question: Question,
    collection: Collection = "sample",
    pipeline: Annotated[
        PipelineName, Field(description="speculative drafts and verifies; standard is one pass.")
    ] = "speculative",
) -> dict[str, Any]:
    """Answer a question from the documents of a collection, with the passages that the answer rests on."""
    trace = await asking.ask(parts, who, question, collection, pipeline)
    answer, decision = trace["answer"], trace["decision"]
    cited = {passage["id"]: passage for passage in trace["passages"]}
    return {
        "run_id": trace["run_id"],
        "status": trace["status"],
        "answer": answer["text"] if answer else None,
        "confidence": answer["confidence"] if answer else None,
        "decision": decision["kind"] if decision else None,
        "reason": decision["reason"] if decision else None,
        "disputed": decision["conflict"] if decision else None,
        "sources": [_part(cited[key], _TEXT) for key in (answer or {}).get("citations", ()) if key in cited],
        "error": trace["error"]["message"] if trace["error"] else None,
    }


def search(
    parts: Parts,
    who: Visitor,
    question: Question,
    collection: Collection = "sample",
    limit: Annotated[int, Field(ge=1, le=asking.MOST_PASSAGES, description="Passages to return.")] = 8,
) -> dict[str, Any]:
    """Find the passages of a collection that match a question best; nothing is written by a model."""
    found = asking.search(parts, who, question, collection, limit)
    passages = [_part(passage, (*_TEXT, "score")) for passage in found["passages"]]
    return {"passages": passages, "note": found["note"]}


def documents(
    parts: Parts,
    who: Visitor,
    collection: Annotated[
        str | None, Field(description="Name or title of a collection; without it all collections are listed.")
    ] = None,
) -> dict[str, Any]:
    """List the collections, or the documents of one."""
    if collection is None:
        shelves = parts.library.collections(who)
        return {
            "collections": [
                {
                    "name": shelf.name,
                    "title": shelf.title,
                    "description": shelf.description,
                    "documents": shelf.documents,
                }
                for shelf in shelves
            ]
        }
    return {"documents": [_part(item, _KNOWN) for item in listing.documents(parts, who, collection)]}


TOOLS: Final = (ask, search, documents)


def _part(values: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: values[name] for name in names}
