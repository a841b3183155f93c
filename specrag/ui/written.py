"""An answer that a model writes itself: its text while it grows, and its tokens with their probability."""

import re
from typing import Final

from specrag.decide import begun
from specrag.tracing.trace import Trace
from specrag.ui.markup import probability
from specrag.ui.readout import is_synthesising

_DRAFTS_CITED: Final = re.compile(r"\s*\[[\d,; ]*(\]|$)")
"""A synthesised answer cites drafts by number while it is written; on the page such numbers are passages."""
_LEFT_OUT: Final = re.compile(r"[\s\[\]\d,;]*")


def answer_text(trace: Trace) -> str:
    """The answer as it is to be read now: a model goes on in mid-sentence, a reader begins here."""
    text = trace.answer.text if trace.answer else ""
    return begun(_DRAFTS_CITED.sub("", text) if is_synthesising(trace) else text)


def answer_tokens(trace: Trace) -> tuple[tuple[str, float], ...]:
    """The answer in pieces that join to it, each with its token's probability in [0, 1].

    The answer may lack what its tokens held around it (spaces, numbers of drafts) and begin with a capital.
    Empty when the tokens are not those of the answer: a draft is the answer, or the text was put aside.
    """
    text = trace.answer.text if trace.answer else ""
    pieces: list[tuple[str, float]] = []
    at, left = 0, ""
    for token in trace.answer_tokens:
        start = at
        for character in token.text:
            if at < len(text) and character.casefold() == text[at].casefold():
                at += 1
            else:
                left += character
        if at > start:
            pieces.append((text[start:at], probability(token.logprob)))
    whole = at == len(text) and _LEFT_OUT.fullmatch(left) is not None
    return tuple(pieces) if whole else ()
