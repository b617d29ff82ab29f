"""The Transformer: what depends on what, what is in it, and that it learns."""

import copy
import os
import subprocess
import sys
import textwrap
from dataclasses import FrozenInstanceError, fields, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib.add_norm import LayerNorm
from transformer_lib.embedding import TokenEmbedding
from transformer_lib.files import load_weights, require_state
from transformer_lib.layers import Decoder, DecoderLayer, Encoder, EncoderLayer
from transformer_lib.multi_head_attention import KeysValues, MultiHeadAttention
from transformer_lib.positional_encoding import LearnedPositions, sinusoids
from transformer_lib.transformer import (
    TextEncoder,
    Transformer,
    TransformerConfig,
    record_attention,
)

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
VOCABULARY = 12
TINY = TransformerConfig(
    VOCABULARY,
    VOCABULARY,
    d_model=8,
    n_heads=2,
    n_encoder_layers=2,
    n_decoder_layers=2,
    d_ff=16,
    max_length=32,
)


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def ids(*shape: int, seed: int = 0) -> Tensor:
    """Draw token ids, none of them padding."""
    return torch.randint(1, VOCABULARY, shape, generator=torch.Generator().manual_seed(seed))


def tiny(seed: int = 0, **options) -> Transformer:
    """Build a small model in float64 whose norms and biases are not at their first values."""
    torch.manual_seed(seed)
    model = Transformer(replace(TINY, **options)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def shaken(module: nn.Module, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return module


def size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def norm_of(wrapper: nn.Module, x: Tensor) -> Tensor:
    """Apply the norm inside an AddNorm by PyTorch's function."""
    norm = wrapper.norm
    return F.layer_norm(x, (x.shape[-1],), norm.weight, norm.bias, norm.eps)


# What is in it


def parameters_by_formula(config: TransformerConfig) -> int:
    d, d_ff = config.d_model, config.d_ff
    attention, feed_forward = 4 * (d * d + d), 2 * d * d_ff + d_ff + d
    encoder = attention + feed_forward + 2 * 2 * d
    decoder = 2 * attention + feed_forward + 3 * 2 * d
    source, target = config.source_vocabulary, config.target_vocabulary
    rows = {"all": source, "output": source + target, "none": source + 2 * target}[config.tied]
    total = config.n_encoder_layers * encoder + config.n_decoder_layers * decoder + rows * d
    if config.final_norm or (config.final_norm is None and config.norm_first):
        total += 2 * 2 * d
    if config.positions == "learned":
        total += 2 * config.max_length * d
    if config.embedding_norm:
        total += 2 * 2 * d
    return total + config.output_bias * target


def test_parameters_of_the_paper_s_base_model():
    with torch.device("meta"):
        base = Transformer(TransformerConfig())
    assert size(base) == parameters_by_formula(base.config) == 63_082_496
    parts = {"embedding": 18_944_000, "encoder": 18_914_304, "decoder": 25_224_192, "generator": 0}
    assert {name: size(base.get_submodule(name)) for name in parts} == parts


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tied": "output", "source_vocabulary": 17},
        {"tied": "none", "source_vocabulary": 17, "output_bias": True},
        {"norm_first": True},
        {"final_norm": True},
        {"norm_first": True, "final_norm": False},
        {"positions": "learned"},
        {"positions": "none", "embedding_norm": True},
        {"n_encoder_layers": 0, "n_decoder_layers": 3},
    ],
)
def test_parameters_are_those_of_the_formula(options):
    config = replace(TINY, **options)
    assert size(Transformer(config)) == parameters_by_formula(config)


@pytest.mark.parametrize("stack", [Encoder, Decoder])
def test_layers_are_distinct_and_grow_linearly(stack):  # espnet/espnet#1278
    one = stack(1, 8, 2, 16)
    for n in (0, 2, 5):
        several = stack(n, 8, 2, 16)
        assert len({id(p) for p in several.parameters()}) == n * len(list(one.parameters()))
        assert size(several) == n * size(one)
        assert several.state_dict().keys() == {
            f"layers.{layer}.{name}" for layer in range(n) for name in one.layers[0].state_dict()
        }


def matrices(module: nn.Module) -> list[Tensor]:
    return [parameter for parameter in module.parameters() if parameter.dim() == 2]


def test_all_matrices_differ_and_a_seed_fixes_them():  # pytorch/pytorch#86274, #72253
    models = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        models.append(Transformer(replace(TINY, n_encoder_layers=3, tied="none")))
    first, again, other = (matrices(model) for model in models)
    for i, a in enumerate(first):
        for b in first[i + 1 :]:
            assert a.shape != b.shape or not torch.equal(a, b)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("inside", [False, True])
