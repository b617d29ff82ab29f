"""Read which module of the library uses which, and which chapters build it.

Both come from the files themselves: the imports of `transformer_lib/`, and the export cells of the
notebooks. The map of the library and its table are made of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import export


class Module(NamedTuple):
    """A module of the library, or what is written by hand as a whole with all that is in it."""

    name: str
    chapters: tuple[export.Chapter, ...]  # none: written by hand
    uses: tuple[str, ...]

    @property
    def finished(self) -> int:
        """The number of the last chapter that adds to it."""
        return max((chapter.number for chapter in self.chapters), default=0)

    @property
    def begun(self) -> int:
        """The number of the first chapter that feeds it."""
        return min((chapter.number for chapter in self.chapters), default=0)


def imports(package: Path) -> dict[str, set[str]]:
    """Return what each module imports from others; what is by hand as a whole is one."""
    found: dict[str, set[str]] = {}
    files = list(export.library_files(package))
    known = {name for name, _, _ in files}
    for name, path, within in files:
        named = export.package_imports(ast.parse(path.read_text(encoding="utf-8")), within)
        used = {export.leads_to(*one, known)[0] for one in named}
        found.setdefault(name, set()).update(used)
    return {name: (used & found.keys()) - {name} for name, used in found.items()}


def library(root: Path) -> list[Module]:
    """Return the modules in the order in which the chapters finish them.

    One that is written by hand stands after all that it imports.
    """
    modules, cells = export.read_book(root, [])
    uses = imports(root / export.PACKAGE)
    last = {name: cells.index(modules[name].cells[-1]) for name in modules.keys() & uses.keys()}
    begun = {name: modules[name].cells[0].chapter.number for name in last}
    finished = {name: modules[name].cells[-1].chapter.number for name in last}
    order: list[str] = []

    def place(name: str) -> None:
        """Put a module after those that it uses, begun in its chapters or in earlier ones."""
        for used in sorted(uses[name] & last.keys(), key=last.__getitem__):
            if used not in order and begun[used] <= finished[name]:
                place(used)
        if name not in order:
            order.append(name)

    for name in sorted(last, key=last.__getitem__):
        place(name)
    by_hand = {name: sorted(used - modules.keys()) for name, used in sorted(uses.items())}
    for name in TopologicalSorter(by_hand).static_order():
        if name not in order:
            order.insert(max((order.index(one) + 1 for one in uses[name]), default=0), name)
    return [
        Module(name, chapters(modules.get(name)), tuple(sorted(uses[name], key=order.index)))
        for name in order
    ]


def chapters(module: export.Module | None) -> tuple[export.Chapter, ...]:
    """Return the chapters that feed a module."""
    return tuple(dict.fromkeys(cell.chapter for cell in module.cells)) if module else ()


def ladder_faults(modules: Iterable[Module]) -> list[str]:
    """Return the imports that do not go to what stands before, in order and in chapters."""
    seen: dict[str, Module] = {}
    faults = []
    for module in modules:
        for used in module.uses:
            if used not in seen or (module.chapters and seen[used].begun > module.finished):
                faults.append(f"{module.name} imports {used}")
        seen[module.name] = module
    return faults
