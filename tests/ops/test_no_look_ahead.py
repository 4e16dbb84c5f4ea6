"""Every query, asked again later with its instants, gives the same answer, whatever any command recorded since."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from backsight.core.agents.card import CardField
from backsight.core.context import ContextVector
from backsight.core.decision import Verdict
from backsight.core.errors import BacksightError
from backsight.core.ids import canonical_json, plain
from backsight.core.instants import JUST_BEFORE
from backsight.core.market import Bar
from backsight.core.orders import Order
from backsight.core.portfolio import MODES
from backsight.core.regime import Regime
from backsight.core.strategies import MemoryOverrides
from backsight.core.trades.trade import TradeStatus
from backsight.memory import OPERATIONS, Memory, open_memory
from backsight.settings import Settings
from backsight.testing import T0, FakeClock, a_position, a_snapshot, a_trade_call
from backsight.testing.claude_stand_in import stand_in
from parity.arguments import FOLDER
from support import (
    LEGACY_PATTERN,
    LEGACY_TRADE,
    LESSONS,
    a_legacy_database,
    deployed,
    fresh_postgres,
    lost_in_ranges,
)

START = T0 + timedelta(days=30)
"""After everything in the files that are imported."""
DAY = timedelta(days=1)
TICKED, REPORTED, TAUGHT = "VolBreakout@main", "VolBreakout@paper", "manual:Fade"
REGIMES: tuple[Regime | None, ...] = ("trending_up", "ranging", None)
TEXTS = ("London broke the range", "quiet, then a sweep of the low", None)
SOUL = "# Soul\n\nPatient. A sweep of the low is no reason.\n"


@dataclass(frozen=True)
class Event:
    """A command some hours after the one before, about something that was known so many days earlier."""

    command: str
    hours: int
    late: int
    number: int
    """Identifies the event and selects its variant."""


@dataclass
class Life:
    """A memory with a workspace, its clock, and the size of the position that the broker reports."""

    memory: Memory
    clock: FakeClock
    folder: Path
    position: float = 0.0
    refused: set[str] = field(default_factory=set)
    """The commands that were refused."""

    def live(self, event: Event) -> None:
        self.clock.advance(hours=1 + event.hours)
        try:
            COMMANDS[event.command](self, event)
        except (BacksightError, LookupError):  # a refusal, or nothing there that the command could be about
            self.refused.add(event.command)


@contextmanager
def a_life(url: str = "sqlite://") -> Iterator[Life]:
    """A deployment that runs by ticks, one whose trades are reported, one that was taught lessons, and a workspace."""
    clock = FakeClock(START)
    with TemporaryDirectory() as folder:
        for name, text in {"SOUL.md": SOUL, "TRADING_MANUAL.md": "# Manual\n\n1. XAUUSD: half size.\n"}.items():
            (Path(folder) / name).write_text(text)
        tables = {"trade_records": [LEGACY_TRADE], "patterns": [LEGACY_PATTERN]}
        a_legacy_database(Path(folder) / "old.db", **tables)
        program = stand_in(Path(folder) / "claude")
        settings = Settings(url=url, owner="ana", workspace=folder, claude_program=program)
        with open_memory(settings=settings, clock=clock) as memory:
            deployed(memory)
            memory.open_account(venue="v", name="paper", mode="paper")
            memory.deploy(strategy_name="VolBreakout", account="paper", memory=MemoryOverrides(holdout=0.3))
            lost_in_ranges(memory, until=START - DAY)
            memory.reflect(deployment=TAUGHT)
            yield Life(memory, clock, Path(folder))


# Commands: each in several variants, chosen by the number of the event.


def remember_trade(life: Life, event: Event) -> None:
    r, closed = (event.number * 7 % 11 - 5) / 2, life.clock.now() - event.late * DAY
    life.memory.remember_trade(
        **a_trade_call(
            opened_at=None if event.number % 5 == 0 else closed - timedelta(hours=3),
            closed_at=closed,
            pnl=r * 100.0,
            pnl_r=r if event.number % 4 else None,
            symbol=("XAUUSD", "BTC")[event.number % 5 == 0],
            strategy_name="VolBreakout" if event.number % 3 else "Other",
            deployment=REPORTED if event.number % 3 == 1 else None,
            mode="sim" if event.number % 6 == 2 else None,
            equity=10_000.0 + 100.0 * r if event.number % 2 else None,
            direction=("long", "short")[event.number % 2],
            context_regime=REGIMES[event.number % 3],
            market_context=TEXTS[event.number % 3],
            tags=["a"] if event.number % 2 else [],
            idempotency_key=f"{event.number}",
        )
    )


def some_trade(life: Life, event: Event) -> Any:
    trades = life.memory.list_trades(limit=100, mode="all").trades
    return trades[event.number % len(trades)]  # there always are those that taught lessons


def archive_episode(life: Life, event: Event) -> None:
    episode = life.memory.get_trade(trade_id=some_trade(life, event).id).episode
    assert episode is not None
    life.memory.archive_episode(episode_id=episode.id, restore=bool(event.number % 2))


def record_decision(life: Life, event: Event) -> None:
    life.memory.record_decision(
        symbol="XAUUSD",
        direction="long",
        strategy_name="VolBreakout",
        horizon_hours=float(1 + event.number),
        reasoning="would, may not",
        price=100.0 + event.number,
        deployment=REPORTED,
        recalls=[life.memory.recall_memories(symbol="XAUUSD", limit=2).recall],
        idempotency_key=f"{event.number}",
    )


def create_trading_plan(life: Life, event: Event) -> None:
    conditions: list[dict[str, Any]] = [
        {"regime": "ranging"},
        {"consecutive_losses": 1},
        {"session": "london"},
        {"field": "drawdown_pct", "op": ">", "value": 0.001},
    ]
    life.memory.create_trading_plan(
        trigger_condition=conditions[event.number % 4],
        planned_action={"type": ("alert", "skip_trade")[event.number % 2]},
        reasoning="look twice",
        deployment=(TICKED, REPORTED, None)[event.number % 3],
        expiry_days=(0.5, 3.0, 30.0)[event.number % 3],
        mode=("once", "while_true")[event.number % 5 > 0],
        idempotency_key=f"{event.number}",
    )


def some_plan(life: Life, event: Event) -> str:
    plans = life.memory.list_plans(status="active").plans
    return plans[event.number % max(len(plans), 1)].plan.id


def some_proposal(life: Life) -> str:
    return life.memory.list_proposals(status="proposed").proposals[0].proposal.id


def close_tick(life: Life, event: Event) -> None:
    """Open or close a position, or do nothing; the equity and the price move with the number."""
    at = life.clock.now() - event.late * DAY
    equity, price = 10_000.0 - 40.0 * (event.number % 7), 100.0 + event.number % 9

    def snapshot(size: float) -> Any:
        held = [a_position(size, stop_price=95.0, mark=price)] if size else []
        return a_snapshot(*held, at=at, equity=equity, marks={"BTC": price})

    size = life.position if event.number % 4 == 0 else 2.0 - life.position
    change = size - life.position
    life.memory.close_tick(
        deployment=TICKED,
        at=at,
        before=snapshot(life.position),
        after=snapshot(size),
        proposal=Order(symbol="BTC", quantity=change, stop_price=95.0, reason="a break") if change else None,
        verdict=Verdict(kind="executed" if change else "noop"),
        recalls=[life.memory.recall_memories(symbol="BTC", deployment=TICKED).recall],
        bars=[a_bar(at, price)],
    )
    life.position = size


def a_bar(at: datetime, price: float, symbol: str = "BTC", *, seconds: int = 3600) -> Bar:
    opened_at = at.replace(second=0, microsecond=0) - timedelta(seconds=seconds)
    prices = {"open": price, "high": price + 1.0, "low": price - 1.0, "close": price}
    return Bar(symbol=symbol, opened_at=opened_at, interval_seconds=seconds, volume=None, **prices)


def record_bars(life: Life, event: Event) -> None:
    """Thirty bars in one of the symbols, of hours or of quarters of an hour."""
    symbol, seconds = ("XAUUSD", "BTC")[event.number % 2], (3600, 900)[event.number % 3 == 0]
    last = life.clock.now() - event.late * DAY
    times = [last - number * timedelta(seconds=seconds) for number in reversed(range(30))]
    bars = [a_bar(at, 90.0 + (event.number + number) % 7, symbol, seconds=seconds) for number, at in enumerate(times)]
    life.memory.record_bars(bars=bars)


def reindex(life: Life, event: Event) -> None:
    """Write, change or remove a file of the journal."""
    file = life.folder / "journal" / f"2026-07-{1 + event.number % 5:02d}.md"
    file.parent.mkdir(exist_ok=True)
    if file.exists() and event.number % 2:
        file.unlink()
    else:
        file.write_text(f"# A day\n\nThe low was swept {'and again ' * (event.number % 6)}in XAUUSD. {event.number}\n")
    life.memory.reindex()


def propose_edit(life: Life, event: Event) -> None:
    text = f"{SOUL}\nRule {event.number}: no sweep.\n"
    life.memory.propose_edit(path="SOUL.md", text=text, reason="seen", agent="a", run="r")


def some_edit(life: Life) -> str:
    return life.memory.list_edits(status="proposed").edits[0].id


def some_fact(life: Life, event: Event) -> str:
    """The id of a fact, archived or not; a new one where there is none."""
    facts = [*life.memory.list_facts().facts, *life.memory.list_facts(archived=True).facts]
    if not facts:
        return life.memory.add_fact(fact=f"My rule {event.number}").fact.id
    return facts[event.number % len(facts)].id


def stop_and_resume(life: Life, event: Event) -> None:
    """A stop, and the end of it, since the other commands go on with ticks."""
    life.memory.stop_deployment(deployment=TICKED, reason=f"reason {event.number}")
    life.clock.advance(seconds=1)
    life.memory.configure_deployment(deployment=TICKED, resume=True)


def record_run(life: Life, event: Event) -> None:
    """A run with a decision, a wait or no card; some of them re-examine an earlier one."""
    ended = life.clock.now() - event.late * DAY
    card = {
        "symbol": "BTC",
        "decision": ("LONG", "WAIT")[event.number % 2],
        "entry": 93.0,
        "target": 95.5,
        "stop": 90.5,
    }
    cards = [each for each in life.memory.list_runs(limit=100).runs if each.card_type == "trade_decision"]
    parent = cards[0].id if cards and event.number % 3 == 2 else None
    life.memory.record_run(
        deployment=TICKED,
        prompt="look",
        output=f"answer {event.number}",
        kind="heartbeat" if parent is None else "re_examination",
        parent=parent,
        card_type="trade_decision" if parent is None and event.number % 4 else None,
        result=card if parent is None and event.number % 4 else None,
        session_after=f"s{event.number}",
        started_at=ended,
        ended_at=ended,
        idempotency_key=f"{event.number}",
    )


def some_run(life: Life) -> str:
    runs = life.memory.list_runs(limit=100).runs
    return [each.id for each in runs if each.card_type == "trade_decision" and "LONG" in each.headline][0]  # noqa: RUF015


def run_agent(life: Life, kind: str) -> None:
    life.memory.configure_deployment(deployment=TICKED, runner="claude", default_prompt="look")
    if kind == "chat":
        life.memory.chat_with_agent(deployment=TICKED, text="hello", wait_seconds=30.0)
    else:
        life.memory.run_agent(deployment=TICKED, wait_seconds=30.0)


def re_examine(life: Life) -> None:
    life.memory.configure_deployment(deployment=TICKED, runner="claude", default_prompt="look")
    now = life.clock.now()
    card = {"symbol": "ETH", "decision": "LONG", "entry": 93.0, "target": 95.5, "stop": 90.5}
    key = f"examined {now}"
    run = life.memory.record_run(
        deployment=TICKED, prompt="look", card_type="trade_decision", result=card, idempotency_key=key
    ).run
    life.memory.re_examine(run=run.id, wait_seconds=30.0)


COMMANDS: dict[str, Callable[[Life, Event], object]] = {
    "remember": lambda life, event: life.memory.remember(fact=f"My habit {event.number % 4}", topic="habit"),
    "forget": lambda life, event: life.memory.forget(fact_id=some_fact(life, event)),
    "add_fact": lambda life, event: life.memory.add_fact(fact=f"My rule {event.number % 4}"),
    "edit_fact": lambda life, event: life.memory.edit_fact(
        fact_id=some_fact(life, event), fact=f"My changed rule {event.number}"
    ),
    "set_fact_confidence": lambda life, event: life.memory.set_fact_confidence(
        fact_id=some_fact(life, event), confidence=("asserted", "inferred")[event.number % 2]
    ),
    "restore_fact": lambda life, event: life.memory.restore_fact(fact_id=some_fact(life, event)),
    "compose_chat": lambda life, event: life.memory.compose_chat(session=f"session {event.number % 3}"),
    "import_events": lambda life, event: life.memory.import_events(
        path=str(FOLDER / "events.csv"), timezone=("UTC", "Asia/Tokyo")[event.number % 2]
    ),
    "open_account": lambda life, event: life.memory.open_account(
        venue="v", name=f"account {event.number}", mode=MODES[event.number % 3]
    ),
    "save_strategy": lambda life, event: life.memory.save_strategy(
        name=("VolBreakout", "Later")[event.number % 2], thesis=f"version {event.number}"
    ),
    "deploy": lambda life, event: life.memory.deploy(
        strategy_name="VolBreakout", account=("main", "paper")[event.number % 2], name=f"run {event.number % 2}"
    ),
    "remember_trade": remember_trade,
    "remember_inaction": lambda life, event: life.memory.remember_inaction(
        symbol="XAUUSD", strategy_name="VolBreakout", reason=f"too wide {event.number % 2}", deployment=REPORTED
    ),
    "import_trades": lambda life, event: life.memory.import_trades(
        path=str(FOLDER / ("trades.csv", "lessons.csv")[event.number % 2]), strategy_name="Fade"
    ),
    "annotate_trade": lambda life, event: life.memory.annotate_trade(
        trade_id=some_trade(life, event).id, confidence=event.number % 5 / 4, market_context="a sweep, then back"
    ),
    "archive_episode": archive_episode,
    "record_decision": record_decision,
    "record_equity": lambda life, event: life.memory.record_equity(
        equity=10_000.0 - 500.0 * (event.number % 5), account="paper", at=life.clock.now() - event.late * DAY
    ),
    "add_belief": lambda life, event: life.memory.add_belief(
        proposition=f"longs carry {event.number}",
        symbol=("XAUUSD", "BTC")[event.number % 2],
        direction="long",
        mode=MODES[event.number % 3],
    ),
    "retire_belief": lambda life, event: life.memory.retire_belief(
        belief_id=life.memory.list_beliefs(mode="live").beliefs[-1].belief.id, reason="enough"
    ),
    "create_trading_plan": create_trading_plan,
    "check_active_plans": lambda life, event: life.memory.check_active_plans(
        current_context=ContextVector(regime=REGIMES[event.number % 3]), symbol=("BTC", None)[event.number % 2]
    ),
    "cancel_plan": lambda life, event: life.memory.cancel_plan(plan_id=some_plan(life, event)),
    "settle_plan": lambda life, event: life.memory.settle_plan(plan_id=some_plan(life, event), followed=True),
    "reflect": lambda life, event: life.memory.reflect(deployment=(TAUGHT, TICKED)[event.number % 2]),
    "promote_lessons": lambda life, event: life.memory.promote_lessons(
        deployment=TAUGHT, lessons=LESSONS.replace("retest", f"retest {event.number % 3}")
    ),
    "accept_proposal": lambda life, event: life.memory.accept_proposal(proposal_id=some_proposal(life)),
    "reject_proposal": lambda life, event: life.memory.reject_proposal(proposal_id=some_proposal(life)),
    "close_tick": close_tick,
    "backfill": lambda life, event: life.memory.backfill(deployment=TICKED),
    "import_bars": lambda life, event: life.memory.import_bars(
        path=str(FOLDER / "bars.csv"), symbol="XAUUSD", interval_seconds=3600
    ),
    "record_bars": record_bars,
    "import_positions": lambda life, event: life.memory.import_positions(
        path=str(FOLDER / "positions.jsonl"),
        timezone="UTC",
        bars=str(FOLDER / "positions_bars.jsonl"),
        name=f"log {event.number % 2}",
    ),
    "save_instrument": lambda life, event: life.memory.save_instrument(
        symbol=("BTC", "XAUUSD")[event.number % 2], multiplier=1.0 + event.number % 3, underlying="metal"
    ),
    "import_fills": lambda life, event: life.memory.import_fills(
        path=str(FOLDER / "fills.csv"),
        account=f"fills {event.number % 2}",
        mode="paper",
        columns={"Ausgeführt": "quantity"},
    ),
    "export_data": lambda life, event: life.memory.export_data(
        path=str(life.folder / f"export {life.clock.now().timestamp()} {event.number}")
    ),
    "backup": lambda life, event: life.memory.backup(
        path=str(life.folder / f"backup {life.clock.now().timestamp()} {event.number}")
    ),
    "vacuum": lambda life, event: life.memory.vacuum(),
    "migrate_legacy": lambda life, event: life.memory.migrate_legacy(path=str(life.folder / "old.db"), timezone="UTC"),
    "init_documents": lambda life, event: life.memory.init_documents(),
    "reindex": reindex,
    "append_note": lambda life, event: life.memory.append_note(
        text=f"A sweep in XAUUSD, {event.number}.", agent="a", run=some_trade(life, event).id
    ),
    "propose_edit": propose_edit,
    "approve_edit": lambda life, event: life.memory.approve_edit(edit_id=some_edit(life)),
    "reject_edit": lambda life, event: life.memory.reject_edit(edit_id=some_edit(life), reason="no"),
    "doctor": lambda life, event: life.memory.doctor(repair=True),
    "record_verification": lambda life, event: life.memory.record_verification(everything=event.number % 2 == 0),
    "create_key": lambda life, event: life.memory.create_key(name=f"agent {event.number} {life.memory.now}"),
    "revoke_key": lambda life, event: life.memory.revoke_key(key_id=life.memory.list_keys().keys[0].id),
    "claim_tick": lambda life, event: life.memory.claim_tick(deployment=TICKED, at=life.memory.now, holder="loop"),
    "record_intent": lambda life, event: life.memory.record_intent(
        deployment=TICKED,
        at=life.memory.now,
        sequence=life.memory.claim_tick(deployment=TICKED, at=life.memory.now, holder="loop").sequence,
        holder="loop",
        intent="{}",
    ),
    "release_claim": lambda life, event: life.memory.release_claim(deployment=TICKED, holder="loop"),
    "configure_deployment": lambda life, event: life.memory.configure_deployment(
        deployment=TICKED,
        runner="claude",
        default_prompt=f"look {event.number}",
        review_decisions=bool(event.number % 2),
        card_type=("trade_decision", "none")[event.number % 2],
    ),
    "stop_deployment": stop_and_resume,
    "record_run": record_run,
    "save_card_type": lambda life, event: life.memory.save_card_type(
        name="view", fields=[CardField(name=f"view {event.number}", type="text")]
    ),
    "share_session": lambda life, event: life.memory.share_session(deployment=TICKED),
    "reset_session": lambda life, event: (
        life.memory.share_session(deployment=TICKED),
        life.memory.reset_session(deployment=TICKED),
    ),
    "unshare_session": lambda life, event: life.memory.unshare_session(deployment=TICKED),
    "run_agent": lambda life, event: run_agent(life, "manual"),
    "chat_with_agent": lambda life, event: run_agent(life, "chat"),
    "re_examine": lambda life, event: re_examine(life),
    "resolve_decisions": lambda life, event: life.memory.resolve_decisions(),
    "settle_decision": lambda life, event: life.memory.settle_decision(run=some_run(life), entry=93.0, exit=94.0),
}
IMPORTS = {"import_trades", "import_fills", "import_bars", "import_positions", "import_events"}
OF_THE_PAST = {*IMPORTS, "record_bars", "migrate_legacy", "backfill"}
"""The commands that record what was known earlier, whatever their event says."""


# Questions: every query, and the dry runs of commands.

Question = tuple[str, dict[str, Any]]


def questions(memory: Memory, as_of: datetime, seen_at: datetime | None) -> Iterator[Question]:
    """Every query as of the instants, about what there is in the store now."""
    when: dict[str, Any] = {"as_of": as_of, "seen_at": seen_at}
    yield "get_my_deployments", {"detail": "trades"} | when
    yield "list_keys", dict(when)
    yield "list_strategies", dict(when)
    yield "list_accounts", dict(when)
    yield "list_instants", {"limit": 50} | when
    yield "list_bars", {"symbol": "XAUUSD", "limit": 5} | when
    yield "last_verification", dict(when)
    yield "list_imports", dict(when)
    yield from questions_of_a_coach(when)
    yield "list_trades", {"limit": 5} | when
    yield "list_trades", {"mode": "all", "order": "worst", "count": True, "limit": 5} | when
    yield "compare_exits", dict(when)
    yield "list_trades", {"mode": "all", "status": "open"} | when
    yield "list_trades", {"strategy_name": "Nobody", "symbol": "ETH"} | when
    trades = [*memory.list_trades(mode="all", limit=2).trades, *memory.list_trades(mode="all", status="open").trades]
    for trade in trades:
        yield "get_trade", {"trade_id": trade.id} | when
        yield "get_trade_reflection", {"trade_id": trade.id} | when
    for more in RECALLS:
        yield "recall_memories", {"symbol": "XAUUSD"} | more | when
    recalled = memory.recall_memories(symbol="XAUUSD", mode="all", **when)
    for each in recalled.nearest[:2]:
        yield "explain_recall", {"memory_id": each.id, "recall": recalled.recall}
    for decision in memory.list_decisions(deployment=TICKED, limit=2).decisions:
        yield "list_recalls", {"decision_id": decision.id} | when
        yield "get_decision", {"decision_id": decision.id} | when
    for strategy in ("VolBreakout", "Other", "Fade"):
        subject = {"symbol": "XAUUSD", "direction": "long", "strategy_name": strategy}
        yield "position_size", subject | when
        yield "compare_lessons", {"strategy_name": strategy} | when
        yield "does_memory_help", {"strategy_name": strategy} | when
        yield "list_lessons", {"strategy_name": strategy} | when
    for name in (None, TICKED, REPORTED, TAUGHT, "run 0", "run 1"):
        for query in ABOUT_A_DEPLOYMENT:
            yield query, {"deployment": name} | when
    for run in memory.list_runs(limit=5).runs:
        yield "get_run", {"run": run.id} | when
        if run.kind != "tick":
            yield "conviction_history", {"run": run.id} | when
            yield "prepare_re_examination", {"run": run.id} | when
    yield "check_active_plans", {"current_context": {"regime": "ranging"}, "dry_run": True} | when
    yield "reflect", {"deployment": TAUGHT, "dry_run": True} | when
    at = as_of + JUST_BEFORE
    tick = {"deployment": TICKED, "at": at, "before": a_snapshot(at=at), "symbols": ["BTC", "XAUUSD"]}
    yield "open_tick", tick | {"seen_at": seen_at}
    for query in ("a sweep of the low", "XAUUSD", '"half size"', "xylophone"):
        yield "search_memory", {"query": query} | when
    for path in ("SOUL.md", "journal/2026-07-01.md"):
        yield "read_memory", {"path": path} | when
    yield "index_health", when
    yield "list_edits", when
    yield "list_instruments", when


def questions_of_a_coach(when: dict[str, Any]) -> Iterator[Question]:
    """Facts, events ahead, and performance."""
    for archived in (False, True):
        yield "list_facts", {"archived": archived} | when
    yield "get_upcoming_events", {"lookahead_hours": 72, "deployment": TICKED} | when
    for strategy in ("VolBreakout", "Other", "Fade"):
        yield "get_strategy_performance", {"strategy": strategy, "detail": "full"} | when
    for category in ("symbol", "month", "deployment"):
        yield "break_down", {"by": category} | when
    for name in (TICKED, REPORTED, TAUGHT):
        yield "get_equity", {"deployment": name} | when


RECALLS: list[dict[str, Any]] = [
    {},
    {"strategy_name": "Other", "memory_types": ["episodic", "procedural"]},
    {"context_regime": "trending_up", "direction": "long", "market_context": "the range broke", "limit": 1},
    {"strategy_name": "VolBreakout", "mode": "all", "period_weight": True, "context_regime": "ranging"},
    {"deployment": REPORTED, "context": {"regime": "ranging", "drawdown_pct": 0.05}, "tags": ["a"]},
]
ABOUT_A_DEPLOYMENT = (
    "get_agent_state",
    "get_state_history",
    "list_instants",
    "get_behavioral_analysis",
    "list_beliefs",
    "list_plans",
    "active_lessons",
    "review_period",
    "list_proposals",
    "preview_context",
    "list_decisions",
    "get_recent_activity",
    "list_runs",
    "get_my_decisions",
    "session_status",
)


def answer(memory: Memory, question: Question) -> str:
    """The whole answer as JSON, or the error."""
    name, arguments = question
    try:
        return canonical_json(plain(getattr(memory, name)(**arguments)))
    except BacksightError as error:
        return f"{type(error).__name__}: {error}"


class Diary:
    """Questions with the answers that were given to them."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.entries: list[tuple[Question, str]] = []

    def ask(self, as_of: datetime, seen_at: datetime | None) -> None:
        asked = list(questions(self.memory, as_of, seen_at))
        self.entries += [(question, answer(self.memory, question)) for question in asked]

    def check(self) -> None:
        """Ask again, and expect the same answers."""
        for question, former in self.entries:
            assert answer(self.memory, question) == former, question


