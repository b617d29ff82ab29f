"""The final attention function's own messages name the argument, what came and what is wanted."""

import pytest
import torch
from torch import ones

from transformer_lib.attention import scaled_dot_product_attention

QUERY, KEY, VALUE = ones(2, 3, 4, 8), ones(2, 3, 5, 8), ones(2, 3, 5, 7)  # batch, heads, n, d
TENSORS = {"query": QUERY, "key": KEY, "value": VALUE}
FITTING = "expected shape (4, 5) or (2, 3, 4, 5), an axis of size 1 standing for all, got "


def message(error, **arguments):
    arguments = TENSORS | arguments
    positional = [arguments.pop(name) for name in TENSORS]
    with pytest.raises(error) as caught:
        scaled_dot_product_attention(*positional, **arguments)
    return str(caught.value)


@pytest.mark.parametrize("options", [{}, {"return_weights": True}, {"dropout": 0.1}])
@pytest.mark.parametrize(
    ("arguments", "error", "expected"),
    [
        ({"query": [1.0]}, TypeError, "query: expected a torch.Tensor, got list"),
        (
            {"query": QUERY.long()},
            TypeError,
            "query: expected a floating-point tensor, got torch.int64",
        ),
        (
            {"key": KEY.half()},
            TypeError,
            "key: expected dtype torch.float32 as in query, got torch.float16",
        ),
        (
            {"value": VALUE.to("meta")},
            TypeError,
            "value: expected device cpu as in query, got meta",
        ),
        (
            {"query": ones(8)},
            ValueError,
            "query: expected at least 2 axes (…, queries, d_k), got shape (8,)",
        ),
        (
            {"key": ones(8)},
            ValueError,
            "key: expected at least 2 axes (…, keys, d_k), got shape (8,)",
        ),
        (
            {"value": ones(5)},
            ValueError,
            "value: expected at least 2 axes (…, keys, d_v), got shape (5,)",
        ),
        (
            {"key": ones(2, 3, 5, 6)},
            ValueError,
            "key: expected d_k = 8 as in query (shape (2, 3, 4, 8)), "
            "got d_k = 6 (shape (2, 3, 5, 6))",
        ),
        (
            {"value": ones(2, 3, 1, 7)},
            ValueError,
            "value: expected keys = 5 as in key (shape (2, 3, 5, 8)), "
            "got keys = 1 (shape (2, 3, 1, 7))",
        ),
        (
            {"value": ones(4, 3, 5, 7)},
            ValueError,
            "query, key, value: batch axes do not broadcast: "
            "query has (2, 3), key has (2, 3), value has (4, 3)",
        ),
    ],
)
def test_tensors_that_do_not_fit(arguments, error, expected, options):
    assert message(error, **arguments, **options) == expected


@pytest.mark.parametrize(
    ("shape", "hint"),
    [
        ((4, 4), ""),
        ((5, 4), ""),
        ((5,), ""),
        ((), ""),
        ((3, 3, 4, 5), ""),
        ((2, 2, 4, 5), ""),
        ((1, 2, 3, 4, 5), ""),
        ((2, 4, 5), "; is the first axis the batch, {0}[:, None], or the heads, {0}[None]?"),
        ((1, 4, 5), "; is the first axis the batch, {0}[:, None], or the heads, {0}[None]?"),
    ],
)
@pytest.mark.parametrize("name", ["mask", "bias"])
def test_masks_and_biases_that_do_not_fit(name, shape, hint):
    tensor = ones(shape, dtype=torch.bool if name == "mask" else torch.float32)
    assert message(ValueError, **{name: tensor}) == f"{name}: {FITTING}{shape}{hint.format(name)}"


@pytest.mark.parametrize(
    "shape", [(4, 5), (1, 5), (4, 1), (1, 1), (2, 3, 4, 5), (2, 1, 1, 5), (1, 3, 4, 1)]
)
@pytest.mark.parametrize("name", ["mask", "bias"])
def test_masks_and_biases_that_fit(name, shape):
    tensor = ones(shape, dtype=torch.bool if name == "mask" else torch.float32)
    assert scaled_dot_product_attention(QUERY, KEY, VALUE, **{name: tensor}).shape == (2, 3, 4, 7)


