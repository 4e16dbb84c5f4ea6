"""Patterns in words: the bullet of a lesson, and the facts for a model."""

from backsight.core.reflection.wording import bullet_text, facts
from backsight.testing.reflection import a_pattern
from core.reflection.test_lessons import BULLET_TEXT, CHOP


def test_a_bullet_on_exits_gives_the_captured_share() -> None:
    exits = a_pattern(
        slot="exit_timing", measure="captured", unit=None, mean=0.12, interval=(0.07, 0.17), rest_mean=0.4
    )
    assert bullet_text(exits) == (
        "chop_hivol: 12 ± 5% of the best price kept over 67 trades on 41 days, against 40% elsewhere"
    )


def test_the_facts_for_a_model_are_more_detailed() -> None:
    assert facts(CHOP) == (
        f"[regime_fit/regime_tag=chop_hivol] {BULLET_TEXT}; difference -0.80 ± 0.19R; "
        "12% of the best price kept against 40%; held 35 min against 2.5 h"
    )
