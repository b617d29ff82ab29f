"""Weights of other libraries give the numbers of other libraries, forward and backward."""

import json
import os
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from transformer_lib.course.exercises import capstone5_llama
from transformer_lib.files import require_state
from transformer_lib.layers import Decoder, DecoderLayer, Encoder, EncoderLayer
from transformer_lib.multi_head_attention import MultiHeadAttention
from transformer_lib.published.bert import config_from_bert, encoder_from_bert
from transformer_lib.published.marian import config_from_marian, transformer_from_marian
from transformer_lib.published.torch import (
    attention_from_torch,
    layer_from_torch,
    stack_from_torch,
    transformer_from_torch,
)
from transformer_lib.transformer import TextEncoder, Transformer

os.environ["HF_HUB_OFFLINE"] = "1"

# PyTorch says that pre-norm has no fast path in evaluation, which is not used here.
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")

DTYPES = (torch.float32, torch.float64)
ATTENTION_KINDS = {"self_attn": "self_attention", "multihead_attn": "cross_attention"}


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    return {"atol": 1e-5 if dtype == torch.float32 else 1e-12, "rtol": 1e-5}


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def shaken(module: nn.Module, dtype: torch.dtype, seed: int = 0) -> nn.Module:
    """Move all weights, also the biases and gains that start at 0 and 1."""
    torch.manual_seed(seed)
    module = module.to(dtype)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.requires_grad:  # sinusoids stay
                parameter.add_(0.2 * torch.randn_like(parameter))
    return module


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.grad for name, parameter in module.named_parameters()}


def same_gradients(
    ours: nn.Module, theirs: nn.Module, convert: Callable[..., dict[str, Tensor]]
) -> None:
    """Convert the other library's gradients as its weights, and compare."""
    expected = convert(gradients(theirs))
    came = gradients(ours)
    assert came.keys() == expected.keys()
    for name, gradient in came.items():
        scale = max(1.0, expected[name].abs().max().item())
        torch.testing.assert_close(
            gradient / scale, expected[name] / scale, **tolerance(gradient.dtype), msg=name
        )


def padding(lengths: list[int], keys: int) -> Tensor:
    return torch.arange(keys) < torch.tensor(lengths)[:, None]


def later(n: int) -> Tensor:
    """PyTorch's causal mask: True hides."""
    return torch.ones(n, n, dtype=torch.bool).triu(1)


# PyTorch


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", [True, False])
def test_multihead_attention(dtype, bias):
    theirs = shaken(nn.MultiheadAttention(16, 4, bias=bias, batch_first=True), dtype)
    ours = MultiHeadAttention(16, 4, bias=bias).to(dtype)
    state = attention_from_torch(theirs.state_dict())
    require_state(ours, state)
    ours.load_state_dict(state)
    query, key, value = (random(3, n, 16, seed=n, dtype=dtype) for n in (5, 7, 7))
    value = value.flip(0)
    seen, key_mask = random(5, 7, seed=1) > -0.5, padding([7, 4, 2], 7)
    seen[:, 0] = True
    expected, their_weights = theirs(
        query,
        key,
        value,
        attn_mask=~seen,
        key_padding_mask=~key_mask,
        average_attn_weights=False,
    )
    came, weights = ours(query, key, value, mask=seen, key_mask=key_mask, return_weights=True)
    torch.testing.assert_close(came, expected, **tolerance(dtype))
    torch.testing.assert_close(weights, their_weights, **tolerance(dtype))
    up = random(3, 5, 16, seed=2, dtype=dtype)
    came.backward(up)
    expected.backward(up)
    same_gradients(ours, theirs, attention_from_torch)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer(dtype, norm_first, activation):
    options = {"dropout": 0.0, "activation": activation, "norm_first": norm_first}
    theirs = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, layer_norm_eps=1e-3, **options)
    shaken(theirs, dtype)
    ours = EncoderLayer(16, 4, 32, norm_eps=1e-3, **options).to(dtype)
    state = layer_from_torch(theirs.state_dict())
    require_state(ours, state)
    ours.load_state_dict(state)
    x, key_mask = random(3, 5, 16, dtype=dtype), padding([5, 3, 1], 5)
    seen = random(5, 5, seed=1) > -0.5
    seen[:, 0] = True
    expected = theirs(x, src_mask=~seen, src_key_padding_mask=~key_mask)
    came = ours(x, mask=seen, key_mask=key_mask)
    torch.testing.assert_close(came, expected, **tolerance(dtype))
    up = random(3, 5, 16, seed=2, dtype=dtype)
    came.backward(up)
    expected.backward(up)
    same_gradients(ours, theirs, layer_from_torch)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("norm_first", [False, True])
