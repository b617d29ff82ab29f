"""The library can be read: short functions, short modules, one line that checks.

What one call costs is counted in functions of the library that it enters; what a module's lines do
is counted by ``tools/measure_code.py``, which the last part tests.
"""

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from tools import export, measure_code
from transformer_lib.decoding import CachedDecoder, greedy
from transformer_lib.multi_head_attention import MultiHeadAttention
from transformer_lib.transformer import Transformer, TransformerConfig

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "transformer_lib"
MODULES = measure_code.modules(PACKAGE)
CHAPTERS, CELLS = export.read_book(ROOT, [])
CORE = [
    "weighted_sum",
    "inner_product",
    "attention",
    "softmax",
    "positional_encoding",
    "masking",
    "multi_head_attention",
    "feed_forward",
    "add_norm",
    "embedding",
    "layers",
    "transformer",
]
# The least share of a module's lines that compute. The aim is 0.33, 0.25 and 0.25.
COMPUTING = {"attention": 0.31, "multi_head_attention": 0.21, "layers": 0.20}
# What is longer than the rule says, and may not grow: modules, and cells by their ids.
LONG_MODULES = {
    "course.explorers": 618,
    "datasets.korean_english.grammar": 523,
}
LONG_CELLS = {
    "fb31cfe8": 100,
    "2e13d607": 89,
    "2d7ac153": 89,
    "397bc196": 90,
}
BODIES = {
    "multi_head_attention.MultiHeadAttention.forward": 15,
    "attention.scaled_dot_product_attention": 20,
}


# -- What a call enters ----------------------------------------------------------------------


def entered(call: Callable[[], object]) -> tuple[int, int]:
    """Return how many functions of the library a call enters, and how many of them check."""
    names = []

    def note(frame, event, _):
        if event == "call" and Path(frame.f_code.co_filename).is_relative_to(PACKAGE):
            within = Path(frame.f_code.co_filename).relative_to(PACKAGE).parts
            names.append((frame.f_code.co_name, within))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    checks = [name for name, within in names if within[0] == "_checks" or "require" in name]
    return len(names), len(checks)


@pytest.mark.parametrize(
    ("options", "functions", "checks"),
    [({}, 18, 4), ({"mask": torch.ones(5, 5, dtype=torch.bool)}, 24, 8)],
    ids=["plain", "with a mask"],
)
def test_a_call_of_multi_head_attention_enters_few_functions(options, functions, checks):
    attention, x = MultiHeadAttention(16, 4).eval(), torch.randn(2, 5, 16)
    all_entered, checking = entered(lambda: attention(x, x, x, **options))
    assert all_entered <= functions
    assert checking <= checks
    assert checking > 0, "the guard is at the door"


def test_a_cached_decoding_step_enters_few_functions():
    torch.manual_seed(0)
    sizes = {"source_vocabulary": 50, "target_vocabulary": 50, "d_model": 32, "d_ff": 64}
    model = Transformer(TransformerConfig(**sizes, n_heads=4)).eval()
    assert (model.config.n_encoder_layers, model.config.n_decoder_layers) == (6, 6)
    source, found = torch.randint(4, 50, (1, 7)), []

    def decode(steps: int) -> None:
        decoder = CachedDecoder(model, source)
        found.append(greedy(decoder, start=1, end=2, max_length=steps))

    few, many = (entered(lambda steps=steps: decode(steps))[0] for steps in (6, 16))
    assert [len(sentences[0]) for sentences in found] == [6, 16], "no sentence ends early"
    assert (many - few) / 10 <= 320


# -- What a reader meets ---------------------------------------------------------------------


def functions(names: Iterator[str] | list[str]) -> Iterator[tuple[str, measure_code.Function]]:
    """Yield the functions and classes of modules, with their dotted names."""
    for module in names:
        tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
        for one in measure_code.functions(tree.body):
            yield f"{module}.{one.name}", one


def test_bodies_of_exported_functions_are_short():
    found = {name: one for name, one in functions(list(CHAPTERS)) if one.kind is not ast.ClassDef}
    assert found.keys() >= BODIES.keys()
    too_long = {name: one.body for name, one in found.items() if one.body > BODIES.get(name, 30)}
    assert too_long == {}


def test_docstrings_of_what_is_exported_are_short():
    found = {name: one.docstring for name, one in functions(list(CHAPTERS)) if one.docstring > 15}
    assert found == {}


def test_exported_cells_are_short():
    sizes = {}
    for cell in CELLS:
        if cell.module:
            lines = len(cell.source.rstrip().splitlines()) - 1  # the directive
            inside = measure_code.functions(cell.tree.body)
            sizes[cell.place] = lines - sum(one.docstring for one in inside)
    assert sizes
    allowed = {place: LONG_CELLS.get(place.rpartition("(")[2].rstrip(")"), 85) for place in sizes}
    assert {place: size for place, size in sizes.items() if size > allowed[place]} == {}


