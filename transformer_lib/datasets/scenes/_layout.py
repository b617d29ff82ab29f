"""Which objects a scene has, and where, in a world of 160 by 128 units."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from transformer_lib.datasets.scenes._creatures import CREATURES
from transformer_lib.datasets.scenes._family import Families
from transformer_lib.datasets.scenes._furniture import FURNITURE
from transformer_lib.datasets.scenes._pen import Colour, Dice, Pen, Point, placed
from transformer_lib.datasets.scenes._rooms import HEIGHT, WIDTH, shown
from transformer_lib.datasets.scenes._tableware import TABLEWARE

Box = tuple[float, float, float, float]  # xmin, ymin, xmax, ymax

FAMILIES = Families(CREATURES | FURNITURE | TABLEWARE)

_RASTER = (80, 64)  # on which it is counted how much of an object is hidden
_MOST_HIDDEN = 0.5
_LEAST_INSIDE = 0.78  # of an object's box
_SMALLEST, _LARGEST = 0.0115, 0.39  # a box, as a part of the picture
_MOST_SHARED = 0.6  # of the smaller of two boxes
_TRIALS = 14

# Heights from the furthest to the nearest
_HEIGHTS: dict[str, tuple[float, float]] = {
    "clock": (20, 44),
    "horse": (38, 74),
    "person": (56, 106),
    "cat": (25, 56),
    "potted plant": (34, 72),
    "dining table": (30, 52),
    "vase": (26, 54),
    "donut": (18, 38),
    "cup": (18, 38),
    "chair": (44, 76),
    "fried chicken": (20, 40),
    "beer": (26, 52),
}
_STAND_ON_FURNITURE = {
    "vase",
    "donut",
    "cup",
    "potted plant",
    "clock",
    "cat",
    "fried chicken",
    "beer",
}


@dataclass(frozen=True)
class Thing:
    """An object: coloured polygons, the bottom one first, in the world's coordinates."""

    label: str
    shapes: list[tuple[list[Point], Colour | None]]
    outline: float  # width of a line about each shape, 0 for none
    extent: Box

    def extent_at(self, x: float, y: float) -> Box:
        """Return the extent when the middle of the object's foot is at (x, y)."""
        x0, y0, x1, y1 = self.extent
        half = (x1 - x0) / 2
        return x - half, y - (y1 - y0), x + half, y

    def moved(self, x: float, y: float) -> "Thing":
        """Return the object with the middle of its foot at (x, y)."""
        x0, _, x1, y1 = self.extent
        dx, dy = x - (x0 + x1) / 2, y - y1
        shapes = [([(a + dx, b + dy) for a, b in points], c) for points, c in self.shapes]
        return Thing(self.label, shapes, self.outline, self.extent_at(x, y))


@dataclass(frozen=True)
class _Placed:
    """An object at its place."""

    order: float  # grows towards the viewer
    thing: Thing
    mask: int  # the raster's pixels that it covers, a bit each


def new_thing(d: Dice, label: str, split: str, light: float, height: float) -> Thing:
    """Return an object of one of the split's families, so high; ``light`` is the lit side."""
    family = d.pick([family for family in FAMILIES[label] if shown(family.held_out, split)])
    mirror = d.pick([-1.0, 1.0])
    pen = Pen(light * mirror)
    family.draw(pen, d)
    turn = math.radians(d.between(-40, 40) if label == "donut" else d.between(-7, 7))
    stretch = d.between(0.88, 1.14) * mirror
    outline = d.between(0.5, 1.1) if d.chance(0.3) else 0.0
    shapes = [
        ([(stretch * x, y) for x, y in placed(points, turn=turn)], colour)
        for points, colour in pen.shapes
    ]
    corners = [point for points, colour in shapes if colour is not None for point in points]
    xs, ys = [x for x, _ in corners], [y for _, y in corners]
    x0, y0, x1, y1 = min(xs), min(ys), max(xs), max(ys)
    k = min(height / (y1 - y0), 0.92 * WIDTH / (x1 - x0))
    shapes = [([(k * x, k * y) for x, y in points], colour) for points, colour in shapes]
    return Thing(label, shapes, outline, (k * x0, k * y0, k * x1, k * y1))


def one_thing(d: Dice, label: str, split: str) -> Thing:
    """Return one object at any place."""
    while True:
        height = d.between(0.3, 1) * HEIGHT
        thing = new_thing(d, label, split, d.pick([-1.0, 1.0]), height)
        x, y = d.between(0, WIDTH), d.between(0.3, 1.08) * HEIGHT
        if _fits(thing.extent_at(x, y)):
            return thing.moved(x, y)


