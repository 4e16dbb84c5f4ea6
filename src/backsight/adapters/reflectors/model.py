"""The model reflector: a language model writes lessons from the evidence.

The provider libraries are an optional extra and take a second to import, so they are imported on the first call.
"""

from dataclasses import dataclass, field

from backsight.core.errors import Unavailable
from backsight.core.reflection.reflector_request import INSTRUCTIONS, ReflectorAnswer, ReflectorRequest, write_question

TIMEOUT = 60.0
MAX_TOKENS = 8_192
"""Of an answer, including reasoning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReflector:
    """A language model of a provider, or of an OpenAI-compatible server."""

    model: str
    """`provider:model`; with a base URL the provider is only a label."""
    base_url: str | None = None
    """The address of an OpenAI-compatible server; None for the provider's own."""
    api_key: str | None = field(default=None, repr=False)
    """None for the key in the provider's environment variable, or for no key if there is a base URL."""
    timeout: float = TIMEOUT
    """Seconds for the whole call, including a second attempt."""
    max_tokens: int = MAX_TOKENS

    @property
    def name(self) -> str:
        return "model"

    def reflect(self, request: ReflectorRequest) -> ReflectorAnswer:
        """Ask the model for bullets. Without patterns nothing is sent and the answer is empty."""
        if not request.evidence.patterns:
            return ReflectorAnswer(
                bullets=(), model=self.model, input_tokens=0, output_tokens=0, cost_usd=0.0, seconds=0.0
            )
        try:
            from backsight.adapters.reflectors.provider import Endpoint, ask
        except ImportError as missing:
            raise Unavailable("a language model needs an extra; pip install 'backsight[models]'") from missing
        endpoint = Endpoint(model=self.model, base_url=self.base_url, api_key=self.api_key)
        return ask(
            write_question(request),
            instructions=INSTRUCTIONS,
            endpoint=endpoint,
            timeout=self.timeout,
            max_tokens=self.max_tokens,
        )
