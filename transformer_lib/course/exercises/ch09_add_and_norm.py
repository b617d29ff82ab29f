"""Exercises of chapter 9, Add & norm."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer_lib.add_norm import AddNorm, layer_norm
from transformer_lib.course.exercises import Exercise, same_function

_GENERATOR = torch.Generator().manual_seed(9)


def _random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=_GENERATOR)


X, G = 2 * _random(4, 6) + 1, _random(4, 6)
SQUARE_X, SQUARE_G = _random(5, 5), _random(5, 5)
GAIN, BIAS, SQUARE_GAIN, SQUARE_BIAS = _random(6), _random(6), _random(5), _random(5)


def _normalised(
    x: Tensor, eps: float, *, dim: int | tuple[int, ...] = -1, correction: int = 0
) -> Tensor:
    variance = x.var(dim=dim, keepdim=True, correction=correction)
    return (x - x.mean(dim=dim, keepdim=True)) / torch.sqrt(variance + eps)


def _layer_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    return _normalised(x, eps) * gain + bias


def _backward(x: Tensor, g: Tensor, eps: float) -> Tensor:
    hat = _normalised(x, eps)
    s = torch.sqrt(x.var(dim=-1, keepdim=True, correction=0) + eps)
    return (g - g.mean(-1, keepdim=True) - hat * (g * hat).mean(-1, keepdim=True)) / s


def _backward_by_autograd(x: Tensor, g: Tensor, eps: float) -> Tensor:
    x = x.detach().requires_grad_()
    return torch.autograd.grad(F.layer_norm(x, x.shape[-1:], eps=eps), x, g)[0]


def _backward_by_jacobian(x: Tensor, g: Tensor, eps: float) -> Tensor:
    d = x.shape[-1]
    rows = []
    for token, gradient in zip(x, g, strict=True):
        hat = _normalised(token, eps)
        s = torch.sqrt(token.var(correction=0) + eps)
        rows.append((torch.eye(d) - 1 / d - torch.outer(hat, hat) / d) / s @ gradient)
    return torch.stack(rows)


def _backward_without(
    x: Tensor,
    g: Tensor,
    eps: float,
    *,
    mean: bool = True,
    along: bool = True,
    size: bool = True,
) -> Tensor:
    hat = _normalised(x, eps)
    result = g
    if mean:
        result = result - g.mean(-1, keepdim=True)
    if along:
        result = result - hat * (g * hat).mean(-1, keepdim=True)
    return result / torch.sqrt(x.var(-1, keepdim=True, correction=0) + eps) if size else result


Sublayers = Sequence[Callable[[Tensor], Tensor]]
SUBLAYERS = [torch.sin, lambda x: 0.5 * x.flip(-1), torch.square]


def _stack(x: Tensor, sublayers: Sublayers, norm_first: bool) -> Tensor:
    for f in sublayers:
        x = x + f(layer_norm(x)) if norm_first else layer_norm(x + f(x))
    return layer_norm(x) if norm_first else x


def _stack_of_modules(x: Tensor, sublayers: Sublayers, norm_first: bool) -> Tensor:
    add_norm = AddNorm(x.shape[-1], norm_first=norm_first)
    for f in sublayers:
        x = add_norm(x, f)
    return F.layer_norm(x, x.shape[-1:]) if norm_first else x


def _stack_without_final_norm(x: Tensor, sublayers: Sublayers, norm_first: bool) -> Tensor:
    for f in sublayers:
        x = x + f(layer_norm(x)) if norm_first else layer_norm(x + f(x))
    return x


def _stack_without_residual(x: Tensor, sublayers: Sublayers, norm_first: bool) -> Tensor:
    for f in sublayers:
        x = f(layer_norm(x)) if norm_first else layer_norm(f(x))
    return layer_norm(x) if norm_first else x


def _stack_on_the_norm(x: Tensor, sublayers: Sublayers, norm_first: bool) -> Tensor:
    for f in sublayers:
        y = layer_norm(x)
        x = y + f(y) if norm_first else layer_norm(x + f(x))
    return layer_norm(x) if norm_first else x


def _variances(n_layers: int, c: float) -> tuple[float, float]:
    return 1 + n_layers * c, (1 + c) ** n_layers


def _variances_by_loop(n_layers: int, c: float) -> tuple[float, float]:
    pre = plain = 1.0
    for _ in range(n_layers):
        pre, plain = pre + c, plain + c * plain
    return pre, plain


EXERCISES = (
    Exercise(
        name="layer-norm-formula",
        judge=same_function(
            _layer_norm,
            (X, GAIN, BIAS, 1e-5),
            (SQUARE_X, SQUARE_GAIN, SQUARE_BIAS, 0.1),
        ),
        right=(
            _layer_norm,
            lambda x, gain, bias, eps: F.layer_norm(x, gain.shape, gain, bias, eps),
        ),
        mistakes={
            "the variance is divided by d − 1: correction=0 divides by d": (
                lambda x, gain, bias, eps: _normalised(x, eps, correction=1) * gain + bias
            ),
            "mean and variance run over the tokens: they belong to each token": (
                lambda x, gain, bias, eps: _normalised(x, eps, dim=0) * gain + bias
            ),
            "one mean and one variance for all tokens: every token has its own": (
                lambda x, gain, bias, eps: _normalised(x, eps, dim=(0, 1)) * gain + bias
            ),
            "epsilon stands outside the root": lambda x, gain, bias, eps: (
                (x - x.mean(-1, keepdim=True))
                / (x.std(-1, keepdim=True, correction=0) + eps)
                * gain
                + bias
            ),
            "the root is missing: divide by the standard deviation, not the variance": (
                lambda x, gain, bias, eps: (
                    (x - x.mean(-1, keepdim=True))
                    / (x.var(-1, keepdim=True, correction=0) + eps)
                    * gain
                    + bias
                )
            ),
            "gain and bias are missing": lambda x, gain, bias, eps: _normalised(x, eps),
        },
    ),
    Exercise(
        name="layer-norm-backward",
        judge=same_function(_backward, (X, G, 1e-5), (SQUARE_X, SQUARE_G, 0.5), tolerance=1e-4),
        right=(_backward, _backward_by_autograd, _backward_by_jacobian),
        mistakes={
            "mean and variance were taken for constants: they move with x too": (
                lambda x, g, eps: _backward_without(x, g, eps, mean=False, along=False)
            ),
            "the mean of g is not taken away": lambda x, g, eps: _backward_without(
                x, g, eps, mean=False
            ),
            "the part along x-hat is not taken away: the variance moves with x": (
                lambda x, g, eps: _backward_without(x, g, eps, along=False)
            ),
            "the division by the vector's size is missing": lambda x, g, eps: _backward_without(
                x, g, eps, size=False
            ),
            "this is the forward pass: the gradient is asked for": lambda x, g, eps: _normalised(
                x, eps
            ),
        },
    ),
    Exercise(
        name="post-and-pre-norm-stack",
        judge=same_function(
            _stack,
            (X, SUBLAYERS, False),
            (X, SUBLAYERS, True),
            (SQUARE_X, SUBLAYERS[:1], True),
        ),
        right=(_stack, _stack_of_modules),
        mistakes={
            "the two orders are exchanged: norm_first normalises what goes into f": (
                lambda x, sublayers, norm_first: _stack(x, sublayers, not norm_first)
            ),
            "the pre-norm stack does not end in a normalisation": _stack_without_final_norm,
            "the residual connection is missing": _stack_without_residual,
            "pre-norm adds to x itself, not to the normalised x": _stack_on_the_norm,
        },
    ),
    Exercise(
        name="variance-with-depth",
        judge=same_function(_variances, (50, 0.5), (6, 0.1), (1, 2.0)),
        right=(_variances, _variances_by_loop),
        mistakes={
            "the two are exchanged: pre-norm comes first": lambda n, c: _variances(n, c)[::-1],
            "the variance at the bottom, 1, is missing in the first": lambda n, c: (
                n * c,
                (1 + c) ** n,
            ),
            "without the residual the variance would be this: it adds 1 to c": lambda n, c: (
                1 + n * c,
                c**n,
            ),
            "these are standard deviations: variances are asked for": lambda n, c: (
                (1 + n * c) ** 0.5,
                (1 + c) ** (n / 2),
            ),
        },
    ),
)
