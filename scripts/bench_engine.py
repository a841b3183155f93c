"""How fast the engine is, and that it keeps the answers: one run, interleaved, one JSON document.

    python scripts/bench_engine.py --data ../shared/data/qa --rounds 5

Four engines over the same drafter: `baseline` (plain float32 weights, padded batch: what transformers does by
itself), `float32` and `float16` (token tree over packed weights), each in turn in every round.

1. The machine: GFLOP/s and GB/s, and the floors that follow from them.
2. Prefill and decode, 4 rows: ratios to the baseline and to the floor.
3. Verification of 5 drafts: the tree against a pass for each and against the padded batch, on the same
   weights: time ratios and the largest difference of a token's log-probability.
4. Where a decoding step's time goes, by operation (with `--profile`).
5. 40 prompts from the files of `--data` (else from the sample collection): how many drafts are the same text
   as the baseline's, and how far the scores of the same drafts lie apart.

Medians with minimum and maximum. Nothing else should run on the machine.
"""

import argparse
import asyncio
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.figures import say, spread  # noqa: E402 - the checkout is not installed
from specrag.config import load_settings  # noqa: E402
from specrag.evaluation.latency.environment import environment  # noqa: E402
from specrag.measure import MachineFigures, measure_machine  # noqa: E402
from specrag.models.base import Line, Piece, ScoreRequest, TokenScores  # noqa: E402
from specrag.models.engine import BatchEngine, Engine, EngineName  # noqa: E402
from specrag.models.local import LocalModel  # noqa: E402
from specrag.models.weights import Weights  # noqa: E402
from specrag.models.worker import Worker  # noqa: E402
from specrag.prompts import (  # noqa: E402
    ANSWER_LABEL,
    RATIONALE_LABEL,
    REFLECTION_CHOICE,
    draft_conversation,
    verify_conversation,
)
from specrag.sample import questions  # noqa: E402
from specrag.types import Passage, Precision  # noqa: E402

ROWS, LENGTH, SHARED, STEPS = 4, 256, 24, 24
VERIFIED = 5
PROMPTS = 40
LINES = (
    Line(part="rationale", max_tokens=64, label=RATIONALE_LABEL, sentences=1),
    Line(part="answer", max_tokens=40, label=ANSWER_LABEL, sentences=1),
)
KINDS: dict[str, tuple[Precision, EngineName]] = {
    "baseline": ("plain", "batch"),
    "float32": ("float32", "tree"),
    "float16": ("float16", "tree"),
}


@dataclass(frozen=True)
class Case:
    """A question with the passages of one draft."""

    question: str
    passages: tuple[Passage, ...]


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="Also say where a step's time goes.")
    parser.add_argument("--data", type=Path, help="Folder with evaluation files (JSON lines).")
    asked = parser.parse_args()
    settings = load_settings()
    folder = Weights(home=settings.home).ensure(settings.drafter)
    worker = Worker()
    models = {
        name: LocalModel(
            folder, name=name, worker=worker, threads=settings.threads, precision=precision, engine=engine
        )
        for name, (precision, engine) in KINDS.items()
    }
    cases = list(itertools.islice(cases_of(asked.data), PROMPTS))
    # everything on the one thread that computes, as in the program
    machine = worker.run(lambda: measure_machine(threads=settings.threads))
    written = asyncio.run(drafts(models, cases))
    document: dict[str, Any] = {
        "schema": "specrag.bench-engine/1",
        "environment": environment(settings.threads),
        "machine": {
            "matrix_gflops": round(machine.matrix_gflops, 1),
            "memory_gb_s": round(machine.memory_gb_s, 1),
        },
        "speed": worker.run(lambda: speed(models, machine, asked.rounds)),
        "verification": worker.run(lambda: verification(models, written["baseline"], machine, asked.rounds)),
        "answers": answers(models, written, cases, source=str(asked.data or "sample")),
    }
    if asked.profile:
        document["profile"] = worker.run(lambda: profile(models["float16"]))
    worker.close()
    json.dump(document, sys.stdout, indent=2)
    sys.stdout.write("\n")


