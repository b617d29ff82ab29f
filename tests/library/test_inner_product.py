"""Inner products and cosines: PyTorch's numbers, the geometry, and the values at the edges."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from transformer_lib.inner_product import cosine_similarity, inner_product, unit_vectors

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
BOTH = pytest.mark.parametrize("function", [inner_product, cosine_similarity])


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def pytorch_cosine(query: Tensor, key: Tensor) -> Tensor:
    query, key = query[..., :, None, :], key[..., None, :, :]
    return torch.nn.functional.cosine_similarity(query, key, dim=-1)


@st.composite
def vectors(draw):
    """Draw queries (queries, d_k) and keys (keys, d_k) of every small size and of many lengths."""
    queries, keys, d_k = (draw(st.integers(1, 6)) for _ in range(3))
    seed = draw(st.integers(0, 1000))
    scales = [draw(st.sampled_from([1e-3, 1.0, 1e3])) for _ in range(2)]
    return scales[0] * random(queries, d_k, seed=seed), scales[1] * random(keys, d_k, seed=seed + 1)


# Parity


def test_every_entry_by_hand():
    query, key = random(2, 3), random(4, 3, seed=1)
    scores, cosines = inner_product(query, key), cosine_similarity(query, key)
    for i in range(2):
        for j in range(4):
            by_hand = sum(query[i, c].item() * key[j, c].item() for c in range(3))
            lengths = math.hypot(*query[i].tolist()) * math.hypot(*key[j].tolist())
            assert math.isclose(scores[i, j], by_hand)
            assert math.isclose(cosines[i, j], by_hand / lengths)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (inner_product, lambda query, key: torch.einsum("bqd,bkd->bqk", query, key)),
        (inner_product, lambda query, key: torch.matmul(query, key.transpose(-2, -1))),
        (cosine_similarity, pytorch_cosine),
    ],
)
def test_pytorch_gives_the_same_values_and_gradients(ours, theirs):
    query, key = random(2, 5, 16).requires_grad_(), random(2, 7, 16, seed=1).requires_grad_()
    grad = random(2, 5, 7, seed=2)
    our_value, their_value = ours(query, key), theirs(query, key)
    assert_close(our_value, their_value)
    assert_close(
        torch.autograd.grad(our_value, (query, key), grad),
        torch.autograd.grad(their_value, (query, key), grad),
    )


def test_unit_vectors_are_pytorchs():
    x = random(2, 5, 3)
    assert_close(unit_vectors(x), torch.nn.functional.normalize(x, dim=-1))
    assert_close(unit_vectors(x[0, 0]), x[0, 0] / x[0, 0].norm())


@BOTH
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(function, dtype):
    query, key = random(3, 8, dtype=dtype), random(5, 8, seed=1, dtype=dtype)
    result = function(query, key)
    assert result.dtype == dtype
    digits = 8 * torch.finfo(dtype).eps
    assert_close(result.double(), function(query.double(), key.double()), rtol=digits, atol=digits)


@BOTH
@pytest.mark.parametrize(
    ("query_batch", "key_batch", "batch"),
    [((2,), (), (2,)), ((), (2, 4), (2, 4)), ((2, 1), (4,), (2, 4)), ((1,), (6,), (6,))],
)
def test_batch_axes_are_broadcast(function, query_batch, key_batch, batch):
    query, key = random(*query_batch, 3, 8), random(*key_batch, 5, 8, seed=1)
    result = function(query, key)
    assert result.shape == (*batch, 3, 5)
    expected = function(query.expand(*batch, 3, 8), key.expand(*batch, 5, 8))
    assert_close(result, expected)


@BOTH
def test_arguments_stay_as_they_are_and_need_not_be_contiguous(function):
    query, key = random(8, 3).T, random(8, 5, seed=1).T
    before = query.clone(), key.clone()
    result = function(query, key)
    assert torch.equal(query, before[0])
    assert torch.equal(key, before[1])
    assert_close(result, function(query.contiguous(), key.contiguous()))


# Geometry


@given(vectors())
def test_the_inner_product_is_symmetric_and_linear(pair):
    query, key = pair
    scores = inner_product(query, key)
    assert_close(scores, inner_product(key, query).mT)
    other = random(*key.shape, seed=7)
    assert_close(inner_product(query, -3 * key + other), -3 * scores + inner_product(query, other))


@given(vectors())
def test_the_inner_product_is_lengths_times_cosine(pair):
    query, key = pair
    lengths = query.norm(dim=-1, keepdim=True) * key.norm(dim=-1)
    assert_close(inner_product(query, key), lengths * cosine_similarity(query, key))


@given(vectors())
def test_no_cosine_is_beyond_one(pair):
    assert cosine_similarity(*pair).abs().max() <= 1 + 1e-12


@given(vectors(), st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_length_changes_scores_in_proportion_and_cosines_not_at_all(pair, a, b):
    query, key = pair
    assert_close(inner_product(a * query, b * key), a * b * inner_product(query, key))
    assert_close(cosine_similarity(a * query, b * key), cosine_similarity(query, key))


@given(vectors())
def test_rotations_change_nothing(pair):
    query, key = pair
    d_k = query.shape[-1]
    rotation = torch.linalg.qr(random(d_k, d_k, seed=3)).Q
    for function in (inner_product, cosine_similarity):
        expected = function(query, key)
        slack = 1e-12 * float(query.norm() * key.norm())
        assert_close(function(query @ rotation, key @ rotation), expected, rtol=1e-9, atol=slack)


@given(vectors(), st.randoms(use_true_random=False))
def test_reordering_queries_or_keys_reorders_rows_or_columns(pair, shuffler):
    query, key = pair
    rows, columns = list(range(len(query))), list(range(len(key)))
    shuffler.shuffle(rows)
    shuffler.shuffle(columns)
    for function in (inner_product, cosine_similarity):
        expected = function(query, key)[rows][:, columns]
        assert_close(function(query[rows], key[columns]), expected)


def test_the_angle_in_the_plane():
    degrees = torch.arange(0, 360, 15, dtype=torch.float64)
    wheel = torch.stack([degrees.deg2rad().cos(), degrees.deg2rad().sin()], dim=-1)
    axis = torch.tensor([[5.0, 0.0]], dtype=torch.float64)
    assert_close(cosine_similarity(axis, 3 * wheel)[0], degrees.deg2rad().cos())


def test_the_longest_key_wins_by_inner_product_and_the_equal_one_by_cosine():
    query = torch.tensor([[2.0, -1.0, 1.0]])
    key = torch.tensor([[2.0, -1.0, 1.0], [4.0, 2.0, 3.0], [1.0, 3.0, -1.0]])
    assert inner_product(query, key).argmax() == 1
    assert cosine_similarity(query, key).argmax() == 0


def test_vectors_of_negative_entries_get_length_one():
    assert_close(unit_vectors(torch.tensor([[-3.0, -4.0]])), torch.tensor([[-0.6, -0.8]]))


# Gradients


@BOTH
def test_gradients_to_second_order(function):
    query, key = random(2, 3, 4).requires_grad_(), random(2, 5, 4, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(function, (query, key))
    assert torch.autograd.gradgradcheck(function, (query, key))


def test_gradients_are_those_of_the_chapter():
    query, key = random(3, 4).requires_grad_(), random(5, 4, seed=1).requires_grad_()
    grad = random(3, 5, seed=2)
    inner_product(query, key).backward(grad)
    assert_close(query.grad, grad @ key)
    assert_close(key.grad, grad.mT @ query)


def test_the_gradient_of_a_cosine_only_turns():
    query, key = random(3, 4).requires_grad_(), random(1, 4, seed=1)
    cosine_similarity(query, key).sum().backward()
    assert_close((query.grad * query).sum(dim=-1), torch.zeros(3, dtype=torch.float64))
    expected = unit_vectors(key) - cosine_similarity(query, key) * unit_vectors(query)
    assert_close(query.grad, expected / query.norm(dim=-1, keepdim=True))


# Edges


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_zero_vector_has_cosine_zero_and_gradient_zero(dtype):
    query = torch.tensor([[0.0, 0.0, 0.0], [2.0, -1.0, 1.0]], dtype=dtype, requires_grad=True)
    key = torch.tensor([[1.0, 3.0, -1.0], [0.0, 0.0, 0.0]], dtype=dtype, requires_grad=True)
    cosines = cosine_similarity(query, key)
    assert (cosines[0] == 0).all()
    assert (cosines[:, 1] == 0).all()
    assert cosines[1, 0] != 0
    cosines.sum().backward()
    assert (query.grad[0] == 0).all()
    assert (key.grad[1] == 0).all()
    assert query.grad.isfinite().all()
    assert key.grad.isfinite().all()
    assert (query.grad[1] != 0).any()


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [
        (torch.float16, 2e4),
        (torch.float16, 1e-6),
        (torch.bfloat16, 1e30),
        (torch.float32, 1e30),
        (torch.float32, 1e-9),
        (torch.float32, 1e-30),
        (torch.float64, 1e200),
        (torch.float64, 1e-200),
    ],
)
def test_neither_long_nor_short_vectors_lose_their_direction(dtype, scale):
    direction = torch.tensor([[2.0, -1.0, 1.0]], dtype=torch.float64)
    vector = (scale * direction).to(dtype)
    exact = unit_vectors(vector.double())
    # In float16 the rounding of 1e-6 itself moves the direction: compare with the rounded vector.
    assert_close(unit_vectors(vector).double(), exact, rtol=0, atol=4 * torch.finfo(dtype).eps)
    cosine = cosine_similarity(vector, vector).double()
    assert_close(cosine, torch.ones_like(cosine), rtol=0, atol=8 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_the_gradient_of_long_and_short_vectors(scale):
    query = (scale * random(1, 4)).float().requires_grad_()
    key = random(1, 4, seed=1).float()
    cosine_similarity(query, key).sum().backward()
    reference = random(1, 4).requires_grad_()
    cosine_similarity(reference, key.double()).sum().backward()
    assert_close((query.grad.double() * scale), reference.grad, rtol=1e-5, atol=1e-6)


def test_a_score_beyond_the_range_is_infinite():
    large = torch.full((1, 64), 300.0, dtype=torch.float16)
    assert inner_product(large, large).isposinf().all()
    assert inner_product(large, -large).isneginf().all()


@BOTH
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nan_and_infinity_reach_their_own_scores_only(function, bad):
    query, key = random(3, 4), random(5, 4, seed=1)
    clean = function(query, key)
    key[2, 1] = bad
    dirty = function(query, key)
    assert not dirty[:, 2].isfinite().any()
    if function is cosine_similarity or math.isnan(bad):
        assert dirty[:, 2].isnan().all()
    others = [0, 1, 3, 4]
    assert_close(dirty[:, others], clean[:, others])


@BOTH
@pytest.mark.parametrize(
    ("query_shape", "key_shape", "shape"),
    [
        ((0, 4), (5, 4), (0, 5)),
        ((3, 4), (0, 4), (3, 0)),
        ((2, 0, 4), (2, 0, 4), (2, 0, 0)),
        ((0, 3, 4), (0, 5, 4), (0, 3, 5)),
    ],
)
def test_no_queries_no_keys_no_batch(function, query_shape, key_shape, shape):
    query, key = torch.ones(query_shape, requires_grad=True), torch.ones(key_shape)
    result = function(query, key)
    assert result.shape == shape
    result.sum().backward()
    assert query.grad.shape == query_shape


@BOTH
def test_vectors_without_entries_have_score_zero(function):
    query = torch.ones(2, 3, 0, requires_grad=True)
    result = function(query, torch.ones(2, 5, 0))
    assert result.shape == (2, 3, 5)
    assert (result == 0).all()
    result.sum().backward()
    assert query.grad.shape == (2, 3, 0)
    assert unit_vectors(torch.ones(4, 0)).shape == (4, 0)
