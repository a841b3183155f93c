"""What a run would have decided under other settings, and what of it is different, in one sentence.

The drafts and their scores are known, so this is arithmetic (`redecide`), and no model runs. The values may
be anything that a browser can send: what cannot be a setting comes back as a sentence.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

from specrag.config import PRESETS, ScoreWeights
from specrag.errors import UsageError
from specrag.redecide import decide_again
from specrag.text import normalise_answer
from specrag.tracing.trace import Trace
from specrag.types import PresetName
from specrag.ui.detail.terms import COMPONENTS, terms_of
from specrag.ui.lanes import draft_numbers
from specrag.ui.sentences import counted

MOST_WEIGHT: Final = 10.0
"""As in `ScoreWeights`."""
_LETTERS: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The settings to decide under."""

    weights: dict[str, float]
    threshold: float
    pool: bool
    drafts: int
    """So many of the run's drafts, the first ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """A run beside itself under other settings."""

    before: Trace
    after: Trace
    wish: Wish
    changed: tuple[str, ...]
    """What differs from the settings of the run, in words."""
    says: str


def can_ask(trace: Trace | None) -> bool:
    """Whether anything was decided between drafts, so that it can be decided otherwise."""
    decision = trace.decision if trace else None
    return trace is not None and bool(trace.drafts) and decision is not None and decision.kind != "direct"


def wish_of(trace: Trace) -> Wish:
    """The settings of the run itself.

    Raises:
        TraceError: the settings in the trace cannot be read.
    """
    terms = terms_of(trace)
    return Wish(
        weights=terms.weights, threshold=terms.threshold, pool=terms.pool, drafts=max(1, len(trace.drafts))
    )


def wished(
    weights: dict[str, object], threshold: object, pool: object, drafts: object, *, trace: Trace
) -> Wish:
    """The settings that a browser has sent.

    Raises:
        UsageError: one of them is no number, or out of range; or no weight is above 0.
    """
    checked = {
        name: _number(f"The weight of {COMPONENTS[name]}", weights.get(name), 0, MOST_WEIGHT)
        for name in COMPONENTS
    }
    if not any(checked.values()):
        raise UsageError("Every weight is 0, so no score counts; give at least one score a weight.")
    return Wish(
        weights=checked,
        threshold=_number("The threshold", threshold, 0, 1),
        pool=pool is True,
        drafts=int(_number("The number of drafts", drafts, 1, max(1, len(trace.drafts)))),
    )


def preset_wish(wish: Wish, name: PresetName) -> Wish:
    """The weights of a preset; the other settings stay."""
    return replace(wish, weights={key: float(PRESETS[name].get(key, 0.0)) for key in COMPONENTS})


def what_if(trace: Trace, wish: Wish) -> WhatIf:
    """Decide again, without a model.

    Raises:
        UsageError: the weights count only what this run did not find out.
        TraceError: the settings in the trace cannot be read.
    """
    own = wish_of(trace)
    changed = changes(own, wish)
    after = trace
    if changed:
        other = wish.weights != own.weights
        after = decide_again(
            trace,
            weights=ScoreWeights(**wish.weights) if other else None,
            threshold=wish.threshold,
            pool=wish.pool,
            drafts=wish.drafts,
        )
    return WhatIf(
        before=trace, after=after, wish=wish, changed=changed, says=_sentence(trace, after, changed)
    )


def changes(own: Wish, wish: Wish) -> tuple[str, ...]:
    """What a wish asks for that the run did not have."""
    found = [
        f"{COMPONENTS[name]} {weight:.4g}"
        for name, weight in wish.weights.items()
        if not math.isclose(weight, own.weights[name])
    ]
    if not math.isclose(wish.threshold, own.threshold, abs_tol=1e-9):
        found.append(f"a threshold of {wish.threshold:.2f}" if wish.threshold else "no threshold")
    if wish.pool != own.pool:
        found.append("pooling" if wish.pool else "no pooling")
    if wish.drafts != own.drafts:
        found.append(f"only the first {counted(wish.drafts, 'draft')}" if wish.drafts > 1 else "only draft 1")
    return tuple(found)


def _sentence(before: Trace, after: Trace, changed: tuple[str, ...]) -> str:
    if not changed:
        return "These are the settings of the run. Move one to see what it would have decided."
    old, new = _winner(before), _winner(after)
    head = f"With {_listed(changed)}"
    if new is not None:
        return _won(before, after, head, old=old, new=new)
    kind = after.decision.kind if after.decision else None
    if kind == _kind(before):
        return f"{head} the outcome stays: {_OUTCOMES.get(kind or '', 'nothing would have won')}."
    return f"{head} {_OUTCOMES.get(kind or '', 'nothing would have won')}."


_OUTCOMES: Final = {
    "fallback": "no draft would have been good enough, and the verifier would have answered afresh",
    "abstained": "every draft would have abstained, so there would be no answer",
    "synthesised": "the verifier would have written one answer from the drafts",
}


def _won(before: Trace, after: Trace, head: str, *, old: int | None, new: int) -> str:
    answer = _answer(after, new)
    synthesised = _kind(after) == "synthesised"
    if new == old and _kind(before) == _kind(after):
        return f"{head} the winner stays: draft {new}{_shares(before, after)}."
    if synthesised:
        lead = f"draft {new} would have led" if new != old else f"draft {new} would still lead"
        return f"{head} {lead} the drafts that the verifier writes from: “{answer}”."
    if old is None:
        instead = {
            "fallback": " and the verifier would not have answered afresh",
            "abstained": " instead of an abstention",
        }.get(_kind(before) or "", "")
        return f"{head} draft {new} would have won{instead}: “{answer}”."
    same = normalise_answer(_answer(before, old)) == normalise_answer(answer)
    what = ", with the same answer" if same else ""
    return f"{head} draft {new} would have won instead of draft {old}{what}: “{answer}”."


def _shares(before: Trace, after: Trace) -> str:
    """How the lead of the same winner changes."""
    old = before.decision.margin if before.decision else None
    new = after.decision.margin if after.decision else None
    if old is None or new is None:
        return ""
    if f"{old:.0%}" == f"{new:.0%}":
        return f", with the same lead of {100 * new:.0f} % of the mass"
    return f"; its lead goes from {100 * old:.0f} % to {100 * new:.0f} % of the mass"


def _winner(trace: Trace) -> int | None:
    """Number of the draft that leads, also where a text is written from it and others."""
    decision = trace.decision
    if decision is None or decision.kind not in ("selected", "synthesised") or decision.draft_index is None:
        return None
    if not 0 <= decision.draft_index < len(trace.drafts):
        return None
    return draft_numbers(trace)[trace.drafts[decision.draft_index].subset_id]


def _answer(trace: Trace, number: int) -> str:
    order = draft_numbers(trace)
    text = next((draft.answer for draft in trace.drafts if order[draft.subset_id] == number), "")
    short = " ".join(text.split())
    return short if len(short) <= _LETTERS else f"{short[:_LETTERS]}…"


def _kind(trace: Trace) -> str | None:
    return trace.decision.kind if trace.decision else None


def _listed(parts: tuple[str, ...]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _number(name: str, value: object, least: float, most: float) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    number = float(value) if known and isinstance(value, int | float) else math.nan
    if not least <= number <= most:
        raise UsageError(f"{name} lies between {least:g} and {most:g}.")
    return number
