"""Write the table of arms and data sets in docs/lab.md: `python tools/lab_results.py FOLDER > table.md`.

FOLDER holds `positions` (logs of agents with their bars) and `formats` (pyfolio's transactions, nautilus's positions).
The planted truths need no files.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from backsight.core.errors import BacksightError
from backsight.lab import TRUTHS, LabFiles, LabReport, planted_trades, run_lab, run_planted
from backsight.lab.document import Block, Heading, Paragraph, as_markdown
from backsight.lab.report import summary_table

GROUPS = {
    "us_hourly": ("us_nasdaq100_60min", "America/New_York", "USD"),
    "ashare_daily": ("astock_daily", "Asia/Shanghai", "CNY"),
    "crypto_daily": ("crypto_daily", "UTC", "USDT"),
}
PLANTED = 500


def data_sets(folder: Path) -> Iterator[tuple[str, LabFiles]]:
    positions = folder / "positions"
    for group, (bars, timezone, currency) in GROUPS.items():
        yield (
            f"Positions of agents: {group}",
            LabFiles(
                trades=tuple(sorted(positions.glob(f"{group}/*/position/position.jsonl"))),
                bars=(positions / "bars" / f"{bars}.jsonl",),
                timezone=timezone,
                currency=currency,
            ),
        )
    yield "pyfolio's transactions", LabFiles(trades=(folder / "formats" / "pyfolio_txn" / "test_txn.csv.gz",))
    yield "nautilus's positions", LabFiles(trades=(folder / "formats" / "nautilus_positions_report.csv",))


def section(title: str, report: LabReport) -> list[Block]:
    analysis = report.analysis
    pbo = analysis.overfitting_probability
    scale = f"{analysis.replayed:,} trades replayed, {len(analysis.scored):,} scored"
    return [
        Heading(title, 3),
        Paragraph(analysis.verdict, strong=True),
        Paragraph(analysis.power.sentence),
        summary_table(analysis),
        Paragraph(f"{scale}. PBO: {'–' if pbo is None else f'{pbo:.0%}'}. {' '.join(report.data.notes)}"),
    ]


def main(folder: Path) -> None:
    for title, files in data_sets(folder):
        try:
            blocks = section(title, run_lab(files))
        except BacksightError as error:
            blocks = [Heading(title, 3), Paragraph(f"Not replayed: {error.message.removeprefix('trades: ')}")]
        sys.stdout.write(as_markdown(blocks) + "\n")
        sys.stdout.flush()
    for truth in TRUTHS:
        planted = planted_trades(truth, trades=PLANTED, seed=1)
        blocks = section(f"Planted: {truth}", run_planted(planted, name=truth))
        sys.stdout.write(as_markdown(blocks) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
