"""Runs from files: what was exported comes back, and whatever else is in a file ends in one sentence."""

import gc
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specrag.errors import TraceError
from specrag.events import Event, HopFinished, HopStarted, PassagesRetrieved, Queued, RunFinished
from specrag.tracing.codec import run_to_json
from specrag.tracing.export.importing import _is_foldable, import_file, import_run
from specrag.tracing.trace import Trace, fold
from specrag.types import Hop, Span, TokenLogprob
from tests.golden.record import events as golden_events
from tests.ui_runs import MULTIHOP, RUNS
from tests.ui_traces import HOSTILE_TRACE, SELECTED, STATES

Document = dict[str, Any]
ENDED = {
    name: trace
    for name, trace in {**STATES, **RUNS}.items()
    if trace.status != "running" and not name.startswith("hostile")
}


def file_of(change: Callable[[Document], Any] = lambda _: None, trace: Trace = SELECTED) -> bytes:
    """An exported run, with a change to its document."""
    document = json.loads(run_to_json(trace, ()))
    del document["events"]
    change(document)
    return json.dumps(document).encode()


@pytest.mark.parametrize("name", sorted(ENDED))
def test_a_trace_that_was_exported_is_imported_as_it_was(name: str) -> None:
    """Twice, since an import must also leave as it came."""
    trace = ENDED[name]
    once, events = import_run(run_to_json(trace, ()).encode())
    assert once == trace
    assert import_run(run_to_json(once, events).encode()) == (trace, events)


@pytest.mark.parametrize("name", sorted(ENDED))
def test_a_trace_without_events_can_be_replayed_to_its_end(name: str) -> None:
    """Files of other programs and of `ask --json` hold no events; replay must still show their board."""
    trace = ENDED[name]
    _, events = import_run(file_of(trace=trace))
    shown = fold(events)
    assert shown.status == trace.status
    assert (shown.question, shown.passages, shown.subsets) == (trace.question, trace.passages, trace.subsets)
    assert (shown.decision, shown.answer, shown.error) == (trace.decision, trace.answer, trace.error)
    assert [draft.answer for draft in shown.drafts] == [draft.answer for draft in trace.drafts]
    assert [draft.scores for draft in shown.drafts] == [draft.scores for draft in trace.drafts]
    ended = {span for span in map(str, trace.spans) if "end_ms=None" not in span}
    assert ended <= set(map(str, shown.spans))
    assert shown.elapsed_ms == trace.elapsed_ms
    times = [event.at_ms for event in events]
    assert times == sorted(times)


async def test_the_golden_run_comes_back_event_by_event(tmp_path: Path) -> None:
    events = await golden_events()
    path = tmp_path / "run.json"
    path.write_text(run_to_json(fold(events), events), encoding="utf-8")
    assert import_file(path) == (fold(events), tuple(events))


async def test_events_that_tell_another_story_are_not_replayed() -> None:
    """A file whose answer is one thing and whose replay shows another would put words into a run's mouth."""
    events = await golden_events()
    trace = fold(events)
    told: list[Event] = [
        replace(event, passages=()) if isinstance(event, PassagesRetrieved) else event for event in events
    ]
    read, replayed = import_run(run_to_json(trace, told).encode())
    assert read == trace
    assert fold(replayed).passages == trace.passages


async def test_what_a_newer_version_added_is_left_out() -> None:
    """Refusing it would make every new field a break; showing it would show what nobody has checked."""
    events = await golden_events()
    document = json.loads(run_to_json(fold(events), events))
    document["mood"] = {"secret": "<script>"}
    document["drafts"][0]["colour"] = "mauve"
    document["events"].insert(3, ["MoodChanged", {"at_ms": 0.0, "mood": "good"}])
    document["events"][0][1]["weather"] = "rain"
    trace, read = import_run(json.dumps(document).encode())
    assert (trace, read) == (fold(events), tuple(events))
    assert "mauve" not in run_to_json(trace, read)


def test_half_characters_and_numbers_that_are_none_leave_as_valid_json() -> None:
    """A lone surrogate cannot be written to a file at all, and NaN is no JSON."""
    data = run_to_json(HOSTILE_TRACE, ()).encode()
    document = json.loads(data, parse_constant=pytest.fail)
    assert document["drafts"][0]["tokens"][1]["logprob"] == -9999.0
    assert document["question"] == HOSTILE_TRACE.question.replace("\ud800", "\N{REPLACEMENT CHARACTER}")


