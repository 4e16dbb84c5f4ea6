"""Closed and open trades: a page of them, and one with its episode."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, get_args

from pydantic import Field, TypeAdapter, ValidationError

from backsight.arguments import AsOf, Cursor, Flag, Instant, JsonObject, Key, Limit, Loose, Name, Number, SeenAt, Symbol
from backsight.core.errors import Invalid
from backsight.core.instants import Horizon
from backsight.core.instruments import same_market
from backsight.core.memory.episodic import Episode, episode_id_of
from backsight.core.portfolio import Direction, Mode, ModeChoice
from backsight.core.scope import AnswerScope
from backsight.core.trades.choices import Bounded, TradeOrder, TradeResult
from backsight.core.trades.mark import OpenResult, PositionMark, open_result
from backsight.core.trades.performance import CATEGORIES, Category
from backsight.core.trades.trade import Trade, TradeStatus
from backsight.operation import query
from backsight.services.context import Context
from backsight.services.deployments import hint_where_trades_are, resolve_scope
from backsight.services.id_prefixes import episode_known_then, trade_known_then, whole_id
from backsight.services.paging import cursor_after, instant_and_id, read_cursor
from backsight.store import memories as stored_memories
from backsight.store import trades as stored
from backsight.store.instruments import underlyings
from backsight.store.view import View

_BOUNDS: TypeAdapter[dict[Bounded, list[float]]] = TypeAdapter(
    dict[Bounded, Annotated[list[Number], Field(min_length=2, max_length=2)]]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TradePage:
    """A page of trades, and the cursor of the next page."""

    trades: tuple[Trade, ...]
    next_cursor: str | None
    total: int | None
    """The number of all trades that match; None unless `count` asks for it."""
    mode: ModeChoice
    message: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeRead:
    """One trade, its episode, and its mark at the last tick at which it was open; or a call or an inaction."""

    trade: Trade | None
    """None for a call or an inaction, which is an episode alone."""
    episode: Episode | None
    """None while the trade is open."""
    mark: PositionMark | None
    so_far: OpenResult | None
    """Result and excursions at the last mark; None for a closed trade, which has its own, and before any mark."""


@query(audience=("trader", "coach"))
def list_trades(
    ctx: Context,
    *,
    symbol: Annotated[Symbol | None, "Only in this instrument."] = None,
    strategy_name: Annotated[Name | None, "Only of this strategy."] = None,
    deployment: Annotated[Key | None, "Only of this deployment, by name or id."] = None,
    direction: Annotated[Direction | None, "Only in this direction."] = None,
    mode: Annotated[
        ModeChoice | None,
        "By default the deployment's, or the only one with trades.",
    ] = None,
    status: Annotated[TradeStatus, "Closed trades, or open trades."] = "closed",
    since: Annotated[Instant | None, "Closed (or opened, if open) from this instant on."] = None,
    until: Annotated[Instant | None, "Closed (or opened, if open) before this instant."] = None,
    result: Annotated[TradeResult | None, "Only these."] = None,
    by: Annotated[Loose | None, "A category of break_down, with `label`."] = None,
    label: Annotated[Loose | None, "A label of break_down."] = None,
    between: Annotated[JsonObject | None, 'Bounds, like {"mae_r": [-1, -0.5]}.'] = None,
    belief: Annotated[Key | None, "Only evidence of this belief, by id."] = None,
    order: Annotated[TradeOrder, "By money or time."] = "newest",
    count: Annotated[Flag, "Count all that match."] = False,
    limit: Annotated[Limit, "The most trades."] = 20,
    cursor: Annotated[Cursor | None, "The next_cursor of the previous page."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> TradePage:
    """List closed or open trades, one page at a time."""
    if (by is None) != (label is None):
        raise Invalid("give both `by` and `label`, or neither", field="label" if label is None else "by")
    horizon = ctx.horizon(as_of, seen_at)
    page_query = ctx.arguments(without=("cursor", "limit"))
    chosen = {"result": result, "by": by, "between": between, "belief": belief, "order": _unless(order, "newest")}
    is_chosen = any(value is not None for value in chosen.values())
    if is_chosen and status == "open":
        field = next(name for name, value in chosen.items() if value is not None)
        raise Invalid("is for closed trades; leave it out, or give status 'closed'", field=field)
    by_columns = is_chosen or (count and status == "closed")
    position: tuple[Any, str] | None = None
    if cursor is not None:
        position, horizon = read_cursor(cursor, _key_and_id if by_columns else instant_and_id, query=page_query)
    with ctx.reading() as connection:
        view = View(connection, ctx.owner, horizon)
        scope = resolve_scope(
            view,
            deployment=deployment,
            strategy_name=strategy_name,
            mode=None if mode == "all" else mode,
            all_modes=mode == "all",
            symbol=symbol,
        )
        spellings = None if symbol is None else underlyings(view).spellings(symbol)
        one_mode = None if mode == "all" else scope.mode
        total, after = None, None
        if by_columns:
            request = ColumnQuery(
                scope=scope,
                mode=one_mode,
                symbols=spellings,
                strategy_name=strategy_name,
                direction=direction,
                since=since,
                until=until,
                result=result,
                group=None if by is None or label is None else (_category(by), label),
                between=_bounds(between or {}),
                trade_ids=None if belief is None else _evidence(view, belief),
            )
            trades, total, after = _by_columns(ctx, view, request, order, limit, position)
        elif status == "open":
            open_trades = stored.every_open(view, strategy_name=strategy_name, mode=one_mode)
            trades = [
                trade
                for trade in open_trades
                if _is_listed(trade, scope, symbols=spellings, direction=direction, since=since, until=until)
                and (position is None or _follows(trade, position))
            ]
            total = len(trades) if position is None else None
            trades = trades[: limit + 1]
        else:
            trades = stored.trades(
                view,
                limit=limit + 1,
                before=position,
                since=since,
                until=until,
                symbol=spellings,
                strategy_name=strategy_name,
                deployment_id=None if scope.evidence_of is None else scope.evidence_of.id,
                side=direction,
                mode=one_mode,
                status=status,
            )
        message = _list_message(scope, status, order, min(len(trades), limit), total, more=len(trades) > limit)
        if spellings is not None and len(spellings) > 1:
            message = f"{message} {same_market(spellings)}"
        if not trades and status == "open":
            message = " ".join([*scope.notes, "No open trades match."])
        elif not trades:
            hint = hint_where_trades_are(view, mode=one_mode, strategy_name=strategy_name, symbol=symbol)
            message = " ".join([*scope.notes, f"No {status} trades match.", hint])
    page = tuple(trades[:limit])
    next_cursor = None
    if len(trades) > limit:
        last = page[-1]
        listed_at = last.closed_at or last.opened_at or last.known_at
        end_of_page: Sequence[datetime | float | str] = after or [listed_at, last.id]
        next_cursor = cursor_after(end_of_page, horizon, now=ctx.now, query=page_query)
    return TradePage(
        trades=page,
        next_cursor=next_cursor,
        total=total if count else None,
        mode=one_mode or "all",
        message=message,
        as_of=horizon.as_of,
    )


def _is_listed(
    trade: Trade,
    scope: AnswerScope,
    *,
    symbols: tuple[str, ...] | None,
    direction: Direction | None,
    since: datetime | None,
    until: datetime | None,
) -> bool:
    """Whether an open trade matches the filters of a list."""
    opened_at = trade.opened_at
    return (
        (scope.evidence_of is None or scope.evidence_of.id == trade.deployment_id)
        and (symbols is None or trade.symbol in symbols)
        and direction in (None, trade.direction)
        and (since is None or (opened_at is not None and opened_at >= since))
        and (until is None or (opened_at is not None and opened_at < until))
    )


def _follows(trade: Trade, position: tuple[datetime, str]) -> bool:
    """Whether an open trade comes after a position in the list, newest first."""
    at, last_id = position
    opened_at = trade.opened_at or trade.known_at
    return opened_at < at or (opened_at == at and trade.id > last_id)


def _evidence(view: View, belief: str) -> frozenset[str]:
    """The trades that are evidence for or against a belief."""
    from backsight.store.experience import BELIEFS, trades_of_belief  # few lists are about a belief

    return frozenset(trades_of_belief(view, whole_id(view.connection, view.owner, BELIEFS, belief, field="belief")))


def _category(by: str) -> Category:
    """The category of this name; `Invalid` names the categories there are."""
    category = next((each for each in CATEGORIES if each == by), None)
    if category is None:
        raise Invalid(f"{by!r} is no category; give one of {', '.join(CATEGORIES)}", field="by")
    return category


def _bounds(between: Mapping[str, Any]) -> dict[Bounded, list[float]]:
    """The bounds by the name of their number; `Invalid` if a name is unknown or there are not two numbers."""
    try:
        return _BOUNDS.validate_python(between)
    except ValidationError:
        names = ", ".join(get_args(Bounded))
        raise Invalid(f'give two numbers by name, like {{"mae_r": [-1, -0.5]}}, of {names}', field="between") from None


def _unless(order: TradeOrder, usual: TradeOrder) -> TradeOrder | None:
    return None if order == usual else order


def _key_and_id(key: float, last_id: str) -> tuple[float, str]:
    """The position in a list that is sorted by a number and id."""
    return float(key), str(last_id)


def _list_message(
    scope: AnswerScope, status: TradeStatus, order: TradeOrder, shown: int, total: int | None, *, more: bool
) -> str:
    rest = "; there are more" if more else ""
    of_all = f" of {total:,}" if total is not None and total > shown else ""
    sentence = f"{shown}{of_all} {status} trade{'' if (total or shown) == 1 else 's'}, {ORDERS[order]}{rest}."
    return " ".join([*scope.notes, sentence])


ORDERS: Mapping[TradeOrder, str] = {
    "newest": "newest first",
    "oldest": "oldest first",
    "best": "best net result first",
    "worst": "worst net result first",
    "best_r": "best outcome in R first",
    "worst_r": "worst outcome in R first",
    "longest": "longest first",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnQuery:
    """Closed trades to choose from their columns."""

    scope: AnswerScope
    mode: Mode | None
    symbols: tuple[str, ...] | None
    """The spellings of the market; None for every symbol."""
    strategy_name: str | None
    direction: Direction | None
    since: datetime | None
    until: datetime | None
    result: TradeResult | None
    group: tuple[Category, str] | None
    between: Mapping[Bounded, list[float]]
    trade_ids: frozenset[str] | None


def _by_columns(
    ctx: Context, view: View, request: ColumnQuery, order: TradeOrder, limit: int, after: tuple[float, str] | None
) -> tuple[list[Trade], int, list[float | str] | None]:
    """The first trades in an order, one more than the limit; the number of all; and the position of the last shown."""
    from backsight.core.trades.listing import first_in_order

    columns = ctx.database.trade_images.at(view)
    rows = _chosen_rows(columns, view.horizon, request)
    first = first_in_order(columns, rows, order, most=limit + 1, after=after)
    trades = stored.trades_then(view, [name for _, name in first])
    shown = [trades[name] for _, name in first if name in trades]
    last: list[float | str] | None = [*first[limit - 1]] if len(first) > limit else None
    return shown, len(rows), last


def _chosen_rows(columns: Any, horizon: Horizon, request: ColumnQuery) -> Any:
    from backsight.core.trades.columns import closed_within, known_trades
    from backsight.core.trades.figures import rows_by_label
    from backsight.core.trades.listing import with_ids, with_result, within_bounds

    deployment = request.scope.evidence_of
    rows = known_trades(
        columns,
        horizon,
        lambda group: (
            (deployment is None or group.deployment_id == deployment.id)
            and request.mode in (None, group.mode)
            and request.strategy_name in (None, group.strategy_name)
        ),
    )
    rows = closed_within(columns, rows, symbols=request.symbols, since=request.since, until=request.until)
    names = {each.id: each.name for each in request.scope.deployments}
    groups = [request.group] if request.group is not None else []
    if request.direction is not None:
        groups.append(("direction", request.direction))
    for category, label in groups:
        rows = rows_by_label(columns, rows, category, names).get(label, rows[:0])
    if request.result is not None:
        rows = with_result(columns, rows, request.result)
    if request.between:
        bounds = {name: (low, high) for name, (low, high) in request.between.items()}
        rows = within_bounds(columns, rows, bounds)
    if request.trade_ids is not None:
        rows = with_ids(columns, rows, request.trade_ids)
    return rows


@query(audience=("trader", "coach"))
def get_trade(
    ctx: Context,
    *,
    trade_id: Annotated[Key, "The id of a trade, a call or an inaction, as an answer shows it."],
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> TradeRead:
    """Get one trade with its context, its outcome and its words; an open one as it stands at its last mark.

    Calls and inactions are read by their id as well.
    """
    horizon = ctx.horizon(as_of, seen_at)
    with ctx.reading() as connection:
        view = View(connection, ctx.owner, horizon)
        episode = episode_known_then(view, trade_id)
        if episode is not None and episode.trade_id is None:
            return TradeRead(trade=None, episode=episode, mark=None, so_far=None)
        named = trade_id if episode is None or episode.trade_id is None else episode.trade_id
        trade = trade_known_then(connection, ctx.owner, named, horizon)
        mark = stored.last_mark(view, trade)
        return TradeRead(
            trade=trade,
            episode=stored_memories.episode(view, episode_id_of(trade.id)),
            mark=mark,
            so_far=open_result(trade, mark),
        )
