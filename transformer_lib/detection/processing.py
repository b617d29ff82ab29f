"""Pictures to pixels, and predictions to boxes in pixels.

Explained in chapter 17, "DETR" (book/17_detr.ipynb). Generated from there by tools/export.py; edit
the notebook.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from PIL import Image
from torch import Tensor

from transformer_lib._checks import detection as check
from transformer_lib.detection import published
from transformer_lib.detection.boxes import to_corners, widen
from transformer_lib.detection.detr import DETR, Predictions

__all__ = ["Detections", "ImageProcessor", "Pixels", "detect", "postprocess"]


class Pixels(NamedTuple):
    """A batch as a DETR takes it: ``model(*pixels)``."""

    pixels: Float[Tensor, "batch 3 height width"]
    """Normalised pictures, 0 in the padding, float32."""
    pixel_mask: Bool[Tensor, "batch height width"]
    """True on real pixels."""


@dataclass(frozen=True)
class ImageProcessor:
    """Turns pictures into the pixels that a DETR takes."""

    shortest_edge: int = 800
    """Pixels of the shorter edge after resizing."""
    longest_edge: int = 1333
    """Pixels that the longer edge may have at most, up to rounding; where it would get more, the
    shorter gets fewer."""
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    """Subtracted from red, green and blue, which run from 0 to 1."""
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)
    """What they are divided by then."""

    def __post_init__(self) -> None:
        """Refuse what cannot be, naming the field."""
        check.image_processor(self)

    def __call__(self, images: Sequence[Image.Image]) -> Pixels:
        """Resize, normalise and pad pictures of mode "RGB"."""
        check.pictures(images)
        pictures = [self._picture(image) for image in images]
        height, width = (max(p.shape[axis] for p in pictures) for axis in (1, 2))
        pixels = torch.zeros(len(pictures), 3, height, width)
        pixel_mask = torch.zeros(len(pictures), height, width, dtype=torch.bool)
        for number, picture in enumerate(pictures):
            rows, columns = picture.shape[1:]
            pixels[number, :, :rows, :columns] = picture
            pixel_mask[number, :rows, :columns] = True
        return Pixels(pixels, pixel_mask)

    def resized(self, width: int, height: int) -> tuple[int, int]:
        """Return the width and height that a picture of these gets; neither is below 1."""
        edge: float = self.shortest_edge
        if max(width, height) / min(width, height) * edge > self.longest_edge:
            edge = self.longest_edge * min(width, height) / max(width, height)
        if min(width, height) == round(edge):
            return width, height
        shorter = max(1, round(edge))
        longer = max(1, int(edge * max(width, height) / min(width, height)))
        return (shorter, longer) if width < height else (longer, shorter)

    def _picture(self, image: Image.Image) -> Tensor:
        image = image.resize(self.resized(*image.size), Image.Resampling.BILINEAR)
        data = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
        colours = data.view(image.height, image.width, 3).permute(2, 0, 1)
        mean, std = (torch.tensor(numbers)[:, None, None] for numbers in (self.mean, self.std))
        return (colours / 255 - mean) / std

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write ``preprocessor_config.json``, as transformers has it, into ``folder``."""
        published.write_processor(folder, self)

    @classmethod
    def from_pretrained(cls, name: str | os.PathLike[str]) -> "ImageProcessor":
        """Read the ``preprocessor_config.json`` of a model in a folder, or on the hub."""
        return published.read_processor(name, cls)


class Detections(NamedTuple):
    """What was found in a picture, in the order of the queries."""

    scores: Float[Tensor, " found"]
    """Probability of the class."""
    labels: Int[Tensor, " found"]
    """Class ids."""
    boxes: Float[Tensor, "found 4"]
    """(xmin, ymin, xmax, ymax) in pixels; they may reach a little beyond the picture's edges."""


def postprocess(
    predictions: Predictions, sizes: Sequence[tuple[int, int]], *, threshold: float = 0.5
) -> list[Detections]:
    """Read detections off predictions.

    Each query tells of its most probable class, and never of "no object", the last output. Half
    precision is computed in float32. A NaN is not above the threshold.

    Args:
        predictions: What a DETR returned.
        sizes: (width, height) of each picture as it was before it was resized and padded: Pillow's
            ``image.size``.
        threshold: Only scores *above* it count, so that 0 keeps every query and 1 none.
    """
    check.postprocess(predictions, sizes, threshold)
    logits, boxes = widen(predictions.logits), widen(predictions.boxes)
    scores, labels = logits.softmax(dim=-1)[..., :-1].max(dim=-1)
    scale = boxes.new_tensor([[*size, *size] for size in sizes]).view(-1, 1, 4)
    corners = to_corners(boxes) * scale
    return [
        Detections(scores[number][kept], labels[number][kept], corners[number][kept])
        for number, kept in enumerate(scores > threshold)
    ]


@torch.no_grad()
def detect(
    model: DETR,
    processor: ImageProcessor,
    images: Sequence[Image.Image],
    *,
    threshold: float = 0.5,
) -> list[Detections]:
    """Return what a model finds in each of some pictures, with scores above ``threshold``.

    Those whose pixels have one size go through the model together, so that none is padded, and what
    is found in one does not depend on the others.
    """
    encoded = [processor([image])[0] for image in images]
    results: dict[int, Detections] = {}
    for shape in dict.fromkeys(pixels.shape for pixels in encoded):
        alike = [number for number, pixels in enumerate(encoded) if pixels.shape == shape]
        predictions = model(torch.cat([encoded[number] for number in alike]).to(model.queries))
        check.detected(predictions)
        sizes = [images[number].size for number in alike]
        found = postprocess(predictions, sizes, threshold=threshold)
        results |= zip(alike, found, strict=True)
    return [results[number] for number in range(len(images))]
