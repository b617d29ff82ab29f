"""Foreign tensors and configurations are refused, with the name of what is missing."""

import pytest
import torch
from torch import nn

from transformer_lib.pretrained import (
    attention_from_torch,
    config_from_bert,
    config_from_marian,
    encoder_from_bert,
    layer_from_torch,
    stack_from_torch,
    transformer_from_marian,
    transformer_from_torch,
)

FOREIGN = {"transformer.h.0.attn.c_attn.weight": torch.ones(2, 6), "lm_head.weight": torch.ones(2)}


@pytest.mark.parametrize(
    ("convert", "name"),
    [
        (attention_from_torch, "in_proj_weight"),
        (layer_from_torch, "self_attn.in_proj_weight"),
        (stack_from_torch, "layers.0.norm1.weight"),
        (transformer_from_torch, "encoder.layers.0.norm1.weight"),
        (transformer_from_marian, "final_logits_bias"),
        (encoder_from_bert, "embeddings.position_embeddings.weight"),
    ],
)
def test_tensors_of_another_model(convert, name):
    with pytest.raises(ValueError, match=f"^state: expected an entry '{name}', got 2 others$"):
        convert(FOREIGN)


@pytest.mark.parametrize("lost", ["linear1.bias", "norm2.weight", "self_attn.out_proj.bias"])
def test_a_tensor_that_is_missing_is_named(lost):
    state = nn.TransformerEncoderLayer(8, 2, 16).state_dict()
    del state[lost]
    with pytest.raises(ValueError, match=f"^state: expected an entry '{lost}', got 11 others$"):
        layer_from_torch(state)


def test_attentions_that_have_no_counterpart():
    other = nn.MultiheadAttention(8, 2, kdim=4, vdim=4).state_dict()
    with pytest.raises(ValueError, match="expected an entry 'in_proj_weight'"):
        attention_from_torch(other)
    added = nn.MultiheadAttention(8, 2, add_bias_kv=True).state_dict()
    with pytest.raises(ValueError, match=r"^state: bias_k: an added key has no place here"):
        attention_from_torch(added)


MARIAN = {
    "vocab_size": 40,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "activation_function": "swish",
    "max_position_embeddings": 64,
    "pad_token_id": 39,
}
BERT = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
}


@pytest.mark.parametrize(
    ("read", "whole"), [(config_from_marian, MARIAN), (config_from_bert, BERT)]
)
def test_every_entry_that_is_needed_is_named_when_missing(read, whole):
    read(whole)
    for name in whole:
        rest = {key: value for key, value in whole.items() if key != name}
        with pytest.raises(ValueError, match=f"^published: expected an entry '{name}', got"):
            read(rest)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decoder_attention_heads": 2}, "one attention_heads for both stacks, got 4 and 2"),
        ({"decoder_ffn_dim": 64}, "one ffn_dim for both stacks, got 32 and 64"),
        ({"activation_function": "tanh"}, "activation: expected one of .*'tanh'"),
        ({"d_model": 18}, "n_heads: expected a divisor of d_model = 18, got 4"),
        ({"decoder_vocab_size": 45}, "tied: 'all' needs one vocabulary"),
        ({"d_model": 15, "encoder_attention_heads": 5, "decoder_attention_heads": 5}, None),
    ],
)
def test_marian_models_that_cannot_be_built(change, message):
    if message is None:
        from transformer_lib.transformer import Transformer

        with pytest.raises(ValueError, match=r"layout: .*'halves' with d_model = 15"):
            Transformer(config_from_marian(MARIAN | change))
        return
    with pytest.raises(ValueError, match=message):
        config_from_marian(MARIAN | change)


def test_bert_models_that_cannot_be_built():
    with pytest.raises(ValueError, match=r"^published: expected absolute positions, got 'relative"):
        config_from_bert(BERT | {"position_embedding_type": "relative_key"})
    with pytest.raises(ValueError, match=r"activation: expected one of .*'gelu_new'"):
        config_from_bert(BERT | {"hidden_act": "gelu_new"})
