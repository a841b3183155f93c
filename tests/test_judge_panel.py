"""A judge hears the runs of an evaluation: each once, whatever fails, and the report says how far to trust it."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specrag.evaluation.folder import Folder
from specrag.evaluation.judge.answers import AnswerExaminer
from specrag.evaluation.judge.panel import AT_ONCE, Panel
from specrag.evaluation.markdown import markdown
from specrag.evaluation.problems import EvaluationError
from tests.fake_server.engine import Refused
from tests.fake_server.faults import Fault
from tests.fake_server.server import until
from tests.judge_rig import (
    ASKED,
    CHATS,
    DATA,
    KEY,
    MODEL,
    PLAN,
    QUESTIONS,
    chat,
    contains,
    heard,
    keep,
    opinions,
    ran,
    raw,
    reply,
    server,
    shown,
)

RUNS = 12
"""Six questions, two pipelines."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = ran(tmp_path)
    yield made
    made.close()


async def test_the_verdicts_are_figures_beside_the_score(folder: Folder) -> None:
    """By hand: the judge finds 4 of 6 and 2 of 6 right; the score does not see that "They do not say." declines."""
    with server() as judge:
        ruling, report = await heard(folder, judge)
    assert ruling.problem == ""
    standard, drafter = (report["pipelines"][name] for name in ("standard", "drafter"))
    assert (standard["metrics"]["judged"], standard["counts"]["judged"]) == (
        pytest.approx(4 / 6, abs=1e-6),
        6,
    )
    assert standard["intervals"]["judged"] == standard["intervals"]["score"]
    assert drafter["metrics"]["judged"] == pytest.approx(2 / 6, abs=1e-6)
    assert drafter["metrics"]["score"] == pytest.approx(1 / 6, abs=1e-6)
    assert report["judge"]["pipelines"]["drafter"]["verdicts"] == {
        "correct": 1,
        "incorrect": 3,
        "declined": 2,
    }
    found = report["judge"]["agreement"]
    assert [found[name] for name in ("n", "both_right", "judge_only", "score_only", "both_wrong")] == [
        12,
        5,
        1,
        0,
        6,
    ]
    # agree on 11 of 12; by luck 6/12 x 5/12 + 6/12 x 7/12 = 1/2
    assert found["kappa"]["mean"] == pytest.approx((11 / 12 - 1 / 2) / (1 / 2), abs=1e-6)
    assert report["judge"]["answered_as"] == ["toy-judge-0613"]
    (against,) = [one for one in report["differences"] if one["metric"] == "judged"]
    assert against["mean"] == pytest.approx(-2 / 6)
    assert json.loads(json.dumps(report, allow_nan=False)) == report


async def test_a_judge_that_finds_all_right_earns_no_trust(folder: Folder) -> None:
    with server(lambda case: "CORRECT" if case["accepted"] else "DECLINED") as judge:
        _, report = await heard(folder, judge)
    assert report["pipelines"]["drafter"]["metrics"]["judged"] == 1.0
    kappa = report["judge"]["agreement"]["kappa"]
    assert (kappa["mean"], kappa["luck_p"], kappa["clear"]) == (0.0, 1.0, False)
    text = markdown(report)
    assert "## The judge" in text
    assert "so no agreement beyond luck is shown." in text
    assert "| `drafter` | 6 | 0 | 0 | 5 | 0 | 1 |" in text


async def test_equal_answers_are_asked_once_and_nothing_again(folder: Folder) -> None:
    """A judgement is paid for: neither another pipeline with the same answer nor the next call pays again."""
    with server() as judge:
        _, first = await heard(folder, judge)
        assert judge.requests[CHATS] == ASKED
        lines = opinions(folder.path)
        assert (len(lines), sum(line["again"] for line in lines)) == (RUNS, 1)
        assert first["judge"]["tokens"] == {"prompt": 100 * ASKED, "completion": 2 * ASKED, "uncounted": 0}
        _, second = await heard(folder, judge)
        assert judge.requests[CHATS] == ASKED
        assert second == first
        async with chat(judge) as talk:
            assert Panel(talk, [AnswerExaminer(talk)]).is_done(PLAN, folder)
    assert opinions(folder.path) == lines


async def test_runs_that_give_no_answer_need_no_judge(folder: Folder) -> None:
    """What the run itself called an abstention declines; money buys no other opinion of that."""
    keep(folder, QUESTIONS[0], "standard", "")
    keep(folder, QUESTIONS[-1], "standard", "")
    with server() as judge:
        _, report = await heard(folder, judge)
        assert judge.requests[CHATS] == ASKED - 1  # the first answer is the drafter's too
        await heard(folder, judge)
        assert judge.requests[CHATS] == ASKED - 1
    one = report["pipelines"]["standard"]
    assert (one["metrics"]["judged"], one["counts"]["judged"]) == (pytest.approx(4 / 6, abs=1e-6), 6)
    assert report["judge"]["agreement"]["n"] == RUNS - 2
    assert report["judge"]["pipelines"]["standard"]["verdicts"]["declined"] == 0


