"""The export writes what the cells say, and refuses chapters that would make a bad library."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import export

ROOT = Path(__file__).parents[2]


def weights(purpose="Weights.", module="weights"):
    return f'#| default_exp {module}\nr"""{purpose}"""'


class Project:
    """A folder with chapters in ``book/``, listed in ``_toc.yml`` in the order they are added."""

    def __init__(self, root: Path):
        self.root = root
        self.files: list[str] = []
        (root / "book").mkdir()
        (root / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
        self.write("transformer_lib/__init__.py", "")

    def write(self, file: str, text: str) -> None:
        """Write a file."""
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def read(self, file: str) -> str:
        """Return a file's text."""
        return (self.root / file).read_text(encoding="utf-8")

    def chapter(self, name: str, *sources: str, title: str = "# A *title*") -> "Project":
        """Add a notebook of a title and code cells, in which ``id-n`` is code cell n."""
        cells = [new_markdown_cell(title), *map(new_code_cell, sources)]
        for number, cell in enumerate(cells):
            cell.id = f"id-{number}"
        nbformat.write(new_notebook(cells=cells), self.root / f"book/{name}.ipynb")
        self.files.append(name)
        pages = "".join(f"\n      - file: {file}" for file in self.files)
        self.write("_toc.yml", f"parts:\n  - numbered: true\n    chapters:{pages}\n")
        return self

    def export(self, *options: str) -> int:
        """Run the tool and return its exit status."""
        return export.main(["--root", str(self.root), *options])

    def problems(self) -> str:
        """Return what is wrong with the chapters."""
        files, problems = export.build(self.root)
        assert problems or files
        return "\n".join(problems)


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_a_module_reads_as_if_written_by_hand(project, capsys):
    project.chapter(
        "01_weights",
        weights("Weights: how much each value counts."),
        "import matplotlib\nprint('not for the library')",
        "#| export\nfrom torch import Tensor\nimport torch\nimport math\n\nEPS = 1e-6\n_HALF = 0.5",
        "#| export\nfrom torch import Tensor, nn\nimport torch\nclass Mean(nn.Module):\n"
        "    '''The mean.'''\n    def forward(self, x: Tensor) -> Tensor:\n"
        "        import itertools  # quick to load\n        return _half(x)",
        "#| export weights\ndef _half(x):\n    # both\n    return torch.mean(x)*_HALF",
        title="# `Weights` for *all*",
    )
    assert project.export() == 0
    assert (
        project.read("transformer_lib/weights.py")
        == '''\
"""Weights: how much each value counts.

Explained in chapter 1, "Weights for all" (book/01_weights.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

import torch
from torch import Tensor, nn

__all__ = ["EPS", "Mean"]

EPS = 1e-6
_HALF = 0.5


class Mean(nn.Module):
    """The mean."""

    def forward(self, x: Tensor) -> Tensor:
        return _half(x)


def _half(x):
    # both
    return torch.mean(x) * _HALF
'''
    )
    assert "wrote transformer_lib/weights.py" in capsys.readouterr().out


def test_two_modules_of_a_chapter(project):
    project.chapter(
        "01_sums",
        weights("Sums.", "sums"),
        "#| export\ndef total(x): return sum(x)",
        weights("Means.", "means"),
        "#| export\nfrom transformer_lib.sums import total\ndef mean(x):\n"
        "    return total(x) / len(x)",
        title="# Sums",
    )
    assert project.export() == 0
    assert "def total" in project.read("transformer_lib/sums.py")
    assert "def mean" in project.read("transformer_lib/means.py")
    assert "def mean" not in project.read("transformer_lib/sums.py")


