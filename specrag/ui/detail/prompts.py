"""Every prompt of a run as it was sent, by role, and whether the tokens add up to what was counted.

Special tokens are marked but plain text: nothing of a prompt can become markup or a control character here.
"""

import re
from dataclasses import dataclass
from typing import Final

from specrag.tracing.trace import Trace
from specrag.types import Role
from specrag.ui.cards import empty_state
from specrag.ui.lanes import draft_numbers
from specrag.ui.markup import render

_SPECIAL: Final = re.compile(
    r"(<\|[^|<>\s]{1,40}\|>|</?s>|\[/?INST\]|<</?SYS>>|<(?:bos|eos|pad|unk)>|<(?:start|end)_of_turn>)"
)
LETTERS: Final = 60_000
"""Of one prompt; what an imported trace may hold beyond that is not shown."""
_ROLES: Final[tuple[Role, ...]] = ("drafter", "verifier")
_STEPS: Final = {"rewrite": "rewriting the follow-up", "verify": "verifying", "decode": "drafting"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One prompt."""

    title: str
    number: int | None
    """Number of the draft that it is about."""
    tokens: int
    pieces: tuple[tuple[str, bool], ...]
    """The text; True marks special tokens."""
    cut: int
    """Letters that are not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The prompts of one role with their sum."""

    role: Role
    sent: tuple[Sent, ...]
    total: int
    counted: int
    """Tokens that the model says it has read."""
    written: int
    says: str
    """Whether the two agree, and if not, why."""


def prompts_list(trace: Trace) -> str:
    """What both models were sent, folded."""
    accounts = tuple(account for role in _ROLES if (account := account_of(trace, role)) is not None)
    if not any(account.sent for account in accounts):
        return empty_state("No prompts", "This run sent nothing to a model, or its prompts were left out.")
    return render("detail_prompts", accounts=accounts)


def account_of(trace: Trace, role: Role) -> Account | None:
    """The prompts of a role; None where it had nothing to do."""
    sent = (*(_drafts(trace) if role == "drafter" else ()), *_others(trace, role))
    usage = trace.usage.drafter if role == "drafter" else trace.usage.verifier
    if not sent and not usage.prompt_tokens:
        return None
    total = sum(one.tokens for one in sent)
    return Account(
        role=role,
        sent=sent,
        total=total,
        counted=usage.prompt_tokens,
        written=usage.completion_tokens,
        says=_compared(trace, role, total, usage.prompt_tokens),
    )


def pieces_of(text: str) -> tuple[tuple[str, bool], ...]:
    """The text in pieces; True marks special tokens."""
    return tuple((piece, bool(place % 2)) for place, piece in enumerate(_SPECIAL.split(text)) if piece)


def _drafts(trace: Trace) -> tuple[Sent, ...]:
    numbers = draft_numbers(trace)
    return tuple(
        _sent(
            f"Draft {numbers[draft.subset_id]}", numbers[draft.subset_id], draft.prompt_tokens, draft.prompt
        )
        for draft in trace.drafts
        if draft.prompt or draft.prompt_tokens
    )


def _others(trace: Trace, role: Role) -> tuple[Sent, ...]:
    numbers = draft_numbers(trace)
    found: list[Sent] = []
    for prompt in trace.prompts:
        if prompt.role != role:
            continue
        number = None if prompt.draft is None else numbers.get(prompt.draft)
        about = "" if number is None else f", draft {number}"
        step = _STEPS.get(prompt.step, prompt.step)
        title = f"{step[:1].upper()}{step[1:]}{about}"
        before = sum(one.title == title or one.title.startswith(f"{title} (") for one in found)
        found.append(
            _sent(f"{title} ({before + 1})" if before else title, number, prompt.tokens, prompt.text)
        )
    return tuple(found)


def _sent(title: str, number: int | None, tokens: int, text: str) -> Sent:
    return Sent(
        title=title,
        number=number,
        tokens=tokens,
        pieces=pieces_of(text[:LETTERS]),
        cut=max(0, len(text) - LETTERS),
    )


def _compared(trace: Trace, role: Role, total: int, counted: int) -> str:
    """Whether the prompts add up to what was counted, in a sentence."""
    if total == counted:
        return f"The prompts add up to the {counted:,} tokens that were counted."
    difference = f"The prompts add up to {total:,} tokens and {counted:,} were counted"
    if total < counted:
        why = (
            "a run of an older version kept the drafts' prompts only"
            if not any(prompt.role == role for prompt in trace.prompts)
            else "a prompt that is read again in a second pass is counted again"
        )
        return f"{difference}: {why}."
    if trace.status != "done":
        return f"{difference}: the run ended before they had all been read."
    shared = sum(prompt.role == role and prompt.draft is not None for prompt in trace.prompts) > 1
    if shared:
        return (
            f"{difference}: what is read of the drafts begins alike, and one pass reads that beginning once."
        )
    if any(span.attributes.get("given") is True for span in trace.spans):
        return f"{difference}: steps that were taken over from another run cost nothing here."
    return f"{difference}; the trace does not say why."
