"""Text of a picture by OCR, where `requirements-ocr.txt` is installed; its models come with the package.

One thread, because reading stands behind answering; and no download, because whoever reads a file offline
would else find out only now that something is missing.
"""

import importlib
import importlib.util
from functools import cache
from typing import Any

from specrag.ingest.readers.layout import Line, in_order

_PARAMETERS = {
    "Global.log_level": "error",
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
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
    found = _engine()(picture)
    if found.txts is None or found.boxes is None:
        return ""
    return in_order(
        [
            Line(
                text=text.strip(),
                left=float(box[:, 0].min()),
                top=float(box[:, 1].min()),
                right=float(box[:, 0].max()),
                bottom=float(box[:, 1].max()),
            )
            for text, box in zip(found.txts, found.boxes, strict=True)
        ]
    )


@cache
def _engine() -> Any:
    return importlib.import_module("rapidocr").RapidOCR(params=_PARAMETERS)
