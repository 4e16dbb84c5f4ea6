"""Strategies and deployments: an authored way to trade, what its agent is shown of memory, and where it runs."""

from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Literal, get_args

from backsight.core.errors import Invalid
from backsight.core.portfolio import Mode

MANUAL = "manual"

Leash = Literal["strict", "balanced", "adaptive"]
GuidanceMode = Literal["thesis", "rules", "hybrid"]
ReflectorKind = Literal["statistics", "model"]
Proposals = Literal["ask", "accept"]
"""Whether plans and beliefs that lessons propose wait for the owner."""
Slot = Literal["entry_timing", "sizing", "symbol_selection", "exit_timing", "regime_fit"]
CadenceKind = Literal["off", "per_n_trades", "daily"]
SLOTS: tuple[Slot, ...] = get_args(Slot)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cadence:
    """How often to reflect."""

    kind: CadenceKind = "off"
    trades: int = 10
    """How many must have closed, for `per_n_trades`."""

    def __post_init__(self) -> None:
        if self.trades < 1:
            raise Invalid(f"{self.trades} is too few trades; give 1 or more", field="trades")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guidance:
    """What the owner says beyond thesis, rules and avoid; what is left out is not shown."""

    mode: GuidanceMode = "thesis"
    leash: Leash = "balanced"
    horizon: str | None = None
    style: str | None = None
    look_for: tuple[str, ...] = ()
    sizing: str | None = None
    entry_rules: tuple[str, ...] = ()
    exit_rules: tuple[str, ...] = ()
    risk_rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """How a strategy uses memory."""

    enabled: bool = True
    """Whether the agent is shown memory at all."""
    recent_trades_k: int = 10
    """How many closed trades it is shown at most."""
    holdout: float = 0.0
    """Share of the days on which memory is withheld, so that its worth can be told."""
    suppressed: tuple[Slot, ...] = ()
    """Slots of the lessons that are not shown."""
    cadence: CadenceKind = "off"
    """When lessons are written."""
    every_n_trades: int = 10
    """For the cadence `per_n_trades`."""
    reflector: ReflectorKind = "statistics"
    """What writes them."""
    model: str | None = None
    """Which language model, with its provider."""
    proposals: Proposals = "ask"

    @property
    def when(self) -> Cadence:
        return Cadence(kind=self.cadence, trades=self.every_n_trades)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOverrides:
    """What a deployment sets otherwise than its strategy; None: as the strategy has it."""

    enabled: bool | None = None
    recent_trades_k: int | None = None
    holdout: float | None = None
    suppressed: tuple[Slot, ...] | None = None
    cadence: CadenceKind | None = None
    every_n_trades: int | None = None
    reflector: ReflectorKind | None = None
    model: str | None = None
    proposals: Proposals | None = None


def settled(memory: MemorySettings, overrides: MemoryOverrides | None = None) -> MemorySettings:
    """The settings that hold, slots in their order; a model that is to write lessons must be named.

    >>> settled(MemorySettings(holdout=0.2), MemoryOverrides(suppressed=("sizing",))).holdout
    0.2
    >>> settled(MemorySettings(reflector="model"))
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: memory.model: missing; name the model that is to write lessons, like 'openai:gpt-5'
    """
    told = {field.name: getattr(overrides, field.name) for field in fields(overrides)} if overrides else {}
    held = replace(memory, **{name: value for name, value in told.items() if value is not None})
    if held.reflector == "model" and held.model is None:
        raise Invalid("missing; name the model that is to write lessons, like 'openai:gpt-5'", field="memory.model")
    return replace(held, suppressed=tuple(slot for slot in SLOTS if slot in held.suppressed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One version of a way to trade; a version never changes."""

    owner_id: str
    id: str
    """The same for all versions of a name."""
    version: int
    name: str
    thesis: str | None
    rules: tuple[str, ...]
    avoid: tuple[str, ...]
    """What the owner forbids: the only "never"."""
    risk_per_trade: float | None
    """Share of equity that a trade puts at stake where no stop says so."""
    guidance: Guidance
    memory: MemorySettings
    known_at: datetime
    recorded_at: datetime

    def same_text(self, other: "Strategy") -> bool:
        """Whether two versions say the same."""
        return replace(self, version=0, known_at=other.known_at, recorded_at=other.recorded_at) == replace(
            other, version=0
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One strategy version running against one account."""

    owner_id: str
    id: str
    name: str
    strategy_id: str
    strategy_name: str
    strategy_version: int | None
    """None where trades are remembered for a strategy that was never saved."""
    account_id: str
    mode: Mode
    memory: MemorySettings
    """As the strategy has it, or as was set when it was deployed."""
    known_at: datetime
    recorded_at: datetime


def manual_name(strategy_name: str) -> str:
    """The deployment that holds the trades remembered for a strategy without naming one.

    >>> manual_name("VolBreakout")
    'manual:VolBreakout'
    """
    return f"{MANUAL}:{strategy_name}"
