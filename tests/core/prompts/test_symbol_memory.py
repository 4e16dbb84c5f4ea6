"""What usually happened with a symbol, in a prompt."""

from datetime import timedelta

from backsight.core.prompts.symbol_memory import RecalledLine, SymbolMemory, symbol_memory_of, what_usually_happens
from backsight.core.recall.score import Situation
from backsight.testing import an_episode
from backsight.testing.recall import rank_plainly
from core.prompts.test_sections import NOW, a_base_rate


def test_what_usually_happens_has_its_layout_to_the_byte() -> None:
    episodes = [
        an_episode(1, pnl_r=3.0, symbol="BTC", known_at=NOW - timedelta(days=12), reflection="the retest held"),
        an_episode(2, pnl_r=-1.2, symbol="BTC", known_at=NOW - timedelta(days=300), reason="chased the candle"),
    ]
    ranked = rank_plainly(episodes, Situation(symbol="BTC"), now=NOW, limit=1)
    section = what_usually_happens(
        [symbol_memory_of("BTC", a_base_rate(), ranked.nearest, ranked.warnings), symbol_memory_of("ETH", None)]
    )
    assert section.text == (
        "## What usually happens here\n"
        "- BTC: 61 % of 44 long BTC trades in markets trending up were won (90 %: 49 to 72 %), effective 38;"
        " +0.21 ± 0.18R\n"
        '- nearest: BTC long +3.0R in a similar context (Sim .50), 12 days old "the retest held"\n'
        '- warning: BTC long -1.2R in a similar context (Sim .50), 300 days old "chased the candle"\n'
        "- ETH: nothing remembered"
    )


def test_base_rates_keep_their_place_before_single_memories() -> None:
    line = RecalledLine(
        id="m", symbol="BTC", direction="long", sentence="+3.0R in a similar context", comment="x " * 80
    )
    memories = [
        SymbolMemory(symbol=f"S{n}", base_rate="60 % of 40 trades were won", nearest=(line,) * 3) for n in range(8)
    ]
    text = what_usually_happens(memories).text
    assert all(f"- S{n}: 60 %" in text for n in range(8))
    assert 0 < text.count("- nearest") < 24
