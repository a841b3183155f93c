"""Whose runs the Ask tab shows, colours, follows and stops, called as a browser can be made to call it."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gradio as gr
import pytest

from specrag.config import Settings, load_settings
from specrag.models.scripted import ScriptedModel
from specrag.pipelines.base import Request
from specrag.runs import Runs
from specrag.startup import StartupState
from specrag.tracing.history import History
from specrag.tracing.store import TraceStore
from specrag.types import AccessName
from specrag.ui.live import NAMES
from specrag.ui.tabs.ask_after import AfterEvents
from specrag.ui.tabs.ask_events import AskEvents
from specrag.ui.who import COOKIE, visitor_of
from tests.test_speculative import QUESTION, extract
from tests.toys import filled_store, pipeline
from tests.ui_traces import DISPUTED, SELECTED

ANN, BOB = "A" * 22, "B" * 22


@dataclass(frozen=True)
class Rig:
    """The parts that the listeners use, with a run of Ann's that is kept."""

    parts: Any
    asking: AskEvents
    after: AfterEvents
    traces: TraceStore

    async def shown(self, cookie: str, message: str) -> dict[str, Any]:
        """What the page shows in the end when it is to show a run."""
        return await _last(self.asking.show(_request(cookie), message, "none"))

    async def loaded(self, cookie: str, run_id: str) -> dict[str, Any]:
        """The same for a page that is opened by the link of a run."""
        return await _last(self.asking.load(_request(cookie, run=run_id), ""))


def _request(cookie: str, **query: str) -> gr.Request:
    asked = SimpleNamespace(cookies={COOKIE: cookie}, client=SimpleNamespace(host="127.0.0.1"))
    return cast("gr.Request", SimpleNamespace(username=None, request=asked, query_params=query))


async def _last(stream: AsyncIterator[tuple[Any, ...]]) -> dict[str, Any]:
    page: dict[str, Any] = {}
    async for updates in stream:
        page |= {
            name: value for name, value in zip(NAMES, updates, strict=True) if value != {"__type__": "update"}
        }
    return page


def _made(home: Path, access: AccessName) -> Rig:
    settings: Settings = load_settings({}, home=home, access=access)
    traces = TraceStore(home / "traces.db")
    runs = Runs(traces, deadline_s=20.0)
    ann = visitor_of(_request(ANN), settings)
    traces.save(replace(SELECTED, run_id="hers"), [], owner=ann.owner or "")
    traces.save(replace(DISPUTED, run_id="shared"), [], owner=ann.owner or "")
    traces.share("shared", shared=True)
    parts = SimpleNamespace(
        settings=settings, runs=runs, history=History(traces, runs, settings), traces=traces
    )
    startup: Any = SimpleNamespace(
        settings=settings, parts=parts, state=StartupState(message="Ready", ready=True)
    )
    return Rig(parts, AskEvents(startup), AfterEvents(startup), traces)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return _made(tmp_path, "visitor")


async def test_the_link_of_somebody_elses_run_is_that_of_no_run(rig: Rig) -> None:
    theirs, nothing = await rig.loaded(BOB, "hers"), await rig.loaded(BOB, "none")
    assert theirs["answer"] == nothing["answer"].replace("none", "hers")
    assert SELECTED.answer
    assert SELECTED.answer.text not in str(theirs)
    assert SELECTED.question not in str(theirs)
    assert SELECTED.answer.text in str((await rig.loaded(ANN, "hers"))["answer"])


async def test_a_run_that_was_shared_is_shown_by_its_link(rig: Rig) -> None:
    assert "Disputed" in str((await rig.loaded(BOB, "shared"))["answer"])


async def test_a_run_of_the_history_is_shown_to_whoever_may_see_it(rig: Rig) -> None:
    theirs = await rig.shown(BOB, "hers show 1")
    assert "There is no run" in theirs["answer"]
    assert theirs["board"] == ""
    mine = await rig.shown(ANN, "hers show 1")
    assert (mine["run_id"], mine["question"]) == ("hers", SELECTED.question)


