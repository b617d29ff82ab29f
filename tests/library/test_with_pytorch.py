"""What users of PyTorch try with its modules works with these: export, compile, autocast, meta.

The compiler and the exporters trace the library as its users have it, so that the shape checks of
the tests are off here.
"""

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import jaxtyping
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F

from transformer_lib.attention import scaled_dot_product_attention
from transformer_lib.multi_head_attention import MultiHeadAttention
from transformer_lib.transformer import Transformer, TransformerConfig

CONFIG = TransformerConfig(
    50, 50, d_model=32, n_heads=4, d_ff=64, n_encoder_layers=2, n_decoder_layers=2
)
HALVES = (torch.bfloat16, torch.float16)


@pytest.fixture(autouse=True)
def without_shape_checks() -> Iterator[None]:
    """Turn off the shape checks at run time, which the compiler cannot trace."""
    torch._dynamo.reset()
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    torch.manual_seed(0)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


def attention(**options: Any) -> MultiHeadAttention:
    return MultiHeadAttention(16, 4, **options).eval()


def transformer(config: TransformerConfig = CONFIG, **factory: Any) -> Transformer:
    return Transformer(config, **factory).eval()


def sentences(batch: int, length: int) -> Tensor:
    """Return random token ids, in the first sentence with padding at the end."""
    ids = torch.randint(1, 50, (batch, length))
    ids[0, length - length // 3 :] = CONFIG.padding_id
    return ids


# torch.export with lengths that stay open


BATCH, LENGTH, KEYS = Dim("batch", max=64), Dim("length", max=4096), Dim("keys", max=4096)
LENGTHS = (1, 3, 31, 32, 33, 100)


def test_an_exported_attention_takes_every_length():
    layer = attention()
    example = torch.randn(2, 5, 16), torch.randn(2, 7, 16), torch.randn(2, 7, 16)
    shapes = {0: BATCH, 1: LENGTH}, {0: BATCH, 1: KEYS}, {0: BATCH, 1: KEYS}
    exported = torch.export.export(layer, example, dynamic_shapes=shapes).module()
    for queries, keys in zip(LENGTHS, reversed(LENGTHS), strict=True):
        query, key = torch.randn(3, queries, 16), torch.randn(3, keys, 16)
        torch.testing.assert_close(exported(query, key, key), layer(query, key, key))


class Causal(nn.Module):
    """Causal self-attention, with a key mask and without."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = attention()

    def forward(self, x: Tensor, key_mask: Tensor) -> tuple[Tensor, Tensor]:
        masked = self.attention(x, causal=True, key_mask=key_mask)
        return masked, self.attention(x, causal=True)


def test_an_exported_causal_attention_takes_every_length():
    layer = Causal()
    example = torch.randn(2, 5, 16), torch.ones(2, 5, dtype=torch.bool)
    shapes = {0: BATCH, 1: LENGTH}, {0: BATCH, 1: LENGTH}
    exported = torch.export.export(layer, example, dynamic_shapes=shapes).module()
    for length in LENGTHS:
        x, key_mask = torch.randn(3, length, 16), torch.rand(3, length) > 0.3
        torch.testing.assert_close(exported(x, key_mask), layer(x, key_mask))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_an_exported_transformer_takes_every_length(device):
    """Also on a device where its sinusoids are not yet: on meta, whose graph runs anywhere."""
    model = transformer().to(device)
    example = sentences(2, 5).to(device), sentences(2, 7).to(device)
    shapes = {0: BATCH, 1: LENGTH}, {0: BATCH, 1: KEYS}
    exported = torch.export.export(model, example, dynamic_shapes=shapes).module()
    for length, keys in zip(LENGTHS, reversed(LENGTHS), strict=True):
        source, target = sentences(3, length).to(device), sentences(3, keys).to(device)
        came, expected = exported(source, target), model(source, target)
        assert came.shape == expected.shape
        if device == "cpu":
            torch.testing.assert_close(came, expected, rtol=1e-4, atol=1e-5)


# torch.compile, all in one graph


class Graphs:
    """A backend that runs graphs as they are and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
        self.count += 1
        return graph.forward


LONGER = (5, 7, 40, 90)


@pytest.mark.parametrize(
    "options",
    [{}, {"causal": True}, {"return_weights": True}, {"causal": True, "return_weights": True}],
    ids=str,
)
@pytest.mark.parametrize(("dynamic", "count"), [(True, 1), (None, 2)])
def test_attention_compiles_once_for_all_lengths(options, dynamic, count):
    # pytorch/pytorch#124707, pytorch/pytorch#154038: "'is_causal' must be bool, not SymBool".
    # Left to itself, the compiler makes one graph for the first length, and one for all others.
    layer, graphs = attention(), Graphs()
    compiled = torch.compile(layer, fullgraph=True, dynamic=dynamic, backend=graphs)
    for length in LONGER:
        x = torch.randn(2, length, 16)
        torch.testing.assert_close(compiled(x, **options), layer(x, **options))
    assert graphs.count == count


@pytest.mark.parametrize(("dynamic", "count"), [(True, 1), (None, 2)])
def test_the_transformer_compiles_once_for_all_lengths(dynamic, count):
    model, graphs = transformer(), Graphs()
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic, backend=graphs)
    for length, keys in zip(LONGER, (7, 9, 50, 33), strict=True):
        source, target = sentences(2, length), sentences(2, keys)
        ours, compiled_ours = model(source, target), compiled(source, target)
        torch.testing.assert_close(compiled_ours, ours, rtol=1e-4, atol=1e-5)
    assert graphs.count == count


