"""Several token sequences as one: a tree in which every shared prefix stands, and is computed, once.

The sequences of one call begin alike (instruction, question, often the same first passage), so they form a
tree. Its tokens are packed into a single row, segment after segment, with positions that restart where a
branch leaves its parent; a token may look at its ancestors and at nothing else. What a model then computes
for a branch is what it would compute for that sequence alone (ALGORITHM.md, "One forward pass, really").

Pure: no tensors here. The mask that follows from a tree is applied in `attention.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Tokens that the same sequences share, between two branchings."""

    start: int
    """Place of the first token in the packed row."""
    end: int
    """One past the last."""
    position: int
    """Position of the first token in its sequences, which all agree on it."""
    ancestors: tuple[int, ...]
    """Numbers of the segments before it, from the root on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTree:
    """Packed tokens with their positions, and where each sequence runs through them."""

    tokens: tuple[int, ...]
    positions: tuple[int, ...]
    segments: tuple[Segment, ...]
    paths: tuple[tuple[int, ...], ...]
    """For every sequence the places of its tokens in the packed row, in order."""


def grow(sequences: Sequence[Sequence[int]]) -> TokenTree:
    """The tree of the sequences; parents stand before their children.

    Raises:
        ValueError: there is no sequence, or one is empty.
    """
    if not sequences or not all(sequences):
        raise ValueError("a token tree needs at least one sequence, and none of them empty")
    tokens: list[int] = []
    positions: list[int] = []
    segments: list[Segment] = []
    paths: list[list[int]] = [[] for _ in sequences]
    # (numbers of the sequences that go on together, how far they are, segments that they passed)
    roots = _fork(sequences, range(len(sequences)), 0)
    waiting: list[tuple[list[int], int, tuple[int, ...]]] = [(group, 0, ()) for group in reversed(roots)]
    while waiting:
        group, begin, ancestors = waiting.pop()
        end = _agree_until(sequences, group, begin)
        start = len(tokens)
        tokens += sequences[group[0]][begin:end]
        positions += range(begin, end)
        segments.append(Segment(start=start, end=len(tokens), position=begin, ancestors=ancestors))
        for number in group:
            paths[number] += range(start, len(tokens))
        passed = (*ancestors, len(segments) - 1)
        going_on = [number for number in group if len(sequences[number]) > end]
        waiting += [(branch, end, passed) for branch in reversed(_fork(sequences, going_on, end))]
    return TokenTree(
        tokens=tuple(tokens),
        positions=tuple(positions),
        segments=tuple(segments),
        paths=tuple(tuple(path) for path in paths),
    )


def _fork(sequences: Sequence[Sequence[int]], numbers: Sequence[int], at: int) -> list[list[int]]:
    """The sequences grouped by their token at `at`, in order of first appearance."""
    groups: dict[int, list[int]] = {}
    for number in numbers:
        groups.setdefault(sequences[number][at], []).append(number)
    return list(groups.values())


def _agree_until(sequences: Sequence[Sequence[int]], group: Sequence[int], begin: int) -> int:
    """Where the sequences of a group part, or the shortest of them ends; at least one past `begin`."""
    shortest = min(len(sequences[number]) for number in group)
    first = sequences[group[0]]
    for place in range(begin + 1, shortest):
        if any(sequences[number][place] != first[place] for number in group[1:]):
            return place
    return shortest
