"""Capstone of part 6, Detecting: what kinds of mistakes a detector makes."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_lib.course.exercises import Exercise, same_function

Box = Sequence[float | int]


class Drawn(NamedTuple):
    """A picture, here any value, and what is in it."""

    image: Any
    boxes: tuple[Box, ...]
    labels: tuple[str, ...]


def _iou(a: Box, b: Box) -> float:
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    overlap = width * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return overlap / (sum(areas) - overlap)


def _suppress(boxes: Tensor, scores: Tensor, labels: Tensor, bound: float) -> list[int]:
    kept: list[int] = []
    for number in scores.argsort(descending=True).tolist():
        if not any(
            labels[number] == labels[other]
            and _iou(boxes[number].tolist(), boxes[other].tolist()) > bound
            for other in kept
        ):
            kept.append(number)
    return kept


def _suppress_by_striking_out(
    boxes: Tensor, scores: Tensor, labels: Tensor, bound: float
) -> list[int]:
    left = scores.argsort(descending=True).tolist()
    kept = []
    while left:
        best, *rest = left
        kept.append(best)
        left = [
            other
            for other in rest
            if labels[other] != labels[best]
            or _iou(boxes[other].tolist(), boxes[best].tolist()) <= bound
        ]
    return kept


def _classes_ignored(boxes: Tensor, scores: Tensor, labels: Tensor, bound: float) -> list[int]:
    return _suppress(boxes, scores, torch.zeros_like(labels), bound)


def _worst_first(boxes: Tensor, scores: Tensor, labels: Tensor, bound: float) -> list[int]:
    return _suppress(boxes, -scores, labels, bound)


def _in_given_order(boxes: Tensor, scores: Tensor, labels: Tensor, bound: float) -> list[int]:
    return _suppress(boxes, torch.arange(len(scores), 0, -1), labels, bound)


def _also_by_suppressed(boxes: Tensor, scores: Tensor, labels: Tensor, bound: float) -> list[int]:
    order = scores.argsort(descending=True).tolist()
    return [
        number
        for place, number in enumerate(order)
        if not any(
            labels[number] == labels[other]
            and _iou(boxes[number].tolist(), boxes[other].tolist()) > bound
            for other in order[:place]
        )
    ]


def _kinds(found: Sequence[dict[str, Any]], boxes: Sequence[Box], labels: Sequence[str]) -> Any:
    kinds = [""] * len(found)
    taken: set[int] = set()
    for number in sorted(range(len(found)), key=lambda n: -found[n]["score"]):
        kinds[number], item = _kind(found[number], boxes, labels, taken)
        taken |= {item} - {-1}
    return kinds


def _kind(
    found: dict[str, Any], boxes: Sequence[Box], labels: Sequence[str], taken: set[int]
) -> tuple[str, int]:
    overlaps = [_iou(found["box"], box) for box in boxes]
    same = [item for item, label in enumerate(labels) if label == found["label"]]
    hit = [item for item in same if overlaps[item] > 0.5]
    if free := [item for item in hit if item not in taken]:
        return "right", max(free, key=overlaps.__getitem__)
    if hit:
        return "duplicate", -1
    if any(overlap > 0.5 for overlap in overlaps):
        return "wrong label", -1
    if any(overlaps[item] > 0.1 for item in same):
        return "badly placed", -1
    return "nothing there", -1


def _kinds_by_matrix(
    found: Sequence[dict[str, Any]], boxes: Sequence[Box], labels: Sequence[str]
) -> tuple[str, ...]:
    overlap = [[_iou(each["box"], box) for box in boxes] for each in found]
    same = [[each["label"] == label for label in labels] for each in found]
    free = [True] * len(boxes)
    kinds = {}
    for n in sorted(range(len(found)), key=lambda n: found[n]["score"], reverse=True):
        row = list(zip(overlap[n], same[n], range(len(boxes)), strict=True))
        fits = sorted(((o, i) for o, s, i in row if s and o > 0.5), reverse=True)
        open_to_it = [i for _, i in fits if free[i]]
        if open_to_it:
            free[open_to_it[0]] = False
            kinds[n] = "right"
        elif fits:
            kinds[n] = "duplicate"
        elif max(overlap[n], default=0) > 0.5:
            kinds[n] = "wrong label"
        else:
            near = any(s and o > 0.1 for o, s, _ in row)
            kinds[n] = "badly placed" if near else "nothing there"
    return tuple(kinds[n] for n in range(len(found)))


def _order_ignored(
    found: Sequence[dict[str, Any]], boxes: Sequence[Box], labels: Sequence[str]
) -> list[str]:
    return list(_kinds([each | {"score": 0.0} for each in found], boxes, labels))


def _never_taken(
    found: Sequence[dict[str, Any]], boxes: Sequence[Box], labels: Sequence[str]
) -> list[str]:
    return [_kind(each, boxes, labels, set())[0] for each in found]


def _labels_ignored(
    found: Sequence[dict[str, Any]], boxes: Sequence[Box], labels: Sequence[str]
) -> list[str]:
    return list(_kinds([each | {"label": "x"} for each in found], boxes, ["x"] * len(labels)))


def _any_label_is_near(
    found: Sequence[dict[str, Any]], boxes: Sequence[Box], labels: Sequence[str]
) -> list[str]:
    kinds = list(_kinds(found, boxes, labels))
    for number, each in enumerate(found):
        if kinds[number] == "nothing there" and any(_iou(each["box"], box) > 0.1 for box in boxes):
            kinds[number] = "badly placed"
    return kinds


KINDS = ("right", "duplicate", "wrong label", "badly placed", "nothing there", "missed")


def _report(detect: Callable[[Any], Any], pictures: Sequence[Any]) -> dict[str, int]:
    counts = dict.fromkeys(KINDS, 0)
    for picture in pictures:
        kinds = _kinds(_as_lists(detect(picture.image)), picture.boxes, picture.labels)
        for kind in kinds:
            counts[kind] += 1
        counts["missed"] += len(picture.boxes) - kinds.count("right")
    return counts


def _report_by_counter(detect: Callable[[Any], Any], pictures: Sequence[Any]) -> dict[str, int]:
    seen: Counter[str] = Counter()
    objects = 0
    for picture in pictures:
        seen.update(_kinds(_as_lists(detect(picture.image)), picture.boxes, picture.labels))
        objects += len(picture.labels)
    seen["missed"] = objects - seen["right"]
    return {kind: seen[kind] for kind in KINDS}


def _as_lists(found: Any) -> list[dict[str, Any]]:
    sides = ("xmin", "ymin", "xmax", "ymax")
    return [each | {"box": [each["box"][side] for side in sides]} for each in found]


def _missed_forgotten(detect: Callable[[Any], Any], pictures: Sequence[Any]) -> dict[str, int]:
    return _report(detect, pictures) | {"missed": 0}


def _found_are_not_missed(detect: Callable[[Any], Any], pictures: Sequence[Any]) -> dict[str, int]:
    counts = _report(detect, pictures)
    found = sum(len(detect(picture.image)) for picture in pictures)
    return counts | {"missed": sum(len(picture.labels) for picture in pictures) - found}


def _as_one_picture(detect: Callable[[Any], Any], pictures: Sequence[Any]) -> dict[str, int]:
    found = [each for picture in pictures for each in _as_lists(detect(picture.image))]
    boxes = [box for picture in pictures for box in picture.boxes]
    labels = [label for picture in pictures for label in picture.labels]
    counts = dict.fromkeys(KINDS, 0) | Counter(_kinds(found, boxes, labels))
    return counts | {"missed": len(boxes) - counts["right"]}


def _detection(score: float, label: str, *box: float | int) -> dict[str, Any]:
    return {"score": score, "label": label, "box": list(box)}


FOUND = [
    _detection(0.6, "cat", 0, 0, 9, 10),
    _detection(0.9, "cat", 0, 0, 10, 9),
    _detection(0.8, "cup", 40, 40, 50, 50),
    _detection(0.7, "clock", 20, 20, 40, 30),
    _detection(0.5, "clock", 80, 80, 90, 90),
    _detection(0.4, "cup", 24, 20, 44, 30),
    _detection(0.3, "clock", 33, 20, 53, 30),
]
BOXES = ((0, 0, 10, 10), (20, 20, 40, 30), (41, 40, 51, 50))
NAMES = ("cat", "clock", "vase")
CROWD = [
    _detection(0.7, "cup", 1, 0, 11, 10),
    _detection(0.9, "cup", 2, 0, 12, 10),
    _detection(0.8, "cat", 2, 0, 12, 10),
    _detection(0.6, "cat", 6, 0, 16, 10),
]


class _Said:
    """A detector whose answers are fixed, a list for each picture."""

    def __init__(self, answers: Sequence[Sequence[dict[str, Any]]]):
        sides = ("xmin", "ymin", "xmax", "ymax")
        self.answers = [
            [each | {"box": dict(zip(sides, each["box"], strict=True))} for each in answer]
            for answer in answers
        ]

    def __call__(self, image: int) -> list[dict[str, Any]]:
        """Return the detections in a picture."""
        return self.answers[image]

    def __repr__(self) -> str:
        """Return a name for the messages."""
        return "detect"


PICTURES = [
    Drawn(0, BOXES, NAMES),
    Drawn(1, ((2, 0, 12, 10), (0, 0, 10, 10)), ("cup", "cup")),
    Drawn(2, ((5, 5, 9, 9),), ("horse",)),
]
SAID = _Said([FOUND, CROWD, []])

PLACES = torch.tensor(
    [[0.0, 0, 10, 10], [3, 0, 13, 10], [6, 0, 16, 10], [1, 0, 11, 10], [40, 40, 50, 50]]
)
SURE = torch.tensor([0.9, 0.8, 0.7, 0.95, 0.3])

EXERCISES = (
    Exercise(
        name="suppress-duplicates",
        judge=same_function(
            _suppress,
            (PLACES, SURE, torch.tensor([1, 1, 1, 2, 1]), 0.5),
            (PLACES, SURE.flip(0), torch.tensor([0, 0, 0, 0, 0]), 0.5),
            (PLACES, SURE, torch.tensor([3, 3, 4, 3, 3]), 0.8),
        ),
        right=(_suppress, _suppress_by_striking_out),
        mistakes={
            "boxes of different classes do not suppress each other": _classes_ignored,
            "begin with the best score, not with the least": _worst_first,
            "go through the boxes by their scores, not in the order given": _in_given_order,
            "a box that was suppressed suppresses no others": _also_by_suppressed,
        },
    ),
    Exercise(
        name="kinds-of-mistakes",
        judge=same_function(
            _kinds,
            (FOUND, BOXES, NAMES),
            (CROWD, BOXES, NAMES),
            (CROWD, ((2, 0, 12, 10),), ("cup",)),
        ),
        right=(_kinds, _kinds_by_matrix),
        mistakes={
            "the surest detection takes an object first, wherever it stands in the list": (
                _order_ignored
            ),
            "an object that is taken makes further detections of it duplicates": _never_taken,
            "a detection with another label than the object's is not right": _labels_ignored,
            "badly placed is only what lies near an object of its own label": _any_label_is_near,
        },
    ),
    Exercise(
        name="error-report",
        judge=same_function(_report, (SAID, PICTURES), (SAID, PICTURES[:1]), (SAID, PICTURES[2:])),
        right=(_report, _report_by_counter),
        mistakes={
            "objects that no detection got right are missed: count them": _missed_forgotten,
            "what is missed is what no detection got right, whatever else was found": (
                _found_are_not_missed
            ),
            "judge each picture by its own objects, not all pictures together": _as_one_picture,
        },
    ),
)
