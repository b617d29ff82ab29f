"""Write the notebooks that Colab opens: self-installing, in Markdown that needs no MyST.

The notebooks in ``book/`` are sources: they use MyST for numbers, citations and links, and know
no address to install the library from. This command writes a copy of each that stands alone: its
first code cell installs the library from one commit of one repository, references carry the
numbers that the built book shows, and nothing is left that only a book builder understands.

    python tools/publish.py --output _build/colab [--address URL] [--ref REF]

The address defaults to ``GITHUB_REPOSITORY``, else to the remote ``origin``; the reference to
``HEAD``. The folder is replaced as a whole, and only if it is empty or was published before.
"""

from __future__ import annotations

import argparse
import copy
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from textwrap import indent
from urllib.parse import urlsplit

import nbformat
import yaml
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from pybtex.database import Entry, parse_file

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = "building-the-transformer"
PACKAGE = "transformer_lib"
BRANCH = "colab"
MARK = "<!-- Published by tools/publish.py: do not edit. -->"

README = """\
{mark}
# {title}: notebooks to run

This branch is generated. It holds the chapters of *{title}* as notebooks
that open on Colab and run as they are: the first code cell of each installs
`{package}` from commit `{short}` of
<{address}>.

Changes made here are overwritten. The sources are in `book/` on the main branch.

The text is licensed under CC BY 4.0, the code under MIT.
"""

EXTRAS = {  # what a chapter needs beside pictures
    "14_translation": "plots,scores",
    "16_pretrained_weights": "plots,pretrained",
    "17_detr": "plots,detection",
    "18_object_detection_pipeline": "plots,detection,pretrained",
}

INSTALL = '''\
# @title Install transformer_lib (torch and numpy stay as they are) {{display-mode: "form"}}
import importlib
import json
from importlib import metadata


def find(name):
    """Return the installed distribution of that name, or None."""
    importlib.invalidate_caches()
    return next(iter(metadata.distributions(name=name)), None)


def installed_commit():
    """Return the commit that the installed library was built from, or None."""
    library = find("{library}")
    origin = json.loads(library and library.read_text("direct_url.json") or "{{}}")
    return origin.get("vcs_info", {{}}).get("commit_id")


if installed_commit() != "{commit}":
    kept = {{name: find(name).version for name in ("torch", "numpy") if find(name)}}
    pins = " ".join(f'"{{name}}=={{version}}"' for name, version in kept.items())
    %pip install -q "{library}[{extras}] @ git+{address}@{commit}" {{pins}}
    for name, version in kept.items():
        if find(name).version != version:
            raise RuntimeError(
                f"{{name}} changed from {{version}} to {{find(name).version}}: "
                "restart the session, then run all cells again"
            )
    if installed_commit() != "{commit}":
        raise RuntimeError("the library was not installed: the messages of pip above say why")
'''

CATCH = """\
try:  # meant to fail
{code}
except Exception as error:
    print(f"{{type(error).__name__}}: {{error}}")"""

PIECE = re.compile(
    r"""
      ^[ ]*(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)\n.*?^[ ]*(?P=fence)[ ]*$
    | ^(?P<indent>[ ]*)\$\$(?P<equation>.+?)\$\$[ ]*(?:\((?P<label>[\w-]+)\))?[ ]*$
    | ^\((?P<section>[\w-]+)\)=[ ]*\n\s*
    | ^(?P<heading>\#{1,6})[ ]+(?P<title>[^\n]+?)[ ]*$
    | ^:::[ ]*\{(?P<directive>[\w-]+)\}(?P<argument>[^\n]*)\n(?P<inside>.*?)^:::[ ]*$
    | \{(?P<role>[\w:.-]+)\}`(?P<content>[^`]+)`
    | (?P<code>(?<!`)(?P<tick>`+)(?!`)(?:(?!\n\n).)+?(?<!`)(?P=tick)(?!`))
    | (?P<maths>(?<!\\)\$(?!\s)(?:\\.|(?!\n\n)[^$\\])+?\$)
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)

STRAY = {
    r"\{[\w:.-]+\}`": "a role that does not parse",
    r"^ *:{3,}": "a directive that does not parse",
    r"^ *\([\w-]+\)=": "a label that stands before no heading",
    r"(?<!\\)\$\$|\\begin\{": "an equation without blank lines and $$ around it",
    r"^%|^\+\+\+|\{\{|\]\{|\[\^": "markup that only MyST reads",
    r"\]\((?!https?://)|(?:src|href)=\"(?!https?://)": "a link or picture without a full address",
}


class PublishError(Exception):
    """Why a notebook cannot be published."""


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Put the place where a fault lies before its message."""
    try:
        yield
    except PublishError as fault:
        raise PublishError(f"{place}: {fault}") from None


def git(*arguments: str, root: Path = ROOT) -> str:
    """Return what a git command prints, or an empty string if it fails."""
    run = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
    )
    return run.stdout.strip() if run.returncode == 0 else ""