TOKEN = {"text": "x", "logprob": -0.5, "part": "answer", "at_ms": 1.0}
CHANGES: dict[str, tuple[Callable[[Document], Any], str]] = {
    "score of 40": (lambda d: d["drafts"][0]["scores"].update(draft=40), "score draft of draft 1 is 40"),
    "score of 0": (lambda d: d["drafts"][1]["scores"].update(combined=0), "score combined of draft 2 is 0"),
    "score below 0": (lambda d: d["drafts"][1]["scores"].update(relevance=-1), "not above 0"),
    "similarity of 2": (lambda d: d["passages"][0].update(score=2), "score of a passage"),
    "margin of 7": (lambda d: d["decision"].update(margin=7), "margin"),
    "confidence of -1": (lambda d: d["answer"].update(confidence=-1), "confidence"),
    "span in a circle": (lambda d: d["spans"][0].update(parent_id=d["spans"][-1]["id"]), "own ancestor"),
    "span under itself": (lambda d: d["spans"][3].update(parent_id=d["spans"][3]["id"]), "own ancestor"),
    "span twice": (lambda d: d["spans"].append(d["spans"][0]), "two of its spans"),
    "span backwards": (lambda d: d["spans"][0].update(start_ms=9e6), "ends before it begins"),
    "span before the start": (lambda d: d["spans"][0].update(start_ms=-1), "time is below 0"),
    "token after years": (lambda d: d["drafts"][0]["tokens"][0].update(at_ms=1e14), "months after"),
    "run of years": (lambda d: d.update(elapsed_ms=1e300), "months after"),
    "token above 1": (lambda d: d["drafts"][0]["tokens"][0].update(logprob=3), "above 0"),
    "token of minus infinity": (
        lambda d: d["drafts"][0]["tokens"][0].update(logprob=-1e300),
        "below -1,000,000",
    ),
    "sum that overflows": (lambda d: d["drafts"][0]["log_sums"].update(answer=1e308), "sum of log"),
    "sum that underflows": (lambda d: d["drafts"][0]["log_sums"].update(answer=-1e308), "sum of log"),
    "passage off the map": (
        lambda d: d.update(spots=[{"passage_id": "p1", "x": 9e99, "y": 0}]),
        "outside its map",
    ),
    "endless question": (lambda d: d.update(question="why " * 30_000), "question is longer"),
    "endless text": (lambda d: d["passages"][0].update(text="x" * 2_000_000), "text of 2,000,000"),
    "a million tokens": (lambda d: d["drafts"][0].update(tokens=[TOKEN] * 1_000_000), "32 MB"),
    "6,000 tokens": (lambda d: d["drafts"][0].update(tokens=[TOKEN] * 6000), "6,000 tokens"),
    "long tokens": (lambda d: d["drafts"][0]["tokens"][0].update(text="x" * 300_000), "characters"),
    "20,000 spans": (
        lambda d: d.update(spans=[{**d["spans"][0], "id": str(n)} for n in range(20_000)]),
        "20,000 spans",
    ),
    "winner who is not there": (lambda d: d["decision"].update(draft_index=9), "does not have"),
    "line break in an id": (lambda d: d.update(run_id="a\nb"), "an id in run_id"),
    "terminal code in an id": (lambda d: d["passages"][0].update(id="\x1b[2J"), "an id in passages"),
    "endless id": (lambda d: d.update(run_id="x" * 10_000), "an id in run_id"),
    "no id": (lambda d: d.update(run_id="  "), "no run_id"),
    "passage twice": (lambda d: d["passages"].append(d["passages"][0]), "two of its passages"),
    "draft twice": (lambda d: d["drafts"].append(d["drafts"][0]), "two of its drafts"),
    "count below 0": (lambda d: d["usage"]["drafter"].update(prompt_tokens=-5), "below 0"),
    "no date": (lambda d: d.update(created_at="soon"), "created_at"),
    "the year 9999": (lambda d: d.update(created_at="9999-12-31"), "created_at"),
    "an unknown pipeline": (lambda d: d.update(pipeline="carrier-pigeon"), "pipeline: Input should be"),
    "text for a list": (lambda d: d.update(drafts="all of them"), "drafts: Input should be"),
    "number for a text": (lambda d: d.update(question=7), "question: Input should be"),
    "list for an object": (lambda d: d.update(decision=[]), "decision"),
    "two million wrong items": (lambda d: d.update(passages=[1] * 90_000), "passages.0"),
    "another schema": (lambda d: d.update(schema="specrag.trace/2"), "specrag.trace/2"),
    "nothing in it": (lambda d: d.clear(), "run_id: Field required"),
    "still running": (lambda d: d.update(status="running"), "had not ended"),
    "a huge number": (lambda d: d.update(ahead=10**30), "too large"),
    "deep settings": (lambda d: d["config"].update(x=json.loads("[" * 60 + "]" * 60)), "32 deep"),
    "events that are none": (lambda d: d.update(events=[7]), "not a name with fields"),
    "an event of wrong type": (lambda d: d.update(events=[["RunFinished", {"at_ms": "x"}]]), "RunFinished"),
}


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_a_run_that_cannot_have_been_is_refused_in_one_sentence(name: str) -> None:
    change, sentence = CHANGES[name]
    data = file_of(change)
    started = time.process_time()
    with pytest.raises(TraceError, match=sentence) as refused:
        import_run(data)
    assert time.process_time() - started < 5, "the file holds the server up"
    _check_sentence(str(refused.value))