# autocast, and another default dtype


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"return_weights": True},
        {"bias": torch.linspace(-1, 1, 25).reshape(5, 5)},
        {"bias": torch.linspace(-1, 1, 25).reshape(5, 5), "return_weights": True},
        {"causal": True, "key_mask": torch.arange(5).expand(2, 5) < 4},
    ],
    ids=lambda options: " ".join(options) or "plain",
)
@pytest.mark.parametrize("dtype", HALVES)
def test_attention_under_autocast(dtype, options, training):
    # pytorch/pytorch#99012: projections in half precision meet a bias or dropout in float32.
    layer = attention(dropout=0.3).train(training)
    x = torch.randn(2, 5, 16, requires_grad=True)
    with torch.autocast("cpu", dtype):
        came = layer(x, **options)
    came = came if isinstance(came, tuple) else (came,)
    assert all(tensor.dtype == dtype for tensor in came)
    if not training:
        exact = layer(x, **options)
        exact = exact if isinstance(exact, tuple) else (exact,)
        for ours, theirs in zip(came, exact, strict=True):
            torch.testing.assert_close(ours.float(), theirs, rtol=3e-2, atol=3e-2)
    came[0].float().sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("options", [{}, {"return_weights": True}, {"dropout": 0.5}], ids=str)
def test_operands_of_different_dtypes_meet_under_autocast(options):
    query = torch.randn(2, 4, 5, 8)
    key = query.to(torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        came = scaled_dot_product_attention(query, key, key, bias=torch.zeros(5, 5), **options)
    output = came[0] if isinstance(came, tuple) else came
    assert output.shape == query.shape


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("model_options", [{}, {"attention_dropout": 0.1}], ids=str)
def test_a_training_step_under_autocast(dtype, model_options):
    config = TransformerConfig(**(vars(CONFIG) | model_options))
    model = transformer(config).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    source, target = sentences(2, 6), sentences(2, 5)
    losses = []
    for _ in range(3):
        with torch.autocast("cpu", dtype):
            loss = F.cross_entropy(model(source, target).flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[2] < losses[0]
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_a_module_under_another_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        model = transformer()
        source, target = sentences(2, 6), sentences(2, 5)
        logits = model(source, target)
        assert logits.dtype == torch.float64
        bias = torch.zeros(6, 6)
        output, weights = attention()(torch.randn(2, 6, 16), bias=bias, return_weights=True)
        assert output.dtype == weights.dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    torch.testing.assert_close(model(source, target), logits, rtol=0, atol=0)
    single = copy.deepcopy(model).float()(source, target)
    torch.testing.assert_close(single.double(), logits, rtol=1e-4, atol=1e-4)


# the meta device, and weights that come later


def test_forward_on_the_meta_device():  # huggingface/transformers#44984
    source, target = sentences(2, 6).to("meta"), sentences(2, 5).to("meta")
    for model in (transformer().to("meta"), transformer(device="meta")):
        assert model(source, target).shape == (2, 5, 50)
    x = torch.randn(2, 5, 16, device="meta")
    for training in (False, True):
        layer = attention(dropout=0.1).to("meta").train(training)
        output, weights = layer(x, causal=True, return_weights=True)
        assert output.shape == x.shape
        assert weights.shape == (2, 4, 5, 5)
        assert layer(x, causal=True).is_meta


def empty(model: nn.Module, state: dict[str, Tensor]) -> None:
    model.to_empty(device="cpu")
    for parameter in model.parameters():
        nn.init.constant_(parameter, torch.nan)
    model.load_state_dict(state)


def assign(model: nn.Module, state: dict[str, Tensor]) -> None:
    model.load_state_dict(state, assign=True)


@pytest.mark.parametrize("where", ["built there", "moved there", "device="])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize("fill", [empty, assign])
def test_weights_that_come_later_give_the_same_bits(fill, positions, where):
    # huggingface/transformers#45902: tables that are not in the state were left uninitialised.
    config = TransformerConfig(**(vars(CONFIG) | {"positions": positions}))
    model = transformer(config)
    source, target = sentences(2, 6), sentences(2, 5)
    expected = model(source, target)
    if where == "built there":
        with torch.device("meta"):
            later = transformer(config)
    elif where == "moved there":
        later = transformer(config).to("meta")
        later(source.to("meta"), target.to("meta"))
    else:
        later = transformer(config, device="meta")
    fill(later, model.state_dict())
    assert torch.equal(later(source, target), expected)
    assert torch.equal(copy.deepcopy(later)(source, target), expected)
    assert torch.equal(pickle.loads(pickle.dumps(later))(source, target), expected)
    assert later.generator.weight is later.embedding["source"].weight


# self-attention in one word, and nothing that waits for the device


def test_attention_to_oneself_takes_one_argument():
    layer, x, y = attention(), torch.randn(2, 5, 16), torch.randn(2, 7, 16)
    assert torch.equal(layer(x), layer(x, x, x))
    assert torch.equal(layer(x, y), layer(x, y, y))
