"""An evaluation from files to report, over the same parts as the page and the command line.

The collection that the questions are asked of is nobody's: it lives in memory, or for the open corpus in the
evaluation's own folder, so that an evaluation never touches the documents of a home.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

from specrag.build import Parts
from specrag.config import Settings, model_name
from specrag.evaluation.corpus import OPEN, Corpus, GivenCorpus, OpenCorpus
from specrag.evaluation.document import Origin, document
from specrag.evaluation.folder import Folder
from specrag.evaluation.judge.panel import Panel
from specrag.evaluation.judge.section import judged, section
from specrag.evaluation.outcome import outcomes
from specrag.evaluation.plan import Plan
from specrag.evaluation.runner import Runner, Tell
from specrag.models.base import LanguageModel
from specrag.models.local import LocalModel
from specrag.models.weights import Progress, ignore
from specrag.retrieval.base import VectorStore
from specrag.retrieval.chroma import ChromaStore


class EvaluationParts(Parts):
    """The program's parts over a store of their own: in `place`, or in memory."""

    def __init__(
        self,
        settings: Settings,
        *,
        place: Path | None = None,
        progress: Callable[[Progress], None] = ignore,
        drafter: LanguageModel | None = None,
        verifier: LanguageModel | None = None,
    ) -> None:
        super().__init__(settings, progress=progress, in_memory=True, drafter=drafter, verifier=verifier)
        self._place = place

    @cached_property
    def store(self) -> VectorStore:
        """The store of the evaluation."""
        return ChromaStore(self._place)

    @property
    def can_pad(self) -> bool:
        """Whether the verifier is in this process and reads a token tree, so that both ways can be timed."""
        return isinstance(self.verifier, LocalModel) and self.verifier.engine.name == "tree"

    @cached_property
    def padded(self) -> LocalModel:
        """The verifier once more, reading padded batches."""
        settings = self.settings
        return LocalModel(
            self.weights.ensure(settings.verifier),
            name=model_name(settings.verifier),
            worker=self.worker,
            threads=settings.threads,
            precision=settings.precision,
            engine="batch",
        )


async def evaluate(
    parts: EvaluationParts,
    plan: Plan,
    path: Path,
    *,
    command: Sequence[str] = (),
    restart: bool = False,
    panel: Panel | None = None,
    tell: Tell = lambda _: None,
    indexed: Callable[[int, int], None] = lambda _done, _total: None,
) -> dict[str, Any]:
    """Run what is not finished in the folder `path` and return the report (`specrag.eval/1`).

    A `panel` judges what was run. `tell` hears of each run, `indexed` how many passages of the open corpus
    are in.

    Raises:
        EvaluationError: the folder belongs to another plan or cannot be used, or the judge does not answer.
        UsageError: a system's settings are wrong.
        ModelError: a model cannot be loaded.
    """
    for system in plan.systems:  # before any weights are loaded
        system.under(parts.settings)
    with closing(Folder(path)) as folder:
        if panel is not None and restart:  # the old runs are not removed for a judge that does not answer
            await panel.check()
        folder.begin(plan.document(parts.tools.environment, parts.tools.config()), restart=restart)
        if panel is not None and not restart and not panel.is_done(plan, folder):
            await panel.check()
        runner = Runner(
            tools=parts.tools,
            pipeline=parts.pipeline,
            corpus=_corpus(parts, plan, indexed, restart=restart),
            folder=folder,
            plan=plan,
            padded=parts.padded if any(system.padded for system in plan.systems) else None,
            tell=tell,
        )
        await runner.run()
        origin = Origin(command=command, environment=parts.tools.environment, config=parts.tools.config())
        found = list(outcomes(plan, folder))
        if panel is None:
            return document(plan, found, origin)
        ruling = await panel.hear(plan, folder)
        found = judged(found, ruling)
        return document(plan, found, origin) | {"judge": section(plan, found, ruling, panel.chat)}


def report_so_far(
    parts: Parts, plan: Plan, path: Path, *, command: Sequence[str] = ()
) -> dict[str, Any] | None:
    """The report of an evaluation that was stopped, over the runs in its folder; None if there are none.

    Those that failed are among them, as in the report of one that went on to its end. `plan` is the one that
    the folder follows.

    Raises:
        EvaluationError: the folder cannot be used.
    """
    with closing(Folder(path)) as folder:
        folder.read(failed=True)
        if not folder.finished:
            return None
        origin = Origin(command=command, environment=parts.tools.environment, config=parts.tools.config())
        return document(plan, list(outcomes(plan, folder)), origin)


def _corpus(
    parts: EvaluationParts, plan: Plan, indexed: Callable[[int, int], None], *, restart: bool
) -> Corpus:
    if plan.corpus == "given":
        return GivenCorpus(parts.store, parts.embedder)
    if restart and OPEN in parts.store.collections():
        parts.store.delete_collection(OPEN)  # also where it belongs to another embedder
    questions = (question for dataset in plan.datasets for question in dataset.questions)
    return OpenCorpus(parts.store, parts.embedder, questions, tell=indexed)
