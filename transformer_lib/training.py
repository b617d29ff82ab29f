"""Training: from pairs of sentences to weights, in a run that can be stopped and resumed.

Explained in chapter 12, "Training" (book/12_training.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

import itertools
import math
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib._checks import training as check
from transformer_lib.checkpoints import Run, identify, own_config, read_checkpoint

__all__ = [
    "Batch",
    "Batches",
    "StepResult",
    "TokenLoss",
    "Trainer",
    "TrainingConfig",
    "average_checkpoints",
    "linear_learning_rate",
    "noam_learning_rate",
    "pad",
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
        target: Token ids, from the start token to the end token, padded.
    """
    check.shift_target(target)
    return target[:, :-1], target[:, 1:]


class Batch(NamedTuple):
    """Source and target sentences, padded to a rectangle each."""

    source: Int[Tensor, "batch source"]
    target: Int[Tensor, "batch target"]


def pad(sentences: Sequence[Sequence[int]], *, padding_id: int = 0) -> Int[Tensor, "batch length"]:
    """Put sentences of token ids into one tensor, as long as the longest, padded at their ends."""
    check.pad(sentences, padding_id)
    length = max(map(len, sentences), default=0)
    rows = [[*sentence, *[padding_id] * (length - len(sentence))] for sentence in sentences]
    return torch.tensor(rows, dtype=torch.int64).reshape(len(sentences), length)


class Batches:
    """Pairs of sentences in batches of like length, in another order every epoch, without end.

    ``batches[n]`` is batch number n, from 0 on, whenever it is asked for: the order follows from
    ``seed`` and the epoch's number alone.

    Args:
        pairs: Token ids of source and target sentences; targets from start to end token.
        tokens_per_batch: No batch has more rows times columns than this, on either side; a
            sentence that is longer makes a batch of its own.
        padding_id: The padding token.
        seed: Starting point of the order.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
        *,
        tokens_per_batch: int,
        padding_id: int = 0,
        seed: int = 0,
    ) -> None:
        check.batches(pairs, tokens_per_batch, padding_id, seed)
        self.pairs = pairs
        self.tokens_per_batch = tokens_per_batch
        self.padding_id = padding_id
        self.seed = seed
        self._current = 0, self.epoch(0)
        self.per_epoch = len(self._current[1])  # of every epoch: it has the same lengths

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

    def __getitem__(self, number: int) -> Batch:
        check.batch_number(number)
        epoch, place = divmod(number, self.per_epoch)
        if epoch != self._current[0]:
            self._current = epoch, self.epoch(epoch)
        return self.batch(self._current[1][place])

    def __iter__(self) -> Iterator[Batch]:
        return map(self.__getitem__, itertools.count())

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What a checkpoint remembers of the data, to know it again."""
        return {
            "pairs": identify(self.pairs),
            "tokens_per_batch": self.tokens_per_batch,
            "padding_id": self.padding_id,
            "seed": self.seed,
        }


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
        labels: Token ids.
        vocabulary_size: Number of tokens, V.
        smoothing: Probability ε that is taken from the label and spread.
        spread: "all" gives ε / V to every token, the label and padding among them, as PyTorch
            does; "others" gives ε / (V − 2) to every token but the label and padding, as many
            early implementations of the paper do.
        padding_id: The padding token; its own rows are zero, all others sum to 1.

    Source: Szegedy et al. (2016), section 7; Vaswani et al. (2017), section 5.4 (ε = 0.1).
    """
    check.smoothed_labels(labels, vocabulary_size, smoothing, spread, padding_id)
    real = labels != padding_id
    label = F.one_hot(labels.masked_fill(~real, 0).long(), vocabulary_size)
    label = label.to(torch.get_default_dtype())
    if spread == "all":
        rows = (1 - smoothing) * label + smoothing / vocabulary_size
    else:
        others = 1 - label
        others[..., padding_id] = 0
        rows = (1 - smoothing) * label + smoothing / (vocabulary_size - 2) * others
    return rows * real.unsqueeze(-1)


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

    A token of probability 0 costs nothing where its label has none either, and is infinite where it
    has some.

    Args:
        logits: Logits, not probabilities.
        labels: Token ids.
        smoothing: As in :func:`smoothed_labels`.
        spread: As there.
        padding_id: Labels of this id are neither predicted nor counted; the end token is both.
        reduction: "mean" over the labels that count, or their "sum"; 0 if no label counts.

    Source: Szegedy et al. (2016), section 7.
    """
    check.sequence_loss(logits, labels, smoothing, spread, padding_id, reduction)
    logits, labels = logits.flatten(0, -2), labels.flatten().long()
    if spread == "all":
        total = F.cross_entropy(
            logits, labels, ignore_index=padding_id, label_smoothing=smoothing, reduction="sum"
        )
    else:
        log_probabilities = F.log_softmax(logits, dim=-1)
        label = log_probabilities.gather(1, labels[:, None]).squeeze(1)
        # Zero, not −∞ times zero, where nothing is expected.
        no_mass = torch.zeros_like(logits, dtype=torch.bool).scatter_(1, labels[:, None], True)
        no_mass[:, padding_id] = True
        others = log_probabilities.masked_fill(no_mass, 0).sum(dim=-1)
        losses = torch.zeros_like(label)
        if smoothing < 1:
            losses = losses - (1 - smoothing) * label
        if smoothing > 0:
            losses = losses - smoothing / (logits.shape[-1] - 2) * others
        total = losses.masked_fill(labels == padding_id, 0).sum()
    if reduction == "sum":
        return total
    return total / (labels != padding_id).sum().clamp(min=1)


