"""Instants are aware and in UTC; a horizon includes its own instant."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.errors import Invalid
from backsight.core.instants import Horizon, days_between, format_instant, parse_instant, to_utc
from backsight.testing import T0

TICK = timedelta(microseconds=1)


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_formatted_instant_reads_back(at: datetime) -> None:
    assert parse_instant(format_instant(at), field="at") == at


@given(st.lists(st.datetimes(timezones=st.just(UTC)), max_size=5))
def test_texts_sort_like_their_instants(instants: list[datetime]) -> None:
    assert sorted(map(format_instant, instants)) == [format_instant(at) for at in sorted(instants)]


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(Invalid, match="opened_at"):
        to_utc(datetime(2026, 6, 4), field="opened_at")  # noqa: DTZ001
    assert to_utc(T0.astimezone(timezone(timedelta(hours=2)))).tzinfo is UTC


def test_a_horizon_includes_its_instants() -> None:
    horizon = Horizon(as_of=T0, seen_at=T0)
    assert horizon.holds(T0, T0)
    assert not horizon.holds(T0 + TICK, T0)
    assert not horizon.holds(T0, T0 + TICK)
    assert Horizon(as_of=T0).holds(T0, T0 + timedelta(days=900))


def test_an_age_is_never_negative() -> None:
    assert days_between(T0, T0 + timedelta(hours=36)) == 1.5
    assert days_between(T0 + timedelta(days=1), T0) == 0.0
