"""Attention: a weighted sum whose weights are computed from queries and keys.

Explained in chapter 3, "Attention" (book/03_attention.ipynb) and chapter 6, "Masking"
(book/06_masking.ipynb). Generated from these by tools/export.py; edit the notebooks.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from transformer_lib._checks.common import (
    require_axes,
    require_broadcastable,
    require_floating,
    require_same_size,
)
from transformer_lib.inner_product import inner_product
from transformer_lib.masking import causal_mask, combine_masks, mask_to_additive, require_mask
from transformer_lib.softmax import softmax
from transformer_lib.weighted_sum import weighted_sum

__all__ = ["attention_weights", "dot_product_attention", "scaled_dot_product_attention"]


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
        with ``d_k`` = 0 all scores are 0 and the weights even. A NaN in a query, a score of +∞,
        or scores that are all −∞ make their row NaN; a NaN in a key makes every row NaN.
        (Chapter 6 gives rows of −∞, queries that may attend to nothing, the weights 0.)

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
        all results, from a value to that entry of all results, however small the weight. A query
        whose scores are all −∞ gets NaN. (Chapter 6 gives it 0.)

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


def _explicit_attention(
    query: Tensor, key: Tensor, value: Tensor, added: Tensor | None, dropout: float
) -> tuple[Tensor, Tensor]:
    """Return output and weights, step by step; half precision is rounded once, at the end."""
    wide = torch.promote_types(query.dtype, torch.float32)
    scores = inner_product(query.to(wide), key.to(wide)) * max(query.shape[-1], 1) ** -0.5
    if added is not None:
        scores = scores + added.to(wide)
    weights = softmax(scores)
    output = weighted_sum(F.dropout(weights, dropout), value.to(wide))
    return output.to(query.dtype), weights.to(query.dtype)


def _fused_attention(
    query: Tensor, key: Tensor, value: Tensor, added: Tensor | None, *, causal: bool
) -> Tensor:
    """Return the output alone, from PyTorch's kernel.

    With four axes and none left to be broadcast, the kernel need not hold all weights.
    """
    if added is None and key.shape[-2] < 32:
        # On CPU, with few keys and nothing added, it turns rows of NaN into 0.
        added = query.new_zeros(1, 1)
        if causal:
            added, causal = mask_to_additive(causal_mask(query.shape[-2])).to(query), False
    batch = require_broadcastable(
        "batch", query=query.shape[:-2], key=key.shape[:-2], value=value.shape[:-2]
    )
    four = (*(1,) * (2 - len(batch)), *batch)
    query, key, value = (tensor.expand(*four, -1, -1) for tensor in (query, key, value))
    if added is not None:
        added = added[(None,) * (4 - added.dim())]
    output = F.scaled_dot_product_attention(query, key, value, added, is_causal=causal)
    return output.reshape(*batch, *output.shape[-2:])


def _require_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    causal: bool,
    dropout: float,
) -> None:
    require_floating(query=query, key=key, value=value, **({} if bias is None else {"bias": bias}))
    require_axes("queries d_k", query=query)
    require_axes("keys d_k", key=key)
    require_axes("keys d_v", value=value)
    require_same_size("d_k", query=(query, -1), key=(key, -1))
    require_same_size("keys", key=(key, -2), value=(value, -2))
    require_broadcastable(
        "batch", query=query.shape[:-2], key=key.shape[:-2], value=value.shape[:-2]
    )
    queries, keys = query.shape[-2], key.shape[-2]
    if causal and queries > keys:
        raise ValueError(f"query: expected at most {keys} queries as there are keys, got {queries}")
    if not 0 <= dropout <= 1:
        raise ValueError(f"dropout: expected a probability from 0 to 1, got {dropout}")
    if mask is not None:
        require_mask(mask)
        if mask.device != query.device:
            raise TypeError(f"mask: expected device {query.device} as in query, got {mask.device}")
    batch = require_broadcastable("batch", query=query.shape[:-2], key=key.shape[:-2])
    _require_fit("mask", mask, (*batch, queries, keys))
    _require_fit("bias", bias, (*batch, queries, keys))


def _require_fit(name: str, tensor: Tensor | None, scores: tuple[int, ...]) -> None:
    if tensor is None:
        return
    shape = tuple(tensor.shape)
    sizes = zip(shape[::-1], scores[::-1], strict=False)
    if len(shape) not in (2, len(scores)) or any(size not in (1, full) for size, full in sizes):
        expected = " or ".join(str(fits) for fits in dict.fromkeys((scores[-2:], scores)))
        hint = ""
        if 2 < len(shape) < len(scores):
            hint = f"; is the first axis the batch, {name}[:, None], or the heads, {name}[None]?"
        raise ValueError(
            f"{name}: expected shape {expected}, an axis of size 1 standing for all, "
            f"got {shape}{hint}"
        )


def scaled_dot_product_attention(
    query: Float[Tensor, "*#batch queries d_k"],
    key: Float[Tensor, "*#batch keys d_k"],
    value: Float[Tensor, "*#batch keys d_v"],
    *,
    mask: Bool[Tensor, "*#mask #queries #keys"] | None = None,
    bias: Float[Tensor, "*#bias #queries #keys"] | None = None,
    causal: bool = False,
    dropout: float = 0.0,
    return_weights: bool = False,
) -> (
    Float[Tensor, "*batch queries d_v"]
    | tuple[Float[Tensor, "*batch queries d_v"], Float[Tensor, "*#batch queries keys"]]
):
    """Compute softmax(QKᵀ/√d_k + bias) V over the keys that each query may attend to.

    Half precision is computed in float32 and rounded at the end.

    Args:
        query: Queries of shape (*batch, queries, d_k); *batch is often (batch, heads).
        key: Keys of shape (*batch, keys, d_k).
        value: Values of shape (*batch, keys, d_v).
        mask: True where a query may attend to a key; shape (queries, keys), or with as many axes
            as the scores, an axis of size 1 standing for all.
        bias: Numbers added to the scores, with a shape as for ``mask``. −∞ hides a key.
        causal: Hide the keys after each query's own place; the last query stands at the last key.
        dropout: Probability with which each weight is dropped, *whenever* it is above 0: a
            module passes 0 in evaluation.
        return_weights: Return the weights, before dropout, beside the output. Without them and
            without dropout PyTorch's fused kernel runs. It has no second derivatives, and where it
            can it never holds all weights (on CPU: up to four axes, d_v = d_k, no learnt bias).

    Returns:
        The output, of shape (*batch, queries, d_v), and the weights, (*batch, queries, keys), if
        asked for; the batch axes are broadcast. A query that may attend to nothing gets an output
        and weights of exactly zero, and no gradient. NaN and infinity spread, and can do so from
        a hidden key or value too, as in PyTorch: 0 · NaN is NaN.

    Raises:
        TypeError: A tensor is not floating point, dtypes or devices differ, or ``mask`` is not
            boolean.
        ValueError: Sizes differ, a mask or bias does not fit, there are more queries than keys
            under ``causal``, or ``dropout`` is no probability.

    Source: Vaswani et al. (2017), section 3.2.1, equation 1, and section 3.2.3.
    """
    _require_attention(query, key, value, mask, bias, causal, dropout)
    queries, keys = query.shape[-2], key.shape[-2]
    fused = not return_weights and dropout == 0 and all(map(torch.numel, (query, key, value)))
    if bias is not None:
        hidden = bias.isneginf()
        bias, mask = bias.masked_fill(hidden, 0), combine_masks(mask, ~hidden)
    # The kernel aligns its own causal mask top-left, which is the same only for a square.
    in_kernel = causal and fused and mask is None and queries == keys
    if causal and not in_kernel and queries > 1:  # one query, at the last key, sees all
        mask = combine_masks(mask, causal_mask(queries, keys, device=query.device))
    added = bias
    if mask is not None:
        some = mask.any(dim=-1, keepdim=True)
        # A query without keys sees them all until its result is set to 0: no path meets 0/0.
        added = mask_to_additive(mask | ~some, query.dtype)
        if bias is not None:
            added = added + bias
    if fused:
        output = _fused_attention(query, key, value, added, causal=in_kernel)
        return output if mask is None else output.masked_fill(~some, 0)
    output, weights = _explicit_attention(query, key, value, added, dropout)
    if mask is not None:
        output, weights = output.masked_fill(~some, 0), weights.masked_fill(~some, 0)
    return (output, weights) if return_weights else output
