"""Files that nobody should have to fear, made on the spot: too large, lying, hostile, or oddly named.

Each comes with what must become of it: `text`, or the reason of the refusal. For an archive the outcomes of
its files are joined by a plus sign. See `scripts/check_documents.py`.
"""

import io
import json
import random
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from specrag.config import Settings
from tests.made_files import docx, epub, pdf, pptx, with_member, xlsx, zipped

PARAGRAPH = "<w:p><w:r><w:t>The heron waits.</w:t></w:r></w:p>"
HERON = ("The heron waits",)
_MEGABYTE = 1_000_000
_PASSWORD = "open sesame"  # noqa: S105 - of a file that is made here


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A file and what must become of it."""

    path: Path
    name: str
    """What the visitor calls it, which may be no possible name of a file."""
    expected: tuple[str, ...]
    """Outcomes that are right."""
    must_contain: tuple[str, ...] = ()
    must_not_contain: tuple[str, ...] = ()
    password: str | None = None
    slow: bool = False
    """Whether embedding it takes long, so that it is read only where nothing is embedded."""


@dataclass(frozen=True, slots=True)
class _Made:
    name: str
    data: bytes
    expected: str
    must_contain: tuple[str, ...] = ()
    password: str | None = None
    slow: bool = False


def made(folder: Path, settings: Settings) -> list[Case]:
    """Write all hostile files to `folder`."""
    cases = []
    for number, item in enumerate((*_sizes(settings), *_containers(settings), *_liars(), *_names())):
        place = folder / f"{number:02d}"
        place.mkdir()
        possible = "/" not in item.name and len(item.name.encode()) <= 255  # noqa: PLR2004 - of all file systems
        path = place / (item.name if possible else "upload")
        path.write_bytes(item.data)
        cases.append(
            Case(
                path=path,
                name=item.name,
                expected=(item.expected,),
                must_contain=item.must_contain,
                password=item.password,
                slow=item.slow,
            )
        )
    return cases


def _sizes(settings: Settings) -> Iterator[_Made]:
    full = settings.max_file_mb * _MEGABYTE
    line = b"The heron waits at the weir until the water falls. \n"
    yield _Made("0 bytes.txt", b"", "empty_file")
    yield _Made("full size.txt", (line * (full // len(line) + 1))[:full], "too_large")
    wide = "鷺は堰で待つ。\n".encode()
    yield _Made("full size, wide.txt", wide * (full // len(wide)), "text", ("鷺は堰",), slow=True)
    yield _Made("one byte more.txt", b"a" * (full + 1), "too_large")
    pages = [f"The heron waits on page {number}." for number in range(settings.max_pages + 1)]
    yield _Made("all pages.pdf", pdf(*pages[:-1]), "text", (pages[-2],), slow=True)
    yield _Made("one page more.pdf", pdf(*pages), "too_large")
    rows = "".join(f"{row},heron {row},{row % 7}\n" for row in range(100_000))
    yield _Made("long.csv", f"Id,Bird,Eggs\n{rows}".encode(), "text", ("Bird: heron 99999",), slow=True)
    yield _Made("slides.pptx", pptx(*[("Heron", "waits")] * 40), "text", ("Heron waits",))


def _containers(settings: Settings) -> Iterator[_Made]:
    bomb = b"0" * ((settings.max_unpacked_mb + 1) * _MEGABYTE)
    yield _Made("bomb.zip", zipped({"bomb.txt": bomb}), "too_large")
    yield _Made("bomb.docx", with_member(docx(PARAGRAPH), "word/more.xml", b"<a>" + bomb), "too_large")
    yield _Made("bomb.xlsx", with_member(xlsx({"A": [["x"]]}), "xl/more.xml", b"<a>" + bomb), "too_large")
    yield _Made("lying bomb.zip", _lying(bomb), "too_large")
    many = {f"{number}.txt": "x" for number in range(settings.max_archive_files + 1)}
    yield _Made("many.zip", zipped(many), "too_large")
    inner = zipped({"a.txt": "x"})
    yield _Made("zip in zip.zip", zipped({"in.zip": inner, "a.txt": HERON[0]}), "text+unsupported", HERON)
    tricks = {
        "../../../tmp/out.txt": "climbs", "/etc/passwd": "absolute", "..\\..\\out.txt": "backwards",
        "n" * 300 + ".txt": "endless", "c\0d.txt": "nul", "a/./b//c.txt": "dots", "\u202egnp.txt": "turned",
    }  # fmt: skip
    yield _Made("path tricks.zip", zipped(tricks), "text", ("climbs", "absolute", "endless"))
    yield _Made("hidden.zip", zipped({".DS_Store": "x", "__MACOSX/a.txt": "x"}), "no_files")
    plain = zipped({"a.txt": "x"})
    flagged = plain.replace(b"PK\x01\x02\x14\x03\x14\0\0", b"PK\x01\x02\x14\x03\x14\0\1")
    yield _Made("encrypted.zip", flagged, "encrypted")
    yield _Made("cut.zip", plain[:30], "corrupt")


def _lying(content: bytes) -> bytes:
    """A ZIP whose headers state a size and checksum of ten bytes."""
    data = zipped({"small.txt": content})
    for true, stated in (
        (struct.pack("<I", len(content)), struct.pack("<I", 10)),
        (struct.pack("<I", zlib.crc32(content)), struct.pack("<I", zlib.crc32(content[:10]))),
    ):
        data = data.replace(true, stated)
    return data


def _liars() -> Iterator[_Made]:
    yield _Made("setup.exe.pdf", b"MZ\x90\0\x03\0\0\0" + bytes(2000), "type_mismatch")
    book = xlsx({"A": [["Bird", "Eggs"], ["Heron", 4]]})
    yield _Made("workbook.csv", book, "text", ("Bird: Heron; Eggs: 4",))
    yield _Made("web page.pdf", b"<!doctype html><p>The heron waits.</p>", "text", HERON)
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    laughs = f'<!DOCTYPE a [<!ENTITY e0 "ha">{entities}]><a>&e9;</a>'
    yield _Made("entity bomb.docx", with_member(docx(PARAGRAPH), "word/document.xml", laughs), "corrupt")
    yield _Made("no spine.epub", epub(("Heron", "waits"), spine=False), "no_pages")
    yield _Made("letter.rtf", rb"{\rtf1\ansi The heron waits}", "unsupported")
    yield _Made("cut.docx", docx(PARAGRAPH)[:300], "corrupt")
    yield _Made("noise.txt", _noise(5000), "type_mismatch")
    yield _Made("deep.json", b"[" * 200_000, "text")
    yield _Made("deep.html", b"<html>" + b"<div>" * 100_000 + b"The heron waits.", "text", HERON)
    yield _Made("nested.json", json.dumps({"bird": {"name": HERON[0]}}).encode(), "text", HERON)
    secret = _locked(docx(PARAGRAPH))
    yield _Made("locked.docx", secret, "encrypted")
    yield _Made("locked, with its password.docx", secret, "text", HERON, password=_PASSWORD)


def _locked(data: bytes) -> bytes:
    from msoffcrypto.format.ooxml import OOXMLFile

    padded = with_member(data, "word/media/a.png", b"\x89PNG" + _noise(9000))
    locked = io.BytesIO()
    OOXMLFile(io.BytesIO(padded)).encrypt(_PASSWORD, locked)
    return locked.getvalue()


def _noise(size: int) -> bytes:
    return random.Random(0).randbytes(size)  # noqa: S311 - noise, no secret


def _names() -> Iterator[_Made]:
    """Each with a text of its own, because the same text twice is a duplicate."""
    names = (
        "quo\"te's <b>.txt", "😀 héron 鷺.txt", "../../escape.txt", "n" * 300 + ".txt",
        "invoice\u202efdp.txt", "bell\x07 and\nline.txt", "-rf.txt", "$(touch x) `id`.txt",
        " .txt", "CON.txt", "name without extension",
    )  # fmt: skip
    for number, name in enumerate(names):
        yield _Made(name, f"The heron waits, for the {number}th time.".encode(), "text", HERON)
