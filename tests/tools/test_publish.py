"""Published notebooks stand alone: no MyST, the book's numbers, and a library that comes along."""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from bs4 import BeautifulSoup
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell

from tools import publish

ROOT = Path(__file__).parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
GITHUB = publish.Fork("https://github.com/Someone/fork", COMMIT)
FILE = publish.Fork("file://localhost/srv/clone", COMMIT)
PICTURE = new_output(
    "display_data",
    data={"image/png": base64.b64encode(b"picture").decode(), "text/plain": "<Figure>"},
)
IDENTITY = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
# What the environment of `colab` could lack: the library alone, its fonts, and other libraries.
# Once a week CI runs all chapters so, with versions of their own.
RUN_THERE = ("01_weighted_sums", "03_attention", "16_pretrained_weights")
OWN_CELLS = ["published-header", "published-install", "published-footer"]


# -- Small books -----------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path) -> Path:
    """Return a book of two numbered chapters in two parts, and a page without number."""
    folder = tmp_path / "root"
    (folder / "book").mkdir(parents=True)
    (folder / "_config.yml").write_text(
        "title: A Book\nsphinx: {config: {numfig_format: {figure: Figure %s, table: Table %s}}}\n"
    )
    (folder / "_toc.yml").write_text(
        "root: index\n"
        "parts:\n"
        "- {numbered: true, chapters: [file: 01_one]}\n"
        "- {numbered: true, chapters: [file: 02_two]}\n"
        "- {chapters: [file: glossary]}\n"
    )
    (folder / "book/index.md").write_text("# Home\n")
    (folder / "book/glossary.md").write_text("# Words $w$\n")
    (folder / "book/references.bib").write_text(
        "@article{three, author={{\\L}uk, A. and van Dijk, B. and C, D.}, title={T}, year=2017,"
        " url={https://example.org/three}}\n"
        "@article{two, author={Knuth, D. and {\\'E}va, L.}, title={T}, year={1980}, doi={10.1/x}}\n"
        "@misc{none, title={The Manual}, year={2024}}\n"
        "@misc{group, author={{The Developers}}, title={T}, year={2024}, url={https://d.org}}\n"
    )
    chapter(folder, "01_one", "# One")
    chapter(folder, "02_two", "(sec-two)=\n# Two\n\n$$\nx\n$$ (eq-two)")
    return folder


def chapter(root: Path, name: str, *cells: str | NotebookNode) -> None:
    """Write a chapter; a string is a Markdown cell."""
    nodes = [new_markdown_cell(cell) if isinstance(cell, str) else cell for cell in cells]
    for number, cell in enumerate(nodes):
        cell.id = f"{name[-3:]}-{number}"
    nbformat.write(new_notebook(cells=nodes), root / f"book/{name}.ipynb")


def published(root: Path, *cells: str | NotebookNode, fork=GITHUB) -> list[NotebookNode]:
    """Publish cells as chapter 1, and return what became of them."""
    chapter(root, "01_one", *cells)
    notebook = nbformat.reads(publish.render(root, fork)["book/01_one.ipynb"], as_version=4)
    assert [cell.id for cell in notebook.cells if cell.id in OWN_CELLS] == OWN_CELLS
    return notebook.cells[2:-1]


def markdown(root: Path, text: str, fork=GITHUB) -> str:
    """Publish one Markdown cell below the title, and return what became of it."""
    return published(root, "# One", text, fork=fork)[1].source


def picture(name: str | None, caption: str, outputs=(PICTURE,)) -> NotebookNode:
    figure = {"caption": caption} | ({"name": name} if name else {})
    metadata = {"mystnb": {"figure": figure}}
    return new_code_cell("plt.show()", metadata=metadata, outputs=list(outputs))


