"""A browser, and the pages of a small demo, an empty store and a store of hostile text."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from backsight.memory import open_memory
from backsight.surfaces.demo import DemoFolder, fill_folder
from browser_support import CHROMIUM, served, signed_in


@pytest.fixture(scope="session")
def chromium() -> str:
    """The program of the browser; tests are skipped without it, before anything is made for them."""
    if CHROMIUM is None:
        pytest.skip("NO CHROMIUM: the tests of the pages in a browser are skipped; install chromium")
    return CHROMIUM


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Closed with its module: while the driver runs, nothing else in this process can run an event loop."""
    expect.set_options(timeout=30_000)  # the default of five seconds is short where other tests use the processor
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def demo(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> DemoFolder:
    place = DemoFolder(path=tmp_path_factory.mktemp("demo"))
    fill_folder(place, seed=7, days=90)
    return place


@pytest.fixture(scope="session")
def demo_url(demo: DemoFolder) -> Iterator[str]:
    with demo.open() as memory, served(memory) as url:
        yield url


@pytest.fixture(scope="session")
def empty_url(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("empty") / "store.db"
    with open_memory(f"sqlite:///{path}", owner="ana") as memory, served(memory) as url:
        yield url


@pytest.fixture
def page(browser: Browser, demo_url: str) -> Iterator[Page]:
    opened = signed_in(browser, demo_url)
    yield opened
    opened.context.close()
