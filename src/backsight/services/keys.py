"""The key of a token: found, compared and checked for every call, so that a revoked key ends at once."""

from backsight.core.errors import Refused
from backsight.core.keys import ApiKey, key_id, read_token
from backsight.services.context import Context
from backsight.store import keys as stored


class Unauthenticated(Refused):
    """The caller is not known: send a key."""

    status = 401
    kind = "Refused"


def key_of_token(ctx: Context, token: str) -> ApiKey:
    """The active key with this token; the owner is the one in the token."""
    parts = read_token(token)
    if parts is None:
        raise Unauthenticated("this is not a key; send the token that create_key showed", field="authorization")
    owner, secret = parts
    with ctx.database.reading(owner) as connection:
        key = stored.key(connection, owner, key_id(owner, secret))
    if key is None or not key.has_secret(secret):
        raise Unauthenticated("this key is not known; ask the owner for one", field="authorization")
    status = key.status(ctx.now)
    if status != "active":
        raise Unauthenticated(f"this key is {status}; ask the owner for another", field="authorization")
    return key


def has_active_key(ctx: Context) -> bool:
    """Whether the owner has a key that may be used now."""
    with ctx.reading() as connection:
        return any(key.status(ctx.now) == "active" for key in stored.keys(ctx.view(connection)))
