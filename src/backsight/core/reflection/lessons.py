"""The lessons note: five slots of at most four bullets each, short enough to be part of every prompt."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from backsight.core.errors import Invalid
from backsight.core.portfolio import Mode
from backsight.core.reflection.patterns import Pattern, TradeEvidence, WatchedPattern
from backsight.core.reflection.wording import UNPROVEN, bullet_text
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
"""A longer note is refused instead of trimmed."""
HASH_DIGITS = 16

TokenCounter = Callable[[str], int]
"""Counts the tokens of a text."""

_BULLET = re.compile(r"\s*[-*•](?:\s+(.*)|\s*)")
_SLOT_OF = {heading.casefold(): slot for slot, heading in HEADINGS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bullet:
    """One lesson with the evidence behind it."""

    slot: Slot
    text: str
    evidence: tuple[str, ...] = ()
    """Keys of the patterns that support it."""
    trade_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonsNote:
    """Lessons in the order of their slots, the most important first within a slot."""

    bullets: tuple[Bullet, ...] = ()

    def of(self, slot: Slot) -> tuple[Bullet, ...]:
        return tuple(bullet for bullet in self.bullets if bullet.slot == slot)

    @property
    def text(self) -> str:
        """The full text of the note, with a placeholder in slots without lessons."""
        return render_lessons(self)

    @property
    def hash(self) -> str:
        return lessons_hash(self.text)


def note_from_bullets(bullets: Iterable[Bullet]) -> LessonsNote:
    """The note of some bullets, each put on one line; empty bullets are left out.

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
        Bullet(slot=bullet.slot, text=text, evidence=bullet.evidence, trade_ids=bullet.trade_ids)
        for bullet in bullets
        if (text := _one_line(bullet.text)) and text != NO_PATTERN
    ]
    return LessonsNote(bullets=tuple(sorted(lines, key=lambda bullet: SLOTS.index(bullet.slot))))


def mark_origin(note: LessonsNote, origin: Mode | None, *, mode: Mode) -> LessonsNote:
    """The note for deployments of a mode: bullets from trades in another mode say so.

    >>> note = note_from_bullets([Bullet(slot="sizing", text="small sizes do better")])
    >>> mark_origin(note, "paper", mode="live").bullets[0].text, mark_origin(note, "live", mode="live") == note
    ('small sizes do better (from paper trades)', True)
    """
    if origin is None or origin == mode:
        return note
    suffix = f" (from {'simulated' if origin == 'sim' else origin} trades)"
    return LessonsNote(
        bullets=tuple(replace(each, text=each.text.removesuffix(suffix) + suffix) for each in note.bullets)
    )


def render_lessons(
    note: LessonsNote, *, suppressed: Collection[Slot] = (), watched: Iterable[WatchedPattern] = ()
) -> str:
    """The text of the note without the suppressed slots, and with the watched patterns, as an agent reads it."""
    unproven = tuple(Bullet(slot=each.slot, text=each.text) for each in watched)
    whole = LessonsNote(bullets=(*note.bullets, *unproven))
    return "\n".join(line for slot in SLOTS if slot not in suppressed for line in _lines(whole, slot))


def lessons_hash(text: str) -> str:
    """The first 16 hex digits of the SHA-256 of the text, with runs of whitespace as one space.

    >>> lessons_hash("- a\\n- b") == lessons_hash(" - a   - b\\n"), lessons_hash("- a\\n- b")
    (True, '8574f9f2cdb0107d')
    """
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:HASH_DIGITS]


def shown_lessons_hash(shown: str, *, note_hash: str | None) -> str | None:
    """The hash that trades carry of the lessons shown: the note's; with unproven ones beside it, that of all of them.

    >>> shown_lessons_hash("- flat sizes", note_hash="77ae"), shown_lessons_hash("", note_hash=None)
    ('77ae', None)
    >>> shown_lessons_hash("- (unproven) ranging markets: -0.3R", note_hash="77ae")
    'a4890b5b192eb93b'
    """
    return lessons_hash(shown) if UNPROVEN in shown else note_hash


