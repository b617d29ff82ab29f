"""Exercises of chapter 1, Weighted sums."""

from typing import Any

import torch
from torch import Tensor

from transformer_lib.course.exercises import Exercise, NotYetError, same_function

SQUARE = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


def _mean_weights(keys: int) -> Tensor:
    return torch.full((1, keys), 1 / keys)


def _running_mean_weights(n: int) -> Tensor:
    takes_part = torch.ones(n, n).tril()
    return takes_part / takes_part.sum(dim=-1, keepdim=True)


def _running_mean_by_rows(n: int) -> Tensor:
    weights = torch.zeros(n, n)
    for i in range(n):
        weights[i, : i + 1] = 1 / (i + 1)
    return weights


def _same_result_twice(answer: Any) -> str | None:
    """Accept every pair of convex rows that differ and agree on the square."""
    if answer is None or answer is ...:
        raise NotYetError
    try:
        rows = torch.as_tensor(answer).detach().double()
    except (TypeError, ValueError, RuntimeError):
        return f"a tensor of shape (2, 4) is asked for, got {type(answer).__name__}"
    if rows.shape != (2, 4):
        return f"a tensor of shape (2, 4) is asked for, got {tuple(rows.shape)}"
    if not torch.allclose(rows.sum(dim=-1), torch.ones(2, dtype=torch.double), atol=1e-5):
        return "a row does not sum to 1, so it is no convex combination"
    if (rows < 0).any():
        return "a weight is negative: sum 1 alone makes an affine combination, not a convex one"
    if torch.allclose(rows[0], rows[1], atol=1e-3):
        return "both rows are the same weights"
    first, second = rows @ SQUARE.double()
    if not torch.allclose(first, second, atol=1e-5):
        return "the two results differ"
    return None


def _weighted_sum_backward(
    weights: Tensor, values: Tensor, grad_result: Tensor
) -> tuple[Tensor, Tensor]:
    return grad_result @ values.T, weights.T @ grad_result


def _backward_by_entries(
    weights: Tensor, values: Tensor, grad_result: Tensor
) -> tuple[Tensor, Tensor]:
    grad_weights, grad_values = torch.zeros_like(weights), torch.zeros_like(values)
    for i in range(weights.shape[0]):
        for j in range(weights.shape[1]):
            grad_weights[i, j] = grad_result[i].dot(values[j])
            grad_values[j] += weights[i, j] * grad_result[i]
    return grad_weights, grad_values


def _weights_from_result(values: Tensor, point: Tensor) -> Tensor:
    with_ones = torch.cat([values, torch.ones(3, 1)], dim=1)
    weights: Tensor = torch.linalg.solve(with_ones.T, torch.cat([point, torch.ones(1)]))
    return weights


