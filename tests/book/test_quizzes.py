"""Every chapter asks five questions, and every answer says why it is right or wrong."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

BOOK = Path(__file__).parents[2] / "book"
CHAPTERS = sorted(BOOK.glob("[0-9][0-9]_*.ipynb"))
INTRODUCTION = "Open the answer that you think is right. Each says why it holds or what speaks"
ANSWER = re.compile(
    r"<details><summary>((?:[^<\n]|</?(?:code|em)>)+)</summary>\n\n"
    r"\*\*(Right|No)\.\*\* (.+?)\n\n</details>(?:\n|\Z)",
    re.S,
)


class Answer(NamedTuple):
    """What can be chosen, whether it is right, and what is said about it."""

    text: str
    right: bool
    explanation: str


class Question(NamedTuple):
    """A question with its answers; rest is what belongs to neither."""

    number: int
    text: str
    answers: list[Answer]
    rest: str


def question(source: str) -> Question:
    head, _, tail = source.partition("<details>")
    number, _, text = head.partition("** ")
    answers = [
        Answer(choice, verdict == "Right", why)
        for choice, verdict, why in ANSWER.findall("<details>" + tail)
    ]
    rest = ANSWER.sub("", "<details>" + tail).strip() if tail else ""
    digits = re.fullmatch(r"\*\*(\d)\.", number)
    return Question(int(digits[1]) if digits else 0, " ".join(text.split()), answers, rest)


def quiz(notebook: NotebookNode) -> list[Question]:
    return [question(c.source) for c in notebook.cells if "quiz" in c.metadata.get("tags", [])]


def visible(answer: Answer) -> str:
    """Return the letters of an answer that a reader sees, so that their number can be compared."""
    return re.sub(r"<[^>]+>|\$|\\[a-z]+|[{}]", "", answer.text)


def problems(notebook: NotebookNode, number: int) -> Iterator[str]:
    """Yield what is wrong with the quiz of a chapter."""
    cells = notebook.cells
    tagged = [i for i, cell in enumerate(cells) if "quiz" in cell.metadata.get("tags", [])]
    before = cells[tagged[0] - 1].source if tagged and tagged[0] else ""
    heading = f"(sec-quiz-{number})=\n## What do you remember?\n\n{INTRODUCTION}"
    if not before.startswith(heading):
        yield "the questions do not follow their heading, label and introduction"
    if tagged != list(range(tagged[0], tagged[0] + len(tagged)) if tagged else []):
        yield "something stands between the questions"
    questions = quiz(notebook)
    if [one.number for one in questions] != [1, 2, 3, 4, 5]:
        yield f"the questions are numbered {[one.number for one in questions]}, not 1 to 5"
    for one in questions:
        place = f"question {one.number}"
        if not one.text.endswith(("?", ".")) or len(one.text) < 20:
            yield f"{place}: is no question"
        if one.rest:
            yield f"{place}: has an answer that is not like the others: {one.rest[:60]}"
        if not 3 <= len(one.answers) <= 4:
            yield f"{place}: has {len(one.answers)} answers, three or four are asked for"
        if sum(answer.right for answer in one.answers) != 1:
            yield f"{place}: has {sum(answer.right for answer in one.answers)} right answers"
        for answer in one.answers:
            if len(answer.explanation) < 20:
                yield f"{place}: {answer.text!r} is not explained"
            if re.search(r"`|\*(?! )|\{[a-z:]+\}", re.sub(r"\$[^$]+\$", "", answer.text)):
                yield f"{place}: {answer.text!r} has markup that HTML does not know"
        if len({answer.text for answer in one.answers}) < len(one.answers):
            yield f"{place}: two answers are alike"
        lengths = {answer.right: 0 for answer in one.answers}
        for answer in one.answers:
            lengths[answer.right] = max(lengths[answer.right], len(visible(answer)))
        if lengths.get(True, 0) > 1.6 * max(lengths.get(False, 0), 20):
            yield f"{place}: the right answer can be told by its length"
    places = Counter(i for one in questions for i, answer in enumerate(one.answers) if answer.right)
    if places and max(places.values()) > 2:
        yield "the right answer stands in one place more than twice"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_has_its_quiz(path):
    notebook = nbformat.read(path, as_version=4)
    assert list(problems(notebook, int(path.stem[:2]))) == []


def test_no_two_questions_are_alike():
    everything = [one for path in CHAPTERS for one in quiz(nbformat.read(path, as_version=4))]
    for kind in (
        Counter(one.text for one in everything),
        Counter(frozenset(answer.text for answer in one.answers) for one in everything),
        Counter(answer.explanation for one in everything for answer in one.answers),
    ):
        assert [one for one, times in kind.items() if times > 1] == []


GOOD = """**{}.** Which of the three is the right one here?

