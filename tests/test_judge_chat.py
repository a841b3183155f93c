"""The conversation with a judge that fails in every way a server can."""

import asyncio
import time
from typing import Any

import pytest

from specrag.evaluation.judge.answers import AnswerExaminer
from specrag.evaluation.judge.panel import Panel
from specrag.evaluation.problems import EvaluationError
from specrag.models.server.faults import Fault as Problem
from tests.fake_server.engine import Refused
from tests.fake_server.faults import Fault
from tests.fake_server.server import FakeServer
from tests.judge_rig import CHATS, KEY, MODEL, chat, raw, reply, server

ASKED = [{"role": "user", "content": "{}"}]


async def kind_of(judge: FakeServer, **other: Any) -> str:
    """How a request fails."""
    async with chat(judge, **other) as talk:
        with pytest.raises(Problem) as caught:
            await talk.say(ASKED, most_tokens=9)
        said = talk.sentence(caught.value)
    assert KEY not in said
    assert said.startswith(f"The judge's server {judge.url} ")
    return caught.value.kind


async def test_what_is_asked_and_what_comes_back() -> None:
    with server(lambda case: "CORRECT") as judge:
        async with chat(judge) as talk:
            found = await talk.say(ASKED, most_tokens=9)
    assert (found.text, found.model, found.prompt_tokens, found.completion_tokens) == (
        "CORRECT", "toy-judge-0613", 100, 2,
    )  # fmt: skip
    (seen,) = judge.seen
    assert seen.path == CHATS
    assert seen.authorization == f"Bearer {KEY}"
    assert seen.body == {"model": "toy-judge", "messages": ASKED, "temperature": 0, "max_tokens": 9}


@pytest.mark.parametrize(
    ("fault", "kind", "tries"),
    [
        (Fault(kind="status", status=500, on=CHATS), "failed", 5),
        (Fault(kind="status", status=429, on=CHATS), "busy", 5),
        (Fault(kind="close", on=CHATS), "dropped", 5),
        (Fault(kind="html", on=CHATS), "malformed", 2),
        (Fault(kind="malformed", on=CHATS), "malformed", 2),
        (Fault(kind="status", status=401, message=f"bad key {KEY}", on=CHATS), "refused", 1),
        (
            Fault(kind="status", status=404, message="The model `toy-judge` does not exist.", on=CHATS),
            "no_model",
            1,
        ),
        (Fault(kind="status", status=400, message="A filter refused it.", on=CHATS), "rejected", 1),
    ],
)
async def test_each_failure_is_known_and_tried_again_where_that_may_help(
    fault: Fault, kind: str, tries: int
) -> None:
    with server() as judge:
        judge.fault = fault
        assert (await kind_of(judge), judge.struck) == (kind, tries)


async def test_a_failure_that_passes_is_not_noticed() -> None:
    with server(lambda case: "DECLINED") as judge:
        judge.fault = Fault(kind="status", status=503, retry_after="0", times=3, on=CHATS)
        async with chat(judge) as talk:
            assert (await talk.say(ASKED, most_tokens=9)).text == "DECLINED"


async def test_another_server_is_asked_after_one_failed() -> None:
    """A pool of two of which one is down must not cost a single judgement."""
    with server(lambda case: "CORRECT") as down, server(lambda case: "CORRECT") as up:
        down.fault = Fault(kind="status", status=500, on=CHATS)
        async with chat(down, up) as talk:
            assert [(await talk.say(ASKED, most_tokens=9)).text for _ in range(4)] == ["CORRECT"] * 4
        assert up.requests[CHATS] == 4


async def test_a_judge_that_hangs_is_left() -> None:
    with server() as judge:
        judge.fault = Fault(kind="hang", on=CHATS)
        before = time.monotonic()
        assert await kind_of(judge, longest_s=0.2) == "silent"
        assert judge.struck == 2
        assert time.monotonic() - before < 10


async def test_a_judge_that_takes_too_long_is_told_with_the_setting_that_bounds_it() -> None:
    """The sentence of a model's server advised SPECRAG_STALL_TIMEOUT_S, which changes nothing here."""
    with server() as judge:
        judge.fault = Fault(kind="hang", on=CHATS)
        async with chat(judge, longest_s=0.2) as talk:
            with pytest.raises(Problem) as caught:
                await talk.say(ASKED, most_tokens=9)
            said = talk.sentence(caught.value)
    assert "took longer than 0.2 s in all; raise SPECRAG_DEADLINE_S" in said
    assert "STALL" not in said


@pytest.mark.parametrize(
    "answer",
    [None, [], "CORRECT", {}, {"choices": []}, {"choices": ["CORRECT"]}, {"choices": [{"text": "CORRECT"}]},
     {"choices": [{"message": "CORRECT"}]}, {"error": {"message": "no"}}, {"choices": {"0": 1}}],
)  # fmt: skip
async def test_json_of_another_form_is_no_reply(answer: object) -> None:
    with raw(lambda body: answer) as judge:
        assert await kind_of(judge) == "malformed"


