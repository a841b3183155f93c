"""The verifier reads all drafts in one forward pass and decodes nothing (paper, section 3.3).

It sees question, answer, rationale and the reflection statement, and no passages. Self-containment is read
off the tokens of answer and rationale, self-reflection off the probabilities of Yes and No at the position
after the statement; both come from the same pass.

On request every draft is also read behind its passages, as the seeds do it; those branches join the same
pass, and groundedness is read off them. The paper (table 2) found it no better and slower, so it is off by
default.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from specrag.errors import ContextTooLong, ModelError
from specrag.models.base import LanguageModel, ScoreRequest, TokenScores
from specrag.prompts import REFLECTION_CHOICE, grounded_conversation, verify_conversation
from specrag.scoring import groundedness, self_containment, self_reflection
from specrag.sent import plain, prompt_of
from specrag.types import Draft, Part, Passage, Prompt, RoleUsage, TokenLogprob, Verdict

UNREADABLE = "The verifier cannot read this draft:"
"""How the error of a draft begins that is too long for the verifier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What the verifier said of the usable drafts, and what it could not read."""

    verdicts: tuple[Verdict, ...] = ()
    """In the order of the drafts; without the verifier's scores where it failed altogether."""
    usage: RoleUsage = field(default_factory=RoleUsage)
    prompts: tuple[Prompt, ...] = ()
    """What it read; their tokens add up to those of `usage`."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Subset ids of drafts that alone are too long for the verifier, with the sentence that says so."""
    note: str | None = None
    """A sentence for the reader of the decision, when something is not as it should be."""
    failed: bool = False
    """The verifier could read none of the drafts."""


async def verify_drafts(
    model: LanguageModel,
    question: str,
    drafts: Sequence[Draft],
    *,
    passages_of: Mapping[str, Sequence[Passage]] | None = None,
    instruction: str = "",
) -> Verification:
    """One verdict for every usable draft.

    `passages_of` gives each subset's passages as its draft read them, behind the drafter's `instruction` if
    that was not the usual one; without it nothing is grounded. A
    verifier that fails does not sink a run whose drafts are written: they are then not verified, or the one
    that is too long is left out, and the verification says so.
    """
    usable = [draft for draft in drafts if draft.usable]
    if not usable:
        return Verification()
    try:
        if passages_of is None:
            return await _in_one_pass(model, question, usable)
        return await _with_passages(model, question, usable, passages_of, instruction)
    except ContextTooLong:
        return await _one_by_one(model, question, usable)
    except ModelError as error:
        return _not_verified(usable, str(error))


async def _in_one_pass(model: LanguageModel, question: str, drafts: Sequence[Draft]) -> Verification:
    requests = [_request(question, draft) for draft in drafts]
    results = await _score(model, requests)
    verdicts = tuple(_verdict(draft, scores, None) for draft, scores in zip(drafts, results, strict=True))
    return Verification(
        verdicts=verdicts,
        usage=_usage(results),
        prompts=_prompts(drafts, requests, results),
        note=_notes(results),
    )


async def _with_passages(
    model: LanguageModel,
    question: str,
    drafts: Sequence[Draft],
    passages_of: Mapping[str, Sequence[Passage]],
    instruction: str,
) -> Verification:
    """The same pass with m more branches, each a draft behind its passages."""
    behind = [
        grounded_conversation(
            question, passages_of[draft.subset_id], draft.rationale, draft.answer, instruction
        )
        for draft in drafts
    ]
    requests = [_request(question, draft) for draft in drafts]
    requests += [ScoreRequest(conversation=conversation) for conversation in behind]
    try:
        results = await _score(model, requests)
    except ContextTooLong as error:
        verified = await _in_one_pass(model, question, drafts)
        note = f"Groundedness is not known, because a draft with its passages is too long: {error}"
        return replace(verified, note=" ".join([note, verified.note] if verified.note else [note]))
    half = len(drafts)
    verdicts = tuple(
        _verdict(draft, scores, grounded)
        for draft, scores, grounded in zip(drafts, results[:half], results[half:], strict=True)
    )
    return Verification(
        verdicts=verdicts,
        usage=_usage(results),
        prompts=_prompts([*drafts, *drafts], requests, results),
        note=_notes(results),
    )


