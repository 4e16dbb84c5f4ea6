"""Drafts the result of a reflection: lessons written from the evidence, by rule or by a language model.

No transaction is open while a model is called, and nothing is stored here.
"""

import logging
from dataclasses import dataclass, replace
from datetime import datetime

from backsight.core.errors import BacksightError, Invalid
from backsight.core.reflection.citation_check import DroppedBullet, check_bullets
from backsight.core.reflection.evidence_view import describe_evidence
from backsight.core.reflection.lessons import LessonsNote, accept_lessons, note_from_bullets, write_lessons
from backsight.core.reflection.notes import Author, Reflection, ReflectionNote, ReflectionOutcome
from backsight.core.reflection.patterns import TradeEvidence
from backsight.core.reflection.reflector_request import ReflectorAnswer, ReflectorRequest, ReflectorUnavailable
from backsight.core.reflection.revisions import revision_reasons
from backsight.core.strategies import Deployment, Strategy
from backsight.core.text.tokens import estimate
from backsight.services.context import Reflectors

LOG = logging.getLogger("backsight")
CUT = "cut: the note holds no more"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionInputs:
    """Everything that a reflection starts from, read at one moment."""

    deployment: Deployment
    strategy: Strategy | None
    """The deployed version; None if it was never saved."""
    at: datetime
    evidence: TradeEvidence
    window: tuple[datetime, datetime] | None
    """The first and the last close among the trades considered."""
    active_note: ReflectionNote | None
    reflection_count: int
    """The number of reflections of the deployment that were recorded before."""
    recorded: Reflection | None
    """The reflection of this very instant, if it is recorded already."""

    @property
    def avoid_rules(self) -> tuple[str, ...]:
        return () if self.strategy is None else self.strategy.avoid


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionDraft:
    """The result of a reflection before it is recorded."""

    outcome: ReflectionOutcome
    reason: str
    author: Author
    note: LessonsNote | None = None
    """The note that becomes active; None if the active note stays."""
    dropped: tuple[DroppedBullet, ...] = ()
    model_used: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


def draft_lessons(inputs: ReflectionInputs, reflectors: Reflectors) -> ReflectionDraft:
    """The lessons that follow from the evidence, or the reason why there are no new ones."""
    if _still_holds(inputs):
        return _draft_unchanged()
    memory = inputs.deployment.memory
    if inputs.evidence.patterns and memory.reflector == "model" and memory.model is not None:
        return _draft_with_model(inputs, reflectors, memory.model)
    return _draft_without_model(inputs)


def draft_dry_run(inputs: ReflectionInputs) -> ReflectionDraft:
    """The lessons that the evidence gives without a model, with a remark if a model would write them."""
    if _still_holds(inputs):
        return _draft_unchanged()
    memory, draft = inputs.deployment.memory, _draft_without_model(inputs)
    if memory.reflector == "statistics" or not inputs.evidence.patterns:
        return draft
    return replace(draft, reason=f"{memory.model} would write lessons from this evidence; a dry run does not call it")


def _still_holds(inputs: ReflectionInputs) -> bool:
    """Whether the lessons in force rest on the patterns there are, none of which has moved."""
    active, patterns = inputs.active_note, inputs.evidence.patterns
    if active is None or not patterns or active.evidence_mode != inputs.deployment.mode:
        return False
    return active.author == inputs.deployment.memory.reflector and not revision_reasons(active.adopted, patterns)


def _draft_unchanged() -> ReflectionDraft:
    reason = "the lessons in force rest on the same patterns; no effect moved by more than half its interval's width"
    return ReflectionDraft(outcome="unchanged", reason=reason, author="statistics")


def _draft_without_model(inputs: ReflectionInputs) -> ReflectionDraft:
    if not inputs.evidence.patterns:
        return _draft_without_patterns(inputs)
    return _draft_note(inputs, write_lessons(inputs.evidence), author="statistics")


