"""Arguments that cannot be meant are refused by name, before anything is computed."""

import pytest
import torch

from transformer_lib.weighted_sum import is_convex, weighted_sum


@pytest.mark.parametrize(
    ("weights", "values", "error", "message"),
    [
        (
            torch.ones(4, 3),
            torch.ones(2, 3),
            ValueError,
            r"values: expected keys = 3 as in weights \(shape \(4, 3\)\), "
            r"got keys = 2 \(shape \(2, 3\)\)",
        ),
        (
            torch.ones(5, 4, 3),
            torch.ones(5, 4, 2),
            ValueError,
            r"values: expected keys = 3 .*got keys = 4 \(shape \(5, 4, 2\)\)",
        ),
        (
            torch.ones(3),
            torch.ones(3, 2),
            ValueError,
            r"weights: expected at least 2 axes .*queries, keys.*got shape \(3,\)",
        ),
        (
            torch.ones(2, 3),
            torch.ones(3),
            ValueError,
            r"values: expected at least 2 axes .*keys, d_v.*got shape \(3,\)",
        ),
        (
            torch.ones(2, 4, 3),
            torch.ones(5, 3, 2),
            ValueError,
            r"weights, values: batch axes do not broadcast: "
            r"weights has \(2,\), values has \(5,\)",
        ),
        (
            torch.ones(4, 3),
            torch.ones(3, 2, dtype=torch.long),
            TypeError,
            "values: expected a floating-point tensor, got torch.int64",
        ),
        (
            torch.ones(4, 3, dtype=torch.bool),
            torch.ones(3, 2),
            TypeError,
            "weights: expected a floating-point tensor, got torch.bool",
        ),
        (
            torch.ones(4, 3),
            torch.ones(3, 2, dtype=torch.float64),
            TypeError,
            "values: expected dtype torch.float32 as in weights, got torch.float64",
        ),
        (
            torch.ones(4, 3),
            torch.ones(3, 2, device="meta"),
            TypeError,
            "values: expected device cpu as in weights, got meta",
        ),
        ([[1.0]], torch.ones(1, 2), TypeError, "weights: expected a torch.Tensor, got list"),
        (torch.ones(1, 1), None, TypeError, "values: expected a torch.Tensor, got NoneType"),
    ],
)
def test_weighted_sum_refuses(weights, values, error, message):
    with pytest.raises(error, match=f"^{message}"):
        weighted_sum(weights, values)


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        (
            torch.tensor(1.0),
            ValueError,
            r"weights: expected at least 1 axes .*keys.*got shape \(\)",
        ),
        (
            torch.tensor([1, 0]),
            TypeError,
            "weights: expected a floating-point tensor, got torch.int",
        ),
        ([0.5, 0.5], TypeError, "weights: expected a torch.Tensor, got list"),
    ],
)
def test_is_convex_refuses(weights, error, message):
    with pytest.raises(error, match=f"^{message}"):
        is_convex(weights)


@pytest.mark.parametrize(
    ("tolerance", "error", "message"),
    [
        (-1e-3, ValueError, "expected a number of at least 0, got -0.001"),
        (float("nan"), ValueError, "expected a number of at least 0, got nan"),
        ("0.1", TypeError, "expected a number, got str"),
        (True, TypeError, "expected a number, got bool"),
        (torch.tensor(0.1), TypeError, "expected a number, got Tensor"),
    ],
)
def test_is_convex_refuses_a_tolerance(tolerance, error, message):
    with pytest.raises(error, match=f"^tolerance: {message}$"):
        is_convex(torch.tensor([0.5, 0.5]), tolerance=tolerance)


def test_the_module_compiles_whole():
    compiled = torch.compile(weighted_sum, fullgraph=True, backend="eager")
    weights, values = torch.rand(4, 3), torch.rand(3, 2)
    assert torch.equal(compiled(weights, values), weighted_sum(weights, values))
    compiled = torch.compile(is_convex, fullgraph=True, backend="eager")
    assert torch.equal(compiled(weights), is_convex(weights))
