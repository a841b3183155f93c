"""The judge hears every finished run: several at once, each on the disk when it is done, none twice.

A run that the judge cannot be asked about is counted and tried again by the same command; it is never
counted as wrong. Where that happens several times in a row, or the key is refused, no more are tried: a
server that is gone would cost minutes for each.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from specrag.evaluation.folder import Folder, Line
from specrag.evaluation.judge.answers import WORDS, AnswerExaminer
from specrag.evaluation.judge.book import Book, Opinion, digest
from specrag.evaluation.judge.case import Case, Examiner, Finding, case_of
from specrag.evaluation.judge.chat import Chat
from specrag.evaluation.judge.replies import beginning
from specrag.evaluation.plan import Plan
from specrag.evaluation.problems import EvaluationError
from specrag.evaluation.questions import Question
from specrag.models.server.faults import Fault

AT_ONCE: Final = 8
"""Requests under way."""
_IN_A_ROW: Final = 3
"""So many failures without a success between them end it."""
_HOPELESS: Final = ("refused", "no_model")
"""What only a person can mend."""
_OF_THE_CASE: Final = frozenset({400, 413, 422})
"""Statuses with which a server refuses one case and not others: a filter, a text that is too long. Where
money has run out (402) or a path is gone (404) no case is at fault."""

Key: TypeAlias = tuple[str, str, str]
"""File, question and system of a run."""
Heard: TypeAlias = Callable[[int, int, float | None], None]
"""How many are judged, of how many, and the seconds that the rest will take."""


@dataclass(slots=True, kw_only=True)
class Ruling:
    """What came of it."""

    by: dict[str, str]
    """What was asked for each mark."""
    opinions: dict[Key, dict[str, Opinion]] = field(default_factory=dict)
    """By run and mark."""
    failed_runs: dict[Key, dict[str, float]] = field(default_factory=dict)
    """What runs that failed are worth without a judge, by mark."""
    unheard: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Runs that the judge was not reached about, by mark and system."""
    problem: str = ""
    """Why it ended early, as a sentence; empty if it did not."""

    def marks(self, key: Key) -> dict[str, float]:
        """The figures of one run."""
        judged = {mark: one.value for mark, one in self.opinions.get(key, {}).items()}
        known = {mark: value for mark, value in judged.items() if value is not None}
        return known | self.failed_runs.get(key, {})


class Panel:
    """A judge and what it is asked."""

    def __init__(
        self, chat: Chat, examiners: Sequence[Examiner], *, heard: Heard = lambda _done, _total, _left: None
    ) -> None:
        self.chat = chat
        self.examiners = tuple(examiners)
        self.heard = heard
        """Hears of each run that is judged; may be replaced before."""

    async def check(self) -> None:
        """See that the judge answers as it should, before hours are spent on runs.

        Raises:
            EvaluationError: it does not.
        """
        examiner = AnswerExaminer(self.chat)
        try:
            found = await examiner.trial()
        except Fault as fault:
            raise EvaluationError(self.chat.sentence(fault)) from fault
        finally:
            await self.chat.aclose()
        if found.value is None:
            names = ", ".join(WORDS)
            raise EvaluationError(
                f"The judge {self.chat.access.model} cannot be read: asked a plain question it began with "
                f"“{found.reply}” and not with one of {names}; choose another model with --judge-model."
            )

    def is_done(self, plan: Plan, folder: Folder) -> bool:
        """Whether every run of the plan was run and has its opinions, so that nobody need be asked."""
        book = Book(folder.path, self._model)
        lines = [folder.finished.get(key) for key, _ in _keys(plan)]
        return all(
            line is not None and book.of(line.run_id, examiner.by) is not None
            for line in lines
            for examiner in self.examiners
        )

    async def hear(self, plan: Plan, folder: Folder) -> Ruling:
        """Judge the finished runs of a plan. Being cancelled leaves all that was judged.

        Raises:
            EvaluationError: the folder cannot be read or written.
        """
        hearing = _Hearing(self.examiners, folder, Book(folder.path, self._model), self.heard, self.chat)
        hearing.take(plan)
        working = [asyncio.ensure_future(hearing.work()) for _ in range(AT_ONCE)]
        try:
            await asyncio.gather(*working)
        finally:
            for one in working:
                one.cancel()
            await asyncio.gather(*working, return_exceptions=True)
            await self.chat.aclose()
        return hearing.ruling

    @property
    def _model(self) -> str:
        return self.chat.access.model or ""


