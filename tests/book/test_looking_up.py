"""The pages that one looks things up on, held against the chapters and the library."""

import ast
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup, SoupStrainer, Tag

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
sys.path[:0] = [str(ROOT / "tools")]

import export  # noqa: E402
import imports  # noqa: E402
import pictures  # noqa: E402

CONTENTS = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
LISTED = [entry["file"] for part in CONTENTS["parts"] for entry in part["chapters"]]
CHAPTERS = [name for name in LISTED if re.match(r"\d\d_", name)]
NOTEBOOKS = {name: nbformat.read(BOOK / f"{name}.ipynb", as_version=4) for name in CHAPTERS}
LIBRARY = imports.library(ROOT)


def cells(chapter: str, kind: str) -> Iterator[str]:
    """Yield the sources of a chapter's cells, without quizzes, which are about its text."""
    for cell in NOTEBOOKS[chapter].cells:
        if cell.cell_type == kind and not cell.get("id", "").startswith("quiz"):
            yield cell.source


def page(name: str) -> str:
    return (BOOK / f"{name}.md").read_text(encoding="utf-8")


@cache
def prose() -> dict[str, str]:
    """Return the Markdown of every chapter and page, without code."""
    pages = {name: "\n".join(cells(name, "markdown")) for name in CHAPTERS}
    pages |= {path.stem: page(path.stem) for path in BOOK.glob("*.md")}
    return {name: re.sub(r"```\w*\n.*?```", "", text, flags=re.S) for name, text in pages.items()}


# -- Glossary --------------------------------------------------------------------------------


@cache
def entries() -> dict[str, str]:
    """Return the glossary's terms with their definitions."""
    (body,) = re.findall(r"```\{glossary\}\n:sorted:\n\n(.+?)\n```", page("glossary"), re.S)
    return dict(re.findall(r"^(\S.*)\n((?:  .+\n?)+)", body, re.M))


def used_terms() -> dict[str, set[str]]:
    """Return the terms that each chapter links to."""
    found = {}
    for name in CHAPTERS:
        roles = re.findall(r"\{term\}`([^`]+)`", prose()[name])
        targets = [re.sub(r"^.*<(.+)>$", r"\1", " ".join(role.split())) for role in roles]
        found[name] = {target.lower() for target in targets}
    return found


def test_every_term_is_korean_too():
    assert len(entries()) > 150
    assert all(re.match(r"  \([^)]+\) ", definition) for definition in entries().values())
    without = [t for t, text in entries().items() if not re.search("[가-힣]", text.split(")")[0])]
    assert without == ["chrF"]  # has no Korean name


def test_every_term_is_introduced_in_a_chapter():
    used = set().union(*used_terms().values())
    assert [term for term in entries() if term.lower() not in used] == []
    assert used <= {term.lower() for term in entries()}


# -- Notation --------------------------------------------------------------------------------

GREEK = "alpha|beta|gamma|delta|varepsilon|eta|theta|kappa|lambda|mu|rho|sigma|tau|omega|Phi|phi|pi"
PART = re.compile(
    r"(?P<letter>\\text\{head\}|\\(?:mathit|mathcal|mathbf|mathbb|mathrm)\{[^}]*\}"
    rf"|\\(?:{GREEK}|ell|varnothing)(?![a-zA-Z])|(?<!\\)[A-Za-z])"
    r"(?P<index>_(?:\\text\{[^}]*\}|[A-Z]))?"
    r"|\\(?:text|operatorname|begin|end)\{[^}]*\}|\\[a-zA-Z]+"
)


def symbols(formula: str) -> set[str]:
    """Return the letters of a formula, each with its index where that is a word or a capital."""
    parts = [match for match in PART.finditer(formula) if match["letter"]]
    return {match["letter"] + (match["index"] or "") for match in parts}


def formulas(text: str) -> list[str]:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)
    display = re.findall(r"\$\$(.+?)\$\$", text, re.S)
    return display + re.findall(r"\$([^$]+)\$", re.sub(r"\$\$.+?\$\$", "", text, flags=re.S))


@cache
def chapter_symbols() -> dict[str, set[str]]:
    return {
        name: set().union(*(symbols(f) for text in cells(name, "markdown") for f in formulas(text)))
        for name in CHAPTERS
    }


@cache
def notation() -> list[tuple[set[str], str, str, str]]:
    """Return symbols, code, chapter and heading of every line of the notation."""
    rows = []
    for heading, text in re.findall(r"^## (.+?)\n(.+?)(?=^## |\Z)", page("notation"), re.M | re.S):
        for line in re.findall(r"^\| (\$.+) \|$", text, re.M):
            columns = re.split(r" (?<!\\)\| ", line)
            named = set().union(*(symbols(f) for f in formulas(columns[0])))
            chapter = re.fullmatch(r"\{doc\}`\d+ <(\w+)>`", columns[-1])
            assert chapter, line
            code = columns[1] if heading != "Operations" else ""
            rows.append((named, code, chapter[1], heading))
    return rows


