"""A strict reader of Chrome's trace format: what Perfetto would only count as an error is an error here."""

import json
from typing import Any

_KEYS = {
    "M": {"ph", "pid", "tid", "name", "args"},
    "X": {"ph", "pid", "tid", "name", "cat", "ts", "dur", "args"},
    "s": {"ph", "id", "pid", "tid", "name", "cat", "ts"},
    "f": {"ph", "id", "pid", "tid", "name", "cat", "ts", "bp"},
    "C": {"ph", "pid", "name", "ts", "args"},
}


def check_chrome_trace(data: bytes) -> list[dict[str, Any]]:
    """The events of the file, after everything was checked that the format asks for."""
    document = json.loads(data.decode())
    json.dumps(document, ensure_ascii=False).encode()  # trace_processor refuses half a character
    events: list[dict[str, Any]] = document["traceEvents"]
    slices: dict[int, list[tuple[int, int]]] = {}
    for event in events:
        assert set(event) == _KEYS[event["ph"]], event
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
        if event["ph"] == "X":
            start = round(event["ts"] * 1000)
            slices.setdefault(event["tid"], []).append((start, start + round(event["dur"] * 1000)))
    named = {event["tid"] for event in events if event["name"] == "thread_name"}
    assert set(slices) <= named, "every track has a name"
    for rows in slices.values():
        _check_nesting(sorted(rows, key=lambda row: (row[0], -row[1])))
    _check_arrows(events, slices)
    return events


def _check_nesting(rows: list[tuple[int, int]]) -> None:
    """Slices of one track lie within each other or do not touch."""
    open_: list[int] = []
    for start, end in rows:
        while open_ and open_[-1] <= start:
            open_.pop()
        assert not open_ or end <= open_[-1], "two slices of a track cross"
        open_.append(end)


def _check_arrows(events: list[dict[str, Any]], slices: dict[int, list[tuple[int, int]]]) -> None:
    """Every arrow has two ends, each on a slice, and points forward in time."""
    begins = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert set(begins) == set(ends)
    for key, begin in begins.items():
        assert begin["ts"] <= ends[key]["ts"]
        for event in (begin, ends[key]):
            at = round(event["ts"] * 1000)
            assert any(start <= at <= end for start, end in slices[event["tid"]]), "an arrow hangs in the air"
