"""Exercises of chapter 2, The inner product."""

import math

import torch
from torch import Tensor

from transformer_lib.course.exercises import Exercise, same_function


def _pairs(*vectors: tuple[list[float], list[float]]) -> tuple[tuple[Tensor, Tensor], ...]:
    return tuple((torch.tensor(a).double(), torch.tensor(b).double()) for a, b in vectors)


def _angle_in_degrees(a: Tensor, b: Tensor) -> Tensor:
    cosine = (a @ b) / (a.norm() * b.norm())
    return cosine.clamp(-1, 1).acos().rad2deg()


def _angle_from_sides(a: Tensor, b: Tensor) -> float:
    # The half angle, from the sides of the triangle of two unit vectors.
    a, b = a / a.norm(), b / b.norm()
    return math.degrees(2 * math.atan2((a - b).norm().item(), (a + b).norm().item()))


def _angle_with_a_margin(a: Tensor, b: Tensor) -> Tensor:
    cosine = (a @ b) / (a.norm() * b.norm())
    return cosine.clamp(-1 + 1e-12, 1 - 1e-12).acos().rad2deg()


def _shadow(a: Tensor, b: Tensor) -> Tensor:
    return (a @ b) / (a @ a) * a


def _shadow_by_matrix(a: Tensor, b: Tensor) -> Tensor:
    unit = a / a.norm()
    return torch.outer(unit, unit) @ b


def _unit(vectors: Tensor) -> Tensor:
    return vectors / vectors.norm(dim=-1, keepdim=True)


def _nearest_direction(query: Tensor, key: Tensor) -> Tensor:
    return (query @ _unit(key).T).argmax(dim=-1)


def _nearest_unit_vector(query: Tensor, key: Tensor) -> Tensor:
    return torch.cdist(_unit(query), _unit(key)).argmin(dim=1)


def _squared_distances(query: Tensor, key: Tensor) -> Tensor:
    of_queries = query.square().sum(dim=-1, keepdim=True)
    return of_queries + key.square().sum(dim=-1) - 2 * query @ key.T


def _squared_distances_by_loop(query: Tensor, key: Tensor) -> Tensor:
    return torch.stack([torch.stack([(q - k) @ (q - k) for k in key]) for q in query])


def _lengths_on_the_wrong_axes(query: Tensor, key: Tensor) -> Tensor:
    of_keys = key.square().sum(dim=-1, keepdim=True)
    return query.square().sum(dim=-1) + of_keys - 2 * query @ key.T


def _cosine_gradient(a: Tensor, b: Tensor) -> Tensor:
    unit_a, unit_b = _unit(a), _unit(b)
    return (unit_b - (unit_a @ unit_b) * unit_a) / a.norm()


def _cosine_gradient_by_product_rule(a: Tensor, b: Tensor) -> Tensor:
    lengths = a.norm() * b.norm()
    return b / lengths - (a @ b) * a / (lengths * (a @ a))


ANGLE_CASES = _pairs(
    ([3.0, 0.0], [0.0, 2.0]),
    ([1.0, 0.0, 0.0], [5.0, 5.0, 0.0]),
    ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
    ([2.0, -1.0, 1.0], [-4.0, 2.0, -2.0]),
)
VECTOR_CASES = _pairs(
    ([3.0, 1.0], [1.0, 2.0]),
    ([2.0, -1.0, 2.0], [1.0, 3.0, -1.0]),
    ([0.5, 0.0, 0.5, 1.0], [-4.0, 2.0, 1.0, 1.0]),
)
# As many queries as keys, so that a mistake in the axes runs and can be named.
MATRIX_CASES = (
    (
        torch.tensor([[2.0, -1.0, 1.0], [0.0, 2.0, -2.0], [1.0, 1.0, 0.5]]),
        torch.tensor([[2.0, -1.0, 1.0], [4.0, 2.0, 3.0], [1.0, 3.0, -1.0]]),
    ),
    (
        torch.tensor([[1.0, 0.2], [0.1, 3.0]]),
        torch.tensor([[0.5, 0.1], [6.0, 9.0]]),
    ),
)
MORE_QUERIES = (
    torch.tensor([[1.0, 0.0], [0.0, 5.0], [-1.0, 0.1], [2.0, 3.0]]),
    torch.tensor([[3.0, 3.0], [0.5, 0.0], [-1.0, 2.0]]),
)

