"""Accounts, strategies and deployments at rest."""

from sqlalchemy import Connection, or_

from backsight.core.instants import Horizon
from backsight.core.portfolio import Account
from backsight.core.strategies import Deployment, Strategy
from backsight.store.mapping import noun
from backsight.store.reading import fetch, fetch_one, matching, owned, within

ACCOUNTS = noun(Account, "accounts")
STRATEGIES = noun(Strategy, "strategies", key=("id", "version"), indexes=[("name",)])
DEPLOYMENTS = noun(Deployment, "deployments", within={"accounts": ("account_id",)}, indexes=[("name",)])


def account(connection: Connection, owner: str, named: str) -> Account | None:
    """The account of this id, or this name where only one has it."""
    c = ACCOUNTS.table.c
    found = fetch(connection, ACCOUNTS, owned(ACCOUNTS, owner, or_(c.id == named, c.name == named)).limit(2))
    return found[0] if len(found) == 1 else None


def account_names(connection: Connection, owner: str) -> list[str]:
    """The names of an owner's accounts."""
    return [a.name for a in fetch(connection, ACCOUNTS, owned(ACCOUNTS, owner).order_by(ACCOUNTS.table.c.name))]


def strategy(connection: Connection, owner: str, name: str, version: int | None = None) -> Strategy | None:
    """This version of a strategy, or its latest."""
    c = STRATEGIES.table.c
    statement = owned(STRATEGIES, owner, *matching(STRATEGIES, name=name, version=version))
    return fetch_one(connection, STRATEGIES, statement.order_by(c.version.desc()))


def deployment(connection: Connection, owner: str, named: str) -> Deployment | None:
    """The deployment of this id or name."""
    c = DEPLOYMENTS.table.c
    return fetch_one(connection, DEPLOYMENTS, owned(DEPLOYMENTS, owner, or_(c.id == named, c.name == named)))


def deployments(connection: Connection, owner: str, horizon: Horizon) -> list[Deployment]:
    """All deployments known then, by name."""
    statement = owned(DEPLOYMENTS, owner, *within(DEPLOYMENTS, horizon))
    return fetch(connection, DEPLOYMENTS, statement.order_by(DEPLOYMENTS.table.c.name))
