"""The layers of encoder and decoder, and the stacks that they make.

Explained in chapter 11, "The Transformer" (book/11_transformer.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer_lib._checks import layers as check
from transformer_lib.add_norm import AddNorm, LayerNorm
from transformer_lib.feed_forward import FeedForward
from transformer_lib.multi_head_attention import KeysValues, MultiHeadAttention

__all__ = ["Cache", "Decoder", "DecoderLayer", "Encoder", "EncoderLayer"]


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each with add & norm (the paper's section 3.1).

    Args:
        d_model: Width of the vectors.
        n_heads: Number of attention heads; divides ``d_model``.
        d_ff: Width inside the feed-forward network.
        dropout: Dropout of each sublayer's output.
        attention_dropout: Dropout of attention weights; none in the paper's text.
        feed_forward_dropout: Dropout inside the feed-forward network; none in the paper's text.
        activation: Activation of the feed-forward network.
        norm_first: Pre-norm instead of the paper's post-norm.
        norm_eps: eps of the layer norms.
        **factory: ``device`` and ``dtype`` of the parameters, as in PyTorch's layers.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        feed_forward_dropout: float = 0.0,
        activation: str = "relu",
        norm_first: bool = False,
        norm_eps: float = 1e-5,
        **factory: Any,
    ) -> None:
        super().__init__()
        attention: dict[str, Any] = {"dropout": attention_dropout, **factory}
        network: dict[str, Any] = {"activation": activation, "dropout": feed_forward_dropout}
        norm = {"norm_first": norm_first, "dropout": dropout, "eps": norm_eps, **factory}
        self.self_attention = MultiHeadAttention(d_model, n_heads, **attention)
        self.self_attention_norm = AddNorm(d_model, **norm)
        self.feed_forward = FeedForward(d_model, d_ff, **network, **factory)
        self.feed_forward_norm = AddNorm(d_model, **norm)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        *,
        mask: Bool[Tensor, "..."] | None = None,
        key_mask: Bool[Tensor, "batch length"] | None = None,
        positions: Float[Tensor, "#batch length d_model"] | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """Run the layer.

        Args:
            x: Vectors.
            mask: True where a position may attend to another, as in ``MultiHeadAttention``.
            key_mask: True on real positions, False on padding.
            positions: Added to queries and keys, not to values, as DETR does at every layer.
        """

        def attend(x: Tensor) -> Tensor:
            placed = _placed(x, positions)
            return self.self_attention(placed, placed, x, mask=mask, key_mask=key_mask)

        x = self.self_attention_norm(x, attend)
        return self.feed_forward_norm(x, self.feed_forward)


def _placed(x: Tensor, positions: Tensor | None) -> Tensor:
    return x if positions is None else x + positions


@runtime_checkable
class Cache(Protocol):
    """What a decoder layer keeps from one step of decoding to the next; chapter 13 has one.

    It belongs to one sequence of targets and one memory: with others it would be stale.
    """

    memory: KeysValues | None
    """Keys and values of the encoder's output, once the layer has projected it."""

    def __call__(self, new: KeysValues) -> KeysValues:
        """Append the keys and values of new target positions, and return all so far."""


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output, feed-forward (section 3.1).

    The arguments are those of :class:`EncoderLayer`.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        feed_forward_dropout: float = 0.0,
        activation: str = "relu",
        norm_first: bool = False,
        norm_eps: float = 1e-5,
        **factory: Any,
    ) -> None:
        super().__init__()
        attention: dict[str, Any] = {"dropout": attention_dropout, **factory}
        network: dict[str, Any] = {"activation": activation, "dropout": feed_forward_dropout}
        norm = {"norm_first": norm_first, "dropout": dropout, "eps": norm_eps, **factory}
        self.self_attention = MultiHeadAttention(d_model, n_heads, **attention)
        self.self_attention_norm = AddNorm(d_model, **norm)
        self.cross_attention = MultiHeadAttention(d_model, n_heads, **attention)
        self.cross_attention_norm = AddNorm(d_model, **norm)
        self.feed_forward = FeedForward(d_model, d_ff, **network, **factory)
        self.feed_forward_norm = AddNorm(d_model, **norm)

    def forward(
        self,
        x: Float[Tensor, "batch target d_model"],
        memory: Float[Tensor, "batch source d_model"],
        *,
        mask: Bool[Tensor, "..."] | None = None,
        causal: bool = True,
        key_mask: Bool[Tensor, "batch keys"] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
        memory_key_mask: Bool[Tensor, "batch source"] | None = None,
        positions: Float[Tensor, "#batch target d_model"] | None = None,
        memory_positions: Float[Tensor, "#batch source d_model"] | None = None,
        cache: Cache | None = None,
    ) -> Float[Tensor, "batch target d_model"]:
        """Run the layer.

        Args:
            x: Vectors.
            memory: The encoder's output.
            mask: True where a target position may attend to another.
            causal: Hide later target positions; the last of ``x`` stands at the last key.
            key_mask: True on real target positions, those in the cache included.
            memory_mask: True where a target position may attend to a source position.
            memory_key_mask: True on real source positions.
            positions: Added to the queries of both attentions and to the self-attention's keys.
            memory_positions: Added to ``memory`` for the keys, not for the values.
            cache: Keeps keys and values, of the target so far and of the memory.
        """
        check.decoder_layer(x, memory, self.self_attention.d_model)

        def attend(x: Tensor) -> Tensor:
            placed = _placed(x, positions)
            own = self.self_attention.project(placed, x)
            own = own if cache is None else cache(own)
            return self.self_attention(
                placed, keys_values=own, mask=mask, key_mask=key_mask, causal=causal
            )

        def attend_to_memory(x: Tensor) -> Tensor:
            keys_values = None if cache is None else cache.memory
            if keys_values is None:
                placed = _placed(memory, memory_positions)
                keys_values = self.cross_attention.project(placed, memory)
            if cache is not None:
                cache.memory = keys_values
            options = {"mask": memory_mask, "key_mask": memory_key_mask}
            return self.cross_attention(_placed(x, positions), keys_values=keys_values, **options)

        x = self.self_attention_norm(x, attend)
        x = self.cross_attention_norm(x, attend_to_memory)
        return self.feed_forward_norm(x, self.feed_forward)


