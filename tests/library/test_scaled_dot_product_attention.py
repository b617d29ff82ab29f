"""The final attention function: PyTorch's numbers, two paths that agree, and every kind of mask."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from transformer_lib.attention import scaled_dot_product_attention
from transformer_lib.masking import (
    band_mask,
    causal_mask,
    mask_from_additive,
    mask_from_hidden,
    padding_mask,
)

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# Half precision: one rounding of the result, and PyTorch rounds the weights before that.
CLOSE = {torch.float16: 5e-3, torch.bfloat16: 4e-2, torch.float32: 1e-5, torch.float64: 1e-12}


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def random_mask(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.5


def cross(
    queries: int = 3, keys: int = 5, d_k: int = 4, d_v: int = 4, batch: tuple = (2, 3), **options
) -> list[Tensor]:
    """Return a query, key and value."""
    return [
        random(*batch, queries, d_k, seed=1, **options),
        random(*batch, keys, d_k, seed=2, **options),
        random(*batch, keys, d_v, seed=3, **options),
    ]


def leaves(tensors: list[Tensor]) -> list[Tensor]:
    return [tensor.detach().clone().requires_grad_() for tensor in tensors]


def both(*tensors: Tensor, **options) -> tuple[Tensor, Tensor, Tensor]:
    """Return the output of the fused path, that of the explicit one, and the weights."""
    fused = scaled_dot_product_attention(*tensors, **options)
    explicit, weights = scaled_dot_product_attention(*tensors, **options, return_weights=True)
    return fused, explicit, weights


def uniform_weights(queries: int, keys: int, **options) -> Tensor:
    """Return the weights when all scores are 0, from the path that is fused if possible."""
    batch = (1, 1)
    zeros = torch.zeros(*batch, max(queries, keys), keys)
    one_hot = torch.eye(keys).expand(*batch, keys, keys)
    result = scaled_dot_product_attention(
        zeros[..., :queries, :], zeros[..., :keys, :], one_hot, **options
    )
    return result[0][0, 0] if isinstance(result, tuple) else result[0, 0]


@st.composite
def problems(draw):
    """Draw tensors of every small size, and any of mask, bias and causal; rows may be empty."""
    batch = tuple(draw(st.lists(st.integers(1, 3), max_size=3)))
    keys, d_k, d_v = (draw(st.integers(1, 5)) for _ in range(3))
    causal = draw(st.booleans())
    queries = draw(st.integers(1, keys if causal else 5))
    seed = draw(st.integers(0, 1000))
    sharpness = draw(st.sampled_from([0.0, 1.0, 30.0]))
    tensors = [
        sharpness * random(*batch, queries, d_k, seed=seed),
        random(*batch, keys, d_k, seed=seed + 1),
        random(*batch, keys, d_v, seed=seed + 2),
    ]
    full = (*batch, queries, keys)

    def fitting():
        wide = full if draw(st.booleans()) else full[-2:]
        return [size if draw(st.booleans()) else 1 for size in wide]

    options = {"causal": causal}
    if draw(st.booleans()):
        options["mask"] = random_mask(*fitting(), seed=seed + 3)
    if draw(st.booleans()):
        bias = random(*fitting(), seed=seed + 4)
        hidden = random_mask(*bias.shape, seed=seed + 5) & draw(st.booleans())
        options["bias"] = bias.masked_fill(hidden, -torch.inf)
    return tensors, options


def allowed(tensors: list[Tensor], mask=None, bias=None, causal: bool = False) -> Tensor:
    """Return which query may attend to which key, all axes written out."""
    query, key, _ = tensors
    full = (*query.shape[:-1], key.shape[-2])
    result = torch.ones(full, dtype=torch.bool)
    if mask is not None:
        result = result & mask
    if bias is not None:
        result = result & (bias > -torch.inf)
    if causal:
        for i, j in product(range(full[-2]), range(full[-1])):
            result[..., i, j] &= j <= i + full[-1] - full[-2]
    return result


# Parity


def test_every_entry_by_loops():
    query, key, value = cross(queries=3, keys=5, d_k=4, d_v=2, batch=())
    mask, bias = random_mask(3, 5, seed=1), random(3, 5, seed=4)
    assert mask.any(dim=-1).all()
    for output in both(query, key, value, mask=mask, bias=bias)[:2]:
        for i in range(3):
            kept = [j for j in range(5) if mask[i, j]]
            exponentials = [math.exp(query[i] @ key[j] / 2 + bias[i, j]) for j in kept]
            by_hand = sum(e * value[j] for e, j in zip(exponentials, kept, strict=True))
            torch.testing.assert_close(output[i], by_hand / sum(exponentials))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (2,), (2, 3), (2, 1, 3)])
@pytest.mark.parametrize("kind", ["nothing", "mask", "padding", "bias", "causal"])
def test_pytorch_gives_the_same_results_and_gradients(kind, batch, dtype):
    shape = (*batch, 5, 5)
    own = torch.eye(5, dtype=torch.bool)  # rows without keys are ours to define
    mask = {
        "mask": own | random_mask(*shape),
        "padding": own | random_mask(*batch, 1, 5) if batch else own | random_mask(1, 5),
    }.get(kind)
    inputs = leaves(cross(queries=5, batch=batch, dtype=dtype))
    extra = leaves([random(*shape, seed=5, dtype=dtype)]) if kind == "bias" else []
    theirs = F.scaled_dot_product_attention(
        *inputs, mask if mask is not None else (extra or [None])[0], is_causal=kind == "causal"
    )
    up = random(*theirs.shape, seed=6, dtype=dtype)
    their_gradients = torch.autograd.grad(theirs, inputs + extra, up)
    options = {"mask": mask, "bias": (extra or [None])[0], "causal": kind == "causal"}
    close = CLOSE[dtype]
    for ours in both(*inputs, **options)[:2]:
        assert ours.dtype == dtype
        torch.testing.assert_close(ours, theirs, atol=close, rtol=close)
        for a, b in zip(
            torch.autograd.grad(ours, inputs + extra, up, retain_graph=True),
            their_gradients,
            strict=True,
        ):
            torch.testing.assert_close(a, b, atol=4 * close, rtol=4 * close)


def test_another_length_of_the_values():
    tensors = cross(d_v=7)
    theirs = F.scaled_dot_product_attention(*tensors)
    for ours in both(*tensors)[:2]:
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("d_k", [1, 4, 9])
def test_scores_are_divided_by_the_root_of_d_k(d_k):
    query, key = torch.ones(1, d_k), torch.stack([torch.ones(d_k), torch.zeros(d_k)])
    for output in both(query, key, torch.eye(2))[:2]:
        torch.testing.assert_close(output[0, 0] / output[0, 1], torch.tensor(math.exp(d_k**0.5)))


# Two paths


@given(problems())
def test_both_paths_agree(problem):
    tensors, options = problem
    inputs = leaves(tensors)
    fused, explicit, weights = both(*inputs, **options)
    assert fused.shape == (*tensors[0].shape[:-1], tensors[2].shape[-1])
    torch.testing.assert_close(fused, explicit, atol=1e-11, rtol=1e-9)
    assert weights.shape == (*tensors[0].shape[:-1], tensors[1].shape[-2])
    torch.testing.assert_close(weights @ tensors[2], explicit.detach(), atol=1e-11, rtol=1e-9)
    up = random(*fused.shape, seed=9)
    for a, b in zip(
        torch.autograd.grad(fused, inputs, up),
        torch.autograd.grad(explicit, inputs, up),
        strict=True,
    ):
        assert a.isfinite().all()
        torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-7)


@given(problems())
def test_rows_sum_to_one_and_hidden_weights_are_exactly_zero(problem):
    tensors, options = problem
    seen = allowed(tensors, **options)
    _, _, weights = both(*tensors, **options)
    assert (weights[~seen] == 0).all()
    some = seen.any(dim=-1)
    torch.testing.assert_close(weights.sum(dim=-1), some.double())
    assert (weights.sum(dim=-1)[~some] == 0).all()


@given(problems())
def test_rows_without_keys_are_exactly_zero(problem):
    tensors, options = problem
    nobody = ~allowed(tensors, **options).any(dim=-1)
    fused, explicit, _ = both(*tensors, **options)
    assert (fused[nobody] == 0).all()
    assert (explicit[nobody] == 0).all()


@given(problems())
def test_it_is_as_if_hidden_keys_did_not_exist(problem):
    tensors, options = problem
    seen = allowed(tensors, **options)
    query, key, value = tensors
    bias = options.get("bias", torch.zeros(1, dtype=query.dtype)).expand(seen.shape)
    for output in both(*tensors, **options)[:2]:
        for place in product(*map(range, query.shape[:-1])):
            kept = seen[place]
            if kept.any():
                item = place[:-1]
                alone = F.scaled_dot_product_attention(
                    query[place][None], key[item][kept], value[item][kept], bias[place][kept][None]
                )
                torch.testing.assert_close(output[place], alone[0], atol=1e-11, rtol=1e-9)


@given(problems(), st.integers(0, 1000))
def test_finite_numbers_in_hidden_keys_change_nothing(problem, seed):
    tensors, options = problem
    query, key, value = tensors
    unseen = ~allowed(tensors, **options).any(dim=-2)  # by no query
    fill = random(*key.shape, seed=seed)[..., :1] * 1e3
    for before, after in zip(
        both(*tensors, **options),
        both(query, key.where(~unseen[..., None], fill), value.where(~unseen[..., None], fill),
             **options),
        strict=True,
    ):  # fmt: skip
        assert torch.equal(before, after)


@given(problems())
def test_a_bias_of_minus_infinity_is_a_mask(problem):
    tensors, options = problem
    seen = allowed(tensors, **options)
    full = torch.zeros(seen.shape, dtype=torch.float64)
    hiding = full.masked_fill(~seen, -torch.inf)
    for a, b in zip(both(*tensors, mask=seen), both(*tensors, bias=hiding), strict=True):
        assert torch.equal(a, b)


@given(problems(), st.floats(-50, 50))
def test_one_number_added_to_a_whole_row_changes_nothing(problem, number):
    tensors, options = problem
    shifted = dict(options)
    shifted["bias"] = options.get("bias", torch.zeros(1, 1, dtype=torch.float64)) + number
    for a, b in zip(both(*tensors, **options), both(*tensors, **shifted), strict=True):
        torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize("dtype", DTYPES)
def test_both_paths_agree_in_every_dtype(dtype):
    tensors = cross(queries=4, keys=6, d_k=8, d_v=8, dtype=dtype)
    mask = random_mask(2, 1, 4, 6)
    mask[0, 0, 1] = False
    bias = random(4, 6, seed=4, dtype=dtype)
    fused, explicit, weights = both(*tensors, mask=mask, bias=bias, causal=True)
    assert fused.dtype == explicit.dtype == weights.dtype == dtype
    torch.testing.assert_close(fused, explicit, atol=CLOSE[dtype], rtol=CLOSE[dtype])
    wide = both(*(t.double() for t in tensors), mask=mask, bias=bias.double(), causal=True)
    for ours, exact in zip((fused, explicit, weights), wide, strict=True):
        torch.testing.assert_close(ours.double(), exact, atol=CLOSE[dtype], rtol=CLOSE[dtype])
    hidden = ~(mask & causal_mask(4, 6)).expand(2, 3, 4, 6)
    assert (weights[hidden] == 0).all()


def test_half_precision_bears_inner_products_beyond_its_range():
    query = torch.full((1, 64), 40.0, dtype=torch.float16)
    key = torch.stack([query[0], query[0] / 2])
    assert (query @ key.mT).isinf().any()
    for result in both(query, key, torch.eye(2, dtype=torch.float16))[:2]:
        assert result.tolist() == [[1, 0]]


@pytest.mark.parametrize(
    ("query_batch", "key_batch", "value_batch", "expected"),
    [
        ((2,), (), (), (2,)),
        ((), (2,), (), (2,)),
        ((), (), (2,), (2,)),
        ((2, 1), (3,), (1, 1), (2, 3)),
        ((3,), (2, 1), (2, 3), (2, 3)),
        ((2, 1, 1), (3,), (4, 1), (2, 4, 3)),
    ],
)
def test_batch_axes_broadcast(query_batch, key_batch, value_batch, expected):
    query = cross(batch=query_batch)[0]
    key = cross(batch=key_batch)[1]
    value = cross(batch=value_batch)[2]
    mask = random_mask(3, 5)
    written_out = [t.expand(*expected, *t.shape[-2:]) for t in (query, key, value)]
    for ours, full in zip(
        both(query, key, value, mask=mask)[:2], both(*written_out, mask=mask)[:2], strict=True
    ):
        assert ours.shape == (*expected, 3, 4)
        torch.testing.assert_close(ours, full)


def test_every_item_of_a_batch_is_on_its_own():
    tensors, mask = cross(), random_mask(2, 3, 3, 5)
    for output in both(*tensors, mask=mask)[:2]:
        for i, j in product(range(2), range(3)):
            alone = scaled_dot_product_attention(*(t[i, j] for t in tensors), mask=mask[i, j])
            torch.testing.assert_close(output[i, j], alone)


@pytest.mark.parametrize("shape", [(64, 8), (2, 64, 8), (2, 3, 64, 8), (1, 64, 8)])
@pytest.mark.parametrize("causal", [False, True])
def test_without_weights_no_matrix_of_weights_is_kept(shape, causal):
    kept = []

    def keep(tensor):
        kept.append(tensor.numel())
        return tensor

    inputs = leaves([random(*shape, seed=seed, dtype=torch.float32) for seed in range(3)])
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        scaled_dot_product_attention(*inputs, causal=causal)
    assert sum(kept) <= 5 * inputs[0].numel() < 64 * 64 * math.prod(shape[:-2])


def test_arguments_are_left_alone():
    tensors = [*cross(), random_mask(3, 5), random(3, 5)]
    tensors[4][0, 1] = -torch.inf
    before = [tensor.clone() for tensor in tensors]
    both(*tensors[:3], mask=tensors[3], bias=tensors[4], causal=True)
    assert all(torch.equal(a, b) for a, b in zip(before, tensors, strict=True))


# Gradients


@pytest.mark.slow
@pytest.mark.parametrize("return_weights", [False, True])
@pytest.mark.parametrize("batch", [(), (2, 2)])
def test_gradients_also_where_rows_are_empty(batch, return_weights):
    mask = random_mask(3, 5)
    mask[1] = False
    inputs = leaves([*cross(batch=batch), random(3, 5, seed=4)])

    def function(query, key, value, bias):
        return scaled_dot_product_attention(
            query, key, value, mask=mask, bias=bias, causal=True, return_weights=return_weights
        )

    assert torch.autograd.gradcheck(function, inputs)
    if return_weights:
        assert torch.autograd.gradgradcheck(function, inputs)


@pytest.mark.parametrize("return_weights", [False, True])
def test_an_empty_row_leaves_all_gradients_finite(return_weights):  # pytorch/pytorch#41508, #103749
    keep = torch.ones(4, 4, dtype=torch.bool)
    keep[0] = False

    def run(mask, rows):
        inputs = leaves([random(1, 4, 8, seed=seed, dtype=torch.float32) for seed in range(3)])
        inputs = [inputs[0][:, rows], *inputs[1:]]
        out = scaled_dot_product_attention(*inputs, mask=mask, return_weights=return_weights)
        out, weights = out if return_weights else (out, None)
        return inputs, out, weights

    inputs, out, weights = run(keep, slice(None))
    gradients = torch.autograd.grad(out[:, 1:].sum(), inputs)
    assert torch.equal(out[:, 0], torch.zeros(1, 8))
    if weights is not None:
        assert torch.equal(weights[:, 0], torch.zeros(1, 4))
    inputs, shorter, _ = run(None, slice(1, None))  # without row 0
    torch.testing.assert_close(out[:, 1:], shorter)
    expected = torch.autograd.grad(shorter.sum(), inputs)
    assert torch.equal(gradients[0][:, 0], torch.zeros(1, 8))
    torch.testing.assert_close(gradients[0][:, 1:], expected[0])
    for a, b in zip(gradients[1:], expected[1:], strict=True):
        torch.testing.assert_close(a, b)


def test_the_kernel_is_never_given_an_empty_row(monkeypatch):
    """What kernels make of one has differed between versions and devices."""
    kernel, given = F.scaled_dot_product_attention, []

    def watched(query, key, value, added, **options):
        given.append(added)
        return kernel(query, key, value, added, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", watched)
    mask = random_mask(3, 5)
    mask[1] = False
    bias = random(3, 5).masked_fill(~mask, -torch.inf)
    scaled_dot_product_attention(*cross(), mask=mask)
    scaled_dot_product_attention(*cross(), bias=bias)
    assert [added.isneginf().all(dim=-1).any().item() for added in given] == [False, False]


@pytest.mark.parametrize("return_weights", [False, True])
def test_hidden_keys_and_values_get_no_gradient(return_weights):
    mask = torch.tensor([True, True, False, True, False])[None]
    inputs = leaves(cross())
    result = scaled_dot_product_attention(*inputs, mask=mask, return_weights=return_weights)
    output = result[0] if return_weights else result
    _, key, value = torch.autograd.grad(output.square().sum(), inputs)
    for gradient in (key, value):
        assert (gradient[..., [2, 4], :] == 0).all()
        assert (gradient[..., [0, 1, 3], :] != 0).all()


# Causality


@given(st.integers(1, 6), st.integers(0, 1000), st.data())
def test_aligned_at_the_last_key_it_is_a_slice_of_the_square(keys, seed, data):
    queries = data.draw(st.integers(1, keys))
    query, key, value = (random(keys, 4, seed=seed + i) for i in range(3))
    square = both(query, key, value, causal=True)
    last = both(query[keys - queries :], key, value, causal=True)
    for a, b in zip(square, last, strict=True):
        torch.testing.assert_close(a[keys - queries :], b)


def test_one_query_against_four_keys_sees_them_all():
    for options in ({}, {"return_weights": True}, {"mask": torch.ones(1, 4, dtype=torch.bool)}):
        torch.testing.assert_close(
            uniform_weights(1, 4, causal=True, **options), torch.full((1, 4), 0.25)
        )


@pytest.mark.parametrize("with_weights", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_causal_holds_with_weights_and_with_padding(with_weights, padded):
    # pytorch/pytorch#99282, #100709, #118972
    query, key, value = cross(queries=5)
    key_mask = padding_mask(torch.tensor([5, 3]), 5)[:, None, None, :] if padded else None
    triangle = torch.ones(5, 5, dtype=torch.bool).tril()
    explicit = triangle if key_mask is None else triangle & key_mask
    expected = F.scaled_dot_product_attention(query, key, value, explicit)
    result = scaled_dot_product_attention(
        query, key, value, causal=True, mask=key_mask, return_weights=with_weights
    )
    torch.testing.assert_close(result[0] if with_weights else result, expected)
    if with_weights:
        assert (result[1][~explicit.expand(2, 3, 5, 5)] == 0).all()


@pytest.mark.parametrize("batch", [(), (1, 2), (1, 2, 1)])
def test_a_long_causal_sequence_with_padding(batch):
    """Long enough for the kernel's own triangle, which must not meet another mask."""
    query, key, value = cross(queries=40, keys=40, batch=batch)
    mask = padding_mask(torch.tensor([30]), 40)
    expected = F.scaled_dot_product_attention(query, key, value, mask & causal_mask(40))
    for output in both(query, key, value, mask=mask, causal=True)[:2]:
        torch.testing.assert_close(output, expected)


