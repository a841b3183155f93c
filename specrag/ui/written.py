"""An answer that a model wrote itself, token by token with its probability. Pure."""

from collections.abc import Iterator

from specrag.tracing.trace import Trace
from specrag.ui.markup import probability


def answer_tokens(trace: Trace) -> tuple[tuple[str, float], ...]:
    """The answer in pieces that join to it, each with its token's probability in [0, 1].

    Empty when the tokens are not those of the answer: a draft is the answer, or the written text was put
    aside. An answer may begin with a capital that its first token did not have.
    """
    text = trace.answer.text if trace.answer else ""
    written = "".join(token.text for token in trace.answer_tokens)
    if not text or len(written.strip()) != len(text) or written.strip().casefold() != text.casefold():
        return ()
    return tuple(_pieces(trace, text, skip=len(written) - len(written.lstrip())))


def _pieces(trace: Trace, text: str, *, skip: int) -> Iterator[tuple[str, float]]:
    at = -skip
    for token in trace.answer_tokens:
        start, at = max(at, 0), at + len(token.text)
        if piece := text[start : max(at, 0)]:
            yield piece, probability(token.logprob)
