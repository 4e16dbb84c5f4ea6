"""What agents read over a simulated year: true at its instant, complete, in one voice, and within its ceilings."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module

import pytest

from backsight.core.prompts.amounts import price
from backsight.core.prompts.sections import CEILINGS, FURTHER_SYMBOL
from prompt_years import MARKETS, PromptOfTick, prompts_of_a_period

TWO, SIX = tuple(MARKETS)[:2], tuple(MARKETS)
PERIODS = [
    pytest.param(TWO, 45, id="two markets"),
    pytest.param(SIX, 21, id="six markets"),
    pytest.param(TWO, 364, id="two markets, a year", marks=pytest.mark.slow),
    pytest.param(SIX, 364, id="six markets, a year", marks=pytest.mark.slow),
]
RECOMMENDATION = re.compile(r"no recommendation|no edge|not now|risk \d[\d.]*% of equity")
SIMILAR = re.compile(r"^- (nearest|warning|nearest and warning): ")
BLOCK_ROW = re.compile(r"^- (?P<symbol>\S+) (?P<direction>long|short): (?P<rest>.*)$")
MOST_MEMORY = {2: 2_300, 6: 3_100}
"""The most tokens of all sections of memory, by the number of markets."""


@cache
def prompts(symbols: tuple[str, ...], days: int) -> tuple[PromptOfTick, ...]:
    return tuple(prompts_of_a_period(symbols, days=days))


@cache
def tokenizers() -> Sequence[object]:
    openai = import_module("rs_bpe.bpe").openai  # no stubs, so not imported by name
    return openai.cl100k_base(), openai.o200k_base()


def tokens(text: str) -> int:
    return max(int(tokenizer.count(text)) for tokenizer in tokenizers())  # type: ignore[attr-defined]


def blocks_of(prompt: PromptOfTick) -> dict[str, list[str]]:
    """The rows of each symbol's block."""
    blocks: dict[str, list[str]] = {}
    symbol = ""
    for row in prompt.section("what_usually_happens"):
        if match := BLOCK_ROW.match(row):
            symbol = match["symbol"]
        if symbol:
            blocks.setdefault(symbol, []).append(row)
    return blocks


def positions_in(prompt: PromptOfTick) -> Iterator[str]:
    return (row for row in prompt.section("open_positions") if row.startswith("- "))


@pytest.mark.parametrize(("symbols", "days"), PERIODS)
def test_the_open_positions_are_those_of_the_broker_at_its_marks(symbols: tuple[str, ...], days: int) -> None:
    for prompt in prompts(symbols, days):
        rows = list(positions_in(prompt))
        expected = {f"- {each.symbol} {each.direction} " for each in prompt.portfolio.positions}
        shown = {" ".join(row.split(" ")[:3]) + " " for row in rows}
        assert shown <= expected, prompt.opened.at
        left_out = any(row.startswith("… ") for row in prompt.section("open_positions"))
        assert shown == expected or left_out, prompt.opened.at
        for position in prompt.portfolio.positions:
            row = next((row for row in rows if row.startswith(f"- {position.symbol} ")), None)
            assert row is None or f"mark={price(position.mark)} " in f"{row} ", prompt.opened.at


@pytest.mark.parametrize(("symbols", "days"), PERIODS)
def test_a_position_that_is_better_than_its_entry_has_an_excursion(symbols: tuple[str, ...], days: int) -> None:
    for prompt in prompts(symbols, days):
        for position in prompt.portfolio.positions:
            gain = position.signed_size * (position.mark - (position.average_price or position.mark))
            row = next((row for row in positions_in(prompt) if row.startswith(f"- {position.symbol} ")), "")
            assert gain <= 1 or "MFE=$0" not in row, prompt.opened.at


@pytest.mark.parametrize(("symbols", "days"), PERIODS)
def test_a_position_that_was_closed_since_the_last_tick_is_the_first_recent_trade(
    symbols: tuple[str, ...], days: int
) -> None:
    stopped = 0
    for former, prompt in zip(prompts(symbols, days), prompts(symbols, days)[1:], strict=False):
        symbols_before = {each.symbol for each in former.portfolio.positions}
        gone = symbols_before - {each.symbol for each in prompt.portfolio.positions}
        rows = [row for row in prompt.section("recent_trades") if row.startswith("- #")]
        assert all(any(f" {symbol} " in row for row in rows[: len(gone) + 2]) for symbol in gone), prompt.opened.at
        stopped += len(gone)
    assert stopped > 5


