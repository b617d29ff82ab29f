"""What DETR, its boxes, its loss and its scores ask of their arguments."""

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from transformer_lib._checks.common import (
    INTEGERS,
    kind,
    require_at_least,
    require_broadcastable,
    require_corners,
    require_dataset,
    require_fields,
    require_floating,
    require_package,
    require_pixels,
    require_probability,
)

_MOST_LABELS = 100_000

# Configurations


def resnet_config(config: Any) -> None:
    """Stand before ``ResNetConfig``."""
    require_fields(config)
    for name in ("depths", "widths"):
        sizes = getattr(config, name)
        if type(sizes) is not tuple or any(type(size) is not int for size in sizes):
            raise TypeError(f"{name}: expected a tuple of int, got {sizes!r}")
        if not sizes or min(sizes) < 1:
            raise ValueError(f"{name}: expected one or more numbers above 0, got {sizes}")
    if len(config.depths) != len(config.widths):
        raise ValueError(
            f"widths: expected one for each of {len(config.depths)} depths, got {config.widths}"
        )
    require_at_least(1, stem_width=config.stem_width)
    if config.block == "bottleneck" and any(width % 4 for width in config.widths):
        raise ValueError(f"widths: expected multiples of 4 for a bottleneck, got {config.widths}")


def detr_config(config: Any) -> None:
    """Stand before ``DETRConfig``, whose labels are names already."""
    require_fields(config)
    require_at_least(4, d_model=config.d_model)
    require_at_least(0, n_encoder_layers=config.n_encoder_layers)
    positive = ("n_heads", "n_decoder_layers", "d_ff", "n_queries")
    require_at_least(1, **{name: getattr(config, name) for name in positive})
    dropouts = ("dropout", "attention_dropout", "feed_forward_dropout")
    require_probability(**{name: getattr(config, name) for name in dropouts})
    if config.d_model % 4:
        raise ValueError(f"d_model: expected a multiple of 4, got {config.d_model}")
    if config.d_model % config.n_heads:
        raise ValueError(
            f"n_heads: expected a divisor of d_model = {config.d_model}, got {config.n_heads}"
        )


def detr_json(text: Any, kind: type, backbone_kind: type) -> None:
    """Stand before ``DETRConfig.from_json``."""
    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"config: not valid JSON: {error}") from None
    if not isinstance(given, dict) or "labels" not in given:
        raise ValueError("config: expected a JSON object with labels")
    if not isinstance(backbone := given.get("backbone", {}), dict):
        raise ValueError(f"config: expected a JSON object as backbone, got {backbone!r}")
    for part, its in ((given, kind), (backbone, backbone_kind)):
        if unknown := part.keys() - {field.name for field in fields(its)}:
            raise ValueError(f"config: unknown fields {', '.join(sorted(unknown))}")


def labels(labels: Any) -> None:
    """Stand before what takes names of classes, or a mapping from ids to names."""
    if isinstance(labels, str) or not isinstance(labels, Sequence | Mapping):
        raise TypeError(f"labels: expected names, or a mapping from ids to names, got {labels!r}")
    if not labels:
        raise ValueError("labels: expected at least one name, got none")
    named = labels.items() if isinstance(labels, Mapping) else enumerate(labels)
    for number, name in named:
        if type(number) is not int or not 0 <= number < _MOST_LABELS:
            most = f"{_MOST_LABELS - 1:,}"
            raise ValueError(f"labels: expected ids from 0 on, to {most}, got {number!r}")
        if type(name) is not str:
            raise TypeError(f"labels: expected names, got {name!r} for id {number}")


def number_of_labels(count: Any) -> None:
    """Stand before labels that have numbers only."""
    if type(count) is not int or not 1 <= count <= _MOST_LABELS:
        raise ValueError(f"published: expected a number of labels from 1 on, got {count!r}")


def fits_weights(config: Any, state: Mapping[str, Tensor], folder: Any) -> None:
    """Refuse, before anything is built, sizes that the tensors of a file cannot have."""
    backbone = config.backbone
    layers = config.n_encoder_layers + config.n_decoder_layers + sum(backbone.depths)
    if layers > len(state):
        raise ValueError(
            f"name: config.json in {folder} asks for {layers} layers, model.safetensors has "
            f"{len(state)} tensors"
        )
    greatest = max((size for tensor in state.values() for size in tensor.shape), default=0)
    sizes = {name: getattr(config, name) for name in ("d_model", "d_ff", "n_queries")}
    sizes |= {"widths": max(backbone.widths), "stem_width": backbone.stem_width}
    for name, size in sizes.items():
        if size > greatest:
            raise ValueError(
                f"name: config.json in {folder} asks for {name} = {size}, no tensor in "
                f"model.safetensors has more than {greatest}"
            )


