"""Trades with a planted truth, to see which arm finds it: one strategy, ±1R, in three symbols over a year.

Direction, symbol, regime, volatility regime and session are drawn independently of each other, all values alike.
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid
from backsight.core.instants import format_instant
from backsight.core.portfolio import Direction
from backsight.core.regime import Regime, VolatilityRegime, session_of
from backsight.lab.trades import USUAL_SHARE, LabEntry, LabTrade, LabTrades

Truth = Literal["edge_by_regime", "edge_that_dies", "no_edge", "revenge_trading"]
TRUTHS: tuple[Truth, ...] = get_args(Truth)
START = datetime(2025, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=364)
SYMBOLS = ("AAA", "BBB", "CCC")
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
REGIMES: tuple[Regime, ...] = get_args(Regime)
VOLATILITY: tuple[VolatilityRegime, ...] = get_args(VolatilityRegime)
STRATEGY = "planted"
EQUITY, PRICE = 100_000.0, 100.0
GOOD_REGIME: Regime = "trending_up"
DEATH = 0.75
"""The share of the trades after which the edge dies: the middle of the usual validation half."""
REVENGE_SIZE = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOdds:
    """The probability of a win, and the recorded size as a multiple of the usual."""

    win: float
    size: float = 1.0
    hurried: bool = False
    """Whether the trade follows the last one within the hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OddsInputs:
    """What the odds of the next trade depend on."""

    progress: float
    """The share of all trades that came before."""
    regime: Regime
    last_lost: bool


def _edge_by_regime(now: OddsInputs) -> TradeOdds:
    return TradeOdds(win=0.7 if now.regime == GOOD_REGIME else 0.5)


def _edge_that_dies(now: OddsInputs) -> TradeOdds:
    return TradeOdds(win=0.65 if now.progress < DEATH else 0.45)


def _no_edge(now: OddsInputs) -> TradeOdds:
    return TradeOdds(win=0.5)


def _revenge_trading(now: OddsInputs) -> TradeOdds:
    return TradeOdds(win=0.4, size=REVENGE_SIZE, hurried=True) if now.last_lost else TradeOdds(win=0.6)


ODDS: Mapping[Truth, Callable[[OddsInputs], TradeOdds]] = {
    "edge_by_regime": _edge_by_regime,
    "edge_that_dies": _edge_that_dies,
    "no_edge": _no_edge,
    "revenge_trading": _revenge_trading,
}
MEANINGS: Mapping[Truth, str] = {
    "edge_by_regime": "70% winners in one regime of four, 50% elsewhere",
    "edge_that_dies": "65% winners in the first three quarters of the trades, then 45%",
    "no_edge": "50% winners, whatever the context",
    "revenge_trading": "60% winners, but after a loss 40%, in haste and at twice the size",
}


def truth_named(name: str) -> Truth:
    """The truth with a name.

    >>> truth_named("no_edge")
    'no_edge'
    """
    for truth in TRUTHS:
        if truth == name:
            return truth
    raise Invalid(f"{name!r} is not a truth; give one of {', '.join(TRUTHS)}", field="truth")


def planted_trades(truth: Truth, *, trades: int = 500, seed: int = 1) -> LabTrades:
    """Trades with a planted truth, in the order of their entries; each closes before the next opens.

    >>> planted = planted_trades("no_edge", trades=4, seed=1)
    >>> [trade.outcome_r for trade in planted.trades], planted.notes
    ([-1.0, -1.0, -1.0, -1.0], ('Planted: 50% winners, whatever the context.',))
    """
    if trades < 1:
        raise Invalid(f"{trades} trades; give 1 or more", field="trades")
    rng = random.Random(f"{seed} {truth}")  # noqa: S311 (outcomes, not secrets)
    step, made, last_lost, closed_at = YEAR / trades, list[LabTrade](), False, START
    for number in range(trades):
        regime = rng.choice(REGIMES)
        odds = ODDS[truth](OddsInputs(progress=number / trades, regime=regime, last_lost=last_lost))
        opens_at = START + step * (number + 0.4 * rng.random())
        if odds.hurried:
            opens_at = closed_at + min(timedelta(minutes=20), step / 10)
        closed_at = opens_at + step * (0.1 + 0.2 * rng.random())
        context = ContextVector(regime=regime, volatility_regime=rng.choice(VOLATILITY), session=session_of(opens_at))
        won = rng.random() < odds.win
        made.append(_trade(number, context, rng, odds, opens_at=opens_at, closed_at=closed_at, won=won))
        last_lost = not won
    change = int(DEATH * trades) if truth == "edge_that_dies" else None
    return LabTrades(trades=tuple(made), notes=(f"Planted: {MEANINGS[truth]}.",), change_at=change)


def _trade(
    number: int,
    context: ContextVector,
    rng: random.Random,
    odds: TradeOdds,
    *,
    opens_at: datetime,
    closed_at: datetime,
    won: bool,
) -> LabTrade:
    direction, outcome = rng.choice(DIRECTIONS), 1.0 if won else -1.0
    share = USUAL_SHARE * odds.size
    move = outcome if direction == "long" else -outcome
    return LabTrade(
        entry=LabEntry(
            id=f"planted-{number:06d}",
            at=opens_at,
            symbol=rng.choice(SYMBOLS),
            direction=direction,
            strategy_name=STRATEGY,
            price=PRICE,
            recorded_share=share,
            context=context,
        ),
        closed_at=closed_at,
        exit_price=PRICE + move,
        pnl=share * EQUITY * outcome,
        outcome_r=outcome,
    )


def planted_file(planted: LabTrades) -> str:
    """Planted trades as JSON Lines that `backsight lab run` and `backsight import trades` read."""
    return "".join(f"{json.dumps(_row(trade))}\n" for trade in planted.trades)


def _row(trade: LabTrade) -> dict[str, object]:
    entry = trade.entry
    return {
        "idempotency_key": entry.id,
        "symbol": entry.symbol,
        "direction": entry.direction,
        "entry_price": entry.price,
        "exit_price": trade.exit_price,
        "size": abs(trade.pnl / (trade.exit_price - entry.price)),
        "pnl": trade.pnl,
        "pnl_r": trade.outcome_r,
        "strategy_name": entry.strategy_name,
        "opened_at": format_instant(entry.at),
        "closed_at": format_instant(trade.closed_at),
        "context": {name: getattr(entry.context, name) for name in ("regime", "volatility_regime", "session")},
        "mode": "sim",
    }
