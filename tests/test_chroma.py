"""The embedded store: a folder with one owner, what a killed process leaves in it, and folders of old."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import chromadb
import numpy as np
import pytest
from chromadb.api.client import Client
from chromadb.config import Settings

from specrag.errors import StoreError, StoreLocked
from specrag.retrieval.chroma import ChromaStore
from specrag.retrieval.lock import StoreLock
from tests.made_files import chunks
from tests.stored import PRINT, info, put, unit


def test_stores_in_memory_do_not_see_each_other() -> None:
    one, other = ChromaStore(None), ChromaStore(None)
    put(one, "aaaa", 2)
    assert other.collections() == ()
    one.close()
    put(other, "bbbb", 1)
    assert other.count("docs") == 1
    other.close()
    other.close()


def test_a_folder_keeps_its_documents(tmp_path: Path) -> None:
    store = ChromaStore(tmp_path)
    put(store, "aaaa", 250)
    store.close()
    again = ChromaStore(tmp_path)
    assert again.documents("docs") == [info("aaaa", 250)]
    assert again.query("docs", unit(3)[0], 1)[0].id == "aaaa-00003"
    again.close()


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.stored import PRINT, info, put, unit
from tests.made_files import chunks
from specrag.retrieval.chroma import ChromaStore

store = ChromaStore(Path(sys.argv[1]))
put(store, "ready", 230)

class Killing(list):
    def __getitem__(self, index):
        if index.start >= 400:
            print(store.count("docs"), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)

store.add("docs", info("half", 600), Killing(chunks("half", 600)), unit(*range(600)))
"""


def run(script: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=Path(__file__).parents[1],
    )


def test_a_process_killed_in_the_middle_loses_no_ready_document_and_leaves_no_orphan(tmp_path: Path) -> None:
    killed = run(KILLED, tmp_path)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert int(killed.stdout) == 230 + 400
    store = ChromaStore(tmp_path)
    assert [document.id for document in store.documents("docs")] == ["ready"]
    assert store.count("docs") == 230
    assert store.chunks("docs", "ready") == chunks("ready", 230)
    assert len(store.query("docs", unit(5)[0], 300)) == 230
    put(store, "half", 600)
    assert store.count("docs") == 830
    store.close()


KILLED_REINDEX = """
import os, signal, sys
from pathlib import Path
from tests.stored import put
from specrag.retrieval.chroma import ChromaStore

store = ChromaStore(Path(sys.argv[1]))
put(store, "ready", 30)
store.reindex("docs", "new", lambda made: os.kill(os.getpid(), signal.SIGKILL), lambda done, total: None)
"""


def test_a_reindex_killed_in_the_middle_leaves_the_old_vectors(tmp_path: Path) -> None:
    assert run(KILLED_REINDEX, tmp_path).returncode == -signal.SIGKILL
    store = ChromaStore(tmp_path)
    store.check("docs", PRINT)
    assert store.query("docs", unit(5)[0], 1)[0].id == "ready-00005"
    store.close()


OPENED = """
import sys
from pathlib import Path
from specrag.errors import StoreLocked
from specrag.retrieval.chroma import ChromaStore
try:
    ChromaStore(Path(sys.argv[1]))
except StoreLocked as error:
    print(error)
"""


def test_a_second_process_is_told_who_holds_the_store(tmp_path: Path) -> None:
    store = ChromaStore(tmp_path)
    put(store, "aaaa", 2)
    message = run(OPENED, tmp_path).stdout
    assert f"process {os.getpid()} " in message
    assert "stop that process, or set SPECRAG_HOME" in message
    assert store.count("docs") == 2
    store.close()
    assert run(OPENED, tmp_path).stdout == ""


def test_a_second_store_in_the_same_process_is_told_so(tmp_path: Path) -> None:
    store = ChromaStore(tmp_path)
    with pytest.raises(StoreLocked, match="this very process"):
        ChromaStore(tmp_path)
    store.close()
    ChromaStore(tmp_path).close()


def test_the_lock_is_released_from_another_thread_than_took_it(tmp_path: Path) -> None:
    """The program takes it in the thread that starts up and releases it in the main one."""
    taken: list[StoreLock] = []
    starter = threading.Thread(target=lambda: taken.append(StoreLock(tmp_path)))
    starter.start()
    starter.join()
    with pytest.raises(StoreLocked, match="this very process"):
        StoreLock(tmp_path)
    taken[0].release()
    assert not (tmp_path / "holder.json").exists()
    again = StoreLock(tmp_path)
    taken[0].release()  # of no effect on the next holder
    assert (tmp_path / "holder.json").exists()
    again.release()


def test_a_folder_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(StoreError, match="SPECRAG_HOME"):
        ChromaStore(tmp_path / "file" / "store")
    (tmp_path / "broken" / "chroma").mkdir(parents=True)
    (tmp_path / "broken" / "chroma" / "chroma.sqlite3").write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError, match="cannot be opened"):
        ChromaStore(tmp_path / "broken")
    with pytest.raises(StoreError, match="cannot be opened"):
        ChromaStore(tmp_path / "broken")  # and not that it is locked


def made_by_an_older_version(path: Path) -> None:
    """A folder as versions up to 0.1 wrote it: rows go by the id of their chunk, lines by that of their document."""
    client = cast("Client", chromadb.PersistentClient(path / "chroma", Settings(anonymized_telemetry=False)))
    metadata = {"specrag_fingerprint": PRINT, "specrag_description": ""}
    rows = client.create_collection(
        "docs", metadata=metadata, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
    )
    for identity in ("aaaa", "half"):  # the second was being written when the process was killed
        made = chunks(identity, 20)
        rows.upsert(
            ids=[chunk.id for chunk in made],
            embeddings=unit(*range(20)),
            documents=[chunk.text for chunk in made],
            metadatas=[
                {"document_id": identity, "title": "Notes", "source": "notes.txt", "position": chunk.position}
                for chunk in made
            ],
        )
    line: dict[str, Any] = {
        "collection": "docs",
        "document_id": "aaaa",
        "title": "Notes",
        "source": "notes.txt",
        "pages": 1,
        "chunks": 20,
        "added_at": "2026-01-01T00:00:00+00:00",
    }
    client.create_collection("specrag.catalogue", embedding_function=None).upsert(
        ids=["docs/aaaa"],
        embeddings=np.ones((1, 1), dtype=np.float32),
        metadatas=[line],
    )
    client.close()


def test_a_folder_of_an_older_version_opens_and_works(tmp_path: Path) -> None:
    made_by_an_older_version(tmp_path)
    store = ChromaStore(tmp_path)
    assert store.documents("docs") == [info("aaaa", 20)]
    assert store.count("docs") == 20
    assert store.chunks("docs", "aaaa") == chunks("aaaa", 20)
    assert [one.id for one in store.query("docs", unit(7)[0], 1)] == ["aaaa-00007"]
    assert store.vectors("docs", ["aaaa-00003"])[0] == pytest.approx(unit(3)[0], abs=1e-6)
    assert store.lookup("docs", ["half-00001", "aaaa-00003"]) == {"aaaa-00003": chunks("aaaa", 20)[3]}
    assert [one.id for one in store.query("docs", unit(7)[0], 1, ["aaaa"])] == ["aaaa-00007"]
    assert store.editions("docs").keys() == {"aaaa"}
    (listed,) = store.infos()
    assert (listed.title, listed.owner, listed.documents, listed.chunks) == ("docs", "", 1, 20)
    put(store, "aaaa", 5)
    assert store.count("docs") == 5
    assert store.delete("docs", "aaaa") == 5
    store.close()
