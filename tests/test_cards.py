"""What a visitor would notice on the page's pieces, in every state of a run."""

import re
from dataclasses import replace

import pytest

from specrag.tracing.trace import Trace
from specrag.types import Exchange, ModelInfo, Scores, Span
from specrag.ui import cards
from specrag.ui.theme import CSS_PATH
from tests.ui_html import Element, find, inside, read
from tests.ui_runs import HOSTILE_HOPS, HOSTILE_WRITER, RUNS
from tests.ui_traces import (
    ABSTAINED,
    CANCELLED,
    DISPUTED,
    DRAFTING,
    FAILED,
    FALLBACK,
    FALLBACK_WRITING,
    HOSTILE,
    HOSTILE_TRACE,
    LONG_WORD,
    RETRIEVED,
    SELECTED,
    STARTED,
    STATES,
    VERIFYING,
)

EVERY = STATES | RUNS
SMALL = ModelInfo(name="small-135m", parameters=134_515_008, device="cpu", dtype="float32", context=8192)
LARGE = ModelInfo(name="large-1.7b", parameters=1_711_000_000, device="cpu", dtype="float32", context=8192)


def _all(trace: Trace) -> str:
    return "".join(
        (
            cards.status_line(trace),
            cards.answer_card(trace),
            cards.passages_strip(trace),
            cards.board(trace, colour="none" if trace.status == "running" else "drafter"),
            cards.answer_card(trace, colour="verifier"),
            cards.timeline(trace),
        )
    )


def _card(html: str, number: int) -> Element:
    return find(html, "sr-card")[number - 1]


def _texts(elements: list[Element]) -> list[str]:
    return [element.text for element in elements]


def _width(bar: Element) -> float:
    found = re.search(r"width:([\d.]+)%", bar.attributes["style"])
    assert found
    return float(found[1])


@pytest.mark.parametrize("state", EVERY)
def test_every_state_is_well_formed_and_its_popovers_exist(state: str) -> None:
    """A button without its panel does nothing, and the visitor never learns why."""
    elements = read(_all(EVERY[state]))
    panels = [element.attributes["id"] for element in elements if "popover" in element.attributes]
    targets = {
        element.attributes["popovertarget"] for element in elements if "popovertarget" in element.attributes
    }
    assert targets <= set(panels)
    assert len(set(panels)) == len(panels)
    assert all(element.tag == "button" for element in elements if "popovertarget" in element.attributes)


@pytest.mark.parametrize("state", EVERY)
def test_no_state_carries_scripts_or_handlers(state: str) -> None:
    elements = read(_all(EVERY[state]))
    assert not [one for one in elements if one.tag in {"script", "style", "img", "iframe", "form"}]
    assert not [key for one in elements for key in one.attributes if key.startswith("on")]


def test_hostile_text_is_shown_as_it_is_and_never_as_markup_or_template() -> None:
    html = (
        _all(HOSTILE_TRACE)
        + _all(HOSTILE_HOPS)
        + _all(HOSTILE_WRITER)
        + cards.notice("error", HOSTILE)
        + cards.empty_state(HOSTILE, HOSTILE, [HOSTILE])
    )
    html += cards.loading(0.5, HOSTILE) + cards.models_line(
        replace(SMALL, name=HOSTILE), LARGE, HOSTILE, 1, 1
    )
    assert "<script" not in html
    assert "${" not in html
    assert "{{" not in html
    assert not re.search("[\u202a-\u202e\u2066-\u2069\ud800-\udfff\x00]", html)
    answer = find(html, "sr-answer-text")[0].text
    assert answer.startswith("<script>alert(1)</script> ${document.title} {{ 7*7 }} \"quoted\" 'single'")
    assert LONG_WORD in find(html, "sr-text")[1].text or LONG_WORD in html


