"""Planned actions as people write them, rewritten as `planned_action` has them; each rewriting is named in a note.

The rules, by what is written:

- *Another word for an action* (`skip`, `close_position`, `notify`): the action. *Another key* (`action`): the key.
- *The action as a key* (`{"skip_trade": true}`) or as plain text: the action.
- *A parameter and a factor without an action* (`{"parameter": "size", "magnitude": 0.5}`): `adjust_param`.
- *A parameter with a written factor* (`{"lot_size": "*= 0.5"}`, `"-50%"`, `"x2"`): `adjust_param` by that factor.
- *Halving, doubling* (`halve_size`): the factors 0.5 and 2. *A boost or an increase by a share below 1*
  (`confidence_boost` 0.2): the factor 1 + share.

A reduction of .3 can mean to 30% or by 30%, and a `lot_size` of 0.5 half a lot or half the lots: they are refused, with
what to write instead. A plan opens no trade and waits for nothing: `buy` and `wait` are refused, and an alert says it.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from backsight.core.errors import Invalid, nearest
from backsight.core.memory.loose_conditions import quoted, words_of
from backsight.core.memory.planned_action import ACTIONS, EXPOSURE
from backsight.core.numbers import positive_zero, written_number

Json = dict[str, Any]

ACTION_WORDS: Mapping[str, str] = {action: action for action in ACTIONS} | {
    **dict.fromkeys(
        ("skip", "skip_trades", "no_trade", "do_not_trade", "dont_trade", "avoid_trade", "avoid", "stay_out"),
        "skip_trade",
    ),
    **dict.fromkeys(
        ("exit", "exit_trade", "exit_position", "close", "close_trade", "close_position", "flatten", "force_close"),
        "force_exit",
    ),
    **dict.fromkeys(("warn", "warning", "notify", "note", "remind", "reminder", "take_note"), "alert"),
    **dict.fromkeys(("adjust", "adjust_parameter", "adjust_params", "scale", "scale_param"), "adjust_param"),
}
TYPE_KEYS = ("type", "action", "action_type")
PARAMETER_KEYS = ("parameter", "param")
MAGNITUDE_KEYS = ("magnitude", "factor", "multiplier")
PARAMETERS = EXPOSURE | {"confidence", "stop_distance", "take_profit", "target", "threshold"}
RAISING = ("increase", "raise", "boost", "add", "widen")
LOWERING = ("reduce", "decrease", "lower", "cut", "shrink", "tighten", "tighter")
OPENING = ("buy", "sell", "enter", "open", "long", "short", "trade")
_RAISED = re.compile(rf"\A(?:(?:{'|'.join(RAISING)})_?(?P<parameter>\w*)|(?P<boosted>\w+)_(?:boost|increase))")
_LOWERED = re.compile(rf"\A(?:(?:{'|'.join(LOWERING)})_?(?P<parameter>\w*)|(?P<cut>\w+)_(?:reduction|cut|decrease))")
_HALVED = re.compile(r"(?P<verb>halve|half|double)_?(?P<parameter>\w*)")
_TIMES = re.compile(r"\A(?:(?:\*=?|[x×])\s*([\d.,]++)|([\d.,]++)\s*[x×])")
_BY_PERCENT = re.compile(r"([+\-−])\s*([\d.]+)\s*%")
_STOPS = frozenset({"stop", "stops", "stop_loss", "sl"})


def loosen_action(value: object, *, field: str) -> tuple[object, tuple[str, ...]]:
    """An action as `parse_action` reads it, and a note if it was rewritten; unchanged if it has no other meaning.

    >>> loosen_action({"confidence_boost": 0.2}, field="planned_action")
    ({'type': 'adjust_param', 'parameter': 'confidence', 'magnitude': 1.2}, \
('planned_action: {"confidence_boost": 0.2} is read as adjust_param: confidence × 1.2',))
    >>> loosen_action({"type": "reduce_size", "magnitude": 0.3}, field="planned_action")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: planned_action: "reduce_size" 0.3 has two meanings; to 30%: \
