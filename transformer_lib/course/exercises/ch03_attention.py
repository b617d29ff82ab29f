"""Exercises of chapter 3, Attention."""

import math

import torch
from torch import Tensor

from transformer_lib.course.exercises import Exercise, same_function

SCORES = torch.tensor([[1.7, -1.3, 3.9, 0.3], [0.0, 0.0, 0.0, 0.0]])

Shapes = tuple[tuple[int, ...], tuple[int, ...]]


def _weights_of(scores: Tensor) -> Tensor:
    exponentials = scores.exp()
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


def _shapes_of(b: int, m: int, n: int, d_k: int, d_v: int) -> Shapes:
    return (b, m, n), (b, m, d_v)


def _shapes_of_tensors(b: int, m: int, n: int, d_k: int, d_v: int) -> tuple[torch.Size, torch.Size]:
    scores = torch.empty(b, m, d_k) @ torch.empty(b, d_k, n)
    return scores.shape, (scores @ torch.empty(b, n, d_v)).shape


def _score_for(w: float, n: int) -> float:
    return math.log(w * (n - 1) / (1 - w))


def _score_by_bisection(w: float, n: int) -> float:
    low, high = -60.0, 60.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 / (1 + (n - 1) * math.exp(-middle)) < w else (low, middle)
    return low


def _attend_to_source(
    target: Tensor, memory: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor
) -> Tensor:
    return torch.softmax(target @ W_Q @ (memory @ W_K).T, dim=-1) @ (memory @ W_V)


def _attend_query_by_query(
    target: Tensor, memory: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor
) -> Tensor:
    return torch.stack(
        [torch.softmax(memory @ W_K @ (row @ W_Q), dim=0) @ (memory @ W_V) for row in target]
    )


