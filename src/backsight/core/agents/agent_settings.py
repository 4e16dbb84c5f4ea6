"""How the agent of a deployment is run: its runner, its schedule, its prompt and its toggles."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

RunnerKind = Literal["claude", "model"]
RUNNERS: tuple[RunnerKind, ...] = get_args(RunnerKind)
TIMEOUT_SECONDS = 600
NO_TOOLS = ("none",)
"""The tools of an agent that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The settings of a deployment that its owner may change; each change is kept."""

    owner_id: str
    deployment_id: str
    runner: RunnerKind | None = None
    """None: the agent has its own loop, and Backsight cannot run it."""
    model: str | None = None
    """The language model of the runner, like `openai:gpt-5`; None: the runner's own choice."""
    default_prompt: str | None = None
    """What a heartbeat asks."""
    schedule: str | None = None
    """When heartbeats fire: a cron expression in UTC."""
    card_type: str | None = None
    """The type of the results."""
    review_decisions: bool = False
    """Whether prompts show the agent its previous decisions."""
    timeout_seconds: int = TIMEOUT_SECONDS
    """How long one invocation may take."""
    tools: tuple[str, ...] = ()
    """The operations that a model may call; empty: those that a trader is offered."""
    stopped_at: datetime | None = None
    """When the owner stopped the deployment; None: it was not stopped, or was resumed."""
    stop_reason: str | None = None
    known_at: datetime
    recorded_at: datetime
