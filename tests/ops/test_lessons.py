"""Operations on lessons: in force, listed, compared and promoted; and reviews of periods."""

import sqlite3
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine

from backsight.core.decision import Segment, Verdict
from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.core.orders import Order
from backsight.core.portfolio import Mode
from backsight.core.reflection.lessons import lessons_hash
from backsight.core.strategies import MemoryOverrides
from backsight.memory import OPERATIONS, Memory, open_memory
from backsight.testing import T0, FakeClock, a_position, a_snapshot
from support import LESSONS, deployed, dump, lost_in_ranges

DEPLOYMENT = "manual:Fade"
OTHER = LESSONS.replace("wait for the retest", "let it run")
SEGMENTS = [Segment(name="recent_activity", text="## Recent activity (this session)")]
SEED_SQL = (
    "select rn.content_hash, avg(th.realized_pnl_usd) as avg_pnl, count(*) as n from reflection_notes rn join "
    "trade_history th on th.entry_lessons_hash = rn.content_hash and th.deployment_id = rn.deployment_id where "
    "rn.skill_id = $1 and th.status = 'closed' group by rn.content_hash;"
)
"""A published statement that is older than these tables."""


def taught(memory: Memory, clock: FakeClock) -> None:
    """Let Fade lose in ranging markets, and write its lesson an hour after T0."""
    lost_in_ranges(memory, until=T0)
    clock.advance(hours=1)
    assert memory.reflect(deployment=DEPLOYMENT).came == "written"


def traded(memory: Memory, clock: FakeClock, exit_price: float, *, deployment: str, **arguments: Any) -> None:
    """One BTC bought at 100 and sold an hour later."""
    position = a_position(1.0)
    for quantity, mark in ((1.0, 100.0), (-1.0, exit_price)):
        clock.advance(hours=1)
        positions = [replace(position, mark=mark)]
        before, after = ([], positions) if quantity > 0 else (positions, [])
        at: dict[str, Any] = {"at": clock.now(), "marks": {"BTC": mark}}
        memory.close_tick(
            deployment=deployment,
            at=clock.now(),
            before=a_snapshot(*before, **at),
            after=a_snapshot(*after, **at),
            proposal=Order(symbol="BTC", quantity=quantity, reason="in and out"),
            verdict=Verdict(kind="executed"),
            usd_rate=1.25,
            **arguments,
        )


# Lessons in force


def test_before_the_first_note_there_are_no_lessons(memory: Memory) -> None:
    deployed(memory)
    answer = memory.active_lessons(deployment="VolBreakout@main")
    assert (answer.note, answer.text, answer.hash, answer.suppressed) == (None, None, None, ())


