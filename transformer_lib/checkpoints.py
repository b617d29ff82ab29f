"""What a run of training leaves in its folder: checkpoints and a log, whole whatever happens.

Chapter 12, "Training", says what belongs into a checkpoint, and why. A checkpoint is one
safetensors file with ``model.…``, ``optimizer.…`` and ``random.…``, and words of JSON about the
run; nothing is pickled. Until it is complete it is called ``checkpoint.part``.
"""

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from transformer_lib.files import parse_json, read_metadata, read_tensors, write_tensors, write_text

__all__ = ["Run", "list_checkpoints", "read_checkpoint", "read_log"]

_LOG, _LOCK, _PART = "log.jsonl", "run.lock", "checkpoint.part"
_NAME = re.compile(r"checkpoint-(\d{8,})\.safetensors")
_ADAM = ("step", "exp_avg", "exp_avg_sq")
_WRAPPERS = {
    "OptimizedModule": "_orig_mod",  # what torch.compile returns
    "DataParallel": "module",
    "DistributedDataParallel": "module",
}


# What a state consists of


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the model inside what torch.compile or DataParallel made of it."""
    while (inside := _WRAPPERS.get(type(model).__name__)) is not None:
        model = getattr(model, inside)
    return model


def own_config(model: nn.Module) -> Any:
    """Return the configuration that a model has, or None; wrappers have none of their own."""
    return getattr(unwrapped(model), "config", None)


def own_name(model: nn.Module, name: str) -> str:
    """Return a tensor's name without those that wrappers, in whatever depth, have added to it."""
    parts, module = [], model
    for part in name.split("."):
        if _WRAPPERS.get(type(module).__name__) != part:
            parts.append(part)
        module = module._modules.get(part) or module
    return ".".join(parts)


def random_state() -> dict[str, Tensor]:
    """Return the state of the random numbers that dropout draws, of every device in use."""
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    if torch.backends.mps.is_available():
        state["mps"] = torch.mps.get_rng_state()
    return state


def set_random_state(state: Mapping[str, Tensor]) -> None:
    """Go back to a state that :func:`random_state` returned; one of other devices is left out."""
    torch.set_rng_state(state["cpu"])
    if torch.cuda.is_available() and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"])
    if torch.backends.mps.is_available() and "mps" in state:
        torch.mps.set_rng_state(state["mps"])


