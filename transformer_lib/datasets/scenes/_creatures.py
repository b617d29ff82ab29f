"""Families of horses, persons and cats."""

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
    placed,
    shade,
)

CREATURES = Families()


# Horse


def _horse(
    p: Pen,
    d: Dice,
    *,
    feet: Sequence[Point],
    knees: Sequence[Number],
    nod: Number = 0.0,
    blocky: bool = False,
) -> None:
    """A horse that looks left; ``feet`` are two front and two hind ones, far ones first."""
    coat = d.pick(
        [
            d.colour((0.03, 0.08), (0.5, 0.8), (0.3, 0.65)),
            d.colour((0.03, 0.1), (0.1, 0.4), (0.15, 0.3)),
            d.colour((0.05, 0.12), (0.03, 0.2), (0.75, 0.97)),
            d.colour((0.07, 0.12), (0.4, 0.65), (0.65, 0.85)),
        ]
    )
    hair = d.pick([shade(coat, -0.6), (40, 30, 25), (235, 225, 200)])
    hoof = shade(coat, -0.7)
    thick = d.between(9, 12)
    hips = [(-34.0, 10.0), (-28.0, 12.0), (36.0, 10.0), (42.0, 8.0)]
    tail = d.between(0.8, 1.2)
    path = [(50, -8), (66, 2), (68 * tail, 24), (64, 46 * tail)]
    p.limb(path, 8, shade(hair, 0.1), 12, smooth=True)

    def leg(i: int, colour: Colour) -> None:
        (hx, hy), (fx, fy) = hips[i], feet[i]
        middle = ((hx + fx) / 2 + knees[i], (hy + fy) / 2)
        p.limb([(hx, hy), middle, (fx, fy)], thick * 1.7, colour, thick * 0.8)
        p.polygon([(fx - 6, fy - 4), (fx + 5, fy - 4), (fx + 6, fy + 6), (fx - 9, fy + 6)], hoof)

    leg(0, shade(coat, -0.3))
    leg(2, shade(coat, -0.3))
    up = 1 - nod
    ex, ey = -76 - 8 * nod, -62 * up + 36 * nod  # between the ears
    nose = (ex - 27 + 14 * nod, ey + 27 + 6 * nod)
    if blocky:
        p.polygon([(-50, -14), (50, -16), (54, 4), (46, 26), (-42, 26), (-52, 8)], coat)
    else:
        body = [(-50, -6), (-36, -20), (0, -15), (34, -21), (52, -8), (50, 14)]
        body += [(34, 26), (0, 29), (-32, 28), (-50, 12)]
        p.polygon(closed_curve(body), shade(coat, -0.15))
        p.ellipse(0, 0, 46, 19, colour=coat)
    p.polygon([(-22, -18), (-50, 16), (ex - 2, ey + 14), (ex + 12, ey - 4)], coat)
    leg(1, coat)
    leg(3, coat)
    p.ellipse(40, 2, 16, 18, colour=coat)
    p.polygon([(ex + 10, ey - 4), (ex + 2, ey - 22), (ex - 3, ey - 6)], shade(coat, -0.2))
    p.limb([(ex + 2, ey + 6), nose], 25, coat, 15)
    p.ellipse(*nose, 9, 8, colour=shade(coat, -0.25 if d.chance(0.7) else 0.35))
    p.polygon([(ex + 2, ey - 4), (ex - 6, ey - 20), (ex - 9, ey)], coat)
    p.ellipse(ex - 6, ey + 8, 3.2, colour=(15, 10, 10))
    mane = [(ex - 4, ey - 8), (ex + 12, ey - 6), (-40 + 2 * nod, -38 * up)]
    mane += [(-20, -16), (-34, -10), (-52, -22 * up + 14 * nod), (ex + 6, ey + 10)]
    p.polygon(mane, hair)
    if d.chance(0.3):
        saddle = d.colour(saturation=(0.5, 0.9))
        p.polygon([(-16, -20), (16, -20), (20, 4), (-18, 4)], saddle)
        p.limb([(-2, 2), (-2, 28)], 4, shade(saddle, -0.4))
    elif d.chance(0.2):
        for _ in range(4):
            p.ellipse(d.between(-30, 40), d.between(-10, 16), d.between(4, 9), colour=hair)


