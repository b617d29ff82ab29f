"""The positional encodings' own messages name the argument, what came and what was expected."""

import pytest
import torch
from torch import zeros

from transformer_lib.positional_encoding import LearnedPositions, SinusoidalPositions, sinusoids

MODULES = (SinusoidalPositions, LearnedPositions)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((-1, 4), {}, "length: expected 0 or more, got -1"),
        ((3, -2), {}, "d_model: expected 0 or more, got -2"),
        ((3, 4), {"offset": -5}, "offset: expected 0 or more, got -5"),
        (
            (3, 4),
            {"layout": "halfs"},
            "layout: expected 'interleaved', or 'halves' with an even d_model, "
            "got 'halfs' with d_model = 4",
        ),
        (
            (3, 5),
            {"layout": "halves"},
            "layout: expected 'interleaved', or 'halves' with an even d_model, "
            "got 'halves' with d_model = 5",
        ),
    ],
)
def test_sinusoids_refuse(arguments, options, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is compared whole
        sinusoids(*arguments, **options)
    assert str(caught.value) == message


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((4, -1), "max_length: expected 0 or more, got -1"),
        ((-4, 10), "d_model: expected 0 or more, got -4"),
    ],
)
def test_modules_refuse_negative_sizes(module, sizes, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        module(*sizes)
    assert str(caught.value) == message


def test_an_odd_width_in_halves_is_refused_at_construction():
    with pytest.raises(ValueError, match=r"'halves' with an even d_model, .* d_model = 5"):
        SinusoidalPositions(5, layout="halves")


# bentrevett/pytorch-seq2seq#69, #89
@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize(
    ("length", "offset", "max_length"), [(5, 0, 4), (5, 0, 1), (1, 4, 4), (2, 3, 4), (0, 5, 4)]
)
def test_beyond_the_table_both_lengths_are_named(module, length, offset, max_length):
    positions = module(6, max_length)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        positions(zeros(2, length, 6), offset=offset)
    assert str(caught.value) == (
        f"x: {length} positions from offset {offset} on reach beyond the table's {max_length}"
    )


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize(
    ("x", "offset", "error", "message"),
    [
        ([[0.0]], 0, TypeError, "x: expected a torch.Tensor, got list"),
        (
            zeros(2, 3, 6, dtype=torch.long),
            0,
            TypeError,
            "x: expected a floating-point tensor, got torch.int64",
        ),
        (
            zeros(6),
            0,
            ValueError,
            "x: expected at least 2 axes (…, length, d_model), got shape (6,)",
        ),
        (zeros(2, 3, 5), 0, ValueError, "x: expected d_model = 6, got 5 (shape (2, 3, 5))"),
        # One column would broadcast silently.
        (zeros(2, 3, 1), 0, ValueError, "x: expected d_model = 6, got 1 (shape (2, 3, 1))"),
        (zeros(2, 3, 6), -1, ValueError, "offset: expected 0 or more, got -1"),
    ],
)
def test_modules_refuse_what_does_not_fit(module, x, offset, error, message):
    with pytest.raises(error) as caught:
        module(6, 10)(x, offset=offset)
    assert str(caught.value) == message