def test_only_web_addresses_become_links() -> None:
    links = [one.attributes["href"] for one in find(cards.passages_strip(HOSTILE_TRACE), "a")]
    assert links == ['https://example.org/a?b="><script>']
    assert "javascript:" not in "".join(links)


def test_ids_are_unique_to_scope_and_run_and_safe() -> None:
    """Two tabs may show one run: the panel of a hidden tab cannot open."""
    ids = {
        scope: {
            one.attributes["id"]
            for one in read(cards.passages_strip(HOSTILE_TRACE, scope=scope))
            if "id" in one.attributes
        }
        for scope in ("ask", "traces")
    }
    assert not ids["ask"] & ids["traces"]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", one) for one in ids["ask"])
    assert "sr-ask-run-1-p1" in cards.passages_strip(SELECTED)


def test_the_ribbon_is_on_the_winner_and_nowhere_else() -> None:
    html = cards.board(SELECTED)
    winners = find(html, "sr-winner")
    assert [one.attributes["aria-label"] for one in winners] == ["Draft 2, winner"]
    assert _texts(inside(html, winners[0], "sr-ribbon")) == ["winner"]
    assert len(find(html, "sr-ribbon")) == 1


@pytest.mark.parametrize("index", range(4))
def test_the_ribbon_follows_the_decision(index: int) -> None:
    """The index is that of `drafts`; a card stands for a subset, in the subsets' order."""
    assert SELECTED.decision
    swapped = replace(
        SELECTED,
        drafts=SELECTED.drafts[::-1],
        decision=replace(SELECTED.decision, draft_index=index),
    )
    (winner,) = find(cards.board(swapped), "sr-winner")
    assert winner.attributes["aria-label"] == f"Draft {4 - index}, winner"


@pytest.mark.parametrize("trace", [FALLBACK, ABSTAINED, FAILED, CANCELLED, DRAFTING, VERIFYING])
def test_no_ribbon_without_a_winner(trace: Trace) -> None:
    assert not find(cards.board(trace), "sr-ribbon")


def test_bars_are_as_wide_as_their_scores() -> None:
    html = cards.board(SELECTED)
    card = _card(html, 2)
    widths = [_width(one) for one in inside(html, card, "i")]
    assert widths == [84.0, 55.0, 93.0, 79.0, 83.0]
    assert _texts(inside(html, card, "sr-value")) == ["0.84", "0.55", "0.93", "0.79", "0.83"]
    assert _texts(inside(html, card, "dt")) == [
        "draft",
        "self-containment",
        "self-reflection",
        "relevance",
        "combined",
    ]


def test_a_long_text_can_be_scrolled_by_keyboard() -> None:
    """A rationale that is taller than its place and points at nothing could not be reached."""
    long = replace(SELECTED.drafts[0], rationale="nothing of this is said anywhere " * 20)
    board = cards.board(replace(SELECTED, drafts=(long, *SELECTED.drafts[1:])))
    stops = [one.attributes.get("tabindex") for one in find(board, "sr-text")]
    assert stops == ["0", None, None, None]


def test_the_page_says_what_its_bars_mean_where_they_stand() -> None:
    """Five names were left to be guessed, and one of them differed from tab to tab."""
    html = cards.board(SELECTED)
    (key,) = find(html, "sr-score-key")
    named = _texts(inside(html, key, "dt"))
    assert named == _texts(inside(html, _card(html, 2), "dt"))
    assert all(inside(html, key, "dd")[at].text for at in range(len(named)))
    assert not find(cards.board(DRAFTING), "sr-score-key")


def test_a_small_score_is_not_nothing_and_an_unknown_one_is_no_zero() -> None:
    scores = Scores(draft=0.004, combined=None, relevance=float("nan"))
    one = replace(SELECTED, drafts=(replace(SELECTED.drafts[0], scores=scores), *SELECTED.drafts[1:]))
    html = cards.board(one)
    values = _texts(inside(html, _card(html, 1), "sr-value"))
    assert values == ["<0.01", "–", "–", "–", "–"]


