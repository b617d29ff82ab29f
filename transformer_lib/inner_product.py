"""Inner products and cosine similarities of all queries with all keys.

Explained in chapter 2, "The inner product" (book/02_inner_product.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_lib._checks.common import (
    require_axes,
    require_broadcastable,
    require_floating,
    require_same_size,
)

__all__ = ["cosine_similarity", "inner_product", "unit_vectors"]


def inner_product(
    query: Float[Tensor, "*#batch queries d_k"], key: Float[Tensor, "*#batch keys d_k"]
) -> Float[Tensor, "*#batch queries keys"]:
    """Compute the inner product of every query with every key, QKᵀ.

    Args:
        query: Vectors of shape (*batch, queries, d_k).
        key: Vectors of shape (*batch, keys, d_k).

    Returns:
        Scores of shape (*batch, queries, keys), in the unit of a query's entries times that of a
        key's; the batch axes are broadcast. Vectors without entries (d_k = 0) have the empty sum,
        0. A NaN reaches the scores of its own query or key only. A score beyond the range of the
        dtype (65504 in float16) is infinite.

    Raises:
        TypeError: An argument is not a floating-point tensor, or dtypes or devices differ.
        ValueError: An argument has fewer than two axes, ``d_k`` differs, or the batch axes do not
            broadcast.

    Source: Vaswani et al. (2017), section 3.2.1, without the scaling.
    """
    _require_pairs(query, key)
    return query @ key.mT


def _require_pairs(query: Tensor, key: Tensor) -> None:
    require_floating(query=query, key=key)
    require_axes("queries d_k", query=query)
    require_axes("keys d_k", key=key)
    require_same_size("d_k", query=(query, -1), key=(key, -1))
    require_broadcastable("batch", query=query.shape[:-2], key=key.shape[:-2])


def unit_vectors(vectors: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
    """Give every vector length 1 and keep its direction.

    Args:
        vectors: Vectors of shape (*batch, d), of any length that is finite.

    Returns:
        Vectors of the same shape, without unit. The zero vector has no direction: it stays zero,
        and its gradient is zero. Elsewhere the gradient grows as 1 / length, beyond the range of
        the dtype for the very shortest. A vector with a NaN or an infinity turns into NaN.

    Raises:
        TypeError: ``vectors`` is not a floating-point tensor.
        ValueError: ``vectors`` has no axis.
    """
    require_floating(vectors=vectors)
    require_axes("d", vectors=vectors)
    if vectors.shape[-1] == 0:
        return vectors
    # No square may overflow or vanish. The largest entry cancels out, so no gradient is owed to it.
    largest = vectors.detach().abs().amax(dim=-1, keepdim=True)
    zero = largest == 0
    scaled = vectors / largest.masked_fill(zero, 1)
    length = torch.linalg.vector_norm(scaled, dim=-1, keepdim=True)
    return (scaled / length.masked_fill(zero, 1)).masked_fill(zero, 0)


def cosine_similarity(
    query: Float[Tensor, "*#batch queries d_k"], key: Float[Tensor, "*#batch keys d_k"]
) -> Float[Tensor, "*#batch queries keys"]:
    """Compute the cosine of the angle between every query and every key.

    Args:
        query: Vectors of shape (*batch, queries, d_k).
        key: Vectors of shape (*batch, keys, d_k).

    Returns:
        Cosines of shape (*batch, queries, keys), from -1 to 1 up to rounding; the batch axes are
        broadcast. With the zero vector, and with vectors without entries (d_k = 0), the cosine is
        0 and no gradient reaches that vector. A NaN or an infinity makes the cosines of its own
        query or key NaN.

    Raises:
        TypeError: An argument is not a floating-point tensor, or dtypes or devices differ.
        ValueError: An argument has fewer than two axes, ``d_k`` differs, or the batch axes do not
            broadcast.

    Source: Deisenroth, Faisal and Ong (2020), Mathematics for Machine Learning, section 3.4.
    """
    _require_pairs(query, key)
    return inner_product(unit_vectors(query), unit_vectors(key))