def checkpoint_state(
    model: nn.Module, optimizer: torch.optim.Optimizer, random: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return all tensors on which the next step depends, under the model's own names.

    What Adam has not moved yet has the averages 0 and the count 0, as Adam itself begins.
    """
    state = {f"model.{own_name(model, n)}": tensor for n, tensor in model.state_dict().items()}
    for name, parameter in _trained(model, optimizer).items():
        adam = optimizer.state.get(parameter) or {
            "step": torch.tensor(0.0),
            "exp_avg": torch.zeros_like(parameter, requires_grad=False),
            "exp_avg_sq": torch.zeros_like(parameter, requires_grad=False),
        }
        state |= {f"optimizer.{key}.{name}": adam[key] for key in _ADAM}
    return state | {f"random.{device}": tensor for device, tensor in random.items()}


def restore(
    model: nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], file: Path
) -> dict[str, Tensor]:
    """Put a checkpoint's tensors in their places and return the state of the random numbers.

    All are compared first: unless every name, shape and type is there, and no other, nothing is
    changed and ValueError names the first that differs. Random numbers of a device that only one of
    the two machines has are let pass.
    """
    expected = checkpoint_state(model, optimizer, random_state())
    for name in sorted({*expected, *tensors}):
        ours, theirs = map(_words, (expected.get(name), tensors.get(name)))
        elsewhere = name in ("random.cuda", "random.mps") and "none" in (ours, theirs)
        if ours != theirs and not elsewhere:
            raise ValueError(f"{file}: expected {name} to be {ours}, got {theirs}")
    model.load_state_dict(
        {name: tensors[f"model.{own_name(model, name)}"] for name in model.state_dict()}
    )
    for name, parameter in _trained(model, optimizer).items():
        for key in _ADAM:
            device = "cpu" if key == "step" else parameter.device
            optimizer.state[parameter][key] = tensors[f"optimizer.{key}.{name}"].to(device)
    return tensors_of(tensors, "random.")


def tensors_of(tensors: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    """Return the tensors whose names begin with ``part``, under the rest of their names."""
    return {n.removeprefix(part): tensor for n, tensor in tensors.items() if n.startswith(part)}


def _trained(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, nn.Parameter]:
    trained = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    named = model.named_parameters()
    return {own_name(model, name): tensor for name, tensor in named if id(tensor) in trained}


def _words(tensor: Tensor | None) -> str:
    return "none" if tensor is None else f"{tensor.dtype} of shape {tuple(tensor.shape)}"


# One run


class Run:
    """What accompanies the steps of one run: their number, the log, random numbers, the folder.

    ``model`` and ``optimizer`` are saved. ``config``, and the ``identity`` of ``batches`` where
    they have one, tell whether a checkpoint is of this run.

    Attributes:
        step: Number of the last step, counted from 1.
        log: What :func:`read_log` returns.
        random: State of the random numbers after that step. What others draw between the steps of
            a run does not change it.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        folder: str | os.PathLike[str] | None,
        config: Any,
        batches: Any,
        *,
        may_be_longer: bool,
    ) -> None:
        self.model, self.optimizer = model, optimizer
        self.folder = None if folder is None else RunFolder(folder)
        self.config = config
        self.which = {"model": own_config(model), "config": config, "batches": batches}
        self.may_change = {"log_every", "save_every", "keep"}
        if may_be_longer:
            self.may_change.add("steps")
        self.step = 0
        self.log: list[dict[str, Any]] = []
        torch.manual_seed(config.seed)
        self.random = random_state()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Be ready for steps: gradients and dropout on, the folder claimed and proven writable.

        Afterwards the model is in evaluation mode.
        """
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode(mode=False))
            stack.enter_context(torch.enable_grad())
            if self.folder:
                stack.enter_context(self.folder.claimed())
                self.folder.require_none_after(self.step)
                self.folder.prove(*self._state(), self.config.keep)
                self.folder.write_log(self.log)
            stack.callback(self.model.eval)
            self.model.train()
            set_random_state(self.random)
            yield

    def bar(self, end: int, *, hidden: bool) -> tqdm:
        """Return the numbers of the steps that are left to ``end``, with a bar in a terminal."""
        numbers, total = range(self.step + 1, end + 1), self.config.steps
        return tqdm(numbers, initial=self.step, total=total, unit="step", disable=hidden or None)

    def advance(self) -> None:
        """Count a step."""
        self.step += 1
        self.random = random_state()

    def note(
        self,
        results: Sequence[Any],
        learning_rate: float,
        seconds: float,
        validate: Callable[[], Mapping[str, float]] | None,
    ) -> None:
        """Add a line to the log: the means of some steps, and what ``validate`` returns."""
        count = sum(result.count for result in results)
        line = {
            "step": self.step,
            "loss": sum(result.loss * result.count for result in results) / count,
            "learning_rate": learning_rate,
            "gradient_norm": sum(result.gradient_norm for result in results) / len(results),
            "count": count,
            "seconds": round(seconds, 3),
        }
        if validate is not None:
            line |= self._validated(validate)
        self.log.append(line)
        if self.folder:
            self.folder.append_log(line)

    def _validated(self, validate: Callable[[], Mapping[str, float]]) -> dict[str, float]:
        self.model.eval()
        try:
            return {name: float(value) for name, value in validate().items()}
        except BaseException:
            self.save()  # the steps so far are not to be lost with it
            raise
        finally:
            self.model.train()
            set_random_state(self.random)

    def save(self) -> Path | None:
        """Write a checkpoint and return its path; without a folder do nothing."""
        if self.folder is None:
            return None
        with self.folder.claimed():
            return self.folder.write(self.step, *self._state(), self.config.keep)

    def resume(self) -> bool:
        """Go back to the latest checkpoint, if there is one, and the log with it."""
        if self.folder is None:
            return False
        with self.folder.claimed():
            if latest := self.folder.latest():
                file, progress, tensors = latest
                require_same_run(progress, self._progress(), self.may_change, self.folder.path)
                self.random = restore(self.model, self.optimizer, tensors, file)
                self.step = progress["step"]
                lines = read_log(self.folder.path)
                self.log = [line for line in lines if line["step"] <= self.step]
            self.folder.write_log(self.log)
        return latest is not None

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return checkpoint_state(self.model, self.optimizer, self.random), self._progress()

    def _progress(self) -> dict[str, Any]:
        """Return what a checkpoint says in words: where the run is, and which run it is."""
        words: dict[str, Any] = {"step": self.step}
        for name, thing in self.which.items():
            known = is_dataclass(thing) and not isinstance(thing, type)
            words[name] = asdict(thing) if known else getattr(thing, "identity", {})
        return words


def identify(pairs: Sequence[Sequence[Sequence[int]]]) -> str:
    """Return a digest of token ids, which other data would not have."""
    digest = hashlib.sha256()
    for pair in pairs:
        digest.update(json.dumps([list(map(int, side)) for side in pair]).encode())
    return digest.hexdigest()


# Reading


def list_checkpoints(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the checkpoints in ``folder``, the latest last; files of other names are none."""
    files = [(_NAME.fullmatch(file.name), file) for file in Path(folder).glob("checkpoint-*")]
    return [file for _, file in sorted((int(name[1]), file) for name, file in files if name)]


