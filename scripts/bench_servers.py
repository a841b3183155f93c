"""Model servers, measured: against this process, streams against one request, eager or not, many at once.

    python -m specrag vllm --start                      in another terminal; it prints the variables to set
    python scripts/bench_servers.py --data ../shared/data/qa --rounds 5 --runs 32

1. Same answers: 40 prompts from the files of `--data` (else from the sample), greedy drafts of the server and
   of this process over the same weights in float32 (`--weights`, by name or folder): how many are the same
   text, and how far the log-probabilities of their tokens and the probabilities of Yes and No lie apart.
2. Four drafts as four streaming requests, and as one request with four prompts: the same tokens, in turn.
3. Whole runs over the sample with verification in one pass, and eager, in turn.
4. `--runs` questions at once against one after the other: how many answers a minute.

Medians with minimum and maximum; nothing else should run on the machine.
"""

import argparse
import asyncio
import itertools
import json
import sys
import time
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.bench_engine import LINES, Case, cases_of  # noqa: E402 - the checkout is not installed
from scripts.figures import say, spread  # noqa: E402
from specrag.build import Parts  # noqa: E402
from specrag.config import load_settings  # noqa: E402
from specrag.evaluation.latency.environment import environment  # noqa: E402
from specrag.library.library import SAMPLE  # noqa: E402
from specrag.models.base import LanguageModel, Piece, ScoreRequest  # noqa: E402
from specrag.models.local import LocalModel  # noqa: E402
from specrag.models.server import wire  # noqa: E402
from specrag.models.server.http import Http  # noqa: E402
from specrag.models.server.model import ServerModel  # noqa: E402
from specrag.models.server.probe import COMPLETIONS, greedy  # noqa: E402
from specrag.models.weights import Weights  # noqa: E402
from specrag.pipelines.base import Request  # noqa: E402
from specrag.prompts import REFLECTION_CHOICE, draft_conversation, verify_conversation  # noqa: E402
from specrag.sample import ensure_sample, questions  # noqa: E402
from specrag.tracing.trace import Trace, TraceFold  # noqa: E402

PROMPTS, DRAFTS, WRITTEN = 40, 4, 32
PARTS = ("answers", "streams", "eager", "load")


