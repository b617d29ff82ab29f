"""The rooms that objects stand in, drawn in a world of 160 by 128 units."""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

from transformer_lib.datasets.scenes._pen import Colour, Dice, Number, Pen, curve, shade

WIDTH, HEIGHT = 160.0, 128.0


class Room(NamedTuple):
    """A way to draw a background; train and valid never show a held-out one."""

    draw: Callable[[Pen, Dice, Number], None]
    held_out: bool


ROOMS: list[Room] = []


def shown(held_out: bool, split: str) -> bool:
    """Return whether a split shows families and rooms that are held out, or those that are not."""
    return split == "test" or held_out == (split == "unfamiliar")


_Draw = Callable[[Pen, Dice, Number], None]


def _room(*, held_out: bool = False) -> Callable[[_Draw], _Draw]:
    def register(draw: _Draw) -> _Draw:
        ROOMS.append(Room(draw, held_out))
        return draw

    return register


def _wall_colour(d: Dice) -> Colour:
    return d.colour(saturation=(0.02, 0.4), value=(0.5, 0.97))


def _gradient(p: Pen, one: Colour, y0: Number, y1: Number, amount: Number, n: int = 8) -> None:
    for i in range(n):
        low, high = y0 + (y1 - y0) * i / n, y0 + (y1 - y0) * (i + 1) / n
        p.rectangle(0, low, WIDTH, high, shade(one, amount * (2 * i / (n - 1) - 1)))


def _skirting(p: Pen, d: Dice, floor: Number) -> None:
    if d.chance(0.6):
        p.rectangle(
            0, floor - d.between(3, 7), WIDTH, floor, d.colour(saturation=(0, 0.2), value=(0.6, 1))
        )


def _planks(p: Pen, d: Dice, floor: Number) -> None:
    wood = d.colour((0.05, 0.11), (0.2, 0.65), (0.35, 0.85))
    p.rectangle(0, floor, WIDTH, HEIGHT, wood)
    n = d.integer(7, 11)
    for i in range(-n, n + 1):
        x, far = 80 + i * 160 / n * 1.6, 80 + i * 160 / n
        p.polygon(
            [(far, floor), (far + 0.5, floor), (x + 0.9, HEIGHT), (x, HEIGHT)], shade(wood, -0.25)
        )


def _tiles(p: Pen, d: Dice, floor: Number, *, checked: bool = False) -> None:
    one = d.colour(saturation=(0, 0.3), value=(0.55, 0.95))
    p.rectangle(0, floor, WIDTH, HEIGHT, one)
    other = shade(one, -0.3)
    rows, columns = 4, 9
    edges = [floor + (HEIGHT - floor) * (i / rows) ** 1.5 for i in range(rows + 1)]

    def x(i: int, y: Number) -> Number:
        return 80 + (i - columns / 2) * 20 * (1 + 0.7 * (y - floor) / (HEIGHT - floor))

    if checked:
        for r, (y0, y1) in enumerate(itertools.pairwise(edges)):
            for i in range(r % 2, columns, 2):
                p.polygon(
                    [(x(i, y0), y0), (x(i + 1, y0), y0), (x(i + 1, y1), y1), (x(i, y1), y1)], other
                )
        return
    for y in edges[1:-1]:
        p.rectangle(0, y, WIDTH, y + 0.8, other)
    for i in range(columns + 1):
        a, b = x(i, floor), x(i, HEIGHT)
        p.polygon([(a, floor), (a + 0.6, floor), (b + 1, HEIGHT), (b, HEIGHT)], other)


def _carpet(p: Pen, d: Dice, floor: Number) -> None:
    colour = d.colour(saturation=(0.05, 0.5), value=(0.3, 0.85))
    _gradient(p, colour, floor, HEIGHT, d.between(-0.15, 0.15), 5)
    for _ in range(40):
        x, y = d.between(0, WIDTH), d.between(floor, HEIGHT)
        p.rectangle(x, y, x + 1.5, y + 0.8, shade(colour, d.between(-0.2, 0.2)))


def _rug(p: Pen, d: Dice, floor: Number) -> None:
    colour = d.colour()
    x, y = d.between(30, 130), floor + (HEIGHT - floor) * d.between(0.4, 0.8)
    rx, ry = d.between(35, 70), d.between(8, 18)
    if d.chance(0.5):
        for k, c in ((1, shade(colour, -0.2)), (0.85, colour), (0.5, shade(colour, 0.25))):
            p.ellipse(x, y, rx * k, ry * k, colour=c)
    else:
        for k, c in ((1, shade(colour, -0.25)), (0.85, colour), (0.5, shade(colour, 0.2))):
            p.polygon(
                [
                    (x - rx * k, y - ry * k),
                    (x + rx * k, y - ry * k),
                    (x + 1.2 * rx * k, y + ry * k),
                    (x - 1.2 * rx * k, y + ry * k),
                ],
                c,
            )


