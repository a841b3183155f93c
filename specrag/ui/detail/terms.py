"""The settings that a run was decided under, read from its trace, and the components of its scores."""

from dataclasses import dataclass
from typing import Any, Final

from specrag.config import PRESETS
from specrag.errors import TraceError
from specrag.tracing.trace import Trace
from specrag.types import Scores
from specrag.ui.score_names import SCORES

COMPONENTS: Final[dict[str, str]] = {name: word for name, word in SCORES.items() if name != "combined"}
"""The parts of a combined score, in the order in which they are shown."""
_MOST: Final = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a decision between drafts depends on."""

    weights: dict[str, float]
    threshold: float
    pool: bool


def terms_of(trace: Trace) -> Terms:
    """The settings of the run; what an older trace does not say is as it was by default.

    Raises:
        TraceError: the trace states something that is no setting.
    """
    given = trace.config.get("weights", PRESETS["default"])
    try:
        weights = {name: _number(given.get(name, 0.0)) for name in COMPONENTS}
        threshold = _number(trace.config.get("threshold", 0.0))
    except (TypeError, ValueError, AttributeError) as error:
        raise TraceError("The weights and the threshold in this trace cannot be read.") from error
    return Terms(weights=weights, threshold=threshold, pool=bool(trace.config.get("pool", True)))


def value_of(scores: Scores, name: str) -> float | None:
    """One component of the scores."""
    value: float | None = getattr(scores, name)
    return value


def _number(value: Any) -> float:
    number = float(value)
    if not 0 <= number <= _MOST:
        raise ValueError(f"{number} is no weight")
    return number
