"""Which runs a search finds. The texts are what people type, so no sign in them means anything."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from specrag.errors import UsageError
from specrag.tracing.store import RunFilter, TraceStore
from specrag.types import Decision
from tests.kept_runs import keep, kept


@pytest.fixture
def store(tmp_path: Path) -> TraceStore:
    return TraceStore(tmp_path / "traces.db")


def found(store: TraceStore, **wanted: object) -> set[str]:
    runs, count = store.find(None, RunFilter(**wanted))  # type: ignore[arg-type]
    assert len(runs) == count
    return {run.run_id for run in runs}


def test_text_is_found_in_question_answer_rewriting_and_id(store: TraceStore) -> None:
    keep(store, "aa11", question="How long may boats stay?")
    keep(store, "bb22", question="Why?", answer="Boats report on arrival.")
    keep(store, "cc33", question="And dogs?", rewritten="Are dogs allowed on boats?")
    keep(store, "dd44", question="Who?")
    assert found(store, text="boats") == {"aa11", "bb22", "cc33"}
    assert found(store, text="DD44") == {"dd44"}
    assert found(store, text="cats") == set()


def test_every_word_has_to_occur_in_any_order(store: TraceStore) -> None:
    keep(store, "both", question="How long may boats stay?")
    keep(store, "one", question="How long is the quay?")
    assert found(store, text="  boats   long ") == {"both"}


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Wie lang ist die STRASSE?", "straße"),
        ("GRÜSSE aus Köln", "grüße köln"),
        ("Где ПРИЧАЛ?", "причал"),
        ("Ποιος ΛΙΜΗΝ;", "λιμην"),
        ("ＦＵＬＬ width", "full"),
    ],
)
def test_case_does_not_matter_in_any_script(store: TraceStore, question: str, text: str) -> None:
    """SQLite's own lower() and LIKE know only the letters of English."""
    keep(store, "r1", question=question)
    assert found(store, text=text) == {"r1"}


@pytest.mark.parametrize("sign", ["%", "_", "*", "?", "\\", "'", '"', "[a-z]", "';--"])
def test_a_sign_is_only_a_sign(store: TraceStore, sign: str) -> None:
    keep(store, "with", question=f"What is {sign} here")
    keep(store, "without", question="What is that")
    assert found(store, text=sign) == {"with"}


@pytest.mark.parametrize("text", ["\x00", "\ud800x", "x" * 1_000_000, "x " * 1_000_000])
def test_what_nobody_types_finds_nothing_and_breaks_nothing(store: TraceStore, text: str) -> None:
    keep(store, "r1")
    assert found(store, text=text) == set()


def test_what_became_of_a_run(store: TraceStore) -> None:
    """A run that failed after its decision is a failed one, and no answer that was selected."""
    keep(store, "selected", decision="selected")
    keep(store, "fallback", decision="fallback")
    keep(store, "failed", decision="selected", status="failed")
    keep(store, "cancelled", status="cancelled")
    assert found(store, decisions=("selected",)) == {"selected"}
    assert found(store, decisions=("fallback", "failed")) == {"fallback", "failed"}
    assert found(store, decisions=("cancelled",)) == {"cancelled"}
    assert found(store, decisions=("no such thing",)) == set()


def test_disputed_answers_are_found_whichever_way_they_were_decided(store: TraceStore) -> None:
    disputed = Decision(kind="selected", draft_index=0, reason="", conflict="Three or seven?")
    keep(store, "plain", decision="selected")
    store.save(replace(kept("disputed"), decision=disputed), [])
    assert found(store, decisions=("disputed",)) == {"disputed"}
    assert found(store, decisions=("selected",)) == {"disputed", "plain"}
    assert store.summary("disputed").disputed


def test_pipelines_latency_and_feedback(store: TraceStore) -> None:
    keep(store, "quick", pipeline="standard", elapsed_ms=100.0)
    keep(store, "slow", pipeline="multihop", elapsed_ms=9000.0)
    store.rate("slow", "down")
    assert found(store, pipelines=("standard",)) == {"quick"}
    assert found(store, pipelines=("standard", "multihop")) == {"quick", "slow"}
    assert found(store, min_ms=100.0, max_ms=100.0) == {"quick"}
    assert found(store, min_ms=100.1) == {"slow"}
    assert found(store, rating="down") == {"slow"}
    assert found(store, rating="none") == {"quick"}
    assert found(store, rating="up") == set()


def test_a_date_is_meant_with_all_of_its_day(store: TraceStore) -> None:
    keep(store, "before", created_at="2026-01-30T23:59:59.999+00:00")
    keep(store, "morning", created_at="2026-01-31T00:00:00.000+00:00")
    keep(store, "night", created_at="2026-01-31T23:59:59.999+00:00")
    keep(store, "after", created_at="2026-02-01T00:00:00.000+00:00")
    assert found(store, since="2026-01-31", until="2026-01-31") == {"morning", "night"}
    assert found(store, since="2026-02-01") == {"after"}
    assert found(store, until="2026-01-30") == {"before"}
    assert found(store, since="2026-01-31T01:00:00+01:00", until="2026-01-31T12:00") == {"morning"}


def test_a_run_that_says_its_time_in_another_zone_is_in_its_place(store: TraceStore) -> None:
    """An imported one may; as text, 09:00+09:00 would come after 01:00 UTC."""
    keep(store, "first", created_at="2026-01-01T09:00:00+09:00")
    keep(store, "second", created_at="2026-01-01T01:00:00.000+00:00")
    assert [run.run_id for run in store.recent()] == ["second", "first"]


@pytest.mark.parametrize("date", ["yesterday", "2026-13-01", "31.01.2026", "9999-12-31", "\x00"])
def test_what_is_no_date_is_one_sentence(store: TraceStore, date: str) -> None:
    with pytest.raises(UsageError, match="is no date; write it like 2026-01-31"):
        store.find(None, RunFilter(until=date))


def test_pages_are_newest_first_and_know_how_many_there_are(store: TraceStore) -> None:
    for number in range(7):
        keep(store, f"r{number}", owner="a", created_at=f"2026-01-0{number + 1}")
    keep(store, "foreign", owner="b", created_at="2026-01-09")
    pages = [store.find("a", RunFilter(), limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert [[run.run_id for run in runs] for runs, _ in pages] == [
        ["r6", "r5", "r4"],
        ["r3", "r2", "r1"],
        ["r0"],
        [],
    ]
    assert {count for _, count in pages} == {7}
    assert store.find(None, RunFilter(), limit=1)[1] == 8


def test_500_runs_are_listed_in_well_under_a_second(store: TraceStore) -> None:
    """A list that reads the documents of its runs took seconds."""
    for number in range(500):
        keep(store, f"r{number:03}", answer=f"Answer {number}")
    began = time.perf_counter()
    runs, count = store.find(None, RunFilter(text="answer"), limit=500)
    assert time.perf_counter() - began < 0.5
    assert (len(runs), count) == (500, 500)
