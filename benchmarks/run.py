"""Run benchmarks and write their tables, with the machine they hold for, to RESULTS.md.

``python benchmarks/run.py`` runs all; ``python benchmarks/run.py decoding.py`` runs that one and
leaves the tables of the others as they are.
"""

import os
import platform
import subprocess
import sys
from pathlib import Path

import torch

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "RESULTS.md"
RUNS = (
    ["training_step.py", "--threads", "1"],
    ["training_step.py", "--threads", "2"],
    ["attention_memory.py"],
    ["decoding.py"],
    ["detection.py"],
)
# The allocator would else return the large blocks of every step to the system and fault them in
# again, which costs every model more than what tells them apart.
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "4294967296"}


def processor() -> str:
    """Return what the system calls its processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def stored() -> dict[str, str]:
    """Return the sections of RESULTS.md by their headings."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    _, *sections = text.split("\n## ")
    return {heading: body for heading, _, body in (part.partition("\n") for part in sections)}


def main() -> None:
    """Run, print and store."""
    known = {script for script, *_ in RUNS}
    wanted = set(sys.argv[1:]) or known
    if wanted - known:
        sys.exit(f"unknown: {', '.join(wanted - known)}; there are {', '.join(sorted(known))}")
    sections = stored()
    where = (
        f"{os.cpu_count()} cores of {processor()}, Python {platform.python_version()}, "
        f"torch {torch.__version__}"
    )
    for script, *options in RUNS:
        if script not in wanted:
            continue
        threads = options[1] if "--threads" in options else "1"
        environment = os.environ | {"OMP_NUM_THREADS": threads}
        if script == "training_step.py":
            environment |= ALLOCATOR
        command = [sys.executable, "-W", "ignore", str(FOLDER / script), *options]
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        print(done.stdout, flush=True)
        sections[" ".join([script, *options])] = f"On {where}.\n\n{done.stdout}"
    text = ["# Results\n\nWritten by `make bench`. Only ratios within one table mean anything."]
    text += [f"## {heading}\n\n{body.strip()}" for heading, body in sections.items()]
    RESULTS.write_text("\n\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
