"""What-if says in one sentence what would have changed, and shows both rankings; nothing runs."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrag.errors import UsageError
from specrag.redecide import decide_again
from specrag.tracing.trace import Trace
from specrag.types import Scores
from specrag.ui.acts import parse
from specrag.ui.detail.terms import COMPONENTS
from specrag.ui.detail.what_if import Wish, can_ask, preset_wish, what_if, wish_of, wished
from specrag.ui.detail.what_if_card import fork_value, nothing_to_ask, what_if_card
from tests.detail_runs import run_of
from tests.test_detail_scores import FIRST, SECOND, draft, judged
from tests.ui_html import find, inside, read
from tests.ui_runs import RUNS
from tests.ui_traces import FAILED, FALLBACK, HOSTILE_TRACE

RELEVANT = Scores(draft=0.5, self_containment=0.4, self_reflection=0.4, relevance=0.95)
SURE = Scores(draft=0.6, self_containment=0.5, self_reflection=0.9, relevance=0.30)
TWO = judged(draft(1, "Seven nights", RELEVANT), draft(2, "Three nights", SURE))


def with_weights(trace: Trace, **weights: float) -> Wish:
    wish = wish_of(trace)
    return replace(wish, weights={**wish.weights, **weights})


def test_another_winner_is_named_with_its_answer() -> None:
    """0.5 * 0.4 * 0.4 * 0.95 = 0.076 against 0.6 * 0.5 * 0.9 * 0.3 = 0.081; at relevance 3 it is the other way."""
    assert what_if(TWO, with_weights(TWO, relevance=3)).says == (
        "With relevance 3 draft 1 would have won instead of draft 2: “Seven nights”."
    )


def test_a_winner_that_stays_is_said_to_stay_with_its_lead() -> None:
    """Without relevance 0.08 against 0.27: shares 0.23 and 0.77, so the lead is 54 % instead of 2 %."""
    says = what_if(TWO, with_weights(TWO, relevance=0)).says
    assert says == "With relevance 0 the winner stays: draft 2; its lead goes from 2 % to 54 % of the mass."


def test_the_settings_of_the_run_change_nothing() -> None:
    found = what_if(TWO, wish_of(TWO))
    assert found.after is TWO
    assert found.says.startswith("These are the settings of the run.")


def test_a_threshold_that_nobody_reaches_would_have_meant_a_fallback() -> None:
    says = what_if(TWO, replace(wish_of(TWO), threshold=0.9)).says
    assert says.startswith("With a threshold of 0.90 no draft would have been good enough")


def test_several_changes_stand_in_one_sentence() -> None:
    wish = replace(with_weights(TWO, relevance=3, draft=0), pool=False)
    assert what_if(TWO, wish).says.startswith(
        "With draft 0, relevance 3 and no pooling draft 1 would have won"
    )


def test_fewer_drafts_are_the_first_ones() -> None:
    three = judged(draft(1, "Seven", FIRST), draft(2, "Three", SECOND), draft(3, "three.", SECOND))
    says = what_if(three, replace(wish_of(three), drafts=2)).says
    assert says == "With only the first 2 drafts draft 1 would have won instead of draft 2: “Seven”."
    assert what_if(three, replace(wish_of(three), drafts=1)).says.startswith(
        "With only draft 1 draft 1 would"
    )


def test_a_fallback_that_would_not_have_been_needed_is_told() -> None:
    trace = replace(FALLBACK, config={"weights": wish_of(TWO).weights, "threshold": 0.9, "pool": True})
    says = what_if(trace, replace(wish_of(trace), threshold=0.0)).says
    assert "would have won and the verifier would not have answered afresh" in says
    assert says.startswith("With no threshold draft 2")


def test_another_draft_with_the_same_answer_is_said_to_give_the_same() -> None:
    same = judged(draft(1, "Three", RELEVANT), draft(2, "three.", SURE))
    says = what_if(same, with_weights(same, relevance=3)).says
    assert (
        says == "With relevance 3 draft 1 would have won instead of draft 2, with the same answer: “Three”."
    )


def test_a_synthesis_says_who_would_lead_it() -> None:
    trace = RUNS["synthesised"]
    wish = wish_of(trace)
    found = what_if(trace, replace(wish, weights={**wish.weights, "relevance": 0.0}))
    assert "would still lead the drafts that the verifier writes from" in found.says or "stays" in found.says


@given(
    st.fixed_dictionaries({name: st.sampled_from([0.0, 0.5, 1.0, 4.0]) for name in COMPONENTS}),
    st.sampled_from([0.0, 0.3, 0.6, 0.9]),
    st.booleans(),
    st.integers(1, 5),
)
@settings(max_examples=60, deadline=None)
def test_what_is_said_is_what_deciding_again_gives(
    weights: dict[str, float], threshold: float, pool: bool, drafts: int
) -> None:
    """The sentence is made from two traces; it must never name a winner that deciding does not give."""
    trace = run_of(drafts=5, words=6)
    if not any(weights[name] for name in COMPONENTS if name != "grounded"):
        return
    wish = wished(dict(weights), threshold, pool, drafts, trace=trace)
    found = what_if(trace, wish)
    assert found.after.decision is not None
    index = found.after.decision.draft_index
    if index is None:
        assert "no draft would" in found.says or "would have abstained" in found.says
    elif found.changed:
        assert f"draft {index + 1}" in found.says
    assert decide_again(found.after) == found.after


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("threshold", 1.5, "The threshold lies between 0 and 1."),
        ("threshold", "0.5", "The threshold lies between 0 and 1."),
        ("threshold", float("nan"), "The threshold lies between 0 and 1."),
        ("drafts", 0, "The number of drafts lies between 1 and 2."),
        ("drafts", 10**9, "The number of drafts lies between 1 and 2."),
        ("drafts", None, "The number of drafts lies between 1 and 2."),
    ],
)
def test_what_cannot_be_a_setting_is_one_sentence(name: str, value: object, sentence: str) -> None:
    given: dict[str, object] = {"threshold": 0.0, "drafts": 2, name: value}
    with pytest.raises(UsageError) as refused:
        wished(dict(wish_of(TWO).weights), given["threshold"], True, given["drafts"], trace=TWO)
    assert str(refused.value) == sentence


@pytest.mark.parametrize("value", [-1, 11, "1", None, True, float("inf")])
def test_a_weight_that_is_none_is_refused_by_name(value: object) -> None:
    with pytest.raises(UsageError, match=r"^The weight of relevance lies between 0 and 10\.$"):
        wished({**wish_of(TWO).weights, "relevance": value}, 0, True, 2, trace=TWO)


def test_weights_that_count_nothing_are_one_sentence() -> None:
    with pytest.raises(UsageError, match="Every weight is 0"):
        wished(dict.fromkeys(COMPONENTS, 0), 0, True, 2, trace=TWO)
    alone = {**dict.fromkeys(COMPONENTS, 0.0), "grounded": 1.0}
    html = what_if_card(TWO, replace(wish_of(TWO), weights=alone))
    (notice,) = find(html, "sr-notice")
    assert "count only groundedness, which this run did not find out" in notice.text


def test_presets_move_the_weights_only() -> None:
    wish = replace(wish_of(TWO), threshold=0.4, pool=False)
    paper = preset_wish(wish, "paper")
    assert paper.weights == {
        "draft": 1, "self_containment": 1, "self_reflection": 1, "grounded": 0, "relevance": 0
    }  # fmt: skip
    assert (paper.threshold, paper.pool) == (0.4, False)
    assert preset_wish(wish, "default").weights["relevance"] == 4


def test_both_rankings_stand_side_by_side_with_their_winners() -> None:
    html = what_if_card(TWO, with_weights(TWO, relevance=3))
    old, new = find(html, "sr-rank")
    assert [row.text[:9] for row in inside(html, old, "sr-rank-row")] == ["1 draft 2", "2 draft 1"]
    assert [row.text[:9] for row in inside(html, new, "sr-rank-row")] == ["1 draft 1", "2 draft 2"]
    winners = [row for row in find(html, "sr-rank-row") if "sr-detail-won" in row.classes]
    assert [winner.text[:16] for winner in winners] == ["1 draft 2 winner", "1 draft 1 winner"]
    assert "up 1" in winners[1].text
    widths = [one.attributes["style"] for one in read(html) if one.tag == "i"]
    assert widths[0] == f"width:{100 * 0.081**0.25:.2f}%"


def test_asking_again_carries_the_settings_in_one_message() -> None:
    """The channel takes 200 letters at most; weights with decimals must fit."""
    odd = dict.fromkeys(COMPONENTS, 9.75)
    wish = Wish(weights=odd, threshold=0.99, pool=False, drafts=1)
    (button,) = [
        one
        for one in find(what_if_card(TWO, wish), "button")
        if one.attributes["data-sr-action"] == "run-fork"
    ]
    assert button.attributes["data-sr-id"] == TWO.run_id
    value = button.attributes["data-sr-value"]
    assert parse(json.dumps({"action": "run-fork", "id": TWO.run_id, "value": value})) is not None
    assert json.loads(value) == {"weights": odd, "threshold": 0.99, "pool": False, "drafts": 1}
    assert "drafts" not in json.loads(fork_value(TWO, wish_of(TWO))), "a run may have fewer than it asked for"


@pytest.mark.parametrize("name", ["standard", "multihop", "few"])
def test_a_run_without_a_contest_says_so(name: str) -> None:
    assert not can_ask(RUNS[name])
    assert "Nothing was decided between drafts" in what_if_card(RUNS[name], wish_of(RUNS[name]))
    assert "ended before anything was decided" in nothing_to_ask(FAILED)


def test_nothing_of_a_hostile_trace_becomes_markup() -> None:
    html = what_if_card(HOSTILE_TRACE, with_weights(HOSTILE_TRACE, relevance=0))
    assert not {"script", "img"} & {element.tag for element in read(html)}
    assert "${" not in html
