"""Messages between this process and the one that reads files: a length, then JSON.

JSON and not pickle, because the other side may be in the hands of the file that it reads; and a length in
front, because a document of 20 million characters has to come through without looking for its end.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import IO, Any, TypeAlias

from specrag.ingest.base import PageImage
from specrag.types import Document

Message: TypeAlias = dict[str, Any]

_LENGTH = 8


def send(stream: IO[bytes], message: Mapping[str, Any]) -> None:
    """Write one message. Lone surrogates, which are no text, become question marks."""
    data = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
    stream.write(len(data).to_bytes(_LENGTH, "big"))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes], limit: int) -> Message | None:
    """The next message, or None where the stream ends.

    Args:
        stream: the other side.
        limit: longest message to accept, in bytes.

    Raises:
        ValueError: this is no message.
    """
    head = stream.read(_LENGTH)
    if len(head) < _LENGTH:
        return None
    length = int.from_bytes(head, "big")
    if length > limit:
        raise ValueError(f"a message of {length} bytes, {limit} are allowed")
    data = stream.read(length)
    if len(data) < length:
        return None
    message = json.loads(data)
    if not isinstance(message, dict):
        raise TypeError("a message is no object")
    return message


def packed_document(document: Document) -> Message:
    """A document as a message."""
    return {"document": asdict(document)}


def packed_image(image: PageImage) -> Message:
    """A picture as a message."""
    return {"image": asdict(image) | {"data": base64.b64encode(image.data).decode("ascii")}}


def unpacked_document(message: Message) -> Document:
    """The document in a message.

    Raises:
        ValueError: there is none.
    """
    from pydantic import TypeAdapter

    return TypeAdapter(Document).validate_python(message.get("document"))


def unpacked_image(message: Message) -> PageImage:
    """The picture in a message.

    Raises:
        ValueError: there is none.
    """
    from pydantic import TypeAdapter

    fields = message.get("image")
    if not isinstance(fields, dict):
        raise TypeError("a message without a picture")
    return TypeAdapter(PageImage).validate_python(fields | {"data": base64.b64decode(fields["data"])})
