"""The cross-encoder that may order the candidates: it reads question and passage together.

It is slower than everything else in retrieval and better at telling near misses, so it reads the best
candidates only, and only where the settings name one. It computes on the thread that runs all models.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from specrag.errors import ModelError
from specrag.models.worker import Worker

STEP: Final = 16
"""Pairs between which other jobs of the models may have their turn."""


class Reranker(Protocol):
    """Says how well passages answer a question."""

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """One number for each text, higher for better; only their order means something.

        Raises:
            ModelError: the model cannot compute.
        """
        ...


class CrossEncoderReranker:
    """A sentence-transformers cross-encoder on the CPU, from a local folder or a Hugging Face id."""

    def __init__(self, path_or_id: Path | str, *, name: str, worker: Worker | None = None) -> None:
        """Load the model.

        Raises:
            ModelError: there is no usable cross-encoder at that place.
        """
        self._place = str(path_or_id)
        self._name = name
        self._worker = worker or Worker()
        self._worker.run(self._load)

    def _load(self) -> None:
        from sentence_transformers import CrossEncoder

        local = Path(self._place).is_dir()
        try:
            self._model = CrossEncoder(self._place, device="cpu", local_files_only=local)
        except (OSError, ValueError, RuntimeError) as error:
            raise ModelError(
                f"The reranker {self._name} cannot be loaded ({error}); set SPECRAG_RERANKER to another one."
            ) from error
        if self._model.num_labels != 1:
            raise ModelError(
                f"The reranker {self._name} gives {self._model.num_labels} numbers for a passage, not one;"
                " set SPECRAG_RERANKER to another one."
            )

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """See `Reranker.scores`."""
        pairs = [(_clean(question), _clean(text)) for text in texts]
        steps = [pairs[at : at + STEP] for at in range(0, len(pairs), STEP)]
        try:
            return [score for some in steps for score in self._worker.run(partial(self._predict, some))]
        except (RuntimeError, ValueError) as error:
            raise ModelError(
                f"The reranker {self._name} failed ({error}); set SPECRAG_RERANKER to another one."
            ) from error

    def _predict(self, pairs: list[tuple[str, str]]) -> list[float]:
        found = self._model.predict(pairs, batch_size=STEP, show_progress_bar=False, convert_to_numpy=True)
        return [float(score) for score in found]


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
