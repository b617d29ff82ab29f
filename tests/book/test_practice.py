"""Practice on the built site: the page that lists it, quizzes, and links to cells."""

import re
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup, SoupStrainer

BOOK = Path(__file__).parents[2] / "book"
CHAPTERS = sorted(BOOK.glob("[0-9][0-9]_*.ipynb"))
DIFFICULTY = re.compile(r"\*Difficulty ([●○]+), (\d+) minutes\.\*")


def text_of(path: Path) -> str:
    cells = nbformat.read(path, as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


@pytest.fixture(scope="module")
def practice(site) -> BeautifulSoup:
    """Return the page that lists all practice."""
    return BeautifulSoup((site / "practice.html").read_text(encoding="utf-8"), "html.parser")


def rows(page: BeautifulSoup, name: str) -> list[list[str]]:
    table = page.select_one(f"table.{name}")
    return [
        [cell.get_text(strip=True) for cell in row.select("td")] for row in table.select("tbody tr")
    ]


def test_all_exercises_are_listed_as_the_chapters_have_them(practice):
    expected, minutes = [], 0
    for path in CHAPTERS:
        expected.append([path.stem])
        for title, rest in re.findall(r"^### Exercise (.+)\n([^#]+)", text_of(path), re.M):
            difficulty, needed = DIFFICULTY.search(rest).groups()
            expected.append([title.split(":")[0], difficulty, needed])
            minutes += int(needed)
    links = [link["href"] for link in practice.select("table.exercise-list tr.chapter a")]
    chapters = iter(links)
    found = [
        [next(chapters).removesuffix(".html")]
        if len(row) == 1
        else [row[0].split(":")[0], *row[1:]]
        for row in rows(practice, "exercise-list")
    ]
    assert found == expected
    count = sum(len(row) == 3 for row in expected)
    hours, rest = divmod(minutes, 60)
    time = f"{hours} h {rest} min" if rest else f"{hours} h"
    assert f"{count} exercises, {time} in all." in practice.get_text()


def test_all_quizzes_and_capstones_are_linked(practice):
    heading = practice.find(id="quizzes")
    assert [link["href"].split("#")[0] for link in heading.select("li a")] == [
        f"{path.stem}.html" for path in CHAPTERS
    ]
    everything = "\n".join(map(text_of, CHAPTERS))
    titles = re.findall(r"^## Capstone: (.+)$", everything, re.M)
    assert [row[0] for row in rows(practice, "capstone-list")] == titles
    assert all(re.fullmatch(r"up to \d h", row[3]) for row in rows(practice, "capstone-list"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_answers_are_marked_and_typeset(site, path):
    """Each has the colour of its verdict, and its formulas are where MathJax looks for them."""
    html = (site / f"{path.stem}.html").read_text(encoding="utf-8")
    answers = BeautifulSoup(html, "html.parser", parse_only=SoupStrainer("details"))
    found = answers.select("details.answer")
    cells = [c for c in nbformat.read(path, 4).cells if "quiz" in c.metadata.get("tags", [])]
    summaries = re.findall(r"<summary>(.+?)</summary>", "\n".join(c.source for c in cells))
    assert len(found) == len(summaries) > 14
    assert sum("right" in one["class"] for one in found) == 5
    for one, summary in zip(found, summaries, strict=True):
        first = one.select_one("summary").find_next_sibling()
        assert first.name == "p"
        verdict = "Right." if "right" in one["class"] else "No."
        assert first.get_text().startswith(verdict)
        assert not one.select("ul, ol, h1, h2, h3"), one  # a line that began like a list
        assert "$" not in one.select_one("summary").get_text()
        assert len(one.select("summary .math")) == summary.count("$") / 2


def misconceptions() -> str:
    """Return the source of the page without its comments."""
    text = (BOOK / "misconceptions.md").read_text(encoding="utf-8")
    return re.sub(r"^%.*\n", "", text, flags=re.M)


def test_every_misconception_leads_to_a_cell(site):
    page = (site / "misconceptions.html").read_text(encoding="utf-8")
    links = BeautifulSoup(page, "html.parser").select('article a[href*="#cell-"]')
    cells = re.findall(r"\{cell\}`([^/`]+)/([^`]+)`", misconceptions())
    assert [link["href"] for link in links] == [f"{name}.html#cell-{cell}" for name, cell in cells]
    for name in {name for name, _ in cells}:
        html = (site / f"{name}.html").read_text(encoding="utf-8")
        assert all(f'id="cell-{cell}"' in html for stem, cell in cells if stem == name)


def test_the_index_of_the_misconceptions_counts_them(site):
    page = (site / "misconceptions.html").read_text(encoding="utf-8")
    items = BeautifulSoup(page, "html.parser").select("article ul.columns li")
    sections = re.split(r"^## ", misconceptions(), flags=re.M)[1:]
    expected = [
        f"{section.splitlines()[0]} ({len(re.findall('^### ', section, re.M))})"
        for section in sections
    ]
    assert [" ".join(item.get_text().split()) for item in items] == expected