async def test_another_model_judges_anew(folder: Folder) -> None:
    with server() as judge:
        await heard(folder, judge)
    other = raw(lambda body: reply("INCORRECT"))
    other.api.model = "second"
    with other:
        _, report = await heard(folder, other, model="second")
        assert other.requests[CHATS] > 0
    assert report["judge"]["model"] == "second"
    assert report["pipelines"]["standard"]["metrics"]["judged"] == 0.0
    assert {line["model"] for line in opinions(folder.path)} == {MODEL, "second"}


async def test_a_reply_that_cannot_be_read_is_not_wrong(folder: Folder) -> None:
    """It lowers no figure: the run is left out and counted as unread, with what was said kept for a person."""
    with server(lambda case: "Hm." if "stair 14" in case["question"] else contains(case)) as judge:
        _, report = await heard(folder, judge)
        _, again = await heard(folder, judge)
    one = report["pipelines"]["standard"]
    assert (one["metrics"]["judged"], one["counts"]["judged"]) == (pytest.approx(4 / 5, abs=1e-6), 5)
    assert report["judge"]["marks"]["judged"]["unread"] == 2
    assert report["judge"]["agreement"]["n"] == RUNS - 2
    assert {line["reply"] for line in opinions(folder.path) if line["value"] is None} == {"Hm."}
    assert again == report


async def test_a_filter_that_refuses_one_text_stops_nothing(folder: Folder) -> None:
    """A 400 for one case is that case's: it is unread, all others are judged, and it is asked about again.

    Some servers say 400 where the account is empty: whoever has paid wants no answer left out for good.
    """
    with server() as judge:
        judge.fault = Fault(kind="status", status=400, message="A filter refused it.", times=1, on=CHATS)
        ruling, report = await heard(folder, judge)
        assert ruling.problem == ""
        refused = [one for of_run in ruling.opinions.values() for one in of_run.values() if one.value is None]
        assert ["A filter refused it" in one.reply for one in refused] == [True]
        assert report["judge"]["marks"]["judged"]["unheard"] == 0
        assert report["judge"]["marks"]["judged"]["unread"] == 1
        assert len(opinions(folder.path)) == RUNS - 1
        _, again = await heard(folder, judge)
    assert again["judge"]["marks"]["judged"]["unread"] == 0
    assert len(opinions(folder.path)) == RUNS


async def test_a_judge_that_goes_away_leaves_what_it_said(folder: Folder) -> None:
    """The rest is counted as not reached and asked by the next call; nothing that was judged is asked again."""
    with server() as judge:
        judge.fault = Fault(kind="status", status=500, skip=2, on=CHATS)
        ruling, report = await heard(folder, judge)
        assert "The judge's server" in ruling.problem
        assert KEY not in ruling.problem
        kept = opinions(folder.path)
        unheard = report["judge"]["marks"]["judged"]["unheard"]
        assert len(kept) + unheard == RUNS
        assert unheard > 0
        judge.fault = None
        judge.forget()
        ruling, report = await heard(folder, judge)
    assert ruling.problem == ""
    assert opinions(folder.path)[: len(kept)] == kept
    assert judge.requests[CHATS] == ASKED - 2
    assert report["judge"]["agreement"]["n"] == RUNS


async def test_an_account_without_money_is_no_fault_of_the_answers(folder: Folder) -> None:
    """Taken for unread, they would never be asked again, and the rest of the report would be empty for good."""
    with server() as judge:
        judge.fault = Fault(kind="status", status=402, message="Insufficient credits", skip=2, on=CHATS)
        ruling, report = await heard(folder, judge)
        assert "refused the request (status 402: Insufficient credits); mend that" in ruling.problem
        assert report["judge"]["marks"]["judged"]["unread"] == 0
        judge.fault = None
        ruling, report = await heard(folder, judge)
    assert (ruling.problem, report["judge"]["agreement"]["n"]) == ("", RUNS)


async def test_a_run_whose_trace_is_gone_has_failed(folder: Folder) -> None:
    """As for the score: of a question that nothing answers it would else be called rightly declined."""
    (folder.path / "traces" / f"standard-{QUESTIONS[-1].id}.json").unlink()
    with server() as judge:
        ruling, report = await heard(folder, judge)
    assert ruling.marks((DATA.name, QUESTIONS[-1].id, "standard")) == {"judged": 0.0}
    assert report["judge"]["agreement"]["n"] == RUNS - 1
    assert len(opinions(folder.path)) == RUNS - 1


