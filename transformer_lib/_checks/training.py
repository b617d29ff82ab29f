"""What training asks of its arguments: chapter 12."""

import math
import os
from collections.abc import Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lib._checks.common import require_fields
from transformer_lib.checkpoints import own_config, unwrapped


def shift_target(target: Any) -> None:
    """Refuse a target without a start token and one more."""
    _require_ids("target", target)
    if target.dim() != 2 or target.shape[1] < 2:
        raise ValueError(
            "target: expected shape (batch, length) with a start token and one more, "
            f"got {tuple(target.shape)}"
        )


def pad(sentences: Any, padding_id: Any) -> None:
    """Refuse what would be cut to whole numbers."""
    _require_whole(padding_id=padding_id)
    for number, sentence in enumerate(sentences):
        _require_whole_ids(f"sentences[{number}]", sentence)


def batches(pairs: Any, tokens_per_batch: Any, padding_id: Any, seed: Any) -> None:
    """Refuse pairs that nothing can be learnt from."""
    _require_positive(tokens_per_batch=tokens_per_batch)
    _require_whole(padding_id=padding_id, seed=seed)
    if not len(pairs):
        raise ValueError("pairs: expected at least one pair, got none")
    for number, pair in enumerate(pairs):
        if isinstance(pair, str) or len(pair) != 2:
            raise ValueError(f"pairs: expected (source, target), pair {number} is {pair!r}")
        source, target = pair
        if not len(source) or len(target) < 2:
            raise ValueError(
                "pairs: expected source tokens, and a target's start token and one more; "
                f"pair {number} has {len(source)} and {len(target)}"
            )
        _require_whole_ids(f"pairs: the source of pair {number}", source)
        _require_whole_ids(f"pairs: the target of pair {number}", target)


def batch_number(number: Any) -> None:
    """Refuse what is the number of no batch."""
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"number: expected a whole number, got {number!r}")
    if number < 0:
        raise IndexError(f"number: expected 0 or more, got {number}")


def smoothed_labels(
    labels: Any, vocabulary_size: Any, smoothing: Any, spread: Any, padding_id: Any
) -> None:
    """Refuse labels that have no row among ``vocabulary_size``."""
    _require_positive(vocabulary_size=vocabulary_size)
    _require_smoothing(smoothing, spread, vocabulary_size, padding_id)
    _require_labels(labels, vocabulary_size, padding_id)


def sequence_loss(
    logits: Any, labels: Any, smoothing: Any, spread: Any, padding_id: Any, reduction: Any
) -> None:
    """Refuse logits and labels that do not belong together."""
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        came = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
        raise TypeError(f"logits: expected a floating-point tensor, got {came}")
    if not isinstance(labels, Tensor) or logits.shape[:-1] != labels.shape or not logits.dim():
        _require_ids("labels", labels)
        raise ValueError(
            f"labels: expected shape {tuple(logits.shape[:-1])} as the logits have, "
            f"got {tuple(labels.shape)}"
        )
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction: expected 'mean' or 'sum', got {reduction!r}")
    _require_smoothing(smoothing, spread, logits.shape[-1], padding_id)
    _require_labels(labels, logits.shape[-1], padding_id)


def noam_learning_rate(step: Any, d_model: Any, warmup: Any) -> None:
    """Refuse numbers below 1: at step 0 the formula divides by 0."""
    _require_positive(step=step, d_model=d_model, warmup=warmup)


def linear_learning_rate(step: Any, steps: Any, warmup: Any) -> None:
    """Refuse numbers below 1 and a warm-up that never ends."""
    _require_positive(step=step, steps=steps, warmup=warmup)
    if warmup > steps:
        raise ValueError(f"warmup: expected at most steps = {steps}, got {warmup}")


def training_config(config: Any) -> None:
    """Refuse what cannot be trained with, naming the field."""
    require_fields(config)
    for name in ("steps", "warmup", "accumulate", "log_every", "save_every", "keep"):
        _require_positive(**{name: getattr(config, name)})
    _require_probability(config.smoothing)
    for name in ("learning_rate", "eps", "clip"):
        value = getattr(config, name)
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name}: expected a number above 0, got {value}")
    if not 0 <= config.weight_decay < math.inf:
        raise ValueError(f"weight_decay: expected 0 or more, got {config.weight_decay}")
    betas = config.betas
    if type(betas) is not tuple or not all(type(beta) is float for beta in betas):
        raise TypeError(f"betas: expected a tuple of two floats, got {betas!r}")
    if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
        raise ValueError(f"betas: expected two numbers from 0 to below 1, got {betas}")
    if config.schedule == "linear" and config.warmup > config.steps:
        raise ValueError(f"warmup: expected at most steps = {config.steps}, got {config.warmup}")


def training_step(count: int) -> None:
    """Refuse a step that nothing could be learnt in."""
    if not torch.is_grad_enabled() or torch.is_inference_mode_enabled():
        raise RuntimeError(
            "training_step: expected gradients, which torch.no_grad or torch.inference_mode has "
            "turned off; call it outside of them"
        )
    if not count:
        raise ValueError("batches: expected target tokens, got nothing but padding")


