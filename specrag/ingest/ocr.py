"""Text of a picture by OCR, where `requirements-ocr.txt` is installed; its models come with the package.

One thread, because reading stands behind answering; and no download, because whoever reads a file offline
would else find out only now that something is missing.
"""

import importlib
import importlib.util
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from typing import Any

from specrag.ingest.readers.layout import Line, in_order, text_of_lines

OCR_PIXELS = 2000
"""Of the longer side of a page that is drawn for OCR, which makes larger ones smaller again."""
_ENCODING = "OCR"
_PARAMETERS = {
    "Global.log_level": "error",
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    "Rec.rec_batch_num": 1,  # in a batch the short lines are made as long as the longest
}


@cache
def available() -> bool:
    """Whether OCR is installed."""
    return all(importlib.util.find_spec(name) for name in ("rapidocr", "onnxruntime"))


def recognised(picture: Any) -> str:
    """The text in a picture, in the order of reading, with its line breaks.

    Args:
        picture: pixels as an array of height, width and the colours blue, green and red.
    """
    return text_of_lines(_found(picture))


def lines_of(picture: Any) -> list[Line]:
    """The same as single lines with their places."""
    return [line for block in in_order(_found(picture)) for row in block for line in row]


def warning(encoding: str | None) -> str | None:
    """A sentence about a document of which pages were read by OCR, as its `encoding` says."""
    if encoding is None or not encoding.startswith(_ENCODING):
        return None
    pages = encoding.removeprefix(_ENCODING).strip(" ()")
    return f"Read by OCR, which makes mistakes: {pages}; check names and figures on the page itself."


def encoding(pages: Sequence[int]) -> str | None:
    """What a document says of its letters if these pages were read by OCR."""
    if not pages:
        return None
    return f"{_ENCODING} (page{'s' if len(pages) > 1 else ''} {listed(pages)})"


def listed(numbers: Sequence[int]) -> str:
    """Ascending numbers as a person writes them: "1, 3-5"."""
    runs = (
        [number for _, number in run]
        for _, run in groupby(enumerate(numbers), lambda place: place[1] - place[0])
    )
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _found(picture: Any) -> list[Line]:
    found = _engine()(picture)
    if found.txts is None or found.boxes is None:
        return []
    return [
        Line(
            text=text.strip(),
            left=float(box[:, 0].min()),
            top=float(box[:, 1].min()),
            right=float(box[:, 0].max()),
            bottom=float(box[:, 1].max()),
        )
        for text, box in zip(found.txts, found.boxes, strict=True)
    ]


@cache
def _engine() -> Any:
    return importlib.import_module("rapidocr").RapidOCR(params=_PARAMETERS)
