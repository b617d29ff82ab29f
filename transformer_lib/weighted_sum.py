"""Weighted sums of vectors, and a test for weights that make them convex.

Explained in chapter 1, "Weighted sums" (book/01_weighted_sums.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from transformer_lib._checks import attention as check

__all__ = ["is_convex", "weighted_sum"]


def is_convex(
    weights: Float[Tensor, "*batch keys"], tolerance: float | None = None
) -> Bool[Tensor, "*batch"]:
    """Tell for each row of weights whether it makes a convex combination.

    A row does when no weight is negative and the weights sum to 1. The first condition is exact;
    the second leaves room for rounding. A row with a NaN or an infinity, or without keys, does
    not.

    Args:
        weights: One row of weights for each sum.
        tolerance: How far the sum may be from 1, at least 0. By default half of the digits of the
            dtype, the square root of its machine epsilon: 3e-4 in float32, 0.03 in float16.

    Source: Boyd and Vandenberghe, Convex Optimization, section 2.1.4.
    """
    check.is_convex(weights, tolerance)
    if tolerance is None:
        tolerance = torch.finfo(weights.dtype).eps ** 0.5
    none_negative = (weights >= 0).all(dim=-1)
    sum_is_one = (weights.sum(dim=-1) - 1).abs() <= tolerance
    return none_negative & sum_is_one


def weighted_sum(
    weights: Float[Tensor, "*#batch queries keys"],
    values: Float[Tensor, "*#batch keys d_v"],
) -> Float[Tensor, "*#batch queries d_v"]:
    """Mix values: row i of the result is the sum over j of weights[i, j] * values[j].

    Nothing is asked of the weights. When a row of them is convex (see `is_convex`), its result
    lies in the convex hull of the values, and has their unit. Without keys a result is the empty
    sum, 0. A value that is NaN or infinite reaches every result, also one that gives it the weight
    0: 0 times infinity is NaN.

    Source: Vaswani et al. (2017), section 3.2: the output of attention.
    """
    check.weighted_sum(weights, values)
    return weights @ values
