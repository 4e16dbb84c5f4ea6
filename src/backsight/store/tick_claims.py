"""Stored claims of live loops on accounts: working state, like a lock, that the audit chain does not record."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, insert, update

from backsight.core.tick_claim import TickClaim
from backsight.store.mapping import UtcInstant, noun
from backsight.store.reading import OWNED, fetch_one, owned, parameters

CLAIMS = noun(TickClaim, "tick_claims", key=("account_id",), within={"accounts": ("account_id",)})

_C = CLAIMS.table.c
_FORGET_INTENT = (
    update(CLAIMS.table)
    .where(_C.owner_id == OWNED, _C.account_id == bindparam("account"), _C.sequence == bindparam("tick_sequence"))
    .where(_C.at == bindparam("tick_at", type_=UtcInstant()))
    .values(intent=None)
)


def claim_of(connection: Connection, owner: str, account_id: str) -> TickClaim | None:
    """The claim on an account, expired or not."""
    return fetch_one(connection, CLAIMS, owned(CLAIMS, owner, _C.account_id == account_id))


def save_claim(connection: Connection, claim: TickClaim) -> None:
    """Write the claim on an account; it replaces the one before."""
    delete_claim(connection, claim.owner_id, claim.account_id)
    connection.execute(insert(CLAIMS.table), CLAIMS.to_row(claim))


def forget_intent(connection: Connection, owner: str, account_id: str, *, at: datetime, sequence: int) -> None:
    """Forget what a tick must close with, because the same transaction closes it; the lease stays."""
    values = parameters(owner, account=account_id, tick_at=at, tick_sequence=sequence)
    connection.execute(_FORGET_INTENT, values)


def delete_claim(connection: Connection, owner: str, account_id: str) -> None:
    """Delete the claim on an account."""
    connection.execute(delete(CLAIMS.table).where(_C.owner_id == owner, _C.account_id == account_id))
