"""One hostile file costs itself: crashes, loops, gigabytes, cancels, and what is left afterwards."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from specrag.config import load_settings
from specrag.errors import DocumentError, UsageError
from specrag.ingest.base import FileReader, ReadingCancelled
from specrag.ingest.process.reading import HereReader, ReadingProcess
from specrag.types import Document
from tests.made_files import pdf

TOY = "tests.toy_reading_child"
Toy = Callable[..., Document]


@pytest.fixture
def reading() -> Iterator[ReadingProcess]:
    with ReadingProcess(load_settings(read_timeout_s=30, read_memory_mb=300), module=TOY) as process:
        yield process


@pytest.fixture
def toy(reading: ReadingProcess, tmp_path: Path) -> Toy:
    def read(command: str, **options: Any) -> Document:
        return reading.read(_toy_file(tmp_path, command), "folder/toy.txt", **options)

    return read


def _toy_file(folder: Path, command: str) -> Path:
    path = folder / command
    path.write_text(command, encoding="utf-8")
    return path


def _text(document: Document) -> str:
    return "".join(page.text for page in document.pages)


def _gone(pid: int, within_s: float) -> bool:
    """Whether a process ends in time; one that nobody collects counts as ended."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def _wait_until_busy(pid: int) -> None:
    """Until a process has taken a third of a second of a processor."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        if int(fields[11]) / os.sysconf("SC_CLK_TCK") > 0.35:
            return
        time.sleep(0.02)
    raise AssertionError("it does nothing")


@pytest.mark.parametrize(
    ("command", "reason", "says"),
    [
        ("crash", "corrupt", "damaged"),
        ("abort", "corrupt", "damaged"),
        ("leave", "corrupt", "damaged"),
        ("lie", "corrupt", "damaged"),
        ("babble", "corrupt", "damaged"),
        ("eat", "too_large", "SPECRAG_READ_MEMORY_MB"),
        ("gulp", "too_large", "SPECRAG_READ_MEMORY_MB"),
        ("raise", "unreadable", "not understood"),
        ("refuse", "no_text", "holds no text"),
    ],
)
def test_what_a_file_does_to_its_reader_costs_one_sentence(
    toy: Toy, command: str, reason: str, says: str
) -> None:
    """A segmentation fault took the whole page with it, and gigabytes the machine."""
    with pytest.raises(DocumentError) as caught:
        toy(command)
    message = str(caught.value)
    assert caught.value.reason == reason
    assert message.startswith("toy.txt ")
    assert message.endswith(".")
    assert says in message
    assert _text(toy("next")) == "read next"


@pytest.mark.parametrize("command", ["loop", "stuck"])
def test_a_reader_that_never_ends_is_given_up(tmp_path: Path, command: str) -> None:
    with ReadingProcess(load_settings(read_timeout_s=0.4), module=TOY) as reading:
        with pytest.raises(DocumentError, match=r"toy\.txt .* 0\.4 s \(SPECRAG_READ_TIMEOUT_S\)") as caught:
            reading.read(_toy_file(tmp_path, command), "toy.txt")
        assert caught.value.reason == "timeout"
        assert _text(reading.read(_toy_file(tmp_path, "next"), "toy.txt")) == "read next"


def test_the_time_limit_is_for_one_page_and_not_for_the_file(tmp_path: Path) -> None:
    """A file of many pages was given up although every page came in time."""
    seen: list[int] = []

    def slowly(done: int, _total: int) -> None:
        seen.append(done)
        time.sleep(0.01)  # the caller's own time is nobody's silence

    with ReadingProcess(load_settings(read_timeout_s=0.5), module=TOY) as reading:
        reading.read(_toy_file(tmp_path, "pages"), "toy.txt", on_page=slowly)
    assert seen[1:] == list(range(101))


@pytest.mark.parametrize("command", ["loop", "stuck", "eat"])
def test_a_cancel_is_noticed_at_once_and_the_next_file_is_read(toy: Toy, command: str) -> None:
    stop = threading.Event()
    stopped_at = [0.0]
    child: list[int] = []

    def on_page(pid: int, _total: int) -> None:
        child.append(pid)
        stopped_at[0] = time.monotonic()
        stop.set()

    with pytest.raises(ReadingCancelled):
        toy(command, on_page=on_page, cancelled=stop.is_set)
    assert time.monotonic() - stopped_at[0] < 0.5
    assert _gone(child[0], 0.5)
    assert _text(toy("next")) == "read next"


def test_an_error_of_the_caller_ends_the_child_that_was_at_work(toy: Toy) -> None:
    """It went on with the old file, and its pages were taken for those of the next."""
    child: list[int] = []

    def on_page(pid: int, _total: int) -> None:
        child.append(pid)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        toy("loop", on_page=on_page)
    assert _gone(child[0], 0.5)
    assert _text(toy("next")) == "read next"


def test_a_child_killed_from_outside_is_one_sentence(toy: Toy) -> None:
    with pytest.raises(DocumentError) as caught:
        toy("loop", on_page=lambda pid, _total: os.kill(pid, signal.SIGKILL))
    assert caught.value.reason == "corrupt"
    assert _text(toy("next")) == "read next"


def test_one_child_reads_one_file_after_the_other(toy: Toy) -> None:
    children: list[int] = []
    for _ in range(3):
        toy("next", on_page=lambda pid, _total: children.append(pid))
    assert len(set(children)) == 1


def test_a_child_that_keeps_much_memory_is_replaced(toy: Toy) -> None:
    """What one file has left behind counted against the next, which was refused as too large."""
    children: list[int] = []
    for _ in range(2):
        toy("keep", on_page=lambda pid, _total: children.append(pid))
    assert len(set(children)) == 2


@pytest.mark.parametrize(("command", "late_s"), [("loop", 3.0), ("stuck", 10.0)])
def test_the_child_does_not_outlive_its_parent(tmp_path: Path, command: str, late_s: float) -> None:
    """Kill -9 of the page left a reader behind that looped for ever; one that is stuck ends by its alarm."""
    program = (
        "import sys; from pathlib import Path; from specrag.config import load_settings;"
        "from specrag.ingest.process.reading import ReadingProcess;"
        f"ReadingProcess(load_settings(read_timeout_s=2), module={TOY!r}).read(Path(sys.argv[1]), 'toy',"
        " on_page=lambda pid, total: print(pid, flush=True))"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(_toy_file(tmp_path, command))],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
    )
    with parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        _wait_until_busy(child)
        parent.kill()
    assert _gone(child, late_s)


def test_a_child_that_does_not_start_is_no_fault_of_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        ReadingProcess(load_settings(), module="tests.no_such_module") as reading,
        pytest.raises(DocumentError, match="does not start; the log says why") as caught,
    ):
        reading.read(_toy_file(tmp_path, "next"), "toy.txt")
    assert caught.value.reason == "unreadable"
    assert "No module named tests.no_such_module" in caplog.text


def test_what_a_library_prints_is_no_answer(toy: Toy) -> None:
    assert _text(toy("chat")) == "read chat"


def test_a_long_document_comes_through_quickly(tmp_path: Path) -> None:
    with ReadingProcess(load_settings(), module=TOY) as reading:
        reading.read(_toy_file(tmp_path, "next"), "toy.txt")
        started = time.monotonic()
        document = reading.read(_toy_file(tmp_path, "long"), "toy.txt")
        assert time.monotonic() - started < 5
    assert _text(document) == "ä" * 20_000_000


def test_a_lone_surrogate_is_no_text_and_stops_nothing(toy: Toy) -> None:
    assert _text(toy("surrogate")) == "ab?c"


def test_no_secret_is_in_the_child(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECRAG_LOGIN", "anna:swordfish")
    monkeypatch.setenv("HF_TOKEN", "hf_swordfish")
    environment = _text(toy("environment"))
    assert "swordfish" not in environment
    assert "OMP_NUM_THREADS=1" in environment


def test_a_password_is_on_no_command_line_and_in_no_log(toy: Toy, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        shown = _text(toy("arguments", password="swordfish"))
        with pytest.raises(DocumentError):
            toy("crash", password="swordfish")
    assert shown.startswith("swordfish in ")
    assert shown.count("swordfish") == 1
    assert "swordfish" not in caplog.text


def test_the_log_says_what_the_visitor_is_not_told(toy: Toy, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DocumentError) as caught:
        toy("raise")
    assert "nobody foresaw this" in caplog.text
    assert "nobody foresaw this" not in str(caught.value)


def test_closing_ends_a_file_that_is_being_read(reading: ReadingProcess, tmp_path: Path) -> None:
    ended: list[BaseException] = []
    begun = threading.Event()

    def read() -> None:
        try:
            reading.read(_toy_file(tmp_path, "loop"), "toy.txt", on_page=lambda _pid, _total: begun.set())
        except ReadingCancelled as error:
            ended.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    assert begun.wait(30)
    reading.close()
    thread.join(5)
    assert len(ended) == 1
    with pytest.raises(UsageError, match="the program is ending"):
        reading.read(tmp_path, "toy.txt")


def test_a_picture_does_not_wait_for_a_file(reading: ReadingProcess, tmp_path: Path) -> None:
    """Who opened a citation waited until somebody else's 2,000 pages were read."""
    pictures: list[bytes] = []
    with pytest.raises(ReadingCancelled):
        reading.read(
            _toy_file(tmp_path, "loop"),
            "toy.txt",
            on_page=lambda _pid, _total: pictures.append(reading.page_image(tmp_path, 7).data),
            cancelled=lambda: bool(pictures),
        )
    assert pictures == [b"7"]


