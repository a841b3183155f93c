"""Retrieval as a visitor meets it: what is found, in which order, and what is said of it."""

import json
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from specrag.config import load_settings
from specrag.models.scripted import ScriptedModel
from specrag.pipelines.base import Request, Tools
from specrag.pipelines.standard import StandardPipeline
from specrag.retrieval.base import Vectors
from specrag.retrieval.bm25 import Bm25
from specrag.retrieval.chroma import ChromaStore
from specrag.retrieval.embedder import SentenceEmbedder
from specrag.retrieval.evidence import EvidenceScorer
from specrag.retrieval.readable import Readability
from specrag.retrieval.retriever import Retrieved, Retriever
from specrag.tracing.codec import from_json, to_json
from specrag.tracing.trace import Trace, fold
from specrag.types import Chunk, DocumentInfo
from tests.toys import WordEmbedder, filled_store

LOAD = "The bike carries at most {} kilograms on roads that are flat and dry, with the box on the rack fixed."


@pytest.fixture
def store() -> ChromaStore:
    return filled_store()


def put(store: ChromaStore, name: str, text: str, *, title: str = "Added", date: str | None = None) -> str:
    """Add a document of one chunk, and give its id."""
    identity = name * 16
    chunk = Chunk(
        id=f"{identity}-00000",
        document_id=identity,
        title=title,
        source="added.md",
        text=text,
        position=0,
        published_at=date,
    )
    info = DocumentInfo(
        id=identity,
        title=title,
        source="added.md",
        pages=1,
        chunks=1,
        added_at="2026-01-01",
        published_at=date,
    )
    store.add("documents", info, [chunk], WordEmbedder().embed([text]))
    return identity


