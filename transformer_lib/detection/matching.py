"""Sets compared with sets: what a pair costs, the assignment, and the loss.

Explained in chapter 17, "DETR" (book/17_detr.ipynb). Generated from there by tools/export.py; edit
the notebook.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from transformer_lib._checks import detection as check
from transformer_lib.detection.boxes import generalized_iou, to_corners, widen
from transformer_lib.detection.detr import Predictions

__all__ = ["Target", "assign", "match", "set_loss"]


@dataclass(frozen=True, eq=False)
class Target:
    """The objects in a picture; without any, of shapes (0,) and (0, 4)."""

    labels: Int[Tensor, " objects"]
    """Class ids, from 0 on."""
    boxes: Float[Tensor, "objects 4"]
    """Boxes (cx, cy, w, h) from 0 to 1, normalised by the picture's width and height."""

    def __post_init__(self) -> None:
        """Refuse what cannot be objects, naming the field."""
        check.target(self.labels, self.boxes)


def assign(
    costs: Float[Tensor, "queries objects"],
) -> tuple[Int[Tensor, " matched"], Int[Tensor, " matched"]]:
    """Give every object a query of its own so that the sum of the costs is least.

    Returns the queries chosen, in ascending order, and the object of each, on the CPU. If there are
    more objects than queries, some objects are left out.

    Source: Kuhn (1955); solved by scipy's ``linear_sum_assignment``.
    """
    check.assign(costs)
    from scipy.optimize import linear_sum_assignment

    queries, objects = linear_sum_assignment(costs.detach().cpu().numpy())
    return torch.from_numpy(queries), torch.from_numpy(objects)


@torch.no_grad()
def match(
    predictions: Predictions,
    targets: Sequence[Target],
    *,
    box_weight: float = 5.0,
    giou_weight: float = 2.0,
) -> list[tuple[Int[Tensor, " matched"], Int[Tensor, " matched"]]]:
    """Match the queries of every picture with its objects.

    What a query costs an object is minus the probability of the object's class, plus ``box_weight``
    times the sum of the differences of their four box numbers, minus ``giou_weight`` times their
    generalised IoU. The last decoder layer counts.

    Returns for each picture what :func:`assign` does. Warns where a picture has more objects than
    there are queries, and refuses boxes that reach out of it by more than a tenth.

    Source: Carion et al. (2020), section 3.1, equation 1, and section A.2.
    """
    check.match(predictions, targets)
    if not targets:
        return []
    # Pictures have different numbers of objects: pad them, and cut the padding's costs off.
    logits, boxes = widen(predictions.logits), widen(predictions.boxes)[:, :, None]
    ids = [target.labels.to(logits.device, torch.int64) for target in targets]
    labels = pad_sequence(ids, batch_first=True)[:, None].expand(-1, logits.shape[1], -1)
    objects = pad_sequence([target.boxes.to(boxes) for target in targets], batch_first=True)
    objects = objects[:, None]
    costs = (boxes - objects).abs().sum(dim=-1) * box_weight
    costs -= generalized_iou(to_corners(boxes), to_corners(objects)) * giou_weight
    costs -= logits.softmax(dim=-1).gather(-1, labels)
    return [assign(c[:, : len(its)]) for c, its in zip(costs.cpu(), ids, strict=True)]


_Pairs = Sequence[tuple[Tensor, Tensor]]


