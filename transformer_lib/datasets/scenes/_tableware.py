"""Families of vases, donuts and cups, and of fried chicken and beer."""

import math
from collections.abc import Sequence

from transformer_lib.datasets.scenes._family import Families
from transformer_lib.datasets.scenes._pen import (
    Colour,
    Dice,
    Number,
    Pen,
    Point,
    closed_curve,
    curve,
    hsv,
    mix,
    placed,
    polar,
    ring,
    shade,
)

TABLEWARE = Families()


# Vase


def _vase(p: Pen, d: Dice, profile: Sequence[Point], *, handles: bool = False) -> None:
    """``profile`` is (radius, y) from the lip down; the neck is its narrowest part."""
    colour = d.colour(saturation=(0.1, 0.9))
    smooth = curve(profile, 4)
    if handles:
        r = max(x for x, _ in profile)
        for s in (-1, 1):
            path = [(s * 9, -52), (s * r * 1.05, -48), (s * r * 0.8, -8)]
            p.limb(path, 6, shade(colour, -0.25), smooth=True)
    p.turned(smooth, colour)
    decor = d.pick(["plain", "bands", "bands", "dots", "zigzag"])
    ink = shade(colour, 0.6) if sum(colour) < 360 else shade(colour, -0.5)
    n = len(smooth)
    if decor == "bands":
        for k in range(d.integer(1, 3)):
            i = int(n * (0.45 + 0.16 * k))
            p.band(smooth[i : i + 2], -1, 1, ink)
    elif decor == "dots":
        (r, y) = smooth[int(n * 0.6)]
        for t in (-0.65, -0.22, 0.22, 0.65):
            p.ellipse(t * r, y, r * 0.13, colour=ink)
    elif decor == "zigzag":
        (r, y) = smooth[int(n * 0.6)]
        p.limb([(r * (i / 4 - 1) * 0.95, y + (5 if i % 2 else -5)) for i in range(9)], 3.5, ink)
    lip, top = smooth[0]
    p.ellipse(0, top, lip, lip * 0.22, colour=shade(colour, 0.2))
    p.ellipse(0, top, lip * 0.78, lip * 0.15, colour=shade(colour, -0.65))


@TABLEWARE.add("vase")
def _shouldered(p: Pen, d: Dice) -> None:
    neck, r = d.between(8, 12), d.between(27, 36)
    upper = [(neck + 6, -62), (neck, -52), (neck + 1, -42)]
    _vase(p, d, [*upper, (r, -18), (r * 0.92, 8), (r * 0.55, 48), (r * 0.5, 56)])


@TABLEWARE.add("vase")
def _bottle_vase(p: Pen, d: Dice) -> None:
    neck, r = d.between(6, 8), d.between(26, 36)
    upper = [(neck + 3, -70), (neck, -62), (neck, -22)]
    _vase(p, d, [*upper, (r * 0.7, -4), (r, 22), (r * 0.8, 46), (r * 0.55, 54)])


@TABLEWARE.add("vase")
def _gourd(p: Pen, d: Dice) -> None:
    r = d.between(28, 36)
    upper = [(11, -66), (8, -58), (r * 0.6, -40), (r * 0.58, -28), (9, -12)]
    _vase(p, d, [*upper, (r * 0.9, 10), (r, 26), (r * 0.75, 48), (r * 0.6, 54)])


@TABLEWARE.add("vase")
def _trumpet(p: Pen, d: Dice) -> None:
    r, lip = d.between(20, 26), d.between(22, 28)
    upper = [(lip, -66), (12, -46), (8, -22)]
    _vase(p, d, [*upper, (r * 0.8, 4), (r, 24), (r * 0.7, 46), (r * 0.8, 56)])


@TABLEWARE.add("vase")
def _tall(p: Pen, d: Dice) -> None:
    r = d.between(17, 22)
    upper = [(12, -78), (8, -68), (10, -56)]
    _vase(p, d, [*upper, (r, -36), (r * 0.95, 0), (r * 0.7, 40), (r * 0.62, 58)])


@TABLEWARE.add("vase", held_out=True)
def _amphora(p: Pen, d: Dice) -> None:
    r = d.between(28, 34)
    upper = [(14, -62), (9, -54), (9, -40)]
    lower = [(r, -12), (r * 0.85, 18), (r * 0.3, 46), (r * 0.5, 54)]
    _vase(p, d, [*upper, *lower], handles=True)


