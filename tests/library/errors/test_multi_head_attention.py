"""Multi-head attention's own messages name the argument, what came and what was expected.

It also compiles whole, which the shape checks of the other tests would prevent.
"""

import pytest
import torch
from torch import ones

from transformer_lib.multi_head_attention import (
    KeysValues,
    MultiHeadAttention,
    join_heads,
    split_heads,
)

ATTENTION = MultiHeadAttention(6, 2)
QUERY, KEY = ones(2, 4, 6), ones(2, 5, 6)
KEPT = KeysValues(ones(2, 2, 5, 3), ones(2, 2, 5, 3))
MASK = ones(4, 5, dtype=torch.bool)
KEY_MASK = ones(2, 5, dtype=torch.bool)
FIT = (
    "expected shape (queries, keys) = (4, 5) or (batch, n_heads, queries, keys) = (2, 2, 4, 5), "
    "an axis of size 1 standing for all, got "
)
BOOLEAN = (
    "expected a boolean tensor in which True means 'may attend', got {}; mask_from_additive "
    "converts 0 and −inf, mask_from_hidden a mask in which True hides, and a score bias goes into "
    "the argument bias"
)
EITHER = "keys_values: expected either key and value, or keys_values instead"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((512, 7), "n_heads: expected a divisor of d_model = 512, got 7"),
        ((4, 8), "n_heads: expected a divisor of d_model = 4, got 8"),
        ((512, 0), "n_heads: expected a divisor of d_model = 512, got 0"),
        ((512, -8), "n_heads: expected a divisor of d_model = 512, got -8"),
    ],
)
def test_heads_that_do_not_divide_the_width(arguments, message):
    with pytest.raises(ValueError, match=r"^n_heads") as caught:
        MultiHeadAttention(*arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize("dropout", [-0.1, 1.5, float("nan")])
def test_dropout_that_is_no_probability(dropout):
    with pytest.raises(ValueError, match="dropout") as caught:
        MultiHeadAttention(6, 2, dropout=dropout)
    assert str(caught.value) == f"dropout: expected a probability from 0 to 1, got {dropout}"


@pytest.mark.parametrize(
    ("tensors", "error", "message"),
    [
        (([1.0], KEY, KEY), TypeError, "query: expected a torch.Tensor, got list"),
        ((QUERY, 2.0, KEY), TypeError, "key: expected a torch.Tensor, got float"),
        (
            (QUERY, torch.tensor(1.0), KEY),
            ValueError,
            "key: expected shape (batch, length, d_model = 6), got ()",
        ),
        (
            (QUERY.long(), KEY, KEY),
            TypeError,
            "query: expected a floating-point tensor, got torch.int64",
        ),
        (
            (QUERY, KEY.int(), KEY),
            TypeError,
            "key: expected a floating-point tensor, got torch.int32",
        ),
        (
            (QUERY, KEY, KEY.bool()),
            TypeError,
            "value: expected a floating-point tensor, got torch.bool",
        ),
        (
            (QUERY[0], KEY, KEY),
            ValueError,
            "query: expected shape (batch, length, d_model = 6), got (4, 6)",
        ),
        (
            (ones(2, 4, 5), KEY, KEY),
            ValueError,
            "query: expected shape (batch, length, d_model = 6), got (2, 4, 5)",
        ),
        (
            (QUERY, ones(2, 5, 3), KEY),
            ValueError,
            "key: expected shape (batch, length, d_model = 6), got (2, 5, 3)",
        ),
        (
            (QUERY, KEY, ones(2, 5, 3)),
            ValueError,
            "value: expected shape (batch, length, d_model = 6), got (2, 5, 3)",
        ),
        (
            (QUERY, KEY, KEY[:, :3]),
            ValueError,
            "value: expected shape (2, 5, 6) as key has, got (2, 3, 6)",
        ),
        (
            (QUERY, ones(3, 5, 6), ones(3, 5, 6)),
            ValueError,
            "key: expected batch = 2 as in query (shape (2, 4, 6)), "
            "got batch = 3 (shape (3, 5, 6))",
        ),
        (
            (QUERY, ones(1, 5, 6), ones(1, 5, 6)),  # would broadcast
            ValueError,
            "key: expected batch = 2 as in query (shape (2, 4, 6)), "
            "got batch = 1 (shape (1, 5, 6))",
        ),
        ((QUERY,), ValueError, EITHER),
        ((QUERY, KEY), ValueError, EITHER),
        ((QUERY, None, KEY), ValueError, EITHER),
    ],
)
def test_tensors_that_do_not_fit(tensors, error, message):
    with pytest.raises(error) as caught:
        ATTENTION(*tensors)
    assert str(caught.value) == message


@pytest.mark.parametrize("more", [(KEY, KEY), (KEY,), (None, KEY)])
def test_key_and_value_beside_what_was_projected(more):
    with pytest.raises(ValueError, match="keys_values") as caught:
        ATTENTION(QUERY, *more, keys_values=KEPT)
    assert str(caught.value) == EITHER


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        ((3, 2, 5, 3), (3, 2, 5, 3)),  # another batch
        ((1, 2, 5, 3), (1, 2, 5, 3)),  # would broadcast
        ((2, 1, 5, 3), (2, 1, 5, 3)),  # would broadcast
        ((2, 3, 5, 2), (2, 3, 5, 2)),  # another number of heads
        ((2, 2, 5, 3), (2, 2, 4, 3)),  # a value is missing
        ((2, 2, 5, 3), (1, 2, 5, 3)),
        ((2, 5, 6), (2, 5, 6)),  # not projected yet
    ],
)
def test_projected_keys_and_values_that_do_not_fit(keys, values):
    with pytest.raises(ValueError, match="keys_values") as caught:
        ATTENTION(QUERY, keys_values=KeysValues(ones(keys), ones(values)))
    assert str(caught.value) == (
        "keys_values: expected keys and values of one shape (batch, n_heads, keys, d_k) = "
        f"(2, 2, keys, 3), got {keys} and {values}"
    )


