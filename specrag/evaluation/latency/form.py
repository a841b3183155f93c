"""The form of `specrag.bench/1` as far as it is shown; see `document.py` for what its parts mean."""

from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from specrag.evaluation.form_parts import MOST, MOST_SIZES, Count, Known, Number, Part, Text

_Interval: TypeAlias = tuple[Number, Number] | None
"""None of a single repetition."""


class _Times(Part):
    median: Number
    low: Number
    high: Number
    n: Count


class _Phase(Part):
    name: Text
    role: Text | None = None
    ms: Number
    spread: _Times
    floor_ms: Known = None
    times_floor: Known = None


class _WaySpread(Part):
    ttft_ms: _Times
    total_ms: _Times


class _Way(Part):
    ttft_ms: Number
    total_ms: Number
    spread: _WaySpread
    phases: Annotated[list[_Phase], Field(max_length=30)]


class _Lengths(Part):
    passages: Count
    passage_tokens: Count
    drafts: Count
    per_draft: Count
    tokens: Count
    rationale: Count


class _Models(Part):
    size_ratio: Known = None


class _Ratio(Part):
    ttft: Number
    total: Number
    ttft_interval: _Interval = None
    total_interval: _Interval = None


class _Machine(Part):
    matrix_gflops: Number
    memory_gb_s: Number


class _FloorRatio(Part):
    ttft: Known = None
    total: Known = None


class _Floor(Part):
    machine: _Machine
    ratio: _FloorRatio


class _Energy(Part):
    standard_j: Known = None
    speculative_j: Known = None
    note: Text = ""


class _Cost(Part):
    what: Text
    standard_dollars: Number
    speculative_dollars: Number
    saved: Number
    assumes: Annotated[list[Text], Field(max_length=20, default_factory=list)]


class _Point(_Ratio):
    verifier: Text
    parameters: Count
    size_ratio: Annotated[float, Field(gt=0, le=MOST, allow_inf_nan=False)]
    floor: Known = None


class _Even(Part):
    ttft: Known = None
    total: Known = None
    method: Text = ""


class _Sweep(Part):
    points: Annotated[list[_Point], Field(max_length=MOST_SIZES)]
    break_even: _Even
    left_out: Annotated[list[Text], Field(max_length=MOST_SIZES, default_factory=list)]


class _Place(Part):
    processor: Text = "an unknown processor"
    cores: Count | None = None
    threads: Count | None = None
    servers: Annotated[dict[Text, Text], Field(max_length=10)] | None = None
    versions: Annotated[dict[Text, Text], Field(max_length=50, default_factory=dict)]


class Latency(Part):
    """The report of a benchmark."""

    schema_: Literal["specrag.bench/1"] = Field(alias="schema")
    label: Text
    ttft_means: Text = ""
    drafter: Text
    verifier: Text
    models: _Models = _Models()
    lengths: _Lengths
    repeats: Count
    warmups: Count
    standard: _Way
    speculative: _Way
    ratio: _Ratio
    floor: Annotated[_Floor | None, BeforeValidator(lambda told: told or None)] = None
    """None behind servers."""
    energy: _Energy = _Energy()
    costs: Annotated[list[_Cost], Field(max_length=100, default_factory=list)]
    sweep: _Sweep | None = None
    environment: _Place