def test_a_caret_stands_where_a_draft_is_being_written() -> None:
    html = cards.board(DRAFTING)
    carets = {number: len(inside(html, _card(html, number), "sr-caret")) for number in range(1, 5)}
    assert carets == {1: 0, 2: 1, 3: 1, 4: 0}
    caret = inside(html, _card(html, 2), "sr-caret")[0]
    assert "sr-draft-answer" in caret.parents[-2].classes
    assert _texts(inside(html, _card(html, 4), "sr-label")) == ["Perspective", "Reading"]
    assert not find(cards.board(SELECTED), "sr-caret")


def test_details_wait_until_the_run_is_over() -> None:
    """Each update would close them again."""
    assert not find(cards.board(DRAFTING), "details")
    html = cards.board(SELECTED)
    assert len(find(html, "details")) == 4 + 1  # of each draft, and on what the bars mean
    assert "Question: How long?" in inside(html, _card(html, 1), "pre")[0].text


def test_cards_say_who_agrees() -> None:
    assert _texts(find(cards.board(SELECTED), "sr-note")) == [
        "agrees with none",
        "agrees with 3",
        "agrees with 2",
        "abstained",
    ]
    assert _texts(find(cards.board(FAILED), "sr-note")) == ["failed"] * 4
    assert "The drafter ran out of memory." in _card(cards.board(FAILED), 1).text
    assert _texts(find(cards.board(CANCELLED), "sr-note"))[1:] == ["stopped"] * 3


def test_tokens_carry_the_probability_of_the_chosen_model() -> None:
    assert not find(cards.board(SELECTED), "sr-token")
    drafter = find(cards.board(SELECTED, colour="drafter"), "sr-token")
    verifier = find(cards.board(SELECTED, colour="verifier"), "sr-token")
    assert (
        "".join(one.pieces[0] for one in drafter[:12])
        == SELECTED.drafts[0].rationale[: len("".join(one.pieces[0] for one in drafter[:12]))]
    )
    assert re.fullmatch(r"p = 0\.\d{4}", drafter[0].attributes["title"])
    assert re.fullmatch(r"--p:\d+\.\d\d%", drafter[0].attributes["style"])
    assert drafter[0].attributes["title"] != verifier[0].attributes["title"]
    assert find(cards.board(SELECTED, colour="verifier"), "sr-colour-verifier")


def test_tokens_are_a_list_that_one_stop_of_the_tab_key_leads_into() -> None:
    """A page with a stop for each token would be no use by keyboard."""
    html = cards.board(SELECTED, colour="drafter")
    lists = [one for one in read(html) if one.attributes.get("role") == "listbox"]
    assert [one.attributes["aria-label"] for one in lists][:2] == [
        "Rationale of draft 1, token by token",
        "Answer of draft 1, token by token",
    ]
    for one in lists:
        tokens = inside(html, one, "sr-token")
        assert [token.attributes["tabindex"] for token in tokens] == ["0", *["-1"] * (len(tokens) - 1)]
        assert all(token.attributes["role"] == "option" for token in tokens)
        said = [token.attributes["aria-label"].rsplit(" ", 1)[1] for token in tokens]
        assert [f"p = {value}" for value in said] == [token.attributes["title"] for token in tokens]


def test_the_least_likely_tokens_and_those_without_a_value_are_told_apart_without_colour() -> None:
    html = cards.board(HOSTILE_TRACE, colour="drafter")
    first, second = find(html, "sr-token")[:2]
    assert "sr-rare" in first.classes
    assert first.attributes["title"] == "p = 0.0000"
    assert "sr-no-value" in second.classes
    assert second.attributes["title"] == "p = no value"
    legend = find(html, "sr-legend")[0].text
    assert "underlined below 0.1" in legend
    assert "dashed no value" in legend


