"""Guards of chapters 8 to 11: feed-forward, add & norm, embeddings, layers, the Transformer."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from transformer_lib._checks.attention import heads
from transformer_lib._checks.common import (
    DTYPES,
    kind,
    require_at_least,
    require_axes,
    require_fields,
    require_floating,
    require_mask,
    require_probability,
    require_same_size,
)

_IDS = (torch.int64, torch.int32)


def vectors(x: Any, d_model: int) -> None:
    """Stand before modules that treat every vector of shape (…, d_model) by itself."""
    if not isinstance(x, Tensor) or x.dtype not in DTYPES or x.layout != torch.strided:
        require_floating(x=x)
    if x.shape[-1:] != (d_model,):
        require_axes("d_model", x=x)
        raise ValueError(f"x: expected d_model = {d_model}, got shape {tuple(x.shape)}")


def layer_norm(x: Any) -> None:
    require_floating(x=x)
    require_axes("d_model", x=x)


def feed_forward(activation: str, activations: Sequence[str], dropout: float) -> None:
    if activation not in activations:
        raise ValueError(
            f"activation: expected one of {', '.join(activations)}, got {activation!r}"
        )
    require_probability(dropout=dropout)


def dropout(dropout: float) -> None:
    require_probability(dropout=dropout)


def add_norm(x: Tensor, change: Tensor) -> None:
    """Stand after a sublayer: what it returns would fail to add, or be broadcast unnoticed."""
    if change.shape != x.shape:
        raise ValueError(
            f"sublayer: expected a result of shape {tuple(x.shape)}, to be added to x, "
            f"got {tuple(change.shape)}"
        )


def sizes(**sizes: int) -> None:
    require_at_least(1, **sizes)


def token_embedding(tokens: Any, vocabulary_size: int) -> None:
    if not isinstance(tokens, Tensor) or tokens.dtype not in _IDS:
        raise TypeError(f"tokens: expected a tensor of ids in int64 or int32, got {kind(tokens)}")
    if torch.compiler.is_compiling() or not tokens.is_cpu or not tokens.numel():
        return  # a GPU would have to be waited for; its kernel refuses such ids itself
    low, high = tokens.aminmax()
    if low.item() < 0 or high.item() >= vocabulary_size:
        raise ValueError(
            f"tokens: expected ids from 0 to {vocabulary_size - 1}, "
            f"got ids from {int(low)} to {int(high)}"
        )


def generator(tied: Tensor | None, vocabulary_size: int, d_model: int) -> None:
    require_at_least(1, vocabulary_size=vocabulary_size, d_model=d_model)
    if tied is not None and tied.shape != (vocabulary_size, d_model):
        raise ValueError(
            f"tied: expected weights of shape {(vocabulary_size, d_model)}, got {tuple(tied.shape)}"
        )


def decoder_layer(x: Any, memory: Any, d_model: int) -> None:
    """Stand before a layer; masks and the width of ``x`` are left to the attentions in it."""
    if not isinstance(x, Tensor) or not isinstance(memory, Tensor) or memory.dtype != x.dtype:
        require_floating(x=x, memory=memory)
    if memory.dim() != 3 or memory.shape[2] != d_model:
        expected, came = f"(batch, source, d_model = {d_model})", tuple(memory.shape)
        raise ValueError(f"memory: expected the encoder's output of shape {expected}, got {came}")
    if memory.shape[0] != x.shape[0]:
        raise ValueError(f"memory: expected batch = {x.shape[0]} as in x, got {memory.shape[0]}")


def decoder(n_layers: int, cache: Any) -> None:
    if cache is not None and len(cache) != n_layers:
        raise ValueError(f"cache: expected one for each of {n_layers} layers, got {len(cache)}")


def sentences(name: str, tokens: Any, mask_name: str = "", key_mask: Any = None) -> None:
    """Raise unless ``tokens`` has a batch and a length, and ``key_mask`` the same."""
    if not isinstance(tokens, Tensor) or tokens.dim() != 2:
        came = tuple(tokens.shape) if isinstance(tokens, Tensor) else type(tokens).__name__
        raise ValueError(f"{name}: expected token ids of shape (batch, length), got {came}")
    if key_mask is not None:
        require_mask(key_mask, mask_name)
        if key_mask.shape != tokens.shape:
            raise ValueError(
                f"{mask_name}: expected shape {tuple(tokens.shape)} as {name}, "
                f"got {tuple(key_mask.shape)}"
            )


def transformer(source: Any, target: Any, source_key_mask: Any, target_key_mask: Any) -> None:
    sentences("source", source, "source_key_mask", source_key_mask)
    sentences("target", target, "target_key_mask", target_key_mask)
    require_same_size("batch", source=(source, 0), target=(target, 0))


def transformer_config(config: Any) -> None:
    require_fields(config)
    given = vars(config)
    sizes = ("source_vocabulary", "target_vocabulary", "d_model", "n_heads", "d_ff", "max_length")
    require_at_least(1, **{name: given[name] for name in sizes})
    require_at_least(0, **{name: given[name] for name in ("n_encoder_layers", "n_decoder_layers")})
    shares = ("dropout", "attention_dropout", "feed_forward_dropout")
    require_probability(**{name: given[name] for name in shares})
    if not config.norm_eps > 0:
        raise ValueError(f"norm_eps: expected a number above 0, got {config.norm_eps}")
    heads(config.d_model, config.n_heads)
    source, target = config.source_vocabulary, config.target_vocabulary
    if config.tied == "all" and source != target:
        raise ValueError(
            "tied: 'all' needs one vocabulary for both languages, got source_vocabulary = "
            f"{source} and target_vocabulary = {target}"
        )
    if not 0 <= config.padding_id < min(source, target):
        raise ValueError(
            f"padding_id: expected an id of both vocabularies, got {config.padding_id}"
        )


def known_fields(given: Any, config_class: Any) -> None:
    if not isinstance(given, dict):
        raise ValueError(f"config: expected a JSON object, got {type(given).__name__}")
    names = {field.name for field in fields(config_class)}
    if unknown := sorted(str(name)[:40] for name in given if name not in names):
        raise ValueError(f"config: unknown fields {', '.join(unknown[:10])}")
