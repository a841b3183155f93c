"""An evaluation beside a page that is at work: it has the page's models, and a store of its own.

The page's runs and these stand in one line in front of the models, in order of arrival, so a visitor waits
for one run of an evaluation at most and never for the whole.
"""

from pathlib import Path

from specrag.build import Parts
from specrag.evaluation.evaluate import EvaluationParts


class GuestParts(EvaluationParts):
    """Parts that work with what `host` has loaded; closing them leaves all of that to the host."""

    def __init__(self, host: Parts, *, place: Path) -> None:
        """`place` is the folder of the store."""
        super().__init__(host.settings, place=place, drafter=host.drafter, verifier=host.verifier)
        self.__dict__.update(
            embedder=host.embedder,
            reranker=host.reranker,
            worker=host.worker,
            weights=host.weights,
            turnstile=host.turnstile,
        )

    def close(self) -> None:
        """Let go of the store."""
        if "store" in self.__dict__:
            self.store.close()
