"""Exercises of chapter 7, Multi-head attention."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from transformer_lib.course.exercises import Exercise, same_function
from transformer_lib.multi_head_attention import MultiHeadAttention, join_heads, split_heads


def _random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _multi_head(X: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor) -> Tensor:
    return _concatenate(_results(X, W_Q, W_K, W_V)) @ W_O


def _multi_head_in_a_loop(X: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor) -> Tensor:
    output = torch.zeros(len(X), W_O.shape[1])
    for q, k, v, block in zip(W_Q, W_K, W_V, W_O.chunk(len(W_Q)), strict=True):
        scores = (X @ q) @ (X @ k).T / q.shape[1] ** 0.5
        output = output + scores.softmax(dim=1) @ (X @ v) @ block
    return output


def _results(
    X: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, scale: float = 1.0, axis: int = -1
) -> Tensor:
    scores = (X @ W_Q) @ (X @ W_K).mT / W_Q.shape[-1] ** 0.5 * scale
    return torch.softmax(scores, dim=axis) @ (X @ W_V)  # (n_heads, n, d_k)


def _concatenate(heads: Tensor) -> Tensor:
    return heads.transpose(0, 1).flatten(1)


def _pieces(W: Tensor) -> Tensor:
    """Let each head project its piece of the vectors only: the misconception."""
    n_heads, d_model, _ = W.shape
    own = torch.zeros_like(W)
    for i in range(n_heads):
        rows = slice(i * d_model // n_heads, (i + 1) * d_model // n_heads)
        own[i, rows] = W[i, rows]
    return own


def _multi_head_case(n: int, n_heads: int, d_k: int) -> tuple[Tensor, ...]:
    d_model = n_heads * d_k
    shapes = ((n, d_model), *3 * ((n_heads, d_model, d_k),), (d_model, d_model))
    return tuple(0.7 * _random(*shape, seed=seed) for seed, shape in enumerate(shapes))


def _count_by_shapes(d_model: int, n_heads: int, bias: bool) -> int:
    d_k = d_model // n_heads
    into_heads = 3 * n_heads * (d_model * d_k + bias * d_k)
    return into_heads + n_heads * d_k * d_model + bias * d_model


def _flat_mask(key_mask: Tensor, n_heads: int, queries: int) -> Tensor:
    hidden = ~key_mask[:, None, :].expand(-1, queries, -1)
    return hidden.repeat_interleave(n_heads, dim=0)


def _flat_mask_by_axes(key_mask: Tensor, n_heads: int, queries: int) -> Tensor:
    batch, keys = key_mask.shape
    seen = key_mask[:, None, None, :].expand(batch, n_heads, queries, keys)
    return ~seen.flatten(0, 1)


def _value_to_output(W_V: Tensor, W_O: Tensor) -> Tensor:
    return torch.stack([v @ o for v, o in zip(W_V, W_O.chunk(len(W_V)), strict=True)])


def _attention() -> MultiHeadAttention:
    """Return a layer whose weights are the same on every run, biases among them."""
    attention = MultiHeadAttention(6, 3).requires_grad_(False)
    for seed, parameter in enumerate(attention.parameters()):
        parameter.copy_(_random(*parameter.shape, seed=seed))
    return attention


def _results_of(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    _, weights = attention(x, x, x, return_weights=True)
    return weights @ attention.project(x, x).values  # (batch, n_heads, n, d_k)


def _without_head(attention: MultiHeadAttention, x: Tensor, head: int) -> Tensor:
    results = _results_of(attention, x)
    results[:, head] = 0
    return attention.output_projection(join_heads(results))


def _without_its_block(attention: MultiHeadAttention, x: Tensor, head: int) -> Tensor:
    block = slice(head * attention.d_k, (head + 1) * attention.d_k)
    written = _results_of(attention, x)[:, head] @ attention.output_projection.weight[:, block].T
    return attention(x, x, x) - written


def _with_even_weights(attention: MultiHeadAttention, x: Tensor, head: int) -> Tensor:
    _, weights = attention(x, x, x, return_weights=True)
    weights[:, head] = 1 / x.shape[1]
    return attention.output_projection(join_heads(weights @ attention.project(x, x).values))


def _without_columns(attention: MultiHeadAttention, x: Tensor, head: int) -> Tensor:
    results = attention(x, x, x)
    heads = split_heads(results, attention.n_heads)
    heads[:, head] = 0
    return join_heads(heads)


def _only_that_head(attention: MultiHeadAttention, x: Tensor, head: int) -> Tensor:
    results = torch.zeros_like(kept := _results_of(attention, x))
    results[:, head] = kept[:, head]
    return attention.output_projection(join_heads(results))


def _without_bias(attention: MultiHeadAttention, x: Tensor, head: int) -> Tensor:
    results = _results_of(attention, x)
    results[:, head] = 0
    return join_heads(results) @ attention.output_projection.weight.T


def _in_place(attention: MultiHeadAttention, x: Tensor, head: int) -> Tensor:
    block = slice(head * attention.d_k, (head + 1) * attention.d_k)
    attention.output_projection.weight[:, block] = 0
    return attention(x, x, x)


_CHANGED = "the output is right, but the weights of attention have been changed"


class _OnOwnLayer:
    """Judge a function of a layer, giving each call a layer of its own."""

    def __init__(self, right: Callable[..., Any], *cases: tuple[Any, ...]) -> None:
        self.judge = same_function(self.with_layer(right), *cases)

    def with_layer(self, function: Any) -> Any:
        if not callable(function):
            return function
        return lambda *case: function(_attention(), *case)

    def __call__(self, answer: Any) -> str | None:
        return self.judge(self.with_layer(answer)) or (_CHANGED if self.changes(answer) else None)

    def changes(self, answer: Callable[..., Any]) -> bool:
        """Tell whether an answer leaves other weights than it found."""
        attention = _attention()
        before = copy.deepcopy(attention.state_dict())
        answer(attention, *self.judge.cases[0])
        after = attention.state_dict()
        return any(not torch.equal(before[name], after[name]) for name in before)

    def alike(self, answer: Any, wrong: Any) -> bool:
        return self.judge.alike(self.with_layer(answer), self.with_layer(wrong))


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="multi-head-from-scratch",
        judge=same_function(_multi_head, _multi_head_case(4, 2, 3), _multi_head_case(3, 3, 2)),
        right=(_multi_head, _multi_head_in_a_loop),
        mistakes={
            "the heads are added: concatenate them, then multiply by W_O": (
                lambda X, W_Q, W_K, W_V, W_O: (
                    _results(X, W_Q, W_K, W_V).sum(dim=0) @ W_O[: W_V.shape[-1]]
                )
            ),
            "the heads are concatenated but not projected by W_O": (
                lambda X, W_Q, W_K, W_V, W_O: _concatenate(_results(X, W_Q, W_K, W_V))
            ),
            "the heads stand one after another without the transpose: tokens and heads are mixed": (
                lambda X, W_Q, W_K, W_V, W_O: _results(X, W_Q, W_K, W_V).reshape(len(X), -1) @ W_O
            ),
            "each head sees only its piece of the vectors: project the whole": (
                lambda X, W_Q, W_K, W_V, W_O: _multi_head(
                    X, _pieces(W_Q), _pieces(W_K), _pieces(W_V), W_O
                )
            ),
            "the scale is √d_model; a head's queries have d_k entries": (
                lambda X, W_Q, W_K, W_V, W_O: (
                    _concatenate(_results(X, W_Q, W_K, W_V, scale=len(W_Q) ** -0.5)) @ W_O
                )
            ),
            "the scores are not divided by √d_k": lambda X, W_Q, W_K, W_V, W_O: (
                _concatenate(_results(X, W_Q, W_K, W_V, scale=W_Q.shape[-1] ** 0.5)) @ W_O
            ),
            "the softmax runs over the queries instead of the keys": (
                lambda X, W_Q, W_K, W_V, W_O: (
                    _concatenate(_results(X, W_Q, W_K, W_V, axis=-2)) @ W_O
                )
            ),
        },
    ),
    Exercise(
        name="count-parameters-of-heads",
        judge=same_function(_count_by_shapes, (512, 8, True), (512, 8, False), (12, 3, True)),
        right=(
            _count_by_shapes,
            lambda d_model, n_heads, bias: 4 * d_model * (d_model + int(bias)),
        ),
        mistakes={
            "W_O is missing": lambda d_model, n_heads, bias: 3 * d_model * (d_model + bias),
            "the heads are narrower the more there are: their number drops out": (
                lambda d_model, n_heads, bias: n_heads * 4 * d_model * (d_model + bias)
            ),
            "each head projects the whole vector, not a piece of it": (
                lambda d_model, n_heads, bias: (
                    3 * d_model * d_model // n_heads + d_model**2 + 4 * bias * d_model
                )
            ),
            "the biases are missing, or counted where there are none": (
                lambda d_model, n_heads, bias: 4 * d_model * (d_model + 1 - bias)
            ),
            "the biases are never counted": lambda d_model, n_heads, bias: 4 * d_model**2,
        },
    ),
    Exercise(
        name="mask-for-flat-heads",
        judge=same_function(
            _flat_mask,
            (torch.tensor([[True, True, True], [True, False, False]]), 2, 3),
            (torch.tensor([[True, False], [True, True], [False, False]]), 4, 1),
        ),
        right=(_flat_mask, _flat_mask_by_axes),
        mistakes={
            "the heads are tiled: sentences alternate where each should be repeated in a row": (
                lambda key_mask, n_heads, queries: (
                    ~key_mask[:, None, :].expand(-1, queries, -1).repeat(n_heads, 1, 1)
                )
            ),
            "True shows here; in this mask True hides": lambda key_mask, n_heads, queries: (
                ~(_flat_mask(key_mask, n_heads, queries))
            ),
            "the axis of the queries is missing": lambda key_mask, n_heads, queries: (
                ~key_mask.repeat_interleave(n_heads, dim=0)
            ),
            "the axis of the queries has size 1, this class takes no such mask": (
                lambda key_mask, n_heads, queries: _flat_mask(key_mask, n_heads, 1)
            ),
        },
    ),
    Exercise(
        name="what-a-head-writes",
        judge=same_function(
            _value_to_output,
            (_random(2, 6, 3, seed=1), _random(6, 6, seed=2)),
            (_random(3, 6, 2, seed=3), _random(6, 6, seed=4)),
        ),
        right=(
            _value_to_output,
            lambda W_V, W_O: W_V @ W_O.unflatten(0, (W_V.shape[0], W_V.shape[2])),
        ),
        mistakes={
            "these are columns of W_O; a head's entries meet its rows": lambda W_V, W_O: (
                W_V @ W_O.T.reshape(len(W_V), W_V.shape[2], -1)
            ),
            "this is the sum over the heads; one matrix per head is asked for": lambda W_V, W_O: (
                _value_to_output(W_V, W_O).sum(dim=0)
            ),
            "the rows of W_O are dealt out to the heads in turn; each has a block of them": (
                lambda W_V, W_O: W_V @ W_O.reshape(W_V.shape[2], len(W_V), -1).transpose(0, 1)
            ),
            "these are the transposes: X stands on the left": lambda W_V, W_O: (
                _value_to_output(W_V, W_O).mT
            ),
        },
    ),
    Exercise(
        name="take-a-head-out",
        judge=_OnOwnLayer(
            _without_head, (_random(2, 4, 6, seed=5), 1), (_random(1, 3, 6, seed=6), 2)
        ),
        right=(_without_head, _without_its_block),
        mistakes={
            "even weights still write the mean of the values": _with_even_weights,
            "W_O has mixed the heads already: take it out before the output projection": (
                _without_columns
            ),
            "this is that head alone, without the others": _only_that_head,
            "the bias of the output projection is missing": _without_bias,
            "this is the output with all heads": lambda attention, x, head: attention(x, x, x),
            _CHANGED: _in_place,
        },
    ),
)
