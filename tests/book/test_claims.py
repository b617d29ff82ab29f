"""The book keeps the promises of claims.toml: every claim has its cell, and the cell asserts it."""

import ast
import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).parents[2]
CLAIMS = tomllib.loads((ROOT / "tests/claims.toml").read_text(encoding="utf-8"))
CHAPTERS = {path.stem: path for path in sorted((ROOT / "book").glob("[0-9][0-9]_*.ipynb"))}


def tagged(notebook: NotebookNode) -> dict[str, list[NotebookNode]]:
    """Return the cells of a notebook by the claim their tags name."""
    cells: dict[str, list[NotebookNode]] = {}
    for cell in notebook.cells:
        for tag in cell.metadata.get("tags", []):
            if tag.startswith("claim-"):
                cells.setdefault(tag.removeprefix("claim-"), []).append(cell)
    return cells


def asserts(cell: NotebookNode) -> int:
    source = "\n".join(line for line in cell.source.splitlines() if not line.startswith("%"))
    return sum(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(source)))


def problems(notebook: NotebookNode, chapter: str, claims: dict[str, dict]) -> list[str]:
    """Return what a chapter owes and lacks, and what it tags without meaning it."""
    cells = tagged(notebook)
    found = [
        f"{claim}: no cell of {chapter} is tagged claim-{claim}"
        for claim, entry in claims.items()
        if chapter in entry["chapters"] and claim not in cells
    ]
    for claim, its_cells in cells.items():
        if claim not in claims:
            found.append(f"{claim}: tagged in {chapter}, but no such claim is promised")
            continue
        code = [cell for cell in its_cells if cell.cell_type == "code"]
        found += [f"{claim}: cell {cell.id} asserts nothing" for cell in code if not asserts(cell)]
        owed = 2 if "mistake" in claims[claim] else 0
        if sum(map(asserts, code)) < owed:
            found.append(f"{claim}: the mistake and what is right are not both asserted")
    return found


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_keeps_its_promises(chapter):
    assert not problems(nbformat.read(CHAPTERS[chapter], as_version=4), chapter, CLAIMS)


def test_the_table_is_whole():
    expected = [
        f"{part}{n}" for part, last in (("A", 16), ("B", 29), ("C", 29)) for n in range(1, last + 1)
    ]
    assert list(CLAIMS) == expected
    for claim, entry in CLAIMS.items():
        assert entry["chapters"], claim
        assert entry["right"], claim


def a_notebook(*cells: NotebookNode) -> NotebookNode:
    return new_notebook(cells=list(cells))


RIGHT = {"X1": {"chapters": ["one"], "right": "…"}}
MISTAKE = {"X1": {"chapters": ["one"], "right": "…", "mistake": "…"}}
TAG = {"tags": ["claim-X1"]}


@pytest.mark.parametrize(
    ("notebook", "claims", "message"),
    [
        (a_notebook(), RIGHT, "no cell of one is tagged"),
        (a_notebook(new_code_cell("x = 1", metadata=TAG)), RIGHT, "asserts nothing"),
        (a_notebook(new_code_cell("# assert x", metadata=TAG)), RIGHT, "asserts nothing"),
        (a_notebook(new_code_cell("assert 1", metadata=TAG)), MISTAKE, "not both asserted"),
        (a_notebook(new_markdown_cell("…", metadata=TAG)), MISTAKE, "not both asserted"),
        (a_notebook(new_code_cell("assert 1", metadata=TAG)), {}, "no such claim"),
    ],
)
def test_broken_promises_are_noticed(notebook, claims, message):
    assert message in "\n".join(problems(notebook, "one", claims))


def test_kept_promises_pass():
    two = a_notebook(new_code_cell("assert 1\nassert 2", metadata=TAG))
    assert problems(two, "one", MISTAKE) == []
    assert problems(a_notebook(new_markdown_cell("…", metadata=TAG)), "one", RIGHT) == []


# -- Misconceptions --------------------------------------------------------------------------

PAGE = (ROOT / "book/misconceptions.md").read_text(encoding="utf-8")
NOTEBOOKS = {stem: nbformat.read(path, as_version=4) for stem, path in CHAPTERS.items()}


class Misconception(NamedTuple):
    """One entry of the page: the statement, its chapter, sections and cells."""

    statement: str
    chapter: int
    text: str
    labels: list[str]
    cells: list[tuple[str, str]]


def entries(page: str) -> list[Misconception]:
    found = []
    for section in re.split(r"^## ", page, flags=re.M)[1:]:
        number = re.match(r"Chapter (\d+): \S", section)
        for entry in re.split(r"^### ", section, flags=re.M)[1:]:
            statement, _, text = entry.partition("\n")
            labels = re.findall(r"\{ref\}`([^`]+)`", text)
            cells = re.findall(r"\{cell\}`([^/`]+)/([^`]+)`", text)
            body = re.sub(r"\{(?:ref|cell)\}`[^`]+`[,·\s]*", "", text).strip()
            chapter = int(number[1]) if number else 0
            found.append(Misconception(statement, chapter, body, labels, cells))
    return found