def trainer(model: Any, batches: Any, config: Any, loss: Any, schedule: Any, folder: Any) -> None:
    """Refuse what does not fit, before any time goes into it."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: expected a module, got {type(model).__name__}")
    if any(parameter.is_inference() for parameter in model.parameters()):
        raise ValueError(
            "model: its weights were made under torch.inference_mode and can never be trained; "
            "make the model outside of it"
        )
    if not hasattr(batches, "__getitem__"):
        raise TypeError(f"batches: expected batches by number, got {type(batches).__name__}")
    if folder is not None and Path(folder).exists() and not Path(folder).is_dir():
        raise NotADirectoryError(f"folder: expected a folder, {folder} is a file")
    inside = own_config(model)
    if schedule is None and config.schedule == "noam" and not hasattr(inside, "d_model"):
        raise ValueError(
            "config: schedule 'noam' needs the d_model of model.config, and "
            f"{type(unwrapped(model)).__name__} has none"
        )
    if loss is None:
        _require_readable(batches, inside)


def train(steps: Any) -> None:
    """Refuse a number of steps that is none."""
    if steps is not None and type(steps) is not int:
        raise TypeError(f"steps: expected a whole number or None, got {steps!r}")
    if steps is not None and steps < 0:
        raise ValueError(f"steps: expected 0 or more, got {steps}")


def saving(folder: Any) -> None:
    """Refuse to save nowhere."""
    if folder is None:
        raise ValueError("folder: expected a folder to save in, got None")


def resuming(folder: Any) -> None:
    """Refuse to resume from nowhere."""
    if folder is None:
        raise ValueError("folder: expected a folder to resume from, got None")


def average_checkpoints(files: Any) -> None:
    """Refuse what is no list of files."""
    if isinstance(files, str | os.PathLike) or not isinstance(files, Iterable):
        raise TypeError(f"files: expected a list of checkpoints, got {files!r}")
    if not files:
        raise ValueError("files: expected at least one checkpoint, got none")


def same_shapes(files: Sequence[Any], states: Sequence[dict[str, Tensor]]) -> None:
    """Refuse checkpoints of which one is of another model than the first."""
    first = {name: tensor.shape for name, tensor in states[0].items()}
    for file, state in zip(files, states, strict=True):
        if {name: tensor.shape for name, tensor in state.items()} != first:
            raise ValueError(f"files: {file} is of another model than {files[0]}")


def _require_readable(batches: Any, config: Any) -> None:
    """Raise unless the model can read every pair."""
    if not hasattr(batches, "pairs") or not hasattr(config, "target_vocabulary"):
        raise TypeError(
            "loss: expected one, as the model is no Transformer or the batches have no pairs"
        )
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


def _require_positive(**numbers: Any) -> None:
    for name, number in numbers.items():
        if type(number) is not int:
            raise TypeError(f"{name}: expected a whole number, got {number!r}")
        if number < 1:
            raise ValueError(f"{name}: expected 1 or more, got {number}")


def _require_whole(**numbers: Any) -> None:
    for name, number in numbers.items():
        if type(number) is not int:
            raise TypeError(f"{name}: expected a whole number, got {number!r}")


def _require_whole_ids(where: str, ids: Sequence[Any]) -> None:
    """Raise TypeError unless all are whole numbers, of Python or NumPy."""
    kinds = set(map(type, ids))
    if kinds <= {int}:
        return
    for kind in kinds:
        if issubclass(kind, bool) or not issubclass(kind, Integral):
            raise TypeError(f"{where}: expected token ids, whole numbers, got {kind.__name__}")


def _require_smoothing(smoothing: Any, spread: Any, vocabulary_size: int, padding_id: Any) -> None:
    _require_probability(smoothing)
    if spread not in ("all", "others"):
        raise ValueError(f"spread: expected 'all' or 'others', got {spread!r}")
    if spread == "others" and vocabulary_size < 3:
        raise ValueError(
            "spread: 'others' needs a token beside the label and padding, "
            f"got a vocabulary of {vocabulary_size}"
        )
    if spread == "others" and not 0 <= padding_id < vocabulary_size:
        raise ValueError(
            f"padding_id: 'others' needs one from 0 to {vocabulary_size - 1}, got {padding_id}"
        )


def _require_probability(smoothing: Any) -> None:
    if not 0 <= smoothing <= 1:
        raise ValueError(f"smoothing: expected a probability from 0 to 1, got {smoothing}")


def _require_ids(name: str, ids: Any) -> None:
    """Raise TypeError unless a tensor holds whole numbers; anything else would be cut to them."""
    if not isinstance(ids, Tensor):
        raise TypeError(f"{name}: expected a tensor of token ids, got {type(ids).__name__}")
    if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise TypeError(f"{name}: expected whole numbers, token ids, got {ids.dtype}")


def _require_labels(labels: Any, vocabulary_size: int, padding_id: Any) -> None:
    """Raise unless all labels but padding are in the vocabulary; values on the CPU only."""
    _require_ids("labels", labels)
    if labels.device.type != "cpu" or torch.compiler.is_compiling() or not labels.numel():
        return
    real = labels[labels != padding_id]
    if real.numel() and not (real.min() >= 0 and real.max() < vocabulary_size):
        raise ValueError(
            f"labels: expected ids from 0 to {vocabulary_size - 1}, or padding_id = {padding_id}, "
            f"got {int(real.min())} to {int(real.max())}"
        )
