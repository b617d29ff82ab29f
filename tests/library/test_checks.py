"""The helpers behind the library's error messages."""

from dataclasses import dataclass
from typing import Literal

import pytest
import torch

from transformer_lib._checks import common as validation

ROW, TABLE = torch.ones(4), torch.ones(5, 3)


def test_what_is_right_passes():
    validation.require_floating(query=ROW, key=TABLE)
    validation.require_axes("keys d_k", key=TABLE, value=torch.ones(2, 5, 3))
    validation.require_same_size("d_k", query=(ROW, -1), key=(torch.ones(7, 4), -1))
    validation.require_broadcastable("batch", query=torch.Size([2, 1]), key=torch.Size([3]))


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"query": [1.0]}, r"query: expected a torch\.Tensor, got list"),
        (
            {"query": ROW, "key": ROW.long()},
            r"key: expected a floating-point .* got torch\.int64",
        ),
        ({"key": ROW.to(torch.float8_e5m2)}, r"key: expected one of .* got torch\.float8_e5m2"),
        ({"query": TABLE.to_sparse()}, r"query: expected a dense tensor, got torch\.sparse_coo"),
        ({"query": ROW, "key": ROW.double()}, r"key: expected dtype torch\.float32 as in query"),
        ({"query": ROW, "key": ROW.to("meta")}, "key: expected device cpu as in query, got meta"),
    ],
)
def test_what_is_no_floating_tensor(tensors, message):
    with pytest.raises(TypeError, match=message):
        validation.require_floating(**tensors)


def test_missing_axes():
    message = r"query: expected at least 2 axes \(…, queries, d_k\), got shape \(4,\)"
    with pytest.raises(ValueError, match=message):
        validation.require_axes("queries d_k", query=ROW)


def test_sizes_that_differ():
    message = r"key: expected d_k = 4 as in query \(shape \(4,\)\), got d_k = 3 \(shape \(5, 3\)\)"
    with pytest.raises(ValueError, match=message):
        validation.require_same_size("d_k", query=(ROW, -1), key=(TABLE, -1))


def test_axes_that_do_not_broadcast():
    message = r"query, key: batch axes do not broadcast: query has \(2,\), key has \(3,\)"
    with pytest.raises(ValueError, match=message):
        validation.require_broadcastable("batch", query=torch.Size([2]), key=torch.Size([3]))


def test_under_autocast_dtypes_may_differ():
    with torch.autocast("cpu", torch.bfloat16):
        validation.require_floating(query=ROW, key=ROW.bfloat16())
        assert validation.autocasts(ROW)
        with pytest.raises(TypeError, match="key: expected a floating-point"):
            validation.require_floating(query=ROW, key=ROW.long())
    assert not validation.autocasts(ROW)


@pytest.mark.parametrize(
    ("mask", "came"),
    [(ROW, "torch.float32"), (ROW.long(), "torch.int64"), ([[True]], "list"), (None, "NoneType")],
)
def test_only_booleans_are_masks(mask, came):
    validation.require_mask(ROW > 0)
    for name, options in (("mask", {}), ("key_mask", {"name": "key_mask"})):
        with pytest.raises(TypeError) as caught:
            validation.require_mask(mask, **options)
        assert str(caught.value) == (
            f"{name}: expected a boolean tensor in which True means 'may attend', got {came}; "
            "mask_from_additive converts 0 and −inf, mask_from_hidden a mask in which True hides, "
            "and a score bias goes into the argument bias"
        )


def test_numbers_that_are_too_small():
    validation.require_at_least(1, one=1, none=None)
    with pytest.raises(ValueError, match=r"^length: expected 1 or more, got 0$"):
        validation.require_at_least(1, width=3, length=0)


@pytest.mark.parametrize("number", [-0.1, 1.5, float("nan")])
def test_no_probability(number):
    validation.require_probability(never=0.0, always=1.0)
    message = f"^dropout: expected a probability from 0 to 1, got {number}$"
    with pytest.raises(ValueError, match=message):
        validation.require_probability(never=0.0, dropout=number)


@dataclass
class Settings:
    """One field of every kind."""

    size: int = 1
    share: float = 0.5
    switch: bool = False
    maybe: bool | None = None
    choice: Literal["a", "b"] = "a"
    pair: tuple[int, int] = (1, 2)
    names: tuple[str, ...] | None = None


def test_fields_that_fit():
    for options in ({}, {"share": 1}, {"maybe": True}, {"choice": "b"}, {"pair": [1]}):
        validation.require_fields(Settings(**options))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"size": "1"}, TypeError, "size: expected int, got '1'"),
        ({"size": 1.0}, TypeError, "size: expected int, got 1.0"),
        ({"size": True}, TypeError, "size: expected int, got True"),
        ({"share": True}, TypeError, "share: expected float, got True"),
        ({"switch": 1}, TypeError, "switch: expected bool, got 1"),
        ({"maybe": "yes"}, TypeError, "maybe: expected bool or NoneType, got 'yes'"),
        ({"choice": "c"}, ValueError, "choice: expected one of ('a', 'b'), got 'c'"),
    ],
)
def test_fields_of_another_type(options, error, message):
    with pytest.raises(error) as caught:
        validation.require_fields(Settings(**options))
    assert str(caught.value) == message


def test_corners_with_a_pixel_of_grace():
    assert validation.require_corners("boxes", [0, 1, 20, 10.5], (20, 10)) == (0, 1, 20, 10.5)
    assert validation.require_corners("boxes", (-1, -1, 21, 11), (20, 10)) == (-1, -1, 21, 11)


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ((1, 2, 3), "boxes: expected boxes of four numbers .*, got"),
        ("abcd", "boxes: expected boxes of four numbers .*, got 'abcd'"),
        ((-2, 0, 3, 3), r"boxes: expected boxes .* 20 × 10 pixels, got \(-2, 0, 3, 3\)"),
        ((0, -2, 3, 3), "boxes: expected boxes .* inside of"),
        ((0, 0, 3, 12), "boxes: expected boxes .* inside of"),
        ((0, 0, 22, 3), "boxes: expected boxes .* inside of"),
        ((5, 0, 3, 3), "boxes: expected boxes .* inside of"),
        ((0, 0, float("nan"), 3), "boxes: expected boxes .* inside of"),
    ],
)
def test_boxes_that_are_no_corners(box, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        validation.require_corners("boxes", box, (20, 10))


@pytest.mark.parametrize("value", [3, {1, 2}, iter([1])])
def test_no_dataset(value):
    validation.require_dataset("data", [1])
    message = f"^data: expected a list or dataset, got {type(value).__name__}$"
    with pytest.raises(TypeError, match=message):
        validation.require_dataset("data", value)


def test_boxes_in_shares():
    for greatest in (0.0, 1.5):
        validation.require_pixels("boxes", greatest)
    for greatest in (0.5, 1.0):
        with pytest.raises(ValueError, match=r"^boxes: no box reaches .*expected boxes in pixels"):
            validation.require_pixels("boxes", greatest)