def _floor(p: Pen, d: Dice, floor: Number) -> None:
    d.pick([_planks, _planks, _tiles, _carpet])(p, d, floor)


# What hangs and stands about, and is no object


def _picture(p: Pen, d: Dice, floor: Number) -> None:
    w, h = d.between(10, 24), d.between(10, 20)
    x, y = d.between(5, 155 - w), d.between(4, max(floor - h - 8, 5))
    p.rectangle(x, y, x + w, y + h, d.colour(value=(0.1, 0.9)))
    sky = d.colour(saturation=(0.1, 0.6), value=(0.6, 1))
    p.rectangle(x + 2, y + 2, x + w - 2, y + h - 2, sky)
    if d.chance(0.6):
        m = d.between(0.3, 0.7) * w
        p.polygon([(x + 2, y + h - 2), (x + m, y + 0.4 * h), (x + w - 2, y + h - 2)], d.colour())
    else:
        for _ in range(3):
            q = d.between(2, 4)
            p.rectangle(
                x + d.between(2, w - 7), y + d.between(2, h - 7), x + w - 3, y + h - q, d.colour()
            )


def _window(p: Pen, d: Dice, floor: Number) -> None:
    w, h = d.between(30, 50), min(d.between(28, 46), floor - 10)
    x, y = d.between(4, 150 - w), d.between(4, 8)
    frame = d.colour(saturation=(0, 0.3), value=(0.7, 1))
    sky = d.colour((0.5, 0.68), (0.1, 0.55), (0.3, 1))
    p.rectangle(x, y, x + w, y + h, frame)
    p.rectangle(x + 2, y + 2, x + w - 2, y + h - 2, sky)
    p.polygon(
        [
            (x + 2, y + h - 2),
            (x + 2, y + 0.7 * h),
            (x + 0.5 * w, y + 0.6 * h),
            (x + w - 2, y + 0.75 * h),
            (x + w - 2, y + h - 2),
        ],
        d.colour((0.2, 0.4), (0.2, 0.6), (0.3, 0.7)),
    )
    p.rectangle(x + w / 2 - 1, y, x + w / 2 + 1, y + h, frame)
    p.rectangle(x, y + h / 2 - 1, x + w, y + h / 2 + 1, frame)
    if d.chance(0.6):
        cloth = d.colour()
        for s in (x - 5, x + w - 4):
            p.rectangle(s, y - 2, s + 9, y + h + 8, cloth)
            p.rectangle(s + 3, y - 2, s + 5, y + h + 8, shade(cloth, -0.2))


def _shelf(p: Pen, d: Dice, floor: Number) -> None:
    w, x, y = d.between(24, 50), d.between(5, 105), d.between(18, max(floor - 20, 19))
    at = x + 1
    while at < x + w - 5:
        thick, h = d.between(2, 4.5), d.between(8, 13)
        p.rectangle(at, y - h, at + thick, y, d.colour())
        at += thick + (d.between(0, 4) if d.chance(0.3) else 0.2)
    p.rectangle(x - 1, y, x + w, y + 2.5, d.wood())


def _lamp(p: Pen, d: Dice, floor: Number) -> None:
    x, y = d.between(8, 152), d.between(24, max(floor - 24, 26))
    bottom = floor + d.between(4, 16)
    metal = d.colour(saturation=(0, 0.4), value=(0.2, 0.8))
    p.rectangle(x - 0.8, y, x + 0.8, bottom, metal)
    p.ellipse(x, bottom, 8, 2, colour=metal)
    cloth = d.colour(saturation=(0.05, 0.6), value=(0.75, 1))
    p.polygon([(x - 5, y - 12), (x + 5, y - 12), (x + 10, y + 3), (x - 10, y + 3)], cloth)


def _mirror(p: Pen, d: Dice, floor: Number) -> None:
    x, y, r = d.between(15, 145), d.between(16, max(floor - 22, 18)), d.between(7, 14)
    p.ellipse(x, y, r, r * d.pick([1, 1.4]), colour=d.colour())
    p.ellipse(x, y, r * 0.8, r * 0.8, colour=d.colour((0.5, 0.6), (0.02, 0.15), (0.75, 0.95)))


