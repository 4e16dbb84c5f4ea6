"""Every operation gives the same answer on every surface, errors included."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from backsight.core.ids import derive_id
from backsight.core.memory.conditions import parse_condition
from backsight.core.reflection.notes import plan_subject, proposal_id
from backsight.memory import OPERATIONS
from backsight.services.file_access import PLAIN_FIELDS
from backsight.testing import T0, FakeClock, a_trade_call
from backsight.testing.claude_stand_in import stand_in
from parity.arguments import EVERY_ARGUMENT, FOLDER, LAST_TICK, RUN, Step
from parity.surfaces import SURFACES
from support import LEGACY_PATTERN, LEGACY_TRADE, LESSONS, a_legacy_database, fresh_postgres

DEPLOYED = {"deployment": "VolBreakout@main"}
CONTEXT = {"atr_d1": 95.0, "regime": "trending_up", "session": "london", "drawdown_pct": 0.0}
BARS = str(Path(__file__).with_name("bars.csv"))
POSITIONS = {"path": str(Path(__file__).with_name("positions.jsonl")), "timezone": "UTC"}
TRADED = {**POSITIONS, "bars": str(Path(__file__).with_name("positions_bars.jsonl")), "name": "agent é", "mode": "live"}
TRADES = str(Path(__file__).with_name("trades.csv"))
JOURNAL = str(Path(__file__).with_name("journal.csv"))
FILLED = {
    "path": str(Path(__file__).with_name("fills.csv")),
    "account": "börse",
    "mode": "paper",
    "columns": {"Ausgeführt": "quantity"},
}
LEARNED = {"deployment": "manual:Reverting"}
LEARNING = derive_id("deployment", "ana", "manual:Reverting")
ADVICE = plan_subject(parse_condition({"regime": "ranging"}), {"type": "skip_trade"})
PROPOSED = [
    proposal_id(LEARNING, "belief", "regime_fit/regime=ranging"),
    proposal_id(LEARNING, "plan", ADVICE),
]
LATER = "2026-06-04T09:30:00+00:00"

BAR = {
    "symbol": "BTC/USDT:PERP",
    "interval_seconds": 3600,
    "opened_at": "2026-06-04T08:00:00Z",
    "open": 100.0,
    "high": 102.0,
    "low": 99.0,
    "close": 101.0,
}


def holding(*, size: float = 2.0, mark: float | None = 101.0, account: str = "main") -> dict[str, Any]:
    """A snapshot with one position in it."""
    position = {"position_key": "p-1", "symbol": "BTC/USDT:PERP", "direction": "long", "size": size, "mark": mark}
    if mark is None:
        del position["mark"]
    portfolio = {"at": NOW, "equity": 1e4, "cash": 1e4, "account": account, "positions": [position]}
    return {"portfolio": portfolio, "marks": {"BTC/USDT:PERP": 101.0}}


NOW = "2026-06-04T10:00:00Z"
FLAT = {"portfolio": {"at": NOW, "equity": 1e4, "cash": 1e4}, "marks": {"BTC/USDT:PERP": 101.0}}
TICK = {**DEPLOYED, "at": NOW, "before": FLAT}
ORDER = {"symbol": "BTC/USDT:PERP", "quantity": 2.0, "stop_price": 99.5, "reason": 'a "break" of the range'}
ENTRY = {
    **TICK,
    "after": holding(),
    "proposal": ORDER,
    "verdict": {"kind": "executed"},
    "confidence": 0.7,
    "shown": [
        {"name": "recent_activity", "text": "## Recent activity (this session)\n- executed orders today (UTC): 1"}
    ],
    "citations": ["rules.md:12"],
    "model": "m-1",
}

EXECUTED = {"verdict": {"kind": "executed"}}

PLAN = {
    "trigger_condition": {"all": [{"regime": "ranging"}, {"field": "drawdown_pct", "op": "<", "value": 0.15}]},
    "planned_action": {"type": "skip_trade"},
    "reasoning": "three losses there",
    "idempotency_key": "plan one",
}

FIRST_TRADE = ("remember_trade", a_trade_call(idempotency_key="one", closed_at=LATER, tags=["a b", "é"]))

BELIEF = (
    "add_belief",
    {
        "proposition": "breaks hold in a trend",
        "strategy_name": "VolBreakout",
        "regime": "trending_up",
        "conditions": {"field": "confidence", "op": ">=", "value": 0.5},
        "mode": "paper",
    },
)
CALL = {
    **DEPLOYED,
    "symbol": "BTC/USDT:PERP",
    "direction": "long",
    "strategy_name": "VolBreakout",
    "horizon_hours": 4.0,
    "reasoning": "would buy, may not",
    "recalled": ["one"],
    "idempotency_key": "call",
}

NOTE = {"text": "Stopped out.\n\nToo early.", "agent": "btc 5m", "run": "run-1"}
EDIT = (
    "propose_edit",
    {"path": "SOUL.md", "text": "# Soul\n\nPatient.\n", "reason": "clearer", "agent": "btc 5m", "run": "run-1"},
)
OTHER_EDIT = ("propose_edit", {**EDIT[1], "text": "# Soul\n\nBold.\n"})

SCENARIO: list[tuple[str, dict[str, Any]]] = [
    ("get_agent_state", {}),
    ("check_active_plans", {"current_context": {"regime": "ranging"}}),
    ("recall_memories", {"symbol": "XAUUSD"}),
    ("list_lessons", {}),
    ("record_equity", {"equity": 10_000.0}),
    ("open_account", {"venue": "binance", "name": "main", "currency": "USDT", "mode": "paper"}),
    ("open_account", {"venue": "binance", "name": "main", "currency": "USDT", "mode": "paper"}),
    ("open_account", {"venue": "binance", "name": "main"}),
    ("save_strategy", {"name": "VolBreakout", "rules": ["in on a close", "out at 2R"], "avoid": ["news"]}),
    ("deploy", {"strategy_name": "VolBreakout", "account": "main"}),
    ("deploy", {"strategy_name": "Nothing", "account": "main"}),
    ("deploy", {"strategy_name": "VolBreakout", "account": "mian"}),
    FIRST_TRADE,
    FIRST_TRADE,
    ("remember_trade", a_trade_call(idempotency_key="one", pnl=5.0)),
    (
        "remember_trade",
        a_trade_call(**DEPLOYED, pnl=-0.0, pnl_r=0.0, context={"atr_h1": 20.0}, max_adverse_excursion=3),
    ),
    ("remember_trade", a_trade_call(pnl=-1175.0)),
    ("remember_trade", a_trade_call(opened_at="2026-06-04T09:45:00Z", closed_at=LATER)),
    ("remember_trade", a_trade_call(direction="up")),
    ("remember_trade", a_trade_call(context_regime="trend_up")),
    ("remember_trade", a_trade_call(confidence=1.2)),
    ("remember_trade", a_trade_call(pnl="a lot")),
    ("remember_trade", a_trade_call(context={"sesion": "london"})),
    ("remember_trade", a_trade_call(context={"session": "london", "price": "high"})),
    ("remember_trade", a_trade_call(context="{")),
    ("remember_trade", a_trade_call(closed_at="2026-06-04T09:30:00")),
    ("remember_trade", a_trade_call(closed_at="yesterday")),
    ("remember_trade", a_trade_call(symbol="X" * 65)),
    ("remember_inaction", {"symbol": "XAUUSD", "strategy_name": "VolBreakout", "reason": "range too narrow"}),
    ("remember_inaction", {"symbol": "XAUUSD", "strategy_name": "VolBreakout", "reason": ""}),
    ("recall_memories", {"symbol": "XAUUSD", "context": CONTEXT, "direction": "long", "limit": 3, "mode": "all"}),
    ("recall_memories", {"symbol": "XAUUSD", "memory_types": ["episodic", "semantic"], "as_of": LATER}),
    ("recall_memories", {"symbol": "EURUSD"}),
    ("recall_memories", {"symbol": "XAUUSD", "limit": 0}),
    ("recall_memories", {"symbol": "XAUUSD", "memory_types": ["episodical"]}),
    ("recall_memories", {"symbol": "XAUUSD", "cursor": "nonsense", "period_weight": True}),
    ("explain_recall", {"memory_id": "nothing", "recall": "nonsense"}),
    ("list_recalls", {"decision_id": "nothing"}),
    ("list_trades", {"limit": 1}),
    ("list_trades", {"symbol": "XAUUSD", "since": LATER}),
    ("list_trades", {"cursor": "nonsense"}),
    ("get_trade", {"trade_id": "nothing"}),
    ("get_my_deployments", {"detail": "trades"}),
    ("get_my_deployments", {"deployment_id": "nothing"}),
    ("import_bars", {"path": BARS, "symbol": "XAUUSD"}),
    ("import_bars", {"path": BARS, "symbol": "XAUUSD", "interval_seconds": 3600}),
    ("import_bars", {"path": BARS}),
    ("import_bars", {"path": BARS, "symbol": "XAUUSD", "timezone": "New York"}),
    ("import_bars", {"path": "nowhere.csv", "symbol": "XAUUSD"}),
    ("record_bars", {"bars": [{**BAR, "opened_at": "2026-06-04T07:00:00Z"}, BAR]}),
    ("record_bars", {"bars": [BAR, {**BAR, "opened_at": "2026-06-04T07:00:00Z"}]}),
    ("record_bars", {"bars": [{**BAR, "high": 1.0}]}),
    ("record_bars", {"bars": [BAR, BAR]}),
    ("record_bars", {"bars": [{**BAR, "opened_at": "2026-06-04T09:30:00Z"}]}),
    ("import_positions", TRADED),
    ("import_positions", TRADED),
    ("import_positions", {**TRADED, "usd_rate": 1.25, "currency": "EUR"}),
    ("import_positions", {**TRADED, "timezone": "Asia/Tokyo"}),
    ("import_positions", {**TRADED, "mode": "real"}),
    ("import_positions", {**TRADED, "bars": "nowhere.jsonl"}),
    ("import_positions", POSITIONS),
    ("import_positions", {**POSITIONS, "path": BARS}),
    ("import_trades", {"path": JOURNAL, "columns": {"Ertrag": "pnl"}}),
    ("import_trades", {"path": JOURNAL, "columns": {"Ertrag": "pnl"}, "mode": "sim", "skip_broken": True}),
    ("import_fills", {**FILLED, "dry_run": True}),
    ("import_fills", FILLED),
    ("import_fills", FILLED),
    ("import_fills", {**FILLED, "mode": None}),
    ("import_fills", {**FILLED, "format": "fill-table"}),
    ("import_fills", {**FILLED, "columns": {"Ausgeführt": "size"}}),
    ("import_fills", {**FILLED, "path": TRADES}),
    ("import_fills", {**FILLED, "path": "nowhere.csv"}),
    ("import_fills", {**FILLED, "account": "agent é"}),
    ("list_trades", {"deployment": "agent é@agent é", "as_of": "2026-06-04T06:00:00Z"}),
    ("recall_memories", {"symbol": "BTC/USDT", "as_of": "2026-06-04T06:00:00Z"}),
    ("import_trades", {"path": TRADES, "strategy_name": "Fade"}),
    ("import_trades", {"path": TRADES, "strategy_name": "Fade"}),
    ("import_trades", {"path": TRADES, "strategy_name": "Fade", "timezone": "Europe/Berlin"}),
    ("import_trades", {"path": TRADES}),
    ("import_trades", {"path": TRADES, "strategy_name": "Fade", "deployment": "nothing"}),
    ("import_trades", {"path": BARS, "strategy_name": "Fade"}),
    ("import_trades", {"path": "nowhere.csv"}),
    ("import_trades", {"path": str(Path(__file__).with_name("lessons.csv")), "strategy_name": "Reverting"}),
    ("save_instrument", {"symbol": "ES", "multiplier": 50.0, "kind": "future"}),
    ("save_instrument", {"symbol": "ES", "multiplier": 50.0, "kind": "future"}),
    ("save_instrument", {"symbol": "ES", "multiplier": 0.0}),
    ("list_instruments", {}),
    ("reflect", {**LEARNED, "dry_run": True}),
    ("reflect", LEARNED),
    ("reflect", LEARNED),
    ("reflect", DEPLOYED),
    ("active_lessons", LEARNED),
    ("active_lessons", {**LEARNED, "as_of": LATER}),
    ("list_lessons", LEARNED),
    ("list_lessons", {"strategy_name": "Reverting", "limit": 1}),
    ("list_lessons", {"strategy_name": "Revertig"}),
    ("list_lessons", {**LEARNED, "strategy_name": "Reverting"}),
    ("compare_lessons", {"strategy_name": "Reverting"}),
    ("compare_lessons", {"strategy_name": "nothing"}),
    ("does_memory_help", {"strategy_name": "Reverting"}),
    ("does_memory_help", {"strategy_name": "Reverting", "mode": "sims"}),
    ("review_period", {**LEARNED, "period": "monthly", "ending": LATER}),
    ("review_period", {**LEARNED, "period": "yearly"}),
    ("review_period", {**LEARNED, "ending": "2026-06-05T10:00:00Z"}),
    ("list_proposals", LEARNED),
    ("list_proposals", {"status": "perhaps"}),
    ("accept_proposal", {"proposal_id": PROPOSED[0], "reason": "so it is"}),
    ("accept_proposal", {"proposal_id": PROPOSED[0]}),
    ("reject_proposal", {"proposal_id": PROPOSED[0]}),
    ("reject_proposal", {"proposal_id": PROPOSED[1], "reason": "too few"}),
    ("accept_proposal", {"proposal_id": PROPOSED[1]}),
    ("accept_proposal", {"proposal_id": "nothing"}),
    ("promote_lessons", DEPLOYED),
    ("promote_lessons", {**DEPLOYED, "lessons": "### Sizing\n- less is more"}),
    ("promote_lessons", {**DEPLOYED, "lessons": "- NEWS".join(LESSONS.partition("- wait for the retest")[::2])}),
    ("promote_lessons", {**DEPLOYED, "lessons": LESSONS}),
    ("promote_lessons", {**DEPLOYED, "lessons": LESSONS}),
    ("open_tick", {**TICK, "symbols": ["XAUUSD", "BTC/USDT:PERP"], "bars": [BAR]}),
    ("open_tick", {**TICK, "at": "2026-06-05T10:00:00Z"}),
    ("open_tick", {**TICK, "market": [{"name": "plans", "text": "## Plans that apply"}]}),
    ("preview_context", {**DEPLOYED, "symbols": ["XAUUSD"], "caps": [{"name": "position", "value": "$5,000"}]}),
    ("preview_context", {"deployment": "nothing"}),
    ("close_tick", ENTRY),
    ("close_tick", ENTRY),
    ("close_tick", {**ENTRY, "confidence": 0.1}),
    ("close_tick", {**TICK, "at": LATER, "verdict": {"kind": "noop"}}),
    ("close_tick", {**TICK, "sequence": 1, "verdict": {"kind": "rejected"}}),
    ("close_tick", {**TICK, "sequence": 1, "verdict": {"kind": "executed"}}),
    ("close_tick", {**TICK, "sequence": 1, "before": holding(size=-1.0), "verdict": {"kind": "noop"}}),
    ("close_tick", {**TICK, "sequence": 1, "before": holding(mark=None), "verdict": {"kind": "noop"}}),
    ("open_tick", {**TICK, "before": holding(size=0.0), "symbols": None}),
    ("close_tick", {**TICK, "sequence": 1, "before": holding(account="other"), "verdict": {"kind": "noop"}}),
    ("close_tick", {**TICK, "sequence": 1, "before": FLAT, "verdict": {"kind": "noop"}}),
    ("close_tick", {**TICK, "sequence": 2, "proposals": [{"order": ORDER}]}),
    ("close_tick", {**TICK, "sequence": 2, "proposal": ORDER, "proposals": [{"order": ORDER}], **EXECUTED}),
    ("close_tick", {**TICK, "sequence": 2, "proposals": [{"order": ORDER, "verdict": {"kind": "rejected"}}]}),
    ("get_decision", {"decision_id": "nothing"}),
    ("list_decisions", {**DEPLOYED, "kind": "executed", "limit": 1}),
    ("list_decisions", {**DEPLOYED, "cursor": "nonsense"}),
    ("list_decisions", {"deployment": "nothing"}),
    ("get_recent_activity", DEPLOYED),
    ("get_recent_activity", {**DEPLOYED, "as_of": LATER}),
    ("get_recent_activity", {"deployment": "nothing"}),
    ("create_trading_plan", PLAN),
    ("create_trading_plan", PLAN),
    ("create_trading_plan", {**PLAN, "reasoning": "something else"}),
    ("create_trading_plan", {**PLAN, "trigger_condition": {"regimee": "ranging"}}),
    ("create_trading_plan", {**PLAN, "planned_action": {"type": "hope"}}),
    ("check_active_plans", {**DEPLOYED, "symbol": "XAUUSD", "current_context": {"regime": "ranging"}}),
    ("check_active_plans", {"deployment": "nothing"}),
    ("list_plans", DEPLOYED),
    ("list_plans", {"status": "active", "as_of": LATER}),
    ("cancel_plan", {"plan_id": "nothing"}),
    ("check_active_plans", {"current_context": {"regime": "ranging"}}),
    ("list_plans", {"status": "settled"}),
    ("recall_memories", {"symbol": "XAUUSD", "strategy_name": "Fade", "memory_types": ["procedural"]}),
    ("recall_memories", {"symbol": "XAUUSD", "memory_types": ["affective", "prospective"], "mode": "all"}),
    ("recall_memories", {"symbol": "SOL"}),
    ("position_size", {"symbol": "XAUUSD", "direction": "long", "strategy_name": "VolBreakout"}),
    ("list_trades", {"mode": "all", "limit": 1}),
    ("list_trades", {"symbol": "SOL"}),
    ("list_beliefs", {}),
    ("active_lessons", {}),
    ("get_recent_activity", {}),
    ("record_equity", {"equity": 9_000.0}),
    ("record_equity", {"account": "main", "equity": 9_000.0}),
    ("record_equity", {"account": "main", "equity": 9_000.0}),
    ("record_equity", {"account": "main", "equity": 9_500.0}),
    ("record_equity", {"account": "main", "equity": -1.0}),
    ("record_equity", {**DEPLOYED, "equity": 9_900.0, "at": LATER, "transfer": 500.0}),
    BELIEF,
    BELIEF,
    ("add_belief", {**BELIEF[1], "reference": 0.4}),
    ("add_belief", {"proposition": "it works"}),
    ("add_belief", {"proposition": "it works", "conditions": {"regimee": "ranging"}}),
    ("remember_trade", a_trade_call(**DEPLOYED, idempotency_key="two", opened_at=LATER, closed_at=NOW)),
    ("list_beliefs", {**DEPLOYED, "regime": "ranging"}),
    ("list_beliefs", {"mode": "paper", "as_of": LATER, "weighting": "outcome"}),
    ("list_beliefs", {"mode": "sims"}),
    ("retire_belief", {"belief_id": "nothing"}),
    ("get_behavioral_analysis", {"strategy_name": "VolBreakout"}),
    ("get_behavioral_analysis", {**DEPLOYED, "symbol": "XAUUSD", "as_of": LATER}),
    ("record_decision", CALL),
    ("record_decision", {**CALL, "direction": "short"}),
    ("record_decision", {**CALL, "horizon_hours": 1e300}),
    ("get_trade_reflection", {"trade_id": "nothing"}),
    ("annotate_trade", {"trade_id": "nothing", "reflection": "x"}),
    ("archive_episode", {"episode_id": "nothing"}),
    ("settle_plan", {"plan_id": "nothing", "followed": True}),
    ("migrate_legacy", {"path": "nothing.db"}),
    ("search_memory", {"query": "R1_RISK_PER_TRADE"}),
    ("index_health", {}),
    ("init_documents", {}),
    ("init_documents", {}),
    ("reindex", {}),
    ("search_memory", {"query": "R1_RISK_PER_TRADE", "limit": 2, "source": ["manual", "soul"]}),
    ("search_memory", {"query": '"risk at most" é\u9650%', "path_prefix": "TRADING", "until": "2036-06-04T10:00:00Z"}),
    ("search_memory", {"query": "nothing", "as_of": LATER}),
    ("search_memory", {"query": "x" * 10_001}),
    ("search_memory", {"query": "risk", "source": ["diary"]}),
    ("read_memory", {"path": "TRADING_MANUAL.md", "start_line": 5, "end_line": 7}),
    ("read_memory", {"path": "TRADING_MANUAL.md", "start_line": 99}),
    ("read_memory", {"path": "../secret"}),
    ("append_note", NOTE),
    ("append_note", NOTE),
    ("append_note", {**NOTE, "path": "../x.md"}),
    ("append_note", {**NOTE, "text": "api_key = 0123456789abcdef"}),
    EDIT,
    EDIT,
    OTHER_EDIT,
    ("propose_edit", {**EDIT[1], "path": "journal/x.md"}),
    ("list_edits", {"run": "run-1"}),
    ("list_edits", {"status": "proposed", "as_of": LATER}),
    ("approve_edit", {"edit_id": "nothing"}),
    ("reject_edit", {"edit_id": "nothing"}),
    ("doctor", {}),
    ("position_size", {**DEPLOYED, "symbol": "XAUUSD", "direction": "long", "strategy_name": "VolBreakout"}),
    ("position_size", {"symbol": "XAUUSD", "direction": "up", "strategy_name": "VolBreakout"}),
    ("get_agent_state", DEPLOYED),
    ("get_agent_state", {}),
    ("get_agent_state", {**DEPLOYED, "max_drawdown": 2.0}),
    ("backfill", DEPLOYED),
    ("backfill", {"deployment": "nothing"}),
    ("list_trades", DEPLOYED),
    ("verify_audit", {}),
    ("verify_audit", {"head": "1:beef"}),
    ("export_audit", {"after": 1, "limit": 2}),
    ("create_key", {"name": "reader"}),
    ("create_key", {"name": "reader"}),
    ("list_keys", {}),
    *((name, {}) for name in OPERATIONS),
    *((name, {"no_such_argument": "1"}) for name in OPERATIONS),
]


Call = tuple[str, dict[str, Any]]

ANSWERED: dict[str, tuple[Call, str]] = {
    "trade_id": (FIRST_TRADE, "trade.id"),
    "episode_id": (FIRST_TRADE, "episode_id"),
    "memory_id": (FIRST_TRADE, "episode_id"),
    "deployment_id": (("deploy", {"strategy_name": "VolBreakout", "account": "main"}), "deployment.id"),
    "plan_id": (("create_trading_plan", PLAN), "plan.id"),
    "new_plan_id": (next((name, more) for name, _, more in EVERY_ARGUMENT if name == "create_trading_plan"), "plan.id"),
    "belief_id": (BELIEF, "belief.belief.id"),
    "edit_id": (EDIT, "edit.id"),
    "other_edit_id": (OTHER_EDIT, "edit.id"),
    "recall": (next(call for call in SCENARIO if call[0] == "recall_memories"), "recall"),
    "recall_cursor": (
        ("recall_memories", {"symbol": "XAUUSD", "strategy_name": "VolBreakout", "mode": "all", "limit": 1}),
        "next_cursor",
    ),
    "decision_id": (("record_decision", CALL), "episode.id"),
    "tick_id": (("close_tick", ENTRY), "decision.id"),
    "last_tick_id": (("close_tick", LAST_TICK), "decision.id"),
    "run_id": (("record_run", RUN), "run.id"),
    "runs_cursor": (("list_runs", {"limit": 1}), "next_cursor"),
    "trades_cursor": (("list_trades", {"limit": 1}), "next_cursor"),
    "decisions_cursor": (("list_decisions", {**DEPLOYED, "limit": 1}), "next_cursor"),
    "fact_id": (next((name, more) for name, _, more in EVERY_ARGUMENT if name == "remember"), "fact.id"),
    "key_id": (("create_key", {"name": "reader"}), "key.id"),
    "head": (("export_audit", {}), "head"),
    "checkpoint": (("verify_audit", {}), "checkpoint"),
}
"""Arguments that are parts of earlier answers: the first call that gave the answer, and the path in the answer."""


def played(
    database: str,
    tmp_path_factory: pytest.TempPathFactory,
    surfaces: Iterable[str] = SURFACES,
    *,
    every_argument: bool = False,
    mistaken_arguments: bool = True,
) -> dict[str, list[Any]]:
    """The answers of each surface to the whole scenario, each on a store of its own."""
    answers = {}
    tables = {"trade_records": [LEGACY_TRADE], "patterns": [LEGACY_PATTERN]}
    legacy = a_legacy_database(tmp_path_factory.mktemp("legacy") / "old.db", **tables)
    exported = legacy.with_name("exported")
    for surface in surfaces:
        folder: Path = tmp_path_factory.mktemp("parity")
        for leftover in (exported, exported.with_name("backup")):
            shutil.rmtree(leftover, ignore_errors=True)
            leftover.unlink(missing_ok=True)
        url = f"sqlite:///{folder}/store.db" if database == "sqlite" else fresh_postgres()
        os.environ["BACKSIGHT_WORKSPACE"] = str(folder / "workspace")
        os.environ["BACKSIGHT_CLAUDE_PROGRAM"] = stand_in(folder / "claude")
        os.environ["BACKSIGHT_FILE_FOLDERS"] = os.pathsep.join((str(exported.parent), str(FOLDER), str(Path.cwd())))
        with SURFACES[surface](url, FakeClock(T0)) as call:
            answered: list[tuple[Call, Any]] = []

            def argument(name: str, answered: list[tuple[Call, Any]] = answered) -> Any:
                if name == "path":
                    return str(legacy)
                if name in ("exported", "backup"):
                    return str(exported.with_name(name))
                given_by, path = ANSWERED[name]
                value = next(answer for earlier, answer in answered if earlier == given_by)
                for part in path.split("."):
                    value = value[part]
                return value

            for name, keys, more in steps(every_argument=every_argument, mistaken_arguments=mistaken_arguments):
                given = {key: argument(source) for key, source in references(keys).items()}
                if "recalls" in given:
                    given["recalls"] = [given["recalls"]]
                answered.append(((name, more), call(name, {**given, **more})))
            answers[surface] = [answer for _, answer in answered]
        for name in ("WORKSPACE", "FILE_FOLDERS", "CLAUDE_PROGRAM"):
            del os.environ[f"BACKSIGHT_{name}"]
    return answers


def steps(*, every_argument: bool, mistaken_arguments: bool) -> list[Step]:
    """The calls in order, each with the arguments that come from earlier answers."""
    scenario = [(name, "", arguments) for name, arguments in SCENARIO]
    if not mistaken_arguments:
        scenario = [step for step in scenario if not (is_probe(step) and needs_arguments(step[0]))]
    return [*scenario, *FOLLOWING, *(EVERY_ARGUMENT if every_argument else [])]


def is_probe(step: Step) -> bool:
    """Whether a call passes no argument, or one that does not exist."""
    return not step[2] or "no_such_argument" in step[2]


def needs_arguments(name: str) -> bool:
    return any(field.is_required() for field in OPERATIONS[name].arguments.model_fields.values())


def references(keys: str) -> dict[str, str]:
    """Argument by argument, the name of its value in `ANSWERED`: "edit_id=other_edit_id", or one name for both."""
    pairs = [key.rpartition("=") for key in keys.split()]
    return {argument or source: source for argument, _, source in pairs}


FOLLOWING: list[Step] = [
    ("get_trade", "trade_id", {}),
    ("append_note", "run=trade_id", {"text": "Stopped out.\n\nToo early.", "agent": "btc 5m"}),
    ("append_note", "run=trade_id", {"text": "Stopped out.\n\nToo early.", "agent": "btc 5m"}),
    ("list_edits", "run=trade_id", {}),
    ("annotate_trade", "trade_id", {"reflection": "too early", "tags": ["early"], "confidence": 0.6}),
    ("annotate_trade", "trade_id", {}),
    ("explain_recall", "memory_id recall", {}),
    ("list_recalls", "decision_id", {}),
    ("get_decision", "decision_id=tick_id", {}),
    ("archive_episode", "episode_id", {}),
    ("revoke_key", "key_id", {}),
    ("get_trade_reflection", "trade_id", {}),
    ("retire_belief", "belief_id", {"reason": "no longer so"}),
    ("cancel_plan", "plan_id", {"reason": "no longer so"}),
    ("settle_plan", "plan_id", {"followed": True}),
    ("approve_edit", "edit_id", {"reason": "Half the size after two losses is sound."}),
    ("reject_edit", "edit_id", {}),
    ("reject_edit", "edit_id=other_edit_id", {"reason": "not bold"}),
    ("approve_edit", "edit_id=other_edit_id", {}),
    ("migrate_legacy", "path", {}),
    ("migrate_legacy", "path", {"timezone": "nowhere"}),
    ("import_data", "path=exported", {}),
    ("export_data", "path=exported", {"tables": "csv"}),
    ("export_data", "path=exported", {}),
    ("import_data", "path=exported", {}),
    ("import_data", "path", {}),
]
"""Calls about things that the scenario made, with the arguments that earlier answers give."""


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_every_surface_gives_the_same_answers(database: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    checked_here = database == "sqlite"  # arguments are checked before the database is used: one database is enough
    surfaces = list(SURFACES) if checked_here else ["python", "mcp"]  # no surface knows the database: two are enough
    answers = played(database, tmp_path_factory, surfaces, every_argument=True, mistaken_arguments=checked_here)
    calls = steps(every_argument=True, mistaken_arguments=checked_here)
    for surface in surfaces:
        for step, expected, answer in zip(calls, answers["python"], answers[surface], strict=True):
            if surface in ("rest", "mcp") and is_about_file(step[0], expected):
                is_argument = expected["field"] in OPERATIONS[step[0]].arguments.model_fields
                hidden = {"message": ""} if is_argument else {"message": "", "field": ""}  # the name of a column
                answer, expected = answer | hidden, expected | hidden
            assert without_actor(answer) == without_actor(expected), (surface, step)
    if checked_here:
        assert_complete(calls, answers["python"])


def is_about_file(name: str, answer: Any) -> bool:
    """Whether an answer is an error that may quote a file, which callers of a server are not told."""
    if not isinstance(answer, dict) or "error" not in answer:
        return False
    files, field = OPERATIONS[name].file_arguments, answer["field"]
    return field in files or (bool(files) and answer["error"] == "Invalid" and field not in PLAIN_FIELDS)


def without_actor(answer: Any) -> Any:
    """An answer without the parts that depend on the surface: the audit chain names the actor and hashes the name."""
    if not isinstance(answer, dict):
        return answer
    nested = {name: without_actor(value) for name, value in answer.items() if isinstance(value, dict)}
    if "imports" in answer:
        nested["imports"] = [{**each, "actor": ""} for each in answer["imports"]]
    if "head" not in answer:
        return answer | nested
    hashed = [name for name in ("head", "checkpoint") if answer.get(name)]
    comparable = answer | nested | {name: answer[name].partition(":")[0] for name in hashed}
    if isinstance(answer.get("links"), list):
        omitted = {"record_verification": ("actor", "hash", "previous", "changes")}  # its row has the head
        comparable["links"] = [
            {k: v for k, v in link.items() if k not in omitted.get(link["operation"], ("actor", "hash", "previous"))}
            for link in answer["links"]
        ]
    return comparable


def assert_complete(calls: list[Step], answers: list[Any]) -> None:
    """Every operation succeeds, with each of its arguments at least once, and every kind of mistake is made."""
    passed = {
        (name, argument)
        for (name, keys, more), answer in zip(calls, answers, strict=True)
        if "error" not in answer
        for argument in ("", *references(keys), *more)
    }
    expected = {
        (name, argument) for name, each in OPERATIONS.items() for argument in ("", *each.arguments.model_fields)
    }
    missing = sorted(f"{name}({argument})" for name, argument in expected - passed)
    assert not missing, f"no call that succeeds passes {', '.join(missing)}: add one to tests/parity/arguments.py"
    mistakes = [answer for answer in answers if "error" in answer]
    assert {answer["error"] for answer in mistakes} == {"Invalid", "NotFound", "Conflict", "Refused"}
    for answer in mistakes:
        assert "\n" not in answer["message"]
        assert answer["message"].startswith(f"{answer['field']}: ")
