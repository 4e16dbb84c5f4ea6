"""What people come for, done by clicks alone from the overview: no address is typed, and clicks are counted.

The counts are those of the table in docs/pages/README.md. A click is a link, a button, a radio button, an opened detail
or a choice of a list; typing into a field is none.
"""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from backsight.memory import Memory
from backsight.surfaces.demo import DemoFolder
from browser_support import served, signed_in
from support import LESSONS, lost_in_ranges

TABLE = Path(__file__).parents[2] / "docs" / "pages" / "README.md"
FEBRUARY = datetime(2025, 2, 1, tzinfo=UTC), datetime(2025, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def memory(demo: DemoFolder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """The demo, a second strategy whose losses taught it lessons, and an edit that an agent proposes."""
    place = DemoFolder(path=tmp_path_factory.mktemp("tasks") / "demo")
    shutil.copytree(demo.path, place.path)
    with place.open() as memory:
        last = memory.list_trades(mode="all", limit=1).trades[0].closed_at
        assert last is not None
        lost_in_ranges(memory, until=last.replace(minute=0))
        memory.reflect(deployment="manual:Fade")
        memory.promote_lessons(deployment="manual:Fade", lessons=LESSONS)
        claim = "Fade loses in ranging markets."
        memory.add_belief(proposition=claim, regime="ranging", claims="below", strategy_name="Fade", mode="live")
        manual = (place.workspace / "TRADING_MANUAL.md").read_text().replace("at most 1.5%", "at most 1.2%")
        memory.propose_edit(path="TRADING_MANUAL.md", text=manual, reason="Two stops in a row.", agent="breakout")
        yield memory


@pytest.fixture(scope="module")
def url(memory: Memory) -> Iterator[str]:
    with served(memory) as address:
        yield address


@dataclass
class Visitor:
    """A visitor of the pages who can only click and type."""

    page: Page
    clicks: int = 0

    def click(self, target: Locator | str) -> None:
        self.clicks += 1
        (self.page.get_by_role("link", name=target, exact=True) if isinstance(target, str) else target).click()

    def press(self, button: str) -> None:
        self.click(self.page.get_by_role("button", name=button, exact=True).first)

    def choose(self, field: str, value: str) -> None:
        self.clicks += 1
        self.page.locator(f"select[name={field}]").select_option(value)

    def type(self, field: str, text: str) -> None:
        self.page.locator(f"main [name={field}]").first.fill(text)

    def open(self, part: Locator) -> None:
        self.click(part.locator("summary").first)

    @property
    def heading(self) -> Locator:
        return self.page.locator("h1")


@pytest.fixture
def visitor(browser: Browser, url: str) -> Iterator[Visitor]:
    page = signed_in(browser, url)
    page.set_default_timeout(30_000)
    yield Visitor(page)
    page.context.close()


def clicks_of(task: str) -> int:
    """The number of clicks that the table of the documentation has for a task."""
    row = next(line for line in TABLE.read_text().splitlines() if line.startswith(f"| {task} |"))
    return int(row.split("|")[2])


def test_the_worst_trade_of_a_month_what_it_was_shown_and_what_it_would_be_shown_now(
    visitor: Visitor, memory: Memory
) -> None:
    visitor.click("Trades")
    visitor.type("since", "2025-02-01")
    visitor.type("until", "2025-03-01")
    visitor.choose("order", "worst")
    since, until = FEBRUARY
    worst = memory.list_trades(mode="all", order="worst", since=since, until=until, limit=1).trades[0]
    row = visitor.page.locator("#table .list tbody a").first
    expect(row).to_have_attribute("href", re.compile(worst.id))  # the address changes before the table does
    visitor.click(row)
    visitor.page.wait_for_url(re.compile(f"/trades/{worst.id}"))
    shown = visitor.page.locator("#shown details").first
    visitor.open(shown)
    decision = memory.get_decision(decision_id=worst.entry.snapshot_id or "")
    expect(shown.locator("pre")).to_have_text(decision.shown[0].text)
    assert visitor.clicks == clicks_of("Find the worst trade of a month and what the agent was shown before it")
    visitor.clicks = 0
    visitor.click("What it is shown now")
    expect(visitor.heading).to_have_text("What VolBreakout@demo sees")
    assert "as_of" not in visitor.page.url
    assert visitor.clicks == clicks_of("From there, see what the agent would be shown now")


def test_why_a_memory_was_not_recalled(visitor: Visitor) -> None:
    visitor.click("Trades")
    visitor.click(visitor.page.locator("#table .list tbody tr", has_text="XAUUSD").last.locator("a"))
    visitor.click("What comes to mind in this situation")
    visitor.press("Explain")
    expect(visitor.page.locator("main")).to_contain_text("Why this memory?")
    expect(visitor.page.locator("main")).to_contain_text("candidates")
    assert visitor.clicks == clicks_of("See why a memory was not recalled")


def test_two_revisions_of_the_lessons_are_compared(visitor: Visitor) -> None:
    visitor.choose("deployment", "manual:Fade")
    visitor.click("Lessons")
    rows = visitor.page.locator(".pick-two tbody tr")
    visitor.click(rows.nth(0).get_by_role("radio").first)
    visitor.click(rows.nth(1).get_by_role("radio").last)
    visitor.press("Compare")
    expect(visitor.page.locator(".difference .gone", has_text="wait for the retest")).to_have_count(1)
    assert Axe().run(visitor.page).violations_count == 0, "headings of lessons are below those of the page"
    assert visitor.clicks == clicks_of("Compare two revisions of the lessons")


def test_an_edit_is_approved_with_a_reason(visitor: Visitor, memory: Memory) -> None:
    visitor.click("1 edit of documents to approve or reject.")
    visitor.type("reason", "Less is enough.")
    visitor.press("Approve")
    expect(visitor.page.locator(".edit").first).to_contain_text("Less is enough.")
    assert memory.list_edits().edits[0].status == "approved"
    assert visitor.clicks == clicks_of("Approve an edit")


def test_a_fact_is_corrected(visitor: Visitor, memory: Memory) -> None:
    visitor.click("Facts")
    row = visitor.page.locator("tbody tr", has_text="I trade gold only")
    visitor.open(row)
    row.locator("textarea").fill("I trade gold and silver.")
    visitor.click(row.get_by_role("button", name="Correct"))
    expect(visitor.page.locator("tbody")).to_contain_text("I trade gold and silver.")
    assert "I trade gold and silver." in {each.fact for each in memory.list_facts().facts}
    assert visitor.clicks == clicks_of("Correct a fact")


def test_whether_memory_helps(visitor: Visitor, memory: Memory) -> None:
    expect(visitor.page.locator("main")).to_contain_text("withheld")
    visitor.click("the test compares days")
    answer = memory.does_memory_help(strategy_name="VolBreakout", mode="sim")
    expect(visitor.page.locator("main")).to_contain_text(answer.message)
    assert visitor.clicks == clicks_of("Find out whether memory helps")


def test_what_changed_in_its_beliefs_in_a_week(visitor: Visitor) -> None:
    visitor.choose("deployment", "manual:Fade")
    visitor.click("Mind")
    visitor.click("7 days")
    expect(visitor.page.locator("main")).to_contain_text("Changed since")
    expect(visitor.page.locator("table.list tbody tr").first).to_contain_text("new")
    assert visitor.clicks == clicks_of("Find what changed in its beliefs in a week")


def test_the_audit_is_verified(visitor: Visitor) -> None:
    visitor.click("Health")
    visitor.press("Verify now")
    expect(visitor.page.locator("#verification")).to_contain_text("nothing was changed", timeout=20_000)
    assert visitor.clicks == clicks_of("Verify the audit")


def test_a_rule_of_the_manual_and_the_decisions_that_cite_it(visitor: Visitor) -> None:
    visitor.click("Documents")
    visitor.type("q", "two stops in a row")
    visitor.press("Search")
    visitor.click(visitor.page.locator(".citation a").first)
    expect(visitor.page.locator(".marked", has_text="Two stops in a row").first).to_be_visible()
    visitor.click(visitor.page.locator("#citing a").first)
    expect(visitor.heading).to_have_text("A decision")
    expect(visitor.page.locator("main")).to_contain_text("TRADING_MANUAL.md:10")
    assert visitor.clicks == clicks_of("Find a rule of the manual and a decision that cites it")
