"""The model reflector: a language model writes the lessons, from evidence that it is given.

Nothing is imported and nothing sent before it is asked: the libraries of the providers are an extra, and take a second
to load.
"""

from dataclasses import dataclass, field

from backsight.core.errors import Unavailable
from backsight.core.reflection.reflector_request import INSTRUCTIONS, ReflectorAnswer, ReflectorRequest, write_question

TIMEOUT = 60.0
MOST_TOKENS = 8_192
"""Of an answer, thoughts included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReflector:
    """A model by its name, of a provider or behind an address."""

    model: str
    """`provider:model`; where there is a base URL, what stands before the colon says nothing."""
    base_url: str | None = None
    """Of an OpenAI-compatible server; None: the provider's own."""
    api_key: str | None = field(default=None, repr=False)
    """None: the provider's own environment variable, or no key where there is a base URL."""
    timeout: float = TIMEOUT
    """Seconds until there must be an answer, a second attempt at it included."""
    most_tokens: int = MOST_TOKENS

    @property
    def name(self) -> str:
        return "model"

    def reflect(self, asked: ReflectorRequest) -> ReflectorAnswer:
        """The bullets that the model wrote; where there is no pattern to write about, none, and nothing is sent."""
        if not asked.evidence.patterns:
            return ReflectorAnswer(
                bullets=(), model=self.model, input_tokens=0, output_tokens=0, cost_usd=0.0, seconds=0.0
            )
        try:
            from backsight.adapters.reflectors.provider import Endpoint, ask
        except ImportError as missing:
            raise Unavailable("a language model needs an extra; pip install 'backsight[models]'") from missing
        endpoint = Endpoint(model=self.model, base_url=self.base_url, api_key=self.api_key)
        return ask(
            write_question(asked),
            instructions=INSTRUCTIONS,
            endpoint=endpoint,
            timeout=self.timeout,
            most_tokens=self.most_tokens,
        )
