"""Wheel and source distribution are whole: installed outside the checkout, the program runs its demo."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def build(project: Path, folder: Path) -> None:
    """Build the wheel, and from a checkout also the source distribution, without the network."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=300)


def files_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("RECORD")}


def environment_with(wheel: Path, folder: Path) -> Path:
    """A new environment with the wheel; its requirements are those of this environment."""
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    installed = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "requirements.pth").write_text("\n".join(installed))
    command = ["uv", "pip", "install", "--offline", "--no-deps", "--python", str(folder), str(wheel)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return folder / "bin" / "backsight"


@pytest.mark.slow
def test_an_installed_wheel_runs_the_demo_outside_the_checkout(tmp_path: Path) -> None:
    build(ROOT, tmp_path / "dist")
    (wheel,), (sources,) = (tmp_path / "dist").glob("*.whl"), (tmp_path / "dist").glob("*.tar.gz")
    with tarfile.open(sources) as archive:
        archive.extractall(tmp_path / "sources", filter="data")
    (unpacked,) = (tmp_path / "sources").iterdir()
    build(unpacked, tmp_path / "again")
    assert files_in(next((tmp_path / "again").glob("*.whl"))) == files_in(wheel)

    program = environment_with(wheel, tmp_path / "venv")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(
        [str(program), "demo", "--no-serve", "--days", "14"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "venv/bin/backsight --url sqlite:///backsight-demo/store.db" in ran.stdout
    where = [str(program.parent / "python"), "-c", "import backsight; print(backsight.__file__)"]
    path = subprocess.run(where, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout
    assert path.startswith(str(tmp_path))
