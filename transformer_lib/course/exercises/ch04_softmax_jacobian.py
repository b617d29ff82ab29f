"""Exercises of chapter 4, The softmax Jacobian."""

import math
from typing import Any

import torch
from torch import Tensor

from transformer_lib.course.exercises import Exercise, same_function, same_value

SCORES = torch.tensor([2.0, 1.0, 0.0, -1.0])
WEIGHTS = torch.tensor([0.5, 0.3, 0.2])
MORE_WEIGHTS = torch.tensor([0.1, 0.2, 0.3, 0.4])


def _temperature_softmax(scores: Tensor, temperature: float) -> Tensor:
    return torch.softmax(scores / temperature, dim=-1)


def _log_softmax_jacobian(weights: Tensor) -> Tensor:
    return torch.eye(len(weights)) - weights


def _jacobian(weights: Tensor) -> Tensor:
    return torch.diag(weights) - torch.outer(weights, weights)


def _jacobian_norm(weights: Tensor) -> Tensor:
    squares = weights.square().sum()
    return (squares - 2 * weights.pow(3).sum() + squares**2).sqrt()


def _divisor(d_k: int, mean: float, std: float) -> float:
    return math.sqrt(d_k * (mean**2 + std**2) * std**2)


MATRIX_FORMED = "this forms a matrix of n × n entries: power sums of the weights are enough"


class _WithoutMatrix(same_function):
    """Run a right function also on so many weights that no memory holds a matrix of them."""

    def __call__(self, answer: Any) -> str | None:
        problem = super().__call__(answer)
        if problem is None:
            try:
                answer(torch.full((10_000_000,), 1e-7))
            except (MemoryError, RuntimeError):
                return MATRIX_FORMED
        return problem


EXERCISES = (
    Exercise(
        name="temperature-softmax",
        judge=same_function(_temperature_softmax, (SCORES, 2.0), (SCORES, 0.5), (SCORES, 1.0)),
        right=(
            _temperature_softmax,
            lambda scores, t: torch.exp(scores / t) / torch.exp(scores / t).sum(),
        ),
        mistakes={
            "a high temperature sharpens here: divide by it instead of multiplying": lambda z, t: (
                torch.softmax(z * t, dim=-1)
            ),
            "the weights were divided, not the scores: they no longer sum to 1": lambda z, t: (
                torch.softmax(z, dim=-1) / t
            ),
            "the weights were raised to the power 1/T: divide them by their new sum": lambda z, t: (
                torch.softmax(z, dim=-1) ** (1 / t)
            ),
            "only the exponentials above are tempered: the sum needs the temperature too": (
                lambda z, t: torch.exp(z / t) / torch.exp(z).sum()
            ),
            "the temperature is subtracted, and a shift changes nothing: divide by it": (
                lambda z, t: torch.softmax(z - t, dim=-1)
            ),
        },
    ),
    Exercise(
        name="softmax-backward-by-hand",
        judge=same_value([0.75, -0.625, -0.125]),
        right=(
            [0.75, -0.625, -0.125],
            (3 / 4, -5 / 8, -1 / 8),
            torch.tensor([0.75, -0.625, -0.125]),
        ),
        mistakes={
            "the average is not subtracted: s ⊙ u is only the first half": [2.0, 0.0, 0.5],
            "only the diagonal of the Jacobian is used": [1.0, 0.0, 0.375],
            "the differences from the average still have to be multiplied by the weights": [
                1.5,
                -2.5,
                -0.5,
            ],
            "the signs are turned round: it is u minus the average": [-0.75, 0.625, 0.125],
            "the plain average of u was taken: the weights belong in it": [1.0, -0.5, 0.0],
        },
    ),
    Exercise(
        name="log-softmax-jacobian",
        judge=same_function(_log_softmax_jacobian, (WEIGHTS,), (MORE_WEIGHTS,)),
        right=(
            _log_softmax_jacobian,
            lambda s: torch.diag(1 / s) @ _jacobian(s),
            lambda s: torch.eye(len(s)) - torch.outer(torch.ones(len(s)), s),
        ),
        mistakes={
            "transposed: row i belongs to the output, column j to the score": lambda s: (
                torch.eye(len(s)) - s[:, None]
            ),
            "this is the Jacobian of softmax itself: divide row i by s_i": _jacobian,
            "the sign of s is wrong": lambda s: torch.eye(len(s)) + s,
            "the 1 on the diagonal is missing": lambda s: (-s).expand(len(s), -1),
            "only the diagonal: each output depends on every score": lambda s: torch.diag(1 - s),
        },
    ),
    Exercise(
        name="jacobian-norm-without-matrix",
        judge=_WithoutMatrix(
            _jacobian_norm, (WEIGHTS,), (MORE_WEIGHTS,), (torch.full((64,), 1 / 64),)
        ),
        right=(
            _jacobian_norm,
            lambda s: (s**2 @ ((1 - s) ** 2 - s**2 + (s**2).sum())).sqrt(),
        ),
        mistakes={
            MATRIX_FORMED: lambda s: torch.linalg.matrix_norm(_jacobian(s)),
            "this is the square of the norm: the root is missing": lambda s: _jacobian_norm(s) ** 2,
            "only the diagonal: the sum of sᵢ²sⱼ² over i and j is (Σ s²)², not Σ s⁴": lambda s: (
                s * (1 - s)
            ).norm(),
            "the mixed term is missing": lambda s: ((s**2).sum() + (s**2).sum() ** 2).sqrt(),
            "the mixed term counts twice: (a − b)² = a² − 2ab + b²": lambda s: (
                (s**2).sum() - (s**3).sum() + (s**2).sum() ** 2
            ).sqrt(),
        },
    ),
    Exercise(
        name="unit-variance-divisor",
        judge=same_function(_divisor, (64, 1.0, 1.0), (16, 0.0, 2.0), (100, 0.5, 0.3)),
        right=(
            _divisor,
            lambda d, m, s: s * (d * (m * m + s * s)) ** 0.5,
            lambda d, m, s: torch.tensor(d * (s**4 + (m * s) ** 2)).sqrt(),
        ),
        mistakes={
            "this is the variance: divide by its root": lambda d, m, s: _divisor(d, m, s) ** 2,
            "√d_k is right for mean 0 and standard deviation 1 only": lambda d, m, s: math.sqrt(d),
            "the mean of the queries is missing": lambda d, m, s: math.sqrt(d) * s**2,
            "this is for all pairs; within a row the mean of the keys is only a shift": (
                lambda d, m, s: math.sqrt(d * (s**4 + 2 * (m * s) ** 2))
            ),
            "this is the norm of a query: the spread of the keys is missing": lambda d, m, s: (
                math.sqrt(d * (m**2 + s**2))
            ),
        },
    ),
)
