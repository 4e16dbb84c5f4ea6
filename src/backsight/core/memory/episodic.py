"""Episodes: single trades, calls and inactions, with their context and outcome."""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from backsight.core.context import ContextVector
from backsight.core.ids import derive_id, digest
from backsight.core.instants import days_between
from backsight.core.portfolio import Direction, Mode
from backsight.core.quick_init import quick_init
from backsight.core.trades.trade import Outcome, Trade

EpisodeKind = Literal["trade", "call", "inaction"]


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A closed trade, a call without a position, or a deliberate inaction."""

    owner_id: str
    id: str
    kind: EpisodeKind
    trade_id: str | None = None
    deployment_id: str
    strategy_name: str
    mode: Mode
    symbol: str
    direction: Direction | None
    reason: str | None = None
    """The reason for an inaction or a call."""
    benchmark: str | None = None
    """The symbol whose return is subtracted from the return of a call; None is cash."""
    due_at: datetime | None = None
    """When the horizon of a call ends; None once it is judged, or cannot be judged."""
    not_judged: str | None = None
    """Why a call has no outcome although its horizon is over."""
    series_id: str
    """The id of the first of consecutive inactions with the same symbol and reason; else the id of the episode."""
    count: int = 1
    """The number of consecutive inactions up to this episode, inclusive."""
    context: ContextVector
    market_context: str | None = None
    entry_price: float | None = None
    exit_price: float | None = None
    pnl: float | None = None
    gross: float | None = None
    """Result before fees and funding, in the currency of the excursions."""
    outcome: Outcome | None = None
    hold_seconds: float | None = None
    size_share: float | None = None
    """Largest size at the entry price, as a share of the equity at entry."""
    risk_share: float | None = None
    """The risk as a share of the equity at entry."""
    recommended_share: float | None = None
    """The share of equity to risk that was recommended at entry."""
    mfe: float | None = None
    mae: float | None = None
    mfe_at: datetime | None = None
    mae_at: datetime | None = None
    confidence: float | None = None
    reflection: str | None = None
    tags: tuple[str, ...] = ()
    citations: tuple[str, ...] = ()
    """Passages of documents that a call rests on, like `TRADING_MANUAL.md:42-58`."""
    group_id: str | None = None
    """The group of trades that the episode belongs to: legs of one idea."""
    opened_at: datetime | None = None
    ended_at: datetime
    """When the trade was closed or the decision was made."""
    first_known_at: datetime
    """When the end first became known. Memories learn episodes in this order; a correction does not change it."""
    sequence: int = 0
    """Order among the episodes with the same `first_known_at`."""
    archived_at: datetime | None = None
    """When the owner archived the episode: recall leaves it out, ledger and statistics do not."""
    known_at: datetime
    recorded_at: datetime

    @property
    def place(self) -> tuple[datetime, int, str]:
        """The sort key of the order in which memories learn episodes."""
        return self.first_known_at, self.sequence, self.id

    @property
    def teaching(self) -> "Episode":
        """The episode without the fields that no other memory depends on.

        If two versions of an episode are equal here, no other memory has to learn the second.
        """
        return replace(
            self,
            market_context=None,
            reflection=None,
            tags=(),
            citations=(),
            archived_at=None,
            known_at=self.first_known_at,
            recorded_at=self.first_known_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """The recall of a set of episodes for a decision, recorded together with the decision."""

    owner_id: str
    episodes_hash: str
    decision_id: str
    known_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedEpisode:
    """An episode of a recalled set.

    Consecutive ticks mostly recall the same episodes, so each set is stored once, however many decisions recalled it.
    """

    owner_id: str
    episode_id: str
    episodes_hash: str
    """The hash of the ids of all episodes in the set."""


EPISODES_HASH_LENGTH = 32
"""Hexadecimal digits (128 bits): nobody finds two sets of episodes with the same hash."""


def retrieved_set(owner_id: str, episode_ids: Collection[str]) -> tuple[RetrievedEpisode, ...]:
    """The rows of a set of recalled episodes; the order and repetitions of the ids do not matter."""
    ids = sorted(set(episode_ids))
    episodes_hash = digest(ids)[:EPISODES_HASH_LENGTH]
    return tuple(RetrievedEpisode(owner_id=owner_id, episode_id=each, episodes_hash=episodes_hash) for each in ids)


STRENGTH_DAYS = 30.0


def retrieval_strength(ended_at: datetime, *, now: datetime, retrieved: int) -> float:
    """(1 + t/30)^−.5 · (1 + .1·ln(1 + n)): how fresh an episode is, t days after its end and retrieved n times.

    The strength is for display. It has no influence on ranking.

    >>> from datetime import UTC, timedelta
    >>> t0 = datetime(2026, 6, 4, tzinfo=UTC)
    >>> [round(retrieval_strength(t0, now=t0 + timedelta(days=90), retrieved=n), 3) for n in (0, 9)]
    [0.5, 0.615]
    """
    age = days_between(ended_at, now)
    return float((1.0 + age / STRENGTH_DAYS) ** -0.5 * (1.0 + 0.1 * math.log(1.0 + retrieved)))


def episode_id_of(trade_id: str) -> str:
    """The id of the episode of a trade."""
    return derive_id("episode", trade_id)


def episode_of_trade(trade: Trade) -> Episode:
    """The episode of a closed trade."""
    episode_id = episode_id_of(trade.id)
    return Episode(
        owner_id=trade.owner_id,
        id=episode_id,
        kind="trade",
        trade_id=trade.id,
        deployment_id=trade.deployment_id,
        strategy_name=trade.strategy_name,
        mode=trade.mode,
        symbol=trade.symbol,
        direction=trade.direction,
        series_id=episode_id,
        context=trade.context,
        market_context=trade.market_context,
        entry_price=trade.entry_price,
        exit_price=trade.exit_price,
        pnl=trade.pnl,
        outcome=trade.outcome,
        gross=trade.realized_pnl,
        hold_seconds=None if trade.holding_minutes is None else trade.holding_minutes * 60,
        size_share=size_share(trade),
        risk_share=risk_share(trade),
        recommended_share=trade.entry.recommended_share,
        mfe=trade.mfe,
        mae=trade.mae,
        mfe_at=trade.mfe_at,
        mae_at=trade.mae_at,
        confidence=trade.confidence,
        reflection=trade.reflection,
        tags=trade.tags,
        group_id=trade.group_id,
        opened_at=trade.opened_at,
        ended_at=trade.closed_at or trade.known_at,
        first_known_at=trade.known_at,
        known_at=trade.known_at,
        recorded_at=trade.recorded_at,
    )


def size_share(trade: Trade) -> float | None:
    """The largest size at the entry price as a share of the equity at entry; None where a part is not known."""
    equity = trade.entry.equity
    notional = trade.notional(trade.size)
    if not equity or equity < 0 or notional is None or trade.currency is not None:
        return None
    share = notional / equity
    return share if math.isfinite(share) else None


def risk_share(trade: Trade) -> float | None:
    """The risk of a trade as a share of the equity at entry; None where a part is not known."""
    equity = trade.entry.equity
    if not equity or equity < 0 or trade.risk is None or trade.currency is not None:
        return None
    share = trade.risk / equity
    return share if math.isfinite(share) else None


def resolve_call(
    call: Episode,
    *,
    entry_price: float,
    exit_price: float,
    benchmark: tuple[float, float] | None,
    known_at: datetime,
    recorded_at: datetime,
) -> Episode:
    """A call with its outcome: the return over its horizon minus the return of the benchmark, signed by the direction.

    The entry price is the price at the decision, the exit price is the price at the end of the horizon. `benchmark` is
    the same pair of prices of the benchmark.
    """
    sign = -1.0 if call.direction == "short" else 1.0
    benchmark_return = 0.0 if benchmark is None else benchmark[1] / benchmark[0] - 1.0
    excess_return = sign * (exit_price / entry_price - 1.0 - benchmark_return)
    return replace(
        call,
        entry_price=entry_price,
        exit_price=exit_price,
        outcome=Outcome(value=excess_return, unit="pct") if math.isfinite(excess_return) else None,
        hold_seconds=None if call.opened_at is None else (call.ended_at - call.opened_at).total_seconds(),
        due_at=None,
        known_at=max(call.known_at, known_at),
        recorded_at=recorded_at,
    )


def unjudged_call(call: Episode, *, why: str, known_at: datetime, recorded_at: datetime) -> Episode:
    """A call whose horizon is over and that has no outcome, with the reason."""
    return replace(call, not_judged=why, due_at=None, known_at=max(call.known_at, known_at), recorded_at=recorded_at)


def continues(latest: Episode | None, *, reason: str) -> bool:
    """Whether an inaction with a reason continues the latest episode of its symbol."""
    return latest is not None and latest.kind == "inaction" and latest.reason == reason
