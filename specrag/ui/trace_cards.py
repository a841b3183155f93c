"""What stands above an opened run: what it was, where it comes from, what was thought of it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from specrag.tracing.search import RunSummary
from specrag.tracing.trace import Trace
from specrag.types import Parent, Rating
from specrag.ui.markup import render
from specrag.ui.options import PIPELINES
from specrag.ui.sentences import counted, status_text
from specrag.ui.setting_names import changed_settings, setting_name, setting_text
from specrag.ui.trace_filter import DECISIONS, RATINGS
from specrag.ui.trace_list import SIGNS, Neighbours, ago, moment_text, outcome_of

_MODELS: Final = ("drafter", "verifier", "embedder")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A run with what a visitor may know of it and do with it."""

    trace: Trace
    summary: RunSummary | None
    """None while the run goes on."""
    mine: bool
    """Whether they may rate, share and delete it."""
    parent: RunSummary | None = None
    """The run that it was forked from, if it is still here for them to see."""
    children: tuple[RunSummary, ...] = ()
    beside: Neighbours = field(default_factory=Neighbours)
    collection: str = ""
    """Title of the collection that was asked; empty if it is none that the visitor knows."""

    @property
    def rating(self) -> Rating | None:
        """What was thought of it."""
        return self.summary.feedback if self.summary else None


def run_head(run: Opened, *, now: datetime, focus: str = "") -> str:
    """The header of an opened run; `focus` is a word that is new whenever it wants the keyboard."""
    trace = run.trace
    changed = changed_settings(trace.config)
    return render(
        "trace_head",
        run=run,
        trace=trace,
        live=trace.status == "running",
        state=status_text(trace),
        kind=outcome_of(run.summary) if run.summary else "",
        models=_models(trace),
        settings=[(setting_name(name), setting_text(value)) for name, value in changed.items()],
        collection=run.collection or setting_text(trace.config.get("collection")),
        device=setting_text(trace.environment.get("device")),
        focus=focus,
        now=now,
        ago=ago,
        moment=moment_text,
        outcome=outcome_of,
        pipelines=PIPELINES,
        decisions=DECISIONS,
        ratings=RATINGS,
        signs=SIGNS,
        counted=counted,
    )


def share_card(run_id: str, *, by_link: bool, shared: bool, mine: bool) -> str:
    """The link of a run.

    `by_link`: others can only see it if its owner lets them, which `mine` says whether this visitor is.
    """
    return render("trace_share", run_id=run_id, by_link=by_link, shared=shared, mine=mine)


def export_buttons(run_id: str, formats: Sequence[tuple[str, str]]) -> str:
    """A button for each format; a format is its name with its label."""
    return render("trace_export", run_id=run_id, formats=formats)


def fork_line(run_id: str, parent: Parent | None) -> str:
    """Where a run on the Ask tab comes from; nothing for one that was simply asked."""
    return render("trace_fork_line", run_id=run_id, parent=parent) if parent else ""


def _models(trace: Trace) -> list[tuple[str, str]]:
    """Role and name, as the trace says them; it may be an imported one."""
    models: Any = trace.environment.get("models")
    known: dict[str, Any] = models if isinstance(models, dict) else {}
    told: list[tuple[str, str]] = []
    for role in _MODELS:
        about: Any = known.get(role)
        name = about.get("name") if isinstance(about, dict) else trace.config.get(role)
        if isinstance(name, str) and name:
            told.append((role, setting_text(name)))
    return told
