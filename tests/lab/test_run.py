"""A whole run: the same bytes twice and on both databases, decisions that the future does not change, the verdict."""

from pathlib import Path

import pytest

from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.lab import AnalysisTerms, LabFiles, planted_file, planted_trades, run_lab, run_planted, write_report
from lab_samples import planted_path

SHARED = Path(__file__).parents[2].parent / "shared" / "data"


def test_a_report_is_the_same_twice_and_on_both_databases(url: str, tmp_path: Path) -> None:
    files = LabFiles(trades=(planted_path(tmp_path, "edge_by_regime", trades=40),))
    first, again, stored = run_lab(files), run_lab(files), run_lab(files, url=url)
    assert dict(first.files) == dict(again.files) == dict(stored.files)


def test_decisions_with_the_future_appended_are_the_same_bytes(tmp_path: Path) -> None:
    lines = planted_file(planted_trades("edge_that_dies", trades=50, seed=2)).splitlines(keepends=True)
    whole, past = tmp_path / "whole.jsonl", tmp_path / "past.jsonl"
    whole.write_text("".join(lines))
    past.write_text("".join(lines[:35]))
    longer, shorter = (run_lab(LabFiles(trades=(path,), strategy_name="s")) for path in (whole, past))
    assert longer.files["decisions.csv"].startswith(shorter.files["decisions.csv"])


def test_fills_whose_future_is_appended_give_the_same_decisions(tmp_path: Path) -> None:
    rows = ["time,symbol,side,quantity,price,fill_id"]
    for number in range(120):
        side, price = ("buy", 100) if number % 2 == 0 else ("sell", 100 + (number * 7) % 11 - 5)
        at = f"2026-01-{1 + number // 6:02d}T{number % 6 * 3:02d}:00:00Z"
        rows.append(f"{at},BTC,{side},{1 + number % 3 // 2},{price},f{number}")
    whole, past = tmp_path / "whole" / "fills.csv", tmp_path / "past" / "fills.csv"
    for path, count in ((whole, 121), (past, 81)):
        path.parent.mkdir()
        path.write_text("\n".join(rows[:count]) + "\n")
    longer, shorter = (run_lab(LabFiles(trades=(path,))).files["decisions.csv"] for path in (whole, past))
    assert len(shorter.splitlines()) > 20
    assert longer.startswith(shorter)


def test_a_run_says_what_it_rests_on(tmp_path: Path) -> None:
    files = LabFiles(trades=(planted_path(tmp_path, "no_edge", trades=60),))
    report = run_lab(files, terms=AnalysisTerms(seed=7), command="backsight lab run --trades planted.jsonl --seed 7")
    text = report.files["report.md"]
    for part in ("SHA-256", "Seed: 7", "NumPy", "Tuned on these data: nothing", "lab run --trades planted.jsonl"):
        assert part in text
    assert report.files["report.html"].count("<svg") == sum(name.endswith(".svg") for name in report.files)
    assert "http" not in report.files["report.html"].replace("http://www.w3.org/2000/svg", "")
    folder = tmp_path / "out"
    assert {path.name for path in write_report(report, folder)} == set(report.files)
    with pytest.raises(Conflict, match=r"out: .* exists already"):
        write_report(report, folder)


def test_too_few_trades_get_no_verdict() -> None:
    report = run_planted(planted_trades("edge_by_regime", trades=30, seed=1), name="short")
    assert report.verdict.startswith("Too little to say: with 15 scored trades on 15 days")
    assert {arm.call for arm in report.analysis.arms} == {None}


def test_a_planted_change_shows_how_fast_arms_adapt() -> None:
    report = run_planted(planted_trades("edge_that_dies", trades=120, seed=1), name="dies")
    assert report.analysis.change_is_planted
    assert any(arm.halved_after for arm in report.analysis.arms)


def test_files_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="trades: no file"):
        run_lab(LabFiles(trades=(tmp_path / "missing.csv",)))
    one = tmp_path / "one.jsonl"
    one.write_text(planted_file(planted_trades("no_edge", trades=1, seed=1)))
    with pytest.raises(Invalid, match="trades: one trade cannot be split"):
        run_lab(LabFiles(trades=(one,)))


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are not here")
def test_positions_of_agents_are_pooled_by_agent() -> None:
    group = SHARED / "positions" / "ashare_daily"
    logs = tuple(sorted(group.glob("g*/position/position.jsonl")))
    bars = SHARED / "positions" / "bars" / "astock_daily.jsonl"
    report = run_lab(LabFiles(trades=logs, bars=(bars,), timezone="Asia/Shanghai", currency="CNY"))
    strategies = {trade.entry.strategy_name for trade in report.data.trades}
    assert strategies == {path.parents[1].name for path in logs}
    assert any(trade.entry.context.regime for trade in report.data.trades)
