"""The prompt section with the lessons that reflection drew from the last trades.

Lessons are the owner's memory and stand in no quotes, which mean text of others. A lesson is one line, whatever a model
wrote in it, and double quotes in it become single ones.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from backsight.core.prompts.sections import Row, Section, section_of
from backsight.core.reflection.wording import UNPROVEN
from backsight.core.text.untrusted_text import flat, shorten

OPENING = "Lessons from your recent trades on this strategy (auto-generated; signal, not strategy):"
CLOSING = 'They are for reference: the owner\'s avoid rules are the only "never".'
NO_PATTERN = "(no clear pattern yet)"
UNPROVEN_RANK = 100
"""Added to the rank of a lesson that is not proven, so that it gives way first."""
MOST_CHARACTERS, MOST_TOKENS = 320, 120
"""Limits of one lesson."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One lesson and its slot, for example exit timing."""

    slot: str | None
    sentence: str

    @property
    def text(self) -> str:
        sentence = shorten(self.sentence, most=MOST_CHARACTERS, tokens=MOST_TOKENS)
        slot = f"{shorten(self.slot, most=24, tokens=24)}: " if self.slot else ""
        return f"- {slot}{sentence}".replace('"', "'")


def read_lessons(note: str) -> tuple[Lesson, ...]:
    r"""The lessons of a note: a heading names a slot, every other line is a lesson; empty slots are left out.

    >>> read_lessons("### Sizing\n- halve it in chop\n\n### Exit timing\n(no clear pattern yet)")
    (Lesson(slot='Sizing', sentence='halve it in chop'),)
    """
    return tuple(_lessons(note.splitlines()))


def lessons_section(lessons: Iterable[Lesson]) -> Section:
    """As many lessons as fit; the first of every slot goes before the second of any slot, proven ones before others."""
    ranks, rows = Counter[str | None](), list[Row]()
    for lesson in lessons:
        if flat(lesson.sentence):
            rank = ranks[lesson.slot] + (UNPROVEN_RANK if lesson.sentence.startswith(UNPROVEN) else 0)
            rows.append(Row(lesson.text, rank))
            ranks[lesson.slot] += 1
    return section_of("lessons", OPENING, rows, after=CLOSING)


def _lessons(lines: Iterable[str]) -> Iterator[Lesson]:
    slot = None
    for line in map(flat, lines):
        sentence = line.lstrip("-*• ")
        if line.startswith("#"):
            slot = line.strip("# ") or None
        elif sentence and sentence != NO_PATTERN:
            yield Lesson(slot=slot, sentence=sentence)
