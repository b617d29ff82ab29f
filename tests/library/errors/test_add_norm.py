"""Arguments that cannot be meant are refused by name, before anything is computed."""

import pytest
import torch
from torch import nn

from transformer_lib.add_norm import AddNorm, LayerNorm, layer_norm

WRONG = [
    (torch.tensor(1.0), ValueError, r"expected at least 1 axes \(…, d_model\), got shape \(\)"),
    (torch.ones(2, 4).long(), TypeError, "expected a floating-point tensor, got torch.int64"),
    ([1.0, 2.0], TypeError, "expected a torch.Tensor, got list"),
]


@pytest.mark.parametrize(("x", "error", "message"), WRONG)
@pytest.mark.parametrize("norm", [layer_norm, LayerNorm(4)])
def test_what_is_no_vector_is_refused(norm, x, error, message):
    with pytest.raises(error, match=f"^x: {message}"):
        norm(x)


@pytest.mark.parametrize("shape", [(2, 5), (4, 5), (4, 1), (2, 0)])
def test_another_width_is_refused(shape):
    came = str(shape).replace("(", r"\(").replace(")", r"\)")
    message = rf"^x: expected d_model = 4, got shape {came}$"
    with pytest.raises(ValueError, match=message):
        LayerNorm(4)(torch.ones(shape))
    for norm_first in (False, True):
        with pytest.raises(ValueError, match=message):
            AddNorm(4, norm_first=norm_first)(torch.ones(shape), torch.sin)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("width", [1, 6])
def test_a_sublayer_of_another_width_is_refused(norm_first, width):
    with pytest.raises(
        ValueError,
        match=r"^sublayer: expected a result of shape \(5, 8\), to be added to x, "
        rf"got \(5, {width}\)$",
    ):
        AddNorm(8, norm_first=norm_first)(torch.randn(5, 8), nn.Linear(8, width))


def test_a_sublayer_that_drops_an_axis_is_refused():
    with pytest.raises(ValueError, match=r"^sublayer: .* \(2, 5, 8\), .* got \(2, 1, 8\)$"):
        AddNorm(8)(torch.randn(2, 5, 8), lambda x: x.mean(dim=1, keepdim=True))


@pytest.mark.parametrize("dropout", [1.5, -0.1])
def test_dropout_is_a_probability(dropout):
    with pytest.raises(
        ValueError, match=f"^dropout: expected a probability from 0 to 1, got {dropout}$"
    ):
        AddNorm(4, dropout=dropout)


def test_options_are_named():
    for make in (lambda: AddNorm(4, True), lambda: LayerNorm(4, 1e-5)):
        with pytest.raises(TypeError, match="positional argument"):
            make()


@pytest.mark.parametrize("norm_first", [False, True])
def test_the_module_compiles_whole(norm_first):
    x, network = torch.randn(2, 3, 4), nn.Linear(4, 4)
    add_norm = AddNorm(4, norm_first=norm_first)
    compiled = torch.compile(add_norm, fullgraph=True, backend="eager")
    assert torch.equal(compiled(x, network), add_norm(x, network))
    compiled = torch.compile(layer_norm, fullgraph=True, backend="eager")
    assert torch.equal(compiled(x), layer_norm(x))
