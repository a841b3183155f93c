"""RAGAS' faithfulness through its package: the share of an answer's statements that the passages bear out.

The one file that knows the package. Its prompts and its arithmetic are used as they are; the model is asked
over our own connection, so that the key, the retries, the limits and the count of tokens are the judge's. The
package reports its use to its makers unless it is told not to, which happens here before it is loaded.
"""

import importlib.metadata
import json
import math
import os
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from specrag.errors import UsageError
from specrag.evaluation.judge.case import Case, Finding
from specrag.evaluation.judge.chat import Chat, Said
from specrag.evaluation.judge.replies import beginning, spoken, unfenced
from specrag.text import is_abstention

_MOST_TOKENS: Final = 4096
"""Every statement is repeated with a reason."""
_LONGEST: Final = 8_000
"""Characters of each text."""


class Unread(Exception):
    """A reply of the judge that is not what was asked for."""


class FaithfulnessExaminer:
    """Asks the judge whether the passages bear an answer out."""

    mark: Final = "faithfulness"
    of_failed: Final = None

    def __init__(self, chat: Chat) -> None:
        """Load the package, which takes seconds, so that one that is missing is told before hours of runs.

        Raises:
            UsageError: it is missing, or what it needs is.
        """
        self._chat = chat
        self._metric = _metric()

    @property
    def by(self) -> str:
        """With the version of the package, whose prompts are asked."""
        return f"faithfulness ragas {importlib.metadata.version('ragas')}"

    def unasked(self, case: Case) -> float | None:
        """Nothing: an answer that declines states nothing that could be borne out."""
        del case
        return None

    def asks(self, case: Case) -> str | None:
        """Question, answer and passages; None where one of them is missing, or the answer declines."""
        if not case.answer or not case.passages or is_abstention(case.answer):
            return None
        return json.dumps([case.question.asked, case.answer, case.passages])

    async def examine(self, case: Case) -> Finding:
        """The share of one answer."""
        model = _Model(self._chat)
        try:
            found = await self._metric(llm=model).ascore(
                user_input=_sent(case.question.asked),
                response=_sent(case.answer),
                retrieved_contexts=[_sent(passage) for passage in case.passages],
            )
        except Unread as error:
            return model.finding(None, reply=str(error))
        value = float(found.value)
        return model.finding(value if math.isfinite(value) else None)


class _Model:
    """The judge as the package asks it, for one case."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._replies: list[Said] = []

    async def agenerate(self, prompt: str, response_model: type[BaseModel]) -> BaseModel:
        """The reply to a prompt, as the value that the package wants."""
        reply = await self._chat.say([{"role": "user", "content": prompt}], most_tokens=_MOST_TOKENS)
        self._replies.append(reply)
        try:
            return response_model.model_validate_json(unfenced(spoken(reply.text)))
        except ValidationError as error:
            raise Unread(beginning(reply.text)) from error

    def finding(self, value: float | None, *, reply: str = "") -> Finding:
        """What the case came to, with what its replies cost."""
        return Finding(
            value=value,
            reply=reply,
            answered_as=next((said.model for said in self._replies if said.model), ""),
            prompt_tokens=_sum([said.prompt_tokens for said in self._replies]),
            completion_tokens=_sum([said.completion_tokens for said in self._replies]),
            temperature=self._chat.temperature,
        )


def _metric() -> Any:
    """The metric's class, which takes our model for one of the package's own."""
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    try:
        from ragas.llms.base import InstructorBaseRagasLLM
        from ragas.metrics.collections import Faithfulness
    except ImportError as error:
        raise UsageError(
            f"The package ragas cannot be loaded ({error}); install requirements-ragas.txt, or leave "
            "--ragas out."
        ) from error
    InstructorBaseRagasLLM.register(_Model)
    return Faithfulness


def _sent(text: str) -> str:
    """A text as it is shown: bounded, and without the lone surrogates that no request can hold."""
    return text[:_LONGEST].encode("utf-8", "replace").decode()


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
