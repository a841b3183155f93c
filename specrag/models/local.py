"""Language models in this process, through transformers. The only file that touches torch for text.

All conversations of one call decode in one batch. Their common prefix (instruction and question) is read
once, its keys and values are repeated for every row, and the rest of the prompts is read as one left-padded
batch whose holes are masked. A row that is done leaves the batch.

What it does not do: sampling (drafts are greedy), quantisation, batching across calls.
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
from specrag.models.render import Rendered, Renderer
from specrag.models.rows import Row
from specrag.models.worker import Cancelled, Worker
from specrag.types import ModelInfo

_CANDIDATES = 32
"""Likeliest tokens among which the first visible one of a line is looked for."""


class LocalModel:
    """A causal language model of transformers behind the `LanguageModel` protocol.

    Raises:
        ModelError: the folder does not hold a causal language model that transformers can load.
    """

    def __init__(self, source: Path, *, name: str, worker: Worker, threads: int) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging

        torch.set_num_threads(threads)
        # our own progress is shown where the person looks
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(source)
            self._model: Any = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(f"{name} cannot be loaded as a causal language model: {error}") from error
        if not self._tokenizer.chat_template:
            raise ModelError(f"{name} has no chat template; choose an instruction-tuned model.")
        self._model.train(mode=False)
        self._torch = torch
        self._worker = worker
        self._renderer = Renderer(self._tokenizer)
        self._cancel = threading.Event()
        self._hook_cancellation()
        self.forward_s = 0.0
        """Seconds spent in forward passes since the model was loaded; what remains of a run is ours."""
        self._info = ModelInfo(
            name=name,
            parameters=sum(parameter.numel() for parameter in self._model.parameters()),
            device=str(self._model.device),
            dtype="float32",
            context=int(getattr(self._model.config, "max_position_embeddings", 2048)),
        )

    @property
    def info(self) -> ModelInfo:
        """Name, size and place of the model."""
        return self._info

    def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        """See `LanguageModel.generate`."""

        def job(cancel: threading.Event, emit: Callable[[tuple[int, Output]], None]) -> None:
            with self._computing(cancel):
                self._generate(conversations, lines, emit)

        return self._worker.stream(job)

    async def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        """See `LanguageModel.score`."""

        def job(cancel: threading.Event) -> list[TokenScores]:
            with self._computing(cancel):
                return self._score(requests)

        return await self._worker.call(job)

    @contextmanager
    def _computing(self, cancel: threading.Event) -> Iterator[None]:
        """Inference under a job's cancel event; what torch raises becomes one sentence."""
        self._cancel = cancel
        try:
            with self._torch.inference_mode():
                yield
        except (RuntimeError, MemoryError, AssertionError) as error:
            raise ModelError(f"{self._info.name} failed while it computed: {error}") from error

    # generation

    def _generate(
        self,
        conversations: Sequence[Conversation],
        lines: Sequence[Line],
        emit: Callable[[tuple[int, Output]], None],
    ) -> None:
        room = sum(line.max_tokens for line in lines) + 16 * len(lines)
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
        logits, cache, mask, positions = self._prefill([row.ids for row in rows])
        for row in rows:
            emit((row.index, Read()))
        self._decode(rows, emit, logits=logits, cache=cache, mask=mask, positions=positions)

    def _prefill(self, prompts: list[tuple[int, ...]]) -> tuple[Any, Any, Any, Any]:
        """Read all prompts. Returns logits (m, V), the cache, mask (m, T) and next positions (m,)."""
        torch = self._torch
        from transformers import DynamicCache

        cache = DynamicCache(config=self._model.config)
        shared = _common_prefix(prompts) if len(prompts) > 1 else 0
        m = len(prompts)
        if shared:  # 1. the common prefix, once: (1, shared)
            self._forward(
                torch.tensor([prompts[0][:shared]]), cache, None, torch.arange(shared)[None], keep=1
            )
            cache.batch_repeat_interleave(m)
        # 2. the rest as one left-padded batch: (m, width)
        rest = [prompt[shared:] for prompt in prompts]
        width = max(len(ids) for ids in rest)
        tokens = torch.zeros((m, width), dtype=torch.long)
        mask = torch.ones((m, shared + width), dtype=torch.long)
        positions = torch.full((m, width), shared, dtype=torch.long)
        for row, ids in enumerate(rest):
            pad = width - len(ids)
            tokens[row, pad:] = torch.tensor(ids)
            mask[row, shared : shared + pad] = 0
            positions[row, pad:] = torch.arange(shared, shared + len(ids))
        logits = self._forward(tokens, cache, mask, positions, keep=1)[:, -1]
        return logits, cache, mask, positions[:, -1] + 1

    def _decode(
        self,
        rows: list[Row],
        emit: Callable[[tuple[int, Output]], None],
        *,
        logits: Any,
        cache: Any,
        mask: Any,
        positions: Any,
    ) -> None:
        torch = self._torch
        while True:
            logprobs = torch.log_softmax(logits.float(), dim=-1)  # (rows, V)
            top = logprobs.topk(_CANDIDATES, dim=-1)
            ids, values = top.indices.tolist(), top.values.tolist()  # (rows, candidates) each
            next_ids: list[int] = []
            alive: list[int] = []
            for place, row in enumerate(rows):
                token = row.advance(list(zip(ids[place], values[place], strict=True)), emit)
                if token is not None:
                    next_ids.append(token)
                    alive.append(place)
            if not alive:
                return
            if len(alive) < len(rows):  # rows that are done leave the batch
                keep = torch.tensor(alive)
                cache.batch_select_indices(keep)
                mask, positions = mask[keep], positions[keep]
                rows = [rows[place] for place in alive]
            mask = torch.cat([mask, mask.new_ones((len(rows), 1))], dim=1)
            logits = self._forward(torch.tensor(next_ids)[:, None], cache, mask, positions[:, None], keep=1)[
                :, -1
            ]
            positions = positions + 1

    # scoring

    def _score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        torch = self._torch
        rendered = [self._renderer.render(request.conversation) for request in requests]
        longest = max(len(item.ids) for item in rendered)
        if longest > self._info.context:
            raise ContextTooLong(self._too_long(longest))
        # 1. one right-padded batch; the padding comes after everything that is read: (m, longest)
        tokens = torch.zeros((len(rendered), longest), dtype=torch.long)
        mask = torch.zeros((len(rendered), longest), dtype=torch.long)
        for row, item in enumerate(rendered):
            tokens[row, : len(item.ids)] = torch.tensor(item.ids)
            mask[row, : len(item.ids)] = 1
        positions = torch.arange(longest)[None].expand(len(rendered), -1)
        # 2. the head only for columns that predict a marked token or a choice
        columns = sorted({column for item in rendered for column in _predicting_columns(item)})
        column_of = {column: place for place, column in enumerate(columns)}
        logits = self._forward(tokens, None, mask, positions, keep=torch.tensor(columns))
        # 3. read off the marked tokens, row by row
        return [
            self._read_off(item, request.choice, logits[row], column_of)
            for row, (item, request) in enumerate(zip(rendered, requests, strict=True))
        ]

    def _read_off(
        self, item: Rendered, choice: Choice | None, logits: Any, column_of: dict[int, int]
    ) -> TokenScores:
        torch = self._torch
        spans: dict[str, tuple[ScoredToken, ...]] = {}
        for name, (start, end) in item.spans.items():
            rows = [column_of[position - 1] for position in range(start, end)]
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
            probabilities = torch.softmax(logits[column_of[len(item.ids) - 1]].float(), dim=-1)
            for option, tokens in self._first_tokens(choice).items():
                chosen[option] = float(sum(float(probabilities[token]) for token in tokens))
        return TokenScores(spans=spans, choice=chosen, prompt_tokens=len(item.ids))

    def _first_tokens(self, choice: Choice) -> dict[str, set[int]]:
        """First tokens of each option's spellings, without those that begin several options."""
        first = {
            option: {self._renderer.encode(spelling)[0] for spelling in spellings}
            for option, spellings in choice.options.items()
        }
        counts = Counter(token for tokens in first.values() for token in tokens)
        return {option: {token for token in tokens if counts[token] == 1} for option, tokens in first.items()}

    # plumbing

    def _forward(self, tokens: Any, cache: Any, mask: Any, positions: Any, *, keep: Any) -> Any:
        device = self._model.device
        began = time.perf_counter()
        logits = self._model(
            input_ids=tokens.to(device),
            attention_mask=None if mask is None else mask.to(device),
            position_ids=positions.to(device),
            cache=cache,
            use_cache=cache is not None,
            logits_to_keep=keep,
        ).logits.cpu()
        self.forward_s += time.perf_counter() - began
        return logits

    def _hook_cancellation(self) -> None:
        """Look at the job's cancel event before every layer, so that Stop acts within one layer."""

        def check(*_: object) -> None:
            if self._cancel.is_set():
                raise Cancelled

        from torch.nn import ModuleList

        stacks = [module for module in self._model.modules() if isinstance(module, ModuleList)]
        for layer in max(stacks, key=len, default=[]):
            layer.register_forward_pre_hook(check)

    def _too_long(self, tokens: int) -> str:
        return (
            f"The prompt has {tokens} tokens and {self._info.name} reads at most {self._info.context} with "
            "its answer; lower SPECRAG_RETRIEVE, SPECRAG_PASSAGES_PER_DRAFT or SPECRAG_CHUNK_TOKENS."
        )


def _common_prefix(prompts: list[tuple[int, ...]]) -> int:
    """Length of the prefix that all prompts share, leaving every prompt at least one token of its own."""
    limit = min(len(prompt) for prompt in prompts) - 1
    for place in range(limit):
        if len({prompt[place] for prompt in prompts}) > 1:
            return place
    return limit


def _predicting_columns(item: Rendered) -> set[int]:
    """Columns whose logits predict a marked token, and the last one, which answers a choice."""
    marked = {position - 1 for start, end in item.spans.values() for position in range(start, end)}
    return marked | {len(item.ids) - 1}
