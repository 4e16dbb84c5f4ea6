"""Canonical JSON, digests and ids: equal content has equal text, whatever its form."""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.ids import NAMESPACE, ShownAsJson, canonical_json, derive_id, digest, plain

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@dataclass(frozen=True)
class Leg:
    symbol: str
    at: datetime


@given(VALUES)
def test_the_text_is_that_of_the_plain_value(value: object) -> None:
    assert canonical_json(value) == canonical_json(plain(value))


def test_dataclasses_and_instants_are_written_as_json() -> None:
    leg = Leg(symbol="É", at=datetime(2026, 6, 4, tzinfo=UTC))
    assert canonical_json((leg,)) == '[{"at":"2026-06-04T00:00:00.000000Z","symbol":"É"}]'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}])
def test_what_json_does_not_have_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        canonical_json(value)


@given(st.text(), st.lists(st.text() | st.integers() | st.none(), max_size=3))
def test_an_id_is_a_uuid_of_version_5(kind: str, parts: list[str | int | None]) -> None:
    assert derive_id(kind, *parts) == str(uuid5(NAMESPACE, canonical_json([kind, *parts])))
    assert UUID(derive_id(kind, *parts)).version == 5


def test_a_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1})
    assert digest([1, 2]) != digest([2, 1])


def test_an_answer_shows_text_and_the_stated_text_of_none() -> None:
    assert ShownAsJson().to_text({"b": 1, "a": 2}) == '{"a":2,"b":1}'
    assert ShownAsJson().to_text(None) is None
    assert ShownAsJson(none="").to_text(None) == ""
    assert ShownAsJson(encode=str.upper).to_text("ranging") == "RANGING"
