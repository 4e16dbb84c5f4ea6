"""Markets without any edge, in the shapes of noise that real markets make.

In every shape the outcomes are drawn without regard to symbol, direction, session or what was traded before, so any
statement that one group of trades is better than another is false, and `Shape.mean_r` is the true mean everywhere.
"""

import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import get_args

from backsight.core.portfolio import Direction
from backsight.core.regime import REGIMES, VOLATILITY_REGIMES, Regime, Session, VolatilityRegime, session_of

START = datetime(2024, 1, 1, tzinfo=UTC)
SYMBOLS = ("BTC", "ETH", "SOL")
TRADES_A_DAY = 2
SPELL_DAYS = 10
"""Mean length of the spells in which a regime lasts, in the shapes where regimes persist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseTrade:
    """A closed trade of a market without any edge."""

    opened_at: datetime
    closed_at: datetime
    symbol: str
    direction: Direction
    regime: Regime
    volatility_regime: VolatilityRegime
    session: Session
    outcome: float
    """In R, unless the shape mixes units."""
    in_r: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseDay:
    """The spell that a day belongs to, and the level that its trades share."""

    spell: int
    level: float


Days = Callable[[random.Random], Iterator[NoiseDay]]
Outcome = Callable[[random.Random], float]


def independent_days(rng: random.Random) -> Iterator[NoiseDay]:
    """Days that have nothing in common; each is a spell of its own."""
    spell = 0
    while True:
        spell += 1
        yield NoiseDay(spell=spell, level=0.0)


def days_in_spells(rng: random.Random) -> Iterator[NoiseDay]:
    """Days in spells with a level each: with two trades of variance 1 a day, daily means autocorrelate by .42."""
    spell = 0
    while True:
        spell, level = spell + 1, rng.gauss(0, 0.66)
        yield NoiseDay(spell=spell, level=level)
        while rng.random() >= 1 / SPELL_DAYS:
            yield NoiseDay(spell=spell, level=level)


def autoregressive_days(rng: random.Random) -> Iterator[NoiseDay]:
    """Days whose level follows the day before: with trades of variance .25 daily means autocorrelate by .6."""
    spell, level, following = 0, rng.gauss(0, 1), 0.675
    while True:
        spell += 1
        yield NoiseDay(spell=spell, level=level)
        level = following * level + math.sqrt(1 - following**2) * rng.gauss(0, 1)


def student_t3(rng: random.Random) -> float:
    """A draw of Student's t with three degrees of freedom."""
    return rng.gauss(0, 1) / math.sqrt(rng.gammavariate(1.5, 2.0) / 3.0)


def winners(share: float, payoff: float) -> Outcome:
    """+`payoff` in a share of the trades, −1R in the others."""
    return lambda rng: payoff if rng.random() < share else -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A shape of noise: how days hang together, and what one trade adds to the level of its day."""

    outcome: Outcome
    days: Days = independent_days
    mean_r: float = 0.0
    """The true mean of a trade."""
    win_rate: float = 0.5
    copies: int = 1
    """How many trades of a day have the same outcome, since they copy one signal."""
    outlier: float | None = None
    """The outcome of one trade at a random place."""
    share_in_r: float = 1.0
    """The share of the trades whose outcome is in R; that of the others is an amount of money."""


SHAPES: Mapping[str, Shape] = {
    "normal": Shape(outcome=lambda rng: rng.gauss(0, 1)),
    "Student t3": Shape(outcome=student_t3),
    "copies of a signal": Shape(outcome=lambda rng: rng.gauss(0, 1), copies=4),
    "one outlier of 60R": Shape(outcome=winners(0.5, 1.0), outlier=60.0),
    "mixed units": Shape(outcome=lambda rng: rng.gauss(0, 1), share_in_r=0.6),
    "25% winners": Shape(outcome=winners(0.25, 3.0), win_rate=0.25),
    "35% winners": Shape(outcome=winners(0.35, 13 / 7), win_rate=0.35),
    "8% winners of 12R": Shape(outcome=winners(0.08, 12.0), mean_r=0.04, win_rate=0.08),
    "regimes in spells": Shape(outcome=lambda rng: rng.gauss(0, 1), days=days_in_spells),
    "autocorrelated days": Shape(outcome=lambda rng: rng.gauss(0, 0.5), days=autoregressive_days),
}


def noise(name: str, seed: int, trades: int) -> list[NoiseTrade]:
    """The first trades of a market of this shape, about two a day (as many as there are copies, if more)."""
    shape, rng = SHAPES[name], random.Random(f"{name} {seed}")
    outlier_at = rng.randrange(trades) if shape.outlier is not None else None
    a_day = max(TRADES_A_DAY, shape.copies)
    result: list[NoiseTrade] = []
    spell, regime = 0, REGIMES[0]
    for number, day in enumerate(shape.days(rng)):
        if day.spell != spell:
            spell, regime = day.spell, rng.choice(REGIMES)
        for position in range(a_day):
            if len(result) == trades:
                return result
            if position % shape.copies == 0:
                drawn = day.level + shape.outcome(rng)
            is_outlier = outlier_at == len(result)
            opened_at = START + timedelta(days=number, seconds=(position + rng.random()) * 80_000 / a_day)
            result.append(
                NoiseTrade(
                    opened_at=opened_at,
                    closed_at=opened_at + timedelta(minutes=30),
                    symbol=rng.choice(SYMBOLS),
                    direction=rng.choice(get_args(Direction)),
                    # Where regimes do not persist, each trade has its own.
                    regime=regime if shape.days is days_in_spells else rng.choice(REGIMES),
                    volatility_regime=rng.choice(VOLATILITY_REGIMES),
                    session=session_of(opened_at),
                    outcome=shape.outlier if is_outlier and shape.outlier is not None else drawn,
                    in_r=rng.random() < shape.share_in_r,
                )
            )
    raise AssertionError("days never end")