@TABLEWARE.add("vase", held_out=True)
def _squat(p: Pen, d: Dice) -> None:
    r = d.between(34, 42)
    upper = [(15, -44), (9, -34), (10, -24)]
    _vase(p, d, [*upper, (r * 0.8, -10), (r, 12), (r * 0.85, 34), (r * 0.5, 44)])


# Donut


def _ring(p: Pen, d: Dice, *, tilt: Number, wavy: Number) -> tuple[Colour, list[Point]]:
    """Dough and glaze of a donut about (0, 0); returns the glaze's colour and places on it."""
    dough = d.colour((0.07, 0.1), (0.5, 0.75), (0.65, 0.9))
    glaze = d.pick(
        [
            d.colour((0.9, 0.98), (0.3, 0.7), (0.85, 1)),
            d.colour((0.03, 0.07), (0.6, 0.8), (0.2, 0.4)),
            d.colour((0.08, 0.12), (0.03, 0.2), (0.92, 1)),
            d.colour((0.1, 0.9), (0.3, 0.6), (0.8, 0.95)),
        ]
    )
    deep = 16 * (1 - tilt)
    p.ellipse(0, deep, 50, 50 * tilt, colour=shade(dough, -0.3))
    p.ellipse(0, 0, 50, 50 * tilt, colour=dough)
    phase, n = d.between(0, 6.28), d.integer(6, 9)
    edge = []
    for i in range(36):
        a = 2 * math.pi * i / 36
        r = 44 + wavy * math.sin(n * a + phase)
        x, y = polar(1, a)
        edge.append((r * x, (tilt * r + 0.3 * deep) * y - 1))
    p.polygon(edge, glaze)
    p.ellipse(2 * p.light, -2, 35, 34 * tilt, colour=shade(glaze, 0.14))
    p.ellipse(0, 0, 29, 28 * tilt, colour=glaze)
    places = [polar(d.between(0.55, 0.8) * 50, 2.4 * i) for i in range(22)]
    return glaze, [(x, tilt * y) for x, y in places]


def _cut_hole(p: Pen, hole: Number, tilt: Number, dough: Colour) -> None:
    p.ellipse(0, 0, hole + 3, (hole + 3) * tilt, colour=shade(dough, -0.45))
    p.ellipse(0, (1 - tilt) * 6, hole, hole * tilt * (0.7 + 0.3 * tilt), colour=None)


def _sprinkle(p: Pen, d: Dice, places: Sequence[Point]) -> None:
    for at in places:
        turn, colour = d.between(0, 3.14), hsv(d.between(0, 1), 0.8, 1.0)
        sprinkle = [(-4, 1.8), (4, 1.8), (4, -1.8), (-4, -1.8)]
        p.polygon(placed(sprinkle, at, turn=turn), colour)


_DOUGH = (205, 150, 85)


@TABLEWARE.add("donut")
def _glazed(p: Pen, d: Dice) -> None:
    _, places = _ring(p, d, tilt=1, wavy=d.between(1, 3))
    if d.chance(0.75):
        _sprinkle(p, d, places)
    _cut_hole(p, d.between(12, 17), 1, _DOUGH)


@TABLEWARE.add("donut")
def _lying_donut(p: Pen, d: Dice) -> None:
    tilt = d.between(0.5, 0.72)
    _, places = _ring(p, d, tilt=tilt, wavy=d.between(1.5, 3.5))
    if d.chance(0.75):
        _sprinkle(p, d, places)
    _cut_hole(p, d.between(12, 16), tilt, _DOUGH)


@TABLEWARE.add("donut")
def _striped_donut(p: Pen, d: Dice) -> None:
    tilt = d.pick([1.0, 1.0, 0.75])
    glaze, _ = _ring(p, d, tilt=tilt, wavy=1)
    ink = shade(glaze, -0.6) if sum(glaze) > 380 else shade(glaze, 0.75)
    for i in range(-3, 4):
        x = i * 11
        y = math.sqrt(max(40**2 - x * x, 0)) * 0.97 * tilt
        p.limb([(x + 4, -y), (x - 4, y)], 3.5, ink)
    _cut_hole(p, d.between(12, 16), tilt, _DOUGH)


@TABLEWARE.add("donut")
def _scalloped(p: Pen, d: Dice) -> None:
    dough = d.colour((0.06, 0.1), (0.45, 0.75), (0.55, 0.85))
    n = d.integer(8, 11)
    for x, y in ring(n, 33):
        p.ball(x, y, 17, 17, dough)
    p.ellipse(0, 0, 37, colour=dough)
    p.ellipse(0, 0, 31, colour=shade(dough, 0.22))
    if d.chance(0.6):
        for i in range(26):
            p.ellipse(*polar(d.between(20, 46), 2.4 * i), 1.8, colour=(250, 245, 235))
    _cut_hole(p, d.between(12, 16), 1, dough)


