"""Standard RAG, drafter only and the way they share: one model, all passages, one answer."""

import math
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace

import pytest

from specrag.direct import LABEL_ROOM
from specrag.errors import ModelError
from specrag.events import AnswerToken, Decided
from specrag.models.base import Begin, Conversation, End, Line, Output, Piece
from specrag.models.scripted import ScriptedModel, Written
from specrag.pipelines.base import Pipeline
from specrag.pipelines.drafter_only import DrafterOnlyPipeline
from specrag.pipelines.standard import StandardPipeline
from specrag.retrieval.chroma import ChromaStore
from specrag.tracing.trace import Trace, fold
from tests.toys import PAGES, events_of, filled_store, pipeline, tools

QUESTION = "How many watt-hours does the battery hold?"


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


def answer(_: str) -> Written:
    return {"answer": " it holds 640 watt-hours."}


class Narrow(ScriptedModel):
    """A model with a context of so many words, which refuses a longer prompt unread, as a real one does."""

    def __init__(
        self,
        words: int,
        *,
        says: str = " it holds 640 watt-hours.",
        script: Callable[[str], Written] | None = None,
    ) -> None:
        super().__init__(script or (lambda _: {"answer": says}))
        self.info = replace(self.info, context=words + 80)  # its own 64 tokens and the room for a label
        self.prompts: list[str] = []

    async def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        room = self.info.context - sum(line.max_tokens + LABEL_ROOM for line in lines)
        async with aclosing(super().generate(conversations, lines)) as outputs:
            async for index, output in outputs:
                yield index, output
                if isinstance(output, Begin):
                    self.prompts.append(output.prompt)
                    if output.prompt_tokens > room:
                        error = "The prompt is too long."
                        yield index, End(finish_reason="error", completion_tokens=0, error=error)
                        return


async def run(made: Pipeline) -> Trace:
    return fold(await events_of(made, QUESTION))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (StandardPipeline, "Standard RAG: the verifier answers from all 6 passages."),
        (DrafterOnlyPipeline, "Drafter only: the drafter answers from all 6 passages and nobody checks it."),
    ],
)
async def test_the_reason_names_the_model_and_what_it_reads(
    store: ChromaStore, kind: Callable[..., Pipeline], words: str
) -> None:
    prompts: list[str] = []

    def keep(text: str) -> Written:
        prompts.append(text)
        return answer(text)

    def never(_: str) -> Written:
        raise AssertionError("the other model was asked")

    models = [ScriptedModel(never), ScriptedModel(keep)]
    drafter, verifier = models if kind is StandardPipeline else reversed(models)
    trace = await run(kind(tools(store, drafter, verifier)))
    assert trace.decision is not None
    assert trace.decision.reason == words
    assert trace.answer is not None
    assert trace.answer.text == "It holds 640 watt-hours."
    (prompt,) = prompts
    assert all(text in prompt for _, text in PAGES)
    assert not trace.drafts
    assert not trace.subsets
    assert [span.name for span in trace.spans] == ["run", "retrieve", "embed", "search", "answer"]


async def test_confidence_is_the_geometric_mean_of_the_tokens(store: ChromaStore) -> None:
    trace = await run(StandardPipeline(tools(store, ScriptedModel(answer, logprob=math.log(0.25)))))
    assert trace.answer is not None
    assert trace.answer.confidence == pytest.approx(0.25)
    assert [token.logprob for token in trace.answer_tokens] == pytest.approx([math.log(0.25)] * 4)


async def test_passages_that_do_not_fit_are_left_out_and_the_reason_says_so(store: ChromaStore) -> None:
    """Ten long passages must not turn a question into an error."""
    model = Narrow(60)
    events = await events_of(StandardPipeline(tools(store, model)), QUESTION)
    trace = fold(events)
    assert trace.answer is not None
    assert trace.answer.text == "It holds 640 watt-hours."
    assert len(trace.passages) == len(PAGES), "they were found all the same"
    shown = sum(passage.text in model.prompts[-1] for passage in trace.passages)
    assert 1 <= shown < len(PAGES)
    assert all(passage.text in model.prompts[-1] for passage in trace.passages[:shown])
    assert trace.decision is not None
    assert trace.decision.reason == (
        "Standard RAG: the verifier answers from all 6 passages. "
        f"Of these, the {6 - shown} ranked lowest do not fit its context of 140 tokens and were left out."
    )
    decided = [number for number, event in enumerate(events) if isinstance(event, Decided)]
    written = next(number for number, event in enumerate(events) if isinstance(event, AnswerToken))
    assert decided[-1] < written, "a reader knows it before the answer comes"
    assert set(trace.answer.citations) <= {passage.id for passage in trace.passages[:shown]}


