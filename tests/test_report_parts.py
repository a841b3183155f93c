"""The figures and tables of reports, number by number, and the file that carries them."""

import base64
import hashlib
import json
import re
from typing import Any

import pytest

from specrag.evaluation.reading import checked
from specrag.ui import theme
from specrag.ui.report.bench_parts import bench_figures
from specrag.ui.report.cards import head, tables, words
from specrag.ui.report.eval_parts import eval_figures
from specrag.ui.report.page import report_page
from specrag.ui.report.parts import Part
from tests.report_samples import HOSTILE, evaluation, latency
from tests.ui_html import find, read


def parts(report: dict[str, Any]) -> dict[str, Part]:
    made = eval_figures if report["schema"] == "specrag.eval/1" else bench_figures
    return {part.title.partition(" (")[0]: part for part in made(checked(report))}


def data(part: Part) -> list[dict[str, Any]]:
    """The series of a figure, as a browser gets them."""
    assert part.figure is not None
    told: list[dict[str, Any]] = json.loads(part.figure.to_json())["data"]
    return told


def layout(part: Part) -> Any:
    assert part.figure is not None
    return part.figure.layout


def row(part: Part, name: str, table: int = 0) -> list[str]:
    return next([cell.text for cell in one] for one in part.tables[table].rows if one[0].text == name)


def test_accuracy_stands_over_time() -> None:
    """The ablation is no pipeline of its own there."""
    series = data(parts(evaluation())["Answers"])
    assert [one["text"] for one in series] == [["  standard  "], ["  speculative  "]]
    assert [(one["x"], one["y"]) for one in series] == [([2.0], [0.6]), ([1.0], [0.5])]
    assert series[0]["error_y"]["array"] == pytest.approx([0.2])
    assert series[0]["error_y"]["arrayminus"] == pytest.approx([0.2])


def test_differences_show_their_intervals_and_say_what_they_show() -> None:
    """A difference without its interval would be taken for one."""
    part = parts(evaluation())["Differences on the same questions"]
    (series,) = data(part)
    assert series["x"] == [-0.1, -0.3]
    assert layout(part).yaxis.ticktext == ("speculative", "drafts=2")
    assert layout(part).xaxis.range == pytest.approx((-0.432, 0.432))
    assert row(part, "speculative")[-1] == "no difference shown"
    assert row(part, "speculative:drafts=2")[3:] == ["−0.300", "4", "worse"]


def test_only_what_is_shown_is_a_filled_dot() -> None:
    """An interval that leaves 0 out looks like a difference, also where its signs may be luck."""
    made = evaluation()
    made["differences"][0] |= {"mean": -0.2, "low": -0.3, "high": -0.1, "sign_p": 0.25}
    (series,) = data(parts(made)["Differences on the same questions"])
    assert series["marker"]["symbol"] == ["circle-open", "circle"]
    part = parts(made)["Differences on the same questions"]
    assert [one[-1] for one in part.tables[0].rows] == [
        ("no difference shown", "sign test: 0.250"),
        ("worse", "sign test: 0.031"),
    ]


def test_a_figure_over_fewer_questions_says_so() -> None:
    """Citation precision over the three runs that cite looked like that of all."""
    answers = parts(evaluation())["Answers"].tables[0]
    assert [cell.under for cell in answers.rows[0]] == ["", "", "0.400 to 0.800", "0.000 to 0.600, n = 3", ""]


def test_metrics_that_are_not_known_here_are_shown_by_their_names() -> None:
    """A judge adds figures of its own, and so may the next version: refusing them would lose the report."""
    made = evaluation()
    for one in made["pipelines"].values():
        for mark, value in (("judged", 0.75), ("tone_of_voice", 0.5)):
            one["metrics"][mark], one["intervals"][mark], one["counts"][mark] = value, [0.25, 1.0], 4
    made["differences"][0]["metric"] = "tone_of_voice"
    found = parts(made)
    assert {"judged", "tone of voice"} < set(found["Answers"].tables[0].heads)
    assert row(found["Answers"], "standard")[-3:-1] == ["0.750", "0.500"]
    assert row(found["Differences on the same questions"], "speculative")[2] == "tone of voice"


def test_runs_that_chose_nothing_are_told() -> None:
    made = evaluation()
    note = "Answered by no draft: 2 (not among the n, since nothing was chosen)."
    assert parts(made)["What speculative chose from its drafts"].notes == (note,)
    made["pipelines"]["speculative"]["choices"] = {
        "n": 0, "by_no_draft": 3, "worth": {}, "intervals": {}, "counts": {}, "selected_minus": {}, "auc": {},
    }  # fmt: skip
    none = parts(made)["What speculative chose from its drafts"]
    assert (none.words, none.figure, none.tables) == ((), None, ())
    assert "Answered by no draft: 3" in tables(none)


def test_what_was_selected_is_gold_beside_other_choices() -> None:
    part = parts(evaluation())["What speculative chose from its drafts"]
    (series,) = data(part)
    assert series["x"] == [0.5, 0.75, 0.25, 0.4, 0.3]
    assert series["marker"]["color"][0] == theme.GOLD
    assert theme.GOLD not in series["marker"]["color"][1:]
    assert "Choosing by the scores is better than taking the first draft (+0.250" in part.words[0]
    assert row(part, "self-reflection", 1) == ["self-reflection", "0.800", "0.700", "3", "12"]


def test_confidence_stands_beside_the_truth() -> None:
    diagonal, bins = data(parts(evaluation())["Confidence of speculative beside the truth"])
    assert diagonal["x"] == diagonal["y"] == [0, 1]
    assert (bins["x"], bins["y"]) == ([0.55, 0.95], [0.333, 1.0])


