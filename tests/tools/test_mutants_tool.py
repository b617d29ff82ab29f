"""The mutants tool: which changes of a library it reports as unnoticed, and which lists it refuses.

It runs in a process of its own, on a small library in a temporary folder.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tools.mutants import Mutant, changed_files, main, read_mutants, select

ROOT = Path(__file__).parents[2]

LIBRARY = '''\
"""A library."""
import torch
from jaxtyping import Float
from torch import Tensor


def mean(x: Float[Tensor, "n"]) -> Float[Tensor, ""]:
    if x.ndim != 1:
        raise ValueError("x must have one axis")
    total = x.sum()
    n = len(x)
    while n > len(x): n -= 1
    return total / n
'''

TESTS = """\
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib import mean


@pytest.mark.parametrize("size", [1, 3])
def test_mean(size):
    assert mean(torch.arange(1.0, size + 1)) == (size + 1) / 2


@given(st.lists(st.integers(0, 9), min_size=1))
def test_mean_of_any(x):
    assert mean(torch.tensor(x)) * len(x) == pytest.approx(sum(x), abs=1e-4)


def test_gradient():
    x = torch.ones(4, requires_grad=True)
    mean(x).backward()
    assert x.grad.tolist() == [0.25] * 4


class TestErrors:
    def test_message(self):
        with pytest.raises(ValueError, match="one axis"):
            mean(torch.ones(2, 2))


def test_that_it_runs():
    mean(torch.ones(2))


def test_that_fails_anyway():
    assert mean(torch.ones(2)) == 2


@pytest.mark.skip
def test_that_is_skipped():
    mean(torch.ones(2))


@pytest.fixture
def two():
    value = mean(torch.tensor([1.0, 3.0]))
    assert value == 2
    return value


def test_with_fixture(two):
    assert two == 2
"""


def mutant(old: str, new: str, test: str) -> Mutant:
    """Return a change of the library and the name of its test."""
    return Mutant("transformer_lib/__init__.py", old, new, f"tests/test_mean.py::{test}", "why not")


KILLED = [
    mutant("total / n", "-total / n", "test_mean"),
    mutant("total / n", "total / (n + 1)", "test_mean[3]"),
    mutant("total / n", "total", "test_mean_of_any"),
    mutant("x.sum()", "x.sum().detach()", "test_gradient"),
    mutant("x.ndim != 1", "x.ndim == 3", "TestErrors"),
    mutant("one axis", "an axis", "TestErrors::test_message"),
]
UNNOTICED = {
    "passes": (mutant("total / n", "-total / n", "test_that_it_runs"), "passed"),
    "only the shape is wrong": (
        mutant("total / n", "total[None] / n", "test_mean"),
        "passed",
    ),
    "a name that is not there": (
        mutant("total / n", "totals / n", "test_mean"),
        "broken by NameError",
    ),
    "no import": (mutant("import torch", "import torches", "test_mean"), "broke down"),
    "fixture": (mutant("total / n", "total", "test_with_fixture"), "broken in setup"),
    "endless": (mutant("n > len(x): n", "n == n: n", "test_mean"), "took more than 9 s"),
    "fails without it": (
        mutant("total / n", "total", "test_that_fails_anyway"),
        "without any change: failed",
    ),
    "skipped": (
        mutant("total / n", "total", "test_that_is_skipped"),
        "without any change: skipped",
    ),
    "no test": (mutant("total / n", "total", "test_that_is_not"), "there is no such test"),
}


def project(folder: Path, mutants: list[Mutant]) -> Path:
    """Write a library, its tests and a list of mutants."""
    (folder / "transformer_lib").mkdir()
    (folder / "transformer_lib/__init__.py").write_text(LIBRARY)
    (folder / "tests/mutants").mkdir(parents=True)
    (folder / "tests/test_mean.py").write_text(TESTS)
    (folder / "tests/conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    settings = (ROOT / "pyproject.toml").read_text()
    shapes = "--jaxtyping-packages=transformer_lib,beartype.beartype"
    (folder / "pyproject.toml").write_text(settings.replace('addopts = "', f'addopts = "{shapes} '))
    tables = [
        "[[mutant]]\n"
        + "".join(f"{key} = {json.dumps(value)}\n" for key, value in asdict(m).items())
        for m in mutants
    ]
    (folder / "tests/mutants/mean.toml").write_text("\n".join(tables))
    return folder


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "tools/mutants.py", "--root", folder, "--timeout=9", *options],
        capture_output=True,
        text=True,
        check=False,
    )


def test_changes_that_are_noticed(tmp_path):
    done = run(project(tmp_path, KILLED))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "6 mutants, 6 killed\n"
    assert (tmp_path / "transformer_lib/__init__.py").read_text() == LIBRARY
    assert [path.name for path in (tmp_path / "transformer_lib").iterdir()] == ["__init__.py"]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Return what the tool says of mutants one of which alone is noticed."""
    folder = tmp_path_factory.mktemp("unnoticed")
    done = run(project(folder, [KILLED[0], *(each for each, _ in UNNOTICED.values())]))
    assert done.returncode == 1
    assert done.stdout == f"{len(UNNOTICED) + 1} mutants, 1 killed\n"
    return done.stderr