def main() -> None:
    """Everything that the arguments ask for, as one document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=32)
    parser.add_argument("--data", type=Path, help="Folder with evaluation files (JSON lines).")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="Which of the four.")
    parser.add_argument("--weights", default="smollm2-135m-instruct", help="What the servers serve.")
    asked = parser.parse_args()
    json.dump(asyncio.run(measure(asked)), sys.stdout, indent=2)
    sys.stdout.write("\n")


async def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """The document."""
    settings = load_settings(concurrent_runs=asked.runs)
    parts = Parts(settings, in_memory=True)
    drafter, verifier = await asyncio.to_thread(lambda: (parts.drafter, parts.verifier))
    if not isinstance(drafter, ServerModel) or not isinstance(verifier, ServerModel):
        sys.exit("Set SPECRAG_DRAFTER_URL and SPECRAG_VERIFIER_URL to running servers.")
    await asyncio.to_thread(ensure_sample, parts.indexer)
    cases = list(itertools.islice(cases_of(asked.data), PROMPTS))
    document: dict[str, Any] = {
        "schema": "specrag.bench-servers/1",
        "environment": {**environment(settings.threads), "server": drafter.info.device},
    }
    if "answers" in asked.only:
        document["answers"] = await answers(parts, asked.weights, drafter, verifier, cases)
    if "streams" in asked.only:
        document["streams"] = await streams(drafter, cases, asked.rounds)
    if "eager" in asked.only:
        document["eager"] = await eager(parts, asked.rounds)
    if "load" in asked.only:
        document["load"] = await load(parts, asked.runs)
    await drafter.aclose()
    await verifier.aclose()
    parts.close()
    return document


async def answers(
    parts: Parts, weights: str, drafter: ServerModel, verifier: ServerModel, cases: Sequence[Case]
) -> dict[str, Any]:
    """Drafts and scores of the servers against those of this process."""
    say("answers")
    folder = Weights(home=parts.settings.home).ensure(weights)
    here = await asyncio.to_thread(
        lambda: LocalModel(folder, name=weights, worker=parts.worker, threads=2, precision="float32")
    )
    same, token, yes = 0, [], []
    for number, case in enumerate(cases):
        say(f"  {number + 1} of {len(cases)}")
        ours, theirs = await _draft(here, case), await _draft(drafter, case)
        alike = [piece.text for piece in ours] == [piece.text for piece in theirs]
        same += alike
        if alike:
            token += [abs(one.logprob - two.logprob) for one, two in zip(ours, theirs, strict=True)]
        texts = {
            part: "".join(p.text for p in ours if p.part == part).strip() for part in ("rationale", "answer")
        }
        request = ScoreRequest(
            conversation=verify_conversation(case.question, texts["rationale"], texts["answer"] or "none"),
            choice=REFLECTION_CHOICE,
        )
        (mine,), (other,) = await here.score([request]), await verifier.score([request])
        for name, scored in mine.spans.items():
            pairs = zip(scored, other.spans[name], strict=True)
            token += [abs(one.logprob - two.logprob) for one, two in pairs]
        yes += [abs(mine.choice[name] - other.choice[name]) for name in mine.choice]
    return {
        "same_text": same,
        "of": len(cases),
        "token_logprob_difference": spread(token) | {"max": max(token)},
        "yes_no_difference": spread(yes) | {"max": max(yes)},
    }


async def _draft(model: LanguageModel, case: Case) -> list[Piece]:
    conversation = draft_conversation(case.question, case.passages)
    async with aclosing(model.generate([conversation], LINES)) as outputs:
        return [output async for _, output in outputs if isinstance(output, Piece)]


async def streams(drafter: ServerModel, cases: Sequence[Case], rounds: int) -> dict[str, Any]:
    """Four prompts in four requests, and in one: seconds until all have written the same number of tokens."""
    say("streams")
    access = drafter._access  # noqa: SLF001 - the same server, asked in a way that the client does not
    http, url = Http(access), access.urls[0]
    vocabulary = await drafter._vocabulary()  # noqa: SLF001
    found: dict[str, list[float]] = {"requests": [], "one_request": []}
    first: dict[str, list[float]] = {"requests": [], "one_request": []}
    for number in range(rounds + 1):
        some = [cases[(number * DRAFTS + place) % len(cases)] for place in range(DRAFTS)]
        prompts = []
        for place, case in enumerate(some):
            # a word of its own at the beginning, so that no round finds another's prompt in the cache
            for way in found:
                conversation = draft_conversation(f"{way} {number} {place}: {case.question}", case.passages)
                prompts.append((await vocabulary.render(conversation))[1].ids)
        for offset, way in enumerate(found):
            own = prompts[offset::2]
            began = time.perf_counter()
            bodies = [[ids] for ids in own] if way == "requests" else [own]
            times = await asyncio.gather(*(_written(http, url, drafter.info.name, body) for body in bodies))
            if number:  # the first one warms up
                found[way].append(time.perf_counter() - began)
                first[way].append(min(times) - began)
    await http.aclose()
    return {
        "drafts": DRAFTS,
        "tokens_each": WRITTEN,
        **{way: {"all_s": spread(found[way]), "first_token_s": spread(first[way])} for way in found},
        "one_request_against_requests": spread(
            [one / many for one, many in zip(found["one_request"], found["requests"], strict=True)]
        ),
    }


async def _written(http: Http, url: str, model: str, prompts: Sequence[Sequence[int]]) -> float:
    """Write after every prompt in one request; when the first token came."""
    body = {
        **greedy(model),
        "prompt": [list(ids) for ids in prompts],
        "max_tokens": WRITTEN,
        "ignore_eos": True,
        "logprobs": 1,
        "stream": True,
        "return_token_ids": True,
    }
    first = 0.0
    async with aclosing(http.stream(url, COMPLETIONS, body)) as events:
        async for event in events:
            if wire.chunk(event, url):
                first = first or time.perf_counter()
    return first


async def eager(parts: Parts, rounds: int) -> dict[str, Any]:
    """Whole runs, verified in one pass and eagerly, in turn."""
    say("eager")
    texts = [item.question for item in questions()]
    ways = {"one_pass": parts.settings, "eager": parts.settings.model_copy(update={"eager": True})}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    after: dict[str, list[float]] = {way: [] for way in ways}
    same = 0
    for number in range(-1, rounds):
        for text in texts[:1] if number < 0 else texts:
            traces = {}
            for way, settings in ways.items():
                trace = traces[way] = await _run(parts, text, settings)
                if number >= 0:
                    seconds[way].append(trace.elapsed_ms / 1000)
                    after[way].append(_verified_after(trace))
            same += number >= 0 and _answer(traces["eager"]) == _answer(traces["one_pass"])
    pairs = zip(seconds["eager"], seconds["one_pass"], strict=True)
    return {
        "runs": len(seconds["eager"]),
        **{
            way: {"total_s": spread(seconds[way]), "verdict_after_last_draft_s": spread(after[way])}
            for way in ways
        },
        "eager_against_one_pass": spread([one / other for one, other in pairs]),
        "same_answers": same,
    }


def _verified_after(trace: Trace) -> float:
    """Seconds from the end of the last draft to the last verdict."""
    ends = {
        name: max((span.end_ms or 0.0 for span in trace.spans if span.name == name), default=0.0)
        for name in ("draft", "verify")
    }
    return max(0.0, ends["verify"] - ends["draft"]) / 1000


async def load(parts: Parts, runs: int) -> dict[str, Any]:
    """As many questions at once, and one after the other."""
    say("load")
    texts = [item.question for item in questions()]
    asked = [texts[number % len(texts)] for number in range(runs)]
    began = time.perf_counter()
    alone = [await _run(parts, text, parts.settings) for text in asked]
    in_turn = time.perf_counter() - began
    began = time.perf_counter()
    together = await asyncio.gather(*(_run(parts, text, parts.settings) for text in asked))
    at_once = time.perf_counter() - began
    return {
        "runs": runs,
        "answered": sum(trace.status == "done" for trace in together),
        "same_answers_as_alone": sum(
            _answer(one) == _answer(two) for one, two in zip(alone, together, strict=True)
        ),
        "one_after_the_other_s": round(in_turn, 1),
        "at_once_s": round(at_once, 1),
        "throughput_ratio": round(in_turn / at_once, 2),
        "alone_s": spread([trace.elapsed_ms / 1000 for trace in alone]),
        "together_s": spread([trace.elapsed_ms / 1000 for trace in together]),
    }


async def _run(parts: Parts, question: str, settings: Any) -> Trace:
    folding = TraceFold()
    request = Request(question=question, collection=SAMPLE)
    async with aclosing(parts.pipeline("speculative", settings).run(request)) as events:
        async for event in events:
            folding.apply(event)
    return folding.trace


def _answer(trace: Trace) -> str:
    return trace.answer.text if trace.answer else ""


if __name__ == "__main__":
    main()
