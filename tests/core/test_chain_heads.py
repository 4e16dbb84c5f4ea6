"""Recorded heads: which lines of a heads file are believed, and what erasures and restored backups give up."""

from backsight.core.audit import ERASE, ChainHead
from backsight.core.chain_heads import RESTORE, RecordedHead, head_line, parse_line, recorded_chain
from backsight.testing import T0

KEY = b"k" * 32


def a_line(sequence: int, operation: str = "remember_trade", *, owner: str = "ana", key: bytes | None = KEY) -> str:
    head = ChainHead(sequence=sequence, hash=f"{sequence:064x}")
    return head_line(RecordedHead(owner_id=owner, head=head, operation=operation, at=T0), key)


def sequences(*lines: str, key: bytes | None = KEY) -> list[int]:
    return sorted(recorded_chain(lines, "ana", key).hashes)


def test_the_heads_of_one_owner_are_read() -> None:
    lines = [a_line(1), a_line(1, owner="bob"), a_line(3), a_line(2)]
    chain = recorded_chain(lines, "ana", KEY)
    assert (sorted(chain.hashes), chain.last) == ([1, 2, 3], 3)


def test_a_line_that_the_key_did_not_sign_is_not_believed() -> None:
    forged = a_line(2).replace(f"2:{2:064x}", f"2:{7:064x}")
    chain = recorded_chain([a_line(1), forged, a_line(3, key=None), a_line(4, key=b"x" * 32)], "ana", KEY)
    assert (sorted(chain.hashes), chain.unsigned) == ([1], (2, 3, 4))


def test_every_field_is_signed() -> None:
    line = a_line(2)
    for was, forged in (("ana", "bob"), ("2:0", "3:0"), ("remember_trade", ERASE), ("2026", "2025")):
        assert was in line
        assert parse_line(line.replace(was, forged), KEY) == "not signed"


def test_without_a_key_every_line_is_believed() -> None:
    assert sequences(a_line(1, key=None), a_line(2), key=None) == [1, 2]


def test_a_torn_line_is_counted_and_left_out() -> None:
    chain = recorded_chain([a_line(1), a_line(2)[:50] + a_line(3), "[1]", "", a_line(4)], "ana", KEY)
    assert (sorted(chain.hashes), chain.unreadable, chain.unsigned) == ([1, 4], 3, ())


def test_an_erasure_replaces_the_heads_before_it() -> None:
    assert sequences(a_line(1), a_line(2), a_line(3, ERASE), a_line(4)) == [3, 4]
    assert sequences(a_line(1), a_line(3, ERASE), a_line(2), a_line(4)) == [3, 4]  # another process was slow
    assert sequences(a_line(1), a_line(2), a_line(3, ERASE, owner="bob")) == [1, 2]


def test_a_restored_backup_gives_up_the_heads_after_it() -> None:
    assert sequences(a_line(1), a_line(2), a_line(3), a_line(2, RESTORE), a_line(3)) == [1, 2, 3]
    assert sequences(a_line(1), a_line(2), a_line(3, ERASE), a_line(2, RESTORE)) == [2]


def test_a_chain_that_was_replaced_and_continued_has_two_hashes() -> None:
    other = a_line(1).replace(f"1:{1:064x}", f"1:{9:064x}")
    assert len(recorded_chain([a_line(1), other], "ana", None).hashes[1]) == 2