class Encoder(nn.Module):
    """A stack of encoder layers over vectors that are embedded already (section 3.1).

    Args:
        n_layers: Number of layers.
        d_model: Width of the vectors.
        n_heads: Number of attention heads; divides ``d_model``.
        d_ff: Width inside the feed-forward networks.
        final_norm: Layer normalisation after the last layer; None means only with ``norm_first``,
            where nothing else normalises the last sum.
        **layer_options: Passed on to every :class:`EncoderLayer`.
    """

    def __init__(
        self,
        n_layers: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        final_norm: bool | None = None,
        **layer_options: Any,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, n_heads, d_ff, **layer_options) for _ in range(n_layers)
        )
        self.final_norm: LayerNorm | None = _final_norm(d_model, final_norm, **layer_options)

    def forward(
        self, x: Float[Tensor, "batch length d_model"], **masks_and_positions: Tensor | None
    ) -> Float[Tensor, "batch length d_model"]:
        """Run all layers; keyword arguments are those of :meth:`EncoderLayer.forward`."""
        for layer in self.layers:
            x = layer(x, **masks_and_positions)
        return x if self.final_norm is None else self.final_norm(x)


class Decoder(nn.Module):
    """A stack of decoder layers over vectors that are embedded already (section 3.1).

    The arguments are those of :class:`Encoder`.
    """

    def __init__(
        self,
        n_layers: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        final_norm: bool | None = None,
        **layer_options: Any,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, n_heads, d_ff, **layer_options) for _ in range(n_layers)
        )
        self.final_norm: LayerNorm | None = _final_norm(d_model, final_norm, **layer_options)

    def forward(
        self,
        x: Float[Tensor, "batch target d_model"],
        memory: Float[Tensor, "batch source d_model"],
        *,
        cache: Sequence[Cache] | None = None,
        **masks_and_positions: Any,
    ) -> Float[Tensor, "batch target d_model"]:
        """Run all layers; keyword arguments are those of :meth:`DecoderLayer.forward`.

        Args:
            x: Vectors.
            memory: The encoder's output, the same for all layers.
            cache: One for each layer.
            **masks_and_positions: Passed on to every layer.
        """
        check.decoder(len(self.layers), cache)
        for number, layer in enumerate(self.layers):
            own = None if cache is None else cache[number]
            x = layer(x, memory, cache=own, **masks_and_positions)
        return x if self.final_norm is None else self.final_norm(x)


def _final_norm(
    d_model: int,
    wanted: bool | None,
    *,
    norm_first: bool = False,
    norm_eps: float = 1e-5,
    device: Any = None,
    dtype: Any = None,
    **_: Any,
) -> LayerNorm | None:
    wanted = norm_first if wanted is None else wanted
    return LayerNorm(d_model, eps=norm_eps, device=device, dtype=dtype) if wanted else None
