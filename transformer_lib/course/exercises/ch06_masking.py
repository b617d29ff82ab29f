"""Exercises of chapter 6, Masking."""

import math

import torch
from torch import Tensor

from transformer_lib.course.exercises import Exercise, same_function

IDS = torch.tensor([[5, 7, 3, 9], [4, 8, 0, 0], [6, 0, 0, 0]])
OTHER_IDS = torch.tensor([[1, 1, 5, 0], [2, 1, 3, 1]])  # padding 1, in front too; 0 is a word

SCORES = torch.tensor(
    [
        [1.7, -1.3, 3.9, 0.3],
        [1000.0, 998.0, -1000.0, 1001.0],
        [0.0, 1.0, 2.0, 3.0],
        [1000.0, 1.0, 2.0, 0.0],  # the hidden score is so large that the visible ones vanish
    ]
)
MASK = torch.tensor([[1, 1, 0, 1], [1, 1, 1, 0], [0, 0, 0, 0], [0, 1, 1, 1]]).bool()
MASK_AXES = ("query", "key")
NUMBERS = "the places are right, but a mask is boolean: a mask of numbers is refused"


def _weight_left(visible: list[float], hidden: int) -> float:
    return hidden / (hidden + sum(math.exp(score) for score in visible))


def _weight_left_by_softmax(visible: list[float], hidden: int) -> Tensor:
    return torch.softmax(torch.tensor([*visible, *[0.0] * hidden]), dim=0)[len(visible) :].sum()


def _causal_by_comparison(queries: int, keys: int) -> Tensor:
    return torch.arange(keys) <= torch.arange(queries)[:, None] + keys - queries


def _causal_by_triangle(queries: int, keys: int) -> Tensor:
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)


def _square(n: int) -> Tensor:
    return _causal_by_triangle(n, n)


def _decoder_mask(ids: Tensor, padding_id: int) -> Tensor:
    return (ids != padding_id)[:, None, None, :] & _square(ids.shape[1])


def _decoder_mask_by_loop(ids: Tensor, padding_id: int) -> Tensor:
    batch, n = ids.shape
    mask = torch.zeros(batch, 1, n, n, dtype=torch.bool)
    for b in range(batch):
        for query in range(n):
            for key in range(query + 1):
                mask[b, 0, query, key] = ids[b, key] != padding_id
    return mask


def _packed_mask(text: Tensor) -> Tensor:
    return (text[:, None] == text) & _square(len(text))


def _packed_mask_by_loop(text: Tensor) -> Tensor:
    ids = text.tolist()
    return torch.tensor(
        [[j <= i and ids[j] == ids[i] for j in range(len(ids))] for i in range(len(ids))]
    )


def _layers_needed(n: int, before: int, after: int) -> float | int:
    if n == 1:
        return 0
    slower = min(before, after)
    return math.ceil((n - 1) / slower) if slower else math.inf


def _layers_by_spreading(n: int, before: int, after: int) -> float | int:
    band = torch.ones(n, n).tril(after).triu(-before)
    reached = torch.eye(n)
    for layers in range(n + 1):
        if reached.all():
            return layers
        reached = (band @ reached).clamp(max=1)
    return math.inf


def _masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    low = torch.where(mask, scores, scores.min())
    exponentials = (low - low.amax(dim=-1, keepdim=True)).exp() * mask
    total = exponentials.sum(dim=-1, keepdim=True)
    return exponentials / torch.where(total > 0, total, 1)


def _less_the_largest_of_all(scores: Tensor, mask: Tensor) -> Tensor:
    exponentials = (scores - scores.amax(dim=-1, keepdim=True)).exp() * mask
    return exponentials / exponentials.sum(dim=-1, keepdim=True).clamp(min=1e-9)


