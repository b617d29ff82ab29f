"""Seeded dice, and a pen that records coloured polygons. The y axis points down, as in pictures."""

import colorsys
import hashlib
import math
import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")
Number = int | float  # checked at run time, where an int is no float
Point = tuple[Number, Number]
Colour = tuple[int, int, int]


class Dice:
    """Random numbers from the hash of a key; all of them are made from ``random()`` alone."""

    def __init__(self, *key: object) -> None:
        digest = hashlib.sha256("/".join(map(str, key)).encode()).digest()
        self.random = random.Random(int.from_bytes(digest[:16], "big"))

    def between(self, low: Number, high: Number) -> Number:
        """Return a number that is uniform in [low, high)."""
        return low + (high - low) * self.random.random()

    def integer(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        return low + int((high - low + 1) * self.random.random())

    def chance(self, probability: Number) -> bool:
        """Return True with this probability."""
        return self.random.random() < probability

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[int(len(items) * self.random.random())]

    def colour(
        self,
        hue: tuple[Number, Number] = (0, 1),
        saturation: tuple[Number, Number] = (0.25, 0.85),
        value: tuple[Number, Number] = (0.35, 0.95),
    ) -> Colour:
        """Return a colour within these ranges of hue, saturation and value."""
        return hsv(self.between(*hue), self.between(*saturation), self.between(*value))

    def wood(self) -> Colour:
        """Return a colour of wood."""
        return self.colour((0.04, 0.11), (0.35, 0.75), (0.3, 0.85))


def hsv(hue: Number, saturation: Number, value: Number) -> Colour:
    """Return the colour in red, green and blue, each 0 to 255."""
    red, green, blue = colorsys.hsv_to_rgb(hue % 1, saturation, value)
    return int(255 * red), int(255 * green), int(255 * blue)


def mix(one: Colour, other: Colour, part: Number) -> Colour:
    """Return the colour that is ``part`` of the way from one to the other."""
    return (
        int(one[0] + (other[0] - one[0]) * part),
        int(one[1] + (other[1] - one[1]) * part),
        int(one[2] + (other[2] - one[2]) * part),
    )


def shade(colour: Colour, amount: Number) -> Colour:
    """Return the colour lighter (amount up to 1) or darker (down to -1)."""
    return mix(colour, (255, 255, 255) if amount > 0 else (0, 0, 0), abs(amount))


def polar(radius: Number, angle: Number, at: Point = (0.0, 0.0)) -> Point:
    """Return the point at a distance from another, in the direction of an angle in radians."""
    return at[0] + radius * math.cos(angle), at[1] + radius * math.sin(angle)


def ring(n: int, radius: Number, *, turn: Number = 0.0, at: Point = (0.0, 0.0)) -> list[Point]:
    """Return the corners of a regular polygon."""
    return [polar(radius, turn + 2 * math.pi * i / n, at) for i in range(n)]


def placed(
    points: Iterable[Point],
    at: Point = (0.0, 0.0),
    *,
    turn: Number = 0.0,
    scale: tuple[Number, Number] = (1.0, 1.0),
) -> list[Point]:
    """Return the points scaled, then turned (radians, clockwise as y points down), then moved."""
    (x, y), (sx, sy) = at, scale
    c, s = math.cos(turn), math.sin(turn)
    a, b, e, f = sx * c, -sy * s, sx * s, sy * c
    return [(x + a * u + b * v, y + e * u + f * v) for u, v in points]


_CIRCLE = ring(28, 1)
_ROUND_END = [polar(1, math.pi * i / 6) for i in range(1, 6)]


class Pen:
    """Records polygons, bottom first, in units of its own; a colour of None cuts a hole.

    ``light`` is the side that the light comes from: -1 left, 1 right.
    """

    def __init__(self, light: Number = -1.0) -> None:
        self.light = light
        self.shapes: list[tuple[list[Point], Colour | None]] = []

    def polygon(self, points: Iterable[Point], colour: Colour | None) -> None:
        """Fill a polygon."""
        self.shapes.append((list(points), colour))

    def ellipse(
        self,
        x: Number,
        y: Number,
        rx: Number,
        ry: Number | None = None,
        *,
        colour: Colour | None,
        angle: Number = 0.0,
    ) -> None:
        """Fill an ellipse (a circle without ``ry``), turned by ``angle`` degrees."""
        scale = (rx, rx if ry is None else ry)
        self.polygon(placed(_CIRCLE, (x, y), turn=math.radians(angle), scale=scale), colour)

    def rectangle(
        self,
        x0: Number,
        y0: Number,
        x1: Number,
        y1: Number,
        colour: Colour | None,
        cut: Number = 0.0,
    ) -> None:
        """Fill a rectangle, its corners cut by ``cut``."""
        if not cut:
            self.polygon([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], colour)
            return
        m = cut * 0.3
        corners = [(x0, y0 + cut), (x0 + m, y0 + m), (x0 + cut, y0)]
        corners += [(x1 - cut, y0), (x1 - m, y0 + m), (x1, y0 + cut)]
        corners += [(x1, y1 - cut), (x1 - m, y1 - m), (x1 - cut, y1)]
        corners += [(x0 + cut, y1), (x0 + m, y1 - m), (x0, y1 - cut)]
        self.polygon(corners, colour)

    def limb(
        self,
        points: Sequence[Point],
        width: Number,
        colour: Colour | None,
        end: Number | None = None,
        *,
        smooth: bool = False,
    ) -> None:
        """Fill a stroke along the points, from ``width`` to ``end`` wide, its ends round."""
        path = curve(points) if smooth else points
        end = width if end is None else end
        left: list[Point] = []
        right: list[Point] = []
        last = len(path) - 1
        ux, uy = 1.0, 0.0
        start_direction = (ux, uy)
        for i, (x, y) in enumerate(path):
            before, after = path[max(i - 1, 0)], path[min(i + 1, last)]
            dx, dy = after[0] - before[0], after[1] - before[1]
            length = math.hypot(dx, dy)
            if length:
                ux, uy = dx / length, dy / length
            if i == 0:
                start_direction = (ux, uy)
            half = (width + (end - width) * i / last) / 2
            left.append((x + uy * half, y - ux * half))
            right.append((x - uy * half, y + ux * half))
        r = end / 2
        (x, y) = path[last]
        tip = [(x + uy * r * c + ux * r * s, y - ux * r * c + uy * r * s) for c, s in _ROUND_END]
        r = width / 2
        (x, y), (ux, uy) = path[0], start_direction
        tail = [(x - uy * r * c - ux * r * s, y + ux * r * c - uy * r * s) for c, s in _ROUND_END]
        self.polygon([*left, *tip, *reversed(right), *tail], colour)

    def turned(
        self, profile: Sequence[tuple[Number, Number]], colour: Colour, contrast: Number = 0.25
    ) -> None:
        """Fill a shaded body of revolution about x = 0: (radius, y) from top to bottom."""
        self.band(profile, -1, 1, colour)
        lit, dark = shade(colour, contrast), shade(colour, -contrast)
        side = self.light
        self.band(profile, -side, -0.45 * side, dark)
        self.band(profile, 0.3 * side, 0.68 * side, lit)

    def band(
        self, profile: Sequence[tuple[Number, Number]], start: Number, stop: Number, colour: Colour
    ) -> None:
        """Fill the part of a body of revolution from ``start`` to ``stop`` of its half-width."""
        one = [(start * radius, y) for radius, y in profile]
        self.polygon(one + [(stop * radius, y) for radius, y in reversed(profile)], colour)

    def ball(
        self, x: Number, y: Number, rx: Number, ry: Number, colour: Colour, contrast: Number = 0.2
    ) -> None:
        """Fill a shaded ellipsoid."""
        self.ellipse(x, y, rx, ry, colour=shade(colour, -contrast))
        self.ellipse(x + 0.12 * rx * self.light, y - 0.1 * ry, 0.86 * rx, 0.87 * ry, colour=colour)


def curve(points: Sequence[Point], steps: int = 5) -> list[Point]:
    """Return a smooth line through the points (Catmull and Rom's spline)."""
    padded = [points[0], *points, points[-1]]
    line: list[Point] = []
    for p0, p1, p2, p3 in zip(padded, padded[1:], padded[2:], padded[3:], strict=False):
        for i in range(steps):
            t = i / steps
            a, b = -t + 2 * t * t - t**3, 2 - 5 * t * t + 3 * t**3
            c, d = t + 4 * t * t - 3 * t**3, -t * t + t**3
            line.append(
                (
                    (a * p0[0] + b * p1[0] + c * p2[0] + d * p3[0]) / 2,
                    (a * p0[1] + b * p1[1] + c * p2[1] + d * p3[1]) / 2,
                )
            )
    line.append(points[-1])
    return line


def closed_curve(points: Sequence[Point], steps: int = 4) -> list[Point]:
    """Return a smooth closed line through the points."""
    extended = [points[-1], *points, points[0], points[1]]
    return curve(extended, steps)[steps : -steps - 1]
