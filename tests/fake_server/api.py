"""The routes: what vLLM answers to each, and where a fault takes its place."""

import asyncio
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from tests.fake_server.answers import Answers
from tests.fake_server.engine import Completion, Decoding, Refused, Step, error_body, read
from tests.fake_server.faults import SHAPES, Fault, Plan
from tests.fake_server.toy import Toy
from tests.fake_server.wire import Asked, Reply

COMPLETIONS: Final = "/v1/completions"
_HTML: Final = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"


class Gone(Exception):
    """The answer ends here, by a fault."""


@dataclass(slots=True, kw_only=True)
class Api:
    """Answers requests. Its settings may change between two of them."""

    toy: Toy
    model: str
    key: str | None
    context: int
    bos: bool
    pace_s: float
    """Seconds for a token; a real server needs them, and a test needs to be in the middle of a draft."""
    read_s: float
    """Seconds to read a prompt whose probabilities are asked for."""
    tokenise_s: float
    """Seconds to tokenise a text."""
    tokens_per_event: int
    keep_alive: bool
    """Whether comments come between the events, as proxies and newer servers send them."""
    plan: Plan = field(default_factory=Plan)
    running: int = 0
    """Prompts in work, as vLLM counts them."""
    handling: int = 0
    """Requests of any kind that are not answered yet."""
    most_running: int = 0
    sent: int = 0
    """Tokens sent in streams, by all requests together."""
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    async def handle(self, asked: Asked, reply: Reply) -> Fault | None:
        """Answer. A fault that the whole server must carry out is returned."""
        fault = self.plan.take(asked.path)
        self.handling += 1
        try:
            await self._before(fault, reply)
            if self._is_locked(asked):
                await reply.json(401, {"error": "Unauthorized"})
                return None
            await self._route(asked, reply, fault)
        except Refused as refusal:
            await reply.json(refusal.status, refusal.body)
        except ValidationError as error:
            found = "; ".join(f"{item['loc']}: {item['msg']}" for item in error.errors())
            body = error_body(f"{error.error_count()} validation error: {found}", 400, kind="Bad Request")
            await reply.json(400, body)
        except Gone:
            return fault
        finally:
            self.handling -= 1
        return None

    async def _before(self, fault: Fault | None, reply: Reply) -> None:
        """The faults that strike before a stream has sent anything."""
        if fault is None or fault.after_tokens:
            return
        match fault.kind:
            case "status":
                wait = [] if fault.retry_after is None else [("retry-after", fault.retry_after)]
                await reply.json(fault.status, error_body(fault.message, fault.status), wait)
                raise Gone
            case "html":
                await reply.whole(fault.status if fault.status != 500 else 200, _HTML, "text/html")
                raise Gone
            case "slow":
                await asyncio.sleep(fault.seconds)
            case _:
                await self._strike(fault, reply)

    async def _strike(self, fault: Fault, reply: Reply) -> None:
        """The faults that can also strike in the middle of a stream."""
        match fault.kind:
            case "crash" | "restart":
                raise Gone
            case "close":
                reply.abort()
                raise Gone
            case "hang":
                await asyncio.Event().wait()
            case "malformed":
                await self._malformed(reply, streaming=bool(fault.after_tokens))
                raise Gone
            case "truncated":
                if not fault.after_tokens:
                    await reply.begin_events()
                await reply.end()
                raise Gone
            case "stream_error":
                if not fault.after_tokens:
                    await reply.begin_events()
                await reply.event(error_body(fault.message, fault.status))
                await reply.event("[DONE]")
                await reply.end()
                raise Gone
            case _:
                pass

    async def _malformed(self, reply: Reply, *, streaming: bool) -> None:
        if not streaming:
            await reply.whole(200, b'{"id": "cmpl-1", "choices": [{"index"', "application/json")
            return
        await reply.event('{"id":"cmpl-1","choices":[{"index"')
        await reply.event("[DONE]")
        await reply.end()

    def _is_locked(self, asked: Asked) -> bool:
        given = asked.headers.get("authorization")
        return self.key is not None and asked.path.startswith("/v1") and given != f"Bearer {self.key}"

    async def _route(self, asked: Asked, reply: Reply, fault: Fault | None) -> None:
        match asked.method, asked.path:
            case "GET", "/health":
                await reply.whole(200, b"", "text/plain")
            case "GET", "/version":
                await reply.json(200, {"version": "0.32.0"})
            case "GET", "/metrics":
                gauge = (
                    f'vllm:num_requests_running{{engine="0",model_name="{self.model}"}} {self.running:.1f}'
                )
                await reply.whole(
                    200, f"# TYPE vllm:num_requests_running gauge\n{gauge}\n".encode(), "text/plain"
                )
            case "GET", "/v1/models":
                await reply.json(200, self._models())
            case "POST", "/tokenize":
                await asyncio.sleep(self.tokenise_s)
                await reply.json(200, self._tokenize(self._json(asked)))
            case "POST", "/detokenize":
                ids = self._named(self._json(asked)).get("tokens", [])
                await reply.json(200, {"prompt": self.toy.vocabulary.decode(ids)})
            case "POST", "/v1/completions":
                await self._complete(Completion.model_validate(self._named(self._json(asked))), reply, fault)
            case _:
                await reply.json(404, {"detail": "Not Found"})

    def _json(self, asked: Asked) -> dict[str, Any]:
        try:
            body: dict[str, Any] = json.loads(asked.body)
        except ValueError as error:
            raise Refused(f"1 validation error:\n  {{'type': 'json_invalid', 'msg': '{error}'}}") from error
        return body

    def _named(self, body: dict[str, Any]) -> dict[str, Any]:
        name = body.get("model")
        if name not in (None, self.model):
            text = f"The model `{name}` does not exist. Valid aliases: {self.model}."
            raise Refused(text, "model", status=404)
        return body

    def _models(self) -> dict[str, Any]:
        card = {
            "id": self.model,
            "object": "model",
            "created": 1_795_982_857,
            "owned_by": "vllm",
            "root": f"/models/{self.model}",
            "parent": None,
            "max_model_len": self.context,
            "permission": [],
        }
        return {"object": "list", "data": [card]}

    def _tokenize(self, body: dict[str, Any]) -> dict[str, Any]:
        self._named(body)
        vocabulary = self.toy.vocabulary
        if "messages" in body:
            generate = body.get("add_generation_prompt", True)
            open_end = body.get("continue_final_message", False)
            if generate and open_end:
                raise Refused("Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
            text = vocabulary.chat(body["messages"], generate=generate, open_end=open_end)
            special = body.get("add_special_tokens", False)
        else:
            text, special = body["prompt"], body.get("add_special_tokens", True)
        ids = [*([0] if special and self.bos else []), *vocabulary.encode(text)]
        names = [vocabulary.decode([id_]) for id_ in ids] if body.get("return_token_strs") else None
        return {"count": len(ids), "max_model_len": self.context, "tokens": ids, "token_strs": names}

    async def _complete(self, asked: Completion, reply: Reply, fault: Fault | None) -> None:
        asked.check()
        if fault is not None and fault.kind == "refuse_prompt_logprobs" and asked.read_logprobs is not None:
            raise Refused("This server does not compute prompt logprobs.", "prompt_logprobs")
        if fault is not None and fault.kind == "no_logprob_token_ids":
            asked.logprob_token_ids = None
        if fault is not None and fault.kind == "own_length":
            asked.ignore_eos, asked.min_tokens = False, 0
        prompts = asked.prompts(self.toy, context=self.context, bos=self.bos)
        answers = Answers(
            asked=asked,
            vocabulary=self.toy.vocabulary,
            model=self.model,
            id=f"cmpl-{next(self._numbers):016x}",
            kind=fault.kind if fault is not None and fault.kind in SHAPES else None,
        )
        self.running += len(prompts)
        self.most_running = max(self.most_running, self.running)
        try:
            decodings = [
                Decoding(
                    toy=self.toy, asked=asked, prompt=ids, room=min(asked.max_tokens, self.context - len(ids))
                )
                for ids in prompts
            ]
            if asked.stream:
                await self._stream(answers, decodings, reply, fault)
            else:
                await self._at_once(answers, decodings, reply, fault)
        finally:
            self.running -= len(prompts)

    async def _at_once(
        self, answers: Answers, decodings: Sequence[Decoding], reply: Reply, fault: Fault | None
    ) -> None:
        asked = answers.asked
        wanted = asked.read_logprobs
        if wanted is not None:
            await asyncio.sleep(self.read_s)
        values = [None if wanted is None else read(self.toy, one.prompt, wanted) for one in decodings]
        written = [list(one.steps()) if asked.writes else [] for one in decodings]
        await asyncio.sleep(self.pace_s * max(map(len, written)))
        if fault is not None and fault.after_tokens:
            await self._strike(fault, reply)
        await reply.json(200, answers.whole([one.prompt for one in decodings], values, written))

    async def _stream(
        self, answers: Answers, decodings: Sequence[Decoding], reply: Reply, fault: Fault | None
    ) -> None:
        await reply.begin_events()
        sending = _Sending(api=self, answers=answers, reply=reply, fault=fault)
        streams = {index: one.steps() for index, one in enumerate(decodings)}
        while streams:
            for index, steps in list(streams.items()):
                several = list(itertools.islice(steps, self.tokens_per_event))
                await sending.tokens(index, several, decodings[index].prompt)
                if several[-1].finish_reason is not None:
                    del streams[index]
        usage = answers.usage(sum(len(one.prompt) for one in decodings), sending.count)
        if usage is not None:
            await reply.event(usage)
        if fault is None or fault.kind != "no_done":
            await reply.event("[DONE]")
        await reply.end()


@dataclass(slots=True, kw_only=True)
class _Sending:
    """One stream on its way."""

    api: Api
    answers: Answers
    reply: Reply
    fault: Fault | None
    count: int = 0
    _offsets: dict[int, int] = field(default_factory=dict)

    async def tokens(self, index: int, steps: Sequence[Step], prompt: Sequence[int]) -> None:
        """Send one event, at the server's pace, unless the fault comes first."""
        fault = self.fault
        if fault is not None and fault.after_tokens and self.count >= fault.after_tokens:
            await self.api._strike(fault, self.reply)
        slow = fault.seconds if fault is not None and fault.kind == "slow" else 0.0
        await asyncio.sleep(self.api.pace_s * len(steps) + slow)
        first = index not in self._offsets
        offset = self._offsets.get(index, 0)
        if self.api.keep_alive:
            await self.reply.raw(b": keep-alive\n\n")
        await self.reply.event(
            self.answers.part(index, steps, prompt=prompt if first else None, offset=offset)
        )
        self._offsets[index] = offset + self.answers.width(steps)
        self.count += len(steps)
        self.api.sent += len(steps)
