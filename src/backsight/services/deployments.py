"""Deployments, accounts and strategies by name, and those that Backsight makes itself for trades told without one."""

from dataclasses import dataclass, replace
from datetime import datetime

from backsight.core.errors import Conflict, Invalid, NotFound, did_you_mean
from backsight.core.ids import derive_id
from backsight.core.instants import Horizon
from backsight.core.memory.episodic import Episode
from backsight.core.portfolio import Account, Mode, PositionMode
from backsight.core.strategies import MANUAL, Deployment, Guidance, MemorySettings, Strategy, manual_name
from backsight.services.context import Context
from backsight.store import strategies as stored
from backsight.store import strategies as stored_strategies
from backsight.store.database import Connection
from backsight.store.transaction import Transaction

CURRENCY_OF_MANUAL = "USD"


IMPORTED = "import"
"""The venue of accounts that were only ever read from files."""


def deployment_named(connection: Connection, owner: str, named: str) -> Deployment:
    """The deployment of this name or id, or `NotFound` with the names there are."""
    found = stored.deployment(connection, owner, named)
    if found is None:
        raise NotFound(f"no deployment {named!r}; get_my_deployments lists them", field="deployment")
    return found


def deployment_of(connection: Connection, episode: Episode) -> Deployment:
    """The deployment that an episode belongs to."""
    deployment = stored.deployment(connection, episode.owner_id, episode.deployment_id)
    if deployment is None:  # a foreign key ties every episode to its deployment
        raise AssertionError(f"episode {episode.id!r} has no deployment")
    return deployment


def deployment_and_mode(
    connection: Connection, owner: str, name: str | None, mode: Mode | None
) -> tuple[Deployment | None, Mode]:
    """The deployment with this name or id, if given, and the mode: as given, else the deployment's, else live."""
    deployment = None if name is None else deployment_named(connection, owner, name)
    return deployment, mode or (deployment.mode if deployment is not None else "live")


def account_of(connection: Connection, home: Deployment) -> Account:
    """The account that a deployment runs on."""
    return account_named(connection, home.owner_id, home.account_id)


def imported_deployment(
    transaction: Transaction, ctx: Context, *, name: str, currency: str, mode: Mode, known_at: datetime
) -> Deployment:
    """The deployment of an imported agent on an account of its own, both called by its name.

    What is not there yet is made as `open_account`, `save_strategy` and `deploy` would, known from an instant of the
    past; what is there is used as it is.
    """
    connection = transaction.connection
    account = replace(_account_at(ctx, IMPORTED, name, currency, mode, "netting"), known_at=known_at)
    held = _add_or_find(transaction, account).account
    found = stored.deployment(connection, ctx.owner, derive_id("deployment", ctx.owner, deployment_name(name, name)))
    if found is not None and found.account_id != held.id:
        told = f"{found.name!r} already runs on another account than the one of imports"
        raise Conflict(f"{told}; choose another name", field="name")
    if found is not None:
        return found
    strategy = stored.strategy(connection, ctx.owner, name)
    if strategy is None:
        strategy = replace(_strategy(ctx, name), known_at=known_at)
        transaction.add(stored.STRATEGIES, strategy)
    plain = _deployment(ctx, deployment_name(name, name), strategy.id, name, strategy.version, held)
    deployment = replace(plain, known_at=known_at)
    transaction.add(stored.DEPLOYMENTS, deployment)
    return deployment


def deployment_name(strategy_name: str, account_name: str) -> str:
    """What a deployment is called where nobody says.

    >>> deployment_name("VolBreakout", "main")
    'VolBreakout@main'
    """
    return f"{strategy_name}@{account_name}"


def manual_deployment(transaction: Transaction, ctx: Context, strategy_name: str) -> Deployment:
    """The implicit deployment of trades remembered for a strategy without naming one; made on first use."""
    found = stored.deployment(transaction.connection, ctx.owner, manual_name(strategy_name))
    if found is not None:
        return found
    account_id = derive_id("account", ctx.owner, MANUAL, MANUAL)
    account = stored.account(transaction.connection, ctx.owner, account_id)
    if account is None:
        account = Account(
            owner_id=ctx.owner,
            id=account_id,
            venue=MANUAL,
            name=MANUAL,
            currency=CURRENCY_OF_MANUAL,
            mode="live",
            position_mode="hedging",
            known_at=ctx.now,
            recorded_at=ctx.now,
        )
        transaction.add(stored.ACCOUNTS, account)
    strategy_id = derive_id("strategy", ctx.owner, strategy_name)
    deployment = _deployment(ctx, manual_name(strategy_name), strategy_id, strategy_name, None, account)
    transaction.add(stored.DEPLOYMENTS, deployment)
    return deployment


def account_named(connection: Connection, owner: str, named: str) -> Account:
    """The account of this name or id, or `NotFound` with the nearest one there is."""
    found = stored.account(connection, owner, named)
    if found is None:
        names = stored.account_names(connection, owner)
        remedy = did_you_mean(named, names) if names else "open one first"
        raise NotFound(f"no one account {named!r}; {remedy}", field="account")
    return found


def _account_at(ctx: Context, venue: str, name: str, currency: str, mode: Mode, position_mode: PositionMode) -> Account:
    if name.startswith(f"{MANUAL}:") or name == MANUAL:
        raise Invalid(f"{name!r} is kept for trades remembered by hand; choose another", field="name")
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


def deployed_strategy(connection: Connection, home: Deployment) -> Strategy | None:
    """The version that a deployment runs; None where it was never saved."""
    if home.strategy_version is None:
        return None
    return stored.strategy(connection, home.owner_id, home.strategy_name, home.strategy_version)


def unsaved_strategy(home: Deployment) -> Strategy:
    """The strategy of a deployment whose strategy was never saved: its name alone."""
    return _unsaid(home.owner_id, home.strategy_name, at=home.known_at)


def _unsaid(owner: str, name: str, *, at: datetime) -> Strategy:
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


def _deployment(
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


def the_deployment(connection: Connection, ctx: Context, named: str | None, horizon: Horizon) -> Deployment | None:
    """The deployment that is meant; without a name the only one there is, if there is any."""
    if named is not None:
        return deployment_named(connection, ctx.owner, named)
    now = Horizon(as_of=max(horizon.as_of, ctx.now))
    there = stored_strategies.deployments(connection, ctx.owner, now)
    if len(there) > 1:
        names = ", ".join(repr(each.name) for each in there[:10])
        raise Invalid(f"there are several; name one of {names}", field="deployment")
    return there[0] if there else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedAccount:
    """The account, and whether it was there before."""

    account: Account
    replayed: bool


def _add_or_find(transaction: Transaction, account: Account) -> OpenedAccount:
    held = stored.account(transaction.connection, account.owner_id, account.id)
    if held is None:
        transaction.add(stored.ACCOUNTS, account)
        return OpenedAccount(account=account, replayed=False)
    if replace(account, known_at=held.known_at, recorded_at=held.recorded_at) != held:
        remedy = "an account does not change; choose another name"
        told = f"{account.name!r} at {account.venue!r} is already open with other settings"
        raise Conflict(f"{told}; {remedy}", field="name")
    return OpenedAccount(account=held, replayed=True)


def _strategy(ctx: Context, name: str) -> Strategy:
    """The first version of a strategy of which nothing is told."""
    return _unsaid(ctx.owner, name, at=ctx.now)
