"""Pictures whose objects are described in COCO's JSON."""

import json
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from transformer_lib._checks.common import require_pixels
from transformer_lib.detection.images import load_image, open_image

__all__ = ["AnnotatedImage", "read_coco"]

_Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class AnnotatedImage:
    """A picture in a file, with the boxes and names of the objects in it."""

    file: Path
    """The picture's file."""
    boxes: tuple[_Box, ...]
    """(xmin, ymin, xmax, ymax) of each object, in pixels of the upright picture."""
    labels: tuple[str, ...]
    """The name of each object."""
    areas: tuple[float, ...] | None = None
    """Area of each object in square pixels, which decides on its size. By default that of the box."""
    crowds: tuple[tuple[str, _Box], ...] = ()
    """Name and box of each crowd. It is no object, and what is found there is not scored."""

    @property
    def image(self) -> Image.Image:
        """The picture, read anew each time."""
        return load_image(self.file)


def read_coco(
    annotations: str | os.PathLike[str], images: str | os.PathLike[str]
) -> list[AnnotatedImage]:
    """Read pictures whose objects are described in COCO's JSON.

    Of the file "images" (id, file_name), "annotations" (image_id, category_id, bbox, area, iscrowd)
    and "categories" (id, name) are read. A bbox is [x, y, width, height] in pixels. The ids of
    annotations are not, so that each counts once, whether or not another has its id.

    Returns the pictures in the file's order, those without objects too. Boxes are cut at the
    picture's edges; those without area are left out, and a warning says how many. A file that is
    no JSON, lacks a field, has a value that cannot be right, such as a box that reaches outside of
    its picture, or does not fit the pictures is refused; the message names the entry.

    Args:
        annotations: The JSON file.
        images: The folder that the file names are relative to.

    Source: Lin et al. (2014).
    """
    table, folder = _read_json(Path(annotations)), Path(images)
    if not folder.is_dir():
        raise FileNotFoundError(f"images: there is no such folder: {folder}")
    names: dict[int, str] = {}
    for where, entry in _entries(table, "categories"):
        number, name = _field(entry, "id", int, where), _field(entry, "name", str, where)
        if number in names or name in names.values():
            raise ValueError(f"{where}: id {number} or name {name!r} is there twice")
        names[number] = name
    pictures: dict[int, tuple[Path, tuple[int, int]]] = {}
    for where, entry in _entries(table, "images"):
        number = _field(entry, "id", int, where)
        if number in pictures:
            raise ValueError(f"{where}: id {number} is there twice")
        file = folder / _field(entry, "file_name", str, where)
        pictures[number] = file, _size(file, entry, where)
    found: dict[int, list[tuple[_Box, str, float]]] = {number: [] for number in pictures}
    crowds: dict[int, list[tuple[str, _Box]]] = {number: [] for number in pictures}
    empty, greatest = 0, 0.0
    for where, entry in _entries(table, "annotations"):
        picture = _field(entry, "image_id", int, where)
        category = _field(entry, "category_id", int, where)
        for name, number, known in (
            ("image_id", picture, pictures),
            ("category_id", category, names),
        ):
            if number not in known:
                raise ValueError(f"{where}: {name} {number} is the id of none")
        box = _corners_of(_field(entry, "bbox", list, where), pictures[picture][1], where)
        greatest = max(greatest, *map(float, entry["bbox"]))
        if (crowd := entry.get("iscrowd")) not in (None, 0, 1):
            raise ValueError(f"{where}: expected 'iscrowd' to be 0 or 1, got {crowd!r}")
        if crowd:
            crowds[picture].append((names[category], box))
        elif box[0] < box[2] and box[1] < box[3]:
            found[picture].append((box, names[category], _area_of(entry, where)))
        else:
            empty += 1
    require_pixels("annotations", greatest)
    if empty:
        warnings.warn(f"annotations: {empty} boxes without area are left out", stacklevel=2)
    return [
        AnnotatedImage(
            file,
            tuple(box for box, _, _ in found[number]),
            tuple(name for _, name, _ in found[number]),
            tuple(area for _, _, area in found[number]),
            tuple(crowds[number]),
        )
        for number, (file, _) in pictures.items()
    ]


def _read_json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise FileNotFoundError(f"annotations: there is no such file: {file}")
    try:
        table = json.loads(file.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"annotations: {file} is no JSON: {error}") from None
    if not isinstance(table, dict):
        raise ValueError(
            f"annotations: expected images, annotations and categories, got {type(table).__name__}"
        )
    return table


def _entries(table: dict[str, Any], part: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the entries of a part, each after words that say which it is."""
    if not isinstance(table.get(part), list):
        raise ValueError(f"annotations: expected a list called {part!r} in the file")
    for number, entry in enumerate(table[part]):
        if not isinstance(entry, dict):
            raise ValueError(f"annotations: {part}[{number}]: expected an object, got {entry!r}")
        yield f"annotations: {part}[{number}]", entry


def _field(entry: dict[str, Any], name: str, kind: type, where: str) -> Any:
    if type(entry.get(name)) is not kind:
        got = repr(entry[name]) if name in entry else "none"
        raise ValueError(f"{where}: expected {name!r}, of type {kind.__name__}, got {got}")
    return entry[name]


def _size(file: Path, entry: dict[str, Any], where: str) -> tuple[int, int]:
    """Return a picture's width and height, upright, if they are those of its entry."""
    if not file.is_file():
        raise FileNotFoundError(f"{where}: there is no picture {file}")
    size = load_image(file, name=where).size
    described = entry.get("width", size[0]), entry.get("height", size[1])
    if described != size:
        turned = open_image(file, name=where).size != size
        note = ", once it is turned upright as its EXIF says" if turned else ""
        raise ValueError(
            f"{where}: {file.name} has {size[0]} × {size[1]} pixels{note}, and not "
            f"{described[0]!r} × {described[1]!r}"
        )
    return size


def _corners_of(bbox: list[Any], size: tuple[int, int], where: str) -> _Box:
    if len(bbox) != 4 or any(isinstance(n, bool) or not isinstance(n, int | float) for n in bbox):
        raise ValueError(f"{where}: expected a bbox of four numbers, got {bbox}")
    x, y, width, height = map(float, bbox)
    right, bottom = x + width, y + height
    # a pixel of grace, for those who rounded; NaN is refused
    inside = x >= -1 and y >= -1 and right <= size[0] + 1 and bottom <= size[1] + 1
    if not (inside and width >= 0 and height >= 0):
        corners = 0 <= x < width <= size[0] and 0 <= y < height <= size[1]
        raise ValueError(
            f"{where}: expected a bbox [x, y, width, height] inside of {size[0]} × {size[1]} "
            f"pixels, got {bbox}" + ("; is it [xmin, ymin, xmax, ymax]?" if corners else "")
        )
    return max(x, 0.0), max(y, 0.0), min(right, float(size[0])), min(bottom, float(size[1]))


def _area_of(entry: dict[str, Any], where: str) -> float:
    """Return the area of an object, by default that of its box."""
    area = entry.get("area")
    if area is None:
        return float(entry["bbox"][2] * entry["bbox"][3])
    if isinstance(area, bool) or not isinstance(area, int | float) or not area >= 0:
        raise ValueError(f"{where}: expected 'area' to be a number of at least 0, got {area!r}")
    return float(area)
