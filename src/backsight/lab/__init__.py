"""The lab: does memory help, on anybody's trades? Recorded trades are replayed through a memory, and arms are compared.

    from pathlib import Path
    from backsight.lab import LabFiles, run_lab, write_report

    report = run_lab(LabFiles(trades=(Path("trades.csv"),)))
    print(report.verdict)
    write_report(report, Path("lab"))

`docs/lab.md` has results; `docs/guides/does-memory-help-you.md` shows how to read them.
"""

from backsight.lab.analysis import AnalysisTerms, ArmResult, LabAnalysis
from backsight.lab.arms import (
    AgentArm,
    AgentWithoutMemory,
    AllKelly,
    Arm,
    ArmDecision,
    Fixed,
    OwmScore,
    Question,
    RandomSkip,
    RecommendedSize,
    SkipWarned,
    arms_named,
)
from backsight.lab.load import LabFiles
from backsight.lab.planted import TRUTHS, Truth, planted_file, planted_trades
from backsight.lab.report import LabReport
from backsight.lab.run import run_lab, run_planted, write_report
from backsight.lab.trades import LabEntry, LabTrade, LabTrades

__all__ = [
    "TRUTHS",
    "AgentArm",
    "AgentWithoutMemory",
    "AllKelly",
    "AnalysisTerms",
    "Arm",
    "ArmDecision",
    "ArmResult",
    "Fixed",
    "LabAnalysis",
    "LabEntry",
    "LabFiles",
    "LabReport",
    "LabTrade",
    "LabTrades",
    "OwmScore",
    "Question",
    "RandomSkip",
    "RecommendedSize",
    "SkipWarned",
    "Truth",
    "arms_named",
    "planted_file",
    "planted_trades",
    "run_lab",
    "run_planted",
    "write_report",
]