COLAB = "https://colab.research.google.com/github/Someone/fork/blob/colab/book"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{term}`key` and {term}`the keys <key>`", "key and the keys"),
        ("{term}`a\nkey`", "a key"),
        ("{cite:t}`three`", "[Łuk et al. (2017)](https://example.org/three)"),
        ("{cite:t}`two`", "[Knuth and Éva (1980)](https://doi.org/10.1/x)"),
        ("{cite:p}`group`", "([The Developers, 2024](https://d.org))"),
        (
            "{cite:p}`none, three`",
            "(The Manual, 2024; [Łuk et al., 2017](https://example.org/three))",
        ),
        ("{eq}`eq-two`", "(2.1)"),
        ("{numref}`sec-two`", "Section 2"),
        ("{numref}`part %s <sec-two>`", "part 2"),
        ("{numref}`{name}, {number} <sec-two>`", "Two, 2"),
        ("{ref}`sec-two`", f"[Two]({COLAB}/02_two.ipynb#scrollTo=two-0)"),
        ("{ref}`there <sec-two>`", f"[there]({COLAB}/02_two.ipynb#scrollTo=two-0)"),
        ("{doc}`02_two`", f"[Two]({COLAB}/02_two.ipynb)"),
        ("{doc}`glossary`", "[Words $w$](https://someone.github.io/fork/glossary.html)"),
        ("{doc}`here <01_one>`", "here"),
        ("{func}`torch.softmax`", "`torch.softmax()`"),
        ("{func}`~torch.softmax`", "`softmax()`"),
        ("{func}`this <torch.softmax>`", "`this`"),
        ("{mod}`torch.nn`", "`torch.nn`"),
        ("`{term}` and ``{eq}`x` `` stay", "`{term}` and ``{eq}`x` `` stay"),
        ("$a_{b}$ and \\$5 stay", "$a_{b}$ and \\$5 stay"),
        ("```python\n{term}`x`\n:::\n```", "```python\n{term}`x`\n:::\n```"),
        ("[text](https://example.org)", "[text](https://example.org)"),
        ("<details><summary>Hint</summary>\n\nA {term}`key`.\n\n</details>",
         "<details><summary>Hint</summary>\n\nA key.\n\n</details>"),
        ("<details><summary><code>a[-1]</code> is $x \\lt y_{1}$.</summary>\n\n"
         "**No.** A {term}`key`.\n\n</details>\n<details><summary>$z$</summary>\n\n"
         "**Right.** It is.\n\n</details>",
         "<details><summary><code>a[-1]</code> is $x \\lt y_{1}$.</summary>\n\n**No.** A key."
         "\n\n</details>\n<details><summary>$z$</summary>\n\n**Right.** It is.\n\n</details>"),
        ("(sec-a)=\n## A", "## 1.1. A"),
        ("(sec-a)=\n\n## A\n\n### B\n\n### C\n\n## D",
         "## 1.1. A\n\n### 1.1.1. B\n\n### 1.1.2. C\n\n## 1.2. D"),
        ("$$\na\n$$", "$$\na\n$$"),
        ("$$\na\n$$ (eq-a)", "$$\na\n\\tag{1.1}\n$$"),
        ("$$ a $$ (eq-a)\n\n$$b$$\n\n$$ c $$ (eq-c)",
         "$$ a \\tag{1.1} $$\n\n$$b$$\n\n$$ c \\tag{1.2} $$"),
        ("$$\na &= b \\\\\nc &= d\n$$",
         "$$\n\\begin{aligned}\na &= b \\\\\nc &= d\n\\end{aligned}\n$$"),
        ("$$\n\\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}\n$$",
         "$$\n\\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}\n$$"),
        (":::{note}\nA {term}`key`\n\n$$\na\n$$ (eq-a)\n:::\n\nafter",
         "> **Note**\n>\n> A key\n>\n> $$ a \\tag{1.1} $$\n\nafter"),
        (":::{warning} Short.\n:::", "> **Warning**\n>\n> Short."),
        (":::{admonition} A title\n:class: tip\n\n```python\nx\n```\n:::",
         "> **A title**\n>\n> ```python\n> x\n> ```"),
    ],
)  # fmt: skip
def test_markdown_becomes_plain(root, source, expected):
    assert markdown(root, source) == expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{abbr}`x`", r"the role \{abbr\} is not known"),
        ("{term} `x`\n\n{term}`x", "a role that does not parse: '{term}`x'"),
        ("{eq}`eq-none`", "no equation is labelled 'eq-none'"),
        ("{eq}`sec-two`", "no equation is labelled 'sec-two'"),
        ("{numref}`eq-two`", "no figure or section is labelled 'eq-two'"),
        ("{ref}`none`", "no section or figure is labelled 'none'"),
        ("{doc}`none`", "no page 'none' in _toc.yml"),
        ("{cite:t}`nobody`", "'nobody' is not in references.bib"),
        (":::{figure} x.png\n:::", r"the directive \{figure\} is not known"),
        (":::{note}\nnever closed", "a directive that does not parse"),
        ("```{note}\nx\n```", r"the directive \{note\} is not known"),
        ("(sec-x)=\n\ntext", "the label 'sec-x' stands before no heading"),
        ("(sec-a)=\n## A\n\n(sec-a)=\n## B", "the label 'sec-a' is used twice, first in 01_one"),
        ("$$ a $$ (eq-a)\n\n$$ b $$ (eq-a)", "the label 'eq-a' is used twice"),
        ("text $$ a $$ text", "an equation without blank lines"),
        ("\\begin{align}\na\n\\end{align}", "an equation without blank lines"),
        ("% a comment", "markup that only MyST reads"),
        ("+++", "markup that only MyST reads"),
        ("{{ name }}", "markup that only MyST reads"),
        ("a note[^1]", "markup that only MyST reads"),
        ("[a]{.red}", "markup that only MyST reads"),
        ("[a](other.md)", "a link or picture without a full address"),
        ("[a](#label)", "a link or picture without a full address"),
        ("![](_static/x.png)", "a link or picture without a full address"),
        ('<img alt="a" src="x.png">', "a link or picture without a full address"),
        (":::{note}\n{abbr}`x`\n:::", r"the role \{abbr\} is not known"),
        (new_raw_cell("raw"), "a raw cell has no place"),
        (new_code_cell("#| hide\nx"), "the directive '#| hide' is not known"),
        (new_code_cell("#| export\nx"), "the directive '#| export' is not known"),
        (picture("fig-a", "A", outputs=()), "a figure needs one stored picture, found 0"),
        (picture("fig-a", "A", outputs=(PICTURE,) * 2), "found 2"),
        (picture("fig-a", "{abbr}`x`"), r"the role \{abbr\} is not known"),
    ],
)
def test_what_is_not_known_is_refused_and_named(root, source, message):
    with pytest.raises(publish.PublishError, match=message.replace("|", r"\|")) as raised:
        published(root, "# One", source)
    assert str(raised.value).startswith("book/01_one.ipynb, cell one-1: ")


