"""Find Chromium for the tests in a browser; install it where that is possible, and say loudly where it is not."""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def main() -> None:
    if any(map(shutil.which, NAMES)):
        return
    apt = shutil.which("apt-get")
    if apt is not None and os.geteuid() == 0:
        sys.stdout.write("Installing Chromium for the tests of the pages\n")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False}
        subprocess.run([apt, "update"], timeout=300, **quiet)
        subprocess.run([apt, "install", "-y", "--no-install-recommends", "chromium"], timeout=600, **quiet)
    if not any(map(shutil.which, NAMES)):
        sys.stdout.write("\n*** NO CHROMIUM: THE TESTS OF THE PAGES IN A BROWSER ARE SKIPPED. Install chromium. ***\n\n")


if __name__ == "__main__":
    main()
