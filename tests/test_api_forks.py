"""Conversations and forks from Python, over scripted models and the real embedder."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specrag.api import Rag
from specrag.errors import StoreError, TraceError, UsageError
from specrag.models.scripted import ScriptedModel
from specrag.tracing.files import load_trace, save_trace
from specrag.tracing.store import TraceStore
from tests.test_api import QUESTION, write
from tests.toys import PAGES

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def rag(tmp_path_factory: pytest.TempPathFactory, embedder_path: Path) -> Iterator[Rag]:
    folder, home = tmp_path_factory.mktemp("handbook"), tmp_path_factory.mktemp("home")
    for title, text in PAGES:
        (folder / f"{title}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
    small, large = ScriptedModel(write, name="small"), ScriptedModel(write, name="large")
    options: dict[str, Any] = {"home": home, "embedder": str(embedder_path), "in_memory": True, "threads": 1}
    with Rag(drafter=small, verifier=large, **options) as made:
        made.add(folder)
        yield made


def test_a_fork_is_a_kept_run_with_the_settings_of_its_parent(rag: Rag, tmp_path: Path) -> None:
    parent = rag.ask(QUESTION, drafts=3, preset="paper", threshold=0.1)
    save_trace(parent, tmp_path / "parent.json")
    child = rag.fork(load_trace(tmp_path / "parent.json"), "draft", weights={"draft": 2})
    assert (child.parent and child.parent.run_id) == parent.run_id
    assert child.subsets == parent.subsets
    assert child.config["threshold"] == 0.1
    assert child.config["weights"] == {**parent.config["weights"], "draft": 2}
    assert TraceStore(rag.settings.home / "traces.db").load(child.run_id) == child


def test_a_preset_in_a_fork_brings_its_weights(rag: Rag) -> None:
    parent = rag.ask(QUESTION, weights={"draft": 7})
    child = rag.fork(parent, "decide", preset="paper")
    assert child.config["weights"]["draft"] == 1.0


def test_another_pipeline_may_take_the_passages_over(rag: Rag) -> None:
    child = rag.fork(rag.ask(QUESTION), "partition", pipeline="standard")
    assert child.pipeline == "standard"
    assert child.answer is not None
    assert child.answer.text == "640 watt-hours"


def test_which_model_plays_which_part_is_a_setting_of_the_run(rag: Rag) -> None:
    """The trace names the models that did the work, not those that are loaded for it."""
    swapped = rag.ask(QUESTION, draft_with="verifier", verify_with="drafter")
    assert (swapped.config["drafter"], swapped.config["verifier"]) == ("large", "small")
    assert swapped.environment["models"]["drafter"]["name"] == "large"
    alone = rag.ask(QUESTION, verify_with="drafter")
    assert (alone.config["drafter"], alone.config["verifier"]) == ("small", "small")
    plain = rag.ask(QUESTION)
    assert (plain.config["drafter"], plain.config["verifier"]) == ("small", "large")


def test_a_follow_up_goes_on_an_earlier_trace(rag: Rag) -> None:
    first = rag.ask(QUESTION)
    trace = rag.ask("And how heavy is it?", earlier=[first])
    assert trace.earlier[0].question == QUESTION
    assert trace.rewritten is not None
    assert "battery" in trace.rewritten


def test_what_cannot_be_forked_is_one_sentence(rag: Rag) -> None:
    parent = rag.ask(QUESTION)
    standard = rag.ask(QUESTION, pipeline="standard")
    with pytest.raises(TraceError, match="is no speculative one"):
        rag.fork(standard, "verify")
    with pytest.raises(UsageError, match="Another question needs other passages"):
        rag.fork(parent, "draft", question="Who?")
    with pytest.raises(UsageError, match="draft_instruct is not a setting"):
        rag.fork(parent, "draft", draft_instruct="Be brief.")
    with pytest.raises(StoreError, match="There is no collection"):
        rag.fork(replace(parent, config={**parent.config, "collection": "elsewhere"}), "retrieve")