def test_symbols_are_found_in_formulas():
    assert symbols(r"x W_Q \cdot k_j / \sqrt{d_\text{model}}") == {
        "x", "W_Q", "k", "j", r"d_\text{model}"
    }  # fmt: skip
    assert symbols(r"\operatorname{softmax}(\beta_1 \text{ for } \mathit{pos})") == {
        r"\beta", r"\mathit{pos}"
    }  # fmt: skip


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_symbol_of_a_chapter_is_in_the_notation(chapter):
    known = set().union(*(named for named, _, first, _ in notation() if first <= chapter))
    assert sorted(chapter_symbols()[chapter] - known) == []


def test_every_symbol_of_the_notation_is_used_in_its_chapter_first():
    used = chapter_symbols()
    faults = []
    for named, _, chapter, heading in notation():
        if heading == "Operations":
            continue
        for symbol in named:
            others = [first for also, _, first, _ in notation() if symbol in also]
            earlier = [name for name in CHAPTERS if name < min(others) and symbol in used[name]]
            if symbol not in used[chapter] or earlier:
                faults.append(f"{symbol}: {chapter}, {earlier}")
    assert faults == []


def test_the_names_in_the_code_are_found_in_the_chapter_or_the_library():
    library = "\n".join(
        path.read_text("utf-8") for path in (ROOT / "transformer_lib").rglob("*.py")
    )
    faults = []
    for _, code, chapter, _ in notation():
        text = "\n".join(cells(chapter, "code")) + library
        for name in re.findall(r"[A-Za-z_]\w*", " ".join(re.findall(r"`([^`]+)`", code))):
            if not re.search(rf"\b{name}\b", text):
                faults.append(f"{name} in {chapter}")
    assert faults == []


# -- Bibliography and timeline ---------------------------------------------------------------


@cache
def references() -> dict[str, dict[str, str]]:
    """Return the fields of each work."""
    works = {}
    text = (BOOK / "references.bib").read_text(encoding="utf-8")
    for kind, key, body in re.findall(r"^@(\w+)\{(\w+),\n(.+?)^\}", text, re.M | re.S):
        works[key] = dict(re.findall(r"^\s*(\w+)\s*=\s*\{(.+)\},?$", body, re.M)) | {"kind": kind}
    assert len(works) == text.count("\n@") + 1
    return works


@cache
def cited() -> dict[str, set[str]]:
    """Return the works that each page cites."""
    return {
        name: {
            key.strip()
            for keys in re.findall(r"\{cite:[pt]\}`([^`]+)`", text)
            for key in keys.split(",")
        }
        for name, text in prose().items()
    }


NEEDED = {
    "article": {"journal"},
    "inproceedings": {"booktitle"},
    "incollection": {"booktitle", "publisher"},
    "book": {"publisher"},
    "techreport": {"institution"},
    "misc": {"title"},
}


def test_works_are_complete_and_cited():
    works = references()
    assert sorted(works) == sorted(set().union(*cited().values()))
    for key, fields in works.items():
        missing = {"author", "title", "year"} | NEEDED[fields["kind"]] - fields.keys()
        assert not missing - fields.keys(), key
        assert re.fullmatch(r"(19|20)\d\d", fields["year"]), key
        assert fields.keys() & {"doi", "url"}, key
        assert fields.get("url", "https://").startswith("https://"), key
        assert re.fullmatch(r"10\.\d{4,}/\S+", fields.get("doi", "10.1000/1")), key


def test_titles_are_listed_once():
    titles = [re.sub(r"[{}\W]", "", work["title"]).lower() for work in references().values()]
    assert len(set(titles)) == len(titles)


MONTHS = "January February March April May June July August September October November December"


def date_of(work: dict[str, str]) -> tuple[int, int]:
    """Return year and month of the first version on arXiv, or the year of publication and 0."""
    if found := re.search(r"arxiv\.org/abs/(\d\d)(\d\d)\.", work.get("url", "")):
        return 2000 + int(found[1]), int(found[2])
    return int(work["year"]), 0


def test_the_timeline_has_the_dates_of_the_works():
    works, dates, current = references(), [], ""
    for line in page("timeline").split(":::{div} timeline")[1].split("\n"):
        if re.fullmatch(r"(?:[A-Z]\w+ )?\d{4}", line):
            current = line
        elif line.startswith(": "):
            (key,) = re.findall(r"\{cite:t\}`(\w+)`", line)
            (chapter,) = re.findall(r"\(\{doc\}`chapter \d+ <(\w+)>`\)$", line)
            year, month = date_of(works[key])
            name = f"{MONTHS.split()[month - 1]} {year}" if month else str(year)
            assert current == name, key
            assert key in cited()[chapter], key
            dates.append((year, month))
    assert dates == sorted(dates)
    assert len(dates) > 20