def test_links_without_a_web_address_stay_in_the_folder(root):
    assert markdown(root, "{ref}`sec-two`", FILE) == "[Two](02_two.ipynb)"
    assert markdown(root, "{doc}`02_two`", FILE) == "[Two](02_two.ipynb)"
    assert markdown(root, "{doc}`glossary`", FILE) == "Words $w$"


def test_figures_are_counted_and_carry_their_captions(root):
    cells = published(
        root,
        "# One\n\n{numref}`fig-b`, {numref}`fig-a`",
        picture(None, "No name."),
        picture("fig-a", "With $x$, {eq}`eq-two`."),
        picture("fig-b", "Last."),
    )
    assert cells[0].source == "# 1. One\n\nFigure 1.3, Figure 1.2"
    assert [cell.source for cell in cells[1:]] == [
        "plt.show()",
        "*Figure 1.1:* No name.",
        "plt.show()",
        "*Figure 1.2:* With $x$, (2.1).",
        "plt.show()",
        "*Figure 1.3:* Last.",
    ]
    assert cells[3].outputs[0].data["image/png"] == PICTURE.data["image/png"]


def test_directives_of_code_cells_become_comments(root):
    cells = published(
        root,
        "# One",
        new_code_cell('#| default_exp attention\n"""Attention."""'),
        new_code_cell("#| export\ndef f(): ...", execution_count=3),
        new_code_cell("#| export other.part\nx = 1"),
        new_code_cell("x #| export"),
    )
    assert [cell.source for cell in cells[1:]] == [
        "# lives in transformer_lib/attention.py\ndef f(): ...",
        "# lives in transformer_lib/other/part.py\nx = 1",
        "x #| export",
    ]
    assert cells[1].execution_count == 3


