"""Recall queries as recorded: their horizon, and the mode whose evidence counts."""

from datetime import timedelta

from backsight.core.recall.record import RecallQuery
from backsight.testing import T0


def a_query(**changes: object) -> RecallQuery:
    stated: dict[str, object] = {"symbol": "BTC", "mode": "live", "as_of": T0}
    return RecallQuery(**(stated | changes))  # type: ignore[arg-type]


def test_all_modes_are_no_filter() -> None:
    assert [a_query(mode=mode).mode_filter for mode in ("live", "paper", "all")] == ["live", "paper", None]


def test_a_query_has_its_own_horizon() -> None:
    query = a_query(seen_at=T0 + timedelta(hours=1))
    assert (query.horizon.as_of, query.horizon.seen_at) == (T0, T0 + timedelta(hours=1))