@TABLEWARE.add("donut", held_out=True)
def _bitten(p: Pen, d: Dice) -> None:
    _, places = _ring(p, d, tilt=1, wavy=d.between(1, 3))
    if d.chance(0.8):
        _sprinkle(p, d, places)
    _cut_hole(p, d.between(12, 16), 1, _DOUGH)
    a = d.between(-0.6, 0.6)
    for k in (-0.34, 0, 0.34):
        p.ellipse(*polar(56, a + k), 15, colour=None)


@TABLEWARE.add("donut", held_out=True)
def _half_dipped(p: Pen, d: Dice) -> None:
    dough = d.colour((0.07, 0.1), (0.5, 0.75), (0.65, 0.9))
    p.ball(0, 0, 50, 50, dough)
    p.ellipse(0, 0, 33, colour=shade(dough, 0.2))
    glaze = d.colour((0.9, 1.08), (0.4, 0.8), (0.25, 0.9))
    a = d.between(0, 6.28)
    points = [polar(47, a + math.pi * i / 12) for i in range(13)]
    p.polygon(points, glaze)
    _sprinkle(p, d, [(0.72 * x, 0.72 * y) for x, y in points[1:-1]])
    _cut_hole(p, d.between(12, 16), 1, dough)


# Cup


def _cup(
    p: Pen,
    d: Dice,
    profile: Sequence[Point],
    *,
    handle: tuple[Number, Number, Number],
    square: bool = False,
    saucer: bool = False,
) -> None:
    """``profile`` from the rim (y = 0) down; ``handle`` is its top, bottom and reach."""
    colour = d.colour(saturation=(0.0, 0.85), value=(0.45, 1))
    low = profile[-1][1]
    if saucer:
        p.ellipse(0, low + 1, 46, 9, colour=shade(colour, -0.3))
        p.ellipse(0, low - 2, 46, 8, colour=shade(colour, -0.05))
        p.ellipse(0, low - 2, 28, 5, colour=shade(colour, -0.25))
    a, b, reach = handle
    at = profile[0][0] * 0.85
    width = d.between(6, 9)
    middle = [(at + reach * 0.8, a), (at + reach, (a + b) / 2), (at + reach * 0.7, b)]
    if square:
        middle = [(at + reach, a + 2), (at + reach, b - 2)]
    p.limb([(at - 6, a), *middle, (at - 10, b)], width, shade(colour, -0.2), smooth=not square)
    p.turned(curve(profile, 3), colour, 0.18)
    decor = d.pick(["plain", "band", "dots", "heart"])
    bright, dark = shade(colour, 0.6), (0.3, 0.8)
    ink = bright if sum(colour) < 420 else d.colour(saturation=(0.5, 0.9), value=dark)
    r, y = profile[0][0], low * 0.5
    if decor == "band":
        p.band([(r * 0.97, y - 6), (r * 0.94, y + 6)], -0.98, 0.9, ink)
    elif decor == "dots":
        for x in (-0.55, 0, 0.5):
            p.ellipse(x * r, y, 4.5, colour=ink)
    elif decor == "heart":
        p.ellipse(-4, y - 3, 5, colour=ink)
        p.ellipse(4, y - 3, 5, colour=ink)
        p.polygon([(-8.6, y - 1), (8.6, y - 1), (0, y + 10)], ink)
    flat = d.between(0.2, 0.3)
    p.ellipse(0, 0, r, r * flat, colour=shade(colour, 0.35))
    drink = shade(colour, -0.4)
    if d.chance(0.75):
        drink = d.pick([(75, 45, 25), (150, 95, 40), (40, 25, 18)])
    p.ellipse(0, 1, r * 0.86, r * flat * 0.78, colour=drink)


@TABLEWARE.add("cup")
def _mug(p: Pen, d: Dice) -> None:
    r, h = d.between(27, 32), d.between(58, 72)
    profile = [(r, 0), (r, h * 0.5), (r * 0.97, h * 0.92), (r * 0.85, h)]
    _cup(p, d, profile, handle=(12, h - 14, d.between(18, 24)))


