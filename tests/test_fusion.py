"""Rankings become one, and newer passages go first where that is wanted."""

from specrag.retrieval.fusion import Ranking, fuse
from specrag.retrieval.recency import preference


def test_what_both_find_comes_before_what_one_finds() -> None:
    found = fuse([Ranking(ids=["only-a", "both"]), Ranking(ids=["only-b", "both"])])
    assert found == ["both", "only-a", "only-b"]


def test_a_ranking_counts_by_its_weight() -> None:
    rankings = [Ranking(ids=["a", "b"], weight=0.2), Ranking(ids=["b", "a"])]
    assert fuse(rankings) == ["b", "a"]


def test_a_ranking_of_no_weight_orders_nothing_but_loses_nothing() -> None:
    """An embedder that cannot read the question must not decide; its candidates stay at the end."""
    assert fuse([Ranking(ids=["z", "a"], weight=0), Ranking(ids=["m"])]) == ["m", "a", "z"]


def test_the_newest_gains_and_the_oldest_loses() -> None:
    gain = preference({"old": "2019-01-01", "new": "2025-01-01", "undated": None}, 1.0)
    assert gain["new"] > 0 > gain["old"]
    assert "undated" not in gain


def test_equal_dates_and_no_preference_change_nothing() -> None:
    """Otherwise a dated passage would gain on one without a date by having one."""
    assert set(preference({"a": "2025", "b": "2025"}, 1.0).values()) == {0.0}
    assert preference({"only": "2025-03-01", "undated": None}, 1.0) == {"only": 0.0}
    assert preference({"a": "2024", "b": "2025"}, 0.0) == {}


def test_a_date_moves_a_passage_of_nearly_the_same_place() -> None:
    ranking = Ranking(ids=["old", "new"])
    beside = preference({"old": "2020-01-01", "new": "2024-01-01"}, 1.0)
    assert fuse([ranking]) == ["old", "new"]
    assert fuse([ranking], beside=beside)[0] == "new"
