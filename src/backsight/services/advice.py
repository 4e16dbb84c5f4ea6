"""The evidence for advice: what trades earned where a plan would apply, and the sizes that are recommended there."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from backsight.core.instruments import Underlyings
from backsight.core.memory.advice import Advice, DomainOutcome, SizeRange, advise, direction_of, objection, size_range
from backsight.core.memory.cells import day_of
from backsight.core.memory.conditions import Condition
from backsight.core.memory.daily_moments import DailyMoments
from backsight.core.memory.episodic import Episode
from backsight.core.memory.experience import episodes_where
from backsight.core.memory.semantic import main_outcome, place_of, won
from backsight.core.missing_outcomes import KnownOutcomes
from backsight.core.recommended_size import FEWEST_TRADES, SizedTrade, SizingQuery
from backsight.core.strategies import Deployment
from backsight.core.trades.trade import OutcomeUnit
from backsight.services.habit_learning import falling_outcomes_since
from backsight.store import memories as stored
from backsight.store.instruments import underlyings
from backsight.store.view import View

if TYPE_CHECKING:
    from backsight.core.sizing import TradeColumns

REVIEWS_IN_A_DOUBLING = 20
"""Advice is looked at again whenever a strategy has a fortieth to a twentieth more trades."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceEvidence:
    """The mean outcome where a condition held at entry, and the sizes that `position_size` recommends there."""

    outcome: DomainOutcome
    sizes: SizeRange | None
    """None if the mean outcome supports no advice anyway."""

    @property
    def advice(self) -> Advice | None:
        return advise(self.outcome, self.sizes)

    @property
    def objection(self) -> str | None:
        """Why there is no advice; None if there is."""
        return objection(self.outcome, self.sizes)


def is_due(n: int) -> bool:
    """Whether advice is made or reviewed at n trades: at each one below 40, at every second below 80, and so on.

    >>> [n for n in range(36, 50) if is_due(n)], [n for n in range(10_000, 11_000) if is_due(n)]
    ([36, 37, 38, 39, 40, 42, 44, 46, 48], [10240, 10752])
    """
    step = 1
    while n >= 2 * REVIEWS_IN_A_DOUBLING * step:
        step *= 2
    return n % step == 0


def advice_evidence(view: View, deployment: Deployment, condition: Condition) -> AdviceEvidence:
    """The evidence for advice to a deployment where a condition holds, from all its strategy's trades in its mode."""
    return AdviceTrades(view, deployment).evidence(condition)


class AdviceTrades:
    """The trades of a deployment's strategy in its mode, read once for all conditions that are asked about."""

    def __init__(self, view: View, deployment: Deployment) -> None:
        self._view = view
        self._deployment = deployment
        self._sizes: dict[SizingQuery, float | None] = {}
        self._columns: dict[frozenset[tuple[tuple[str, str | None], datetime]], TradeColumns] = {}

    @cached_property
    def _trades(self) -> list[Episode]:
        deployment = self._deployment
        return stored.teaching_trades(self._view, mode=deployment.mode, strategy_name=deployment.strategy_name)

    def evidence(self, condition: Condition) -> AdviceEvidence:
        """The evidence for advice where a condition holds."""
        trades = self._trades
        inside = episodes_where(condition, trades)
        ids = {trade.id for trade in inside}
        unit, moments = main_outcome(_moments(inside))
        others = [
            trade.outcome.value
            for trade in trades
            if trade.id not in ids and trade.outcome is not None and trade.outcome.unit == unit
        ]
        outcome = DomainOutcome(
            unit=unit,
            n=moments.n,
            mean=moments.mean,
            interval=moments.interval(),
            elsewhere=sum(others) / len(others) if others else None,
            unknown=len(inside) - moments.n,
        )
        outcome = replace(outcome, biased=_bias(outcome, inside))
        if outcome.biased is not None or direction_of(outcome) is None:
            return AdviceEvidence(outcome=outcome, sizes=None)
        return AdviceEvidence(outcome=outcome, sizes=self._recommended_sizes(inside))

    def _recommended_sizes(self, inside: Sequence[Episode]) -> SizeRange:
        """The range of the sizes in the contexts in which the trades inside a domain were made.

        Each context is asked about with all its categories, and without volatility and session, which many callers
        leave out. Other strategies tried lower the sizes, as in `position_size`. Open trades do not, since advice
        outlasts them: `position_size` subtracts what is at risk when a trade is sized.
        """
        from backsight.core.sizing import position_sizes

        one_of_each = {place_of(trade): trade for trade in inside}
        queries = {query for trade in one_of_each.values() for query in _queries(trade, self._underlyings)}
        new = sorted(queries - self._sizes.keys(), key=repr)
        for underlying in sorted({query.symbol or "" for query in new}):
            about = [query for query in new if (query.symbol or "") == underlying]
            sizes = position_sizes(self._columns_for(underlying), about, strategies=self._strategies)
            self._sizes |= {query: size.recommended for query, size in zip(about, sizes, strict=True)}
        return size_range(self._sizes[query] for query in queries)

    def _columns_for(self, underlying: str) -> "TradeColumns":
        """The trades that sizes in an underlying come from; underlyings with the same declines share their columns.

        Where the results of a symbol or of the strategy decline, only trades since then count, as in `position_size`;
        as there, outcomes that are not known in R lower the sizes.
        """
        from backsight.core.sizing import trade_columns

        mode, strategy_name, known_symbols = self._deployment.mode, self._deployment.strategy_name, self._underlyings
        joined = sorted(symbol for symbol in self._symbols if known_symbols.of(symbol) == underlying)
        declines = falling_outcomes_since(self._view, mode, strategy_name=strategy_name, symbols=joined)
        key = frozenset(declines.items())
        if key not in self._columns:
            counted = [trade for trade in self._trades if _is_after(trade, declines)]
            known = known_outcomes(counted, "R")
            self._columns[key] = replace(
                trade_columns(_sized_trade(trade, known_symbols) for trade in counted if _is_in(trade, "R")),
                unknown_won=known.won - known.known_won,
                unknown_lost=known.lost - known.known_lost,
            )
        return self._columns[key]

    @cached_property
    def _symbols(self) -> set[str]:
        return {trade.symbol for trade in self._trades}

    @cached_property
    def _underlyings(self) -> Underlyings:
        return underlyings(self._view)

    @cached_property
    def _strategies(self) -> int:
        """The number of strategies in the mode with enough trades to be sized."""
        return sum(n >= FEWEST_TRADES for n in stored.trades_in_r(self._view, self._deployment.mode).values())


