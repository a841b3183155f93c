"""Ids and numbers that no run can have, from whoever may send them: one sentence, and nothing happens."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import httpx
import pytest
from typer.testing import CliRunner

from specrag.cli import app
from specrag.config import load_settings
from specrag.errors import SpecragError, TraceError, UsageError
from specrag.library.visitors import OPERATOR
from specrag.runs import Runs
from specrag.tracing.comparisons import ComparisonStore
from specrag.tracing.history import History
from specrag.tracing.store import RunFilter, TraceStore
from tests.api_page import QUESTION, serving
from tests.kept_runs import keep

IDS: Final = {
    "half a letter": "a\ud800b",
    "nul": "a\x00b",
    "megabyte": "x" * 2**20,
    "line break": "a\nb",
    "empty": "",
    "quote": "' OR 1=1 --",
}
EVERY_ID: Final = pytest.mark.parametrize("run_id", IDS.values(), ids=IDS)


@pytest.fixture
def store(tmp_path: Path) -> TraceStore:
    made = TraceStore(tmp_path / "traces.db")
    keep(made, "there")
    return made


@pytest.fixture
def history(store: TraceStore) -> History:
    return History(store, Runs(store, deadline_s=20), load_settings({}))


def one_sentence(refused: Callable[[], object]) -> str:
    """What is said, which anybody can be sent: short, and without half letters."""
    with pytest.raises(SpecragError) as error:
        refused()
    said = str(error.value)
    assert len(said.encode()) < 400
    assert "\n" not in said
    return said


@EVERY_ID
def test_an_id_that_no_run_has_is_a_missing_run(history: History, run_id: str) -> None:
    """Half a letter was an error of Python's, with its traceback."""
    for read in (history.trace, history.events, history.summary, history.children, history.check_own):
        assert "There is no run" in one_sentence(partial(read, OPERATOR, run_id))
    assert "There is no run" in one_sentence(lambda: history.rate(OPERATOR, run_id, "up"))
    assert "There is no run" in one_sentence(lambda: history.share(OPERATOR, run_id, True))
    assert history.delete(OPERATOR, [run_id, "there"]) == 1


@EVERY_ID
def test_an_id_that_no_comparison_has_is_a_missing_one(tmp_path: Path, run_id: str) -> None:
    kept = ComparisonStore(tmp_path / "traces.db", most=10)
    assert "There is no comparison" in one_sentence(lambda: kept.load(run_id))


@pytest.mark.parametrize(
    ("limit", "offset"), [(1, 10**30), (10**30, 0), (-1, 0), (1, -1), (2**63, 0), (1, 2**63)]
)
def test_numbers_out_of_range_are_a_sentence(history: History, limit: int, offset: int) -> None:
    with pytest.raises(UsageError, match="between 0 and 1,000,000,000"):
        history.find(OPERATOR, RunFilter(), limit=limit, offset=offset)


@pytest.mark.parametrize(
    "wanted",
    [
        RunFilter(decisions=("\ud800",)),
        RunFilter(decisions=("x",) * 100_000),
        RunFilter(min_ms=10**400),
    ],
    ids=["half a letter", "too many", "too large"],
)
def test_what_sqlite_cannot_take_is_a_sentence(history: History, wanted: RunFilter) -> None:
    with pytest.raises(TraceError, match=r"The traces at traces\.db cannot"):
        history.find(OPERATOR, wanted)


@pytest.mark.parametrize(
    "command",
    [
        ["show", "a\udc80b"],
        ["show", "x" * 10_000],
        ["export", "a\x00b"],
        ["list", "--limit", "1" + "0" * 30],
    ],
    ids=["half a letter", "long", "nul", "limit"],
)
def test_the_command_line_says_it_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """An argument of the shell is bytes, of which some are no letters."""
    monkeypatch.setenv("SPECRAG_HOME", str(tmp_path))
    ended = CliRunner().invoke(app, ["trace", *command])
    assert ended.exit_code in (1, 2)
    assert ended.exception is None or isinstance(ended.exception, SystemExit), ended.exception
    assert "Error: The" in ended.output


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("home")) as address:
        yield address


def answered(url: str, endpoint: str, **values: object) -> str:
    """What an endpoint answers; JSON can write half a letter, which no other encoding can."""
    address = f"{url}/gradio_api/call/v2/{endpoint}"
    sent = httpx.post(address, content=json.dumps(values), headers={"content-type": "application/json"})
    return httpx.get(f"{address}/{sent.json()['event_id']}", timeout=60).text


@EVERY_ID
def test_a_program_gets_a_sentence_from_every_endpoint(url: str, run_id: str) -> None:
    """`serving` fails at its end if the server has logged a traceback."""
    for endpoint in ("run", "export_run", "stop_run", "share_run", "what_if"):
        assert "There is no run" in answered(url, endpoint, run_id=run_id)
    assert "There is no run" in answered(url, "rate_run", run_id=run_id, rating="up")
    assert "There is no run" in answered(url, "fork", run_id=run_id, step="decide")
    for endpoint in ("comparison", "delete_comparison"):
        assert "There is no comparison" in answered(url, endpoint, comparison_id=run_id)
    assert "data: [0]" in answered(url, "delete_runs", run_ids=[run_id])
    assert "There is no collection" in answered(url, "ask", question=QUESTION, collection=run_id)
    assert '"count": 0' in answered(url, "runs", text=f"nowhere {run_id}")


def test_a_program_gets_a_sentence_for_numbers(url: str) -> None:
    assert "lie between" in answered(url, "runs", offset=10**30)
    assert "The limit lies between 1 and 500" in answered(url, "runs", limit=10**30)
    assert "The limit lies between 1 and 500" in answered(url, "runs", limit=-1)
    assert "The limit lies between 1 and 50" in answered(url, "search", question=QUESTION, limit=-(10**30))
    assert '"count": 0' in answered(url, "runs", min_ms=1e300)
