"""Attention: a weighted sum whose weights are computed from queries and keys.

Explained in chapter 3, "Attention" (book/03_attention.ipynb) and chapter 6, "Masking"
(book/06_masking.ipynb). Generated from these by tools/export.py; edit the notebooks.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from transformer_lib._checks import attention as check
from transformer_lib.inner_product import inner_product
from transformer_lib.masking import causal_mask, combine_masks, mask_to_additive
from transformer_lib.softmax import softmax
from transformer_lib.weighted_sum import weighted_sum

__all__ = ["attention_weights", "dot_product_attention", "scaled_dot_product_attention"]


def attention_weights(
    query: Float[Tensor, "*#batch queries d_k"], key: Float[Tensor, "*#batch keys d_k"]
) -> Float[Tensor, "*batch queries keys"]:
    """Return how much of each key's value every query gets: softmax(QKᵀ), row by row.

    Each row is at least 0 and sums to 1; with no keys it is empty. With ``d_k`` = 0 all scores are
    0 and the weights even. A NaN in a query, a score of +∞, or scores that are all −∞ make their
    row NaN; a NaN in a key makes every row NaN. (Chapter 6 gives rows of −∞, queries that may
    attend to nothing, the weights 0.)

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

    Each result lies in the convex hull of the values and has their unit; with no keys it is
    exactly 0. NaN spreads: from a query to its own result, from a key to all results, from a value
    to that entry of all results, however small the weight. A query whose scores are all −∞ gets
    NaN. (Chapter 6 gives it 0.)

    Source: Vaswani et al. (2017), section 3.2.1, equation 1 without the scaling.
    """
    check.dot_product_attention(query, key, value)
    weights = attention_weights(query, key)
    return weighted_sum(weights, value)


def _explicit_attention(
    query: Tensor, key: Tensor, value: Tensor, added: Tensor | None, dropout: float
) -> tuple[Tensor, Tensor]:
    """Return output and weights, step by step; half precision is rounded once, at the end."""
    wide = torch.promote_types(query.dtype, torch.float32)
    with _without_autocast(query):
        scores = inner_product(query.to(wide), key.to(wide)) * max(query.shape[-1], 1) ** -0.5
        weights = softmax(scores if added is None else scores + added)
        output = weighted_sum(F.dropout(weights, dropout), value.to(wide))
    return output.to(query.dtype), weights.to(query.dtype)


def _fused_attention(
    query: Tensor, key: Tensor, value: Tensor, added: Tensor | None, *, causal: bool
) -> Tensor:
    """Return the output alone, from PyTorch's kernel, which need not hold all weights.

    It wants four axes with all sizes written out.
    """
    if added is None and query.is_cpu and (torch.compiler.is_compiling() or key.shape[-2] < 32):
        # With few keys and nothing added, the kernel turns rows of NaN into 0.
        added = query.new_zeros(1, 1)
        if causal:
            added, causal = mask_to_additive(causal_mask(query.shape[-2])).to(query), False
    shapes = query.shape[:-2], key.shape[:-2], value.shape[:-2]
    batch = shapes[0]
    if len(batch) != 2 or not batch == shapes[1] == shapes[2]:
        batch = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
        four = (*(1,) * (2 - len(batch)), *batch)
        query, key, value = (tensor.expand(*four, -1, -1) for tensor in (query, key, value))
    if added is not None:
        added = added[(None,) * (4 - added.dim())]
    output = F.scaled_dot_product_attention(query, key, value, added, is_causal=causal)
    return output.reshape(*batch, *output.shape[-2:])


def _without_autocast(tensor: Tensor) -> AbstractContextManager[None]:
    device_type = tensor.device.type
    if torch.amp.is_autocast_available(device_type):
        return torch.autocast(device_type, enabled=False)
    return nullcontext()


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

    Args:
        query: Queries; *batch is often (batch, heads).
        key: Keys.
        value: Values, one for each key.
        mask: True where a query may attend; (queries, keys), or with all axes of the scores.
        bias: Numbers added to the scores, of a shape as ``mask``; −∞ hides a key.
        causal: Hide the keys after each query's place; the last query stands at the last key.
        dropout: Probability of dropping a weight, *whenever* above 0: modules pass 0 in evaluation.
        return_weights: Return (output, weights before dropout), and do without the fused kernel.

    A query that may attend to nothing gets zeros and no gradient; NaN spreads from hidden keys too.
    Source: Vaswani et al. (2017), section 3.2.1, equation 1, and section 3.2.3.
    """
    check.scaled_dot_product_attention(query, key, value, mask, bias, causal, dropout)
    queries, keys = query.shape[-2], key.shape[-2]
    fused = not return_weights and dropout == 0 and all(map(torch.numel, (query, key, value)))
    # The kernel aligns its own causal mask top-left, which is the same only for a square.
    in_kernel = causal and fused and mask is None and bias is None
    if queries != keys:
        in_kernel = False
    if causal and not in_kernel and queries > 1:  # one query, at the last key, sees all
        mask = combine_masks(mask, causal_mask(queries, keys, device=query.device))
    added, empty = _added_to_scores(mask, bias, query.dtype)
    if fused:
        output = _fused_attention(query, key, value, added, causal=in_kernel)
        return output if empty is None else output.masked_fill(empty, 0)
    output, weights = _explicit_attention(query, key, value, added, dropout)
    if empty is not None:
        output, weights = output.masked_fill(empty, 0), weights.masked_fill(empty, 0)
    return (output, weights) if return_weights else output


def _added_to_scores(
    mask: Tensor | None, bias: Tensor | None, dtype: torch.dtype
) -> tuple[Tensor | None, Tensor | None]:
    """Return what is added to the scores, and which queries see no key: they get zeros afterwards.

    Until then they see all keys, so that no path meets 0/0.
    """
    added = bias
    if mask is not None:
        hidden = mask_to_additive(mask, dtype)
        added = hidden if bias is None else hidden + bias
    if added is None:
        return None, None
    empty = added.isneginf().all(dim=-1, keepdim=True)
    return added.masked_fill(empty, 0), empty
