"""The position-wise feed-forward network: the same two layers at every position.

Explained in chapter 8, "Feed-forward" (book/08_feed_forward.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib._checks import layers as check

__all__ = ["ACTIVATIONS", "FeedForward"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}


class FeedForward(nn.Module):
    """FFN(x) = activation(x W₁ + b₁) W₂ + b₂, at every position by itself.

    A new module's weights are Xavier-uniform and its biases 0.

    Args:
        d_model: Width of the vectors that come in and go out.
        d_ff: Width between the two layers.
        activation: "relu" (the paper), "gelu" (BERT), "gelu_tanh" (GPT-2) or "silu" (Marian).
        dropout: Probability of dropping a number between the layers while training; 0 in the
            paper.
        **factory: ``device`` and ``dtype`` of the parameters, as in PyTorch's layers.

    Source: Vaswani et al. (2017), section 3.3.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: str = "relu",
        dropout: float = 0.0,
        **factory: Any,
    ) -> None:
        super().__init__()
        check.feed_forward(activation, list(ACTIVATIONS), dropout)
        self.activation = ACTIVATIONS[activation]
        self.inner = nn.Linear(d_model, d_ff, **factory)
        self.outer = nn.Linear(d_ff, d_model, **factory)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.inner, self.outer):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Transform every vector along the last axis by itself; a NaN spoils no other vector."""
        check.vectors(x, self.inner.in_features)
        return self.outer(self.dropout(self.activation(self.inner(x))))
