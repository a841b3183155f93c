"""Files that lie inside a text as base64: hundreds of chunks that say nothing and resemble everything.

They are cut before the text is counted or read any further.
"""

import re

_LEFT = "[base64 data]"
_DATA_URI = re.compile(r"\bdata:[^\s,\"'()<>]{0,200};base64,[\w+/=%-]*(?:\s{1,2}[\w+/-]{60,}=*)*", re.ASCII)
_RUN = re.compile(r"(?<![\w+/\\-])(?:[\w+/-]|\\[nr/]){1000,}+={0,2}(?:\\[nr])*", re.ASCII)
"""In the source of JSON, where line breaks are spelled `\\n`; a key or a hash is shorter."""


def without_data(text: str) -> str:
    """Text without the files that its pictures and links hold (`data:image/png;base64,...`)."""
    return _DATA_URI.sub(_LEFT, text) if ";base64," in text else text


def without_runs(text: str) -> str:
    """The source of JSON without those and without strings of base64, as notebooks hold their pictures."""
    return _RUN.sub(lambda run: _LEFT if _is_base64(run[0]) else run[0], without_data(text))


def _is_base64(run: str) -> bool:
    """Letters of both kinds and digits; a genome or a number of a thousand digits is none."""
    return all(re.search(kind, run) for kind in ("[a-z]", "[A-Z]", "[0-9]"))
