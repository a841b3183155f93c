"""How much of the store runs from files may take: whoever imports chooses how long a run is.

What is forked from such a run carries its passages along, so it counts as well, and so do its own forks. A
visitor without a login is a cookie that anybody makes up, so there is a bound for all of them together too.
"""

import sqlite3
from typing import Any, Final

from specrag.errors import UsageError
from specrag.library.visitors import VISITOR
from specrag.tracing.trace import Trace

IMPORTED: Final = 1
"""What the column `imported` says of a run from a file."""
CARRIED: Final = 2
"""And of a run that was forked from one."""
VISITORS: Final = 10
"""What all visitors without a login may have imported, in times of what one owner may."""

_TAKEN: Final = (
    "SELECT coalesce(sum(length(trace) + length(events)), 0) FROM recordings JOIN runs USING (run_id) "
    "WHERE imported AND "
)


def carried(connection: sqlite3.Connection, trace: Trace) -> int:
    """`CARRIED` for a run that was forked from an imported one, else 0."""
    if trace.parent is None:
        return 0
    parent = connection.execute(
        "SELECT imported FROM runs WHERE run_id = ?", (trace.parent.run_id,)
    ).fetchone()
    # one that is gone may have been imported: deleting it in time would take its forks out of the count
    return CARRIED if parent is None or parent[0] else 0


def check(connection: sqlite3.Connection, owner: str, most_mb: int) -> None:
    """Refuse what is too much, counted with the run that was just put in; the caller undoes that.

    Raises:
        UsageError: the owner's runs take more than `most_mb` megabytes, or those of all visitors together
            more than theirs.
    """
    if _taken(connection, "owner = ?", owner) > most_mb * 10**6:
        raise UsageError(
            f"Imported runs and their forks may take {most_mb} MB (SPECRAG_MAX_IMPORTED_MB), and with this "
            "one they would take more; delete some of them."
        )
    if not owner.startswith(VISITOR):
        return
    if _taken(connection, "substr(owner, 1, ?) = ?", len(VISITOR), VISITOR) > VISITORS * most_mb * 10**6:
        raise UsageError(
            f"Imported runs of all visitors may take {VISITORS * most_mb} MB ({VISITORS} times "
            "SPECRAG_MAX_IMPORTED_MB), and with this one they would take more; try again when some have "
            "expired."
        )


def _taken(connection: sqlite3.Connection, whose: str, *values: Any) -> int:
    """Bytes of what somebody has imported, packed as it is kept."""
    return int(connection.execute(_TAKEN + whose, values).fetchone()[0])