def test_a_cell_that_is_meant_to_fail_prints_its_error(root):
    error = new_output("error", ename="ZeroDivisionError", evalue="division by zero")
    failing = new_code_cell("x = 3\nx / 0", metadata={"tags": ["raises-exception", "claim-A1"]})
    failing.outputs = [new_output("stream", text="before\n"), error]
    cell = published(root, "# One", failing)[1]
    assert cell.metadata.tags == ["claim-A1"]
    assert [output.text for output in cell.outputs] == [
        "before\n",
        "ZeroDivisionError: division by zero\n",
    ]
    names: dict[str, object] = {}
    exec(cell.source, names)
    assert names["x"] == 3


def test_extras_are_named_for_chapters_that_exist_and_extras_that_do():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for chapter, extras in publish.EXTRAS.items():
        assert (ROOT / f"book/{chapter}.ipynb").is_file()
        assert set(extras.split(",")) <= set(project["optional-dependencies"])


def test_the_frame_of_a_notebook(root):
    files = publish.render(root, GITHUB)
    assert sorted(files) == ["README.md", "book/01_one.ipynb", "book/02_two.ipynb"]
    notebook = nbformat.reads(files["book/02_two.ipynb"], as_version=4)
    nbformat.validate(notebook)
    header, install, title, footer = notebook.cells
    assert "Chapter 2 of **A Book**" in header.source
    assert "(https://someone.github.io/fork/02_two.html)" in header.source
    assert install.cell_type == "code"
    assert f'%pip install -q "building-the-transformer[plots] @ git+{GITHUB.address}@{COMMIT}"' in (
        install.source
    )
    assert title.source.startswith("# 2. Two")
    assert "CC BY 4.0" in footer.source
    assert "MIT" in footer.source
    assert notebook.metadata.kernelspec.name == "python3"
    assert notebook.metadata.colab == {"name": "02_two.ipynb", "provenance": []}
    assert all(cell.metadata.id == cell.id for cell in notebook.cells)
    assert COMMIT[:12] in files["README.md"]


def test_a_page_that_is_missing_is_named(root):
    (root / "book/glossary.md").unlink()
    with pytest.raises(publish.PublishError, match="no page 'glossary' in book/"):
        publish.render(root, GITHUB)


# -- Addresses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://github.com/o/r", "https://github.com/o/r"),
        ("https://github.com/o/r.git/", "https://github.com/o/r"),
        ("https://user:s3cret@github.com/o/r.git", "https://github.com/o/r"),
        ("https://token@github.com/o/r", "https://github.com/o/r"),
        ("https://host:8443/o/r.git", "https://host:8443/o/r"),
        ("git@github.com:o/r.git", "https://github.com/o/r"),
        ("github.com:o/r", "https://github.com/o/r"),
        ("ssh://git@github.com/o/r.git", "https://github.com/o/r"),
        ("ssh://git:s3cret@host:2222/o/r.git", "https://host/o/r"),
        ("file:///srv/clone", "file://localhost/srv/clone"),
        ("file://localhost/srv/clone", "file://localhost/srv/clone"),
        ("file:///srv/bare.git/", "file://localhost/srv/bare.git"),
    ],
)
def test_addresses_are_cleaned(url, address):
    assert publish.clean_address(url) == address


@pytest.mark.parametrize(
    "url",
    ["", "/srv/clone", "C:\\clone", "git://host/o/r", "https://", "https://host/o r",
     'https://host/o/r"; rm -rf x', "https://host/{name}", "https://host/$HOME"],
)  # fmt: skip
def test_addresses_that_cannot_be_installed_from_are_refused(url):
    with pytest.raises(publish.PublishError, match="the repository's address"):
        publish.clean_address(url)


def test_the_address_is_that_of_the_fork_that_is_built(monkeypatch, tmp_path):
    monkeypatch.setenv("GITHUB_REPOSITORY", "o/r")
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://git.example.org")
    assert publish.find_address() == "https://git.example.org/o/r"
    monkeypatch.delenv("GITHUB_REPOSITORY")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    with pytest.raises(publish.PublishError, match="say --address URL"):
        publish.find_address(tmp_path)
    subprocess.run(
        ["git", "-C", tmp_path, "remote", "add", "origin", "git@github.com:o/r.git"], check=True
    )
    assert publish.find_address(tmp_path) == "git@github.com:o/r.git"


