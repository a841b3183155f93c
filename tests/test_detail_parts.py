"""The map, the prompts and the table of steps of one run: what a visitor sees of each."""

import math
from dataclasses import replace
from itertools import combinations

import pytest

from specrag.tracing.trace import Usage
from specrag.types import Passage, Prompt, RoleUsage, Spot
from specrag.ui.detail.apart import LEAST, apart
from specrag.ui.detail.map_card import marks_of, perspective_map, shape_of, variance_note
from specrag.ui.detail.prompts import LETTERS, account_of, pieces_of, prompts_list
from specrag.ui.detail.span_table import MOST_ROWS, span_table
from tests.detail_runs import run_of
from tests.ui_html import Element, find, inside, read
from tests.ui_runs import RUNS
from tests.ui_traces import HOSTILE, HOSTILE_TRACE, LONG_WORD, STATES

RUN = run_of()


def spot(html: str, number: int) -> Element:
    return find(html, "sr-spot")[number - 1]


def test_every_passage_stands_at_its_place() -> None:
    """From the top: a y of 1 is above a y of -1."""
    corners = (
        Spot(passage_id="p1", x=-1.0, y=1.0, cluster=0),
        Spot(passage_id="p2", x=1.0, y=-1.0, cluster=1),
        Spot(passage_id="p3", x=0.0, y=0.0),
    )
    marks = marks_of(replace(RUN, spots=corners), "x")
    assert [(mark.left, mark.top) for mark in marks] == [(7.0, 7.0), (93.0, 93.0), (50.0, 50.0)]
    assert [(mark.cluster, mark.shape) for mark in marks] == [(1, "circle"), (2, "square"), (None, "circle")]


def test_marks_that_would_cover_each_other_are_drawn_side_by_side() -> None:
    """The number of one stood under the shape of another, and could neither be read nor pressed."""
    near = (0.5, 0.5), (0.5, 0.5), (0.51, 0.5), (1.0, 1.0), (1.0, 1.0), (-0.9, 0.1)
    spots = tuple(
        Spot(passage_id=passage.id, x=x, y=y) for passage, (x, y) in zip(RUN.passages, near, strict=False)
    )
    marks = marks_of(replace(RUN, spots=spots), "x")
    assert len(marks) == len(spots) > 4
    for one, other in combinations(marks, 2):
        assert math.dist((one.left, one.top), (other.left, other.top)) > LEAST - 0.1
        assert all(7 <= place <= 93 for place in (one.left, one.top))
    assert marks == marks_of(replace(RUN, spots=spots), "x")
    assert "drawn side by side" in perspective_map(replace(RUN, spots=spots))


@pytest.mark.parametrize("count", [40, 100])
def test_a_crowd_of_marks_in_one_place_spreads(count: int) -> None:
    spread = apart([(50.0, 50.0)] * count, edge=7)
    nearest = min(math.dist(one, other) for one, other in combinations(spread, 2))
    assert nearest > 0.6 * LEAST


def test_a_passage_of_several_drafts_has_a_ring_for_each() -> None:
    html = perspective_map(RUN)
    for mark in marks_of(RUN, "detail"):
        element = spot(html, mark.ref.number)
        rings = {name for ring in inside(html, element, "sr-ring") for name in ring.classes if "sr-h" in name}
        assert rings == {f"sr-h{number}" for number in mark.ref.drafts}
        said = element.attributes["aria-label"]
        assert f"Passage {mark.ref.number}, {mark.ref.passage.title}, cluster {mark.cluster}" in said
        assert ("read by no draft" in said) == (not mark.ref.drafts)
    assert any(len(mark.rings) > 1 for mark in marks_of(RUN, "detail"))


def test_a_passage_of_every_draft_does_not_become_a_target() -> None:
    """Twenty rings would cover its neighbours; what has no ring is told in words."""
    many = run_of(drafts=20)
    marks = marks_of(many, "detail")
    assert max(len(mark.ref.drafts) for mark in marks) > 4
    assert max(len(mark.rings) for mark in marks) == 4
    assert all(mark.more == len(mark.ref.drafts) - len(mark.rings) for mark in marks)


