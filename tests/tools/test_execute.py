"""Notebooks run whole and store the same bytes every time, or are left as they were.

The second half shows what ``pytest --nbval``, with the options of the Makefile, lets pass and what
it does not.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import execute

ROOT = Path(__file__).parents[2]
RAISES = {"tags": ["raises-exception"]}
PIECEMEAL = "import time\nprint('a', flush=True)\ntime.sleep(0.5)\nprint('b')\n2"
PICTURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"


def write(path: Path, *cells: str | nbformat.NotebookNode) -> Path:
    """Write a notebook; cell n has the id ``id-n``, strings become code cells."""
    nodes = [new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells]
    for number, node in enumerate(nodes, 1):
        node.id = f"id-{number}"
    nbformat.write(new_notebook(cells=nodes), path)
    return path


def outputs(path: Path) -> list[list[nbformat.NotebookNode]]:
    """Return the outputs of every code cell."""
    cells = nbformat.read(path, as_version=4).cells
    return [cell.outputs for cell in cells if cell.cell_type == "code"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "chapter.ipynb"


def test_two_runs_store_the_same_bytes(path):
    picture = new_code_cell(PICTURE, metadata={"mystnb": {"figure": {"name": "fig-line"}}})
    write(path, new_markdown_cell("# Title"), PIECEMEAL, picture)
    assert execute.main(["--check-determinism", str(path)]) == 0
    first = path.read_bytes()
    assert execute.main([str(path)]) == 0
    assert path.read_bytes() == first
    assert first.endswith(b"}\n")
    assert not first.endswith(b"\n\n")
    assert [f.name for f in path.parent.iterdir()] == [path.name], "no drafts are left"

    (stream, result), (picture,) = outputs(path)
    assert stream.text == "a\nb\n"
    assert result.data["text/plain"] == "2"
    assert "image/png" in picture.data


def test_what_is_stored_does_not_depend_on_editor_machine_or_moment(path):
    cell = new_code_cell("1", metadata={"scrolled": True, "tags": ["claim-C1"], "vscode": {"a": 1}})
    write(path, cell)
    content = json.loads(path.read_text())
    content["metadata"] = {
        "kernelspec": {"name": "my-env", "display_name": "My env", "language": "python"},
        "language_info": {"name": "python", "version": "3.99.1"},
        "widgets": {},
    }
    path.write_text(json.dumps(content))
    assert execute.main([str(path)]) == 0
    notebook = nbformat.read(path, as_version=4)
    assert notebook.cells[0].metadata == {"tags": ["claim-C1"]}
    assert notebook.cells[0].execution_count == 1
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert "version" not in notebook.metadata.language_info


def test_cells_keep_their_ids_and_get_one_if_they_have_none(path):
    write(path, "1", "2")
    content = json.loads(path.read_text())
    del content["cells"][1]["id"]
    content["nbformat_minor"] = 4
    path.write_text(json.dumps(content))
    assert execute.main([str(path)]) == 0
    notebook = nbformat.read(path, as_version=4)
    assert [cell.id for cell in notebook.cells] == ["id-1", "cell-2"]
    assert notebook.nbformat_minor == 5


def test_the_kernel_has_one_thread_no_settings_of_the_user_and_the_notebook_s_folder(
    path, tmp_path, monkeypatch
):
    for name, value in (
        ("MPLBACKEND", "agg"),
        ("PYTHONWARNINGS", "error"),
        ("OMP_NUM_THREADS", "7"),
    ):
        monkeypatch.setenv(name, value)
    startup = tmp_path / "ipython/profile_default/startup"
    startup.mkdir(parents=True)
    (startup / "mine.py").write_text("print('mine')\nmine = 1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    kernel = tmp_path / "kernels/python3/kernel.json"
    kernel.parent.mkdir(parents=True)
    kernel.write_text('{"argv": ["false"], "display_name": "Mine", "language": "python"}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    (tmp_path / "data.txt").write_text("here")
    write(
        path,
        "import os, sys\nprint(os.environ['OMP_NUM_THREADS'], open('data.txt').read())",
        f"sys.executable == {sys.executable!r}, 'mine' in globals(), sys.warnoptions",
        PICTURE,
    )
    assert execute.main([str(path)]) == 0
    (stream,), (result,), (picture,) = outputs(path)
    assert stream.text == "1 here\n"
    assert result.data["text/plain"] == "(True, False, [])"
    assert "image/png" in picture.data


def test_a_cell_meant_to_fail_keeps_its_own_lines_of_the_traceback(path):
    write(
        path,
        new_code_cell("import json\njson.loads('{')", metadata=RAISES),
        new_code_cell("x = = 1", metadata=RAISES),
        "print('goes on')",
    )
    assert execute.main([str(path)]) == 0
    (error,), (syntax,), (stream,) = outputs(path)
    text = "\n".join(error.traceback)
    assert error.ename == "JSONDecodeError"
    assert "----> 2 json.loads('{')" in text
    assert text.endswith("JSONDecodeError: " + error.evalue)
    assert syntax.ename == "SyntaxError"
    assert stream.text == "goes on\n"
    assert "\x1b" not in text
    assert not re.search(r"\.py\b|/", text), "no frames of libraries, no paths"


BAD_CELLS = {
    "raises": ("def f():\n    return 1 / 0\nf()", "ZeroDivisionError: division by zero"),
    "syntax error": ("x = = 1", "SyntaxError: invalid syntax"),
    "warns": ("import warnings\nwarnings.warn('old')", "printed to stderr"),
    "shows a figure's repr": ("import matplotlib.pyplot as plt\nplt.figure()", "shows '<Figure"),
    "shows lines": (PICTURE.removesuffix("\nplt.show()"), "shows '[<matplotlib.lines.Line2D"),
    "does not raise": (new_code_cell("1", metadata=RAISES), "raises-exception and raised nothing"),
    "ends the kernel": ("import os\nos._exit(1)", "the kernel died"),
}


@pytest.mark.parametrize(("cell", "message"), BAD_CELLS.values(), ids=BAD_CELLS)
def test_a_bad_cell_is_named_and_the_file_stays(path, capsys, cell, message):
    write(path, "print('fine')", new_markdown_cell("prose"), cell)
    before = path.read_bytes()
    assert execute.main([str(path)]) == 1
    assert path.read_bytes() == before
    assert [f.name for f in path.parent.iterdir()] == [path.name]
    error = capsys.readouterr().err
    assert error.startswith(f"{path}, code cell 2 (id-3): ")
    assert message in error


def test_an_endless_cell_is_named(path, capsys):
    write(path, "while True:\n    pass")
    assert execute.main(["--timeout", "1", str(path)]) == 1
    assert "code cell 1 (id-1): takes more than 1 s" in capsys.readouterr().err


def test_a_cell_that_differs_from_run_to_run_is_named(path, capsys):
    draw = "import random\nprint(random.random())"
    ignored = {"tags": ["nbval-ignore-output"]}
    write(path, new_code_cell(draw, metadata=ignored))
    assert execute.main(["--check-determinism", str(path)]) == 0
    write(path, new_code_cell(draw, metadata=ignored), draw)
    before = path.read_bytes()
    assert execute.main(["--check-determinism", str(path)]) == 1
    assert "code cell 2 (id-2): a second run gives other" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_one_bad_notebook_does_not_keep_the_others(path, capsys):
    bad = path.with_name("bad.ipynb")
    bad.write_text("{}")
    write(path, "print(1)")
    missing = path.with_name("missing.ipynb")
    assert execute.main([str(bad), str(missing), str(path)]) == 1
    assert outputs(path)[0][0].text == "1\n"
    error = capsys.readouterr().err
    assert f"{bad}, is no notebook" in error
    assert f"{missing}, is no notebook" in error


def test_ids_that_are_not_unique_are_refused(path, capsys):
    write(path, "1", "2")
    path.write_text(path.read_text().replace("id-2", "id-1"))
    before = path.read_bytes()
    assert execute.main([str(path)]) == 1
    assert "more than one cell with the id id-1" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_what_is_no_valid_notebook_is_refused(path, capsys):
    write(path, "1")
    path.write_text(path.read_text().replace('"id-1"', '"no id"'))
    before = path.read_bytes()
    assert execute.main([str(path)]) == 1
    assert "is not valid" in capsys.readouterr().err
    assert path.read_bytes() == before


def nbval(path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``pytest --nbval`` as the Makefile does, on a notebook in a folder of its own."""
    for file in ("conftest.py", "pyproject.toml"):
        (path.parent / file).write_text((ROOT / file).read_text())
    options = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=600", "--color=no", "-rA"]
    sanitize = f"--nbval-sanitize-with={ROOT / 'tests/nbval_sanitize.cfg'}"
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, sanitize, path.name],
        capture_output=True,
        text=True,
        cwd=path.parent,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        check=False,
    )