def test_a_commit_is_given_in_full_or_found(tmp_path):
    assert publish.find_commit(COMMIT, tmp_path) == COMMIT
    commit = clone(tmp_path / "clone")
    assert publish.find_commit("HEAD", tmp_path / "clone") == commit
    with pytest.raises(publish.PublishError, match="no commit 'nothing'"):
        publish.find_commit("nothing", tmp_path / "clone")


def test_a_clone_without_its_history_is_refused(tmp_path):
    clone(tmp_path / "clone")
    address = (tmp_path / "clone").as_uri()
    publish.check_history(address)
    second = ["commit", "-q", "--allow-empty", "-m", "A second commit"]
    subprocess.run(["git", "-C", tmp_path / "clone", *IDENTITY, *second], check=True)
    shallow = ["git", "clone", "-q", "--depth", "1", address, tmp_path / "shallow"]
    subprocess.run(shallow, check=True)
    with pytest.raises(publish.PublishError, match="is a shallow clone"):
        publish.check_history((tmp_path / "shallow").as_uri())


def test_only_github_has_pages():
    assert GITHUB.web_page("x") == "https://someone.github.io/fork/x.html"
    own = publish.Fork("https://github.com/Someone/someone.github.io", COMMIT)
    assert own.web_page("x") == "https://someone.github.io/x.html"
    assert publish.Fork("https://gitlab.com/o/r", COMMIT).web_page("x") is None


# -- The cell that installs ------------------------------------------------------------------


class Machine:
    """What the installing cell sees of the machine it runs on, and what it asks of pip."""

    def __init__(self, **versions: str | None) -> None:
        self.versions = {"torch": "2.6.0+cu124", "numpy": "2.0.2"} | versions
        self.commit: str | None = None
        self.asked: list[str] = []
        self.after: dict[str, str] = {}
        self.installs = COMMIT

    def distributions(self, name: str) -> list[SimpleNamespace]:
        """Stand in for importlib's function of this name."""
        if name == publish.LIBRARY:
            record = json.dumps({"vcs_info": {"commit_id": self.commit}})
            return [SimpleNamespace(read_text=lambda _: record)] if self.commit else []
        version = self.versions[name]
        return [SimpleNamespace(version=version)] if version else []

    def run_line_magic(self, magic: str, line: str) -> None:
        """Stand in for IPython's method of this name."""
        self.asked.append(f"{magic} {line}".replace("{pins}", self.names["pins"]))
        self.commit = self.installs
        self.versions |= self.after

    def run(self, root: Path, monkeypatch) -> None:
        """Run the installing cell on this machine."""
        notebook = nbformat.reads(publish.render(root, GITHUB)["book/01_one.ipynb"], as_version=4)
        monkeypatch.setattr(metadata, "distributions", self.distributions)
        self.names = {"get_ipython": lambda: self}
        exec(TransformerManager().transform_cell(notebook.cells[1].source), self.names)


def test_installing_asks_pip_to_leave_torch_and_numpy(root, monkeypatch):
    machine = Machine()
    machine.run(root, monkeypatch)
    (asked,) = machine.asked
    assert asked == (
        f'pip install -q "{publish.LIBRARY}[plots] @ git+{GITHUB.address}@{COMMIT}" '
        '"torch==2.6.0+cu124" "numpy==2.0.2"'
    )


def test_installing_again_does_nothing(root, monkeypatch):
    machine = Machine()
    machine.commit = COMMIT
    machine.run(root, monkeypatch)
    assert machine.asked == []


def test_another_commit_is_replaced(root, monkeypatch):
    machine = Machine()
    machine.commit = "f" * 40
    machine.run(root, monkeypatch)
    assert machine.commit == COMMIT


def test_torch_may_come_where_there_is_none(root, monkeypatch):
    machine = Machine(torch=None)
    machine.after = {"torch": "2.13.0"}
    machine.run(root, monkeypatch)
    assert "torch==" not in machine.asked[0]


