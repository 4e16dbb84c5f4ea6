"""Rows that are left out, counted by their reason."""

from pathlib import Path

import pytest

from backsight.core.errors import Invalid
from backsight.services.import_rows import REASONS, LeftOutCount


def test_rows_are_counted_by_reason_and_the_first_are_named() -> None:
    count = LeftOutCount()
    for number in range(5):
        count.add(number, "a deposit", broken=False)
    count.add(9, "at cannot be used", broken=True, detail="it is in the future")
    deposits, future = count.rows
    assert (deposits.rows, deposits.first[0], len(deposits.first)) == (5, "line 0: a deposit", 3)
    assert (future.first, count.total) == (("line 9: it is in the future",), 6)
    with pytest.raises(Invalid, match=r"file.csv: 1 row cannot be imported \(line 9: it is in the future\)"):
        count.refuse_broken(Path("file.csv"))


def test_endless_reasons_are_counted_together() -> None:
    count = LeftOutCount()
    for number in range(2 * REASONS):
        count.add(number, f"reason {number}", broken=False)
    assert (len(count.rows), count.rows[-1].reason, count.total) == (REASONS + 1, "other reasons", 2 * REASONS)
    count.refuse_broken(Path("file.csv"))
