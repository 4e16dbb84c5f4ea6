"""Decisions: what an agent was shown at a tick, what it proposed, and what became of it."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Annotated

from backsight.core.context import ContextVector
from backsight.core.holdout import MemoryArm, memory_arm
from backsight.core.ids import ShownAsJson, derive_id, digest
from backsight.core.instants import JUST_BEFORE, format_instant
from backsight.core.market import Bar
from backsight.core.orders import BrokerSnapshot, Order
from backsight.core.portfolio import Mode, Portfolio
from backsight.core.risk_state import AttemptKind
from backsight.core.strategies import Deployment


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a proposal. Rules are the caller's risk engine's: this system remembers them."""

    kind: AttemptKind
    rule: str | None = None
    """The rule that refused, like `R3_POSITION_CAP`."""
    detail: str | None = None
    """Why nothing was done, or what the risk engine or the broker said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One part of what an agent is shown."""

    name: str
    text: str

    @property
    def hash(self) -> str:
        """SHA-256 of the text: a segment is stored once."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A section that had to give way."""

    name: str
    rows: int | None
    """How many it lost; None where it has no rows and was left out as a whole."""
    whole: bool
    """Whether nothing is left of it."""
    tokens: int
    """What that saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentTokens:
    """What a segment takes, the empty line after it included: an estimate that is never too low."""

    name: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What an agent is shown: two texts in segments, and what they take. Segments that are empty are left out."""

    system: tuple[Segment, ...] = ()
    """Who it is, how far it may go, the strategy and its lessons; what changes least comes first."""
    segments: tuple[Segment, ...] = ()
    """The message: time and market, the account, what it did lately, and what memory has to say."""
    tokens: tuple[SegmentTokens, ...] = ()
    """Of each segment, in the order in which they are read."""
    total_tokens: int = 0
    memory_tokens: int = 0
    """What memory adds to them."""
    cuts: tuple[Cut, ...] = ()
    """What had to give way to the caller's budget, in that order."""
    fits: bool = True
    """Whether all is within that budget; what never gives way may be more."""
    recalled: tuple[str, ...] = ()
    """Ids of the memories that are shown."""
    recalls: tuple[str, ...] = ()
    """Stand for the recalls that were made: give them to close_tick with the decision, or to explain_recall."""
    lessons_hash: str | None = None
    """Of the note in force, where lessons are shown."""
    citations: tuple[str, ...] = ()
    """Where the rules and incidents that are shown stand, like `TRADING_MANUAL.md:42-58`: give them to close_tick."""

    @property
    def system_text(self) -> str:
        """The system prompt as one text."""
        return "\n\n".join(segment.text for segment in self.system)

    @property
    def text(self) -> str:
        """The message as one text."""
        return "\n\n".join(segment.text for segment in self.segments)

    @property
    def memory(self) -> tuple[Segment, ...]:
        """The segments that memory adds."""
        return tuple(segment for segment in (*self.system, *self.segments) if segment.name in MEMORY)


MEMORY = ("recent_activity", "recent_trades", "open_positions", "what_usually_happens", "plans", "lessons")
"""The sections that memory adds: 2,000 tokens together."""
SYSTEM = ("header", "leash", "strategy", "lessons", "footer")
OURS = frozenset(
    {*SYSTEM, *MEMORY, "time", "portfolio", "last_decision", "rules_and_incidents", "decisions_under_review"}
)
"""Names of segments that a caller's own may not take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedTick(Prompt):
    """What memory has to say at a tick, before the agent decides."""

    decision_id: str
    deployment_id: str
    at: datetime
    sequence: int
    as_of: datetime
    """What is shown was known then: a microsecond before the tick, so that ticks of one instant see the same."""
    seen_at: datetime
    """When this store was asked."""
    memory_arm: MemoryArm
    contexts: tuple[ContextVector, ...]
    """Of every symbol asked about, as far as bars tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInput:
    """All that an agent decides on."""

    opened: OpenedTick
    portfolio: Portfolio
    marks: Mapping[str, float]
    bars: Mapping[str, Sequence[Bar]]
    """By symbol, oldest first; all of them closed by the tick."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDecision:
    """What an agent makes of a tick, and what that took."""

    order: Order | None = None
    reason: str | None = None
    """Why nothing is proposed; an order says its own reason."""
    confidence: float | None = None
    model: str | None = None
    model_parameters: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    citations: tuple[str, ...] = ()
    recalls: tuple[str, ...] = ()
    """What stands for the recalls that it was decided on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One tick as it is kept: what was shown, proposed and done, and the account before and after."""

    owner_id: str
    id: str
    deployment_id: str
    account_id: str
    strategy_id: str
    strategy_version: int | None
    mode: Mode
    sim_run_id: str | None
    at: datetime
    sequence: int
    """Order among the ticks of one instant."""
    as_of: datetime | None
    """What memory was read as of; None where it was not read."""
    seen_at: datetime | None
    memory_arm: MemoryArm
    shown_hash: str | None
    """Of everything that was shown."""
    lessons_hash: str | None
    shown: tuple[str, ...]
    """Hashes of the segments, in their order."""
    recalled: tuple[str, ...]
    proposal: Annotated[Order | None, ShownAsJson()]
    symbol: str | None
    """The proposal's."""
    reason: str | None
    """The agent's reason for the proposal."""
    confidence: float | None
    verdict: Verdict
    flatten: bool
    """A command to close everything was in force."""
    equity: float
    """After the tick."""
    day_start_equity: float
    """At the first tick of the UTC day."""
    usd_rate: float | None
    """What a unit of the account's currency was worth."""
    before: Annotated[BrokerSnapshot, ShownAsJson()]
    """The broker's snapshot before the decision, with the fills since the snapshot before that."""
    after: Annotated[BrokerSnapshot | None, ShownAsJson(none="")]
    """The broker's snapshot after the decision; None if the broker was asked only once."""
    broker_at: datetime
    """When the broker was asked for the last time."""
    model: str | None
    model_parameters: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    citations: tuple[str, ...]
    opened: tuple[str, ...]
    """Trades that it opened."""
    closed: tuple[str, ...]
    """Trades that it closed, or found closed."""
    request_digest: str
    known_at: datetime
    recorded_at: datetime

    @property
    def last_snapshot(self) -> BrokerSnapshot:
        """The broker's last snapshot of the tick, with only those fills that `before` does not have."""
        return self.after or replace(self.before, fills=())


