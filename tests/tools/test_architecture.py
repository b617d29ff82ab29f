"""What is said of the repository is so: its tree, the commands and the paths that are named."""

import ast
import re
from pathlib import Path

import pytest

from tools import export

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "transformer_lib"
PAGES = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md")
}
TREE = re.search(r"^```\n(.+?)^```$", PAGES["ARCHITECTURE.md"], re.M | re.S)[1]
RANGE = "weighted_sum.py … translation.py"


def rooms() -> list[str]:
    """Return the paths in the tree, without the one line for all modules of chapters."""
    found, above = [], ""
    for line in TREE.replace(f"  {RANGE}\n", "").splitlines():
        names = re.match(r"(  )?((?:[\w.]+/?(?: |$))+)", line)
        if names:
            inside, listed = names[1], names[2].split()
            above = above if inside else listed[0]
            found += [f"{above if inside else ''}{name}" for name in listed]
    return found


def test_every_room_of_the_tree_is_there():
    assert {"book/", "transformer_lib/files.py", "tests/library/", "tools/"} <= set(rooms())
    assert [room for room in rooms() if not (ROOT / room).exists()] == []


def test_every_part_of_the_library_has_its_line():
    chapters = [name for name in export.read_book(ROOT, [])[0] if "." not in name]
    first, last = RANGE.replace(".py", "").split(" … ")
    assert (chapters[0], last in chapters) == (first, True)
    parts = {path.stem: path for path in PACKAGE.iterdir() if not path.name.startswith("__pyc")}
    named = {Path(room).stem for room in rooms() if room.startswith("transformer_lib/")}
    assert parts.keys() - named - set(chapters) - {"py", "py.typed"} == set()


@pytest.mark.parametrize("page", PAGES)
def test_what_one_is_told_to_type_is_there(page):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.M))
    code = re.findall(r"`([^`\n]+)`|^((?:make|\.venv/bin/).+)$", PAGES[page], re.M)
    for words in ((one or other).partition("#")[0].split() for one, other in code):
        if words[:1] == ["make"]:
            names = {word for word in words[1:] if re.fullmatch(r"[a-z-]+", word)}
            assert names <= targets
        for word in words:
            path, *test = word.split("::")
            if re.match(r"(recipes|tests|tools|transformer_lib)/[\w/.]+$", path):
                assert (ROOT / path).exists(), word
                tree = ast.parse((ROOT / path).read_text(encoding="utf-8")) if test else None
                assert not test or test[0] in export.definitions(tree), word
