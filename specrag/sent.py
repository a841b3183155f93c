"""What was sent to a model, for the trace: told when it has been read, with the tokens that this cost.

So the tokens of all prompts of a run, those of its drafts included, are the tokens that it has read. A text
of great length is kept by its ends: a stored run must not grow with the context of a server.
"""

from collections.abc import Iterator
from typing import Final

from specrag.events import Event, PromptSent, UsageCounted
from specrag.models.base import Begin, Conversation
from specrag.timeline import Timeline
from specrag.types import Prompt, Role

KEPT_CHARACTERS: Final = 20_000
"""Of one prompt; eight passages of the usual size have a quarter of that."""


def read_events(sent: Begin, timeline: Timeline, *, role: Role, step: str) -> Iterator[Event]:
    """A prompt that a model has read before it writes, and its cost."""
    prompt = prompt_of(sent.prompt, sent.prompt_tokens, role=role, step=step)
    yield PromptSent(at_ms=timeline.now(), prompt=prompt)
    yield UsageCounted(at_ms=timeline.now(), role=role, prompt_tokens=sent.prompt_tokens)


def prompt_of(text: str, tokens: int, *, role: Role, step: str, draft: str | None = None) -> Prompt:
    """The prompt as a trace keeps it; `step` is the name of its span."""
    return Prompt(role=role, step=step, text=shortened(text), tokens=tokens, draft=draft)


def shortened(text: str) -> str:
    """The text, or its two ends and how much is missing between them."""
    left_out = len(text) - KEPT_CHARACTERS
    if left_out <= 0:
        return text
    half = KEPT_CHARACTERS // 2
    return f"{text[:half]}\n[… {left_out:,} characters are not kept …]\n{text[-half:]}"


def plain(conversation: Conversation) -> str:
    """A conversation without the special tokens of any model."""
    return "\n".join("".join(segment.text for segment in turn.segments) for turn in conversation.turns)
