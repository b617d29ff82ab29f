"""Exercises of chapter 8, Feed-forward."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from transformer_lib.course.exercises import Exercise, NotYetError, same_function
from transformer_lib.feed_forward import FeedForward

_GENERATOR = torch.Generator().manual_seed(8)


def _random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=_GENERATOR)


X = _random(4, 2)
WEIGHTS = (_random(2, 3), _random(3), _random(3, 2), _random(2))
SQUARE_X = _random(5, 3)
SQUARE_WEIGHTS = (_random(3, 3), _random(3), _random(3, 3), _random(3))


def _feed_forward(x: Tensor, W_1: Tensor, b_1: Tensor, W_2: Tensor, b_2: Tensor) -> Tensor:
    return torch.relu(x @ W_1 + b_1) @ W_2 + b_2


def _by_module(x: Tensor, W_1: Tensor, b_1: Tensor, W_2: Tensor, b_2: Tensor) -> Tensor:
    network = FeedForward(*W_1.shape)
    state = {
        "inner.weight": W_1.T,
        "inner.bias": b_1,
        "outer.weight": W_2.T,
        "outer.bias": b_2,
    }
    network.load_state_dict(state)
    return network(x)


def _by_loop(x: Tensor, W_1: Tensor, b_1: Tensor, W_2: Tensor, b_2: Tensor) -> Tensor:
    result = b_2.expand(len(x), -1)
    for key, b, value in zip(W_1.T, b_1, W_2, strict=True):
        result = result + (x @ key + b).clamp(min=0)[:, None] * value
    return result


def _share(d_model: int, d_ff: int) -> float:
    network = 2 * d_model * d_ff + d_ff + d_model
    return network / (network + 4 * d_model**2 + 8 * d_model)


def _share_counted(d_model: int, d_ff: int) -> float:
    layer = torch.nn.TransformerEncoderLayer(d_model, 1, d_ff)
    total = sum(p.numel() for p in layer.parameters())
    return sum(p.numel() for p in FeedForward(d_model, d_ff).parameters()) / total


def _collapsed(W_1: Tensor, b_1: Tensor, W_2: Tensor, b_2: Tensor) -> tuple[Tensor, Tensor]:
    return W_1 @ W_2, b_1 @ W_2 + b_2


def _collapsed_by_probing(
    W_1: Tensor, b_1: Tensor, W_2: Tensor, b_2: Tensor
) -> tuple[Tensor, Tensor]:
    def network(x: Tensor) -> Tensor:
        return (x @ W_1 + b_1) @ W_2 + b_2

    bias = network(torch.zeros(len(W_1)))
    return network(torch.eye(len(W_1))) - bias, bias


def _absolute(d_model: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    unit = torch.eye(d_model)
    W_1 = torch.cat([unit, -unit], dim=1)
    W_2 = torch.cat([unit, unit], dim=0)
    return W_1, torch.zeros(2 * d_model), W_2, torch.zeros(d_model)


def _absolute_otherwise(d_model: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """|x| = −x + 2 max(0, x), with −x + 1000 in a unit that stays positive for |x| < 1000."""
    unit = torch.eye(d_model)
    W_1 = torch.cat([-unit, unit], dim=1)
    b_1 = torch.cat([torch.full((d_model,), 1000.0), torch.zeros(d_model)])
    W_2 = torch.cat([unit, 2 * unit], dim=0)
    return W_1, b_1, W_2, torch.full((d_model,), -1000.0)


def _absolute_with(signs: tuple[int, int], outer: tuple[int, int]) -> Callable[[int], Any]:
    def weights(d_model: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        unit = torch.eye(d_model)
        W_1 = torch.cat([signs[0] * unit, signs[1] * unit], dim=1)
        W_2 = torch.cat([outer[0] * unit, outer[1] * unit], dim=0)
        return W_1, torch.zeros(2 * d_model), W_2, torch.zeros(d_model)

    return weights


def _one_unit_each(d_model: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    unit = torch.eye(d_model)
    return unit, torch.zeros(d_model), unit, torch.zeros(d_model)


class _ComputesAbsoluteValues:
    """Judge weights by what the network does with them: many choices are right."""

    def __call__(self, answer: Any) -> str | None:
        if answer is None or answer is ...:
            raise NotYetError
        for d_model in (2, 3):
            try:
                weights = answer(d_model)
            except NotImplementedError:
                raise NotYetError from None
            if weights is None or weights is ...:
                raise NotYetError
            x = 10 * torch.randn(20, d_model, generator=torch.Generator().manual_seed(d_model))
            try:
                came = _feed_forward(x, *weights)
            except (TypeError, RuntimeError) as error:
                return f"the network does not run with these weights: {error}"
            if came.shape != x.shape or not torch.allclose(came, x.abs(), atol=1e-2):
                return f"the network does not return absolute values for d_model = {d_model}"
        return None

    def alike(self, answer: Any, wrong: Any) -> bool:
        """Whether both choices of weights make networks that do the same."""
        try:
            return torch.allclose(_feed_forward(X, *answer(2)), _feed_forward(X, *wrong(2)))
        except Exception:
            return False


EXERCISES = (
    Exercise(
        name="feed-forward-formula",
        judge=same_function(_feed_forward, (X, *WEIGHTS), (SQUARE_X, *SQUARE_WEIGHTS)),
        right=(_feed_forward, _by_module, _by_loop),
        mistakes={
            "there is no activation: the two layers are one linear map": (
                lambda x, W_1, b_1, W_2, b_2: (x @ W_1 + b_1) @ W_2 + b_2
            ),
            "the activation stands after the second layer: it belongs between the two": (
                lambda x, W_1, b_1, W_2, b_2: torch.relu((x @ W_1 + b_1) @ W_2 + b_2)
            ),
            "there is an activation after both layers: only the hidden vector gets one": (
                lambda x, W_1, b_1, W_2, b_2: torch.relu(torch.relu(x @ W_1 + b_1) @ W_2 + b_2)
            ),
            "the first bias is added after the activation: it belongs before it": (
                lambda x, W_1, b_1, W_2, b_2: (torch.relu(x @ W_1) + b_1) @ W_2 + b_2
            ),
            "the biases are missing": lambda x, W_1, b_1, W_2, b_2: torch.relu(x @ W_1) @ W_2,
        },
    ),
    Exercise(
        name="feed-forward-share",
        judge=same_function(_share, (512, 2048), (4, 6), (8, 8)),
        right=(_share, _share_counted),
        mistakes={
            "the biases of the network are not counted": lambda d_model, d_ff: (
                2 * d_model * d_ff / (2 * d_model * d_ff + 4 * d_model**2 + 8 * d_model)
            ),
            "only one of the network's two matrices is counted": lambda d_model, d_ff: (
                (d_model * d_ff + d_ff)
                / (d_model * d_ff + d_ff + 4 * d_model**2 + 4 * d_model + 4 * d_model)
            ),
            "no biases and no normalisation are counted": lambda d_model, d_ff: (
                2 * d_model * d_ff / (2 * d_model * d_ff + 4 * d_model**2)
            ),
            "the normalisations are left out": lambda d_model, d_ff: (
                (2 * d_model * d_ff + d_ff + d_model)
                / (2 * d_model * d_ff + d_ff + d_model + 4 * d_model**2 + 4 * d_model)
            ),
            "this is the number of parameters, not their share": lambda d_model, d_ff: (
                2 * d_model * d_ff + d_ff + d_model
            ),
        },
    ),
    Exercise(
        name="collapsed-layers",
        judge=same_function(_collapsed, WEIGHTS, SQUARE_WEIGHTS, tolerance=1e-4),
        right=(_collapsed, _collapsed_by_probing),
        mistakes={
            "the first bias has to pass the second layer": lambda W_1, b_1, W_2, b_2: (
                W_1 @ W_2,
                b_2,
            ),
            "the first bias is multiplied by W_2, then the second one is added": (
                lambda W_1, b_1, W_2, b_2: (W_1 @ W_2, b_1 @ W_2)
            ),
            "the matrix is transposed: rows belong to what comes in": (
                lambda W_1, b_1, W_2, b_2: ((W_1 @ W_2).T, b_1 @ W_2 + b_2)
            ),
        },
    ),
    Exercise(
        name="absolute-value-weights",
        judge=_ComputesAbsoluteValues(),
        right=(_absolute, _absolute_otherwise),
        mistakes={
            "this network returns its input unchanged: both units must be added": _absolute_with(
                (1, -1), (1, -1)
            ),
            "negative numbers become 0: each entry needs a second unit for them": _one_unit_each,
            "both units of an entry have the same sign": _absolute_with((1, 1), (1, 1)),
            "the result is the negative of the absolute value": _absolute_with((1, -1), (-1, -1)),
        },
    ),
)
