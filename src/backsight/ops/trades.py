"""Trades and inactions: what agents and files report, what memory connects with a trade, and notes on it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ValidationError, create_model

from backsight.arguments import (
    AsOf,
    ColumnNames,
    ContextArgument,
    FilePath,
    Flag,
    Instant,
    Key,
    Name,
    NotNegative,
    Number,
    Positive,
    Prose,
    Reason,
    SeenAt,
    Share,
    Symbol,
    Tags,
    as_context,
    invalid_from,
)
from backsight.core.context import ContextVector, merged_context
from backsight.core.errors import Invalid, NotFound
from backsight.core.garbage_collection import collection_paused
from backsight.core.ids import derive_id
from backsight.core.instants import format_instant
from backsight.core.memory.episodic import Episode, episode_id_of, episode_of_trade, retrieval_strength
from backsight.core.memory.prospective import Plan
from backsight.core.portfolio import Direction, Mode
from backsight.core.regime import Regime
from backsight.core.text.counts import count_of
from backsight.core.trades.mark import OpenResult, PositionMark, open_result
from backsight.core.trades.report import TradeNote, TradeReport, checked_report, trade_from_report, with_note
from backsight.core.trades.trade import Entry, Trade, dollars_for_one
from backsight.importers.cut_files import last_line_remark
from backsight.importers.files import Source, zone_named
from backsight.importers.formats import FileFormat, ReadOptions, head_of
from backsight.importers.trades import read_trades
from backsight.operation import Operation, command, operation_of, query
from backsight.services.belief_learning import BeliefChange, beliefs_changed_by
from backsight.services.context import Context
from backsight.services.deployments import account_of, deployment_named
from backsight.services.id_prefixes import trade_known_then, whole_episode_id, whole_id
from backsight.services.import_rows import SAMPLE, LeftOutCount, LeftOutRows, TakenBackError, mode_of_file
from backsight.services.inactions import add_inaction
from backsight.services.learning import BulkLearningReport, LearningReport, learn_trades
from backsight.services.mood import mood_at
from backsight.services.plans import plans_holding_at
from backsight.services.trade_import import (
    ReportRow,
    checked_format_rows,
    checked_rows,
    result_doubts,
    store_rows,
    unknown_rows,
)
from backsight.services.trade_reports import (
    PointValues,
    add_reported_equity,
    decision_deployment,
    earlier_report,
    key_conflict,
    ledger_trade,
    ledger_trade_of_strategy,
    mode_of_report,
    reported_deployment,
    revise_trade,
    runs_by_ticks,
    with_state_at_entry,
)
from backsight.store import decisions as stored_decisions
from backsight.store import memories as stored_memories
from backsight.store import trades as stored
from backsight.store.recalls import retrieval_counts
from backsight.store.transaction import Transaction
from backsight.store.view import View

MARKS_OF_REFLECTION = 10
EQUITY_BY_TICKS = " The equity is left out: the ticks report it."
ALREADY_REMEMBERED = "Already remembered: this call is a replay and changed nothing."


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedTrade:
    """The stored trade, its episode, and whether an earlier call had stored it."""

    trade: Trade
    episode_id: str
    learned: LearningReport | None
    """What the trade changed in each memory; None if it changed nothing."""
    replayed: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderstoodTrade:
    """A trade of a file as it is understood."""

    row: int
    symbol: str
    direction: Direction
    entry_price: float
    exit_price: float
    size: float | None
    pnl: float
    opened_at: datetime | None
    closed_at: datetime
    strategy_name: str
    mode: Mode | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTrades:
    """The number of trades that an import added, and what they changed in each memory."""

    rows: int
    """Rows with a trade."""
    added: int
    replayed: int
    """Rows whose trade was stored already, or is in an earlier row of the file."""
    first_closed_at: datetime | None
    last_closed_at: datetime | None
    learned: BulkLearningReport | None
    """None if nothing was added."""
    message: str
    format: str | None
    """None if the columns of the file are the arguments of remember_trade."""
    dry_run: bool
    """Whether nothing was written."""
    left_out: tuple[LeftOutRows, ...]
    understood: tuple[UnderstoodTrade, ...]
    """The first trades as they are understood."""
    notes: tuple[str, ...]
    """What was found out about the file, in sentences."""

    @property
    def imported_nothing(self) -> bool:
        """Whether no row of the file is a trade that is stored now, or would be."""
        return self.added + self.replayed == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedInaction:
    """The stored inaction; `count` is the number of inactions in a row with this symbol and reason."""

    episode_id: str
    count: int
    known_at: datetime
    replayed: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatedTrade:
    """The annotated trade, what the annotation changed in other memories, and whether it was a repeat."""

    trade: Trade
    learned: LearningReport | None
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedEpisode:
    """The episode after the change, and whether it was a repeat that changed nothing."""

    episode: Episode
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeReflection:
    """A trade and everything that memory connects with it."""

    trade: Trade
    episode: Episode | None
    """None while the trade is open."""
    retrieved: int
    """How often the episode was recalled for a decision."""
    strength: float | None
    """How fresh the memory of the episode is; it does not influence any ranking."""
    beliefs: tuple[BeliefChange, ...]
    """Beliefs that the trade is evidence for or against."""
    lessons_hash: str | None
    """Hash of the lessons that were active at the entry."""
    plans: tuple[Plan, ...]
    """Plans whose conditions held when the trade was opened."""
    citations: tuple[str, ...]
    """Documents that the opening decision cited."""
    marks: tuple[PositionMark, ...]
    """The last 10 marks of the trade, newest first; none for a trade that no tick saw."""
    so_far: OpenResult | None
    """Result and excursions at the last mark; None for a closed trade, which has its own, and before any mark."""
    as_of: datetime


@command(audience=("trader",))
def remember_trade(
    ctx: Context,
    *,
    symbol: Annotated[Symbol, "The instrument as the broker names it."],
    direction: Annotated[Direction, "Direction of the position."],
    entry_price: Annotated[Number, "Average entry price."],
    exit_price: Annotated[Number, "Average exit price."],
    pnl: Annotated[Number, "Net profit or loss in the account's currency, after fees and funding."],
    strategy_name: Annotated[Name, "The strategy that the trade belongs to."],
    pnl_r: Annotated[Number | None, "Net result as a multiple of the risk taken, if it is known."] = None,
    market_context: Annotated[Prose | None, "The market at entry, in your own words."] = None,
    context_regime: Annotated[Regime | None, "The regime at entry."] = None,
    context_atr_d1: Annotated[NotNegative | None, "Daily ATR(14) at entry, in price units."] = None,
    confidence: Annotated[Share | None, "Your confidence when you decided."] = None,
    reflection: Annotated[Prose | None, "What you think of the trade now."] = None,
    max_adverse_excursion: Annotated[Number | None, "Worst unrealised loss, in the account's currency."] = None,
    opened_at: Annotated[Instant | None, "When the trade was opened."] = None,
    closed_at: Annotated[Instant | None, "When the trade was closed; now if left out."] = None,
    size: Annotated[Positive | None, "Largest size of the position, in base units."] = None,
    risk: Annotated[Positive | None, "The loss at the stop, in the account's currency."] = None,
    stop_price: Annotated[Number | None, "The first stop price."] = None,
    fees: Annotated[Number, "Fees paid, negative for a rebate; the pnl is net of them."] = 0.0,
    equity: Annotated[NotNegative | None, "What the account is worth after the close."] = None,
    mode: Annotated[Mode | None, "By default that of the deployment, else live."] = None,
    context: Annotated[ContextArgument | None, "The context at entry."] = None,
    deployment: Annotated[Key | None, "The deployment, by name or id."] = None,
    position_key: Annotated[Key | None, "The broker's id of the position."] = None,
    tags: Annotated[Tags, "Labels to find it by later."] = [],  # noqa: B006
    idempotency_key: Annotated[Key | None, "Makes a repeated call harmless."] = None,
) -> RememberedTrade:
    """Remember a closed trade with its context and outcome.

    Call it once after every close; the same call again changes nothing. If the strategy's ledger has the trade from the
    broker's fills, your words, confidence and tags are added to it.
    """
    stated = TradeReport(
        symbol=symbol,
        direction=direction,
        entry_price=entry_price,
        exit_price=exit_price,
        pnl=pnl,
        pnl_r=pnl_r,
        market_context=market_context,
        context_regime=context_regime,
        context_atr_d1=context_atr_d1,
        confidence=confidence,
        reflection=reflection,
        max_adverse_excursion=max_adverse_excursion,
        opened_at=opened_at,
        closed_at=closed_at,
        size=size,
        risk=risk,
        stop_price=stop_price,
        fees=fees,
        equity=equity,
        context=as_context(context) or ContextVector(),
        position_key=position_key,
        tags=tuple(tags),
        point_value=PointValues(ctx).of(symbol, deployment),
    )
    with ctx.writing() as transaction:
        report = checked_report(stated, now=ctx.now)
        connection = transaction.connection
        if deployment is not None:
            target = reported_deployment(transaction, ctx, deployment, strategy_name, mode=mode)
            if runs_by_ticks(transaction, ctx, target):
                return _add_to_ledger_trade(transaction, ctx, ledger_trade(transaction, ctx, target, report), report)
        trade_id, former = earlier_report(transaction, ctx, idempotency_key, closed_at)
        if former is not None:
            return _repeated(former, ctx.request_digest)
        if deployment is None:
            ledgers = ledger_trade_of_strategy(transaction, ctx, report, strategy_name, mode=mode)
            if ledgers is not None:
                return _add_to_ledger_trade(transaction, ctx, ledgers, report)
            stated_mode = mode or mode_of_report(ctx.view(connection), strategy_name)
            target = reported_deployment(transaction, ctx, None, strategy_name, mode=stated_mode)
        trade = trade_from_report(
            with_state_at_entry(connection, target, report),
            target,
            trade_id,
            entry=Entry(equity=mood_at(connection, target, opened_at or closed_at or ctx.now).equity),
            usd_rate=dollars_for_one(account_of(connection, target).currency),
            request_digest=ctx.request_digest,
            now=ctx.now,
        )
        transaction.add(stored.TRADES, trade)
        add_reported_equity(transaction, trade, target, equity)
        learned = learn_trades(transaction, [episode_of_trade(trade)])[0]
    where = "" if deployment is not None else f" For {target.name!r} ({target.mode})."
    return RememberedTrade(
        trade=trade,
        episode_id=episode_id_of(trade.id),
        learned=learned,
        replayed=False,
        message=f"Remembered.{where}" + ("" if report.doubt is None else f" {report.doubt}"),
    )


@command()
def import_trades(
    ctx: Context,
    *,
    path: Annotated[
        FilePath,
        "Path of the file on this machine: of a known format, or a CSV, Parquet or JSON Lines file whose columns are "
        "the arguments of remember_trade, reason, exit_reason, max_favorable_excursion, funding and leverage.",
    ],
    format: Annotated[Name | None, "The format of the file; recognised from its content if left out."] = None,  # noqa: A002
    strategy_name: Annotated[Name | None, "The strategy of rows that name none."] = None,
    deployment: Annotated[Key | None, "The deployment of rows that name none, by name or id."] = None,
    mode: Annotated[Mode | None, "The mode of rows that name none; else that of the deployment, or live."] = None,
    timezone: Annotated[
        Name | None, "The time zone of times without an offset; that of the format if left out, mostly UTC."
    ] = None,
    columns: Annotated[
        ColumnNames | None, "Fields by the name of their column, where a table names them in its own way."
    ] = None,
    skip_broken: Annotated[Flag, "Leave out rows that cannot be read, if the file is of a format."] = False,
    dry_run: Annotated[Flag, "Show what would be imported and left out, and write nothing."] = False,
) -> ImportedTrades:
    """Import closed trades from a file, as if each trade had been remembered when it closed.

    Either all rows are imported or none: an error names the first bad row and its field. Every row needs closed_at. A
    row that is stored already, by its idempotency_key or its content, changes nothing. A key that belongs to a trade
    with other content is refused.

    Columns beyond the arguments of remember_trade are why the trade was opened (reason) and closed (exit_reason), its
    best unrealised gain in the account's currency (max_favorable_excursion), funding received (negative for paid; the
    pnl includes it), and the leverage.
    """
    file, notes = Path(path), list[str]()
    head = head_of(file)
    left_out, chosen = LeftOutCount(unit=head.row_unit), _format_of_trades(file, format, columns)
    given = {"strategy_name": strategy_name, "deployment": deployment, "mode": mode}
    defaults = {name: value for name, value in given.items() if value is not None}
    learned: BulkLearningReport | None = None
    with collection_paused():
        if chosen is None:
            read = read_trades(path, timezone=timezone or "UTC")
            source, rows = read.source, checked_rows(ctx, read, defaults=defaults, check_arguments=_checked_columns)
        else:
            options = ReadOptions(zone=zone_named(timezone or chosen.timezone), columns=columns or {})
            source = Source(file, head.row_unit)
            rows = checked_format_rows(
                ctx,
                chosen.read(file, options),
                defaults=_with_mode(defaults, chosen),
                check_arguments=_checked_columns,
                left_out=left_out,
                notes=notes,
            )
            _check_modes(rows, chosen)
            if not (skip_broken or dry_run):
                left_out.refuse_broken(file)
        assumed = sum(row.mode is None and row.deployment is None for row in rows)
        if assumed:
            notes.append(f"{count_of(assumed, 'trade')} without a mode or a deployment: taken as live.")
        notes += result_doubts(rows)
        remark = last_line_remark(head)
        notes += [] if remark is None else [remark]
        count, understood = len(rows), tuple(_understood(row) for row in rows[:SAMPLE])
        first_closed_at = min((row.closed_at for row in rows), default=None)
        last_closed_at = max((row.closed_at for row in rows), default=None)
        with suppress(TakenBackError), ctx.writing() as transaction:
            rows = unknown_rows(transaction, ctx, source, rows)
            added = len(rows)
            learned = store_rows(transaction, ctx, source, rows)
            if dry_run:
                raise TakenBackError
        if learned is not None and not dry_run:
            ctx.write_columns_file()
    return ImportedTrades(
        rows=count,
        added=added,
        replayed=count - added,
        first_closed_at=first_closed_at,
        last_closed_at=last_closed_at,
        learned=learned,
        message=_import_message(count, added, left_out.total, dry_run=dry_run),
        format=None if chosen is None else chosen.name,
        dry_run=dry_run,
        left_out=left_out.rows,
        understood=understood,
        notes=tuple(notes),
    )


def _format_of_trades(file: Path, name: str | None, columns: Mapping[str, str] | None) -> FileFormat | None:
    """The format of a file of trades; None if its columns are the arguments of remember_trade."""
    from backsight.importers.generic import is_table_of_trades, names_arguments
    from backsight.importers.registry import FORMATS, chosen_format  # imports the modules of all formats

    if name is not None or columns:
        return chosen_format(file, name, rows="trades", columns=columns)
    head = head_of(file)
    fitting = [each for each in FORMATS if not each.generic and each.recognises(head)]
    is_table = not fitting and is_table_of_trades(head) and not names_arguments(head)
    return chosen_format(file, rows="trades") if is_table or any(each.rows == "trades" for each in fitting) else None


def _with_mode(defaults: Mapping[str, str], chosen: FileFormat) -> dict[str, str]:
    """The defaults, with the mode of every file of a format; that of a deployment takes precedence."""
    implied = {} if chosen.mode is None or "deployment" in defaults else {"mode": chosen.mode}
    return {**implied, **defaults}


def _check_modes(rows: Sequence[ReportRow], chosen: FileFormat) -> None:
    """Refuse trades of which neither the file, the format nor the caller says whether they are of real money."""
    if any(row.mode is None and row.deployment is None for row in rows):
        mode_of_file(chosen, None)


def _understood(row: ReportRow) -> UnderstoodTrade:
    report = row.report
    return UnderstoodTrade(
        row=row.number,
        symbol=report.symbol,
        direction=report.direction,
        entry_price=report.entry_price,
        exit_price=report.exit_price,
        size=report.size,
        pnl=report.pnl,
        opened_at=report.opened_at,
        closed_at=row.closed_at,
        strategy_name=row.strategy_name,
        mode=row.mode,
    )


def _import_message(rows: int, added: int, left_out: int, *, dry_run: bool) -> str:
    if not rows:
        message = "No trade in the file; nothing was changed."
    elif not added:
        message = "Every trade of the file is stored already; nothing was changed."
    else:
        message = f"{count_of(added, 'trade')} would be imported." if dry_run else "Imported."
    return f"{message} {count_of(left_out, 'row')} left out." if left_out else message


@command(audience=("trader",))
def remember_inaction(
    ctx: Context,
    *,
    symbol: Annotated[Symbol, "The instrument that was not traded."],
    strategy_name: Annotated[Name, "The strategy that might have traded it."],
    reason: Annotated[Reason, "Why not; in the same words each time, so that repeats are counted."],
    direction: Annotated[Direction | None, "Direction of the trade that was not made."] = None,
    market_context: Annotated[Prose | None, "The market now, in your own words."] = None,
    context_regime: Annotated[Regime | None, "The regime now."] = None,
    context_atr_d1: Annotated[NotNegative | None, "Daily ATR(14) now, in price units."] = None,
    confidence: Annotated[Share | None, "Your confidence."] = None,
    context: Annotated[ContextArgument | None, "The context now."] = None,
    deployment: Annotated[Key | None, "The deployment, by name or id; else the strategy's only one."] = None,
    tags: Annotated[Tags, "Labels to find it by later."] = [],  # noqa: B006
    idempotency_key: Annotated[Key | None, "Makes a repeated call harmless."] = None,
) -> RememberedInaction:
    """Remember that a trade was deliberately not made, and why.

    Call it when you could have traded and chose not to. The same reason again in the same symbol continues a series,
    and the answer counts it.
    """
    merged = merged_context(as_context(context), symbol=symbol, regime=context_regime, atr_d1=context_atr_d1)
    with ctx.writing() as transaction:
        named = None if idempotency_key is None else derive_id("inaction", ctx.owner, idempotency_key)
        target, note = decision_deployment(transaction, ctx, deployment, strategy_name, key=named)
        unnamed = f"{target.id} {format_instant(ctx.now)} {ctx.request_digest}"
        inaction_id = named or derive_id("inaction", ctx.owner, unnamed)
        inaction = Episode(
            owner_id=ctx.owner,
            id=inaction_id,
            kind="inaction",
            deployment_id=target.id,
            strategy_name=strategy_name,
            mode=target.mode,
            symbol=symbol,
            direction=direction,
            reason=reason,
            series_id=inaction_id,
            context=merged,
            market_context=market_context,
            confidence=confidence,
            tags=tuple(tags),
            ended_at=ctx.now,
            first_known_at=ctx.now,
            known_at=ctx.now,
            recorded_at=ctx.now,
        )
        inaction, replayed = add_inaction(transaction, inaction)
    message = f"Remembered.{note}"
    if replayed:
        message = ALREADY_REMEMBERED
    elif inaction.count > 1:
        message = f"Remembered: {inaction.count} times in a row for this reason.{note}"
    return RememberedInaction(
        episode_id=inaction.series_id,
        count=inaction.count,
        known_at=inaction.known_at,
        replayed=replayed,
        message=message,
    )


@command(audience=("trader",))
def annotate_trade(
    ctx: Context,
    *,
    trade_id: Annotated[Key, "The trade's id, from remember_trade or list_trades."],
    reflection: Annotated[Prose | None, "What you think of the trade now; it replaces the earlier reflection."] = None,
    market_context: Annotated[Prose | None, "The market at entry, in your own words."] = None,
    confidence: Annotated[Share | None, "Your confidence when you decided."] = None,
    tags: Annotated[Tags, "Labels to add."] = [],  # noqa: B006
) -> AnnotatedTrade:
    """Add a reflection, a market description, a confidence or labels to a trade; prices and results do not change.

    A query as of an earlier instant still answers with the earlier words.
    """
    note = TradeNote(market_context=market_context, confidence=confidence, reflection=reflection, tags=tuple(tags))
    if note.is_empty:
        raise Invalid("nothing to add; give a reflection, market_context, confidence or tags", field="reflection")
    with ctx.writing() as transaction:
        trade_id = whole_id(transaction.connection, ctx.owner, stored.TRADES, trade_id, field="trade_id")
        trade = stored.trade(transaction.connection, ctx.owner, trade_id)
        if trade is None:
            raise NotFound(f"no trade {trade_id!r}; list_trades shows them", field="trade_id")
        annotated = with_note(trade, note, now=ctx.now)
        if replace(annotated, known_at=trade.known_at, recorded_at=trade.recorded_at) == trade:
            return AnnotatedTrade(trade=trade, learned=None, replayed=True)
        learned = revise_trade(transaction, annotated)
    return AnnotatedTrade(trade=annotated, learned=learned, replayed=False)


@command()
def archive_episode(
    ctx: Context,
    *,
    episode_id: Annotated[Key, "The episode's id, from recall_memories, get_trade or remember_trade."],
    restore: Annotated[Flag, "Restore an archived episode instead."] = False,
) -> ArchivedEpisode:
    """Archive an episode: it is no longer recalled, and stays in the ledger and in every statistic."""
    with ctx.writing() as transaction:
        episode_id = whole_episode_id(transaction.connection, ctx.owner, episode_id, field="episode_id")
        episode = stored_memories.current_episode(transaction.connection, ctx.owner, episode_id)
        if episode is None:
            raise NotFound(f"no episode {episode_id!r}; recall_memories names them", field="episode_id")
        if (episode.archived_at is None) == restore:
            return ArchivedEpisode(episode=episode, replayed=True)
        changed = replace(
            episode,
            archived_at=None if restore else ctx.now,
            known_at=max(episode.known_at, ctx.now),
            recorded_at=ctx.now,
        )
        transaction.revise(stored_memories.EPISODES, changed)
    return ArchivedEpisode(episode=changed, replayed=False)


@query(audience=("trader", "coach"))
def get_trade_reflection(
    ctx: Context,
    *,
    trade_id: Annotated[Key, "The trade's id, from remember_trade or list_trades."],
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> TradeReflection:
    """Get everything that memory connects with a trade: its episode, decision, last marks, beliefs and plans."""
    horizon = ctx.horizon(as_of, seen_at)
    with ctx.reading() as connection:
        trade = trade_known_then(connection, ctx.owner, trade_id, horizon)
        episode = stored_memories.episode(View(connection, ctx.owner, horizon), episode_id_of(trade.id))
        retrieved = 0
        if episode is not None:
            retrieved = retrieval_counts(View(connection, ctx.owner, horizon), [episode.id])[episode.id]
        decision_id = trade.entry.snapshot_id
        decision = None if decision_id is None else stored_decisions.decision(connection, ctx.owner, decision_id)
        beliefs = beliefs_changed_by(View(connection, ctx.owner, horizon), trade.mode, episode_id_of(trade.id))
        marks = stored.last_marks(View(connection, ctx.owner, horizon), trade.id, limit=MARKS_OF_REFLECTION)
        plans = []
        if trade.opened_at is not None:
            deployment = deployment_named(connection, ctx.owner, trade.deployment_id)
            plans = plans_holding_at(connection, deployment, trade.symbol, trade.opened_at, seen_at=horizon.seen_at)
    return TradeReflection(
        trade=trade,
        episode=episode,
        retrieved=retrieved,
        strength=None
        if episode is None
        else retrieval_strength(episode.ended_at, now=horizon.as_of, retrieved=retrieved),
        beliefs=beliefs,
        lessons_hash=trade.entry.lessons_hash,
        plans=tuple(plans),
        citations=() if decision is None else decision.citations,
        marks=tuple(marks),
        so_far=open_result(trade, marks[0] if marks else None),
        as_of=horizon.as_of,
    )


class FileColumns(BaseModel):
    """Columns of a file beyond the arguments of `remember_trade`, which a trader's tool would pay for in tokens."""

    reason: Reason | None = None
    exit_reason: Reason | None = None
    max_favorable_excursion: Number | None = None
    funding: Number | None = None
    leverage: Positive | None = None


