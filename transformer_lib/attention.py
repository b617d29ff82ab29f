"""Attention: a weighted sum whose weights are computed from queries and keys.

Explained in chapter 3, "Attention" (book/03_attention.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_lib._validation import (
    require_axes,
    require_broadcastable,
    require_floating,
    require_same_size,
)
from transformer_lib.inner_product import inner_product
from transformer_lib.weighted_sum import weighted_sum

__all__ = ["attention_weights", "dot_product_attention"]


def attention_weights(
    query: Float[Tensor, "*#batch queries d_k"], key: Float[Tensor, "*#batch keys d_k"]
) -> Float[Tensor, "*batch queries keys"]:
    """Return how much of each key's value every query gets: softmax(QKᵀ), row by row.

    Args:
        query: Queries of shape (*batch, queries, d_k).
        key: Keys of shape (*batch, keys, d_k).

    Returns:
        Weights of shape (*batch, queries, keys) and the arguments' dtype, without unit; the batch
        axes are broadcast. Each row is at least 0 and sums to 1. With no keys the rows are empty;
        with ``d_k`` = 0 all scores are 0 and the weights even. A NaN in a query, or a score of +∞,
        makes its row NaN; a NaN in a key makes every row NaN.

    Raises:
        TypeError: An argument is not a floating-point tensor, or dtypes or devices differ.
        ValueError: An argument has fewer than two axes, ``d_k`` differs, or the batch axes do not
            broadcast.

    Source: Vaswani et al. (2017), section 3.2.1, without the scaling.
    """
    scores = inner_product(query, key)
    return torch.softmax(scores, dim=-1)


def dot_product_attention(
    query: Float[Tensor, "*#batch queries d_k"],
    key: Float[Tensor, "*#batch keys d_k"],
    value: Float[Tensor, "*#batch keys d_v"],
) -> Float[Tensor, "*batch queries d_v"]:
    """Return for every query the weighted sum of the values: softmax(QKᵀ) V.

    Args:
        query: Queries of shape (*batch, queries, d_k).
        key: Keys of shape (*batch, keys, d_k).
        value: Values of shape (*batch, keys, d_v), one for each key.

    Returns:
        Results of shape (*batch, queries, d_v), in the unit of the values and the arguments'
        dtype; the batch axes are broadcast. Each result lies in the convex hull of the values.
        With no keys it is exactly 0. NaN spreads: from a query to its own result, from a key to
        all results, from a value to that entry of all results, however small the weight.

    Raises:
        TypeError: An argument is not a floating-point tensor, or dtypes or devices differ.
        ValueError: An argument has fewer than two axes, ``d_k`` or the number of keys differs, or
            the batch axes do not broadcast.

    Source: Vaswani et al. (2017), section 3.2.1, equation 1 without the scaling.
    """
    require_floating(query=query, key=key, value=value)
    require_axes("keys d_k", key=key)
    require_axes("keys d_v", value=value)
    require_same_size("keys", key=(key, -2), value=(value, -2))
    require_broadcastable(
        "batch", query=query.shape[:-2], key=key.shape[:-2], value=value.shape[:-2]
    )
    weights = attention_weights(query, key)
    return weighted_sum(weights, value)