def test_one_rule_of_initialisation_alone_and_inside(inside):  # pytorch/pytorch#72253
    torch.manual_seed(0)
    if inside:
        model = Transformer(TransformerConfig(50, 50, d_model=128, d_ff=512, n_encoder_layers=2))
        stacks = [model.encoder, model.decoder]
        assert model.source_embedding.weight.std().item() == pytest.approx(128**-0.5, rel=0.05)
    else:
        stacks = [Encoder(2, 128, 8, 512), Decoder(2, 128, 8, 512)]
    for name, parameter in (pair for stack in stacks for pair in stack.named_parameters()):
        if parameter.dim() == 2:
            bound = (6 / sum(parameter.shape)) ** 0.5
            assert parameter.abs().max().item() == pytest.approx(bound, rel=0.01), name
            assert parameter.std().item() == pytest.approx(bound / 3**0.5, rel=0.03), name
        else:
            assert (parameter == (1 if name.endswith("norm.weight") else 0)).all(), name


def test_an_untrained_model_is_half_a_nat_worse_than_an_even_guess():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(500, 500, d_model=128, n_encoder_layers=2, d_ff=128))
    logits = model.eval()(torch.randint(1, 500, (20, 10)), torch.randint(1, 500, (20, 10)))
    assert logits.var().item() == pytest.approx(1, abs=0.1)
    labels = torch.randint(500, (200,))
    even = torch.tensor(500.0).log().item()
    assert F.cross_entropy(logits.flatten(0, 1), labels).item() == pytest.approx(
        even + 0.5, abs=0.2
    )


# The layers, by their formulas


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("placed", [False, True])
def test_an_encoder_layer_by_hand(norm_first, placed):
    layer = shaken(EncoderLayer(8, 2, 16, norm_first=norm_first).double().eval())
    x = random(2, 5, 8)
    positions = random(1, 5, 8, seed=1) if placed else torch.zeros(1, 5, 8, dtype=torch.float64)

    def attend(x: Tensor) -> Tensor:
        return layer.self_attention(x + positions, x + positions, x)

    if norm_first:
        middle = x + attend(norm_of(layer.self_attention_norm, x))
        expected = middle + layer.feed_forward(norm_of(layer.feed_forward_norm, middle))
    else:
        middle = norm_of(layer.self_attention_norm, x + attend(x))
        expected = norm_of(layer.feed_forward_norm, middle + layer.feed_forward(middle))
    torch.testing.assert_close(layer(x, positions=positions if placed else None), expected)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_a_decoder_layer_by_hand(norm_first, placed, causal):
    layer = shaken(DecoderLayer(8, 2, 16, norm_first=norm_first).double().eval())
    x, memory = random(2, 4, 8), random(2, 5, 8, seed=1)
    none = torch.zeros(1, 1, 8, dtype=torch.float64)
    here = random(1, 4, 8, seed=2) if placed else none
    there = random(1, 5, 8, seed=3) if placed else none

    def attend(x: Tensor) -> Tensor:
        return layer.self_attention(x + here, x + here, x, causal=causal)

    def look(x: Tensor) -> Tensor:
        return layer.cross_attention(x + here, memory + there, memory)

    def wrapped(x: Tensor, wrapper: nn.Module, sublayer) -> Tensor:
        if norm_first:
            return x + sublayer(norm_of(wrapper, x))
        return norm_of(wrapper, x + sublayer(x))

    expected = wrapped(x, layer.self_attention_norm, attend)
    expected = wrapped(expected, layer.cross_attention_norm, look)
    expected = wrapped(expected, layer.feed_forward_norm, layer.feed_forward)
    places = {"positions": here, "memory_positions": there} if placed else {}
    came = layer(x, memory, causal=causal, **places)
    torch.testing.assert_close(came, expected)


@pytest.mark.parametrize("norm_first", [False, True])
def test_stacks_are_their_layers_one_after_another(norm_first):
    encoder = shaken(Encoder(3, 8, 2, 16, norm_first=norm_first).double().eval())
    decoder = shaken(Decoder(3, 8, 2, 16, norm_first=norm_first).double().eval())
    source, target = random(2, 5, 8), random(2, 4, 8, seed=1)
    key_mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    x = source
    for layer in encoder.layers:
        x = layer(x, key_mask=key_mask)
    memory = encoder.final_norm(x) if norm_first else x
    torch.testing.assert_close(encoder(source, key_mask=key_mask), memory)
    x = target
    for layer in decoder.layers:  # every layer attends to the last output of the encoder
        x = layer(x, memory, memory_key_mask=key_mask)
    expected = decoder.final_norm(x) if norm_first else x
    came = decoder(target, memory, memory_key_mask=key_mask)
    torch.testing.assert_close(came, expected)


