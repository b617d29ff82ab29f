"""Every check accepts right answers, names the usual mistakes and waits for unfilled ones."""

import ast
import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import numpy
import pytest
import torch
import yaml

from transformer_lib.course import exercises
from transformer_lib.course.exercises import Exercise, same_function, same_value

BOOK = Path(__file__).parents[2] / "book"
CHAPTERS = sorted(BOOK.glob("[0-9][0-9]_*.ipynb"))
EXERCISES = list(exercises.load().values())


def names(exercise: Exercise) -> str:
    return exercise.name


def declared(pattern: str) -> list[str]:
    """Return the names of the exercises in some of the files, in order."""
    files = sorted(path.stem for path in Path(exercises.__path__[0]).glob(pattern))
    modules = [
        importlib.import_module(f"transformer_lib.course.exercises.{name}") for name in files
    ]
    return [exercise.name for module in modules for exercise in module.EXERCISES]


def code_of(chapter: Path, tag: str = "") -> str:
    """Return the code of a chapter's cells, of all or of those with a tag."""
    cells = [cell for cell in nbformat.read(chapter, 4).cells if cell.cell_type == "code"]
    return "\n".join(c.source for c in cells if not tag or tag in c.metadata.get("tags", []))


def solutions(chapter: Path, summary: str = "Solution") -> list[str]:
    """Return the code of the folded solutions of a chapter."""
    text = "\n".join(c.source for c in nbformat.read(chapter, 4).cells if c.cell_type == "markdown")
    folded = re.findall(rf"<summary>{summary}</summary>(.*?)</details>", text, re.S)
    return ["\n".join(re.findall(r"```python\n(.*?)```", part, re.S)) for part in folded]


def asked(chapter: Path, tag: str = "exercise") -> list[tuple[str, str]]:
    """Return (exercise, answer) of every check in a chapter's cells."""
    return re.findall(r'exercises\.check\("([^"]+)", (.+)\)$', code_of(chapter, tag), re.M)


@pytest.mark.parametrize("exercise", EXERCISES, ids=names)
def test_right_answers_pass(exercise):
    different = {id(answer) for answer in exercise.right}
    assert len(different) == len(exercise.right) >= 2, "two, written differently, are owed"
    for answer in exercise.right:
        assert exercise.verdict(answer) == "right."


@pytest.mark.parametrize("exercise", EXERCISES, ids=names)
def test_usual_mistakes_are_named(exercise):
    assert exercise.mistakes
    for message, wrong in exercise.mistakes.items():
        assert exercise.verdict(wrong) == message


@pytest.mark.parametrize("exercise", EXERCISES, ids=names)
def test_unfilled_answers_are_not_judged(exercise):
    for stub in (None, ...):
        assert exercise.verdict(stub) == "not yet."


def names_in(chapter: Path) -> dict[str, Any]:
    """Return what a reader has at the exercises: the chapter's imports and the modules it feeds."""
    code = code_of(chapter)
    tree = ast.parse(code)
    namespace: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(ast.unparse(node), namespace)
    for module in re.findall(r"^#\| (?:default_exp|export) ([\w.]+)", code, re.M):
        exec(f"from transformer_lib.{module} import *", namespace)
    return namespace


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_solutions_of_the_book_are_right(chapter):
    answers = asked(chapter)
    texts = solutions(chapter)
    assert len(answers) == len(texts) >= 3
    for (name, variable), text in zip(answers, texts, strict=True):
        namespace = names_in(chapter)
        exec(text, namespace)
        assert exercises.load()[name].verdict(namespace[variable]) == "right.", name


def test_every_exercise_is_asked_in_the_book_once():
    assert [name for chapter in CHAPTERS for name, _ in asked(chapter)] == declared("ch*.py")
    capstones = [name for chapter in CHAPTERS for name, _ in asked(chapter, "capstone")]
    assert capstones == declared("capstone*.py")
    assert len(EXERCISES) == len(declared("c*.py"))


def ends_of_parts() -> list[str]:
    contents = yaml.safe_load((BOOK.parent / "_toc.yml").read_text(encoding="utf-8"))
    parts = [part for part in contents["parts"] if part.get("numbered")]
    return [part["chapters"][-1]["file"] for part in parts]


