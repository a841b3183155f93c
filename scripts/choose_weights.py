"""Which score weights select best, on development questions: decides the runs of an evaluation again.

    python -m specrag eval --data FILE --pipelines speculative:grounded=true --out DIR
    python scripts/choose_weights.py --data FILE --out DIR

The first command writes the drafts and scores them; the second needs no model. It decides the stored runs
under every combination of weights, on one half of the questions, and reports the chosen weights on the other
half, and the other way round: on the half that they were chosen on, some combination always looks good. So
`held_out` is what to expect of the choice, and `best_in_sample` is not.
"""

import argparse
import itertools
import json
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.figures import say  # noqa: E402 - the checkout is not installed
from specrag.config import PRESETS, ScoreWeights  # noqa: E402
from specrag.decide import decide, in_contest  # noqa: E402
from specrag.errors import SpecragError  # noqa: E402
from specrag.evaluation.datasets import read_questions  # noqa: E402
from specrag.evaluation.folder import PLAN, Folder  # noqa: E402
from specrag.evaluation.judging import score  # noqa: E402
from specrag.evaluation.problems import EvaluationError  # noqa: E402
from specrag.evaluation.questions import Dataset, Question  # noqa: E402
from specrag.tracing.trace import Trace  # noqa: E402

GRID: dict[str, tuple[float, ...]] = {
    "draft": (0, 1, 2),
    "self_containment": (0, 1, 2),
    "self_reflection": (0, 1, 2),
    "grounded": (0, 1),
    "relevance": (0, 1, 2, 4, 8),
}
SHOWN = 12
Case: TypeAlias = tuple[Question, Trace]


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, action="append", help="Repeatable.")
    parser.add_argument("--out", type=Path, required=True, help="The folder of the evaluation.")
    parser.add_argument("--system", default="speculative:grounded=true")
    asked = parser.parse_args()
    try:
        found = choose(list(cases(asked.data, asked.out, asked.system)))
    except SpecragError as error:
        sys.exit(str(error))
    json.dump(found, sys.stdout, indent=2)
    sys.stdout.write("\n")


def cases(data: Sequence[Path], out: Path, system: str) -> Iterator[Case]:
    """The finished runs of a system that decided between drafts, with their questions.

    Raises:
        EvaluationError: there is no evaluation in `out`, or it was over other data.
    """
    if not (out / PLAN).is_file():
        raise EvaluationError(f"{out} holds no evaluation; run specrag eval with --out {out} first.")
    files = [read_questions(path) for path in data]
    known = {(file.name, question.id): question for file in files for question in file.questions}
    with closing(Folder(out)) as folder:
        _check(folder, files)
        folder.read()
        for (dataset, question, name), line in sorted(folder.finished.items()):
            trace = folder.trace(line) if name == system and (dataset, question) in known else None
            if trace is not None and in_contest(trace.drafts):
                yield known[dataset, question], trace


def _check(folder: Folder, files: Sequence[Dataset]) -> None:
    """Runs on another version of a file would be judged by answers to other questions."""
    known = (folder.plan() or {}).get("data", {})
    for file in files:
        if file.name not in known:
            raise EvaluationError(f"{folder.path} holds no runs on {file.name}; name its files with --data.")
        if known[file.name] != file.sha256:
            raise EvaluationError(
                f"{file.name} has changed since the runs in {folder.path}; give the file of those runs."
            )


def choose(found: list[Case]) -> dict[str, Any]:
    """Weights from a random half, figures from the other, and the other way round.

    Raises:
        EvaluationError: there are fewer than two runs.
    """
    random.Random(0).shuffle(found)  # noqa: S311 - reproducible on purpose
    halves = (found[0::2], found[1::2])
    if not halves[1]:
        raise EvaluationError(
            "There are fewer than two runs with drafts here; evaluate more questions first."
        )
    return chosen(halves)


def chosen(halves: tuple[Sequence[Case], Sequence[Case]]) -> dict[str, Any]:
    """The same of given halves."""
    found = [*halves[0], *halves[1]]
    combinations = [
        dict(zip(GRID, values, strict=True)) for values in itertools.product(*GRID.values()) if any(values)
    ]
    say(f"{len(found)} runs, {len(combinations)} combinations of weights")
    tables = [
        {tuple(weights.values()): accuracy(half, weights) for weights in combinations} for half in halves
    ]
    held_out = [tables[1 - side][_best(tables[side])] for side in (0, 1)]
    both = {key: statistics.mean(table[key] for table in tables) for key in tables[0]}
    best = sorted(both, key=lambda key: (-both[key], sum(key)))
    return {
        "n": len(found),
        "presets": {name: accuracy(found, weights) for name, weights in PRESETS.items()},
        "held_out": {"each": held_out, "mean": statistics.mean(held_out)},
        "best_in_sample": [
            {"weights": dict(zip(GRID, key, strict=True)), "score": both[key]} for key in best[:SHOWN]
        ],
    }


def _best(table: dict[tuple[float, ...], float]) -> tuple[float, ...]:
    return min(table, key=lambda key: (-table[key], sum(key)))


def accuracy(found: Sequence[Case], weights: dict[str, float]) -> float:
    """Mean score of what is selected under these weights."""
    given = ScoreWeights(**weights)

    def selected(case: Case) -> float:
        question, trace = case
        answer = decide(trace.drafts, weights=given, threshold=0.0).answer
        return score(question, "" if answer is None else answer.text)

    return statistics.mean(map(selected, found))


if __name__ == "__main__":
    main()
