"""Families of clocks, potted plants, dining tables and chairs."""

import math

from transformer_lib.datasets.scenes._family import Families
from transformer_lib.datasets.scenes._pen import (
    Colour,
    Dice,
    Number,
    Pen,
    Point,
    curve,
    placed,
    polar,
    ring,
    shade,
)

FURNITURE = Families()


# Clock


def _dial(p: Pen, d: Dice, r: Number) -> None:
    """A face with marks and hands, about (0, 0)."""
    dark = d.chance(0.2)
    face = d.colour(saturation=(0, 0.2), value=(0.1, 0.25) if dark else (0.88, 1))
    ink = (240, 240, 230) if dark else d.colour(saturation=(0, 0.6), value=(0, 0.22))
    p.ellipse(0, 0, r, colour=face)
    style = d.pick(["bars", "bars", "dots", "quarters"])
    for i in range(12):
        if style == "quarters" and i % 3:
            continue
        turn = math.pi * i / 6
        if style == "dots":
            p.polygon(ring(4, 0.07 * r, at=polar(0.82 * r, turn)), ink)
        else:
            w, inner = (0.055, 0.66) if i % 3 == 0 else (0.035, 0.76)
            bar = [(inner, w), (0.92, w), (0.92, -w), (inner, -w)]
            p.polygon(placed(bar, turn=turn, scale=(r, r)), ink)
    minute = d.between(0, 1)
    hour = (d.integer(0, 11) + minute) / 12
    thick = d.between(0.8, 1.2)
    hands = ink if d.chance(0.7) else d.colour(saturation=(0.7, 1), value=(0.3, 0.6))
    for time, length, width in ((hour, 0.5, 0.14), (minute, 0.76, 0.09)):
        w = width * thick
        hand = [(-0.12, w), (length, 0.4 * w), (length, -0.4 * w), (-0.12, -w)]
        p.polygon(placed(hand, turn=2 * math.pi * time - math.pi / 2, scale=(r, r)), hands)
    if d.chance(0.4):
        p.limb([(0, 0), polar(0.8 * r, d.between(0, 6.28))], 0.04 * r, (200, 30, 30))
    p.ellipse(0, 0, 0.08 * r, colour=hands)


@FURNITURE.add("clock")
def _round_wall(p: Pen, d: Dice) -> None:
    rim = d.colour(value=(0.15, 0.9))
    p.ball(0, 0, 50, 50, rim)
    if d.chance(0.5):
        p.ellipse(0, 0, 46, colour=shade(rim, -0.35))
    _dial(p, d, d.between(38, 44))


@FURNITURE.add("clock")
def _square_wall(p: Pen, d: Dice) -> None:
    rim = d.colour(value=(0.15, 0.9))
    h = d.between(46, 56)
    p.rectangle(-50, -h, 50, h, shade(rim, -0.3), cut=d.between(0, 14))
    p.rectangle(-46, -h + 4, 46, h - 4, rim, cut=d.between(0, 12))
    _dial(p, d, d.between(37, 42))


@FURNITURE.add("clock")
def _alarm(p: Pen, d: Dice) -> None:
    body, metal = d.colour(), d.colour(saturation=(0, 0.5), value=(0.5, 0.9))
    for side in (-1, 1):
        p.limb([(side * 20, 30), (side * 36, 58)], 9, shade(body, -0.3))
        p.limb([(side * 18, -30), (side * 30, -50)], 6, shade(metal, -0.4))
        p.ellipse(side * 31, -46, 20, 13, colour=metal, angle=side * 38)
        p.ellipse(side * 27, -49, 9, 4, colour=shade(metal, 0.4), angle=side * 38)
    p.limb([(0, -40), (0, -60)], 5, shade(metal, -0.5))
    p.ellipse(0, -62, 7, 5, colour=shade(metal, -0.2))
    p.ball(0, 0, 46, 46, body)
    _dial(p, d, d.between(35, 39))


@FURNITURE.add("clock")
def _mantel(p: Pen, d: Dice) -> None:
    wood = d.wood()
    half = d.between(46, 58)
    arch = [polar(half, -math.pi * i / 14, at=(0, -2)) for i in range(15)]
    p.polygon([*arch, (-half, 54), (half, 54)], wood)
    inner = [(0.86 * x, 0.86 * y) for x, y in arch]
    p.polygon([*inner, (-0.86 * half, 46), (0.86 * half, 46)], shade(wood, 0.15))
    p.rectangle(-half - 9, 50, half + 9, 64, shade(wood, -0.3))
    _dial(p, d, d.between(34, 39))


