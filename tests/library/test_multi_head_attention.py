"""Multi-head attention: PyTorch's numbers, heads that stay apart, and masks that hide."""

import copy
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from transformer_lib.masking import causal_mask, padding_mask
from transformer_lib.multi_head_attention import (
    KeysValues,
    MultiHeadAttention,
    join_heads,
    split_heads,
)

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
PROJECTIONS = ("query_projection", "key_projection", "value_projection")


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def chance(*shape: int, seed: int = 0) -> Tensor:
    """Return a random mask in which no row is empty."""
    mask = random(*shape, seed=seed) > 0
    mask[..., 0] = True
    return mask


def layer(
    d_model: int = 12, n_heads: int = 3, *, dtype: torch.dtype = torch.float64, **options
) -> MultiHeadAttention:
    """Return a layer whose biases are not zero."""
    torch.manual_seed(0)
    attention = MultiHeadAttention(d_model, n_heads, **options).to(dtype)
    for name, parameter in attention.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)
    return attention


def inputs(batch: int = 2, queries: int = 4, keys: int = 5, d_model: int = 12) -> tuple:
    """Return a query, key and value; key and value differ."""
    return (
        random(batch, queries, d_model, seed=1),
        random(batch, keys, d_model, seed=2),
        random(batch, keys, d_model, seed=3),
    )


