"""The agent's state: its mood, what it does again and again, and whether that has changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from backsight.arguments import AsOf, Instant, Key, Name, NotNegative, Number, Positive, SeenAt, Symbol
from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.core.ids import derive_id
from backsight.core.instants import CLOCK_SKEW, Horizon, format_instant
from backsight.core.memory.affective import (
    EquityPoint,
    Mood,
    mood_from,
)
from backsight.core.memory.drift import Detector, Turn, settle
from backsight.core.memory.experience import SIZE, HabitsRecord, learn_habits
from backsight.core.memory.procedural import Habits
from backsight.core.portfolio import Account, Mode
from backsight.core.strategies import Deployment
from backsight.operation import command, query
from backsight.services.context import Context
from backsight.services.deployments import account_named, account_of, the_deployment
from backsight.services.learning import deployment_and_mode, learn_equity
from backsight.services.mood import is_current, mood_rows
from backsight.store import experience as stored_experience
from backsight.store import memories as stored_memories
from backsight.store import state as stored
from backsight.store import trades as stored_trades
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Whether a series has changed its level, and how."""

    series: str
    """'size', as a share of equity, or the unit of outcomes: 'R', 'vol' or 'pct'."""
    values: int
    """Days that the test rests on since it last began."""
    degrading: bool
    """Whether a fall in outcomes stands; sizes do not degrade."""
    turn: Turn | None
    """The latest alarm: up or down; None where there never was one."""
    at: datetime | None
    since: datetime | None
    magnitude: float | None
    """By how many standard deviations the mean has moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionShare:
    """How many closed trades are of one version of the strategy."""

    version: int | None
    trades: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Behavior:
    """How one strategy is traded in one symbol, each figure with its sample size, null below ten."""

    strategy_name: str
    symbol: str
    habits: Habits
    drift: tuple[Drift, ...]
    versions: tuple[VersionShare, ...]
    """All closed trades of the strategy in the symbol, by version: they are pooled."""
    known_at: datetime
    """When the last trade became known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BehavioralAnalysis:
    """Habits by strategy and symbol."""

    behaviors: tuple[Behavior, ...]
    mode: Mode
    message: str
    as_of: datetime


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
        home = the_deployment(connection, ctx, deployment, horizon)
        if home is None:
            return AgentState(deployment=None, mood=mood_from(None, None), closes=0, equity_seen=0, as_of=horizon.as_of)
        account, strategy = mood_rows(connection, home, horizon)
    return AgentState(
        deployment=home,
        mood=mood_from(account, strategy, max_drawdown=max_drawdown),
        closes=0 if strategy is None else strategy.n,
        equity_seen=0 if account is None else account.n,
        as_of=horizon.as_of,
    )


