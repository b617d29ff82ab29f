"""Exercises of chapter 17, DETR."""

import math
from collections.abc import Sequence
from itertools import permutations

import torch
from torch import Tensor

from transformer_lib.course.exercises import Exercise, same_function

Box = Sequence[float]


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _overlap(a: Box, b: Box) -> float:
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    return width * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _around(a: Box, b: Box) -> float:
    return (max(a[2], b[2]) - min(a[0], b[0])) * (max(a[3], b[3]) - min(a[1], b[1]))


def _generalised_iou(a: Box, b: Box) -> float:
    union = _area(a) + _area(b) - _overlap(a, b)
    return _overlap(a, b) / union - (_around(a, b) - union) / _around(a, b)


def _by_sides(a: Box, b: Box) -> float:
    inner, outer = 1.0, 1.0
    for least in (0, 1):
        inner *= max(0.0, min(a[least + 2], b[least + 2]) - max(a[least], b[least]))
        outer *= max(a[least + 2], b[least + 2]) - min(a[least], b[least])
    union = _area(a) + _area(b) - inner
    return inner / union - 1 + union / outer


def _iou(a: Box, b: Box) -> float:
    return _overlap(a, b) / (_area(a) + _area(b) - _overlap(a, b))


def _not_clamped(a: Box, b: Box) -> float:
    overlap = (min(a[2], b[2]) - max(a[0], b[0])) * (min(a[3], b[3]) - max(a[1], b[1]))
    union = _area(a) + _area(b) - overlap
    return overlap / union - (_around(a, b) - union) / _around(a, b)


def _union_with_overlap(a: Box, b: Box) -> float:
    union = _area(a) + _area(b)
    return _overlap(a, b) / union - (_around(a, b) - union) / _around(a, b)


def _less_the_overlap(a: Box, b: Box) -> float:
    return _iou(a, b) - (_around(a, b) - _overlap(a, b)) / _around(a, b)


def _corners(boxes: Tensor) -> Tensor:
    centre, extent = boxes[:, :2], boxes[:, 2:]
    return torch.cat([centre - extent / 2, centre + extent / 2], dim=1)


