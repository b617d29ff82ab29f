"""Draw the site's own pictures into `book/_static/`.

`python tools/pictures.py` writes them, with `--check` it exits 1 when one is stale. The map of the
book knows from `_toc.yml` which chapters stand; the rest is marked as planned. The pattern in its
tile "Attention" is made of real attention weights. The map of the library is drawn from its
imports, and the translator at work from what the shipped one does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cache, partial
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import torch
import yaml
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath, text_to_path
from PIL import Image, ImageChops, ImageStat
from torch import Tensor

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from imports import Module, library  # noqa: E402

from transformer_lib.attention import dot_product_attention  # noqa: E402
from transformer_lib.course.plotting import (  # noqa: E402
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    korean_font,
)
from transformer_lib.datasets import scenes  # noqa: E402
from transformer_lib.detection.drawing import draw_detections  # noqa: E402
from transformer_lib.detection.pipeline import pipeline  # noqa: E402
from transformer_lib.transformer import record_attention  # noqa: E402
from transformer_lib.translation import END, START, Translator  # noqa: E402

INK, PALE = "#1f2328", "#9aa1ab"
SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


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
    text = group(parts, font_family=SANS)
    return svg(
        columns * (width + gap) - gap,
        rows * (height + gap) - gap,
        text,
        "From the weighted sum to a translator and an object detector",
    )


# -- The library -----------------------------------------------------------------------------

HUES = (BLUE, GREEN, ORANGE, PURPLE, RED)


def library_map(modules: list[Module], step: float, height: float, font: float) -> str:
    """Draw what uses what: names on a staircase, and under each a wire to those that use it.

    A module's row runs from its name to the left, with a dot on the wire of each module that it
    imports. The numbers in front are the chapters that build it.
    """
    letter, margin = 0.61 * font, 4 * font
    left = {module.name: margin + step * place for place, module in enumerate(modules)}
    middle = {module.name: height * (place + 0.5) for place, module in enumerate(modules)}
    hue = {module.name: HUES[place % len(HUES)] for place, module in enumerate(modules)}
    wires, rows = [], []
    for module in modules:
        x, y = left[module.name], middle[module.name]
        users = [user.name for user in modules if module.name in user.uses]
        if users:
            foot = (x + step / 2, middle[users[-1]])
            wires.append(line((x + step / 2, y), foot, hue[module.name], step / 12 + 0.8))
        if module.uses:
            start = left[module.uses[0]] + step / 2
            rows.append(line((start, y), (x, y), PALE, 1.2))
        rows += [dot((left[u] + step / 2, y), step / 9 + 1.6, hue[u]) for u in module.uses]
        width = letter * len(module.name)
        frame = {"rx": 4, "stroke": hue[module.name], "stroke_width": 1.2}
        rows.append(box(x, y - 0.42 * height, width + font, 0.84 * height, **frame, fill="white"))
        name = {"textLength": width, "font_family": "ui-monospace, Menlo, Consolas, monospace"}
        rows.append(tag("text", module.name, x=x + font / 2, y=y + 0.34 * font, fill=INK, **name))
        numbers = ", ".join(str(chapter.number) for chapter in module.chapters)
        at = {"x": margin - 0.7 * font, "y": y + 0.34 * font, "text_anchor": "end"}
        rows.append(tag("text", numbers, fill=GREY, **at) if numbers else "")
    right = max(left[m.name] + letter * len(m.name) + font for m in modules)
    text = group([*wires, *rows], font_family=SANS, font_size=font)
    title = "Which module of the library uses which"
    return svg(right + 1, height * len(modules), text, title)


# -- The translator at work --------------------------------------------------------------------

SENTENCES, AMBIGUOUS = ("인도 카레 전문점", "인도 주행 금지"), "인도"
STEP = 0.42  # seconds a piece; all of it takes less than five


class Piece(NamedTuple):
    """A piece of a word: its letters, and whether a word begins with it."""

    text: str
    begins: bool
    special: bool = False


@cache
def written(sentence: str) -> tuple[list[Piece], list[Piece], Tensor]:
    """Translate a sentence; return its pieces, those of the translation, and the attention.

    The attention is what each piece, while it is being written, pays to the pieces of the source:
    the mean over the heads of the last decoder layer, of shape (target, source).
    """
    translator = Translator.from_pretrained("ko-en")
    tokenizer, model = translator.tokenizer, translator.model
    source = [*tokenizer.encode(sentence).ids, END]
    target = [*tokenizer.encode(translator.translate(sentence)).ids, END]
    with torch.no_grad(), record_attention(model) as weights:
        logits = model(torch.tensor([source]), torch.tensor([[START, *target[:-1]]]))
    assert logits[0].argmax(dim=-1).tolist() == target
    last = weights[f"decoder.layers.{model.config.n_decoder_layers - 1}.cross_attention"]

    def pieces(ids: list[int]) -> list[Piece]:
        tokens = [tokenizer.id_to_token(one) for one in ids[:-1]]
        begun = [Piece(token.removeprefix("▁"), token.startswith("▁")) for token in tokens]
        return [*begun, Piece("end", True, special=True)]

    return pieces(source), pieces(target), last[0].mean(dim=0)


def letters(text: str, size: float) -> tuple[str, float]:
    """Return the outline of a text's letters, so that no reader lacks the font, and its width."""
    font = FontProperties(family=korean_font(), size=size)
    path = []
    for points, code in TextPath((0, 0), text, prop=font).iter_segments():
        corners = [f"{number(x)} {number(-y)}" for x, y in points.reshape(-1, 2).round(1).tolist()]
        path.append({1: "M", 2: "L", 3: "Q"}[code] + " ".join(corners) if code != 79 else "Z")
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, False)
    return "".join(path), float(width)


