"""What all systems of a question begin with, made once: the question that stands alone, and its passages."""

from contextlib import aclosing
from dataclasses import dataclass, replace

from specrag.errors import SpecragError
from specrag.evaluation.questions import Dataset, Question
from specrag.fairness import find_passages
from specrag.pipelines.base import Request, Tools
from specrag.pipelines.rewriting import Rewriting
from specrag.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A question with what all systems begin with."""

    dataset: Dataset
    question: Question
    request: Request
    retrieve_ms: float | None
    error: str = ""
    """Why no passage could be found."""


async def prepared_for(tools: Tools, dataset: Dataset, question: Question, collection: str) -> Prepared:
    """Find the passages of a question; one for which nothing is found says why."""
    request = Request(question=question.asked, collection=collection, earlier=question.earlier)
    try:
        asked = await _rewritten(tools, question)
        found = await find_passages(tools, replace(request, question=asked))
    except SpecragError as error:
        return Prepared(
            dataset=dataset, question=question, request=request, retrieve_ms=None, error=str(error)
        )
    given = replace(found.given, rewritten=asked if question.earlier else None)
    return Prepared(
        dataset=dataset,
        question=question,
        request=replace(request, given=given),
        retrieve_ms=found.took_ms,
    )


async def _rewritten(tools: Tools, question: Question) -> str:
    """The question that stands alone, made once for all systems."""
    timeline = Timeline(tools.clock)
    rewriting = Rewriting(
        tools.verifier,
        question.asked,
        earlier=question.earlier,
        given=None,
        limit=tools.settings.max_question_characters,
        timeline=timeline,
    )
    async with aclosing(rewriting.events(timeline.start("rewrite"))) as events:
        async for _ in events:
            pass
    return rewriting.question
