"""The fake server against what a real vLLM 0.32 answered: same fields, same refusals, same counting."""

import asyncio
import gc
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from specrag.prompts import ANSWER_LABEL, RATIONALE_LABEL
from specrag.types import Part
from tests.fake_server import FakeServer, Fault, Kind, until
from tests.fake_server.toy import END, START, Vocabulary

PROMPT = f"<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n{RATIONALE_LABEL}"
WHOLE = " The firm was founded by Åda — Brennick."


@pytest.fixture
def server() -> Iterator[FakeServer]:
    script: Mapping[Part, str] = {"rationale": WHOLE, "answer": " Åda Brennick"}
    with FakeServer(lambda text: script, judge=lambda text: 0.8) as listening:
        yield listening


async def post(server: FakeServer, path: str = "completions", **body: Any) -> httpx.Response:
    base = server.url if path == "completions" else server.url.removesuffix("/v1")
    async with httpx.AsyncClient() as client:
        return await client.post(f"{base}/{path}", json={"model": "toy", **body})


async def streamed(server: FakeServer, **body: Any) -> list[dict[str, Any]]:
    text = (await post(server, stream=True, **body)).text
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line.startswith("data: ")]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def test_a_text_and_its_ids_are_the_same_and_special_names_become_special_tokens() -> None:
    vocabulary = Vocabulary()
    ids = vocabulary.encode(PROMPT + WHOLE)
    assert vocabulary.decode(ids) == PROMPT + WHOLE
    assert ids.count(START) == 2
    assert ids.count(END) == 1


async def test_tokenise_and_back(server: FakeServer) -> None:
    told = (await post(server, "tokenize", prompt="Who is Åda?", return_token_strs=True)).json()
    assert set(told) == {"count", "max_model_len", "tokens", "token_strs"}
    assert told["count"] == len(told["tokens"]) == len(told["token_strs"])
    assert (await post(server, "detokenize", tokens=told["tokens"])).json() == {"prompt": "Who is Åda?"}
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]
    chat: dict[str, Any] = {"messages": messages, "add_generation_prompt": False}
    closed = (await post(server, "tokenize", **chat)).json()["tokens"]
    opened = (await post(server, "tokenize", **chat, continue_final_message=True)).json()["tokens"]
    assert closed[: len(opened)] == opened
    assert closed[len(opened)] == END


async def test_a_draft_is_streamed_with_ids_and_probabilities(server: FakeServer) -> None:
    asked: dict[str, Any] = {
        "prompt": PROMPT,
        "temperature": 0,
        "max_tokens": 100,
        "logprobs": 1,
        "stop": ["\n"],
    }
    events = await streamed(server, **asked, return_token_ids=True, stream_options={"include_usage": True})
    *parts, usage = events
    choices = [part["choices"][0] for part in parts]
    assert "".join(choice["text"] for choice in choices) == WHOLE
    assert choices[-1]["finish_reason"] == "stop"
    assert choices[-1]["stop_reason"] == "\n"
    assert choices[0]["prompt_token_ids"] == Vocabulary().encode(PROMPT)
    assert choices[1]["prompt_token_ids"] is None
    assert usage["usage"]["completion_tokens"] == sum(len(choice["token_ids"]) for choice in choices)
    assert all(len(choice["logprobs"]["top_logprobs"][0]) == 1 for choice in choices)


async def test_reading_a_draft_gives_the_values_that_writing_it_gave(server: FakeServer) -> None:
    asked: dict[str, Any] = {"temperature": 0, "max_tokens": 100, "logprobs": 0, "stop_token_ids": [0]}
    events = await streamed(server, prompt=PROMPT, **asked, return_token_ids=True)
    choices = [event["choices"][0] for event in events]
    ids = [token for choice in choices for token in choice["token_ids"]]
    written = [value for choice in choices for value in choice["logprobs"]["token_logprobs"]]
    before = Vocabulary().encode(PROMPT)
    reading: dict[str, Any] = {
        "prompt": [*before, *ids],
        "max_tokens": 1,
        "temperature": 0,
        "prompt_logprobs": 0,
    }
    read = (await post(server, **reading)).json()["choices"][0]["prompt_logprobs"]
    assert len(read) == len(before) + len(ids)
    assert read[0] is None
    values = [read[len(before) + place][str(token)]["logprob"] for place, token in enumerate(ids)]
    assert values == pytest.approx(written)
    assert Vocabulary().decode(ids) == f"{WHOLE}\n{ANSWER_LABEL} Åda Brennick<|im_end|>"