def as_pytorch_has_it(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """Return PyTorch's layer with our weights."""
    bias = ours.output_projection.bias is not None
    weight = ours.output_projection.weight
    theirs = nn.MultiheadAttention(ours.d_model, ours.n_heads, bias=bias, batch_first=True)
    state = {
        "in_proj_weight": torch.cat([getattr(ours, name).weight for name in PROJECTIONS]),
        "out_proj.weight": weight,
    }
    if bias:
        state["in_proj_bias"] = torch.cat([getattr(ours, name).bias for name in PROJECTIONS])
        state["out_proj.bias"] = ours.output_projection.bias
    theirs = theirs.to(weight.dtype)
    theirs.load_state_dict(state)
    return theirs


# Splitting and joining


def test_heads_get_neighbouring_entries_of_every_token():
    x = torch.tensor([[[10.0, 11, 12, 13], [20, 21, 22, 23], [30, 31, 32, 33]]])
    heads = split_heads(x, 2)
    assert heads[0, 0].tolist() == [[10, 11], [20, 21], [30, 31]]
    assert heads[0, 1].tolist() == [[12, 13], [22, 23], [32, 33]]
    assert torch.equal(join_heads(heads), x)


@given(st.integers(0, 3), st.integers(0, 4), st.integers(1, 4), st.integers(1, 3))
def test_joining_undoes_splitting(batch, n, n_heads, d_k):
    x = random(batch, n, n_heads * d_k)
    heads = split_heads(x, n_heads)
    assert heads.shape == (batch, n_heads, n, d_k)
    assert torch.equal(join_heads(heads), x)


# Parity


def test_it_is_the_loop_over_the_heads():
    attention, (query, key, value) = layer(), inputs()
    results = []
    for i in range(3):
        rows = slice(4 * i, 4 * i + 4)  # nn.Linear stores a head's columns as rows
        q, k, v = (
            x @ getattr(attention, name).weight[rows].T + getattr(attention, name).bias[rows]
            for x, name in zip((query, key, value), PROJECTIONS, strict=True)
        )
        results.append(torch.softmax(q @ k.mT / 4**0.5, dim=-1) @ v)
    expected = torch.cat(results, dim=-1) @ attention.output_projection.weight.T
    expected = expected + attention.output_projection.bias
    torch.testing.assert_close(attention(query, key, value), expected)


MASKS = {
    "none": ({}, {}),
    "mask": ({"mask": chance(4, 5)}, {"attn_mask": ~chance(4, 5)}),
    "mask per head": (
        {"mask": chance(2, 3, 4, 5)},
        {"attn_mask": ~chance(2, 3, 4, 5).flatten(0, 1)},
    ),
    "mask per sentence": (
        {"mask": chance(2, 1, 4, 5)},
        {"attn_mask": ~chance(2, 1, 4, 5).expand(2, 3, 4, 5).flatten(0, 1)},
    ),
    "padding": (
        {"key_mask": padding_mask(torch.tensor([5, 2]), 5)},
        {"key_padding_mask": ~padding_mask(torch.tensor([5, 2]), 5)},
    ),
    "mask and padding": (
        {"mask": chance(4, 5), "key_mask": padding_mask(torch.tensor([5, 2]), 5)},
        {
            "attn_mask": ~chance(4, 5),
            "key_padding_mask": ~padding_mask(torch.tensor([5, 2]), 5),
        },
    ),
    "mask per head and padding": (
        {"mask": chance(2, 3, 4, 5), "key_mask": padding_mask(torch.tensor([5, 2]), 5)},
        {
            "attn_mask": ~chance(2, 3, 4, 5).flatten(0, 1),
            "key_padding_mask": ~padding_mask(torch.tensor([5, 2]), 5),
        },
    ),
    "causal": ({"causal": True}, {"attn_mask": ~causal_mask(4, 5)}),
    "bias": ({"bias": random(4, 5, seed=7)}, {"attn_mask": random(4, 5, seed=7)}),
    "bias per head": (
        {"bias": random(2, 3, 4, 5, seed=7)},
        {"attn_mask": random(2, 3, 4, 5, seed=7).flatten(0, 1)},
    ),
}


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize(
    ("dtype", "close"), [(torch.float32, 1e-5), (torch.float64, 1e-13)], ids=["32", "64"]
)
def test_pytorch_gives_the_same(masks, bias, dtype, close):
    def to_dtype(options):
        floating = {
            k: v for k, v in options.items() if isinstance(v, Tensor) and v.is_floating_point()
        }
        return options | {name: tensor.to(dtype) for name, tensor in floating.items()}

    our_options, their_options = map(to_dtype, MASKS[masks])
    ours = layer(bias=bias, dtype=dtype)
    theirs = as_pytorch_has_it(ours)
    our_inputs = [x.to(dtype).requires_grad_() for x in inputs()]
    their_inputs = [x.detach().clone().requires_grad_() for x in our_inputs]

    output = ours(*our_inputs, **our_options)
    slow, weights = ours(*our_inputs, return_weights=True, **our_options)
    expected, expected_weights = theirs(*their_inputs, average_attn_weights=False, **their_options)
    up = random(*output.shape, seed=4, dtype=dtype)
    output.backward(up)
    expected.backward(up)
    pairs = [
        (output, expected),
        (slow, expected),
        (weights, expected_weights),
        *((a.grad, b.grad) for a, b in zip(our_inputs, their_inputs, strict=True)),
        (
            torch.cat([getattr(ours, name).weight.grad for name in PROJECTIONS]),
            theirs.in_proj_weight.grad,
        ),
        (ours.output_projection.weight.grad, theirs.out_proj.weight.grad),
    ]
    if bias:
        pairs += [
            (
                torch.cat([getattr(ours, name).bias.grad for name in PROJECTIONS]),
                theirs.in_proj_bias.grad,
            ),
            (ours.output_projection.bias.grad, theirs.out_proj.bias.grad),
        ]
    for a, b in pairs:
        torch.testing.assert_close(a, b, atol=close, rtol=close)


@pytest.mark.parametrize("return_weights", [False, True], ids=["fused", "written out"])
def test_gradients_in_double_precision(return_weights):
    attention = layer(d_model=4, n_heads=2)
    tensors = [x.requires_grad_() for x in inputs(queries=2, keys=3, d_model=4)]
    mask = torch.tensor([[True, False, True], [False, False, False]])  # one row is empty

    def output(*tensors):
        result = attention(*tensors, mask=mask, return_weights=return_weights)
        return result[0] if return_weights else result

    assert torch.autograd.gradcheck(output, tensors)
    parameters = dict(attention.named_parameters())

    def output_of(*values):
        values = dict(zip(parameters, values, strict=True))
        return torch.func.functional_call(attention, values, tuple(tensors), {"mask": mask})

    assert torch.autograd.gradcheck(output_of, tuple(parameters.values()))


# What the layer is made of


@pytest.mark.parametrize(("d_model", "n_heads"), [(512, 1), (512, 8), (12, 3)])
def test_the_parameters_do_not_grow_with_the_heads(d_model, n_heads):
    def count(**options):
        attention = MultiHeadAttention(d_model, n_heads, **options)
        return sum(parameter.numel() for parameter in attention.parameters())

    assert count() == 4 * d_model**2 + 4 * d_model
    assert count(bias=False) == 4 * d_model**2


def test_a_new_layer_is_xavier_uniform_without_biases():
    torch.manual_seed(0)
    attention = MultiHeadAttention(256, 4)
    for name, parameter in attention.named_parameters():
        if name.endswith("bias"):
            assert torch.equal(parameter, torch.zeros(256))
        else:
            bound = (6 / 512) ** 0.5
            assert 0.99 * bound < parameter.abs().max() <= bound
    weights = [p for p in attention.parameters() if p.dim() == 2]
    assert all(not torch.equal(a, b) for a, b in pairwise(weights))


def test_the_same_seed_gives_the_same_layer():
    torch.manual_seed(3)
    one = MultiHeadAttention(8, 2).state_dict()
    torch.manual_seed(3)
    other = MultiHeadAttention(8, 2).state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_each_head_sees_the_whole_vector():
    attention = layer()
    x = random(1, 2, 12).requires_grad_()
    for i in range(3):
        query = split_heads(attention.query_projection(x), 3)[0, i, 0].sum()
        key, value = (part[0, i, 0].sum() for part in attention.project(x, x))
        for of_one_head in (query, key, value):
            (gradient,) = torch.autograd.grad(of_one_head, x, retain_graph=True)
            assert (gradient[0, 0] != 0).all()
            assert (gradient[0, 1] == 0).all()


def test_heads_have_no_names():
    attention, tensors = layer(), inputs()
    swapped = copy.deepcopy(attention)
    order = torch.arange(12).reshape(3, 4).roll(1, dims=0).flatten()
    with torch.no_grad():
        for name in PROJECTIONS:
            getattr(swapped, name).weight.copy_(getattr(attention, name).weight[order])
            getattr(swapped, name).bias.copy_(getattr(attention, name).bias[order])
        swapped.output_projection.weight.copy_(attention.output_projection.weight[:, order])
    torch.testing.assert_close(swapped(*tensors), attention(*tensors))


def test_query_key_and_value_each_have_their_part():
    attention, (query, key, value) = layer(), inputs()
    _, weights = attention(query, key, value, return_weights=True)
    output, same = attention(query, key, value.flip(0), return_weights=True)
    assert torch.equal(same, weights)  # values have no part in the weights
    assert not torch.allclose(output, attention(query, key, value))
    _, others = attention(query, key.flip(0), value, return_weights=True)
    assert not torch.allclose(others, weights)
    _, others = attention(query.flip(0), key, value, return_weights=True)
    assert not torch.allclose(others, weights)


# Properties


@given(st.integers(1, 6), st.randoms(use_true_random=False), st.integers(0, 1000))
def test_self_attention_is_permutation_equivariant(n, chance, seed):
    attention, x = layer(), random(2, n, 12, seed=seed)
    order = list(range(n))
    chance.shuffle(order)
    shuffled = attention(x[:, order], x[:, order], x[:, order])
    torch.testing.assert_close(shuffled, attention(x, x, x)[:, order])


@given(st.integers(1, 6), st.randoms(use_true_random=False), st.integers(0, 1000))
def test_the_order_of_the_pairs_does_not_count(n, chance, seed):
    attention, (query, key, value) = layer(), inputs(keys=n)
    order = list(range(n))
    chance.shuffle(order)
    mask = random(4, n, seed=seed) > 0
    output = attention(query, key, value, mask=mask)
    again = attention(query, key[:, order], value[:, order], mask=mask[:, order])
    torch.testing.assert_close(again, output)


@given(st.integers(0, 1000), st.booleans())
def test_the_weights_of_every_head_sum_to_one_or_are_zero(seed, causal):
    attention, tensors = layer(), inputs()
    mask = random(2, 3, 4, 5, seed=seed) > 0.5
    _, weights = attention(*tensors, mask=mask, causal=causal, return_weights=True)
    seen = mask & causal_mask(4, 5) if causal else mask
    assert weights.shape == (2, 3, 4, 5)
    assert (weights[~seen] == 0).all()
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(dim=-1), seen.any(dim=-1).double())