@pytest.mark.parametrize("stack", [Encoder, Decoder])
def test_the_final_norm_belongs_to_pre_norm(stack):  # harvardnlp/harvardnlp.github.io#6
    for norm_first in (False, True):
        assert (stack(2, 8, 2, 16, norm_first=norm_first).final_norm is not None) == norm_first
        for wanted in (False, True):
            made = stack(2, 8, 2, 16, norm_first=norm_first, final_norm=wanted, norm_eps=1e-3)
            assert (made.final_norm is not None) == wanted
            assert not wanted or made.final_norm.eps == 1e-3


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_new_stack_gives_mean_0_and_variance_1(norm_first):
    torch.manual_seed(0)
    encoder = Encoder(2, 16, 2, 32, norm_first=norm_first).double().eval()
    norms = sum(isinstance(module, LayerNorm) for module in encoder.modules())
    assert norms == 4 + norm_first
    out = encoder(random(3, 5, 16))
    torch.testing.assert_close(out.mean(dim=-1), torch.zeros(3, 5).double(), atol=1e-12, rtol=0)
    variance = out.var(dim=-1, correction=0)
    torch.testing.assert_close(variance, torch.ones(3, 5).double(), atol=1e-3, rtol=0)


def test_the_model_by_hand():
    """Embedding · √d, plus positions, encoder, decoder, times the embedding's transpose."""
    model = tiny()
    source, target = ids(2, 5), ids(2, 4, seed=1)
    source[1, 3:] = 0
    weight, table = model.source_embedding.weight, sinusoids(32, 8).double()
    memory = model.encoder(weight[source] * 8**0.5 + table[:5], key_mask=source != 0)
    x = weight[target] * 8**0.5 + table[:4]
    x = model.decoder(x, memory, memory_key_mask=source != 0)
    torch.testing.assert_close(model(source, target), x @ weight.T, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(model.encode(source), memory, atol=1e-6, rtol=1e-6)


def test_every_option_reaches_its_place():
    torch.manual_seed(0)
    model = Transformer(
        TransformerConfig(
            20,
            30,
            d_model=12,
            n_heads=3,
            n_encoder_layers=1,
            n_decoder_layers=2,
            d_ff=7,
            dropout=0.25,
            attention_dropout=0.5,
            feed_forward_dropout=0.75,
            activation="gelu",
            norm_first=True,
            norm_eps=1e-3,
            positions="learned",
            max_length=9,
            scale_embedding=False,
            embedding_norm=True,
            tied="output",
            output_bias=True,
            padding_id=4,
        )
    )
    assert len(model.encoder.layers) == 1
    assert len(model.decoder.layers) == 2
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            assert (module.d_model, module.n_heads, module.dropout) == (12, 3, 0.5)
        if isinstance(module, LayerNorm):
            assert module.eps == 1e-3
        if isinstance(module, LearnedPositions):
            assert module.table.shape == (9, 12)
        if isinstance(module, TokenEmbedding):
            assert module.scale == 1
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        assert layer.feed_forward.activation is F.gelu
        assert layer.feed_forward.dropout.p == 0.75
        assert layer.feed_forward.inner.out_features == 7
        assert layer.self_attention_norm.dropout.p == layer.feed_forward_norm.dropout.p == 0.25
        assert layer.self_attention_norm.norm_first
    for inputs in (model.source_input, model.target_input):
        assert inputs.dropout.p == 0.25
        assert inputs.norm is not None
    assert model.source_embedding.weight.shape == (20, 12)
    assert model.target_embedding.weight is model.generator.weight
    assert model.generator.weight.shape == (30, 12)
    assert model.generator.bias is not None
    assert Transformer(replace(TINY, positions="none")).source_input.positions is None
    halves = Transformer(replace(TINY, position_layout="halves")).target_input.positions
    assert torch.equal(halves.table, sinusoids(32, 8, layout="halves"))


def test_source_tokens_that_are_padding_are_hidden_whatever_their_id():
    model = tiny(padding_id=3)
    source = torch.tensor([[5, 3, 7], [5, 3, 3]])
    expected = model(source, source, source_key_mask=source != 3)
    assert torch.equal(model(source, source), expected)
    assert torch.equal(model.encode(source), model.encode(source, key_mask=source != 3))
    assert not torch.allclose(model(source, source, source_key_mask=source != 0), expected)


def test_a_text_encoder_is_the_encoder_side():
    model = tiny()
    encoder = TextEncoder(replace(TINY, n_decoder_layers=0)).double().eval()
    state = {n: t for n, t in model.state_dict().items() if n in encoder.state_dict()}
    encoder.load_state_dict(state)
    source = ids(2, 5)
    source[0, 3:] = 0
    assert torch.equal(encoder(source), model.encode(source))
    mask = ids(2, 5, seed=1) > 4
    assert torch.equal(encoder(source, key_mask=mask), model.encode(source, key_mask=mask))


# Causality


@pytest.mark.slow
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("n_layers", [1, 2, 4])
def test_later_target_tokens_never_move_earlier_logits(norm_first, training, n_layers):
    # jadore801120/attention-is-all-you-need-pytorch#19
    model = tiny(norm_first=norm_first, n_decoder_layers=n_layers, dropout=0.0).train(training)
    source, target = ids(2, 5), ids(2, 6, seed=1)
    before = model(source, target)
    for t in range(6):
        changed = target.clone()
        changed[:, t + 1 :] = changed[:, t + 1 :] % (VOCABULARY - 1) + 1
        after = model(source, changed)
        torch.testing.assert_close(after[:, : t + 1], before[:, : t + 1], atol=1e-12, rtol=0)
        assert t == 5 or not torch.allclose(after[:, t + 1], before[:, t + 1])


@pytest.mark.parametrize("norm_first", [False, True])
def test_gradients_flow_to_earlier_target_vectors_and_real_source_vectors_only(norm_first):
    model = tiny(norm_first=norm_first)
    source = ids(1, 5)
    source[0, 3:] = 0
    vectors = {}
    hooks = [
        module.register_forward_hook(
            lambda _, args, out, name=name: vectors.update({name: out}) or out.retain_grad()
        )
        for name, module in (("source", model.source_input), ("target", model.target_input))
    ]
    logits = model(source, ids(1, 4, seed=1))
    for hook in hooks:
        hook.remove()
    for t in range(4):
        up = random(VOCABULARY, seed=t)
        of_source, of_target = torch.autograd.grad(
            logits[0, t] @ up, (vectors["source"], vectors["target"]), retain_graph=True
        )
        assert (of_target[0].norm(dim=-1) > 0).tolist() == [s <= t for s in range(4)]
        assert (of_source[0].norm(dim=-1) > 0).tolist() == [True, True, True, False, False]


def test_a_decoder_may_be_told_to_see_the_future():
    decoder = shaken(Decoder(2, 8, 2, 16).double().eval())
    x, memory = random(1, 4, 8), random(1, 3, 8, seed=1)
    changed = x.clone()
    changed[:, 3] += 1
    moved = decoder(changed, memory, causal=False) - decoder(x, memory, causal=False)
    assert (moved.abs().amax(dim=-1) > 1e-6).all()


# Padding and neighbours


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_sentence_alone_and_in_a_padded_batch(norm_first):  # pytorch/pytorch#64706, #64525
    model = tiny(norm_first=norm_first)
    lengths, target_lengths = [6, 3, 1], [2, 5, 4]
    source, target = torch.zeros(3, 6, dtype=torch.long), torch.zeros(3, 5, dtype=torch.long)
    for i, (m, n) in enumerate(zip(lengths, target_lengths, strict=True)):
        source[i, :m], target[i, :n] = ids(m, seed=i), ids(n, seed=10 + i)
    together = model(source, target)
    for i, (m, n) in enumerate(zip(lengths, target_lengths, strict=True)):
        alone = model(source[i : i + 1, :m], target[i : i + 1, :n])
        torch.testing.assert_close(together[i, :n], alone[0], atol=1e-12, rtol=1e-12)
    assert together.shape == (3, 5, VOCABULARY)


def test_what_stands_in_the_padding_changes_nothing():
    model = tiny()
    source, target = ids(2, 6), ids(2, 5, seed=1)
    source_mask = torch.arange(6) < torch.tensor([[6], [4]])
    target_mask = torch.arange(5) < torch.tensor([[3], [5]])
    before = model(source, target, source_key_mask=source_mask, target_key_mask=target_mask)
    for seed in (2, 3):
        other = model(
            torch.where(source_mask, source, ids(2, 6, seed=seed)),
            torch.where(target_mask, target, ids(2, 5, seed=seed)),
            source_key_mask=source_mask,
            target_key_mask=target_mask,
        )
        assert torch.equal(other[target_mask], before[target_mask])
    # No token sees the padding behind it, so target padding need not be hidden at all.
    torch.testing.assert_close(
        model(source, target, source_key_mask=source_mask)[target_mask], before[target_mask]
    )


def test_vectors_of_any_size_in_the_padding_change_nothing():  # pytorch/pytorch#64525
    encoder = shaken(Encoder(2, 8, 2, 16).eval())
    x = random(2, 3, 8, dtype=torch.float32)
    key_mask = torch.tensor([[True] * 3, [True, True, False]])
    outputs = []
    for fill in (0.0, 1e-10, 1e10):
        x[1, 2] = fill
        outputs.append(encoder(x, key_mask=key_mask)[key_mask])
    assert all(torch.equal(output, outputs[0]) for output in outputs)
    x[1, 2] = torch.nan  # documented: 0 · NaN is NaN, and stays within its sentence
    assert encoder(x, key_mask=key_mask)[0].isfinite().all()


def test_a_tail_that_all_sentences_hide_stays():  # pytorch/pytorch#97111, #86120
    encoder = shaken(Encoder(2, 16, 2, 16, dropout=0.0).double())
    x, key_mask = random(3, 6, 16), (torch.arange(6) < 4).expand(3, 6)
    in_eval = encoder.eval()(x, key_mask=key_mask)
    assert in_eval.shape == (3, 6, 16)
    torch.testing.assert_close(in_eval[:, :4], encoder.train()(x, key_mask=key_mask)[:, :4])


def test_target_padding_never_hides_source_tokens():  # keras-team/keras-io#1046
    model = tiny()
    source, target = torch.zeros(1, 20, dtype=torch.long), torch.zeros(1, 20, dtype=torch.long)
    source[0, 0], target[0, :6] = 3, ids(6)
    for mask in (None, target != 0):
        with record_attention(model) as weights:
            model(source, target, target_key_mask=mask)
        for layer in range(2):
            cross = weights[f"decoder.layers.{layer}.cross_attention"]
            assert cross.shape == (1, 2, 20, 20)
            assert torch.equal(cross[..., 0], torch.ones(1, 2, 20).double())
            assert (cross[..., 1:] == 0).all()


def test_an_empty_source_gives_finite_logits_that_depend_on_the_target_alone():
    model = tiny()
    source, target = ids(2, 3), ids(2, 4, seed=1)
    hidden = torch.zeros(2, 3, dtype=torch.bool)
    logits = model(source, target, source_key_mask=hidden)
    assert torch.equal(logits, model(ids(2, 3, seed=5), target, source_key_mask=hidden))
    logits.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    assert logits.isfinite().all()


def test_masks_of_the_layers_reach_the_attentions():
    layer = shaken(DecoderLayer(8, 2, 16).double().eval())
    x, memory = random(2, 4, 8), random(2, 5, 8, seed=1)
    mask = torch.ones(4, 4, dtype=torch.bool).triu(-1)
    key_mask = torch.tensor([[True] * 4, [True, True, False, True]])
    memory_mask = torch.ones(4, 5, dtype=torch.bool).tril(1)
    memory_key_mask = torch.tensor([[True] * 5, [True] * 4 + [False]])
    masks = {"mask": mask, "key_mask": key_mask, "memory_mask": memory_mask}
    masks["memory_key_mask"] = memory_key_mask
    with record_attention(layer) as weights:
        layer(x, memory, **masks)
    causal = mask.tril() & key_mask[:, None]
    assert torch.equal(weights["self_attention"] > 0, causal[:, None].expand(2, 2, 4, 4))
    seen = memory_mask & memory_key_mask[:, None]
    assert torch.equal(weights["cross_attention"] > 0, seen[:, None].expand(2, 2, 4, 5))
    encoder = shaken(EncoderLayer(8, 2, 16).double().eval())
    with record_attention(encoder) as weights:
        encoder(x, mask=mask, key_mask=key_mask)
    seen = mask & key_mask[:, None]
    assert torch.equal(weights["self_attention"] > 0, seen[:, None].expand(2, 2, 4, 4))


# Dropout and modes


def test_evaluation_is_deterministic_and_training_is_not():  # pytorch/pytorch#124464
    model = tiny(dropout=0.5, attention_dropout=0.5, feed_forward_dropout=0.5)
    plain = tiny()
    source, target = ids(2, 5), ids(2, 4, seed=1)
    assert torch.equal(model(source, target), model(source, target))
    assert torch.equal(model(source, target), plain(source, target))
    model.train()
    assert not torch.equal(model(source, target), model(source, target))


@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "feed_forward_dropout"])
def test_each_dropout_acts_by_itself_and_only_in_training(name):
    none = {"dropout": 0.0, "attention_dropout": 0.0, "feed_forward_dropout": 0.0}
    model, plain = tiny(**none | {name: 0.5}), tiny(**none)
    source, target = ids(2, 5), ids(2, 4, seed=1)
    expected = plain(source, target)
    assert torch.equal(model(source, target), expected)
    assert torch.equal(plain.train()(source, target), expected)
    assert not torch.allclose(model.train()(source, target), expected)


