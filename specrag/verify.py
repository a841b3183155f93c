"""The verifier reads all drafts in one forward pass and decodes nothing (paper, section 3.3).

It sees question, answer, rationale and the reflection statement, and no passages. Self-containment is read
off the tokens of answer and rationale, self-reflection off the probabilities of Yes and No at the position
after the statement; both come from the same pass.

On request every draft is also read behind its passages, as the seeds do it; those branches join the same
pass, and groundedness is read off them. The paper (table 2) found it no better and slower, so it is off by
default.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from specrag.models.base import LanguageModel, ScoreRequest, TokenScores
from specrag.prompts import REFLECTION_CHOICE, grounded_conversation, verify_conversation
from specrag.scoring import groundedness, self_containment, self_reflection
from specrag.types import Draft, Part, Passage, RoleUsage, TokenLogprob, Verdict


async def verify_drafts(
    model: LanguageModel,
    question: str,
    drafts: Sequence[Draft],
    *,
    passages_of: Mapping[str, Sequence[Passage]] | None = None,
) -> tuple[tuple[Verdict, ...], RoleUsage]:
    """One verdict for every usable draft, in their order, and what the verifier read for it.

    `passages_of` gives each subset's passages as its draft read them; without it nothing is grounded.

    Raises:
        ContextTooLong: a draft is longer than the verifier's context.
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
    if passages_of is not None:
        requests += [
            ScoreRequest(
                conversation=grounded_conversation(
                    question, passages_of[draft.subset_id], draft.rationale, draft.answer
                )
            )
            for draft in usable
        ]
    results = await model.score(requests)
    grounded = dict(zip((draft.subset_id for draft in usable), results[len(usable) :], strict=False))
    verdicts = tuple(
        _verdict(draft, scores, grounded.get(draft.subset_id))
        for draft, scores in zip(usable, results, strict=False)
    )
    read = sum(scores.prompt_tokens for scores in results)
    return verdicts, RoleUsage(prompt_tokens=read, forward_passes=1)


def _verdict(draft: Draft, scores: TokenScores, grounded: TokenScores | None) -> Verdict:
    answer = _logprobs(scores, "answer")
    rationale = _logprobs(scores, "rationale")
    return Verdict(
        subset_id=draft.subset_id,
        scores=replace(
            draft.scores,
            self_containment=self_containment(answer, rationale),
            self_reflection=self_reflection(scores.choice),
            grounded=None
            if grounded is None
            else groundedness(_logprobs(grounded, "answer"), _logprobs(grounded, "rationale")),
        ),
        log_sums=replace(
            draft.log_sums,
            self_containment=sum(answer) + sum(rationale),
            self_containment_tokens=len(answer) + len(rationale),
        ),
        verifier_tokens=(*_tokens(scores, "rationale"), *_tokens(scores, "answer")),
    )


def _logprobs(scores: TokenScores, part: Part) -> list[float]:
    return [token.logprob for token in scores.spans.get(part, ())]


def _tokens(scores: TokenScores, part: Part) -> tuple[TokenLogprob, ...]:
    return tuple(
        TokenLogprob(text=token.text, logprob=token.logprob, part=part)
        for token in scores.spans.get(part, ())
    )
