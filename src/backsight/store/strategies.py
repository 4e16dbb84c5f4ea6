"""The tables of accounts, strategies and deployments, and lookups by name or id."""

from typing import Any

from sqlalchemy import BindParameter, Connection, Select, bindparam, or_, select

from backsight.core.instants import Horizon
from backsight.core.portfolio import Account
from backsight.core.strategies import Deployment, Strategy
from backsight.store.mapping import Noun, noun
from backsight.store.reading import OWNED, fetch, fetch_one, matching, owned, parameters, row_cache, within
from backsight.store.unchanged import unchanged
from backsight.store.view import EVERYTHING, View

ACCOUNTS = noun(Account, "accounts")
STRATEGIES = noun(Strategy, "strategies", key=("id", "version"), indexes=[("name",)])
DEPLOYMENTS = noun(Deployment, "deployments", within={"accounts": ("account_id",)}, indexes=[("name",)])


_KEY: BindParameter[str] = bindparam("key")


def _by_key(noun: Noun[Any], *, most: int) -> Select[Any]:
    c = noun.table.c
    return select(noun.table).where(c.owner_id == OWNED, or_(c.id == _KEY, c.name == _KEY)).limit(most)


_ACCOUNT, _DEPLOYMENT = _by_key(ACCOUNTS, most=2), _by_key(DEPLOYMENTS, most=1)


def account(connection: Connection, owner: str, key: str) -> Account | None:
    """The account with this id, or with this name if only one account has it."""
    cache = row_cache(connection)
    if (ACCOUNTS, owner, key) not in cache:
        matches = fetch(connection, ACCOUNTS, _ACCOUNT, parameters(owner, key=key))
        if len(matches) != 1 or matches[0].id != key:  # not cached: another account may take the name
            return matches[0] if len(matches) == 1 else None
        cache[ACCOUNTS, owner, key] = matches[0]
    cached: Account = cache[ACCOUNTS, owner, key]
    return cached


def accounts(connection: Connection, owner: str) -> list[Account]:
    """An owner's accounts, by name."""
    c = ACCOUNTS.table.c
    return fetch(connection, ACCOUNTS, owned(ACCOUNTS, owner).order_by(c.name, c.id))


def account_names(connection: Connection, owner: str) -> list[str]:
    """The names of an owner's accounts."""
    return [account.name for account in accounts(connection, owner)]


def strategy(connection: Connection, owner: str, name: str, version: int | None = None) -> Strategy | None:
    """This version of a strategy, or the latest version."""
    cache, c = row_cache(connection), STRATEGIES.table.c
    if version is not None and (STRATEGIES, owner, name, version) in cache:
        cached: Strategy = cache[STRATEGIES, owner, name, version]
        return cached
    statement = owned(STRATEGIES, owner, *matching(STRATEGIES, name=name, version=version))
    latest = fetch_one(connection, STRATEGIES, statement.order_by(c.version.desc()))
    if latest is not None:
        cache[STRATEGIES, owner, name, latest.version] = latest
    return latest


def strategies(view: View) -> list[Strategy]:
    """Every saved version of every strategy that was known at a horizon: by name, newest version first."""
    c = STRATEGIES.table.c
    statement = owned(STRATEGIES, view.owner, *within(STRATEGIES, view.horizon))
    return fetch(view.connection, STRATEGIES, statement.order_by(c.name, c.version.desc()))


STRATEGY_NAMES = "strategy names"
"""The key of an owner's `strategy_names`, see `Database.last_value`."""


def strategy_names(connection: Connection, owner: str) -> set[str]:
    """The names of all strategies that were saved or that have a deployment."""

    def read() -> set[str]:
        columns = (STRATEGIES.table.c.name, DEPLOYMENTS.table.c.strategy_name)
        statements = (select(column).distinct().where(column.table.c.owner_id == owner) for column in columns)
        return {name for statement in statements for name in connection.execute(statement).scalars()}

    return unchanged(connection, owner, STRATEGY_NAMES, (STRATEGIES, DEPLOYMENTS), read)


def is_saved(view: View, name: str) -> bool:
    """Whether a version of a strategy with this name was saved by then."""
    statement = owned(STRATEGIES, view.owner, *within(STRATEGIES, view.horizon), *matching(STRATEGIES, name=name))
    return fetch_one(view.connection, STRATEGIES, statement) is not None


def deployment(connection: Connection, owner: str, key: str) -> Deployment | None:
    """The deployment with this id or name."""
    cache = row_cache(connection)
    if (DEPLOYMENTS, owner, key) not in cache:
        match = fetch_one(connection, DEPLOYMENTS, _DEPLOYMENT, parameters(owner, key=key))
        if match is None:
            return None
        cache[DEPLOYMENTS, owner, key] = match
    cached: Deployment = cache[DEPLOYMENTS, owner, key]
    return cached


def deployments(view: View) -> list[Deployment]:
    """All deployments that were known at a horizon, by name."""
    statement = owned(DEPLOYMENTS, view.owner, *within(DEPLOYMENTS, view.horizon))
    return fetch(view.connection, DEPLOYMENTS, statement.order_by(DEPLOYMENTS.table.c.name))


def deployments_recorded(view: View, *, strategy_name: str | None = None) -> list[Deployment]:
    """All deployments recorded by a view's `seen_at`, by name, also those made after its `as_of`."""
    recorded = Horizon(as_of=EVERYTHING.as_of, seen_at=view.seen_at)
    statement = owned(
        DEPLOYMENTS, view.owner, *within(DEPLOYMENTS, recorded), *matching(DEPLOYMENTS, strategy_name=strategy_name)
    )
    return fetch(view.connection, DEPLOYMENTS, statement.order_by(DEPLOYMENTS.table.c.name))


def deployments_of(connection: Connection, owner: str, account_id: str) -> list[Deployment]:
    """All deployments on an account."""
    return fetch(connection, DEPLOYMENTS, owned(DEPLOYMENTS, owner, DEPLOYMENTS.table.c.account_id == account_id))