async def test_a_run_that_is_followed_anew_leaves_what_is_being_typed(rig: Rig) -> None:
    """A lost connection must not put the old question over half of the next one."""
    assert "question" not in await rig.shown(ANN, "hers again 1")


async def test_somebody_elses_run_is_not_coloured(rig: Rig) -> None:
    assert await rig.asking.recolour(_request(BOB), "hers", "drafter") == (gr.skip(), gr.skip())
    answer, board = await rig.asking.recolour(_request(ANN), "hers", "drafter")
    assert "sr-token" in answer
    assert "sr-token" in board


async def test_only_its_owner_stops_a_run(rig: Rig) -> None:
    """A shared link let everybody stop the run that it showed."""
    store, wait = filled_store(), asyncio.Event()

    class Waiting(ScriptedModel):
        async def generate(self, conversations: Any, lines: Any) -> Any:
            await wait.wait()
            async for output in super().generate(conversations, lines):
                yield output

    made = pipeline(store, Waiting(extract))
    ann = visitor_of(_request(ANN), rig.parts.settings)
    request = Request(question=QUESTION, collection="documents", run_id="live")
    rig.parts.runs.start(made, request, owner=ann.owner or "")
    await asyncio.sleep(0)
    await rig.asking.stop(_request(BOB), "live")
    assert rig.parts.runs.active == 1
    await rig.asking.stop(_request(ANN), "live")
    assert rig.parts.runs.active == 0
    store.close()


async def test_where_everything_is_shared_everybody_sees_and_stops_everything(tmp_path: Path) -> None:
    rig = _made(tmp_path, "shared")
    assert "Selected" in str((await rig.loaded(BOB, "hers"))["answer"])
    answer, _ = await rig.asking.recolour(_request(BOB), "hers", "drafter")
    assert "sr-token" in answer


def _act(action: str, run_id: str, value: str) -> str:
    return json.dumps({"action": action, "id": run_id, "value": value})


async def test_an_answer_is_rated_and_the_comment_stays_when_the_rating_changes(rig: Rig) -> None:
    memory = json.dumps({"runs": ["hers"]})
    feedback, history = await rig.after.act(_request(ANN), _act("answer-up", "hers", "up"), "hers", memory)
    assert 'aria-pressed="true"' in feedback
    assert 'aria-pressed="true"' in history
    await rig.after.act(_request(ANN), _act("answer-comment", "hers", "Exactly <b>so"), "hers", memory)
    await rig.after.act(_request(ANN), _act("answer-down", "hers", "down"), "hers", memory)
    kept = rig.traces.summary("hers")
    assert (kept.feedback, kept.comment) == ("down", "Exactly <b>so")
    await rig.after.act(_request(ANN), _act("answer-down", "hers", "none"), "hers", memory)
    assert rig.traces.summary("hers").feedback is None


@pytest.mark.parametrize("run_id", ["hers", "shared"])
async def test_nobody_rates_for_another(rig: Rig, run_id: str) -> None:
    memory = json.dumps({"runs": ["hers", "shared"]})
    feedback, history = await rig.after.act(_request(BOB), _act("answer-up", run_id, "up"), run_id, memory)
    assert rig.traces.summary(run_id).feedback is None
    assert feedback == ""
    assert 'data-sr-show="hers"' not in history
    assert "sr-thumb" not in history


async def test_other_acts_are_left_alone(rig: Rig) -> None:
    for message in (_act("delete", "hers", ""), "", "{", _act("answer-sideways", "hers", "up")):
        assert await rig.after.act(_request(ANN), message, "hers", "") == (gr.skip(), gr.skip())
    await rig.after.act(_request(ANN), _act("answer-up", "hers", "sideways"), "hers", "")
    assert rig.traces.summary("hers").feedback is None
