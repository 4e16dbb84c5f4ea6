"""Laws and thresholds of the regime."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.errors import Invalid
from backsight.core.market import Bar
from backsight.core.regime import (
    REGIME_TAGS,
    REGIMES,
    Preset,
    RegimeReading,
    RegimeTag,
    atr,
    classify_regime,
    regime_of,
    true_ranges,
    volatility_regime,
)

START = datetime(2026, 6, 1, tzinfo=UTC)
REAL_BARS = Path(__file__).resolve().parents[3] / "shared" / "data" / "positions" / "bars" / "crypto_daily.jsonl"
ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True)
CENTS = st.integers(100, 100_000).map(lambda cents: cents / 100)


def bars_at(closes: Iterable[float], *, interval: int = 3600) -> list[Bar]:
    """Bars that only have a close."""
    return bars_of([(close, close, close, close) for close in closes], interval=interval)


def bars_of(prices: Iterable[Sequence[float]], *, interval: int = 3600) -> list[Bar]:
    return [
        Bar(
            symbol="BTC",
            interval_seconds=interval,
            opened_at=START + number * timedelta(seconds=interval),
            open=first,
            high=high,
            low=low,
            close=last,
        )
        for number, (first, high, low, last) in enumerate(prices)
    ]


def bars_with_ranges(ranges: Iterable[float]) -> list[Bar]:
    """Bars with the given true ranges."""
    return bars_of([(100.0, 100.0 + width, 100.0, 100.0) for width in ranges])


def swings(sigma: float) -> list[float]:
    """13 closes from 100 back to 100 whose log returns have this standard deviation."""
    return [100.0 * math.exp(sigma * (number % 2)) for number in range(13)]


def after(returns: Iterable[float]) -> list[float]:
    closes = [100.0]
    for value in returns:
        closes.append(closes[-1] * math.exp(value))
    return closes


def tag(closes: Iterable[float], *, preset: Preset | None = None, window: int = 100) -> RegimeTag:
    return classify_regime(bars_at(closes), preset=preset, window=window).tag


@pytest.mark.parametrize(
    ("interval", "preset"), [(300, "seed"), (60, "scaled"), (3600, "scaled"), (86400, "scaled"), (299, "scaled")]
)
def test_the_preset_follows_from_the_interval_and_is_kept(interval: int, preset: Preset) -> None:
    reading = classify_regime(bars_at([100.0] * 12, interval=interval))
    assert reading == RegimeReading(tag="chop_lowvol", interval_seconds=interval, preset=preset)


def test_a_given_preset_is_used() -> None:
    assert classify_regime(bars_at([100.0] * 12, interval=300), preset="scaled").preset == "scaled"
    assert classify_regime(bars_at([100.0] * 12), preset="seed").preset == "seed"


def test_no_bars_are_unknown() -> None:
    assert classify_regime([]) == RegimeReading(tag="unknown", interval_seconds=None, preset="scaled")


@pytest.mark.parametrize("preset", ["seed", "scaled"])
def test_twelve_bars_are_enough_and_eleven_are_not(preset: Preset) -> None:
    assert tag([100.0 + n for n in range(11)], preset=preset) == "unknown"
    assert tag([100.0 + n / 10 for n in range(12)], preset=preset) == "trend_up_lowvol"
    assert tag([100.0 + n for n in range(50)], preset=preset, window=11) == "unknown"
    assert tag([100.0 + n for n in range(50)], preset=preset, window=0) == "unknown"


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (100.5, "chop_lowvol"),
        (100.5001, "trend_up_lowvol"),
        (99.5, "chop_lowvol"),
        (99.4999, "trend_down_lowvol"),
    ],
)
def test_a_seed_trend_is_beyond_half_a_percent(last: float, expected: RegimeTag) -> None:
    assert tag([100.0] * 11 + [last], preset="seed") == expected


@pytest.mark.parametrize(
    ("first", "last"), [(1.1, 1.1055), (65_200.0, 65_526.0), (0.6, 0.603), (0.4, 0.398), (3.0, 2.985)]
)
def test_half_a_percent_on_paper_is_half_a_percent_here(first: float, last: float) -> None:
    assert tag([first] * 11 + [last], preset="seed") == "chop_lowvol"


@pytest.mark.parametrize(("sigma", "expected"), [(0.004, "chop_hivol"), (0.003999, "chop_lowvol")])
def test_seed_volatility_is_high_from_four_tenths_of_a_percent(sigma: float, expected: RegimeTag) -> None:
    assert tag(swings(sigma), preset="seed") == expected


def test_the_seed_preset_knows_all_six_tags() -> None:
    up, down = [0.001] * 12, [-0.001] * 12
    wild = [0.01, -0.01] * 6
    assert tag(after(up), preset="seed") == "trend_up_lowvol"
    assert tag(after(down), preset="seed") == "trend_down_lowvol"
    assert tag(after(wild), preset="seed") == "chop_hivol"
    assert tag(after(up + wild), preset="seed") == "trend_up_hivol"
    assert tag(after(down + wild), preset="seed") == "trend_down_hivol"
    assert tag([100.0] * 12, preset="seed") == "chop_lowvol"


@pytest.mark.parametrize(
    ("jump", "expected"),
    [
        (10.0, "chop_lowvol"),  # 25 returns, their sum 10, their squares 104: 10 = σ√25 exactly
        (10.1, "trend_up_lowvol"),
        (-10.0, "chop_lowvol"),
        (-10.1, "trend_down_lowvol"),
    ],
)
def test_a_scaled_trend_is_beyond_sigma_root_n(jump: float, expected: RegimeTag) -> None:
    returns = [jump, 1.0, 1.0, -1.0, -1.0] + [0.0] * 20
    assert tag(after(value / 1000 for value in returns)) == expected


def test_one_jump_in_a_quiet_market_is_a_trend() -> None:
    assert tag([100.0] * 60 + [101.0] * 40) == "trend_up_lowvol"
    assert tag([100.0] * 60 + [99.0] * 40) == "trend_down_lowvol"


@pytest.mark.parametrize(
    ("sigma", "expected"), [(0.0125, "chop_hivol"), (0.01249, "chop_lowvol"), (0.01, "chop_lowvol")]
)
def test_scaled_volatility_is_high_from_five_quarters_of_the_usual(sigma: float, expected: RegimeTag) -> None:
    assert tag(swings(0.01) + swings(sigma), window=13) == expected


def test_the_usual_is_the_median_of_the_last_ten_windows() -> None:
    ten = [sigma for sigma in (0.01, 0.03) for _ in range(5)]
    past = [close for sigma in [0.09, 0.09, *ten] for close in swings(sigma)]
    assert tag(past + swings(0.0251), window=13) == "chop_hivol"
    assert tag(past + swings(0.0249), window=13) == "chop_lowvol"


def test_without_a_whole_window_before_it_volatility_is_low() -> None:
    assert tag(swings(0.0001)[1:] + swings(0.5), window=13) == "chop_lowvol"
    assert tag(swings(0.0001) + swings(0.5), window=13) == "chop_hivol"


def test_where_nothing_moves_volatility_is_low() -> None:
    assert tag([100.0] * 1100) == "chop_lowvol"
    assert tag([1.01**number for number in range(1100)]) == "trend_up_lowvol"


def test_daily_crypto_is_not_always_volatile() -> None:
    calm = swings(0.03) * 3
    assert tag(calm, window=13) == "chop_lowvol"
    assert tag(calm, window=13, preset="seed") == "chop_hivol"


@pytest.mark.parametrize("preset", ["seed", "scaled"])
def test_the_window_is_the_last_hundred_bars(preset: Preset) -> None:
    assert tag([1.0] * 50 + [100.0] * 100, preset=preset) == "chop_lowvol"
    assert tag([99.0] + [100.0] * 99, preset=preset) == "trend_up_lowvol"
    assert tag([99.0] + [100.0] * 100, preset=preset) == "chop_lowvol"


@pytest.mark.parametrize("preset", ["seed", "scaled"])
@pytest.mark.parametrize("price", [0.0, -37.63, math.nan, math.inf])
@pytest.mark.parametrize("name", ["open", "high", "low", "close"])
def test_a_price_that_is_none_makes_the_window_unknown(preset: Preset, price: float, name: str) -> None:
    bars = bars_at([100.0] * 200)
    broken = replace(bars[150], **{name: price})  # type: ignore[arg-type]
    assert classify_regime([*bars[:150], broken, *bars[151:]], preset=preset).tag == "unknown"


def test_a_broken_window_in_the_past_does_not_count() -> None:
    broken = [-37.63, *swings(0.01)[1:]]
    assert tag(swings(0.01) + broken + swings(0.0125), window=13) == "chop_hivol"
    assert tag(broken + swings(0.0125), window=13) == "chop_lowvol"


@given(st.lists(st.tuples(ANY_FLOAT, ANY_FLOAT, ANY_FLOAT, ANY_FLOAT), max_size=60), st.sampled_from([300, 3600]))
def test_no_prices_make_it_fail(prices: list[tuple[float, float, float, float]], interval: int) -> None:
    bars = bars_of(prices, interval=interval)
    assert classify_regime(bars, window=15).tag in REGIME_TAGS
    now = atr(bars)
    assert now is None or math.isfinite(now)
    volatility_regime(bars)


@given(st.lists(st.floats(min_value=5e-324), min_size=12, max_size=60), st.sampled_from([300, 3600]))
def test_positive_prices_are_never_unknown(closes: list[float], interval: int) -> None:
    bars = bars_at(closes, interval=interval)
    assert (classify_regime(bars, window=15).tag == "unknown") == any(map(math.isinf, closes[-15:]))


@given(st.lists(CENTS, min_size=12, max_size=120), st.floats(0.001, 1000))
def test_the_unit_of_price_changes_neither_the_scaled_tag_nor_the_volatility(
    closes: list[float], factor: float
) -> None:
    bars = bars_at(closes)
    scaled = bars_at(close * factor for close in closes)
    assert classify_regime(scaled, window=20) == classify_regime(bars, window=20)
    assert volatility_regime(scaled) == volatility_regime(bars)


@given(st.lists(CENTS, min_size=12, max_size=120))
def test_backwards_the_trend_turns(closes: list[float]) -> None:
    turned = {"trending_up": "trending_down", "trending_down": "trending_up"}
    there, back = (regime_of(tag(path, window=120)) for path in (closes, closes[::-1]))
    assert back == turned.get(str(there), there)


def test_every_tag_has_a_regime_and_every_regime_a_tag() -> None:
    regimes = {name: regime_of(name) for name in REGIME_TAGS}
    assert regimes == {
        "trend_up_lowvol": "trending_up",
        "trend_up_hivol": "trending_up",
        "trend_down_lowvol": "trending_down",
        "trend_down_hivol": "trending_down",
        "chop_lowvol": "ranging",
        "chop_hivol": "volatile",
        "unknown": None,
    }
    assert set(REGIMES) == set(regimes.values()) - {None}


def test_a_true_range_spans_the_gap_from_the_close_before() -> None:
    up, down, inside = (12.0, 13.0, 12.0, 12.5), (8.0, 9.0, 8.0, 8.5), (8.5, 8.7, 8.4, 8.5)
    assert true_ranges([]) == []
    assert true_ranges(bars_of([(10.0, 11.0, 9.0, 10.0), up, down, inside])) == pytest.approx([2.0, 3.0, 4.5, 0.3])


def test_atr_starts_as_a_mean_and_moves_a_fourteenth_of_the_way() -> None:
    bars = bars_with_ranges([2.0] * 14 + [16.0, 2.0])
    assert atr(bars[:13]) is None
    assert atr(bars[:14]) == 2.0
    assert atr(bars[:15]) == 3.0
    assert atr(bars) == pytest.approx(3.0 - 1 / 14)
    assert atr(bars[:3], n=3) == 2.0


@pytest.mark.parametrize("n", [0, -1])
def test_an_average_of_no_bars_is_refused(n: int) -> None:
    with pytest.raises(Invalid, match="give 1 or more"):
        atr(bars_with_ranges([1.0]), n=n)


@given(st.lists(st.floats(0, 1e6), min_size=14, max_size=60))
def test_atr_lies_between_the_extremes_of_the_ranges(ranges: list[float]) -> None:
    bars = bars_with_ranges(ranges)
    now = atr(bars)
    assert now is not None
    widths = true_ranges(bars)
    assert min(widths) - 1e-6 <= now <= max(widths) + 1e-6


@given(st.lists(st.floats(0, 1e6), min_size=14, max_size=14))
def test_bars_from_a_hundred_bars_ago_hardly_count(ranges: list[float]) -> None:
    with_past = atr(bars_with_ranges(ranges + [1.0] * 100))
    assert with_past is not None
    assert abs(with_past - 1.0) <= max(1.0, *ranges) * 0.001


@pytest.mark.parametrize(
    ("last", "expected"),
    [(7.999, "normal"), (8.0, "high"), (21.99, "high"), (22.0, "extreme"), (1.0, "normal"), (0.0, "normal")],
)
def test_volatility_is_high_from_half_more_and_extreme_from_five_halves(last: float, expected: str) -> None:
    assert volatility_regime(bars_with_ranges([1.0] * 40 + [last])) == expected  # ATR is (13 + last) / 14


@pytest.mark.parametrize(("short_of", "expected"), [(0.0, "normal"), (0.001, "low")])
def test_volatility_is_low_below_three_quarters(short_of: float, expected: str) -> None:
    fallen = (13 / 14) ** 4
    last = 14 * 0.75 - 13 * fallen - short_of
    assert volatility_regime(bars_with_ranges([1.0] * 40 + [0.0] * 4 + [last])) == expected


def test_twenty_eight_bars_have_a_volatility_and_twenty_seven_have_none() -> None:
    bars = bars_with_ranges([1.0] * 28)
    assert volatility_regime(bars) == "normal"
    assert volatility_regime(bars[1:]) is None


def test_the_usual_volatility_is_that_of_the_last_hundred_bars() -> None:
    bars = bars_with_ranges([1.0] * 300 + [100.0] * 130)
    assert volatility_regime(bars[:340]) == "extreme"
    assert volatility_regime(bars) == "normal"


def test_a_market_that_does_not_move_has_no_volatility_regime() -> None:
    assert volatility_regime(bars_with_ranges([0.0] * 40)) is None
    assert volatility_regime(bars_with_ranges([0.0] * 40 + [1.0])) is None


@pytest.mark.skipif(not REAL_BARS.exists(), reason="the real bars are not beside this checkout")
def test_real_crypto_is_not_always_one_regime() -> None:
    tags: set[RegimeTag] = set()
    for bars in real_bars(REAL_BARS):
        readings = [classify_regime(bars[:end]) for end in range(12, len(bars) + 1, 7)]
        assert {(reading.interval_seconds, reading.preset) for reading in readings} == {(86400, "scaled")}
        assert volatility_regime(bars) is not None
        tags |= {reading.tag for reading in readings}
    assert tags >= {"trend_up_lowvol", "trend_down_lowvol", "chop_lowvol", "chop_hivol"}
    assert "unknown" not in tags


def real_bars(path: Path) -> list[list[Bar]]:
    """The bars of each symbol of a file, without the last bar, which is still open and has no close."""
    series = []
    for line in path.read_text().splitlines():
        days = sorted(json.loads(line)["Time Series (Daily)"].items())
        names = ("1. buy price", "2. high", "3. low", "4. sell price")
        prices = [tuple(float(day[name]) for name in names) for _, day in days if len(day) == 5]
        series.append(bars_of(prices, interval=86400))
    return series
