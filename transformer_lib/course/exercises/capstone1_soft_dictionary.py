"""Capstone of part 1, From weighted sums to attention: a soft dictionary that learns."""

from typing import Any

import torch
from torch import Tensor

from transformer_lib.course.exercises import Exercise, NotYetError, same_function

_Gradients = tuple[Tensor, Tensor, Tensor]


def _look_up(x: Tensor, points: Tensor, values: Tensor, sharpness: float) -> Tensor:
    scores = sharpness * (x @ points.T - points.square().sum(dim=-1) / 2)
    return torch.softmax(scores, dim=-1) @ values


def _by_distances(x: Tensor, points: Tensor, values: Tensor, sharpness: float) -> Tensor:
    """Weigh with the distances themselves, one query after another."""
    rows = []
    for query in x:
        scores = -sharpness / 2 * (query - points).square().sum(dim=-1)
        exponentials = (scores - scores.max()).exp()
        rows.append((exponentials / exponentials.sum()) @ values)
    return torch.stack(rows)


def _without_lengths(x: Tensor, points: Tensor, values: Tensor, sharpness: float) -> Tensor:
    return torch.softmax(sharpness * (x @ points.T), dim=-1) @ values


def _not_halved(x: Tensor, points: Tensor, values: Tensor, sharpness: float) -> Tensor:
    return _look_up(x, points, values, 2 * sharpness)


def _not_squared(x: Tensor, points: Tensor, values: Tensor, sharpness: float) -> Tensor:
    return torch.softmax(-sharpness / 2 * torch.cdist(x, points), dim=-1) @ values


def _farthest(x: Tensor, points: Tensor, values: Tensor, sharpness: float) -> Tensor:
    return _look_up(x, points, values, -sharpness)


def _over_queries(x: Tensor, points: Tensor, values: Tensor, sharpness: float) -> Tensor:
    distances = (x[:, None] - points).square().sum(dim=-1)
    return torch.softmax(-sharpness / 2 * distances, dim=0) @ values


def _underflow(x: Tensor, points: Tensor, values: Tensor, sharpness: float) -> Tensor:
    exponentials = (-sharpness / 2 * (x[:, None] - points).square().sum(dim=-1)).exp()
    return exponentials / exponentials.sum(dim=-1, keepdim=True) @ values


def _backward(
    x: Tensor, points: Tensor, values: Tensor, sharpness: float, grad: Tensor
) -> _Gradients:
    fit = x @ points.T - points.square().sum(dim=-1) / 2
    weights = torch.softmax(sharpness * fit, dim=-1)
    grad_weights = grad @ values.T
    mean = (weights * grad_weights).sum(dim=-1, keepdim=True)
    grad_scores = weights * (grad_weights - mean)
    grad_points = sharpness * (grad_scores.T @ x - grad_scores.sum(dim=0)[:, None] * points)
    return grad_points, weights.T @ grad, (grad_scores * fit).sum()


def _by_autograd(
    x: Tensor, points: Tensor, values: Tensor, sharpness: float, grad: Tensor
) -> _Gradients:
    leaves = [points.clone(), values.clone(), torch.tensor(sharpness)]
    for leaf in leaves:
        leaf.requires_grad_()
    points, values, scale = leaves
    distances = (x[:, None] - points).square().sum(dim=-1)
    result = torch.softmax(-scale / 2 * distances, dim=-1) @ values
    first, second, third = torch.autograd.grad(result, leaves, grad)
    return first, second, third


def _without_mean(
    x: Tensor, points: Tensor, values: Tensor, sharpness: float, grad: Tensor
) -> _Gradients:
    fit = x @ points.T - points.square().sum(dim=-1) / 2
    weights = torch.softmax(sharpness * fit, dim=-1)
    grad_scores = weights * (grad @ values.T)
    grad_points = sharpness * (grad_scores.T @ x - grad_scores.sum(dim=0)[:, None] * points)
    return grad_points, weights.T @ grad, (grad_scores * fit).sum()


def _points_once(
    x: Tensor, points: Tensor, values: Tensor, sharpness: float, grad: Tensor
) -> _Gradients:
    right, grad_values, grad_sharpness = _backward(x, points, values, sharpness, grad)
    weights = torch.softmax(sharpness * (x @ points.T - points.square().sum(dim=-1) / 2), dim=-1)
    grad_weights = grad @ values.T
    grad_scores = weights * (grad_weights - (weights * grad_weights).sum(dim=-1, keepdim=True))
    return right + sharpness * grad_scores.sum(dim=0)[:, None] * points, grad_values, grad_sharpness


def _without_sharpness(
    x: Tensor, points: Tensor, values: Tensor, sharpness: float, grad: Tensor
) -> _Gradients:
    grad_points, grad_values, grad_sharpness = _backward(x, points, values, sharpness, grad)
    return grad_points / sharpness, grad_values, grad_sharpness


def _sharpness_by_scores(
    x: Tensor, points: Tensor, values: Tensor, sharpness: float, grad: Tensor
) -> _Gradients:
    grad_points, grad_values, grad_sharpness = _backward(x, points, values, sharpness, grad)
    return grad_points, grad_values, grad_sharpness * sharpness


def _wrong_sign(
    x: Tensor, points: Tensor, values: Tensor, sharpness: float, grad: Tensor
) -> _Gradients:
    grad_points, grad_values, grad_sharpness = _backward(x, points, values, sharpness, grad)
    return -grad_points, grad_values, grad_sharpness


def wave(x: Tensor) -> Tensor:
    """Return the function that the dictionary has to learn."""
    return torch.sin(3 * x) + x / 2


KEYS = 8
X = 4 * torch.rand(200, 1, generator=torch.Generator().manual_seed(1)) - 2
NEW_X = torch.linspace(-1.9, 1.9, 101)[:, None]