def rounds_of(work: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Every kind of work once a round, so that a slow moment of the machine meets all of them."""
    found: dict[str, list[float]] = {name: [] for name in work}
    for number in range(rounds + 1):
        say(f"  round {number} of {rounds}")
        for name, once in work.items():
            found[name].append(once())
    return {
        name: values[1:] for name, values in found.items()
    }  # the first pays for what torch allocates once


# prefill and decode


def speed(models: dict[str, LocalModel], machine: MachineFigures, rounds: int) -> dict[str, Any]:
    """Tokens and steps a second, ratios to the baseline, shares of the floor."""
    import torch

    say("prefill and decode")
    ids = torch.randint(100, 40_000, (SHARED + ROWS * LENGTH,), generator=torch.Generator().manual_seed(0))
    shared, own = ids[:SHARED].tolist(), ids[SHARED:].view(ROWS, LENGTH).tolist()
    prompts = [[*shared, *row[: LENGTH - SHARED - 8 * number]] for number, row in enumerate(own)]
    reading, decoding = {}, {}
    for name, model in models.items():
        reading[name], decoding[name] = _timed(model.engine, prompts)
    read = rounds_of(reading, rounds)
    decoded = rounds_of(decoding, rounds)
    body, _ = _parameters(models["baseline"])
    tokens = sum(map(len, prompts))
    bytes_of = {"baseline": 4, "float32": 4, "float16": 2}
    out: dict[str, Any] = {"prompt_tokens": tokens, "rows": ROWS}
    for name, model in models.items():
        prefill = [tokens / seconds for seconds in read[name]]
        decode = [STEPS / seconds for seconds in decoded[name]]
        nominal = 2 * body * tokens / 1e9 / machine.matrix_gflops  # seconds, nothing shared
        once = bytes_of[name] * model.info.parameters / 1e9 / machine.memory_gb_s
        out[name] = {
            "prefill_tokens_per_s": spread(prefill),
            "decode_steps_per_s": spread(decode),
            "prefill_against_baseline": spread(_ratios(read["baseline"], read[name])),
            "decode_against_baseline": spread(_ratios(decoded["baseline"], decoded[name])),
            "prefill_share_of_floor": round(nominal / statistics.median(read[name]), 2),
            "decode_share_of_floor": round(once * STEPS / statistics.median(decoded[name]), 2),
        }
    return out


def profile(model: LocalModel) -> dict[str, Any]:
    """Milliseconds of a decoding step, and the share of each operation; the rest is Python and small ones."""
    import torch

    with torch.inference_mode():
        _, rows = model.engine.begin([[100 + n for n in range(LENGTH)]] * ROWS, 2 * STEPS)
        began = time.perf_counter()
        for _ in range(STEPS):
            rows.step([100] * ROWS)
        step_ms = (time.perf_counter() - began) * 1000 / STEPS
        with torch.profiler.profile() as watched:
            for _ in range(STEPS):
                rows.step([100] * ROWS)
    found = sorted(watched.key_averages(), key=lambda one: -one.self_cpu_time_total)[:6]
    shares = {one.key: round(one.self_cpu_time_total / 1000 / STEPS / step_ms, 2) for one in found}
    return {"step_ms": round(step_ms, 1), "share_of_step": shares}


def _timed(engine: Engine, prompts: list[list[int]]) -> tuple[Callable[[], float], Callable[[], float]]:
    import torch

    def read() -> float:
        with torch.inference_mode():
            began = time.perf_counter()
            engine.begin(prompts, STEPS)
            return time.perf_counter() - began

    def decode() -> float:
        with torch.inference_mode():
            _, rows = engine.begin(prompts, STEPS)
            began = time.perf_counter()
            for number in range(STEPS):
                rows.step([100 + number] * len(prompts))
            return time.perf_counter() - began

    return read, decode


def _parameters(model: LocalModel) -> tuple[int, int]:
    """Parameters that every token passes, and those of the head, which only some do."""
    config = model._model.config  # noqa: SLF001 - the measurement looks inside
    head = config.vocab_size * config.hidden_size
    return model.info.parameters - head, head


def _ratios(base: Sequence[float], other: Sequence[float]) -> list[float]:
    return [one / two for one, two in zip(base, other, strict=True)]


# verification


def verification(
    models: dict[str, LocalModel],
    written: Sequence[tuple[Case, str, str]],
    machine: MachineFigures,
    rounds: int,
) -> dict[str, Any]:
    """Real drafts to one question: a tree, a padded batch, and one pass for each of them."""
    import torch

    say("verification")
    question = written[0][0].question
    out: dict[str, Any] = {"drafts": VERIFIED}
    for name in ("float32", "float16"):
        model = models[name]
        rendered = [
            model._renderer.render(verify_conversation(question, rationale, answer))  # noqa: SLF001
            for _, rationale, answer in written[:VERIFIED]
        ]
        sequences = [item.ids for item in rendered]
        wanted = [sorted(_marked(item.spans, len(item.ids))) for item in rendered]
        tree = model.engine
        work, results = {}, {}
        for way in ("tree", "padded", "separate"):
            work[way], results[way] = _scored(model, tree, way, sequences, wanted)
        seconds = rounds_of(work, rounds)
        with torch.inference_mode():
            values = {way: result() for way, result in results.items()}
        packed = len({tuple(ids[:end]) for ids in sequences for end in range(1, len(ids) + 1)})
        body, head = _parameters(models["baseline"])
        operations = 2 * (body * packed + head * sum(map(len, wanted)))
        out[name] = {
            "tokens": [len(ids) for ids in sequences],
            "tokens_packed": packed,
            "share_of_floor": round(
                operations / 1e9 / machine.matrix_gflops / statistics.median(seconds["tree"]), 2
            ),
            "seconds": {way: spread(found) for way, found in seconds.items()},
            "faster_than_separate": spread(_ratios(seconds["separate"], seconds["tree"])),
            "faster_than_padded": spread(_ratios(seconds["padded"], seconds["tree"])),
            "largest_difference_to_separate": _distance(values["tree"], values["separate"]),
            "largest_difference_to_padded": _distance(values["tree"], values["padded"]),
        }
    return out


def _marked(spans: dict[str, tuple[int, int]], length: int) -> set[int]:
    return {at - 1 for start, end in spans.values() for at in range(start, end)} | {length - 1}


def _scored(
    model: LocalModel, tree: Engine, way: str, sequences: Sequence[Any], wanted: Sequence[Any]
) -> tuple[Callable[[], float], Callable[[], list[Any]]]:
    """How to time one way of scoring, and how to get its log-probabilities of what follows each position."""
    import torch

    def logits() -> list[Any]:
        if way == "tree":
            return tree.read(sequences, wanted)
        # the same packed weights, under the model's own attention
        model._model.set_attn_implementation("sdpa")  # noqa: SLF001
        try:
            batch = BatchEngine(model._model)  # noqa: SLF001
            if way == "padded":
                return batch.read(sequences, wanted)
            return [batch.read([ids], [at])[0] for ids, at in zip(sequences, wanted, strict=True)]
        finally:
            model._model.set_attn_implementation("specrag")  # noqa: SLF001

    def timed() -> float:
        with torch.inference_mode():
            began = time.perf_counter()
            logits()
            return time.perf_counter() - began

    def values() -> list[Any]:
        out = []
        for ids, at, rows in zip(sequences, wanted, logits(), strict=True):
            following = torch.tensor([ids[place + 1] for place in at[:-1]])
            out.append(rows[:-1].log_softmax(-1).gather(1, following[:, None])[:, 0])
        return out

    return timed, values


def _distance(one: Sequence[Any], other: Sequence[Any]) -> float:
    return max(float((a - b).abs().max()) for a, b in zip(one, other, strict=True))


# answers


def cases_of(folder: Path | None) -> Iterator[Case]:
    """Real prompts: two passages of a question, from all files in turn."""
    if folder is None:
        pages = sorted((ROOT / "assets" / "sample").glob("*.md"))
        texts = [(path.stem, path.read_text(encoding="utf-8")) for path in pages]
        for pair in itertools.combinations(texts, 2):
            for item in questions():
                yield Case(item.question, tuple(passage(title, text[:600]) for title, text in pair))
        return
    files = [path.read_text(encoding="utf-8").splitlines() for path in sorted(folder.glob("*.jsonl"))]
    for lines in zip(*files, strict=False):
        for line in lines:
            item = json.loads(line)
            found = [passage(one["title"], one["text"][:600]) for one in item["passages"][:2]]
            if len(found) == 2:  # noqa: PLR2004 - as many as a draft reads
                yield Case(item["question"][:300], tuple(found))


def passage(title: str, text: str) -> Passage:
    """A passage that a prompt can be made of."""
    return Passage(
        id=title, document_id="", title=title, text=text, page=None, source="", published_at=None, score=0.5
    )


async def drafts(
    models: dict[str, LocalModel], cases: Sequence[Case]
) -> dict[str, list[tuple[Case, str, str]]]:
    """Every model's rationale and answer to every case, written four at a time."""
    say(f"{len(cases)} prompts")
    out: dict[str, list[tuple[Case, str, str]]] = {name: [] for name in models}
    for start in range(0, len(cases), ROWS):
        some = cases[start : start + ROWS]
        for name, model in models.items():
            texts = [{"rationale": "", "answer": ""} for _ in some]
            asked = [draft_conversation(case.question, case.passages) for case in some]
            async with aclosing(model.generate(asked, LINES)) as outputs:
                async for index, output in outputs:
                    if isinstance(output, Piece):
                        texts[index][output.part] += output.text
            out[name] += [
                (case, text["rationale"].strip(), text["answer"].strip())
                for case, text in zip(some, texts, strict=True)
            ]
    return out


def answers(
    models: dict[str, LocalModel],
    written: dict[str, list[tuple[Case, str, str]]],
    cases: Sequence[Case],
    *,
    source: str,
) -> dict[str, Any]:
    """Same greedy text as the baseline's, and the distance of the scores of the baseline's drafts."""
    say("scores of the same drafts")
    base = written["baseline"]
    requests = [
        ScoreRequest(
            conversation=verify_conversation(case.question, rationale, answer), choice=REFLECTION_CHOICE
        )
        for case, rationale, answer in base
    ]
    scores = {name: asyncio.run(_score(model, requests)) for name, model in models.items()}
    out: dict[str, Any] = {"prompts": len(cases), "source": source}
    for name in ("float32", "float16"):
        same = sum(one[1:] == two[1:] for one, two in zip(base, written[name], strict=True))
        pairs = list(zip(scores["baseline"], scores[name], strict=True))
        tokens = [abs(a - b) for one, two in pairs for a, b in zip(_values(one), _values(two), strict=True)]
        means = [
            abs(statistics.mean(_values(one)) - statistics.mean(_values(two)))
            for one, two in pairs
            if _values(one)
        ]
        out[name] = {
            "same_text": same,
            "same_answer": sum(one[2] == two[2] for one, two in zip(base, written[name], strict=True)),
            "token_logprob_difference": {"median": statistics.median(tokens), "max": max(tokens)},
            "self_containment_log_difference": {"median": statistics.median(means), "max": max(means)},
            "self_reflection_difference_max": max(abs(_yes(one) - _yes(two)) for one, two in pairs),
        }
    return out


async def _score(model: LocalModel, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
    return [(await model.score([request]))[0] for request in requests]


def _values(scores: TokenScores) -> list[float]:
    return [token.logprob for span in scores.spans.values() for token in span]


def _yes(scores: TokenScores) -> float:
    return scores.choice["yes"] / (scores.choice["yes"] + scores.choice["no"])


if __name__ == "__main__":
    main()
