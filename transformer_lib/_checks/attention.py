"""Guards of chapters 1 to 7: sums, products, softmax, positions, masks, attention."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from transformer_lib._checks.common import (
    DTYPES,
    INTEGERS,
    autocasts,
    differs,
    kind,
    require_at_least,
    require_axes,
    require_broadcastable,
    require_floating,
    require_mask,
    require_probability,
    require_same_size,
)

mask = require_mask


def is_convex(weights: Any, tolerance: Any) -> None:
    rows("keys", weights=weights)
    if tolerance is None:
        return
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float):
        raise TypeError(f"tolerance: expected a number, got {type(tolerance).__name__}")
    if not tolerance >= 0:  # so that NaN is refused too
        raise ValueError(f"tolerance: expected a number of at least 0, got {tolerance}")


def weighted_sum(weights: Any, values: Any) -> None:
    require_floating(weights=weights, values=values)
    require_axes("queries keys", weights=weights)
    require_axes("keys d_v", values=values)
    require_same_size("keys", weights=(weights, -1), values=(values, -2))
    require_broadcastable("batch", weights=weights.shape[:-2], values=values.shape[:-2])


def inner_product(query: Any, key: Any) -> None:
    require_floating(query=query, key=key)
    require_axes("queries d_k", query=query)
    require_axes("keys d_k", key=key)
    require_same_size("d_k", query=(query, -1), key=(key, -1))
    require_broadcastable("batch", query=query.shape[:-2], key=key.shape[:-2])


def rows(axis: str, **tensor: Any) -> None:
    """Stand before functions of the last axis, such as softmax: ``rows("n", scores=scores)``."""
    require_floating(**tensor)
    require_axes(axis, **tensor)


def softmax_jvp(weights: Any, vector: Any) -> None:
    require_floating(weights=weights, vector=vector)
    require_axes("n", weights=weights, vector=vector)
    require_same_size("n", weights=(weights, -1), vector=(vector, -1))
    require_broadcastable("batch", weights=weights.shape[:-1], vector=vector.shape[:-1])


def dot_product_attention(query: Any, key: Any, value: Any) -> None:
    require_floating(query=query, key=key, value=value)
    require_axes("queries d_k", query=query)
    require_axes("keys d_k", key=key)
    require_axes("keys d_v", value=value)
    require_same_size("d_k", query=(query, -1), key=(key, -1))
    require_same_size("keys", key=(key, -2), value=(value, -2))
    require_broadcastable(
        "batch", query=query.shape[:-2], key=key.shape[:-2], value=value.shape[:-2]
    )


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, mask: Any, bias: Any, causal: bool, dropout: float
) -> None:
    if (
        isinstance(query, Tensor)
        and isinstance(key, Tensor)
        and isinstance(value, Tensor)
        and query.dtype == key.dtype == value.dtype
        and query.dtype in DTYPES
        and query.layout == key.layout == value.layout == torch.strided
        and query.device == key.device == value.device
        and query.dim() > 2
        and query.shape[:-2] == key.shape[:-2] == value.shape[:-2]
        and key.shape[-1] == query.shape[-1]
        and key.shape[-2] == value.shape[-2]
    ):
        batch = query.shape[:-2]
    else:
        dot_product_attention(query, key, value)
        batch = require_broadcastable("batch", query=query.shape[:-2], key=key.shape[:-2])
    queries, keys = query.shape[-2], key.shape[-2]
    if causal and queries > keys:
        raise _no_order(queries, keys)
    if not 0 <= dropout <= 1:
        require_probability(dropout=dropout)
    if mask is not None or bias is not None:
        _mask_and_bias(query, mask, bias, (*batch, queries, keys))


def _no_order(queries: int, keys: int) -> ValueError:
    return ValueError(f"query: expected at most {keys} queries as there are keys, got {queries}")


def _mask_and_bias(
    query: Tensor, mask: Any, bias: Any, scores: tuple[int, ...], axes: Sequence[str] = ("", "")
) -> None:
    for name, tensor in (("mask", mask), ("bias", bias)):
        if tensor is None:
            continue
        if name == "mask" and (not isinstance(tensor, Tensor) or tensor.dtype != torch.bool):
            require_mask(tensor)
        if name == "bias" and (not isinstance(tensor, Tensor) or tensor.dtype != query.dtype):
            require_floating(query=query, bias=tensor)
        if tensor.device != query.device:
            raise differs(name, "device", tensor, "query", query)
        if len(tensor.shape) in (2, len(scores)):
            for size, full in zip(tensor.shape[::-1], scores[::-1], strict=False):
                if size not in (1, full):
                    break
            else:
                continue
        raise _unfit(name, tuple(tensor.shape), scores, axes)


def _unfit(
    name: str, shape: tuple[int, ...], scores: tuple[int, ...], axes: Sequence[str]
) -> ValueError:
    fitting = zip(axes, dict.fromkeys((scores[-2:], scores)), strict=False)
    expected = " or ".join(f"{names}{fits}" for names, fits in fitting)
    message = f"{name}: expected shape {expected}, an axis of size 1 standing for all, got {shape}"
    if not any(axes) and 2 < len(shape) < len(scores):
        message += f"; is the first axis the batch, {name}[:, None], or the heads, {name}[None]?"
    return ValueError(message)


def sinusoids(length: int, d_model: int, offset: int, layout: Any) -> None:
    require_at_least(0, length=length, d_model=d_model, offset=offset)
    if layout != "interleaved" and (layout != "halves" or d_model % 2):
        raise ValueError(
            "layout: expected 'interleaved', or 'halves' with an even d_model, "
            f"got {layout!r} with d_model = {d_model}"
        )


def table(max_length: int, d_model: int) -> None:
    """Stand before a table of positions."""
    require_at_least(0, max_length=max_length, d_model=d_model)


def positions(x: Any, table: Tensor, offset: int) -> None:
    rows("length d_model", x=x)
    (length, width), (max_length, d_model) = x.shape[-2:], table.shape
    if width != d_model:
        raise ValueError(f"x: expected d_model = {d_model}, got {width} (shape {tuple(x.shape)})")
    if offset < 0:
        require_at_least(0, offset=offset)
    if offset + length > max_length:
        raise ValueError(
            f"x: {length} positions from offset {offset} on reach beyond the table's {max_length}"
        )


def padding_mask(lengths: Any, max_length: int) -> None:
    if not isinstance(lengths, Tensor) or lengths.dtype not in INTEGERS:
        raise TypeError(f"lengths: expected a tensor of integers, got {kind(lengths)}")
    if lengths.dim() != 1:
        raise ValueError(f"lengths: expected shape (batch), got {tuple(lengths.shape)}")
    if torch.compiler.is_compiling() or lengths.is_meta:
        return
    if ((lengths < 0) | (lengths > max_length)).any():
        raise ValueError(f"lengths: expected 0 to {max_length}, got {lengths.tolist()}")


def band_mask(queries: int, keys: int | None, before: int | None, after: int | None) -> None:
    require_at_least(0, queries=queries, before=before, after=after)
    if keys is not None and queries > keys:
        raise ValueError(
            f"queries: expected at most as many as keys = {keys}, got {queries}: "
            "the last query stands at the last key"
        )


def combine_masks(*masks: Any) -> None:
    shape: torch.Size | None = None
    for mask in masks:
        if mask is None:
            continue
        require_mask(mask)
        try:
            shape = mask.shape if shape is None else torch.broadcast_shapes(shape, mask.shape)  # type: ignore[no-untyped-call]
        except RuntimeError:
            raise ValueError(
                f"masks: shapes {tuple(shape or ())} and {tuple(mask.shape)} do not broadcast"
            ) from None


def mask_from_additive(additive: Any) -> None:
    require_floating(additive=additive)
    if torch.compiler.is_compiling() or additive.is_meta:
        return
    if not ((additive == 0) | additive.isneginf()).all():
        raise ValueError("additive: expected only 0 and −inf; other numbers are a bias")


@runtime_checkable
class Heads(Protocol):
    """What a guard must know of a ``MultiHeadAttention``."""

    d_model: int
    n_heads: int
    d_k: int


def heads(d_model: int, n_heads: int, dropout: float = 0.0) -> None:
    if n_heads < 1 or d_model % n_heads:
        raise ValueError(f"n_heads: expected a divisor of d_model = {d_model}, got {n_heads}")
    require_probability(dropout=dropout)


def split_heads(x: Any, n_heads: int) -> None:
    require_floating(x=x)
    if x.dim() != 3:
        raise ValueError(f"x: expected shape (batch, n, d_model), got {tuple(x.shape)}")
    heads(x.shape[-1], n_heads)


def join_heads(heads: Any) -> None:
    if not isinstance(heads, Tensor) or heads.dtype not in DTYPES:
        require_floating(heads=heads)
    if heads.dim() != 4:
        raise ValueError(
            f"heads: expected shape (batch, n_heads, n, d_v), got {tuple(heads.shape)}"
        )


def project(attention: Heads, key: Any, value: Any) -> None:
    for name, x in (("key", key), ("value", value)):
        if not isinstance(x, Tensor) or x.dtype not in DTYPES or x.layout != torch.strided:
            require_floating(**{name: x})
        if x.dim() != 3 or x.shape[2] != attention.d_model:
            raise _no_sequence(name, x, attention.d_model)
    if value.shape != key.shape:
        expected, came = tuple(key.shape), tuple(value.shape)
        raise ValueError(f"value: expected shape {expected} as key has, got {came}")


def _no_sequence(name: str, x: Tensor, d_model: int) -> ValueError:
    expected = f"(batch, length, d_model = {d_model})"
    return ValueError(f"{name}: expected shape {expected}, got {tuple(x.shape)}")


def multi_head_attention(
    attention: Heads,
    query: Any,
    key: Any,
    value: Any,
    keys_values: Any,
    mask: Any,
    key_mask: Any,
    bias: Any,
) -> None:
    if not isinstance(query, Tensor) or query.dtype not in DTYPES or query.layout != torch.strided:
        require_floating(query=query)
    if query.dim() != 3 or query.shape[2] != attention.d_model:
        raise _no_sequence("query", query, attention.d_model)
    if keys_values is not None:
        if key is not None or value is not None:
            raise ValueError("keys_values: expected either key and value, or keys_values instead")
        _projected(attention, query, *keys_values)
        length = keys_values[0].shape[2]
    elif key is None:
        if value is not None:
            raise ValueError("key: expected keys for the values that are given, got None")
        length = query.shape[1]
    else:
        if not isinstance(key, Tensor) or key.dim() != 3:
            project(attention, key, key if value is None else value)
        if key.shape[0] != query.shape[0]:
            require_same_size("batch", query=(query, 0), key=(key, 0))
        length = key.shape[1]
    if mask is not None or bias is not None or key_mask is not None:
        scores = (query.shape[0], attention.n_heads, query.shape[1], length)
        axes = "(queries, keys) = ", "(batch, n_heads, queries, keys) = "
        _mask_and_bias(query, mask, bias, scores, axes)
        if key_mask is not None:
            _key_mask(key_mask, query, scores)


def _projected(attention: Heads, query: Tensor, keys: Any, values: Any) -> None:
    expected = (query.shape[0], attention.n_heads, *keys.shape[2:3], attention.d_k)
    if not keys.shape == values.shape == expected:
        named = f"({query.shape[0]}, {attention.n_heads}, keys, {attention.d_k})"
        raise ValueError(
            "keys_values: expected keys and values of one shape (batch, n_heads, keys, d_k) = "
            f"{named}, got {tuple(keys.shape)} and {tuple(values.shape)}"
        )
    if not keys.dtype == values.dtype == query.dtype and not autocasts(query):
        require_floating(query=query, keys=keys, values=values)
    if query.device != keys.device:
        raise differs("keys_values", "device", keys, "query", query)


def _key_mask(key_mask: Any, query: Tensor, scores: tuple[int, ...]) -> None:
    require_mask(key_mask, "key_mask")
    if key_mask.device != query.device:
        raise differs("key_mask", "device", key_mask, "query", query)
    batch, keys = scores[0], scores[-1]
    if key_mask.shape != (batch, keys):
        raise ValueError(
            f"key_mask: expected shape (batch, keys) = ({batch}, {keys}), "
            f"got {tuple(key_mask.shape)}"
        )
