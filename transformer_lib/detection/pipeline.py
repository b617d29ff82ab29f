"""The object detection pipeline: pictures in, names and boxes out.

Explained in chapter 18, "The object detection pipeline" (book/18_object_detection_pipeline.ipynb).
Generated from there by tools/export.py; edit the notebook.
"""

import copy
import difflib
import math
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, cast

import torch
from PIL import Image

from transformer_lib._checks import detection_pipeline as check
from transformer_lib.detection.detr import DETR
from transformer_lib.detection.images import is_stored, load_image
from transformer_lib.detection.processing import Detections, ImageProcessor, detect
from transformer_lib.hub import find_published

__all__ = ["ObjectDetectionPipeline", "pipeline"]


class ObjectDetectionPipeline:
    """A detector with all that stands around it: pictures in, names and boxes out.

    ::

        detector = pipeline("object-detection")
        detector("photo.jpg")

    Args:
        model: A detector; it is put into evaluation mode and stays on its device.
        processor: What makes the model's input of pictures, as it was in training.
        threshold: Scores above it are reported, if a call says nothing else.
        batch_size: Pictures that are loaded at a time, if a call says nothing else.
    """

    def __init__(
        self,
        model: DETR,
        processor: ImageProcessor,
        *,
        threshold: float = 0.5,
        batch_size: int = 1,
    ) -> None:
        check.detection_pipeline(processor, threshold, batch_size)
        self.model, self.processor = model.eval(), processor
        self.threshold, self.batch_size = threshold, batch_size

    def __call__(
        self,
        images: Any,
        *,
        threshold: float | None = None,
        batch_size: int | None = None,
        timeout: float | None = 30.0,
        allow_private_addresses: bool = False,
    ) -> Any:
        """Find the objects in one picture or many.

        A picture, as :func:`load_image` takes it, gives a list with a dictionary for each object in
        the order of the model's queries: "score", a probability; "label", a name; "box", the whole
        numbers "xmin", "ymin", "xmax" and "ymax", pixels of the upright picture from its upper left
        edge, rounded outwards but for a thousandth and cut at its edges. A list or tuple of
        pictures gives a list of such lists, other iterables and datasets a generator of them, which
        loads pictures as results are asked for; an error says which, counted from 0.

        ``threshold`` and ``batch_size`` are those of the pipeline by default, and ``timeout`` and
        ``allow_private_addresses`` go to :func:`load_image`.

        Source: Wolf et al. (2020), whose boxes are cut off to whole pixels and may reach outside.
        """
        threshold = self.threshold if threshold is None else threshold
        batch_size = self.batch_size if batch_size is None else batch_size
        check.pipeline_call(threshold, batch_size)
        load = partial(load_image, timeout=timeout, allow_private_addresses=allow_private_addresses)
        if isinstance(images, Image.Image) or is_stored(images) or hasattr(images, "__array__"):
            return self._detect([load(images)], threshold)[0]
        check.pictures(images)
        results = self._stream(_each(images), load, threshold, batch_size)
        return list(results) if isinstance(images, list | tuple) else results

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write model and processor in Hugging Face's layout, for :func:`pipeline` to read.

        Where transformers reads them otherwise is said at
        :meth:`transformer_lib.detection.detr.DETR.save_pretrained`.
        """
        self.model.save_pretrained(folder)
        self.processor.save_pretrained(folder)

    def _stream(
        self,
        images: Iterable[Any],
        load: Callable[..., Image.Image],
        threshold: float,
        batch_size: int,
    ) -> Iterator[list[dict[str, Any]]]:
        waiting: list[Image.Image] = []
        for number, image in enumerate(images):
            waiting.append(load(image, name=f"images[{number}]"))
            if len(waiting) == batch_size:
                yield from self._detect(waiting, threshold)
                waiting = []
        yield from self._detect(waiting, threshold)

    def _detect(self, pictures: list[Image.Image], threshold: float) -> list[list[dict[str, Any]]]:
        found = detect(self.model, self.processor, pictures, threshold=threshold)
        pairs = zip(found, pictures, strict=True)
        return [self._named(detections, picture.size) for detections, picture in pairs]

    def _named(self, detections: Detections, size: tuple[int, int]) -> list[dict[str, Any]]:
        rows = zip(*(column.tolist() for column in detections), strict=True)
        return [
            {"score": score, "label": self.model.config.labels[label], "box": _whole(box, size)}
            for score, label, box in rows
        ]


def _each(images: Any) -> Iterable[Any]:
    if isinstance(images, Iterable):
        return images
    return (images[place] for place in range(len(images)))  # a dataset


def _whole(box: list[float], size: tuple[int, int]) -> dict[str, int]:
    """Return the smallest box of whole pixels around the part of ``box`` that is in the picture."""
    least = [math.floor(side + 1e-3) for side in box[:2]]
    greatest = [math.ceil(side - 1e-3) for side in box[2:]]
    corners = (min(max(side, 0), end) for side, end in zip(least + greatest, size * 2, strict=True))
    return dict(zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True))


def pipeline(
    task: str = "object-detection",
    model: str | os.PathLike[str] | DETR = "scenes-detr",
    *,
    image_processor: ImageProcessor | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
    threshold: float = 0.5,
    batch_size: int = 1,
) -> ObjectDetectionPipeline:
    """Make a pipeline: a model and what stands around it.

    Args:
        task: "object-detection".
        model: "scenes-detr", which comes with the library and knows drawn rooms; a folder in
            Hugging Face's layout; a name on its hub, such as "facebook/detr-resnet-50"; or a model.
        image_processor: What prepares pictures; by default what is saved with the model. With a
            model that is no name it must be given.
        device: Where to compute; by default where the model is.
        dtype: Type of the weights; by default that of the model. With ``device`` or ``dtype`` a
            model that is given stays as it is, and a copy is used.
        threshold: As for :class:`ObjectDetectionPipeline`.
        batch_size: Likewise.
    """
    check.pipeline(task, model, DETR, image_processor, dtype)
    if not isinstance(model, DETR):
        model, image_processor = _read_model(model, image_processor)
    processor = cast("ImageProcessor", image_processor)  # which the guard has seen to
    if device is not None or dtype is not None:
        model = copy.deepcopy(model).to(device=device, dtype=dtype)
    options: dict[str, Any] = {"threshold": threshold, "batch_size": batch_size}
    return ObjectDetectionPipeline(model, processor, **options)


def _read_model(
    name: str | os.PathLike[str], processor: ImageProcessor | None
) -> tuple[DETR, ImageProcessor]:
    try:
        folder = find_published(name)
        return DETR.from_pretrained(folder), processor or ImageProcessor.from_pretrained(folder)
    except (FileNotFoundError, ValueError) as error:
        message = str(error).removeprefix("name: ").removeprefix("file: ")
        near = difflib.get_close_matches(str(name), _KNOWN, n=1)
        hint = f"; is {near[0]} meant?" if near and near[0] != name else ""
        kind = FileNotFoundError if isinstance(error, FileNotFoundError) else ValueError
        raise kind(f"model: {message}{hint}") from None


_KNOWN = ("scenes-detr", "facebook/detr-resnet-50", "facebook/detr-resnet-101")
