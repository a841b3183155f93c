"""What a program does with runs: the same as the page, under the same checks."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from specrag.ui.who import COOKIE
from tests.api_page import QUESTION, serving


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that keeps its visitors apart."""
    with serving(tmp_path_factory.mktemp("home"), ACCESS="visitor") as address:
        yield address


def _client(url: str, letter: str) -> Client:
    """A program with a cookie of its own."""
    return Client(url, verbose=False, headers={"Cookie": f"{COOKIE}={letter * 22}"})


@pytest.fixture(scope="module")
def ann(url: str) -> Iterator[Client]:
    made = _client(url, "a")
    yield made
    made.close()


@pytest.fixture(scope="module")
def ben(url: str) -> Iterator[Client]:
    made = _client(url, "b")
    yield made
    made.close()


@pytest.fixture(scope="module")
def run_id(ann: Client) -> str:
    """A finished run of Ann."""
    trace = ann.predict(QUESTION, drafts=2, api_name="/ask")
    assert trace["status"] == "done"
    return str(trace["run_id"])


def _refused(client: Client, *arguments: Any, api_name: str) -> str:
    with pytest.raises(AppError) as refused:
        client.predict(*arguments, api_name=api_name)
    return str(refused.value)


def test_runs_are_found_and_read(ann: Client, run_id: str) -> None:
    found = ann.predict("LARKSPUR", pipelines=["speculative"], api_name="/runs")
    assert [run["run_id"] for run in found["runs"]] == [run_id]
    assert found["count"] == 1
    assert "owner" not in found["runs"][0]
    assert ann.predict("%", api_name="/runs") == {"runs": [], "count": 0}
    assert ann.predict(run_id, api_name="/run")["question"] == QUESTION


def test_a_foreign_run_does_not_exist(ben: Client, ann: Client, run_id: str) -> None:
    assert ben.predict(api_name="/runs")["count"] == 0
    sentence = f"There is no run “{run_id}” here"
    assert sentence in _refused(ben, run_id, api_name="/run")
    assert sentence in _refused(ben, run_id, "up", api_name="/rate_run")
    assert sentence in _refused(ben, run_id, api_name="/share_run")
    assert sentence in _refused(ben, run_id, api_name="/stop_run")
    assert sentence in _refused(ben, run_id, api_name="/export_run")
    assert sentence in _refused(ben, run_id, api_name="/what_if")
    assert sentence in _refused(ben, run_id, "decide", api_name="/fork")
    assert ben.predict([run_id], api_name="/delete_runs") == 0
    assert ben.predict(api_name="/clear_runs") == 0
    assert ann.predict(run_id, api_name="/run")["run_id"] == run_id


def test_a_rating_stays_until_it_is_taken_back(ann: Client, run_id: str) -> None:
    rated = ann.predict(run_id, "down", "It was Ada.", api_name="/rate_run")
    assert (rated["feedback"], rated["comment"]) == ("down", "It was Ada.")
    assert ann.predict(rating="down", api_name="/runs")["count"] == 1
    assert ann.predict(run_id, "none", api_name="/rate_run")["feedback"] is None
    assert "The argument rating cannot be used" in _refused(ann, run_id, "great", api_name="/rate_run")


def test_a_shared_run_is_read_by_others_and_changed_by_none(ann: Client, ben: Client, run_id: str) -> None:
    assert ann.predict(run_id, api_name="/share_run")["shared"]
    assert ben.predict(run_id, api_name="/run")["run_id"] == run_id
    assert "somebody else's" in _refused(ben, run_id, "up", api_name="/rate_run")
    assert not ann.predict(run_id, False, api_name="/share_run")["shared"]
    assert "There is no run" in _refused(ben, run_id, api_name="/run")


def test_a_run_is_exported_imported_and_the_same(ann: Client, ben: Client, run_id: str) -> None:
    exported = ann.predict(run_id, api_name="/export_run")
    assert exported["media_type"] == "application/json"
    fresh = ben.predict(exported["content"], api_name="/import_run")
    assert fresh != run_id
    mine, theirs = ann.predict(run_id, api_name="/run"), ben.predict(fresh, api_name="/run")
    assert {**theirs, "run_id": run_id} == mine
    assert ben.predict(api_name="/runs")["runs"][0]["imported"]
    assert ben.predict([fresh], api_name="/delete_runs") == 1
    assert "There is no run" in _refused(ben, fresh, api_name="/run")