def clean_address(url: str) -> str:
    """Return a repository's address as https:// or file://, without user, password or ``.git``."""
    if scp := re.fullmatch(r"(?:[^@/:]+@)?([^@/:]{2,}):(?!//)/?(.+)", url):
        url = f"ssh://{scp[1]}/{scp[2]}"
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    if parts.scheme == "file":
        address = f"file://localhost{parts.path}"  # pip before 24.1 insists on a host
    elif parts.scheme in ("http", "https", "ssh", "git+ssh") and host and parts.path.strip("/"):
        secure = "https" if parts.scheme.endswith("ssh") else parts.scheme
        host = host.partition(":")[0] if parts.scheme.endswith("ssh") else host
        address = f"{secure}://{host}{parts.path.rstrip('/').removesuffix('.git')}"
    else:
        raise PublishError("the repository's address must begin with https://, ssh:// or file://")
    if not re.fullmatch(r"[\w:/.~%+-]+", address):
        raise PublishError(f"the repository's address has characters a shell would read: {address}")
    return address.rstrip("/")


def find_address(root: Path = ROOT) -> str:
    """Return the address of the repository that is being published."""
    if repository := os.environ.get("GITHUB_REPOSITORY"):
        return f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{repository}"
    if remote := git("remote", "get-url", "origin", root=root):
        return remote
    raise PublishError("no GITHUB_REPOSITORY and no remote 'origin': say --address URL")


def find_commit(ref: str, root: Path = ROOT) -> str:
    """Return the full name of a commit; one that is given in full need not be in the checkout."""
    if re.fullmatch(r"[0-9a-f]{40}", ref):
        return ref
    if commit := git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", root=root):
        return commit
    raise PublishError(f"no commit {ref!r} in {root}")


def check_history(address: str) -> None:
    """Refuse a local clone without its history: git never ends when pip copies from one."""
    if address.startswith("file://"):
        path = Path(urlsplit(address).path)
        if git("rev-parse", "--is-shallow-repository", root=path) == "true":
            raise PublishError(f"{path} is a shallow clone: run `git fetch --unshallow` there")


@dataclass(frozen=True)
class Fork:
    """The repository, at one commit, that the published notebooks belong to."""

    address: str
    commit: str

    @cached_property
    def github(self) -> tuple[str, str] | None:
        """Owner and name on GitHub, which alone has Pages and a Colab address."""
        found = re.fullmatch(r"https?://github\.com/([^/]+)/([^/]+)", self.address)
        return (found[1], found[2]) if found else None

    def web_page(self, name: str) -> str | None:
        """Return the address of a page of the built book."""
        if not self.github:
            return None
        owner, repository = self.github
        site = f"{owner.lower()}.github.io"
        folder = "" if repository.lower() == site else f"{repository}/"
        return f"https://{site}/{folder}{name}.html"

    def notebook(self, name: str) -> str:
        """Return the address of a published notebook."""
        if not self.github:
            return f"{name}.ipynb"
        path = "/".join((*self.github, "blob", BRANCH, "book", name))
        return f"https://colab.research.google.com/github/{path}.ipynb"


