"""Fills of a file in the ledger: stored as facts, folded into trades in the order of time, and learned from.

A file may be newest first, and its fills may belong before fills that are stored. So the fills are stored as they come,
and the ledger is folded again from the first new one, as the database sorts them. In memory are only the open positions
and a few thousand rows.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import chain, islice, pairwise
from typing import TypeVar

from backsight.core.context import ContextVector
from backsight.core.errors import BacksightError, Invalid
from backsight.core.fills import Fill
from backsight.core.ids import digest, plain
from backsight.core.instants import JUST_BEFORE, Horizon, format_instant
from backsight.core.instruments import Flatness, Instrument, lacks_lot_step, unknown_instrument
from backsight.core.memory.affective import Mood, close_fact, with_agent_state
from backsight.core.memory.episodic import Episode, episode_id_of, episode_of_trade
from backsight.core.memory.mood_series import MoodRow, mood_from, strategy_row
from backsight.core.orders import as_fill
from backsight.core.portfolio import Account
from backsight.core.strategies import Deployment
from backsight.core.text.symbols import symbol_problem
from backsight.core.trades.excursion import excursions
from backsight.core.trades.fold import RoundTrip, Step, after_fill, currency_factor, fold, is_uncounted, unmatched_size
from backsight.core.trades.mark import NO_PROGRESS, TradeProgress
from backsight.core.trades.materialise import EntryRecord, opened_trade, progress_of, trade_id_of, updated_trade
from backsight.core.trades.settle import from_first
from backsight.core.trades.trade import Entry, Trade, dollars_for_one, in_dollars, may_be_rest
from backsight.importers.files import UNDECODED, is_shown_twice, message_without_field, short_text
from backsight.importers.formats import FileRow, FillRow, InstrumentRow, LeftOutRow, RemarkRow
from backsight.services.context import Context
from backsight.services.deployments import deployed_strategy
from backsight.services.import_rows import SAMPLE, LeftOutCount
from backsight.services.learning import BulkLearning, BulkLearningReport
from backsight.services.ledger import teaches
from backsight.services.market import Series, context_at, recent_bars, regime_at
from backsight.services.mood import last_known, strategy_moods
from backsight.services.rates import Rates
from backsight.store import bars as stored_bars
from backsight.store import instruments as stored_instruments
from backsight.store import memories as stored_memories
from backsight.store import trades as stored
from backsight.store.experience import mood_row, mood_rows_between
from backsight.store.mapping import Noun
from backsight.store.transaction import Transaction
from backsight.store.view import View, everything

BATCH = 2_000
"""Fills that are written at once."""
LEARNED_AT_ONCE = 5_000
"""Closed trades that are written and learned at once."""
LOOK_AHEAD = 1_000
"""Rows that tell whether a file is newest first."""
CONTEXTS = 10_000
"""Market contexts that are kept."""
DIFFERENCES = 20
LOOK_ALIKES = 10
"""Symbols that a note names."""
ROUNDING, ROUNDING_SHARE = 0.01, 1e-6
"""Results agree that differ by no more than a cent and a millionth of the notional: brokers round them."""
PROGRESS = 1_000
"""Fills between two reports of the progress."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PnlDifference:
    """A closed trade whose realised result differs from the one in the file."""

    symbol: str
    closed_at: datetime
    ours: float
    theirs: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PnlComparison:
    """The realised results of closed trades, compared with those in the file."""

    compared: int
    agreeing: int
    differences: tuple[PnlDifference, ...]
    """The first 20."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """What a sale left of a position that was almost closed by it."""

    symbol: str
    left: float
    of: float
    """The largest size until then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderstoodFill:
    """A fill of a file as it is understood."""

    row: int
    at: datetime
    kind: str
    symbol: str
    quantity: float
    price: float | None
    fee: float
    fee_currency: str | None
    amount: float
    realized_pnl: float | None
    id: str


