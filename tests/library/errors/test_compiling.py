"""The parts compile whole: here, since the compiler cannot trace the shape checks at run time."""

import pytest
import torch
from torch import Tensor, nn

from transformer_lib.add_norm import AddNorm, layer_norm
from transformer_lib.attention import scaled_dot_product_attention
from transformer_lib.embedding import Generator, InputLayer, TokenEmbedding
from transformer_lib.feed_forward import FeedForward
from transformer_lib.masking import (
    causal_mask,
    combine_masks,
    mask_from_additive,
    mask_from_hidden,
    mask_to_additive,
    padding_mask,
)
from transformer_lib.multi_head_attention import MultiHeadAttention
from transformer_lib.positional_encoding import SinusoidalPositions
from transformer_lib.softmax import softmax, softmax_jacobian, softmax_jvp
from transformer_lib.weighted_sum import is_convex, weighted_sum


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def compiled(function):
    """Compile without a graph break; PyTorch's own C++ is not built."""
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend="eager")


def masks(lengths: Tensor) -> Tensor:
    """Go through every function that makes a mask of others."""
    keys = padding_mask(lengths, 4)[:, None, None, :]
    additive = mask_to_additive(combine_masks(keys, causal_mask(4), None))
    return mask_from_hidden(mask_from_additive(additive))


SCORES = random(4, 3)
SCORES[0] = -torch.inf
WEIGHTS = softmax(SCORES)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (weighted_sum, (WEIGHTS, random(3, 2))),
        (is_convex, (WEIGHTS,)),
        (softmax, (SCORES,)),
        (softmax_jacobian, (WEIGHTS,)),
        (softmax_jvp, (WEIGHTS, random(4, 3))),
        (masks, (torch.tensor([4, 1]),)),
        (FeedForward(4, 8, activation="gelu"), (random(2, 3, 4),)),
        (layer_norm, (random(2, 3, 4),)),
        (AddNorm(4), (random(2, 3, 4), nn.Linear(4, 4))),
        (AddNorm(4, norm_first=True), (random(2, 3, 4), nn.Linear(4, 4))),
    ],
)
def test_functions_and_modules(function, arguments):
    assert torch.equal(compiled(function)(*arguments), function(*arguments))


@pytest.mark.parametrize("return_weights", [False, True])
def test_attention_with_everything(return_weights):
    query, key, value = random(2, 3, 4, 8), random(2, 3, 5, 8, seed=1), random(2, 3, 5, 7, seed=2)
    options = {"mask": random(2, 1, 4, 5) < 0, "bias": random(4, 5), "causal": True}

    def function(query):
        result = scaled_dot_product_attention(
            query, key, value, return_weights=return_weights, **options
        )
        return result if return_weights else (result,)

    for a, b in zip(compiled(function)(query), function(query), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {
            "mask": random(4, 5) < 0,
            "key_mask": torch.tensor([[True] * 5, [True, False] * 2 + [True]]),
        },
        {"causal": True},
    ],
    ids=["plain", "masks", "causal"],
)
def test_multi_head_attention(options):
    attention, query, key = MultiHeadAttention(6, 2).eval(), random(2, 4, 6), random(2, 5, 6)
    for tensors in ((query, key, key), (query, key)):
        torch.testing.assert_close(
            compiled(attention)(*tensors, **options), attention(*tensors, **options)
        )


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


def test_a_tie_holds_in_the_compiled_model_too():
    model, tokens = Tied(), torch.tensor([[0, 4, 2], [1, 1, 3]])
    whole = compiled(model)
    assert torch.equal(whole(tokens), model(tokens))
    with torch.no_grad():
        model.embedding.weight.mul_(2)
    assert torch.equal(whole(tokens), model(tokens))


def test_ids_are_checked_in_eager_mode_only():
    embedding, tokens = TokenEmbedding(5, 4), torch.tensor([0, 4, 2])
    exported = torch.export.export(embedding, (tokens,)).module()
    assert torch.equal(exported(tokens), embedding(tokens))
    whole = compiled(embedding)
    assert torch.equal(whole(tokens), embedding(tokens))
    with pytest.raises(IndexError):  # PyTorch's own
        whole(tokens + 1)
    with pytest.raises(ValueError, match="tokens: expected ids from 0 to 4"):
        embedding(tokens + 1)


def test_lengths_and_additive_masks_are_checked_in_eager_mode_only():
    lengths, additive = torch.tensor([1, 4]), torch.tensor([0.0, -1e9])
    assert compiled(padding_mask)(lengths, 3).tolist() == [[True, False, False], [True] * 3]
    assert compiled(mask_from_additive)(additive).tolist() == [True, False]
    with pytest.raises(ValueError, match="lengths: expected 0 to 3"):
        padding_mask(lengths, 3)
    with pytest.raises(ValueError, match="additive: expected only 0"):
        mask_from_additive(additive)


def test_nothing_is_looked_at_on_the_meta_device():
    meta = torch.device("meta")
    assert padding_mask(torch.zeros(2, device=meta).long(), 3).shape == (2, 3)
    assert mask_from_additive(torch.zeros(2, 3, device=meta)).is_meta
    assert TokenEmbedding(5, 4, device=meta)(torch.zeros(2, device=meta).long()).is_meta