def _draft_without_patterns(inputs: ReflectionInputs) -> ReflectionDraft:
    """Withdraw lessons that no longer hold; those that the owner wrote or promoted stay until there is a pattern."""
    active = inputs.active_note
    missing = describe_evidence(inputs.evidence).missing or ""
    if active is None or not active.bullets:
        return ReflectionDraft(outcome="unchanged", reason=f"no lesson yet: {missing}", author="statistics")
    if active.evidence_mode != inputs.deployment.mode:
        origin = (
            "the owner's lessons" if active.author == "owner" else f"the lessons from {active.evidence_mode} trades"
        )
        return ReflectionDraft(outcome="unchanged", reason=f"{origin} stay: {missing}", author="statistics")
    empty = LessonsNote()
    return ReflectionDraft(outcome="written", reason=f"no lesson holds: {missing}", author="statistics", note=empty)


def _draft_with_model(inputs: ReflectionInputs, reflectors: Reflectors, model: str) -> ReflectionDraft:
    """Ask a language model for lessons, and keep those that pass the citation check."""
    strategy, active = inputs.strategy, inputs.active_note
    request = ReflectorRequest(
        evidence=inputs.evidence,
        strategy_name=inputs.deployment.strategy_name,
        strategy="" if strategy is None else _strategy_text(strategy),
        avoid=inputs.avoid_rules,
        note=None if active is None else LessonsNote(bullets=active.bullets),
    )
    try:
        answer = reflectors(model).reflect(request)
    except BacksightError as error:
        LOG.warning("reflection of %s: %s", inputs.deployment.name, error.message)
        return _draft_failure(error, model)
    except Exception as error:  # an error in a plug-in must not stop the tick
        LOG.exception("reflection of %s: %s failed", inputs.deployment.name, model)
        reason = f"{model} failed: {error!r:.200}"
        return ReflectionDraft(outcome="failed", reason=reason, author="model", model_used=model)
    return _draft_answer(inputs, answer)


def _draft_failure(error: BacksightError, model: str) -> ReflectionDraft:
    draft = ReflectionDraft(outcome="failed", reason=error.message, author="model", model_used=model)
    if not isinstance(error, ReflectorUnavailable):
        return draft
    return replace(draft, input_tokens=error.input_tokens, output_tokens=error.output_tokens, cost_usd=error.cost_usd)


def _draft_answer(inputs: ReflectionInputs, answer: ReflectorAnswer) -> ReflectionDraft:
    """Check a model's bullets against the evidence, and draft a note from those that pass."""
    check = check_bullets(answer.bullets, patterns=inputs.evidence.patterns)
    if check.bullets:
        draft = _draft_note(inputs, note_from_bullets(check.bullets), author="model")
    else:
        reason = f"none of its {len(answer.bullets)} bullets holds: " if answer.bullets else "it wrote no bullet"
        reason = f"{reason}{check.dropped[0].reason}" if check.dropped else reason
        draft = ReflectionDraft(outcome="rejected", reason=reason, author="model")
    return replace(
        draft,
        dropped=check.dropped + draft.dropped,
        model_used=answer.model,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        cost_usd=answer.cost_usd,
    )


def _draft_note(inputs: ReflectionInputs, proposed: LessonsNote, *, author: Author) -> ReflectionDraft:
    """The note trimmed to its limits, or the reason why it is refused or changes nothing."""
    active = inputs.active_note
    try:
        note = accept_lessons(proposed, avoid=inputs.avoid_rules, count=estimate)
    except Invalid as error:
        return ReflectionDraft(outcome="rejected", reason=error.message, author=author)
    cut = tuple(DroppedBullet(text=each.text, reason=CUT) for each in proposed.bullets if each not in note.bullets)
    if active is not None and active.content_hash == note.hash:
        reason = "the lessons in force say the same"
        return ReflectionDraft(outcome="unchanged", reason=reason, author=author, dropped=cut)
    lessons = "1 lesson" if len(note.bullets) == 1 else f"{len(note.bullets)} lessons"
    reason = f"{lessons} from {inputs.evidence.n} closed trades"
    if active is not None and (changes := revision_reasons(active.adopted, inputs.evidence.patterns)):
        reason = f"{reason}: {', '.join(changes)}"
    return ReflectionDraft(outcome="written", reason=reason, author=author, note=note, dropped=cut)


def _strategy_text(strategy: Strategy) -> str:
    """The thesis and all rules of a strategy, one a line."""
    guidance = strategy.guidance
    lists = (strategy.rules, guidance.look_for, guidance.entry_rules, guidance.exit_rules, guidance.risk_rules)
    return "\n".join(line for line in (strategy.thesis, *(rule for rules in lists for rule in rules)) if line)
