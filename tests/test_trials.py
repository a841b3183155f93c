"""A small evaluation on the page: over the page's models, one at a time, stopped with what it has."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from specrag.build import Parts
from specrag.config import load_settings
from specrag.errors import UsageError
from specrag.evaluation.questions import Dataset
from specrag.evaluation.shelf import Shelf
from specrag.evaluation.trials import Trial, Trials, Wanted
from specrag.library.visitors import Visitor
from specrag.models.base import Conversation, Line, Output
from specrag.models.scripted import ScriptedModel, Written
from specrag.turnstile import Turnstile
from specrag.ui.endpoints import evaluations
from tests.evaluation_rig import DATA, write
from tests.report_samples import evaluation
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


@pytest.fixture
def model() -> GatedModel:
    return GatedModel()


@pytest.fixture
def host(tmp_path: Path, model: GatedModel) -> Iterator[Parts]:
    """The parts of a page over toys."""
    settings = load_settings({}, home=tmp_path)
    parts = Parts(settings, in_memory=True, drafter=model, verifier=model)
    parts.__dict__["embedder"] = WordEmbedder()
    yield parts
    model.left = None
    parts.close()


@pytest.fixture
def trials(host: Parts) -> Iterator[Trials]:
    made = Trials(host)
    yield made
    made.close()


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


def test_a_trial_ends_with_a_report_on_the_shelf(trials: Trials, tmp_path: Path) -> None:
    trials.start(wanted())
    trial = ended(trials)
    assert (trial.stage, trial.done, trial.total, trial.failed) == ("done", 6, 6, 0), trial.error
    report = Shelf(tmp_path).load(trial.report)
    assert report["pipelines"]["standard"]["metrics"]["score"] == 1.0
    assert (report["n"], report["finished"], report["command"]) == (3, True, "")


def test_an_open_corpus_belongs_to_its_trial(trials: Trials, tmp_path: Path) -> None:
    """One store for all of them would answer the second file's questions from the first file's passages."""
    for _ in range(2):
        trials.start(wanted("standard", corpus="open"))
        assert ended(trials).stage == "done"


def test_one_at_a_time(trials: Trials, model: GatedModel) -> None:
    """Two at once would each take the models from the other, and both from visitors."""
    model.left = 0
    trials.start(wanted())
    with pytest.raises(UsageError, match="is under way"):
        trials.start(wanted())
    model.left = None
    ended(trials)
    assert trials.start(wanted()).number == 2
    assert ended(trials).stage == "done"


def test_a_trial_that_is_stopped_reports_what_it_has(
    trials: Trials, model: GatedModel, tmp_path: Path
) -> None:
    """Minutes of work are not thrown away; and the next one can begin."""
    model.left = 2  # warming up, and one run
    trials.start(wanted("standard"))
    until(lambda: trials.newest is not None and trials.newest.done == 1)
    assert trials.stop()
    trial = ended(trials)
    assert (trial.stage, trial.done, trial.total) == ("stopped", 1, 3)
    report = Shelf(tmp_path).load(trial.report)
    assert (report["finished"], report["pipelines"]["standard"]["n"]) == (False, 1)
    assert not trials.stop()
    model.left = None
    trials.start(wanted("standard"))
    assert ended(trials).stage == "done"


def test_what_failed_is_in_the_report_of_a_trial_that_is_stopped(
    trials: Trials, model: GatedModel, tmp_path: Path
) -> None:
    """Without it the report is of the runs that went well, and better than the pipeline is."""
    model.fails, model.left = 1, 3  # warming up, and two runs
    trials.start(wanted("standard"))
    until(lambda: trials.newest is not None and trials.newest.done == 2)
    trials.stop()
    trial = ended(trials)
    assert (trial.stage, trial.done, trial.failed) == ("stopped", 2, 1), trial.error
    told = Shelf(tmp_path).load(trial.report)["pipelines"]["standard"]
    assert (told["n"], told["metrics"]["score"]) == (2, 0.5)
    assert [one["error"] for one in told["failed"]] == ["the model is out of memory"]


def test_a_trial_that_is_stopped_at_once_leaves_nothing(
    trials: Trials, model: GatedModel, tmp_path: Path
) -> None:
    model.left = 0
    trials.start(wanted())
    assert trials.stop()
    trial = ended(trials)
    assert (trial.stage, trial.report, trial.done) == ("stopped", "", 0)
    assert Shelf(tmp_path).kept() == ()


def test_a_trial_is_stopped_while_its_report_is_put_on_the_shelf(host: Parts, tmp_path: Path) -> None:
    """Its loop is closed by then, which raised in whoever stopped it or closed the program."""
    meanwhile: list[bool] = []

    class Slow(Shelf):
        def keep(self, report: Mapping[str, Any], *, owner: str = "", now: datetime | None = None) -> str:
            meanwhile.append(page.stop())
            return super().keep(report, owner=owner, now=now)

    host.__dict__["shelf"] = Slow(tmp_path)
    page = Trials(host)
    page.start(wanted("standard"))
    trial = ended(page)
    assert (trial.stage, trial.done, trial.error) == ("done", 3, "")
    assert trial.report
    assert meanwhile == [True]
    page.close()


def test_a_part_that_cannot_be_closed_keeps_no_other_from_it(tmp_path: Path) -> None:
    """The lock of the store would be held, and the threads would go on."""
    closed: list[str] = []

    @dataclass
    class Closing:
        name: str
        broken: bool = False

        def close(self) -> None:
            closed.append(self.name)
            if self.broken:
                raise RuntimeError(self.name)

    parts = Parts(load_settings({}, home=tmp_path))
    made = (Closing("trials", broken=True), Closing("jobs"), Closing("worker", broken=True), Closing("store"))
    parts.__dict__.update({one.name: one for one in made})
    with pytest.raises(RuntimeError, match="worker"):
        parts.close()
    assert closed == ["trials", "jobs", "worker", "store"]


def test_nobody_stops_somebody_elses(trials: Trials, model: GatedModel) -> None:
    model.left = 0
    trials.start(wanted(), owner="user:ada")
    assert not trials.stop("user:bob")
    assert not trials.stop("user:bob", number=1)
    assert not trials.stop("user:ada", number=2)
    assert trials.stop("user:ada", number=1)
    ended(trials)


def test_the_report_is_its_owners(trials: Trials, tmp_path: Path) -> None:
    trials.start(wanted("standard"), owner="user:ada")
    name = ended(trials).report
    assert [one.name for one in Shelf(tmp_path).kept("user:ada")] == [name]
    assert Shelf(tmp_path).kept("user:bob") == ()


async def test_visitors_take_their_turn(host: Parts, trials: Trials) -> None:
    """Its runs stand in the line of the page's runs: with one place, they wait for a visitor's."""
    host.__dict__["turnstile"] = turnstile = Turnstile(1)
    async with turnstile.place():
        trials.start(wanted("standard"))
        await asyncio.to_thread(until, lambda: turnstile.waiting == 1)
        assert trials.newest is not None
        assert trials.newest.done == 0
    trial = await asyncio.to_thread(ended, trials)
    assert (trial.stage, trial.done) == ("done", 3)
    assert (turnstile.active, turnstile.waiting) == (0, 0)


def test_it_uses_the_models_of_the_page_and_leaves_them(host: Parts, trials: Trials) -> None:
    """Loading a second pair would take the memory of the first once more; closing it would end the page."""
    trials.start(wanted("standard"))
    ended(trials)
    assert host.worker.pending == 0
    trials.start(wanted("standard"))
    assert ended(trials).stage == "done"


@pytest.mark.parametrize(
    ("pipelines", "says"),
    [
        (("magic",), "no pipeline “magic”"),
        (("standard", "speculative:drafts=2"), "no pipeline “speculative:drafts=2”"),
        (([],), "no pipeline"),
        ((), "at least one"),
    ],
)
def test_a_wrong_choice_is_refused(trials: Trials, pipelines: tuple[object, ...], says: str) -> None:
    with pytest.raises(UsageError, match=f"{says}.*; choose among standard, drafter" if pipelines else says):
        trials.start(Wanted(dataset=DATA, pipelines=pipelines, limit=3))
    assert trials.newest is None


@pytest.mark.parametrize(
    ("limit", "asked"),
    [(2, 2), (2.0, 2), (0, 1), (-5, 1), (10**9, 3), (inf, 3), (nan, 1), ("7", 1), (None, 1)],
)
def test_a_limit_from_anywhere_is_brought_within_bounds(trials: Trials, limit: object, asked: int) -> None:
    """A browser can be made to send anything; of three questions no more than three are asked."""
    assert trials.start(Wanted(dataset=DATA, pipelines=["standard"], limit=limit)).total == asked


def test_strangers_start_nothing(tmp_path: Path, model: GatedModel) -> None:
    """The form is not shown to them, which stops nobody; nor is a command line with its paths."""
    settings = load_settings({}, home=tmp_path, access="visitor")
    parts = Parts(settings, in_memory=True, drafter=model, verifier=model)
    who = Visitor(id="1", owner="visitor:1")
    with pytest.raises(UsageError, match="open to strangers"):
        evaluations.evaluate(parts, who)
    assert evaluations.stop_evaluation(parts, who) is False
    assert evaluations.evaluation(parts, who) == {}
    name = parts.shelf.keep(evaluation())
    assert [one["name"] for one in evaluations.reports(parts, who)] == [name]
    assert evaluations.report(parts, who, name)["command"] == ""
    parts.close()


def test_a_program_sees_its_own_evaluation(host: Parts, trials: Trials) -> None:
    host.__dict__["trials"] = trials
    ada, bob = (Visitor(id=name, owner=f"user:{name}") for name in ("ada", "bob"))
    trials.start(wanted("standard"), owner="user:ada")
    ended(trials)
    told = evaluations.evaluation(host, ada)
    assert (told["stage"], told["done"]) == ("done", 3)
    assert "owner" not in told
    assert evaluations.report(host, ada, told["report"])["n"] == 3
    assert evaluations.evaluation(host, bob) == {}
    assert evaluations.reports(host, bob) == []


def test_a_shelf_that_cannot_be_written_is_told(host: Parts, tmp_path: Path) -> None:
    """Without its end, the page would wait for ever and no other evaluation could begin."""
    (tmp_path / "reports").write_text("a file")
    trials = Trials(host)
    trials.start(wanted("standard"))
    trial = ended(trials)
    assert trial.stage == "failed"
    assert "cannot be kept" in trial.error
