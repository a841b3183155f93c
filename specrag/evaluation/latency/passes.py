"""What the models have to compute in each phase, counted from the token ids: no time, no machine, no shape.

A pass reads tokens, each of which looks at those before it, and gives logits at some places. How many
operations and bytes that is follows from a shape (`floor.py`), so that the same counts serve the models that
were measured and those that do not fit this machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from specrag.evaluation.latency.texts import Lengths, Work
from specrag.evaluation.latency.ways import PhaseName
from specrag.models.base import Conversation
from specrag.models.render import Rendered, Renderer
from specrag.models.tree import grow
from specrag.prompts import ANSWER_LABEL, direct_conversation, draft_conversation, verify_conversation
from specrag.types import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Forward passes, `times` of them alike."""

    tokens: int
    """That are computed; what several sequences share counts once."""
    pairs: int
    """A token with a token that it looks at, itself included."""
    logits: int
    """Places at which the next token is predicted."""
    cached: int = 0
    """Tokens whose keys and values are read from memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The passes of one phase."""

    name: PhaseName
    role: Role
    passes: tuple[Pass, ...]

    @property
    def tokens(self) -> int:
        """Of all passes."""
        return sum(one.tokens for one in self.passes)


def counted(work: Work, lengths: Lengths, renderer: Renderer) -> tuple[Counted, ...]:
    """All phases of both ways, as this program's own engine computes them."""
    whole = [renderer.render(direct_conversation(work.question, work.passages)).ids]
    parts = [renderer.render(draft_conversation(work.question, subset)).ids for subset in work.subsets]
    label = len(renderer.encode(f"\n{ANSWER_LABEL}"))
    drafted = [verify_conversation(work.question, *texts) for texts in work.drafted]
    return (
        Counted(name="read", role="verifier", passes=(_reading(whole),)),
        Counted(name="write", role="verifier", passes=_writing(whole, lengths.tokens - 1)),
        Counted(name="draft read", role="drafter", passes=(_reading(parts),)),
        # the label before the answer is fed token by token; the last token of all is not
        Counted(name="draft write", role="drafter", passes=_writing(parts, lengths.tokens + label - 1)),
        Counted(name="verify", role="verifier", passes=(_scoring(drafted, renderer),)),
    )


def _reading(sequences: Sequence[Sequence[int]]) -> Pass:
    """One pass over all prompts, their common beginning once; the next token is predicted after each."""
    tree = grow(sequences)
    last = {path[-1] for path in tree.paths}
    return Pass(tokens=len(tree.tokens), pairs=_pairs(tree.positions), logits=len(last))


def _writing(sequences: Sequence[Sequence[int]], steps: int) -> tuple[Pass, ...]:
    """A token for each row in every step; each looks at all before it, in a cache of its own."""
    read, rows = sum(map(len, sequences)), len(sequences)
    seen = [read + rows * step for step in range(1, steps + 1)]
    return tuple(Pass(tokens=rows, pairs=count, logits=rows, cached=count) for count in seen)


def _scoring(conversations: Sequence[Conversation], renderer: Renderer) -> Pass:
    """One pass over all drafts, the question once; every marked token is predicted, and Yes or No."""
    rendered = [renderer.render(conversation) for conversation in conversations]
    tree = grow([item.ids for item in rendered])
    wanted = {
        path[place] for path, item in zip(tree.paths, rendered, strict=True) for place in _predicting(item)
    }
    return Pass(tokens=len(tree.tokens), pairs=_pairs(tree.positions), logits=len(wanted))


def _predicting(item: Rendered) -> set[int]:
    marked = {place - 1 for start, end in item.spans.values() for place in range(start, end)}
    return marked | {len(item.ids) - 1}


def _pairs(positions: Sequence[int]) -> int:
    return sum(position + 1 for position in positions)
