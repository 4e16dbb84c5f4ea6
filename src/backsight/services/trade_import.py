"""Trades from a file: rows checked as reports, rows that are stored already, and the trades of the new rows."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

from backsight.core.context import ContextVector
from backsight.core.errors import BacksightError, Conflict, Invalid, Refused
from backsight.core.ids import digest
from backsight.core.instants import JUST_BEFORE
from backsight.core.memory.affective import CloseFact, trend_of, with_agent_state
from backsight.core.memory.episodic import Episode, episode_id_of, episode_of_trade
from backsight.core.memory.mood_series import MoodRow, mood_from, next_strategy_rows
from backsight.core.portfolio import Mode
from backsight.core.quick_init import quick_init
from backsight.core.strategies import Deployment
from backsight.core.text.counts import count_of
from backsight.core.trades.report import TradeReport, checked_report, reported_trade_id, trade_from_report
from backsight.core.trades.trade import REPORTED_ENTRY, Entry, Trade, dollars_for_one
from backsight.importers.files import Source
from backsight.importers.formats import FileRow, LeftOutRow, RemarkRow
from backsight.importers.trades import TradeRow, TradesRead
from backsight.services.context import Context
from backsight.services.deployments import account_of
from backsight.services.import_rows import LeftOutCount
from backsight.services.learning import BulkLearning, BulkLearningReport
from backsight.services.mood import last_known, rebuild_account_moods, strategy_moods
from backsight.services.trade_reports import PointValues, equity_after, key_conflict, reported_deployment, runs_by_ticks
from backsight.store import trades as stored
from backsight.store.database import Connection
from backsight.store.experience import mood_row, mood_rows_between
from backsight.store.memories import last_teaching_place
from backsight.store.state import EQUITY
from backsight.store.transaction import Transaction
from backsight.store.view import everything

ROWS_IN_PART = 5_000
"""Rows that are stored and learned at once; more take more memory, fewer read the same cells more often."""
SHARED_TEXTS = ("symbol", "market_context", "reflection", "reason", "exit_reason")
"""Arguments that are often alike in many rows; equal texts are one object, so that a large file takes less memory."""


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """A row of a file as a checked report of a trade."""

    number: int
    report: TradeReport
    closed_at: datetime
    strategy_name: str
    deployment: str | None
    mode: Mode | None
    trade_id: str
    request_digest: bytes
    """Its text would take twice the memory."""

    @property
    def destination(self) -> tuple[str | None, str, Mode | None]:
        """What chooses the deployment of the row: the names of deployment and strategy, and the mode."""
        return self.deployment, self.strategy_name, self.mode


def checked_rows(
    ctx: Context,
    file: TradesRead,
    *,
    defaults: Mapping[str, str],
    check_arguments: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> list[ReportRow]:
    """The rows of a file, each checked as the report of a trade; an error names the row.

    `defaults` are arguments for rows that do not have them.
    """
    rows, point_values = [], PointValues(ctx)
    for row in file.rows:
        try:
            rows.append(_checked_row(ctx, row, check_arguments({**defaults, **row.values}), point_values))
        except (Invalid, Refused) as error:
            raise file.source.located(row.number, error) from None
    return rows


def checked_format_rows(
    ctx: Context,
    rows: Iterable[FileRow],
    *,
    defaults: Mapping[str, str],
    check_arguments: Callable[[Mapping[str, Any]], dict[str, Any]],
    left_out: LeftOutCount,
    notes: list[str],
) -> list[ReportRow]:
    """The trades that a format reads, checked as by `checked_rows`; a row that cannot be one is left out as broken."""
    reports: list[ReportRow] = []
    point_values = PointValues(ctx)
    for row in rows:
        match row:
            case TradeRow():
                try:
                    reports.append(_checked_row(ctx, row, check_arguments({**defaults, **row.values}), point_values))
                except (Invalid, Refused) as error:
                    reason = f"{error.field or 'row'} cannot be used"
                    left_out.add(row.number, reason, broken=True, detail=error.message)
            case LeftOutRow():
                left_out.add(row.number, row.reason, broken=row.broken)
            case RemarkRow():
                notes.append(row.text)
            case _:
                raise TypeError(f"{row!r} is not a row of trades")
    return reports


def result_doubts(rows: Sequence[ReportRow]) -> list[str]:
    """A sentence for each symbol with results that prices and sizes do not give, with the first such row."""
    doubtful: dict[str, list[tuple[int, str]]] = {}
    for row in rows:
        doubt = row.report.doubt
        if doubt is not None:
            doubtful.setdefault(row.report.symbol, []).append((row.number, doubt))
    return [
        f"{count_of(len(doubts), 'doubtful result')} of {symbol}, first in row {number}: {first}"
        for symbol, doubts in sorted(doubtful.items())
        for number, first in doubts[:1]
    ]


def unknown_rows(transaction: Transaction, ctx: Context, source: Source, rows: Sequence[ReportRow]) -> list[ReportRow]:
    """The rows whose trades are not stored yet; `Conflict` if a row has the key of another trade."""
    known = stored.digests(transaction.connection, ctx.owner, [row.trade_id for row in rows])
    digests = {trade_id: bytes.fromhex(digest_text) for trade_id, digest_text in known.items()}
    new: list[ReportRow] = []
    for row in rows:
        if row.trade_id not in digests:
            digests[row.trade_id] = row.request_digest
            new.append(row)
        elif digests[row.trade_id] != row.request_digest:
            raise source.located(row.number, key_conflict(row.trade_id))
    return new


def store_rows(
    transaction: Transaction, ctx: Context, source: Source, rows: list[ReportRow]
) -> BulkLearningReport | None:
    """Store the trades of new rows with the equity in them, and learn from them; empties the list of rows.

    Rows that follow all stored trades are stored and learned in parts, in the order of their closes, so that a large
    file is never in memory as trades and episodes too. Other rows change moods that are stored already: all of them
    are learned at once.
    """
    if not rows:
        return None
    deployments: dict[tuple[str | None, str, Mode | None], Deployment] = {}
    for row in rows:
        if row.destination not in deployments:
            deployments[row.destination] = _deployment_of_row(transaction, ctx, source, row)
    rates = {
        each.account_id: dollars_for_one(account_of(transaction.connection, each).currency)
        for each in deployments.values()
    }
    _store_equity(transaction, ctx, rows, [deployments[row.destination] for row in rows])
    rows.sort(key=attrgetter("closed_at"))
    size = ROWS_IN_PART if _follow_stored_trades(transaction, deployments.values(), rows[0].closed_at) else len(rows)
    learning = BulkLearning(transaction)
    rows.reverse()  # so that the rows of a part can be taken from the end
    while rows:
        learning.add(_store_part(transaction, ctx, _next_part(rows, size), deployments, rates))
    return learning.finish()


def _follow_stored_trades(transaction: Transaction, deployments: Iterable[Deployment], first_close: datetime) -> bool:
    """Whether all stored trades of the modes became known before an instant."""
    modes = {(each.owner_id, each.mode) for each in deployments}
    places = (last_teaching_place(transaction.connection, *mode) for mode in modes)
    return all(place is None or place[0] < first_close for place in places)


def _next_part(rows: list[ReportRow], size: int) -> list[ReportRow]:
    """Take the next rows from the end of a list; rows of one instant are in one part."""
    part = [rows.pop() for _ in range(min(size, len(rows)))]
    while rows and rows[-1].closed_at == part[-1].closed_at:
        part.append(rows.pop())
    return part


def _store_part(
    transaction: Transaction,
    ctx: Context,
    rows: Sequence[ReportRow],
    deployments: Mapping[tuple[str | None, str, Mode | None], Deployment],
    rates: Mapping[str, float | None],
) -> list[Episode]:
    """Store the trades of some rows, and return their episodes; few of the trades are in memory at once."""
    of_rows = [deployments[row.destination] for row in rows]
    entries = _entry_states(transaction.connection, rows, of_rows)
    episodes: list[Episode] = []

    def trades() -> Iterator[Trade]:
        for row, deployment, entry in zip(rows, of_rows, entries, strict=True):
            trade = trade_from_report(
                row.report,
                deployment,
                row.trade_id,
                entry=REPORTED_ENTRY if entry.equity is None else Entry(equity=entry.equity),
                context=entry.context,
                usd_rate=rates[deployment.account_id],
                request_digest=row.request_digest.hex(),
                now=ctx.now,
            )
            episodes.append(episode_of_trade(trade))
            yield trade

    transaction.add_all(stored.TRADES, trades())
    return episodes


def _store_equity(
    transaction: Transaction, ctx: Context, rows: Sequence[ReportRow], deployments: Sequence[Deployment]
) -> None:
    """Store the equity that the rows of a file report, and let the moods of the accounts learn it."""
    points = [
        equity_after(row.trade_id, deployment, row.report.equity, known_at=row.closed_at, recorded_at=ctx.now)
        for row, deployment in zip(rows, deployments, strict=True)
        if row.report.equity is not None
    ]
    transaction.add_all(EQUITY, points)
    for owner, account_id in sorted({(point.owner_id, point.account_id) for point in points}):
        rebuild_account_moods(transaction, owner, account_id)


class _EntryState(NamedTuple):
    """What is known of a trade's entry beyond its report."""

    equity: float | None
    context: ContextVector
    """The context of the report, with the agent's state right before the entry if the entry has a time."""


