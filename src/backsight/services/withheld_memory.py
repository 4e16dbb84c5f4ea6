"""Whether the memory of a deployment is withheld today, on a day of its holdout."""

from datetime import datetime, timedelta

from backsight.core.holdout import memory_arm
from backsight.core.strategies import Deployment
from backsight.store import decisions as stored_decisions
from backsight.store import strategies as stored_strategies
from backsight.store.view import View

ENDED_AFTER = timedelta(days=30)
"""A deployment that ticked before, but not for so long, has ended."""
WITHHELD = (
    "Memory is withheld today, a holdout day of this deployment: does_memory_help compares such days with others, to "
    "tell what memory brings."
)
READ_ANYWAY = "To read memory all the same, give as_of."


def withholds_memory(deployment: Deployment | None, at: datetime) -> bool:
    """Whether a deployment's memory is withheld on the day of an instant."""
    if deployment is None:
        return False
    memory = deployment.memory
    return memory_arm(deployment.id, at, holdout=memory.holdout, enabled=memory.enabled) == "withheld"


def withholds_from_queries(view: View, deployment: Deployment | None) -> bool:
    """Whether queries that name no instant are answered without a deployment's memory.

    They are on its holdout days, but not once its last tick is a month old: then there is no decision to compare, and
    the caller looks back at a simulation or at an agent that has ended.
    """
    if deployment is None or not withholds_memory(deployment, view.as_of):
        return False
    last = stored_decisions.last_of_deployment(view, deployment.id)
    return last is None or view.as_of - last.at <= ENDED_AFTER


def withholds_everywhere(view: View) -> bool:
    """Whether the memory of every deployment is withheld today; false without deployments."""
    deployments = stored_strategies.deployments(view)
    return bool(deployments) and all(withholds_from_queries(view, each) for each in deployments)
