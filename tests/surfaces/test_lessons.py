"""The lessons operations on a terminal."""

from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from backsight import brief
from backsight.memory import Memory, open_memory
from backsight.surfaces.tables import show
from backsight.testing import T0, FakeClock, a_trade_call
from support import LESSONS, deployed, lost_in_ranges

DEPLOYMENT: dict[str, Any] = {"deployment": "manual:Fade"}


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", owner="ana", clock=FakeClock(T0)) as opened:
        lost_in_ranges(opened, until=T0)
        yield opened


def printed(memory: Memory, name: str, *, terminal: bool = False, **arguments: Any) -> str:
    page = StringIO()
    answer = getattr(memory, name)(**arguments)
    show(Console(file=page, width=160, force_terminal=terminal, highlight=False), answer)
    return page.getvalue()


def test_of_many_groups_those_with_a_lesson_and_the_clearest_are_shown(memory: Memory) -> None:
    answer = memory.reflect(**DEPLOYMENT, dry_run=True)
    groups = answer.evidence.groups
    (lesson,) = (group for group in groups if group.missing is None)
    others = [group for group in groups if group is not lesson]
    many = (*others * 4, lesson)
    text = brief(replace(answer, evidence=replace(answer.evidence, groups=many)))
    rows = text.partition("group | ")[2].splitlines()[1:-1]
    assert rows[0].startswith(f"{lesson.label} | ")
    assert len(rows) == 12
    assert text.endswith(f'{len(many) - 12} more groups, each less clear: detail="full" has all.')


def test_a_reflection_shows_lessons_proposals_and_every_group(memory: Memory) -> None:
    dry = printed(memory, "reflect", **DEPLOYMENT, dry_run=True)
    assert dry.startswith(
        "Would be written: 1 lesson from 24 closed trades\nregime fit: ranging markets: -1.11 ± 0.59R"
    )
    reflection = printed(memory, "reflect", **DEPLOYMENT)
    for words in (
        "proposes a belief: ",
        "24 of 24 closed trades on 24 days, tested at level 0.0006; next test at 35 trades",
        "lesson",
    ):
        assert words in reflection
    assert "-1.11 ± 0.59R" in reflection
    assert "not significant (p = 1, level 0.0006) after correction for 8 comparisons" in reflection


def test_lessons_are_printed_before_and_after_the_first_reflection(memory: Memory) -> None:
    assert printed(memory, "active_lessons", **DEPLOYMENT) == (
        "manual:Fade has no lessons: nothing was reflected on yet; reflect does so.\n"
    )
    listed = printed(memory, "list_lessons", **DEPLOYMENT)
    assert listed.startswith(
        "No lessons were known at that time.\nwatched, live: A reflection now would prove: ranging"
    )
    memory.reflect(**DEPLOYMENT)
    assert "### Regime fit\n- ranging markets" in printed(memory, "active_lessons", **DEPLOYMENT)
    listed = printed(memory, "list_lessons", **DEPLOYMENT)
    assert "active" in listed
    assert "1 lesson from 24 closed trades" in listed


def test_comparisons_of_lessons_and_of_memory_are_printed(memory: Memory) -> None:
    compared = printed(memory, "compare_lessons", strategy_name="Fade")
    assert "none" in compared
    assert "This compares periods of time, not random arms" in compared
    default = "For 'manual:Fade' (live), the only deployment of 'Fade'. 24 closed live trades.\n"
    assert compared.startswith(default)
    assert printed(memory, "does_memory_help", strategy_name="Fade").startswith(default + "Nothing to compare: ")


def test_promoted_lessons_and_cut_lessons_are_printed(memory: Memory) -> None:
    deployed(memory)
    many = LESSONS.replace("- wait for the retest", "\n".join(f"- lesson {number}" for number in range(5)))
    promoted = printed(memory, "promote_lessons", deployment="VolBreakout@main", lessons=many)
    assert promoted.startswith(
        "New deployments of this strategy start with these lessons.\n### Entry timing\n- lesson 0"
    )
    assert "cut: lesson 4" in promoted


def test_a_review_is_markdown_in_a_pipe_and_rendered_on_a_terminal(memory: Memory) -> None:
    assert printed(memory, "review_period", **DEPLOYMENT).startswith("# Weekly review: manual:Fade\n")
    assert "# Weekly" not in printed(memory, "review_period", **DEPLOYMENT, terminal=True)


def test_proposals_and_decisions_on_them_are_printed(memory: Memory) -> None:
    assert printed(memory, "list_proposals") == "No proposals were known at that time.\n"
    belief, plan = memory.reflect(**DEPLOYMENT).proposals
    assert "proposed  belief  yes" in printed(memory, "list_proposals")
    assert printed(memory, "accept_proposal", proposal_id=belief.id).startswith("accepted, as belief ")
    assert printed(memory, "reject_proposal", proposal_id=plan.id).startswith("rejected: ranging markets")


def test_beliefs_are_printed_with_the_number_of_trades_of_their_mean() -> None:
    clock = FakeClock(T0)
    with open_memory("sqlite://", owner="ana", clock=clock) as memory:
        memory.add_belief(proposition="Trends pay", regime="trending_up")
        for pnl_r in (1.0, 1.0, None):
            clock.advance(hours=30)
            memory.remember_trade(**a_trade_call(pnl_r=pnl_r))
        assert "(2 of 3)" in " ".join(printed(memory, "list_beliefs").split())