@pytest.mark.parametrize("name", ["torch", "numpy"])
def test_a_version_that_changed_stops_the_notebook(root, monkeypatch, name):
    machine = Machine(**{name: "1.0"})
    machine.after = {name: "9.9"}
    with pytest.raises(RuntimeError, match=f"{name} changed from 1.0 to 9.9: restart the session"):
        machine.run(root, monkeypatch)


def test_an_installation_that_failed_stops_the_notebook(root, monkeypatch):
    machine = Machine()
    machine.installs = None
    with pytest.raises(RuntimeError, match="the library was not installed"):
        machine.run(root, monkeypatch)


# -- The folder ------------------------------------------------------------------------------


def test_a_folder_is_replaced_as_a_whole(root, tmp_path):
    files = publish.render(root, GITHUB)
    folder = tmp_path / "some/folder"
    publish.write(files, folder)
    publish.write(files, folder)
    (folder / "book/03_gone.ipynb").write_text("{}")
    publish.write(files, folder)
    written = {
        path.relative_to(folder).as_posix(): path.read_bytes().decode()
        for path in folder.rglob("*.*")
    }
    assert written == files
    assert [path.name for path in folder.parent.iterdir()] == ["folder"]


@pytest.mark.parametrize("other", ["notes.txt", "book/notes.md", "README.md", "book/x.ipynb"])
def test_a_folder_with_anything_else_is_left_alone(root, tmp_path, other):
    path = tmp_path / "folder" / other
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(publish.PublishError, match="was not published"):
        publish.write(publish.render(root, GITHUB), tmp_path / "folder")
    assert path.read_text() == "mine"


def test_a_published_folder_with_a_file_of_ones_own_is_left_alone(root, tmp_path):
    files = publish.render(root, GITHUB)
    publish.write(files, tmp_path / "folder")
    (tmp_path / "folder/mine.txt").write_text("mine")
    with pytest.raises(publish.PublishError, match="was not published"):
        publish.write(files, tmp_path / "folder")


def test_the_command_says_what_it_did_or_why_not(tmp_path, capsys):
    output = tmp_path / "colab"
    arguments = ["--address", "https://s3cret@github.com/o/r", "--ref", COMMIT]
    assert publish.main([*arguments, "--output", str(output)]) == 0
    said = capsys.readouterr().out
    assert f"notebooks of https://github.com/o/r at {COMMIT[:12]}: {output}" in said
    assert all("s3cret" not in path.read_text("utf-8") for path in output.rglob("*.*"))
    assert publish.main(["--address", "nowhere", "--output", str(output)]) == 1
    assert capsys.readouterr().err.startswith("publish: the repository's address")


# -- The real chapters -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def chapters() -> dict[str, NotebookNode]:
    """Return the published chapters of this book by name."""
    files = publish.render(ROOT, GITHUB)
    return {
        Path(name).stem: nbformat.reads(text, as_version=4)
        for name, text in files.items()
        if name.endswith(".ipynb")
    }


def prose(notebook: NotebookNode) -> str:
    """Return the Markdown of a notebook without code."""
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return re.sub(r"```.*?```|``.+?``|`[^`]+`", "", text, flags=re.DOTALL)


def test_every_chapter_is_published(chapters):
    assert set(chapters) == {path.stem for path in (ROOT / "book").glob("*.ipynb")}
    assert len(chapters) >= 4


def test_no_myst_is_left_in_the_chapters(chapters):
    for name, notebook in chapters.items():
        text = prose(notebook)
        assert not re.search(r"\{[\w:]+\}`|^>? *:::|^\([\w-]+\)=|\$\$ *\(", text, re.M), name
        for cell in notebook.cells:
            assert not (cell.cell_type == "code" and cell.source.startswith("#|")), name


def test_the_chapters_keep_their_cells_and_outputs(chapters):
    for name, notebook in chapters.items():
        source = nbformat.read(ROOT / f"book/{name}.ipynb", as_version=4)
        kept = {cell.id: cell for cell in notebook.cells}
        assert len(kept) == len(notebook.cells), name
        for cell in source.cells:
            if cell.source.startswith("#| default_exp"):
                assert cell.id not in kept
            elif "raises-exception" not in cell.metadata.get("tags", []):
                assert kept[cell.id].get("outputs") == cell.get("outputs"), (name, cell.id)


