"""What practice needs at build time: quizzes, links to cells, and lists read from the chapters.

The page of all exercises and the index of the misconceptions are made from the chapters and pages
themselves each time, so that they cannot be stale.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from docutils.parsers.rst.states import Inliner
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders import Builder
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

# -- Quizzes ---------------------------------------------------------------------------------

FOLD = re.compile(r"<details>(?=<summary>(?:(?!</summary>).)*</summary>\s*\Z)", re.S)
SUMMARY = re.compile(r"(?<=<summary>).*?(?=</summary>)", re.S)
FORMULA = re.compile(r"([(\[“‘]*)\$(?!\s)([^$]+?)\$([.,;:!?)\]”’]*)")


def typeset(summary: str) -> str:
    r"""Return a summary whose formulas MathJax will find, tied to the punctuation that they touch.

    >>> typeset("about $e^{2}$ times")
    'about <span class="math notranslate nohighlight">\\(e^{2}\\)</span> times'
    >>> typeset("$i$.").startswith('<span class="with-punctuation"><span class="math ')
    True
    """

    def maths(found: re.Match[str]) -> str:
        before, formula, after = found.groups()
        formula = html.escape(formula, quote=False)
        formula = rf'<span class="math notranslate nohighlight">\({formula}\)</span>'
        if before or after:
            return f'<span class="with-punctuation">{before}{formula}{after}</span>'
        return formula

    return FORMULA.sub(maths, summary)


class QuizAnswers(SphinxTransform):
    """Typeset the formulas of a quiz's answers, which are HTML, and mark which of them is right."""

    default_priority = 220

    def apply(self, **kwargs: Any) -> None:
        """Go through the folded answers of one page."""
        for raw in self.document.findall(nodes.raw):
            text = raw.astext()
            if "<summary>" not in text:
                continue
            text = SUMMARY.sub(lambda summary: typeset(summary[0]), text)
            if verdict := self.verdict(raw):
                text = FOLD.sub(f'<details class="answer {verdict}">', text)
            raw[:] = [nodes.Text(text)]
            raw.rawsource = text

    def verdict(self, raw: nodes.raw) -> str:
        """Return right or wrong if what follows begins with the one word or the other."""
        following = raw.parent[raw.parent.index(raw) + 1 :][:1]
        if not following or not isinstance(following[0], nodes.paragraph):
            return ""
        first = next((child for child in following[0] if child.astext()), None)
        word = first.astext() if isinstance(first, nodes.strong) else ""
        return {"Right.": "right", "No.": "wrong"}.get(word, "")


# -- Links to cells --------------------------------------------------------------------------


@cache
def cell_ids(path: str, changed: float) -> list[str]:
    """Return the ids of a notebook's cells, as it was when it was changed last."""
    return [cell["id"] for cell in json.loads(Path(path).read_text(encoding="utf-8"))["cells"]]


def ids_of(env: BuildEnvironment, page: str) -> list[str]:
    """Return the ids of a page's cells; a page that is no notebook has none."""
    path = Path(env.doc2path(page))
    if path.suffix != ".ipynb" or not path.is_file():
        return []
    return cell_ids(str(path), path.stat().st_mtime)


class CellAnchors(SphinxTransform):
    """Give each code cell its id as an anchor, so that a link can lead to the very cell."""

    default_priority = 200  # before cells are taken away

    def apply(self, **kwargs: Any) -> None:
        """Go through the cells of one page."""
        ids = ids_of(self.env, self.env.docname)
        for cell in self.document.findall(nodes.container):
            if ids and cell.get("nb_element") == "cell_code":
                cell["ids"].append(f"cell-{ids[cell['cell_index']]}")


