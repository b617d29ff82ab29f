"""Ways back: from the reference and the glossary to the sections that build and introduce things.

What the export cells of the chapters define, and in which sections, decides what the reference
says, and the first use of a term in the chapters where its entry in the glossary leads.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import export
import imports
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

PACKAGE = export.PACKAGE
CHAPTER = re.compile(r"\d\d_\w+")
HANGUL = re.compile(r"[가-힣]+")
logger = logging.getLogger(__name__)


class Place(NamedTuple):
    """A section: its page, and its anchor and title with those of the sections around it."""

    page: str
    sections: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, page: str, node: nodes.Node) -> Place:
        """Find where a node of a page stands; the innermost section comes first."""
        around = []
        one: Any = node
        while one is not None:
            if isinstance(one, nodes.section):
                around.append((one["ids"][0], one.next_node(nodes.title).astext()))
            one = one.parent
        return cls(page, tuple(around))

    def number(self, env: BuildEnvironment) -> str:
        """Return the number of the innermost section that has one."""
        numbers = env.toc_secnumbers.get(self.page, {})
        anchors = [f"#{anchor}" for anchor, _ in self.sections[:-1]]  # a page's title has none
        found = next((numbers[one] for one in [*anchors, ""] if numbers.get(one)), ())
        return ".".join(map(str, found))

    def link(self, env: BuildEnvironment, page: str, text: str) -> nodes.reference:
        """Return a link from a page to this section."""
        anchor, title = self.sections[0]
        address = env.app.builder.get_relative_uri(page, self.page)
        inner = nodes.inline("", text)
        return nodes.reference(
            "", "", inner, internal=True, refuri=f"{address}#{anchor}", reftitle=title
        )

    def named(self, env: BuildEnvironment) -> str:
        """Name the section: "section 6.2", or "chapter 6" above the first of its sections."""
        number = self.number(env)
        return f"{'section' if '.' in number else 'chapter'} {number}"


# -- The reference ---------------------------------------------------------------------------


def public_names(code: str) -> list[str]:
    """Return what an export cell adds to the library."""
    return [name for name in export.definitions(ast.parse(code)) if not name.startswith("_")]


def write_lists(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the lists that are made from the library and its cells where a page has their mark."""
    for mark, lines in {"% the-reference\n": reference, "% the-imports\n": table}.items():
        if mark in source[0]:
            source[0] = source[0].replace(mark, "\n".join(lines(Path(app.srcdir).parent)) + "\n")


def reference(root: Path) -> Iterator[str]:
    """Yield the Markdown of all entries: what each chapter builds, and what is written by hand."""
    modules, cells = export.read_book(root, [])
    described: set[str] = set()
    for chapter in dict.fromkeys(cell.chapter for cell in cells):
        fed = dict.fromkeys(cell.module for cell in cells if cell.chapter == chapter)
        parts = []
        for module in filter(None, fed):
            names = [
                name
                for name, cell in modules[module].names()
                if cell.chapter == chapter and not name.startswith("_")
            ]
            parts += section(module, names, again=module in described) if names else []
            described |= {module} if names else set()
        if parts:
            yield from [f"## Chapter {chapter.number}: {chapter.title}", "", *parts]
    yield from ["## Written by hand", ""]
    for module in by_hand(root):
        yield from section(module, own_names(f"{PACKAGE}.{module}"))


def section(module: str, names: Iterable[str], *, again: bool = False) -> list[str]:
    """Return the entries of a module, or of what a later chapter adds to it."""
    full = f"{PACKAGE}.{module}"
    entries = [entry(full, name) for name in names]
    if not again:
        entries.insert(0, f".. automodule:: {full}\n")
    return [f"### `{module}`{', continued' * again}", "", "```{eval-rst}", *entries, "```", ""]


def entry(module: str, name: str) -> str:
    """Return the directive that documents a member of a module."""
    thing = getattr(importlib.import_module(module), name)
    kind = "function" if callable(thing) else "data"
    if inspect.isclass(thing):
        kind = "exception" if issubclass(thing, BaseException) else "class"
    option = {"data": "\n   :no-value:", "class": "\n   :members:"}.get(kind, "")
    return f".. auto{kind}:: {module}.{name}{option}\n"


