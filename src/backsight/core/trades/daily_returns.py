"""Daily returns on equity from closed trades: Sharpe, Sortino, the deflated Sharpe ratio, and the largest drawdown.

The return of a UTC day is the net result of the trades closed on it, over the equity of the accounts at its start. A
deposit counts from the start of its day, a withdrawal from the end. A day without a trade returns 0. Where no account
ever closes a trade on a Saturday or Sunday, these are not days: the market is closed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from statistics import NormalDist

import numpy as np

from backsight.core.trades.columns import Floats, Integers, order_of_codes
from backsight.core.trades.figures import DAY, EPOCH_WEEKDAY
from backsight.core.trades.performance import Drawdown, EquityDay

FEWEST_DAYS = 20
EVERY_DAY, WEEKDAYS_ONLY = 365, 252
"""Days of a year on which a market trades."""
SATURDAY = 5
EULER = 0.5772156649015329
FIRST_DAY = date(1970, 1, 1)
NORMAL = NormalDist()


@dataclass(frozen=True, kw_only=True)
class MoneyFlow:
    """Money that changed an account's equity: instants in microseconds since 1970, and amounts."""

    at: Integers
    amount: Floats

    @cached_property
    def by_day(self) -> tuple[Integers, Floats]:
        """The days with an amount, in order, and the sum of each; all strategies on an account read them."""
        return sum_by_day(self.at, self.amount)


