"""Settings: what is refused, and what a trace may know of them."""

from pathlib import Path

import pytest

from specrag.config import ScoreWeights, load_settings, model_name
from specrag.errors import UsageError


def test_a_misspelt_variable_is_refused_with_the_right_one() -> None:
    with pytest.raises(UsageError, match=r"SPECRAG_DRAFTR .* did you mean SPECRAG_DRAFTER\?"):
        load_settings({"SPECRAG_DRAFTR": "x"})


def test_a_variable_like_no_other_is_refused() -> None:
    with pytest.raises(UsageError, match="SPECRAG_QQQQ is not a setting"):
        load_settings({"SPECRAG_QQQQ": "x"})


@pytest.mark.parametrize(
    ("name", "value", "variable"),
    [("drafts", 0, "SPECRAG_DRAFTS"), ("retrieve", 51, "SPECRAG_RETRIEVE"), ("port", 70_000, "SPECRAG_PORT")],
)
def test_a_value_out_of_range_is_refused_by_its_variable(name: str, value: int, variable: str) -> None:
    with pytest.raises(UsageError, match=variable):
        load_settings({}, **{name: value})


def test_a_bad_value_in_the_environment_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECRAG_DRAFTS", "many")
    with pytest.raises(UsageError, match="SPECRAG_DRAFTS") as caught:
        load_settings()
    assert "\n" not in str(caught.value)


def test_weights_come_from_their_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECRAG_WEIGHT_RELEVANCE", "0")
    assert load_settings().weights.relevance == 0


def test_a_preset_gives_the_weights_that_no_variable_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECRAG_PRESET", "paper")
    monkeypatch.setenv("SPECRAG_WEIGHT_DRAFT", "2.5")
    weights = load_settings().weights
    assert (weights.draft, weights.self_containment, weights.self_reflection) == (2.5, 1, 1)
    assert (weights.relevance, weights.grounded) == (0, 0)


def test_a_preset_can_be_passed_and_an_unknown_one_is_refused() -> None:
    assert load_settings({}, preset="paper").weights.relevance == 0
    with pytest.raises(UsageError, match="SPECRAG_PRESET"):
        load_settings({}, preset="best")


def test_a_bad_weight_is_named_by_its_own_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECRAG_WEIGHT_DRAFT", "abc")
    with pytest.raises(UsageError, match="SPECRAG_WEIGHT_DRAFT"):
        load_settings()


def test_all_weights_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one score weight"):
        ScoreWeights(draft=0, self_containment=0, self_reflection=0, grounded=0, relevance=0)


def test_overlap_must_stay_below_the_chunk() -> None:
    with pytest.raises(UsageError, match="chunk_overlap must be below chunk_tokens"):
        load_settings({}, chunk_tokens=32, chunk_overlap=32)


def test_a_trace_learns_no_path(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    public = load_settings({}, drafter=str(folder), home=tmp_path).public()
    assert public["drafter"] == "my-model"
    assert str(tmp_path) not in repr(public)


def test_home_is_absolute() -> None:
    assert load_settings({}, home=Path("~/x")).home == Path.home() / "x"


def test_a_hub_id_keeps_its_name() -> None:
    assert model_name("HuggingFaceTB/SmolLM2-135M-Instruct") == "HuggingFaceTB/SmolLM2-135M-Instruct"
