"""Import of position logs: the trades of agents that ran elsewhere."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

from backsight.arguments import FilePath, Name, Positive
from backsight.core.decision import DecidedOrder, Decision, TickReport, as_last, decision_of
from backsight.core.errors import BacksightError, Conflict, Invalid
from backsight.core.ids import digest, plain
from backsight.core.instants import format_instant
from backsight.core.portfolio import Mode
from backsight.core.strategies import Deployment
from backsight.importers.bars import BarsRead, read_bars, read_trader_bars
from backsight.importers.files import message_without_field
from backsight.importers.position_ticks import PositionTick, position_ticks
from backsight.importers.positions import (
    CashCheck,
    Dirt,
    PositionLog,
    PositionSummary,
    check_cash,
    log_changes,
    quotes_of,
    read_positions,
    summarise,
)
from backsight.operation import command
from backsight.services.context import Context
from backsight.services.deployments import account_of, imported_deployment
from backsight.services.learning import BulkLearning
from backsight.services.ledger import Tick, post
from backsight.services.market import ImportedBars, store_bars
from backsight.store import decisions as stored
from backsight.store.transaction import Transaction

DIRT_LISTED = 200
JSON_LINES = (".jsonl", ".ndjson", ".json")
GENERIC_NAMES = ("position", "positions")
"""Names of files and folders that are not the name of an agent."""
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPositions:
    """The deployment of an imported log, its trades, and the contradictions in the log."""

    deployment: Deployment
    replayed: bool
    """Whether every row was stored already, so that nothing changed."""
    added: int
    """The number of new rows."""
    first_at: datetime
    last_at: datetime
    opened: int
    """Trades that the log opened, with those of earlier imports."""
    closed: int
    summary: PositionSummary
    cash: CashCheck
    dirt: tuple[Dirt, ...]
    """The first 200 contradictions, in file order; the summary counts all."""
    bars: ImportedBars | None


@command()
def import_positions(
    ctx: Context,
    *,
    path: Annotated[FilePath, "Path of the log on this machine: JSON Lines with date, positions and this_action."],
    timezone: Annotated[Name, "The time zone of the log, like 'America/New_York'."],
    bars: Annotated[
        FilePath | None,
        "Path of the bars that the agent traded on: AI-Trader JSON Lines, CSV or Parquet; they are stored.",
    ] = None,
    currency: Annotated[Name, "The currency of the account, like 'USD'."] = "USD",
    name: Annotated[Name | None, "The name of the agent; the name of the file or its folder if left out."] = None,
    mode: Annotated[
        Mode, "Real money, a paper account, or a simulation; memories of different modes never mix."
    ] = "paper",
    usd_rate: Annotated[Positive | None, "The value of one unit of the currency in dollars."] = None,
) -> ImportedPositions:
    """Import an agent's position log, as if the agent had traded here.

    Every row becomes a tick: the holdings are facts, and the action is the agent's proposal. A second import of a log
    changes nothing, a longer version of it adds its new rows, and a log that contradicts stored rows is refused.
    """
    log = read_positions(path, timezone=timezone)
    file = None if bars is None else _read_bars(bars, timezone)
    row_changes = log_changes(log) if file is None else log_changes(log, bars=file.bars, openings=file.openings)
    quotes = {} if file is None else quotes_of(file.bars, file.openings)
    ticks = tuple(position_ticks(log, row_changes, quotes=quotes))
    _check_past(ctx, log, ticks)
    agent = name or agent_name(Path(path))
    with ctx.writing() as transaction:
        known_at = ticks[0].at
        deployment = imported_deployment(transaction, ctx, name=agent, currency=currency, mode=mode, known_at=known_at)
        imported_bars = None if file is None else store_bars(transaction, ctx, file, field="bars")
        earlier = stored.decisions_of_account(transaction.connection, ctx.owner, deployment.account_id)
        new_ticks = _new_ticks(earlier, ticks, log)
        last = earlier[-1] if earlier else None
        added = list(_post_ticks(transaction, ctx, deployment, log, new_ticks, usd_rate=usd_rate, last=last))
        replayed = not transaction.changes
    decisions = [*earlier[: len(ticks)], *added]
    return ImportedPositions(
        deployment=deployment,
        replayed=replayed,
        added=len(added),
        first_at=ticks[0].at,
        last_at=ticks[-1].at,
        opened=sum(len(decision.opened) for decision in decisions),
        closed=sum(len(decision.closed) for decision in decisions),
        summary=summarise(row_changes),
        cash=check_cash(row_changes, quotes),
        dirt=tuple(dirt for change in row_changes for dirt in change.dirt)[:DIRT_LISTED],
        bars=imported_bars,
    )


def agent_name(path: Path) -> str:
    """The agent's name: the name of the log file, or of the nearest folder if the file has a generic name.

    >>> agent_name(Path("agents/momentum/position/position.jsonl")), agent_name(Path("reversal.jsonl"))
    ('momentum', 'reversal')
    """
    whole = path.absolute()
    names = [whole.stem, *(folder.name for folder in whole.parents)]
    name = next((name for name in names if name.casefold() not in GENERIC_NAMES), "")
    if not name or len(name) > LONGEST_NAME or name != name.strip() or not name.isprintable():
        raise Invalid(f"{name[:LONGEST_NAME]!r}, the file's name, is not a name; give the agent's name", field="name")
    return name


def _read_bars(path: str, timezone: str) -> BarsRead:
    """The bars of a file; its suffix tells the format. An error names the argument `bars`."""
    try:
        if Path(path).suffix.casefold() in JSON_LINES:
            return read_trader_bars(path, default_timezone=timezone)
        return read_bars(path, timezone=timezone)
    except BacksightError as error:
        field = "bars" if error.field in (None, "path") else f"bars.{error.field}"
        raise type(error)(message_without_field(error), field=field) from None


def _check_past(ctx: Context, log: PositionLog, ticks: Sequence[PositionTick]) -> None:
    late = next((tick for tick in ticks if tick.at > ctx.now + ctx.clock_skew), None)
    if late is not None:
        message = f"{format_instant(late.at)} is in the future; check the timezone, or correct the row"
        raise Invalid(f"{log.path} line {late.row.line}: {message}", field="date")


def _new_ticks(earlier: Sequence[Decision], ticks: Sequence[PositionTick], log: PositionLog) -> Sequence[PositionTick]:
    """The ticks after the stored decisions; `Conflict` if the log does not begin with those decisions."""
    for decision, tick in zip(earlier, ticks, strict=False):
        place, moment = f"{log.path} line {tick.row.line}", _moment(tick.at, tick.sequence)
        if (decision.at, decision.sequence) != (tick.at, tick.sequence):
            expected = _moment(decision.at, decision.sequence)
            message = f"{moment} is not the account's next tick, which is stored as {expected}"
            raise Conflict(f"{place}: {message}; give the whole log from its first row, or another name", field="path")
        if decision.request_digest != _digest(tick):
            message = f"the tick of {moment} is stored with other content"
            raise Conflict(f"{place}: {message}; a decision does not change: give another name", field="path")
    return ticks[len(earlier) :]


def _moment(at: datetime, sequence: int) -> str:
    return f"{format_instant(at)} ({sequence})"


def _digest(tick: PositionTick) -> str:
    """A digest of the content of a row, without its line number and the prices of bars."""
    row = tick.row
    return digest(plain([row.at, row.id, row.action, row.holdings, row.cash]))


def _post_ticks(
    transaction: Transaction,
    ctx: Context,
    deployment: Deployment,
    log: PositionLog,
    ticks: Sequence[PositionTick],
    *,
    usd_rate: float | None,
    last: Decision | None,
) -> Iterator[Decision]:
    """Post new ticks to the ledger and store their decisions; the decisions."""
    account = account_of(transaction.connection, deployment)
    learning = BulkLearning(transaction)
    for tick in ticks:
        former = None if last is None else as_last(last)
        decision = decision_of(_report(tick, usd_rate=usd_rate), deployment, former, recorded_at=ctx.now)
        try:
            tick_to_post = Tick(deployment=deployment, account=account, decision=decision, last=former)
            posted = post(transaction, tick_to_post, learning=learning)
        except Invalid as error:
            message = f"{log.path} line {tick.row.line}: {message_without_field(error)}"
            raise Invalid(message, field="positions") from None
        last = posted.decision
        transaction.add_all(stored.DECISIONS, [last])
        yield last
    learning.finish()


def _report(tick: PositionTick, *, usd_rate: float | None) -> TickReport:
    """A row as a tick: no prompt was shown for it, and only the log's part of the proposal is known."""
    return TickReport(
        at=tick.at,
        sequence=tick.sequence,
        before=tick.before,
        after=tick.after,
        proposals=() if tick.proposal is None else (DecidedOrder(order=tick.proposal, verdict=tick.verdict),),
        verdict=tick.verdict,
        usd_rate=usd_rate,
        request_digest=_digest(tick),
    )