def noam_learning_rate(
    step: int, *, d_model: int, warmup: int = 4000, factor: float = 1.0
) -> float:
    """Return the paper's learning rate: factor · d_model^−½ · min(step^−½, step · warmup^−³ᐟ²).

    Args:
        step: Number of the step, counted from 1.
        d_model: Width of the model.
        warmup: Number of steps over which the rate rises.
        factor: Multiplies the rate.

    Source: Vaswani et al. (2017), equation 3.
    """
    check.noam_learning_rate(step, d_model, warmup)
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def linear_learning_rate(step: int, *, steps: int, peak: float, warmup: int) -> float:
    """Return a rate that rises to ``peak`` over ``warmup`` steps and then falls to 0 in a line.

    Args:
        step: Number of the step, counted from 1.
        steps: Number of the last step; the one after it would have the rate 0.
        peak: The highest rate, that of step ``warmup``.
        warmup: Number of steps over which the rate rises.
    """
    check.linear_learning_rate(step, steps, warmup)
    return peak * min(step / warmup, max(steps + 1 - step, 0) / (steps + 1 - warmup))


@dataclass(frozen=True)
class TrainingConfig:
    """How to train; the defaults are the paper's (sections 5.3 and 5.4)."""

    steps: int = 100_000  # steps of the optimiser
    # "noam", the paper's (:func:`noam_learning_rate`), or "linear" (:func:`linear_learning_rate`)
    schedule: Literal["noam", "linear"] = "noam"
    warmup: int = 4000  # steps over which the learning rate rises
    learning_rate: float = 1.0  # "noam": factor of the paper's; "linear": the peak
    betas: tuple[float, float] = (0.9, 0.98)  # decay of Adam's two averages
    eps: float = 1e-9  # Adam's ε
    # part of each weight that is subtracted, times the learning rate; not in the paper
    weight_decay: float = 0.0
    smoothing: float = 0.1  # label smoothing ε of :class:`TokenLoss`
    spread: Literal["all", "others"] = "all"  # how it is spread, see :func:`smoothed_labels`
    accumulate: int = 1  # batches a step
    clip: float | None = None  # longest gradient allowed, over all parameters together
    # "bfloat16" for automatic mixed precision
    precision: Literal["float32", "bfloat16"] = "float32"
    seed: int = 0  # starting point of dropout
    log_every: int = 100  # steps from one line of the log to the next
    save_every: int = 1000  # steps from one checkpoint to the next
    keep: int = 5  # how many checkpoints to keep, the latest ones

    def __post_init__(self) -> None:
        check.training_config(self)

    def learning_rate_at(self, step: int, d_model: int) -> float:
        """Return the learning rate of a step, counted from 1."""
        if self.schedule == "noam":
            return noam_learning_rate(
                step, d_model=d_model, warmup=self.warmup, factor=self.learning_rate
            )
        return linear_learning_rate(
            step, steps=self.steps, peak=self.learning_rate, warmup=self.warmup
        )


