"""Deployments, accounts and strategies by name or id, and those that are made for reports and imports."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backsight.core.errors import Conflict, Invalid, NotFound, did_you_mean
from backsight.core.ids import derive_id
from backsight.core.memory.episodic import Episode
from backsight.core.portfolio import Account, Mode, PositionMode
from backsight.core.scope import (
    AnswerScope,
    ScopeQuery,
    candidates_for,
    first_note,
    first_to_read,
    hint_for_nothing,
    listed_names,
    needs_trade_counts,
    only_deployment,
    scope_of,
)
from backsight.core.strategies import (
    MANUAL,
    Deployment,
    Guidance,
    MemorySettings,
    Strategy,
    manual_account_id,
    manual_account_name,
    manual_name,
    refuse_manual_name,
)
from backsight.services.context import Context
from backsight.services.id_prefixes import whole_id
from backsight.services.names import only_match
from backsight.store import memories as stored_memories
from backsight.store import strategies as stored
from backsight.store import trades as stored_trades
from backsight.store.database import Connection
from backsight.store.instruments import underlyings
from backsight.store.transaction import Transaction
from backsight.store.view import View, everything

CURRENCY_OF_MANUAL = "USD"


IMPORTED = "import"
"""The venue of accounts that were imported from files."""


def deployment_named(connection: Connection, owner: str, key: str) -> Deployment:
    """The deployment with this name or id, or `NotFound`."""
    deployment = stored.deployment(connection, owner, key)
    if deployment is None:
        key = whole_id(connection, owner, stored.DEPLOYMENTS, key, field="deployment")
        deployment = stored.deployment(connection, owner, key)
    if deployment is None:
        name = only_match(key, (each.name for each in stored.deployments(everything(connection, owner))))
        deployment = None if name == key else stored.deployment(connection, owner, name)
    if deployment is None:
        raise _no_deployment(key)
    return deployment


def deployment_at(view: View, key: str) -> Deployment:
    """The deployment with this name or id, if there was one at the view's horizon; else `NotFound`."""
    deployment = deployment_named(view.connection, view.owner, key)
    if not _is_known(view, deployment):
        raise _no_deployment(key)
    return deployment


def _no_deployment(key: str) -> NotFound:
    return NotFound(f"no deployment {key!r}; get_my_deployments lists them", field="deployment")


def deployment_of(connection: Connection, episode: Episode) -> Deployment:
    """The deployment that an episode belongs to."""
    deployment = stored.deployment(connection, episode.owner_id, episode.deployment_id)
    if deployment is None:  # a foreign key ties every episode to its deployment
        raise AssertionError(f"episode {episode.id!r} has no deployment")
    return deployment


def resolve_scope(
    view: View,
    *,
    deployment: str | None = None,
    strategy_name: str | None = None,
    mode: Mode | None = None,
    all_modes: bool = False,
    symbol: str | None = None,
) -> AnswerScope:
    """The deployment and the mode that an answer is about, and what to say about the defaults that were taken.

    A default is the one that held at the view's horizon: a deployment made later does not change it. An answer about
    a symbol takes the mode with the most trades in it and the symbols that count as it, where there are any.
    """
    named = None if deployment is None else deployment_at(view, deployment)
    query = ScopeQuery(deployment=named, strategy_name=strategy_name, mode=mode, all_modes=all_modes)
    candidates = candidates_for(query, [] if named is not None else deployments_at(view, strategy_name=strategy_name))
    trades: Mapping[Mode, int] = {}
    if needs_trade_counts(query, candidates):
        if symbol is not None:
            known = underlyings(view)
            symbols = {*known.spellings(symbol), *known.joined(symbol)}
            trades = stored_memories.outcomes_by_mode(view, [each.id for each in candidates], symbols)
        trades = trades or _by_mode(candidates, _closes(view, candidates))
    return scope_of(query, candidates, trades)


def deployments_at(view: View, *, strategy_name: str | None = None) -> list[Deployment]:
    """The deployments that there were at a view's horizon, by name."""
    return [each for each in stored.deployments_recorded(view, strategy_name=strategy_name) if _is_known(view, each)]


