"""Help for tests in a browser: a server of the pages, and a browser whose user is the owner."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page

from backsight.memory import Memory
from backsight.surfaces.http_server import HttpOptions, base_url, http_application, http_server, listen

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
TOKEN = "token-of-the-tests"


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


def signed_in(browser: Browser, url: str, **options: object) -> Page:
    """A page of a new context whose owner is signed in; requests that fail and refused scripts fail the test."""
    context = browser.new_context(**options)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{url}/sign-in?token={TOKEN}")
    return page
