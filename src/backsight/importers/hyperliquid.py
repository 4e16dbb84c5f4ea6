"""Fills and funding of a Hyperliquid account, as its info endpoint answers them.

    userFills, userFillsByTime      a list of fills: coin, px, sz, side, time, startPosition, dir, closedPnl, hash, oid,
                                    crossed, fee; later also tid, feeToken, twapId, liquidation, builderFee
    userFunding                     a list of {time, hash, delta: {type: "funding", coin, usdc, szi, fundingRate}}
    userNonFundingLedgerUpdates     the same with deposits and withdrawals

The shape is documented at hyperliquid.gitbook.io/hyperliquid-docs/for-developers/api/info-endpoint. Money is in USDC,
the currency of the account. `closedPnl` is before fees: a public report of 0.214 ETH bought at 2331.5 and sold at
2354.8 with a fee of 0.072565 has a closedPnl of 4.9862. `fee` includes `builderFee`.

The file begins with the latest fill, but fills of one millisecond are in the order of their execution. `startPosition`
puts them in order, and it shows where fills are missing. A trade with oneself makes two fills with one startPosition.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from decimal import Decimal, InvalidOperation
from itertools import groupby, islice
from pathlib import Path

from backsight.core.instants import JUST_BEFORE
from backsight.core.orders import ReportedFill
from backsight.importers.cells import file_rows
from backsight.importers.files import instant_of
from backsight.importers.formats import (
    FileFormat,
    FileHead,
    FileRow,
    FillRow,
    InstrumentRow,
    LeftOutRow,
    ReadOptions,
    RemarkRow,
)
from backsight.importers.json_rows import JsonRow, json_rows

FILL_KEYS = frozenset({"coin", "px", "sz", "side", "startPosition", "closedPnl", "oid"})
COLLATERAL = "USDC"
LOOK_AHEAD = 1_000
"""How many fills after a position is first told may pass until one of them closes a part of it."""
LEAST_WORTH = 1.0
"""A position below this worth in USDC, before the first fill, is a rest and not a position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _HyperliquidFill:
    """One fill, with its size before and after as exact decimals."""

    number: int
    row: JsonRow
    time: int
    coin: str
    change: Decimal
    start: Decimal
    price: float
    fee_in_coin: Decimal = Decimal(0)
    """Of a spot purchase, taken off the coins that were bought."""

    @property
    def end(self) -> Decimal:
        return self.start + self.change - self.fee_in_coin

    @property
    def is_spot(self) -> bool:
        return self.coin.startswith("@") or "/" in self.coin

    @property
    def closed(self) -> Decimal:
        """The size that it closed."""
        return min(abs(self.start), abs(self.change)) if self.start * self.change < 0 else Decimal(0)

    @property
    def closed_pnl(self) -> float | None:
        """The exchange's PnL before fees; None for a fill that closed nothing."""
        return self.row.number_in("closedPnl") if self.closed else None


def _is_hyperliquid(head: FileHead) -> bool:
    first = head.first_object
    if first is None:
        return False
    delta = first.get("delta")
    return set(first) >= FILL_KEYS or (isinstance(delta, dict) and "type" in delta and {"time", "hash"} <= set(first))


def _read(path: Path, _options: ReadOptions) -> Iterator[FileRow]:
    executions: list[_HyperliquidFill] = []
    ids: set[str] = set()

    def understand(number: int, row: JsonRow) -> Iterable[FileRow]:
        if "delta" in row.content:
            return [_ledger_update(number, row)]
        execution = _execution(number, row)
        fill_id = _id(execution)
        if fill_id in ids:
            return [LeftOutRow(number=number, reason="the same fill occurs again")]
        ids.add(fill_id)
        executions.append(execution)
        return []

    yield from file_rows(json_rows(path), understand)
    by_coin: defaultdict[str, list[_HyperliquidFill]] = defaultdict(list)
    for execution in executions:
        by_coin[execution.coin].append(execution)
    rows: list[FillRow] = []
    begun, broken = [], []
    for coin, fills in by_coin.items():
        ordered = _in_order(fills)
        yield _instrument(coin, fills)
        holdings = {holding.number: holding for holding in _holdings(ordered)}
        if ordered[0].number in holdings:
            begun.append(coin)
        if holdings.keys() - {ordered[0].number}:
            broken.append(coin)
        rows += _numbered(ordered, holdings)
    yield from sorted(rows, key=lambda row: (row.fill.at, row.fill.sequence))
    yield from _remarks(begun, broken)


