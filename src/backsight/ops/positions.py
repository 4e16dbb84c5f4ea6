"""Position logs: what agents held step by step elsewhere, brought in as if they had traded here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

from backsight.arguments import Key, Name, Positive
from backsight.core.decision import Decision, TickReport, as_last, decision_of
from backsight.core.errors import BacksightError, Conflict, Invalid
from backsight.core.ids import digest, plain
from backsight.core.instants import CLOCK_SKEW, format_instant
from backsight.core.portfolio import Mode
from backsight.core.strategies import Deployment
from backsight.importers.bars import BarsRead, read_bars, read_trader_bars
from backsight.importers.position_ticks import PositionTick, position_ticks
from backsight.importers.positions import (
    CashCheck,
    Dirt,
    PositionLog,
    PositionSummary,
    changes,
    check_cash,
    quotes_of,
    read_positions,
    summarise,
)
from backsight.operation import command
from backsight.services.context import Context
from backsight.services.deployments import account_of, imported_deployment
from backsight.services.ledger import Tick, post
from backsight.services.market import ImportedBars, keep_bars
from backsight.store import decisions as stored
from backsight.store.transaction import Transaction

DIRT_LISTED = 200
JSON_LINES = (".jsonl", ".ndjson", ".json")
UNTELLING = ("position", "positions")
"""What files and folders are called that say only what is in them."""
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPositions:
    """What became of a log: whose it is, what it traded, and where it contradicts itself."""

    deployment: Deployment
    replayed: bool
    """Whether all of it was known: nothing was changed then."""
    added: int
    """Rows that were new."""
    first_at: datetime
    last_at: datetime
    opened: int
    """Trades that the rows of the log opened, those of earlier imports counted."""
    closed: int
    summary: PositionSummary
    cash: CashCheck
    dirt: tuple[Dirt, ...]
    """The first two hundred, in file order; the summary counts them all."""
    bars: ImportedBars | None


@command()
def import_positions(
    ctx: Context,
    *,
    path: Annotated[Key, "The log, where this runs: JSON Lines with date, positions and this_action."],
    timezone: Annotated[Name, "The zone of its wall clock, like 'America/New_York'."],
    bars: Annotated[Key | None, "The bars it traded on: JSON Lines of such traders, CSV or Parquet; kept too."] = None,
    currency: Annotated[Name, "What its money is counted in, like 'USD'."] = "USD",
    name: Annotated[Name | None, "What the agent is called; like the file or its folder if left out."] = None,
    mode: Annotated[Mode, "Real money, a paper account, or a simulation; the three never blend."] = "paper",
    usd_rate: Annotated[Positive | None, "What a unit of the currency is worth in dollars."] = None,
) -> ImportedPositions:
    """Import an agent's position log, so that its trades and memories are kept as if it had traded here.

    Every row is a tick: holdings are the fact, the action is what the agent proposed. Importing a log again changes
    nothing, a longer version of it adds its new rows, and one that contradicts what is kept is refused.
    """
    log = read_positions(path, timezone=timezone)
    read = None if bars is None else _read_bars(bars, timezone)
    changed = changes(log) if read is None else changes(log, bars=read.bars, openings=read.openings)
    quotes = {} if read is None else quotes_of(read.bars, read.openings)
    ticks = tuple(position_ticks(log, changed, quotes=quotes))
    _check_past(ctx, log, ticks)
    called = name or agent_name(Path(path))
    with ctx.writing() as transaction:
        known_at = ticks[0].at
        home = imported_deployment(transaction, ctx, name=called, currency=currency, mode=mode, known_at=known_at)
        kept_bars = None if read is None else keep_bars(transaction, ctx, read, field="bars")
        kept = stored.decisions_of_account(transaction.connection, ctx.owner, home.account_id)
        new = _after(kept, ticks, log)
        made = list(_applied(transaction, ctx, home, log, new, usd_rate=usd_rate, last=kept[-1] if kept else None))
        replayed = not transaction.changes
    decisions = [*kept[: len(ticks)], *made]
    return ImportedPositions(
        deployment=home,
        replayed=replayed,
        added=len(made),
        first_at=ticks[0].at,
        last_at=ticks[-1].at,
        opened=sum(len(decision.opened) for decision in decisions),
        closed=sum(len(decision.closed) for decision in decisions),
        summary=summarise(changed),
        cash=check_cash(changed, quotes),
        dirt=tuple(dirt for change in changed for dirt in change.dirt)[:DIRT_LISTED],
        bars=kept_bars,
    )


def agent_name(path: Path) -> str:
    """What the agent of a log is called: as its file, or the folder above where that says only what is in it.

    >>> agent_name(Path("agents/momentum/position/position.jsonl")), agent_name(Path("reversal.jsonl"))
    ('momentum', 'reversal')
    """
    whole = path.absolute()
    names = [whole.stem, *(folder.name for folder in whole.parents)]
    found = next((each for each in names if each.casefold() not in UNTELLING), "")
    if not found or len(found) > LONGEST_NAME or found != found.strip() or not found.isprintable():
        raise Invalid(f"{found[:LONGEST_NAME]!r}, as the file is called, is none; give one", field="name")
    return found


def _read_bars(path: str, timezone: str) -> BarsRead:
    """The bars of a file, in the format that its name tells; a refusal names the argument."""
    try:
        if Path(path).suffix.casefold() in JSON_LINES:
            return read_trader_bars(path, otherwise=timezone)
        return read_bars(path, timezone=timezone)
    except BacksightError as error:
        field = "bars" if error.field in (None, "path") else f"bars.{error.field}"
        raise type(error)(_without_field(error), field=field) from None


def _without_field(error: BacksightError) -> str:
    return error.message.removeprefix(f"{error.field}: ")


def _check_past(ctx: Context, log: PositionLog, ticks: Sequence[PositionTick]) -> None:
    late = next((tick for tick in ticks if tick.at > ctx.now + CLOCK_SKEW), None)
    if late is not None:
        told = f"{format_instant(late.at)} is in the future; check the timezone, or correct the row"
        raise Invalid(f"{log.path} line {late.row.line}: {told}", field="date")


def _after(kept: Sequence[Decision], ticks: Sequence[PositionTick], log: PositionLog) -> Sequence[PositionTick]:
    """The ticks after those that are kept; `Conflict` where the log does not begin with those."""
    for decision, tick in zip(kept, ticks, strict=False):
        place, moment = f"{log.path} line {tick.row.line}", (tick.at, tick.sequence)
        if (decision.at, decision.sequence) != moment:
            there = _said(decision.at, decision.sequence)
            told = f"{_said(*moment)} is not the account's next tick, which is of {there}"
            raise Conflict(f"{place}: {told}; give the log that is kept, whole, or another name", field="path")
        if decision.request_digest != _digest(tick):
            told = f"the tick of {_said(*moment)} is kept with other content"
            raise Conflict(f"{place}: {told}; a decision does not change: give another name", field="path")
    return ticks[len(kept) :]


def _said(at: datetime, sequence: int) -> str:
    return f"{format_instant(at)} ({sequence})"


def _digest(tick: PositionTick) -> str:
    """What tells a row from another: all that it says, whatever its line and the prices beside it."""
    row = tick.row
    return digest(plain([row.at, row.id, row.action, row.holdings, row.cash]))


def _applied(
    transaction: Transaction,
    ctx: Context,
    home: Deployment,
    log: PositionLog,
    ticks: Sequence[PositionTick],
    *,
    usd_rate: float | None,
    last: Decision | None,
) -> Iterator[Decision]:
    """The decisions of new ticks, each kept and brought to the ledger."""
    account = account_of(transaction.connection, home)
    for tick in ticks:
        former = None if last is None else as_last(last)
        decision = decision_of(_report(tick, usd_rate=usd_rate), home, former, recorded_at=ctx.now)
        try:
            posted = post(transaction, Tick(deployment=home, account=account, decision=decision, last=former))
        except Invalid as error:
            told = f"{log.path} line {tick.row.line}: {_without_field(error)}"
            raise Invalid(told, field="positions") from None
        last = posted.decision
        transaction.add_all(stored.DECISIONS, [last])
        yield last


def _report(tick: PositionTick, *, usd_rate: float | None) -> TickReport:
    """A row as a tick: no prompt was shown for it, and of the proposal only what the log says is known."""
    return TickReport(
        at=tick.at,
        sequence=tick.sequence,
        before=tick.before,
        after=tick.after,
        proposal=tick.proposal,
        verdict=tick.verdict,
        usd_rate=usd_rate,
        request_digest=_digest(tick),
    )
