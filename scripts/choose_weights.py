"""Which score weights select best, on development questions: writes drafts once, then decides them again.

    python scripts/choose_weights.py write --data FOLDER --sets NAME,NAME --limit 60 --out DIR [--focus 3]
    python scripts/choose_weights.py choose --out DIR

`write` runs the speculative pipeline over the passages that a question comes with and keeps every trace; a
run that was interrupted goes on where it was. `choose` needs no model: it decides the stored traces under
every combination of weights, on one half of the questions, and reports the chosen weights on the other half
beside the first draft, a random draft, the most frequent answer, each score alone, and the best of all drafts
(oracle). A question counts as right when an accepted string stands in the normalised answer.
"""

import argparse
import asyncio
import itertools
import json
import random
import statistics
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.figures import say  # noqa: E402 - the checkout is not installed
from specrag.build import Parts  # noqa: E402
from specrag.config import PRESETS, ScoreWeights, Settings, load_settings  # noqa: E402
from specrag.decide import decide  # noqa: E402
from specrag.pipelines.base import Request  # noqa: E402
from specrag.pipelines.speculative import SpeculativePipeline  # noqa: E402
from specrag.retrieval.base import Embedder, Vectors  # noqa: E402
from specrag.retrieval.bm25 import Matches  # noqa: E402
from specrag.retrieval.candidates import Candidates  # noqa: E402
from specrag.retrieval.retriever import Retriever  # noqa: E402
from specrag.text import is_abstention, normalise_answer  # noqa: E402
from specrag.tracing.codec import from_json, to_json  # noqa: E402
from specrag.tracing.trace import Trace, TraceFold  # noqa: E402
from specrag.types import Draft, Passage  # noqa: E402

COMPONENTS = ("draft", "self_containment", "self_reflection", "grounded", "relevance")
GRID: dict[str, tuple[float, ...]] = {
    "draft": (0, 1, 2),
    "self_containment": (0, 1, 2),
    "self_reflection": (0, 1, 2),
    "grounded": (0, 1),
    "relevance": (0, 1, 2, 4, 8),
}


class Given(Retriever):
    """Finds passages among those that the question comes with, by the same embedder as ever."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._reranker = None
        self.passages: Sequence[dict[str, Any]] = ()

    def embed(self, question: str, collection: str) -> Vectors:  # noqa: ARG002 - there is no collection
        """See `Retriever.embed`."""
        vector: Vectors = self._embedder.embed([question])[0]
        return vector

    def candidates(
        self,
        vector: Vectors,
        collection: str,  # noqa: ARG002
        k: int,
        *,
        question: str,
        documents: Collection[str] | None = None,  # noqa: ARG002
        settings: Settings | None = None,
    ) -> Candidates:
        """See `Retriever.candidates`."""
        vectors = self._embedder.embed([f"{one['title']}\n{one['text']}" for one in self.passages])
        near = vectors @ vector
        passages = [self._passage(int(i), float(near[i])) for i in np.argsort(-near)[:k]]
        return Candidates(
            question=question,
            question_vector=vector,
            passages=tuple(passages),
            vectors={one["id"]: row for one, row in zip(self.passages, vectors, strict=True)},
            matches=Matches(),
            readable=1.0,
            dense=len(passages),
            settings=settings or load_settings({}),
        )

    def _passage(self, index: int, similarity: float) -> Passage:
        one = self.passages[index]
        return Passage(
            id=one["id"],
            document_id=one["id"],
            title=one["title"],
            text=one["text"],
            page=None,
            source="",
            published_at=None,
            score=min(1.0, max(0.0, similarity)),
        )


@dataclass(frozen=True)
class Case:
    """A stored run with the accepted answers."""

    name: str
    trace: Trace
    answers: tuple[str, ...]

    def right(self, answer: str) -> bool:
        """Whether an accepted string stands in the answer, as whole words."""
        said = f" {normalise_answer(answer)} "
        return any(f" {normalise_answer(accepted)} " in said for accepted in self.answers)


def main() -> None:
    """One of the two steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    steps = parser.add_subparsers(dest="step", required=True)
    writing = steps.add_parser("write")
    writing.add_argument("--data", type=Path, required=True)
    writing.add_argument("--sets", required=True, help="Names of files without .dev.jsonl, with commas.")
    writing.add_argument("--limit", type=int, default=60, help="Questions of each set.")
    writing.add_argument("--seed", type=int, default=7)
    writing.add_argument("--focus", type=int, default=0)
    choosing = steps.add_parser("choose")
    for step in (writing, choosing):
        step.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    if asked.step == "write":
        asyncio.run(write(asked))
    else:
        json.dump(choose(list(stored(asked.out))), sys.stdout, indent=2)
        sys.stdout.write("\n")


