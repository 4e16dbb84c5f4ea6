"""What the outside world must offer: each a protocol, handed in and never looked up."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from backsight.core.decision import AgentDecision, AgentInput
from backsight.core.market import Bar
from backsight.core.orders import BrokerSnapshot, Order, OrderResult

if TYPE_CHECKING:  # 40 ms of every start otherwise
    import numpy as np
    from numpy.typing import NDArray

    from backsight.core.reflection.reflector_request import ReflectorAnswer, ReflectorRequest


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """The current instant, aware and in UTC."""
        ...


class Broker(Protocol):
    """Holds an account: says what is in it, and takes orders."""

    def snapshot(self) -> BrokerSnapshot:
        """The account now, and what happened in it since the snapshot before."""
        ...

    def submit(self, order: Order) -> OrderResult:
        """What became of an order; a rejection is an answer and not an error."""
        ...


class Agent(Protocol):
    """Decides: a strategy in code, or a language model behind it."""

    def decide(self, agent_input: AgentInput) -> AgentDecision:
        """What to do at this tick; doing nothing is a decision too."""
        ...


class Feed(Protocol):
    """Tells what the market did."""

    def closed_bars(self, symbol: str, *, until: datetime) -> Sequence[Bar]:
        """The latest bars of a symbol that were closed by an instant, oldest first."""
        ...


class Reflector(Protocol):
    """Writes lessons from evidence: by rule, or with a language model."""

    @property
    def name(self) -> str:
        """What it is chosen by."""
        ...

    def reflect(self, request: "ReflectorRequest") -> "ReflectorAnswer":
        """The bullets it proposes; `Unavailable` where whoever writes them is away, slow, or talks nonsense."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors whose cosine says how near their meanings are."""

    @property
    def model(self) -> str:
        """What names its vectors: those of two models are never compared."""
        ...

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """One row a text, each of length 1."""
        ...
