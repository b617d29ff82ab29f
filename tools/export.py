"""Write the modules of ``transformer_lib/`` from the ``#| export`` cells of the chapters.

``python tools/export.py`` writes them, and only if nothing at all is wrong; with ``--check`` it
writes nothing and fails when a module differs from its cells. A chapter that feeds the library
names its module and says what the module is for::

    #| default_exp attention
    '''Attention: averages whose weights come from comparing queries with keys.'''

and marks what belongs there with ``#| export``, or ``#| export other_module`` to add to the module
of an earlier chapter. Further down it may name another module and go on with that; ``part.module``
is a module in the package ``part``. Imports move to the top; what the same chapter imports for
another module, or puts there, need not be imported again, as in the notebook. ``__all__`` lists
functions, classes and constants.

Chapter order is import order: no cell imports what a later chapter defines, nor looks a module of
the library up by name while it runs, and no modules import each other in a circle. Names are unique
over the whole library. Beside generated modules a package may hold others, written by hand: those
whose docstring does not say that they are generated.
"""

import argparse
import ast
import builtins
import difflib
import json
import os
import re
import subprocess
import symtable
import sys
import textwrap
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "transformer_lib"
HANDWRITTEN = {
    "__init__",
    "__main__",
    "_checks",
    "checkpoints",
    "course",
    "datasets",
    "files",
    "hub",
    "interchange",
}
GENERATED = "by tools/export.py; edit the notebook"
WIDTH = 100

NAME = r"[a-z]\w*(?:\.[a-z]\w*)?"
DIRECTIVE = re.compile(rf"#\| (?:default_exp (?P<default>{NAME})|export(?: (?P<module>{NAME}))?)")
LOOKS_LIKE_ONE = re.compile(r"\s*#(?:\||\s+\|\s*(?:default_exp|export)\b)")
IMPORTS = (ast.Import, ast.ImportFrom)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
ASSIGNMENTS = (ast.Assign, ast.AnnAssign)


@dataclass(frozen=True)
class Chapter:
    """A notebook of the book and its place in the reading order."""

    number: int
    title: str
    file: str


@dataclass(frozen=True)
class Cell:
    """A code cell; ``module`` is where it goes, None if it stays in the notebook."""

    chapter: Chapter
    place: str
    source: str
    tree: ast.Module
    module: str | None = None


@dataclass
class Module:
    """A module of the library: what it is for and the cells it is made of, in book order."""

    name: str
    purposes: list[tuple[str, str]] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    borrowed: list[str] = field(default_factory=list)  # imports that its chapters make elsewhere

    @property
    def path(self) -> str:
        """The module's file, relative to the root."""
        return f"{PACKAGE}/{self.name.replace('.', '/')}.py"

    def names(self) -> Iterator[tuple[str, Cell]]:
        """Yield every top-level name with the cell that defines it."""
        for cell in self.cells:
            for name in definitions(cell.tree):
                yield name, cell


