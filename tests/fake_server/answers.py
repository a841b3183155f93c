"""vLLM's JSON, from decoded tokens. An older or a poorer server leaves things out, as the fault says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.fake_server.engine import Completion, Step
from tests.fake_server.faults import Kind
from tests.fake_server.toy import Vocabulary

_Named: TypeAlias = tuple[int, str, Mapping[int, float] | None]
"""A token, what it is called, and the log-probabilities at its place."""
_FINGERPRINT = "vllm-0.32.0-3cbd2672"
_CREATED = 1_795_982_857


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Writes the answers to one request."""

    asked: Completion
    vocabulary: Vocabulary
    model: str
    id: str
    kind: Kind | None = None
    """What this server leaves out or does wrongly."""

    def whole(
        self,
        prompts: Sequence[Sequence[int]],
        read: Sequence[Sequence[dict[int, float] | None] | None],
        written: Sequence[Sequence[Step]],
    ) -> dict[str, Any]:
        """The answer to a request that does not stream."""
        counts = sum(map(len, prompts)), sum(map(len, written))
        if self.kind == "odd_shape":
            return {"id": self.id, "object": "text_completion", "choices": [{"index": 0, "message": {}}]}
        return {
            **self._head(),
            "choices": [
                self._choice(index, *parts)
                for index, parts in enumerate(zip(prompts, read, written, strict=True))
            ],
            "service_tier": None,
            "system_fingerprint": _FINGERPRINT,
            "usage": _usage(*counts) | {"prompt_tokens_details": None, "completion_tokens_details": None},
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "metrics": None,
        }

    def part(
        self, index: int, steps: Sequence[Step], *, prompt: Sequence[int] | None, offset: int
    ) -> dict[str, Any]:
        """One event of a stream, for a token or for several at once; `prompt` only with the first."""
        if self.kind == "odd_shape":
            return {**self._head(), "choices": [{"index": index, "delta": {}}]}
        ids, last = self._ids(), steps[-1]
        choice = {
            "index": index,
            "text": "".join(step.text for step in steps),
            "logprobs": self._logprobs(
                [(step.token, self._name(step.token, step.name), step.ranked) for step in steps], offset
            ),
            "finish_reason": last.finish_reason,
            "stop_reason": last.stop_reason,
            "prompt_token_ids": list(prompt) if ids and prompt else None,
            "token_ids": [step.token for step in steps] if ids else None,
        }
        ended = {"system_fingerprint": _FINGERPRINT} if last.finish_reason and not self._usage_follows else {}
        return {**self._head(), "choices": [choice], **ended}

    def usage(self, prompt_tokens: int, written: int) -> dict[str, Any] | None:
        """The event after the last token, if it was asked for."""
        if not self._usage_follows:
            return None
        return {
            **self._head(),
            "choices": [],
            "usage": _usage(prompt_tokens, written),
            "system_fingerprint": _FINGERPRINT,
        }

    @property
    def _usage_follows(self) -> bool:
        return bool((self.asked.stream_options or {}).get("include_usage"))

    def _head(self) -> dict[str, Any]:
        return {"id": self.id, "object": "text_completion", "created": _CREATED, "model": self.model}

    def _choice(
        self,
        index: int,
        prompt: Sequence[int],
        read: Sequence[dict[int, float] | None] | None,
        written: Sequence[Step],
    ) -> dict[str, Any]:
        echo, decode = self.asked.echo, self.vocabulary.decode
        tokens: list[_Named] = [
            (step.token, self._name(step.token, step.name), step.ranked) for step in written
        ]
        text = "".join(step.text for step in written)
        if echo:
            values = zip(prompt, read or [None] * len(prompt), strict=True)
            tokens = [*((token, self._name(token), ranked) for token, ranked in values), *tokens]
            text = ("" if self.asked.return_token_ids else decode(prompt)) + text
        ids = self._ids()
        return {
            "index": index,
            "text": text,
            "logprobs": self._logprobs(tokens, 0),
            "finish_reason": written[-1].finish_reason if written else "length",
            "stop_reason": written[-1].stop_reason if written else None,
            "token_ids": [step.token for step in written] if ids else None,
            "prompt_logprobs": self._prompt_logprobs(read),
            "prompt_token_ids": list(prompt) if ids else None,
            "routed_experts": None,
        }

    def _ids(self) -> bool:
        return self.asked.return_token_ids and self.kind != "no_token_ids"

    def _logprobs(self, tokens: Sequence[_Named], offset: int) -> dict[str, Any] | None:
        if self.asked.logprobs is None or self.kind == "no_logprobs":
            return None
        offsets = [offset]
        for _, name, _ in tokens[:-1]:
            offsets.append(offsets[-1] + len(name))
        return {
            "text_offset": offsets,
            "token_logprobs": [None if ranked is None else ranked[token] for token, _, ranked in tokens],
            "tokens": [name for _, name, _ in tokens],
            "top_logprobs": [
                None
                if ranked is None
                else {self._name(id_, name if id_ == token else None): value for id_, value in ranked.items()}
                for token, name, ranked in tokens
            ],
        }

    def width(self, steps: Sequence[Step]) -> int:
        """Characters by which the offsets of a stream move on."""
        return sum(len(self._name(step.token, step.name)) for step in steps)

    def _name(self, token: int, own: str | None = None) -> str:
        if self.asked.return_tokens_as_token_ids and self.kind != "no_token_ids":
            return f"token_id:{token}"
        return self.vocabulary.decode([token]) if own is None else own

    def _prompt_logprobs(
        self, read: Sequence[dict[int, float] | None] | None
    ) -> list[dict[str, Any] | None] | None:
        if read is None or self.kind == "no_prompt_logprobs":
            return None
        values = [None if ranked is None else self._entry(ranked) for ranked in read]
        return [*values, values[-1]] if self.kind == "extra_prompt_logprob" else values

    def _entry(self, ranked: Mapping[int, float]) -> dict[str, Any]:
        return {
            str(id_): {
                "logprob": value,
                "rank": 1 + sum(other > value for other in ranked.values()),
                "decoded_token": self.vocabulary.decode([id_]),
            }
            for id_, value in ranked.items()
        }


def _usage(prompt_tokens: int, written: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + written,
        "completion_tokens": written,
    }