@pytest.mark.parametrize("chapter", ends_of_parts())
def test_a_part_ends_with_a_capstone_and_its_solution_is_right(chapter):
    path = BOOK / f"{chapter}.ipynb"
    stages = asked(path, "capstone")
    (whole,) = solutions(path, "The whole solution")
    namespace: dict[str, Any] = {}
    exec(whole, namespace)  # on its own: nothing of the chapter is needed
    assert 2 <= len(stages) <= 4
    for name, answer in stages:
        assert exercises.load()[name].verdict(eval(answer, namespace)) == "right.", name


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_unfilled_cells_wait(path):
    """The stub of the book is told from an answer, in each cell that asks for one."""
    for cell in nbformat.read(path, 4).cells:
        if {"exercise", "capstone"} & set(cell.metadata.get("tags", [])):
            (name,) = re.findall(r'exercises\.check\("([^"]+)"', cell.source)
            assert [output.text for output in cell.outputs] == [f"{name}: not yet.\n"]


# -- The same answer in another form ---------------------------------------------------------


def converted(result: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    if isinstance(result, torch.Tensor):
        return change(result.detach())
    if type(result) in (tuple, list):
        return type(result)(converted(part, change) for part in result)
    return result


FORMS: dict[str, Callable[[Any], Any]] = {
    "in float64": lambda r: converted(r, lambda t: t.double() if t.is_floating_point() else t),
    "as arrays of NumPy": lambda r: converted(r, lambda t: t.numpy()),
    "as lists": lambda r: converted(r, lambda t: t.tolist()),
    "as a list for a tuple": lambda r: list(r) if type(r) is tuple else r,
    "as a tensor for a number": lambda r: torch.tensor(r) if type(r) in (int, float) else r,
    "with a gradient": lambda r: converted(
        r, lambda t: t.clone().requires_grad_() if t.is_floating_point() else t
    ),
}
FUNCTIONS = [one for one in EXERCISES if type(one.judge) is same_function]


@pytest.mark.parametrize("exercise", FUNCTIONS, ids=names)
def test_the_form_of_a_right_answer_does_not_matter(exercise):
    for form, change in FORMS.items():

        def answer(*arguments, change=change):
            return change(exercise.right[0](*arguments))

        assert exercise.verdict(answer) == "right.", form


def test_dictionaries_and_lists_in_the_cases_are_copied(double):
    shared = {"weight": torch.ones(2), "parts": [torch.zeros(1)]}
    judge = same_function(lambda state: state["weight"] + state["parts"][0], (shared,))

    def spoils(state):
        state["parts"][0] += 1
        return state.pop("weight").mul_(0) + 1 + state["parts"][0] - 1

    assert judge(spoils) is None
    assert shared["weight"].tolist() == [1, 1]
    assert "a dictionary of 2" in judge(lambda state: 3)


@pytest.fixture
def double():
    return Exercise(
        name="double",
        judge=same_function(lambda x: 2 * x, (torch.tensor([1.0, 3.0]),), (torch.tensor([-2.0]),)),
        right=(lambda x: x + x, lambda x: x * 2),
        mistakes={"this squares": lambda x: x * x},
    )


def test_a_function_that_is_not_filled_in_yet(double):
    def raises(x):
        raise NotImplementedError

    assert double.verdict(lambda x: None) == "not yet."
    assert double.verdict(lambda x: ...) == "not yet."
    assert double.verdict(raises) == "not yet."


def test_unknown_mistakes_show_the_first_case(double):
    verdict = double.verdict(lambda x: x + 1)
    assert verdict == "on ([1.0, 3.0]) your function gives [2.0, 4.0], expected [2.0, 6.0]"


def test_several_arguments_have_the_names_of_the_answer():
    judge = same_function(lambda a, b: a - b, (3, 1))
    assert judge(lambda x, y: x + y) == "on (x = 3, y = 1) your function gives 4, expected 2"
    assert judge(lambda *both: 0) == "on (3, 1) your function gives 0, expected 2"


def test_large_tensors_of_one_shape_are_told_by_their_first_difference():
    def right(n):
        return torch.arange(n * n).reshape(n, n) % 5 == 0

    def wrong(n):
        return right(n).index_put((torch.tensor(2), torch.tensor(3)), torch.tensor(True))

    shape = "on (4) your function gives a tensor of shape (4, 4)"
    end = "(counted from 0) it has True, expected False"
    assert same_function(right, (4,), axes=("query", "key"))(wrong) == (
        f"{shape}; at query 2, key 3 {end}"
    )
    assert same_function(right, (4,))(wrong) == f"{shape}; at [2, 3] {end}"
    assert same_function(right, (4,))(lambda n: right(n)[0]).endswith(
        "gives [True, False, False, False], expected a tensor of shape (4, 4)"
    )


def test_numbers_are_no_booleans():
    judge = same_function(lambda n: torch.arange(n) > 1, (3,), (20,))
    assert judge(lambda n: [i > 1 for i in range(n)]) is None
    assert judge(lambda n: (torch.arange(n) > 1).int()).endswith(
        "gives [0, 0, 1], expected [False, False, True]"
    )
    assert same_function(lambda n: torch.arange(n) > 1, (20,))(
        lambda n: (torch.arange(n) > 1).float()
    ).endswith("it has 0.0, expected False")


def test_an_infinity_on_the_way_counts_only_where_it_is_asked_for():
    def by_way_of_infinity(x):
        return torch.where(x > 0, x, torch.inf).nan_to_num(posinf=0.0)

    case = (torch.tensor([1.0, -1.0]),)
    assert same_function(torch.relu, case)(by_way_of_infinity) is None
    judge = same_function(torch.relu, case, finite=True)
    assert judge(by_way_of_infinity).endswith("your function meets an infinity or NaN on the way")
    assert judge(lambda x: torch.empty_like(x).copy_(x.clamp(min=0))) is None


def test_an_answer_that_raises_or_is_no_function(double):
    assert "raised ZeroDivisionError" in double.verdict(lambda x: 1 / 0)
    assert double.verdict(7) == "a function is asked for, got int"


def test_an_answer_cannot_spoil_the_cases(double):
    assert double.verdict(lambda x: x.mul_(2)) == "right."
    assert double.verdict(lambda x: 2 * x) == "right."


def test_a_result_of_another_shape_is_wrong(double):
    assert "expected" in double.verdict(lambda x: (2 * x)[None])


def test_values():
    half = Exercise("half", same_value(0.5), (0.5, 1 / 2), {"upside down": 2})
    assert half.verdict(torch.tensor(0.5)) == "right."
    assert half.verdict(2.0) == "upside down"
    assert half.verdict(0.4) == "0.4 is not the answer"
    assert half.verdict(numpy.array(0.5)) == "right."
    assert half.verdict(numpy.array([0.5, 1.0])) == "array([0.5, 1. ]) is not the answer"
    assert half.verdict("half") == "'half' is not the answer"


def test_rows_of_weights_may_be_lists_or_arrays():
    rows = [[0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5]]
    exercise = exercises.load()["same-result-twice"]
    assert exercise.verdict(rows) == "right."
    assert exercise.verdict(numpy.array(rows)) == "right."
    assert exercise.verdict(rows[0]).endswith("(2, 4) is asked for, got (4,)")
    assert exercise.verdict("no numbers").endswith("(2, 4) is asked for, got str")


def test_check_prints_one_line(capsys):
    exercises.check(EXERCISES[0].name, None)
    assert capsys.readouterr().out == f"{EXERCISES[0].name}: not yet.\n"


def test_check_names_an_unknown_exercise():
    with pytest.raises(KeyError, match="no exercise is called 'nonsense'"):
        exercises.check("nonsense", 1)


def refuses(*_: Any, **__: Any) -> None:
    raise ValueError("no")


@pytest.mark.parametrize(
    "answer",
    [
        3,
        "x",
        [],
        float("nan"),
        dict,
        refuses,
        lambda *_, **__: "x",
        lambda *_, **__: 3,
        lambda *_, **__: torch.zeros(2, 3),
        lambda *_, **__: (),
    ],
)
@pytest.mark.parametrize("exercise", EXERCISES, ids=names)
def test_no_answer_breaks_a_check(exercise, answer):
    assert exercise.verdict(answer) not in ("right.", "not yet.", "")


@pytest.mark.parametrize("unfilled", [None, ...])
def test_a_model_that_returns_nothing_is_not_filled_in(unfilled):
    trained = exercises.load()["language-model-that-adds"]
    assert trained.verdict(lambda *_, **__: unfilled) == "not yet."
    assert trained.verdict(lambda *_: torch.zeros(3)).startswith("logits of shape")


def test_a_broken_judge_says_what_it_met():
    def judge(answer: Any) -> str | None:
        return answer["nothing"]

    verdict = Exercise("x", judge, ()).verdict(3)
    assert verdict.startswith("the check could not use your answer: TypeError")