def _checked_columns(values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a row, checked. Columns that only files have are left out if the row does not give them.

    So a row without them is the same request as a call of `remember_trade`.
    """
    model = _columns_model()
    try:
        row = model.model_validate(values)
    except ValidationError as error:
        types = {**_remember_trade_operation().arguments.types, **FileColumns.__annotations__}
        raise invalid_from(error.errors(include_url=False), types=types) from None
    only_in_files = FileColumns.__pydantic_fields__
    return {name: value for name, value in vars(row).items() if value is not None or name not in only_in_files}


@cache
def _columns_model() -> type[BaseModel]:
    model = create_model("TradeColumns", __base__=(_remember_trade_operation().arguments, FileColumns))
    setattr(model, "types", {})  # noqa: B010 (the cells of a file are read by the rules of files)
    return model


def _remember_trade_operation() -> Operation:
    """The operation whose arguments are columns of an import."""
    operation = operation_of(remember_trade)
    if operation is None:
        raise AssertionError("remember_trade is not marked as an operation")
    return operation


def _add_to_ledger_trade(transaction: Transaction, ctx: Context, trade: Trade, report: TradeReport) -> RememberedTrade:
    """Add the note of a report to the trade of the ledger that it is about."""
    if trade.request_digest == ctx.request_digest:
        return _repeated(trade, ctx.request_digest)
    annotated = replace(with_note(trade, report.note, now=ctx.now), request_digest=ctx.request_digest)
    return RememberedTrade(
        trade=annotated,
        episode_id=episode_id_of(trade.id),
        learned=revise_trade(transaction, annotated),
        replayed=False,
        message="Added to the trade that the ledger has." + (EQUITY_BY_TICKS if report.equity is not None else ""),
    )


def _repeated(former: Trade, request_digest: str) -> RememberedTrade:
    """The answer to a request that was carried out before; `Conflict` if its key was used for another trade."""
    if former.request_digest != request_digest:
        raise key_conflict(former.id)
    return RememberedTrade(
        trade=former, episode_id=episode_id_of(former.id), learned=None, replayed=True, message=ALREADY_REMEMBERED
    )
