"""What can go wrong with a server, as values that a test hands to it while it runs."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal[
    "crash",  # aborts every connection and stops listening, until `start`
    "restart",  # the same, and listens again at once
    "close",  # aborts this connection
    "hang",  # says nothing more, until the client goes away
    "slow",  # waits `seconds` before each token, or before the answer
    "status",  # answers with `status` and vLLM's error body
    "html",  # a proxy's page instead of an answer
    "malformed",  # JSON that breaks off
    "truncated",  # the stream ends early, as if all were said
    "no_done",  # the stream ends without [DONE]
    "stream_error",  # vLLM's own error inside a stream
    "odd_shape",  # JSON, but not that of a completion
    "no_logprobs",
    "no_token_ids",
    "no_prompt_logprobs",
    "refuse_prompt_logprobs",
    "extra_prompt_logprob",  # as with a second BOS
    "no_logprob_token_ids",  # an older server, which ignores what it does not know
    "own_length",  # a server that knows neither `ignore_eos` nor `min_tokens`
]
SHAPES: Final[frozenset[Kind]] = frozenset(
    {
        "no_logprobs",
        "no_token_ids",
        "no_prompt_logprobs",
        "extra_prompt_logprob",
        "no_logprob_token_ids",
        "odd_shape",
    }
)
"""These change what an answer holds, and nothing about how it comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One way to fail, until `times` requests have met it."""

    kind: Kind
    on: str = "/v1/completions"
    """Path of the requests that meet it; empty for all."""
    after_tokens: int = 0
    """A stream sends so many tokens first."""
    skip: int = 0
    """So many requests pass unharmed before."""
    times: int | None = None
    """None goes on until the test takes the fault away."""
    status: int = 500
    retry_after: str | None = None
    """Value of the header of that name."""
    seconds: float = 0.0
    message: str = "Internal server error"


class Plan:
    """The fault that a server has at the moment, and how often it still strikes."""

    def __init__(self) -> None:
        self.fault: Fault | None = None
        self.struck = 0
        self._passed = 0

    def set(self, fault: Fault | None) -> None:
        """Replace the fault; counting begins anew."""
        self.fault, self.struck, self._passed = fault, 0, 0

    def take(self, path: str) -> Fault | None:
        """The fault that a request to `path` meets."""
        fault = self.fault
        if fault is None or fault.on not in ("", path):
            return None
        if self._passed < fault.skip:
            self._passed += 1
            return None
        if fault.times is not None and self.struck >= fault.times:
            return None
        self.struck += 1
        return fault