@dataclass(frozen=True)
class Page:
    """A page of the book; ``depth`` says how many levels of its headings carry numbers."""

    path: Path
    number: int | None = None
    depth: int = 0

    @property
    def name(self) -> str:
        """The name that other pages know it by."""
        return self.path.stem

    @property
    def runs(self) -> bool:
        """Whether the page is a notebook."""
        return self.path.suffix == ".ipynb"

    @cached_property
    def cells(self) -> list[NotebookNode]:
        """The cells of the notebook; the whole page as one cell if it is none."""
        text = self.path.read_text(encoding="utf-8")
        if self.runs:
            return list(nbformat.reads(text, as_version=4).cells)
        return [new_markdown_cell(text, id="page")]

    @property
    def title(self) -> str:
        """The first heading, as it is written."""
        text = "\n".join(cell.source for cell in self.cells if cell.cell_type == "markdown")
        heading = re.search(r"^# +(.+?) *$", text, re.MULTILINE)
        if not heading:
            raise PublishError(f"{self.path.name}: no title")
        return heading[1]


@dataclass(frozen=True)
class Target:
    """What a label stands for, and the cell where it is found."""

    kind: str
    number: str
    title: str
    page: str
    cell: str


@dataclass
class Book:
    """What the chapters share: pages, references, labels, and how figures are named."""

    title: str
    pages: dict[str, Page]
    entries: dict[str, Entry]
    figure: str
    section: str
    labels: dict[str, Target] = field(default_factory=dict)
    labelled: bool = False

    @classmethod
    def load(cls, root: Path) -> Book:
        """Read the table of contents, the configuration and the references."""
        config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
        toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
        formats = config.get("sphinx", {}).get("config", {}).get("numfig_format", {})
        pages, number = {}, 0
        for part in [{"chapters": [{"file": toc["root"]}]}, *toc["parts"]]:
            numbered = part.get("numbered", False)
            for chapter in part["chapters"]:
                stem = root / "book" / chapter["file"]
                found = [stem.with_suffix(s) for s in (".ipynb", ".md")]
                path = next((path for path in found if path.is_file()), None)
                if path is None:
                    raise PublishError(f"_toc.yml: no page {chapter['file']!r} in book/")
                number += bool(numbered)
                depth = 6 if numbered is True else int(numbered)
                pages[path.stem] = Page(path, number if numbered else None, depth)
        references = root / "book" / "references.bib"
        entries = parse_file(str(references)).entries if references.exists() else {}
        figure, section = formats.get("figure", "Fig. %s"), formats.get("section", "Section %s")
        return cls(config["title"], pages, entries, figure, section)

    def label(self, label: str, target: Target) -> None:
        """Note what a label stands for."""
        first = self.labels.setdefault(label, target)
        if first is not target and not self.labelled:
            raise PublishError(f"the label {label!r} is used twice, first in {first.page}")

    def find(self, label: str, *kinds: str) -> Target:
        """Return what a label stands for; anything will do until all labels are known."""
        target = self.labels.get(label)
        if target is None or target.kind not in kinds:
            if self.labelled:
                raise PublishError(f"no {' or '.join(kinds)} is labelled {label!r}")
            return Target(kinds[0], "", "", "", "")
        return target

    def cite(self, key: str) -> tuple[str, str, str]:
        """Return the authors, the year and the address of an entry of the bibliography."""
        if key not in self.entries:
            raise PublishError(f"{key!r} is not in references.bib")
        entry = self.entries[key]
        people = entry.persons.get("author") or entry.persons.get("editor") or []
        names = [
            " ".join(str(part) for part in p.rich_prelast_names + p.rich_last_names) for p in people
        ]
        if len(names) > 2:
            names = [f"{names[0]} et al."]
        get = entry.fields.get
        address = get("url") or (f"https://doi.org/{get('doi')}" if get("doi") else "")
        return " and ".join(names) or get("title", key), get("year", "n.d."), address