FILES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "not JSON"),
    "a picture": (b"\x89PNG\r\n\x1a\n\xff\xfe", "not a text file"),
    "UTF-16": (run_to_json(SELECTED, ()).encode("utf-16"), "not a text file"),
    "a list": (b"[]", "does not begin with an object"),
    "a number": (b"7", "does not begin with an object"),
    "NaN": (b'{"elapsed_ms": NaN}', "not JSON"),
    "infinity": (b'{"elapsed_ms": -Infinity}', "not JSON"),
    "more than a float": (b'{"elapsed_ms": 1e999}', "too large"),
    "5,000 digits": (b'{"elapsed_ms": ' + b"9" * 5000 + b"}", "not JSON"),
    "half a character": (b'{"question": "\\ud800"}', "not JSON"),
    "deep": (b"[" * 1_000_000, "not JSON"),
    "deep objects": (b'{"a":' * 1_000_000, "not JSON"),
    "300 MB": (b" " * 300 * 2**20, "more than 32 MB"),
    "ten million zeros": (b'{"x":[' + b"0," * 10_000_000 + b"0]}", "items"),
    "many lists": (b'{"x":[' + b"[[],[],[],[]]," * 90_000 + b"0]}", "run_id"),
    "five million values": (
        b'{"x":['
        + b"[0,0,0,0,0,0,0,0,0,0]," * 90_000
        + b'0],"y":['
        + b"[0,0,0,0,0,0,0,0,0,0,0,0]," * 99_000
        + b"0]}",
        "values",
    ),
}


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_that_is_no_run_is_refused_in_one_sentence(name: str) -> None:
    data, sentence = FILES[name]
    started = time.process_time()
    with pytest.raises(TraceError, match=sentence) as refused:
        import_run(data)
    assert time.process_time() - started < 10, "the file holds the server up"
    _check_sentence(str(refused.value))


def _check_sentence(text: str) -> None:
    """One line that a page can show, however long or strange the file is."""
    assert text.endswith(".")
    assert text.isprintable()
    assert len(text) < 400


def imported(document: dict[str, Any]) -> tuple[Trace, Sequence[Event], float]:
    """What is imported, and in how many seconds of the processor; none of them for the garbage of other tests."""
    data = json.dumps(document).encode()
    gc.disable()
    try:
        started = time.process_time()
        return *import_run(data), time.process_time() - started
    finally:
        gc.enable()


def test_events_whose_folding_would_take_hours_are_not_folded() -> None:
    """Texts grow by copying: 50,000 tokens after one of a megabyte would be copied 50,000 times."""
    document = json.loads(file_of())
    events = json.loads(run_to_json(SELECTED, import_run(file_of())[1]))["events"]
    token = [
        "DraftToken",
        {"at_ms": 4600.0, "subset_id": "s1", "part": "answer", "text": "", "logprob": -1.0},
    ]
    big = [token[0], {**token[1], "text": "x" * 1_000_000}]  # type: ignore[dict-item]
    document["events"] = [*events[:-1], big, *([token] * 50_000), events[-1]]
    trace, told, seconds = imported(document)
    assert seconds < 20
    assert trace == SELECTED
    assert len(told) < 1000


