"""The performance of deployments and strategies: figures with their intervals, by category, and the equity by day."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Literal

from backsight.arguments import AsOf, Instant, Key, Limit, Name, SeenAt, Symbol
from backsight.core.errors import Invalid
from backsight.core.instruments import same_market
from backsight.core.portfolio import Mode
from backsight.core.reflection.notes import NoteView
from backsight.core.strategies import Deployment
from backsight.core.text.counts import count_of
from backsight.core.trades.performance import (
    Category,
    Drawdown,
    EquityDay,
    FiguresOfGroup,
    Performance,
)
from backsight.core.trades.summary import Tally
from backsight.core.trades.trade import Trade
from backsight.operation import query
from backsight.services.agent_settings import settings_of
from backsight.services.context import Context
from backsight.services.deployments import (
    chosen_deployment,
    deployment_at,
    deployments_at,
    hint_where_trades_are,
    resolve_scope,
)
from backsight.services.performance import KnownTrades, equity_of, performance_of
from backsight.store import notes as stored_notes
from backsight.store import state as stored_state
from backsight.store import strategies as stored_strategies
from backsight.store import trades as stored_trades
from backsight.store.instruments import underlyings
from backsight.store.view import View

RECENT = 30
DAY = timedelta(days=1)
NEVER_WITHHELD = "Whether memory helps is not known: it was never withheld (memory.holdout of the deployment)."

DeploymentParts = Literal["list", "trades", "lessons", "full"]
StrategyParts = Literal["summary", "trades", "lessons", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentSummary:
    """A deployment and the results of its closed trades."""

    deployment: Deployment
    stopped_at: datetime | None
    """When the owner stopped it; None: it runs."""
    stop_reason: str | None
    tally: Tally
    performance: Performance
    memory_help: str | None
    """Whether memory helps, in one line, if `detail` is `full`."""
    activity: str | None
    """Rejections, executed orders, today's result and losing streaks, if `detail` is `full`."""
    recent_trades: tuple[Trade, ...]
    """The last 30 closed trades, newest first, if `detail` is `trades` or `full`."""
    lessons: NoteView | None
    """The lessons in force, with their window and number of trades, if `detail` is `lessons` or `full`.

    None too on a day on which the deployment's memory is withheld.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployments:
    """The owner's deployments, by name."""

    deployments: tuple[DeploymentSummary, ...]
    message: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyPerformance:
    """The results of a strategy in one mode, over all its deployments."""

    strategy_name: str
    mode: Mode
    deployments: tuple[str, ...]
    """Their names."""
    performance: Performance
    memory_help: str
    """Whether memory helps, in one line."""
    recent_trades: tuple[Trade, ...]
    """The last 30 closed trades, newest first, if `detail` is `trades` or `full`."""
    lessons: tuple[NoteView, ...]
    """The lessons in force of its deployments, if `detail` is `lessons` or `full`."""
    message: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenDown:
    """The results of trades by the labels of a category, most trades first."""

    by: Category
    groups: tuple[FiguresOfGroup, ...]
    trades: int
    """The number of trades that were grouped."""
    currency: str | None
    """The currency of money; None if the accounts have several, whose amounts are added without conversion."""
    mode: Mode
    message: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EquityReading:
    """The last equity that a tick or record_equity recorded on a UTC day."""

    day: date
    equity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EquityHistory:
    """The equity of a deployment's account by UTC day, from closed trades, and as it was recorded."""

    deployment: str
    currency: str
    days: tuple[EquityDay, ...]
    """Every day, oldest first; open positions do not count. The deployments of one account share its equity."""
    recorded: tuple[EquityReading, ...]
    """The days with a recorded equity, which includes open positions."""
    drawdown: Drawdown | None
    """The largest drawdown of these days, without deposits and withdrawals; None without a loss."""
    message: str
    as_of: datetime


