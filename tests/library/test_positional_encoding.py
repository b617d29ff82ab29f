"""Positional encodings: the formula in every column, its properties, and where it is added."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from transformer_lib.positional_encoding import LearnedPositions, SinusoidalPositions, sinusoids

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
MODULES = (SinusoidalPositions, LearnedPositions)


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def closed_form(positions: list[int], d_model: int) -> Tensor:
    """Return the paper's formula entry by entry, with Python's own sine and cosine."""
    rows = [
        [
            (math.cos if column % 2 else math.sin)(pos / 10000 ** (2 * (column // 2) / d_model))
            for column in range(d_model)
        ]
        for pos in positions
    ]
    return torch.tensor(rows, dtype=torch.float64).reshape(len(positions), d_model)


@pytest.fixture
def double():
    """Let new tensors be float64, so that properties can be tested to many digits."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def precise(length: int, d_model: int, **options) -> Tensor:
    """Return sinusoids in float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return sinusoids(length, d_model, **options)
    finally:
        torch.set_default_dtype(before)


def rotation(k: int, d_model: int) -> Tensor:
    """Return the matrix that takes an encoding, as a column, k places on."""
    matrix = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(0, d_model, 2):
        angle = k / 10000 ** (i / d_model)
        matrix[i, i] = matrix[i + 1, i + 1] = math.cos(angle)
        matrix[i, i + 1], matrix[i + 1, i] = math.sin(angle), -math.sin(angle)
    return matrix


# The formula


def test_four_columns_by_hand():
    expected = torch.tensor(
        [
            [0, 1, 0, 1],
            [0.841471, 0.540302, 0.010000, 0.999950],
            [0.909297, -0.416147, 0.019999, 0.999800],
        ]
    )
    torch.testing.assert_close(sinusoids(3, 4), expected, atol=1e-6, rtol=0)


# harvardnlp/annotated-transformer#131: a loss that falls faster does not make the table right.
@pytest.mark.parametrize("d_model", [4, 6, 64, 512])
def test_every_column_is_the_formula(d_model):
    positions = [0, 1, 50, 4999, 5000]
    worst = (sinusoids(5001, d_model)[positions] - closed_form(positions, d_model)).abs().max()
    assert worst < 1e-6


def test_complex_numbers_give_the_same_at_all_places():
    omega = 10000.0 ** (-np.arange(0, 512, 2) / 512)
    hands = np.exp(1j * np.outer(np.arange(5001), omega))
    ours = sinusoids(5001, 512).double().numpy()
    assert np.abs(ours[:, 0::2] - hands.imag).max() < 1e-6
    assert np.abs(ours[:, 1::2] - hands.real).max() < 1e-6


def test_in_float64_no_digits_are_lost(double):
    worst = (sinusoids(5001, 64)[[1, 50, 5000]] - closed_form([1, 50, 5000], 64)).abs().max()
    assert worst < 1e-12


def test_angles_in_float32_would_be_off():
    """What the tests above guard against is real: the usual code misses their bound."""
    pair = torch.arange(0, 512, 2, dtype=torch.float32)
    angle = torch.arange(5001, dtype=torch.float32)[:, None] * torch.exp(
        pair * (-math.log(10000.0) / 512)
    )
    worst = (angle.sin() - sinusoids(5001, 512)[:, 0::2]).abs().max()
    assert 1e-4 < worst < 1e-3


# gc-os-ai/pyaptamer#526, datawhalechina/base-llm#67, codertimo/BERT-pytorch#78
@pytest.mark.parametrize("d_model", [1, 3, 5, 7])
def test_an_odd_width_ends_with_a_sine(d_model):
    torch.testing.assert_close(
        sinusoids(60, d_model).double(), closed_form(list(range(60)), d_model), atol=1e-6, rtol=0
    )


def test_five_columns():
    expected = torch.tensor([0.841471, 0.540302, 0.025116, 0.999685, 0.000631])
    torch.testing.assert_close(sinusoids(2, 5)[1], expected, atol=1e-6, rtol=0)
    added = SinusoidalPositions(5)(torch.zeros(1, 2, 5))
    torch.testing.assert_close(added[0, 1], expected, atol=1e-6, rtol=0)


# ajhalthor/Transformer-Neural-Network#14: sine and cosine of a pair have one frequency.
def test_sine_and_cosine_of_a_pair_lie_on_a_circle():
    table = sinusoids(2000, 64)
    squares = table[:, 0::2].square() + table[:, 1::2].square()
    torch.testing.assert_close(squares, torch.ones(2000, 32))


def test_wavelengths_grow_from_one_turn_by_one_factor():
    angle = torch.atan2(*precise(2, 512)[1].view(-1, 2).T)  # of each pair, after one step
    wavelength = 2 * math.pi / angle
    assert math.isclose(wavelength[0], 2 * math.pi, rel_tol=1e-9)
    assert math.isclose(wavelength[-1], 2 * math.pi * 10000 ** (510 / 512), rel_tol=1e-6)
    ratio = wavelength[1:] / wavelength[:-1]
    torch.testing.assert_close(ratio, ratio[:1].expand(255), rtol=1e-6, atol=0)


# Properties

WIDTHS = st.integers(1, 40).map(lambda n: 2 * n)
PLACES = st.integers(0, 5000)


@given(WIDTHS, PLACES)
def test_every_row_has_the_same_norm(d_model, pos):
    row = precise(1, d_model, offset=pos)[0]
    assert math.isclose(row.norm(), math.sqrt(d_model / 2), rel_tol=1e-12)


@given(WIDTHS, PLACES, st.integers(-200, 200))
def test_going_on_is_one_rotation_whatever_the_place(d_model, pos, k):
    k = max(k, -pos)
    here, there = (precise(1, d_model, offset=place)[0] for place in (pos, pos + k))
    torch.testing.assert_close(rotation(k, d_model) @ here, there, atol=1e-9, rtol=0)


@given(WIDTHS, PLACES, PLACES, st.integers(0, 500))
def test_the_inner_product_depends_on_the_distance_alone(d_model, p, q, shift):
    def product(first, second):
        return (precise(1, d_model, offset=first)[0] @ precise(1, d_model, offset=second)[0]).item()

    by_formula = sum(math.cos((p - q) / 10000 ** (i / d_model)) for i in range(0, d_model, 2))
    assert math.isclose(product(p, q), by_formula, abs_tol=1e-8)
    assert math.isclose(product(p, q), product(p + shift, q + shift), abs_tol=1e-8)
    assert math.isclose(product(p, q), product(q, p), abs_tol=1e-12)


@given(st.integers(0, 6), st.integers(0, 41), st.integers(0, 3000))
def test_an_offset_is_a_later_part_of_the_table(length, d_model, offset):
    part = sinusoids(length, d_model, offset=offset)
    assert torch.equal(part, sinusoids(offset + length, d_model)[offset:])


@given(WIDTHS)
def test_halves_are_the_same_columns_in_another_order(d_model):
    interleaved, halves = sinusoids(9, d_model), sinusoids(9, d_model, layout="halves")
    order = [*range(0, d_model, 2), *range(1, d_model, 2)]
    assert torch.equal(interleaved[:, order], halves)


def test_all_places_differ():
    table = precise(5000, 16)
    nearest = torch.cdist(table[::7], table).add(10 * torch.eye(5000, dtype=torch.float64)[::7])
    assert nearest.min() > 0.1


# Hugging Face


@pytest.mark.filterwarnings("ignore")
def test_marian_has_the_table_in_halves():
    pytest.importorskip("transformers")
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

    theirs = MarianSinusoidalPositionalEmbedding(600, 64)
    with torch.no_grad():
        theirs.weight.copy_(theirs.create_weight())
    assert (sinusoids(600, 64, layout="halves") - theirs.weight).abs().max() < 1e-6
    x = random(2, 5, 64, dtype=torch.float32)
    ours = SinusoidalPositions(64, layout="halves")
    torch.testing.assert_close(ours(x), x + theirs(x.shape))
    torch.testing.assert_close(ours(x, offset=7), x + theirs(x.shape, 7))
    assert (ours(x) - SinusoidalPositions(64)(x)).abs().max() > 0.5


def test_pytorchs_embedding_gives_the_same_as_a_learnt_table():
    positions, x = LearnedPositions(6, 9), random(2, 3, 6, dtype=torch.float32)
    embedding = nn.Embedding.from_pretrained(positions.table.detach().clone(), freeze=False)
    ours, theirs = positions(x, offset=4), x + embedding(torch.arange(4, 7))
    assert torch.equal(ours, theirs)
    ours.sin().sum().backward()
    theirs.sin().sum().backward()
    torch.testing.assert_close(positions.table.grad, embedding.weight.grad)


# What the modules add, and where


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_the_table_runs_along_the_axis_of_the_places(module, batch):
    positions, x = module(4, 10), random(*batch, 3, 4, dtype=torch.float32)
    result = positions(x)
    assert result.shape == x.shape
    for row in range(3):
        torch.testing.assert_close(
            result[..., row, :], x[..., row, :] + positions.table[row].detach()
        )


# AkiRusProd/numpy-transformer#1, KasperGroesLudvigsen/influenza_transformer#9
def test_two_sentences_get_one_encoding_and_three_words_get_three():
    out = SinusoidalPositions(4)(torch.zeros(2, 3, 4))
    assert torch.equal(out[0], out[1])
    assert torch.equal(out[0, 0], torch.tensor([0.0, 1, 0, 1]))
    assert len(out[0].unique(dim=0)) == 3


@pytest.mark.parametrize("module", MODULES)
def test_a_place_alone_equals_its_row_of_the_whole(module):
    positions, x = module(8, 20), random(2, 10, 8, dtype=torch.float32)
    whole = positions(x)
    assert torch.equal(positions(x[:, 7:8], offset=7), whole[:, 7:8])
    steps = [positions(x[:, t : t + 1], offset=t) for t in range(10)]
    assert torch.equal(torch.cat(steps, dim=1), whole)
    assert not torch.allclose(positions(x[:, 7:8]), whole[:, 7:8], atol=1e-3)


@pytest.mark.parametrize("module", MODULES)
def test_the_last_place_of_the_table_can_be_reached(module):
    positions, x = module(4, 6), torch.zeros(1, 6, 4)
    assert torch.equal(positions(x)[0], positions.table)
    assert torch.equal(positions(x[:, :2], offset=4)[0], positions.table[4:])
    assert positions(x[:, :0], offset=6).shape == (1, 0, 4)


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_result_has_the_dtype_of_x(module, dtype):
    positions, x = module(6, 5), random(2, 5, 6, dtype=dtype)
    result = positions(x)
    assert result.dtype == dtype
    torch.testing.assert_close(result, x + positions.table.detach().to(dtype))
    moved = module(6, 5).to(dtype)
    assert moved(x).dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_table_has_the_default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        table = sinusoids(5001, 64)
    finally:
        torch.set_default_dtype(before)
    assert table.dtype == dtype
    # Computed in float64 and rounded once, so off by no more than half a unit of the last digit.
    assert (table[-1].double() - closed_form([5000], 64)[0]).abs().max() <= torch.finfo(dtype).eps


@pytest.mark.parametrize("module", MODULES)
def test_x_is_left_alone(module):
    x = random(2, 3, 4, dtype=torch.float32)
    before = x.clone()
    module(4, 5)(x)
    assert torch.equal(x, before)


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (0, 4), (2, 0, 3, 4)])
def test_sizes_of_zero_give_empty_results(module, shape):
    assert module(4, 5)(torch.zeros(shape)).shape == shape


def test_empty_tables():
    assert sinusoids(0, 4).shape == (0, 4)
    assert sinusoids(3, 0).shape == sinusoids(3, 0, layout="halves").shape == (3, 0)
    assert SinusoidalPositions(0, 0)(torch.zeros(2, 0, 0)).shape == (2, 0, 0)


@pytest.mark.parametrize("module", MODULES)
def test_nan_stays_where_it_is(module):
    x = torch.zeros(2, 3, 4)
    x[1, 2, 0] = torch.nan
    assert torch.equal(module(4, 5)(x).isnan(), x.isnan())


# Learning


@pytest.mark.parametrize("module", MODULES)
def test_gradients(module, double):
    positions = module(4, 7)
    x = random(2, 3, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: positions(x, offset=2).sin(), x)
    table = random(7, 4, seed=1).requires_grad_()

    def of_the_table(table):
        return torch.func.functional_call(positions, {"table": table}, (x,), {"offset": 2})

    assert torch.autograd.gradcheck(of_the_table, table)


def test_only_the_places_in_use_learn():
    positions = LearnedPositions(4, 9)
    positions(torch.zeros(3, 2, 4), offset=5).sum().backward()
    expected = torch.zeros(9, 4)
    expected[5:7] = 3  # one from each sentence
    assert torch.equal(positions.table.grad, expected)


def test_sinusoids_do_not_learn_and_are_not_stored():
    positions = SinusoidalPositions(8)
    assert not list(positions.parameters())
    assert not positions.state_dict()
    assert not positions.table.requires_grad
    assert len(positions.table) == 5000


def test_a_learnt_table_is_stored_and_starts_small():
    torch.manual_seed(0)
    positions = LearnedPositions(256)
    assert [tuple(t.shape) for t in positions.state_dict().values()] == [(512, 256)]
    assert 0.0195 < positions.table.std() < 0.0205
    assert positions.table.mean().abs() < 1e-3


# Other devices


@pytest.mark.parametrize("module", MODULES)
def test_the_table_follows_the_module_to_another_device(module):
    assert module(4, 5).to("meta")(torch.zeros(2, 3, 4, device="meta")).device.type == "meta"


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_sinusoids_follow_the_vectors_there_and_back(layout):
    positions, x = SinusoidalPositions(6, 9, layout=layout), random(2, 3, 6, dtype=torch.float32)
    before = positions(x, offset=2)
    assert positions(torch.zeros(2, 3, 6, device="meta"), offset=2).is_meta
    assert positions.table.is_meta
    assert positions.table.shape == (9, 6)
    assert torch.equal(positions(x, offset=2), before)
    assert torch.equal(positions.table, sinusoids(9, 6, layout=layout))


def test_sinusoids_are_right_after_to_empty():
    """A buffer outside of the state would be left with whatever stands in memory."""
    with torch.device("meta"):
        positions = SinusoidalPositions(6, 9)
    positions.to_empty(device="cpu")
    assert torch.equal(positions(torch.zeros(9, 6)), sinusoids(9, 6))


def test_a_table_may_be_made_elsewhere():
    assert sinusoids(9, 6, device="meta").is_meta
    expected = sinusoids(9, 6)
    with torch.device("meta"):  # the numbers are computed on the CPU whatever the default
        assert torch.equal(sinusoids(9, 6), expected)