@FURNITURE.add("clock")
def _grandfather(p: Pen, d: Dice) -> None:
    wood = d.wood()
    dark = shade(wood, -0.35)
    p.polygon([(-44, -40), (-44, -50), (0, -72), (44, -50), (44, -40)], dark)
    p.rectangle(-40, -46, 40, 42, wood)
    low = d.between(120, 160)
    p.rectangle(-30, 40, 30, low, shade(wood, -0.15))
    p.rectangle(-20, 50, 20, low - 10, shade(wood, -0.55))
    sway = d.between(-8, 8)
    p.limb([(0, 50), (sway, low - 30)], 4, (220, 190, 90))
    p.ellipse(sway, low - 28, 11, colour=(235, 205, 100))
    p.rectangle(-42, low - 2, 42, low + 22, wood)
    p.rectangle(-46, low + 16, 46, low + 24, dark)
    _dial(p, d, 33)


@FURNITURE.add("clock", held_out=True)
def _octagon(p: Pen, d: Dice) -> None:
    rim = d.colour(value=(0.2, 0.9)) if d.chance(0.5) else d.wood()
    sides = d.pick([6, 8])
    for r, colour in ((54, shade(rim, -0.3)), (49, rim)):
        p.polygon(ring(sides, r, turn=math.pi / sides), colour)
    if d.chance(0.5):
        p.limb([(0, 46), (d.between(-8, 8), 78)], 4, shade(rim, -0.4))
        p.ellipse(0, 80, 10, colour=(225, 195, 90))
    _dial(p, d, d.between(34, 39))


@FURNITURE.add("clock", held_out=True)
def _sunburst(p: Pen, d: Dice) -> None:
    ray = d.colour((0.08, 0.15), (0.4, 0.8), (0.6, 0.95)) if d.chance(0.6) else d.colour()
    n = d.pick([12, 16])
    for i in range(n):
        spike = [(30, 7), (66 if i % 2 else 56, 0), (30, -7)]
        p.polygon(placed(spike, turn=2 * math.pi * i / n), ray)
    p.ball(0, 0, 42, 42, shade(ray, -0.2))
    _dial(p, d, d.between(34, 38))


# Potted plant


def _pot(p: Pen, d: Dice) -> None:
    """A pot with its rim at y = 0."""
    colour = d.colour((0.02, 0.07), (0.5, 0.8), (0.55, 0.85)) if d.chance(0.5) else d.colour()
    h = d.between(36, 50)
    shape = d.pick(["taper", "taper", "round", "box"])
    if shape == "taper":
        p.turned([(28, 0), (19, h)], colour)
        p.turned([(32, -5), (31, 8)], shade(colour, 0.08))
    elif shape == "round":
        p.turned([(25, 0), (33, h * 0.3), (34, h * 0.55), (27, h * 0.88), (19, h)], colour)
        p.turned([(27, -3), (27, 5)], shade(colour, -0.15))
    else:
        p.turned([(29, 0), (27, h)], colour, 0.15)
        stripe = [(-29, h * 0.35), (29, h * 0.35), (28, h * 0.5), (-28, h * 0.5)]
        p.polygon(stripe, shade(colour, 0.4))
    p.ellipse(0, -3, 26, 4, colour=(70, 48, 34))


_LEAF = [(0, 0), (0.25, 0.8), (0.5, 1), (0.8, 0.6), (1, 0), (0.8, -0.6), (0.5, -1), (0.25, -0.8)]


def _leaf(p: Pen, at: Point, angle: Number, length: Number, width: Number, colour: Colour) -> None:
    """A leaf with its stalk at a point; ``angle`` in degrees, 0 to the right, 90 up."""
    leaf = placed(_LEAF, at, turn=-math.radians(angle), scale=(length, width))
    p.polygon(leaf, colour)
    p.polygon(leaf[:5], shade(colour, 0.14))


def _green(d: Dice) -> Colour:
    return d.colour((0.24, 0.42), (0.45, 0.85), (0.3, 0.7))