# dtypes, empty batches, gradients


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("norm_first", [False, True])
def test_every_float_dtype(dtype, norm_first):  # NVIDIA/apex#1105
    model = tiny(norm_first=norm_first)
    source, target = ids(2, 5), ids(2, 4, seed=1)
    source[1, 3:] = 0
    expected = model(source, target)
    model = copy.deepcopy(model).to(dtype)
    with record_attention(model) as weights:
        logits = model(source, target)
    assert logits.dtype == dtype
    tolerance = 60 * torch.finfo(dtype).eps
    torch.testing.assert_close(logits.double(), expected, atol=tolerance, rtol=tolerance)
    assert (weights["decoder.layers.0.cross_attention"][1, ..., 3:] == 0).all()
    logits.sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.dtype == dtype for p in model.parameters())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("batch", "source", "target"), [(0, 5, 4), (2, 5, 0), (2, 0, 4), (0, 0, 0)]
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_empty_batches_and_sentences(batch, source, target, dtype):  # pytorch/pytorch#188765
    model = tiny().to(dtype)
    logits = model(ids(batch, source), ids(batch, target))
    assert logits.shape == (batch, target, VOCABULARY)
    assert logits.dtype == dtype
    logits.sum().backward()
    assert logits.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def called_with_parameters(module: nn.Module, *inputs: Tensor, **options):
    """Return (function, arguments) for gradcheck: all inputs and all parameters."""
    names = [name for name, _ in module.named_parameters()]

    def function(*tensors: Tensor) -> Tensor:
        state = dict(zip(names, tensors[len(inputs) :], strict=True))
        return torch.func.functional_call(module, state, tensors[: len(inputs)], options)

    values = [*inputs, *(parameter.detach() for parameter in module.parameters())]
    return function, tuple(value.clone().requires_grad_() for value in values)