def test_a_module_of_two_chapters(project):
    project.chapter("01_sums", weights("Sums.", "sums"), "#| export\ndef total(x): return sum(x)")
    project.chapter(
        "02_more",
        "#| export sums\nfrom transformer_lib.sums import total\ndef mean(x):\n"
        "    return total(x) / len(x)",
        title="# More",
    )
    assert project.export() == 0
    module = project.read("transformer_lib/sums.py")
    assert '(book/01_sums.ipynb) and chapter 2, "More" (book/02_more.ipynb).' in " ".join(
        module.split()
    )
    assert "Generated from these by" in " ".join(module.split())
    assert '__all__ = ["mean", "total"]' in module
    assert "import" not in module.partition("__all__")[2], "a module does not import from itself"
    assert module.index("def total") < module.index("def mean")
    namespace: dict = {}
    exec(module, namespace)
    assert namespace["mean"]([1, 2, 6]) == 3


PART = "transformer_lib/part/__init__.py", '"""A part of the library."""\n'


def test_a_module_in_a_package(project):
    """It is named with a dot wherever a module is named."""
    project.write(*PART)
    project.write("transformer_lib/part/paths.py", '"""Paths, by hand."""\nPATH = "."\n')
    project.chapter(
        "01_sums",
        weights("Sums.", "part.sums"),
        EXPORT + "from transformer_lib.part.paths import PATH\ndef total(x): return sum(x), PATH",
        title="# Sums",
    )
    project.chapter(
        "02_more",
        "#| export part.sums\nfrom transformer_lib.part.sums import total\n"
        "def twice(x): return 2 * total(x)",
        weights("Means.", "part.means"),
        EXPORT + "from transformer_lib.part import sums\ndef mean(x): return sums.total(x)",
        "from transformer_lib.part.sums import twice\nfrom transformer_lib.part import means",
        title="# More",
    )
    assert project.export() == 0
    sums = project.read("transformer_lib/part/sums.py")
    assert '"Sums" (book/01_sums.ipynb) and chapter 2, "More"' in " ".join(sums.split())
    assert "def total" in sums
    assert "def twice" in sums
    assert "from transformer_lib.part import sums" in project.read("transformer_lib/part/means.py")
    assert project.export("--check") == 0


def test_modules_of_one_chapter_use_each_other_as_the_notebook_does(project):
    project.write(*PART)
    total = "import math\nfrom os import path as p\ndef total(x): return sum(x)\n_HALF = 0.5"
    sums = [weights("Sums.", "part.sums"), EXPORT + total]
    means = "class Mean:\n    def __call__(self, x): return math.tau + p.sep + total(x) / len(x)"
    project.chapter("01_sums", *sums, weights("Means.", "part.means"), EXPORT + means)
    assert project.export() == 0
    assert (
        "import math\nfrom os import path as p\n\nfrom transformer_lib.part.sums import total\n"
        in (project.read("transformer_lib/part/means.py"))
    )
    assert "import" not in project.read("transformer_lib/part/sums.py").partition('"""\n')[2]
    project.chapter("02_later", weights("Late.", "late"), EXPORT + "def f(): return total")
    assert "transformer_lib/late.py: uses total, which" in project.problems()
    private = [weights("Halves.", "part.means"), EXPORT + "def half(x): return _HALF * x"]
    project.chapter("01_sums", *sums, *private)
    assert "uses _HALF, which" in project.problems()


def test_modules_of_one_chapter_that_use_each_other(project):
    project.chapter(
        "01_a",
        weights("A.", "a"),
        EXPORT + "def one(): return two",
        weights("B.", "b"),
        EXPORT + "def two(): return one",
    )
    assert "in a circle: " in project.problems()


def test_a_package_says_what_it_is_for(project):
    project.chapter("01_sums", weights("Sums.", "part.sums"), EXPORT + "ONE = 1")
    assert "transformer_lib/part/__init__.py: missing" in project.problems()
    project.write(*PART)
    assert project.problems() == ""


