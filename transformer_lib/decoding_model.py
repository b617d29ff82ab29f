"""A model laid out for decoding: the same numbers, read faster, and nothing else.

Explained in chapter 13, "Decoding" (book/13_decoding.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib._checks import decoding as check
from transformer_lib.add_norm import AddNorm
from transformer_lib.embedding import Generator
from transformer_lib.layers import Cache, Decoder, DecoderLayer, Encoder, EncoderLayer
from transformer_lib.masking import causal_mask, combine_masks
from transformer_lib.multi_head_attention import KeysValues
from transformer_lib.transformer import Transformer

__all__ = ["DecodingTransformer", "for_decoding"]


def _product(*layers: nn.Linear | Generator) -> Callable[[Tensor], Tensor]:
    """Return the function x Wᵀ + b, where W is the layers' matrices, one below the other."""
    weight = torch.cat(tuple(layer.weight for layer in layers)).detach()
    biases = tuple(layer.bias for layer in layers if layer.bias is not None)
    bias = torch.cat(biases).detach() if biases else None
    if weight.shape[0] >= weight.shape[1]:
        weight = weight.t().contiguous().t()  # the same matrix, stored column by column

    def product(x: Tensor) -> Tensor:
        return F.linear(x, weight, bias)

    # Private operators, with which torch.compile freezes weights; no public way was as fast.
    onednn = torch.ops.mkldnn
    names = "_reorder_linear_weight", "_linear_pointwise"
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    single = weight.is_cpu and weight.dtype == torch.float32
    if not (single and available and all(hasattr(onednn, name) for name in names)):
        return product
    blocks = onednn._reorder_linear_weight(weight.contiguous(), 8)  # made for about 8 vectors

    def product_in_blocks(x: Tensor) -> Tensor:
        if x.shape[:-1].numel() == 1 or torch.is_autocast_enabled("cpu"):
            return product(x)
        result: Tensor = onednn._linear_pointwise(x, blocks, bias, "none", [], "")
        return result

    return product_in_blocks


def _attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    key_mask: Tensor | None,
    *,
    causal: bool = False,
) -> Tensor:
    """Return the joined heads; a query that may attend to nothing gets zeros, as in the model."""
    mask = None if key_mask is None else key_mask[:, None, None, :]
    n = queries.shape[2]
    if causal and n > 1:  # a single query stands at the last key and sees all
        mask = combine_masks(mask, causal_mask(n, keys.shape[2], device=queries.device))
    return F.scaled_dot_product_attention(queries, keys, values, mask).transpose(1, 2).flatten(2)


