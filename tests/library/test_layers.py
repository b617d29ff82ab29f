"""What all layers have in common, and what a decoder layer keeps between the steps of decoding.

Where and in which dtype parameters are made; copies on the meta device that are filled later.
"""

import pytest
import torch
from torch import Tensor, nn

from transformer_lib.add_norm import AddNorm, LayerNorm
from transformer_lib.embedding import Generator, InputLayer, TokenEmbedding
from transformer_lib.feed_forward import FeedForward
from transformer_lib.layers import Cache, Decoder, DecoderLayer, Encoder, EncoderLayer
from transformer_lib.multi_head_attention import KeysValues, MultiHeadAttention
from transformer_lib.positional_encoding import LearnedPositions
from transformer_lib.transformer import TextEncoder, Transformer, TransformerConfig

CONFIG = {"d_model": 8, "n_heads": 2, "n_encoder_layers": 1, "n_decoder_layers": 2, "d_ff": 16}
LEARNT = {"positions": "learned", "embedding_norm": True, "norm_first": True, "output_bias": True}
MAKERS = {
    "MultiHeadAttention": lambda **factory: MultiHeadAttention(8, 2, **factory),
    "FeedForward": lambda **factory: FeedForward(8, 16, **factory),
    "LayerNorm": lambda **factory: LayerNorm(8, **factory),
    "AddNorm": lambda **factory: AddNorm(8, **factory),
    "TokenEmbedding": lambda **factory: TokenEmbedding(12, 8, **factory),
    "LearnedPositions": lambda **factory: LearnedPositions(8, 6, **factory),
    "InputLayer": lambda **factory: InputLayer(8, norm_eps=1e-5, **factory),
    "Generator": lambda **factory: Generator(8, 12, bias=True, **factory),
    "EncoderLayer": lambda **factory: EncoderLayer(8, 2, 16, **factory),
    "DecoderLayer": lambda **factory: DecoderLayer(8, 2, 16, **factory),
    "Encoder": lambda **factory: Encoder(2, 8, 2, 16, final_norm=True, **factory),
    "Decoder": lambda **factory: Decoder(2, 8, 2, 16, norm_first=True, **factory),
    "TextEncoder": lambda **factory: TextEncoder(
        TransformerConfig(12, 12, **CONFIG, **LEARNT), **factory
    ),
    "Transformer": lambda **factory: Transformer(
        TransformerConfig(12, 12, tied="none", **CONFIG, **LEARNT), **factory
    ),
}


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


# Where parameters are made, and as what


@pytest.mark.parametrize("name", MAKERS)
def test_every_parameter_is_made_with_the_device_and_dtype_asked_for(name):
    plain = MAKERS[name]()
    made = MAKERS[name](device="meta", dtype=torch.bfloat16)
    for (path, there), here in zip(made.named_parameters(), plain.parameters(), strict=True):
        assert (there.device.type, there.dtype) == ("meta", torch.bfloat16), path
        assert (here.device.type, here.dtype) == ("cpu", torch.float32), path
        assert there.shape == here.shape


@pytest.fixture
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", MAKERS)
def test_a_dtype_asked_for_is_as_good_as_a_default(name, double):
    torch.manual_seed(0)
    expected = MAKERS[name]()
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(0)
    made = MAKERS[name](dtype=torch.float64)
    for came, parameter in zip(made.parameters(), expected.parameters(), strict=True):
        assert torch.equal(came, parameter)


def test_a_model_made_on_the_meta_device_is_filled_by_loading():
    """Its sinusoids are no part of the state, and right all the same."""
    config = TransformerConfig(12, 12, position_layout="halves", max_length=9, **CONFIG)
    torch.manual_seed(0)
    model = Transformer(config).eval()
    source, target = torch.randint(1, 12, (2, 5)), torch.randint(1, 12, (2, 4))
    with torch.device("meta"):
        abstract = Transformer(config).eval()
    assert abstract(source.to("meta"), target.to("meta")).is_meta
    assigned = Transformer(config, device="meta").eval()
    assigned.load_state_dict(model.state_dict(), assign=True)
    abstract.to_empty(device="cpu").load_state_dict(model.state_dict())
    for filled in (assigned, abstract):
        assert torch.equal(filled(source, target), model(source, target))