def _entry_states(
    connection: Connection, rows: Sequence[ReportRow], deployments: Sequence[Deployment]
) -> list[_EntryState]:
    """The state at the entry of each row; earlier trades of the file change it."""
    of_series: dict[tuple[str, str], list[int]] = {}
    for place, deployment in enumerate(deployments):
        of_series.setdefault((deployment.account_id, deployment.strategy_name), []).append(place)
    states: dict[int, _EntryState] = {}
    for places in of_series.values():
        own, deployment = [rows[place] for place in places], deployments[places[0]]
        since, until = min(map(_entered_at, own)) - JUST_BEFORE, max(map(_entered_at, own))
        account = mood_rows_between(
            connection, deployment.owner_id, deployment.account_id, "", since=since, until=until
        )
        strategy = _strategy_rows(connection, deployment, own, since=since, until=until)
        for place, row in zip(places, own, strict=True):
            states[place] = _entry_state(row, account, strategy)
    return [states[place] for place in range(len(rows))]


def _strategy_rows(
    connection: Connection, deployment: Deployment, rows: Sequence[ReportRow], *, since: datetime, until: datetime
) -> Sequence[MoodRow]:
    """The moods of a strategy on an account, as they will be once the trades of the rows are stored."""
    key = {"account_id": deployment.account_id, "strategy_name": deployment.strategy_name}
    in_order = sorted(rows, key=attrgetter("closed_at"))
    closes = [_close_fact(row, sequence=number) for number, row in enumerate(in_order)]
    last = mood_row(everything(connection, deployment.owner_id), deployment.account_id, deployment.strategy_name)
    if last is not None and last.known_at >= closes[0].known_at:
        return strategy_moods(connection, deployment, more=closes)
    new = next_strategy_rows(last, closes, owner_id=deployment.owner_id, **key)[0 if last is None else 1 :]
    args = deployment.owner_id, deployment.account_id, deployment.strategy_name
    return [*mood_rows_between(connection, *args, since=since, until=until), *new]


