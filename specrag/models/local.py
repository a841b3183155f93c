"""Language models in this process, through transformers: the `LanguageModel` protocol over an `Engine`.

All conversations of one call are read as one token tree and then decode in one batch; a row that is done
leaves it. Scoring is the same tree without decoding. Every forward pass is one step of a job, so that several
runs share the models (see `worker.py`).

What it does not do: sampling (drafts are greedy), batching across calls (an answer must not depend on who
else is asking).
"""

import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from specrag.errors import ContextTooLong, ModelError
from specrag.models.base import (
    Begin,
    Choice,
    Conversation,
    End,
    Line,
    Output,
    Read,
    ScoredToken,
    ScoreRequest,
    TokenScores,
)
from specrag.models.engine import Engine, EngineName
from specrag.models.loading import Loaded, load
from specrag.models.render import Rendered
from specrag.models.rows import Row
from specrag.models.worker import Cancelled, Steps, Worker
from specrag.types import ModelInfo, Precision

_CANDIDATES = 32
"""Likeliest tokens among which the first visible one of a line is looked for."""

Emit = Callable[[tuple[int, Output]], None]


class LocalModel:
    """A causal language model of transformers behind the `LanguageModel` protocol.

    Raises:
        ModelError: the folder does not hold a causal language model that transformers can load.
    """

    def __init__(
        self,
        source: Path | Callable[[], Loaded],
        *,
        name: str,
        worker: Worker,
        threads: int,
        precision: Precision = "float16",
        engine: EngineName | None = None,
    ) -> None:
        """`source` is a folder, or what makes a model without one, for measurements.

        `engine` is for measurements as well; None takes the token tree where a self-check allows it. Both it
        and `precision` are for a folder only.
        """
        self._worker = worker
        self._signal = _Signal()
        self.forward_s = 0.0
        """Seconds spent in forward passes since the model was loaded; what remains of a run is ours."""

        def loading() -> Loaded:
            import torch
            from transformers.utils import logging

            torch.set_num_threads(threads)
            # our own progress is shown where the person looks
            logging.disable_progress_bar()  # type: ignore[no-untyped-call]
            if callable(source):
                return source()
            return load(source, name=name, precision=precision, engine=engine)

        loaded = worker.run(loading)  # on the one thread that computes
        self._model, self._tokenizer, self._renderer = loaded.model, loaded.tokenizer, loaded.renderer
        self._engine, self._info = loaded.engine, loaded.info
        self._signal.watch(self._model)

    @property
    def info(self) -> ModelInfo:
        """Name, size and place of the model."""
        return self._info

    @property
    def engine(self) -> Engine:
        """How the model is run; chosen by a self-check when it was loaded."""
        return self._engine

    def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        """See `LanguageModel.generate`."""

        def job(cancel: threading.Event, emit: Emit) -> Steps:
            return self._stepwise(cancel, self._generate(conversations, lines, emit))

        return self._worker.stream(job)

    async def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        """See `LanguageModel.score`."""

        def job(cancel: threading.Event, emit: Callable[[list[TokenScores]], None]) -> Steps:
            return self._stepwise(cancel, self._score(requests, emit))

        return await self._worker.call(job)

    def _stepwise(self, cancel: threading.Event, steps: Steps) -> Steps:
        """Run every step under the job's cancel event; jobs take turns, so it is set anew each time."""
        while True:
            self._signal.event = cancel
            try:
                with self._computing():
                    next(steps)
            except StopIteration:
                return
            finally:
                self._signal.event = None
            yield

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Inference; what torch raises becomes one sentence."""
        try:
            import torch

            with torch.inference_mode():
                yield
        except (RuntimeError, MemoryError, AssertionError) as error:
            raise ModelError(f"{self._info.name} failed while it computed: {error}") from error

    # generation

    def _generate(self, conversations: Sequence[Conversation], lines: Sequence[Line], emit: Emit) -> Steps:
        labels = [self._renderer.encode(f"\n{line.label}") for line in lines[1:]]
        room = sum(line.max_tokens for line in lines) + sum(map(len, labels))
        rows: list[Row] = []
        for index, conversation in enumerate(conversations):
            ids = self._renderer.render(conversation).ids
            emit((index, Begin(prompt=self._tokenizer.decode(ids), prompt_tokens=len(ids))))
            if len(ids) + room > self._info.context:
                emit((index, End(finish_reason="error", completion_tokens=0, error=self._too_long(len(ids)))))
                continue
            rows.append(Row(index, ids, lines, tokenizer=self._tokenizer, encode=self._renderer.encode))
        if not rows:
            return
        with self._counted():
            logits, cache = self._engine.begin([row.ids for row in rows], room)
        for row in rows:
            emit((row.index, Read()))
        while True:
            yield
            fed, alive = self._advance(rows, logits, emit)
            if not alive:
                return
            if len(alive) < len(rows):  # rows that are done leave the batch
                cache.keep(alive)
                rows = [rows[place] for place in alive]
            with self._counted():
                logits = cache.step(fed)

    def _advance(self, rows: Sequence[Row], logits: Any, emit: Emit) -> tuple[list[int], list[int]]:
        """Let every row take its next token from logits (rows, V): what to feed, and which rows go on."""
        import torch

        top = torch.log_softmax(logits.float(), dim=-1).topk(_CANDIDATES, dim=-1)
        ids, values = top.indices.tolist(), top.values.tolist()  # (rows, candidates) each
        fed: list[int] = []
        alive: list[int] = []
        for place, row in enumerate(rows):
            token = row.advance(list(zip(ids[place], values[place], strict=True)), emit)
            if token is not None:
                fed.append(token)
                alive.append(place)
        return fed, alive

    # scoring

    def _score(self, requests: Sequence[ScoreRequest], emit: Callable[[list[TokenScores]], None]) -> Steps:
        rendered = [self._renderer.render(request.conversation) for request in requests]
        longest = max(len(item.ids) for item in rendered)
        if longest > self._info.context:
            raise ContextTooLong(self._too_long(longest))
        # the head only where a marked token or a choice is predicted
        wanted = [_predicting(item) for item in rendered]
        with self._counted():
            logits = self._engine.read([item.ids for item in rendered], wanted)
        emit(
            [
                self._read_off(item, request.choice, rows, dict(zip(places, range(len(places)), strict=True)))
                for item, request, rows, places in zip(rendered, requests, logits, wanted, strict=True)
            ]
        )
        yield from ()  # it ends with its one pass

    def _read_off(
        self, item: Rendered, choice: Choice | None, logits: Any, row_of: dict[int, int]
    ) -> TokenScores:
        """Scores of one request from its logits (wanted, V)."""
        import torch

        spans: dict[str, tuple[ScoredToken, ...]] = {}
        for name, (start, end) in item.spans.items():
            rows = [row_of[position - 1] for position in range(start, end)]
            logprobs = torch.log_softmax(logits[rows].float(), dim=-1)  # (tokens, V)
            ids = torch.tensor(item.ids[start:end], dtype=torch.long)
            values = logprobs.gather(1, ids[:, None])[:, 0].tolist() if rows else []
            texts = [self._tokenizer.decode([token]) for token in item.ids[start:end]]
            spans[name] = tuple(
                ScoredToken(text=text, logprob=min(value, 0.0))
                for text, value in zip(texts, values, strict=True)
            )
        chosen: dict[str, float] = {}
        if choice is not None:
            probabilities = torch.softmax(logits[row_of[len(item.ids) - 1]].float(), dim=-1)
            for option, tokens in self._first_tokens(choice).items():
                chosen[option] = float(sum(float(probabilities[token]) for token in tokens))
        prompt = self._tokenizer.decode(item.ids)
        return TokenScores(spans=spans, choice=chosen, prompt_tokens=len(item.ids), prompt=prompt)

    def _first_tokens(self, choice: Choice) -> dict[str, set[int]]:
        """First tokens of each option's spellings, without those that begin several options."""
        first = {
            option: {self._renderer.encode(spelling)[0] for spelling in spellings}
            for option, spellings in choice.options.items()
        }
        counts = Counter(token for tokens in first.values() for token in tokens)
        return {option: {token for token in tokens if counts[token] == 1} for option, tokens in first.items()}

    # plumbing

    @contextmanager
    def _counted(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.forward_s += time.perf_counter() - began

    def _too_long(self, tokens: int) -> str:
        return (
            f"The prompt has {tokens} tokens and {self._info.name} reads at most {self._info.context} with "
            "its answer; lower SPECRAG_RETRIEVE, SPECRAG_PASSAGES_PER_DRAFT or SPECRAG_CHUNK_TOKENS."
        )


class _Signal:
    """The cancel event of the job that computes, looked at before every layer: Stop acts within one."""

    def __init__(self) -> None:
        self.event: threading.Event | None = None

    def watch(self, model: Any) -> None:
        """The model holds this and not its owner, so that both can go when nobody needs them."""
        from torch.nn import ModuleList

        def check(*_: object) -> None:
            if self.event is not None and self.event.is_set():
                raise Cancelled

        stacks = [module for module in model.modules() if isinstance(module, ModuleList)]
        for layer in max(stacks, key=len, default=[]):
            layer.register_forward_pre_hook(check)


def _predicting(item: Rendered) -> list[int]:
    """Positions whose logits predict a marked token, and the last one, which answers a choice."""
    marked = {position - 1 for start, end in item.spans.values() for position in range(start, end)}
    return sorted(marked | {len(item.ids) - 1})
