"""Positional encodings: where a token stands, added to what it is.

Explained in chapter 5, "Positional encoding" (book/05_positional_encoding.ipynb). Generated from
there by tools/export.py; edit the notebook.
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lib._checks.common import require_axes, require_floating

__all__ = ["LearnedPositions", "SinusoidalPositions", "sinusoids"]


def sinusoids(
    length: int,
    d_model: int,
    *,
    offset: int = 0,
    layout: Literal["interleaved", "halves"] = "interleaved",
) -> Float[Tensor, "length d_model"]:
    """Return the paper's sinusoids of positions offset … offset + length − 1.

    Pair i of the columns holds the sine and cosine of the angle pos / 10000^(2i / d_model), in
    radians.

    Args:
        length: How many positions.
        d_model: How many columns; of an odd number the last pair keeps only its sine.
        offset: The first position, for decoding that goes on from cached tokens.
        layout: "interleaved" puts each cosine beside its sine, as the paper does; "halves" puts
            all sines before all cosines, as Marian does, and needs an even ``d_model``.

    Returns:
        A table of shape (length, d_model) in PyTorch's default dtype, without unit, entries from
        −1 to 1. It is computed in float64 and then rounded. A size of 0 gives an empty table.

    Raises:
        ValueError: A size is negative, ``layout`` is unknown, or an odd ``d_model`` in halves.

    Source: Vaswani et al. (2017), section 3.5.
    """
    _require_sizes(length=length, d_model=d_model, offset=offset)
    # In float32 the angle alone would be off by 4e-4 at position 5000: compute in float64.
    position = torch.arange(offset, offset + length, dtype=torch.float64)
    pair = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = position[:, None] / 10000 ** (pair / d_model)
    if layout == "interleaved":
        table = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d_model]
    elif layout == "halves" and d_model % 2 == 0:
        table = torch.cat([angle.sin(), angle.cos()], dim=-1)
    else:
        raise ValueError(
            f"layout: expected 'interleaved', or 'halves' with an even d_model, "
            f"got {layout!r} with d_model = {d_model}"
        )
    return table.to(torch.get_default_dtype())


def _require_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 0:
            raise ValueError(f"{name}: expected 0 or more, got {size}")


def _add_positions(x: Tensor, table: Tensor, offset: int) -> Tensor:
    require_floating(x=x)
    require_axes("length d_model", x=x)
    (length, d_model), (max_length, width) = x.shape[-2:], table.shape
    if d_model != width:
        raise ValueError(f"x: expected d_model = {width}, got {d_model} (shape {tuple(x.shape)})")
    _require_sizes(offset=offset)
    if offset + length > max_length:
        raise ValueError(
            f"x: {length} positions from offset {offset} on reach beyond the table's {max_length}"
        )
    return x + table[offset : offset + length].to(x.dtype)


class SinusoidalPositions(nn.Module):
    """Adds the paper's sinusoids to a batch of vectors; nothing is learnt.

    The table is no part of the module's state: a checkpoint does not fix the longest length.

    Args:
        d_model: Width of the vectors.
        max_length: Positions in the table.
        layout: Order of the columns, as in :func:`sinusoids`.

    Raises:
        ValueError: As :func:`sinusoids`.

    Source: Vaswani et al. (2017), section 3.5.
    """

    table: Tensor

    def __init__(
        self,
        d_model: int,
        max_length: int = 5000,
        *,
        layout: Literal["interleaved", "halves"] = "interleaved",
    ) -> None:
        super().__init__()
        _require_sizes(max_length=max_length)
        self.register_buffer(
            "table", sinusoids(max_length, d_model, layout=layout), persistent=False
        )

    def forward(
        self, x: Float[Tensor, "*batch length d_model"], *, offset: int = 0
    ) -> Float[Tensor, "*batch length d_model"]:
        """Return ``x`` plus the encodings of positions offset … offset + length − 1.

        The result has the dtype of ``x``. NaN stays where it is; a size of 0 gives an empty result.

        Raises:
            TypeError: ``x`` is no floating-point tensor.
            ValueError: ``x`` is of another width, or reaches beyond the table; ``offset`` is
                negative.
        """
        return _add_positions(x, self.table, offset)


class LearnedPositions(nn.Module):
    """Adds one learnt vector per position, as BERT does; beyond ``max_length`` there is none.

    Args:
        d_model: Width of the vectors.
        max_length: Positions in the table.

    Raises:
        ValueError: A size is negative.
    """

    def __init__(self, d_model: int, max_length: int = 512) -> None:
        super().__init__()
        _require_sizes(d_model=d_model, max_length=max_length)
        self.table = nn.Parameter(torch.empty(max_length, d_model))
        nn.init.normal_(self.table, std=0.02)

    def forward(
        self, x: Float[Tensor, "*batch length d_model"], *, offset: int = 0
    ) -> Float[Tensor, "*batch length d_model"]:
        """Return ``x`` plus the vectors of positions offset … offset + length − 1.

        The result has the dtype of ``x``. NaN stays where it is; a size of 0 gives an empty result.

        Raises:
            TypeError: ``x`` is no floating-point tensor.
            ValueError: ``x`` is of another width, or reaches beyond the table; ``offset`` is
                negative.
        """
        return _add_positions(x, self.table, offset)
