"""Stored fills, trades and position marks."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, bindparam, desc, func, literal_column, or_, select

from backsight.core.fills import Fill
from backsight.core.orders import FillMark
from backsight.core.portfolio import Mode, Position
from backsight.core.scope import TradeCount
from backsight.core.trades.costs import Costs
from backsight.core.trades.excursion import Excursions
from backsight.core.trades.mark import PositionMark, TradeProgress
from backsight.core.trades.trade import Trade, TradeStatus
from backsight.store.decisions import last_decision_of_account
from backsight.store.mapping import OWNER, UtcInstant, noun
from backsight.store.reading import (
    OWNED,
    Columns,
    Where,
    fetch,
    fetch_one,
    in_batches,
    known,
    matching,
    owned,
    parameters,
    prepared_known,
    prepared_within,
    rare,
    within,
)
from backsight.store.strategies import ACCOUNTS
from backsight.store.unchanged import get, has_no_later_correction, put, put_written, unchanged
from backsight.store.view import View

if TYPE_CHECKING:
    from backsight.core.risk_state import Close
    from backsight.store.transaction import Transaction  # imports the list of tables, which imports this module

TRADES = noun(
    Trade,
    "trade_history",
    names={
        "strategy_id": "skill_id",
        "strategy_version": "version",
        "direction": "side",
        "opened_at": "entry_tick_at",
        "closed_at": "exit_tick_at",
    },
    within={"deployments": ("deployment_id",)},
    indexes=[
        ("exit_tick_at", "id"),
        ("deployment_id", "exit_tick_at"),
        ("deployment_id", "entry_tick_at", "exit_tick_at"),
        ("account_id", "position_key", "entry_tick_at"),
        ("skill_id", "version", "entry_tick_at"),
        ("skill_id", "mode", "exit_tick_at"),
        ("request_digest", "recorded_at"),
    ],
    only_one={("account_id", "position_key"): "status = 'open'"},
    revised=True,
)


FILLS = noun(
    Fill,
    "fills",
    key=("account_id", "symbol", "id"),
    within={"accounts": ("account_id",)},
    indexes=[("account_id", "position_key", "at")],
    indexed_where={("account_id",): "kind = 'rename'"},
    revised=True,
)

MARKS = noun(
    PositionMark,
    "position_marks",
    key=("account_id", "position_key", "at", "sequence", "look"),
    names={
        **{f"position.{field.name}": field.name for field in fields(Position)},
        **{f"reach.{field.name}": field.name for field in fields(TradeProgress)},
        **{f"reach.excursions.{field.name}": field.name for field in fields(Excursions)},
        "reach.excursions.source": "excursion_source",
        "reach.excursions.interval_seconds": "excursion_interval_seconds",
    },
    indexes=[("decision_id",), ("trade_id", "at", "sequence")],
    clustered=True,
)


def trade(connection: Connection, owner: str, trade_id: str) -> Trade | None:
    """The current version of a trade."""
    return fetch_one(connection, TRADES, owned(TRADES, owner, TRADES.table.c.id == trade_id))


def trade_then(view: View, trade_id: str) -> Trade | None:
    """A trade as it was known at the view's horizon."""
    return fetch_one(view.connection, TRADES, known(TRADES, view.owner, view.horizon, lambda c: [c.id == trade_id]))


PAGE = 2_000
"""Rows that a long read fetches at once."""
BATCH = 500
"""Ids in one statement: databases limit the number of parameters."""
_DIGESTS = select(TRADES.table.c.id, TRADES.table.c.request_digest).where(
    TRADES.table.c.owner_id == OWNED, TRADES.table.c.id.in_(bindparam("ids", expanding=True))
)


def digests(connection: Connection, owner: str, ids: Sequence[str]) -> dict[str, str]:
    """Request digests of the given trades by id, for those that exist."""
    by_id: dict[str, str] = {}
    for first in range(0, len(ids), BATCH):
        rows = connection.execute(_DIGESTS, parameters(owner, ids=ids[first : first + BATCH]))
        by_id |= {row.id: row.request_digest for row in rows}
    return by_id


def recent_equal(connection: Connection, owner: str, request_digest: str, since: datetime) -> Trade | None:
    """The latest trade that an equal request recorded at or after an instant."""
    c = TRADES.table.c
    statement = owned(TRADES, owner, c.request_digest == request_digest, c.recorded_at >= since)
    return fetch_one(connection, TRADES, statement.order_by(c.recorded_at.desc(), c.id))