def _is_known(view: View, deployment: Deployment) -> bool:
    """Whether there was a deployment at a view's horizon.

    Ticks and trades may be reported for a time before their deployment was made. Such a deployment counts from its
    first tick or closed trade.
    """
    if view.horizon.holds(deployment.known_at, deployment.recorded_at):
        return True
    if view.seen_at is not None and deployment.recorded_at > view.seen_at:
        return False
    return _has_ticks(view, deployment) or bool(stored_trades.trades(view, limit=1, deployment_id=deployment.id))


def _has_ticks(view: View, deployment: Deployment) -> bool:
    from backsight.store import decisions as stored_decisions  # only a choice between deployments needs it

    return stored_decisions.last_of_deployment(view, deployment.id) is not None


def _closes(view: View, deployments: Iterable[Deployment]) -> dict[tuple[str, str], int]:
    """The number of closed trades by account and strategy."""
    from backsight.services.mood import mood_rows  # imports all that learns; only a choice between several needs it

    series = {(each.account_id, each.strategy_name): each for each in deployments}
    rows = {key: mood_rows(view, each)[1] for key, each in series.items()}
    return {key: 0 if row is None else row.n for key, row in rows.items()}


def closed_by_mode(view: View, strategy_name: str) -> dict[Mode, int]:
    """The number of closed trades of a strategy in each mode in which it has any."""
    deployments = deployments_at(view, strategy_name=strategy_name)
    return {mode: number for mode, number in _by_mode(deployments, _closes(view, deployments)).items() if number}


def _by_mode(deployments: Iterable[Deployment], closes: Mapping[tuple[str, str], int]) -> dict[Mode, int]:
    """The number of closed trades of deployments by mode; those that share account and strategy count once."""
    modes = {(each.account_id, each.strategy_name): each.mode for each in deployments}
    totals: dict[Mode, int] = {}
    for key, mode in modes.items():
        totals[mode] = totals.get(mode, 0) + closes[key]
    return totals


def hint_where_trades_are(
    view: View,
    *,
    mode: Mode | None,
    strategy_name: str | None = None,
    symbol: str | None = None,
    strategy_argument: str = "strategy_name",
) -> str:
    """What to ask instead of a query that found no trade; see `hint_for_nothing`."""
    counts = stored_trades.trade_counts(view)
    if symbol is not None:
        spellings = underlyings(view).spellings(symbol)
        counts = [replace(each, symbol=symbol) if each.symbol in spellings else each for each in counts]
    return hint_for_nothing(
        counts, mode=mode, strategy_name=strategy_name, symbol=symbol, strategy_argument=strategy_argument
    )


def account_of(connection: Connection, deployment: Deployment) -> Account:
    """The account that a deployment runs on."""
    return account_named(connection, deployment.owner_id, deployment.account_id)


def imported_deployment(
    transaction: Transaction, ctx: Context, *, name: str, currency: str, mode: Mode, known_at: datetime
) -> Deployment:
    """The deployment of an imported agent on an account of its own; all are named after the agent.

    What does not exist is made as `open_account`, `save_strategy` and `deploy` would make it, known from `known_at` on.
    What exists is used unchanged.
    """
    connection = transaction.connection
    imported = replace(new_account(ctx, IMPORTED, name, currency, mode, "netting"), known_at=known_at)
    account = add_account(transaction, imported).account
    deployment = stored.deployment(
        connection, ctx.owner, derive_id("deployment", ctx.owner, deployment_name(name, name))
    )
    if deployment is not None and deployment.account_id != account.id:
        message = f"{deployment.name!r} already runs on an account that was not imported"
        raise Conflict(f"{message}; choose another name", field="name")
    if deployment is not None:
        return deployment
    strategy = stored.strategy(connection, ctx.owner, name)
    if strategy is None:
        strategy = replace(empty_strategy(ctx.owner, name, at=ctx.now), known_at=known_at)
        transaction.add(stored.STRATEGIES, strategy)
    known_now = new_deployment(ctx, deployment_name(name, name), strategy.id, name, strategy.version, account)
    deployment = replace(known_now, known_at=known_at)
    transaction.add(stored.DEPLOYMENTS, deployment)
    return deployment


