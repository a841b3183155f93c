"""Runs of every pipeline as the page sees them, folded from events. Test data: no model wrote any of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from specrag import events as e
from specrag.tracing.trace import Trace, fold
from specrag.types import (
    Answer,
    Decision,
    Hop,
    Passage,
    PipelineName,
    Subset,
    Verdict,
)
from tests.ui_traces import DRAFTS, HOSTILE, LONG_WORD, PASSAGES, SCORES, SUBSETS

MODELS = {
    "drafter": {"name": "small-135m", "parameters": 135},
    "verifier": {"name": "large-1.7b", "parameters": 1700},
}


class Script:
    """Events one after another; every one takes 100 ms."""

    def __init__(self, pipeline: PipelineName, question: str = "How long?", **config: Any) -> None:
        self.events: list[e.Event] = [
            e.RunStarted(
                at_ms=0.0,
                run_id=f"run-{pipeline}",
                pipeline=pipeline,
                question=question,
                created_at="2026-01-01",
                config=config,
                environment={"models": MODELS},
            )
        ]
        self.open("run")

    @property
    def trace(self) -> Trace:
        """The run so far."""
        return fold(self.events)

    @property
    def now(self) -> float:
        """When the next event happens."""
        return 100.0 * len(self.events)

    def tell(self, *events: e.Event) -> None:
        self.events += events

    def open(self, name: str, parent: str | None = None, **attributes: Any) -> str:
        """Begin a span; its id is its name and its place."""
        key = f"{name}-{len(self.events)}"
        above = parent or ("run-1" if name != "run" else None)
        self.tell(
            e.SpanStarted(
                at_ms=self.now, span_id=key, parent_id=above, name=name, attributes=dict(attributes)
            )
        )
        return key

    def close(self, key: str) -> None:
        self.tell(e.SpanEnded(at_ms=self.now, span_id=key))

    def queue(self, *ahead: int) -> None:
        """Wait in line."""
        key = self.open("queue")
        for number in ahead:
            self.tell(e.Queued(at_ms=self.now, ahead=number))
        if not ahead[-1]:
            self.close(key)

    def retrieve(self, passages: Sequence[Passage] = PASSAGES, parent: str | None = None) -> None:
        key = self.open("retrieve", parent)
        self.tell(e.PassagesRetrieved(at_ms=self.now, passages=tuple(passages)))
        self.close(key)

    def draft(self, subsets: Sequence[Subset] = SUBSETS, **formed: Any) -> None:
        """All drafts, from the partition to the verifier's pass."""
        self.tell(e.SubsetsFormed(at_ms=self.now, subsets=tuple(subsets), **formed))
        group = self.open("draft")
        keys = [self.open("draft", group, subset_id=subset.id) for subset in subsets]
        for number, (subset, key) in enumerate(zip(subsets, keys, strict=True)):
            done = replace(DRAFTS[number % len(DRAFTS)], subset_id=subset.id)
            self.tell(e.DraftFinished(at_ms=self.now, draft=done))
            self.close(key)
        self.close(group)
        key = self.open("verify")
        self.tell(e.DraftsVerified(at_ms=self.now, verdicts=_verdicts(subsets)))
        self.close(key)

    def decide(self, kind: Any, reason: str, **more: Any) -> None:
        more = {"draft_index": None, **more}
        self.tell(e.Decided(at_ms=self.now, decision=Decision(kind=kind, reason=reason, **more)))

    def write(self, text: str, step: str = "answer", *, role: str = "verifier") -> str:
        """Stream an answer, a token a word; returns the span, which is still open."""
        key = self.open(step, role=role)
        for number, word in enumerate(text.split(" ")):
            piece = word if number == 0 else f" {word}"
            self.tell(e.AnswerToken(at_ms=self.now, text=piece, logprob=-0.1 * (1 + number % 5)))
        return key

    def answer(self, key: str, text: str, *cited: str, confidence: float | None = 0.8) -> None:
        """Close the writing and end the run."""
        self.tell(
            e.Answered(at_ms=self.now, answer=Answer(text=text, citations=cited, confidence=confidence))
        )
        self.close(key)
        self.close("run-1")
        self.tell(e.RunFinished(at_ms=self.now))