def _boxes_in_pixels(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    return _corners(boxes) * torch.tensor([*size, *size])


def _box_by_box(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    width, height = size
    rows = [
        [(cx - w / 2) * width, (cy - h / 2) * height, (cx + w / 2) * width, (cy + h / 2) * height]
        for cx, cy, w, h in boxes.tolist()
    ]
    return torch.tensor(rows)


def _size_swapped(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    return _boxes_in_pixels(boxes, (size[1], size[0]))


def _still_centres(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    return boxes * torch.tensor([*size, *size])


def _as_if_square(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    return _corners(boxes) * max(size)


def _whole_size_from_centre(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    centre, extent = boxes[:, :2], boxes[:, 2:]
    return torch.cat([centre - extent, centre + extent], dim=1) * torch.tensor([*size, *size])


def _left_corner_at_centre(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    centre, extent = boxes[:, :2], boxes[:, 2:]
    return torch.cat([centre, centre + extent], dim=1) * torch.tensor([*size, *size])


def _least_sum(costs: Tensor) -> float:
    queries, objects = costs.shape
    return min(
        sum(costs[query, item].item() for item, query in enumerate(chosen))
        for chosen in permutations(range(queries), objects)
    )


def _least_sum_recursively(costs: Tensor) -> float:
    if costs.shape[1] == 0:
        return 0.0
    rows = range(len(costs))
    return min(
        costs[row, 0].item()
        + _least_sum_recursively(costs[[other for other in rows if other != row]][:, 1:])
        for row in rows
    )


def _cheapest_first(costs: Tensor) -> float:
    costs, total = costs.clone(), 0.0
    for _ in range(costs.shape[1]):
        query, item = divmod(int(costs.argmin()), costs.shape[1])
        total += costs[query, item].item()
        costs[query], costs[:, item] = math.inf, math.inf
    return total


def _each_its_cheapest(costs: Tensor) -> float:
    return costs.min(dim=0).values.sum().item()


def _object_by_object(costs: Tensor) -> float:
    costs, total = costs.clone(), 0.0
    for item in range(costs.shape[1]):
        query = int(costs[:, item].argmin())
        total += costs[query, item].item()
        costs[query] = math.inf
    return total


def _first_queries_only(costs: Tensor) -> float:
    return _least_sum(costs[: costs.shape[1]])


def _wanted_classes(
    queries: Tensor, items: Tensor, labels: Tensor, n_queries: int, n_classes: int
) -> Tensor:
    wanted = torch.full((n_queries,), n_classes)
    wanted[queries] = labels[items]
    return wanted


def _wanted_by_loop(
    queries: Tensor, items: Tensor, labels: Tensor, n_queries: int, n_classes: int
) -> Tensor:
    of_query = dict(zip(queries.tolist(), items.tolist(), strict=True))
    return torch.tensor(
        [
            labels[of_query[query]].item() if query in of_query else n_classes
            for query in range(n_queries)
        ]
    )


def _items_ignored(
    queries: Tensor, items: Tensor, labels: Tensor, n_queries: int, n_classes: int
) -> Tensor:
    wanted = torch.full((n_queries,), n_classes)
    wanted[queries] = labels[: len(queries)]
    return wanted


def _nothing_is_the_last_class(
    queries: Tensor, items: Tensor, labels: Tensor, n_queries: int, n_classes: int
) -> Tensor:
    return _wanted_classes(queries, items, labels, n_queries, n_classes - 1)


def _nothing_is_zero(
    queries: Tensor, items: Tensor, labels: Tensor, n_queries: int, n_classes: int
) -> Tensor:
    return _wanted_classes(queries, items, labels, n_queries, 0)


def _items_for_labels(
    queries: Tensor, items: Tensor, labels: Tensor, n_queries: int, n_classes: int
) -> Tensor:
    wanted = torch.full((n_queries,), n_classes)
    wanted[queries] = items
    return wanted


def _average_precision(right: Sequence[bool], n_objects: int) -> float:
    found, curve = 0, []
    for place, hit in enumerate(right, start=1):
        found += hit
        curve.append((found / n_objects, found / place))
    total = 0.0
    for step in range(101):
        total += max((p for r, p in curve if r >= step / 100 - 1e-9), default=0.0)
    return total / 101


def _from_behind(right: Sequence[bool], n_objects: int) -> float:
    hits = torch.tensor(right, dtype=torch.float64)
    if not len(hits):
        return 0.0
    found = hits.cumsum(0)
    precision = found / torch.arange(1, len(hits) + 1)
    best = precision.flip(0).cummax(0).values.flip(0)  # the best from here on
    steps = torch.linspace(0, 1, 101, dtype=torch.float64)
    places = torch.searchsorted(found / n_objects, steps - 1e-9)
    reached = places < len(hits)
    return (best[places[reached]].sum() / 101).item()


def _not_the_best_to_come(right: Sequence[bool], n_objects: int) -> float:
    found, curve = 0, []
    for place, hit in enumerate(right, start=1):
        found += hit
        curve.append((found / n_objects, found / place))
    total = 0.0
    for step in range(101):
        total += next((p for r, p in curve if r >= step / 100 - 1e-9), 0.0)
    return total / 101


def _share_right(right: Sequence[bool], n_objects: int) -> float:
    return sum(right) / len(right) if right else 0.0


def _missed_left_out(right: Sequence[bool], n_objects: int) -> float:
    return _average_precision(right, sum(right)) if any(right) else 0.0


def _mean_at_hits(right: Sequence[bool], n_objects: int) -> float:
    found, total = 0, 0.0
    for place, hit in enumerate(right, start=1):
        found += hit
        total += found / place if hit else 0.0
    return total / n_objects


_WANTED = (
    (torch.tensor([0, 3, 4]), torch.tensor([2, 0, 1]), torch.tensor([1, 2, 0]), 6, 3),
    (torch.tensor([1, 2]), torch.tensor([1, 0]), torch.tensor([4, 1]), 4, 5),
    (torch.tensor([0, 1, 2]), torch.tensor([0, 2, 1]), torch.tensor([2, 2, 3]), 3, 4),
    (torch.zeros(0, dtype=torch.int64),) * 3 + (2, 3),
)
_SHARES = torch.tensor([[0.5, 0.5, 0.5, 0.5], [0.2, 0.7, 0.2, 0.4], [0.9, 0.1, 0.1, 0.2]])

EXERCISES = (
    Exercise(
        name="generalised-iou",
        judge=same_function(
            _generalised_iou,
            ([0.0, 0.0, 2.0, 2.0], [1.0, 0.0, 3.0, 2.0]),
            ([0.0, 0.0, 1.0, 1.0], [2.0, 2.0, 3.0, 3.0]),
            ([0.0, 0.0, 4.0, 4.0], [1.0, 1.0, 2.0, 3.0]),
            ([1.0, 1.0, 3.0, 3.0], [2.0, 0.0, 5.0, 2.0]),
        ),
        right=(_generalised_iou, _by_sides),
        mistakes={
            "this is the IoU: subtract the share of the box around both that neither fills": _iou,
            "boxes that do not meet have no intersection: two negative sides make no area": (
                _not_clamped
            ),
            "the union counts the intersection once, not twice": _union_with_overlap,
            "what is subtracted is the box around both less the union, not less the intersection": (
                _less_the_overlap
            ),
        },
    ),
    Exercise(
        name="boxes-in-pixels",
        judge=same_function(_boxes_in_pixels, (_SHARES, (640, 480)), (_SHARES, (300, 600))),
        right=(_boxes_in_pixels, _box_by_box),
        mistakes={
            "width and height are swapped: x goes with the width, which comes first": _size_swapped,
            "these are still centre, width and height: corners are asked for": _still_centres,
            "x is a share of the width and y of the height, not both of the longer": _as_if_square,
            "half of the width lies on each side of the centre, not the whole": (
                _whole_size_from_centre
            ),
            "cx, cy is the middle of the box, not its corner": _left_corner_at_centre,
        },
    ),
    Exercise(
        name="least-sum",
        judge=same_function(
            _least_sum,
            (torch.tensor([[1.0, 2.0], [1.5, 5.0]]),),
            (torch.tensor([[4.0, 2.0, 8.0], [4.0, 3.0, 7.0], [3.0, 1.0, 6.0]]),),
            (torch.tensor([[1.0, 0.5], [3.0, 4.0]]),),
            (torch.tensor([[9.0, 9.0], [1.0, 2.0], [1.5, 5.0], [0.5, 7.0]]),),
        ),
        right=(_least_sum, _least_sum_recursively),
        mistakes={
            "the cheapest pair first need not lead to the least sum": _cheapest_first,
            "a query can answer for one object only": _each_its_cheapest,
            "choosing for one object after the other need not lead to the least sum": (
                _object_by_object
            ),
            "there can be more queries than objects, and any of them may be chosen": (
                _first_queries_only
            ),
        },
    ),
    Exercise(
        name="wanted-classes",
        judge=same_function(_wanted_classes, *_WANTED),
        right=(_wanted_classes, _wanted_by_loop),
        mistakes={
            "the pairs say which object goes with which query: use items too": _items_ignored,
            "no object has an output of its own, after the last class": _nothing_is_the_last_class,
            "0 is the first class: no object comes last": _nothing_is_zero,
            "these are numbers of objects: look up their labels": _items_for_labels,
        },
    ),
    Exercise(
        name="average-precision",
        judge=same_function(
            _average_precision,
            ([True, False, True], 2),
            ([False, True, True, False, True], 4),
            ([True, False, False, True, True, True], 6),
            ([], 3),
        ),
        right=(_average_precision, _from_behind),
        mistakes={
            "at each recall the best precision that is still to come counts": (
                _not_the_best_to_come
            ),
            "this is the share of boxes that are right: average over the recalls": _share_right,
            "recall is a share of all objects, found or not": _missed_left_out,
            "average over 101 recalls from 0 to 1, not over the boxes that are right": (
                _mean_at_hits
            ),
        },
    ),
)
