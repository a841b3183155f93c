"""What the Evaluate tab answers about small evaluations, called as a browser can be made to call it."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import gradio as gr
import pytest

from specrag.evaluation.trials import Trial, Trials, Wanted
from specrag.startup import StartupState
from specrag.turnstile import Turnstile
from specrag.ui.tabs.evaluate_events import FILE
from tests.evaluate_page import QUESTION, Rig, questions, request
from tests.report_samples import evaluation


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    """Made within a loop, or Gradio makes one that it never closes."""
    made = Rig(tmp_path)
    yield made
    made.startup.parts.close()


async def test_an_evaluation_is_followed_to_its_report(rig: Rig, tmp_path: Path) -> None:
    path = tmp_path / "bikes.jsonl"
    path.write_text(json.dumps(QUESTION))
    await rig.do(rig.events.run(request(), FILE, str(path), ["standard", "closed-book"], 5))
    assert not path.exists()
    assert "The evaluation is done" in rig.shown(rig.tab.status)
    assert "Evaluation: bikes" in rig.shown(rig.tab.head)
    assert rig.shown(rig.tab.progress) == ""
    assert rig.page[rig.tab.go]["interactive"] is True
    assert rig.page[rig.tab.shown] == rig.shelf.kept()[0].name


class Quick(Trials):
    """Trials that have ended when whoever started one hears of it."""

    def start(self, wanted: Wanted, *, owner: str = "") -> Trial:
        trial = super().start(wanted, owner=owner)
        assert self._thread is not None
        self._thread.join()
        return trial


async def test_an_evaluation_that_ends_at_once_is_told(rig: Rig, tmp_path: Path) -> None:
    """The page said nothing at all, as if the button were dead."""
    parts = rig.startup.parts
    parts.__dict__["trials"] = Quick(parts)
    await rig.do(rig.events.run(request(), FILE, questions(tmp_path), ["standard"], 5))
    assert "The evaluation is done" in rig.shown(rig.tab.status)
    assert "Evaluation: bikes" in rig.shown(rig.tab.head)
    (tmp_path / "reports").rename(tmp_path / "before")
    (tmp_path / "reports").write_text("a file")
    await rig.do(rig.events.run(request(), FILE, questions(tmp_path), ["standard"], 5))
    assert "The evaluation failed" in rig.shown(rig.tab.status)
    assert "cannot be kept" in rig.shown(rig.tab.message)


async def test_the_end_is_told_to_a_page_that_looked_away(rig: Rig, tmp_path: Path) -> None:
    """Its button stayed disabled for ever; and a page that waited for nothing is told of no end."""
    rig.startup.parts.__dict__["turnstile"] = turnstile = Turnstile(1)
    async with turnstile.place():
        following = rig.events.run(request(), FILE, questions(tmp_path), ["standard"], 5)
        while rig.page.get(rig.tab.go, {}).get("interactive") is not False:
            rig.page |= await anext(following)
        await following.aclose()
    trials = rig.startup.parts.trials
    assert trials._thread is not None
    await asyncio.to_thread(trials._thread.join)
    other = [update async for update in rig.events.load(request("s2"))]
    assert other == [{rig.tab.progress: "", rig.tab.go: gr.update(interactive=True)}]
    for _ in range(2):
        await rig.do(rig.events.look(request(), "uploaded"))
        assert "The evaluation is done" in rig.shown(rig.tab.status)
        assert "Evaluation: bikes" in rig.shown(rig.tab.head)
        assert rig.page[rig.tab.go]["interactive"] is True
        assert rig.shown(rig.tab.progress) == ""
    assert await anext(rig.events.load(request())) == other[0]


async def test_an_old_page_stops_no_newer_evaluation(rig: Rig, tmp_path: Path) -> None:
    """On a shared page all are nobody's in particular, and the one on an old page may be over."""
    rig.startup.parts.__dict__["turnstile"] = turnstile = Turnstile(1)
    await rig.do(rig.events.run(request(), FILE, questions(tmp_path), ["standard"], 5))
    async with turnstile.place():
        following = rig.events.run(request("s2"), FILE, questions(tmp_path), ["standard"], 5)
        while 'data-sr-id="2"' not in rig.shown(rig.tab.progress):
            rig.page |= await anext(following)
        for old in ("1", "", "\u00b2", "-2", "9" * 200):
            await rig.act("evaluate-stop", old)
            newest = rig.startup.parts.trials.newest
            assert newest is not None
            assert newest.stage != "stopping", old
        await rig.act("evaluate-stop", "2")
        assert "is being stopped" in rig.shown(rig.tab.status)
        await rig.do(following)
    assert "The evaluation was stopped" in rig.shown(rig.tab.status)


@pytest.mark.parametrize(
    ("text", "chosen", "says"),
    [
        (None, ["standard"], "Choose a file of questions first"),
        ("no json", ["standard"], "it is not JSON"),
        ("x" * (3 << 20), ["standard"], "larger than 2 MiB"),
        (json.dumps(QUESTION), [], "Choose at least one pipeline"),
        (json.dumps(QUESTION), ["magic"], "no pipeline “magic”"),
    ],
)
async def test_what_cannot_be_evaluated_is_one_sentence(
    rig: Rig, tmp_path: Path, text: str | None, chosen: list[str], says: str
) -> None:
    path = tmp_path / "bikes.jsonl"
    if text is not None:
        path.write_text(text)
    await rig.do(rig.events.run(request(), FILE, str(path) if text else None, chosen, 5))
    assert says in rig.shown(rig.tab.message)
    assert not path.exists()
    assert rig.page[rig.tab.file] is None, "the page goes on to show a file that is deleted"


async def test_a_file_that_is_gone_is_one_sentence(rig: Rig, tmp_path: Path) -> None:
    """It was chosen on this page and used up on another, or gradio has cleared its cache."""
    await rig.do(rig.events.run(request(), FILE, str(tmp_path / "gone.jsonl"), ["standard"], 5))
    assert "gone.jsonl cannot be read: No such file" in rig.shown(rig.tab.message)
    assert rig.page[rig.tab.file] is None


async def test_a_file_that_was_not_used_is_deleted_as_well(rig: Rig, tmp_path: Path) -> None:
    """The page forgets it when the evaluation of the sample begins, so nobody would delete it later."""
    sent = questions(tmp_path)
    await rig.do(rig.events.run(request(), "sample", sent, [], 5))
    assert not (tmp_path / "bikes.jsonl").exists()
    assert rig.page[rig.tab.file] is None


async def test_before_the_start_nothing_is_evaluated(rig: Rig, tmp_path: Path) -> None:
    rig.startup._set(StartupState(message="Starting"))
    await rig.do(rig.events.run(request(), "sample", None, ["standard"], 5))
    assert "still starting" in rig.shown(rig.tab.message)
    await rig.do(rig.events.look(request(), ""))
    await rig.act("evaluate-stop")


async def test_strangers_start_nothing(tmp_path: Path) -> None:
    rig = Rig(tmp_path, access="visitor")
    rig.shelf.keep(evaluation())
    await rig.do(rig.events.look(request(), ""))
    assert "/home/ada" not in rig.shown(rig.tab.head)
    await rig.do(rig.events.run(request(), "sample", None, ["standard"], 5))
    assert "open to strangers" in rig.shown(rig.tab.message)
    assert rig.startup.parts.trials.newest is None
    rig.startup.parts.close()
