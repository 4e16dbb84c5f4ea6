"""Intraday momentum: a morning move that is large enough continues until the evening; no position is held overnight."""

import math
from collections.abc import Sequence
from datetime import timedelta

from backsight import AgentDecision, AgentInput, Bar, Order, Position

HOUR = timedelta(hours=1)
BARS_AN_HOUR = 12


class IntradayMomentum:
    """Joins the move since midnight UTC when it becomes large, and is out at the stop, the target or in the evening.

    That the earlier part of a day tells of the later: Gao, Han, Li and Zhou, Market intraday momentum (2018).
    """

    name = "IntradayMomentum"
    thesis = "Whoever moves the morning is not done by noon: a large move since midnight goes on until the evening."
    rules = (
        "Enter from 07:00 to 16:00 UTC, after the hour that takes the move since midnight beyond three usual hours.",
        "Stop two usual hours away, target twice that.",
        "Flat from 20:00 to 07:00 UTC.",
    )
    avoid = ("Holding overnight.", "Entering on a move that became large hours ago.")
    reads_memory = False  # it decides by prices alone

    def __init__(
        self,
        *,
        risk: float = 0.01,
        lookback: int = 288,
        move_hours: float = 3.0,
        stop_hours: float = 2.0,
        reward: float = 2.0,
        first_entry: int = 7,
        last_entry: int = 15,
        flat_from: int = 20,
        max_leverage: float = 3.0,
    ) -> None:
        self.risk, self.lookback, self.max_leverage = risk, lookback, max_leverage
        self.move_hours, self.stop_hours, self.reward = move_hours, stop_hours, reward
        self.first_entry, self.last_entry, self.flat_from = first_entry, last_entry, flat_from

    def decide(self, agent_input: AgentInput) -> AgentDecision:
        """At most one order: close a position in the evening, or enter the first market that moves."""
        hour = agent_input.at.hour
        is_night, may_enter = not self.first_entry <= hour < self.flat_from, self.first_entry <= hour <= self.last_entry
        positions = {position.symbol: position for position in agent_input.portfolio.positions}
        for symbol in [symbol for symbol in sorted(agent_input.bars) if self._is_readable(agent_input, symbol)]:
            if is_night and symbol in positions:
                return self._leave(positions[symbol])
            if may_enter and symbol not in positions and (decision := self._enter(agent_input, symbol)) is not None:
                return decision
        return AgentDecision(reason="No move that has just become large, and nothing to close.")

    def _is_readable(self, agent_input: AgentInput, symbol: str) -> bool:
        """Whether there is a mark and a day to compare with, and the market is open."""
        bars = agent_input.bars[symbol]
        has_mark = agent_input.marks.get(symbol, 0.0) > 0
        return has_mark and len(bars) >= self.lookback and agent_input.at - bars[-1].closes_at < HOUR

    def _leave(self, position: Position) -> AgentDecision:
        order = Order(
            symbol=position.symbol,
            quantity=-position.signed_size,
            reduce_only=True,
            position_key=position.position_key,
            reason=f"The day is over at {position.mark:g}: flat overnight.",
        )
        return AgentDecision(order=order)

    def _enter(self, agent_input: AgentInput, symbol: str) -> AgentDecision | None:
        """An order with the day's move, in the hour in which it has become large."""
        bars, mark = agent_input.bars[symbol][-self.lookback :], agent_input.marks[symbol]
        midnight = agent_input.at.replace(hour=0, minute=0, second=0, microsecond=0)
        opened = next((bar.open for bar in bars if bar.opened_at >= midnight), mark)
        move, earlier, usual = mark - opened, bars[-BARS_AN_HOUR].open - opened, _usual_hour(bars)
        side = 1 if move > 0 else -1
        if not usual or not side * earlier < self.move_hours * usual <= side * move:
            return None
        distance, equity = self.stop_hours * usual, agent_input.portfolio.equity
        room = self.max_leverage * equity - sum(each.size * each.mark for each in agent_input.portfolio.positions)
        size = math.floor(1e4 * min(self.risk * equity / distance, room / mark)) / 1e4
        if size <= 0:
            return None
        strength = abs(move) / usual
        order = Order(
            symbol=symbol,
            quantity=side * size,
            stop_price=float(f"{mark - side * distance:.6g}"),
            target_price=float(f"{mark + side * self.reward * distance:.6g}"),
            reason=f"{'Up' if side > 0 else 'Down'} {strength:.1f} usual hours since midnight: join until the evening.",
        )
        return AgentDecision(order=order, confidence=round(min(0.9, 0.3 + 0.1 * strength), 2))


def _usual_hour(bars: Sequence[Bar]) -> float:
    """The mean range of an hour."""
    hours = [bars[at : at + BARS_AN_HOUR] for at in range(0, len(bars), BARS_AN_HOUR)]
    return sum(max(bar.high for bar in hour) - min(bar.low for bar in hour) for hour in hours) / len(hours)