@FURNITURE.add("potted plant")
def _blades(p: Pen, d: Dice) -> None:
    green = _green(d)
    for _ in range(d.integer(6, 9)):
        x = d.between(-20, 20)
        angle = 90 - x * d.between(0.8, 1.6)
        long, wide = d.between(60, 100), d.between(6, 9)
        _leaf(p, (x, 2), angle, long, wide, shade(green, d.between(-0.3, 0.1)))
    _pot(p, d)


@FURNITURE.add("potted plant")
def _bush(p: Pen, d: Dice) -> None:
    green = _green(d)
    r = d.between(34, 46)
    middle = (0, -18 - 0.75 * r)
    p.limb([(0, 0), (0, -20)], 8, (95, 70, 45))
    for x, y in ring(9, 1):
        p.ellipse(0.62 * r * x, middle[1] + 0.6 * r * y, 0.48 * r, colour=shade(green, -0.25))
    p.ellipse(*middle, 0.8 * r, colour=green)
    for _ in range(14):
        a, q = d.between(0, 6.28), d.between(0.1, 0.85) * r
        angle = d.between(0, 360)
        _leaf(p, polar(q, a, middle), angle, 15, 5, shade(green, d.between(-0.3, 0.25)))
    _pot(p, d)


@FURNITURE.add("potted plant")
def _arching(p: Pen, d: Dice) -> None:
    green = _green(d)
    n = d.integer(8, 12)
    reach, high = d.between(40, 62), d.between(50, 76)
    for i in range(n):
        t = 2 * (i + 0.5) / n - 1
        x = t * reach
        top = -high * (1.25 - 0.4 * abs(t)) * d.between(0.85, 1.1)
        path = curve([(t * 8, 0.0), (x * 0.55, top), (x * 1.15, top * 0.62 + 8)], 4)
        p.limb(path, 11, shade(green, d.between(-0.3, 0.15)), 2)
    _pot(p, d)


@FURNITURE.add("potted plant")
def _broad_leaves(p: Pen, d: Dice) -> None:
    green = _green(d)
    n = d.integer(6, 8)
    for i in range(n):
        angle = 90 - 75 * (2 * (i + 0.5) / n - 1) + d.between(-8, 8)
        long, turn = d.between(30, 50), -math.radians(angle)
        p.limb([(0, 0), polar(long, turn, (0, -6))], 4, shade(green, -0.4), 3)
        at = polar(0.8 * long, turn, (0, -6))
        angle += d.between(-20, 20)
        long, wide = d.between(34, 46), d.between(12, 17)
        _leaf(p, at, angle, long, wide, shade(green, d.between(-0.25, 0.12)))
    _pot(p, d)


@FURNITURE.add("potted plant")
def _little_tree(p: Pen, d: Dice) -> None:
    green = _green(d)
    h = d.between(34, 60)
    p.limb([(0, 0), (d.between(-6, 6), -h / 2), (0, -h)], 6, (110, 80, 50), 4)
    for i in range(16):
        angle = 360 * i / 16 + d.between(-10, 10)
        long, wide = d.between(26, 42), d.between(6, 9)
        _leaf(p, (0, -h - 8), angle, long, wide, shade(green, d.between(-0.3, 0.2)))
    _pot(p, d)


@FURNITURE.add("potted plant", held_out=True)
def _trailing(p: Pen, d: Dice) -> None:
    green = _green(d)
    for i in range(10):
        angle = 20 + 14 * i + d.between(-6, 6)
        long, wide = d.between(34, 56), d.between(9, 12)
        _leaf(p, (0, -2), angle, long, wide, shade(green, d.between(-0.3, 0.1)))
    _pot(p, d)
    for s in (-1, 1):
        low = d.between(22, 44)
        p.limb([(s * 20, -6), (s * 36, 2), (s * 39, low)], 3, shade(green, -0.3), smooth=True)
        for y in (4, 14, 24, 34):
            if y < low + 4:
                angle = -90 + s * d.between(20, 60)
                _leaf(p, (s * 38, y), angle, 18, 7, shade(green, d.between(-0.15, 0.2)))


