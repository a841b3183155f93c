"""`kill -9` at ten random moments of indexing: what was ready is whole, and the rest gets there in the end.

Run with `-s` to see the table of the moments and what became of the files.
"""

import io
import multiprocessing
import random
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from specrag.ingest.jobs.jobs import ENDED, JobState
from specrag.ingest.loaders import read
from tests.integration.killed_life import Life, digest, live, settings_of
from tests.made_files import pdf

pytestmark = pytest.mark.integration

KILLS = 10
STEPS = 18
"""What a life tells of, about, if it is not killed before."""
PATIENCE_S = 120.0
_FORKS = multiprocessing.get_context("forkserver")


@dataclass(frozen=True, slots=True)
class Death:
    """A life that was killed, as seen from outside."""

    moment: str
    events: dict[str, Any]
    at_work: tuple[str, ...] = ()
    """Job, name, state, done and total of the file that was being worked on."""


@dataclass(slots=True)
class Story:
    """All that was seen."""

    deaths: list[Death] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)


def paragraph(number: int) -> str:
    return f"Ship {number} leaves the harbour at {number % 24} past {number % 7}, and its captain counts {number * 7} sails."


def uploads(folder: Path, turn: int) -> tuple[Path, ...]:
    """New files for a life: a PDF, two texts, and now and then an archive."""
    first = turn * 1000
    made = {
        f"{turn}.pdf": pdf(*(f"{paragraph(first + page)}\nPage {page} of the log." for page in range(40))),
        f"{turn}.md": "\n\n".join(paragraph(first + 100 + line) for line in range(60)).encode(),
        f"{turn}.txt": "\n\n".join(paragraph(first + 300 + line) for line in range(60)).encode(),
    }
    if turn in (2, 6):
        made[f"{turn}.zip"] = packed({f"{name}.txt": paragraph(first + name) for name in (500, 501, 502)})
    folder.mkdir(exist_ok=True)
    for name, content in made.items():
        (folder / name).write_bytes(content)
    return tuple(folder / name for name in made)


