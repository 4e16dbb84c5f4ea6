"""Trades from a file: rows checked as reports, rows that are stored already, and the trades of the new rows."""

import gc
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from backsight.core.context import ContextVector
from backsight.core.errors import BacksightError, Conflict, Invalid
from backsight.core.ids import digest
from backsight.core.strategies import Deployment
from backsight.core.trades.report import TradeReport, checked_report, reported_trade_id, trade_from_report
from backsight.core.trades.trade import Trade
from backsight.importers.files import Source
from backsight.importers.trades import TradeRow, TradesRead
from backsight.services.context import Context
from backsight.services.trade_reports import key_conflict, reported_deployment, runs_by_ticks
from backsight.store import trades as stored
from backsight.store.experience import equity_series
from backsight.store.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """A row of a file as a checked report of a trade."""

    number: int
    report: TradeReport
    closed_at: datetime
    strategy_name: str
    deployment: str | None
    trade_id: str
    request_digest: str

    @property
    def destination(self) -> tuple[str | None, str]:
        """The names that choose the deployment of the row: deployment and strategy."""
        return self.deployment, self.strategy_name

    @property
    def entered_at(self) -> datetime:
        return self.report.opened_at or self.closed_at


def checked_rows(
    ctx: Context,
    file: TradesRead,
    *,
    defaults: Mapping[str, str],
    check_arguments: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> list[ReportRow]:
    """The rows of a file, each checked as the arguments of `remember_trade`; an error names the row.

    `defaults` are arguments for rows that do not have them.
    """
    rows = []
    for row in file.rows:
        try:
            rows.append(_checked_row(ctx, row, check_arguments({**defaults, **row.values})))
        except Invalid as error:
            raise file.source.located(row.number, error) from None
    return rows


def unknown_rows(transaction: Transaction, ctx: Context, source: Source, rows: Sequence[ReportRow]) -> list[ReportRow]:
    """The rows whose trades are not stored yet; `Conflict` if a row has the key of another trade."""
    digests = stored.digests(transaction.connection, ctx.owner, [row.trade_id for row in rows])
    new: list[ReportRow] = []
    for row in rows:
        if row.trade_id not in digests:
            digests[row.trade_id] = row.request_digest
            new.append(row)
        elif digests[row.trade_id] != row.request_digest:
            raise source.located(row.number, key_conflict(row.trade_id))
    return new


def trades_of_rows(transaction: Transaction, ctx: Context, source: Source, rows: Sequence[ReportRow]) -> list[Trade]:
    """The trades of new rows, in the order of the file."""
    deployments: dict[tuple[str | None, str], Deployment] = {}
    entries: dict[str, list[datetime]] = {}
    for row in rows:
        if row.destination not in deployments:
            deployments[row.destination] = _deployment_of_row(transaction, ctx, source, row)
        entries.setdefault(deployments[row.destination].account_id, []).append(row.entered_at)
    equities = {
        account_id: equity_series(transaction.connection, ctx.owner, account_id, since=min(times), until=max(times))
        for account_id, times in entries.items()
    }
    return [
        trade_from_report(
            row.report,
            deployments[row.destination],
            row.trade_id,
            equity=_equity_at(row.entered_at, equities[deployments[row.destination].account_id]),
            request_digest=row.request_digest,
            now=ctx.now,
        )
        for row in rows
    ]


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector: it takes a fifth of the time of an import and frees nothing there."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _checked_row(ctx: Context, row: TradeRow, arguments: dict[str, Any]) -> ReportRow:
    key = arguments.pop("idempotency_key")
    request_digest = digest(arguments)
    closed_at = arguments["closed_at"]
    if closed_at is None:
        raise Invalid("missing; every trade in a file needs the time of its close", field="closed_at")
    strategy_name, deployment = arguments.pop("strategy_name"), arguments.pop("deployment")
    arguments["context"] = arguments["context"] or ContextVector()
    arguments["tags"] = tuple(arguments["tags"])
    return ReportRow(
        number=row.number,
        report=checked_report(TradeReport(**arguments), now=ctx.now),
        closed_at=closed_at,
        strategy_name=strategy_name,
        deployment=deployment,
        trade_id=reported_trade_id(ctx.owner, key, request_digest),
        request_digest=request_digest,
    )


def _deployment_of_row(transaction: Transaction, ctx: Context, source: Source, row: ReportRow) -> Deployment:
    try:
        deployment = reported_deployment(transaction, ctx, row.deployment, row.strategy_name)
        if row.deployment is not None and runs_by_ticks(transaction, ctx, deployment):
            message = (
                f"{deployment.name!r} runs by ticks, so its trades come from the broker's fills; "
                "remove this row, or leave its deployment out"
            )
            raise Conflict(message, field="deployment")
    except BacksightError as error:
        raise source.located(row.number, error) from None
    return deployment


def _equity_at(at: datetime, equities: Sequence[tuple[datetime, float | None]]) -> float | None:
    """The last known equity of an account at an instant."""
    count = bisect_right(equities, at, key=itemgetter(0))
    return equities[count - 1][1] if count else None
