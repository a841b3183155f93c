"""Small evaluations on the page: one at a time in a process, in a thread with a loop of its own.

A trial belongs to the server and not to the page that started it: it goes on when the page is closed, and
whoever comes back sees how far it is. Its report goes on the shelf, also that of one that was stopped.
"""

import asyncio
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from specrag.build import Parts
from specrag.errors import SpecragError, UsageError
from specrag.evaluation.corpus import CorpusName
from specrag.evaluation.evaluate import evaluate, report_so_far
from specrag.evaluation.folder import CORPUS
from specrag.evaluation.guest import GuestParts
from specrag.evaluation.plan import Plan
from specrag.evaluation.questions import Dataset
from specrag.evaluation.runner import Progress
from specrag.evaluation.systems import METHODS, method_of, system_of
from specrag.evaluation.trial_folder import sweep, trial_folder

_log = logging.getLogger(__name__)

MOST_QUESTIONS: Final = 20
MOST_BYTES: Final = 2 << 20
"""Of a file of questions."""
Stage: TypeAlias = Literal["starting", "running", "stopping", "done", "stopped", "failed"]
ENDED: Final = frozenset({"done", "stopped", "failed"})
_OWNERS: Final = 100
"""Whose last evaluation is remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be evaluated."""

    dataset: Dataset
    pipelines: Sequence[object]
    limit: object
    """Questions at most, from anywhere: `Trials` takes the nearest number that it allows."""
    corpus: CorpusName = "given"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """An evaluation on the page, as it stands."""

    number: int
    """Of this process, so that one is told from the next."""
    owner: str
    dataset: str
    stage: Stage = "starting"
    done: int = 0
    total: int = 0
    failed: int = 0
    left_s: float | None = None
    report: str = ""
    """Name of its report on the shelf, once it is there."""
    error: str = ""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self.stage in ENDED


class Trials:
    """The evaluations that the page has started. Methods may be called from any thread."""

    def __init__(self, host: Parts) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._trial: Trial | None = None
        self._before: dict[str, Trial] = {}
        """The last one of each owner before that, of so many owners."""
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def newest(self) -> Trial | None:
        """The one that is under way, or the last one."""
        return self._trial

    def newest_of(self, owner: str) -> Trial | None:
        """The newest one of an owner, also after somebody else has begun another."""
        with self._lock:
            trial = self._trial
            return trial if trial is not None and trial.owner == owner else self._before.get(owner)

    def start(self, wanted: Wanted, *, owner: str = "") -> Trial:
        """Begin.

        Raises:
            UsageError: no pipeline was chosen or one is unknown, or another evaluation is under way.
        """
        plan = self._plan(wanted)
        with self._lock:
            before = self._trial
            if before is not None and not before.ended:
                raise UsageError("An evaluation is under way; stop it, or wait until it is done.")
            if before is not None:
                self._remember(before)
            trial = Trial(
                number=before.number + 1 if before else 1,
                owner=owner,
                dataset=wanted.dataset.name,
                total=len(plan.questions) * len(plan.systems),
            )
            self._trial = trial
            self._thread = threading.Thread(
                target=self._work, args=(plan, trial), name="specrag-trial", daemon=True
            )
            self._thread.start()
        return trial

    def stop(self, owner: str = "", *, number: int | None = None) -> bool:
        """End theirs that is under way, with a report over what is finished; whether there was one.

        With a `number` only that one: who saw it may not know that it has ended and another has begun.
        """
        with self._lock:
            trial = self._trial
            if trial is None or trial.ended or trial.owner != owner or number not in (None, trial.number):
                return False
            if trial.stage == "stopping":  # a second time would not wait for the run that is being kept
                return True
            self._trial = replace(trial, stage="stopping")
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)
        return True

    def close(self, timeout: float = 5.0) -> None:
        """Stop, and wait until the models are let go of."""
        if self._trial is not None:
            self.stop(self._trial.owner)
        if self._thread is not None:
            self._thread.join(timeout)

    def _remember(self, trial: Trial) -> None:
        self._before.pop(trial.owner, None)  # so that it becomes the newest
        self._before[trial.owner] = trial
        if len(self._before) > _OWNERS:
            del self._before[next(iter(self._before))]

    def _plan(self, wanted: Wanted) -> Plan:
        chosen = {method_of(one) for one in wanted.pipelines}
        if not chosen:
            raise UsageError("Choose at least one pipeline to evaluate.")
        return Plan(
            datasets=(wanted.dataset,),
            systems=tuple(system_of(one) for one in METHODS if one in chosen),
            settings=self._host.settings,
            limit=_within(wanted.limit),
            corpus=wanted.corpus,
        )

    def _work(self, plan: Plan, trial: Trial) -> None:
        """The whole life of one trial; whatever happens, it ends."""
        report: dict[str, Any] | None = None
        stage, error, name = "failed", "", ""
        try:
            if trial.number == 1:
                sweep()
            with trial_folder() as folder:
                stage, report = self._evaluated(plan, folder)
            if report is not None:
                name = self._host.shelf.keep(report, owner=trial.owner)
        except SpecragError as told:
            error = str(told)
        except Exception:  # noqa: BLE001 - a bug must not leave a trial that never ends
            _log.exception("the evaluation on the page failed unexpectedly")
            error = "The evaluation failed unexpectedly; the log of the program says where."
        self._change(stage="failed" if error else stage, error=error, report=name, left_s=None)

    def _evaluated(self, plan: Plan, folder: Path) -> tuple[Stage, dict[str, Any] | None]:
        parts = GuestParts(self._host, place=folder / CORPUS)
        runs = folder / "runs"
        try:
            with asyncio.Runner() as runner:
                try:
                    return "done", runner.run(self._running(parts, plan, runs))
                except asyncio.CancelledError:
                    return "stopped", report_so_far(parts, plan, runs)
        finally:
            parts.close()

    async def _running(self, parts: GuestParts, plan: Plan, folder: Path) -> dict[str, Any]:
        with self._lock:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            stopped = self._trial is not None and self._trial.stage == "stopping"
        try:
            if stopped:  # before there was anything to cancel
                raise asyncio.CancelledError
            return await evaluate(parts, plan, folder, tell=self._heard)
        finally:  # who stops it from now on finds nothing to cancel, and no loop that is closed
            with self._lock:
                self._loop = self._task = None

    def _heard(self, state: Progress) -> None:
        self._change(done=state.done, failed=state.failed, left_s=state.left_s, begun=True)

    def _change(self, *, begun: bool = False, **values: Any) -> None:
        with self._lock:
            assert self._trial is not None
            stage = self._trial.stage
            if begun and stage == "starting":
                values["stage"] = "running"
            self._trial = replace(self._trial, **values)


def _within(limit: object) -> int:
    """The nearest limit that is allowed; what is no number counts as 0."""
    number = limit if isinstance(limit, int | float) else 0
    return int(max(1, min(number, MOST_QUESTIONS)))  # in this order NaN gives 1
