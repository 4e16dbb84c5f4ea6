"""Go with the break: a close outside the day's range on more than the usual movement, trailed until it turns."""

import math
import re
from collections.abc import Sequence
from datetime import timedelta

from backsight import AgentDecision, AgentInput, Bar, Order, Position

HOUR = timedelta(hours=1)
BARS_AN_HOUR = 12


class VolatilityBreakout:
    """Buys and sells breaks of the range, trails the stop, and turns when the other side breaks."""

    name = "VolBreakout"
    thesis = "A break of the day's range on rising volatility carries on: those on the wrong side have to get out."
    rules: tuple[str, ...] = (
        "Enter when an hour closes outside the range of the day before it and moved a quarter more than usual.",
        "Stop two usual hours from the entry; trail it four behind the best price of the day.",
        "Turn when such an hour closes beyond the other side of the last eight hours.",
    )
    avoid = ("Breaks in a quiet hour.", "Adding to a position.")
    reads_memory = False  # it decides by prices alone

    def __init__(
        self,
        *,
        risk: float = 0.01,
        lookback: int = 276,
        turn_lookback: int = 96,
        least_stretch: float = 1.25,
        stop_hours: float = 2.0,
        trail_hours: float = 4.0,
        max_leverage: float = 3.0,
    ) -> None:
        self.risk, self.max_leverage = risk, max_leverage
        self.lookback, self.turn_lookback, self.least_stretch = lookback, turn_lookback, least_stretch
        self.stop_hours, self.trail_hours = stop_hours, trail_hours

    def risk_of(self, agent_input: AgentInput, symbol: str, direction: str) -> float:
        """The share of equity to risk on an entry."""
        return self.risk

    def decide(self, agent_input: AgentInput) -> AgentDecision:
        """At most one order: open positions come first, then the first market that breaks out."""
        positions = {position.symbol: position for position in agent_input.portfolio.positions}
        for symbol in sorted(agent_input.bars, key=lambda symbol: (symbol not in positions, symbol)):
            bars, mark = agent_input.bars[symbol][-self.lookback - BARS_AN_HOUR :], agent_input.marks.get(symbol, 0.0)
            too_few = len(bars) < self.lookback + BARS_AN_HOUR
            if mark <= 0 or too_few or agent_input.at - bars[-1].closes_at >= HOUR:  # unknown, or closed
                continue
            decision = self._propose(agent_input, bars, mark=mark, position=positions.get(symbol))
            if decision is not None:
                return decision
        return AgentDecision(reason="No break worth trading, and no stop to trail.")

    def _propose(
        self, agent_input: AgentInput, bars: Sequence[Bar], *, mark: float, position: Position | None
    ) -> AgentDecision | None:
        past, last = bars[:-BARS_AN_HOUR], bars[-BARS_AN_HOUR:]
        hours = [past[at : at + BARS_AN_HOUR] for at in range(0, len(past), BARS_AN_HOUR)]
        usual = sum(_reach(hour) for hour in hours) / len(hours)
        range_ = past[-self.turn_lookback :] if position else past
        side = (mark > max(bar.high for bar in range_)) - (mark < min(bar.low for bar in range_))
        is_new = position is None or position.signed_size * side < 0
        if side and usual and is_new and _reach(last) >= self.least_stretch * usual:
            return self._enter(agent_input, bars, mark=mark, side=side, usual=usual, position=position)
        return self._trail(position, bars, usual=usual) if position else None

    def _enter(
        self,
        agent_input: AgentInput,
        bars: Sequence[Bar],
        *,
        mark: float,
        side: int,
        usual: float,
        position: Position | None,
    ) -> AgentDecision | None:
        """An order in the direction of the break; it reverses a position on the other side."""
        equity, distance = agent_input.portfolio.equity, self.stop_hours * usual
        others = [each for each in agent_input.portfolio.positions if each != position]
        room = self.max_leverage * equity - sum(each.size * each.mark for each in others)
        risk = self.risk_of(agent_input, bars[-1].symbol, "long" if side > 0 else "short")
        size = math.floor(1e4 * min(risk * equity / distance, room / mark)) / 1e4
        if size <= 0:
            return None
        stretch = _reach(bars[-BARS_AN_HOUR:]) / usual
        does = f"{'Turn' if position else 'Go'} {'long' if side > 0 else 'short'}"
        order = Order(
            symbol=bars[-1].symbol,
            quantity=side * size - (position.signed_size if position else 0.0),
            stop_price=float(f"{mark - side * distance:.6g}"),
            position_key=position.position_key if position else None,
            reason=f"{does} on the break at {mark:g}, in an hour {stretch:.1f} times as wide as usual.",
        )
        return AgentDecision(order=order, confidence=round(min(0.9, 0.4 + 0.1 * stretch), 2))

    def _trail(self, position: Position, bars: Sequence[Bar], *, usual: float) -> AgentDecision | None:
        """The stop behind the best price of the day, where that is clearly better than the one in force."""
        side = 1 if position.direction == "long" else -1
        best = max(bar.high for bar in bars) if side > 0 else min(bar.low for bar in bars)
        stop = float(f"{best - side * self.trail_hours * usual:.6g}")
        better = math.inf if position.stop_price is None else side * (stop - position.stop_price)
        if side * (position.mark - stop) <= 0 or better < usual / 4:
            return None
        order = Order(
            symbol=position.symbol,
            quantity=0.0,
            stop_price=stop,
            position_key=position.position_key,
            reason=f"Trail the stop to {stop:g}, {self.trail_hours:g} usual hours off the day's best of {best:g}.",
        )
        return AgentDecision(order=order)


class AdvisedBreakout(VolatilityBreakout):
    """The same strategy with sizes from its memory, which it reads in its prompt as a language model would."""

    rules = (
        *VolatilityBreakout.rules,
        "Risk what memory recommends for the direction, without a recommendation the usual risk; a quarter of that at"
        " least, to go on learning.",
        "Halve the risk if memory warns of a similar loss in the direction.",
    )
    reads_memory = True
    least_share = 0.25

    def risk_of(self, agent_input: AgentInput, symbol: str, direction: str) -> float:
        """The recommended risk within limits; the usual risk if the prompt has no recommendation, as without memory."""
        text = next((part.text for part in agent_input.opened.memory if part.name == "what_usually_happens"), "")
        line = re.search(rf"^- {re.escape(symbol)} {direction}: .*", text, re.MULTILINE | re.IGNORECASE)
        if line is None or "no recommendation" in line[0].lower():
            return self.risk
        advice = re.search(r"\brisk ([\d.]+)% of equity", line[0], re.IGNORECASE)
        risk = 0.0 if advice is None else min(self.risk, float(advice[1]) / 100)
        block = text.partition(line[0])[2].partition(" now: ")[0]  # up to the next symbol
        if re.search(rf"^- (nearest and )?warning: \S+ {direction} ", block, re.MULTILINE):
            risk /= 2
        return max(risk, self.least_share * self.risk)


def _reach(bars: Sequence[Bar]) -> float:
    """How far the price went in some bars."""
    return max(bar.high for bar in bars) - min(bar.low for bar in bars)