async def test_a_reply_of_ten_megabytes_is_cut_off() -> None:
    """A judge must not be able to fill the memory."""
    with raw(lambda body: reply("CORRECT " + "x" * 10_000_000)) as judge:
        async with chat(judge) as talk:
            with pytest.raises(Problem, match="more than 1,000,000 bytes"):
                await talk.say(ASKED, most_tokens=9)


@pytest.mark.parametrize("content", [None, 7, ["CORRECT"], ""])
async def test_a_message_without_text_is_an_empty_reply(content: object) -> None:
    """Models that spend all tokens on thinking send no text."""
    with raw(lambda body: reply(content, usage={"prompt_tokens": "many"}, model=["x"])) as judge:
        async with chat(judge) as talk:
            found = await talk.say(ASKED, most_tokens=9)
    assert (found.text, found.model, found.prompt_tokens) == ("", "", None)


async def test_options_that_a_model_refuses_are_left_out() -> None:
    """Newer models want another name for the limit and refuse a temperature; both are 400s in words."""
    with server(lambda case: "CORRECT") as judge:
        async with chat(judge) as talk:
            judge.fault = Fault(
                kind="status", status=400, times=1, on=CHATS,
                message="Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            )  # fmt: skip
            await talk.say(ASKED, most_tokens=9)
            judge.fault = Fault(
                kind="status", status=400, times=1, on=CHATS,
                message="Unsupported value: 'temperature' does not support 0 with this model.",
            )  # fmt: skip
            assert (await talk.say(ASKED, most_tokens=9)).text == "CORRECT"
            assert talk.temperature is None
    assert judge.seen[-1].body == {"model": "toy-judge", "messages": ASKED, "max_completion_tokens": 9}


def newer(body: dict[str, Any]) -> object:
    """A model that refuses both options."""
    if "max_tokens" in body:
        raise Refused("Unsupported parameter: use 'max_completion_tokens' instead.", "max_tokens")
    if "temperature" in body:
        raise Refused("Unsupported value: 'temperature' does not support 0.", "temperature")
    return reply("CORRECT")


async def test_requests_that_were_under_way_learn_from_the_refusal_of_another() -> None:
    """Eight are asked at once: of those that are refused after the first none may be lost."""
    with raw(newer) as judge:
        async with chat(judge) as talk:
            found = await asyncio.gather(*(talk.say(ASKED, most_tokens=9) for _ in range(8)))
    assert [(one.text, one.temperature) for one in found] == [("CORRECT", None)] * 8


async def test_a_key_in_escapes_is_not_kept() -> None:
    """A server that repeats our key, which JSON writes otherwise than it is, would put it into files."""
    key = 'sk-"41c9'
    with FakeServer(lambda text: {}, model=MODEL, key=key, chat=lambda body: reply(key, model=key)) as judge:
        async with chat(judge, key=key) as talk:
            found = await talk.say(ASKED, most_tokens=9)
    assert (found.text, found.model) == ("…", "…")


async def test_what_a_server_says_does_not_steer_the_terminal() -> None:
    with server() as judge:
        judge.fault = Fault(kind="status", status=402, message="\x1b]0;mine\x07 \x1b[2Jpay", on=CHATS)
        async with chat(judge) as talk:
            with pytest.raises(Problem) as caught:
                await talk.say(ASKED, most_tokens=9)
            said = talk.sentence(caught.value)
    assert said.isprintable()
    assert "pay); mend that, or choose another with --judge and --judge-model." in said


async def check(judge: FakeServer) -> None:
    async with chat(judge) as talk:
        await Panel(talk, [AnswerExaminer(talk)]).check()


async def test_a_judge_that_cannot_be_read_is_refused_before_anything_is_run() -> None:
    says = "began with “I would say that it is right” and not with"
    with (
        server(lambda case: "I would say that it is right") as judge,
        pytest.raises(EvaluationError, match=says) as told,
    ):
        await check(judge)
    assert "--judge-model" in str(told.value)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (
            Fault(kind="status", status=401, message=KEY, on=CHATS),
            r"refused the key \(status 401\); set SPECRAG_JUDGE_KEY",
        ),
        (Fault(kind="status", status=404, message="no such model", on=CHATS), "correct SPECRAG_JUDGE"),
        (Fault(kind="html", on=CHATS), "sent no answer of an OpenAI-compatible server"),
    ],
)
async def test_a_judge_that_is_no_judge_is_one_sentence(fault: Fault, says: str) -> None:
    with server() as judge:
        judge.fault = fault
        with pytest.raises(EvaluationError, match=says):
            await check(judge)


async def test_a_server_that_is_not_there_is_one_sentence() -> None:
    with server() as judge:
        judge.stop()
        with pytest.raises(EvaluationError, match=r"cannot be reached .*correct SPECRAG_JUDGE_URL"):
            await check(judge)
