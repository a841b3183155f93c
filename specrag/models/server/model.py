"""A language model behind servers: the `LanguageModel` protocol over HTTP.

Every conversation of a call is a streaming request of its own, so that a server batches them as it likes and
one that fails goes on elsewhere; scoring is one request with all prompts, which read in one pass and decode
nothing but the token whose probabilities answer a choice.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from specrag.errors import ContextTooLong, ModelError
from specrag.models.base import (
    Begin,
    Conversation,
    End,
    Line,
    Output,
    ScoreRequest,
    TokenScores,
)
from specrag.models.server.access import Access
from specrag.models.server.asking import Asking, Server
from specrag.models.server.faults import Fault, raised
from specrag.models.server.scores import first_tokens, numbered, scores_of
from specrag.models.server.vocabulary import OwnVocabulary, ServedVocabulary, Vocabulary
from specrag.models.server.wire import Reading, Token
from specrag.models.server.writing import Writing
from specrag.types import ModelInfo

_LABEL_ROOM = 16
"""Tokens kept free for the label of a line."""


class ServerModel:
    """A model of vLLM or a server like it. Nothing is sent before `connect` or the first use."""

    def __init__(self, access: Access, *, tokenizer: Any = None) -> None:
        """`tokenizer` is one of transformers, of the very model; None asks the servers to tokenise."""
        self._access = access
        self._asking = Asking(access)
        self._own = None if tokenizer is None else OwnVocabulary(tokenizer)
        self._served: ServedVocabulary | None = None
        self._looked = 0
        name = access.model or "unknown"
        self._info = ModelInfo(name=name, parameters=0, device="server", dtype="", context=0)

    @property
    def info(self) -> ModelInfo:
        """What the servers said of themselves; of no server's address or key."""
        known = [one.abilities for one in self._asking.pool.endpoints if one.abilities is not None]
        if not known:  # all are away at this moment, or none was asked yet
            return self._info
        count = len(self._asking.pool.endpoints)
        engines = ", ".join(dict.fromkeys(one.engine for one in known))
        self._info = ModelInfo(
            name=known[0].model,
            parameters=0,
            device=engines if count == 1 else f"{engines} on {count} servers",
            dtype="",
            context=min(one.context for one in known),
            notes=tuple(dict.fromkeys(note for one in known for note in one.notes)),
        )
        return self._info

    @property
    def running(self) -> int:
        """Prompts that the servers work on for this process."""
        return self._asking.pool.running

    async def connect(self) -> ModelInfo:
        """Ask every server what it can do; one that answers is enough.

        Raises:
            ServerUnreachable: none answers now.
            ModelError: none can be used, or they serve different models.
        """
        faults = await self._asking.look_at_all()
        known = [one.abilities for one in self._asking.pool.endpoints if one.abilities is not None]
        if not known:
            # what needs a person comes before what may pass
            raise raised(min(faults, key=lambda fault: fault.passing), self._access)
        names = sorted({one.model for one in known})
        if len(names) > 1:
            raise ModelError(
                f"The servers of {self._access.setting}_URL serve different models ({', '.join(names)}); set "
                f"{self._access.setting} to the one that all of them serve."
            )
        self._asking.insist(names[0])
        return self.info

    def connect_now(self) -> ModelInfo:
        """`connect` for a caller that may be on an event loop's thread: waits on a thread of its own."""
        found: list[ModelInfo] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                found.append(asyncio.run(self.connect()))
            except BaseException as error:  # noqa: BLE001 - carried to the caller, where it is raised again
                failed.append(error)

        thread = threading.Thread(target=run, name="specrag-connect", daemon=True)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return found[0]

    async def aclose(self) -> None:
        """Close the connections of this loop."""
        await self._asking.aclose()

    def close(self) -> None:
        """Close all connections."""
        self._asking.close()

    async def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        """See `LanguageModel.generate`."""
        if conversations:
            await self._prefetch(conversations)
        queue: asyncio.Queue[tuple[int, Output] | BaseException] = asyncio.Queue()

        async def write(index: int, conversation: Conversation) -> None:
            try:
                async with aclosing(self._outputs(conversation, lines)) as outputs:
                    async for output in outputs:
                        queue.put_nowait((index, output))
            except Exception as error:  # noqa: BLE001 - carried to the reader, where it is raised again
                queue.put_nowait(error)

        tasks = [asyncio.create_task(write(*item)) for item in enumerate(conversations)]
        try:
            ended = 0
            while ended < len(tasks):
                item = await queue.get()
                if isinstance(item, BaseException):
                    raise item
                ended += isinstance(item[1], End)
                yield item
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        """See `LanguageModel.score`."""
        if not requests:
            return []
        try:
            return await self._score(requests)
        except Fault as fault:
            raise raised(fault, self._access) from fault

    # generation

    async def _outputs(self, conversation: Conversation, lines: Sequence[Line]) -> AsyncGenerator[Output]:
        """All outputs of one conversation, an `End` last, whatever happens."""
        writing: Writing | None = None
        try:
            vocabulary = await self._vocabulary()
            text, rendered = await vocabulary.render(conversation)
            yield Begin(prompt=text, prompt_tokens=len(rendered.ids))
            room = sum(line.max_tokens for line in lines) + _LABEL_ROOM * (len(lines) - 1)
            self._check(len(rendered.ids), room)
            writing = Writing(rendered.ids, lines, vocabulary)
            async with aclosing(self._written(writing, vocabulary)) as outputs:
                async for output in outputs:
                    yield output
        except Fault as fault:
            yield _broken(writing, str(raised(fault, self._access)))
        except ModelError as error:
            yield _broken(writing, str(error))
        else:
            yield writing.guide.end

    async def _written(self, writing: Writing, vocabulary: Vocabulary) -> AsyncGenerator[Output]:
        """Write on one server and, after a passing fault, go on on another one."""
        failed = None
        for last in (False, True):
            try:
                async with self._asking.server(avoid=failed) as server:
                    async with aclosing(writing.go_on(_Source(server, vocabulary))) as outputs:
                        async for output in outputs:
                            yield output
                    return
            except Fault as fault:
                if last or not self._asking.pool.worth_another(fault):
                    raise
                failed = self._asking.pool.at(fault.url)
                await self._asking.pool.pause(failed, fault)

    # scoring

    async def _score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        vocabulary = await self._vocabulary()
        await self._prefetch([request.conversation for request in requests])
        read = [await vocabulary.render(request.conversation) for request in requests]
        rendered = [item for _, item in read]
        self._check(max(len(item.ids) for item in rendered), 1)
        options = [await first_tokens(request.choice, vocabulary) for request in requests]
        wanted = sorted({token for option in options for tokens in option.values() for token in tokens})
        prompts = [item.ids for item in rendered]
        readings, notes = await self._asking.attempt(
            lambda server: _read(server, prompts, wanted), prompts=len(prompts)
        )
        if any(isinstance(token, str) for reading in readings for token in reading.following):
            texts = {token: await vocabulary.decode([token]) for token in wanted}
            readings = [numbered(reading, texts) for reading in readings]
        return [
            replace(scores_of(item, reading, option, notes), prompt=text)
            for (text, item), reading, option in zip(read, readings, options, strict=True)
        ]

    # plumbing

    async def _prefetch(self, conversations: Sequence[Conversation]) -> None:
        """Have the ids of what conversations share; what fails here fails again where it is told."""
        with suppress(Fault, ModelError):
            vocabulary = await self._vocabulary()
            if isinstance(vocabulary, ServedVocabulary):
                await vocabulary.prefetch(conversations)

    async def _vocabulary(self) -> Vocabulary:
        """How text becomes ids; the first time, what a server can do is found out as well."""
        if self.info.context and self._own is not None:
            return self._own
        if self._served is not None and self._looked == self._asking.looked:
            return self._served
        model = await self._asking.attempt(_model_of, prompts=0)
        # a server that was away may be another one, so what was remembered of its tokens is forgotten
        setting, self._looked = f"{self._access.setting}_TOKENIZER", self._asking.looked
        self._served = ServedVocabulary(self._asking.post, model=model, setting=setting)
        return self._own or self._served

    def _check(self, tokens: int, room: int) -> None:
        context = self.info.context
        if tokens + room > context:
            raise ContextTooLong(
                f"The prompt has {tokens} tokens and {self.info.name} reads at most {context} with its "
                "answer; lower SPECRAG_RETRIEVE, SPECRAG_PASSAGES_PER_DRAFT or SPECRAG_CHUNK_TOKENS."
            )


class _Source:
    """A server with the model's vocabulary."""

    def __init__(self, server: Server, vocabulary: Vocabulary) -> None:
        self._server = server
        self._vocabulary = vocabulary

    def stream(self, ids: Sequence[int], most: int, *, exact: bool) -> AsyncGenerator[Token]:
        return self._server.stream(ids, most, stop_ids=sorted(self._vocabulary.special), exact=exact)

    def likeliest(self, ids: Sequence[int]) -> AsyncGenerator[Token]:
        return self._server.likeliest(ids, self._vocabulary)


def _broken(writing: Writing | None, error: str) -> End:
    written = 0 if writing is None else writing.guide.written
    return End(finish_reason="error", completion_tokens=written, error=error)


async def _model_of(server: Server) -> str:
    return server.abilities.model


async def _read(
    server: Server, prompts: Sequence[Sequence[int]], wanted: Sequence[int]
) -> tuple[list[Reading], tuple[str, ...]]:
    """What a server reads, with what it cannot do: of a pool, another one may be able."""
    return await server.read(prompts, wanted), server.abilities.notes
