"""Settings, read once at the start and passed on; nothing else in the program reads the environment.

Every setting is a variable `SPECRAG_<NAME>`. Unknown variables and values out of range are refused when the
settings load, with the variable's name, so that a typing error never runs as a default.
"""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import platformdirs
from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from specrag.errors import UsageError
from specrag.types import AccessName, DecisionMode, PartitionName, Precision, PresetName, Role, SearchName

PREFIX = "SPECRAG_"
S = TypeVar("S", bound=BaseSettings)


PRESETS: dict[PresetName, dict[str, float]] = {
    "paper": {
        "draft": 1.0,
        "self_containment": 1.0,
        "self_reflection": 1.0,
        "grounded": 0.0,
        "relevance": 0.0,
    },
    "default": {
        "draft": 1.0,
        "self_containment": 1.0,
        "self_reflection": 1.0,
        "grounded": 0.0,
        "relevance": 4.0,
    },
}
"""Score weights by name. `paper`: the three rho of section 3.3, equally; `default`: chosen on dev sets."""

PUBLIC: Final = (
    "precision",
    "retrieve",
    "search",
    "candidates",
    "prefer_recent",
    "partition",
    "drafts",
    "passages_per_draft",
    "seed",
    "rationale_tokens",
    "answer_tokens",
    "fallback_tokens",
    "synthesis_tokens",
    "focus_sentences",
    "hops",
    "note_tokens",
    "query_tokens",
    "grounded",
    "direct_passages",
    "decision",
    "eager",
    "pool",
    "newer_within",
    "preset",
    "threshold",
    "draft_instruction",
    "draft_with",
    "verify_with",
)
"""Settings that a trace keeps, beside the names of the models and the weights."""


