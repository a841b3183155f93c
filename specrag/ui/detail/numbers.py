"""Numbers that are to be checked by adding them up: written with more digits than elsewhere on the page."""

import math
from typing import Final

from specrag.ui.markup import UNKNOWN

_SMALL: Final = 0.001
_MINUS: Final = "\N{MINUS SIGN}"


def exact(value: float | None) -> str:
    """Four decimals; a small value keeps its first digits, as powers of ten."""
    if value is None or math.isnan(value):
        return UNKNOWN
    return f"{value:.2e}" if value and abs(value) < _SMALL else f"{value:.4f}"


def logarithm(value: float | None) -> str:
    """Three decimals with a real minus sign."""
    if value is None or math.isnan(value):
        return UNKNOWN
    return f"{value:.3f}".replace("-0.000", "0.000").replace("-", _MINUS)


def share(value: float | None) -> str:
    """A part of the whole in percent, to a tenth."""
    return UNKNOWN if value is None else f"{100 * value:.1f} %"


def plain(value: float) -> str:
    """A setting as somebody would type it."""
    return f"{value:.4g}"
