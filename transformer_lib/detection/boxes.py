"""Boxes: their two forms, and how well two of them agree.

Explained in chapter 17, "DETR" (book/17_detr.ipynb). Generated from there by tools/export.py; edit
the notebook.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_lib._checks import detection as check

__all__ = ["generalized_iou", "iou", "to_centres", "to_corners", "widen"]


def to_corners(boxes: Float[Tensor, "*boxes 4"]) -> Float[Tensor, "*boxes 4"]:
    """Turn (cx, cy, w, h) into (xmin, ymin, xmax, ymax), in any unit."""
    check.boxes(boxes)
    centre, size = boxes[..., :2], boxes[..., 2:]
    return torch.cat([centre - size / 2, centre + size / 2], dim=-1)


def to_centres(boxes: Float[Tensor, "*boxes 4"]) -> Float[Tensor, "*boxes 4"]:
    """Turn (xmin, ymin, xmax, ymax) into (cx, cy, w, h), the inverse of :func:`to_corners`."""
    check.boxes(boxes)
    least, greatest = boxes[..., :2], boxes[..., 2:]
    return torch.cat([(least + greatest) / 2, greatest - least], dim=-1)


def iou(
    first: Float[Tensor, "*#boxes 4"], second: Float[Tensor, "*#boxes 4"]
) -> Float[Tensor, "*boxes"]:
    """Return the intersection over union of boxes (xmin, ymin, xmax, ymax), pair by pair.

    Axes before the last are broadcast, so that ``first[:, None]`` and ``second[None]`` give every
    pair. It is a number from 0 to 1, and 0 where both boxes have no area; NaN in a box makes its
    pairs NaN. Half precision is computed in float32.
    """
    check.pairs_of_boxes(first, second)
    intersection, union, _ = _areas(first, second)
    return _ratio(intersection, union).to(first.dtype)


def generalized_iou(
    first: Float[Tensor, "*#boxes 4"], second: Float[Tensor, "*#boxes 4"]
) -> Float[Tensor, "*boxes"]:
    """Return the generalised intersection over union of boxes, pair by pair as :func:`iou` does.

    It is the IoU less the part of the smallest box around both that neither of them fills: a number
    from −1 to 1, and 0 where the box around both has no area. Gradients are finite.

    Source: Rezatofighi et al. (2019), algorithm 1.
    """
    check.pairs_of_boxes(first, second)
    intersection, union, around = _areas(first, second)
    return (_ratio(intersection, union) - _ratio(around - union, around)).to(first.dtype)


def widen(tensor: Tensor) -> Tensor:
    """Turn half precision to float32, in which areas and losses do not overflow."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _areas(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the areas of intersection, union and the smallest box around both."""
    first, second = widen(first), widen(second)
    least = torch.maximum(first[..., :2], second[..., :2])
    greatest = torch.minimum(first[..., 2:], second[..., 2:])
    intersection = _area((greatest - least).clamp(min=0))
    both = _area(first[..., 2:] - first[..., :2]) + _area(second[..., 2:] - second[..., :2])
    lowest = torch.minimum(first[..., :2], second[..., :2])
    highest = torch.maximum(first[..., 2:], second[..., 2:])
    return intersection, both - intersection, _area(highest - lowest)


def _area(size: Tensor) -> Tensor:
    return size[..., 0] * size[..., 1]


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    """Return part / whole, and 0 with a gradient of 0 where both are 0."""
    return part / whole.where(whole != 0, 1)
