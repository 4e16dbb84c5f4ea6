"""What a plan does when it applies, and which actions contradict each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, assert_never, get_args

from backsight.core.errors import Invalid, did_you_mean
from backsight.core.memory.conditions import finite_number

ActionKind = Literal["adjust_param", "skip_trade", "force_exit", "alert"]


ACTIONS: tuple[ActionKind, ...] = get_args(ActionKind)


EXPOSURE = frozenset({"size", "lot_size", "position_size", "exposure", "leverage", "risk", "risk_per_trade"})
"""Parameters whose reduction reduces the exposure."""


LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAction:
    """What a plan asks for."""

    kind: ActionKind
    parameter: str | None = None
    """Of `adjust_param`: the parameter that is changed."""
    magnitude: float | None = None
    """Of `adjust_param`: the factor by which the parameter is multiplied, so that .5 halves it. Of `force_exit`: the
    share of the position that is closed; None is the whole position. The others have no use for it and keep it."""

    @property
    def raises(self) -> bool:
        """Whether the action makes a parameter larger."""
        return self.kind == "adjust_param" and (self.magnitude or 0.0) > 1

    @property
    def lowers_exposure(self) -> bool:
        """Whether the action reduces exposure, so that it helps where the trade that was left out would have lost."""
        if self.kind == "adjust_param":
            return (self.parameter or "").lower() in EXPOSURE and not self.raises
        return self.kind == "skip_trade"


def parse_action(value: object, *, field: str = "action") -> PlannedAction:
    """Parse the JSON of an action; raises `Invalid` with the field that is wrong.

    >>> parse_action({"type": "adjust_param", "parameter": "size", "magnitude": 0.5})
    PlannedAction(kind='adjust_param', parameter='size', magnitude=0.5)
    >>> parse_action({"type": "skip_trades"})
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: action.type: 'skip_trades' is not an action; did you mean 'skip_trade'? Known: ...
    """
    if not isinstance(value, Mapping):
        raise Invalid('an action is an object; give one like {"type": "skip_trade"}', field=field)
    for name in value:
        if name not in ("type", "parameter", "magnitude"):
            raise Invalid(
                f"unknown key {name!r:.40}; give type, parameter and magnitude, the rest in the reasoning", field=field
            )
    return make_action(value.get("type"), value.get("parameter"), value.get("magnitude"), field=field)


def make_action(
    kind: object, parameter: object = None, magnitude: object = None, *, field: str = "action"
) -> PlannedAction:
    """The action of this kind; raises `Invalid` if a field is missing, or given although the kind does not use it."""
    action_kind = one_of(kind, ACTIONS, noun="an action", field=f"{field}.type")
    if action_kind != "adjust_param" and parameter is not None:
        raise Invalid(
            f"{action_kind} changes no parameter; leave it out, or use adjust_param", field=f"{field}.parameter"
        )
    size = None if magnitude is None else checked_number(magnitude, field=f"{field}.magnitude")
    match action_kind:
        case "adjust_param":
            name = _parameter_name(parameter, field=f"{field}.parameter")
            if size is None or size <= 0 or size == 1:
                message = "adjust_param needs a factor above 0 and not 1; give one, like 0.5 to halve the parameter"
                raise Invalid(message, field=f"{field}.magnitude")
            return PlannedAction(kind=action_kind, parameter=name, magnitude=size)
        case "force_exit":
            if size is not None and not 0 < size <= 1:
                raise Invalid(
                    f"{size} is no share of a position; give a number above 0 and up to 1", field=f"{field}.magnitude"
                )
            return PlannedAction(kind=action_kind, magnitude=size)
        case "skip_trade" | "alert":
            return PlannedAction(kind=action_kind, magnitude=size)
    assert_never(action_kind)


def action_json(action: PlannedAction) -> dict[str, Any]:
    """The action as JSON; `parse_action` reads it back.

    >>> action_json(PlannedAction(kind="skip_trade"))
    {'type': 'skip_trade'}
    """
    fields = {"type": action.kind, "parameter": action.parameter, "magnitude": action.magnitude}
    return {name: value for name, value in fields.items() if value is not None}


def contradiction_of(first: PlannedAction, second: PlannedAction) -> str | None:
    """Why two actions contradict each other; None where they do not.

    >>> halve, double = (PlannedAction(kind="adjust_param", parameter="size", magnitude=by) for by in (0.5, 2.0))
    >>> contradiction_of(halve, double)
    'one lowers size and the other raises it'
    >>> contradiction_of(double, PlannedAction(kind="skip_trade"))
    'skip_trade stays out, and the other raises size'
    >>> contradiction_of(halve, PlannedAction(kind="skip_trade")) is None
    True
    """
    if first.kind == second.kind == "adjust_param":
        same = (first.parameter or "").lower() == (second.parameter or "").lower()
        opposite = same and first.raises != second.raises
        return f"one lowers {first.parameter} and the other raises it" if opposite else None
    for leaving, raising in ((first, second), (second, first)):
        if raising.raises and leaving.kind in ("skip_trade", "force_exit"):
            does = "stays out" if leaving.kind == "skip_trade" else "gets out"
            return f"{leaving.kind} {does}, and the other raises {raising.parameter}"
    return None


def _parameter_name(value: object, *, field: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME or not value.isprintable():
        raise Invalid(f"{value!r:.40} is not the name of a parameter; give one, like size", field=field)
    return value


_Word = TypeVar("_Word", bound=str)


def one_of(value: object, known: tuple[_Word, ...], *, noun: str, field: str) -> _Word:
    """The value as one of the known words; raises `Invalid` with a suggestion for any other value."""
    for word in known:
        if value == word:
            return word
    raise Invalid(f"{value!r:.40} is not {noun}; {did_you_mean(str(value), known)}", field=field)


def checked_number(value: object, *, field: str) -> float:
    """The value as a finite number; raises `Invalid` for any other value."""
    number = finite_number(value)
    if number is None:
        raise Invalid(f"{value!r:.40} is not a finite number; give one", field=field)
    return number