<details><summary>The first, <code>a</code> or $b$.</summary>

**{}.** It is, or it is not, question {}.

</details>
<details><summary>The second.</summary>

**{}.** It is, or it is not, question {}.

</details>
<details><summary>The third.</summary>

**No.** It is not the right one, and nobody has said so.

</details>"""
RIGHT = ["Right", "No", "Right", "No", "No"]


def a_quiz(change=lambda sources: sources) -> NotebookNode:
    sources = []
    for n, first in enumerate(RIGHT, 1):
        second = "No" if first == "Right" else "Right"
        sources.append(GOOD.format(n, first, n, second, n))
    third = sources[4].replace("**Right.**", "**No.**").rsplit("**No.**", 1)
    sources[4] = "**Right.**".join(third)
    cells = [new_markdown_cell(source, metadata={"tags": ["quiz"]}) for source in change(sources)]
    title = f"(sec-quiz-3)=\n## What do you remember?\n\n{INTRODUCTION} against it."
    return new_notebook(cells=[new_markdown_cell(title), *cells])


def with_fifth(old: str, new: str):
    return lambda sources: [*sources[:4], sources[4].replace(old, new)]


def test_a_good_quiz_passes():
    assert list(problems(a_quiz(), 3)) == []


@pytest.mark.parametrize(
    ("notebook", "message"),
    [
        (new_notebook(), "do not follow their heading"),
        (new_notebook(), "numbered [], not 1 to 5"),
        (a_quiz(lambda sources: sources[:4]), "numbered [1, 2, 3, 4]"),
        (a_quiz(lambda sources: sources[::-1]), "numbered [5, 4, 3, 2, 1]"),
        (a_quiz(with_fifth("Which of the three is the right one here?", "And?")), "no question"),
        (a_quiz(with_fifth("**Right.**", "**No.**")), "has 0 right answers"),
        (a_quiz(with_fifth("**No.**", "**Right.**")), "has 3 right answers"),
        (a_quiz(with_fifth("**No.**", "Perhaps.")), "not like the others"),
        (a_quiz(with_fifth("</details>", "</detail>")), "not like the others"),
        (a_quiz(with_fifth("It is, or it is not, question 5.", "No.")), "is not explained"),
        (a_quiz(with_fifth("The second.", "The `second`.")), "markup that HTML does not know"),
        (a_quiz(with_fifth("The second.", "The {ref}second.")), "markup that HTML does not know"),
        (a_quiz(with_fifth("The second.", "The third.")), "two answers are alike"),
        (a_quiz(with_fifth("The third.", "The third" + 9 * ", which is long")), "by its length"),
        (a_quiz(lambda sources: [s.replace("**No.**", "**Right.**", 1) for s in sources]), "right"),
    ],
)
def test_a_bad_quiz_is_noticed(notebook, message):
    assert message in "\n".join(problems(notebook, 3))


def test_a_cell_between_questions_is_noticed():
    notebook = a_quiz()
    notebook.cells.insert(3, new_code_cell("1"))
    assert "something stands between" in "\n".join(problems(notebook, 3))


def test_the_same_place_three_times_is_noticed(monkeypatch):
    monkeypatch.setitem(globals(), "RIGHT", ["Right"] * 3 + ["No", "No"])
    assert "in one place more than twice" in "\n".join(problems(a_quiz(), 3))
