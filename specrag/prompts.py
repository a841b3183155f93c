"""Every text that a model is given, as data.

The question comes before the evidence, so that all drafts of a run share the longest possible prefix. The
labels start the lines of the guided template; they are read by the model and never counted in a score.
Segments are tokenised apart, so each begins with the space before its first word and none ends with one: that
is how the models' tokenizers cut running text.
"""

from collections.abc import Sequence

from specrag.models.base import Choice, Conversation, Segment, Turn
from specrag.text import without_citations
from specrag.types import Draft, Exchange, Passage

DRAFT_INSTRUCTION = "Answer the question with the passages."
HOP_INSTRUCTION = (
    "Answer the question step by step. Note what the passages say about it, then ask for the fact that is "
    "still missing; if none is missing, write: nothing."
)
VERIFY_INSTRUCTION = "Answer the question with a short answer and the evidence for it."
SYNTHESIS_INSTRUCTION = (
    "Write one answer to the question from the drafts below; each was written from other passages. Put the "
    "number of every draft that you use behind what you take from it, like [2]."
)
SYNTHESIS_DISPUTE = "Show both sides, each with its source and date."
REWRITE_INSTRUCTION = (
    "Rewrite the follow-up question so that it can be understood without the conversation. Replace words "
    "like it or she by what they stand for."
)
REFLECTION = "Do you think the explanation supports the answers? (Yes or No)"
"""The paper's statement R (section 3.3)."""

RATIONALE_LABEL = "Rationale: According to the passages,"
ANSWER_LABEL = "Answer: According to the passages,"
"""The drafter goes on in mid-sentence: left to begin by itself, a small model announces an answer and stops.

Written without a space at the end: the first token of a span carries its own.
"""
NOTE_LABEL = "Note: According to the passages,"
QUERY_LABEL = "Follow-up question:"
SYNTHESIS_LABEL = "Answer: According to the drafts,"
REWRITE_LABEL = "Standalone question:"
READ_ANSWER_LABEL = "Answer:"
READ_RATIONALE_LABEL = "Rationale:"
"""What the verifier reads before answer and rationale; it sees no passages, so none are named."""

REFLECTION_CHOICE = Choice(
    name="reflection", options={"yes": ("Yes", " Yes", "yes", " yes"), "no": ("No", " No", "no", " no")}
)


def draft_conversation(question: str, passages: Sequence[Passage], instruction: str = "") -> Conversation:
    """What the drafter reads for one subset; it goes on after the rationale label.

    An `instruction` replaces the one that it is given else.
    """
    return _over_passages(instruction or DRAFT_INSTRUCTION, question, passages, label=RATIONALE_LABEL)


def direct_conversation(
    question: str, passages: Sequence[Passage], notes: Sequence[str] = ()
) -> Conversation:
    """What one model reads to answer from all passages at once; it goes on after the answer label.

    `notes` are what multi-hop RAG wrote down on its way.
    """
    return _over_passages(DRAFT_INSTRUCTION, question, passages, notes, label=ANSWER_LABEL)


def hop_conversation(question: str, passages: Sequence[Passage], notes: Sequence[str]) -> Conversation:
    """What the verifier reads in one hop: the passages of this hop, the notes of the earlier ones."""
    return _over_passages(HOP_INSTRUCTION, question, passages, notes, label=NOTE_LABEL)


def rewrite_conversation(earlier: Sequence[Exchange], follow_up: str) -> Conversation:
    """What a model reads to make a follow-up stand alone; it goes on after the label."""
    told = "".join(f"\nQuestion: {one.question}\nAnswer: {one.answer}" for one in earlier)
    asked = (
        Segment(text=f"{REWRITE_INSTRUCTION}\n\nConversation:"),
        Segment(text=told),
        Segment(text="\n\nFollow-up question:"),
        Segment(text=f" {follow_up}"),
    )
    return Conversation(
        turns=(
            Turn(role="user", segments=asked),
            Turn(role="assistant", segments=(Segment(text=REWRITE_LABEL),)),
        )
    )


