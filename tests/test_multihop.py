"""Multi-hop RAG: the note of a hop decides what the next one looks for."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from specrag.events import HopToken
from specrag.models.scripted import ScriptedModel, Written
from specrag.pipelines.multihop import MultiHopPipeline, why_stop
from specrag.retrieval.chroma import ChromaStore
from specrag.tracing.trace import Trace, fold
from tests.test_standard import Narrow
from tests.toys import events_of, filled_store, tools

QUESTION = "How long does it take to charge what holds 640 watt-hours?"


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


class Detective:
    """Finds the battery first and then asks for its charge; keeps what it was shown."""

    def __init__(self, *queries: str, note: str | None = None) -> None:
        self._queries = queries
        self._note = note
        self.prompts: list[str] = []

    def __call__(self, text: str) -> Written:
        self.prompts.append(text)
        hop = len(self.prompts) - 1
        query = self._queries[hop] if hop < len(self._queries) else " nothing"
        note = self._note or (
            " 5 hours for a full charge." if "5 hours" in text else f" the battery, see {hop}."
        )
        answer = " 5 hours" if "5 hours" in text else " Not in the passages."
        return {"note": note, "query": query, "answer": answer}


async def run(store: ChromaStore, script: Callable[[str], Written], **settings: object) -> Trace:
    settings = {"retrieve": 1, **settings}
    made = MultiHopPipeline(tools(store, ScriptedModel(script), **settings))  # type: ignore[arg-type]  # settings only
    return fold(await events_of(made, QUESTION))


async def test_the_second_hop_finds_what_the_first_could_not(store: ChromaStore) -> None:
    """The one passage nearest to the question does not answer it; the one that the model asks for does."""
    detective = Detective(" full charge takes hours")
    trace = await run(store, detective)
    assert [hop.query for hop in trace.hops] == [QUESTION, "full charge takes hours"]
    titles = [passage.title for passage in trace.passages]
    assert titles == ["Battery", "Charging"]
    assert [hop.passage_ids for hop in trace.hops] == [(passage.id,) for passage in trace.passages]
    assert trace.answer is not None
    assert trace.answer.text == "5 hours"
    assert trace.answer.citations == (trace.passages[1].id,)
    assert trace.hops[0].next_query == "full charge takes hours"
    assert trace.hops[1].next_query is None
    assert all(hop.finished for hop in trace.hops)


async def test_the_answer_is_written_from_all_passages_and_all_notes(store: ChromaStore) -> None:
    detective = Detective(" full charge takes hours")
    trace = await run(store, detective)
    first, second, last = detective.prompts
    assert "Notes so far" not in first
    assert "- the battery, see 0." in second
    assert "640 watt-hours." not in second.split("Notes so far")[0].split(QUESTION)[1], (
        "hop 2 reads what it found"
    )
    assert all(passage.text in last for passage in trace.passages)
    assert all(f"- {hop.note}" in last for hop in trace.hops)


async def test_hops_are_spans_with_their_retrieval_and_their_note(store: ChromaStore) -> None:
    trace = await run(store, Detective(" full charge takes hours"))
    hops = [span for span in trace.spans if span.name == "hop"]
    assert [span.attributes["number"] for span in hops] == [1, 2]
    for hop in hops:
        assert [span.name for span in trace.spans if span.parent_id == hop.id] == ["retrieve", "note"]


async def test_streamed_tokens_are_the_notes_and_the_queries(store: ChromaStore) -> None:
    model = ScriptedModel(Detective(" full charge takes hours"))
    events = await events_of(MultiHopPipeline(tools(store, model, retrieve=1)), QUESTION)
    trace = fold(events)
    for hop in trace.hops:
        tokens = [event for event in events if isinstance(event, HopToken) and event.number == hop.number]
        assert "".join(token.text for token in tokens if token.part == "note").strip() == hop.note
        assert all(token.logprob == -0.5 for token in tokens)
    written = [event.text for event in events if isinstance(event, HopToken) and event.part == "query"]
    assert "".join(written).split() == ["full", "charge", "takes", "hours", "nothing"]


@pytest.mark.parametrize(
    ("queries", "hops", "words"),
    [
        ([" nothing"], 1, "1 hop was made and then nothing was missing"),
        ([f" {QUESTION.upper()}"], 1, "1 hop was made and then the next query repeated an earlier one"),
        ([" soup", " the Soup?"], 2, "2 hops were made and then the next query repeated an earlier one"),
        ([" soup", " load", " firm", " March"], 3, "3 hops were made and then no further one is allowed"),
    ],
)
async def test_it_stops_and_says_why(
    store: ChromaStore, queries: Sequence[str], hops: int, words: str
) -> None:
    """An iteration without an end is the classic fault of this method."""
    trace = await run(store, Detective(*queries))
    assert len(trace.hops) == hops
    assert trace.decision is not None
    assert words in trace.decision.reason
    assert trace.hops[-1].next_query is None


async def test_a_note_that_comes_back_ends_the_search(store: ChromaStore) -> None:
    trace = await run(store, Detective(" soup", " load", note=" it is the battery."))
    assert len(trace.hops) == 2
    assert trace.decision is not None
    assert "the last one found nothing new" in trace.decision.reason


async def test_the_last_hop_is_not_asked_for_a_query(store: ChromaStore) -> None:
    """Nobody would look for it, and the visitor would wait for its tokens."""
    model = ScriptedModel(Detective(" soup", " load", " firm"))
    events = await events_of(MultiHopPipeline(tools(store, model, retrieve=1, hops=2)), QUESTION)
    asked = {event.number for event in events if isinstance(event, HopToken) and event.part == "query"}
    assert asked == {1}
    assert len(fold(events).hops) == 2


def by_steps(text: str) -> Written:
    """Notes the battery, asks for its charge, and answers with what it is shown of both."""
    shown = [fact for fact in ("640 watt-hours", "5 hours") if fact in text]
    query = " full charge takes hours" if "Charging" not in text else " nothing"
    return {"note": f" {' and '.join(shown)}.", "query": query, "answer": f" {' and '.join(shown)}."}


async def test_the_best_of_every_hop_is_read_where_not_all_fits(store: ChromaStore) -> None:
    """The last passages used to go first: those that only a later hop could find, the point of the method."""
    model = Narrow(60, script=by_steps)
    made = MultiHopPipeline(tools(store, model, retrieve=3, note_tokens=16, query_tokens=16))
    trace = fold(await events_of(made, "What must be done with the thing that weighs 3.4 kilograms?"))
    assert [hop.query for hop in trace.hops][1:] == ["full charge takes hours"]
    assert trace.decision is not None
    assert "ranked lowest do not fit" in trace.decision.reason
    last = model.prompts[-1].split("Notes so far")[0]
    assert "A full charge takes 5 hours." in last
    assert "The battery holds 640 watt-hours." in last
    assert trace.answer is not None
    assert "5 hours" in trace.answer.text


async def test_a_hop_names_the_passages_that_it_read(store: ChromaStore) -> None:
    """A note must not seem to rest on a passage that its prompt had no room for."""
    model = Narrow(80, script=by_steps)
    made = MultiHopPipeline(tools(store, model, retrieve=6, note_tokens=16, query_tokens=16))
    trace = fold(await events_of(made, QUESTION))
    read = trace.hops[0].passage_ids
    assert 0 < len(read) < len(trace.passages)
    prompts = [prompt for prompt in model.prompts if "Note:" in prompt and "Notes so far" not in prompt]
    shown = [passage.id for passage in trace.passages if passage.text in prompts[-1]]
    assert list(read) == shown


async def test_a_passage_that_two_hops_find_is_read_once(store: ChromaStore) -> None:
    detective = Detective(" battery weighs kilograms")
    trace = await run(store, detective, retrieve=4)
    ids = [passage.id for passage in trace.passages]
    assert len(ids) == len(set(ids))
    assert trace.hops[1].passage_ids
    assert detective.prompts[-1].count("The battery holds 640 watt-hours.") == 1


@pytest.mark.parametrize(
    "wanted",
    [
        "",
        " ",
        "Nothing.",
        "none",
        "N/A",
        "Nothing is missing.",
        "“nothing else”",
        "There is nothing missing.",
        "there’s nothing",
        "There are no facts missing.",
        "No further information is needed.",
    ],
)
def test_the_ways_to_say_that_nothing_is_missing(wanted: str) -> None:
    assert why_stop(wanted, ["Who?"]) == "nothing was missing"


@pytest.mark.parametrize(
    "wanted",
    [
        "Nothing Phone 2 battery",
        "No Country for Old Men director",
        "None of the above",
        "There is no charger in the box: which one fits?",
        "Is there nothing in the box?",
    ],
)
def test_a_query_may_begin_with_such_a_word(wanted: str) -> None:
    assert not why_stop(wanted, ["Who?"])
