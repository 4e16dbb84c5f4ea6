"""Keys: shown once, stored as a hash, limited to an owner, an audience and a scope, expiring, revocable."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from backsight.core.errors import Conflict, NotFound, Refused
from backsight.core.keys import Authority, hash_secret, read_token
from backsight.memory import OPERATIONS, Memory, open_memory
from backsight.services.keys import has_active_key, key_of_token
from backsight.testing import FakeClock, a_trade_call
from support import raw


def test_a_token_is_shown_once_and_stored_as_a_hash(memory: Memory, url: str) -> None:
    created = memory.create_key(name="agent")
    owner, secret = read_token(created.token) or ("", b"")
    assert (owner, len(secret)) == ("ana", 32)
    with raw(url) as connection:
        stored = [
            str(tuple(row))
            for table in ("api_keys", "audit_log")
            for row in connection.execute(text(f"SELECT * FROM {table}"))
        ]
    assert any(hash_secret(secret) in row for row in stored)
    assert not any(created.token.rpartition(".")[2] in row for row in stored)
    assert created.token not in str(memory.list_keys())
    assert memory.verify_audit().intact


def test_two_keys_differ(memory: Memory) -> None:
    assert memory.create_key(name="a").token != memory.create_key(name="b").token


def test_a_token_finds_its_key_until_it_is_revoked(memory: Memory, clock: FakeClock) -> None:
    created = memory.create_key(name="agent", scope="write")
    assert key_of_token(memory, created.token).id == created.key.id
    clock.advance(minutes=1)
    assert memory.revoke_key(key_id=created.key.id[:8]).key.status == "revoked"
    with pytest.raises(Refused, match="this key is revoked"):
        key_of_token(memory, created.token)
    assert memory.revoke_key(key_id=created.key.id).replayed
    assert memory.list_keys(as_of=clock.now() - timedelta(minutes=1)).keys[0].status == "active"


def test_a_key_expires(memory: Memory, clock: FakeClock) -> None:
    created = memory.create_key(name="agent", valid_days=1)
    assert has_active_key(memory)
    clock.advance(hours=24)
    with pytest.raises(Refused, match="this key is expired"):
        key_of_token(memory, created.token)
    assert not has_active_key(memory)
    assert memory.create_key(name="agent", valid_days=1).key.status == "active"  # the name is free again


@pytest.mark.parametrize("place", [0, 4, -43, -1])
def test_another_token_is_refused(memory: Memory, place: int) -> None:
    """Each part of a token counts, down to the bits of its last character that encode nothing."""
    token = memory.create_key(name="agent").token
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    changed = list(token)
    changed[place] = letters[letters.index(changed[place]) ^ 1]
    for other in ("".join(changed), "x" + token, token + "=", "bsk.a.b"):
        with pytest.raises(Refused):
            key_of_token(memory, other)
    assert key_of_token(memory, token)


def test_a_secret_of_one_owner_is_no_key_of_another(memory: Memory, url: str, clock: FakeClock) -> None:
    token = memory.create_key(name="agent").token
    _, _, secret = token.split(".")
    with pytest.raises(Refused, match="not known"):
        key_of_token(memory, f"bsk.Ym9i.{secret}")  # bob
    with open_memory(url, owner="bob", clock=clock) as other:
        assert other.list_keys().keys == ()
        with pytest.raises(NotFound):
            other.revoke_key(key_id=memory.list_keys().keys[0].id)


def test_names_of_active_keys_are_unique_and_a_coach_may_write_facts(memory: Memory) -> None:
    memory.create_key(name="agent")
    with pytest.raises(Conflict, match="an active key is named 'agent'"):
        memory.create_key(name="agent")
    assert memory.create_key(name="coach", audience="coach", scope="write").key.scope == "write"


def test_a_caller_may_do_no_more_than_its_key_says(memory: Memory) -> None:
    agent = memory.for_caller(Authority(audience="trader", may_write=True), actor="key:1:agent")
    agent.remember_trade(**a_trade_call())
    assert memory.export_audit().links[-1].actor == "key:1:agent"
    for name, operation in OPERATIONS.items():
        if "trader" not in operation.audience:
            with pytest.raises(Refused, match=f"{name} needs a key of the"):
                agent.run(operation, {})
    reader = memory.for_caller(Authority(audience="owner", may_write=False), actor="key:2:reader")
    assert reader.list_trades().trades
    for operation in OPERATIONS.values():
        if operation.kind == "command":
            with pytest.raises(Refused, match="only reads"):
                reader.run(operation, {})
