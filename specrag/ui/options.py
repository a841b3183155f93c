"""What a visitor or a program may choose for one run, checked and turned into that run's settings. Pure.

The page and the endpoint `/ask` go through the same checks: a browser can be made to send anything.
"""

from dataclasses import dataclass
from typing import Any, Final, get_args

from specrag.config import Settings
from specrag.errors import UsageError
from specrag.overrides import for_one_run
from specrag.types import DecisionMode, PartitionName, PipelineName, PresetName

FOCUS_SENTENCES: Final = 3
"""Evidence focus that is switched on reads so many sentences, unless the settings name another number."""
MOST_DRAFTS: Final = 16
"""Where the slider ends; the settings refuse more."""
PIPELINES: Final[dict[PipelineName, str]] = {
    "speculative": "Speculative RAG",
    "standard": "Standard RAG",
    "drafter": "Drafter only",
    "multihop": "Multi-hop RAG",
}
DECISIONS: Final[dict[DecisionMode, str]] = {
    "select": "Select the best draft",
    "synthesise": "Synthesise one answer",
}
PARTITIONS: Final[dict[PartitionName, str]] = {
    "multi-perspective": "Multi-perspective",
    "semantic": "Semantic: a cluster a draft",
    "disjoint": "Disjoint: no passage twice",
    "contiguous": "Contiguous: by rank",
    "random": "Random: the ablation",
}
SCORING: Final[dict[PresetName, str]] = {"default": "Default", "paper": "Paper"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a question is answered. The values may be anything until `run_settings` has checked them."""

    pipeline: str
    decision: str
    partition: str
    drafts: int
    preset: str
    focus: bool
    grounded: bool


def options_of(settings: Settings) -> Options:
    """What holds if nobody chooses."""
    return Options(
        pipeline="speculative",
        decision=settings.decision,
        partition=settings.partition,
        drafts=settings.drafts,
        preset=settings.preset,
        focus=settings.focus_sentences > 0,
        grounded=settings.grounded,
    )


def run_settings(settings: Settings, options: Options) -> tuple[PipelineName, Settings]:
    """The pipeline and the settings of one run. What was not changed stays as the server was started.

    Raises:
        UsageError: an option is unknown or out of range, in one sentence with its name.
    """
    name: PipelineName | None = next(
        (known for known in get_args(PipelineName) if known == options.pipeline), None
    )
    if name is None:
        known = ", ".join(get_args(PipelineName))
        raise UsageError(
            f"There is no pipeline “{_short(options.pipeline)}”; choose one of {', '.join(known)}."
        )
    if options.focus not in (True, False):
        raise UsageError("The option focus is either true or false.")
    before = options_of(settings)
    changed: dict[str, Any] = {
        key: getattr(options, key)
        for key in ("decision", "partition", "drafts", "preset", "grounded")
        if getattr(options, key) != getattr(before, key)
    }
    if bool(options.focus) != before.focus:
        changed["focus_sentences"] = FOCUS_SENTENCES if options.focus else 0
    return name, for_one_run(settings, changed)


def summary(options: Options) -> str:
    """The options in one line, for the closed panel."""
    pipeline = next((label for key, label in PIPELINES.items() if key == options.pipeline), "")
    if options.pipeline != "speculative":
        return f"How: {pipeline}"
    parts = [
        pipeline,
        f"{options.drafts} {'draft' if options.drafts == 1 else 'drafts'}",
        options.partition,
        options.decision,
        *(["paper's scores"] if options.preset == "paper" else []),
        *(["evidence focus"] if options.focus else []),
        *(["groundedness"] if options.grounded else []),
    ]
    return f"How: {', '.join(parts)}"


def _short(value: object) -> str:
    return str(value)[:40]