def row(pieces: list[Piece], y: float, width: float, size: float) -> tuple[list[str], list[float]]:
    """Draw pieces in a row of this width; return each one and the place of its middle.

    The pieces of a word touch each other.
    """
    outlines = [letters(piece.text, size) for piece in pieces]
    inside, between = 0.8 * size, 0.55 * size
    gaps = [between if piece.begins else 2.0 for piece in pieces]
    x = (width - sum(w + inside + g for (_, w), g in zip(outlines, gaps, strict=True))) / 2
    boxes, middles = [], []
    for piece, (outline, wide), gap in zip(pieces, outlines, gaps, strict=True):
        x += gap
        edge = ORANGE if piece.text == AMBIGUOUS else PALE
        frame = box(x, y, wide + inside, 1.9 * size, rx=4, fill="white", stroke=edge)
        ink = tag("path", d=outline, fill=GREY if piece.special else INK)
        boxes.append(frame + group([ink], x + inside / 2, y + 1.32 * size))
        middles.append(x + (wide + inside) / 2)
        x += wide + inside
    return boxes, middles


def writing(sentence: str, width: float, size: float, moving: bool) -> list[str]:
    """Draw how a sentence is translated: each piece with its attention, one after another."""
    source, target, attention = written(sentence)
    height = 9.2 * size
    above, top = row(source, 0.0, width, size)
    below, bottom = row(target, height - 1.9 * size, width, size)
    parts = []
    for step, (piece, x, weights) in enumerate(zip(below, bottom, attention.tolist(), strict=True)):
        lines = [
            tag(
                "line",
                x1=x,
                y1=height - 1.9 * size,
                x2=place,
                y2=1.9 * size,
                stroke=ORANGE if word.text == AMBIGUOUS else BLUE,
                stroke_width=round(1 + 5 * weight, 2),
                stroke_opacity=round(weight, 2),
            )
            for word, place, weight in zip(source, top, weights, strict=True)
            if weight > 0.02
        ]
        delay = f"animation-delay:{number(step * STEP)}s" if moving else None
        parts.append(group(lines, class_="a", style=delay))
        parts.append(group([piece], class_="p", style=delay))
    return [*above, *parts]