def test_a_name_is_a_module_or_a_package(project):
    project.write(*PART)
    project.chapter(
        "01_sums", weights("P.", "part"), EXPORT + "ONE = 1", weights(), EXPORT + "TWO = 2"
    )
    assert "package" not in project.problems()
    project.chapter("02_more", weights("Sums.", "part.sums"), EXPORT + "THREE = 3")
    assert "transformer_lib/part/sums.py: transformer_lib/part.py is no package" in (
        project.problems()
    )


def test_the_library_passes_the_linter(project):
    project.chapter(
        "01_weights",
        weights(r"Weights $\alpha$."),
        "#| export\nfrom transformer_lib._checks.common import require\nimport torch, math\n"
        "def f(x):\n    '''Check and\n    return.'''\n    require(x); return math.tau + torch.pi",
    )
    project.write("transformer_lib/_checks/common.py", "def require(x):\n    pass\n")
    assert project.export() == 0
    file = project.root / "transformer_lib/weights.py"
    assert file.read_text().startswith('r"""Weights $')
    for command in (["check", "--select=I,F,W,RUF", "--no-cache"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *command, str(file)]
        assert subprocess.run(ruff, cwd=project.root, check=False).returncode == 0


def test_checking_passes_after_writing_and_writing_again_changes_nothing(project, capsys):
    project.chapter("01_weights", weights(), "#| export\nONE = 1")
    assert project.export() == 0
    before = (project.root / "transformer_lib/weights.py").stat()
    assert project.export("--check") == 0
    assert project.export() == 0
    assert (project.root / "transformer_lib/weights.py").stat().st_mtime_ns == before.st_mtime_ns
    assert capsys.readouterr().out.splitlines()[1:] == ["1 module up to date"] * 3


def test_checking_notices_an_edited_module(project, capsys):
    project.chapter("01_weights", weights(), "#| export\nONE = 1")
    assert project.export("--check") == 1
    assert "transformer_lib/weights.py: missing" in capsys.readouterr().err
    project.export()
    edited = project.read("transformer_lib/weights.py").replace("ONE = 1", "ONE = 2")
    project.write("transformer_lib/weights.py", edited)
    assert project.export("--check") == 1
    message = capsys.readouterr().err
    assert "transformer_lib/weights.py: differs" in message
    assert "-ONE = 2" in message
    assert "+ONE = 1" in message
    assert project.read("transformer_lib/weights.py") == edited, "checking writes nothing"


@pytest.mark.parametrize("orphan", ["old.py", "old/__init__.py"])
def test_an_orphaned_module_is_noticed(project, capsys, orphan):
    project.chapter("01_weights", weights(), "#| export\nONE = 1")
    assert project.export() == 0
    project.write(f"transformer_lib/{orphan}", "")
    for options in (["--check"], []):
        assert project.export(*options) == 1
        assert "transformer_lib/old" in (message := capsys.readouterr().err)
        assert "orphaned" in message


def test_handwritten_modules_are_no_orphans(project):
    for name in (
        "_checks/__init__.py",
        "course/__init__.py",
        "__main__.py",
        "datasets/__init__.py",
    ):
        project.write(f"transformer_lib/{name}", "")
    project.chapter("01_weights", weights(), "#| export\nONE = 1")
    assert project.problems() == ""


def test_an_orphan_in_a_package_is_told_by_its_docstring(project, capsys):
    """A generated module that no cell feeds any more, not one that is written by hand beside it."""
    project.write(*PART)
    project.chapter(
        "01_sums",
        weights("Sums.", "part.sums"),
        EXPORT + "ONE = 1",
        weights("Old.", "part.old"),
        EXPORT + "TWO = 2",
    )
    assert project.export() == 0
    project.chapter("01_sums", weights("Sums.", "part.sums"), EXPORT + "ONE = 1")
    assert project.export("--check") == 1
    assert "transformer_lib/part/old.py: orphaned" in capsys.readouterr().err
    project.write("transformer_lib/part/old.py", "TWO = 2")
    assert "transformer_lib/part/old.py: orphaned" in project.problems()
    project.write("transformer_lib/part/old.py", '"""Old, but wanted."""\nTWO = 2')
    assert project.problems() == ""


def test_no_cell_feeds_what_is_written_by_hand_in_a_package(project):
    project.write(*PART)
    project.write("transformer_lib/part/sums.py", '"""Sums."""\n')
    project.chapter("01_sums", weights("Sums.", "part.sums"), EXPORT + "ONE = 1")
    assert "transformer_lib/part/sums.py: is written by hand" in project.problems()


def test_nothing_is_written_when_anything_is_wrong(project):
    project.chapter("01_weights", weights(), "#| export\nONE = 1")
    project.chapter("02_other", weights("Other.", "other"), "#| export\nTWO = = 2")
    before = sorted(project.root.rglob("*"))
    assert project.export() == 1
    assert sorted(project.root.rglob("*")) == before


def test_the_order_is_that_of_the_table_of_contents(project):
    project.chapter("b", weights("B.", "b"), "#| export\nB = 1")
    project.chapter("a", weights("A.", "a"), "#| export\nfrom transformer_lib.b import B\nA = B")
    assert project.problems() == ""
    (project.root / "_toc.yml").unlink()
    assert "chapter 1 imports B, which chapter 2 defines (book/b.ipynb)" in project.problems()


def test_a_notebook_outside_the_numbered_chapters_feeds_nothing(project):
    project.chapter("01_weights", weights(), "#| export\nONE = 1")
    project.chapter("extra", "print(1)")
    assert project.problems() == ""
    (project.root / "_toc.yml").write_text(
        "parts:\n- numbered: true\n  chapters:\n  - file: extra\n"
        "- chapters:\n  - file: 01_weights\n"
    )
    assert "book/01_weights.ipynb: feeds the library, but" in project.problems()


EXPORT = "#| export\n"
BAD_CHAPTERS = {
    "does not parse": ([weights(), EXPORT + "x =\ny = 2"], "code cell 2 (id-2): line 2: invalid"),
    "magics": ([weights(), EXPORT + "%time\ndef f(): pass"], "code cell 2 (id-2): line 2: invalid"),
    "export without a module": ([EXPORT + "ONE = 1"], "`#| export` without a module"),
    "export before the module": ([EXPORT + "ONE = 1", weights()], "without a module"),
    "no purpose": (["#| export weights\nONE = 1"], "no `#| default_exp weights` says what it is"),
    "empty purpose": (["#| default_exp weights", EXPORT + "ONE = 1"], "one docstring and nothing"),
    "code beside the purpose": ([weights() + "\nONE = 1", EXPORT + "TWO = 2"], "one docstring and"),
    "long purpose": ([weights("W" * 97 + "."), EXPORT + "ONE = 1"], "must be one line"),
    "two lines of purpose": ([weights("W\nW."), EXPORT + "ONE = 1"], "must be one line"),
    "purpose without stop": ([weights("Weights"), EXPORT + "ONE = 1"], "ends with a full stop"),
    "module without cells": ([weights()], "no `#| export` cell feeds weights"),
    "nothing public": ([weights(), EXPORT + "_ONE = 1"], "weights has no public name"),
    "handwritten module": ([weights("A.", "course"), EXPORT + "ONE = 1"], "is written by hand"),
    "unknown directive": ([weights(), "#| hide\nONE = 1"], "unknown directive '#| hide'"),
    "misspelt directive": ([weights(), "#|export\nONE = 1"], "unknown directive '#|export'"),
    "directive with a space": (
        [weights(), "# | export\nONE = 1"],
        "unknown directive '# | export'",
    ),
    "bad module name": (["#| default_exp a-b\n'''A.'''"], "unknown directive"),
    "module too deep": (["#| default_exp a.b.c\n'''A.'''"], "unknown directive"),
    "module of a handwritten package": (
        [weights("A.", "course.a"), EXPORT + "ONE = 1"],
        "course/a.py: is written by hand",
    ),
    "directive further down": ([weights(), "ONE = 1\n#| export"], "is not in the first line"),
    "a call": ([weights(), EXPORT + "ONE = 1\nprint(ONE)"], "`print(ONE)` would run on import"),
    "an assertion": ([weights(), EXPORT + "ONE = 1\nassert ONE"], "`assert ONE` would run on"),
    "a loop": ([weights(), EXPORT + "for ONE in (1,): pass"], "would run on import"),
    "a patch": ([weights(), EXPORT + "def f(): pass\nf.x = 1"], "`f.x = 1` would run on import"),
    "a public variable": ([weights(), EXPORT + "ONE = 1\none, _ = 1, 2"], "name it in UPPER_CASE"),
    "twice in a module": ([weights(), EXPORT + "ONE = 1", EXPORT + "ONE = 1"], "already defined"),
    "private twice": ([weights(), EXPORT + "_F = ONE = 1", EXPORT + "_F = 1"], "_F is already"),
    "undefined": (
        [weights(), "import math", EXPORT + "def f(): return math.pi"],
        "uses math, which",
    ),
    "undefined in a class": ([weights(), EXPORT + "class A:\n  x = Tensor"], "uses Tensor, which"),
    "no such module": ([weights(), EXPORT + "ONE = 1", "import transformer_lib.x"], "no module"),
    "no such name": (
        [weights(), EXPORT + "ONE = 1", "from transformer_lib.weights import TWO"],
        "code cell 3 (id-3): transformer_lib/weights.py has no TWO",
    ),
    "relative import": ([weights(), EXPORT + "from .a import A\nONE = A"], "has no package"),
    "import from the package": (
        [weights(), EXPORT + "def f():\n    from transformer_lib import ONE\n    return ONE"],
        "import from a module of transformer_lib",
    ),
    "by name": (
        [weights(), EXPORT + "ONE = 1", "import importlib\nimportlib.import_module(f'{x}')"],
        "code cell 3 (id-3): `importlib.import_module(f'{x}')` imports by name",
    ),
    "by another name": (
        [
            weights(),
            EXPORT + "from importlib import import_module as load\n"
            "def f(): return load('transformer_lib.weights')",
        ],
        "`load('transformer_lib.weights')` imports by name",
    ),
    "by a relative name": (
        [weights(), EXPORT + "ONE = 1", "from importlib import *\nimport_module('.a', 'b')"],
        "`import_module('.a', 'b')` imports by name",
    ),
    "built in": (
        [weights(), EXPORT + "def f(): return __import__('transformer_lib.weights')"],
        "`__import__('transformer_lib.weights')` imports by name",
    ),
    "import of itself": (
        [weights(), EXPORT + "def f():\n    import transformer_lib.weights"],
        "in a circle: weights → weights",
    ),
    "no title": ([weights(), EXPORT + "ONE = 1"], "has no `# Title`"),
}


@pytest.mark.parametrize(("sources", "message"), BAD_CHAPTERS.values(), ids=BAD_CHAPTERS)
def test_bad_chapters_are_refused(project, sources, message):
    title = "prose" if "no `# Title`" in message else "# Title"
    project.chapter("01_weights", *sources, title=title)
    assert message in project.problems()
    assert project.export() == 1


@pytest.mark.parametrize("text", ["no JSON", "{}", "[]"])
def test_a_file_that_is_no_notebook_is_named(project, text):
    project.chapter("01_weights", weights(), EXPORT + "ONE = 1")
    project.write("book/01_weights.ipynb", text)
    assert "book/01_weights.ipynb: is no notebook" in project.problems()


def test_markdown_tables_in_comments_are_no_directives(project):
    project.chapter("01_weights", weights(), EXPORT + "# | a | b |\nONE = 1", "# | exported |")
    assert project.problems() == ""


def test_a_second_purpose_is_refused(project):
    project.chapter("01_weights", weights(), EXPORT + "ONE = 1")
    project.chapter("02_again", weights(), EXPORT + "TWO = 2")
    message = project.problems()
    assert "book/02_again.ipynb, code cell 1 (id-1): the purpose of weights is already" in message


@pytest.mark.parametrize("definition", ["def same(): pass", "class same: pass"])
def test_a_name_is_public_once(project, definition):
    project.chapter("01_weights", weights(), EXPORT + definition)
    project.chapter("02_other", weights("Other.", "other"), EXPORT + "def same(): pass")
    assert "code cell 2 (id-2): same is already defined in book/01_weights" in project.problems()


def test_private_names_may_recur_in_other_modules(project):
    project.chapter("01_weights", weights(), EXPORT + "_A = ONE = 1")
    project.chapter("02_other", weights("Other.", "other"), EXPORT + "_A = TWO = 2")
    assert project.problems() == ""


def test_a_name_of_a_handwritten_module_is_taken(project):
    project.write("transformer_lib/course/__init__.py", "def heatmap(): pass")
    project.write("transformer_lib/datasets/__init__.py", "def check(): pass")
    project.chapter("01_weights", weights(), EXPORT + "def heatmap(): pass\ndef check(): pass")
    assert "heatmap is already defined in transformer_lib/course/__init__.py" in project.problems()
    assert "check is already defined in transformer_lib/datasets" in project.problems()


def test_other_packages_may_be_imported_by_name(project):
    statement = "from importlib import import_module\nHAS = import_module('torch.onnx')"
    project.chapter("01_weights", weights(), EXPORT + "ONE = 1", statement)
    assert project.problems() == ""


LATER = {
    "name": "from transformer_lib.late import LATE",
    "module": "import transformer_lib.late",
    "module from the package": "from transformer_lib import late",
    "name from the package": "from transformer_lib import LATE",
    "in a function": "def f():\n    from transformer_lib.late import LATE",
    "in a method": "class A:\n    def f(self):\n        import transformer_lib.late as x",
    "among others": "import os, transformer_lib.late",
    "below a magic": "%matplotlib inline\nfrom transformer_lib.late import LATE",
}


@pytest.mark.parametrize("statement", LATER.values(), ids=LATER)
def test_imports_from_a_later_chapter(project, statement):
    project.chapter("01_early", weights("Early.", "early"), EXPORT + "EARLY = 1", statement)
    project.chapter("02_late", weights("Late.", "late"), EXPORT + "LATE = 1")
    message = project.problems()
    assert "code cell 3 (id-3): chapter 1 imports" in message
    assert "which chapter 2 defines (book/02_late.ipynb)" in message


@pytest.mark.parametrize(
    "statement",
    [
        "from transformer_lib.part.late import LATE",
        "from transformer_lib.part import late",
        "import transformer_lib.part.late",
        "def f():\n    from transformer_lib.part.late import LATE as x",
    ],
)
@pytest.mark.parametrize("mark", ["", EXPORT])
def test_imports_of_a_later_module_of_a_package(project, statement, mark):
    project.write(*PART)
    early = [weights("Early.", "part.early"), EXPORT + "EARLY = 1"]
    project.chapter("01_early", *early, f"{mark}{statement}\nMORE = 1")
    project.chapter("02_late", weights("Late.", "part.late"), EXPORT + "LATE = 1")
    message = project.problems()
    assert "code cell 3 (id-3): chapter 1 imports" in message
    assert "which chapter 2 defines (book/02_late.ipynb)" in message


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("from transformer_lib.part.late import LATE", "there is no module transformer_lib.part.l"),
        (
            "from transformer_lib.part.early import LATE",
            "transformer_lib/part/early.py has no LATE",
        ),
        ("from transformer_lib.part import EARLY", "import from a module of transformer_lib.part,"),
    ],
)
def test_imports_of_nothing_from_a_package(project, statement, message):
    project.write(*PART)
    early = [weights("Early.", "part.early"), EXPORT + "EARLY = 1"]
    project.chapter("01_early", *early, f"{EXPORT}{statement}\nMORE = 1")
    assert message in project.problems()


