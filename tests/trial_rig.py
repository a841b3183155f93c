"""Trials over toys: a model that waits where a test wants it to, and the parts of a page."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

from specrag.build import Parts
from specrag.config import load_settings
from specrag.evaluation.questions import Dataset
from specrag.evaluation.trials import Trial, Trials, Wanted
from specrag.models.base import Conversation, Line, Output
from specrag.models.scripted import ScriptedModel, Written
from tests.evaluation_rig import DATA, write
from tests.toys import WordEmbedder

PATIENCE_S = 30.0


class GatedModel(ScriptedModel):
    """Writes as often as it is let, `left` times or always if None; the first `fails` answers fail."""

    def __init__(self) -> None:
        super().__init__(self._written, judge=lambda text: 0.2 if "onions" in text else 0.9)
        self.left: int | None = None
        self.fails = 0

    def _written(self, text: str) -> Written:
        if self.fails and "Question:" in text:
            self.fails -= 1
            raise MemoryError("the model is out of memory")
        return write(text)

    async def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        """See `LanguageModel.generate`."""
        while self.left == 0:  # noqa: ASYNC110 - set from another thread
            await asyncio.sleep(0.01)
        if self.left is not None:
            self.left -= 1
        async with aclosing(super().generate(conversations, lines)) as outputs:
            async for output in outputs:
                yield output


@contextmanager
def toy_host(home: Path, model: GatedModel) -> Iterator[Parts]:
    """The parts of a page over toys."""
    settings = load_settings({}, home=home)
    parts = Parts(settings, in_memory=True, drafter=model, verifier=model)
    parts.__dict__["embedder"] = WordEmbedder()
    yield parts
    model.left = None
    parts.close()


def wanted(*pipelines: object, data: Dataset = DATA, **more: Any) -> Wanted:
    return Wanted(dataset=data, pipelines=pipelines or ("standard", "speculative"), limit=20, **more)


def until(happened: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ended(trials: Trials) -> Trial:
    """The newest one at its end."""
    until(lambda: trials.newest is not None and trials.newest.ended)
    assert trials.newest is not None
    return trials.newest