def write_lessons(evidence: TradeEvidence) -> LessonsNote:
    """The note written without a model: one bullet with figures for each pattern."""
    patterns = sorted(evidence.patterns, key=_strength, reverse=True)
    return _limit_bullets(
        note_from_bullets(
            Bullet(slot=each.slot, text=bullet_text(each), evidence=(each.key,), trade_ids=each.trade_ids)
            for each in patterns
        )
    )


def parse_note(text: str) -> LessonsNote:
    """The note in a text. A text that lacks one of the five slots, or has words outside of bullets, is refused.

    >>> parse_note("### Sizing\\n- less is more")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: lessons: no slot for Entry timing, Symbol selection, Exit timing, Regime fit; give
    all five, those without a lesson with (no clear pattern yet)
    """
    slots: list[Slot] = []
    bullets: list[tuple[Slot, str]] = []
    for line in text.splitlines():
        slot = _slot_of(line)
        if slot is not None:
            slots.append(slot)
        elif slots and (bullet := _BULLET.fullmatch(line)):
            bullets.append((slots[-1], bullet[1] or ""))
        elif slots and bullets and bullets[-1][0] == slots[-1] and line.strip() not in ("", NO_PATTERN):
            bullets[-1] = (slots[-1], f"{bullets[-1][1]} {line}")  # a bullet that goes on in the next line
        elif line.strip() not in ("", NO_PATTERN):
            raise Invalid(
                f"{line.strip()[:40]!r} is outside of a bullet; put it in a bullet below a slot's heading",
                field="lessons",
            )
    if missing := [HEADINGS[slot] for slot in SLOTS if slot not in slots]:
        remedy = f"give all five, those without a lesson with {NO_PATTERN}"
        raise Invalid(f"no slot for {', '.join(missing)}; {remedy}", field="lessons")
    return note_from_bullets(Bullet(slot=slot, text=words) for slot, words in bullets)


def accept_lessons(proposed: str | LessonsNote, *, avoid: Iterable[str], count: TokenCounter) -> LessonsNote:
    """The note trimmed to its limits. A note that is empty, far too long or repeats an avoid rule is refused."""
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
    """The note within its limits. Whole bullets go: those too long alone, then the last of the fullest slot."""
    short = tuple(bullet for bullet in note.bullets if _fits(LessonsNote(bullets=(bullet,)), count))
    bullets = list(_limit_bullets(LessonsNote(bullets=short)).bullets)
    while bullets and not _fits(LessonsNote(bullets=tuple(bullets)), count):
        fullest = max(SLOTS, key=lambda slot: (sum(b.slot == slot for b in bullets), SLOTS.index(slot)))
        bullets.remove([b for b in bullets if b.slot == fullest][-1])
    return LessonsNote(bullets=tuple(bullets))


def _limit_bullets(note: LessonsNote) -> LessonsNote:
    """The note with at most the first four bullets of each slot."""
    return LessonsNote(bullets=tuple(each for slot in SLOTS for each in note.of(slot)[:MAX_BULLETS]))


def _fits(note: LessonsNote, count: TokenCounter) -> bool:
    text = note.text
    return len(text) <= MAX_CHARACTERS and count(text) <= MAX_TOKENS


def _lines(note: LessonsNote, slot: Slot) -> list[str]:
    return [f"### {HEADINGS[slot]}", *([f"- {bullet.text}" for bullet in note.of(slot)] or [NO_PATTERN])]


def _slot_of(line: str) -> Slot | None:
    heading = line.strip()
    return _SLOT_OF.get(heading.strip("#: \t").casefold()) if heading.startswith("#") else None


def _one_line(text: str) -> str:
    """The text on one line, with spaces for control characters and unpaired surrogates."""
    return " ".join("".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in text).split())


def _repeats(text: str, rule: str) -> bool:
    """Whether a text contains the words of a rule, ignoring case and whitespace.

    >>> _repeats("Do not  TRADE the news; wait", "do not trade the news."), _repeats("newsworthy", "news")
    (True, False)
    """
    words = _folded(rule).rstrip(".!")
    return bool(words) and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", _folded(text)) is not None


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _strength(pattern: Pattern) -> tuple[float, str]:
    half_width = pattern.half_width or 0.0
    return (abs(pattern.difference) / half_width if half_width > 0.0 else float("inf")), pattern.key
