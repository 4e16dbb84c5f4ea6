"""Which closed trades a list shows, and in which order, from their columns."""

from collections.abc import Collection, Mapping

import numpy as np

from backsight.core.trades.choices import Bounded, TradeOrder, TradeResult
from backsight.core.trades.columns import ClosedTradeColumns, Floats, Integers, converted_pnl


def with_result(columns: ClosedTradeColumns, rows: Integers, result: TradeResult) -> Integers:
    """Those of some trades that were won, or that were not."""
    won = columns.pnl[rows] > 0.0
    return rows[won if result == "won" else ~won]


def within_bounds(
    columns: ClosedTradeColumns, rows: Integers, bounds: Mapping[Bounded, tuple[float, float]]
) -> Integers:
    """Those of some trades whose numbers lie between two bounds, both included; unknown numbers do not."""
    stays = np.ones(len(rows), np.bool_)
    for name, (low, high) in bounds.items():
        values = _values(columns, rows, name)
        stays &= (values >= low) & (values <= high)
    return rows[stays]


def _values(columns: ClosedTradeColumns, rows: Integers, name: Bounded) -> Floats:
    match name:
        case "pnl":
            return converted_pnl(columns, rows)
        case "outcome":
            return _in_r(columns, rows)
        case "mae_r":
            return columns.mae_r[rows]
        case "mfe_r":
            return columns.mfe_r[rows]
        case "minutes":
            return columns.minutes[rows]


def _in_r(columns: ClosedTradeColumns, rows: Integers) -> Floats:
    """The outcomes in R; NaN where an outcome is in another unit, or unknown."""
    is_r = np.array([group.outcome_unit == "R" for group in columns.groups], np.bool_)
    return np.where(is_r[columns.group[rows]], columns.outcome[rows], np.nan)


def with_ids(columns: ClosedTradeColumns, rows: Integers, ids: Collection[str]) -> Integers:
    """Those of some trades with these ids."""
    return rows[np.isin(columns.ids[rows], np.array([each.encode() for each in ids] or [b""]))]


def sort_keys(columns: ClosedTradeColumns, rows: Integers, order: TradeOrder) -> Floats:
    """The keys that sort trades into an order, the smallest first; an unknown value is last."""
    match order:
        case "newest":
            keys = -columns.closed_at[rows].astype(np.float64)  # microseconds of this era are exact as doubles
        case "oldest":
            keys = columns.closed_at[rows].astype(np.float64)
        case "best":
            keys = -converted_pnl(columns, rows)
        case "worst":
            keys = converted_pnl(columns, rows)
        case "best_r":
            keys = -_in_r(columns, rows)
        case "worst_r":
            keys = _in_r(columns, rows)
        case "longest":
            keys = -columns.minutes[rows]
    return np.where(np.isnan(keys), np.inf, keys)


def first_in_order(
    columns: ClosedTradeColumns, rows: Integers, order: TradeOrder, *, most: int, after: tuple[float, str] | None = None
) -> list[tuple[float, str]]:
    """Key and id of the first trades in an order, equal keys by id; `after` continues after a key and id."""
    keys = sort_keys(columns, rows, order)
    if after is not None:
        last_key, last_id = after
        follows = keys > last_key
        same = np.flatnonzero(keys == last_key)
        follows[same] = columns.ids[rows[same]] > last_id.encode()
        rows, keys = rows[follows], keys[follows]
    if len(rows) > most:
        largest = np.partition(keys, most - 1)[most - 1]  # all rows with this key, since ids decide among them
        stays = keys <= largest
        rows, keys = rows[stays], keys[stays]
    pairs = zip(keys.tolist(), columns.ids[rows].tolist(), strict=True)
    return [(key, name.decode()) for key, name in sorted(pairs)[:most]]
