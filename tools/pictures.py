"""Draw the site's own pictures into `book/_static/`: logo, favicon and the map of the book.

`python tools/pictures.py` writes them, with `--check` it exits 1 when one is stale. The map knows
from `_toc.yml` which chapters stand; the rest is marked as planned. The pattern in its tile
"Attention" is made of real attention weights.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import torch
import yaml
from torch import Tensor

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from transformer_lib.attention import dot_product_attention  # noqa: E402
from transformer_lib.plotting import BLUE, GREEN, GREY, ORANGE, PURPLE, RED  # noqa: E402

INK, PALE = "#1f2328", "#9aa1ab"


# -- SVG -------------------------------------------------------------------------------------


def tag(name: str, content: str = "", /, **attributes: object) -> str:
    """Write one element; underscores in the names of attributes become hyphens."""
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{number(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{pairs}>{content}</{name}>" if content else f"<{name}{pairs}/>"


def number(value: object) -> object:
    """Round a float, so that the file is the same wherever it is drawn."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def group(parts: Iterable[str], x: float = 0, y: float = 0, **attributes: object) -> str:
    """Put elements into a group that is moved to (x, y)."""
    return tag("g", "".join(parts), transform=f"translate({number(x)} {number(y)})", **attributes)


def line(start: tuple[float, float], end: tuple[float, float], color: str, width: float) -> str:
    """Draw a straight line."""
    (x1, y1), (x2, y2) = start, end
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=color, stroke_width=width)


def dot(centre: tuple[float, float], radius: float, color: str) -> str:
    """Draw a disc."""
    return tag("circle", cx=centre[0], cy=centre[1], r=radius, fill=color)


def box(x: float, y: float, width: float, height: float, **attributes: object) -> str:
    """Draw a rectangle, without filling unless told."""
    return tag("rect", x=x, y=y, width=width, height=height, **({"fill": "none"} | attributes))


def arrow(points: list[tuple[float, float]], color: str, width: float = 2.0) -> str:
    """Draw a line through the points with a head at the last one."""
    (x0, y0), (x, y) = points[-2:]
    length = ((x - x0) ** 2 + (y - y0) ** 2) ** 0.5
    dx, dy = (x - x0) / length * 7, (y - y0) / length * 7
    head = [
        (x, y),
        (x - dx - dy * 0.55, y - dy + dx * 0.55),
        (x - dx + dy * 0.55, y - dy - dx * 0.55),
    ]
    shaft = [*points[:-1], (x - dx, y - dy)]
    return tag("polyline", points=path(shaft), fill="none", stroke=color, stroke_width=width) + tag(
        "polygon", points=path(head), fill=color
    )


def path(points: Iterable[tuple[float, float]]) -> str:
    """Write the coordinates of points."""
    return " ".join(f"{number(float(x))},{number(float(y))}" for x, y in points)


def cells(matrix: Tensor, size: float, color: Callable[[float], tuple[str, float]]) -> list[str]:
    """Draw a matrix as squares; `color` gives each entry's colour and opacity."""
    squares = []
    for row, entries in enumerate(matrix.tolist()):
        for column, entry in enumerate(entries):
            fill, opacity = color(entry)
            squares.append(
                box(
                    column * size,
                    row * size,
                    size - 1.5,
                    size - 1.5,
                    fill=fill,
                    fill_opacity=round(opacity, 2),
                )
            )
    return squares


