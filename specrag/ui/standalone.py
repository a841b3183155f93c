"""A run as one HTML file that opens from a disk, in a mail or in years, and looks like the page.

It is made of the page's own pieces and its style sheet. Nothing is loaded and no script runs: popovers and
folds are native, dark and light follow the reader's system, and a policy inside the file forbids the rest,
whatever a document or a model has written.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from markupsafe import Markup

from specrag import __version__
from specrag.events import Event
from specrag.tracing.trace import Trace
from specrag.types import Scores
from specrag.ui.cards import answer_card, board, passages_strip, timeline
from specrag.ui.lanes import draft_numbers
from specrag.ui.markup import render
from specrag.ui.score_names import SCORES
from specrag.ui.sentences import status_text
from specrag.ui.theme import CSS_PATH

_SCOPE: Final = "file"
_PIPELINES: Final = {
    "speculative": "Speculative RAG",
    "standard": "Standard RAG",
    "drafter": "Drafter only",
    "multihop": "Multi-hop RAG",
}
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_DARK: Final = re.compile(r"^\.dark \{(.*?)^\}", re.DOTALL | re.MULTILINE)


def standalone(trace: Trace, events: Sequence[Event] = ()) -> str:  # noqa: ARG001 - as all formats are written
    """The whole file; what is shown is what the page shows of a stored run."""
    pieces = (
        answer_card(trace, scope=_SCOPE),
        passages_strip(trace, scope=_SCOPE, filed=True),
        board(trace, scope=_SCOPE),
        timeline(trace),
    )
    return render(
        "standalone",
        trace=trace,
        css=Markup(_style()),  # noqa: S704 - our own style sheet, no data
        status=status_text(trace),
        pipeline=_PIPELINES[trace.pipeline],
        when=_when(trace.created_at),
        models=_models(trace),
        pieces=[Markup(piece) for piece in pieces],  # noqa: S704 - each was escaped by its own template
        scores=_scores(trace),
        usage=(("drafter", trace.usage.drafter), ("verifier", trace.usage.verifier)),
        settings=_facts(trace.config),
        versions=_facts(trace.environment.get("versions")),
        version=__version__,
    )


@cache
def _style() -> str:
    """The page's style sheet, whose dark colours follow the system here: no one sets a class on this file."""
    css = _COMMENT.sub("", CSS_PATH.read_text(encoding="utf-8"))
    return _DARK.sub(r"@media (prefers-color-scheme: dark) { :root {\1} }", css)


def _when(created_at: str) -> str:
    """The moment as a person reads it; a trace from outside may hold none."""
    try:
        when = datetime.fromisoformat(created_at)
    except ValueError:
        return ""
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC") if when.tzinfo else created_at[:16]


def _models(trace: Trace) -> list[tuple[str, str]]:
    """Role and name of each model, as far as the trace says it."""
    named = ((role, trace.config.get(role)) for role in ("drafter", "verifier", "embedder"))
    return [(role, name) for role, name in named if isinstance(name, str) and name]


def _scores(trace: Trace) -> dict[str, Any]:
    """The table of scores: a row for each draft that has one, a column for each component that is known."""
    numbers = draft_numbers(trace)
    known = [
        one.name
        for one in fields(Scores)
        if any(getattr(draft.scores, one.name) is not None for draft in trace.drafts)
    ]
    rows = [
        (numbers[draft.subset_id], [getattr(draft.scores, name) for name in known]) for draft in trace.drafts
    ]
    return {"labels": [SCORES[name] for name in known], "rows": rows if known else []}


def _facts(facts: Any) -> list[tuple[str, str]]:
    """Settings or versions as lines."""
    if not isinstance(facts, Mapping):
        return []
    return [(str(name), _written(value)) for name, value in facts.items()]


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
