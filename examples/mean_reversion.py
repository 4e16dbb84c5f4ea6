"""Mean reversion: without a trend, a price that returns into its band continues to the mean."""

import math
from collections.abc import Sequence
from datetime import timedelta

from backsight import AgentDecision, AgentInput, Bar, Order, Position

HOUR = timedelta(hours=1)
BARS_AN_HOUR = 12


class MeanReversion:
    """Sells a price that falls back into its band, buys the opposite, and takes profit at the moving mean."""

    name = "MeanReversion"
    thesis = "Without a trend an extreme is a mistake: the price goes back to its mean."
    rules = (
        "Enter when an hour brings the price back inside two deviations of the last twenty hours, but not past one.",
        "Stop half a deviation beyond the extreme of the last two hours; target the mean, and move it along.",
        "Out when the market trends against the position after all.",
    )
    avoid = ("Fading a trend.", "Moving a stop away.")
    reads_memory = False  # it decides by prices alone

    def __init__(
        self,
        *,
        risk: float = 0.01,
        lookback: int = 240,
        band: float = 2.0,
        beyond: float = 0.5,
        calm: float = 0.1,
        trend: float = 0.15,
        max_leverage: float = 3.0,
    ) -> None:
        self.risk, self.lookback, self.max_leverage = risk, lookback, max_leverage
        self.band, self.beyond, self.calm, self.trend = band, beyond, calm, trend

    def decide(self, agent_input: AgentInput) -> AgentDecision:
        """At most one order: open positions come first, then the first market that returns to its band."""
        positions = {position.symbol: position for position in agent_input.portfolio.positions}
        for symbol in sorted(agent_input.bars, key=lambda symbol: (symbol not in positions, symbol)):
            bars, mark = agent_input.bars[symbol][-self.lookback :], agent_input.marks.get(symbol, 0.0)
            if mark <= 0 or len(bars) < self.lookback or agent_input.at - bars[-1].closes_at >= HOUR:
                continue  # unknown, or closed
            position = positions.get(symbol)
            decision = self._enter(agent_input, bars, mark=mark) if position is None else self._manage(position, bars)
            if decision is not None:
                return decision
        return AgentDecision(reason="Nothing comes back from an extreme.")

    def _enter(self, agent_input: AgentInput, bars: Sequence[Bar], *, mark: float) -> AgentDecision | None:
        """An order back to the mean, in the hour in which the price has come back inside the band."""
        mean, deviation = _mean_and_deviation(bars)
        side = 1 if bars[-BARS_AN_HOUR].open < mean else -1
        earlier, left = side * (mean - bars[-BARS_AN_HOUR].open), side * (mean - mark)
        if not deviation <= left < self.band * deviation <= earlier or abs(_efficiency(bars)) > self.calm:
            return None
        recent = bars[-2 * BARS_AN_HOUR :]
        extreme = min(bar.low for bar in recent) if side > 0 else max(bar.high for bar in recent)
        distance, equity = side * (mark - extreme) + self.beyond * deviation, agent_input.portfolio.equity
        room = self.max_leverage * equity - sum(each.size * each.mark for each in agent_input.portfolio.positions)
        size = math.floor(1e4 * min(self.risk * equity / distance, room / mark)) / 1e4
        if size <= 0:
            return None
        order = Order(
            symbol=bars[-1].symbol,
            quantity=side * size,
            stop_price=float(f"{mark - side * distance:.6g}"),
            target_price=float(f"{mean:.6g}"),
            reason=f"Back inside the band at {mark:g} and no trend: fade it to the mean at {mean:.6g}.",
        )
        return AgentDecision(order=order, confidence=round(0.5 + 0.2 * left / earlier, 2))

    def _manage(self, position: Position, bars: Sequence[Bar]) -> AgentDecision | None:
        """Out where the market trends against it or is back at the mean; else the target moves with the mean."""
        mean, deviation = _mean_and_deviation(bars)
        side, target = 1 if position.direction == "long" else -1, float(f"{mean:.6g}")
        if side * _efficiency(bars) < -self.trend:
            return _ordered(position, quantity=-position.signed_size, reason="It trends against the fade: out.")
        if side * (target - position.mark) <= 0:
            return _ordered(position, quantity=-position.signed_size, reason=f"Back at the mean of {target:g}: done.")
        if position.target_price is None or abs(target - position.target_price) > deviation / 4:
            return _ordered(position, target=target, reason=f"The mean has moved: take profit at {target:g}.")
        return None


def _ordered(position: Position, *, reason: str, quantity: float = 0.0, target: float | None = None) -> AgentDecision:
    """An order that closes a position, or only moves its target."""
    order = Order(
        symbol=position.symbol,
        quantity=quantity,
        target_price=target,
        reduce_only=True,
        position_key=position.position_key,
        reason=reason,
    )
    return AgentDecision(order=order)


def _mean_and_deviation(bars: Sequence[Bar]) -> tuple[float, float]:
    mean = sum(bar.close for bar in bars) / len(bars)
    return mean, math.sqrt(sum((bar.close - mean) ** 2 for bar in bars) / len(bars))


def _efficiency(bars: Sequence[Bar]) -> float:
    """The net move over the length of the path: 1 straight up, -1 straight down, near 0 in a range (Kaufman 1995)."""
    path = sum(abs(bar.close - bar.open) for bar in bars)
    return (bars[-1].close - bars[0].open) / path if path else 0.0
