"""What usually happens with a symbol, in a prompt."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from backsight.core.context import ContextVector
from backsight.core.prompts.sections import symbols_ceiling
from backsight.core.prompts.symbol_memory import (
    SymbolMemory,
    chosen_episodes,
    recalled_line,
    recommendation,
    what_usually_happens,
)
from backsight.core.recall.score import Situation
from backsight.core.recall.won_counts import AllTrades, WonCount
from backsight.core.recommended_size import OpenRisk, PositionSize
from backsight.core.sizing import position_size
from backsight.core.trades.trade import Entry
from backsight.testing import an_episode
from backsight.testing.recall import rank_plainly
from core.prompts.test_sections import NOW, REASONS, a_recalled_line, a_size, a_trade, an_outlook, tokens

RANGING = ContextVector(regime="ranging", volatility_regime="normal", session="overlap", atr_d1=1_830.0, price=65_200.0)


def test_what_usually_happens_has_its_layout_to_the_byte() -> None:
    episodes = [
        an_episode(1, pnl_r=3.0, symbol="BTC", known_at=NOW - timedelta(days=12)),
        an_episode(2, pnl_r=-1.1, symbol="BTC", known_at=NOW - timedelta(days=33), reflection="chased the candle"),
    ]
    won = a_trade(outcome=None, mfe_r=3.4, mae_r=-0.44)
    lost = a_trade(pnl=-30.0, holding_minutes=120.0, mfe_r=0.21, entry=Entry(), exit_reason="stop_loss")
    ranked = rank_plainly(episodes, Situation(symbol="BTC"), now=NOW, limit=1)
    (nearest,), (warning,) = chosen_episodes(ranked.nearest, ranked.warnings)
    unsure = a_size("no_recommendation", n=130, mean=-0.05, deviation=0.1)
    memory = SymbolMemory(
        symbol="BTC",
        context=RANGING,
        trades=AllTrades(won=60, n=130, unknown=4),
        outlooks=(
            an_outlook(),
            an_outlook(direction="short", counts=(WonCount(won=0, n=0, categories={}),), size=unsure),
        ),
        nearest=(recalled_line(nearest, won, row=3),),
        warnings=(recalled_line(warning, lost),),
    )
    assert what_usually_happens([memory, SymbolMemory(symbol="ETH", trades=memory.trades)]).text == (
        "## What usually happens here\n"
        "- all trades: 60 of 130 won; R is unknown for 4 more\n"
        "- BTC now: ranging, normal volatility, London and New York overlap, daily ATR 1,830 = 2.8% of price\n"
        "- BTC long: +0.21R expected (+0.03 to +0.39R), 40 of 71 won, 27 of 44 in markets trending up: risk 0.8% of"
        " equity\n"
        "- BTC short: -0.05R expected (-0.21 to +0.11R), never traded: no recommendation (too unsure): your strategy's"
        " own risk applies\n"
        "- nearest: 2026-05-23 long +3.0R (#3), target hit after 2h 30m, never below -0.4R:"
        ' "breakout above prior swing high"\n'
        '- warning: 2026-05-02 long -1.1R, stopped out after 2h, never above +0.2R: "chased the candle"'
    )


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (a_size("sized", 0.004), "risk 0.4% of equity"),
        (
            a_size("sized", 0.004, open_risk=OpenRisk(share=0.01)),
            "risk 0.4% of equity (1% is already at risk on this signal)",
        ),
        (
            a_size("no_recommendation", n=3),
            "no recommendation (3 trades; 10 are needed): your strategy's own risk applies",
        ),
        (
            a_size("no_recommendation", n=3, unknown=9),
            "no recommendation (3 trades with a result in R; 10 are needed): your strategy's own risk applies",
        ),
        (
            a_size("no_recommendation", mean=None),
            "no recommendation (results of losing trades are missing): your strategy's own risk applies",
        ),
        (
            a_size("no_edge", p_above_zero=0.03),
            "no edge seen here: the expected result is below 0 (97% sure)",
        ),
        (a_size("not_now", open_risk=OpenRisk(share=0.01)), "not now: 1% is already at risk on this signal"),
        (a_size("not_now", risk_appetite=0.0), "not now: the risk appetite is 0"),
    ],
)
def test_a_recommendation_is_one_of_four_kinds_in_words(size: PositionSize, words: str) -> None:
    assert recommendation(size) == words


def test_before_any_trade_there_is_no_recommendation_and_the_market_is_named() -> None:
    text = what_usually_happens([SymbolMemory(symbol="BTC", context=ContextVector(session="asia"))]).text
    assert text.split("\n")[1:] == [
        "- no closed trades yet: no recommendation, your strategy's own risk applies",
        "- BTC now: Asian session",
    ]


def test_before_ten_results_nothing_is_expected() -> None:
    few = position_size([])
    outlook = an_outlook(counts=(WonCount(won=1, n=3, categories={}),), size=replace(few, n=3))
    assert outlook.text() == (
        "long: 1 of 3 won: no recommendation (3 trades; 10 are needed): your strategy's own risk applies"
    )


def test_a_warning_is_shown_wherever_there_is_one() -> None:
    losses = [an_episode(n, pnl_r=-1.0, symbol="BTC", known_at=NOW - timedelta(days=n)) for n in range(1, 9)]
    ranked = rank_plainly(losses, Situation(symbol="BTC"), now=NOW, limit=5)
    nearest, warnings = chosen_episodes(ranked.nearest, ranked.warnings)
    assert nearest[0].id == ranked.nearest[0].id
    assert warnings
    assert not {memory.id for memory in nearest} & {memory.id for memory in warnings}
    unlike = [replace(memory, factors=replace(memory.factors, Sim=0.2)) for memory in ranked.nearest]
    assert chosen_episodes(unlike, unlike[1:]) == ([unlike[0]], [unlike[1]])
    (one,) = rank_plainly(losses[:1], Situation(symbol="BTC"), now=NOW, limit=5).nearest
    line = recalled_line(one, None)
    text = what_usually_happens([SymbolMemory(symbol="BTC", nearest=(line,))]).text
    assert "- nearest and warning: 2026-06-03 long -1.0R" in text


@pytest.mark.parametrize("symbols", [1, 2, 6])
def test_each_symbol_has_its_directions_a_similar_trade_and_a_warning_in_the_agents_words(symbols: int) -> None:
    """The longest lines that figures and words of a usual length make."""
    sizes = [a_size("no_edge", p_above_zero=0.03, mean=-0.21), a_size("no_recommendation", n=130, deviation=0.4)]
    counts = WonCount(won=20, n=41, categories={}), WonCount(won=12, n=29, categories={"regime": "ranging"})
    memories = []
    for number, symbol in enumerate(["XAUUSD", "BTCUSDT", "EURUSD", "ETHUSDT", "NVDA", "SOLUSDT"][:symbols]):
        said = [a_recalled_line(
            id=f"{symbol} {kind}", symbol=symbol, result="-1.1R", row=7 + kind, hold="17h 20m",
            setup=REASONS[number + kind],
            exit_reason="stop_loss" if kind else "no follow-through after the session change, thesis gone",
            reach=", never above +0.2R") for kind in (0, 1)]  # fmt: skip
        memories.append(
            SymbolMemory(
                symbol=symbol,
                context=RANGING,
                trades=AllTrades(won=60, n=130),
                outlooks=tuple(
                    an_outlook(direction=way, counts=counts, size=size)
                    for way, size in zip(("long", "short"), sizes, strict=True)
                ),
                nearest=(said[0],) * 3,
                warnings=(said[1],) * 3,
            )
        )
    section = what_usually_happens(memories, others=("DOGE", "AVAX"))
    text = section.text
    assert tokens(text) <= section.tokens <= symbols_ceiling(symbols)
    lines = text.split("\n")
    for memory in memories:
        start = lines.index(next(line for line in lines if line.startswith(f"- {memory.symbol} now: ")))
        block = lines[start : start + 6]
        assert [line.split(":")[0].split()[-1] for line in block[1:3]] == ["long", "short"]
        for label in ("nearest", "warning"):
            assert any(re.match(rf'- {label}: \S+ long -1.1R \(#\d\), .* after 17h 20m.*: "\w', line) for line in block)
    assert "- without a block here, since more than 6 may be traded: DOGE, AVAX" in lines
    assert {row.id for row in section.rows if row.id} >= {f"{each.symbol} 0" for each in memories}
