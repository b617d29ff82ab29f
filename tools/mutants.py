"""Check that the tests notice: change one line of the library, and a named test must fail.

``python tools/mutants.py`` reads ``tests/mutants/*.toml``, lists of::

    [[mutant]]
    file = "transformer_lib/attention.py"
    old = "query @ key.mT"
    new = "key @ query.mT"
    test = "tests/library/test_attention.py::test_parity_with_torch"
    why = "scores the wrong way round"

``old`` is part of one line and stands in the file once, or ``count`` times: all of them change. The
named test must pass on the library as it is, and fail on a copy with the change: in the test
itself, by an assertion or another exception. A copy that cannot be imported, a NameError, a failing
fixture or a test that never ends shows nothing. The shape checks at run time are off, so that it is
the values that tests notice.

With ``--recent 10`` only the modules changed in the last ten commits, or since, are broken, with
``--draw 60`` sixty of the other mutants as well. Which ones the commit's hash decides: the same
commit draws the same, and the next one others. Where git does not know that far back, as in a
shallow clone or without git, all are run.

What the tests and the library import from elsewhere is imported once; on Linux every run is a fork
of that process, elsewhere a new one.
"""

import argparse
import ast
import gc
import hashlib
import importlib
import importlib.util
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "transformer_lib"
# What is imported late: when a gradient is first computed, or by pytest's configuration.
LATE = ("torch.testing", "torch._dynamo", "hypothesis.strategies")
NO_EVIDENCE = (ImportError, NameError, SyntaxError)


@dataclass(frozen=True)
class Mutant:
    """One change of the library and the test that must notice it."""

    file: str
    old: str
    new: str
    test: str
    why: str
    count: int = 1

    def __str__(self) -> str:
        """Return what changes, for people."""
        return f"{self.file}: {self.old!r} → {self.new!r} ({self.why})"

    def problems(self, root: Path) -> Iterator[str]:
        """Yield why the change cannot be made."""
        path = root / self.file
        if not self.file.startswith(f"{PACKAGE}/") or not path.is_file():
            yield f"{self}: there is no such file in {PACKAGE}/"
            return
        code = path.read_text(encoding="utf-8")
        found = code.count(self.old) if self.old else 0
        if found != self.count:
            yield f"{self}: `old` stands in the file {found} times, expected {self.count}"
        if "\n" in self.old + self.new or self.old == self.new:
            yield f"{self}: `old` and `new` must be parts of one line, and differ"
        try:
            compile(self.apply(code), self.file, "exec")
        except SyntaxError as error:
            yield f"{self}: the changed file does not parse: {error}"

    def apply(self, code: str) -> str:
        """Return a file's text with the change made."""
        return code.replace(self.old, self.new) if self.old else code