@pytest.mark.slow
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_gradcheck_of_the_encoder_layer(norm_first, activation):
    layer = EncoderLayer(4, 2, 6, norm_first=norm_first, activation=activation, dropout=0.0)
    shaken(layer.double(), seed=1)
    key_mask = torch.tensor([[True, True, True], [True, False, False]])
    function, arguments = called_with_parameters(layer, random(2, 3, 4), key_mask=key_mask)
    assert torch.autograd.gradcheck(function, arguments)


@pytest.mark.slow
@pytest.mark.parametrize("norm_first", [False, True])
def test_gradcheck_of_the_decoder_layer(norm_first):
    class WithMemory(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = DecoderLayer(4, 2, 6, norm_first=norm_first, dropout=0.0)

        def forward(self, x: Tensor, memory: Tensor) -> Tensor:
            seen = torch.tensor([[True, True], [False, False]])  # one source is empty
            return self.layer(x, memory, memory_key_mask=seen)

    module = shaken(WithMemory().double(), seed=1)
    inputs = random(2, 3, 4), random(2, 2, 4, seed=1)
    function, arguments = called_with_parameters(module, *inputs)
    assert torch.autograd.gradcheck(function, arguments)


# Decoding in chunks


class GrowingCache:
    """Keeps all keys and values so far."""

    def __init__(self):
        self.memory: KeysValues | None = None
        self.kept: list[KeysValues] = []

    def __call__(self, new: KeysValues) -> KeysValues:
        """Return all so far."""
        self.kept.append(new)
        return KeysValues(*(torch.cat(parts, dim=2) for parts in zip(*self.kept, strict=True)))


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
@pytest.mark.parametrize("chunks", [(1,) * 6, (2, 3, 1), (2, 2, 2), (6,)])
def test_decoding_in_chunks_equals_decoding_whole(norm_first, positions, chunks):
    # mlfoundations/open_lm#74
    model = tiny(norm_first=norm_first, positions=positions)
    source, target = ids(2, 5), ids(2, 6, seed=1)
    source[1, 3:] = 0
    memory = model.encode(source)
    caches = [GrowingCache() for _ in model.decoder.layers]
    parts, start = [], 0
    for length in chunks:
        part = target[:, start : start + length]
        parts.append(
            model.decode(
                part, memory=memory, memory_key_mask=source != 0, offset=start, cache=caches
            )
        )
        start += length
    torch.testing.assert_close(torch.cat(parts, dim=1), model(source, target))


def test_greedy_decoding_with_a_cache_equals_greedy_decoding_without():
    model = tiny(tied="none")
    source = ids(3, 5)
    memory = model.encode(source)
    caches = [GrowingCache() for _ in model.decoder.layers]
    without = with_cache = torch.ones(3, 1, dtype=torch.long)
    for step in range(8):
        without = torch.cat([without, model(source, without)[:, -1:].argmax(dim=-1)], dim=1)
        logits = model.decode(with_cache[:, -1:], memory=memory, offset=step, cache=caches)
        with_cache = torch.cat([with_cache, logits.argmax(dim=-1)], dim=1)
    assert torch.equal(with_cache, without)
    assert without[:, 1:].unique().numel() > 2  # the sentence says something


# Looking at attention


def test_recorded_weights_are_those_the_attentions_return():
    model = tiny()
    source, target = ids(2, 5), ids(2, 4, seed=1)
    with record_attention(model) as weights:
        recorded = model(source, target)
    torch.testing.assert_close(recorded, model(source, target))
    assert set(weights) == {
        *(f"encoder.layers.{n}.self_attention" for n in range(2)),
        *(f"decoder.layers.{n}.{kind}_attention" for n in range(2) for kind in ("self", "cross")),
    }
    x = model.source_input(model.source_embedding(source))
    _, expected = model.encoder.layers[0].self_attention(x, x, x, return_weights=True)
    torch.testing.assert_close(weights["encoder.layers.0.self_attention"], expected)
    assert expected.requires_grad == weights["encoder.layers.0.self_attention"].requires_grad


def test_recording_leaves_nothing_behind_not_even_after_an_error():
    model = tiny()
    weights: dict[str, Tensor] = {}

    def fail() -> None:
        with record_attention(model) as recorded:
            model(ids(1, 2), ids(1, 2))
            weights.update(recorded)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert len(weights) == 6
    for module in model.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks


def test_recording_keeps_the_latest_call_and_who_asks_gets_weights_too():
    attention, x = MultiHeadAttention(8, 2).double(), random(2, 3, 8)
    with record_attention(attention) as weights:
        assert isinstance(attention(x, x, x), Tensor)
        output, asked = attention(x[:1], x[:1], x[:1], return_weights=True)
    assert weights[""] is asked
    assert output.shape == (1, 3, 8)
    with record_attention(attention) as outer, record_attention(attention) as inner:
        assert isinstance(attention(x, x, x), Tensor)
    assert torch.equal(outer[""], inner[""])


# Configuration


def test_the_configuration_is_frozen():
    with pytest.raises(FrozenInstanceError):
        TransformerConfig().d_model = 3


@given(
    st.builds(
        TransformerConfig,
        source_vocabulary=st.integers(5, 9),
        target_vocabulary=st.integers(5, 9),
        d_model=st.sampled_from([6, 12]),
        n_heads=st.sampled_from([1, 2, 3, 6]),
        n_encoder_layers=st.integers(0, 2),
        dropout=st.floats(0, 1),
        norm_eps=st.floats(1e-12, 1),
        activation=st.sampled_from(["relu", "gelu", "silu"]),
        norm_first=st.booleans(),
        final_norm=st.sampled_from([None, True, False]),
        positions=st.sampled_from(["sinusoidal", "learned", "none"]),
        tied=st.sampled_from(["output", "none"]),
        padding_id=st.integers(0, 4),
    )
)
def test_the_configuration_survives_json(config):
    again = TransformerConfig.from_json(config.to_json())
    assert again == config
    assert [type(getattr(again, f.name)) for f in fields(again)] == [
        type(getattr(config, f.name)) for f in fields(config)
    ]


def test_fields_left_out_get_their_defaults():
    assert TransformerConfig.from_json('{"d_ff": 5}') == TransformerConfig(d_ff=5)


# Saving and loading


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tied": "output", "source_vocabulary": 17},
        {"tied": "none", "output_bias": True},
        {"norm_first": True, "positions": "learned", "embedding_norm": True},
    ],
)
@pytest.mark.parametrize("kind", [Transformer, TextEncoder])
def test_a_model_comes_back_whole(kind, options, tmp_path):
    torch.manual_seed(0)
    model = shaken(kind(replace(TINY, **options)))
    folder = tmp_path / "new" / "folder"
    model.save_pretrained(folder)
    assert {path.name for path in folder.iterdir()} == {"config.json", "model.safetensors"}
    again = kind.from_pretrained(folder)
    assert type(again) is kind
    assert again.config == model.config
    assert not again.training
    state = model.state_dict()
    assert again.state_dict().keys() == state.keys()
    assert all(torch.equal(tensor, state[name]) for name, tensor in again.state_dict().items())
    arguments = (ids(2, 4), ids(2, 3)) if kind is Transformer else (ids(2, 4),)
    assert torch.equal(again(*arguments), model.eval()(*arguments))


