"""A runner for tests that answers at once."""

from collections.abc import Callable
from dataclasses import dataclass, field

from backsight.core.agents.request import AgentAnswer, AgentRequest

__all__ = ["FakeRunner"]


@dataclass
class FakeRunner:
    """Answers every request with the same text, in a session that counts its runs."""

    text: str = "Nothing to do."
    before_answer: Callable[[], object] = tuple
    """Called before each answer, for example to let time pass."""
    requests: list[AgentRequest] = field(default_factory=list)
    """The requests received."""

    @property
    def name(self) -> str:
        return "fake"

    @property
    def keeps_sessions(self) -> bool:
        return True

    def check(self) -> None:
        """It is always installed."""

    def invoke(self, request: AgentRequest) -> AgentAnswer:
        self.requests.append(request)
        self.before_answer()
        return AgentAnswer(text=self.text, session=f"session {len(self.requests)}", model="fake")