def _weights_by_areas(values: Tensor, point: Tensor) -> Tensor:
    def area(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return (b - a)[0] * (c - a)[1] - (b - a)[1] * (c - a)[0]

    a, b, c = values
    return torch.stack([area(point, b, c), area(a, point, c), area(a, b, point)]) / area(a, b, c)


def _weights_without_sum(values: Tensor, point: Tensor) -> Tensor:
    weights: Tensor = torch.linalg.lstsq(values.T, point[:, None]).solution[:, 0]
    return weights


def _weights_by_nearness(values: Tensor, point: Tensor) -> Tensor:
    nearness = 1 / (values - point).square().sum(dim=-1).sqrt()
    return nearness / nearness.sum()


TRIANGLE = torch.tensor([[1.0, 1.0], [5.0, 2.0], [2.0, 4.0]])
BACKWARD_CASES = tuple(
    tuple(
        torch.randn(shape, generator=torch.Generator().manual_seed(seed + i))
        for i, shape in enumerate(((queries, keys), (keys, d_v), (queries, d_v)))
    )
    for seed, queries, keys, d_v in ((0, 2, 3, 4), (10, 3, 3, 3))
)

EXERCISES = (
    Exercise(
        name="mean-as-weights",
        judge=same_function(_mean_weights, (3,), (1,), (7,)),
        right=(_mean_weights, lambda keys: torch.ones(keys)[None] / keys),
        mistakes={
            "these weights add the values up: a mean needs weights that sum to 1": (
                lambda keys: torch.ones(1, keys)
            ),
            "the weights are right but lack the axis of the queries: the shape is (1, keys)": (
                lambda keys: torch.full((keys,), 1 / keys)
            ),
            "the shape is (keys, 1): one query's weights are a row, (1, keys)": (
                lambda keys: torch.full((keys, 1), 1 / keys)
            ),
        },
    ),
    Exercise(
        name="running-mean",
        judge=same_function(_running_mean_weights, (3,), (1,), (5,)),
        right=(_running_mean_weights, _running_mean_by_rows),
        mistakes={
            "row i averages the values from i on: the weights belong below the diagonal": (
                lambda n: torch.ones(n, n).triu() / torch.arange(n, 0, -1.0)[:, None]
            ),
            "the rows do not sum to 1: this adds the values up": lambda n: torch.ones(n, n).tril(),
            "the rows do not sum to 1: row i has only i weights to share among, not n": (
                lambda n: torch.ones(n, n).tril() / n
            ),
            "the counts were divided along the wrong axis: broadcasting took them as a row": (
                lambda n: torch.ones(n, n).tril() / torch.arange(1.0, n + 1)
            ),
            "the columns sum to 1 instead of the rows": (
                lambda n: torch.ones(n, n).tril() / torch.arange(n, 0, -1.0)
            ),
            "row i leaves value i out: it belongs to the values so far": (
                lambda n: torch.ones(n, n).tril(-1) / torch.arange(n).clamp(min=1)[:, None]
            ),
        },
    ),
    Exercise(
        name="same-result-twice",
        judge=_same_result_twice,
        right=(
            torch.tensor([[0.5, 0.0, 0.5, 0.0], [0.0, 0.5, 0.0, 0.5]]),
            torch.tensor([[0.25, 0.25, 0.25, 0.25], [0.5, 0.0, 0.5, 0.0]]),
            torch.tensor([[0.4, 0.3, 0.2, 0.1], [0.3, 0.4, 0.1, 0.2]]),
            [[0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5]],
        ),
        mistakes={
            "both rows are the same weights": torch.full((2, 4), 0.25),
            "the two results differ": torch.tensor([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]),
            "a row does not sum to 1, so it is no convex combination": (
                torch.tensor([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]])
            ),
            "a weight is negative: sum 1 alone makes an affine combination, not a convex one": (
                torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, -1.0, 1.0]])
            ),
            "a tensor of shape (2, 4) is asked for, got (4, 2)": (
                torch.tensor([[0.5, 0.0, 0.5, 0.0], [0.0, 0.5, 0.0, 0.5]]).T
            ),
        },
    ),
    Exercise(
        name="weighted-sum-backward",
        judge=same_function(_weighted_sum_backward, *BACKWARD_CASES),
        right=(_weighted_sum_backward, _backward_by_entries),
        mistakes={
            "the gradients come in the other order: the weights first": (
                lambda weights, values, grad: (weights.T @ grad, grad @ values.T)
            ),
            "the values' gradient sums over the queries without their weights": (
                lambda weights, values, grad: (
                    grad @ values.T,
                    grad.sum(dim=0).expand_as(values),
                )
            ),
            "the gradient is summed over the queries twice: row i has its own": (
                lambda weights, values, grad: (
                    (grad.sum(dim=0) @ values.T).expand_as(weights),
                    weights.T @ grad,
                )
            ),
        },
    ),
    Exercise(
        name="weights-from-result",
        judge=same_function(
            _weights_from_result,
            (TRIANGLE, torch.tensor([2.7, 2.8])),
            (TRIANGLE, torch.tensor([7.0, 2.5])),
            (TRIANGLE, torch.tensor([1.0, 1.5])),
            tolerance=1e-4,
        ),
        right=(_weights_from_result, _weights_by_areas),
        mistakes={
            "these weights give the point but do not sum to 1: an equation is missing": (
                _weights_without_sum
            ),
            "the system is transposed: its unknowns multiply the columns, the weights the rows": (
                lambda values, point: torch.linalg.solve(
                    torch.cat([values, torch.ones(3, 1)], dim=1), torch.cat([point, torch.ones(1)])
                )
            ),
            "weights by nearness do not give the point back: compute their weighted sum": (
                _weights_by_nearness
            ),
        },
    ),
)
