"""Reported trades in the store: the deployment they belong to, earlier reports of them, and notes on stored trades."""

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.core.ids import derive_id
from backsight.core.instants import JUST_BEFORE, format_instant
from backsight.core.instruments import unit_worth
from backsight.core.memory.affective import EquityPoint, with_agent_state
from backsight.core.memory.episodic import episode_of_trade
from backsight.core.portfolio import Mode
from backsight.core.strategies import Deployment
from backsight.core.text.counts import count_of
from backsight.core.trades.matching import matching_trade
from backsight.core.trades.report import TradeReport, reported_trade_id
from backsight.core.trades.trade import Trade
from backsight.services.context import Context
from backsight.services.deployments import (
    CURRENCY_OF_MANUAL,
    account_of,
    closed_by_mode,
    deployment_named,
    deployment_of,
    deployments_at,
    manual_deployment,
    resolve_scope,
)
from backsight.services.learning import LearningReport, learn_equity, learn_trades
from backsight.services.mood import mood_at
from backsight.store import decisions as stored_decisions
from backsight.store import memories as stored_memories
from backsight.store import state as stored_state
from backsight.store import trades as stored
from backsight.store.database import Connection
from backsight.store.instruments import instruments_of, underlyings
from backsight.store.transaction import Transaction
from backsight.store.view import View

REPLAY_WINDOW = timedelta(seconds=60)
"""A request without a key and a close time is a repeat if an equal one came this shortly before."""
RECENT_CLOSES = 50
"""How many closed trades of the ledger a report is compared with."""


def reported_deployment(
    transaction: Transaction, ctx: Context, deployment: str | None, strategy_name: str, *, mode: Mode | None = None
) -> Deployment:
    """The named deployment, if it runs the strategy in the mode; else the strategy's one for manual reports.

    Manual reports are live unless a mode is given; see `mode_of_report` for a single one.
    """
    if deployment is None:
        return manual_deployment(transaction, ctx, strategy_name, mode=mode or "live")
    target = deployment_named(transaction.connection, ctx.owner, deployment)
    if target.strategy_name != strategy_name:
        message = f"deployment {target.name!r} runs {target.strategy_name!r}, not {strategy_name!r}"
        raise Invalid(f"{message}; give the strategy that the deployment runs", field="strategy_name")
    if mode not in (None, target.mode):
        message = f"deployment {target.name!r} is {target.mode}, not {mode}"
        raise Invalid(f"{message}; leave out the mode or the deployment", field="mode")
    return target


def mode_of_report(view: View, strategy_name: str) -> Mode:
    """The mode of a trade that is reported without one and without a deployment: live.

    `Invalid` where the strategy has closed trades, but none of them is live: a live trade must not be booked as
    simulated, nor a simulated one as live.
    """
    counts = closed_by_mode(view, strategy_name)
    if not counts or "live" in counts:
        return "live"
    there = " and ".join(f"{count_of(number, 'closed trade')} in {mode}" for mode, number in sorted(counts.items()))
    others = " or ".join(f"mode={mode!r}" for mode in sorted(counts))
    raise Invalid(
        f"missing: {strategy_name!r} has {there}, and none that is live; give {others} if this trade belongs to them, "
        "or mode='live' if it was made with real money",
        field="mode",
    )


def decision_deployment(
    transaction: Transaction, ctx: Context, deployment: str | None, strategy_name: str, *, key: str | None
) -> tuple[Deployment, str]:
    """The deployment that a decision without a trade belongs to, and a note on the default that was taken.

    Without a name it is the strategy's only deployment, else the one for manual reports. `key` is the id of the
    decision's episode, if the caller named the decision: a repeat belongs to the deployment of the first call.
    """
    if deployment is not None:
        return reported_deployment(transaction, ctx, deployment, strategy_name), ""
    former = None if key is None else stored_memories.current_episode(transaction.connection, ctx.owner, key)
    if former is not None and former.strategy_name == strategy_name:
        return deployment_of(transaction.connection, former), ""
    scope = resolve_scope(ctx.view(transaction.connection), strategy_name=strategy_name)
    if scope.deployment is not None:
        return scope.deployment, "".join(f" {note}" for note in scope.deployment_notes)
    target = manual_deployment(transaction, ctx, strategy_name, mode=scope.mode)
    reason = "several deployments run" if scope.deployments else "no deployment runs"
    return target, f" For {target.name!r}, since {reason} the strategy."


class PointValues:
    """What one unit of size earns for one point of price, by the stored instruments; each is looked up once."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._known: dict[tuple[str, str | None], float | None] = {}

    def of(self, symbol: str, deployment: str | None) -> float | None:
        """Money in the currency of the deployment's account; None if it is not a fixed amount of that currency."""
        key = symbol, deployment
        if key not in self._known:
            with self._ctx.reading() as connection:
                self._known[key] = self._read(connection, symbol, deployment)
        return self._known[key]

    def _read(self, connection: Connection, symbol: str, deployment: str | None) -> float | None:
        instruments = instruments_of(connection, self._ctx.owner, [symbol])
        if not instruments:
            return 1.0
        currency = CURRENCY_OF_MANUAL
        if deployment is not None:
            with suppress(NotFound):  # which is an error of its own, with the row, where the trade is stored
                currency = account_of(connection, deployment_named(connection, self._ctx.owner, deployment)).currency
        worth = unit_worth(instruments[0], currency)
        return None if worth.inverse or worth.currency is not None else worth.multiplier


