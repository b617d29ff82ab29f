"""What Jupyter Book cannot know or do by itself: repository links, export badges, signatures."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform

# The checkout that the book is built from is the one that it documents.
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import looking_up  # noqa: E402

PACKAGE = "transformer_lib"
COLAB_BRANCH = "colab"  # where tools/publish.py puts the notebooks that are ready for Colab
HOSTS = ("github.com", "gitlab.com")  # the ones whose links the theme knows how to write


# -- Repository ------------------------------------------------------------------------------


def web_address(remote: str) -> str | None:
    """Turn the address of a git remote into that of its web page.

    Credentials and ports are left out. Addresses on hosts other than `HOSTS` give None.

    >>> web_address("git@github.com:someone/fork.git")
    'https://github.com/someone/fork'
    """
    scp_like = re.fullmatch(r"(?:[^@/:]+@)?([^/:]+):(?!//)(.+)", remote)
    if scp_like:
        host, path = scp_like.groups()
    else:
        parts = urlsplit(remote)
        host, path = parts.hostname or "", parts.path
    path = path.strip("/").removesuffix(".git")
    if host.lower() not in HOSTS or not re.fullmatch(r"[\w.-]+/[\w.-]+", path):
        return None
    return f"https://{host.lower()}/{path}"


def git(root: Path, *arguments: str) -> str:
    """Return what a git command prints, or nothing where it fails or there is no git."""
    try:
        return subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def repository_url(root: Path) -> str | None:
    """Find the web page of the repository that is being built, if it has one."""
    if name := os.environ.get("GITHUB_REPOSITORY"):
        return web_address(f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{name}")
    top = git(root, "rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != root.resolve():
        return None  # no repository, or a copy that lies inside somebody else's
    return web_address(git(root, "remote", "get-url", "origin"))


def default_branch(root: Path) -> str:
    """Name the branch that a visitor of the repository sees first."""
    head = git(root, "symbolic-ref", "--short", "refs/remotes/origin/HEAD")
    if head:
        return head.removeprefix("origin/")
    on_branch = os.environ.get("GITHUB_REF_TYPE") == "branch"
    return (on_branch and os.environ.get("GITHUB_REF_NAME")) or "main"


def add_repository(app: Sphinx, config: Config) -> None:
    """Give the theme the repository's address, or take the buttons away that need one."""
    root = Path(app.confdir).parent
    options: dict[str, Any] = dict(config.html_theme_options)
    url = repository_url(root)
    if url:
        options |= {
            "repository_url": url,
            "repository_branch": default_branch(root),
            "use_repository_button": True,
            "use_issues_button": True,
        }
        if "github.com" not in url:
            launch = options["launch_buttons"]
            options["launch_buttons"] = {k: v for k, v in launch.items() if k != "colab_url"}
    else:
        options.pop("launch_buttons", None)
    config.html_theme_options = options


