"""Plain text and code: kept as written."""

from specrag.errors import DocumentError
from specrag.ingest.readers.content import Content, Gathering, Source, check_characters
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


def decoded(source: Source) -> tuple[str, str]:
    """The text of the file and the name of its encoding.

    Raises:
        DocumentError: `corrupt`, or `too_large` before anything else is done with the text.
    """
    found = decode(source.data)
    if found is None:
        raise DocumentError("corrupt", f"{source.name} is called a text file but holds no text.")
    check_characters(len(found[0]), source)
    return found
