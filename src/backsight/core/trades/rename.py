"""Renamed symbols: a broker without position ids names a position by its symbol, so a new symbol is a new key there.

The ledger goes on under the key that the position had when it was opened.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from backsight.core.instruments import SymbolRules
from backsight.core.orders import BrokerSnapshot
from backsight.core.portfolio import Position
from backsight.core.trades.infer import SAME_PRICE
from backsight.core.trades.trade import Trade

NO_RENAMES: Mapping[str, str] = MappingProxyType({})


def ledger_keys(
    open_trades: Sequence[Trade],
    snapshots: Sequence[BrokerSnapshot],
    rules: SymbolRules,
    renames: Mapping[str, str] = NO_RENAMES,
) -> dict[str, str]:
    """The ledger's keys of positions that the broker names by their new symbols, by new symbol.

    A position was renamed earlier (`renames`), or is renamed by a fill of these snapshots, or has gone while one of the
    same side, size and average price appeared in a symbol of the same underlying. A renamed position keeps its key
    also when it is flat meanwhile, so that late and repeated fills find it.
    """
    by_key = {trade.position_key: trade for trade in open_trades}
    keys = {symbol: key for symbol, key in renames.items() if not _is_in_use(key, by_key.get(key), snapshots)}
    keys |= {trade.symbol: trade.position_key for trade in open_trades if trade.symbol != trade.position_key}
    keys = {symbol: key for symbol, key in keys.items() if symbol not in by_key}
    for snapshot in snapshots:
        for fill in snapshot.fills:
            if fill.kind == "rename":
                keys[fill.symbol] = keys.get(fill.position_key, fill.position_key)
        for position, trade in _appeared(by_key, snapshot):
            if rules.share_underlying(trade.symbol, position.symbol):
                keys.setdefault(position.symbol, trade.position_key)
    return {symbol: key for symbol, key in keys.items() if symbol != key}


def _is_in_use(key: str, trade: Trade | None, snapshots: Sequence[BrokerSnapshot]) -> bool:
    """Whether a former symbol is another position's by now."""
    if trade is not None:
        return trade.symbol == key
    return any(key in snapshot.portfolio.by_key() for snapshot in snapshots)


def _appeared(by_key: Mapping[str, Trade], snapshot: BrokerSnapshot) -> Iterator[tuple[Position, Trade]]:
    """New positions of a snapshot, each with a trade that is gone from it and is like it."""
    positions = snapshot.portfolio.by_key()
    gone = [trade for key, trade in by_key.items() if key == trade.symbol and key not in positions]
    for key, position in positions.items():
        if key == position.symbol and key not in by_key:
            traded = math.fsum(fill.quantity for fill in snapshot.fills if (fill.position_key or fill.symbol) == key)
            yield from ((position, trade) for trade in gone if _is_like(position, trade, traded))


def _is_like(position: Position, trade: Trade, traded: float) -> bool:
    """Whether a position has the side, the average price and the size of a trade, or its size after a reduction.

    `traded` are the units that the broker reports as bought under the position's own name, less those sold.
    """
    average, cost = position.average_price, trade.average_cost
    if average is None or cost is None or position.direction != trade.direction:
        return False
    before = position.size - traded * (1.0 if position.direction == "long" else -1.0)
    sizes = (position.size, max(before, position.size))
    is_size = any(math.isclose(size, trade.open_size, rel_tol=SAME_PRICE) for size in sizes)
    return is_size and math.isclose(average, cost, rel_tol=SAME_PRICE)


def under_keys(snapshot: BrokerSnapshot, keys: Mapping[str, str]) -> BrokerSnapshot:
    """The snapshot with positions and fills of renamed symbols under the ledger's keys."""
    positions = tuple(
        replace(position, position_key=keys.get(position.position_key, position.position_key))
        for position in snapshot.portfolio.positions
    )
    fills = tuple(
        replace(fill, position_key=keys.get(fill.position_key or fill.symbol, fill.position_key))
        for fill in snapshot.fills
    )
    return replace(snapshot, portfolio=replace(snapshot.portfolio, positions=positions), fills=fills)
