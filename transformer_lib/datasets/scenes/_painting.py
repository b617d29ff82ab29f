"""From objects and a room to pixels."""

import math
from collections.abc import Sequence

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from transformer_lib.datasets.scenes._layout import Box, Thing
from transformer_lib.datasets.scenes._pen import Dice, Pen, shade
from transformer_lib.datasets.scenes._rooms import HEIGHT, ROOMS, WIDTH, clutter, shown

_FINER = 2  # the canvas has so many pixels in each of the picture's, along either side


def paint(
    d: Dice, split: str, size: tuple[int, int], things: Sequence[Thing], floor: float
) -> tuple[Image.Image, list[Box]]:
    """Return the picture and the box of each object, in the picture's pixels."""
    canvas = Image.new("RGB", (_FINER * size[0], _FINER * size[1]))
    background(canvas, d, split, floor)
    strength = d.integer(0, 70)
    boxes = []
    for thing in things:
        shadow(canvas, thing, strength)
        x0, y0, x1, y1 = draw(canvas, thing)
        boxes.append((x0 / _FINER, y0 / _FINER, x1 / _FINER, y1 / _FINER))
    return photograph(canvas.reduce(_FINER), d), boxes


def background(canvas: Image.Image, d: Dice, split: str, floor: float) -> None:
    """Draw one of the split's rooms, and things in it that are no objects."""
    pen = Pen()
    d.pick([room for room in ROOMS if shown(room.held_out, split)]).draw(pen, d, floor)
    clutter(pen, d, floor)
    fill = ImageDraw.Draw(canvas).polygon
    kx, ky = canvas.width / WIDTH, canvas.height / HEIGHT
    for points, colour in pen.shapes:
        fill([(kx * x, ky * y) for x, y in points], fill=colour)


def shadow(canvas: Image.Image, thing: Thing, strength: int) -> None:
    """Darken the floor about the object's foot."""
    if thing.label == "clock":
        return
    kx, ky = canvas.width / WIDTH, canvas.height / HEIGHT
    x0, _, x1, y1 = thing.extent
    half = (x1 - x0) / 2
    x, y, rx, ry = (x0 + x1) / 2, y1 - 0.5, half * 0.95, min(half * 0.2, 6)
    ellipse = (kx * (x - rx), ky * (y - ry), kx * (x + rx), ky * (y + ry))
    ImageDraw.Draw(canvas, "RGBA").ellipse(ellipse, fill=(0, 0, 0, strength))


def draw(canvas: Image.Image, thing: Thing) -> tuple[int, int, int, int]:
    """Draw the object and return the box of the pixels that it covers."""
    kx, ky = canvas.width / WIDTH, canvas.height / HEIGHT
    line = round(thing.outline * min(kx, ky))
    x0, y0, x1, y1 = thing.extent
    left, top = max(math.floor(kx * x0) - line - 2, 0), max(math.floor(ky * y0) - line - 2, 0)
    right = min(math.ceil(kx * x1) + line + 3, canvas.width)
    bottom = min(math.ceil(ky * y1) + line + 3, canvas.height)
    layer = Image.new("RGBA", (right - left, bottom - top))
    pen = ImageDraw.Draw(layer)
    for points, colour in thing.shapes:
        at = [(kx * x - left, ky * y - top) for x, y in points]
        if colour is None:
            pen.polygon(at, fill=(0, 0, 0, 0))
            continue
        if line:
            pen.line([*at, at[0]], fill=shade(colour, -0.6), width=line)
        pen.polygon(at, fill=colour)
    canvas.paste(layer, (left, top), layer)
    box = layer.getchannel("A").getbbox()
    assert box is not None  # a part of the object is in the picture, see _layout
    return box[0] + left, box[1] + top, box[2] + left, box[3] + top


def photograph(picture: Image.Image, d: Dice) -> Image.Image:
    """Blur the picture, change its light and tint, and add grain, each on some pictures."""
    blur = d.between(0.2, 0.6) if d.chance(0.4) else 0.0
    gain = [d.between(0.78, 1.15)] * 3
    tint = d.between(-0.07, 0.07)
    gain[0] += tint
    gain[2] -= tint
    offset = d.between(-14, 14)
    grain = d.integer(0, 16) if d.chance(0.8) else 0
    if blur:
        scale = min(picture.width / WIDTH, picture.height / HEIGHT)
        picture = picture.filter(ImageFilter.GaussianBlur(blur * scale))
    picture = picture.point(
        [min(max(int(g * v + offset), 0), 255) for g in gain for v in range(256)]
    )
    if grain:
        noise = Image.frombytes(
            "RGB", picture.size, d.random.randbytes(3 * picture.width * picture.height)
        )
        noise = noise.point([v * grain * 2 // 255 for v in range(256)] * 3)
        picture = ImageChops.add(picture, noise, 1, -grain)
    return picture
