"""Without a Chromium the browser tests are skipped, and that is the last thing one reads."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = "tests/book/browser/test_practice.py"


def run(folder: Path, *options: str, **environment: str) -> list[str]:
    """Run browser tests where no Chromium can be found; return what is printed, line by line."""
    nowhere = {"PATH": "", "CHROMIUM": "", "PLAYWRIGHT_BROWSERS_PATH": str(folder)}
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    command = [sys.executable, "-m", "pytest", "-pno:cacheprovider", *options, TESTS]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=kept | nowhere | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.splitlines()


def test_the_last_line_says_how_many_did_not_run(tmp_path):
    *_, last = run(tmp_path, "-n1")
    assert last == (
        "!!! 3 BROWSER TESTS DID NOT RUN: install Chromium, or set CHROMIUM to its path !!!"
    )


def test_in_ci_they_fail(tmp_path):
    lines = run(tmp_path, CI="true")
    assert "3 errors" in lines[-1]
    assert any("no Chromium" in line for line in lines)
