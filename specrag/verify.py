"""The verifier reads all drafts in one forward pass and decodes nothing (paper, section 3.3).

It sees question, answer, rationale and the reflection statement, and no passages. Self-containment is read
off the tokens of answer and rationale, self-reflection off the probabilities of Yes and No at the position
after the statement; both come from the same pass.
"""

from collections.abc import Sequence
from dataclasses import replace

from specrag.models.base import LanguageModel, ScoreRequest, TokenScores
from specrag.prompts import REFLECTION_CHOICE, verify_conversation
from specrag.scoring import self_containment, self_reflection
from specrag.types import Draft, Part, RoleUsage, TokenLogprob, Verdict


async def verify_drafts(
    model: LanguageModel, question: str, drafts: Sequence[Draft]
) -> tuple[tuple[Verdict, ...], RoleUsage]:
    """One verdict for every usable draft, in their order, and what the verifier read for it.

    Raises:
        ModelError: the verifier cannot score.
    """
    usable = [draft for draft in drafts if draft.usable]
    if not usable:
        return (), RoleUsage()
    requests = [
        ScoreRequest(
            conversation=verify_conversation(question, draft.rationale, draft.answer),
            choice=REFLECTION_CHOICE,
        )
        for draft in usable
    ]
    results = await model.score(requests)
    verdicts = tuple(_verdict(draft, scores) for draft, scores in zip(usable, results, strict=True))
    read = sum(scores.prompt_tokens for scores in results)
    return verdicts, RoleUsage(prompt_tokens=read, forward_passes=1)


def _verdict(draft: Draft, scores: TokenScores) -> Verdict:
    answer = _tokens(scores, "answer")
    rationale = _tokens(scores, "rationale")
    contained = [token.logprob for token in (*answer, *rationale)]
    return Verdict(
        subset_id=draft.subset_id,
        scores=replace(
            draft.scores,
            self_containment=self_containment(
                [token.logprob for token in answer], [token.logprob for token in rationale]
            ),
            self_reflection=self_reflection(scores.choice),
        ),
        log_sums=replace(
            draft.log_sums, self_containment=sum(contained), self_containment_tokens=len(contained)
        ),
        verifier_tokens=(*rationale, *answer),
    )


def _tokens(scores: TokenScores, part: Part) -> tuple[TokenLogprob, ...]:
    return tuple(
        TokenLogprob(text=token.text, logprob=token.logprob, part=part)
        for token in scores.spans.get(part, ())
    )