@pytest.mark.slow
def test_neighbours_in_the_batch_change_nothing():
    attention, (query, key, value) = layer(), inputs(batch=3)
    key_mask = padding_mask(torch.tensor([5, 3, 0]), 5)
    output, weights = attention(query, key, value, key_mask=key_mask, return_weights=True)
    for i in range(3):
        of_one = (slice(i, i + 1),)
        alone, alone_weights = attention(
            query[of_one],
            key[of_one],
            value[of_one],
            key_mask=key_mask[of_one],
            return_weights=True,
        )
        torch.testing.assert_close(output[of_one], alone)
        torch.testing.assert_close(weights[of_one], alone_weights)


def test_queries_do_not_know_of_each_other():
    attention, (query, key, value) = layer(), inputs()
    alone = torch.cat([attention(query[:, [t]], key, value) for t in range(4)], dim=1)
    torch.testing.assert_close(attention(query, key, value), alone)


def test_later_tokens_do_not_reach_earlier_ones_under_causal():
    attention, x = layer(), random(2, 5, 12)
    output = attention(x, x, x, causal=True)
    for t in range(4):
        changed = x.clone()
        changed[:, t + 1 :] = random(2, 4 - t, 12, seed=9)
        again = attention(changed, changed, changed, causal=True)
        torch.testing.assert_close(again[:, : t + 1], output[:, : t + 1])
        assert not torch.allclose(again[:, t + 1 :], output[:, t + 1 :])


