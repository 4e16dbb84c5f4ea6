"""The holdout of a strategy: its days with memory shown and withheld, and what their trades brought."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from backsight.core.holdout import MemoryArm, memory_arm
from backsight.core.instants import Horizon
from backsight.core.portfolio import Mode
from backsight.core.reflection.closed_trades import holdout_trade
from backsight.core.reflection.holdout_test import HoldoutDay, HoldoutTrade, counted_until
from backsight.core.strategies import Deployment
from backsight.core.trades.mark import open_result
from backsight.core.trades.summary import ClosedTradeRow
from backsight.core.trades.trade import Trade
from backsight.services.deployments import account_of, deployment_named
from backsight.store import decisions as stored_decisions
from backsight.store import strategies as stored_strategies
from backsight.store import trades as stored_trades
from backsight.store.view import View

if TYPE_CHECKING:
    from backsight.core.trades.columns import ClosedTradeColumns

JUST_BEFORE = timedelta(microseconds=1)
ENDED_AFTER = timedelta(days=30)
"""A deployment that ticked before, but not for so long, has ended."""
WITHHELD = (
    "Memory is withheld today, a holdout day of this deployment: does_memory_help compares such days with others, to "
    "tell what memory brings."
)
READ_ANYWAY = "To read memory all the same, give as_of."

_DeploymentDay = tuple[str, date]


def withholds_memory(deployment: Deployment | None, at: datetime) -> bool:
    """Whether a deployment's memory is withheld on the day of an instant."""
    if deployment is None:
        return False
    memory = deployment.memory
    return memory_arm(deployment.id, at, holdout=memory.holdout, enabled=memory.enabled) == "withheld"


def withholds_from_queries(view: View, deployment: Deployment | None) -> bool:
    """Whether queries that name no instant are answered without a deployment's memory.

    They are on its holdout days, but not once its last tick is a month old: then there is no decision to compare, and
    whoever asks looks back at a simulation or an agent that has ended.
    """
    if deployment is None or not withholds_memory(deployment, view.as_of):
        return False
    last = stored_decisions.last_of_deployment(view, deployment.id)
    return last is None or view.as_of - last.at <= ENDED_AFTER


def withholds_everywhere(view: View) -> bool:
    """Whether the memory of every deployment is withheld today; false without deployments."""
    deployments = stored_strategies.deployments(view)
    return bool(deployments) and all(withholds_from_queries(view, each) for each in deployments)


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldoutRecord:
    """What the holdout test compares, as of a view."""

    trades: tuple[HoldoutTrade, ...]
    days: tuple[HoldoutDay, ...]
    recalled_days: int
    """Withheld days on which a decision rests on a recall; neither they nor their trades are in the record."""
    closed: int
    """How many closed trades the strategy has, in an arm or not."""
    currency: str | None
    """The currency of the accounts; None without trades, or if there are several."""


def holdout_record(
    view: View, columns: "ClosedTradeColumns", *, strategy_id: str, strategy_name: str, mode: Mode
) -> HoldoutRecord:
    """The days of a strategy that are over, and the trades opened on them as they stood two days later."""
    from backsight.core.trades.columns import trades_in_arms, trades_of_strategy  # needs NumPy

    recalled = {
        (deployment_id, _day(at))
        for deployment_id, at in stored_decisions.recalls_while_withheld(view, strategy_id=strategy_id, mode=mode)
    }
    over = _day(view.as_of)
    days = tuple(
        day
        for day in _days(stored_decisions.arms(view, strategy_id=strategy_id, mode=mode))
        if day.day < over and (day.deployment_id, day.day) not in recalled
    )
    rows = trades_of_strategy(columns, view.horizon, strategy_id=strategy_id, mode=mode)
    still_open = stored_trades.every_open(view, strategy_name=strategy_name, mode=mode)
    trades = tuple(
        trade
        for trade in (*_closed(view, trades_in_arms(columns, rows)), *_open(view, still_open))
        if trade.day < over and (trade.deployment_id, trade.day) not in recalled
    )
    currency = _currency(view, {trade.deployment_id for trade in trades})
    if currency is None:
        trades = tuple(replace(trade, pnl=None) for trade in trades)
    return HoldoutRecord(trades=trades, days=days, recalled_days=len(recalled), closed=len(rows), currency=currency)


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()


def _days(arms: Iterable[stored_decisions.DecisionArm]) -> Iterator[HoldoutDay]:
    """The days with one arm; on a day that changed from one arm to the other neither can be told apart."""
    by_day: dict[_DeploymentDay, set[MemoryArm]] = {}
    for each in arms:
        if each.arm != "off":
            by_day.setdefault((each.deployment_id, _day(each.at)), set()).add(each.arm)
    for (deployment_id, day), day_arms in sorted(by_day.items()):
        if len(day_arms) == 1:
            yield HoldoutDay(arm=day_arms.pop(), day=day, deployment_id=deployment_id)


def _closed(view: View, rows: Iterable[ClosedTradeRow]) -> Iterator[HoldoutTrade]:
    """The closed trades: with their result, or as they stood two days after the entry if they were still open."""
    for row in rows:
        trade = holdout_trade(row)
        if trade is not None and row.closed_at < counted_until(trade.day):
            yield trade
        elif trade is not None:
            yield from _as_it_stood(view, row.id)


def _open(view: View, trades: Iterable[Trade]) -> Iterator[HoldoutTrade]:
    for trade in trades:
        yield from _as_it_stood(view, trade.id)


def _as_it_stood(view: View, trade_id: str) -> Iterator[HoldoutTrade]:
    """An open trade at its last mark two days after its entry, or now if that is earlier; nothing without a mark."""
    trade = stored_trades.trade_then(view, trade_id)
    if trade is None or trade.opened_at is None or trade.memory_arm is None:
        return
    day = _day(trade.opened_at)
    until = min(view.as_of, counted_until(day) - JUST_BEFORE)
    then = View(view.connection, view.owner, Horizon(as_of=until, seen_at=view.seen_at))
    trade_until_then = stored_trades.trade_then(then, trade_id)
    if trade_until_then is None:
        return
    result = open_result(trade_until_then, stored_trades.last_mark(then, trade_until_then))
    if result is not None and result.outcome is not None:
        yield HoldoutTrade(
            arm=trade.memory_arm,
            day=day,
            deployment_id=trade.deployment_id,
            outcome=result.outcome,
            pnl=result.pnl,
            is_open=True,
        )


def _currency(view: View, deployment_ids: Iterable[str]) -> str | None:
    """The currency of the accounts of deployments, if it is one."""
    deployments = [deployment_named(view.connection, view.owner, each) for each in sorted(deployment_ids)]
    currencies = {account_of(view.connection, each).currency for each in deployments}
    return currencies.pop() if len(currencies) == 1 else None
