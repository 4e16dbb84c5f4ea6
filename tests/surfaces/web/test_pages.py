"""The pages without a browser: as of an instant, hostile text, forms, sign-in, headers and an empty store."""

import re
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from backsight.memory import Memory, open_memory
from backsight.runtime import demo
from backsight.runtime.clock import SimulatedClock
from backsight.services.context import no_progress
from backsight.surfaces.http_server import HttpOptions, http_application
from backsight.surfaces.web.page import PAGES
from backsight.surfaces.web.visible_text import shown
from backsight.testing import T0, FakeClock, a_trade_call

TOKEN = "token"
OWN = {"origin": "http://127.0.0.1:8765"}
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>{{7*7}}'\"javascript:alert(3)\u202e\u200b"


def client_of(memory: Memory, *, owner: bool = True, **options: Any) -> TestClient:
    app = http_application(memory, HttpOptions(pages_token=TOKEN, **options))
    client = TestClient(app, base_url="http://127.0.0.1:8765", headers={"accept": "text/html"})
    if owner:
        client.get(f"/sign-in?token={TOKEN}")
    return client


@pytest.fixture
def url(tmp_path: Path) -> str:
    """SQLite alone: no page knows the database."""
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def client(memory: Memory) -> TestClient:
    return client_of(memory)


def test_an_empty_store_says_on_every_page_what_would_be_there(client: TestClient) -> None:
    for path in PAGES:
        answer = client.get(path)
        assert answer.status_code == 200
        assert re.search("<h1>[^<]+", answer.text)
        assert "<code>" in answer.text, path


