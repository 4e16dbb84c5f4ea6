"""Cron expressions fire when cron would, and one that never fires is refused."""

from datetime import UTC, datetime

import pytest

from backsight.core.agents.cron import parse_cron
from backsight.core.errors import Invalid

NOW = datetime(2026, 6, 4, 10, 7, 30, tzinfo=UTC)  # a Thursday


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", "2026-06-04T10:08"),
        ("*/15 * * * *", "2026-06-04T10:15"),
        ("7 10 * * *", "2026-06-05T10:07"),
        ("0 9-17/4 * * mon-fri", "2026-06-04T13:00"),
        ("0 0 1 jan *", "2027-01-01T00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
        ("0 0 * * 7", "2026-06-07T00:00"),
        ("0 0 13 * fri", "2026-06-05T00:00"),
        ("@daily", "2026-06-05T00:00"),
        ("@yearly", "2027-01-01T00:00"),
        ("0 0 * * sat-sun", "2026-06-06T00:00"),
        ("0 0 * * mon-sun", "2026-06-05T00:00"),
        ("5/20 * * * *", "2026-06-04T10:25"),
    ],
)
def test_the_next_instant_is_the_one_that_cron_has(text: str, expected: str) -> None:
    due = parse_cron(text, now=NOW).next_after(NOW)
    assert due is not None
    assert due.isoformat()[:16] == expected


@pytest.mark.parametrize(
    "text",
    ["", "* * * *", "60 * * * *", "* * 0 * *", "5-1 * * * *", "*/0 * * * *", "x * * * *", "* * * 13 *", "1,, * * * *"],
)
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="schedule: "):
        parse_cron(text)


@pytest.mark.parametrize("text", ["0 0 31 2 *", "0 0 30 feb *", "0 0 31 4,6,9,11 *"])
def test_an_expression_that_never_fires_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="never fires"):
        parse_cron(text, now=NOW)
