"""Seeded texts of exactly so many tokens: both ways read the same ones, and no cache has seen them before.

They are drawn from short common words, each of which is one token, with the space before it, in the
vocabularies of these families. Drafts are drawn as well: random weights write noise, which would be another
number of tokens when it is read back as text, and a draft that is shorter than asked would flatter its
verification.
"""

import random
from dataclasses import dataclass
from typing import Final

from specrag.errors import UsageError
from specrag.types import Passage

_COMMON: Final = (
    "time year people way day man thing woman life child world school state family student group country "
    "problem hand part place case week company system program question work government number night point "
    "home water room mother area money story fact month lot right study book eye job word business issue "
    "side kind head house service friend father power hour game line end member law car city community name "
    "president team minute idea kid body information back parent face others level office door health person "
    "art war history party result change morning reason research girl guy moment air teacher force"
)
_WORDS: Final = tuple(_COMMON.split())
_QUESTION: Final = 12
"""Tokens of a question, about as many as people type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """How much is read and written, in both ways alike."""

    passages: int = 10
    """K."""
    passage_tokens: int = 100
    drafts: int = 5
    """m."""
    per_draft: int = 2
    """k: passages that a draft reads."""
    tokens: int = 64
    """L: written by standard RAG, and by each draft in its rationale and its answer together."""
    rationale: int = 32
    """Of these, how many are the draft's rationale."""

    def __post_init__(self) -> None:
        """Refuse lengths that leave nothing to measure.

        Raises:
            UsageError: a number is too small, or does not suit the others.
        """
        for name in ("passages", "passage_tokens", "drafts", "per_draft", "rationale"):
            if getattr(self, name) < 1:
                raise UsageError(f"The length {name} is {getattr(self, name)}; it must be 1 at least.")
        if self.per_draft > self.passages:
            raise UsageError(
                f"A draft cannot read {self.per_draft} of {self.passages} passages; lower --per-draft."
            )
        if self.rationale >= self.tokens:
            raise UsageError(
                f"A rationale of {self.rationale} tokens leaves nothing of {self.tokens} to the answer; "
                "lower --rationale or raise --tokens."
            )

    @property
    def answer(self) -> int:
        """Tokens of a draft's answer."""
        return self.tokens - self.rationale


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one repetition is about: a question, its passages, and drafts as they will be verified."""

    question: str
    passages: tuple[Passage, ...]
    subsets: tuple[tuple[Passage, ...], ...]
    """The passages of each draft."""
    drafted: tuple[tuple[str, str], ...]
    """Rationale and answer of each draft."""


def work_of(lengths: Lengths, *, seed: int, repetition: int) -> Work:
    """The work of one repetition; another repetition has other texts of the same lengths."""
    source = random.Random(f"{seed} {repetition}")  # noqa: S311 - texts to read, no secrets
    count = lengths.passages
    passages = tuple(_passage(number, words(lengths.passage_tokens, source)) for number in range(count))
    return Work(
        question=words(_QUESTION, source),
        passages=passages,
        subsets=tuple(
            tuple(passages[(draft * lengths.per_draft + place) % count] for place in range(lengths.per_draft))
            for draft in range(lengths.drafts)
        ),
        drafted=tuple(
            (words(lengths.rationale, source), words(lengths.answer, source)) for _ in range(lengths.drafts)
        ),
    )


def words(count: int, source: random.Random) -> str:
    """A text of `count` tokens when a space stands before it."""
    return " ".join(source.choice(_WORDS) for _ in range(count))


def _passage(number: int, text: str) -> Passage:
    return Passage(
        id=f"p{number}",
        document_id=f"p{number}",
        title="Passage",
        text=text,
        page=None,
        source="",
        published_at=None,
        score=0.5,
    )