@pytest.mark.parametrize("name", UNNOTICED)
def test_changes_that_no_test_notices(report, name):
    changed, outcome = UNNOTICED[name]
    assert f"{changed.test}: {outcome}" in report
    if "without" not in outcome and "no such" not in outcome:
        assert f"survived: {changed}\n    {changed.test}: {outcome}" in report


GOOD = asdict(KILLED[0])
BAD_LISTS = {
    "not found": (GOOD | {"old": "total * n"}, "stands in the file 0 times, expected 1"),
    "ambiguous": (GOOD | {"old": "len(x)"}, "stands in the file 2 times, expected 1"),
    "wrong count": (GOOD | {"old": "len(x)", "count": 3}, "2 times, expected 3"),
    "empty": (GOOD | {"old": ""}, "0 times, expected 1"),
    "no change": (GOOD | {"new": GOOD["old"]}, "and differ"),
    "two lines": (GOOD | {"new": "total\n"}, "must be parts of one line"),
    "no file": (GOOD | {"file": "transformer_lib/mean.py"}, "no such file"),
    "another file": (GOOD | {"file": "tests/test_mean.py"}, "no such file in transformer_lib/"),
    "no Python": (GOOD | {"new": "total /"}, "does not parse"),
    "no reason": ({key: GOOD[key] for key in GOOD if key != "why"}, "argument: 'why'"),
    "unknown key": (GOOD | {"comment": "x"}, "unexpected keyword argument 'comment'"),
}


@pytest.mark.parametrize(("entry", "message"), BAD_LISTS.values(), ids=BAD_LISTS)
def test_bad_lists_are_refused(tmp_path, entry, message):
    project(tmp_path, [])
    path = tmp_path / "tests/mutants/mean.toml"
    path.write_text(
        "[[mutant]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in entry.items())
    )
    assert message in "\n".join(read_mutants([path], tmp_path)[1])


def test_a_mutant_is_listed_once_and_there_must_be_some(tmp_path):
    project(tmp_path, [KILLED[0], KILLED[0]])
    path = tmp_path / "tests/mutants/mean.toml"
    assert "is listed 2 times" in read_mutants([path], tmp_path)[1][0]
    assert read_mutants([], tmp_path) == ([], ["there are no mutants"])


def test_all_places_change_together(tmp_path):
    project(tmp_path, [])
    everywhere = Mutant(**(GOOD | {"old": "len(x)", "new": "x.numel()", "count": 2}))
    assert not list(everywhere.problems(tmp_path))
    assert "len(x)" not in everywhere.apply(LIBRARY)


# A list that nothing runs: which mutants are chosen, and by what.
MANY = [
    Mutant(f"transformer_lib/{module}.py", f"old {n}", f"new {n}", "tests/a.py::test", "why not")
    for module in ("one", "two", "three")
    for n in range(20)
]


