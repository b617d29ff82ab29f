"""Arguments that cannot be meant are refused by name, before anything is computed."""

import pytest
import torch
from torch import ones

from transformer_lib.inner_product import cosine_similarity, inner_product, unit_vectors

QUERY, KEY = ones(3, 4), ones(5, 4)


@pytest.mark.parametrize("function", [inner_product, cosine_similarity])
@pytest.mark.parametrize(
    ("query", "key", "error", "message"),
    [
        ([[1.0]], KEY, TypeError, "query: expected a torch.Tensor, got list"),
        (QUERY, None, TypeError, "key: expected a torch.Tensor, got NoneType"),
        (QUERY.long(), KEY, TypeError, "query: expected a floating-point tensor, got torch.int64"),
        (QUERY, KEY.bool(), TypeError, "key: expected a floating-point tensor, got torch.bool"),
        (
            QUERY,
            KEY.double(),
            TypeError,
            "key: expected dtype torch.float32 as in query, got torch.float64",
        ),
        (QUERY, KEY.to("meta"), TypeError, "key: expected device cpu as in query, got meta"),
        (
            ones(4),
            KEY,
            ValueError,
            "query: expected at least 2 axes (…, queries, d_k), got shape (4,)",
        ),
        (
            QUERY,
            ones(4),
            ValueError,
            "key: expected at least 2 axes (…, keys, d_k), got shape (4,)",
        ),
        (
            QUERY,
            ones(4, 5),  # the transposed keys, as for a plain matrix product
            ValueError,
            "key: expected d_k = 4 as in query (shape (3, 4)), got d_k = 5 (shape (4, 5))",
        ),
        (
            ones(7, 3, 4),
            ones(2, 5, 4),
            ValueError,
            "query, key: batch axes do not broadcast: query has (7,), key has (2,)",
        ),
    ],
)
def test_pairs_that_do_not_fit(function, query, key, error, message):
    with pytest.raises(error) as caught:
        function(query, key)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("vectors", "error", "message"),
    [
        ([1.0, 2.0], TypeError, "vectors: expected a torch.Tensor, got list"),
        (ones(2).int(), TypeError, "vectors: expected a floating-point tensor, got torch.int32"),
        (torch.tensor(1.0), ValueError, "vectors: expected at least 1 axes (…, d), got shape ()"),
    ],
)
def test_unit_vectors_refuse(vectors, error, message):
    with pytest.raises(error) as caught:
        unit_vectors(vectors)
    assert str(caught.value) == message
