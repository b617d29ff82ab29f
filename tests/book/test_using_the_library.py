"""Every script of the page *Using the library* runs in an empty folder and prints what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "book/using_the_library.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.M | re.S)
SCRIPTS = [code for language, code in BLOCKS if language == "python"]
PRINTS = [text for language, text in BLOCKS if language == "text"]
HEADINGS = [re.findall(r"^## (.+)$", PAGE[: PAGE.index(code)], re.M)[-1] for code in SCRIPTS]


def test_every_script_is_followed_by_what_it_prints():
    assert [language for language, _ in BLOCKS] == ["python", "text"] * len(SCRIPTS)
    assert {"Translate", "Detect objects", "Load published weights"} <= set(HEADINGS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "printed"), list(zip(SCRIPTS, PRINTS, strict=True)), ids=HEADINGS
)
def test_a_script_runs_in_an_empty_folder(tmp_path, script, printed):
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
    assert done.stderr == ""


def test_scripts_are_short():
    assert all(len(script.splitlines()) <= 30 for script in SCRIPTS)