async def test_what_was_left_out_is_told_once_however_often_it_was_tried(store: ChromaStore) -> None:
    """Passages differ in length, so the first guess at how many fit may be too high."""
    model = Narrow(44)
    trace = await run(StandardPipeline(tools(store, model)))
    assert len(model.prompts) > 2
    assert trace.decision is not None
    assert trace.decision.reason.count("left out") == 1
    shown = sum(passage.text in model.prompts[-1] for passage in trace.passages)
    assert shown == 2
    assert "the 4 ranked lowest do" in trace.decision.reason


async def test_a_passage_that_was_left_out_is_not_cited(store: ChromaStore) -> None:
    """The model never read it, however well its words fit the answer."""
    said = " the firm was founded by Ada Brennick."
    whole = await run(StandardPipeline(tools(store, Narrow(500, says=said))))
    assert whole.answer is not None
    assert whole.answer.citations
    short = await run(StandardPipeline(tools(store, Narrow(44, says=said))))
    assert short.answer is not None
    assert short.answer.citations == ()


async def test_a_context_too_small_for_one_passage_is_one_sentence(store: ChromaStore) -> None:
    trace = await run(StandardPipeline(tools(store, Narrow(10))))
    assert trace.status == "failed"
    assert trace.error is not None
    assert (trace.error.type, trace.error.message) == ("context_too_long", "The prompt is too long.")


async def test_another_failure_is_not_taken_for_a_long_prompt(store: ChromaStore) -> None:
    """Asking a broken model again and again with less would hide what is wrong."""
    asked: list[str] = []

    def broken(text: str) -> Written:
        asked.append(text)
        raise RuntimeError("out of memory")

    trace = await run(StandardPipeline(tools(store, ScriptedModel(broken))))
    assert trace.error is not None
    assert trace.error.message == "out of memory"
    assert len(asked) == 1


async def test_the_fallback_leaves_out_what_does_not_fit_as_well(store: ChromaStore) -> None:
    drafter = ScriptedModel(lambda _: {"answer": " 640 watt-hours"})
    trace = await run(pipeline(store, drafter, Narrow(60), threshold=0.99))
    assert trace.decision is not None
    assert trace.decision.kind == "fallback"
    assert "below the threshold" in trace.decision.reason
    assert "were left out" in trace.decision.reason
    assert trace.answer is not None
    assert trace.answer.text == "It holds 640 watt-hours."


async def test_a_prompt_that_is_refused_costs_nothing(store: ChromaStore) -> None:
    """Only what a model has read is charged, however often the prompt had to be shortened."""
    model = Narrow(44)
    trace = await run(StandardPipeline(tools(store, model)))
    assert len(model.prompts) > 2
    assert trace.usage.verifier.prompt_tokens == len(model.prompts[-1].split())
    assert trace.usage.verifier.completion_tokens == len(trace.answer_tokens)
    refused = await run(StandardPipeline(tools(store, Narrow(10))))
    assert refused.usage.verifier.prompt_tokens == 0


class BreaksOff(ScriptedModel):
    """A model whose server goes away in the middle of an answer."""

    async def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        async with aclosing(super().generate(conversations, lines)) as outputs:
            async for index, output in outputs:
                yield index, output
                if isinstance(output, Piece):
                    raise ModelError("The server of the model went away.")


async def test_what_a_model_wrote_before_it_broke_off_is_charged(store: ChromaStore) -> None:
    trace = await run(StandardPipeline(tools(store, BreaksOff(answer))))
    assert trace.status == "failed"
    assert trace.usage.verifier.prompt_tokens > 0
    assert trace.usage.verifier.completion_tokens == 1


async def test_a_fallback_that_finds_no_answer_says_so(store: ChromaStore) -> None:
    """Its reason used to promise an answer from all passages, and nothing else told that there is none."""
    drafter = ScriptedModel(lambda _: {"answer": " 640 watt-hours"})
    verifier = ScriptedModel(lambda _: {"answer": " Not in the passages."})
    trace = await run(pipeline(store, drafter, verifier, threshold=0.99))
    assert trace.decision is not None
    assert trace.decision.kind == "fallback"
    assert trace.decision.reason.endswith("from all passages. It says that they do not hold the answer.")
    assert trace.answer is not None
    assert trace.answer.text == "Not in the passages."


async def test_numbers_of_the_prompt_become_citations_and_leave_the_text(store: ChromaStore) -> None:
    """The page numbers passages by itself; a number of the prompt in the text would point elsewhere."""
    model = ScriptedModel(lambda _: {"answer": " 640 watt-hours [1]."})
    trace = fold(await events_of(StandardPipeline(tools(store, model)), "How much does the battery hold?"))
    assert trace.answer is not None
    assert trace.answer.text == "640 watt-hours."
    cited = [trace.passage(passage_id) for passage_id in trace.answer.citations]
    assert [one.title for one in cited if one] == [trace.passages[0].title]
    assert "[1]" in "".join(token.text for token in trace.answer_tokens)
