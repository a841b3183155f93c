"""A collection in one file: the same collection again, and nothing at all of a file that lies."""

import io
import json
import random
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specrag.errors import DocumentError, SpecragError, StoreError, UsageError
from specrag.library.exchange import SCHEMA
from specrag.library.exchange_write import file_name
from specrag.library.library import OPERATOR, SAMPLE
from specrag.retrieval.base import Vectors
from specrag.retrieval.retriever import Retriever
from specrag.types import Chunk
from tests.made_files import chunks
from tests.shelf_rig import OtherEmbedder, Rig, rig, visitor
from tests.stored import info
from tests.toys import WordEmbedder

ADA, BO = visitor("ada"), visitor("bo")
FERRY = "# Ferry\n\nThe ferry to the island leaves at nine in the morning from the north pier.\n"
MILL = "# Mill\n\nThe old mill grinds wheat and rye, and its miller is called Anselm. " * 30
ODD = "Die Fähre 🦊 fährt — täglich.\n\n\tx = 'a\\'b'\nنیم\u200cفاصله و ۱۲۳\n\n渡し船は九時に出ます。"
Part = bytes
Change = Callable[[dict[str, Part]], None]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Rig]:
    with rig(tmp_path / "one", max_collections=3, max_unpacked_mb=4, max_archive_files=20) as parts:
        yield parts


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Rig]:
    """Another machine with the same embedder."""
    with rig(tmp_path / "two", max_collections=3, max_unpacked_mb=4, max_archive_files=20) as parts:
        yield parts


@pytest.fixture
def packed(made: Rig, tmp_path: Path) -> Path:
    """A collection of Ada's in a file."""
    name = made.library.create(ADA, "Travel: N/S", "Boats & mills").name
    made.add(name, FERRY, "ferry.md")
    made.add(name, MILL, "mill.md")
    made.add(name, ODD, 'odd "name" 🦊.txt')
    return made.library.export(ADA, name, tmp_path)


def parts_of(path: Path) -> dict[str, Part]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def repacked(path: Path, change: Change, target: Path) -> Path:
    """The file with parts changed, as somebody who knows the format would do it."""
    parts = parts_of(path)
    change(parts)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return target


def long_chunks(identity: str) -> list[Chunk]:
    return [replace(chunk, text=chunk.text + "word " * 200) for chunk in chunks(identity, 100)]


def refused(made: Rig, path: Path) -> str:
    """Why a file is refused; checks that nothing of it is left."""
    before = made.store.infos()
    with pytest.raises(SpecragError) as error:
        made.library.import_(BO, path)
    assert made.store.infos() == before
    assert not list((made.folder / "originals").rglob("*")) or before
    sentence = str(error.value)
    assert "\n" not in sentence
    assert str(made.folder) not in sentence
    assert len(sentence) < 400
    return sentence


def test_what_comes_in_is_what_went_out(made: Rig, other: Rig, packed: Path) -> None:
    name = made.library.find(ADA, "Travel: N/S")
    shelf = other.library.import_(BO, packed)
    assert (shelf.title, shelf.description, shelf.documents) == ("Travel: N/S", "Boats & mills", 3)
    assert (shelf.stale, shelf.mismatch, shelf.read_only) == (0, False, False)
    assert other.store.documents(shelf.name) == made.store.documents(name)
    for document in made.store.documents(name):
        chunks = made.store.chunks(name, document.id)
        assert other.store.chunks(shelf.name, document.id) == chunks
        ids = [chunk.id for chunk in chunks]
        assert np.array_equal(made.store.vectors(name, ids), other.store.vectors(shelf.name, ids))
        original, copy = made.originals.path(name, document.id), other.originals.path(shelf.name, document.id)
        assert original is not None
        assert copy is not None
        assert copy.read_bytes() == original.read_bytes()