@query(audience=("trader", "coach"))
def get_my_deployments(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "Only this deployment, by name or id."] = None,
    detail: Annotated[
        DeploymentParts, "trades: the last 30 trades; lessons: those in force; full: both, and recent activity."
    ] = "list",
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> Deployments:
    """Get your deployments with their results: win rate, expectancy, Sharpe ratio, drawdown."""
    from backsight.core.trades.columns import NO_TALLY, tallies  # imports NumPy

    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        deployments = deployments_at(view) if deployment is None else [deployment_at(view, deployment)]
        trades = KnownTrades(view=view, columns=ctx.database.trade_images.at(view))
        by_deployment = tallies(trades.columns, trades.rows({each.id for each in deployments}))
        settings = {each.id: settings_of(view, each) for each in deployments}
        summaries = tuple(
            DeploymentSummary(
                deployment=each,
                stopped_at=settings[each.id].stopped_at,
                stop_reason=settings[each.id].stop_reason,
                tally=by_deployment.get(each.id, NO_TALLY),
                performance=performance_of(trades, [each]),
                memory_help=_memory_help(trades, [each]) if detail == "full" else None,
                activity=_activity(view, each) if detail == "full" else None,
                recent_trades=_recent_trades(view, [each]) if detail in ("trades", "full") else (),
                lessons=next(iter(_lessons(view, [each], is_past=as_of is not None)), None)
                if detail in ("lessons", "full")
                else None,
            )
            for each in deployments
        )
    message = _deployments_message(summaries)
    if detail in ("lessons", "full"):
        with_lessons = {each.deployment.id for each in summaries if each.lessons is not None}
        message = f"{message}{_missing_lessons(view, deployments, with_lessons, is_past=as_of is not None)}"
    return Deployments(deployments=summaries, message=message, as_of=view.as_of)


def _deployments_message(summaries: Sequence[DeploymentSummary]) -> str:
    if not summaries:
        return "There is no deployment yet: deploy a strategy, or remember a trade."
    return f"{count_of(len(summaries), 'deployment')}, by name."


