"""A speculative pipeline whose drafter and verifier are pools of fake servers, and what its tests look at."""

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from specrag.models.base import End, Line, Output, Piece
from specrag.models.server.access import Access
from specrag.models.server.model import ServerModel
from specrag.pipelines.speculative import SpeculativePipeline
from specrag.prompts import ANSWER_LABEL, RATIONALE_LABEL, draft_conversation
from specrag.retrieval.chroma import ChromaStore
from specrag.tracing.trace import Trace, fold
from specrag.types import Passage, Role
from tests.contracts.test_language_model import FACTS
from tests.fake_server.server import FakeServer, until
from tests.toys import events_of, pipeline

KEY: Final = "sk-fault-suite-5b1e77"
QUESTION: Final = "How many watt-hours does the battery hold?"
ANSWER: Final = "640 watt-hours"
LINES: Final = (
    Line(part="rationale", max_tokens=64, label=RATIONALE_LABEL, sentences=1),
    Line(part="answer", max_tokens=40, label=ANSWER_LABEL, sentences=1),
)
STALL_S: Final = 0.5
"""How long a server may be silent where a test is about that; elsewhere a busy machine must not fail it."""
PATIENT_S: Final = 20.0
PAUSE_S: Final = 0.1
"""Before a second try of the only server; a person gets a second."""
LIMIT_S: Final = 30.0
"""Nothing takes longer, whatever fails: a second try waits a moment, or as long as a server asks for."""


def write(text: str) -> dict[Any, str]:
    """Answers from the passages if they hold the answer, and abstains otherwise."""
    if "640 watt-hours" in text:
        return {"rationale": " The battery holds 640 watt-hours.", "answer": " 640 watt-hours"}
    if "Ada Brennick" in text:
        return {"rationale": " The firm was founded by Åda — 李雪 — Brennick.", "answer": " Åda Brennick"}
    return {"rationale": " Nothing is said of it — näher besehen.", "answer": " Not in the passages."}


def judge(text: str) -> float:
    """The probability of Yes."""
    return 0.9 if "640 watt-hours" in text else 0.2


def access(role: Role, servers: Sequence[FakeServer], **other: Any) -> Access:
    """How a model reaches these servers."""
    given: dict[str, Any] = {
        "key": KEY,
        "connect_timeout_s": 5.0,
        "stall_timeout_s": PATIENT_S,
        "pause_s": PAUSE_S,
    }
    return Access(role=role, urls=tuple(server.url for server in servers), **{**given, **other})


@asynccontextmanager
async def model(role: Role, *servers: FakeServer, **other: Any) -> AsyncIterator[ServerModel]:
    """A model over servers, which is closed in the end, with every connection."""
    made = ServerModel(access(role, servers, **other))
    try:
        yield made
    finally:
        await made.aclose()
        with warnings.catch_warnings():
            # a socket that was being connected when its request was cancelled, or its server killed, goes with
            # the garbage; what stays open is asked of the server itself
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
    for server in servers:
        assert await until(lambda server=server: server.open_connections == 0), "a connection stayed open"  # type: ignore[misc]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """Servers, the models over them, and a pipeline."""

    drafters: tuple[FakeServer, ...]
    verifiers: tuple[FakeServer, ...]
    drafter: ServerModel
    verifier: ServerModel
    pipeline: SpeculativePipeline

    def servers(self, role: Role) -> tuple[FakeServer, ...]:
        """Those of one role."""
        return self.drafters if role == "drafter" else self.verifiers

    async def ask(self, limit_s: float = LIMIT_S) -> Trace:
        """The trace of one run; it hangs for no longer than the limit."""
        async with asyncio.timeout(limit_s):
            return fold(await events_of(self.pipeline, QUESTION))

    async def idle(self, within_s: float = 1.0) -> bool:
        """Whether every server soon has nothing to do."""
        return await until(
            lambda: not any(one.running for one in (*self.drafters, *self.verifiers)), within_s=within_s
        )


@asynccontextmanager
async def rig(
    store: ChromaStore,
    *,
    drafters: int = 1,
    verifiers: int = 1,
    connect: bool = True,
    stall_s: float = PATIENT_S,
    **settings: Any,
) -> AsyncIterator[Rig]:
    """Start the servers and put the pipeline together; `settings` are those of the run."""
    async with AsyncExitStack() as held:
        with ExitStack() as listening:
            servers = {
                role: tuple(
                    listening.enter_context(FakeServer(write, judge=judge, model=role, key=KEY))
                    for _ in range(count)
                )
                for role, count in (("drafter", drafters), ("verifier", verifiers))
            }
            held.push(listening.pop_all())
        drafter = await held.enter_async_context(
            model("drafter", *servers["drafter"], stall_timeout_s=stall_s)
        )
        verifier = await held.enter_async_context(
            model("verifier", *servers["verifier"], stall_timeout_s=stall_s)
        )
        if connect:
            await asyncio.gather(drafter.connect(), verifier.connect())
        yield Rig(
            drafters=servers["drafter"],
            verifiers=servers["verifier"],
            drafter=drafter,
            verifier=verifier,
            pipeline=pipeline(store, drafter, verifier, **settings),
        )


def written(trace: Trace) -> list[list[tuple[str, float]]]:
    """Every token of every draft with its log-probability."""
    return [[(token.text, token.logprob) for token in draft.tokens] for draft in trace.drafts]


def said(trace: Trace) -> str:
    """Everything that a run tells its reader of failures."""
    errors = [draft.error for draft in trace.drafts if draft.error]
    reason = trace.decision.reason if trace.decision else ""
    return "\n".join([*dict.fromkeys(errors), reason, trace.error.message if trace.error else ""])


async def drafts(model: ServerModel, count: int = len(FACTS)) -> list[list[Output]]:
    """What a model writes about the passages of the contract suite, in turn for `count` conversations."""
    asked = [
        draft_conversation(
            "Who founded the firm?",
            [
                Passage(
                    id=title,
                    document_id="d",
                    title=title,
                    text=text,
                    page=None,
                    source="f",
                    published_at=None,
                    score=0.5,
                )
            ],
        )
        for title, text in (FACTS[number % len(FACTS)] for number in range(count))
    ]
    found: list[list[Output]] = [[] for _ in asked]
    async with asyncio.timeout(LIMIT_S), aclosing(model.generate(asked, LINES)) as outputs:
        async for index, output in outputs:
            found[index].append(output)
    return found


def tokens(outputs: Sequence[Output]) -> list[tuple[str, str, float]]:
    """Part, text and log-probability of what was written."""
    return [(item.part, item.text, item.logprob) for item in outputs if isinstance(item, Piece)]


def ends(found: Sequence[Sequence[Output]]) -> list[End]:
    """How each ended."""
    lasts = [outputs[-1] for outputs in found]
    assert all(isinstance(last, End) for last in lasts)
    return [last for last in lasts if isinstance(last, End)]
