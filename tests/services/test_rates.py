"""Rates into an account's currency, as they were known at an instant."""

from datetime import timedelta

import pytest

from backsight.core.rates import ExchangeRate
from backsight.memory import Memory
from backsight.services.rates import RATE_GOOD_FOR, Rates
from backsight.testing import FakeClock, an_account
from ops.test_ticks import a_bar, at


@pytest.fixture
def fed(memory: Memory, clock: FakeClock) -> Memory:
    """A memory with two hourly bars of USDJPY: the first closed at hour 1 at 160, the second at hour 2 at 200."""
    clock.at = at(3)
    memory.record_bars(bars=[a_bar(0, 160.0, symbol="USDJPY"), a_bar(1, 200.0, symbol="USDJPY")])
    return memory


def rate_of(memory: Memory, hours: float, currency: str = "JPY", **prices: float) -> ExchangeRate | None:
    with memory.reading() as connection:
        return Rates(connection, an_account(owner_id=memory.owner)).at(currency, at(hours), prices)


def test_the_last_bar_closed_at_or_before_the_instant_gives_the_rate(fed: Memory) -> None:
    assert rate_of(fed, 0.9) is None
    assert rate_of(fed, 1.0) == rate_of(fed, 1.9) == ExchangeRate(value=1 / 160, source="bar")
    assert rate_of(fed, 2.0) == ExchangeRate(value=1 / 200, source="bar")


def test_a_price_of_the_snapshot_comes_before_a_bar(fed: Memory) -> None:
    assert rate_of(fed, 2.0, JPYUSD=0.007) == ExchangeRate(value=0.007, source="mark")


def test_an_old_bar_gives_no_rate(fed: Memory) -> None:
    last = 2 + RATE_GOOD_FOR / timedelta(hours=1)
    assert rate_of(fed, last) is not None
    assert rate_of(fed, last + 0.1) is None


def test_other_currencies_have_no_rate(fed: Memory) -> None:
    assert rate_of(fed, 2.0, "CHF") is None
