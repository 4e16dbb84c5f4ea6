"""Lessons on a terminal."""

from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from backsight.memory import OPERATIONS, Memory, open_memory
from backsight.surfaces.tables import show
from backsight.testing import T0, FakeClock
from support import LESSONS, deployed, lost_in_ranges

HOME: dict[str, Any] = {"deployment": "manual:Fade"}


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", owner="ana", clock=FakeClock(T0)) as opened:
        lost_in_ranges(opened, until=T0)
        yield opened


def seen(memory: Memory, name: str, *, terminal: bool = False, **asked: Any) -> str:
    answer = OPERATIONS[name].as_json(getattr(memory, name)(**asked))
    page = StringIO()
    show(Console(file=page, width=160, force_terminal=terminal, highlight=False), name, answer)
    return page.getvalue()


def test_a_reflection_shows_lessons_proposals_and_every_group(memory: Memory) -> None:
    dry = seen(memory, "reflect", **HOME, dry_run=True)
    assert dry.startswith(
        "would be written: 1 lesson from 16 closed trades\n  regime fit: ranging markets: -1.07 ± 0.03R"
    )
    told = seen(memory, "reflect", **HOME)
    for words in (
        "proposes a belief: ",
        "16 of 16 closed trades on 16 days, tested at 0.0065; next test at 18",
        "lesson",
    ):
        assert words in told
    assert "-1.07 ± 0.03R" in told
    assert "not significant (p = 1, level 0.0065) after correction for 2 comparisons" in told


def test_lessons_in_force_and_before_the_first(memory: Memory) -> None:
    assert seen(memory, "active_lessons", **HOME) == "No lessons of manual:Fade known then.\n"
    assert seen(memory, "list_lessons", **HOME) == "No lessons known then.\n"
    memory.reflect(**HOME)
    assert "### Regime fit\n- ranging markets" in seen(memory, "active_lessons", **HOME)
    listed = seen(memory, "list_lessons", **HOME)
    assert "active" in listed
    assert "1 lesson from 16 closed trades" in listed


def test_comparisons_and_whether_memory_helps(memory: Memory) -> None:
    compared = seen(memory, "compare_lessons", strategy_name="Fade")
    assert "none" in compared
    assert "This compares periods of time, not random arms" in compared
    assert seen(memory, "does_memory_help", strategy_name="Fade").startswith("Nothing to compare: ")


def test_what_is_promoted_and_what_was_cut(memory: Memory) -> None:
    deployed(memory)
    many = LESSONS.replace("- wait for the retest", "\n".join(f"- lesson {number}" for number in range(5)))
    told = seen(memory, "promote_lessons", deployment="VolBreakout@main", lessons=many)
    assert told.startswith("New deployments start with this.\n### Entry timing\n- lesson 0")
    assert "cut: lesson 4" in told


def test_a_review_is_markdown_in_a_pipe_and_rendered_on_a_terminal(memory: Memory) -> None:
    assert seen(memory, "review_period", **HOME).startswith("# Weekly review: manual:Fade\n")
    assert "# Weekly" not in seen(memory, "review_period", **HOME, terminal=True)


def test_proposals_and_what_became_of_them(memory: Memory) -> None:
    assert seen(memory, "list_proposals") == "No proposals known then.\n"
    belief, plan = memory.reflect(**HOME).proposals
    assert "proposed  belief  yes" in seen(memory, "list_proposals")
    assert seen(memory, "accept_proposal", proposal_id=belief.id).startswith("accepted, as belief ")
    assert seen(memory, "reject_proposal", proposal_id=plan.id).startswith("rejected: ranging markets")