def _add_pair(result: Tensor, total: Tensor, score: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    weight = score.exp()
    return (result * total + weight * value) / (total + weight), total + weight


def _add_pair_by_share(
    result: Tensor, total: Tensor, score: Tensor, value: Tensor
) -> tuple[Tensor, Tensor]:
    new_total = total + torch.exp(score)
    return result + torch.exp(score) / new_total * (value - result), new_total


def _cross_attention_case(targets: int, sources: int) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(targets)
    shapes = ((targets, 6), (sources, 6), (6, 4), (6, 4), (6, 4))
    return tuple(0.6 * torch.randn(shape, generator=generator) for shape in shapes)


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="scores-to-weights",
        judge=same_function(_weights_of, (SCORES,), (torch.tensor([[-2.0], [5.0]]),)),
        right=(_weights_of, lambda scores: (scores - scores.logsumexp(-1, keepdim=True)).exp()),
        mistakes={
            "all entries together sum to 1; each row must do so on its own": lambda scores: (
                scores.exp() / scores.exp().sum()
            ),
            "the columns sum to 1: this runs over the queries instead of the keys": lambda scores: (
                scores.exp() / scores.exp().sum(dim=0)
            ),
            "the scores are divided by their sum without the exponential": lambda scores: (
                scores / scores.sum(dim=-1, keepdim=True)
            ),
            "the exponentials are not divided by their sum": lambda scores: scores.exp(),
        },
    ),
    Exercise(
        name="attention-shapes",
        judge=same_function(_shapes_of, (32, 7, 50, 64, 16), (1, 3, 5, 4, 6)),
        right=(_shapes_of, _shapes_of_tensors),
        mistakes={
            "the scores are square only in self-attention": lambda b, m, n, d_k, d_v: (
                (b, m, m),
                (b, m, d_v),
            ),
            "the result is made of values, of length d_v": lambda b, m, n, d_k, d_v: (
                (b, m, n),
                (b, m, d_k),
            ),
            "there is one result per query, not per key": lambda b, m, n, d_k, d_v: (
                (b, m, n),
                (b, n, d_v),
            ),
            "the rows of the scores are the queries: this is the transpose": (
                lambda b, m, n, d_k, d_v: ((b, n, m), (b, m, d_v))
            ),
            "the sentences of a batch do not meet: the scores are (b, m, n)": (
                lambda b, m, n, d_k, d_v: ((b, b), (b, m, d_v))
            ),
            "the batch axis is missing": lambda b, m, n, d_k, d_v: ((m, n), (m, d_v)),
        },
    ),
    Exercise(
        name="score-for-weight",
        judge=same_function(_score_for, (0.9, 5), (0.5, 3), (0.1, 40)),
        right=(_score_for, _score_by_bisection),
        mistakes={
            "only n - 1 other keys have the score 0": lambda w, n: math.log(w * n / (1 - w)),
            "this is right for two keys; n - 1 others compete": lambda w, n: math.log(w / (1 - w)),
            "this is the exponential of the score": lambda w, n: w * (n - 1) / (1 - w),
            "the sign is wrong": lambda w, n: -_score_for(w, n),
            "log(w) is z minus the logarithm of the sum of all exponentials": (
                lambda w, n: math.log(w)
            ),
        },
    ),
    Exercise(
        name="cross-attention",
        judge=same_function(
            _attend_to_source, _cross_attention_case(3, 5), _cross_attention_case(4, 4)
        ),
        right=(_attend_to_source, _attend_query_by_query),
        mistakes={
            "this is self-attention of the target: keys and values come from the memory": (
                lambda target, memory, W_Q, W_K, W_V: _attend_to_source(
                    target, target, W_Q, W_K, W_V
                )
            ),
            "target and memory are swapped: the target asks": (
                lambda target, memory, W_Q, W_K, W_V: _attend_to_source(
                    memory, target, W_Q, W_K, W_V
                )
            ),
            "the keys are summed instead of the values": (
                lambda target, memory, W_Q, W_K, W_V: _attend_to_source(
                    target, memory, W_Q, W_K, W_K
                )
            ),
            "the values are the memory itself: it has to pass through W_V first": (
                lambda target, memory, W_Q, W_K, W_V: (
                    torch.softmax(target @ W_Q @ (memory @ W_K).T, dim=-1) @ memory
                )
            ),
            "the softmax runs over the queries instead of the keys": (
                lambda target, memory, W_Q, W_K, W_V: (
                    torch.softmax(target @ W_Q @ (memory @ W_K).T, dim=0) @ (memory @ W_V)
                )
            ),
            "the scores are used as weights: the softmax is missing": (
                lambda target, memory, W_Q, W_K, W_V: (
                    target @ W_Q @ (memory @ W_K).T @ (memory @ W_V)
                )
            ),
            "the values stand inside the softmax": (
                lambda target, memory, W_Q, W_K, W_V: torch.softmax(
                    target @ W_Q @ (memory @ W_K).T @ (memory @ W_V), dim=-1
                )
            ),
            "the scores are scaled here already; this chapter has no scale yet": (
                lambda target, memory, W_Q, W_K, W_V: _attend_to_source(
                    target, memory, W_Q / 2, W_K, W_V
                )
            ),
        },
    ),
    Exercise(
        name="one-more-pair",
        judge=same_function(
            _add_pair,
            (torch.zeros(2), torch.tensor(0.0), torch.tensor(1.7), torch.tensor([1.0, 0.0])),
            (
                torch.tensor([0.5, 2.0]),
                torch.tensor(5.7),
                torch.tensor(-1.3),
                torch.tensor([3.0, -1.0]),
            ),
        ),
        right=(_add_pair, _add_pair_by_share),
        mistakes={
            "the two come in the other order: the result first, then the total": (
                lambda result, total, score, value: _add_pair(result, total, score, value)[::-1]
            ),
            "the old result is an average already: undo its division by the old total first": (
                lambda result, total, score, value: (
                    (result + score.exp() * value) / (total + score.exp()),
                    total + score.exp(),
                )
            ),
            "the score itself is used as weight: it needs the exponential": (
                lambda result, total, score, value: (
                    (result * total + score * value) / (total + score),
                    total + score,
                )
            ),
            "this is the sum; divide it by the new total": lambda result, total, score, value: (
                result * total + score.exp() * value,
                total + score.exp(),
            ),
            "the result is right; the total must take in the new score's exponential": (
                lambda result, total, score, value: (
                    _add_pair(result, total, score, value)[0],
                    total,
                )
            ),
            "nothing is divided: undo the old division, add the new term, divide again": (
                lambda result, total, score, value: (
                    result + score.exp() * value,
                    total + score.exp(),
                )
            ),
            "divide by the new total, not by the old one": (
                lambda result, total, score, value: (
                    (result * total + score.exp() * value) / total,
                    total + score.exp(),
                )
            ),
            "the old result keeps its weight: it must shrink when a pair is added": (
                lambda result, total, score, value: (
                    result + score.exp() * value / (total + score.exp()),
                    total + score.exp(),
                )
            ),
        },
    ),
)
