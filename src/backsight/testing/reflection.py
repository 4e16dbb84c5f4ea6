"""Builders of evidence and a fake reflector, for tests of code that builds on reflection.

>>> FakeReflector(error=Unavailable("away; try later")).reflect(a_request(a_pattern()))
Traceback (most recent call last):
...
backsight.core.errors.Unavailable: away; try later
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from backsight.core.errors import Unavailable
from backsight.core.reflection.citation_check import ProposedBullet
from backsight.core.reflection.lessons import Bullet, note_from_bullets
from backsight.core.reflection.patterns import NEW_SEARCH, Pattern, TradeEvidence
from backsight.core.reflection.reflector_request import ReflectorAnswer, ReflectorRequest

__all__ = ["FakeReflector", "a_pattern", "a_request", "an_evidence"]


@dataclass(slots=True, kw_only=True)
class FakeReflector:
    """A reflector that returns fixed bullets, or raises a fixed error, and records its requests."""

    bullets: tuple[ProposedBullet, ...] = ()
    error: Unavailable | None = None
    name: str = "fake"
    requests: list[ReflectorRequest] = field(default_factory=list)

    def reflect(self, request: ReflectorRequest) -> ReflectorAnswer:
        self.requests.append(request)
        if self.error is not None:
            raise self.error
        return ReflectorAnswer(
            bullets=self.bullets, model="fake", input_tokens=100, output_tokens=20, cost_usd=None, seconds=0.0
        )


def a_pattern(**changes: Any) -> Pattern:
    """A pattern: a regime in which a strategy lost, in 67 trades."""
    values: dict[str, Any] = {
        "slot": "regime_fit",
        "measure": "outcome",
        "dimension": "regime_tag",
        "value": "chop_hivol",
        "label": "chop_hivol",
        "unit": "R",
        "n": 67,
        "days": 41,
        "mean": -0.7,
        "interval": (-0.83, -0.57),
        "win_rate": 0.149,
        "rest_n": 133,
        "rest_days": 60,
        "rest_mean": 0.1,
        "rest_win_rate": 0.55,
        "difference": -0.8,
        "difference_interval": (-0.99, -0.61),
        "captured": 0.12,
        "rest_captured": 0.4,
        "hold_seconds": 2100.0,
        "rest_hold_seconds": 9000.0,
        "runs": 40,
        "trade_ids": ("t1", "t2"),
    }
    return Pattern(**values | changes)


def an_evidence(*patterns: Pattern) -> TradeEvidence:
    """The evidence of 200 trades with these significant patterns."""
    return TradeEvidence(
        as_of=datetime(2026, 6, 4, 12, tzinfo=UTC),
        closed=200,
        n=200,
        days=60,
        unit="R",
        groups=patterns,
        patterns=patterns,
        lost=(),
        level=0.0,
        search_state=NEW_SEARCH,
    )


def a_request(*patterns: Pattern, **changes: Any) -> ReflectorRequest:
    """A request for lessons of the strategy VolBreakout with these patterns."""
    values: dict[str, Any] = {
        "strategy_name": "VolBreakout",
        "strategy": "Ranges that hold for days\nbreak in the direction of the trend.",
        "avoid": ("trading the first five minutes", "adding to a loser"),
        "note": note_from_bullets([Bullet(slot="sizing", text='small "test" sizes do better')]),
    }
    return ReflectorRequest(evidence=an_evidence(*patterns), **values | changes)
