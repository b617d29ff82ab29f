"""Guards of chapter 13: decoders, and the searches that ask them."""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

from transformer_lib._checks.common import kind, require_mask

LONGEST = 1_000_000  # new tokens
WIDEST = 10_000  # beams


def sources(model: Any, source: Any, key_mask: Any) -> None:
    """Stand before decoders that begin with sentences of token ids."""
    if model.training:
        raise ValueError("model: expected evaluation mode, call model.eval() first")
    if not isinstance(source, Tensor) or source.dim() != 2:
        came = tuple(source.shape) if isinstance(source, Tensor) else type(source).__name__
        raise ValueError(f"source: expected token ids of shape (batch, length), got {came}")
    if key_mask is not None:
        require_mask(key_mask, "key_mask")
        if key_mask.shape != source.shape:
            raise ValueError(
                f"key_mask: expected shape {tuple(source.shape)} as source has, "
                f"got {tuple(key_mask.shape)}"
            )


def new_tokens(config: Any, tokens: Any, rows: int, length: int) -> None:
    """Raise unless there are new tokens for every row, and the model has positions for them."""
    if not isinstance(tokens, Tensor) or tokens.dim() != 2:
        came = tuple(tokens.shape) if isinstance(tokens, Tensor) else type(tokens).__name__
        raise ValueError(f"tokens: expected shape (rows = {rows}, 1 or more), got {came}")
    if tokens.shape[0] != rows or not tokens.shape[1]:
        raise ValueError(
            f"tokens: expected shape (rows = {rows}, 1 or more), got {tuple(tokens.shape)}"
        )
    places = config.max_length
    if config.positions != "none" and length + tokens.shape[1] > places:
        raise ValueError(
            f"tokens: {tokens.shape[1]} after {length} are more than the {places} positions that "
            "the model has (its max_length)"
        )


def rows(rows: Any, count: int) -> None:
    """Raise unless these are numbers of rows; of a GPU they are left to its kernel."""
    if not isinstance(rows, Tensor) or rows.dim() != 1 or rows.dtype != torch.int64:
        raise TypeError(f"rows: expected a list of row numbers in int64, got {kind(rows)}")
    if rows.is_cpu and rows.numel() and not (rows.min() >= 0 and rows.max() < count):
        raise ValueError(f"rows: expected numbers from 0 to {count - 1}, got {rows.tolist()}")


def search(
    decoder: Any,
    start: Any,
    end: Any,
    max_length: Any,
    min_length: Any,
    forbidden: Any,
    padding_id: Any = 0,
) -> None:
    """Stand before every search; the vocabulary is known when the decoder first answers."""
    _require_whole(end=end, max_length=max_length, min_length=min_length, padding_id=padding_id)
    if not 1 <= max_length <= LONGEST:
        raise ValueError(
            f"max_length: expected 1 or more new tokens, up to {LONGEST:,}, got {max_length}"
        )
    if not 0 <= min_length < max_length:
        raise ValueError(
            f"min_length: expected 0 to {max_length - 1}, below max_length, got {min_length}"
        )
    if isinstance(forbidden, str) or not isinstance(forbidden, Sequence):
        raise TypeError(f"forbidden: expected a list of token ids, got {kind(forbidden)}")
    for token in forbidden:
        _require_whole(forbidden=token)
    if not isinstance(start, Tensor):
        _require_whole(start=start)
    elif start.dim() != 2 or start.shape[0] != decoder.rows or not start.shape[1]:
        raise ValueError(
            f"start: expected a token, or tokens of shape (rows = {decoder.rows}, 1 or more), "
            f"got {tuple(start.shape)}"
        )


def vocabulary(vocabulary_size: int, end: int, forbidden: Sequence[int]) -> None:
    """Raise unless the model has the tokens that a search was told of."""
    for name, tokens in (("end", [end]), ("forbidden", forbidden)):
        if outside := [token for token in tokens if not 0 <= token < vocabulary_size]:
            raise ValueError(f"{name}: expected ids from 0 to {vocabulary_size - 1}, got {outside}")


def scores(best: Tensor, length: int, *, some_left: bool) -> None:
    """Stand after a model: no row's best score may be NaN or +∞, nor −∞ if some must be left."""
    if best.isfinite().all():
        return
    for bad, what in ((best.isnan(), "NaN"), (best.isposinf(), "+∞")):
        if bad.any():
            raise FloatingPointError(f"decoder: {what} in the logits of new token number {length}")
    if some_left and best.isneginf().any():
        raise ValueError(f"forbidden: no token is left that could be number {length} of a row")


def beams(beams: Any, alpha: Any) -> None:
    _require_whole(beams=beams)
    if not 1 <= beams <= WIDEST:
        raise ValueError(f"beams: expected 1 or more, up to {WIDEST:,}, got {beams}")
    _require_real(alpha=alpha)
    if not math.isfinite(alpha):
        raise ValueError(f"alpha: expected a finite number, got {alpha}")


def divisor(divisor: float, length: int, alpha: float) -> None:
    """Stand after a penalty: another sign would turn the order of the scores round."""
    if not 0 < divisor < math.inf:
        raise ValueError(
            f"penalty: expected finite numbers above 0, got {divisor} for length {length} and "
            f"alpha = {alpha}"
        )


def sampling(temperature: Any, top_k: Any, top_p: Any) -> None:
    _require_real(temperature=temperature)
    if not 0 < temperature < math.inf:
        raise ValueError(
            f"temperature: expected a number above 0, got {temperature}; greedy takes the most "
            "probable token"
        )
    if top_k is not None:
        _require_whole(top_k=top_k)
        if top_k < 1:
            raise ValueError(f"top_k: expected 1 or more, got {top_k}")
    if top_p is not None:
        _require_real(top_p=top_p)
        if not 0 < top_p <= 1:
            raise ValueError(f"top_p: expected a probability above 0, up to 1, got {top_p}")


def _require_whole(**numbers: Any) -> None:
    for name, number in numbers.items():
        if not isinstance(number, Integral) or isinstance(number, bool):
            raise TypeError(f"{name}: expected a whole number, got {number!r}")


def _require_real(**numbers: Any) -> None:
    for name, number in numbers.items():
        if not isinstance(number, Real) or isinstance(number, bool):
            raise TypeError(f"{name}: expected a number, got {number!r}")


def for_decoding(model: Any, expected: type) -> None:
    if not isinstance(model, expected):
        raise TypeError(f"model: expected a {expected.__name__}, got {type(model).__name__}")