def by_hand(root: Path) -> list[str]:
    """Return the public modules and packages that no cell feeds."""
    package = root / PACKAGE
    fed = {cell.module for cell in export.read_book(root, [])[1]}
    found = {name for name, _, _ in export.library_files(package)}
    folders = [path.parent for path in package.glob("*/**/__init__.py")]
    found |= {".".join(folder.relative_to(package).parts) for folder in folders}
    return sorted(name for name in found - fed if not name.startswith("_") and "._" not in name)


def own_names(module: str) -> list[str]:
    """Return what a module written by hand offers and defines, itself or in its package."""
    loaded = importlib.import_module(module)
    source = inspect.getsource(loaded)
    defined = list(export.definitions(ast.parse(source)))
    names = [
        name
        for name in getattr(loaded, "__all__", ())
        if (getattr(getattr(loaded, name), "__module__", None) or module).startswith(module)
    ]
    return sorted(names, key=lambda name: defined.index(name) if name in defined else len(defined))


def table(root: Path) -> Iterator[str]:
    """Yield a Markdown table of the modules: who builds them, and who uses whom."""
    modules = imports.library(root)
    yield from ["| Module | Chapter | Uses | Is used by |", "| --- | --- | --- | --- |"]
    for module in modules:
        chapters = [f"{{doc}}`{c.number} <{Path(c.file).stem}>`" for c in module.chapters]
        users = [user.name for user in modules if module.name in user.uses]
        cells = [", ".join(chapters) or "by hand", *map(linked, (module.uses, users))]
        yield f"| {linked([module.name])} | {' | '.join(cells)} |"


def linked(names: Iterable[str]) -> str:
    """Return names of modules as links to the reference, which leaves out private ones."""
    return ", ".join(
        f"`{name}`" if name.startswith("_") else f"{{mod}}`{name} <{PACKAGE}.{name}>`"
        for name in names
    )


LONGEST = 12  # lines of a constant that are shown


