"""Evidence focus: a draft reads only the sentences of its subset that are nearest to the question."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from specrag.events import DraftStarted
from specrag.models.scripted import ScriptedModel
from specrag.retrieval.chroma import ChromaStore
from specrag.retrieval.embedder import SentenceEmbedder
from specrag.retrieval.evidence import Evidence, EvidenceScorer
from specrag.retrieval.retriever import Retrieved
from specrag.tracing.trace import fold
from tests.test_evidence import found, passage
from tests.test_speculative import QUESTION, extract, judge
from tests.toys import PAGES, WordEmbedder, events_of, filled_store, pipeline

BATTERY = "It is black. The battery holds 640 watt-hours. It has a handle. Charge the battery indoors."
ONIONS = "Onions are cheap. The battery of the radio is flat."


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


@pytest.fixture
def retrieved() -> Retrieved:
    return found("How many watt-hours does the battery hold?", BATTERY, ONIONS, "Rain. Snow.")


@pytest.fixture
def evidence(retrieved: Retrieved) -> Evidence:
    return EvidenceScorer(WordEmbedder()).compare(retrieved)


def test_the_nearest_sentences_stay_in_the_order_of_the_document(
    retrieved: Retrieved, evidence: Evidence
) -> None:
    first, *_ = evidence.focus(retrieved.passages[:1], 2)
    assert first.text == "The battery holds 640 watt-hours. Charge the battery indoors."


def test_the_sentences_of_a_subset_compete_with_each_other(retrieved: Retrieved, evidence: Evidence) -> None:
    """The number counts for the subset: two sentences are not two of each passage."""
    first, second, _ = evidence.focus(retrieved.passages, 2)
    assert first.text == "The battery holds 640 watt-hours. Charge the battery indoors."
    assert second.text == "The battery of the radio is flat."


def test_every_passage_stays_visible_and_keeps_its_place(retrieved: Retrieved, evidence: Evidence) -> None:
    """A passage that vanished would shift the numbers, and [2] would cite another one."""
    focused = evidence.focus(retrieved.passages, 1)
    assert [item.id for item in focused] == ["p1", "p2", "p3"]
    assert [replace(item, text="") for item in focused] == [
        replace(item, text="") for item in retrieved.passages
    ]
    assert all(item.text for item in focused)


def test_more_sentences_than_there_are_leave_the_words_as_they_are(
    retrieved: Retrieved, evidence: Evidence
) -> None:
    assert [item.text for item in evidence.focus(retrieved.passages, 50)] == [BATTERY, ONIONS, "Rain. Snow."]


def test_a_passage_without_a_sentence_is_left_alone() -> None:
    blank = found("battery", " ")
    evidence = Evidence({"p1": ()})
    assert evidence.focus(blank.passages, 3) == blank.passages


async def test_a_focused_draft_reads_less_and_cites_whole_passages(store: ChromaStore) -> None:
    made = pipeline(store, ScriptedModel(extract, judge=judge), focus_sentences=1)
    events = await events_of(made, QUESTION)
    trace = fold(events)
    whole = fold(await events_of(pipeline(store, ScriptedModel(extract, judge=judge)), QUESTION))
    prompts = [event.prompt for event in events if isinstance(event, DraftStarted)]
    assert any("The battery holds 640 watt-hours." in prompt for prompt in prompts)
    assert not any("It weighs 3.4 kilograms." in prompt for prompt in prompts)
    assert any("It weighs 3.4 kilograms." in draft.prompt for draft in whole.drafts)
    for draft, subset in zip(trace.drafts, trace.subsets, strict=True):
        titles = [item.title for id_ in subset.passage_ids if (item := trace.passage(id_))]
        assert all(f"[{number}] {title}" in draft.prompt for number, title in enumerate(titles, 1))
    assert trace.subsets == whole.subsets, "the focus comes after the partition"
    assert trace.answer is not None
    (cited,) = trace.answer.citations
    shown = trace.passage(cited)
    assert shown is not None
    assert shown.text == PAGES[0][1]


async def test_groundedness_is_read_off_what_the_draft_has_read(store: ChromaStore) -> None:
    """Scored with sentences that it never saw, a draft would be blamed for leaving them out."""
    seen: list[str] = []

    def verdict(text: str) -> float:
        seen.append(text)
        return 0.5

    verifier = ScriptedModel(extract, judge=verdict)
    made = pipeline(store, ScriptedModel(extract), verifier, focus_sentences=1, grounded=True)
    trace = fold(await events_of(made, QUESTION))
    with_passages = [text for text in seen if "[1] " in text]
    assert len(with_passages) == len(trace.drafts)
    assert not any("It weighs 3.4 kilograms." in text for text in with_passages)
    assert all(draft.scores.grounded is not None for draft in trace.drafts)


@pytest.mark.integration
def test_a_real_embedder_finds_the_sentence_that_answers(embedder_path: Path) -> None:
    """Not one content word of the question is in the sentence that is wanted."""
    embedder = SentenceEmbedder(embedder_path, name="minilm", threads=1)
    text = (
        "The cabin sleeps four people. Its walls are made of larch. Smoking is forbidden everywhere. "
        "Dogs and cats are welcome for a small fee. The lake is a short walk away."
    )
    wanted = passage("cabin", text)
    retrieved = Retrieved(
        passages=(wanted,),
        vectors=embedder.embed([text]),
        question_vector=embedder.embed(["May I bring my pets?"])[0],
    )
    evidence = EvidenceScorer(embedder).compare(retrieved)
    (focused,) = evidence.focus(retrieved.passages, 1)
    assert focused.text == "Dogs and cats are welcome for a small fee."
    whole = float(retrieved.vectors[0] @ retrieved.question_vector)
    assert evidence.relevance("cabin") > whole + 0.05
