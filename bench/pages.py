"""CPU time of the server and size of every page, fragment and step of the slider, at 100,000 trades.

The store is that of `bench.time_travel`: imported trades in a SQLite file; `--folder` keeps it for another run. Each
address is asked once to warm up, then `--runs` times; the table has the median of the CPU time of this process, in
which the application runs without a network. The instants of the slider are 1, 10, 50, 90 and 99 % of the way.
Run it as `python -m bench.pages`.
"""

import argparse
import platform
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from starlette.testclient import TestClient

from backsight.surfaces.http_server import HttpOptions, http_application
from bench.time_travel import Store
from bench.write import closed_at

PAGES = (
    "/",
    "/trades",
    "/trades?order=worst&since=2020-01-01",
    "/trades/ID",
    "/prompt",
    "/recall?symbol=BTC&direction=long&regime=ranging",
    "/decisions",
    "/lessons",
    "/mind",
    "/documents",
    "/facts",
    "/status",
)
FRAGMENTS = (
    "/trades?fragment=table&result=lost",
    "/trades/ID?fragment=chart",
    "/recall?fragment=results&symbol=BTC&direction=long",
    "/status?fragment=verification",
    "/instants",
)
SHARES = (0.01, 0.1, 0.5, 0.9, 0.99)


def measured(client: TestClient, path: str, runs: int) -> tuple[float, int]:
    """The median CPU time of a request in milliseconds, and the bytes of its answer."""
    answer = client.get(path)
    if answer.status_code != 200:
        raise RuntimeError(f"{path}: {answer.status_code} {answer.text[:300]}")
    times = []
    for _ in range(runs):
        start = time.process_time()
        answer = client.get(path)
        times.append(1000 * (time.process_time() - start))
    return statistics.median(times), len(answer.content)


def addresses(store: Store, client: TestClient) -> Iterator[tuple[str, str]]:
    """What is measured: its kind and its address."""
    trade = re.search(r"/trades/([0-9a-f-]{36})", client.get("/trades").text)
    for kind, paths in (("page", PAGES), ("fragment", FRAGMENTS)):
        for path in paths:
            yield kind, path.replace("ID", "" if trade is None else trade.group(1))
    for path in ("/", "/trades", "/prompt", "/mind"):
        for share in SHARES:
            at = closed_at(int(share * store.count))
            yield f"slider, {share:.0%}", f"{path}?as_of={at:%Y-%m-%dT%H:%M:%SZ}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trades", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        store = Store(folder, options.trades)
        app = http_application(store.memory, HttpOptions(pages_token="bench"))
        client = TestClient(app, base_url="http://127.0.0.1:8765")
        client.get("/sign-in?token=bench")
        print(f"{options.trades:,} trades; Python {platform.python_version()}")
        print("| what | address | CPU of the server | size |\n|---|---|---|---|")
        for kind, path in addresses(store, client):
            milliseconds, size = measured(client, path, options.runs)
            shown = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", path)
            print(f"| {kind} | `{shown}` | {milliseconds:.0f} ms | {size / 1000:.0f} kB |", flush=True)
        store.memory.close()


if __name__ == "__main__":
    main()
