"""An evaluation on disk: a line for each finished run, its trace beside it, and the plan that both follow.

A line is written once its trace is, and is on the disk before the next run begins. So a process that is
killed loses the run that was under way and nothing else; whatever it left half written is not counted. A
folder belongs to one plan: runs under other settings, data or versions are never mixed into one table. Files
of questions may be added, but not to an open corpus, in which every question looks among the passages of all.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from filelock import FileLock, Timeout

from specrag.errors import SpecragError
from specrag.evaluation.journal import append, read
from specrag.evaluation.problems import EvaluationError
from specrag.tracing.codec import from_json, to_json
from specrag.tracing.files import write_whole
from specrag.tracing.trace import Trace

PLAN: Final = "plan.json"
LINES: Final = "results.jsonl"
OPINIONS: Final = "judgements.jsonl"
"""What a judge said of the runs; `judge.book` reads and writes it."""
TRACES: Final = "traces"
CORPUS: Final = "chroma"
_LOCK: Final = "evaluation.lock"
_OURS: Final = frozenset({_LOCK, TRACES, CORPUS})
"""What may be in a folder before its first plan."""
_NEEDED: Final = ("data", "systems")
_GROWING: Final = (*_NEEDED, "forms")
"""Parts of a plan that may name more than the folder has, or less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One finished run."""

    dataset: str
    question: str
    """Its id in the file."""
    system: str
    run_id: str
    status: Literal["done", "failed"]
    answer: str = ""
    error: str = ""
    retrieve_ms: float | None = None
    """What finding the passages took, once for all systems; None for those that read none."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What was run."""
        return (self.dataset, self.question, self.system)


class Folder:
    """The runs of one evaluation. `finished` are those to count, by what was run."""

    def __init__(self, path: Path) -> None:
        """Open a folder, made if it is missing; held until `close`.

        Raises:
            EvaluationError: another process uses it, it holds something else, or it cannot be written.
        """
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(path / _LOCK, thread_local=False)
            self._lock.acquire(timeout=0)
            (path / TRACES).mkdir(exist_ok=True)
        except Timeout:
            raise EvaluationError(f"{path} is in use by another evaluation; wait for it to end.") from None
        except OSError as error:
            raise EvaluationError(f"{path} cannot be used: {error.strerror or error}.") from error
        self.finished: dict[tuple[str, str, str], Line] = {}

    def close(self) -> None:
        """Let another process have it."""
        self._lock.release()

    def begin(self, plan: Mapping[str, Any], *, restart: bool = False) -> None:
        """Follow a plan: go on with the runs that are here, or remove them with `restart`.

        Runs that failed are not counted as finished, so they are tried again.

        Raises:
            EvaluationError: the runs here were made after another plan, or cannot be read.
        """
        if not (self.path / PLAN).exists():
            self._check_empty()
        if restart:
            self._clear(corpus=plan.get("corpus") != "open")
        elif (before := self.plan()) is not None:
            self._check(before, plan)
            plan = {**plan, **{name: _part(before, name) | _part(plan, name) for name in _GROWING}}
            self.read()
        _write(self.path / PLAN, json.dumps(plan, ensure_ascii=False, indent=1))

    def read(self, *, failed: bool = False) -> None:
        """Take up the runs that are here, whichever plan they follow; with `failed` also those that failed.

        Raises:
            EvaluationError: a line cannot be read.
        """
        last = {line.key: line for line in read(self.path / LINES, Line, "finished run")}
        self.finished = {key: line for key, line in last.items() if failed or line.status == "done"}

    def keep(self, line: Line, trace: Trace | None) -> None:
        """Put a finished run on the disk.

        Raises:
            EvaluationError: it cannot be written; what was finished before stays.
        """
        if trace is not None:
            _write(self.path / TRACES / f"{line.run_id}.json", to_json(trace))
        append(self.path / LINES, asdict(line))
        self.finished[line.key] = line

    def trace(self, line: Line) -> Trace | None:
        """The trace of a finished run; None if it failed before it began, or if the file is gone.

        Raises:
            EvaluationError: the file is damaged.
        """
        path = self.path / TRACES / f"{line.run_id}.json"
        try:
            return from_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError, SpecragError) as error:
            raise EvaluationError(f"{path} cannot be read: {error}; use --restart.") from error

    def _check_empty(self) -> None:
        if any(one.name not in _OURS and not _unfinished(one.name) for one in self.path.iterdir()):
            raise EvaluationError(
                f"{self.path} holds files that are no evaluation; choose an empty folder with --out."
            )

    def plan(self) -> dict[str, Any] | None:
        """The plan that the runs here follow; None before the first.

        Raises:
            EvaluationError: it cannot be read, or it is none.
        """
        path = self.path / PLAN
        try:
            plan = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise EvaluationError(f"{path} cannot be read; use --restart to begin anew.") from error
        if not isinstance(plan, dict) or not all(isinstance(plan.get(name), dict) for name in _NEEDED):
            raise EvaluationError(f"{path} is no plan of an evaluation; choose another folder with --out.")
        return plan

    def _check(self, before: Mapping[str, Any], plan: Mapping[str, Any]) -> None:
        whole = {"data"} if plan.get("corpus") == "open" else set()
        for name in {**before, **plan}:
            old, new = before.get(name), plan.get(name)
            if name in _GROWING and name not in whole:
                growing = _part(plan, name)
                old = {one: value for one, value in _part(before, name).items() if one in growing}
                new = {one: growing[one] for one in old}
            found = _difference(name, old, new)
            if found:
                raise EvaluationError(
                    f"{self.path} holds runs with {found[0]} {_shown(found[1])}, and now it is "
                    f"{_shown(found[2])}; choose another folder with --out, or remove them with --restart."
                )

    def _clear(self, *, corpus: bool) -> None:
        """Remove the runs, and with `corpus` the collection; one that is open is its owner's to empty."""
        try:
            for name in (PLAN, LINES, OPINIONS):
                (self.path / name).unlink(missing_ok=True)
            for trace in (self.path / TRACES).glob("*.json"):
                trace.unlink()
            if corpus and (self.path / CORPUS).is_dir():
                shutil.rmtree(self.path / CORPUS)
        except OSError as error:
            raise EvaluationError(f"{self.path} cannot be emptied: {error.strerror or error}.") from error


def _unfinished(name: str) -> bool:
    """Whether it is what a process left that was killed while it wrote the first plan."""
    return name.startswith(f".{PLAN}.")


def _part(plan: Mapping[str, Any], name: str) -> dict[str, Any]:
    return dict(plan.get(name) or {})


def _difference(name: str, old: Any, new: Any) -> tuple[str, Any, Any] | None:
    """The first place where two plans differ, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            found = _difference(f"{name}.{key}", old.get(key), new.get(key))
            if found:
                return found
        return None
    return None if old == new else (name, old, new)


def _shown(value: Any) -> str:
    return "not set" if value is None else json.dumps(value, ensure_ascii=False)[:80]


def _write(path: Path, text: str) -> None:
    try:
        write_whole(text.encode("utf-8", "replace"), path)
    except OSError as error:
        raise EvaluationError(f"{path} cannot be written: {error.strerror or error}.") from error
