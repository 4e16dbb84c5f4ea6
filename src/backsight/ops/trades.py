"""Trades and inactions: what was done, what was deliberately not done, and how it ended."""

import gc
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter
from typing import Annotated

from backsight.arguments import (
    AsOf,
    ContextArgument,
    Cursor,
    Flag,
    Instant,
    Key,
    Limit,
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
)
from backsight.core.errors import BacksightError, Conflict, Invalid, NotFound
from backsight.core.ids import derive_id, digest
from backsight.core.instants import Horizon, format_instant
from backsight.core.memory.episodic import (
    Episode,
    continues,
    episode_id_of,
    episode_of_trade,
    retrieval_strength,
)
from backsight.core.memory.prospective import PlanRecord, plan_record
from backsight.core.portfolio import Direction, Mode
from backsight.core.regime import Regime
from backsight.core.strategies import Deployment
from backsight.core.trades.mark import PositionMark
from backsight.core.trades.trade import (
    Trade,
    TradeStatus,
)
from backsight.importers.bars import Source
from backsight.importers.trades import TradeRow, read_trades
from backsight.operation import Operation, command, operation_of, query
from backsight.services.context import Context
from backsight.services.deployments import deployment_named
from backsight.services.learning import (
    BeliefChange,
    BulkLearningReport,
    LearningReport,
    beliefs_changed_by,
    learn_many,
    learn_trades,
)
from backsight.services.mood import mood_at
from backsight.services.paging import cursor_after, read_cursor
from backsight.services.plans import plans_holding_at
from backsight.services.trade_reports import Note, TradeTold, _named, _trade_id, home_of, merged_context, trade_told
from backsight.store import decisions as stored_decisions
from backsight.store import memories as stored_memories
from backsight.store import trades as stored
from backsight.store.database import Connection
from backsight.store.experience import equity_series
from backsight.store.transaction import Transaction

RECENT_CLOSES = 50
OURS = ("run_id", "count", "ended_at", "first_known_at", "sequence", "archived_at", "known_at", "recorded_at")
"""What an episode has from us and not from who told it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedTrade:
    """The trade as it is kept, the episode it left behind, and whether it was already known."""

    trade: Trade
    episode_id: str
    learned: LearningReport | None
    """What it changed in each memory; None where it changed none."""
    replayed: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTrades:
    """What a file of trades brought, and what that changed in each memory."""

    rows: int
    added: int
    replayed: int
    """Rows that were known, or that an earlier row of the file tells."""
    first_closed_at: datetime
    last_closed_at: datetime
    learned: BulkLearningReport | None
    """None where nothing was added."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedInaction:
    """The inaction as an episode; `count` says how many in a row had this symbol and reason."""

    episode_id: str
    count: int
    known_at: datetime
    replayed: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TradePage:
    """Some trades, newest first, and where the next page starts."""

    trades: tuple[Trade, ...]
    next_cursor: str | None
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeRead:
    """One trade, the episode it left behind, and the last tick that saw it open."""

    trade: Trade
    episode: Episode | None
    mark: PositionMark | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatedTrade:
    """The trade as it now is, what the words changed in other memories, and whether all was said before."""

    trade: Trade
    learned: LearningReport | None
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedEpisode:
    """The episode as it now is, and whether it was so before."""

    episode: Episode
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeReflection:
    """A trade and all that memory connects with it."""

    trade: Trade
    episode: Episode | None
    """None while it is open."""
    retrieved: int
    """How often the episode was recalled for a decision."""
    strength: float | None
    """How fresh the memory is; it ranks nothing."""
    beliefs: tuple[BeliefChange, ...]
    """What it is evidence for or against."""
    lessons_hash: str | None
    """Of the lessons in force at entry."""
    plans: tuple[PlanRecord, ...]
    """Plans that held when it was opened."""
    citations: tuple[str, ...]
    """What the decision that opened it referred to."""
    as_of: datetime


