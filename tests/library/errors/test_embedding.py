"""Ids that are none, impossible sizes and matrices that cannot be shared are refused by name."""

import pytest
import torch
from torch import Tensor, nn

from transformer_lib.embedding import Generator, InputLayer, TokenEmbedding
from transformer_lib.positional_encoding import SinusoidalPositions


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        (torch.tensor([0, 5]), ValueError, "expected ids from 0 to 4, got ids from 0 to 5"),
        (torch.tensor([[7851]]), ValueError, "expected ids from 0 to 4, got ids from 7851 to 7851"),
        (torch.tensor([-1, 2]), ValueError, "expected ids from 0 to 4, got ids from -1 to 2"),
        (
            torch.tensor([-1], dtype=torch.int32),
            ValueError,
            "expected ids from 0 to 4, got ids from -1 to -1",
        ),
        (torch.tensor([1.0]), TypeError, "a tensor of ids in int64 or int32, got torch.float32"),
        (torch.zeros(0), TypeError, "a tensor of ids in int64 or int32, got torch.float32"),
        (torch.tensor([True]), TypeError, "a tensor of ids in int64 or int32, got torch.bool"),
        (torch.tensor([1j]), TypeError, "a tensor of ids in int64 or int32, got torch.complex64"),
        (
            torch.tensor([1], dtype=torch.uint8),
            TypeError,
            "a tensor of ids in int64 or int32, got torch.uint8",
        ),
        ([1, 2], TypeError, "a tensor of ids in int64 or int32, got list"),
        (1, TypeError, "a tensor of ids in int64 or int32, got int"),
        (None, TypeError, "a tensor of ids in int64 or int32, got NoneType"),
    ],
)
def test_embedding_refuses(tokens, error, message):
    with pytest.raises(error, match=f"^tokens: (expected )?{message}$"):
        TokenEmbedding(5, 4)(tokens)


@pytest.mark.parametrize("build", [TokenEmbedding, lambda words, width: Generator(width, words)])
@pytest.mark.parametrize(
    ("words", "width", "message"),
    [
        (0, 4, "^vocabulary_size: expected 1 or more, got 0$"),
        (-3, 4, "^vocabulary_size: expected 1 or more, got -3$"),
        (5, 0, "^d_model: expected 1 or more, got 0$"),
    ],
)
def test_impossible_sizes(build, words, width, message):
    with pytest.raises(ValueError, match=message):
        build(words, width)


def test_two_vocabularies_cannot_share_one_matrix():
    message = r"^tied: expected weights of shape \(5972, 512\), got \(7851, 512\)$"
    with pytest.raises(ValueError, match=message):
        Generator(512, 5972, tied=TokenEmbedding(7851, 512))


def test_two_widths_cannot_share_one_matrix():
    with pytest.raises(ValueError, match=r"^tied: expected .* \(5, 8\), got \(5, 4\)$"):
        Generator(8, 5, tied=TokenEmbedding(5, 4))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (torch.zeros(2, 5), ValueError, r"expected d_model = 4, got 5 \(shape \(2, 5\)\)"),
        (torch.tensor(1.0), ValueError, r"expected at least 1 axes \(…, d_model\), got shape \(\)"),
        (torch.zeros(2, 4).long(), TypeError, "expected a floating-point tensor, got torch.int64"),
        ([0.0] * 4, TypeError, "expected a torch.Tensor, got list"),
    ],
)
def test_generator_refuses(tied, x, error, message):
    generator = Generator(4, 6, tied=TokenEmbedding(6, 4) if tied else None)
    with pytest.raises(error, match=f"^x: {message}$"):
        generator(x)


def test_input_layer_refuses():
    layer = InputLayer(4, SinusoidalPositions(4, 10))
    with pytest.raises(ValueError, match=r"^x: 3 positions from offset 8 on reach beyond"):
        layer(torch.zeros(1, 3, 4), offset=8)
    with pytest.raises(ValueError, match=r"^x: expected d_model = 4, got 5"):
        layer(torch.zeros(1, 3, 5))
    with pytest.raises(ValueError, match=r"^x: expected d_model = 4, got"):
        InputLayer(4, norm_eps=1e-5)(torch.zeros(1, 3, 5))
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
        InputLayer(4, dropout=1.5)


# The compiler does not see through the shape checks at run time, so these two stand here.


class Tied(nn.Module):
    """In and straight out again."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(5, 4)
        self.input = InputLayer(4, SinusoidalPositions(4, 10))
        self.generator = Generator(4, 5, tied=self.embedding)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits of shape (batch, length, 5)."""
        return self.generator(self.input(self.embedding(tokens)))


def test_the_module_compiles_whole():
    model, tokens = Tied(), torch.tensor([[0, 4, 2], [1, 1, 3]])
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    assert torch.equal(compiled(tokens), model(tokens))
    with torch.no_grad():  # the tie holds in the compiled model too
        model.embedding.weight.mul_(2)
    assert torch.equal(compiled(tokens), model(tokens))


def test_ids_are_checked_in_eager_mode_only():
    embedding, tokens = TokenEmbedding(5, 4), torch.tensor([0, 4, 2])
    exported = torch.export.export(embedding, (tokens,)).module()
    assert torch.equal(exported(tokens), embedding(tokens))
    compiled = torch.compile(embedding, fullgraph=True, backend="eager")
    assert torch.equal(compiled(tokens), embedding(tokens))
    with pytest.raises(IndexError):  # PyTorch's own
        compiled(tokens + 1)
    with pytest.raises(ValueError, match="tokens: expected ids from 0 to 4"):
        embedding(tokens + 1)
