"""The token tree: every prefix once, and every sequence whole along its path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrag.models.tree import TokenTree, grow

SEQUENCES = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=9), min_size=1, max_size=6)


def seen(tree: TokenTree, place: int) -> list[int]:
    """Places that the token at `place` may look at, by the segments alone."""
    own = next(one for one in tree.segments if one.start <= place < one.end)
    before = [tree.segments[number] for number in own.ancestors]
    return [p for one in before for p in range(one.start, one.end)] + list(range(own.start, place + 1))


def test_what_is_shared_stands_once() -> None:
    tree = grow([[1, 2, 3, 4], [1, 2, 3, 5, 6], [1, 2, 7]])
    assert tree.tokens == (1, 2, 3, 4, 5, 6, 7)
    assert tree.positions == (0, 1, 2, 3, 3, 4, 2)
    assert tree.paths == ((0, 1, 2, 3), (0, 1, 2, 4, 5), (0, 1, 6))
    assert [(one.start, one.end, one.ancestors) for one in tree.segments] == [
        (0, 2, ()),
        (2, 3, (0,)),
        (3, 4, (0, 1)),
        (4, 6, (0, 1)),
        (6, 7, (0,)),
    ]


def test_a_sequence_that_ends_inside_another_and_equal_ones() -> None:
    tree = grow([[5, 6], [5, 6, 7], [5, 6]])
    assert tree.tokens == (5, 6, 7)
    assert tree.paths == ((0, 1), (0, 1, 2), (0, 1))


def test_nothing_in_common_is_several_roots() -> None:
    tree = grow([[1, 2], [3]])
    assert [one.ancestors for one in tree.segments] == [(), ()]
    assert tree.positions == (0, 1, 0)


@pytest.mark.parametrize("sequences", [[], [[1], []]])
def test_an_empty_sequence_is_refused(sequences: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="at least one sequence"):
        grow(sequences)


@given(SEQUENCES)
def test_every_token_sees_its_own_sequence_and_nothing_else(sequences: list[list[int]]) -> None:
    """The law behind "equal to separate passes": what a place sees is its sequence up to there, in order."""
    tree = grow(sequences)
    for path, sequence in zip(tree.paths, sequences, strict=True):
        assert [tree.tokens[place] for place in path] == sequence
        assert [tree.positions[place] for place in path] == list(range(len(sequence)))
        for length, place in enumerate(path, 1):
            assert seen(tree, place) == list(path[:length])


@given(SEQUENCES)
def test_no_prefix_is_computed_twice(sequences: list[list[int]]) -> None:
    tree = grow(sequences)
    prefixes = {tuple(ids[:end]) for ids in sequences for end in range(1, len(ids) + 1)}
    assert len(tree.tokens) == len(prefixes)
