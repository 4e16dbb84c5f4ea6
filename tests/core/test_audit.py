"""The audit chain: each link holds the hash of the one before, and of everything it says."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from backsight.core import audit
from backsight.core.audit import (
    EMPTY,
    ITEM_LENGTH,
    MANY_ITEMS,
    AuditBatch,
    AuditChange,
    AuditRow,
    ChainHead,
    item_hash,
    items_of,
    link_hash,
    next_link,
    parse_head,
)
from backsight.core.errors import Invalid
from backsight.core.ids import digest, plain
from backsight.testing import T0

LINK: dict[str, Any] = {"owner_id": "ana", "at": T0, "actor": "cli", "operation": "remember_trade"}
ADDED = AuditChange(table="trades", key=("t1",), set={"id": "t1", "pnl": 1.0})


def test_a_link_follows_its_head() -> None:
    first = next_link(EMPTY, [ADDED], **LINK)
    second = next_link(ChainHead(sequence=first.sequence, hash=first.hash), [], **LINK)
    assert (first.sequence, first.previous) == (1, EMPTY.hash)
    assert (second.sequence, second.previous) == (2, first.hash)


@pytest.mark.parametrize(
    "changed", [{"owner_id": "bob"}, {"actor": "web"}, {"operation": "x"}, {"changes": "[]"}, {"sequence": 2}]
)
def test_the_hash_covers_every_field_of_a_link(changed: dict[str, Any]) -> None:
    link = next_link(EMPTY, [ADDED], **LINK)
    assert link_hash(link) == link.hash
    assert link_hash(replace(link, **changed)) != link.hash


@pytest.mark.parametrize("size", [0, 1, 4, 5, 13])
def test_the_hash_of_changes_in_parts_is_that_of_the_whole(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(audit, "CHARACTERS_AT_ONCE", 4)
    link = AuditRow(
        **LINK | {"actor": '"changes":""'}, sequence=7, changes='"é\\\n€\u0001😀"…"'[:size], previous="", hash=""
    )
    fields = {name.removesuffix("_id"): plain(value) for name, value in asdict(link).items() if name != "hash"}
    assert link_hash(link) == digest(fields)


def test_a_change_says_what_the_row_was_only_if_there_was_one() -> None:
    assert "was" not in ADDED.as_json()
    removed = replace(ADDED, set=None, was=item_hash({"id": "t1"}))
    assert removed.as_json()["set"] is None
    assert removed.as_json()["was"] == item_hash({"id": "t1"})


def test_a_batch_does_not_depend_on_the_order_of_its_rows() -> None:
    one, other = item_hash({"id": "a"}), item_hash({"id": "b"})
    batches = [AuditBatch(table="bars", items=items).as_json() for items in (one + other, other + one)]
    assert batches[0] == batches[1]
    assert len(items_of(str(batches[0]["items"]))) == 2


def test_many_rows_of_a_batch_are_sorted_as_few_are() -> None:
    items = [digest(number)[:ITEM_LENGTH] for number in range(MANY_ITEMS)]
    batch = AuditBatch(table="bars", items="".join(items))
    assert batch.as_json() == {"table": "bars", "items": "".join(sorted(items))}


@pytest.mark.parametrize("text", ["", "1", "x:" + "0" * 64, "1:" + "0" * 63, "1:" + "G" * 64, "²:" + "0" * 64])
def test_a_text_that_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="not a chain head"):
        parse_head(text)