def show_constants(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Show the assignment of a constant as it is written, and not the docstring of its type."""
    if what == "data":
        module, _, constant = name.rpartition(".")
        comment, code = assignment(module, constant)
        language = "python"
        if len(code) > LONGEST:
            language, code = "text", [*code[: LONGEST - 2], "    …", code[-1]]
        lines[:] = [*comment, "", f".. code-block:: {language}", "", *(f"   {x}" for x in code), ""]


def assignment(module: str, name: str) -> tuple[list[str], list[str]]:
    """Return the comment and the code that assign a constant, there or where it comes from."""
    source = inspect.getsource(importlib.import_module(module))
    for node in ast.parse(source).body:
        if isinstance(node, export.ASSIGNMENTS) and name in export.assigned(node):
            before = source.split("\n")[: node.lineno - 1]
            comment = list(itertools.takewhile(lambda line: line.startswith("# "), before[::-1]))
            code = (ast.get_source_segment(source, node) or "").split("\n")
            return [line.removeprefix("# ") for line in comment[::-1]], code
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return assignment(node.module or module, name)
    raise ValueError(f"{module} assigns no {name}")


class BuiltIn(SphinxPostTransform):
    """Say under each signature of the reference which section builds the thing."""

    default_priority = 5
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Go through the entries of one page."""
        places: dict[str, Place] = exports(self.env)
        for entry in self.document.findall(addnodes.desc):
            for anchor in entry.next_node(addnodes.desc_signature)["ids"]:
                if anchor in places:
                    place = places[anchor]
                    text = f"{place.named(self.env)}, {place.sections[0][1]}"
                    link = place.link(self.env, self.env.docname, text)
                    line = nodes.paragraph("", "Built in ", link, classes=["built-in"])
                    entry.next_node(addnodes.desc_content).insert(0, line)


def exports(env: BuildEnvironment) -> dict[str, Place]:
    """Return where each exported name is built, by its name in the library."""
    return {name: place for page in stored(env, "exports").values() for name, place in page.items()}


# -- The glossary ----------------------------------------------------------------------------


def note_terms(app: Sphinx, document: nodes.document) -> None:
    """Note where a chapter uses terms first, and what the glossary says about its entries.

    An entry may end with a `numref` of the section that introduces its term, where that is not
    the first to use it.
    """
    env = app.env
    if CHAPTER.fullmatch(env.docname):
        stored(env, "sections")[env.docname] = {
            anchor: Place.of(env.docname, section)
            for section in document.findall(nodes.section)
            for anchor in section["ids"]
        }
        terms: dict[str, Place] = stored(env, "terms").setdefault(env.docname, {})
        for link in document.findall(addnodes.pending_xref):
            if link["reftype"] == "term":
                terms.setdefault(link["reftarget"].lower(), Place.of(env.docname, link))
    for entry in document.findall(nodes.term):
        definition = entry.parent[-1]
        korean = re.match(r"\(([^)]+)\)", definition.astext())
        told = [x for x in definition.findall(addnodes.pending_xref) if x["reftype"] == "numref"]
        for link in told:
            link.parent.remove(link)
        stored(env, "entries").setdefault(env.docname, {})[entry.astext().lower()] = (
            korean[1] if korean else "",
            told[-1]["reftarget"] if told else "",
        )


def introductions(env: BuildEnvironment) -> dict[str, Place]:
    """Return the section that introduces each term: the one told, else the first that uses it."""
    places: dict[str, Place] = {}
    for page in sorted(stored(env, "terms")):
        places = stored(env, "terms")[page] | places
    labels = env.get_domain("std").labels  # type: ignore[attr-defined]
    for entries in stored(env, "entries").values():
        for term, (_, label) in entries.items():
            page, anchor, _ = labels.get(label, ("", "", ""))
            if anchor in stored(env, "sections").get(page, {}):
                places[term] = stored(env, "sections")[page][anchor]
            elif label:
                logger.warning("glossary: %s: no section of a chapter: %s", term, label)
    return places


class IntroducedIn(SphinxPostTransform):
    """End each entry of the glossary with a link to the section that introduces the term."""

    default_priority = 5
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Go through the entries of one page."""
        places = introductions(self.env)
        for entry in self.document.findall(nodes.term):
            place = places.get(entry.astext().lower())
            if place:
                named = place.named(self.env)
                link = place.link(self.env, self.env.docname, named[0].upper() + named[1:])
                last = list(entry.parent[-1].findall(nodes.paragraph))[-1]
                last += [nodes.Text(" "), nodes.inline("", "", link, classes=["introduced-in"])]


class KoreanKeywords(SphinxPostTransform):
    """Let the search find a chapter by the Korean names of the terms that it introduces."""

    default_priority = 5
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Give one page its keywords."""
        here = {
            term
            for term, place in introductions(self.env).items()
            if place.page == self.env.docname
        }
        names = [
            korean
            for entries in stored(self.env, "entries").values()
            for term, (korean, _) in entries.items()
            if korean and term in here
        ]
        words = sorted({word for name in names for word in [name, *HANGUL.findall(name)]})
        if words:
            self.document.insert(0, nodes.meta(name="keywords", content=", ".join(words)))


# -- The bibliography ------------------------------------------------------------------------


def visit_citation(writer: Any, node: nodes.citation) -> None:
    """Open a work, which docutils marks with a role that is deprecated, as an item of a list."""
    type(writer).visit_citation(writer, node)
    writer.body[-1] = writer.body[-1].replace('role="doc-biblioentry"', 'role="listitem"')


def depart_citation(writer: Any, node: nodes.citation) -> None:
    """Close a work."""
    type(writer).depart_citation(writer, node)


# -- What is stored with the environment -------------------------------------------------------

KEPT = ("exports", "sections", "terms", "entries")


def stored(env: BuildEnvironment, what: str) -> dict[str, Any]:
    """Return one of `KEPT` by page."""
    if not hasattr(env, "looking_up"):
        env.looking_up = {one: {} for one in KEPT}  # type: ignore[attr-defined]
    found: dict[str, Any] = env.looking_up[what]  # type: ignore[attr-defined]
    return found


def forget(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    """Drop what a page told before, as it is read again."""
    for what in KEPT:
        stored(env, what).pop(page, None)


def merge(app: Sphinx, env: BuildEnvironment, pages: list[str], other: BuildEnvironment) -> None:
    """Take over what pages told that another process has read."""
    for what in KEPT:
        stored(env, what).update(stored(other, what))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register everything with Sphinx."""
    app.connect("source-read", write_lists)
    app.connect("doctree-read", note_terms)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("autodoc-process-docstring", show_constants, priority=700)
    app.add_node(nodes.citation, override=True, html=(visit_citation, depart_citation))
    app.add_post_transform(BuiltIn)
    app.add_post_transform(IntroducedIn)
    app.add_post_transform(KoreanKeywords)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
