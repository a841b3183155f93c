"""What servers answer, read strictly: from JSON to values, or a fault that says what is wrong. Pure.

Names follow vLLM's `/v1/completions`. Numbers of tokens that do not agree are a fault and never padded: a
server that puts a token of its own before the prompt would move every score by one place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from specrag.models.server.faults import Fault, of_status

Json: TypeAlias = Mapping[str, Any]
_ID = "token_id:"
_LEAST = -9999.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A model of a server."""

    name: str
    context: int | None
    """Tokens that it reads at most; None if the server does not tell."""
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token that was written. `id` is None where the server does not give it."""

    text: str
    logprob: float
    id: int | None = None
    ends: bool = False
    """It ends the model's turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a server says of one prompt that it read."""

    prompt: tuple[tuple[str, float] | None, ...] | None
    """Text and log-probability of every token, None for the first; None where the server gives none."""
    following: Mapping[int | str, float]
    """Log-probabilities of tokens that may follow, by id or, where the server gives none, by text."""


def models(answer: Any, url: str) -> list[Served]:
    """The models of `GET /v1/models`."""
    rows = _field(answer, "data", list, url)
    found = []
    for row in rows:
        context = row.get("max_model_len") if isinstance(row, Mapping) else None
        found.append(
            Served(
                name=_field(row, "id", str, url),
                context=context if isinstance(context, int) and context > 0 else None,
                owner=str(row.get("owned_by") or ""),
            )
        )
    return found


def chunk(event: Any, url: str) -> list[Token]:
    """The tokens of one event of a stream; none of one that only counts."""
    _no_error(event, url)
    choices = _field(event, "choices", list, url)
    return _tokens(choices[0], url) if choices else []


def _tokens(choice: Any, url: str) -> list[Token]:
    text = _field(choice, "text", str, url)
    if choice.get("finish_reason") in ("abort", "error"):
        raise Fault("dropped", url, "the server ended it")
    ids = choice.get("token_ids") or []
    if not isinstance(ids, list) or not all(isinstance(token, int) for token in ids):
        raise _wrong(url, "token ids that are numbers")
    logprobs = choice.get("logprobs")
    stopped = choice.get("finish_reason") == "stop" and "\n" not in text
    if logprobs is None:
        if text or ids:
            raise Fault("unable", url, "it returns no log-probabilities of the tokens that it writes")
        return [Token(text="", logprob=0.0, ends=True)] if stopped else []
    values = _field(logprobs, "token_logprobs", list, url)
    texts = _split(text, _field(logprobs, "tokens", list, url), len(values), url)
    if ids and len(ids) != len(values):
        raise _wrong(url, "as many log-probabilities as tokens")
    tokens = [
        Token(text=piece, logprob=_number(value, url), id=ids[place] if ids else None)
        for place, (piece, value) in enumerate(zip(texts, values, strict=True))
    ]
    if not stopped:
        return tokens
    if tokens and not tokens[-1].text:  # the end token itself, which has no text
        last = tokens.pop()
        return [*tokens, Token(text="", logprob=last.logprob, id=last.id, ends=True)]
    return [*tokens, Token(text="", logprob=0.0, ends=True)]


def _split(text: str, tokens: Sequence[Any], count: int, url: str) -> list[str]:
    """The text of an event by its tokens.

    A character that is not complete has no text yet, so the tokens' own texts may not add up; then the last
    one has it all.
    """
    if len(tokens) != count:
        raise _wrong(url, "as many log-probabilities as tokens")
    if count == 1:
        return [text]
    own = [str(token) for token in tokens]
    if "".join(own) == text:
        return own
    if own and "".join(own[:-1]) == text:  # an end token that is named but not shown
        return [*own[:-1], ""]
    return [""] * (count - 1) + [text] if count else []