@pytest.mark.parametrize("n", [3, 40])
def test_a_bias_beside_causal(n):
    query, key, value = (random(2, 3, n, 4, seed=seed) for seed in range(3))
    bias = random(n, n, seed=3)
    added = bias.masked_fill(~causal_mask(n), -torch.inf)
    expected = F.scaled_dot_product_attention(query, key, value, added)
    for output in both(query, key, value, bias=bias, causal=True)[:2]:
        torch.testing.assert_close(output, expected)


@pytest.mark.parametrize("options", [{}, {"return_weights": True}, {"dropout": 0.5}])
@pytest.mark.parametrize("padded", [False, True])
def test_the_future_moves_nothing(options, padded):  # jadore801120/…-pytorch#19
    key_mask = padding_mask(torch.tensor([6]), 6)[:, None, None, :] if padded else None

    def run(x):
        torch.manual_seed(0)
        result = scaled_dot_product_attention(x, x, x, causal=True, mask=key_mask, **options)
        return result[0] if isinstance(result, tuple) else result

    x = random(1, 2, 6, 4)
    before = run(x)
    for t in range(5):
        changed = x.clone()
        changed[..., t + 1 :, :] = random(1, 2, 5 - t, 4, seed=7)
        assert torch.equal(run(changed)[..., : t + 1, :], before[..., : t + 1, :])
        assert not torch.equal(run(changed)[..., t + 1 :, :], before[..., t + 1 :, :])


