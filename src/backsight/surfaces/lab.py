"""`backsight lab` on a terminal: a progress bar, the verdict, a table, and the files of the report."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from backsight.answers.brief import BriefCell, Column, Sentence, Table
from backsight.core.errors import Conflict, Invalid
from backsight.core.text.counts import count_of
from backsight.lab.analysis import AnalysisTerms, LabAnalysis
from backsight.lab.arms import Arm, arms_named
from backsight.lab.document import GridTable
from backsight.lab.load import LabFiles
from backsight.lab.planted import planted_file, planted_trades, truth_named
from backsight.lab.report import summary_table
from backsight.lab.run import run_lab, write_report
from backsight.runtime.load import load_agent, load_class
from backsight.surfaces.progress import progress_bar
from backsight.surfaces.tables import console, show_part
from backsight.surfaces.terminal import echo_json


@dataclass(frozen=True, slots=True, kw_only=True)
class LabRequest:
    """A run of the lab as a user asks for it, with nothing read or loaded yet."""

    files: LabFiles
    arms: str
    """Names of arms, or `file.py:Class` for one's own, separated by commas."""
    agent: str | None
    terms: AnalysisTerms
    out: Path
    command: Sequence[str]
    as_json: bool


def show_lab(request: LabRequest) -> None:
    """Run the lab, write its report, and print the verdict."""
    if request.out.exists():
        raise Conflict(f"{request.out} exists already; name a new folder", field="out")
    arms = load_arms(request.arms, agent=request.agent)
    command = shlex.join(["backsight", "lab", "run", *request.command])
    with progress_bar() as progress:
        report = run_lab(request.files, arms, terms=request.terms, command=command, progress=progress)
    write_report(report, request.out)
    if request.as_json:
        echo_json(analysis_as_json(report.analysis) | {"report": str(request.out)})
        return
    to = console()
    show_part(to, Sentence(report.verdict, "bold"))
    show_part(to, Sentence(report.analysis.power.sentence))
    show_part(to, _as_part(summary_table(report.analysis)))
    for note in report.data.notes:
        show_part(to, Sentence(note, "dim"))
    show_part(to, Sentence(f"Report in {request.out / 'report.html'} and {request.out / 'report.md'}"))


def _as_part(table: GridTable) -> Table:
    """A table of the report for a terminal, on which columns that do not fit give way."""
    columns = tuple(Column(heading, heading, right=index > 1) for index, heading in enumerate(table.header))
    return Table("arms", columns, tuple(tuple(BriefCell(text, text) for text in row) for row in table.rows))


def load_arms(names: str, *, agent: str | None) -> list[Arm]:
    """The arms that a user names, in order."""
    player = None if agent is None else load_agent(agent)
    arms: list[Arm] = []
    for name in filter(None, (part.strip() for part in names.split(","))):
        if ":" in name:
            loaded = load_class(name, field="arms")
            if not issubclass(loaded, Arm):
                raise Invalid(f"{name!r} is not an arm; derive it from backsight.lab.Arm", field="arms")
            arms.append(loaded())
        else:
            arms += arms_named([name], agent=player)
    if not arms:
        raise Invalid("names no arm; leave it out for the default arms", field="arms")
    return arms


def analysis_as_json(analysis: LabAnalysis) -> dict[str, Any]:
    """The verdict and the figures of each arm as JSON."""
    return {
        "verdict": analysis.verdict,
        "power": analysis.power.sentence,
        "replayed": analysis.replayed,
        "scored": len(analysis.scored),
        "overfitting_probability": analysis.overfitting_probability,
        "arms": [
            {
                "name": arm.name,
                "call": arm.call,
                "taken": arm.taken,
                "metrics": {name: measure.value for name, measure in arm.metrics.items()},
                "intervals": {name: measure.interval for name, measure in arm.metrics.items()},
                "sharpe_difference": None if arm.sharpe_difference is None else arm.sharpe_difference.value,
                "sharpe_interval": None if arm.sharpe_difference is None else arm.sharpe_difference.interval,
                "deflated_sharpe": arm.deflated_sharpe,
                "place_in_null": arm.place_in_null,
            }
            for arm in analysis.arms
        ],
    }


def write_planted(truth: str, file: Path, *, trades: int, seed: int) -> None:
    """Write a file of trades with a planted truth, and say what is planted."""
    if file.exists():
        raise Conflict(f"{file} exists already; name a new file", field="file")
    if file.suffix != ".jsonl":
        raise Invalid(f"{file} does not end in .jsonl; the trades are written as JSON Lines", field="file")
    planted = planted_trades(truth_named(truth), trades=trades, seed=seed)
    file.write_text(planted_file(planted), encoding="utf-8")
    click.echo(f"{planted.notes[0]} {count_of(len(planted.trades), 'trade')} in {file}")