def _verdicts(subsets: Sequence[Subset]) -> tuple[Verdict, ...]:
    return tuple(
        Verdict(
            subset_id=subset.id,
            scores=replace(SCORES[number % len(SCORES)], grounded=0.5),
            log_sums=DRAFTS[0].log_sums,
        )
        for number, subset in enumerate(subsets)
    )


def _direct(pipeline: PipelineName, role: str) -> tuple[Trace, Trace, Trace]:
    """Reading, writing, done."""
    script = Script(pipeline)
    script.retrieve()
    script.decide("direct", f"The {role} answers from all 8 passages.")
    begun = len(script.events)
    key = script.write("three nights, as the notice says", role=role)
    reading, writing = fold(script.events[: begun + 1]), script.trace
    script.tell(
        e.UsageCounted(
            at_ms=script.now,
            role="drafter" if role == "drafter" else "verifier",
            prompt_tokens=900,
            completion_tokens=6,
        )
    )
    script.answer(key, "Three nights, as the notice says", "p2")
    return reading, writing, script.trace


STANDARD_READING, STANDARD_WRITING, STANDARD = _direct("standard", "verifier")
_, DRAFTER_WRITING, DRAFTER = _direct("drafter", "drafter")


def _few() -> tuple[Trace, Trace]:
    script = Script("speculative", direct_passages=3, drafts=4)
    script.retrieve(PASSAGES[:2])
    script.decide("direct", "Only 2 passages were found, too few to divide among drafts.")
    key = script.write("three nights, as the notice says")
    writing = script.trace
    script.answer(key, "Three nights, as the notice says", "p2")
    return writing, script.trace


FEW_WRITING, FEW = _few()


def _synthesised() -> tuple[Trace, Trace]:
    script = Script("speculative", decision="synthesise", drafts=4)
    script.retrieve()
    script.draft(note="Two clusters hold one passage each.", singletons=("p2",))
    script.decide("selected", "Draft 2 scores 0.83.", draft_index=1, margin=0.4, agreement=0.67)
    key = script.write("three nights since 2025 [2, 3], seven before [1].", "synthesise")
    writing = script.trace
    script.decide(
        "synthesised",
        "The verifier wrote this from 3 drafts; draft 1 disputes it.",
        draft_index=1,
        margin=0.4,
        agreement=0.67,
    )
    script.answer(key, "Three nights since 2025, seven before.", "p2", "p5", "p1", confidence=0.7)
    return writing, script.trace


SYNTHESISING, SYNTHESISED = _synthesised()

QUERIES = ("Who owns the quay?", "Who is the harbour master of Sarn?", "When was Ines Tolland appointed?")
NOTES = ("The quay belongs to the town of Sarn.", "The harbour master is Ines Tolland.")


def _made(number: int, found: Sequence[Passage], query: str | None) -> Hop:
    """A finished hop."""
    ids = tuple(passage.id for passage in found)
    return Hop(
        number=number,
        query=QUERIES[number - 1],
        passage_ids=ids,
        note=NOTES[number - 1],
        next_query=query,
        finished=True,
    )


