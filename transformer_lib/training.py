"""Training: from pairs of sentences to weights, in a run that can be stopped and resumed.

Explained in chapter 12, "Training" (book/12_training.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

import hashlib
import json
import math
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from transformer_lib._checks.common import require_fields
from transformer_lib.files import require_state
from transformer_lib.transformer import Transformer

__all__ = [
    "Batch",
    "Batches",
    "StepResult",
    "Trainer",
    "TrainingConfig",
    "average_checkpoints",
    "checkpoints",
    "linear_rate",
    "noam_rate",
    "pad",
    "read_log",
    "sequence_loss",
    "shift_target",
    "smoothed_labels",
    "training_step",
]


def shift_target(
    target: Int[Tensor, "batch length"],
) -> tuple[Int[Tensor, "batch length-1"], Int[Tensor, "batch length-1"]]:
    """Split target sentences into what the decoder reads and what it has to predict.

    At every position the label is the token that follows the input: start, 5, 6, end becomes the
    inputs start, 5, 6 and the labels 5, 6, end.

    Args:
        target: Token ids of shape (batch, length), from the start token to the end token, padded.

    Returns:
        Inputs and labels of shape (batch, length − 1) each.

    Raises:
        ValueError: ``target`` has not two axes, or fewer than two tokens.
    """
    if target.dim() != 2 or target.shape[1] < 2:
        raise ValueError(
            "target: expected shape (batch, length) with a start token and one more, "
            f"got {tuple(target.shape)}"
        )
    return target[:, :-1], target[:, 1:]


class Batch(NamedTuple):
    """Source and target sentences, padded to a rectangle each."""

    source: Int[Tensor, "batch source"]
    target: Int[Tensor, "batch target"]


def pad(sentences: Sequence[Sequence[int]], *, padding_id: int = 0) -> Int[Tensor, "batch length"]:
    """Put sentences of token ids into one tensor, padded at their ends.

    Args:
        sentences: Token ids, one sequence a sentence.
        padding_id: What stands behind the end of the shorter ones.

    Returns:
        Ids of shape (batch, length of the longest).
    """
    length = max(map(len, sentences), default=0)
    rows = [[*sentence, *[padding_id] * (length - len(sentence))] for sentence in sentences]
    return torch.tensor(rows, dtype=torch.int64).reshape(len(sentences), length)


class Batches:
    """Pairs of sentences in batches of like length, in another order every epoch.

    The order follows from ``seed`` and the epoch's number alone, so that a run can be resumed in
    the middle of an epoch.

    Args:
        pairs: Token ids of source and target sentences; targets from start to end token.
        tokens_per_batch: No batch has more rows times columns than this, on either side; a
            sentence that is longer makes a batch of its own.
        padding_id: The padding token.
        seed: Starting point of the order.

    Raises:
        ValueError: There are no pairs, a sentence is empty, or ``tokens_per_batch`` is below 1.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
        *,
        tokens_per_batch: int,
        padding_id: int = 0,
        seed: int = 0,
    ) -> None:
        _require_positive(tokens_per_batch=tokens_per_batch)
        if not pairs:
            raise ValueError("pairs: expected at least one pair, got none")
        for number, (source, target) in enumerate(pairs):
            if not source or len(target) < 2:
                raise ValueError(
                    f"pairs: expected source tokens, and a target's start token and one more; "
                    f"pair {number} has {len(source)} and {len(target)}"
                )
        self.pairs = pairs
        self.tokens_per_batch = tokens_per_batch
        self.padding_id = padding_id
        self.seed = seed

    def epoch(self, number: int) -> list[list[int]]:
        """Return which pairs stand together in each batch of an epoch, every pair once."""
        chance = random.Random(f"{self.seed} {number}")
        order = list(range(len(self.pairs)))
        chance.shuffle(order)
        # Sorting keeps the chance order among pairs of like length.
        order.sort(key=lambda index: tuple(map(len, reversed(self.pairs[index]))))
        batches: list[list[int]] = []
        longest = 0
        for index in order:
            longest = max(longest, *map(len, self.pairs[index]))
            if not batches or (len(batches[-1]) + 1) * longest > self.tokens_per_batch:
                batches.append([])
                longest = max(map(len, self.pairs[index]))
            batches[-1].append(index)
        chance.shuffle(batches)
        return batches

    def batch(self, indices: Sequence[int]) -> Batch:
        """Return the pairs of the given indices, padded."""
        source, target = zip(*(self.pairs[index] for index in indices), strict=True)
        return Batch(
            pad(source, padding_id=self.padding_id), pad(target, padding_id=self.padding_id)
        )

    def stream(self, epoch: int = 0, position: int = 0) -> Iterator[tuple[Batch, int, int]]:
        """Yield batches without end, each with the epoch and position of the one after it."""
        while True:
            batches = self.epoch(epoch)
            while position < len(batches):
                position += 1
                yield self.batch(batches[position - 1]), epoch, position
            epoch, position = epoch + 1, 0


