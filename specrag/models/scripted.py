"""A deterministic model for tests: it writes what a function tells it and scores what a function says.

Never a demonstration: nothing outside tests may build one. Its tokens are words with the space before them.
"""

import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

from specrag.models.base import (
    Begin,
    Conversation,
    End,
    Line,
    Output,
    Piece,
    Read,
    ScoredToken,
    ScoreRequest,
    TokenScores,
)
from specrag.types import ModelInfo, Part

Written = Mapping[Part, str]
_TOKEN = re.compile(r"\s*\S+|\s+$")


class ScriptedModel:
    """Writes `write(text of the conversation)` and judges with `judge(text)`, the probability of Yes.

    `write` may raise; that conversation then ends with an error, as a real model's would.
    """

    def __init__(
        self,
        write: Callable[[str], Written],
        *,
        judge: Callable[[str], float] = lambda text: 0.5,  # noqa: ARG005 - the default does not look
        logprob: float = -0.5,
        name: str = "scripted",
    ) -> None:
        self._write = write
        self._judge = judge
        self._logprob = logprob
        self.info = ModelInfo(name=name, parameters=0, device="none", dtype="none", context=1_000_000)
        self.closed = 0
        """Generations that were closed before their end."""

    async def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        """See `LanguageModel.generate`; the conversations take turns, token by token."""
        done = False
        try:
            texts = [_text(conversation) for conversation in conversations]
            for index, text in enumerate(texts):
                yield index, Begin(prompt=text, prompt_tokens=len(_TOKEN.findall(text)))
                yield index, Read()
            streams = [self._outputs(text, lines) for text in texts]
            for step in range(max(map(len, streams), default=0)):
                for index, outputs in enumerate(streams):
                    if step < len(outputs):
                        yield index, outputs[step]
            done = True
        finally:
            self.closed += not done

    async def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        """See `LanguageModel.score`."""
        return [self._scores(request) for request in requests]

    def _outputs(self, text: str, lines: Sequence[Line]) -> list[Output]:
        try:
            written = self._write(text)
        except Exception as error:  # noqa: BLE001 - the script decides what fails
            return [End(finish_reason="error", completion_tokens=0, error=str(error))]
        pieces: list[Output] = [
            Piece(part=line.part, text=token, logprob=self._logprob)
            for line in lines
            for token in _TOKEN.findall(written.get(line.part, ""))[: line.max_tokens]
        ]
        return [*pieces, End(finish_reason="stop", completion_tokens=len(pieces))]

    def _scores(self, request: ScoreRequest) -> TokenScores:
        segments = [segment for turn in request.conversation.turns for segment in turn.segments]
        spans = {
            segment.span: tuple(
                ScoredToken(text=token, logprob=self._logprob) for token in _TOKEN.findall(segment.text)
            )
            for segment in segments
            if segment.span is not None
        }
        text = _text(request.conversation)
        yes = self._judge(text)
        choice = {"yes": yes, "no": 1 - yes} if request.choice else {}
        tokens = len(_TOKEN.findall(text))
        return TokenScores(spans=spans, choice=choice, prompt_tokens=tokens, prompt=text)


def _text(conversation: Conversation) -> str:
    return "\n".join("".join(segment.text for segment in turn.segments) for turn in conversation.turns)
