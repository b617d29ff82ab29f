"""Inner products and cosine similarities of all queries with all keys.

Explained in chapter 2, "The inner product" (book/02_inner_product.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_lib._checks import attention as check

__all__ = ["cosine_similarity", "inner_product", "unit_vectors"]


def inner_product(
    query: Float[Tensor, "*#batch queries d_k"], key: Float[Tensor, "*#batch keys d_k"]
) -> Float[Tensor, "*#batch queries keys"]:
    """Compute the inner product of every query with every key, QKᵀ.

    A score has the unit of a query's entries times that of a key's. Vectors without entries (d_k =
    0) have the empty sum, 0. A NaN reaches the scores of its own query or key only. A score beyond
    the range of the dtype (65504 in float16) is infinite.

    Source: Vaswani et al. (2017), section 3.2.1, without the scaling.
    """
    check.inner_product(query, key)
    return query @ key.mT


def unit_vectors(vectors: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
    """Give every vector length 1 and keep its direction; the result has no unit.

    The zero vector has no direction: it stays zero, and its gradient is zero. Elsewhere the
    gradient grows as 1 / length, beyond the range of the dtype for the very shortest. A vector
    with a NaN or an infinity turns into NaN.
    """
    check.rows("d", vectors=vectors)
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
    """Compute the cosine of the angle between every query and every key: −1 to 1, up to rounding.

    With the zero vector, and with vectors without entries (d_k = 0), the cosine is 0 and no
    gradient reaches that vector. A NaN or an infinity makes the cosines of its own query or key
    NaN.

    Source: Deisenroth, Faisal and Ong (2020), Mathematics for Machine Learning, section 3.4.
    """
    check.inner_product(query, key)
    return inner_product(unit_vectors(query), unit_vectors(key))