def _sofa(p: Pen, d: Dice, floor: Number) -> None:
    x, y, w = d.between(30, 130), floor + d.between(4, 18), d.between(34, 55)
    cloth = d.colour(saturation=(0.05, 0.6), value=(0.25, 0.85))
    p.rectangle(x - w, y - 32, x + w, y, shade(cloth, -0.12), cut=6)
    p.rectangle(x - w, y - 14, x + w, y + 6, cloth, cut=3)
    for s in (-1, 1):
        p.rectangle(x + s * w - 6, y - 22, x + s * w + 6, y + 7, shade(cloth, -0.25), cut=4)
    p.rectangle(x - 0.5, y - 30, x + 0.5, y + 4, shade(cloth, -0.35))
    if d.chance(0.6):
        q = x + d.between(-0.7, 0.7) * w
        p.polygon([(q - 8, y - 24), (q + 8, y - 22), (q + 7, y - 9), (q - 9, y - 11)], d.colour())


def _cabinet(p: Pen, d: Dice, floor: Number) -> None:
    x, w, h = d.between(0, 120), d.between(28, 50), d.between(20, 44)
    y = floor + d.between(2, 10)
    wood = d.wood()
    p.rectangle(x, y - h, x + w, y, wood)
    n = d.integer(2, 3)
    for i in range(n):
        a, b = y - h + 2 + i * (h - 3) / n, y - h + (i + 1) * (h - 3) / n
        p.rectangle(x + 2, a, x + w - 2, b, shade(wood, -0.15))
        p.ellipse(x + w / 2, (a + b) / 2, 1.5, colour=shade(wood, -0.6))


def _ball_and_boxes(p: Pen, d: Dice, floor: Number) -> None:
    for _ in range(d.integer(1, 4)):
        x, y, r = d.between(0, WIDTH), d.between(floor, HEIGHT), d.between(3, 11)
        if d.chance(0.4):
            p.ball(x, y - r, r, r, d.colour())
        else:
            colour = d.colour()
            p.rectangle(x - r, y - 1.4 * r, x + r, y, colour)
            p.polygon(
                [
                    (x - r, y - 1.4 * r),
                    (x + r, y - 1.4 * r),
                    (x + 1.3 * r, y - 1.9 * r),
                    (x - 0.7 * r, y - 1.9 * r),
                ],
                shade(colour, 0.2),
            )


_WALL_THINGS = (_picture, _picture, _window, _shelf, _mirror)
_FLOOR_THINGS = (_lamp, _sofa, _cabinet, _ball_and_boxes)


def clutter(p: Pen, d: Dice, floor: Number) -> None:
    """Draw things of a room that are no objects."""
    for _ in range(d.integer(0, 3)):
        d.pick(_WALL_THINGS)(p, d, floor)
    if d.chance(0.4):
        _rug(p, d, floor)
    for _ in range(d.integer(0, 2)):
        d.pick(_FLOOR_THINGS)(p, d, floor)


@_room()
def _painted(p: Pen, d: Dice, floor: Number) -> None:
    p.rectangle(0, 0, WIDTH, floor, _wall_colour(d))
    _skirting(p, d, floor)
    _floor(p, d, floor)


@_room()
def _graded(p: Pen, d: Dice, floor: Number) -> None:
    _gradient(p, _wall_colour(d), 0, floor, d.between(-0.25, 0.25), 12)
    _floor(p, d, floor)


@_room()
def _striped(p: Pen, d: Dice, floor: Number) -> None:
    wall = _wall_colour(d)
    p.rectangle(0, 0, WIDTH, floor, wall)
    step = d.between(6, 16)
    other = shade(wall, d.pick([-0.2, -0.1, 0.25])) if d.chance(0.7) else _wall_colour(d)
    for i in range(int(WIDTH / step) + 1):
        p.rectangle(i * step, 0, i * step + step * 0.5, floor, other)
    _skirting(p, d, floor)
    _floor(p, d, floor)


@_room()
def _dotted(p: Pen, d: Dice, floor: Number) -> None:
    wall = _wall_colour(d)
    p.rectangle(0, 0, WIDTH, floor, wall)
    ink = shade(wall, d.pick([-0.2, 0.35]))
    step, r = d.between(10, 16), d.between(1, 2.6)
    for j in range(int(floor / step) + 1):
        for i in range(int(WIDTH / step) + 1):
            x, y = (i + (j % 2) / 2) * step, (j + 0.3) * step
            p.polygon([(x - r, y), (x, y - r), (x + r, y), (x, y + r)], ink)
    p.rectangle(0, floor - 3, WIDTH, floor, shade(wall, 0.4))
    _floor(p, d, floor)


