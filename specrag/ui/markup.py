"""How a value becomes HTML: one environment with autoescape, and the few ways in which numbers are written.

Documents are hostile. Besides the escape, every text loses the characters that could hide or reorder it, and
none can look like a template of Gradio.
"""

import math
import re
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from specrag.types import ModelInfo, Scores
from specrag.ui.theme import HUES

_TEMPLATES: Final = Path(__file__).parent / "templates"
_UNSHOWN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, direction overrides (every datum is isolated by <bdi>) and lone surrogates."""

UNKNOWN: Final = "\N{EN DASH}"

RARE: Final = 0.1
"""Tokens that are less probable are underlined, so that colour is not the only sign."""
_NEARLY_ONE, _SMALL = 0.9999, 0.0001

_BILLION, _MINUTE_MS, _SECOND_MS = 10**9, 60_000, 1000


def render(template: str, **values: Any) -> str:
    """The HTML of `templates/<template>.html`."""
    html = _environment().get_template(f"{template}.html").render(values)
    # Gradio evaluates only its own template, never our value; still, no text of ours can look like one.
    return html.replace("${", "&#36;{").replace("{{", "&#123;{")


def probability(logprob: float) -> float:
    """In [0, 1], also for the values that a broken model may send."""
    return 0.0 if math.isnan(logprob) else math.exp(min(0.0, logprob))


def known_probability(logprob: float) -> float | None:
    """In [0, 1]; None where a model gave no number."""
    return None if math.isnan(logprob) else probability(logprob)


def exact_text(share: float | None) -> str:
    """A probability as exactly as it is of use, and never rounded to 0 or 1."""
    if share is None:
        return "no value"
    if share >= _NEARLY_ONE:
        return "1" if share == 1 else f">{_NEARLY_ONE:.4f}"
    return f"{share:.4f}" if share >= _SMALL or share == 0 else f"{share:.1e}"


def score(scores: Scores, key: str) -> float | None:
    """One component, fit to be the width of a bar."""
    value: float | None = getattr(scores, key)
    return None if value is None or math.isnan(value) else min(1.0, max(0.0, value))


def time_text(ms: float | None) -> str:
    """Short enough for a table, exact enough to compare steps."""
    if ms is None:
        return UNKNOWN
    if ms < _SECOND_MS:
        return f"{ms:.0f} ms"
    if ms < 2 * _MINUTE_MS:
        return f"{ms / _SECOND_MS:.1f} s"
    return f"{int(ms // _MINUTE_MS)} min {int(ms % _MINUTE_MS // _SECOND_MS)} s"


def tick_text(ms: float, end_ms: float) -> str:
    """A round time on an axis that ends at `end_ms`: one unit for all ticks, as short as it goes."""
    return "0" if ms == 0 else f"{ms:.4g} ms" if end_ms <= _SECOND_MS else f"{ms / _SECOND_MS:.4g} s"


def number_text(value: float | None) -> str:
    """A score with two decimals; a small one is never shown as nothing."""
    if value is None:
        return UNKNOWN
    return "<0.01" if value and round(value, 2) == 0 else f"{value:.2f}"


def parameters_text(count: int) -> str:
    """The size of a model as people say it; nothing where it is not known, as behind a server."""
    if not count:
        return ""
    return f"{count / _BILLION:.1f}B" if count >= _BILLION else f"{count / 10**6:.0f}M"


def place_text(model: ModelInfo) -> str:
    """Where and how a model runs."""
    how = f"{model.dtype} on {model.device}" if model.dtype else model.device
    return f"{how}, context {model.context:,}"


def percent_text(share: float) -> str:
    """A share as a CSS width."""
    return f"{100 * share:.2f}%"


def hue(number: int) -> int:
    """Hues repeat after the eighth draft or hop."""
    return (number - 1) % len(HUES) + 1


def is_weblink(text: str) -> bool:
    """Whether a source may become a link: only http and https, never `javascript:` or `data:`."""
    try:
        return urlsplit(text).scheme in ("http", "https") and bool(urlsplit(text).netloc)
    except ValueError:
        return False


def _shown(value: Any) -> Any:
    return value if isinstance(value, Markup) or not isinstance(value, str) else _UNSHOWN.sub("", value)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        exact=exact_text,
        time=time_text,
        tick=tick_text,
        score=number_text,
        percent=percent_text,
        parameters=parameters_text,
    )
    environment.filters["place"] = place_text
    environment.filters["hue"] = lambda number: f"sr-h{hue(number)}" if number else "sr-h0"
    environment.globals["score_of"] = score
    environment.globals["unknown"] = UNKNOWN
    environment.globals["probability"] = probability
    environment.globals["rare"] = RARE
    environment.tests["weblink"] = is_weblink
    return environment