def _execution(number: int, row: JsonRow) -> _HyperliquidFill:
    side, coin = row.text("side").upper(), row.text("coin")
    if side not in ("A", "B") or not coin:
        raise ValueError("no coin, or a side that is neither A nor B")
    size, price = row.required("sz"), row.required("px")
    if size <= 0:
        raise ValueError("sz is not above 0")
    try:
        exact, start = Decimal(row.text("sz")), Decimal(row.text("startPosition"))
        time = int(row.text("time"))
        instant_of(time, zone=UTC)
    except (InvalidOperation, ValueError):
        raise ValueError("startPosition or time cannot be read") from None
    row.number_in("closedPnl"), row.number_in("fee")
    execution = _HyperliquidFill(
        number=number,
        row=row,
        time=time,
        coin=coin,
        change=exact if side == "B" else -exact,
        start=start,
        price=price,
    )
    in_coin = execution.is_spot and row.text("feeToken") not in ("", COLLATERAL) and row.text("fee")
    fee = Decimal(row.text("fee")) if in_coin else Decimal(0)
    return replace(execution, fee_in_coin=fee) if abs(fee) < exact else execution


def _id(fill: _HyperliquidFill) -> str:
    """The exchange's number of the trade with that of the order: a trade with oneself has one number and two orders."""
    row = fill.row
    if row.text("tid") not in ("", "0"):
        return f"{row.text('tid')}:{row.text('oid')}"
    return ":".join(row.text(key) for key in ("hash", "oid", "startPosition", "px", "sz"))


def _instrument(coin: str, fills: Sequence[_HyperliquidFill]) -> InstrumentRow:
    if not fills[0].is_spot:
        return InstrumentRow(symbol=coin, kind="perpetual", underlying=coin.rpartition(":")[2])
    tokens = {fill.row.text("feeToken") for fill in fills} - {"", COLLATERAL}
    base = coin.partition("/")[0] if "/" in coin else min(tokens, default=None)
    return InstrumentRow(symbol=coin, kind="spot", underlying=base)


def _in_order(fills: Sequence[_HyperliquidFill]) -> list[_HyperliquidFill]:
    """The fills of a coin by time; those of one instant so that each begins where the one before led to."""
    ordered: list[_HyperliquidFill] = []
    for _, group in groupby(sorted(fills, key=lambda fill: fill.time), key=lambda fill: fill.time):
        ordered += _chained(list(group), ordered[-1] if ordered else None)
    return ordered


def _chained(fills: list[_HyperliquidFill], before: _HyperliquidFill | None) -> Iterator[_HyperliquidFill]:
    """Each next fill begins at the position; the first one in the file if none does."""
    position = _first_position(fills) if before is None else before.end
    by_start: defaultdict[Decimal, deque[_HyperliquidFill]] = defaultdict(deque)
    for fill in fills:
        by_start[fill.start].append(fill)
    waiting = deque(fills)
    used: set[int] = set()
    while waiting:
        candidates = by_start[position]
        while candidates and candidates[0].number in used:
            candidates.popleft()
        fill = candidates[0] if candidates else waiting[0]
        used.add(fill.number)
        while waiting and waiting[0].number in used:
            waiting.popleft()
        position = _led_to(before, fill)
        before = fill
        yield fill


def _first_position(fills: Sequence[_HyperliquidFill]) -> Decimal:
    """Where the fills of the first instant begin: at flat if one does, else where no other one ends."""
    ends = {fill.end for fill in fills}
    starts = [fill.start for fill in fills]
    return next((start for start in starts if start not in ends), Decimal(0) if Decimal(0) in starts else starts[0])


def _led_to(before: _HyperliquidFill | None, fill: _HyperliquidFill) -> Decimal:
    """The position after a fill; after both fills of a trade with oneself it is the one before them."""
    own_trade = (
        before is not None
        and fill.start == before.start
        and fill.change == -before.change
        and fill.row.text("hash") == before.row.text("hash")
    )
    return fill.start if own_trade else fill.end


def _holdings(fills: Sequence[_HyperliquidFill]) -> Iterator[FillRow]:
    """The position that the exchange tells, wherever it is not the one that the fills before led to.

    Its cost is the one that the exchange's profit on closing it implies; None if nothing of it is closed in the file.
    It is of just before the instant of the fill, so that it stays before fills that another file numbers.
    """
    position, before = Decimal(0), None
    for place, fill in enumerate(fills):
        own_trade = before is not None and _led_to(before, fill) == fill.start
        if not own_trade and abs(float(fill.start - position)) * fill.price >= LEAST_WORTH:
            cost = _cost_before(islice(fills, place, place + LOOK_AHEAD))
            within = before is not None and before.time == fill.time
            holding = ReportedFill(
                id=f"holding:{_id(fill)}:{cost}",
                at=instant_of(fill.time, zone=UTC) - (timedelta(0) if within else JUST_BEFORE),
                sequence=0,
                kind="holding",
                symbol=fill.coin,
                quantity=float(fill.start),
                price=cost,
            )
            yield FillRow(number=fill.number, fill=holding)
        position, before = _led_to(before, fill), fill


