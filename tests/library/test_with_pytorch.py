"""What users of PyTorch try with its modules works with these: export, compile, autocast, meta.

The compiler and the exporters trace the library as its users have it: here nothing checks shapes at
run time.
"""

import copy
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F

from transformer_lib.attention import scaled_dot_product_attention
from transformer_lib.decoding import CachedDecoder, LayerCache, greedy
from transformer_lib.decoding_model import for_decoding
from transformer_lib.multi_head_attention import MultiHeadAttention
from transformer_lib.positional_encoding import SinusoidalPositions, sinusoids
from transformer_lib.transformer import Transformer, TransformerConfig

CONFIG = TransformerConfig(
    50, 50, d_model=32, n_heads=4, d_ff=64, n_encoder_layers=1, n_decoder_layers=1
)
HALVES = (torch.bfloat16, torch.float16)


@pytest.fixture(autouse=True)
def without_shape_checks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Turn off the shape checks at run time, of functions made inside of others too."""
    torch.manual_seed(0)
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    monkeypatch.setattr(jaxtyping, "jaxtyped", lambda **_: lambda function: function)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


def attention(**options: Any) -> MultiHeadAttention:
    return MultiHeadAttention(16, 4, **options).eval()


def transformer(*, device: str | None = None, **options: Any) -> Transformer:
    config = TransformerConfig(**(vars(CONFIG) | options))
    return Transformer(config, device=device).eval()


def sentences(batch: int, length: int) -> Tensor:
    """Return random token ids, in the first sentence with padding at the end."""
    ids = torch.randint(1, 50, (batch, length))
    ids[0, length - length // 3 :] = CONFIG.padding_id
    return ids


# torch.export with lengths that stay open


BATCH, LENGTH, KEYS = Dim("batch", max=64), Dim("length", max=4096), Dim("keys", max=4096)
LENGTHS = (1, 3, 31, 32, 33, 100)


@pytest.mark.slow
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
        """Return both."""
        masked = self.attention(x, causal=True, key_mask=key_mask)
        return masked, self.attention(x, causal=True)


@pytest.mark.slow
def test_an_exported_causal_attention_takes_every_length():
    layer = Causal()
    example = torch.randn(2, 5, 16), torch.ones(2, 5, dtype=torch.bool)
    shapes = {0: BATCH, 1: LENGTH}, {0: BATCH, 1: LENGTH}
    exported = torch.export.export(layer, example, dynamic_shapes=shapes).module()
    for length in LENGTHS:
        x, key_mask = torch.randn(3, length, 16), torch.rand(3, length) > 0.3
        torch.testing.assert_close(exported(x, key_mask), layer(x, key_mask))


@pytest.mark.slow
def test_an_exported_transformer_takes_every_length():
    model = transformer()
    shapes = {0: BATCH, 1: LENGTH}, {0: BATCH, 1: KEYS}
    example = sentences(2, 5), sentences(2, 7)
    exported = torch.export.export(model, example, dynamic_shapes=shapes).module()
    for length, keys in zip(LENGTHS, reversed(LENGTHS), strict=True):
        source, target = sentences(3, length), sentences(3, keys)
        came = exported(source, target)
        torch.testing.assert_close(came, model(source, target), rtol=1e-4, atol=1e-5)


def test_sinusoids_are_exported_where_their_module_went():
    """PyTorch warns of tensors that a graph would have to make anew at every call."""
    positions = SinusoidalPositions(6, 9).to("meta")
    example = torch.zeros(2, 3, 6, device="meta")
    exported = torch.export.export(positions, (example,))
    made = {node.target for node in exported.graph.nodes}
    assert torch.ops.aten.arange.start_step not in made
    positions.to_empty(device="cpu")
    assert torch.equal(positions.table, sinusoids(9, 6))


# torch.compile, all in one graph


class Graphs:
    """A backend that runs graphs as they are and counts them."""

    def __init__(self) -> None:
        torch._dynamo.reset()
        self.count = 0

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
        """Count a graph and return what runs it."""
        self.count += 1
        return graph.forward


LONGER = (5, 7, 40, 90)
# Left to itself, the compiler makes one graph for the first length and one for all others.
COMPILED = pytest.mark.parametrize(("dynamic", "count"), [(True, 1), (None, 2)])


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"causal": True}], ids=["plain", "causal"])
@pytest.mark.parametrize("earlier", [0, 3])
@COMPILED
def test_attention_compiles_once_for_all_lengths(options, earlier, dynamic, count):
    # pytorch/pytorch#124707, pytorch/pytorch#154038: "'is_causal' must be bool, not SymBool"
    layer, graphs = attention(), Graphs()
    compiled = torch.compile(layer, fullgraph=True, dynamic=dynamic, backend=graphs)
    for length in LONGER:
        x = torch.randn(2, length + earlier, 16)
        inputs = (x[:, earlier:], x) if earlier else (x,)
        torch.testing.assert_close(compiled(*inputs, **options), layer(*inputs, **options))
    assert graphs.count == count


@pytest.mark.slow
def test_weights_compile_once_for_all_lengths():
    layer, graphs = attention(), Graphs()
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend=graphs)
    options: dict[str, Any] = {"causal": True, "return_weights": True}
    for length in LONGER:
        x = torch.randn(2, length, 16)
        torch.testing.assert_close(compiled(x, **options), layer(x, **options))
    assert graphs.count == 1


@pytest.mark.slow
@COMPILED
def test_the_transformer_compiles_once_for_all_lengths(dynamic, count):
    model, graphs = transformer(), Graphs()
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic, backend=graphs)
    for length, keys in zip(LONGER, (7, 9, 50, 33), strict=True):
        source, target = sentences(2, length), sentences(2, keys)
        came = compiled(source, target)
        torch.testing.assert_close(came, model(source, target), rtol=1e-4, atol=1e-5)
    assert graphs.count == count


# torch.onnx.export, run by another program


class Encode(nn.Module):
    """The part of a Transformer that runs once a sentence."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, key_mask: Tensor) -> Tensor:
        """Return the encoder's output."""
        return self.model.encode(source, key_mask=key_mask)