def svg(width: float, height: float, content: str, title: str) -> str:
    """Wrap elements into a file."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(width)} {number(height)}" '
        f'width="{number(width)}" height="{number(height)}" role="img">'
        f"<title>{title}</title>{content}</svg>\n"
    )


# -- The small pictures, each in a frame of 120 × 84 -------------------------------------------


def weighted_sum() -> list[str]:
    """Three vectors, and inside their triangle the sum with weights .2, .3 and .5."""
    corners = torch.tensor([[14.0, 76.0], [60.0, 8.0], [106.0, 70.0]])
    weights = torch.tensor([0.2, 0.3, 0.5])
    x, y = (weights @ corners).tolist()
    triangle = tag(
        "polygon", points=path(corners.tolist()), fill=GREY, fill_opacity=0.1, stroke=PALE
    )
    colors = (BLUE, GREEN, ORANGE)
    spokes = [
        line((cx, cy), (x, y), color, 12.0 * weight) + dot((cx, cy), 6.0, color)
        for (cx, cy), color, weight in zip(corners.tolist(), colors, weights.tolist(), strict=True)
    ]
    return [triangle, *spokes, dot((x, y), 7.0, INK)]


def inner_product() -> list[str]:
    """Two vectors and the angle between them."""
    arc = tag("path", d="M 48 74 A 34 34 0 0 0 39.2 51.3", fill="none", stroke=GREY, stroke_width=2)
    return [arc, arrow([(14, 74), (108, 74)], BLUE, 3.0), arrow([(14, 74), (74, 12)], ORANGE, 3.0)]


def attention() -> list[str]:
    """Attention weights of five queries over seven keys: each row sums to 1."""
    places = torch.linspace(0, 3, 7)
    key = torch.stack([places.cos(), places.sin()], dim=-1)
    query = 3 * key[[0, 5, 2, 6, 3]]
    weights = dot_product_attention(query, key, torch.eye(7))
    return cells(weights, 16.0, lambda weight: (BLUE, 0.06 + 1.6 * weight))


def jacobian() -> list[str]:
    """The Jacobian of a softmax, positive on the diagonal and negative beside it."""
    s = torch.tensor([0.4, 0.1, 0.3, 0.2])
    matrix = torch.diag(s) - torch.outer(s, s)
    return cells(matrix, 20.0, lambda entry: (RED if entry < 0 else BLUE, 0.1 + 3.4 * abs(entry)))


def heads() -> list[str]:
    """Causal masks of three heads, one behind the other."""
    mask = torch.ones(5, 5).tril()
    parts = []
    for place, color in enumerate((PURPLE, GREEN, BLUE)):
        x, y = 22.0 * (2 - place), 9.0 * (2 - place)
        grid = cells(mask, 12.0, lambda may, color=color: (color, 0.8 if may else 0.1))
        parts.append(group([box(-2, -2, 62.5, 62.5, fill="white"), *grid], x, y))
    return parts


def transformer() -> list[str]:
    """An encoder and a decoder, side by side."""
    encoder = [box(10, y, 40, 15, rx=3, fill=BLUE, fill_opacity=0.8) for y in (29, 49)]
    decoder = [
        box(70, y, 40, 15, rx=3, fill=color, fill_opacity=0.8)
        for y, color in ((9, ORANGE), (29, BLUE), (49, ORANGE))
    ]
    wire = arrow([(30, 29), (30, 16), (60, 16), (60, 36), (69, 36)], GREY)
    feet = [arrow([(30, 82), (30, 66)], GREY), arrow([(90, 82), (90, 66)], GREY)]
    return [*encoder, *decoder, wire, *feet]


def translator() -> list[str]:
    """Words of two languages and the lines between them."""
    top = [(4.0, 22.0), (30.0, 34.0), (68.0, 20.0), (92.0, 26.0)]
    bottom = [(2.0, 30.0), (36.0, 20.0), (60.0, 28.0), (92.0, 24.0)]
    links = ((0, 0), (1, 3), (2, 1), (3, 2))
    lines = [
        line((top[i][0] + top[i][1] / 2, 22), (bottom[j][0] + bottom[j][1] / 2, 62), PALE, 2.0)
        for i, j in links
    ]
    words = [box(x, 10, width, 12, rx=6, fill=BLUE) for x, width in top]
    return [*lines, *words, *(box(x, 62, width, 12, rx=6, fill=ORANGE) for x, width in bottom)]


def detector() -> list[str]:
    """A picture with three objects and the boxes around them."""
    return [
        box(0, 2, 120, 80, rx=4, fill=GREY, fill_opacity=0.1),
        dot((32, 32), 15.0, PALE),
        tag("polygon", points="60,72 76,38 92,72", fill=PALE),
        box(86, 16, 22, 16, fill=PALE),
        box(13, 13, 38, 38, stroke=BLUE, stroke_width=2.5),
        box(56, 34, 40, 42, stroke=ORANGE, stroke_width=2.5),
        box(82, 11, 31, 26, stroke=GREEN, stroke_width=2.5),
    ]


# -- The map ---------------------------------------------------------------------------------


class Stage(NamedTuple):
    """One tile of the map."""

    title: str
    chapters: tuple[int, int]
    draw: Callable[[], list[str]]
    width: float = 120.0

    def caption(self) -> str:
        """Name the chapters."""
        first, last = self.chapters
        return f"chapter {first}" if first == last else f"chapters {first}–{last}"


STAGES = (
    Stage("Weighted sum", (1, 1), weighted_sum),
    Stage("Inner product", (2, 2), inner_product),
    Stage("Attention", (3, 3), attention, 110.5),
    Stage("Softmax Jacobian", (4, 4), jacobian, 78.5),
    Stage("Masks and heads", (5, 7), heads, 104.5),
    Stage("Transformer", (8, 11), transformer),
    Stage("Translator", (12, 14), translator),
    Stage("Object detector", (17, 18), detector),
)


def chapters_that_stand() -> set[int]:
    """Read the numbers of the book's chapters from its table of contents."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    files = [entry["file"] for part in contents["parts"] for entry in part["chapters"]]
    return {int(name[:2]) for name in files if name[:2].isdigit()}


