"""What an evaluation is going to do, as a value that can be compared with what a folder already holds."""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from specrag.config import Settings, model_name
from specrag.evaluation.corpus import CorpusName
from specrag.evaluation.questions import Dataset, Question
from specrag.evaluation.systems import System

SCHEMA: Final = "specrag.eval-plan/1"
_ROOT: Final = Path(__file__).resolve().parent.parent
_ELSEWHERE: Final = ("ui", "cli", "tracing", "library", "vllm", "evaluation/judge", "evaluation/latency")
"""Folders that no answer of an evaluation follows from."""
_REPORT: Final = frozenset({
    "bootstrap", "cells", "choices", "document", "form", "form_parts", "judging", "markdown", "metrics",
    "outcome", "randomisation", "ranking", "reading", "shelf", "summary", "words",
})  # fmt: skip
"""Files of the evaluation that look at finished runs only."""
_PAGE: Final = frozenset({"guest", "sample_questions", "trial_folder", "trials"})
"""Those of evaluations on the page: each has a folder of its own, and no other goes on there."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Which questions go to which systems, in which order."""

    datasets: tuple[Dataset, ...]
    systems: tuple[System, ...]
    settings: Settings
    seed: int = 0
    limit: int | None = None
    """Questions of each file; None takes all."""
    corpus: CorpusName = "given"

    @cached_property
    def questions(self) -> tuple[tuple[Dataset, Question], ...]:
        """Those of all files in turn, so that a run that is stopped has some of each.

        A smaller limit takes the first ones of a larger, so a folder can be gone on with under another limit.
        """
        samples = [sample(one.questions, seed=self.seed, limit=self.limit) for one in self.datasets]
        longest = max(map(len, samples))
        return tuple(
            (dataset, questions[place])
            for place in range(longest)
            for dataset, questions in zip(self.datasets, samples, strict=True)
            if place < len(questions)
        )

    def order(self, question: Question) -> list[System]:
        """The systems as they take this question: drawn anew for each, so that no one is always first."""
        drawn = random.Random(f"{self.seed} {question.id}")  # noqa: S311 - reproducible on purpose
        first = [system for system in self.systems if system.fork is None]
        drawn.shuffle(first)
        return [*first, *(system for system in self.systems if system.fork is not None)]

    def document(self, environment: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        """What a folder keeps of it; `limit` is left out, since more questions change no run."""
        return {
            "schema": SCHEMA,
            "data": {one.name: one.sha256 for one in self.datasets},
            "forms": {one.name: one.form for one in self.datasets},
            "seed": self.seed,
            "corpus": self.corpus,
            "systems": {one.name: {**one.settings, **_fork(one)} for one in self.systems},
            "settings": dict(config),
            "conditions": {
                "reranker": model_name(self.settings.reranker),
                "threads": self.settings.threads,
                "device": environment.get("device"),
                "deadline_s": self.settings.deadline_s,
                "max_question_characters": self.settings.max_question_characters,
            },
            "versions": environment.get("versions", {}),
            "models": environment.get("models", {}),
            "code": code(),
        }


def sample(questions: Sequence[Question], *, seed: int, limit: int | None) -> tuple[Question, ...]:
    """So many of the questions by the seed, or all, in the order of the draw."""
    drawn = sorted(questions, key=lambda one: one.id)
    random.Random(seed).shuffle(drawn)  # noqa: S311 - reproducible on purpose
    return tuple(drawn[:limit])


def code(root: Path = _ROOT) -> str:
    """A word for the code that answers follow from, of the package in `root`; a version changes more rarely.

    All of it but what is known to change no answer: a list of what does would miss the next file.
    """
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if _decides(name):
            digest.update(f"{name.as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _decides(name: Path) -> bool:
    if any(name.is_relative_to(folder) for folder in _ELSEWHERE):
        return False
    return name.parent.name != "evaluation" or name.stem not in _REPORT | _PAGE


def _fork(system: System) -> dict[str, str]:
    return {"fork": system.fork} if system.fork else {}