class ScoreWeights(BaseSettings):
    """Exponents of the weighted geometric mean of a draft's scores; 0 leaves a component out."""

    model_config = SettingsConfigDict(env_prefix=f"{PREFIX}WEIGHT_", extra="forbid", frozen=True)

    draft: float = Field(default=1.0, ge=0, le=10)
    self_containment: float = Field(default=1.0, ge=0, le=10)
    self_reflection: float = Field(default=1.0, ge=0, le=10)
    grounded: float = Field(default=0.0, ge=0, le=10)
    relevance: float = Field(default=4.0, ge=0, le=10)

    @model_validator(mode="after")
    def _not_all_zero(self) -> "ScoreWeights":
        if not any(self.model_dump().values()):
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
    drafter_url: str = Field(
        "",
        description="Base URLs of the servers that run the drafter, with commas between; empty runs it here.",
    )
    drafter_key: SecretStr | None = Field(default=None, description="Key that the drafter's servers want.")
    drafter_tokenizer: str = Field(
        "",
        description="Hugging Face id or folder of the drafter's tokenizer; empty asks the server for ids.",
    )
    verifier_url: str = Field("", description="The same for the verifier.")
    verifier_key: SecretStr | None = None
    verifier_tokenizer: str = ""
    judge: str = Field("", description="Name under which the model that judges answers in `eval` is served.")
    judge_url: str = Field(
        "", description="Base URLs of its servers, with commas between; empty judges none."
    )
    judge_key: SecretStr | None = Field(default=None, description="Key that these servers want.")
    server_ca: Path | None = Field(
        default=None, description="File of the authority that signed the servers' certificates."
    )
    connect_timeout_s: float = Field(
        default=5.0, gt=0, le=600, description="Longest wait for a connection to a server."
    )
    stall_timeout_s: float = Field(
        default=120.0, gt=0, le=86_400, description="Longest silence of a server that is at work."
    )
    eager: bool = Field(
        default=False,
        description="Verify each draft when it is finished, while others are still being written.",
    )

    chroma_url: str = Field("", description="Address of a Chroma server; empty keeps the store in home.")
    chroma_tenant: str = Field("default_tenant", min_length=1)
    chroma_database: str = Field("default_database", min_length=1)
    chroma_token: SecretStr | None = Field(default=None, description="Token that the Chroma server wants.")
    chroma_timeout_s: float = Field(
        default=15.0, gt=0, le=3600, description="Longest silence of the Chroma server within a request."
    )

    precision: Precision = Field(
        "float16",
        description="Layout of the weights on the CPU: float16, float32, or plain as transformers has them.",
    )
    threads: int = Field(default_factory=lambda: os.cpu_count() or 1, ge=1, le=256)

    retrieve: int = Field(default=8, ge=1, le=50, description="K: passages to retrieve.")
    search: SearchName = Field(
        "hybrid", description="How passages are found: by vectors (dense), by words (bm25), or by both."
    )
    candidates: int = Field(
        default=50, ge=1, le=1000, description="Passages that each way of searching puts forward."
    )
    prefer_recent: float = Field(
        default=0.0, ge=0, le=1, description="Weight of a passage's date beside its ranks; 0 ignores dates."
    )
    reranker: str = Field(
        "", description="Hugging Face id or folder of a cross-encoder that orders the candidates, if any."
    )
    partition: PartitionName = "multi-perspective"
    drafts: int = Field(default=4, ge=1, le=16, description="m: subsets, and so drafts.")
    passages_per_draft: int = Field(default=2, ge=1, le=10, description="k: passages in a subset.")
    seed: int = Field(default=0, ge=0)
    draft_instruction: str = Field(
        "",
        max_length=500,
        description="What the drafter is told to do with its passages; empty keeps the built-in instruction.",
    )
    draft_with: Role = Field("drafter", description="Which of the two models writes the drafts.")
    verify_with: Role = Field("verifier", description="Which of them reads the drafts and answers alone.")
    rationale_tokens: int = Field(default=64, ge=4, le=1024)
    answer_tokens: int = Field(default=40, ge=2, le=1024)
    fallback_tokens: int = Field(default=64, ge=8, le=2048)
    synthesis_tokens: int = Field(default=96, ge=8, le=2048)
    focus_sentences: int = Field(
        default=0,
        ge=0,
        le=50,
        description="Evidence focus: sentences a draft reads of its subset; 0 reads all.",
    )
    hops: int = Field(default=3, ge=1, le=3, description="Most rounds of multi-hop RAG.")
    note_tokens: int = Field(default=48, ge=4, le=1024)
    query_tokens: int = Field(default=24, ge=4, le=256)
    direct_passages: int = Field(
        default=3, ge=0, le=50, description="So few passages go to standard RAG at once; 0 never does."
    )
    decision: DecisionMode = Field("select", description="select: the best draft is the answer.")
    newer_within: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="Disputed answers whose shares of the score mass differ by less: the newer source wins.",
    )
    pool: bool = Field(default=True, description="Equal answers add up instead of competing.")
    grounded: bool = Field(
        default=False, description="Also score every draft with its passages before the verifier."
    )
    preset: PresetName = "default"
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

    abandoned_s: float = Field(
        default=60.0,
        ge=0,
        le=86_400,
        description="A run of the page that nobody follows for so long is stopped; 0 lets it end by itself.",
    )
    concurrent_runs: int = Field(
        default=8, ge=1, le=256, description="Runs that share the models at once; later ones wait in line."
    )

    chunk_tokens: int = Field(default=128, ge=16, le=2048)
    chunk_overlap: int = Field(default=24, ge=0, le=1024)
    max_file_mb: int = Field(default=50, ge=1, le=4096)
    max_pages: int = Field(default=2000, ge=1, description="Also slides, sheets and chapters of one file.")
    max_characters: int = Field(default=20_000_000, ge=1000, description="Characters of text of one file.")
    max_unpacked_mb: int = Field(
        default=200, ge=1, le=65_536, description="What a ZIP archive or an Office file may unpack to."
    )
    max_archive_files: int = Field(default=500, ge=1, le=100_000, description="Files in one ZIP archive.")
    max_waiting_files: int = Field(default=500, ge=1, le=100_000, description="Files that wait to be read.")
    read_timeout_s: float = Field(
        default=60.0, gt=0, le=86_400, description="Longest time that one page of a file may take to read."
    )
    read_memory_mb: int = Field(
        default=2048, ge=256, le=1_048_576, description="Memory that reading a file may take."
    )
    ocr: bool = Field(default=True, description="Read scans by OCR where requirements-ocr.txt is installed.")
    keep_originals: bool = Field(
        default=True, description="Keep uploaded files, so that citations can show the page as it looks."
    )
    max_question_characters: int = Field(default=2000, ge=1, le=100_000)

    max_runs: int = Field(
        default=5000, ge=1, le=10_000_000, description="Kept runs; the oldest ones are deleted for new ones."
    )
    max_imported_mb: int = Field(
        default=200,
        ge=0,
        le=1_048_576,
        description="What imported runs of one owner may take; 0 imports none.",
    )
    otlp_endpoint: str = Field(
        default="",
        description="Address of an OpenTelemetry collector (OTLP over HTTP); every run is then sent there.",
    )
    otlp_headers: SecretStr | None = Field(
        default=None, description="Headers for the collector as name=value with commas between."
    )
    otlp_texts: bool = Field(default=True, description="Send texts to the collector, not only figures.")
    mcp: bool = Field(default=False, description="Also serve the tools ask, search and documents over MCP.")

    access: AccessName = Field(
        "shared",
        description="Collections are everybody's, each visitor's own, or each user's after a login.",
    )
    login: SecretStr | None = Field(
        default=None, description="Users as name:password with commas between; wants access=login."
    )
    visitor_days: float = Field(
        default=7.0, gt=0, le=3650, description="A visitor's collections are deleted after so many idle days."
    )
    max_collections: int = Field(default=20, ge=1, le=10_000, description="Collections of one owner.")

    @field_validator("home")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator("draft_instruction")
    @classmethod
    def _readable(cls, value: str) -> str:
        if not value.isprintable():  # a line break would look like the end of the instruction
            raise ValueError("it must be one line of printable characters")
        return value.strip()

    def public(self) -> dict[str, Any]:
        """What a trace keeps of the settings: what decides an answer, and no path of this machine."""
        kept = set(PUBLIC)
        models = {role: model_name(getattr(self, role)) for role in ("drafter", "verifier", "embedder")}
        if not self.models_here:
            kept.remove("precision")  # it is the servers' own
        return {**models, **self.model_dump(include=kept), "weights": self.weights.model_dump()}

    @property
    def models_here(self) -> tuple[str, ...]:
        """The drafter and the verifier, of which those behind servers are left out, as is one named twice."""
        here = [getattr(self, role) for role in ("drafter", "verifier") if not getattr(self, f"{role}_url")]
        return tuple(dict.fromkeys(here))

    @model_validator(mode="after")
    def _login_with_users(self) -> "Settings":
        if (self.access == "login") != (self.login is not None):
            raise ValueError("access=login wants login=name:password, and login wants access=login")
        return self

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
    known = os.environ if environment is None else environment
    _refuse_unknown(known)
    given = {name: value for name, value in overrides.items() if value is not None}
    unweighted = ScoreWeights.model_construct()  # a bad weight is to be named by its own variable, below
    settings = _checked(Settings, PREFIX, **{"weights": unweighted, **given})
    if "weights" in given:
        return settings
    weights = _checked(ScoreWeights, f"{PREFIX}WEIGHT_", **_preset(settings.preset, known))
    return settings.model_copy(update={"weights": weights})


def _preset(name: PresetName, environment: Mapping[str, str]) -> dict[str, float]:
    """The weights of a preset that no variable of its own replaces."""
    own = {variable.removeprefix(f"{PREFIX}WEIGHT_").lower() for variable in environment}
    return {field: weight for field, weight in PRESETS[name].items() if field not in own}


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
