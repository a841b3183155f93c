"""What all systems of a question begin with, made once: the question that stands alone, and its passages.

Once also across processes: after a crash it is taken from the runs that are finished, so that the systems
that are left are asked the same and read the same.
"""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from specrag.errors import SpecragError, TraceError
from specrag.evaluation.folder import Folder, Line
from specrag.evaluation.questions import Dataset, Question
from specrag.fairness import find_passages
from specrag.forking import given_of
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


def begun_with(
    folder: Folder, lines: Sequence[Line], dataset: Dataset, question: Question, collection: str
) -> Prepared | None:
    """What finished runs of a question began with; None if none of them has found passages.

    Raises:
        EvaluationError: the trace of one is damaged.
    """
    request = Request(question=question.asked, collection=collection, earlier=question.earlier)
    for line in lines:
        trace = folder.trace(line) if line.retrieve_ms is not None else None
        if trace is None:
            continue
        try:
            given = given_of(trace)
        except TraceError:  # it has found nothing, or somebody has changed it
            continue
        return Prepared(
            dataset=dataset,
            question=question,
            request=replace(request, given=given),
            retrieve_ms=line.retrieve_ms,
        )
    return None


def asked_before(folder: Folder, lines: Sequence[Line], question: Question) -> str | None:
    """What finished runs made of a follow-up; those that read no passage have rewritten it as well.

    Raises:
        EvaluationError: the trace of one is damaged.
    """
    traces = (folder.trace(line) for line in (lines if question.earlier else ()))
    return next((trace.asked for trace in traces if trace is not None), None)


async def prepared_for(
    tools: Tools, dataset: Dataset, question: Question, collection: str, *, asked: str | None = None
) -> Prepared:
    """Find the passages of a question; one for which nothing is found says why.

    A follow-up that has been rewritten already is `asked` as it is.
    """
    request = Request(question=question.asked, collection=collection, earlier=question.earlier)
    try:
        asked = asked or await _rewritten(tools, question)
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