def test_questions_give_the_same_passages(made: Rig, other: Rig, packed: Path) -> None:
    name = made.library.find(ADA, "Travel: N/S")
    shelf = other.library.import_(BO, packed)
    for question in ("When does the ferry leave?", "Who is the miller?", "渡し船"):
        vector = WordEmbedder().embed([question])[0]
        assert other.store.query(shelf.name, vector, 5) == made.store.query(name, vector, 5)


def test_exported_again_it_is_the_same_file(other: Rig, packed: Path, tmp_path: Path) -> None:
    """Whatever cleans what comes in must not change what this program has written itself."""
    shelf = other.library.import_(BO, packed)
    again = other.library.export(BO, shelf.name, tmp_path / "again.zip")
    assert again.read_bytes() == packed.read_bytes()


def test_the_file_is_plain_and_says_what_it_is(packed: Path) -> None:
    parts = parts_of(packed)
    manifest = json.loads(parts["manifest.json"])
    assert packed.name == "Travel N S.specrag.zip"
    assert (manifest["schema"], manifest["title"]) == (SCHEMA, "Travel: N/S")
    assert manifest["embedder"] == WordEmbedder.fingerprint
    assert len(manifest["documents"]) == 3
    for document in manifest["documents"]:
        told = json.loads(parts[f"documents/{document}.json"])
        vectors = np.load(io.BytesIO(parts[f"vectors/{document}.npy"]), allow_pickle=False)
        assert vectors.shape == (len(told["chunks"]), WordEmbedder.dimension)
        assert told["info"]["id"] == document
        assert f"originals/{document}" in parts


def test_originals_stay_at_home_if_they_are_not_wanted(made: Rig, other: Rig, packed: Path) -> None:
    name = made.library.find(ADA, "Travel: N/S")
    bare = made.library.export(ADA, name, packed.with_name("bare.zip"), originals=False)
    assert not any(part.startswith("originals/") for part in parts_of(bare))
    shelf = other.library.import_(BO, bare)
    (document, *_) = other.store.documents(shelf.name)
    assert other.originals.path(shelf.name, document.id) is None


def test_another_embedder_embeds_the_chunks_anew(packed: Path, tmp_path: Path) -> None:
    """The bug: vectors of one model were compared with questions of another."""
    with rig(tmp_path / "three", embedder=OtherEmbedder()) as other:
        shelf = other.library.import_(BO, packed)
        assert not shelf.mismatch
        assert shelf.documents == 3
        retriever = Retriever(other.store, OtherEmbedder())
        passages = retriever.retrieve("When does the ferry leave?", shelf.name, 2).passages
        assert passages[0].source == "ferry.md"


def _saved(array: Any) -> Part:
    target = io.BytesIO()
    np.save(target, array, allow_pickle=True)
    return target.getvalue()


