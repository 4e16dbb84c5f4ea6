"""Answers on a terminal: every operation's answer is readable, and none prints Python syntax."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from backsight.answers.blocks import Block, Body, Each, Line, Rows, Values
from backsight.core.errors import BacksightError
from backsight.core.trades.trade import Outcome
from backsight.memory import OPERATIONS, open_memory
from backsight.surfaces.tables import show, show_part, show_record
from backsight.testing import FakeClock
from parity.surfaces import SURFACES, Call
from parity.test_parity import played

PYTHON_SYNTAX = re.compile(r"[A-Z]\w*\(\w+=|datetime\.datetime\(|\bNone\b(?!\.)|\bTrue\b|\bFalse\b|\['|\('|\{'")
"""Representations of dataclasses, times, None, booleans, lists, tuples and dictionaries."""


@dataclass(frozen=True)
class Fill:
    symbol: str
    size: float
    at: datetime
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Report:
    message: str
    replayed: bool
    total: float
    last: Fill
    fills: tuple[Fill, ...]
    note: str | None = None


AT = datetime(2026, 6, 4, 11, 30, tzinfo=timezone(timedelta(hours=2)))
FILLS = (Fill("BTC", 1_234.5, AT, Outcome(value=-1.0, unit="R")), Fill("ETH", 7.0, AT))
REPORT = Report(message="Done.", replayed=False, total=10.0, last=FILLS[1], fills=FILLS)


def printed(print_to: Any, *arguments: Any) -> str:
    page = StringIO()
    print_to(Console(file=page, width=120, highlight=False), *arguments)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines())


@dataclass(frozen=True)
class Quote:
    price: float


def shown_by(block: Block, *, width: int, terminal: bool = True) -> str:
    text = StringIO()
    to = Console(file=text, width=width, force_terminal=terminal, color_system=None)
    for part in block.parts(Quote(1.0)):
        show_part(to, part)
    return text.getvalue()


def test_numbers_of_a_column_align_on_the_point() -> None:
    rows = Rows(lambda _: (Quote(2754.5), Quote(27.0), Quote(2.25)), {">price": "{price:price}"})
    assert shown_by(rows, width=80).splitlines() == ["  price", "2754.5 ", "  27   ", "   2.25"]


def test_a_text_is_broken_between_words_on_a_terminal_and_not_in_a_file() -> None:
    body = Body("price", lambda _: "one two three four")
    assert [line.rstrip() for line in shown_by(body, width=10).splitlines()] == ["one two", "three four"]
    assert shown_by(body, width=10, terminal=False) == "one two three four\n"


def test_the_default_prints_values_then_nested_records_then_tables() -> None:
    assert printed(show_record, REPORT) == (
        "Done.\n"
        "total  10\n"
        "last\n"
        "  symbol  ETH\n"
        "  size    7\n"
        "  at      2026-06-04 09:30\n"
        "fills\n"
        "  symbol     size  at                outcome\n"
        "  BTC     1,234.5  2026-06-04 09:30  -1.00R\n"
        "  ETH           7  2026-06-04 09:30"
    )


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (Line("{total:.2f} in {last.symbol}"), "10.00 in ETH"),
        (Line("{note}"), ""),
        (Line("replayed", when="replayed"), ""),
        (Each("fills", "{symbol} {outcome}"), "BTC -1.00R"),
        (Each("fills", "{symbol}", most=1), "BTC"),
        (Rows("fills", {"symbol": "{symbol}", ">size": "{size:.0f}"}), "symbol  size\nBTC     1234\nETH        7"),
        (Rows("fills", {"~>size": "{size:.0f}", "at": "{at:%H:%M}"}), "size  at\n1234  11:30\n   7  11:30"),
        (Rows("note", {"note": "{}"}), ""),
        (Rows("last", {"symbol": "{symbol}", "outcome": "{outcome}"}), "symbol\nETH"),
        (Values("last", {"a": "{symbol}", "long label": "{size}", "b": "{outcome}"}), "a           ETH\nlong label  7"),
    ],
)
def test_a_block_leaves_out_unknown_values(block: Block, text: str) -> None:
    def show_block(to: Console) -> None:
        for part in block.parts(REPORT):
            show_part(to, part)

    assert printed(show_block) == text


WIDE = Rows(
    "fills",
    {
        "closed": "{at}",
        "symbol": "{symbol}",
        "strategy": lambda _: "VolatilityBreakout",
        ">size": "{size:.2f}",
        "~session": lambda fill: f"session of {fill.symbol}",
        "reason": lambda fill: f"{fill.symbol} broke out of a narrow range in a quiet hour",
        "id": lambda fill: f"2bc9c4{fill.symbol}",
    },
)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_table_gives_columns_up_before_it_breaks_a_word(width: int) -> None:
    page = StringIO()
    (part,) = WIDE.parts(REPORT)
    show_part(Console(file=page, width=width, highlight=False), part)
    text = page.getvalue()
    table = [line for line in text.splitlines() if not line.startswith(("All rows", "Not shown"))]
    assert max(len(line.rstrip()) for line in table) <= width
    for word in ("2026-06-04 09:30", "2bc9c4BTC", "2bc9c4ETH", "VolatilityBreakout"):
        assert word in text, text
    assert ("All rows: strategy VolatilityBreakout" in text) == (width < 120)
    assert ("Not shown in 60 columns: session" in text) == (width == 60)


def test_every_answer_of_the_parity_scenario_is_readable(tmp_path_factory: pytest.TempPathFactory) -> None:
    answers: list[tuple[str, Any]] = []

    @contextmanager
    def recording(url: str, clock: FakeClock) -> Iterator[Call]:
        with open_memory(url, owner="ana", clock=clock) as memory:

            def call(name: str, arguments: dict[str, Any]) -> Any:
                try:
                    answer = getattr(memory, name)(**arguments)
                except BacksightError as error:
                    return error.as_json()
                answers.append((name, answer))
                return OPERATIONS[name].as_json(answer)

            yield call

    SURFACES["recording"] = recording
    try:
        played("sqlite", tmp_path_factory, ["recording"], every_argument=True, mistaken_arguments=False)
    finally:
        del SURFACES["recording"]
    assert {name for name, _ in answers} == set(OPERATIONS)
    for name, answer in answers:
        text = printed(show, answer)
        assert text, name
        assert name == "export_audit" or not PYTHON_SYNTAX.search(text), f"{name}\n{text}"
        assert not PYTHON_SYNTAX.search(printed(show_record, answer)), name
