"""Finished reports, kept so that the page can show the last ones: a JSON file each, the oldest go first.

A report that `eval` or `bench` has made is everybody's; one that somebody has made on a page with a login is
theirs, which its name tells by a digest. A name is checked before it becomes a path.
"""

import hashlib
import json
import re
import threading
import uuid
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from specrag.errors import SpecragError
from specrag.evaluation.problems import EvaluationError
from specrag.evaluation.reading import EVALUATION, MOST_BYTES, Report, read_report
from specrag.tracing.files import write_whole

Kind: TypeAlias = Literal["eval", "bench"]
FOLDER: Final = "reports"
MOST: Final = 20
"""Reports that are kept of one owner, and of nobody in particular."""
_NAME: Final = re.compile(r"(\d{8}T\d{6})-(eval|bench)-(all|[0-9a-f]{12})-[0-9a-f]{8}\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A report on the shelf."""

    name: str
    """Of its file, by which it is asked for."""
    kind: Kind
    title: str
    made_at: str
    """As YYYY-MM-DD HH:MM, UTC."""


class Shelf:
    """The reports of one home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER
        self._lock = threading.Lock()
        self._titles: dict[str, str] = {}
        """Of the files that are there: one never changes, so its title is read once."""

    def keep(self, report: Mapping[str, Any], *, owner: str = "", now: datetime | None = None) -> str:
        """Put a report on the shelf and take the oldest ones of its owner down; returns its name.

        Raises:
            EvaluationError: it cannot be written, or is none that the shelf could read again.
        """
        data = json.dumps(report, ensure_ascii=False, indent=1).encode("utf-8", "replace")
        read_report(data, "The report")
        kind = "eval" if report["schema"] == EVALUATION else "bench"
        when = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%S")
        name = f"{when}-{kind}-{_mark(owner)}-{uuid.uuid4().hex[:8]}.json"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(data, self._folder / name)
        except OSError as error:
            raise EvaluationError(
                f"The report cannot be kept in {self._folder}: {error.strerror or error}."
            ) from error
        self._clear(_mark(owner))
        return name

    def kept(self, owner: str = "") -> tuple[Kept, ...]:
        """What somebody may see, the newest first; what is no report any more is left out."""
        there = self._names()
        with self._lock:
            self._titles = {name: self._titles[name] for name in there if name in self._titles}
        made = (self._described(name) for name in _theirs(there, {"all", _mark(owner)}))
        return tuple(one for one in made if one is not None)

    def load(self, name: str, owner: str = "") -> Report:
        """A report by its name.

        Raises:
            EvaluationError: there is none of this name for this owner, or it is damaged.
        """
        found = _NAME.fullmatch(name)
        if found is None or found[3] not in ("all", _mark(owner)):
            raise EvaluationError("There is no such report; the list shows those that are kept.")
        try:
            return self._read(name)
        except OSError as error:
            raise EvaluationError("The report is no longer kept; the list shows those that are.") from error

    def _read(self, name: str) -> Report:
        with (self._folder / name).open("rb") as file:
            return read_report(file.read(MOST_BYTES + 1), "The report")

    def _names(self) -> list[str]:
        """All reports of all owners, newest first."""
        try:
            there = [path.name for path in self._folder.iterdir()]
        except OSError:
            return []
        return sorted(filter(_NAME.fullmatch, there), reverse=True)

    def _clear(self, mark: str) -> None:
        for name in _theirs(self._names(), {mark})[MOST:]:
            with suppress(OSError):  # another process was faster
                (self._folder / name).unlink()

    def _described(self, name: str) -> Kept | None:
        with self._lock:
            if name not in self._titles:
                try:
                    self._titles[name] = _title(self._read(name))
                except (OSError, SpecragError):
                    return None
            title = self._titles[name]
        when, kind, *_ = name.split("-")
        moment = datetime.strptime(when, "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
        return Kept(
            name=name,
            kind="eval" if kind == "eval" else "bench",
            title=title,
            made_at=moment.strftime("%Y-%m-%d %H:%M"),
        )


def _theirs(names: Iterable[str], marks: Collection[str]) -> list[str]:
    return [name for name in names if name.split("-")[2] in marks]


def _title(report: Report) -> str:
    """What a list calls it."""
    if report["schema"] == EVALUATION:
        names = ", ".join(report["pipelines"])
        return f"{report['dataset']}: {report['n']} questions, {names}"[:160]
    return f"{report['drafter']} drafts, {report['verifier']} verifies"[:160]


def _mark(owner: str) -> str:
    """An owner in the name of a file: nobody can read from it who it is."""
    return hashlib.sha256(owner.encode("utf-8", "replace")).hexdigest()[:12] if owner else "all"
