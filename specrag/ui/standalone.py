"""A run as one HTML file, made of the page's own pieces. No script runs: popovers and folds are native."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Final

from specrag.events import Event
from specrag.tracing.trace import Trace
from specrag.types import Scores
from specrag.ui.cards import answer_card, board, passages_strip, timeline
from specrag.ui.html_file import html_file, ours
from specrag.ui.lanes import draft_numbers
from specrag.ui.score_names import SCORES
from specrag.ui.sentences import status_text

_SCOPE: Final = "file"
_PIPELINES: Final = {
    "speculative": "Speculative RAG",
    "standard": "Standard RAG",
    "drafter": "Drafter only",
    "multihop": "Multi-hop RAG",
}


def standalone(trace: Trace, events: Sequence[Event] = ()) -> str:  # noqa: ARG001 - as all formats are written
    """The whole file; what is shown is what the page shows of a stored run."""
    pieces = (
        answer_card(trace, scope=_SCOPE),
        passages_strip(trace, scope=_SCOPE, filed=True),
        board(trace, scope=_SCOPE),
        timeline(trace),
    )
    return html_file(
        "standalone",
        title=trace.question[:120],
        trace=trace,
        status=status_text(trace),
        pipeline=_PIPELINES[trace.pipeline],
        when=_when(trace.created_at),
        models=_models(trace),
        pieces=list(map(ours, pieces)),
        scores=_scores(trace),
        usage=(("drafter", trace.usage.drafter), ("verifier", trace.usage.verifier)),
        settings=_facts(trace.config),
        versions=_facts(trace.environment.get("versions")),
    )


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
