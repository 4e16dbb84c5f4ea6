"""The stored series of moods: adding rows and rebuilding the series end in the same mood."""

from dataclasses import replace
from datetime import timedelta
from functools import reduce

from backsight.core.memory.affective import CloseFact, EquityFact, MoodFact, MoodState, TransferFact, advance, mood_of
from backsight.core.memory.mood_series import (
    CloseVersion,
    MoodRow,
    account_rows,
    mood_from,
    next_strategy_rows,
    strategy_rows,
)
from backsight.core.trades.trade import Outcome
from backsight.testing import T0

HOUR = timedelta(hours=1)


def a_close(n: int, pnl_r: float) -> CloseFact:
    at = T0 + n * HOUR
    return CloseFact(
        id=f"close-{n}", at=at, known_at=at, net=pnl_r, outcome=Outcome(value=pnl_r, unit="R"), trend=1 if n % 2 else 0
    )


def first_version(close: CloseFact) -> CloseVersion:
    return CloseVersion(close=close, id=close.id, sequence=close.sequence, known_at=close.known_at, first=True)


def rebuilt(*versions: CloseVersion) -> list[MoodRow]:
    return strategy_rows(versions, owner_id="me", account_id="main", strategy_name="IM")


def added(last: MoodRow | None, *closes: CloseFact) -> list[MoodRow]:
    return next_strategy_rows(last, closes, owner_id="me", account_id="main", strategy_name="IM")


CLOSES = [a_close(n, pnl_r) for n, pnl_r in enumerate((-1.0, 2.0, -1.0, 0.5, -1.5, 1.0))]
EQUITY: list[EquityFact | TransferFact] = [
    EquityFact(id="a", at=T0, known_at=T0, equity=1000.0),
    EquityFact(id="b", at=T0 + HOUR, known_at=T0 + HOUR, equity=900.0),
    TransferFact(id="c", at=T0 + 2 * HOUR, known_at=T0 + 2 * HOUR, amount=900.0, equity_after=1800.0),
]


def test_rows_added_and_rows_rebuilt_are_equal() -> None:
    expected = rebuilt(*map(first_version, CLOSES))
    assert added(None, *CLOSES) == expected
    first = added(None, *CLOSES[:4])
    assert [*first[:-1], *added(first[-1], *CLOSES[4:])] == expected


def test_only_the_last_row_has_recent_outcomes() -> None:
    rows = rebuilt(*map(first_version, CLOSES))
    assert [bool(row.strategy and row.strategy.recent) for row in rows] == [False] * 5 + [True]


def test_the_last_rows_make_the_mood_that_all_facts_lead_to() -> None:
    account = account_rows(reversed(EQUITY), owner_id="me", account_id="main")
    facts: list[MoodFact] = [*EQUITY, *CLOSES]
    assert mood_from(account[-1], added(None, *CLOSES)[-1]) == mood_of(reduce(advance, facts, MoodState()), CLOSES[-1])


def test_a_correction_adds_the_row_that_the_corrected_closes_make() -> None:
    corrected = a_close(0, 3.0)
    correction = replace(first_version(corrected), known_at=T0 + 10 * HOUR, first=False)
    rows = rebuilt(*map(first_version, CLOSES), correction)
    assert (rows[-1].cause, rows[-1].known_at) == ("correction", T0 + 10 * HOUR)
    assert rows[-1].strategy == added(None, corrected, *CLOSES[1:])[-1].strategy


def test_a_withdrawn_close_leaves_the_mood_of_the_others() -> None:
    withdrawal = replace(first_version(CLOSES[-1]), close=None, known_at=T0 + 10 * HOUR, first=False)
    rows = rebuilt(*map(first_version, CLOSES), withdrawal)
    assert rows[-1].strategy == added(None, *CLOSES[:-1])[-1].strategy


def test_a_correction_that_changes_no_close_adds_no_row() -> None:
    repeated = replace(first_version(CLOSES[2]), known_at=T0 + 10 * HOUR, first=False)
    assert len(rebuilt(*map(first_version, CLOSES), repeated)) == len(CLOSES)
