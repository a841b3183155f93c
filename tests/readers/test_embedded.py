"""Files that lie in a text as base64 are not indexed."""

import base64
import json
import random
from pathlib import Path

import pytest

from specrag.ingest.readers.embedded import without_runs
from tests.readers.tools import load, text_of

PICTURE = base64.b64encode(random.Random(1).randbytes(75_000)).decode()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.md", "# A\n\n![][image1]\n\n[image1]: <data:image/png;base64,{}>\n\nEnd.", "# A\n\n![][image1]\n\n[image1]: <[base64 data]>\n\nEnd."),
        ("a.txt", "See data:image/svg+xml;charset=utf-8;base64,{} there.", "See [base64 data] there."),
        ("a.html", "<html><p>See data:image/png;base64,{} there.</p></html>", "See [base64 data] there."),
        ("a.json", '{{"name": "x", "logo": "data:image/png;base64,{}"}}', "name: x\nlogo: [base64 data]"),
        ("a.json", '{{"name": "x", "logo": "{}"}}', "name: x\nlogo: [base64 data]"),
    ],
)  # fmt: skip
def test_a_picture_in_a_text_is_no_text(tmp_path: Path, name: str, text: str, expected: str) -> None:
    """One picture was 585 chunks of noise; it does not count as characters, either."""
    assert text_of(load(tmp_path, name, text.format(PICTURE), max_characters=1000)) == expected


def test_the_pictures_of_a_notebook_are_no_text(tmp_path: Path) -> None:
    lines = "\n".join(PICTURE[at : at + 76] for at in range(0, len(PICTURE), 76)) + "\n"
    outputs = [{"output_type": "display_data", "data": {"image/png": lines, "text/plain": ["<Figure>"]}}]
    cell = {"cell_type": "code", "source": ["plot(birds)"], "outputs": outputs}
    text = text_of(load(tmp_path, "a.ipynb", json.dumps({"cells": [cell], "nbformat": 4})))
    assert "plot(birds)" in text
    assert "<Figure>" in text
    assert len(text) < 500


def test_what_only_looks_like_base64_stays() -> None:
    for text in ("ACGT" * 1000, "1234567890" * 200, "Ab1" * 300, "a/b" * 900, "word " * 1000):
        assert without_runs(text) == text