def layout(d: Dice, split: str, labels: Sequence[str], objects: int, floor: float) -> list[Thing]:
    """Return objects from the furthest to the nearest, fewer than asked for where there is no room.

    ``floor`` is where the floor meets the wall.
    """
    light = d.pick([-1.0, 1.0])
    zoom = d.between(0.82, 1.12)
    there: list[_Placed] = []
    for _ in range(3 * objects):
        if len(there) == objects:
            break
        label = d.pick(labels)
        low, high = _HEIGHTS[label]
        near = d.between(0, 1)
        height = (low + (high - low) * (0.75 * near + d.between(0, 0.25))) * zoom
        thing = new_thing(d, label, split, light, height)
        apart = d.pick([0, 6, 12])  # so many trials look for a place that no other box overlaps
        for trial in range(_TRIALS):
            x, y, order = _spot(d, thing, near, floor, there)
            extent = thing.extent_at(x, y)
            if not _fits(extent):
                continue
            shared = max((_shared(label, extent, other.thing) for other in there), default=0.0)
            if shared > _MOST_SHARED or (shared > 0 and trial < apart):
                continue
            moved = thing.moved(x, y)
            candidate = _Placed(order, moved, _mask(moved))
            if _all_seen([*there, candidate]):
                there.append(candidate)
                break
    return [item.thing for item in sorted(there, key=lambda item: item.order)]


def _spot(
    d: Dice, thing: Thing, near: float, floor: float, there: list[_Placed]
) -> tuple[float, float, float]:
    """Return a place for the object's foot, and its order."""
    x0, y0, x1, y1 = thing.extent
    height, half = y1 - y0, (x1 - x0) / 2
    x = d.between(0.5 * half, WIDTH - 0.5 * half)
    hosts = [item for item in there if item.thing.label in ("dining table", "chair")]
    if thing.label == "clock" and d.chance(0.75):
        return x, d.between(height - 4, max(floor - 4, height)), -1.0 + 0.01 * near
    if thing.label in _STAND_ON_FURNITURE and hosts and d.chance(0.6):
        host = d.pick(hosts)
        x0, y0, x1, y1 = host.thing.extent
        if host.thing.label == "dining table":
            x = d.between(x0 + 4, x1 - 4)
            y = y0 + (y1 - y0) * d.between(0.05, 0.22)
        else:
            x = (x0 + x1) / 2 + d.between(-6, 6)
            y = y0 + (y1 - y0) * d.between(0.52, 0.6)
        return x, y, host.order + 0.001 + 0.001 * d.between(0, 1)
    if thing.label in _STAND_ON_FURNITURE and d.chance(0.35):
        return x, d.between(0.4 * HEIGHT, HEIGHT), near
    y = floor + 3 + (HEIGHT + 4 - floor) * (0.8 * near + d.between(0, 0.2))
    return x, y, y / HEIGHT


def _area(box: Box) -> float:
    return max(box[2] - box[0], 0.0) * max(box[3] - box[1], 0.0)


def _fits(extent: Box) -> bool:
    """Return whether what is inside the picture is large and small enough, and most of it."""
    x0, y0, x1, y1 = extent
    inside = _area((max(x0, 0.0), max(y0, 0.0), min(x1, WIDTH), min(y1, HEIGHT)))
    right_size = _SMALLEST <= inside / (WIDTH * HEIGHT) <= _LARGEST
    return right_size and inside >= _LEAST_INSIDE * _area(extent)


def _shared(label: str, extent: Box, other: Thing) -> float:
    """Return what two boxes share, as a part of the smaller; objects of one kind count for more."""
    a, b = extent, other.extent
    both = _area((max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])))
    part = both / min(_area(a), _area(b))
    return 1.5 * part if label == other.label else part


def _mask(thing: Thing) -> int:
    image = Image.new("1", _RASTER)
    fill = ImageDraw.Draw(image).polygon
    kx, ky = _RASTER[0] / WIDTH, _RASTER[1] / HEIGHT
    for points, colour in thing.shapes:
        fill([(kx * x, ky * y) for x, y in points], fill=colour is not None)
    return int.from_bytes(image.tobytes(), "big")


def _all_seen(there: list[_Placed]) -> bool:
    """Return whether enough is seen of every object behind those that are nearer."""
    nearer = 0
    for item in sorted(there, key=lambda item: -item.order):
        if (item.mask & nearer).bit_count() > _MOST_HIDDEN * item.mask.bit_count():
            return False
        nearer |= item.mask
    return True
