"""A finished measurement reaches its places: stdout first, and one that fails takes no other with it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from specrag.cli.common import NotWritten, check_places, friendly, put_out
from specrag.errors import UsageError
from tests.report_samples import latency

DOCUMENT = {"schema": "specrag.bench/1"}
TABLES = "| a |\n| --- |\n"
ABSENT, LONG = Path("/no/where.json"), Path("x" * 300)


def test_the_result_is_printed_and_the_other_file_kept_when_one_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files came first and outside of the net for errors: a full disk lost an hour, with a traceback."""
    gone, kept = tmp_path / "gone" / "bench.json", tmp_path / "bench.md"
    with pytest.raises(typer.Exit) as ended, friendly():
        put_out(DOCUMENT, TABLES, gone, kept)
    out, told = capsys.readouterr()
    assert ended.value.exit_code == 1
    assert out == kept.read_text("utf-8") == TABLES
    assert told == f"Error: {gone} cannot be written: No such file or directory.\n"


def test_the_page_is_written_beside_a_file_that_cannot_be(tmp_path: Path) -> None:
    """Each place is a try of its own, and so is the making of the page."""
    gone, page = tmp_path / "gone" / "bench.json", tmp_path / "bench.html"
    with pytest.raises(NotWritten, match=r"bench\.json cannot be written"):
        put_out(latency(verifier="toy"), TABLES, gone, None, page)
    assert "toy verifies" in page.read_text("utf-8")
    with pytest.raises(NotWritten, match=r"bench\.html is not written: The report is no whole report"):
        put_out(DOCUMENT, TABLES, None, None, page)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_is_one_sentence_for_each_place(capsys: pytest.CaptureFixture[str]) -> None:
    full = Path("/dev/full")
    with pytest.raises(typer.Exit), friendly():
        put_out(DOCUMENT, TABLES, full, full)
    out, told = capsys.readouterr()
    assert out == TABLES
    assert told.count("/dev/full cannot be written: No space left on device.") == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_stdout_that_is_full_does_not_keep_the_files_from_being_written(tmp_path: Path) -> None:
    """The second try at the end of Python added a traceback and another exit status."""
    file = tmp_path / "bench.json"
    program = (
        "from pathlib import Path; from specrag.cli.common import friendly, put_out\n"
        f"with friendly(): put_out({DOCUMENT!r}, {TABLES!r}, Path({str(file)!r}), None)"
    )
    main = f"import typer\ndef main():\n exec({program!r})\ntyper.run(main)"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", main], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.stderr == "Error: The result cannot be printed: No space left on device.\n"
    assert done.returncode == 1
    assert json.loads(file.read_text("utf-8")) == DOCUMENT


def test_the_document_alone_is_printed_where_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A path of another encoding holds half a character, which no stream takes."""
    put_out({"path": "caf\udce9"}, TABLES, Path("-"), tmp_path / "bench.md")
    assert json.loads(capsys.readouterr().out) == {"path": "caf?"}
    assert (tmp_path / "bench.md").read_text("utf-8") == TABLES


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (ABSENT, "No such file"),
        (Path("/proc/bench.json"), "cannot be written"),
        (LONG, "too long"),
        (Path("/"), "Is a directory"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_anything_is_measured(file: Path, said: str) -> None:
    """A folder that exists and refuses files was taken for a good place."""
    with pytest.raises(UsageError, match="cannot be written") as told:
        check_places(file, None)
    assert said in str(told.value)
    with pytest.raises(UsageError, match="cannot be written"):
        check_places(None, file)


def test_trying_a_place_changes_nothing(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.md"
    old.write_text("the last result")
    check_places(old, new)
    check_places(Path("-"), new)
    assert [path.name for path in tmp_path.iterdir()] == ["old.json"]
    assert old.read_text() == "the last result"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_places(pipe, None)
    assert pipe.is_fifo()


def test_one_file_for_both_is_refused(tmp_path: Path) -> None:
    """The tables replaced the document."""
    with pytest.raises(UsageError, match="named for both --json and --markdown"):
        check_places(tmp_path / "bench", tmp_path / "." / "bench")
    with pytest.raises(UsageError, match="named for both --markdown and --html"):
        check_places(None, tmp_path / "bench", tmp_path / "bench")