def test_suppressed_slots_are_not_shown_and_the_hash_is_of_the_whole_note(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    memory.promote_lessons(deployment="VolBreakout@main", lessons=LESSONS)
    memory.open_account(venue="binance", name="second")
    memory.deploy(
        strategy_name="VolBreakout", account="second", memory=MemoryOverrides(suppressed=("sizing", "entry_timing"))
    )
    answer = memory.active_lessons(deployment="VolBreakout@second")
    assert (answer.suppressed, answer.hash) == (("entry_timing", "sizing"), lessons_hash(LESSONS))
    assert answer.text is not None
    assert answer.text.startswith("### Symbol selection\n(no clear pattern yet)")
    assert "retest" not in answer.text
    assert answer.note is not None
    assert answer.note.lessons_text == LESSONS


def test_lessons_are_known_from_the_reflection_on_and_not_before(memory: Memory, clock: FakeClock) -> None:
    taught(memory, clock)
    clock.advance(days=1)
    just_before = T0 + timedelta(hours=1) - timedelta(microseconds=1)
    assert memory.active_lessons(deployment=DEPLOYMENT, as_of=just_before).note is None
    assert memory.active_lessons(deployment=DEPLOYMENT, as_of=T0 + timedelta(hours=1)).note is not None
    assert memory.active_lessons(deployment=DEPLOYMENT, seen_at=just_before).note is None
    assert memory.list_lessons(deployment=DEPLOYMENT, as_of=just_before).attempts == ()


# Listing


def test_revisions_and_attempts_are_listed_newest_first(memory: Memory, clock: FakeClock) -> None:
    taught(memory, clock)
    clock.advance(hours=1)
    memory.reflect(deployment=DEPLOYMENT)
    clock.advance(hours=1)
    memory.promote_lessons(deployment=DEPLOYMENT)
    own, of_strategy = memory.list_lessons(deployment=DEPLOYMENT), memory.list_lessons(strategy_name="Fade")
    assert [(each.came, each.closed) for each in own.attempts] == [("unchanged", 24), ("written", 24)]
    assert {each.patterns for each in own.attempts} == {("regime_fit/regime=ranging",)}
    assert [each.deployment_id is None for each in own.notes] == [False]
    assert [each.deployment_id is None for each in of_strategy.notes] == [True, False]
    assert of_strategy.attempts == own.attempts
    assert len(memory.list_lessons(strategy_name="Fade", limit=1).attempts) == 1


def test_lessons_are_those_of_a_deployment_or_of_a_strategy(memory: Memory) -> None:
    with pytest.raises(NotFound, match="deployment: there is no deployment yet"):
        memory.list_lessons()
    lost_in_ranges(memory, days=1, until=T0)
    assert memory.list_lessons() == memory.list_lessons(deployment=DEPLOYMENT)
    with pytest.raises(Invalid, match="deployment: a strategy_name is given too; give one of the two"):
        memory.list_lessons(deployment=DEPLOYMENT, strategy_name="Fade")


@pytest.mark.parametrize("name", ["list_lessons", "compare_lessons", "does_memory_help"])
def test_an_unknown_strategy_is_named_with_the_nearest(memory: Memory, name: str) -> None:
    with pytest.raises(NotFound, match="strategy_name: no strategy 'Fado'; save it first"):
        getattr(memory, name)(strategy_name="Fado")
    lost_in_ranges(memory, days=1, until=T0)
    with pytest.raises(NotFound, match="strategy_name: no strategy 'Fado'; did you mean 'Fade'"):
        getattr(memory, name)(strategy_name="Fado")


# Comparing


def raw_rows(url: str, sql: str, value: str) -> dict[str, tuple[float, int]]:
    """The rows that a database returns for an SQL text, passed on unchanged, with one parameter `$1`."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        answer = connection.execute(sql, {"1": value}).fetchall()
        connection.close()
    else:
        engine = create_engine(url)
        driver: Any = engine.raw_connection()
        answer = psycopg.RawCursor(driver.driver_connection).execute(sql, [value]).fetchall()
        driver.close()
        engine.dispose()
    return {content_hash: (float(average), count) for content_hash, average, count in answer}


def test_the_published_sql_runs_unchanged_and_agrees(memory: Memory, clock: FakeClock, url: str) -> None:
    deployed(memory)
    for number, lessons in enumerate((LESSONS, OTHER)):
        memory.promote_lessons(deployment="VolBreakout@main", lessons=lessons)
        memory.open_account(venue="binance", name=f"a{number}", currency="EUR")
        deployment = memory.deploy(strategy_name="VolBreakout", account=f"a{number}").deployment
        stamped = memory.active_lessons(deployment=deployment.id).hash
        for exit_price in (101.0 + number, 99.5, 104.0):
            traded(memory, clock, exit_price, deployment=deployment.id, lessons_hash=stamped)
        traded(memory, clock, 90.0, deployment=deployment.id)
    compared = memory.compare_lessons(strategy_name="VolBreakout").comparison
    strategy_id = memory.get_my_deployments().deployments[0].deployment.strategy_id
    answer = raw_rows(url, SEED_SQL, strategy_id)
    none, *revisions = compared.revisions
    assert (none.lessons_hash, none.trades, none.mean_pnl_usd) == (None, 2, -12.5)
    assert {each.lessons_hash for each in revisions} == set(answer)
    for each in revisions:
        average, count = answer[each.lessons_hash or ""]
        assert each.mean_pnl_usd == pytest.approx(average)
        assert each.trades == count
    assert answer[lessons_hash(LESSONS)][0] == pytest.approx(1.25 * 1.5)
    assert compared.caution.startswith("This compares periods of time, not random arms")


def test_a_comparison_covers_one_mode_and_only_trades_known_by_then(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    traded(memory, clock, 101.0, deployment="VolBreakout@main", lessons_hash="a" * 16)
    then = clock.now()
    traded(memory, clock, 102.0, deployment="VolBreakout@main", lessons_hash="b" * 16)
    compared = memory.compare_lessons(strategy_name="VolBreakout", as_of=then).comparison
    assert [each.lessons_hash for each in compared.revisions] == [None, "a" * 16]
    paper = memory.compare_lessons(strategy_name="VolBreakout", mode="paper").comparison
    assert [each.trades for each in paper.revisions] == [0]


def test_whether_memory_helps_is_judged_by_days_on_which_it_was_withheld(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    memory.open_account(venue="binance", name="coin")
    deployment = memory.deploy(
        strategy_name="VolBreakout", account="coin", memory=MemoryOverrides(holdout=0.5)
    ).deployment
    early = memory.does_memory_help(strategy_name="VolBreakout")
    assert early.help.sentence == "Nothing to compare: no decision was made with memory shown or withheld."
    clock.at = T0.replace(hour=1)
    for number in range(24):
        clock.advance(hours=22)
        traded(memory, clock, 101.0 + number % 3, deployment=deployment.id, shown=SEGMENTS)
    clock.advance(days=1)
    answer = memory.does_memory_help(strategy_name="VolBreakout")
    trades = memory.list_trades(deployment=deployment.id, limit=100).trades
    arms = [trade.memory_arm for trade in trades]
    assert (answer.help.shown.trades, answer.help.withheld.trades) == (arms.count("shown"), arms.count("withheld"))
    assert min(answer.help.shown.days, answer.help.withheld.days) >= 5
    assert answer.help.interval is not None
    assert memory.does_memory_help(strategy_name="VolBreakout", as_of=T0).help.shown.trades == 0


# Promoting


def test_a_promoted_note_belongs_to_the_strategy_and_names_its_origin(memory: Memory, clock: FakeClock) -> None:
    taught(memory, clock)
    own = memory.active_lessons(deployment=DEPLOYMENT).note
    assert own is not None
    promoted = memory.promote_lessons(deployment=DEPLOYMENT).note
    assert (promoted.deployment_id, promoted.copied_from, promoted.author) == (None, own.id, "statistics")
    assert (promoted.bullets, promoted.content_hash, promoted.trades_considered) == (own.bullets, own.content_hash, 24)
    assert memory.active_lessons(deployment=DEPLOYMENT).note == own


def test_a_new_deployment_starts_with_its_own_copy(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    promoted = memory.promote_lessons(deployment="VolBreakout@main", lessons=LESSONS).note
    clock.advance(hours=1)
    modes: dict[str, Mode] = {"second": "live", "practice": "paper"}
    for name, mode in modes.items():
        memory.open_account(venue="binance", name=name, mode=mode)
    memory.save_strategy(name="VolBreakout", thesis="Breaks carry, mostly.")
    for _ in range(2):
        memory.deploy(strategy_name="VolBreakout", account="second")
    memory.deploy(strategy_name="VolBreakout", account="practice")
    copy = memory.active_lessons(deployment="VolBreakout@second").note
    assert copy is not None
    assert (copy.copied_from, copy.content_hash, copy.generated_at) == (promoted.id, promoted.content_hash, clock.now())
    assert (copy.strategy_version, copy.bullets[0].text) == (2, "wait for the retest")
    for other in ("VolBreakout@practice", "VolBreakout@main"):
        assert memory.active_lessons(deployment=other).note is None
    clock.advance(hours=1)
    memory.promote_lessons(deployment="VolBreakout@main", lessons=OTHER)
    assert memory.active_lessons(deployment="VolBreakout@second").note == copy
    assert memory.verify_audit().intact


def test_promoting_the_same_again_changes_nothing(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    arguments: dict[str, Any] = {"deployment": "VolBreakout@main", "lessons": LESSONS}
    first = memory.promote_lessons(**arguments)
    before = dump(memory)
    clock.advance(hours=1)
    again = memory.promote_lessons(**arguments | {"lessons": f"\n{LESSONS}  \n"})
    assert (first.replayed, again.replayed, again.note) == (False, True, first.note)
    assert dump(memory) == before


def test_lessons_from_paper_trades_are_promoted_to_live_and_say_so(memory: Memory, clock: FakeClock) -> None:
    memory.open_account(venue="binance", name="practice", mode="paper")
    memory.open_account(venue="binance", name="main")
    memory.save_strategy(name="Fade", thesis="What fell comes back.")
    paper = memory.deploy(strategy_name="Fade", account="practice").deployment
    lost_in_ranges(memory, until=clock.now(), deployment=paper.name)
    clock.advance(hours=1)
    own = memory.reflect(deployment=paper.name).note
    assert own is not None
    promoted = memory.promote_lessons(deployment=paper.name, mode="live").note
    assert (promoted.mode, promoted.evidence_mode, promoted.copied_from) == ("live", "paper", own.id)
    assert promoted.bullets[0].text == f"{own.bullets[0].text} (from paper trades)"
    live = memory.deploy(strategy_name="Fade", account="main").deployment
    copy = memory.active_lessons(deployment=live.name).note
    assert copy is not None
    assert (copy.mode, copy.evidence_mode, copy.lessons_text) == ("live", "paper", promoted.lessons_text)
    assert memory.active_lessons(deployment=paper.name).note == own
    clock.advance(hours=1)
    done = memory.reflect(deployment=live.name)
    assert (done.came, done.note) == ("unchanged", copy)
    assert done.reason.startswith("the lessons from paper trades stay: 0 closed trades")
    assert memory.verify_audit().intact


def test_live_trades_replace_lessons_from_paper_trades(memory: Memory, clock: FakeClock) -> None:
    memory.open_account(venue="binance", name="practice", mode="paper")
    memory.open_account(venue="binance", name="main")
    memory.save_strategy(name="Fade", thesis="What fell comes back.")
    paper = memory.deploy(strategy_name="Fade", account="practice").deployment
    lost_in_ranges(memory, until=clock.now(), deployment=paper.name)
    memory.reflect(deployment=paper.name)
    memory.promote_lessons(deployment=paper.name, mode="live")
    live = memory.deploy(strategy_name="Fade", account="main").deployment
    clock.advance(days=20)
    lost_in_ranges(memory, until=clock.now(), deployment=live.name)
    done = memory.reflect(deployment=live.name)
    assert (done.came, done.note and done.note.evidence_mode) == ("written", "live")
    assert "paper" not in done.bullets[0].text


def test_promoting_into_another_mode_needs_lessons_and_ones_own_deployment(
    memory: Memory, clock: FakeClock, url: str
) -> None:
    deployed(memory)
    with pytest.raises(NotFound, match="'VolBreakout@main' has no lessons yet; give them in your own words, or refl"):
        memory.promote_lessons(deployment="VolBreakout@main", mode="paper")
    with (
        open_memory(url, owner="ben", clock=clock) as other,
        pytest.raises(NotFound, match="VolBreakout@main"),
    ):
        other.promote_lessons(deployment="VolBreakout@main", lessons=LESSONS, mode="paper")
    assert memory.list_lessons(strategy_name="VolBreakout").notes == ()


def test_an_earlier_note_can_be_promoted_again(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    for lessons in (LESSONS, OTHER, LESSONS):
        note = memory.promote_lessons(deployment="VolBreakout@main", lessons=lessons).note
        clock.advance(hours=1)
    listed = memory.list_lessons(strategy_name="VolBreakout").notes
    assert sorted((each.status, each.lessons_text) for each in listed) == [("active", LESSONS), ("superseded", OTHER)]
    assert note.generated_at == T0


@pytest.mark.parametrize(
    ("lessons", "message"),
    [
        ("", "lessons: the note is empty; keep the one there is"),
        ("x" * 4001, "lessons: 4001 characters; give at most 2000"),
        ("### Sizing\n- less", "lessons: no slot for Entry timing, Symbol selection, Exit timing, Regime fit; give"),
        (LESSONS.replace("wait", "no News; wait"), "lessons: repeats the avoid rule 'news'; say what trades showed"),
        (
            f"First of all.\n{LESSONS}",
            "lessons: 'First of all.' is outside of a bullet; put it in a bullet below a slot's heading",
        ),
        (5, "lessons: 5 is a number; give text"),
    ],
)
def test_an_invalid_note_is_refused_and_nothing_is_written(memory: Memory, lessons: Any, message: str) -> None:
    deployed(memory)
    before = dump(memory)
    with pytest.raises(Invalid) as refused:
        memory.promote_lessons(deployment="VolBreakout@main", lessons=lessons)
    assert refused.value.message.startswith(message)
    assert dump(memory) == before


def test_bullets_that_do_not_fit_are_cut_and_named(memory: Memory) -> None:
    deployed(memory)
    many = "\n".join(f"- lesson number {number} " + "which is long " * 20 for number in range(5))
    promoted = memory.promote_lessons(
        deployment="VolBreakout@main", lessons=LESSONS.replace("- wait for the retest", many)
    )
    assert len(promoted.note.lessons_text) <= 2000
    assert promoted.cut[-1].startswith("lesson number 4")
    assert len(promoted.cut) + len(promoted.note.bullets) == 5


def test_without_lessons_there_is_nothing_to_promote(memory: Memory) -> None:
    deployed(memory)
    with pytest.raises(NotFound, match="lessons: 'VolBreakout@main' has no lessons yet; give them in your own words"):
        memory.promote_lessons(deployment="VolBreakout@main")


def test_later_lessons_of_a_strategy_are_not_replaced_from_the_past(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    clock.advance(hours=1)
    memory.promote_lessons(deployment="VolBreakout@main", lessons=LESSONS)
    clock.at = T0
    with pytest.raises(Conflict, match="promote others at a later instant"):
        memory.promote_lessons(deployment="VolBreakout@main", lessons=OTHER)


@pytest.mark.parametrize("name", ["promote_lessons", "accept_proposal", "reject_proposal"])
def test_only_the_owner_may_promote_accept_or_reject(name: str) -> None:
    assert OPERATIONS[name].audience == {"owner"}


# Reviews of periods


def test_a_review_has_results_evidence_and_lessons(memory: Memory, clock: FakeClock) -> None:
    taught(memory, clock)
    answer = memory.review_period(deployment=DEPLOYMENT, period="weekly")
    assert (answer.start, answer.end) == (T0 - timedelta(days=6, hours=23), T0 + timedelta(hours=1))
    assert (answer.result.trades, answer.result.days, answer.result.wins, round(answer.result.pnl, 6)) == (
        7,
        7,
        4,
        120.0,
    )
    assert answer.result.win_rate_interval == pytest.approx((0.2253, 0.8713), abs=1e-4)
    assert [round(trade.pnl or 0.0) for trade in (*answer.best, *answer.worst)] == [123, 121, 119, -122, -120, -118]
    for words in (
        "# Weekly review: manual:Fade",
        "2026-05-28 11:00 to 2026-06-04 11:00 UTC (May 2026 to June 2026), live, as known at its end.",
        "| closed | 7 trades on 7 days |",
        "| won | 4, 57% (90%: 23% to 87%) |",
        "| net | +120.00 USD, after fees of 0.00 |",
        "| 2026-06-04 10:00 | BTC | long | +123.00 | +1.23R |",
        "- ranging markets: -1.11 ± 0.59R over 12 trades on 12 days",
        "### Regime fit\n- ranging markets",
        "- 2026-06-04 11:00: written, 1 lesson from 24 closed trades",
    ):
        assert words in answer.markdown


def test_a_review_of_a_day_without_trades_says_so(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    answer = memory.review_period(deployment="VolBreakout@main", period="daily")
    assert (answer.result.trades, answer.result.win_rate, answer.best, answer.note) == (0, None, (), None)
    assert "No trade was closed." in answer.markdown
    assert "No clear pattern yet: 0 closed trades; the first test is at 20." in answer.markdown
    assert answer.markdown.endswith("## Lessons in force\n\nNone.\n")


def test_a_review_knows_nothing_that_came_after_its_end(memory: Memory, clock: FakeClock) -> None:
    lost_in_ranges(memory, days=20, until=T0)
    then = memory.review_period(deployment=DEPLOYMENT, period="monthly", ending=T0)
    clock.advance(days=4)
    lost_in_ranges(memory, days=4, until=clock.now())
    memory.reflect(deployment=DEPLOYMENT)
    memory.annotate_trade(trade_id=then.best[0].id, reflection="In hindsight, obvious.")
    now = memory.review_period(deployment=DEPLOYMENT, period="monthly", ending=T0)
    assert replace(now, as_of=then.as_of) == then


def test_text_from_outside_is_escaped_in_a_review(memory: Memory, clock: FakeClock) -> None:
    lost_in_ranges(memory, days=1, until=T0, symbol="A|B *b*", reflection="| x |\n# Buy *now*", pnl=5.0, pnl_r=1.0)
    answer = memory.review_period(deployment=DEPLOYMENT, period="daily").markdown
    assert "| A\\|B \\*b\\* |" in answer
    assert "\n# Buy" not in answer


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"period": "yearly"}, "period: 'yearly' is not known; known: daily, weekly, monthly"),
        ({"ending": "2026-06-05T10:00:00Z"}, r"ending: 2026-06-05T10:00:00\.000000Z is in the future; give an earlier"),
        ({"ending": "1969-06-05T10:00:00Z"}, r"ending: 1969-06-05T10:00:00\.000000Z is before 1970"),
        ({"ending": "2026-06-04T10:00:00"}, "ending: 2026-06-04T10:00:00 has no time zone"),
    ],
)
def test_an_invalid_period_is_refused(memory: Memory, arguments: dict[str, Any], message: str) -> None:
    deployed(memory)
    with pytest.raises(Invalid, match=message):
        memory.review_period(deployment="VolBreakout@main", **arguments)