def image_processor(processor: Any) -> None:
    """Stand before ``ImageProcessor``."""
    require_fields(processor)
    require_at_least(1, shortest_edge=processor.shortest_edge, longest_edge=processor.longest_edge)
    for name in ("mean", "std"):
        colours = getattr(processor, name)
        if type(colours) is not tuple or [type(colour) for colour in colours] != [float] * 3:
            raise TypeError(f"{name}: expected a tuple of three float, got {colours!r}")
    if not all(colour > 0 for colour in processor.std):
        raise ValueError(f"std: expected numbers above 0, got {processor.std}")


# Pixels


def pixels(pixels: Any, pixel_mask: Any) -> None:
    """Stand before ``ResNet`` and ``DETR``."""
    require_floating(pixels=pixels)
    if pixels.dim() != 4 or pixels.shape[1] != 3 or 0 in pixels.shape[2:]:
        raise ValueError(
            f"pixels: expected shape (batch, 3, height, width), got {tuple(pixels.shape)}"
        )
    if pixel_mask is None:
        return
    _require_boolean("pixel_mask", pixel_mask)
    expected = (len(pixels), *pixels.shape[2:])
    if pixel_mask.shape != expected:
        raise ValueError(
            f"pixel_mask: expected shape {expected} as pixels, got {tuple(pixel_mask.shape)}"
        )


def image_positions(mask: Any, d_model: Any) -> None:
    """Stand before the function of this name."""
    _require_boolean("mask", mask)
    if mask.dim() != 3:
        raise ValueError(f"mask: expected shape (batch, rows, columns), got {tuple(mask.shape)}")
    if d_model % 4 or d_model < 4:
        raise ValueError(f"d_model: expected a multiple of 4, got {d_model}")


def _require_boolean(name: str, mask: Any) -> None:
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise TypeError(
            f"{name}: expected a boolean tensor, True on what is real, got {kind(mask)}"
        )


def pictures(images: Any) -> None:
    """Stand before ``ImageProcessor.__call__``."""
    if isinstance(images, Image.Image):
        raise TypeError("images: expected several pictures, got one; put it into a list")
    require_dataset("images", images)
    if not len(images):
        raise ValueError("images: expected at least one picture, got none")
    for number, image in enumerate(images):
        if not isinstance(image, Image.Image):
            raise TypeError(f"images: expected Pillow pictures, got {type(image).__name__}")
        if image.mode != "RGB" or 0 in image.size:
            raise ValueError(
                f"images: picture {number} has mode {image.mode!r} and size {image.size}, expected "
                'mode "RGB" and one pixel or more; image.convert("RGB") turns most others'
            )


def postprocess(predictions: Any, sizes: Any, threshold: Any) -> None:
    """Stand before the function of this name."""
    if len(sizes) != len(predictions.logits):
        raise ValueError(
            f"sizes: expected {len(predictions.logits)}, one a picture, got {len(sizes)}"
        )
    require_probability(threshold=threshold)


def detected(predictions: Any) -> None:
    """Stand between a model's predictions and their reading."""
    if not all(tensor.isfinite().all() for tensor in predictions[:2]):
        raise ValueError(f"model: NaN or infinity in its predictions ({predictions.logits.dtype})")


# Boxes


def boxes(boxes: Any) -> None:
    """Stand before what takes boxes in either form."""
    _require_boxes(boxes=boxes)


def pairs_of_boxes(first: Any, second: Any) -> None:
    """Stand before what compares boxes that are given as corners."""
    _require_boxes(first=first, second=second)
    require_broadcastable("box", first=first.shape[:-1], second=second.shape[:-1])
    if torch.compiler.is_compiling() or first.is_meta or second.is_meta:
        return
    for name, each in (("first", first), ("second", second)):
        if (each[..., 2:] < each[..., :2]).any():
            raise ValueError(
                f"{name}: expected corners (xmin, ymin, xmax, ymax), got a maximum below its "
                "minimum; is it (cx, cy, w, h)? Then to_corners turns it"
            )


def _require_boxes(**boxes: Any) -> None:
    require_floating(**boxes)
    for name, tensor in boxes.items():
        if tensor.dim() == 0 or tensor.shape[-1] != 4:
            raise ValueError(f"{name}: expected shape (…, 4), got {tuple(tensor.shape)}")


# Matching and loss


def target(labels: Any, boxes: Any) -> None:
    """Stand before ``Target``."""
    require_floating(boxes=boxes)
    if not isinstance(labels, Tensor) or labels.dtype not in INTEGERS:
        raise TypeError(f"labels: expected integers, got {kind(labels)}")
    if labels.dim() != 1:
        raise ValueError(f"labels: expected shape (objects,), got {tuple(labels.shape)}")
    if boxes.shape != (len(labels), 4):
        raise ValueError(
            f"boxes: expected shape (objects, 4) = ({len(labels)}, 4) as there are "
            f"labels, got {tuple(boxes.shape)}"
        )


def assign(costs: Any) -> None:
    """Stand before the function of this name, which needs scipy."""
    require_package("scipy.optimize", "matching needs scipy", "detection")
    if not costs.isfinite().all():
        raise ValueError("costs: expected finite numbers, got NaN or infinity")


