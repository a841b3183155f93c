"""The figures and tables of a benchmark's report, number by number."""

import pytest

from specrag.evaluation.latency.markdown import markdown
from specrag.evaluation.latency.words import ms, ms_spread
from specrag.evaluation.reading import checked
from specrag.ui.report.cards import head
from tests.report_samples import latency
from tests.report_shown import data, layout, parts, row


def test_phases_stand_beside_their_floors() -> None:
    part = parts(latency())["Phases"]
    series = {one["name"]: one["x"] for one in data(part)}
    assert layout(part).yaxis.ticktext == (
        "standard",
        "standard, floor",
        "speculative",
        "speculative, floor",
    )
    assert series["write"] == [21000.0, 20000.0, 0.0, 0.0]
    assert series["verify"] == [0.0, 0.0, 6000.0, 5000.0]
    assert "98 GFLOP/s" in part.notes[0]


@pytest.mark.parametrize(
    ("taken", "said"),
    [
        (0.04, "0.0 ms"),
        (12.3, "12 ms"),
        (999.4, "999 ms"),
        (999.6, "1.00 s"),
        (6284.0, "6.28 s"),
        (9500.0, "9.50 s"),
        (12_345.0, "12.3 s"),
        (4_000_000.0, "4,000.0 s"),
    ],
)
def test_a_time_is_in_seconds_from_one_second_on(taken: float, said: str) -> None:
    assert ms(taken) == said


def test_no_table_says_the_same_time_in_two_units() -> None:
    """9.5 s stood beside 6,284 ms, and a reader took the second for the longer one."""
    assert ms_spread({"median": 950.0, "low": 600.0, "high": 1040.0, "n": 5}) == "0.95 s (0.60 s to 1.04 s)"
    made = latency()
    assert " ms" not in markdown(made)
    found = parts(made)
    cells = [text for part in found.values() for table in part.tables for one in table.rows for text in one]
    assert not [cell for cell in cells if " ms" in cell.text + cell.under]
    assert row(found["Phases"], "standard") == ["standard", "read", "verifier", "9.00 s", "6.00 s", "1.5"]
    assert "read: 9.00 s" in data(found["Phases"])[0]["hovertext"][0]


def test_what_the_floor_says_is_the_same_in_both_forms() -> None:
    """The page did not tell the ratio by the floor; of a floor of nothing the tables were a traceback."""
    made = latency()
    said = "By the floor alone the ratio would be 0.90 to the first token and 2.90 in all."
    assert said in markdown(made)
    assert said in parts(made)["Phases"].notes[0]
    made["floor"]["ratio"] = {"ttft": None, "total": None}
    assert "98 GFLOP/s" in markdown(made)
    assert "By the floor alone" not in markdown(made) + parts(made)["Phases"].notes[0]


def test_verifiers_that_were_all_left_out_are_told() -> None:
    made = latency()
    made["sweep"] |= {"points": [], "left_out": ["x8 does not fit."]}
    part = parts(made)["Where it begins to pay"]
    assert (part.figure, part.tables) == (None, ())
    assert part.notes == ("Left out: x8 does not fit.",)


def test_behind_servers_there_is_no_floor() -> None:
    made = latency(floor={})
    for way in ("standard", "speculative"):
        for phase in made[way]["phases"]:
            phase |= {"floor_ms": None, "times_floor": None}
    found = parts(made)
    assert layout(found["Phases"]).yaxis.ticktext == ("standard", "speculative")
    assert "no floor" in found["Phases"].notes[0]
    assert len(data(found["How many times as long standard RAG takes"])) == 1


def test_the_ratio_says_where_it_does_not_pay() -> None:
    part = parts(latency())["How many times as long standard RAG takes"]
    measured, floor = data(part)
    assert (measured["x"], floor["x"]) == ([0.75, 2.5], [0.9, 2.9])
    assert layout(part).shapes[0].x0 == 1
    assert "speculative RAG is slower: it does not pay" in part.words[0]
    assert row(part, "whole answer") == ["whole answer", "30.0 s", "12.0 s", "2.50"]


def test_too_few_repetitions_give_no_verdict_and_one_no_interval() -> None:
    """What looked like the surest figure of all was a single run."""
    alone = {"ttft": 0.75, "total": 2.5, "ttft_interval": None, "total_interval": None}
    made = latency(ratio=alone, repeats=1)
    for way in ("standard", "speculative"):
        for spread in made[way]["spread"].values():
            spread["n"] = 1
    made["sweep"]["points"][0] |= {"ttft_interval": None, "total_interval": None}
    found = parts(made)
    part = found["How many times as long standard RAG takes"]
    assert "too few repetitions to say which way is faster: 1" in part.words[0]
    assert [cell.under for cell in part.tables[0].rows[0]] == ["", "", "", ""]
    assert data(part)[0]["error_x"]["array"] == [0, 0]
    curve = found["Where it begins to pay"]
    assert curve.words[1] == "Of so few repetitions it is a hint and not a finding."
    assert data(curve)[0]["error_y"]["array"][0] == 0
    made["repeats"] = 7
    assert "neither is shown to be faster" in parts(made)[part.title].words[0]


def test_servers_are_named_where_they_computed() -> None:
    made = latency()
    made["environment"]["servers"] = {"drafter": "vLLM at http://a.example", "verifier": "vLLM"}
    assert "Computed by servers (drafter: vLLM at http://a.example" in head(checked(made))


def test_the_curve_shows_its_break_even() -> None:
    part = parts(latency())["Where it begins to pay"]
    total, first, floor = data(part)
    assert total["x"] == first["x"] == floor["x"] == [1.0, 8.0]
    assert total["y"] == [0.25, 2.0]
    assert {shape.x0 for shape in layout(part).shapes} == {0, 4.2}
    assert "4.2 times the drafter's size" in part.words[0]


def test_costs_name_their_assumptions() -> None:
    part = parts(latency())["Cost of 1,000 questions"]
    assert row(part, "1B + 70B") == ["1B + 70B", "$2.00", "$0.5", "75%", "1"]
    assert part.notes == ("1. A dollar an hour.",)
