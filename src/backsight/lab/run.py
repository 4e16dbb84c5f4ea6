"""Running the lab: load, replay, analyse, report."""

import hashlib
import platform
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np

from backsight.core.errors import Conflict, Invalid
from backsight.core.instants import parse_instant
from backsight.core.market import Bar
from backsight.lab.analysis import AnalysisTerms, analyse
from backsight.lab.arms import DEFAULT_ARMS, Arm, arms_named, checked_arms
from backsight.lab.load import LabFiles, load
from backsight.lab.planted import planted_file
from backsight.lab.replay import replay
from backsight.lab.report import LabReport, Provenance
from backsight.lab.trades import LabTrades

NamedProgress = Callable[[str, int, int], None]
FEWEST_REPLAYED = 2
DEFAULT_TERMS = AnalysisTerms()


def run_lab(
    files: LabFiles,
    arms: Sequence[Arm] | None = None,
    *,
    terms: AnalysisTerms = DEFAULT_TERMS,
    command: str = "",
    url: str = "sqlite://",
    progress: NamedProgress = lambda *_: None,
) -> LabReport:
    """Replay the trades of files with every arm, and report whether memory helps.

    The default arms need no model. The store is in memory unless `url` names an empty one.
    """
    data = load(files)
    provenance = Provenance(data=data.name, digest=data.digest, versions=versions(), command=command)
    return replay_and_report(
        data.trades, arms, bars=data.bars, terms=terms, provenance=provenance, url=url, progress=progress
    )


def run_planted(
    planted: LabTrades,
    arms: Sequence[Arm] | None = None,
    *,
    name: str,
    terms: AnalysisTerms = DEFAULT_TERMS,
    url: str = "sqlite://",
    progress: NamedProgress = lambda *_: None,
) -> LabReport:
    """The same for trades with a planted truth."""
    digest = hashlib.sha256(planted_file(planted).encode()).hexdigest()
    provenance = Provenance(data=name, digest=digest, versions=versions(), command=name)
    return replay_and_report(planted, arms, terms=terms, provenance=provenance, url=url, progress=progress)


def replay_and_report(
    trades: LabTrades,
    arms: Sequence[Arm] | None,
    *,
    bars: Mapping[str, Sequence[Bar]] | None = None,
    terms: AnalysisTerms,
    provenance: Provenance,
    url: str = "sqlite://",
    progress: NamedProgress = lambda *_: None,
) -> LabReport:
    """Replay trades with every arm, and analyse the decisions; an arm is used for one run only."""
    if len(trades.trades) < FEWEST_REPLAYED:
        raise Invalid("one trade cannot be split; give at least 2", field="trades")
    compared_arms = checked_arms(arms_named(DEFAULT_ARMS) if arms is None else arms)
    decisions = replay(
        trades.trades, compared_arms, bars=bars, url=url, progress=lambda *counts: progress("Replaying", *counts)
    )
    analysis = analyse(trades, decisions, compared_arms, terms)
    return LabReport(
        data=trades, arms=tuple(compared_arms), replay=decisions, analysis=analysis, terms=terms, provenance=provenance
    )


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    return {"backsight": version("backsight"), "NumPy": np.__version__, "Python": platform.python_version()}


def write_report(report: LabReport, folder: Path) -> list[Path]:
    """Write the files of a report into a new folder."""
    if folder.exists():
        raise Conflict(f"{folder} exists already; name a new folder", field="out")
    folder.mkdir(parents=True)
    paths = []
    for name, text in report.files.items():
        path = folder / name
        path.write_text(text, encoding="utf-8", newline="\n")
        paths.append(path)
    return paths


def training_of(text: str) -> float | datetime:
    """The end of the training period as a user writes it: a share like 0.5, or a date like 2025-07-01.

    >>> training_of("0.5"), format_instant(training_of("2025-07-01"))
    (0.5, '2025-07-01T00:00:00.000000Z')
    """
    try:
        return float(text)
    except ValueError:
        return parse_instant(text if "T" in text else f"{text}T00:00:00Z", field="training")