def test_arguments_are_left_alone():
    attention, tensors = layer(), inputs()
    mask, key_mask = chance(4, 5), padding_mask(torch.tensor([5, 2]), 5)
    given_ = (*tensors, mask, key_mask)
    before = [tensor.clone() for tensor in given_]
    attention(*tensors, mask=mask, key_mask=key_mask, causal=True)
    assert all(torch.equal(a, b) for a, b in zip(before, given_, strict=True))


# What is left out


@pytest.mark.parametrize("return_weights", [False, True])
def test_without_keys_it_attends_to_itself(return_weights):
    attention, x = layer(), random(2, 4, 12)
    for masks in ({}, {"causal": True, "key_mask": padding_mask(torch.tensor([4, 2]), 4)}):
        options = {"return_weights": return_weights, **masks}
        expected = attention(x, x, x, **options)
        for came in (attention(x, **options), attention(query=x, **options)):
            torch.testing.assert_close(came, expected, rtol=0, atol=0)


def test_without_values_the_keys_are_the_values():
    attention, (query, key, value) = layer(), inputs()
    assert torch.equal(attention(query, key), attention(query, key, key))
    assert torch.equal(attention(query, key=key), attention(query, key, key))
    assert not torch.allclose(attention(query, key), attention(query, key, value))
    assert attention(query, key).shape == (2, 4, 12)


# Keys and values projected before