def _cost_before(fills: Iterable[_HyperliquidFill]) -> float | None:
    """The average cost before the first of these fills; None if none of them closes a part of the position.

    With c for the cost, the average cost after additions is a·c + b, and the first closing fill tells it: its price
    less PnL over size.
    """
    a, b = 1.0, 0.0
    for fill in fills:
        size = abs(float(fill.start))
        if fill.closed:
            gain = (fill.closed_pnl or 0.0) / float(fill.closed)
            return ((fill.price - gain if fill.start > 0 else fill.price + gain) - b) / a
        added = abs(float(fill.change))
        a, b = a * size / (size + added), (b * size + fill.price * added) / (size + added)
    return None


def _numbered(ordered: Sequence[_HyperliquidFill], holdings: Mapping[int, FillRow]) -> Iterator[FillRow]:
    """The fills of a coin, each after the holding that it begins at, numbered within their instants."""
    for _, group in groupby(ordered, key=lambda fill: fill.time):
        sequence = 0
        for execution in group:
            holding = holdings.get(execution.number)
            if holding is not None:
                yield replace(holding, fill=replace(holding.fill, sequence=sequence))
                sequence += 1
            yield FillRow(number=execution.number, fill=_fill(execution, sequence))
            sequence += 1


def _fill(execution: _HyperliquidFill, sequence: int) -> ReportedFill:
    row, in_coin = execution.row, float(execution.fee_in_coin)
    # The symbol of a spot market is a number and does not tell the ledger that a fee is in its base asset.
    fee = in_coin * execution.price if in_coin else row.number_in("fee") or 0.0
    token = "" if in_coin else row.text("feeToken")
    return ReportedFill(
        id=_id(execution),
        at=instant_of(execution.time, zone=UTC),
        sequence=sequence,
        kind="trade",
        symbol=execution.coin,
        quantity=float(execution.change - execution.fee_in_coin),
        price=execution.price,
        fee=fee,
        fee_currency=None if token in ("", COLLATERAL) else token,
        order_id=row.text("oid") or None,
        realized_pnl=execution.closed_pnl,
        reason="liquidated" if _was_liquidated(row) else None,
    )


def _was_liquidated(row: JsonRow) -> bool:
    """Whether the account was liquidated. The other side of a liquidation reports it too, but did not cross."""
    by_market = row.content.get("liquidation") is not None and row.content.get("crossed") is True
    direction = row.text("dir")
    return direction.startswith("Liquidated") or (by_market and direction.startswith("Close"))


def _ledger_update(number: int, row: JsonRow) -> FileRow:
    delta = row.content["delta"]
    if not isinstance(delta, dict):
        raise ValueError("delta is not an object")
    change = JsonRow(delta)
    kind, coin = change.text("type"), change.text("coin")
    try:
        at = instant_of(row.content.get("time"), zone=UTC)
    except ValueError:
        raise ValueError("the time cannot be read") from None
    if kind == "funding" and coin:
        amount = change.required("usdc")
        fill_id = f"funding:{coin}:{row.text('time')}"
        fill = ReportedFill(id=fill_id, at=at, sequence=0, kind="funding", symbol=coin, amount=amount)
    elif kind in ("deposit", "withdraw"):
        amount = change.required("usdc") if kind == "deposit" else -change.required("usdc")
        fill = ReportedFill(id=f"{kind}:{row.text('hash')}", at=at, sequence=0, kind="transfer", amount=amount)
    else:
        return LeftOutRow(number=number, reason=f"a ledger update of type {kind or 'unknown'}")
    return FillRow(number=number, fill=fill)


def _remarks(begun: Sequence[str], broken: Sequence[str]) -> Iterator[RemarkRow]:
    if begun:
        yield RemarkRow(
            text=f"The file begins within positions in {', '.join(sorted(begun))}: each is entered at the cost that "
            "closedPnl implies, and left out where nothing of it is closed; when it was entered is not known"
        )
    if broken:
        yield RemarkRow(
            text=f"Fills or transfers are missing within the file in {', '.join(sorted(broken))}: some begin at "
            "another startPosition than the one before them led to; the difference is moved at cost"
        )


FORMATS = (
    FileFormat(
        name="hyperliquid",
        title="Hyperliquid userFills or userFunding (JSON)",
        rows="fills",
        recognises=_is_hyperliquid,
        read=_read,
        currency=COLLATERAL,
    ),
)
