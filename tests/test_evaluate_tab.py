"""What the Evaluate tab answers about reports, called as a browser can be made to call it."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.evaluate_page import Rig, request
from tests.report_samples import HOSTILE, evaluation, latency


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    """Made within a loop, or Gradio makes one that it never closes."""
    made = Rig(tmp_path)
    yield made
    made.startup.parts.close()


def written(path: Path) -> str:
    return path.read_text(encoding="utf-8").lstrip()


def plots(rig: Rig) -> int:
    return sum(rig.page.get(slot.plot) is not None for slot in rig.tab.slots)


async def test_the_newest_report_is_shown_first(rig: Rig) -> None:
    rig.shelf.keep(evaluation())
    await rig.do(rig.events.look(request(), ""))
    assert "Evaluation: bikes, bells" in rig.shown(rig.tab.head)
    assert plots(rig) == 5
    assert "Time and tokens" in rig.shown(rig.tab.rest)
    assert rig.page[rig.tab.shown] == rig.shelf.kept()[0].name


async def test_what_is_on_the_page_stays(rig: Rig) -> None:
    """Whoever comes back to the tab finds the report that they were reading."""
    rig.shelf.keep(evaluation())
    await rig.do(rig.events.look(request(), "uploaded"))
    assert rig.tab.head not in rig.page
    assert "bikes, bells" in rig.shown(rig.tab.kept)


async def test_a_report_with_fewer_figures_takes_the_others_away(rig: Rig) -> None:
    names = [rig.shelf.keep(evaluation()), rig.shelf.keep(latency())]
    for name, count in zip(names, (5, 3), strict=True):
        await rig.act("evaluate-open", name)
        assert plots(rig) == count
        filled = [bool(rig.page[slot.words]) for slot in rig.tab.slots]
        assert filled == [True] * count + [False] * (5 - count)


async def test_a_report_that_is_gone_is_one_sentence(rig: Rig) -> None:
    await rig.act("evaluate-open", "../../etc/passwd")
    assert "There is no such report" in rig.shown(rig.tab.message)
    await rig.act("run-delete", "x")


@pytest.mark.parametrize(("form", "begins"), [("html", "<!doctype html>"), ("json", "{")])
async def test_a_report_is_saved_as_a_file(rig: Rig, form: str, begins: str) -> None:
    name = rig.shelf.keep(evaluation())
    await rig.act("evaluate-save", name, form)
    path = Path(rig.page[rig.tab.saved])
    assert path.name == f"specrag-Evaluation-bikes-bells.{form}"
    assert written(path).startswith(begins)
    assert rig.page[rig.tab.saving]
    await rig.act("evaluate-save", "nothing", form)
    assert "There is no such report" in rig.shown(rig.tab.message)


async def test_a_report_from_a_file_is_deleted_from_the_cache(rig: Rig, tmp_path: Path) -> None:
    """Anybody who knows its address could fetch it there."""
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(evaluation(dataset=HOSTILE)))
    await rig.do(rig.events.upload(request(), str(path)))
    assert not path.exists()
    assert "&lt;img src=x" in rig.shown(rig.tab.head)
    assert "not kept" in rig.shown(rig.tab.message)
    assert rig.shelf.kept() == ()
    path.write_text("no report")
    await rig.do(rig.events.upload(request(), str(path)))
    assert not path.exists()
    assert "is not JSON" in rig.shown(rig.tab.message)
    await rig.do(rig.events.upload(request(), None))
    assert "Choose the file" in rig.shown(rig.tab.message)


async def test_the_status_tells_of_the_report_that_is_shown(rig: Rig, tmp_path: Path) -> None:
    """It still said that an evaluation was done and its report below, above the report of another file."""
    rig.page[rig.tab.status] = "The evaluation is done; its report is below."
    path = tmp_path / "<b>mine.json"
    path.write_text(json.dumps(latency()))
    await rig.do(rig.events.upload(request(), str(path)))
    assert "The report of &lt;b&gt;mine.json is shown." in rig.shown(rig.tab.status)
    assert "is done" not in rig.shown(rig.tab.status)


@pytest.mark.parametrize(("access", "told"), [("shared", True), ("login", False), ("visitor", False)])
async def test_a_command_names_files_of_the_machine(tmp_path: Path, access: str, told: bool) -> None:
    rig = Rig(tmp_path, access=access)
    await rig.act("evaluate-open", rig.shelf.keep(evaluation()))
    assert "Evaluation: bikes, bells" in rig.shown(rig.tab.head)
    assert ("/home/ada" in rig.shown(rig.tab.head)) is told
    rig.startup.parts.close()
