"""What a request asks for, and the tokens that answer it, one after another.

`Completion` refuses what vLLM 0.32 refuses, with its words; `Decoding` writes one sequence as vLLM does: text
comes out when its characters are whole, and is held back where a stop string might begin.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, Field, NonNegativeInt

from tests.fake_server.toy import END, SPECIALS, Toy

MAX_LOGPROBS = 20
_HALF = "\ufffd"
"""What half a character reads as."""


class Refused(Exception):
    """A request that gets an error instead of an answer."""

    def __init__(
        self, message: str, param: str | None = None, value: object = None, status: int = 400
    ) -> None:
        given = "" if value is None else f", value={value}"
        super().__init__(f"{message} (parameter={param}{given})" if param and status == 400 else message)
        self.param = param
        self.status = status

    @property
    def body(self) -> dict[str, Any]:
        """The JSON of the answer."""
        kind = "NotFoundError" if self.status == 404 else "BadRequestError"
        return error_body(str(self), self.status, kind=kind, param=self.param)


def error_body(message: str, status: int, *, kind: str = "", param: str | None = None) -> dict[str, Any]:
    """The JSON of every error of vLLM."""
    kind = kind or ("InternalServerError" if status >= 500 else "BadRequestError")
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}


class Completion(BaseModel):
    """The body of `/v1/completions`, as far as it is understood here; the rest is ignored, as vLLM does."""

    model: str | None = None
    prompt: list[NonNegativeInt] | list[list[NonNegativeInt]] | str | list[str]
    echo: bool = False
    logprobs: int | None = None
    max_tokens: int = 16
    stop: str | list[str] = Field(default_factory=list)
    stream: bool = False
    stream_options: dict[str, bool] | None = None
    temperature: float | None = None
    stop_token_ids: list[int] = Field(default_factory=list)
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    min_tokens: int = 0
    skip_special_tokens: bool = True
    allowed_token_ids: list[int] | None = None
    logit_bias: dict[int, float] = Field(default_factory=dict)
    prompt_logprobs: int | None = None
    logprob_token_ids: list[int] | None = None
    add_special_tokens: bool = True
    return_tokens_as_token_ids: bool = False
    return_token_ids: bool = False

    @property
    def stops(self) -> list[str]:
        """Stop strings."""
        return [self.stop] if isinstance(self.stop, str) else self.stop

    @property
    def read_logprobs(self) -> int | None:
        """How many log-probabilities are wanted of the prompt; `echo` wants them as well."""
        return self.logprobs if self.prompt_logprobs is None and self.echo else self.prompt_logprobs

    @property
    def writes(self) -> bool:
        """Whether anything is decoded."""
        return not (self.echo and self.max_tokens == 0)

    def check(self) -> None:
        """Refuse what vLLM refuses.

        Raises:
            Refused: with vLLM's sentence.
        """
        if self.stream and (self.prompt_logprobs or 0) > 0:
            raise Refused("`prompt_logprobs` are not available when `stream=True`.", "prompt_logprobs")
        if self.stream_options and not self.stream:
            raise Refused("Stream options can only be defined when `stream=True`.", "stream_options")
        if self.logprob_token_ids and self.logprobs is None:
            raise Refused("when using `logprob_token_ids`, `logprobs` must be set.", "logprob_token_ids")
        if self.max_tokens < 1 and self.writes:
            raise Refused(
                f"max_tokens must be at least 1, got {self.max_tokens}.", "max_tokens", self.max_tokens
            )
        for name, kind in (("logprobs", "sample"), ("prompt_logprobs", "prompt")):
            if (getattr(self, name) or 0) > MAX_LOGPROBS:
                raise Refused(
                    f"Requested {kind} logprobs of {getattr(self, name)}, which is greater than max allowed: "
                    f"{MAX_LOGPROBS}",
                    name,
                    getattr(self, name),
                )

    def prompts(self, toy: Toy, *, context: int, bos: bool) -> list[list[int]]:
        """Token ids of every prompt.

        Raises:
            Refused: an id is unknown, or a prompt is empty or too long.
        """
        given = self.prompt
        many = [given] if isinstance(given, str) or (given and isinstance(given[0], int)) else given
        prompts = [self._ids(toy, prompt, bos=bos) for prompt in many]  # type: ignore[arg-type]  # one of four
        if not prompts:
            raise Refused("You must pass at least one prompt")
        for ids in (*prompts, self.logprob_token_ids or []):
            _check_ids(ids, toy.vocabulary.size, asked=ids is self.logprob_token_ids)
        for ids in prompts:
            _check_length(ids, self, context)
        return prompts

    def _ids(self, toy: Toy, prompt: str | list[int], *, bos: bool) -> list[int]:
        if not isinstance(prompt, str):
            return prompt
        return [*([0] if bos and self.add_special_tokens else []), *toy.vocabulary.encode(prompt)]


def _check_ids(ids: Sequence[int], size: int, *, asked: bool) -> None:
    unknown = [id_ for id_ in ids if not 0 <= id_ < size]
    if unknown and asked:
        raise Refused(
            f"token_id(s) {unknown} in logprob_token_ids contain out-of-vocab token ids. "
            f"Vocabulary size: {size}",
            "logprob_token_ids",
            unknown,
        )
    if unknown:
        raise Refused(f"Token id {unknown[0]} is out of vocabulary")


def _check_length(ids: Sequence[int], asked: Completion, context: int) -> None:
    if not ids:
        raise Refused("The decoder prompt cannot be empty")
    if len(ids) > context:
        raise Refused(
            f"This model's maximum context length is {context} tokens. However, your prompt contains "
            f"{len(ids)} input tokens, which exceeds this limit even without any output tokens. Please "
            "reduce the length of the input prompt.",
            "input_tokens",
            len(ids),
        )
    if asked.max_tokens > context:
        raise Refused(
            f"max_tokens={asked.max_tokens} cannot be greater than max_model_len={context}. Please request "
            "fewer output tokens.",
            "max_tokens",
            asked.max_tokens,
        )
    if len(ids) == context and asked.writes:
        raise Refused("max_tokens must be at least 1, got 0.", "max_tokens", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One decoded token."""

    token: int
    text: str
    """What it adds to the text; empty while a character or a stop string may be incomplete."""
    name: str
    """The token's own text, empty for the beginning of a character, which its last token has whole."""
    ranked: dict[int, float]
    """The token first, then those that were asked for."""
    finish_reason: Literal["stop", "length"] | None = None
    stop_reason: int | str | None = None