@TABLEWARE.add("cup")
def _teacup(p: Pen, d: Dice) -> None:
    r, h = d.between(33, 38), d.between(38, 46)
    profile = [
        (r, 0),
        (r * 0.97, h * 0.35),
        (r * 0.7, h * 0.75),
        (r * 0.4, h * 0.94),
        (r * 0.45, h),
    ]
    handle = (6, h * 0.65, d.between(16, 22))
    _cup(p, d, profile, handle=handle, saucer=d.chance(0.7))


@TABLEWARE.add("cup")
def _tapered_cup(p: Pen, d: Dice) -> None:
    r, h = d.between(28, 34), d.between(50, 62)
    profile = [(r, 0), (r * 0.9, h * 0.5), (r * 0.68, h)]
    _cup(p, d, profile, handle=(10, h * 0.68, d.between(18, 24)))


@TABLEWARE.add("cup")
def _square_handle(p: Pen, d: Dice) -> None:
    r, h = d.between(27, 31), d.between(52, 64)
    handle = (12, h - 14, d.between(17, 22))
    _cup(p, d, [(r, 0), (r, h)], handle=handle, square=True, saucer=d.chance(0.2))


@TABLEWARE.add("cup", held_out=True)
def _barrel(p: Pen, d: Dice) -> None:
    r, h = d.between(24, 28), d.between(56, 66)
    profile = [(r, 0), (r * 1.2, h * 0.35), (r * 1.2, h * 0.65), (r * 0.9, h)]
    _cup(p, d, profile, handle=(10, h - 14, d.between(24, 28)))


@TABLEWARE.add("cup", held_out=True)
def _wide_cup(p: Pen, d: Dice) -> None:
    r, h = d.between(36, 42), d.between(44, 52)
    profile = [(r, 0), (r * 0.86, h * 0.3), (r * 0.84, h * 0.7), (r * 0.6, h)]
    _cup(p, d, profile, handle=(8, h * 0.75, d.between(18, 22)), square=d.chance(0.5))


# Fried chicken


def _piece(p: Pen, d: Dice, at: Point, r: Number, crust: Colour, *, sauced: bool) -> None:
    """A piece in crisp crust, or one in glossy sauce with sesame."""
    turn, long = d.between(0, 6.28), d.between(1, 1.45)
    edge = [polar(r * d.between(0.82, 1.15), 2 * math.pi * i / 11) for i in range(11)]
    edge = placed(edge, turn=turn, scale=(long, 1))
    outer = placed(closed_curve(edge, 3) if sauced else edge, at)
    p.polygon(outer, shade(crust, -0.35))
    lit = (at[0] + 0.08 * r * p.light, at[1] - 0.08 * r)
    p.polygon(placed(edge, lit, scale=(0.85, 0.85)), crust)
    for _ in range(3 if sauced else 6):
        a, q = d.between(0, 6.28), d.between(0, 0.65) * r
        x, y = polar(q, a, at)
        if sauced:
            gloss, angle = shade(crust, 0.45), d.between(-60, 60)
            p.ellipse(x, y, 0.24 * r, 0.1 * r, colour=gloss, angle=angle)
            p.ellipse(x + 0.3 * r, y, 0.06 * r, 0.09 * r, colour=(250, 235, 200))
        else:
            p.ellipse(x, y, 0.2 * r, colour=shade(crust, d.between(-0.3, 0.35)))


def _crust(d: Dice, *, sauced: bool) -> Colour:
    if sauced:
        return d.colour((0.99, 1.03), (0.8, 0.95), (0.5, 0.72))
    return d.colour((0.075, 0.11), (0.65, 0.85), (0.7, 0.9))


def _drumstick(p: Pen, d: Dice, *, sauced: bool) -> None:
    bone = (245, 235, 215)
    p.limb([(26, 20), (56, 44)], 9, bone)
    p.ellipse(60, 42, 7, colour=bone)
    p.ellipse(55, 49, 7, colour=bone)
    _piece(p, d, (0, 0), 30, _crust(d, sauced=sauced), sauced=sauced)
    _piece(p, d, (22, 17), 15, _crust(d, sauced=sauced), sauced=sauced)


def _heap(p: Pen, d: Dice, sauced: Sequence[bool]) -> None:
    if d.chance(0.7):
        plate = d.colour(saturation=(0, 0.25), value=(0.75, 1))
        p.ellipse(0, 22, 74, 20, colour=shade(plate, -0.25))
        p.ellipse(0, 18, 74, 19, colour=plate)
    rows = [(-44, 12), (-15, 15), (15, 15), (44, 12), (-30, -8), (0, -6), (30, -8), (-14, -28)]
    for x, y in [*rows, (14, -27)]:
        wet = d.pick(sauced)
        at = (x + d.between(-4, 4), y + d.between(-4, 4))
        _piece(p, d, at, d.between(16, 20), _crust(d, sauced=wet), sauced=wet)