@FURNITURE.add("potted plant", held_out=True)
def _flowering(p: Pen, d: Dice) -> None:
    green, petal = _green(d), d.colour((0.75, 1.2), (0.4, 0.9), (0.75, 1))
    for i in range(8):
        angle = 12 + 22 * i + d.between(-6, 6)
        long, wide = d.between(36, 52), d.between(9, 12)
        _leaf(p, (0, 0), angle, long, wide, shade(green, d.between(-0.3, 0.1)))
    for i in range(d.integer(3, 5)):
        x, y = -30 + 17 * i + d.between(-5, 5), d.between(-84, -56)
        p.limb([(x / 4, 0), (x, y)], 3, shade(green, -0.2))
        for k in range(5):
            p.ellipse(*polar(6, 1.257 * k, (x, y)), 5.5, colour=petal)
        p.ellipse(x, y, 4, colour=(245, 205, 60))
    _pot(p, d)


# Dining table


def _table_top(d: Dice) -> Colour:
    return d.wood() if d.chance(0.7) else d.colour(saturation=(0, 0.35), value=(0.5, 0.95))


@FURNITURE.add("dining table")
def _four_legs(p: Pen, d: Dice) -> None:
    top = _table_top(d)
    leg = shade(top, -0.25) if d.chance(0.7) else d.colour(saturation=(0, 0.4), value=(0.1, 0.9))
    w, h, deep = d.between(62, 84), d.between(48, 66), d.between(14, 26)
    inset, thick = d.between(8, 14), d.between(6, 10)
    for x in (-w + inset + 6, w - inset - 6):
        p.rectangle(x - thick * 0.4, -deep + 4, x + thick * 0.4, h - deep * 0.7, shade(leg, -0.4))
    p.rectangle(-w + inset, 4, w - inset, 13, shade(leg, -0.3))
    for x in (-w + 8, w - 8):
        a, b = thick * 0.6, thick * 0.4
        p.polygon([(x - a, 4), (x + a, 4), (x + b, h), (x - b, h)], leg)
    p.polygon([(-w, 0), (w, 0), (w - inset, -deep), (-w + inset, -deep)], top)
    gloss = [(-w * 0.6, -2), (-w * 0.2, -2), (-w * 0.1, -deep + 2), (-w * 0.5, -deep + 2)]
    p.polygon(gloss, shade(top, 0.12))
    p.rectangle(-w, 0, w, 6, shade(top, -0.3))


@FURNITURE.add("dining table")
def _pedestal(p: Pen, d: Dice) -> None:
    top = _table_top(d)
    w, h, deep = d.between(58, 74), d.between(54, 68), d.between(12, 20)
    stem = shade(top, -0.2)
    for s in (-1, 0, 1):
        p.limb([(0, h - 16), (s * 26, h - 4 + (s == 0) * 4)], 9, shade(stem, -0.2), 6)
    p.turned([(8, 4), (6, h * 0.3), (10, h * 0.55), (6, h * 0.75), (9, h - 8)], stem)
    p.ellipse(0, 6, w, deep, colour=shade(top, -0.35))
    p.ellipse(0, 0, w, deep, colour=top)
    p.ellipse(p.light * w * 0.2, -2, w * 0.62, deep * 0.6, colour=shade(top, 0.1))


@FURNITURE.add("dining table")
def _tablecloth(p: Pen, d: Dice) -> None:
    cloth, leg = d.colour(saturation=(0.05, 0.7), value=(0.6, 1)), d.wood()
    w, h, deep, drop = d.between(60, 80), d.between(50, 64), d.between(14, 22), d.between(16, 26)
    for x in (-w + 16, w - 16):
        p.rectangle(x - 3, 0, x + 3, h - 10, shade(leg, -0.4))
    for x in (-w + 7, w - 7):
        p.rectangle(x - 4, 0, x + 4, h, leg)
    n = 8
    hem = [(w - 2 * w * i / n, drop + (4 if i % 2 else 0)) for i in range(n + 1)]
    p.polygon([(-w, 0), (w, 0), *hem], shade(cloth, -0.18))
    if d.chance(0.5):
        for i in range(n):
            x = -w + 2 * w * (i + 0.25) / n
            p.polygon([(x, 0), (x + w / n, 0), (x + w / n, drop), (x, drop)], shade(cloth, -0.4))
    p.polygon([(-w, 0), (w, 0), (w - 12, -deep), (-w + 12, -deep)], cloth)


