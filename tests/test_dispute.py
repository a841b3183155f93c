"""Disputes: who is shown against whom, with which sources, and in which words."""

from specrag.dispute import conflict_of, sides_of
from specrag.types import Draft, Passage, Side


def passage(name: str, title: str, text: str, date: str | None = None) -> Passage:
    return Passage(
        id=name,
        document_id=name,
        title=title,
        text=text,
        page=None,
        source=f"{name}.md",
        published_at=date,
        score=0.5,
    )


MANUAL = passage("manual", "Owner's manual", "The load is at most 180 kilograms.", "2023-09-04")
BULLETIN = passage("bulletin", "Service bulletin", "The load is now 160 kilograms.", "2025-03-10")
NOTICE = passage("notice", "Notice", "Never load more than 160 kilograms.", "2025-04-01")
FORUM = passage("forum", "Forum", "A rider carried 200 kilograms.")
ALL = [MANUAL, BULLETIN, NOTICE, FORUM]


def draft(answer: str, *cited: str) -> Draft:
    return Draft(subset_id=answer, answer=answer, citations=cited, finish_reason="stop")


def sides(*drafts: Draft, passages: list[Passage] = ALL) -> tuple[Side, ...]:
    return sides_of(drafts, [(number,) for number in range(len(drafts))], passages)


OLD, NEW = draft("180 kilograms", "manual"), draft("160 kilograms", "bulletin")


def test_both_sides_stand_with_their_sources_the_chosen_one_first() -> None:
    assert sides(OLD, NEW) == (
        Side(
            draft_index=0,
            answer="180 kilograms",
            passage_ids=("manual",),
            sources=("Owner's manual (2023-09-04)",),
        ),
        Side(
            draft_index=1,
            answer="160 kilograms",
            passage_ids=("bulletin",),
            sources=("Service bulletin (2025-03-10)",),
        ),
    )


def test_the_sentence_names_both_and_prefers_neither_but_says_which_is_newer() -> None:
    assert conflict_of(sides(OLD, NEW), ALL) == (
        "Sources disagree: Owner's manual (2023-09-04) says “180 kilograms”, but Service bulletin (2025-03-10) "
        "says “160 kilograms”. The source of 2025-03-10 is the newer one."
    )


def test_without_two_dates_nothing_is_called_newer() -> None:
    against = sides(OLD, draft("200 kilograms", "forum"))
    assert conflict_of(against, ALL) == (
        "Sources disagree: Owner's manual (2023-09-04) says “180 kilograms”, but Forum says “200 kilograms”."
    )


def test_a_year_is_not_newer_than_a_day_of_that_year() -> None:
    yearly = passage("yearly", "Yearly", "170 kilograms", "2025")
    against = sides(NEW, draft("170 kilograms", "yearly"), passages=[*ALL, yearly])
    assert "newer" not in (conflict_of(against, [*ALL, yearly]) or "newer")


def test_three_sides_are_named_and_the_newest_is_said() -> None:
    later = passage("later", "Later", "170 kilograms", "2026")
    known = [*ALL, later]
    against = sides(OLD, NEW, draft("170 kilograms.", "later"), passages=known)
    assert conflict_of(against, known) == (
        "Sources disagree: Owner's manual (2023-09-04) says “180 kilograms”, Service bulletin (2025-03-10) says "
        "“160 kilograms”, and Later (2026) says “170 kilograms”. The source of 2026 is the newest one."
    )


def test_the_same_in_other_words_joins_its_side() -> None:
    chosen, rival = sides(OLD, NEW, draft("at most 160 kg since March", "notice"))
    assert chosen.answer == "180 kilograms"
    assert rival.passage_ids == ("bulletin", "notice")
    assert rival.sources == ("Service bulletin (2025-03-10)", "Notice (2025-04-01)")
    assert "Service bulletin (2025-03-10) and Notice (2025-04-01) say “160" in (
        conflict_of((chosen, rival), ALL) or ""
    )


def test_the_same_in_other_words_is_no_dispute() -> None:
    assert sides(NEW, draft("at most 160 kg since March", "notice")) == ()


def test_another_reading_of_the_same_passages_is_no_dispute_between_sources() -> None:
    assert sides(draft("180 kilograms", "manual"), draft("160 kilograms", "manual")) == ()


def test_a_side_that_shares_a_passage_but_has_one_of_its_own_is_shown() -> None:
    """A singleton cluster stands in every subset, and both sides may cite it."""
    assert len(sides(NEW, draft("180 kilograms", "manual", "bulletin"))) == 2


def test_who_cites_nothing_or_what_its_passage_does_not_hold_disputes_nothing() -> None:
    assert sides(OLD, draft("160 kilograms")) == ()
    assert sides(draft("180 kilograms"), NEW) == ()
    assert sides(OLD, draft("150 kilograms", "bulletin")) == ()
    assert sides(draft("190 kilograms", "manual"), NEW) == ()


def test_an_answer_of_another_kind_disputes_nothing() -> None:
    assert sides(OLD, draft("a bike", "forum")) == ()


def test_without_passages_the_drafts_speak() -> None:
    found = sides(OLD, NEW, passages=[])
    assert [side.sources for side in found] == [(), ()]
    assert conflict_of(found, []) == (
        "Sources disagree: the passages of draft 1 say “180 kilograms”, but the passages of draft 2 say "
        "“160 kilograms”."
    )


def test_no_sides_no_sentence() -> None:
    assert conflict_of((), ALL) is None
