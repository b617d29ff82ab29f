"""Masks: which query may attend to which key. True means "may attend".

Explained in chapter 6, "Masking" (book/06_masking.ipynb). Generated from there by tools/export.py;
edit the notebook.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer_lib._checks.common import require_floating

__all__ = [
    "band_mask",
    "causal_mask",
    "combine_masks",
    "mask_from_additive",
    "mask_from_hidden",
    "mask_to_additive",
    "padding_mask",
    "require_mask",
]

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def padding_mask(lengths: Int[Tensor, " batch"], max_length: int) -> Bool[Tensor, "batch keys"]:
    """Return the ``key_mask`` of sentences padded at their end: True on the real tokens.

    Args:
        lengths: Number of real tokens of each sentence, of shape (batch).
        max_length: Number of keys, padding included.

    Returns:
        A mask of shape (batch, keys). Before it can be combined with a mask over queries and keys
        it needs the axes between, ``key_mask[:, None, None, :]``.

    Raises:
        TypeError: ``lengths`` is no tensor of integers.
        ValueError: ``lengths`` has not one axis, or a length lies outside 0 … ``max_length``; the
            lengths themselves are not checked while compiling.
    """
    if not isinstance(lengths, Tensor) or lengths.dtype not in _INTEGERS:
        came = lengths.dtype if isinstance(lengths, Tensor) else type(lengths).__name__
        raise TypeError(f"lengths: expected a tensor of integers, got {came}")
    if lengths.dim() != 1:
        raise ValueError(f"lengths: expected shape (batch), got {tuple(lengths.shape)}")
    if not torch.compiler.is_compiling() and ((lengths < 0) | (lengths > max_length)).any():
        raise ValueError(f"lengths: expected 0 to {max_length}, got {lengths.tolist()}")
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

    Returns:
        A mask of shape (queries, keys), True where a query may attend to a key.

    Raises:
        ValueError: There are more queries than keys, or a number is negative.

    Source: Vaswani et al. (2017), section 4.
    """
    keys = queries if keys is None else keys
    for name, number in (("queries", queries), ("before", before), ("after", after)):
        if number is not None and number < 0:
            raise ValueError(f"{name}: expected 0 or more, got {number}")
    if queries > keys:
        raise ValueError(
            f"queries: expected at most as many as keys = {keys}, got {queries}: "
            "the last query stands at the last key"
        )
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

    Returns:
        A mask of shape (queries, keys), True where a query may attend to a key.

    Raises:
        ValueError: There are more queries than keys: the first ones could see nothing.

    Source: Vaswani et al. (2017), section 3.2.3.
    """
    return band_mask(queries, keys, before=None, after=0, device=device)


def require_mask(mask: Tensor, name: str = "mask") -> None:
    """Raise TypeError, with advice, unless ``mask`` is a boolean tensor.

    Args:
        mask: What may be a mask.
        name: What the message calls it.

    Raises:
        TypeError: ``mask`` is not a boolean tensor.
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        came = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(
            f"{name}: expected a boolean tensor in which True means 'may attend', got {came}; "
            "mask_from_additive converts 0 and −inf, mask_from_hidden a mask in which True hides, "
            "and a score bias goes into the argument bias"
        )


def combine_masks(*masks: Tensor | None) -> Tensor | None:
    """Let a query see a key where every mask lets it; None hides nothing.

    Args:
        *masks: Masks of shape (queries, keys) or (batch, heads, queries, keys), an axis of size 1
            standing for all. A ``key_mask`` of shape (batch, keys) must first become
            (batch, 1, 1, keys): as it is, its batch would be taken for the queries.

    Returns:
        A mask of the shape that all of them broadcast to, or None when there is none.

    Raises:
        TypeError: A mask is not boolean.
        ValueError: The shapes do not broadcast.
    """
    combined: Tensor | None = None
    for mask in masks:
        if mask is None:
            continue
        require_mask(mask)
        if combined is None:
            combined = mask
            continue
        try:
            combined = combined & mask
        except RuntimeError:
            raise ValueError(
                f"masks: shapes {tuple(combined.shape)} and {tuple(mask.shape)} do not broadcast"
            ) from None
    return combined


def mask_from_hidden(hidden: Bool[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
    """Convert a mask in which True *hides*, the convention of ``torch.nn.MultiheadAttention``.

    Args:
        hidden: A mask of any shape, True where a key is hidden.

    Returns:
        A mask of the same shape, True where a query may attend to a key.

    Raises:
        TypeError: ``hidden`` is not boolean.
    """
    require_mask(hidden, "hidden")
    return ~hidden


def mask_from_additive(additive: Float[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
    """Convert a mask that is added to scores: 0 becomes True, −∞ becomes False.

    Args:
        additive: A mask of any shape.

    Returns:
        A mask of the same shape, True where a query may attend to a key.

    Raises:
        TypeError: ``additive`` is no floating-point tensor.
        ValueError: It holds another number: then it is a bias, not a mask. Not checked while
            compiling.
    """
    require_floating(additive=additive)
    seen = additive == 0
    if not torch.compiler.is_compiling() and not (seen | additive.isneginf()).all():
        raise ValueError("additive: expected only 0 and −inf; other numbers are a bias")
    return seen


def mask_to_additive(
    mask: Bool[Tensor, "*shape"], dtype: torch.dtype = torch.float32
) -> Float[Tensor, "*shape"]:
    """Convert to a mask that is added to scores: 0 where True, −∞ where False.

    Args:
        mask: A mask of any shape, True where a query may attend to a key.
        dtype: Dtype of the scores.

    Returns:
        Numbers of the same shape.

    Raises:
        TypeError: ``mask`` is not boolean.
    """
    require_mask(mask)
    zero = torch.zeros((), dtype=dtype, device=mask.device)
    return torch.where(mask, zero, -torch.inf)
