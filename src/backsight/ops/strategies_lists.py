"""The owner's strategies with their versions, and the owner's accounts."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from backsight.arguments import AsOf, Name, SeenAt
from backsight.core.portfolio import Account
from backsight.core.strategies import Deployment, Strategy
from backsight.core.text.counts import count_of
from backsight.operation import query
from backsight.services.context import Context
from backsight.services.deployments import deployments_at
from backsight.store import strategies as stored


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyVersions:
    """A strategy by name, its saved versions, newest first, and what runs it."""

    name: str
    versions: tuple[Strategy, ...]
    """Empty if trades were reported for a strategy that was never saved."""
    deployments: tuple[Deployment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyList:
    """The owner's strategies by name."""

    strategies: tuple[StrategyVersions, ...]
    message: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountEntry:
    """An account, and the deployments on it."""

    account: Account
    deployments: tuple[Deployment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountList:
    """The owner's accounts by name."""

    accounts: tuple[AccountEntry, ...]
    message: str
    as_of: datetime


@query(audience=("coach",))
def list_strategies(
    ctx: Context,
    *,
    name: Annotated[Name | None, "Only the strategy of this name."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> StrategyList:
    """List your strategies with every saved version and the deployments that run them."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        versions = stored.strategies(view)
        deployments = deployments_at(view, strategy_name=name)
    names = sorted({each.name for each in versions} | {each.strategy_name for each in deployments})
    strategies = tuple(
        StrategyVersions(
            name=each,
            versions=tuple(version for version in versions if version.name == each),
            deployments=tuple(deployment for deployment in deployments if deployment.strategy_name == each),
        )
        for each in names
        if name in (None, each)
    )
    message = f"{count_of(len(strategies), 'strategy')}, with versions and deployments." if strategies else NO_STRATEGY
    return StrategyList(strategies=strategies, message=message, as_of=view.as_of)


@query(audience=("coach",))
def list_accounts(ctx: Context, *, as_of: AsOf = None, seen_at: SeenAt = None) -> AccountList:
    """List your accounts: venue, currency, mode, and the deployments on each."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        accounts, deployments = stored.accounts(connection, ctx.owner), deployments_at(view)
    used = {each.account_id for each in deployments}  # an account may be made after the first trade reported on it
    entries = tuple(
        AccountEntry(account=account, deployments=tuple(each for each in deployments if each.account_id == account.id))
        for account in accounts
        if account.id in used or view.horizon.holds(account.known_at, account.recorded_at)
    )
    message = f"{count_of(len(entries), 'account')}." if entries else NO_ACCOUNT
    return AccountList(accounts=entries, message=message, as_of=view.as_of)


NO_STRATEGY = "No strategy was known by then; save_strategy saves one, remember_trade names one."
NO_ACCOUNT = "No account was known by then; open_account opens one, and imports open their own."