def trades(
    view: View,
    *,
    limit: int,
    before: tuple[datetime, str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    status: TradeStatus = "closed",
    **equal: str | tuple[str, ...] | None,
) -> list[Trade]:
    """Trades by status, newest first: closed ones by their close, open ones by their entry.

    `before` continues after a page's last (instant, id).
    """
    column = "exit_tick_at" if status == "closed" else "entry_tick_at"

    def where(c: Columns) -> Iterator[ColumnElement[bool]]:
        instant = c[column]
        yield from matching(c, status=status, **equal)
        if since is not None:
            yield instant >= since
        if until is not None:
            yield instant < until
        if before is not None:
            at, last = before
            yield or_(instant < at, and_(instant == at, c.id > last))

    newest_first = known(TRADES, view.owner, view.horizon, where).order_by(desc(column), "id")
    return fetch(view.connection, TRADES, newest_first.limit(limit))


def close_marks(connection: Connection, owner: str) -> list[tuple[str, datetime, datetime]]:
    """Deployment id, instant of the close and last recording instant of every closed trade."""
    c = TRADES.table.c
    closed = select(c.deployment_id, c.exit_tick_at, c.recorded_at).where(c.owner_id == owner, c.status == "closed")
    return [(row[0], row[1], row[2]) for row in connection.execute(closed)]


def last_closed(view: View, *, strategy_id: str, mode: Mode, limit: int) -> list[Trade]:
    """The last closed trades of a strategy in a mode, over all its versions and deployments, newest first."""
    return trades(view, limit=limit, skill_id=strategy_id, mode=mode)


def trade_counts(view: View) -> list[TradeCount]:
    """The number of closed trades by mode, strategy and symbol; this reads every trade."""
    rows = known(TRADES, view.owner, view.horizon, lambda c: matching(c, status="closed")).subquery()
    group = (rows.c.mode, rows.c.strategy_name, rows.c.symbol)
    statement = select(*group, func.count().label("trades")).group_by(*group).order_by(*group)
    return [
        TradeCount(mode=row.mode, strategy_name=row.strategy_name, symbol=row.symbol, trades=row.trades)
        for row in view.connection.execute(statement)
    ]


def _closed(c: Columns) -> list[ColumnElement[bool]]:
    return [c.deployment_id == bindparam("deployment"), c.status == "closed"]


MOST_AHEAD = timedelta(days=1)
"""No trade is known this long before its own close: clocks differ by seconds."""
_LATEST_CLOSE = bindparam("latest", type_=UtcInstant())


def _closed_by_then(c: Columns) -> list[ColumnElement[bool]]:
    """Closed trades of a deployment, without later ones, which an index can leave out before they are read."""
    return [*_closed(c), c.exit_tick_at <= _LATEST_CLOSE]


def _latest_close(view: View) -> datetime:
    return min(view.as_of, LAST_INSTANT - MOST_AHEAD) + MOST_AHEAD


_CLOSES = prepared_known(TRADES, ["exit_tick_at", "pnl", "currency", "id"], _closed_by_then).order_by(
    desc("exit_tick_at"), desc("id")
)
_LIMITS = (12, 200, None)
"""Closes that are read first, then if that is not enough, then all: a day and a losing streak are seldom longer.

The limit that was enough is the first one next time.
"""
_LATEST = [_CLOSES.limit(limit) for limit in _LIMITS]
_LATEST_NOW = [
    select(*(TRADES.table.c[name] for name in ("exit_tick_at", "pnl", "currency", "id", "known_at", "recorded_at")))
    .where(TRADES.table.c.owner_id == OWNED, *_closed(TRADES.table.c))
    .order_by(desc("exit_tick_at"), desc("id"))
    .limit(limit)
    for limit in _LIMITS
]
"""The same of the current versions, with the instants that say whether a view may see them."""
_OPEN = (
    select(TRADES.table)
    .where(TRADES.table.c.owner_id == OWNED, TRADES.table.c.account_id == bindparam("account"))
    .where(TRADES.table.c.status == literal_column("'open'"))  # as the index of open trades has it
)
_F = FILLS.table.c
_FILLS = (
    select(FILLS.table)
    .where(_F.owner_id == OWNED, _F.account_id == bindparam("account"), _F.position_key == bindparam("key"))
    .where(_F.at >= bindparam("since"))
    .order_by(_F.at, _F.sequence, _F.id)
)
FIRST_INSTANT, LAST_INSTANT = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_RENAMES = (
    select(FILLS.table)
    .where(_F.owner_id == OWNED, _F.account_id == bindparam("account"))
    .where(_F.kind == literal_column("'rename'"))  # as the index of renames has it
    .order_by(_F.at, _F.sequence, _F.id)
)
_LEFT_OPEN = (
    select(MARKS.table)
    .where(MARKS.table.c.owner_id == OWNED, rare(MARKS.table.c.decision_id == bindparam("decision")))
    .where(MARKS.table.c.look == "after")
)


class _ClosedRow(NamedTuple):
    """What recent activity reads of a closed trade."""

    exit_tick_at: datetime
    pnl: float
    currency: str | None
    id: str


NO_CHANGES: Mapping[str, Trade | None] = {}


def closes(
    view: View, deployment_id: str, *, since: datetime, changes: Mapping[str, Trade | None] = NO_CHANGES
) -> "list[Close]":
    """A deployment's closes at or after an instant, and the losing closes right before it, oldest first.

    `changes` are trades by id that are not stored so yet; None for one that is withdrawn.
    """
    new = [
        _ClosedRow(trade.closed_at or trade.known_at, trade.pnl or 0.0, trade.currency, trade.id)
        for trade in closed_among(changes, deployment_id)
    ]
    rows: list[Any] = []
    key = "limit of closes", deployment_id
    first: int = get(view.connection, view.owner, key, ()) or 0
    for number in range(first, len(_LIMITS)):
        stored = _latest_closes(view, deployment_id, number)
        latest = stored
        if changes:
            others = [row for row in stored if row.id not in changes]
            latest = sorted([*others, *new], key=lambda row: (row.exit_tick_at, row.id), reverse=True)
        rows = list(takewhile(lambda row: row.exit_tick_at >= since or row.pnl <= 0, latest))
        if len(rows) < len(latest) or _suffices(_LIMITS[number], len(stored)):
            break
    smallest = next(number for number, limit in enumerate(_LIMITS) if _suffices(limit, len(rows)))
    if smallest != first:
        put(view.connection, view.owner, key, (), smallest)
    from backsight.core.risk_state import Close  # imports the token counts of words

    return [Close(at=row.exit_tick_at, net=row.pnl, currency=row.currency) for row in reversed(rows)]


def closed_among(changes: Mapping[str, Trade | None], deployment_id: str) -> list[Trade]:
    """The closed trades of a deployment among changed trades."""
    trades = (trade for trade in changes.values() if trade is not None and trade.deployment_id == deployment_id)
    return [trade for trade in trades if trade.status == "closed"]


def _suffices(limit: int | None, rows: int) -> bool:
    return limit is None or rows < limit


def _latest_closes(view: View, deployment_id: str, number: int) -> Sequence[Any]:
    """The latest closes of a deployment, newest first, as many as the limit with this number allows."""
    connection, values = view.connection, parameters(view.owner, deployment=deployment_id)
    if _LIMITS[number] is not None and has_no_later_correction(view, TRADES):
        current = unchanged(
            connection,
            view.owner,
            ("closes", deployment_id, number),
            (TRADES,),
            lambda: connection.execute(_LATEST_NOW[number], values).all(),
        )
        if all(view.horizon.holds(row.known_at, row.recorded_at) for row in current):
            return current
    then = parameters(view.owner, view.horizon, deployment=deployment_id, latest=_latest_close(view))
    return connection.execute(_LATEST[number], then).all()


_RECENTLY_CLOSED = (
    prepared_known(TRADES, TRADES.columns, _closed_by_then)
    .order_by(desc("exit_tick_at"), "id")
    .limit(bindparam("most"))
)
_RECENTLY_CLOSED_NOW = (
    select(TRADES.table)
    .where(TRADES.table.c.owner_id == OWNED, *_closed(TRADES.table.c))
    .order_by(desc("exit_tick_at"), "id")
    .limit(bindparam("most"))
)
"""The same of the current versions."""


def recent_closed(
    view: View, deployment_id: str, *, most: int, changes: Mapping[str, Trade | None] = NO_CHANGES
) -> list[Trade]:
    """A deployment's closed trades with the latest exits, newest first, ties by id.

    `changes` are trades by id that are not stored so yet; None for one that is withdrawn.
    """
    trades = _recently_closed(view, deployment_id, most + len(changes))
    if changes:
        others = (trade for trade in trades if trade.id not in changes)
        trades = sorted([*others, *closed_among(changes, deployment_id)], key=lambda trade: trade.id)
        trades.sort(key=lambda trade: trade.closed_at or trade.known_at, reverse=True)
    return trades[:most]


def _recently_closed(view: View, deployment_id: str, most: int) -> list[Trade]:
    values = parameters(view.owner, view.horizon, deployment=deployment_id, most=most, latest=_latest_close(view))
    if has_no_later_correction(view, TRADES):
        current = unchanged(
            view.connection,
            view.owner,
            ("recently closed", deployment_id, most),
            (TRADES,),
            lambda: fetch(view.connection, TRADES, _RECENTLY_CLOSED_NOW, values),
        )
        if all(view.horizon.holds(trade.known_at, trade.recorded_at) for trade in current):
            return current
    return fetch(view.connection, TRADES, _RECENTLY_CLOSED, values)


_COST_COLUMNS = ("realized_pnl", "fees", "funding", "currency", "known_at", "recorded_at")
_COSTS = (
    prepared_known(TRADES, [*_COST_COLUMNS, "exit_tick_at", "id"], _closed_by_then)
    .order_by(desc("exit_tick_at"), "id")
    .limit(bindparam("most"))
)
_COSTS_NOW = (
    select(*(TRADES.table.c[name] for name in (*_COST_COLUMNS, "exit_tick_at", "id")))
    .where(TRADES.table.c.owner_id == OWNED, *_closed(TRADES.table.c))
    .order_by(desc("exit_tick_at"), "id")
    .limit(bindparam("most"))
)
"""The same of the current versions."""


def recent_costs(view: View, deployment_id: str, *, most: int) -> Costs:
    """What a deployment's last closed trades cost, and what they earned before costs, in the account's currency."""
    values = parameters(view.owner, view.horizon, deployment=deployment_id, most=most, latest=_latest_close(view))
    if has_no_later_correction(view, TRADES):
        rows, costs = unchanged(
            view.connection,
            view.owner,
            ("recent costs", deployment_id, most),
            (TRADES,),
            lambda: _costs_of(view.connection.execute(_COSTS_NOW, values).all()),
        )
        if all(view.horizon.holds(known_at, recorded_at) for known_at, recorded_at in rows):
            return costs
    return _costs_of(view.connection.execute(_COSTS, values).all())[1]


def _costs_of(rows: Sequence[Any]) -> tuple[frozenset[tuple[datetime, datetime]], Costs]:
    """The instants of some trades, and their costs; results in a currency that could not be converted do not count."""
    known = [row for row in rows if row.currency is None and row.realized_pnl is not None]
    costs = Costs(
        trades=len(known),
        gross=math.fsum(row.realized_pnl for row in known),
        paid=math.fsum(row.fees - row.funding for row in known),
    )
    return frozenset((row.known_at, row.recorded_at) for row in rows), costs


_OPEN_THEN = prepared_known(
    TRADES,
    TRADES.columns,
    lambda c: [c.account_id == bindparam("account"), c.status == literal_column("'open'")],
)


def open_then(view: View, account_id: str) -> list[Trade]:
    """The trades of an account that were open at the view's horizon."""
    if has_no_later_correction(view, TRADES):
        trades = open_trades(view.connection, view.owner, account_id)
        return [trade for trade in trades if view.horizon.holds(trade.known_at, trade.recorded_at)]
    return fetch(view.connection, TRADES, _OPEN_THEN, parameters(view.owner, view.horizon, account=account_id))


_ACCOUNTS = select(ACCOUNTS.table.c.id, ACCOUNTS.table.c.mode).where(ACCOUNTS.table.c.owner_id == OWNED)


def every_open(view: View, *, strategy_name: str | None, mode: str | None) -> list[Trade]:
    """The trades of all accounts that were open at the view's horizon, newest entry first.

    None matches every strategy or mode.
    """
    rows = unchanged(
        view.connection,
        view.owner,
        "modes of accounts",
        (ACCOUNTS,),
        lambda: view.connection.execute(_ACCOUNTS, parameters(view.owner)).all(),
    )
    accounts = [row.id for row in rows if mode in (None, row.mode)]
    trades = [trade for account in accounts for trade in open_then(view, account)]
    matches = sorted((trade for trade in trades if strategy_name in (None, trade.strategy_name)), key=lambda t: t.id)
    return sorted(matches, key=lambda trade: trade.opened_at or FIRST_INSTANT, reverse=True)


def open_trades(connection: Connection, owner: str, account_id: str) -> list[Trade]:
    """The open trades of an account, by position."""
    rows = unchanged(
        connection,
        owner,
        ("open trades", account_id),
        (TRADES,),
        lambda: fetch(connection, TRADES, _OPEN, parameters(owner, account=account_id)),
    )
    return sorted(rows, key=lambda trade: trade.position_key)  # ORDER BY would make the database read every trade


def trades_of_position(view: View, account_id: str, position_key: str, *, before: datetime) -> list[Trade]:
    """The trades of a position that were built from fills, oldest first.

    The first one is the last trade that opened before the instant.
    """

    def folded(c: Columns) -> list[ColumnElement[bool]]:
        return [c.account_id == account_id, c.position_key == position_key, c.first_fill_id.is_not(None)]

    connection = view.connection
    if not has_no_later_correction(view, TRADES):
        return from_last_before(fetch(connection, TRADES, known(TRADES, view.owner, view.horizon, folded)), before)
    c = TRADES.table.c
    then = owned(TRADES, view.owner, *folded(c), *within(TRADES, view.horizon))
    last = fetch_one(connection, TRADES, then.where(c.entry_tick_at < before).order_by(c.entry_tick_at.desc(), c.id))
    since = then if last is None else then.where(c.entry_tick_at >= last.opened_at)
    return fetch(connection, TRADES, since.order_by(c.entry_tick_at, c.id))


def from_last_before(trades: Iterable[Trade], before: datetime) -> list[Trade]:
    """Trades of a position, oldest first, from the last one that opened before an instant."""
    ordered = sorted(trades, key=lambda trade: (trade.opened_at or FIRST_INSTANT, trade.id))
    earlier = [trade.opened_at or FIRST_INSTANT for trade in ordered if (trade.opened_at or FIRST_INSTANT) < before]
    return [trade for trade in ordered if not earlier or (trade.opened_at or FIRST_INSTANT) >= earlier[-1]]


def fills_of_position(view: View, account_id: str, position_key: str, *, since: datetime | None) -> list[Fill]:
    """The fills of a position at or after an instant, in the order in which trades are built from them."""
    start = since or FIRST_INSTANT
    return _fills_then(
        view,
        lambda: fetch(
            view.connection, FILLS, _FILLS, parameters(view.owner, account=account_id, key=position_key, since=start)
        ),
        lambda c: [c.account_id == account_id, c.position_key == position_key, c.at >= start],
    )


def _fills_then(view: View, read: Callable[[], list[Fill]], where: Where) -> list[Fill]:
    """The fills that meet a condition as of a view, in ledger order; `read` reads those that meet it now."""
    if has_no_later_correction(view, FILLS):
        return [fill for fill in read() if view.horizon.holds(fill.known_at, fill.recorded_at)]
    fills = fetch(view.connection, FILLS, known(FILLS, view.owner, view.horizon, where))
    return sorted(fills, key=lambda fill: fill.order)


def splits_since(connection: Connection, owner: str, account_id: str, since: datetime) -> list[Fill]:
    """The splits of an account at or after an instant."""
    c = FILLS.table.c
    return fetch(connection, FILLS, owned(FILLS, owner, c.account_id == account_id, c.at >= since, c.kind == "split"))


def renames(view: View, account_id: str) -> dict[str, str]:
    """The keys of the positions of an account that were renamed, by their new symbols."""
    fills = _fills_then(
        view,
        lambda: fetch(view.connection, FILLS, _RENAMES, parameters(view.owner, account=account_id)),
        lambda c: [c.account_id == account_id, c.kind == "rename"],
    )
    return {fill.symbol: fill.position_key for fill in fills}


def inferred_by(view: View, account_id: str, position_key: str, at: datetime) -> list[Fill]:
    """The inferred fills of a position that a fill reported for this instant may explain."""

    def where(c: Columns) -> list[ColumnElement[bool]]:
        return [c.account_id == account_id, c.position_key == position_key, c.latest_at >= at]

    c = FILLS.table.c
    now = owned(FILLS, view.owner, *where(c)).order_by(c.at, c.sequence, c.id)
    return _fills_then(view, lambda: fetch(view.connection, FILLS, now), where)


def incomplete_fills(view: View, account_id: str) -> list[Fill]:
    """The fills that became known at the view's instant and of which a price or a fee in money is not known."""
    c = FILLS.table.c
    incomplete = or_(c.price_source == "last_known", and_(c.fee_amount.is_not(None), c.fee == 0.0))
    at_instant = c.account_id == account_id, c.known_at == view.as_of, incomplete
    return fetch(view.connection, FILLS, owned(FILLS, view.owner, *at_instant).order_by(c.position_key))


def uncounted_payments(view: View, account_id: str) -> list[Fill]:
    """The payments that became known at the view's instant and belong to trades in a currency of unknown rate."""
    c, t, other = FILLS.table.c, TRADES.table.c, FILLS.table.alias()
    of_position = c.account_id == account_id, c.known_at == view.as_of, c.kind.in_(("funding", "fee", "dividend"))
    unconverted = select(t.id).where(
        t[OWNER] == view.owner,
        t.account_id == account_id,
        t.position_key == c.position_key,
        t.entry_tick_at <= c.at,
        t.currency.is_not(None),
    )
    rated = select(other.c.id).where(
        other.c[OWNER] == view.owner,
        other.c.account_id == account_id,
        other.c.position_key == c.position_key,
        other.c.rate.is_not(None),
    )
    statement = owned(FILLS, view.owner, *of_position, unconverted.exists(), ~rated.exists())
    return fetch(view.connection, FILLS, statement.order_by(c.position_key, c.at, c.sequence, c.id))


def contradicted_trades(connection: Connection, owner: str) -> list[Trade]:
    """The closed trades whose results the broker contradicts."""
    c = TRADES.table.c
    reported = owned(TRADES, owner, c.status == "closed", c.broker_pnl.is_not(None), c.broker_pnl != c.realized_pnl)
    return [trade for trade in fetch(connection, TRADES, reported) if trade.contradiction is not None]


def fills_of_symbol(connection: Connection, owner: str, account_id: str, symbol: str) -> list[Fill]:
    """The fills of a symbol on an account, in ledger order."""
    c = FILLS.table.c
    statement = owned(FILLS, owner, c.account_id == account_id, c.symbol == symbol)
    return fetch(connection, FILLS, statement.order_by(c.at, c.sequence, c.id))


def unconverted_trades(connection: Connection, owner: str) -> list[tuple[str, str, int]]:
    """Symbol, currency and number of the trades whose money could not be converted into the account's currency."""
    c = TRADES.table.c
    statement = select(c.symbol, c.currency, func.count().label("trades")).where(
        c.owner_id == owner, c.currency.is_not(None)
    )
    rows = connection.execute(statement.group_by(c.symbol, c.currency).order_by(c.symbol, c.currency))
    return [(row.symbol, row.currency, row.trades) for row in rows]


_FILLS_BY_ID = (
    select(FILLS.table)
    .where(_F.owner_id == OWNED, _F.account_id == bindparam("account"), _F.symbol == bindparam("symbol"))
    .where(_F.id.in_(bindparam("ids", expanding=True)))
)


def fills_by_key(view: View, account_id: str, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Fill]:
    """The fills with these symbols and ids, by symbol and id, for those that are stored."""
    ids: dict[str, list[str]] = {}
    for symbol, fill_id in keys:
        ids.setdefault(symbol, []).append(fill_id)
    by_key: dict[tuple[str, str], Fill] = {}
    for symbol, own in ids.items():
        for batch in in_batches(own):
            by_key |= {fill.key: fill for fill in _fills_by_id(view, account_id, symbol, batch)}
    return by_key


def _fills_by_id(view: View, account_id: str, symbol: str, ids: list[str]) -> list[Fill]:
    values = parameters(view.owner, account=account_id, symbol=symbol, ids=ids)
    return _fills_then(
        view,
        lambda: fetch(view.connection, FILLS, _FILLS_BY_ID, values),
        lambda c: [c.account_id == account_id, c.symbol == symbol, c.id.in_(ids)],
    )


def newest_reported_fill(connection: Connection, owner: str, account_id: str) -> FillMark | None:
    """The mark of the newest fill of an account that its broker or a file reported."""
    c = FILLS.table.c
    newest = (
        select(c.id, c.symbol, c.at)
        .where(c.owner_id == owner, c.account_id == account_id, c.kind != "inferred")
        .order_by(c.at.desc(), c.sequence.desc(), c.id.desc())
        .limit(1)
    )
    row = connection.execute(newest).first()
    return None if row is None else FillMark(id=row.id, symbol=row.symbol, at=row.at)


def marks_of_decision(connection: Connection, owner: str, decision_id: str) -> list[PositionMark]:
    """The positions that a tick left open."""
    rows = unchanged(
        connection,
        owner,
        ("marks", decision_id),
        (MARKS,),
        lambda: fetch(connection, MARKS, _LEFT_OPEN, parameters(owner, decision=decision_id)),
    )
    return sorted(rows, key=lambda mark: mark.position.position_key)


def add_marks(transaction: "Transaction", owner: str, decision_id: str, marks: Collection[PositionMark]) -> None:
    """Store the marks of a tick; the next tick does not read those that it left open."""
    transaction.add_all(MARKS, marks)
    left_open = [mark for mark in marks if mark.look == "after"]
    put_written(transaction.connection, owner, ("marks", decision_id), (MARKS,), left_open)


def marks_of_position(view: View, account_id: str, position_key: str, *, since: datetime) -> list[PositionMark]:
    """The marks of a position at or after an instant, oldest first."""
    c = MARKS.table.c
    of_position = c.account_id == account_id, c.position_key == position_key, c.at >= since
    statement = owned(MARKS, view.owner, *of_position, *within(MARKS, view.horizon))
    return fetch(view.connection, MARKS, statement.order_by(c.at, c.sequence))


_LAST_MARK = (
    select(MARKS.table)
    .where(MARKS.table.c.owner_id == OWNED, MARKS.table.c.trade_id == bindparam("trade"), *prepared_within(MARKS))
    .order_by(MARKS.table.c.at.desc(), MARKS.table.c.sequence.desc())
    .limit(1)
)


def last_mark(view: View, trade: Trade) -> PositionMark | None:
    """The last mark of a trade: usually one that the last decision on its account left."""
    decision = last_decision_of_account(view, trade.account_id)
    if decision is not None:
        for mark in marks_of_decision(view.connection, view.owner, decision.id):
            if mark.trade_id == trade.id:
                return mark
    return fetch_one(view.connection, MARKS, _LAST_MARK, parameters(view.owner, view.horizon, trade=trade.id))


def last_marks(view: View, trade_id: str, *, limit: int) -> list[PositionMark]:
    """The last marks of a trade, newest first."""
    c = MARKS.table.c
    marks = owned(MARKS, view.owner, c.trade_id == trade_id, *within(MARKS, view.horizon))
    return fetch(view.connection, MARKS, marks.order_by(c.at.desc(), c.sequence.desc()).limit(limit))


def trades_by_id(connection: Connection, owner: str, ids: Iterable[str]) -> dict[str, Trade]:
    """The given trades by id, for those that exist."""
    rows = fetch(connection, TRADES, owned(TRADES, owner, TRADES.table.c.id.in_(list(ids))))
    return {trade.id: trade for trade in rows}


_BY_ID = select(TRADES.table).where(
    TRADES.table.c.owner_id == OWNED, TRADES.table.c.id.in_(bindparam("ids", expanding=True))
)


def trades_then(view: View, ids: Collection[str]) -> dict[str, Trade]:
    """The given trades as they were known at the view's horizon, by id; former versions are read one by one."""
    current = fetch(view.connection, TRADES, _BY_ID, parameters(view.owner, ids=list(ids))) if ids else []
    known_then = {each.id: each for each in current if view.horizon.holds(each.known_at, each.recorded_at)}
    former = (trade_then(view, trade_id) for trade_id in ids if trade_id not in known_then)
    return known_then | {each.id: each for each in former if each is not None}


class TradeReasons(NamedTuple):
    """Why a trade was opened and closed, in the words that were recorded; None if nothing was."""

    entry: str | None
    exit: str | None


NO_REASONS = TradeReasons(None, None)
MOST_REASONS = 256
"""Trades whose reasons are kept between reads."""
_T = TRADES.table.c
_REASONS = select(_T.id, _T.known_at, _T.recorded_at, _T.entry_reason, _T.exit_reason).where(
    _T.owner_id == OWNED, _T.id.in_(bindparam("ids", expanding=True))
)


def reasons_then(view: View, ids: Collection[str]) -> dict[str, TradeReasons]:
    """Why the given trades were opened and closed, as it was known at the view's horizon, by id.

    The current versions of trades in the last answers are not read again.
    """
    cached: dict[str, Any] = unchanged(view.connection, view.owner, "reasons of trades", (TRADES,), dict)
    if len(cached) > MOST_REASONS:
        cached.clear()
    missing = [trade_id for trade_id in ids if trade_id not in cached]
    if missing:
        cached |= {row.id: row for row in view.connection.execute(_REASONS, parameters(view.owner, ids=missing))}
    current = (cached[trade_id] for trade_id in ids if trade_id in cached)
    reasons = {
        row.id: TradeReasons(row.entry_reason, row.exit_reason)
        for row in current
        if view.horizon.holds(row.known_at, row.recorded_at)
    }
    former = (trade_then(view, trade_id) for trade_id in ids if trade_id not in reasons)
    return reasons | {each.id: TradeReasons(each.entry.reason, each.exit_reason) for each in former if each is not None}


def has_ledger(connection: Connection, owner: str, account_id: str) -> bool:
    """Whether an account has any fill."""
    return fetch_one(connection, FILLS, owned(FILLS, owner, FILLS.table.c.account_id == account_id)) is not None


_SINCE = select(FILLS.table).where(
    _F.owner_id == OWNED, _F.account_id == bindparam("account"), _F.at >= bindparam("since")
)
_IN_ORDER = _SINCE.order_by(_F.at, _F.sequence, _F.id).execution_options(stream_results=True, yield_per=PAGE)


def fills_since(connection: Connection, owner: str, account_id: str, since: datetime) -> Iterator[Fill]:
    """The fills of an account at or after an instant, in ledger order, read a page at a time."""
    for row in connection.execute(_IN_ORDER, parameters(owner, account=account_id, since=since)):
        yield FILLS.from_row(row)


def fill_count(connection: Connection, owner: str, account_id: str, since: datetime) -> int:
    """The number of fills of an account at or after an instant."""
    values = parameters(owner, account=account_id, since=since)
    return connection.execute(select(func.count()).select_from(_SINCE.subquery()), values).scalar_one()


def ledger_trades_since(connection: Connection, owner: str, account_id: str, since: datetime) -> list[Trade]:
    """The trades of an account that were built from fills and are open, or became known at or after an instant."""
    c = TRADES.table.c
    later = or_(c.status == "open", c.known_at >= since)
    statement = owned(TRADES, owner, c.account_id == account_id, c.first_fill_id.is_not(None), later)
    return fetch(connection, TRADES, statement.order_by(c.id))


def first_opened(
    connection: Connection, owner: str, account_id: str, symbol: str, *, recorded_before: datetime
) -> datetime | None:
    """When the first of the trades in a symbol was opened that are built from fills and were recorded by an instant."""
    c = TRADES.table.c
    of_symbol = c.owner_id == owner, c.account_id == account_id, c.symbol == symbol, c.first_fill_id.is_not(None)
    statement = select(func.min(c.entry_tick_at)).where(*of_symbol, c.recorded_at <= recorded_before)
    at: datetime | None = connection.execute(statement).scalar_one()
    return at


def last_entry_at(view: View, deployment_id: str) -> datetime | None:
    """When a deployment entered its last trade; of a trade whose entry is not known, when it left it."""
    trades = known(TRADES, view.owner, view.horizon, lambda c: matching(c, deployment_id=deployment_id)).subquery()
    last = select(func.max(func.coalesce(trades.c.entry_tick_at, trades.c.exit_tick_at)))
    at: datetime | None = view.connection.execute(last).scalar_one()
    return at


def last_ledger_trade(
    connection: Connection, owner: str, account_id: str, position_key: str, at: datetime
) -> Trade | None:
    """The last trade of a position that was built from fills and opened at or before an instant."""
    c = TRADES.table.c
    of_position = c.account_id == account_id, c.position_key == position_key, c.first_fill_id.is_not(None)
    statement = owned(TRADES, owner, *of_position, c.entry_tick_at <= at)
    return fetch_one(connection, TRADES, statement.order_by(c.entry_tick_at.desc(), c.id))