def test_projecting_checks_too():
    with pytest.raises(ValueError, match="value: expected shape"):
        ATTENTION.project(KEY, KEY[:, :3])
    with pytest.raises(ValueError, match="key: expected shape"):
        ATTENTION.project(KEY[0], KEY[0])
    with pytest.raises(TypeError, match="value: expected a floating-point tensor"):
        ATTENTION.project(KEY, KEY.long())


@pytest.mark.parametrize("beside", [{}, {"key_mask": KEY_MASK}], ids=["alone", "with key_mask"])
@pytest.mark.parametrize("name", ["mask", "bias"])
@pytest.mark.parametrize(
    "shape",
    [(2, 4, 5), (5,), (), (5, 4), (4, 6), (3, 1, 4, 5), (2, 3, 4, 5), (1, 2, 2, 4, 5)],
)
def test_masks_and_biases_of_another_shape(name, shape, beside):
    tensor = ones(shape, dtype=torch.bool) if name == "mask" else ones(shape)
    with pytest.raises(ValueError, match=f"^{name}") as caught:
        ATTENTION(QUERY, KEY, KEY, **{name: tensor}, **beside)
    assert str(caught.value) == f"{name}: {FIT}{shape}"


@pytest.mark.parametrize("beside", [{}, {"key_mask": KEY_MASK}], ids=["alone", "with key_mask"])
@pytest.mark.parametrize(
    ("mask", "came"), [(MASK.float(), "torch.float32"), (MASK.int(), "torch.int32"), ([1], "list")]
)
def test_masks_that_are_not_boolean(mask, came, beside):
    # pytorch/pytorch#92554; mlverse/torch#1205
    with pytest.raises(TypeError, match=r"^mask") as caught:
        ATTENTION(QUERY, KEY, KEY, mask=mask, **beside)
    assert str(caught.value) == "mask: " + BOOLEAN.format(came)


def test_a_padding_mask_of_numbers():
    # pytorch/pytorch#92554; mlverse/torch#1205
    additive = torch.tensor([[0.0, 0.0, 0.0, -torch.inf, -torch.inf]] * 2)
    with pytest.raises(TypeError, match=r"^key_mask") as caught:
        ATTENTION(QUERY, KEY, KEY, key_mask=additive)
    assert str(caught.value) == "key_mask: " + BOOLEAN.format("torch.float32")


@pytest.mark.parametrize("shape", [(2, 4), (1, 5), (5,), (2, 4, 5), (2, 1, 1, 5)])
def test_padding_masks_of_another_shape(shape):
    with pytest.raises(ValueError, match="key_mask") as caught:
        ATTENTION(QUERY, KEY, KEY, key_mask=ones(shape, dtype=torch.bool))
    assert str(caught.value) == f"key_mask: expected shape (batch, keys) = (2, 5), got {shape}"


def test_more_queries_than_keys_under_causal():
    with pytest.raises(ValueError, match=r"quer.*at most.*3.*got 4"):
        ATTENTION(QUERY, KEY[:, :3], KEY[:, :3], causal=True)


def test_masks_are_given_by_name():
    with pytest.raises(TypeError, match="positional"):
        ATTENTION(QUERY, KEY, KEY, MASK)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: split_heads(ones(2, 4, 6), 4),
            ValueError,
            "n_heads: expected a divisor of d_model = 6, got 4",
        ),
        (
            lambda: split_heads(ones(4, 6), 2),
            ValueError,
            "x: expected shape (batch, n, d_model), got (4, 6)",
        ),
        (
            lambda: split_heads(ones(2, 4, 6).long(), 2),
            TypeError,
            "x: expected a floating-point tensor, got torch.int64",
        ),
        (
            lambda: join_heads(ones(2, 4, 6)),
            ValueError,
            "heads: expected shape (batch, n_heads, n, d_v), got (2, 4, 6)",
        ),
        (lambda: join_heads(None), TypeError, "heads: expected a torch.Tensor, got NoneType"),
    ],
)
def test_splitting_and_joining_what_does_not_fit(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.slow
def test_it_compiles_whole():
    query, key = torch.randn(QUERY.shape), torch.randn(KEY.shape)
    attention = MultiHeadAttention(6, 2).eval()
    compiled = torch.compile(attention, fullgraph=True, backend="eager")
    for options in ({}, {"mask": MASK, "key_mask": KEY_MASK}, {"causal": True}):
        output = compiled(query, key, key, **options)
        torch.testing.assert_close(output, attention(query, key, key, **options))