def assigned(node: ast.Assign | ast.AnnAssign) -> list[str]:
    """Return the names an assignment binds."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    parts = [part for target in targets for part in ast.walk(target)]
    return [n.id for n in parts if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def definitions(tree: ast.Module) -> Iterator[str]:
    """Yield the names a module's own statements define, in order."""
    for node in tree.body:
        if isinstance(node, DEFINITIONS):
            yield node.name
        elif isinstance(node, ASSIGNMENTS):
            yield from assigned(node)


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names that a cell imports at its top, each with an import of it alone."""
    for node in tree.body:
        if isinstance(node, IMPORTS):
            for alias in node.names:
                one = ast.Import([alias])
                if isinstance(node, ast.ImportFrom):
                    one = ast.ImportFrom(node.module, [alias], node.level)
                yield alias.asname or alias.name, ast.unparse(one)


def harmless(node: ast.stmt) -> bool:
    """Tell whether a statement may stand in a module: it defines, and does nothing else."""
    if isinstance(node, ASSIGNMENTS):
        return bool(assigned(node))  # not so for an attribute of something else
    return isinstance(node, (*IMPORTS, *DEFINITIONS, ast.If, ast.Try))


def package_imports(tree: ast.AST, package: str = "") -> Iterator[tuple[str, str | None]]:
    """Yield (module, name) of every import from the library, within functions too.

    The module is the empty string for the package itself, and dotted within a package of it; the
    name is None for ``import x.y``.
    """
    for node in ast.walk(tree):
        found: list[tuple[str, str | None]]
        if isinstance(node, ast.Import):
            found = [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            if node.level and not package:
                yield source, None
                continue
            found = [(resolve_name(source, package), alias.name) for alias in node.names]
        else:
            continue
        for source, name in found:
            top, _, rest = source.partition(".")
            if top == PACKAGE:
                yield rest, name


def leads_to(source: str, name: str | None, known: Container[str]) -> tuple[str, str | None]:
    """Return the module an import leads to, and the name it takes from there, None if it is all.

    ``known`` are the modules in packages: ``from transformer_lib.part import module`` leads there.
    What is written by hand as a whole is one module, with all that is in it.
    """
    inner = ".".join(filter(None, (source, name)))
    top = inner.partition(".")[0]
    if top in HANDWRITTEN - {"__init__", "__main__"}:
        return top, None if top == inner else name
    return (inner, None) if inner in known else (source, name)


def looked_up(tree: ast.AST) -> Iterator[str]:
    """Yield calls that import from the library by a name that is made while the code runs."""
    ways = {"import_module", "__import__"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            ways |= {a.asname for a in node.names if a.asname and a.name == "import_module"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", None))
            parts = [part for argument in node.args for part in ast.walk(argument)]
            texts = [part.value for part in parts if isinstance(part, ast.Constant)]
            ours = [text for text in texts if str(text).startswith((PACKAGE, "."))]
            if called in ways and (ours or not texts):
                yield ast.unparse(node)


def library_files(package: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield (module, file, package) of the library's files: what is by hand as a whole is one.

    A package's ``__init__`` and the whole library's are no modules.
    """
    for path in sorted(package.rglob("*.py")):
        *folders, name = path.relative_to(package).with_suffix("").parts
        top = (folders or [name])[0]
        if top in HANDWRITTEN - {"__init__", "__main__"}:
            yield top, path, ".".join([PACKAGE, *folders])
        elif name not in ("__init__", "__main__"):
            yield ".".join([*folders, name]), path, ".".join([PACKAGE, *folders])