def deployment_name(strategy_name: str, account_name: str) -> str:
    """The name of a deployment that is not given one.

    >>> deployment_name("VolBreakout", "main")
    'VolBreakout@main'
    """
    return f"{strategy_name}@{account_name}"


def manual_deployment(transaction: Transaction, ctx: Context, strategy_name: str, *, mode: Mode = "live") -> Deployment:
    """The deployment of trades that are reported for a strategy without a deployment; made on first use."""
    name = manual_name(strategy_name, mode)
    existing = stored.deployment(transaction.connection, ctx.owner, name)
    if existing is not None:
        return existing
    account = _manual_account(transaction, ctx, mode)
    strategy_id = derive_id("strategy", ctx.owner, strategy_name)
    deployment = new_deployment(ctx, name, strategy_id, strategy_name, None, account)
    transaction.add(stored.DEPLOYMENTS, deployment)
    return deployment


def _manual_account(transaction: Transaction, ctx: Context, mode: Mode) -> Account:
    """The account of what is reported in a mode without a deployment; made on first use."""
    account_id = manual_account_id(ctx.owner, mode)
    account = stored.account(transaction.connection, ctx.owner, account_id)
    if account is None:
        account = Account(
            owner_id=ctx.owner,
            id=account_id,
            venue=MANUAL,
            name=manual_account_name(mode),
            currency=CURRENCY_OF_MANUAL,
            mode=mode,
            position_mode="hedging",
            known_at=ctx.now,
            recorded_at=ctx.now,
        )
        transaction.add(stored.ACCOUNTS, account)
    return account


def reporting_account(
    transaction: Transaction, ctx: Context, *, deployment: str | None, account: str | None
) -> Account:
    """The account that an equity is reported for: the named one, that of the named deployment, or that of all.

    Before the first deployment it is the account of live trades that are reported without a deployment.
    """
    connection = transaction.connection
    if account is not None:
        if deployment is not None:
            raise Invalid("a deployment is given too; give one of the two", field="account")
        return account_named(connection, ctx.owner, account)
    named = None if deployment is None else deployment_named(connection, ctx.owner, deployment)
    every = deployments_at(ctx.view(connection)) if named is None else [named]
    deployments = [each for each in every if not each.is_manual] or every
    if not deployments:
        return _manual_account(transaction, ctx, "live")
    if len({each.account_id for each in deployments}) > 1:
        message = f"there are deployments on several accounts; name one of {listed_names(deployments)}"
        raise Invalid(message, field="deployment")
    return account_of(connection, deployments[0])


def account_named(connection: Connection, owner: str, key: str) -> Account:
    """The account with this name or id, or `NotFound` with the nearest name."""
    account = stored.account(connection, owner, key)
    if account is None:
        names = stored.account_names(connection, owner)
        if (name := only_match(key, names)) != key and names.count(name) == 1:
            return account_named(connection, owner, name)
        if names.count(key) > 1:
            raise NotFound(f"several accounts are named {key!r}; give the id of one", field="account")
        remedy = did_you_mean(key, names) if names else "open one first"
        raise NotFound(f"no account {key!r}; {remedy}", field="account")
    return account


def new_account(ctx: Context, venue: str, name: str, currency: str, mode: Mode, position_mode: PositionMode) -> Account:
    refuse_manual_name(name)
    return Account(
        owner_id=ctx.owner,
        id=derive_id("account", ctx.owner, venue, name),
        venue=venue,
        name=name,
        currency=currency,
        mode=mode,
        position_mode=position_mode,
        known_at=ctx.now,
        recorded_at=ctx.now,
    )


def deployed_strategy(connection: Connection, deployment: Deployment) -> Strategy | None:
    """The strategy version that a deployment runs; None if the strategy was never saved."""
    if deployment.strategy_version is None:
        return None
    return stored.strategy(connection, deployment.owner_id, deployment.strategy_name, deployment.strategy_version)


