"""Masks: which query may attend to which key. True means "may attend".

Explained in chapter 6, "Masking" (book/06_masking.ipynb). Generated from there by tools/export.py;
edit the notebook.
"""

from functools import reduce

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer_lib._checks import attention as check

__all__ = [
    "band_mask",
    "causal_mask",
    "combine_masks",
    "mask_from_additive",
    "mask_from_hidden",
    "mask_to_additive",
    "padding_mask",
]


def padding_mask(lengths: Int[Tensor, " batch"], max_length: int) -> Bool[Tensor, "batch keys"]:
    """Return the ``key_mask`` of sentences padded at their end: True on the real tokens.

    Before it can be combined with a mask over queries and keys it needs the axes between,
    ``key_mask[:, None, None, :]``.

    Args:
        lengths: Number of real tokens of each sentence, 0 … ``max_length``.
        max_length: Number of keys, padding included.
    """
    check.padding_mask(lengths, max_length)
    return torch.arange(max_length, device=lengths.device) < lengths[:, None]


def band_mask(
    queries: int,
    keys: int | None = None,
    *,
    before: int | None,
    after: int | None,
    device: torch.device | str | None = None,
) -> Bool[Tensor, "queries keys"]:
    """Let each query see the key at its own place, ``before`` earlier and ``after`` later ones.

    This is restricted self-attention, with a neighbourhood of r = before + 1 + after.

    Args:
        queries: Number of queries; the last stands at the last key.
        keys: Number of keys, by default as many as queries.
        before: How many earlier keys are seen; None for all.
        after: How many later keys are seen; None for all.
        device: Where the mask is made.

    Source: Vaswani et al. (2017), section 4.
    """
    check.band_mask(queries, keys, before, after)
    keys = queries if keys is None else keys
    mask = torch.ones(queries, keys, dtype=torch.bool, device=device)
    own = keys - queries  # the key at which query 0 stands
    if after is not None:
        mask = mask.tril(own + after)
    if before is not None:
        mask = mask.triu(own - before)
    return mask


def causal_mask(
    queries: int, keys: int | None = None, *, device: torch.device | str | None = None
) -> Bool[Tensor, "queries keys"]:
    """Let each query see the keys up to its own place, the last query standing at the last key.

    With as many keys as queries this is the lower triangle. With more keys, the first ones are an
    earlier part of the sequence (a cache) that all queries see.

    Args:
        queries: Number of queries.
        keys: Number of keys, by default as many as queries.
        device: Where the mask is made.

    Source: Vaswani et al. (2017), section 3.2.3.
    """
    return band_mask(queries, keys, before=None, after=0, device=device)


def combine_masks(*masks: Tensor | None) -> Tensor | None:
    """Let a query see a key where every mask lets it; None hides nothing.

    Args:
        *masks: Masks of shape (queries, keys) or (batch, heads, queries, keys), an axis of size 1
            standing for all. A ``key_mask`` of shape (batch, keys) must first become
            (batch, 1, 1, keys): as it is, its batch would be taken for the queries.

    Returns:
        A mask of the shape that all of them broadcast to, or None when there is none.
    """
    check.combine_masks(*masks)
    given = [mask for mask in masks if mask is not None]
    return reduce(torch.logical_and, given) if given else None


def mask_from_hidden(hidden: Bool[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
    """Convert a mask in which True *hides*, the convention of ``torch.nn.MultiheadAttention``."""
    check.mask(hidden, "hidden")
    return ~hidden


def mask_from_additive(additive: Float[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
    """Convert a mask that is added to scores: 0 becomes True, −∞ becomes False.

    Another number makes it a bias, not a mask, and is refused.
    """
    check.mask_from_additive(additive)
    return additive == 0


def mask_to_additive(
    mask: Bool[Tensor, "*shape"], dtype: torch.dtype = torch.float32
) -> Float[Tensor, "*shape"]:
    """Convert to a mask of the scores' ``dtype`` that is added to them: 0 where True, else −∞."""
    check.mask(mask)
    zero = torch.zeros((), dtype=dtype, device=mask.device)
    return torch.where(mask, zero, -torch.inf)
