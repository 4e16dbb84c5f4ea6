"""Fills, trades and marks at rest."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, desc, func, literal_column, or_, select

from backsight.core.fills import Fill
from backsight.core.instants import Horizon
from backsight.core.portfolio import Mode, Position
from backsight.core.reflection.closed_trades import ClosedTradeRow
from backsight.core.risk_state import Close
from backsight.core.trades.excursion import Excursions
from backsight.core.trades.mark import PositionMark, Reach
from backsight.core.trades.trade import Outcome, Trade, TradeStatus
from backsight.store.mapping import noun
from backsight.store.reading import (
    OWNED,
    Columns,
    fetch,
    fetch_one,
    known,
    matching,
    owned,
    parameters,
    prepared_known,
    prepared_within,
)
from backsight.store.strategies import ACCOUNTS

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
    key=("account_id", "id"),
    within={"accounts": ("account_id",)},
    indexes=[("account_id", "position_key", "at")],
    revised=True,
)

MARKS = noun(
    PositionMark,
    "position_marks",
    key=("account_id", "position_key", "at", "sequence", "look"),
    names={
        **{f"position.{field.name}": field.name for field in fields(Position)},
        **{f"reach.{field.name}": field.name for field in fields(Reach)},
        **{f"reach.excursions.{field.name}": field.name for field in fields(Excursions)},
        "reach.excursions.source": "excursion_source",
        "reach.excursions.interval_seconds": "excursion_interval_seconds",
    },
    indexes=[("decision_id",), ("trade_id", "at", "sequence")],
    clustered=True,
)


def trade(connection: Connection, owner: str, trade_id: str, horizon: Horizon | None = None) -> Trade | None:
    """The trade of this id, as it stood then."""
    if horizon is None:
        return fetch_one(connection, TRADES, owned(TRADES, owner, TRADES.table.c.id == trade_id))
    return fetch_one(connection, TRADES, known(TRADES, owner, horizon, lambda c: [c.id == trade_id]))


MOST_ASKED = 500
"""Ids in one question: databases bound how many values they take at once."""
_DIGESTS = select(TRADES.table.c.id, TRADES.table.c.request_digest).where(
    TRADES.table.c.owner_id == OWNED, TRADES.table.c.id.in_(bindparam("ids", expanding=True))
)


def digests(connection: Connection, owner: str, ids: Sequence[str]) -> dict[str, str]:
    """The digests of the requests that made those of these trades that there are, by id."""
    found: dict[str, str] = {}
    for first in range(0, len(ids), MOST_ASKED):
        rows = connection.execute(_DIGESTS, parameters(owner, ids=ids[first : first + MOST_ASKED]))
        found |= {row.id: row.request_digest for row in rows}
    return found


def recent_equal(connection: Connection, owner: str, request_digest: str, since: datetime) -> Trade | None:
    """The latest trade that an equal request recorded at or after an instant."""
    c = TRADES.table.c
    statement = owned(TRADES, owner, c.request_digest == request_digest, c.recorded_at >= since)
    return fetch_one(connection, TRADES, statement.order_by(c.recorded_at.desc(), c.id))


def trades(
    connection: Connection,
    owner: str,
    horizon: Horizon,
    *,
    limit: int,
    before: tuple[datetime, str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    status: TradeStatus = "closed",
    **equal: str | None,
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

    newest_first = known(TRADES, owner, horizon, where).order_by(desc(column), "id")
    return fetch(connection, TRADES, newest_first.limit(limit))


def close_marks(connection: Connection, owner: str) -> list[tuple[str, datetime, datetime]]:
    """Of every closed trade its deployment, its close and when it was last recorded."""
    c = TRADES.table.c
    closed = select(c.deployment_id, c.exit_tick_at, c.recorded_at).where(c.owner_id == owner, c.status == "closed")
    return [(row[0], row[1], row[2]) for row in connection.execute(closed)]


def results(
    connection: Connection, owner: str, horizon: Horizon, *, deployment_id: str | None = None
) -> list[tuple[str, float, datetime]]:
    """Deployment, net PnL and instant of every close known then, in order."""
    rows = known(TRADES, owner, horizon, lambda c: matching(c, status="closed", deployment_id=deployment_id)).subquery()
    statement = select(rows.c.deployment_id, rows.c.pnl, rows.c.exit_tick_at).order_by(rows.c.exit_tick_at, rows.c.id)
    return [(row.deployment_id, row.pnl, row.exit_tick_at) for row in connection.execute(statement)]


def last_closed(
    connection: Connection, owner: str, horizon: Horizon, *, strategy_id: str, mode: Mode, limit: int
) -> list[Trade]:
    """The last closed trades of a strategy in a mode, of all its versions and deployments, newest first."""
    return trades(connection, owner, horizon, limit=limit, skill_id=strategy_id, mode=mode)


def closed_count(connection: Connection, owner: str, horizon: Horizon, *, strategy_id: str, mode: Mode) -> int:
    """How many trades of a strategy in a mode were closed by then."""
    rows = known(TRADES, owner, horizon, lambda c: _of_strategy(c, strategy_id, mode)).subquery()
    return connection.execute(select(func.count()).select_from(rows)).scalar_one()


def ended(
    connection: Connection, owner: str, horizon: Horizon, *, strategy_id: str, mode: Mode
) -> list[ClosedTradeRow]:
    """Every closed trade of a strategy in a mode, as far as comparisons need it, in the order of the closes."""
    rows = known(TRADES, owner, horizon, lambda c: _of_strategy(c, strategy_id, mode)).subquery()
    c = rows.c
    statement = select(
        c.deployment_id,
        c.entry_tick_at,
        c.exit_tick_at,
        c.outcome_value,
        c.outcome_unit,
        c.pnl,
        c.realized_pnl_usd,
        c.entry_lessons_hash,
        c.memory_arm,
    ).order_by(c.exit_tick_at, c.id)
    return [
        ClosedTradeRow(
            deployment_id=row.deployment_id,
            opened_at=row.entry_tick_at,
            closed_at=row.exit_tick_at,
            outcome=None if row.outcome_unit is None else Outcome(value=row.outcome_value, unit=row.outcome_unit),
            pnl=row.pnl,
            realized_pnl_usd=row.realized_pnl_usd,
            lessons_hash=row.entry_lessons_hash,
            memory_arm=row.memory_arm,
        )
        for row in connection.execute(statement)
    ]


def _of_strategy(c: Columns, strategy_id: str, mode: Mode) -> list[ColumnElement[bool]]:
    return [c.skill_id == strategy_id, c.mode == mode, c.status == "closed"]


def versions(
    connection: Connection, owner: str, horizon: Horizon, mode: str
) -> dict[tuple[str, str], dict[int | None, int]]:
    """How many closed trades there are of each version, by strategy and symbol."""
    rows = known(TRADES, owner, horizon, lambda c: matching(c, status="closed", mode=mode)).subquery()
    named = (rows.c.strategy_name, rows.c.symbol, rows.c.version)
    counted = select(*named, func.count().label("trades")).group_by(*named)
    found: dict[tuple[str, str], dict[int | None, int]] = {}
    for row in connection.execute(counted):
        found.setdefault((row.strategy_name, row.symbol), {})[row.version] = row.trades
    return found


def _closed(c: Columns) -> list[ColumnElement[bool]]:
    return [c.deployment_id == bindparam("deployment"), c.status == "closed"]


_CLOSES = prepared_known(TRADES, ["exit_tick_at", "pnl", "id"], _closed).order_by(desc("exit_tick_at"), desc("id"))
_FEW = (12, 200, None)
"""Closes that are read at first, then, then all: a day and a losing streak are seldom longer."""
_LATEST = [_CLOSES.limit(few) for few in _FEW]
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
FIRST_INSTANT = datetime.min.replace(tzinfo=UTC)
_LEFT_OPEN = (
    select(MARKS.table)
    .where(MARKS.table.c.owner_id == OWNED, MARKS.table.c.decision_id == bindparam("decision"))
    .where(MARKS.table.c.look == "after")
)


def closes(connection: Connection, owner: str, deployment_id: str, horizon: Horizon, *, since: datetime) -> list[Close]:
    """The closes of a deployment from an instant on, and before it those since the last win, oldest first."""
    values = parameters(owner, horizon, deployment=deployment_id)
    found: list[Any] = []
    for statement, few in zip(_LATEST, _FEW, strict=True):
        rows = connection.execute(statement, values)
        found = list(takewhile(lambda row: row.exit_tick_at >= since or row.pnl <= 0, rows))
        if few is None or len(found) < few:
            break
    return [Close(at=row.exit_tick_at, net=row.pnl) for row in reversed(found)]


_CLOSED = [
    prepared_known(TRADES, TRADES.columns, lambda c: [*_closed(c), c.entry_tick_at.is_not(None)]).order_by(
        desc("entry_tick_at"), "id"
    ),
    prepared_known(TRADES, TRADES.columns, lambda c: [*_closed(c), c.entry_tick_at.is_(None)]).order_by(
        desc("exit_tick_at"), "id"
    ),
]
"""Closed trades of a deployment whose entry is known, and those of which only the end is."""
_RECENTLY_CLOSED = [statement.limit(bindparam("most")) for statement in _CLOSED]


def recent_closed(
    connection: Connection, owner: str, deployment_id: str, horizon: Horizon, *, most: int
) -> list[Trade]:
    """The closed trades that a deployment entered last, as they stood then; those without an entry by their end."""
    values = parameters(owner, horizon, deployment=deployment_id, most=most)
    found = [trade for statement in _RECENTLY_CLOSED for trade in fetch(connection, TRADES, statement, values)]
    by_id = sorted(found, key=lambda trade: trade.id)
    return sorted(by_id, key=lambda trade: trade.opened_at or trade.closed_at or FIRST_INSTANT, reverse=True)[:most]


_OPEN_THEN = prepared_known(
    TRADES,
    TRADES.columns,
    lambda c: [c.account_id == bindparam("account"), c.status == literal_column("'open'")],
)


def open_then(connection: Connection, owner: str, account_id: str, horizon: Horizon) -> list[Trade]:
    """The trades of an account that were open at a horizon."""
    return fetch(connection, TRADES, _OPEN_THEN, parameters(owner, horizon, account=account_id))


_ACCOUNTS = select(ACCOUNTS.table.c.id, ACCOUNTS.table.c.mode).where(ACCOUNTS.table.c.owner_id == OWNED)


def every_open(
    connection: Connection, owner: str, horizon: Horizon, *, strategy_name: str | None, mode: str | None
) -> list[Trade]:
    """All trades that were open at a horizon, of a strategy and a mode where they are named, the last entered first."""
    accounts = [row.id for row in connection.execute(_ACCOUNTS, parameters(owner)) if mode in (None, row.mode)]
    found = [trade for account in accounts for trade in open_then(connection, owner, account, horizon)]
    wanted = sorted((each for each in found if strategy_name in (None, each.strategy_name)), key=lambda each: each.id)
    return sorted(wanted, key=lambda trade: trade.opened_at or FIRST_INSTANT, reverse=True)


def open_trades(connection: Connection, owner: str, account_id: str) -> list[Trade]:
    """The open trades of an account, by position."""
    found = fetch(connection, TRADES, _OPEN, parameters(owner, account=account_id))
    return sorted(found, key=lambda trade: trade.position_key)  # in SQL, a whole account would be read in this order


def trades_of_position(
    connection: Connection, owner: str, account_id: str, position_key: str, *, before: datetime
) -> list[Trade]:
    """The folded trades of a position from the last one opened before an instant on, oldest first."""
    c = TRADES.table.c
    folded = owned(
        TRADES, owner, c.account_id == account_id, c.position_key == position_key, c.first_fill_id.is_not(None)
    )
    last = fetch_one(connection, TRADES, folded.where(c.entry_tick_at < before).order_by(c.entry_tick_at.desc(), c.id))
    since = folded if last is None else folded.where(c.entry_tick_at >= last.opened_at)
    return fetch(connection, TRADES, since.order_by(c.entry_tick_at, c.id))


def fills_of_position(
    connection: Connection, owner: str, account_id: str, position_key: str, *, since: datetime | None
) -> list[Fill]:
    """The fills of a position from an instant on, in the order in which they fold."""
    values = parameters(owner, account=account_id, key=position_key, since=since or FIRST_INSTANT)
    return fetch(connection, FILLS, _FILLS, values)


def inferred_by(connection: Connection, owner: str, account_id: str, position_key: str, at: datetime) -> list[Fill]:
    """The inferred fills of a position that a report of this instant may explain."""
    c = FILLS.table.c
    statement = owned(FILLS, owner, c.account_id == account_id, c.position_key == position_key, c.latest_at >= at)
    return fetch(connection, FILLS, statement.order_by(c.at, c.sequence, c.id))


def fills_by_id(connection: Connection, owner: str, account_id: str, ids: Iterable[str]) -> dict[str, Fill]:
    """Those of these fills that are stored, by id."""
    wanted = list(ids)
    if not wanted:
        return {}
    c = FILLS.table.c
    found = fetch(connection, FILLS, owned(FILLS, owner, c.account_id == account_id, c.id.in_(wanted)))
    return {fill.id: fill for fill in found}


def marks_of_decision(connection: Connection, owner: str, decision_id: str) -> list[PositionMark]:
    """The positions that a tick left open."""
    found = fetch(connection, MARKS, _LEFT_OPEN, parameters(owner, decision=decision_id))
    return sorted(found, key=lambda mark: mark.position.position_key)


def marks_of_position(
    connection: Connection, owner: str, account_id: str, position_key: str, *, since: datetime
) -> list[PositionMark]:
    """A position at every tick from an instant on, oldest first."""
    c = MARKS.table.c
    statement = owned(MARKS, owner, c.account_id == account_id, c.position_key == position_key, c.at >= since)
    return fetch(connection, MARKS, statement.order_by(c.at, c.sequence))


_LAST_MARK = (
    select(MARKS.table)
    .where(MARKS.table.c.owner_id == OWNED, MARKS.table.c.trade_id == bindparam("trade"), *prepared_within(MARKS))
    .order_by(MARKS.table.c.at.desc(), MARKS.table.c.sequence.desc())
    .limit(1)
)


def last_mark(connection: Connection, owner: str, trade_id: str, horizon: Horizon) -> PositionMark | None:
    """The last tick that saw a trade open, as far as the horizon goes."""
    return fetch_one(connection, MARKS, _LAST_MARK, parameters(owner, horizon, trade=trade_id))


def trades_by_id(connection: Connection, owner: str, ids: Iterable[str]) -> dict[str, Trade]:
    """Those of these trades that there are, by id."""
    found = fetch(connection, TRADES, owned(TRADES, owner, TRADES.table.c.id.in_(list(ids))))
    return {trade.id: trade for trade in found}


def has_ledger(connection: Connection, owner: str, account_id: str) -> bool:
    """Whether an account has any fill."""
    return fetch_one(connection, FILLS, owned(FILLS, owner, FILLS.table.c.account_id == account_id)) is not None
