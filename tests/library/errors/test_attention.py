"""Attention's own messages name the argument, what came and what was expected."""

import pytest
import torch
from torch import ones

from transformer_lib.attention import attention_weights, dot_product_attention

QUERY, KEY, VALUE = ones(3, 4), ones(5, 4), ones(5, 2)

QUERY_OR_KEY = [
    ([[1.0]], KEY, TypeError, "query: expected a torch.Tensor, got list"),
    (QUERY, None, TypeError, "key: expected a torch.Tensor, got NoneType"),
    (QUERY.long(), KEY, TypeError, "query: expected a floating-point tensor, got torch.int64"),
    (QUERY, KEY.bool(), TypeError, "key: expected a floating-point tensor, got torch.bool"),
    (
        QUERY,
        KEY.half(),
        TypeError,
        "key: expected dtype torch.float32 as in query, got torch.float16",
    ),
    (QUERY, KEY.to("meta"), TypeError, "key: expected device cpu as in query, got meta"),
    (
        ones(4),
        KEY,
        ValueError,
        "query: expected at least 2 axes (…, queries, d_k), got shape (4,)",
    ),
    (QUERY, ones(4), ValueError, "key: expected at least 2 axes (…, keys, d_k), got shape (4,)"),
    (
        QUERY,
        ones(5, 6),
        ValueError,
        "key: expected d_k = 4 as in query (shape (3, 4)), got d_k = 6 (shape (5, 6))",
    ),
    (
        ones(7, 3, 4),
        ones(2, 5, 4),
        ValueError,
        "query, key: batch axes do not broadcast: query has (7,), key has (2,)",
    ),
]


@pytest.mark.parametrize(("query", "key", "error", "message"), QUERY_OR_KEY)
def test_weights_refuse_what_does_not_fit(query, key, error, message):
    with pytest.raises(error) as caught:
        attention_weights(query, key)
    assert str(caught.value) == message


@pytest.mark.parametrize(("query", "key", "error", "message"), QUERY_OR_KEY[:-1])
def test_attention_refuses_the_same(query, key, error, message):
    with pytest.raises(error) as caught:
        dot_product_attention(query, key, VALUE)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("query", "key", "value", "error", "message"),
    [
        (QUERY, KEY, 1.0, TypeError, "value: expected a torch.Tensor, got float"),
        (
            QUERY,
            KEY,
            VALUE.int(),
            TypeError,
            "value: expected a floating-point tensor, got torch.int32",
        ),
        (
            QUERY,
            KEY,
            VALUE.double(),
            TypeError,
            "value: expected dtype torch.float32 as in query, got torch.float64",
        ),
        (
            QUERY,
            KEY,
            ones(5),
            ValueError,
            "value: expected at least 2 axes (…, keys, d_v), got shape (5,)",
        ),
        (
            QUERY,
            KEY,
            ones(4, 2),
            ValueError,
            "value: expected keys = 5 as in key (shape (5, 4)), got keys = 4 (shape (4, 2))",
        ),
        (
            QUERY,
            ones(1, 4),
            ones(5, 2),
            ValueError,
            "value: expected keys = 1 as in key (shape (1, 4)), got keys = 5 (shape (5, 2))",
        ),
        (
            ones(7, 3, 4),
            ones(2, 5, 4),
            VALUE,
            ValueError,
            "query, key, value: batch axes do not broadcast: "
            "query has (7,), key has (2,), value has ()",
        ),
        (
            QUERY,
            ones(7, 5, 4),
            ones(2, 5, 2),
            ValueError,
            "query, key, value: batch axes do not broadcast: "
            "query has (), key has (7,), value has (2,)",
        ),
    ],
)
def test_attention_refuses_values_that_do_not_fit(query, key, value, error, message):
    with pytest.raises(error) as caught:
        dot_product_attention(query, key, value)
    assert str(caught.value) == message


def test_one_key_does_not_stand_for_all_values():
    """Shapes that matrix products would broadcast silently are an error in axes with a name."""
    with pytest.raises(ValueError, match="keys"):
        dot_product_attention(QUERY, KEY, torch.ones(1, 2))
