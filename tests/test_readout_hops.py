"""The hops of multi-hop RAG, and the lanes of every step, with one draft and with sixteen."""

import json
from dataclasses import replace

from specrag.types import Span
from specrag.ui import cards, figures, lanes
from tests.ui_html import Element, find, inside
from tests.ui_runs import (
    ASKING,
    HOSTILE_HOPS,
    MULTIHOP,
    NOTING,
    QUERIES,
    QUEUED_AND_DONE,
    SEARCHING,
    SYNTHESISED,
    many_drafts,
)
from tests.ui_traces import HOSTILE, SELECTED


def _texts(elements: list[Element]) -> list[str]:
    return [element.text for element in elements]


def test_each_hop_tells_its_query_what_it_found_and_its_note() -> None:
    html = cards.board(MULTIHOP)
    first, second = find(html, "sr-hop")
    assert [inside(html, one, "h3")[0].text for one in (first, second)] == ["Hop 1", "Hop 2"]
    assert inside(html, first, "sr-hop-query")[0].text == f"Question {QUERIES[0]}"
    assert inside(html, second, "sr-hop-query")[0].text == f"Still missing {QUERIES[1]}"
    assert [one.text.split()[0] for one in inside(html, second, "sr-chip")] == ["1", "4", "5"]
    assert inside(html, second, "sr-rate")[0].text == "3 passages, 2 new"
    assert inside(html, second, "sr-hop-note")[0].text == "Note The harbour master is Ines Tolland."
    assert inside(html, second, "sr-hop-next")[0].text == "Nothing more was looked for."
    assert not find(html, "sr-card")


def test_a_hop_fills_step_by_step() -> None:
    searching, noting, asking = (cards.board(trace) for trace in (SEARCHING, NOTING, ASKING))
    last = find(searching, "sr-hop")[-1]
    assert inside(searching, last, "sr-rate")[0].text == "searching"
    assert not inside(searching, last, "sr-chip")
    last = find(noting, "sr-hop")[-1]
    assert [one.text.split()[0] for one in inside(noting, last, "sr-chip")] == ["4", "5"]
    assert inside(noting, last, "sr-hop-note")[0].text == "Note The harbour master"
    assert inside(noting, last, "sr-caret")
    last = find(asking, "sr-hop")[-1]
    assert inside(asking, last, "sr-hop-next")[0].text == "Still missing When"


def test_chips_of_multi_hop_carry_the_hue_of_the_hops_that_found_them() -> None:
    html = cards.board(MULTIHOP)
    chips = find(html, "sr-chip")
    assert chips[0].text.endswith("found in hops 1, 2")
    dots = [one.attributes["class"] for one in inside(html, chips[0], "sr-dot")]
    assert dots == ["sr-dot sr-h1", "sr-dot sr-h2"]


def test_the_hops_show_the_chips_and_the_strip_only_keeps_their_panels() -> None:
    strip = cards.passages_strip(MULTIHOP)
    outside = [
        one
        for one in find(strip, "sr-chip")
        if not any("popover" in parent.attributes for parent in one.parents)
    ]
    assert not outside
    assert len(find(strip, "sr-panel")) == len(MULTIHOP.passages) + 1


def test_a_hostile_hop_is_text() -> None:
    html = cards.board(HOSTILE_HOPS)
    query = find(html, "sr-hop-query")[0].text
    assert query.startswith("Question <script>alert(1)</script> ${document.title} {{ 7*7 }}")
    assert "<script" not in html
    assert HOSTILE not in html
    assert len(inside(html, find(html, "sr-hop")[0], "sr-chip")) == 1


def test_lanes_of_every_step() -> None:
    assert [lane.label for lane in lanes.lanes(QUEUED_AND_DONE)] == ["queue", "retrieve", "answer"]
    assert [lane.label for lane in lanes.lanes(MULTIHOP)] == ["hop 1", "hop 2", "answer"]
    assert lanes.lanes(SYNTHESISED)[-1].label == "synthesise"


def test_waiting_searching_and_reading_are_told_apart_from_writing() -> None:
    queue, _, answer = lanes.lanes(QUEUED_AND_DONE)
    assert [bar.kind for bar in queue.bars] == ["wait"]
    assert [bar.kind for bar in answer.bars] == ["read", "decode"]
    hop = lanes.lanes(MULTIHOP)[1]
    assert [bar.kind for bar in hop.bars] == ["search", "note"]
    assert hop.number == 2
    html = cards.timeline(QUEUED_AND_DONE)
    rows = [inside(html, row, "td")[0].text for row in find(html, "tr")[1:]]
    assert rows == ["queue, waiting", "retrieve", "answer, reading", "answer, writing"]
    assert "waiting" in find(html, "sr-timeline-head")[0].text


def test_sixteen_drafts_and_one_have_a_card_and_a_lane_each() -> None:
    for count in (1, 16):
        trace = many_drafts(count)
        html = cards.board(trace)
        assert len(find(html, "sr-card")) == count
        drafts = [lane for lane in lanes.lanes(trace) if lane.label.startswith("draft ")]
        assert [lane.number for lane in drafts] == list(range(1, count + 1))
    hues = [next(name for name in one.classes if name.startswith("sr-h")) for one in find(html, "sr-card")]
    assert hues[:8] == hues[8:] == [f"sr-h{number}" for number in range(1, 9)]


def test_groundedness_has_its_bar_when_it_is_known() -> None:
    html = cards.board(SYNTHESISED)
    labels = _texts(inside(html, find(html, "sr-card")[0], "dt"))
    assert labels.index("groundedness") == labels.index("self-reflection") + 1
    assert "grounded" not in cards.board(SELECTED)


def test_the_waterfall_draws_a_hop_faintly_above_its_parts() -> None:
    figure = json.loads(str(figures.waterfall(MULTIHOP).to_json()))
    labels, colours = figure["layout"]["yaxis"]["ticktext"], figure["data"][0]["marker"]["color"]
    hop = {label: colour for label, colour in zip(labels, colours, strict=True) if label.startswith("hop 1")}
    assert [colour.rsplit(",", 1)[1] for colour in hop.values()] == ["0.4)", "1)", "1)"]
    assert list(hop) == ["hop 1", "hop 1, retrieve", "hop 1, noting"]
    assert len({colour.rsplit(",", 1)[0] for colour in hop.values()}) == 1


def test_a_model_works_while_a_hop_notes_and_while_an_answer_is_written() -> None:
    share = figures.models_share(MULTIHOP)
    assert share is not None
    assert 0.3 < share < 0.9
    assert figures.first_token_ms(QUEUED_AND_DONE) == min(
        token.at_ms for token in QUEUED_AND_DONE.answer_tokens if token.at_ms is not None
    )


def test_parents_of_an_imported_trace_may_go_in_circles() -> None:
    looped = replace(
        MULTIHOP,
        spans=tuple(
            Span(id=key, parent_id=other, name="x", start_ms=0.0, end_ms=1.0)
            for key, other in (("a", "b"), ("b", "a"))
        ),
    )
    assert [lane.label for lane in lanes.lanes(looped)] == ["x"]
