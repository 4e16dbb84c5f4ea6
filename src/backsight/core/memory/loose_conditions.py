"""Conditions as people write them, rewritten in the grammar of `conditions`; each rewriting is named in a note.

What has one meaning is carried out. The rules, by what is written:

- *An object of operators* (`{"drawdown_pct": {">": 0.15}}`): one comparison for each, all of which must hold.
- *A list as value* (`{"weekday": [1, 4]}`): `in`. *Text that begins with an operator* (`{"price": "> 2400"}`): it.
- *A sentence of comparisons* (`{"if": "regime=low_vol AND strategy=IM"}`): all of them; with OR, any of them.
- *Other words for operators, keys and fields* (`gte`, `operator`, `losing_streak`): the words of the tables here.
- *A label in another case, or a common word for it* (`Trending Up`, `buy`): the label. `trending` is up or down.
- *A volatility as regime* (`low_vol`): it is a label of `volatility_regime`, and of no regime.
- *Numbers as text* (`15%`, `200K`), *days by name*, *hours as 13:00*: the number. Percent of a share is a hundredth.
- *A kind of event as field* (`NFP > 200K`): its published figure. *Words for it*: beats and misses compare with the
  forecast, raises and cuts with the value before. An event without a figure (`{"event": "CPI"}`) is the next one.

- *`any_signal`* beside other conditions: nothing, since a plan applies to every signal.

What has two meanings, or none, is left as it is, and the grammar refuses it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from backsight.core.errors import Invalid
from backsight.core.events import EVENT_KINDS, kind_from_title
from backsight.core.memory.conditions import DEEPEST, EVENT_FIGURES, FIELDS, OPERATORS, OUTCOME_KINDS
from backsight.core.numbers import written_number
from backsight.core.regime import VOLATILITY_REGIMES

Json = dict[str, Any]

OPERATOR_WORDS: Mapping[str, str] = {operator: operator for operator in OPERATORS} | {
    "=": "==", "===": "==", "eq": "==", "equals": "==", "is": "==",
    "<>": "!=", "≠": "!=", "ne": "!=", "neq": "!=", "is_not": "!=", "not_equals": "!=",
    "gt": ">", "above": ">", "over": ">", "greater_than": ">", "more_than": ">",
    "gte": ">=", "ge": ">=", "≥": ">=", "=>": ">=", "at_least": ">=", "min": ">=",
    "lt": "<", "below": "<", "under": "<", "less_than": "<",
    "lte": "<=", "le": "<=", "≤": "<=", "=<": "<=", "at_most": "<=", "max": "<=",
    "one_of": "in", "nin": "not_in", "none_of": "not_in", "range": "between",
    "cross_above": "crosses_above", "crossed_above": "crosses_above", "crosses_over": "crosses_above",
    "cross_below": "crosses_below", "crossed_below": "crosses_below", "crosses_under": "crosses_below",
    "change": "changes", "changed": "changes",
}  # fmt: skip
"""Operators by the words for them; Mongo's leading `$` is dropped before."""
EITHER_WAY = frozenset({"crosses", "reaches", "reached", "touches"})
"""Operators that mean a crossing from either side."""
JOINT_WORDS: Mapping[str, str] = {"and": "all", "or": "any", "all_of": "all", "any_of": "any", "&&": "all", "||": "any"}
WRAPPERS = frozenset({"if", "when", "condition", "trigger"})
FIELD_KEYS = ("field", "metric", "indicator", "variable", "event")
OPERATOR_KEYS = ("op", "operator", "comparison", "comparator")
VALUE_KEYS = ("value", "values", "threshold", "level", "target")
FIELD_WORDS: Mapping[str, str] = {
    "instrument": "symbol", "ticker": "symbol", "market": "symbol", "side": "direction", "strategy_name": "strategy",
    "market_regime": "regime", "context_regime": "regime", "volatility": "volatility_regime",
    "vol_regime": "volatility_regime", "context_atr_d1": "atr_d1", "daily_atr": "atr_d1", "hourly_atr": "atr_h1",
    "trading_session": "session", "day": "weekday", "day_name": "weekday", "hour_of_day": "hour",
    "losing_streak": "consecutive_losses", "loss_streak": "consecutive_losses", "losses_in_a_row": "consecutive_losses",
    "winning_streak": "consecutive_wins", "win_streak": "consecutive_wins", "wins_in_a_row": "consecutive_wins",
    "dd": "drawdown", "dd_pct": "drawdown_pct", "drawdown_percent": "drawdown_pct", "current_drawdown": "drawdown",
    "current_price": "price", "last_price": "price", "peak_equity": "peak", "time_of_day": "hour",
    "days_since_trade": "days_since_last_trade", "hours_since_trade": "hours_since_last_trade",
    "days_without_trade": "days_since_last_trade", "hours_without_trade": "hours_since_last_trade",
    "next_event": "event.kind", "event_kind": "event.kind", "event_type": "event.kind",
    "hours_until_event": "hours_to_event",
}  # fmt: skip
LABEL_WORDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "regime": {
        "trending": ("trending_up", "trending_down"), "trend": ("trending_up", "trending_down"),
        **dict.fromkeys(("trend_up", "uptrend", "up_trend", "bull", "bullish"), ("trending_up",)),
        **dict.fromkeys(("trend_down", "downtrend", "down_trend", "bear", "bearish"), ("trending_down",)),
        **dict.fromkeys(("range", "rangebound", "range_bound"), ("ranging",)),
    },
    "session": {
        **dict.fromkeys(("asian", "tokyo"), ("asia",)),
        **dict.fromkeys(("european", "europe"), ("london",)),
        **dict.fromkeys(("new_york", "ny", "us", "american"), ("newyork",)),
    },
    "direction": {"buy": ("long",), "sell": ("short",)},
}  # fmt: skip
"""Common words for labels; two labels stand for either."""
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
KIND_WORDS: Mapping[str, str] = {"fed": "fomc", "ecb": "ecb_rate", "boe": "boe_rate", "boj": "boj_rate"}
FIGURE_WORDS: Mapping[str, str] = {name: name for name in EVENT_FIGURES} | {
    **dict.fromkeys(("outcome", "result", "value", "print", "figure"), "actual"),
    "consensus": "forecast",
}
OUTCOME_WORDS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("beat", "beats", "beats_expectations", "above_expectations", "above_forecast"), ("surprise", ">")),
    **dict.fromkeys(("miss", "misses", "below_expectations", "below_forecast"), ("surprise", "<")),
    **dict.fromkeys(("hike", "hikes", "raise", "raises", "rises", "increase"), ("change", ">")),
    **dict.fromkeys(("cut", "cuts", "lowers", "falls", "decrease"), ("change", "<")),
}
"""What an event's outcome is said to be: which of its figures is above or below 0."""

