"""Whole runs over real servers: many at once, none mixed up, nothing left open."""

import asyncio
import itertools
import re
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from specrag.build import Parts
from specrag.config import Settings, load_settings
from specrag.events import DraftToken
from specrag.models.server.model import ServerModel
from specrag.pipelines.base import Request
from specrag.recording import Recording
from specrag.tracing.trace import Trace, fold
from specrag.vllm.server import VllmServer
from specrag.vllm.servers import VllmServers

pytestmark = [pytest.mark.vllm, pytest.mark.integration]

RUNS = 32
DEPOTS = [
    first + last
    for first, last in itertools.product(
        ("Al", "Bre", "Cor", "Dun"),
        (
            "ford",
            "ham",
            "wick",
            "stead",
            "bury",
            "mouth",
            "field",
            "gate",
        ),
    )
]
CODE = re.compile(r"\b\d{4}\b")
FORMS = (
    "The access code of the depot in {name} is {code}. It was set by the night shift.",
    "Depot {name}: drivers type the access code {code} at the gate.",
    "Notice for {name}. Since spring the access code of this depot has been {code}.",
    "Whoever delivers to the depot in {name} needs its access code, which is {code}.",
)


def code_of(number: int) -> str:
    """A number of four digits that no other depot has."""
    return str(1009 + 271 * number)


@pytest.fixture(scope="module")
def settings(servers: VllmServers, embedder_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return load_settings(
        home=tmp_path_factory.mktemp("home"),
        drafter=servers.drafter.model,
        drafter_url=servers.drafter.url,
        verifier=servers.verifier.model,
        verifier_url=servers.verifier.url,
        embedder=str(embedder_path),
        concurrent_runs=RUNS,
    )


@pytest.fixture(scope="module")
def parts(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    made = Parts(settings, in_memory=True)
    folder = tmp_path_factory.mktemp("depots")
    for number, name in enumerate(DEPOTS):
        for form, text in enumerate(FORMS):
            path = folder / f"{name}-{form}.txt"
            path.write_text(text.format(name=name, code=code_of(number)), encoding="utf-8")
            assert made.indexer.ingest(path, path.name, f"depot-{name}").status == "ready"
    yield made
    made.close()


async def ask(parts: Parts, number: int) -> Trace:
    name = DEPOTS[number]
    request = Request(question=f"What is the access code of the depot in {name}?", collection=f"depot-{name}")
    log = Recording()
    await log.record(parts.speculative, request, deadline_s=500)
    return fold(log.events)


def connections_to(server: VllmServer) -> int:
    """Connections of this process to a server that are open, by the kernel's tables."""
    own = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            own.add(str(entry.readlink()))
        except OSError:  # closed while we look
            continue
    wanted = f":{int(server.url.split(':')[2].split('/')[0]):04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[2].endswith(wanted) and f"socket:[{row[9]}]" in own for row in rows)


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="counts connections in Linux's tables")
async def test_thirty_two_questions_at_once_are_answered_and_none_is_mixed_up(
    parts: Parts, servers: VllmServers
) -> None:
    """Every depot has a collection and a code of its own, so another's code in a text can only be a mix-up."""
    traces = await asyncio.gather(*(ask(parts, number) for number in range(RUNS)))
    right = 0
    for number, trace in enumerate(traces):
        assert trace.status == "done", trace.error
        assert trace.answer is not None
        assert len(trace.drafts) >= 2
        for draft in trace.drafts:
            assert draft.finish_reason in ("stop", "length")
            assert DEPOTS[number] in draft.prompt
            assert draft.scores.self_containment is not None
            assert draft.scores.self_reflection is not None
            codes = set(CODE.findall(f"{draft.rationale} {draft.answer}"))
            others = {code_of(other) for other in range(RUNS)} - {code_of(number)}
            assert not codes & others
        right += code_of(number) in trace.answer.text
    assert right >= RUNS * 3 // 4
    assert await asyncio.to_thread(servers.drafter.running) == 0
    assert await asyncio.to_thread(servers.verifier.running) == 0
    assert parts.server_prompts == 0
    for model in (parts.drafter, parts.verifier):
        assert isinstance(model, ServerModel)
        await model.aclose()
    assert connections_to(servers.drafter) == 0
    assert connections_to(servers.verifier) == 0


async def test_a_deadline_frees_both_servers(parts: Parts, servers: VllmServers) -> None:
    name = DEPOTS[0]
    request = Request(question="What is the access code?", collection=f"depot-{name}")
    log = Recording()
    running = asyncio.create_task(log.record(parts.speculative, request, deadline_s=1.0))
    while not await asyncio.to_thread(servers.drafter.running):
        assert not running.done()
    await running
    trace = fold(log.events)
    assert trace.subsets  # it came as far as the drafts
    assert trace.status == "cancelled"
    assert trace.error is not None
    assert "1 s" in trace.error.message
    began = asyncio.get_running_loop().time()
    while await asyncio.to_thread(servers.drafter.running) + await asyncio.to_thread(
        servers.verifier.running
    ):
        assert asyncio.get_running_loop().time() - began < 1
        await asyncio.sleep(0.02)
    assert parts.server_prompts == 0


async def test_eager_verification_gives_the_same_answer(parts: Parts, settings: Settings) -> None:
    """Each draft read by itself scores as it does among the others."""
    eager = settings.model_copy(update={"eager": True})
    request = Request(question=f"What is the code of {DEPOTS[3]}?", collection=f"depot-{DEPOTS[3]}")
    usual, hasty = Recording(), Recording()
    await usual.record(parts.pipeline("speculative"), request, deadline_s=200)
    await hasty.record(parts.pipeline("speculative", eager), request, deadline_s=200)
    one, other = fold(usual.events), fold(hasty.events)
    assert one.answer is not None
    assert other.answer is not None
    assert one.answer.text == other.answer.text
    assert one.usage.verifier.prompt_tokens == other.usage.verifier.prompt_tokens
    assert other.usage.verifier.forward_passes == len(other.drafts)
    for draft, same in zip(one.drafts, other.drafts, strict=True):
        assert draft.scores.combined == pytest.approx(same.scores.combined, abs=1e-3)


async def test_leaving_a_stream_of_events_frees_the_servers(parts: Parts, servers: VllmServers) -> None:
    request = Request(question="What is the access code?", collection=f"depot-{DEPOTS[1]}")
    seen = False
    async with aclosing(parts.speculative.run(request)) as events:
        async for event in events:
            seen = isinstance(event, DraftToken)
            if seen:
                break
    assert seen
    assert parts.server_prompts == 0
    began = asyncio.get_running_loop().time()
    while await asyncio.to_thread(servers.drafter.running):
        assert asyncio.get_running_loop().time() - began < 1
        await asyncio.sleep(0.02)
