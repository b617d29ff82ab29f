"""Positional encodings: where a token stands, added to what it is.

Explained in chapter 5, "Positional encoding" (book/05_positional_encoding.ipynb). Generated from
there by tools/export.py; edit the notebook.
"""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lib._checks import attention as check

__all__ = ["LearnedPositions", "SinusoidalPositions", "sinusoids"]


def sinusoids(
    length: int,
    d_model: int,
    *,
    offset: int = 0,
    layout: Literal["interleaved", "halves"] = "interleaved",
    device: torch.device | str | None = None,
) -> Float[Tensor, "length d_model"]:
    """Return the paper's sinusoids of positions offset … offset + length − 1.

    Pair i of the columns holds the sine and cosine of the angle pos / 10000^(2i / d_model), in
    radians, computed in float64 and rounded to PyTorch's default dtype.

    Args:
        length: How many positions.
        d_model: How many columns; of an odd number the last pair keeps only its sine.
        offset: The first position, for decoding that goes on from cached tokens.
        layout: "interleaved" puts each cosine beside its sine, as the paper does; "halves" puts
            all sines before all cosines, as Marian does, and needs an even ``d_model``.
        device: Where the table goes; it is computed on the CPU.

    Source: Vaswani et al. (2017), section 3.5.
    """
    check.sinusoids(length, d_model, offset, layout)
    # In float32 the angle alone would be off by 4e-4 at position 5000: compute in float64.
    position = torch.arange(offset, offset + length, dtype=torch.float64, device="cpu")
    pair = torch.arange(0, d_model, 2, dtype=torch.float64, device="cpu")
    angle = position[:, None] / 10000 ** (pair / d_model)
    if layout == "interleaved":
        table = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d_model]
    else:
        table = torch.cat([angle.sin(), angle.cos()], dim=-1)
    return table.to(device=device, dtype=torch.get_default_dtype())


class SinusoidalPositions(nn.Module):
    """Adds the paper's sinusoids to a batch of vectors; nothing is learnt.

    The table is no part of the module's state: a checkpoint does not fix the longest length. It is
    computed anew where the module goes, or the vectors: no move can leave it without its numbers.

    Args:
        d_model: Width of the vectors.
        max_length: Positions in the table.
        layout: Order of the columns, as in :func:`sinusoids`.

    Source: Vaswani et al. (2017), section 3.5.
    """

    def __init__(
        self,
        d_model: int,
        max_length: int = 5000,
        *,
        layout: Literal["interleaved", "halves"] = "interleaved",
    ) -> None:
        super().__init__()
        check.table(max_length, d_model)
        self.table = sinusoids(max_length, d_model, layout=layout)  # (max_length, d_model)
        self.layout = layout

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
        """Take the table along when PyTorch moves the module, so that no graph has to do it."""
        self._go_to(fn(torch.empty(0, device=self.table.device)).device)
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def _go_to(self, device: torch.device) -> None:
        if self.table.device != device:
            self.table = sinusoids(*self.table.shape, layout=self.layout, device=device)

    def forward(
        self, x: Float[Tensor, "*batch length d_model"], *, offset: int = 0
    ) -> Float[Tensor, "*batch length d_model"]:
        """Return ``x`` plus the encodings of positions offset … offset + length − 1."""
        check.positions(x, self.table, offset)
        self._go_to(x.device)
        return x + self.table[offset : offset + x.shape[-2]].to(x.dtype)


class LearnedPositions(nn.Module):
    """Adds one learnt vector per position, as BERT does; beyond ``max_length`` there is none.

    Args:
        d_model: Width of the vectors.
        max_length: Positions in the table.
        device: Where the table is.
        dtype: Dtype of the table.
    """

    def __init__(
        self,
        d_model: int,
        max_length: int = 512,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check.table(max_length, d_model)
        self.table = nn.Parameter(torch.empty(max_length, d_model, device=device, dtype=dtype))
        nn.init.normal_(self.table, std=0.02)

    def forward(
        self, x: Float[Tensor, "*batch length d_model"], *, offset: int = 0
    ) -> Float[Tensor, "*batch length d_model"]:
        """Return ``x`` plus the vectors of positions offset … offset + length − 1."""
        check.positions(x, self.table, offset)
        return x + self.table[offset : offset + x.shape[-2]].to(x.dtype)