def _error(dictionary: tuple[Tensor, Tensor, Any]) -> float:
    points, values, sharpness = dictionary
    predicted = _look_up(NEW_X, points, values, float(sharpness))
    return (predicted - wave(NEW_X)).square().mean().sqrt().item()


def _evenly(x: Tensor, y: Tensor, keys: int) -> tuple[Tensor, Tensor, float]:
    points = torch.linspace(-2, 2, keys)[:, None]
    return points, wave(points), 8.0


class _Learns:
    """Judge a dictionary by its error on points that it has not seen."""

    def __call__(self, answer: Any) -> str | None:
        if answer is None or answer is ...:
            raise NotYetError
        if not callable(answer):
            return f"a function is asked for, got {type(answer).__name__}"
        try:
            learnt = answer(X.clone(), wave(X), KEYS)
        except NotImplementedError:
            raise NotYetError from None
        except Exception as raised:
            return f"your function raised {type(raised).__name__}: {raised}"
        if learnt is None or learnt is ...:
            raise NotYetError
        try:
            points, values, _ = learnt
            shapes = tuple(points.shape), tuple(values.shape)
        except (AttributeError, TypeError, ValueError):
            return "three things are asked for: points, values and the sharpness"
        if shapes != ((KEYS, 1), (KEYS, 1)):
            return f"points and values of shape (keys, 1) = {(KEYS, 1)} are asked for"
        error = _error(learnt)
        if not error < _error(_evenly(X, wave(X), KEYS)):
            return "evenly spaced points that nobody trained do as well: nothing was learnt"
        if error > 0.15:
            return (
                f"on new points the error is {error:.2f}: less than 0.1 can be had, go on learning"
            )
        return None


def _learn(x: Tensor, y: Tensor, keys: int) -> tuple[Tensor, Tensor, float]:
    points, values, sharpness = _evenly(x, y, keys)
    for _ in range(500):
        grad = (_look_up(x, points, values, sharpness) - y) / len(x)
        grad_points, grad_values, grad_sharpness = _backward(x, points, values, sharpness, grad)
        points = points - 0.05 * grad_points
        values = values - 0.5 * grad_values
        sharpness = sharpness - 0.5 * grad_sharpness.item()
    return points, values, sharpness


def _learn_by_adam(x: Tensor, y: Tensor, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    points = torch.linspace(-1.9, 1.9, keys)[:, None]
    leaves = [points, torch.zeros(keys, 1), torch.tensor(8.0)]
    for leaf in leaves:
        leaf.requires_grad_()
    optimizer = torch.optim.Adam(leaves, lr=0.05)
    points, values, sharpness = leaves
    for _ in range(150):
        scores = sharpness * (x @ points.T - points.square().sum(dim=-1) / 2)
        loss = (torch.softmax(scores, dim=-1) @ values - y).square().mean()
        optimizer.zero_grad()
        torch.autograd.backward([loss])
        optimizer.step()
    return points.detach(), values.detach(), sharpness.detach()


def _uphill(x: Tensor, y: Tensor, keys: int) -> tuple[Tensor, Tensor, float]:
    points, values, sharpness = _evenly(x, y, keys)
    for _ in range(20):
        grad = (_look_up(x, points, values, sharpness) - y) / len(x)
        values = values + 0.5 * _backward(x, points, values, sharpness, grad)[1]
    return points, values, sharpness


_G = torch.Generator().manual_seed(2)
PLANE = (
    torch.randn(5, 2, generator=_G),
    torch.randn(4, 2, generator=_G),
    torch.randn(4, 3, generator=_G),
    1.5,
)
FAR = (torch.tensor([[30.0], [-25.0]]), torch.tensor([[0.0], [1.0], [2.0]]), torch.eye(3), 2.0)
GRAD = torch.randn(5, 3, generator=_G)

EXERCISES = (
    Exercise(
        name="soft-dictionary",
        judge=same_function(_look_up, PLANE, FAR),
        right=(_look_up, _by_distances),
        mistakes={
            "long points win: their half squared length is missing from the scores": (
                _without_lengths
            ),
            "the sharpness counts twice: it multiplies half the squared distance": _not_halved,
            "this weighs by the distance, not by its square": _not_squared,
            "the farthest point gets the most weight: mind the sign": _farthest,
            "the softmax runs over the queries: it runs over the points": _over_queries,
            "far from all points every exponential is 0, and 0/0 is NaN: subtract the largest "
            "score first": _underflow,
        },
    ),
    Exercise(
        name="soft-dictionary-backward",
        judge=same_function(_backward, (*PLANE, GRAD), (*FAR, torch.ones(2, 3)), tolerance=1e-4),
        right=(_backward, _by_autograd),
        mistakes={
            "the gradient of the scores lacks its mean: s ⊙ (u − ⟨s, u⟩)": _without_mean,
            "a point stands in two places, in the product and in its squared length": _points_once,
            "the points' gradient lacks the factor of the sharpness": _without_sharpness,
            "the sharpness multiplies the scores: its gradient is a sum over scores before it": (
                _sharpness_by_scores
            ),
            "the points' gradient has the wrong sign": _wrong_sign,
        },
    ),
    Exercise(
        name="soft-dictionary-learns",
        judge=_Learns(),
        right=(_learn, _learn_by_adam),
        mistakes={
            "evenly spaced points that nobody trained do as well: nothing was learnt": _evenly,
            "three things are asked for: points, values and the sharpness": (
                lambda x, y, keys: _evenly(x, y, keys)[:2]
            ),
            "points and values of shape (keys, 1) = (8, 1) are asked for": (
                lambda x, y, keys: (torch.zeros(keys), torch.zeros(keys), 1.0)
            ),
        },
    ),
)
