"""Asking the servers of one role: the right one, tried again elsewhere, and known before it is used."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from specrag.models.server import probe, wire
from specrag.models.server.access import Access
from specrag.models.server.faults import Fault
from specrag.models.server.http import Http
from specrag.models.server.pool import Endpoint, Pool
from specrag.models.server.probe import COMPLETIONS, LIKELIEST, Abilities, greedy
from specrag.models.server.vocabulary import Vocabulary, looks_special
from specrag.models.server.wire import Token

T = TypeVar("T")
_MANY_SPECIAL = 64
"""Ids that are sent to stop at; a vocabulary may have hundreds that no chat template uses."""


class Asking:
    """The servers of one role, as the rest of this folder sees them."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.pool = Pool(access.urls, pause_s=access.pause_s)
        self.looked = 0
        """How often a server was asked what it can do: again when it had been away, so it may be another."""
        self._http = Http(access)
        self._looking: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]]
        self._looking = WeakKeyDictionary()

    def insist(self, model: str) -> None:
        """From now on only servers of this model are asked."""
        self.access = replace(self.access, model=model, any_model=False)

    async def aclose(self) -> None:
        """Close the connections of this loop."""
        await self._http.aclose()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    async def look_at_all(self) -> list[Fault]:
        """Ask every server what it can do, at once; the faults of those that do not answer."""

        async def look(endpoint: Endpoint) -> Fault | None:
            try:
                with self.pool.lease(0, only=endpoint):
                    await self._able(endpoint, insist=False)
            except Fault as fault:
                return fault
            return None

        found = await asyncio.gather(*(look(endpoint) for endpoint in self.pool.endpoints))
        return [fault for fault in found if fault is not None]

    @asynccontextmanager
    async def server(self, prompts: int = 1, *, avoid: Endpoint | None = None) -> AsyncIterator["Server"]:
        """A server that can be asked now.

        Raises:
            Fault: there is none.
        """
        with self.pool.lease(prompts, avoid=avoid) as endpoint:
            yield Server(self._http, endpoint, await self._able(endpoint))

    async def attempt(self, ask: Callable[["Server"], Awaitable[T]], *, prompts: int = 1) -> T:
        """What one server answers, or another one after a fault.

        Raises:
            Fault: the second one failed as well, or trying again is of no use.
        """
        try:
            async with self.server(prompts) as server:
                return await ask(server)
        except Fault as fault:
            if not self.pool.worth_another(fault):
                raise
            failed = self.pool.at(fault.url)
            await self.pool.pause(failed, fault)
        async with self.server(prompts, avoid=failed) as server:
            return await ask(server)

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a body to any server; for what all of them answer alike."""
        return await self.attempt(lambda server: server.post(path, body), prompts=0)

    async def _able(self, endpoint: Endpoint, *, insist: bool = True) -> Abilities:
        """What the server can do, asked once however many wait for it."""
        if endpoint.abilities is not None:
            return endpoint.abilities
        failures = endpoint.failures
        locks = self._looking.setdefault(asyncio.get_running_loop(), {})
        async with locks.setdefault(endpoint.url, asyncio.Lock()):
            if endpoint.abilities is None:
                if endpoint.failures != failures and endpoint.fault is not None:
                    raise endpoint.fault  # whoever asked before got this, a moment ago
                found = await probe.look(self._http, self.access, endpoint.url)
                if insist:
                    self.insist(found.model)
                endpoint.abilities = found
                self.looked += 1
            return endpoint.abilities


class Server:
    """One server with what it can do."""

    def __init__(self, http: Http, endpoint: Endpoint, abilities: Abilities) -> None:
        self._http = http
        self.endpoint = endpoint
        self.abilities = abilities

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON that answers a body."""
        return await self._http.post(self.endpoint.url, path, body)

    async def read(self, prompts: Sequence[Sequence[int]], choice_ids: Sequence[int]) -> list[wire.Reading]:
        """Read prompts in one request, with the log-probabilities of `choice_ids` after each."""
        able, url = self.abilities, self.endpoint.url
        answer = await self.post(COMPLETIONS, able.scoring(prompts, choice_ids))
        readings = wire.readings(answer, prompts, url, echoed=able.prompt_scores == "echo")
        for reading in readings:
            if able.prompt_scores is not None and reading.prompt is None:
                raise Fault("unable", url, "it no longer gives the log-probabilities of prompts")
            if not reading.following or (able.chosen_ids and not reading.following.keys() >= set(choice_ids)):
                raise Fault("unable", url, "it no longer gives the log-probabilities that are asked for")
        return readings

    async def stream(
        self, ids: Sequence[int], most: int, *, stop_ids: Sequence[int] = (), exact: bool = False
    ) -> AsyncGenerator[Token]:
        """Tokens after `ids`, until a newline, the end of the turn or `most`; if `exact`, until `most` only.

        Raises:
            Fault: the stream breaks off, or holds no token.
        """
        body = {
            **greedy(self.abilities.model),
            "prompt": list(ids),
            "max_tokens": most,
            "logprobs": 1,
            "stream": True,
            "stop": ["\n"],
            "include_stop_str_in_output": True,
            "stop_token_ids": list(stop_ids)[:_MANY_SPECIAL],
            "return_token_ids": True,
            "return_tokens_as_token_ids": False,
        }
        if exact:
            body |= {"ignore_eos": True, "min_tokens": most, "stop": [], "stop_token_ids": []}
        url = self.endpoint.url
        written = 0
        async with aclosing(self._http.stream(url, COMPLETIONS, body)) as events:
            async for event in events:
                for token in wire.chunk(event, url):
                    written += 1
                    yield token
        if not written:
            raise Fault("malformed", url, "a stream without a token")
        if exact and written < most:  # asking on would time a second reading as writing
            raise Fault("unable", url, f"it ends after {written} tokens where {most} were asked for")

    async def likeliest(self, ids: Sequence[int], vocabulary: Vocabulary) -> AsyncGenerator[Token]:
        """The tokens that may follow `ids`, likeliest first."""
        body = {**greedy(self.abilities.model), "prompt": list(ids), "max_tokens": 1, "logprobs": LIKELIEST}
        answer = await self.post(COMPLETIONS, body)
        (reading,) = wire.readings(answer, [list(ids)], self.endpoint.url)
        ranked = sorted(reading.following.items(), key=lambda item: -item[1])
        for token, logprob in ranked:
            if isinstance(token, str):
                yield Token(text=token, logprob=logprob, ends=looks_special(token))
            else:
                yield await _numbered(token, logprob, vocabulary)


async def _numbered(token: int, logprob: float, vocabulary: Vocabulary) -> Token:
    text = await vocabulary.decode([token])
    ends = token in vocabulary.special or looks_special(text)
    return Token(text=text, logprob=logprob, id=token, ends=ends)