def _require_positive(**numbers: int) -> None:
    for name, number in numbers.items():
        if type(number) is not int:
            raise TypeError(f"{name}: expected a whole number, got {number!r}")
        if number < 1:
            raise ValueError(f"{name}: expected 1 or more, got {number}")


def smoothed_labels(
    labels: Int[Tensor, "*batch"],
    vocabulary_size: int,
    *,
    smoothing: float,
    spread: Literal["all", "others"] = "all",
    padding_id: int = 0,
) -> Float[Tensor, "*batch vocabulary"]:
    """Return the distribution that stands for each label under label smoothing.

    Args:
        labels: Token ids of any shape.
        vocabulary_size: Number of tokens, V.
        smoothing: Probability ε that is taken from the label and spread.
        spread: "all" gives ε / V to every token, the label and padding among them, as PyTorch
            does; "others" gives ε / (V − 2) to every token but the label and padding, as many
            early implementations of the paper do.
        padding_id: The padding token; its own rows are zero.

    Returns:
        Rows of shape (*batch, V) that sum to 1, or to 0 where the label is padding.

    Raises:
        ValueError: ``smoothing`` is not from 0 to 1, ``spread`` is unknown, or the vocabulary is
            too small.

    Source: Szegedy et al. (2016), section 7; Vaswani et al. (2017), section 5.4 (ε = 0.1).
    """
    _require_smoothing(smoothing, spread, vocabulary_size)
    real = (labels != padding_id).unsqueeze(-1)
    label = F.one_hot(labels.long(), vocabulary_size).to(torch.get_default_dtype())
    if spread == "all":
        rows = (1 - smoothing) * label + smoothing / vocabulary_size
    else:
        others = 1 - label
        others[..., padding_id] = 0
        rows = (1 - smoothing) * label + smoothing / (vocabulary_size - 2) * others
    return rows * real


def _require_smoothing(smoothing: float, spread: str, vocabulary_size: int) -> None:
    if not 0 <= smoothing <= 1:
        raise ValueError(f"smoothing: expected a probability from 0 to 1, got {smoothing}")
    if spread not in ("all", "others"):
        raise ValueError(f"spread: expected 'all' or 'others', got {spread!r}")
    if spread == "others" and vocabulary_size < 3:
        raise ValueError(
            "spread: 'others' needs a token beside the label and padding, "
            f"got a vocabulary of {vocabulary_size}"
        )