def test_nbval_passes_what_execute_stores(path):
    write(
        path,
        "print('a')\n2",
        PICTURE,
        new_code_cell("1 / 0", metadata=RAISES),
        new_code_cell("x = = 1", metadata=RAISES),
        new_code_cell("import json\njson.loads('{')", metadata=RAISES),
    )
    assert execute.main([str(path)]) == 0
    done = nbval(path)
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout


class Change:
    """What a cell is when its output is stored, what it becomes, and whether nbval must mind."""

    def __init__(self, before: str, after: str, outcome: str):
        self.before, self.after, self.outcome = before, after, outcome


CHANGES = {
    "a print": Change("print(1)", "print(2)", "FAILED"),
    "a value": Change("1", "2", "FAILED"),
    "no output": Change("print(1)", "_ = 1", "FAILED"),
    "a new output": Change("_ = 1", "print(1)", "FAILED"),
    "an error": Change("3", "3 / 0", "FAILED"),
    "another message": Change("raise ValueError(1)", "raise ValueError(2)", "FAILED"),
    "another error": Change("raise ValueError(1)", "raise TypeError(1)", "FAILED"),
    "an error no more": Change("raise ValueError(1)", "1", "FAILED"),
    "an address": Change("print(object())", "x = 1\nprint(object())", "PASSED"),
    "where packages are": Change(
        "print('/a/lib/site-packages/x.py')", r"print(r'C:\a\Lib\site-packages\x.py')", "PASSED"
    ),
    "another path": Change("print('/a/lib/x.py')", "print('/b/lib/x.py')", "FAILED"),
    "a warning": Change("print(1)", "import warnings\nwarnings.warn('old')\nprint(1)", "PASSED"),
    "a warning and a print": Change(
        "print(1)", "import warnings\nwarnings.warn('old')\nprint(2)", "FAILED"
    ),
}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Return what nbval says of a notebook whose cells changed after their outputs were stored."""
    path = tmp_path_factory.mktemp("changes") / "chapter.ipynb"
    cells = [
        new_code_cell(change.before, metadata=RAISES if "raise" in change.before else {})
        for change in CHANGES.values()
    ]
    write(path, *cells)
    assert execute.main([str(path)]) == 0
    notebook = nbformat.read(path, as_version=4)
    for cell, change in zip(notebook.cells, CHANGES.values(), strict=True):
        cell.source = change.after
    nbformat.write(notebook, path)
    done = nbval(path)
    assert done.returncode == 1
    return done.stdout


@pytest.mark.parametrize("name", CHANGES)
def test_nbval_minds_what_is_printed_and_shown_but_no_warnings(report, name):
    number = list(CHANGES).index(name)
    assert re.search(rf"^{CHANGES[name].outcome} chapter.ipynb::Cell {number}\b", report, re.M)


def test_text_only_notebooks_run_without_matplotlib(path, tmp_path, monkeypatch):
    blocked = tmp_path / "blocked/matplotlib"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text("raise ImportError('not installed')")
    monkeypatch.setenv("PYTHONPATH", str(blocked.parent))
    write(path, "print('text')", new_code_cell("import matplotlib", metadata=RAISES))
    assert execute.main([str(path)]) == 0
    (_, (error,)) = outputs(path)
    assert error.evalue == "not installed", "matplotlib is really out of reach"
    done = nbval(path)
    assert done.returncode == 0, done.stdout