write {"type": "adjust_param", "parameter": "size", "magnitude": 0.3}; by 30%: \
write {"type": "adjust_param", "parameter": "size", "magnitude": 0.7}
    """
    action = _action(value, field)
    if action is None or action == value:
        return value, ()
    meaning = action["type"]
    if "parameter" in action:
        meaning += f": {action['parameter']} × {action.get('magnitude', '?')}"
    elif "magnitude" in action:
        meaning += f" {action['magnitude']}"
    return action, (f"{field}: {quoted(value)} is read as {meaning}",)


def _action(value: object, field: str) -> Json | None:
    """The action that is meant; None if the value is no action in other words."""
    if isinstance(value, str):
        value = {"type": value}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        return None
    keys = {
        key: name
        for key, words in (("type", TYPE_KEYS), ("parameter", PARAMETER_KEYS), ("magnitude", MAGNITUDE_KEYS))
        for name in reversed(words)
        if name in value
    }
    if len(value) == 1 and not keys:
        (kind, magnitude), parameter = next(iter(value.items())), None
        magnitude = None if magnitude in (True, None) else magnitude
    elif len(keys) == len(value):
        kind, parameter, magnitude = (value.get(keys.get(key, "")) for key in ("type", "parameter", "magnitude"))
        kind = "adjust_param" if kind is None and parameter is not None else kind
    else:
        return None
    return _meant(kind, parameter, magnitude, field)


def _meant(kind: object, parameter: object, magnitude: object, field: str) -> Json | None:
    word = words_of(kind).removeprefix("set_")
    action = ACTION_WORDS.get(word)
    if action is not None:
        number = _share(magnitude) if action != "adjust_param" else _factor(magnitude) or _plain_number(magnitude)
        return _json(action, parameter, magnitude if number is None else number)
    if not word:
        return None
    if word in PARAMETERS or (parameter is None and isinstance(magnitude, str) and _factor(magnitude) is not None):
        return _scaled(word, magnitude, field)
    if (match := _HALVED.fullmatch(word)) is not None and magnitude is None:
        scaled = parameter or match["parameter"] or "size"
        return _json("adjust_param", scaled, 2.0 if match["verb"] == "double" else 0.5)
    if (match := _RAISED.fullmatch(word)) is not None:
        return _raised(word, parameter or match["parameter"] or match["boosted"], magnitude, field)
    if (match := _LOWERED.fullmatch(word)) is not None:
        return _lowered(word, parameter or match["parameter"] or match["cut"], magnitude, field)
    if nearest(word, ACTIONS) is not None:
        return None  # `parse_action` names the nearest
    does = "a plan opens no trade" if word.split("_")[0] in OPENING else f"the actions are {', '.join(ACTIONS)}"
    alert = json.dumps({"type": "alert"})
    message = f"{quoted(kind)} is not an action: {does}; write {alert} and say it in the reasoning"
    raise Invalid(message, field=f"{field}.type")


def _scaled(name: str, magnitude: object, field: str) -> Json:
    factor = _factor(magnitude) if isinstance(magnitude, str) else None
    if factor is None:
        message = f"{quoted(name)} {quoted(magnitude)} may be a value or a factor, and a plan has a factor"
        raise Invalid(f"{message}; to halve it: {_way(name, 0.5)}", field=field)
    return _json("adjust_param", name, factor)


def _raised(word: str, name: object, magnitude: object, field: str) -> Json:
    """A parameter that is raised by a share below 1."""
    share = _share(magnitude)
    if share is not None and 0 < share < 1:
        return _json("adjust_param", _parameter(name), round(1 + share, 12))
    if share is not None and share > 1:
        ways = f"to {share:.0%}: {_way(name, share)}; by {share:.0%}: {_way(name, 1 + share)}"
        raise Invalid(f"{quoted(word)} {share:g} has two meanings; {ways}", field=field)
    raise Invalid(f"{quoted(word)} needs a factor; for half as much again: {_way(name, 1.5)}", field=field)


def _lowered(word: str, name: object, magnitude: object, field: str) -> Json:
    """A parameter that is halved: any other reduction may be by a share or to it."""
    share = _share(magnitude)
    if share == 0.5:
        return _json("adjust_param", _parameter(name), 0.5)
    if share is not None and 0 < share < 1:
        ways = f"to {share:.0%}: {_way(name, share)}; by {share:.0%}: {_way(name, round(1 - share, 12))}"
        raise Invalid(f"{quoted(word)} {share:g} has two meanings; {ways}", field=field)
    raise Invalid(f"{quoted(word)} needs a factor; to halve it: {_way(name, 0.5)}", field=field)


def _way(name: object, factor: float) -> str:
    return f"write {json.dumps(_json('adjust_param', _parameter(name), factor), ensure_ascii=False)}"


def _parameter(name: object) -> object:
    """The parameter that a word names: a stop is moved by its distance."""
    word = words_of(name)
    return "size" if not word else "stop_distance" if word in _STOPS else name


def _json(kind: str, parameter: object, magnitude: object) -> Json:
    fields = {"type": kind, "parameter": parameter, "magnitude": magnitude}
    return {name: each for name, each in fields.items() if each is not None}


def _factor(magnitude: object) -> float | None:
    """The factor that a text writes (`*= 0.5`, `x2`, `-50%`, `0.5`); None for other values."""
    if not isinstance(magnitude, str):
        return None
    text = magnitude.strip()[:60]
    if (match := _TIMES.fullmatch(text)) is not None:
        number = written_number(match[1] or match[2])
        return None if number is None else number[0]
    if (match := _BY_PERCENT.fullmatch(text)) is not None and (number := written_number(match[2])) is not None:
        return positive_zero(round(1 + (number[0] if match[1] == "+" else -number[0]) / 100, 12))
    return None


def _plain_number(magnitude: object) -> float | None:
    """The number that a text writes, unless as a percentage."""
    number = written_number(magnitude) if isinstance(magnitude, str) else None
    return None if number is None or number[1] else number[0]


def _share(magnitude: object) -> float | None:
    """The share that a number or a text writes; None for other values."""
    if isinstance(magnitude, str) and (number := written_number(magnitude)) is not None:
        return number[0] / 100 if number[1] else number[0]
    return float(magnitude) if isinstance(magnitude, int | float) and not isinstance(magnitude, bool) else None
