"""Whether the memory of a deployment is withheld today, on a day of its holdout."""

from datetime import datetime

from backsight.core.holdout import memory_arm
from backsight.core.strategies import Deployment
from backsight.store import strategies as stored_strategies
from backsight.store.view import View

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


def withholds_everywhere(view: View) -> bool:
    """Whether the memory of every deployment is withheld today; false without deployments."""
    deployments = stored_strategies.deployments(view)
    return bool(deployments) and all(withholds_memory(each, view.as_of) for each in deployments)