def test_decoder_layer(dtype, norm_first):
    options = {"dropout": 0.0, "norm_first": norm_first}
    theirs = shaken(nn.TransformerDecoderLayer(16, 4, 32, batch_first=True, **options), dtype)
    ours = DecoderLayer(16, 4, 32, **options).to(dtype)
    state = layer_from_torch(theirs.state_dict())
    require_state(ours, state)
    ours.load_state_dict(state)
    x, memory = random(3, 5, 16, dtype=dtype), random(3, 7, 16, seed=1, dtype=dtype)
    memories = [memory.clone().requires_grad_() for _ in range(2)]
    key_mask, memory_key_mask = padding([5, 3, 4], 5), padding([7, 2, 4], 7)
    memory_mask = random(5, 7, seed=2) > -0.5
    memory_mask[:, 0] = True
    expected = theirs(
        x,
        memories[0],
        tgt_mask=later(5),
        tgt_key_padding_mask=~key_mask,
        memory_mask=~memory_mask,
        memory_key_padding_mask=~memory_key_mask,
    )
    came = ours(
        x,
        memories[1],
        key_mask=key_mask,
        memory_mask=memory_mask,
        memory_key_mask=memory_key_mask,
    )
    torch.testing.assert_close(came, expected, **tolerance(dtype))
    up = random(3, 5, 16, seed=3, dtype=dtype)
    came.backward(up)
    expected.backward(up)
    torch.testing.assert_close(memories[1].grad, memories[0].grad, **tolerance(dtype))
    same_gradients(ours, theirs, layer_from_torch)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("norm_first", [False, True])
def test_whole_transformer(dtype, norm_first):
    options = {"dropout": 0.0, "norm_first": norm_first}
    theirs = shaken(nn.Transformer(16, 4, 3, 2, 32, batch_first=True, **options), dtype)
    options["final_norm"] = True  # PyTorch has one in either style
    ours = nn.ModuleDict(
        {"encoder": Encoder(3, 16, 4, 32, **options), "decoder": Decoder(2, 16, 4, 32, **options)}
    ).to(dtype)
    state = transformer_from_torch(theirs.state_dict())
    require_state(ours, state)
    ours.load_state_dict(state)
    source, target = random(3, 7, 16, dtype=dtype), random(3, 5, 16, seed=1, dtype=dtype)
    inputs = [[tensor.clone().requires_grad_() for tensor in (source, target)] for _ in range(2)]
    key_mask, target_mask = padding([7, 4, 2], 7), padding([3, 5, 1], 5)
    expected = theirs(
        *inputs[0],
        tgt_mask=later(5),
        src_key_padding_mask=~key_mask,
        tgt_key_padding_mask=~target_mask,
        memory_key_padding_mask=~key_mask,
    )
    memory = ours["encoder"](inputs[1][0], key_mask=key_mask)
    came = ours["decoder"](
        inputs[1][1],
        memory,
        key_mask=target_mask,
        memory_key_mask=key_mask,
    )
    torch.testing.assert_close(came, expected, **tolerance(dtype))
    up = random(3, 5, 16, seed=2, dtype=dtype)
    came.backward(up)
    expected.backward(up)
    for mine, other in zip(inputs[1], inputs[0], strict=True):
        torch.testing.assert_close(mine.grad, other.grad, **tolerance(dtype))
    same_gradients(ours, theirs, transformer_from_torch)


