"""The prompt section with the plans whose condition holds now, in plain English, with the figures of this instant."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from backsight.core.memory.plan_origins import is_from_mood
from backsight.core.memory.plan_words import (
    action_in_words,
    day_in_words,
    end_in_words,
    in_one_line,
    names_symbol,
    parts_of,
    values_in_words,
)
from backsight.core.memory.prospective import Plan
from backsight.core.prompts.sections import Section, section_of
from backsight.core.text.tokens import estimate
from backsight.core.text.untrusted_text import name, quote, shorten

HEADING = "## Plans that apply"
REASON_TOKENS = (40, 20, 0)
"""The most tokens of a reason: shorter reasons, then none, leave room for more plans."""
SUBJECT_TOKENS, CONDITION_TOKENS, VALUE_TOKENS, ACTION_TOKENS, END_TOKENS = 18, 28, 12, 14, 12
MOST_SYMBOLS = 3
"""Symbols that a line names; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLine:
    """A plan that applies, and what it applies to now."""

    plan: Plan
    now: datetime
    symbols: tuple[str, ...] = ()
    """The instruments for which its condition holds."""
    values: Mapping[str, object] = field(default_factory=dict)
    """The values that its condition compares, as of now."""
    evidence: str | None = None
    """What trades earn there, as of now, if a belief made the plan; it stands in place of the stored reason."""
    contradicted: bool = False
    """True if a plan of higher priority asks for the opposite."""

    def text(self, *, reason_tokens: int = REASON_TOKENS[0]) -> str:
        """Symbol, condition, action, end and, where there is room, the reason with the day on which it was given."""
        plan = self.plan
        figures = shorten(", ".join(values_in_words(plan.condition, self.values)), tokens=VALUE_TOKENS)
        present = f" (now {figures})" if figures else ""
        action = shorten(action_in_words(plan.action), tokens=ACTION_TOKENS)
        end = shorten(end_in_words(plan, now=self.now), tokens=END_TOKENS)
        against = ", against a plan above" if self.contradicted else ""
        return f"- {self._condition()}{present}: {action} ({end}){against}{self._reason(reason_tokens)}"

    def _condition(self) -> str:
        subjects, parts = parts_of(self.plan.condition)
        if not names_symbol(self.plan.condition):
            subjects = [self._symbols(), *subjects]
        return in_one_line(" ".join(_shortened(subjects)), _fitting(parts))

    def _symbols(self) -> str:
        if not self.plan.is_of_market or not self.symbols:
            return "every symbol"
        names = [name(symbol, tokens=8) for symbol in self.symbols[:MOST_SYMBOLS]]
        more = len(self.symbols) - len(names)
        return ", ".join(names) + (f" and {more} more" if more else "")

    def _reason(self, tokens: int) -> str:
        """Why: what memory knows now or, of a person's or an agent's plan, the reason as of the day it was given."""
        if not tokens or is_from_mood(self.plan):
            return ""
        if self.evidence is not None:
            return f"; {shorten(self.evidence, tokens=tokens)}"
        return (
            f"; reason of {day_in_words(self.plan.known_at, now=self.now)}: {quote(self.plan.reasoning, tokens=tokens)}"
        )


def plans_that_apply(lines: Iterable[PlanLine]) -> Section:
    """The plans in the order given: all of them if they fit with shorter reasons or none, else as many as fit."""
    rows = list(lines)
    sections = (
        section_of("plans", HEADING, (line.text(reason_tokens=tokens) for line in rows)) for tokens in REASON_TOKENS
    )
    section = next(sections)
    for shorter in sections:
        section = section if not section.left_out else shorter
    return section


def _shortened(subjects: Sequence[str]) -> list[str]:
    """Subjects that fit together: each has an equal share of the room, and what the others leave of theirs."""
    share = SUBJECT_TOKENS // len(subjects)
    needs = [min(share, estimate(subject)) for subject in subjects]
    left = SUBJECT_TOKENS - sum(needs)
    return [shorten(subject, tokens=need + left) for subject, need in zip(subjects, needs, strict=True)]


def _fitting(parts: Sequence[str]) -> list[str]:
    """The parts of a condition that fit, at least the beginning of the first; the others are counted."""
    room = CONDITION_TOKENS
    for count, part in enumerate(parts):
        room -= estimate(f", {part}")
        if room < 0:
            first = shorten(parts[0], tokens=CONDITION_TOKENS - 8) if count == 0 else None
            fitted = [first] if first is not None else list(parts[:count])
            left_out = len(parts) - len(fitted)
            return [*fitted, f"{left_out} more conditions"] if left_out else fitted
    return list(parts)