async def _one_by_one(model: LanguageModel, question: str, drafts: Sequence[Draft]) -> Verification:
    """A draft is too long, and nobody knows which: a pass for each finds out."""
    verdicts: list[Verdict] = []
    results: list[TokenScores] = []
    prompts: tuple[Prompt, ...] = ()
    unread: dict[str, str] = {}
    for draft in drafts:
        request = _request(question, draft)
        try:
            (scores,) = await _score(model, [request])
        except ContextTooLong as error:
            unread[draft.subset_id] = f"{UNREADABLE} {error}"
            continue
        except ModelError as error:
            return _not_verified(drafts, str(error))
        results.append(scores)
        prompts += _prompts([draft], [request], [scores])
        verdicts.append(_verdict(draft, scores, None))
    if not verdicts:
        return _not_verified(drafts, next(iter(unread.values())))
    return Verification(
        verdicts=tuple(verdicts),
        usage=replace(_usage(results), forward_passes=len(results)),
        prompts=prompts,
        unread=unread,
        note=_notes(results),
    )


def _not_verified(drafts: Sequence[Draft], why: str) -> Verification:
    """Every draft keeps the scores that it has without the verifier, so that they stay comparable."""
    return Verification(
        verdicts=tuple(
            Verdict(subset_id=draft.subset_id, scores=draft.scores, log_sums=draft.log_sums)
            for draft in drafts
        ),
        note=f"The drafts are not verified, because the verifier could not read them: {why}",
        failed=True,
    )


def joined(parts: Sequence[Verification]) -> Verification:
    """Verifications of single drafts as one, in their order."""
    notes = dict.fromkeys(part.note for part in parts if part.note)
    return Verification(
        verdicts=tuple(verdict for part in parts for verdict in part.verdicts),
        usage=RoleUsage(
            prompt_tokens=sum(part.usage.prompt_tokens for part in parts),
            forward_passes=sum(part.usage.forward_passes for part in parts),
        ),
        prompts=tuple(prompt for part in parts for prompt in part.prompts),
        unread={subset_id: why for part in parts for subset_id, why in part.unread.items()},
        note=" ".join(notes) or None,
        failed=any(part.failed for part in parts),
    )


async def _score(model: LanguageModel, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
    results = await model.score(requests)
    if len(results) != len(requests):
        raise ModelError(f"{model.info.name} scored {len(results)} of {len(requests)} drafts.")
    return results


def _request(question: str, draft: Draft) -> ScoreRequest:
    return ScoreRequest(
        conversation=verify_conversation(question, draft.rationale, draft.answer), choice=REFLECTION_CHOICE
    )


def _prompts(
    drafts: Sequence[Draft], requests: Sequence[ScoreRequest], results: Sequence[TokenScores]
) -> tuple[Prompt, ...]:
    """What the verifier read of each draft: its branch of the token tree from the root on."""
    return tuple(
        prompt_of(
            scores.prompt or plain(request.conversation),
            scores.prompt_tokens,
            role="verifier",
            step="verify",
            draft=draft.subset_id,
        )
        for draft, request, scores in zip(drafts, requests, results, strict=True)
    )


def _notes(results: Sequence[TokenScores]) -> str | None:
    """What the verifier says is not known, once."""
    return " ".join(dict.fromkeys(note for scores in results for note in scores.notes)) or None


def _usage(results: Sequence[TokenScores]) -> RoleUsage:
    return RoleUsage(prompt_tokens=sum(scores.prompt_tokens for scores in results), forward_passes=1)


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
            self_containment=sum(answer) + sum(rationale) if answer or rationale else None,
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
