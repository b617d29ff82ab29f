"""The PDF of the book, of which a few pages are printed here; `make pdf` prints all."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from pypdf import PageObject, PdfReader

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import print_book  # noqa: E402

CHAPTER, PAGES = "01_weighted_sums", ["index", "01_weighted_sums", "glossary"]
TITLES = ["Building the Transformer", "1. Weighted sums", "Glossary"]


@pytest.fixture(scope="module")
def book(browser: object, site: Path, tmp_path_factory: pytest.TempPathFactory) -> PdfReader:
    """Print the landing page, a chapter and the glossary."""
    output = tmp_path_factory.mktemp("pdf") / "book.pdf"
    command = [sys.executable, "tools/print_book.py", "--output", str(output), *PAGES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return PdfReader(output)


@pytest.fixture(scope="module")
def text(book: PdfReader) -> dict[str, str]:
    """Return what stands on each page, by the page's label."""
    return dict(zip(book.page_labels, map(PageObject.extract_text, book.pages), strict=True))


def bookmarks(book: PdfReader) -> Iterator[tuple[str, str]]:
    """Yield the title of every bookmark and the label of its page, in their order."""

    def walk(items: list) -> Iterator[tuple[str, str]]:
        for item in items:
            if isinstance(item, list):
                yield from walk(item)
            else:
                yield str(item.title), book.page_labels[book.get_destination_page_number(item)]

    yield from walk(book.outline)


def cells_of_the_chapter() -> list[nbformat.NotebookNode]:
    """Return the cells of the printed chapter's notebook."""
    return nbformat.read(ROOT / f"book/{CHAPTER}.ipynb", as_version=4).cells


def squeezed(text: str) -> str:
    """Leave out spaces, which a PDF does not store."""
    return "".join(text.split())


def test_the_first_page_and_what_a_reader_of_pdfs_shows(book, text):
    assert book.metadata.title == "Building the Transformer"
    assert book.root_object["/Lang"] == "en"
    assert "Building the Transformer" in text["i"]
    assert "CC BY 4.0" in text["i"]
    front = next(n for n, label in enumerate(book.page_labels) if label == "1")
    assert book.page_labels == [
        *("i", "ii", "iii")[:front],
        *map(str, range(1, len(text) - front + 1)),
    ]
    for label, words in text.items():
        assert words.startswith(label) or words.endswith(label) or label in words.split()[-1], label


def test_the_number_of_pages_is_sensible(text):
    assert 25 <= len(text) <= 60
    for label, words in text.items():
        lines = [line for line in words.splitlines() if line.strip()]
        assert len(lines) >= 3 or label == "i", f"on page {label} stand only {lines}"


def test_titles_are_bookmarked_where_they_stand(book, text):
    marked = list(bookmarks(book))
    titles = [title for title, _ in marked]
    assert [title for title in titles if title in TITLES] == TITLES
    assert "From weighted sums to attention" in titles
    prose = "\n".join(c.source for c in cells_of_the_chapter() if c.cell_type == "markdown")
    sections = re.findall(r"^## (.+)$", prose, re.M)
    assert [t.partition(". ")[2] for t in titles if re.match(r"1\.\d", t)] == sections
    for title, label in marked:
        assert squeezed(title) in squeezed(text[label]), title


def test_the_table_of_contents_has_the_numbers_of_the_pages(book, text):
    listed = "\n".join(words for label, words in text.items() if not label.isdigit())
    for title, label in bookmarks(book):
        if title in TITLES or re.match(r"1\.\d", title):
            assert re.search(rf"^{re.escape(title)}\s*{label}$", listed, re.M), title


def test_links_lead_into_the_book_or_to_the_web(book):
    places = {name.removeprefix("/") for name in book.named_destinations}
    inside = 0
    for page in book.pages:
        for link in (one.get_object() for one in page.get("/Annots", [])):
            if "/Dest" in link:
                assert str(link["/Dest"]).removeprefix("/") in places
                inside += 1
            else:
                assert re.match(r"https://(?!book\.invalid)", link["/A"]["/URI"])
    assert inside > 100


def test_pictures_and_formulas_are_printed(book, text):
    captions = [cell.metadata.get("mystnb", {}).get("figure") for cell in cells_of_the_chapter()]
    assert sum(len(page.images) for page in book.pages) >= sum(map(bool, captions)) > 0
    printed = "".join(text.values())
    assert not re.search(r"\\[(\[]|\$\$|\\frac", printed)


def test_pictures_are_described_to_a_screen_reader(book):
    described = []
    kinds = set()

    def walk(element: dict) -> None:
        kinds.add(str(element.get("/S")))
        described.extend([str(element["/Alt"])] if "/Alt" in element else [])
        below = element.get("/K", [])
        for child in below if isinstance(below, list) else [below]:
            child = child.get_object()
            if isinstance(child, dict):
                walk(child)

    walk(book.root_object["/StructTreeRoot"])
    pictures = [cell.metadata.get("mystnb", {}).get("image") for cell in cells_of_the_chapter()]
    texts = {picture.alt for picture in pictures if picture}
    assert texts
    assert texts <= set(described)
    assert kinds >= {"/H1", "/H2", "/P", "/Figure", "/Table", "/Link"}


def test_what_is_folded_is_printed_open(text):
    sources = [cell.source for cell in cells_of_the_chapter()]
    solutions = [source for source in sources if "<summary>Solution</summary>" in source]
    assert len(solutions) >= 3
    printed = squeezed("".join(text.values()))
    for solution in solutions:
        for block in re.findall(r"```python\n(.+?)```", solution, re.S):
            assert squeezed(block.splitlines()[0]) in printed


def test_an_explorer_stands_as_it_starts(text):
    printed = squeezed("".join(text.values()))
    assert squeezed("0.20 · (1, 1) + 0.30 · (5, 2) + 0.50 · (2, 4) = (2.70, 2.80)") in printed
    assert squeezed("This is how the explorer starts.") in printed


def test_nothing_for_a_screen_is_printed(text):
    printed = "".join(text.values())
    for word in ("Click to show", "Skip to main content", "Previous", "#\n#"):
        assert word not in printed


# -- The link on the site --------------------------------------------------------------------


def test_the_site_links_to_the_pdf_once_it_is_there(site, tmp_path):
    for name in ("index", CHAPTER):
        page = (site / f"{name}.html").read_text(encoding="utf-8")
        assert print_book.NAME in page
        assert ("<!--pdf " in page) != (site / print_book.NAME).exists()
        shutil.copy(site / f"{name}.html", tmp_path)
    assert print_book.show_links(tmp_path) in (0, 2, 3)
    for path in tmp_path.iterdir():
        page = path.read_text(encoding="utf-8")
        assert re.search(rf'<a href="{print_book.NAME}">', page)
        assert "<!--pdf" not in page
        assert "pdf-->" not in page
    assert print_book.show_links(tmp_path) == 0


def test_a_wrong_page_is_named(site):
    command = [sys.executable, "tools/print_book.py", "--output", os.devnull, "99_nothing"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "no such page in _toc.yml: 99_nothing" in done.stderr
