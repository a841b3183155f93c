"""A law for every format: whatever bytes come, there is a document or a sentence, and soon."""

import csv
import io
import random
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specrag.config import load_settings
from specrag.errors import DocumentError
from specrag.ingest.archive import is_archive, unpack
from specrag.ingest.loaders import read
from tests.made_files import core, docx, epub, ods, pdf, pptx, with_member, xlsx, zipped

PARAGRAPH = "<w:p><w:pPr><w:pStyle w:val='Heading1'/></w:pPr><w:r><w:t>Read me.</w:t></w:r></w:p>"
TABLE = f"<w:tbl><w:tr><w:tc>{PARAGRAPH}</w:tc><w:tc><w:p/></w:tc></w:tr></w:tbl>"
MADE: dict[str, bytes] = {
    "a.pdf": pdf("One page.", "Another."),
    "a.docx": with_member(
        docx(PARAGRAPH + TABLE), "docProps/core.xml", core(title="x", modified="2020-01-01")
    ),
    "a.pptx": pptx(("Title", "Text"), notes="Notes"),
    "a.xlsx": xlsx({"A": [["Name", "Age"], ["Anna", 3.5]], "B": [["x"]]}),
    "a.ods": ods([["Name", "Age"], ["Anna", "3"]]),
    "a.csv": b'Name;Age\r\n"Anna";3\r\nBen;"4,5"\r\n',
    "a.html": b"<html><head><title>T</title></head><body><h1>H</h1><table><tr><td rowspan=2>a</table></body></html>",
    "a.md": b"---\ntitle: T\n---\n# H\n\n<table><tr><td>a</td></tr></table>\n\n```\ncode\n```\n",
    "a.epub": epub(("One", "Text"), contents='<ol><li><a href="c0.xhtml">x</a></li></ol>'),
    "a.json": b'{"a": [1, {"b": "c"}], "d": null}',
    "a.jsonl": b'{"a": 1}\n{"a": {"b": 2}}\n',
    "a.txt": "Größe: 東京\r\n".encode("cp932", "ignore"),
    "a.zip": zipped({"a.txt": "text", "b/c.md": "# H"}),
}
SETTINGS = load_settings(max_file_mb=1, max_unpacked_mb=2, max_characters=100_000, ocr=False)
FEW = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def ends_well(data: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder, suppress(DocumentError):
        path = Path(folder) / "upload"
        path.write_bytes(data)
        if is_archive(path, name):
            for member in unpack(path, name, SETTINGS, Path(folder)):
                ends_well(member.path.read_bytes(), member.name)
        else:
            document = read(path, name, SETTINGS)
            assert any(page.text.strip() for page in document.pages)


@pytest.mark.parametrize("name", MADE)
@FEW
@given(seed=st.integers(0, 2**32))
def test_flipped_bits_and_cut_ends_are_survived(name: str, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(MADE[name])
    for _ in range(chance.randint(1, 12)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    ends_well(bytes(data[: chance.choice([len(data), chance.randrange(1, len(data))])]), name)


@pytest.mark.parametrize("name", [name for name in MADE if name.endswith(("x", "s", "epub"))])
@FEW
@given(seed=st.integers(0, 2**32))
def test_damage_inside_a_whole_container_is_survived(name: str, seed: int) -> None:
    """Flipped bits of a ZIP mostly end at its checksums; this damage gets through to the parsers."""
    chance = random.Random(seed)
    with zipfile.ZipFile(io.BytesIO(MADE[name])) as archive:
        members: dict[str, bytes] = {item: archive.read(item) for item in archive.namelist()}
    victim = chance.choice(sorted(members))
    data = bytearray(members[victim])
    damage: list[Callable[[], object]] = [
        lambda: data.__setitem__(slice(chance.randrange(len(data) + 1), None), b""),
        lambda: data.__setitem__(slice(0, chance.randrange(len(data) + 1)), b""),
        lambda: data.__setitem__(chance.randrange(len(data)), chance.randrange(256)),
        lambda: members.pop(victim),
        lambda: data.__setitem__(slice(None), data.replace(b"1", b"999999999")),
        lambda: data.__setitem__(slice(None), data.replace(b'"', b"", 1)),
        lambda: data.__setitem__(slice(None), data.replace(b"Target=", b"Targe=")),
    ]
    chance.choice(damage if data else damage[3:])()
    if victim in members:
        members[victim] = bytes(data)
    ends_well(zipped(members), name)


@FEW
@given(data=st.binary(min_size=1, max_size=400), name=st.sampled_from(sorted(MADE)))
def test_random_bytes_are_survived_under_any_name(data: bytes, name: str) -> None:
    ends_well(data, name)


@FEW
@given(
    rows=st.lists(st.lists(st.text(max_size=8), max_size=4), max_size=6),
    dialect=st.sampled_from(["excel", "unix"]),
)
def test_every_cell_of_a_table_is_found_in_its_text(
    tmp_path: Path, rows: list[list[str]], dialect: str
) -> None:
    plain = [["".join(char for char in cell if char.isalnum()) for cell in row] for row in rows]
    buffer = io.StringIO()
    csv.writer(buffer, dialect).writerows(plain)
    path = tmp_path / "upload"
    path.write_text(f"\ufeff{buffer.getvalue()}", encoding="utf-8")
    text = ""
    with suppress(DocumentError):
        text = read(path, "a.csv", SETTINGS).pages[0].text
    assert all(unicodedata.normalize("NFC", cell) in text for row in plain for cell in row)