def runs_by_ticks(transaction: Transaction, ctx: Context, deployment: Deployment) -> bool:
    """Whether the deployment has recorded decisions: the broker's fills are then its ledger."""
    return stored_decisions.last_of_deployment(ctx.view(transaction.connection), deployment.id) is not None


def earlier_report(
    transaction: Transaction, ctx: Context, key: str | None, closed_at: datetime | None
) -> tuple[str, Trade | None]:
    """The id of the trade that this request reports, and the stored trade if the request is a repeat."""
    if key is None and closed_at is None:
        since = ctx.now - REPLAY_WINDOW
        trade = stored.recent_equal(transaction.connection, ctx.owner, ctx.request_digest, since)
        return derive_id("trade", ctx.owner, ctx.request_digest, format_instant(ctx.now)), trade
    trade_id = reported_trade_id(ctx.owner, key, ctx.request_digest)
    return trade_id, stored.trade(transaction.connection, ctx.owner, trade_id)


def with_state_at_entry(connection: Connection, deployment: Deployment, report: TradeReport) -> TradeReport:
    """The report with the agent's state right before the entry in its context; unchanged if the entry has no time.

    The state before the close would not do: a loss may have made the drawdown before it was closed.
    """
    if report.opened_at is None:
        return report
    mood = mood_at(connection, deployment, report.opened_at - JUST_BEFORE)
    return replace(report, context=with_agent_state(report.context, mood))


def equity_after(
    trade_id: str, deployment: Deployment, equity: float, *, known_at: datetime, recorded_at: datetime
) -> EquityPoint:
    """What an account was worth after the close of a trade, as a fact known then."""
    return EquityPoint(
        owner_id=deployment.owner_id,
        id=derive_id("equity", trade_id),
        account_id=deployment.account_id,
        at=known_at,
        equity=equity,
        transfer=None,
        known_at=known_at,
        recorded_at=recorded_at,
    )


def add_reported_equity(transaction: Transaction, trade: Trade, deployment: Deployment, equity: float | None) -> None:
    """Store the equity that was reported with a trade, and let the mood of the account learn it."""
    if equity is None:
        return
    point = equity_after(trade.id, deployment, equity, known_at=trade.known_at, recorded_at=trade.recorded_at)
    transaction.add(stored_state.EQUITY, point)
    learn_equity(transaction, point.owner_id, point.account_id, point.fact, recorded_at=point.recorded_at)


def _recent_trades(transaction: Transaction, ctx: Context, deployment: Deployment, report: TradeReport) -> list[Trade]:
    """The last closed trades of a deployment in the market and direction of a report."""
    view = ctx.view(transaction.connection)
    return stored.trades(
        view,
        limit=RECENT_CLOSES,
        deployment_id=deployment.id,
        symbol=underlyings(view).spellings(report.symbol),
        side=report.direction,
    )


def ledger_trade(transaction: Transaction, ctx: Context, deployment: Deployment, report: TradeReport) -> Trade:
    """The recent trade of a deployment's ledger that a report is about; `Conflict` if there is none."""
    match = matching_trade(report, _recent_trades(transaction, ctx, deployment, report))
    trade = None if match is None else stored.trade(transaction.connection, ctx.owner, match.id)
    if trade is None:
        message = (
            f"{deployment.name!r} runs by ticks, and its ledger has no closed {report.direction} trade in "
            f"{report.symbol} with this result; give the closed_at and pnl of the ledger, or leave deployment out"
        )
        raise Conflict(message, field="deployment")
    return trade


def ledger_trade_of_strategy(
    transaction: Transaction, ctx: Context, report: TradeReport, strategy_name: str, *, mode: Mode | None
) -> Trade | None:
    """The recent trade in the ledgers of a strategy's deployments that a report without a deployment is about.

    `Conflict` if the ledgers of two deployments have one. A trade that another report was added to is not taken again.
    """
    connection = transaction.connection
    deployments = deployments_at(ctx.view(connection), strategy_name=strategy_name)
    matches: dict[str, Trade] = {}
    for each in deployments:
        if each.is_manual or mode not in (None, each.mode):
            continue
        recent = _recent_trades(transaction, ctx, each, report)
        free = [trade for trade in recent if trade.request_digest in ("", ctx.request_digest)]
        match = matching_trade(report, free, closed_by=ctx.now)
        if match is not None:
            matches[each.name] = match
    if len(matches) > 1:
        names = " and ".join(map(repr, matches))
        raise Conflict(f"the ledgers of {names} have a trade that fits; name one of them", field="deployment")
    return next(iter(matches.values()), None)


def revise_trade(transaction: Transaction, trade: Trade) -> LearningReport | None:
    """Store a corrected trade and its episode; what the correction changed in the other memories."""
    transaction.revise(stored.TRADES, trade)
    if trade.status == "open":
        return None
    learned = learn_trades(transaction, [episode_of_trade(trade)])
    return learned[0] if learned else None


def key_conflict(trade_id: str) -> Conflict:
    """The error for an idempotency key that another trade has."""
    message = f"already used for another trade ({trade_id}); use a new key for a new trade"
    return Conflict(message, field="idempotency_key")
