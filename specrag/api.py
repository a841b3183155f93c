"""The Python API: the parts of the page and the command line behind one object.

A `Rag` is made once and asked often: it loads each part when it is first needed and lets go of everything in
`close`. What it returns is a trace, the value that the page draws; what goes wrong is raised.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import aclosing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, get_args

from specrag.background import CLOSED, Background, detached
from specrag.build import Parts
from specrag.config import Settings, load_settings
from specrag.conversation import Earlier, conversation
from specrag.errors import SpecragError, StoreError, TraceError, UsageError
from specrag.events import Event
from specrag.forking import fork, settings_of
from specrag.ingest.files import files_of
from specrag.ingest.index import IngestResult
from specrag.ingest.intake import take
from specrag.library.library import OPERATOR, OWN, SAMPLE, Library, documents_of
from specrag.models.base import LanguageModel
from specrag.overrides import for_one_run, with_overrides
from specrag.partition import Partitioner
from specrag.pipelines.base import Pipeline, Request, check_question
from specrag.rag_collections import RagCollections
from specrag.recording import Recording
from specrag.sample import ensure_sample
from specrag.tracing.trace import Trace, fold
from specrag.types import PartitionName, PipelineName, StepName

_log = logging.getLogger(__name__)


class RunError(SpecragError):
    """A run that began and gave no answer. `trace` tells how far it came, `trace.error.type` what failed."""

    kind: ClassVar[str] = "run"

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace.error.message if trace.error else "The run gave no answer.")
        self.trace = trace


class Rag(RagCollections):
    """Documents, models and pipelines under one set of settings.

    `drafter`, `verifier` and `partition` are names, as in the settings, or your own: an object that is a
    `LanguageModel`, a function that is a `Partitioner`. Any other setting is a keyword (`drafts=6`); what is
    not given comes from `settings` or else from the environment. With `in_memory` documents live and die with
    this object.

    Raises:
        UsageError: a setting is unknown or out of range.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        drafter: str | LanguageModel | None = None,
        verifier: str | LanguageModel | None = None,
        partition: PartitionName | Partitioner | None = None,
        in_memory: bool = False,
        **overrides: Any,
    ) -> None:
        given = {"drafter": drafter, "verifier": verifier, "partition": partition}
        named = {name: value for name, value in given.items() if isinstance(value, str)}
        self.settings = with_overrides(settings or load_settings(), {**named, **overrides})
        self._parts = Parts(
            self.settings,
            in_memory=in_memory,
            drafter=None if isinstance(drafter, str) else drafter,
            verifier=None if isinstance(verifier, str) else verifier,
            partitioner=None if isinstance(partition, str) else partition,
        )
        self._making, self._saving = threading.Lock(), threading.Lock()
        self._background = Background()
        self._sample_is_ready = False
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop what still runs here and let go of the store and of the threads.

        Does not wait for weights or a model that are being loaded for another thread: that thread lets go of
        everything as soon as they are there.
        """
        self._closed = True
        self._background.close()
        self._let_go()

    def add(
        self,
        paths: str | Path | Iterable[str | Path],
        *,
        collection: str = OWN,
        password: str | None = None,
        replace: bool = False,
    ) -> tuple[IngestResult, ...]:
        """Read files, archives and folders into a collection; one result for each file, failures included.

        `password` opens encrypted files; with `replace` older documents of the same file name are removed.

        Raises:
            UsageError: a path does not exist.
            StoreError: the collection is the read-only sample, or the store cannot be opened.
        """
        if collection == SAMPLE:
            raise StoreError(f"The collection “{SAMPLE}” is read-only; add to another one.")
        listed = [paths] if isinstance(paths, str | Path) else list(paths)
        files = files_of([Path(path) for path in listed])
        where = self._library().place(collection)
        with self._open() as parts:
            indexer = parts.indexer
        taken = (take(indexer, file, file.name, where, password=password, replace=replace) for file in files)
        return tuple(result for results in taken for result in results)

    def ask(
        self,
        question: str,
        *,
        pipeline: PipelineName = "speculative",
        collection: str = OWN,
        earlier: Earlier = (),
        keep: bool = True,
        **settings: Any,
    ) -> Trace:
        """Ask and wait for the whole trace; also where an event loop is running, as in a notebook.

        `earlier` is the conversation before, oldest first, as traces or as pairs of question and answer: a
        follow-up is made to stand alone first. `settings` hold for this run only. The run is kept for the
        page and `specrag trace` unless `keep` is False, and stopped after `deadline_s`.

        Raises:
            UsageError: the question, the pipeline or a setting is wrong.
            StoreError: the collection is missing or empty.
            RunError: the run began and gave no answer, for one because `close` was called meanwhile.
        """
        begin = partial(self._begin, question, pipeline, collection, earlier, settings)
        return self._wait(begin, keep=keep)

    def _wait(self, begin: Callable[[], tuple[Pipeline, Request, float]], *, keep: bool) -> Trace:
        log = Recording()
        try:
            return self._background.run(self._ask(log, begin, keep=keep))
        except CancelledError:  # by `close`, on another thread
            raise (RunError(fold(log.events)) if log.complete else UsageError(CLOSED)) from None

    async def ask_async(
        self,
        question: str,
        *,
        pipeline: PipelineName = "speculative",
        collection: str = OWN,
        earlier: Earlier = (),
        keep: bool = True,
        **settings: Any,
    ) -> Trace:
        """The same as `ask` for a caller that has an event loop; cancelling it stops the models."""
        begin = partial(self._begin, question, pipeline, collection, earlier, settings)
        return await self._ask(Recording(), begin, keep=keep)

    def fork(
        self,
        trace: Trace,
        step: StepName,
        *,
        question: str | None = None,
        pipeline: PipelineName | None = None,
        keep: bool = True,
        **settings: Any,
    ) -> Trace:
        """Run again from `step` on and wait for the trace; what comes before it is taken over from `trace`.

        The steps are retrieve, partition, draft, verify and decide. The run keeps the settings and the
        pipeline of its parent but for those given here; only a fork from "retrieve" can ask another question.

        Raises:
            UsageError: a name, a setting or the question is wrong.
            TraceError: the run has nothing to take over for that step.
            StoreError: the collection is missing or empty; only a fork from "retrieve" needs it.
            RunError: as `ask`.
        """
        request = fork(trace, step, question=question)
        overrides = settings_of(trace, settings)
        return self._wait(
            partial(self._begin_fork, request, pipeline or trace.pipeline, overrides), keep=keep
        )

    async def stream(
        self,
        question: str,
        *,
        pipeline: PipelineName = "speculative",
        collection: str = OWN,
        earlier: Earlier = (),
        keep: bool = True,
        **settings: Any,
    ) -> AsyncGenerator[Event]:
        """The run as its events; `fold` makes a trace of them. Closing the stream stops the models.

        A run that fails ends with `RunFailed` and raises nothing. The deadline does not hold here, since the
        reader sets the pace.

        Raises:
            UsageError: as `ask`, before the first event.
            StoreError: as `ask`, before the first event.
        """
        made, request, _ = await detached(
            partial(self._begin, question, pipeline, collection, earlier, settings)
        )
        log = Recording()
        try:
            async with aclosing(log.stream(made, request)) as events:
                async for event in events:
                    yield event
        except (asyncio.CancelledError, GeneratorExit):
            log.cancel("The reader closed the stream.")
            raise
        finally:
            await self._keep(log, keep=keep)

    async def _ask(
        self, log: Recording, begin: Callable[[], tuple[Pipeline, Request, float]], *, keep: bool
    ) -> Trace:
        made, request, limit_s = await detached(begin)
        try:
            await log.record(made, request, deadline_s=limit_s)
        except asyncio.CancelledError:
            log.cancel("The Rag was closed." if self._closed else "The run was cancelled.")
            raise
        finally:
            await self._keep(log, keep=keep)
        trace = fold(log.events)
        if trace.status != "done":
            raise RunError(trace)
        return trace

    def _begin(
        self,
        question: str,
        pipeline: PipelineName,
        collection: str,
        earlier: Earlier,
        overrides: Mapping[str, Any],
    ) -> tuple[Pipeline, Request, float]:
        settings = for_one_run(self.settings, overrides)
        text = check_question(question, limit=settings.max_question_characters)
        told = conversation(earlier)
        with self._open() as parts:
            where = self._check(parts, collection)
            made = parts.pipeline(_known(pipeline), settings)
        return made, Request(question=text, collection=where, earlier=told), settings.deadline_s

    def _begin_fork(
        self,
        request: Request,
        pipeline: PipelineName,
        overrides: Mapping[str, Any],
    ) -> tuple[Pipeline, Request, float]:
        settings = for_one_run(self.settings, overrides)
        text = check_question(request.question, limit=settings.max_question_characters)
        with self._open() as parts:
            if request.given is None:
                self._check(parts, request.collection)
            made = parts.pipeline(_known(pipeline), settings)
        return made, replace(request, question=text), settings.deadline_s

    def _library(self) -> Library:
        with self._open() as parts:
            return parts.library

    @contextmanager
    def _open(self) -> Iterator[Parts]:
        """The parts, for one thread at a time, so that none is made twice."""
        try:
            with self._making:
                self._check_open()
                yield self._parts
        finally:
            if self._closed:
                self._let_go()
        self._check_open()

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError(CLOSED)

    def _let_go(self) -> None:
        """Close the parts, unless another thread makes one: `_open` then does it afterwards."""
        if self._making.acquire(blocking=False):
            try:
                self._parts.close()
            finally:
                self._making.release()

    def _check(self, parts: Parts, collection: str) -> str:
        """The name of a collection that can be asked."""
        if collection == SAMPLE and not self._sample_is_ready:
            ensure_sample(parts.indexer)
            self._sample_is_ready = True
        library = parts.library
        if not library.called(OPERATOR, collection):
            shelves = library.collections(OPERATOR)
            there = _listed([s.name if s.read_only or s.default else s.title for s in shelves])
            raise StoreError(f"There is no collection “{collection}”; there is {there}.")
        name = library.find(OPERATOR, collection)
        if not documents_of(parts.store, name):
            raise StoreError(
                f"The collection “{collection}” has no documents yet; add some with `add`, or ask the "
                f"collection “{SAMPLE}”."
            )
        return name

    async def _keep(self, log: Recording, *, keep: bool) -> None:
        if not keep or not log.complete:
            return
        # handed over at once and no task: what is cancelled a second time, by `close`, must not lose the run
        saving = asyncio.get_running_loop().run_in_executor(None, self._save, log.events)
        try:
            await asyncio.shield(saving)
        except TraceError:  # the answer is worth more than its trace
            _log.warning("the run could not be kept", exc_info=True)

    def _save(self, events: Sequence[Event]) -> None:
        with self._saving:
            traces = self._parts.traces
        trace = fold(events)
        traces.save(trace, events)
        self._parts.send(trace, events)


def _known(pipeline: PipelineName) -> PipelineName:
    if pipeline not in get_args(PipelineName):
        raise UsageError(f"There is no pipeline “{pipeline}”; choose {_listed(get_args(PipelineName))}.")
    return pipeline


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + f" or {names[-1]}" if len(names) > 1 else names[0]
