"""Whom a server lets in, and as whom, with a real server and real clients."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from backsight.core.errors import Refused
from backsight.memory import OPERATIONS, open_memory
from backsight.services.keys import Unauthenticated
from backsight.surfaces.access import Door
from backsight.surfaces.http_server import listen
from backsight.surfaces.mcp_tools import tools_for
from backsight.surfaces.rest import path_of
from backsight.testing import T0, FakeClock, a_trade_call
from parity.surfaces import mcp_client, owner_token, served

CLOCK = FakeClock(T0)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("BACKSIGHT_WORKSPACE", str(tmp_path / "workspace"))
    return f"sqlite:///{tmp_path}/store.db"


@contextmanager
def client(address: str, token: str | None = None) -> Iterator[httpx.Client]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=address, headers=headers, timeout=30) as made:
        yield made


def post(made: httpx.Client, operation: str, **arguments: Any) -> httpx.Response:
    return made.post(path_of(OPERATIONS[operation]), json=arguments)


def test_an_agent_without_a_key_proposes_and_the_owner_with_a_key_approves(store: str) -> None:
    async def over_mcp(address: str) -> tuple[list[str], Any]:
        async with mcp_client(address) as made:
            names = [tool.name for tool in (await made.list_tools()).tools]
            return names, await made.call_tool("remember_trade", a_trade_call())

    token = owner_token(store, CLOCK)
    with served(store, CLOCK) as address, client(address) as agent, client(address, token) as owner:
        names, remembered = anyio.run(over_mcp, address)
        assert names == list(tools_for("trader"))
        assert not remembered.is_error
        proposed = post(agent, "propose_edit", path="SOUL.md", text="# Soul\n", reason="to begin", agent="a").json()
        approval = {"edit_id": proposed["edit"]["id"]}
        refused = post(agent, "approve_edit", **approval)
        assert (refused.status_code, refused.json()["field"]) == (403, "authorization")
        assert "needs a key of the owner" in refused.json()["detail"]
        assert post(agent, "create_key", name="mine", audience="owner").status_code == 403
        assert post(owner, "approve_edit", **approval).status_code == 200
        actors = [link["actor"] for link in post(owner, "export_audit").json()["links"]]
    assert actors[1:3] == ["mcp", "http"]
    assert actors[3].startswith("key:")
    assert actors[3].endswith(":parity")


def test_over_rest_every_query_can_be_used_on_this_machine(store: str) -> None:
    with served(store, CLOCK) as address, client(address) as anyone:
        assert post(anyone, "verify_audit").json()["intact"] is True


def test_a_revoked_key_ends_at_once(store: str) -> None:
    token = owner_token(store, CLOCK)
    with served(store, CLOCK) as address, client(address, token) as owner:
        (key,) = post(owner, "list_keys").json()["keys"]
        assert post(owner, "revoke_key", key_id=key["id"]).status_code == 200
        refused = post(owner, "list_keys")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert token not in refused.text


def test_with_keys_required_nobody_comes_in_without_one(store: str) -> None:
    with served(store, CLOCK, keys_required=True) as address, client(address) as anyone:
        assert anyone.get("/health").json() == {"status": "ok"}
        assert {anyone.post("/mcp", json={}).status_code, post(anyone, "list_trades").status_code} == {401}
        assert anyone.get("/metrics").status_code == 401


def test_a_key_leads_to_its_owners_rows_only(store: str) -> None:
    with open_memory(store, owner="ana", clock=CLOCK) as ana:
        trade = ana.remember_trade(**a_trade_call()).trade
    with open_memory(store, owner="bob", clock=CLOCK) as bob:
        token = bob.create_key(name="bob", audience="owner", scope="write").token
    with served(store, CLOCK) as address, client(address, token) as made:
        assert post(made, "list_trades", mode="all").json()["trades"] == []
        assert post(made, "get_trade", trade_id=trade.id).status_code == 404
        assert post(made, "append_note", text="x", agent="bob").status_code == 422  # the workspace is Ana's
        assert post(made, "remember_trade", **a_trade_call()).status_code == 200
    with open_memory(store, owner="bob", clock=CLOCK) as bob:
        assert len(bob.list_trades().trades) == 1
        assert bob.export_audit().links[-1].actor.endswith(":bob")


def test_the_endpoint_of_another_audience_needs_its_key(store: str) -> None:
    with open_memory(store, owner="ana", clock=CLOCK) as memory:
        tokens = {name: memory.create_key(name=name, audience=name).token for name in ("trader", "coach", "owner")}
        door = Door(memory, mcp_audience="coach")
        with pytest.raises(Unauthenticated):
            door.caller(None, mcp=True)
        with pytest.raises(Refused, match="this endpoint is the coach's"):
            door.caller(f"Bearer {tokens['trader']}", mcp=True)
        for name in ("coach", "owner"):
            assert door.caller(f"Bearer {tokens[name]}", mcp=True).actor.endswith(f":{name}")
        with pytest.raises(Unauthenticated):
            door.caller("Basic x", mcp=False)


def test_other_addresses_need_a_key(store: str) -> None:
    with open_memory(store, owner="ana", clock=CLOCK) as memory:
        with pytest.raises(Refused, match="no key exists"):
            listen("0.0.0.0", 0, memory=memory)
        memory.create_key(name="agent")
        listen("0.0.0.0", 0, memory=memory).close()