def sections(notebook: NotebookNode) -> tuple[dict[str, int], dict[str, int]]:
    """Return in which section, counted through ``## ``, each label and each code cell stands."""
    section, labels, cells = 0, {}, {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cells[cell.id] = section
            continue
        for label, heading in re.findall(r"^(?:\(([\w-]+)\)=\n)?(#{2,}) ", cell.source, re.M):
            section += heading == "##"
            labels[label] = section
    return labels, cells


def faults(entry: Misconception, notebooks: dict[str, NotebookNode]) -> list[str]:
    """Return what an entry lacks: a section, or a cell in it that asserts."""
    found = []
    if not re.fullmatch(r'".+[.?!]"', entry.statement):
        found.append("the statement is no sentence in quotation marks")
    if len(entry.text) < 20:
        found.append("nothing is said of what holds instead")
    if not entry.labels or not entry.cells:
        found.append("a section and a cell are owed")
    of_chapter = [stem for stem in notebooks if int(stem[:2]) == entry.chapter]
    for stem, cell_id in entry.cells:
        if stem not in of_chapter:
            found.append(f"{stem} is not the chapter that the entry stands under")
            continue
        labels, cells = sections(notebooks[stem])
        if missing := set(entry.labels) - set(labels):
            found.append(f"no section of {stem} is labelled {', '.join(sorted(missing))}")
        elif cell_id not in cells:
            found.append(f"{stem} has no code cell {cell_id}")
        elif cells[cell_id] not in {labels[label] for label in entry.labels}:
            found.append(f"{cell_id} stands in none of the sections that are named")
        elif not asserts(next(c for c in notebooks[stem].cells if c.id == cell_id)):
            found.append(f"{cell_id} asserts nothing")
    return found


@pytest.mark.parametrize("entry", entries(PAGE), ids=lambda entry: entry.statement)
def test_a_misconception_has_a_cell_that_breaks_it(entry):
    assert faults(entry, NOTEBOOKS) == []


def test_the_page_of_misconceptions_is_in_order():
    found = entries(PAGE)
    assert [entry.chapter for entry in found] == sorted(entry.chapter for entry in found)
    assert {entry.chapter for entry in found} == {int(stem[:2]) for stem in CHAPTERS}
    statements = [entry.statement for entry in found]
    assert len(set(statements)) == len(statements) > 90


def test_every_mistake_of_the_claims_is_on_the_page():
    """Some entry leads to a cell that is tagged with the claim."""
    shown = {
        claim
        for entry in entries(PAGE)
        for stem, cell_id in entry.cells
        for claim, cells in tagged(NOTEBOOKS[stem]).items()
        if cell_id in [cell.id for cell in cells]
    }
    owed = {
        claim
        for claim, promise in CLAIMS.items()
        if "mistake" in promise and set(promise["chapters"]) & set(CHAPTERS)
    }
    assert owed - shown == set()


CHAPTER = a_notebook(
    new_markdown_cell("# Title\n\n(sec-a)=\n## A"),
    new_code_cell("assert x", id="in-a"),
    new_markdown_cell("(sec-a-b)=\n### B"),
    new_code_cell("assert x", id="in-b"),
    new_code_cell("x = 1", id="silent"),
    new_markdown_cell("(sec-c)=\n## C"),
    new_code_cell("assert x", id="in-c"),
)
ENTRY = """## Chapter 1: A

### "All is well."

Not all of it, and this is why.
{ref}`sec-a-b` · {cell}`01_a/in-b`
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", "", ""),
        ("01_a/in-b", "01_a/in-a", ""),
        ('"All is well."', "All is well", "no sentence in quotation marks"),
        ("Not all of it, and this is why.", "No.", "nothing is said"),
        ("{ref}`sec-a-b` · ", "", "are owed"),
        ("{cell}`01_a/in-b`", "", "are owed"),
        ("sec-a-b", "sec-d", "labelled sec-d"),
        ("01_a/in-b", "01_a/gone", "has no code cell gone"),
        ("01_a/in-b", "01_a/in-c", "stands in none of the sections"),
        ("01_a/in-b", "01_a/silent", "asserts nothing"),
        ("01_a/in-b", "02_b/in-b", "is not the chapter"),
        ("Chapter 1", "Chapter 2", "is not the chapter"),
    ],
)
def test_a_bad_entry_is_noticed(old, new, message):
    (entry,) = entries(ENTRY.replace(old, new) if old else ENTRY)
    found = faults(entry, {"01_a": CHAPTER, "02_b": a_notebook()})
    assert message in "\n".join(found)
    assert bool(found) == bool(message)
