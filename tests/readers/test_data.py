"""JSON and JSON Lines: every value under its key, as the file spells it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrag.ingest.readers.content import Limits, Source
from specrag.ingest.readers.data import read_json
from specrag.ingest.text import verbatim
from tests.readers.tools import load, text_of

LIMITS = Limits(pages=10, characters=1_000_000, unpacked=1_000_000)


def test_nested_keys_are_indented_and_short_lists_stand_on_one_line(tmp_path: Path) -> None:
    text = (
        '{"name": "Anna", "tags": ["a", "b"], "home": {"city": "Rome", "zip": 00184}, "none": null, "no": {}}'
    )
    document = load(tmp_path, "a.json", text.replace("00184", "1.50e3"))
    assert text_of(document) == "name: Anna\ntags: a, b\nhome:\n  city: Rome\n  zip: 1.50e3\nnone: null\nno:"
    assert document.media_type == "application/json"


def test_objects_of_a_list_are_records_that_mean_something_alone(tmp_path: Path) -> None:
    text = '[{"id": 1, "home": {"city": "Rome"}, "ok": true}, {"id": 2, "jobs": [{"at": "X"}, {"at": "Y"}]}]'
    assert text_of(load(tmp_path, "a.json", text)) == (
        "id: 1; home.city: Rome; ok: true\nid: 2; jobs.1.at: X; jobs.2.at: Y"
    )


def test_long_records_have_a_line_for_each_value(tmp_path: Path) -> None:
    text = json.dumps([{"title": "t" * 200, "body": "line one\nline two"}, {"title": "u", "body": "v"}])
    assert text_of(load(tmp_path, "a.json", text)) == (
        f"title: {'t' * 200}\nbody: line one\n  line two\n\ntitle: u; body: v"
    )


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.json"])
def test_each_line_of_json_lines_is_a_record(tmp_path: Path, name: str) -> None:
    assert text_of(load(tmp_path, name, '{"a": 1, "b": "x"}\n\n{"a": 2}\n')) == "a: 1; b: x\na: 2"


@pytest.mark.parametrize("text", ['{"a": 1,}', "// remark\n{a: 1}", "[" * 50_000, '{"a": 1}\n{"a":'])
def test_what_is_no_json_is_text_as_it_stands(tmp_path: Path, text: str) -> None:
    assert text_of(load(tmp_path, "a.json", text)) == text


def test_keys_that_are_written_twice_lose_nothing(tmp_path: Path) -> None:
    assert text_of(load(tmp_path, "a.json", '{"a": "one", "a": "two"}')) == "a: one\na: two"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text("abc é\n\t{}[]:;,-", max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abcdef", min_size=1), inner, max_size=4)
    ),
    max_leaves=20,
)


def _leaves(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in _leaves(inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in _leaves(inner)]
    return [value if isinstance(value, str) else json.dumps(value)]


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_every_value_is_found_in_the_text(value: Any) -> None:
    source = Source(data=json.dumps(value).encode(), name="a.json", limits=LIMITS)
    text = " ".join(read_json(source).pages[0].text.split())
    for leaf in _leaves(value):
        for line in leaf.splitlines():
            assert " ".join(verbatim(line).split()) in text