NEVER_MADE = "00000000-0000-0000-0000-000000000000"


def made_things(memory: Memory) -> Iterator[tuple[str, str, str]]:
    """What a query can be about: the query, the argument that names the thing, and the thing's id or name."""
    for status in get_args(TradeStatus):
        for trade in memory.list_trades(mode="all", status=status, limit=100).trades:
            yield "get_trade", "trade_id", trade.id
            yield "get_trade_reflection", "trade_id", trade.id
    for decision in memory.list_decisions(deployment=TICKED, limit=100).decisions:
        yield "list_recalls", "decision_id", decision.id
    for run in memory.list_runs(limit=100).runs:
        yield "get_run", "run", run.id
        if run.kind != "tick":
            yield "conviction_history", "run", run.id
            yield "prepare_re_examination", "run", run.id
    for summary in memory.get_my_deployments().deployments:
        yield "get_my_deployments", "deployment", summary.deployment.name
        yield "get_agent_state", "deployment", summary.deployment.id


EVENTS = st.builds(
    Event, st.sampled_from(sorted(COMMANDS)), st.integers(0, 30), st.sampled_from([0, 0, 0, 1, 9]), st.integers(0, 30)
)
TRADES = st.builds(Event, st.just("remember_trade"), st.integers(0, 30), st.sampled_from([0, 0, 2]), st.integers(0, 99))
HISTORIES = st.lists(EVENTS | EVENTS | TRADES, min_size=4, max_size=12)


