"""A conversation with the judge over `/v1/chat/completions`: asked again where that may help, read strictly.

Only what every OpenAI-compatible server knows is sent. Newer models of OpenAI refuse two of these options;
such a refusal is understood, and they are asked without them from then on.
"""

import asyncio
import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from specrag.models.server.access import Access
from specrag.models.server.faults import Fault, FaultKind, sentence
from specrag.models.server.http import Http
from specrag.text import printable

_PATH: Final = "chat/completions"
_MOST_BYTES: Final = 1_000_000
"""No judgement is longer; a server that sends more is cut off."""
_TRIES: Final = 5
_FEW_TRIES: Final[Mapping[FaultKind, int]] = {"malformed": 2, "silent": 2}
"""Of what costs minutes, or will hardly be better the next time."""
_LONGEST_PAUSE_S: Final = 60.0
_NAME_CHARACTERS: Final = 200
_OTHER: Final = "choose another with --judge and --judge-model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A reply."""

    text: str
    model: str = ""
    """What the server calls the model, often with its version; empty if it does not tell."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    temperature: float | None = None
    """What was asked for; None if the model refuses to be told one."""


class Chat:
    """The judge's servers, asked in turn."""

    def __init__(self, access: Access, *, pause_s: float = 1.0, longest_s: float = 300.0) -> None:
        """Nothing is connected yet.

        Args:
            access: addresses, model and key.
            pause_s: before the second try; doubled before each further one.
            longest_s: for one try, however the server spends them.
        """
        self.access = access
        self._http = Http(access, most_bytes=_MOST_BYTES)
        self._pause_s = pause_s
        self._longest_s = longest_s
        self._turns = itertools.count()
        self._limit = "max_tokens"
        self._options: dict[str, Any] = {"temperature": 0}

    @property
    def temperature(self) -> float | None:
        """What is asked for; None if the model refuses to be asked."""
        return self._options.get("temperature")

    async def say(self, messages: Sequence[Mapping[str, str]], *, most_tokens: int) -> Said:
        """The reply to messages, of so many tokens at most.

        Raises:
            Fault: there is none, after several tries.
        """
        turn, tried = next(self._turns), 0
        while True:
            url = self.access.urls[(turn + tried) % len(self.access.urls)]
            tried += 1
            body = {"model": self.access.model, "messages": list(messages), **self._options}
            body[self._limit] = most_tokens
            try:
                return await self._once(url, body)
            except Fault as fault:
                if self._adapted(fault, body):
                    continue
                if not fault.passing or tried >= _FEW_TRIES.get(fault.kind, _TRIES):
                    raise
                await asyncio.sleep(self._pause(tried, fault))

    def sentence(self, fault: Fault) -> str:
        """A fault for a person, with the remedies of a judge where they are others than a model's."""
        server = f"The judge's server {fault.url}"
        if fault.kind == "rejected":
            text = f"{server} refused the request ({fault.detail}); mend that, or {_OTHER}."
        elif fault.kind == "silent" and fault.detail == self._longest:
            text = f"{server} took longer than {fault.detail}; raise SPECRAG_DEADLINE_S, or {_OTHER}."
        else:
            return sentence(fault, self.access)
        return printable(self.masked(text))

    def masked(self, text: str) -> str:
        """Text without our own key, which a server may send in JSON's escapes, past the mask of `Http`."""
        return text.replace(self.access.key, "…") if self.access.key else text

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _once(self, url: str, body: Mapping[str, Any]) -> Said:
        try:
            async with asyncio.timeout(self._longest_s):
                reply = said(await self._http.post(url, _PATH, body), url)
        except TimeoutError as error:
            raise Fault("silent", url, self._longest) from error
        text, model = self.masked(reply.text), self.masked(reply.model)[:_NAME_CHARACTERS]
        return replace(reply, text=text, model=model, temperature=body.get("temperature"))

    @property
    def _longest(self) -> str:
        return f"{self._longest_s:g} s in all"

    def _adapted(self, fault: Fault, sent: Mapping[str, Any]) -> bool:
        """Whether the refusal was of an option that was sent, which is then not sent again.

        Others that were under way with it are refused too, and come here after it was taken back.
        """
        if fault.kind != "rejected":
            return False
        if "max_completion_tokens" in fault.detail and "max_tokens" in sent:
            self._limit = "max_completion_tokens"
            return True
        if "temperature" in fault.detail and "temperature" in sent:
            self._options.pop("temperature", None)
            return True
        return False

    def _pause(self, tried: int, fault: Fault) -> float:
        """Longer each time, and not the same for all that wait."""
        own: float = self._pause_s * 2.0 ** (tried - 1) * random.uniform(0.75, 1.25)  # noqa: S311 - no secret
        return min(max(fault.retry_after_s or 0.0, own), _LONGEST_PAUSE_S)


def said(answer: Any, url: str) -> Said:
    """The reply in an answer of a server.

    Raises:
        Fault: it is none.
    """
    choices = answer.get("choices") if isinstance(answer, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(message, Mapping):
        raise Fault("malformed", url, "an answer without a message")
    text, model, usage = message.get("content"), answer.get("model"), answer.get("usage")
    counts = usage if isinstance(usage, Mapping) else {}
    return Said(
        text=text if isinstance(text, str) else "",
        model=model if isinstance(model, str) else "",
        prompt_tokens=_count(counts.get("prompt_tokens")),
        completion_tokens=_count(counts.get("completion_tokens")),
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
