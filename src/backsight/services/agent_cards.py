"""Result cards of runs: whether they fit their type, and the line that a list shows of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backsight.core.agents.card import RE_EXAMINATION, CardType, card_type_named, checked_result, misfit, texts_of
from backsight.core.agents.re_examination import read_re_examination
from backsight.core.agents.run import AgentRun, json_object_in
from backsight.core.errors import Conflict, Invalid, NotFound, Refused
from backsight.core.ids import canonical_json
from backsight.core.strategies import Deployment
from backsight.core.text.untrusted_text import shorten
from backsight.services.id_prefixes import whole_id
from backsight.store import agents as stored
from backsight.store.agents import RUNS
from backsight.store.database import Connection
from backsight.store.view import View

HEADLINE = 100
"""Characters of a headline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCard:
    """A result as it is stored: the JSON, and whether it fits its type."""

    card_type: str | None
    result: str | None
    fits: bool | None
    misfit: str | None


NO_CARD = CheckedCard(card_type=None, result=None, fits=None, misfit=None)


def checked_card(card_type: CardType | None, result: Mapping[str, Any] | None) -> CheckedCard:
    """A result with its type. One that does not fit is kept and flagged; numbers that are not finite are refused."""
    if result is None:
        return NO_CARD
    why = None if card_type is None else misfit(card_type, checked_result(result))
    return CheckedCard(
        card_type=None if card_type is None else card_type.name,
        result=canonical_json(checked_result(result)),
        fits=None if card_type is None else why is None,
        misfit=why,
    )


def card_in_output(card_type: CardType | None, output: str) -> CheckedCard:
    """The card in the output of a run that Backsight started: the last JSON object in it."""
    if card_type is None:
        return NO_CARD
    result = json_object_in(output)
    if result is None:
        return CheckedCard(card_type=card_type.name, result=None, fits=False, misfit="no JSON object in the output")
    try:
        return checked_card(card_type, result)
    except Invalid as error:
        return CheckedCard(card_type=card_type.name, result=None, fits=False, misfit=error.message)


def re_examination_card(parent_type: CardType, parent: AgentRun, answer: Mapping[str, Any] | None) -> CheckedCard:
    """The card of a re-examination; one that is malformed does not fit, and is kept as it was given."""
    items = texts_of(parent_type.value_of(parent.card, "watch_for"))
    try:
        checked_result(answer or {})
    except Invalid as error:
        return CheckedCard(card_type=RE_EXAMINATION, result=None, fits=False, misfit=error.message)
    examined = read_re_examination(answer, actions=parent_type.actions, watch_for=items)
    fits = not isinstance(examined, str)
    content = examined if fits else answer
    return CheckedCard(
        card_type=RE_EXAMINATION,
        result=None if content is None else canonical_json(content),
        fits=fits,
        misfit=None if fits else str(examined),
    )


def known_card_type(view: View, name: str | None, *, field: str = "card_type") -> CardType | None:
    """The card type with a name; None without a name."""
    return None if name is None else card_type_named(name, stored.card_types(view), field=field)


def run_named(connection: Connection, owner: str, key: str, *, field: str = "run") -> AgentRun:
    """The run with an id, or with the beginning of one; `NotFound` if the owner has none."""
    run_id = whole_id(connection, owner, RUNS, key, field=field)
    run = stored.run(connection, owner, run_id)
    if run is None:
        raise NotFound(f"no run {key[:40]!r} was known then; list_runs shows their ids", field=field)
    return run


def parent_of(connection: Connection, owner: str, key: str, deployment: Deployment) -> AgentRun:
    """The run that a re-examination of a deployment examines."""
    parent = run_named(connection, owner, key, field="parent")
    if parent.deployment_id != deployment.id:
        raise Conflict(f"the run {parent.id} is of another deployment than {deployment.name!r}", field="parent")
    if parent.kind == "re_examination":
        raise Refused("this run is a re-examination itself; name the run that it examines", field="parent")
    if parent.card_type is None or parent.result is None:
        raise Refused("the run has no card, so there is no decision to re-examine", field="parent")
    return parent


def headline_of(run: AgentRun, types: Sequence[CardType]) -> str:
    """A run in a few words: its decision and summary, else the beginning of its output, error or prompt."""
    card_type = next((each for each in types if each.name == run.card_type), None)
    if card_type is not None and run.result is not None:
        values = [card_type.value_of(run.card, role) for role in ("symbol", "direction", "summary")]
        text = " · ".join(str(value) for value in values if value)
        if text:
            return shorten(text, most=HEADLINE, tokens=HEADLINE)
    return shorten(run.error or run.output or run.prompt, most=HEADLINE, tokens=HEADLINE)