@pytest.mark.parametrize(("symbols", "days"), PERIODS)
def test_every_direction_has_one_expectation_that_does_not_contradict_its_recommendation(
    symbols: tuple[str, ...], days: int
) -> None:
    expected = {(symbol, direction) for symbol in symbols for direction in ("long", "short")}
    kinds: set[str] = set()
    for prompt in prompts(symbols, days):
        block = prompt.section("what_usually_happens")
        rows = [match for row in block if (match := BLOCK_ROW.match(row))]
        has_trades = not any(row.startswith("- no closed trades") for row in block)
        assert not block or {(row["symbol"], row["direction"]) for row in rows} == (expected if has_trades else set())
        for row in rows:
            figures, kind = row["rest"], RECOMMENDATION.findall(row["rest"])
            assert len(kind) == 1, row.group()
            assert not re.search(r"risk 0(\.0+)?% of equity", figures), row.group()
            means = re.findall(r"([+-]?[\d.]+)R expected", figures)
            assert len(means) <= 1, row.group()
            sign = float(means[0]) if means else 0.0
            assert not (kind[0] == "no edge" and sign > 0), row.group()
            assert not (kind[0].startswith("risk") and sign < 0), row.group()
            kinds.add(kind[0].split(" ")[0])
    assert "no" in kinds


@pytest.mark.parametrize(("symbols", "days"), PERIODS)
def test_every_symbol_has_a_similar_trade_and_a_warning_wherever_there_is_one(
    symbols: tuple[str, ...], days: int
) -> None:
    traded: set[str] = set()
    for former, prompt in zip(prompts(symbols, days), prompts(symbols, days)[1:], strict=False):
        traded |= {row.split(" ")[4] for row in former.section("recent_trades") if row.startswith("- #")}
        blocks = blocks_of(prompt)
        assert not traded or blocks, prompt.opened.at
        for symbol, rows in blocks.items():
            losses = [row for row in rows if re.search(r" (long|short) -\d", row)]
            assert symbol not in traded or any(SIMILAR.match(row) for row in rows), (prompt.opened.at, symbol)
            has_lost = re.search(rf"{re.escape(symbol)} (long|short) -\d", "\n".join(former.section("recent_trades")))
            assert not has_lost or losses, (prompt.opened.at, symbol)


@pytest.mark.parametrize(("symbols", "days"), PERIODS)
def test_every_plan_line_names_its_symbol_and_its_condition(symbols: tuple[str, ...], days: int) -> None:
    lines = [row for prompt in prompts(symbols, days) for row in prompt.section("plans") if row.startswith("- ")]
    assert lines
    for line in lines:
        assert re.match(r"- (every symbol|XAUUSD|BTC/USDT) (on|with|in|while|when|at) .*: ", line), line
        assert "{" not in line, line


@pytest.mark.parametrize(("symbols", "days"), PERIODS)
def test_a_figure_of_the_state_is_the_same_in_every_section(symbols: tuple[str, ...], days: int) -> None:
    streaks = 0
    for prompt in prompts(symbols, days):
        counts = set(re.findall(r"\b(\d+) loss(?:es)? in a row", "\n".join(prompt.section("state"))))
        counts |= set(re.findall(r"now (\d+) loss(?:es)? in a row", "\n".join(prompt.section("plans"))))
        assert len(counts) <= 1, prompt.opened.text
        streaks += len(counts)
    assert streaks


@pytest.mark.parametrize(("symbols", "days"), PERIODS)
def test_no_figure_is_written_as_machines_do(symbols: tuple[str, ...], days: int) -> None:
    for prompt in prompts(symbols, days):
        assert not re.search(r"\d[eE][+-]\d|-0%|\bnan\b|\binf\b", prompt.opened.text), prompt.opened.at


@pytest.mark.parametrize(("symbols", "days"), PERIODS)
def test_every_ceiling_holds_by_real_tokenizers(symbols: tuple[str, ...], days: int) -> None:
    further = FURTHER_SYMBOL * (len(symbols) - 1)
    for prompt in prompts(symbols, days)[:: 1 if days < 100 else 7]:
        for segment in prompt.opened.memory:
            ceiling = CEILINGS[segment.name] + (further if segment.name == "what_usually_happens" else 0)
            assert tokens(segment.text) <= ceiling, segment.text
        assert tokens("\n\n".join(segment.text for segment in prompt.opened.memory)) <= MOST_MEMORY[len(symbols)]
