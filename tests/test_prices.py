"""Costs by hand-computed numbers, and what is said of a price that is none."""

import pytest

from specrag.errors import UsageError
from specrag.prices import (
    EXAMPLE,
    MachinePrice,
    TokenPrices,
    cost,
    cost_text,
    price_from,
    prices_from,
)
from specrag.tracing.trace import Usage
from specrag.types import RoleUsage

USAGE = Usage(
    drafter=RoleUsage(prompt_tokens=1_000, completion_tokens=200),
    verifier=RoleUsage(prompt_tokens=600, completion_tokens=50, forward_passes=1),
)


def test_each_role_pays_its_own_price_for_reading_and_for_writing() -> None:
    """1,000 x 0.10 + 200 x 0.40 + 600 x 3 + 50 x 15 = 2,730 millionths of a dollar a question."""
    prices = TokenPrices(drafter_read=0.1, drafter_written=0.4, verifier_read=3, verifier_written=15)
    assert cost(prices, USAGE, took_ms=99.0) == pytest.approx(2.73)


def test_a_machine_is_paid_by_its_time_and_not_by_tokens() -> None:
    """1,000 questions of 9 s are two and a half hours, at 4 dollars each."""
    assert cost(MachinePrice(per_hour=4), USAGE, took_ms=9_000) == pytest.approx(10.0)
    assert cost(MachinePrice(per_hour=4), Usage(), took_ms=9_000) == pytest.approx(10.0)


def test_a_role_that_did_nothing_costs_nothing() -> None:
    assert cost(EXAMPLE, Usage(), took_ms=9_000) == 0


@pytest.mark.parametrize(
    ("typed", "price"),
    [("0.5", 0.5), (" $2 ", 2.0), ("", 0.0), (None, 0.0), ("0,25", 0.25), (3, 3.0), ("1e2", 100.0)],
)
def test_prices_are_read_as_people_type_them(typed: object, price: float) -> None:
    assert price_from(typed, "hour of the machine") == price


@pytest.mark.parametrize(
    "typed", ["free", "-1", "nan", "inf", "1,000,000,000", "1e300", "<b>1</b>", "0x10", "1.2.3", ["1"]]
)
def test_what_is_no_price_is_one_sentence_that_names_it(typed: object) -> None:
    with pytest.raises(UsageError, match=r"^The price of the hour of the machine is “.*”; type a number"):
        price_from(typed, "hour of the machine")


def test_a_long_text_is_not_repeated_in_full() -> None:
    with pytest.raises(UsageError) as told:
        price_from("9" * 5_000 + "x", "hour of the machine")
    assert len(str(told.value)) < 200


def test_only_prices_that_are_used_are_looked_at() -> None:
    """A slip in a box that is hidden must not be told: nobody could find it."""
    assert prices_from("machine", ("x", "x", "x", "x"), "2") == MachinePrice(per_hour=2)
    assert prices_from("tokens", ("1", "2", "3", "4"), "x") == TokenPrices(
        drafter_read=1, drafter_written=2, verifier_read=3, verifier_written=4
    )
    assert prices_from("none", ("x", "x", "x", "x"), "x") is None
    assert prices_from({"odd": 1}, ("x", "x", "x", "x"), "x") is None


def test_the_sentence_names_the_box_that_is_wrong() -> None:
    with pytest.raises(UsageError, match="verifier's tokens read"):
        prices_from("tokens", ("1", "2", "much", "4"), "")


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        (0, "$0"),
        (0.00001, "under $0.0001"),
        (0.0123, "$0.0123"),
        (0.5, "$0.5"),
        (2.73, "$2.73"),
        (1234.5, "$1,234.50"),
    ],
)
def test_a_small_cost_is_never_shown_as_nothing(dollars: float, text: str) -> None:
    assert cost_text(dollars) == text