@pytest.mark.parametrize("name", ["name", "module", "in a function", "in a method"])
def test_imports_from_a_later_chapter_in_the_library(project, name):
    early = [weights("Early.", "early"), f"{EXPORT}{LATER[name]}\nEARLY = 1"]
    project.chapter("01_early", *early)
    project.chapter("02_late", weights("Late.", "late"), EXPORT + "LATE = 1")
    assert "code cell 2 (id-2): chapter 1 imports" in project.problems()


def test_what_a_later_chapter_adds_to_an_earlier_module_is_later_too(project):
    project.chapter("01_early", weights("Early.", "early"), EXPORT + "EARLY = 1")
    project.chapter("02_middle", "from transformer_lib.early import EARLY, ADDED")
    project.chapter("03_late", "#| export early\nADDED = 1")
    assert "chapter 2 imports ADDED, which chapter 3 defines" in project.problems()
    assert "EARLY" not in project.problems()


def test_cells_that_do_not_parse_may_stay_in_the_notebook(project):
    project.chapter("01_weights", weights(), EXPORT + "ONE = 1", "a deliberate syntax error")
    assert project.problems() == ""


def test_modules_that_import_each_other(project):
    project.chapter("01_a", weights("A.", "a"), EXPORT + "A = 1")
    project.chapter(
        "02_b", weights("B.", "b"), EXPORT + "def b():\n    from transformer_lib.a import A"
    )
    assert project.problems() == ""
    project.chapter("03_c", "#| export a\nfrom transformer_lib.b import b\nC = b")
    assert "in a circle: " in (message := project.problems())
    assert "a → b → a" in message or "b → a → b" in message


