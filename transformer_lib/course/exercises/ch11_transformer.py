"""Exercises of chapter 11, The Transformer."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from transformer_lib.course.exercises import Exercise, same_function

X = torch.tensor([[1.0, -2.0, 0.5, 3.0], [0.0, 1.0, 2.0, -1.0]])
END = 2


class Named:
    """A function with a name that can be read in a message."""

    def __init__(self, name: str, function: Callable[..., Any]):
        self.name, self.function = name, function

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        return self.function(*arguments)

    def __repr__(self) -> str:
        """Return the name."""
        return self.name


ATTEND = Named("attend", lambda x: x.mean(dim=0, keepdim=True) - 0.5 * x)
TRANSFORM = Named("transform", lambda x: torch.relu(2 * x) + 1)
NORMALISE = Named("normalise", lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]))
PARTS = (ATTEND, TRANSFORM, NORMALISE)


def _encoder_layer(x: Tensor, attend: Any, transform: Any, normalise: Any) -> Tensor:
    x = normalise(x + attend(x))
    return normalise(x + transform(x))


def _in_one_line(x: Tensor, attend: Any, transform: Any, normalise: Any) -> Tensor:
    return normalise((middle := normalise(attend(x) + x)) + transform(middle))


def _pre_norm(x: Tensor, attend: Any, transform: Any, normalise: Any) -> Tensor:
    x = x + attend(normalise(x))
    return x + transform(normalise(x))


def _one_norm(x: Tensor, attend: Any, transform: Any, normalise: Any) -> Tensor:
    x = x + attend(x)
    return normalise(x + transform(x))


def _norm_inside(x: Tensor, attend: Any, transform: Any, normalise: Any) -> Tensor:
    x = x + normalise(attend(x))
    return x + normalise(transform(x))


def _side_by_side(x: Tensor, attend: Any, transform: Any, normalise: Any) -> Tensor:
    return normalise(normalise(x + attend(x)) + transform(x))


def _attention(d: int) -> int:
    return 4 * (d * d + d)


def _feed_forward(d: int, d_ff: int) -> int:
    return 2 * d * d_ff + d_ff + d


def _decoder_layer(d: int, d_ff: int) -> int:
    return 2 * _attention(d) + _feed_forward(d, d_ff) + 6 * d


def _decoder_layer_by_matrix(d: int, d_ff: int) -> int:
    attention = sum(rows * columns + columns for rows, columns in [(d, d)] * 4)
    feed_forward = sum(rows * columns + columns for rows, columns in [(d, d_ff), (d_ff, d)])
    return 2 * attention + feed_forward + 3 * (d + d)


def _may_move(key_mask: Tensor, target: int) -> Tensor:
    lower = torch.ones(target, target, dtype=torch.bool).tril()
    return torch.cat([key_mask.expand(target, -1), lower], dim=1)


def _may_move_by_loop(key_mask: Tensor, target: int) -> Tensor:
    rows = [[*key_mask.tolist(), *(s <= t for s in range(target))] for t in range(target)]
    return torch.tensor(rows)


def _source_masked_too(key_mask: Tensor, target: int) -> Tensor:
    expected = _may_move(key_mask, target)
    expected[:, : len(key_mask)] &= torch.ones(target, len(key_mask), dtype=torch.bool).tril()
    return expected


def _swapped(key_mask: Tensor, target: int) -> Tensor:
    expected = _may_move(key_mask, target)
    return torch.cat([expected[:, len(key_mask) :], expected[:, : len(key_mask)]], dim=1)


def _strictly_earlier(key_mask: Tensor, target: int) -> Tensor:
    earlier = torch.ones(target, target, dtype=torch.bool).tril(-1)
    return torch.cat([key_mask.expand(target, -1), earlier], dim=1)


def _later(key_mask: Tensor, target: int) -> Tensor:
    later = torch.ones(target, target, dtype=torch.bool).triu()
    return torch.cat([key_mask.expand(target, -1), later], dim=1)


def _with_padding(key_mask: Tensor, target: int) -> Tensor:
    return _may_move(torch.ones_like(key_mask), target)


def _no_source(key_mask: Tensor, target: int) -> Tensor:
    return _may_move(torch.zeros_like(key_mask), target)


def _script(*tokens: int) -> Named:
    """Return a model that predicts these tokens one after another, then 9 for ever."""

    def next_logits(so_far: list[int]) -> Tensor:
        if len(so_far) > 40:
            raise RuntimeError("asked for a 41st token: is max_length kept?")
        following = (*tokens, *[9] * 50)[len(so_far) - 1]
        return torch.nn.functional.one_hot(torch.tensor(following), 10).float()

    return Named("next_logits", next_logits)


def _greedy(next_logits: Any, start: int, end: int, max_length: int) -> list[int]:
    tokens = [start]
    while len(tokens) <= max_length:
        following = int(next_logits(tokens).argmax())
        if following == end:
            break
        tokens.append(following)
    return tokens[1:]


def _greedy_for(next_logits: Any, start: int, end: int, max_length: int) -> list[int]:
    produced: list[int] = []
    for _ in range(max_length):
        produced.append(int(next_logits([start, *produced]).argmax()))
        if produced[-1] == end:
            return produced[:-1]
    return produced


def _keeps_end(next_logits: Any, start: int, end: int, max_length: int) -> list[int]:
    tokens = [start]
    while len(tokens) <= max_length and (len(tokens) == 1 or tokens[-1] != end):
        tokens.append(int(next_logits(tokens).argmax()))
    return tokens[1:]


def _never_ends(next_logits: Any, start: int, end: int, max_length: int) -> list[int]:
    tokens = [start]
    for _ in range(max_length):
        tokens.append(int(next_logits(tokens).argmax()))
    return tokens[1:]


def _embeddings(n_source: int, n_target: int, shared: int, d: int) -> tuple[int, int, int]:
    return (
        (n_source + 2 * n_target) * d,
        (n_source + n_target) * d,
        (n_source + n_target - shared) * d,
    )


def _embeddings_by_matrix(
    n_source: int, n_target: int, shared: int, d: int
) -> tuple[int, int, int]:
    source, target = n_source * d, n_target * d
    return source + target + target, source + target, source + target - d * shared


EXERCISES = (
    Exercise(
        name="layer-from-parts",
        judge=same_function(_encoder_layer, (X, *PARTS), (2 * X.flip(0), *PARTS)),
        right=(_encoder_layer, _in_one_line),
        mistakes={
            "this is pre-norm: the paper normalises after the sum, LayerNorm(x + Sublayer(x))": (
                _pre_norm
            ),
            "the residual connections are missing: add what went into each sublayer": (
                lambda x, a, t, n: n(t(n(a(x))))
            ),
            "the second sublayer works on the first one's result, not on x": _side_by_side,
            "each sublayer has its own normalisation: one is missing": _one_norm,
            "the sublayer's output is normalised before the sum: the sum should be": _norm_inside,
        },
    ),
    Exercise(
        name="decoder-layer-parameters",
        judge=same_function(_decoder_layer, (512, 2048), (4, 6), (64, 256)),
        right=(_decoder_layer, _decoder_layer_by_matrix),
        mistakes={
            "this is an encoder layer: a decoder layer has a second attention and a third norm": (
                lambda d, f: _attention(d) + _feed_forward(d, f) + 4 * d
            ),
            "the biases of the matrices are missing": lambda d, f: 8 * d * d + 2 * d * f + 6 * d,
            "there are three norms, one for each sublayer": lambda d, f: (
                2 * _attention(d) + _feed_forward(d, f) + 4 * d
            ),
            "the norms are missing": lambda d, f: 2 * _attention(d) + _feed_forward(d, f),
            "a norm has a gain and a bias": lambda d, f: (
                2 * _attention(d) + _feed_forward(d, f) + 3 * d
            ),
            "an attention has four matrices: the output projection is missing": lambda d, f: (
                6 * (d * d + d) + _feed_forward(d, f) + 6 * d
            ),
        },
    ),
    Exercise(
        name="what-may-move",
        judge=same_function(
            _may_move,
            (torch.tensor([True, True, True, False]), 3),
            (torch.tensor([True, False]), 4),
        ),
        right=(_may_move, _may_move_by_loop),
        mistakes={
            "the source is masked causally here: every target position sees all of it": (
                _source_masked_too
            ),
            "padding cannot move anything: use key_mask": _with_padding,
            "the columns are the source first, then the target": _swapped,
            "the token at the position itself counts: its logits are for the token after it": (
                _strictly_earlier
            ),
            "this triangle lets earlier logits depend on later tokens": _later,
            "cross-attention is missing: the logits depend on the source": _no_source,
        },
    ),
    Exercise(
        name="greedy-with-an-end",
        judge=same_function(
            _greedy,
            (_script(5, 7, END), 1, END, 10),
            (_script(5, 7, 8), 1, END, 4),
            (_script(END), 1, END, 3),
            (_script(4, END), 1, END, 1),
            (_script(3), 1, END, 0),
        ),
        right=(_greedy, _greedy_for),
        mistakes={
            "the start mark is no word of the output": lambda f, start, end, n: [
                start,
                *_greedy(f, start, end, n),
            ],
            "the end mark is no word of the output": _keeps_end,
            "it goes on after the end mark": _never_ends,
            "max_length counts the start mark here: one word too few": lambda f, start, end, n: (
                _greedy(f, start, end, n - 1)
            ),
        },
    ),
    Exercise(
        name="tie-or-not",
        judge=same_function(_embeddings, (7851, 5972, 100, 512), (10, 7, 3, 4), (37, 37, 37, 2)),
        right=(_embeddings, _embeddings_by_matrix),
        mistakes={
            "a shared token needs one row, not two": lambda s, t, n, d: (
                (s + 2 * t) * d,
                (s + t) * d,
                (s + t) * d,
            ),
            "untied there are three matrices: the generator has one of its own": (
                lambda s, t, n, d: ((s + t) * d, (s + t) * d, (s + t - n) * d)
            ),
            "the common vocabulary is the union, not the larger one": lambda s, t, n, d: (
                (s + 2 * t) * d,
                (s + t) * d,
                max(s, t) * d,
            ),
            "this counts rows: each has d numbers": lambda s, t, n, d: (
                s + 2 * t,
                s + t,
                s + t - n,
            ),
            "tied in all places there is one matrix for all three uses": lambda s, t, n, d: (
                (s + 2 * t) * d,
                (s + t) * d,
                2 * (s + t - n) * d,
            ),
        },
    ),
)