@dataclass(frozen=True, slots=True)
class _Job:
    examiner: Examiner
    key: Key
    question: Question
    line: Line


class _Hearing:
    """One pass over the runs."""

    def __init__(
        self, examiners: Sequence[Examiner], folder: Folder, book: Book, heard: Heard, chat: Chat
    ) -> None:
        self.ruling = Ruling(by={examiner.mark: examiner.by for examiner in examiners})
        self._examiners = examiners
        self._folder = folder
        self._book = book
        self._heard = heard
        self._chat = chat
        self._jobs: Iterator[_Job] = iter(())
        self._total = self._done = self._in_a_row = 0
        self._started = time.perf_counter()
        self._locks: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    def take(self, plan: Plan) -> None:
        """Note what was judged before, and what is left."""
        left: list[_Job] = []
        for key, question in _keys(plan):
            line = self._folder.finished.get(key)
            if line is None:
                continue
            for examiner in self._examiners:
                if line.status == "failed":
                    self._note_failed(examiner, key)
                elif (known := self._book.of(line.run_id, examiner.by)) is not None:
                    self.ruling.opinions.setdefault(key, {})[examiner.mark] = known
                else:
                    left.append(_Job(examiner, key, question, line))
        self._jobs, self._total = iter(left), len(left)

    async def work(self) -> None:
        """Judge what is left, beside others that do the same."""
        for job in self._jobs:
            if self.ruling.problem:
                self.ruling.unheard[job.examiner.mark, job.key[2]] += 1
                continue
            trace = self._folder.trace(job.line)
            if trace is None:  # the score counts it as failed as well
                self._note_failed(job.examiner, job.key)
            else:
                await self._judge(job, case_of(job.question, trace))
            self._done += 1
            self._heard(self._done, self._total, self._left_s)

    async def _judge(self, job: _Job, case: Case) -> None:
        try:
            opinion = await self._opinion(job, case)
        except Fault as fault:
            self._missed(job, fault)
        else:
            self.ruling.opinions.setdefault(job.key, {})[job.examiner.mark] = opinion
            if opinion.asked and not opinion.again:  # what needed no request does not show that one succeeds
                self._in_a_row = 0

    async def _opinion(self, job: _Job, case: Case) -> Opinion:
        by, run = job.examiner.by, job.line.run_id
        question = job.examiner.asks(case)
        if question is None:
            free = Finding(value=job.examiner.unasked(case), prompt_tokens=0, completion_tokens=0)
            return self._book.keep(run, by, "", free)
        asked = digest(question)
        async with self._locks[by, asked]:
            same = self._book.same(by, asked)
            if same is not None:
                return self._book.repeat(run, same)
            try:
                finding = await job.examiner.examine(case)
            except Fault as fault:
                if fault.kind != "too_long" and fault.status not in _OF_THE_CASE:
                    raise
                # not kept: it cost nothing, and a server's 400 may mean the account after all
                refused = Finding(value=None, reply=beginning(self._chat.masked(fault.detail)))
                return self._book.opinion(run, by, asked, refused)
            return self._book.keep(run, by, asked, finding)

    def _missed(self, job: _Job, fault: Fault) -> None:
        self.ruling.unheard[job.examiner.mark, job.key[2]] += 1
        self._in_a_row += 1
        if fault.kind in _HOPELESS or self._in_a_row >= _IN_A_ROW:
            self.ruling.problem = self.ruling.problem or self._chat.sentence(fault)

    def _note_failed(self, examiner: Examiner, key: Key) -> None:
        if examiner.of_failed is not None:
            self.ruling.failed_runs.setdefault(key, {})[examiner.mark] = examiner.of_failed

    @property
    def _left_s(self) -> float | None:
        taken = time.perf_counter() - self._started
        return taken / self._done * (self._total - self._done) if self._done else None


def _keys(plan: Plan) -> Iterator[tuple[Key, Question]]:
    return (
        ((dataset.name, question.id, system.name), question)
        for dataset, question in plan.questions
        for system in plan.systems
    )
