"""Run notebooks and store their outputs, the same bytes on every run.

``python tools/execute.py NOTEBOOK...`` runs each in its own folder, with the Python that runs this
script as kernel ``python3``, one thread and none of the user's IPython settings. What is stored
holds no times, no paths of this machine and no metadata but what the book reads; of the traceback
of a cell tagged ``raises-exception`` only the cell's own lines stay, since the lines of libraries
would go stale unnoticed. ``--check-determinism`` runs everything twice and fails if the two differ.

A notebook is written whole or, if anything is wrong, left as it was: a cell that raises (or that is
tagged ``raises-exception`` and does not), runs over the time limit, prints to stderr, or shows the
repr of a matplotlib object instead of the picture. Warnings count: on a page they are noise, so
cure them, or catch and print what the reader should see.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
from ipykernel.kernelspec import RESOURCES, get_kernel_dict
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from traitlets import default

CELL_METADATA = {"ignore_reason", "mystnb", "tags"}
NOTEBOOK_METADATA = {"mystnb"}
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}
ANSI = re.compile(r"\x1b\[[0-9;]*m")
MATPLOTLIB_REPR = re.compile(r"^\W*(?:<(?:Figure|Axes|matplotlib)|Text\()", re.M)


class ThisPython(KernelSpecManager):
    """Knows one kernel: the Python that runs this script, whatever is registered elsewhere."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Return it."""
        return KernelSpec(resource_dir=RESOURCES, **get_kernel_dict())


class ThisPythonManager(AsyncKernelManager):
    """Starts ThisPython."""

    @default("kernel_spec_manager")
    def _kernel_spec_manager_default(self) -> KernelSpecManager:
        return ThisPython(parent=self)


class NotebookError(Exception):
    """A notebook is not fit to be stored; the arguments say where and why."""


def places(notebook: NotebookNode) -> Iterator[tuple[str, NotebookNode]]:
    """Yield the code cells with what to call them: numbered from 1, as Jupyter does."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, 1):
        yield f"code cell {number} ({cell.id})", cell


def read(path: Path) -> NotebookNode:
    """Read a notebook; cells without an id get their number as one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        cells = content["cells"]
    except (OSError, ValueError, KeyError) as error:
        raise NotebookError(f"is no notebook: {type(error).__name__}: {error}") from None
    for number, cell in enumerate(cells, 1):
        cell.setdefault("id", f"cell-{number}")
    ids = [cell["id"] for cell in cells]
    if twice := {cell_id for cell_id in ids if ids.count(cell_id) > 1}:
        raise NotebookError(f"has more than one cell with the id {', '.join(sorted(twice))}")
    content["nbformat_minor"] = max(content["nbformat_minor"], 5)
    return nbformat.reads(json.dumps(content), as_version=4)


def environment(settings: str) -> dict[str, str]:
    """Return the kernel's environment: one thread, inline pictures, IPython as it comes."""
    kept = {k: v for k, v in os.environ.items() if k not in ("MPLBACKEND", "PYTHONWARNINGS")}
    return kept | {"OMP_NUM_THREADS": "1", "IPYTHONDIR": settings}


def run(notebook: NotebookNode, folder: Path, timeout: int) -> None:
    """Run a notebook top to bottom and put the outputs into it."""
    started = ["before the first cell"]
    names = {id(cell): place for place, cell in places(notebook)}
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        kernel_manager_class=ThisPythonManager,
        resources={"metadata": {"path": str(folder)}},
        timeout=timeout,
        coalesce_streams=True,
        store_widget_state=False,
        on_cell_execute=lambda cell, cell_index: started.append(names[id(cell)]),
    )
    for _, cell in places(notebook):
        cell.outputs, cell.execution_count = [], None
    with tempfile.TemporaryDirectory() as settings:
        try:
            client.execute(env=environment(settings), stderr=subprocess.DEVNULL)
        except CellExecutionError as error:
            traceback = ANSI.sub("", error.traceback).rstrip()
            message = f"{started[-1]}: {error.ename}: {error.evalue}\n{traceback}"
            raise NotebookError(message) from None
        except CellTimeoutError:
            raise NotebookError(f"{started[-1]}: takes more than {timeout} s") from None
        except DeadKernelError:
            raise NotebookError(f"{started[-1]}: the kernel died") from None


def clean(notebook: NotebookNode) -> None:
    """Drop what depends on the machine, the moment or the editor."""
    kept = {k: v for k, v in notebook.metadata.items() if k in NOTEBOOK_METADATA}
    notebook.metadata = NotebookNode(kept | {"kernelspec": KERNEL, "language_info": LANGUAGE})
    for cell in notebook.cells:
        cell.metadata = NotebookNode({k: v for k, v in cell.metadata.items() if k in CELL_METADATA})
    for _, cell in places(notebook):
        for output in cell.outputs:
            if output.output_type == "error":
                lines = [ANSI.sub("", line) for line in output.traceback]
                output.traceback = [line for line in lines if not line.startswith("File ")]


def problems(notebook: NotebookNode) -> Iterator[str]:
    """Yield what must not be on a page: missing errors, stderr, reprs of pictures."""
    for place, cell in places(notebook):
        kinds = [output.output_type for output in cell.outputs]
        if "raises-exception" in cell.metadata.get("tags", []) and "error" not in kinds:
            yield f"{place}: is tagged raises-exception and raised nothing"
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == "stderr":
                yield f"{place}: printed to stderr:\n{output.text.rstrip()}"
            data = output.get("data", {})
            text = data.get("text/plain", "")
            if not any(kind.startswith("image/") for kind in data) and MATPLOTLIB_REPR.match(text):
                yield f"{place}: shows {text!r}, end the cell with plt.show()"


def serialise(notebook: NotebookNode) -> str:
    """Validate a notebook and return the text to store."""
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        raise NotebookError(f"is not valid: {error}") from None
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def executed(path: Path, timeout: int) -> NotebookNode:
    """Return a notebook with its outputs, ready to store."""
    notebook = read(path)
    run(notebook, path.parent, timeout)
    clean(notebook)
    if found := dict.fromkeys(problems(notebook)):
        raise NotebookError(*found)
    return notebook


def compare(first: NotebookNode, second: NotebookNode) -> None:
    """Refuse a notebook two runs of which differ, except in outputs the tests ignore too."""
    for (place, one), (_, other) in zip(places(first), places(second), strict=True):
        if "nbval-ignore-output" not in one.metadata.get("tags", []) and one != other:
            raise NotebookError(f"{place}: a second run gives other outputs")


def store(path: Path, text: str) -> None:
    """Put a file in place whole, or not at all."""
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_text(text, encoding="utf-8", newline="\n")
    os.replace(draft, path)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK")
    parser.add_argument("--check-determinism", action="store_true", help="run everything twice")
    parser.add_argument("--timeout", type=int, default=600, help="seconds a cell may take")
    options = parser.parse_args(arguments)
    failed = False
    for path in options.notebooks:
        start = time.perf_counter()
        try:
            notebook = executed(path, options.timeout)
            if options.check_determinism:
                compare(notebook, executed(path, options.timeout))
            store(path, serialise(notebook))
        except NotebookError as error:
            failed = True
            print(*(f"{path}, {problem}" for problem in error.args), sep="\n", file=sys.stderr)
        else:
            print(f"{path}: {time.perf_counter() - start:.1f} s")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
