"""Plain text and code: kept as written."""

from collections.abc import Callable

from specrag.errors import DocumentError
from specrag.ingest.readers.content import Content, Gathering, Source, check_characters
from specrag.ingest.readers.embedded import without_data
from specrag.ingest.text import decode, prose, verbatim


def read_text(source: Source) -> Content:
    """Plain text with blanks put in order."""
    text, encoding = decoded(source)
    gathering = Gathering(source)
    gathering.add(prose(text))
    return Content(pages=gathering.pages, encoding=encoding)


def read_code(source: Source) -> Content:
    """Code and data with its indentation."""
    text, encoding = decoded(source)
    gathering = Gathering(source)
    gathering.add(verbatim(text))
    return Content(pages=gathering.pages, encoding=encoding)


def decoded(source: Source, *, cut: Callable[[str], str] = without_data) -> tuple[str, str]:
    """The text of the file without the files embedded in it, which `cut` takes out, and the encoding's name.

    Raises:
        DocumentError: `corrupt`, or `too_large` before anything else is done with the text.
    """
    found = decode(source.data)
    if found is None:
        raise DocumentError("corrupt", f"{source.name} is called a text file but holds no text.")
    text, encoding = cut(found[0]), found[1]
    check_characters(len(text), source)
    return text, encoding