def test_the_label_has_title_and_first_words_and_the_button_opens_the_document() -> None:
    html = perspective_map(RUN)
    (label,) = inside(html, spot(html, 2), "sr-spot-label")
    assert "Quay notice 2025" in label.text
    assert "From 1 March 2025 the stay" in label.text
    assert spot(html, 2).attributes["data-sr-action"] == "open"
    assert spot(html, 2).attributes["data-sr-id"] == "run-detail:p2"


def test_clusters_are_told_by_shape_and_number_and_drafts_by_their_perspective() -> None:
    (key,) = find(perspective_map(RUN), "sr-map-key")
    for words in ("cluster 1", "cluster 2", "cluster 3", "draft 4", "view 4, quay"):
        assert words in key.text
    assert len({shape_of(number) for number in range(1, 9)}) == 8


def test_the_map_says_how_much_of_the_truth_it_holds() -> None:
    assert "These two directions hold 42 % of the differences" in perspective_map(RUN)
    unknown = replace(RUN, spans=tuple(replace(span, attributes={}) for span in RUN.spans))
    assert variance_note(unknown).startswith("The map is a shadow")
    for bad in (True, "a lot", -1.0, math.nan, 7):
        odd = replace(RUN, spans=(replace(RUN.spans[0], attributes={"map_variance": bad}),))
        assert variance_note(odd).startswith("The map is a shadow")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("standard", "one model read them all"),
        ("few", "were not divided"),
        ("synthesised", "kept no places"),
    ],
)
def test_a_run_without_places_says_why(name: str, words: str) -> None:
    html = perspective_map(RUNS[name])
    assert words in html
    assert find(html, "sr-empty")


def test_places_from_outside_cannot_leave_the_map() -> None:
    spots = (
        Spot(passage_id="p1", x=1e300, y=-1e300),
        Spot(passage_id="p2", x=math.nan, y=0.0),
        Spot(passage_id="nowhere", x=0.0, y=0.0),
    )
    (mark,) = marks_of(replace(RUN, spots=spots), "x")
    assert (mark.left, mark.top) == (93.0, 93.0)
    only = replace(RUN, spots=spots[1:])
    assert "passages that it does not hold" in perspective_map(only)


def test_prompts_add_up_to_what_was_counted() -> None:
    """Four drafts of 210 to 213 tokens."""
    drafter = account_of(RUN, "drafter")
    assert drafter is not None
    assert (drafter.total, drafter.counted) == (846, 846)
    assert drafter.says == "The prompts add up to the 846 tokens that were counted."
    verifier = account_of(RUN, "verifier")
    assert verifier is not None
    assert [sent.title for sent in verifier.sent] == [f"Verifying, draft {number}" for number in (1, 2, 3, 4)]
    assert verifier.says.startswith("The prompts add up to 320 tokens and 260 were counted: ")
    assert "reads that beginning once" in verifier.says


def test_a_second_prompt_about_the_same_draft_has_a_name_of_its_own() -> None:
    """With groundedness the verifier reads every draft twice; two buttons that copy must not be called alike."""
    twice = account_of(replace(RUN, prompts=RUN.prompts * 2), "verifier")
    assert twice is not None
    titles = [sent.title for sent in twice.sent]
    assert len(set(titles)) == len(titles) == 8
    assert titles[4] == "Verifying, draft 1 (2)"


def test_sums_that_do_not_agree_say_why() -> None:
    counted = Usage(drafter=RoleUsage(prompt_tokens=2000), verifier=RoleUsage(prompt_tokens=500))
    old = replace(RUN, prompts=(), usage=counted)
    verifier = account_of(old, "verifier")
    assert verifier is not None
    assert "an older version kept the drafts' prompts only" in verifier.says
    stopped = replace(RUN, status="cancelled", usage=Usage(drafter=RoleUsage(prompt_tokens=10)))
    drafter = account_of(stopped, "drafter")
    assert drafter is not None
    assert "ended before they had all been read" in drafter.says