def test_the_same_bytes_come_out_twice():
    first, second = publish.render(ROOT, GITHUB), publish.render(ROOT, GITHUB)
    assert first == second
    for name, text in first.items():
        assert text.endswith("\n"), name


def test_numbers_are_those_of_the_built_book(chapters, site):
    for name, notebook in chapters.items():
        page = BeautifulSoup((site / f"{name}.html").read_text("utf-8"), "html.parser")
        article = page.find("article")
        text = prose(notebook)
        for selector, pattern in {
            "span.eqno": r"\\tag\{([\d.]+)\}",
            "span.caption-number": r"^\*Figure ([\d.]+):\*",
            ".section-number": r"^#+ ([\d.]+)\. ",
        }.items():
            shown = (re.sub(r"[^\d.]", "", tag.text) for tag in article.select(selector))
            numbers = [number.rstrip(".") for number in shown]
            assert numbers or selector == "span.eqno", (name, selector)
            assert re.findall(pattern, text, re.MULTILINE) == numbers, (name, selector)
        for link in article.select("a.reference"):
            if re.fullmatch(r"(Figure |Section )[\d.]+|\(\d+\.\d+\)", link.text):
                assert link.text in text, (name, link.text)


# -- The proof -------------------------------------------------------------------------------

RUN = """
import sys, nbformat
from nbclient import NotebookClient
for path in sys.argv[1:]:
    NotebookClient(nbformat.read(path, as_version=4), timeout=600, kernel_name="python3").execute()
"""
ASK = """
import json, sys, transformer_lib, numpy, torch
from importlib import metadata
origin = metadata.distribution("building-the-transformer").read_text("direct_url.json")
print(json.dumps([transformer_lib.__file__, json.loads(origin), torch.__file__, numpy.__file__]))
"""


def clone(folder: Path) -> str:
    """Copy the files of this checkout, as they are now, into a repository; return its commit."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        source, target = ROOT / name, folder / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    git = ["git", "-C", str(folder), *IDENTITY]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "As it is"]):
        subprocess.run([*git, *arguments], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    return head.stdout.strip()


@pytest.fixture(scope="module")
def colab(tmp_path_factory):
    """Return a Python that has torch, numpy and Jupyter but no library, as Colab's has.

    They are those of the environment that runs the tests, so that nothing needs the network.
    """
    folder = tmp_path_factory.mktemp("colab")
    environment = folder / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin/python"
    site = subprocess.run(
        [python, "-c", "import site; print(site.getsitepackages()[0])"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    shared = "\n".join(path for path in sys.path if path.endswith("site-packages"))
    Path(site, "shared.pth").write_text(shared + "\n")

    def run(*arguments: str) -> str:
        empty = folder / "empty"
        empty.mkdir(exist_ok=True)
        kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}  # 0 means: no isolation
        done = subprocess.run(
            [python, *arguments],
            cwd=empty, env=kept | offline, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run.site = Path(site)
    return run


@pytest.mark.skipif(sys.platform == "win32", reason="an environment is laid out otherwise there")
def test_published_chapters_run_where_only_torch_and_numpy_are(colab, tmp_path):
    commit = clone(tmp_path / "clone")
    address = publish.clean_address((tmp_path / "clone").as_uri())
    publish.write(publish.render(ROOT, publish.Fork(address, commit)), tmp_path / "published")
    first, *others = [str(tmp_path / f"published/book/{name}.ipynb") for name in RUN_THERE]
    colab("-c", RUN, first)
    shutil.rmtree(tmp_path / "clone")  # the library is there: nothing more is asked for
    colab("-c", RUN, *others)
    library, origin, torch, numpy = json.loads(colab("-c", ASK))
    assert Path(library).parent == colab.site / "transformer_lib"
    assert (origin["url"], origin["vcs_info"]["commit_id"]) == (address, commit)
    assert not any(Path(path).is_relative_to(colab.site) for path in (torch, numpy))
    installed = {path.name for path in colab.site.iterdir()} - {"__pycache__"}
    assert len(installed) == 3, installed  # the link to torch, the package and its record