# -- The library -----------------------------------------------------------------------------


def test_modules_import_from_earlier_chapters_only():
    assert imports.ladder_faults(LIBRARY) == []
    assert {module.name for module in LIBRARY} >= {"weighted_sum", "transformer", "course"}


def test_an_import_from_a_later_chapter_is_a_fault():
    turned = [
        module._replace(uses=(*module.uses, "transformer")) if module.name == "softmax" else module
        for module in LIBRARY
    ]
    assert imports.ladder_faults(turned) == ["softmax imports transformer"]


def test_a_new_import_changes_the_map(tmp_path):
    """The picture is drawn from the files, down to an import inside a function."""
    package = tmp_path / "transformer_lib"
    package.mkdir()
    for path in (ROOT / "transformer_lib").glob("*.py"):
        shutil.copy(path, package)
    before = imports.imports(package)
    with (package / "decoding.py").open("a", encoding="utf-8") as file:
        file.write("\n\ndef late():\n    from transformer_lib.softmax import softmax\n")
    after = imports.imports(package)
    assert after == before | {"decoding": before["decoding"] | {"softmax"}}
    changed = [
        module._replace(uses=(*module.uses, "softmax")) if module.name == "decoding" else module
        for module in LIBRARY
    ]
    shape = {"step": 24.0, "height": 27.0, "font": 13.0}
    assert pictures.library_map(changed, **shape) != pictures.library_map(LIBRARY, **shape)


def test_the_map_draws_each_import_and_each_name():
    drawn = pictures.library_map(LIBRARY, step=24.0, height=27.0, font=13.0)
    assert drawn.count("<circle") == sum(len(module.uses) for module in LIBRARY)
    assert all(f">{module.name}</text>" in drawn for module in LIBRARY)


# -- The picture of the landing page ---------------------------------------------------------


@pytest.mark.parametrize(
    ("sentence", "translation", "from_the_ambiguous_word"),
    [
        (pictures.SENTENCES[0], "Indian curry restaurant", ["Ind"]),
        (pictures.SENTENCES[1], "No riding on the sidewalk", ["the", "s", "id"]),
    ],
)
def test_the_translator_looks_where_the_picture_says(
    sentence, translation, from_the_ambiguous_word
):
    source, target, attention = pictures.written(sentence)
    words = "".join(" " * piece.begins + piece.text for piece in target[:-1])
    assert words.strip() == translation
    assert attention.shape == (len(target), len(source))
    assert attention.sum(dim=1).tolist() == pytest.approx([1] * len(target))
    strongest = [source[place].text for place in attention.argmax(dim=1).tolist()]
    looking = [p.text for p, s in zip(target, strongest, strict=True) if s == pictures.AMBIGUOUS]
    assert looking == from_the_ambiguous_word


def test_the_picture_is_light_and_stops_by_itself():
    """It moves for less than five seconds, once, and the still one not at all."""
    for name in ("writing", "writing-narrow"):
        moving, still = (BOOK / f"_static/{name}{kind}.svg" for kind in ("", "-still"))
        assert moving.stat().st_size < 100_000
        text = moving.read_text(encoding="utf-8")
        delays = [float(delay) for delay in re.findall(r"animation-delay:([\d.]+)s", text)]
        (longest,) = {max(map(float, re.findall(r"animation:\w ([\d.]+)s", text)))}
        assert 3 < max(delays) + longest < 5.3
        assert "infinite" not in text
        assert "animation" not in still.read_text(encoding="utf-8")