@dataclass(frozen=True)
class TokenLoss:
    """What is made small when a model learns text: :func:`sequence_loss` of a batch's targets."""

    smoothing: float = 0.1  # as in :func:`smoothed_labels`
    spread: Literal["all", "others"] = "all"  # as there
    padding_id: int = 0  # as there

    def count(self, batch: Batch) -> int:
        """Return how many tokens a batch has to predict."""
        return int((shift_target(batch.target)[1] != self.padding_id).sum())

    def __call__(self, model: nn.Module, batch: Batch) -> Float[Tensor, ""]:
        """Return the sum of their losses; ``model(source, target)`` gives the logits."""
        device = next(model.parameters()).device
        inputs, labels = shift_target(batch.target.to(device))
        logits = model(batch.source.to(device), inputs)
        return sequence_loss(
            logits.to(torch.promote_types(logits.dtype, torch.float32)),
            labels,
            smoothing=self.smoothing,
            spread=self.spread,
            padding_id=self.padding_id,
            reduction="sum",
        )


@dataclass(frozen=True)
class StepResult:
    """What one step has measured."""

    loss: float  # mean over all that is counted; for text, in nats per target token
    count: int  # what :meth:`TokenLoss.count` has counted
    gradient_norm: float  # length of the gradient before clipping


def training_step(
    model: nn.Module,
    batches: Sequence[Any],
    optimizer: torch.optim.Optimizer,
    loss: Callable[[nn.Module, Any], Tensor],
    *,
    clip: float | None = None,
    precision: Literal["float32", "bfloat16"] = "float32",
) -> StepResult:
    """Move the weights once, by the mean loss over all that the batches count together.

    If the gradient is not finite, FloatingPointError leaves the weights as they were.

    Args:
        model: What to train.
        batches: What to learn from; several give the gradient of one large one.
        optimizer: Has the model's parameters.
        loss: Called with model and batch. Its method ``count`` says of how many things it returns
            the sum, as :class:`TokenLoss`; without one each batch counts as one thing.
        clip: As in :class:`TrainingConfig`.
        precision: As there.
    """
    counts = [loss.count(batch) if hasattr(loss, "count") else 1 for batch in batches]
    count = sum(counts)
    check.training_step(count)
    device = next(model.parameters()).device.type
    mean = 0.0
    optimizer.zero_grad()
    for batch in batches:
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bfloat16"):
            part = loss(model, batch) / count
        torch.autograd.backward(part)
        mean += part.item()
    norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf if clip is None else clip).item()
    if not math.isfinite(norm):
        raise FloatingPointError(f"the gradient is not finite (its norm is {norm}, loss {mean})")
    optimizer.step()
    return StepResult(mean, count, norm)