def packed(files: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def told(pipe: Connection, steps: int, *, linger_s: float = 0.0) -> Iterator[tuple[str, Any]]:
    """The next steps of a life, then those within some more time; fewer if it ends."""
    try:
        for _ in range(steps):
            assert pipe.poll(PATIENCE_S), "nothing happened any more"
            yield pipe.recv()
        until = time.monotonic() + linger_s
        while pipe.poll(max(0.0, until - time.monotonic())):
            yield pipe.recv()
    except EOFError:
        return


def lived_and_killed(life: Life, steps: int, linger_s: float) -> Death:
    """A life that is killed some time after one of its steps."""
    ours, theirs = _FORKS.Pipe()
    process = _FORKS.Process(target=live, args=(life, theirs))
    process.start()
    theirs.close()
    events: dict[str, Any] = {}
    names: list[str] = []
    for name, what in told(ours, steps, linger_s=linger_s):
        events[name] = what
        names.append(name)
        if name == "idle":
            break
    process.kill()
    process.join()
    at_work = events["at work"] if names and names[-1] == "at work" else ()
    moment = f"{linger_s * 1000:3.0f} ms after step {len(names):2}, “{names[-1] if names else 'start'}”"
    ours.close()
    return Death(moment, events, at_work)


def lived(life: Life) -> dict[str, Any]:
    """A life that comes to its end."""
    ours, theirs = _FORKS.Pipe()
    process = _FORKS.Process(target=live, args=(life, theirs))
    process.start()
    theirs.close()
    events = dict(told(ours, 1_000_000))
    process.join()
    assert process.exitcode == 0
    return events


@pytest.fixture(scope="module")
def story(embedder_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Ten lives that are killed and one that is not, in one home."""
    folder = tmp_path_factory.mktemp("killed")
    chance = random.Random(20260105)
    _FORKS.set_forkserver_preload(["tests.integration.killed_life", "sentence_transformers", "chromadb"])
    seen = Story()
    for turn in range(KILLS):
        life = Life(home=folder / "home", embedder=embedder_path, uploads=uploads(folder / "files", turn))
        seen.deaths.append(lived_and_killed(life, chance.randint(1, STEPS), chance.uniform(0, 0.3)))
    seen.last = lived(Life(home=folder / "home", embedder=embedder_path, last=True))
    seen.last["folder"] = folder
    print(table(seen))  # noqa: T201 - a person runs this for the table
    return seen


def table(story: Story) -> str:
    ends = {state.id: state for state in story.last["all ended"]}
    lines = ["", f"{'killed':45} {'file at work':34} in the end"]
    for death in story.deaths:
        job, name, state, done, total = death.at_work or ("", "-", "", 0, 0)
        end: JobState | None = ends.get(job)
        outcome = f"{end.state} after {end.attempts} stops" if end else "-"
        if job in story.last["given up"]:
            outcome = "given up after 3 stops, ready when tried again"
        lines.append(f"{death.moment:45} {f'{name} {state} {done}/{total}':34} {outcome}")
    return "\n".join(lines)


def expected(story: Story) -> dict[str, str]:
    """The documents and texts that the files stand for, by reading them here."""
    folder: Path = story.last["folder"]
    settings = settings_of(Life(home=folder, embedder=folder))
    known = {}
    for path in sorted((folder / "files").iterdir()):
        if path.suffix != ".zip":
            document = read(path, path.name, settings)
            known[document.id] = digest(document.pages)
            continue
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                inner = folder / "member"
                inner.write_bytes(archive.read(name))
                document = read(inner, f"{path.name}/{name}", settings)
                known[document.id] = digest(document.pages)
    return known


def test_the_kills_come_at_different_moments(story: Story) -> None:
    """Ten kills while nothing is done would prove nothing."""
    at_work = [death.at_work for death in story.deaths if death.at_work]
    assert len(story.deaths) == KILLS
    assert len(at_work) >= KILLS // 2
    assert len(set(at_work)) >= KILLS // 3


def test_the_store_opens_and_what_is_ready_is_whole(story: Story) -> None:
    texts = expected(story)
    for events in [*(death.events for death in story.deaths[1:]), story.last]:
        if "opened" in events:
            stored = events["opened"]
            assert stored["documents"].items() <= texts.items()
            assert all(said == there for said, there in stored["chunks"].values())


def test_no_rows_no_copies_and_no_kept_files_are_left_over(story: Story) -> None:
    for events in [*(death.events for death in story.deaths), story.last]:
        if "opened" in events:
            assert events["opened"]["rows"] == sum(said for said, _ in events["opened"]["chunks"].values())
        if "kept" in events:
            assert events["kept"] == sorted(events["opened"]["documents"])
        assert events.get("resumed", []) == []


def test_in_the_end_every_upload_is_ready_once(story: Story) -> None:
    states: tuple[JobState, ...] = story.last["all ended"]
    assert {(state.name, state.state, state.message) for state in states if state.state != "ready"} == set()
    assert all(state.state in ENDED for state in states)
    ready = story.last["ended"]
    submitted = {str(state.document_id) for state in states}
    assert set(ready["documents"]) == submitted
    assert ready["documents"].items() <= expected(story).items()
    assert ready["rows"] == sum(said for said, _ in ready["chunks"].values())
    home: Path = story.last["folder"] / "home"
    assert list((home / "uploads" / "copies").iterdir()) == []
    assert sorted(path.name for path in (home / "originals").rglob("*") if path.is_file()) == sorted(
        submitted
    )


def test_what_was_submitted_was_never_lost(story: Story) -> None:
    names = {state.name for state in story.last["all ended"]}
    for death in story.deaths:
        last = death.events.get("submitted")
        if last is not None:
            turn = last.split(".")[0]
            assert f"{turn}.pdf" in names
