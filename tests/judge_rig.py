"""A judge on a real port that says what a script says, and an evaluation of toys for it to judge."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from specrag.evaluation.document import Origin, document
from specrag.evaluation.folder import Folder, Line
from specrag.evaluation.judge.answers import AnswerExaminer
from specrag.evaluation.judge.chat import Chat
from specrag.evaluation.judge.panel import Heard, Panel, Ruling
from specrag.evaluation.judge.section import judged, section
from specrag.evaluation.outcome import outcomes
from specrag.evaluation.plan import Plan
from specrag.evaluation.questions import Dataset, Question
from specrag.models.server.access import Access
from specrag.tracing.trace import Trace
from specrag.types import Answer, Decision
from tests.evaluation_rig import PASSAGES, plan
from tests.fake_server.server import FakeServer, until

KEY = "sk-judge-41c9"
MODEL = "toy-judge"
CHATS = "/v1/chat/completions"
QUESTIONS = (
    *(
        Question(
            id=f"q{at}",
            question=f"How many steps has stair {at}?",
            answers=(f"{at} steps",),
            passages=PASSAGES,
        )
        for at in range(10, 15)
    ),
    Question(id="none", question="Who built the stairs?", answers=(), passages=PASSAGES),
)
ANSWERS = {
    "standard": ("10 steps", "It has 11 steps.", "12 steps", "13 steps", "99 steps", "Ada built them."),
    "drafter": (
        "10 steps",
        "Eleven, they do not say more.",
        "66 steps",
        "77 steps",
        "88 steps",
        "They do not say.",
    ),
}
"""By pipeline, to the questions in their order: one is the same twice, and two are no abstention of ours."""
ASKED = 11
"""Different questions to the judge."""
DATA = Dataset(name="stairs", sha256="1" * 64, questions=QUESTIONS)
PLAN = replace(plan("standard,drafter"), datasets=(DATA,))
Script = Callable[[dict[str, Any]], str]
"""From what the judge is shown to its reply."""


def reply(text: object, **fields: object) -> dict[str, Any]:
    """What a server answers."""
    return {
        "model": "toy-judge-0613",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102},
        **fields,
    }


def shown(body: dict[str, Any]) -> dict[str, Any]:
    """What a request shows the judge."""
    found: dict[str, Any] = json.loads(body["messages"][-1]["content"])
    return found


def contains(case: dict[str, Any]) -> str:
    """The verdict of a judge that looks for accepted answers, and sees what declines."""
    if "do not say" in case["answer"]:
        return "DECLINED"
    return "CORRECT" if any(one in case["answer"] for one in case["accepted"]) else "INCORRECT"


def server(script: Script = contains, *, key: str | None = KEY) -> FakeServer:
    """A judge that replies by a script."""
    return FakeServer(lambda text: {}, model=MODEL, key=key, chat=lambda body: reply(script(shown(body))))


def raw(chat: Callable[[dict[str, Any]], object]) -> FakeServer:
    """A judge whose whole JSON is given."""
    return FakeServer(lambda text: {}, model=MODEL, key=KEY, chat=chat)


def access(*servers: FakeServer, **other: Any) -> Access:
    """How it is reached."""
    given: dict[str, Any] = {"model": MODEL, "key": KEY, "stall_timeout_s": 20.0}
    return Access(role="judge", urls=tuple(one.url for one in servers), **{**given, **other})


@asynccontextmanager
async def chat(*servers: FakeServer, longest_s: float = 20.0, **other: Any) -> AsyncIterator[Chat]:
    """A conversation with it that hardly waits between tries."""
    made = Chat(access(*servers, **other), pause_s=0.01, longest_s=longest_s)
    yield made
    await made.aclose()
    for one in servers:
        assert await until(lambda one=one: one.open_connections == 0), "a connection stayed open"  # type: ignore[misc]


def ran(path: Path) -> Folder:
    """A folder of finished runs, as an evaluation leaves it."""
    folder = Folder(path)
    folder.begin(PLAN.document({}, {}))
    for system, answers in ANSWERS.items():
        for question, text in zip(QUESTIONS, answers, strict=True):
            keep(folder, question, system, text)
    return folder


def keep(folder: Folder, question: Question, system: str, text: str, **fields: Any) -> None:
    """One finished run."""
    run = f"{system}-{question.id}"
    trace = Trace(
        run_id=run,
        status="done",
        pipeline="standard",
        question=question.question,
        created_at="",
        decision=Decision(kind="direct", draft_index=None, reason=""),
        answer=Answer(text=text, citations=(), confidence=None),
        **fields,
    )
    line = Line(
        dataset=DATA.name, question=question.id, system=system, run_id=run, status="done", answer=text
    )
    folder.keep(line, trace)


async def heard(
    folder: Folder,
    *servers: FakeServer,
    made: Plan = PLAN,
    tell: Heard = lambda _done, _total, _left: None,
    **other: Any,
) -> tuple[Ruling, dict[str, Any]]:
    """What the judge says of the runs in a folder, and the report with it."""
    async with chat(*servers, **other) as talk:
        ruling = await Panel(talk, [AnswerExaminer(talk)], heard=tell).hear(made, folder)
        found = judged(list(outcomes(made, folder)), ruling)
        whole = document(made, found, Origin(command=(), environment={}, config={}))
        return ruling, whole | {"judge": section(made, found, ruling, talk)}


def opinions(folder: Path) -> list[dict[str, Any]]:
    """The lines that the judge left."""
    return [json.loads(line) for line in (folder / "judgements.jsonl").read_text().splitlines()]