class Chapter:
    """One notebook on its way to plain Markdown; it counts what the built book numbers."""

    def __init__(self, book: Book, page: Page, fork: Fork) -> None:
        self.book, self.page, self.fork = book, page, fork
        self.counts: Counter[str] = Counter()
        self.sections: list[int] = []
        self.section = self.cell = self.module = ""

    def publish(self) -> NotebookNode:
        """Return the notebook that stands alone."""
        cells = [self.header(), self.install()]
        for cell in copy.deepcopy(self.page.cells):
            self.cell = cell.id
            with naming(f"book/{self.page.path.name}, cell {cell.id}"):
                if cell.cell_type == "markdown":
                    cell.source = self.markdown(cell.source)
                    cells.append(cell)
                elif cell.cell_type == "code":
                    cells += self.code(cell)
                else:
                    raise PublishError(
                        f"a {cell.cell_type} cell has no place in a published notebook"
                    )
        cells.append(self.footer())
        for cell in cells:
            cell.metadata["id"] = cell.id  # what Colab's links to a cell go by
        notebook = new_notebook(cells=cells)
        notebook.metadata = {
            "colab": {"name": self.page.path.name, "provenance": []},
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
        nbformat.validate(notebook)
        return notebook

    def header(self) -> NotebookNode:
        """Return the cell that says what this notebook is."""
        chapter = f"Chapter {self.page.number}" if self.page.number else "A part"
        web = self.fork.web_page(self.page.name)
        read = f" It can also be read [as a web page]({web})." if web else ""
        text = f"*{chapter} of **{self.book.title}**, to be run from top to bottom.{read}*"
        return new_markdown_cell(text, id="published-header")

    def install(self) -> NotebookNode:
        """Return the cell that installs the library."""
        source = INSTALL.format(
            library=LIBRARY,
            extras=EXTRAS.get(self.page.name, "plots"),
            address=self.fork.address,
            commit=self.fork.commit,
        )
        return new_code_cell(source.strip(), id="published-install", metadata={"cellView": "form"})

    def footer(self) -> NotebookNode:
        """Return the cell with the licences."""
        source = self.fork.address
        if source.startswith("http"):
            source = f"[{source}]({source})"
        text = (
            f"---\n\n*{self.book.title}*, by The transformer_lib authors, from {source} at commit "
            f"`{self.fork.commit[:12]}`. Text: [CC BY 4.0]"
            "(https://creativecommons.org/licenses/by/4.0/). Code: MIT."
        )
        return new_markdown_cell(text, id="published-footer")

    def code(self, cell: NotebookNode) -> Iterator[NotebookNode]:
        """Yield a code cell without its directive, and the caption of its picture."""
        first, _, rest = cell.source.partition("\n")
        if first.startswith("#|"):
            directive, _, name = first[2:].strip().partition(" ")
            if directive == "default_exp" and name:
                self.module = name.strip()
                return
            module = name.strip() or self.module
            if directive != "export" or not module:
                raise PublishError(f"the directive {first!r} is not known here")
            cell.source = f"# lives in {PACKAGE}/{module.replace('.', '/')}.py\n{rest}"
        if "raises-exception" in cell.metadata.get("tags", []):
            catch(cell)
        yield cell
        figure = cell.metadata.get("mystnb", {}).get("figure")
        if figure:
            pictures = [o for o in cell.outputs if "image/png" in o.get("data", {})]
            if len(pictures) != 1:
                raise PublishError(f"a figure needs one stored picture, found {len(pictures)}")
            caption = self.markdown(figure["caption"])
            number = self.count("figure", figure.get("name"))
            yield new_markdown_cell(
                f"*{self.book.figure % number}:* {caption}", id=f"{cell.id[:56]}-caption"
            )

    def count(self, kind: str, label: str | None) -> str:
        """Return the next number of a figure or equation, which the label will stand for."""
        self.counts[kind] += 1
        number = ".".join(str(n) for n in (self.page.number, self.counts[kind]) if n)
        if label:
            self.book.label(label, Target(kind, number, "", self.page.name, self.cell))
        return number

    def markdown(self, text: str) -> str:
        """Turn the MyST of a cell, a caption or the inside of a directive into Markdown."""
        end, parts = 0, []
        for piece in PIECE.finditer(text):
            parts += [plain(text[end : piece.start()]), self.piece(piece)]
            end = piece.end()
        return "".join([*parts, plain(text[end:])])

    def piece(self, piece: re.Match[str]) -> str:
        """Return the Markdown of one piece of MyST."""
        if piece["fence"]:
            if piece["info"].lstrip().startswith("{"):
                raise PublishError(f"the directive {piece['info'].strip()} is not known here")
            return piece[0]
        if piece["equation"]:
            return self.equation(piece)
        if piece["section"]:
            self.section = piece["section"]
            if not re.match(r"#{1,6} ", piece.string[piece.end() :]):
                raise PublishError(f"the label {self.section!r} stands before no heading")
            return ""
        if piece["heading"]:
            return self.heading(len(piece["heading"]), piece["title"])
        if piece["directive"]:
            return self.directive(piece["directive"], piece["argument"].strip(), piece["inside"])
        if piece["role"]:
            return self.role(piece["role"], " ".join(piece["content"].split()))
        return piece[0]

    def equation(self, piece: re.Match[str]) -> str:
        """Return a display equation with its number, aligned where the book would align it."""
        body, label, opening = piece["equation"], piece["label"], f"{piece['indent']}$$"
        bare = re.sub(r"\\begin\{(\w+\*?)\}.*?\\end\{\1\}", "", body, flags=re.DOTALL)
        if r"\\" in bare or re.search(r"(?<!\\)&", bare):
            body = f"\n\\begin{{aligned}}\n{body.strip()}\n\\end{{aligned}}\n"
        if not label:
            return f"{opening}{body}$$"
        line = "\n" if "\n" in body else " "
        tag = f"\\tag{{{self.count('equation', label)}}}"
        return f"{opening}{body.rstrip()}{line}{tag}{line}$$"

    def heading(self, level: int, title: str) -> str:
        """Return a heading with its number."""
        title = self.markdown(title)
        self.sections = [*self.sections, *[0] * level][: level - 1]
        if level > 1:
            self.sections[-1] += 1
        number = ".".join(map(str, [self.page.number, *self.sections]))
        numbered = self.page.number and level <= self.page.depth
        if self.section:
            target = Target("section", number, title, self.page.name, self.cell)
            self.book.label(self.section, target)
            self.section = ""
        return f"{'#' * level} {number}. {title}" if numbered else f"{'#' * level} {title}"

    def directive(self, name: str, argument: str, inside: str) -> str:
        """Return an admonition as a quotation with a bold title."""
        if name not in ("note", "warning", "admonition"):
            raise PublishError(f"the directive {{{name}}} is not known here")
        inside = re.sub(r"\A(?:\s*:[\w-]+:[^\n]*\n)+", "", inside).strip()
        title = argument
        if name != "admonition":
            title, inside = name.capitalize(), f"{argument}\n{inside}".strip()
        # A quotation's marks must not fall inside an equation, which is found before them.
        text = re.sub(
            r"\$\$.+?\$\$", lambda m: " ".join(m[0].split()), self.markdown(inside), flags=re.DOTALL
        )
        quoted = f"**{self.markdown(title)}**\n\n{text}"
        return "\n".join(f"> {line}".rstrip() for line in quoted.split("\n"))

    def role(self, name: str, content: str) -> str:
        """Return a reference as the text, number or link it stands for."""
        found = re.fullmatch(r"(.+?)\s*<([^<>]+)>", content)
        text, target = (found[1], found[2]) if found else ("", content)
        match name:
            case "term":
                return text or target
            case "func" | "mod":
                short = target.lstrip("~.").rpartition(".")[2]
                shown = text or (short if target.startswith("~") else target.lstrip("."))
                call = "()" if name == "func" and not text and not shown.endswith("()") else ""
                return f"`{shown}{call}`"
            case "eq":
                return f"({self.book.find(target, 'equation').number})"
            case "numref":
                label = self.book.find(target, "figure", "section")
                form = text or (self.book.figure if label.kind == "figure" else self.book.section)
                form = form.replace("{number}", "%s").replace("{name}", label.title)
                return form.replace("%s", label.number)
            case "ref":
                label = self.book.find(target, "section", "figure")
                if self.book.labelled and not (text or label.title):
                    raise PublishError(f"a reference to the figure {target!r} needs a text")
                return self.link(text or label.title, label.page, label.cell)
            case "doc":
                page = self.book.pages.get(target.removeprefix("/").removeprefix("./"))
                if page is None:
                    raise PublishError(f"no page {target!r} in _toc.yml")
                return self.link(text or self.markdown(page.title), page.name)
            case "cite:t" | "cite:p":
                return self.citation(name, [key.strip() for key in content.split(",")])
        raise PublishError(f"the role {{{name}}} is not known here")

    def citation(self, name: str, keys: list[str]) -> str:
        """Return references as 'Authors (year)', or in brackets as '(Authors, year)'."""
        form = "{} ({})" if name == "cite:t" else "{}, {}"
        shown = []
        for authors, year, address in map(self.book.cite, keys):
            text = form.format(authors, year)
            shown.append(f"[{text}]({address})" if address else text)
        return ", ".join(shown) if name == "cite:t" else f"({'; '.join(shown)})"

    def link(self, text: str, name: str, cell: str = "") -> str:
        """Return a link to a cell of a published notebook or to a page of the site."""
        anchor = f"#scrollTo={cell}" if cell and self.fork.github else ""
        page = self.book.pages.get(name)
        if name == self.page.name:
            address: str | None = anchor
        elif page and page.runs:
            address = self.fork.notebook(name) + anchor
        else:
            address = self.fork.web_page(name)
        return f"[{text}]({address})" if address else text


def catch(cell: NotebookNode) -> None:
    """Let a cell that is meant to fail print its error, since one that raises ends 'Run all'."""
    cell.source = CATCH.format(code=indent(cell.source, " " * 4))
    cell.metadata.tags.remove("raises-exception")
    cell.outputs = [
        new_output("stream", text=f"{output.ename}: {output.evalue}\n")
        if output.output_type == "error"
        else output
        for output in cell.outputs
    ]


def plain(text: str) -> str:
    """Return text that is Markdown already; refuse what is not."""
    for pattern, what in STRAY.items():
        if found := re.search(pattern, text, re.MULTILINE):
            line = text[found.start() :].strip().partition("\n")[0][:60]
            raise PublishError(f"{what}: {line!r}")
    return text


def render(root: Path, fork: Fork) -> dict[str, str]:
    """Return the published files, by path."""
    book = Book.load(root)
    chapters = [page for page in book.pages.values() if page.runs]
    for page in chapters:  # references point forward too: the first round finds the labels
        Chapter(book, page, fork).publish()
    book.labelled = True
    files = {
        f"book/{page.path.name}": nbformat.writes(Chapter(book, page, fork).publish()) + "\n"
        for page in chapters
    }
    files["README.md"] = README.format(
        mark=MARK, title=book.title, package=PACKAGE, address=fork.address, short=fork.commit[:12]
    )
    return files


def replaceable(folder: Path) -> bool:
    """Whether a folder holds nothing, or nothing but what was published into it."""
    if not folder.exists():
        return True
    if not folder.is_dir():
        return False
    files = [path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir()]
    ours = all(p == Path("README.md") or p.match("book/*.ipynb") for p in files)
    readme = folder / "README.md"
    return not files or (ours and readme.is_file() and MARK in readme.read_text(encoding="utf-8"))


def write(files: dict[str, str], folder: Path) -> None:
    """Put the files in place of the folder's contents, all or none."""
    if not replaceable(folder):
        raise PublishError(
            f"{folder} holds something that was not published: choose another folder"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".publish-") as workspace:
        fresh = Path(workspace) / "fresh"
        for name, text in files.items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        if folder.exists():
            folder.rename(Path(workspace) / "old")
        fresh.rename(folder)


def main(arguments: list[str] | None = None) -> int:
    """Publish the book of this checkout; exit 1 and say why if that is not possible."""
    parser = argparse.ArgumentParser(description="Write the notebooks that Colab opens.")
    parser.add_argument("--address", metavar="URL", help="the repository to install from")
    parser.add_argument("--ref", default="HEAD", help="the commit to install (default: HEAD)")
    parser.add_argument("--output", metavar="FOLDER", type=Path, required=True)
    options = parser.parse_args(arguments)
    try:
        fork = Fork(clean_address(options.address or find_address()), find_commit(options.ref))
        check_history(fork.address)
        files = render(ROOT, fork)
        write(files, options.output)
    except PublishError as fault:
        print(f"publish: {fault}", file=sys.stderr)
        return 1
    print(f"{len(files) - 1} notebooks of {fork.address} at {fork.commit[:12]}: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