@command(audience=("trader",))
def remember_trade(
    ctx: Context,
    *,
    symbol: Annotated[Symbol, "The instrument as the broker names it."],
    direction: Annotated[Direction, "Which way the position was."],
    entry_price: Annotated[Number, "Average price of the entry."],
    exit_price: Annotated[Number, "Average price of the exit."],
    pnl: Annotated[Number, "Net profit or loss in the account's currency, after fees and funding."],
    strategy_name: Annotated[Name, "The strategy the trade belongs to."],
    pnl_r: Annotated[
        Number | None, "The same as a multiple of the risk taken; left out if the risk is not known."
    ] = None,
    market_context: Annotated[Prose | None, "The market at entry, in your words."] = None,
    context_regime: Annotated[Regime | None, "The market's regime at entry."] = None,
    context_atr_d1: Annotated[NotNegative | None, "ATR(14) on daily bars at entry, in price units."] = None,
    confidence: Annotated[Share | None, "How sure you were when you decided, 0 to 1."] = None,
    reflection: Annotated[Prose | None, "What you make of it now."] = None,
    max_adverse_excursion: Annotated[
        Number | None, "Worst unrealised loss during the trade, in money; the sign is ours."
    ] = None,
    opened_at: Annotated[Instant | None, "When it was opened."] = None,
    closed_at: Annotated[Instant | None, "When it was closed, and so known; now if left out."] = None,
    size: Annotated[Positive | None, "Largest size held, in base units."] = None,
    risk: Annotated[Positive | None, "What a loss at the stop would have cost."] = None,
    stop_price: Annotated[Number | None, "The first stop."] = None,
    fees: Annotated[NotNegative, "Fees paid; already taken off the pnl."] = 0.0,
    context: Annotated[ContextArgument | None, "The whole context vector at entry, as far as it is known."] = None,
    deployment: Annotated[Key | None, "The deployment it belongs to, by name or id."] = None,
    position_key: Annotated[Key | None, "The broker's id of the position."] = None,
    tags: Annotated[Tags, "Labels to find it by."] = [],  # noqa: B006
    idempotency_key: Annotated[Key | None, "Makes a repeated call harmless: the same key is the same trade."] = None,
) -> RememberedTrade:
    """Remember a closed trade with its context and outcome.

    Call it once after every close. Calling it again with the same idempotency_key, or with the same content,
    changes nothing and says so. On a deployment that runs by ticks the broker's fills are the ledger: there it adds
    your words, confidence and tags to the trade it names.
    """
    told = trade_told(
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
        context=context,
        position_key=position_key,
        tags=tags,
        now=ctx.now,
    )
    with ctx.writing() as transaction:
        home = home_of(transaction, ctx, deployment, strategy_name)
        if deployment is not None and _runs_by_ticks(transaction, ctx, home):
            return _annotated(transaction, ctx, home, told)
        trade_id, former = _named(transaction, ctx, idempotency_key, closed_at)
        if former is not None:
            return _replayed(former, ctx.request_digest)
        equity = mood_at(transaction.connection, home, opened_at or closed_at or ctx.now).equity
        trade = told.trade(home, trade_id, equity=equity, request_digest=ctx.request_digest, now=ctx.now)
        transaction.add(stored.TRADES, trade)
        learned = learn_trades(transaction, [episode_of_trade(trade)])[0]
    return RememberedTrade(
        trade=trade, episode_id=episode_id_of(trade.id), learned=learned, replayed=False, message="Remembered."
    )