def _header(shape: tuple[int, int]) -> Part:
    target = io.BytesIO()
    np.lib.format.write_array_header_1_0(target, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return target.getvalue()


SPOILT: dict[str, Callable[[Vectors], Part]] = {
    "not a number": lambda rows: _saved(rows * np.nan),
    "long": lambda rows: _saved(rows * 3),
    "narrow": lambda rows: _saved(rows[:, :5]),
    "of another kind": lambda rows: _saved(rows.astype(np.float64)),
    "objects": lambda _: _saved(np.array([{"a": 1}], dtype=object)),
    "a huge header": lambda _: _header((10**12, 64)),
    "cut": lambda rows: _saved(rows)[:-4],
    "no array": lambda _: b"not an array at all",
    "nothing": lambda _: b"",
}


@pytest.mark.parametrize("spoilt", SPOILT)
def test_vectors_that_are_none_are_made_anew(other: Rig, packed: Path, tmp_path: Path, spoilt: str) -> None:
    """Numbers that are not finite or not of length one break every ranking they take part in."""

    def change(parts: dict[str, Part]) -> None:
        name = next(part for part in parts if part.startswith("vectors/"))
        parts[name] = SPOILT[spoilt](np.load(io.BytesIO(parts[name])))

    _answers(other, other.library.import_(BO, repacked(packed, change, tmp_path / "spoilt.zip")).name)


def test_vectors_that_are_missing_are_made(other: Rig, packed: Path, tmp_path: Path) -> None:
    def change(parts: dict[str, Part]) -> None:
        for name in [part for part in parts if part.startswith("vectors/")]:
            del parts[name]

    _answers(other, other.library.import_(BO, repacked(packed, change, tmp_path / "bare.zip")).name)


def _answers(made: Rig, name: str) -> None:
    """Whether a collection can be asked, over vectors that are sound."""
    retriever = Retriever(made.store, WordEmbedder())
    passages = retriever.retrieve("When does the ferry leave?", name, 2).passages
    assert passages[0].source == "ferry.md"
    for document in made.store.documents(name):
        ids = [chunk.id for chunk in made.store.chunks(name, document.id)]
        assert np.allclose(np.linalg.norm(made.store.vectors(name, ids), axis=1), 1)


def test_a_title_that_is_taken_gets_a_number(other: Rig, packed: Path) -> None:
    titles = [other.library.import_(BO, packed).title for _ in range(2)]
    assert titles == ["Travel: N/S", "Travel: N/S (2)"]
    assert other.library.import_(BO, packed, title="Mine").title == "Mine"
    assert other.library.import_(ADA, packed).title == "Travel: N/S"


def test_a_title_or_limit_refuses_before_anything_is_read(other: Rig, packed: Path) -> None:
    other.library.create(BO, "Mine")
    with pytest.raises(StoreError, match="already"):
        other.library.import_(BO, packed, title="mine")
    with pytest.raises(UsageError, match="1 to 80"):
        other.library.import_(BO, packed, title=" ")
    other.library.create(BO, "Two")
    other.library.create(BO, "Three")
    assert "There are 3 collections already" in refused(other, packed)


def test_whoever_cancels_keeps_nothing(other: Rig, packed: Path) -> None:
    seen: list[str] = []

    def progress(stage: str, _done: int, _total: int) -> None:
        seen.append(stage)

    with pytest.raises(DocumentError, match="cancelled") as stopped:
        other.library.import_(BO, packed, progress=progress, cancelled=lambda: seen[-1:] == ["importing"])
    assert stopped.value.reason == "cancelled"
    assert other.store.collections() == ()


def test_nobody_sees_a_collection_that_is_coming_in(other: Rig, packed: Path) -> None:
    """And one whose import was killed is swept a day later."""
    seen: list[int] = []

    def progress(stage: str, done: int, _total: int) -> None:
        if stage == "importing" and done == 1:
            seen.append(len(other.store.collections()))
            for who in (ADA, BO, OPERATOR):
                assert len(other.library.collections(who)) == 2
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        other.library.import_(BO, packed, progress=progress)
    assert seen == [1]
    assert other.store.collections() == ()
    other.store.ensure_collection(
        "c-0123456789ab", "x", labels={"owner": "import:c", "used_at": "2026-03-01"}
    )
    assert other.library.expire() == []
    other.clock.pass_(days=2)
    assert other.library.expire() == ["c-0123456789ab"]


def test_a_file_of_something_else_is_one_sentence(other: Rig, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7 " * 100)
    (tmp_path / "empty.zip").write_bytes(b"")
    with zipfile.ZipFile(tmp_path / "docs.zip", "w") as archive:
        archive.writestr("readme.md", "# Hello")
    assert "cut short or no collection" in refused(other, tmp_path / "a.pdf")
    assert "cut short or no collection" in refused(other, tmp_path / "empty.zip")
    assert "no collection of specrag" in refused(other, tmp_path / "docs.zip")
    assert "cannot be read" in refused(other, tmp_path / "missing.zip")
    assert "cannot be read" in refused(other, tmp_path)


def _manifest(**changes: Any) -> Change:
    def change(parts: dict[str, Part]) -> None:
        parts["manifest.json"] = json.dumps({**json.loads(parts["manifest.json"]), **changes}).encode()

    return change


def _document(change: Callable[[dict[str, Any]], None]) -> Change:
    def changed(parts: dict[str, Part]) -> None:
        name = next(part for part in parts if part.startswith("documents/"))
        told = json.loads(parts[name])
        change(told)
        parts[name] = json.dumps(told).encode()

    return changed


def _chunk(**changes: Any) -> Change:
    return _document(lambda told: told["chunks"][0].update(changes))


def _info(**changes: Any) -> Change:
    return _document(lambda told: told["info"].update(changes))


def _added(name: str, data: bytes = b"x") -> Change:
    return lambda parts: parts.update({name: data})


def _original(parts: dict[str, Part]) -> None:
    parts[next(part for part in parts if part.startswith("originals/"))] = b"<script>alert(1)</script>"


LIES: dict[str, tuple[Change, str]] = {
    "another schema": (_manifest(schema="specrag.collection/9"), "specrag.collection/1 can be imported"),
    "no list": (_manifest(documents="all"), "does not follow"),
    "a path as an id": (_manifest(documents=["../../etc/passwd"]), "list of its documents"),
    "an id twice": (_manifest(documents=["0" * 16] * 2), "list of its documents"),
    "a document that is not there": (_manifest(documents=["0" * 16]), "a document is missing"),
    "too many documents": (_manifest(documents=[f"{n:016x}" for n in range(21)]), "MAX_ARCHIVE_FILES"),
    "a part outside": (_added("../../evil.sh"), "does not belong there"),
    "an absolute part": (_added("/etc/cron.d/evil"), "does not belong there"),
    "an original of nothing": (_added("originals/" + "f" * 16), "does not belong there"),
    "another original": (_original, "is another file"),
    "no json": (_added("manifest.json", b"\xff{"), "does not follow"),
    "deep json": (_added("manifest.json", b"[" * 60_000), "does not follow"),
    "another document's id": (_info(id="0" * 16), "another id"),
    "a wrong count": (_info(chunks=7), "number of its chunks"),
    "a negative number": (_info(bytes=-1), "a number or a time"),
    "a number as text": (_info(pages="3"), "does not follow"),
    "no time": (_info(added_at="yesterday"), "a number or a time"),
    "too many pages": (_info(pages=10**6), "SPECRAG_MAX_PAGES"),
    "no chunks": (_document(lambda told: told.update(chunks=[])), "number of its chunks"),
    "a chunk of another": (_chunk(document_id="0" * 16), "another document"),
    "an id that is none": (_chunk(id="../x"), "another document"),
    "a chunk out of place": (_chunk(position=3), "out of place"),
    "a page before the first": (_chunk(page=0), "out of place"),
    "an empty chunk": (_chunk(text=" \u202e\n"), "empty or too long"),
    "a long chunk": (_chunk(text="x" * 30_000), "empty or too long"),
    "a gap with text": (_chunk(gap="secret"), "empty or too long"),
    "a bomb": (_added("originals/" + "f" * 16, b"0" * 8_000_000), "does not belong there"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_lies_is_one_sentence_and_leaves_nothing(
    other: Rig, packed: Path, tmp_path: Path, lie: str
) -> None:
    change, sentence = LIES[lie]
    assert sentence in refused(other, repacked(packed, change, tmp_path / "lie.zip"))
    assert not list((tmp_path / "two" / "originals").rglob("*"))


def test_a_bomb_is_counted_and_not_believed(other: Rig, packed: Path, tmp_path: Path) -> None:
    def change(parts: dict[str, Part]) -> None:
        parts[next(part for part in parts if part.startswith("documents/"))] = b" " * (64 * 2**20)

    bomb = repacked(packed, change, tmp_path / "bomb.zip")
    assert bomb.stat().st_size < 2**20
    tracemalloc.start()
    try:
        assert "MAX_UNPACKED_MB" in refused(other, bomb)
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    finally:
        tracemalloc.stop()


def _filled(item: bytes, count: int) -> Change:
    def change(parts: dict[str, Part]) -> None:
        name = next(part for part in parts if part.startswith("documents/"))
        told = json.loads(parts[name])
        head = json.dumps({"info": told["info"], "chunks": []}).encode()[:-2]
        parts[name] = head + b",".join([item] * count) + b"]}"

    return change


def _counted(item: bytes, count: int) -> Change:
    def change(parts: dict[str, Part]) -> None:
        told = json.loads(parts["manifest.json"])
        head = json.dumps({**told, "documents": []}).encode()
        parts["manifest.json"] = head.replace(b'"documents": []', b'"documents": [' + item * count + b"0]")

    return change


TINY = b'{"id":"a","document_id":"a","title":"","source":"","text":"a","position":0}'
HEAVY: dict[str, tuple[Change, str]] = {
    "chunks without anything": (_filled(b"{}", 150_000), "does not follow"),
    "many chunks without anything": (_filled(b"{}", 1_000_000), "MAX_CHARACTERS"),
    "numbers for chunks": (_filled(b"0", 3_000_000), "MAX_CHARACTERS"),
    "lists for chunks": (_filled(b"[]", 1_000_000), "a list too many"),
    "tiny chunks": (_filled(TINY, 200_000), "MAX_CHARACTERS"),
    "numbers for documents": (_counted(b"0,", 30_000), "does not follow"),
    "a long list of documents": (_counted(b"0,", 1_900_000), "MAX_ARCHIVE_FILES"),
}
LIMITED = """
import resource, sys
from pathlib import Path
from specrag.config import load_settings
from specrag.errors import DocumentError
from specrag.library.exchange_read import Package

path, home = sys.argv[1:]
settings = load_settings({}, home=Path(home), max_unpacked_mb=16, max_archive_files=20, max_characters=10_000_000)
before = resource.getrusage(resource.RUSAGE_SELF)
try:
    with Package(Path(path), settings) as package:
        list(package.documents())
except DocumentError as error:
    print(error)
after = resource.getrusage(resource.RUSAGE_SELF)
print((after.ru_maxrss - before.ru_maxrss) // 1024, after.ru_utime - before.ru_utime)
"""


@pytest.mark.parametrize("heavy", HEAVY)
def test_a_small_file_does_not_fill_the_memory(packed: Path, tmp_path: Path, heavy: str) -> None:
    """The bug: a file of 2 KB took three gigabytes and held up the whole program for twelve seconds."""
    change, sentence = HEAVY[heavy]
    path = repacked(packed, change, tmp_path / "heavy.zip")
    assert path.stat().st_size < 2**18
    command = [sys.executable, "-c", LIMITED, str(path), str(tmp_path)]
    said, used = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert sentence in said
    megabytes, seconds = map(float, used.split())
    assert megabytes < 250
    assert seconds < 5


def test_brackets_and_commas_of_a_text_are_no_structure(made: Rig, other: Rig, tmp_path: Path) -> None:
    """A guard against too much structure must not refuse program code."""
    code = """x = {"a\\\\": [[{}, {}, ""], [",", "\\""]]}\n""" * 300
    name = made.library.create(ADA, "Code").name
    made.add(name, code, "code.txt")
    shelf = other.library.import_(BO, made.library.export(ADA, name, tmp_path))
    assert shelf.documents == 1


def test_a_directory_of_a_million_parts_is_not_read(other: Rig, tmp_path: Path) -> None:
    """The directory is read into memory at once by whoever opens the archive; its size is looked at first."""
    entries = struct.pack("<4sHHLLL", b"PK\x05\x06", 0, 0, 0xFFFFFFFF, 3_000_000, 0) + b"\0\0"
    (tmp_path / "many.zip").write_bytes(b"\0" * 3_000_000 + entries)
    assert "MAX_ARCHIVE_FILES" in refused(other, tmp_path / "many.zip")


def test_an_encrypted_part_is_refused(other: Rig, packed: Path, tmp_path: Path) -> None:
    data = bytearray(packed.read_bytes())
    at = data.find(b"PK\x01\x02")
    data[at + 8] |= 1
    (tmp_path / "locked.zip").write_bytes(data)
    assert "encrypted" in refused(other, tmp_path / "locked.zip")


def test_a_file_that_was_cut_or_damaged_leaves_nothing(other: Rig, packed: Path, tmp_path: Path) -> None:
    """Wherever a bit flips: the file is refused, or what was damaged was not needed."""
    data, dice, broken = packed.read_bytes(), random.Random(7), tmp_path / "broken.zip"
    for _ in range(25):
        broken.write_bytes(data[: dice.randrange(1, len(data) - 1)])
        refused(other, broken)
    whole = 0
    for _ in range(60):
        flipped = bytearray(data)
        flipped[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        broken.write_bytes(flipped)
        with suppress(SpecragError):
            whole += other.library.delete(BO, other.library.import_(BO, broken).name) == 3
        assert other.store.collections() == ()
    assert whole < 30


def test_what_hides_in_texts_is_taken_out(other: Rig, packed: Path, tmp_path: Path) -> None:
    def change(told: dict[str, Any]) -> None:
        told["info"].update(title="Fer\u202ery\x00", source="../../a/\u202eb.md", media_type="<b>")
        told["chunks"][0].update(title="Another", text="The fer\x00ry leaves")

    shelf = other.library.import_(BO, repacked(packed, _document(change), tmp_path / "odd.zip"), title="Odd")
    (document,) = [item for item in other.store.documents(shelf.name) if item.source == "b.md"]
    assert (document.title, document.media_type) == ("Ferry", "")
    chunk = other.store.chunks(shelf.name, document.id)[0]
    assert (chunk.title, chunk.source, chunk.text) == ("Ferry", "b.md", "The ferry leaves")


def test_the_sample_can_be_taken_away_but_not_replaced(made: Rig, tmp_path: Path) -> None:
    made.add(SAMPLE, FERRY, "ferry.md")
    path = made.library.export(BO, SAMPLE, tmp_path)
    shelf = made.library.import_(BO, path)
    assert (shelf.title, shelf.read_only) == ("Sample (2)", False)


def test_an_empty_collection_and_a_bad_place_are_told(made: Rig, packed: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no documents"):
        made.library.export(BO, made.library.default(BO), tmp_path)
    name = made.library.find(ADA, "Travel: N/S")
    with pytest.raises(UsageError, match="choose another place"):
        made.library.export(ADA, name, tmp_path / "no" / "such" / "folder.zip")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == [packed.name]


def test_a_collection_that_changes_meanwhile_is_not_written(made: Rig, packed: Path) -> None:
    """Otherwise a file would hold chunks without the vectors that belong to them."""
    name = made.library.find(ADA, "Travel: N/S")
    (first, *_) = sorted(document.id for document in made.store.documents(name))

    def progress(done: int, _total: int) -> None:
        if done == 2:
            made.store.delete(name, first)

    packed.unlink()
    with pytest.raises(StoreError, match="changed while"):
        made.library.export(ADA, name, packed, progress=progress)
    assert not packed.exists()


def test_memory_does_not_grow_with_the_number_of_documents(made: Rig, tmp_path: Path) -> None:
    def peak(count: int) -> int:
        name = f"large-{count}"
        vectors = np.asarray(np.eye(64, dtype=np.float32)[np.zeros(100, dtype=int)])
        made.store.ensure_collection(name, WordEmbedder.fingerprint)
        for number in range(count):
            identity = f"{number:016x}"
            made.store.add(name, info(identity, 100), long_chunks(identity), vectors)
        tracemalloc.start()
        try:
            made.library.export(OPERATOR, name, tmp_path / f"{count}.zip")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(16) < 2 * peak(2)


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Travel: N/S", "Travel N S"),
        ("../../etc", "etc"),
        ("...", "collection"),
        ("文档 🦊", "文档"),
        ("x" * 80, "x" * 60),
        ("CON", "CON"),
    ],
)
def test_a_file_is_called_as_the_collection(title: str, name: str) -> None:
    assert file_name(title) == f"{name}.specrag.zip"
