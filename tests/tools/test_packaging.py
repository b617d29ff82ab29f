"""The package: quiet to import, complete once installed, honest about what it needs."""

import importlib
import os
import pkgutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import transformer_lib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULES = [
    module.name
    for module in pkgutil.walk_packages(transformer_lib.__path__, "transformer_lib.")
    if not module.name.endswith("__main__")
]
PICTURES = {"transformer_lib.course.plotting"}  # the one module that needs matplotlib at once

BLOCKED = """
import socket, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        absent = {"matplotlib", "transformers", "koreanize_matplotlib", "nbformat", "sacrebleu"}
        if name.split(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
def refuse(*args, **options): raise AssertionError("the network was asked for")
socket.socket.connect = refuse
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in an empty folder without a display."""
    env = {k: v for k, v in os.environ.items() if k not in {"DISPLAY", "PYTHONPATH"}}
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_importing_is_quiet_and_needs_no_extras(tmp_path):
    done = run(BLOCKED + "import transformer_lib", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(tmp_path.iterdir())


def test_every_module_but_the_pictures_imports_without_extras(tmp_path):
    code = BLOCKED + "".join(f"import {name}\n" for name in MODULES if name not in PICTURES)
    done = run(code, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_plotting_without_its_extra_says_which(tmp_path):
    done = run(BLOCKED + "import transformer_lib.course.plotting", tmp_path)
    assert done.returncode == 1
    assert "install building-the-transformer[plots]" in done.stderr


def test_public_names_are_few_documented_and_offered_by_their_modules():
    assert len(transformer_lib.__all__) <= 40
    for name in transformer_lib.__all__:
        offered = getattr(transformer_lib, name)
        assert offered.__doc__
        assert name in importlib.import_module(offered.__module__).__all__


def test_the_name_is_not_the_one_that_belongs_to_others():
    assert PROJECT["name"] == "building-the-transformer"


def test_versions_agree():
    assert f"version: {transformer_lib.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {transformer_lib.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_license_files_are_there():
    assert "MIT License" in (ROOT / "LICENSE").read_text()
    assert "CC BY 4.0" in (ROOT / "book/LICENSE").read_text()


def test_requirements_are_exact_and_constraints_too():
    for name in ("requirements.txt", "constraints.txt"):
        lines = [ln for ln in (ROOT / name).read_text().splitlines() if ln and ln[0] != "#"]
        assert lines
        assert all("==" in line and "+" not in line for line in lines), name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", folder, ROOT], check=True, capture_output=True)
    return next(folder.glob("building_the_transformer-*.whl"))


def test_the_wheel_holds_the_library_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "transformer_lib/py.typed" in names
    assert "transformer_lib/datasets/everyday.tsv" in names
    assert "transformer_lib/course/explorers.js" in names
    for name in MODULES:
        path = name.replace(".", "/")
        assert {f"{path}.py", f"{path}/__init__.py"} & set(names)
    assert {name.split("/")[0] for name in names} == {
        "transformer_lib",
        f"building_the_transformer-{transformer_lib.__version__}.dist-info",
    }


def test_the_wheel_works_from_an_empty_folder(wheel, tmp_path):
    code = (
        f"import sys; sys.path.insert(0, {str(wheel)!r})\n"
        "import torch, transformer_lib\n"
        f"assert {wheel.name!r} in transformer_lib.__file__, transformer_lib.__file__\n"
        "print(tuple(transformer_lib.scaled_dot_product_attention(\n"
        "    torch.ones(2, 4), torch.ones(5, 4), torch.ones(5, 3)).shape))"
    )
    done = run(code, tmp_path)
    assert (done.stdout, done.stderr) == ("(2, 3)\n", "")
