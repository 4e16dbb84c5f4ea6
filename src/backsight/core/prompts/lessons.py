"""Lessons: what reflection made of the last trades, shown as signal and never as strategy."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from backsight.core.prompts.sections import Row, Section, section_of
from backsight.core.text.untrusted_text import flat, shorten

OPENING = "Lessons from your recent trades on this strategy (auto-generated; signal, not strategy):"
CLOSING = 'They are for reference: the owner\'s avoid rules are the only "never".'
NO_PATTERN = "(no clear pattern yet)"
MOST_CHARACTERS, MOST_TOKENS = 320, 120
"""Of one lesson."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One lesson and what it is about, like exit timing."""

    slot: str | None
    said: str

    @property
    def text(self) -> str:
        said = shorten(self.said, most=MOST_CHARACTERS, tokens=MOST_TOKENS)
        return f"- {shorten(self.slot, most=24, tokens=24)}: {said}" if self.slot else f"- {said}"


def read_lessons(note: str) -> tuple[Lesson, ...]:
    r"""The lessons of a note: headings name the slots, every other line is a lesson; slots without one say nothing.

    >>> read_lessons("### Sizing\n- halve it in chop\n\n### Exit timing\n(no clear pattern yet)")
    (Lesson(slot='Sizing', said='halve it in chop'),)
    """
    return tuple(_lessons(note.splitlines()))


def lessons(said: Iterable[Lesson]) -> Section:
    """The block of lessons, as many of them as fit, the first of every slot before the second of any; empty without."""
    told, rows = Counter[str | None](), list[Row]()
    for lesson in said:
        if flat(lesson.said):
            rows.append(Row(lesson.text, told[lesson.slot]))
            told[lesson.slot] += 1
    return section_of("lessons", OPENING, rows, after=CLOSING)


def _lessons(lines: Iterable[str]) -> Iterator[Lesson]:
    slot = None
    for line in map(flat, lines):
        said = line.lstrip("-*• ")
        if line.startswith("#"):
            slot = line.strip("# ") or None
        elif said and said != NO_PATTERN:
            yield Lesson(slot=slot, said=said)
