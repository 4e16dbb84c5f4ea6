"""What a runner is given and what it answers: the prompt, the session, the tools; the text and the newest session."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from backsight.core.errors import Unavailable


class AgentFailed(Unavailable):
    """The agent gave no answer that can be used."""


class SessionGone(AgentFailed):
    """The session cannot be resumed: start a fresh one."""


class RunCancelled(AgentFailed):
    """The run was cancelled before the agent answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTool:
    """An operation that a model may call."""

    name: str
    description: str
    schema: Mapping[str, Any]
    call: Callable[[Mapping[str, Any]], str]
    """Takes the arguments; the answer, or the error, as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """An earlier run of the same session."""

    prompt: str
    output: str
    transcript: str | None


def no_text(_text: str) -> None:
    """The default: nobody reads along."""


def never() -> bool:
    """The default: the run is not cancelled."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """One invocation of an agent."""

    run_id: str
    prompt: str
    system: str
    session: str | None = None
    """The session to resume; None: start fresh."""
    history: tuple[Exchange, ...] = ()
    """The earlier runs of the session, oldest first, for runners that keep no transcript themselves."""
    timeout: float
    tools: tuple[AgentTool, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that tell the tools of a program which store to use."""
    on_text: Callable[[str], None] = no_text
    """Receives the answer piece by piece."""
    is_cancelled: Callable[[], bool] = never

    @property
    def streams(self) -> bool:
        """Whether somebody reads the answer while it is written."""
        return self.on_text is not no_text


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAnswer:
    """What an agent answered."""

    text: str
    session: str | None = None
    """The session to resume next."""
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    transcript: str | None = None
