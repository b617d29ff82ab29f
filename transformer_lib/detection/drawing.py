"""Pictures with the boxes, labels and scores of what was found in them, drawn by matplotlib."""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_lib._checks.common import require_package
from transformer_lib.detection.images import load_image

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle

__all__ = ["draw_detections", "korean_font"]

# Told apart with red-green deficiency, and as dark as white text on them needs.
_PALETTE = ("#0b6bb3", "#c0293b", "#00785a", "#8a4a9e", "#b85400")
_KOREAN_FAMILIES = (
    "NanumGothic",
    "Noto Sans CJK KR",
    "Noto Sans KR",
    "Apple SD Gothic Neo",
    "Malgun Gothic",
)
_SIDES = ("xmin", "ymin", "xmax", "ymax")


def draw_detections(
    image: Any,
    detections: Iterable[Mapping[str, Any]],
    *,
    ax: "Axes | None" = None,
    size: tuple[float, float] | None = None,
) -> "Axes":
    """Draw a picture with the box, the label and the score of each detection.

    A label stands at its box and inside the picture, and on no other label where that can be
    avoided.

    Returns the Axes drawn on. The figure is neither shown nor saved nor closed:
    ``plt.close(ax.figure)`` does the last, for those who draw many. Letters that no font has are
    warned of, and question marks stand for them.

    Args:
        image: The picture that was detected on, as ``load_image`` takes it. It is turned
            upright as it was for the detection.
        detections: What an ``ObjectDetectionPipeline`` returned for it. Without "score" the
            label is written alone.
        ax: Where to draw; a new figure when None.
        size: Width and height of the new figure in inches; by default 7.2 wide, and as high as
            the picture asks, from 1 to 9.
    """
    require_package("matplotlib.pyplot", "drawing needs matplotlib", "plots")
    picture = load_image(image)
    found = [_drawable(detection, number) for number, detection in enumerate(detections)]

    import matplotlib.pyplot as plt

    if ax is None:
        height = min(max(7.2 * picture.height / picture.width, 1.0), 9.0)
        figure = plt.figure(figsize=size or (7.2, height), layout="none")
        ax = figure.add_axes((0, 0, 1, 1))
    ax.imshow(picture, extent=(0, picture.width, picture.height, 0))  # boxes count from the edge
    ax.set_axis_off()
    labels = list(dict.fromkeys(label for label, _, _ in found))
    families, legible = _font_for(" ".join(labels))
    texts = []
    for label, score, box in found:
        colour = _PALETTE[labels.index(label) % len(_PALETTE)]
        ax.add_patch(_frame(box, colour))
        ground = {"boxstyle": "square,pad=0.15", "fc": colour, "ec": "white", "lw": 0.8}
        style: dict[str, Any] = {
            "color": "white",
            "fontsize": 8,
            "family": families,
            "parse_math": False,
        }
        texts.append(ax.text(0, 0, legible(label) + score, bbox=ground, **style))
        texts[-1].set_in_layout(False)
    _place(ax, texts, [box for _, _, box in found], picture.size)
    return ax


def _frame(box: Sequence[float], colour: str) -> "Rectangle":
    """Return a rectangle that has a bright line on both sides."""
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke

    xmin, ymin, xmax, ymax = box
    outline = [withStroke(linewidth=3.5, foreground="white")]
    style: dict[str, Any] = {
        "fill": False,
        "edgecolor": colour,
        "linewidth": 1.8,
        "path_effects": outline,
    }
    return Rectangle((xmin, ymin), xmax - xmin, ymax - ymin, **style)


