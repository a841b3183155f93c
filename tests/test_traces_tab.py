"""The Traces tab without a browser: what its acts do to the history, and what a visitor may not do."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from specrag.build import Parts
from specrag.errors import TraceError
from specrag.library.visitors import Visitor
from specrag.models.scripted import ScriptedModel
from specrag.startup import Startup, StartupState
from specrag.tracing.codec import run_to_json
from specrag.tracing.search import RunFilter
from specrag.types import Parent
from specrag.ui.tabs.traces_desk import Desk, Values, View
from specrag.ui.tabs.traces_events import Events
from specrag.ui.tabs.traces_files import RunFiles
from specrag.ui.trace_filter import filter_of, mark_of
from tests.shelf_rig import rig, visitor
from tests.ui_html import find
from tests.ui_traces import DISPUTED, FAILED, SELECTED

ANN, BEN = visitor("ann"), visitor("ben")


@dataclass(frozen=True)
class Tab:
    """The tab of a program that is ready, and the parts behind it."""

    parts: Parts
    events: Events
    files: RunFiles

    def desk(self, who: Visitor = ANN, *, search: str = "", ticked: tuple[str, ...] = ()) -> Desk:
        wanted = filter_of(json.dumps({"text": search}))
        return Desk(who=who, wanted=wanted, ticked=ticked, view=View())

    def act(self, desk: Desk, action: str, identity: str = "", value: str = "") -> tuple[View, Values]:
        told = self.events.act(desk, json.dumps({"action": action, "id": identity, "value": value}))
        assert told is not None
        return told

    def keep(self, run_id: str, who: Visitor = ANN, day: int = 1) -> str:
        trace = replace(
            SELECTED,
            run_id=run_id,
            question=f"Question {run_id}?",
            created_at=f"2026-01-{day:02}T00:00:00.000+00:00",
        )
        self.parts.traces.save(trace, [], owner=who.owner or "")
        return run_id

    def ids(self, who: Visitor = ANN) -> list[str]:
        return [run.run_id for run in self.parts.history.find(who, RunFilter())[0]]


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[Tab]:
    with rig(tmp_path / "rig", access="visitor", visitor_days=30) as made:
        startup = Startup(made.settings)
        model = ScriptedModel(lambda _prompt: {})
        parts = startup.parts = Parts(made.settings, drafter=model, verifier=model)
        vars(parts).update(store=made.store, indexer=made.indexer, library=made.library)
        startup._set(StartupState(message="Ready", ready=True))
        files = RunFiles(startup)
        yield Tab(parts, Events(startup, files.acts), files)


def test_the_list_is_shown_and_holds_only_the_own_runs(tab: Tab) -> None:
    tab.keep("a1")
    tab.keep("b1", BEN)
    _, values = tab.events.look(tab.desk())
    assert [one.text for one in find(values["runs"], "sr-run-question")] == ["Question a1?"]
    assert find(values["runs"], "h3")[0].text == "1 run, 1 shown"


def test_a_run_that_is_opened_takes_the_place_of_the_list(tab: Tab) -> None:
    tab.keep("a1")
    view, values = tab.act(tab.desk(), "run-open", "a1")
    assert view.opened
    assert values["runs"] == ""
    assert values["run_id"] == "a1"
    assert values["tab"] == "traces"
    assert "Question a1?" in values["head"]
    _, values = tab.act(replace(tab.desk(), view=view), "runs-back")
    assert values["head"] == ""
    assert values["run_id"] == "", "the detail of the run stayed under the list"
    assert "Question a1?" in values["runs"]


def test_an_opened_run_calls_its_collection_as_its_owner_does(tab: Tab) -> None:
    """It was called by the name that the store has for it, which nobody has ever typed."""
    shelf = tab.parts.library.create(ANN, "Harbour rules")
    for run_id, who, name in (("a1", ANN, shelf.name), ("b1", BEN, shelf.name), ("a2", ANN, "gone")):
        trace = replace(SELECTED, run_id=run_id, config={"collection": name})
        tab.parts.traces.save(trace, [], owner=who.owner or "")
    said = [
        tab.act(tab.desk(who), "run-open", id_)[1]["head"]
        for who, id_ in ((ANN, "a1"), (BEN, "b1"), (ANN, "a2"))
    ]
    assert "Harbour rules" in said[0]
    assert "Harbour rules" not in said[1], "the title of a collection of somebody else is told"
    assert "gone" in said[2]


def test_a_damaged_run_is_deleted_by_its_button(tab: Tab) -> None:
    """The button read the trace for the sentence that it says afterwards."""
    tab.keep("a1")
    path = tab.parts.settings.home / "traces.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE recordings SET trace = x'00'")
    _, values = tab.act(tab.desk(), "run-delete", "a1")
    assert "“Question a1?” was deleted" in values["message"]
    assert tab.ids() == []


@pytest.mark.parametrize("action", ["run-open", "run-delete", "run-rate-up", "run-share", "run-export"])
def test_a_run_of_somebody_else_is_refused_as_one_that_does_not_exist(tab: Tab, action: str) -> None:
    tab.keep("b1", BEN)
    messages = []
    for run_id in ("b1", "b2"):
        _, values = tab.act(tab.desk(), action, run_id, "json")
        assert "Question b1?" not in str(values)
        messages.append(values["message"].replace(run_id, "ID"))
    assert messages[0] == messages[1]
    assert "sr-notice-error" in messages[0]
    assert tab.ids(BEN) == ["b1"]
    assert tab.parts.traces.summary("b1").feedback is None


def test_a_comparison_with_a_run_of_somebody_else_is_refused(tab: Tab) -> None:
    tab.keep("a1")
    tab.keep("b1", BEN)
    for pair in (("a1", "b1"), ("b1", "a1")):
        _, values = tab.act(tab.desk(), "runs-compare", *pair)
        assert values["diff"] == ""
        assert "Question b1?" not in str(values)


def test_two_ticked_runs_are_compared_the_older_one_first(tab: Tab) -> None:
    tab.keep("new", day=2)
    tab.keep("old", day=1)
    view, values = tab.act(tab.desk(ticked=("new", "old")), "runs-compare-ticked")
    assert view.pair == ("old", "new")
    assert "Two runs compared" in values["diff"]
    _, values = tab.act(tab.desk(ticked=("new",)), "runs-compare-ticked")
    assert "exactly two" in values["message"]


def test_ticked_runs_are_deleted_but_not_those_of_others(tab: Tab) -> None:
    for run_id in ("a1", "a2", "a3"):
        tab.keep(run_id)
    tab.keep("b1", BEN)
    view, values = tab.act(tab.desk(ticked=("a1", "a2", "b1")), "runs-delete")
    assert "2 runs deleted" in values["message"]
    assert tab.ids() == ["a3"]
    assert tab.ids(BEN) == ["b1"]
    assert f'data-sr-forget="{view.deleted}"' in values["runs"], "the ticks of deleted runs stayed"


def test_what_matches_is_deleted_and_nothing_else(tab: Tab) -> None:
    for run_id in ("a1", "a2"):
        tab.keep(run_id)
    tab.keep("b1", BEN)
    desk = tab.desk(search="a2?")
    _, values = tab.act(desk, "runs-clear", value=mark_of(desk.wanted))
    assert "1 run deleted" in values["message"]
    assert tab.ids() == ["a1"]
    assert tab.ids(BEN) == ["b1"]


def test_a_search_that_changed_while_it_was_asked_deletes_nothing(tab: Tab) -> None:
    """The question named the runs of one search, and those of the next one would have been deleted."""
    tab.keep("a1")
    _, values = tab.act(tab.desk(), "runs-clear", value=mark_of(RunFilter(text="a2")))
    assert "nothing was deleted" in values["message"]
    assert tab.ids() == ["a1"]


def test_a_deleted_run_leads_back_to_the_list(tab: Tab) -> None:
    tab.keep("a1")
    tab.keep("a2")
    view, _ = tab.act(tab.desk(), "run-open", "a1")
    view, values = tab.act(replace(tab.desk(), view=view), "run-delete", "a1")
    assert not view.opened
    assert [one.text for one in find(values["runs"], "sr-run-question")] == ["Question a2?"]


def test_a_thumb_is_kept_and_taken_back_by_pressing_it_again(tab: Tab) -> None:
    tab.keep("a1")
    view, _ = tab.act(tab.desk(), "run-open", "a1")
    desk = replace(tab.desk(), view=view)
    _, values = tab.act(desk, "run-rate-up", "a1")
    assert "data-sr-rated" in values["head"]
    tab.events.comment(desk, "Short and right.")
    assert tab.parts.traces.summary("a1").comment == "Short and right."
    _, values = tab.act(desk, "run-open", "a1")
    assert values["comment"] == "Short and right."
    tab.act(desk, "run-rate-up", "a1")
    assert tab.parts.traces.summary("a1").feedback is None


def test_a_comment_without_a_thumb_says_what_is_missing(tab: Tab) -> None:
    tab.keep("a1")
    view, _ = tab.act(tab.desk(), "run-open", "a1")
    _, values = tab.events.comment(replace(tab.desk(), view=view), "Hm.")
    assert "helpful" in values["message"]


def test_a_shared_run_can_be_opened_by_others_who_can_only_read_it(tab: Tab) -> None:
    tab.keep("b1", BEN)
    tab.act(tab.desk(BEN), "run-share", "b1", "on")
    _, values = tab.events.linked(tab.desk(), "b1")
    assert "Question b1?" in values["head"]
    assert "run-delete" not in values["head"]
    _, values = tab.act(tab.desk(), "run-delete", "b1")
    assert tab.ids(BEN) == ["b1"]
    tab.act(tab.desk(BEN), "run-share", "b1", "off")
    _, values = tab.events.linked(tab.desk(), "b1")
    assert "Question b1?" not in str(values)


def test_the_runs_beside_one_reach_over_the_pages_of_the_list(tab: Tab) -> None:
    for number in range(120):
        trace = replace(
            SELECTED,
            run_id=f"r{number:03}",
            created_at=f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000+00:00",
        )
        tab.parts.traces.save(trace, [], owner=ANN.owner or "")
    view, values = tab.act(replace(tab.desk(), view=View(page=1)), "run-open", "r070")  # the last of page 1
    older = next(
        one for one in find(values["head"], "button") if one.attributes["data-sr-action"] == "run-older"
    )
    assert older.attributes["data-sr-id"] == "r069"
    view, values = tab.act(replace(tab.desk(), view=view), "run-older", "r069")
    assert view.page == 2
    _, values = tab.act(replace(tab.desk(), view=view), "runs-back")
    assert "Question" not in values["message"]
    assert len(find(values["runs"], "sr-run")) == 50


def test_the_last_page_is_the_one_before_when_its_runs_are_gone(tab: Tab) -> None:
    tab.keep("a1")
    view, values = tab.events.draw(replace(tab.desk(), view=View(page=9)))
    assert view.page == 1
    assert "Question a1?" in values["runs"]


def test_lineage_is_shown_from_both_ends(tab: Tab) -> None:
    tab.keep("a1")
    fork = replace(DISPUTED, run_id="a2", parent=Parent(run_id="a1", step="draft"))
    tab.parts.traces.save(fork, [], owner=ANN.owner or "")
    _, values = tab.act(tab.desk(), "run-open", "a2")
    assert "Forked at" in values["head"]
    _, values = tab.act(tab.desk(), "run-open", "a1")
    assert "Run again as" in values["head"]


# Files


def test_an_exported_run_comes_back_from_its_file(tab: Tab, tmp_path: Path) -> None:
    tab.keep("a1")
    _, values = tab.act(tab.desk(), "run-export", "a1", "json")
    written = Path(values["export"])
    assert written.name == "specrag-a1.json"
    copy = tmp_path / "sent.json"
    copy.write_bytes(written.read_bytes())
    outcome = tab.files.take(tab.desk(BEN), str(copy))
    view, values = tab.events.imported(outcome)
    assert not copy.exists(), "anybody could fetch gradio's copy by its address"
    assert view.opened
    assert "Question a1?" in values["head"]
    assert tab.ids(BEN) == [view.run_id]
    assert view.run_id != "a1", "the run of another visitor was replaced"
    imported = tab.parts.history.trace(BEN, view.run_id)
    assert replace(imported, run_id="a1") == tab.parts.history.trace(ANN, "a1")


def test_an_export_without_texts_holds_none(tab: Tab) -> None:
    tab.keep("a1")
    desk = replace(tab.desk(), texts=False)
    for name in ("json", "perfetto", "openinference", "html"):
        _, values = tab.act(desk, "run-export", "a1", name)
        written = Path(values["export"])
        assert "without-texts" in written.name
        assert "nights" not in written.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"\xff\xfe\x00", b"[" * 100_000, b'{"schema": "specrag.trace/1"}']
)
def test_a_file_that_is_no_run_is_refused_in_one_sentence(tab: Tab, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "odd<b>.json"
    path.write_bytes(data)
    outcome = tab.files.take(tab.desk(), str(path))
    assert "sr-notice-error" in outcome.message
    assert "odd<b>" not in outcome.message
    assert tab.ids() == []
    assert not path.exists()


def test_a_visitor_who_cannot_be_known_again_keeps_nothing(tab: Tab, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(run_to_json(FAILED, []), encoding="utf-8")
    nobody = replace(ANN, passing=True)
    outcome = tab.files.take(tab.desk(nobody), str(path))
    assert "sr-notice-error" in outcome.message
    with pytest.raises(TraceError):
        tab.parts.traces.load(FAILED.run_id)
