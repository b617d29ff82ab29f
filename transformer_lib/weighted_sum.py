"""Weighted sums of vectors, and a test for weights that make them convex.

Explained in chapter 1, "Weighted sums" (book/01_weighted_sums.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from transformer_lib._checks.common import (
    require_axes,
    require_broadcastable,
    require_floating,
    require_same_size,
)

__all__ = ["is_convex", "weighted_sum"]


def is_convex(
    weights: Float[Tensor, "*batch keys"], tolerance: float | None = None
) -> Bool[Tensor, "*batch"]:
    """Tell for each row of weights whether it makes a convex combination.

    A row does when no weight is negative and the weights sum to 1. The first condition is
    exact; the second leaves room for rounding.

    Args:
        weights: Weights of shape (*batch, keys), one row for each sum.
        tolerance: How far the sum may be from 1, at least 0. By default half of the digits of
            the dtype, the square root of its machine epsilon: 3e-4 in float32, 0.03 in float16.

    Returns:
        Booleans of shape (*batch). False for a row with a NaN or an infinity, and for a row
        without keys, whose sum is 0.

    Raises:
        TypeError: ``weights`` is not a floating-point tensor, or ``tolerance`` is no number.
        ValueError: ``weights`` has no axis, or ``tolerance`` is negative or NaN.

    Source: Boyd and Vandenberghe, Convex Optimization, section 2.1.4.
    """
    require_floating(weights=weights)
    require_axes("keys", weights=weights)
    if tolerance is None:
        tolerance = torch.finfo(weights.dtype).eps ** 0.5
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float):
        raise TypeError(f"tolerance: expected a number, got {type(tolerance).__name__}")
    if not tolerance >= 0:  # so that NaN is refused too
        raise ValueError(f"tolerance: expected a number of at least 0, got {tolerance}")
    none_negative = (weights >= 0).all(dim=-1)
    sum_is_one = (weights.sum(dim=-1) - 1).abs() <= tolerance
    return none_negative & sum_is_one


def weighted_sum(
    weights: Float[Tensor, "*#batch queries keys"],
    values: Float[Tensor, "*#batch keys d_v"],
) -> Float[Tensor, "*#batch queries d_v"]:
    """Mix values: row i of the result is the sum over j of weights[i, j] * values[j].

    Nothing is asked of the weights. When a row of them is convex (see `is_convex`), its
    result lies in the convex hull of the values.

    Args:
        weights: Weights of shape (*batch, queries, keys), one row for each result.
        values: Vectors to be mixed, of shape (*batch, keys, d_v).

    Returns:
        Results of shape (*batch, queries, d_v), in the units of the values where the
        weights are shares. The batch axes are broadcast. Without keys a result is the empty
        sum, 0. A value that is NaN or infinite reaches every result, also one that gives it
        the weight 0: 0 times infinity is NaN.

    Raises:
        TypeError: An argument is not a floating-point tensor, or dtypes or devices differ.
        ValueError: An argument has fewer than two axes, ``keys`` differs, or the batch axes
            do not broadcast.

    Source: Vaswani et al. (2017), section 3.2: the output of attention.
    """
    require_floating(weights=weights, values=values)
    require_axes("queries keys", weights=weights)
    require_axes("keys d_v", values=values)
    require_same_size("keys", weights=(weights, -1), values=(values, -2))
    require_broadcastable("batch", weights=weights.shape[:-2], values=values.shape[:-2])
    return weights @ values
