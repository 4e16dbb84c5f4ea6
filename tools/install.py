"""Install the packages of a lock file into the environment of this Python, with a line that shows the progress.

Usage: python tools/install.py requirements.txt
"""

import re
import subprocess
import sys
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
PACKAGE = re.compile(r"(?:Collecting|Requirement already satisfied:) (\S+)")


def main(lock: Path) -> int:
    """Run pip and count the packages that it collects; after a failure, print what pip said."""
    total = len(re.findall(r"^[a-z0-9]\S*==", lock.read_text(), re.MULTILINE))
    command = [*PIP, "--require-hashes", "-r", str(lock)]
    output: list[str] = []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    collected = 0
    for line in process.stdout:
        output.append(line)
        if match := PACKAGE.match(line):
            collected += 1
            show(f"  {collected} of at most {total} packages: {match[1]}")
        elif line.startswith("Installing collected packages"):
            show("  unpacking")
    show("")
    if process.wait():
        sys.stderr.writelines(output[-20:])
    return process.returncode


def show(text: str) -> None:
    """Overwrite the line of a terminal; elsewhere print nothing, so that logs stay short."""
    if sys.stdout.isatty():
        sys.stdout.write(f"\r\033[K{text}" if text else "\r\033[K")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
