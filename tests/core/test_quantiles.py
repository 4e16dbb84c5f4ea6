"""The fast quantiles equal the exact ones."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.quantiles import beta_05, t_95
from backsight.core.statistics import beta_quantile, t_quantile


@given(st.floats(1e-3, 1e6), st.floats(0, 1))
@settings(max_examples=60)
def test_fast_beta_quantiles_equal_the_exact_ones(n: float, p: float) -> None:
    alpha, beta = 0.5 + p * n, 0.5 + (1 - p) * n
    assert beta_05(alpha, beta) == pytest.approx(beta_quantile(0.05, alpha=alpha, beta=beta), abs=1e-10, rel=1e-7)


@pytest.mark.parametrize("freedom", [1, 2, 50, 99, 100, 101, 1000, 100_000])
def test_fast_t_quantiles_equal_the_exact_ones(freedom: int) -> None:
    assert t_95(freedom) == pytest.approx(t_quantile(0.95, freedom=freedom), abs=1e-10)