def check_history(
    before: list[Event], after: list[Event], days: int, *, url: str = "sqlite://"
) -> tuple[set[str], set[str]]:
    """Ask after some events as of now and as of some days earlier, and again after more events, also of a stranger.

    Returns the commands that were refused and the operations that were asked.
    """
    with a_life(url) as life:
        for event in before:
            life.live(event)
        diary, simulated, now = Diary(life.memory), Diary(life.memory), life.clock.now()
        earlier = set(made_things(life.memory))
        diary.ask(now, now)
        diary.ask(now - days * DAY, now)
        if not any(event.late or event.command in OF_THE_PAST for event in after):
            simulated.ask(now, None)
        stranger = Memory(database=life.memory.database, clock=life.clock, owner="eve", actor="test")
        deployed(stranger)
        stranger.remember_trade(**a_trade_call(closed_at=now - DAY))
        for event in after:
            life.live(event)
        diary.check()
        for query, argument, later in set(made_things(life.memory)) - earlier:
            unknown = answer(life.memory, (query, {argument: NEVER_MADE, "as_of": now, "seen_at": now}))
            then = answer(life.memory, (query, {argument: later, "as_of": now, "seen_at": now}))
            assert then == unknown.replace(NEVER_MADE, later)
        life.clock.at = now  # a simulation over a store that holds its future
        simulated.check()
        return life.refused, {name for (name, _), _ in diary.entries}