APPEAR = """
.a{animation:a 1s both}.p{animation:p .3s both}
@keyframes a{0%{opacity:0}20%,60%{opacity:1}100%{opacity:.4}}@keyframes p{0%{opacity:0}}
"""


def translator_at_work(columns: int, width: float, size: float, *, moving: bool) -> str:
    """Draw both sentences, one beside or under the other; still, all is there at once."""
    high, gap = 9.2 * size, 2.2 * size
    parts = [
        group(
            writing(sentence, width, size, moving),
            (place % columns) * (width + gap),
            (place // columns) * (high + gap) + 1,
        )
        for place, sentence in enumerate(SENTENCES)
    ]
    rows = -(-len(SENTENCES) // columns)
    style = tag("style", APPEAR) if moving else tag("style", ".a{opacity:.6}")
    size_of_all = columns * (width + gap) - gap, rows * (high + gap) - gap + 2
    ground = box(0, 0, *size_of_all, fill="white")
    return svg(*size_of_all, style + ground + "".join(parts), "The translator at work")


# -- The detector at work ----------------------------------------------------------------------


def detector_at_work() -> bytes:
    """Draw what the quick start draws: a scene with what the shipped detector finds in it."""
    image = scenes.draw_scene(8, split="test", size=(480, 384)).image
    with plt.rc_context(
        {"figure.constrained_layout.w_pad": 0, "figure.constrained_layout.h_pad": 0}
    ):
        ax = draw_detections(image, pipeline("object-detection")(image), size=(5.2, 4.2))
        file = BytesIO()
        ax.figure.savefig(file, format="png", dpi=150)
    plt.close(ax.figure)
    return quantized(file.getvalue())


def quantized(png: bytes) -> bytes:
    """Return a picture with 256 colours, a third of the size."""
    file = BytesIO()
    Image.open(BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
        file, "png", optimize=True
    )
    return file.getvalue()


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


PICTURES: dict[str, Callable[[], str | bytes]] = {
    "logo.svg": logo,
    "favicon.svg": logo,
    "map.svg": lambda: book_map(columns=4, width=196.0, gap=26.0),
    "map-narrow.svg": lambda: book_map(columns=2, width=166.0, gap=24.0),
    **{
        f"writing{kind}{pace}.svg": partial(translator_at_work, *shape, moving=not pace)
        for kind, shape in (("", (2, 440.0, 15.0)), ("-narrow", (1, 330.0, 11.5)))
        for pace in ("", "-still")
    },
    "detections.png": detector_at_work,
    "library.svg": lambda: library_map(library(ROOT), step=24.0, height=27.0, font=13.0),
    "library-narrow.svg": lambda: library_map(library(ROOT), step=3.4, height=23.0, font=11.0),
}


def main() -> int:
    """Write the pictures, or compare them when called with `--check`."""
    stale = []
    for name, draw in PICTURES.items():
        target, content = ROOT / "book" / "_static" / name, draw()
        if not target.exists() or not same(target.read_bytes(), content):
            stale.append(name)
            if "--check" not in sys.argv:
                target.write_bytes(content if isinstance(content, bytes) else content.encode())
    for name in stale:
        print(f"{'stale' if '--check' in sys.argv else 'drawn'}: book/_static/{name}")
    return int(bool(stale) and "--check" in sys.argv)


def same(stored: bytes, drawn: str | bytes) -> bool:
    """Tell whether two pictures are the same; those of pixels may be packed in other bytes."""
    if isinstance(drawn, str):
        return stored == drawn.encode()
    one, other = (Image.open(BytesIO(data)).convert("RGB") for data in (stored, drawn))
    if one.size != other.size:
        return False
    return max(ImageStat.Stat(ImageChops.difference(one, other)).mean) < 0.5


if __name__ == "__main__":
    sys.exit(main())
