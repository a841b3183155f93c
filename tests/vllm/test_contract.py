"""The contract of every language model, over real vLLM servers; and these against the engine in this process.

The suite itself is `tests/contracts/test_language_model.py`: here its fixtures give the served models.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from specrag.errors import ModelError, ServerUnreachable
from specrag.models.base import End, LanguageModel, Line, Piece, ScoreRequest
from specrag.models.loading import load_tokenizer
from specrag.models.local import LocalModel
from specrag.models.server.access import Access
from specrag.models.server.model import ServerModel
from specrag.models.worker import Worker
from specrag.prompts import (
    ANSWER_LABEL,
    RATIONALE_LABEL,
    REFLECTION_CHOICE,
    draft_conversation,
    verify_conversation,
)
from specrag.sample import FOLDER, questions
from specrag.vllm.server import VllmServer
from specrag.vllm.servers import VllmServers
from tests.contracts.test_language_model import (  # noqa: F401 - pytest collects them from here
    collect,
    conversations,
    joined,
    passage,
    test_a_closed_generation_leaves_the_model_ready_for_the_next,
    test_a_document_cannot_end_its_turn,
    test_a_draft_that_is_too_long_to_score_is_one_clear_sentence,
    test_a_prompt_that_is_too_long_fails_alone,
    test_choice_probabilities_are_probabilities,
    test_decoding_in_one_batch_equals_decoding_alone,
    test_every_conversation_begins_is_read_is_written_in_order_and_ends,
    test_scores_cover_the_marked_spans_and_nothing_else,
    test_scoring_together_equals_scoring_alone,
    test_stop_frees_the_model_within_a_second,
    test_the_drafters_probabilities_are_those_of_its_own_prompt,
    test_the_prompt_as_sent_holds_question_and_evidence_and_ends_with_the_label,
    test_yes_is_read_after_the_statement_and_over_all_spellings,
)

pytestmark = [pytest.mark.vllm, pytest.mark.integration]

TOKEN_TOLERANCE = 5e-3
"""Between two engines in float32, in natural log of a token's probability; in float16 weights it is 0.03."""
YES_TOLERANCE = 1e-3
LINES = (
    Line(part="rationale", max_tokens=48, label=RATIONALE_LABEL, sentences=1),
    Line(part="answer", max_tokens=24, label=ANSWER_LABEL, sentences=1),
)


def access(server: VllmServer, **other: object) -> Access:
    values = {"role": "drafter", "urls": (server.url,), "model": server.model, **other}
    return Access(**values)  # type: ignore[arg-type]


@pytest.fixture(params=["drafter", "verifier", "own_tokenizer"])
async def real(
    request: pytest.FixtureRequest, servers: VllmServers, model_path: Path
) -> AsyncIterator[LanguageModel]:
    """Both servers, and one whose prompts are tokenised here."""
    server = servers.drafter if request.param == "drafter" else servers.verifier
    tokenizer = load_tokenizer(model_path, name="smollm2") if request.param == "own_tokenizer" else None
    model = ServerModel(access(server, role="verifier"), tokenizer=tokenizer)
    await model.connect()
    yield model
    await model.aclose()


@pytest.fixture
def model(real: LanguageModel) -> LanguageModel:
    return real


@pytest.fixture(scope="module")
def here(model_path: Path) -> Iterator[LocalModel]:
    """The same weights in this process, none of their bits changed."""
    worker = Worker()
    yield LocalModel(model_path, name="smollm2", worker=worker, threads=2, precision="float32")
    worker.close()


def prompts() -> list[tuple[str, list[tuple[str, str]]]]:
    """Ten questions with two pages of the sample each."""
    pages = [(path.stem, path.read_text(encoding="utf-8")[:700]) for path in sorted(FOLDER.glob("*.md"))]
    asked = [item.question for item in questions()]
    return [
        (asked[number % len(asked)], [pages[number % len(pages)], pages[(number + 3) % len(pages)]])
        for number in range(10)
    ]


async def test_a_server_writes_the_drafts_that_this_process_writes(
    servers: VllmServers, here: LocalModel
) -> None:
    """Greedy text is the same on all ten prompts, and so are its log-probabilities up to rounding."""
    asked = [
        draft_conversation(question, [passage(*page) for page in pages]) for question, pages in prompts()
    ]
    served = ServerModel(access(servers.drafter))
    theirs = []
    ours = []
    for conversation in asked:
        async with aclosing(served.generate([conversation], LINES)) as outputs:
            theirs.append([output async for _, output in outputs])
        async with aclosing(here.generate([conversation], LINES)) as outputs:
            ours.append([output async for _, output in outputs])
    await served.aclose()
    largest = 0.0
    for mine, other in zip(ours, theirs, strict=True):
        assert joined(mine, "rationale") == joined(other, "rationale")
        assert joined(mine, "answer") == joined(other, "answer")
        assert mine[0] == other[0]  # the prompt as sent, to the token
        assert mine[-1] == other[-1]
        for piece, same in zip(mine, other, strict=True):
            if isinstance(piece, Piece) and isinstance(same, Piece):
                largest = max(largest, abs(piece.logprob - same.logprob))
    assert largest < TOKEN_TOLERANCE