def _multihop() -> tuple[Trace, Trace, Trace, Trace]:
    """Searching again, noting, asking, done."""
    script = Script("multihop", QUERIES[0], hops=3)
    found = PASSAGES[:3]
    key = _search(script, 1)
    script.retrieve(found, key)
    note = script.open("note", key)
    _noted(script, _made(1, found, QUERIES[1]), key, note)
    key = _search(script, 2)
    searching = script.trace
    script.retrieve((*found, *PASSAGES[3:5]), key)
    note = script.open("note", key)
    for word in ("The", " harbour", " master"):
        script.tell(e.HopToken(at_ms=script.now, number=2, part="note", text=word, logprob=-0.2))
    noting = script.trace
    script.tell(e.HopToken(at_ms=script.now, number=2, part="query", text="When", logprob=-0.2))
    asking = script.trace
    _noted(script, _made(2, (PASSAGES[0], *PASSAGES[3:5]), None), key, note)
    script.decide("direct", "Multi-hop RAG: 2 hops were made and then nothing was missing.")
    writing = script.write("Ines Tolland, of the town of Sarn.")
    script.answer(writing, "Ines Tolland, of the town of Sarn.", "p4", "p1")
    return searching, noting, asking, script.trace


def _search(script: Script, number: int) -> str:
    key = script.open("hop", number=number)
    script.tell(e.HopStarted(at_ms=script.now, number=number, query=QUERIES[number - 1]))
    return key


def _noted(script: Script, hop: Hop, key: str, note: str) -> None:
    script.tell(e.HopFinished(at_ms=script.now, hop=hop))
    script.close(note)
    script.close(key)


SEARCHING, NOTING, ASKING, MULTIHOP = _multihop()


def _queued(*ahead: int) -> Trace:
    script = Script("speculative", drafts=4)
    script.queue(*ahead)
    return script.trace


QUEUED = _queued(3, 2)
ADMITTED = _queued(3, 2, 0)


def _queued_and_done() -> Trace:
    script = Script("standard")
    script.queue(1, 0)
    script.retrieve()
    script.decide("direct", "The verifier answers from all 8 passages.")
    script.answer(script.write("three nights"), "Three nights")
    return script.trace


QUEUED_AND_DONE = _queued_and_done()


def _hostile_hops() -> Trace:
    script = Script("multihop", HOSTILE)
    script.retrieve()
    hop = Hop(
        number=1,
        query=HOSTILE,
        passage_ids=("p1", "p1", "gone"),
        note=HOSTILE,
        next_query=LONG_WORD,
        finished=True,
    )
    script.tell(e.HopStarted(at_ms=script.now, number=1, query=HOSTILE))
    script.tell(e.HopFinished(at_ms=script.now, hop=hop))
    script.decide("direct", HOSTILE)
    script.answer(script.write(HOSTILE), HOSTILE, "p1", "gone")
    return script.trace


HOSTILE_HOPS = _hostile_hops()


def _hostile_writer() -> Trace:
    script = Script("standard", HOSTILE)
    script.retrieve()
    script.answer(script.write(HOSTILE, HOSTILE), HOSTILE)
    started = script.events[0]
    assert isinstance(started, e.RunStarted)
    started.environment["models"] = {"verifier": {"name": HOSTILE}}
    return script.trace


HOSTILE_WRITER = _hostile_writer()


def many_drafts(count: int) -> Trace:
    """A run with so many drafts."""
    subsets = [
        Subset(id=f"s{number}", perspective=f"view {number}", passage_ids=(f"p{1 + number % 8}",))
        for number in range(1, count + 1)
    ]
    script = Script("speculative", drafts=count)
    script.retrieve()
    script.draft(subsets)
    return script.trace


RUNS = {
    "standard-reading": STANDARD_READING,
    "standard-writing": STANDARD_WRITING,
    "standard": STANDARD,
    "drafter-writing": DRAFTER_WRITING,
    "drafter": DRAFTER,
    "few-writing": FEW_WRITING,
    "few": FEW,
    "synthesising": SYNTHESISING,
    "synthesised": SYNTHESISED,
    "searching": SEARCHING,
    "noting": NOTING,
    "asking": ASKING,
    "multihop": MULTIHOP,
    "queued": QUEUED,
    "admitted": ADMITTED,
    "queued-and-done": QUEUED_AND_DONE,
    "hostile-hops": HOSTILE_HOPS,
    "hostile-writer": HOSTILE_WRITER,
    "sixteen": many_drafts(16),
    "one": many_drafts(1),
}
