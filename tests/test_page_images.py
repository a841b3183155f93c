"""A passage is marked where it stands on the picture of its page: all of its ink, and not the whole page."""

import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from specrag.config import load_settings
from specrag.errors import DocumentError
from specrag.ingest.base import Box, PageImage
from specrag.ingest.process.reading import ReadingProcess
from specrag.ingest.readers.pdf import read_pdf
from tests.made_pdfs import MadePage, column, made_pdf

DARK = 128
LEFT = "The mill stands by the old river and\ngrinds rye for the whole of the val-\nley, as it has done since the year\nof the great flood."
RIGHT = (
    "The weir above it holds the water\nback until the miller opens a gate\nin the morning of a working day."
)


@pytest.fixture(scope="module")
def reading() -> Iterator[ReadingProcess]:
    with ReadingProcess(load_settings()) as process:
        yield process


def picture(reading: ReadingProcess, path: Path, number: int = 1, **options: Any) -> PageImage:
    return reading.page_image(path, number, **options)


def pixels(image: PageImage) -> Any:
    with Image.open(io.BytesIO(image.data)) as opened:
        assert opened.size == (image.width, image.height)
        assert Image.MIME[str(opened.format)] == image.media_type
        return np.asarray(opened.convert("L"))


def inside(image: PageImage, boxes: Sequence[Box]) -> Any:
    """Which pixels lie in a box."""
    mask = np.zeros((image.height, image.width), dtype=bool)
    for box in boxes:
        left, right = box.left * image.width, (box.left + box.width) * image.width
        top, bottom = box.top * image.height, (box.top + box.height) * image.height
        mask[int(top) : int(np.ceil(bottom)), int(left) : int(np.ceil(right))] = True
    return mask


def saved(folder: Path, *pages: MadePage) -> Path:
    path = folder / "upload"
    path.write_bytes(made_pdf(*pages))
    return path


def text_of(path: Path, number: int = 1, password: str | None = None) -> str:
    content = read_pdf(
        path.read_bytes(),
        "a.pdf",
        max_pages=10,
        max_characters=100_000,
        password=password,
        on_page=lambda _done, _total: None,
        ocr=False,
    )
    return content.pages[number - 1].text


@pytest.mark.parametrize(
    ("rotate", "turn", "start", "step", "elsewhere"),
    [
        (0, "1 0 0 1", (60, 700), (0, -14), (60, 400)),
        (90, "0 1 -1 0", (100, 320), (14, 0), (300, 320)),
        (180, "-1 0 0 -1", (380, 400), (0, 14), (380, 700)),
        (270, "0 -1 1 0", (300, 780), (-14, 0), (100, 780)),
    ],
)
@pytest.mark.parametrize("crop", [(0, 0, 595, 842), (40, 300, 400, 800)])
def test_the_boxes_hold_the_ink_of_the_passage_and_no_other(
    reading: ReadingProcess,
    tmp_path: Path,
    *,
    rotate: int,
    turn: str,
    start: tuple[int, int],
    step: tuple[int, int],
    elsewhere: tuple[int, int],
    crop: tuple[float, float, float, float],
) -> None:
    """Marks of turned and cropped pages lay beside the words, or outside of the picture."""
    texts = ["Of all the words on this page", "only these are wanted,", "and no more"]
    mine = [
        (float(start[0] + row * step[0]), float(start[1] + row * step[1]), text)
        for row, text in enumerate(texts)
    ]
    other = [(float(elsewhere[0]), float(elsewhere[1]), "Nothing that anybody looks for.")]
    made = {"rotate": rotate, "crop": crop, "turn": turn}
    path = saved(tmp_path, MadePage(lines=mine + other, **made))  # type: ignore[arg-type]
    image = picture(reading, path, passage="Of all the words on this page only these are wanted, and no more")
    alone = picture(reading, saved(tmp_path, MadePage(lines=mine, **made)))  # type: ignore[arg-type]
    ink, mask = pixels(alone) < DARK, inside(image, image.passage)
    assert (ink & mask).sum() > 0.99 * ink.sum() > 100
    assert (pixels(image)[mask] < DARK).sum() < 1.02 * ink.sum()
    assert mask.mean() < 0.1
    assert len(image.passage) == 3


def test_two_columns_and_cut_words_are_found(reading: ReadingProcess, tmp_path: Path) -> None:
    """The passage says "valley", the page "val-" and "ley"."""
    path = saved(tmp_path, MadePage(lines=column(50, 760, LEFT) + column(320, 760, RIGHT)))
    text = text_of(path)
    assert "the whole of the valley, as" in text
    image = picture(reading, path, passage=text, evidence=["grinds rye for the whole of the valley, as it"])
    assert len(image.passage) == 7
    assert len(image.evidence) == 2
    ink = pixels(image) < DARK
    assert (ink & inside(image, image.passage)).sum() > 0.97 * ink.sum()
    assert all(box.left < 0.5 and box.left + box.width < 0.53 for box in image.passage[:4])
    assert all(box.left > 0.5 for box in image.passage[4:])
    covered = inside(image, image.passage)
    assert (covered & inside(image, image.evidence)).sum() > 0.9 * inside(image, image.evidence).sum()


