"""Add & norm: the residual connection and layer normalisation around every sublayer.

Explained in chapter 9, "Add & norm" (book/09_add_and_norm.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib._checks import layers as check

__all__ = ["AddNorm", "LayerNorm", "layer_norm"]


def layer_norm(
    x: Float[Tensor, "*batch d_model"], *, eps: float = 1e-5
) -> Float[Tensor, "*batch d_model"]:
    """Shift and scale each vector to mean 0 and variance 1 over its own entries.

    The variance is the biased one (division by d_model). Half precision is computed in float32 and
    rounded once. A constant vector gives zeros, thanks to ``eps``, which is added to the variance.
    A NaN or an infinity spoils the vector it stands in and no other.

    Source: Ba et al. (2016), equation 3; epsilon as in Ioffe and Szegedy (2015), algorithm 1.
    """
    check.layer_norm(x)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    centred = wide - wide.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    return (centred / torch.sqrt(variance + eps)).to(x.dtype)


class LayerNorm(nn.Module):
    """Layer normalisation with a learnt weight and bias per feature.

    The same numbers as :func:`layer_norm` times ``weight`` plus ``bias``, by PyTorch's kernel.

    Args:
        d_model: Width of the vectors.
        eps: Added to the variance, so that a constant vector divides by no zero.
        **factory: ``device`` and ``dtype`` of the parameters, as in PyTorch's layers.

    Source: Ba et al. (2016), equation 4.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5, **factory: Any) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model, **factory))
        self.bias = nn.Parameter(torch.zeros(d_model, **factory))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Normalise each vector along the last axis."""
        check.vectors(x, *self.weight.shape)
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class AddNorm(nn.Module):
    """Wraps a sublayer in its residual connection and its layer normalisation.

    Post-norm: LayerNorm(x + dropout(sublayer(x))); pre-norm: x + dropout(sublayer(LayerNorm(x))).

    Args:
        d_model: Width of the vectors.
        norm_first: False is post-norm, as in the paper; True is pre-norm.
        dropout: Probability of dropping a number of the sublayer's output while training.
        eps: As in :class:`LayerNorm`.
        **factory: ``device`` and ``dtype`` of the parameters, as in PyTorch's layers.

    Source: Vaswani et al. (2017), sections 3.1 and 5.4; pre-norm: Xiong et al. (2020), figure 1.
    """

    def __init__(
        self,
        d_model: int,
        *,
        norm_first: bool = False,
        dropout: float = 0.0,
        eps: float = 1e-5,
        **factory: Any,
    ) -> None:
        super().__init__()
        check.dropout(dropout)
        self.norm_first = norm_first
        self.norm = LayerNorm(d_model, eps=eps, **factory)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "*batch d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "*batch d_model"]:
        """Apply ``sublayer``, which keeps the shape, with its residual connection and norm."""
        change = sublayer(self.norm(x) if self.norm_first else x)
        check.add_norm(x, change)
        total = x + self.dropout(change)
        return total if self.norm_first else self.norm(total)
