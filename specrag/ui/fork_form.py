"""A run again from one of its steps: which settings that step can still change, and what the form says. Pure.

A fork takes over what came before its step, so only what belongs to that step and to later ones counts: who
forks from the verification cannot have more drafts. What the form does not say stays as the parent had it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from specrag.config import PRESETS, Settings
from specrag.errors import UsageError
from specrag.forking import STEPS, settings_of
from specrag.overrides import for_one_run
from specrag.tracing.trace import Trace
from specrag.types import PipelineName, StepName
from specrag.ui.options import PIPELINES

LABELS: Final[dict[StepName, str]] = {
    "retrieve": "Retrieve: everything anew",
    "partition": "Partition: the same passages",
    "draft": "Draft: the same subsets",
    "verify": "Verify: the same drafts",
    "decide": "Decide: the same scores",
}
"""The steps, and what a fork from each takes over."""
BELONGS: Final[dict[str, StepName]] = {
    "partition": "partition",
    "drafts": "partition",
    "passages_per_draft": "partition",
    "seed": "partition",
    "draft_instruction": "draft",
    "draft_with": "draft",
    "verify_with": "verify",
    "grounded": "verify",
    "decision": "decide",
    "threshold": "decide",
    "pool": "decide",
    "weights": "decide",
}
"""The step that reads a setting first."""
WEIGHTS: Final = tuple(PRESETS["default"])
_WHOLE: Final = frozenset({"drafts", "passages_per_draft", "seed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkForm:
    """What stands in the form. The values may be anything until the settings have checked them."""

    step: Any = "partition"
    question: Any = ""
    pipeline: Any = "speculative"
    settings: Mapping[str, Any] = field(default_factory=dict)
    """By the names of `BELONGS`."""


def form_of(trace: Trace, usual: Settings) -> ForkForm:
    """The form as a run fills it: its own settings, and what this program takes where it names none."""
    theirs = _theirs(trace, usual)
    settings = {name: getattr(theirs, name) for name in BELONGS if name != "weights"}
    speculative = trace.pipeline == "speculative"
    return ForkForm(
        step="partition" if speculative and trace.passages else "retrieve",
        question=trace.question,
        pipeline=trace.pipeline,
        settings={**settings, "weights": theirs.weights.model_dump()},
    )


def _theirs(trace: Trace, usual: Settings) -> Settings:
    """The settings of a run; one from a file may name what this program would refuse."""
    try:
        return for_one_run(usual, settings_of(trace))
    except UsageError:
        return usual


def step_of(value: Any) -> StepName:
    """The step that was chosen.

    Raises:
        UsageError: it is none.
    """
    known = next((step for step in STEPS if step == value), None)
    if known is None:
        raise UsageError(f"Choose the step to begin with: {', '.join(STEPS)}.")
    return known


def pipeline_of(form: ForkForm, step: StepName) -> PipelineName:
    """The pipeline of the fork; only speculative runs have drafts to take over.

    Raises:
        UsageError: it is none.
    """
    if STEPS.index(step) >= STEPS.index("draft"):
        return "speculative"
    names: tuple[PipelineName, ...] = get_args(PipelineName)
    known = next((name for name in names if name == form.pipeline), None)
    if known is None:
        raise UsageError(f"Choose a pipeline: {', '.join(PIPELINES.values())}.")
    return known


def overrides_of(trace: Trace, form: ForkForm, step: StepName) -> dict[str, Any]:
    """The settings of the fork: its parent's, and what the form says of this step and of later ones."""
    own = {
        name: _whole(value) if name in _WHOLE else value
        for name, value in form.settings.items()
        if name in BELONGS and STEPS.index(BELONGS[name]) >= STEPS.index(step) and value is not None
    }
    return settings_of(trace) | own


def question_of(trace: Trace, form: ForkForm, step: StepName) -> str | None:
    """Another question than the parent's; only a fork from the first step can ask one."""
    asked = form.question if isinstance(form.question, str) else ""
    return asked if step == "retrieve" and asked.strip() and asked.strip() != trace.question else None


def wished(form: ForkForm, wish: object) -> ForkForm:
    """The form with what somebody tried out on the stored scores; whatever is unknown there is left out."""
    told = wish if isinstance(wish, Mapping) else {}
    settings = dict(form.settings)
    weights = told.get("weights")
    if isinstance(weights, Mapping):
        settings["weights"] = {
            **settings["weights"],
            **{name: weights[name] for name in WEIGHTS if _is_number(weights.get(name))},
        }
    if _is_number(told.get("threshold")):
        settings["threshold"] = told["threshold"]
    if isinstance(told.get("pool"), bool):
        settings["pool"] = told["pool"]
    drafts = told.get("drafts")
    fewer = isinstance(drafts, int) and not isinstance(drafts, bool) and drafts != settings.get("drafts")
    if fewer:
        settings["drafts"] = drafts
    return ForkForm(
        step="partition" if fewer else "decide",
        question=form.question,
        pipeline=form.pipeline,
        settings=settings,
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Any) -> Any:
    """Sliders of a browser say 4.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
