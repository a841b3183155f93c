"""The embedder: a sentence-transformers model on the CPU, on the thread that runs all models.

Batches are small, so that indexing a large file cannot take all memory, and a question that comes in between
waits for one batch at most.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from specrag.errors import ModelError
from specrag.models.packed import pack
from specrag.models.worker import Worker
from specrag.retrieval.base import Vectors

BATCH = 32
STEP = 2 * BATCH
"""Texts between which other jobs of the models may have their turn."""
_SAMPLE = 1024


class SentenceEmbedder:
    """Embeds with a local folder (nothing is fetched) or a Hugging Face id."""

    def __init__(
        self, path_or_id: Path | str, *, name: str, threads: int, worker: Worker | None = None
    ) -> None:
        """Load the model.

        Args:
            path_or_id: folder of a sentence-transformers model, or its id on the hub.
            name: what people call the model; part of the fingerprint.
            threads: of torch, in this whole process.
            worker: where to compute; by default on a thread of its own.

        Raises:
            ModelError: there is no usable model at that place.
        """
        self._place = str(path_or_id)
        self._folder = Path(path_or_id) if Path(path_or_id).is_dir() else None
        self._name = name
        self._worker = worker or Worker()
        self._worker.run(lambda: self._load(threads))

    def _load(self, threads: int) -> None:
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        torch.set_num_threads(threads)
        # our own progress is shown where the person looks
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            self._model = SentenceTransformer(
                self._place, device="cpu", local_files_only=self._folder is not None
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise ModelError(
                f"The embedder {self._name} cannot be loaded ({error}); set SPECRAG_EMBEDDER to another one."
            ) from error
        dimension = self._model.get_embedding_dimension()
        if dimension is None:
            raise ModelError(
                f"The embedder {self._name} does not say how long its vectors are; choose another one."
            )
        self._dimension = int(dimension)
        self._digest = self._weights_digest()
        with torch.inference_mode():
            pack(self._model, "float32")

    @property
    def fingerprint(self) -> str:
        """Model, dimension, normalisation, and a digest of the weights."""
        return f"{self._name}/{self._dimension}/normalised/{self._digest}"

    @property
    def dimension(self) -> int:
        """Components of a vector."""
        return self._dimension

    @property
    def window(self) -> int:
        """Tokens that are read of a text, special tokens included."""
        return int(self._model.max_seq_length or 512)

    @property
    def tokenizer_file(self) -> Path:
        """The model's own tokenizer, wherever the model was loaded from."""
        if self._folder is not None and (self._folder / "tokenizer.json").is_file():
            return self._folder / "tokenizer.json"
        from transformers.utils.hub import cached_file

        found = cached_file(self._place, "tokenizer.json", _raise_exceptions_for_missing_entries=False)
        if found is None:
            raise ModelError(
                f"The embedder {self._name} has no tokenizer.json; choose one with a fast tokenizer."
            )
        return Path(found)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One normalised vector for each text, in order."""
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        if not clean:
            return np.empty((0, self._dimension), dtype=np.float32)
        steps = [clean[at : at + STEP] for at in range(0, len(clean), STEP)]
        with self._translated():
            parts = [self._worker.run(partial(self._encode, texts)) for texts in steps]
        return np.concatenate(parts)

    def _encode(self, texts: list[str]) -> Vectors:
        vectors = self._model.encode(
            texts,
            batch_size=BATCH,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.ascontiguousarray(vectors, dtype=np.float32)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, ValueError) as error:
            raise ModelError(
                f"The embedder {self._name} failed ({error}); set SPECRAG_EMBEDDER to another one."
            ) from error

    def _weights_digest(self) -> str:
        """Of the beginning of every tensor: cheap, and different for every fine-tuning."""
        digest = hashlib.sha256()
        for parameter in self._model.parameters():
            digest.update(parameter.detach().flatten()[:_SAMPLE].float().numpy().tobytes())
        return digest.hexdigest()[:8]