def sequence_loss(
    logits: Float[Tensor, "*batch vocabulary"],
    labels: Int[Tensor, "*batch"],
    *,
    smoothing: float = 0.0,
    spread: Literal["all", "others"] = "all",
    padding_id: int = 0,
    reduction: Literal["mean", "sum"] = "mean",
) -> Float[Tensor, ""]:
    """Return the cross-entropy between the labels' distributions and the model's, in nats.

    Args:
        logits: Logits, not probabilities, of shape (*batch, vocabulary).
        labels: Token ids of shape (*batch).
        smoothing: As in :func:`smoothed_labels`.
        spread: As in :func:`smoothed_labels`.
        padding_id: Labels of this id are neither predicted nor counted; the end token is both.
        reduction: "mean" over the labels that count, or their "sum".

    Returns:
        The loss; 0 if no label counts. A token of probability 0 costs nothing where its label has
        none either, and is infinite where it has some.

    Raises:
        ValueError: Shapes differ, ``smoothing`` is not from 0 to 1, or an option is unknown.

    Source: Szegedy et al. (2016), section 7.
    """
    if logits.shape[:-1] != labels.shape:
        raise ValueError(
            f"labels: expected shape {tuple(logits.shape[:-1])} as the logits have, "
            f"got {tuple(labels.shape)}"
        )
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction: expected 'mean' or 'sum', got {reduction!r}")
    vocabulary_size = logits.shape[-1]
    _require_smoothing(smoothing, spread, vocabulary_size)
    logits, labels = logits.flatten(0, -2), labels.flatten().long()
    if spread == "all":
        total = F.cross_entropy(
            logits, labels, ignore_index=padding_id, label_smoothing=smoothing, reduction="sum"
        )
    else:
        log_probabilities = F.log_softmax(logits, dim=-1)
        label = log_probabilities.gather(1, labels[:, None]).squeeze(1)
        # Zero, not −∞ times zero, where nothing is expected.
        no_mass = F.one_hot(labels, vocabulary_size).bool()
        no_mass[:, padding_id] = True
        others = log_probabilities.masked_fill(no_mass, 0).sum(dim=-1)
        losses = torch.zeros_like(label)
        if smoothing < 1:
            losses = losses - (1 - smoothing) * label
        if smoothing > 0:
            losses = losses - smoothing / (vocabulary_size - 2) * others
        total = losses.masked_fill(labels == padding_id, 0).sum()
    if reduction == "sum":
        return total
    return total / (labels != padding_id).sum().clamp(min=1)


