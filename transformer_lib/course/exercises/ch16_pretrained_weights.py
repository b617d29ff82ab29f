"""Exercises of chapter 16, Pretrained weights."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer_lib.course.exercises import Exercise, same_function


def _random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _sentence_vectors(vectors: Tensor, real: Tensor) -> Tensor:
    total = (vectors * real[..., None]).sum(dim=1)
    return total / total.norm(dim=-1, keepdim=True)


def _sentence_vectors_by_weights(vectors: Tensor, real: Tensor) -> Tensor:
    weights = real.to(vectors.dtype) / real.sum(dim=1, keepdim=True)
    return F.normalize(torch.einsum("sl,sld->sd", weights, vectors), dim=-1)


def _with_padding(vectors: Tensor, real: Tensor) -> Tensor:
    return F.normalize(vectors.mean(dim=1), dim=-1)


def _not_scaled(vectors: Tensor, real: Tensor) -> Tensor:
    return (vectors * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)


def _first_token(vectors: Tensor, real: Tensor) -> Tensor:
    return F.normalize(vectors[:, 0], dim=-1)


def _tokens_scaled_first(vectors: Tensor, real: Tensor) -> Tensor:
    return _not_scaled(F.normalize(vectors, dim=-1), real)


def _positions(samples: int) -> tuple[int, float]:
    positions = math.ceil(math.ceil(samples / 160) / 2)
    return positions, (positions - 1) * 0.02


def _positions_by_integers(samples: int) -> tuple[int, float]:
    positions = (samples + 319) // 320
    return positions, (positions - 1) / 50


def _frames_instead(samples: int) -> tuple[int, float]:
    frames = math.ceil(samples / 160)
    return frames, (frames - 1) * 0.01


def _rounded_down(samples: int) -> tuple[int, float]:
    positions = samples // 320
    return positions, (positions - 1) * 0.02


def _end_of_the_last(samples: int) -> tuple[int, float]:
    positions, _ = _positions(samples)
    return positions, positions * 0.02


def _unfuse(fused: Tensor, bias: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    return list(fused.T.chunk(3)), list(bias.chunk(3))


def _unfuse_by_columns(fused: Tensor, bias: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    d = len(fused)
    parts = [slice(i * d, (i + 1) * d) for i in range(3)]
    return [fused[:, part].T for part in parts], [bias[part] for part in parts]


def _not_transposed(fused: Tensor, bias: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    return list(fused.chunk(3, dim=1)), list(bias.chunk(3))


def _interleaved(fused: Tensor, bias: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    return [fused[:, i::3].T for i in range(3)], [bias[i::3] for i in range(3)]


def _reshaped(fused: Tensor, bias: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    d = len(fused)
    return list(fused.reshape(3, d, d)), list(bias.chunk(3))


def _cache_bytes(
    n_layers: int, n_heads: int, n_shared: int, d_k: int, length: int
) -> tuple[int, float]:
    return 4 * n_layers * n_shared * d_k * length, n_heads / n_shared


def _cache_bytes_by_tensors(
    n_layers: int, n_heads: int, n_shared: int, d_k: int, length: int
) -> tuple[int, float]:
    kept, whole = (
        sum(
            torch.empty(heads, length, d_k, dtype=torch.float16, device="meta").nbytes
            for _ in range(n_layers)
            for _ in ("keys", "values")
        )
        for heads in (n_shared, n_heads)
    )
    return kept, whole / kept


EXERCISES = (
    Exercise(
        name="vector-of-a-sentence",
        judge=same_function(
            _sentence_vectors,
            (_random(2, 4, 3), torch.tensor([[True] * 4, [True, True, False, False]])),
            (_random(3, 5, 8, seed=1), torch.arange(5) < torch.tensor([5, 1, 3])[:, None]),
        ),
        right=(_sentence_vectors, _sentence_vectors_by_weights),
        mistakes={
            "this counts the padding: multiply by the mask before the sum": _with_padding,
            "the vectors do not have length 1: divide by their norm": _not_scaled,
            "this is the first token's vector, not the mean": _first_token,
            "this scales each token's vector: scale the mean": _tokens_scaled_first,
        },
    ),
    Exercise(
        name="when-was-it-spoken",
        judge=same_function(_positions, (16_000,), (48_720,), (1,), (321,)),
        right=(_positions, _positions_by_integers),
        mistakes={
            "these are frames: the second convolution takes every other one": _frames_instead,
            "a position that is half full holds sound too: round up": _rounded_down,
            "this is when the last position ends: the first begins at 0": _end_of_the_last,
        },
    ),
    Exercise(
        name="a-fused-matrix",
        judge=same_function(
            _unfuse, (_random(2, 6), _random(6, seed=1)), (_random(4, 12), _random(12, seed=1))
        ),
        right=(_unfuse, _unfuse_by_columns),
        mistakes={
            "transpose: nn.Linear multiplies by weight.T": _not_transposed,
            "queries, keys and values lie side by side, not in turn": _interleaved,
            "a reshape mixes the three: cut the columns instead": _reshaped,
        },
    ),
    Exercise(
        name="room-for-the-cache",
        judge=same_function(_cache_bytes, (32, 32, 8, 128, 8192), (2, 6, 3, 4, 5)),
        right=(_cache_bytes, _cache_bytes_by_tensors),
        mistakes={
            "half of it is missing: keys and values, and two bytes for each number": lambda *s: (
                2 * s[0] * s[2] * s[3] * s[4],
                s[1] / s[2],
            ),
            "this is the cache without sharing: n_shared heads are kept": lambda *s: (
                4 * s[0] * s[1] * s[3] * s[4],
                s[1] / s[2],
            ),
            "the ratio is upside down": lambda *s: (4 * s[0] * s[2] * s[3] * s[4], s[2] / s[1]),
        },
    ),
)