@FURNITURE.add("dining table")
def _trestle(p: Pen, d: Dice) -> None:
    top = _table_top(d)
    w, h, deep = d.between(64, 84), d.between(50, 64), d.between(12, 22)
    leg = shade(top, -0.25)
    for s in (-1, 1):
        x = s * (w - 22)
        p.limb([(x, 2), (x - 14, h - 3)], 7, leg)
        p.limb([(x, 2), (x + 14, h - 3)], 7, shade(leg, -0.15))
    p.rectangle(-w + 22, h * 0.5, w - 22, h * 0.5 + 6, shade(leg, -0.3))
    p.polygon([(-w, 0), (w, 0), (w - 10, -deep), (-w + 10, -deep)], top)
    for i in (1, 2, 3):
        y, half = -deep * i / 4, w - 10 * i / 4
        p.rectangle(-half, y, half, y + 1, shade(top, -0.2))
    p.rectangle(-w, 0, w, 7, shade(top, -0.3))


@FURNITURE.add("dining table", held_out=True)
def _oval(p: Pen, d: Dice) -> None:
    top = _table_top(d)
    w, h, deep = d.between(66, 82), d.between(54, 66), d.between(14, 20)
    leg = shade(top, -0.25)
    for x, y in ((-w * 0.5, h - 12), (w * 0.5, h - 12)):
        p.limb([(x * 0.9, 0), (x * 1.05, y)], 6, shade(leg, -0.35), 4)
    for x in (-w * 0.68, w * 0.68):
        p.limb([(x * 0.9, 4), (x * 1.1, h - 2)], 8, leg, 4)
    p.ellipse(0, 6, w, deep, colour=shade(top, -0.35))
    p.ellipse(0, 0, w, deep, colour=top)
    p.ellipse(p.light * w * 0.25, -2, w * 0.55, deep * 0.5, colour=shade(top, 0.12))


@FURNITURE.add("dining table", held_out=True)
def _crossed_legs(p: Pen, d: Dice) -> None:
    top = _table_top(d)
    w, h, deep = d.between(64, 80), d.between(50, 62), d.between(14, 22)
    leg = d.colour(saturation=(0, 0.4), value=(0.1, 0.6))
    for s in (-1, 1):
        x = s * (w - 22)
        p.limb([(x - 15, 4), (x + 15, h - 3)], 6, leg)
        p.limb([(x + 15, 4), (x - 15, h - 3)], 6, shade(leg, 0.12))
    p.polygon([(-w, 0), (w, 0), (w - 12, -deep), (-w + 12, -deep)], top)
    p.rectangle(-w, 0, w, 7, shade(top, -0.3))


# Chair


def _seat(
    p: Pen, seat: Colour, frame: Colour, *, leg: Number, h: Number, splay: Number = 0
) -> None:
    """A seat at y = 0 seen from the front and above, on four legs."""
    for x in (-20, 24):
        foot = (x + math.copysign(0.3 * splay, x), h - 9)
        p.limb([(x, -6), foot], leg * 0.85, shade(frame, -0.35))
    for s in (-1, 1):
        p.limb([(s * 27, 4), (s * (27 + splay), h)], leg, frame)
    p.polygon([(-32, 4), (32, 4), (26, -12), (-26, -12)], seat)
    p.rectangle(-32, 4, 32, 10, shade(seat, -0.3))


@FURNITURE.add("chair")
def _slats(p: Pen, d: Dice) -> None:
    frame = d.wood() if d.chance(0.7) else d.colour()
    seat = frame if d.chance(0.5) else d.colour()
    high, leg = d.between(62, 80), d.between(5, 8)
    for s in (-1, 1):
        p.limb([(s * 25, -6), (s * 27, -high)], leg, frame)
    n = d.integer(2, 4)
    for i in range(n):
        y = -high + 4 + i * (high - 26) / n
        p.rectangle(-26, y, 26, y + d.between(7, 11), shade(frame, -0.12))
    _seat(p, seat, frame, leg=leg, h=d.between(48, 60))


@FURNITURE.add("chair")
def _spindles(p: Pen, d: Dice) -> None:
    frame = d.wood() if d.chance(0.6) else d.colour(saturation=(0, 0.6))
    high, leg = d.between(62, 78), d.between(5, 7)
    n = d.integer(4, 6)
    for i in range(n):
        x = -24 + 48 * i / (n - 1)
        p.limb([(x * 0.85, -8), (x, -high)], 4, shade(frame, -0.1))
    p.limb(curve([(-28, -high + 2), (0, -high - 6), (28, -high + 2)], 4), 10, frame)
    _seat(p, frame, frame, leg=leg, h=d.between(48, 60), splay=d.between(2, 8))


