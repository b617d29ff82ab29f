"""Count what the lines of the library do: document, check, declare or compute.

``python tools/measure_code.py [module …]`` prints a table, a row for each module: its lines, how
many of them document, check arguments, are signatures and compute, the longest body of a function
and the longest docstring. Imports, fields, constants, comments and empty lines are in the first
number only. A line checks if it belongs to a call of something from ``_checks``, to a ``require_…``
function or its call, to a ``raise``, or to a branch or loop that holds nothing else.
"""

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

import export

SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


class Lines(NamedTuple):
    """How many lines a module has, and what they do."""

    total: int
    documenting: int
    checking: int
    signatures: int
    computing: int


class Function(NamedTuple):
    """A function or class: its name with those around it, and the lines of its parts."""

    name: str
    kind: type[ast.stmt]
    docstring: int
    body: int


def docstring_of(node: ast.AST) -> ast.stmt | None:
    """Return the statement that is a module's, class's or function's docstring."""
    match getattr(node, "body", None):
        case [ast.Expr(value=ast.Constant(value=str())) as first, *_]:
            return first
    return None


def length(node: ast.stmt | None) -> int:
    """Return how many lines a statement takes."""
    return (node.end_lineno or 0) - node.lineno + 1 if node else 0


def from_checks(tree: ast.AST) -> set[str]:
    """Return the names under which a module knows ``_checks`` or what is in it."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if "_checks" in [*(node.module or "").split("."), alias.name]
    }


def root_of(node: ast.expr) -> str:
    """Return the first name of a call's or attribute's dotted name."""
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def checks(node: ast.stmt, known: set[str]) -> bool:
    """Tell whether a statement does nothing but check."""
    match node:
        case ast.Raise():
            return True
        case ast.Expr(value=ast.Call(func=called)):
            last = called.attr if isinstance(called, ast.Attribute) else root_of(called)
            return root_of(called) in known or last.startswith(("require", "_require"))
        case ast.If(body=body, orelse=otherwise):
            if not otherwise and isinstance(body[-1], ast.Raise):
                return True
            return all(checks(inner, known) for inner in [*body, *otherwise])
        case ast.For(body=body) | ast.With(body=body):
            return all(checks(inner, known) for inner in body)
    return False


def classify(body: list[ast.stmt], known: set[str], inside: str) -> Iterator[tuple[range, str]]:
    """Yield ranges of lines and what they do, the outer before the inner.

    ``inside`` is what a statement does that is nothing special: nothing in modules and classes.
    """
    for node in body:
        first = node.lineno
        whole = range(first, first + length(node))
        if isinstance(node, export.DEFINITIONS):
            first = min([first, *(decorator.lineno for decorator in node.decorator_list)])
            yield range(first, node.body[0].lineno), "signatures"
            within = "" if isinstance(node, ast.ClassDef) else "computing"
            if node.name.startswith(("require", "_require")):
                within = "checking"
            if docstring := docstring_of(node):
                yield range(docstring.lineno, docstring.lineno + length(docstring)), "documenting"
            yield from classify(node.body[bool(docstring) :], known, within)
        elif inside == "computing" and checks(node, known):
            yield whole, "checking"
        else:
            yield whole, inside
            for part in ("body", "orelse", "finalbody", "handlers", "cases"):
                for inner in getattr(node, part, []):
                    nested = [inner] if isinstance(inner, ast.stmt) else inner.body
                    yield from classify(nested, known, inside)


def count_lines(code: str) -> Lines:
    """Count what the lines of a module do."""
    tree = ast.parse(code)
    does: dict[int, str] = {}
    if docstring := docstring_of(tree):
        does |= dict.fromkeys(range(1, 1 + length(docstring)), "documenting")
    for lines, what in classify(tree.body[bool(docstring) :], from_checks(tree), ""):
        does |= dict.fromkeys(lines, what)
    code_lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(code).readline)
        if token.type not in SILENT
        for line in range(token.start[0], token.end[0] + 1)
    }
    counted = Counter(what for line, what in does.items() if line in code_lines)
    return Lines(len(code.splitlines()), *(counted[what] for what in Lines._fields[1:]))


def functions(body: Iterable[ast.stmt], prefix: str = "") -> Iterator[Function]:
    """Yield functions and classes, those inside others too; a body has no docstring."""
    for node in body:
        if isinstance(node, export.DEFINITIONS):
            name, docstring = prefix + node.name, docstring_of(node)
            start = docstring.end_lineno or 0 if docstring else node.body[0].lineno - 1
            yield Function(name, type(node), length(docstring), (node.end_lineno or 0) - start)
            yield from functions(node.body, f"{name}.")
        else:
            for part in ("body", "orelse"):
                yield from functions(getattr(node, part, []), prefix)


def modules(package: Path) -> dict[str, Path]:
    """Return the package's modules by their dotted names, without what only names the parts."""
    paths = {path.relative_to(package): path for path in sorted(package.rglob("*.py"))}
    return {
        ".".join(within.with_suffix("").parts): path
        for within, path in paths.items()
        if within.stem not in ("__init__", "__main__")
    }


def callers(package: Path) -> dict[str, set[str]]:
    """Return for every module the others that import it; an ``__init__`` that passes on is none."""
    known = modules(package)
    found: dict[str, set[str]] = {name: set() for name in known}
    for name, path in known.items():
        within = ".".join([export.PACKAGE, *name.split(".")[:-1]])
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for source, taken in export.package_imports(tree, within):
            inner = ".".join(filter(None, (source, taken)))
            used = inner if inner in known else source
            if used in known and used != name:
                found[used].add(name)
    return found


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    package = export.ROOT / export.PACKAGE
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", help="by default all", metavar="module")
    named = parser.parse_args(arguments).modules
    table = [["module", *Lines._fields, "longest body", "docstring"]]
    for name, path in modules(package).items():
        if named and name not in named:
            continue
        code = path.read_text(encoding="utf-8")
        lines = count_lines(code)
        found = list(functions(ast.parse(code).body))
        shares = [f"{count} {count / max(lines.total, 1):4.0%}" for count in lines[1:]]
        body = max((one.body for one in found if one.kind is not ast.ClassDef), default=0)
        docstring = max((one.docstring for one in found), default=0)
        table.append([name, str(lines.total), *shares, str(body), str(docstring)])
    width = max(len(row[0]) for row in table)
    for first, *others in table:
        print(f"{first:{width}}", *(f"{cell:>12}" for cell in others))


if __name__ == "__main__":
    main()
