"""Masks: every cell by a loop, the alignment at the last key, and the converters."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.masking import (
    band_mask,
    causal_mask,
    combine_masks,
    mask_from_additive,
    mask_from_hidden,
    mask_to_additive,
    padding_mask,
)
from transformer_lib.softmax import softmax

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64)

widths = st.none() | st.integers(0, 7)


@st.composite
def sizes(draw):
    """Draw a number of queries and at least as many keys."""
    keys = draw(st.integers(0, 7))
    return draw(st.integers(0, keys)), keys


def random_mask(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.5


# Bands and triangles


def test_the_causal_mask_of_three():
    mask = causal_mask(3)
    assert mask.dtype == torch.bool
    assert mask.int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]


@given(sizes(), widths, widths)
def test_every_cell_of_a_band(size, before, after):
    queries, keys = size
    mask = band_mask(queries, keys, before=before, after=after)
    assert mask.shape == (queries, keys)
    for i in range(queries):
        own = i + keys - queries
        for j in range(keys):
            near = (before is None or own - before <= j) and (after is None or j <= own + after)
            assert mask[i, j] == near


@given(sizes())
def test_the_causal_mask_is_the_last_rows_of_the_square(size):
    queries, keys = size
    assert torch.equal(causal_mask(queries, keys), causal_mask(keys)[keys - queries :])


def test_one_query_at_the_end_sees_every_key():
    assert causal_mask(1, 4).tolist() == [[True] * 4]


@given(st.integers(1, 7))
def test_without_widths_a_band_hides_nothing(n):
    assert band_mask(n, before=None, after=None).all()
    assert torch.equal(band_mask(n, before=0, after=0), torch.eye(n, dtype=torch.bool))


def test_five_on_each_side_of_a_hundred():
    seen = band_mask(100, before=5, after=5).sum(dim=-1)
    assert seen.max() == 11  # itself and at most 10 others, instead of 99
    assert seen.min() == 6
    assert seen[5:95].eq(11).all()


def test_the_two_sides_are_not_mixed_up():
    mask = band_mask(5, before=2, after=1)
    assert mask[2].int().tolist() == [1, 1, 1, 1, 0]
    assert torch.equal(mask.mT, band_mask(5, before=1, after=2))


def test_masks_are_made_where_asked():
    assert causal_mask(3, device="meta").device.type == "meta"
    assert band_mask(3, before=1, after=None, device="meta").device.type == "meta"
    assert band_mask(3, before=None, after=None).device.type == "cpu"


# Padding


@given(st.lists(st.integers(0, 6), max_size=5))
def test_every_cell_of_a_padding_mask(lengths):
    mask = padding_mask(torch.tensor(lengths, dtype=torch.long), 6)
    assert mask.dtype == torch.bool
    assert mask.shape == (len(lengths), 6)
    for row, length in zip(mask, lengths, strict=True):
        assert row.tolist() == [j < length for j in range(6)]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_lengths_of_every_integer_type(dtype):
    mask = padding_mask(torch.tensor([3, 0], dtype=dtype), 3)
    assert mask.tolist() == [[True] * 3, [False] * 3]


def test_lengths_of_zero():  # d2l-ai/d2l-en#2423, pytorch/pytorch#81077
    mask = padding_mask(torch.tensor([0, 2]), 3)[:, None, :]
    weights = softmax(torch.zeros(2, 1, 3) + mask_to_additive(mask))
    assert weights.tolist() == [[[0, 0, 0]], [[0.5, 0.5, 0]]]


# Combinations


def test_a_key_is_seen_where_every_mask_lets_it():
    masks = [random_mask(4, 5, seed=seed) for seed in range(3)]
    combined = combine_masks(*masks)
    for i in range(4):
        for j in range(5):
            assert combined[i, j] == all(mask[i, j] for mask in masks)


def test_none_hides_nothing():
    mask = random_mask(4, 5)
    assert combine_masks() is None
    assert combine_masks(None, None) is None
    assert torch.equal(combine_masks(None, mask, None), mask)


def test_masks_broadcast():
    causal, keys = causal_mask(5), padding_mask(torch.tensor([5, 2, 0]), 5)
    combined = combine_masks(causal, keys[:, None, None, :])
    assert combined.shape == (3, 1, 5, 5)
    for b in range(3):
        assert torch.equal(combined[b, 0], causal & keys[b])


def test_padding_is_hidden_as_key_and_not_as_query():  # pytorch/pytorch#63271
    combined = combine_masks(causal_mask(5), padding_mask(torch.tensor([4]), 5)[:, None, None, :])
    assert combined[0, 0, 4].int().tolist() == [1, 1, 1, 1, 0]
    assert not combined[..., 4].any()


def test_the_masks_themselves_are_left_alone():
    masks = [random_mask(4, 5, seed=seed) for seed in range(2)]
    before = [mask.clone() for mask in masks]
    combine_masks(*masks)
    assert all(torch.equal(a, b) for a, b in zip(before, masks, strict=True))


# Conversions


@given(st.integers(0, 1000))
def test_converters_lead_back(seed):
    mask = random_mask(3, 4, seed=seed)
    assert torch.equal(mask_from_additive(mask_to_additive(mask)), mask)
    assert torch.equal(mask_from_hidden(mask), ~mask)
    assert torch.equal(mask_from_hidden(mask_from_hidden(mask)), mask)


@pytest.mark.parametrize("dtype", FLOATS)
def test_additive_masks_hold_zero_and_minus_infinity(dtype):
    additive = mask_to_additive(torch.tensor([True, False]), dtype)
    assert additive.dtype == dtype
    assert additive.tolist() == [0, -torch.inf]
    assert mask_from_additive(additive).tolist() == [True, False]


def test_a_float_padding_mask_is_converted():  # pytorch/pytorch#92554, mlverse/torch#1205
    key_padding = torch.tensor([[0.0, -0.0, -torch.inf]])
    hidden = torch.tensor([[False, False, True]])
    assert torch.equal(mask_from_additive(key_padding), mask_from_hidden(hidden))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 2, 3, 4)])
def test_converters_keep_the_shape(shape):
    mask = torch.ones(shape, dtype=torch.bool)
    assert mask_from_hidden(mask).shape == shape
    assert mask_to_additive(mask).shape == shape
    assert mask_from_additive(torch.zeros(shape)).shape == shape