@dataclass(frozen=True, slots=True, kw_only=True)
class LastTick:
    """The part of a decision that the next tick reads."""

    id: str
    deployment_id: str
    at: datetime
    sequence: int
    symbol: str | None
    reason: str | None
    verdict: Verdict
    broker_at: datetime
    day_start_equity: float

    @property
    def moment(self) -> tuple[datetime, int]:
        """Ticks of an account are applied in this order."""
        return self.at, self.sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """The model that decided, and what it consumed."""

    model: str | None = None
    parameters: str | None = None
    """As JSON."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRecord:
    """The prompt that an agent was shown, as its caller reports it afterwards."""

    segments: tuple[Segment, ...] | None = None
    """None: memory was not used."""
    recalled: tuple[str, ...] = ()
    """Ids of the memories in the segments."""
    lessons_hash: str | None = None
    seen_at: datetime | None = None
    """When the store was asked for the prompt; None: when the tick is recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TickReport:
    """One tick as its caller reports it: the snapshots, the proposal, the verdict and the prompt."""

    at: datetime
    sequence: int
    before: BrokerSnapshot
    after: BrokerSnapshot | None
    proposal: Order | None
    verdict: Verdict
    confidence: float | None = None
    flatten: bool = False
    usd_rate: float | None = None
    prompt: PromptRecord = PromptRecord()
    model_use: ModelUse = ModelUse()
    citations: tuple[str, ...] = ()
    sim_run_id: str | None = None
    request_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSegment:
    """The text of a segment, kept once however often it was shown."""

    owner_id: str
    hash: str
    name: str
    text: str
    known_at: datetime
    recorded_at: datetime


def shown_hash(segments: Iterable[Segment]) -> str | None:
    """What names everything that was shown; None where nothing was.

    >>> shown_hash([]) is None
    True
    >>> len(shown_hash([Segment(name="recent_activity", text="...")]))
    64
    """
    hashes = [segment.hash for segment in segments]
    return digest(hashes) if hashes else None


def decision_id(deployment_id: str, at: datetime, sequence: int) -> str:
    """The id of a tick: a replay names the same one."""
    return derive_id("decision", deployment_id, format_instant(at), sequence)


def day_start_equity(last: LastTick | None, at: datetime) -> float | None:
    """The equity at the first tick of the UTC day; None if the last tick is of an earlier day."""
    return last.day_start_equity if last is not None and last.at.date() == at.date() else None


def decision_of(
    report: TickReport, deployment: Deployment, last: LastTick | None, *, recorded_at: datetime
) -> Decision:
    """The decision that a report describes, before the ledger says which trades it opened and closed.

    `last` is the deployment's tick before this one.
    """
    at, proposal, prompt = report.at, report.proposal, report.prompt
    segments, used_memory = prompt.segments or (), prompt.segments is not None
    memory, model_use = deployment.memory, report.model_use
    last_portfolio = (report.after or report.before).portfolio
    day_start = day_start_equity(last, at)
    return Decision(
        owner_id=deployment.owner_id,
        id=decision_id(deployment.id, at, report.sequence),
        deployment_id=deployment.id,
        account_id=deployment.account_id,
        strategy_id=deployment.strategy_id,
        strategy_version=deployment.strategy_version,
        mode=deployment.mode,
        sim_run_id=report.sim_run_id,
        at=at,
        sequence=report.sequence,
        as_of=at - JUST_BEFORE if used_memory else None,
        seen_at=(prompt.seen_at or recorded_at) if used_memory else None,
        memory_arm=memory_arm(deployment.id, at, holdout=memory.holdout, enabled=memory.enabled and used_memory),
        shown_hash=shown_hash(segments),
        lessons_hash=prompt.lessons_hash,
        shown=tuple(segment.hash for segment in segments),
        recalled=prompt.recalled,
        proposal=proposal,
        symbol=None if proposal is None else proposal.symbol,
        reason=None if proposal is None else proposal.reason,
        confidence=report.confidence,
        verdict=report.verdict,
        flatten=report.flatten,
        equity=last_portfolio.equity,
        day_start_equity=report.before.portfolio.equity if day_start is None else day_start,
        usd_rate=report.usd_rate,
        before=report.before,
        after=report.after,
        broker_at=max(at, last_portfolio.at),
        model=model_use.model,
        model_parameters=model_use.parameters,
        input_tokens=model_use.input_tokens,
        output_tokens=model_use.output_tokens,
        cost=model_use.cost,
        citations=report.citations,
        opened=(),
        closed=(),
        request_digest=report.request_digest,
        known_at=at,
        recorded_at=recorded_at,
    )


def as_last(decision: Decision) -> LastTick:
    """The part of a decision that the next tick reads."""
    return LastTick(**{field.name: getattr(decision, field.name) for field in fields(LastTick)})
