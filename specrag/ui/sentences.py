"""Where a run stands, who reads what, and how it ended, in sentences; none of them holds a running clock."""

from typing import Any, assert_never

from specrag.decide import in_contest
from specrag.tracing.trace import Trace
from specrag.types import DecisionKind, Role
from specrag.ui.hop_cards import state_of
from specrag.ui.lanes import draft_numbers
from specrag.ui.markup import time_text
from specrag.ui.readout import is_direct, is_synthesising, winner_of, writer_of


def counted(number: int, word: str) -> str:
    """A number with its word: "1 passage", "8 passages"."""
    return f"{number:,} {word if number == 1 else f'{word}s'}"


def status_text(trace: Trace, *, sharing: int = 0) -> str:
    """Where the run stands, in one sentence; `sharing` other runs use the models at the same time."""
    match trace.status:
        case "failed":
            return f"Failed: {trace.error.message if trace.error else 'the run gave no reason.'}"
        case "cancelled":
            return f"Stopped: {trace.error.message}" if trace.error else "Stopped."
        case "done":
            return f"Done in {time_text(trace.elapsed_ms)}: {_outcome(trace)}."
        case "running":
            shared = sharing > 0 and not trace.ahead
            tail = f"; shares the models with {counted(sharing, 'other run')}" if shared else ""
            return f"{_progress(trace)}{tail}"
        case _:
            assert_never(trace.status)


def waiting_text(trace: Trace) -> str:
    """Who is ahead of a run that waits for its turn; empty once it has begun."""
    if not trace.ahead or trace.status != "running":
        return ""
    are = "is" if trace.ahead == 1 else "are"
    return f"{counted(trace.ahead, 'run')} {are} ahead of this one"


def reader_text(trace: Trace) -> str:
    """Which model reads what, where there is no board of drafts to show it; empty for a drafting run."""
    name = _named(trace, writer_of(trace))
    all_of_them = f"all {counted(len(trace.passages), 'passage')}" if trace.passages else "all passages"
    if trace.pipeline == "multihop":
        return (
            f"Multi-hop RAG: {name} looks for passages, notes what they say and asks for what is missing; "
            "then it answers from its notes and everything found. Nothing is verified."
        )
    if trace.pipeline in ("standard", "drafter"):
        kind = "Standard RAG" if trace.pipeline == "standard" else "Drafter only"
        one = "the one passage found" if len(trace.passages) == 1 else f"{all_of_them} in one prompt"
        return f"{kind}: {name} reads {one} and writes the answer itself. Nothing is drafted or verified."
    if is_direct(trace):
        what = "it" if len(trace.passages) == 1 else "them all in one prompt"
        return f"{name[:1].upper()}{name[1:]} reads {what} and writes the answer itself: there are no drafts."
    return ""


def rewriting_text(trace: Trace) -> str:
    """How a follow-up became the question that was asked; empty for one that stands alone."""
    span = next((span for span in trace.spans if span.name == "rewrite"), None)
    if span is None or trace.rewritten is None:
        return ""
    if span.attributes.get("how") == "terms":
        return "the main words of the conversation were added"
    return "rewritten by a model"


def headline(trace: Trace) -> str:
    """The line above the answer: how it came about."""
    match trace.status:
        case "running":
            return _headline_running(trace)
        case "failed":
            return "The run failed"
        case "cancelled":
            return "Stopped"
        case "done":
            return _headline_done(trace, trace.decision.kind if trace.decision else "direct")
        case _:
            assert_never(trace.status)


def _headline_running(trace: Trace) -> str:
    if trace.ahead:
        return "Waiting for its turn"
    if trace.answer is None:
        return "Working on it"
    afresh = " one answer from the drafts" if is_synthesising(trace) and trace.drafts else ""
    return f"The {writer_of(trace)} is writing{afresh}"


