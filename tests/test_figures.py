"""The lanes, the ticks, the waterfall, and the one place where colours live."""

import json
import re
import time
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrag.types import Span
from specrag.ui import figures, lanes, theme
from specrag.ui.evidence import split_evidence
from specrag.ui.span_rows import span_rows
from tests.ui_traces import ABSTAINED, DRAFTING, HOSTILE_TRACE, SELECTED, STARTED, STATES

CSS = theme.CSS_PATH.read_text(encoding="utf-8")


def _block(selector: str) -> dict[str, str]:
    found = re.search(rf"^{re.escape(selector)} \{{(.*?)^\}}", CSS, re.MULTILINE | re.DOTALL)
    assert found
    return dict(re.findall(r"(--sr-[\w-]+): (.+?);", found[1]))


LIGHT, DARK = _block(":root"), _block(".dark")


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("state", STATES)
def test_the_waterfall_has_a_bar_per_span_that_can_be_seen(state: str) -> None:
    trace = STATES[state]
    figure = json.loads(str(figures.waterfall(trace).to_json()))
    (bars,) = figure["data"]
    assert len(bars.get("x", [])) == len(trace.spans)
    least = figure["layout"]["xaxis"]["tickvals"][-1] * figures.MIN_BAR_SHARE
    assert all(width >= least for width in bars.get("x", []))
    assert len(figure["layout"]["yaxis"].get("ticktext", [])) == len(trace.spans)


def test_rows_of_the_waterfall_stand_under_the_span_around_them_and_in_the_hue_of_their_draft() -> None:
    figure = json.loads(str(figures.waterfall(SELECTED).to_json()))
    (bars,) = figure["data"]
    drafts = [f"draft {number}{part}" for number in (1, 2, 3, 4) for part in ("", ", writing")]
    labels = figure["layout"]["yaxis"]["ticktext"]
    assert labels == ["run", "retrieve", "partition", "all drafts", *drafts, "verify", "decide"]
    assert figure["layout"]["yaxis"]["range"][0] > figure["layout"]["yaxis"]["range"][1], "first row on top"
    colours = dict(zip(labels, bars["marker"]["color"], strict=True))
    red, green, blue = (int(theme.HUES[1][at : at + 2], 16) for at in (1, 3, 5))
    assert colours["draft 2, writing"] == f"rgba({red},{green},{blue},1)"
    assert colours["draft 2"] == f"rgba({red},{green},{blue},0.4)", "its parts have rows of their own"


def test_hovering_tells_times_and_attributes() -> None:
    figure = json.loads(str(figures.waterfall(SELECTED).to_json()))
    place = figure["layout"]["yaxis"]["ticktext"].index("retrieve")
    assert figure["data"][0]["hovertext"][place] == (
        "<b>retrieve</b><br>150.0 ms, from 0.0 to 150.0 ms<br>passages = 8"
    )


def test_a_step_of_less_than_a_millisecond_keeps_its_exact_time() -> None:
    """Its bar is drawn wider than it is; what is told on hovering must not be."""
    short = Span(id="s", parent_id="run", name="fuse", start_ms=10.0, end_ms=10.3)
    figure = json.loads(str(figures.waterfall(replace(SELECTED, spans=(*SELECTED.spans, short))).to_json()))
    (bars,) = figure["data"]
    place = figure["layout"]["yaxis"]["ticktext"].index("fuse")
    assert bars["x"][place] > 10
    assert "0.3 ms, from 10.0 to 10.3 ms" in bars["hovertext"][place]


def test_no_span_of_an_imported_trace_is_lost_and_many_are_quick() -> None:
    """Parents that go in circles, are missing or a chain of thousands: the last took seconds."""
    loop = [Span(id=key, parent_id=other, name="x", start_ms=0.0, end_ms=1.0) for key, other in ("ab", "ba")]
    orphan = Span(id="o", parent_id="gone", name="o", start_ms=0.0, end_ms=1.0)
    chain = [
        Span(id=f"c{at}", parent_id=f"c{at - 1}", name="c", start_ms=at, end_ms=at + 1.0)
        for at in range(5000)
    ]
    trace = replace(SELECTED, spans=(*loop, orphan, *chain))
    begun = time.process_time()
    rows = span_rows(trace)
    lanes.lanes(trace)
    assert time.process_time() - begun < 2
    assert len(rows) == len({id(row.span) for row in rows}) == len(trace.spans)
    assert max(row.depth for row in rows) == 4999


def test_labels_of_an_imported_trace_are_no_markup() -> None:
    """Plotly reads labels as HTML, links included."""
    text = str(figures.waterfall(HOSTILE_TRACE).to_json())
    assert "<script" not in text
    assert "\\u003cscript" not in text


