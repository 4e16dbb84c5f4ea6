"""The ledger's rows as of a view, with the changes of ticks that are computed and not stored."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from backsight.core.decision import Decision, LastTick
from backsight.core.fills import Fill
from backsight.core.orders import PlacedOrder
from backsight.core.trades.mark import PositionMark
from backsight.core.trades.trade import Trade
from backsight.store import decisions as stored_decisions
from backsight.store import trades as stored
from backsight.store.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanges:
    """What a tick changes in the rows of the ledger; None for a row that it withdraws."""

    decision: Decision
    fills: Mapping[tuple[str, str], Fill | None]
    trades: Mapping[str, Trade | None]
    marks: Sequence[PositionMark]
    orders: Sequence[PlacedOrder]


class LedgerRows:
    """Reads the rows from which a tick is settled: those of a view, with the changes of earlier ticks.

    Ticks of one instant are settled one after the other, and all read memory as of right before the instant. What the
    earlier ones changed is therefore computed again, whether they are stored or not.
    """

    def __init__(self, view: View, changes: Sequence[RowChanges] = ()) -> None:
        self.view = view
        self._changes = changes
        self._fills = {key: fill for each in changes for key, fill in each.fills.items()}
        self._trades = {trade_id: trade for each in changes for trade_id, trade in each.trades.items()}

    def after(self, changes: RowChanges) -> "LedgerRows":
        """These rows after one more tick."""
        return LedgerRows(self.view, (*self._changes, changes))

    def decision(self, decision_id: str) -> Decision | None:
        for each in self._changes:
            if each.decision.id == decision_id:
                return each.decision
        return stored_decisions.decision(self.view.connection, self.view.owner, decision_id)

    def open_trades(self, account_id: str) -> list[Trade]:
        """The open trades of an account, by position."""
        trades = self._with_changes(stored.open_then(self.view, account_id), of_account=account_id)
        return sorted((trade for trade in trades if trade.status == "open"), key=lambda trade: trade.position_key or "")

    def trades_of_position(self, account_id: str, key: str, *, before: datetime) -> list[Trade]:
        """As `trades_of_position` of the store."""
        trades = stored.trades_of_position(self.view, account_id, key, before=before)
        if not self._trades:
            return trades
        changed = self._with_changes(trades, of_account=account_id)
        return stored.from_last_before((trade for trade in changed if trade.position_key == key), before)

    def fills_of_position(self, account_id: str, key: str, *, since: datetime | None) -> list[Fill]:
        """As `fills_of_position` of the store."""
        fills = stored.fills_of_position(self.view, account_id, key, since=since)
        new = (fill for fill in self._new_fills(key) if since is None or fill.at >= since)
        return self._with_new(fills, new)

    def inferred_by(self, account_id: str, key: str, at: datetime) -> list[Fill]:
        """As `inferred_by` of the store."""
        fills = stored.inferred_by(self.view, account_id, key, at)
        new = (fill for fill in self._new_fills(key) if fill.latest_at is not None and fill.latest_at >= at)
        return self._with_new(fills, new)

    def fills_by_key(self, account_id: str, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], Fill]:
        """As `fills_by_key` of the store."""
        by_key: dict[tuple[str, str], Fill | None] = {**stored.fills_by_key(self.view, account_id, keys)}
        by_key |= {key: self._fills[key] for key in keys if key in self._fills}
        return {key: fill for key, fill in by_key.items() if fill is not None}

    def renames(self, account_id: str) -> dict[str, str]:
        """As `renames` of the store."""
        new = (fill for fill in self._fills.values() if fill is not None and fill.kind == "rename")
        return stored.renames(self.view, account_id) | {fill.symbol: fill.position_key for fill in new}

    def marks_left(self, decision_id: str) -> list[PositionMark]:
        """The marks of the positions that a tick left open."""
        for each in self._changes:
            if each.decision.id == decision_id:
                return [mark for mark in each.marks if mark.look == "after"]
        return stored.marks_of_decision(self.view.connection, self.view.owner, decision_id)

    def marks_of_position(self, account_id: str, key: str, *, since: datetime) -> list[PositionMark]:
        """As `marks_of_position` of the store."""
        marks = stored.marks_of_position(self.view, account_id, key, since=since)
        return marks + [mark for each in self._changes for mark in each.marks if mark.position.position_key == key]

    def snapshot_instants(self, account_id: str, *, since: datetime, last: LastTick) -> list[datetime]:
        """As `snapshot_instants` of the store."""
        view = self.view
        return stored_decisions.snapshot_instants(view.connection, view.owner, account_id, since=since, last=last)

    def orders_placed(self, account_id: str, ids: Collection[str]) -> dict[str, PlacedOrder]:
        """As `orders_placed` of the store, as of the view."""
        view = self.view
        orders = stored_decisions.orders_placed(view.connection, view.owner, account_id, ids) if ids else {}
        then = {name: each for name, each in orders.items() if view.horizon.holds(each.known_at, each.recorded_at)}
        new = {order.order_id: order for each in self._changes for order in each.orders if order.order_id in ids}
        return new | then

    def _with_changes(self, trades: Iterable[Trade], *, of_account: str) -> list[Trade]:
        if not self._trades:
            return list(trades)
        changed = {trade.id: trade for trade in trades} | self._trades
        return [trade for trade in changed.values() if trade is not None and trade.account_id == of_account]

    def _new_fills(self, key: str) -> list[Fill]:
        return [fill for fill in self._fills.values() if fill is not None and fill.position_key == key]

    def _with_new(self, fills: list[Fill], new: Iterable[Fill]) -> list[Fill]:
        if not self._fills:
            return fills
        left = [fill for fill in fills if fill.key not in self._fills]
        return sorted([*left, *new], key=lambda fill: fill.order)
