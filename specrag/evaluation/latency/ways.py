"""The two ways that are compared, each run once and timed: the prompts, models and scoring of the pipelines.

Retrieval and partition are left out, because both ways need the first and the second takes milliseconds. What
is written has the asked number of tokens, whatever the model would say. A person sees the first token of
standard RAG when its prompt has been read, and the first token of a verified answer when the verdict is in:
until then there are drafts, and none of them is the answer.
"""

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from specrag.config import ScoreWeights
from specrag.decide import decide, with_verdicts
from specrag.errors import ModelError
from specrag.evaluation.latency.texts import Lengths, Work
from specrag.models.base import Begin, Conversation, End, LanguageModel, Line, Piece, Read
from specrag.prompts import ANSWER_LABEL, RATIONALE_LABEL, direct_conversation, draft_conversation
from specrag.scoring import draft_score
from specrag.timeline import Clock
from specrag.tracing.trace import Usage
from specrag.types import Draft, Role, RoleUsage, Scores
from specrag.verify import verify_drafts

Way: TypeAlias = Literal["standard", "speculative"]
PhaseName: TypeAlias = Literal["read", "write", "draft read", "draft write", "verify", "decide"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A stretch of a run; the next one begins where it ends."""

    name: PhaseName
    role: Role | None
    """None where no model works."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One way, once."""

    way: Way
    ttft_s: float
    """Until the first token of the answer can be shown."""
    total_s: float
    phases: tuple[Phase, ...]
    usage: Usage
    first_draft_s: float | None = None
    """Until the first token of a draft can be shown."""
    joules: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The models that are compared, with the clock that times both."""

    drafter: LanguageModel
    verifier: LanguageModel
    clock: Clock = time.perf_counter


async def run(way: Way, pair: Pair, work: Work, lengths: Lengths) -> Run:
    """Run one way once.

    Raises:
        ModelError: a model fails, or does not write what it was asked for.
    """
    going = standard if way == "standard" else speculative
    return await going(pair, work, lengths)


async def standard(pair: Pair, work: Work, lengths: Lengths) -> Run:
    """The verifier reads all passages at once and writes the answer."""
    marks = _Marks(pair.clock)
    lines = (Line(part="answer", max_tokens=lengths.tokens, label=ANSWER_LABEL, exact=True),)
    asked = [direct_conversation(work.question, work.passages)]
    written = await _written(pair.verifier, asked, lines, pair.clock)
    marks.mark("read", "verifier", written.read_at)
    marks.mark("write", "verifier", written.ended_at)
    return Run(
        way="standard",
        ttft_s=written.first_at - marks.began,
        total_s=marks.total,
        phases=tuple(marks.phases),
        usage=Usage(verifier=written.usage),
    )


async def speculative(pair: Pair, work: Work, lengths: Lengths) -> Run:
    """The drafter writes all drafts at once, the verifier reads them in one pass, one is decided on."""
    marks = _Marks(pair.clock)
    lines = (
        Line(part="rationale", max_tokens=lengths.rationale, label=RATIONALE_LABEL, exact=True),
        Line(part="answer", max_tokens=lengths.answer, label=ANSWER_LABEL, exact=True),
    )
    asked = [draft_conversation(work.question, passages) for passages in work.subsets]
    written = await _written(pair.drafter, asked, lines, pair.clock)
    marks.mark("draft read", "drafter", written.read_at)
    marks.mark("draft write", "drafter", written.ended_at)
    drafts = _drafts(work, written.pieces)
    verified = await verify_drafts(pair.verifier, work.question, drafts)
    if verified.failed or verified.unread:
        raise ModelError(verified.note or "The verifier cannot read drafts of this length.")
    marks.mark("verify", "verifier", pair.clock())
    # of random weights no draft is good, and a fallback is another way: the best one is the answer here
    decide(with_verdicts(drafts, verified.verdicts), weights=ScoreWeights(), threshold=0.0)
    marks.mark("decide", None, pair.clock())
    return Run(
        way="speculative",
        ttft_s=marks.total,
        total_s=marks.total,
        phases=tuple(marks.phases),
        usage=Usage(drafter=written.usage, verifier=verified.usage),
        first_draft_s=written.first_at - marks.began,
    )


class _Marks:
    """Phases that follow one another without a gap, so that they add up to the whole."""

    def __init__(self, clock: Clock) -> None:
        self.began = self._last = clock()
        self.phases: list[Phase] = []

    @property
    def total(self) -> float:
        """Seconds until the latest mark."""
        return self._last - self.began

    def mark(self, name: PhaseName, role: Role | None, at: float) -> None:
        """End a phase."""
        self.phases.append(Phase(name=name, role=role, seconds=at - self._last))
        self._last = at


@dataclass(slots=True, kw_only=True)
class _Written:
    pieces: list[list[Piece]]
    usage: RoleUsage
    read_at: float = 0.0
    first_at: float = 0.0
    ended_at: float = 0.0


async def _written(
    model: LanguageModel, asked: Sequence[Conversation], lines: Sequence[Line], clock: Clock
) -> _Written:
    """What a model writes after all conversations at once, and when."""
    out = _Written(pieces=[[] for _ in asked], usage=RoleUsage())
    wanted = sum(line.max_tokens for line in lines)
    outputs: AsyncGenerator[tuple[int, Begin | Read | Piece | End]] = model.generate(asked, lines)
    async with aclosing(outputs):
        async for index, output in outputs:
            match output:
                case Begin():
                    out.usage = _more(out.usage, read=output.prompt_tokens)
                case Read():
                    out.read_at = clock()
                case Piece():
                    out.first_at = out.first_at or clock()
                    out.pieces[index].append(output)
                case End():
                    _insist(model, output, wanted)
                    out.usage = _more(out.usage, written=output.completion_tokens)
    out.ended_at = clock()
    return out


def _more(usage: RoleUsage, *, read: int = 0, written: int = 0) -> RoleUsage:
    return replace(
        usage,
        prompt_tokens=usage.prompt_tokens + read,
        completion_tokens=usage.completion_tokens + written,
    )


def _insist(model: LanguageModel, end: End, wanted: int) -> None:
    """A run of another length is another measurement."""
    if end.error:
        raise ModelError(end.error)
    if end.completion_tokens != wanted:
        raise ModelError(
            f"{model.info.name} wrote {end.completion_tokens} tokens where {wanted} were asked for, so "
            "nothing can be compared; its server must follow ignore_eos and min_tokens, as vLLM does."
        )


def _drafts(work: Work, pieces: Sequence[Sequence[Piece]]) -> list[Draft]:
    """The drafts as they are verified: texts of the asked lengths, with the scores of what was written."""
    return [
        Draft(
            subset_id=f"s{place}",
            rationale=rationale,
            answer=answer,
            finish_reason="length",
            scores=Scores(draft=_score(pieces[place])),
        )
        for place, (rationale, answer) in enumerate(work.drafted)
    ]


def _score(pieces: Sequence[Piece]) -> float | None:
    return draft_score(
        [piece.logprob for piece in pieces if piece.part == "rationale"],
        [piece.logprob for piece in pieces if piece.part == "answer"],
    )
