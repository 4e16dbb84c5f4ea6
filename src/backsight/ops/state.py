"""The agent's state: how the last results and the distance from the peak colour what it does next."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from backsight.core.errors import Conflict, Invalid
from backsight.core.ids import derive_id
from backsight.core.instants import Horizon, format_instant
from backsight.core.memory.affective import (
    MAX_DRAWDOWN,
    Closed,
    EquityPoint,
    Mood,
    MoodFact,
    MoodState,
    in_order,
    mood_of,
    state_after,
)
from backsight.core.strategies import Deployment
from backsight.ops.arguments import AsOf, Instant, Key, NotNegative, Positive, SeenAt
from backsight.ops.context import CLOCK_SKEW, Context
from backsight.ops.operation import command, query
from backsight.ops.strategies import account_named, deployment_named
from backsight.store import state as stored
from backsight.store import strategies as stored_strategies
from backsight.store.database import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentState:
    """The mood of an agent, and how many facts it rests on. It is a mood, not a probability."""

    deployment: Deployment | None
    """None where nothing was deployed yet: the mood is then the neutral one."""
    mood: Mood
    closes: int
    equity_seen: int
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEquity:
    """The equity as it is kept, and whether it was known already."""

    point: EquityPoint
    replayed: bool


@query(audience=("trader", "coach"))
def get_agent_state(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "Whose state, by name or id; the only deployment if left out."] = None,
    max_drawdown: Annotated[Positive, "The drawdown that is accepted, as a share of the peak, up to 1."] = 0.2,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> AgentState:
    """Get an agent's mood: confidence, risk appetite, drawdown and streaks, as they were at any instant.

    Read it before you size a trade. Equity and drawdown are the account's; confidence and streaks are those of the
    strategy on that account.
    """
    if max_drawdown > 1:
        raise Invalid(f"{max_drawdown} is more than all; give a share up to 1", field="max_drawdown")
    horizon = ctx.horizon(as_of, seen_at)
    with ctx.reading() as connection:
        home = _home(connection, ctx, deployment, horizon)
        if home is None:
            return AgentState(deployment=None, mood=mood_of(MoodState()), closes=0, equity_seen=0, as_of=horizon.as_of)
        closes, worth = _facts(connection, home, horizon)
    mood = _mood(closes, worth, max_drawdown=max_drawdown)
    return AgentState(deployment=home, mood=mood, closes=len(closes), equity_seen=len(worth), as_of=horizon.as_of)


@command()
def record_equity(
    ctx: Context,
    *,
    account: Annotated[Key, "The account, by name or id."],
    equity: Annotated[NotNegative, "What it is worth, in its currency."],
    at: Annotated[Instant | None, "When it was worth that; now if left out."] = None,
) -> RecordedEquity:
    """Record what an account is worth, where no tick tells it; an hour apart is often enough."""
    when = ctx.now if at is None else at
    if when > ctx.now + CLOCK_SKEW:
        raise Invalid(f"{format_instant(when)} is in the future; give when it was seen", field="at")
    with ctx.writing() as transaction:
        home = account_named(transaction.connection, ctx.owner, account)
        point = EquityPoint(
            owner_id=ctx.owner,
            id=derive_id("equity", home.id, format_instant(when)),
            account_id=home.id,
            at=when,
            equity=equity,
            known_at=when,
            recorded_at=ctx.now,
        )
        former = stored.equity_point(transaction.connection, ctx.owner, point.id)
        if former is None:
            transaction.add(stored.EQUITY, point)
            return RecordedEquity(point=point, replayed=False)
    if former.equity != equity:
        told = f"{home.name!r} was worth {former.equity} at {format_instant(when)}, as it is kept"
        raise Conflict(f"{told}; give another instant", field="equity")
    return RecordedEquity(point=former, replayed=True)


def mood_at(connection: Connection, home: Deployment, horizon: Horizon) -> Mood:
    """The mood of a deployment as it was then."""
    return _mood(*_facts(connection, home, horizon))


def _facts(connection: Connection, home: Deployment, horizon: Horizon) -> tuple[list[Closed], list[MoodFact]]:
    siblings = stored_strategies.deployments_of(connection, home.owner_id, home.account_id)
    ids = [each.id for each in siblings if each.strategy_name == home.strategy_name]
    closes = stored.closes_of(connection, home.owner_id, horizon, ids)
    return closes, stored.worth_of(connection, home.owner_id, horizon, home.account_id)


def _mood(closes: list[Closed], worth: list[MoodFact], *, max_drawdown: float = MAX_DRAWDOWN) -> Mood:
    facts = in_order([*(replace(close, known_at=close.at) for close in closes), *worth])
    return mood_of(state_after(facts), facts[-1] if facts else None, max_drawdown=max_drawdown)


def _home(connection: Connection, ctx: Context, named: str | None, horizon: Horizon) -> Deployment | None:
    """The deployment that is meant; without a name the only one there is, if there is any."""
    if named is not None:
        return deployment_named(connection, ctx.owner, named)
    there = stored_strategies.deployments(connection, ctx.owner, horizon)
    if len(there) > 1:
        names = ", ".join(repr(each.name) for each in there[:10])
        raise Invalid(f"there are several; name one of {names}", field="deployment")
    return there[0] if there else None