@query(audience=("trader", "coach"))
def get_behavioral_analysis(
    ctx: Context,
    *,
    strategy_name: Annotated[Name | None, "Only this strategy."] = None,
    symbol: Annotated[Symbol | None, "Only this instrument."] = None,
    deployment: Annotated[Key | None, "Only this deployment's strategy, by name or id."] = None,
    mode: Annotated[Mode | None, "Trades of which accounts; the deployment's, else live."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> BehavioralAnalysis:
    """Get what the agent really does: holding, timing, sizes after wins and losses, and whether results drift.

    Versions of a strategy are pooled; live, paper and simulated trades never are. A disposition effect above 0 means
    that losers are held longer than winners.
    """
    horizon = ctx.horizon(as_of, seen_at)
    with ctx.reading() as connection:
        home, within = deployment_and_mode(connection, ctx.owner, deployment, mode)
        strategy = strategy_name or (None if home is None else home.strategy_name)
        rows = habits_at(connection, ctx.owner, within, horizon, strategy=strategy, symbol=symbol)
        versions = stored_trades.versions(connection, ctx.owner, horizon, within)
    behaviors = tuple(_behavior(row, versions, now=horizon.as_of) for row in rows)
    return BehavioralAnalysis(
        behaviors=behaviors, mode=within, message=_message(behaviors, within), as_of=horizon.as_of
    )


@command()
def record_equity(
    ctx: Context,
    *,
    equity: Annotated[NotNegative, "What the account is worth, in its currency."],
    at: Annotated[Instant | None, "When it was worth that; now if left out."] = None,
    transfer: Annotated[
        Number | None, "What was paid in (positive) or out (negative) since the last look; it moves no drawdown."
    ] = None,
    deployment: Annotated[Key | None, "A deployment on the account, by name or id; the only one if left out."] = None,
    account: Annotated[Key | None, "The account itself, by name or id, instead of a deployment."] = None,
) -> RecordedEquity:
    """Record what an account is worth, where no tick tells it; an hour apart is often enough."""
    when = ctx.now if at is None else at
    if when > ctx.now + CLOCK_SKEW:
        raise Invalid(f"{format_instant(when)} is in the future; give when it was seen", field="at")
    with ctx.writing() as transaction:
        home = _account(transaction.connection, ctx, deployment, account)
        point = EquityPoint(
            owner_id=ctx.owner,
            id=derive_id("equity", home.id, format_instant(when)),
            account_id=home.id,
            at=when,
            equity=equity,
            transfer=transfer or None,
            known_at=when,
            recorded_at=ctx.now,
        )
        former = stored.equity_point(transaction.connection, ctx.owner, point.id)
        if former is None:
            transaction.add(stored.EQUITY, point)
            learn_equity(transaction, ctx.owner, home.id, point.fact, recorded_at=ctx.now)
            return RecordedEquity(point=point, replayed=False)
    if (former.equity, former.transfer) != (equity, point.transfer):
        told = f"{home.name!r} was worth {former.equity} at {format_instant(when)}, as it is kept"
        raise Conflict(f"{told}; give another instant", field="equity")
    return RecordedEquity(point=former, replayed=True)


def _account(connection: Connection, ctx: Context, deployment: str | None, account: str | None) -> Account:
    if account is not None:
        if deployment is not None:
            raise Invalid("is given beside a deployment; give one of them", field="account")
        return account_named(connection, ctx.owner, account)
    home = the_deployment(connection, ctx, deployment, Horizon(as_of=ctx.now))
    if home is None:
        raise NotFound("nothing is deployed yet; open an account and name it", field="account")
    return account_of(connection, home)


def habits_at(
    connection: Connection, owner: str, mode: Mode, horizon: Horizon, *, strategy: str | None, symbol: str | None
) -> list[HabitsRecord]:
    """Habits as they stood, from what is kept where that is of the same instant."""
    if is_current(connection, owner, horizon):
        return stored_experience.habits(connection, owner, mode, strategy_name=strategy, symbol=symbol)
    episodes = stored_memories.teaching_trades(connection, owner, horizon, mode=mode, strategy_name=strategy)
    found: list[HabitsRecord] = []
    for name in sorted({episode.strategy_name for episode in episodes}):
        own = [episode for episode in episodes if episode.strategy_name == name]
        found += learn_habits(own, owner_id=owner, mode=mode, strategy_name=name).habits
    wanted = [row for row in found if symbol in (None, row.symbol)]
    return sorted(wanted, key=lambda row: (row.strategy_name, row.symbol))


def _behavior(
    row: HabitsRecord, versions: Mapping[tuple[str, str], dict[int | None, int]], *, now: datetime
) -> Behavior:
    pooled = versions.get((row.strategy_name, row.symbol), {})
    return Behavior(
        strategy_name=row.strategy_name,
        symbol=row.symbol,
        habits=row.habits,
        drift=tuple(_drift(series, detector, now=now) for series, detector in sorted(row.drift.items())),
        versions=tuple(
            VersionShare(version=version, trades=trades)
            for version, trades in sorted(pooled.items(), key=lambda each: each[0] or 0)
        ),
        known_at=row.known_at,
    )


def _drift(series: str, detector: Detector, *, now: datetime) -> Drift:
    settled = settle(detector, now=now).detector
    latest = settled.latest
    return Drift(
        series=series,
        values=settled.past.n,
        degrading=settled.degrading and series != SIZE,
        turn=None if latest is None else latest.turn,
        at=None if latest is None else latest.at,
        since=None if latest is None else latest.since,
        magnitude=None if latest is None else latest.magnitude,
    )


def _message(behaviors: tuple[Behavior, ...], mode: Mode) -> str:
    if not behaviors:
        return f"No closed {mode} trades that fit; habits need ten."
    trades = sum(each.habits.n for each in behaviors)
    falling = [f"{each.strategy_name} in {each.symbol}" for each in behaviors if any(d.degrading for d in each.drift)]
    told = f"The last {trades} trades, by strategy and symbol; figures that rest on fewer than ten are left out."
    return f"{told} Degrading: {', '.join(falling)}." if falling else told
