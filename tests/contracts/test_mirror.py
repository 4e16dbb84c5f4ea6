"""Tests mirror the source: `core/memory/cells.py` is tested in `tests/core/memory/test_cells.py`."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE, TESTS = ROOT / "src" / "backsight", ROOT / "tests"
DECISIONS = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.While,
    ast.Try,
    ast.Match,
    ast.BoolOp,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
"""The syntax that makes a function more than an assignment or a call."""

QUERIES = "queries of its tables, which the operations run on both databases"
PAGES = "pages are tested as a whole, here and in a browser"
WHOLE = "a part of one working, which is tested as a whole"
DOUBLE = "a stand-in for tests, which fail if it is wrong"
ELSEWHERE = {
    "services/ledger_rows.py": ("services/test_present_state.py", "it matters only in the ticks of one instant"),
    "store/change_instants.py": ("ops/test_pages_queries.py", QUERIES),
    "store/verifications.py": ("ops/test_pages_queries.py", QUERIES),
    "surfaces/connect/configuration.py": ("surfaces/connect/test_connecting.py", WHOLE),
    "surfaces/connect/files.py": ("surfaces/connect/test_connecting.py", WHOLE),
    "surfaces/connect/screen.py": ("surfaces/connect/test_command.py", WHOLE),
    "surfaces/connect/server_check.py": ("surfaces/connect/test_command.py", WHOLE),
    "surfaces/agent_guide.py": ("docs/test_agent_guide.py", "The page is compared with the prompt that it makes."),
    "surfaces/web/actions.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/application.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/background.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/differences.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/numbers.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/page.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/session.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/state.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/visible_text.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/pages/attention.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/pages/decisions.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/pages/documents.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/pages/facts.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/pages/health.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/pages/instants.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/pages/lessons.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/pages/mind.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/pages/overview.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/pages/prompt.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/pages/recall.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/pages/trade.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/pages/trades.py": ("surfaces/web/test_pages.py", PAGES),
    "surfaces/web/charts/bars.py": ("surfaces/web/test_charts.py", "charts are tested together"),
    "surfaces/web/charts/calendar.py": ("surfaces/web/test_charts.py", "charts are tested together"),
    "surfaces/web/charts/candles.py": ("surfaces/web/test_charts.py", "charts are tested together"),
    "surfaces/web/charts/drawing.py": ("surfaces/web/test_charts.py", "charts are tested together"),
    "surfaces/web/charts/lines.py": ("surfaces/web/test_charts.py", "charts are tested together"),
    "surfaces/web/charts/ranges.py": ("surfaces/web/test_charts.py", "charts are tested together"),
    "surfaces/web/charts/scatter.py": ("surfaces/web/test_charts.py", "charts are tested together"),
    "adapters/brokers/replay.py": ("runtime/test_replay.py", WHOLE),
    "adapters/reflectors/provider.py": ("adapters/reflectors/test_model.py", WHOLE),
    "arguments.py": ("contracts/test_operations.py", "the types of arguments, tested for every operation"),
    "core/bar_columns.py": ("importers/test_regular_bars.py", "the bars of files"),
    "core/decision.py": ("ops/test_ticks.py", WHOLE),
    "core/documents/trace.py": ("ops/test_documents.py", WHOLE),
    "core/events.py": ("ops/test_events_calendar.py", WHOLE),
    "core/facts.py": ("ops/test_facts.py", WHOLE),
    "core/keys.py": ("ops/test_keys.py", WHOLE),
    "core/prompts/chat.py": ("ops/test_facts.py", WHOLE),
    "importers/events.py": ("ops/test_events_calendar.py", WHOLE),
    "runtime/demo_owner.py": ("answers/test_brief.py", "the demo's store has its facts and events"),
    "services/bar_symbols.py": ("ops/test_one_market.py", WHOLE),
    "services/names.py": ("ops/test_one_market.py", WHOLE),
    "store/symbols.py": ("ops/test_one_market.py", WHOLE),
    "services/events.py": ("ops/test_events_calendar.py", WHOLE),
    "services/facts.py": ("ops/test_facts.py", WHOLE),
    "store/events.py": ("ops/test_events_calendar.py", WHOLE),
    "store/facts.py": ("ops/test_facts.py", WHOLE),
    "surfaces/mcp_profile.py": ("surfaces/test_coach.py", WHOLE),
    "core/recall/base_rate.py": ("core/recall/arrays/test_base_rate.py", "the types of the arrays' answer"),
    "core/tick_claim.py": ("ops/test_claims.py", WHOLE),
    "core/trades/listing.py": ("ops/test_pages_queries.py", WHOLE),
    "core/trades/plain_exits.py": ("ops/test_pages_queries.py", WHOLE),
    "core/trades/summary.py": ("core/reflection/test_closed_trades.py", "it has examples, or comparisons use it"),
    "core/trades/materialise.py": ("ops/test_ticks.py", WHOLE),
    "json_schemas.py": ("surfaces/test_tool_lists.py", "the schemas of the tools"),
    "lab/plots.py": ("lab/test_document.py", WHOLE),
    "lab/report.py": ("lab/test_run.py", WHOLE),
    "memory.py": ("contracts/test_operations.py", "the list of operations and the wiring"),
    "operation.py": ("contracts/test_operations.py", "what every operation has"),
    "operation_list.py": ("contracts/test_operations.py", "the list of operations"),
    "ops/trades_pages.py": ("ops/test_trades.py", "the reads of trades"),
    "ops/admin_verification.py": ("ops/test_pages_queries.py", "queries that pages need"),
    "ops/events_bars.py": ("ops/test_pages_queries.py", "queries that pages need"),
    "ops/performance_exits.py": ("ops/test_pages_queries.py", "queries that pages need"),
    "ops/state_history.py": ("ops/test_pages_queries.py", "queries that pages need"),
    "ops/strategies_lists.py": ("ops/test_pages_queries.py", "queries that pages need"),
    "ops/ticks_instants.py": ("ops/test_pages_queries.py", "queries that pages need"),
    "ops/admin.py": ("store/test_verify.py", "the doctor and the audit: they report what verification finds"),
    "runtime/backtest_setup.py": ("surfaces/test_backtest.py", WHOLE),
    "runtime/load.py": ("surfaces/test_backtest.py", WHOLE),
    "runtime/report.py": ("surfaces/test_backtest.py", WHOLE),
    "runtime/tick.py": ("runtime/test_live.py", WHOLE),
    "runtime/recovery.py": ("runtime/test_live.py", WHOLE),
    "services/withheld_memory.py": ("services/test_holdout.py", WHOLE),
    "services/verification.py": ("store/test_verify.py", WHOLE),
    "services/document_check.py": ("ops/test_documents.py", WHOLE),
    "adapters/runners/claude.py": ("ops/test_agents_running.py", "a stand-in speaks the protocol of the program"),
    "adapters/runners/conversation.py": ("adapters/runners/test_model.py", WHOLE),
    "core/agents/agent_settings.py": ("ops/test_agents_running.py", WHOLE),
    "core/agents/outcomes.py": ("ops/test_card_outcomes.py", WHOLE),
    "core/agents/re_examination.py": ("ops/test_agents_running.py", WHOLE),
    "core/agents/request.py": ("ops/test_agents_running.py", WHOLE),
    "core/agents/review.py": ("ops/test_card_outcomes.py", WHOLE),
    "core/agents/schedule_lease.py": ("runtime/test_scheduler.py", WHOLE),
    "core/agents/session.py": ("ops/test_agents_running.py", WHOLE),
    "ops/agents_sessions.py": ("ops/test_agents_running.py", WHOLE),
    "services/agent_cards.py": ("ops/test_agents.py", WHOLE),
    "services/agent_runs.py": ("ops/test_agents_running.py", WHOLE),
    "services/agent_settings.py": ("ops/test_agents_running.py", WHOLE),
    "services/card_outcomes.py": ("ops/test_card_outcomes.py", WHOLE),
    "services/decision_review.py": ("ops/test_card_outcomes.py", WHOLE),
    "services/runs_in_progress.py": ("ops/test_agents_running.py", WHOLE),
    "services/schedule_lease.py": ("runtime/test_scheduler.py", WHOLE),
    "services/calls.py": ("ops/test_decisions.py", WHOLE),
    "services/document_search.py": ("ops/test_documents.py", WHOLE),
    "services/document_writes.py": ("ops/test_documents.py", WHOLE),
    "services/embedding.py": ("ops/test_documents.py", WHOLE),
    "services/indexing.py": ("ops/test_documents.py", WHOLE),
    "services/instant_bounds.py": ("services/test_void.py", "the instants that would end an account"),
    "services/ledger.py": ("ops/test_ticks.py", WHOLE),
    "services/lessons_draft.py": ("services/test_reflection.py", WHOLE),
    "services/reviews.py": ("ops/test_lessons.py", WHOLE),
    "services/traces.py": ("ops/test_documents.py", WHOLE),
    "services/table_files.py": ("services/test_archive.py", WHOLE),
    "store/agents.py": ("ops/test_agents.py", QUERIES),
    "store/agent_sessions.py": ("ops/test_agents_running.py", QUERIES),
    "store/outcomes.py": ("ops/test_card_outcomes.py", QUERIES),
    "testing/claude_stand_in.py": ("ops/test_agents_running.py", DOUBLE),
    "store/archive.py": ("services/test_archive.py", QUERIES),
    "store/audit.py": ("store/test_verify.py", WHOLE),
    "store/columns_file.py": ("store/test_columns.py", WHOLE),
    "store/decisions.py": ("ops/test_ticks.py", QUERIES),
    "store/documents.py": ("store/search/test_hybrid.py", QUERIES),
    "store/experience.py": ("services/test_derivation.py", QUERIES),
    "store/instruments.py": ("ops/test_instruments.py", QUERIES),
    "store/memories.py": ("ops/test_recall.py", QUERIES),
    "store/notes.py": ("services/test_reflection.py", QUERIES),
    "store/plans.py": ("services/test_plans.py", QUERIES),
    "store/publishing.py": ("store/search/test_hybrid.py", QUERIES),
    "store/reading.py": ("ops/test_two_clocks.py", "the horizon of every query"),
    "store/columns_build.py": ("store/test_columns.py", WHOLE),
    "store/images.py": ("store/test_columns.py", "what the images of episodes and of trades share"),
    "store/schema.py": ("store/test_migrations.py", WHOLE),
    "store/search/postgres_fts.py": ("store/search/test_hybrid.py", "one of two databases, with the same tests"),
    "store/search/sqlite_fts.py": ("store/search/test_hybrid.py", "one of two databases, with the same tests"),
    "store/state.py": ("ops/test_state.py", QUERIES),
    "store/strategies.py": ("ops/test_strategies.py", QUERIES),
    "store/tick_claims.py": ("ops/test_claims.py", QUERIES),
    "store/trades.py": ("ops/test_trades.py", QUERIES),
    "store/undo.py": ("services/test_void.py", WHOLE),
    "services/keys.py": ("ops/test_keys.py", WHOLE),
    "answers/blocks.py": ("surfaces/test_tables.py", WHOLE),
    "surfaces/instructions.py": ("surfaces/test_tool_lists.py", "what a model is told about its tools"),
    "answers/layouts.py": ("surfaces/test_tables.py", "the columns of the tables"),
    "surfaces/main.py": ("surfaces/test_cli.py", "the entry point of the command line"),
    "surfaces/mcp_tools.py": ("surfaces/test_tool_lists.py", "the tools that a model is offered"),
    "surfaces/progress.py": ("surfaces/test_backtest.py", WHOLE),
    "answers/values.py": ("surfaces/test_tables.py", "the text of values in the tables"),
    "surfaces/problems.py": ("surfaces/test_rest.py", WHOLE),
    "surfaces/request_log.py": ("surfaces/test_http_server.py", WHOLE),
    "testing/models.py": ("adapters/reflectors/test_model.py", DOUBLE),
    "testing/recall.py": ("core/recall/arrays/test_scan.py", DOUBLE),
    "testing/reflection.py": ("services/test_reflection.py", DOUBLE),
    "surfaces/reference.py": ("docs/test_reference.py", "the page that the test compares"),
    "surfaces/api_page.py": ("surfaces/test_openapi.py", "the page of the same operations"),
    "surfaces/call_examples.py": ("surfaces/test_openapi.py", "the examples of the document"),
    "surfaces/column_widths.py": ("surfaces/test_tables.py", WHOLE),
    "surfaces/typed_text.py": ("surfaces/test_openapi.py", WHOLE),
}
"""Modules without a test file of their own: the file that tests them, and why."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name != "__init__.py" and "migrations" not in path.parts:
            yield path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text())


