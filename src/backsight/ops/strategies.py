"""Strategies, accounts and deployments: who trades what, where."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from backsight.core.errors import Conflict, Invalid, NotFound, did_you_mean
from backsight.core.ids import derive_id
from backsight.core.instants import Horizon
from backsight.core.portfolio import Account, Mode, PositionMode
from backsight.core.reflection.notes import copied_note
from backsight.core.strategies import (
    MANUAL,
    Deployment,
    Guidance,
    GuidanceMode,
    Leash,
    MemorySettings,
    Strategy,
    manual_name,
    settled,
)
from backsight.ops.arguments import Key, MemoryArgument, MemoryOverridesArgument, Name, Prose, Rule, Rules, Share, Whole
from backsight.ops.context import Context
from backsight.ops.operation import command
from backsight.store import notes as stored_notes
from backsight.store import strategies as stored
from backsight.store.database import Connection
from backsight.store.transaction import Transaction

CURRENCY_OF_MANUAL = "USD"
IMPORTED = "import"
"""The venue of accounts that were only ever read from files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedAccount:
    """The account, and whether it was there before."""

    account: Account
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedStrategy:
    """The version that now says what was saved, and whether it already did."""

    strategy: Strategy
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """The deployment, and whether it was there before."""

    deployment: Deployment
    replayed: bool


@command()
def open_account(
    ctx: Context,
    *,
    venue: Annotated[Name, "Where it is held, like 'binance'."],
    name: Annotated[Name, "What you call it."],
    currency: Annotated[Name, "What its money is counted in, like 'USD'."] = "USD",
    mode: Annotated[Mode, "Real money, a paper account, or a simulation; the three never blend."] = "live",
    position_mode: Annotated[PositionMode, "'hedging' where one symbol may have several positions."] = "netting",
) -> OpenedAccount:
    """Open an account: where positions are held, in which currency, and whether the money is real."""
    with ctx.writing() as transaction:
        account = _account_at(ctx, venue, name, currency, mode, position_mode)
        return _add_or_find(transaction, account)


@command()
def save_strategy(
    ctx: Context,
    *,
    name: Annotated[Name, "What the strategy is called; all versions share it."],
    thesis: Annotated[Prose | None, "Why it should make money, in the author's words."] = None,
    rules: Annotated[Rules, "Rules to trade by, one each."] = [],  # noqa: B006
    avoid: Annotated[Rules, "What the owner forbids, one each."] = [],  # noqa: B006
    risk_per_trade: Annotated[
        Share | None, "Share of equity that a trade risks, like 0.01; used where no stop tells."
    ] = None,
    guidance: Annotated[
        GuidanceMode | None, "What the agent is told: the thesis, the rules, or both; by what is given if left out."
    ] = None,
    leash: Annotated[Leash, "How closely it must follow."] = "balanced",
    horizon: Annotated[Rule | None, "How long a trade is meant to last."] = None,
    style: Annotated[Rule | None, "How it trades."] = None,
    look_for: Annotated[Rules, "What to look for, one each."] = [],  # noqa: B006
    sizing: Annotated[Rule | None, "How large to trade."] = None,
    entry_rules: Annotated[Rules, "When to enter, one each."] = [],  # noqa: B006
    exit_rules: Annotated[Rules, "When to get out, one each."] = [],  # noqa: B006
    risk_rules: Annotated[Rules, "What not to exceed, one each."] = [],  # noqa: B006
    memory: Annotated[MemoryArgument, "How it uses memory; deploy may set it otherwise."] = MemorySettings(),  # noqa: B008
) -> SavedStrategy:
    """Save a strategy: a new version if it says anything new, the same one if not."""
    said = Guidance(
        mode=guidance or _guidance(thesis, [*rules, *entry_rules, *exit_rules, *risk_rules]),
        leash=leash,
        horizon=horizon,
        style=style,
        look_for=tuple(look_for),
        sizing=sizing,
        entry_rules=tuple(entry_rules),
        exit_rules=tuple(exit_rules),
        risk_rules=tuple(risk_rules),
    )
    used = settled(memory)
    with ctx.writing() as transaction:
        latest = stored.strategy(transaction.connection, ctx.owner, name)
        strategy = replace(
            _strategy(ctx, name),
            version=1 if latest is None else latest.version + 1,
            thesis=thesis,
            rules=tuple(rules),
            avoid=tuple(avoid),
            risk_per_trade=risk_per_trade,
            guidance=said,
            memory=used,
        )
        if latest is not None and latest.same_text(strategy):
            return SavedStrategy(strategy=latest, replayed=True)
        transaction.add(stored.STRATEGIES, strategy)
    return SavedStrategy(strategy=strategy, replayed=False)


