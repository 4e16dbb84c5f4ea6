"""Decisions: the prompt that an agent was shown at a tick, its proposal, and the verdict."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Annotated

from backsight.core.context import ContextVector
from backsight.core.holdout import MemoryArm, memory_arm
from backsight.core.ids import ShownAsJson, derive_id, digest
from backsight.core.instants import JUST_BEFORE, format_instant
from backsight.core.market import Bar
from backsight.core.orders import BrokerSnapshot, Order, PlacedOrder
from backsight.core.portfolio import Direction, Mode, Portfolio
from backsight.core.risk_state import AttemptKind
from backsight.core.strategies import Deployment


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a proposal. Your own risk engine decides and names the rule; Backsight only records it."""

    kind: AttemptKind
    """`noop`: nothing was proposed. `rejected`: the risk engine or the broker refused. `executed`: the broker took the
    order."""
    rule: str | None = None
    """The rule that rejected the proposal, like `R3_POSITION_CAP`."""
    detail: str | None = None
    """Why nothing was proposed, or the message of the risk engine or the broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedOrder:
    """One of several orders that an agent proposes in one decision."""

    order: Order
    """The order, with its reason, and the broker's id once it has one."""
    verdict: Verdict | None = None
    """The result of this order; None: the verdict of the tick."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedOrder:
    """An order that a decision proposed, with its verdict and the share of equity that was recommended for it."""

    order: Order
    verdict: Verdict
    recommended_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A named part of a prompt."""

    name: str
    """Which part of the prompt it is, like `recent_activity`."""
    text: str
    """The part as the agent read it."""

    @property
    def hash(self) -> str:
        """SHA-256 of the text: a segment is stored once."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A section of the prompt that was shortened or left out to fit the budget."""

    name: str
    rows: int | None
    """The number of rows that were dropped; None for a section without rows, which was left out."""
    whole: bool
    """Whether the whole section was left out."""
    tokens: int
    """The tokens that were saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentTokens:
    """The tokens of a segment and of the empty line after it: an estimate that is never too low."""

    name: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The prompt of an agent: a system prompt and a message, each in segments. Empty segments are left out."""

    system: tuple[Segment, ...] = ()
    """The agent's role, the owner's protocol, the strategy and its lessons; what changes least comes first."""
    segments: tuple[Segment, ...] = ()
    """The message: time and market, the account, recent activity, and memory."""
    tokens: tuple[SegmentTokens, ...] = ()
    """The tokens of each segment, in reading order."""
    total_tokens: int = 0
    memory_tokens: int = 0
    """The tokens of the segments that memory adds."""
    cuts: tuple[Cut, ...] = ()
    """The sections that were cut to fit the caller's budget, in the order of the cuts."""
    fits: bool = True
    """Whether the prompt is within the budget; sections that are never cut may exceed it."""
    recalled: tuple[str, ...] = ()
    """Ids of the memories in the prompt."""
    recalls: tuple[str, ...] = ()
    """Handles of the recalls behind the prompt: pass them to close_tick or explain_recall."""
    lessons_hash: str | None = None
    """Hash of the active lessons note, if the prompt shows lessons."""
    citations: tuple[str, ...] = ()
    """Sources of the rules and incidents in the prompt, like `TRADING_MANUAL.md:42-58`: pass them to close_tick."""

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


