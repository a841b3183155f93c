"""A run as a trace in Chrome's JSON format, which Perfetto and chrome://tracing open.

One process is the run; its tracks are the drafts, the hops and the families of steps. Arrows lead from each
draft to the verification and from there to the decision, and a counter shows how many tokens were written.
"""

import math
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

from specrag.tracing.codec import json_text
from specrag.tracing.export.tracks import Slice, Track, tracks_of
from specrag.tracing.trace import Trace
from specrag.types import Draft, Scores, Span

_PID: Final = 1
_SAMPLES: Final = 500
"""Of a counter; more cannot be seen."""
_SHOWN: Final = 2000
"""Characters of a text; a viewer shows a line of it."""


def to_perfetto(trace: Trace) -> bytes:
    """The trace as a file.

    Its zero is the start of the run: viewers show times since the first event, and `created_at` stands in
    the arguments of the run.
    """
    tracks = tracks_of(trace)
    document = {
        "displayTimeUnit": "ms",
        "otherData": {"run_id": trace.run_id, "created_at": trace.created_at, "producer": "specrag"},
        "traceEvents": [*_names(trace, tracks), *_slices(trace, tracks), *_arrows(tracks), *_tokens(trace)],
    }
    return json_text(document).encode()


def _names(trace: Trace, tracks: list[Track]) -> Iterator[dict[str, Any]]:
    yield _meta("process_name", name=f"specrag {trace.pipeline}: {trace.question[:_SHOWN]}")
    for number, track in enumerate(tracks, 1):
        yield _meta("thread_name", tid=number, name=track.label)
        yield _meta("thread_sort_index", tid=number, sort_index=number)


def _meta(kind: str, tid: int = 0, **args: Any) -> dict[str, Any]:
    return {"ph": "M", "pid": _PID, "tid": tid, "name": kind, "args": args}


def _slices(trace: Trace, tracks: list[Track]) -> Iterator[dict[str, Any]]:
    for number, track in enumerate(tracks, 1):
        for one in track.slices:
            yield {
                "ph": "X",
                "pid": _PID,
                "tid": number,
                "name": one.span.name[:_SHOWN] or "step",
                "cat": "specrag",
                "ts": one.start_ns / 1000,
                "dur": (one.end_ns - one.start_ns) / 1000,
                "args": _known(_args(trace, one.span)),
            }


def _args(trace: Trace, span: Span) -> dict[str, Any]:
    args: dict[str, Any] = {f"attribute.{name}": value for name, value in span.attributes.items()}
    if span.end_ms is None:
        args["open"] = True
    match span.name:
        case "run":
            args |= _of_run(trace)
        case "retrieve":
            args["passages"] = "\n".join(
                f"{number}. {passage.score:.3f} {passage.title}"
                for number, passage in enumerate(trace.passages, 1)
            )
        case "draft":
            drafts = (one for one in trace.drafts if one.subset_id == span.attributes.get("subset_id"))
            args |= next((_of_draft(trace, draft) for draft in drafts), {})
        case "decide" | "answer" | "fallback" | "synthesise":
            args |= _of_decision(trace)
        case _:
            pass
    return args


def _of_run(trace: Trace) -> dict[str, Any]:
    usage = trace.usage
    return {
        "run_id": trace.run_id,
        "created_at": trace.created_at,
        "question": trace.question,
        "rewritten": trace.rewritten,
        "status": trace.status,
        "error": trace.error.message if trace.error else None,
        "drafter.prompt_tokens": usage.drafter.prompt_tokens,
        "drafter.completion_tokens": usage.drafter.completion_tokens,
        "verifier.prompt_tokens": usage.verifier.prompt_tokens,
        "verifier.completion_tokens": usage.verifier.completion_tokens,
    }


def _of_draft(trace: Trace, draft: Draft) -> dict[str, Any]:
    scores = {f"score.{one.name}": getattr(draft.scores, one.name) for one in fields(Scores)}
    perspective = next((one.perspective for one in trace.subsets if one.id == draft.subset_id), None)
    return {
        "perspective": perspective,
        "rationale": draft.rationale,
        "answer": draft.answer,
        "abstained": draft.abstained,
        "error": draft.error,
        "prompt_tokens": draft.prompt_tokens,
        "tokens": len(draft.tokens),
        **scores,
    }


def _of_decision(trace: Trace) -> dict[str, Any]:
    decision, answer = trace.decision, trace.answer
    chosen = decision.draft_index if decision else None
    return {
        "decision": decision.kind if decision else None,
        "draft": None if chosen is None else chosen + 1,
        "reason": decision.reason if decision else None,
        "margin": decision.margin if decision else None,
        "agreement": decision.agreement if decision else None,
        "answer": answer.text if answer else None,
        "confidence": answer.confidence if answer else None,
    }


def _known(args: dict[str, Any]) -> dict[str, Any]:
    """Arguments without what is unknown; no text is longer than a viewer can show."""
    cut = {name[:_SHOWN]: _short(value) for name, value in args.items()}
    return {name: value for name, value in cut.items() if value is not None and value != ""}


def _short(value: Any) -> Any:
    match value:
        case str() if len(value) > _SHOWN:
            return f"{value[:_SHOWN]}…"
        case float() if not math.isfinite(value):
            return None
        case _:
            return value


def _arrows(tracks: list[Track]) -> Iterator[dict[str, Any]]:
    """From each draft to the step that judges it, and from there to the decision."""
    placed = [(number, one) for number, track in enumerate(tracks, 1) for one in track.slices]
    drafts = [
        (n, one) for n, one in placed if one.span.name == "draft" and "subset_id" in one.span.attributes
    ]
    judging = [(n, one) for n, one in placed if one.span.name == "verify"]
    deciding = [(n, one) for n, one in placed if one.span.name == "decide"]
    aims = [(draft, _first_after(draft[1], judging or deciding)) for draft in drafts]
    aims += [(judge, _first_after(judge[1], deciding)) for judge in judging]
    for number, (source, aim) in enumerate(aims, 1):
        if aim is not None:
            yield _end_of_arrow("s", number, source[0], max(source[1].start_ns, source[1].end_ns - 1))
            yield _end_of_arrow("f", number, aim[0], aim[1].start_ns) | {"bp": "e"}


def _first_after(source: Slice, aims: list[tuple[int, Slice]]) -> tuple[int, Slice] | None:
    """The first of `aims` that begins when the source has ended; eager ones name their draft."""
    own = source.span.attributes.get("subset_id")
    named = [aim for aim in aims if own is not None and aim[1].span.attributes.get("draft") == own]
    later = [aim for aim in named or aims if aim[1].start_ns >= source.end_ns]
    return min(later, key=lambda aim: aim[1].start_ns, default=None)


def _end_of_arrow(phase: str, number: int, tid: int, at_ns: int) -> dict[str, Any]:
    return {
        "ph": phase,
        "id": number,
        "pid": _PID,
        "tid": tid,
        "name": "leads to",
        "cat": "specrag",
        "ts": at_ns / 1000,
    }


def _tokens(trace: Trace) -> Iterator[dict[str, Any]]:
    """How many tokens all models together had written by when."""
    drafts = (token.at_ms for draft in trace.drafts for token in draft.tokens)
    times = sorted(at for at in (*drafts, *(token.at_ms for token in trace.answer_tokens)) if at is not None)
    every = -(-len(times) // _SAMPLES) or 1
    for count, at in enumerate(times, 1):
        if count % every == 0 or count == len(times):
            yield {
                "ph": "C",
                "pid": _PID,
                "name": "tokens written",
                "ts": round(at * 1_000_000) / 1000,
                "args": {"tokens": count},
            }