def test_saving_replaces_an_older_model(tmp_path):
    for d_model in (16, 8):
        model = Transformer(replace(TINY, d_model=d_model))
        model.save_pretrained(str(tmp_path))
    assert Transformer.from_pretrained(tmp_path).config.d_model == 8


def test_names_in_the_file_are_places_in_the_model(tmp_path):
    model = Transformer(replace(TINY, tied="output", n_encoder_layers=1, n_decoder_layers=1))
    names = set(model.state_dict())
    assert {"embedding.source.weight", "embedding.target.weight"} <= names
    assert "decoder.layers.0.cross_attention.key_projection.weight" in names
    assert not [name for name in names if "positions" in name]  # sinusoids are computed


def test_weights_load_into_another_dtype(tmp_path):
    model = Transformer(TINY)
    model.save_pretrained(tmp_path)
    half = Transformer(TINY).bfloat16()
    load_weights(half, tmp_path / "model.safetensors")
    for ours, theirs in zip(half.parameters(), model.parameters(), strict=True):
        assert torch.equal(ours, theirs.bfloat16())


def tied_by_loading(model: Transformer, way: str, tmp_path) -> Transformer:
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    if way == "load":
        model.load_state_dict(state)
    elif way == "assign":
        model.load_state_dict(state, assign=True)
    elif way == "deepcopy":
        model = copy.deepcopy(model)
    elif way == "to":
        model = model.to(torch.float32)
    else:
        model.save_pretrained(tmp_path)
        model = Transformer.from_pretrained(tmp_path)
    return model


