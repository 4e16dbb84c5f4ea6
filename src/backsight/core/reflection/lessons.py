"""The note: what recent trades taught, in five slots of at most four bullets, short enough for every tick."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from backsight.core.errors import Invalid
from backsight.core.reflection.patterns import Pattern, TradeEvidence
from backsight.core.reflection.wording import bullet_text
from backsight.core.strategies import SLOTS, Slot

NO_PATTERN = "(no clear pattern yet)"
HEADINGS: Mapping[Slot, str] = {
    "entry_timing": "Entry timing",
    "sizing": "Sizing",
    "symbol_selection": "Symbol selection",
    "exit_timing": "Exit timing",
    "regime_fit": "Regime fit",
}
MAX_BULLETS = 4
MAX_CHARACTERS = 2_000
MAX_TOKENS = 500
MAX_UNTRIMMED_CHARACTERS = 4_000
"""Characters beyond which an answer is not worth trimming."""
HASH_DIGITS = 16

TokenCounter = Callable[[str], int]
"""How many tokens a text takes."""

_HEADING = re.compile(r"#+\s*(.*?)\s*:?\s*")
_BULLET = re.compile(r"\s*[-*•](?:\s+(.*)|\s*)")
_SLOT_OF = {heading.casefold(): slot for slot, heading in HEADINGS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bullet:
    """One lesson, and what it rests on: that is kept beside its text."""

    slot: Slot
    text: str
    evidence: tuple[str, ...] = ()
    """Keys of the patterns."""
    trade_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonsNote:
    """Lessons in the order of their slots, within a slot the most telling first."""

    bullets: tuple[Bullet, ...] = ()

    def of(self, slot: Slot) -> tuple[Bullet, ...]:
        return tuple(bullet for bullet in self.bullets if bullet.slot == slot)

    @property
    def text(self) -> str:
        """The note as it is kept: every slot, those without a lesson saying so."""
        return render_lessons(self)

    @property
    def hash(self) -> str:
        return lessons_hash(self.text)


def note_from_bullets(bullets: Iterable[Bullet]) -> LessonsNote:
    """The note of these bullets, each on one line; those that say nothing are left out.

    >>> print(note_from_bullets([Bullet(slot="sizing", text="small sizes\\n do better")]).text)
    ### Entry timing
    (no clear pattern yet)
    ### Sizing
    - small sizes do better
    ### Symbol selection
    (no clear pattern yet)
    ### Exit timing
    (no clear pattern yet)
    ### Regime fit
    (no clear pattern yet)
    """
    lines = [
        Bullet(slot=each.slot, text=text, evidence=each.evidence, trade_ids=each.trade_ids)
        for each in bullets
        if (text := _one_line(each.text)) and text != NO_PATTERN
    ]
    return LessonsNote(bullets=tuple(sorted(lines, key=lambda each: SLOTS.index(each.slot))))


def render_lessons(note: LessonsNote, *, suppressed: Collection[Slot] = ()) -> str:
    """The note as an agent reads it, without the slots that are suppressed."""
    return "\n".join(line for slot in SLOTS if slot not in suppressed for line in _lines(note, slot))


def lessons_hash(text: str) -> str:
    """16 hex digits of SHA-256 over the text, any whitespace being one space.

    >>> lessons_hash("- a\\n- b") == lessons_hash(" - a   - b\\n"), lessons_hash("- a\\n- b")
    (True, '8574f9f2cdb0107d')
    """
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:HASH_DIGITS]


def write_lessons(evidence: TradeEvidence) -> LessonsNote:
    """The note that the evidence writes by itself: one bullet a pattern, with its numbers; the same for the same."""
    told = sorted(evidence.patterns, key=_strength, reverse=True)
    return _limit_bullets(
        note_from_bullets(
            Bullet(slot=each.slot, text=bullet_text(each), evidence=(each.key,), trade_ids=each.trade_ids)
            for each in told
        )
    )


def parse_note(text: str) -> LessonsNote:
    """The note that a text says; a text without all five slots, or with words outside them, is refused.

    >>> parse_note("### Sizing\\n- less is more")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: lessons: no slot for Entry timing, Symbol selection, Exit timing, Regime fit; give
    all five, those without a lesson with (no clear pattern yet)
    """
    seen: list[Slot] = []
    bullets: list[tuple[Slot, str]] = []
    for line in text.splitlines():
        slot = _slot_of(line)
        if slot is not None:
            seen.append(slot)
        elif seen and (started := _BULLET.fullmatch(line)):
            bullets.append((seen[-1], started[1] or ""))
        elif seen and bullets and bullets[-1][0] == seen[-1] and line.strip() not in ("", NO_PATTERN):
            bullets[-1] = (seen[-1], f"{bullets[-1][1]} {line}")
        elif line.strip() not in ("", NO_PATTERN):
            raise Invalid(f"{line.strip()[:40]!r} is in no bullet of a slot; say it in one", field="lessons")
    if missing := [HEADINGS[slot] for slot in SLOTS if slot not in seen]:
        remedy = f"give all five, those without a lesson with {NO_PATTERN}"
        raise Invalid(f"no slot for {', '.join(missing)}; {remedy}", field="lessons")
    return note_from_bullets(Bullet(slot=slot, text=said) for slot, said in bullets)


def accept_lessons(proposed: str | LessonsNote, *, avoid: Iterable[str], count: TokenCounter) -> LessonsNote:
    """The note that may become active, trimmed to its limits; one that may not is refused."""
    text = proposed if isinstance(proposed, str) else proposed.text
    if not text.strip():
        raise Invalid("the note is empty; keep the one there is", field="lessons")
    if len(text) > MAX_UNTRIMMED_CHARACTERS:
        raise Invalid(f"{len(text)} characters; give at most {MAX_CHARACTERS}", field="lessons")
    note = parse_note(proposed) if isinstance(proposed, str) else note_from_bullets(proposed.bullets)
    for rule in avoid:
        if any(_repeats(bullet.text, rule) for bullet in note.bullets):
            raise Invalid(f"repeats the avoid rule {rule.strip()!r}; say what trades showed", field="lessons")
    return trim_note(note, count=count)


def trim_note(note: LessonsNote, *, count: TokenCounter) -> LessonsNote:
    """The note within its limits: whole bullets go, first those too long by themselves, then from the fullest slot."""
    alone = tuple(each for each in note.bullets if _fits(LessonsNote(bullets=(each,)), count))
    bullets = list(_limit_bullets(LessonsNote(bullets=alone)).bullets)
    while bullets and not _fits(LessonsNote(bullets=tuple(bullets)), count):
        fullest = max(SLOTS, key=lambda slot: (sum(b.slot == slot for b in bullets), SLOTS.index(slot)))
        bullets.remove([b for b in bullets if b.slot == fullest][-1])
    return LessonsNote(bullets=tuple(bullets))


def _limit_bullets(note: LessonsNote) -> LessonsNote:
    """The note with the first four bullets of each slot."""
    return LessonsNote(bullets=tuple(each for slot in SLOTS for each in note.of(slot)[:MAX_BULLETS]))


def _fits(note: LessonsNote, count: TokenCounter) -> bool:
    text = note.text
    return len(text) <= MAX_CHARACTERS and count(text) <= MAX_TOKENS


def _lines(note: LessonsNote, slot: Slot) -> list[str]:
    return [f"### {HEADINGS[slot]}", *([f"- {bullet.text}" for bullet in note.of(slot)] or [NO_PATTERN])]


def _slot_of(line: str) -> Slot | None:
    heading = _HEADING.fullmatch(line.strip())
    return _SLOT_OF.get(heading[1].casefold()) if heading else None


def _one_line(text: str) -> str:
    """The text on one line, control characters and unpaired surrogates as spaces."""
    return " ".join("".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in text).split())


def _repeats(text: str, rule: str) -> bool:
    """Whether a text says a rule in its words, case and whitespace aside.

    >>> _repeats("Do not  TRADE the news; wait", "do not trade the news."), _repeats("newsworthy", "news")
    (True, False)
    """
    said, told = _folded(text), _folded(rule).rstrip(".!")
    return bool(told) and re.search(rf"(?<!\w){re.escape(told)}(?!\w)", said) is not None


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _strength(pattern: Pattern) -> tuple[float, str]:
    half = pattern.half_width or 0.0
    return (abs(pattern.difference) / half if half > 0.0 else float("inf")), pattern.key