def test_modules_are_neither_long_nor_split_for_nothing():
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in MODULES.items()}
    assert {n: size for n, size in lines.items() if size > LONG_MODULES.get(n, 500)} == {}
    callers = measure_code.callers(PACKAGE)
    small = {name for name, size in lines.items() if size < 40 and len(callers[name]) == 1}
    assert small == set()


def test_what_only_the_book_needs_stands_above_all_and_the_guard_below():
    for used, users in measure_code.callers(PACKAGE).items():
        for user in users:
            from_course = used.startswith("course.") and not user.startswith("course.")
            by_the_guard = user.startswith(("_checks.", "files", "hub")) and used in CHAPTERS
            assert not from_course, f"{user} imports {used}"
            assert not by_the_guard, f"{user} imports {used}"


def test_the_top_level_holds_what_one_reaches_for():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    taken = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, export.IMPORTS)
        for alias in node.names
    }
    names = {name for name in taken | set(export.definitions(tree)) if not name.startswith("_")}
    assert len(names) <= 40


# -- What the lines do -----------------------------------------------------------------------


@pytest.mark.parametrize("module", CORE)
def test_few_lines_of_the_core_check_and_many_compute(module):
    assert module in MODULES
    lines = measure_code.count_lines(MODULES[module].read_text(encoding="utf-8"))
    assert lines.checking <= 0.05 * lines.total
    assert lines.computing >= COMPUTING.get(module, 0) * lines.total


# -- How it is counted -----------------------------------------------------------------------

EXAMPLE = '''\
"""A module.

Two more lines.
"""

import torch

from transformer_lib._checks import mean as check
from transformer_lib._checks.common import require_axes

LIMIT = 3


def mean(
    x: Tensor,
    *,
    weights: Tensor | None = None,
) -> Tensor:
    """Return the mean."""
    check.mean(x, weights)
    require_axes("n", x=x)
    if weights is None:
        # A comment.

        return x.mean()
    if x.ndim > LIMIT:
        raise ValueError(
            "too many"
        )
    for axis in x.shape:
        if not axis:
            raise ValueError
    with torch.no_grad():
        check.weights(weights)
        total = (weights * x).sum()
    return total / len(x)


def _require_even(n: int) -> None:
    rest = n % 2
    if rest:
        raise ValueError(n)


class Mean:
    """A mean that remembers.

    Its sizes.
    """

    size: int = 1

    @property
    def double(self) -> int:
        def twice(size: int) -> int:
            """Return two times the size."""
            return 2 * size

        return twice(self.size)
'''


def test_what_the_lines_of_a_module_do():
    lines = measure_code.count_lines(EXAMPLE)
    assert lines == (
        len(EXAMPLE.splitlines()),
        4 + 1 + 4 + 1,  # the module, mean, Mean, twice
        2 + 4 + 3 + 1 + 3,  # guards, raise, loop, inside with, the require function
        5 + 1 + 1 + 2 + 1,  # mean, _require_even, Mean, double, twice
        2 + 2 + 1 + 2,  # if and its return, with and its sum, return, double
    )


def test_the_parts_of_functions_are_measured():
    found = measure_code.functions(ast.parse(EXAMPLE).body)
    sizes = {one.name: (one.docstring, one.body) for one in found}
    assert sizes == {
        "mean": (1, 17),
        "_require_even": (0, 3),
        "Mean": (4, 10),
        "Mean.double": (0, 5),
        "Mean.double.twice": (1, 1),
    }


def test_who_imports_a_module_is_found_in_every_form(tmp_path):
    files = {
        "__init__.py": "from transformer_lib.one import x",
        "one.py": "x = 1",
        "two.py": "import transformer_lib.one",
        "part/__init__.py": "",
        "part/three.py": "from transformer_lib import one\\nfrom transformer_lib.part import four",
        "part/four.py": "from .three import y\\nfrom transformer_lib.part.four import z",
    }
    (tmp_path / "part").mkdir()
    for name, code in files.items():
        (tmp_path / name).write_text(code.replace("\\n", "\n"))
    assert measure_code.callers(tmp_path) == {
        "one": {"two", "part.three"},
        "two": set(),
        "part.three": {"part.four"},
        "part.four": {"part.three"},
    }


def test_the_table_has_a_row_for_each_module(capsys):
    measure_code.main(["attention", "masking"])
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["module", "total", "documenting"]
    assert [row.split()[0] for row in rows] == ["attention", "masking"]