class Decode(Encode):
    """The part that runs once a token."""

    def forward(self, target: Tensor, memory: Tensor, memory_key_mask: Tensor) -> Tensor:  # type: ignore[override]
        """Return logits."""
        return self.model.decode(target, memory=memory, memory_key_mask=memory_key_mask)


def in_onnxruntime(model: nn.Module, example: tuple[Tensor, ...], shapes: Any) -> Any:
    """Export a module and return a function that runs what came."""
    reason = "needs the extra: install building-the-transformer[onnx]"
    for name in ("onnx", "onnxscript", "onnxruntime"):
        module = pytest.importorskip(name, reason=reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns of its own imports and of axes' names
        exported = torch.onnx.export(
            model.eval(), example, dynamo=True, dynamic_shapes=shapes, verbose=False
        )
    session = module.InferenceSession(exported.model_proto.SerializeToString())

    def run(*inputs: Tensor) -> Tensor:
        names = [each.name for each in session.get_inputs()]
        (output,) = session.run(None, dict(zip(names, map(Tensor.numpy, inputs), strict=True)))
        return torch.from_numpy(output)

    return run


@pytest.mark.slow
def test_encoder_and_decoder_run_in_onnxruntime():
    model = transformer()
    source, target = sentences(2, 5), sentences(2, 7)
    key_mask, memory = source != CONFIG.padding_id, model.encode(source).detach()
    source_shape, target_shape = {0: BATCH, 1: KEYS}, {0: BATCH, 1: LENGTH}
    encode = in_onnxruntime(Encode(model), (source, key_mask), (source_shape, source_shape))
    shapes = target_shape, source_shape, source_shape
    decode = in_onnxruntime(Decode(model), (target, memory, key_mask), shapes)
    for batch, keys, length in ((3, 9, 4), (1, 40, 50), (2, 1, 1), (4, 100, 33)):
        source, target = sentences(batch, keys), sentences(batch, length)
        key_mask = source != CONFIG.padding_id
        key_mask[-1] = False  # a sentence of padding alone
        expected = model.encode(source, key_mask=key_mask)
        memory = encode(source, key_mask)
        torch.testing.assert_close(memory, expected, rtol=1e-4, atol=1e-5)
        expected = model.decode(target, memory=expected, memory_key_mask=key_mask)
        came = decode(target, memory, key_mask)
        torch.testing.assert_close(came, expected, rtol=1e-4, atol=1e-5)


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
def test_weights_are_rounded_once_under_autocast_too(dtype):
    query, key, value = (torch.randn(2, 4, 5, 8).to(dtype) * 3 for _ in range(3))
    with torch.autocast("cpu", dtype):
        came = scaled_dot_product_attention(query, key, value, return_weights=True)
    expected = scaled_dot_product_attention(query, key, value, return_weights=True)
    assert all(map(torch.equal, came, expected))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("attention_dropout", [0.0, 0.1])
def test_training_under_autocast(dtype, attention_dropout):
    model = transformer(dropout=0.0, attention_dropout=attention_dropout).train()
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


@pytest.mark.parametrize("prepare", [lambda model: model, for_decoding])
@pytest.mark.parametrize("dtype", HALVES)
def test_decoding_under_autocast(dtype, prepare):
    model = transformer()
    decoder_for, source = prepare(model), sentences(3, 6)
    options: dict[str, Any] = {"start": 1, "end": 2, "max_length": 8}
    with torch.autocast("cpu", dtype):
        tokens = greedy(CachedDecoder(decoder_for, source), **options)
    assert tokens.shape[0] == 3
    with torch.no_grad():
        exact = model(source, torch.ones(3, 1, dtype=torch.long))[:, -1]
        first = exact.gather(1, tokens[:, :1]).squeeze(1)
    torch.testing.assert_close(first, exact.amax(dim=1), rtol=5e-2, atol=5e-2)  # a near tie at most


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
    model = transformer(positions=positions)
    source, target = sentences(2, 6), sentences(2, 5)
    expected = model(source, target)
    if where == "built there":
        with torch.device("meta"):
            later = transformer(positions=positions)
    elif where == "moved there":
        later = transformer(positions=positions).to("meta")
        later(source.to("meta"), target.to("meta"))
    else:
        later = transformer(device="meta", positions=positions)
    fill(later, model.state_dict())
    for each in (later, copy.deepcopy(later), pickle.loads(pickle.dumps(later))):
        assert torch.equal(each(source, target), expected)
        assert each.generator.weight is each.embedding["source"].weight


# self-attention in one word, and nothing that waits for the device


def test_attention_to_oneself_takes_one_argument():
    layer, x, y = attention(), torch.randn(2, 5, 16), torch.randn(2, 7, 16)
    assert torch.equal(layer(x), layer(x, x, x))
    assert torch.equal(layer(x, y), layer(x, y, y))


@pytest.mark.parametrize("training", [False, True])
def test_nothing_waits_for_the_device(training):
    """On meta there is no number to wait for: whoever asks for one fails."""
    model = transformer(device="meta", attention_dropout=0.1).train(training)
    source, target = sentences(2, 6).to("meta"), sentences(2, 5).to("meta")
    logits = model(source, target, target_key_mask=target != 0)
    F.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
    memory, caches = model.encode(source), [LayerCache()]
    for step in range(2):
        token = target[:, step : step + 1]
        logits = model.decode(token, memory=memory, offset=step, cache=caches)
    assert logits.shape == (2, 1, 50)


def test_numbers_are_read_to_check_ids_on_the_cpu_and_for_nothing_else():
    model = transformer()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        model(sentences(2, 6), sentences(2, 5))
    events = {event.key: event.count for event in profile.key_averages()}
    assert events["aten::_local_scalar_dense"] == 4  # the smallest and largest id of both


# two processes


@pytest.mark.slow
def test_two_processes_share_the_layers(tmp_path):
    # pytorch/pytorch#114299: parameters used outside of forward are "mixed Tensor and DTensor"
    script = Path(__file__).with_name("two_processes.py")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(tmp_path / "store")],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    try:
        for process in processes:
            output, _ = process.communicate(timeout=180)
            assert output == "the same\n"
    finally:
        for process in processes:
            process.kill()
