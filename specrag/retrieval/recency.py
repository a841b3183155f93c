"""Newer passages before older ones, where the visitor wants that.

The candidates that state a date are ranked by it, and the ranking joins the fusion as what a place is worth
above or below the average of the dated ones. So passages without a date neither gain nor lose, and neither
does anybody where all dates are equal.
"""

from collections.abc import Mapping
from typing import Final

from specrag.retrieval.fusion import share

RECENT: Final = 2.0
"""How much a date counts at full preference, beside 1 for all places of a passage together."""


def preference(dates: Mapping[str, str | None], weight: float) -> dict[str, float]:
    """What each dated passage gains (or loses, below 0) by its ISO date; equal dates share a place."""
    dated = {identity: date for identity, date in dates.items() if date}
    if not dated or weight <= 0:
        return {}
    places = {date: place for place, date in enumerate(sorted(set(dated.values()), reverse=True), 1)}
    worth = {identity: share(places[date]) for identity, date in dated.items()}
    average = sum(worth.values()) / len(worth)
    return {identity: weight * (value - average) for identity, value in worth.items()}
