"""Foreign tensors and configurations are refused, with the name of what is missing."""

import pytest
import torch
from torch import nn

from transformer_lib.published.bert import config_from_bert, encoder_from_bert
from transformer_lib.published.marian import config_from_marian, transformer_from_marian
from transformer_lib.published.torch import (
    attention_from_torch,
    layer_from_torch,
    stack_from_torch,
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
        (transformer_from_marian, "model.encoder.layers.0.fc1.weight"),
        (encoder_from_bert, "encoder.layer.0.intermediate.dense.weight"),
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
    with pytest.raises(ValueError, match=r"activation: expected one of .*'quick_gelu'"):
        config_from_bert(BERT | {"hidden_act": "quick_gelu"})
    assert config_from_bert(BERT | {"hidden_act": "gelu_new"}).activation == "gelu_tanh"


@pytest.mark.parametrize(
    ("read", "whole", "name", "value"),
    [
        (config_from_bert, BERT, "is_decoder", True),
        (config_from_bert, BERT, "add_cross_attention", True),
        (config_from_bert, BERT, "pruned_heads", {"0": [1]}),
        (config_from_marian, MARIAN, "normalize_before", True),
        (config_from_marian, MARIAN, "normalize_embedding", True),
        (config_from_marian, MARIAN, "add_final_layer_norm", True),
        (config_from_marian, MARIAN, "static_position_embeddings", False),
    ],
)
def test_settings_that_are_not_followed_are_refused(read, whole, name, value):
    with pytest.raises(ValueError, match=f"^published: expected {name} = .*, got "):
        read(whole | {name: value})
    assert read(whole | {name: None}) == read(whole)
    neutral = {True: False, False: True}.get(value if isinstance(value, bool) else None, {})
    assert read(whole | {name: neutral}) == read(whole)


@pytest.mark.parametrize("given", [None, [1], "text"])
def test_what_is_no_dictionary(given):
    for read in (config_from_bert, config_from_marian):
        with pytest.raises(TypeError, match=r"^published: expected a dictionary, got "):
            read(given)
    for convert in (attention_from_torch, transformer_from_marian, encoder_from_bert):
        with pytest.raises(TypeError):
            convert(given)


def test_tensors_that_cannot_be_cut_and_things_that_are_none():
    state = nn.MultiheadAttention(8, 2).state_dict()
    for wrong in (torch.ones(25, 8), torch.ones(())):
        with pytest.raises(ValueError, match=r"^state: in_proj_weight: expected a first axis in 3"):
            attention_from_torch(state | {"in_proj_weight": wrong})
    with pytest.raises(TypeError, match=r"^state: in_proj_weight: expected a tensor, got list"):
        attention_from_torch(state | {"in_proj_weight": [1.0]})


def test_matrices_that_are_not_tied_as_the_configuration_says():
    state = {}
    for stack in ("encoder", "decoder"):
        state[f"model.{stack}.embed_tokens.weight"] = torch.ones(4, 2)
        for theirs in ("self_attn", "encoder_attn")[: 1 + (stack == "decoder")]:
            for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                state[f"model.{stack}.layers.0.{theirs}.{name}.weight"] = torch.ones(2, 2)
                state[f"model.{stack}.layers.0.{theirs}.{name}.bias"] = torch.ones(2)
            for part in ("weight", "bias"):
                state[f"model.{stack}.layers.0.{theirs}_layer_norm.{part}"] = torch.ones(2)
        for name in ("fc1", "fc2", "final_layer_norm"):
            for part in ("weight", "bias"):
                state[f"model.{stack}.layers.0.{name}.{part}"] = torch.ones(2)
    state["final_logits_bias"] = torch.zeros(1, 4)
    assert "embedding.target.weight" not in transformer_from_marian(state)
    state["lm_head.weight"] = torch.full((4, 2), 3.0)
    assert "generator.weight" in transformer_from_marian(state)
    message = (
        r"^state: expected lm_head.weight to be model.encoder.embed_tokens.weight, as the conf"
    )
    with pytest.raises(ValueError, match=message):
        transformer_from_marian(state, "all")
    with pytest.raises(ValueError, match=r"^state: expected lm_head.weight to be model.decoder"):
        transformer_from_marian(state, "output")
    assert "generator.weight" in transformer_from_marian(state, "none")
