"""What a run would cost under prices that somebody has typed: pure arithmetic, never a fact about the world.

There are two ways of paying: for tokens, by the million, read and written, of each model; or for a machine,
by the hour, for as long as a run takes. The default prices are round examples and are called an assumption
wherever they are shown.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from specrag.errors import UsageError
from specrag.tracing.trace import Usage

PriceKind: TypeAlias = Literal["tokens", "machine", "none"]
QUESTIONS: Final = 1000
"""Costs are said for so many questions."""
_MILLION: Final = 1_000_000
_HOUR_MS: Final = 3_600_000
_NAMES: Final = tuple(
    f"{role}'s tokens {done}" for role in ("drafter", "verifier") for done in ("read", "written")
)
_LEAST_SHOWN: Final = 0.0001
_MOST: Final = 1_000_000
"""Dollars; whoever types more has slipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrices:
    """Dollars for a million tokens."""

    drafter_read: float
    drafter_written: float
    verifier_read: float
    verifier_written: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePrice:
    """Dollars for an hour of the machine, whatever it does in it."""

    per_hour: float


Prices: TypeAlias = TokenPrices | MachinePrice

EXAMPLE: Final = TokenPrices(drafter_read=0.1, drafter_written=0.1, verifier_read=1.0, verifier_written=1.0)
"""An assumption: that the verifier costs ten times as much as the drafter."""
EXAMPLE_MACHINE: Final = MachinePrice(per_hour=1.0)
"""An assumption as well."""


def prices_from(kind: object, tokens: tuple[object, ...], machine: object) -> Prices | None:
    """The prices as they were typed; None shows no cost.

    Args:
        kind: a `PriceKind`.
        tokens: the four prices of `TokenPrices`, in their order.
        machine: the price of an hour.

    Raises:
        UsageError: a price that is used is no price.
    """
    if kind == "tokens":
        read = [price_from(text, name) for text, name in zip(tokens, _NAMES, strict=True)]
        return TokenPrices(
            drafter_read=read[0], drafter_written=read[1], verifier_read=read[2], verifier_written=read[3]
        )
    if kind == "machine":
        return MachinePrice(per_hour=price_from(machine, "hour of the machine"))
    return None


def price_from(text: object, name: str) -> float:
    """A price in dollars; an empty one is nothing to pay.

    Raises:
        UsageError: it is not a number from 0 to a million.
    """
    typed = str(text if text is not None else "").strip().removeprefix("$").strip()
    try:
        price = float(typed.replace(",", ".") if typed.count(",") == 1 and "." not in typed else typed or 0)
    except ValueError:
        price = math.nan
    if not 0 <= price <= _MOST:
        raise UsageError(
            f"The price of the {name} is “{typed[:40]}”; type a number of dollars from 0 to {_MOST:,}."
        )
    return price


def cost(prices: Prices, usage: Usage, took_ms: float) -> float:
    """Dollars for `QUESTIONS` questions like the one that took `usage` and `took_ms` milliseconds."""
    match prices:
        case TokenPrices():
            dollars = (
                usage.drafter.prompt_tokens * prices.drafter_read
                + usage.drafter.completion_tokens * prices.drafter_written
                + usage.verifier.prompt_tokens * prices.verifier_read
                + usage.verifier.completion_tokens * prices.verifier_written
            ) / _MILLION
        case MachinePrice():
            dollars = prices.per_hour * took_ms / _HOUR_MS
    return QUESTIONS * dollars


def cost_text(dollars: float) -> str:
    """Dollars with as many digits as tell something; a tiny amount is never shown as nothing."""
    if dollars == 0:
        return "$0"
    if dollars < _LEAST_SHOWN:
        return f"under ${_LEAST_SHOWN:g}"
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.3g}"