def tile(stage: Stage, width: float, height: float, stands: bool) -> list[str]:
    """Draw one stage: solid when the book has it, dashed when it is planned."""
    frame = box(
        1,
        1,
        width - 2,
        height - 2,
        rx=8,
        stroke=BLUE if stands else PALE,
        stroke_width=1.6 if stands else 1.2,
        stroke_dasharray=None if stands else "5 4",
    )
    picture = group(stage.draw(), (width - stage.width) / 2, 14, opacity=None if stands else 0.55)
    style = {"x": width / 2, "text_anchor": "middle"}
    title = tag("text", stage.title, y=120, font_weight=600, font_size=14.5, fill=INK, **style)
    status = stage.caption() if stands else f"{stage.caption()}, planned"
    return [frame, picture, title, tag("text", status, y=138, font_size=12.5, fill=GREY, **style)]


def book_map(columns: int, width: float, gap: float) -> str:
    """Draw all stages in rows of `columns` tiles, joined by arrows."""
    height = 150.0
    standing = chapters_that_stand()
    parts, ends = [], []
    for place, stage in enumerate(STAGES):
        row, column = divmod(place, columns)
        x, y = column * (width + gap), row * (height + gap)
        stands = set(range(stage.chapters[0], stage.chapters[1] + 1)) <= standing
        parts.append(group(tile(stage, width, height, stands), x, y))
        ends.append((x, y))
    for (x0, y0), (x1, y1) in pairwise(ends):
        if y0 == y1:
            way = [(x0 + width + 2, y0 + height / 2), (x1 - 2, y1 + height / 2)]
        else:
            lane = y0 + height + gap / 2
            down, up = x0 + width / 2, x1 + width / 2
            way = [(down, y0 + height), (down, lane), (up, lane), (up, y1 - 1)]
        parts.append(arrow(way, GREY, 1.8))
    rows = -(-len(STAGES) // columns)
    text = group(parts, font_family="system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif")
    return svg(
        columns * (width + gap) - gap,
        rows * (height + gap) - gap,
        text,
        "From the weighted sum to a translator and an object detector",
    )


def logo() -> str:
    """Draw the logo: a weighted sum of three vectors, in colours for light and dark."""
    corners = [(9.0, 54.0), (30.0, 9.0), (55.0, 50.0)]
    colors = ("#2f8fd8", "#1ea581", "#e07b1f")
    weights = (0.2, 0.3, 0.5)
    x = sum(w * corner[0] for w, corner in zip(weights, corners, strict=True))
    y = sum(w * corner[1] for w, corner in zip(weights, corners, strict=True))
    hull = tag(
        "polygon",
        points=path(corners),
        fill="#7d8590",
        fill_opacity=0.22,
        stroke="#7d8590",
        stroke_opacity=0.4,
        stroke_width=2,
    )
    spokes = "".join(
        line(corner, (x, y), color, 16.0 * w) + dot(corner, 7.5, color)
        for corner, color, w in zip(corners, colors, weights, strict=True)
    )
    return svg(64, 64, hull + spokes + dot((x, y), 8.0, "#7d8590"), "Building the Transformer")


PICTURES = {
    "logo.svg": logo,
    "favicon.svg": logo,
    "map.svg": lambda: book_map(columns=4, width=196.0, gap=26.0),
    "map-narrow.svg": lambda: book_map(columns=2, width=166.0, gap=24.0),
}


def main() -> int:
    """Write the pictures, or compare them when called with `--check`."""
    stale = []
    for name, draw in PICTURES.items():
        target, content = ROOT / "book" / "_static" / name, draw()
        if not target.exists() or target.read_text(encoding="utf-8") != content:
            stale.append(name)
            if "--check" not in sys.argv:
                target.write_text(content, encoding="utf-8", newline="\n")
    for name in stale:
        print(f"{'stale' if '--check' in sys.argv else 'drawn'}: book/_static/{name}")
    return int(bool(stale) and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
