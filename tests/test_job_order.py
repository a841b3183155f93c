"""Whose file is next: owners take turns, and a place in line can be told beforehand."""

from hypothesis import given
from hypothesis import strategies as st

from specrag.ingest.jobs.order import FairLine

OWNERS = st.lists(st.sampled_from(["ann", "ben", "cem"]), max_size=30)


def line_of(owners: list[str]) -> FairLine:
    line = FairLine()
    for number, owner in enumerate(owners):
        line.add(f"{owner}-{number}", owner, (number, 0))
    return line


def drained(line: FairLine) -> list[str]:
    order = []
    while (job := line.take()) is not None:
        order.append(job)
    return order


def test_one_file_does_not_wait_for_fifty_of_somebody_else() -> None:
    line = line_of(["ann"] * 50 + ["ben"])
    assert line.before("ben-50") == 1
    assert drained(line)[:3] == ["ann-0", "ben-50", "ann-1"]


def test_new_owners_join_at_the_end_of_the_round() -> None:
    """Whoever made up an owner for each file went before everybody else."""
    line = line_of(["ann", "ben"])
    line.take()
    for number in range(5):
        line.add(f"made-up-{number}", f"nobody-{number}", (10 + number, 0))
    assert line.before("ben-1") == 0


def test_files_of_an_archive_take_its_place() -> None:
    line = line_of(["ann", "ann", "ben"])
    assert line.take() == "ann-0"
    for part in (1, 2):
        line.add(f"inner-{part}", "ann", (0, part))
    assert drained(line) == ["ben-2", "inner-1", "inner-2", "ann-1"]


@given(OWNERS)
def test_the_number_before_a_file_is_how_many_really_go_before_it(owners: list[str]) -> None:
    line = line_of(owners)
    told = {f"{owner}-{number}": line.before(f"{owner}-{number}") for number, owner in enumerate(owners)}
    assert {job: turn for turn, job in enumerate(drained(line))} == told
    assert len(line) == 0


@given(OWNERS)
def test_each_owner_is_served_in_order_and_no_owner_twice_while_another_waits(owners: list[str]) -> None:
    order = drained(line_of(owners))
    for owner in set(owners):
        own = [int(job.split("-")[1]) for job in order if job.startswith(owner)]
        assert own == sorted(own)
    for at in range(1, len(order)):
        if order[at].split("-")[0] == order[at - 1].split("-")[0]:
            assert {job.split("-")[0] for job in order[at:]} == {order[at].split("-")[0]}


@given(OWNERS, st.data())
def test_one_that_was_taken_out_has_no_turn(owners: list[str], data: st.DataObject) -> None:
    line = line_of(owners)
    jobs = [f"{owner}-{number}" for number, owner in enumerate(owners)]
    out = data.draw(st.sets(st.sampled_from(jobs))) if jobs else set()
    for job in [*out, "unknown"]:
        line.remove(job)
    assert [line.before(job) for job in out] == [None] * len(out)
    assert sorted(drained(line)) == sorted(set(jobs) - out)
