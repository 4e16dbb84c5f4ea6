"""Operations on the agent's state: its mood, its habits, and whether its results drift."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from backsight.arguments import AsOf, Instant, Key, Name, NotNegative, Number, Positive, SeenAt, Symbol
from backsight.core.errors import Conflict, Invalid
from backsight.core.ids import derive_id
from backsight.core.instants import format_instant
from backsight.core.memory.affective import EquityPoint, Mood
from backsight.core.memory.mood_series import MoodRow, mood_from
from backsight.core.portfolio import Mode
from backsight.core.scope import AnswerScope
from backsight.core.strategies import Deployment
from backsight.core.text.counts import count_of
from backsight.operation import command, query
from backsight.services.behavior import Behavior, StrategyDrift, behaviors_at, strategy_drifts_at
from backsight.services.context import Context
from backsight.services.deployments import hint_where_trades_are, reporting_account, resolve_scope
from backsight.services.instant_bounds import check_not_future
from backsight.services.learning import learn_equity
from backsight.services.mood import manual_account_row, mood_rows
from backsight.store import state as stored


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentState:
    """The mood of one deployment, and how many facts it rests on."""

    deployment: Deployment
    mood: Mood
    closes: int
    equity_seen: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentState:
    """The mood of an agent, and how many facts it rests on. The mood is not a probability."""

    deployment: Deployment | None
    """None where nothing is deployed yet or where there are several; the mood is then neutral."""
    mood: Mood
    closes: int
    equity_seen: int
    each: tuple[DeploymentState, ...]
    """The mood of every deployment, if there are several and none is named; that of the only one is above."""
    message: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEquity:
    """The equity as it is stored, and whether an earlier call stored it."""

    point: EquityPoint
    replayed: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BehavioralAnalysis:
    """Habits by strategy and symbol, and the drift of each strategy as a whole."""

    behaviors: tuple[Behavior, ...]
    strategies: tuple[StrategyDrift, ...]
    mode: Mode
    message: str
    as_of: datetime


@query(audience=("trader", "coach"))
def get_agent_state(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "The deployment, by name or id; else the only one, or each."] = None,
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
        scope = resolve_scope(view, deployment=deployment)
        rows = {each: mood_rows(view, each) for each in scope.deployments}
        account, strategy = (None, None) if scope.deployment is None else rows[scope.deployment]
        if not rows:
            account = manual_account_row(view)
    states = tuple(
        DeploymentState(
            deployment=each,
            mood=mood_from(*pair, max_drawdown=max_drawdown),
            closes=_count(pair[1]),
            equity_seen=_count(pair[0]),
        )
        for each, pair in rows.items()
    )
    return AgentState(
        deployment=scope.deployment,
        mood=mood_from(account, strategy, max_drawdown=max_drawdown),
        closes=_count(strategy),
        equity_seen=_count(account),
        each=states if len(states) > 1 else (),
        message=_state_message(scope, _count(strategy), _count(account)),
        as_of=view.as_of,
    )


def _count(row: MoodRow | None) -> int:
    return 0 if row is None else row.n


def _state_message(scope: AnswerScope, closes: int, equity_seen: int) -> str:
    sentences = [*scope.deployment_notes]
    if scope.deployment is None and scope.deployments:
        sentences.append(f"{len(scope.deployments)} deployments, each with its mood; name one to see it alone.")
    elif scope.neutral_because is not None and not equity_seen:
        sentences.append(scope.neutral_because)
    else:
        trades, readings = count_of(closes, "closed trade"), count_of(equity_seen, "reading")
        sentences.append(f"After {trades} and {readings} of the account's equity.")
    if (scope.deployment is not None or not scope.deployments) and not equity_seen:
        sentences.append("Drawdown is not known before record_equity or a tick gives the equity.")
    return " ".join(sentences)


@query(audience=("trader", "coach"))
def get_behavioral_analysis(
    ctx: Context,
    *,
    strategy_name: Annotated[Name | None, "Only this strategy."] = None,
    symbol: Annotated[Symbol | None, "Only this instrument."] = None,
    deployment: Annotated[Key | None, "Only the strategy of this deployment, by name or id."] = None,
    mode: Annotated[Mode | None, "By default the deployment's, or the only one with trades."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> BehavioralAnalysis:
    """Get the agent's habits: holding times, timing, sizes after wins and losses, and whether results drift.

    Versions of a strategy are pooled; modes are not. Each habit has its 90% interval, and a sentence only where chance
    seldom makes so much. A disposition effect above 0 means that losers are held longer than winners.
    """
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        scope = resolve_scope(view, deployment=deployment, strategy_name=strategy_name, mode=mode, symbol=symbol)
        strategy = strategy_name or (None if deployment is None else scope.strategy_name)
        behaviors = behaviors_at(ctx, view, scope.mode, strategy_name=strategy, symbol=symbol)
        strategies = strategy_drifts_at(view, scope.mode, (each.strategy_name for each in behaviors))
        hint = ""
        if not behaviors:
            hint = hint_where_trades_are(view, mode=scope.mode, strategy_name=strategy, symbol=symbol)
    message = " ".join([*scope.notes, _message(behaviors, strategies, scope.mode, hint)])
    return BehavioralAnalysis(
        behaviors=behaviors, strategies=strategies, mode=scope.mode, message=message, as_of=view.as_of
    )


@command(audience=("trader",))
def record_equity(
    ctx: Context,
    *,
    equity: Annotated[NotNegative, "What the account is worth, in its currency."],
    at: Annotated[Instant | None, "When the account was worth that; now if left out."] = None,
    transfer: Annotated[
        Number | None, "What was paid in (positive) or out (negative) since the last equity; it changes no drawdown."
    ] = None,
    deployment: Annotated[
        Key | None, "A deployment on the account, by name or id; by default the account of all deployments."
    ] = None,
    account: Annotated[Key | None, "The account itself, by name or id, instead of a deployment."] = None,
) -> RecordedEquity:
    """Record what an account is worth, for accounts that no tick reports; once an hour is enough."""
    with ctx.writing() as transaction:
        when = ctx.now if at is None else at
        check_not_future(ctx, when, field="at")
        target = reporting_account(transaction, ctx, deployment=deployment, account=account)
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
            message = f"Recorded for the account {target.name!r} ({target.mode})."
            return RecordedEquity(point=point, replayed=False, message=message)
    if (former.equity, former.transfer) != (equity, point.transfer):
        stored_equity = f"{target.name!r} already has the equity {former.equity} at {format_instant(when)}"
        raise Conflict(f"{stored_equity}; give another instant", field="equity")
    message = f"Already recorded for the account {target.name!r}; nothing was changed."
    return RecordedEquity(point=former, replayed=True, message=message)


def _message(behaviors: tuple[Behavior, ...], strategies: tuple[StrategyDrift, ...], mode: Mode, hint: str) -> str:
    if not behaviors:
        return f"No closed {mode} trades match. {hint}"
    trades = sum(each.habits.n for each in behaviors)
    falling = [f"{each.strategy_name} in all symbols" for each in strategies if any(d.degrading for d in each.drift)]
    falling += [f"{each.strategy_name} in {each.symbol}" for each in behaviors if any(d.degrading for d in each.drift)]
    total = "1 trade" if trades == 1 else f"The last {trades:,} trades"
    message = f"{total}, by strategy and symbol; figures that rest on fewer than ten are left out."
    if not any(each.sentences for each in behaviors):
        message = f"{message} No habit is larger than chance makes it."
    return f"{message} Degrading: {', '.join(falling)}." if falling else message