def cell_role(
    name: str,
    source: str,
    text: str,
    line: int,
    inliner: Inliner,
    options: dict[str, Any] | None = None,
    content: list[str] | None = None,
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Make a link to a cell, written as the notebook's name, a stroke and the cell's id."""
    label = nodes.inline("", "see it run", classes=["cell-link"])
    link = addnodes.pending_xref("", label, refdomain="", reftype="cell", reftarget=text)
    link["refwarn"] = True
    link.line = line
    return [link], []


def resolve_cell(
    app: Sphinx, env: BuildEnvironment, link: addnodes.pending_xref, label: nodes.Element
) -> nodes.Element | None:
    """Point a link to its cell; one that is not there is reported by Sphinx."""
    if link["reftype"] != "cell":
        return None
    page, _, cell = link["reftarget"].partition("/")
    if cell not in ids_of(env, page):
        return None
    return make_refnode(app.builder, link["refdoc"], page, f"cell-{cell}", label)


# -- Lists -----------------------------------------------------------------------------------


class List(nodes.General, nodes.Element):
    """A list that is made when all pages have been read."""


class ListDirective(SphinxDirective):
    """Leave a place for one of the lists, by its name."""

    def run(self) -> list[nodes.Node]:
        """Return the place."""
        return [List("", name=self.name)]


class Task(NamedTuple):
    """What a reader can do: an exercise or a capstone."""

    chapter: str
    anchor: str
    title: str
    difficulty: str
    minutes: int


EFFORT = re.compile(r"Difficulty ([●○]+), (?:(\d+) minutes|(\d+) to (\d+) hours)\.")


def chapters(env: BuildEnvironment) -> list[str]:
    """Return the numbered chapters in the order of the book."""
    return [page for page in env.toctree_includes[env.config.root_doc] if page[:2].isdigit()]


def tasks(env: BuildEnvironment, kind: str) -> Iterator[Task]:
    """Yield the exercises or the capstones, as the chapters describe them."""
    for page in chapters(env):
        for section in env.get_doctree(page).findall(nodes.section):
            title = section.next_node(nodes.title)
            if title is None or not title.astext().startswith(kind):
                continue
            if effort := EFFORT.search(section.astext()):
                difficulty, minutes, _, hours = effort.groups()
                time = int(minutes) if minutes else 60 * int(hours)
                yield Task(page, section["ids"][0], title.astext(), difficulty, time)


def duration(minutes: int) -> str:
    """Return minutes in words.

    >>> duration(150)
    '2 h 30 min'
    """
    hours, rest = divmod(minutes, 60)
    return " ".join([f"{hours} h"] * bool(hours) + [f"{rest} min"] * bool(rest or not hours))


class Writer:
    """Makes the nodes of one page's lists."""

    def __init__(self, builder: Builder, env: BuildEnvironment, page: str) -> None:
        self.builder, self.env, self.page = builder, env, page

    def link(self, page: str, anchor: str, text: str) -> nodes.paragraph:
        """Return a paragraph that is a link."""
        target = self.builder.get_relative_uri(self.page, page) + (f"#{anchor}" if anchor else "")
        reference = nodes.reference("", "", nodes.inline("", text), refuri=target, internal=True)
        return nodes.paragraph("", "", reference)

    def chapter(self, page: str) -> str:
        """Return a chapter's number and title."""
        return f"{int(page[:2])}. {self.env.titles[page].astext()}"

    def table(self, heads: list[str], rows: list[list[nodes.Node | str]], name: str) -> nodes.table:
        """Return a table; a row of one cell spans it."""
        group = nodes.tgroup("", cols=len(heads))
        group += [nodes.colspec("", colwidth=1) for _ in heads]
        head, body = nodes.thead(), nodes.tbody()
        for part, lines in ((head, [heads]), (body, rows)):
            for line in lines:
                row = nodes.row(classes=["chapter"] if len(line) == 1 else [])
                for content in line:
                    entry = nodes.entry("", morecols=len(heads) - len(line))
                    entry += nodes.paragraph("", content) if isinstance(content, str) else content
                    row += entry
                part += row
        group += [head, body]
        return nodes.table("", group, classes=[name])

    def exercise_list(self) -> list[nodes.Node]:
        """Return the table of exercises and what they come to."""
        found, rows = list(tasks(self.env, "Exercise ")), []
        for page in dict.fromkeys(task.chapter for task in found):
            rows.append([self.link(page, "", self.chapter(page))])
            for task in found:
                if task.chapter == page:
                    title = task.title.removeprefix("Exercise ")
                    link = self.link(page, task.anchor, title)
                    rows.append([link, task.difficulty, str(task.minutes)])
        total = f"{len(found)} exercises, {duration(sum(task.minutes for task in found))} in all."
        heads = ["Exercise", "Difficulty", "Minutes"]
        return [nodes.paragraph("", total), self.table(heads, rows, "exercise-list")]

    def capstone_list(self) -> list[nodes.Node]:
        """Return the table of capstones."""
        rows = [
            [
                self.link(task.chapter, task.anchor, task.title.partition(": ")[2]),
                self.link(task.chapter, "", self.chapter(task.chapter)),
                task.difficulty,
                f"up to {duration(task.minutes)}",
            ]
            for task in tasks(self.env, "Capstone: ")
        ]
        return [self.table(["Capstone", "After", "Difficulty", "Time"], rows, "capstone-list")]

    def quiz_list(self) -> list[nodes.Node]:
        """Return the list of quizzes."""
        items = nodes.bullet_list(classes=["columns"])
        for page in chapters(self.env):
            for section in self.env.get_doctree(page).findall(nodes.section):
                if f"sec-quiz-{int(page[:2])}" in section["ids"]:
                    anchor = section["ids"][0]
                    items += nodes.list_item("", self.link(page, anchor, self.chapter(page)))
        return [items]

    def misconception_index(self) -> list[nodes.Node]:
        """Return the sections of the page with the number of entries in each."""
        items = nodes.bullet_list(classes=["columns"])
        for section in self.env.get_doctree(self.page).findall(nodes.section):
            entries = [child for child in section.children if isinstance(child, nodes.section)]
            if isinstance(section.parent, nodes.section):
                if not entries:
                    continue
                title = section.next_node(nodes.title)
                assert title is not None
                link = self.link(self.page, section["ids"][0], title.astext())
                link += nodes.Text(f" ({len(entries)})")
                items += nodes.list_item("", link)
        return [items]


def write_lists(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the lists where the directives have left a place for them."""
    writer = Writer(app.builder, app.env, page)
    for place in list(document.findall(List)):
        made = getattr(writer, place["name"].replace("-", "_"))()
        place.replace_self(made)


def load_practice_script(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Let readers tick and filter exercises where they are listed."""
    if page == "practice":
        app.add_js_file("practice.js", defer="")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register everything with Sphinx."""
    app.add_transform(QuizAnswers)
    app.add_transform(CellAnchors)
    app.add_role("cell", cell_role)
    app.connect("missing-reference", resolve_cell)
    app.add_node(List)
    for name in ("exercise-list", "capstone-list", "quiz-list", "misconception-index"):
        app.add_directive(name, ListDirective)
    app.connect("doctree-resolved", write_lists)
    app.connect("html-page-context", load_practice_script)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
