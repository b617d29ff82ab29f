"""Weighted sums: the same numbers as PyTorch's, and the promises of convex weights."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from transformer_lib.weighted_sum import is_convex, weighted_sum

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def convex_rows(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(shape, generator=generator, dtype=torch.float64) + 1e-3
    return (weights / weights.sum(dim=-1, keepdim=True)).to(dtype)


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


@st.composite
def convex_sums(draw):
    """Draw convex weights (queries, keys) and values (keys, d_v) of every small size and scale."""
    queries, keys, d_v = (draw(st.integers(1, 6)) for _ in range(3))
    seed = draw(st.integers(0, 1000))
    scale = draw(st.sampled_from([1e-3, 1.0, 1e3]))
    sharpness = draw(st.sampled_from([0.0, 1.0, 30.0]))
    weights = (sharpness * random(queries, keys, seed=seed)).softmax(dim=-1)
    return weights, scale * random(keys, d_v, seed=seed + 1)


# Parity


def test_every_entry_by_hand():
    weights, values = random(3, 4), random(4, 2, seed=1)
    result = weighted_sum(weights, values)
    for i in range(3):
        for c in range(2):
            by_hand = sum(weights[i, j] * values[j, c] for j in range(4))
            torch.testing.assert_close(result[i, c], by_hand)


def test_embedding_bag_gives_the_same_results_and_gradients():
    weights, values = random(7, 5).requires_grad_(), random(5, 4, seed=1).requires_grad_()
    grad = random(7, 4, seed=2)
    keys = torch.arange(5).expand(7, 5)
    theirs = torch.nn.functional.embedding_bag(keys, values, mode="sum", per_sample_weights=weights)
    ours = weighted_sum(weights, values)
    torch.testing.assert_close(ours, theirs)
    for a, b in zip(
        torch.autograd.grad(ours, (weights, values), grad),
        torch.autograd.grad(theirs, (weights, values), grad),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    ("weights_batch", "values_batch"),
    [((), ()), ((2,), (2,)), ((2, 3), ()), ((), (2, 3)), ((2, 1), (3,)), ((1, 3), (2, 1))],
)
def test_batch_axes_broadcast(weights_batch, values_batch):
    weights, values = random(*weights_batch, 4, 5), random(*values_batch, 5, 6, seed=1)
    result = weighted_sum(weights, values)
    torch.testing.assert_close(result, torch.einsum("...qk,...kd->...qd", weights, values))
    assert result.shape == (*torch.broadcast_shapes(weights_batch, values_batch), 4, 6)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_float_dtype(dtype):
    weights, values = convex_rows(3, 5, dtype=dtype), random(5, 4, dtype=dtype)
    result = weighted_sum(weights, values)
    assert result.dtype == dtype
    expected = weighted_sum(weights.double(), values.double())
    tolerance = 8 * torch.finfo(dtype).eps
    torch.testing.assert_close(result.double(), expected, atol=tolerance, rtol=tolerance)


# What convex weights promise


@given(convex_sums())
def test_coordinates_stay_between_those_of_the_values(case):
    weights, values = case
    result = weighted_sum(weights, values)
    slack = 1e-12 * values.abs().max()
    assert (result >= values.amin(dim=0) - slack).all()
    assert (result <= values.amax(dim=0) + slack).all()


@given(convex_sums(), st.integers(0, 1000))
def test_results_stay_between_the_values_along_every_direction(case, seed):
    weights, values = case
    direction = random(values.shape[1], seed=seed)
    along, heights = weighted_sum(weights, values) @ direction, values @ direction
    slack = 1e-12 * values.abs().max() * direction.abs().sum()
    assert (along >= heights.min() - slack).all()
    assert (along <= heights.max() + slack).all()


@given(convex_sums())
def test_a_weight_near_one_leaves_the_others_no_room(case):
    weights, values = case
    to_values = torch.cdist(weighted_sum(weights, values), values)
    farthest = torch.cdist(values, values).amax(dim=0)
    # cdist may take a square root of rounding noise.
    slack = 1e-6 * values.abs().max()
    assert (to_values <= (1 - weights) * farthest + slack).all()


@given(convex_sums(), st.integers(0, 1000))
def test_values_moved_together_move_the_results(case, seed):
    weights, values = case
    shift = random(values.shape[1], seed=seed)
    torch.testing.assert_close(
        weighted_sum(weights, values + shift), weighted_sum(weights, values) + shift
    )


def test_one_hot_rows_select():
    values = random(5, 3)
    order = torch.tensor([3, 0, 4, 4])
    one_hot = torch.eye(5, dtype=torch.float64)[order]
    assert torch.equal(weighted_sum(one_hot, values), values[order])


def test_equal_weights_average():
    values = random(5, 3)
    mean = weighted_sum(torch.full((1, 5), 0.2, dtype=torch.float64), values)
    torch.testing.assert_close(mean[0], values.mean(dim=0))


# What holds for all weights


@given(st.permutations(range(5)))
def test_the_order_of_keys_is_nothing(order):
    weights, values = random(3, 5), random(5, 4, seed=1)
    torch.testing.assert_close(
        weighted_sum(weights[:, order], values[order]), weighted_sum(weights, values)
    )


@given(st.permutations(range(4)))
def test_queries_keep_their_order_and_do_not_meet(order):
    weights, values = random(4, 5), random(5, 3, seed=1)
    torch.testing.assert_close(
        weighted_sum(weights[order], values), weighted_sum(weights, values)[order]
    )
    torch.testing.assert_close(weighted_sum(weights[:1], values), weighted_sum(weights, values)[:1])


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_it_is_linear_in_each_argument(a, b):
    weights, other_weights = random(3, 5), random(3, 5, seed=1)
    values, other_values = random(5, 4, seed=2), random(5, 4, seed=3)
    torch.testing.assert_close(
        weighted_sum(a * weights + b * other_weights, values),
        a * weighted_sum(weights, values) + b * weighted_sum(other_weights, values),
    )
    torch.testing.assert_close(
        weighted_sum(weights, a * values + b * other_values),
        a * weighted_sum(weights, values) + b * weighted_sum(weights, other_values),
    )


# Gradients


@pytest.mark.parametrize("values_batch", [(), (2,)])
def test_gradcheck(values_batch):
    weights = random(2, 3, 4).requires_grad_()
    values = random(*values_batch, 4, 5, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(weighted_sum, (weights, values))
    assert torch.autograd.gradgradcheck(weighted_sum, (weights, values))


def test_gradients_are_those_of_the_chapter():
    weights, values = random(3, 4).requires_grad_(), random(4, 5, seed=1).requires_grad_()
    grad = random(3, 5, seed=2)
    weighted_sum(weights, values).backward(grad)
    torch.testing.assert_close(weights.grad, grad @ values.T)
    torch.testing.assert_close(values.grad, weights.T @ grad)


def test_a_value_without_weight_learns_nothing():
    values = random(3, 2).requires_grad_()
    weights = torch.tensor([[0.5, 0.5, 0.0]], dtype=torch.float64)
    weighted_sum(weights, values).sum().backward()
    assert torch.equal(values.grad[2], torch.zeros(2, dtype=torch.float64))


# Zero sizes, NaN


@pytest.mark.parametrize(
    ("batch", "queries", "keys", "d_v"), [(0, 2, 3, 4), (2, 0, 3, 4), (2, 2, 0, 4), (2, 2, 3, 0)]
)
def test_zero_sizes(batch, queries, keys, d_v):
    weights = random(batch, queries, keys).requires_grad_()
    values = random(batch, keys, d_v, seed=1).requires_grad_()
    result = weighted_sum(weights, values)
    result.sum().backward()
    assert result.shape == (batch, queries, d_v)
    assert weights.grad.shape == weights.shape
    assert values.grad.shape == values.shape
    if keys == 0:
        assert torch.equal(result, torch.zeros(batch, queries, d_v, dtype=torch.float64))


@pytest.mark.parametrize("broken", [float("nan"), float("inf"), float("-inf")])
def test_a_broken_value_reaches_every_result_also_under_weight_zero(broken):
    values = random(3, 2)
    values[2, 0] = broken
    weights = torch.tensor([[0.5, 0.5, 0.0]], dtype=torch.float64)
    result = weighted_sum(weights, values)
    assert result[0, 0].isnan()
    torch.testing.assert_close(result[0, 1], values[:2, 1].mean())


def test_a_nan_weight_spoils_its_own_row_only():
    weights = convex_rows(2, 3)
    weights[0, 1] = float("nan")
    result = weighted_sum(weights, random(3, 2))
    assert result[0].isnan().all()
    assert result[1].isfinite().all()


# is_convex


def test_rows_are_told_apart():
    weights = torch.tensor(
        [
            [0.2, 0.3, 0.5],
            [0.0, 1.0, 0.0],
            [-0.5, 1.5, 0.0],  # sum 1, but one is negative
            [0.2, 0.3, 0.4],  # sum too small
            [0.4, 0.4, 0.4],  # sum too large
            [-1.0, 0.0, 0.0],
        ]
    )
    expected = torch.tensor([True, True, False, False, False, False])
    assert torch.equal(is_convex(weights), expected)


def test_rows_are_judged_along_the_last_axis():
    weights = torch.tensor([[0.5, 0.5], [0.9, 0.1]])
    assert is_convex(weights).tolist() == [True, True]
    assert is_convex(weights.T).tolist() == [False, False]
    assert is_convex(torch.full((4, 3, 2), 0.5)).shape == (4, 3)
    assert is_convex(torch.tensor([0.5, 0.5])).shape == ()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("keys", [1, 3, 1000, 50_000])
@pytest.mark.parametrize("scale", [0.0, 1.0, 5.0])
def test_every_softmax_is_convex(dtype, keys, scale):
    weights = (scale * random(8, keys)).to(dtype).softmax(dim=-1)
    assert is_convex(weights).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tenth_too_much_or_too_little_is_noticed(dtype):
    weights = convex_rows(4, 6, dtype=dtype)
    assert is_convex(weights).all()
    assert not is_convex(1.1 * weights).any()
    assert not is_convex(0.9 * weights).any()


def test_a_negative_weight_has_no_tolerance():
    weights = torch.tensor([1.0, 1e-6, -1e-6])
    assert not is_convex(weights)
    assert not is_convex(weights, tolerance=1.0)


def test_the_tolerance_of_the_sum():
    half_off = torch.tensor([0.5, 0.25])
    assert is_convex(half_off, tolerance=0.25)
    assert not is_convex(half_off, tolerance=0.2)
    nearly = torch.tensor([0.5, 0.50001])
    assert is_convex(nearly)
    assert not is_convex(nearly, tolerance=0.0)
    assert is_convex(torch.tensor([0.5, 0.5]), tolerance=0.0)


@pytest.mark.parametrize("broken", [float("nan"), float("inf"), float("-inf")])
def test_broken_rows_are_not_convex(broken):
    weights = torch.tensor([[1.0, 0.0], [1.0, broken]])
    assert is_convex(weights).tolist() == [True, False]


def test_nothing_cannot_be_averaged():
    assert is_convex(torch.zeros(2, 0)).tolist() == [False, False]
    assert is_convex(torch.zeros(0, 3)).shape == (0,)


@given(convex_sums(), convex_sums())
def test_convex_weights_of_convex_weights_are_convex(first, second):
    inner = second[0]
    outer = convex_rows(first[0].shape[0], inner.shape[0])
    assert is_convex(weighted_sum(outer, inner)).all()
