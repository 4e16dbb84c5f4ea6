"""The note of lessons: its text, its parsing, its refusals, and that a model cannot add numbers."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backsight.core.errors import Invalid
from backsight.core.reflection.citation_check import ProposedBullet, check_bullets, numbers_in
from backsight.core.reflection.lessons import (
    HEADINGS,
    MAX_BULLETS,
    MAX_CHARACTERS,
    MAX_TOKENS,
    MAX_UNTRIMMED_CHARACTERS,
    NO_PATTERN,
    Bullet,
    LessonsNote,
    accept_lessons,
    lessons_hash,
    note_from_bullets,
    parse_note,
    render_lessons,
    trim_note,
    write_lessons,
)
from backsight.core.reflection.wording import bullet_text, facts
from backsight.core.strategies import SLOTS, Slot
from backsight.testing.reflection import a_pattern, an_evidence

NOON = datetime(2026, 6, 4, 12, tzinfo=UTC)


def tokens(text: str) -> int:
    """Four characters a token, and every line break one."""
    return len(text) // 4 + text.count("\n")


def a_note(*texts: str, slot: Slot = "sizing") -> LessonsNote:
    return note_from_bullets(Bullet(slot=slot, text=text) for text in texts)


CHOP = a_pattern()
BULLET_TEXT = (
    "chop_hivol: -0.70 ± 0.13R over 67 trades on 41 days, against +0.10R elsewhere; 15 % won against 55 %"  # as shown
)


# Writing


def test_a_bullet_has_the_numbers_of_its_pattern() -> None:
    note = write_lessons(an_evidence(CHOP))
    assert note.bullets == (Bullet(slot="regime_fit", text=BULLET_TEXT, evidence=(CHOP.key,), trade_ids=("t1", "t2")),)
    assert note.text.endswith(f"### Exit timing\n{NO_PATTERN}\n### Regime fit\n- {BULLET_TEXT}")
    assert "t1" not in note.text


def test_a_bullet_on_exits_gives_the_captured_share() -> None:
    exits = a_pattern(
        slot="exit_timing", measure="captured", unit=None, mean=0.12, interval=(0.07, 0.17), rest_mean=0.4
    )
    assert bullet_text(exits) == (
        "chop_hivol: 12 ± 5 % of the best price kept over 67 trades on 41 days, against 40 % elsewhere"
    )


def test_the_facts_for_a_model_are_more_detailed() -> None:
    assert facts(CHOP) == (
        f"[regime_fit/regime_tag=chop_hivol] {BULLET_TEXT}; difference -0.80 ± 0.19R; "
        "12 % of the best price kept against 40 %; held 35 min against 2.5 h"
    )


def test_without_patterns_every_slot_says_so() -> None:
    text = write_lessons(an_evidence()).text
    assert text.splitlines() == [line for slot in SLOTS for line in (f"### {HEADINGS[slot]}", NO_PATTERN)]


def test_the_most_telling_is_first() -> None:
    faint = a_pattern(value="trend_up_lowvol", label="trend_up_lowvol", interval=(-1.4, 0.0), difference=-0.8)
    assert [each.evidence for each in write_lessons(an_evidence(faint, CHOP)).bullets] == [(CHOP.key,), (faint.key,)]


def test_the_evidence_writes_at_most_four_bullets_a_slot() -> None:
    many = [a_pattern(value=f"s{n}", label="s" * 40, difference=-0.8 - 0.01 * n) for n in range(30)]
    note = write_lessons(an_evidence(*many))
    assert [each.evidence for each in note.bullets] == [(f"regime_fit/regime_tag=s{n}",) for n in (29, 28, 27, 26)]
    assert accept_lessons(note, avoid=(), count=tokens) == note


def test_the_hash_does_not_see_whitespace() -> None:
    assert lessons_hash("- a\n\n -  b ") == lessons_hash("- a - b") == hashlib.sha256(b"- a - b").hexdigest()[:16]
    assert lessons_hash("- a - B") != lessons_hash("- a - b")


def test_a_slot_can_be_suppressed() -> None:
    note = note_from_bullets([Bullet(slot="sizing", text="smaller"), Bullet(slot="regime_fit", text="less chop")])
    text = render_lessons(note, suppressed={"sizing", "exit_timing"})
    assert "smaller" not in text
    assert "Sizing" not in text
    assert "- less chop" in text
    assert note.hash == lessons_hash(render_lessons(note))


# Reading


lines = st.text(max_size=60)
slots = st.sampled_from(SLOTS)
notes = st.lists(st.tuples(slots, lines), max_size=25).map(
    lambda pairs: note_from_bullets(Bullet(slot=slot, text=text) for slot, text in pairs)
)


@given(notes)
@example(a_note("### Regime fit", "- ", NO_PATTERN, "a\u2028### Sizing\u2028b\x1f", ": #"))
def test_a_note_reads_back(note: LessonsNote) -> None:
    assert parse_note(note.text) == note
    assert accept_lessons(note.text, avoid=(), count=lambda _: 0) == accept_lessons(note, avoid=(), count=lambda _: 0)


@given(st.lists(st.tuples(slots, st.text(max_size=700)), max_size=25), st.integers(150, 3000))
def test_a_trimmed_note_fits_and_keeps_whole_bullets(pairs: list[tuple[Slot, str]], most: int) -> None:
    note = note_from_bullets(Bullet(slot=slot, text=text) for slot, text in pairs)
    fitted = trim_note(note, count=lambda text: tokens(text) * 500 // most)
    assert set(fitted.bullets) <= set(note.bullets)
    assert len(fitted.text) <= MAX_CHARACTERS
    assert tokens(fitted.text) * 500 // most <= MAX_TOKENS or not fitted.bullets
    assert all(len(fitted.of(slot)) <= MAX_BULLETS for slot in SLOTS)
    assert parse_note(fitted.text) == fitted


def test_headings_and_bullets_may_be_written_otherwise() -> None:
    text = (
        "## entry timing:\n* wait\n  for the close\n## SIZING\n\n# Symbol selection\n- \n### Exit timing\n" + NO_PATTERN
    )
    note = parse_note(f"{text}\n### Regime Fit\n- {NO_PATTERN}")
    assert [(each.slot, each.text) for each in note.bullets] == [("entry_timing", "wait for the close")]


def test_a_note_that_fits_is_unchanged_and_the_fullest_slot_is_trimmed_first() -> None:
    fine = note_from_bullets([Bullet(slot="sizing", text="a" * 300), Bullet(slot="regime_fit", text="b" * 300)])
    assert trim_note(fine, count=tokens) == fine
    full = a_note(*(letter * 430 for letter in "abcd"))
    remaining = trim_note(note_from_bullets([*full.bullets, *fine.bullets[1:]]), count=len)
    assert remaining.bullets == fine.bullets[1:]
    remaining = trim_note(note_from_bullets([*full.bullets, *fine.bullets[1:]]), count=lambda _: 0)
    assert [each.text[0] for each in remaining.bullets] == ["a", "b", "c", "b"]


def test_one_bullet_too_long_goes_before_the_others() -> None:
    assert [each.text[0] for each in trim_note(a_note("a", "b" * 2500, "c"), count=tokens).bullets] == ["a", "c"]


# Refusing


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("  \n", "the note is empty"),
        (a_note("x" * MAX_UNTRIMMED_CHARACTERS).text, "give at most 2000"),
        ("### Sizing\n- less", "no slot for Entry timing, Symbol selection"),
        ("My thoughts:\n" + a_note("less").text, "'My thoughts:' is outside of a bullet"),
        (a_note("Never  TRADE\tthe news, ever").text, "repeats the avoid rule 'never trade the news.'"),
    ],
)
def test_a_text_that_is_not_a_note_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        accept_lessons(text, avoid=["", "never trade the news."], count=tokens)


def test_a_word_of_a_rule_is_no_repetition() -> None:
    note = a_note("the news hour lost")
    assert accept_lessons(note, avoid=["never trade the news", "new", " "], count=tokens) == note


# A model's bullets


def proposed(text: str, *cites: str, slot: Slot = "regime_fit") -> ProposedBullet:
    return ProposedBullet(slot=slot, text=text, cites=cites or (CHOP.key,))


@pytest.mark.parametrize(
    "text",
    [
        BULLET_TEXT,
        "Stand aside in chop_hivol: it loses 0.7R a trade over 67 trades",
        "chop_hivol brings −0.70R against +0.10R, n=67.",
        "Only 15% won, and 12 % of the best price was kept (35 min)",
        "Stay out of chop_hivol",
    ],
)
def test_a_bullet_with_the_evidences_numbers_is_taken(text: str) -> None:
    checked = check_bullets([proposed(text)], patterns=[CHOP])
    assert checked.dropped == ()
    assert checked.bullets == (Bullet(slot="regime_fit", text=text, evidence=(CHOP.key,), trade_ids=("t1", "t2")),)


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
