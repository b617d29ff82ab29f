"""Arguments that cannot be meant are refused by name, before anything is computed."""

import pytest
import torch

from transformer_lib.softmax import softmax, softmax_jacobian, softmax_jvp


@pytest.mark.parametrize(("function", "name"), [(softmax, "scores"), (softmax_jacobian, "weights")])
@pytest.mark.parametrize(
    ("argument", "error", "message"),
    [
        (torch.tensor(1.0), ValueError, r"expected at least 1 axes \(…, n\), got shape \(\)"),
        (torch.tensor([1, 0]), TypeError, "expected a floating-point tensor, got torch.int64"),
        (torch.tensor([True]), TypeError, "expected a floating-point tensor, got torch.bool"),
        (torch.tensor([1j]), TypeError, "expected a floating-point tensor, got torch.complex64"),
        ([0.5, 0.5], TypeError, "expected a torch.Tensor, got list"),
        (None, TypeError, "expected a torch.Tensor, got NoneType"),
    ],
)
def test_softmax_and_jacobian_refuse(function, name, argument, error, message):
    with pytest.raises(error, match=f"^{name}: {message}"):
        function(argument)


@pytest.mark.parametrize(
    ("weights", "vector", "error", "message"),
    [
        (
            torch.ones(2, 3),
            torch.ones(2, 4),
            ValueError,
            r"vector: expected n = 3 as in weights \(shape \(2, 3\)\), "
            r"got n = 4 \(shape \(2, 4\)\)",
        ),
        (
            torch.ones(3),
            torch.ones(1),
            ValueError,
            r"vector: expected n = 3 .*got n = 1 \(shape \(1,\)\)",
        ),
        (
            torch.ones(2, 3),
            torch.ones(5, 3),
            ValueError,
            r"weights, vector: batch axes do not broadcast: "
            r"weights has \(2,\), vector has \(5,\)",
        ),
        (
            torch.tensor(1.0),
            torch.ones(3),
            ValueError,
            r"weights: expected at least 1 axes \(…, n\), got shape \(\)",
        ),
        (
            torch.ones(3),
            torch.tensor(1.0),
            ValueError,
            r"vector: expected at least 1 axes \(…, n\), got shape \(\)",
        ),
        (
            torch.ones(3),
            torch.ones(3, dtype=torch.long),
            TypeError,
            "vector: expected a floating-point tensor, got torch.int64",
        ),
        (
            torch.ones(3),
            torch.ones(3, dtype=torch.float64),
            TypeError,
            "vector: expected dtype torch.float32 as in weights, got torch.float64",
        ),
        (
            torch.ones(3),
            torch.ones(3, device="meta"),
            TypeError,
            "vector: expected device cpu as in weights, got meta",
        ),
        ([1.0], torch.ones(1), TypeError, "weights: expected a torch.Tensor, got list"),
        (torch.ones(1), 1.0, TypeError, "vector: expected a torch.Tensor, got float"),
    ],
)
def test_softmax_jvp_refuses(weights, vector, error, message):
    with pytest.raises(error, match=f"^{message}"):
        softmax_jvp(weights, vector)


def test_the_module_compiles_whole():
    scores, vector = torch.randn(4, 3), torch.randn(4, 3)
    scores[0] = -torch.inf
    weights = softmax(scores)
    for function, arguments in (
        (softmax, (scores,)),
        (softmax_jacobian, (weights,)),
        (softmax_jvp, (weights, vector)),
    ):
        compiled = torch.compile(function, fullgraph=True, backend="eager")
        assert torch.equal(compiled(*arguments), function(*arguments))
