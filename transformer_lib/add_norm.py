"""Add & norm: the residual connection and layer normalisation around every sublayer.

Explained in chapter 9, "Add & norm" (book/09_add_and_norm.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib._checks.common import require_axes, require_floating

__all__ = ["AddNorm", "LayerNorm", "layer_norm"]


def layer_norm(
    x: Float[Tensor, "*batch d_model"], *, eps: float = 1e-5
) -> Float[Tensor, "*batch d_model"]:
    """Shift and scale each vector to mean 0 and variance 1 over its own entries.

    The variance is the biased one (division by d_model). Half precision is computed in float32
    and rounded once.

    Args:
        x: Vectors of shape (*batch, d_model).
        eps: Added to the variance, so that a constant vector divides by no zero.

    Returns:
        Vectors of the shape and dtype of ``x``. A constant vector gives zeros. A NaN or an
        infinity spoils the vector it stands in and no other. Without vectors or entries the
        result is as empty as ``x``.

    Raises:
        TypeError: ``x`` is not a floating-point tensor.
        ValueError: ``x`` has no axis.

    Source: Ba et al. (2016), equation 3; epsilon as in Ioffe and Szegedy (2015), algorithm 1.
    """
    require_floating(x=x)
    require_axes("d_model", x=x)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    centred = wide - wide.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    return (centred / torch.sqrt(variance + eps)).to(x.dtype)


class LayerNorm(nn.Module):
    """Layer normalisation with a learnt gain and bias per feature.

    The same numbers as :func:`layer_norm` times ``gain`` plus ``bias``, by PyTorch's kernel.

    Args:
        d_model: Width of the vectors.
        eps: Added to the variance, so that a constant vector divides by no zero.

    Source: Ba et al. (2016), equation 4.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Normalise each vector along the last axis.

        Args:
            x: Vectors of shape (*batch, d_model).

        Returns:
            Vectors of the same shape. NaN, infinity and empty tensors as in :func:`layer_norm`.

        Raises:
            TypeError: ``x`` is not a floating-point tensor.
            ValueError: ``x`` has no axis, or vectors of another width.
        """
        require_floating(x=x)
        require_axes("d_model", x=x)
        if x.shape[-1] != len(self.gain):
            raise ValueError(f"x: expected d_model = {len(self.gain)}, got shape {tuple(x.shape)}")
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)


class AddNorm(nn.Module):
    """Wraps a sublayer in its residual connection and its layer normalisation.

    Post-norm: LayerNorm(x + dropout(sublayer(x))); pre-norm: x + dropout(sublayer(LayerNorm(x))).

    Args:
        d_model: Width of the vectors.
        norm_first: False is post-norm, as in the paper; True is pre-norm.
        dropout: Probability of dropping a number of the sublayer's output while training.
        eps: As in :class:`LayerNorm`.

    Raises:
        ValueError: ``dropout`` is no probability.

    Source: Vaswani et al. (2017), sections 3.1 and 5.4; pre-norm: Xiong et al. (2020), figure 1.
    """

    def __init__(
        self,
        d_model: int,
        *,
        norm_first: bool = False,
        dropout: float = 0.0,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        if not 0 <= dropout <= 1:
            raise ValueError(f"dropout: expected a probability from 0 to 1, got {dropout}")
        self.norm_first = norm_first
        self.norm = LayerNorm(d_model, eps=eps)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "*batch d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "*batch d_model"]:
        """Apply ``sublayer`` with its residual connection and normalisation.

        Args:
            x: Vectors of shape (*batch, d_model).
            sublayer: A function or module that returns vectors of the shape it gets.

        Returns:
            Vectors of the same shape.

        Raises:
            TypeError: ``x`` is not a floating-point tensor.
            ValueError: ``x`` has another width, or ``sublayer`` returns another shape; it would
                fail to add, or be broadcast unnoticed.
        """
        change = sublayer(self.norm(x) if self.norm_first else x)
        if change.shape != x.shape:
            raise ValueError(
                f"sublayer: expected a result of shape {tuple(x.shape)}, to be added to x, "
                f"got {tuple(change.shape)}"
            )
        total = x + self.dropout(change)
        return total if self.norm_first else self.norm(total)
