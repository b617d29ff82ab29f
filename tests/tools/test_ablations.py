"""The table of chapter 14 says what the runs of ``recipes/ablations.py`` measured."""

import json
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "recipes/ablations.json"
CHAPTER = ROOT / "book/14_translation.ipynb"
COLUMNS = ("random", "compositional", "homonyms", "senses")


@pytest.fixture(scope="module")
def results() -> dict[str, dict[str, dict[str, float]]]:
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def table() -> dict[str, list[str]]:
    """Return the rows of the chapter's table: the variant's name and its cells."""
    chapter = nbformat.read(CHAPTER, as_version=nbformat.NO_CONVERT)
    texts = [cell.source for cell in chapter.cells if "(sec-ablations)=" in cell.source]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", "\n".join(texts), re.M)
    return {name: cells.split(" | ") for name, cells in rows if "±" in cells}


def cell(runs: list[float]) -> str:
    """Return the mean and half the distance from the lowest to the highest."""
    return f"{sum(runs) / len(runs):.1f} ± {(max(runs) - min(runs)) / 2:.1f}"


def test_every_variant_was_run_from_three_seeds(results):
    for name, seeds in results.items():
        assert sorted(seeds) == ["0", "1", "2"], name
        assert len({one["random"] for one in seeds.values()}) > 1, name


def test_no_run_took_more_than_four_minutes(results):
    assert max(one["seconds"] for seeds in results.values() for one in seeds.values()) <= 240


def test_the_table_has_the_numbers_of_the_runs(results):
    expected = {
        name: [cell([one[column] for one in seeds.values()]) for column in COLUMNS]
        for name, seeds in results.items()
    }
    assert len(expected) >= 9
    assert table() == expected