# Known failures of other systems


@pytest.mark.parametrize(
    "options",
    [
        {"causal": True},
        {"mask": causal_mask(3)},
        {"mask": mask_from_hidden(torch.ones(3, 3).triu(1).bool())},
        {"mask": mask_from_additive(torch.full((3, 3), -torch.inf).triu(1))},
        {"bias": torch.full((3, 3), -torch.inf).triu(1)},
    ],
)
@pytest.mark.parametrize("return_weights", [False, True])
def test_one_polarity_everywhere(options, return_weights):
    # rasbt/LLMs-from-scratch#1061, pytorch/pytorch#170415
    expected = torch.tensor([[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]])
    weights = uniform_weights(3, 3, **options, return_weights=return_weights)
    torch.testing.assert_close(weights, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("return_weights", [False, True])
def test_no_constant_overflows_in_any_dtype(dtype, return_weights):
    # NVIDIA/apex#1105, #93, facebookresearch/fairseq#3575
    x = random(1, 3, 8, dtype=dtype)
    mask = padding_mask(torch.tensor([2]), 3)[:, None, :]
    result = scaled_dot_product_attention(
        x, x, x, mask=mask, causal=True, return_weights=return_weights
    )
    output = result[0] if return_weights else result
    assert output.dtype == dtype
    assert output.isfinite().all()
    if return_weights:
        assert result[1].dtype == dtype
        assert (result[1][0, :, 2] == 0).all()
        assert result[1][0, 0, 1] == 0


@pytest.mark.parametrize("return_weights", [False, True])
@pytest.mark.parametrize(
    ("sizes", "mask"),
    [
        ({"batch": (0,)}, (4, 4)),
        ({"batch": (0, 2)}, (4, 4)),
        ({"batch": (2, 0)}, (2, 1, 1, 4)),
        ({"batch": (), "queries": 0}, (0, 4)),
        ({"queries": 0}, (1, 4)),
        ({"keys": 0}, (4, 0)),
        ({"keys": 0, "d_v": 0}, (1, 1)),
        ({"d_v": 0}, (4, 4)),
        ({"d_k": 0}, (4, 4)),
    ],
)
def test_sizes_of_zero(sizes, mask, return_weights):  # pytorch/pytorch#188765, #195812
    sizes = {"queries": 4, "keys": 4, "d_k": 8, "d_v": 8, "batch": (2, 3)} | sizes
    inputs = leaves(cross(**sizes, dtype=torch.float32))
    for options in ({}, {"mask": torch.ones(mask, dtype=torch.bool)}):
        result = scaled_dot_product_attention(*inputs, **options, return_weights=return_weights)
        output = result[0] if return_weights else result
        assert output.shape == (*sizes["batch"], sizes["queries"], sizes["d_v"])
        assert output.dtype == torch.float32
        if return_weights:
            assert result[1].shape == (*sizes["batch"], sizes["queries"], sizes["keys"])
        if sizes["keys"] == 0:
            assert torch.equal(output, torch.zeros_like(output))
        for gradient in torch.autograd.grad(output.sum(), inputs):
            assert gradient.isfinite().all()


def test_queries_without_entries_find_all_keys_alike():
    query, key, value = cross(d_k=0)
    torch.testing.assert_close(
        scaled_dot_product_attention(query, key, value),
        value.mean(dim=-2, keepdim=True).expand(2, 3, 3, 4),
    )


def test_what_stands_in_the_padding_changes_nothing():  # pytorch/pytorch#64525
    x = random(2, 3, 8, dtype=torch.float32)
    mask = padding_mask(torch.tensor([3, 2]), 3)[:, None, :]
    results = []
    for fill in (0.0, 1e-10, 1e10):
        x[1, 2] = fill
        results.append(torch.stack([t[1, :2] for t in both(x, x, x, mask=mask)[:2]]))
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


@pytest.mark.parametrize("which", ["key", "value"])
@pytest.mark.parametrize("batch", [(), (1, 2)])
def test_nan_under_a_mask_spreads_on_both_paths_as_in_pytorch(which, batch):
    query, key, value = cross(batch=batch)
    {"key": key, "value": value}[which][..., 4, 0] = torch.nan
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[:, 4] = False
    theirs = F.scaled_dot_product_attention(query, key, value, mask)
    for ours in both(query, key, value, mask=mask)[:2]:
        assert ours.isnan().any(dim=-1).all()
        assert torch.equal(ours.isnan(), theirs.isnan())
    mask[1] = False  # a row without keys stays 0 whatever the keys are
    for ours in both(query, key, value, mask=mask)[:2]:
        assert (ours[..., 1, :] == 0).all()
        assert ours[..., [0, 2], :].isnan().any(dim=-1).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 3, 16, 31, 32, 100])
