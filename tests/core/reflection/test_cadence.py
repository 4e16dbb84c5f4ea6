"""When a reflection is due."""

from datetime import UTC, datetime, timedelta

import pytest

from backsight.core.errors import Invalid
from backsight.core.reflection.cadence import SinceReflection, is_due
from backsight.core.strategies import Cadence

NOON = datetime(2026, 6, 4, 12, tzinfo=UTC)
TEN = Cadence(kind="per_n_trades", trades=10)
DAILY = Cadence(kind="daily")


def test_off_is_never() -> None:
    busy = SinceReflection(closed_in_tick=5, closed_since_attempt=99, closed_since_note=99)
    assert not is_due(Cadence(), busy, now=NOON)


@pytest.mark.parametrize(("in_tick", "since", "due"), [(1, 10, True), (2, 11, True), (1, 9, False), (0, 30, False)])
def test_so_many_trades_since_the_last_attempt_and_one_in_this_tick(in_tick: int, since: int, due: bool) -> None:
    assert is_due(TEN, SinceReflection(closed_in_tick=in_tick, closed_since_attempt=since), now=NOON) is due


@pytest.mark.parametrize(
    ("hours_ago", "since_note", "due"), [(13, 1, True), (13, 0, False), (12, 1, False), (1, 1, False), (None, 1, True)]
)
def test_one_attempt_a_utc_day_if_a_trade_closed_since_the_note(
    hours_ago: int | None, since_note: int, due: bool
) -> None:
    attempt = None if hours_ago is None else NOON - timedelta(hours=hours_ago)
    assert is_due(DAILY, SinceReflection(closed_since_note=since_note, last_attempt_at=attempt), now=NOON) is due


def test_the_day_is_that_of_utc() -> None:
    now = datetime.fromisoformat("2026-06-05T01:00:00+02:00")
    early = SinceReflection(closed_since_note=1, last_attempt_at=datetime(2026, 6, 4, 3, tzinfo=UTC))
    assert not is_due(DAILY, early, now=now)


def test_no_trades_is_no_cadence() -> None:
    with pytest.raises(Invalid, match="0 is too few trades"):
        Cadence(kind="per_n_trades", trades=0)
