"""Fine-tuning: a detector learns more labels from a few pictures.

Explained in chapter 18, "The object detection pipeline" (book/18_object_detection_pipeline.ipynb).
Generated from there by tools/export.py; edit the notebook.
"""

import math
import random
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from PIL import Image, ImageOps
from torch import Tensor

from transformer_lib._checks import detection_pipeline as check
from transformer_lib.detection.boxes import to_centres
from transformer_lib.detection.detr import DETR
from transformer_lib.detection.images import load_image
from transformer_lib.detection.matching import Target, set_loss
from transformer_lib.detection.pipeline import ObjectDetectionPipeline
from transformer_lib.detection.processing import ImageProcessor
from transformer_lib.training import Trainer, TrainingConfig

__all__ = ["fine_tune", "varied", "with_labels"]

_Example = tuple[Image.Image, Tensor, Tensor]  # picture, normalised corners, label ids


def varied(
    picture: Image.Image, corners: Tensor, labels: Tensor, chance: random.Random
) -> tuple[Image.Image, Target]:
    """Return a picture cut and mirrored at random, and what is in it.

    Args:
        picture: A picture.
        corners: The boxes (xmin, ymin, xmax, ymax) of its objects, from 0 to 1.
        labels: Their ids.
        chance: Decides on the window, nine tenths or more of width and height, and on mirroring.
    """
    width, height = chance.uniform(0.9, 1), chance.uniform(0.9, 1)
    x, y = chance.uniform(0, 1 - width), chance.uniform(0, 1 - height)
    columns, rows = picture.size
    window = (x * columns, y * rows, (x + width) * columns, (y + height) * rows)
    picture = picture.resize(picture.size, Image.Resampling.BILINEAR, box=window)
    whole = (corners - torch.tensor([x, y, x, y])) / torch.tensor([width, height, width, height])
    inside = whole.clamp(0, 1)
    if chance.random() < 0.5:
        picture = ImageOps.mirror(picture)
        xmin, ymin, xmax, ymax = inside.unbind(dim=1)
        inside = torch.stack([1 - xmax, ymin, 1 - xmin, ymax], dim=1)
    kept = _areas(inside) > _areas(whole) / 2  # less than half of it would be no example
    return picture, Target(labels[kept], to_centres(inside[kept]))


def _areas(corners: Tensor) -> Tensor:
    return (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])


def _endless(count: int, chance: random.Random) -> Iterator[int]:
    """Yield the numbers below ``count`` for ever, each once before any comes again."""
    while True:
        yield from chance.sample(range(count), count)


def _read_examples(
    examples: Sequence[Any], names: Sequence[str], processor: ImageProcessor
) -> list[_Example]:
    """Read every example once, and shrink pictures to what the processor will make of them."""
    check.examples(examples)
    read: list[_Example] = []
    empty, greatest = 0, 0.0
    for number in range(len(examples)):
        example, where = examples[number], f"examples[{number}]"
        image = getattr(example, "image", None)  # once: it may be read anew each time
        check.example(where, example, image, names)
        picture = load_image(image, name=where)
        check.example_boxes(where, example.boxes, picture.size)
        boxes = [[float(side) for side in box] for box in example.boxes]
        corners = torch.tensor(boxes).reshape(-1, 4)
        greatest = max([greatest, *corners.flatten().tolist()])
        normalized = corners / torch.tensor(picture.size * 2)
        empty += int((_areas(normalized) == 0).sum())
        if (smaller := processor.resized(*picture.size)) < picture.size:
            picture = picture.resize(smaller, Image.Resampling.BILINEAR, reducing_gap=2.0)
        labels = torch.tensor([names.index(label) for label in example.labels], dtype=torch.int64)
        read.append((picture, normalized, labels))
    check.are_pixels(greatest)
    if empty:
        warnings.warn(f"examples: {empty} boxes without area are left out", stacklevel=3)
    return read


_Batch = list[tuple[Image.Image, Target]]


