"""Reviews of a period: its bounds, figures and report."""

from datetime import UTC, datetime

import pytest

from backsight.core.reflection.periods import Period
from backsight.core.reflection.reviews import (
    PeriodRecord,
    best_and_worst,
    period_start,
    render_review,
    summarise_trades,
)
from core.reflection.test_evidence_view import NOON, evidence


@pytest.mark.parametrize(
    ("period", "began"),
    [("daily", "2026-06-03"), ("weekly", "2026-05-28"), ("monthly", "2026-05-04")],
)
def test_a_period_begins_so_long_before_its_end(period: Period, began: str) -> None:
    assert period_start(period, NOON).isoformat() == f"{began}T12:00:00+00:00"


def test_a_month_before_january_is_december() -> None:
    assert period_start("monthly", datetime(2026, 1, 31, tzinfo=UTC)) == datetime(2025, 12, 31, tzinfo=UTC)


def test_of_no_trades_there_is_no_rate_and_no_best() -> None:
    assert (summarise_trades([]).win_rate, summarise_trades([]).win_rate_interval, best_and_worst([])) == (
        None,
        None,
        ((), ()),
    )


def test_a_name_cannot_open_markup_in_a_report() -> None:
    text = render_review(
        PeriodRecord(
            deployment="a\n# b|<c>",
            mode="live",
            currency="USD",
            period="daily",
            start=NOON,
            end=NOON,
            trades=(),
            evidence=evidence(),
            drift=(),
            lessons=None,
            reflections=(),
        )
    )
    assert text.startswith("# Daily review: a \\# b\\|\\<c\\>\n")
