"""What usually happened with a symbol, in a prompt."""

from dataclasses import replace
from datetime import timedelta

from backsight.core.prompts.symbol_memory import (
    SymbolMemory,
    chosen_episodes,
    rate_in_words,
    recalled_line,
    what_usually_happens,
)
from backsight.core.recall.score import Situation
from backsight.core.trades.trade import Entry
from backsight.testing import an_episode
from backsight.testing.recall import rank_plainly
from core.prompts.test_sections import NOW, a_base_rate, a_recalled_line, a_trade, an_outlook


def test_what_usually_happens_has_its_layout_to_the_byte() -> None:
    episodes = [
        an_episode(1, pnl_r=3.0, symbol="BTC", known_at=NOW - timedelta(days=12)),
        an_episode(2, pnl_r=-1.1, symbol="BTC", known_at=NOW - timedelta(days=33), reflection="chased the candle"),
    ]
    won = a_trade(outcome=None, mfe_r=3.4, mae_r=-0.44)
    lost = a_trade(pnl=-30.0, holding_minutes=120.0, mfe_r=0.21, entry=Entry(), exit_reason="stop_loss")
    ranked = rank_plainly(episodes, Situation(symbol="BTC"), now=NOW, limit=1)
    (nearest,), (warning,) = chosen_episodes(ranked.nearest, ranked.warnings)
    memory = SymbolMemory(
        symbol="BTC",
        outlooks=(an_outlook(), an_outlook(direction="short", base_rate=None, size=None)),
        nearest=(recalled_line(nearest, won, row=3),),
        warnings=(recalled_line(warning, lost),),
    )
    assert what_usually_happens([memory, SymbolMemory(symbol="ETH")]).text == (
        "## What usually happens here\n"
        "- BTC long: 44 trades in markets trending up: 61% won (likely 49 to 72%), mean +0.21R (likely +0.03 to"
        " +0.39R), worth about 38 independent trades. Risk 0.80% of equity. +0.19R a trade expected from"
        " 150 trades\n"
        "- BTC short: nothing remembered.\n"
        "- nearest: 2026-05-23 BTC long +3.0R (#3), target hit after 150m, never below -0.4R:"
        ' "breakout above prior swing high"\n'
        '- warning: 2026-05-02 BTC long -1.1R, stopped out after 120m, never above +0.2R: "chased the candle"\n'
        "- ETH: nothing remembered"
    )


def test_a_warning_that_is_also_nearest_is_shown_once_and_unlike_episodes_are_not() -> None:
    episodes = [an_episode(n, pnl_r=-1.0, symbol="BTC", known_at=NOW - timedelta(days=n)) for n in range(1, 9)]
    ranked = rank_plainly(episodes, Situation(symbol="BTC"), now=NOW, limit=5)
    nearest, warnings = chosen_episodes(ranked.nearest, ranked.warnings)
    assert len(nearest) == 3
    assert not {memory.id for memory in nearest} & {memory.id for memory in warnings}
    unlike = [replace(memory, factors=replace(memory.factors, Sim=0.2)) for memory in ranked.nearest]
    assert chosen_episodes(unlike, unlike) == ([], [])


def test_a_base_rate_says_of_which_trades_it_is() -> None:
    rate = a_base_rate()
    of_level = [rate_in_words(replace(rate, headline=level)).partition(":")[0] for level in rate.levels]
    assert of_level == [
        "44 trades in any symbol and direction",
        "44 trades in any symbol",
        "44 trades",
        "44 trades in markets trending up",
    ]
    assert rate_in_words(a_base_rate(n=1, effective_n=1.0)) == "1 trade in markets trending up, too little to say"
    assert rate_in_words(a_base_rate(open=2)).endswith("independent trades, with 2 open at the last mark")


def test_a_base_rate_that_is_broader_than_the_question_says_so() -> None:
    rate = replace(a_base_rate(), in_symbol=44)
    strategy, direction, symbol, regime = rate.levels
    few = replace(rate, levels=(strategy, direction, symbol, replace(regime, n=3)), headline=symbol)
    assert rate_in_words(few).startswith("only 3 trades in markets trending up; more broadly: 44 trades: 61% won")
    untried = replace(few, levels=(strategy, direction, symbol, replace(regime, n=0)))
    assert rate_in_words(untried).startswith("no trades in markets trending up yet; elsewhere: 44 trades: ")
    other_way = replace(few, levels=(strategy, *(replace(each, n=0) for each in rate.levels[1:])), headline=strategy)
    assert rate_in_words(other_way).startswith("no trades in this direction yet; elsewhere: 44 trades in any symbol")
    never = replace(other_way, in_symbol=0)
    assert rate_in_words(never).startswith(
        "never traded; the strategy elsewhere: 44 trades in any symbol and direction"
    )


def test_a_mean_in_r_says_over_how_many_trades_it_is_or_why_it_is_not_given() -> None:
    assert ", mean +0.21R (likely +0.03 to +0.39R) over 44 of 50 trades (R is unknown for 6), " in rate_in_words(
        a_base_rate(n=50)
    )
    hidden = a_base_rate(outcomes=(), withheld="R is unknown for 30% of losing trades and 5% of winning ones")
    assert ", no mean, since R is unknown for 30% of losing trades and 5% of winning ones, " in rate_in_words(hidden)


def test_outlooks_keep_their_place_before_single_memories() -> None:
    nearest = (a_recalled_line(setup="x " * 80),) * 3
    memories = [SymbolMemory(symbol=f"S{n}", outlooks=(an_outlook(),), nearest=nearest) for n in range(4)]
    text = what_usually_happens(memories).text
    assert all(f"- S{n} long: 44" in text for n in range(4))
    assert 0 < text.count("- nearest") < 12