@CREATURES.add("horse")
def _standing_horse(p: Pen, d: Dice) -> None:
    y = d.between(72, 84)
    feet = [(-30 + d.between(-6, 2), y - 3), (-38, y), (36 + d.between(-2, 6), y - 3), (50, y)]
    _horse(p, d, feet=feet, knees=[0, 0, 5, 6], nod=d.between(0, 0.12))


@CREATURES.add("horse")
def _galloping(p: Pen, d: Dice) -> None:
    y = d.between(62, 72)
    feet = [(-72, y - 14), (-60, y), (66, y), (80, y - 14)]
    _horse(p, d, feet=feet, knees=[-6, -12, -8, -6], nod=d.between(0.1, 0.25))


@CREATURES.add("horse")
def _trotting(p: Pen, d: Dice) -> None:
    y = d.between(72, 82)
    feet = [(-52, y - 20), (-34, y), (62, y - 6), (34, y)]
    _horse(p, d, feet=feet, knees=[-18, 0, 4, 8], nod=d.between(0, 0.1))


@CREATURES.add("horse")
def _rocking_horse(p: Pen, d: Dice) -> None:
    y = d.between(64, 72)
    rocker = d.colour(saturation=(0.4, 0.9)) if d.chance(0.6) else d.wood()
    arc = [(86 * math.sin(a), y - 60 + 74 * math.cos(a)) for a in (-1 + i / 6 for i in range(13))]
    p.limb(arc, 9, rocker)
    feet = [(-46.0, y - 2), (-52.0, y - 2), (46.0, y - 2), (54.0, y - 2)]
    _horse(p, d, feet=feet, knees=[0, 0, 2, 2], blocky=d.chance(0.5))


@CREATURES.add("horse", held_out=True)
def _rearing(p: Pen, d: Dice) -> None:
    y = d.between(72, 80)
    feet = [(-70, 36), (-62, 50), (40, y - 3), (54, y)]
    _horse(p, d, feet=feet, knees=[-16, -18, 8, 10], nod=0)
    turn = math.radians(d.between(14, 28))
    p.shapes = [(placed(points, turn=turn), colour) for points, colour in p.shapes]


@CREATURES.add("horse", held_out=True)
def _grazing(p: Pen, d: Dice) -> None:
    y = d.between(74, 84)
    feet = [(-24, y - 3), (-42, y), (34, y - 3), (50, y)]
    _horse(p, d, feet=feet, knees=[0, 0, 5, 6], nod=d.between(0.5, 0.8))


# Person


