"""The book keeps the promises of claims.toml: every claim has its cell, and the cell asserts it."""

import ast
import tomllib
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).parent.parent
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
