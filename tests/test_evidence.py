"""One pass of the embedder tells how near every sentence is, and what a passage is worth."""

from collections.abc import Sequence

import pytest

from specrag.retrieval.base import Vectors
from specrag.retrieval.evidence import EvidenceScorer
from specrag.retrieval.retriever import Retrieved
from specrag.scoring import FLOOR
from specrag.types import Passage
from tests.toys import WordEmbedder


def passage(identity: str, text: str) -> Passage:
    return Passage(
        id=identity,
        document_id=identity,
        title=identity,
        text=text,
        page=None,
        source=f"{identity}.md",
        published_at=None,
        score=0.5,
    )


def found(question: str, *texts: str) -> Retrieved:
    passages = tuple(passage(f"p{number}", text) for number, text in enumerate(texts, 1))
    embedder = WordEmbedder()
    return Retrieved(
        passages=passages,
        vectors=embedder.embed([item.text for item in passages]),
        question_vector=embedder.embed([question])[0],
    )


class CountingEmbedder(WordEmbedder):
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.passes = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.passes += 1
        return super().embed(texts)


def test_the_nearest_sentence_speaks_for_its_passage() -> None:
    """A passage is an average of its sentences: the noise around the one that answers must not count."""
    retrieved = found(
        "battery capacity", "Onions are cheap. The battery capacity. Rain is likely.", "Onions."
    )
    evidence = EvidenceScorer(WordEmbedder()).compare(retrieved)
    assert [sentence.text for sentence in evidence.sentences["p1"]] == [
        "Onions are cheap.",
        "The battery capacity.",
        "Rain is likely.",
    ]
    assert evidence.relevance("p1") == pytest.approx(1.0)
    assert evidence.relevance("p2") == FLOOR
    assert evidence.sentences["p1"][1].similarity == pytest.approx(1.0)


def test_all_sentences_of_all_passages_take_one_pass() -> None:
    """Two passes, one for the relevance and one for the focus, would double the cost of retrieval."""
    embedder = CountingEmbedder()
    evidence = EvidenceScorer(embedder).compare(
        found("battery", "A battery. An onion.", "Rain. Snow. Battery.")
    )
    evidence.focus((passage("p1", ""), passage("p2", "")), 2)
    assert evidence.relevance("p2") > 0.9
    assert embedder.passes == 1


def test_a_long_table_is_compared_to_its_last_row() -> None:
    rows = "\n".join(f"Row {number} holds onions." for number in range(40))
    evidence = EvidenceScorer(WordEmbedder()).compare(found("battery", f"{rows}\nThe battery."))
    assert evidence.relevance("p1") == pytest.approx(1.0)


@pytest.mark.parametrize("text", ["", "  \n ", "!"])
def test_a_passage_without_words_has_the_least_relevance(text: str) -> None:
    evidence = EvidenceScorer(WordEmbedder()).compare(found("battery", text))
    assert evidence.relevance("p1") == FLOOR
