"""What is compared: a pipeline under settings of its own, by a name that says both.

`speculative:drafts=2+grounded=true` is the speculative pipeline with two drafts whose groundedness is scored.
So a table's first column can be typed again after `--pipelines`; a single weight is `weights.relevance=2`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args

from specrag.config import Settings
from specrag.errors import UsageError
from specrag.overrides import for_one_run
from specrag.types import PartitionName, PipelineName, StepName

Method: TypeAlias = Literal[
    "standard", "drafter", "speculative", "multihop", "closed-book", "closed-book-drafter"
]
"""A pipeline, or a model that answers without any passage."""
METHODS: Final[tuple[Method, ...]] = get_args(Method)
CLOSED_BOOK: Final = frozenset({"closed-book", "closed-book-drafter"})
_WEIGHT: Final = "weights."
_FIRST_STEP: Final[Mapping[str, StepName]] = MappingProxyType(
    {"focus_sentences": "draft", "draft_instruction": "draft", "grounded": "verify", "weights": "decide"}
)
"""The first step that a setting changes, where much of a run comes before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One of those that are compared."""

    name: str
    method: Method
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What it has other than the rest."""
    fork: StepName | None = None
    """It takes over what the plain speculative run of the same question did before this step."""
    padded: bool = False
    """Its verifier reads the drafts as a padded batch instead of a token tree."""

    @property
    def reads(self) -> bool:
        """Whether it is given passages."""
        return self.method not in CLOSED_BOOK

    @property
    def pipeline(self) -> PipelineName:
        """What its traces call it; closed-book ones go by the pipeline of their model."""
        match self.method:
            case "closed-book":
                return "standard"
            case "closed-book-drafter":
                return "drafter"
            case _:
                return self.method

    def under(self, settings: Settings) -> Settings:
        """The settings of its runs.

        Raises:
            UsageError: one of its own is unknown or out of range, or belongs to what is loaded.
        """
        return for_one_run(settings, self.settings)


def systems_of(text: str) -> tuple[System, ...]:
    """The systems of a list with commas, in its order.

    Raises:
        UsageError: a name is unknown or stands twice, or a setting has no value.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError(f"No pipeline is named; choose among {', '.join(METHODS)}.")
    made = tuple(system_of(name) for name in names)
    twice = next((one.name for one in made if names.count(one.name) > 1), None)
    if twice:
        raise UsageError(f"The pipeline “{twice}” is named twice.")
    return made


def system_of(name: str, *, fork: StepName | None = None) -> System:
    """One system by its name.

    Raises:
        UsageError: as `systems_of`.
    """
    method, _, changes = name.partition(":")
    return System(name=name, method=method_of(method), settings=_settings(changes), fork=fork)


def method_of(name: object) -> Method:
    """The method of this name, which may come from anywhere.

    Raises:
        UsageError: there is none.
    """
    for method in METHODS:
        if method == name:
            return method
    raise UsageError(f"There is no pipeline “{str(name)[:40]}”; choose among {', '.join(METHODS)}.")


def forked(system: System) -> System:
    """The system as a fork of the plain speculative run, as far as its settings leave that run as it was."""
    steps = [_FIRST_STEP.get(name) for name in system.settings]
    if system.method != "speculative" or not steps or None in steps:
        return system
    order = get_args(StepName)
    first = min((step for step in steps if step is not None), key=order.index)
    return system_of(system.name, fork=first)


def ablations(*, padded: bool) -> tuple[System, ...]:
    """The paper's ablations that need a model; what does not is decided again from the plain run's drafts.

    With `padded` the verifier is also timed without its token tree.
    """
    names = (
        *(f"partition={name}" for name in get_args(PartitionName) if name != "multi-perspective"),
        *(f"drafts={count}" for count in (2, 8)),
        *(f"passages_per_draft={count}" for count in (1, 4)),
        "focus_sentences=3",
        "grounded=true+weights.grounded=1",  # no preset weighs it, and without a weight it chooses nothing
    )
    made = tuple(forked(system_of(f"speculative:{name}")) for name in names)
    batch = System(name="speculative (padded)", method="speculative", fork="verify", padded=True)
    return (*made, batch) if padded else made


def _settings(text: str) -> dict[str, Any]:
    made = dict(_setting(part) for part in _parts(text))
    weights = {name.removeprefix(_WEIGHT): made[name] for name in made if name.startswith(_WEIGHT)}
    plain = {name: value for name, value in made.items() if not name.startswith(_WEIGHT)}
    return {**plain, "weights": weights} if weights else plain


def _parts(text: str) -> Iterable[str]:
    return (part.strip() for part in text.split("+") if part.strip())


def _setting(part: str) -> tuple[str, Any]:
    """A setting and its value: a number, true, false, or a word."""
    name, equals, value = part.partition("=")
    if not equals or not value:
        raise UsageError(f"“{part[:60]}” is no setting; write NAME=VALUE.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
