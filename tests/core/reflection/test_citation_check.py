"""Bullets of a model: only numbers of the evidence pass."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.reflection.citation_check import ProposedBullet, check_bullets, numbers_in
from backsight.core.reflection.lessons import (
    Bullet,
)
from backsight.core.reflection.reflector_request import write_question
from backsight.core.reflection.wording import bullet_text, facts
from backsight.core.strategies import Slot
from backsight.testing.reflection import a_pattern, a_request
from core.reflection.test_lessons import BULLET_TEXT, CHOP
from core.reflection.test_reflector_request import EXITS


def proposed(text: str, *cites: str, slot: Slot = "regime_fit") -> ProposedBullet:
    return ProposedBullet(slot=slot, text=text, cites=cites or (CHOP.key,))


@pytest.mark.parametrize(
    "text",
    [
        BULLET_TEXT,
        "Stand aside in chop_hivol: it loses 0.7R a trade over 67 trades",
        "chop_hivol brings −0.70R against +0.10R, n=67.",
        "Only 15% won, and 12% of the best price was kept (35 min)",
        "Stay out of chop_hivol",
    ],
)
def test_a_bullet_with_the_evidences_numbers_is_taken(text: str) -> None:
    checked = check_bullets([proposed(text)], patterns=[CHOP])
    assert checked.dropped == ()
    assert checked.bullets == (Bullet(slot="regime_fit", text=text, evidence=(CHOP.key,), trade_ids=("t1", "t2")),)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("Avoid chop_hivol: only 15% won", {"mean": 0.7, "interval": (0.57, 0.83)}),
        ("Trade smaller in chop_hivol", {"interval": (-0.83, 0.1)}),
        ("Favour chop_hivol", {}),
        ("Focus on chop_hivol", {"mean": 0.7, "interval": (0.57, 0.83), "rest_mean": 0.9}),
    ],
)
def test_a_bullet_whose_advice_the_mean_outcome_does_not_support_is_dropped(text: str, changes: dict[str, Any]) -> None:
    checked = check_bullets([proposed(text)], patterns=[replace(CHOP, **changes)])
    assert checked.bullets == ()
    assert "which the mean outcome of 'regime_fit/regime_tag=chop_hivol' does not support" in checked.dropped[0].reason


def test_a_bullet_may_favour_trades_that_surely_earn_more_than_others() -> None:
    earning = replace(CHOP, mean=0.7, interval=(0.57, 0.83))
    assert check_bullets([proposed("Favour chop_hivol")], patterns=[earning]).dropped == ()


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("chop_hivol loses 0.71R", "0.71"),
        ("chop_hivol brings +0.70R", r"\+0.7"),
        ("chop_hivol loses 1R", "1"),
        ("chop_hivol lost in 6,700 trades", "6700"),
        ("chop_hivol lost 67e3 times", "67e3"),
        ("chop_hivol lost in 41/67", "41/67"),
        ("at 14:00 chop_hivol loses", "14:00"),
        ("chop_hivol loses three of all", "3"),
        ("chop_hivol loses twice as often", "2 times"),
        ("chop_hivol loses ½", "1/2"),
        ("chop_hivol loses ٩R", "9"),
        ("BTC2 loses", "2"),
        ("chop_hivol loses .67R", "0.67"),
        (f"chop_hivol lost in 67.{'0' * 40}1 trades", f"67.{'0' * 40}1"),
    ],
)
def test_a_bullet_with_an_invented_number_is_dropped_with_a_reason(text: str, number: str) -> None:
    checked = check_bullets([proposed(text)], patterns=[CHOP])
    assert checked.bullets == ()
    assert checked.dropped[0].text == text
    assert checked.dropped[0].reason == f"its number {number.replace(chr(92), '')} is none of the evidence's"


@given(st.floats(0, 1e6), st.integers(0, 4), st.sampled_from(("", "+", "-")))
def test_any_number_but_the_evidences_is_dropped(value: float, digits: int, sign: str) -> None:
    text = f"{sign}{value:.{digits}f}"
    (number,) = numbers_in(text)
    own = set(numbers_in(facts(CHOP).removeprefix(f"[{CHOP.key}]")))
    taken = check_bullets([proposed(f"chop_hivol: {text} a trade")], patterns=[CHOP]).bullets
    assert bool(taken) is (number in own | {each.lstrip("+-") for each in own})


@pytest.mark.parametrize(
    ("bullet", "reason"),
    [
        (ProposedBullet(slot="sizing", text="smaller", cites=()), "it cites no evidence"),
        (proposed("smaller", CHOP.key, "sizing/size=large"), "it cites 'sizing/size=large', which was not given"),
        (proposed(" "), "it says nothing"),
    ],
)
def test_a_bullet_without_evidence_is_dropped(bullet: ProposedBullet, reason: str) -> None:
    assert check_bullets([bullet], patterns=[CHOP]).dropped[0].reason == reason


def test_the_digits_of_a_name_are_no_number() -> None:
    index = a_pattern(slot="symbol_selection", dimension="symbol", value="US30", label="US30", n=9)
    other = replace(index, value="30", label="30")
    assert check_bullets([proposed("us30 loses", index.key)], patterns=[index]).bullets
    assert not check_bullets([proposed("30 lost", index.key)], patterns=[index]).bullets
    assert check_bullets([proposed("30 loses", other.key)], patterns=[other]).bullets


def test_an_hour_may_be_named() -> None:
    hour = a_pattern(slot="entry_timing", dimension="hour", value="09", label="the hour from 09:00 UTC")
    assert check_bullets([proposed("entries at 09:00 lose 0.70R", hour.key)], patterns=[hour]).bullets
    assert not check_bullets([proposed("entries at 10:00 lose 0.70R", hour.key)], patterns=[hour]).bullets


def test_several_patterns_lend_their_numbers() -> None:
    other = a_pattern(value="chop_lowvol", label="chop_lowvol", n=30, trade_ids=("t2", "t3"))
    (bullet,) = check_bullets([proposed("67 and 30 trades", CHOP.key, other.key)], patterns=[CHOP, other]).bullets
    assert (bullet.evidence, bullet.trade_ids) == ((CHOP.key, other.key), ("t1", "t2", "t3"))


def test_the_texts_of_the_evidence_pass_the_check() -> None:
    bullets = [ProposedBullet(slot=each.slot, text=bullet_text(each), cites=(each.key,)) for each in (CHOP, EXITS)]
    assert check_bullets(bullets, patterns=[CHOP, EXITS]).dropped == ()
    assert all(f"[{key}]" in write_question(a_request(CHOP, EXITS)) for each in bullets for key in each.cites)