def test_projecting_first_changes_nothing():
    attention, (query, key, value) = layer(), inputs()
    kept = attention.project(key, value)
    assert isinstance(kept, KeysValues)
    assert kept.keys.shape == kept.values.shape == (2, 3, 5, 4)
    masks = {"key_mask": padding_mask(torch.tensor([5, 2]), 5), "causal": True}
    for options in ({}, masks):
        later = attention(query, keys_values=kept, return_weights=True, **options)
        direct = attention(query, key, value, return_weights=True, **options)
        assert all(torch.equal(a, b) for a, b in zip(later, direct, strict=True))
        later = attention(query, keys_values=kept, **options)
        assert torch.equal(later, attention(query, key, value, **options))


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_a_sequence_in_parts_gives_what_it_gives_at_once(sizes):
    attention, x = layer(), random(2, sum(sizes), 12)
    whole = attention(x, x, x, causal=True)
    kept = attention.project(x[:, :0], x[:, :0])
    parts = []
    for part in x.split(sizes, dim=1):
        pairs = zip(kept, attention.project(part, part), strict=True)
        kept = KeysValues(*(torch.cat(pair, dim=2) for pair in pairs))
        parts.append(attention(part, keys_values=kept, causal=True))
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)


def test_gradients_flow_through_what_was_projected_before():
    attention, (query, key, value) = layer(), [x.requires_grad_() for x in inputs()]
    kept = attention.project(key, value)
    attention(query, keys_values=kept).sum().backward()
    assert all(x.grad.abs().sum() > 0 for x in (query, key, value))


def test_positions_may_be_added_to_queries_and_keys_alone():
    attention = layer()
    positions = random(5, 12, seed=5)
    same = random(1, 1, 12).expand(2, 5, 12)
    output = attention(same + positions, same + positions, same)
    torch.testing.assert_close(output, output[:, :1].expand(2, 5, 12))
    everywhere = attention(same + positions, same + positions, same + positions)
    assert not torch.allclose(everywhere, everywhere[:, :1].expand(2, 5, 12))


# Known failures of other libraries


@pytest.mark.parametrize("return_weights", [False, True], ids=["fused", "written out"])
def test_a_row_that_sees_nothing_gets_the_bias_and_finite_gradients(return_weights):
    # pytorch/pytorch#41508, #103749
    attention = layer(d_model=8, n_heads=2)
    x = random(1, 4, 8).requires_grad_()
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[0] = False

    def attend(query, mask):
        result = attention(query, x, x, mask=mask, return_weights=return_weights)
        return result if return_weights else (result, None)

    output, weights = attend(x, mask)
    assert torch.equal(output[0, 0], attention.output_projection.bias)
    if return_weights:
        assert (weights[:, :, 0] == 0).all()
    rest, _ = attend(x[:, 1:], mask[1:])
    torch.testing.assert_close(output[:, 1:], rest)
    for loss in (output[:, 1:].sum(), output.sum()):
        gradients = torch.autograd.grad(loss, [x, *attention.parameters()], retain_graph=True)
        assert all(gradient.isfinite().all() for gradient in gradients)
    (gradient,) = torch.autograd.grad(output[:, 0].sum(), x)
    assert (gradient == 0).all()


def test_without_bias_a_row_that_sees_nothing_is_zero():
    attention, tensors = layer(bias=False), inputs()
    output = attention(*tensors, key_mask=padding_mask(torch.tensor([5, 0]), 5))
    assert (output[1] == 0).all()
    assert (output[0] != 0).all()


@pytest.mark.parametrize("return_weights", [False, True], ids=["fused", "written out"])
def test_evaluation_knows_no_dropout(return_weights):
    # pytorch/pytorch#124464, #99293; NVIDIA/torch-harmonics#221
    attention, tensors = layer(dropout=0.5), inputs()
    plain = layer(dropout=0.0)

    def output(module):
        result = module(*tensors, return_weights=return_weights)
        return result[0] if return_weights else result

    attention.eval()
    assert torch.equal(output(attention), output(attention))
    assert torch.equal(output(attention), output(plain))
    attention.train()
    assert not torch.equal(output(attention), output(attention))


def test_dropped_weights_are_made_up_for_by_the_others():
    attention = layer(dropout=0.5)
    many = [x.expand(5000, -1, -1) for x in inputs(batch=1)]
    torch.manual_seed(0)
    mean = attention(*many).mean(dim=0)
    expected = attention.eval()(*inputs(batch=1))[0]
    torch.testing.assert_close(mean, expected, atol=0.08, rtol=0)


