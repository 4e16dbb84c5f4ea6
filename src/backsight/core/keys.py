"""API keys: who calls a server, as which audience, whether the caller may write, and until when.

A token is `bsk.OWNER.SECRET`, both in URL-safe base64. The store has the SHA-256 of the secret only; the secret has 256
random bits, so that a plain hash cannot be searched.
"""

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from backsight.core.ids import derive_id

Audience = Literal["trader", "coach", "owner"]
KeyScope = Literal["read", "write"]
KeyStatus = Literal["active", "expired", "revoked"]

SECRET_BYTES = 32
LONGEST_TOKEN = 700
"""Longer texts are not read: an owner's name has at most 100 characters."""
_MARK = "bsk"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key of one owner, without its secret."""

    owner_id: str
    id: str
    name: str
    audience: Audience
    scope: KeyScope
    secret_hash: str
    """SHA-256 of the secret, in hex."""
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    known_at: datetime
    """When the key was created or revoked."""
    recorded_at: datetime

    def status(self, now: datetime) -> KeyStatus:
        """Whether the key may be used at an instant."""
        if self.revoked_at is not None and self.revoked_at <= now:
            return "revoked"
        return "expired" if self.expires_at <= now else "active"

    def has_secret(self, secret: bytes) -> bool:
        """Whether this is the key's secret; the comparison takes the same time wherever the two differ."""
        return hmac.compare_digest(self.secret_hash, hash_secret(secret))

    @property
    def actor(self) -> str:
        """The name of the key in the audit chain."""
        return f"key:{self.id[:8]}:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """What a caller of a server may do."""

    audience: Audience
    may_write: bool
    may_read_all: bool = False
    """Whether the caller may use every query, whatever its audience."""


def hash_secret(secret: bytes) -> str:
    """The stored form of a secret."""
    return hashlib.sha256(secret).hexdigest()


def key_id(owner: str, secret: bytes) -> str:
    """The id of the key with this secret."""
    return derive_id("key", owner, hash_secret(secret))


def token_of(owner: str, secret: bytes) -> str:
    """The token that a caller sends.

    >>> token_of("me", bytes(32))
    'bsk.bWU.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
    """
    return ".".join((_MARK, _encode(owner.encode()), _encode(secret)))


def read_token(token: str) -> tuple[str, bytes] | None:
    """The owner and the secret in a token; None if the text is not a token, to the letter.

    >>> read_token(token_of("ana é", b"1" * 32))
    ('ana é', b'11111111111111111111111111111111')
    >>> [read_token(text) for text in ("", "bsk", "bsk.bWU.short", "bsk.é.é", "bsk.bWU." + "A" * 999)]
    [None, None, None, None, None]
    >>> read_token(token_of("me", bytes(32))[:-1] + "B"), read_token(" ".join(token_of("me", bytes(32))))
    (None, None)
    """
    parts = token.split(".", 3) if len(token) <= LONGEST_TOKEN else []
    if len(parts) != 3 or parts[0] != _MARK:
        return None
    try:
        owner, secret = _decode(parts[1]).decode(), _decode(parts[2])
    except ValueError:
        return None
    if not owner or "\0" in owner or len(secret) != SECRET_BYTES or token_of(owner, secret) != token:
        return None
    return owner, secret


def _encode(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
