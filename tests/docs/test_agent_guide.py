"""The guide on what the agent sees shows the prompt that the code builds today."""

import re
from functools import cache
from pathlib import Path

import pytest

from backsight.core.decision import OURS, OpenedTick
from backsight.surfaces.agent_guide import PATH, SENTENCES, demo_prompt, guide

ROOT = Path(__file__).parents[2]


@cache
def prompt() -> OpenedTick:
    return demo_prompt()


def test_the_guide_shows_the_prompt_of_today() -> None:
    assert (ROOT / PATH).read_text(encoding="utf-8") == guide(prompt()), "run `make reference`"


def test_every_section_has_a_sentence() -> None:
    assert set(SENTENCES) == OURS - {"decisions_under_review"}


@pytest.mark.parametrize(
    ("segment", "fact"),
    [
        ("portfolio", r"^- XAUUSD (long|short) size=[\d.]+ "),
        ("recent_trades", r"^- #1 .*(stopped out|target hit|exit \".+\")$"),
        ("recent_trades", r"^- #1 .* BTC .*stopped out$"),
        ("open_positions", r"^- XAUUSD .* now [+-][\d.]+R stop="),
        ("what_usually_happens", r"^- XAUUSD long: .*R expected \(.* won.*: (risk|no recommendation|no edge|not now)"),
        ("what_usually_happens", r"^- BTC short: .*R expected \("),
        ("how_you_trade", r"^- costs took \$[\d,]+ of \$[\d,]+ gross"),
        ("state", r"^- drawdown [\d.]+%, \d+% of the 20% you accept"),
        ("protocol", r"^- \[9\] Stop opening trades for the day after a loss of 3%"),
    ],
)
def test_the_prompt_answers_these_questions(segment: str, fact: str) -> None:
    texts = {each.name: each.text for each in (*prompt().system, *prompt().segments)}
    assert len(re.findall(fact, texts[segment], re.MULTILINE)) == 1
