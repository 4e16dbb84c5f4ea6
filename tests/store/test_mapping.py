"""Rows read back equal the values written, to the bit and the microsecond."""

import json
import struct
import typing
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, insert, select

from backsight.core.audit import AuditChange, item_hash
from backsight.core.ids import canonical_json
from backsight.core.memory.conditions import AllOf, AnyOf, FieldComparison, Not, parse_condition
from backsight.memory import open_memory
from backsight.store.audit import AUDIT
from backsight.store.experience import DERIVED
from backsight.store.mapping import FEW_ROWS, METADATA, OWNER, Noun, _float_texts, _tuple_text, noun
from backsight.store.memories import RETRIEVALS, RETRIEVED_EPISODES
from backsight.store.tables import AUDITED, CURRENT
from backsight.store.transaction import Transaction, insert_all
from backsight.testing import T0
from core.memory.test_conditions import CONDITIONS
from support import fresh_postgres, is_row, raw

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
for_type = st.register_type_strategy
for_type(str, TEXTS)
for_type(int, st.integers(-(2**63), 2**63 - 1))
for_type(float, st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0))
for_type(bool, st.booleans())
for_type(datetime, st.datetimes(timezones=st.just(UTC)))
for _member in (AllOf, AnyOf, Not, FieldComparison):
    for_type(_member, CONDITIONS.map(parse_condition))  # only parsed conditions are ever stored


