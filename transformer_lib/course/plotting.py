"""Pictures in the book's style; needs the extra ``plots`` (matplotlib and a Korean font).

Pictures are drawn for paper: dark ink on white, 7.2 inches wide, so that text has one size
throughout the book. The drawing functions take ``ax``; given one, they make no figure. Without,
they make one figure and leave showing and closing it to the caller. The functions ``explore_…`` are
those of :mod:`transformer_lib.course.explorers`, which needs no extra.
"""

import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

try:
    import matplotlib.pyplot as plt
    from cycler import cycler
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "transformer_lib.course.plotting needs matplotlib: install building-the-transformer[plots]"
    ) from error

from transformer_lib.course.explorers import (
    explore_attention,
    explore_detections,
    explore_masks,
    explore_positions,
    explore_softmax,
    explore_weighted_sum,
)
from transformer_lib.detection.drawing import korean_font

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PURPLE",
    "RED",
    "arrows",
    "explore_attention",
    "explore_detections",
    "explore_masks",
    "explore_positions",
    "explore_softmax",
    "explore_weighted_sum",
    "figure",
    "heatmap",
    "korean_font",
    "use_style",
]

# Told apart with red-green deficiency, and as dark as text on white needs (contrast 4.5 or more).
BLUE, ORANGE, GREEN = "#0b6bb3", "#b85400", "#00785a"
RED, PURPLE, GREY = "#c0293b", "#8a4a9e", "#5f6670"

_WIDTH = 7.2


def use_style() -> None:
    """Set matplotlib's rcParams to the book's style for the rest of the session.

    In a notebook figures keep their full width, which Jupyter would else crop.
    ``matplotlib.rcdefaults()`` undoes the style. Korean text needs a font that has it: see
    :func:`korean_font`.
    """
    families = ["DejaVu Sans"]
    if font := korean_font():
        families.append(font)
    else:
        warnings.warn(
            "no font with Korean letters: install building-the-transformer[plots]", stacklevel=2
        )
    plt.rcParams.update(
        {
            "font.family": families,
            "font.size": 9.5,
            "axes.titlesize": 10,
            "axes.labelsize": 9.5,
            "axes.prop_cycle": cycler(color=[BLUE, ORANGE, GREEN, RED, PURPLE, GREY]),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": GREY,
            "axes.grid": False,
            "grid.color": "#d9dce0",
            "grid.linewidth": 0.6,
            "legend.frameon": False,
            "lines.linewidth": 1.8,
            "image.cmap": "Blues",
            "figure.dpi": 180,
            "figure.facecolor": "white",
            "figure.figsize": (_WIDTH, 3.0),
            "figure.constrained_layout.use": True,
            "savefig.facecolor": "white",
        }
    )
    if (ipython := sys.modules.get("IPython")) and (shell := ipython.get_ipython()):
        shell.run_line_magic("config", "InlineBackend.print_figure_kwargs = {'bbox_inches': None}")


def figure(
    height: float = 3.0, rows: int = 1, columns: int = 1, **subplots_options: Any
) -> tuple[Figure, Any]:
    """Make one figure of the book's width.

    Args:
        height: Height in inches.
        rows: Rows of axes.
        columns: Columns of axes.
        **subplots_options: Passed on to ``matplotlib.pyplot.subplots``.

    Returns:
        The figure and its axes: one Axes, or an array of them as ``subplots`` gives it.
    """
    return plt.subplots(rows, columns, figsize=(_WIDTH, height), **subplots_options)


