"""Endpoints of the history: find, read, rate, share, export, import and delete runs."""

import asyncio
from dataclasses import asdict
from typing import Any, Final, Literal

from specrag.build import Parts
from specrag.errors import UsageError
from specrag.library.visitors import Visitor
from specrag.tracing.codec import to_dict
from specrag.tracing.export.formats import EXPORTS, ExportFormat, file_name
from specrag.tracing.export.importing import import_run as read_run
from specrag.tracing.search import RunFilter, RunSummary
from specrag.types import PipelineName, Rating
from specrag.ui.exporting import export_run as written

MOST: Final = 500


def runs(  # noqa: PLR0917 - gradio passes what a program names
    parts: Parts,
    who: Visitor,
    text: str = "",
    pipelines: list[PipelineName] | None = None,
    decisions: list[str] | None = None,
    rating: Rating | Literal["none"] | None = None,
    since: str = "",
    until: str = "",
    min_ms: float | None = None,
    max_ms: float | None = None,
    limit: int = 50,
    offset: int = 0,
) -> dict[str, Any]:
    """Find runs, newest first; returns `runs`, one page of them, and how many match as `count`.

    Example: `Client(url).predict("boats", since="2026-01-31", limit=10, api_name="/runs")["runs"]`.

    `text`: words that all occur in question, answer or id. `decisions`: selected, synthesised, fallback,
    abstained, direct, disputed, failed or cancelled. `rating`: up, down or none. `since` and `until`: ISO
    dates. `min_ms` and `max_ms`: how long a run took. `limit`: at most 500.
    """
    wanted = _wanted(text, pipelines, decisions, rating, since, until, min_ms, max_ms)
    if not (1 <= limit <= MOST and offset >= 0):
        raise UsageError(f"The limit lies between 1 and {MOST}, and the offset is not below 0.")
    found, count = parts.history.find(who, wanted, limit=limit, offset=offset)
    return {"runs": [_told(run) for run in found], "count": count}


def run(parts: Parts, who: Visitor, run_id: str) -> dict[str, Any]:
    """The `specrag.trace/1` document of a run; of one that goes on, its state so far.

    Example: `Client(url).predict("1c0ffee15bad", api_name="/run")["answer"]`.
    """
    return to_dict(parts.history.trace(who, run_id))


async def stop_run(parts: Parts, who: Visitor, run_id: str) -> bool:
    """Stop a run that goes on, and keep what it has so far; says whether there was anything to stop.

    Example: `Client(url).predict("1c0ffee15bad", api_name="/stop_run")`.
    """
    await asyncio.to_thread(parts.history.check_own, who, run_id)
    return await parts.runs.stop(run_id)


def delete_runs(parts: Parts, who: Visitor, run_ids: list[str]) -> int:
    """Delete runs; one that goes on is stopped first. Returns how many there were.

    Example: `Client(url).predict(["1c0ffee15bad"], api_name="/delete_runs")`.
    """
    return parts.history.delete(who, run_ids)


def clear_runs(  # noqa: PLR0917 - gradio passes what a program names
    parts: Parts,
    who: Visitor,
    text: str = "",
    pipelines: list[PipelineName] | None = None,
    decisions: list[str] | None = None,
    rating: Rating | Literal["none"] | None = None,
    since: str = "",
    until: str = "",
    min_ms: float | None = None,
    max_ms: float | None = None,
) -> int:
    """Delete all of your runs that match, as `/runs` finds them; all of them if nothing is said.

    Example: `Client(url).predict(until="2025-12-31", rating="none", api_name="/clear_runs")`.
    """
    return parts.history.clear(who, _wanted(text, pipelines, decisions, rating, since, until, min_ms, max_ms))


def rate_run(
    parts: Parts,
    who: Visitor,
    run_id: str,
    rating: Rating | Literal["none"],
    comment: str = "",
) -> dict[str, Any]:
    """Say what you think of an answer, up or down, with a short comment; none takes it back.

    Example: `Client(url).predict("1c0ffee15bad", "down", "It is three nights.", api_name="/rate_run")`.
    """
    parts.history.rate(who, run_id, None if rating == "none" else rating, comment)
    return _told(parts.history.summary(who, run_id))


def share_run(parts: Parts, who: Visitor, run_id: str, shared: bool = True) -> dict[str, Any]:
    """Let anybody see a run who has its link, or nobody else any more.

    Example: `Client(url).predict("1c0ffee15bad", False, api_name="/share_run")`.
    """
    parts.history.share(who, run_id, shared)
    return _told(parts.history.summary(who, run_id))


def export_run(
    parts: Parts,
    who: Visitor,
    run_id: str,
    format: ExportFormat = "json",  # noqa: A002 - the word that people use for it
    texts: bool = True,
) -> dict[str, str]:
    """A run as a file: its `name`, its `media_type` and its `content` as text.

    Example: `Client(url).predict("1c0ffee15bad", "html", api_name="/export_run")["content"]`.

    `format`: json (which can be imported again), perfetto, openinference or html. Without `texts` it holds
    figures alone.
    """
    trace, events = parts.history.trace(who, run_id), parts.history.events(who, run_id)
    return {
        "name": file_name(trace, format),
        "media_type": EXPORTS[format].media_type,
        "content": written(trace, events, format, texts=texts).decode(),
    }


def import_run(parts: Parts, who: Visitor, content: str) -> str:
    """Keep a run that was exported as JSON, of this program or of another one; returns its id here.

    Example: `Client(url).predict(open("run.json").read(), api_name="/import_run")`.
    """
    trace, events = read_run(content.encode("utf-8", "replace"))
    return parts.history.add(who, trace, events)


ENDPOINTS: Final = (
    runs,
    run,
    stop_run,
    delete_runs,
    clear_runs,
    rate_run,
    share_run,
    export_run,
    import_run,
)


def _wanted(  # noqa: PLR0917 - in the order of the endpoints
    text: str,
    pipelines: list[PipelineName] | None,
    decisions: list[str] | None,
    rating: Rating | Literal["none"] | None,
    since: str,
    until: str,
    min_ms: float | None,
    max_ms: float | None,
) -> RunFilter:
    return RunFilter(
        text=text,
        pipelines=tuple(pipelines or ()),
        decisions=tuple(decisions or ()),
        rating=rating,
        since=since,
        until=until,
        min_ms=min_ms,
        max_ms=max_ms,
    )


def _told(run: RunSummary) -> dict[str, Any]:
    """A line of the history; whose it is stays here."""
    return {name: value for name, value in asdict(run).items() if name != "owner"}