def _masked_softmax_by_loop(scores: Tensor, mask: Tensor) -> Tensor:
    weights = torch.zeros_like(scores)
    for row, z, allowed in zip(weights, scores, mask, strict=True):
        if allowed.any():
            row[allowed] = torch.softmax(z[allowed], dim=0)
    return weights


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="weight-left",
        judge=same_function(_weight_left, ([1.7, -1.3, 0.3], 1), ([0.0], 9), ([4.0, 2.0], 20)),
        right=(_weight_left, _weight_left_by_softmax),
        mistakes={
            "nothing is left only if the score becomes minus infinity": lambda visible, hidden: 0.0,
            "this is the weight of one of them; they are asked for together": (
                lambda visible, hidden: _weight_left(visible, hidden) / hidden
            ),
            "this is the weight of the visible keys": (
                lambda visible, hidden: 1 - _weight_left(visible, hidden)
            ),
            "the hidden keys are missing from the sum in the denominator": (
                lambda visible, hidden: hidden / sum(math.exp(score) for score in visible)
            ),
            "the scores themselves are summed: take their exponentials": (
                lambda visible, hidden: hidden / (hidden + sum(visible))
            ),
            "every key gets the same here; take the exponentials of the scores": (
                lambda visible, hidden: hidden / (hidden + len(visible))
            ),
        },
    ),
    Exercise(
        name="causal-by-comparison",
        judge=same_function(_causal_by_comparison, (4, 4), (1, 4), (2, 5), axes=MASK_AXES),
        right=(_causal_by_comparison, _causal_by_triangle),
        mistakes={
            "right for a square; with more keys the last query stands at the last key": (
                lambda queries, keys: torch.arange(keys) <= torch.arange(queries)[:, None]
            ),
            "each query must see the key at its own place": lambda queries, keys: torch.ones(
                queries, keys, dtype=torch.bool
            ).tril(keys - queries - 1),
            "True means 'may attend': this is the opposite": lambda queries, keys: (
                ~_causal_by_triangle(queries, keys)
            ),
            "this is the wrong triangle: queries are rows and see earlier keys": (
                lambda queries, keys: torch.ones(queries, keys, dtype=torch.bool).triu(
                    keys - queries
                )
            ),
            "this is the transpose: queries are rows": lambda queries, keys: (
                _causal_by_triangle(queries, keys).T
            ),
            NUMBERS: lambda queries, keys: _causal_by_triangle(queries, keys).int(),
        },
    ),
    Exercise(
        name="decoder-mask",
        judge=same_function(
            _decoder_mask, (IDS, 0), (OTHER_IDS, 1), axes=("sentence", "head", *MASK_AXES)
        ),
        right=(_decoder_mask, _decoder_mask_by_loop),
        mistakes={
            "this hides the rows of the padding; hide its columns": lambda ids, padding_id: (
                (ids != padding_id)[:, None, :, None] & _square(ids.shape[1])
            ),
            "the columns of the padding are enough; its rows need not be hidden": (
                lambda ids, padding_id: (
                    (ids != padding_id)[:, None, :, None] & _decoder_mask(ids, padding_id)
                )
            ),
            "the axis of the heads is missing: (batch, 1, n, n)": lambda ids, padding_id: (
                _decoder_mask(ids, padding_id)[:, 0]
            ),
            NUMBERS: lambda ids, padding_id: _decoder_mask(ids, padding_id).float(),
            "the padding is not hidden": lambda ids, padding_id: _square(ids.shape[1]).expand(
                len(ids), 1, -1, -1
            ),
            "this lets the queries see the padding and nothing else: True means 'may attend'": (
                lambda ids, padding_id: (
                    (ids == padding_id)[:, None, None, :] & _square(ids.shape[1])
                )
            ),
            "padding may stand anywhere: compare every id instead of counting the real ones": (
                lambda ids, padding_id: (
                    (torch.arange(ids.shape[1]) < (ids != padding_id).sum(dim=1)[:, None])[
                        :, None, None, :
                    ]
                    & _square(ids.shape[1])
                )
            ),
            "the future is not hidden": lambda ids, padding_id: (ids != padding_id)[
                :, None, None, :
            ].expand(-1, 1, ids.shape[1], -1),
            "True means 'may attend': this is the opposite": lambda ids, padding_id: (
                ~_decoder_mask(ids, padding_id)
            ),
            "a query sees a key where both masks let it; this is where one of them does": (
                lambda ids, padding_id: (
                    (ids != padding_id)[:, None, None, :] | _square(ids.shape[1])
                )
            ),
            "this hides the past: the wrong triangle": lambda ids, padding_id: (
                (ids != padding_id)[:, None, None, :] & _square(ids.shape[1]).T
            ),
        },
    ),
    Exercise(
        name="packed-mask",
        judge=same_function(
            _packed_mask,
            (torch.tensor([0, 0, 0, 1, 1, 2]),),
            (torch.tensor([4, 4, 7]),),
            axes=MASK_AXES,
        ),
        right=(_packed_mask, _packed_mask_by_loop),
        mistakes={
            "this lets each text see its own future": lambda text: text[:, None] == text,
            "this lets each text see the texts before it": lambda text: _square(len(text)),
            "True means 'may attend': this is the opposite": lambda text: ~_packed_mask(text),
            "this hides the past: the wrong triangle": lambda text: _packed_mask(text).T,
            "each query must see the key at its own place": lambda text: _packed_mask(text).tril(
                -1
            ),
            NUMBERS: lambda text: _packed_mask(text).float(),
            "this lets each text see those before it and its own future: both rules must hold": (
                lambda text: (text[:, None] == text) | _square(len(text))
            ),
        },
    ),
    Exercise(
        name="layers-needed",
        judge=same_function(
            _layers_needed, (100, 5, 5), (9, 2, 4), (9, 4, 2), (7, 3, 0), (1, 2, 2), (11, 5, 5)
        ),
        right=(_layers_needed, _layers_by_spreading),
        mistakes={
            "the ends are n - 1 places apart, not n": lambda n, before, after: (
                0
                if n == 1
                else math.ceil(n / min(before, after))
                if min(before, after)
                else math.inf
            ),
            "the ends are n - 1 places apart, not n, and one word needs no layer": (
                lambda n, before, after: (
                    math.ceil(n / min(before, after)) if min(before, after) else math.inf
                )
            ),
            "round up: the last step may be a short one": lambda n, before, after: (
                (n - 1) // min(before, after) if min(before, after) else math.inf
            ),
            "the slower direction decides, not the faster": lambda n, before, after: (
                math.ceil((n - 1) / max(before, after)) if max(before, after) else math.inf
            ),
            "one layer carries information over one side, not over the whole neighbourhood": (
                lambda n, before, after: math.ceil((n - 1) / (before + after + 1))
            ),
            "a word moves by before or by after places in a layer, not by both together": (
                lambda n, before, after: math.ceil((n - 1) / (before + after))
            ),
        },
    ),
    Exercise(
        name="masked-softmax",
        judge=same_function(
            _masked_softmax, (SCORES, MASK), (SCORES[:1], MASK[:1]), axes=MASK_AXES, finite=True
        ),
        right=(_masked_softmax, _masked_softmax_by_loop),
        mistakes={
            "0/0: a query that may attend to nothing must get zeros": lambda scores, mask: (
                torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)
            ),
            "the exponential overflows: subtract the largest visible score of the row first": (
                lambda scores, mask: (
                    scores.exp() * mask / (scores.exp() * mask).sum(-1, keepdim=True).clamp(min=1)
                )
            ),
            "where everything is hidden this gives uniform weights": lambda scores, mask: (
                torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1)
            ),
            "a score times 0 is 0, and exp(0) = 1 of weight is left": lambda scores, mask: (
                torch.softmax(scores * mask, dim=-1)
            ),
            "the weights no longer sum to 1: hide before dividing": lambda scores, mask: (
                torch.softmax(scores, dim=-1) * mask
            ),
            "the largest score may be a hidden one: take it over the visible keys only": (
                _less_the_largest_of_all
            ),
            "this divides by the sum over all queries: each row has its own": (
                lambda scores, mask: (
                    torch.softmax(scores, dim=-1) * mask / (torch.softmax(scores, -1) * mask).sum()
                )
            ),
            "the weights are right, but on the way there is an infinity or NaN": (
                lambda scores, mask: torch.softmax(
                    scores.masked_fill(~mask, -math.inf), dim=-1
                ).nan_to_num()
            ),
        },
    ),
)