def test_a_page_as_of_an_instant_is_that_of_a_store_without_the_future(tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{name}.db" for name in ("past", "whole")}
    clock = SimulatedClock(demo.START)
    with open_memory("sqlite://", clock=clock) as memory:
        demo.fill(memory, clock, seed=3, days=30, progress=no_progress)
        at = clock.now()
        trade = memory.list_trades(limit=1).trades[0].id
        memory.save(paths["past"])
    shutil.copy(paths["past"], paths["whole"])
    clock.advance(days=3)
    with open_memory(f"sqlite:///{paths['whole']}", clock=clock) as memory:
        memory.remember_trade(**a_trade_call(closed_at=clock.now(), symbol="XAUUSD"))
        memory.annotate_trade(trade_id=trade, reflection="Later words.")
        memory.add_fact(fact="I sleep at night")
        memory.record_verification()
    addresses = [f"{path}?as_of={at:%Y-%m-%dT%H:%M:%SZ}" for path in (*PAGES, f"/trades/{trade}", "/trades.csv")]
    addresses += [f"/trades?order=worst&by=month&as_of={at:%Y-%m-%dT%H:%M:%SZ}"]
    pages: dict[str, list[bytes]] = {}
    for name, path in paths.items():
        with open_memory(f"sqlite:///{path}", clock=clock) as memory:
            client = client_of(memory)
            pages[name] = [client.get(address).content for address in addresses]
    for address, past, whole in zip(addresses, *pages.values(), strict=True):
        assert past == whole, address
        assert b"Later words" not in whole


def test_hostile_text_in_every_field_is_text(client: TestClient, memory: Memory, clock: FakeClock) -> None:
    visible = HOSTILE.replace("\u202e", "").replace("\u200b", "")
    memory.save_strategy(name=visible[:90], thesis=HOSTILE, rules=[HOSTILE], avoid=[HOSTILE])
    memory.open_account(venue=visible[:40], name="<b>main</b>", currency="<i>EUR</i>")
    memory.deploy(strategy_name=visible[:90], account="<b>main</b>", name="<u>d</u>")
    trade = memory.remember_trade(
        **a_trade_call(
            market_context=HOSTILE,
            reflection=HOSTILE,
            tags=["<s>t</s>"],
            deployment="<u>d</u>",
            strategy_name=visible[:90],
            opened_at=T0 - timedelta(hours=1),
        )
    ).trade
    memory.create_trading_plan(
        trigger_condition={"regime": "ranging"}, planned_action={"type": "skip_trade"}, reasoning=HOSTILE
    )
    memory.add_belief(proposition=HOSTILE, symbol="XAUUSD", mode="live")
    memory.remember_inaction(symbol="XAUUSD", strategy_name=visible[:90], reason=HOSTILE)
    memory.add_fact(fact=visible, topic="risk")
    clock.advance(hours=1)
    for path in (*PAGES, f"/trades/{trade.id}", "/recall?symbol=XAUUSD&direction=long", "/no-such-page"):
        answer = client.get(
            path, params={} if "?" in path else {"q": HOSTILE, "symbol": HOSTILE[:20], "topic": HOSTILE}
        )
        assert "<script>alert" not in answer.text, path
        assert "<img" not in answer.text, path
        assert "\u202e" not in re.sub(r'(value="[^"]*"|<textarea.*?</textarea>)', "", answer.text, flags=re.S), path
        for tag in ("<b>main", "<i>EUR", "<u>d", "<s>t"):
            assert tag not in answer.text, path
        assert ">49<" not in answer.text
    assert "⟨U+202E⟩" in client.get(f"/trades/{trade.id}").text


def test_hidden_characters_are_shown() -> None:
    assert shown("a\u202eb\u200bc\u2066\ufe0f\u00ad") == "a⟨U+202E⟩b⟨U+200B⟩c⟨U+2066⟩⟨U+FE0F⟩⟨U+00AD⟩"
    assert shown("−1,5 € · Zürich\n") == "−1,5 € · Zürich\n"


def test_a_form_of_another_site_is_refused(client: TestClient, memory: Memory) -> None:
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site", **OWN}, {}):
        answer = client.post("/do/add-fact", data={"fact": "I trade at night"}, headers=headers)
        assert answer.status_code == 403, headers
    assert memory.list_facts().facts == ()


def test_facts_are_added_corrected_archived_and_erased_with_a_second_question(
    client: TestClient, memory: Memory
) -> None:
    client.post("/do/add-fact", data={"fact": "I trade at nigth", "topic": "hours"}, headers=OWN)
    (fact,) = memory.list_facts().facts
    client.post("/do/edit-fact", data={"fact_id": fact.id, "fact": "I trade at night"}, headers=OWN)
    (fact,) = memory.list_facts().facts
    assert fact.fact == "I trade at night"
    client.post("/do/fact-confidence", data={"fact_id": fact.id, "confidence": "inferred"}, headers=OWN)
    assert "1 inferred fact" in client.get("/").text
    client.post("/do/archive-fact", data={"fact_id": fact.id}, headers=OWN)
    assert memory.list_facts().facts == ()
    client.post("/do/restore-fact", data={"fact_id": fact.id}, headers=OWN)
    assert "type <strong>erase</strong>" in client.get(f"/facts/{fact.id}/erase").text
    assert client.post("/do/erase-fact", data={"fact_id": fact.id}, headers=OWN).status_code == 422
    assert len(memory.list_facts().facts) == 1
    client.post("/do/erase-fact", data={"fact_id": fact.id, "confirm": "erase"}, headers=OWN)
    assert memory.list_facts().facts == ()


def test_beliefs_are_retired_and_plans_cancelled(client: TestClient, memory: Memory) -> None:
    memory.remember_trade(**a_trade_call())
    belief = memory.add_belief(proposition="Gold runs.", symbol="XAUUSD", mode="live").belief.belief
    plan = memory.create_trading_plan(
        trigger_condition={"regime": "ranging"}, planned_action={"type": "skip_trade"}, reasoning="chop"
    ).plan
    page = client.get("/mind").text
    assert "Gold runs." in page
    assert "chop" in page
    client.post("/do/retire-belief", data={"belief_id": belief.id, "reason": "no"}, headers=OWN)
    client.post("/do/cancel-plan", data={"plan_id": plan.id}, headers=OWN)
    assert memory.list_beliefs(mode="live").beliefs == ()
    assert memory.list_plans().plans[0].status == "cancelled"


def test_who_is_not_signed_in_reads_on_this_machine_and_changes_nothing(memory: Memory) -> None:
    stranger = client_of(memory, owner=False)
    assert stranger.get("/").status_code == 200
    answer = stranger.post("/do/add-fact", data={"fact": "I trade at night"}, headers=OWN)
    assert answer.status_code == 403
    assert "Sign in" in answer.text
    assert stranger.get("/sign-in?token=wrong", follow_redirects=False).status_code == 401


def test_where_keys_are_required_a_key_of_the_owner_signs_in(memory: Memory) -> None:
    memory.remember_trade(**a_trade_call(symbol="SECRET"))
    key = memory.create_key(name="me", audience="owner", scope="write").token
    stranger = client_of(memory, owner=False, keys_required=True)
    assert stranger.get("/trades", follow_redirects=False).headers["location"] == "/sign-in"
    assert "SECRET" not in stranger.get("/sign-in").text
    stranger.post("/sign-in", data={"token": key}, headers=OWN)
    assert "SECRET" in stranger.get("/trades").text
    stranger.post("/sign-out", data={"x": ""}, headers=OWN)
    assert stranger.get("/trades", follow_redirects=False).status_code == 303


def test_a_form_leads_back_to_a_page_of_this_server_only(client: TestClient) -> None:
    for target in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/api/v1/x"):
        data = {"fact": f"I trade {target}", "back": target}
        answer = client.post("/do/add-fact", data=data, headers=OWN, follow_redirects=False)
        assert answer.headers["location"] == "/"
        assert client.get("/step", params={"to": target}, follow_redirects=False).status_code in (303, 422)
        assert "evil" not in client.get("/step", params={"to": target}, follow_redirects=False).headers.get(
            "location", ""
        )


def test_an_account_in_another_currency_is_shown_in_its_currency(client: TestClient, memory: Memory) -> None:
    memory.save_strategy(name="Fade", thesis="Extremes revert.")
    memory.open_account(venue="kraken", name="main", currency="EUR")
    memory.deploy(strategy_name="Fade", account="main")
    call = a_trade_call(deployment="Fade@main", strategy_name="Fade", opened_at=T0 - timedelta(hours=2), closed_at=T0)
    memory.remember_trade(**call, equity=10_000.0)
    assert "EUR" in client.get("/?unit=money").text


def test_a_wrong_address_is_a_page_that_says_what_to_do(client: TestClient) -> None:
    wrong = ("/?unit=x", "/?as_of=never", "/trades?since=x", "/trades?mae_r_from=nan", "/trades/nothing", "/?period=x")
    for address in wrong:
        answer = client.get(address)
        assert answer.status_code in (404, 422), address
        assert "Nothing was changed" in answer.text


def test_programs_still_get_problem_documents(client: TestClient) -> None:
    answer = client.get("/api/v1/nothing", headers={"accept": "text/html"})
    assert answer.headers["content-type"] == "application/problem+json"