@command()
def import_trades(
    ctx: Context,
    *,
    path: Annotated[
        Key, "The CSV, Parquet or JSON Lines file, where this runs; its names are the arguments of remember_trade."
    ],
    strategy_name: Annotated[Name | None, "The strategy of trades that name none."] = None,
    deployment: Annotated[Key | None, "The deployment of trades that name none, by name or id."] = None,
    timezone: Annotated[Name, "The zone of times that name none, like 'America/New_York'."] = "UTC",
) -> ImportedTrades:
    """Import closed trades from a file: every memory is then as if each had been remembered when it closed.

    All rows go in or none: the first that is wrong is named with its place and its field. Each needs closed_at. A row
    that is known, by its idempotency_key or its content, changes nothing; one key for two contents is refused.
    """
    given = {"strategy_name": strategy_name, "deployment": deployment}
    otherwise = {name: value for name, value in given.items() if value is not None}
    with _lasting():
        read = read_trades(path, timezone=timezone)
        rows = [_checked_row(ctx, read.source, row, otherwise) for row in read.rows]
        with ctx.writing() as transaction:
            new = _unknown(transaction.connection, ctx, read.source, rows)
            trades = _trades_of(transaction, ctx, read.source, new)
            transaction.add_all(stored.TRADES, trades)
            learned = learn_many(transaction, [episode_of_trade(trade) for trade in trades]) if trades else None
    closed = [row.closed_at for row in rows]
    return ImportedTrades(
        rows=len(rows),
        added=len(trades),
        replayed=len(rows) - len(trades),
        first_closed_at=min(closed),
        last_closed_at=max(closed),
        learned=learned,
        message="Imported." if trades else "Already known: this import is a replay and changed nothing.",
    )


@command(audience=("trader",))
def remember_inaction(
    ctx: Context,
    *,
    symbol: Annotated[Symbol, "The instrument that was not traded."],
    strategy_name: Annotated[Name, "The strategy that might have traded it."],
    reason: Annotated[Reason, "Why nothing was done; in the same words each time, so that repeats are counted."],
    direction: Annotated[Direction | None, "Which way a trade would have gone."] = None,
    market_context: Annotated[Prose | None, "The market now, in your words."] = None,
    context_regime: Annotated[Regime | None, "The market's regime now."] = None,
    context_atr_d1: Annotated[NotNegative | None, "ATR(14) on daily bars now, in price units."] = None,
    confidence: Annotated[Share | None, "How sure you are, 0 to 1."] = None,
    context: Annotated[ContextArgument | None, "The whole context vector now, as far as it is known."] = None,
    deployment: Annotated[Key | None, "The deployment it belongs to, by name or id."] = None,
    tags: Annotated[Tags, "Labels to find it by."] = [],  # noqa: B006
    idempotency_key: Annotated[Key | None, "Makes a repeated call harmless: the same key is the same inaction."] = None,
) -> RememberedInaction:
    """Remember that a trade was deliberately not made, and why.

    Call it when you looked, could have traded and chose not to. The same reason again in the same symbol is
    counted, not repeated.
    """
    given = merged_context(context, symbol=symbol, regime=context_regime, atr_d1=context_atr_d1)
    with ctx.writing() as transaction:
        home = home_of(transaction, ctx, deployment, strategy_name)
        latest = stored_memories.latest_episode(transaction.connection, ctx.owner, home.id, symbol)
        named = idempotency_key or f"{home.id} {format_instant(ctx.now)} {ctx.request_digest}"
        inaction_id = derive_id("inaction", ctx.owner, named)
        inaction = Episode(
            owner_id=ctx.owner,
            id=inaction_id,
            kind="inaction",
            deployment_id=home.id,
            strategy_name=strategy_name,
            mode=home.mode,
            symbol=symbol,
            direction=direction,
            reason=reason,
            run_id=inaction_id,
            context=given.completed(symbol=symbol, price=None, at=ctx.now),
            market_context=market_context,
            confidence=confidence,
            tags=tuple(tags),
            ended_at=ctx.now,
            first_known_at=ctx.now,
            known_at=ctx.now,
            recorded_at=ctx.now,
        )
        former = stored_memories.episode(transaction.connection, ctx.owner, inaction_id)
        if former is not None:
            then = given.completed(symbol=symbol, price=None, at=former.known_at)
            return _inaction_replayed(former, replace(inaction, context=then))
        if latest is not None and continues(latest, reason=reason):
            inaction = replace(inaction, run_id=latest.run_id, count=latest.count + 1)
        transaction.add(stored_memories.EPISODES, inaction)
    return _inaction_answer(inaction, replayed=False)


