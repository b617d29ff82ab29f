"""The feed-forward network: PyTorch's numbers, position by position, for every shape and dtype."""

import copy
import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib.feed_forward import ACTIVATIONS, FeedForward

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
NAMES = ("relu", "gelu", "gelu_tanh", "silu")


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def network(
    d_model: int = 4, d_ff: int = 7, *, activation: str = "relu", dropout: float = 0.0
) -> FeedForward:
    """Return a network in float64 whose biases are not zero."""
    torch.manual_seed(0)
    made = FeedForward(d_model, d_ff, activation=activation, dropout=dropout).double()
    nn.init.normal_(made.inner.bias)
    nn.init.normal_(made.outer.bias)
    return made


# Parity


def test_every_number_by_hand():
    ours, x = network(), random(3, 4)
    W_1, b_1 = ours.inner.weight.T, ours.inner.bias
    W_2, b_2 = ours.outer.weight.T, ours.outer.bias
    expected = torch.zeros(3, 4, dtype=torch.float64)
    for position in range(3):
        for out in range(4):
            total = b_2[out].item()
            for unit in range(7):
                before = sum(x[position, i] * W_1[i, unit] for i in range(4)) + b_1[unit]
                total += max(0.0, before.item()) * W_2[unit, out].item()
            expected[position, out] = total
    torch.testing.assert_close(ours(x), expected)


@pytest.mark.parametrize("activation", NAMES)
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (2, 1, 3, 4)])
def test_values_and_gradients_are_those_of_torch(activation, shape):
    theirs_of = {"relu": nn.ReLU(), "gelu": nn.GELU(), "gelu_tanh": nn.GELU("tanh")}
    function = theirs_of.get(activation, nn.SiLU())
    ours = network(activation=activation)
    theirs = nn.Sequential(nn.Linear(4, 7), function, nn.Linear(7, 4)).double()
    theirs.load_state_dict(dict(zip(theirs.state_dict(), ours.state_dict().values(), strict=True)))
    x, grad = random(*shape).requires_grad_(), random(*shape, seed=1)
    torch.testing.assert_close(ours(x), theirs(x))
    for came, expected in zip(
        torch.autograd.grad(ours(x), (x, *ours.parameters()), grad),
        torch.autograd.grad(theirs(x), (x, *theirs.parameters()), grad),
        strict=True,
    ):
        torch.testing.assert_close(came, expected)


def test_it_is_the_block_of_an_encoder_layer():
    layer = nn.TransformerEncoderLayer(4, 1, 7, dropout=0.0).double()
    ours = network()
    ours.inner.load_state_dict(layer.linear1.state_dict())
    ours.outer.load_state_dict(layer.linear2.state_dict())
    x = random(2, 5, 4)
    torch.testing.assert_close(ours(x), layer._ff_block(x))


def test_it_is_two_convolutions_of_width_one():
    ours, x = network(), random(2, 5, 4)
    hidden = F.conv1d(x.mT, ours.inner.weight.unsqueeze(-1), ours.inner.bias).relu()
    result = F.conv1d(hidden, ours.outer.weight.unsqueeze(-1), ours.outer.bias)
    torch.testing.assert_close(ours(x), result.mT)


def test_activations_at_known_points():
    x = torch.tensor([-1.0, 0.0, 2.0], dtype=torch.float64)
    assert ACTIVATIONS["relu"](x).tolist() == [0, 0, 2]
    by_erf = 0.5 * x * (1 + torch.erf(x / 2**0.5))
    torch.testing.assert_close(ACTIVATIONS["gelu"](x), by_erf, atol=1e-12, rtol=0)
    inner = (2 / math.pi) ** 0.5 * (x + 0.044715 * x**3)  # Hendrycks and Gimpel (2016), section 2
    by_tanh = 0.5 * x * (1 + torch.tanh(inner))
    torch.testing.assert_close(ACTIVATIONS["gelu_tanh"](x), by_tanh, atol=1e-12, rtol=0)
    assert (by_tanh - by_erf).abs().max() > 1e-4  # the two are not the same
    torch.testing.assert_close(ACTIVATIONS["silu"](x), x / (1 + torch.exp(-x)))


@pytest.mark.parametrize("activation", NAMES)
def test_gradcheck(activation):
    ours, x = network(activation=activation), random(3, 4).requires_grad_()

    def result(x: Tensor, *parameters: Tensor) -> Tensor:
        named = dict(zip(dict(ours.named_parameters()), parameters, strict=True))
        return torch.func.functional_call(ours, named, (x,))

    assert torch.autograd.gradcheck(result, (x, *ours.parameters()))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("activation", NAMES)