def _person(
    p: Pen,
    d: Dice,
    *,
    hands: tuple[Point, Point],
    elbows: tuple[Point, Point],
    feet: tuple[Point, Point] = ((-10, 0), (10, 0)),
    knees: tuple[Number, Number] = (0, 0),
    dress: bool = False,
    coat: bool = False,
    hat: bool = False,
) -> None:
    """A person of about 100 units, feet at y = 0, seen from the front."""
    skin = d.pick([(250, 215, 185), (235, 190, 150), (205, 150, 110), (150, 100, 70), (95, 62, 45)])
    hair = d.pick([(30, 22, 20), (80, 50, 30), (200, 160, 80), (150, 60, 30), (150, 150, 150)])
    top, low = d.colour(), d.colour(value=(0.15, 0.7))
    shoe = d.colour(saturation=(0, 0.6), value=(0.05, 0.35))
    w = d.between(0.9, 1.2)
    shoulder, hip = 13 * w, 9 * w
    if d.chance(0.45):
        p.polygon(closed_curve([(-11, -94), (0, -101), (11, -94), (13, -70), (-13, -70)]), hair)
    for (fx, fy), bend, side in zip(feet, knees, (-1, 1), strict=True):
        start = (side * hip * 0.55, -42)
        middle = ((start[0] + fx) / 2 + bend, (start[1] + fy) / 2)
        p.limb([start, middle, (fx, fy - 4)], 10 * w, skin if dress else low, 7)
        turn = side if not bend else 1
        p.polygon(
            placed([(-4, 0), (-4, -7), (4, -6), (9, -1), (8, 0)], (fx, fy), scale=(turn, 1)), shoe
        )
    body = [(-shoulder, -74), (-5, -79), (5, -79), (shoulder, -74)]
    if dress:
        flare = d.between(15, 22)
        body += [(hip * 0.9, -54), (flare, -22), (-flare, -22), (-hip * 0.9, -54)]
    elif coat:
        body += [(hip * 1.2, -54), (hip * 1.7, -16), (-hip * 1.7, -16), (-hip * 1.2, -54)]
    else:
        body += [(hip * 1.05, -40), (-hip * 1.05, -40)]
    p.polygon(body, top)
    if coat:
        p.limb([(0, -76), (0, -18)], 2, shade(top, -0.5))
    elif d.chance(0.35):
        p.polygon([(-hip, -56), (hip, -56), (hip, -48), (-hip, -48)], shade(top, 0.5))
    shadow = [(-shoulder, -74), (-5, -76), (-hip * 0.4, -42), (-hip, -42)]
    p.polygon(placed(shadow, scale=(p.light, 1)), shade(top, -0.2))
    sleeve = top if d.chance(0.6) or coat else skin
    for (hx, hy), (ex, ey), s in zip(hands, elbows, (-1, 1), strict=True):
        start = (s * (shoulder - 2), -71)
        p.limb([start, (ex, ey)], 8 * w, shade(top, -0.12), 7)
        p.limb([(ex, ey), (hx, hy)], 7, shade(sleeve, -0.12 if sleeve is top else 0), 5)
        p.ellipse(hx, hy, 4, colour=skin)
    p.rectangle(-3.5, -84, 3.5, -76, shade(skin, -0.15))
    p.ellipse(0, -90, 8.5, 10.5, colour=skin)
    fringe = [
        (-9, -90),
        (-9.5, -97),
        (-4, -102),
        (4, -102),
        (9.5, -97),
        (9, -90),
        (6, -95),
        (-5, -95),
    ]
    p.polygon(fringe, hair)
    for s in (-1, 1):
        p.ellipse(s * 3.3, -90, 1.3, colour=(20, 20, 25))
    p.polygon([(-3, -85), (3, -85), (0, -83.4)], (170, 60, 60))
    if hat:
        colour = d.colour(value=(0.2, 0.8))
        p.rectangle(-9, -109, 9, -96, colour, cut=3)
        p.rectangle(-15, -98, 15, -94.5, shade(colour, -0.25), cut=1)


@CREATURES.add("person")
def _arms_down(p: Pen, d: Dice) -> None:
    a, b = d.between(15, 20), d.between(15, 20)
    _person(p, d, hands=((-a, -40), (b, -40)), elbows=((-a - 1, -56), (b + 1, -56)))


@CREATURES.add("person")
def _dress(p: Pen, d: Dice) -> None:
    a = d.between(18, 26)
    _person(p, d, hands=((-a, -44), (a, -44)), elbows=((-19, -58), (19, -58)), dress=True)


@CREATURES.add("person")
def _walking(p: Pen, d: Dice) -> None:
    step = d.between(12, 20)
    _person(
        p,
        d,
        hands=((-24, -46), (22, -50)),
        elbows=((-18, -58), (15, -56)),
        feet=((-step, -1), (step, 0)),
        knees=(3, 4),
        hat=d.chance(0.2),
    )


@CREATURES.add("person")
def _waving(p: Pen, d: Dice) -> None:
    up = d.between(-112, -96)
    other = ((19, -40), (18, -56)) if d.chance(0.5) else ((26, up), (24, -82))
    feet = ((-d.between(8, 14), 0), (d.between(8, 14), 0))
    _person(
        p,
        d,
        hands=((-27, up), other[0]),
        elbows=((-23, -80), other[1]),
        feet=feet,
        dress=d.chance(0.25),
    )


@CREATURES.add("person", held_out=True)
def _hands_on_hips(p: Pen, d: Dice) -> None:
    out = d.between(23, 28)
    _person(
        p,
        d,
        hands=((-10, -48), (10, -48)),
        elbows=((-out, -58), (out, -58)),
        feet=((-12, 0), (12, 0)),
        dress=d.chance(0.3),
    )


