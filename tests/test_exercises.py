"""Every check accepts right answers, names the usual mistakes and waits for unfilled ones."""

import ast
import re
from pathlib import Path
from typing import Any

import nbformat
import numpy
import pytest
import torch

from transformer_lib import exercises
from transformer_lib.exercises import Exercise, same_function, same_value

BOOK = Path(__file__).parent.parent / "book"
CHAPTERS = sorted(BOOK.glob("[0-9][0-9]_*.ipynb"))
EXERCISES = list(exercises.load().values())


def names(exercise: Exercise) -> str:
    return exercise.name


def code_of(chapter: Path) -> str:
    cells = nbformat.read(chapter, as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


def solutions(chapter: Path) -> list[str]:
    """Return the code of the folded solutions of a chapter."""
    text = "\n".join(c.source for c in nbformat.read(chapter, 4).cells if c.cell_type == "markdown")
    folded = re.findall(r"<summary>Solution</summary>(.*?)</details>", text, re.S)
    return ["\n".join(re.findall(r"```python\n(.*?)```", part, re.S)) for part in folded]


def asked(chapter: Path) -> list[tuple[str, str]]:
    """Return (exercise, variable) of every check in a chapter's cells."""
    return re.findall(r'exercises\.check\("([^"]+)", (\w+)\)', code_of(chapter))


@pytest.mark.parametrize("exercise", EXERCISES, ids=names)
def test_right_answers_pass(exercise):
    assert len(exercise.right) >= 2, "two right answers, written differently, are owed"
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
    for module in re.findall(r"^#\| (?:default_exp|export) (\w+)", code, re.M):
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
    asked_names = [name for chapter in CHAPTERS for name, _ in asked(chapter)]
    assert asked_names == [exercise.name for exercise in EXERCISES]


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
