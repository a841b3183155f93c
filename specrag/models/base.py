"""The seam between the algorithm and whatever runs a language model.

A conversation is made of segments, and each segment is tokenised by itself, so the boundaries of a marked
span are known by construction and never searched for in joined text. No text of a segment, a visitor's or a
document's, may turn into a special token: only the chat template puts those in.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from specrag.types import FinishReason, ModelInfo, Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of text; `span` marks its tokens for scoring."""

    text: str
    span: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Turns in order. If the last one is the assistant's it stays open: the model goes on writing it."""

    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a guided template: the model writes `part` until a newline, a limit or its own end."""

    part: Part
    max_tokens: int
    label: str = ""
    """Put before the line by the template, read by the model and never counted in a span."""
    sentences: int | None = None
    """The line also ends when the model has finished this many sentences."""
    not_first: frozenset[str] = frozenset()
    """Words, in lower case, that should not begin the line."""
    exact: bool = False
    """The line ends at `max_tokens` and nowhere else, whatever the model writes: for measurements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One decoded token. Texts of a part, joined, are the part."""

    part: Part
    text: str
    logprob: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """The prompt was tokenised and is being read."""

    prompt: str
    prompt_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The prompt was read; decoding begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The last thing of a prompt. `error` is a sentence when `finish_reason` is "error"."""

    finish_reason: FinishReason
    completion_tokens: int
    error: str | None = None


Output: TypeAlias = Begin | Read | Piece | End


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A question to the model at the end of the conversation: how likely is each option as the next token?"""

    name: str
    options: dict[str, tuple[str, ...]]
    """Option name to its spellings; each spelling counts by its first token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRequest:
    """A conversation whose marked spans are to be scored, and a choice after its end."""

    conversation: Conversation
    choice: Choice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredToken:
    """A token and the natural log of its probability given everything before it."""

    text: str
    logprob: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenScores:
    """Scores of one request."""

    spans: dict[str, tuple[ScoredToken, ...]]
    choice: dict[str, float]
    """Option to the summed probability of its spellings, before normalising over the options."""
    prompt_tokens: int
    prompt: str = ""
    """What was read, special tokens included; empty where a model does not tell."""
    notes: tuple[str, ...] = ()
    """What is not known, or not exactly, and why, one sentence each."""


@runtime_checkable
class LanguageModel(Protocol):
    """What a drafter or a verifier must be able to do."""

    @property
    def info(self) -> ModelInfo:
        """Name, size and place of the model."""
        ...

    def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        """Write `lines` greedily after every conversation at once.

        Yields `(index of the conversation, output)`: one `Begin`, one `Read`, pieces, one `End`. A
        conversation that fails ends with `End(finish_reason="error")` and does not disturb the others.
        Closing the iterator stops the work at the next decoding step.

        Raises:
            ModelError: nothing can be generated at all.
        """
        ...

    async def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        """Per-token log-probabilities of the marked spans, in one batched forward pass without decoding.

        Raises:
            ContextTooLong: a conversation is longer than the context.
            ModelError: the model cannot score.
        """
        ...
