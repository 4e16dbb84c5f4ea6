"""The note of lessons: its text, its parsing, its refusals, and that a model cannot add numbers."""

import hashlib
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backsight.core.errors import Invalid
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
    "chop_hivol: -0.70 ± 0.13R over 67 trades on 41 days, against +0.10R elsewhere; 15% won against 55%"  # as shown
)


# Writing


def test_a_bullet_has_the_numbers_of_its_pattern() -> None:
    note = write_lessons(an_evidence(CHOP))
    assert note.bullets == (Bullet(slot="regime_fit", text=BULLET_TEXT, evidence=(CHOP.key,), trade_ids=("t1", "t2")),)
    assert note.text.endswith(f"### Exit timing\n{NO_PATTERN}\n### Regime fit\n- {BULLET_TEXT}")
    assert "t1" not in note.text


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