@FURNITURE.add("chair")
def _padded(p: Pen, d: Dice) -> None:
    cloth, frame = d.colour(), d.wood()
    high = d.between(58, 74)
    for s in (-1, 1):
        p.limb([(s * 20, 0), (s * 20, -30)], 6, frame)
    p.rectangle(-27, -high, 27, -16, cloth, cut=d.between(8, 16))
    p.rectangle(-20, -high + 7, 20, -23, shade(cloth, 0.15), cut=8)
    _seat(p, cloth, frame, leg=d.between(5, 8), h=d.between(46, 56), splay=d.between(0, 5))


@FURNITURE.add("chair")
def _office(p: Pen, d: Dice) -> None:
    cloth, metal = d.colour(value=(0.15, 0.8)), d.colour(saturation=(0, 0.2), value=(0.15, 0.6))
    high = d.between(56, 72)
    p.limb([(0, 4), (0, 40)], 8, metal)
    for x, y in ((-32, 54), (-14, 58), (14, 58), (32, 54)):
        p.limb([(0, 40), (x, y - 4)], 6, metal, 5)
        p.ellipse(x, y, 4.5, colour=(25, 25, 28))
    p.limb([(0, -4), (0, -30)], 9, shade(metal, -0.3))
    p.rectangle(-26, -high, 26, -22, cloth, cut=d.between(8, 14))
    p.rectangle(-20, -high + 6, 20, -28, shade(cloth, 0.15), cut=8)
    for s in (-1, 1):
        p.limb([(s * 30, 2), (s * 34, -20), (s * 22, -22)], 5, shade(metal, -0.2))
    p.polygon([(-34, 4), (34, 4), (27, -10), (-27, -10)], shade(cloth, 0.1))
    p.rectangle(-34, 3, 34, 11, shade(cloth, -0.25), cut=3)


@FURNITURE.add("chair")
def _armchair(p: Pen, d: Dice) -> None:
    cloth, wood = d.colour(), d.wood()
    high = d.between(48, 64)
    for s in (-1, 1):
        p.limb([(s * 34, 30), (s * 36, 44)], 7, shade(wood, -0.3), 4)
    p.rectangle(-36, -high, 36, 20, shade(cloth, -0.1), cut=d.between(8, 18))
    p.rectangle(-26, -high + 8, 26, 4, shade(cloth, 0.12), cut=8)
    p.rectangle(-38, 6, 38, 34, shade(cloth, -0.3), cut=4)
    p.rectangle(-28, -2, 28, 14, shade(cloth, 0.22), cut=5)
    for s in (-1, 1):
        x = s * 39
        p.rectangle(x - 10, -18, x + 10, 32, cloth, cut=7)
        p.ellipse(x, -14, 10, 8, colour=shade(cloth, 0.12))


@FURNITURE.add("chair", held_out=True)
def _crossed_back(p: Pen, d: Dice) -> None:
    frame = d.wood() if d.chance(0.7) else d.colour()
    seat = frame if d.chance(0.5) else d.colour()
    high, leg = d.between(62, 78), d.between(5, 8)
    p.limb([(-25, -14), (25, -high)], 5, shade(frame, -0.2))
    p.limb([(25, -14), (-25, -high)], 5, shade(frame, -0.1))
    for s in (-1, 1):
        p.limb([(s * 25, -6), (s * 27, -high)], leg, frame)
    p.limb([(-28, -high), (28, -high)], 8, frame)
    _seat(p, seat, frame, leg=leg, h=d.between(48, 60), splay=d.between(0, 4))


@FURNITURE.add("chair", held_out=True)
def _round_back(p: Pen, d: Dice) -> None:
    frame = d.wood() if d.chance(0.6) else d.colour()
    cloth = d.colour()
    high = d.between(56, 70)
    for s in (-1, 1):
        p.limb([(s * 18, 0), (s * 20, -34)], 6, shade(frame, -0.1))
    p.ellipse(0, -high + 22, 29, 27, colour=frame)
    p.ellipse(0, -high + 22, 22, 20, colour=cloth if d.chance(0.6) else None)
    _seat(p, cloth, frame, leg=d.between(5, 8), h=d.between(48, 58), splay=d.between(2, 6))