def test_stacks_without_a_final_norm_and_with_prefixes():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    theirs = nn.Sequential(shaken(nn.TransformerEncoder(layer, 2), torch.float32))
    state = stack_from_torch(theirs.state_dict(), old="0.", new="")
    ours = Encoder(2, 8, 2, 16)
    require_state(ours, state)
    assert not any("final_norm" in name for name in state)
    prefixed = stack_from_torch(theirs.state_dict(), old="0.", new="encoder.")
    assert prefixed.keys() == {f"encoder.{name}" for name in state}


# Hugging Face: models from small random configurations, without a network


@pytest.fixture(scope="module")
def hugging_face():
    """Import transformers once, quietly."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformers

        transformers.utils.logging.disable_progress_bar()
        transformers.utils.logging.set_verbosity_error()
        assert transformers.MarianMTModel
        assert transformers.BertModel
    return transformers


def published(model: nn.Module, folder) -> tuple[dict, dict[str, Tensor]]:
    """Save a model as Hugging Face publishes one; return its configuration and its tensors."""
    model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return config, load_file(folder / "model.safetensors")


def published_gradients(model: nn.Module, folder) -> dict[str, Tensor]:
    """Return the gradients under the published names: saved as if they were the weights."""
    with torch.no_grad():
        for parameter in model.parameters():
            empty = torch.zeros_like(parameter)
            parameter.copy_(empty if parameter.grad is None else parameter.grad)
    return published(model, folder)[1]


def marian(hugging_face, dtype: torch.dtype, **options) -> nn.Module:
    torch.manual_seed(0)
    config = hugging_face.MarianConfig(
        **{
            "vocab_size": 40,
            "d_model": 16,
            "encoder_layers": 3,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 32,
            "decoder_ffn_dim": 32,
            "activation_function": "swish",
            "scale_embedding": True,
            "max_position_embeddings": 64,
            "pad_token_id": 39,
            "eos_token_id": 0,
            "decoder_start_token_id": 39,
        }
        | options
    )
    model = shaken(hugging_face.MarianMTModel(config).eval(), dtype)
    model.final_logits_bias.copy_(random(1, model.final_logits_bias.shape[1], seed=1))
    return model


def marian_case(model: nn.Module, config: dict) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    source = torch.randint(1, 39, (3, 7))
    source[1, 4:] = source[2, 1:] = config["pad_token_id"]
    target = torch.randint(1, 39, (3, 5))
    logits = model(
        input_ids=source,
        attention_mask=(source != config["pad_token_id"]).long(),
        decoder_input_ids=target,
        use_cache=False,
    ).logits
    return source, target, logits


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"activation_function": "relu", "scale_embedding": False},
        {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 45},
        {"activation_function": "gelu_new"},
    ],
    ids=["as published", "relu, not scaled", "two vocabularies", "GELU by tanh"],
)
def test_marian(hugging_face, dtype, options, tmp_path):
    theirs = marian(hugging_face, dtype, **options)
    config, state = published(theirs, tmp_path)
    ours = Transformer(config_from_marian(config)).eval().to(dtype)
    # Our sinusoids are made in float32, as theirs are stored: no difference to allow for.
    converted = transformer_from_marian(state)
    require_state(ours, converted)
    told = transformer_from_marian(state, tied=ours.config.tied)
    assert told.keys() == converted.keys()
    assert all(
        told[name] is tensor
        for name, tensor in converted.items()
        if name in told and tensor.dim() > 1
    )
    ours.load_state_dict(converted)
    source, target, expected = marian_case(theirs, config)
    came = ours(source, target)
    torch.testing.assert_close(came, expected, **MARIAN_TOLERANCE[dtype])
    up = random(*came.shape, dtype=dtype)
    came.backward(up)
    expected.backward(up)
    expected_gradients = transformer_from_marian(published_gradients(theirs, tmp_path))
    for name, gradient in gradients(ours).items():
        if name == "generator.bias":
            continue  # no parameter there
        scale = max(1.0, expected_gradients[name].abs().max().item())
        torch.testing.assert_close(
            gradient / scale, expected_gradients[name] / scale, **MARIAN_TOLERANCE[dtype], msg=name
        )


# Marian keeps its sinusoids in float32, so in float64 the two tables differ by a rounding.
MARIAN_TOLERANCE = {
    torch.float32: {"atol": 1e-5, "rtol": 1e-5},
    torch.float64: {"atol": 1e-6, "rtol": 1e-6},
}


def test_marian_without_a_tied_output(hugging_face, tmp_path):
    theirs = marian(hugging_face, torch.float32, tie_word_embeddings=False)
    config, state = published(theirs, tmp_path)
    ours = Transformer(config_from_marian(config)).eval()
    ours.load_state_dict(transformer_from_marian(state))
    source, target, expected = marian_case(theirs, config)
    torch.testing.assert_close(ours(source, target), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_marian_with_its_tied_matrix_under_every_name(hugging_face, tmp_path):
    config, state = published(marian(hugging_face, torch.float32), tmp_path)
    assert "lm_head.weight" not in state
    names = ("model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head")
    copies = {f"{name}.weight": state["model.shared.weight"].clone() for name in names}
    expected = transformer_from_marian(state)
    assert transformer_from_marian(state | copies).keys() == expected.keys()
    require_state(Transformer(config_from_marian(config)), expected)


def test_marian_needs_its_own_order_of_columns(hugging_face, tmp_path):
    theirs = marian(hugging_face, torch.float32)
    config, state = published(theirs, tmp_path)
    ours = replace(config_from_marian(config), position_layout="interleaved")
    model = Transformer(ours).eval()
    model.load_state_dict(transformer_from_marian(state))
    source, target, expected = marian_case(theirs, config)
    assert (model(source, target) - expected).abs().max() > 0.1


def bert(hugging_face, dtype: torch.dtype, kind: str = "BertModel", **options) -> nn.Module:
    torch.manual_seed(0)
    config = hugging_face.BertConfig(
        **{
            "vocab_size": 40,
            "hidden_size": 16,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 32,
            "max_position_embeddings": 32,
            "type_vocab_size": 2,
        }
        | options
    )
    return shaken(getattr(hugging_face, kind)(config).eval(), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_bert(hugging_face, dtype, activation, tmp_path):
    theirs = bert(hugging_face, dtype, hidden_act=activation)
    config, state = published(theirs, tmp_path)
    ours = TextEncoder(config_from_bert(config)).eval().to(dtype)
    converted = encoder_from_bert(state)
    require_state(ours, converted)
    ours.load_state_dict(converted)
    source = torch.randint(1, 40, (3, 7))
    source[1, 4:] = source[2, 1:] = 0
    seen = source != 0
    expected = theirs(input_ids=source, attention_mask=seen.long()).last_hidden_state
    came = ours(source)
    torch.testing.assert_close(came[seen], expected[seen], **tolerance(dtype))
    up = random(*came.shape, dtype=dtype) * seen[..., None]
    came.backward(up)
    expected.backward(up)
    with torch.no_grad():  # our table is a sum, and each summand has the gradient of the whole
        theirs.embeddings.token_type_embeddings.weight.grad.zero_()
    expected_gradients = encoder_from_bert(published_gradients(theirs, tmp_path))
    came_gradients = gradients(ours)
    assert came_gradients.keys() == expected_gradients.keys()
    for name, gradient in came_gradients.items():
        # HF's embedding of the padding token gets no gradient.
        rows = slice(1, None) if name == "embedding.source.weight" else slice(None)
        torch.testing.assert_close(
            gradient[rows], expected_gradients[name][rows], **tolerance(dtype), msg=name
        )


def test_bert_inside_a_model_with_a_head(hugging_face, tmp_path):
    theirs = bert(hugging_face, torch.float32, "BertForMaskedLM")
    config, state = published(theirs, tmp_path)
    ours = TextEncoder(config_from_bert(config)).eval()
    ours.load_state_dict(encoder_from_bert(state, old="bert."))
    source = torch.randint(1, 40, (2, 6))
    expected = theirs.bert(input_ids=source).last_hidden_state
    torch.testing.assert_close(ours(source), expected, atol=1e-5, rtol=1e-5)


def test_configurations_are_read_field_by_field(hugging_face):
    published = {
        "vocab_size": 40,
        "decoder_vocab_size": 40,
        "d_model": 16,
        "encoder_layers": 3,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "activation_function": "silu",
        "scale_embedding": False,
        "max_position_embeddings": 64,
        "pad_token_id": 39,
        "dropout": 0.2,
        "attention_dropout": 0.3,
        "activation_dropout": 0.4,
    }
    config = config_from_marian(published)
    assert (config.source_vocabulary, config.target_vocabulary) == (40, 40)
    assert (config.d_model, config.n_heads, config.d_ff) == (16, 4, 48)
    assert (config.n_encoder_layers, config.n_decoder_layers) == (3, 2)
    assert (config.dropout, config.attention_dropout) == (0.2, 0.3)
    assert config.feed_forward_dropout == 0.4
    assert (config.activation, config.position_layout) == ("silu", "halves")
    assert (config.max_length, config.padding_id, config.tied) == (64, 39, "all")
    assert not config.scale_embedding
    assert config.output_bias
    assert not config.norm_first
    published |= {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 45}
    config = config_from_marian(published)
    assert (config.source_vocabulary, config.target_vocabulary, config.tied) == (40, 45, "output")
    assert config_from_marian(published | {"tie_word_embeddings": False}).tied == "none"
    config = config_from_bert(
        {
            "vocab_size": 50,
            "hidden_size": 16,
            "num_attention_heads": 4,
            "num_hidden_layers": 3,
            "intermediate_size": 48,
            "hidden_act": "gelu",
            "layer_norm_eps": 1e-12,
            "max_position_embeddings": 64,
            "hidden_dropout_prob": 0.2,
            "attention_probs_dropout_prob": 0.3,
            "pad_token_id": None,
        }
    )
    assert (config.source_vocabulary, config.d_model, config.n_heads) == (50, 16, 4)
    assert (config.n_encoder_layers, config.n_decoder_layers, config.d_ff) == (3, 0, 48)
    assert (config.activation, config.norm_eps, config.max_length) == ("gelu", 1e-12, 64)
    assert (config.dropout, config.attention_dropout, config.padding_id) == (0.2, 0.3, 0)
    assert (config.positions, config.embedding_norm, config.scale_embedding) == (
        "learned",
        True,
        False,
    )


@pytest.mark.parametrize("tied", [False, True])
def test_the_capstones_llama_is_hugging_faces(hugging_face, tmp_path, tied):
    """What the check of the exercise takes for right, under the names of a published folder."""
    (right,) = [e.right[0] for e in capstone5_llama.EXERCISES if e.name == "llama-from-weights"]
    config, _ = capstone5_llama.random_llama(0, tied)
    torch.manual_seed(0)
    theirs = hugging_face.LlamaForCausalLM(hugging_face.LlamaConfig(**config)).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(std=0.4).add_(parameter.dim() == 1)
    theirs.save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    state = load_file(tmp_path / "model.safetensors")
    assert {name: saved[name] for name in config} == config
    assert state.keys() == capstone5_llama.random_llama(0, tied)[1].keys()
    tokens = torch.randint(13, (2, 9))
    with torch.no_grad():
        assert torch.allclose(right(saved, state)(tokens), theirs(tokens).logits, atol=1e-4)