def test_the_legend_names_the_drafts_that_the_model_said_nothing_of() -> None:
    silent = replace(SELECTED.drafts[2], verifier_tokens=())
    trace = replace(SELECTED, drafts=(*SELECTED.drafts[:2], silent, SELECTED.drafts[3]))
    assert "no values of draft 3" in find(cards.board(trace, colour="verifier"), "sr-legend")[0].text
    assert "no values of" not in find(cards.board(trace, colour="drafter"), "sr-legend")[0].text


@pytest.mark.parametrize("colour", ["drafter", "verifier"])
def test_an_answer_that_is_a_draft_is_coloured_as_its_draft_is(colour: cards.Colour) -> None:
    """Only answers that a model had written itself were coloured; the selected one stayed plain."""
    html = cards.answer_card(SELECTED, colour=colour)
    tokens = find(html, "sr-token")
    assert "".join(one.pieces[0] for one in tokens) == SELECTED.drafts[1].answer
    board = cards.board(SELECTED, colour=colour)
    of_draft = [one.attributes["title"] for one in inside(board, _card(board, 2), "sr-token")]
    assert [one.attributes["title"] for one in tokens] == of_draft[-len(tokens) :]


def test_a_sentence_of_a_rationale_points_at_the_evidence_that_it_repeats() -> None:
    html = cards.board(SELECTED)
    said = inside(html, _card(html, 2), "sr-said")
    assert [one.text for one in said] == [SELECTED.drafts[1].rationale]
    marks = {one.attributes["id"]: one.text for one in find(cards.passages_strip(SELECTED), "mark")}
    pointed = said[0].attributes["data-sr-evidence"].split()
    assert said[0].attributes["href"] == f"#{pointed[0]}"
    assert marks[pointed[0]] == "From 1 March 2025 the stay at the north quay is shortened to three nights."
    assert "This notice replaces section 4 of the rules of 2019." in [marks[one] for one in pointed]
    assert not find(cards.board(SELECTED, colour="drafter"), "sr-said")


@pytest.mark.parametrize("state", EVERY)
def test_whatever_a_sentence_points_at_is_marked_in_a_panel(state: str) -> None:
    trace = EVERY[state]
    marks = {one.attributes.get("id") for one in find(cards.passages_strip(trace), "mark")}
    for one in find(cards.board(trace), "sr-said"):
        assert set(one.attributes["data-sr-evidence"].split()) <= marks


def test_a_rationale_that_is_still_being_written_points_at_nothing() -> None:
    """Its last sentence is no sentence yet, and the panels do not know it."""
    html = cards.board(DRAFTING)
    assert not inside(html, _card(html, 2), "sr-said")
    assert inside(html, _card(html, 1), "sr-said")


def test_a_follow_up_says_what_it_follows_and_what_was_asked_instead() -> None:
    earlier = (Exchange(question=HOSTILE, answer="Seven."), Exchange(question="Where?", answer="Here."))
    html = cards.answer_card(replace(SELECTED, earlier=earlier, rewritten='How long may a "boat" stay here?'))
    (line,) = find(html, "sr-asked")
    assert line.text == 'Follow-up to “Where?”. Asked as: How long may a "boat" stay here? Edit'
    (edit,) = inside(html, line, "button")
    assert edit.attributes["data-sr-question"] == 'How long may a "boat" stay here?'
    assert not find(cards.answer_card(SELECTED), "sr-asked")


@pytest.mark.parametrize(
    ("how", "text"),
    [("terms", "the main words of the conversation were added"), ("model", "rewritten by a model")],
)
def test_a_follow_up_says_how_it_was_rewritten(how: str, text: str) -> None:
    span = Span(id="rew", parent_id="run", name="rewrite", start_ms=1.0, attributes={"how": how})
    trace = replace(STARTED, rewritten="How long may a boat stay in winter?", spans=(span,))
    assert f"in winter? ({text}) Edit" in find(cards.answer_card(trace), "sr-asked")[0].text
    assert "Making the follow-up a question that stands alone" in cards.status_line(trace)
    ended = replace(trace, spans=(replace(span, end_ms=2.0),))
    assert "Looking for passages" in cards.status_line(ended)