async def test_the_temperature_is_that_of_the_judgements(folder: Folder) -> None:
    """A later call that asks nothing knows no better than the file what the model refused."""

    def newer(body: dict[str, Any]) -> object:
        if "temperature" in body:
            raise Refused("Unsupported value: 'temperature'.", "temperature")
        return reply(contains(shown(body)))

    with raw(newer) as judge:
        _, first = await heard(folder, judge)
        _, again = await heard(folder, judge)
    assert first["judge"]["marks"]["judged"]["unread"] == 0
    assert (first["judge"]["temperature"], again["judge"]["temperature"]) == (None, None)
    assert "at its own temperature" in markdown(again)


async def test_a_refused_key_is_tried_once_for_each_that_asks(folder: Folder) -> None:
    """Hundreds of requests with a wrong key lock accounts out."""
    with server(key="another") as judge:
        ruling, _ = await heard(folder, judge)
        assert judge.requests[CHATS] <= AT_ONCE
    assert "set SPECRAG_JUDGE_KEY" in ruling.problem
    assert not (folder.path / "judgements.jsonl").exists()


async def test_no_more_than_so_many_are_asked_at_once(folder: Folder) -> None:
    """A judge behind a rate limit is not flooded; and one after the other would take hours."""
    most = 0
    with server() as judge:
        judge.fault = Fault(kind="slow", seconds=0.2, on=CHATS)
        work = asyncio.ensure_future(heard(folder, judge))
        while not work.done():
            most = max(most, judge.api.handling)
            await asyncio.sleep(0.01)
        await work
    assert 1 < most <= AT_ONCE


async def test_being_stopped_keeps_what_was_judged(folder: Folder) -> None:
    """Ctrl-C in the middle loses nothing that was paid for."""
    told: list[int] = []
    with server() as judge:
        judge.fault = Fault(kind="hang", skip=2, on=CHATS)
        work = asyncio.ensure_future(
            heard(folder, judge, tell=lambda done, _total, _left: told.append(done), longest_s=60.0)
        )
        assert await until(lambda: len(told) == 2)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        kept = opinions(folder.path)
        assert len(kept) >= 2
        judge.fault = None
        await heard(folder, judge)
    assert opinions(folder.path)[: len(kept)] == kept
    assert len(opinions(folder.path)) == RUNS


async def test_a_torn_judgement_is_asked_again(folder: Folder) -> None:
    path = folder.path / "judgements.jsonl"
    with server() as judge:
        _, first = await heard(folder, judge)
        path.write_bytes(path.read_bytes()[:-20])
        _, again = await heard(folder, judge)
    assert again["pipelines"] == first["pipelines"]
    assert len(opinions(folder.path)) == RUNS


async def test_a_damaged_judgement_is_one_sentence(folder: Folder) -> None:
    (folder.path / "judgements.jsonl").write_text('{"run": 1}\n')
    with (
        server() as judge,
        pytest.raises(EvaluationError, match=r"judgements.jsonl, line 1: it is no judgement; use --restart"),
    ):
        await heard(folder, judge)
    folder.begin(PLAN.document({}, {}), restart=True)
    assert not (folder.path / "judgements.jsonl").exists()


async def test_failed_runs_score_nothing_and_are_not_judged(folder: Folder) -> None:
    """A pipeline must not gain by failing."""
    key = (DATA.name, QUESTIONS[0].id, "standard")
    folder.finished[key] = replace(folder.finished[key], run_id="", status="failed", error="no")
    with server() as judge:
        _, report = await heard(folder, judge)
    assert len(opinions(folder.path)) == RUNS - 1
    one = report["pipelines"]["standard"]
    assert (one["metrics"]["judged"], one["counts"]["judged"]) == (pytest.approx(3 / 6, abs=1e-6), 6)


@pytest.mark.parametrize("broken", ["traces/standard-q12.json", "judgements.jsonl"])
async def test_a_folder_that_cannot_be_used_is_one_sentence(folder: Folder, broken: str) -> None:
    """And the requests that are under way end with it: no connection stays open behind the sentence."""
    path = folder.path / broken
    path.unlink(missing_ok=True)
    path.mkdir()
    with server() as judge:
        judge.fault = Fault(kind="slow", seconds=0.1, on=CHATS)
        with pytest.raises(EvaluationError, match=rf"{path.name} cannot be read"):
            await heard(folder, judge)
        assert await until(lambda: judge.open_connections == 0)