_OPERATOR = re.compile(r">=|<=|==|!=|<>|=>|=<|≥|≤|≠|=|<|>|\b(?:is|above|below|over|under|at least|at most)\b")
_NAME = re.compile(r"[^\W\d][\w .\-]*+")
LONGEST_SENTENCE = 2_000


def loosen_condition(value: object, *, field: str) -> tuple[object, tuple[str, ...]]:
    """A condition in the grammar, and a note for each thing that was rewritten; unchanged if nothing was.

    >>> loosen_condition({"regime": "low_vol", "strategy": "IM"}, field="trigger_condition")
    ({'all': [{'field': 'volatility_regime', 'op': '==', 'value': 'low'}, \
{'field': 'strategy', 'op': '==', 'value': 'IM'}]}, \
('trigger_condition: {"regime": "low_vol"} is read as volatility_regime == "low"',))
    >>> loosen_condition({"drawdown_pct": {">": 0.15}}, field="trigger_condition")[0]
    {'field': 'drawdown_pct', 'op': '>', 'value': 0.15}
    >>> loosen_condition({"if": "NFP > 200K"}, field="trigger_condition")[0]
    {'field': 'nfp.actual', 'op': '>', 'value': 200000.0}
    >>> loosen_condition({"regime": "ranging"}, field="trigger_condition")
    ({'regime': 'ranging'}, ())
    """
    reader = _ConditionReader(field)
    condition = reader.condition(value, place=field, depth=1)
    if not reader.notes:
        return value, ()
    stated = value.get("type") if isinstance(value, Mapping) else None
    if stated is not None and isinstance(condition, dict):
        condition = {"type": stated, **condition}
    return condition, tuple(dict.fromkeys(reader.notes))


