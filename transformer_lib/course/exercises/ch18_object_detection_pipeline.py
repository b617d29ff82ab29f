"""Exercises of chapter 18, The object detection pipeline."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_lib.course.exercises import Exercise, same_function

Box = Sequence[float | int]
Corners = tuple[float | int, ...]


def _whole_pixels(box: Box, width: int, height: int) -> tuple[int, ...]:
    xmin, ymin, xmax, ymax = box
    return (
        min(max(math.floor(xmin), 0), width),
        min(max(math.floor(ymin), 0), height),
        min(max(math.ceil(xmax), 0), width),
        min(max(math.ceil(ymax), 0), height),
    )


def _whole_by_slicing(box: Box, width: int, height: int) -> list[int]:
    outwards = [math.floor(side) for side in box[:2]] + [-math.floor(-side) for side in box[2:]]
    ends = (width, height, width, height)
    return [sorted((0, side, end))[1] for side, end in zip(outwards, ends, strict=True)]


def _cut(corners: Sequence[int], width: int, height: int) -> tuple[int, ...]:
    ends = (width, height, width, height)
    return tuple(min(max(side, 0), end) for side, end in zip(corners, ends, strict=True))


def _coco_to_detr(bbox: Box, width: int, height: int) -> Corners:
    x, y, w, h = bbox
    return ((x + w / 2) / width, (y + h / 2) / height, w / width, h / height)


def _by_corners(bbox: Box, width: int, height: int) -> list[float | int]:
    left, top = bbox[0] / width, bbox[1] / height
    right, bottom = (bbox[0] + bbox[2]) / width, (bbox[1] + bbox[3]) / height
    return [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top]


def _as_corners(bbox: Box, width: int, height: int) -> Corners:
    xmin, ymin, xmax, ymax = bbox
    return (
        (xmin + xmax) / 2 / width,
        (ymin + ymax) / 2 / height,
        (xmax - xmin) / width,
        (ymax - ymin) / height,
    )


def _turned_right(box: Box, width: int, height: int) -> Corners:
    xmin, ymin, xmax, ymax = box
    return (height - ymax, xmin, height - ymin, xmax)


def _by_points(box: Box, width: int, height: int) -> list[float | int]:
    points = [(height - y, x) for x in (box[0], box[2]) for y in (box[1], box[3])]
    (xmin, xmax), (ymin, ymax) = ((min(side), max(side)) for side in zip(*points, strict=True))
    return [xmin, ymin, xmax, ymax]


def _more_labels(weight: Tensor, new: int) -> Tensor:
    fresh = torch.zeros(new, weight.shape[1], dtype=weight.dtype)
    return torch.cat([weight[:-1], fresh, weight[-1:]])


def _into_zeros(weight: Tensor, new: int) -> Tensor:
    larger = weight.new_zeros(len(weight) + new, weight.shape[1])
    larger[: len(weight) - 1] = weight[:-1]
    larger[-1] = weight[-1]
    return larger


EXERCISES = (
    Exercise(
        name="whole-pixels",
        judge=same_function(
            _whole_pixels,
            ((10.2, 20.7, 39.6, 60.4), 100, 80),
            ((-3.5, 2.0, 7.0, 8.2), 100, 80),
            ((90.1, 70.9, 104.0, 81.5), 100, 80),
            ((50.3, 50.3, 50.4, 50.4), 100, 80),
            ((700.0, 10.0, 900.0, 100.0), 600, 400),
        ),
        right=(_whole_pixels, _whole_by_slicing),
        mistakes={
            "decimals were cut off: the right and the lower side must go up": lambda box, w, h: (
                _cut([int(side) for side in box], w, h)
            ),
            "this is the nearest whole number: a box must not lose any part of itself": (
                lambda box, w, h: _cut([round(side) for side in box], w, h)
            ),
            "the box leaves the picture: cut it at the edges": lambda box, w, h: (
                math.floor(box[0]),
                math.floor(box[1]),
                math.ceil(box[2]),
                math.ceil(box[3]),
            ),
            "width and height have changed places: xmin and xmax end at the width": (
                lambda box, w, h: _whole_pixels(box, h, w)
            ),
            "all sides were rounded up: the left and the upper side must go down": (
                lambda box, w, h: _cut([math.ceil(side) for side in box], w, h)
            ),
        },
    ),
    Exercise(
        name="coco-to-detr",
        judge=same_function(
            _coco_to_detr, ((10, 20, 30, 40), 100, 80), ((0, 0, 640, 480), 640, 480)
        ),
        right=(_coco_to_detr, _by_corners),
        mistakes={
            "x and y are the corner, not the centre": lambda bbox, w, h: (
                bbox[0] / w,
                bbox[1] / h,
                bbox[2] / w,
                bbox[3] / h,
            ),
            "the last two numbers are width and height, not the lower right corner": _as_corners,
            "width and height of the picture have changed places": lambda bbox, w, h: _coco_to_detr(
                bbox, h, w
            ),
            "these are pixels: divide by the picture's width and height": lambda bbox, w, h: (
                _coco_to_detr(bbox, 1, 1)
            ),
            "these are the corners: centre, width and height are asked for": lambda bbox, w, h: (
                bbox[0] / w,
                bbox[1] / h,
                (bbox[0] + bbox[2]) / w,
                (bbox[1] + bbox[3]) / h,
            ),
        },
    ),
    Exercise(
        name="turned-right",
        judge=same_function(
            _turned_right, ((10, 20, 30, 60), 100, 80), ((0, 0, 640, 100), 640, 480)
        ),
        right=(_turned_right, _by_points),
        mistakes={
            "this turns to the left": lambda box, w, h: (box[1], w - box[2], box[3], w - box[0]),
            "the corners are not sorted: xmin is above xmax": lambda box, w, h: (
                h - box[1],
                box[0],
                h - box[3],
                box[2],
            ),
            "x and y have changed places, which mirrors the picture as well": lambda box, w, h: (
                box[1],
                box[0],
                box[3],
                box[2],
            ),
            "it is the stored height that y is taken from, not the width": lambda box, w, h: (
                _turned_right(box, h, w)
            ),
            "this turns upside down": lambda box, w, h: (
                w - box[2],
                h - box[3],
                w - box[0],
                h - box[1],
            ),
        },
    ),
    Exercise(
        name="more-labels",
        judge=same_function(
            _more_labels,
            (torch.arange(12.0).view(4, 3) + 1, 2),
            (torch.arange(6.0).view(2, 3) + 1, 1),
            (torch.arange(6.0).view(3, 2) + 1, 0),
        ),
        right=(_more_labels, _into_zeros),
        mistakes={
            '"no object" must stay the last: its row has become that of a label': lambda w, new: (
                torch.cat([w, w.new_zeros(new, w.shape[1])])
            ),
            "the old labels must keep their ids: new rows come after theirs": lambda w, new: (
                torch.cat([w.new_zeros(new, w.shape[1]), w])
            ),
            'the row of "no object" is missing': lambda w, new: torch.cat(
                [w[:-1], w.new_zeros(new, w.shape[1])]
            ),
            "the new rows are copies: they must be zero": lambda w, new: torch.cat(
                [w[:-1], w[-1:].expand(new, -1), w[-1:]]
            ),
        },
    ),
)
