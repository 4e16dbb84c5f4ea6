"""Conditions, actions and ends in plain English: every field and operator has words, and no JSON is in them."""

import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given

from backsight.core.memory.conditions import FIELDS, FOR_TEXT, OPERATORS, parse_condition
from backsight.core.memory.plan_words import (
    condition_in_words,
    day_in_words,
    end_in_words,
    number,
    plan_in_words,
    values_in_words,
)
from backsight.core.memory.prospective import PlanDraft, make_plan
from backsight.testing import T0
from core.memory.test_conditions import CONDITIONS

EXPONENT = re.compile(r"\d+(\.\d+)?e[+-]?\d+")


def in_words(condition: Any) -> str:
    return condition_in_words(parse_condition(condition))


def compared(field: str, op: str, *value: Any) -> dict[str, Any]:
    return {"field": field, "op": op} | ({"value": value[0]} if value else {})


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({"symbol": "XAUUSD", "weekday": 4}, "XAUUSD on Fridays"),
        (
            {"symbol": "XAUUSD", "direction": "long", "strategy": "IM", "regime": "ranging"},
            "XAUUSD longs of strategy IM in a ranging market",
        ),
        (compared("symbol", "not_in", ["BTC", "ETH"]), "any symbol but BTC or ETH"),
        ({"not": {"symbol": "BTC"}}, "any symbol but BTC"),
        (compared("weekday", "in", [0, 4]), "on Mondays or Fridays"),
        (compared("weekday", ">=", 2), "from Wednesday to Sunday"),
        (compared("weekday", "!=", 4), "on any day but Friday"),
        (compared("hour", "between", [8, 11]), "from 8:00 to 12:00 UTC"),
        (compared("hour", ">", 22), "from 23:00 UTC on"),
        ({"not": compared("hour", ">=", 9)}, "before 9:00 UTC"),
        (compared("regime", "in", ["trending_up", "trending_down"]), "in an uptrend or in a downtrend"),
        (compared("regime", "not_in", ["ranging", "volatile"]), "neither in a ranging market nor in a volatile market"),
        (compared("regime", "changes"), "regime changing"),
        (compared("session", "!=", "overlap"), "not in the overlap of London and New York"),
        (compared("volatility_regime", "==", "low"), "in low volatility"),
        (compared("price", "crosses_above", 2400), "price crossing above 2,400"),
        ({"not": compared("price", "crosses_below", 2400)}, "without price crossing below 2,400"),
        (compared("drawdown_pct", ">=", 0.15), "drawdown at least 15%"),
        (compared("drawdown_state", ">=", 0.5), "at least 50% of the accepted drawdown"),
        (compared("consecutive_losses", ">=", 3), "at least 3 losses in a row"),
        (compared("days_since_last_trade", ">", 3), "more than 3 days since the last trade"),
        (compared("hours_to_event", "<", 2), "less than 2 hours to the next event"),
        (compared("event.kind", "==", "nfp"), "next event NFP"),
        (compared("nfp.actual", ">", 200000), "NFP above 200,000"),
        (compared("nfp.surprise", ">", 0), "NFP above its forecast"),
        (compared("fomc.change", "<", 0), "FOMC below its previous value"),
        (compared("ecb_rate.actual", "between", [2, 2.5]), "ECB rate from 2 to 2.5"),
        (compared("now", "<", "2026-06-04T10:00:00Z"), "before 4 Jun 2026 10:00 UTC"),
        (
            {"any": [{"symbol": "BTC"}, {"symbol": "ETH", "hour": 9}]},
            "BTC or (ETH from 9:00 to 10:00 UTC)",
        ),
        (
            {"all": [compared("equity", "<", 9e4), {"symbol": "BTC"}, {"hour": 9}, compared("price", ">", 1.5)]},
            "BTC from 9:00 to 10:00 UTC with equity below 90,000 and price above 1.5",
        ),
    ],
)
def test_a_condition_reads_as_english(condition: Any, words: str) -> None:
    assert in_words(condition) == words


@pytest.mark.parametrize("field", sorted(FIELDS))
def test_every_field_has_words_for_every_operator(field: str) -> None:
    known = FIELDS[field]
    value: Any = "2026-06-04T10:00:00Z" if known.kind == "instant" else 1 if known.kind == "number" else "BTC"
    value = known.labels[0] if known.labels else value
    texts = set()
    for op in FOR_TEXT if known.kind == "text" else OPERATORS:
        levels = (
            []
            if op == "changes"
            else [[value]]
            if op in ("in", "not_in")
            else [[value, value]]
            if op == "between"
            else [value]
        )
        text = in_words(compared(field, op, *levels))
        assert text.strip() == text != ""
        assert field not in text or "_" not in field
        texts.add(text)
    assert len(texts) >= len(FOR_TEXT) - 2, "the words distinguish the operators; == and in, != and not_in may be equal"


@given(CONDITIONS)
def test_no_words_have_json_an_exponent_or_two_blanks(condition: Any) -> None:
    text = in_words(condition)
    assert text.strip() == text != ""
    assert not {"{", '"', "_"} & set(text)
    assert "  " not in text
    assert not EXPONENT.search(text)
    assert text == in_words(condition)


def test_numbers_are_written_out() -> None:
    assert [number(value) for value in (1e14, 1e16, -0.0, 1e-9)] == [
        "100,000,000,000,000", "more than 1,000,000,000,000,000", "0", "0.000000001",
    ]  # fmt: skip


def test_the_end_is_a_day_a_condition_or_both() -> None:
    def end(**ends: Any) -> str:
        draft = PlanDraft(
            condition=compared("drawdown_state", ">=", 0.5), action={"type": "alert"}, reasoning="so", **ends
        )
        return end_in_words(make_plan(draft, owner_id="ana", now=T0), now=T0)

    day = day_in_words(T0 + timedelta(days=30), now=T0)
    assert end() == f"until {day}"
    assert end(expires_when=compared("drawdown_state", "<", 0.5)) == "until this no longer holds"
    assert end(expires_when={"regime": "ranging"}) == "until in a ranging market"
    both = end(expires_when={"regime": "ranging"}, expires_at=T0 + timedelta(days=30))
    assert both == f"until {day} or in a ranging market"


def test_a_plan_far_from_now_has_its_year() -> None:
    draft = PlanDraft(
        condition={"hour": 9}, action={"type": "skip_trade"}, reasoning="so", expires_at=T0 + timedelta(days=400)
    )
    plan = make_plan(draft, owner_id="ana", now=T0)
    at = T0 + timedelta(days=400)
    assert plan_in_words(plan, now=T0) == f"from 9:00 to 10:00 UTC: skip the trade (until {at.day} {at:%b %Y})"


def test_present_values_are_those_of_the_state_only() -> None:
    condition = parse_condition(
        {"all": [compared("consecutive_losses", ">=", 3), {"hour": 9}, compared("drawdown", ">", 0.1)]}
    )
    values = {"consecutive_losses": 4, "hour": 9, "drawdown": 0.123}
    assert values_in_words(condition, values) == ["4 losses in a row", "drawdown 12%"]
    assert values_in_words(condition, {}) == []