def point_colab_to_its_branch(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Open the published notebook on Colab, which installs the library in its first cell."""
    branch = app.config.html_theme_options.get("repository_branch")
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if button.get("text") == "Colab":
                button["url"] = button["url"].replace(
                    f"/blob/{branch}/", f"/blob/{COLAB_BRANCH}/", 1
                )


# -- Scripts ---------------------------------------------------------------------------------


def choose_scripts(app: Sphinx, config: Config) -> None:
    """Drop scripts that Jupyter Book adds to every page.

    MathJax stands in `_static` and Sphinx loads it where there is mathematics. Thebe, which runs
    cells on a server elsewhere, is not used, and its script fails on our pages.
    """
    config.html_js_files = [f for f in config.html_js_files if not str(f).startswith("mathjax/")]
    for listeners in app.events.listeners.values():
        listeners[:] = [one for one in listeners if one.handler.__module__ != "sphinx_thebe"]
    app.registry.css_files[:] = [
        file for file in app.registry.css_files if file[0] != "sphinx-thebe.css"
    ]


# -- Cells -----------------------------------------------------------------------------------

DIRECTIVE = re.compile(r"#\|\s*(default_exp|export)\b[ \t]*(\S*)[ \t]*(?:\n|$)")


class ExportBadges(SphinxTransform):
    """Hide the directives of export cells and show where the code goes instead.

    A cell that begins with `#| export` loses that line and gets a badge with the path of its
    module and the names that it adds, which link to their entries in the API reference; where they
    are built is noted for the links back. The `#| default_exp` cell disappears.
    """

    default_priority = 210

    def apply(self, **kwargs: Any) -> None:
        """Go through the code cells of one page in order."""
        default = ""
        for cell, block in list(self.code_cells()):
            directive = DIRECTIVE.match(block.astext())
            if not directive:
                continue
            kind, name = directive.groups()
            if kind == "default_exp":
                default = name
                cell.parent.remove(cell)
                continue
            code = block.astext()[directive.end() :]
            block.rawsource = code
            block[:] = [nodes.Text(code)]
            module, names = f"{PACKAGE}.{name or default}", looking_up.public_names(code)
            places = looking_up.stored(self.env, "exports").setdefault(self.env.docname, {})
            places |= {
                f"{module}.{one}": looking_up.Place.of(self.env.docname, cell) for one in names
            }
            cell.insert(0, self.badge(module, names))

    def code_cells(self) -> Iterator[tuple[nodes.container, nodes.literal_block]]:
        """Yield each code cell with the block that holds its source."""
        for source in self.document.findall(nodes.container):
            if source.get("nb_element") == "cell_code_source":
                for block in source.findall(nodes.literal_block):
                    yield source.parent, block

    def badge(self, module: str, names: list[str]) -> nodes.paragraph:
        """Make the badge of a cell that adds names to a module."""
        path = f"{module.replace('.', '/')}.py"
        badge = nodes.paragraph("", "", self.link("mod", module, path), classes=["export-badge"])
        for number, name in enumerate(names):
            badge += [
                nodes.Text(", " if number else ": "),
                self.link("obj", f"{module}.{name}", name),
            ]
        return badge

    def link(self, kind: str, target: str, text: str) -> addnodes.pending_xref:
        """Make a link to an entry of the API reference."""
        return addnodes.pending_xref(
            "",
            nodes.inline(text, text),
            refdomain="py",
            reftype=kind,
            reftarget=target,
            refdoc=self.env.docname,
            refexplicit=True,
            refwarn=True,
        )


# -- Text and pictures -----------------------------------------------------------------------


class PictureBoxes(SphinxPostTransform):
    """Give each figure's picture a box of its own, which scrolls while the caption stays."""

    default_priority = 900  # after the outputs of cells have become nodes
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Wrap the pictures of one page."""
        for figure in list(self.document.findall(nodes.figure)):
            for image in [child for child in figure.children if isinstance(child, nodes.image)]:
                image.replace_self(nodes.container("", image.deepcopy(), classes=["picture"]))


class KeptPunctuation(SphinxPostTransform):
    """Keep a line from ending between a formula and the punctuation that touches it."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Tie each formula of one page to the marks before and after it."""
        for formula in list(self.document.findall(nodes.math)):
            parent, place = formula.parent, formula.parent.index(formula)
            tied: list[nodes.Node] = [formula.deepcopy()]
            for step, marks in ((1, r"[^\w\s]+"), (-1, r"[^\w\s]+$")):
                if not 0 <= place + step < len(parent):
                    continue
                text = parent[place + step]
                touching = isinstance(text, nodes.Text) and (
                    re.match(marks, text) if step > 0 else re.search(marks, text)
                )
                if touching:
                    start, end = touching.span()
                    parent[place + step] = nodes.Text(text[:start] + text[end:])
                    tied.insert(len(tied) if step > 0 else 0, nodes.Text(touching[0]))
            if len(tied) > 1:
                parent[place] = nodes.inline("", "", *tied, classes=["with-punctuation"])


def number_the_printed_title(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Show the chapter's number on paper too, where the theme puts the bare title."""
    context["pagetitle"] = context.get("title", "")


# -- API reference ---------------------------------------------------------------------------


SIGNATURE = re.compile(r'<dt class="sig sig-object py".*?</dt>', re.S)


def lines_of_signatures(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Put parameters on lines of their own without a list of definitions, which has no terms.

    A screen reader would announce that list.
    """
    tags = {"<dl>": "", "</dl>": "", "<dd>": '<span class="sig-line">', "</dd>": "</span>"}
    context["body"] = SIGNATURE.sub(
        lambda signature: re.sub("</?d[ld]>", lambda tag: tags[tag[0]], signature[0]),
        context.get("body", ""),
    )


def signature_as_written(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str, returns: str
) -> tuple[str, str | None] | None:
    """Show the signature of the source, where shapes read `Float[Tensor, "queries d_k"]`.

    The annotation objects of jaxtyping print longer than they are written.
    """
    function = thing.__init__ if what == "class" and not is_dataclass(thing) else thing
    try:
        definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError):
        return None
    if isinstance(definition, ast.ClassDef):
        return f"({', '.join(fields_as_written(definition))})", None
    if not isinstance(definition, ast.FunctionDef):
        return None
    arguments = definition.args
    if what in ("class", "method"):
        positional = arguments.posonlyargs or arguments.args
        del positional[:1]
    result = ast.unparse(definition.returns) if definition.returns and what != "class" else None
    return f"({ast.unparse(arguments)})", result


def fields_as_written(definition: ast.ClassDef) -> Iterator[str]:
    """Yield the fields of a dataclass as arguments; a factory stands as a call."""
    for statement in definition.body:
        if isinstance(statement, ast.AnnAssign):
            default = ast.unparse(statement.value) if statement.value else ""
            default = re.sub(r"field\(default_factory=(\w+)\)", r"\1()", default)
            yield ast.unparse(statement.target) + (
                f": {ast.unparse(statement.annotation)}" + (f" = {default}" if default else "")
            )


class DoubleQuotes(SphinxTransform):
    """Write the strings in signatures with the quotation marks of the source."""

    default_priority = 900

    def apply(self, **kwargs: Any) -> None:
        """Replace the quotation marks, which Python's `repr` makes single."""
        for literal in self.document.findall(addnodes.desc_sig_literal_string):
            text = literal.astext()
            if text[:1] == text[-1:] == "'" and '"' not in text:
                literal[:] = [nodes.Text(f'"{text[1:-1]}"')]


def mark_returns_as_prose(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Keep napoleon from reading a type before the first colon of a section "Returns".

    Types stand in the signatures; an empty one in front says so.
    """
    for number in range(1, len(lines)):
        if lines[number - 1].strip() in ("Returns:", "Yields:"):
            lines[number] = re.sub(r"^(\s+)(?=\S)", r"\1: ", lines[number])


CHAPTER = re.compile(r'"([^"]+)"\s+\(book/(\w+)\.ipynb\)')
FOR_EDITORS = re.compile(r"\s+Generated\s+from\b.+?\bedit\s+the\s+notebooks?\.", re.S)
UNCLOSED_STAR = re.compile(r"(?<![\\*\w])\*(?=\w)(?![^*\n]*\w\*)")


def prepare_docstring(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Link the chapters that a module's docstring names, and take a shape's `*batch` literally."""
    text = "\n".join(lines)
    if what == "module":
        text = FOR_EDITORS.sub("", CHAPTER.sub(r":doc:`\1 </\2>`", text))
    pieces = re.split(r"(`+[^`]*`+)", text)
    pieces[::2] = [UNCLOSED_STAR.sub(r"\*", piece) for piece in pieces[::2]]
    lines[:] = "".join(pieces).split("\n")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register everything with Sphinx."""
    app.setup_extension("looking_up")
    app.connect("config-inited", add_repository)
    app.connect("config-inited", choose_scripts)
    # After the theme, which writes the buttons at 501.
    app.connect("html-page-context", point_colab_to_its_branch, priority=900)
    app.connect("autodoc-process-signature", signature_as_written)
    # Before and after napoleon, which turns Google's style into reStructuredText at 500.
    app.connect("autodoc-process-docstring", mark_returns_as_prose, priority=400)
    app.connect("autodoc-process-docstring", prepare_docstring, priority=600)
    app.connect("html-page-context", number_the_printed_title, priority=900)
    app.connect("html-page-context", lines_of_signatures, priority=900)
    app.add_transform(ExportBadges)
    app.add_post_transform(PictureBoxes)
    app.add_post_transform(KeptPunctuation)
    app.add_transform(DoubleQuotes)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
