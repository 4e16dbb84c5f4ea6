"""Take the screenshots of every page for docs/pages: `make pictures`.

The store is the demo, to which an agent's edit and a second strategy with a plain weakness are added, so that no page
is empty: the demo's own strategy has nothing that is more than chance.
"""

import argparse
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, sync_playwright

from backsight.core.context import ContextVector
from backsight.memory import Memory
from backsight.surfaces.demo import DemoFolder, fill_folder
from backsight.surfaces.http_server import HttpOptions, base_url, http_application, http_server, listen

ROOT = Path(__file__).parents[1]
CHROMIUM = "/usr/bin/chromium"
TOKEN = "screenshots"
Scheme = Literal["light", "dark"]
Variant = tuple[str, int, Scheme]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
QUESTIONS = {
    "overview": ("/", "How is it going?"),
    "trades": ("/trades", "Which trades, and where do the results come from?"),
    "trade": ("TRADE", "Why this trade, and was it good?"),
    "prompt": ("/prompt", "What does the agent see?"),
    "recall": ("/recall?direction=long&regime=trending_up", "What comes to mind in a situation, and why?"),
    "decisions": ("/decisions?kind=executed", "What did it propose, and what became of it?"),
    "lessons": ("/lessons?deployment=manual:Fade", "What did it learn, and does it help?"),
    "mind": ("/mind?deployment=manual:Fade", "What does it believe and do?"),
    "documents": ("/documents?q=daily+loss", "What is written, and where?"),
    "facts": ("/facts", "What does it know of me?"),
    "health": ("/status", "Can I trust it?"),
}
VARIANTS: tuple[Variant, ...] = (("", 1180, "light"), ("-dark", 1180, "dark"), ("-narrow", 375, "light"))


@contextmanager
def served(memory: Memory) -> Iterator[str]:
    """The pages over a memory, at an address of this machine."""
    listener = listen("127.0.0.1", 0)
    server = http_server(http_application(memory, HttpOptions(pages_token=TOKEN)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield base_url(listener)
    finally:
        server.should_exit = True
        thread.join(timeout=20)


def add_strategy_and_edit(place: DemoFolder, memory: Memory) -> None:
    """A strategy that loses in ranging markets, its lessons, a belief of the owner, and an edit that waits."""
    until = memory.list_trades(mode="all", limit=1).trades[0].known_at
    for number in range(32):
        ranging, closed = number % 2 == 0, until - timedelta(days=33 - number)
        r = (-1.0 if ranging or number == 5 else 1.2) * (1.0 + number / 100)
        memory.remember_trade(
            strategy_name="Fade",
            symbol="EURUSD",
            direction="long" if number % 3 else "short",
            entry_price=1.08,
            exit_price=1.08 + r / 1_000,
            pnl=100.0 * r,
            pnl_r=r,
            context=ContextVector(regime="ranging" if ranging else "trending_up"),
            opened_at=closed - timedelta(hours=5),
            closed_at=closed,
        )
        if number == 0:
            claim = "Fade loses in ranging markets."
            memory.add_belief(proposition=claim, regime="ranging", claims="below", strategy_name="Fade", mode="live")
    memory.reflect(deployment="manual:Fade")
    text = memory.list_lessons(deployment="manual:Fade").notes[0].lessons_text
    own = text.replace("(no clear pattern yet)", "- wait for the retest of the range", 1)
    memory.promote_lessons(deployment="manual:Fade", lessons=own)
    manual = (place.workspace / "TRADING_MANUAL.md").read_text().replace("at most 1.5%", "at most 1.2%")
    reason = "Three of the last four stops cost more than planned."
    memory.propose_edit(path="TRADING_MANUAL.md", text=manual, reason=reason, agent="breakout")


def take(page: Page, url: str, path: str, file: Path, *, height: int) -> None:
    page.goto(url + path)
    page.wait_for_load_state("networkidle")
    size = min(height, page.evaluate("document.documentElement.scrollHeight"))
    width = page.evaluate("document.documentElement.clientWidth")
    page.screenshot(path=file, clip={"x": 0, "y": 0, "width": width, "height": size}, full_page=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--demo", type=Path, help="The folder of a demo; made anew if left out.")
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "pages")
    parser.add_argument("--only", nargs="*", default=list(QUESTIONS))
    parser.add_argument("--height", type=int, default=690, help="Most pixels of a picture.")
    parser.add_argument("--all-widths", action="store_true", help="Light and dark, at 1180, 768 and 375 pixels.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        place = DemoFolder(path=options.demo or Path(folder) / "demo")
        fill_folder(place, seed=7, days=364)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        variants: Sequence[Variant] = (
            [(f"-{width}-{scheme}", width, scheme) for width in (1180, 768, 375) for scheme in SCHEMES]
            if options.all_widths
            else VARIANTS
        )
        with place.open() as memory, served(memory) as url:
            if len(memory.list_strategies().strategies) == 1:
                add_strategy_and_edit(place, memory)
            listed = memory.list_trades(mode="sim", order="worst", limit=100).trades
            halfway = sorted(each.known_at for each in listed)[len(listed) // 2]  # before, little was there to recall
            worst = next(each.id for each in listed if each.memory_arm == "shown" and each.known_at > halfway)
            options.into.mkdir(parents=True, exist_ok=True)
            for suffix, width, scheme in variants:
                context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
                page = context.new_page()
                page.goto(f"{url}/sign-in?token={TOKEN}")
                for name in options.only:
                    path = QUESTIONS[name][0].replace("TRADE", f"/trades/{worst}")
                    take(page, url, path, options.into / f"{name}{suffix}.png", height=options.height)
                context.close()
        browser.close()
    sys.stdout.write(f"{len(options.only) * len(variants)} pictures in {options.into}\n")


if __name__ == "__main__":
    main()
