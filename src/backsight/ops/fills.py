"""Import of fills: the executions of an account, from the files that exchanges and brokers give out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

from backsight.arguments import ColumnNames, FilePath, Flag, Key, Name
from backsight.core.errors import Conflict, Invalid
from backsight.core.garbage_collection import collection_paused
from backsight.core.portfolio import Mode
from backsight.core.strategies import Deployment
from backsight.core.text.counts import count_of
from backsight.core.trades.trade import rest_note
from backsight.importers.cut_files import last_line_remark
from backsight.importers.files import line_count, zone_named
from backsight.importers.formats import FileFormat, ReadOptions, head_of
from backsight.operation import command
from backsight.services.context import Context
from backsight.services.deployments import account_of, deployment_named, imported_deployment
from backsight.services.fill_import import (
    FoldedTrades,
    RowCounts,
    UnderstoodFill,
    fold_trades,
    store_rows,
)
from backsight.services.import_rows import LeftOutCount, LeftOutRows, TakenBackError, mode_of_file
from backsight.services.trade_reports import runs_by_ticks
from backsight.store.transaction import Transaction

NAMED = 10
"""Symbols or currencies that a note names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFills:
    """What became of the rows of a file, the trades that its fills make, and how they agree with the file."""

    message: str
    format: str
    dry_run: bool
    """Whether nothing was written."""
    deployment: Deployment
    rows: int
    """Rows of the file that say something: fills, and rows that are left out."""
    fills: int
    added: int
    """New fills; the others were stored before."""
    restated: int
    """Stored fills to which the file gives another fee."""
    left_out: tuple[LeftOutRows, ...]
    first_at: datetime | None
    last_at: datetime | None
    instruments: tuple[str, ...]
    """Symbols of which the file tells what one unit is worth, if that was not known."""
    fees_missing: int
    """New fills with a fee in a currency whose rate is not known: the fee counts as no money."""
    trades: FoldedTrades | None
    """None if no fill is new."""
    understood: tuple[UnderstoodFill, ...]
    """The first fills as they are understood."""
    notes: tuple[str, ...]
    """What was found out about the file, and what was assumed, in sentences."""

    @property
    def imported_nothing(self) -> bool:
        """Whether no row of the file is a fill that is stored now, or would be."""
        return self.fills == 0


@command()
def import_fills(
    ctx: Context,
    *,
    path: Annotated[FilePath, "Path of the file on this machine."],
    format: Annotated[Name | None, "The format of the file; recognised from its content if left out."] = None,  # noqa: A002
    account: Annotated[
        Name | None, "The name of the account, made if there is none; the name of the file if left out."
    ] = None,
    deployment: Annotated[Key | None, "Instead of an account: a deployment that has no ticks, by name or id."] = None,
    mode: Annotated[
        Mode | None, "Real money, a paper account, or a simulation; needed if the format does not say."
    ] = None,
    currency: Annotated[Name | None, "The currency of the account; that of the format if left out, mostly USD."] = None,
    timezone: Annotated[
        Name | None, "The time zone of times without an offset; that of the format if left out, mostly UTC."
    ] = None,
    columns: Annotated[
        ColumnNames | None, "Fields by the name of their column, where a table names them in its own way."
    ] = None,
    skip_broken: Annotated[Flag, "Leave out rows that cannot be read, instead of refusing the file."] = False,
    dry_run: Annotated[Flag, "Show what would be imported and left out, and write nothing."] = False,
) -> ImportedFills:
    """Import the executions, fees and payments of an account from a file, as if each had been reported in a tick.

    Trades and every memory follow from the fills. Every row is imported or named. A second import of a file changes
    nothing, and a longer file adds what is new, before or after what is stored. An account that runs by ticks is
    refused: report its fills in close_tick.
    """
    from backsight.importers.registry import chosen_format  # imports the modules of all formats

    file = Path(path)
    chosen = chosen_format(file, format, rows="fills", columns=columns)
    options = ReadOptions(zone=zone_named(timezone or chosen.timezone), columns=columns or {})
    head = head_of(file)
    counts = RowCounts(expected=line_count(file), zone=options.zone, left_out=LeftOutCount(unit=head.row_unit))
    try:
        with collection_paused(), ctx.writing() as transaction:
            target = _target(transaction, ctx, file, chosen, account, deployment, mode, currency or chosen.currency)
            owner_account = account_of(transaction.connection, target)
            options = replace(options, currency=owner_account.currency)
            book = store_rows(transaction, ctx, owner_account, chosen.read(file, options), counts)
            if not (skip_broken or dry_run):
                counts.left_out.refuse_broken(file)
            trades = None
            since = min((at for at in (counts.first_new_at, book.resized_since()) if at is not None), default=None)
            if since is not None:
                new_splits = counts.new_splits
                trades = fold_trades(transaction, ctx, target, owner_account, book, since=since, new_splits=new_splits)
            if dry_run or not counts.fills:
                raise TakenBackError
    except TakenBackError:
        pass
    else:
        ctx.write_columns_file()
    remark = last_line_remark(head)
    counts.notes += [] if remark is None else [remark]
    return _answer(target, chosen, counts, trades, dry_run=dry_run)