def test_the_figure_is_transparent() -> None:
    layout = json.loads(str(figures.waterfall(SELECTED).to_json()))["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0,0,0,0)"


def test_lanes_leave_out_what_only_groups() -> None:
    assert [lane.label for lane in lanes.lanes(SELECTED)] == [
        "retrieve", "partition", "draft 1", "draft 2", "draft 3", "draft 4", "verify", "decide"
    ]  # fmt: skip
    assert lanes.lanes(STARTED) == ()


def test_repeated_steps_share_a_lane() -> None:
    again = Span(id="again", parent_id="run", name="retrieve", start_ms=200.0, end_ms=300.0)
    lane = lanes.lanes(replace(SELECTED, spans=(*SELECTED.spans, again)))[0]
    assert [(bar.start_ms, bar.end_ms) for bar in lane.bars] == [(0.0, 150.0), (200.0, 300.0)]


def test_an_open_bar_ends_at_the_last_event() -> None:
    lane = lanes.lanes(DRAFTING)[2]
    assert [(bar.kind, bar.start_ms, bar.end_ms, bar.open) for bar in lane.bars] == [
        ("read", 180.0, 900.0, False),
        ("decode", 900.0, 1600.0, True),
    ]


def test_a_model_that_never_says_when_it_has_read_is_judged_by_its_first_token() -> None:
    silent = replace(SELECTED, spans=tuple(span for span in SELECTED.spans if span.name != "decode"))
    assert [bar.end_ms for bar in lanes.lanes(silent)[2].bars] == [910.0, 3520.0]


def test_overlapping_work_counts_once() -> None:
    share = figures.models_share(SELECTED)
    assert share == pytest.approx((3900.0 - 180.0 + 650.0) / 4600.0)
    assert figures.models_share(STARTED) is None


def test_times_of_a_run() -> None:
    assert figures.first_token_ms(SELECTED) == 910.0
    assert figures.verdict_ms(SELECTED) == 4550.0
    assert figures.verdict_ms(DRAFTING) is None
    assert figures.first_token_ms(replace(ABSTAINED, drafts=())) is None


@given(st.floats(min_value=0, max_value=1e9))
def test_ticks_are_round_even_and_reach_the_end(end: float) -> None:
    found = lanes.ticks(end)
    assert found[0] == 0
    assert found[-1] >= end
    assert 2 <= len(found) <= 8
    steps = {round((after - before) / (found[1] - found[0]), 6) for before, after in pairwise(found)}
    assert steps == {1.0}


@given(st.text(), st.lists(st.text(), max_size=3))
def test_marking_evidence_loses_no_character(text: str, rationales: list[str]) -> None:
    assert "".join(piece for piece, _ in split_evidence(text, rationales)) == text


def test_evidence_needs_no_spaces_between_words() -> None:
    pieces = split_evidence("北側の岸壁は三泊までです。犬は紐でつなぐこと。", ["北側の岸壁は三泊まで"])
    assert [piece for piece, marked in pieces if marked] == ["北側の岸壁は三泊までです。"]


def test_plots_and_page_use_the_same_colours() -> None:
    assert tuple(LIGHT[f"--sr-hue-{number}"] for number in range(1, 9)) == theme.HUES
    assert LIGHT["--sr-step"] == theme.STEP
    assert set(DARK) == set(LIGHT)


def test_plot_colours_stand_out_on_both_surfaces() -> None:
    """Plotly cannot follow the theme, so one set of colours must do for both."""
    for colour in (*theme.HUES, theme.PLOT_TEXT):
        assert (
            min(_contrast(colour, LIGHT["--sr-surface"]), _contrast(colour, DARK["--sr-surface"])) >= 2.7
        ), colour


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_reaches_aa(palette: dict[str, str]) -> None:
    for surface in ("--sr-surface", "--sr-page", "--sr-track", "--sr-gold-soft"):
        for text in ("--sr-text", "--sr-muted"):
            assert _contrast(palette[text], palette[surface]) >= 4.5, (text, surface)
    for number in range(1, 9):
        assert _contrast(palette[f"--sr-hue-{number}"], palette["--sr-surface"]) >= 4.5
        assert _contrast(palette[f"--sr-hue-{number}"], palette["--sr-gold-soft"]) >= 4.5
    assert _contrast(palette["--sr-gold-ink"], palette["--sr-gold"]) >= 4.5
    assert _contrast(palette["--sr-bad"], palette["--sr-bad-soft"]) >= 4.5
    assert _contrast(palette["--sr-good"], palette["--sr-good-soft"]) >= 4.5
    assert _contrast(palette["--sr-text"], palette["--sr-mark"]) >= 4.5
    assert _contrast(palette["--sr-gold"], palette["--sr-surface"]) >= 3
    assert _contrast(palette["--sr-control"], palette["--sr-surface"]) >= 3
    assert _contrast(palette["--sr-focus"], palette["--sr-surface"]) >= 4.5


def test_colours_are_written_once() -> None:
    outside = CSS.split(".sr-h0", 1)[1]
    assert not re.findall(r"#[0-9a-f]{3,8}\b|rgba?\(", outside)


def test_no_rule_loses_its_border_when_gradio_rewrites_the_sheet() -> None:
    """`border: ... var()` next to `border-top` in one rule serialises to the latter alone."""
    for body in re.findall(r"\{([^{}]*)\}", CSS):
        assert not (
            re.search(r"\bborder: [^;]*var\(", body)
            and re.search(r"\bborder-(?!radius|collapse|spacing)", body)
        ), body


def test_the_theme_asks_no_other_host_for_fonts() -> None:
    chosen = theme.theme()
    assert not chosen._stylesheets
    assert "http" not in "".join(chosen._font_css)
    assert chosen.body_background_fill == chosen.body_background_fill_dark == "var(--sr-page)"
