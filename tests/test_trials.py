"""A small evaluation on the page: over the page's models, and one at a time."""

import asyncio
from collections.abc import Iterator
from math import inf, nan
from pathlib import Path

import pytest

from specrag.build import Parts
from specrag.config import load_settings
from specrag.errors import UsageError
from specrag.evaluation.shelf import Shelf
from specrag.evaluation.trials import Trials, Wanted
from specrag.library.visitors import Visitor
from specrag.turnstile import Turnstile
from specrag.ui.endpoints import evaluations
from tests.evaluation_rig import DATA
from tests.report_samples import evaluation
from tests.trial_rig import GatedModel, ended, toy_host, until, wanted


@pytest.fixture
def model() -> GatedModel:
    return GatedModel()


@pytest.fixture
def host(tmp_path: Path, model: GatedModel) -> Iterator[Parts]:
    with toy_host(tmp_path, model) as made:
        yield made


@pytest.fixture
def trials(host: Parts) -> Iterator[Trials]:
    made = Trials(host)
    yield made
    made.close()


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
    trials.start(wanted("standard"), owner="user:bob")
    assert evaluations.evaluation(host, ada) == told, "it was lost once somebody else's had begun"
    ended(trials)
    assert evaluations.evaluation(host, bob)["number"] == 2


def test_a_shelf_that_cannot_be_written_is_told(host: Parts, tmp_path: Path) -> None:
    """Without its end, the page would wait for ever and no other evaluation could begin."""
    (tmp_path / "reports").write_text("a file")
    trials = Trials(host)
    trials.start(wanted("standard"))
    trial = ended(trials)
    assert trial.stage == "failed"
    assert "cannot be kept" in trial.error