@pytest.mark.parametrize("tied", ["all", "output", "none"])
def test_the_output_s_weights_are_saved_where_they_are_its_own(tied):
    state = Transformer(TransformerConfig(12, 12, tied=tied, **CONFIG)).state_dict()
    assert ("generator.weight" in state) == (tied == "none")
    assert ("embedding.target.weight" in state) == (tied != "all")
    assert not [name for name in state if "._" in f".{name}"]  # nothing private
    assert "decoder.layers.0.feed_forward_norm.norm.weight" in state


# Decoding step by step


class Kept:
    """A cache that counts what it is asked."""

    def __init__(self) -> None:
        self.memory: KeysValues | None = None
        self.steps: list[KeysValues] = []

    def __call__(self, new: KeysValues) -> KeysValues:
        """Append, and return all so far."""
        self.steps.append(new)
        return KeysValues(*(torch.cat(parts, dim=2) for parts in zip(*self.steps, strict=True)))


def calls(module: nn.Module) -> list[Tensor]:
    """Return a list that grows by what comes into a module."""
    seen: list[Tensor] = []
    module.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    return seen


def test_the_memory_is_projected_once_and_kept_for_later_steps():
    torch.manual_seed(0)
    layer = DecoderLayer(8, 2, 16).eval()
    x, memory, placed = random(2, 3, 8), random(2, 5, 8, seed=1), random(1, 5, 8, seed=2)
    whole = layer(x, memory, memory_positions=placed)
    keys = calls(layer.cross_attention.key_projection)
    values = calls(layer.cross_attention.value_projection)
    cache = Kept()
    assert isinstance(cache, Cache)
    steps = [
        layer(x[:, place : place + 1], memory, memory_positions=placed, cache=cache)
        for place in range(3)
    ]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole)
    assert len(keys) == len(values) == 1
    assert torch.equal(keys[0], memory + placed)
    assert torch.equal(values[0], memory)
    assert cache.memory is not None
    expected = layer.cross_attention.project(memory + placed, memory)
    assert all(map(torch.equal, cache.memory, expected))
    assert [step.keys.shape for step in cache.steps] == [(2, 2, 1, 4)] * 3


def test_what_a_cache_holds_of_the_memory_is_what_is_attended_to():
    layer = DecoderLayer(8, 2, 16).eval()
    x, memory, other = random(2, 1, 8), random(2, 5, 8, seed=1), random(2, 5, 8, seed=2)
    cache = Kept()
    cache.memory = layer.cross_attention.project(other, other)
    assert torch.equal(layer(x, memory, cache=cache), layer(x, other))


def test_without_a_cache_nothing_is_kept():
    layer = DecoderLayer(8, 2, 16).eval()
    keys = calls(layer.cross_attention.key_projection)
    for seed in (0, 1):
        layer(random(2, 3, 8), random(2, 5, 8, seed=seed))
    assert len(keys) == 2
    assert not torch.equal(*keys)


def test_every_layer_of_a_decoder_has_its_own_cache():
    torch.manual_seed(0)
    decoder = Decoder(2, 8, 2, 16).eval()
    x, memory = random(2, 3, 8), random(2, 5, 8, seed=1)
    caches = [Kept(), Kept()]
    steps = [decoder(x[:, place : place + 1], memory, cache=caches) for place in range(3)]
    torch.testing.assert_close(torch.cat(steps, dim=1), decoder(x, memory))
    assert not torch.equal(caches[0].memory.keys, caches[1].memory.keys)
    assert [len(cache.steps) for cache in caches] == [3, 3]
