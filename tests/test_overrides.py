"""Settings replaced by name: checked as at the start, and only where a run may differ."""

from typing import Any

import pytest

from specrag.config import PRESETS, ScoreWeights, load_settings
from specrag.errors import UsageError
from specrag.overrides import for_one_run, with_overrides

SETTINGS = load_settings({}, drafts=3, weights=ScoreWeights(relevance=2.0, draft=0.5))


def test_what_is_not_named_stays() -> None:
    changed = for_one_run(SETTINGS, {"retrieve": 5, "seed": None})
    assert (changed.retrieve, changed.drafts, changed.weights) == (5, 3, SETTINGS.weights)
    assert SETTINGS.retrieve == 8
    assert for_one_run(SETTINGS, {}) is SETTINGS


def test_a_preset_brings_its_weights_and_weights_may_be_given_in_part() -> None:
    assert with_overrides(SETTINGS, {"preset": "paper"}).weights.model_dump() == PRESETS["paper"]
    partly = with_overrides(SETTINGS, {"weights": {"relevance": 0}}).weights
    assert (partly.relevance, partly.draft) == (0, 0.5)
    both = with_overrides(SETTINGS, {"preset": "paper", "weights": {"draft": 2}})
    assert both.weights.model_dump() == {**PRESETS["paper"], "draft": 2}
    assert both.preset == "paper"
    own = ScoreWeights(draft=2)
    assert with_overrides(SETTINGS, {"preset": "paper", "weights": own}).weights == own


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"draft": 4}, r"draft is not a setting of specrag; did you mean drafts\?"),
        ({"weights": {"relevence": 1}}, r"relevence is not a setting of specrag; did you mean relevance\?"),
        ({"drafts": 0}, r"SPECRAG_DRAFTS: Input should be greater than or equal to 1"),
        ({"partition": "alphabetical"}, "SPECRAG_PARTITION"),
        ({"preset": "favourite"}, "SPECRAG_PRESET"),
        ({"draft_instruction": "x" * 501}, "SPECRAG_DRAFT_INSTRUCTION"),
        ({"draft_instruction": "Answer.\n\nQuestion: another"}, "SPECRAG_DRAFT_INSTRUCTION: .*one line"),
        ({"draft_instruction": "Answer\x00."}, "SPECRAG_DRAFT_INSTRUCTION: .*one line"),
        ({"draft_with": "embedder"}, "SPECRAG_DRAFT_WITH"),
        ({"preset": "favourite", "weights": {"draft": 2}}, "SPECRAG_PRESET"),
        ({"preset": ["paper"], "weights": {"draft": 2}}, "SPECRAG_PRESET"),
        ({"precision": "float32"}, "precision cannot differ from run to run"),
        ({"drafter": "another-model"}, "drafter cannot differ from run to run"),
        ({"home": "/elsewhere"}, "home cannot differ from run to run"),
        ({"drafter_url": "http://elsewhere"}, "drafter_url cannot differ from run to run"),
        ({"chroma_token": "x"}, "chroma_token cannot differ from run to run"),
    ],
)
def test_a_wrong_override_is_one_sentence(overrides: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        for_one_run(SETTINGS, overrides)


def test_the_environment_has_no_say_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run's settings are those that the program started with, whatever was exported since."""
    monkeypatch.setenv("SPECRAG_RETRIEVE", "17")
    monkeypatch.setenv("SPECRAG_WEIGHT_RELEVANCE", "9")
    changed = for_one_run(SETTINGS, {"drafts": 2, "weights": {"grounded": 1}})
    assert changed.retrieve == 8
    assert changed.weights == ScoreWeights(draft=0.5, relevance=2.0, grounded=1.0)


def test_what_a_fork_may_change_is_kept_in_its_trace() -> None:
    """Another instruction and other models make other drafts, so a trace has to say them."""
    changed = for_one_run(SETTINGS, {"draft_instruction": " Be brief. ", "verify_with": "drafter"}).public()
    assert changed["draft_instruction"] == "Be brief."
    assert (changed["draft_with"], changed["verify_with"]) == ("drafter", "drafter")


@pytest.mark.parametrize(
    "name", ["max_question_characters", "otlp_endpoint", "otlp_headers", "mcp", "max_runs"]
)
def test_what_the_operator_sets_no_run_may_change(name: str) -> None:
    """A fork through the endpoint asked questions of 100,000 characters where 2,000 were allowed."""
    with pytest.raises(UsageError, match=f"{name} cannot differ from run to run"):
        for_one_run(load_settings({}), {name: "1"})
