"""What may be chosen for a run: what is not touched stays, and whatever a browser sends is checked."""

from dataclasses import replace
from typing import Any, get_args

import pytest

from specrag.config import PRESETS, load_settings
from specrag.errors import UsageError
from specrag.types import DecisionMode, PartitionName, PipelineName, PresetName
from specrag.ui import options as o

SETTINGS = load_settings({})
USUAL = o.options_of(SETTINGS)


def test_without_a_choice_the_settings_of_the_server_hold() -> None:
    own = load_settings({}, drafts=7, focus_sentences=5, grounded=True, decision="synthesise")
    name, settings = o.run_settings(own, o.options_of(own))
    assert name == "speculative"
    assert settings == own


def test_every_choice_reaches_the_settings_of_the_run() -> None:
    chosen = o.Options(
        pipeline="multihop",
        decision="synthesise",
        partition="semantic",
        drafts=6,
        preset="paper",
        focus=True,
        grounded=True,
    )
    name, settings = o.run_settings(SETTINGS, chosen)
    assert name == "multihop"
    assert settings.decision == "synthesise"
    assert settings.partition == "semantic"
    assert settings.drafts == 6
    assert settings.weights.model_dump() == PRESETS["paper"]
    assert settings.focus_sentences == o.FOCUS_SENTENCES
    assert settings.grounded
    assert SETTINGS.drafts == load_settings({}).drafts, "the server's own settings changed"


def test_focus_can_be_switched_off_and_keeps_the_number_of_the_server() -> None:
    own = load_settings({}, focus_sentences=5)
    assert o.run_settings(own, o.options_of(own))[1].focus_sentences == 5
    assert o.run_settings(own, replace(o.options_of(own), focus=False))[1].focus_sentences == 0


def test_weights_of_the_server_hold_until_another_preset_is_chosen() -> None:
    own = SETTINGS.model_copy(update={"weights": SETTINGS.weights.model_copy(update={"draft": 2.5})})
    six = replace(o.options_of(own), drafts=6)
    assert o.run_settings(own, six)[1].weights.draft == 2.5
    assert o.run_settings(own, replace(six, preset="paper"))[1].weights.draft == 1.0


WRONG: dict[str, list[Any]] = {
    "drafts": [0, 17, -1, 10**30, 1.5, float("nan"), "many", [4], {"a": 1}],
    **{
        field: ["", "SELECT", "x" * 10_000, 3, True, ["select"], {"a": 1}, "../../etc/passwd"]
        for field in ("decision", "partition", "preset", "pipeline")
    },
    "focus": ["on", 2, [], None],
    "grounded": ["perhaps", 2, []],
}


@pytest.mark.parametrize(("field", "value"), [(field, one) for field, all_ in WRONG.items() for one in all_])
def test_what_cannot_be_is_refused_in_one_sentence_that_names_it(field: str, value: Any) -> None:
    with pytest.raises(UsageError) as refused:
        o.run_settings(SETTINGS, replace(USUAL, **{field: value}))
    sentence = str(refused.value)
    assert field in sentence.lower()
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert len(sentence) < 300


def test_every_name_has_a_label() -> None:
    """A new pipeline or partition that the page does not offer would be found by nobody."""
    assert set(o.PIPELINES) == set(get_args(PipelineName))
    assert set(o.DECISIONS) == set(get_args(DecisionMode))
    assert set(o.PARTITIONS) == set(get_args(PartitionName))
    assert set(o.SCORING) == set(get_args(PresetName))


def test_the_slider_ends_where_the_settings_refuse() -> None:
    assert o.run_settings(SETTINGS, replace(USUAL, drafts=o.MOST_DRAFTS))[1].drafts == o.MOST_DRAFTS
    with pytest.raises(UsageError):
        o.run_settings(SETTINGS, replace(USUAL, drafts=o.MOST_DRAFTS + 1))


def test_the_closed_panel_says_what_holds() -> None:
    assert o.summary(USUAL) == "How: Speculative RAG, 4 drafts, multi-perspective, select"
    rest = replace(USUAL, drafts=1, preset="paper", focus=True, grounded=True)
    assert o.summary(rest).endswith(
        "1 draft, multi-perspective, select, paper's scores, evidence focus, groundedness"
    )
    assert o.summary(replace(USUAL, pipeline="multihop")) == "How: Multi-hop RAG"