def _bias(outcome: DomainOutcome, trades: Sequence[Episode]) -> str | None:
    """Why the known outcomes do not speak for all trades of a domain: those that contradict the advice are missing."""
    known = known_outcomes(trades, outcome.unit)
    hides = known.hides_losers if direction_of(outcome) == "trade_more" else known.hides_winners
    return known.in_words if outcome.unknown and hides else None


def known_outcomes(trades: Iterable[Episode], unit: OutcomeUnit) -> KnownOutcomes:
    """Of how many winners and losers the outcome is known in a unit; trades without any result are left out."""
    counts = Counter((won(trade), _is_in(trade, unit)) for trade in trades)
    return KnownOutcomes(
        won=counts[True, True] + counts[True, False],
        lost=counts[False, True] + counts[False, False],
        known_won=counts[True, True],
        known_lost=counts[False, True],
    )


def _moments(trades: Iterable[Episode]) -> dict[OutcomeUnit, DailyMoments]:
    moments: dict[OutcomeUnit, DailyMoments] = {}
    for trade in sorted(trades, key=lambda each: (each.ended_at, each.id)):
        if trade.outcome is not None:
            unit, day = trade.outcome.unit, day_of(trade).isoformat()
            moments[unit] = moments.get(unit, DailyMoments()).add(trade.outcome.value, day=day)
    return moments


def _is_after(trade: Episode, declines: Mapping[tuple[str, str | None], datetime]) -> bool:
    """Whether a trade ended after the declines that concern it."""
    concerned = ((trade.strategy_name, trade.symbol), (trade.strategy_name, None))
    return all(each not in declines or trade.ended_at >= declines[each] for each in concerned)


def _queries(trade: Episode, underlyings: Underlyings) -> tuple[SizingQuery, SizingQuery]:
    context, underlying = trade.context, underlyings.of(trade.symbol)
    brief = SizingQuery(direction=trade.direction, symbol=underlying, regime=context.regime)
    whole = SizingQuery(
        direction=trade.direction,
        symbol=underlying,
        regime=context.regime,
        volatility_regime=context.volatility_regime,
        session=context.session,
    )
    return brief, whole


def _is_in(trade: Episode, unit: OutcomeUnit) -> bool:
    return trade.outcome is not None and trade.outcome.unit == unit


def _sized_trade(trade: Episode, underlyings: Underlyings) -> SizedTrade:
    context = trade.context
    return SizedTrade(
        outcome_r=0.0 if trade.outcome is None else trade.outcome.value,
        day=day_of(trade),
        direction=trade.direction,
        symbol=underlyings.of(trade.symbol),
        regime=context.regime,
        volatility_regime=context.volatility_regime,
        session=context.session,
    )