def test_before_the_subsets_blank_cards_stand_for_the_drafts() -> None:
    assert len(find(cards.board(STARTED), "sr-card-blank")) == 4
    asked = replace(STARTED, config={"drafts": 7})
    assert len(find(cards.board(asked), "sr-card-blank")) == 7
    hostile = replace(STARTED, config={"drafts": 10**9})
    assert len(find(cards.board(hostile), "sr-card-blank")) <= 16
    assert not find(cards.board(replace(STARTED, pipeline="standard")), "sr-card")


def test_every_look_is_different() -> None:
    traces = (SELECTED, FALLBACK, ABSTAINED, FAILED, CANCELLED, DRAFTING)
    looks = [find(cards.answer_card(trace), "sr-answer")[0] for trace in traces]
    assert len({one.attributes["class"] for one in looks}) == len(traces)
    assert len({find(cards.answer_card(trace), "sr-eyebrow")[0].text for trace in traces}) == len(traces)


def test_the_answer_names_its_sources_its_reason_and_its_doubts() -> None:
    html = cards.answer_card(SELECTED)
    assert find(html, "sr-answer-text")[0].text == "Three nights, since the 2025 notice. [2] [5]"
    assert [one.attributes["popovertarget"] for one in find(html, "sr-cite")] == [
        "sr-ask-run-1-p2",
        "sr-ask-run-1-p5",
    ]
    assert _texts(find(html, "li")) == [
        "margin 0.40",
        "draft 3 agrees",
        "draft 1 differs",
        "draft 4 abstained",
        "confidence 0.70 (share of the score, not calibrated)",
    ]
    assert SELECTED.decision
    assert find(html, "sr-reason")[0].text == SELECTED.decision.reason


def test_figures_of_a_run() -> None:
    html = cards.answer_card(SELECTED)
    figures = dict(zip(_texts(find(html, "dt")), _texts(find(html, "dd")), strict=True))
    assert figures == {
        "first draft token": "910 ms",
        "verdict": "4.5 s",
        "total": "4.6 s",
        "drafter read / wrote": "1,284 / 171 tok",
        "verifier read / wrote": "412 / 0 tok",
        "verifier scoring passes": "1",
        "models' share of the run": "95 %",
    }


def test_a_citation_that_is_not_among_the_passages_opens_nothing_and_is_shown() -> None:
    html = cards.answer_card(HOSTILE_TRACE)
    assert _texts(find(html, "sr-cite")) == ["[1]", "[2]"]
    assert _texts(find(html, "sr-cite-lost")) == ["[?]"]


def test_a_dispute_shows_every_side_with_source_and_date() -> None:
    assert not find(cards.answer_card(SELECTED), "sr-disputed")
    html = cards.answer_card(DISPUTED)
    (box,) = find(html, "sr-disputed")
    sides = _texts(inside(html, box, "li"))
    assert sides == [
        (
            "Three nights, since the 2025 notice. drafts 2, 3 "
            "2 Quay notice 2025 p. 1 2025-03-01 "
            "From 1 March 2025 the stay at the north quay is shortened to three nights. "
            "5 Minutes of May p. 3 2025-05-12 The board noted that the new limit of three nights is respected."
        ),
        (
            "Seven nights draft 1 1 Harbour rules 2019 p. 4 2019-05-01 "
            "Visiting boats may stay at the north quay for seven nights."
        ),
    ]


def test_a_side_of_a_dispute_opens_its_passages() -> None:
    html = cards.answer_card(DISPUTED)
    (box,) = find(html, "sr-disputed")
    opened = [one.attributes["popovertarget"] for one in inside(html, box, "sr-source")]
    assert opened == ["sr-ask-run-2-p2", "sr-ask-run-2-p5", "sr-ask-run-2-p1"]


