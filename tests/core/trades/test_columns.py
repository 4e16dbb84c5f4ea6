"""Counts and sums from columns of closed trades equal those from the trades one by one, after any updates."""

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.instants import EPOCH, Horizon
from backsight.core.trades.columns import (
    EMPTY,
    EntryLabels,
    TradeLabels,
    TradeRows,
    differing_trades,
    group_counts,
    known_trades,
    tallies,
    update_trades,
)
from backsight.core.trades.summary import Tally

GROUP = TradeLabels("d1", "s", "S", 1, "BTC", "live", None, "R", None)
LONG = EntryLabels("long", None, None, None, None, None, "[]")
GROUPS = (GROUP, GROUP._replace(deployment_id="d2"), GROUP._replace(currency="JPY"))


class AnyTrade(NamedTuple):
    id: str
    at: int
    recorded: int
    pnl: float
    group: TradeLabels


def rows_of(trades: Sequence[AnyTrade]) -> TradeRows:
    instants = np.array([trade.at for trade in trades], np.int64)
    return TradeRows(
        id=[trade.id for trade in trades],
        known_at=instants,
        recorded_at=np.array([trade.recorded for trade in trades], np.int64),
        closed_at=instants - 1,
        opened_at=instants - 2,
        pnl=[trade.pnl for trade in trades],
        realized_pnl_usd=[None] * len(trades),
        outcome=[trade.pnl for trade in trades],
        minutes=[None] * len(trades),
        entry_equity=[None] * len(trades),
        mfe_r=[None] * len(trades),
        mae_r=[None] * len(trades),
        group=[tuple(trade.group) for trade in trades],
        entry=[LONG] * len(trades),
    )


def plain_tally(trades: Sequence[AnyTrade]) -> Tally:
    converted = [trade.pnl for trade in trades if trade.group.currency is None]
    return Tally(
        trades=len(trades),
        wins=sum(trade.pnl > 0 for trade in trades),
        pnl=math.fsum(converted),
        last_closed_at=EPOCH + timedelta(microseconds=max(trade.at for trade in trades) - 1),
        unconverted=len(trades) - len(converted),
    )


trades_strategy = st.builds(
    AnyTrade,
    id=st.integers(0, 60).map(lambda number: f"t{number}" + "x" * (number % 3)),
    at=st.integers(1, 9),
    recorded=st.integers(1, 9),
    pnl=st.sampled_from((-1e16, -0.1, 0.0, 0.1, 1.0, 1e16)),
    group=st.sampled_from(GROUPS),
)
steps = st.lists(
    st.tuples(
        st.lists(trades_strategy, max_size=50, unique_by=lambda trade: trade.id),
        st.lists(st.integers(0, 60).map("t{}".format), max_size=2),
    ),
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(steps, st.integers(0, 10), st.none() | st.integers(0, 10))
def test_answers_equal_those_of_the_trades_one_by_one(
    updates: list[tuple[list[AnyTrade], list[str]]], as_of: int, seen_at: int | None
) -> None:
    columns, current = EMPTY, dict[str, AnyTrade]()
    for added, removed in updates:
        # The links that name a trade and those that do not may both lead to it, so that it is read twice.
        parts = [rows_of(added[:3]), rows_of(added[3:]), rows_of(added[1:5])]
        columns = update_trades(columns, parts, without=removed)
        current = {key: trade for key, trade in current.items() if key not in removed}
        current |= {trade.id: trade for trade in added}
    horizon = Horizon(
        as_of=EPOCH + timedelta(microseconds=as_of),
        seen_at=None if seen_at is None else EPOCH + timedelta(microseconds=seen_at),
    )
    known = [each for each in current.values() if each.at <= as_of and (seen_at is None or each.recorded <= seen_at)]
    rows = known_trades(columns, horizon, lambda group: group.currency is None)
    every = known_trades(columns, horizon, lambda _group: True)
    assert sorted(columns.ids[rows].tolist()) == sorted(t.id.encode() for t in known if t.group.currency is None)
    by_deployment = {name: [each for each in known if each.group.deployment_id == name] for name in ("d1", "d2")}
    assert tallies(columns, every) == {name: plain_tally(own) for name, own in by_deployment.items() if own}
    assert group_counts(columns, every) == {
        group: count for group in GROUPS if (count := sum(each.group == group for each in known))
    }


def test_trades_that_differ_are_named() -> None:
    one, two = AnyTrade("a", 1, 1, 5.0, GROUPS[0]), AnyTrade("b", 1, 1, 5.0, GROUPS[1])
    columns = update_trades(EMPTY, [rows_of([one, two])])
    other = update_trades(EMPTY, [rows_of([two, one._replace(pnl=6.0), two._replace(id="c")])])
    assert differing_trades(columns, update_trades(EMPTY, [rows_of([two, one])])) == []
    assert differing_trades(columns, other) == ["a", "c"]