async def test_yes_and_no_are_told_as_the_next_token(server: FakeServer) -> None:
    yes, no = (Vocabulary().encode(word)[0] for word in ("Yes", "No"))
    prompt = "<|im_start|>user\nIs it?<|im_end|>\n<|im_start|>assistant\n"
    asked: dict[str, Any] = {
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": 1,
        "return_tokens_as_token_ids": True,
    }
    answer = (
        await post(server, prompt=[Vocabulary().encode(prompt)], **asked, logprob_token_ids=[no, yes])
    ).json()
    (top,) = answer["choices"][0]["logprobs"]["top_logprobs"]
    assert list(top) == [f"token_id:{yes}", f"token_id:{no}"]
    assert answer["choices"][0]["text"] == "Yes"


async def test_without_temperature_zero_it_writes_something_else(server: FakeServer) -> None:
    """As a real server does, which would otherwise go unnoticed."""
    answer = (await post(server, prompt=PROMPT, max_tokens=3)).json()
    assert not WHOLE.startswith(answer["choices"][0]["text"])


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"prompt": [10**7]}, 400, "Token id 10000000 is out of vocabulary"),
        ({"prompt": [1] * 5000}, 400, "maximum context length is 4096 tokens"),
        ({"prompt": [1], "logprobs": 50}, 400, "greater than max allowed: 20"),
        ({"prompt": [1], "max_tokens": 0}, 400, "max_tokens must be at least 1, got 0."),
        ({"prompt": [1], "stream": True, "prompt_logprobs": 1}, 400, "not available when `stream=True`"),
        ({"prompt": [1], "model": "nope"}, 404, "The model `nope` does not exist. Valid aliases: toy."),
        ({"prompt": [1], "logprob_token_ids": [1]}, 400, "`logprobs` must be set"),
    ],
)
async def test_what_vllm_refuses_is_refused(
    server: FakeServer, body: dict[str, Any], status: int, sentence: str
) -> None:
    answer = await post(server, **body)
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert sentence in answer.json()["error"]["message"]


async def test_a_client_that_leaves_is_noticed_and_its_work_ends(server: FakeServer) -> None:
    server.api.pace_s = 0.02
    async with (
        httpx.AsyncClient() as client,
        client.stream(
            "POST",
            f"{server.url}/completions",
            json={"prompt": PROMPT, "temperature": 0, "max_tokens": 500, "stream": True},
        ) as response,
    ):
        lines = response.aiter_lines()  # held: one that nobody holds closes its response
        line = await anext(lines)
        assert line.startswith("data")
        assert server.running == 1
        metrics = (await client.get(f"{server.url.removesuffix('/v1')}/metrics")).text
        assert 'vllm:num_requests_running{engine="0",model_name="toy"} 1.0' in metrics
    assert await until(lambda: server.running == 0, within_s=1)
    assert await until(lambda: server.disconnects == 1)
    assert await until(lambda: server.open_connections == 0, within_s=1)


async def test_it_comes_back_on_the_same_port_and_keeps_connections_alive(server: FakeServer) -> None:
    async with httpx.AsyncClient() as client:
        for _ in range(3):
            assert (await client.get(f"{server.url}/models")).json()["data"][0]["id"] == "toy"
        assert server.connections == 1
        server.stop()
        with pytest.raises(httpx.TransportError):
            await client.get(f"{server.url}/models")
        server.start()
        assert (await client.get(f"{server.url}/models")).status_code == 200


@pytest.mark.parametrize("kind", ["crash", "restart", "close"])
async def test_a_server_that_dies_in_mid_stream_breaks_it_off(server: FakeServer, kind: Kind) -> None:
    server.fault = Fault(kind=kind, after_tokens=3, times=1)
    with pytest.raises(httpx.TransportError):
        await streamed(server, prompt=PROMPT, temperature=0, max_tokens=100)
    assert server.api.sent == 3
    assert await until(lambda: server.listening == (kind != "crash"))


async def test_a_key_is_wanted_under_v1_only() -> None:
    with FakeServer(lambda text: {}, key="open-sesame") as server:
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"{server.url}/models")).json() == {"error": "Unauthorized"}
            assert (await client.get(f"{server.url.removesuffix('/v1')}/health")).status_code == 200
            headers = {"authorization": "Bearer open-sesame"}
            assert (await client.get(f"{server.url}/models", headers=headers)).status_code == 200


