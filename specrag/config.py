"""Settings, read once at the start and passed on; nothing else in the program reads the environment.

Every setting is a variable `SPECRAG_<NAME>`. Unknown variables and values out of range are refused when the
settings load, with the variable's name, so that a typing error never runs as a default.
"""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import platformdirs
from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from specrag.errors import UsageError
from specrag.types import PartitionName

PREFIX = "SPECRAG_"
S = TypeVar("S", bound=BaseSettings)


class ScoreWeights(BaseSettings):
    """Exponents of the weighted geometric mean of a draft's scores; 0 leaves a component out."""

    model_config = SettingsConfigDict(env_prefix=f"{PREFIX}WEIGHT_", extra="forbid", frozen=True)

    draft: float = Field(default=1.0, ge=0, le=10)
    self_containment: float = Field(default=1.0, ge=0, le=10)
    self_reflection: float = Field(default=1.0, ge=0, le=10)
    relevance: float = Field(default=4.0, ge=0, le=10)

    @model_validator(mode="after")
    def _not_all_zero(self) -> "ScoreWeights":
        if not any((self.draft, self.self_containment, self.self_reflection, self.relevance)):
            raise ValueError("at least one score weight must be above 0")
        return self


class Settings(BaseSettings):
    """Everything that can be set, with its default for one machine without an accelerator."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    home: Path = Field(
        default_factory=lambda: Path(platformdirs.user_cache_dir("specrag", appauthor=False)),
        description="Where weights, the embedded store and the traces are kept. Local disk only.",
    )
    host: str | None = Field(default=None, description="Address to listen on; None leaves it to gradio.")
    port: int | None = Field(default=None, ge=1, le=65535)

    drafter: str = Field(
        "smollm2-135m-instruct", min_length=1, description="Embedded name, Hugging Face id or folder."
    )
    verifier: str = Field(
        "smollm2-135m-instruct", min_length=1, description="The same; equal names are loaded once."
    )
    embedder: str = Field(
        "all-minilm-l6-v2", min_length=1, description="Embedded name, Hugging Face id or folder."
    )
    threads: int = Field(default_factory=lambda: os.cpu_count() or 1, ge=1, le=256)

    retrieve: int = Field(default=8, ge=1, le=50, description="K: passages to retrieve.")
    partition: PartitionName = "multi-perspective"
    drafts: int = Field(default=4, ge=1, le=16, description="m: subsets, and so drafts.")
    passages_per_draft: int = Field(default=2, ge=1, le=10, description="k: passages in a subset.")
    seed: int = Field(default=0, ge=0)
    rationale_tokens: int = Field(default=64, ge=4, le=1024)
    answer_tokens: int = Field(default=40, ge=2, le=1024)
    fallback_tokens: int = Field(default=64, ge=8, le=2048)
    weights: ScoreWeights = Field(default_factory=ScoreWeights)
    threshold: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Combined score under which no draft is good enough and the verifier starts afresh.",
    )
    deadline_s: float = Field(
        default=300.0, gt=0, le=86_400, description="A run that takes longer is stopped."
    )

    chunk_tokens: int = Field(default=128, ge=16, le=2048)
    chunk_overlap: int = Field(default=24, ge=0, le=1024)
    max_file_mb: int = Field(default=50, ge=1, le=4096)
    max_pages: int = Field(default=2000, ge=1)
    max_characters: int = Field(default=20_000_000, ge=1000)
    max_question_characters: int = Field(default=2000, ge=1, le=100_000)

    @field_validator("home")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    def public(self) -> dict[str, Any]:
        """What a trace keeps of the settings: what decides an answer, and no path of this machine."""
        kept = [
            "retrieve",
            "partition",
            "drafts",
            "passages_per_draft",
            "seed",
            "rationale_tokens",
            "answer_tokens",
            "fallback_tokens",
            "threshold",
        ]
        models = {role: model_name(getattr(self, role)) for role in ("drafter", "verifier", "embedder")}
        return {**models, **self.model_dump(include=set(kept)), "weights": self.weights.model_dump()}

    @model_validator(mode="after")
    def _overlap_below_size(self) -> "Settings":
        if self.chunk_overlap >= self.chunk_tokens:
            raise ValueError("chunk_overlap must be below chunk_tokens")
        return self


def model_name(setting: str) -> str:
    """How a model is called on the page and in traces: a folder by its last part only."""
    path = Path(setting).expanduser()
    return path.name if path.is_dir() else setting


def load_settings(environment: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Settings from the environment and from `overrides`, which win.

    Raises:
        UsageError: a variable or value that is unknown or out of range, by its name.
    """
    _refuse_unknown(os.environ if environment is None else environment)
    given = {name: value for name, value in overrides.items() if value is not None}
    weights = _checked(ScoreWeights, f"{PREFIX}WEIGHT_")
    return _checked(Settings, PREFIX, **{"weights": weights, **given})


def _checked(kind: type[S], prefix: str, **values: Any) -> S:
    """Settings of one kind, or a sentence that names the variable."""
    try:
        return kind(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = "_".join(str(part) for part in first["loc"]).upper()
        where = f"{prefix}{name}" if name else "The settings"
        raise UsageError(f"{where}: {first['msg']}.") from error
    except SettingsError as error:
        raise UsageError(f"A setting cannot be read: {error}.") from error


def _refuse_unknown(environment: Mapping[str, str]) -> None:
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields if name != "weights"}
    known |= {f"{PREFIX}WEIGHT_{name.upper()}" for name in ScoreWeights.model_fields}
    for name in environment:
        if name.startswith(PREFIX) and name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else "."
            raise UsageError(f"{name} is not a setting of specrag{hint}")