def words_of(text: object) -> str:
    """A word in lower case with underscores; empty for what is no text.

    >>> words_of(" Low-Vol "), words_of("$gte"), words_of(3)
    ('low_vol', 'gte', '')
    """
    if not isinstance(text, str):
        return ""
    return re.sub(r"[\s\-]+", "_", text[:80].strip().lower()).removeprefix("$")


def event_kind(text: object) -> str | None:
    """The kind of event that a text names, if it is one.

    >>> event_kind("NFP"), event_kind("Non-Farm Payrolls"), event_kind("Fed"), event_kind("price")
    ('nfp', 'nfp', 'fomc', None)
    """
    word = words_of(text)
    kind = word if word in EVENT_KINDS else KIND_WORDS.get(word) or kind_from_title(word.replace("_", " "))
    if kind == "other" and isinstance(text, str):
        kind = kind_from_title(text[:80])
    return None if kind == "other" else kind


def quoted(value: object) -> str:
    """A value as JSON for a note, cut off if it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        text = "a value"
    return text if len(text) <= 60 else text[:59] + "…"


class _ConditionReader:
    """Rewrites one condition and collects the notes."""

    def __init__(self, field: str) -> None:
        self.field = field
        self.notes: list[str] = []

    def note(self, written: object, parts: list[object], *, joint: str = "all") -> None:
        """Note that what is written is read as these conditions, if they are not what is written."""
        if [written] != parts:
            meaning = (" and " if joint == "all" else " or ").join(map(_formula, parts))
            self.notes.append(f"{self.field}: {quoted(written)} is read as {meaning}")

    def condition(self, value: object, *, place: str, depth: int) -> object:
        if depth > DEEPEST + 1:
            return value  # the grammar refuses it
        if isinstance(value, str):
            return self._sentence(value, place=place)
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            return value
        entries = {name: value[name] for name in value if not (depth == 1 and name == "type")}
        joints = {name: JOINT_WORDS.get(words_of(name), words_of(name)) for name in entries}
        wrapped = next(iter(entries.items())) if len(entries) == 1 else ("", None)
        if wrapped[0] in WRAPPERS and isinstance(wrapped[1], str | Mapping):
            if not isinstance(wrapped[1], str):
                self.notes.append(f'{self.field}: "{wrapped[0]}" is read as the condition in it')
            return self.condition(wrapped[1], place=place, depth=depth + 1)
        if any(word in ("all", "any", "not") for word in joints.values()):
            return {
                joints[name] if joints[name] in ("all", "any", "not") else name: self._inner(
                    name, joints[name], inner, place=place, depth=depth
                )
                for name, inner in entries.items()
            }
        if self._is_comparison(entries):
            return self._comparison(entries, place=place)
        return self._shorthand(entries, place=place)

    def _inner(self, name: str, joint: str, inner: object, *, place: str, depth: int) -> object:
        """The conditions that `all`, `any` or `not` joins."""
        if joint in ("all", "any", "not") and joint != name:
            self.notes.append(f'{self.field}: "{name}" is read as "{joint}"')
        if joint == "not":
            return self.condition(inner, place=f"{place}.not", depth=depth + 1)
        if joint in ("all", "any") and isinstance(inner, list | tuple):
            places = (f"{place}.{joint}[{number}]" for number in range(len(inner)))
            return [self.condition(part, place=at, depth=depth + 1) for part, at in zip(inner, places, strict=True)]
        return inner

    @staticmethod
    def _is_comparison(value: Mapping[str, Any]) -> bool:
        has_field, has_operator, has_value = (
            any(name in value for name in names) for names in (FIELD_KEYS, OPERATOR_KEYS, VALUE_KEYS)
        )
        return "field" in value or (has_operator and (has_field or has_value))

    def _comparison(self, value: Mapping[str, Any], *, place: str) -> object:
        """A comparison whose keys have other names, or whose operator is not stated."""
        keys: dict[str, str] = {}
        for name in value:
            for key, words in (("field", FIELD_KEYS), ("op", OPERATOR_KEYS), ("value", VALUE_KEYS)):
                if name in words:
                    keys.setdefault(key, name)
        others = {name: value[name] for name in value if name not in keys.values()}
        if "field" not in keys or not all(self._field(name) in FIELDS for name in others):
            return value  # the grammar names the key that is missing or unknown
        name, operand = value[keys["field"]], value.get(keys.get("value", ""))
        if "op" in keys:
            parts = [self._compared(name, value[keys["op"]], operand, has_value="value" in keys)]
        elif isinstance(operand, str | list | tuple | Mapping) and isinstance(name, str):
            parts = list(self._entry(name, operand, place=place))
        else:
            return value
        compared = {name: value[name] for name in value if name not in others}
        self.note(compared, parts)
        if others:
            rest = self._shorthand(others, place=place)
            return {"all": [*parts, rest]}
        return _all_of(parts)

    def _shorthand(self, value: Mapping[str, Any], *, place: str) -> object:
        """Equalities, and what else people write as a value; in the order of the fields' names, as in the grammar."""
        entries, parts = dict(value), list[object]()
        for name in [name for name in value if words_of(name) == "any_signal" and value[name] is True]:
            if len(entries) > 1:
                del entries[name]
                self.notes.append(f"{self.field}: {quoted({name: True})} is left out: a plan applies to every signal")
        kind_key = next((name for name in entries if words_of(name) in ("event", "event.kind", "event_kind")), None)
        kind = None if kind_key is None else event_kind(entries[kind_key])
        figures = {name: words_of(name).removeprefix("event.") for name in entries if name not in FIELDS}
        figures = {name: FIGURE_WORDS[word] for name, word in figures.items() if word in FIGURE_WORDS}
        if kind is not None and kind_key is not None and figures:
            of_kind = entries.pop(kind_key)
            for name, figure in figures.items():
                operand = entries.pop(name)
                outcomes = list(self._figure(kind, figure, operand, place=place))
                self.note({kind_key: of_kind, name: operand}, outcomes)
                parts += outcomes
        for name in sorted(entries):
            compared = list(self._entry(name, entries[name], place=place))
            if compared != [{"field": name, "op": "==", "value": entries[name]}]:
                self.note({name: entries[name]}, compared)
            parts += compared
        return _all_of(parts) if parts else value

    def _figure(self, kind: str, figure: str, operand: object, *, place: str) -> Iterator[object]:
        if (outcome := OUTCOME_WORDS.get(words_of(operand))) is not None:
            yield {"field": f"{kind}.{outcome[0]}", "op": outcome[1], "value": 0.0}
        else:
            yield from self._entry(f"{kind}.{figure}", operand, place=place)

    def _entry(self, name: str, operand: object, *, place: str) -> Iterator[object]:
        """The comparisons that one field and what is written as its value stand for."""
        kind = event_kind(name) if words_of(name) not in FIELDS and "." not in name else None
        if words_of(name) == "event":
            yield from self._event(operand, place=place)
        elif kind is not None and words_of(operand) in OUTCOME_WORDS:
            yield from self._figure(kind, "actual", operand, place=place)
        elif isinstance(operand, Mapping) and operand and all(isinstance(key, str) for key in operand):
            yield from self._operators(name, operand, kind, place=place)
        elif isinstance(operand, list | tuple):
            yield self._compared(name, "in", operand)
        elif isinstance(operand, str) and (compared := _with_operator(operand)) is not None:
            yield self._compared(name, *compared)
        elif words_of(operand) in ("changes", "changed"):
            yield self._compared(name, "changes", None, has_value=False)
        else:
            yield self._compared(name, "==", operand)

    def _event(self, operand: object, *, place: str) -> Iterator[object]:
        """The next event by its kind, or a comparison with the outcome of the last one."""
        if isinstance(operand, str) and _sentence_parts(operand) is not None:
            yield self._sentence(operand, place=place)
        elif event_kind(operand) is None:
            known = ", ".join(OUTCOME_KINDS)
            raise Invalid(f"{quoted(operand)} is not a kind of event; known: {known}", field=f"{place}.event")
        else:
            yield self._compared("event.kind", "==", operand)

    def _operators(self, name: str, operand: Mapping[str, Any], kind: str | None, *, place: str) -> Iterator[object]:
        """An object as a value: operators, a comparison without its field, or figures of an event."""
        words = {key: words_of(key) for key in operand}
        if kind is not None and all(word in FIGURE_WORDS for word in words.values()):
            for key, level in operand.items():
                yield from self._figure(kind, FIGURE_WORDS[words[key]], level, place=place)
        elif all(word in OPERATOR_WORDS or word in EITHER_WAY for word in words.values()):
            for key, level in operand.items():
                yield self._compared(name, key, level)
        elif set(operand) <= {*OPERATOR_KEYS, *VALUE_KEYS} and any(key in OPERATOR_KEYS for key in operand):
            op = next(operand[key] for key in operand if key in OPERATOR_KEYS)
            levels = [operand[key] for key in operand if key in VALUE_KEYS]
            yield self._compared(name, op, levels[0] if levels else None, has_value=bool(levels))
        else:
            example = json.dumps({name[:60]: {">=": 0}})
            message = f"{quoted(operand)} is not a value; compare with operators, like {example}"
            raise Invalid(message, field=f"{place}.{name}")

    def _compared(self, name: object, op: object, operand: object, *, has_value: bool = True) -> object:
        """One comparison, in the words of the grammar."""
        field = self._field(name)
        if words_of(op) in EITHER_WAY:
            return {"any": [self._compared(name, side, operand) for side in ("crosses_above", "crosses_below")]}
        op = OPERATOR_WORDS.get(words_of(op), op)
        if not has_value or (op == "changes" and operand is None):
            return {"field": field, "op": op}
        if op in ("in", "not_in") and not isinstance(operand, list | tuple):
            operand = [operand]
        many = isinstance(operand, list | tuple)
        values = list(operand) if isinstance(operand, list | tuple) else [operand]
        meanings = [self._value(field, value) for value in values]
        fields = {meant for meant, _ in meanings}
        if len(fields) > 1:  # values of several fields: the grammar refuses them
            return {"field": field, "op": op, "value": operand}
        labels = [label for _, these in meanings for label in these]
        field = fields.pop() if fields else field
        if not many and len(labels) > 1 and op in ("==", "!="):
            return {"field": field, "op": "in" if op == "==" else "not_in", "value": labels}
        return {"field": field, "op": op, "value": labels if many else labels[0]}

    def _field(self, name: object) -> object:
        """The field that a name stands for; a name without a meaning as it is."""
        word = words_of(name)
        if not word or name in FIELDS:
            return name
        if word in FIELDS or word in FIELD_WORDS:
            return FIELD_WORDS.get(word, word)
        head, _, figure = word.rpartition("." if "." in word else "_")
        kind = event_kind(head) if figure in FIGURE_WORDS else None
        if kind is not None:
            return f"{kind}.{FIGURE_WORDS[figure]}"
        if (kind := event_kind(name)) is not None:
            return f"{kind}.actual"
        self._refuse_known_ideas(str(name), word)
        return name

    def _refuse_known_ideas(self, name: str, word: str) -> None:
        """Refuse names of what conditions express in another way, with that way."""
        start, stem = 4 if word.startswith(("any_", "the_")) else 0, word.removesuffix("s")
        if stem.endswith("signal", start):
            strategy = name[start : len(stem.removesuffix("signal").removesuffix("_"))]
            instead = f"; for its strategy, write {json.dumps({'strategy': strategy})}" if strategy else ""
            raise Invalid(
                f"{quoted(name)} is not a known field: a plan applies to every signal, so leave it out{instead}",
                field=self.field,
            )
        if re.search("trade|trigger", word):
            example = json.dumps({"field": "days_since_last_trade", "op": ">=", "value": 3})
            raise Invalid(
                f"{quoted(name)} is not a known field; for days without a trade, write {example}", field=self.field
            )

    def _value(self, field: object, value: object) -> tuple[object, list[object]]:
        """The field and the values that a written value stands for; several values stand for either."""
        known = FIELDS.get(field) if isinstance(field, str) else None
        if known is None or not isinstance(field, str) or not isinstance(value, str):
            return field, [value]
        if known.kind == "number":
            return field, [_number_for(field, value)]
        if field == "event.kind":
            return field, [event_kind(value) or value]
        if not known.labels or value in known.labels:
            return field, [value]
        word = words_of(value)
        if word in known.labels:
            return field, [word]
        if word in LABEL_WORDS.get(field, {}):
            return field, list(LABEL_WORDS[field][word])
        volatility = re.sub("_?vol(atility)?$", "", word)
        if field in ("regime", "volatility_regime") and volatility in VOLATILITY_REGIMES:
            return "volatility_regime", [volatility]
        return field, [value]

    def _sentence(self, text: str, *, place: str) -> object:
        """Comparisons joined by AND or by OR, like `regime=low_vol AND strategy=IM`."""
        text = text[:LONGEST_SENTENCE]
        parts, joint = re.split(r"\s(?:and|&&)\s", text, flags=re.IGNORECASE), "all"
        if len(parts) == 1:
            parts, joint = re.split(r"\s(?:or|\|\|)\s", text, flags=re.IGNORECASE), "any"
        conditions: list[object] = []
        for part in parts:
            compared = _sentence_parts(part)
            if compared is None or re.search(r"\s(or|\|\|)\s", part, flags=re.IGNORECASE):
                example = json.dumps({"all": [{"regime": "ranging"}, {"drawdown_pct": {">": 0.15}}]})
                raise Invalid(f"{quoted(text)} is not a condition; write conditions like {example}", field=place)
            name, operator, operand = compared
            conditions += self._entry(name, f"{operator} {operand}", place=place)
        self.note(text, conditions, joint=joint)
        return conditions[0] if len(conditions) == 1 else {joint: conditions}


