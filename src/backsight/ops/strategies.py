"""Strategies, accounts and deployments: who trades what, where."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from backsight.arguments import Key, MemoryArgument, MemoryOverridesArgument, Name, Prose, Rule, Rules, Share, Whole
from backsight.core.errors import Conflict, NotFound
from backsight.core.instants import Horizon
from backsight.core.portfolio import Mode, PositionMode
from backsight.core.reflection.notes import copied_note
from backsight.core.strategies import (
    Deployment,
    Guidance,
    GuidanceMode,
    Leash,
    MemorySettings,
    Strategy,
    settled,
)
from backsight.operation import command
from backsight.services.context import Context
from backsight.services.deployments import (
    OpenedAccount,
    _account_at,
    _add_or_find,
    _deployment,
    _strategy,
    account_named,
    deployment_name,
)
from backsight.store import notes as stored_notes
from backsight.store import strategies as stored
from backsight.store.transaction import Transaction
from backsight.store.view import View


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
    view = View(transaction.connection, deployment.owner_id, Horizon(as_of=now))
    note = stored_notes.strategy_note(view, deployment.strategy_id, deployment.mode)
    if note is not None:
        version = deployment.strategy_version
        copy = copied_note(note, deployment_id=deployment.id, version=version, at=now)
        transaction.add(stored_notes.NOTES, copy)


def _guidance(thesis: str | None, rules: list[str]) -> GuidanceMode:
    """What an agent is told by, as far as there is something to tell."""
    if rules:
        return "hybrid" if thesis else "rules"
    return "thesis"


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
