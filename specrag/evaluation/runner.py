"""The runs of an evaluation, one after the other, each on the disk before the next begins.

Every question is prepared once: its follow-up made to stand alone and its passages found, by the ordinary
retriever. All systems then answer from these very passages, in an order that is drawn for each question, so
that neither luck in retrieval nor a machine that grows warm favours one of them. Systems that come later,
after a crash or because they were added, take over what the finished runs of the question began with.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from specrag.config import Settings
from specrag.errors import SpecragError
from specrag.evaluation.closed_book import ClosedBookPipeline
from specrag.evaluation.corpus import Corpus
from specrag.evaluation.folder import Folder, Line
from specrag.evaluation.plan import Plan
from specrag.evaluation.preparing import Prepared, asked_before, begun_with, prepared_for
from specrag.evaluation.problems import EvaluationError
from specrag.evaluation.questions import Dataset, Question
from specrag.evaluation.systems import System
from specrag.fairness import warm_up
from specrag.forking import fork
from specrag.models.base import LanguageModel
from specrag.pipelines.base import Pipeline, Request, Tools
from specrag.pipelines.speculative import SpeculativePipeline
from specrag.recording import Recording
from specrag.tracing.trace import Trace, fold
from specrag.types import PipelineName, Role

BASE = "speculative"
"""The system that forks take over from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an evaluation is."""

    done: int
    total: int
    failed: int
    left_s: float | None
    """Seconds that the rest will take if it goes on like this; None before the first run of this process."""
    text: str = ""
    """What was done last."""


Tell = Callable[[Progress], None]


class Runner:
    """Runs a plan."""

    def __init__(
        self,
        *,
        tools: Tools,
        pipeline: Callable[[PipelineName, Settings], Pipeline],
        corpus: Corpus,
        folder: Folder,
        plan: Plan,
        padded: LanguageModel | None = None,
        tell: Tell = lambda _: None,
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Put the parts together.

        Args:
            tools: what all systems work with; their retriever looks where `corpus` puts its passages.
            pipeline: makes one for the settings of a run.
            corpus: where the passages of a question are.
            folder: where finished runs are kept; it has begun the plan.
            plan: what is run.
            padded: the verifier for those systems that do without the token tree.
            tell: hears how far it is, at the start and after each run.
            timer: seconds, for the time that is left.

        Raises:
            UsageError: a system's settings are wrong.
        """
        self._tools = tools
        self._pipeline = pipeline
        self._corpus = corpus
        self._folder = folder
        self._plan = plan
        self._padded = padded
        self._tell = tell
        self._timer = timer
        self._took: dict[str, list[float]] = {}
        for system in plan.systems:  # a setting that is wrong is said before anything is run
            system.under(tools.settings)

    async def run(self) -> None:
        """Do what is not done yet. Being cancelled leaves all that was finished."""
        self._say("")
        if len(self._finished) == self._total:
            return
        await self._warm_up()
        before: dict[tuple[str, str], list[Line]] = defaultdict(list)
        for line in self._folder.finished.values():
            before[line.dataset, line.question].append(line)
        for dataset, question in self._plan.questions:
            todo = [
                system
                for system in self._plan.order(question)
                if (dataset.name, question.id, system.name) not in self._folder.finished
            ]
            if todo:
                await self._ask(dataset, question, todo, before[dataset.name, question.id])

    async def _warm_up(self) -> None:
        await warm_up(self._tools)
        if self._padded is not None:
            await warm_up(replace(self._tools, drafter=self._padded, verifier=self._padded))

    @property
    def _total(self) -> int:
        return len(self._plan.questions) * len(self._plan.systems)

    @property
    def _finished(self) -> list[Line]:
        done, systems = self._folder.finished, self._plan.systems
        keys = ((d.name, q.id, system.name) for d, q in self._plan.questions for system in systems)
        return [done[key] for key in keys if key in done]

    async def _ask(
        self, dataset: Dataset, question: Question, systems: list[System], before: list[Line]
    ) -> None:
        with self._corpus.hold(question) as collection:
            started = self._timer()
            prepared = await self._prepared(dataset, question, collection, before)
            for system in systems:
                line = await self._answer(prepared, system)
                now = self._timer()
                self._took.setdefault(system.name, []).append(now - started)
                started = now
                said = f"{line.status}: {line.error}" if line.error else "done"
                self._say(f"{dataset.name} {question.id} {system.name} {said}")

    async def _prepared(
        self, dataset: Dataset, question: Question, collection: str, before: list[Line]
    ) -> Prepared:
        found = begun_with(self._folder, before, dataset, question, collection)
        if found is not None:
            return found
        asked = asked_before(self._folder, before, question)
        return await prepared_for(self._tools, dataset, question, collection, asked=asked)

    def _say(self, text: str) -> None:
        finished = self._finished
        failed = sum(line.status == "failed" for line in finished)
        self._tell(
            Progress(
                done=len(finished),
                total=self._total,
                failed=failed,
                left_s=self._left_s(finished),
                text=text,
            )
        )

    def _left_s(self, finished: Sequence[Line]) -> float | None:
        """What is left, system by system; of one that has not run yet, the mean of all."""
        every = [seconds for some in self._took.values() for seconds in some]
        if not every:
            return None
        done = Counter(line.system for line in finished)
        asked = len(self._plan.questions)
        return sum(
            (asked - done[system.name]) * fmean(self._took.get(system.name, every))
            for system in self._plan.systems
        )

    async def _answer(self, prepared: Prepared, system: System) -> Line:
        line = Line(
            dataset=prepared.dataset.name,
            question=prepared.question.id,
            system=system.name,
            run_id="",
            status="failed",
            error=prepared.error,
            retrieve_ms=prepared.retrieve_ms if system.reads else None,
        )
        trace: Trace | None = None
        if not prepared.error or not system.reads:
            try:
                trace = await self._trace(prepared, system)
            except SpecragError as error:
                line = replace(line, error=str(error))
            else:
                line = _told(line, trace)
        await self._kept(line, trace)
        return line

    async def _kept(self, line: Line, trace: Trace | None) -> None:
        """Put it on the disk to the end, also where somebody stops the evaluation at this moment."""
        keeping = asyncio.ensure_future(asyncio.to_thread(self._folder.keep, line, trace))
        try:
            await asyncio.shield(keeping)
        except asyncio.CancelledError:
            await asyncio.wait([keeping])
            raise

    async def _trace(self, prepared: Prepared, system: System) -> Trace:
        settings = system.under(self._tools.settings)
        log = Recording()
        await log.record(
            self._made(system, settings), self._request(prepared, system), deadline_s=settings.deadline_s
        )
        return fold(log.events)

    def _made(self, system: System, settings: Settings) -> Pipeline:
        if system.padded:
            if self._padded is None:
                raise EvaluationError(f"There is no padded verifier here for {system.name}.")
            return SpeculativePipeline(replace(self._tools, settings=settings, verifier=self._padded))
        if system.reads:
            return self._pipeline(system.pipeline, settings)
        role: Role = "drafter" if system.method == "closed-book-drafter" else "verifier"
        return ClosedBookPipeline(replace(self._tools, settings=settings), role=role)

    def _request(self, prepared: Prepared, system: System) -> Request:
        asked = prepared.request
        fresh = Request(question=asked.question, collection=asked.collection, earlier=asked.earlier)
        if not system.reads:
            return replace(fresh, given=asked.given and replace(asked.given, passages=()))
        if system.fork is None:
            return replace(fresh, given=asked.given)
        line = self._folder.finished.get((prepared.dataset.name, prepared.question.id, BASE))
        trace = self._folder.trace(line) if line is not None else None
        if trace is None:
            raise EvaluationError(f"There is no run of {BASE} whose work {system.name} could take over.")
        return replace(fork(trace, system.fork), run_id=fresh.run_id, collection=fresh.collection)


def _told(line: Line, trace: Trace) -> Line:
    """The line of a run that began."""
    done = trace.status == "done"
    return replace(
        line,
        run_id=trace.run_id,
        status="done" if done else "failed",
        answer=trace.answer.text if done and trace.answer is not None else "",
        error=trace.error.message if trace.error else "",
    )
