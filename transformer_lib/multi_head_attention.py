"""Multi-head attention: several attentions side by side, each in its own small subspace.

Explained in chapter 7, "Multi-head attention" (book/07_multi_head_attention.ipynb). Generated from
there by tools/export.py; edit the notebook.
"""

from typing import Any, NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer_lib._checks import attention as check
from transformer_lib.attention import scaled_dot_product_attention
from transformer_lib.masking import combine_masks

__all__ = ["KeysValues", "MultiHeadAttention", "join_heads", "split_heads"]


def split_heads(
    x: Float[Tensor, "batch n d_model"], n_heads: int
) -> Float[Tensor, "batch n_heads n d_k"]:
    """Give every head its share of each vector: (batch, n, d_model) to (batch, n_heads, n, d_k).

    Head i, counted from 0, gets the entries i·d_k to (i + 1)·d_k − 1 of every vector, with
    d_k = d_model / n_heads. The result is a view where memory allows one.

    Source: Vaswani et al. (2017), section 3.2.2.
    """
    if not isinstance(x, Tensor) or x.dim() != 3 or n_heads < 1 or x.shape[-1] % n_heads:
        check.split_heads(x, n_heads)
    return x.reshape(*x.shape[:2], n_heads, x.shape[-1] // n_heads).transpose(1, 2)


def join_heads(heads: Float[Tensor, "batch n_heads n d_v"]) -> Float[Tensor, "batch n d_model"]:
    """Concatenate the heads' vectors: (batch, n_heads, n, d_v) to (batch, n, n_heads · d_v).

    Undoes :func:`split_heads`: the first head's entries come first.

    Source: Vaswani et al. (2017), section 3.2.2.
    """
    check.join_heads(heads)
    return heads.transpose(1, 2).flatten(2)


class KeysValues(NamedTuple):
    """Keys and values of every head, projected and ready to be attended to."""

    keys: Float[Tensor, "batch n_heads keys d_k"]
    values: Float[Tensor, "batch n_heads keys d_k"]


class MultiHeadAttention(nn.Module):
    """Attention in ``n_heads`` subspaces of d_k = d_v = d_model / n_heads numbers each.

    A new module's weights are Xavier-uniform and its biases 0.

    Args:
        d_model: Width of the vectors that come in and go out.
        n_heads: Number of heads; divides ``d_model``.
        dropout: Probability with which each attention weight is dropped while training.
        bias: Whether the four projections add a bias.
        **factory: ``device`` and ``dtype`` of the parameters, as in PyTorch's layers.

    Source: Vaswani et al. (2017), section 3.2.2.
    """

    def __init__(
        self, d_model: int, n_heads: int, *, dropout: float = 0.0, bias: bool = True, **factory: Any
    ) -> None:
        super().__init__()
        check.heads(d_model, n_heads, dropout)
        self.d_model, self.n_heads, self.d_k = d_model, n_heads, d_model // n_heads
        self.dropout = dropout
        self.query_projection = nn.Linear(d_model, d_model, bias=bias, **factory)
        self.key_projection = nn.Linear(d_model, d_model, bias=bias, **factory)
        self.value_projection = nn.Linear(d_model, d_model, bias=bias, **factory)
        self.output_projection = nn.Linear(d_model, d_model, bias=bias, **factory)
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            else:
                nn.init.xavier_uniform_(parameter)

    def project(
        self, key: Float[Tensor, "batch keys d_model"], value: Float[Tensor, "batch keys d_model"]
    ) -> KeysValues:
        """Project to the keys and values of every head, for :meth:`forward` now or later.

        Those of a sequence that comes in parts may be concatenated along axis 2.
        """
        check.project(self, key, value)
        return KeysValues(
            split_heads(self.key_projection(key), self.n_heads),
            split_heads(self.value_projection(value), self.n_heads),
        )

    def forward(
        self,
        query: Float[Tensor, "batch queries d_model"],
        key: Float[Tensor, "batch keys d_model"] | None = None,
        value: Float[Tensor, "batch keys d_model"] | None = None,
        *,
        keys_values: KeysValues | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        key_mask: Bool[Tensor, "batch keys"] | None = None,
        bias: Float[Tensor, "..."] | None = None,
        causal: bool = False,
        return_weights: bool = False,
    ) -> (
        Float[Tensor, "batch queries d_model"]
        | tuple[Float[Tensor, "batch queries d_model"], Float[Tensor, "batch n_heads queries keys"]]
    ):
        """Attend from every query to the keys it may see.

        Args:
            query: Vectors.
            key: Vectors, by default ``query``: self-attention.
            value: Vectors, one for each key, by default ``key``.
            keys_values: What :meth:`project` returned, in place of ``key`` and ``value``.
            mask: True where a query may attend; (queries, keys) or (batch, n_heads, queries, keys).
            key_mask: True on real keys, False on padding.
            bias: Numbers added to the scores, of a shape as ``mask``; −∞ hides a key.
            causal: Hide later keys; the last query stands at the last key.
            return_weights: Return (output, weights of every head before dropout).

        A query that may attend to nothing gets the bias of the output projection.
        """
        check.multi_head_attention(self, query, key, value, keys_values, mask, key_mask, bias)
        if keys_values is None:
            key = query if key is None else key
            keys_values = self.project(key, key if value is None else value)
        queries = split_heads(self.query_projection(query), self.n_heads)
        if key_mask is not None:
            mask = combine_masks(mask, key_mask[:, None, None, :])
        dropout = self.dropout if self.training else 0.0
        options: dict[str, Any] = {"mask": mask, "bias": bias, "causal": causal}
        options |= {"dropout": dropout, "return_weights": return_weights}
        attended = scaled_dot_product_attention(queries, *keys_values, **options)
        heads, weights = attended if isinstance(attended, tuple) else (attended, None)
        output = self.output_projection(join_heads(heads))
        return output if weights is None else (output, weights)
