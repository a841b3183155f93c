"""The embedder: meaning in vectors of length one, under a name that tells models apart."""

import threading
from pathlib import Path

import numpy as np
import pytest

from specrag.errors import ModelError
from specrag.models.worker import Worker
from specrag.retrieval.embedder import SentenceEmbedder

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def embedder(embedder_path: Path) -> SentenceEmbedder:
    return SentenceEmbedder(embedder_path, name="all-minilm-l6-v2", threads=1)


def test_vectors_have_length_one_and_compare_by_meaning(embedder: SentenceEmbedder) -> None:
    boat, ship, tax = embedder.embed(
        ["The boat sails home.", "A ship returns to port.", "Taxes are due in May."]
    )
    assert boat.dtype == np.float32
    assert boat.shape == (embedder.dimension,)
    assert np.linalg.norm(boat) == pytest.approx(1.0, abs=1e-5)
    assert boat @ ship > boat @ tax + 0.2


def test_a_vector_does_not_depend_on_its_neighbours(embedder: SentenceEmbedder) -> None:
    """Padding in a batch must not change what a chunk means."""
    texts = [f"Sentence number {number}. " * (1 + number % 9) for number in range(40)]
    together = embedder.embed(texts)
    alone = np.stack([embedder.embed([text])[0] for text in texts[:5]])
    assert np.abs(together[:5] - alone).max() < 1e-4


def test_no_texts_and_odd_texts_are_embedded(embedder: SentenceEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 384)
    assert np.isfinite(embedder.embed(["", "\ud800 half a character", "\0"])).all()


def test_the_fingerprint_names_model_dimension_normalisation_and_weights(
    embedder: SentenceEmbedder, embedder_path: Path
) -> None:
    name, dimension, normalised, digest = embedder.fingerprint.split("/")
    assert (name, dimension, normalised, len(digest)) == ("all-minilm-l6-v2", "384", "normalised", 8)
    again = SentenceEmbedder(embedder_path, name="all-minilm-l6-v2", threads=1)
    assert again.fingerprint == embedder.fingerprint


def test_the_tokenizer_and_the_window_are_those_of_the_model(
    embedder: SentenceEmbedder, embedder_path: Path
) -> None:
    assert embedder.tokenizer_file == embedder_path / "tokenizer.json"
    assert embedder.window == 256


def test_a_folder_without_a_model_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError, match="SPECRAG_EMBEDDER"):
        SentenceEmbedder(tmp_path, name="broken", threads=1)


def test_it_computes_on_the_thread_that_it_is_given(embedder_path: Path) -> None:
    """Indexing in a thread of its own would slow the models, which share the cores with it."""
    worker = Worker()
    made = SentenceEmbedder(embedder_path, name="minilm", threads=1, worker=worker)
    seen: set[threading.Thread] = set()
    made._model.register_forward_pre_hook(lambda *_: seen.add(threading.current_thread()))
    made.embed(["The boat sails home."])
    assert seen == {worker.run(threading.current_thread)}
    worker.close()
