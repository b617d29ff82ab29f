"""Multi-head attention: several attentions side by side, each in its own small subspace.

Explained in chapter 7, "Multi-head attention" (book/07_multi_head_attention.ipynb). Generated from
there by tools/export.py; edit the notebook.
"""

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer_lib._checks.common import require_floating, require_same_size
from transformer_lib.attention import scaled_dot_product_attention
from transformer_lib.masking import combine_masks, require_mask

__all__ = ["KeysValues", "MultiHeadAttention", "join_heads", "split_heads"]


def split_heads(
    x: Float[Tensor, "batch n d_model"], n_heads: int
) -> Float[Tensor, "batch n_heads n d_k"]:
    """Give every head its share of each vector: (batch, n, d_model) to (batch, n_heads, n, d_k).

    Head i, counted from 0, gets the entries i·d_k to (i + 1)·d_k − 1 of every vector, with
    d_k = d_model / n_heads.

    Args:
        x: Projected vectors of shape (batch, n, d_model).
        n_heads: Number of heads; divides ``d_model``.

    Returns:
        The same numbers in the shape (batch, n_heads, n, d_k), a view where memory allows one.

    Raises:
        TypeError: ``x`` is not a floating-point tensor.
        ValueError: ``x`` has not three axes, or ``n_heads`` does not divide ``d_model``.

    Source: Vaswani et al. (2017), section 3.2.2.
    """
    require_floating(x=x)
    if x.dim() != 3:
        raise ValueError(f"x: expected shape (batch, n, d_model), got {tuple(x.shape)}")
    d_k = _head_size(x.shape[-1], n_heads)
    return x.reshape(*x.shape[:2], n_heads, d_k).transpose(1, 2)


def join_heads(
    heads: Float[Tensor, "batch n_heads n d_v"],
) -> Float[Tensor, "batch n d_model"]:
    """Concatenate the heads' vectors: (batch, n_heads, n, d_v) to (batch, n, n_heads · d_v).

    Undoes :func:`split_heads`.

    Args:
        heads: Vectors of shape (batch, n_heads, n, d_v).

    Returns:
        A tensor of shape (batch, n, n_heads · d_v), the first head's entries first.

    Raises:
        TypeError: ``heads`` is not a floating-point tensor.
        ValueError: ``heads`` has not four axes.

    Source: Vaswani et al. (2017), section 3.2.2.
    """
    require_floating(heads=heads)
    if heads.dim() != 4:
        raise ValueError(
            f"heads: expected shape (batch, n_heads, n, d_v), got {tuple(heads.shape)}"
        )
    return heads.transpose(1, 2).flatten(2)


def _head_size(d_model: int, n_heads: int) -> int:
    if n_heads < 1 or d_model % n_heads:
        raise ValueError(f"n_heads: expected a divisor of d_model = {d_model}, got {n_heads}")
    return d_model // n_heads


class KeysValues(NamedTuple):
    """Keys and values of every head, projected and ready to be attended to."""

    keys: Float[Tensor, "batch n_heads keys d_k"]
    values: Float[Tensor, "batch n_heads keys d_k"]