@pytest.mark.parametrize("way", ["load", "assign", "deepcopy", "to", "pretrained"])
@pytest.mark.parametrize("tied", ["all", "output"])
def test_tied_weights_stay_one(way, tied, tmp_path):  # pytorch/pytorch#188346
    model = tied_by_loading(tiny(tied=tied), way, tmp_path)
    weight = model.target_embedding.weight
    assert model.generator.weight is weight
    assert (model.source_embedding.weight is weight) == (tied == "all")
    assert sum(parameter is weight for parameter in model.parameters()) == 1
    x = random(1, 8).to(weight.dtype)
    before = model.generator(x)
    with torch.no_grad():
        weight += 1
    torch.testing.assert_close(model.generator(x), before + x.sum())
    model.generator(x).sum().backward()
    assert weight.grad.abs().sum() > 0


def test_untied_weights_are_three():
    model = tiny(tied="none")
    three = (model.source_embedding.weight, model.target_embedding.weight, model.generator.weight)
    assert len({id(weight) for weight in three}) == 3
    require_state(model, model.state_dict())


# It learns, and it compiles: in processes of their own, without the shape checks


def printed(code: str) -> str:
    """Return what a program prints that runs on one thread without the shape checks."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert not done.returncode, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
def test_the_copy_task_is_learnt_to_the_last_word():  # pytorch/pytorch#72253; 10 s
    """The recipe of the chapter: every one of 500 new sentences is copied exactly."""
    code = """
        import torch
        from torch.nn.functional import cross_entropy, pad
        from transformer_lib.transformer import Transformer, TransformerConfig

        torch.manual_seed(0)
        sizes = {"d_model": 64, "n_heads": 4, "n_encoder_layers": 2, "n_decoder_layers": 2}
        model = Transformer(TransformerConfig(20, 20, d_ff=256, dropout=0.0, **sizes))
        generator = torch.Generator().manual_seed(0)

        def batch(size):
            words = torch.randint(3, 20, (size, 10), generator=generator)
            return torch.cat([words, torch.full((size, 1), 2)], dim=1), pad(words, (1, 0), value=1)

        optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
        for step in range(1, 701):
            optimizer.param_groups[0]["lr"] = 3e-3 * min(1, step / 100, (701 - step) / 400)
            source, target = batch(32)
            loss = cross_entropy(model(source, target).flatten(0, 1), source.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        source, _ = batch(500)
        target = torch.full((500, 1), 1)
        with torch.no_grad():
            for _ in range(11):
                following = model(source, target)[:, -1:].argmax(dim=-1)
                target = torch.cat([target, following], dim=1)
        print((target[:, 1:] == source).all(dim=1).sum().item())
    """
    assert printed(code) == "500\n"


@pytest.mark.slow
def test_it_compiles_whole():
    """Without a graph break, and with the same outputs and gradients.

    The graphs of the model and of its backward pass are taken and run; the C++ that PyTorch would
    make of them takes half a minute to build and is PyTorch's.
    """
    code = """
        import torch
        from transformer_lib.transformer import Transformer, TransformerConfig

        torch.manual_seed(0)
        model = Transformer(TransformerConfig(20, 20, 16, 2, 1, 1, 32, dropout=0.0))
        source, target = torch.randint(1, 20, (2, 5)), torch.randint(1, 20, (2, 4))
        source[1, 3:] = 0
        results = []
        for each in (model, torch.compile(model, fullgraph=True, backend="aot_eager")):
            model.zero_grad()
            logits = each(source, target)
            logits.square().sum().backward()
            results.append([logits.detach(), *(p.grad.clone() for p in model.parameters())])
        for ours, theirs in zip(*results, strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
        print("the same")
    """
    assert printed(code) == "the same\n"