def fine_tune(
    detector: ObjectDetectionPipeline,
    examples: Sequence[Any],
    *,
    labels: Sequence[str] = (),
    steps: int = 250,
    batch_size: int = 8,
    learning_rate: float = 3e-4,
    keep: float = 0.3,
    seed: int = 0,
    progress: bool = True,
) -> ObjectDetectionPipeline:
    """Return a new detector that knows more labels, and what pictures of them look like.

    The class head gets an output for each of ``labels``; all else begins with the detector's
    weights, and all of them but batch normalisation's are trained by AdamW, the class head at ten
    times the ``learning_rate``, which falls to 0 along half a cosine. Every step takes
    ``batch_size`` of the examples, varied at random as ``seed`` decides. What is in a picture and
    not among its objects is taught to be nothing: pictures that hold old objects must name these
    too. In the end all weights but the class head's go back to where they began by the part
    ``keep``, from 0 to 1, so that less is unlearnt. Examples are what ``read_coco`` returns,
    scenes, or others with ``image``, ``boxes`` (xmin, ymin, xmax, ymax in pixels) and ``labels``.
    ``progress`` shows a bar, in a terminal.

    Source: Carion et al. (2020), sections 3.1 and A.4; going back: Wortsman et al. (2022).
    """
    check.fine_tune(detector, labels, steps, batch_size, learning_rate, keep, seed)
    names = [*detector.model.config.labels, *labels]
    examples = _read_examples(examples, names, detector.processor)
    with torch.inference_mode(mode=False), torch.random.fork_rng():
        model = with_labels(detector.model, labels)
        rest = [p for name, p in model.named_parameters() if not name.startswith("class_head.")]
        begun = [parameter.detach().clone() for parameter in rest]
        head = {"params": list(model.class_head.parameters()), "scale": 10.0}
        trainer = Trainer(
            model,
            _Batches(examples, batch_size, seed),
            TrainingConfig(
                steps, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-4, clip=0.1, seed=seed
            ),
            loss=partial(_loss, detector.processor),
            schedule=lambda n: learning_rate * (1 + math.cos(math.pi * (n - 1) / steps)) / 2,
            parameters=[head, {"params": rest}],
        )
        trainer.train(progress=progress)
        with torch.no_grad():
            for parameter, before in zip(rest, begun, strict=True):
                parameter.lerp_(before, keep)
    options: dict[str, Any] = {"threshold": detector.threshold, "batch_size": detector.batch_size}
    return ObjectDetectionPipeline(model, detector.processor, **options)


def with_labels(model: DETR, labels: Sequence[str]) -> DETR:
    """Return a copy of a model with outputs for more labels, which begin at 0."""
    state = model.state_dict()
    for name in ("class_head.weight", "class_head.bias"):
        classes, no_object = state[name][:-1], state[name][-1:]
        new = classes.new_zeros(len(labels), *classes.shape[1:])
        state[name] = torch.cat([classes, new, no_object])  # "no object" stays the last
    names = (*model.config.labels, *labels)
    larger = DETR(replace(model.config, labels=names)).to(classes.device, classes.dtype)
    larger.load_state_dict(state)
    return larger


class _Batches:
    """Examples without end, each once before any comes again, varied at random.

    They come in turn, whatever number is asked for: this run is never resumed.
    """

    def __init__(self, examples: Sequence[_Example], batch_size: int, seed: int) -> None:
        self.examples, self.batch_size = examples, batch_size
        self.chance = random.Random(seed)
        self.order = _endless(len(examples), self.chance)

    def __getitem__(self, number: int) -> _Batch:
        rows = range(self.batch_size)
        return [varied(*self.examples[next(self.order)], self.chance) for _ in rows]


def _loss(processor: ImageProcessor, model: DETR, batch: _Batch) -> Tensor:
    """Return the set loss of a batch; batch normalisation keeps its statistics."""
    model.backbone.eval()  # a few pictures say little about means and variances
    pixels, mask = processor([picture for picture, _ in batch])
    predictions = model(pixels.to(model.queries), mask.to(model.queries.device))
    return set_loss(predictions, [target for _, target in batch])["loss"]
