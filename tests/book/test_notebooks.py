"""The chapters, as stored, are whole: valid, run in order, clean, and in the shape of a chapter.

Every check is a function that yields what is wrong with a notebook; the second half of this file
shows each of them a bad one.
"""

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import execute

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted((ROOT / "book").glob("[0-9][0-9]_*.ipynb"))
TRAINS = frozenset({"13_decoding"})  # they may ignore more than two outputs

TAGS = re.compile(
    r"claim-[ABC]\d+|exercise|capstone|quiz|raises-exception|nbval-ignore-output|nbval-skip"
)
IGNORES = {"nbval-ignore-output", "nbval-skip"}
ROLES = {"eq", "numref", "ref", "doc", "term", "cite:p", "cite:t", "func", "mod"}
DIRECTIVES = {"note", "warning", "admonition"}
LABEL = re.compile(r"(sec|eq|fig|tab)(-[a-z0-9]+)+")
SECTIONS = [
    "What goes wrong",
    "Held against PyTorch",
    "Summary",
    "What do you remember?",
    "Exercises",
    "Sources",
]
FOLDED = re.compile(
    r"<details><summary>(?:[^<\n]|</?(?:code|em)>)+</summary>\n\n(?:(?!<details).)+?\n\n</details>",
    re.S,
)
NOISE = {
    "an address": re.compile(r"0x[0-9a-fA-F]{6,}"),
    "a path": re.compile(r"(?<![\w<.:/])~?/(?:[\w.@+-]+/)+[\w.@+-]*|\b[A-Z]:\\\w"),
    "a time": re.compile(r"\b\d{4}-\d\d-\d\d(?!\d)|\b\d\d?:\d\d:\d\d\b"),
}