def test_events_of_thousands_of_hops_are_not_folded() -> None:
    """Each token of a hop looks at all hops, so a file of two megabytes held the server up for a minute."""
    document = json.loads(file_of(trace=MULTIHOP))
    events = json.loads(run_to_json(MULTIHOP, import_run(file_of(trace=MULTIHOP))[1]))["events"]
    begun = [["HopStarted", {"at_ms": 0.0, "number": n, "query": "?"}] for n in range(1990)]
    token = {"at_ms": 0.0, "part": "note", "text": "x", "logprob": -1.0}
    written = [["HopToken", {**token, "number": n % 1990}] for n in range(97_000)]
    document["events"] = [events[0], *begun, *written, *events[1:]]
    trace, told, seconds = imported(document)
    assert seconds < 4, "it takes under one; folded, it took eight"
    assert trace == MULTIHOP
    assert len(told) < 1000


@pytest.mark.parametrize(("finished", "taken"), [(100, True), (101, False)])
def test_a_story_of_a_hundred_ends_of_hops_is_the_longest_that_is_folded(
    finished: int, *, taken: bool
) -> None:
    """The same end again changes nothing, so only the bound tells these stories from a true one."""
    events = list(import_run(file_of(trace=MULTIHOP))[1])
    place, end = next((place, event) for place, event in enumerate(events) if isinstance(event, HopFinished))
    more = [end] * (finished - len(MULTIHOP.hops))
    story = (*events[:place], *more, *events[place:])
    assert fold(story) == MULTIHOP
    trace, told = import_run(run_to_json(MULTIHOP, story).encode())
    assert trace == MULTIHOP
    assert told == (story if taken else tuple(events))


@pytest.mark.parametrize("kind", ["started", "finished"])
def test_more_than_a_hundred_hops_are_not_folded(kind: str) -> None:
    """A trace has a hundred at most, so folding a story of more could only cost time."""
    number = range(1, 102)
    begun: list[Event] = [HopStarted(at_ms=0.0, number=n, query="?") for n in number]
    ended: list[Event] = [HopFinished(at_ms=0.0, hop=Hop(number=n, query="?")) for n in number]
    events = begun if kind == "started" else ended
    assert _is_foldable(events[:100])
    assert _is_foldable(begun[:100] + ended[:100]), "each kind is counted by itself"
    assert not _is_foldable(events)


@pytest.mark.parametrize(
    "events",
    [
        (),
        (RunFinished(at_ms=1.0),),
        (Queued(at_ms=5.0, ahead=1), RunFinished(at_ms=1.0)),
    ],
)
def test_a_story_without_its_beginning_is_told_anew(events: tuple[Event, ...]) -> None:
    trace, told = import_run(run_to_json(SELECTED, events).encode())
    assert trace == SELECTED
    assert fold(told).answer == SELECTED.answer


def test_a_long_run_of_twenty_drafts_is_read_at_once() -> None:
    """The largest real runs stay far below the limits: 20 drafts of 200 tokens have under a tenth of them."""
    tokens = tuple(
        TokenLogprob(text=f" w{n}", logprob=-0.1, part="answer", at_ms=100.0 + n) for n in range(200)
    )
    draft = replace(SELECTED.drafts[0], tokens=tokens, verifier_tokens=tokens, prompt="word " * 500)
    trace = replace(
        SELECTED,
        subsets=tuple(replace(SELECTED.subsets[0], id=f"s{n}") for n in range(20)),
        drafts=tuple(replace(draft, subset_id=f"s{n}") for n in range(20)),
        spans=(Span(id="1", parent_id=None, name="run", start_ms=0.0, end_ms=4600.0),),
    )
    _, events = import_run(run_to_json(trace, ()).encode())
    data = run_to_json(trace, events).encode()
    assert len(data) < 4 * 2**20
    started = time.process_time()
    assert import_run(data)[0] == trace
    assert time.process_time() - started < 5