MEMORY = (
    "recent_activity",
    "recent_trades",
    "open_positions",
    "what_usually_happens",
    "state",
    "plans",
    "how_you_trade",
    "lessons",
)
"""The sections that memory adds: at most 2,100 tokens together with one symbol, 3,100 with six."""
SYSTEM = ("header", "protocol", "leash", "strategy", "lessons", "footer")
OURS = frozenset(
    {*SYSTEM, *MEMORY, "time", "portfolio", "last_decision", "rules_and_incidents", "decisions_under_review"}
)
"""Names that a caller's own segments may not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedTick(Prompt):
    """The prompt of a tick, before the agent decides."""

    decision_id: str
    deployment_id: str
    at: datetime
    sequence: int
    as_of: datetime
    """Memory was read as of this instant: a microsecond before the tick, so that ticks of one instant see the same."""
    seen_at: datetime
    """When the store was asked."""
    memory_arm: MemoryArm
    contexts: tuple[ContextVector, ...]
    """The market context of each symbol, as far as there are bars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInput:
    """Everything that an agent decides on."""

    at: datetime
    """The instant of the tick."""
    open_tick: Callable[[], OpenedTick]
    """Returns the opened tick; a tick of a strategy that reads no memory is opened by the first call."""
    portfolio: Portfolio
    marks: Mapping[str, float]
    bars: Mapping[str, Sequence[Bar]]
    """Closed bars by symbol, oldest first."""

    @property
    def opened(self) -> OpenedTick:
        """The opened tick: the prompt, and what memory says about each symbol."""
        return self.open_tick()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDecision:
    """An agent's answer at a tick: no order, one or several, and what the model consumed."""

    order: Order | None = None
    further_orders: tuple[Order, ...] = ()
    """More orders of the same decision; the broker gets them after `order`, and each has its own verdict."""
    reason: str | None = None
    """Why nothing is proposed; an order has its own reason."""
    confidence: float | None = None
    model: str | None = None
    model_parameters: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    citations: tuple[str, ...] = ()
    recalls: tuple[str, ...] = ()
    """Handles of the recalls that the agent made itself."""
    response: str | None = None
    """The raw answer of the model."""

    @property
    def orders(self) -> tuple[Order, ...]:
        """Every order of the decision, in the order in which the broker gets them."""
        return (*(() if self.order is None else (self.order,)), *self.further_orders)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The record of one tick: prompt, proposal and verdict, and the account before and after."""

    owner_id: str
    id: str
    deployment_id: str
    account_id: str
    strategy_id: str
    strategy_version: int | None
    mode: Mode
    simulation_id: str | None
    at: datetime
    sequence: int
    """Order among the ticks of one instant."""
    as_of: datetime | None
    """The instant as of which memory was read; None if it was not used."""
    seen_at: datetime | None
    memory_arm: MemoryArm
    shown_hash: str | None
    """Hash of all segments together."""
    lessons_hash: str | None
    shown: tuple[str, ...]
    """Hashes of the segments, in their order."""
    recalled: tuple[str, ...]
    proposal: Annotated[Order | None, ShownAsJson()]
    """The order; of several the first one that was executed, else the first one that was rejected."""
    symbol: str | None
    """The proposal's."""
    reason: str | None
    """The agent's reason for the proposal."""
    confidence: float | None
    recommended_share: float | None
    """The share of equity to risk that `position_size` recommended for the proposal, as of right before the tick; None
    if the proposal enters nothing, and where there was no recommendation. In decisions of older stores, 0
    may stand for no recommendation, too."""
    verdict: Verdict
    flatten: bool
    """A command to close everything was in force."""
    equity: float
    """After the tick."""
    day_start_equity: float
    """At the first tick of the UTC day."""
    usd_rate: float | None
    """Dollars for one unit of the account's currency."""
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
    """Ids of the trades that were opened since the last tick or in this one."""
    closed: tuple[str, ...]
    """Ids of the trades that were closed since the last tick or in this one."""
    further_proposals: Annotated[tuple[DecidedOrder, ...], ShownAsJson()] = ()
    """The other orders of the decision, each with its own verdict."""
    response_hash: str | None = None
    """Hash of the model's raw answer, which get_decision shows; None if it was not reported."""
    equity_gap: float | None = None
    """By how much equity changed since the last tick beyond what fills, marks and transfers explain; None unless the
    difference is large, or if fills are missing."""
    request_digest: str
    """Digest of the row of a log that the tick was imported from; empty for a tick that a caller closed."""
    known_at: datetime
    recorded_at: datetime

    @property
    def proposals(self) -> tuple[DecidedOrder, ...]:
        """Every order that was proposed, the main one first."""
        if self.proposal is None:
            return ()
        share = self.recommended_share
        first = DecidedOrder(order=self.proposal, verdict=self.verdict, recommended_share=share)
        return (first, *self.further_proposals)

    @property
    def executed(self) -> tuple[Order, ...]:
        """The proposed orders that the broker carried out."""
        return tuple(each.order for each in self.proposals if each.verdict.kind == "executed")

    def share_recommended_for(self, symbol: str, direction: Direction) -> float | None:
        """The share of equity that was recommended for the order that entered a position."""
        entries = (each for each in self.proposals if (each.order.symbol, each.order.direction) == (symbol, direction))
        entry = next(entries, None)
        return None if entry is None else entry.recommended_share

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
    equity: float
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
    """One tick as its caller reports it: the snapshots, the proposals, the verdict and the prompt."""

    at: datetime
    sequence: int
    before: BrokerSnapshot
    after: BrokerSnapshot | None
    proposals: tuple[DecidedOrder, ...]
    verdict: Verdict
    """The verdict of a tick without proposals."""
    confidence: float | None = None
    flatten: bool = False
    usd_rate: float | None = None
    prompt: PromptRecord = PromptRecord()
    model_use: ModelUse = ModelUse()
    citations: tuple[str, ...] = ()
    response: str | None = None
    """The raw answer of the model."""
    simulation_id: str | None = None
    request_digest: str = ""


