"""Strategies, accounts and deployments: who trades what, where."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from backsight.arguments import (
    Flag,
    Key,
    Name,
    NotNegative,
    Prose,
    Question,
    Rule,
    Rules,
    Share,
    Whole,
    as_object,
    as_optional_object,
)
from backsight.core.agents.agent_settings import AgentSettings
from backsight.core.agents.cron import parse_cron
from backsight.core.errors import Conflict, NotFound
from backsight.core.instants import Horizon
from backsight.core.portfolio import Direction, Mode, PositionMode
from backsight.core.reflection.notes import copied_note
from backsight.core.strategies import (
    Deployment,
    Guidance,
    GuidanceMode,
    Leash,
    MemoryOverrides,
    MemorySettings,
    Strategy,
    effective_settings,
    refuse_manual_name,
)
from backsight.language_models import checked_model_name
from backsight.object_arguments import MemoryArgument, MemoryOverridesArgument
from backsight.operation import command
from backsight.services.agent_cards import known_card_type
from backsight.services.agent_settings import (
    add_event,
    checked_tools,
    refuse_incomplete,
    session_of,
    settings_of,
    share,
)
from backsight.services.context import Context
from backsight.services.deployments import (
    OpenedAccount,
    account_named,
    add_account,
    deployment_name,
    deployment_named,
    empty_strategy,
    new_account,
    new_deployment,
)
from backsight.store import notes as stored_notes
from backsight.store import strategies as stored
from backsight.store.agent_sessions import AGENT_SETTINGS
from backsight.store.transaction import Transaction
from backsight.store.view import View

RunnerChoice = Literal["claude", "model", "none"]
Timeout = Annotated[Whole, Field(ge=1, le=3_600)]
Tools = Annotated[list[Name], Field(max_length=100)]
Directions = Annotated[list[Direction], Field(min_length=1, max_length=2)]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedStrategy:
    """The saved version, and whether an earlier call had saved it."""

    strategy: Strategy
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """The deployment, and whether it existed before."""

    deployment: Deployment
    replayed: bool


@command()
def open_account(
    ctx: Context,
    *,
    venue: Annotated[Name, "The broker or exchange, like 'binance'."],
    name: Annotated[Name, "The name of the account."],
    currency: Annotated[Name, "The currency of the account, like 'USD'."] = "USD",
    mode: Annotated[
        Mode, "Real money, a paper account, or a simulation; memories of different modes never mix."
    ] = "live",
    position_mode: Annotated[PositionMode, "'hedging' if one symbol may have several positions at once."] = "netting",
    dust: Annotated[
        NotNegative | None, "What is worth no more than this is no position: the rests that spot trades leave."
    ] = None,
) -> OpenedAccount:
    """Open an account: where positions are held, in which currency, and whether the money is real."""
    account = replace(new_account(ctx, venue, name, currency, mode, position_mode), dust=dust)
    with ctx.writing() as transaction:
        return add_account(transaction, account)


@command()
def save_strategy(
    ctx: Context,
    *,
    name: Annotated[Name, "The name of the strategy; all its versions share it."],
    thesis: Annotated[Prose | None, "Why the strategy should make money, in the author's words."] = None,
    rules: Annotated[Rules, "Rules to trade by."] = [],  # noqa: B006
    avoid: Annotated[Rules, "What the owner forbids."] = [],  # noqa: B006
    risk_per_trade: Annotated[
        Share | None, "Share of equity that a trade risks, like 0.01; used for trades without a stop."
    ] = None,
    guidance: Annotated[
        GuidanceMode | None, "Whether the agent is given the thesis, the rules or both; if left out, whatever is saved."
    ] = None,
    leash: Annotated[Leash, "How closely the agent must follow the strategy."] = "balanced",
    directions: Annotated[
        Directions, "The directions that trades may take; the agent is told what usually happens in each."
    ] = ["long", "short"],  # noqa: B006
    horizon: Annotated[Rule | None, "How long a trade should last."] = None,
    style: Annotated[Rule | None, "The style of trading."] = None,
    look_for: Annotated[Rules, "What to look for in the market."] = [],  # noqa: B006
    sizing: Annotated[Rule | None, "How to size trades."] = None,
    entry_rules: Annotated[Rules, "When to enter a trade."] = [],  # noqa: B006
    exit_rules: Annotated[Rules, "When to leave a trade."] = [],  # noqa: B006
    risk_rules: Annotated[Rules, "Limits of risk."] = [],  # noqa: B006
    memory: Annotated[MemoryArgument, "How the strategy uses memory; deploy can override it."] = MemorySettings(),  # noqa: B008
) -> SavedStrategy:
    """Save a strategy as a new version, unless the latest version has the same content."""
    guidance_settings = Guidance(
        mode=guidance or _guidance_mode(thesis, [*rules, *entry_rules, *exit_rules, *risk_rules]),
        leash=leash,
        directions=tuple(each for each in DIRECTIONS if each in directions),
        horizon=horizon,
        style=style,
        look_for=tuple(look_for),
        sizing=sizing,
        entry_rules=tuple(entry_rules),
        exit_rules=tuple(exit_rules),
        risk_rules=tuple(risk_rules),
    )
    memory_settings = effective_settings(as_object(memory, MemorySettings))
    with ctx.writing() as transaction:
        latest = stored.strategy(transaction.connection, ctx.owner, name)
        strategy = replace(
            empty_strategy(ctx.owner, name, at=ctx.now),
            version=1 if latest is None else latest.version + 1,
            thesis=thesis,
            rules=tuple(rules),
            avoid=tuple(avoid),
            risk_per_trade=risk_per_trade,
            guidance=guidance_settings,
            memory=memory_settings,
        )
        if latest is not None and latest.same_text(strategy):
            return SavedStrategy(strategy=latest, replayed=True)
        transaction.add(stored.STRATEGIES, strategy)
    return SavedStrategy(strategy=strategy, replayed=False)


@command()
def deploy(
    ctx: Context,
    *,
    strategy_name: Annotated[Name, "The saved strategy."],
    account: Annotated[Key, "The account, by name or id."],
    version: Annotated[Whole | None, "The version of the strategy; the latest if left out."] = None,
    name: Annotated[Name | None, "The name of the deployment; 'strategy@account' if left out."] = None,
    memory: Annotated[
        MemoryOverridesArgument | None,
        "Settings that override those of the strategy; a holdout of 0.2 measures over time whether memory helps.",
    ] = None,
) -> Deployed:
    """Deploy one strategy version on one account."""
    with ctx.writing() as transaction:
        connection = transaction.connection
        chosen = account_named(connection, ctx.owner, account)
        strategy = stored.strategy(connection, ctx.owner, strategy_name, version)
        if strategy is None:
            version_text = "" if version is None else f" version {version}"
            raise NotFound(f"no strategy {strategy_name!r}{version_text}; save it first", field="strategy_name")
        full_name = name or deployment_name(strategy_name, chosen.name)
        refuse_manual_name(full_name)
        default = new_deployment(ctx, full_name, strategy.id, strategy_name, strategy.version, chosen)
        deployment = replace(
            default, memory=effective_settings(strategy.memory, as_optional_object(memory, MemoryOverrides))
        )
        deployed = _add_or_replay(transaction, ctx.owner, deployment)
        if not deployed.replayed:
            _start_with_lessons(transaction, deployment, now=ctx.now)
        return deployed


def _start_with_lessons(transaction: Transaction, deployment: Deployment, *, now: datetime) -> None:
    """Give a new deployment a copy of its strategy's lessons, if there are any."""
    view = View(transaction.connection, deployment.owner_id, Horizon(as_of=now))
    note = stored_notes.strategy_note(view, deployment.strategy_id, deployment.mode)
    if note is not None:
        version = deployment.strategy_version
        copy = copied_note(note, deployment_id=deployment.id, version=version, at=now)
        transaction.add(stored_notes.NOTES, copy)


