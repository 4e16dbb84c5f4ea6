"""Recent trades and open positions in a prompt."""

import random
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.errors import Invalid
from backsight.core.prompts.sections import CEILINGS
from backsight.core.prompts.trades import ClosedLine, closed_line, open_line, open_positions, recent_trades
from backsight.core.trades.trade import Entry
from core.prompts.test_sections import CLOSED_LINES, MINUTE, NOW, TEN, a_trade, an_open_trade, closed, opened


def test_recent_trades_have_their_layout_to_the_byte() -> None:
    short = a_trade(
        id="b",
        symbol="ETH",
        direction="short",
        opened_at=TEN - 105 * MINUTE,
        closed_at=TEN - 60 * MINUTE,
        entry_price=3_420.0,
        exit_price=3_455.0,
        size=1_800 / 3_420,
        pnl=-18.42,
        entry=Entry(reason="funding extreme, mean-revert"),
    )
    section = recent_trades([closed_line(trade, currency="USD") for trade in (short, a_trade())])
    assert section.text == (
        "## Recent trades on this strategy (closed)\n"
        "- 2026-06-04T10:00 → 12:30 BTC long $2,500 65,200 → 65,940 +$28.37 (+1.1%) 150m regime=trend_up_lowvol"
        ' "breakout above prior swing high"\n'
        "- 2026-06-04T08:15 → 09:00 ETH short $1,800 3,420 → 3,455 -$18.42 (-1.0%) 45m"
        ' "funding extreme, mean-revert"'
    )


def test_open_positions_have_their_layout_to_the_byte() -> None:
    assert open_positions([opened()]).text == (
        "## Open positions (memory view)\n"
        '- ETH long $2,000 @ 3,410 mark=3,438 MFE=+$22 / MAE=-$8 held 30m "BB lower-band bounce"'
    )


def test_trades_come_by_entry_the_latest_first_and_ties_by_id() -> None:
    lines = [closed(2), closed(1), closed(3, opened_at=TEN + MINUTE), closed(4, opened_at=None)]
    labelled = [replace(line, reason=line.id) for line in lines]
    order = re.findall(r'"(trade-\d+)"', recent_trades(labelled).text)
    assert order == ["trade-004", "trade-003", "trade-001", "trade-002"]


def test_the_order_in_which_rows_come_does_not_matter() -> None:
    lines = [closed(n, opened_at=TEN - n % 7 * MINUTE) for n in range(30)]
    shuffled = random.Random(7).sample(lines, len(lines))
    assert recent_trades(shuffled, k=30).text == recent_trades(lines, k=30).text


def test_trades_that_do_not_fit_are_counted() -> None:
    section = recent_trades([closed(n) for n in range(30)], k=30)
    rows = section.text.count("\n- ")
    assert section.left_out == 30 - rows
    assert 10 <= rows < 30
    assert section.text.endswith(f"\n… {section.left_out} more")


@pytest.mark.parametrize("k", [-1, 31])
def test_more_than_thirty_trades_are_refused(k: int) -> None:
    with pytest.raises(Invalid, match=r"recent_trades_k: -?\d+ is out of range; give 0 to 30"):
        recent_trades([], k=k)


def test_unknown_values_are_left_out() -> None:
    bare = closed(opened_at=None, notional=None, minutes=None, regime=None, reason=" ", pnl=None, exit_price=None)
    assert recent_trades([bare]).text.splitlines()[1] == "- ? → 2026-06-04T12:30 BTC long 65,200 → ? ?"
    unseen = open_line(an_open_trade(open_size=0.0), None, now=NOW, currency=None)
    assert open_positions([unseen]).text.splitlines()[1] == '- ETH long @ 3,410 held 30m "BB lower-band bounce"'


def test_another_day_and_another_currency_are_spelt_out() -> None:
    line = closed(closed_at=TEN + timedelta(days=2), minutes=2_880.0, currency="EUR")
    assert (
        recent_trades([line])
        .text.splitlines()[1]
        .startswith("- 2026-06-04T10:00 → 2026-06-06T10:00 BTC long 2,500 EUR 65,200 → 65,940 +28.37 EUR (+1.1%) 48h")
    )


@given(st.lists(CLOSED_LINES, min_size=1, max_size=3))
def test_a_reason_stays_inside_its_quote(lines: list[ClosedLine]) -> None:
    text = recent_trades([replace(line, symbol="BTC", currency="USD") for line in lines]).text
    rows = [line for line in text.split("\n") if line.startswith("- ")]
    assert all(re.fullmatch(r'[^"]*(?:"(?:[^"\\]|\\.)*")?', row) for row in rows)


@pytest.mark.parametrize("stored", [10, 1_000, 100_000])
def test_history_grows_and_the_section_does_not(stored: int) -> None:
    line = closed()
    assert recent_trades([line] * stored, k=30).tokens <= CEILINGS["recent_trades"]
