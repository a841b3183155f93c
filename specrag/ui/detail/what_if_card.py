"""The run beside itself under other settings: the sentence, both rankings, and the way to ask again."""

import json
from dataclasses import dataclass

from specrag.errors import SpecragError
from specrag.tracing.trace import Trace
from specrag.ui.cards import empty_state, notice
from specrag.ui.detail.numbers import share
from specrag.ui.detail.score_card import LETTERS
from specrag.ui.detail.scores import Breakdown, standings
from specrag.ui.detail.what_if import WhatIf, Wish, can_ask, what_if
from specrag.ui.markup import render


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A draft in one of the two rankings."""

    place: int
    one: Breakdown
    moved: int
    """Places that it has gained; below 0 it has lost some."""


def what_if_card(trace: Trace, wish: Wish) -> str:
    """What these settings change; an impossible combination is one sentence."""
    if not can_ask(trace):
        return nothing_to_ask(trace)
    try:
        return _card(what_if(trace, wish))
    except SpecragError as error:
        return notice("error", str(error))


def nothing_to_ask(trace: Trace) -> str:
    """Why there is nothing to decide again."""
    text = (
        "Nothing was decided between drafts in this run, so other settings would change nothing."
        if trace.status == "done"
        else "This run ended before anything was decided, so there is nothing to decide again."
    )
    return f'<div class="sr-what-if-none">{empty_state("Nothing to decide again", text)}</div>'


def fork_value(trace: Trace, wish: Wish) -> str:
    """The settings as a fork takes them, as JSON that fits a message of `acts`.

    The number of drafts is told only where it was changed: a run may have fewer than it asked for.
    """
    told: dict[str, object] = {"weights": wish.weights, "threshold": wish.threshold, "pool": wish.pool}
    if wish.drafts != len(trace.drafts):
        told["drafts"] = wish.drafts
    return json.dumps(told, separators=(",", ":"))


def _card(found: WhatIf) -> str:
    before, after = standings(found.before), standings(found.after)
    places = {one.number: place for place, one in enumerate(before.ranking, 1)}
    new = [
        Row(place=place, one=one, moved=places.get(one.number, place) - place)
        for place, one in enumerate(after.ranking, 1)
    ]
    return render(
        "detail_what_if",
        found=found,
        columns=(
            (
                "As it was",
                [Row(place=place, one=one, moved=0) for place, one in enumerate(before.ranking, 1)],
            ),
            ("With these settings", new),
        ),
        share=share,
        letters=LETTERS,
        fork=fork_value(found.before, found.wish),
        run_id=found.before.run_id,
    )
