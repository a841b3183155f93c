"""What a run took: times, and the tokens that each model read and wrote, as rows of a table."""

from typing import Final

from specrag.tracing.trace import Trace
from specrag.ui import figures
from specrag.ui.markup import UNKNOWN, time_text
from specrag.ui.readout import is_direct

_OF_DRAFTS: Final = frozenset({"verdict", "verifier scoring passes"})
"""Rows that only a run with drafts can have."""


def figures_of(trace: Trace) -> list[tuple[str, str]]:
    """What the run took; a running one keeps the places of what will come."""
    verifier = trace.usage.verifier
    read, wrote = _drafter_tokens(trace)
    share = figures.models_share(trace)
    drafted = trace.pipeline == "speculative" and not is_direct(trace)
    rows = [
        (f"first {'draft ' if drafted else ''}token", time_text(figures.first_token_ms(trace))),
        ("verdict", time_text(figures.verdict_ms(trace))),
        ("so far" if trace.status == "running" else "total", time_text(trace.elapsed_ms)),
        ("drafter read / wrote", _read_wrote(read, wrote)),
        ("verifier read / wrote", _read_wrote(verifier.prompt_tokens, verifier.completion_tokens)),
        ("verifier scoring passes", f"{verifier.forward_passes:,}" if verifier.forward_passes else UNKNOWN),
        ("models' share of the run", UNKNOWN if share is None else f"{100 * share:.0f} %"),
    ]
    hidden = _hidden(trace, drafted=drafted)
    return [row for row in rows if row[1] != UNKNOWN or (trace.status == "running" and row[0] not in hidden)]


def _hidden(trace: Trace, *, drafted: bool) -> frozenset[str]:
    """Rows that will stay empty: their place is not kept."""
    if drafted:
        return frozenset()
    idle = "verifier" if trace.pipeline == "drafter" else "drafter"
    return _OF_DRAFTS | {f"{idle} read / wrote"}


def _drafter_tokens(trace: Trace) -> tuple[int, int]:
    """Read and written; counted by ourselves as long as the run has not told."""
    told = trace.usage.drafter
    read = sum(draft.prompt_tokens for draft in trace.drafts)
    wrote = sum(len(draft.tokens) for draft in trace.drafts)
    if trace.status == "running":
        return max(read, told.prompt_tokens), max(wrote, told.completion_tokens)
    return told.prompt_tokens, told.completion_tokens


def _read_wrote(read: int, wrote: int) -> str:
    return f"{read:,} / {wrote:,} tok" if read or wrote else UNKNOWN
