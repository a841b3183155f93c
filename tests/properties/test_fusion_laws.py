"""Laws of the fusion of rankings, whatever is ranked."""

from hypothesis import given
from hypothesis import strategies as st

from specrag.retrieval.fusion import Ranking, fuse
from specrag.retrieval.recency import preference

IDS = st.lists(st.sampled_from("abcdefghij"), unique=True)
RANKINGS = st.lists(
    st.builds(lambda ids, weight: Ranking(ids=ids, weight=weight), IDS, st.floats(0.0, 8.0)), max_size=5
)
DATES = st.dictionaries(
    st.sampled_from("abcdefghij"), st.sampled_from([None, "2020", "2023-05-01", "2024", "2025-01-31"])
)


@given(RANKINGS, st.randoms(use_true_random=False))
def test_the_order_in_which_rankings_come_does_not_matter(rankings: list[Ranking], random: object) -> None:
    """Adding up in another order may differ in the last digit, and so may the order of passages."""
    shuffled = list(rankings)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # a Random
    assert fuse(shuffled) == fuse(rankings)


@given(RANKINGS)
def test_every_id_is_there_once(rankings: list[Ranking]) -> None:
    found = fuse(rankings)
    assert sorted(found) == sorted({identity for ranking in rankings for identity in ranking.ids})


@given(IDS)
def test_a_single_ranking_stays_as_it_is(ids: list[str]) -> None:
    assert fuse([Ranking(ids=ids)]) == ids


@given(RANKINGS, IDS.filter(lambda ids: len(ids) > 1), st.data())
def test_moving_up_in_one_ranking_never_moves_down_in_the_result(
    rankings: list[Ranking], ids: list[str], data: st.DataObject
) -> None:
    at = data.draw(st.integers(1, len(ids) - 1))
    raised = [*ids[: at - 1], ids[at], ids[at - 1], *ids[at + 1 :]]
    before = fuse([*rankings, Ranking(ids=ids)])
    after = fuse([*rankings, Ranking(ids=raised)])
    assert after.index(ids[at]) <= before.index(ids[at])


@given(RANKINGS, IDS)
def test_an_id_that_is_first_everywhere_is_first(rankings: list[Ranking], ids: list[str]) -> None:
    topped = [Ranking(ids=["top", *ranking.ids], weight=ranking.weight) for ranking in rankings]
    assert fuse([*topped, Ranking(ids=["top", *ids])])[0] == "top"


@given(DATES)
def test_a_preference_for_newer_ones_takes_what_it_gives(dates: dict[str, str | None]) -> None:
    """The sum is 0, so having a date at all is no advantage."""
    assert abs(sum(preference(dates, 1.0).values())) < 1e-12