def match(predictions: Any, targets: Any) -> None:
    """Stand before the function of this name."""
    _require_one_a_picture(predictions, targets)
    _require_finite(*predictions[:2])
    n_queries, n_classes = predictions.logits.shape[1], predictions.logits.shape[2] - 1
    if targets:
        _require_classes(targets, n_classes)
        _require_centres(targets)
    if (most := max((len(target.labels) for target in targets), default=0)) > n_queries:
        warnings.warn(
            f"targets: expected at most {n_queries} objects in a picture, as there are queries, "
            f"got {most}: the rest is left out",
            stacklevel=4,  # who called the function, through its torch.no_grad
        )


def set_loss(predictions: Any, targets: Any) -> None:
    """Stand before the function of this name, which asks ``match`` for the rest."""
    _require_one_a_picture(predictions, targets)
    for layer in (*predictions.auxiliary, predictions[:2]):
        _require_finite(*layer)


def _require_one_a_picture(predictions: Any, targets: Any) -> None:
    for target in targets:
        if not (hasattr(target, "labels") and hasattr(target, "boxes")):
            raise TypeError(
                f"targets: expected a Target for each picture, got {type(target).__name__}"
            )
    if len(targets) != len(predictions.logits):
        raise ValueError(
            f"targets: expected {len(predictions.logits)}, one a picture, got {len(targets)}"
        )


def _require_finite(logits: Tensor, boxes: Tensor) -> None:
    finite = logits.isfinite().all(dim=-1) & boxes.isfinite().all(dim=-1)
    if not finite.all():
        picture = int((~finite).nonzero()[0, -2])
        raise ValueError(
            f"predictions: NaN or infinity for picture {picture} of the batch; has training "
            "diverged (lower the learning rate, clip gradients), or are the pixels not finite?"
        )


def _require_classes(targets: Sequence[Any], n_classes: int) -> None:
    labels = torch.cat([target.labels for target in targets])
    right = (labels >= 0) & (labels < n_classes)
    if not right.all():
        place = int((~right).nonzero()[0])
        raise ValueError(
            f"targets: label {int(labels[place])} in picture {_picture_of(place, targets)} is none "
            f"of {n_classes} classes, 0 to {n_classes - 1}"
        )


def _require_centres(targets: Sequence[Any]) -> None:
    """Refuse what does not lie in the picture, as corners taken for centres seldom do, and NaN."""
    boxes = torch.cat([target.boxes for target in targets])
    centre, size = boxes[:, :2], boxes[:, 2:]
    corners = torch.cat([centre - size / 2, centre + size / 2], dim=1)
    # Room for rounding, and at the edges for annotators who draw a little past the picture.
    are_normalized = (boxes >= -1e-3) & (boxes <= 1 + 1e-3)
    right = (are_normalized & (corners >= -0.1) & (corners <= 1 + 0.1)).all(dim=1)
    if not right.all():
        place = int((~right).nonzero()[0])
        raise ValueError(
            f"targets: box {[round(side, 3) for side in boxes[place].tolist()]} in picture "
            f"{_picture_of(place, targets)} is not (cx, cy, w, h) in normalised coordinates, from "
            "0 to 1, and inside the picture: to_centres turns corners, and pixels are divided by "
            "the picture's width and height"
        )


def _picture_of(place: int, targets: Sequence[Any]) -> int:
    """Return the picture of an object that has this place among all objects."""
    return next(
        number
        for number in range(len(targets))
        if place < sum(len(target.labels) for target in targets[: number + 1])
    )


# Scores


def evaluate(model: Any, dataset: Any, batch_size: Any) -> None:
    """Stand before the function of this name, which needs faster-coco-eval."""
    require_package("faster_coco_eval", "scoring needs faster-coco-eval", "detection")
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: expected a DETR, got {type(model).__name__}")
    require_dataset("dataset", dataset)
    require_at_least(1, batch_size=batch_size)


def labelled_image(number: int, item: Any, size: tuple[int, int], known: Sequence[str]) -> None:
    """Stand before the scoring of a picture."""
    where = f"dataset: picture {number}"
    if len(item.boxes) != len(item.labels):
        raise ValueError(f"{where} has {len(item.boxes)} boxes, but {len(item.labels)} labels")
    areas = getattr(item, "areas", None)
    if areas is not None and len(areas) != len(item.boxes):
        raise ValueError(f"{where} has {len(item.boxes)} boxes, but {len(areas)} areas")
    objects = [*zip(item.labels, item.boxes, strict=True), *getattr(item, "crowds", ())]
    for label, box in objects:
        require_corners(where, box, size)
        if label not in known:
            raise ValueError(f"dataset: label {label!r} in picture {number} is not the model's")


def annotations(annotations: Sequence[Mapping[str, Any]]) -> None:
    """Stand before the scoring of all objects."""
    if all(annotation["iscrowd"] for annotation in annotations):
        raise ValueError("dataset: expected objects to be found, got none")
    corners = ((x + width, y + height) for x, y, width, height in (a["bbox"] for a in annotations))
    require_pixels("dataset", float(max(max(corner) for corner in corners)))
