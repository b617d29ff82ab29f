"""Softmax over the last axis, its Jacobian and the product of that Jacobian with a vector.

Explained in chapter 4, "The softmax Jacobian" (book/04_softmax_jacobian.ipynb). Generated from
there by tools/export.py; edit the notebook.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_lib._checks import attention as check

__all__ = ["softmax", "softmax_jacobian", "softmax_jvp"]


def _at_least_float32(tensor: Tensor) -> Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def softmax(scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
    """Turn scores into weights that are at least 0 and sum to 1 along the last axis.

    The largest score of each row is subtracted first, so that no exponential overflows. Half
    precision is computed in float32 and rounded once. A score of −∞ gets weight 0. A row whose
    scores are all −∞, a query that may attend to nothing, gets zeros, and so does its gradient. A
    NaN or a +∞ makes its whole row NaN.

    Source: Vaswani et al. (2017), equation 1. The subtraction: Goodfellow et al. (2016), section
    4.1.
    """
    check.rows("n", scores=scores)
    if scores.shape[-1] == 0:
        return scores.clone()  # there is no largest score
    wide = _at_least_float32(scores)
    # The result does not depend on what is subtracted, so no gradient flows through it.
    largest = wide.detach().amax(dim=-1, keepdim=True)
    largest = largest.masked_fill(largest == -torch.inf, 0)  # −∞ − (−∞) would be NaN
    exps = torch.exp(wide - largest)
    total = exps.sum(dim=-1, keepdim=True)  # at least 1, or 0 when all scores are −∞
    return (exps / total.masked_fill(total == 0, 1)).to(scores.dtype)


def softmax_jacobian(weights: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n n"]:
    """Return the Jacobian of the softmax, diag(s) − s sᵀ, for given weights s.

    Entry (i, j) is the derivative of weight i with respect to score j. The weights are the result
    of `softmax`, not the scores; weights of only zeros, of a query that may attend to nothing,
    give a matrix of zeros. A NaN weight makes its row and its column NaN.

    Source: Bridle (1990), the derivative of the softmax.
    """
    check.rows("n", weights=weights)
    wide = _at_least_float32(weights)
    products = wide.unsqueeze(-1) * wide.unsqueeze(-2)
    return (torch.diag_embed(wide) - products).to(weights.dtype)


def softmax_jvp(
    weights: Float[Tensor, "*#batch n"], vector: Float[Tensor, "*#batch n"]
) -> Float[Tensor, "*#batch n"]:
    """Multiply the Jacobian of the softmax by a vector without forming the matrix.

    Computes s ⊙ (u − ⟨s, u⟩) with n numbers a row instead of n². The Jacobian is symmetric, so
    this is the vector-Jacobian product too: with ``vector`` = ∂L/∂s the result is ∂L/∂z. The
    weights s are the result of `softmax`, not the scores. Where a weight is 0 the product is 0. A
    NaN or an infinity in a row of either argument makes the row of the result NaN.

    Source: Bridle (1990), the derivative of the softmax, multiplied out.
    """
    check.softmax_jvp(weights, vector)
    s, u = _at_least_float32(weights), _at_least_float32(vector)
    average = (s * u).sum(dim=-1, keepdim=True)
    return (s * (u - average)).to(weights.dtype)
