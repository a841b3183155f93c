"""The figures and tables of an evaluation's report, number by number."""

import pytest

from specrag.evaluation.reading import checked
from specrag.ui import theme
from specrag.ui.report.cards import head, tables
from tests.report_samples import evaluation
from tests.report_shown import data, layout, parts, row
from tests.ui_html import find


def test_accuracy_stands_over_time() -> None:
    """The ablation is no pipeline of its own there."""
    part = parts(evaluation())["Answers"]
    series = data(part)
    assert [one["name"] for one in series] == ["standard", "speculative"]
    assert layout(part).showlegend
    assert len({one["marker"]["symbol"] for one in series}) == 2
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
    """An interval that leaves 0 out looks like a difference, also where it may be luck."""
    made = evaluation()
    made["differences"][0] |= {"mean": -0.2, "low": -0.3, "high": -0.1, "p": 0.25}
    (series,) = data(parts(made)["Differences on the same questions"])
    assert series["marker"]["symbol"] == ["circle-open", "circle"]
    part = parts(made)["Differences on the same questions"]
    assert [one[-1] for one in part.tables[0].rows] == [
        ("no difference shown", "p = 0.250"),
        ("worse", "p = 0.031"),
    ]


def test_a_figure_over_fewer_questions_says_so() -> None:
    """Citation precision over the three runs that cite looked like that of all."""
    answers = parts(evaluation())["Answers"].tables[0]
    assert [cell.under for cell in answers.rows[0]] == [
        "",
        "",
        "0.400 to 0.800",
        "0.000 to 0.600, n\xa0=\xa03",
        "",
    ]


def test_metrics_that_are_not_known_here_are_shown_by_their_names() -> None:
    """A judge adds figures of its own, and so may the next version: refusing them would lose the report."""
    made = evaluation()
    for one in made["pipelines"].values():
        for mark, value in (("judged", 0.75), ("tone_of_voice", 0.5)):
            one["metrics"][mark], one["intervals"][mark], one["counts"][mark] = value, [0.25, 1.0], 4
    made["differences"][0]["metric"] = "tone_of_voice"
    found = parts(made)
    heads, figures = found["Answers"].tables[0].heads, row(found["Answers"], "standard")
    assert figures[heads.index("judged")] == "0.750"
    assert figures[heads.index("tone of voice")] == "0.500"
    assert row(found["Differences on the same questions"], "speculative")[2] == "tone of voice"


def test_who_judged_stands_with_how_far_to_trust_it() -> None:
    """A judged figure without it would be taken for a counted one."""
    agreement = {
        "n": 8,
        "share": 0.75,
        "kappa": {"mean": 0.5, "low": -0.1, "high": 1, "n": 8, "clear": False},
    }
    of_one = {
        "verdicts": {"correct": 3, "incorrect": 1, "declined": 0},
        "agreement": {"n": 4, "share": 1.0, "kappa": None},
        "marks": {"judged": {"asked": 4, "repeated": 0, "unread": 0, "unheard": 1}},
    }
    other = {**of_one, "agreement": agreement}
    judge = {
        "model": "big-1",
        "problem": None,
        "agreement": agreement,
        "pipelines": {"standard": of_one, "speculative": other},
    }
    part = parts(evaluation(judge=judge))["The judge: big-1"]
    said = "Over 8 answers judge and score agree on 75%; kappa is 0.500 (-0.100 to 1.000), so no agreement"
    assert part.words == (f"{said} beyond luck is shown.",)
    assert row(part, "standard") == ["standard", "4", "0", "1", "3", "1", "0", "1.000", ""]
    assert row(part, "speculative")[-2:] == ["0.750", "0.500"], "kappa is no difference: it has no plus"
    lost = {"model": "big-1", "problem": "The judge does not answer."}
    assert parts(evaluation(judge=lost))["The judge: big-1"].words == (
        "It ended early: The judge does not answer.",
    )


def test_every_pipeline_says_what_it_chose() -> None:
    """All but the first were in the Markdown alone; on the page they open on demand."""
    found = parts(evaluation())
    other = found["What speculative:drafts=2 chose from its drafts"]
    assert other.figure is None
    assert row(other, "oracle")[1] == "0.750"
    assert all(table.folded for table in other.tables)
    alone = evaluation()
    del alone["pipelines"]["speculative"]
    drawn = parts(alone)["What speculative:drafts=2 chose from its drafts"]
    assert drawn.figure is not None


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
    part = parts(evaluation())["Confidence of speculative beside the truth"]
    diagonal, bins = data(part)
    assert diagonal["x"] == diagonal["y"] == [0, 1]
    assert (bins["x"], bins["y"]) == ([0.55, 0.95], [0.333, 1.0])
    assert bins["cliponaxis"] is False, "half of the circle at 1 would be outside of the axes"
    pixel = 1.1 / (layout(part).height - layout(part).margin.t - layout(part).margin.b)
    top = layout(part).yaxis.range[1] + layout(part).margin.t * pixel
    assert 1 + max(bins["marker"]["size"]) / 2 * pixel < top, "and here outside of the picture"


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
