"""The perspective map: known points in a known place, and the same place every time."""

import numpy as np
import pytest

from specrag.models.scripted import ScriptedModel
from specrag.perspective_map import perspective_map
from specrag.tracing.trace import fold
from specrag.types import PartitionName, Spot
from tests.test_partition import passages
from tests.test_speculative import QUESTION, extract
from tests.toys import PAGES, events_of, filled_store, pipeline

CROSS = np.array([[2.0, 0.0, 5.0], [-2.0, 0.0, 5.0], [0.0, 1.0, 5.0], [0.0, -1.0, 5.0]])
"""Around its middle: variance 8 along x and 2 along y, none along z."""


def places(spots: tuple[Spot, ...]) -> list[tuple[float, float]]:
    return [(spot.x, spot.y) for spot in spots]


def test_the_longer_direction_is_x_and_both_axes_have_one_scale() -> None:
    """By hand: the cross turned into the plane is itself, divided by its longest arm of 2."""
    made = perspective_map(passages(4), CROSS, (0, 0, 1, 2))
    assert places(made.spots) == [(1.0, 0.0), (-1.0, 0.0), (0.0, 0.5), (0.0, -0.5)]
    assert [spot.cluster for spot in made.spots] == [0, 0, 1, 2]
    assert [spot.passage_id for spot in made.spots] == ["p0", "p1", "p2", "p3"]
    assert made.variance == 1.0


def test_a_strategy_that_reads_only_the_first_passages_has_a_map_of_all() -> None:
    """`disjoint` clusters the m * k best passages; with more of them every run failed."""
    made = perspective_map(passages(4), CROSS, (0, 1))
    assert [spot.cluster for spot in made.spots] == [0, 1, None, None]


def test_the_share_of_variance_is_that_of_two_directions() -> None:
    """Arms of 2, 1 and 1 in three directions: 8 + 2 of 8 + 2 + 2 squares are on the map."""
    six = np.array([[2, 0, 0], [-2, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], dtype=float)
    assert perspective_map(passages(6), six).variance == pytest.approx(10 / 12, abs=1e-4)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_map_does_not_flip(sign: int) -> None:
    """SVD gives each direction either sign; a map that flipped between runs could not be compared."""
    points = np.array([[3.0, 0.0], [-1.0, 1.0], [-2.0, -1.0]])
    spots = perspective_map(passages(3), points * np.array([sign, 1])).spots
    assert spots[0].x == 1.0, "the farthest passage lies on the positive side"


def test_equal_passages_lie_on_one_spot_and_a_line_stays_a_line() -> None:
    line = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [2.0, 2.0]])
    spots = perspective_map(passages(4), line).spots
    assert (spots[2].x, spots[2].y) == (spots[3].x, spots[3].y)
    assert {spot.y for spot in spots} == {0.0}


@pytest.mark.parametrize("points", [np.eye(2), np.ones((5, 3))])
def test_too_few_or_equal_passages_have_no_map(points: np.ndarray) -> None:
    made = perspective_map(passages(len(points)), points)
    assert (made.spots, made.variance) == ((), None)


@pytest.mark.parametrize("partition", ["multi-perspective", "random", "contiguous"])
async def test_a_run_tells_its_map(partition: PartitionName) -> None:
    """Every passage has a spot with its cluster, and the span of the partition says how much the map holds."""
    store = filled_store()
    trace = fold(await events_of(pipeline(store, ScriptedModel(extract), partition=partition), QUESTION))
    store.close()
    assert [spot.passage_id for spot in trace.spots] == [passage.id for passage in trace.passages]
    assert len(trace.spots) == len(PAGES)
    assert all(-1 <= value <= 1 for spot in trace.spots for value in (spot.x, spot.y))
    clusters = {spot.passage_id: spot.cluster for spot in trace.spots}
    for subset in trace.subsets:
        assert [clusters[passage_id] for passage_id in subset.passage_ids] == list(subset.clusters)
    span = next(span for span in trace.spans if span.name == "partition")
    assert 0 < float(span.attributes["map_variance"]) <= 1
