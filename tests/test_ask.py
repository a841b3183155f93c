"""`specrag ask` without its models: what it tells a person, and what Ctrl-C leaves behind."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from specrag.cli.ask import Teller, run_and_keep
from specrag.errors import TraceError
from specrag.events import PassagesRetrieved, QuestionRewritten
from specrag.models.base import Conversation, Line, Output, Piece
from specrag.models.scripted import ScriptedModel, Written
from specrag.pipelines.base import Request
from specrag.retrieval.chroma import ChromaStore
from specrag.tracing.store import TraceStore
from specrag.tracing.trace import Trace
from specrag.types import Passage
from tests.test_speculative import QUESTION, extract, judge
from tests.toys import filled_store, pipeline

LIMIT_S = 20


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


@pytest.fixture
def traces(tmp_path: Path) -> TraceStore:
    return TraceStore(tmp_path / "traces.db")


def request(question: str = QUESTION) -> Request:
    return Request(question=question, collection="documents", run_id="r1")


class Interrupted(ScriptedModel):
    """Somebody presses Ctrl-C when it has written a word; it would never end by itself."""

    async def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        async with aclosing(super().generate(conversations, lines)) as outputs:
            async for index, output in outputs:
                yield index, output
                if isinstance(output, Piece):
                    os.kill(os.getpid(), signal.SIGINT)
                    await asyncio.Event().wait()


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_keeps_the_run_and_stops_the_model(
    store: ChromaStore, traces: TraceStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page and the API keep a run that was stopped; the command line used to lose it."""
    drafter = Interrupted(extract)
    made = pipeline(store, drafter)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(run_and_keep(made, request(), lambda: traces, deadline_s=LIMIT_S))
    kept = traces.load("r1")
    assert kept.status == "cancelled"
    assert kept.passages
    assert all(span.end_ms is not None for span in kept.spans)
    assert drafter.closed == 1
    assert "specrag trace show r1" in capsys.readouterr().err


async def told(
    store: ChromaStore,
    traces: TraceStore,
    capsys: pytest.CaptureFixture[str],
    *,
    drafter: ScriptedModel,
    verifier: ScriptedModel,
    question: str = QUESTION,
    **settings: object,
) -> tuple[Trace, str]:
    made = pipeline(store, drafter, verifier, **settings)
    trace = await run_and_keep(made, request(question), lambda: traces, deadline_s=LIMIT_S)
    assert traces.load("r1") == trace
    return trace, capsys.readouterr().err


def loads(text: str) -> Written:
    """Answers with the load that the passages name, so that the drafts contradict each other."""
    for kilograms in ("160", "180"):
        if f"{kilograms} kilograms" in text:
            return {
                "rationale": f" The bike carries {kilograms} kilograms.",
                "answer": f" {kilograms} kilograms",
            }
    return {"rationale": " Nothing.", "answer": " Not in the passages."}


async def test_reason_and_dispute_are_told_once(
    store: ChromaStore, traces: TraceStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """A synthesis sends its decision twice, the second time with what it adds in front."""
    verifier = ScriptedModel(lambda _: {"answer": " 160 kilograms [1], once 180 [2]."})
    trace, words = await told(
        store,
        traces,
        capsys,
        drafter=ScriptedModel(loads),
        verifier=verifier,
        question="How many kilograms does the bike carry?",
        decision="synthesise",
        partition="contiguous",
        passages_per_draft=1,
        threshold=0,
    )
    assert trace.decision is not None
    assert trace.decision.kind == "synthesised"
    assert trace.decision.conflict is not None
    assert words.count(trace.decision.conflict) == 1
    assert words.count("of the score mass") == 1
    assert words.count("The verifier wrote one answer") == 1
    assert set(trace.decision.reason.split()) <= set(words.split())


async def test_a_question_that_hardly_matches_is_told_so(
    store: ChromaStore, traces: TraceStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only `--json` said that the answer may be a guess."""
    trace, words = await told(
        store,
        traces,
        capsys,
        drafter=ScriptedModel(extract),
        verifier=ScriptedModel(extract, judge=judge),
        question="Which zeppelin crossed Greenland, and how many kilograms?",
    )
    assert trace.retrieval_note is not None
    assert words.count(trace.retrieval_note) == 1


def test_the_best_score_is_told_where_another_passage_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    """A passage may come first for its words, and its similarity is not the best then."""
    passages = tuple(
        Passage(
            id=name,
            document_id=name,
            title=name,
            text="Text.",
            page=None,
            source=name,
            published_at=None,
            score=score,
        )
        for name, score in (("a", 0.31), ("b", 0.62))
    )
    Teller()(PassagesRetrieved(at_ms=0, passages=passages))
    assert "2 passages, the best scores 0.62" in capsys.readouterr().err


async def test_what_a_fallback_adds_is_told_alone(
    store: ChromaStore, traces: TraceStore, capsys: pytest.CaptureFixture[str]
) -> None:
    verifier = ScriptedModel(lambda _: {"answer": " Not in the passages."}, judge=judge)
    _, words = await told(
        store, traces, capsys, drafter=ScriptedModel(extract), verifier=verifier, threshold=0.99
    )
    assert words.count("below the threshold") == 1
    assert "\nIt says that they do not hold the answer.\n" in words


async def test_an_answer_is_worth_more_than_its_trace(
    store: ChromaStore, capsys: pytest.CaptureFixture[str]
) -> None:
    def unreadable() -> TraceStore:
        raise TraceError("traces.db cannot be used.")

    made = pipeline(store, ScriptedModel(extract, judge=judge))
    trace = await run_and_keep(made, request(), unreadable, deadline_s=LIMIT_S)
    assert trace.answer is not None
    assert "The run was not kept: traces.db cannot be used." in capsys.readouterr().err


async def test_nothing_is_told_when_only_a_document_is_wanted(
    store: ChromaStore, traces: TraceStore, capsys: pytest.CaptureFixture[str]
) -> None:
    made = pipeline(store, ScriptedModel(extract, judge=judge))
    await run_and_keep(made, request(), lambda: traces, deadline_s=LIMIT_S, quiet=True)
    assert capsys.readouterr().err == ""


def test_the_question_that_is_asked_in_its_place_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Else a person cannot see why the passages are about something else."""
    Teller()(QuestionRewritten(at_ms=0, question="How heavy is the battery?"))
    assert "asked as: How heavy is the battery?" in capsys.readouterr().err