def unsaved_strategy(deployment: Deployment) -> Strategy:
    """The strategy of a deployment whose strategy was never saved: only its name is known."""
    return empty_strategy(deployment.owner_id, deployment.strategy_name, at=deployment.known_at)


def empty_strategy(owner: str, name: str, *, at: datetime) -> Strategy:
    """The first version of a strategy that has a name and nothing else."""
    return Strategy(
        owner_id=owner,
        id=derive_id("strategy", owner, name),
        version=1,
        name=name,
        thesis=None,
        rules=(),
        avoid=(),
        risk_per_trade=None,
        guidance=Guidance(),
        memory=MemorySettings(),
        known_at=at,
        recorded_at=at,
    )


def new_deployment(
    ctx: Context, name: str, strategy_id: str, strategy_name: str, version: int | None, account: Account
) -> Deployment:
    return Deployment(
        owner_id=ctx.owner,
        id=derive_id("deployment", ctx.owner, name),
        name=name,
        strategy_id=strategy_id,
        strategy_name=strategy_name,
        strategy_version=version,
        account_id=account.id,
        mode=account.mode,
        memory=MemorySettings(),
        known_at=ctx.now,
        recorded_at=ctx.now,
    )


def the_deployment(view: View, key: str | None) -> Deployment:
    """The deployment with this name or id, for a command; without one, the only deployment at the view's horizon.

    `NotFound` if there is none, `Invalid` if there are several: a command does not choose for its caller.
    """
    if key is not None:
        return deployment_at(view, key)
    deployments = deployments_at(view)
    only = only_deployment(deployments)
    if only is None and deployments:
        message = f"there are several deployments; name one of {listed_names(deployments)}"
        raise Invalid(message, field="deployment")
    return _existing(only)


def chosen_deployment(
    view: View, key: str | None, *, shows: Callable[[Deployment], bool] | None = None
) -> tuple[Deployment, tuple[str, ...]]:
    """The deployment that an answer is about, with sentences on the default that was taken; `NotFound` without any.

    The named one, else the only one, else the first of several: so what a read answered before another deployment was
    made it answers afterwards, and it names the others. With `shows`, the first for which there is anything to show.
    """
    if key is not None:
        return deployment_at(view, key), ()
    scope = resolve_scope(view)
    in_order = deployments_to_read(view, scope.deployments)
    first = _existing(in_order[0] if in_order else None)
    if shows is not None and len(in_order) > 1:
        first = next(filter(shows, in_order), first)
    return first, scope.deployment_notes if first == scope.deployment else (first_note(first, in_order),)


def deployments_to_read(view: View, deployments: Sequence[Deployment]) -> list[Deployment]:
    """Deployments in the order in which an answer of one deployment takes them, see `first_to_read`."""
    if len(deployments) < 2:
        return list(deployments)
    closes = _closes(view, deployments)
    used = {each.id for each in deployments if closes[each.account_id, each.strategy_name] or _has_ticks(view, each)}
    return first_to_read(deployments, used)


def _existing(deployment: Deployment | None) -> Deployment:
    if deployment is None:
        raise NotFound("there is no deployment yet; deploy a strategy, or remember a trade", field="deployment")
    return deployment


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedAccount:
    """The account, and whether it existed before."""

    account: Account
    replayed: bool


def add_account(transaction: Transaction, account: Account) -> OpenedAccount:
    """Store an account, unless it exists with the same settings; `Conflict` if its settings differ."""
    existing = stored.account(transaction.connection, account.owner_id, account.id)
    if existing is None:
        transaction.add(stored.ACCOUNTS, account)
        return OpenedAccount(account=account, replayed=False)
    if replace(account, known_at=existing.known_at, recorded_at=existing.recorded_at) != existing:
        message = f"{account.name!r} at {account.venue!r} is already open with other settings"
        raise Conflict(f"{message}; an account does not change, so choose another name", field="name")
    return OpenedAccount(account=existing, replayed=True)
