"""What Office files have in common: statements in `docProps/core.xml`, and passwords.

An encrypted Office file is an OLE container with the ZIP inside; msoffcrypto opens it with the password that
the visitor gives, and then it is a file like any other.
"""

import io
import re
import zipfile
from typing import Any

from specrag.errors import DocumentError
from specrag.ingest.inside import OLE
from specrag.ingest.readers.dates import stated_date
from specrag.ingest.text import prose

_DC, _TERMS = "{http://purl.org/dc/elements/1.1/}", "{http://purl.org/dc/terms/}"
_JUNK_TITLE = re.compile(
    r"(untitled|unbenannt|powerpoint[- ]\w+|microsoft (office )?(word|powerpoint|excel)\b.*|slide 1|folie 1"
    r"|title|document\d*|dokument\d*|presentation\d*|präsentation\d*|(book|mappe)\d+|.*\.(docx?|pptx?|xlsx?|tmp))",
    re.IGNORECASE,
)
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


def statements(whole: bytes) -> tuple[str | None, str | None]:
    """Title and date (of the last change, else of the making) that a repacked Office file states."""
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        if "docProps/core.xml" not in archive.namelist():
            return None, None
        core = parsed(archive.read("docProps/core.xml"))
    if core is None:
        return None, None
    title = prose(core.findtext(f"{_DC}title") or "")
    dates = (core.findtext(f"{_TERMS}{word}") for word in ("modified", "created"))
    return (
        None if not title or _JUNK_TITLE.fullmatch(title) else title,
        next((found for found in map(stated_date, dates) if found), None),
    )


def parsed(data: bytes) -> Any | None:
    """An XML tree, without entities and network; None where there is none."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, recover=True)
    try:
        return etree.fromstring(data, parser)
    except (etree.LxmlError, ValueError):
        return None


def locked(data: bytes) -> bool:
    """Whether these are the bytes of an Office file behind a password."""
    return data.startswith(OLE) and _ENCRYPTED in data


def unlocked(data: bytes, name: str, password: str | None) -> bytes:
    """The Office file inside an encrypted one.

    Raises:
        DocumentError: `encrypted` without the right password, `corrupt` if there is nothing inside.
    """
    import msoffcrypto
    from msoffcrypto.exceptions import DecryptionError, FileFormatError, InvalidKeyError, ParseError

    if not password:
        raise DocumentError(
            "encrypted",
            f"{name} is protected by a password; give the password, or save it without one in Office.",
        )
    opened = io.BytesIO()
    try:
        office = msoffcrypto.OfficeFile(io.BytesIO(data))
        office.load_key(password=password, verify_password=True)
        office.decrypt(opened)
    except (InvalidKeyError, DecryptionError) as error:
        raise DocumentError(
            "encrypted",
            f"{name} cannot be read: the password does not open it; check it or save a copy without.",
        ) from error
    except (
        FileFormatError,
        ParseError,
        OSError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
    ) as error:
        raise DocumentError("corrupt", f"{name} is damaged: nothing in it can be decrypted.") from error
    return opened.getvalue()
