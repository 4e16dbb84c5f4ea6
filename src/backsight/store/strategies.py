"""Accounts, strategies and deployments at rest."""

from typing import Any

from sqlalchemy import BindParameter, Connection, Select, bindparam, or_, select

from backsight.core.instants import Horizon
from backsight.core.portfolio import Account
from backsight.core.strategies import Deployment, Strategy
from backsight.store.mapping import Noun, noun
from backsight.store.reading import OWNED, fetch, fetch_one, matching, owned, parameters, row_cache, within

ACCOUNTS = noun(Account, "accounts")
STRATEGIES = noun(Strategy, "strategies", key=("id", "version"), indexes=[("name",)])
DEPLOYMENTS = noun(Deployment, "deployments", within={"accounts": ("account_id",)}, indexes=[("name",)])


_NAMED: BindParameter[str] = bindparam("named")


def _named(noun: Noun[Any], *, most: int) -> Select[Any]:
    c = noun.table.c
    return select(noun.table).where(c.owner_id == OWNED, or_(c.id == _NAMED, c.name == _NAMED)).limit(most)


_ACCOUNT, _DEPLOYMENT = _named(ACCOUNTS, most=2), _named(DEPLOYMENTS, most=1)


def account(connection: Connection, owner: str, named: str) -> Account | None:
    """The account of this id, or this name where only one has it."""
    held = row_cache(connection)
    if (ACCOUNTS, owner, named) not in held:
        found = fetch(connection, ACCOUNTS, _ACCOUNT, parameters(owner, named=named))
        if len(found) != 1 or found[0].id != named:  # another account may take the name
            return found[0] if len(found) == 1 else None
        held[ACCOUNTS, owner, named] = found[0]
    kept: Account = held[ACCOUNTS, owner, named]
    return kept


def account_names(connection: Connection, owner: str) -> list[str]:
    """The names of an owner's accounts."""
    return [a.name for a in fetch(connection, ACCOUNTS, owned(ACCOUNTS, owner).order_by(ACCOUNTS.table.c.name))]


def strategy(connection: Connection, owner: str, name: str, version: int | None = None) -> Strategy | None:
    """This version of a strategy, or its latest."""
    held, c = row_cache(connection), STRATEGIES.table.c
    if version is not None and (STRATEGIES, owner, name, version) in held:
        kept: Strategy = held[STRATEGIES, owner, name, version]
        return kept
    statement = owned(STRATEGIES, owner, *matching(STRATEGIES, name=name, version=version))
    found = fetch_one(connection, STRATEGIES, statement.order_by(c.version.desc()))
    if found is not None:
        held[STRATEGIES, owner, name, found.version] = found
    return found


def deployment(connection: Connection, owner: str, named: str) -> Deployment | None:
    """The deployment of this id or name."""
    held = row_cache(connection)
    if (DEPLOYMENTS, owner, named) not in held:
        found = fetch_one(connection, DEPLOYMENTS, _DEPLOYMENT, parameters(owner, named=named))
        if found is None:
            return None
        held[DEPLOYMENTS, owner, named] = found
    kept: Deployment = held[DEPLOYMENTS, owner, named]
    return kept


def deployments(connection: Connection, owner: str, horizon: Horizon) -> list[Deployment]:
    """All deployments known then, by name."""
    statement = owned(DEPLOYMENTS, owner, *within(DEPLOYMENTS, horizon))
    return fetch(connection, DEPLOYMENTS, statement.order_by(DEPLOYMENTS.table.c.name))


def deployments_of(connection: Connection, owner: str, account_id: str) -> list[Deployment]:
    """All deployments on an account."""
    return fetch(connection, DEPLOYMENTS, owned(DEPLOYMENTS, owner, DEPLOYMENTS.table.c.account_id == account_id))
