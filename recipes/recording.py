"""What a recipe writes down beside its scores, so that they can be made again."""

import hashlib
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch


def record(recipe: Any, seconds: float, model: Path, scores: dict[str, Any]) -> dict[str, Any]:
    """Return the scores with all that is needed to make them again.

    Args:
        recipe: What the run was made with, a dataclass.
        seconds: What training took.
        model: The file of the weights that were scored.
        scores: The scores.
    """
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=40"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    )
    return {
        "command": " ".join(["python", f"recipes/{Path(sys.argv[0]).name}", *sys.argv[1:]]),
        "commit": commit.stdout.strip(),
        "recipe": asdict(recipe),
        "seconds": round(seconds),
        "threads": torch.get_num_threads(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, torch {torch.__version__}",
        "sha256": hashlib.sha256(model.read_bytes()).hexdigest(),
        "scores": scores,
    }