def mirror(module: str) -> Path:
    """The test file of a module."""
    path = Path(module)
    return TESTS / path.parent / f"test_{path.name}"


def decides(node: ast.AST) -> bool:
    return any(isinstance(inner, DECISIONS) for inner in ast.walk(node))


def functions(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, bool]]:
    """The functions that a module offers, methods too, and whether an example in a docstring runs them."""
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        of_class = isinstance(node, ast.ClassDef) and has_example(node)
        for function in inner:
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and not function.name.startswith("_"):
                yield function, of_class or has_example(function)


def has_example(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ">>>" in (ast.get_docstring(node) or "")


def needs_tests(tree: ast.Module) -> bool:
    """Whether a module offers a function that decides something and has no example."""
    return any(decides(function) and not example for function, example in functions(tree))


def test_every_module_that_decides_something_has_a_test_file() -> None:
    missing = [
        f"{module}: write {mirror(module).relative_to(ROOT)}, or give every function that decides an example"
        for module, tree in modules()
        if needs_tests(tree) and not mirror(module).exists() and module not in ELSEWHERE
    ]
    assert missing == []


def test_the_exceptions_name_modules_and_test_files_that_exist() -> None:
    known = {module for module, _ in modules()}
    assert [module for module in ELSEWHERE if module not in known] == []
    assert [path for path, _ in ELSEWHERE.values() if not (TESTS / path).exists()] == []
