"""`backsight backtest`: a strategy over a file of bars, a summary, and a store to keep."""

import csv
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backsight.core.simulated_market import simulated_bars
from backsight.memory import PaperTerms, open_memory
from backsight.runtime.backtest_setup import BacktestRequest
from backsight.runtime.load import example
from backsight.services.context import Progress, no_progress
from backsight.settings import Settings
from backsight.surfaces import backtest as surface
from support import run_here

REVERSION = f"{example('mean_reversion.py')}:MeanReversion"


@pytest.fixture(scope="module")
def bars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bars") / "btc.csv"
    start = datetime(2025, 1, 6, tzinfo=UTC)
    series = simulated_bars(random.Random(7), symbol="X", start=start, days=8, price=98_000.0, daily_atr=3_100.0)
    with path.open("w", newline="") as file:
        written = csv.writer(file)
        written.writerow(["time", "open", "high", "low", "close", "volume"])
        written.writerows([bar.opened_at.isoformat(), *bar.prices, bar.volume] for bar in series)
    return path


def backtest(*words: str) -> subprocess.CompletedProcess[str]:
    return run_here("backtest", *words)


def test_a_backtest_prints_a_summary_and_keeps_the_store(bars: Path, tmp_path: Path) -> None:
    store = tmp_path / "kept.db"
    ran = backtest(REVERSION, "--bars", str(bars), "--symbol", "BTC/USDT", "--store", str(store))
    assert ran.returncode == 0, ran.stderr
    for word in ("equity", "largest drawdown", "(n=", "exits", "ticks in", "peak memory"):
        assert word in ran.stdout
    with open_memory(f"sqlite:///{store}", owner="me") as memory:
        (summary,) = memory.get_my_deployments().deployments
        assert f"{summary.tally.trades} closed, {summary.tally.wins} won" in ran.stdout
        assert summary.deployment.mode == "sim"
        assert memory.verify_audit().intact


def test_the_progress_bar_ends_before_the_result(bars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    @contextmanager
    def bar() -> Iterator[Progress]:
        yield no_progress
        steps.append("bar ends")

    monkeypatch.setattr(surface, "progress_bar", bar)
    monkeypatch.setattr(surface, "show_result", lambda *_values, **_names: steps.append("result"))
    request = BacktestRequest(strategy=REVERSION, files=(bars,), symbol="BTC/USDT", terms=PaperTerms())
    surface.show_backtest(request, store=None)
    assert steps == ["bar ends", "result"]


def test_a_broker_that_reports_no_fills_gives_inferred_trades(bars: Path, tmp_path: Path) -> None:
    store = tmp_path / "kept.db"
    ran = backtest(REVERSION, "--bars", str(bars), "--symbol", "BTC/USDT", "--store", str(store), "--no-fills")
    assert ran.returncode == 0, ran.stderr
    with open_memory(f"sqlite:///{store}", owner="me") as memory:
        trades = memory.list_trades().trades
        assert trades
        assert all(trade.inferred for trade in trades)


def test_the_report_of_a_backtest_can_be_searched_as_a_document(
    bars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir()
    monkeypatch.setenv("BACKSIGHT_WORKSPACE", str(folder))
    runs = [backtest(REVERSION, "--bars", str(bars), "--symbol", "BTC/USDT") for _ in range(2)]
    (file,) = (folder / "artifacts/backtests").iterdir()  # the same run is the same file
    assert all(f"Report in artifacts/backtests/{file.name} of the workspace" in ran.stdout for ran in runs)
    settings = Settings(url=f"sqlite:///{tmp_path}/store.db", workspace=str(folder))
    with open_memory(settings=settings) as memory:
        memory.reindex()
        (cited,) = memory.search_memory(query="backtests of mean reversion on BTC/USDT", source=["artifact"]).citations
    assert cited.snippet in file.read_text()
    for line in ("# Backtest of MeanReversion", "- largest drawdown: ", "- symbols: BTC/USDT"):
        assert line in cited.snippet
    assert "90% interval" in cited.snippet
    named = tmp_path / "report.md"
    assert backtest(REVERSION, "--bars", str(bars), "--symbol", "BTC/USDT", "--report", str(named)).returncode == 0
    assert named.read_text() == file.read_text()
    again = backtest(REVERSION, "--bars", str(bars), "--symbol", "BTC/USDT", "--report", str(named))
    assert "Conflict: report: " in again.stderr


def test_lessons_are_written_on_request(bars: Path, tmp_path: Path) -> None:
    store = tmp_path / "kept.db"
    ran = backtest(
        REVERSION, "--bars", str(bars), "--symbol", "BTC/USDT", "--store", str(store), "--reflect", "per_n_trades:3"
    )
    assert ran.returncode == 0, ran.stderr
    assert " revisions from " in ran.stdout
    with open_memory(f"sqlite:///{store}", owner="me") as memory:
        (summary,) = memory.get_my_deployments().deployments
        assert (summary.deployment.memory.cadence, summary.deployment.memory.every_n_trades) == ("per_n_trades", 3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing.py:Nothing"], "NotFound: strategy: no file 'nothing.py'"),
        (["nowhere.at.all:Nothing"], "NotFound: strategy: nowhere.at.all"),
        ([str(example("mean_reversion.py"))], "Invalid: strategy: "),
        ([f"{example('mean_reversion.py')}:MeanReversal"], "did you mean 'MeanReversion'?"),
        ([f"{example('mean_reversion.py')}:Order"], "strategy: "),
        ([REVERSION, "--max-leverage", "0"], "Invalid: max_leverage: "),
        ([REVERSION, "--every", "0"], "Invalid: every: "),
        ([REVERSION, "--timezone", "Mars"], "Invalid: timezone: "),
        ([REVERSION, "--reflect", "weekly"], "Invalid: reflect: 'weekly' is not a cadence; give off, daily, or per_n_"),
        ([REVERSION, "--reflect", "per_n_trades:0"], "Invalid: reflect: 'per_n_trades:0' is not a cadence"),
    ],
)
def test_a_mistake_is_named_in_one_line(bars: Path, words: list[str], message: str) -> None:
    ran = backtest(*words, "--bars", str(bars), "--symbol", "BTC/USDT")
    assert ran.returncode == 1
    assert message in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_an_existing_store_is_left_alone(bars: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.db").write_text("mine")
    ran = backtest(REVERSION, "--bars", str(bars), "--store", str(tmp_path / "mine.db"))
    assert ran.stderr.startswith("Conflict: store: ")
    assert (tmp_path / "mine.db").read_text() == "mine"