@query(audience=("trader", "coach"))
def list_trades(
    ctx: Context,
    *,
    symbol: Annotated[Symbol | None, "Only trades in this instrument."] = None,
    strategy_name: Annotated[Name | None, "Only trades of this strategy."] = None,
    deployment: Annotated[Key | None, "Only trades of this deployment, by name or id."] = None,
    direction: Annotated[Direction | None, "Only trades this way."] = None,
    mode: Annotated[Mode | None, "Only live, paper or simulated trades."] = None,
    status: Annotated[TradeStatus, "Trades that are closed, or those still open."] = "closed",
    since: Annotated[Instant | None, "Only trades closed (or opened, if open) at or after this instant."] = None,
    until: Annotated[Instant | None, "Only trades closed (or opened, if open) before this instant."] = None,
    limit: Annotated[Limit, "How many at most."] = 20,
    cursor: Annotated[Cursor | None, "The next_cursor of the page before."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> TradePage:
    """List trades, newest first, a page at a time: closed ones, or those still open."""
    horizon = ctx.horizon(as_of, seen_at)
    asked = ctx.arguments(without=("cursor", "limit"))
    before = None if cursor is None else read_cursor(cursor, query=asked)
    with ctx.reading() as connection:
        home = None if deployment is None else deployment_named(connection, ctx.owner, deployment)
        found = stored.trades(
            connection,
            ctx.owner,
            horizon,
            limit=limit + 1,
            before=before,
            since=since,
            until=until,
            symbol=symbol,
            strategy_name=strategy_name,
            deployment_id=None if home is None else home.id,
            side=direction,
            mode=mode,
            status=status,
        )
    page = tuple(found[:limit])
    more = None
    if len(found) > limit:
        last = page[-1]
        more = cursor_after(last.closed_at or last.opened_at or last.known_at, last.id, query=asked)
    return TradePage(trades=page, next_cursor=more, as_of=horizon.as_of)


@query(audience=("trader", "coach"))
def get_trade(
    ctx: Context,
    *,
    trade_id: Annotated[Key, "The trade's id, as remember_trade or list_trades gave it."],
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> TradeRead:
    """Get one trade with its context, its outcome and the episode it left behind."""
    horizon = ctx.horizon(as_of, seen_at)
    with ctx.reading() as connection:
        trade = _trade(connection, ctx, trade_id, horizon)
        return TradeRead(
            trade=trade,
            episode=stored_memories.episode(connection, ctx.owner, episode_id_of(trade.id), horizon),
            mark=stored.last_mark(connection, ctx.owner, trade.id, horizon),
        )


@command(audience=("trader",))
def annotate_trade(
    ctx: Context,
    *,
    trade_id: Annotated[Key, "The trade's id, as remember_trade or list_trades gave it."],
    reflection: Annotated[Prose | None, "What you make of it now; in place of what was said before."] = None,
    market_context: Annotated[Prose | None, "The market at entry, in your words."] = None,
    confidence: Annotated[Share | None, "How sure you were when you decided, 0 to 1."] = None,
    tags: Annotated[Tags, "Labels to add."] = [],  # noqa: B006
) -> AnnotatedTrade:
    """Add a reflection, the market in words, a confidence or labels to a trade; prices and results stay the broker's.

    Who asks what was known before still reads what was said then.
    """
    note = Note(market_context=market_context, confidence=confidence, reflection=reflection, tags=tuple(tags))
    if not (reflection or market_context or tags) and confidence is None:
        raise Invalid("nothing to add; give a reflection, market_context, confidence or tags", field="reflection")
    with ctx.writing() as transaction:
        trade = stored.trade(transaction.connection, ctx.owner, trade_id)
        if trade is None:
            raise NotFound(f"no trade {trade_id!r}; list_trades shows them", field="trade_id")
        changed = noted(trade, note, now=ctx.now)
        if replace(changed, known_at=trade.known_at, recorded_at=trade.recorded_at) == trade:
            return AnnotatedTrade(trade=trade, learned=None, replayed=True)
        learned = keep_noted(transaction, changed)
    return AnnotatedTrade(trade=changed, learned=learned, replayed=False)


@command()
def archive_episode(
    ctx: Context,
    *,
    episode_id: Annotated[Key, "The episode, as recall_memories, get_trade or remember_trade named it."],
    restore: Annotated[Flag, "Bring it back instead."] = False,
) -> ArchivedEpisode:
    """Put an episode away: it stays in the ledger and in every statistic, and is no longer recalled."""
    with ctx.writing() as transaction:
        episode = stored_memories.episode(transaction.connection, ctx.owner, episode_id)
        if episode is None:
            raise NotFound(f"no episode {episode_id!r}; recall_memories names them", field="episode_id")
        if (episode.archived_at is None) == restore:
            return ArchivedEpisode(episode=episode, replayed=True)
        moved = replace(
            episode,
            archived_at=None if restore else ctx.now,
            known_at=max(episode.known_at, ctx.now),
            recorded_at=ctx.now,
        )
        transaction.revise(stored_memories.EPISODES, moved)
    return ArchivedEpisode(episode=moved, replayed=False)


@query(audience=("trader", "coach"))
def get_trade_reflection(
    ctx: Context,
    *,
    trade_id: Annotated[Key, "The trade's id, as remember_trade or list_trades gave it."],
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> TradeReflection:
    """Get all that memory connects with a trade: its episode, its decision, the beliefs it bears on, plans about it."""
    horizon = ctx.horizon(as_of, seen_at)
    with ctx.reading() as connection:
        trade = _trade(connection, ctx, trade_id, horizon)
        episode = stored_memories.episode(connection, ctx.owner, episode_id_of(trade.id), horizon)
        retrieved = 0
        if episode is not None:
            retrieved = stored_memories.retrieval_counts(connection, ctx.owner, [episode.id], horizon)[episode.id]
        named = trade.entry.snapshot_id
        decision = None if named is None else stored_decisions.decision(connection, ctx.owner, named)
        fed = beliefs_changed_by(connection, ctx.owner, trade.mode, episode_id_of(trade.id), horizon)
        home = deployment_named(connection, ctx.owner, trade.deployment_id)
        began = trade.opened_at
        held = []
        if began is not None:
            held = plans_holding_at(connection, home, trade.symbol, began, seen_at=horizon.seen_at)
    return TradeReflection(
        trade=trade,
        episode=episode,
        retrieved=retrieved,
        strength=None if episode is None else _strength(episode, horizon, retrieved),
        beliefs=fed,
        lessons_hash=trade.entry.lessons_hash,
        plans=tuple(map(plan_record, held)),
        citations=() if decision is None else decision.citations,
        as_of=horizon.as_of,
    )


def _trade(connection: Connection, ctx: Context, trade_id: str, horizon: Horizon) -> Trade:
    trade = stored.trade(connection, ctx.owner, trade_id, horizon)
    if trade is None:
        raise NotFound(f"no trade {trade_id!r} was known then; list_trades shows them", field="trade_id")
    return trade


def _strength(episode: Episode, horizon: Horizon, retrieved: int) -> float:
    return retrieval_strength(episode.ended_at, now=horizon.as_of, retrieved=retrieved)


@contextmanager
def _lasting() -> Iterator[None]:
    """Meanwhile, no cyclic garbage is looked for: what a file becomes lasts to its end, and looking takes a fifth."""
    wanted = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if wanted:
            gc.enable()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A row of a file, checked as `remember_trade` checks its arguments."""

    number: int
    told: "TradeTold"
    closed_at: datetime
    strategy_name: str
    deployment: str | None
    trade_id: str
    request_digest: str

    @property
    def home(self) -> tuple[str | None, str]:
        """What names its deployment."""
        return self.deployment, self.strategy_name

    @property
    def entered_at(self) -> datetime:
        return self.told.opened_at or self.closed_at


def _checked_row(ctx: Context, source: Source, row: TradeRow, otherwise: Mapping[str, str]) -> _Row:
    """A row that can be remembered, where need be with what is given `otherwise`."""
    try:
        given = _remembering().check({**otherwise, **row.told})
        key = given.pop("idempotency_key")
        request_digest = digest(given)
        if given["closed_at"] is None:
            raise Invalid("missing; a trade of a file needs it", field="closed_at")
        strategy_name, deployment = given.pop("strategy_name"), given.pop("deployment")
        told = trade_told(**given, now=ctx.now)
    except Invalid as error:
        raise source.placed(row.number, error) from None
    return _Row(
        number=row.number,
        told=told,
        closed_at=given["closed_at"],
        strategy_name=strategy_name,
        deployment=deployment,
        trade_id=_trade_id(ctx.owner, key, request_digest),
        request_digest=request_digest,
    )


def _remembering() -> Operation:
    """The operation whose arguments the rows of a file are."""
    operation = operation_of(remember_trade)
    if operation is None:
        raise AssertionError("remember_trade is not marked as an operation")
    return operation


def _unknown(connection: Connection, ctx: Context, source: Source, rows: Sequence[_Row]) -> list[_Row]:
    """The rows that tell of trades that are not there yet; `Conflict` where one tells otherwise of one that is."""
    known = stored.digests(connection, ctx.owner, [row.trade_id for row in rows])
    new: list[_Row] = []
    for row in rows:
        if row.trade_id not in known:
            known[row.trade_id] = row.request_digest
            new.append(row)
        elif known[row.trade_id] != row.request_digest:
            raise source.placed(row.number, _used_for_another(row.trade_id))
    return new


def _trades_of(transaction: Transaction, ctx: Context, source: Source, rows: Sequence[_Row]) -> list[Trade]:
    """The trades that new rows tell of, in the order of the file."""
    homes: dict[tuple[str | None, str], Deployment] = {}
    entries: dict[str, list[datetime]] = {}
    for row in rows:
        if row.home not in homes:
            homes[row.home] = _home_of_row(transaction, ctx, source, row)
        entries.setdefault(homes[row.home].account_id, []).append(row.entered_at)
    worth = {
        account_id: equity_series(transaction.connection, ctx.owner, account_id, since=min(at), until=max(at))
        for account_id, at in entries.items()
    }
    return [
        row.told.trade(
            homes[row.home],
            row.trade_id,
            equity=_worth_by(row.entered_at, worth[homes[row.home].account_id]),
            request_digest=row.request_digest,
            now=ctx.now,
        )
        for row in rows
    ]


def _home_of_row(transaction: Transaction, ctx: Context, source: Source, row: _Row) -> Deployment:
    try:
        home = home_of(transaction, ctx, row.deployment, row.strategy_name)
        if row.deployment is not None and _runs_by_ticks(transaction, ctx, home):
            told = f"{home.name!r} runs by ticks, and the broker's fills are its ledger"
            raise Conflict(f"{told}; leave its trades out, or name no deployment", field="deployment")
    except BacksightError as error:
        raise source.placed(row.number, error) from None
    return home


def _worth_by(at: datetime, seen: Sequence[tuple[datetime, float | None]]) -> float | None:
    """What an account was worth at the last look by an instant."""
    looks = bisect_right(seen, at, key=itemgetter(0))
    return seen[looks - 1][1] if looks else None


def _runs_by_ticks(transaction: Transaction, ctx: Context, home: Deployment) -> bool:
    now = Horizon(as_of=ctx.now)
    return stored_decisions.last_of_deployment(transaction.connection, ctx.owner, home.id, now) is not None


def _annotated(transaction: Transaction, ctx: Context, home: Deployment, told: TradeTold) -> RememberedTrade:
    """The trade of the ledger that is meant, with what is said of it added; a correction, known from now on."""
    closed = stored.trades(
        transaction.connection,
        ctx.owner,
        Horizon(as_of=ctx.now),
        limit=RECENT_CLOSES,
        deployment_id=home.id,
        symbol=told.symbol,
        side=told.direction,
    )
    meant = next((each for each in closed if told.is_of(each)), None)
    trade = None if meant is None else stored.trade(transaction.connection, ctx.owner, meant.id)
    if trade is None:
        said = f"{home.name!r} runs by ticks, and its ledger has no closed {told.direction} trade in {told.symbol}"
        raise Conflict(f"{said} with this result; give its closed_at and pnl, or no deployment", field="deployment")
    if trade.request_digest == ctx.request_digest:
        return _replayed(trade, ctx.request_digest)
    annotated = replace(noted(trade, told.note, now=ctx.now), request_digest=ctx.request_digest)
    learned = keep_noted(transaction, annotated)
    return RememberedTrade(
        trade=annotated,
        episode_id=episode_id_of(trade.id),
        learned=learned,
        replayed=False,
        message="Added to the trade that the ledger has.",
    )


def noted(trade: Trade, note: Note, *, now: datetime) -> Trade:
    """A trade with what is said of it added; a correction, known from now on."""
    return replace(
        trade,
        market_context=note.market_context or trade.market_context,
        confidence=trade.confidence if note.confidence is None else note.confidence,
        reflection=note.reflection or trade.reflection,
        tags=tuple(dict.fromkeys((*trade.tags, *note.tags))),
        known_at=max(trade.known_at, now),
        recorded_at=now,
    )


def keep_noted(transaction: Transaction, trade: Trade) -> LearningReport | None:
    """Keep a trade that was added to, and its episode; what that changed in other memories."""
    transaction.revise(stored.TRADES, trade)
    if trade.status == "open":
        return None
    learned = learn_trades(transaction, [episode_of_trade(trade)])
    return learned[0] if learned else None


def _replayed(former: Trade, request_digest: str) -> RememberedTrade:
    if former.request_digest != request_digest:
        raise _used_for_another(former.id)
    told = "Already remembered: this call is a replay and changed nothing."
    return RememberedTrade(trade=former, episode_id=episode_id_of(former.id), learned=None, replayed=True, message=told)


def _used_for_another(trade_id: str) -> Conflict:
    told = f"already used for another trade ({trade_id}); use a new key for a new trade"
    return Conflict(told, field="idempotency_key")


def _inaction_replayed(former: Episode, told: Episode) -> RememberedInaction:
    """The answer to an inaction told again; what the clock and the row before made of it is not the caller's."""
    ours = {
        name: getattr(former, name)
        for name in (
            "run_id",
            "count",
            "ended_at",
            "first_known_at",
            "sequence",
            "archived_at",
            "known_at",
            "recorded_at",
        )
    }
    if replace(told, **ours) != former:
        raise Conflict("already used for another inaction; use a new key for a new one", field="idempotency_key")
    return _inaction_answer(former, replayed=True)


def _inaction_answer(inaction: Episode, *, replayed: bool) -> RememberedInaction:
    if replayed:
        told = "Already remembered: this call is a replay and changed nothing."
    else:
        told = "Remembered." if inaction.count == 1 else f"Remembered: {inaction.count} times in a row for this reason."
    return RememberedInaction(
        episode_id=inaction.run_id, count=inaction.count, known_at=inaction.known_at, replayed=replayed, message=told
    )
