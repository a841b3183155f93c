"""The Python API over scripted models and the real embedder: what a caller may rely on."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

import specrag
from specrag.api import Rag, RunError
from specrag.errors import ModelError, SpecragError, StoreError, TraceError, UsageError
from specrag.events import DraftToken, Event, RunFinished
from specrag.models.base import Conversation, End, Line, Output, ScoreRequest, TokenScores
from specrag.models.scripted import ScriptedModel, Written
from specrag.partition import Partition
from specrag.tracing.files import load_trace, save_trace
from specrag.tracing.store import TraceStore
from specrag.tracing.trace import Trace, fold
from specrag.types import ModelInfo, Passage, PipelineName, Subset
from tests.toys import PAGES

pytestmark = pytest.mark.integration
QUESTION = "How many watt-hours does the battery hold?"
LIMIT_S = 20


def write(text: str) -> Written:
    if "640 watt-hours" in text:
        return {"rationale": " The battery holds 640 watt-hours.", "answer": " 640 watt-hours"}
    return {"rationale": " Nothing is said of it.", "answer": " Not in the passages."}


class Endless(ScriptedModel):
    """Begins to write and never ends; `begun` is set, from any loop, when it has begun."""

    def __init__(self) -> None:
        super().__init__(write)
        self.begun = threading.Event()

    async def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        try:
            async with aclosing(super().generate(conversations, lines)) as outputs:
                yield await anext(outputs)
                self.begun.set()
                await asyncio.Event().wait()
        finally:
            self.stopped = True

    stopped = False


class SlowToLoad(ScriptedModel):
    """Takes its time until somebody may know what it is; `loading` is set while it does."""

    def __init__(self) -> None:
        self.loading, self.loaded = threading.Event(), threading.Event()
        super().__init__(write)

    @property
    def info(self) -> ModelInfo:
        """Its name, after a while."""
        self.loading.set()
        self.loaded.wait(2 * LIMIT_S)
        return self._info

    @info.setter
    def info(self, info: ModelInfo) -> None:
        self._info = info


class Asker(threading.Thread):
    """A thread that asks one question, with its outcome."""

    def __init__(self, rag: Rag) -> None:
        super().__init__(daemon=True)
        self._rag = rag
        self.outcome: Trace | BaseException | None = None

    def run(self) -> None:
        try:
            self.outcome = self._rag.ask(QUESTION)
        except BaseException as error:  # noqa: BLE001 - carried to the test's thread
            self.outcome = error

    def end(self) -> Trace | BaseException | None:
        self.join(LIMIT_S)
        return self.outcome


class Unreachable(ScriptedModel):
    """A model whose server went away."""

    async def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        if conversations:
            raise ModelError("The server of the model went away; start it again.")
        yield 0, End(finish_reason="stop", completion_tokens=0)

    async def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        raise ModelError("The server of the model went away; start it again.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy pages as files, with one that cannot be read and one that is hidden."""
    made = tmp_path_factory.mktemp("handbook")
    for title, text in PAGES:
        (made / f"{title}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
    (made / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing more")
    (made / ".hidden.md").write_text("Secret.", encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory, embedder_path: Path) -> dict[str, Any]:
    """What every `Rag` of these tests is made with."""
    home = tmp_path_factory.mktemp("home")
    return {"home": home, "embedder": str(embedder_path), "in_memory": True, "threads": 1}


@pytest.fixture(scope="module")
def rag(options: dict[str, Any], folder: Path) -> Iterator[Rag]:
    with Rag(drafter=ScriptedModel(write), verifier=ScriptedModel(write), **options) as made:
        made.add(folder)
        yield made


def with_model(options: dict[str, Any], folder: Path, model: ScriptedModel, **settings: Any) -> Rag:
    made = Rag(drafter=model, verifier=model, **options, **settings)
    made.add([folder / f"{title}.md" for title, _ in PAGES])
    return made


def threads(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]


def kept(rag: Rag, run_id: str) -> Trace:
    return TraceStore(rag.settings.home / "traces.db").load(run_id)


def test_ask_gives_the_trace_and_keeps_the_run(rag: Rag) -> None:
    trace = rag.ask(QUESTION)
    assert trace.status == "done"
    assert trace.answer is not None
    assert trace.answer.text == "640 watt-hours"
    assert {passage.title for passage in trace.passages} >= {"Battery"}
    assert kept(rag, trace.run_id) == trace


async def test_ask_works_where_a_loop_is_running(rag: Rag) -> None:
    """A notebook cell runs inside a loop, where `asyncio.run` refuses to start another."""
    trace = rag.ask(QUESTION)
    assert trace.status == "done"


async def test_the_three_ways_to_ask_tell_the_same(rag: Rag) -> None:
    waited = await rag.ask_async(QUESTION)
    async with aclosing(rag.stream(QUESTION)) as stream:
        events = [event async for event in stream]
    assert isinstance(events[-1], RunFinished)
    streamed = fold(events)
    assert (streamed.answer, streamed.decision) == (waited.answer, waited.decision)
    assert kept(rag, streamed.run_id) == streamed


@pytest.mark.parametrize("name", get_args(PipelineName))
def test_every_pipeline_can_be_asked(rag: Rag, name: PipelineName) -> None:
    trace = rag.ask(QUESTION, pipeline=name)
    assert trace.pipeline == name
    assert trace.answer is not None
    assert "640" in trace.answer.text


def test_a_run_is_not_kept_on_request(rag: Rag) -> None:
    trace = rag.ask(QUESTION, keep=False)
    with pytest.raises(TraceError, match="There is no run"):
        kept(rag, trace.run_id)


def test_settings_hold_for_one_run_only(rag: Rag) -> None:
    assert len(rag.ask(QUESTION, drafts=2, passages_per_draft=1).drafts) == 2
    after = rag.ask(QUESTION)
    assert len(after.drafts) == rag.settings.drafts == 4
    assert after.config["drafts"] == 4


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"question": "  "}, UsageError, "The question is empty"),
        (
            {"pipeline": "oracle"},
            UsageError,
            "no pipeline “oracle”; choose speculative, standard, drafter or",
        ),
        ({"collection": "attic"}, StoreError, "There is no collection “attic”; there is sample or documents"),
        ({"draughts": 3}, UsageError, "draughts is not a setting of specrag; did you mean drafts"),
        ({"drafts": 99}, UsageError, "SPECRAG_DRAFTS"),
        ({"verifier": "another"}, UsageError, "verifier cannot differ from run to run"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_no_run(
    rag: Rag, arguments: dict[str, Any], error: type[SpecragError], sentence: str
) -> None:
    store = TraceStore(rag.settings.home / "traces.db")
    before = store.recent()
    with pytest.raises(error, match=sentence):
        rag.ask(**{"question": QUESTION, **arguments})
    assert store.recent() == before


def test_an_empty_collection_says_how_to_fill_it(options: dict[str, Any]) -> None:
    model = ScriptedModel(write)
    with Rag(drafter=model, verifier=model, **options) as empty:
        with pytest.raises(StoreError, match=r"“documents” has no documents yet; add some with `add`"):
            empty.ask(QUESTION)
        assert empty.ask("What does the Larkspur 3 weigh?", collection="sample").passages


def test_a_run_that_fails_is_an_error_with_its_trace(options: dict[str, Any], folder: Path) -> None:
    with with_model(options, folder, Unreachable(write)) as made:
        with pytest.raises(RunError, match="The server of the model went away") as caught:
            made.ask(QUESTION)
        trace = caught.value.trace
        assert trace.status == "failed"
        assert trace.error is not None
        assert trace.error.type == "model"
        assert trace.passages
        assert kept(made, trace.run_id) == trace


def test_a_deadline_ends_a_run_and_says_so(options: dict[str, Any], folder: Path) -> None:
    model = Endless()
    with with_model(options, folder, model) as made:
        with pytest.raises(RunError, match=r"longer than 0\.3 s") as caught:
            made.ask(QUESTION, deadline_s=0.3)
        assert caught.value.trace.status == "cancelled"
        assert model.stopped
        assert kept(made, caught.value.trace.run_id).status == "cancelled"


async def test_cancelling_stops_the_model_and_keeps_the_run(options: dict[str, Any], folder: Path) -> None:
    model = Endless()
    with with_model(options, folder, model) as made:
        asking = asyncio.create_task(made.ask_async(QUESTION))
        assert await asyncio.to_thread(model.begun.wait, LIMIT_S)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert model.stopped
        newest = TraceStore(made.settings.home / "traces.db").recent(1)[0]
        assert newest.status == "cancelled"


def test_a_run_that_is_cancelled_as_its_loop_ends_is_kept(
    options: dict[str, Any], folder: Path, tmp_path: Path
) -> None:
    """The end of a loop cancels once more, and saving used to be a task that could be cancelled unbegun."""
    model = Endless()
    with with_model({**options, "home": tmp_path}, folder, model) as made:

        async def leave() -> None:
            asking = asyncio.create_task(made.ask_async(QUESTION))
            assert await asyncio.to_thread(model.begun.wait, LIMIT_S)
            asking.cancel()

        asyncio.run(leave())
    assert [run.status for run in TraceStore(tmp_path / "traces.db").recent()] == ["cancelled"]


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_leaves_at_once_and_stops_the_model(options: dict[str, Any], folder: Path) -> None:
    model = Endless()
    with with_model(options, folder, model) as made:
        started = time.perf_counter()

        def interrupt() -> None:
            model.begun.wait(LIMIT_S)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            made.ask(QUESTION, deadline_s=2 * LIMIT_S)
        assert time.perf_counter() - started < LIMIT_S
    assert model.stopped
    assert TraceStore(made.settings.home / "traces.db").recent(1)[0].status == "cancelled"


async def test_closing_the_stream_stops_the_model_and_keeps_the_run(
    options: dict[str, Any], folder: Path
) -> None:
    model = ScriptedModel(write)
    with with_model(options, folder, model) as made:
        events: list[Event] = []
        async with aclosing(made.stream(QUESTION)) as stream:
            async for event in stream:
                events.append(event)
                if isinstance(event, DraftToken):
                    break
        assert model.closed == 1
        trace = kept(made, fold(events).run_id)
        assert trace.status == "cancelled"
        assert trace.error is not None
        assert trace.error.message == "The reader closed the stream."


def test_close_ends_what_runs_and_what_is_closed_says_so(options: dict[str, Any], folder: Path) -> None:
    model, before = Endless(), threads("specrag-loop")
    made = with_model(options, folder, model)
    asking = Asker(made)
    asking.start()
    assert model.begun.wait(LIMIT_S)
    made.close()
    outcome = asking.end()
    assert model.stopped
    assert isinstance(outcome, RunError)
    assert outcome.trace.status == "cancelled"
    assert str(outcome) == "The Rag was closed."
    assert kept(made, outcome.trace.run_id) == outcome.trace
    with pytest.raises(UsageError, match="closed"):
        made.ask(QUESTION)
    with pytest.raises(UsageError, match="closed"):
        made.add(folder)
    made.close()
    assert threads("specrag-loop") == before


async def test_close_also_ends_a_run_on_the_loop_of_its_caller(
    options: dict[str, Any], folder: Path, model_path: Path
) -> None:
    """The loop belongs to the caller and goes on, but the models do not."""
    made = Rag(drafter=str(model_path), verifier=str(model_path), **options)
    made.add(folder)
    events: list[Event] = []
    async with asyncio.timeout(LIMIT_S), aclosing(made.stream(QUESTION)) as stream:
        async for event in stream:
            first = isinstance(event, DraftToken) and not any(isinstance(one, DraftToken) for one in events)
            events.append(event)
            if first:
                await asyncio.to_thread(made.close)
    trace = kept(made, fold(events).run_id)
    assert trace.status == "failed"
    assert trace.error is not None
    assert "closed" in trace.error.message


async def test_what_is_closed_says_so_to_a_caller_with_a_loop(options: dict[str, Any], folder: Path) -> None:
    made = with_model(options, folder, ScriptedModel(write))
    made.close()
    with pytest.raises(UsageError, match="closed"):
        await made.ask_async(QUESTION)
    with pytest.raises(UsageError, match="closed"):
        await anext(made.stream(QUESTION))


def test_close_does_not_wait_for_what_is_being_loaded(
    options: dict[str, Any], folder: Path, tmp_path: Path
) -> None:
    """A download may take minutes; the store is free for others as soon as it is over."""
    model = SlowToLoad()
    own = {**options, "home": tmp_path, "in_memory": False}
    made = with_model(own, folder, model)
    asking = Asker(made)
    asking.start()
    assert model.loading.wait(LIMIT_S)
    closing = threading.Thread(target=made.close)
    closing.start()
    closing.join(LIMIT_S)
    assert not closing.is_alive()
    assert isinstance(asking.end(), UsageError)
    model.loaded.set()
    for thread in threads("specrag-detached"):
        thread.join(LIMIT_S)
    with with_model(own, folder, ScriptedModel(write)) as another:
        assert another.ask(QUESTION).status == "done"


async def test_what_was_closed_while_it_loaded_does_not_run(options: dict[str, Any], folder: Path) -> None:
    model = SlowToLoad()
    made = with_model(options, folder, model)
    asking = asyncio.create_task(made.ask_async(QUESTION))
    assert await asyncio.to_thread(model.loading.wait, LIMIT_S)
    made.close()
    model.loaded.set()
    with pytest.raises(UsageError, match="closed"):
        await asking


def test_runs_beyond_the_places_wait_and_are_all_answered(options: dict[str, Any], folder: Path) -> None:
    model = ScriptedModel(write)
    with with_model(options, folder, model, concurrent_runs=1) as made:
        traces: list[Trace] = []
        threads = [threading.Thread(target=lambda: traces.append(made.ask(QUESTION))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        assert [trace.status for trace in traces] == ["done"] * 4


def test_adding_tells_of_every_file(options: dict[str, Any], folder: Path) -> None:
    model = ScriptedModel(write)
    with Rag(drafter=model, verifier=model, **options) as made:
        results = {result.name: result for result in made.add(str(folder), collection="files")}
        assert len(results) == len(PAGES) + 1
        assert results["broken.pdf"].status == "failed"
        assert "broken.pdf" in (results["broken.pdf"].error or "")
        assert results["Battery.md"].status == "ready"
        (again,) = made.add(folder / "Battery.md", collection="files")
        assert again.status == "duplicate"
        with pytest.raises(UsageError, match="There is no file or folder"):
            made.add(folder / "missing.md")
        with pytest.raises(StoreError, match="“sample” is read-only"):
            made.add(folder, collection="sample")


def test_collections_are_made_asked_by_title_and_carried_on(
    options: dict[str, Any], folder: Path, tmp_path: Path
) -> None:
    model = ScriptedModel(write)
    with Rag(drafter=model, verifier=model, **options) as made:
        shelf = made.create_collection("Bicycle notes", "What is known of it.")
        files = [folder / f"{title}.md" for title, _ in PAGES]
        assert {result.status for result in made.add(files, collection="Bicycle notes")} == {"ready"}
        asked = made.ask(QUESTION, collection="bicycle NOTES", pipeline="standard", keep=False)
        file = made.export("Bicycle notes", tmp_path)
        copy = made.import_(file, title="The same")
        again = made.ask(QUESTION, collection="The same", pipeline="standard", keep=False)
        assert again.passages == asked.passages
        assert [item.title for item in made.collections()][2:] == ["Bicycle notes", "The same"]
        assert made.delete_collection(shelf.name) == copy.documents > 0
        with pytest.raises(StoreError, match="There is no collection “Bicycle notes”"):
            made.ask(QUESTION, collection="Bicycle notes")
        with pytest.raises(StoreError, match="read-only"):
            made.add(files, collection="sample")


def one_by_one(passages: Sequence[Passage], vectors: Any, *, m: int, k: int, seed: int) -> Partition:
    """A draft for every passage."""
    return Partition(
        subsets=tuple(
            Subset(id=f"s{number}", perspective=passage.title, passage_ids=(passage.id,))
            for number, passage in enumerate(passages[:m], 1)
        )
    )


def test_a_partition_may_be_a_function_or_a_name(options: dict[str, Any], folder: Path) -> None:
    model = ScriptedModel(write)
    pages = [folder / f"{title}.md" for title, _ in PAGES]
    with Rag(drafter=model, verifier=model, partition=one_by_one, **options) as made:
        made.add(pages, collection="one-by-one")
        trace = made.ask(QUESTION, collection="one-by-one", drafts=5)
        assert [len(subset.passage_ids) for subset in trace.subsets] == [1] * 5
        assert trace.config["partition"] == "one_by_one"
    with Rag(drafter=model, verifier=model, partition="contiguous", **options) as made:
        made.add(pages, collection="contiguous")
        trace = made.ask(QUESTION, collection="contiguous")
        in_order = tuple(passage.id for passage in trace.passages)
        assert [subset.passage_ids for subset in trace.subsets] == [in_order[:2], in_order[2:4], in_order[4:]]


def test_a_trace_is_the_same_after_it_was_a_file(rag: Rag, tmp_path: Path) -> None:
    trace = rag.ask(QUESTION)
    path = save_trace(trace, tmp_path / "run.json")
    assert load_trace(str(path)) == trace
    again = save_trace(replace(trace, question="Another?"), path)
    assert load_trace(again).question == "Another?"
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'{"schema": "specrag.trace/1"}', "not a specrag.trace/1 trace: run_id"),
        (b"\xff\xfe\x00nonsense", "not a text file"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_file_that_is_no_trace_is_one_sentence(
    tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    path = tmp_path / "run.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TraceError, match=sentence):
        load_trace(path)


@pytest.mark.parametrize("where", ["missing/run.json", "file/run.json", "."])
def test_a_trace_that_cannot_be_written_leaves_nothing_behind(rag: Rag, tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TraceError, match="cannot be written"):
        save_trace(rag.ask(QUESTION, keep=False), tmp_path / where)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
    assert not list(tmp_path.parent.glob(".*.json*"))


def test_a_rag_refuses_settings_that_do_not_exist() -> None:
    with pytest.raises(UsageError, match="tresholds is not a setting of specrag; did you mean threshold"):
        Rag(tresholds=0.5)
    assert Rag(specrag.load_settings({}, drafts=7), seed=3).settings.drafts == 7
