"""BERT's encoder: its weights.

Explained in chapter 11, "The Transformer" (book/11_transformer.ipynb) and chapter 16, "Pretrained
weights" (book/16_pretrained_weights.ipynb). Generated from these by tools/export.py; edit the
notebooks.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from transformer_lib._checks import published as check_published
from transformer_lib.published.reading import Layout, read_model
from transformer_lib.published.renaming import (
    ACTIVATION_NAMES,
    PROJECTIONS,
    count_layers,
    rename,
    tensor_names,
)
from transformer_lib.transformer import TextEncoder, TransformerConfig

__all__ = ["BERT", "bert_names", "config_from_bert", "encoder_from_bert", "read_bert"]


def config_from_bert(published: Mapping[str, Any]) -> TransformerConfig:
    """Read the ``config.json`` of a BERT model for a ``TextEncoder``.

    A decoder of the same name, positions that are not absolute, pruned heads and an activation that
    is not in this library are refused.
    """
    check_published.config_from_bert(published)
    activation = published["hidden_act"]
    return TransformerConfig(
        source_vocabulary=published["vocab_size"],
        target_vocabulary=published["vocab_size"],
        d_model=published["hidden_size"],
        n_heads=published["num_attention_heads"],
        n_encoder_layers=published["num_hidden_layers"],
        n_decoder_layers=0,
        d_ff=published["intermediate_size"],
        dropout=published.get("hidden_dropout_prob", 0.1),
        attention_dropout=published.get("attention_probs_dropout_prob", 0.1),
        activation=ACTIVATION_NAMES.get(activation, activation),
        norm_eps=published["layer_norm_eps"],
        positions="learned",
        max_length=published["max_position_embeddings"],
        scale_embedding=False,
        embedding_norm=True,
        padding_id=published.get("pad_token_id") or 0,
    )


def bert_names(state: Mapping[str, Tensor], old: str = "") -> dict[str, str]:
    """Return the new names of all tensors of a BERT encoder whose names begin with ``old``."""
    embeddings = f"{old}embeddings."
    names = {
        f"{embeddings}position_embeddings.weight": "source_input.positions.table",
        f"{embeddings}token_type_embeddings.weight": "types",
        f"{embeddings}word_embeddings.weight": "embedding.source.weight",
    }
    names |= tensor_names({"LayerNorm": "source_input.norm"}, embeddings)
    parts = ("self.query", "self.key", "self.value", "output.dense")
    modules = {
        f"attention.{part}": f"self_attention.{name}"
        for part, name in zip(parts, PROJECTIONS, strict=True)
    }
    modules |= {"intermediate.dense": "feed_forward.inner", "output.dense": "feed_forward.outer"}
    modules |= {"attention.output.LayerNorm": "self_attention_norm.norm"}
    modules |= {"output.LayerNorm": "feed_forward_norm.norm"}
    layers = f"{old}encoder.layer.{{}}."
    for n in range(count_layers(state, f"{layers}intermediate.dense.weight")):
        names |= tensor_names(modules, layers.format(n), f"encoder.layers.{n}.")
    return names


def encoder_from_bert(state: Mapping[str, Tensor], old: str = "") -> dict[str, Tensor]:
    """Convert the tensors of a BERT encoder for a ``TextEncoder``; its pooler is left out.

    All tokens are of BERT's first type, whose vector is added to the positions here.

    Args:
        state: The tensors.
        old: Prefix of the encoder's names there, with the dot: "bert." in a model with a head.
    """
    converted = rename(state, bert_names(state, old))
    types, table = converted.pop("types"), converted["source_input.positions.table"]
    check_published.added(f"{old}embeddings", table, types)
    return converted | {"source_input.positions.table": table + types[0]}


def _prefix(state: Mapping[str, Tensor]) -> str:
    """Return what stands before the names: a model with a head has BERT under this name."""
    return "bert." if "bert.embeddings.word_embeddings.weight" in state else ""


BERT = Layout(
    names=lambda state: bert_names(state, _prefix(state)),
    convert=lambda state: encoder_from_bert(state, _prefix(state)),
    unused=r"(bert\.)?(embeddings\.position_ids|pooler\..*)|cls\..*",
)


def read_bert(published: Mapping[str, Any], folder: Path) -> TextEncoder:
    """Read a BERT encoder, of which ``published`` is the ``config.json``."""
    return read_model(TextEncoder, config_from_bert(published), BERT, folder)