def test_with_two_axes_one_shape_is_named():
    assert message(
        ValueError,
        query=QUERY[0, 0],
        key=KEY[0, 0],
        value=VALUE[0, 0],
        mask=ones(5, 4, dtype=torch.bool),
    ) == ("mask: expected shape (4, 5), an axis of size 1 standing for all, got (5, 4)")


def test_three_axes_fit_scores_of_three():
    mask = ones(3, 1, 5, dtype=torch.bool)
    assert scaled_dot_product_attention(QUERY[0], KEY[0], VALUE[0], mask=mask).shape == (3, 4, 7)


@pytest.mark.parametrize(
    ("mask", "came"),
    [
        (ones(4, 5), "torch.float32"),
        (ones(4, 5).long(), "torch.int64"),
        (torch.zeros(4, 5).masked_fill(ones(4, 5).bool(), -torch.inf), "torch.float32"),
        ([[True]], "list"),
    ],
)
def test_a_mask_of_numbers_is_refused(mask, came):  # pytorch/pytorch#92554
    assert message(TypeError, mask=mask) == (
        f"mask: expected a boolean tensor in which True means 'may attend', got {came}; "
        "mask_from_additive converts 0 and −inf, mask_from_hidden a mask in which True hides, "
        "and a score bias goes into the argument bias"
    )


def test_a_mask_elsewhere():
    mask = ones(4, 5, dtype=torch.bool, device="meta")
    assert message(TypeError, mask=mask) == "mask: expected device cpu as in query, got meta"


@pytest.mark.parametrize(
    ("bias", "expected"),
    [
        (ones(4, 5).bool(), "bias: expected a floating-point tensor, got torch.bool"),
        (
            ones(4, 5).double(),
            "bias: expected dtype torch.float32 as in query, got torch.float64",
        ),
        (0.5, "bias: expected a torch.Tensor, got float"),
    ],
)
def test_a_bias_of_another_type(bias, expected):
    assert message(TypeError, bias=bias) == expected


@pytest.mark.parametrize("options", [{}, {"return_weights": True}, {"mask": ones(6, 5).bool()}])
def test_more_queries_than_keys_have_no_causal_order(options):
    assert message(ValueError, query=ones(2, 3, 6, 8), causal=True, **options) == (
        "query: expected at most 5 queries as there are keys, got 6"
    )
    assert scaled_dot_product_attention(ones(6, 8), ones(5, 8), ones(5, 8)).shape == (6, 8)


def test_one_query_without_keys_has_no_causal_order():
    assert message(ValueError, query=ones(1, 8), key=ones(0, 8), value=ones(0, 7), causal=True) == (
        "query: expected at most 0 queries as there are keys, got 1"
    )


@pytest.mark.parametrize("dropout", [-0.1, 1.5, float("nan")])
def test_a_dropout_that_is_no_probability(dropout):
    assert message(ValueError, dropout=dropout) == (
        f"dropout: expected a probability from 0 to 1, got {dropout}"
    )


def test_everything_after_the_tensors_is_named():
    with pytest.raises(TypeError, match="positional"):
        scaled_dot_product_attention(QUERY, KEY, VALUE, ones(4, 5).bool())


@pytest.mark.slow
@pytest.mark.parametrize("return_weights", [False, True])
def test_it_compiles_whole(return_weights):  # here: the compiler cannot trace the shape checks
    torch._dynamo.reset()
    generator = torch.Generator().manual_seed(0)
    mask = torch.rand(2, 1, 4, 5, generator=generator) < 0.5
    bias = torch.rand(4, 5, generator=generator)

    def function(query):
        result = scaled_dot_product_attention(
            query, KEY, VALUE, mask=mask, bias=bias, causal=True, return_weights=return_weights
        )
        return result if return_weights else (result,)

    query = torch.rand(QUERY.shape, generator=generator)
    compiled = torch.compile(function, fullgraph=True, backend="eager")
    for a, b in zip(compiled(query), function(query), strict=True):
        torch.testing.assert_close(a, b)
