"""The cross-encoder, a real one of a few thousand random weights that is made here."""

import shutil
import threading
from pathlib import Path

import pytest

from specrag.build import Parts
from specrag.config import load_settings
from specrag.errors import ModelError
from specrag.evaluation.guest import GuestParts
from specrag.models.scripted import ScriptedModel
from specrag.models.worker import Worker
from specrag.retrieval.rerank import STEP, CrossEncoderReranker
from tests.evaluation_rig import write
from tests.toys import WordEmbedder

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", "the", "bike", "soup"]


def cross_encoder(folder: Path, *, labels: int = 1) -> Path:
    """A folder as `CrossEncoder.save` leaves it."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    torch.manual_seed(0)
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    BertTokenizer(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
        initializer_range=1.0,
    )
    config.num_labels = labels
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def test_each_pair_gets_its_own_number_whatever_else_is_read(tmp_path: Path) -> None:
    """The longest text of a step must not change the numbers of the others."""
    reranker = CrossEncoderReranker(cross_encoder(tmp_path / "tiny"), name="tiny")
    texts = [f"the bike {'soup ' * number}" for number in range(STEP + 5)]
    together = reranker.scores("soup", texts)
    alone = [reranker.scores("soup", [text])[0] for text in texts]
    assert together == pytest.approx(alone, abs=1e-5)
    assert len(set(together)) > 1


def test_it_computes_on_the_thread_of_the_models(tmp_path: Path) -> None:
    worker = Worker()
    reranker = CrossEncoderReranker(cross_encoder(tmp_path / "tiny"), name="tiny", worker=worker)
    before = threading.active_count()
    reranker.scores("soup", ["the bike"])
    assert threading.active_count() == before
    worker.close()
    with pytest.raises(ModelError, match="closed"):
        reranker.scores("soup", ["the bike"])


def test_texts_that_no_tokenizer_takes(tmp_path: Path) -> None:
    reranker = CrossEncoderReranker(cross_encoder(tmp_path / "tiny"), name="tiny")
    assert len(reranker.scores("\ud800", ["", "\udfff", "x" * 10_000])) == 3
    assert reranker.scores("soup", []) == []


def test_an_evaluation_on_the_page_takes_the_one_of_the_page(tmp_path: Path) -> None:
    """A second one for each evaluation took its memory and its seconds; here there is none to load any more."""
    settings = load_settings({}, home=tmp_path, reranker=str(cross_encoder(tmp_path / "tiny")))
    model = ScriptedModel(write)
    host = Parts(settings, in_memory=True, drafter=model, verifier=model)
    host.__dict__["embedder"] = WordEmbedder()
    assert host.retriever.reranks
    shutil.rmtree(tmp_path / "tiny")
    guest = GuestParts(host, place=tmp_path / "chroma")
    assert guest.retriever.reranks
    guest.close()
    assert host.reranker is not None
    assert len(host.reranker.scores("soup", ["the bike"])) == 1
    host.close()


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="SPECRAG_RERANKER"):
        CrossEncoderReranker(tmp_path, name="nothing")


def test_a_classifier_of_several_classes_is_refused(tmp_path: Path) -> None:
    """Its numbers have no order."""
    with pytest.raises(ModelError, match="3 numbers"):
        CrossEncoderReranker(cross_encoder(tmp_path / "tiny", labels=3), name="nli")
