"""The performance of deployments."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from backsight.arguments import AsOf, Key, SeenAt
from backsight.core.strategies import Deployment
from backsight.core.trades.summary import Tally
from backsight.core.trades.trade import Trade
from backsight.operation import query
from backsight.services.context import Context
from backsight.services.deployments import deployment_at, deployments_at
from backsight.store import trades as stored_trades

RECENT = 30

Detail = Literal["list", "trades"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentSummary:
    """A deployment and the results of its closed trades."""

    deployment: Deployment
    tally: Tally
    recent_trades: tuple[Trade, ...]
    """The last 30 closed trades, newest first, if `detail` is `trades`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployments:
    """The owner's deployments, by name."""

    deployments: tuple[DeploymentSummary, ...]
    as_of: datetime


@query(audience=("trader", "coach"))
def get_my_deployments(
    ctx: Context,
    *,
    deployment_id: Annotated[Key | None, "Only this deployment, by name or id."] = None,
    detail: Annotated[Detail, "'trades' adds the last 30 closed trades of each deployment."] = "list",
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> Deployments:
    """Get your deployments, each with its trades, its wins and its net result."""
    from backsight.core.trades.columns import NO_TALLY, known_trades, tallies  # imports NumPy

    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        deployments = deployments_at(view) if deployment_id is None else [deployment_at(view, deployment_id)]
        columns = ctx.database.trade_images.at(view)
        recent = {
            deployment.id: stored_trades.trades(view, limit=RECENT, deployment_id=deployment.id)
            for deployment in deployments
            if detail == "trades"
        }
    ids = {deployment.id for deployment in deployments}
    rows = known_trades(columns, view.horizon, lambda group: group.deployment_id in ids)
    by_deployment = tallies(columns, rows)
    summaries = tuple(
        DeploymentSummary(
            deployment=deployment,
            tally=by_deployment.get(deployment.id, NO_TALLY),
            recent_trades=tuple(recent.get(deployment.id, [])),
        )
        for deployment in deployments
    )
    return Deployments(deployments=summaries, as_of=view.as_of)
