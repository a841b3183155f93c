"""Reports by hand, in the published forms, small enough to see every number."""

from copy import deepcopy
from typing import Any

HOSTILE = "<img src=x onerror=alert(1)>${alert(2)}{{7*7}}</script><script>alert(3)</script>\u202e\ud800"


def _pipeline(score: float, total_ms: float, **more: Any) -> dict[str, Any]:
    return {
        "method": "standard",
        "settings": {},
        "n": 4,
        "failed": [],
        "metrics": {"score": score, "exact_match": score / 2},
        "intervals": {"score": [score - 0.2, score + 0.2], "exact_match": [0.0, score]},
        "counts": {"score": 4, "exact_match": 3},
        "latency": {"total_ms": total_ms, "ttft_ms": total_ms / 2, "p95": {"total_ms": 2 * total_ms}},
        "usage": {"verifier": {"prompt_tokens": 1200.0, "completion_tokens": 30.0, "p95": {}}},
        "calibration": {"error": None, "bins": []},
        **more,
    }


def _difference(mean: float, *, clear: bool) -> dict[str, Any]:
    luck = 0.031 if clear else 0.625
    return {"mean": mean, "low": mean - 0.1, "high": mean + 0.1, "n": 4, "p": luck, "clear": clear}


_CHOICES = {
    "n": 4,
    "by_no_draft": 2,
    "worth": {"selected": 0.5, "oracle": 0.75, "first": 0.25, "random": 0.4, "alone: draft": 0.3},
    "intervals": {"selected": [0.3, 0.7], "oracle": [0.5, 1.0], "first": [0.1, 0.4]},
    "counts": {},
    "selected_minus": {"first": _difference(0.25, clear=True)},
    "auc": {"self_reflection": {"within": 0.8, "pooled": 0.7, "questions": 3, "drafts": 12}},
}
_BINS = [
    {"low": 0.5, "high": 0.6, "n": 3, "confidence": 0.55, "accuracy": 0.333},
    {"low": 0.9, "high": 1.0, "n": 1, "confidence": 0.95, "accuracy": 1.0},
]


def evaluation(**changes: Any) -> dict[str, Any]:
    """Two pipelines and an ablation, over two files."""
    pipelines = {
        "standard": _pipeline(0.6, 2000.0),
        "speculative": _pipeline(0.5, 1000.0, choices=_CHOICES, calibration={"error": 0.2, "bins": _BINS}),
        "speculative:drafts=2": _pipeline(0.4, 800.0, choices=_CHOICES),
    }
    made: dict[str, Any] = {
        "schema": "specrag.eval/1",
        "dataset": "bikes, bells",
        "n": 4,
        "finished": True,
        "seed": 1,
        "limit": 2,
        "corpus": "given",
        "command": "python -m specrag eval --data '/home/ada/bikes.jsonl'",
        "pipelines": pipelines,
        "differences": [
            {
                "pipeline": "speculative",
                "against": "standard",
                "metric": "score",
                **_difference(-0.1, clear=False),
            },
            {
                "pipeline": "speculative:drafts=2",
                "against": "speculative",
                "metric": "score",
                **_difference(-0.3, clear=True),
            },
        ],
        "datasets": {
            name: {"sha256": "0" * 64, "n": 2, "left_out": 0, "pipelines": pipelines}
            for name in ("bikes", "bells")
        },
        "environment": {
            "models": {"drafter": {"name": "toy"}},
            "versions": {"specrag": "0"},
            "device": "cpu, 2 threads",
        },
    }
    return deepcopy({**made, **changes})


def _times(median: float) -> dict[str, float]:
    return {"median": median, "low": median / 2, "high": median * 2, "n": 7}


def _way(*phases: tuple[str, float, float]) -> dict[str, Any]:
    total = sum(taken for _, taken, _ in phases)
    return {
        "ttft_ms": total / 2,
        "total_ms": total,
        "spread": {"ttft_ms": _times(total / 2), "total_ms": _times(total)},
        "phases": [
            {
                "name": name,
                "role": "verifier",
                "ms": taken,
                "spread": _times(taken),
                "floor_ms": floor,
                "times_floor": taken / floor,
            }
            for name, taken, floor in phases
        ],
    }


def latency(**changes: Any) -> dict[str, Any]:
    """A pair of shapes, with a curve of two points."""
    made: dict[str, Any] = {
        "schema": "specrag.bench/1",
        "label": "Random weights say nothing about quality.",
        "ttft_means": "Time to first token.",
        "drafter": "smollm2-135m",
        "verifier": "smollm2-1.7b",
        "models": {"size_ratio": 12.7},
        "lengths": {
            "passages": 10, "passage_tokens": 100, "drafts": 5, "per_draft": 2, "tokens": 64, "rationale": 32,
        },
        "repeats": 7,
        "warmups": 1,
        "standard": _way(("read", 9000.0, 6000.0), ("write", 21000.0, 20000.0)),
        "speculative": _way(("draft read", 2000.0, 1000.0), ("draft write", 4000.0, 3000.0), ("verify", 6000.0, 5000.0)),
        "ratio": {"ttft": 0.75, "total": 2.5, "ttft_interval": [0.7, 0.8], "total_interval": [2.3, 2.7]},
        "floor": {
            "machine": {"matrix_gflops": 98.0, "memory_gb_s": 7.6},
            "ratio": {"ttft": 0.9, "total": 2.9},
        },
        "energy": {"standard_j": None, "speculative_j": None, "ratio": None, "note": "This system does not tell."},
        "costs": [
            {
                "what": "1B + 70B",
                "standard_dollars": 2.0,
                "speculative_dollars": 0.5,
                "saved": 0.75,
                "assumes": ["a dollar an hour"],
            }
        ],
        "sweep": {
            "points": [
                {
                    "verifier": f"x{size}", "parameters": size * 10**8, "size_ratio": float(size),
                    "ttft": size / 10, "ttft_interval": [size / 11, size / 9],
                    "total": size / 4, "total_interval": [size / 5, size / 3], "floor": size / 3,
                }
                for size in (1, 8)
            ],
            "break_even": {"ttft": None, "total": 4.2, "method": "a straight line"},
            "left_out": [],
        },
        "environment": {
            "processor": "AMD EPYC", "cores": 2, "threads": 2, "servers": None, "versions": {"torch": "2.13"},
        },
    }  # fmt: skip
    return deepcopy({**made, **changes})
