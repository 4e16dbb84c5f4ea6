"""The pages without a browser: as of an instant, hostile text, forms, sign-in, headers and an empty store."""

import re
import shutil
from collections.abc import Callable
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from backsight.core.decision import Segment, Verdict
from backsight.core.orders import Order
from backsight.core.strategies import MemoryOverrides
from backsight.memory import Memory, open_memory
from backsight.runtime import demo
from backsight.runtime.clock import SimulatedClock
from backsight.services.context import no_progress
from backsight.services.library import Library
from backsight.services.withheld_memory import withholds_memory
from backsight.surfaces.http_server import HttpOptions, http_application
from backsight.surfaces.web.page import PAGES
from backsight.surfaces.web.visible_text import shown
from backsight.testing import T0, FakeClock, a_snapshot, a_trade_call
from backsight.testing.runners import FakeRunner
from support import LESSONS, deployed, lost_in_ranges, ticked

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
        memory.remember_trade(**a_trade_call(closed_at=clock.now(), symbol="XAUUSD", mode="live"))
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


def test_the_owner_reads_memory_on_a_day_on_which_the_agent_does_not(
    client: TestClient, memory: Memory, clock: FakeClock
) -> None:
    deployed(memory)
    half = memory.deploy(
        strategy_name="VolBreakout", account="main", name="half", memory=MemoryOverrides(holdout=0.5)
    ).deployment
    trade = memory.remember_trade(**a_trade_call(deployment="half", closed_at=T0 - timedelta(days=1))).trade
    card = {"symbol": "XAUUSD", "decision": "WAIT", "summary": "range unresolved"}
    memory.record_run(deployment="half", prompt="Look.", output="o", card_type="trade_decision", result=card)
    while not withholds_memory(half, clock.now()):
        clock.advance(days=1)
    assert memory.recall_memories(symbol="XAUUSD", deployment="half").memories == ()
    page = client.get("/recall?symbol=XAUUSD&deployment=half&direction=long").text
    assert f"/trades/{trade.id}" in page
    assert "Size: No recommendation" in page
    assert "withheld from the agent on 50% of days" in page
    decisions = client.get("/decisions?deployment=half").text
    assert "range unresolved" in decisions
    assert "Memory is withheld today" not in page + decisions


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


