"""Archives from strangers: no name becomes a path, no stated size is believed, nothing nests."""

import io
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from specrag.config import load_settings
from specrag.errors import DocumentError
from specrag.ingest.archive import Member, is_archive, unpack
from specrag.ingest.loaders import read
from tests.made_files import docx, epub, ods, pptx, xlsx, zipped


def unpacked(tmp_path: Path, data: bytes, name: str = "files.zip", **settings: Any) -> list[Member]:
    path, into = tmp_path / "upload", tmp_path / "into"
    path.write_bytes(data)
    into.mkdir()
    return unpack(path, name, load_settings(**settings), into)


def reason(tmp_path: Path, data: bytes, **settings: Any) -> str:
    with pytest.raises(DocumentError, match=r"^files\.zip .*\.$") as caught:
        unpacked(tmp_path, data, **settings)
    return caught.value.reason


def test_members_are_files_under_numbers_with_the_archive_in_their_names(tmp_path: Path) -> None:
    members = unpacked(tmp_path, zipped({"a.txt": "one", "in/b.md": "two", "in/": ""}))
    assert [(member.name, member.path.read_text()) for member in members] == [
        ("files.zip/a.txt", "one"),
        ("files.zip/in/b.md", "two"),
    ]
    assert sorted(path.name for path in (tmp_path / "into").iterdir()) == ["00001", "00002"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/cron.d/x", "files.zip/etc/cron.d/x"),
        ("/etc/passwd", "files.zip/etc/passwd"),
        ("C:\\Windows\\x.txt", "files.zip/C:/Windows/x.txt"),
        ("..\\..\\x.txt", "files.zip/x.txt"),
        ("x" * 300 + ".txt", None),
        ("a\u202etxt.exe", "files.zip/atxt.exe"),
        ("quo\"te's<b>.txt", "files.zip/quo\"te's<b>.txt"),
        ("😀 名.txt", "files.zip/😀 名.txt"),
        ("a\nb\x07.txt", "files.zip/ab.txt"),
    ],
)
def test_a_members_name_is_shown_and_never_a_path(tmp_path: Path, name: str, shown: str | None) -> None:
    before = set(tmp_path.parent.rglob("*"))
    (member,) = unpacked(tmp_path, zipped({name: "text"}))
    assert member.path.parent == tmp_path / "into"
    assert len(member.name) <= 255
    assert shown is None or member.name == shown
    made = {path for path in set(tmp_path.parent.rglob("*")) - before if path.is_file()}
    assert made == {tmp_path / "upload", member.path}


def test_names_in_utf8_without_the_flag_are_read(tmp_path: Path) -> None:
    data = zipped({"Größe.txt": "x"}).replace(b"\x00\x08", b"\x00\x00")  # the flag of both headers
    (member,) = unpacked(tmp_path, data)
    assert member.name == "files.zip/Größe.txt"


def test_two_members_of_one_name_are_told_apart(tmp_path: Path) -> None:
    data = zipped({"a.txt": "one", "b.txt": "two"}).replace(b"b.txt", b"a.txt")
    members = unpacked(tmp_path, data)
    assert [(member.name, member.path.read_text()) for member in members] == [
        ("files.zip/a.txt", "one"),
        ("files.zip/a (2).txt", "two"),
    ]


def test_links_hidden_files_and_those_of_systems_are_left_out(tmp_path: Path) -> None:
    buffer = io.BytesIO(zipped({"__MACOSX/a.txt": "x", ".git/b": "x", "in/.DS_Store": "x", "Thumbs.db": "x"}))
    link = zipfile.ZipInfo("link.txt")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    assert reason(tmp_path, buffer.getvalue()) == "no_files"


def test_an_archive_in_an_archive_is_one_file_that_says_so(tmp_path: Path) -> None:
    (member,) = unpacked(tmp_path, zipped({"inner.zip": zipped({"a.txt": "x"})}))
    with pytest.raises(DocumentError, match="inside another one") as caught:
        read(member.path, member.name, load_settings())
    assert caught.value.reason == "unsupported"


def test_bytes_are_counted_and_not_believed(tmp_path: Path) -> None:
    """A header that says ten bytes, with the checksum of ten bytes, over five megabytes."""
    honest = zipped({"a.txt": "a" * 5_000_000})
    size, crc = struct.pack("<I", 5_000_000), struct.pack("<I", zlib.crc32(b"a" * 5_000_000))
    lying = honest.replace(size, struct.pack("<I", 10)).replace(crc, struct.pack("<I", zlib.crc32(b"a" * 10)))
    assert len(lying) < 10_000
    assert reason(tmp_path, lying, max_unpacked_mb=1) == "too_large"
    assert sum(path.stat().st_size for path in (tmp_path / "into").iterdir()) <= 1_000_000


def test_the_sum_of_all_members_counts(tmp_path: Path) -> None:
    data = zipped({f"{number}.txt": "a" * 300_000 for number in range(4)})
    assert reason(tmp_path, data, max_unpacked_mb=1) == "too_large"


def test_too_many_files_encrypted_ones_and_damage_are_refused(tmp_path: Path) -> None:
    many = zipped({f"{number}.txt": "a" for number in range(4)})
    path = tmp_path / "made"
    for place, (data, expected) in enumerate([
        (many, "too_large"),
        (zipped({"a.txt": "a"}).replace(b"PK\x01\x02\x14\x03\x14\0\0", b"PK\x01\x02\x14\x03\x14\0\1"), "encrypted"),
        (zipped({}), "no_files"),
        (many[:200], "corrupt"),
        (zipped({"a.txt": "abc" * 99}).replace(b"\x4b\x4c", b"\x4b\x4d", 1)[:-1], "corrupt"),
    ]):  # fmt: skip
        folder = path / str(place)
        folder.mkdir(parents=True)
        assert reason(folder, data, max_archive_files=3) == expected


def test_a_document_that_is_packed_is_no_archive(tmp_path: Path) -> None:
    made = {
        "a.docx": docx("<w:p/>"), "a.xlsx": xlsx({"A": [["x"]]}), "a.pptx": pptx(("a", "b")), "a.ods": ods([["x"]]),
        "a.epub": epub(("a", "b")), "a.txt": b"text", "b.zip": b"text", "half.docx": docx("<w:p/>")[:100],
    }  # fmt: skip
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
        assert not is_archive(tmp_path / name, "called.docx"), name
    archives = {
        "a.zip": zipped({"word/a.txt": "x"}),
        "none.zip": zipped({}),
        "half.zip": zipped({"a": "x"})[:40],
    }
    for name, data in archives.items():
        (tmp_path / name).write_bytes(data)
        assert is_archive(tmp_path / name, name), name
    assert not is_archive(tmp_path / "gone", "gone.zip")