class _Norm:
    """What an ``AddNorm`` does in evaluation mode."""

    def __init__(self, add_norm: AddNorm) -> None:
        norm = add_norm.norm
        weight, bias = norm.weight.detach().clone(), norm.bias.detach().clone()
        self.how = weight.shape, weight, bias, norm.eps
        self.first = add_norm.norm_first

    def __call__(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.first:
            return x + sublayer(F.layer_norm(x, *self.how))
        return F.layer_norm(x + sublayer(x), *self.how)


class _DecodingLayer(nn.Module):
    """A layer of the encoder or the decoder that only computes: no checks and no dropout.

    The arguments of ``forward`` are those that :class:`DecodingTransformer` gives its layers.
    """

    def __init__(self, layer: EncoderLayer | DecoderLayer) -> None:
        super().__init__()
        own, feed_forward = layer.self_attention, layer.feed_forward
        self.n_heads, self.d_k = own.n_heads, own.d_k
        self.own_input = _product(own.query_projection, own.key_projection, own.value_projection)
        self.own_output = _product(own.output_projection)
        self.own_norm = _Norm(layer.self_attention_norm)
        if isinstance(layer, DecoderLayer):
            cross = layer.cross_attention
            self.memory_input = _product(cross.key_projection, cross.value_projection)
            self.cross_input = _product(cross.query_projection)
            self.cross_output = _product(cross.output_projection)
            self.cross_norm = _Norm(layer.cross_attention_norm)
        self.inner, self.outer = _product(feed_forward.inner), _product(feed_forward.outer)
        self.activation = feed_forward.activation
        self.feed_forward_norm = _Norm(layer.feed_forward_norm)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        key_mask: Tensor | None = None,
        memory_key_mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            queries, keys, values = self._heads(self.own_input(x), 3)
            if cache is not None:
                keys, values = cache(KeysValues(keys, values))
            heads = _attend(queries, keys, values, key_mask, causal=memory is not None)
            return self.own_output(heads)

        x = self.own_norm(x, attend)
        if memory is not None:
            keys, values = self._project(memory, cache)

            def attend_to_memory(x: Tensor) -> Tensor:
                (queries,) = self._heads(self.cross_input(x), 1)
                return self.cross_output(_attend(queries, keys, values, memory_key_mask))

            x = self.cross_norm(x, attend_to_memory)
        return self.feed_forward_norm(x, lambda x: self.outer(self.activation(self.inner(x))))

    def _project(self, memory: Tensor, cache: Cache | None) -> KeysValues:
        if cache is not None and cache.memory is not None:
            return cache.memory
        parts = self._heads(self.memory_input(memory), 2)
        projected = KeysValues(*(part.contiguous() for part in parts))  # as every step reads it
        if cache is not None:
            cache.memory = projected
        return projected

    def _heads(self, x: Tensor, parts: int) -> tuple[Tensor, ...]:
        """Split what one product made into its parts, such as keys and values, and into heads."""
        heads = x.view(*x.shape[:2], parts * self.n_heads, self.d_k).transpose(1, 2)
        return heads.chunk(parts, dim=1)


class _DecodingStack(nn.Module):
    """An encoder or a decoder of layers that only compute."""

    def __init__(self, stack: Encoder | Decoder) -> None:
        super().__init__()
        layers = cast("Sequence[EncoderLayer | DecoderLayer]", stack.layers)
        self.layers = nn.ModuleList(_DecodingLayer(layer) for layer in layers)
        self.final_norm = copy.deepcopy(stack.final_norm)

    def forward(self, x: Tensor, *memory: Tensor, cache: Any = None, **masks: Any) -> Tensor:
        for number, layer in enumerate(self.layers):
            x = layer(x, *memory, cache=None if cache is None else cache[number], **masks)
        return x if self.final_norm is None else self.final_norm(x)


class DecodingTransformer(nn.Module):
    """What :func:`for_decoding` makes of a model: it encodes and decodes, and cannot do more.

    Its matrices are no parameters. Moving, saving, loading, training, pickling or copying it is
    refused with TypeError; do that with the model it was made from.
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.config = model.config
        inputs = {"source": model.source_input, "target": model.target_input}
        self.inputs = copy.deepcopy(nn.ModuleDict(inputs)).requires_grad_(False)
        self.embedding = copy.deepcopy(model.embedding).requires_grad_(False)
        self.encoder, self.decoder = _DecodingStack(model.encoder), _DecodingStack(model.decoder)
        self.generator = _product(model.generator)
        self.eval()

    def encode(self, source: Tensor, *, key_mask: Tensor | None = None) -> Tensor:
        """Return the encoder's output, as ``Transformer.encode`` does."""
        if key_mask is None:
            key_mask = source != self.config.padding_id
        x = self.inputs["source"](self.embedding["source"](source))
        return self.encoder(x, key_mask=key_mask)

    def decode(
        self,
        target: Tensor,
        *,
        memory: Tensor,
        memory_key_mask: Tensor | None = None,
        key_mask: Tensor | None = None,
        offset: int = 0,
        cache: Sequence[Cache] | None = None,
    ) -> Tensor:
        """Return logits for target tokens, as ``Transformer.decode`` does."""
        embedding = self.embedding["target" if "target" in self.embedding else "source"]
        x = self.inputs["target"](embedding(target), offset=offset)
        masks = {"key_mask": key_mask, "memory_key_mask": memory_key_mask}
        return self.generator(self.decoder(x, memory, cache=cache, **masks))

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        *,
        source_key_mask: Tensor | None = None,
        target_key_mask: Tensor | None = None,
    ) -> Tensor:
        """Return logits for all target tokens, as ``Transformer.forward`` does."""
        if source_key_mask is None:
            source_key_mask = source != self.config.padding_id
        memory = self.encode(source, key_mask=source_key_mask)
        return self.decode(
            target, memory=memory, memory_key_mask=source_key_mask, key_mask=target_key_mask
        )

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse with a message."""
        raise TypeError(
            "model: what for_decoding returned cannot be moved, saved, loaded, trained or copied; "
            "do that with the model it was made from"
        )

    def train(self, mode: bool = True) -> "DecodingTransformer":
        """Stay in evaluation mode, the only one there is."""
        return self._refuse() if mode else super().train(mode=False)

    _apply = state_dict = load_state_dict = save_pretrained = _refuse
    __deepcopy__ = __reduce_ex__ = _refuse


def for_decoding(model: Transformer) -> DecodingTransformer:
    """Return what computes the same as a model in less time, and is for decoding only.

    Its matrices lie as they are read fastest, queries, keys and values come from one product, and
    the layers no longer check what they are given. Results agree up to rounding. On the CPU in
    float32 it keeps the matrices in two orders, one for a single vector and one for several.

    Args:
        model: Any model; it is left as it is, and may be trained on.
    """
    check.for_decoding(model, Transformer)
    return DecodingTransformer(model)
