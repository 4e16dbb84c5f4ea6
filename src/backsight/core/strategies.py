"""Strategies, their use of memory, and deployments: a strategy version that runs on an account."""

from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Literal, get_args

from backsight.core.errors import Invalid
from backsight.core.ids import derive_id
from backsight.core.portfolio import MODES, Direction, Mode

MANUAL = "manual"
"""The venue of the accounts for trades that are reported without a deployment, and the name of the live one."""

Leash = Literal["strict", "balanced", "adaptive"]
GuidanceMode = Literal["thesis", "rules", "hybrid"]
ReflectorKind = Literal["statistics", "model"]
LessonsShown = Literal["proven", "proven_and_watched"]
"""Which patterns an agent is shown."""
Slot = Literal["entry_timing", "sizing", "symbol_selection", "exit_timing", "regime_fit"]
CadenceKind = Literal["off", "per_n_trades", "daily"]
SLOTS: tuple[Slot, ...] = get_args(Slot)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cadence:
    """When to reflect."""

    kind: CadenceKind = "off"
    trades: int = 10
    """The number of closed trades between reflections, for `per_n_trades`."""

    def __post_init__(self) -> None:
        if self.trades < 1:
            raise Invalid(f"{self.trades} is too few trades; give 1 or more", field="trades")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guidance:
    """Instructions of the owner beyond thesis, rules and avoid; empty fields are not shown to the agent."""

    mode: GuidanceMode = "thesis"
    leash: Leash = "balanced"
    directions: tuple[Direction, ...] = ("long", "short")
    """The directions that trades may take."""
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
    """Whether the agent is shown any memory."""
    recent_trades_k: int = 10
    """The largest number of closed trades that the agent is shown."""
    holdout: float = 0.0
    """Share of days on which memory is withheld, to measure whether it helps."""
    suppressed: tuple[Slot, ...] = ()
    """Slots of the lessons that are not shown to the agent."""
    lessons: LessonsShown = "proven"
    """Whether the agent is also shown the patterns that are watched, marked as unproven."""
    cadence: CadenceKind = "off"
    """When lessons are written."""
    every_n_trades: int = 10
    """The number of trades, for the cadence `per_n_trades`."""
    reflector: ReflectorKind = "statistics"
    """What writes the lessons."""
    model: str | None = None
    """The language model that writes lessons, with its provider."""
    automatic_plans: bool = False
    """Whether the plans that beliefs and lessons propose, and the beliefs that lessons propose, are made without the
    owner's consent."""

    @property
    def when(self) -> Cadence:
        return Cadence(kind=self.cadence, trades=self.every_n_trades)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOverrides:
    """Settings of a deployment that override its strategy's; None keeps the strategy's value."""

    enabled: bool | None = None
    recent_trades_k: int | None = None
    holdout: float | None = None
    suppressed: tuple[Slot, ...] | None = None
    lessons: LessonsShown | None = None
    cadence: CadenceKind | None = None
    every_n_trades: int | None = None
    reflector: ReflectorKind | None = None
    model: str | None = None
    automatic_plans: bool | None = None


def effective_settings(memory: MemorySettings, overrides: MemoryOverrides | None = None) -> MemorySettings:
    """The settings with their overrides, slots in their order; `Invalid` if the model that writes lessons is missing.

    >>> effective_settings(MemorySettings(holdout=0.2), MemoryOverrides(suppressed=("sizing",))).holdout
    0.2
    >>> effective_settings(MemorySettings(reflector="model"))
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: memory.model: missing; name the model that is to write lessons, like 'openai:gpt-5'
    """
    values = {field.name: getattr(overrides, field.name) for field in fields(overrides)} if overrides else {}
    settings = replace(memory, **{name: value for name, value in values.items() if value is not None})
    if settings.reflector == "model" and settings.model is None:
        raise Invalid("missing; name the model that is to write lessons, like 'openai:gpt-5'", field="memory.model")
    return replace(settings, suppressed=tuple(slot for slot in SLOTS if slot in settings.suppressed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One version of a strategy; a version never changes."""

    owner_id: str
    id: str
    """The same for all versions of a name."""
    version: int
    name: str
    thesis: str | None
    rules: tuple[str, ...]
    avoid: tuple[str, ...]
    """What the owner forbids."""
    risk_per_trade: float | None
    """Share of equity that a trade without a stop risks."""
    guidance: Guidance
    memory: MemorySettings
    known_at: datetime
    recorded_at: datetime

    def same_text(self, other: "Strategy") -> bool:
        """Whether two versions have the same content."""
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
    """None if trades were reported for a strategy that was never saved."""
    account_id: str
    mode: Mode
    memory: MemorySettings
    """The strategy's settings, with the overrides of the deployment."""
    known_at: datetime
    recorded_at: datetime

    @property
    def is_manual(self) -> bool:
        """Whether it is for trades that are reported without a deployment; no other may have such a name."""
        return is_manual_name(self.name)


def manual_account_name(mode: Mode) -> str:
    """The name of the account for trades in a mode that are reported without a deployment.

    >>> manual_account_name("live"), manual_account_name("paper")
    ('manual', 'manual-paper')
    """
    return MANUAL if mode == "live" else f"{MANUAL}-{mode}"


def manual_account_id(owner: str, mode: Mode) -> str:
    """The id of the account for trades in a mode that are reported without a deployment."""
    return derive_id("account", owner, MANUAL, manual_account_name(mode))


def manual_name(strategy_name: str, mode: Mode) -> str:
    """The name of the deployment for trades that are reported without a deployment.

    >>> manual_name("VolBreakout", "live"), manual_name("VolBreakout", "sim")
    ('manual:VolBreakout', 'manual-sim:VolBreakout')
    """
    return f"{manual_account_name(mode)}:{strategy_name}"


def is_manual_name(name: str) -> bool:
    """Whether a name belongs to what is made for trades that are reported without a deployment.

    >>> is_manual_name("manual-sim:S"), is_manual_name("manual"), is_manual_name("manually")
    (True, True, False)
    """
    return name.partition(":")[0] in map(manual_account_name, MODES)


def refuse_manual_name(name: str) -> None:
    """Refuse a name that belongs to the accounts and deployments for trades that are reported without a deployment.

    >>> refuse_manual_name("manually")
    >>> refuse_manual_name("manual:S")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: name: 'manual:S' is reserved for trades without a deployment; choose another name
    """
    if is_manual_name(name):
        raise Invalid(f"{name!r} is reserved for trades without a deployment; choose another name", field="name")
