"""The position-wise feed-forward network: the same two layers at every position.

Explained in chapter 8, "Feed-forward" (book/08_feed_forward.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib._checks.common import require_axes, require_floating

__all__ = ["ACTIVATIONS", "FeedForward"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "swish": F.silu,
}


class FeedForward(nn.Module):
    """FFN(x) = activation(x W₁ + b₁) W₂ + b₂, at every position by itself.

    A new module's weights are Xavier-uniform and its biases 0.

    Args:
        d_model: Width of the vectors that come in and go out.
        d_ff: Width between the two layers.
        activation: "relu" (the paper), "gelu" (BERT; the exact one) or "swish" (Marian).
        dropout: Probability of dropping a number between the layers while training; 0 in the
            paper.

    Raises:
        ValueError: The activation is unknown, or ``dropout`` is no probability.

    Source: Vaswani et al. (2017), section 3.3.
    """

    def __init__(
        self, d_model: int, d_ff: int, *, activation: str = "relu", dropout: float = 0.0
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(
                f"activation: expected one of {', '.join(ACTIVATIONS)}, got {activation!r}"
            )
        if not 0 <= dropout <= 1:
            raise ValueError(f"dropout: expected a probability from 0 to 1, got {dropout}")
        self.activation = ACTIVATIONS[activation]
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.inner, self.outer):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Transform every vector along the last axis by itself.

        Args:
            x: Vectors of shape (*batch, d_model), with any number of axes before the last.

        Returns:
            Vectors of the same shape. A NaN spoils the vector it stands in and no other. Without
            vectors the result is as empty as ``x``.

        Raises:
            TypeError: ``x`` is not a floating-point tensor.
            ValueError: ``x`` has no axis, or vectors of another width.
        """
        require_floating(x=x)
        require_axes("d_model", x=x)
        if x.shape[-1] != self.inner.in_features:
            raise ValueError(
                f"x: expected d_model = {self.inner.in_features}, got shape {tuple(x.shape)}"
            )
        return self.outer(self.dropout(self.activation(self.inner(x))))
