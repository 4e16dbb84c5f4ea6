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
        for words in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
            subprocess.run([apt, *words], timeout=600, capture_output=True, check=False)
    if not any(map(shutil.which, NAMES)):
        sys.stdout.write(
            "\n*** NO CHROMIUM: THE TESTS OF THE PAGES IN A BROWSER ARE SKIPPED. Install chromium. ***\n\n"
        )


if __name__ == "__main__":
    main()
