"""Living rooms drawn by code, with the box and the name of every object in them.

``_creatures``, ``_furniture`` and ``_tableware`` hold several families of shapes for each kind of
object, ``_rooms`` the backgrounds. ``_layout`` decides what stands where, ``_painting`` draws it.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from transformer_lib.datasets.scenes._layout import Box, layout, one_thing
from transformer_lib.datasets.scenes._painting import paint
from transformer_lib.datasets.scenes._pen import Dice
from transformer_lib.datasets.scenes._rooms import HEIGHT

__all__ = ["LABELS", "NEW_LABELS", "Scene", "draw_object", "draw_scene", "to_coco"]

LABELS: tuple[str, ...] = (
    "clock",
    "horse",
    "person",
    "cat",
    "potted plant",
    "dining table",
    "vase",
    "donut",
    "cup",
    "chair",
)
NEW_LABELS: tuple[str, ...] = ("fried chicken", "beer")

_SPLITS = ("train", "valid", "test", "unfamiliar")
_SMALLEST_SIDE = 32  # where the smallest objects are four pixels wide
_MOST_OBJECTS = 20


@dataclass(frozen=True)
class Scene:
    """A picture and the objects in it.

    Attributes:
        image: The picture, RGB.
        boxes: For each object (xmin, ymin, xmax, ymax) in pixels from the upper left corner: the
            extent of the pixels that the object covers, before the picture is blurred, to half a
            pixel. It ends at the border of the picture, and includes what nearer objects hide.
            The furthest object comes first.
        labels: The name of each object.
    """

    image: Image.Image
    boxes: tuple[Box, ...]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.boxes):
            raise ValueError(
                f"labels: expected one for each of {len(self.boxes)} boxes, got {len(self.labels)}"
            )


def draw_scene(
    seed: int,
    *,
    split: str = "train",
    size: tuple[int, int] = (160, 128),
    labels: Sequence[str] = LABELS,
    objects: int | None = None,
) -> Scene:
    """Draw a scene.

    Every number comes from a hash of the split and the seed, so that no two splits share a scene,
    and a scene can be drawn again anywhere, on its own. At another size it is the same scene,
    stretched if the ratio of its sides is not 5 to 4; boxes scale, up to rounding, and only the
    grain of the picture differs. Other labels make another scene.

    Some families of shapes and some rooms are held out: train and valid never show them, test draws
    from all, unfamiliar from the held-out ones alone.

    Nearer objects hide at most about half of another, three quarters of its box are inside the
    picture, and its box has between 1 and 40 per cent of the picture's area.

    Args:
        seed: Any integer from 0.
        split: ``"train"``, ``"valid"``, ``"test"`` or ``"unfamiliar"``.
        size: Width and height in pixels, each at least 32.
        labels: The names to draw from, all with the same chance: of ``LABELS`` and ``NEW_LABELS``.
        objects: The number of objects, at most 20; fewer are drawn where there is no room. 3 to 9,
            most often 5, if not given.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range or not known.
    """
    _check(seed, split, size)
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise TypeError(f"labels: expected a sequence of names, got {labels!r}")
    if not labels:
        raise ValueError("labels: expected at least one name, got none")
    for label in labels:
        _check_label("labels", label)
    if objects is not None:
        _check_integer("objects", objects)
        if not 1 <= objects <= _MOST_OBJECTS:
            raise ValueError(f"objects: expected 1 to {_MOST_OBJECTS}, got {objects}")
    d = Dice("scene", split, seed)
    usual = d.pick([3, 4, 5, 5, 5, 6, 6, 7, 8, 9])
    floor = d.between(0.45, 0.72) * HEIGHT
    things = layout(d, split, labels, usual if objects is None else objects, floor)
    image, boxes = paint(Dice("picture", split, seed), split, size, things, floor)
    return Scene(image, tuple(boxes), tuple(thing.label for thing in things))


def draw_object(
    seed: int, label: str, *, split: str = "train", size: tuple[int, int] = (160, 128)
) -> Scene:
    """Draw one object in a room, large or small and at any place.

    Args:
        seed: Any integer from 0.
        label: One of ``LABELS`` or ``NEW_LABELS``.
        split: As for ``draw_scene``.
        size: As for ``draw_scene``.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range or not known.
    """
    _check(seed, split, size)
    _check_label("label", label)
    d = Dice("object", split, seed, label)
    floor = d.between(0.4, 0.75) * HEIGHT
    thing = one_thing(d, label, split)
    image, boxes = paint(d, split, size, [thing], floor)
    return Scene(image, tuple(boxes), (label,))


def to_coco(
    scenes: Iterable[Scene],
    folder: str | os.PathLike[str] | None = None,
    *,
    labels: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return scenes as COCO writes annotations, and write them to a folder if one is given.

    Images and annotations are numbered from 1, categories from 0. A box is
    ``[xmin, ymin, width, height]``; its area stands for the object's, which has no outline here.

    Args:
        scenes: Any number of scenes.
        folder: Where to write ``annotations.json`` and the pictures, ``000001.png`` and so on. It
            is made if need be; files of these names are replaced.
        labels: The categories, a name's place being its number. ``LABELS`` if not given, followed
            by ``NEW_LABELS`` if one of them occurs.

    Raises:
        ValueError: A scene has a label that is not among ``labels``.
    """
    path = None if folder is None else Path(folder)
    if path is not None:
        path.mkdir(parents=True, exist_ok=True)
    images: list[dict[str, Any]] = []
    found: list[tuple[int, str, Box]] = []
    for number, scene in enumerate(scenes, start=1):
        name = f"{number:06}.png"
        width, height = scene.image.size
        images.append({"id": number, "file_name": name, "width": width, "height": height})
        found += [(number, *pair) for pair in zip(scene.labels, scene.boxes, strict=True)]
        if path is not None:
            scene.image.save(path / name)
    if labels is None:
        new = any(label in NEW_LABELS for _, label, _ in found)
        labels = LABELS + NEW_LABELS if new else LABELS
    numbers = {label: number for number, label in enumerate(labels)}
    annotations = []
    for number, (image, label, (x0, y0, x1, y1)) in enumerate(found, start=1):
        if label not in numbers:
            expected = ", ".join(numbers)
            raise ValueError(f"scenes: expected labels among {expected}; scene {image} has {label}")
        annotations.append(
            {
                "id": number,
                "image_id": image,
                "category_id": numbers[label],
                "bbox": [x0, y0, x1 - x0, y1 - y0],
                "area": (x1 - x0) * (y1 - y0),
                "iscrowd": 0,
            }
        )
    categories = [{"id": number, "name": label} for label, number in numbers.items()]
    coco = {"images": images, "annotations": annotations, "categories": categories}
    if path is not None:
        (path / "annotations.json").write_text(json.dumps(coco), encoding="utf-8")
    return coco


def _check(seed: object, split: object, size: object) -> None:
    _check_integer("seed", seed)
    if isinstance(seed, int) and seed < 0:
        raise ValueError(f"seed: expected 0 or more, got {seed}")
    if split not in _SPLITS:
        raise ValueError(f"split: expected {', '.join(map(repr, _SPLITS))}, got {split!r}")
    if not isinstance(size, Sequence) or isinstance(size, str) or len(size) != 2:
        raise TypeError(f"size: expected width and height, got {size!r}")
    for side in size:
        _check_integer("size", side)
    if min(size) < _SMALLEST_SIDE:
        raise ValueError(
            f"size: expected at least {_SMALLEST_SIDE} pixels along either side, got {tuple(size)}"
        )


def _check_integer(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: expected an integer, got {value!r}")


def _check_label(name: str, label: object) -> None:
    if label not in LABELS + NEW_LABELS:
        known = ", ".join(map(repr, LABELS + NEW_LABELS))
        raise ValueError(f"{name}: expected one of {known}, got {label!r}")