@_room()
def _panelled(p: Pen, d: Dice, floor: Number) -> None:
    wall, wood = _wall_colour(d), d.colour(saturation=(0, 0.5), value=(0.4, 0.95))
    p.rectangle(0, 0, WIDTH, floor, wall)
    high = floor - d.between(18, 34)
    p.rectangle(0, high, WIDTH, floor, wood)
    p.rectangle(0, high, WIDTH, high + 2, shade(wood, 0.3))
    step = d.between(16, 28)
    for i in range(int(WIDTH / step) + 1):
        p.rectangle(i * step + 2, high + 5, (i + 1) * step - 2, floor - 4, shade(wood, -0.14))
    _floor(p, d, floor)


@_room()
def _papered_flowers(p: Pen, d: Dice, floor: Number) -> None:
    wall = _wall_colour(d)
    p.rectangle(0, 0, WIDTH, floor, wall)
    petal, step = d.colour(saturation=(0.2, 0.6), value=(0.5, 0.95)), d.between(18, 26)
    for j in range(int(floor / step) + 1):
        for i in range(int(WIDTH / step) + 1):
            x, y = (i + (j % 2) / 2) * step, (j + 0.4) * step
            for a, b in ((-2.2, 0), (2.2, 0), (0, -2.2), (0, 2.2)):
                p.rectangle(x + a - 1.4, y + b - 1.4, x + a + 1.4, y + b + 1.4, petal)
    _floor(p, d, floor)


@_room()
def _corner(p: Pen, d: Dice, floor: Number) -> None:
    wall = _wall_colour(d)
    x = d.between(30, 130)
    p.rectangle(0, 0, WIDTH, floor, wall)
    _floor(p, d, floor)
    side = shade(wall, -0.2)
    if d.chance(0.5):
        p.polygon([(0, 0), (x * 0.6, 0), (x * 0.6, floor), (0, floor + 24)], side)
    else:
        x = 80 + x / 2
        p.polygon([(WIDTH, 0), (x, 0), (x, floor), (WIDTH, floor + 24)], side)


@_room()
def _patches(p: Pen, d: Dice, floor: Number) -> None:
    p.rectangle(0, 0, WIDTH, HEIGHT, _wall_colour(d))
    for _ in range(d.integer(10, 20)):
        x, y, r = d.between(0, WIDTH), d.between(0, HEIGHT), d.between(5, 30)
        n, turn = d.integer(3, 6), d.between(0, 6.28)
        p.polygon(
            [
                (x + r * math.cos(turn + 6.283 * i / n), y + r * math.sin(turn + 6.283 * i / n))
                for i in range(n)
            ],
            d.colour(saturation=(0.05, 0.6)),
        )


@_room(held_out=True)
def _bricks(p: Pen, d: Dice, floor: Number) -> None:
    brick = d.colour((0, 0.08), (0.1, 0.6), (0.4, 0.85))
    p.rectangle(0, 0, WIDTH, floor, shade(brick, d.pick([0.4, -0.35])))
    j, y = 0, 0.0
    while y < floor - 1:
        for i in range(-1, 9):
            x = i * 20 + (j % 2) * 10
            p.rectangle(x, y, x + 19, min(y + 7, floor), shade(brick, d.between(-0.12, 0.12)))
        j, y = j + 1, y + 8
    _tiles(p, d, floor, checked=True)


@_room(held_out=True)
def _diamonds(p: Pen, d: Dice, floor: Number) -> None:
    wall = _wall_colour(d)
    p.rectangle(0, 0, WIDTH, floor, wall)
    ink, step = shade(wall, d.pick([-0.22, 0.3])), d.between(14, 22)
    for j in range(int(floor / step) + 1):
        for i in range(int(WIDTH / step) + 1):
            x, y = i * step, j * step
            p.polygon(
                [
                    (x, y - step * 0.5),
                    (x + step * 0.5, y),
                    (x, y + step * 0.5),
                    (x - step * 0.5, y),
                ],
                ink,
            )
    wood = d.wood()
    p.rectangle(0, floor, WIDTH, HEIGHT, wood)
    for j in range(5):
        for i in range(11):
            x, y = i * 16 + (j % 2) * 8, floor + j * 12
            p.polygon([(x - 8, y), (x, y - 6), (x + 2, y - 5), (x - 6, y + 1)], shade(wood, -0.2))


@_room(held_out=True)
def _wavy_paper(p: Pen, d: Dice, floor: Number) -> None:
    wall = _wall_colour(d)
    p.rectangle(0, 0, WIDTH, floor, wall)
    ink, step = shade(wall, d.pick([-0.18, 0.3])), d.between(12, 20)
    for i in range(int(WIDTH / step) + 2):
        x = i * step
        p.limb(curve([(x + (3 if k % 2 else -3), k * floor / 6) for k in range(7)], 3), 3, ink)
    _carpet(p, d, floor)
