"""The texts of a measurement: exactly so many tokens, others in each repetition, and enough of them."""

import random
from pathlib import Path

import pytest

from specrag.errors import UsageError
from specrag.evaluation.latency.texts import Lengths, words, work_of
from specrag.models.loading import load_tokenizer
from specrag.models.render import Renderer

LENGTHS = Lengths(passages=4, passage_tokens=20, drafts=3, per_draft=2, tokens=12, rationale=7)


def test_texts_have_exactly_the_asked_tokens(model_path: Path) -> None:
    """A word of two tokens made passages longer than the report said."""
    renderer = Renderer(load_tokenizer(model_path, name="tokenizer"))
    for count in (1, 32, 200):
        text = words(count, random.Random(count))
        assert len(renderer.encode(f" {text}")) == count
        assert len(renderer.encode(f"\n{text}")) == count + 1


def test_repetitions_have_other_texts_and_the_same_seed_the_same() -> None:
    """A server that had read a passage before answered from its cache."""
    first, again, other = (work_of(LENGTHS, seed=0, repetition=number) for number in (0, 0, 1))
    assert first == again
    assert not {passage.text for passage in first.passages} & {passage.text for passage in other.passages}
    assert [len(subset) for subset in first.subsets] == [2, 2, 2]
    lengths = [(len(rationale.split()), len(answer.split())) for rationale, answer in first.drafted]
    assert lengths == [(LENGTHS.rationale, LENGTHS.answer)] * LENGTHS.drafts
    assert {passage.id for subset in first.subsets for passage in subset} == {"p0", "p1", "p2", "p3"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"passages": 0}, "passages is 0"),
        ({"passages": 1, "per_draft": 2}, "cannot read 2 of 1 passages"),
        ({"tokens": 8, "rationale": 8}, "leaves nothing of 8"),
    ],
)
def test_lengths_that_leave_nothing_to_measure_are_refused(given: dict[str, int], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Lengths(**given)