EXERCISES = (
    Exercise(
        name="angle-in-degrees",
        # A clamp a little inside of 1 gives 0.0001° for vectors of the same direction.
        judge=same_function(_angle_in_degrees, *ANGLE_CASES, tolerance=1e-3),
        right=(_angle_in_degrees, _angle_from_sides, _angle_with_a_margin),
        mistakes={
            "this is the angle in radians: 180° are π": (
                lambda a, b: _angle_in_degrees(a, b).deg2rad()
            ),
            "this is the cosine of the angle: the arc cosine is missing": (
                lambda a, b: (a @ b) / (a.norm() * b.norm())
            ),
            "NaN for (1, 1, 1) with itself: rounding takes the cosine past 1, so clamp it": (
                lambda a, b: ((a @ b) / (a.norm() * b.norm())).acos().rad2deg()
            ),
            "the lengths are not divided out: the arc cosine needs the cosine": (
                lambda a, b: (a @ b).clamp(-1, 1).acos().rad2deg()
            ),
        },
    ),
    Exercise(
        name="shadow",
        judge=same_function(_shadow, *VECTOR_CASES),
        right=(_shadow, _shadow_by_matrix),
        mistakes={
            "this is the length of the shadow: multiply it by the unit vector along a": (
                lambda a, b: (a @ b) / a.norm()
            ),
            "this is too long by the length of a: it has to be divided out twice": (
                lambda a, b: (a @ b) / a.norm() * a
            ),
            "this is the shadow of a on the line through b": lambda a, b: _shadow(b, a),
            "this is what is left of b when the shadow is taken away": (
                lambda a, b: b - _shadow(a, b)
            ),
            "the shadow lies along a, and this lies along b": lambda a, b: (a @ b) / (a @ a) * b,
        },
    ),
    Exercise(
        name="nearest-direction",
        judge=same_function(_nearest_direction, *MATRIX_CASES, MORE_QUERIES),
        right=(_nearest_direction, _nearest_unit_vector),
        mistakes={
            "this ranks by the inner product: the lengths of the keys still count in it": (
                lambda query, key: (query @ key.T).argmax(dim=-1)
            ),
            "this finds a query for each key: choose along the axis of the keys": (
                lambda query, key: (_unit(query) @ _unit(key).T).argmax(dim=0)
            ),
            "this finds the direction farthest away: the cosine is largest for the nearest": (
                lambda query, key: (query @ _unit(key).T).argmin(dim=-1)
            ),
            "these are the cosines: the index of the key is asked for": (
                lambda query, key: (_unit(query) @ _unit(key).T).amax(dim=-1)
            ),
            "this is the key with the nearest head, not with the nearest direction": (
                lambda query, key: torch.cdist(query, key).argmin(dim=-1)
            ),
        },
    ),
    Exercise(
        name="squared-distances",
        judge=same_function(_squared_distances, *MATRIX_CASES, tolerance=1e-4),
        right=(_squared_distances, _squared_distances_by_loop),
        mistakes={
            "the inner products are subtracted once, and the square has them twice": (
                lambda query, key: _squared_distances(query, key) + query @ key.T
            ),
            "this is the square of the sum of the vectors: look at the sign": (
                lambda query, key: _squared_distances(query, key) + 4 * query @ key.T
            ),
            "the squared lengths stand on the wrong axes: the queries' are a column": (
                _lengths_on_the_wrong_axes
            ),
            "the queries' squared lengths lie along the keys: keepdim makes them a column": (
                lambda query, key: (
                    query.square().sum(dim=-1) + key.square().sum(dim=-1) - 2 * query @ key.T
                )
            ),
            "these are the distances: the square is asked for": (
                lambda query, key: torch.cdist(query, key)
            ),
            "lengths where squared lengths belong": (
                lambda query, key: (
                    query.norm(dim=-1, keepdim=True) + key.norm(dim=-1) - 2 * query @ key.T
                )
            ),
            "only query i with key i: all pairs are asked for": (
                lambda query, key: (query - key).square().sum(dim=-1)
            ),
        },
    ),
    Exercise(
        name="cosine-gradient",
        judge=same_function(_cosine_gradient, *VECTOR_CASES),
        right=(_cosine_gradient, _cosine_gradient_by_product_rule),
        mistakes={
            "this is the gradient of the inner product": lambda a, b: b,
            "the length of a changes too: the part along a is still in it": (
                lambda a, b: b / (a.norm() * b.norm())
            ),
            "the direction is right: a long vector turns slowly, so divide by the length of a": (
                lambda a, b: _cosine_gradient(a, b) * a.norm()
            ),
            "this is the gradient with respect to b": lambda a, b: _cosine_gradient(b, a),
            "this points the way in which the cosine falls": lambda a, b: -_cosine_gradient(a, b),
        },
    ),
)
