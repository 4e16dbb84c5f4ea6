"""The packages and the container: they build, install elsewhere, and run outside the checkout."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import backsight

ROOT = Path(__file__).parents[1]
HADOLINT = Path(sys.executable).parent / "hadolint"
DEPENDENCIES = str(Path(pytest.__file__).parents[1])
"""The folder of the packages of this environment; its `.pth` file, which names the checkout, is not followed."""


def run(*command: str | Path, folder: Path, **environment: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("BACKSIGHT_")} | environment
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel, built from the sdist, and the sdist."""
    folder = tmp_path_factory.mktemp("packages")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, folder=ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, folder=folder / sdist.name[:-7])
    (wheel,) = folder.glob("*.whl")
    return wheel, sdist


def environment_with(packages: list[str | Path], folder: Path, *options: str) -> Path:
    """The programs of a new environment in which packages are installed."""
    venv.create(folder / "environment", with_pip=False)
    programs = folder / "environment" / "bin"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet"]
    run(*pip, *options, *packages, folder=folder)
    return programs


def try_demo(programs: Path, folder: Path, **environment: str) -> None:
    """Run the demonstration of an installed program in an empty folder."""
    empty = folder / "empty"
    empty.mkdir()
    where = run(programs / "python", "-c", "import backsight; print(backsight.__file__)", folder=empty, **environment)
    assert where.startswith(str(folder))
    demo: list[str | Path] = [programs / "backsight", "demo", "--days", "5", "--no-serve", "--json"]
    described = json.loads(run(*demo, folder=empty, **environment))
    assert described["backtest"]["ticks"] > 0
    assert run(programs / "backsight", "--version", folder=empty, **environment).strip().endswith(backsight.__version__)


def test_the_wheel_runs_the_demo_outside_the_checkout(packages: tuple[Path, Path], tmp_path: Path) -> None:
    programs = environment_with([packages[0]], tmp_path, "--no-index", "--no-deps")
    try_demo(programs, tmp_path, PYTHONPATH=DEPENDENCIES)


def test_the_wheel_has_the_program_and_nothing_of_the_tests(packages: tuple[Path, Path]) -> None:
    names = zipfile.ZipFile(packages[0]).namelist()
    skill = "backsight/surfaces/connect/SKILL.md"
    assert {"backsight/py.typed", "backsight/examples/volatility_breakout.py", skill} <= set(names)
    assert {name.partition("/")[0] for name in names} == {"backsight", f"backsight-{backsight.__version__}.dist-info"}


def test_the_version_is_in_one_place() -> None:
    number = re.compile(rf'(?<![\d.]){re.escape(backsight.__version__)}(?![\d.])"')
    files = [ROOT / "pyproject.toml", ROOT / "Dockerfile", *(ROOT / "src").rglob("*.py")]
    assert [file.name for file in files if number.search(file.read_text())] == ["__init__.py"]


@pytest.mark.slow
@pytest.mark.parametrize("beside", [None, "langchain-mcp-adapters"])
def test_a_fresh_environment_takes_the_wheel_with_its_dependencies(
    packages: tuple[Path, Path], tmp_path: Path, beside: str | None
) -> None:
    programs = environment_with([packages[0], *([beside] if beside else [])], tmp_path)
    if beside:
        run(programs / "python", "-c", "import backsight, langchain_mcp_adapters.client", folder=tmp_path)
        mcp: list[str | Path] = [programs / "backsight", "mcp"]
        served = subprocess.run(mcp, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert served.stderr.startswith("Unavailable: mcp: MCP needs version 2 of the package mcp, and 1.")
    try_demo(programs, tmp_path)


@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint is not installed")
def test_the_dockerfile_passes_its_linter() -> None:
    run(HADOLINT, "Dockerfile", folder=ROOT)


def test_the_files_that_the_dockerfile_copies_are_sent_to_it() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [line.split()[1:-1] for line in (ROOT / "Dockerfile").read_text().splitlines() if line.startswith("COPY ")]
    names = {name for line in copied if not line[0].startswith("--from") for name in line}
    assert names == allowed
    assert all((ROOT / name).exists() for name in names)


def test_the_services_of_compose_fit_together() -> None:
    compose: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    server, database = compose["services"]["backsight"], compose["services"]["postgres"]
    assert server["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert database["healthcheck"]["test"][0] == "CMD-SHELL"
    user, name = (database["environment"][f"POSTGRES_{each}"] for each in ("USER", "DB"))
    assert re.fullmatch(rf"postgresql://{user}:\S.*@postgres/{name}", server["environment"]["BACKSIGHT_URL"])
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])
    used = {volume.partition(":")[0] for each in compose["services"].values() for volume in each["volumes"]}
    assert used == set(compose["volumes"])


@pytest.mark.skipif(shutil.which("docker") is None, reason="docker is not installed")
def test_docker_accepts_the_compose_file() -> None:
    if subprocess.run(["docker", "compose", "version"], capture_output=True, timeout=60, check=False).returncode:
        pytest.skip("docker has no compose")
    run("docker", "compose", "config", "--quiet", folder=ROOT, POSTGRES_PASSWORD="secret")