async def test_a_server_gives_the_scores_that_this_process_gives(
    servers: VllmServers, here: LocalModel
) -> None:
    asked = [
        ScoreRequest(conversation=verify_conversation(question, text, answer), choice=REFLECTION_CHOICE)
        for (question, pages), answer in zip(
            prompts(), ["Ada", "640", "Tarnholt", "2011", "no", "yes", "160", "kg"] * 2, strict=False
        )
        for text in (pages[0][1][:200],)
    ]
    served = ServerModel(access(servers.verifier, role="verifier"))
    theirs, ours = await served.score(asked), await here.score(asked)
    await served.aclose()
    token, yes = 0.0, 0.0
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.prompt_tokens == other.prompt_tokens
        assert mine.spans.keys() == other.spans.keys()
        for name, tokens in mine.spans.items():
            assert [one.text for one in tokens] == [one.text for one in other.spans[name]]
            pairs = zip(tokens, other.spans[name], strict=True)
            token = max(token, *(abs(one.logprob - two.logprob) for one, two in pairs))
        yes = max(
            yes, abs(mine.choice["yes"] - other.choice["yes"]), abs(mine.choice["no"] - other.choice["no"])
        )
    assert token < TOKEN_TOLERANCE
    assert yes < YES_TOLERANCE


@pytest.mark.parametrize("after", ["the prompt", "a token"])
async def test_the_server_itself_is_free_within_a_second_of_a_stop(servers: VllmServers, after: str) -> None:
    """Its own count of requests, not ours: closed connections must reach the engine."""
    model = ServerModel(access(servers.drafter))
    await model.connect()
    long = passage("Long", "some words of a page " * 600)
    lines = (Line(part="answer", max_tokens=200, label=ANSWER_LABEL),)
    asked = [draft_conversation(f"Who is number {number}?", [long]) for number in range(3)]
    stream = model.generate(asked, lines)
    async with aclosing(stream):
        async for _, output in stream:
            if after == "the prompt" and servers.drafter.running():
                break
            if isinstance(output, Piece):
                break
        assert await asyncio.to_thread(servers.drafter.running) > 0
    began = time.monotonic()
    while await asyncio.to_thread(servers.drafter.running):
        assert time.monotonic() - began < 1
        await asyncio.sleep(0.02)
    assert model.running == 0
    await model.aclose()


async def test_scoring_that_nobody_waits_for_is_stopped(servers: VllmServers) -> None:
    model = ServerModel(access(servers.verifier, role="verifier"))
    await model.connect()
    request = ScoreRequest(
        conversation=verify_conversation("Who?", "some words of a page " * 600, "Ada"),
        choice=REFLECTION_CHOICE,
    )
    await model.score([request])  # the first one of a server pays for what it allocates once
    scoring = asyncio.create_task(model.score([request] * 6))
    while not await asyncio.to_thread(servers.verifier.running):
        assert not scoring.done()
        await asyncio.sleep(0.01)
    scoring.cancel()
    began = time.monotonic()
    while await asyncio.to_thread(servers.verifier.running):
        assert time.monotonic() - began < 1
        await asyncio.sleep(0.02)
    await model.aclose()


async def test_a_model_that_is_not_served_is_named_with_those_that_are(servers: VllmServers) -> None:
    model = ServerModel(access(servers.drafter, model="llama-70b"))
    with pytest.raises(
        ModelError, match=rf"“llama-70b” is wanted and {servers.drafter.model} served.*SPECRAG_DRAFTER"
    ):
        await model.connect()
    await model.aclose()


async def test_a_killed_server_is_one_sentence_and_works_again_when_it_is_back(servers: VllmServers) -> None:
    """In the middle of drafts: every draft ends, and nothing has to be restarted here."""
    model = ServerModel(access(servers.drafter))
    await model.connect()
    killed = False
    ends: list[End] = []
    async with aclosing(model.generate(conversations(), LINES)) as outputs:
        async for _, output in outputs:
            if isinstance(output, Piece) and not killed:
                killed = True
                await asyncio.to_thread(servers.drafter.kill)
            if isinstance(output, End):
                ends.append(output)
    assert [end.finish_reason for end in ends] == ["error"] * 3
    assert all("SPECRAG_DRAFTER_URL" in (end.error or "") for end in ends)
    with pytest.raises(ServerUnreachable):
        await model.connect()
    await asyncio.to_thread(servers.drafter.start)
    await asyncio.to_thread(servers.drafter.wait_ready)
    for found in await collect(model, conversations()):
        assert isinstance(found[-1], End)
        assert found[-1].finish_reason in ("stop", "length")
    await model.aclose()
