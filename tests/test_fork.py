"""Run again from a step: what the form says, what a fork takes over, and whose runs may be forked."""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gradio as gr
import pytest

from specrag.build import Parts
from specrag.config import load_settings
from specrag.errors import UsageError
from specrag.library.visitors import Visitor
from specrag.models.scripted import ScriptedModel
from specrag.startup import Startup, StartupState
from specrag.tracing.trace import Trace
from specrag.types import Parent
from specrag.ui import trace_cards
from specrag.ui.fork_form import (
    ForkForm,
    form_of,
    overrides_of,
    pipeline_of,
    question_of,
    step_of,
    wished,
)
from specrag.ui.tabs import fork, fork_events
from specrag.ui.tabs.fork import NAMES, ForkPanel, form_from
from specrag.ui.who import COOKIE, visitor_of
from tests.shelf_rig import rig
from tests.toys import WordEmbedder
from tests.ui_html import find
from tests.ui_runs import STANDARD
from tests.ui_traces import HOSTILE, SELECTED

USUAL = load_settings({})
CONFIG = {**USUAL.public(), "collection": "own", "drafts": 3, "seed": 5}
PARENT = replace(SELECTED, config=CONFIG)
EVERY_S = 0.05


# The form


def test_the_form_says_how_the_run_was_run() -> None:
    form = form_of(PARENT, USUAL)
    assert (form.step, form.question, form.pipeline) == ("partition", SELECTED.question, "speculative")
    assert (form.settings["drafts"], form.settings["seed"]) == (3, 5)
    assert form.settings["weights"]["relevance"] == 4.0


def test_a_run_from_a_file_with_impossible_settings_fills_the_form_with_the_usual_ones() -> None:
    """A slider was given ten thousand drafts."""
    odd = replace(PARENT, config={"drafts": 10_000, "weights": {"draft": HOSTILE}, "partition": [HOSTILE]})
    assert form_of(odd, USUAL).settings == form_of(replace(PARENT, config={}), USUAL).settings


def test_only_what_the_step_can_change_is_taken_from_the_form() -> None:
    """A fork of the verification asked for other drafts than it took over, and its trace said so."""
    settings = {"drafts": 7.0, "seed": 9, "decision": "synthesise", "draft_instruction": "Be short."}
    form = ForkForm(settings=settings)
    assert overrides_of(PARENT, form, "partition")["drafts"] == 7
    drafting = overrides_of(PARENT, form, "draft")
    assert (drafting["drafts"], drafting["draft_instruction"]) == (3, "Be short.")
    deciding = overrides_of(PARENT, form, "decide")
    assert (deciding["draft_instruction"], deciding["decision"]) == ("", "synthesise")


def test_another_question_is_asked_from_the_first_step_only() -> None:
    form = ForkForm(question="Another one?")
    assert question_of(PARENT, form, "retrieve") == "Another one?"
    assert question_of(PARENT, form, "partition") is None
    assert question_of(PARENT, ForkForm(question=PARENT.question), "retrieve") is None


def test_only_speculative_runs_take_drafts_over() -> None:
    form = form_of(STANDARD, USUAL)
    assert (form.step, form.pipeline) == ("retrieve", "standard")
    assert pipeline_of(form, "partition") == "standard"
    assert pipeline_of(form, "draft") == "speculative"


@pytest.mark.parametrize("value", [None, "", "answer", ["draft"], 7])
def test_what_is_no_step_is_refused_in_a_sentence(value: object) -> None:
    with pytest.raises(UsageError, match="Choose the step"):
        step_of(value)
    with pytest.raises(UsageError, match="Choose a pipeline"):
        pipeline_of(ForkForm(pipeline=value), "retrieve")


def test_what_was_tried_out_comes_into_the_form() -> None:
    form = wished(form_of(PARENT, USUAL), {"weights": {"relevance": 0.5}, "threshold": 0.3, "pool": False})
    assert form.step == "decide"
    assert form.settings["weights"]["relevance"] == 0.5
    assert form.settings["weights"]["draft"] == 1.0
    assert (form.settings["threshold"], form.settings["pool"]) == (0.3, False)
    fewer = wished(form_of(PARENT, USUAL), {"drafts": 2})
    assert (fewer.step, fewer.settings["drafts"]) == ("partition", 2)


@pytest.mark.parametrize("wish", [None, [], "x", {"weights": 3, "threshold": "x", "pool": 1, "drafts": True}])
def test_an_unreadable_wish_changes_nothing(wish: object) -> None:
    form = form_of(PARENT, USUAL)
    assert wished(form, wish).settings == form.settings


def test_the_line_on_the_ask_tab_leads_back() -> None:
    html = trace_cards.fork_line("child", Parent(run_id=HOSTILE, step="draft"))
    actions = [one.attributes["data-sr-action"] for one in find(html, "button")]
    assert actions == ["run-open", "runs-compare", "run-open"]
    assert "<script>" not in html
    assert trace_cards.fork_line("child", None) == ""


# The fork


