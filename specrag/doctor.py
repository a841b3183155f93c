"""Is this machine ready? One check a line, and for each that fails, what to do about it.

Nothing is changed and nothing is fetched. A check that cannot be carried out fails with its reason; it
never raises, because the doctor is asked when things are already wrong.
"""

import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

from packaging.requirements import InvalidRequirement, Requirement

from specrag.config import Settings
from specrag.errors import ModelError, StoreError, StoreLocked, UsageError, WeightsError
from specrag.measure import MachineFigures, measure_machine
from specrag.models.embedded import EMBEDDED, WeightsSpec
from specrag.models.server.access import Access, access_of
from specrag.models.server.model import ServerModel
from specrag.models.weights import HUB_ID, Weights
from specrag.retrieval.address import server_of
from specrag.retrieval.lock import StoreLock
from specrag.types import Role

SCHEMA = "specrag.doctor/1"
OLDEST_PYTHON = (3, 11)
WORKING_MB = 500
"""Free space for the store and the traces; weights that are not there yet come on top."""
FLAGS_OF_NOTE = {"avx2": "AVX2", "avx512f": "AVX-512", "amx_tile": "AMX", "asimd": "NEON", "sve": "SVE"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    """Empty when there is nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All checks, and the measured figures if they were asked for."""

    checks: tuple[Check, ...]
    figures: MachineFigures | None = None

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return all(check.ok for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """The document that `specrag doctor --json` prints."""
        return {
            "schema": SCHEMA,
            "ok": self.ok,
            "checks": [asdict(check) for check in self.checks],
            "figures": None if self.figures is None else asdict(self.figures),
        }


def diagnose(settings: Settings, *, measure: bool = False) -> Report:
    """Look at everything a run needs; with `measure`, also time the processor (a second or two)."""
    checks = [
        *_guarded("python", lambda: iter([_python()])),
        *_guarded("packages", lambda: check_packages(_requirements())),
        *_guarded("home", lambda: iter([_home(settings)])),
        *_guarded("disk", lambda: iter([_disk(settings)])),
        *_guarded("weights", lambda: _weights(settings)),
        *_guarded("servers", lambda: _servers(settings)),
        *_guarded("store", lambda: iter([_store(settings)])),
        *_guarded("processor", lambda: iter([_processor(settings)])),
    ]
    figures = None
    if measure:
        try:
            figures = measure_machine(threads=settings.threads)
            checks.append(_speed(figures))
        except (ImportError, RuntimeError) as error:
            checks.append(_failed("speed", error, "install the versions in requirements.txt"))
    return Report(checks=tuple(checks), figures=figures)


def check_packages(requirements: list[str]) -> Iterator[Check]:
    """One check for each requirement line: is the installed version within its range?"""
    for line in requirements:
        try:
            wanted = Requirement(line)
        except InvalidRequirement as error:
            yield _failed("packages", error, "restore requirements.txt")
            continue
        if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
            yield _package(wanted)


def _package(wanted: Requirement) -> Check:
    name = f"package {wanted.name}"
    remedy = f"run `pip install '{wanted}'`"
    try:
        version = importlib.metadata.version(wanted.name)
    except importlib.metadata.PackageNotFoundError:
        return Check(name=name, ok=False, detail="not installed", remedy=remedy)
    fits = wanted.specifier.contains(version, prereleases=True)
    detail = version if fits else f"{version} is outside {wanted.specifier}"
    return Check(name=name, ok=fits, detail=detail, remedy="" if fits else remedy)


def _requirements() -> list[str]:
    listed = Path(__file__).parent.parent / "requirements.txt"
    if listed.is_file():
        lines = (line.partition(" #")[0].strip() for line in listed.read_text(encoding="utf-8").splitlines())
        return [line for line in lines if line and not line.startswith(("#", "-"))]
    return importlib.metadata.requires("specrag") or []


def _python() -> Check:
    ok = sys.version_info[:2] >= OLDEST_PYTHON
    oldest = ".".join(map(str, OLDEST_PYTHON))
    detail = f"{platform.python_version()} on {platform.system()}"
    return Check(name="python", ok=ok, detail=detail, remedy="" if ok else f"use Python {oldest} or newer")


def _home(settings: Settings) -> Check:
    # Written to, because permission bits say nothing of read-only mounts; an absent home is not made.
    place = _nearest(settings.home)
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        detail = f"{settings.home} cannot be written ({error.strerror})"
        return Check(name="home", ok=False, detail=detail, remedy="point SPECRAG_HOME to a folder of yours")
    state = "can be written" if settings.home.is_dir() else "can be made"
    return Check(name="home", ok=True, detail=f"{settings.home} {state}")


def _disk(settings: Settings) -> Check:
    weights = Weights(home=settings.home)
    missing = [spec for spec in _embedded_in_use(settings) if not weights.status(spec.name).ready]
    needed = WORKING_MB + sum(spec.disk_bytes for spec in missing) // 1_000_000
    free = shutil.disk_usage(_nearest(settings.home)).free // 1_000_000
    remedy = "" if free >= needed else "make room or point SPECRAG_HOME to another disk"
    return Check(name="disk", ok=free >= needed, detail=f"{free} MB free, {needed} MB needed", remedy=remedy)


def _weights(settings: Settings) -> Iterator[Check]:
    for name in dict.fromkeys((*settings.models_here, settings.embedder)):
        yield _model(name, Weights(home=settings.home))


def _servers(settings: Settings) -> Iterator[Check]:
    """What each server of a model can do, asked one by one: a pool hides one that is away."""
    for role in get_args(Role):
        try:
            access = access_of(settings, role)
        except UsageError as error:
            yield Check(name=f"{role}'s server", ok=False, detail=str(error), remedy="correct it")
            continue
        if access is not None:
            yield from (_server(replace(access, urls=(url,))) for url in access.urls)


def _server(access: Access) -> Check:
    name = f"{access.role}'s server"
    model = ServerModel(access)
    try:
        info = model.connect_now()
    except ModelError as error:
        return Check(name=name, ok=False, detail=str(error), remedy="correct what the detail names")
    finally:
        model.close()
    detail = f"{access.urls[0]}: {info.name} on {info.device}, context {info.context:,}"
    return Check(name=name, ok=True, detail=" ".join([f"{detail}.", *info.notes]) if info.notes else detail)


def _model(name: str, weights: Weights) -> Check:
    label = f"weights {name}"
    if name in weights.names:
        status = weights.status(name)
        size = f"{status.size // 1_000_000} MB"
        detail = f"ready, {size}" if status.ready else f"not here yet; the first start fetches {size}"
        remedy = "" if status.ready else "run `python -m specrag weights pull` to fetch them now"
        return Check(name=label, ok=True, detail=detail, remedy=remedy)
    if HUB_ID.fullmatch(name) and not Path(name).exists():
        return Check(name=label, ok=True, detail="from the hub, at the first start if not here yet")
    try:
        return Check(name=label, ok=True, detail=f"folder {weights.ensure(name)}")
    except WeightsError as error:
        return _failed(label, error, "correct SPECRAG_DRAFTER, SPECRAG_VERIFIER or SPECRAG_EMBEDDER")


def _store(settings: Settings) -> Check:
    if settings.chroma_url:
        return _served_store(settings)
    folder = settings.home / "chroma"
    if not folder.is_dir():
        return Check(name="store", ok=True, detail="no embedded store yet")
    try:
        StoreLock(folder).release()
    except StoreLocked as error:
        # No failure: the page that is being served is what holds it, usually.
        return Check(name="store", ok=True, detail=str(error))
    except StoreError as error:
        return _failed("store", error, "point SPECRAG_HOME to a folder of yours")
    return Check(name="store", ok=True, detail="no process has the embedded store open")


def _served_store(settings: Settings) -> Check:
    """One try, and nothing is made there."""
    from specrag.retrieval.server import look

    try:
        server = replace(server_of(settings), patience_s=0.0)
        return Check(name="store", ok=True, detail=look(server))
    except (UsageError, StoreError) as error:
        # The sentence names the remedy, and the setting.
        return Check(name="store", ok=False, detail=str(error), remedy="correct what the detail names")


def _processor(settings: Settings) -> Check:
    cores = os.cpu_count() or 1
    flags = ", ".join(cpu_flags()) or "no vector extensions known"
    ok = settings.threads <= cores
    detail = f"{cores} cores, {settings.threads} threads, {platform.machine()}, {flags}"
    return Check(
        name="processor", ok=ok, detail=detail, remedy="" if ok else f"set SPECRAG_THREADS to {cores} or less"
    )


def _speed(figures: MachineFigures) -> Check:
    detail = (
        f"{figures.matrix_gflops:.0f} GFLOP/s fp32, {figures.memory_gb_s:.1f} GB/s, {figures.threads} threads"
    )
    return Check(name="speed", ok=True, detail=detail)


def cpu_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, ...]:
    """Vector extensions that decide which arithmetic is fast; empty where the system does not tell."""
    told = _told(cpuinfo, "flags", "features")
    words = {word for value in told for word in value.split()}
    return tuple(title for flag, title in FLAGS_OF_NOTE.items() if flag in words)


def processor_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor as its maker calls it, else its architecture."""
    names = (name for name in _told(cpuinfo, "model name") if name)
    return next(names, platform.processor() or platform.machine())


def _told(cpuinfo: Path, *keys: str) -> list[str]:
    """What the system tells under these keys, of one core after another."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    parts = (line.partition(":") for line in lines)
    return [value.strip() for key, _, value in parts if key.strip().lower() in keys]


def _embedded_in_use(settings: Settings) -> list[WeightsSpec]:
    names = {*settings.models_here, settings.embedder}
    return [spec for spec in EMBEDDED if spec.name in names]


def _nearest(path: Path) -> Path:
    """The path itself, or the nearest parent that exists."""
    return next(candidate for candidate in (path, *path.absolute().parents) if candidate.exists())


def _guarded(name: str, look: Callable[[], Iterator[Check]]) -> list[Check]:
    try:
        return list(look())
    except Exception as error:  # noqa: BLE001 - a doctor who faints helps nobody: the reason becomes the finding
        return [_failed(name, error, "correct what the detail names")]


def _failed(name: str, error: Exception, remedy: str) -> Check:
    detail = " ".join(f"{type(error).__name__}: {error}".split())
    return Check(name=name, ok=False, detail=detail, remedy=remedy)
