"""Exercises of chapter 5, Positional encoding."""

import math

import torch
from torch import Tensor

from transformer_lib.course.exercises import Exercise, same_function


def _omega(d_model: int) -> Tensor:
    return 1 / 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)


def _encode(pos: int, d_model: int) -> Tensor:
    angle = pos * _omega(d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten()


def _encode_by_entries(pos: int, d_model: int) -> Tensor:
    row = []
    for column in range(d_model):
        angle = pos / 10000 ** ((column - column % 2) / d_model)
        row.append(math.cos(angle) if column % 2 else math.sin(angle))
    return torch.tensor(row)


def _encode_by_column_index(pos: int, d_model: int) -> Tensor:
    column = torch.arange(d_model)
    angle = pos / 10000 ** (2 * column / d_model)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())


def _encode_by_own_exponent(pos: int, d_model: int) -> Tensor:
    column = torch.arange(d_model)
    angle = pos / 10000 ** (column / d_model)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())


def _similarity(distance: int, d_model: int) -> float:
    return float((_omega(d_model) * distance).cos().mean())


def _similarity_by_sum(distance: int, d_model: int) -> float:
    pairs = d_model // 2
    return sum(math.cos(distance / 10000 ** (i / pairs)) for i in range(pairs)) / pairs


def _blocks(angles: Tensor) -> Tensor:
    blocks = [[[a.cos(), a.sin()], [-a.sin(), a.cos()]] for a in angles]
    matrix: Tensor = torch.block_diag(*map(torch.tensor, blocks))  # type: ignore[no-untyped-call]
    return matrix


def _look_back(k: int, d_model: int) -> Tensor:
    return _blocks(k * _omega(d_model))


def _look_back_by_indices(k: int, d_model: int) -> Tensor:
    angle, sines, cosines = k * _omega(d_model), *torch.arange(d_model).view(-1, 2).T
    W_Q = torch.zeros(d_model, d_model, dtype=torch.float64)
    W_Q[sines, sines] = W_Q[cosines, cosines] = angle.cos()
    W_Q[sines, cosines], W_Q[cosines, sines] = angle.sin(), -angle.sin()
    return W_Q


def _look_back_in_halves(k: int, d_model: int) -> Tensor:
    angle = k * _omega(d_model)
    sine, cosine = angle.sin().diag(), angle.cos().diag()
    return torch.cat([torch.cat([cosine, sine], dim=1), torch.cat([-sine, cosine], dim=1)])


def _place_of(row: Tensor) -> int:
    return round(math.atan2(row[-2], row[-1]) / float(_omega(len(row))[-1]))


def _place_by_table(row: Tensor) -> int:
    table = torch.stack([_encode(pos, len(row)) for pos in range(1000)])
    return int((table - row).square().sum(dim=-1).argmin())


PLACES = tuple((_encode(pos, d).float(),) for pos, d in ((0, 16), (5, 16), (321, 32), (999, 64)))

