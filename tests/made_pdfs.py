"""PDFs made on the spot with what the plain ones of `made_files` lack: rotation, crops, outlines, pictures, dates."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class MadePage:
    """Text at places, counted from the lower left corner of a page of A4, in points."""

    lines: Sequence[tuple[float, float, str]] = ()
    rotate: int = 0
    crop: tuple[float, float, float, float] = (0, 0, 595, 842)
    picture: bytes | None = None
    """Grey pixels that fill the page."""
    picture_size: tuple[int, int] = (0, 0)
    size: float = 11
    turn: str = "1 0 0 1"
    """Matrix of the text: "0 1 -1 0" for lines that go up."""
    outline: Sequence[str] = field(default_factory=tuple)
    """Entries of the outline that point here."""


def column(left: float, top: float, text: str, leading: float = 14) -> list[tuple[float, float, str]]:
    """Lines one below the other."""
    return [(left, top - leading * number, line) for number, line in enumerate(text.splitlines())]


def made_pdf(*pages: MadePage, info: str = "") -> bytes:
    """A PDF of these pages; `info` is the inside of its information dictionary."""
    objects: dict[int, bytes] = {
        3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    }
    kids = [10 + 3 * index for index in range(len(pages))]
    for number, page in zip(kids, pages, strict=True):
        objects |= _page(number, page)
    entries = [(title, kid) for kid, page in zip(kids, pages, strict=True) for title in page.outline]
    objects |= _outline(entries)
    opening = " /Outlines 4 0 R" if entries else ""
    objects[1] = f"<< /Type /Catalog /Pages 2 0 R{opening} >>".encode()
    references = " ".join(f"{kid} 0 R" for kid in kids)
    objects[2] = f"<< /Type /Pages /Kids [{references}] /Count {len(pages)} >>".encode()
    objects[5] = f"<< {info} >>".encode("latin-1")
    return _file(objects)


def _page(number: int, page: MadePage) -> dict[int, bytes]:
    shown = "".join(
        f"BT /F1 {page.size} Tf {page.turn} {x} {y} Tm ({text}) Tj ET\n" for x, y, text in page.lines
    )
    picture = f"q 595 0 0 842 0 0 cm /P Do Q\n{shown}" if page.picture is not None else shown
    crop = " ".join(map(str, page.crop))
    resources = f"<< /Font << /F1 3 0 R >> /XObject << /P {number + 2} 0 R >> >>"
    dictionary = (
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /CropBox [{crop}] /Rotate {page.rotate}"
        f" /Contents {number + 1} 0 R /Resources {resources} >>"
    )
    width, height = page.picture_size
    pixels = zlib.compress(page.picture or b"", 9)
    image = (
        f"<< /Type /XObject /Subtype /Image /Width {width} /Height {height} /ColorSpace /DeviceGray"
        f" /BitsPerComponent 8 /Filter /FlateDecode /Length {len(pixels)} >>"
    )
    return {
        number: dictionary.encode(),
        number + 1: _stream(f"<< /Length {len(picture)} >>", picture.encode("latin-1")),
        number + 2: _stream(image, pixels),
    }


def _outline(entries: Sequence[tuple[str, int]]) -> dict[int, bytes]:
    first = 10_000
    last = first + len(entries) - 1
    made = {4: f"<< /Type /Outlines /First {first} 0 R /Last {last} 0 R /Count {len(entries)} >>".encode()}
    for number, (title, kid) in enumerate(entries, start=first):
        following = f" /Next {number + 1} 0 R" if number < last else ""
        made[number] = f"<< /Title ({title}) /Parent 4 0 R /Dest [{kid} 0 R /Fit]{following} >>".encode(
            "latin-1"
        )
    return made


def _stream(dictionary: str, data: bytes) -> bytes:
    return dictionary.encode() + b"\nstream\n" + data + b"\nendstream"


def _file(objects: dict[int, bytes]) -> bytes:
    body = b"%PDF-1.7\n"
    table = ""
    for number, item in sorted(objects.items()):
        table += f"{number} 1\n{len(body):010d} 00000 n \n"
        body += f"{number} 0 obj\n".encode() + item + b"\nendobj\n"
    trailer = (
        f"trailer << /Size {max(objects) + 1} /Root 1 0 R /Info 5 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    )
    return body + f"xref\n0 1\n0000000000 65535 f \n{table}{trailer}".encode()