@pytest.mark.parametrize("causal", [False, True])
def test_nan_is_never_turned_into_numbers(n, causal, dtype):  # pytorch/pytorch#141128
    query, key, value = cross(queries=n, keys=n, dtype=dtype)
    query[..., n // 2, 0] = torch.nan
    for output in both(query, key, value, causal=causal)[:2]:
        rows = output.isnan().all(dim=-1)
        assert rows[..., n // 2].all()
        assert rows.sum() == 6  # no other row of the 2 × 3
        assert output[~rows].isfinite().all()
    key[:] = torch.nan
    for output in both(query, key, value, causal=causal)[:2]:
        assert output.isnan().all()


def test_padding_hides_the_column_and_not_the_row():  # pytorch/pytorch#63271
    key_mask = padding_mask(torch.tensor([4]), 5)[:, None, None, :]
    for options in ({}, {"return_weights": True}):
        weights = uniform_weights(5, 5, mask=key_mask, causal=True, **options)
        torch.testing.assert_close(weights[4], torch.tensor([0.25, 0.25, 0.25, 0.25, 0]))
        assert (weights[:, 4] == 0).all()


def test_a_real_valued_bias_is_added_and_not_cast():  # pytorch/pytorch#107084
    query, key, value = cross(queries=4, keys=4, batch=())
    bias = random(4, 4, seed=8)
    expected = torch.softmax(query @ key.mT / 2 + bias, dim=-1) @ value
    for output in both(query, key, value, bias=bias)[:2]:
        torch.testing.assert_close(output, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_band_inside_the_padding_is_zero_on_both_paths(dtype):  # pytorch/pytorch#190486
    x = random(1, 1, 16, 8, dtype=dtype)
    key_mask = padding_mask(torch.tensor([4]), 16)[:, None, None, :]
    mask = band_mask(16, before=3, after=0) & key_mask  # a window of 4, 12 padded keys
    fused, explicit, weights = both(x, x, x, mask=mask)
    torch.testing.assert_close(fused, explicit, atol=CLOSE[dtype], rtol=CLOSE[dtype])
    for tensor in (fused, explicit, weights):
        assert (tensor[..., 7:, :] == 0).all()
        assert (tensor[..., :7, :].abs().sum(dim=-1) > 0).all()


# Dropout


def test_dropout_applies_whenever_it_is_above_zero():
    # pytorch/pytorch#124464, #99293, NVIDIA/torch-harmonics#221: a module passes 0 in evaluation
    tensors = cross(batch=(1, 2))
    torch.manual_seed(0)
    first, second = (scaled_dot_product_attention(*tensors, dropout=0.5) for _ in range(2))
    assert not torch.equal(first, second)
    without = [scaled_dot_product_attention(*tensors, dropout=0.0) for _ in range(2)]
    assert torch.equal(*without)


@pytest.mark.parametrize("padded", [False, True])
def test_dropout_is_the_same_with_and_without_weights(padded):  # pytorch/pytorch#152028
    query, key, value = cross(queries=3, keys=4, batch=(2, 2), dtype=torch.float32)
    mask = torch.ones(3, 4, dtype=torch.bool)
    mask[0] = not padded
    results = []
    for return_weights in (False, True):
        torch.manual_seed(0)
        result = scaled_dot_product_attention(
            query, key, value, mask=mask, dropout=0.5, return_weights=return_weights
        )
        results.append(result[0] if return_weights else result)
    assert results[0].isfinite().all()
    assert torch.equal(*results)


def test_weights_are_returned_before_dropout():
    tensors = cross()
    _, weights = scaled_dot_product_attention(*tensors, return_weights=True)
    _, dropped = scaled_dot_product_attention(*tensors, dropout=0.9, return_weights=True)
    assert torch.equal(weights, dropped)


def test_dropout_keeps_the_mean_and_drops_weights():
    torch.manual_seed(0)
    value = torch.cat([torch.eye(4), torch.eye(4)], dim=-1).expand(20_000, 4, 8)
    zeros = torch.zeros(20_000, 4, 4)
    result = scaled_dot_product_attention(zeros[:, :1], zeros, value, dropout=0.25)[:, 0]
    dropped, again = result.chunk(2, dim=-1)
    assert torch.equal(dropped, again)  # a weight is dropped for its whole value
    torch.testing.assert_close(dropped.mean(dim=0), torch.full((4,), 0.25), atol=5e-3, rtol=0)
    assert dropped.unique().tolist() == [0, pytest.approx(1 / 3)]
    torch.testing.assert_close((dropped == 0).float().mean().item(), 0.25, atol=5e-3, rtol=0)


def test_dropout_of_everything():
    inputs = leaves(cross())
    output = scaled_dot_product_attention(*inputs, dropout=1.0)
    assert torch.equal(output, torch.zeros_like(output))
    for gradient in torch.autograd.grad(output.sum(), inputs):
        assert torch.equal(gradient, torch.zeros_like(gradient))
