"""`backsight lab` as a user types it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from backsight.core.errors import BacksightError
from backsight.surfaces.main import program

OWN_ARM = """
from backsight.lab import Arm, ArmDecision

class Half(Arm):
    name = "half"
    def decide(self, question):
        return ArmDecision(share=question.entry.recorded_share / 2)
"""


def run(*words: str) -> str:
    result = CliRunner().invoke(program, words, catch_exceptions=True, env={"COLUMNS": "80"})
    if isinstance(result.exception, BacksightError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    path = tmp_path / "planted.jsonl"
    assert "40 trades in" in run("lab", "plant", "no_edge", str(path), "--trades", "40")
    return path


def test_a_run_prints_the_verdict_and_writes_a_report(planted: Path, tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text(OWN_ARM)
    out = tmp_path / "out"
    printed = run("lab", "run", "--trades", str(planted), "--arms", f"fixed,{tmp_path}/half.py:Half", "--out", str(out))
    assert "Too little to say" in printed
    assert "half" in printed
    assert "…" not in printed
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    assert (out / "decisions.csv").read_text().splitlines()[0].endswith("fixed,half")


def test_a_run_can_be_printed_as_json(planted: Path, tmp_path: Path) -> None:
    words = ("--arms", "fixed", "--training", "2025-07-01", "--out", str(tmp_path / "o"), "--json")
    answer = json.loads(run("lab", "run", "--trades", str(planted), *words))
    assert [arm["name"] for arm in answer["arms"]] == ["fixed"]
    assert 15 <= answer["scored"] <= 25


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--arms", "luck"), "arms: 'luck' is not an arm"),
        (("--arms", "agent"), "agent: 'agent' needs an agent"),
        (("--arms", ","), "arms: names no arm"),
        (("--training", "3"), "training: 3.0 is not a share"),
        (("--training", "soon"), "training: "),
        (("--folds", "1"), "folds: 1 folds"),
    ],
)
def test_wrong_options_are_refused(planted: Path, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    out = tmp_path / "out"
    with pytest.raises(BacksightError, match=message):
        run("lab", "run", "--trades", str(planted), *("--arms", "fixed", "--out", str(out)), *words)
    assert not out.exists()
    with pytest.raises(BacksightError, match=r"file: .* exists already"):
        run("lab", "plant", "no_edge", str(planted))