@dataclass(frozen=True, kw_only=True)
class AccountEquity:
    """What is known of an account's equity: one reading, all results of closed trades, and all transfers."""

    at: int
    """The instant of the reading, in microseconds."""
    equity: float
    closes: MoneyFlow
    transfers: MoneyFlow

    @cached_property
    def first(self) -> float:
        """The equity before all closes and transfers, which those up to the reading imply."""
        flows = (self.closes, self.transfers)
        return self.equity - math.fsum(value for flow in flows for value in flow.amount[flow.at <= self.at].tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyReturns:
    """Returns of consecutive days, and how many such days a year has."""

    days: Integers
    """Days since 1970."""
    returns: Floats
    days_per_year: int

    @property
    def sharpe_of_a_day(self) -> float | None:
        """Mean over sample standard deviation; None below 20 days, or if all returns are equal."""
        if len(self.returns) < FEWEST_DAYS:
            return None
        deviation = float(self.returns.std(ddof=1))
        return float(self.returns.mean()) / deviation if deviation > 0.0 else None

    @property
    def sharpe(self) -> float | None:
        """The annual Sharpe ratio (Sharpe 1994), without a risk-free rate."""
        daily = self.sharpe_of_a_day
        return None if daily is None else daily * math.sqrt(self.days_per_year)

    @property
    def sortino(self) -> float | None:
        """The annual Sortino ratio (Sortino & Price 1994): mean over the root mean square of losses."""
        if len(self.returns) < FEWEST_DAYS:
            return None
        downside = math.sqrt(float((np.minimum(self.returns, 0.0) ** 2).mean()))
        return float(self.returns.mean()) / downside * math.sqrt(self.days_per_year) if downside > 0.0 else None

    @property
    def drawdown(self) -> Drawdown | None:
        """The largest drawdown of the compounded returns; None without a loss."""
        if not len(self.returns):
            return None
        index = np.concatenate([[1.0], np.cumprod(1.0 + self.returns)])
        days = np.concatenate([[self.days[0] - 1], self.days])
        return drawdown_of(days, index)


def drawdown_of(days: Integers, values: Floats) -> Drawdown | None:
    """The largest drawdown of a series of values by day; None without a loss."""
    peaks = np.maximum.accumulate(values)
    losses = 1.0 - values / peaks
    trough = int(losses.argmax())
    if losses[trough] <= 0.0:
        return None
    peak = int(np.flatnonzero(values[: trough + 1] == peaks[trough])[-1])
    again = np.flatnonzero(values[trough:] >= peaks[trough])
    return Drawdown(
        share=float(losses[trough]),
        peak_on=_date(days[peak]),
        trough_on=_date(days[trough]),
        recovered_on=_date(days[trough + again[0]]) if len(again) else None,
    )


def deflated_sharpe(returns: DailyReturns, trials: Sequence[float]) -> float | None:
    """The probability that the true Sharpe ratio is above that of the luckiest of several strategies without skill.

    Bailey & López de Prado (2014). `trials` are the daily Sharpe ratios of all strategies, this one included.
    """
    ratio = returns.sharpe_of_a_day
    if ratio is None or len(trials) < 2:
        return None
    centred = returns.returns - returns.returns.mean()
    variance = float((centred**2).mean())
    return probability_above(
        luckiest_ratio(len(trials), spread=float(np.std(np.sort(trials), ddof=1))),
        ratio=ratio,
        days=len(centred),
        skewness=float((centred**3).mean()) / variance**1.5,
        kurtosis=float((centred**4).mean()) / variance**2,
    )


def luckiest_ratio(count: int, *, spread: float) -> float:
    """The expected largest Sharpe ratio of strategies without skill whose ratios have a standard deviation.

    The example of the paper: 100 strategies, with a variance of 1/2 a year of 250 days.

    >>> round(luckiest_ratio(100, spread=math.sqrt(0.5 / 250)), 4)
    0.1132
    """
    most, nearly = NORMAL.inv_cdf(1.0 - 1.0 / count), NORMAL.inv_cdf(1.0 - 1.0 / (count * math.e))
    return spread * ((1.0 - EULER) * most + EULER * nearly)


def probability_above(threshold: float, *, ratio: float, days: int, skewness: float, kurtosis: float) -> float | None:
    """The probability that the true daily Sharpe ratio is above a threshold; None if the moments are too extreme.

    >>> round(probability_above(0.1132, ratio=2.5 / math.sqrt(250), days=1250, skewness=-3.0, kurtosis=10.0), 3)
    0.9
    """
    noise = 1.0 - skewness * ratio + (kurtosis - 1.0) / 4.0 * ratio**2
    return NORMAL.cdf((ratio - threshold) * math.sqrt(days - 1) / math.sqrt(noise)) if noise > 0.0 else None


def sum_by_day(at: Integers, amounts: Floats) -> tuple[Integers, Floats]:
    """The days with an amount, in order, and the sum of each; equal whatever the order of the amounts."""
    if not len(at):
        return np.empty(0, np.int64), np.empty(0)
    days = at // DAY
    first = int(days.min())
    by_amount = np.argsort(amounts)
    order = by_amount[order_of_codes(days[by_amount] - first, int(days.max()) - first + 1)]
    ordered = days[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return ordered[starts], np.add.reduceat(amounts[order], starts)


def equity_days(accounts: Sequence[AccountEquity], first: int, last: int) -> tuple[Floats, Floats, Floats]:
    """The start, the net result and the transfers of every day from the first to the last, of accounts together."""
    count = last - first + 1
    opening, net, transfers, deposits = 0.0, np.zeros(count), np.zeros(count), np.zeros(count)
    for account in accounts:
        opening += account.first
        for flow, by_day in ((account.closes, net), (account.transfers, transfers)):
            opening += math.fsum(flow.amount[flow.at // DAY < first].tolist())
            days, sums = flow.by_day
            inside = (days >= first) & (days <= last)
            by_day[days[inside] - first] += sums[inside]
        into = account.transfers.amount > 0.0
        days, sums = sum_by_day(account.transfers.at[into], account.transfers.amount[into])
        inside = (days >= first) & (days <= last)
        deposits[days[inside] - first] += sums[inside]
    changes = np.cumsum(net + transfers)
    start = opening + np.concatenate([[0.0], changes[:-1]]) + deposits
    return start, net, transfers


def trades_at_weekends(accounts: Sequence[AccountEquity]) -> bool:
    """Whether a trade of the accounts was closed on a Saturday or Sunday."""
    return any(bool((weekday_of(account.closes.at // DAY) >= SATURDAY).any()) for account in accounts)


def weekday_of(days: Integers) -> Integers:
    """The weekday of days since 1970; 0 is Monday."""
    return (days + EPOCH_WEEKDAY) % 7


def daily_returns(accounts: Sequence[AccountEquity], closes: MoneyFlow) -> DailyReturns | str:
    """The returns of closes on the equity of accounts from the first to the last close; a text says why there are none.

    The closes are those of one strategy. The accounts may have others beside them.
    """
    if not len(closes.at):
        return "no trade is closed yet"
    own_days, own_net = closes.by_day
    first, last = int(own_days[0]), int(own_days[-1])
    start, _, _ = equity_days(accounts, first, last)
    if not (start > 0.0).all():
        day = _date(first + int(np.flatnonzero(~(start > 0.0))[0]))
        return f"the equity that is known is not positive on {day}; record_equity records it"
    net = np.zeros(last - first + 1)
    net[own_days - first] = own_net
    days, returns = np.arange(first, last + 1), net / start
    if trades_at_weekends(accounts):
        return DailyReturns(days=days, returns=returns, days_per_year=EVERY_DAY)
    open_days = weekday_of(days) < SATURDAY
    return DailyReturns(days=days[open_days], returns=returns[open_days], days_per_year=WEEKDAYS_ONLY)


def equity_curve(accounts: Sequence[AccountEquity], first: int, last: int) -> list[EquityDay]:
    """The equity of accounts on every UTC day from the first to the last, from closed trades."""
    start, net, transfers = equity_days(accounts, first, last)
    end = start + net + np.minimum(transfers, 0.0)
    columns = zip(start.tolist(), net.tolist(), transfers.tolist(), end.tolist(), strict=True)
    return [
        EquityDay(day=_date(first + number), start=opened, net=result, transfers=moved, end=closed)
        for number, (opened, result, moved, closed) in enumerate(columns)
    ]


def _date(day: int) -> date:
    return FIRST_DAY + timedelta(days=int(day))


def day_number(day: date) -> int:
    """A day as the number of days since 1970."""
    return (day - FIRST_DAY).days


def first_day(accounts: Sequence[AccountEquity]) -> date:
    """The day of the first close, transfer or reading of accounts."""
    flows = [flow.at.min() for account in accounts for flow in (account.closes, account.transfers) if len(flow.at)]
    return _date(min([account.at for account in accounts] + flows) // DAY)
