"""From a conversation to token ids, segment by segment.

The chat template is rendered once around placeholders; what it puts between them is the template's own text
and may hold special tokens. Every segment is tokenised by itself and can never become a special token, so a
document that contains `<|im_end|>` stays a document. Boundaries of spans follow from the construction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from specrag.models.base import Conversation, Turn

MARK = "\ue000specrag\ue001"
"""A placeholder from the private-use area, which no chat template contains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Token ids with the half-open ranges of their marked spans."""

    ids: tuple[int, ...]
    spans: dict[str, tuple[int, int]]


class Renderer:
    """Renders conversations for one tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        """Ids of plain text: nothing in it becomes a special token."""
        return list(self._tokenizer(text, add_special_tokens=False, split_special_tokens=True).input_ids)

    def render(self, conversation: Conversation) -> Rendered:
        """Token ids of the conversation, open at its end for the model to go on."""
        turns = conversation.turns
        template = [self._encode_template(piece) for piece in self._template_pieces(turns)]
        return assembled(template, turns, self.encode)

    def _template_pieces(self, turns: tuple[Turn, ...]) -> list[str]:
        """What the template writes before, between and after the turns' contents."""
        opened = turns[-1].role == "assistant"
        text: str = self._tokenizer.apply_chat_template(
            [{"role": turn.role, "content": MARK} for turn in turns],
            tokenize=False,
            add_generation_prompt=not opened,
        )
        pieces = text.split(MARK)
        assert len(pieces) == len(turns) + 1, "the chat template dropped or repeated a turn"
        if opened:
            pieces[-1] = ""  # leave out the end of the turn: the model goes on inside it
        return pieces

    def _encode_template(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False).input_ids) if text else []


def assembled(
    template: Sequence[Sequence[int]], turns: Sequence[Turn], encode: Callable[[str], Sequence[int]]
) -> Rendered:
    """The turns' segments between the template's pieces, of which there is one more than turns."""
    ids: list[int] = []
    spans: dict[str, tuple[int, int]] = {}
    for piece, turn in zip(template, turns, strict=False):
        ids += piece
        for segment in turn.segments:
            start = len(ids)
            ids += encode(segment.text)
            if segment.span is not None:
                spans[segment.span] = (start, len(ids))
    ids += template[-1]
    return Rendered(ids=tuple(ids), spans=spans)
