"""Add & norm: the numbers of PyTorch's layer normalisation, and both orders as written."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib.add_norm import AddNorm, LayerNorm, layer_norm

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
BY_HAND = [-1.3416, -0.4472, 0.4472, 1.3416]


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def double_norm(d_model: int, eps: float = 1e-5) -> LayerNorm:
    """Return a module in float64 whose gain and bias are not 1 and 0."""
    norm = LayerNorm(d_model, eps=eps).double()
    norm.load_state_dict({"weight": random(d_model, seed=1), "bias": random(d_model, seed=2)})
    return norm


# Parity


def test_one_to_four_by_hand():
    x = torch.tensor([1.0, 2.0, 3.0, 4.0])
    torch.testing.assert_close(layer_norm(x), torch.tensor(BY_HAND), atol=1e-4, rtol=0)
    exact = layer_norm(x.double(), eps=0.25)  # the variance is 1.25
    torch.testing.assert_close(exact, (x.double() - 2.5) / 1.5**0.5)


@pytest.mark.parametrize("eps", [1e-12, 1e-5, 0.5])
@pytest.mark.parametrize("shape", [(6,), (3, 6), (2, 3, 6), (2, 1, 3, 6)])
def test_values_and_gradients_are_those_of_torch(eps, shape):
    ours, theirs = double_norm(6, eps), nn.LayerNorm(6, eps=eps).double()
    theirs.load_state_dict(dict(zip(("weight", "bias"), ours.state_dict().values(), strict=True)))
    x, grad = (3 * random(*shape) + 2).requires_grad_(), random(*shape, seed=3)
    expected = theirs(x)
    their_grads = torch.autograd.grad(expected, (x, *theirs.parameters()), grad)
    for result in (ours(x), layer_norm(x, eps=eps) * ours.weight + ours.bias):
        torch.testing.assert_close(result, expected)
        our_grads = torch.autograd.grad(result, (x, *ours.parameters()), grad)
        for came, wanted in zip(our_grads, their_grads, strict=True):
            torch.testing.assert_close(came, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("eps", [1e-12, 1e-5])
def test_every_float_dtype(dtype, eps):
    x = (300 * random(20, 64)).to(dtype).requires_grad_()  # 300² overflows float16
    grad = random(20, 64, seed=1, dtype=dtype)
    ours, theirs = layer_norm(x, eps=eps), F.layer_norm(x, (64,), eps=eps)
    module = LayerNorm(64, eps=eps).to(dtype)(x)
    assert ours.dtype == module.dtype == dtype
    # Computed in float32 and rounded once: at most the last digit differs.
    tolerance = 2 * torch.finfo(dtype).eps if dtype.itemsize == 2 else 20 * torch.finfo(dtype).eps
    for result in (ours, module):
        torch.testing.assert_close(result, theirs, atol=tolerance, rtol=tolerance)
    (our_grad,) = torch.autograd.grad(ours, x, grad)
    (their_grad,) = torch.autograd.grad(theirs, x, grad)
    assert our_grad.dtype == dtype
    torch.testing.assert_close(our_grad, their_grad, atol=tolerance, rtol=2 * tolerance)


@pytest.mark.parametrize("eps", [1e-5, 0.5])
def test_gradcheck(eps):
    x = random(3, 5).requires_grad_()
    norm = double_norm(5, eps)
    assert torch.autograd.gradcheck(lambda x: layer_norm(x, eps=eps), x)
    assert torch.autograd.gradcheck(
        lambda x, weight, bias: torch.func.functional_call(
            norm, {"weight": weight, "bias": bias}, (x,)
        ),
        (x, *norm.parameters()),
    )


@pytest.mark.parametrize("norm_first", [False, True])
def test_gradcheck_of_add_norm(norm_first):
    add_norm = AddNorm(5, norm_first=norm_first).double()
    x, W = random(3, 5).requires_grad_(), random(5, 5, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, W: add_norm(x, lambda y: (y @ W).tanh()), (x, W))


# The gradient as derived


@given(st.integers(2, 8), st.floats(0.1, 100), st.integers(0, 1000))
def test_the_gradient_is_the_formula(d, scale, seed):
    x = (scale * random(3, d, seed=seed)).requires_grad_()
    g, eps = random(3, d, seed=seed + 1), 0.01
    (came,) = torch.autograd.grad(layer_norm(x, eps=eps), x, g)
    hat = layer_norm(x, eps=eps).detach()
    s = torch.sqrt(x.detach().var(dim=-1, keepdim=True, correction=0) + eps)
    expected = (g - g.mean(-1, keepdim=True) - hat * (g * hat).mean(-1, keepdim=True)) / s
    torch.testing.assert_close(came, expected, atol=1e-10, rtol=1e-8)
    torch.testing.assert_close(came.sum(dim=-1), torch.zeros(3).double(), atol=1e-10, rtol=0)


def test_without_epsilon_the_gradient_is_orthogonal_to_the_result():
    x = random(4, 6).requires_grad_()
    result = layer_norm(x, eps=0.0)
    (grad,) = torch.autograd.grad(result, x, random(4, 6, seed=1))
    torch.testing.assert_close((grad * result).sum(-1), torch.zeros(4).double(), atol=1e-12, rtol=0)
    assert grad.norm() > 0.1


def test_the_jacobian_removes_two_directions():
    jacobian = torch.autograd.functional.jacobian(lambda x: layer_norm(x, eps=0.0), random(7))
    torch.testing.assert_close(jacobian, jacobian.T)
    assert torch.linalg.matrix_rank(jacobian, atol=1e-9) == 5


# Properties


@given(st.integers(1, 4), st.integers(2, 9), st.floats(0.1, 1000), st.integers(0, 1000))
def test_mean_zero_and_biased_variance_one(tokens, d, scale, seed):
    result = layer_norm(scale * random(tokens, d, seed=seed) + 5, eps=0.0)
    zeros, ones = torch.zeros(tokens).double(), torch.ones(tokens).double()
    torch.testing.assert_close(result.mean(dim=-1), zeros, atol=1e-9, rtol=0)
    torch.testing.assert_close(result.var(dim=-1, correction=0), ones)
    torch.testing.assert_close(result.norm(dim=-1), ones * d**0.5)


@given(st.floats(0.01, 100), st.floats(-100, 100), st.integers(0, 1000))
def test_shift_and_scale_change_nothing(scale, shift, seed):
    x = random(3, 6, seed=seed)
    torch.testing.assert_close(
        layer_norm(scale * x + shift, eps=0.0), layer_norm(x, eps=0.0), atol=1e-8, rtol=1e-8
    )


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 1000))
def test_tokens_do_not_meet(sentences, positions, seed):
    x = random(sentences, positions, 6, seed=seed)
    changed = x.clone()
    changed[-1, -1] += random(6, seed=seed + 1)
    for norm in (layer_norm, double_norm(6)):
        moved = norm(changed) - norm(x)
        assert moved[-1, -1].abs().max() > 0
        moved[-1, -1] = 0
        assert moved.eq(0).all()
        torch.testing.assert_close(norm(x)[0, 0], norm(x[0, 0]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("eps", [1e-12, 1e-5])
def test_constant_vectors_give_zeros_and_finite_gradients(dtype, eps):
    for value in (0.0, 3.0):
        x = torch.full((2, 8), value, dtype=dtype, requires_grad=True)
        result = layer_norm(x, eps=eps)
        result.sum().backward()
        assert result.eq(0).all()
        assert x.grad.isfinite().all()


def test_epsilon_stands_inside_the_root():
    x = torch.tensor([1.0, 1.0 + 1e-9], dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(layer_norm, x)
    assert torch.linalg.matrix_norm(jacobian, 2).item() == pytest.approx(1e-5**-0.5, rel=1e-3)


def test_one_entry_is_its_own_mean():
    assert layer_norm(random(3, 1)).eq(0).all()


@pytest.mark.parametrize("shape", [(0, 4), (2, 0, 4), (0,), (2, 0)])
def test_zero_sizes(shape):
    x = random(*shape).requires_grad_()
    for result in (layer_norm(x), LayerNorm(shape[-1]).double()(x)):
        result.sum().backward()
        assert result.shape == x.grad.shape == shape


def test_nan_and_infinity_stay_in_their_vector():
    x = random(3, 4)
    before = layer_norm(x)
    for broken in (float("nan"), float("inf")):
        x[1, 2] = broken
        for norm in (layer_norm, LayerNorm(4).double()):
            assert norm(x)[1].isnan().all()
            torch.testing.assert_close(norm(x)[[0, 2]], before[[0, 2]])


def test_the_input_is_not_changed():
    x = random(3, 4)
    before = x.clone()
    layer_norm(x)
    LayerNorm(4).double()(x)
    AddNorm(4).double()(x, torch.sin)
    AddNorm(4, norm_first=True).double()(x, torch.sin)
    assert torch.equal(x, before)


def test_parameters_and_how_they_start():
    norm = LayerNorm(512)
    assert {name: tuple(p.shape) for name, p in norm.named_parameters()} == {
        "weight": (512,),
        "bias": (512,),
    }
    assert norm.weight.eq(1).all()
    assert norm.bias.eq(0).all()
    assert norm.eps == 1e-5
    assert set(AddNorm(512).state_dict()) == {"norm.weight", "norm.bias"}


# Both orders


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_sublayer_of_zeros_tells_the_orders_apart(norm_first):
    # harvardnlp/annotated-transformer#1, #92, #110; codertimo/BERT-pytorch#83
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    result = AddNorm(4, norm_first=norm_first)(x, lambda y: 0 * y)
    expected = x if norm_first else torch.tensor([BY_HAND])
    torch.testing.assert_close(result, expected, atol=1e-4, rtol=0)


def test_post_norm_is_the_default():
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    assert torch.equal(AddNorm(4)(x, torch.sin), AddNorm(4, norm_first=False)(x, torch.sin))
    assert not torch.allclose(AddNorm(4)(x, torch.sin), AddNorm(4, norm_first=True)(x, torch.sin))


def test_the_identity_as_sublayer():
    # codertimo/BERT-pytorch#83
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    post = AddNorm(4)(x, lambda y: y)
    pre = AddNorm(4, norm_first=True)(x, lambda y: y)
    torch.testing.assert_close(post, torch.tensor([BY_HAND]), atol=1e-4, rtol=0)
    torch.testing.assert_close(pre, x + torch.tensor([BY_HAND]), atol=1e-4, rtol=0)


@pytest.mark.parametrize("norm_first", [False, True])
def test_it_is_the_feed_forward_half_of_pytorchs_encoder_layer(norm_first):
    layer = nn.TransformerEncoderLayer(
        6, 1, 9, dropout=0.0, norm_first=norm_first, layer_norm_eps=1e-3
    )
    x = random(2, 5, 6, dtype=torch.float32)
    add_norm = AddNorm(6, norm_first=norm_first, eps=1e-3)
    nn.init.normal_(layer.norm2.weight)
    nn.init.normal_(layer.norm2.bias)
    add_norm.norm.load_state_dict({"weight": layer.norm2.weight, "bias": layer.norm2.bias})
    if norm_first:
        expected = x + layer._ff_block(layer.norm2(x))
    else:
        expected = layer.norm2(x + layer._ff_block(x))
    torch.testing.assert_close(add_norm(x, layer._ff_block), expected)


def test_the_residual_carries_the_gradient_past_a_dead_sublayer():
    x = random(3, 4).requires_grad_()
    grad = random(3, 4, seed=1)
    result = AddNorm(4, norm_first=True).double()(x, lambda y: 0 * y)
    assert torch.equal(torch.autograd.grad(result, x, grad)[0], grad)


def test_dropout_falls_on_the_sublayer_and_only_in_training():
    x, ones = torch.zeros(1, 1000), torch.ones(1, 1000)
    add_norm = AddNorm(1000, norm_first=True, dropout=0.25)
    torch.manual_seed(0)
    result = add_norm(x + 5, lambda y: ones) - 5
    kept = result != 0
    torch.testing.assert_close(result[kept], torch.full_like(result[kept], 1 / 0.75))
    assert kept.double().mean().item() == pytest.approx(0.75, abs=0.05)
    assert torch.equal(add_norm.eval()(x, lambda y: ones), ones)
    post = AddNorm(1000, dropout=1.0)
    spread = random(1, 1000, dtype=torch.float32)
    torch.testing.assert_close(post(spread, lambda y: 9 * y), layer_norm(spread))


def test_the_variance_of_a_pre_norm_stack_grows_and_that_of_a_post_norm_stack_does_not():
    # harvardnlp/harvardnlp.github.io#6: where the norm on top of the stack comes from
    x = random(50, 16)
    layers = [random(16, 16, seed=seed) / 4 for seed in range(1, 13)]
    spread = {}
    for norm_first in (False, True):
        add_norm, y = AddNorm(16, norm_first=norm_first).double(), x
        for W in layers:
            y = add_norm(y, lambda z, W=W: z @ W)
        spread[norm_first] = y.var(dim=-1, correction=0).mean().item()
        final = layer_norm(y)
        torch.testing.assert_close(final.mean(-1), torch.zeros(50).double(), atol=1e-9, rtol=0)
        torch.testing.assert_close(
            final.var(-1, correction=0), torch.ones(50).double(), atol=1e-4, rtol=0
        )
    assert spread[False] == pytest.approx(1, abs=1e-4)
    assert spread[True] > 6


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("norm_first", [False, True])
def test_add_norm_in_every_float_dtype(dtype, norm_first):
    x = random(3, 8, dtype=dtype).requires_grad_()
    result = AddNorm(8, norm_first=norm_first).to(dtype)(x, torch.tanh)
    result.sum().backward()
    assert result.dtype == x.grad.dtype == dtype
    exact = AddNorm(8, norm_first=norm_first).double()(x.detach().double(), torch.tanh)
    tolerance = 8 * torch.finfo(dtype).eps
    torch.testing.assert_close(result.detach().double(), exact, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("shape", [(0, 4), (2, 0, 4)])
def test_add_norm_without_vectors(norm_first, shape):
    assert AddNorm(4, norm_first=norm_first)(torch.zeros(shape), torch.sin).shape == shape
