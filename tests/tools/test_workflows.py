"""The workflows of GitHub Actions: valid, minimal in rights, and true to this checkout.

They cannot be run here; what can be known without running them is tested.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github/workflows").glob("*.yml"))
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FILES}
JOBS = {
    f"{name}/{job}": body
    for name, workflow in WORKFLOWS.items()
    for job, body in workflow["jobs"].items()
}
ACTIONS = {
    "actions/checkout@v4",
    "actions/configure-pages@v5",
    "actions/deploy-pages@v4",
    "actions/setup-python@v5",
    "actions/upload-pages-artifact@v3",
}


def step(job: str, name: str) -> dict[str, Any]:
    """Return the step of a job that has a name."""
    return next(step for step in JOBS[job]["steps"] if step.get("name") == name)


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield every line that a workflow runs, cut into words, with its job."""
    for name, job in JOBS.items():
        for one in job["steps"]:
            for line in one.get("run", "").splitlines():
                yield name, shlex.split(line)


def test_there_are_two_workflows():
    assert set(WORKFLOWS) == {"ci", "pages"}


def check(*files: Path) -> subprocess.CompletedProcess[str]:
    """Hold files against GitHub's schema, of which the checker carries a copy."""
    command = [sys.executable, "-m", "check_jsonschema"]
    command += ["--builtin-schema", "vendor.github-workflows", *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_workflows_follow_the_schema():
    done = check(*FILES)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_schema_would_notice_a_wrong_key(tmp_path):
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(FILES[0].read_text(encoding="utf-8").replace("runs-on:", "runs-at:"))
    assert check(wrong).returncode != 0


def test_ci_runs_on_every_platform_and_version():
    matrix = JOBS["ci/platforms"]["strategy"]["matrix"]
    pairs = set(product(matrix["os"], matrix["python"]))
    excluded = {(one["os"], one["python"]) for one in matrix["exclude"]}
    assert pairs == set(
        product(("ubuntu-latest", "macos-latest", "windows-latest"), ("3.11", "3.12", "3.13"))
    )
    assert excluded == {("ubuntu-latest", "3.11")}
    for job in ("ci/reference", "ci/thorough"):
        assert JOBS[job]["container"] == "python:3.11-bookworm"


def prerequisites(target: str) -> list[str]:
    """Return what a target of the Makefile makes first."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^{target}: (?!\w+ :=)(.+)$", makefile, re.MULTILINE)
    return re.sub(r"\$\(if .*?\)\S*\)", "", found).split()


def test_the_jobs_of_the_reference_platform_are_make_test_side_by_side():
    targets = JOBS["ci/reference"]["strategy"]["matrix"]["targets"]
    assert sorted(" ".join(targets).split()) == sorted(prerequisites("test"))
    (run,) = [one["run"] for one in JOBS["ci/reference"]["steps"] if "ci/run" in one.get("run", "")]
    assert run == "bash .ci/run ${{ matrix.targets }}"
    checkout = JOBS["ci/reference"]["steps"][0]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commits = int(re.search(r"--recent (\d+)", makefile)[1])
    assert checkout["with"]["fetch-depth"] > commits


def test_once_a_week_everything_is_tested():
    assert ("ci/thorough", ["bash", ".ci/run", "thorough"]) in commands()
    assert "schedule" in JOBS["ci/thorough"]["if"]
    assert "test" in prerequisites("thorough")


@pytest.mark.skipif(sys.platform == "win32", reason="the script runs on Linux")
@pytest.mark.parametrize(
    ("targets", "installs", "made"),
    [
        ([], True, "test"),
        (["thorough"], True, "thorough"),
        (["test-site"], True, "test-site"),
        (["lint", "test-library"], False, "lint test-library"),
    ],
)
def test_ci_makes_what_is_named_and_installs_a_browser_where_it_is_needed(
    tmp_path, targets, installs, made
):
    for command in ("make", "apt-get", "sudo"):
        (tmp_path / command).write_text(f'#!/bin/sh\necho {command} "$@" >> "{tmp_path}/log"\n')
        (tmp_path / command).chmod(0o755)
    for command in ("bash", "dirname", "id", "sh"):
        (tmp_path / command).symlink_to(shutil.which(command))
    script = [tmp_path / "bash", ROOT / ".ci/run", *targets]
    subprocess.run(script, env={"PATH": str(tmp_path)}, check=True)
    *before, last = (tmp_path / "log").read_text().splitlines()
    assert last == f"make {made}"
    assert any("install -y -qq chromium" in line for line in before) is installs


def test_when_the_workflows_run():
    # YAML reads the key `on` as the truth value.
    assert set(WORKFLOWS["ci"][True]) == {"push", "pull_request", "schedule", "workflow_dispatch"}
    assert WORKFLOWS["ci"][True]["schedule"] == [{"cron": "17 4 * * 1"}]
    assert set(WORKFLOWS["pages"][True]) == {"push", "workflow_dispatch"}
    assert WORKFLOWS["pages"][True]["push"] == {"branches": ["main"]}


def test_only_known_actions_are_used():
    used = {one["uses"] for job in JOBS.values() for one in job["steps"] if "uses" in one}
    assert used == ACTIONS


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_failing_command_ends_its_step(name):
    text = (ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8")
    # Named "bash", and only so, GitHub starts it with -e and -o pipefail.
    assert WORKFLOWS[name]["defaults"] == {"run": {"shell": "bash"}}
    assert text.count("shell:") == 1
    for hidden in ("continue-on-error", "|| true", "set +e", "always()", "failure()"):
        assert hidden not in text


def test_no_substitution_hides_a_failure():
    for job in JOBS.values():
        for one in job["steps"]:
            for line in one.get("run", "").splitlines():
                # `x=$(command)` fails with the command; a substitution inside a command does not.
                assert "$(" not in line or re.match(r"\w+=\$\(", line)
                assert line.count("$(") <= 1


def test_rights_are_the_least_that_work():
    for workflow in WORKFLOWS.values():
        assert workflow["permissions"] == {"contents": "read"}
    assert {name: job["permissions"] for name, job in JOBS.items() if "permissions" in job} == {
        "pages/build": {"contents": "read", "pages": "read"},
        "pages/notebooks": {"contents": "write"},
        "pages/deploy": {"pages": "write", "id-token": "write"},
    }


def test_every_job_has_a_limit_and_deployments_wait_for_each_other():
    assert all("timeout-minutes" in job for job in JOBS.values())
    assert WORKFLOWS["pages"]["concurrency"]["cancel-in-progress"] is False
    assert JOBS["pages/notebooks"]["needs"] == "build"
    assert JOBS["pages/deploy"]["needs"] == ["build", "notebooks"]


def test_what_the_workflows_call_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    called = [words for _, words in commands()]
    assert ["make", "book"] in called
    assert ["make", "pdf"] in called
    for words in called:
        if words[0] == "make":
            assert set(words[1:]) <= targets
        for word in words:
            path = word.removeprefix("--ignore=")
            if re.match(r"(tools|tests|book|\.ci)\b", path) or path.endswith(".txt"):
                assert (ROOT / path).exists(), path


def test_the_book_is_built_with_warnings_as_errors():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", "")
    builds = [line for line in makefile.splitlines() if "jupyter-book build" in line]
    assert builds
    assert all(re.search(r" -W\b", line) and re.search(r" -n\b", line) for line in builds)
    upload = next(s for s in JOBS["pages/build"]["steps"] if "upload" in s.get("uses", ""))
    assert upload["with"]["path"] == "_build/html"


def test_binder_installs_this_checkout_in_a_form_it_can_read():
    lines = (ROOT / ".binder/requirements.txt").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if not line.startswith("#")]
    assert ".[plots,scores,pretrained]" in lines
    assert all("=" in line for line in lines if line.startswith("--"))
    for line in lines:
        if line.startswith("-c "):
            assert (ROOT / ".binder" / line.removeprefix("-c ")).exists()


def git(folder: Path, *arguments: str) -> str:
    """Return what a git command prints."""
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path) -> Path:
    """Return a checkout with something to publish, and a remote to push to."""
    folder = tmp_path / "checkout"
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "origin"], check=True)
    subprocess.run(["git", "init", "-q", folder], check=True)
    (folder / ".gitignore").write_text("_build/\n")
    (folder / "source.txt").write_text("the source\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "Sources")
    git(folder, "remote", "add", "origin", str(tmp_path / "origin"))
    published = folder / "_build/colab"
    (published / "book").mkdir(parents=True)
    (published / "README.md").write_text("generated\n")
    (published / "book/01_one.ipynb").write_text("{}\n")
    return folder


def replace_branch(checkout: Path) -> subprocess.CompletedProcess[str]:
    """Run the step that pushes the notebooks as GitHub would."""
    script = step("pages/notebooks", "Replace the branch colab")["run"]
    (checkout.parent / "index").unlink(missing_ok=True)
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=checkout,
        env={
            "PATH": os.environ["PATH"],
            "GIT_INDEX_FILE": str(checkout.parent / "index"),
            "GITHUB_SHA": "0" * 40,
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="the step runs on Linux")
def test_the_branch_holds_what_was_published_and_nothing_else(checkout):
    for text in ("first\n", "second\n"):
        (checkout / "_build/colab/README.md").write_text(text)
        done = replace_branch(checkout)
        assert done.returncode == 0, done.stderr
        origin = checkout.parent / "origin"
        names = git(origin, "ls-tree", "-r", "--name-only", "colab").splitlines()
        assert names == ["README.md", "book/01_one.ipynb"]
        assert git(origin, "show", "colab:README.md") == text.strip()
        assert git(origin, "rev-list", "--count", "colab") == "1"
    assert git(checkout, "status", "--porcelain") == ""


@pytest.mark.skipif(sys.platform == "win32", reason="the step runs on Linux")
def test_the_step_fails_when_the_push_does(checkout):
    git(checkout, "remote", "set-url", "origin", str(checkout.parent / "nowhere"))
    assert replace_branch(checkout).returncode != 0