@command()
def deploy(
    ctx: Context,
    *,
    strategy_name: Annotated[Name, "The saved strategy to run."],
    account: Annotated[Key, "The account to run it on, by name or id."],
    version: Annotated[Whole | None, "Which version of it; the latest if left out."] = None,
    name: Annotated[Name | None, "What to call the deployment; 'strategy@account' if left out."] = None,
    memory: Annotated[
        MemoryOverridesArgument | None,
        "What to set otherwise than the strategy does; a holdout of 0.2 tells in time whether memory helps.",
    ] = None,
) -> Deployed:
    """Deploy one strategy version on one account."""
    with ctx.writing() as transaction:
        connection = transaction.connection
        held = account_named(connection, ctx.owner, account)
        strategy = stored.strategy(connection, ctx.owner, strategy_name, version)
        if strategy is None:
            which = "" if version is None else f" version {version}"
            raise NotFound(f"no strategy {strategy_name!r}{which}; save it first", field="strategy_name")
        called = name or deployment_name(strategy_name, held.name)
        plain = _deployment(ctx, called, strategy.id, strategy_name, strategy.version, held)
        deployment = replace(plain, memory=settled(strategy.memory, memory))
        deployed = _add_or_replay(transaction, ctx.owner, deployment)
        if not deployed.replayed:
            _start_with_lessons(transaction, deployment, now=ctx.now)
        return deployed


def _start_with_lessons(transaction: Transaction, deployment: Deployment, *, now: datetime) -> None:
    """Give a new deployment its own copy of its strategy's lessons, where there are any."""
    owner, strategy_id, mode = deployment.owner_id, deployment.strategy_id, deployment.mode
    note = stored_notes.strategy_note(transaction.connection, owner, strategy_id, mode, Horizon(as_of=now))
    if note is not None:
        version = deployment.strategy_version
        copy = copied_note(note, deployment_id=deployment.id, version=version, at=now)
        transaction.add(stored_notes.NOTES, copy)


def _guidance(thesis: str | None, rules: list[str]) -> GuidanceMode:
    """What an agent is told by, as far as there is something to tell."""
    if rules:
        return "hybrid" if thesis else "rules"
    return "thesis"


def deployment_named(connection: Connection, owner: str, named: str) -> Deployment:
    """The deployment of this name or id, or `NotFound` with the names there are."""
    found = stored.deployment(connection, owner, named)
    if found is None:
        raise NotFound(f"no deployment {named!r}; get_my_deployments lists them", field="deployment")
    return found


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


def deployed_strategy(connection: Connection, home: Deployment) -> Strategy | None:
    """The version that a deployment runs; None where it was never saved."""
    if home.strategy_version is None:
        return None
    return stored.strategy(connection, home.owner_id, home.strategy_name, home.strategy_version)


def unsaved_strategy(home: Deployment) -> Strategy:
    """The strategy of a deployment whose strategy was never saved: its name alone."""
    return _unsaid(home.owner_id, home.strategy_name, at=home.known_at)


def _strategy(ctx: Context, name: str) -> Strategy:
    """The first version of a strategy of which nothing is told."""
    return _unsaid(ctx.owner, name, at=ctx.now)


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


def _add_or_replay(transaction: Transaction, owner: str, deployment: Deployment) -> Deployed:
    held = stored.deployment(transaction.connection, owner, deployment.id)
    if held is None:
        transaction.add(stored.DEPLOYMENTS, deployment)
        return Deployed(deployment=deployment, replayed=False)
    if replace(deployment, known_at=held.known_at, recorded_at=held.recorded_at) != held:
        running = f"version {held.strategy_version} of {held.strategy_name!r}"
        raise Conflict(
            f"{held.name!r} already runs {running}, or with other settings; choose another name", field="name"
        )
    return Deployed(deployment=held, replayed=True)
