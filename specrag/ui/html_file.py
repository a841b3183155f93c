"""One HTML file that needs nothing else: what a run and a report have in common when they are saved.

It opens from a disk, in a mail or in years, and looks like the page: dark and light follow the reader's
system. Nothing is loaded, and a policy inside the file lets no script run but those that it is given by their
digests, whatever a document or a model has written.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from specrag import __version__
from specrag.ui.markup import render
from specrag.ui.theme import CSS_PATH

_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_DARK: Final = re.compile(r"^\.dark \{(.*?)^\}", re.DOTALL | re.MULTILINE)


def html_file(
    template: str, *, title: str, sheets: Sequence[Path] = (), scripts: Sequence[str] = (), **values: Any
) -> str:
    """The whole file, by a template that extends `_file.html`.

    Args:
        template: its name.
        title: of the file.
        sheets: style sheets beside that of the page.
        scripts: those that may run, as they stand between their tags.
        values: what the template shows.
    """
    digests = "".join(f" {_digest(script)}" for script in scripts)
    return render(
        template,
        title=title,
        css=ours(_style((CSS_PATH, *sheets))),
        policy=ours(f"{_POLICY}; script-src{digests}" if scripts else _POLICY),
        version=__version__,
        **values,
    )


def ours(html: str) -> Markup:
    """HTML that is not escaped again: our own sheets and scripts, or escaped by its own template."""
    return Markup(html)  # noqa: S704 - see above


@cache
def _style(sheets: tuple[Path, ...]) -> str:
    """Style sheets of the page, whose dark colours follow the system: no one sets a class on this file."""
    css = "\n".join(path.read_text(encoding="utf-8") for path in sheets)
    return _DARK.sub(r"@media (prefers-color-scheme: dark) { :root {\1} }", _COMMENT.sub("", css))


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
