"""Unique subsets of numbers, drawn by a seed in a bounded number of steps.

Drawing until there are m different ones never ends when fewer exist; everything here counts first.
"""

import itertools
import math
from collections.abc import Iterator
from random import Random


def one_of_each(clusters: list[list[int]], m: int, random: Random) -> list[tuple[int, ...]]:
    """Up to m unique tuples with one member of each cluster, each tuple in order of rank."""
    wanted = min(m, math.prod(len(rows) for rows in clusters))
    dealers = [_deal(rows, random) for rows in clusters]
    chosen: dict[tuple[int, ...], None] = {}
    for _ in range(50 * m):
        if len(chosen) == wanted:
            break
        chosen.setdefault(tuple(sorted(next(dealer) for dealer in dealers)))
    for rest in itertools.product(*clusters):  # luck may run out; the tuples in order never do
        if len(chosen) == wanted:
            break
        chosen.setdefault(tuple(sorted(rest)))
    return list(chosen)


def _deal(rows: list[int], random: Random) -> Iterator[int]:
    """Members of a cluster without end: best first in the first round, shuffled in the later ones."""
    yield from rows
    while True:
        again = list(rows)
        random.shuffle(again)
        yield from again


def distinct(count: int, below: int, random: Random) -> list[int]:
    """`count` different numbers below `below`, in `count` steps (Floyd's algorithm, CACM 30(9), 1987)."""
    drawn: dict[int, None] = {}
    for top in range(below - count, below):
        number = random.randrange(top + 1)
        drawn[top if number in drawn else number] = None
    order = list(drawn)
    random.shuffle(order)
    return order


def combination(rank: int, count: int, size: int) -> tuple[int, ...]:
    """The subset of `size` of the numbers below `count` that stands at `rank` in lexicographic order."""
    chosen: list[int] = []
    number = 0
    while len(chosen) < size:
        beginning_here = math.comb(count - number - 1, size - len(chosen) - 1)
        if rank < beginning_here:
            chosen.append(number)
        else:
            rank -= beginning_here
        number += 1
    return tuple(chosen)