def test_files_stand_beside_each_other() -> None:
    series = data(parts(evaluation())["Score by file"])
    assert [one["name"] for one in series] == ["bikes", "bells"]
    assert [one["x"] for one in series] == [[0.6, 0.5], [0.6, 0.5]]
    assert series[0]["y"] == pytest.approx([-0.15, 0.85])


def test_times_and_tokens() -> None:
    part = parts(evaluation())["Time and tokens"]
    assert row(part, "standard")[-3:] == ["2.00", "", "1,200 / 30"]


def test_failures_are_named() -> None:
    made = evaluation()
    made["pipelines"]["standard"]["failed"] = [{"question": f"q{n}", "error": "no memory"} for n in range(25)]
    part = parts(made)["Failed"]
    assert row(part, "standard") == ["standard", "q0", "no memory"]
    assert part.notes == ("And 5 more.",)
    assert row(parts(made)["Answers"], "standard")[-1] == "25"


def test_gaps_leave_gaps() -> None:
    """What is not known is null in a report; a figure of it would be a 0 that nobody measured."""
    made = evaluation(differences=[], datasets={})
    made["pipelines"] = {
        "standard": {**made["pipelines"]["standard"], "metrics": {"score": None}, "latency": {}}
    }
    found = parts(made)
    assert found["Answers"].figure is None
    assert row(found["Answers"], "standard") == ["standard", "4", "", "0"]
    assert set(found) == {"Answers", "Time and tokens"}


def test_choices_with_gaps_have_no_words() -> None:
    made = evaluation()
    made["pipelines"]["speculative"]["choices"]["worth"]["oracle"] = None
    assert parts(made)["What speculative chose from its drafts"].words == ()


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
    assert (measured["x"], floor["x"]) == ([2.5, 0.75], [2.9, 0.9])
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


def hostile() -> list[dict[str, Any]]:
    """Every text of both reports is an attack."""
    made = evaluation(dataset=HOSTILE, command=HOSTILE, corpus=HOSTILE)
    made["pipelines"] = {HOSTILE: made["pipelines"]["speculative"]}
    made["pipelines"][HOSTILE]["failed"] = [{"question": HOSTILE, "error": HOSTILE}]
    made["differences"] = [
        {**made["differences"][0], "pipeline": HOSTILE, "against": HOSTILE, "metric": HOSTILE}
    ]
    made["datasets"] = {HOSTILE + end: {"n": 1, "pipelines": made["pipelines"]} for end in "ab"}
    other = latency(label=HOSTILE, drafter=HOSTILE, verifier=HOSTILE, ttft_means=HOSTILE)
    other["standard"]["phases"][0]["name"] = HOSTILE
    other["costs"][0] |= {"what": HOSTILE, "assumes": [HOSTILE]}
    other["sweep"]["points"][0]["verifier"] = HOSTILE
    return [checked(made), checked(other)]


def test_texts_of_a_report_are_never_markup() -> None:
    for report in hostile():
        made = eval_figures(report) if report["schema"] == "specrag.eval/1" else bench_figures(report)
        html = head(report) + "".join(words(part) + tables(part) for part in made)
        assert not find(html, "img")
        assert not find(html, "script")
        assert "${" not in html
        assert "{{" not in html
        for part in made:
            if part.figure is not None:
                assert "<img" not in part.figure.to_json()
                assert "<script" not in part.figure.to_json()


def test_a_table_can_be_read_on_a_phone_and_by_ear() -> None:
    """There the heads are hidden, so each cell brings its own; a wide table scrolls, by keyboard as well."""
    html = tables(parts(evaluation())["Answers"])
    assert [one.attributes["data-label"] for one in find(html, "td")][:2] == ["n", "score"]
    assert next(one.text for one in find(html, "th") if one.attributes["scope"] == "row") == "standard"
    (scroll,) = find(html, "sr-report-scroll")
    assert (scroll.attributes["tabindex"], scroll.attributes["role"]) == ("0", "region")


def test_the_command_stands_with_the_conditions() -> None:
    html = head(checked(evaluation()))
    assert "/home/ada" in html
    assert "4 questions, seed 1, corpus given" in html


def scripts(page: str) -> list[str]:
    return re.findall(r"<script>(.*?)</script>", page, re.DOTALL)


def test_the_file_runs_our_two_scripts_and_nothing_else() -> None:
    page = report_page([checked(evaluation()), checked(latency())])
    library, draw = scripts(page)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (library, draw)]
    assert f"script-src 'sha256-{digests[0]}' 'sha256-{digests[1]}';" in policy[1].replace("&#39;", "'")
    assert "default-src 'none'" in policy[1]
    assert library.startswith("/**")
    assert page.count("data-sr-figure ") == 8


def test_the_file_of_a_hostile_report_holds_data_only() -> None:
    """Figures are drawn from JSON in the file; one that ends its element early would be a script."""
    page = report_page(hostile())
    rest = page.replace(scripts(page)[-2], "")
    assert len(scripts(page)) == 2
    elements = read(rest)
    assert not [one for one in elements if one.tag == "img"]
    figures = [one for one in elements if one.attributes.get("type") == "application/json"]
    assert len(figures) == len([one for one in elements if "data-sr-figure" in one.attributes])
    for figure in figures:
        assert set(json.loads("".join(figure.pieces))) == {"data", "layout"}


def test_the_file_asks_for_nothing() -> None:
    """An address in it would be a request, or at least a question whether it is one."""
    page = report_page([checked(evaluation()), checked(latency())])
    rest = page.replace(scripts(page)[0], "")
    assert not re.search(r"(https?:)?//[a-z]", rest)
    for one in read(rest):
        assert one.attributes.get("src") is None
        assert one.attributes.get("href", "data:,") == "data:,"
