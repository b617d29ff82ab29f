"""Instant answers to the exercises of the book.

``check(name, answer)`` prints one line: *not yet* for an unfilled answer, *right*, or which
mistake the answer looks like. Every chapter has a file here with its exercises, every part one
with the stages of its capstone.
"""

import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["Exercise", "check", "load", "same_function", "same_value"]

Judge = Callable[[Any], str | None]


class NotYetError(Exception):
    """The answer is still the stub of the notebook."""


@dataclass(frozen=True)
class Exercise:
    """One exercise: how an answer is judged, and the answers the judge itself is tested with.

    Attributes:
        name: Name the notebook's cell gives to :func:`check`.
        judge: Returns None for a right answer, else a sentence on what is wrong with it.
        right: Right answers, written differently; each must pass.
        mistakes: The usual wrong answers under the message each of them must get.
    """

    name: str
    judge: Judge
    right: tuple[Any, ...]
    mistakes: Mapping[str, Any] = field(default_factory=dict)

    def verdict(self, answer: Any) -> str:
        """Judge ``answer``: "not yet.", "right." or what is wrong with it."""
        try:
            problem = self.judge(answer)
            if problem is None:
                return "right."
            return next(
                (m for m, wrong in self.mistakes.items() if self._alike(answer, wrong)), problem
            )
        except NotYetError:
            return "not yet."
        except Exception as error:  # whatever an answer does, the notebook goes on
            return f"the check could not use your answer: {type(error).__name__}: {error}"

    def _alike(self, answer: Any, wrong: Any) -> bool:
        compare = getattr(self.judge, "alike", None)
        return bool(compare and compare(answer, wrong))


def check(name: str, answer: Any) -> None:
    """Print whether ``answer`` solves the exercise called ``name``.

    Args:
        name: The exercise's name, as in the notebook.
        answer: A function or a value, as the exercise asks. None, ``...``, and functions that
            return one of them or raise NotImplementedError count as not yet filled in.

    Raises:
        KeyError: No exercise has this name.
    """
    exercises = load()
    if name not in exercises:
        raise KeyError(f"name: no exercise is called {name!r}; there are {', '.join(exercises)}")
    print(f"{name}: {exercises[name].verdict(answer)}")


@cache
def load() -> dict[str, Exercise]:
    """Return all exercises by name, in the order of the chapters."""
    found: dict[str, Exercise] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        for exercise in importlib.import_module(f"{__name__}.{module}").EXERCISES:
            if exercise.name in found:
                raise ValueError(f"two exercises are called {exercise.name!r}")
            found[exercise.name] = exercise
    return found


class same_function:  # noqa: N801 - reads as a word where exercises are declared
    """Judge a function by its results on ``cases``, each a tuple of arguments.

    Args:
        right: The function that gives the expected results.
        cases: Tuples of arguments; tensors are cloned, so that an answer cannot spoil them.
        tolerance: Largest difference, relative and absolute, that still counts as equal. Where
            booleans are expected, numbers do not count as equal.
        axes: Names of the result's axes, to say where a tensor first differs.
        finite: Whether an infinity or NaN is wrong even on the way to a right result.
    """

    def __init__(
        self,
        right: Callable[..., Any],
        *cases: tuple[Any, ...],
        tolerance: float = 1e-5,
        axes: tuple[str, ...] = (),
        finite: bool = False,
    ):
        self.right, self.cases, self.tolerance = right, cases, tolerance
        self.axes, self.finite = axes, finite

    def __call__(self, answer: Any) -> str | None:
        """Say on which case ``answer`` first differs from the right function, if on any."""
        if _unfilled(answer):
            raise NotYetError
        if not callable(answer):
            return f"a function is asked for, got {type(answer).__name__}"
        for case in self.cases:
            watch = _Watch()  # type: ignore[no-untyped-call]
            try:
                with watch if self.finite else nullcontext():
                    came = _run(answer, case)
            except NotYetError:
                raise
            except Exception as error:
                return f"{_call(answer, case)} raised {type(error).__name__}: {error}"
            if not _equal(came, expected := self.right(*_copy(case)), self.tolerance):
                return f"{_call(answer, case)} gives {self._contrast(came, expected)}"
            if not watch.finite:
                return f"{_call(answer, case)} meets an infinity or NaN on the way"
        return None

    def _contrast(self, came: Any, expected: Any) -> str:
        """Say what came and what was expected; of large tensors of one shape, one entry."""
        large = isinstance(expected, Tensor) and expected.numel() > 12 and _is_array(came)
        if not large or tuple(came.shape) != tuple(expected.shape):
            return f"{_show(came)}, expected {_show(expected)}"
        came = torch.as_tensor(came).detach()
        close = torch.isclose(
            came.double(), expected.double(), self.tolerance, self.tolerance, equal_nan=True
        )
        place = tuple((~close).nonzero()[0].tolist()) if not close.all() else (0,) * came.dim()
        where = ", ".join(f"{axis} {i}" for axis, i in zip(self.axes, place, strict=False))
        return (
            f"{_show(came)}; at {where or list(place)} (counted from 0) it has "
            f"{_show(came[place])}, expected {_show(expected[place])}"
        )

    def alike(self, answer: Any, wrong: Any) -> bool:
        """Whether ``answer`` and the known mistake ``wrong`` give the same on every case."""
        try:
            return all(
                _equal(_run(answer, case), _run(wrong, case), self.tolerance) for case in self.cases
            )
        except Exception:
            return False


