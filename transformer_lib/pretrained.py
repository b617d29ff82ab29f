"""Weights of other libraries, renamed and reshaped for the models of this one.

Explained in chapter 11, "The Transformer" (book/11_transformer.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from transformer_lib.transformer import TransformerConfig

__all__ = [
    "attention_from_torch",
    "config_from_bert",
    "config_from_marian",
    "encoder_from_bert",
    "layer_from_torch",
    "stack_from_torch",
    "transformer_from_marian",
    "transformer_from_torch",
]

_State = dict[str, Tensor]
_PROJECTIONS = ("query_projection", "key_projection", "value_projection", "output_projection")


def _entry(mapping: Mapping[str, Any], name: str, argument: str = "state") -> Any:
    if name not in mapping:
        raise ValueError(f"{argument}: expected an entry {name!r}, got {len(mapping)} others")
    return mapping[name]


def _linear(state: Mapping[str, Tensor], old: str, new: str) -> _State:
    return {f"{new}.{part}": _entry(state, f"{old}.{part}") for part in ("weight", "bias")}


def _norm(state: Mapping[str, Tensor], old: str, new: str) -> _State:
    return {
        f"{new}.gain": _entry(state, f"{old}.weight"),
        f"{new}.bias": _entry(state, f"{old}.bias"),
    }


def _count_layers(state: Mapping[str, Tensor], name: str) -> int:
    """Count the numbers n = 0, 1, … with which ``name`` is in ``state``."""
    number = 0
    while name.format(number) in state:
        number += 1
    if number == 0:
        _entry(state, name.format(0))
    return number


def attention_from_torch(state: Mapping[str, Tensor], old: str = "", new: str = "") -> _State:
    """Convert ``nn.MultiheadAttention``, which keeps the three input projections in one matrix.

    Args:
        state: A state dict that holds the attention.
        old: Prefix of its names there, with the dot.
        new: Prefix of the names returned, with the dot.

    Raises:
        ValueError: The tensors are not there, or the attention adds learned keys (``bias_k``).
    """
    if f"{old}bias_k" in state:
        raise ValueError(f"state: {old}bias_k: an added key has no place here")
    converted: _State = {}
    for part in ("weight", "bias"):
        if part == "bias" and f"{old}in_proj_bias" not in state:
            continue  # made with bias=False
        inputs = _entry(state, f"{old}in_proj_{part}").chunk(3)
        for name, tensor in zip(_PROJECTIONS[:3], inputs, strict=True):
            converted[f"{new}{name}.{part}"] = tensor
        converted[f"{new}output_projection.{part}"] = _entry(state, f"{old}out_proj.{part}")
    return converted


def layer_from_torch(state: Mapping[str, Tensor], old: str = "", new: str = "") -> _State:
    """Convert ``nn.TransformerEncoderLayer`` or ``nn.TransformerDecoderLayer``.

    Args:
        state: A state dict that holds the layer.
        old: Prefix of its names there, with the dot.
        new: Prefix of the names returned, with the dot.

    Raises:
        ValueError: The tensors are not there.
    """
    decoder = f"{old}norm3.weight" in state
    sublayers = ["self_attention", *(["cross_attention"] if decoder else []), "feed_forward"]
    converted = attention_from_torch(state, f"{old}self_attn.", f"{new}self_attention.")
    if decoder:
        converted |= attention_from_torch(state, f"{old}multihead_attn.", f"{new}cross_attention.")
    converted |= _linear(state, f"{old}linear1", f"{new}feed_forward.inner")
    converted |= _linear(state, f"{old}linear2", f"{new}feed_forward.outer")
    for number, sublayer in enumerate(sublayers, start=1):
        converted |= _norm(state, f"{old}norm{number}", f"{new}{sublayer}_norm.norm")
    return converted


def stack_from_torch(state: Mapping[str, Tensor], old: str = "", new: str = "") -> _State:
    """Convert ``nn.TransformerEncoder`` or ``nn.TransformerDecoder``; arguments as above."""
    converted: _State = {}
    for layer in range(_count_layers(state, f"{old}layers.{{}}.norm1.weight")):
        converted |= layer_from_torch(state, f"{old}layers.{layer}.", f"{new}layers.{layer}.")
    if f"{old}norm.weight" in state:
        converted |= _norm(state, f"{old}norm", f"{new}final_norm")
    return converted


def transformer_from_torch(state: Mapping[str, Tensor]) -> _State:
    """Convert ``nn.Transformer``: the encoder and the decoder, which are all it has."""
    return stack_from_torch(state, "encoder.", "encoder.") | stack_from_torch(
        state, "decoder.", "decoder."
    )


def config_from_marian(published: Mapping[str, Any]) -> TransformerConfig:
    """Read the ``config.json`` of a Marian translation model.

    Raises:
        ValueError: An entry is missing, the encoder and decoder differ in width, or the activation
            is not one of this library.
    """
    for part in ("attention_heads", "ffn_dim"):
        encoder, decoder = (
            _entry(published, f"{stack}_{part}", "published") for stack in ("encoder", "decoder")
        )
        if encoder != decoder:
            raise ValueError(
                f"published: expected one {part} for both stacks, got {encoder} and {decoder}"
            )
    activation = _entry(published, "activation_function", "published")
    tied: Any = "all" if published.get("share_encoder_decoder_embeddings", True) else "output"
    vocabulary = _entry(published, "vocab_size", "published")
    return TransformerConfig(
        source_vocabulary=vocabulary,
        target_vocabulary=published.get("decoder_vocab_size") or vocabulary,
        d_model=_entry(published, "d_model", "published"),
        n_heads=published["encoder_attention_heads"],
        n_encoder_layers=_entry(published, "encoder_layers", "published"),
        n_decoder_layers=_entry(published, "decoder_layers", "published"),
        d_ff=published["encoder_ffn_dim"],
        dropout=published.get("dropout", 0.1),
        attention_dropout=published.get("attention_dropout", 0.0),
        feed_forward_dropout=published.get("activation_dropout", 0.0),
        activation="swish" if activation == "silu" else activation,
        position_layout="halves",
        max_length=_entry(published, "max_position_embeddings", "published"),
        scale_embedding=published.get("scale_embedding", False),
        tied=tied if published.get("tie_word_embeddings", True) else "none",
        output_bias=True,
        padding_id=_entry(published, "pad_token_id", "published"),
    )


def transformer_from_marian(state: Mapping[str, Tensor]) -> _State:
    """Convert the tensors of a Marian model; its sinusoids are computed here, not loaded.

    Raises:
        ValueError: A tensor is not there.
    """
    converted: _State = {"generator.bias": _entry(state, "final_logits_bias").flatten()}
    # A published file may hold a tied matrix once or under each of its names.
    shared = "model.shared.weight"
    source, target = (
        _entry(state, own if (own := f"model.{stack}.embed_tokens.weight") in state else shared)
        for stack in ("encoder", "decoder")
    )
    output = state.get("lm_head.weight", target)
    converted["embedding.source.weight"] = source
    if not torch.equal(source, target) or not torch.equal(target, output):
        converted["embedding.target.weight"] = target
    if not torch.equal(target, output):
        converted["generator._weight"] = output
    for stack in ("encoder", "decoder"):
        for layer in range(_count_layers(state, f"model.{stack}.layers.{{}}.fc1.weight")):
            old, new = f"model.{stack}.layers.{layer}.", f"{stack}.layers.{layer}."
            attentions = {"self_attn": "self_attention"}
            if stack == "decoder":
                attentions["encoder_attn"] = "cross_attention"
            for theirs, ours in attentions.items():
                for letter, name in zip(("q", "k", "v", "out"), _PROJECTIONS, strict=True):
                    converted |= _linear(
                        state, f"{old}{theirs}.{letter}_proj", f"{new}{ours}.{name}"
                    )
                converted |= _norm(state, f"{old}{theirs}_layer_norm", f"{new}{ours}_norm.norm")
            converted |= _linear(state, f"{old}fc1", f"{new}feed_forward.inner")
            converted |= _linear(state, f"{old}fc2", f"{new}feed_forward.outer")
            converted |= _norm(state, f"{old}final_layer_norm", f"{new}feed_forward_norm.norm")
    return converted


def config_from_bert(published: Mapping[str, Any]) -> TransformerConfig:
    """Read the ``config.json`` of a BERT model for a ``TextEncoder``.

    Raises:
        ValueError: An entry is missing, positions are not absolute, or the activation is not one
            of this library.
    """
    if (kind := published.get("position_embedding_type", "absolute")) != "absolute":
        raise ValueError(f"published: expected absolute positions, got {kind!r}")
    vocabulary = _entry(published, "vocab_size", "published")
    return TransformerConfig(
        source_vocabulary=vocabulary,
        target_vocabulary=vocabulary,
        d_model=_entry(published, "hidden_size", "published"),
        n_heads=_entry(published, "num_attention_heads", "published"),
        n_encoder_layers=_entry(published, "num_hidden_layers", "published"),
        n_decoder_layers=0,
        d_ff=_entry(published, "intermediate_size", "published"),
        dropout=published.get("hidden_dropout_prob", 0.1),
        attention_dropout=published.get("attention_probs_dropout_prob", 0.1),
        activation=_entry(published, "hidden_act", "published"),
        norm_eps=_entry(published, "layer_norm_eps", "published"),
        positions="learned",
        max_length=_entry(published, "max_position_embeddings", "published"),
        scale_embedding=False,
        embedding_norm=True,
        padding_id=published.get("pad_token_id") or 0,
    )


def encoder_from_bert(state: Mapping[str, Tensor], old: str = "") -> _State:
    """Convert the tensors of a BERT encoder for a ``TextEncoder``; its pooler is left out.

    All tokens are of BERT's first type, whose vector is added to the positions here.

    Args:
        state: The tensors.
        old: Prefix of the encoder's names there, with the dot: "bert." in a model with a head.

    Raises:
        ValueError: A tensor is not there.
    """
    positions = _entry(state, f"{old}embeddings.position_embeddings.weight")
    first_type = _entry(state, f"{old}embeddings.token_type_embeddings.weight")[0]
    converted: _State = {
        "embedding.source.weight": _entry(state, f"{old}embeddings.word_embeddings.weight"),
        "source_input.positions.table": positions + first_type,
    }
    converted |= _norm(state, f"{old}embeddings.LayerNorm", "source_input.norm")
    layers = f"{old}encoder.layer.{{}}."
    for layer in range(_count_layers(state, layers + "intermediate.dense.weight")):
        before, new = layers.format(layer), f"encoder.layers.{layer}."
        for theirs, ours in (
            ("attention.self.query", "self_attention.query_projection"),
            ("attention.self.key", "self_attention.key_projection"),
            ("attention.self.value", "self_attention.value_projection"),
            ("attention.output.dense", "self_attention.output_projection"),
            ("intermediate.dense", "feed_forward.inner"),
            ("output.dense", "feed_forward.outer"),
        ):
            converted |= _linear(state, before + theirs, new + ours)
        converted |= _norm(
            state, f"{before}attention.output.LayerNorm", f"{new}self_attention_norm.norm"
        )
        converted |= _norm(state, f"{before}output.LayerNorm", f"{new}feed_forward_norm.norm")
    return converted