def test_who_waits_in_line_can_cancel(reading: ReadingProcess, tmp_path: Path) -> None:
    begun, enough = threading.Event(), threading.Event()

    def read() -> None:
        with pytest.raises(ReadingCancelled):
            reading.read(
                _toy_file(tmp_path, "loop"),
                "toy.txt",
                on_page=lambda _pid, _total: begun.set(),
                cancelled=enough.is_set,
            )

    thread = threading.Thread(target=read)
    thread.start()
    assert begun.wait(30)
    with pytest.raises(ReadingCancelled):
        reading.read(tmp_path, "second.txt", cancelled=lambda: True)
    enough.set()
    thread.join(5)
    assert not thread.is_alive()


def _outcome(reader: FileReader, path: Path) -> Document | tuple[str, str]:
    try:
        return reader.read(path, path.name)
    except DocumentError as error:
        return error.reason, str(error)


def test_a_file_is_the_same_wherever_it_is_read(shared_data: Path) -> None:
    files = [
        path for path in sorted((shared_data / "docs").iterdir()) if path.suffix not in (".md", ".jsonl")
    ]
    here = HereReader(load_settings())
    with ReadingProcess(load_settings()) as there:
        different = [path.name for path in files if _outcome(here, path) != _outcome(there, path)]
    assert different == []


def test_progress_and_cancel_also_work_here(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(*(f"Page {number}." for number in range(1, 6))))
    seen: list[tuple[int, int]] = []
    HereReader(load_settings()).read(path, "a.pdf", on_page=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 5) for done in range(6)]
    with pytest.raises(ReadingCancelled):
        HereReader(load_settings()).read(path, "a.pdf", cancelled=lambda: True)


def test_the_child_loads_no_model_library(tmp_path: Path) -> None:
    """A child that loads torch takes seconds to start, and half a gigabyte."""
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf("One page."))
    program = (
        "import sys; from specrag.config import load_settings; from specrag.ingest.process.child import _read;"
        f"_read({{'path': {str(path)!r}, 'name': 'a.pdf', 'password': None}}, load_settings(), print);"
        "print([name for name in ('torch', 'transformers', 'chromadb', 'gradio', 'sklearn', 'cv2')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