class Trainer:
    """Trains a model, writes checkpoints and a log, and goes on where a run was stopped.

    Args:
        model: What to train; it stays on its device.
        batches: What to train on: ``batches[n]`` is batch number n, counted from 0.
        config: How to train.
        loss: As in :func:`training_step`; by default a :class:`TokenLoss`.
        schedule: Returns the learning rate of a step, counted from 1; by default the config's.
        parameters: Groups of parameters, if not all are trained alike. A group's "scale", as in
            ``{"params": …, "scale": 10.0}``, multiplies its learning rate.
        validate: Called in evaluation mode before each checkpoint; its numbers go into the log.
        folder: Where checkpoints and the log go; None writes neither.
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Any,
        config: TrainingConfig,
        *,
        loss: Callable[[nn.Module, Any], Tensor] | None = None,
        schedule: Callable[[int], float] | None = None,
        parameters: Sequence[dict[str, Any]] | None = None,
        validate: Callable[[], Mapping[str, float]] | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        check.trainer(model, batches, config, loss, schedule, folder)
        self.model, self.batches, self.config, self.validate = model, batches, config, validate
        self.loss = loss or TokenLoss(config.smoothing, config.spread, batches.padding_id)
        width = getattr(own_config(model), "d_model", 1)
        self.schedule = schedule or (lambda step: config.learning_rate_at(step, width))
        self.optimizer = torch.optim.AdamW(
            parameters or model.parameters(),
            betas=config.betas,
            eps=config.eps,
            weight_decay=config.weight_decay,
        )
        longer = schedule is not None or config.schedule == "noam"
        self.run = Run(model, self.optimizer, folder, config, batches, may_be_longer=longer)

    def train(self, steps: int | None = None, *, progress: bool = True) -> list[dict[str, Any]]:
        """Make so many steps, by default all that are left of the config's; return the log so far.

        The model is in evaluation mode afterwards. FloatingPointError, if the gradient is not
        finite, and OSError, if something cannot be written, leave the last checkpoint intact.

        Args:
            steps: How many steps to make, at most those that are left.
            progress: Show a bar when run in a terminal.
        """
        check.train(steps)
        run, config = self.run, self.config
        left = config.steps - run.step
        end = run.step + (left if steps is None else min(steps, left))
        with run.at_work(), run.bar(end, hidden=not progress) as bar:
            recent, start = [], time.perf_counter()
            for step in bar:
                recent.append(self._step(step))
                saves = step % config.save_every == 0 or step == end
                if saves or step % config.log_every == 0:
                    seconds = time.perf_counter() - start
                    run.note(recent, self.schedule(step), seconds, self.validate if saves else None)
                    bar.set_postfix(loss=f"{run.log[-1]['loss']:.3f}", refresh=False)
                    if saves:
                        run.save()
                    recent, start = [], time.perf_counter()
        return run.log

    def _step(self, step: int) -> StepResult:
        first = (step - 1) * self.config.accumulate
        batches = [self.batches[first + part] for part in range(self.config.accumulate)]
        for group in self.optimizer.param_groups:
            group["lr"] = self.schedule(step) * group.get("scale", 1.0)
        result = training_step(
            self.model,
            batches,
            self.optimizer,
            self.loss,
            clip=self.config.clip,
            precision=self.config.precision,
        )
        self.run.advance()
        return result

    @property
    def steps_done(self) -> int:
        """How many steps the run has made."""
        return self.run.step

    def save(self) -> Path:
        """Write a checkpoint in one step, remove those beyond ``keep``, and return its path.

        It holds the weights, Adam's state, the state of the random numbers and the step's number.
        OSError, as when the disk is full, leaves the last one intact.
        """
        check.saving(self.run.folder)
        return cast("Path", self.run.save())

    def resume(self) -> bool:
        """Go back to the latest checkpoint in the folder; return whether there was one.

        One that is of another model, of other data or of a run with other settings is refused.
        ``log_every``, ``save_every``, ``keep`` and, with the "noam" schedule, ``steps`` may change.
        """
        check.resuming(self.run.folder)
        return self.run.resume()


def average_checkpoints(files: Sequence[str | os.PathLike[str]]) -> dict[str, Tensor]:
    """Return the mean of the weights of several checkpoints, ready for ``load_state_dict``.

    Args:
        files: Checkpoints of one model, as ``checkpoints.list_checkpoints`` lists them.

    Source: Vaswani et al. (2017), section 6.1.
    """
    check.average_checkpoints(files)
    states = [read_checkpoint(file, "model.")[1] for file in files]
    check.same_shapes(files, states)
    return {
        name.removeprefix("model."): torch.stack([state[name] for state in states]).mean(dim=0)
        for name in states[0]
    }
