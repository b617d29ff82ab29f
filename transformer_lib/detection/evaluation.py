"""Average precision, as COCO computes it.

Explained in chapter 17, "DETR" (book/17_detr.ipynb). Generated from there by tools/export.py; edit
the notebook.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from PIL import Image

from transformer_lib._checks import detection as check
from transformer_lib.detection.configuration import label_names
from transformer_lib.detection.detr import DETR
from transformer_lib.detection.processing import ImageProcessor, detect

__all__ = ["LabelledImage", "evaluate"]


@runtime_checkable
class LabelledImage(Protocol):
    """A picture and what is in it, such as a scene of ``transformer_lib.datasets.scenes``."""

    @property
    def image(self) -> Image.Image:
        """The picture, in mode "RGB"."""

    @property
    def boxes(self) -> Sequence[tuple[float, float, float, float]]:
        """The box (xmin, ymin, xmax, ymax) of every object, in pixels."""

    @property
    def labels(self) -> Sequence[str]:
        """The name of every object's class."""


def evaluate(
    model: DETR,
    processor: ImageProcessor,
    dataset: Sequence[LabelledImage],
    *,
    batch_size: int = 8,
) -> dict[str, float]:
    """Score a detector by COCO's average precision, from 0 to 1.

    Returns "AP" (the mean over IoU 0.5, 0.55 … 0.95), "AP50" and "AP75", over the 100 surest
    detections a picture, and "AP_small", "AP_medium" and "AP_large" for objects of up to 32², up to
    96² and more square pixels; sizes that no object has are left out. ``batch_size`` pictures are
    held at a time. In a picture without objects every detection is wrong. Items may have
    ``crowds``, pairs of label and box: what is found there counts neither as right nor as wrong;
    and ``areas`` of the objects, which decide on their size instead of their boxes' areas.

    Source: Lin et al. (2014), and the evaluation code that goes with it.
    """
    check.evaluate(model, dataset, batch_size)
    from faster_coco_eval import COCO, COCOeval_faster

    truth = COCO(_truth(dataset, label_names(model.config.labels)))
    found: list[dict[str, Any]] = []
    training = model.training
    model.eval()
    try:
        for first in range(0, len(dataset), batch_size):
            numbers = range(first, min(first + batch_size, len(dataset)))
            images = [dataset[number].image for number in numbers]
            detections = detect(model, processor, images, threshold=0.0)
            for number, (scores, labels, boxes) in zip(numbers, detections, strict=True):
                found += _entries(number, labels.tolist(), boxes.tolist(), score=scores.tolist())
    finally:
        model.train(training)
    scorer = COCOeval_faster(truth, truth.loadRes(found), "bbox")
    scorer.evaluate()
    scorer.accumulate()
    scorer.summarize()
    names = ("AP", "AP50", "AP75", "AP_small", "AP_medium", "AP_large")
    averages = zip(names, map(float, scorer.stats), strict=False)
    return {name: average for name, average in averages if average >= 0}  # −1: no such object


def _truth(dataset: Sequence[LabelledImage], labels: Sequence[str]) -> dict[str, Any]:
    """Return the objects, and crowds of them, in the form that COCO's evaluation takes."""
    categories = [{"id": number, "name": name} for number, name in enumerate(labels)]
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number in range(len(dataset)):
        item = dataset[number]
        width, height = item.image.size  # once: a picture may be read anew each time
        check.labelled_image(number, item, (width, height), labels)
        images.append({"id": number, "width": width, "height": height})
        crowds = tuple(getattr(item, "crowds", ()))
        areas = getattr(item, "areas", None)
        if areas is None:
            areas = [(x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in item.boxes]
        for names, boxes, sizes, crowd in (
            (item.labels, item.boxes, areas, 0),
            ([name for name, _ in crowds], [box for _, box in crowds], [0] * len(crowds), 1),
        ):
            ids = [labels.index(name) for name in names]
            annotations += _entries(number, ids, boxes, area=sizes, iscrowd=[crowd] * len(ids))
    check.annotations(annotations)
    for number, annotation in enumerate(annotations, start=1):  # 0 would count as not found
        annotation["id"] = number
    return {"images": images, "annotations": annotations, "categories": categories}


def _entries(
    picture: int,
    labels: Sequence[int],
    boxes: Sequence[Any],
    **more: Sequence[Any],
) -> list[dict[str, Any]]:
    """Return a picture's boxes as COCO has them, x, y, width, height, with what more is known."""
    return [
        {"image_id": picture, "category_id": label, "bbox": [x0, y0, x1 - x0, y1 - y0]}
        | dict(zip(more, others, strict=True))
        for label, (x0, y0, x1, y1), *others in zip(labels, boxes, *more.values(), strict=True)
    ]