def _with_operator(text: str) -> tuple[str, str] | None:
    """Operator and value of a text that begins with an operator; None for other text.

    >>> _with_operator(" >= 15% "), _with_operator("above 2400"), _with_operator("2400")
    (('>=', '15%'), ('above', '2400'), None)
    """
    text = text[:LONGEST_SENTENCE].strip()
    match = _OPERATOR.match(text)
    operand = "" if match is None else text[match.end() :].strip()
    return (match[0], operand) if match is not None and operand and "\n" not in operand else None


def _sentence_parts(text: str) -> tuple[str, str, str] | None:
    """Field, operator and value of a text like `price > 2400`; None for other text.

    >>> _sentence_parts("price above 2400"), _sentence_parts("weekday = Friday"), _sentence_parts("= 5")
    (('price', 'above', '2400'), ('weekday', '=', 'Friday'), None)
    """
    text = text[:LONGEST_SENTENCE]
    for match in _OPERATOR.finditer(text):
        name, operand = text[: match.start()].strip(), text[match.end() :].strip()
        if name:
            is_comparison = operand and "\n" not in operand and _NAME.fullmatch(name)
            return (name, match[0], operand) if is_comparison else None
    return None


def _formula(condition: object) -> str:
    """A condition as a note shows it, like `nfp.actual > 200000`."""
    if not isinstance(condition, Mapping):
        return quoted(condition)
    for joint, word in (("all", " and "), ("any", " or ")):
        if isinstance(condition.get(joint), list):
            return word.join(map(_formula, condition[joint]))
    if "field" not in condition:
        return quoted(condition)
    value = "" if "value" not in condition else f" {quoted(condition['value']).removesuffix('.0')}"
    return f"{condition['field']} {condition['op']}{value}"


def _number_for(field: str, text: str) -> object:
    """The number that a text writes for a field; the text as it is if it writes none."""
    known, word = FIELDS[field], words_of(text)
    if field in ("weekday", "day_of_week"):
        days = [number for number, day in enumerate(DAYS) if word in (day, day[:3], f"{day}s")]
        if days:
            return days[0]
    if field in ("hour", "hour_utc") and (match := re.fullmatch(r"(\d{1,2}):00(_?utc)?", word)):
        return float(match[1])
    number = written_number(text)
    if number is None or (number[1] and known.high != 1 and known.trigger != "event"):
        return text
    return number[0] / 100 if number[1] and known.high == 1 else number[0]


def _all_of(parts: list[object]) -> object:
    return parts[0] if len(parts) == 1 else {"all": parts}