@pytest.mark.parametrize("form", ["json", "perfetto", "openinference", "html"])
def test_every_format_leaves_the_texts_out_on_request(ann: Client, run_id: str, form: str) -> None:
    assert "Larkspur" in ann.predict(run_id, form, api_name="/export_run")["content"]
    assert "Larkspur" not in ann.predict(run_id, form, False, api_name="/export_run")["content"]


@pytest.mark.parametrize("content", ["", "no json", "[]", "{}", json.dumps({"schema": "specrag.trace/1"})])
def test_a_file_that_is_no_run_is_one_sentence(ann: Client, content: str) -> None:
    sentence = _refused(ann, content, api_name="/import_run")
    assert sentence.strip()
    assert "Traceback" not in sentence


def test_what_if_decides_again_and_keeps_nothing(ann: Client, run_id: str) -> None:
    before = ann.predict(run_id, api_name="/run")
    other = ann.predict(run_id, {"relevance": 0.0}, api_name="/what_if")
    assert other["config"]["weights"] == {**before["config"]["weights"], "relevance": 0.0}
    one = ann.predict(run_id, None, None, None, 1, api_name="/what_if")
    assert len(one["drafts"]) == 1
    assert ann.predict(run_id, api_name="/run") == before
    assert "WEIGHTS" in _refused(ann, run_id, {"relevance": 11.0}, api_name="/what_if")
    assert "threshold" in _refused(ann, run_id, None, 2.0, api_name="/what_if")


def test_a_run_from_a_file_leads_to_nobodys_collection(ann: Client, ben: Client, run_id: str) -> None:
    """A multi-hop fork looked for more passages in the collection that an imported trace named, whosever it was."""
    secret = ann.predict("Secrets", api_name="/create_collection")["name"]
    told = json.loads(ann.predict(run_id, api_name="/export_run")["content"])
    told["config"]["collection"] = secret
    plain = ben.predict(json.dumps(told), api_name="/import_run")
    assert f"There is no collection “{secret}”" in _refused(ben, plain, "retrieve", api_name="/fork")
    assert ben.predict(plain, "decide", api_name="/fork")["config"]["collection"] == ""
    told["pipeline"] = "multihop"
    del told["events"]
    hopping = ben.predict(json.dumps(told), api_name="/import_run")
    assert f"There is no collection “{secret}”" in _refused(ben, hopping, "partition", api_name="/fork")


def test_a_run_is_forked_with_other_settings(ann: Client, run_id: str) -> None:
    child = ann.predict(run_id, "partition", None, {"drafts": 3, "partition": "contiguous"}, api_name="/fork")
    assert child["parent"] == {"run_id": run_id, "step": "partition"}
    assert child["passages"] == ann.predict(run_id, api_name="/run")["passages"]
    assert len(child["drafts"]) == 3
    assert child["config"]["partition"] == "contiguous"
    listed = ann.predict(api_name="/runs")["runs"][0]
    assert (listed["run_id"], listed["parent"]) == (child["run_id"], run_id)
    assert "Another question" in _refused(ann, run_id, "draft", "Why?", api_name="/fork")
    assert "cannot differ from run to run" in _refused(
        ann, run_id, "draft", None, {"home": "/"}, api_name="/fork"
    )


def test_pipelines_are_compared_on_the_same_passages(ann: Client, ben: Client) -> None:
    made = ann.predict(QUESTION, ["standard", "speculative"], api_name="/compare")
    assert (made["status"], made["error"]) == ("done", "")
    assert [run["pipeline"] for run in made["runs"]] == made["pipelines"]
    assert [run["status"] for run in made["runs"]] == ["done", "done"]
    first, second = (run["passages"] for run in made["runs"])
    assert first == second
    assert ann.predict(made["id"], api_name="/comparison") == made
    assert "owner" not in made
    for name in ("/comparison", "/delete_comparison"):
        assert "There is no comparison" in _refused(ben, made["id"], api_name=name)
    assert "two" in _refused(ann, QUESTION, ["standard"], api_name="/compare")
    ann.predict(made["id"], api_name="/delete_comparison")
    assert "There is no comparison" in _refused(ann, made["id"], api_name="/comparison")
    assert ann.predict(made["run_ids"][0], api_name="/run")["status"] == "done"


def test_runs_are_cleared_by_what_matches(ann: Client, run_id: str) -> None:
    """Last: it takes the runs of the other tests away."""
    everything = ann.predict(api_name="/runs")["count"]
    assert ann.predict("no such words", api_name="/clear_runs") == 0
    assert "is no date" in _refused(ann, "", None, None, None, "yesterday", api_name="/clear_runs")
    assert ann.predict("larkspur", api_name="/clear_runs") == everything
    assert ann.predict(api_name="/runs") == {"runs": [], "count": 0}
