"""Exercises of chapter 10, Embeddings and output."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer_lib.course.exercises import Exercise, NotYetError, same_function


def _random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _look_up_gradient(tokens: Tensor, g: Tensor, vocabulary_size: int) -> Tensor:
    return torch.zeros(vocabulary_size, g.shape[-1]).index_add_(0, tokens, g)


def _look_up_gradient_by_places(tokens: Tensor, g: Tensor, vocabulary_size: int) -> Tensor:
    gradient = torch.zeros(vocabulary_size, g.shape[-1])
    for token, row in zip(tokens.tolist(), g, strict=True):
        gradient[token] += row
    return gradient


def _last_place_only(tokens: Tensor, g: Tensor, vocabulary_size: int) -> Tensor:
    gradient = torch.zeros(vocabulary_size, g.shape[-1])
    for token, row in zip(tokens.tolist(), g, strict=True):
        gradient[token] = row
    return gradient


def _mean_over_places(tokens: Tensor, g: Tensor, vocabulary_size: int) -> Tensor:
    places = torch.bincount(tokens, minlength=vocabulary_size).clamp(min=1)
    return _look_up_gradient(tokens, g, vocabulary_size) / places[:, None]


def _embedding_parameters(
    source_vocabulary: int, target_vocabulary: int, d_model: int, tied: str
) -> int:
    if tied == "all":
        if source_vocabulary != target_vocabulary:
            raise ValueError("one matrix needs one vocabulary")
        return source_vocabulary * d_model
    return (source_vocabulary + (1 if tied == "output" else 2) * target_vocabulary) * d_model


def _parameters_by_matrices(source: int, target: int, d_model: int, tied: str) -> int:
    if tied == "all" and source != target:
        raise ValueError
    shapes = {"all": [source], "output": [source, target], "none": [source, target, target]}
    return sum(rows * d_model for rows in shapes[tied])


def _parameters_unrefused(source: int, target: int, d_model: int, tied: str) -> int:
    return (
        source * d_model
        if tied == "all"
        else _parameters_by_matrices(source, target, d_model, tied)
    )


def _source_with_output(source: int, target: int, d_model: int, tied: str) -> int:
    if tied == "output":
        return (source + source) * d_model
    return _parameters_by_matrices(source, target, d_model, tied)


def _generator_uncounted(source: int, target: int, d_model: int, tied: str) -> int:
    if tied == "none":
        return (source + target) * d_model
    return _parameters_by_matrices(source, target, d_model, tied)


class _Counts(same_function):
    """Compare the numbers, then see that the impossible tie is refused."""

    def __call__(self, answer: Any) -> str | None:
        problem = super().__call__(answer)
        if problem is None and not _refuses(answer):
            return "7851 and 5972 words cannot share one matrix: raise a ValueError"
        return problem

    def alike(self, answer: Any, wrong: Any) -> bool:
        return super().alike(answer, wrong) and _refuses(answer) == _refuses(wrong)


def _refuses(answer: Any) -> bool:
    try:
        answer(7851, 5972, 512, "all")
    except ValueError:
        return True
    except NotImplementedError:
        raise NotYetError from None
    except Exception:
        return False
    return False


def _nearest_word(x: Tensor, weight: Tensor) -> Tensor:
    return (x @ weight.T - weight.square().sum(dim=-1) / 2).argmax(dim=-1)


def _cosine_floor(n: int) -> float:
    return math.log(math.e + (n - 1) / math.e) - 1


def _cosine_floor_by_loss(n: int) -> float:
    logits = torch.full((1, n), -1.0, dtype=torch.float64)
    logits[0, 0] = 1
    return F.cross_entropy(logits, torch.tensor([0])).item()


def _tied_gradient(tokens: Tensor, grad_vectors: Tensor, x: Tensor, grad_logits: Tensor) -> Tensor:
    return (grad_logits.T @ x).index_add(0, tokens, math.sqrt(x.shape[-1]) * grad_vectors)


def _tied_gradient_by_one_hot(
    tokens: Tensor, grad_vectors: Tensor, x: Tensor, grad_logits: Tensor
) -> Tensor:
    one_hot = F.one_hot(tokens, grad_logits.shape[-1]).float()
    return one_hot.T @ grad_vectors * x.shape[-1] ** 0.5 + torch.einsum("lv,ld->vd", grad_logits, x)


def _without_factor(tokens: Tensor, grad_vectors: Tensor, x: Tensor, grad_logits: Tensor) -> Tensor:
    return (grad_logits.T @ x).index_add(0, tokens, grad_vectors)


def _way_out_only(tokens: Tensor, grad_vectors: Tensor, x: Tensor, grad_logits: Tensor) -> Tensor:
    return grad_logits.T @ x


def _way_in_only(tokens: Tensor, grad_vectors: Tensor, x: Tensor, grad_logits: Tensor) -> Tensor:
    return _tied_gradient(tokens, grad_vectors, x, torch.zeros_like(grad_logits))


def _factor_on_both(tokens: Tensor, grad_vectors: Tensor, x: Tensor, grad_logits: Tensor) -> Tensor:
    return math.sqrt(x.shape[-1]) * _without_factor(tokens, grad_vectors, x, grad_logits)


SENTENCE = torch.tensor([3, 0, 3, 1, 3, 0])
WORDS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [4.0, 4.0], [-1.0, -1.0], [0.2, 0.1]])
POINTS = torch.tensor([[1.1, 0.2], [0.1, 1.2], [3.0, 3.5], [-0.6, -0.9], [0.1, 0.1]])

EXERCISES = (
    Exercise(
        name="look-up-gradient",
        judge=same_function(
            _look_up_gradient,
            (SENTENCE, _random(6, 4), 5),
            (torch.tensor([2]), _random(1, 3, seed=1), 4),
        ),
        right=(_look_up_gradient, _look_up_gradient_by_places),
        mistakes={
            "of a word that stands twice only the last place is left: the places add up": (
                _last_place_only
            ),
            "this is the mean over the places of a word: the loss depends on each, so add": (
                _mean_over_places
            ),
            "these are the rows of the places: add them into the rows of the words": (
                lambda tokens, g, vocabulary_size: g
            ),
        },
    ),
    Exercise(
        name="embedding-parameters",
        judge=_Counts(
            _embedding_parameters,
            (7851, 5972, 512, "none"),
            (7851, 5972, 512, "output"),
            (37_000, 37_000, 512, "all"),
            (10, 10, 4, "none"),
        ),
        right=(_embedding_parameters, _parameters_by_matrices),
        mistakes={
            "7851 and 5972 words cannot share one matrix: raise a ValueError": (
                _parameters_unrefused
            ),
            "the output has the words of the target, so it is the target's matrix that it shares": (
                _source_with_output
            ),
            "untied, the generator has a matrix of its own, the third": _generator_uncounted,
        },
    ),
    Exercise(
        name="nearest-word",
        judge=same_function(
            _nearest_word, (POINTS, WORDS), (_random(8, 5), _random(20, 5, seed=1))
        ),
        right=(
            _nearest_word,
            lambda x, weight: torch.cdist(x, weight).argmin(dim=-1),
        ),
        mistakes={
            "this is the largest inner product, which prefers long rows: subtract half of ‖w‖²": (
                lambda x, weight: (x @ weight.T).argmax(dim=-1)
            ),
            "this is the most similar direction: the nearest row must have the right length too": (
                lambda x, weight: (x @ F.normalize(weight, dim=-1).T).argmax(dim=-1)
            ),
            "this is the row farthest away": (
                lambda x, weight: torch.cdist(x, weight).argmax(dim=-1)
            ),
            "the bias is twice as large as it should be: in ‖x − w‖² the product stands twice": (
                lambda x, weight: (x @ weight.T - weight.square().sum(dim=-1)).argmax(dim=-1)
            ),
        },
    ),
    Exercise(
        name="cosine-floor",
        judge=same_function(_cosine_floor, (5972,), (2,), (100,)),
        right=(_cosine_floor, _cosine_floor_by_loss),
        mistakes={
            "this is the loss of equal logits: the right word's is larger here": math.log,
            "this is the floor for probabilities: cosines go down to −1, not to 0": (
                lambda n: math.log(math.e + n - 1) - 1
            ),
            "this is the logarithm of the sum: the right word's own logit, 1, is taken off": (
                lambda n: math.log(math.e + (n - 1) / math.e)
            ),
            "one term too many: there are n − 1 wrong words": (
                lambda n: math.log(math.e + n / math.e) - 1
            ),
        },
    ),
    Exercise(
        name="tied-gradient",
        judge=same_function(
            _tied_gradient,
            (SENTENCE, _random(6, 4), _random(6, 4, seed=1), _random(6, 5, seed=2)),
            (SENTENCE[:1], _random(1, 9), _random(1, 9, seed=1), _random(1, 4, seed=2)),
        ),
        right=(_tied_gradient, _tied_gradient_by_one_hot),
        mistakes={
            "the factor √d_model is missing on the way in": _without_factor,
            "this is the way out alone: the look-up adds its own gradient": _way_out_only,
            "this is the way in alone: the generator adds its own gradient": _way_in_only,
            "the factor belongs to the way in only: the generator uses the matrix as it is": (
                _factor_on_both
            ),
        },
    ),
)
