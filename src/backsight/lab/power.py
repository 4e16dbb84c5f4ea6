"""Power, before any result is read: how large an advantage must be for the lab to find it in these trades.

Simulated arms skip half of the trades. Skill is the share by which they skip losers more often than at random: with
skill 0 they skip blindly, with skill 1 every loser and no winner. Days are drawn anew in blocks for every simulation,
so that the luck of the record is not taken for granted. Only outcomes, dates and recorded sizes are used, no decision.
"""

from dataclasses import dataclass

import numpy as np

from backsight.lab.bootstrap import difference_error, resampled_days
from backsight.lab.equity import DailyResults, Floats, TradeTimes, daily_results
from backsight.lab.metrics import sharpe

SIMULATIONS = 200
SKILLS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
WANTED = 0.8
FEWEST_TRADES = 30
FEWEST_DAYS = 20
"""With fewer scored trades or trading days than these, no arm is called better or worse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerStep:
    """One level of skill: what it gains, and how often the lab would call it better."""

    skill: float
    gain: float
    """The mean gain of the yearly Sharpe ratio."""
    power: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """What the lab could have found in the trades of the validation period."""

    trades: int
    trading_days: int
    arms: int
    steps: tuple[PowerStep, ...]

    @property
    def is_enough(self) -> bool:
        """Whether there are enough trades and days for any call."""
        return self.trades >= FEWEST_TRADES and self.trading_days >= FEWEST_DAYS

    @property
    def detectable(self) -> PowerStep | None:
        """The least skill that would be called better four times in five; None if none would."""
        return next((step for step in self.steps if step.power >= WANTED), None) if self.is_enough else None

    @property
    def sentence(self) -> str:
        """What could have been found, in one sentence."""
        scale = f"{self.trades} scored trades on {self.trading_days} days"
        if not self.is_enough:
            needed = f"at least {FEWEST_TRADES} on {FEWEST_DAYS} days are needed"
            return f"With {scale} nothing can be called better or worse: {needed}."
        step = self.detectable
        if step is None:
            return f"With {scale} not even an arm that skips every loser would be called better four times in five."
        return (
            f"With {scale} the lab would call an arm better four times in five if it skipped losers "
            f"{step.skill:.0%} more often than at random, a gain of {step.gain:.1f} in the yearly Sharpe ratio; "
            "a smaller advantage would mostly be missed."
        )


def power_of(times: TradeTimes, recorded: Floats, *, arms: int, rng: np.random.Generator) -> Power:
    """Simulate arms of growing skill, and count how often the lab would call them better."""
    trading_days = len(np.unique(times.day))
    # One arm of several is called better only beyond a higher bar: that of the largest of so many normal statistics.
    largest = np.abs(rng.standard_normal((20_000, max(1, arms)))).max(axis=1)
    critical = float(np.quantile(largest, 0.95))
    steps: list[PowerStep] = []
    if times.count >= FEWEST_TRADES and trading_days >= FEWEST_DAYS:
        for skill in SKILLS:
            steps.append(_step(skill, times, recorded, critical, rng))
            if steps[-1].power >= WANTED:
                break
    return Power(trades=times.count, trading_days=trading_days, arms=arms, steps=tuple(steps))


def _step(skill: float, times: TradeTimes, recorded: Floats, critical: float, rng: np.random.Generator) -> PowerStep:
    lost = times.outcome_r <= 0.0
    skipped = rng.random((SIMULATIONS, times.count)) < np.where(lost, 0.5 * (1.0 + skill), 0.5 * (1.0 - skill))
    shares = np.concatenate([np.where(skipped, 0.0, recorded), recorded[None, :]])
    daily: DailyResults = daily_results(shares, times)
    days = resampled_days(times.days, rng, resamples=SIMULATIONS)
    skilled = np.take_along_axis(daily.returns[:-1], days, axis=1)
    baseline = daily.returns[-1][days]
    difference, error = sharpe(skilled) - sharpe(baseline), difference_error(skilled, baseline)
    return PowerStep(
        skill=skill, gain=float(difference.mean()), power=float(np.mean(difference - critical * error > 0.0))
    )
