"""The rules and incidents that concern a decision are in its prompt, with citations."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backsight.core.decision import Prompt, Segment, Verdict
from backsight.core.strategies import MemoryOverrides
from backsight.core.text.tokens import estimate
from backsight.importers.workspace import Workspace
from backsight.memory import Memory, open_memory
from backsight.settings import Settings
from backsight.testing import FakeClock, a_snapshot

MANUAL = """# Trading manual

## R3_POSITION_CAP

- Never hold more than 2% of equity in BTC.
- ETH: half of that.

## R4_STOPS

Every trade has a stop, set
before it is entered.
"""
INCIDENT = "# Bridge\n\nBTC orders hung (E1042): restart the bridge before anything else.\n"
SECTION = "rules_and_incidents"


@pytest.fixture
def memory(url: str, tmp_path: Path, clock: FakeClock) -> Iterator[Memory]:
    Workspace(tmp_path).lay_out()
    (tmp_path / "TRADING_MANUAL.md").write_text(MANUAL)
    (tmp_path / "memory/incidents/bridge.md").write_text(INCIDENT)
    with open_memory(settings=Settings(url=url, owner="ana", workspace=str(tmp_path)), clock=clock) as opened_memory:
        opened_memory.open_account(venue="x", name="main")
        opened_memory.save_strategy(name="S")
        opened_memory.deploy(strategy_name="S", account="main")
        opened_memory.deploy(strategy_name="S", account="main", name="silent", memory=MemoryOverrides(enabled=False))
        yield opened_memory


def opened(memory: Memory, clock: FakeClock, *, deployment: str = "S@main", budget: int | None = None) -> Prompt:
    clock.advance(minutes=1)
    before, at = a_snapshot(at=clock.now()), clock.now()
    return memory.open_tick(deployment=deployment, at=at, before=before, symbols=["BTC/USDT"], budget=budget)


def protocol(prompt: Prompt) -> str | None:
    return next((segment.text for segment in prompt.system if segment.name == "protocol"), None)


def section(prompt: Prompt) -> Segment | None:
    return next((segment for segment in prompt.segments if segment.name == SECTION), None)


def test_rules_about_the_symbol_come_first_with_their_lines(memory: Memory, clock: FakeClock) -> None:
    assert section(opened(memory, clock)) is None
    memory.reindex()
    prompt = opened(memory, clock)
    rules = section(prompt)
    assert rules is not None
    assert rules.text == (
        "## Rules and incidents that apply here (from the workspace)\n"
        "- R3_POSITION_CAP: Never hold more than 2% of equity in BTC. (TRADING_MANUAL.md:5)\n"
        '- incident: "BTC orders hung (E1042): restart the bridge before anything else."'
        " (memory/incidents/bridge.md:1-3)"
    )
    assert prompt.citations == ("TRADING_MANUAL.md:5", "memory/incidents/bridge.md:1-3")


def test_the_protocol_is_always_in_the_system_prompt(memory: Memory, clock: FakeClock) -> None:
    assert protocol(opened(memory, clock)) is None
    memory.reindex()
    prompt = opened(memory, clock)
    assert protocol(prompt) == (
        "The owner's protocol: rules that always apply, in the owner's order. Cite a rule as FILE:LINE.\n"
        "From SOUL.md:\n"
        "- [3] Who this agent is, what it wants, and what it never does.\n"
        "From TRADING_MANUAL.md:\n"
        "R3_POSITION_CAP:\n"
        "- [5] Never hold more than 2% of equity in BTC.\n"
        "- [6] ETH: half of that.\n"
        "R4_STOPS:\n"
        "- [10-11] Every trade has a stop, set before it is entered."
    )
    assert [segment.name for segment in prompt.system] == ["header", "protocol", "leash", "strategy", "footer"]
    assert protocol(opened(memory, clock, deployment="silent")) == protocol(prompt)
    assert protocol(opened(memory, clock, budget=0)) == protocol(prompt)


def test_an_agent_has_its_own_rules_after_those_of_all(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    (tmp_path / "agents/S").mkdir(parents=True)
    (tmp_path / "agents/S/TRADING_MANUAL.md").write_text("1. Only longs.\n2. Flat at night.\n")
    memory.reindex()
    text = protocol(opened(memory, clock))
    assert text is not None
    assert text.endswith("\nFrom agents/S/TRADING_MANUAL.md:\n- [1] Only longs.\n- [2] Flat at night.")


def test_an_incident_of_the_strategys_folder_is_shown_and_a_pair_has_two_spellings(
    memory: Memory, clock: FakeClock, tmp_path: Path
) -> None:
    (tmp_path / "agents/S/memory/incidents").mkdir(parents=True)
    (tmp_path / "agents/S/memory/incidents/feed.md").write_text("# Feed\n\nBTCUSDT quotes froze (E77).\n")
    (tmp_path / "memory/incidents/session.md").write_text("# Login\n\nThe session expired; sign in again.\n")
    memory.reindex()
    rules = section(opened(memory, clock))
    assert rules is not None
    assert "agents/S/memory/incidents/feed.md:1-3" in rules.text
    assert "session expired" not in rules.text


def test_every_spelling_of_a_pair_gets_the_same_rules_and_the_money_of_another_rule_is_none(
    memory: Memory, clock: FakeClock, tmp_path: Path
) -> None:
    rules = "- EUR/USD: no news.\n- EURUSD: half size.\n- DAX: fees of 2 EUR a lot.\n- BTC: no Sundays.\n"
    (tmp_path / "TRADING_MANUAL.md").write_text(rules)
    memory.reindex()
    shown = {symbol: _lines(memory, clock, symbol) for symbol in ("EURUSD", "EUR/USD", "BTCUSDT", "BTC/USDT")}
    assert shown["EURUSD"] == shown["EUR/USD"]
    assert shown["EURUSD"] == [
        "- a rule: EUR/USD: no news. (TRADING_MANUAL.md:1)",
        "- a rule: EURUSD: half size. (TRADING_MANUAL.md:2)",
    ]
    assert shown["BTCUSDT"] == shown["BTC/USDT"]
    assert shown["BTC/USDT"][0] == "- a rule: BTC: no Sundays. (TRADING_MANUAL.md:4)"


def _lines(memory: Memory, clock: FakeClock, symbol: str) -> list[str]:
    clock.advance(minutes=1)
    at = clock.now()
    prompt = memory.open_tick(deployment="S@main", at=at, before=a_snapshot(at=at), symbols=[symbol])
    rules = section(prompt)
    assert rules is not None
    return rules.text.splitlines()[1:]


def test_incidents_of_a_session_do_not_hide_one_that_names_the_symbol(
    memory: Memory, clock: FakeClock, tmp_path: Path
) -> None:
    for name in "abc":
        (tmp_path / f"memory/incidents/{name}.md").write_text(f"Asian london new york overlap session {name}.\n")
    (tmp_path / "memory/incidents/bridge.md").write_text(INCIDENT + "More was written about it afterwards.\n" * 40)
    memory.reindex()
    rules = section(opened(memory, clock))
    assert rules is not None
    assert next(line for line in rules.text.splitlines() if "incident:" in line).endswith("bridge.md:1-43)")


def test_rules_that_do_not_fit_are_named_and_the_owner_is_warned(
    memory: Memory, clock: FakeClock, tmp_path: Path
) -> None:
    memory.reindex()
    assert memory.index_health().warnings == ()
    rules = [f"{number}. Rule {number} {'holds on every day of every week ' * 10}\n" for number in range(40)]
    (tmp_path / "TRADING_MANUAL.md").write_text("".join(rules))
    memory.reindex()
    text = protocol(opened(memory, clock))
    assert text is not None
    assert estimate(text + "\n\n") <= 1_500
    last = text.count("- [") - 1
    assert text.splitlines()[-1] == f"Not shown for length, read them in: TRADING_MANUAL.md:{last + 1}-40."
    (warning,) = memory.index_health().warnings
    assert warning.startswith(f"{40 - last} of 41 rules of SOUL and manual do not fit into the 1,500 tokens")
    assert f"TRADING_MANUAL.md:{last + 1}-40; shorten the files" in warning


def test_a_manual_is_not_visible_before_it_is_indexed(memory: Memory, clock: FakeClock) -> None:
    before = clock.now()
    clock.advance(hours=1)
    memory.reindex()
    clock.advance(hours=1)
    assert section(memory.preview_context(deployment="S@main", symbols=["BTC"], as_of=before)) is None
    assert section(memory.preview_context(deployment="S@main", symbols=["BTC"])) is not None


def test_citations_shown_are_recorded_with_the_decision(memory: Memory, clock: FakeClock) -> None:
    memory.reindex()
    prompt = opened(memory, clock)
    memory.close_tick(
        deployment="S@main",
        at=clock.now(),
        before=a_snapshot(at=clock.now()),
        verdict=Verdict(kind="noop", detail="R4"),
        shown=list(prompt.memory),
        citations=list(prompt.citations),
    )
    assert memory.list_decisions(deployment="S@main").decisions[0].citations == prompt.citations


def test_without_memory_or_budget_there_are_no_rules(memory: Memory, clock: FakeClock) -> None:
    memory.reindex()
    assert section(opened(memory, clock, deployment="silent")) is None
    nothing = opened(memory, clock, budget=0)
    assert (section(nothing), nothing.citations) == (None, ())