def test_weights_are_returned_before_dropout():
    attention, tensors = layer(dropout=0.9), inputs()
    _, weights = attention(*tensors, return_weights=True)
    _, expected = attention.eval()(*tensors, return_weights=True)
    assert torch.equal(weights, expected)


def looking_at_one_key_each() -> MultiHeadAttention:
    """Return a layer of two heads: head 0 looks at key 0 and head 1 at key 1, of one-hot keys."""
    attention = layer(d_model=8, n_heads=2)
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.zero_()
        attention.query_projection.bias[0] = 100  # head 0 asks with its first entry
        attention.query_projection.bias[4] = 100  # and so does head 1
        attention.key_projection.weight[0, 0] = 1  # which is 1 for key 0 in head 0
        attention.key_projection.weight[4, 1] = 1  # and 1 for key 1 in head 1
    return attention


def test_weights_come_per_head():
    # pytorch/pytorch#34537, #47583
    x = torch.eye(8, dtype=torch.float64)[None, :2]
    _, weights = looking_at_one_key_each()(x, x, x, return_weights=True)
    assert weights.shape == (1, 2, 2, 2)
    for head, expected in enumerate(([1.0, 0.0], [0.0, 1.0])):
        torch.testing.assert_close(weights[0, head], torch.tensor([expected] * 2).double())
    torch.testing.assert_close(weights.mean(dim=1), torch.full((1, 2, 2), 0.5).double())


@pytest.mark.parametrize("return_weights", [False, True], ids=["fused", "written out"])
@pytest.mark.parametrize(("batch", "queries", "keys"), [(0, 4, 4), (2, 0, 4), (2, 4, 0), (0, 0, 0)])
def test_sizes_of_zero(batch, queries, keys, return_weights):
    # pytorch/pytorch#188765, #195812
    attention = layer(d_model=8, n_heads=2, dtype=torch.float32)
    tensors = [x.float().requires_grad_() for x in inputs(batch, queries, keys, 8)]
    mask = torch.ones(queries, keys, dtype=torch.bool)
    key_mask = torch.ones(batch, keys, dtype=torch.bool)
    for masks in ({}, {"mask": mask}, {"key_mask": key_mask}, {"mask": mask, "key_mask": key_mask}):
        output = attention(*tensors, return_weights=return_weights, **masks)
        if return_weights:
            output, weights = output
            assert weights.shape == (batch, 2, queries, keys)
        assert output.shape == (batch, queries, 8)
        assert output.dtype == torch.float32
        if keys == 0:
            assert torch.equal(output, attention.output_projection.bias.expand_as(output))
        output.sum().backward()
        assert all(x.grad.shape == x.shape for x in tensors)


def test_causal_with_sizes_of_zero():
    attention, x = layer(), random(0, 4, 12)
    assert attention(x, x, x, causal=True).shape == (0, 4, 12)


def test_with_the_same_random_state_both_paths_drop_the_same():
    # pytorch/pytorch#152028
    attention = layer(d_model=8, n_heads=2, dropout=0.5)
    tensors = random(2, 3, 8), random(2, 4, 8, seed=1), random(2, 4, 8, seed=2)
    mask = torch.ones(3, 4, dtype=torch.bool)
    mask[0] = False
    torch.manual_seed(5)
    output, weights = attention(*tensors, mask=mask, return_weights=True)
    torch.manual_seed(5)
    assert torch.equal(attention(*tensors, mask=mask), output)
    assert output.isfinite().all()
    assert (weights[:, :, 0] == 0).all()


@pytest.mark.parametrize("return_weights", [False, True], ids=["fused", "written out"])
def test_each_sentence_has_its_own_padding_in_every_head(return_weights):
    # ArrowLuo/CLIP4Clip#22; line/lighthouse#77; pytorch/pytorch#64706
    attention = layer(d_model=8, n_heads=2)
    x = random(2, 3, 8)
    lengths = [3, 1]
    key_mask = padding_mask(torch.tensor(lengths), 3)
    per_sentence = key_mask[:, None, None, :].expand(2, 1, 3, 3)
    for masks in ({"key_mask": key_mask}, {"mask": per_sentence}):
        output = attention(x, x, x, return_weights=return_weights, **masks)
        output = output[0] if return_weights else output
        for i, length in enumerate(lengths):
            alone = attention(x[[i], :length], x[[i], :length], x[[i], :length])
            torch.testing.assert_close(output[[i], :length], alone)


