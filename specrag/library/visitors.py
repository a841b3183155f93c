"""Who somebody is to the collections: the operator, somebody of an open page, or the owner of something.

Nothing here knows of a web page, so the rules of `library.py` are the same for the page, the command line and
a program.
"""

from dataclasses import dataclass
from typing import Final

VISITOR: Final = "visitor:"
PASSING: Final = f"{VISITOR}passing:"
"""An owner that nobody is a second time begins so."""
"""Before the owner of what expires: a visitor without a name, known by a cookie."""
USER: Final = "user:"
"""Before the owner of what stays: somebody who has logged in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Somebody who reads and writes collections."""

    id: str
    """Tells visitors apart, so that each has their turn; never shown, and no secret."""
    owner: str | None = None
    """Whose collections they see; None sees those that belong to nobody, which are everybody's."""
    operator: bool = False
    """Whether it is the operator of the program, who sees all collections."""
    passing: bool = False
    """Whether they cannot be known again, as a program without a cookie: they may read and keep nothing."""


OPERATOR: Final = Visitor(id="operator", operator=True)
"""The command line and a program that imports this one."""