@dataclass(frozen=True)
class Form:
    """The form of a program that is ready, as Gradio calls it."""

    parts: Parts
    panel: ForkPanel
    events: fork_events.ForkEvents

    async def run(self, who: str, run_id: str, form: ForkForm) -> dict[Any, Any]:
        settings = [form.settings[name] for name in NAMES]
        values = [form.step, form.question, form.pipeline, *settings, *form.settings["weights"].values()]
        assert form_from(tuple(values)).settings == form.settings
        return await self.events.run(request(who), run_id, *values)

    async def ended(self, run_id: str) -> Trace:
        async with aclosing(self.parts.runs.follow(run_id, every_s=EVERY_S)) as traces:
            return [trace async for trace in traces][-1]


def request(name: str) -> gr.Request:
    """A request of the browser of somebody."""
    asked = SimpleNamespace(cookies={COOKIE: name.ljust(22, "x")}, client=None)
    return cast("gr.Request", SimpleNamespace(username=None, request=asked))


@pytest.fixture
async def form(tmp_path: Path) -> AsyncIterator[Form]:
    with rig(tmp_path / "rig", access="visitor", visitor_days=30) as made:
        startup = Startup(made.settings)
        model = ScriptedModel(lambda _prompt: {"rationale": " So it is.", "answer": " Four nights"})
        parts = startup.parts = Parts(made.settings, drafter=model, verifier=model)
        vars(parts).update(
            store=made.store, indexer=made.indexer, library=made.library, embedder=WordEmbedder()
        )
        startup._set(StartupState(message="Ready", ready=True))
        with gr.Blocks():
            panel = fork.build(startup)
            events = fork_events.ForkEvents(panel, startup, gr.Textbox(), gr.Tabs())
        who = visitor_of(request("ann"), made.settings)
        parts.traces.save(replace(PARENT, run_id="parent"), [], owner=who.owner or "")
        yield Form(parts, panel, events)
        await parts.runs.close()


def visitor_named(form: Form, name: str) -> Visitor:
    return visitor_of(request(name), form.parts.settings)


async def test_a_fork_from_the_drafts_writes_them_anew_over_the_same_subsets(form: Form) -> None:
    asked = replace(form_of(PARENT, form.parts.settings), step="draft")
    told = await form.run("ann", "parent", asked)
    run_id = told[form.events._show].split(" ")[0]
    trace = await form.ended(run_id)
    assert trace.status == "done", trace.error
    assert trace.parent == Parent(run_id="parent", step="draft")
    assert trace.subsets == PARENT.subsets
    assert {draft.answer for draft in trace.drafts} == {"Four nights"}
    ann = visitor_named(form, "ann")
    assert [run.run_id for run in form.parts.history.children(ann, "parent")] == [run_id]


async def test_a_fork_from_the_decision_keeps_every_draft(form: Form) -> None:
    asked = form_of(PARENT, form.parts.settings)
    weights = {**asked.settings["weights"], "relevance": 0.0}
    asked = replace(asked, step="decide", settings={**asked.settings, "weights": weights})
    told = await form.run("ann", "parent", asked)
    trace = await form.ended(told[form.events._show].split(" ")[0])
    assert [draft.answer for draft in trace.drafts] == [draft.answer for draft in PARENT.drafts]
    assert trace.config["weights"]["relevance"] == 0.0


async def test_a_run_of_somebody_else_is_not_forked(form: Form) -> None:
    asked = form_of(PARENT, form.parts.settings)
    told = await form.run("ben", "parent", asked)
    missing = await form.run("ben", "nowhere", asked)
    assert form.events._show not in told
    assert told[form.panel.note].replace("parent", "ID") == missing[form.panel.note].replace("nowhere", "ID")
    assert form.events.filled(visitor_named(form, "ben"), "parent") == {}


async def test_a_collection_of_somebody_else_is_not_asked_through_a_fork(form: Form) -> None:
    """A trace from a file may name any collection; what was found in it would have been shown."""
    ben = visitor_named(form, "ben")
    shelf = form.parts.library.create(ben, "Secrets")
    ann = visitor_named(form, "ann")
    trace = replace(PARENT, run_id="odd", config={**CONFIG, "collection": shelf.name})
    form.parts.traces.save(trace, [], owner=ann.owner or "")
    asked = form_of(trace, form.parts.settings)
    told = await form.run("ann", "odd", replace(asked, step="retrieve"))
    assert "There is no collection" in told[form.panel.note]
    assert form.events._show not in told
    told = await form.run("ann", "odd", replace(asked, step="partition", pipeline="multihop"))
    assert "There is no collection" in told[form.panel.note]  # its later hops would look in there
    assert form.events._show not in told
    told = await form.run("ann", "odd", replace(asked, step="decide"))
    run = await form.ended(told[form.events._show].split(" ")[0])
    assert run.config["collection"] == ""


async def test_an_impossible_setting_is_one_sentence(form: Form) -> None:
    asked = form_of(PARENT, form.parts.settings)
    odd = replace(asked, settings={**asked.settings, "passages_per_draft": 4000})
    told = await form.run("ann", "parent", odd)
    assert "PASSAGES_PER_DRAFT" in told[form.panel.note]
    assert form.events._show not in told


async def test_a_wish_is_for_the_run_that_is_opened(form: Form) -> None:
    message = json.dumps({"action": "run-fork", "id": "parent", "value": json.dumps({"threshold": 0.4})})
    told = form.events.wish(request("ann"), message, "parent")
    assert told[form.panel.threshold]["value"] == 0.4
    assert told[form.panel.frame]["open"] is True
    assert form.panel.threshold not in form.events.wish(request("ann"), message, "other")
