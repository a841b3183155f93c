"""An answer that a model writes itself: its text while it grows, and its tokens with their probability."""

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from specrag.decide import begun
from specrag.tracing.trace import Trace
from specrag.types import Role, TokenLogprob
from specrag.ui.markup import known_probability
from specrag.ui.readout import is_synthesising, winning_draft, writer_of

_DRAFTS_CITED: Final = re.compile(r"\s*\[[\d,; ]*(\]|$)")
"""A synthesised answer cites drafts by number while it is written; on the page such numbers are passages."""
_LEFT_OUT: Final = re.compile(r"[\s\[\]\d,;]*")


def answer_text(trace: Trace) -> str:
    """The answer as it is to be read now: a model goes on in mid-sentence, a reader begins here."""
    text = trace.answer.text if trace.answer else ""
    return begun(_DRAFTS_CITED.sub("", text) if is_synthesising(trace) else text)


Token: TypeAlias = tuple[str, float | None]
"""A stretch of text with the probability of its token in [0, 1]; None where no value came."""


def answer_tokens(trace: Trace, role: Role | None = None) -> tuple[Token, ...]:
    """The answer in pieces that join to it, each with its token's probability to the model in this role.

    Without a role it is the model that wrote it. A draft that is the answer was written by the drafter and
    read by the verifier; any other answer is known to its writer alone. The answer may lack what its tokens
    held around it (spaces, numbers of drafts) and begin with a capital. Empty when the tokens are not those
    of the answer: the text was put aside, or that model said nothing of it.
    """
    draft = winning_draft(trace)
    if draft is not None:
        told = draft.verifier_tokens if role == "verifier" else draft.tokens
        return _matched(trace, [token for token in told if token.part == "answer"])
    return _matched(trace, trace.answer_tokens) if role in (None, writer_of(trace)) else ()


def _matched(trace: Trace, tokens: Sequence[TokenLogprob]) -> tuple[Token, ...]:
    text = trace.answer.text if trace.answer else ""
    pieces: list[Token] = []
    at, left = 0, ""
    for token in tokens:
        start = at
        for character in token.text:
            if at < len(text) and character.casefold() == text[at].casefold():
                at += 1
            else:
                left += character
        if at > start:
            pieces.append((text[start:at], known_probability(token.logprob)))
    whole = at == len(text) and _LEFT_OUT.fullmatch(left) is not None
    return tuple(pieces) if whole else ()