async def test_many_at_once(server: FakeServer) -> None:
    server.api.pace_s = 0.002
    asked: dict[str, Any] = {"prompt": PROMPT, "temperature": 0, "max_tokens": 12}
    found = await asyncio.gather(*(streamed(server, **asked) for _ in range(32)))
    assert {"".join(event["choices"][0]["text"] for event in events) for events in found} == {
        "".join(event["choices"][0]["text"] for event in found[0])
    }
    assert server.api.most_running > 16
    assert server.running == 0


async def test_a_prompt_that_ends_within_a_character_confuses_it_as_it_does_vllm(server: FakeServer) -> None:
    """Recorded of vLLM 0.32: the token that completes the character brings the text of the whole prompt."""
    ids = Vocabulary().encode(f"{PROMPT} The firm was founded by Å")[:-1]
    asked: dict[str, Any] = {"prompt": ids, "temperature": 0, "max_tokens": 2, "logprobs": 0}
    first, second = await streamed(server, **asked)
    shown = PROMPT.replace("<|im_start|>", "").replace("<|im_end|>", "")
    assert first["choices"][0]["text"] == f"{shown} The firm was founded by Å"
    assert second["choices"][0]["text"] == "d"


CHOICE = {"index", "text", "logprobs", "finish_reason", "stop_reason", "token_ids", "prompt_token_ids"}
LOGPROBS = {"text_offset", "token_logprobs", "tokens", "top_logprobs"}
HEAD = {"id", "object", "created", "model", "choices"}


async def test_answers_have_the_fields_of_the_recorded_ones(server: FakeServer) -> None:
    """As vLLM 0.32 sent them: whole, in a stream, at its end, and as counts."""
    asked: dict[str, Any] = {"prompt": PROMPT, "temperature": 0, "logprobs": 1, "max_tokens": 2}
    whole = (await post(server, **asked, prompt_logprobs=1)).json()
    after = {
        "service_tier",
        "system_fingerprint",
        "usage",
        "kv_transfer_params",
        "ec_transfer_params",
        "metrics",
    }
    assert set(whole) == HEAD | after
    (choice,) = whole["choices"]
    assert set(choice) == CHOICE | {"prompt_logprobs", "routed_experts"}
    assert set(choice["logprobs"]) == LOGPROBS
    assert set(choice["prompt_logprobs"][1].popitem()[1]) == {"logprob", "rank", "decoded_token"}
    first, last, usage = await streamed(server, **asked, stream_options={"include_usage": True})
    assert set(first) == set(last) == HEAD
    assert set(first["choices"][0]) == CHOICE
    assert set(usage) == HEAD | {"usage", "system_fingerprint"}
    assert usage["choices"] == []
    *_, last = await streamed(server, **asked)
    assert set(last) == HEAD | {"system_fingerprint"}
    assert last["choices"][0]["finish_reason"] == "length"


async def test_stop_strings_and_end_tokens_are_written_as_vllm_writes_them(server: FakeServer) -> None:
    """A stop string holds text back unless it is to be shown; the end token has a name and no text."""
    asked: dict[str, Any] = {
        "prompt": PROMPT,
        "temperature": 0,
        "logprobs": 0,
        "max_tokens": 50,
        "stop": ["firm"],
    }
    hidden = [event["choices"][0] for event in await streamed(server, **asked)]
    assert [choice["text"] for choice in hidden] == [" ", "The "]
    assert [choice["logprobs"]["tokens"] for choice in hidden] == [[" The"], [" firm"]]
    shown = [
        event["choices"][0] for event in await streamed(server, **asked, include_stop_str_in_output=True)
    ]
    assert [choice["text"] for choice in shown] == [" The", " firm"]
    assert [choice["stop_reason"] for choice in shown] == [None, "firm"]
    ended = (
        await post(server, prompt=f"{PROMPT}{WHOLE} Else", max_tokens=5, temperature=0, logprobs=0)
    ).json()
    (choice,) = ended["choices"]
    assert (choice["text"], choice["finish_reason"], choice["stop_reason"]) == ("", "stop", None)
    assert choice["logprobs"]["tokens"] == ["<|im_end|>"]


def test_a_server_that_stops_leaves_no_connection_open_however_young() -> None:
    for _ in range(30):
        with FakeServer(lambda prompt: {"rationale": WHOLE, "answer": "A"}) as server, ExitStack() as clients:
            for _ in range(5):
                clients.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            server.stop()
            assert server.open_connections == 0
    gc.collect()