@dataclass
class Run:
    """Tests to run on a copy of the library, changed or not, and what came of it."""

    root: Path
    folder: Path
    tests: list[str]
    mutant: Mutant | None = None
    outcomes: dict[str, list[str]] = field(default_factory=dict)

    def start(self) -> None:
        """Run the tests in this process and leave the outcomes in the folder."""
        self.folder.mkdir()
        with (self.folder / "log").open("w", encoding="utf-8") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        copy = self.folder / PACKAGE
        shutil.copytree(self.root / PACKAGE, copy, copy_function=place)
        if self.mutant:
            path = self.folder / self.mutant.file
            Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
            code = self.mutant.apply(path.read_text(encoding="utf-8"))
            path.write_text(code, encoding="utf-8")
        os.chdir(self.root)
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(self.folder))
        importlib.import_module("torch").set_num_threads(1)
        importlib.import_module(PACKAGE)  # before pytest, which may put the root first
        recorder = Recorder(self.tests)
        files = sorted({test.partition("::")[0] for test in self.tests})
        options = ["-q", "--tb=short", "-pno:cacheprovider", "--override-ini=addopts="]
        # Hypothesis is imported already, and looking for what nobody collected takes longer than
        # most tests.
        quiet = ["-Wignore::pytest.PytestAssertRewriteWarning", "-pno:unraisableexception"]
        pytest.main([*options, *quiet, f"--rootdir={self.root}", *files], plugins=[recorder])
        if not Path(sys.modules[PACKAGE].__file__ or "").is_relative_to(self.folder):
            raise RuntimeError(f"the tests imported {sys.modules[PACKAGE].__file__}")
        (self.folder / "outcomes").write_text(json.dumps(recorder.outcomes), encoding="utf-8")

    def finish(self) -> None:
        """Collect the outcomes; a run that left none broke down."""
        path = self.folder / "outcomes"
        if path.exists():
            self.outcomes = json.loads(path.read_text(encoding="utf-8"))
        for test in self.tests:
            self.outcomes.setdefault(test, [] if path.exists() else ["broke down"])

    def log(self) -> str:
        """Return the last lines the run printed."""
        lines = (self.folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(f"    {line}" for line in lines[-12:])


class Recorder:
    """A pytest plugin: runs only the wanted tests and notes what came of each."""

    def __init__(self, tests: list[str]):
        self.outcomes: dict[str, list[str]] = {test: [] for test in tests}

    def wanted(self, item: pytest.Item) -> list[str]:
        """Return the names a test goes by: its own, that of all its parameters, of its class."""
        return [
            test
            for test in self.outcomes
            if item.nodeid == test or item.nodeid.startswith((f"{test}[", f"{test}::"))
        ]

    def pytest_collection(self) -> None:
        """Have hypothesis stop at a failing example: a mutant needs no smallest one."""
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", phases=phases, report_multiple_bugs=False)
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the wanted tests."""
        items[:] = [item for item in items if self.wanted(item)]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note that a file could not be collected."""
        if report.failed:
            for test, outcomes in self.outcomes.items():
                if test.partition("::")[0] == report.nodeid:
                    outcomes.append("could not be collected")

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Note what came of a test, its set-up or its tear-down."""
        if call.excinfo is None:
            outcome = "passed" if call.when == "call" else None
        elif call.excinfo.errisinstance(pytest.skip.Exception):
            outcome = "skipped"
        elif call.when != "call":
            outcome = f"broken in {call.when}"
        elif call.excinfo.errisinstance(NO_EVIDENCE):
            outcome = f"broken by {call.excinfo.exconly()}"
        else:
            outcome = "failed"
        if outcome:
            for test in self.wanted(item):
                self.outcomes[test].append(outcome)


def place(source: str, target: str) -> None:
    """Copy code, compiled or not; only link to what is never changed, such as weights."""
    if source.endswith((".py", ".pyc")):
        shutil.copy2(source, target)
    else:
        os.symlink(source, target)


def preload(files: Iterable[Path]) -> None:
    """Import what these files import from installed packages, but not the library itself."""
    for name in LATE:
        importlib.import_module(name)
    for path in files:
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.ImportFrom):
                modules = [statement.module or ""]
            elif isinstance(statement, ast.Import):
                modules = [alias.name for alias in statement.names]
            else:
                continue
            if all(map(is_installed, modules)):
                with suppress(ImportError):  # whoever needs it says so
                    exec(ast.unparse(statement), {})


def is_installed(module: str) -> bool:
    """Whether a module belongs to an installed package that is not the library."""
    name = module.partition(".")[0]
    spec = importlib.util.find_spec(name) if name and name != PACKAGE else None
    return spec is not None and "site-packages" in str(spec.origin)


def read_mutants(paths: list[Path], root: Path) -> tuple[list[Mutant], list[str]]:
    """Read lists of mutants; return them and what is wrong with the lists."""
    mutants: list[Mutant] = []
    problems: list[str] = []
    for path in paths:
        try:
            entries = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
            read = [Mutant(**entry) for entry in entries]
        except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
            problems.append(f"{path}: {type(error).__name__}: {error}")
            continue
        problems += [f"{path}: {text}" for mutant in read for text in mutant.problems(root)]
        mutants += read
    times = Counter(mutants)
    problems += [f"{mutant}: is listed {n} times" for mutant, n in times.items() if n > 1]
    if not mutants:
        problems.append("there are no mutants")
    return mutants, problems


def changed_files(root: Path, commits: int) -> tuple[str, set[str]] | None:
    """Return the last commit and the files that differ from what they were so many commits before.

    None if git does not know: there is no git, this is no checkout, or its history is too short.
    """

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout

    try:
        if Path(git("rev-parse", "--show-toplevel").rstrip("\n")).resolve() != root.resolve():
            return None
        names = git("diff", "--name-only", "-z", f"HEAD~{commits}")
        names += git("ls-files", "--others", "--exclude-standard", "-z")
        return git("rev-parse", "HEAD").strip(), set(names.split("\0")) - {""}
    except (OSError, subprocess.CalledProcessError):
        return None


def select(mutants: list[Mutant], root: Path, commits: int, draw: int) -> tuple[list[Mutant], str]:
    """Return the mutants of modules changed lately and some drawn others, and how they were chosen.

    They stay in order.
    """
    known = changed_files(root, commits)
    if known is None:
        return mutants, f"all mutants, since git does not know the last {commits} commits"
    commit, files = known
    changed = {mutant for mutant in mutants if mutant.file in files}
    others = sorted(
        (mutant for mutant in mutants if mutant not in changed),
        key=lambda mutant: hashlib.sha256(f"{commit} {mutant!r}".encode()).digest(),
    )
    chosen = changed.union(others[:draw])
    modules = len({mutant.file for mutant in changed})
    words = (
        f"{len(changed)} mutants of {modules} module{'s' * (modules != 1)} changed in the last "
        f"{commits} commits, {len(chosen) - len(changed)} of {len(others)} others drawn by commit "
        f"{commit[:12]}"
    )
    return [mutant for mutant in mutants if mutant in chosen], words


def run_all(runs: list[Run], workers: int, timeout: float) -> Iterator[Run]:
    """Yield runs as they finish, each in a process of its own."""
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    waiting, running = runs[::-1], {}
    while waiting or running:
        while waiting and len(running) < workers:
            run = waiting.pop()
            process = context.Process(target=run.start)
            process.start()
            running[process.sentinel] = run, process, time.monotonic() + timeout
        nearest = min(deadline for _, _, deadline in running.values())
        ready = wait(list(running), max(0.0, nearest - time.monotonic()))
        for sentinel, (run, process, deadline) in list(running.items()):
            if sentinel not in ready:
                if time.monotonic() < deadline:
                    continue
                process.kill()
                run.outcomes = {test: [f"took more than {timeout:g} s"] for test in run.tests}
            process.join()
            del running[sentinel]
            run.finish()
            yield run


def unfit_tests(runs: Iterator[Run]) -> Iterator[tuple[str, str]]:
    """Yield (test, problem) of every test that does not simply pass on the unchanged library."""
    for run in runs:
        for test, outcomes in run.outcomes.items():
            if not outcomes:
                yield test, f"{test}: there is no such test\n{run.log()}"
            elif set(outcomes) - {"passed", "skipped"} or "passed" not in outcomes:
                wrong = ", ".join(dict.fromkeys(outcomes))
                yield test, f"{test}: without any change: {wrong}\n{run.log()}"


def survivors(runs: Iterator[Run]) -> Iterator[str]:
    """Yield the mutants that no test noticed."""
    for run in runs:
        outcomes = run.outcomes[run.tests[0]]
        if "failed" not in outcomes:
            came = ", ".join(dict.fromkeys(outcomes)) or "no such test"
            text = f"survived: {run.mutant}\n    {run.tests[0]}: {came}"
            yield text if came == "passed" else f"{text}\n{run.log()}"


def natural(text: str) -> int:
    """Return a whole number of at least 0 from the command line."""
    if (number := int(text)) < 0:
        raise ValueError(f"{text} is negative")
    return number


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("lists", nargs="*", type=Path, help="TOML files, by default all")
    parser.add_argument("--root", type=Path, default=ROOT, help="project folder")
    parser.add_argument("--workers", type=int, default=2, help="how many runs at a time")
    parser.add_argument("--timeout", type=float, default=60, help="seconds a run may take")
    parser.add_argument(
        "--recent",
        type=natural,
        metavar="COMMITS",
        help="only of modules changed in so many commits",
    )
    parser.add_argument(
        "--draw", type=natural, metavar="N", default=0, help="with --recent, so many of the others"
    )
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    mutants, problems = read_mutants(
        options.lists or sorted((root / "tests/mutants").glob("*.toml")), root
    )
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 1
    if options.recent is not None:
        mutants, words = select(mutants, root, options.recent, options.draw)
        print(words, flush=True)

    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # loading them takes longer than the tests
    tests: dict[str, list[str]] = {}
    for test in dict.fromkeys(mutant.test for mutant in mutants):
        tests.setdefault(test.partition("::")[0], []).append(test)
    preload(path for path in map(root.joinpath, tests) if path.is_file())
    preload((root / PACKAGE).rglob("*.py"))
    gc.freeze()  # no run looks through what was there before it
    with tempfile.TemporaryDirectory() as temporary:
        folders = (Path(temporary) / str(number) for number in range(10**6))
        unchanged = [Run(root, next(folders), names) for names in tests.values()]
        unfit = dict(unfit_tests(run_all(unchanged, options.workers, options.timeout * 10)))
        problems += unfit.values()
        changed = [
            Run(root, next(folders), [mutant.test], mutant)
            for mutant in mutants
            if mutant.test not in unfit
        ]
        alive = list(survivors(run_all(changed, options.workers, options.timeout)))
    for text in [*problems, *alive]:
        print(text, file=sys.stderr)
    print(f"{len(mutants)} mutants, {len(changed) - len(alive)} killed")
    return int(bool(problems or alive))


if __name__ == "__main__":
    sys.exit(main())