def tags(cell: NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", []))


def markdown(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "markdown"]


def prose(cell: NotebookNode) -> str:
    """Return a markdown cell's text without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", cell.source, flags=re.M | re.S)


def headings(cell: NotebookNode) -> list[tuple[int, str]]:
    found = re.findall(r"^(#+) +(.+?) *$", prose(cell), re.M)
    return [(len(marks), text) for marks, text in found]


def asserts(cell: NotebookNode) -> bool:
    code = "\n".join(line for line in cell.source.splitlines() if not line.startswith(("%", "!")))
    return any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(code)))


def texts(cell: NotebookNode) -> Iterator[str]:
    """Yield what a cell's outputs say in words."""
    for output in cell.outputs:
        yield output.get("text", "")
        yield "\n".join([output.get("evalue", ""), *output.get("traceback", [])])
        for kind, data in output.get("data", {}).items():
            if kind.startswith("text/") or kind == "image/svg+xml":
                yield data


def validity(notebook: NotebookNode, name: str) -> Iterator[str]:
    """Valid nbformat 4.5 with unique ids, for the kernel every Jupyter has."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            nbformat.validate(notebook)
        except (nbformat.ValidationError, Warning) as error:
            yield f"is not valid: {error}"
    if (notebook.nbformat, notebook.nbformat_minor) != (4, 5):
        yield f"has format {notebook.nbformat}.{notebook.nbformat_minor}, not 4.5"
    if notebook.metadata.get("kernelspec", {}).get("name") != "python3":
        yield "has another kernel than python3"
    if notebook.metadata.get("language_info", {}).get("name") != "python":
        yield "has no language_info for python"


def execution(notebook: NotebookNode, name: str) -> Iterator[str]:
    """Every code cell has code and was run, in order, in a fresh kernel."""
    for number, (place, cell) in enumerate(execute.places(notebook), 1):
        if not cell.source.strip():
            yield f"{place}: is empty"
        counts = [
            cell.execution_count,
            *(o.execution_count for o in cell.outputs if "execution_count" in o),
        ]
        if set(counts) != {number}:
            yield f"{place}: was run as number {counts[0]}, not in order in a fresh kernel"


def metadata(notebook: NotebookNode, name: str) -> Iterator[str]:
    """Cells carry the tags and settings that mean something, and nothing else."""
    for cell in notebook.cells:
        if unknown := set(cell.metadata) - execute.CELL_METADATA:
            yield f"{cell.id}: has the metadata {', '.join(sorted(unknown))}"
        for tag in sorted(tags(cell)):
            if not TAGS.fullmatch(tag):
                yield f"{cell.id}: has the unknown tag {tag}"


def outputs(notebook: NotebookNode, name: str) -> Iterator[str]:
    """No warnings, no matplotlib reprs; nothing that differs from machine to machine."""
    yield from execute.problems(notebook)
    for place, cell in execute.places(notebook):
        if tags(cell) & IGNORES:
            continue
        for text in texts(cell):
            for what, pattern in NOISE.items():
                if match := pattern.search(text):
                    yield f"{place}: has {what} in its output: {match[0]}"


def ignored_outputs(notebook: NotebookNode, name: str) -> Iterator[str]:
    """An output is ignored for a stated reason, beside an assertion, and at most twice."""
    ignoring = [(place, cell) for place, cell in execute.places(notebook) if tags(cell) & IGNORES]
    for place, cell in ignoring:
        if not str(cell.metadata.get("ignore_reason", "")).strip():
            yield f"{place}: ignores its output without an ignore_reason"
        if not asserts(cell):
            yield f"{place}: ignores its output and asserts nothing"
    if len(ignoring) > 2 and name not in TRAINS:
        yield f"ignores {len(ignoring)} outputs, two are allowed in a chapter that does not train"
    for place, cell in execute.places(notebook):
        if re.search(r"^\s*#\s*(NBVAL|PYTEST_VALIDATE)_", cell.source, re.M):
            yield f"{place}: has a comment to nbval, use a tag"


def figures(notebook: NotebookNode, name: str) -> Iterator[str]:
    """A picture is alone in its cell's output, and has an alt text, a caption and a label."""
    for place, cell in execute.places(notebook):
        kinds = [kind for output in cell.outputs for kind in output.get("data", {})]
        pictures = sum(kind.startswith("image/") for kind in kinds)
        settings = cell.metadata.get("mystnb", {})
        figure, alt = settings.get("figure", {}), settings.get("image", {}).get("alt", "").strip()
        if pictures > 1:
            yield f"{place}: shows {pictures} pictures"
        if settings and not pictures:
            yield f"{place}: is described as a picture and shows none"
        if pictures and (not alt or alt == figure.get("caption")):
            yield f"{place}: the picture has no alt text of its own"
        if pictures and not figure.get("caption", "").strip():
            yield f"{place}: the picture has no caption"
        if pictures and not figure.get("name", "").startswith("fig-"):
            yield f"{place}: the picture has no name fig-…"


def labels(notebook: NotebookNode) -> list[str]:
    """Return the labels a notebook defines: of sections, equations and figures."""
    text = "\n".join(map(prose, markdown(notebook)))
    names = [
        cell.metadata.get("mystnb", {}).get("figure", {}).get("name") for cell in notebook.cells
    ]
    return [
        *re.findall(r"^\((.+)\)=\s*$", text, re.M),
        *re.findall(r"\$\$ *\((.+?)\)\s*$", text, re.M),
        *filter(None, names),
    ]


def markup(notebook: NotebookNode, name: str) -> Iterator[str]:
    """Only the markup that the book, Jupyter and the published notebooks all understand."""
    for cell in markdown(notebook):
        text = prose(cell)
        for role in re.findall(r"\{([\w:.+-]+)\}`", text):
            if role not in ROLES:
                yield f"{cell.id}: has the role {role}"
        for fence, directive in re.findall(r"^ *(:::+|```+|~~~+) *\{(.*?)\}", cell.source, re.M):
            if fence[0] != ":" or directive not in DIRECTIVES:
                yield f"{cell.id}: has the directive {fence}{{{directive}}}"
        if len(re.findall(r"^ *:::", text, re.M)) % 2:
            yield f"{cell.id}: has a ::: that is not closed"
        if re.search(r"^(?:%|\+\+\+)", text, re.M):
            yield f"{cell.id}: has a comment or break of MyST"
        for label in re.findall(r"^(\(.+\)=)\s*\n(?!#)", text, re.M):
            yield f"{cell.id}: {label} stands before no heading"
        yield from (f"{cell.id}: {problem}" for problem in equations(text))
    for label in labels(notebook):
        if not LABEL.fullmatch(label):
            yield f"the label {label} is not like sec-some-name, with sec, eq, fig or tab"


def equations(text: str) -> Iterator[str]:
    """Displayed equations have blank lines and $$ around them, others a $ at both ends."""
    lines = ["", *text.split("\n"), ""]
    inside = False
    for before, line, after in zip(lines, lines[1:], lines[2:], strict=False):
        marks = line.count("$$")
        opens = marks and not inside
        inside ^= marks % 2
        if marks and not re.match(r" *\$\$", line):
            yield f"has $$ within a line: {line}"
        if opens and before.strip():
            yield f"has no blank line before {line}"
        if marks and not inside and after.strip():
            yield f"has no blank line after {line}"
    if inside:
        yield "has a $$ that is not closed"
    rest = re.sub(r"\$\$.*?\$\$", "", text, flags=re.S)
    if re.search(r"\\begin\{", rest):
        yield "has \\begin{ outside of $$"
    for paragraph in re.split(r"\n\s*\n", re.sub(r"(`+).*?\1", "", rest, flags=re.S)):
        if len(re.findall(r"(?<!\\)\$", paragraph)) % 2:
            yield f"has a $ that is not closed: {paragraph.strip()[:60]}"


def folds(notebook: NotebookNode, name: str) -> Iterator[str]:
    """What is folded has a summary, blank lines inside, and an end in the same cell."""
    for cell in markdown(notebook):
        rest = FOLDED.sub("", cell.source)
        if re.search(r"</?(?:details|summary)", rest):
            yield f"{cell.id}: has <details> that are not like the others, or not closed"


def shape(notebook: NotebookNode, name: str) -> Iterator[str]:
    """One title, on top; headings that skip no level; the sections every chapter ends with."""
    found = [heading for cell in markdown(notebook) for heading in headings(cell)]
    if [level for level, _ in found].count(1) != 1 or not headings(notebook.cells[0]):
        yield "has not one title, in the first cell"
    for (above, _), (level, text) in pairwise(found):
        if level > above + 1:
            yield f"{'#' * level} {text}: skips a level"
    sections = [text for level, text in found if level == 2]
    if sections[-2:-1] and sections[-2].startswith("Capstone: "):  # at the end of a part
        del sections[-2]
    if sections[-len(SECTIONS) :] != SECTIONS:
        yield f"does not end with the sections {', '.join(SECTIONS)}"


def exercises(notebook: NotebookNode, name: str) -> Iterator[str]:
    """Three or more, numbered; each with difficulty, minutes, hint, cell to fill in, solution."""
    cells = notebook.cells
    asked = [i for i, cell in enumerate(cells) if "### Exercise" in cell.source]
    if len(asked) < 3:
        yield f"has {len(asked)} exercises, three are owed"
    for number, i in enumerate(asked, 1):
        title = rf"^### Exercise {int(name[:2])}\.{number}: \S"
        question, task, solution = (*cells[i : i + 3], *[new_markdown_cell()] * 2)[:3]
        if not re.search(title, question.source, re.M):
            yield f"{question.id}: is not titled `### Exercise {int(name[:2])}.{number}: …`"
        if not re.search(r"^\*Difficulty [●]+[○]*, \d+ minutes\.\*$", question.source, re.M):
            yield f"{question.id}: has no line like *Difficulty ●●○, 10 minutes.*"
        if "<details><summary>Hint</summary>" not in question.source:
            yield f"{question.id}: has no hint"
        if "exercise" not in tags(task) or "exercises.check(" not in task.source:
            yield f"{question.id}: is not followed by a cell to fill in and check"
        if not re.match(
            r"<details><summary>Solution</summary>.*^```python$", solution.source, re.M | re.S
        ):
            yield f"{question.id}: has no solution with Python code after its cell"
    if sum("exercise" in tags(cell) for cell in cells) != len(asked):
        yield "has cells tagged exercise that belong to none"


CHECKS = [
    validity,
    execution,
    metadata,
    outputs,
    ignored_outputs,
    figures,
    markup,
    folds,
    shape,
    exercises,
]


def read(path: Path) -> NotebookNode:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return nbformat.read(path, as_version=nbformat.NO_CONVERT)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_chapter(check, path):
    if problems := list(check(read(path), path.stem)):
        pytest.fail("\n".join([path.name, *problems]), pytrace=False)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_is_stored_by_the_tool(path):
    assert path.read_text(encoding="utf-8") == execute.serialise(read(path)), "make execute"


def test_labels_are_unique_over_the_book():
    count = Counter(label for path in CHAPTERS for label in labels(read(path)))
    assert not [label for label, times in count.items() if times > 1]


def test_the_notebooks_are_the_numbered_chapters():
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    parts = [part for part in contents["parts"] if part.get("numbered")]
    listed = [page["file"] for part in parts for page in part["chapters"]]
    assert listed == [path.stem for path in CHAPTERS]
    assert [int(name[:2]) for name in listed] == list(range(1, len(listed) + 1))


CODE = new_code_cell("print(1)", execution_count=1, outputs=[new_output("stream", text="1\n")])
QUESTION = """\
### Exercise 1.{}: a title

*Difficulty ●●○, 10 minutes.*

<details><summary>Hint</summary>

Think.

</details>"""
ANSWER = """\
<details><summary>Solution</summary>

```python
# a comment, no heading
answer = 1
```

</details>"""
PNG = {"image/png": "aaaa", "text/plain": "<Figure size 720x300 with 1 Axes>"}
FIGURE = {"figure": {"caption": "A line.", "name": "fig-line"}, "image": {"alt": "It rises."}}


def a_notebook(*cells: NotebookNode | str) -> NotebookNode:
    """Make a notebook of cells; strings become markdown."""
    nodes = [new_markdown_cell(cell) if isinstance(cell, str) else cell.copy() for cell in cells]
    for number, node in enumerate(nodes):
        node.id = f"id-{number}"
    kernel = {"kernelspec": execute.KERNEL, "language_info": execute.LANGUAGE}
    return nbformat.from_dict(new_notebook(cells=nodes, metadata=kernel))


def code(
    source: str = "1", *outputs: NotebookNode, count: int | None = 1, **settings
) -> NotebookNode:
    return new_code_cell(source, execution_count=count, outputs=list(outputs), metadata=settings)


def shown(data: dict[str, str]) -> NotebookNode:
    return new_output("display_data", data)


def said(text: str, name: str = "stdout") -> NotebookNode:
    return new_output("stream", name=name, text=text)


def test_a_good_chapter_passes():
    asked = []
    for n in (1, 2, 3):
        task = code(
            "exercises.check('name', 1)", said("name: not yet.\n"), count=n + 3, tags=["exercise"]
        )
        asked += [QUESTION.format(n), task, ANSWER]
    ignored = {"tags": ["nbval-ignore-output"], "ignore_reason": "it measures time"}
    chapter = a_notebook(
        "# Title\n\nA {term}`vector <vectors>`, {cite:p}`a2017`, $x$ and `$HOME`, in {eq}`eq-sum`.",
        "(sec-sums)=\n## Sums\n\n$$\n\\begin{aligned} x \\end{aligned}\n$$ (eq-sum)",
        "text\n\n$$x$$\n\ntext",
        ":::{admonition} A name\nText.\n:::\n\n### More\n\n```python\n# comment: $1\n```",
        CODE,
        code("plt.show()", shown(PNG), count=2, mystnb=FIGURE),
        code("assert run()", said("/a/b 12:00:01 0xffffffff"), count=3, **ignored),
        *(f"## {section}" for section in SECTIONS[:-2]),
        "## Exercises\n\n" + asked[0],
        *asked[1:],
        "## Capstone: A large task",
        code("exercises.check('name', None)", said("name: not yet.\n"), count=7, tags=["capstone"]),
        "## Sources",
    )
    assert not [problem for check in CHECKS for problem in check(chapter, "01_sums")]
    assert labels(chapter) == ["sec-sums", "eq-sum", "fig-line"]


def other_format(notebook: NotebookNode) -> NotebookNode:
    notebook.nbformat_minor = 4
    return notebook


def without(notebook: NotebookNode, key: str) -> NotebookNode:
    del notebook.metadata[key]
    return notebook


def same_ids(notebook: NotebookNode) -> NotebookNode:
    for cell in notebook.cells:
        cell.id = "same"
    return notebook


IGNORE = {"tags": ["nbval-ignore-output"]}
BAD = [
    (validity, same_ids(a_notebook("a", "b")), "is not valid: Non-unique cell id 'same'"),
    (validity, other_format(a_notebook("a")), "4.4, not 4.5"),
    (validity, without(a_notebook("a"), "kernelspec"), "another kernel than python3"),
    (validity, without(a_notebook("a"), "language_info"), "no language_info"),
    (execution, a_notebook(code("")), "code cell 1 (id-0): is empty"),
    (execution, a_notebook(code(" \n")), "is empty"),
    (execution, a_notebook(code(count=None)), "run as number None"),
    (execution, a_notebook(code(count=2)), "run as number 2"),
    (execution, a_notebook(CODE, code(count=3)), "code cell 2 (id-1): was run as number 3"),
    (
        execution,
        a_notebook(code("1", new_output("execute_result", {"text/plain": "1"}, execution_count=7))),
        "not in order",
    ),
    (metadata, a_notebook(code(collapsed=True)), "has the metadata collapsed"),
    (metadata, a_notebook(code(tags=["raise-exception"])), "the unknown tag raise-exception"),
    (metadata, a_notebook(code(tags=["claim-D1"])), "the unknown tag claim-D1"),
    (outputs, a_notebook(code("1", said("warning", "stderr"))), "printed to stderr"),
    (
        outputs,
        a_notebook(code("1", shown({"text/plain": "<Figure size 1x1 with 0 Axes>"}))),
        "shows",
    ),
    (outputs, a_notebook(code("1", shown({"text/plain": "Text(0, 0, 'x')"}))), "shows"),
    (outputs, a_notebook(code(tags=["raises-exception"])), "raised nothing"),
    (outputs, a_notebook(code("1", said("<object at 0x7f12ab34cd>"))), "has an address"),
    (outputs, a_notebook(code("1", shown({"text/html": "<b>0x7f12AB34CD</b>"}))), "an address"),
    (
        outputs,
        a_notebook(code("1", said("in /home/me/x.py"))),
        "has a path in its output: /home/me",
    ),
    (outputs, a_notebook(code("1", said("saved to '~/book/x.png'"))), "has a path"),
    (outputs, a_notebook(code("1", said(r"in C:\Users\me"))), "has a path"),
    (outputs, a_notebook(code("1", new_output("error", traceback=["/usr/lib/x.py"]))), "a path"),
    (outputs, a_notebook(code("1", new_output("error", evalue="no /tmp/x/y"))), "a path"),
    (outputs, a_notebook(code("1", said("at 12:30:05"))), "has a time in its output: 12:30:05"),
    (outputs, a_notebook(code("1", said("2024-05-17T12"))), "code cell 1 (id-0): has a time"),
    (ignored_outputs, a_notebook(code("assert 1", **IGNORE)), "without an ignore_reason"),
    (
        ignored_outputs,
        a_notebook(code("assert 1", ignore_reason=" ", **IGNORE)),
        "without an ignore",
    ),
    (ignored_outputs, a_notebook(code("1", ignore_reason="time", **IGNORE)), "asserts nothing"),
    (
        ignored_outputs,
        a_notebook(code("# assert 1", ignore_reason="a", **IGNORE)),
        "asserts nothing",
    ),
    (ignored_outputs, a_notebook(code("1", tags=["nbval-skip"])), "without an ignore_reason"),
    (
        ignored_outputs,
        a_notebook(*[code("assert 1", ignore_reason="time", **IGNORE)] * 3),
        "ignores 3 outputs, two are allowed",
    ),
    (ignored_outputs, a_notebook(code("#  NBVAL_IGNORE_OUTPUT\n1")), "has a comment to nbval"),
    (figures, a_notebook(code("1", shown(PNG))), "no alt text"),
    (figures, a_notebook(code("1", shown(PNG))), "no caption"),
    (figures, a_notebook(code("1", shown(PNG))), "no name fig-"),
    (figures, a_notebook(code("1", shown({"image/svg+xml": "<svg/>"}))), "no alt text"),
    (
        figures,
        a_notebook(code("1", shown(PNG), mystnb=FIGURE | {"image": {"alt": "A line."}})),
        "no alt text of its own",
    ),
    (figures, a_notebook(code("1", shown(PNG), shown(PNG), mystnb=FIGURE)), "shows 2 pictures"),
    (figures, a_notebook(code("1", mystnb=FIGURE)), "described as a picture and shows none"),
    (markup, a_notebook("see {any}`x`"), "id-0: has the role any"),
    (markup, a_notebook("see {cite:alp}`x`"), "has the role cite:alp"),
    (markup, a_notebook("```{note}\nText.\n```"), "has the directive ```{note}"),
    (markup, a_notebook(":::{dropdown} Text\nText.\n:::"), "has the directive :::{dropdown}"),
    (markup, a_notebook(":::{note}\nText."), "that is not closed"),
    (markup, a_notebook("text\n% comment"), "a comment or break"),
    (markup, a_notebook("(sec-a)=\n\ntext"), "(sec-a)= stands before no heading"),
    (markup, a_notebook("(sec:a)=\n# A"), "the label sec:a is not like"),
    (markup, a_notebook("$$\nx\n$$ (some)"), "the label some is not like"),
    (markup, a_notebook(code(mystnb={"figure": {"name": "fig_a"}})), "the label fig_a is not"),
    (markup, a_notebook("text\n$$\nx\n$$"), "no blank line before $$"),
    (markup, a_notebook("$$\nx\n$$\ntext"), "no blank line after $$"),
    (markup, a_notebook("$$\nx\n$$ (eq-a)\ntext"), "no blank line after $$ (eq-a)"),
    (markup, a_notebook("$$x$$\ntext"), "no blank line after $$x$$"),
    (markup, a_notebook("the sum $$x$$"), "has $$ within a line"),
    (markup, a_notebook("$$\nx"), "has a $$ that is not closed"),
    (markup, a_notebook("\\begin{align}x\\end{align}"), "has \\begin{ outside"),
    (markup, a_notebook("It costs $5."), "has a $ that is not closed: It costs"),
    (folds, a_notebook("<details><summary>Hint</summary>\n\nText."), "not closed"),
    (folds, a_notebook("<details><summary>Hint</summary>\nText.\n</details>"), "not like"),
    (folds, a_notebook("<details>\n\nText.\n\n</details>"), "not like the others"),
    (folds, a_notebook("Text.\n\n</details>"), "not like the others"),
    (
        folds,
        a_notebook("<details><summary>A</summary>\n\n" * 2 + "x" + "\n\n</details>" * 2),
        "not",
    ),
    (shape, a_notebook("## Title"), "has not one title"),
    (shape, a_notebook("# Title", "# Title"), "has not one title"),
    (shape, a_notebook(CODE, "# Title"), "has not one title, in the first cell"),
    (shape, a_notebook("# Title\n### Three"), "### Three: skips a level"),
    (shape, a_notebook("# Title", *(f"## {s}" for s in SECTIONS[1:])), "does not end with"),
    (shape, a_notebook("# Title", *(f"## {s}" for s in reversed(SECTIONS))), "does not end with"),
    (shape, a_notebook("# Title", *(f"## {s}" for s in SECTIONS), "## More"), "does not end with"),
    (
        shape,
        a_notebook("# Title", *(f"## {s}" for s in [*SECTIONS[:4], "Capstone: A", *SECTIONS[4:]])),
        "does not end with",
    ),
    (exercises, a_notebook("# Title"), "has 0 exercises"),
    (exercises, a_notebook(QUESTION.format(2), CODE, ANSWER), "not titled `### Exercise 1.1: …`"),
    (exercises, a_notebook("### Exercise 1.1: x"), "no line like *Difficulty"),
    (exercises, a_notebook("### Exercise 1.1: x"), "has no hint"),
    (exercises, a_notebook(QUESTION.format(1), CODE, ANSWER), "not followed by a cell to fill in"),
    (exercises, a_notebook(QUESTION.format(1)), "id-0: is not followed by a cell to fill in"),
    (exercises, a_notebook(QUESTION.format(1), CODE, "Solution"), "has no solution"),
    (exercises, a_notebook(QUESTION.format(1), CODE, ANSWER.replace("python", "")), "no solution"),
    (exercises, a_notebook(code(tags=["exercise"])), "tagged exercise that belong to none"),
]


@pytest.mark.parametrize(
    ("check", "notebook", "message"),
    BAD,
    ids=[f"{check.__name__}: {text}" for check, _, text in BAD],
)
def test_a_bad_chapter_is_refused(check, notebook, message):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert message in "\n".join(check(notebook, "01_sums"))


def test_chapters_that_train_may_ignore_more(monkeypatch):
    monkeypatch.setitem(globals(), "TRAINS", frozenset({"01_sums"}))
    three = a_notebook(*[code("assert 1", ignore_reason="time", **IGNORE)] * 3)
    assert not list(ignored_outputs(three, "01_sums"))
