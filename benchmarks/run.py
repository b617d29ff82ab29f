"""Run all benchmarks and write their tables, with the machine they hold for, to RESULTS.md."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import torch

FOLDER = Path(__file__).parent
RUNS = (
    ["training_step.py", "--threads", "1"],
    ["training_step.py", "--threads", "2"],
    ["attention_memory.py"],
    ["decoding.py"],
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


def main() -> None:
    """Run, print and store."""
    tables = []
    for script, *options in RUNS:
        threads = options[1] if "--threads" in options else "1"
        environment = os.environ | {"OMP_NUM_THREADS": threads}
        if script == "training_step.py":
            environment |= ALLOCATOR
        command = [sys.executable, "-W", "ignore", str(FOLDER / script), *options]
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        tables.append(done.stdout)
        print(done.stdout, flush=True)
    where = f"{os.cpu_count()} cores of {processor()}, Python {platform.python_version()}, "
    text = [
        "# Results",
        f"Written by `make bench` on {where}torch {torch.__version__}. Only ratios within one "
        "table mean anything.",
        *tables,
    ]
    (FOLDER / "RESULTS.md").write_text("\n\n".join(map(str.strip, text)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