def test_a_dispute_lists_its_sides_and_not_what_its_sentence_happens_to_quote() -> None:
    """The sides once were found by looking for the answers in the sentence, and any quote made one."""
    assert DISPUTED.decision is not None
    conflict = f"{DISPUTED.decision.conflict} Draft 4 says “{DISPUTED.drafts[3].answer}”."
    trace = replace(DISPUTED, decision=replace(DISPUTED.decision, conflict=conflict))
    (box,) = find(cards.answer_card(trace), "sr-disputed")
    assert len(inside(cards.answer_card(trace), box, "li")) == 2


def test_a_side_whose_passages_are_not_in_the_trace_still_names_its_sources() -> None:
    """A trace from outside may hold the decision and not the passages."""
    html = cards.answer_card(replace(DISPUTED, passages=()))
    (box,) = find(html, "sr-disputed")
    assert _texts(inside(html, box, "li")) == [
        "Three nights, since the 2025 notice. drafts 2, 3 Quay notice 2025 (2025-03-01) Minutes of May (2025-05-12)",
        "Seven nights draft 1 Harbour rules 2019 (2019-05-01)",
    ]
    assert not find(html, "sr-source")


def test_a_fallback_streams_and_wins_no_gold() -> None:
    html = cards.answer_card(FALLBACK_WRITING)
    assert find(html, "sr-caret")
    assert find(html, "sr-eyebrow")[0].text == "The verifier is writing"
    css = CSS_PATH.read_text(encoding="utf-8")
    golden = re.findall(r"^([^{}\n]*)\{[^}]*var\(--sr-gold[^}]*\}", css, re.MULTILINE)
    assert {name.strip() for name in golden} == {
        ".sr-look-selected",
        ".sr-winner",
        ".sr-ribbon",
    }


def test_chips_show_place_score_and_hues_and_the_rest_waits_behind_more() -> None:
    html = cards.passages_strip(SELECTED)
    chips = [
        one
        for one in find(html, "sr-chip")
        if not any("popover" in parent.attributes for parent in one.parents)
    ]
    assert [one.text for one in chips][:2] == [
        "1 Harbour rules 2019 p. 4 0.71 read by draft 1",
        "2 Quay notice 2025 p. 1 0.69 read by drafts 2, 3",
    ]
    assert chips[-1].text == "2 more"
    dots = inside(html, chips[1], "sr-dot")
    assert [one.attributes["class"] for one in dots] == ["sr-dot sr-h2", "sr-dot sr-h3"]
    assert len([one for one in find(cards.passages_strip(RETRIEVED), "sr-chip") if one.text == "2 more"]) == 0


def test_the_panel_marks_what_the_rationales_rest_on() -> None:
    html = cards.passages_strip(SELECTED)
    panel = next(one for one in find(html, "sr-panel") if one.attributes["id"].endswith("p2"))
    assert _texts(inside(html, panel, "mark")) == [
        "From 1 March 2025 the stay at the north quay is shortened to three nights.",
        "This notice replaces section 4 of the rules of 2019.",
    ]
    assert inside(html, panel, "sr-passage")[0].text == SELECTED.passages[1].text
    assert not find(cards.passages_strip(RETRIEVED), "mark")


@pytest.mark.parametrize(
    ("trace", "text"),
    [
        (None, "Ready."),
        (STARTED, "Looking for passages"),
        (RETRIEVED, "8 passages found"),
        (DRAFTING, "Drafting: 1 of 4 drafts done"),
        (VERIFYING, "Verifying 4 drafts in one pass"),
        (SELECTED, "Done in 4.6 s: draft 2 of 4 was selected."),
        (FALLBACK_WRITING, "No draft was good enough: the verifier answers afresh from all passages"),
        (FALLBACK, "Done in 6.4 s: no draft was good enough, the verifier answered from all passages."),
        (ABSTAINED, "Done in 4.6 s: the documents do not hold an answer."),
        (CANCELLED, "Stopped: the visitor pressed Stop."),
        (FAILED, "Failed: No draft could be written: the drafter ran out of memory; choose a smaller model."),
    ],
)
def test_the_status_line_says_where_the_run_stands(trace: Trace | None, text: str) -> None:
    (line,) = find(cards.status_line(trace), "p")
    assert line.text == text


