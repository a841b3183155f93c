"""One draft that a server writes: the guided template over its stream, resumable at any token.

The server decodes one line at a time. Its end is told by the guide as in this process; the label of the next
line then joins the prompt, which the server's prefix cache has read already. What has been written is known
as token ids, so when a server breaks off, another one goes on from the very same place.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Protocol

from specrag.models.base import Line, Output, Read
from specrag.models.guide import Guide, label_after
from specrag.models.server.vocabulary import Vocabulary
from specrag.models.server.wire import Token


class Source(Protocol):
    """A server that writes after ids."""

    def stream(self, ids: Sequence[int], most: int, *, exact: bool) -> AsyncGenerator[Token]:
        """At least one token and at most `most`, until a newline or the end of the turn unless `exact`."""
        ...

    def likeliest(self, ids: Sequence[int]) -> AsyncGenerator[Token]:
        """Tokens that may follow, likeliest first."""
        ...


class Writing:
    """A draft on its way. `go_on` may be called again after a fault."""

    def __init__(self, ids: Sequence[int], lines: Sequence[Line], vocabulary: Vocabulary) -> None:
        self.guide = Guide(lines)
        self._vocabulary = vocabulary
        self._ids = list(ids)
        self._unnumbered = ""
        """Text of tokens whose ids the server does not give, behind `_ids`."""
        self._textless = 0
        """Tokens at the end of `_ids` that begin a character which is not complete."""
        self._again = 0
        """Of these, how many a server writes a second time, since it cannot go on within a character."""
        self._read = False

    async def go_on(self, source: Source) -> AsyncGenerator[Output]:
        """Write until all lines are done.

        Raises:
            Fault: the server breaks off; nothing that was yielded will come again.
        """
        if self._textless:
            del self._ids[-self._textless :]
            self._again, self._textless = self._textless, 0
        while not self.guide.done:
            most = self.guide.left + self._again
            exact = self.guide.line.exact
            async with aclosing(source.stream(await self._prompt(), most, exact=exact)) as tokens:
                async for output in self._line(tokens, source):
                    yield output

    async def _line(self, tokens: AsyncGenerator[Token], source: Source) -> AsyncGenerator[Output]:
        """Take tokens until the line is over, or another one than the server's was taken."""
        async for token in tokens:
            if not self._read:
                self._read = True
                yield Read()
            if self._again and token.id is not None and not token.text and not token.ends:
                self._again -= 1
                self._keep(token)
                continue
            self._again = 0
            taken = token
            if self.guide.hollow and self.guide.passes_over(token.text, ends=token.ends):
                taken = await self._that_goes_on(source, token)
            step = self.guide.take(taken.text, taken.logprob, ends=taken.ends)
            if step.piece is not None:
                self._keep(taken)
                yield step.piece
            if step.ending is not None:
                if not self.guide.done:
                    (label,) = await self._vocabulary.encode([label_after(step.ending, self.guide.line)])
                    self._ids = [*await self._prompt(), *label]
                    self._textless = 0
                return
            if taken is not token:
                return

    async def _that_goes_on(self, source: Source, token: Token) -> Token:
        """The likeliest token that the guide does not pass over, if there is one."""
        async with aclosing(source.likeliest(await self._prompt())) as others:
            async for other in others:
                if other.text and not self.guide.passes_over(other.text, ends=other.ends):
                    return other
        return token

    def _keep(self, token: Token) -> None:
        if token.id is None or self._unnumbered:
            self._unnumbered += token.text
            return
        self._ids.append(token.id)
        self._textless = 0 if token.text else self._textless + 1

    async def _prompt(self) -> list[int]:
        """The ids of everything so far."""
        if self._unnumbered:
            (ids,) = await self._vocabulary.encode([self._unnumbered])
            self._ids += ids
            self._unnumbered = ""
        return self._ids
