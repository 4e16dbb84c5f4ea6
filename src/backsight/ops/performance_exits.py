"""What a plain stop and a plain target would have made of closed trades."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from backsight.arguments import AsOf, Instant, Key, Positive, SeenAt, Symbol
from backsight.core.portfolio import Mode
from backsight.core.text.counts import count_of
from backsight.operation import query
from backsight.services.context import Context
from backsight.services.deployments import resolve_scope
from backsight.store.instruments import underlyings


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedExits:
    """Mean outcomes in R with 90% intervals: as trades were closed, and with a plain stop and target."""

    stop_r: float
    target_r: float
    n: int
    """Trades with an outcome in R of which both excursions are known."""
    unknown: int
    stopped: int
    reached: int
    both: int
    """Trades that reached stop and target; which came first is not known, and they count as stopped."""
    actual_mean: float | None
    actual_interval: tuple[float, float] | None
    plain_mean: float | None
    plain_interval: tuple[float, float] | None
    difference: float | None
    difference_interval: tuple[float, float] | None
    mode: Mode
    message: str
    as_of: datetime


@query(audience=("coach",))
def compare_exits(
    ctx: Context,
    *,
    stop_r: Annotated[Positive, "The distance of the stop in R."] = 1.0,
    target_r: Annotated[Positive, "The distance of the target in R."] = 2.0,
    deployment: Annotated[Key | None, "Only this deployment, by name or id."] = None,
    symbol: Annotated[Symbol | None, "Only this instrument."] = None,
    mode: Annotated[Mode | None, "By default the deployment's, or the only one with trades."] = None,
    since: Annotated[Instant | None, "Only trades closed at or after this instant."] = None,
    until: Annotated[Instant | None, "Only trades closed before this instant."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> ComparedExits:
    """Compare the exits of closed trades with a plain stop and target, from how far each trade went either way.

    A trade that went through both counts as stopped. One that reached neither ends as it did. Costs of the
    exits are not counted, and prices may gap beyond a stop: read the difference as an upper bound.
    """
    from backsight.core.trades.columns import closed_within, known_trades
    from backsight.core.trades.plain_exits import plain_exits

    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        scope = resolve_scope(view, deployment=deployment, mode=mode, symbol=symbol)
        spellings = None if symbol is None else underlyings(view).spellings(symbol)
        own = {each.id for each in scope.deployments if each.mode == scope.mode}
        columns = ctx.database.trade_images.at(view)
    rows = known_trades(columns, view.horizon, lambda group: group.deployment_id in own)
    rows = closed_within(columns, rows, symbols=spellings, since=since, until=until)
    figures = plain_exits(columns, rows, stop_r=stop_r, target_r=target_r)
    sentence = (
        f"{count_of(figures.n, 'trade')} with known excursions: {figures.stopped} would have been stopped, of which"
        f" {figures.both} reached the target too, and {figures.reached} would have reached the target."
        if figures.n
        else "No closed trade has an outcome in R with both excursions known; bars or ticks during a trade give them."
    )
    left_out = f" {count_of(figures.unknown, 'trade')} left out." if figures.unknown and figures.n else ""
    return ComparedExits(
        stop_r=stop_r,
        target_r=target_r,
        n=figures.n,
        unknown=figures.unknown,
        stopped=figures.stopped,
        reached=figures.reached,
        both=figures.both,
        actual_mean=figures.actual_mean,
        actual_interval=figures.actual_interval,
        plain_mean=figures.plain_mean,
        plain_interval=figures.plain_interval,
        difference=figures.difference,
        difference_interval=figures.difference_interval,
        mode=scope.mode,
        message=" ".join([*scope.notes, sentence + left_out]),
        as_of=view.as_of,
    )