def git(folder: Path, *arguments: str) -> str:
    """Return what a git command prints."""
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def commit(tmp_path) -> Callable[..., str]:
    """Return a function that changes modules in a checkout and commits; it gives the hash.

    The first commit has all three modules.
    """
    (tmp_path / "transformer_lib").mkdir()
    git(tmp_path, "init", "-q")

    def commit(*modules: str) -> str:
        for module in modules:
            with (tmp_path / f"transformer_lib/{module}.py").open("a") as file:
                file.write("x = 1\n")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", " ".join(modules) or "nothing")
        return git(tmp_path, "rev-parse", "HEAD")

    commit("one", "two", "three")
    return commit


def modules(mutants: list[Mutant]) -> set[str]:
    return {Path(mutant.file).stem for mutant in mutants}


def test_modules_changed_lately_are_all_broken_and_some_others_drawn(tmp_path, commit):
    commit("three")
    commit("one")
    head = commit()
    chosen, words = select(MANY, tmp_path, 2, 7)
    assert [mutant for mutant in chosen if mutant.file.endswith("one.py")] == MANY[:20]
    assert len(chosen) == 27
    assert chosen == [mutant for mutant in MANY if mutant in chosen], "they stay in order"
    assert words == (
        "20 mutants of 1 module changed in the last 2 commits, 7 of 40 others drawn by commit "
        f"{head[:12]}"
    )
    assert modules(select(MANY, tmp_path, 3, 0)[0]) == {"one", "three"}
    assert select(MANY, tmp_path, 0, 0)[0] == []
    assert select(MANY, tmp_path, 2, 100)[0] == MANY


def test_a_commit_always_draws_the_same_and_the_next_one_others(tmp_path, commit):
    commit()
    first, _ = select(MANY, tmp_path, 1, 10)
    assert select(MANY[::-1], tmp_path, 1, 10)[0] == first[::-1]
    commit()
    second, _ = select(MANY, tmp_path, 1, 10)
    assert len(first) == len(second) == 10
    assert first != second


def test_what_is_not_committed_counts_as_changed(tmp_path, commit):
    commit()
    commit()
    (tmp_path / "transformer_lib/two.py").write_text("x = 2\n")
    assert modules(select(MANY, tmp_path, 1, 0)[0]) == {"two"}
    (tmp_path / "transformer_lib/four.py").write_text("x = 4\n")
    four = replace(MANY[0], file="transformer_lib/four.py")
    assert modules(select([*MANY, four], tmp_path, 1, 0)[0]) == {"two", "four"}


def test_without_the_history_all_are_run(tmp_path, commit, monkeypatch):
    everything = MANY, "all mutants, since git does not know the last 10 commits"
    assert select(MANY, tmp_path, 10, 5) == everything, "there are fewer commits"
    for _ in range(10):
        commit()
    assert len(select(MANY, tmp_path, 10, 5)[0]) == 5

    address = tmp_path.as_uri()
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth=10", address, shallow], check=True)
    assert select(MANY, shallow, 10, 5) == everything
    subprocess.run(["git", "clone", "-q", "--depth=11", address, shallow / "deeper"], check=True)
    assert len(select(MANY, shallow / "deeper", 10, 5)[0]) == 5

    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    assert changed_files(unpacked, 10) is None, "the checkout is somebody else's"
    monkeypatch.setenv("PATH", "")
    assert select(MANY, tmp_path, 10, 5) == everything, "there is no git"


def test_the_selection_is_said_and_only_it_is_run(tmp_path):
    other = mutant("total / n", "-total / n", "test_that_it_runs")
    project(tmp_path, [KILLED[0], KILLED[3], other])
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    head = git(tmp_path, "rev-parse", "HEAD")
    done = run(tmp_path, "--recent=0", "--draw=2")
    said, result = done.stdout.splitlines()
    assert said == (
        "0 mutants of 0 modules changed in the last 0 commits, 2 of 3 others drawn by commit "
        f"{head[:12]}"
    )
    assert result.startswith("2 mutants, ")
    chosen, _ = select([KILLED[0], KILLED[3], other], tmp_path, 0, 2)
    assert (done.returncode == 1) == (other in chosen)


@pytest.mark.parametrize("number", ["-1", "many"])
def test_numbers_of_the_selection_are_refused(number, capsys):
    with pytest.raises(SystemExit):
        main([f"--recent={number}"])
    assert "argument --recent: invalid" in capsys.readouterr().err
