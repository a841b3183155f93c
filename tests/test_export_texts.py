"""A run that leaves without its texts: not a word of it is in any file, and every figure is."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from specrag.config import PRESETS, ScoreWeights
from specrag.redecide import decide_again
from specrag.tracing.codec import run_to_json
from specrag.tracing.export.events_of import events_of
from specrag.tracing.export.formats import EXPORTS, ExportFormat
from specrag.tracing.export.importing import import_run
from specrag.tracing.export.redact import without_texts
from specrag.tracing.trace import Trace
from specrag.types import Answer, ErrorInfo, Exchange, Hop, Parent, Prompt, Side, Spot
from specrag.ui.exporting import export_run
from tests.ui_runs import RUNS
from tests.ui_traces import DISPUTED, SELECTED, STATES


def planted() -> tuple[Trace, list[str]]:
    """A run with another word of its own in every place where a text can stand."""
    words: list[str] = []

    def word() -> str:
        words.append(f"canary{len(words)}x")
        return words[-1]

    passages = tuple(
        replace(
            one,
            id=word(),
            document_id=word(),
            title=word(),
            text=word(),
            source=f"{word()}.pdf",
            section=word(),
            lead=word(),
            published_at=word(),
        )
        for one in DISPUTED.passages
    )
    ids = tuple(one.id for one in passages)
    drafts = tuple(
        replace(
            one,
            rationale=word(),
            answer=word(),
            prompt=f"<|im_start|>{word()}",
            error=word(),
            citations=ids[:1],
            tokens=tuple(replace(token, text=word()) for token in one.tokens[:2]),
            verifier_tokens=tuple(replace(token, text=word()) for token in one.tokens[:2]),
        )
        for one in DISPUTED.drafts
    )
    assert DISPUTED.decision is not None
    side = Side(draft_index=0, answer=word(), passage_ids=ids[:1], sources=(word(),))
    spans = tuple(replace(one, attributes={**one.attributes, "query": word()}) for one in DISPUTED.spans)
    trace = replace(
        DISPUTED,
        question=word(),
        rewritten=word(),
        earlier=(Exchange(question=word(), answer=word()),),
        parent=Parent(run_id="run-0", step="draft"),
        config={"collection": word(), "draft_instruction": word(), "documents": [word()], "drafts": 4},
        environment={
            "device": f"http://{word()}:8000",
            "models": {"drafter": {"name": "small", "server": word(), "notes": [word()]}},
        },
        passages=passages,
        retrieval_note=word(),
        partition_note=word(),
        singletons=ids[:1],
        spots=(Spot(passage_id=ids[0], x=0.5, y=-0.5, cluster=1),),
        subsets=tuple(replace(one, perspective=word(), passage_ids=ids[:2]) for one in DISPUTED.subsets),
        drafts=drafts,
        prompts=(Prompt(role="verifier", step="verify", text=word(), tokens=12, draft="s1"),),
        hops=(Hop(number=1, query=word(), passage_ids=ids[:1], note=word(), next_query=word()),),
        decision=replace(DISPUTED.decision, reason=word(), conflict=word(), sides=(side,)),
        answer=Answer(text=word(), citations=ids[:1], confidence=0.7),
        error=ErrorInfo(type="model", message=word()),
        spans=(*spans, replace(spans[0], id="own", name=word())),
    )
    return trace, words


@pytest.mark.parametrize("form", sorted(EXPORTS))
def test_no_word_of_a_run_is_left_in_any_format(form: ExportFormat) -> None:
    """Leaked by such exports elsewhere: titles in labels, questions in names of tracks, texts in metadata."""
    trace, words = planted()
    events = events_of(trace)
    whole = export_run(trace, events, form).decode()
    assert sum(word in whole for word in words) > 20, "the words are not planted where they are shown"
    bare = export_run(trace, events, form, texts=False).decode()
    assert re.findall(r"canary\w+", bare) == []
    assert "0.83" in bare or "83" in bare
    if form == "json":
        assert [word for word in words if word not in whole] == []


def test_figures_steps_and_scores_stay() -> None:
    bare, _ = without_texts(SELECTED)
    assert [draft.scores for draft in bare.drafts] == [draft.scores for draft in SELECTED.drafts]
    assert [passage.score for passage in bare.passages] == [passage.score for passage in SELECTED.passages]
    assert [(span.name, span.start_ms, span.end_ms) for span in bare.spans] == [
        (span.name, span.start_ms, span.end_ms) for span in SELECTED.spans
    ]
    assert bare.usage == SELECTED.usage
    assert [len(draft.tokens) for draft in bare.drafts] == [len(draft.tokens) for draft in SELECTED.drafts]
    assert [token.logprob for token in bare.drafts[0].tokens] == [
        token.logprob for token in SELECTED.drafts[0].tokens
    ]
    assert bare.decision is not None
    assert (bare.decision.kind, bare.decision.margin) == ("selected", 0.4)
    read = [
        [place for place, one in enumerate(SELECTED.passages) if one.id in subset.passage_ids]
        for subset in SELECTED.subsets
    ]
    assert [
        [place for place, one in enumerate(bare.passages) if one.id in subset.passage_ids]
        for subset in bare.subsets
    ] == read


def test_drafts_that_agreed_still_agree() -> None:
    """With one mark for all answers everybody would agree, and what-if would let another draft win."""
    bare, _ = without_texts(SELECTED)
    answers = [draft.answer for draft in bare.drafts]
    assert answers[1] == answers[2]
    assert len(set(answers)) == 3
    assert bare.answer is not None
    assert bare.answer.text == answers[1]
    weights = ScoreWeights(**PRESETS["default"])
    told, kept = decide_again(bare, weights=weights), decide_again(SELECTED, weights=weights)
    assert told.decision is not None
    assert kept.decision is not None
    assert told.decision.draft_index == kept.decision.draft_index
    assert told.decision.margin == kept.decision.margin


@pytest.mark.parametrize("name", sorted({**STATES, **RUNS}))
@pytest.mark.parametrize("form", sorted(EXPORTS))
def test_every_state_of_a_run_can_leave_in_every_format(name: str, form: ExportFormat) -> None:
    """Runs that still go on, that failed at once, and that hold what nobody would write."""
    trace: Trace = {**STATES, **RUNS}[name]
    for texts in (True, False):
        data = export_run(trace, (), form, texts=texts)
        assert len(data) > 100
        if form != "html":
            assert isinstance(_strictly(data), dict)


def _strictly(data: bytes) -> Any:
    return json.loads(data.decode(), parse_constant=pytest.fail)


def test_a_run_without_texts_is_imported_as_it_left() -> None:
    bare, events = without_texts(SELECTED, events_of(SELECTED))
    assert import_run(run_to_json(bare, events).encode()) == (bare, events)
