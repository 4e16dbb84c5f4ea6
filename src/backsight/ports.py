"""Protocols of the outside world: clock, randomness, broker, agent, feed, models are passed in, never looked up."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # a protocol is checked before a program runs: nothing here needs them at run time
    import numpy as np
    from numpy.typing import NDArray

    from backsight.core.agents.request import AgentAnswer, AgentRequest
    from backsight.core.decision import AgentDecision, AgentInput
    from backsight.core.market import Bar
    from backsight.core.orders import BrokerSnapshot, FillMark, Order, OrderResult
    from backsight.core.reflection.reflector_request import ReflectorAnswer, ReflectorRequest


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """The current instant, aware and in UTC."""
        ...


class Randomness(Protocol):
    """Supplies random bytes that nobody can guess."""

    def random_bytes(self, count: int) -> bytes:
        """This many random bytes."""
        ...


class Broker(Protocol):
    """Holds an account, reports its state and takes orders."""

    def snapshot(self, *, since: "FillMark | None" = None) -> "BrokerSnapshot":
        """The account now, and its fills after the marked one, which is the last that the ledger has.

        The same mark may be asked for again: fills must not be lost because an answer was not recorded. Fills that are
        reported twice do no harm, so a broker that reports late may go back further. None: since the previous snapshot.
        """
        ...

    def submit(self, order: "Order") -> "OrderResult":
        """Submit an order and return its result; a rejection is a result, not an error.

        `Unavailable` if it is not known whether the order was taken: what the next snapshot shows of it decides.
        """
        ...


class Agent(Protocol):
    """Makes trading decisions: a strategy in code, or a language model."""

    def decide(self, agent_input: "AgentInput") -> "AgentDecision":
        """Decide what to do at this tick; doing nothing is a decision too."""
        ...


class Feed(Protocol):
    """Supplies market data."""

    def closed_bars(self, symbol: str, *, until: datetime) -> "Sequence[Bar]":
        """The latest bars of a symbol that closed by an instant, oldest first."""
        ...


class Reflector(Protocol):
    """Writes lessons from evidence: by rule, or with a language model."""

    @property
    def name(self) -> str:
        """The name by which it is selected."""
        ...

    def reflect(self, request: "ReflectorRequest") -> "ReflectorAnswer":
        """Propose bullets for the evidence; `Unavailable` if the writer does not answer, or answers nonsense."""
        ...


class AgentRunner(Protocol):
    """Asks an agent: a command line, or a language model."""

    @property
    def name(self) -> str:
        """The name by which it is selected."""
        ...

    @property
    def keeps_sessions(self) -> bool:
        """Whether it keeps the transcripts of its sessions itself; else it is given the earlier runs of a session."""
        ...

    def check(self) -> None:
        """Raise `Unavailable` if it is not installed."""
        ...

    def invoke(self, request: "AgentRequest") -> "AgentAnswer":
        """Ask the agent; `SessionGone` if the session cannot be resumed, `AgentFailed` if there is no answer."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors whose cosine similarity measures similarity of meaning."""

    @property
    def model(self) -> str:
        """The name of the model; vectors of two models are never compared."""
        ...

    @property
    def language(self) -> str | None:
        """The only language that the model knows well, such as 'en'; None for a model of many languages."""
        ...

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """One row of length 1 for each text."""
        ...
