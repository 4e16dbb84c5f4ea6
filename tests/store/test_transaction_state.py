"""Values that stay valid from one head of the audit chain to the next."""

from backsight.core.audit import ChainHead
from backsight.store.transaction_state import ANY_TABLE, MOST_OWNERS, TransactionState, UnchangedValues

FIRST, SECOND = ChainHead(sequence=1, hash="a" * 64), ChainHead(sequence=2, hash="b" * 64)
TRADES, PLANS = frozenset({"trades"}), frozenset({"plans"})


def values_at_first_head() -> UnchangedValues:
    shared = UnchangedValues()
    shared.at("ana", FIRST).values.update({"trade": (TRADES, 1), "plan": (PLANS, 2)})
    return shared


def test_a_command_invalidates_the_values_of_the_tables_that_it_wrote() -> None:
    shared = values_at_first_head()
    shared.advance("ana", FIRST, SECOND, {"trades"})
    assert shared.at("ana", SECOND).values == {"plan": (PLANS, 2)}


def test_a_statement_of_unknown_tables_invalidates_everything() -> None:
    shared = values_at_first_head()
    shared.advance("ana", FIRST, SECOND, {ANY_TABLE})
    assert shared.at("ana", SECOND).values == {}


def test_a_head_that_another_process_wrote_invalidates_everything() -> None:
    shared = values_at_first_head()
    assert shared.at("ana", SECOND).values == {}
    shared.advance("ana", FIRST, SECOND, {"plans"})  # from a head that is no longer the last known one
    assert shared.at("ana", SECOND).values == {}


def test_a_reader_of_an_earlier_snapshot_leaves_later_values_in_place() -> None:
    shared = UnchangedValues()
    shared.at("ana", SECOND).values["plan"] = PLANS, 2
    assert shared.at("ana", FIRST).values == {}
    assert shared.last("ana", "plan") == 2


def test_rows_that_were_written_without_a_link_are_read_again() -> None:
    shared = values_at_first_head()
    TransactionState(shared, touched={"plans"}).committed()
    assert shared.at("ana", FIRST).values == {"trade": (TRADES, 1)}


def test_a_later_write_of_a_command_drops_a_value_that_it_wrote_before() -> None:
    state = TransactionState(values_at_first_head(), heads={"ana": SECOND}, first_heads={"ana": FIRST})
    for tables, key in ((TRADES, "last trade"), (PLANS, "last plan")):
        state.touch(*tables)
        state.written.append(("ana", key, tables, 3))
    state.touch("plans")
    state.committed()
    assert state.shared.at("ana", SECOND).values == {"last trade": (TRADES, 3)}


def test_owners_share_nothing_and_their_number_is_bounded() -> None:
    shared = values_at_first_head()
    assert shared.at("bob", FIRST).values == {}
    for number in range(MOST_OWNERS):
        shared.at(f"owner {number}", FIRST)
    assert shared.last("ana", "plan") is None
