"""Draws that are the same in every version of Python."""

from collections.abc import Mapping, Sequence
from math import fsum
from random import Random
from typing import TypeVar

__all__ = ["Dice"]

T = TypeVar("T")


class Dice:
    """Draws from ``Random.random`` alone: Python promises its numbers, not those of ``choice``."""

    def __init__(self, random: Random) -> None:
        self._random = random.random

    def chance(self, probability: float) -> bool:
        """Come out true with this probability."""
        return self._random() < probability

    def one(self, choices: Sequence[T]) -> T:
        """Draw one of the choices, all equally likely."""
        return choices[int(self._random() * len(choices))]

    def weighted(self, choices: Mapping[T, int | float]) -> T:
        """Draw one of the choices by its weight."""
        point = self._random() * fsum(choices.values())
        for choice, weight in choices.items():
            point -= weight
            if point < 0:
                return choice
        return choice