def _drawable(detection: Mapping[str, Any], number: int) -> tuple[str, str, tuple[float, ...]]:
    """Return label, score in brackets, and box, of a detection that has them."""
    name = f"detections[{number}]"
    if not isinstance(detection, Mapping):
        raise TypeError(f"{name}: expected a dictionary, got {type(detection).__name__}")
    box = detection.get("box")
    if "label" not in detection or not isinstance(box, Mapping) or set(box) != set(_SIDES):
        raise ValueError(
            f"{name}: expected a label, and a box with {', '.join(_SIDES)}, got {dict(detection)}"
        )
    xmin, ymin, xmax, ymax = (float(box[side]) for side in _SIDES)
    if not (-math.inf < xmin <= xmax < math.inf and -math.inf < ymin <= ymax < math.inf):
        raise ValueError(f"{name}: expected maxima that are not below minima, got {dict(box)}")
    if not isinstance(detection.get("score", 0.0), Real):
        raise ValueError(f"{name}: expected a number as score, got {detection['score']!r}")
    score = f" ({detection['score']:.2f})" if "score" in detection else ""
    return str(detection["label"]), score, (xmin, ymin, xmax, ymax)


def _font_for(text: str) -> tuple[list[str], Callable[[str], str]]:
    """Return font families for the letters of a text, and what makes it fit them."""
    import matplotlib.pyplot as plt

    families = list(plt.rcParams["font.family"])
    missing = _without_font(text, families)
    if missing and (font := korean_font()):
        families.append(font)
        missing = _without_font(text, families)
    if missing:
        warnings.warn(
            f"no font with the letters {''.join(missing)}: ? stands for them. Korean ones come "
            "with building-the-transformer[plots]; others go into rcParams['font.family']",
            stacklevel=3,
        )
    unknown = str.maketrans(dict.fromkeys(missing, "?"))
    return families, lambda label: label.translate(unknown)


def _without_font(text: str, families: Sequence[str]) -> list[str]:
    """Return the letters of a text that no font of the families has."""
    from matplotlib import font_manager

    wanted = [font_manager.FontProperties(family=[family]) for family in families]
    fonts = [font_manager.get_font(font_manager.findfont(each)) for each in wanted]
    letters = sorted(letter for letter in set(text) if not letter.isspace())
    return [
        letter for letter in letters if not any(font.get_char_index(ord(letter)) for font in fonts)
    ]


def _place(
    ax: "Axes", texts: Sequence[Any], boxes: Sequence[Sequence[float]], size: tuple[int, int]
) -> None:
    """Move each text to its box: the first place inside the picture with least on other texts."""
    if not texts:
        return
    ax.figure.canvas.figure.draw_without_rendering()  # only what is laid out can be measured
    to_picture = ax.transData.inverted()
    taken: list[tuple[float, float, float, float]] = []
    for text, (xmin, ymin, xmax, ymax) in zip(texts, boxes, strict=True):
        extent = text.get_bbox_patch().get_window_extent().transformed(to_picture)
        left, top = extent.x0, min(extent.y0, extent.y1)  # of a text at (0, 0)
        width, height = extent.width, abs(extent.height)
        places = []
        for x in (xmin, xmax - width):
            for y in (ymin - height, ymin, ymax, ymax - height):
                x_inside = max(min(x, size[0] - width), 0.0)
                y_inside = max(min(y, size[1] - height), 0.0)
                places.append((x_inside, y_inside, x_inside + width, y_inside + height))
        place = min(places, key=lambda place: sum(_shared(place, other) for other in taken))
        taken.append(place)
        text.set_position((place[0] - left, place[1] - top))


def _shared(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the area that two boxes share."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(width, 0.0) * max(height, 0.0)


def korean_font() -> str | None:
    """Return the family name of a font with Korean letters, or None when there is none.

    The font file that comes with the extra ``plots`` is registered by its path, so it is found
    without a system-wide installation and without restarting; else an installed one is taken.
    """
    from matplotlib import font_manager

    fonts = font_manager.fontManager.ttflist
    # The package's own import needs distutils, which Python 3.12 dropped: take only its font.
    if spec := find_spec("koreanize_matplotlib"):
        file = Path(spec.origin or "").parent / "fonts" / "NanumGothic.ttf"
        if file.exists() and str(file) not in {font.fname for font in fonts}:
            font_manager.fontManager.addfont(file)
    installed = {font.name for font in fonts}
    return next((family for family in _KOREAN_FAMILIES if family in installed), None)