class DeafEmbedder(WordEmbedder):
    """Gives every text the same vector, as one does that has not learnt the language."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        return super().embed(["the same"] * len(texts))


def retriever(store: ChromaStore, **settings: object) -> Retriever:
    return Retriever(store, WordEmbedder(), bm25=Bm25(store), settings=load_settings({}, **settings))


def found(store: ChromaStore, question: str, k: int = 3, **settings: object) -> Retrieved:
    return retriever(store, **settings).retrieve(question, "documents", k)


def test_both_ways_put_forward_and_each_passage_says_its_places(store: ChromaStore) -> None:
    got = found(store, "Who founded the firm?")
    assert got.passages[0].title == "History"
    assert (got.passages[0].dense_rank, got.passages[0].bm25_rank) == (1, 1)
    assert got.passages[0].score > 0
    assert got.vectors.shape == (3, WordEmbedder.dimension)


def test_what_only_words_find_comes_with_its_similarity(store: ChromaStore) -> None:
    """A serial number says nothing to an embedder; a passage found by it had no score and no vector."""
    deaf = DeafEmbedder()
    identity = put(store, "a", "The charger is XR-7741.")
    for name in "bcdef":
        put(store, name, f"Charger {name} is of another kind.")
    made = Retriever(store, deaf, bm25=Bm25(store), settings=load_settings({}, candidates=1, search="hybrid"))
    got = made.retrieve("Which is XR-7741?", "documents", 1)
    assert got.passages[0].document_id == identity
    assert got.passages[0].bm25_rank == 1
    expected = float(WordEmbedder().embed(["The charger is XR-7741."])[0] @ deaf.embed([""])[0])
    assert got.passages[0].score == pytest.approx(max(0.0, expected), abs=1e-5)


def test_by_vectors_alone_and_by_words_alone(store: ChromaStore) -> None:
    dense = found(store, "Who founded the firm?", search="dense")
    assert all(passage.bm25_rank is None for passage in dense.passages)
    assert [passage.score for passage in dense.passages] == sorted(
        (passage.score for passage in dense.passages), reverse=True
    )
    words = found(store, "Who founded the firm?", k=6, search="bm25")
    assert all(passage.dense_rank is None and passage.bm25_rank for passage in words.passages)
    assert len(words.passages) < 6


def test_only_the_chosen_documents(store: ChromaStore) -> None:
    got = retriever(store).retrieve(
        "How many kilograms?", "documents", 5, documents=["0000000000000002", "0000000000000004"]
    )
    assert {passage.title for passage in got.passages} == {"Load 2023", "History"}


def test_a_near_duplicate_is_left_out_and_said(store: ChromaStore) -> None:
    put(store, "a", LOAD.format(180), title="Manual")
    put(store, "b", LOAD.format(180).replace("fixed", "fixed well"), title="Manual (1)")
    got = found(store, "How many kilograms does the bike carry on flat roads?", k=4)
    assert len({passage.text[:40] for passage in got.passages}) == 4
    assert got.duplicates == 1
    assert "1 passage was left out" in (got.note or "")
    assert "“Manual" in (got.note or "")


def test_pages_that_differ_in_one_figure_both_stay(store: ChromaStore) -> None:
    """Otherwise a contradiction would be dropped as a copy."""
    put(store, "a", LOAD.format(180), title="Manual")
    put(store, "b", LOAD.format(160), title="Manual")
    got = found(store, "How many kilograms does the bike carry on flat roads?", k=2)
    assert {"180" in passage.text for passage in got.passages} == {True, False}
    assert got.duplicates == 0


def test_newer_pages_first_if_wanted(store: ChromaStore) -> None:
    put(store, "a", LOAD.format(180), date="2021-01-01")
    put(store, "b", LOAD.format(160), date="2025-01-01")
    question = "Does the bike carry 180 kilograms on flat roads?"
    indifferent = [passage.published_at for passage in found(store, question, k=2).passages]
    newer = [passage.published_at for passage in found(store, question, k=2, prefer_recent=1.0).passages]
    assert indifferent == ["2021-01-01", "2025-01-01"]
    assert (newer[0] or "") > "2025"


def test_a_question_to_documents_about_other_things_is_called_weak(store: ChromaStore) -> None:
    got = found(store, "Which emperor ordered the aqueduct of Segovia?")
    assert (got.note or "").startswith("The documents hardly match the question: the best similarity is 0.")
    assert (got.note or "").endswith("the answer may be a guess.")
    assert found(store, "Who founded the firm?").note is None


def test_a_document_deleted_since_the_search_by_words_is_not_found(store: ChromaStore) -> None:
    identity = put(store, "a", "A quokka sat on the wall.")
    made = retriever(store)
    assert made.retrieve("quokka", "documents", 1).passages[0].document_id == identity
    store.delete("documents", identity)
    after = made.retrieve("quokka", "documents", 9)
    assert all(passage.document_id != identity for passage in after.passages)


def test_an_empty_collection_gives_nothing(store: ChromaStore) -> None:
    store.ensure_collection("empty", WordEmbedder.fingerprint)
    got = retriever(store).retrieve("Who?", "empty", 3)
    assert got.passages == ()
    assert got.note is None
    assert got.vectors.shape == (0, WordEmbedder.dimension)


class Backwards:
    """A cross-encoder that likes what is about onions."""

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        return [float("onions" in text) + 0.1 * ("Newsletter" in text) for text in texts]


def test_the_reranker_has_the_last_word(store: ChromaStore) -> None:
    made = Retriever(
        store, WordEmbedder(), bm25=Bm25(store), reranker=Backwards(), settings=load_settings({})
    )
    got = made.retrieve("Who founded the firm?", "documents", 2)
    assert [passage.title for passage in got.passages] == ["Newsletter", "History"]


async def traced(store: ChromaStore, request: Request, **settings: object) -> Trace:
    made = load_settings({}, **settings)
    model = ScriptedModel(lambda _: {"answer": "It holds 640 watt-hours."})
    tools = Tools(
        retriever=Retriever(store, WordEmbedder(), bm25=Bm25(store), settings=made),
        evidence=EvidenceScorer(WordEmbedder()),
        drafter=model,
        verifier=model,
        settings=made,
        environment={},
    )
    async with aclosing(StandardPipeline(tools).run(request)) as stream:
        return fold([event async for event in stream])


async def test_a_run_looks_in_the_chosen_documents_only(store: ChromaStore) -> None:
    request = Request(
        question="How many watt-hours?", collection="documents", documents=("0000000000000000",)
    )
    trace = await traced(store, request)
    assert [passage.title for passage in trace.passages] == ["Battery"]
    assert trace.config["documents"] == ["0000000000000000"]


async def test_a_trace_keeps_the_note_and_what_each_way_found(store: ChromaStore) -> None:
    trace = await traced(store, Request(question="Which emperor ordered Segovia?", collection="documents"))
    assert trace.retrieval_note is not None
    assert from_json(to_json(trace)).retrieval_note == trace.retrieval_note
    search = next(span for span in trace.spans if span.name == "search")
    assert search.attributes == {"dense": 6, "bm25": 0}
    trace = await traced(store, Request(question="How many watt-hours?", collection="documents"))
    assert [span.name for span in trace.spans][:5] == ["run", "retrieve", "embed", "search", "fuse"]


async def test_the_settings_of_a_run_decide_how_it_searches(store: ChromaStore) -> None:
    """The retriever is made once, at the start; a run that asks for words only was searched by both."""
    request = Request(question="How many watt?", collection="documents")
    trace = await traced(store, request, search="bm25")
    assert [passage.title for passage in trace.passages] == ["Battery"]
    trace = await traced(store, Request(question="zebra?", collection="documents"), search="bm25")
    assert trace.status == "failed"
    assert trace.error is not None
    assert "holds a word of the question" in trace.error.message


async def test_documents_without_anything_to_find(store: ChromaStore) -> None:
    trace = await traced(store, Request(question="How many?", collection="documents", documents=("unknown",)))
    assert trace.error is not None
    assert "Nothing is found in the chosen documents" in trace.error.message


def test_a_trace_of_before_the_note_is_still_opened() -> None:
    old = Trace(run_id="r", status="done", pipeline="standard", question="?", created_at="2026-01-01")
    stored = json.loads(to_json(old))
    del stored["retrieval_note"]
    assert from_json(json.dumps(stored)) == old


@pytest.mark.parametrize(
    ("question", "low", "high"),
    [
        ("What is the capacity of the battery?", 0.95, 1.0),
        ("Wie schwer ist der Akku des Fahrrads?", 0.8, 1.0),
        ("Сколько весит велосипед?", 0.0, 0.2),
        ("电池的容量是多少？", 0.0, 0.6),
        ("كم يبلغ وزن الدراجة؟", 0.0, 0.2),
        ("1234 + 5", 1.0, 1.0),
    ],
)
def test_the_embedder_knows_what_it_can_read(
    embedder_path: Path, question: str, low: float, high: float
) -> None:
    """MiniLM has learnt English; of other scripts it sees single letters."""
    assert low <= Readability(embedder_path / "tokenizer.json").of(question) <= high


def test_a_question_that_the_embedder_cannot_read_is_answered_by_words(embedder_path: Path) -> None:
    """Vectors of letters found anything in Russian, and pushed out what the words had found."""
    embedder = SentenceEmbedder(embedder_path, name="minilm", threads=1)
    store = ChromaStore(None)
    store.ensure_collection("documents", embedder.fingerprint)
    texts = [
        "Аккумулятор хранит 640 ватт-часов и весит 3,4 килограмма.",
        "Фирма была основана в 1998 году в Бремене Адой Бренник.",
        "Полная зарядка занимает пять часов от обычной розетки.",
        "Суп на празднике варят из 640 луковиц.",
        "Велосипед перевозит не более 160 килограммов с марта.",
    ]
    for number, text in enumerate(texts):
        identity = f"{number:016x}"
        chunk = Chunk(
            id=f"{identity}-0", document_id=identity, title="", source="a.txt", text=text, position=0
        )
        info = DocumentInfo(id=identity, title="", source="a.txt", pages=1, chunks=1, added_at="2026-01-01")
        store.add("documents", info, [chunk], embedder.embed([text]))
    made = Retriever(store, embedder, bm25=Bm25(store), settings=load_settings({}))
    for question, number in [("В каком году основана фирма?", 1), ("Из чего варят суп?", 3)]:
        assert made.retrieve(question, "documents", 1).passages[0].text == texts[number]
