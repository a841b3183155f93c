"""What a program asks: the same checks as on the page, and one sentence for whatever cannot be."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from specrag.tracing.codec import from_json
from specrag.tracing.trace import Trace
from specrag.ui.endpoints import again, asking, collections, documents, evaluations, runs
from tests.api_page import ANSWER, QUESTION, ROOT, serving


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving(tmp_path_factory.mktemp("home")) as url:
        made = Client(url, verbose=False)
        yield made
        made.close()


def _trace(told: dict[str, Any]) -> Trace:
    assert told["schema"] == "specrag.trace/1"
    return from_json(json.dumps(told))


def test_a_program_gets_the_whole_trace_and_finds_it_again(client: Client) -> None:
    trace = _trace(client.predict(QUESTION, drafts=2, focus=True, api_name="/ask"))
    assert (trace.status, trace.question, len(trace.drafts)) == ("done", QUESTION, 2)
    assert trace.answer is not None
    assert trace.answer.text == ANSWER
    assert trace.config["focus_sentences"] == 3
    assert _trace(client.predict(trace.run_id, api_name="/run")) == trace


def test_what_is_left_out_is_as_the_server_was_started(client: Client) -> None:
    trace = _trace(client.predict(QUESTION, api_name="/ask"))
    assert (trace.config["drafts"], trace.config["decision"], trace.config["preset"]) == (
        4,
        "select",
        "default",
    )


def test_a_follow_up_comes_with_its_conversation(client: Client) -> None:
    earlier = [{"question": f"Question {number}?", "answer": "Yes"} for number in range(5)]
    trace = _trace(client.predict("And why?", pipeline="standard", earlier=earlier, api_name="/ask"))
    assert [exchange.question for exchange in trace.earlier] == ["Question 2?", "Question 3?", "Question 4?"]


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"pipeline": "magic"}, "The argument pipeline cannot be used: Input should be 'speculative',"),
        ({"drafts": 10_000}, "DRAFTS: Input should be less than or equal to 16"),
        ({"drafts": True}, "The argument drafts cannot be used: Input should be a valid integer"),
        ({"partition": ["random"]}, "The argument partition cannot be used: Input should be"),
        ({"decision": "guess"}, "decision cannot be used: Input should be 'select' or 'synthesise'"),
        ({"focus": "on"}, "The argument focus cannot be used: Input should be a valid boolean"),
        ({"collection": {"a": 1}}, "The argument collection cannot be used: Input should be a valid string"),
        ({"collection": "nowhere"}, "There is no collection “nowhere”"),
        ({"documents": ["nothing"]}, "no such documents in this collection"),
        ({"earlier": [{"question": "Who?"}]}, "Each exchange of earlier has a question and an answer"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_no_run(
    client: Client, chosen: dict[str, Any], sentence: str
) -> None:
    before = client.predict(api_name="/runs")["count"]
    with pytest.raises(AppError) as refused:
        client.predict(QUESTION, **chosen, api_name="/ask")
    assert sentence in str(refused.value)
    assert "Traceback" not in str(refused.value)
    assert client.predict(api_name="/runs")["count"] == before


def test_a_program_asks_some_documents_alone(client: Client) -> None:
    there = client.predict("sample", api_name="/documents")
    chosen = there[0]["id"]
    asked = {"pipeline": "standard", "documents": [chosen], "api_name": "/ask"}
    trace = _trace(client.predict(QUESTION, **asked))
    assert {passage.document_id for passage in trace.passages} == {chosen}


def test_a_search_finds_passages_and_writes_nothing(client: Client) -> None:
    before = client.predict(api_name="/runs")["count"]
    found = client.predict(QUESTION, limit=3, api_name="/search")["passages"]
    assert len(found) == 3
    assert "Larkspur" in found[0]["text"]
    assert {"title", "source", "page", "score"} <= found[0].keys()
    assert client.predict(api_name="/runs")["count"] == before
    for limit in (0, 51):
        with pytest.raises(AppError, match="The limit lies between 1 and 50"):
            client.predict(QUESTION, limit=limit, api_name="/search")
    with pytest.raises(AppError, match="The question is empty"):
        client.predict("  ", api_name="/search")


def test_every_endpoint_has_types_and_an_example(client: Client) -> None:
    """A program, and who writes one, sees nothing else of them."""
    endpoints = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert {
        "/ask", "/search", "/documents", "/add_documents", "/documents_status", "/delete_documents",
        "/collections", "/runs", "/run", "/delete_runs", "/rate_run", "/export_run", "/import_run",
        "/what_if", "/fork", "/reports", "/report", "/evaluate",
    } <= endpoints.keys()  # fmt: skip
    for name, endpoint in endpoints.items():
        assert "Example: `Client(url).predict(" in endpoint["description"], name
        assert f'api_name="{name}")' in endpoint["description"], name
        assert all(argument["type"] for argument in endpoint["parameters"]), name
        assert all(returned["type"] for returned in endpoint["returns"]), name


def test_the_documentation_names_every_endpoint() -> None:
    text = (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`/(\w+)`", text)) - {"mcp"}
    topics = (asking, runs, again, documents, collections, evaluations)
    assert named == {function.__name__ for topic in topics for function in topic.ENDPOINTS}