@pytest.mark.parametrize("return_weights", [False, True], ids=["fused", "written out"])
def test_numbers_in_the_padding_do_not_count(return_weights):
    # pytorch/pytorch#64525
    attention = layer(d_model=8, n_heads=2, dtype=torch.float32)
    x = random(2, 3, 8, dtype=torch.float32)
    key_mask = padding_mask(torch.tensor([3, 2]), 3)
    outputs = []
    for fill in (0, 1e-10, 1e10):
        x[1, 2] = fill
        output = attention(x, x, x, key_mask=key_mask, return_weights=return_weights)
        outputs.append(output[0] if return_weights else output)
    for output in outputs[1:]:
        assert torch.equal(output[0], outputs[0][0])
        assert torch.equal(output[1, :2], outputs[0][1, :2])


def test_padding_hides_keys_and_no_queries():
    # pytorch/pytorch#63271
    attention = layer(d_model=8, n_heads=2)
    with torch.no_grad():
        attention.query_projection.weight.zero_()
        attention.query_projection.bias.zero_()  # all scores are 0
    x = random(1, 5, 8)
    key_mask = padding_mask(torch.tensor([4]), 5)
    _, weights = attention(x, x, x, causal=True, key_mask=key_mask, return_weights=True)
    quarter = torch.tensor([0.25, 0.25, 0.25, 0.25, 0.0]).double()
    torch.testing.assert_close(weights[0, :, 4], quarter.expand(2, 5))
    assert (weights[..., 4] == 0).all()
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(1, 2, 5).double())


@pytest.mark.parametrize("keys", [4, 6])
def test_causal_holds_whatever_else_is_asked_for(keys):
    # pytorch/pytorch#99282, #100709, #118972
    attention, (query, key, value) = layer(), inputs(keys=keys)
    key_mask = padding_mask(torch.tensor([keys, keys - 2]), keys)
    for masks in ({}, {"key_mask": key_mask}):
        expected, expected_weights = attention(
            query, key, value, mask=causal_mask(4, keys), return_weights=True, **masks
        )
        torch.testing.assert_close(attention(query, key, value, causal=True, **masks), expected)
        output, weights = attention(query, key, value, causal=True, return_weights=True, **masks)
        torch.testing.assert_close(output, expected)
        torch.testing.assert_close(weights, expected_weights)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("return_weights", [False, True], ids=["fused", "written out"])
def test_every_floating_dtype(dtype, return_weights):
    # NVIDIA/apex#1105, #93; facebookresearch/fairseq#3575
    attention = layer(d_model=8, n_heads=2, dtype=dtype)
    exact = copy.deepcopy(attention).double()
    x = random(1, 3, 8, dtype=dtype)
    key_mask = torch.tensor([[False, True, True]])  # the first query sees nothing
    options = {"causal": True, "key_mask": key_mask, "return_weights": return_weights}
    output, expected = attention(x, x, x, **options), exact(*3 * (x.double(),), **options)
    if return_weights:
        (output, weights), (expected, _) = output, expected
        assert weights.dtype == dtype
        assert (weights[..., 0] == 0).all()
        assert (weights[:, :, 1, 2] == 0).all()
    assert output.dtype == dtype
    assert torch.equal(output[0, 0], attention.output_projection.bias)
    close = {torch.float16: 1e-2, torch.bfloat16: 6e-2}.get(dtype, 1e-5)
    torch.testing.assert_close(output.double(), expected, atol=close, rtol=close)


def test_nan_spreads_to_its_own_sentence_only():
    attention, (query, key, value) = layer(), inputs()
    clean = attention(query, key, value)
    key[1, 4] = torch.nan
    output = attention(query, key, value)
    assert output[1].isnan().all()
    torch.testing.assert_close(output[0], clean[0])
