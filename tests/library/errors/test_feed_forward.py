"""Arguments that cannot be meant are refused by name, before anything is computed."""

import pytest
import torch

from transformer_lib.feed_forward import FeedForward


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation": "tanh"}, "activation: expected one of relu, gelu, silu, got 'tanh'"),
        ({"activation": "ReLU"}, "activation: expected one of relu, gelu, silu, got 'ReLU'"),
        ({"dropout": 1.5}, r"dropout: expected a probability from 0 to 1, got 1\.5"),
        ({"dropout": -0.1}, r"dropout: expected a probability from 0 to 1, got -0\.1"),
        ({"dropout": float("nan")}, "dropout: expected a probability from 0 to 1, got nan"),
    ],
)
def test_options_are_refused(options, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        FeedForward(4, 8, **options)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (torch.ones(2, 5), ValueError, r"expected d_model = 4, got shape \(2, 5\)"),
        (torch.ones(4, 5), ValueError, r"expected d_model = 4, got shape \(4, 5\)"),
        (torch.ones(4, 0), ValueError, r"expected d_model = 4, got shape \(4, 0\)"),
        (torch.tensor(1.0), ValueError, r"expected at least 1 axes \(…, d_model\), got shape"),
        (torch.ones(2, 4).long(), TypeError, "expected a floating-point tensor, got torch.int64"),
        ([1.0, 2.0, 3.0, 4.0], TypeError, "expected a torch.Tensor, got list"),
    ],
)
def test_vectors_are_refused(x, error, message):
    with pytest.raises(error, match=f"^x: {message}"):
        FeedForward(4, 8)(x)


def test_options_are_named():
    with pytest.raises(TypeError, match="positional argument"):
        FeedForward(4, 8, "relu")


def test_the_module_compiles_whole():
    network, x = FeedForward(4, 8, activation="gelu"), torch.randn(2, 3, 4)
    compiled = torch.compile(network, fullgraph=True, backend="eager")
    assert torch.equal(compiled(x), network(x))
