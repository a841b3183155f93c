"""Spans for Phoenix, Langfuse and others: one tree, sound ids and times, and OpenInference's own words."""

import json
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from specrag.build import PIPELINES
from specrag.models.scripted import ScriptedModel
from specrag.pipelines.base import Request
from specrag.tracing.export.openinference import OtelSpan, spans_of
from specrag.tracing.export.otlp import to_json, to_request
from specrag.tracing.trace import Trace, fold
from specrag.types import Exchange, Parent, PipelineName, Prompt, Span
from tests.golden.record import events as golden_events
from tests.toys import filled_store, tools
from tests.ui_runs import MULTIHOP, RUNS, STANDARD
from tests.ui_traces import CANCELLED, FAILED, HOSTILE_TRACE, SELECTED, STATES


def named(spans: list[OtelSpan], name: str) -> OtelSpan:
    return next(span for span in spans if span.name == name)


@pytest.mark.parametrize("name", sorted({**STATES, **RUNS}))
def test_spans_are_one_tree_with_sound_ids_and_times(name: str) -> None:
    """A collector drops spans with bad ids; one with two roots shows two traces."""
    trace: Trace = {**STATES, **RUNS}[name]
    spans = spans_of(trace)
    by_id = {span.span_id: span for span in spans}
    assert len(by_id) == len(spans) >= max(1, len(trace.spans))
    assert [span for span in spans if span.parent_id is None] == [spans[0]]
    for span in spans:
        assert (len(span.trace_id), len(span.span_id)) == (16, 8)
        assert any(span.trace_id)
        assert any(span.span_id)
        assert 0 <= span.start_ns <= span.end_ns < 2**63
        if span.parent_id is not None:
            assert span.parent_id in by_id
            assert span.attributes["openinference.span.kind"]
    if trace.spans and trace.spans[0].name == "run":
        above = {span.id: span.parent_id for span in trace.spans}
        assert sum(span.parent_id == spans[0].span_id for span in spans) >= list(above.values()).count("run")


def test_a_run_that_is_sent_twice_is_the_same_trace_and_another_run_is_not() -> None:
    assert spans_of(SELECTED) == spans_of(SELECTED)
    other = spans_of(replace(SELECTED, run_id="run-9"))
    assert other[0].trace_id != spans_of(SELECTED)[0].trace_id
    assert not {span.span_id for span in other} & {span.span_id for span in spans_of(SELECTED)}


def test_times_are_those_of_the_run_in_nanoseconds() -> None:
    trace = replace(SELECTED, created_at="2026-03-01T12:00:00.250+00:00")
    zero = round(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()) * 10**9 + 250_000_000
    verify = named(spans_of(trace), "verify")
    assert (verify.start_ns, verify.end_ns) == (zero + 3_900_000_000, zero + 4_550_000_000)


async def test_a_real_run_says_what_went_in_and_what_came_out() -> None:
    trace = fold(await golden_events())
    spans = spans_of(trace)
    root, retrieve = spans[0].attributes, named(spans, "retrieve").attributes
    assert root["openinference.span.kind"] == "CHAIN"
    assert root["input.value"] == trace.question
    assert trace.answer is not None
    assert root["output.value"] == trace.answer.text
    assert json.loads(str(root["metadata"]))["decision"] == "selected"
    assert retrieve["openinference.span.kind"] == "RETRIEVER"
    for place, passage in enumerate(trace.passages):
        prefix = f"retrieval.documents.{place}.document"
        assert retrieve[f"{prefix}.content"] == passage.text
        assert retrieve[f"{prefix}.score"] == passage.score
        assert json.loads(str(retrieve[f"{prefix}.metadata"]))["title"] == passage.title
    for number, draft in enumerate(trace.drafts, 1):
        told = named(spans, f"draft {number}").attributes
        assert told["openinference.span.kind"] == "LLM"
        assert told["llm.model_name"] == trace.config["drafter"]
        assert told["input.value"] == told["llm.input_messages.0.message.content"] == draft.prompt
        assert draft.answer in str(told["output.value"])
        assert told["llm.token_count.prompt"] == draft.prompt_tokens
        assert told["llm.token_count.completion"] == len(draft.tokens)
        assert told["specrag.score.combined"] == draft.scores.combined
        assert json.loads(str(told["llm.invocation_parameters"]))["max_tokens"] > 0
    verify = named(spans, "verify").attributes
    assert verify["llm.token_count.prompt"] == trace.usage.verifier.prompt_tokens
    assert named(spans, "embed").attributes["openinference.span.kind"] == "EMBEDDING"


def test_tokens_of_models_add_up_to_those_of_the_run() -> None:
    """A tool sums the spans; a root that repeated the tokens would double the cost."""
    spans = spans_of(SELECTED)
    prompts = sum(int(span.attributes.get("llm.token_count.prompt", 0)) for span in spans)
    drafts = sum(draft.prompt_tokens for draft in SELECTED.drafts)
    assert prompts == drafts + SELECTED.usage.verifier.prompt_tokens


