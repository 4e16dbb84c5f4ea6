"""Deployments, accounts and strategies by name or id, and those that are made for reports and imports."""

from dataclasses import dataclass, replace
from datetime import datetime

from backsight.core.errors import Conflict, Invalid, NotFound, did_you_mean
from backsight.core.ids import derive_id
from backsight.core.instants import Horizon
from backsight.core.memory.episodic import Episode
from backsight.core.portfolio import Account, Mode, PositionMode
from backsight.core.strategies import MANUAL, Deployment, Guidance, MemorySettings, Strategy, manual_name
from backsight.services.context import Context
from backsight.services.id_prefixes import whole_id
from backsight.store import strategies as stored
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import View

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
        raise NotFound(f"no deployment {key!r}; get_my_deployments lists them", field="deployment")
    return deployment


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


def manual_deployment(transaction: Transaction, ctx: Context, strategy_name: str) -> Deployment:
    """The deployment of trades that are reported for a strategy without a deployment; made on first use."""
    existing = stored.deployment(transaction.connection, ctx.owner, manual_name(strategy_name))
    if existing is not None:
        return existing
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
    deployment = new_deployment(ctx, manual_name(strategy_name), strategy_id, strategy_name, None, account)
    transaction.add(stored.DEPLOYMENTS, deployment)
    return deployment


def account_named(connection: Connection, owner: str, key: str) -> Account:
    """The account with this name or id, or `NotFound` with the nearest name."""
    account = stored.account(connection, owner, key)
    if account is None:
        names = stored.account_names(connection, owner)
        if names.count(key) > 1:
            raise NotFound(f"several accounts are named {key!r}; give the id of one", field="account")
        remedy = did_you_mean(key, names) if names else "open one first"
        raise NotFound(f"no account {key!r}; {remedy}", field="account")
    return account


def new_account(ctx: Context, venue: str, name: str, currency: str, mode: Mode, position_mode: PositionMode) -> Account:
    if name.startswith(f"{MANUAL}:") or name == MANUAL:
        raise Invalid(f"{name!r} is reserved for trades without a deployment; choose another name", field="name")
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


def the_deployment(ctx: Context, view: View, key: str | None) -> Deployment | None:
    """The deployment with this name or id; without one, the owner's only deployment, or None if there is none."""
    if key is not None:
        return deployment_named(view.connection, view.owner, key)
    as_of = max(view.as_of, ctx.now)
    deployments = stored.deployments(View(view.connection, view.owner, Horizon(as_of=as_of)))
    if len(deployments) > 1:
        names = ", ".join(repr(deployment.name) for deployment in deployments[:10])
        raise Invalid(f"there are several deployments; name one of {names}", field="deployment")
    return deployments[0] if deployments else None


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