def test_every_float_dtype(dtype, activation):
    ours = network(16, 32, activation=activation)
    x = random(5, 16, dtype=dtype)
    expected = ours(x.double())
    rounded = copy.deepcopy(ours).to(dtype)
    result = rounded(x)
    assert result.dtype == dtype
    tolerance = 30 * torch.finfo(dtype).eps
    torch.testing.assert_close(result.double(), expected, atol=tolerance, rtol=tolerance)
    result.sum().backward()
    assert all(p.grad.dtype == dtype and p.grad.isfinite().all() for p in rounded.parameters())


# Positions


@given(st.integers(1, 6), st.integers(0, 1000))
def test_positions_do_not_meet(positions, seed):
    ours, x = network(), random(2, positions, 4, seed=seed)
    result, changed = ours(x), x.clone()
    changed[1, -1] += 1
    moved = ours(changed) - result
    assert moved[1, -1].abs().max() > 0
    moved[1, -1] = 0
    assert moved.abs().max() < 1e-12
    for sentence in range(2):
        for position in range(positions):
            torch.testing.assert_close(result[sentence, position], ours(x[sentence, position]))


@given(st.integers(1, 6), st.integers(0, 1000))
def test_a_permutation_of_positions_goes_through(positions, seed):
    ours, x = network(), random(positions, 4, seed=seed)
    order = torch.randperm(positions, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(ours(x[order]), ours(x)[order])


@pytest.mark.parametrize("shape", [(0, 4), (2, 0, 4), (0, 3, 4)])
def test_no_vectors(shape):
    ours, x = network(), random(*shape).requires_grad_()
    result = ours(x)
    result.sum().backward()
    assert result.shape == x.grad.shape == shape
    assert all(p.grad.eq(0).all() for p in ours.parameters())


def test_nan_and_infinity_stay_at_their_position():
    ours, x = network(activation="gelu"), random(3, 4)
    before = ours(x)
    for broken in (float("nan"), float("inf")):
        x[1, 2] = broken
        result = ours(x)
        assert not result[1].isfinite().all()
        torch.testing.assert_close(result[[0, 2]], before[[0, 2]])


def test_the_input_is_not_changed():
    ours, x = network(), random(3, 4)
    before = x.clone()
    ours(x)
    assert torch.equal(x, before)


# Parameters


def test_number_and_names_of_parameters():
    shapes = {n: tuple(p.shape) for n, p in FeedForward(512, 2048).named_parameters()}
    assert shapes == {
        "inner.weight": (2048, 512),
        "inner.bias": (2048,),
        "outer.weight": (512, 2048),
        "outer.bias": (512,),
    }


def test_weights_start_xavier_uniform_and_biases_zero():
    torch.manual_seed(0)
    made = FeedForward(64, 256)
    bound = (6 / (64 + 256)) ** 0.5
    for layer in (made.inner, made.outer):
        assert layer.bias.eq(0).all()
        assert 0.99 * bound < layer.weight.abs().max() <= bound
        assert layer.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.03)


def test_two_networks_of_one_seed_differ_and_repeat():
    # pytorch/pytorch#86274: layers that start with equal weights
    torch.manual_seed(3)
    first, second = FeedForward(4, 7), FeedForward(4, 7)
    torch.manual_seed(3)
    again = FeedForward(4, 7)
    assert not torch.equal(first.inner.weight, second.inner.weight)
    assert torch.equal(first.inner.weight, again.inner.weight)


def test_parameters_grow_with_the_number_of_layers():
    # espnet/espnet#1278: one layer looped over in place of several
    one, two = (nn.ModuleList(FeedForward(4, 7) for _ in range(n)) for n in (1, 2))
    assert len(list(two.parameters())) == 2 * len(list(one.parameters()))
    assert {name.split(".")[0] for name in two.state_dict()} == {"0", "1"}


# Dropout


def test_dropout_in_training_only_and_between_the_layers():
    ours, x = network(4, 4000, dropout=0.25), random(1, 4)
    between: list[Tensor] = []
    ours.outer.register_forward_pre_hook(lambda _, arguments: between.extend(arguments))
    torch.manual_seed(0)
    result = ours(x)
    ours.eval()(x)
    dropped, hidden = between
    torch.testing.assert_close(hidden, ours.activation(ours.inner(x)))
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], hidden[kept] / 0.75)
    assert kept[hidden > 0].double().mean().item() == pytest.approx(0.75, abs=0.05)
    torch.testing.assert_close(result, F.linear(dropped, ours.outer.weight, ours.outer.bias))


def test_no_dropout_unless_asked_for():
    ours, x = network(), random(3, 4)
    assert torch.equal(ours.train()(x), ours.eval()(x))


def test_names_of_activations_are_those_of_a_configuration():
    assert json.loads(json.dumps(list(ACTIVATIONS))) == list(NAMES)
