"""The performance of an owner's trades, from the columns of closed trades and the equity of their accounts."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backsight.core.portfolio import Account
from backsight.core.strategies import Deployment
from backsight.core.trades.performance import Performance, ReturnFigures
from backsight.services.deployments import account_of
from backsight.store import state as stored_state
from backsight.store import strategies as stored_strategies
from backsight.store.view import View

if TYPE_CHECKING:  # they import NumPy, which a start must not
    from backsight.core.trades.columns import ClosedTradeColumns, Integers
    from backsight.core.trades.daily_returns import AccountEquity, DailyReturns, MoneyFlow

GROUPS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTrades:
    """The closed trades of an owner as of a view, as columns."""

    view: View
    columns: "ClosedTradeColumns"
    _equity: "dict[str, AccountEquity | None]" = field(default_factory=dict, init=False, repr=False, compare=False)
    """By account: its equity, once it has been computed; the strategies on an account share it."""
    _trial_ratios: dict[str, list[float]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By mode: the Sharpe ratios of all strategies, once they have been computed."""
    _returns: "dict[frozenset[str], _Returns]" = field(default_factory=dict, init=False, repr=False, compare=False)
    """By the ids of deployments: their daily returns, which are also one of the trials of their mode."""

    def rows(self, deployment_ids: Collection[str]) -> "Integers":
        """The rows of the trades of some deployments that were known at the view's horizon."""
        from backsight.core.trades.columns import known_trades

        return known_trades(self.columns, self.view.horizon, lambda group: group.deployment_id in deployment_ids)

    def most_in_one_mode(self) -> dict[str, int]:
        """The number of closed trades of each strategy in the mode in which it has most."""
        from backsight.core.trades.columns import group_counts, known_trades

        in_modes: Counter[tuple[str, str]] = Counter()
        rows = known_trades(self.columns, self.view.horizon, lambda _group: True)
        for group, count in group_counts(self.columns, rows).items():
            in_modes[group.strategy_name, group.mode] += count
        most: dict[str, int] = {}
        for (strategy_name, _mode), count in in_modes.items():
            most[strategy_name] = max(count, most.get(strategy_name, 0))
        return most

    def closes(self, rows: "Integers") -> "MoneyFlow":
        """The instants and results of trades, without those that could not be converted."""
        import numpy as np

        from backsight.core.trades.columns import converted_pnl
        from backsight.core.trades.daily_returns import MoneyFlow

        net = converted_pnl(self.columns, rows)
        known = np.isfinite(net)
        return MoneyFlow(at=self.columns.closed_at[rows][known], amount=net[known])

    def account_equity(self, account: Account) -> "AccountEquity | None":
        """What is known of an account's equity; None if no equity of it is known at all."""
        if account.id not in self._equity:
            self._equity[account.id] = self._read_equity(account)
        return self._equity[account.id]

    def returns(self, deployments: Sequence[Deployment]) -> "_Returns":
        """The daily returns of all trades of some deployments on the equity of their accounts."""
        ids = frozenset(each.id for each in deployments)
        if ids not in self._returns:
            self._returns[ids] = self._compute_returns(deployments, ids)
        return self._returns[ids]

    def _compute_returns(self, deployments: Sequence[Deployment], ids: Collection[str]) -> "_Returns":
        from backsight.core.trades.daily_returns import daily_returns

        equity = equity_of(self, deployments)
        computed = equity.missing or daily_returns(equity.accounts, self.closes(self.rows(ids)))
        if isinstance(computed, str):
            return _Returns(currency=equity.currency, missing=computed)
        return _Returns(currency=equity.currency, daily=computed)

    def trial_ratios(self, mode: str) -> list[float]:
        """The daily Sharpe ratios of all strategies of the owner in a mode that have one."""
        if mode not in self._trial_ratios:
            self._trial_ratios[mode] = _trial_ratios(self, mode)
        return self._trial_ratios[mode]

    def _read_equity(self, account: Account) -> "AccountEquity | None":
        import numpy as np

        from backsight.core.recall.arrays.columns import micros
        from backsight.core.trades.columns import UNKNOWN_INSTANT
        from backsight.core.trades.daily_returns import AccountEquity, MoneyFlow

        deployments = stored_strategies.deployments_of(self.view.connection, self.view.owner, account.id)
        rows = self.rows({each.id for each in deployments})
        reading = stored_state.first_reading(self.view, account.id)
        if reading is not None:
            at, equity = micros(reading[0]), reading[1]
        else:
            known = rows[
                np.isfinite(self.columns.entry_equity[rows]) & (self.columns.opened_at[rows] != UNKNOWN_INSTANT)
            ]
            if not len(known):
                return None
            first = known[np.lexsort((self.columns.entry_equity[known], self.columns.opened_at[known]))[0]]
            at, equity = int(self.columns.opened_at[first]), float(self.columns.entry_equity[first])
        transfers = stored_state.transfers(self.view, account.id)
        return AccountEquity(
            at=at,
            equity=equity,
            closes=self.closes(rows),
            transfers=MoneyFlow(
                at=np.array([micros(at) for at, _ in transfers], np.int64),
                amount=np.array([amount for _, amount in transfers], np.float64),
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Returns:
    """The daily returns of some deployments in a currency, or why there are none."""

    currency: str | None
    daily: "DailyReturns | None" = None
    missing: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EquityOfAccounts:
    """The accounts of some deployments with their known equity; `missing` says why it is not known."""

    accounts: "tuple[AccountEquity, ...]"
    currency: str | None
    missing: str | None


def equity_of(trades: KnownTrades, deployments: Sequence[Deployment]) -> EquityOfAccounts:
    """The equity of the accounts of deployments; unknown if one is not known, or if their currencies differ."""
    accounts = {each.account_id: account_of(trades.view.connection, each) for each in deployments}
    currencies = {account.currency for account in accounts.values()}
    currency = currencies.pop() if len(currencies) == 1 else None
    if currency is None and accounts:
        return EquityOfAccounts(accounts=(), currency=None, missing="the accounts have several currencies")
    known = {account.name: trades.account_equity(account) for _, account in sorted(accounts.items())}
    without = [name for name, equity in known.items() if equity is None]
    if without:
        missing = f"no equity of the account {without[0]!r} is known; record_equity records it"
        return EquityOfAccounts(accounts=(), currency=currency, missing=missing)
    return EquityOfAccounts(
        accounts=tuple(equity for equity in known.values() if equity is not None), currency=currency, missing=None
    )


def performance_of(trades: KnownTrades, deployments: Sequence[Deployment]) -> Performance:
    """The performance of the trades of deployments that are of one mode."""
    from backsight.core.trades.columns import closed_between
    from backsight.core.trades.figures import figures_by, figures_of, rows_by_label

    columns, rows = trades.columns, trades.rows({each.id for each in deployments})
    by_regime, by_symbol, by_direction = (
        figures_by(columns, rows_by_label(columns, rows, category, {}), most=GROUPS_SHOWN)
        for category in ("regime", "symbol", "direction")
    )
    first_closed_at, last_closed_at = closed_between(columns, rows)
    return Performance(
        figures=figures_of(columns, rows),
        returns=returns_of(trades, deployments),
        by_regime=by_regime,
        by_symbol=by_symbol,
        by_direction=by_direction,
        first_closed_at=first_closed_at,
        last_closed_at=last_closed_at,
    )


def returns_of(trades: KnownTrades, deployments: Sequence[Deployment]) -> ReturnFigures:
    """The figures of the daily returns of deployments on the equity of their accounts."""
    from backsight.core.trades.daily_returns import FEWEST_DAYS, deflated_sharpe

    known = trades.returns(deployments)
    returns = known.daily
    if returns is None:
        return ReturnFigures(
            days=0,
            days_per_year=None,
            sharpe=None,
            sortino=None,
            deflated_sharpe=None,
            drawdown=None,
            currency=known.currency,
            missing=known.missing,
        )
    days = len(returns.returns)
    few = f"{days} days of returns; the ratios need {FEWEST_DAYS}"
    return ReturnFigures(
        days=days,
        days_per_year=returns.days_per_year,
        sharpe=returns.sharpe,
        sortino=returns.sortino,
        deflated_sharpe=deflated_sharpe(returns, trades.trial_ratios(deployments[0].mode)),
        drawdown=returns.drawdown,
        currency=known.currency,
        missing=few if days < FEWEST_DAYS else None,
    )


def _trial_ratios(trades: KnownTrades, mode: str) -> list[float]:
    from backsight.services.deployments import deployments_at

    by_strategy: dict[str, list[Deployment]] = {}
    for each in deployments_at(trades.view):
        if each.mode == mode:
            by_strategy.setdefault(each.strategy_id, []).append(each)
    if len(by_strategy) < 2:
        return []
    daily = (trades.returns(deployments).daily for deployments in by_strategy.values())
    ratios = (None if each is None else each.sharpe_of_a_day for each in daily)
    return [ratio for ratio in ratios if ratio is not None]