@CREATURES.add("person", held_out=True)
def _coat_and_hat(p: Pen, d: Dice) -> None:
    _person(
        p, d, hands=((-19, -42), (19, -42)), elbows=((-19, -57), (19, -57)), coat=True, hat=True
    )


# Cat


def _fur(d: Dice) -> tuple[Colour, Colour]:
    coat = d.pick(
        [
            d.colour((0.05, 0.09), (0.55, 0.85), (0.75, 0.95)),
            d.colour((0.05, 0.1), (0.02, 0.15), (0.35, 0.65)),
            d.colour((0.6, 0.7), (0.02, 0.1), (0.12, 0.22)),
            d.colour((0.08, 0.12), (0.05, 0.2), (0.85, 0.98)),
        ]
    )
    mark = shade(coat, -0.45) if sum(coat) > 200 else shade(coat, 0.35)
    return coat, mark


def _cat_head(p: Pen, d: Dice, x: Number, y: Number, r: Number, coat: Colour, mark: Colour) -> None:
    for s in (-1, 1):
        side = (s * r, r)
        p.polygon(placed([(0.95, -0.2), (0.9, -1.5), (0.15, -0.75)], (x, y), scale=side), coat)
        inner = [(0.8, -0.5), (0.8, -1.2), (0.4, -0.75)]
        p.polygon(placed(inner, (x, y), scale=side), (235, 160, 160))
    p.ellipse(x, y, 1.1 * r, 0.92 * r, colour=coat)
    if d.chance(0.6):
        for m in (-1, 0, 1):
            stripe = [(0.25 * m - 0.07, -0.88), (0.25 * m + 0.07, -0.88), (0.2 * m, -0.45)]
            p.polygon(placed(stripe, (x, y), scale=(r, r)), mark)
    p.ellipse(x, y + 0.38 * r, 0.5 * r, 0.36 * r, colour=shade(coat, 0.6))
    iris = d.pick([(120, 190, 70), (230, 190, 50), (110, 180, 220)])
    hair = (245, 245, 245) if sum(coat) < 500 else (90, 90, 90)
    for s in (-1, 1):
        p.ellipse(x + s * 0.45 * r, y - 0.08 * r, 0.24 * r, 0.2 * r, colour=iris)
        p.ellipse(x + s * 0.45 * r, y - 0.08 * r, 0.09 * r, 0.2 * r, colour=(10, 10, 10))
        for k in (0.3, 0.5):
            whisker = [(0.4, k), (1.5, 2 * k - 0.4), (0.4, k + 0.08)]
            p.polygon(placed(whisker, (x, y), scale=(s * r, r)), hair)
    nose = [(-0.14, 0.2), (0.14, 0.2), (0, 0.38)]
    p.polygon(placed(nose, (x, y), scale=(r, r)), (220, 110, 120))


@CREATURES.add("cat")
def _sitting_cat(p: Pen, d: Dice) -> None:
    coat, mark = _fur(d)
    wide = d.between(26, 34)
    tail = [(wide - 4, 40), (wide + 18, 42), (wide + 24, 22), (wide + 14, 6)]
    p.limb(tail, 9, shade(coat, -0.2), 7, smooth=True)
    half = [(17, -18), (wide, 24), (wide - 6, 46)]
    other = [(-x, y) for x, y in reversed(half)]
    p.polygon(closed_curve([(0, -34), *half, (0, 48), *other]), shade(coat, -0.1))
    p.ellipse(0, 4, 13, 24, colour=shade(coat, 0.4) if d.chance(0.5) else coat)
    if d.chance(0.5):
        for y in (0, 12, 24):
            for s in (-1, 1):
                p.limb([(s * (18 + y / 4), y), (s * (wide - 10), y + 4)], 5, mark, 2)
    for s in (-1, 1):
        p.limb([(s * 8, 8), (s * 9, 44)], 11, coat, 10)
        p.ellipse(s * 10, 46, 9, 5, colour=shade(coat, 0.3))
    _cat_head(p, d, 0, -44, d.between(22, 26), coat, mark)


