"""Every example in the documentation runs and prints the output in the documentation."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BIN = Path(sys.executable).parent


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(block[1], block[2]) for block in BLOCK.finditer(page.read_text())]


def test_the_python_of_the_readme_prints_its_documented_output_twice(tmp_path: Path) -> None:
    (program,) = [text for kind, text in blocks(ROOT / "README.md") if kind == "python"]
    (printed,) = [text for kind, text in blocks(ROOT / "README.md") if kind == "text"]
    assert len(program.splitlines()) <= 15
    for _ in range(2):
        ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert ran.stdout == printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_print_their_documented_output(page: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    for kind, text in blocks(page):
        if kind != "console":
            continue
        commands = [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
        expected = [line for line in text.splitlines() if not line.startswith("$ ")]
        ran = subprocess.run(
            ["bash", "-c", "exec 2>&1\n" + "\n".join(commands)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.stdout.splitlines() == expected


def test_an_mcp_client_connects_as_the_guide_says(tmp_path: Path) -> None:
    (configured,) = [text for kind, text in blocks(ROOT / "docs" / "guides" / "mcp.md") if kind == "json"]
    server = json.loads(configured.replace("/home/me/backsight/.venv/bin", str(BIN)).replace("/home/me", str(tmp_path)))
    server = server["mcpServers"]["backsight"]

    async def tools() -> list[str]:
        command = StdioServerParameters(**server, cwd=tmp_path)
        async with Client(command) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert "recall_memories" in anyio.run(tools)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_have_existing_targets(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_targets_that_are_named_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    text = page.read_text()
    for target in re.findall(r"`make (\w+)`|^make (\w+)", text, re.MULTILINE):
        assert re.search(rf"^{''.join(target)}:", makefile, re.MULTILINE), target
    for path in re.findall(r"`((?:src|tests|docs|bench|core|ops|store|surfaces|runtime)/[\w./-]+)`", text):
        bare = re.sub(r"\.(?!py|md)[A-Za-z_.]+$", "", path)
        candidates = [ROOT / path, ROOT / "src/backsight" / path, ROOT / "src/backsight" / f"{bare}.py"]
        assert any(candidate.exists() for candidate in candidates), path