class MultiHeadAttention(nn.Module):
    """Multi-head attention with d_k = d_v = d_model / n_heads.

    Every head projects the whole of each vector down to d_k numbers and attends there. The heads'
    outputs are concatenated and projected once more. A new module's weights are Xavier-uniform
    and its biases 0.

    Args:
        d_model: Width of the vectors that come in and go out.
        n_heads: Number of heads; divides ``d_model``.
        dropout: Probability with which each attention weight is dropped while training.
        bias: Whether the four projections add a bias.

    Raises:
        ValueError: ``n_heads`` does not divide ``d_model``, or ``dropout`` is no probability.

    Source: Vaswani et al. (2017), section 3.2.2.
    """

    def __init__(
        self, d_model: int, n_heads: int, *, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        self.d_k = _head_size(d_model, n_heads)
        if not 0 <= dropout <= 1:
            raise ValueError(f"dropout: expected a probability from 0 to 1, got {dropout}")
        self.d_model, self.n_heads, self.dropout = d_model, n_heads, dropout
        self.query_projection = nn.Linear(d_model, d_model, bias=bias)
        self.key_projection = nn.Linear(d_model, d_model, bias=bias)
        self.value_projection = nn.Linear(d_model, d_model, bias=bias)
        self.output_projection = nn.Linear(d_model, d_model, bias=bias)
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            else:
                nn.init.xavier_uniform_(parameter)

    def project(
        self,
        key: Float[Tensor, "batch keys d_model"],
        value: Float[Tensor, "batch keys d_model"],
    ) -> KeysValues:
        """Project to the keys and values of every head, for :meth:`forward` now or later.

        Args:
            key: Vectors of shape (batch, keys, d_model).
            value: Vectors of shape (batch, keys, d_model).

        Returns:
            Keys and values of shape (batch, n_heads, keys, d_k) each. Those of a sequence that
            comes in parts may be projected part by part and concatenated along axis 2.

        Raises:
            TypeError: An argument is not a floating-point tensor.
            ValueError: A shape is not (batch, keys, d_model), or the two differ.
        """
        self._require(key=key, value=value)
        if key.shape != value.shape:
            raise ValueError(
                f"value: expected shape {tuple(key.shape)} as key has, got {tuple(value.shape)}"
            )
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
            query: Vectors of shape (batch, queries, d_model).
            key: Vectors of shape (batch, keys, d_model).
            value: Vectors of shape (batch, keys, d_model), one for each key.
            keys_values: What :meth:`project` returned, in place of ``key`` and ``value``.
            mask: True where a query may attend to a key; shape (queries, keys) or (batch,
                n_heads, queries, keys), an axis of size 1 standing for all.
            key_mask: True on real keys, False on padding; shape (batch, keys).
            bias: Numbers added to the scores; shapes as for ``mask``. −∞ hides a key.
            causal: Hide later keys; the last query stands at the last key.
            return_weights: Return the weights of every head as well, before dropout, of shape
                (batch, n_heads, queries, keys).

        Returns:
            The output, of shape (batch, queries, d_model), and the weights if asked for. A query
            that may attend to nothing, or that has no keys, gets weights of zero and the bias of
            the output projection as output. NaN in a hidden key or value spreads, as in PyTorch.
            A batch of size 0, or no queries, gives an empty output.

        Raises:
            TypeError: A tensor is not floating point, or a mask is not boolean.
            ValueError: Sizes differ; a mask has another number of axes; there are more queries
                than keys under ``causal``; or key and value are given beside ``keys_values``, or
                neither is.
        """
        self._require(query=query)
        if keys_values is None and key is not None and value is not None:
            keys_values = self.project(key, value)
            require_same_size("batch", query=(query, 0), key=(key, 0))
        elif keys_values is None or key is not None or value is not None:
            raise ValueError("keys_values: expected either key and value, or keys_values instead")
        keys, values = keys_values
        batch, queries, n = query.shape[0], query.shape[1], keys.shape[-2]
        if not keys.shape == values.shape == (batch, self.n_heads, n, self.d_k):
            raise ValueError(
                "keys_values: expected keys and values of one shape (batch, n_heads, keys, d_k) = "
                f"({batch}, {self.n_heads}, keys, {self.d_k}), "
                f"got {tuple(keys.shape)} and {tuple(values.shape)}"
            )
        for name, tensor in (("mask", mask), ("bias", bias)):
            if tensor is not None:
                _require_fit(name, tensor, (batch, self.n_heads, queries, n))
        if key_mask is not None:
            require_mask(key_mask, "key_mask")
            if key_mask.shape != (batch, n):
                raise ValueError(
                    f"key_mask: expected shape (batch, keys) = ({batch}, {n}), "
                    f"got {tuple(key_mask.shape)}"
                )
            mask = combine_masks(mask, key_mask[:, None, None, :])
        attended = scaled_dot_product_attention(
            split_heads(self.query_projection(query), self.n_heads),
            keys,
            values,
            mask=mask,
            bias=bias,
            causal=causal,
            dropout=self.dropout if self.training else 0.0,
            return_weights=return_weights,
        )
        heads, weights = attended if isinstance(attended, tuple) else (attended, None)
        output = self.output_projection(join_heads(heads))
        return output if weights is None else (output, weights)

    def _require(self, **tensors: Tensor) -> None:
        for name, tensor in tensors.items():
            require_floating(**{name: tensor})
            if tensor.dim() != 3 or tensor.shape[-1] != self.d_model:
                raise ValueError(
                    f"{name}: expected shape (batch, length, d_model = {self.d_model}), "
                    f"got {tuple(tensor.shape)}"
                )


def _require_fit(name: str, tensor: Tensor, scores: tuple[int, int, int, int]) -> None:
    """Refuse a mask or bias that does not fit the scores, before it meets a ``key_mask``."""
    if name == "mask":
        require_mask(tensor)
    if tensor.dim() not in (2, 4) or any(
        size not in (1, expected)
        for size, expected in zip(reversed(tensor.shape), reversed(scores), strict=False)
    ):
        raise ValueError(
            f"{name}: expected shape (queries, keys) = {scores[2:]} or (batch, n_heads, queries, "
            f"keys) = {scores}, an axis of size 1 standing for all, got {tuple(tensor.shape)}"
        )