def by_hand(path: Path) -> bool:
    """Tell whether a module in a package says what it is for, and not that it is generated."""
    text = " ".join((ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split())
    return bool(text) and GENERATED not in text


def reading_order(root: Path) -> dict[Path, int]:
    """Return the chapters' notebooks with their numbers: numbered parts of the table of contents.

    Without ``_toc.yml`` it is the order of the file names.
    """
    toc = root / "_toc.yml"
    if not toc.exists():
        return {path: n for n, path in enumerate(sorted((root / "book").glob("*.ipynb")), 1)}
    contents = yaml.safe_load(toc.read_text(encoding="utf-8"))
    parts = contents.get("parts", [contents | {"numbered": True}])
    pages = [page["file"] for part in parts if part.get("numbered") for page in part["chapters"]]
    paths = {root / "book" / f"{page}.ipynb": n for n, page in enumerate(pages, 1)}
    return {path: n for path, n in paths.items() if path.exists()}


def read_cells(path: Path) -> list[tuple[str, str, str]]:
    """Return (type, id, source) of a notebook's cells."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [(cell["cell_type"], cell.get("id", "?"), "".join(cell["source"])) for cell in cells]


def read_chapter(path: Path, file: str, number: int) -> tuple[Chapter, list[tuple[str, str]]]:
    """Return a chapter and (place, source) of its code cells."""
    cells = read_cells(path)
    prose = "\n".join(source for kind, _, source in cells if kind == "markdown")
    heading = re.search(r"^# +(.+?) *$", prose, re.M)
    title = re.sub("[*`]", "", heading[1]) if heading else ""
    code = [(cell_id, source) for kind, cell_id, source in cells if kind == "code"]
    places = [
        (f"{file}, code cell {count} ({cell_id})", source)
        for count, (cell_id, source) in enumerate(code, 1)
    ]
    return Chapter(number, title, file), places


def read_directive(source: str) -> tuple[re.Match[str] | None, list[str]]:
    """Return the directive in a cell's first line, if any, and what is wrong with directives."""
    first, *others = source.split("\n")
    directive = DIRECTIVE.fullmatch(first.rstrip())
    problems = [
        f"directive {line!r} is not in the first line"
        for line in others
        if LOOKS_LIKE_ONE.match(line)
    ]
    if not directive and LOOKS_LIKE_ONE.match(first):
        known = "`#| default_exp MODULE`, `#| export` and `#| export MODULE`"
        problems.append(f"unknown directive {first!r}, known are {known}")
    return directive, problems


def parse(source: str, *, magics: bool) -> ast.Module:
    """Parse a cell, with ``magics`` without its ``%`` and ``!`` lines."""
    return ast.parse(re.sub(r"(?m)^\s*[%!].*$", "", source) if magics else source)


def read_book(root: Path, problems: list[str]) -> tuple[dict[str, Module], list[Cell]]:
    """Read all chapters; return the modules they feed and every code cell that parses."""
    modules: dict[str, Module] = {}
    everything: list[Cell] = []
    order = reading_order(root)
    for path, number in order.items():
        file = path.relative_to(root).as_posix()
        try:
            chapter, sources = read_chapter(path, file, number)
        except (KeyError, TypeError, ValueError) as error:
            problems.append(f"{file}: is no notebook: {error}")
            continue
        default = ""
        for place, source in sources:
            directive, wrong = read_directive(source)
            problems += [f"{place}: {message}" for message in wrong]
            try:
                tree = parse(source, magics=not directive)
            except SyntaxError as error:
                if directive:
                    problems.append(f"{place}: line {error.lineno}: {error.msg}")
                continue
            target = None
            if directive and directive["default"]:
                purpose = ast.get_docstring(tree)
                if purpose is None or len(tree.body) > 1:
                    problems.append(f"{place}: one docstring and nothing else belongs here")
                default = directive["default"]
                module = modules.setdefault(default, Module(default))
                module.purposes.append((place, purpose or ""))
            elif directive:
                target = directive["module"] or default
                if not target:
                    problems.append(
                        f"{place}: `#| export` without a module: no `#| default_exp` above"
                    )
                    continue
                if not chapter.title:
                    problems.append(f"{place}: the chapter has no `# Title`")
            cell = Cell(chapter, place, source, tree, target)
            everything.append(cell)
            if target:
                modules.setdefault(target, Module(target)).cells.append(cell)
    for path in sorted(set((root / "book").glob("*.ipynb")) - set(order)):
        name = path.relative_to(root).as_posix()
        if any(LOOKS_LIKE_ONE.match(source) for _, _, source in read_cells(path)):
            problems.append(f"{name}: feeds the library, but is not in _toc.yml")
    for module in modules.values():
        module.borrowed = list(borrowed(module, modules))
    return modules, everything


def borrowed(module: Module, modules: dict[str, Module]) -> Iterator[str]:
    """Yield imports of what a module uses and its chapters define or import for another module."""
    chapters = {cell.chapter for cell in module.cells}
    there: dict[str, set[str]] = {}
    for other in modules.values():
        for cell in other.cells:
            if other is not module and cell.chapter in chapters:
                for name in definitions(cell.tree):
                    if not name.startswith("_"):
                        there[name] = {f"from {PACKAGE}.{other.name} import {name}"}
                for name, statement in imported(cell.tree):
                    there.setdefault(name, set()).add(statement)
    code = "\n".join(cell.source for cell in module.cells)
    for name in undefined(code, module.path):
        if len(there.get(name, ())) == 1:  # else the cells do not agree on what it is
            yield from there[name]


def check_modules(modules: dict[str, Module]) -> Iterator[str]:
    """Yield what is wrong with purposes and with statements in export cells."""
    for module in modules.values():
        places = [place for place, _ in module.purposes]
        package, _, rest = module.name.partition(".")
        if package in HANDWRITTEN:
            yield f"{module.path}: is written by hand, no cell may feed it"
        elif rest and package in modules:
            yield f"{module.path}: {modules[package].path} is no package"
        if not module.cells:
            yield f"{places[0]}: no `#| export` cell feeds {module.name}"
        elif not places:
            yield f"{module.cells[0].place}: no `#| default_exp {module.name}` says what it is for"
        elif all(name.startswith("_") for name, _ in module.names()):
            yield f"{module.cells[0].place}: {module.name} has no public name"
        if len(places) > 1:
            yield f"{places[1]}: the purpose of {module.name} is already given in {places[0]}"
        for place, purpose in module.purposes:
            if "\n" in purpose or not purpose.endswith(".") or len(purpose) > WIDTH - 3:
                yield f"{place}: the purpose must be one line that ends with a full stop"
        for cell in module.cells:
            for node in cell.tree.body:
                where = f"{cell.place}: line {node.lineno}: `{ast.unparse(node).splitlines()[0]}`"
                if not harmless(node):
                    yield f"{where} would run on import, move it to a cell of its own"
                elif isinstance(node, ASSIGNMENTS):
                    for name in assigned(node):
                        if not name.isupper() and not name.startswith("_"):
                            yield f"{where}: name it in UPPER_CASE (public) or begin with _"


def check_names(modules: dict[str, Module], root: Path) -> Iterator[str]:
    """Yield names that are public twice in the library, or defined twice in one module."""
    public: dict[str, str] = {}
    for name in sorted(HANDWRITTEN - {"__init__", "__main__"}):
        for path in (root / PACKAGE / f"{name}.py", root / PACKAGE / name / "__init__.py"):
            if path.exists():
                tree = ast.parse(path.read_text(encoding="utf-8"))
                owner = path.relative_to(root).as_posix()
                public |= {n: owner for n in definitions(tree) if not n.startswith("_")}
    for module in modules.values():
        private: dict[str, str] = {}
        for name, cell in module.names():
            seen = private if name.startswith("_") else public
            if name in seen:
                yield f"{cell.place}: {name} is already defined in {seen[name]}"
            seen.setdefault(name, cell.place)


def check_ladder(modules: dict[str, Module], cells: list[Cell], root: Path) -> Iterator[str]:
    """Yield imports of what a later chapter defines, of nothing at all, or by a detour."""
    files = {name: path for name, path, _ in library_files(root / PACKAGE)}
    known = files.keys() | modules.keys()
    packages = {"", *(name.rpartition(".")[0] for name in known)}
    defined = {module.name: dict(module.names()) for module in modules.values()}
    public = {name: cell for names in defined.values() for name, cell in names.items()}
    for cell in cells:
        for call in looked_up(cell.tree):
            yield f"{cell.place}: `{call}` imports by name, use a statement"
        for source, given in package_imports(cell.tree):
            module, name = leads_to(source, given, known)
            later = None
            if source.startswith("."):
                yield f"{cell.place}: a notebook has no package, import from {PACKAGE}{source}"
            elif module in packages:
                if cell.module:
                    full = ".".join(filter(None, (PACKAGE, module)))
                    yield f"{cell.place}: import from a module of {full}, not from the package"
                elif name in public:
                    later = public[name].chapter
            elif module in modules:
                if name in defined[module]:
                    later = defined[module][name].chapter
                elif name:
                    yield f"{cell.place}: {modules[module].path} has no {name}"
                elif modules[module].cells:
                    later = modules[module].cells[0].chapter
            elif module not in HANDWRITTEN and not (module in files and by_hand(files[module])):
                yield f"{cell.place}: there is no module {PACKAGE}.{module}"
            if later and later.number > cell.chapter.number:
                yield (
                    f"{cell.place}: chapter {cell.chapter.number} imports {name or module}, which "
                    f"chapter {later.number} defines ({later.file})"
                )


def check_loops(modules: dict[str, Module], root: Path) -> Iterator[str]:
    """Yield a circle of modules that import each other, those written by hand among them."""
    graph: dict[str, set[str]] = {name: set() for name in modules}
    files = list(library_files(root / PACKAGE))
    known = graph.keys() | {name for name, _, _ in files}
    for module in modules.values():
        for cell in module.cells:
            nodes = [node for node in cell.tree.body if not own_import(node, module.name)]
            found = package_imports(ast.Module(nodes, []))
            graph[module.name].update(leads_to(*one, known)[0] for one in found)
        found = package_imports(ast.parse("\n".join(module.borrowed)))
        graph[module.name].update(leads_to(*one, known)[0] for one in found)
    for name, path, package in files:
        if name not in modules:
            found = package_imports(ast.parse(path.read_text(encoding="utf-8")), package)
            used = {leads_to(*one, known)[0] for one in found}
            graph.setdefault(name, set()).update(used - ({name} & HANDWRITTEN))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield "modules import each other in a circle: " + " → ".join(reversed(error.args[1]))


def own_import(node: ast.stmt, module: str) -> bool:
    """Tell whether a statement imports from the module it stands in.

    A later chapter that adds to a module imports what is there already; in the module it is there.
    """
    return isinstance(node, ast.ImportFrom) and node.module == f"{PACKAGE}.{module}"


def check_files(modules: dict[str, Module], root: Path) -> Iterator[str]:
    """Yield modules in the package folder that nothing accounts for."""
    parts = {name.partition(".")[0] for name in modules if "." in name}
    for path in sorted((root / PACKAGE).glob("*")):
        is_module = path.suffix == ".py" or (path / "__init__.py").exists()
        if is_module and path.stem not in HANDWRITTEN | modules.keys() | parts:
            name = path.relative_to(root).as_posix()
            yield (
                f"{name}: orphaned, no cell feeds it; delete it, or name it in HANDWRITTEN of "
                "tools/export.py"
            )
    for part in sorted(parts - HANDWRITTEN):
        if not (root / PACKAGE / part / "__init__.py").exists():
            yield f"{PACKAGE}/{part}/__init__.py: missing; write one that says what the part is for"
    for name, path, _ in library_files(root / PACKAGE):
        where = path.relative_to(root).as_posix()
        if name.partition(".")[0] not in parts:
            continue
        if name in modules and by_hand(path):
            yield f"{where}: is written by hand, no cell may feed it"
        elif name not in modules and not by_hand(path):
            yield (
                f"{where}: orphaned, no cell feeds it; delete it, or say in a docstring what it "
                "is for"
            )


def undefined(code: str, path: str) -> list[str]:
    """Return the global names that a module's code uses and neither defines nor imports."""
    top = symtable.symtable(code, path, "exec")
    symbols = top.get_symbols()
    known = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
    known |= {*dir(builtins), "__file__", "__name__"}

    def used(table: symtable.SymbolTable) -> set[str]:
        mine = {
            s.get_name()
            for s in table.get_symbols()
            if s.is_referenced() and (table is top or s.is_global())
        }
        return mine.union(*map(used, table.get_children()))

    return sorted(used(top) - known)


def render(module: Module) -> str:
    """Return a module's code: what it is for, imports, ``__all__``, then the cells."""
    imports = [*module.borrowed]
    body: list[str] = []
    for cell in module.cells:
        lines = cell.source.split("\n")
        lines[0] = ""
        for node in cell.tree.body:
            if isinstance(node, IMPORTS):
                where = slice(node.lineno - 1, node.end_lineno)
                if not own_import(node, module.name):
                    imports.append("\n".join(lines[where]))
                lines[where] = [""] * len(lines[where])
        body.append("\n".join(lines).strip())
    chapters = list(dict.fromkeys(cell.chapter for cell in module.cells))
    named = [f'chapter {c.number}, "{c.title}" ({c.file})' for c in chapters]
    source = "there" if len(chapters) == 1 else "these"
    text = (
        f"Explained in {' and '.join(named)}. Generated from {source} {GENERATED}"
        f"{'s' * (len(chapters) > 1)}."
    )
    text = textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    purpose = module.purposes[0][1]
    raw = "r" if "\\" in purpose + text else ""
    public = [name for name, _ in module.names() if not name.startswith("_")]
    return "\n\n".join(
        [
            f'{raw}"""{purpose}\n\n{text}\n"""',
            "\n".join(imports),
            f"__all__ = {public!r}",
            *filter(None, body),
        ]
    )


def tidy(code: str, path: Path) -> str:
    """Return code as ruff leaves it: imports sorted, unused ones dropped, formatted."""
    known = f'lint.isort.known-first-party=["{PACKAGE}"]'
    for command in (
        ["check", "--fix-only", "--select=I,F401,RUF022", f"--config={known}"],
        ["format"],
    ):
        ruff = [sys.executable, "-m", "ruff", *command, "--quiet", f"--stdin-filename={path}", "-"]
        done = subprocess.run(ruff, input=code, capture_output=True, encoding="utf-8", check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(ruff)}\n{done.stderr}")
        code = done.stdout
    return code


def build(root: Path) -> tuple[dict[Path, str], list[str]]:
    """Return the library's files and what is wrong with the chapters; no files if anything is."""
    problems: list[str] = []
    modules, cells = read_book(root, problems)
    problems += check_modules(modules)
    problems += check_names(modules, root)
    problems += check_ladder(modules, cells, root)
    problems += check_loops(modules, root)
    problems += check_files(modules, root)
    if problems:
        return {}, problems
    files = {}
    for module in modules.values():
        path = root / module.path
        files[path] = tidy(render(module), path)
        problems += [
            f"{module.path}: uses {name}, which no export cell of it defines or imports"
            for name in undefined(files[path], module.path)
        ]
    return files, problems


def difference(path: Path, code: str, root: Path) -> str:
    """Return how a module on disk differs from its cells, the empty string if it does not."""
    name = path.relative_to(root).as_posix()
    if not path.exists():
        return f"{name}: missing, run tools/export.py"
    stored = path.read_text(encoding="utf-8")
    if stored == code:
        return ""
    lines = difflib.unified_diff(
        stored.splitlines(), code.splitlines(), name, "its cells", lineterm="", n=1
    )
    return "\n".join([f"{name}: differs from its cells, run tools/export.py", *lines])


def write(path: Path, code: str) -> None:
    """Put a file in place whole, or not at all."""
    draft = path.with_name(f"{path.name}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft.write_text(code, encoding="utf-8", newline="\n")
    os.replace(draft, path)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    parser.add_argument("--root", type=Path, default=ROOT, help="project folder")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    files, problems = build(root)
    stale = {path: text for path, code in files.items() if (text := difference(path, code, root))}
    if options.check:
        problems += stale.values()
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 1
    for path in stale:
        write(path, files[path])
        print(f"wrote {path.relative_to(root).as_posix()}")
    print(f"{len(files)} module{'s' * (len(files) != 1)} up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main())
