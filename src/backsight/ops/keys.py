"""Keys: a server knows its callers by them. The secret of a key is shown once and stored as a hash."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from backsight.arguments import AsOf, Key, Name, SeenAt
from backsight.core.errors import Conflict, NotFound
from backsight.core.keys import (
    SECRET_BYTES,
    ApiKey,
    Audience,
    KeyScope,
    KeyStatus,
    hash_secret,
    key_id,
    token_of,
)
from backsight.operation import command, query
from backsight.services.context import Context
from backsight.services.id_prefixes import whole_id
from backsight.store import keys as stored


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """What is known of a key; its secret is not stored."""

    id: str
    name: str
    audience: Audience
    scope: KeyScope
    status: KeyStatus
    actor: str
    """The name of the key in the audit chain."""
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedKey:
    """A new key and its token, which is shown now and never again."""

    key: KeyRecord
    token: str
    """Send it as `Authorization: Bearer TOKEN`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyList:
    """The keys, newest first."""

    keys: tuple[KeyRecord, ...]
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokedKey:
    """The key, and whether it was revoked before."""

    key: KeyRecord
    replayed: bool


@command(idempotent=False)
def create_key(
    ctx: Context,
    *,
    name: Annotated[Name, "Whose key it is, like 'btc-agent'; no two active keys have the same name."],
    audience: Annotated[
        Audience, "What its holder is: an agent, a coach, who writes nothing but facts about you, or the owner."
    ] = "trader",
    scope: Annotated[KeyScope, "Whether its holder may write."] = "read",
    valid_days: Annotated[Annotated[int, Field(strict=True, ge=1, le=3650)], "Days until it expires."] = 365,
) -> CreatedKey:
    """Create a key for a caller of the server, and show its token once.

    The audit chain names the key in every link that its holder adds. A holder who approves edits and proposals is an
    owner; give an agent a trader's key, so that it cannot approve its own proposals.
    """
    secret = ctx.randomness.random_bytes(SECRET_BYTES)
    with ctx.writing() as transaction:
        key = ApiKey(
            owner_id=ctx.owner,
            id=key_id(ctx.owner, secret),
            name=name,
            audience=audience,
            scope=scope,
            secret_hash=hash_secret(secret),
            created_at=ctx.now,
            expires_at=ctx.now + timedelta(days=valid_days),
            revoked_at=None,
            known_at=ctx.now,
            recorded_at=ctx.now,
        )
        keys = stored.keys(ctx.view(transaction.connection))
        if any(each.name == name and each.status(ctx.now) == "active" for each in keys):
            raise Conflict(f"an active key is named {name!r}; revoke it, or choose another name", field="name")
        transaction.add(stored.KEYS, key)
    return CreatedKey(key=_record(key, ctx.now), token=token_of(ctx.owner, secret))


@query()
def list_keys(ctx: Context, *, as_of: AsOf = None, seen_at: SeenAt = None) -> KeyList:
    """List the keys of this owner, newest first, with their audience, scope and status; never their secrets."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        keys = tuple(_record(key, view.as_of) for key in stored.keys(view))
    return KeyList(keys=keys, as_of=view.as_of)


@command()
def revoke_key(
    ctx: Context, *, key_id: Annotated[Key, "The id of the key, or its first characters; see list_keys."]
) -> RevokedKey:
    """Revoke a key: from now on every call with it is refused."""
    with ctx.writing() as transaction:
        connection = transaction.connection
        key = stored.key(connection, ctx.owner, whole_id(connection, ctx.owner, stored.KEYS, key_id, field="key_id"))
        if key is None:
            raise NotFound(f"no key has the id {key_id[:40]!r}; list_keys shows the ids", field="key_id")
        replayed = key.revoked_at is not None
        if not replayed:
            key = replace(key, revoked_at=ctx.now, known_at=ctx.now, recorded_at=ctx.now)
            transaction.revise(stored.KEYS, key)
    return RevokedKey(key=_record(key, ctx.now), replayed=replayed)


def _record(key: ApiKey, at: datetime) -> KeyRecord:
    return KeyRecord(
        id=key.id,
        name=key.name,
        audience=key.audience,
        scope=key.scope,
        status=key.status(at),
        actor=key.actor,
        created_at=key.created_at,
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
    )