def noam_rate(update: int, *, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """Return the paper's learning rate: factor · d_model^−½ · min(update^−½, update · warmup^−³ᐟ²).

    It rises in proportion to ``update`` while that is below ``warmup``, then falls with its root.

    Args:
        update: Number of the update, counted from 1.
        d_model: Width of the model.
        warmup: Number of updates over which the rate rises.
        factor: Multiplies the rate.

    Raises:
        ValueError: A number is below 1.

    Source: Vaswani et al. (2017), equation 3.
    """
    _require_positive(update=update, d_model=d_model, warmup=warmup)
    return factor * d_model**-0.5 * min(update**-0.5, update * warmup**-1.5)


def linear_rate(update: int, *, updates: int, peak: float, warmup: int) -> float:
    """Return a rate that rises to ``peak`` over ``warmup`` updates and then falls to 0 in a line.

    Args:
        update: Number of the update, counted from 1.
        updates: Number of the last update; the one after it would have the rate 0.
        peak: The highest rate, that of update ``warmup``.
        warmup: Number of updates over which the rate rises.

    Raises:
        ValueError: A number is below 1, or there are fewer updates than ``warmup``.
    """
    _require_positive(update=update, updates=updates, warmup=warmup)
    if warmup > updates:
        raise ValueError(f"warmup: expected at most updates = {updates}, got {warmup}")
    return peak * min(update / warmup, max(updates + 1 - update, 0) / (updates + 1 - warmup))


@dataclass(frozen=True)
class TrainingConfig:
    """How to train; the defaults are the paper's (sections 5.3 and 5.4).

    Attributes:
        updates: Number of steps of the optimiser.
        schedule: "noam", the paper's (:func:`noam_rate`), or "linear" (:func:`linear_rate`).
        warmup: Updates over which the rate rises.
        rate: "noam": factor of the paper's rate; "linear": the peak.
        betas: Decay of Adam's two averages.
        eps: Adam's ε.
        weight_decay: Part of each weight that is subtracted, times the rate; not in the paper.
        smoothing: Label smoothing ε.
        spread: How it is spread; see :func:`smoothed_labels`.
        accumulate: Batches per update.
        clip: Longest gradient allowed, over all parameters together; None for any length.
        precision: "float32", or "bfloat16" for automatic mixed precision.
        seed: Starting point of dropout.
        log_every: Updates from one line of the log to the next.
        save_every: Updates from one checkpoint to the next.
        keep: How many checkpoints to keep, the latest ones.

    Raises:
        ValueError: A value is out of range; the message names the field.
    """

    updates: int = 100_000
    schedule: Literal["noam", "linear"] = "noam"
    warmup: int = 4000
    rate: float = 1.0
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9
    weight_decay: float = 0.0
    smoothing: float = 0.1
    spread: Literal["all", "others"] = "all"
    accumulate: int = 1
    clip: float | None = None
    precision: Literal["float32", "bfloat16"] = "float32"
    seed: int = 0
    log_every: int = 100
    save_every: int = 1000
    keep: int = 5

    def __post_init__(self) -> None:
        """Refuse what cannot be trained with, naming the field."""
        require_fields(self)
        for name in ("updates", "warmup", "accumulate", "log_every", "save_every", "keep"):
            _require_positive(**{name: getattr(self, name)})
        if not 0 <= self.smoothing <= 1:
            raise ValueError(f"smoothing: expected a probability from 0 to 1, got {self.smoothing}")
        for name in ("rate", "eps", "clip"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name}: expected a number above 0, got {value}")
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(f"weight_decay: expected 0 or more, got {self.weight_decay}")
        if type(self.betas) is not tuple or not all(type(beta) is float for beta in self.betas):
            raise TypeError(f"betas: expected a tuple of two floats, got {self.betas!r}")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas: expected two numbers from 0 to below 1, got {self.betas}")
        if self.schedule == "linear" and self.warmup > self.updates:
            raise ValueError(
                f"warmup: expected at most updates = {self.updates}, got {self.warmup}"
            )

    def rate_of(self, update: int, d_model: int) -> float:
        """Return the learning rate of an update, counted from 1."""
        if self.schedule == "noam":
            return noam_rate(update, d_model=d_model, warmup=self.warmup, factor=self.rate)
        return linear_rate(update, updates=self.updates, peak=self.rate, warmup=self.warmup)


class StepResult(NamedTuple):
    """What one update measured.

    Attributes:
        loss: Mean loss per target token, in nats.
        tokens: Number of target tokens.
        gradient_norm: Length of the gradient before clipping.
    """

    loss: float
    tokens: int
    gradient_norm: float


def training_step(
    model: nn.Module,
    batches: Sequence[Batch],
    optimizer: torch.optim.Optimizer,
    config: TrainingConfig,
    *,
    padding_id: int = 0,
) -> StepResult:
    """Update the model once, by the mean loss over all target tokens of the batches.

    The mean is taken over the tokens of all batches together, so that several small batches give
    the gradient of one large one, however their tokens are distributed.

    Args:
        model: Called as ``model(source, target)``, returns logits.
        batches: What to learn from.
        optimizer: Has the model's parameters.
        config: ``smoothing``, ``spread``, ``clip`` and ``precision`` are used.
        padding_id: The padding token.

    Raises:
        FloatingPointError: The gradient is not finite; the model is left as it was.
        ValueError: There is nothing to learn from: no label but padding.
    """
    shifted = [(batch.source, *shift_target(batch.target)) for batch in batches]
    tokens = sum(int((labels != padding_id).sum()) for _, _, labels in shifted)
    if not tokens:
        raise ValueError("batches: expected target tokens, got nothing but padding")
    loss = 0.0
    optimizer.zero_grad()
    for source, inputs, labels in shifted:
        half = config.precision == "bfloat16"
        with torch.autocast(source.device.type, torch.bfloat16, enabled=half):
            logits = model(source, inputs)
        part = sequence_loss(
            logits.float() if half else logits,
            labels,
            smoothing=config.smoothing,
            spread=config.spread,
            padding_id=padding_id,
            reduction="sum",
        )
        torch.autograd.backward(part / tokens)
        loss += part.item() / tokens
    longest = math.inf if config.clip is None else config.clip
    norm = nn.utils.clip_grad_norm_(model.parameters(), longest).item()
    if not math.isfinite(norm):
        raise FloatingPointError(f"the gradient is not finite (its norm is {norm}, loss {loss})")
    optimizer.step()
    return StepResult(loss, tokens, norm)


_LOG = "log.jsonl"


def read_log(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return what a :class:`Trainer` has logged into ``folder``, a dictionary a line.

    Each has "update", its number; "loss", the mean over the target tokens since the line before,
    in nats; "rate", of its update; "gradient_norm", the mean before clipping; "tokens", the target
    tokens since the line before; and "seconds" they took. Without a log the list is empty.
    """
    log = Path(folder) / _LOG
    lines = log.read_text(encoding="utf-8").splitlines() if log.is_file() else []
    found = []
    for line in lines:
        with suppress(json.JSONDecodeError):  # a line may be cut by a kill or a full disk
            found.append(json.loads(line))
    return found


def checkpoints(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the checkpoints in ``folder``, the latest last."""
    return sorted(Path(folder).glob("checkpoint-*.safetensors"))


def _read_checkpoint(file: Path, prefix: str = "") -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        with safe_open(file, framework="pt") as opened:
            names = [name for name in opened.keys() if name.startswith(prefix)]  # noqa: SIM118
            progress = json.loads(opened.metadata()["progress"])
            return progress, {name: opened.get_tensor(name) for name in names}
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{file} is no checkpoint of a Trainer, or is damaged: {error}") from None


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def _write_text(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _random_state() -> dict[str, Tensor]:
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def _set_random_state(state: Mapping[str, Tensor]) -> None:
    torch.set_rng_state(state["cpu"])
    if torch.cuda.is_available() and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"])


def _require_fit(batches: Batches, model: Transformer) -> None:
    """Raise unless the model can read every pair, before any time goes into training it."""
    config = model.config
    if batches.padding_id != config.padding_id:
        raise ValueError(
            f"batches: expected the model's padding_id = {config.padding_id}, "
            f"got {batches.padding_id}"
        )
    limits = (config.source_vocabulary, 0), (config.target_vocabulary, 1)
    for number, pair in enumerate(batches.pairs):
        for side, (vocabulary, unread) in zip(pair, limits, strict=True):
            if not 0 <= min(side) <= max(side) < vocabulary:
                raise ValueError(
                    f"batches: expected ids from 0 to {vocabulary - 1}, "
                    f"pair {number} has {min(side)} to {max(side)}"
                )
            if config.positions != "none" and len(side) - unread > config.max_length:
                raise ValueError(
                    f"batches: expected at most max_length = {config.max_length} tokens, "
                    f"pair {number} has {len(side) - unread}"
                )


class Trainer:
    """Trains a model, writes checkpoints and a log, and goes on where a run was stopped.

    ::

        trainer = Trainer(model, batches, TrainingConfig(updates=1000), folder="run")
        trainer.resume()  # does nothing the first time
        trainer.train()

    Stopped at any moment and started again, these lines end with the weights they would have had
    without the stop: to the last bit, on the same CPU with as many threads.

    Args:
        model: What to train; it stays on its device.
        batches: What to train on.
        config: How to train.
        folder: Where checkpoints and the log go; None writes neither.

    Raises:
        NotADirectoryError: ``folder`` is a file.
        ValueError: The batches do not fit the model: another ``padding_id``, an id that is not in
            its vocabulary, or a sentence that is longer than its table of positions.
    """

    def __init__(
        self,
        model: Transformer,
        batches: Batches,
        config: TrainingConfig,
        *,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self.model = model
        self.batches = batches
        self.config = config
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None and self.folder.is_file():
            raise NotADirectoryError(f"folder: expected a folder, {folder} is a file")
        _require_fit(batches, model)
        self.optimizer = torch.optim.Adam(
            model.parameters(),
            betas=config.betas,
            eps=config.eps,
            weight_decay=config.weight_decay,
            decoupled_weight_decay=True,
        )
        self.updates_done = 0
        self._place = (0, 0)  # epoch, and batches of it already taken
        self._log: list[dict[str, Any]] = []
        torch.manual_seed(config.seed)
        self._random = _random_state()

    def train(self, updates: int | None = None, *, progress: bool = True) -> list[dict[str, Any]]:
        """Make the given number of updates, by default those that are left of the config's.

        The model is in evaluation mode afterwards.

        Args:
            updates: How many updates to make, at most those that are left.
            progress: Show a bar when run in a terminal.

        Returns:
            The log so far; the columns are those of :func:`read_log`.

        Raises:
            FloatingPointError: The gradient is not finite. The last checkpoint is intact.
            OSError: A checkpoint or the log cannot be written. The last checkpoint is intact.
            ValueError: The folder has checkpoints from later in a run, which would be lost: resume,
                or take another folder.
        """
        self._require_no_later_checkpoint()
        left = self.config.updates - self.updates_done
        end = self.updates_done + (left if updates is None else min(updates, left))
        device = next(self.model.parameters()).device
        stream = self.batches.stream(*self._place)
        self.model.train()
        _set_random_state(self._random)
        bar = tqdm(
            total=self.config.updates,
            initial=self.updates_done,
            disable=None if progress else True,
            unit="update",
        )
        recent: list[StepResult] = []
        start = time.perf_counter()
        with bar:
            while self.updates_done < end:
                taken = []
                for _ in range(self.config.accumulate):
                    batch, *place = next(stream)
                    taken.append(Batch(*(side.to(device) for side in batch)))
                rate = self.config.rate_of(self.updates_done + 1, self.model.config.d_model)
                for group in self.optimizer.param_groups:
                    group["lr"] = rate
                recent.append(
                    training_step(
                        self.model,
                        taken,
                        self.optimizer,
                        self.config,
                        padding_id=self.batches.padding_id,
                    )
                )
                self.updates_done += 1
                self._place = (place[0], place[1])
                self._random = _random_state()
                bar.update()
                if self.updates_done % self.config.log_every == 0 or self.updates_done == end:
                    seconds = time.perf_counter() - start
                    self._write_log(recent, rate, seconds)
                    bar.set_postfix(loss=f"{self._log[-1]['loss']:.3f}")
                    recent, start = [], time.perf_counter()
                if self.folder and (
                    self.updates_done % self.config.save_every == 0 or self.updates_done == end
                ):
                    self.save()
        self.model.eval()
        return self._log

    def save(self) -> Path:
        """Write a checkpoint in one step, remove those beyond ``keep``, and return its path.

        It holds the weights, Adam's state, the state of the random numbers and the place in the
        data. It is written beside the others and renamed when it is complete, so that whatever
        happens meanwhile, what bears a checkpoint's name is one.

        Raises:
            OSError: It cannot be written, as when the disk is full; the last one is intact.
            ValueError: The trainer has no folder.
        """
        if self.folder is None:
            raise ValueError("folder: expected a folder to save in, got None")
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            for key, tensor in self.optimizer.state[parameter].items():
                tensors[f"optimizer.{key}.{name}"] = tensor
        tensors |= {f"random.{name}": state for name, state in self._random.items()}
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / self._name()
        part = self.folder / "checkpoint.part"
        try:
            save_file(
                {name: tensor.contiguous() for name, tensor in tensors.items()},
                part,
                metadata={"progress": json.dumps(self._progress())},
            )
            with part.open("rb+") as written:
                os.fsync(written.fileno())
            part.replace(path)
        except (OSError, SafetensorError) as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise OSError(f"folder: cannot write {path}: {error}") from None
        for old in checkpoints(self.folder)[: -self.config.keep]:
            old.unlink(missing_ok=True)
        return path

    def resume(self) -> bool:
        """Go back to the state of the latest checkpoint in the folder, if there is one.

        Returns:
            Whether there was one.

        Raises:
            ValueError: The trainer has no folder; the file is no checkpoint; it belongs to another
                model, to other data or to a run with other settings. ``log_every``,
                ``save_every``, ``keep`` and, with the "noam" schedule, ``updates`` may change.
        """
        if self.folder is None:
            raise ValueError("folder: expected a folder to resume from, got None")
        saved = checkpoints(self.folder)
        if not saved:
            if (self.folder / _LOG).exists():  # of a run that was stopped before it could save
                _write_text(self.folder / _LOG, "")
            return False
        progress, tensors = _read_checkpoint(saved[-1])
        self._require_same_run(progress)
        weights = _part(tensors, "model.")
        require_state(self.model, weights)
        self.model.load_state_dict(weights)
        parameters = dict(self.model.named_parameters())
        for key in ("step", "exp_avg", "exp_avg_sq"):
            for name, tensor in _part(tensors, f"optimizer.{key}.").items():
                device = "cpu" if key == "step" else parameters[name].device
                self.optimizer.state[parameters[name]][key] = tensor.to(device)
        self._random = _part(tensors, "random.")
        self.updates_done = progress["update"]
        self._place = (progress["place"][0], progress["place"][1])
        self._log = [line for line in read_log(self.folder) if line["update"] <= self.updates_done]
        lines = "".join(json.dumps(line) + "\n" for line in self._log)
        _write_text(self.folder / _LOG, lines)
        return True

    def _progress(self) -> dict[str, Any]:
        """Return what a checkpoint says in words: where the run is, and which run it is."""
        return {
            "update": self.updates_done,
            "place": self._place,
            "model": asdict(self.model.config),
            "training": asdict(self.config),
            "data": {
                "pairs": self._digest,
                "tokens_per_batch": self.batches.tokens_per_batch,
                "seed": self.batches.seed,
            },
        }

    @cached_property
    def _digest(self) -> str:
        pairs = json.dumps([[list(source), list(target)] for source, target in self.batches.pairs])
        return hashlib.sha256(pairs.encode()).hexdigest()

    def _require_same_run(self, saved: dict[str, Any]) -> None:
        """Raise unless a checkpoint is of this run: its numbers would be those of neither."""
        mine = json.loads(json.dumps(self._progress()))
        may_change = {"log_every", "save_every", "keep"}
        if self.config.schedule == "noam":
            may_change.add("updates")
        for argument, part in (("model", "model"), ("config", "training"), ("batches", "data")):
            theirs = saved.get(part, mine[part])
            changed = [
                f"{name} = {theirs.get(name)!r}, now {value!r}"
                for name, value in mine[part].items()
                if name not in may_change and theirs.get(name) != value
            ]
            if changed:
                raise ValueError(
                    f"{argument}: the checkpoint in {self.folder} has {'; '.join(changed)}"
                )

    def _require_no_later_checkpoint(self) -> None:
        """Raise before a run that was not resumed mixes with, and removes, what it left."""
        saved = checkpoints(self.folder) if self.folder else []
        if saved and saved[-1].name > self._name():
            raise ValueError(
                f"folder: {self.folder} has {saved[-1].name}, this run is at update "
                f"{self.updates_done}; resume it or take another folder"
            )

    def _name(self) -> str:
        return f"checkpoint-{self.updates_done:08d}.safetensors"

    def _write_log(self, steps: Sequence[StepResult], rate: float, seconds: float) -> None:
        tokens = sum(step.tokens for step in steps)
        line = {
            "update": self.updates_done,
            "loss": sum(step.loss * step.tokens for step in steps) / tokens,
            "rate": rate,
            "gradient_norm": sum(step.gradient_norm for step in steps) / len(steps),
            "tokens": tokens,
            "seconds": round(seconds, 3),
        }
        self._log.append(line)
        if self.folder:
            self.folder.mkdir(parents=True, exist_ok=True)
            with (self.folder / _LOG).open("a", encoding="utf-8") as log:
                log.write(json.dumps(line) + "\n")


def average_checkpoints(files: Sequence[str | os.PathLike[str]]) -> dict[str, Tensor]:
    """Return the mean of the weights of several checkpoints, ready for ``load_state_dict``.

    Args:
        files: Checkpoints of one model, as :func:`checkpoints` lists them.

    Raises:
        ValueError: There are none, one is no checkpoint, or they are not of one model.

    Source: Vaswani et al. (2017), section 6.1.
    """
    if not files:
        raise ValueError("files: expected at least one checkpoint, got none")
    states = [_part(_read_checkpoint(Path(file), "model.")[1], "model.") for file in files]
    for file, state in zip(files, states, strict=True):
        if {n: t.shape for n, t in state.items()} != {n: t.shape for n, t in states[0].items()}:
            raise ValueError(f"files: {file} is of another model than {files[0]}")
    return {name: torch.stack([state[name] for state in states]).mean(dim=0) for name in states[0]}
