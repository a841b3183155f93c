"""Whole runs: against an older version of this repository, and several at once through one engine.

    python scripts/bench_runs.py against REVISION --rounds 3
    python scripts/bench_runs.py together --runs 8

`against` checks the older revision out beside this one, starts both over the same weights, and asks the
sample questions of each in turn; it reports the ratio of the times, and in how many runs all drafts are the
same text. `together` asks eight questions at once and one alone, and reports how long each waited and the
peak memory. Medians with minimum and maximum; nothing else should run on the machine.
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.figures import say, spread  # noqa: E402 - the checkout is not installed

SERVE = """
import asyncio, json, sys, time
from contextlib import aclosing
from specrag.build import Parts
from specrag.config import load_settings
from specrag.library.library import SAMPLE
from specrag.pipelines.base import Request
from specrag.sample import ensure_sample, questions
from specrag.tracing.trace import TraceFold

async def ask(parts, question):
    folding = TraceFold()
    async with aclosing(parts.speculative.run(Request(question=question, collection=SAMPLE))) as events:
        async for event in events:
            folding.apply(event)
    return folding.trace

parts = Parts(load_settings(), in_memory=True)
ensure_sample(parts.indexer)
pipeline = parts.speculative
print(json.dumps([item.question for item in questions()]), flush=True)
for line in sys.stdin:
    began = time.perf_counter()
    trace = asyncio.run(ask(parts, json.loads(line)))
    seconds = time.perf_counter() - began
    named = [span for span in trace.spans if span.name in ("retrieve", "draft", "verify")]
    stages = {span.name: (span.end_ms - span.start_ms) / 1000 for span in named}
    first = min((t.at_ms for d in trace.drafts for t in d.tokens), default=0) / 1000
    drafts = [[token.text for token in d.tokens] for d in trace.drafts]
    written = trace.usage.drafter.completion_tokens
    found = dict(seconds=seconds, first=first, stages=stages, drafts=drafts, written=written)
    print(json.dumps(found), flush=True)
"""
"""Runs in either version: it uses only what both have."""


def main() -> None:
    """One of the two measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ways = parser.add_subparsers(dest="way", required=True)
    against = ways.add_parser("against")
    against.add_argument("revision")
    against.add_argument("--rounds", type=int, default=3)
    together = ways.add_parser("together")
    together.add_argument("--runs", type=int, default=8)
    asked = parser.parse_args()
    document = (
        compare(asked.revision, asked.rounds) if asked.way == "against" else asyncio.run(at_once(asked.runs))
    )
    json.dump(document, sys.stdout, indent=2)
    sys.stdout.write("\n")


# against an older version


def compare(revision: str, rounds: int) -> dict[str, Any]:
    """Both versions, question by question, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        older = Path(folder) / "older"
        _git("worktree", "add", "--detach", str(older), revision)
        try:
            with served(older) as old, served(ROOT) as new:
                return _compare(old, new, revision, rounds)
        finally:
            _git("worktree", "remove", "--force", str(older))


def _compare(old: "Server", new: "Server", revision: str, rounds: int) -> dict[str, Any]:
    pairs = []
    for number in range(rounds + 1):
        for question in new.questions:
            pair = (old.ask(question), new.ask(question))
            if number:  # the first round pays for what is made once
                pairs.append(pair)
        say(f"round {number} of {rounds}")
    equal = [one["drafts"] == two["drafts"] for one, two in pairs]
    same = [pair for pair, alike in zip(pairs, equal, strict=True) if alike]
    return {
        "schema": "specrag.bench-against/1",
        "revision": revision,
        "runs": len(pairs),
        "runs_with_equal_drafts": sum(equal),
        "older_s": spread([one["seconds"] for one, _ in pairs]),
        "this_s": spread([two["seconds"] for _, two in pairs]),
        "older_over_this": spread([one["seconds"] / two["seconds"] for one, two in pairs]),
        "older_over_this_at_equal_output": spread([one["seconds"] / two["seconds"] for one, two in same])
        if same
        else None,
        "first_token": {
            "older_s": spread([one["first"] for one, _ in pairs]),
            "this_s": spread([two["first"] for _, two in pairs]),
        },
        "stages_s": {
            name: {
                "older": spread([one["stages"][name] for one, _ in pairs]),
                "this": spread([two["stages"][name] for _, two in pairs]),
            }
            for name in ("retrieve", "draft", "verify")
        },
    }


class Server:
    """One version of the program that answers questions from a pipe."""

    def __init__(self, asking: IO[str], answering: IO[str]) -> None:
        self._asking = asking
        self._answering = answering
        self.questions: list[str] = json.loads(self._answering.readline())

    def ask(self, question: str) -> dict[str, Any]:
        """One run."""
        self._asking.write(json.dumps(question) + "\n")
        self._asking.flush()
        found: dict[str, Any] = json.loads(self._answering.readline())
        return found


@contextmanager
def served(tree: Path) -> Iterator[Server]:
    """The version in `tree`, until the block ends."""
    variables = {**os.environ, "PYTHONPATH": str(tree), "HF_HUB_OFFLINE": "1"}
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", SERVE],
        cwd=tree,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Server(process.stdin, process.stdout)
        finally:
            process.terminate()


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)  # noqa: S603, S607


# several at once


async def at_once(runs: int) -> dict[str, Any]:
    """One run alone, then `runs` of them started together over one engine."""
    from specrag.build import Parts
    from specrag.config import load_settings
    from specrag.sample import ensure_sample, questions

    parts = Parts(load_settings(concurrent_runs=runs), in_memory=True)
    ensure_sample(parts.indexer)
    texts = [item.question for item in questions()]
    await _one(parts, texts[0])
    alone = {text: await _one(parts, text) for text in texts}
    say("together")
    began = time.perf_counter()
    asked = [texts[number % len(texts)] for number in range(runs)]
    found = await asyncio.gather(*(_one(parts, text) for text in asked))
    total = time.perf_counter() - began
    parts.close()
    waiting = [1 - alone[text]["seconds"] / one["seconds"] for text, one in zip(asked, found, strict=True)]
    return {
        "schema": "specrag.bench-together/1",
        "runs": runs,
        "finished": sum(one["status"] == "done" for one in found),
        "alone_s": spread([one["seconds"] for one in alone.values()]),
        "together_s": spread([one["seconds"] for one in found]),
        "all_after_s": round(total, 1),
        "one_after_the_other_s": round(sum(alone[text]["seconds"] for text in asked), 1),
        "first_token_s": spread([one["first"] for one in found]),
        "waiting_share": spread(waiting),
        "largest_over_smallest_waiting_share": round(max(waiting) / min(waiting), 2),
        "same_answers_as_alone": sum(
            one["answer"] == alone[text]["answer"] for text, one in zip(asked, found, strict=True)
        ),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


async def _one(parts: Any, question: str) -> dict[str, Any]:
    from specrag.library.library import SAMPLE
    from specrag.pipelines.base import Request
    from specrag.tracing.trace import TraceFold

    folding = TraceFold()
    began = time.perf_counter()
    async with aclosing(parts.speculative.run(Request(question=question, collection=SAMPLE))) as events:
        async for event in events:
            folding.apply(event)
    trace = folding.trace
    first = min((token.at_ms or 0.0 for draft in trace.drafts for token in draft.tokens), default=0.0)
    return {
        "seconds": time.perf_counter() - began,
        "first": first / 1000,
        "status": trace.status,
        "answer": trace.answer.text if trace.answer else None,
    }


if __name__ == "__main__":
    main()
