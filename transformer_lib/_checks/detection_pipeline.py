"""What the object detection pipeline and fine-tuning ask of their arguments."""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any

import torch
from torch import nn

from transformer_lib._checks.common import require_corners, require_dataset, require_pixels

# The pipeline


def detection_pipeline(processor: Any, threshold: Any, batch_size: Any) -> None:
    """Stand before ``ObjectDetectionPipeline``."""
    pipeline_call(threshold, batch_size)
    if not callable(processor):
        raise TypeError(f"processor: expected an ImageProcessor, got {processor!r}")


def pipeline_call(threshold: Any, batch_size: Any) -> None:
    """Stand before a call of the pipeline."""
    if isinstance(threshold, bool) or not isinstance(threshold, Real):
        raise TypeError(f"threshold: expected a number from 0 to 1, got {threshold!r}")
    if not 0 <= float(threshold) <= 1:
        raise ValueError(f"threshold: expected a number from 0 to 1, got {threshold}")
    if isinstance(batch_size, bool) or not isinstance(batch_size, Integral):
        raise TypeError(f"batch_size: expected a whole number, got {batch_size!r}")
    if batch_size < 1:
        raise ValueError(f"batch_size: expected 1 or more, got {batch_size}")


def pictures(images: Any) -> None:
    """Stand before several pictures; of sets and mappings, order or values are not meant."""
    is_dataset = hasattr(images, "__getitem__") and hasattr(images, "__len__")
    if isinstance(images, Mapping | set | frozenset) or not (
        isinstance(images, Iterable) or is_dataset
    ):
        raise TypeError(
            "images: expected a picture (a path, an address, bytes, a PIL image, an array, a "
            f"tensor), or a list, generator or dataset of pictures, got {type(images).__name__}"
        )


def pipeline(task: Any, model: Any, kind: type, image_processor: Any, dtype: Any) -> None:
    """Stand before the function of this name; ``kind`` is that of models which are no names."""
    if task != "object-detection":
        raise ValueError(f"task: expected 'object-detection', got {task!r}")
    if dtype is not None and not isinstance(dtype, torch.dtype):
        raise TypeError(f"dtype: expected a type such as torch.float16, got {dtype!r}")
    if not isinstance(model, str | PathLike | kind):
        raise TypeError(f"model: expected a name, a folder or a DETR, got {type(model).__name__}")
    if isinstance(model, kind) and image_processor is None:
        raise ValueError(
            "image_processor: with a model that is no name, expected what prepares its pictures as "
            "in training, got None"
        )


# Fine-tuning


def fine_tune(
    detector: Any,
    labels: Any,
    steps: Any,
    batch_size: Any,
    learning_rate: Any,
    keep: Any,
    seed: Any,
) -> None:
    """Stand before the function of this name."""
    model = getattr(detector, "model", None)
    if not isinstance(model, nn.Module):
        raise TypeError(f"detector: expected a pipeline, got {type(detector).__name__}")
    if not any(isinstance(module, nn.BatchNorm2d) for module in model.modules()):
        raise TypeError("detector: what for_detection returned cannot be trained")
    _require_new_labels(labels, model.config.labels)  # type: ignore[union-attr]
    for name, number in (("steps", steps), ("batch_size", batch_size)):
        if type(number) is not int or number < 1:
            raise ValueError(f"{name}: expected a whole number above 0, got {number!r}")
    if not (isinstance(learning_rate, Real) and float(learning_rate) > 0):
        raise ValueError(f"learning_rate: expected a number above 0, got {learning_rate!r}")
    if not (isinstance(keep, Real) and 0 <= float(keep) <= 1):
        raise ValueError(f"keep: expected a number from 0 to 1, got {keep!r}")
    if type(seed) is not int:
        raise ValueError(f"seed: expected a whole number, got {seed!r}")
    dtype = next(model.parameters()).dtype
    if dtype not in (torch.float32, torch.float64):
        raise TypeError(f"detector: expected weights of float32 or float64, got {dtype}")


def _require_new_labels(labels: Any, known: Any) -> None:
    if isinstance(labels, str):
        raise TypeError(f"labels: expected several names, got one: ({labels!r},) is a tuple of one")
    if not isinstance(labels, Sequence) or not all(isinstance(label, str) for label in labels):
        raise TypeError(f"labels: expected a list or tuple of names, got {labels!r}")
    names = [*known, *labels]
    if twice := [label for label in labels if names.count(label) > 1]:
        raise ValueError(f"labels: {twice[0]!r} is there twice, or known to the detector already")


def examples(examples: Any) -> None:
    """Stand before the reading of examples."""
    require_dataset("examples", examples)
    if not len(examples):
        raise ValueError("examples: expected at least one picture, got none")


def example(where: str, example: Any, image: Any, names: Sequence[str]) -> None:
    """Stand before one example."""
    there = {"image": image is not None} | {p: hasattr(example, p) for p in ("boxes", "labels")}
    for part, is_there in there.items():
        if not is_there:
            raise TypeError(f"{where}: expected image, boxes and labels; {part} is missing")
    if len(example.boxes) != len(example.labels):
        raise ValueError(
            f"{where}: expected as many boxes as labels, got {len(example.boxes)} and "
            f"{len(example.labels)}"
        )
    for label in example.labels:
        if label not in names:
            raise ValueError(
                f"{where}: expected one of the labels {list(names)}, got {label!r}; new ones are "
                "named by labels=[…]"
            )


def example_boxes(where: str, boxes: Any, size: tuple[int, int]) -> None:
    """Stand before the boxes of an example."""
    for box in boxes:
        require_corners(where, box, size)


def are_pixels(greatest: float) -> None:
    """Refuse examples whose boxes all lie within the first pixel."""
    require_pixels("examples", greatest)
