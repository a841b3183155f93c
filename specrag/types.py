"""The vocabulary: one frozen value per word of the documentation, and nothing that does work.

Read top to bottom these are the stages of a run: documents become chunks, chunks become passages, passages
become subsets, a subset becomes a draft, a draft gets a verdict, the verdicts become a decision, and the
decision becomes an answer. All log-probabilities are natural logarithms; all times are milliseconds since
the run began.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["drafter", "verifier"]
Part: TypeAlias = Literal["rationale", "answer", "note", "query"]
"""What a stretch of written text is: of a draft, rationale and answer; of a hop, note and next query."""
PipelineName: TypeAlias = Literal["speculative", "standard", "drafter", "multihop"]
PartitionName: TypeAlias = Literal["multi-perspective", "semantic", "disjoint", "contiguous", "random"]
SearchName: TypeAlias = Literal["hybrid", "dense", "bm25"]
AccessName: TypeAlias = Literal["shared", "visitor", "login"]
PresetName: TypeAlias = Literal["default", "paper"]
DecisionMode: TypeAlias = Literal["select", "synthesise"]
DecisionKind: TypeAlias = Literal["selected", "synthesised", "fallback", "abstained", "direct"]
FinishReason: TypeAlias = Literal["stop", "length", "error", "cancelled"]
Precision: TypeAlias = Literal["float16", "float32", "plain"]
RunStatus: TypeAlias = Literal["running", "done", "failed", "cancelled"]
StepName: TypeAlias = Literal["retrieve", "partition", "draft", "verify", "decide"]
"""The steps of a speculative run, in their order; another run can start from any of them."""
Rating: TypeAlias = Literal["up", "down"]
"""What a person thought of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A heading within the text of a page."""

    start: int
    """Where it begins in the page's text, in code points."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page, slide, sheet or chapter of a file (or the whole file, where it has none), as text."""

    text: str
    number: int | None = None
    """Counted from 1; None where the format has no pages."""
    section: str | None = None
    """Name of the sheet or chapter, title of the slide."""
    headings: tuple[Heading, ...] = ()
    """Headings within the text, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file that was read. `id` follows from the bytes, so the same file is the same document."""

    id: str
    title: str
    source: str
    """The file name as the visitor knows it; never a path of this machine."""
    pages: tuple[Page, ...]
    published_at: str | None = None
    """ISO date that the document itself states, if any."""
    encoding: str | None = None
    media_type: str = "text/plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentInfo:
    """A document as the catalogue lists it, without its text."""

    id: str
    title: str
    source: str
    pages: int
    chunks: int
    added_at: str
    published_at: str | None = None
    encoding: str | None = None
    media_type: str = ""
    """Empty for documents that an older version of this program has stored, as are the next three."""
    characters: int = 0
    bytes: int = 0
    """Size of the file."""
    chunker: str = ""
    """Fingerprint of the way in which it was cut into chunks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A stretch of one page of a document, small enough for the embedder."""

    id: str
    document_id: str
    title: str
    source: str
    text: str
    position: int
    """Number of the chunk in its document, from 0."""
    page: int | None = None
    published_at: str | None = None
    section: str | None = None
    """The heading that it stands under, or the name of its sheet or chapter."""
    lead: str | None = None
    """Header row of the table that the chunk continues, which is not part of its own text."""
    part: int = 0
    """Number of its page in the document, from 0, whether or not the format has pages."""
    start: int = 0
    """Where it begins in the text of its page, in code points."""
    gap: str = ""
    """White space between the chunk before it on the same page and this one; empty if they overlap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A chunk that was retrieved for a question."""

    id: str
    document_id: str
    title: str
    text: str
    page: int | None
    source: str
    published_at: str | None
    score: float
    """Cosine similarity to the question, cut to [0, 1]."""
    section: str | None = None
    """The heading that it stands under, or the name of its sheet or chapter."""
    lead: str | None = None
    """Header row of the table that the passage continues, which is not part of its text."""
    dense_rank: int | None = None
    """Place by similarity of vectors, from 1; None if it is not among those compared."""
    bm25_rank: int | None = None
    """Place by BM25, from 1; None if it is not among those compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """The passages that one draft is written from."""

    id: str
    perspective: str
    """The terms that set this subset apart from the others, for a person to read."""
    passage_ids: tuple[str, ...]
    clusters: tuple[int, ...] = ()
    """Cluster of each passage, in the order of `passage_ids`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where a passage lies on the perspective map: the two main directions of its embedding."""

    passage_id: str
    x: float
    y: float
    """Principal components of the question-conditioned embeddings; only distances mean something."""
    cluster: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """An earlier question of a conversation with the answer that it got."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a model was sent, apart from the drafts' prompts, which their drafts keep."""

    role: Role
    step: str
    """Name of the span that it was sent in."""
    text: str
    """As it was sent, special tokens included."""
    tokens: int
    draft: str | None = None
    """Subset id of the draft that it is about, if it is about one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """The run that another run was forked from."""

    run_id: str
    step: StepName
    """The first step that was done anew; what came before it was taken over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprob:
    """One token of a marked span, with the natural log of its probability."""

    text: str
    logprob: float
    part: Part
    at_ms: float | None = None
    """When the token was decoded; None for tokens that were only read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What is known of a draft's worth. Each is in (0, 1], None while unknown."""

    draft: float | None = None
    """rho_draft (paper, section 3.3), length-normalised, halved to stay within (0, 1]."""
    self_containment: float | None = None
    """rho_SC: geometric mean of P(answer, rationale | question), by the verifier."""
    self_reflection: float | None = None
    """rho_SR: P(Yes) over P(Yes) + P(No) after the reflection statement, by the verifier."""
    grounded: float | None = None
    """P(draft | question, passages) by the verifier; only on request."""
    relevance: float | None = None
    """The retriever's view of the subset: similarity of its nearest evidence to the question."""
    combined: float | None = None
    """Weighted geometric mean of the components."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSums:
    """Raw sums of log-probabilities and their token counts, before any normalisation."""

    rationale: float | None = None
    rationale_tokens: int = 0
    answer: float | None = None
    answer_tokens: int = 0
    self_containment: float | None = None
    self_containment_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A rationale and an answer, written from one subset."""

    subset_id: str
    rationale: str = ""
    answer: str = ""
    citations: tuple[str, ...] = ()
    """Ids of the passages that the draft rests on."""
    abstained: bool = False
    finish_reason: FinishReason | None = None
    """None while the draft is still being written."""
    error: str | None = None
    tokens: tuple[TokenLogprob, ...] = ()
    verifier_tokens: tuple[TokenLogprob, ...] = ()
    scores: Scores = field(default_factory=Scores)
    log_sums: LogSums = field(default_factory=LogSums)
    prompt: str = ""
    """The prompt as it was sent, special tokens included."""
    prompt_tokens: int = 0

    @property
    def usable(self) -> bool:
        """Whether the draft finished with an answer; an abstention is usable, a failure is not."""
        return self.finish_reason in ("stop", "length") and bool(self.answer.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the verifier says of one draft."""

    subset_id: str
    scores: Scores
    log_sums: LogSums
    verifier_tokens: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One answer of a dispute, with what it rests on."""

    draft_index: int
    answer: str
    passage_ids: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    """Title of each passage, with its date where the document states one: "Service bulletin (2025-03-01)"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Which draft won, and why."""

    kind: DecisionKind
    draft_index: int | None
    reason: str
    margin: float | None = None
    """Share of the score mass by which the winning answer leads the next different one, in [0, 1]; None if it
    won by the date of its source and does not lead."""
    agreement: float | None = None
    """Share of the drafts in the contest that give the winning answer, in (0, 1]."""
    conflict: str | None = None
    """A sentence that names both sides of a dispute with their sources and dates."""
    sides: tuple[Side, ...] = ()
    """The disputed answers, the chosen one first; empty without a conflict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One round of multi-hop RAG: a query, what it found, what was noted, and what to look for next."""

    number: int
    """Counted from 1."""
    query: str
    passage_ids: tuple[str, ...] = ()
    note: str = ""
    next_query: str | None = None
    """None when no further hop follows."""
    finished: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the visitor asked for."""

    text: str
    citations: tuple[str, ...] = ()
    confidence: float | None = None
    """In (0, 1], not a calibrated probability: of a draft's answer its share of the score mass, of an answer
    that one model wrote itself the geometric mean of its token probabilities; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A named stretch of time. `end_ms` is None while it is open."""

    id: str
    parent_id: str | None
    name: str
    start_ms: float
    end_ms: float | None = None
    attributes: dict[str, str | int | float | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleUsage:
    """Tokens that one role read and wrote during a run."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    forward_passes: int = 0
    """Passes that score without decoding; 0 for the drafter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What a person may know of a model: never a secret, never a path of this machine."""

    name: str
    parameters: int
    device: str
    dtype: str
    context: int
    notes: tuple[str, ...] = ()
    """What the model cannot do and should, one sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInfo:
    """A failed run's error, as one sentence."""

    type: str
    message: str