def bits(value: Any) -> Any:
    return struct.pack("<d", value) if isinstance(value, float) else value


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A connection to a store on each database."""
    is_file = request.param == "sqlite"
    url = f"sqlite:///{tmp_path_factory.mktemp('mapping')}/store.db" if is_file else fresh_postgres()
    open_memory(url).close()
    with raw(url) as opened:
        yield opened


@pytest.fixture
def connection(store: Connection) -> Iterator[Connection]:
    """The store without rows: what a test writes is rolled back."""
    with store.begin_nested() as nested:
        yield store
        nested.rollback()


@settings(max_examples=60)
@given(data=st.data())
def test_rows_are_hashed_in_bulk_as_one_by_one(data: st.DataObject) -> None:
    noun = data.draw(st.sampled_from(CURRENT))
    rows = [noun.to_values(value) for value in data.draw(st.lists(st.from_type(noun.type), max_size=4))]
    rows *= FEW_ROWS  # fewer are hashed one by one
    assert noun.item_hashes(rows) == [item_hash(noun.cells_of_values(row)) for row in rows]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**17), 10**17).map(float)))
@example([0.0, -0.0, 1e-4, 9.9e-5, 1e-5, 1e16, 9_999_999_999_999_998.0, 5e-324])
def test_numbers_are_written_in_bulk_as_python_writes_them(values: list[float]) -> None:
    assert list(_float_texts(values)) == list(map(repr, values))
    for alone in values:
        assert list(_float_texts([alone])) == [repr(alone)]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_not_hashed(value: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        _float_texts([1.0, value])


@pytest.mark.parametrize("noun", [*CURRENT, AUDIT], ids=lambda noun: noun.table.name)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_value_written_is_the_value_read(connection: Connection, noun: Noun[Any], data: st.DataObject) -> None:
    value = data.draw(st.from_type(noun.type))
    row = noun.to_row(value)
    with connection.begin_nested() as nested:
        connection.execute(insert(noun.table).values(**row))
        stored = connection.execute(select(noun.table).where(*is_row(noun, row))).one()
        nested.rollback()
    again = noun.from_row(stored)
    assert again == value
    assert {n: bits(v) for n, v in noun.to_row(again).items()} == {n: bits(v) for n, v in row.items()}
    assert noun.cells(stored._mapping) == noun.cells(row)


@pytest.mark.parametrize("noun", [*CURRENT, *DERIVED, AUDIT], ids=lambda noun: noun.table.name)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_value_written_by_a_bulk_insert_is_the_value_read(
    connection: Connection, noun: Noun[Any], data: st.DataObject
) -> None:
    value = data.draw(st.from_type(noun.type))
    row = noun.to_row(value)
    with connection.begin_nested() as nested:
        insert_all(connection, noun.table, [noun.to_values(value)])
        stored = connection.execute(select(noun.table).where(*is_row(noun, row))).one()
        nested.rollback()
    assert noun.from_row(stored) == value
    assert noun.cells_of_values(noun.to_values(value)) == noun.cells(row)


@pytest.mark.parametrize("table", METADATA.tables.values(), ids=lambda table: table.name)
def test_the_owner_comes_first_in_every_key_index_and_reference(table: Any) -> None:
    assert next(iter(table.primary_key.columns)).name == OWNER
    assert all(next(iter(index.columns)).name == OWNER for index in table.indexes)
    assert all(constraint.column_keys[0] == OWNER for constraint in table.foreign_key_constraints)


@pytest.mark.parametrize("noun", AUDITED, ids=lambda noun: noun.table.name)
def test_every_fact_has_both_clocks(noun: Noun[Any]) -> None:
    instants = {"known_at", "recorded_at"}
    if noun is RETRIEVALS:  # recorded with its decision, which has the instant
        instants = {"known_at"}
    if noun is RETRIEVED_EPISODES:  # a part of the retrievals that name the set
        instants = set()
    hints = typing.get_type_hints(noun.type)
    assert {name for name in ("known_at", "recorded_at") if hints.get(name) is datetime} == instants


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    symbol: str
    price: float | None = None
    at: datetime = T0


@dataclass(frozen=True, slots=True, kw_only=True)
class Basket:
    owner_id: str
    id: str
    main: Leg
    hedge: Leg | None
    legs: tuple[Leg, ...]
    exit: Leg | None


BASKETS = noun(Basket, "baskets", as_json=("main", "hedge", "legs", "exit"), none_is_empty=("exit",))
METADATA.remove(BASKETS.table)  # not a table of the store
A_LEG = Leg(symbol="BTC/É", price=1.5)
FULL = Basket(owner_id="me", id="full", main=A_LEG, hedge=A_LEG, legs=(A_LEG, Leg(symbol="ETH")), exit=A_LEG)
BARE = Basket(owner_id="me", id="bare", main=A_LEG, hedge=None, legs=(), exit=None)


@pytest.mark.parametrize("basket", [FULL, BARE], ids=["full", "bare"])
def test_a_field_named_in_as_json_is_one_column_of_canonical_json(connection: Connection, basket: Basket) -> None:
    BASKETS.table.create(connection)
    Transaction(connection).add(BASKETS, basket)
    row = connection.execute(select(*BASKETS.stored_columns)).one()
    assert row == ("me", basket.id, *_texts(basket))
    assert BASKETS.from_row(connection.execute(select(BASKETS.table)).one()) == basket


def _texts(basket: Basket) -> tuple[str | None, ...]:
    hedge = None if basket.hedge is None else canonical_json(basket.hedge)
    leaving = "" if basket.exit is None else canonical_json(basket.exit)
    return canonical_json(basket.main), hedge, canonical_json(basket.legs), leaving


def test_audit_cells_of_a_json_column_are_its_stored_text(connection: Connection) -> None:
    BASKETS.table.create(connection)
    transaction = Transaction(connection)
    transaction.add(BASKETS, FULL)
    transaction.revise(BASKETS, replace(BARE, id="full"))
    transaction.revise(BASKETS, replace(BARE, id="full"))
    first, second = (change for change in transaction.changes if isinstance(change, AuditChange))
    full = dict(zip(("id", "main", "hedge", "legs", "exit"), ("full", *_texts(FULL)), strict=True))
    assert first.set == full == BASKETS.cells(BASKETS.to_row(FULL))
    assert second.was == item_hash(full)
    assert second.set == {**full, "hedge": None, "legs": "[]", "exit": ""}


def test_equal_numbers_of_another_type_have_their_own_text() -> None:
    _, _, _, *rest = (json.loads(_tuple_text(items)) for items in [(), (0, -0.0), ("a",), (0.0, 0.0), (0, 0)])
    assert list(map(repr, rest)) == ["[0.0, 0.0]", "[0, 0]"]


def test_the_database_computes_nothing() -> None:
    for table in METADATA.tables.values():
        assert all(column.server_default is None and column.computed is None for column in table.columns)
