"""A file from outside, changed anywhere to anything: it is refused in a sentence, or it can be shown whole."""

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specrag.errors import SpecragError, TraceError
from specrag.redecide import decide_again
from specrag.tracing.codec import run_to_json
from specrag.tracing.export.events_of import events_of
from specrag.tracing.export.formats import EXPORTS
from specrag.tracing.export.importing import import_run
from specrag.tracing.trace import fold
from specrag.ui.exporting import export_run
from tests.chrome_trace import check_chrome_trace
from tests.ui_runs import MULTIHOP, STANDARD, SYNTHESISED
from tests.ui_traces import DISPUTED, FALLBACK

RUNS = {
    trace.run_id + trace.pipeline: json.loads(run_to_json(trace, events_of(trace)))
    for trace in (DISPUTED, FALLBACK, MULTIHOP, STANDARD, SYNTHESISED)
}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "x", "s1", "p1", "run", "draft", "<script>", "\x00", "\u202e", "select", "1e999"])
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
SETTINGS = st.dictionaries(
    st.sampled_from(
        ["weights", "threshold", "pool", "decision", "drafts", "preset", "drafter", "verifier", "models",
         "versions", "seed", "partition", "answer_tokens", "collection", "documents", "prefer_recent"]
    ),
    JSON,
    max_size=6,
)  # fmt: skip


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(data=st.data())
def test_a_changed_file_is_refused_or_shown(data: st.DataObject) -> None:
    document = copy.deepcopy(RUNS[data.draw(st.sampled_from(sorted(RUNS)))])
    document["config"] |= data.draw(SETTINGS)
    document["environment"] |= data.draw(SETTINGS)
    for _ in range(data.draw(st.integers(0, 3))):
        _change(document, data)
    try:
        trace, events = import_run(json.dumps(document).encode())
    except TraceError as refused:
        _check_sentence(refused)
        return
    for form in EXPORTS:
        for texts in (True, False):
            made = export_run(trace, events, form, texts=texts)
            if form == "perfetto":
                check_chrome_trace(made)
    assert import_run(run_to_json(trace, events).encode()) == (trace, events)
    assert fold(events).status == trace.status
    try:
        decide_again(trace)
    except SpecragError as error:
        _check_sentence(error)


def _check_sentence(error: SpecragError) -> None:
    assert str(error).isprintable()
    assert 0 < len(str(error)) < 500


def _change(document: dict[str, Any], data: st.DataObject) -> None:
    """Put something else at a place that is there, or take it away."""
    place: Any = document
    while True:
        keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        if isinstance(place[key], dict | list) and place[key] and data.draw(st.integers(0, 4)):
            place = place[key]
            continue
        if data.draw(st.integers(0, 5)):
            place[key] = data.draw(JSON)
        else:
            del place[key]
        return


@pytest.mark.parametrize("name", sorted(RUNS))
def test_every_run_that_is_changed_here_can_be_imported(name: str) -> None:
    """Else the test above would only see refusals."""
    import_run(json.dumps(RUNS[name]).encode())