@dataclass(slots=True, kw_only=True)
class Decoding:
    """One sequence while it is written."""

    toy: Toy
    asked: Completion
    prompt: Sequence[int]
    room: int
    """Tokens that may be written."""
    ids: list[int] = field(default_factory=list)
    told: int = 0
    """Characters that went out."""
    _stray: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Remember a prompt that ends within a character.

        vLLM 0.32 then loses its place: with the token that completes the character it sends the text of the
        whole prompt.
        """
        text = self.toy.vocabulary.decode(self.prompt)
        self._stray = list(self.prompt) if text.endswith(_HALF) else []

    def steps(self) -> Iterator[Step]:
        """Token by token to the end."""
        while True:
            step = self._step()
            yield step
            if step.finish_reason is not None:
                return

    def _step(self) -> Step:
        ranked = self.toy.ranked([*self.prompt, *self.ids])
        token = self._choose(ranked)
        self.ids.append(token)
        ends = token == END and not self.asked.ignore_eos
        stopped = token in self.asked.stop_token_ids
        matched = None if ends or stopped else self._stop_string()
        last = ends or stopped or matched is not None or len(self.ids) >= self.room
        return Step(
            token=token,
            name=self._name(),
            text=self._text(last=last, hidden=(ends or stopped), matched=matched),
            ranked=_shown(ranked, token, self.asked),
            finish_reason=("stop" if ends or stopped or matched else "length") if last else None,
            stop_reason=None if ends else token if stopped else matched,
        )

    def _choose(self, ranked: dict[int, float]) -> int:
        asked = self.asked
        early = len(self.ids) < asked.min_tokens
        banned = {id_ for id_, bias in asked.logit_bias.items() if bias <= -100}
        banned |= {END, *asked.stop_token_ids} if early else {END} if asked.ignore_eos else set()
        able = [id_ for id_ in ranked if id_ not in banned and id_ in (asked.allowed_token_ids or ranked)]
        greedy = asked.temperature == 0
        return able[0] if greedy else able[min(2, len(able) - 1)]  # a dice that always falls on the third

    def _name(self) -> str:
        whole, before = (self.toy.vocabulary.decode(ids).rstrip(_HALF) for ids in (self.ids, self.ids[:-1]))
        return whole.removeprefix(before)

    def _stop_string(self) -> str | None:
        written = self._readable(self.ids)
        return next((stop for stop in self.asked.stops if stop in written[self.told :]), None)

    def _text(self, *, last: bool, hidden: bool, matched: str | None) -> str:
        asked = self.asked
        shown = self.ids[:-1] if hidden and not asked.include_stop_str_in_output else self.ids
        written = self._readable(shown)
        until = len(written)
        if matched is not None:
            place = written.index(matched, self.told)
            until = place + (len(matched) if asked.include_stop_str_in_output else 0)
        else:
            if not last and not asked.include_stop_str_in_output:
                until -= max((len(stop) - 1 for stop in asked.stops), default=0)
            until = min(until, len(written.rstrip(_HALF)))
        until = max(until, self.told)
        text, self.told = written[self.told : until], until
        return text

    def _readable(self, ids: Sequence[int]) -> str:
        skipped = len(SPECIALS) if self.asked.skip_special_tokens else 0
        return self.toy.vocabulary.decode([id_ for id_ in [*self._stray, *ids] if id_ >= skipped])


def _shown(ranked: dict[int, float], token: int, asked: Completion) -> dict[int, float]:
    others = asked.logprob_token_ids or list(ranked)[: asked.logprobs or 0]
    return {token: ranked[token], **{id_: ranked[id_] for id_ in others}}


def read(toy: Toy, ids: Sequence[int], wanted: int) -> list[dict[int, float] | None]:
    """Log-probabilities of the prompt's tokens, with the `wanted` likeliest beside each."""
    values: list[dict[int, float] | None] = [None]
    for place in range(1, len(ids)):
        ranked = toy.ranked(ids[:place], wanted=() if wanted else ids[place : place + 1])
        values.append({ids[place]: ranked[ids[place]], **dict(list(ranked.items())[:wanted])})
    return values