def test_the_status_line_has_no_running_clock() -> None:
    """A screen reader would read every tick of it."""
    later = replace(DRAFTING, elapsed_ms=9999.0)
    assert cards.status_line(later) == cards.status_line(DRAFTING)


def test_lanes_are_as_long_as_their_spans() -> None:
    html = cards.timeline(SELECTED)
    lanes = [one for one in find(html, "sr-lane") if "sr-axis" not in one.classes]
    assert _texts(lanes) == [
        "retrieve",
        "partition",
        "draft 1",
        "draft 2",
        "draft 3",
        "draft 4",
        "verify",
        "decide",
    ]
    read_part, written = inside(html, lanes[3], "sr-span")
    assert _width(read_part) == pytest.approx(100 * 720 / 5000)
    assert _width(written) == pytest.approx(100 * 3000 / 5000)
    assert {"sr-span-read"} <= read_part.classes
    assert "sr-h2" in lanes[3].classes
    assert _texts(find(html, "sr-tick")) == ["0", "1 s", "2 s", "3 s", "4 s", "5 s"]


def test_the_timeline_can_be_heard() -> None:
    html = cards.timeline(SELECTED)
    assert find(html, "sr-lanes")[0].attributes["aria-hidden"] == "true"
    rows = [_texts(inside(html, row, "td")) for row in find(html, "tr")]
    assert ["draft 2, reading", "180 ms", "720 ms"] in rows
    assert ["decide", "4.5 s", "2 ms"] in rows


def test_a_draft_that_still_reads_has_one_faint_open_bar() -> None:
    html = cards.timeline(DRAFTING)
    lane = next(one for one in find(html, "sr-lane") if one.text == "draft 4")
    (bar,) = inside(html, lane, "sr-span")
    assert {"sr-span-read", "sr-open"} <= bar.classes


def test_a_run_without_spans_has_no_timeline_once_it_is_over() -> None:
    assert cards.timeline(replace(FAILED, spans=())) == ""
    assert cards.timeline(STARTED)


def test_the_header_is_honest_about_one_model_in_both_roles() -> None:
    same = cards.models_line(SMALL, replace(SMALL, device="cuda"), "Harbour handbook", 12, 1)
    assert "no speed-up and no independent judgement" in same
    assert "12 documents, 1 chunk" in find(same, "sr-models")[0].text
    two = find(cards.models_line(SMALL, LARGE, "Harbour handbook", 1, 148), "sr-models")[0].text
    assert (
        two
        == "drafter small-135m 135M verifier large-1.7b 1.7B collection Harbour handbook, 1 document, 148 chunks"
    )


@pytest.mark.parametrize(
    ("share", "width"), [(0.42, 42.0), (7.0, 100.0), (-1.0, 0.0), (None, 30.0), (float("nan"), 30.0)]
)
def test_loading_shows_how_far_it_is(share: float | None, width: float) -> None:
    html = cards.loading(share, "Fetching the weights")
    assert _width(find(html, "i")[1]) == width
    known = share is not None and share == share  # noqa: PLR0124 - NaN is not
    assert ("aria-valuenow" in find(html, "sr-progress")[0].attributes) is known


def test_errors_are_announced_at_once() -> None:
    assert find(cards.notice("error", "It failed."), "p")[0].attributes["role"] == "alert"
    assert find(cards.notice("info", "It is."), "p")[0].attributes["role"] == "status"