@dataclass(slots=True, kw_only=True)
class RowCounts:
    """What became of the rows of a file so far."""

    expected: int = 0
    """About how many rows there are; for the progress."""
    zone: tzinfo = UTC
    """Of times without an offset."""
    rows: int = 0
    fills: int = 0
    added: int = 0
    restated: int = 0
    """Stored fills to which the file gives another fee."""
    fees_missing: int = 0
    """New fills with a fee in a currency whose rate is not known."""
    fee_currencies: set[str] = field(default_factory=set)
    """These currencies."""
    first_at: datetime | None = None
    last_at: datetime | None = None
    first_new_at: datetime | None = None
    sample: list[UnderstoodFill] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    instruments: list[str] = field(default_factory=list)
    left_out: LeftOutCount = field(default_factory=LeftOutCount)
    shown_twice: list[datetime] = field(default_factory=list)
    """Instants of fills in an hour that clocks showed twice."""
    is_first: bool = False
    """Whether the account had no fills before."""
    new_splits: set[tuple[str, str]] = field(default_factory=set)
    """Keys of the new fills that are splits."""
    _hashes: set[int] = field(default_factory=set)
    """Of the keys of the fills so far."""

    def possibly_known(self, keys: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """The keys of fills that may be stored: all, unless the account was empty and the file has no such key yet."""
        if not self.is_first:
            return list(keys)
        met = []
        for key in keys:
            if hash(key) in self._hashes:
                met.append(key)
            self._hashes.add(hash(key))
        return met

    def read(self, row: FillRow, fill: Fill) -> None:
        self.fills += 1
        self.first_at = fill.at if self.first_at is None else min(self.first_at, fill.at)
        self.last_at = fill.at if self.last_at is None else max(self.last_at, fill.at)
        if is_shown_twice(fill.at, self.zone):
            self.shown_twice.append(fill.at)
        if len(self.sample) < SAMPLE:
            self.sample.append(_understood(row))


def _understood(row: FillRow) -> UnderstoodFill:
    fill = row.fill
    return UnderstoodFill(
        row=row.number,
        at=fill.at,
        kind=fill.kind,
        symbol=fill.symbol,
        quantity=fill.quantity,
        price=fill.price,
        fee=fill.fee,
        fee_currency=fill.fee_currency,
        amount=fill.amount,
        realized_pnl=fill.realized_pnl,
        id=fill.id,
    )


# Step 1: rows in an order that does not depend on how the file is sorted.


def in_order(rows: Iterable[FileRow]) -> Iterator[FileRow]:
    """The rows with the fills of each instant numbered in the order in which they happened.

    That is the order of the file, from its end if the file is newest first.
    """
    rest = iter(rows)
    head = list(islice(rest, LOOK_AHEAD))
    times = [row.fill.at for row in head if isinstance(row, FillRow)]
    rising = sum((later > earlier) - (later < earlier) for earlier, later in pairwise(times))
    if rising < 0:
        yield RemarkRow(text="The file is newest first.")
    group: list[FillRow] = []
    counts: dict[str, int] = {}
    for row in chain(head, rest):
        if isinstance(row, FillRow):
            if not row.fill.id:
                row = _with_id(row, counts)
            if group and row.fill.at != group[0].fill.at:
                yield from _numbered(group, newest_first=rising < 0)
                group = []
            group.append(row)
        else:
            yield row
    yield from _numbered(group, newest_first=rising < 0)


def _with_id(row: FillRow, counts: dict[str, int]) -> FillRow:
    """A fill without an id, with one derived from its content and its number among equal rows."""
    content = digest(plain(replace(row.fill, sequence=0)))[:20]
    number = counts[content] = counts.get(content, 0) + 1
    return replace(row, fill=replace(row.fill, id=f"{content}-{number}"))


def _numbered(group: Sequence[FillRow], *, newest_first: bool) -> Iterator[FillRow]:
    """The fills of one instant, numbered from 0; a number that the file gives takes precedence over the order."""
    happened = reversed(group) if newest_first else group
    for number, row in enumerate(sorted(happened, key=lambda each: each.fill.sequence)):
        yield row if row.fill.sequence == number else replace(row, fill=replace(row.fill, sequence=number))


# Step 2: fills as facts.


class SymbolBook:
    """What is known of the symbols of an account; a symbol is looked up when it is first met."""

    def __init__(self, transaction: Transaction, account: Account) -> None:
        self._transaction = transaction
        self._account = account
        self._instruments: dict[str, Instrument | None] = {}
        self._lot_steps: dict[str, float] = {}
        self.flatness = Flatness(lot_steps=self._lot_steps, dust=account.dust or 0.0)
        self._rates = Rates(transaction.connection, account)

    def as_fill(self, row: FillRow, *, recorded_at: datetime) -> Fill:
        """The ledger's fill of a row; the world knew it when it happened."""
        reported, account = row.fill, self._account
        foreign_fee = reported.fee_currency is not None and reported.fee_currency.upper() != account.currency.upper()
        fill = as_fill(
            reported,
            account,
            worth=self._rates.worth_of(reported, self.instrument(reported.symbol), {}),
            fee_rate=self._rates.fee_rate(reported, {}) if foreign_fee else None,
            decision_id=None,
            known_at=reported.at,
            recorded_at=recorded_at,
        )
        closes = row.closes or ("some" if reported.realized_pnl and reported.kind == "trade" else None)
        return fill if closes is None else replace(fill, closes=closes)

    def instrument(self, symbol: str) -> Instrument | None:
        """The instrument of a symbol; its lot step counts for `flatness` from then on."""
        if symbol not in self._instruments:
            problem = _problem_of(symbol)
            if problem is not None:
                raise Invalid(f"{short_text(symbol)} {problem}", field="symbol")
            connection, owner = self._transaction.connection, self._account.owner_id
            self._learn(symbol, next(iter(stored_instruments.instruments_of(connection, owner, [symbol])), None))
        return self._instruments[symbol]

    def save(self, row: InstrumentRow, *, now: datetime) -> bool:
        """Save what a file tells of a symbol, unless the same or more is saved; whether anything was saved."""
        if _problem_of(row.symbol) is not None:
            return False  # its fills are left out
        former = self.instrument(row.symbol)
        known = former or unknown_instrument(self._account.owner_id, row.symbol, at=now)
        instrument = replace(
            known,
            kind=row.kind or known.kind,
            multiplier=known.multiplier if row.multiplier is None else row.multiplier,
            inverse=row.inverse or known.inverse,
            currency=row.currency or known.currency,
            underlying=row.underlying or known.underlying,
        )
        if instrument == former:
            return False
        instrument = replace(instrument, known_at=now, recorded_at=now)
        self._transaction.revise(stored_instruments.INSTRUMENTS, instrument)
        self._learn(row.symbol, instrument)
        return True

    @property
    def look_alikes(self) -> list[str]:
        """The symbols that differ from another one in the case of letters only."""
        counts = Counter(symbol.casefold() for symbol in self._instruments)
        return sorted(symbol for symbol in self._instruments if counts[symbol.casefold()] > 1)

    def resized_since(self) -> datetime | None:
        """When the first trade was opened that a lot step may end earlier, because it was saved after the trade."""
        owner, account = self._account.owner_id, self._account.id
        instruments = [each for each in self._instruments.values() if each is not None and each.lot_step is not None]
        opened = (
            stored.first_opened(
                self._transaction.connection, owner, account, each.symbol, recorded_before=each.recorded_at
            )
            for each in instruments
        )
        return min((at for at in opened if at is not None), default=None)

    def _learn(self, symbol: str, instrument: Instrument | None) -> None:
        self._instruments[symbol] = instrument
        if instrument is not None and instrument.lot_step is not None:
            self._lot_steps[symbol] = instrument.lot_step


def _problem_of(symbol: str) -> str | None:
    """Why a text of a file is no symbol; None if it is one, or empty, as that of a transfer is."""
    if UNDECODED in symbol:
        return "has bytes that are not UTF-8; save the file as UTF-8"
    return symbol_problem(symbol) if symbol else None


def store_rows(
    transaction: Transaction, ctx: Context, account: Account, rows: Iterable[FileRow], counts: RowCounts
) -> SymbolBook:
    """Store the new fills of a file, and count what became of each row."""
    book = SymbolBook(transaction, account)
    counts.is_first = not stored.has_ledger(transaction.connection, account.owner_id, account.id)
    batch: list[tuple[FillRow, Fill]] = []
    for row in in_order(rows):
        match row:
            case FillRow():
                counts.rows += 1
                fill = _checked_fill(ctx, book, row, counts)
                if len(batch) >= BATCH and row.fill.at != batch[-1][0].fill.at:  # fills of one instant stay together
                    _store_batch(transaction, account, batch, counts)
                    batch.clear()
                if fill is not None:
                    batch.append((row, fill))
                if counts.rows % PROGRESS == 0:
                    ctx.progress("rows read", counts.rows, max(counts.rows, counts.expected))
            case LeftOutRow():
                counts.rows += 1
                counts.left_out.add(row.number, row.reason, broken=row.broken)
            case InstrumentRow():
                if book.save(row, now=ctx.now):
                    counts.instruments.append(row.symbol)
            case RemarkRow():
                counts.notes.append(row.text)
            case _:
                raise TypeError(f"{row!r} is not a row of fills")
    _store_batch(transaction, account, batch, counts)
    if book.look_alikes:
        names = ", ".join(book.look_alikes[:LOOK_ALIKES])
        counts.notes.append(f"{names} are different symbols, although only the case of letters differs")
    return book


def _checked_fill(ctx: Context, book: SymbolBook, row: FillRow, counts: RowCounts) -> Fill | None:
    """The ledger's fill of a row; None if the row is left out."""
    try:
        fill = book.as_fill(row, recorded_at=ctx.now)
        if fill.at > ctx.now + ctx.clock_skew:
            message = f"{format_instant(fill.at)} is in the future; check the timezone"
            raise Invalid(message, field="at")
    except BacksightError as error:
        detail = message_without_field(error)
        counts.left_out.add(row.number, f"{error.field or 'row'} cannot be used", broken=True, detail=detail)
        return None
    counts.read(row, fill)
    return fill


def _store_batch(
    transaction: Transaction, account: Account, batch: Sequence[tuple[FillRow, Fill]], counts: RowCounts
) -> None:
    if not batch:
        return
    keys = counts.possibly_known(fill.key for _, fill in batch)
    known = stored.fills_by_key(everything(transaction.connection, account.owner_id), account.id, keys)
    new: dict[tuple[str, str], Fill] = {}
    restated: list[Fill] = []
    # Where a file continues an instant of which some fills are stored, its new fills are numbered relative to those.
    shifts: dict[datetime, int] = {}
    for _, fill in batch:
        if fill.key in known:
            shifts.setdefault(fill.at, known[fill.key].sequence - fill.sequence)
    for row, fill in batch:
        former = known.get(fill.key) or new.get(fill.key)
        if former is None:
            shift = shifts.get(fill.at, 0)
            new[fill.key] = replace(fill, sequence=fill.sequence + shift) if shift else fill
        elif former.content == fill.content:
            if former.fee_taken(account.currency) != fill.fee_taken(account.currency):
                restated.append(replace(fill, sequence=former.sequence))
        else:
            detail = f"{fill.id!r} is stored as {former.quantity} {former.symbol} at {former.price}"
            counts.left_out.add(row.number, "another fill has the same id", broken=True, detail=detail)
    transaction.add_all(stored.FILLS, new.values())
    for fill in restated:
        transaction.revise(stored.FILLS, fill)
    counts.added += len(new)
    counts.new_splits |= {key for key, fill in new.items() if fill.kind == "split"}
    counts.restated += len(restated)
    missing = [fill.fee_currency or "" for fill in new.values() if fill.fee_is_missing]
    counts.fees_missing += len(missing)
    counts.fee_currencies |= set(missing)
    changed = [fill.at for fill in (*new.values(), *restated)]
    if changed:
        counts.first_new_at = min([*changed, *([] if counts.first_new_at is None else [counts.first_new_at])])


# Step 3: trades from all fills since the first new one.


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedTrades:
    """The trades that new fills made or changed."""

    opened: int
    closed: int
    withdrawn: int
    """Trades that no longer follow from the fills."""
    open_positions: int
    contradicted: int
    """Closed trades that teach nothing, because the file contradicts their results."""
    entered_before: tuple[str, ...]
    """Symbols with fills that closed a position, or a part of one, whose entry is not known; they are part of no
    trade."""
    uncounted_payments: tuple[str, ...]
    """Symbols with payments or fees that are not counted, because their trades are in a currency of unknown rate."""
    contradictions: tuple[PnlDifference, ...]
    """The first of these of each symbol."""
    unconverted: tuple[tuple[str, str], ...]
    """Symbols of closed trades whose results are kept in a currency of unknown rate, each with the currency."""
    rests: tuple[Rest, ...]
    """What sales left of positions in symbols without a lot step, where it is so little that it may be no position."""
    comparison: PnlComparison
    learned: BulkLearningReport


def fold_trades(
    transaction: Transaction,
    ctx: Context,
    deployment: Deployment,
    account: Account,
    book: SymbolBook,
    *,
    since: datetime,
    new_splits: Set[tuple[str, str]],
) -> FoldedTrades:
    """Make the trades of an account that follow from its fills, from an instant on, and learn from them.

    `new_splits` are the keys of splits that the stored trades do not know yet.
    """
    return _Replay(transaction, ctx, deployment, account, book, since, new_splits).run()


class _Moods:
    """The mood of a strategy on an account right before each instant, as the closes go by."""

    def __init__(self, transaction: Transaction, deployment: Deployment) -> None:
        self._connection = transaction.connection
        self._deployment = deployment
        self._key = {
            "owner_id": deployment.owner_id,
            "account_id": deployment.account_id,
            "strategy_name": deployment.strategy_name,
        }
        view = everything(self._connection, deployment.owner_id)
        self._account = [
            *mood_rows_between(
                self._connection,
                deployment.owner_id,
                deployment.account_id,
                "",
                since=stored.FIRST_INSTANT,
                until=view.as_of,
            )
        ]
        self._now = mood_row(view, deployment.account_id, deployment.strategy_name)
        self._before, self._at = self._now, stored.FIRST_INSTANT

    def correct(self, at: datetime) -> None:
        """Go on from the stored episodes, after one of them was corrected at an instant."""
        self._turn_to(at)
        self._now = self._of_episodes()

    def start_again(self) -> None:
        """Begin from the stored episodes, after later ones were withdrawn."""
        self._now = self._before = self._of_episodes()

    def _of_episodes(self) -> MoodRow | None:
        rows = strategy_moods(self._connection, self._deployment)
        return rows[-1] if rows else None

    def close(self, episode: Episode) -> None:
        """Go on with one more close."""
        fact = close_fact(episode)
        if fact is not None:
            self._turn_to(episode.known_at)
            self._now = strategy_row(self._now, fact, **self._key)

    def _turn_to(self, at: datetime) -> None:
        if at > self._at:
            self._before, self._at = self._now, at

    def before(self, at: datetime) -> Mood:
        """The mood right before an instant that no close is after."""
        account = last_known(self._account, at - JUST_BEFORE)
        return mood_from(account, self._now if at > self._at else self._before)

    def equity(self, at: datetime) -> float | None:
        row = last_known(self._account, at)
        return None if row is None or row.account is None else row.account.equity


@dataclass(slots=True)
class _OpenTrade:
    """A round trip that is open so far."""

    trip: RoundTrip
    record: EntryRecord
    steps: list[Step]
    """All its steps if there are bars of its symbol, else none."""


class _Replay:
    """The fold of an account's fills from an instant on."""

    def __init__(
        self,
        transaction: Transaction,
        ctx: Context,
        deployment: Deployment,
        account: Account,
        book: SymbolBook,
        since: datetime,
        new_splits: Set[tuple[str, str]],
    ) -> None:
        self._transaction, self._connection, self._ctx = transaction, transaction.connection, ctx
        self._deployment, self._account, self._book, self._since = deployment, account, book, since
        self._usd_rate = dollars_for_one(account.currency)
        strategy = deployed_strategy(self._connection, deployment)
        self._risk_per_trade = None if strategy is None else strategy.risk_per_trade
        self._bar_seconds: dict[str, int | None] = {}
        self._contexts: dict[tuple[str, int, int], ContextVector] = {}
        # Trades that may change: they are folded again, and what no longer follows is withdrawn.
        former = stored.ledger_trades_since(self._connection, account.owner_id, account.id, since)
        self._former = {trade.id: trade for trade in former}
        self._left = set(self._former)
        closed = [trade for trade in former if trade.status == "closed"]
        self._learning = BulkLearning(transaction, again=bool(closed))
        self._archived = self._withdraw_episodes(closed)
        self._moods = _Moods(transaction, deployment)
        if closed:
            self._moods.start_again()
        begun = [trade for trade in former if trade.opened_at is not None and trade.opened_at < since]
        begun.sort(key=lambda trade: (trade.position_key, trade.opened_at, trade.id))
        self._starts: dict[str, Trade] = {}
        """The trade that a position is folded again from, if it was opened before; its first fill is still to come."""
        for trade in begun:
            self._starts.setdefault(trade.position_key, trade)
        self._continued = frozenset(self._starts)
        self._first_at = min([since, *(trade.opened_at for trade in begun if trade.opened_at is not None)])
        self._new_splits = new_splits
        self._split_keys = self._keys_of_splits()
        self._open: dict[str, _OpenTrade] = {}
        self._last_closed: dict[str, RoundTrip] = {}
        self._closed: list[tuple[Trade, Episode | None]] = []
        self._opened = self._newly_closed = self._contradicted = self._compared = self._agreeing = 0
        self._differences: list[PnlDifference] = []
        self._entered_before: set[str] = set()
        self._uncounted: set[str] = set()
        self._contradictions: dict[str, PnlDifference] = {}
        self._unconverted: set[tuple[str, str]] = set()
        self._rests: dict[str, Rest] = {}

    def run(self) -> FoldedTrades:
        """Fold all fills, and write the trades, the episodes and what memory learns from them."""
        total = stored.fill_count(self._connection, self._account.owner_id, self._account.id, self._first_at)
        fills = stored.fills_since(self._connection, self._account.owner_id, self._account.id, self._first_at)
        for number, fill in enumerate(fills, start=1):
            if fill.kind != "transfer":
                self._apply(fill)
            if number % PROGRESS == 0:
                self._ctx.progress("fills into trades", number, total)
        self._flush()
        self._left -= {trade_id_of(self._account.id, position.trip) for position in self._open.values()}
        self._withdraw_left()
        for position in self._open.values():
            self._write_open(position)
        self._ctx.progress("fills into trades", total, total)
        return FoldedTrades(
            opened=self._opened,
            closed=self._newly_closed,
            withdrawn=len(self._left),
            open_positions=len(self._open),
            contradicted=self._contradicted,
            entered_before=tuple(sorted(self._entered_before)),
            uncounted_payments=tuple(sorted(self._uncounted)),
            contradictions=tuple(self._contradictions[symbol] for symbol in sorted(self._contradictions)),
            unconverted=tuple(sorted(self._unconverted)),
            rests=tuple(self._rests[symbol] for symbol in sorted(self._rests)),
            comparison=PnlComparison(
                compared=self._compared, agreeing=self._agreeing, differences=tuple(self._differences)
            ),
            learned=self._learning.finish(),
        )

    # Folding one fill.

    def _apply(self, fill: Fill) -> None:
        key = fill.position_key
        start = self._starts.get(key)
        if start is not None:
            if fill.name != start.first_fill_id:
                return  # of an earlier trade
            del self._starts[key]
            fill = self._opening_part(fill, start)
        elif fill.at < self._since and key not in self._continued:
            return
        self._book.instrument(fill.symbol)
        current = self._open.get(key)
        former = self._last_trip(fill) if current is None else current.trip
        factor = None if current is None else currency_factor(current.trip, fill)
        if current is not None and factor is not None:
            current.steps = [replace(step, realized_pnl=step.realized_pnl * factor) for step in current.steps]
        if fill.closes is not None and unmatched_size(former, fill, self._book.flatness):
            self._entered_before.add(fill.symbol)
        if former is not None and is_uncounted(former, fill):
            self._uncounted.add(fill.symbol)
        for trip in after_fill(former, fill, self._book.flatness):
            if former is None or trip.first_fill_id != former.first_fill_id:
                self._enter(trip)
            elif current is None:
                self._correct(trip, fill)
            elif trip.closed_at is None:
                if trip.left > current.trip.left and may_be_rest(trip.size, trip.peak_size):
                    self._note_rest(trip)
                current.trip = trip
                self._step(current)
            else:
                current.trip = trip
                self._step(current)
                self._close(key, current)

    def _note_rest(self, trip: RoundTrip) -> None:
        """Keep the first rest of each symbol that may be one."""
        symbol = trip.symbol
        if symbol not in self._rests and lacks_lot_step(self._book.instrument(symbol)):
            self._rests[symbol] = Rest(symbol=symbol, left=trip.size, of=trip.peak_size)

    def _keys_of_splits(self) -> frozenset[str]:
        """The positions with splits that stored trades know: the entry size of a trade is in units after its splits."""
        owner, account = self._account.owner_id, self._account.id
        splits = stored.splits_since(self._connection, owner, account, self._first_at)
        return frozenset(split.position_key for split in splits if split.key not in self._new_splits)

    def _opening_part(self, fill: Fill, trade: Trade) -> Fill:
        """The part of a fill that opened a trade."""
        fills = self._known_fills(trade) if fill.position_key in self._split_keys else [fill]
        return from_first(fills, first_fill_id=fill.name, size=trade.entry.size or 0.0, closed_at=trade.closed_at)[0]

    def _known_fills(self, trade: Trade) -> list[Fill]:
        """The fills of a position from the entry of a trade on, without splits that the trade does not know."""
        account, key = self._account, trade.position_key or ""
        fills = stored.fills_of_position(
            everything(self._connection, account.owner_id), account.id, key, since=trade.opened_at
        )
        return [fill for fill in fills if fill.key not in self._new_splits]

    def _last_trip(self, fill: Fill) -> RoundTrip | None:
        """The last closed round trip of a position that has none open, if a fee or a payment may belong to it."""
        key = fill.position_key
        if key in self._last_closed or fill.changes_size:
            return self._last_closed.get(key)
        trade = stored.last_ledger_trade(self._connection, self._account.owner_id, self._account.id, key, fill.at)
        if trade is None or trade.id in self._former:
            return None
        earlier = [each for each in self._known_fills(trade) if each.order < fill.order]
        size, opener = trade.entry.size or 0.0, trade.first_fill_id or ""
        of_trade = from_first(earlier, first_fill_id=opener, size=size, closed_at=trade.closed_at)
        trips = fold(of_trade, flatness=self._book.flatness)
        self._last_closed[key] = trips[-1]
        return trips[-1]

    def _step(self, position: _OpenTrade) -> None:
        if self._seconds(position.trip.symbol) is not None:
            position.steps += position.trip.steps

    def _seconds(self, symbol: str) -> int | None:
        """The length of the shortest bars of a symbol; None without bars."""
        if symbol not in self._bar_seconds:
            self._bar_seconds[symbol] = stored_bars.finest_interval(self._connection, self._account.owner_id, symbol)
        return self._bar_seconds[symbol]

    def _enter(self, trip: RoundTrip) -> None:
        position = _OpenTrade(trip=trip, record=self._record(trip), steps=[])
        self._open[trip.position_key] = position
        self._step(position)

    def _record(self, trip: RoundTrip) -> EntryRecord:
        """What is known of an entry: the bars, the mood and the equity at its time."""
        at, symbol = trip.opened_at, trip.symbol
        former = self._former.get(trade_id_of(self._account.id, trip)) if at < self._since else None
        if former is not None:  # nothing changed before
            return EntryRecord(
                deployment=self._deployment,
                entry=former.entry,
                context=former.context,
                memory_arm=former.memory_arm,
                confidence=former.confidence,
            )
        view = View(self._connection, self._account.owner_id, Horizon(as_of=at))
        series = {} if self._seconds(symbol) is None else recent_bars(view, symbol)
        regime = regime_at(series)
        equity = self._moods.equity(at)
        risk = self._risk_per_trade * equity if self._risk_per_trade and equity and equity > 0 else None
        entry = Entry(
            size=trip.entry_size,
            size_usd=in_dollars(
                trip.peak_notional, self._usd_rate if trip.currency is None else dollars_for_one(trip.currency)
            ),
            reason=trip.entry_reason,
            regime_tag=None if regime is None else regime.tag,
            regime_interval_seconds=None if regime is None else regime.interval_seconds,
            regime_preset=None if regime is None else regime.preset,
            equity=equity,
            configured_risk=risk,
        )
        return EntryRecord(
            deployment=self._deployment,
            entry=entry,
            context=with_agent_state(self._context(symbol, at, series), self._moods.before(at)),
            memory_arm=None,
            confidence=None,
        )

    def _context(self, symbol: str, at: datetime, series: Series) -> ContextVector:
        """The market context at an entry; without bars it depends on the hour of the week alone, and is made once."""
        if series:
            return context_at(symbol, at, series)
        hour = symbol, at.weekday(), at.hour
        if hour not in self._contexts:
            if len(self._contexts) >= CONTEXTS:
                self._contexts.clear()
            self._contexts[hour] = context_at(symbol, at, series)
        return self._contexts[hour]

    # Closed trades.

    def _close(self, key: str, position: _OpenTrade) -> None:
        del self._open[key]
        trip = self._last_closed[key] = position.trip
        trade = self._trade(position)
        self._compare(trade)
        if trade.currency is not None:
            self._unconverted.add((trade.symbol, trade.currency))
        episode = episode_of_trade(trade) if teaches(trade) else None
        if episode is not None:
            archived_at = self._archived.get(episode.id)
            episode = episode if archived_at is None else replace(episode, archived_at=archived_at)
            self._moods.close(episode)
        self._closed.append((trade, episode))
        if trip.closed_at is not None and trip.closed_at < self._since:  # it was corrected afterwards
            self._flush()
            self._moods.start_again()
        if len(self._closed) >= LEARNED_AT_ONCE:
            self._flush()

    def _trade(self, position: _OpenTrade) -> Trade:
        """The trade of a round trip, with what the owner wrote about it before."""
        trip, now = position.trip, self._ctx.now
        progress = self._progress(position) if trip.closed_at is not None else NO_PROGRESS
        trade = updated_trade(
            opened_trade(trip, position.record, recorded_at=now),
            trip,
            progress,
            usd_rate=self._usd_rate,
            known_at=trip.known_at,
            recorded_at=now,
        )
        former = self._former.get(trade.id)
        if former is None:
            return trade
        return replace(
            trade,
            created_at=former.created_at,
            market_context=former.market_context,
            confidence=former.confidence,
            reflection=former.reflection,
            tags=former.tags,
        )

    def _progress(self, position: _OpenTrade) -> TradeProgress:
        """The excursions of a closed trade, from the bars of its time; none without bars."""
        trip, seconds = position.trip, self._seconds(position.trip.symbol)
        if seconds is None or trip.closed_at is None:
            return NO_PROGRESS
        bars = stored_bars.bars_closed(
            self._connection,
            self._account.owner_id,
            symbol=trip.symbol,
            interval_seconds=seconds,
            after=trip.opened_at,
            until=trip.closed_at + timedelta(seconds=seconds),
        )
        if not bars:
            return NO_PROGRESS
        return TradeProgress(excursions=excursions(replace(trip, steps=tuple(position.steps)), bars=bars))

    def _compare(self, trade: Trade) -> None:
        """Compare the realised result of a closed trade with that in the file."""
        ours, theirs = trade.realized_pnl, trade.broker_pnl
        if ours is None or theirs is None or trade.closed_at is None:
            return
        difference = PnlDifference(symbol=trade.symbol, closed_at=trade.closed_at, ours=ours, theirs=theirs)
        self._compared += 1
        if trade.contradiction is not None:
            self._contradicted += 1
            self._contradictions.setdefault(trade.symbol, difference)
        if abs(ours - theirs) <= ROUNDING + ROUNDING_SHARE * (trade.notional(trade.size) or 0.0):
            self._agreeing += 1
        elif len(self._differences) < DIFFERENCES:
            self._differences.append(difference)

    def _flush(self) -> None:
        """Write the trades that were closed since the last flush, and learn from them."""
        new = [trade for trade, _ in self._closed if trade.id not in self._former]
        self._transaction.add_all(stored.TRADES, new)
        self._opened += len(new)
        self._newly_closed += len(new)
        for trade, _ in self._closed:
            former = self._former.get(trade.id)
            if former is not None:
                self._newly_closed += former.status == "open"
                self._left.discard(trade.id)
                self._replace(former, trade)
        episodes = [episode for _, episode in self._closed if episode is not None]
        self._closed.clear()
        if episodes:
            self._learning.add(episodes)

    def _replace(self, former: Trade, trade: Trade) -> None:
        """Write a trade in place of its former version.

        The trade was known from the same fills all along, so no read as of an earlier instant sees the former version,
        unless it asks for what this store had recorded by then.
        """
        if replace(trade, recorded_at=former.recorded_at) == former:
            return
        if former.status == "open" and trade.known_at >= former.known_at:
            self._transaction.revise(stored.TRADES, trade)
            return
        self._withdraw(stored.TRADES, former, known_at=former.known_at)
        self._transaction.add(stored.TRADES, trade)

    def _correct(self, trip: RoundTrip, fill: Fill) -> None:
        """A fee or a payment after the close: a correction of the trade, known from then on."""
        self._flush()
        self._last_closed[trip.position_key] = trip
        row = stored.trade(self._connection, self._account.owner_id, trade_id_of(self._account.id, trip))
        if row is None:
            return
        now = self._ctx.now
        trade = updated_trade(
            row, trip, progress_of(row), usd_rate=row.usd_rate, known_at=fill.known_at, recorded_at=now
        )
        self._transaction.revise(stored.TRADES, trade)
        episode = stored_memories.current_episode(self._connection, row.owner_id, episode_id_of(row.id))
        if teaches(trade):
            self._learning.correct(episode_of_trade(trade))
        elif episode is not None:
            self._transaction.withdraw(
                stored_memories.EPISODES, episode, known_at=trade.known_at, recorded_at=trade.recorded_at
            )
            self._learning.withdraw(episode)
        self._moods.correct(fill.at)

    # What was stored before.

    def _withdraw_episodes(self, trades: Iterable[Trade]) -> dict[str, datetime]:
        """Withdraw the episodes of trades that are folded again; when those that were archived were, by id."""
        archived: dict[str, datetime] = {}
        for trade in trades:
            episode = stored_memories.current_episode(self._connection, trade.owner_id, episode_id_of(trade.id))
            if episode is not None:
                self._withdraw(stored_memories.EPISODES, episode, known_at=episode.known_at)
                self._learning.withdraw(episode)
                if episode.archived_at is not None:
                    archived[episode.id] = episode.archived_at
        return archived

    def _withdraw_left(self) -> None:
        for trade_id in sorted(self._left):
            former = self._former[trade_id]
            self._withdraw(stored.TRADES, former, known_at=former.known_at)

    def _withdraw(self, noun: Noun[T], value: T, *, known_at: datetime) -> None:
        """Withdraw a row as if it had never been known; its earlier versions go too."""
        self._transaction.erase_versions(noun, value)
        self._transaction.withdraw(noun, value, known_at=known_at, recorded_at=self._ctx.now)

    def _write_open(self, position: _OpenTrade) -> None:
        trade = self._trade(position)
        former = self._former.get(trade.id)
        if former is None:
            self._transaction.add(stored.TRADES, trade)
            self._opened += 1
        else:
            self._replace(former, trade)