async def write(asked: argparse.Namespace) -> None:
    """Run the pipeline over the chosen questions and keep the traces."""
    asked.out.mkdir(parents=True, exist_ok=True)
    settings = load_settings(grounded=True, focus_sentences=asked.focus)
    parts = Parts(settings, in_memory=True)
    given = Given(parts.embedder)
    pipeline = SpeculativePipeline(replace(parts.tools, retriever=given))
    for name in asked.sets.split(","):
        lines = (asked.data / f"{name}.dev.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [row for row in map(json.loads, lines) if row["answers"] and len(row["passages"]) > 3]  # noqa: PLR2004
        random.Random(asked.seed).shuffle(rows)  # noqa: S311 - reproducible on purpose
        for number, row in enumerate(rows[: asked.limit], 1):
            path = asked.out / f"{name}.{number:04d}.json"
            if path.exists():
                continue
            given.passages = row["passages"]
            folding = TraceFold()
            async with aclosing(pipeline.run(Request(question=row["question"], collection=name))) as events:
                async for event in events:
                    folding.apply(event)
            say(f"{name} {number}: {folding.trace.elapsed_ms / 1000:.1f} s")
            kept = {"set": name, "answers": row["answers"], "trace": json.loads(to_json(folding.trace))}
            path.write_text(json.dumps(kept), encoding="utf-8")
    parts.close()


def stored(folder: Path) -> Iterator[Case]:
    """The finished runs of a folder."""
    for path in sorted(folder.glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        trace = from_json(json.dumps(kept["trace"]))
        if trace.status == "done" and trace.drafts:
            # what counts as an abstention may have been learnt since
            drafts = tuple(replace(one, abstained=is_abstention(one.answer)) for one in trace.drafts)
            yield Case(kept["set"], replace(trace, drafts=drafts), tuple(kept["answers"]))


def choose(cases: list[Case]) -> dict[str, Any]:
    """Weights from the one half, figures from the other, and the other way round."""
    random.Random(0).shuffle(cases)  # noqa: S311 - reproducible on purpose
    halves = [cases[0::2], cases[1::2]]
    combinations = [
        dict(zip(GRID, values, strict=True)) for values in itertools.product(*GRID.values()) if any(values)
    ]
    say(f"{len(cases)} runs, {len(combinations)} combinations of weights")
    tables = [
        {tuple(weights.values()): accuracy(half, weights) for weights in combinations} for half in halves
    ]
    held_out = [tables[1 - side][_best(tables[side])] for side in (0, 1)]
    both = {key: statistics.mean(table[key] for table in tables) for key in tables[0]}
    best = sorted(both, key=lambda key: (-both[key], sum(key)))
    return {
        "n": len(cases),
        "sets": {name: sum(case.name == name for case in cases) for name in {case.name for case in cases}},
        "oracle": share(cases, lambda case: any(case.right(d.answer) for d in contest(case.trace))),
        "first": share(cases, lambda case: case.right(case.trace.drafts[0].answer)),
        "random": statistics.mean(
            statistics.mean(case.right(draft.answer) for draft in case.trace.drafts) for case in cases
        ),
        "alone": {name: accuracy(cases, {name: 1.0}) for name in COMPONENTS},
        "presets": {name: accuracy(cases, weights) for name, weights in PRESETS.items()},
        "presets_by_set": {
            name: {
                part: accuracy([case for case in cases if case.name == part], weights)
                for part in sorted({case.name for case in cases})
            }
            for name, weights in PRESETS.items()
        },
        "held_out": {"each": held_out, "mean": statistics.mean(held_out)},
        "best": [{"weights": dict(zip(GRID, key, strict=True)), "accuracy": both[key]} for key in best[:12]],
        "seconds": statistics.median(case.trace.elapsed_ms / 1000 for case in cases),
        "drafter_prompt_tokens": statistics.median(case.trace.usage.drafter.prompt_tokens for case in cases),
    }


def _best(table: dict[tuple[float, ...], float]) -> tuple[float, ...]:
    return min(table, key=lambda key: (-table[key], sum(key)))


def accuracy(cases: Sequence[Case], weights: dict[str, float]) -> float:
    """Share of the cases in which the decision under these weights gives a right answer."""
    given = ScoreWeights(**{name: weights.get(name, 0.0) for name in COMPONENTS})
    return share(cases, lambda case: _selected(case, given))


def _selected(case: Case, weights: ScoreWeights) -> bool:
    answer = decide(case.trace.drafts, weights=weights, threshold=0.0).answer
    return answer is not None and case.right(answer.text)


def contest(trace: Trace) -> list[Draft]:
    """Drafts that give an answer."""
    return [draft for draft in trace.drafts if draft.usable and not draft.abstained]


def share(cases: Sequence[Case], holds: Callable[[Case], bool]) -> float:
    """Share of the cases for which something holds."""
    return statistics.mean(holds(case) for case in cases) if cases else 0.0


if __name__ == "__main__":
    main()