def _guidance_mode(thesis: str | None, rules: list[str]) -> GuidanceMode:
    """The guidance that the saved texts allow."""
    if rules:
        return "hybrid" if thesis else "rules"
    return "thesis"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredDeployment:
    """The settings of a deployment's agent, and whether its session is shared."""

    deployment: str
    settings: AgentSettings
    shares_session: bool
    message: str


NOTHING_GIVEN = "Nothing was given, so nothing was changed."


@command()
def configure_deployment(
    ctx: Context,
    *,
    deployment: Annotated[Key, "The deployment, by name or id."],
    runner: Annotated[RunnerChoice | None, "What runs the agent; 'none' if it has its own loop."] = None,
    model: Annotated[Name | None, "The language model, like 'openai:gpt-5'."] = None,
    default_prompt: Annotated[Question | None, "What a heartbeat asks."] = None,
    schedule: Annotated[Name | None, "When heartbeats fire: a cron expression in UTC, or 'off'."] = None,
    card_type: Annotated[Name | None, "The type of the results; 'none' if they have none."] = None,
    review_decisions: Annotated[Flag | None, "Whether prompts show the agent its previous decisions."] = None,
    share_session: Annotated[Flag | None, "Whether chats and heartbeats share a session; always a fresh start."] = None,
    timeout_seconds: Annotated[Timeout | None, "How long one invocation may take."] = None,
    tools: Annotated[
        Tools | None, "The operations that a model may call; ['none'] for none, [] for a trader's."
    ] = None,
    resume: Annotated[Flag, "Start a deployment again that stop_deployment has stopped."] = False,
) -> ConfiguredDeployment:
    """Change how the agent of a deployment is run; what is left out stays as it is, and the former settings are kept.

    Strategy, account and mode of a deployment never change.
    """
    with ctx.writing() as transaction:
        connection = transaction.connection
        target = deployment_named(connection, ctx.owner, deployment)
        former = settings_of(ctx.view(connection), target)
        if schedule is not None and schedule != "off":
            parse_cron(schedule, now=ctx.now)
        if card_type is not None and card_type != "none":
            known_card_type(ctx.view(connection), card_type)
        changes: dict[str, Any] = {
            "runner": runner,
            "model": None if model is None else checked_model_name(model, field="model"),
            "default_prompt": default_prompt,
            "schedule": schedule,
            "card_type": card_type,
            "review_decisions": review_decisions,
            "timeout_seconds": timeout_seconds,
            "tools": None if tools is None else checked_tools(tools),
        }
        given = {name: value for name, value in changes.items() if value is not None}
        cleared = {name: None for name in ("runner", "card_type") if given.get(name) == "none"}
        cleared |= {name: None for name in ("schedule",) if given.get(name) == "off"}
        settings = replace(former, **{**given, **cleared})
        if resume:
            settings = replace(settings, stopped_at=None, stop_reason=None)
        refuse_incomplete(ctx, target, settings)
        if settings != former:
            settings = replace(settings, known_at=ctx.now, recorded_at=ctx.now)
            transaction.revise(AGENT_SETTINGS, settings)
        shared = session_of(ctx.view(connection), target.id).is_shared
        if share_session is True and not shared:
            share(transaction, ctx, target)
        if share_session is False and shared:
            add_event(transaction, ctx, target.id, "unshared")
    changed = sorted(name for name in given if getattr(settings, name) != getattr(former, name))
    changed += ["share_session"] if share_session not in (None, shared) else []
    sentences = [f"Changed {', '.join(changed)}."] if changed else []
    if resume:
        sentences.append("It was not stopped." if former.stopped_at is None else f"Resumed {target.name}.")
    unchanged = "Already so: nothing was changed." if given or share_session is not None else NOTHING_GIVEN
    message = " ".join(sentences) or unchanged
    return ConfiguredDeployment(
        deployment=target.name,
        settings=settings,
        shares_session=shared if share_session is None else share_session,
        message=message,
    )


def _add_or_replay(transaction: Transaction, owner: str, deployment: Deployment) -> Deployed:
    existing = stored.deployment(transaction.connection, owner, deployment.id)
    if existing is None:
        transaction.add(stored.DEPLOYMENTS, deployment)
        return Deployed(deployment=deployment, replayed=False)
    if replace(deployment, known_at=existing.known_at, recorded_at=existing.recorded_at) != existing:
        running = f"version {existing.strategy_version} of {existing.strategy_name!r}"
        message = f"{existing.name!r} already runs {running}, or runs with other settings; choose another name"
        raise Conflict(message, field="name")
    return Deployed(deployment=existing, replayed=True)
