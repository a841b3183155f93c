"""Which sentences of a passage are marked as evidence, in every script, and what is told of a passage."""

from dataclasses import replace

import pytest

from specrag.ui import cards
from specrag.ui.evidence import evidence_in, split_evidence, words
from tests.ui_html import find, inside
from tests.ui_traces import SELECTED


@pytest.mark.parametrize(
    ("text", "told", "marked"),
    [
        (
            "The stay is shortened to three nights. Dogs are kept on a lead.",
            "The notice shortens the stay to three nights.",
            "The stay is shortened to three nights.",
        ),
        ("电池容量为六百四十瓦时。颜色是红色的。", "电池容量六百四十瓦时", "电池容量为六百四十瓦时。"),
        ("ما سعة البطارية؟ السعة ٦٤٠ واط. اللون أحمر.", "السَّعَة ٦٤٠ واط", "السعة ٦٤٠ واط."),
        ("क्षमता 640 वाट है। रंग लाल है।", "क्षमता 640 वाट है", "क्षमता 640 वाट है।"),
        (
            "Der Rahmen hat zehn Jahre Garantie. Öl hilft.",
            "zehn Jahre Garantie",
            "Der Rahmen hat zehn Jahre Garantie.",
        ),
    ],
)
def test_a_repeated_sentence_is_marked_in_every_script(text: str, told: str, marked: str) -> None:
    """Sentences that end in an Arabic question mark or a danda once ran together, so all of it was marked."""
    assert evidence_in(text, [told]) == (marked,)


def test_numbers_count_however_short_they_are() -> None:
    """With words of up to three letters dropped, "5 h" was nothing to go by."""
    assert evidence_in("It takes 5 h to charge. It takes 2 h to cool.", ["5 h to charge"]) == (
        "It takes 5 h to charge.",
    )
    assert {"3.4", "1,000"} <= words("It weighs 3.4 kg, or 1,000 nuts.")


def test_the_sentence_that_holds_the_answer_is_marked_when_no_rationale_repeats_one() -> None:
    """A draft that only says "160 kilograms" left its citation without a mark, although one sentence says it."""
    text = "Rain is likely in the hills. The bike carries at most 160 kilograms since March. It has a bell."
    answer = "160 kilograms"
    assert evidence_in(text, [], [answer]) == ("The bike carries at most 160 kilograms since March.",)
    assert evidence_in(text, ["So it is."], [answer]) == (
        "The bike carries at most 160 kilograms since March.",
    )


def test_among_equal_sentences_the_one_nearest_to_the_rationale_is_marked() -> None:
    text = "The old rack holds 25 kilograms. The new front basket holds 25 kilograms."
    assert evidence_in(text, ["The basket"], ["25 kilograms"]) == (
        "The new front basket holds 25 kilograms.",
    )


def test_a_passage_that_shares_nothing_stays_unmarked() -> None:
    """A mark on every cited passage would make every citation look sound."""
    assert evidence_in("Soup needs onions.", ["The load is 160 kilograms."], ["160 kilograms"]) == ()
    assert evidence_in("Soup needs onions.", [], []) == ()
    assert evidence_in("", ["anything"], ["anything"]) == ()
    long = "The founder of the firm, as the town chronicle of the year tells, came from abroad with tools."
    assert evidence_in("They came late.", [], [long]) == (), "one word of eleven is chance"


def test_pieces_join_to_the_text_also_where_a_sentence_comes_twice() -> None:
    text = ' "No." "No."\n\n1. One\r\n2. Two…  End'
    pieces = split_evidence(text, ["One"], ["Two"])
    assert "".join(piece for piece, _ in pieces) == text


def test_what_a_person_should_know_of_the_search_stands_above_its_passages() -> None:
    """An answer from weakly related passages looked as sound as any other."""
    weak = replace(SELECTED, retrieval_note="No passage is <close> to the question.")
    (note,) = find(cards.passages_strip(weak), "sr-retrieval-note")
    assert note.text == "No passage is <close> to the question."
    assert not find(cards.passages_strip(SELECTED), "sr-retrieval-note")


def test_a_quick_look_tells_section_ranks_and_header_row_and_leads_to_the_document() -> None:
    one = replace(SELECTED.passages[0], section="Quays", lead="Boat | Nights", dense_rank=2, bm25_rank=None)
    html = cards.passages_strip(replace(SELECTED, passages=(one, *SELECTED.passages[1:])))
    panel = find(html, "sr-panel")[0]
    told = " ".join(item.text for item in inside(html, panel, "sr-meta"))
    assert "sectionQuays" in told
    assert "rank by meaning2" in told
    assert "rank by words–" in told
    assert "Boat | Nights" in inside(html, panel, "sr-lead")[0].text
    (button,) = [item for item in inside(html, panel, "button") if "data-sr-action" in item.attributes]
    assert button.attributes["data-sr-id"] == "run-1:p1"


def test_a_citation_says_its_page_and_opens_its_document() -> None:
    (first, *_) = find(cards.answer_card(SELECTED), "sr-cite")
    assert first.attributes["data-sr-action"] == "open"
    assert first.attributes["data-sr-id"] == "run-1:p2"
    assert first.attributes["aria-label"] == "Open passage 2, page 1"
    assert first.attributes["data-sr-page"] == "1"