@TABLEWARE.add("fried chicken")
def _plain_heap(p: Pen, d: Dice) -> None:
    _heap(p, d, [False])


@TABLEWARE.add("fried chicken")
def _half_and_half(p: Pen, d: Dice) -> None:
    _heap(p, d, [False, True])


@TABLEWARE.add("fried chicken")
def _plain_drumstick(p: Pen, d: Dice) -> None:
    _drumstick(p, d, sauced=False)


@TABLEWARE.add("fried chicken")
def _sauced_drumstick(p: Pen, d: Dice) -> None:
    _drumstick(p, d, sauced=True)


@TABLEWARE.add("fried chicken", held_out=True)
def _sauced_heap(p: Pen, d: Dice) -> None:
    _heap(p, d, [True])


# Beer


def _amber(d: Dice) -> Colour:
    return d.colour((0.09, 0.13), (0.75, 0.95), (0.75, 0.98))


def _foam(p: Pen, d: Dice, r: Number, y: Number) -> None:
    white = (252, 248, 235)
    p.rectangle(-r, y, r, y + 12, white, cut=2)
    for i in range(5):
        x, top = -r + 2 * r * (i + 0.5) / 5, y + d.between(-3, 1)
        p.ball(x, top, r * 0.3, d.between(7, 11), white, 0.06)


def _beer(p: Pen, d: Dice, profile: Sequence[Point], *, handle: bool) -> None:
    """``profile`` is (radius, y) of the glass from the rim, at y = 0, down."""
    beer, glass = _amber(d), (220, 232, 238)
    low, r = profile[-1][1], profile[0][0]
    if handle:
        path = [
            (r - 4, 14),
            (r + 20, 18),
            (r + 22, low * 0.5),
            (r + 14, low * 0.76),
            (r - 4, low * 0.8),
        ]
        p.limb(path, 8, glass, smooth=True)
    smooth = curve(profile, 3)
    p.band(smooth, -1, 1, glass)
    p.turned([(q * 0.88, min(y, low - 7)) for q, y in smooth], beer, 0.22)
    if handle:
        for x in (-0.5, 0, 0.5):
            p.limb([(x * r, 20), (x * r, low - 12)], 4, shade(beer, 0.35))
    for _ in range(6):
        p.ellipse(d.between(-0.6, 0.6) * r, d.between(20, low - 12), 1.6, colour=shade(beer, 0.6))
    _foam(p, d, r * 1.02, -d.between(2, 6))


@TABLEWARE.add("beer")
def _beer_mug(p: Pen, d: Dice) -> None:
    r, h = d.between(28, 34), d.between(74, 90)
    _beer(p, d, [(r, 0), (r * 0.98, h * 0.5), (r, h)], handle=True)


@TABLEWARE.add("beer")
def _pint(p: Pen, d: Dice) -> None:
    r, h = d.between(24, 29), d.between(86, 104)
    _beer(p, d, [(r, 0), (r * 0.9, h * 0.4), (r * 0.68, h)], handle=False)


@TABLEWARE.add("beer")
def _beer_bottle(p: Pen, d: Dice) -> None:
    glass = d.pick([(105, 58, 22), (125, 70, 25), (30, 95, 50)])
    label = d.colour(saturation=(0.3, 0.9), value=(0.7, 1))
    h = d.between(84, 96)
    p.turned(curve([(6, -40), (6.5, -14), (17, 8), (18, 30), (18, h - 4), (16, h)], 4), glass)
    p.rectangle(-7.5, -45, 7.5, -36, label, cut=1.5)
    p.rectangle(-18, 28, 18, 62, label)
    p.rectangle(-18, 32, 18, 35, shade(label, -0.4))
    p.ellipse(0, 48, 9, 8, colour=mix(label, (250, 240, 220), 0.8))


@TABLEWARE.add("beer", held_out=True)
def _weizen(p: Pen, d: Dice) -> None:
    r, h = d.between(24, 28), d.between(100, 116)
    profile = [(r, 0), (r * 1.02, h * 0.2), (r * 0.7, h * 0.55), (r * 0.62, h * 0.8), (r * 0.78, h)]
    _beer(p, d, profile, handle=False)
