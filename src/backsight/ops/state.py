"""Operations on the agent's state: its mood, its habits, and whether its results drift."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from backsight.arguments import AsOf, Instant, Key, Name, NotNegative, Number, Positive, SeenAt, Symbol
from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.core.ids import derive_id
from backsight.core.instants import CLOCK_SKEW, format_instant
from backsight.core.memory.affective import EquityPoint, Mood
from backsight.core.memory.drift import Detector, Turn, settle
from backsight.core.memory.experience import SIZE, HabitsRecord
from backsight.core.memory.mood_series import mood_from
from backsight.core.memory.procedural import Habits
from backsight.core.portfolio import Account, Mode
from backsight.core.strategies import Deployment
from backsight.operation import command, query
from backsight.services.context import Context
from backsight.services.deployments import account_named, account_of, deployment_and_mode, the_deployment
from backsight.services.habit_learning import habits_at
from backsight.services.learning import learn_equity
from backsight.services.mood import mood_rows
from backsight.store import state as stored
from backsight.store import trades as stored_trades
from backsight.store.database import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentState:
    """The mood of an agent, and how many facts it rests on. The mood is not a probability."""

    deployment: Deployment | None
    """None where nothing is deployed yet; the mood is then neutral."""
    mood: Mood
    closes: int
    equity_seen: int
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEquity:
    """The equity as it is stored, and whether an earlier call stored it."""

    point: EquityPoint
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Whether the level of a series has changed, and how."""

    series: str
    """`size` (as a share of equity), or the unit of a series of outcomes: `R`, `vol` or `pct`."""
    values: int
    """How many days the test has seen since it last began."""
    degrading: bool
    """Whether outcomes have fallen and not recovered; always false for sizes."""
    turn: Turn | None
    """The direction of the latest alarm; None where there was no alarm."""
    at: datetime | None
    since: datetime | None
    magnitude: float | None
    """By how many standard deviations the mean moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionShare:
    """How many closed trades one version of the strategy made."""

    version: int | None
    trades: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Behavior:
    """How one strategy is traded in one symbol; a figure with fewer than ten trades is null."""

    strategy_name: str
    symbol: str
    habits: Habits
    drift: tuple[Drift, ...]
    versions: tuple[VersionShare, ...]
    """The closed trades of the strategy in the symbol by version; the habits pool all versions."""
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
    deployment: Annotated[Key | None, "The deployment, by name or id; the only deployment if left out."] = None,
    max_drawdown: Annotated[Positive, "The largest accepted drawdown, as a share."] = 0.2,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> AgentState:
    """Get an agent's mood as of any instant: confidence, risk appetite, drawdown and streaks.

    Read it before you size a trade. Equity and drawdown belong to the account. Confidence and streaks belong to the
    strategy on that account.
    """
    if max_drawdown > 1:
        raise Invalid(f"{max_drawdown} is more than the whole peak; give a share up to 1", field="max_drawdown")
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        target = the_deployment(ctx, view, deployment)
        if target is None:
            return AgentState(deployment=None, mood=mood_from(None, None), closes=0, equity_seen=0, as_of=view.as_of)
        account, strategy = mood_rows(view, target)
    return AgentState(
        deployment=target,
        mood=mood_from(account, strategy, max_drawdown=max_drawdown),
        closes=0 if strategy is None else strategy.n,
        equity_seen=0 if account is None else account.n,
        as_of=view.as_of,
    )


@query(audience=("trader", "coach"))
def get_behavioral_analysis(
    ctx: Context,
    *,
    strategy_name: Annotated[Name | None, "Only this strategy."] = None,
    symbol: Annotated[Symbol | None, "Only this instrument."] = None,
    deployment: Annotated[Key | None, "Only the strategy of this deployment, by name or id."] = None,
    mode: Annotated[Mode | None, "Live, paper or simulated trades; the deployment's mode, else live."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> BehavioralAnalysis:
    """Get the agent's habits: holding times, timing, sizes after wins and losses, and whether results drift.

    Versions of a strategy are pooled; live, paper and simulated trades are not. A disposition effect above 0 means that
    losers are held longer than winners.
    """
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        target, within = deployment_and_mode(connection, ctx.owner, deployment, mode)
        strategy = strategy_name or (None if target is None else target.strategy_name)
        rows = habits_at(view, within, strategy_name=strategy, symbol=symbol)
        versions = stored_trades.version_counts(view, within)
    behaviors = tuple(_behavior(row, versions, now=view.as_of) for row in rows)
    return BehavioralAnalysis(behaviors=behaviors, mode=within, message=_message(behaviors, within), as_of=view.as_of)


@command()
def record_equity(
    ctx: Context,
    *,
    equity: Annotated[NotNegative, "What the account is worth, in its currency."],
    at: Annotated[Instant | None, "When the account was worth that; now if left out."] = None,
    transfer: Annotated[
        Number | None, "What was paid in (positive) or out (negative) since the last equity; it changes no drawdown."
    ] = None,
    deployment: Annotated[Key | None, "A deployment on the account, by name or id; the only one if left out."] = None,
    account: Annotated[Key | None, "The account itself, by name or id, instead of a deployment."] = None,
) -> RecordedEquity:
    """Record what an account is worth, for accounts that no tick reports; once an hour is enough."""
    when = ctx.now if at is None else at
    if when > ctx.now + CLOCK_SKEW:
        raise Invalid(f"{format_instant(when)} is in the future; give the time of the equity", field="at")
    with ctx.writing() as transaction:
        target = _find_account(transaction.connection, ctx, deployment, account)
        point = EquityPoint(
            owner_id=ctx.owner,
            id=derive_id("equity", target.id, format_instant(when)),
            account_id=target.id,
            at=when,
            equity=equity,
            transfer=transfer or None,
            known_at=when,
            recorded_at=ctx.now,
        )
        former = stored.equity_point(transaction.connection, ctx.owner, point.id)
        if former is None:
            transaction.add(stored.EQUITY, point)
            learn_equity(transaction, ctx.owner, target.id, point.fact, recorded_at=ctx.now)
            return RecordedEquity(point=point, replayed=False)
    if (former.equity, former.transfer) != (equity, point.transfer):
        stored_equity = f"{target.name!r} already has the equity {former.equity} at {format_instant(when)}"
        raise Conflict(f"{stored_equity}; give another instant", field="equity")
    return RecordedEquity(point=former, replayed=True)


def _find_account(connection: Connection, ctx: Context, deployment: str | None, account: str | None) -> Account:
    if account is not None:
        if deployment is not None:
            raise Invalid("a deployment is given too; give one of the two", field="account")
        return account_named(connection, ctx.owner, account)
    target = the_deployment(ctx, ctx.view(connection), deployment)
    if target is None:
        raise NotFound("there is no deployment yet; open an account and give its name", field="account")
    return account_of(connection, target)


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
        return f"No closed {mode} trades match; habits need ten."
    trades = sum(each.habits.n for each in behaviors)
    falling = [f"{each.strategy_name} in {each.symbol}" for each in behaviors if any(d.degrading for d in each.drift)]
    message = f"The last {trades} trades, by strategy and symbol; figures that rest on fewer than ten are left out."
    return f"{message} Degrading: {', '.join(falling)}." if falling else message
