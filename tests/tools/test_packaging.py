"""The package: quiet to import, complete once installed, honest about what it needs."""

import ast
import importlib
import os
import pkgutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import transformer_lib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULES = [
    module.name
    for module in pkgutil.walk_packages(transformer_lib.__path__, "transformer_lib.")
    if not module.name.endswith("__main__")
]
PICTURES = {"transformer_lib.course.plotting"}  # the one module that needs matplotlib at once
# "book" holds what the book needs, and not the library; "onnx" is tried with one version only.
EXTRAS = ("detection", "plots", "pretrained", "scores")

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


def lower_bounds(*extras: str) -> dict[str, str]:
    """Return the lowest version of each dependency, of those of some extras too."""
    lines = [*PROJECT["dependencies"]]
    for extra in extras:
        lines += PROJECT["optional-dependencies"][extra]
    bounds = {}
    for requirement in map(Requirement, lines):
        (bound,) = requirement.specifier
        assert bound.operator == ">=", requirement
        bounds[requirement.name.lower()] = bound.version
    return bounds


def test_the_lowest_versions_are_those_that_are_tested():
    lines = (ROOT / "tests/lowest.txt").read_text(encoding="utf-8").splitlines()
    tested = {}
    for line in lines:
        if pin := line.partition("#")[0].strip():
            name, version = pin.split("==")
            tested[name.lower()] = version
    bounds = lower_bounds(*EXTRAS)
    assert {name: tested.get(name) for name in bounds} == bounds
    ci = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    assert {"run": "make lowest"} in ci["jobs"]["lowest"]["steps"]


def third_party(tree: ast.AST, *, late: bool) -> set[str]:
    """Return what a module imports from elsewhere, within functions and ``try`` too if ``late``."""
    nodes = list(ast.walk(tree) if late else ast.iter_child_nodes(tree))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    tops = {name.partition(".")[0] for name in names}
    return tops - sys.stdlib_module_names - {"transformer_lib", ""}


# What a distribution is called whose module has another name.
CALLED = {"PIL": "pillow"}


def test_all_that_the_wheel_imports_is_declared(wheel):
    with zipfile.ZipFile(wheel) as archive:
        trees = {
            name: ast.parse(archive.read(name))
            for name in archive.namelist()
            if name.endswith(".py")
        }
    assert len(trees) > 30
    always, everything = lower_bounds(), lower_bounds(*EXTRAS)
    for late, declared in ((False, always), (True, everything)):
        for name, tree in trees.items():
            needed = {CALLED.get(n, n.replace("_", "-")) for n in third_party(tree, late=late)}
            missing = needed - {one.replace("_", "-") for one in declared}
            assert not missing, (name, missing)


def test_numpy_is_always_needed():
    """Tensors are saved by its means, and torch warns without it."""
    assert "numpy" in lower_bounds()


def test_a_warning_free_import(tmp_path):
    done = run("import transformer_lib", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


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