def set_loss(
    predictions: Predictions,
    targets: Sequence[Target],
    *,
    box_weight: float = 5.0,
    giou_weight: float = 2.0,
    no_object_weight: float = 0.1,
) -> dict[str, Tensor]:
    """Compute the loss between sets of predictions and of objects, for every decoder layer.

    Returns "loss", the sum over the decoder layers of "loss_ce" (cross-entropy in nats, the
    weighted mean over all queries), ``box_weight`` times "loss_bbox" (sum of the four differences)
    and ``giou_weight`` times "loss_giou" (1 − generalised IoU), the last two summed over the
    matched queries and divided by the objects in the batch. These parts are the last layer's;
    "loss_ce_0" and so on are the earlier ones'. "class_error" is the percentage of the *matched*
    queries of the last layer whose most probable output is not their object's class; without
    objects it is left out, and the losses of boxes are 0. An empty batch has a loss of 0.

    Source: Carion et al. (2020), section 3.1, equation 2, and sections 3.2 and A.2.
    """
    check.set_loss(predictions, targets)
    layers = [*predictions.auxiliary, (predictions.logits, predictions.boxes)]
    # Each layer is matched anew: all at once, as if they were pictures of one batch.
    every = Predictions(torch.cat([each for each, _ in layers]), torch.cat([b for _, b in layers]))
    weights = {"box_weight": box_weight, "giou_weight": giou_weight}
    pairs = match(every, [*targets] * len(layers), **weights)
    losses: dict[str, Tensor] = {}
    totals = []
    for number, (logits, boxes) in enumerate(layers):
        own, pairs = pairs[: len(targets)], pairs[len(targets) :]
        parts = _layer_losses(widen(logits), widen(boxes), targets, own, no_object_weight)
        totals += [
            part * w for part, w in zip(parts[:3], (1, box_weight, giou_weight), strict=True)
        ]
        suffix = f"_{number}" if number < len(layers) - 1 else ""
        names = ("loss_ce", "loss_bbox", "loss_giou")
        losses |= {name + suffix: part for name, part in zip(names, parts[:3], strict=True)}
    if parts[3] is not None:
        losses["class_error"] = parts[3]
    return {"loss": torch.stack(totals).sum()} | losses


def _layer_losses(
    logits: Tensor,
    boxes: Tensor,
    targets: Sequence[Target],
    pairs: _Pairs,
    no_object_weight: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Return one decoder layer's three losses, and its class error if there are objects."""
    picture, query, label, box = _matched(logits, targets, pairs)
    predicted = boxes[picture, query]
    n_objects = max(1, sum(len(target.labels) for target in targets))
    overlap = generalized_iou(to_corners(predicted), to_corners(box))
    wrong = logits[picture, query].argmax(dim=-1) != label
    return (
        _class_loss(logits, picture, query, label, no_object_weight),
        (predicted - box).abs().sum() / n_objects,
        (1 - overlap).sum() / n_objects,
        100 * wrong.float().mean() if len(label) else None,
    )


def _matched(
    logits: Tensor, targets: Sequence[Target], pairs: _Pairs
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return for every pair of the batch the picture, the query, and the object's label and box."""
    none = torch.zeros(0, dtype=torch.int64)  # an empty batch has nothing to concatenate
    picture = [torch.full_like(queries, number) for number, (queries, _) in enumerate(pairs)]
    query = [queries for queries, _ in pairs]
    chosen = [(target, objects) for target, (_, objects) in zip(targets, pairs, strict=True)]
    label = [target.labels.to(logits.device, torch.int64)[objects] for target, objects in chosen]
    box = [target.boxes.to(logits)[objects] for target, objects in chosen]
    return (
        torch.cat([none, *picture]).to(logits.device),
        torch.cat([none, *query]).to(logits.device),
        torch.cat([none.to(logits.device), *label]),
        torch.cat([logits.new_zeros(0, 4), *box]),
    )


def _class_loss(
    logits: Tensor, picture: Tensor, query: Tensor, label: Tensor, no_object_weight: float
) -> Tensor:
    """Return the weighted mean of the cross-entropy over all queries of the batch."""
    no_object = logits.shape[-1] - 1
    classes = label.new_full(logits.shape[:2], no_object)
    classes[picture, query] = label
    weight = logits.new_ones(no_object + 1)
    weight[no_object] = no_object_weight
    entropy = F.cross_entropy(logits.flatten(0, 1), classes.flatten(), weight, reduction="sum")
    total = weight[classes].sum()
    return entropy / total.where(total > 0, 1)  # an empty batch has a loss of 0
