"""Recent trades and open positions in a prompt."""

import random
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.errors import Invalid
from backsight.core.prompts.sections import CEILINGS
from backsight.core.prompts.trades import (
    ROW_TOKENS,
    ClosedLine,
    closed_line,
    open_line,
    open_positions,
    recent_trades,
    row_numbers,
)
from backsight.core.trades.trade import Entry, Outcome
from core.prompts.test_sections import CLOSED_LINES, MINUTE, NOW, TEN, a_trade, an_open_trade, closed, opened, tokens


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
        outcome=Outcome(value=-0.0102, unit="pct"),
        entry=Entry(reason="funding extreme, mean-revert"),
        exit_reason="funding is back to normal",
    )
    section = recent_trades([closed_line(trade, currency="USD") for trade in (short, a_trade())], now=NOW)
    assert section.text == (
        "## Recent trades on this strategy (closed)\n"
        '- #1 06-04 12:30 BTC long +0.8R +$28.37 2h 30m trend_up_lowvol "breakout above prior swing high", target hit\n'
        '- #2 06-04 09:00 ETH short $1,800 -$18.42 (-1.0%) 45m "funding extreme, mean-revert",'
        ' exit "funding is back to normal"'
    )


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("stop_loss", "stopped out"),
        ("take_profit", "target hit"),
        ("liquidated", "liquidated"),
        ("external_flatten", "closed by command"),
        ("unexplained", "exit unexplained"),
        ("range broke", 'exit "range broke"'),
    ],
)
def test_a_row_says_how_its_trade_ended(reason: str, words: str) -> None:
    row = recent_trades([closed(exit_reason=reason)], now=NOW).text.splitlines()[1]
    assert row.endswith(f", {words}")


def test_a_trade_of_long_ago_is_shown_with_its_year() -> None:
    row = recent_trades([closed(closed_at=TEN - timedelta(days=400))], now=NOW).text.splitlines()[1]
    assert row.startswith("- #1 2025-04-30 BTC long")


def test_the_rows_that_are_shown_have_numbers() -> None:
    lines = [closed(n, closed_at=TEN - n * MINUTE) for n in range(30)]
    section = recent_trades(lines, now=NOW, k=30)
    numbers = row_numbers(section, lines)
    assert len(numbers) == len(section.rows) < 30
    assert (numbers["trade-000"], numbers["trade-004"]) == (1, 5)


def test_open_positions_have_their_layout_to_the_byte() -> None:
    assert open_positions([opened()]).text == (
        "## Open positions (memory view)\n"
        '- ETH long $2,000 @ 3,410 mark=3,438 MFE=+$22 / MAE=-$8 held 30m "BB lower-band bounce"'
    )


def test_trades_come_by_exit_the_latest_first_and_ties_by_id() -> None:
    exit_at = closed(1).closed_at or TEN
    lines = [closed(2), closed(1), closed(3, closed_at=exit_at + MINUTE), closed(4, closed_at=exit_at + 2 * MINUTE)]
    labelled = [replace(line, reason=line.id) for line in lines]
    order = re.findall(r'"(trade-\d+)"', recent_trades(labelled, now=NOW).text)
    assert order == ["trade-004", "trade-003", "trade-001", "trade-002"]


def test_the_order_in_which_rows_come_does_not_matter() -> None:
    lines = [closed(n, closed_at=TEN - n % 7 * MINUTE) for n in range(30)]
    shuffled = random.Random(7).sample(lines, len(lines))
    assert recent_trades(shuffled, now=NOW, k=30).text == recent_trades(lines, now=NOW, k=30).text


def test_trades_that_do_not_fit_are_counted() -> None:
    section = recent_trades([closed(n) for n in range(30)], now=NOW, k=30)
    rows = section.text.count("\n- ")
    assert section.left_out == 30 - rows
    assert 15 <= rows < 30
    assert section.text.endswith(f"\n… {section.left_out} more")


@pytest.mark.parametrize("k", [-1, 31])
def test_more_than_thirty_trades_are_refused(k: int) -> None:
    with pytest.raises(Invalid, match=r"recent_trades_k: -?\d+ is out of range; give 0 to 30"):
        recent_trades([], now=NOW, k=k)


def test_unknown_values_are_left_out() -> None:
    unknown: dict[str, Any] = dict.fromkeys(("opened_at", "notional", "minutes", "regime", "pnl", "outcome"))
    bare = replace(closed(reason=" ", exit_reason=None), **unknown)
    assert recent_trades([bare], now=NOW).text.splitlines()[1] == "- #1 06-04 12:30 BTC long ?"
    unseen = open_line(an_open_trade(open_size=0.0), None, now=NOW, currency=None)
    assert open_positions([unseen]).text.splitlines()[1] == '- ETH long @ 3,410 held 30m "BB lower-band bounce"'


def test_another_currency_is_spelt_out() -> None:
    line = closed(minutes=2_880.0, currency="EUR")
    row = recent_trades([line], now=NOW).text.splitlines()[1]
    assert row.startswith("- #1 06-04 12:30 BTC long +0.8R +28.37 EUR 2d trend_up_lowvol")


@given(st.lists(CLOSED_LINES, min_size=1, max_size=3))
def test_a_reason_stays_inside_its_quote(lines: list[ClosedLine]) -> None:
    text = recent_trades([replace(line, symbol="BTC", currency="USD") for line in lines], now=NOW).text
    rows = [line for line in text.split("\n") if line.startswith("- ")]
    assert all(re.fullmatch(r'[^"]*(?:"(?:[^"\\]|\\.)*"[^"]*){0,2}', row) for row in rows)


@given(st.lists(CLOSED_LINES, min_size=1, max_size=5))
def test_a_row_stays_below_its_ceiling_whatever_is_written_in_it(lines: list[ClosedLine]) -> None:
    section = recent_trades(lines, now=NOW, k=30)
    assert len(section.rows) == len(lines)
    assert max(tokens(f"{row.text}\n") for row in section.rows) <= ROW_TOKENS[0]


def test_reasons_are_cut_only_where_the_section_would_overflow() -> None:
    long = "fade of the third push into resistance, delta diverges, range held"
    ten, thirty = (
        recent_trades([closed(n, reason=long, exit_reason="thesis gone") for n in range(count)], now=NOW, k=30)
        for count in (10, 30)
    )
    assert (ten.text.count(long), ten.left_out) == (10, 0)
    assert long not in thirty.text
    assert thirty.left_out > 0


def test_an_open_position_shows_its_result_its_levels_and_its_excursions() -> None:
    line = replace(opened(), result_r=0.42, stop_price=3_380.0, target_price=3_500.0)
    assert open_positions([line]).text.split("\n")[1] == (
        "- ETH long $2,000 @ 3,410 mark=3,438 now +0.42R stop=3,380 target=3,500 MFE=+$22 / MAE=-$8 held 30m"
        ' "BB lower-band bounce"'
    )
    many = [replace(line, id=str(n), reason="the range held twice and sellers are trapped " * 3) for n in range(2)]
    assert open_positions(many).left_out == 0, "the reasons are cut first"


@pytest.mark.parametrize("stored", [10, 1_000, 100_000])
def test_history_grows_and_the_section_does_not(stored: int) -> None:
    line = closed()
    assert recent_trades([line] * stored, now=NOW, k=30).tokens <= CEILINGS["recent_trades"]