class PageCheck(HTMLParser):
    """Collects what a page must not have: scripts in the page, handlers, and addresses that run."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("img", "iframe", "object", "b", "u") or (tag == "script" and "src" not in dict(attrs)):
            self.wrong.append(tag)
        for name, value in attrs:
            runs = name in ("href", "src", "action", "formaction") and not (value or "").startswith(("/", "#"))
            if name.startswith("on") or name == "style" or runs:
                self.wrong.append(f"{tag} {name}={value}")


def test_hostile_text_of_agents_runs_and_documents_is_text(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    agent: dict[str, Any] = {"deployment": "VolBreakout@main"}
    one_line = "<u>{{7*7}}</u>' onclick=alert(1) javascript:alert(2)"
    deployed(memory)
    tick = memory.close_tick(
        **agent,
        at=clock.now(),
        before=a_snapshot(at=clock.now()),
        proposal=Order(symbol="BTC", quantity=1.0, reason=HOSTILE),
        verdict=Verdict(kind="rejected", rule=one_line, detail=HOSTILE),
        shown=[Segment(name="lessons", text=HOSTILE)],
        response=HOSTILE,
        model=one_line,
        citations=["javascript:alert(1)", f"{one_line}:1-2"],
    )
    card = {"symbol": "BTC", "decision": "LONG", "entry": 100.0, "target": 110.0, "stop": 95.0, "summary": HOSTILE}
    asked: dict[str, Any] = {
        **agent,
        "prompt": HOSTILE,
        "output": HOSTILE,
        "model": one_line,
        "card_type": "trade_decision",
    }
    run = memory.record_run(**asked, result=card).run
    clock.advance(minutes=1)
    misfit = memory.record_run(**asked, result={"decision": HOSTILE, "symbol": HOSTILE}).run
    failed = memory.record_run(**agent, prompt=HOSTILE, status="failed", error=HOSTILE).run
    advice: dict[str, Any] = {"conviction_score": 40, "notes": HOSTILE, "suggested_action": "CLOSE"}
    clock.advance(minutes=1)
    memory.record_run(**agent, prompt="p", kind="re_examination", parent=run.id, result=advice)
    lost_in_ranges(memory, until=clock.now())
    memory.reflect(deployment="manual:Fade")
    clock.advance(minutes=1)
    for each in memory.list_proposals(deployment="manual:Fade", status="proposed").proposals:
        memory.reject_proposal(proposal_id=each.proposal.id, reason=HOSTILE)
    lessons = LESSONS.replace("wait for the retest", f"wait {one_line} [x](javascript:a)")
    memory.promote_lessons(**agent, lessons=lessons)
    memory.deploy(strategy_name="VolBreakout", account="main", name=one_line)
    memory.library = Library(folder=str(tmp_path / "library"))
    path = "notes/<u>{{7*7}} onclick=x.md"
    (tmp_path / "library" / "notes").mkdir(parents=True)
    (tmp_path / "library" / path).write_text(f"# {HOSTILE}\n\nretest {HOSTILE}\n")
    memory.reindex()
    memory.propose_edit(path="SOUL.md", text=f"# {HOSTILE}\n", reason=HOSTILE, agent=one_line)
    clock.advance(minutes=1)
    client = client_of(memory)
    addresses: list[tuple[str, dict[str, str]]] = [
        ("/decisions", agent),
        (f"/decisions/{tick.decision.id}", agent),
        *((f"/decisions/run/{each.id}", agent) for each in (run, misfit, failed)),
        ("/lessons", {"deployment": "manual:Fade"}),
        ("/lessons", {"deployment": one_line}),
        ("/prompt", {"deployment": one_line}),
        ("/documents", {"q": "retest", "path": path, **agent}),
    ]
    for address, query in addresses:
        answer = client.get(address, params=query)
        assert answer.status_code == 200, (address, answer.text)
        assert PageCheck(answer.text).wrong == [], address
        assert "{{7*7}}" in answer.text, address
        outside_fields = re.sub(r'(value="[^"]*"|<textarea.*?</textarea>)', "", answer.text, flags=re.DOTALL)
        assert not re.search("[\u202e\u200b]", outside_fields), address
    assert "⟨U+202E⟩⟨U+200B⟩" in client.get(f"/decisions/{tick.decision.id}").text


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
    client.post("/do/edit-fact", data={"fact_id": fact.id, "fact": "I trade at night", "topic": ""}, headers=OWN)
    (fact,) = memory.list_facts().facts
    assert (fact.fact, fact.topic) == ("I trade at night", None)
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


def test_a_belief_and_a_day_open_their_trades(client: TestClient, memory: Memory, clock: FakeClock) -> None:
    memory.remember_trade(**a_trade_call(opened_at=T0 - timedelta(hours=2), closed_at=T0 - timedelta(hours=1)))
    memory.add_belief(proposition="Gold runs.", symbol="XAUUSD", mode="live")
    clock.advance(days=2)
    call = {"opened_at": clock.now() - timedelta(hours=2), "closed_at": clock.now()}
    memory.remember_trade(**a_trade_call(symbol="XAUUSD") | call)
    memory.remember_trade(**a_trade_call(symbol="EURUSD") | call, equity=10_000.0)
    clock.advance(minutes=1)
    evidence = re.search(r'href="(/trades[^"]*belief=[^"]*)"', client.get("/mind").text)
    *_, day = re.findall(r'href="(/trades[^"]*since=[^"]*)"', client.get("/").text)
    assert evidence is not None
    table = client.get(evidence[1].replace("&amp;", "&")).text
    assert table.count(">XAUUSD</td>") == 1
    assert "EURUSD" not in table.partition("<h2>")[0].partition("<tbody>")[2]
    assert ">EURUSD</td>" in client.get(day.replace("&amp;", "&")).text


def test_beliefs_changed_since_before_the_first_trade_are_all_new(client: TestClient, memory: Memory) -> None:
    memory.remember_trade(**a_trade_call())
    memory.add_belief(proposition="Gold trends.", symbol="XAUUSD", mode="live")
    answer = client.get("/mind?deployment=manual:VolBreakout&changed_since=2020-01-01")
    assert answer.status_code == 200
    assert '<td class="n">new</td>' in answer.text


def test_a_document_ends_with_its_last_line_and_an_edit_names_the_line_that_it_changes(
    memory: Memory, tmp_path: Path
) -> None:
    memory.library = Library(folder=str(tmp_path))
    (tmp_path / "TRADING_MANUAL.md").write_text("# Manual\n\nRisk 2%.\n")
    memory.reindex()
    memory.propose_edit(path="TRADING_MANUAL.md", text="# Manual\n\nRisk 1%.\n", reason="Less.", agent="a")
    page = client_of(memory).get("/documents?path=TRADING_MANUAL.md").text
    assert re.findall(r">\s*(\d+)   ", page) == ["1", "2", "3"]
    assert "· line 1" in page
    assert "+++" not in page


def test_a_decision_without_an_order_is_said_in_words(client: TestClient, memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    agent: dict[str, Any] = {"deployment": "VolBreakout@main"}
    memory.close_tick(**agent, at=clock.now(), before=a_snapshot(at=clock.now()), verdict=Verdict(kind="noop"))
    page = client.get("/decisions", params=agent).text
    assert "<td>no order</td>" in page
    assert ">noop<" not in page


def test_every_link_of_every_page_keeps_the_instant(client: TestClient, memory: Memory, clock: FakeClock) -> None:
    memory.remember_trade(**a_trade_call())
    memory.add_belief(proposition="Gold runs.", symbol="XAUUSD", mode="live")
    memory.add_fact(fact="I trade at night", topic="hours")
    at, trade = clock.now(), memory.list_trades(limit=1).trades[0].id
    clock.advance(days=1)
    for path in (*PAGES, f"/trades/{trade}", "/recall?symbol=XAUUSD"):
        page = client.get(f"{path}{'&' if '?' in path else '?'}as_of={at:%Y-%m-%dT%H:%M:%SZ}").text
        links = [
            link for link in re.findall(r'<a [^>]*href="(/[^"]*)"', page) if not link.startswith(("/sign", "/api"))
        ]
        lost = [link for link in links if "as_of=" not in link]
        assert len(links) > len(PAGES)
        assert len(lost) <= 2, (path, lost)  # "now" in the bar, and the prompt as of now on a trade
        assert all(link.partition("?")[0] in (path.partition("?")[0], "/prompt") for link in lost), (path, lost)


def refused_then_sent(memory: Memory, form: str, data: dict[str, str], unchanged: Callable[[], object]) -> str:
    """Send a form as a stranger, which must be refused and change nothing, then as the owner; the page it leads to."""
    before = unchanged()
    answer = client_of(memory, owner=False).post(f"/do/{form}", data=data, headers=OWN)
    assert answer.status_code == 403
    assert "Sign in" in answer.text
    assert unchanged() == before
    answer = client_of(memory).post(f"/do/{form}", data=data, headers=OWN)
    assert (answer.status_code, answer.url.path) == (200, data["back"]), answer.text
    return answer.text


@pytest.mark.parametrize(("decision", "status"), [("accept", "accepted"), ("reject", "rejected")])
def test_a_proposal_is_decided_by_a_form(memory: Memory, clock: FakeClock, decision: str, status: str) -> None:
    lost_in_ranges(memory, until=clock.now())
    memory.reflect(deployment="manual:Fade")
    clock.advance(minutes=1)

    def statuses() -> list[str]:
        return [each.proposal.status for each in memory.list_proposals(deployment="manual:Fade").proposals]

    (proposal, *_) = memory.list_proposals(deployment="manual:Fade", status="proposed").proposals
    assert f'name="proposal_id" value="{proposal.proposal.id}"' in client_of(memory).get("/lessons").text
    data = {"proposal_id": proposal.proposal.id, "decision": decision, "reason": "as I see it", "back": "/lessons"}
    assert "as I see it" in refused_then_sent(memory, "decide-proposal", data, statuses)
    assert statuses().count(status) == 1


@pytest.mark.parametrize(("decision", "text"), [("approve", "# Soul\n"), ("reject", None)])
def test_an_edit_is_decided_by_a_form(memory: Memory, tmp_path: Path, decision: str, text: str | None) -> None:
    memory.library = Library(folder=str(tmp_path))
    edit = memory.propose_edit(path="SOUL.md", text="# Soul\n", reason="to begin with", agent="a").edit
    soul = tmp_path / "SOUL.md"
    assert f'name="edit_id" value="{edit.id}"' in client_of(memory).get("/documents").text
    data = {"edit_id": edit.id, "decision": decision, "reason": "as I see it", "back": "/documents"}
    page = refused_then_sent(memory, "decide-edit", data, lambda: (memory.list_edits().edits, soul.exists()))
    assert 'name="edit_id"' not in page
    assert (soul.read_text() if soul.exists() else None) == text
    assert "as I see it" in page
    assert memory.list_edits().edits[0].decided_reason == "as I see it"


def test_a_session_is_reset_by_a_form(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    agent: dict[str, Any] = {"deployment": "VolBreakout@main"}
    memory.share_session(**agent)
    memory.record_run(**agent, prompt="Look.", output="Flat.", session_after="s")
    clock.advance(minutes=1)
    assert "Reset session" in client_of(memory).get("/decisions").text
    before = memory.session_status(**agent)
    data = {"of_deployment": "VolBreakout@main", "decision": "reset", "back": "/decisions"}
    page = refused_then_sent(memory, "session", data, lambda: memory.session_status(**agent))
    after = memory.session_status(**agent)
    assert before.message != after.message
    assert after.message in page


def test_a_decision_is_re_examined_by_a_form(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    advice = '{"conviction_score": 40, "notes": "The range broke.", "suggested_action": "CLOSE"}'
    memory.runners = lambda _settings: FakeRunner(text=advice)
    memory.configure_deployment(deployment="VolBreakout@main", runner="claude")
    card = {"symbol": "BTC", "decision": "LONG", "entry": 100.0, "target": 110.0, "stop": 95.0}
    asked: dict[str, Any] = {"prompt": "p", "output": "o", "card_type": "trade_decision", "result": card}
    run = memory.record_run(deployment="VolBreakout@main", **asked).run
    clock.advance(hours=1)
    back = f"/decisions/run/{run.id}"
    assert "Re-examine" in client_of(memory).get(back).text

    def children() -> tuple[Any, ...]:
        return memory.conviction_history(run=run.id).re_examinations

    refused_then_sent(memory, "re-examine", {"run": run.id, "back": back}, children)
    memory.in_progress.wait(children()[0].run_id, 30)
    assert "The range broke." in client_of(memory).get(back).text


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


def test_every_part_of_the_page_trades_is_about_the_deployment_of_the_bar(client: TestClient, memory: Memory) -> None:
    for n, mode in enumerate(("live", "sim", "sim")):
        memory.remember_trade(**a_trade_call(strategy_name=mode, mode=mode, closed_at=T0 - timedelta(days=3 - n)))
    page = client.get("/trades").text
    assert '<option value="manual-sim:sim" selected>' in page
    assert "2 closed trades, newest first" in page
    assert "2 closed trades by regime" in page
    every = client.get("/trades?deployment=*").text
    assert "3 closed trades, newest first" in every
    assert 'live <span class="quiet">live</span>' in every
    assert len(client.get("/trades.csv").text.splitlines()) == 3


def test_a_mode_chooses_the_deployment_and_an_unknown_one_is_an_error(client: TestClient, memory: Memory) -> None:
    for mode in ("live", "sim"):
        memory.remember_trade(**a_trade_call(strategy_name=mode, mode=mode))
    page = client.get("/?deployment=manual-sim:sim&mode=live").text
    assert '<option value="manual:live" selected>' in page
    assert "manual-sim:sim</option>" not in page
    for address in ("/?deployment=nope", "/trades?deployment=nope", "/mind?mode=paper", "/trades?mode=paper"):
        assert client.get(address).status_code == 404, address
    assert "as_of=2025-01-01" in client.get("/trades/nope?as_of=2025-01-01").text
    past = client.get("/?deployment=manual:live&as_of=2020-01-01").text
    assert "Nothing here by" in past
    assert "Other deployments" not in past


def test_a_value_that_is_not_understood_is_never_replaced(client: TestClient, memory: Memory) -> None:
    memory.remember_trade(**a_trade_call())
    for address in ("/trades?stop=0", "/trades?target=0", "/trades?by=bogus", "/decisions?kind=bogus"):
        assert client.get(address).status_code == 422, address


def test_later_is_offered_only_in_the_past(client: TestClient, memory: Memory) -> None:
    memory.remember_trade(**a_trade_call())
    assert 'id="later"' not in client.get("/trades").text
    assert 'id="later"' in client.get("/trades?as_of=2025-01-01").text


def test_an_outcome_without_r_has_its_unit(client: TestClient, memory: Memory) -> None:
    for atr in (None, 95.0):
        memory.remember_trade(
            **a_trade_call(
                pnl=20.0, pnl_r=None, entry_price=2_000.0, size=1.0, context_atr_d1=atr, market_context=str(atr)
            )
        )
    page = client.get("/recall?symbol=XAUUSD").text
    assert "+0.21 daily ATR<br>+1.00%</td>" in page  # the mean in each unit
    assert '<td class="n">+1.00%</td>' in page
    assert "+0.01" not in page


def test_a_decision_in_the_list_shows_what_became_of_it(client: TestClient, memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    ticked(memory, clock, deployment="VolBreakout@main")
    opened = {
        each.opened[0]: each.at
        for each in memory.list_decisions(deployment="VolBreakout@main").decisions
        if each.opened
    }
    page = client.get("/decisions?kind=executed&deployment=VolBreakout@main").text
    assert opened
    for trade, at in opened.items():
        row = next(each for each in page.split("<tr>") if f">{at:%Y-%m-%d %H:%M}</time>" in each)
        assert f'<a href="/trades/{trade}' in row


def test_an_account_in_another_currency_is_shown_in_its_currency(client: TestClient, memory: Memory) -> None:
    memory.save_strategy(name="Fade", thesis="Extremes revert.")
    memory.open_account(venue="kraken", name="main", currency="EUR")
    memory.deploy(strategy_name="Fade", account="main")
    call = a_trade_call(deployment="Fade@main", strategy_name="Fade", opened_at=T0 - timedelta(hours=2), closed_at=T0)
    memory.remember_trade(**call, equity=10_000.0)
    assert "EUR" in client.get("/?unit=money").text
    page = client.get("/trades?unit=money").text
    assert '+1,175.00 <span class="quiet">EUR</span>' in page
    assert "net, EUR" in page
    memory.remember_trade(**a_trade_call(strategy_name="In dollars"))
    both = client.get("/trades?deployment=*&unit=money").text
    assert 'class="quiet">EUR</span>' in both
    assert 'class="quiet">USD</span>' in both
    assert "Net adds EUR and USD without conversion" in both
    assert "net, " not in both


def test_a_wrong_address_is_a_page_that_says_what_to_do(client: TestClient) -> None:
    assert "<h1>Not found</h1>" in client.get("/trades/nothing").text
    wrong = ("/?unit=x", "/?as_of=never", "/trades?since=x", "/trades?mae_r_from=nan", "/trades/nothing", "/?period=x")
    for address in wrong:
        answer = client.get(address)
        assert answer.status_code in (404, 422), address
        assert "Nothing was changed" in answer.text


def test_programs_still_get_problem_documents(client: TestClient) -> None:
    answer = client.get("/api/v1/nothing", headers={"accept": "text/html"})
    assert answer.headers["content-type"] == "application/problem+json"