def law(examples: int) -> Callable[[Any], Any]:
    """Settings without shrinking: a failing history is printed as generated."""
    return settings(max_examples=examples, phases=(Phase.explicit, Phase.generate))


@law(3)
@given(HISTORIES, HISTORIES, st.integers(0, 40))
def test_no_answer_depends_on_what_was_recorded_later(before: list[Event], after: list[Event], days: int) -> None:
    check_history(before, after, days)


@pytest.mark.slow
@law(40)
@given(HISTORIES, HISTORIES, st.integers(0, 40))
def test_no_answer_depends_on_what_was_recorded_later_in_many_histories(
    before: list[Event], after: list[Event], days: int
) -> None:
    check_history(before, after, days)


def in_order(*names: str) -> list[Event]:
    return [Event(name, 3, 0, number + 1) for number, name in enumerate(names)]


BEGINNING = in_order(
    *("remember_trade", "close_tick", "close_tick", "close_tick", "reindex", "record_bars", "record_equity"),
    *("add_belief", "add_belief", "create_trading_plan", "create_trading_plan", "propose_edit", "propose_edit"),
    *("record_run", "record_run"),
)
FIRST = ("approve_edit", "reject_edit", "settle_plan")
EVERY_COMMAND = in_order(*FIRST, *(name for name in COMMANDS if name not in FIRST))
"""Every command, in an order in which none is refused after the beginning."""


def test_every_query_is_asked_again_after_every_command() -> None:
    commands = {name for name, operation in OPERATIONS.items() if operation.kind == "command"}
    removes_rows = {"import_data", "restore", "erase_owner", "erase_fact", "retention"}
    known = commands - removes_rows - {"void_tick"}  # which changes the past
    assert COMMANDS.keys() == known, "add the new command to COMMANDS"
    refused, asked = check_history(BEGINNING, EVERY_COMMAND, 5)
    assert refused == set()
    timeless = {"verify_audit", "export_audit", "status"}  # which are about the store, and not about what it remembers
    assert asked - commands == OPERATIONS.keys() - commands - timeless, "add the new query to questions"
    dry_runs = {
        name for name in commands - IMPORTS - removes_rows if "dry_run" in OPERATIONS[name].arguments.model_fields
    }
    assert asked & commands == dry_runs, "a dry run of anything but a file is a question"


@pytest.mark.slow
def test_every_query_is_asked_again_after_every_command_on_postgresql() -> None:
    refused, _ = check_history(BEGINNING, EVERY_COMMAND, 5, url=fresh_postgres())
    assert refused == set()
