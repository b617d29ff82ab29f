"""The masks' own messages name the argument, what came and what was expected."""

import pytest
import torch

from transformer_lib._checks.common import require_mask
from transformer_lib.masking import (
    band_mask,
    causal_mask,
    combine_masks,
    mask_from_additive,
    mask_from_hidden,
    mask_to_additive,
    padding_mask,
)

ADVICE = (
    "; mask_from_additive converts 0 and −inf, mask_from_hidden a mask in which True hides, "
    "and a score bias goes into the argument bias"
)
EXPECTED = "expected a boolean tensor in which True means 'may attend', got "
TRUE = torch.ones(2, 3, dtype=torch.bool)


def message(error, function, *arguments, **options):
    with pytest.raises(error) as caught:
        function(*arguments, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("queries", "keys", "options", "expected"),
    [
        (
            5,
            3,
            {"before": None, "after": 0},
            "queries: expected at most as many as keys = 3, got 5: "
            "the last query stands at the last key",
        ),
        (-1, None, {"before": 1, "after": 1}, "queries: expected 0 or more, got -1"),
        (3, 3, {"before": -1, "after": 1}, "before: expected 0 or more, got -1"),
        (3, 3, {"before": None, "after": -2}, "after: expected 0 or more, got -2"),
    ],
)
def test_bands_that_cannot_be(queries, keys, options, expected):
    assert message(ValueError, band_mask, queries, keys, **options) == expected


def test_more_queries_than_keys():
    assert message(ValueError, causal_mask, 2, 1) == (
        "queries: expected at most as many as keys = 1, got 2: "
        "the last query stands at the last key"
    )


def test_both_widths_must_be_said():
    with pytest.raises(TypeError, match="before"):
        band_mask(3, after=0)
    with pytest.raises(TypeError, match="positional"):
        band_mask(3, 3, 1, 1)


@pytest.mark.parametrize(
    ("lengths", "error", "expected"),
    [
        ([2, 1], TypeError, "lengths: expected a tensor of integers, got list"),
        (
            torch.tensor([2.0, 1.0]),
            TypeError,
            "lengths: expected a tensor of integers, got torch.float32",
        ),
        (
            torch.tensor([True]),
            TypeError,
            "lengths: expected a tensor of integers, got torch.bool",
        ),
        (torch.tensor([[2], [1]]), ValueError, "lengths: expected shape (batch), got (2, 1)"),
        (torch.tensor(2), ValueError, "lengths: expected shape (batch), got ()"),
        (torch.tensor([2, 4]), ValueError, "lengths: expected 0 to 3, got [2, 4]"),
        (torch.tensor([-1, 3]), ValueError, "lengths: expected 0 to 3, got [-1, 3]"),
    ],
)
def test_lengths_that_are_none(lengths, error, expected):
    assert message(error, padding_mask, lengths, 3) == expected


def test_unsigned_lengths_are_integers():  # not so for the shape checks
    mask = padding_mask(torch.tensor([3, 0], dtype=torch.uint8), 3)
    assert mask.tolist() == [[True] * 3, [False] * 3]


@pytest.mark.parametrize(
    ("mask", "came"),
    [
        (TRUE.float(), "torch.float32"),
        (TRUE.half(), "torch.float16"),
        (TRUE.long(), "torch.int64"),
        (TRUE.to(torch.uint8), "torch.uint8"),
        ([[True]], "list"),
        (None, "NoneType"),
    ],
)
def test_only_booleans_are_masks(mask, came):
    assert message(TypeError, require_mask, mask) == "mask: " + EXPECTED + came + ADVICE
    assert message(TypeError, require_mask, mask, "key_mask").startswith("key_mask: expected")
    assert message(TypeError, mask_from_hidden, mask) == "hidden: " + EXPECTED + came + ADVICE
    assert message(TypeError, mask_to_additive, mask) == "mask: " + EXPECTED + came + ADVICE
    if mask is not None:  # for combine_masks None is no mask, and allowed
        assert message(TypeError, combine_masks, TRUE, mask) == "mask: " + EXPECTED + came + ADVICE


def test_masks_that_do_not_broadcast():
    assert message(ValueError, combine_masks, TRUE, None, torch.ones(4, 3).bool()) == (
        "masks: shapes (2, 3) and (4, 3) do not broadcast"
    )


@pytest.mark.parametrize(
    ("additive", "error", "expected"),
    [
        (TRUE, TypeError, "additive: expected a floating-point tensor, got torch.bool"),
        (TRUE.long(), TypeError, "additive: expected a floating-point tensor, got torch.int64"),
        (0.0, TypeError, "additive: expected a torch.Tensor, got float"),
        *(
            (
                torch.tensor([0.0, number]),
                ValueError,
                "additive: expected only 0 and −inf; other numbers are a bias",
            )
            for number in (-1e9, 1.0, torch.inf, torch.nan, torch.finfo(torch.float32).min)
        ),
    ],
)
def test_only_zero_and_minus_infinity_are_an_additive_mask(additive, error, expected):
    assert message(error, mask_from_additive, additive) == expected


def test_everything_compiles_whole():  # here, since the compiler cannot trace the shape checks
    def masks(lengths):
        keys = padding_mask(lengths, 4)[:, None, None, :]
        additive = mask_to_additive(combine_masks(keys, causal_mask(4), None))
        return mask_from_hidden(mask_from_additive(additive))

    lengths = torch.tensor([4, 1])
    compiled = torch.compile(masks, fullgraph=True, backend="eager")
    assert torch.equal(compiled(lengths), masks(lengths))