def read_checkpoint(
    file: str | os.PathLike[str], part: str = ""
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return what a checkpoint says about its run, and the tensors whose names begin with ``part``.

    ValueError, naming the file, if it is no checkpoint, is damaged, or lies under the number of
    another step.
    """
    file = Path(file)
    try:
        progress = parse_json(read_metadata(file)["progress"], "progress")
        tensors = read_tensors(file, part)
        step = progress["step"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} is no checkpoint of a Trainer, or is damaged: {error}") from None
    name = _NAME.fullmatch(file.name)
    if type(step) is not int or step < 1 or (name and int(name[1]) != step):
        raise ValueError(f"{file} is no checkpoint of a Trainer: it says that its step is {step!r}")
    return progress, tensors


def read_log(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return what a run has logged into ``folder``, a dictionary a line.

    Each has "step", its number; "loss", the mean since the line before; "learning_rate", of its
    step; "gradient_norm", the mean before clipping; "count", of what the loss is a mean (for text,
    target tokens); "seconds" they took; and what the trainer's ``validate`` has returned. Without a
    log the list is empty. What is no such line, as one that was cut by a kill, is left out.
    """
    log = Path(folder) / _LOG
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    found = []
    for line in text.splitlines():
        with suppress(ValueError, RecursionError):
            found.append(json.loads(line))
    return [line for line in found if isinstance(line, dict) and type(line.get("step")) is int]


def require_same_run(
    saved: Mapping[str, Any], mine: Mapping[str, Any], may_change: set[str], folder: Path
) -> None:
    """Raise unless a checkpoint is of this run: its numbers would be those of neither.

    ValueError names the argument of the trainer that has changed: model, config or batches.
    """
    mine = json.loads(json.dumps(mine))
    for argument in ("model", "config", "batches"):
        theirs = saved.get(argument)
        if not isinstance(theirs, dict):
            raise ValueError(f"{argument}: the checkpoint in {folder} says nothing about it")
        changed = [
            f"{name} = {theirs.get(name)!r}, now {value!r}"
            for name, value in mine[argument].items()
            if name not in may_change and theirs.get(name) != value
        ]
        if changed:
            raise ValueError(f"{argument}: the checkpoint in {folder} has {'; '.join(changed)}")
    if saved["step"] > mine["config"]["steps"]:
        raise ValueError(
            f"config: the checkpoint in {folder} is of step {saved['step']}, and steps = "
            f"{mine['config']['steps']}"
        )


# Writing


class RunFolder:
    """The folder of one run: its checkpoints, its log, and the lock that keeps others out.

    Files of other names are left alone. What a kill leaves is one unfinished checkpoint, which the
    next run that writes here removes.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock: IO[bytes] | None = None

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Keep the folder for oneself, or raise BlockingIOError at once if another run does."""
        if self._lock is not None:  # by this very trainer
            yield
            return
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / _LOCK).open("ab") as self._lock:
            try:
                if not _locked(self._lock):
                    raise BlockingIOError(f"folder: another run is at work in {self.path}")
                yield
            finally:
                self._lock = None

    def latest(self) -> tuple[Path, dict[str, Any], dict[str, Tensor]] | None:
        """Return the latest checkpoint, what it says and its tensors; None if there is none."""
        files = list_checkpoints(self.path)
        return (files[-1], *read_checkpoint(files[-1])) if files else None

    def require_none_after(self, step: int) -> None:
        """Raise before a run that was not resumed mixes with, and removes, what it left."""
        files = list_checkpoints(self.path)
        if files and int(files[-1].stem[11:]) > step:
            raise ValueError(
                f"folder: {self.path} has {files[-1].name}, this run is at step {step}; resume it "
                "or take another folder"
            )

    def prove(self, tensors: Mapping[str, Tensor], progress: Mapping[str, Any], keep: int) -> None:
        """Raise OSError unless a checkpoint like this one can be written, and ``keep`` of them.

        It is written and removed again. So a wrong type, missing rights or a full disk are found
        before the first step and not at the first checkpoint.
        """
        part = self._write(tensors, progress)
        size = part.stat().st_size
        part.unlink()
        needed = size * max(keep - len(list_checkpoints(self.path)) + 1, 1)
        if shutil.disk_usage(self.path).free < needed:
            raise OSError(f"folder: {self.path}: no room for {keep} checkpoints of {size:,} bytes")

    def write(
        self, step: int, tensors: Mapping[str, Tensor], progress: Mapping[str, Any], keep: int
    ) -> Path:
        """Write a checkpoint in one step, remove those beyond ``keep``, and return its path."""
        path = self.path / _name(step)
        self._write(tensors, progress).replace(path)
        for old in list_checkpoints(self.path)[:-keep]:
            old.unlink(missing_ok=True)
        return path

    def write_log(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Replace the log."""
        write_text(self.path / _LOG, "".join(json.dumps(line) + "\n" for line in lines))

    def append_log(self, line: Mapping[str, Any]) -> None:
        """Add a line to the log."""
        with (self.path / _LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")

    def _write(self, tensors: Mapping[str, Tensor], progress: Mapping[str, Any]) -> Path:
        part = self.path / _PART
        write_tensors(part, tensors, {"progress": json.dumps(progress)})
        return part


def _name(step: int) -> str:
    return f"checkpoint-{step:08d}.safetensors"


def _locked(file: IO[bytes]) -> bool:
    """Lock an open file until it is closed, if no one else has; a killed process has it no more."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # this file system has no locks
        return True
    return True
