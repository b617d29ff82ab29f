"""The helpers behind the library's error messages."""

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
        ({"query": ROW, "key": ROW.to(torch.float8_e5m2)}, r"key: .* got torch\.float8_e5m2"),
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