def readings(
    answer: Any, prompts: Sequence[Sequence[int]], url: str, *, echoed: bool = False
) -> list[Reading]:
    """What `POST /v1/completions` says of prompts, in their order."""
    _no_error(answer, url)
    choices = _field(answer, "choices", list, url)
    if sorted(_field(choice, "index", int, url) for choice in choices) != list(range(len(prompts))):
        raise _wrong(url, f"one choice for each of {len(prompts)} prompts")
    by_index = {choice["index"]: choice for choice in choices}
    return [
        _echoed(by_index[place], len(prompt), url) if echoed else _reading(by_index[place], prompt, url)
        for place, prompt in enumerate(prompts)
    ]


def _reading(choice: Json, prompt: Sequence[int], url: str) -> Reading:
    listed = choice.get("prompt_logprobs")
    return Reading(
        prompt=None if listed is None else _prompt(listed, prompt, url),
        following=_following(choice.get("logprobs"), url),
    )


def _prompt(listed: Any, prompt: Sequence[int], url: str) -> tuple[tuple[str, float] | None, ...]:
    """Entries of `prompt_logprobs`, by the ids of the prompt's tokens; likelier ones may be beside."""
    if not isinstance(listed, list) or len(listed) != len(prompt):
        read = len(listed) if isinstance(listed, list) else "no"
        raise Fault("unable", url, f"it reads {read} tokens where {len(prompt)} were sent")
    found: list[tuple[str, float] | None] = [None]
    for token, entry in zip(prompt[1:], listed[1:], strict=True):
        own = entry.get(str(token)) if isinstance(entry, Mapping) else None
        if not isinstance(own, Mapping):
            raise _wrong(url, "a log-probability for every token of the prompt")
        found.append((str(own.get("decoded_token") or ""), _number(own.get("logprob"), url)))
    return tuple(found)


def _echoed(choice: Json, length: int, url: str) -> Reading:
    """The same from `echo`: the prompt's tokens stand before the one that was written."""
    logprobs = _field(choice, "logprobs", Mapping, url)
    values = _field(logprobs, "token_logprobs", list, url)
    texts = _field(logprobs, "tokens", list, url)
    if len(values) != length + 1 or len(texts) != length + 1:
        raise Fault("unable", url, f"it echoes {len(values) - 1} tokens where {length} were sent")
    prompt = [
        None if place == 0 else (str(text), _number(value, url))
        for place, (text, value) in enumerate(zip(texts[:-1], values[:-1], strict=True))
    ]
    return Reading(prompt=tuple(prompt), following=_following(logprobs, url))


def _following(logprobs: Any, url: str) -> dict[int | str, float]:
    """The likeliest tokens at the last position, and those that were asked for."""
    top = logprobs.get("top_logprobs") if isinstance(logprobs, Mapping) else None
    if not top or not isinstance(top, list) or not isinstance(top[-1], Mapping):
        return {}
    found: dict[int | str, float] = {}
    for name, value in top[-1].items():
        token = name.removeprefix(_ID)
        known = name.startswith(_ID) and token.isdigit()
        found[int(token) if known else name] = _number(value, url)
    return found


def _no_error(answer: Any, url: str) -> None:
    """An error within a stream is an event of vLLM's, and the status is then 200."""
    error = answer.get("error") if isinstance(answer, Mapping) else None
    if error is None:
        return
    code = error.get("code") if isinstance(error, Mapping) else None
    said = error.get("message") if isinstance(error, Mapping) else error
    raise of_status(url, code if isinstance(code, int) else 500, str(said))


def _field(of: Any, name: str, kind: type[Any], url: str) -> Any:
    found = of.get(name) if isinstance(of, Mapping) else None
    if found is None or not isinstance(found, kind):
        raise _wrong(url, f"“{name}”")
    return found


def _number(value: Any, url: str) -> float:
    """A log-probability, cut where vLLM cuts it, since JSON knows no infinity; NaN is none."""
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:  # noqa: PLR0124
        raise _wrong(url, "a number for every log-probability")
    return max(float(value), _LEAST)


def _wrong(url: str, what: str) -> Fault:
    return Fault("malformed", url, f"an answer without {what}")