def test_special_tokens_are_marked_and_nothing_is_lost() -> None:
    text = "<|im_start|>user\nWhat is <b> & </s>?<|im_end|>[INST]<start_of_turn>"
    pieces = pieces_of(text)
    assert "".join(piece for piece, _ in pieces) == text
    assert [piece for piece, special in pieces if special] == [
        "<|im_start|>", "</s>", "<|im_end|>", "[INST]", "<start_of_turn>"
    ]  # fmt: skip
    assert all(not special for _, special in pieces_of(HOSTILE))


def test_prompts_are_folded_shown_as_they_are_and_can_be_copied() -> None:
    html = prompts_list(RUN)
    folds = find(html, "details")
    assert len(folds) == 8
    assert not any("open" in fold.attributes for fold in folds)
    assert {button.attributes["aria-label"] for button in find(html, "sr-copy")} >= {
        "Copy the prompt: Draft 1",
        "Copy the prompt: Verifying, draft 4",
    }
    assert find(html, "pre")[0].text.startswith("<|im_start|>user Use only the evidence.")


def test_a_prompt_of_any_length_and_content_is_harmless() -> None:
    hostile = replace(
        HOSTILE_TRACE,
        prompts=(
            Prompt(role="verifier", step=HOSTILE, text=HOSTILE + LONG_WORD * 20, tokens=9, draft="s1"),
            Prompt(role="drafter", step="x", text="", tokens=0, draft="nobody"),
        ),
    )
    html = prompts_list(hostile)
    assert not {"script", "img"} & {element.tag for element in read(html)}
    assert "${" not in html
    assert "more letters are not shown" in html
    assert len(html) < 2 * LETTERS
    assert find(prompts_list(STATES["started"]), "sr-empty")


def test_the_table_of_steps_has_exact_times_and_attributes() -> None:
    html = span_table(RUN)
    rows = [row.text for row in find(html, "tr")]
    assert "retrieve20.0 ms40.0 ms" in next(row for row in rows if row.startswith("retrieve"))
    assert next(row for row in rows if row.startswith("retrieve")).endswith("passages = 8")
    assert any(row.startswith("draft 4, writing") for row in rows)
    assert find(span_table(STATES["started"]), "sr-empty")


def test_thousands_of_steps_of_an_imported_trace_are_bounded() -> None:
    many = replace(RUN, spans=tuple(replace(RUN.spans[0], id=f"x{at}") for at in range(3000)))
    html = span_table(many)
    assert len(find(html, "tr")) == MOST_ROWS + 1
    assert "2,500 more steps are not shown" in html


@pytest.mark.parametrize("make", [perspective_map, prompts_list, span_table], ids=lambda make: make.__name__)
def test_every_state_of_every_run_is_sound_html(make: object) -> None:
    assert callable(make)
    for trace in {**STATES, **RUNS}.values():
        html = make(trace)
        assert not {"script", "img"} & {element.tag for element in read(html)}
        ids = [one.attributes["id"] for one in read(html) if "id" in one.attributes]
        assert len(ids) == len(set(ids))


def test_a_passage_may_be_called_anything() -> None:
    odd = Passage(
        id="p1",
        document_id="d",
        title=HOSTILE + LONG_WORD,
        text=HOSTILE + LONG_WORD,
        page=None,
        source="x",
        published_at=None,
        score=0.5,
    )
    html = perspective_map(replace(RUN, passages=(odd, *RUN.passages[1:])))
    assert not {"script", "img"} & {element.tag for element in read(html)}
    (label,) = inside(html, spot(html, 1), "sr-spot-label")
    assert len(label.text) < 400
