"""The guide on what the agent sees shows the prompt that the code builds today."""

from pathlib import Path

from backsight.core.decision import OURS
from backsight.surfaces.agent_guide import PATH, SENTENCES, demo_prompt, guide

ROOT = Path(__file__).parents[2]


def test_the_guide_shows_the_prompt_of_today() -> None:
    assert (ROOT / PATH).read_text(encoding="utf-8") == guide(demo_prompt()), "run `make reference`"


def test_every_section_has_a_sentence() -> None:
    assert set(SENTENCES) == OURS - {"decisions_under_review"}
