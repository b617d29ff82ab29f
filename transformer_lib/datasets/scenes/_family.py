"""Families of shapes: several ways to draw each kind of object.

A family is a function of a pen ``p`` and dice ``d`` that draws an object upright, in units of its
own and at any place: what it draws is then scaled, turned and moved.
"""

from collections.abc import Callable
from typing import NamedTuple

from transformer_lib.datasets.scenes._pen import Dice, Pen

Draw = Callable[[Pen, Dice], None]


class Family(NamedTuple):
    """A way to draw a kind of object."""

    draw: Draw
    held_out: bool


class Families(dict[str, list[Family]]):
    """The families of each kind, in the order in which they were added."""

    def add(self, kind: str, *, held_out: bool = False) -> Callable[[Draw], Draw]:
        """Return a decorator that adds a function."""

        def register(draw: Draw) -> Draw:
            self.setdefault(kind, []).append(Family(draw, held_out))
            return draw

        return register