def _side_cat(
    p: Pen, d: Dice, feet: Sequence[Point], *, tail: Sequence[Point], arch: Number = 0
) -> None:
    coat, mark = _fur(d)
    p.limb(tail, 10, shade(coat, -0.15), 7, smooth=True)
    hips = [(-32.0, 8.0), (-24.0, 8.0), (28.0, 8.0), (36.0, 6.0)]
    for i, (fx, fy) in enumerate(feet):
        colour = shade(coat, -0.3) if i % 2 == 0 else coat
        p.limb([hips[i], ((hips[i][0] + fx) / 2, (hips[i][1] + fy) / 2), (fx, fy)], 14, colour, 9)
        p.ellipse(fx - 3, fy + 1, 8, 5, colour=shade(colour, 0.2))
    back = [(-44, 8), (-42, -8), (-20, -16), (20, -14 + arch), (42, -10), (46, 8)]
    p.polygon(closed_curve([*back, (24, 18), (-24, 18)]), coat)
    if d.chance(0.55):
        for x in (-14, 0, 14, 28):
            p.limb([(x, -14 + arch / 2), (x + 2, 2)], 6, mark, 2)
    _cat_head(p, d, -48, -22, d.between(19, 23), coat, mark)


@CREATURES.add("cat")
def _standing_cat(p: Pen, d: Dice) -> None:
    y = d.between(40, 48)
    up = d.between(-58, -36)
    feet = [(-36, y - 2), (-26, y), (24, y - 2), (38, y)]
    _side_cat(p, d, feet, tail=[(40, -4), (56, -16), (58, up / 2 - 14), (66, up)])


@CREATURES.add("cat")
def _lying_cat(p: Pen, d: Dice) -> None:
    coat, mark = _fur(d)
    p.limb([(44, 14), (66, 18), (60, 28), (30, 27)], 9, shade(coat, -0.2), 7, smooth=True)
    body = [(-40, 4), (-18, -18), (20, -20), (48, -4), (52, 20), (30, 30), (-30, 30)]
    p.polygon(closed_curve([*body, (-46, 22)]), coat)
    if d.chance(0.55):
        for x in (-8, 6, 20, 34):
            p.limb([(x, -16), (x + 3, 4)], 6, mark, 2)
    p.ellipse(34, 16, 17, 14, colour=shade(coat, -0.12))
    for x in (-48, -32):
        p.limb([(x + 14, 22), (x - 4, 27)], 11, shade(coat, 0.12), 9)
    _cat_head(p, d, -38, -14, d.between(20, 24), coat, mark)


@CREATURES.add("cat")
def _walking_cat(p: Pen, d: Dice) -> None:
    y = d.between(38, 46)
    feet = [(-52, y - 8), (-22, y), (12, y - 2), (48, y)]
    _side_cat(p, d, feet, tail=[(40, -4), (58, 2), (72, -8), (84, -22)])


@CREATURES.add("cat", held_out=True)
def _cat_from_the_side(p: Pen, d: Dice) -> None:
    coat, mark = _fur(d)
    p.limb([(34, 40), (58, 44), (64, 30), (56, 20)], 10, shade(coat, -0.2), 7, smooth=True)
    body = [(-16, -34), (8, -24), (36, 10), (44, 36), (24, 48), (-18, 48), (-24, 10)]
    p.polygon(closed_curve([*body, (-26, -18)]), coat)
    p.ellipse(26, 28, 18, 19, colour=shade(coat, -0.12))
    for x in (-20, -9):
        p.limb([(x, 4), (x - 2, 44)], 12, shade(coat, 0.1), 10)
        p.ellipse(x - 5, 46, 9, 5, colour=shade(coat, 0.3))
    if d.chance(0.5):
        for i in range(3):
            p.limb([(8 + 10 * i, -18 + 12 * i), (2 + 10 * i, -4 + 12 * i)], 6, mark, 2)
    _cat_head(p, d, -24, -44, d.between(21, 25), coat, mark)


@CREATURES.add("cat", held_out=True)
def _arched_cat(p: Pen, d: Dice) -> None:
    y = d.between(42, 50)
    feet = [(-38, y), (-28, y), (26, y), (36, y)]
    _side_cat(p, d, feet, tail=[(40, -2), (50, -24), (40, -44), (50, -62)], arch=-18)