def _close_fact(row: ReportRow, *, sequence: int) -> CloseFact:
    """The close that the episode of a row will state."""
    report = row.report
    return CloseFact(
        id=episode_id_of(row.trade_id),
        at=row.closed_at,
        known_at=row.closed_at,
        sequence=sequence,
        net=report.pnl,
        outcome=report.outcome,
        trend=trend_of(report.direction, report.context.regime),
    )


def _entered_at(row: ReportRow) -> datetime:
    return row.report.opened_at or row.closed_at


def _entry_state(row: ReportRow, account: Sequence[MoodRow], strategy: Sequence[MoodRow]) -> _EntryState:
    at_entry, opened_at = last_known(account, _entered_at(row)), row.report.opened_at
    equity = None if at_entry is None or at_entry.account is None else at_entry.account.equity
    context = row.report.context
    if opened_at is not None:
        before = opened_at - JUST_BEFORE
        context = with_agent_state(context, mood_from(last_known(account, before), last_known(strategy, before)))
    return _EntryState(equity, context)


def _checked_row(ctx: Context, row: TradeRow, arguments: dict[str, Any], point_values: PointValues) -> ReportRow:
    key = arguments.pop("idempotency_key")
    request_digest = digest(arguments)
    closed_at = arguments["closed_at"]
    if closed_at is None:
        raise Invalid("missing; every trade in a file needs the time of its close", field="closed_at")
    strategy_name, deployment, mode = (arguments.pop(name) for name in ("strategy_name", "deployment", "mode"))
    for name in SHARED_TEXTS:
        if arguments.get(name) is not None:
            arguments[name] = sys.intern(arguments[name])
    arguments["context"] = arguments["context"] or ContextVector()
    arguments["tags"] = _shared(tuple(map(sys.intern, arguments["tags"])))
    return ReportRow(
        number=row.number,
        report=checked_report(
            TradeReport(**arguments, point_value=point_values.of(arguments["symbol"], deployment)), now=ctx.now
        ),
        closed_at=closed_at,
        strategy_name=sys.intern(strategy_name),
        deployment=deployment,
        mode=mode,
        trade_id=reported_trade_id(ctx.owner, key, request_digest),
        request_digest=bytes.fromhex(request_digest),
    )


@lru_cache(maxsize=256)
def _shared(tags: tuple[str, ...]) -> tuple[str, ...]:
    """The tags; equal tags of many rows are one object."""
    return tags


def _deployment_of_row(transaction: Transaction, ctx: Context, source: Source, row: ReportRow) -> Deployment:
    try:
        deployment = reported_deployment(transaction, ctx, row.deployment, row.strategy_name, mode=row.mode)
        if row.deployment is not None and runs_by_ticks(transaction, ctx, deployment):
            message = (
                f"{deployment.name!r} runs by ticks, so its trades come from the broker's fills; "
                "remove this row, or leave its deployment out"
            )
            raise Conflict(message, field="deployment")
    except BacksightError as error:
        raise source.located(row.number, error) from None
    return deployment