def test_one_model_alone_and_hops_are_told_too() -> None:
    answer = named(spans_of(STANDARD), "answer").attributes
    assert answer["output.value"] == "Three nights, as the notice says"
    assert answer["llm.token_count.prompt"] == 900
    hops = spans_of(MULTIHOP)
    queries = [span.attributes["input.value"] for span in hops if span.name == "retrieve"]
    assert queries == [hop.query for hop in MULTIHOP.hops]


def test_what_a_step_was_sent_stands_at_that_step() -> None:
    prompts = (
        Prompt(role="verifier", step="verify", text="[1] Is it so?", tokens=7, draft="s1"),
        Prompt(role="verifier", step="verify", text="[2] Is it so?", tokens=8, draft="s2"),
    )
    verify = named(spans_of(replace(SELECTED, prompts=prompts)), "verify").attributes
    assert "[1] Is it so?" in str(verify["input.value"])
    assert "[2] Is it so?" in str(verify["input.value"])


def test_a_failed_run_is_an_error_and_a_stopped_one_is_not() -> None:
    failed = spans_of(FAILED)
    assert (
        failed[0].error == "No draft could be written: the drafter ran out of memory; choose a smaller model."
    )
    assert named(failed, "draft 1").error == "The drafter ran out of memory."
    stopped = spans_of(CANCELLED)
    assert [span.error for span in stopped] == [None] * len(stopped)
    assert not stopped[0].complete
    document = json.loads(to_json(stopped))
    assert document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["status"] == {}


def test_a_run_that_failed_before_its_first_step_has_a_root() -> None:
    trace = replace(FAILED, spans=(), drafts=())
    assert [span.name for span in spans_of(trace)] == ["specrag speculative"]


def test_forks_are_in_the_session_of_their_parent() -> None:
    child = replace(SELECTED, parent=Parent(run_id="run-0", step="draft"))
    assert {span.attributes["session.id"] for span in spans_of(child)} == {"run-0"}
    assert {span.attributes["session.id"] for span in spans_of(SELECTED)} == {"run-1"}


def test_spans_in_a_circle_end() -> None:
    spans = tuple(
        Span(id=key, parent_id=above, name="draft", start_ms=1.0, end_ms=2.0)
        for key, above in (("a", "b"), ("b", "a"), ("c", "c"))
    )
    assert len(spans_of(replace(SELECTED, spans=spans))) == 4


@pytest.mark.parametrize("trace", [SELECTED, HOSTILE_TRACE, FAILED, MULTIHOP])
def test_the_file_and_the_message_are_the_same(trace: Trace) -> None:
    """OTLP's JSON has hexadecimal ids and whole numbers as strings; otherwise it is the message."""
    spans = spans_of(trace)
    (resource,) = json.loads(to_json(spans))["resourceSpans"]
    rows = resource["scopeSpans"][0]["spans"]
    sent = to_request(spans).resource_spans[0].scope_spans[0].spans
    assert [row["spanId"] for row in rows] == [span.span_id.hex() for span in sent]
    assert [row.get("parentSpanId", "") for row in rows] == [span.parent_span_id.hex() for span in sent]
    assert [int(row["startTimeUnixNano"]) for row in rows] == [span.start_time_unix_nano for span in sent]
    assert [_plain(row["attributes"]) for row in rows] == [_sent(span.attributes) for span in sent]
    about = _plain(resource["resource"]["attributes"])
    assert about["service.name"] == about["openinference.project.name"] == "specrag"


def _plain(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    made = {}
    for one in attributes:
        ((kind, value),) = one["value"].items()
        made[one["key"]] = int(value) if kind == "intValue" else value
    return made


def _sent(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@pytest.mark.parametrize("name", ["speculative", "standard", "drafter"])
@pytest.mark.parametrize("options", [{}, {"threshold": 1.0}, {"decision": "synthesise"}, {"eager": True}])
async def test_each_step_has_its_tokens_and_none_are_told_twice(
    name: PipelineName, options: dict[str, Any]
) -> None:
    """A follow-up too, whose rewriting once was counted as the answer's."""
    store = filled_store()
    model = ScriptedModel(
        lambda _: {"rationale": " It holds 640.", "answer": " 640 watt-hours", "query": " c d"}
    )
    made = PIPELINES[name](tools(store, model, drafts=3, **options))
    earlier = (Exchange(question="How heavy is the battery?", answer="3.4 kilograms"),)
    request = Request(question="How much does it hold?", collection="documents", earlier=earlier)
    async with aclosing(made.run(request)) as events:
        trace = fold([event async for event in events])
    store.close()
    for count, written in (("prompt", "prompt_tokens"), ("completion", "completion_tokens")):
        told = sum(int(span.attributes.get(f"llm.token_count.{count}", 0)) for span in spans_of(trace))
        assert told == getattr(trace.usage.drafter, written) + getattr(trace.usage.verifier, written)
