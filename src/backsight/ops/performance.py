"""How deployments do."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from backsight.arguments import AsOf, Key, SeenAt
from backsight.core.strategies import Deployment
from backsight.core.trades.summary import Tally, tally
from backsight.core.trades.trade import Trade
from backsight.operation import query
from backsight.services.context import Context
from backsight.services.deployments import deployment_named
from backsight.store import strategies as stored
from backsight.store import trades as stored_trades

RECENT = 30

Detail = Literal["list", "trades"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentSummary:
    """One deployment and how its closed trades ended."""

    deployment: Deployment
    tally: Tally
    recent_trades: tuple[Trade, ...]
    """The last 30, newest first, where asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployments:
    """The owner's deployments, by name."""

    deployments: tuple[DeploymentSummary, ...]
    as_of: datetime


@query(audience=("trader", "coach"))
def get_my_deployments(
    ctx: Context,
    *,
    deployment_id: Annotated[Key | None, "Only this one, by name or id."] = None,
    detail: Annotated[Detail, "'trades' adds the last 30 closed trades of each."] = "list",
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> Deployments:
    """Get your deployments, each with its number of trades, wins and net result."""
    horizon = ctx.horizon(as_of, seen_at)
    with ctx.reading() as connection:
        wanted = None if deployment_id is None else deployment_named(connection, ctx.owner, deployment_id)
        known = stored.deployments(connection, ctx.owner, horizon)
        results = stored_trades.results(ctx.view(connection, as_of, seen_at))
        shown = [each for each in known if wanted is None or each.id == wanted.id]
        recent = {
            each.id: stored_trades.trades(ctx.view(connection, as_of, seen_at), limit=RECENT, deployment_id=each.id)
            for each in shown
            if detail == "trades"
        }
    closes: dict[str, list[tuple[float, datetime]]] = {}
    for deployment, pnl, at in results:
        closes.setdefault(deployment, []).append((pnl, at))
    summaries = tuple(
        DeploymentSummary(
            deployment=each, tally=tally(closes.get(each.id, [])), recent_trades=tuple(recent.get(each.id, []))
        )
        for each in shown
    )
    return Deployments(deployments=summaries, as_of=horizon.as_of)
