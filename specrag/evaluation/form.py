"""The form of `specrag.eval/1` as far as it is shown; see `document.py` for what its parts mean."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from specrag.evaluation.form_parts import (
    MOST_FILES,
    MOST_SYSTEMS,
    Count,
    Known,
    Named,
    Number,
    Part,
    Span,
    Spread,
    Text,
)

_MOST_COMPARED: Final = 20 * MOST_SYSTEMS
"""Differences: each pipeline is set against one other, in a few metrics."""


class _Estimates(Part):
    intervals: Annotated[dict[Text, Span], Field(max_length=200, default_factory=dict)]
    counts: Annotated[dict[Text, Count], Field(max_length=200, default_factory=dict)]
    """Over how many questions a figure is, where that may be fewer than all."""


class _Difference(Part):
    mean: Known
    low: Known
    high: Known
    n: Count
    clear: bool
    p: Known = None


class _Auc(Part):
    within: Known
    pooled: Known
    questions: Count
    drafts: Count


class _Choices(_Estimates):
    n: Count
    by_no_draft: Count | None = None
    worth: Named
    selected_minus: Annotated[dict[Text, _Difference], Field(max_length=200, default_factory=dict)]
    auc: Annotated[dict[Text, _Auc], Field(max_length=50, default_factory=dict)]


class _Bin(Part):
    low: Number
    high: Number
    n: Count
    confidence: Known
    accuracy: Known


class _Calibration(Part):
    error: Known = None
    bins: Annotated[list[_Bin], Field(max_length=100, default_factory=list)]


class _Failure(Part):
    question: Text
    error: Text


class _Pipeline(_Estimates):
    n: Count
    failed: Annotated[list[_Failure], Field(default_factory=list)]
    metrics: Named
    latency: Spread
    usage: Annotated[dict[Text, Spread], Field(max_length=10, default_factory=dict)]
    calibration: _Calibration
    choices: _Choices | None = None


_Pipelines: TypeAlias = Annotated[dict[Text, _Pipeline], Field(max_length=MOST_SYSTEMS)]


class _Compared(_Difference):
    pipeline: Text
    against: Text
    metric: Text


class _Dataset(Part):
    n: Count
    left_out: Count = 0
    pipelines: _Pipelines


class _Named(Part):
    name: Text = "?"


class _Environment(Part):
    models: Annotated[dict[Text, _Named], Field(max_length=10, default_factory=dict)]
    versions: Annotated[dict[Text, Text], Field(max_length=50, default_factory=dict)]
    device: Text = "unknown"


class _Kappa(Part):
    mean: Number
    low: Number
    high: Number
    clear: bool


class _Agreement(Part):
    n: Count
    share: Known = None
    kappa: _Kappa | None = None


_Counts: TypeAlias = Annotated[dict[Text, Count], Field(max_length=20)]


class _Judged(Part):
    verdicts: Annotated[_Counts, Field(default_factory=dict)]
    agreement: _Agreement | None = None
    marks: Annotated[dict[Text, _Counts], Field(max_length=20, default_factory=dict)]


class _Asked(Part):
    by: Text


class _Tokens(Part):
    prompt: Count
    completion: Count
    uncounted: Count = 0


class _JudgedFile(Part):
    agreement: _Agreement


class _Judge(Part):
    model: Text
    answered_as: Annotated[list[Text], Field(default_factory=list)]
    temperature: Known = None
    """None where it was not told one, or not the same always."""
    problem: Text | None = None
    tokens: _Tokens | None = None
    marks: Annotated[dict[Text, _Asked], Field(max_length=20, default_factory=dict)]
    agreement: _Agreement | None = None
    datasets: Annotated[dict[Text, _JudgedFile], Field(max_length=MOST_FILES, default_factory=dict)]
    pipelines: Annotated[dict[Text, _Judged], Field(max_length=MOST_SYSTEMS, default_factory=dict)]


class Evaluation(Part):
    """The report of an evaluation."""

    schema_: Literal["specrag.eval/1"] = Field(alias="schema")
    dataset: Text
    n: Count
    finished: bool
    seed: Count
    corpus: Text
    command: Text = ""
    pipelines: Annotated[_Pipelines, Field(min_length=1)]
    differences: Annotated[list[_Compared], Field(max_length=_MOST_COMPARED, default_factory=list)]
    datasets: Annotated[dict[Text, _Dataset], Field(max_length=MOST_FILES, default_factory=dict)]
    judge: _Judge | None = None
    """None where no model was asked."""
    environment: _Environment