@query(audience=("trader", "coach"))
def get_strategy_performance(
    ctx: Context,
    *,
    strategy: Annotated[Name | None, "The strategy; the only one if left out."] = None,
    detail: Annotated[
        StrategyParts, "trades: the last 30 trades too; lessons: those in force; full: both."
    ] = "summary",
    mode: Annotated[Mode | None, "By default that of its deployments, or the only one with trades."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> StrategyPerformance:
    """Get how a strategy does: win rate, expectancy, Sharpe ratio, drawdown, by regime, symbol and direction."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        trades = KnownTrades(view=view, columns=ctx.database.trade_images.at(view))
        name, default = _strategy_named(trades, strategy)
        scope = resolve_scope(view, strategy_name=name, mode=mode)
        own = [each for each in scope.deployments if each.mode == scope.mode]
        performance = performance_of(trades, own)
        message = " ".join([*default, *scope.notes, _strategy_message(name, performance)])
        if not performance.figures.trades:
            hint = hint_where_trades_are(view, mode=scope.mode, strategy_name=name, strategy_argument="strategy")
            message = f"{message} {hint}"
        lessons = _lessons(view, own, is_past=as_of is not None) if detail in ("lessons", "full") else ()
        if detail in ("lessons", "full"):
            with_lessons = {note.deployment_id for note in lessons}
            message = f"{message}{_missing_lessons(view, own, with_lessons, is_past=as_of is not None)}"
        return StrategyPerformance(
            strategy_name=name,
            mode=scope.mode,
            deployments=tuple(each.name for each in own),
            performance=performance,
            memory_help=_memory_help(trades, own),
            recent_trades=_recent_trades(view, own) if detail in ("trades", "full") else (),
            lessons=lessons,
            message=message,
            as_of=view.as_of,
        )


def _strategy_named(trades: KnownTrades, name: str | None) -> tuple[str, tuple[str, ...]]:
    """The name of a strategy that is deployed, and a sentence on the default: the only one, or that with most trades.

    So a strategy that is deployed later hides none.
    """
    names = sorted({each.strategy_name for each in deployments_at(trades.view)})
    if not names:
        raise Invalid("no strategy is deployed yet; deploy one, or remember a trade", field="strategy")
    if name is not None and name not in names:
        more = f" or {count_of(len(names) - 5, 'other')}" if len(names) > 5 else ""
        raise Invalid(f"no strategy {name!r} is deployed; name one of {', '.join(names[:5])}{more}", field="strategy")
    if name is not None or len(names) == 1:
        return name or names[0], ()
    most = trades.most_in_one_mode()
    chosen = max(names, key=lambda each: most.get(each, 0))
    others = [f"strategy={each!r}" for each in names if each != chosen]
    return chosen, (f"For {chosen!r}, the strategy with most trades: see also {_listed(others)}.",)


def _strategy_message(name: str, performance: Performance) -> str:
    return f"{name}: {count_of(performance.figures.trades, 'closed trade')}."


def _recent_trades(view: View, deployments: Sequence[Deployment]) -> tuple[Trade, ...]:
    recent = [
        trade for each in deployments for trade in stored_trades.trades(view, limit=RECENT, deployment_id=each.id)
    ]
    newest = sorted(recent, key=lambda trade: (trade.closed_at or trade.known_at, trade.id), reverse=True)
    return tuple(newest[:RECENT])


def _lessons(view: View, deployments: Sequence[Deployment], *, is_past: bool) -> tuple[NoteView, ...]:
    """The lessons in force; those of a deployment whose memory is withheld today are left out."""
    from backsight.services.withheld_memory import withholds_from_queries

    readable = [each for each in deployments if is_past or not withholds_from_queries(view, each)]
    notes = [stored_notes.active_note(view, each.id) for each in readable]
    return tuple(note for note in notes if note is not None)


def _missing_lessons(
    view: View, deployments: Sequence[Deployment], with_lessons: Collection[str | None], *, is_past: bool
) -> str:
    """A sentence that says of which deployments there are no lessons, and why; empty if there are lessons of all."""
    from backsight.services.withheld_memory import READ_ANYWAY, withholds_from_queries

    without = [each for each in deployments if each.id not in with_lessons]
    withheld = [each.name for each in without if not is_past and withholds_from_queries(view, each)]
    none_yet = [each.name for each in without if each.name not in withheld]
    sentences = []
    if none_yet:
        sentences.append(f" No lessons of {_listed(none_yet)} are in force; reflect writes them from closed trades.")
    if withheld:
        sentences.append(f" The lessons of {_listed(withheld)} are withheld today, a holdout day. {READ_ANYWAY}")
    return "".join(sentences)


def _listed(names: Sequence[str]) -> str:
    """Names in a sentence, the first three of many."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _activity(view: View, deployment: Deployment) -> str:
    """Recent activity, as the agent reads it."""
    from backsight.core.decision import day_start_equity
    from backsight.core.risk_state import render_risk_state
    from backsight.services.prompt_assembly import recent_state
    from backsight.store import decisions as stored_decisions

    last = stored_decisions.last_of_deployment(view, deployment.id)
    day_start = day_start_equity(last, view.as_of)
    return render_risk_state(recent_state(view, deployment, now=view.as_of, day_start_equity=day_start))


def _memory_help(trades: KnownTrades, deployments: Sequence[Deployment]) -> str:
    """Whether the memory of a strategy helps, in one line."""
    entries = trades.columns.entries
    by_row = trades.columns.entry[trades.rows({each.id for each in deployments})]
    withheld = {code for code, labels in enumerate(entries) if labels.memory_arm == "withheld"}
    if not deployments or withheld.isdisjoint(by_row.tolist()):
        return NEVER_WITHHELD
    from backsight.core.reflection.holdout_test import analyse_holdout
    from backsight.services.holdout import holdout_record

    first = deployments[0]
    record = holdout_record(
        trades.view, trades.columns, strategy_id=first.strategy_id, strategy_name=first.strategy_name, mode=first.mode
    )
    held_out = analyse_holdout(record.trades, record.days, recalled_days=record.recalled_days)
    return f"Does memory help? {held_out.sentence}"


@query(audience=("trader", "coach"))
def break_down(
    ctx: Context,
    *,
    by: Annotated[Category, "What to group by; hour and weekday are those of the entry in UTC."],
    deployment: Annotated[Key | None, "Only this deployment, by name or id."] = None,
    strategy: Annotated[Name | None, "Only this strategy."] = None,
    symbol: Annotated[Symbol | None, "Only this instrument."] = None,
    mode: Annotated[Mode | None, "By default the deployment's, or the only one with trades."] = None,
    since: Annotated[Instant | None, "Only trades closed at or after this instant."] = None,
    until: Annotated[Instant | None, "Only trades closed before this instant."] = None,
    limit: Annotated[Limit, "The most groups; those with most trades come first."] = 20,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> BrokenDown:
    """Break results down by a category, like symbol, regime, weekday or tag: each group with its number and interval.

    Many groups make one look good or bad by chance: a group counts when its interval excludes the others' mean.
    """
    from backsight.core.trades.columns import closed_within
    from backsight.core.trades.figures import figures_by, rows_by_label

    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        scope = resolve_scope(view, deployment=deployment, strategy_name=strategy, mode=mode, symbol=symbol)
        spellings = None if symbol is None else underlyings(view).spellings(symbol)
        own = {each.id: each.name for each in scope.deployments if each.mode == scope.mode}
        trades = KnownTrades(view=view, columns=ctx.database.trade_images.at(view))
        rows = closed_within(trades.columns, trades.rows(own), symbols=spellings, since=since, until=until)
        by_label = rows_by_label(trades.columns, rows, by, own)
        groups = figures_by(trades.columns, by_label, most=limit)
        shown = f"{len(groups)} of {len(by_label)} groups" if len(by_label) > limit else count_of(len(groups), "group")
        sentence = f"{count_of(len(rows), 'closed trade')} by {by}: {shown}."
        used = {each.account_id for each in scope.deployments if each.id in own}
        accounts = stored_strategies.accounts(connection, ctx.owner)
        currencies = sorted({each.currency for each in accounts if each.id in used})
        if len(currencies) > 1 and by != "deployment":
            sentence += f" Net adds {' and '.join(currencies)} without conversion: name a deployment, or read R."
        if spellings is not None and len(spellings) > 1:
            sentence += f" {same_market(spellings)}"
        if not len(rows):
            sentence = "No closed trades match. " + hint_where_trades_are(view, mode=scope.mode, symbol=symbol)
    return BrokenDown(
        by=by,
        groups=groups,
        trades=len(rows),
        currency=currencies[0] if len(currencies) == 1 else None,
        mode=scope.mode,
        message=" ".join([*scope.notes, sentence]),
        as_of=view.as_of,
    )


@query(audience=("trader", "coach"))
def get_equity(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "The deployment, by name or id; the only one if left out."] = None,
    since: Annotated[Instant | None, "The first day; by default that of the first close or reading."] = None,
    until: Annotated[Instant | None, "The day after the last; by default the day of the answer is the last."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> EquityHistory:
    """Get the equity of a deployment's account by UTC day: from closed trades, and as it was recorded."""
    from backsight.core.trades.daily_returns import day_number, equity_curve, first_day

    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        trades = KnownTrades(view=view, columns=ctx.database.trade_images.at(view))
        target, default = chosen_deployment(
            view, deployment, shows=lambda each: equity_of(trades, [each]).missing is None
        )
        equity = equity_of(trades, [target])
        account_currency = equity.currency or ""
        last = view.as_of.date() if until is None else min(view.as_of, until - timedelta(microseconds=1)).date()
        first = last if since is None else since.date()
        days: list[EquityDay] = []
        recorded: dict[date, float] = {}
        if not equity.missing:
            first = first_day(equity.accounts) if since is None else first
            if first <= last:
                days = equity_curve(equity.accounts, day_number(first), day_number(last))
                bounds = {"since": _midnight(first), "until": _midnight(last) + DAY}
                readings = stored_state.readings(view, target.account_id, **bounds)
                recorded = {at.date(): amount for at, amount in readings}
    return EquityHistory(
        deployment=target.name,
        currency=account_currency,
        days=tuple(days),
        recorded=tuple(EquityReading(day=day, equity=amount) for day, amount in sorted(recorded.items())),
        drawdown=_drawdown(days),
        message=" ".join([*default, _equity_message(days, equity.missing)]),
        as_of=view.as_of,
    )


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _drawdown(days: Sequence[EquityDay]) -> Drawdown | None:
    """The largest drawdown of the days' returns."""
    if not days or any(day.start <= 0.0 for day in days):
        return None
    import numpy as np

    from backsight.core.trades.daily_returns import EVERY_DAY, DailyReturns, day_number

    returns = np.array([day.net / day.start for day in days])
    numbers = np.array([day_number(day.day) for day in days])
    return DailyReturns(days=numbers, returns=returns, days_per_year=EVERY_DAY).drawdown


def _equity_message(days: Sequence[EquityDay], missing: str | None) -> str:
    if missing:
        return f"The equity by day is not known: {missing}."
    if not days:
        return "No day lies between the two instants."
    first, last = days[0], days[-1]
    return f"{count_of(len(days), 'day')}, {first.day} to {last.day}: {first.start:,.2f} to {last.end:,.2f}."
