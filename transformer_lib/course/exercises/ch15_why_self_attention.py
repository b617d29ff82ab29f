"""Exercises of chapter 15, Why self-attention."""

import math
from typing import Any

import torch
from torch import Tensor

from transformer_lib.course.exercises import Exercise, NotYetError, same_function


def _restricted(n: int, d: int, each_side: int) -> int:
    return 2 * (2 * each_side + 1) * n * d + 4 * n * d * d


def _restricted_by_parts(n: int, d: int, each_side: int) -> int:
    projections = sum(n * d * d for _ in "QKVO")
    scores = sum(d for _ in range(n) for _ in range(-each_side, each_side + 1))
    return projections + scores + scores


def _largest(d: int, k: int) -> int:
    return max(0, (k - 4) * d // 2)


def _largest_by_search(d: int, k: int) -> int:
    n = 0
    while 2 * (n + 1) + 4 * d <= k * d:
        n += 1
    return n


def _doubling(n: int, k: int) -> int:
    layers = reach = 0
    while reach < n - 1:
        reach += 2**layers * (k - 1)
        layers += 1
    return layers


def _doubling_by_formula(n: int, k: int) -> int:
    return math.ceil(math.log2(1 + (n - 1) / (k - 1)) - 1e-12)


WEIGHTS = torch.tensor([0.1, 0.5, 0.15, 0.25])
VALUES = torch.tensor([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]])
_GENERATOR = torch.Generator().manual_seed(15)
MORE_WEIGHTS = torch.rand(7, generator=_GENERATOR).softmax(dim=0)
MORE_VALUES = torch.randn(7, 3, generator=_GENERATOR)


def _other(weights: Tensor, values: Tensor) -> Tensor:
    conditions = torch.cat([values.T, torch.ones(1, len(weights), dtype=values.dtype)])
    u = torch.linalg.svd(conditions).Vh[-1]
    step = (weights / -u)[u < 0].min()
    return (weights + step * u).clamp(min=0)


def _other_way(weights: Tensor, values: Tensor) -> Tensor:
    """Along a random direction, projected on what both conditions leave free, the other way."""
    conditions = torch.cat([values.T, torch.ones(1, len(weights))])
    u = torch.ones(len(weights)).cumsum(0).square()
    u = u - torch.linalg.pinv(conditions) @ (conditions @ u)
    return (weights - (weights / u)[u > 0].min() * u).clamp(min=0)


def _unbounded(weights: Tensor, values: Tensor) -> Tensor:
    conditions = torch.cat([values.T, torch.ones(1, len(weights))])
    return weights + 10 * torch.linalg.svd(conditions).Vh[-1]


def _without_sum(weights: Tensor, values: Tensor) -> Tensor:
    u = torch.linalg.svd(values.T).Vh[-1]
    u = u if u.sum().abs() > 1e-3 else torch.linalg.svd(values.T).Vh[-2]
    return (weights + (weights / -u)[u < 0].min() * u).clamp(min=0)


def _half_way(weights: Tensor, values: Tensor) -> Tensor:
    return (weights + _other(weights, values)) / 2


NOT_POSITIVE = "a weight is negative: stop where the first one becomes 0"
NOT_ONE = "the weights do not sum to 1: the direction has to sum to 0"
NOT_SAME = "the weighted sum has changed"
NO_ZERO = "no weight is 0: go on until the first one is"


class _GivesTheSameResult:
    """Judge weights by the conditions they must meet: many choices are right."""

    def __call__(self, answer: Any) -> str | None:
        if answer is None or answer is ...:
            raise NotYetError
        for weights, values in ((WEIGHTS, VALUES), (MORE_WEIGHTS, MORE_VALUES)):
            try:
                came = answer(weights.clone(), values.clone())
            except NotImplementedError:
                raise NotYetError from None
            except Exception as error:
                return f"your function raised {type(error).__name__}: {error}"
            if came is None or came is ...:
                raise NotYetError
            if not isinstance(came, Tensor) or came.shape != weights.shape:
                return f"expected a tensor of shape {tuple(weights.shape)}"
            if (came < -1e-5).any():
                return NOT_POSITIVE
            if abs(came.sum().item() - 1) > 1e-4:
                return NOT_ONE
            if not torch.allclose(came @ values, weights @ values, atol=1e-4):
                return NOT_SAME
            if came.min() > 1e-5:
                return NO_ZERO
        return None


EXERCISES = (
    Exercise(
        name="restricted-multiply-adds",
        judge=same_function(_restricted, (100, 16, 2), (7, 5, 1), (64, 8, 5)),
        right=(_restricted, _restricted_by_parts),
        mistakes={
            "r is the whole neighbourhood: both sides and the query's own key": (
                lambda n, d, each_side: 2 * each_side * n * d + 4 * n * d * d
            ),
            "the query's own key is missing": (
                lambda n, d, each_side: 2 * 2 * each_side * n * d + 4 * n * d * d
            ),
            "the weighted sum is missing: it takes as many as the scores": (
                lambda n, d, each_side: (2 * each_side + 1) * n * d + 4 * n * d * d
            ),
            "the output projection is missing": (
                lambda n, d, each_side: 2 * (2 * each_side + 1) * n * d + 3 * n * d * d
            ),
            "the projections are missing": (
                lambda n, d, each_side: 2 * (2 * each_side + 1) * n * d
            ),
            "a restricted query does not meet all n keys": (
                lambda n, d, each_side: 2 * n * n * d + 4 * n * d * d
            ),
        },
    ),
    Exercise(
        name="largest-length",
        judge=same_function(_largest, (512, 5), (16, 9), (7, 5), (64, 3)),
        right=(_largest, _largest_by_search),
        mistakes={
            "the projections are missing": lambda d, k: k * d // 2,
            "there is no negative length: where none will do, return 0": (
                lambda d, k: (k - 4) * d // 2
            ),
            "scores and weighted sum take n²d each": lambda d, k: max(0, (k - 4) * d),
        },
    ),
    Exercise(
        name="doubling-layers",
        judge=same_function(_doubling, (9, 3), (81, 5), (100, 3), (1, 3), (50, 7)),
        right=(_doubling, _doubling_by_formula),
        mistakes={
            "the dilations double: the reach of a layer is not always the same": (
                lambda n, k: math.ceil((n - 1) / (k - 1))
            ),
            "a window of k places looks k - 1 back: the own place is one of them": (
                lambda n, k: math.ceil(math.log2(1 + (n - 1) / k) - 1e-12)
            ),
            "these are the layers for the dilations 1, k, k², …": (
                lambda n, k: math.ceil(math.log(n, k) - 1e-12)
            ),
            "the reaches of all layers add up": (
                lambda n, k: math.ceil(math.log2(max(1.0, (n - 1) / (k - 1))) - 1e-12) + (n > 1)
            ),
        },
    ),
    Exercise(
        name="other-weights",
        judge=_GivesTheSameResult(),
        right=(_other, _other_way),
        mistakes={
            NOT_POSITIVE: _unbounded,
            NOT_ONE: _without_sum,
            NOT_SAME: lambda weights, values: torch.eye(len(weights))[0],
            NO_ZERO: _half_way,
        },
    ),
)