# -- The built site --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def read(site) -> Callable[[str], str]:
    """Return a function that reads a page of the site."""
    return cache(lambda name: (site / f"{name}.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def reference(read) -> BeautifulSoup:
    return BeautifulSoup(read("api"), "html.parser", parse_only=SoupStrainer("article"))


@pytest.fixture(scope="module")
def described(reference) -> dict[str, Tag]:
    """Return what has an anchor in the reference."""
    return {tag["id"]: tag for tag in reference.select("[id]")}


@cache
def exported() -> list[tuple[str, str, str]]:
    """Return chapter, module and name of everything public that the cells define."""
    modules, _ = export.read_book(ROOT, [])
    return [
        (Path(cell.chapter.file).stem, module.name, name)
        for module in modules.values()
        for name, cell in module.names()
        if not name.startswith("_")
    ]


def test_every_exported_name_leads_to_its_entry_and_back(read, described):
    """From the badge above the cell to the entry, and from the entry to the cell's section."""
    assert len(exported()) > 100
    for chapter, module, name in exported():
        full = f"transformer_lib.{module}.{name}"
        (badge,) = re.finditer(rf'<a [^>]*href="api\.html#{full}"[^>]*>.*?</a>', read(chapter))
        paragraph = read(chapter).rindex("<p", 0, badge.start())
        assert read(chapter).startswith('<p class="export-badge">', paragraph), full
        assert re.sub("<.+?>", "", badge[0]) == name, full
        assert described[full].name == "dt", full
        line = described[full].parent.select_one("dd > p.built-in")
        assert re.match(r"Built in (?:section \d+\.\d+|chapter \d+), ", line.get_text()), full
        target, _, anchor = line.a["href"].partition("#")
        assert target == f"{chapter}.html", full
        section = read(chapter).rindex("<section ", 0, badge.start())
        assert re.match(rf'<section [^>]*id="{anchor}"', read(chapter)[section:]), full


def test_the_reference_stands_in_the_order_of_the_chapters(reference, described):
    headings = [tag.get_text().rstrip("#") for tag in reference.select("h2")]
    numbers = [int(text.split()[1].rstrip(":")) for text in headings[:-1]]
    assert headings[-1] == "Written by hand"
    assert numbers == sorted({int(chapter[:2]) for chapter, _, _ in exported()})
    for chapter, module, name in exported():
        entry = described[f"transformer_lib.{module}.{name}"]
        section = entry.find_parent("section").find_parent("section")
        assert section.h2.get_text().startswith(f"Chapter {int(chapter[:2])}: ")


def test_every_public_module_and_what_it_offers_is_in_the_reference(described):
    package = ROOT / "transformer_lib"
    whole_packages = [*package.glob("[!_]*/**/__init__.py")]
    fed = {module.replace(".", "/") for _, module, _ in exported()}
    parts = {package / Path(name).parent for name in fed}
    modules = [path for part in sorted(parts | {package}) for path in part.glob("[!_]*.py")]
    for path in [*modules, *whole_packages]:
        whole = path.name == "__init__.py"
        parts = (path.parent if whole else path.with_suffix("")).relative_to(ROOT).parts
        module = ".".join(parts)
        assert f"module-{module}" in described, module
        text = path.read_text(encoding="utf-8")
        defined = set(export.definitions(ast.parse(text)))
        offered = re.search(r"^__all__ = (\[.*?\])", text, re.S | re.M)
        for name in ast.literal_eval(offered[1]) if offered else ():
            if whole or name in defined:
                assert f"{module}.{name}" in described, f"{module}.{name}"


def test_every_term_leads_to_the_chapter_that_introduces_it(read):
    used = used_terms()
    glossary = BeautifulSoup(read("glossary"), "html.parser", parse_only=SoupStrainer("article"))
    terms = glossary.select("dl.glossary dt")
    assert len(terms) == len(entries())
    for term in terms:
        name = term.get_text().rstrip("#").strip()
        link = term.find_next("dd").select(".introduced-in a")[-1]
        chapter, _, anchor = link["href"].partition("#")
        chapter = chapter.removesuffix(".html")
        assert f' id="{anchor}"' in read(chapter), name
        assert re.fullmatch(rf"(?:Section|Chapter) {int(chapter[:2])}(?:\.\d+)?", link.get_text())
        if "{numref}" not in entries()[name]:
            assert chapter == min(c for c in CHAPTERS if name.lower() in used[c]), name


def test_the_table_lists_what_the_picture_shows(read):
    page = BeautifulSoup(read("library_map"), "html.parser", parse_only=SoupStrainer("article"))
    rows = [[cell.get_text() for cell in row.select("td")] for row in page.select("tbody tr")]
    assert [row[0] for row in rows] == [module.name for module in LIBRARY]
    for row, module in zip(rows, LIBRARY, strict=True):
        numbers = ", ".join(str(chapter.number) for chapter in module.chapters)
        users = [user.name for user in LIBRARY if module.name in user.uses]
        assert row[1:] == [numbers or "by hand", ", ".join(module.uses), ", ".join(users)]


def test_chapters_are_found_by_the_korean_names_of_their_terms(site):
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").rstrip(")"))

    def pages_with(word: str) -> set[str]:
        found = index["terms"][word]
        return {index["docnames"][n] for n in (found if isinstance(found, list) else [found])}

    assert pages_with("어텐션") >= {"glossary", "03_attention"}
    assert pages_with("마스크") >= {"glossary", "06_masking"}
    assert pages_with("임베딩") >= {"glossary", "10_embeddings"}
    for definition in entries().values():
        for word in re.findall("[가-힣]+", definition.split(")")[0]):
            assert "glossary" in pages_with(word)