def _headline_done(trace: Trace, kind: DecisionKind) -> str:
    match kind:
        case "selected":
            winner = winner_of(trace)
            chosen = f"Selected: draft {winner} of {len(trace.drafts)}" if winner else "Selected"
            return f"{chosen}, disputed" if trace.decision and trace.decision.sides else chosen
        case "synthesised":
            return f"Synthesised: the verifier wrote one answer from {counted(_contest(trace), 'draft')}"
        case "fallback":
            return "Fallback: no draft was good enough, the verifier answered afresh from all passages"
        case "abstained":
            return "No answer in these documents"
        case "direct":
            hops = f", {counted(len(trace.hops), 'hop')}" if trace.hops else ""
            return f"{_HOW[trace.pipeline]}{hops}, not verified"
        case _:
            assert_never(kind)


_HOW = {
    "speculative": "Few passages, answered at once",
    "standard": "Standard RAG",
    "drafter": "Drafter only",
    "multihop": "Multi-hop RAG",
}


def _directly(trace: Trace) -> str:
    if trace.pipeline == "multihop":
        return f"the verifier answered after {counted(len(trace.hops), 'hop')}"
    return f"the {writer_of(trace)} answered from all passages"


def _progress(trace: Trace) -> str:
    if trace.ahead:
        return waiting_text(trace)
    return _written_afresh(trace) or _read_or_found(trace)


def _written_afresh(trace: Trace) -> str:
    """What the last steps say: verifying, and an answer that a model writes itself."""
    open_steps = {span.name for span in trace.spans if span.end_ms is None}
    writer = writer_of(trace)
    if "fallback" in open_steps:
        return "No draft was good enough: the verifier answers afresh from all passages"
    if "synthesise" in open_steps:
        return "The verifier writes one answer from the drafts"
    if "verify" in open_steps and "draft" not in open_steps:
        return f"Verifying {counted(sum(draft.usable for draft in trace.drafts), 'draft')} in one pass"
    if trace.answer:
        return f"The {writer} is writing the answer"
    return f"The {writer} reads {counted(len(trace.passages), 'passage')}" if "answer" in open_steps else ""


def _read_or_found(trace: Trace) -> str:
    """What the first steps say: the rewriting of a follow-up, passages, drafts, hops."""
    if any(span.name == "rewrite" and span.end_ms is None for span in trace.spans):
        return "Making the follow-up a question that stands alone"
    if total := len(draft_numbers(trace)):
        done = sum(draft.finish_reason is not None for draft in trace.drafts)
        return f"Drafting: {done} of {counted(total, 'draft')} done"
    if trace.hops:
        return _hopping(trace)
    return f"{counted(len(trace.passages), 'passage')} found" if trace.passages else "Looking for passages"


def _hopping(trace: Trace) -> str:
    hop = trace.hops[-1]
    match state_of(trace, hop):
        case "searching":
            return f"Hop {hop.number}: looking for passages"
        case "reading":
            return f"Hop {hop.number}: reading what was found"
        case "noting":
            return f"Hop {hop.number}: noting what was found"
        case "asking":
            return f"Hop {hop.number}: asking for what is missing"
        case "done" | "stopped":
            return f"{counted(len(trace.hops), 'hop')} done"


def _outcome(trace: Trace) -> str:
    match trace.decision.kind if trace.decision else "direct":
        case "selected":
            disputed = ", which others dispute" if trace.decision and trace.decision.sides else ""
            return f"draft {winner_of(trace)} of {len(trace.drafts)} was selected{disputed}"
        case "synthesised":
            return f"one answer was written from {counted(_contest(trace), 'draft')}"
        case "fallback":
            return "no draft was good enough, the verifier answered from all passages"
        case "abstained":
            return "the documents do not hold an answer"
        case "direct":
            return _directly(trace)


def _contest(trace: Trace) -> int:
    return len(in_contest(trace.drafts))


def _named(trace: Trace, role: Role) -> str:
    """The model in a role with its name, as far as the trace knows it."""
    models: Any = trace.environment.get("models")
    about: Any = models.get(role) if isinstance(models, dict) else None
    name: Any = about.get("name") if isinstance(about, dict) else None
    return f"the {role}, {name}," if isinstance(name, str) and name else f"the {role}"