@pytest.mark.parametrize(
    "statement",
    [
        "from transformer_lib.part.a import A",
        "from transformer_lib.part import a",
        "from .a import A",
        "from . import a",
        "def f():\n    import transformer_lib.part.a",
    ],
)
def test_circles_within_a_package(project, statement):
    """Its modules are told apart: of two, one may use the other."""
    project.write(*PART)
    project.chapter(
        "01_a",
        weights("A.", "part.a"),
        EXPORT + "from transformer_lib.part.hand import HAND\nA = HAND",
        weights("B.", "part.b"),
        EXPORT + "from transformer_lib.part import a\nB = a.A",
    )
    project.write("transformer_lib/part/hand.py", f"'By hand.'\n{statement}\nHAND = 1")
    assert "in a circle: " in (message := project.problems())
    assert "part.a → part.hand → part.a" in message or "part.hand → part.a → part" in message
    project.write("transformer_lib/part/hand.py", "'By hand.'\nHAND = 1")
    assert project.problems() == ""


@pytest.mark.parametrize(
    "statement",
    ["from transformer_lib.a import A", "from transformer_lib import a", "from ..a import A"],
)
def test_circles_through_a_handwritten_module(project, statement):
    project.write("transformer_lib/_checks/common.py", statement)
    project.chapter(
        "01_a",
        weights("A.", "a"),
        EXPORT + "from transformer_lib import _checks\nA = _checks",
    )
    assert "circle" in project.problems()
    project.write("transformer_lib/_checks/common.py", "import torch")
    assert project.problems() == ""


def test_the_package_itself_may_import_every_module(project):
    project.write("transformer_lib/__init__.py", "from transformer_lib.a import A")
    project.write("transformer_lib/course/chapter.py", "from ..a import A")
    project.chapter("01_a", weights("A.", "a"), EXPORT + "A = 1")
    assert project.problems() == ""


def test_the_library_is_what_the_chapters_say(capsys):
    assert export.main(["--check"]) == 0, capsys.readouterr().err
