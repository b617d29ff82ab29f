"""Attention: PyTorch's numbers, weights that are weights, and a set of pairs without order."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from transformer_lib.attention import attention_weights, dot_product_attention

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def cross(queries: int = 3, keys: int = 5, d_k: int = 4, d_v: int = 2, batch: tuple = ()) -> tuple:
    """Return a query, key and value, no two sizes equal unless asked for."""
    return (
        random(*batch, queries, d_k, seed=1),
        random(*batch, keys, d_k, seed=2),
        random(*batch, keys, d_v, seed=3),
    )


@st.composite
def problems(draw):
    """Draw a query, key and value of every small size, with scores from even to one-hot."""
    queries, keys, d_k, d_v = (draw(st.integers(1, 6)) for _ in range(4))
    seed = draw(st.integers(0, 1000))
    sharpness = draw(st.sampled_from([0.0, 0.1, 1.0, 30.0]))
    scale = draw(st.sampled_from([1e-3, 1.0, 1e3]))
    query = sharpness * random(queries, d_k, seed=seed)
    return query, random(keys, d_k, seed=seed + 1), scale * random(keys, d_v, seed=seed + 2)


# Parity


def test_four_scores_by_hand():
    scores = torch.tensor([[1.7], [-1.3], [3.9], [0.3]], dtype=torch.float64)  # keys with d_k = 1
    weights = attention_weights(torch.ones(1, 1, dtype=torch.float64), scores)
    expected = torch.tensor([[0.0969, 0.0048, 0.8744, 0.0239]], dtype=torch.float64)
    torch.testing.assert_close(weights, expected, atol=5e-5, rtol=0)
    value = torch.tensor([[2.0, 0.0], [-1.0, 0.0], [3.0, 2.0], [0.0, 2.0]], dtype=torch.float64)
    torch.testing.assert_close(
        dot_product_attention(torch.ones(1, 1, dtype=torch.float64), scores, value),
        torch.tensor([[2.8121, 1.7966]], dtype=torch.float64),
        atol=5e-5,
        rtol=0,
    )


def test_every_entry_by_loops():
    query, key, value = cross()
    weights, result = attention_weights(query, key), dot_product_attention(query, key, value)
    for i in range(3):
        exponentials = [sum(query[i, c] * key[j, c] for c in range(4)).exp() for j in range(5)]
        for j in range(5):
            torch.testing.assert_close(weights[i, j], exponentials[j] / sum(exponentials))
        for c in range(2):
            by_hand = sum(exponentials[j] * value[j, c] for j in range(5)) / sum(exponentials)
            torch.testing.assert_close(result[i, c], by_hand)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_pytorch_gives_the_same_results_and_gradients(dtype, batch):
    ours = [tensor.to(dtype).requires_grad_() for tensor in cross(batch=batch)]
    theirs = [tensor.detach().clone().requires_grad_() for tensor in ours]
    our_result = dot_product_attention(*ours)
    their_result = scaled_dot_product_attention(*theirs, scale=1.0)
    assert our_result.dtype == dtype
    # In half precision only one of the two rounds the weights before the second product.
    close = {torch.float16: 2e-2, torch.bfloat16: 1e-1}.get(dtype, 1e-5)
    torch.testing.assert_close(our_result, their_result, atol=close, rtol=close)
    up = random(*our_result.shape, seed=4, dtype=dtype)
    for a, b in zip(
        torch.autograd.grad(our_result, ours, up),
        torch.autograd.grad(their_result, theirs, up),
        strict=True,
    ):
        torch.testing.assert_close(a, b, atol=close, rtol=close)


def test_double_precision_is_not_lost():
    query, key, value = cross()
    expected = scaled_dot_product_attention(query, key, value, scale=1.0)
    worst = (dot_product_attention(query, key, value) - expected).abs().max()
    assert worst < 1e-13


def test_gradients_to_second_order():
    tensors = [tensor.requires_grad_() for tensor in cross(batch=(2,))]
    assert torch.autograd.gradcheck(dot_product_attention, tensors)
    assert torch.autograd.gradgradcheck(dot_product_attention, tensors)
    assert torch.autograd.gradcheck(attention_weights, tensors[:2])


# Properties


@given(problems())
def test_each_row_of_weights_is_convex(problem):
    query, key, _ = problem
    weights = attention_weights(query, key)
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(len(query), dtype=torch.float64))


@given(problems(), st.integers(0, 1000))
def test_results_lie_in_the_convex_hull_of_the_values(problem, seed):
    query, key, value = problem
    # In every direction the result goes no further than the furthest value.
    directions = random(value.shape[-1], 20, seed=seed)
    reach = (value @ directions).amax(dim=0)
    slack = 1e-12 * value.abs().max()
    assert ((dot_product_attention(query, key, value) @ directions) <= reach + slack).all()


@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_the_pairs_does_not_count(problem, chance):
    query, key, value = problem
    order = list(range(len(key)))
    chance.shuffle(order)
    result = dot_product_attention(query, key, value)
    torch.testing.assert_close(dot_product_attention(query, key[order], value[order]), result)


@given(problems(), st.randoms(use_true_random=False))
def test_self_attention_is_permutation_equivariant(problem, chance):
    _, rows, _ = problem
    order = list(range(len(rows)))
    chance.shuffle(order)
    result = dot_product_attention(rows, rows, rows)
    shuffled = dot_product_attention(rows[order], rows[order], rows[order])
    torch.testing.assert_close(shuffled, result[order])


@given(problems(), st.integers(0, 1000))
def test_adding_one_vector_to_all_keys_shifts_all_scores_and_changes_nothing(problem, seed):
    query, key, _ = problem
    shifted = attention_weights(query, key + random(key.shape[-1], seed=seed))
    torch.testing.assert_close(shifted, attention_weights(query, key), atol=1e-10, rtol=1e-7)


@given(problems())
def test_it_is_linear_in_the_values(problem):
    query, key, value = problem
    other = value.flip(0).sin()
    together = dot_product_attention(query, key, 3 * value - other)
    apart = 3 * dot_product_attention(query, key, value) - dot_product_attention(query, key, other)
    torch.testing.assert_close(together, apart, atol=1e-9, rtol=1e-9)


def test_keys_without_their_values_are_another_set():
    query, key, value = cross()
    swapped = dot_product_attention(query, key.flip(0), value)
    assert (swapped - dot_product_attention(query, key, value)).abs().max() > 0.1


def test_queries_do_not_know_of_each_other():
    query, key, value = cross()
    alone = torch.cat([dot_product_attention(q[None], key, value) for q in query])
    torch.testing.assert_close(dot_product_attention(query, key, value), alone)


def test_the_larger_score_gets_the_larger_weight():
    query, key, _ = cross()
    scores, weights = query @ key.T, attention_weights(query, key)
    assert torch.equal(scores.argsort(dim=-1), weights.argsort(dim=-1))


def test_one_key_gets_all_the_weight():
    query, key, value = cross(keys=1)
    assert torch.equal(attention_weights(query, key), torch.ones(3, 1, dtype=torch.float64))
    assert torch.equal(dot_product_attention(query, key, value), value.expand(3, 2))


def test_equal_keys_share_evenly():
    query, key, value = cross()
    result = dot_product_attention(query, key[:1].expand(5, 4), value)
    torch.testing.assert_close(result, value.mean(dim=0).expand(3, 2))


def test_the_result_is_made_of_the_values_alone():
    query, key, _ = cross()
    value = torch.zeros(5, 7, dtype=torch.float64)
    value[:, 2] = 1
    expected = torch.zeros(3, 7, dtype=torch.float64)
    expected[:, 2] = 1
    torch.testing.assert_close(dot_product_attention(query, key, value), expected)


def test_scores_of_any_size_stay_finite():
    query, key, value = cross()
    weights = attention_weights(1e6 * query, key)
    torch.testing.assert_close(weights.amax(dim=-1), torch.ones(3, dtype=torch.float64))
    best = value[(query @ key.T).argmax(dim=-1)]
    torch.testing.assert_close(dot_product_attention(1e6 * query, key, value), best)


def test_arguments_are_left_alone():
    tensors = cross()
    before = [tensor.clone() for tensor in tensors]
    dot_product_attention(*tensors)
    assert all(torch.equal(a, b) for a, b in zip(before, tensors, strict=True))


# Axes before the last two


def test_every_item_of_a_batch_is_on_its_own():
    query, key, value = cross(batch=(2, 3))
    result = dot_product_attention(query, key, value)
    assert result.shape == (2, 3, 3, 2)
    for i in range(2):
        for j in range(3):
            alone = dot_product_attention(query[i, j], key[i, j], value[i, j])
            torch.testing.assert_close(result[i, j], alone)


@pytest.mark.parametrize(
    ("query_batch", "key_batch", "value_batch", "expected"),
    [
        ((2,), (), (), (2,)),
        ((), (2,), (), (2,)),
        ((), (), (2,), (2,)),
        ((2, 1), (3,), (1, 1), (2, 3)),
        ((3,), (2, 1), (2, 3), (2, 3)),
    ],
)
def test_batch_axes_broadcast(query_batch, key_batch, value_batch, expected):
    query, key, value = (
        cross(batch=batch)[which]
        for which, batch in enumerate((query_batch, key_batch, value_batch))
    )
    result = dot_product_attention(query, key, value)
    written_out = [t.expand(*expected, *t.shape[-2:]) for t in (query, key, value)]
    assert result.shape == (*expected, 3, 2)
    torch.testing.assert_close(result, dot_product_attention(*written_out))


def test_the_sizes_of_the_chapter():
    query, key, value = (random(32, 50, 64, seed=s, dtype=torch.float32) for s in range(3))
    assert attention_weights(query, key).shape == (32, 50, 50)
    assert dot_product_attention(query, key, value).shape == (32, 50, 64)


# Sizes of zero, and NaN


@pytest.mark.parametrize("dtype", DTYPES)
def test_without_keys_the_result_is_zero(dtype):
    query, key, value = (tensor.to(dtype).requires_grad_() for tensor in cross(keys=0))
    result = dot_product_attention(query, key, value)
    assert attention_weights(query, key).shape == (3, 0)
    assert torch.equal(result, torch.zeros(3, 2, dtype=dtype))
    result.sum().backward()
    assert torch.equal(query.grad, torch.zeros_like(query))


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"queries": 0}, (0, 2)),
        ({"d_v": 0}, (3, 0)),
        ({"batch": (0,)}, (0, 3, 2)),
        ({"batch": (2, 0)}, (2, 0, 3, 2)),
    ],
)
def test_other_sizes_of_zero_give_empty_results(sizes, expected):
    tensors = [tensor.requires_grad_() for tensor in cross(**sizes)]
    result = dot_product_attention(*tensors)
    assert result.shape == expected
    result.sum().backward()
    assert all(torch.equal(t.grad, torch.zeros_like(t)) for t in tensors)


def test_keys_without_entries_all_fit_equally_well():
    query, key, value = cross(d_k=0)
    result = dot_product_attention(query, key, value)
    torch.testing.assert_close(result, value.mean(dim=0).expand(3, 2))


def test_nan_in_a_query_stays_in_its_row():
    query, key, value = cross()
    clean = dot_product_attention(query, key, value)
    query[1, 0] = torch.nan
    result = dot_product_attention(query, key, value)
    assert result[1].isnan().all()
    torch.testing.assert_close(result[[0, 2]], clean[[0, 2]])


def test_nan_in_a_key_reaches_every_result():
    query, key, value = cross()
    key[4, 2] = torch.nan
    assert attention_weights(query, key).isnan().all()
    assert dot_product_attention(query, key, value).isnan().all()


def test_nan_in_a_value_reaches_that_entry_of_every_result():
    query, key, value = cross()
    query = 1e6 * query
    worst = attention_weights(query, key)[0].argmin()
    assert attention_weights(query, key)[0, worst] == 0
    value[worst, 1] = torch.nan
    result = dot_product_attention(query, key, value)
    assert result[:, 1].isnan().all()
    assert not result[:, 0].isnan().any()


def test_scores_of_minus_infinity_alone_make_their_row_nan():
    query, key, value = cross()
    query[0] = torch.tensor([-torch.inf, 0, 0, 0])
    key[:, 0] = 1
    assert (query @ key.T)[0].tolist() == [-torch.inf] * 5
    weights, result = attention_weights(query, key), dot_product_attention(query, key, value)
    assert weights[0].isnan().all()
    assert result[0].isnan().all()
    assert not weights[1:].isnan().any()
    assert not result[1:].isnan().any()


def test_an_infinite_score_makes_its_row_nan():
    query, key, _ = cross()
    query[0] = torch.tensor([torch.inf, 0, 0, 0])
    key[:, 0] = 1
    weights = attention_weights(query, key)
    assert weights[0].isnan().all()
    assert not weights[1:].isnan().any()