def _target(
    transaction: Transaction,
    ctx: Context,
    file: Path,
    chosen: FileFormat,
    account: str | None,
    deployment: str | None,
    mode: Mode | None,
    currency: str,
) -> Deployment:
    """The deployment whose account the fills are of; it must not run by ticks."""
    if deployment is not None:
        if account is not None:
            raise Invalid("an account is given too; give one of the two", field="deployment")
        target = deployment_named(transaction.connection, ctx.owner, deployment)
        if mode not in (None, target.mode):
            message = f"deployment {target.name!r} is {target.mode}, not {mode}"
            raise Invalid(f"{message}; leave out the mode or the deployment", field="mode")
    else:
        target = imported_deployment(
            transaction,
            ctx,
            name=account or file.stem,
            currency=currency,
            mode=mode_of_file(chosen, mode),
            known_at=ctx.now,
        )
    if runs_by_ticks(transaction, ctx, target):
        message = f"{target.name!r} runs by ticks, which report its fills"
        remedy = "give missing fills to the next close_tick, or import the file under another account"
        raise Conflict(f"{message}; {remedy}", field="account" if deployment is None else "deployment")
    return target


def _answer(
    target: Deployment, chosen: FileFormat, counts: RowCounts, trades: FoldedTrades | None, *, dry_run: bool
) -> ImportedFills:
    if not counts.fills:
        message = f"No fill in {count_of(counts.rows, 'row')}; nothing was changed."
    elif not counts.added and not counts.restated:
        message = "Every fill of the file is stored already; "
        changed = trades is not None and (trades.closed or trades.withdrawn)
        message += "its trades follow the lot steps that were saved since." if changed else "nothing was changed."
    else:
        verb = "would be imported" if dry_run else "imported"
        message = f"{count_of(counts.added, 'fill')} {verb}."
    if counts.left_out.total:
        message += f" {count_of(counts.left_out.total, 'row')} left out."
    return ImportedFills(
        message=message,
        format=chosen.name,
        dry_run=dry_run,
        deployment=target,
        rows=counts.rows,
        fills=counts.fills,
        added=counts.added,
        restated=counts.restated,
        left_out=counts.left_out.rows,
        first_at=counts.first_at,
        last_at=counts.last_at,
        instruments=tuple(counts.instruments),
        fees_missing=counts.fees_missing,
        trades=trades,
        understood=tuple(counts.sample),
        notes=(*counts.notes, *_row_notes(counts), *(() if trades is None else _notes_of(trades))),
    )


def _row_notes(counts: RowCounts) -> Iterator[str]:
    if counts.shown_twice:
        fills, first = count_of(len(counts.shown_twice), "fill"), min(counts.shown_twice).astimezone(counts.zone)
        yield (
            f"{fills} in an hour that clocks showed twice, from {first:%Y-%m-%d %H:%M} on: times without an offset "
            "are taken for the first of the two, so their order may be wrong"
        )
    if counts.fees_missing:
        fees, currencies = count_of(counts.fees_missing, "fee"), _listed(sorted(counts.fee_currencies))
        yield (
            f"{fees} in {currencies} counted as no money, because no rate is known: import bars of the pair with the "
            "account's currency first"
        )


def _notes_of(trades: FoldedTrades) -> Iterator[str]:
    for each in trades.contradictions[:NAMED]:
        yield (
            f"{each.symbol}: the file has a result of {each.theirs:.10g}, its fills give {each.ours:.10g}; trades with "
            "such results teach nothing. Most often the multiplier is missing: save_instrument mends them"
        )
    currencies = sorted({currency for _, currency in trades.unconverted})
    for currency in currencies[:NAMED]:
        symbols = _listed([symbol for symbol, each in trades.unconverted if each == currency])
        yield (
            f"{symbols}: results are kept in {currency} and are in no sum, because no rate to the account's currency "
            f"is known: import into an account in {currency}, or import bars of the pair and save the instrument again"
        )
    for rest in trades.rests[:NAMED]:
        yield f"{rest_note(rest.symbol, rest.left, rest.of)} and import the file again"
    if trades.uncounted_payments:
        yield (
            f"Payments or fees of {_listed(trades.uncounted_payments)} are not counted, because their trades are kept "
            "in a currency of unknown rate: import bars of the currency pair, then save the instrument again"
        )
    if trades.entered_before:
        yield (
            f"Fills of {_listed(trades.entered_before)} closed positions that were entered before the file: what "
            "exceeds the known positions is stored and is part of no trade; import the earlier history too"
        )


def _listed(names: Sequence[str]) -> str:
    """The first names, and how many others there are."""
    others = [] if len(names) <= NAMED else [f"{len(names) - NAMED} others"]
    return ", ".join([*names[:NAMED], *others])