def heatmap(
    matrix: Tensor,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    *,
    ax: Axes | None = None,
    title: str | None = None,
    annotate: bool | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
    diverging: bool = False,
) -> Axes:
    """Draw a matrix as coloured cells, row 0 at the top.

    Args:
        matrix: Numbers of shape (rows, columns).
        rows: Labels of the rows.
        columns: Labels of the columns.
        ax: Where to draw; a new figure when None.
        title: Title above the cells.
        annotate: Write the numbers into the cells; by default when there are at most 64.
        vmin: Number that gets the lightest colour; by default the smallest finite one.
        vmax: Number that gets the darkest colour; by default the largest finite one. Infinite
            numbers and NaN get none.
        diverging: Red below zero and blue above it, with white at zero.

    Returns:
        The Axes drawn on.

    Raises:
        ValueError: ``matrix`` has not two axes, or the labels do not fit it.
    """
    matrix = torch.as_tensor(matrix).detach().float().cpu()
    if matrix.dim() != 2:
        raise ValueError(f"matrix: expected 2 axes (rows, columns), got {tuple(matrix.shape)}")
    for name, labels, size in (("rows", rows, len(matrix)), ("columns", columns, matrix.shape[1])):
        if labels is not None and len(labels) != size:
            raise ValueError(f"{name}: expected {size} labels, got {len(labels)}")
    if ax is None:
        _, ax = figure(0.9 + 0.42 * len(matrix))
    finite = matrix[matrix.isfinite()] if matrix.isfinite().any() else torch.zeros(1)
    low = float(finite.min()) if vmin is None else vmin
    high = float(finite.max()) if vmax is None else vmax
    if diverging:
        high = max(abs(low), abs(high))
        low = -high
    coloured = matrix.where(matrix.isfinite(), torch.nan).numpy()
    ax.imshow(coloured, vmin=low, vmax=high, cmap="RdBu" if diverging else "Blues", aspect="equal")
    ax.set_xticks(range(matrix.shape[1]), labels=columns)
    ax.set_yticks(range(len(matrix)), labels=rows)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if title is not None:
        ax.set_title(title)
    if matrix.numel() <= 64 if annotate is None else annotate:
        span = (high - low) or 1.0
        for row, values in enumerate(matrix.tolist()):
            for column, value in enumerate(values):
                depth = abs(value) / high if diverging and high else (value - low) / span
                ink = "white" if depth > 0.6 and math.isfinite(value) else "black"
                label = f"{value:.2f}".replace("-", "−").replace("inf", "∞")
                ax.text(column, row, label, ha="center", va="center", color=ink, size=8.5)
    return ax


def arrows(
    vectors: Mapping[str, Tensor], *, ax: Axes | None = None, title: str | None = None
) -> Axes:
    """Draw named vectors of the plane from the origin, one colour each, axes to one scale.

    Args:
        vectors: Vectors of shape (2,) under the names written at their heads.
        ax: Where to draw; a new figure when None.
        title: Title above the picture.

    Returns:
        The Axes drawn on.

    Raises:
        ValueError: A vector has not exactly two entries.
    """
    if ax is None:
        _, ax = figure(3.4)
    colours = plt.rcParams["axes.prop_cycle"].by_key()["color"]
    heads = []
    for number, (name, vector) in enumerate(vectors.items()):
        head = torch.as_tensor(vector).detach().float().cpu()
        if head.shape != (2,):
            raise ValueError(f"vectors: {name} must have shape (2,), got {tuple(head.shape)}")
        colour = colours[number % len(colours)]
        x, y = head.tolist()
        arrow = {"arrowstyle": "-|>", "color": colour, "lw": 1.8, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (x, y), (0, 0), arrowprops=arrow)
        side = 1 if x >= 0 else -1
        ax.annotate(
            name,
            (x, y),
            (4 * side, 4 if y >= 0 else -4),
            textcoords="offset points",
            ha="left" if side > 0 else "right",
            va="bottom" if y >= 0 else "top",
            color=colour,
        )
        heads.append((x, y))
    points = torch.tensor([(0.0, 0.0), *heads])
    margin = 0.25 * float((points.amax(0) - points.amin(0)).max()) or 1.0
    (left, bottom), (right, top) = (
        (points.amin(0) - margin).tolist(),
        (points.amax(0) + margin).tolist(),
    )
    ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    ax.axhline(0, color="#c4c8ce", lw=0.8, zorder=0)
    ax.axvline(0, color="#c4c8ce", lw=0.8, zorder=0)
    if title is not None:
        ax.set_title(title)
    return ax