class same_value:  # noqa: N801
    """Judge a number, tensor, string or tuple by comparing it with ``right``."""

    def __init__(self, right: Any, tolerance: float = 1e-5):
        self.right, self.tolerance = right, tolerance

    def __call__(self, answer: Any) -> str | None:
        """Say what was expected when ``answer`` differs; the value itself stays unsaid."""
        if _unfilled(answer):
            raise NotYetError
        if _equal(answer, self.right, self.tolerance):
            return None
        return f"{_show(answer)} is not the answer"

    def alike(self, answer: Any, wrong: Any) -> bool:
        """Whether ``answer`` is the known mistake ``wrong``."""
        return _equal(answer, wrong, self.tolerance)


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Remember whether all that PyTorch computed has been finite."""

    finite = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for part in result if isinstance(result, tuple | list) else (result,):
            if isinstance(part, Tensor) and part.is_floating_point() and "empty" not in str(func):
                self.finite &= bool(part.isfinite().all())
        return result


def _unfilled(answer: Any) -> bool:
    return answer is None or answer is ...


def _run(function: Callable[..., Any], case: tuple[Any, ...]) -> Any:
    try:
        result = function(*_copy(case))
    except NotImplementedError:
        raise NotYetError from None
    if _unfilled(result):
        raise NotYetError
    return result


def _copy(case: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_clone(argument) for argument in case)


def _clone(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.detach().clone()
    if type(x) is dict:
        return {key: _clone(value) for key, value in x.items()}
    return type(x)(map(_clone, x)) if type(x) in (list, tuple) else x


def _equal(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(_equal(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if _is_array(a) or _is_array(b):
        try:
            x, y = torch.as_tensor(a).detach(), torch.as_tensor(b).detach()
        except (TypeError, ValueError, RuntimeError):
            return False
        if y.dtype is torch.bool is not x.dtype:
            return False
        x, y = x.double(), y.double()
        return x.shape == y.shape and torch.allclose(x, y, tolerance, tolerance, equal_nan=True)
    if isinstance(a, bool) or isinstance(b, bool) or not _number(a) or not _number(b):
        return bool(a == b)
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance) or (a != a and b != b)


def _is_array(x: Any) -> bool:
    return isinstance(x, Tensor) or hasattr(x, "__array__")  # NumPy's arrays and numbers


def _number(x: Any) -> bool:
    return isinstance(x, int | float)


def _call(answer: Callable[..., Any], case: tuple[Any, ...]) -> str:
    """Show the arguments under the names that the answer gives them."""
    try:
        named = inspect.signature(answer).bind(*case).arguments
    except (TypeError, ValueError):
        named = {}
    names = [f"{name} = " for name in named] if len(named) == len(case) > 1 else [""] * len(case)
    shown = (name + _show(argument) for name, argument in zip(names, case, strict=True))
    return f"on ({', '.join(shown)}) your function"


def _show(value: Any) -> str:
    if isinstance(value, Tensor):
        if value.numel() > 12:
            return f"a tensor of shape {tuple(value.shape)}"
        rounded = (
            (value.detach().double() * 1e4).round() / 1e4 if value.is_floating_point() else value
        )
        return str(rounded.tolist())
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple):
        return f"({', '.join(_show(v) for v in value)})"
    if isinstance(value, Mapping):
        return f"a dictionary of {len(value)}"
    if isinstance(value, list) and any(isinstance(v, Mapping) for v in value):
        return f"a list of {len(value)} dictionaries"
    return repr(value)
