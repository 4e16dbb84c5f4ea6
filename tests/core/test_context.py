"""The context vector: known fields, fields that follow from a decision, and contradictions."""

import pytest

from backsight.core.context import ContextVector, merged_context
from backsight.core.errors import Invalid
from backsight.testing import T0


def test_fields_that_are_known_are_not_replaced() -> None:
    stated = ContextVector(price=1.0, session="asia", hour_utc=3)
    completed = stated.completed(symbol="BTC", price=2.0, at=T0)
    assert (completed.price, completed.session, completed.hour_utc, completed.symbol) == (1.0, "asia", 3, "BTC")


def test_a_ratio_of_ranges_is_left_out_where_it_is_no_number() -> None:
    for daily, hourly in ((0.0, 1.0), (1e-320, 1e300), (None, 1.0)):
        context = ContextVector(atr_d1=daily, atr_h1=hourly).completed(symbol="BTC", price=None, at=None)
        assert context.atr_ratio_h1_d1 is None
        assert context.session is None


def test_arguments_fill_in_the_vector() -> None:
    merged = merged_context(ContextVector(price=1.0), symbol="BTC", regime="ranging", atr_d1=None)
    assert (merged.price, merged.regime, merged.symbol) == (1.0, "ranging", None)


def test_an_argument_that_contradicts_the_vector_is_refused() -> None:
    with pytest.raises(Invalid, match=r"context_regime: 'volatile' contradicts context\.regime 'ranging'"):
        merged_context(ContextVector(regime="ranging"), symbol="BTC", regime="volatile", atr_d1=None)
    with pytest.raises(Invalid, match="symbol: 'BTC' contradicts"):
        merged_context(ContextVector(symbol="ETH"), symbol="BTC", regime=None, atr_d1=None)
