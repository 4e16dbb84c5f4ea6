"""A language model as a runner: its transcript is kept in the store, and compacted when it is long."""

from dataclasses import dataclass, field
from importlib.util import find_spec

from backsight.core.agents.request import AgentAnswer, AgentRequest
from backsight.core.errors import Unavailable
from backsight.core.ids import derive_id


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRunner:
    """Runs agents with a language model of a provider, or of an OpenAI-compatible server."""

    model: str
    """`provider:model`; with a base URL the provider is only a label."""
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    history_tokens: int = 24_000
    """Tokens of the transcript beyond which the oldest exchanges are compacted."""
    max_tokens: int = 8_192

    @property
    def name(self) -> str:
        return "model"

    @property
    def keeps_sessions(self) -> bool:
        return False

    def check(self) -> None:
        """Raise `Unavailable` if the provider libraries are not installed."""
        if find_spec("pydantic_ai") is None:
            raise Unavailable("a language model needs an extra; pip install 'backsight[models]'", field="runner")

    def invoke(self, request: AgentRequest) -> AgentAnswer:
        """Ask the model, with the transcript of the session before the prompt."""
        self.check()
        from backsight.adapters.runners.conversation import converse

        return converse(self, request, session=derive_id("session", request.run_id))
