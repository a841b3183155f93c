"""RAGAS' faithfulness: its own prompts and arithmetic, over our connection; and what is said without the package."""

import importlib.util
import json
import os
from dataclasses import replace
from typing import Any

import pytest

from specrag.errors import UsageError
from specrag.evaluation.judge.answers import AnswerExaminer
from specrag.evaluation.judge.case import Case, Examiner, Finding
from specrag.evaluation.judge.chat import Chat
from specrag.evaluation.judge.faithfulness import FaithfulnessExaminer
from specrag.evaluation.judge.panel import Panel
from specrag.evaluation.questions import Question
from tests.fake_server.server import FakeServer
from tests.judge_rig import (
    CHATS,
    KEY,
    PLAN,
    QUESTIONS,
    chat,
    contains,
    keep,
    opinions,
    ran,
    raw,
    reply,
    shown,
)

HERE = importlib.util.find_spec("ragas") is not None
needs_ragas = pytest.mark.skipif(not HERE, reason="pip install -r requirements-ragas.txt to run this")
CASE = Case(
    question=Question(id="q", question="How heavy is it?", answers=("3 kg",), passages=()),
    answer="It weighs 3 kg and is red.",
    passages=("It weighs 3 kg.", "It has a bell."),
)
CLAIMS = ["It weighs 3 kg.", "It is red."]


def statements(body: dict[str, Any], *verdicts: int) -> str:
    """A judge that divides any answer into two statements and gives these verdicts."""
    if '"verdict"' not in body["messages"][0]["content"]:
        return json.dumps({"statements": CLAIMS})
    found = [
        {"statement": text, "reason": "so", "verdict": one}
        for text, one in zip(CLAIMS, verdicts, strict=True)
    ]
    return f"```json\n{json.dumps({'statements': found})}\n```"


async def found(judge: FakeServer, case: Case = CASE) -> Finding:
    async with chat(judge) as talk:
        return await FaithfulnessExaminer(talk).examine(case)


@pytest.mark.skipif(HERE, reason="the package is installed")
async def test_without_the_package_it_is_one_sentence() -> None:
    with raw(lambda body: reply("")) as judge:
        async with chat(judge) as talk:
            with pytest.raises(UsageError, match=r"ragas cannot be loaded .*install requirements-ragas\.txt"):
                FaithfulnessExaminer(talk)


@needs_ragas
async def test_half_of_what_is_said_is_borne_out() -> None:
    """The package's prompts go over our connection, with our key, and both requests are counted."""
    with raw(lambda body: reply(statements(body, 1, 0))) as judge:
        one = await found(judge)
    assert (one.value, one.prompt_tokens, one.completion_tokens) == (0.5, 200, 4)
    assert [seen.authorization for seen in judge.seen] == [f"Bearer {KEY}"] * 2
    assert [seen.body["temperature"] for seen in judge.seen] == [0, 0]
    asked = [seen.body["messages"][0]["content"] for seen in judge.seen]
    assert CASE.answer in asked[0]
    assert all(passage in asked[1] for passage in CASE.passages)


@needs_ragas
@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "{}",
        '{"statements": 7}',
        "Sure! Here it is.",
        "[" * 50_000,
        f"```{' ' * 99_000}x",
        "`" * 5,
        '{"statements": []}',
        '{"statements": ["\\ud800"]}',
    ],
)
async def test_a_reply_of_another_form_is_unread(text: str) -> None:
    """It must neither count as unfaithful nor end the evaluation."""
    with raw(lambda body: reply(text)) as judge:
        assert (await found(judge)).value is None


@needs_ragas
async def test_half_a_character_ends_nothing() -> None:
    """JSON can hold half of an emoji, and a file of questions is from anywhere; a request cannot."""
    half = "\ud83d"
    case = Case(
        question=replace(CASE.question, question=f"How heavy{half}?"),
        answer=f"3 kg{half}",
        passages=(half,),
    )
    with raw(lambda body: reply(statements(body, 1, 0))) as judge:
        assert (await found(judge, case)).value == 0.5


@needs_ragas
async def test_nothing_is_told_to_the_makers_of_the_package() -> None:
    """The package reports its use by default; a wall in these tests would raise in its thread, unseen."""
    with raw(lambda body: reply(statements(body, 1, 1))) as judge:
        await found(judge)
    assert os.environ["RAGAS_DO_NOT_TRACK"] == "true"
    from ragas._analytics import do_not_track

    assert do_not_track()


@needs_ragas
async def test_it_stands_beside_the_verdicts_and_is_not_asked_again(tmp_path: Any) -> None:
    folder = ran(tmp_path)
    passage = {"passages": (_passage("The stair has 11 steps."),)}
    keep(folder, QUESTIONS[1], "standard", "It has 11 steps.", **passage)

    def judge_all(body: dict[str, Any]) -> object:
        asks_for_word = body["messages"][0]["role"] == "system"
        return reply(contains(shown(body)) if asks_for_word else statements(body, 1, 0))

    async def hear(talk: Chat) -> Any:
        examiners: list[Examiner] = [AnswerExaminer(talk), FaithfulnessExaminer(talk)]
        return await Panel(talk, examiners).hear(PLAN, folder)

    with raw(judge_all) as judge:
        async with chat(judge) as talk:
            ruling = await hear(talk)
            asked = judge.requests[CHATS]
            again = await hear(talk)
    assert judge.requests[CHATS] == asked
    key = ("stairs", QUESTIONS[1].id, "standard")
    assert ruling.marks(key) == again.marks(key) == {"judged": 1.0, "faithfulness": 0.5}
    assert "faithfulness" not in ruling.marks(("stairs", QUESTIONS[2].id, "standard"))  # it read no passages
    assert (
        sum(line["by"].startswith("faithfulness") and bool(line["asked"]) for line in opinions(tmp_path)) == 1
    )
    folder.close()


def _passage(text: str) -> Any:
    from specrag.types import Passage

    return Passage(
        id="p", document_id="d", title="Stair", text=text, page=None, source="", published_at=None, score=0.5
    )