EXERCISES = (
    Exercise(
        name="wavelength-of-column",
        judge=same_function(
            lambda column, d_model: 2 * math.pi * 10000 ** (column // 2 * 2 / d_model),
            (0, 512),
            (1, 8),
            (6, 8),
            (7, 8),
        ),
        right=(
            lambda column, d_model: 2 * math.pi * 10000 ** (column // 2 * 2 / d_model),
            lambda column, d_model: math.tau / float(_omega(d_model)[column // 2]),
        ),
        mistakes={
            "column is the index of the column: the formula's i counts pairs of columns": (
                lambda column, d_model: 2 * math.pi * 10000 ** (2 * column / d_model)
            ),
            "an odd column has the frequency of the even one before it": (
                lambda column, d_model: 2 * math.pi * 10000 ** (column / d_model)
            ),
            "the 2 of the exponent is missing: 2i / d_model": (
                lambda column, d_model: 2 * math.pi * 10000 ** (column // 2 / d_model)
            ),
            "a full turn is 2π radians: multiply by it": (
                lambda column, d_model: 10000 ** (column // 2 * 2 / d_model)
            ),
            "this is the angular frequency: a wavelength is 2π divided by it": (
                lambda column, d_model: 1 / 10000 ** (column // 2 * 2 / d_model)
            ),
        },
    ),
    Exercise(
        name="encode-one-place",
        judge=same_function(_encode, (1, 4), (7, 8), (50, 6), tolerance=1e-4),
        right=(_encode, _encode_by_entries),
        mistakes={
            "i is taken for the index of the column: it counts the pairs": _encode_by_column_index,
            "a sine and the cosine beside it have different frequencies: they share one": (
                _encode_by_own_exponent
            ),
            "the place is multiplied by the power of 10000: divide by it": (
                lambda pos, d_model: torch.stack(
                    [(pos / _omega(d_model)).sin(), (pos / _omega(d_model)).cos()], dim=-1
                ).flatten()
            ),
            "all sines come before all cosines: in the paper's layout they alternate": (
                lambda pos, d_model: torch.cat(
                    [(pos * _omega(d_model)).sin(), (pos * _omega(d_model)).cos()]
                )
            ),
            "sine and cosine have changed places: the even columns are sines": (
                lambda pos, d_model: _encode(pos, d_model).view(-1, 2).flip(-1).flatten()
            ),
            "places count from 0, so that place 0 is [0, 1, 0, 1, …]": (
                lambda pos, d_model: _encode(pos + 1, d_model)
            ),
        },
    ),
    Exercise(
        name="alike-at-a-distance",
        judge=same_function(_similarity, (0, 8), (1, 8), (3, 64), (-3, 64), (40, 512)),
        right=(_similarity, _similarity_by_sum),
        mistakes={
            "this is the inner product: divide by both norms, whose product is d_model / 2": (
                lambda distance, d_model: _similarity(distance, d_model) * d_model / 2
            ),
            "the sum has one term for each pair, d_model / 2 of them": (
                lambda distance, d_model: _similarity(distance, d_model) / 2
            ),
            "this divides by one norm only: the cosine divides by both": (
                lambda distance, d_model: _similarity(distance, d_model) * (d_model / 2) ** 0.5
            ),
            "the cosine of two hands is the cosine of the angle between them, not the sine": (
                lambda distance, d_model: float((_omega(d_model) * distance).sin().mean())
            ),
        },
    ),
    Exercise(
        name="look-back",
        judge=same_function(_look_back, (1, 4), (3, 8)),
        right=(_look_back, _look_back_by_indices),
        mistakes={
            "this goes k places on instead of back: transpose it": (
                lambda k, d_model: _look_back(k, d_model).T
            ),
            "this fits the layout with all sines first: here each cosine is beside its sine": (
                _look_back_in_halves
            ),
            "every pair turns by its own angle, k times its frequency": (
                lambda k, d_model: _blocks(torch.full((d_model // 2,), float(k)))
            ),
            "this goes back by one place, whatever k is": (
                lambda k, d_model: _look_back(1, d_model)
            ),
        },
    ),
    Exercise(
        name="which-place",
        judge=same_function(_place_of, *PLACES),
        right=(_place_of, _place_by_table),
        mistakes={
            "the first pair is back where it was after 2π places: take a slower one": (
                lambda row: round(math.atan2(row[0], row[1]))
            ),
            "atan2 takes the sine first, and the sine comes before the cosine in a pair": (
                lambda row: round(math.atan2(row[-1], row[-2]) / float(_omega(len(row))[-1]))
            ),
            "this is the angle of the last pair: divide it by the pair's frequency": (
                lambda row: math.atan2(row[-2], row[-1])
            ),
            "the last pair has the exponent (d_model − 2) / d_model, not 1": (
                lambda row: round(math.atan2(row[-2], row[-1]) * 10000)
            ),
        },
    ),
)