def test_evidence_is_marked_within_the_passage_where_it_stands_twice(
    reading: ReadingProcess, tmp_path: Path
) -> None:
    lines = [
        (50.0, 780.0, "It is open."),
        (50.0, 500.0, "In summer. It is open."),
        (50.0, 200.0, "It is open."),
    ]
    path = saved(tmp_path, MadePage(lines=lines))
    image = picture(reading, path, passage="In summer. It is open.", evidence=["It is open."])
    assert len(image.evidence) == 1
    assert 0.3 < image.evidence[0].top < 0.5


def test_a_passage_is_found_although_a_part_of_it_was_read_otherwise(
    reading: ReadingProcess, tmp_path: Path
) -> None:
    path = saved(tmp_path, MadePage(lines=column(50, 760, LEFT)))
    image = picture(reading, path, passage=text_of(path).replace("whole", "entire"))
    assert len(image.passage) == 4


def test_what_is_not_on_the_page_has_no_boxes(reading: ReadingProcess, tmp_path: Path) -> None:
    path = saved(tmp_path, MadePage(lines=column(50, 760, LEFT)))
    image = picture(reading, path, passage="A wholly different text.", evidence=["Nor this.", ""])
    assert (image.passage, image.evidence) == ((), ())


@pytest.mark.parametrize(
    ("file", "password"),
    [
        ("pdf-two-column-latex.pdf", None),
        ("pdf-encrypted-user-password.pdf", "openpassword"),
        ("pdf-encrypted-empty-user-password.pdf", None),
        ("pdf-arabic-rtl.pdf", None),
        ("pdf-multilingual.pdf", None),
        ("pdf-ligatures.pdf", None),
        ("pdf-form-filled.pdf", None),
    ],
)
def test_the_text_of_real_pages_is_found_on_them(
    reading: ReadingProcess, shared_data: Path, file: str, password: str | None
) -> None:
    path = shared_data / "docs" / file
    image = picture(reading, path, passage=text_of(path, password=password), password=password)
    ink = pixels(image) < DARK
    rules = 0.5 if file == "pdf-form-filled.pdf" else 0.95  # a form also has lines
    assert (ink & inside(image, image.passage)).sum() > rules * ink.sum()
    assert inside(image, image.passage).mean() < 0.6 or file == "pdf-ligatures.pdf"  # a page of one line


def test_a_password_is_needed_for_the_picture_too(reading: ReadingProcess, shared_data: Path) -> None:
    with pytest.raises(DocumentError, match="protected by a password") as caught:
        picture(reading, shared_data / "docs" / "pdf-encrypted-user-password.pdf")
    assert caught.value.reason == "encrypted"


def test_a_bomb_ends_in_a_sentence_or_a_picture(
    reading: ReadingProcess, shared_data: Path, tmp_path: Path
) -> None:
    """Two megabytes of file are a gigabyte of grey pixels, and 120 kB are a hundred gigabytes of JBIG2."""
    side = 40_000
    packer = zlib.compressobj(9)
    row = packer.compress(bytes(side))
    bomb = MadePage(lines=[(50, 700, "BOOM")], picture=b"", picture_size=(side, side))
    assert isinstance(row, bytes)
    with pytest.raises(DocumentError, match=r"Page 1 holds pictures that are too large"):
        picture(reading, saved(tmp_path, bomb))
    image = picture(reading, shared_data / "docs" / "pdf-jbig2-bomb.pdf", passage="GIANT JBIG2 BOMB")
    assert len(image.passage) >= 1


@pytest.mark.parametrize(("asked", "given"), [(1, 100), (640, 640), (100_000, 2500)])
def test_the_picture_is_as_wide_as_wanted_within_reason(
    reading: ReadingProcess, tmp_path: Path, asked: int, given: int
) -> None:
    image = picture(reading, saved(tmp_path, MadePage()), width=asked)
    assert abs(image.width - given) <= 1
    assert abs(image.height / image.width - 842 / 595) < 0.02


def test_a_page_that_is_not_there_and_a_file_that_is_no_pdf_are_said(
    reading: ReadingProcess, tmp_path: Path
) -> None:
    path = saved(tmp_path, MadePage())
    with pytest.raises(DocumentError, match="has no page 2; it has 1"):
        picture(reading, path, 2)
    path.write_bytes(b"no PDF")
    with pytest.raises(DocumentError, match="damaged or cut off"):
        picture(reading, path)