def verify_conversation(question: str, rationale: str, answer: str) -> Conversation:
    """What the verifier reads of one draft: Q, answer, rationale, R (paper, section 3.3); no passages."""
    return Conversation(
        turns=(
            Turn(
                role="user",
                segments=(Segment(text=f"{VERIFY_INSTRUCTION}\n\nQuestion:"), Segment(text=f" {question}")),
            ),
            Turn(
                role="assistant",
                segments=(
                    Segment(text=READ_ANSWER_LABEL),
                    Segment(text=f" {answer}", span="answer"),
                    Segment(text=f"\n{READ_RATIONALE_LABEL}"),
                    *((Segment(text=f" {rationale}", span="rationale"),) if rationale else ()),
                ),
            ),
            Turn(role="user", segments=(Segment(text=REFLECTION),)),
        )
    )


def grounded_conversation(
    question: str, passages: Sequence[Passage], rationale: str, answer: str, instruction: str = ""
) -> Conversation:
    """What the verifier reads to score a draft with its passages: the drafter's prompt, then the draft."""
    *asked, reply = draft_conversation(question, passages, instruction).turns
    written = (
        *reply.segments,
        *((Segment(text=f" {rationale}", span="rationale"),) if rationale else ()),
        Segment(text=f"\n{ANSWER_LABEL}"),
        Segment(text=f" {answer}", span="answer"),
    )
    return Conversation(turns=(*asked, Turn(role="assistant", segments=written)))


def synthesis_conversation(
    question: str, drafts: Sequence[tuple[int, Draft, Sequence[str]]], dispute: str | None
) -> Conversation:
    """What the verifier reads to write one answer: drafts with number and sources, no passages.

    `dispute` is the sentence that names the two sides of a contradiction.
    """
    asked = (
        Segment(text=f"{SYNTHESIS_INSTRUCTION}\n\nQuestion:"),
        Segment(text=f" {question}"),
        Segment(text="\n\n"),
    )
    shown = tuple(Segment(text=_shown(number, draft, sources)) for number, draft, sources in drafts)
    disputed = (Segment(text=f"{dispute} {SYNTHESIS_DISPUTE}\n\n"),) if dispute else ()
    return Conversation(
        turns=(
            Turn(role="user", segments=(*asked, *shown, *disputed)),
            Turn(role="assistant", segments=(Segment(text=SYNTHESIS_LABEL),)),
        )
    )


def _shown(number: int, draft: Draft, sources: Sequence[str]) -> str:
    """One draft under its number. Its own numbers are those of its passages and would read like drafts."""
    lines = [f"[{number}] {draft.answer}"]
    if draft.rationale:
        lines.append(f"Evidence: {without_citations(draft.rationale)}")
    if sources:
        lines.append(f"Source: {'; '.join(sources)}")
    return "\n".join(lines) + "\n\n"


def _over_passages(
    instruction: str, question: str, passages: Sequence[Passage], notes: Sequence[str] = (), *, label: str
) -> Conversation:
    asked = (
        Segment(text=f"{instruction}\n\nQuestion:"),
        Segment(text=f" {question}"),
        Segment(text="\n\n"),
    )
    noted = (Segment(text="".join(["Notes so far:", *(f"\n- {note}" for note in notes), "\n\n"])),)
    return Conversation(
        turns=(
            Turn(role="user", segments=(*asked, *_evidence(passages), *(noted if notes else ()))),
            Turn(role="assistant", segments=(Segment(text=label),)),
        )
    )


def _evidence(passages: Sequence[Passage]) -> tuple[Segment, ...]:
    """The passages under their numbers; rows of a table come after the names of their columns."""
    segments: list[Segment] = []
    for number, passage in enumerate(passages, 1):
        date = f" ({passage.published_at})" if passage.published_at else ""
        lead = f"{passage.lead}\n" if passage.lead else ""
        segments.append(Segment(text=f"[{number}] {passage.title}{date}\n{lead}{passage.text}\n\n"))
    return tuple(segments)
