"""What the tests of all readers do: read bytes under a name, and look at the text or at the refusal."""

import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from specrag.config import load_settings
from specrag.errors import DocumentError
from specrag.ingest.loaders import read
from specrag.ingest.text import clean_name
from specrag.types import Document


def load(
    tmp_path: Path, name: str, data: bytes | str, *, password: str | None = None, **settings: Any
) -> Document:
    path = tmp_path / "upload"  # what the file is called where it lies must not matter
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read(path, name, load_settings(**settings), password=password)


def refused(
    tmp_path: Path, name: str, data: bytes | str, *, password: str | None = None, **settings: Any
) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        load(tmp_path, name, data, password=password, **settings)
    message = str(caught.value)
    assert message.startswith(clean_name(name))
    assert message.endswith(".")
    assert "\n" not in message
    return caught.value


def text_of(document: Document) -> str:
    return "\n".join(page.text for page in document.pages)


def folded(text: str) -> str:
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text))


def marked(document: Document) -> list[str]:
    """Each heading with what stands at its place in the text."""
    return [
        f"{heading.text} @ {page.text[heading.start :].splitlines()[0]}"
        for page in document.pages
        for heading in page.headings
    ]