RESPONSE = "response"
"""The name under which the text of a model's raw answer is stored among the segments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSegment:
    """The text of a segment, stored once however often it was shown."""

    owner_id: str
    hash: str
    name: str
    text: str
    known_at: datetime
    recorded_at: datetime


def shown_hash(segments: Iterable[Segment]) -> str | None:
    """One hash of all segments of a prompt; None if there are none.

    >>> shown_hash([]) is None
    True
    >>> len(shown_hash([Segment(name="recent_activity", text="...")]))
    64
    """
    hashes = [segment.hash for segment in segments]
    return digest(hashes) if hashes else None


def decision_id(deployment_id: str, at: datetime, sequence: int) -> str:
    """The id of a tick's decision: the same for a replay of the tick."""
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
    at, prompt = report.at, report.prompt
    proposals = main_first(report.proposals)
    main = proposals[0] if proposals else None
    proposal = None if main is None else main.order
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
        simulation_id=report.simulation_id,
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
        recommended_share=None if main is None else main.recommended_share,
        verdict=report.verdict if main is None else main.verdict,
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
        further_proposals=tuple(proposals[1:]),
        response_hash=None if report.response is None else Segment(name=RESPONSE, text=report.response).hash,
        request_digest=report.request_digest,
        known_at=at,
        recorded_at=recorded_at,
    )


MAIN_FIRST: tuple[AttemptKind, ...] = ("executed", "rejected", "noop")


def main_first(proposals: Iterable[DecidedOrder]) -> list[DecidedOrder]:
    """The executed proposals, then the rejected ones, then the others; each group in the order in which they were made.

    The first one stands for the decision in lists, so that a decision with any executed order is an executed one.
    """
    return sorted(proposals, key=lambda each: MAIN_FIRST.index(each.verdict.kind))


FACTS = (
    "before",
    "after",
    "proposal",
    "further_proposals",
    "verdict",
    "confidence",
    "flatten",
    "shown",
    "recalled",
    "lessons_hash",
    "usd_rate",
    "model",
    "model_parameters",
    "input_tokens",
    "output_tokens",
    "cost",
    "citations",
    "response_hash",
    "simulation_id",
)
"""The fields of a decision that its caller reports; the others follow from them, or say when the store was asked."""


def placed_orders(decision: Decision) -> tuple[PlacedOrder, ...]:
    """The orders that a decision placed: its proposals with an order id, and new open orders on a proposal's side."""
    before = {each.id for each in decision.before.portfolio.open_orders}
    waiting = [each for each in decision.last_snapshot.portfolio.open_orders if each.id not in before]
    by_id: dict[str, Order] = {}
    orders = [order for order in decision.executed if order.quantity != 0]
    for order in orders:
        if order.order_id is not None:
            by_id.setdefault(order.order_id, order)
    for each in waiting:
        fits = [order for order in orders if each.symbol == order.symbol and each.quantity * order.quantity > 0]
        unused = [order for order in fits if order not in by_id.values()]
        same_size = [order for order in unused if order.quantity == each.quantity]
        for order in (same_size or unused or fits)[:1]:
            by_id.setdefault(each.id, order)
    return tuple(
        PlacedOrder(
            owner_id=decision.owner_id,
            account_id=decision.account_id,
            order_id=order_id,
            decision_id=decision.id,
            symbol=order.symbol,
            quantity=order.quantity,
            reason=order.reason,
            known_at=decision.known_at,
            recorded_at=decision.recorded_at,
        )
        for order_id, order in by_id.items()
    )


def different_facts(former: Decision, repeated: Decision) -> tuple[str, ...]:
    """The names of the facts in which a tick that is reported again differs from its record.

    Whether memory was used at all counts as a part of `shown`: no segments are not the same as no prompt.
    """
    names = [name for name in FACTS if getattr(former, name) != getattr(repeated, name)]
    if "shown" not in names and former.as_of != repeated.as_of:
        names.append("shown")
    return tuple(names)


def as_last(decision: Decision) -> LastTick:
    """The part of a decision that the next tick reads."""
    return LastTick(**{field.name: getattr(decision, field.name) for field in fields(LastTick)})
