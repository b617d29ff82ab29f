"""DETR gives transformers' numbers; boxes, matching and loss are what they should be."""

import copy
import itertools
import json
import math
import os
import pickle
import random
import warnings
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

os.environ["HF_HUB_OFFLINE"] = "1"

from transformer_lib.detection import (
    boxes,
    configuration,
    detr,
    evaluation,
    matching,
    processing,
    published,
    resnet,
)
from transformer_lib.detection.boxes import generalized_iou, iou, to_centres, to_corners
from transformer_lib.detection.configuration import DETRConfig, ResNetConfig
from transformer_lib.detection.detr import (
    DETR,
    FoldedDETR,
    Predictions,
    for_detection,
    image_positions,
)
from transformer_lib.detection.evaluation import evaluate
from transformer_lib.detection.matching import Target, assign, match, set_loss
from transformer_lib.detection.processing import ImageProcessor, postprocess
from transformer_lib.detection.published import (
    config_from_published,
    config_to_published,
    published_name,
)
from transformer_lib.detection.resnet import BatchNorm, ResNet
from transformer_lib.transformer import record_attention

PARTS = (boxes, configuration, detr, evaluation, matching, processing, published, resnet)
LABELS = ("cat", "dog", "donut")
BASIC = ResNetConfig(depths=(1, 2, 1), widths=(12, 16, 20), stem_width=8, block="basic")
BOTTLENECK = replace(BASIC, block="bottleneck", frozen_norm=True)
CONFIG = DETRConfig(
    LABELS,
    BOTTLENECK,
    d_model=24,
    n_heads=3,
    n_encoder_layers=1,
    n_decoder_layers=3,
    d_ff=32,
    n_queries=6,
    dropout=0.0,
    masked_backbone=False,
)
OBJECTS = [
    Target(torch.tensor([0, 2]), torch.tensor([[0.5, 0.5, 0.2, 0.3], [0.3, 0.4, 0.1, 0.1]])),
    Target(torch.zeros(0, dtype=torch.int64), torch.zeros(0, 4)),
    Target(torch.tensor([1]), torch.tensor([[0.6, 0.2, 0.4, 0.3]])),
]


def lively(model: nn.Module) -> None:
    """Give a model weights and statistics with which every one of them shows in the result."""
    generator = torch.Generator().manual_seed(1)
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if not tensor.is_floating_point():
            continue
        if name.endswith("running_var"):
            tensor.data.uniform_(0.5, 2, generator=generator)
        elif name.endswith(("norm.weight", "normalization.weight", "layernorm.weight")):
            tensor.data.uniform_(0.7, 1.3, generator=generator)
        else:
            wide = math.sqrt(2 / max(1, tensor[0].numel())) if tensor.dim() > 1 else 0.2
            if name.endswith(("queries", "query_position_embeddings.weight")):
                wide = 2.0
            tensor.data.normal_(0, wide, generator=generator)
        if isinstance(tensor, nn.Parameter):
            tensor.requires_grad_(True)


def lively_detr(**changes: object) -> DETR:
    model = DETR(replace(CONFIG, **changes))
    lively(model)
    return model.eval()


@pytest.fixture(scope="module")
def model() -> DETR:
    return lively_detr()


def batch(*sizes: tuple[int, int], seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return noise of several heights and widths, padded with 0, and the mask."""
    generator = torch.Generator().manual_seed(seed)
    height, width = (max(size) for size in zip(*sizes, strict=True))
    pixels = torch.randn(len(sizes), 3, height, width, generator=generator)
    mask = torch.zeros(len(sizes), height, width, dtype=torch.bool)
    for number, (rows, columns) in enumerate(sizes):
        mask[number, :rows, :columns] = True
    return pixels * mask[:, None], mask


THREE = ((75, 90), (60, 90), (75, 41))


def noise_image(width: int, height: int, seed: int = 0) -> Image.Image:
    data = random.Random(seed).randbytes(3 * width * height)
    return Image.frombytes("RGB", (width, height), data)


# Batch normalisation and the backbone


@pytest.mark.parametrize("training", [True, False])
def test_batch_normalisation_is_torch_s(training: bool) -> None:
    ours, theirs = BatchNorm(4), nn.BatchNorm2d(4)
    x = 3 * torch.randn(2, 4, 5, 6, generator=torch.Generator().manual_seed(0)) + 1
    with torch.no_grad():
        for name in ("weight", "bias", "running_mean", "running_var"):
            value = torch.rand(4, generator=torch.Generator().manual_seed(2)) + 0.5
            getattr(ours, name).copy_(value)
    theirs.load_state_dict(ours.state_dict())  # the names are PyTorch's
    torch.testing.assert_close(ours.train(training)(x), theirs.train(training)(x))
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)
    torch.testing.assert_close(ours.running_var, theirs.running_var)


def test_frozen_statistics_stay_in_training_too() -> None:
    norm = BatchNorm(3, frozen=True)
    x = 5 + torch.randn(2, 3, 4, 4)
    torch.testing.assert_close(norm.train()(x), norm.eval()(x))
    assert torch.equal(norm.running_mean, torch.zeros(3))
    assert not nn.Sequential(norm).train()[0].training
    assert BatchNorm(3).train().training
    assert not any(parameter.requires_grad for parameter in norm.parameters())


def test_batch_normalisation_has_the_right_gradients() -> None:
    norm = BatchNorm(2).double()
    x = torch.randn(2, 2, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(norm, x)


@pytest.mark.parametrize(("height", "width"), [(1, 1), (16, 48), (33, 47), (64, 65)])
def test_features_are_a_share_of_the_picture_rounded_up(height: int, width: int) -> None:
    net = ResNet(BASIC)
    assert net.stride == 16
    assert net.width == 20
    features = net.eval()(torch.zeros(1, 3, height, width))
    assert features.shape == (1, 20, math.ceil(height / 16), math.ceil(width / 16))


def test_blocks_differ_and_a_seed_gives_one_network() -> None:
    nets = []
    for _ in range(2):
        torch.manual_seed(0)
        nets.append(ResNet(BASIC))
    one, two = (net.state_dict() for net in nets)
    assert all(torch.equal(one[name], two[name]) for name in one)
    first, second = nets[0].stages[1]
    weights = [block.layers[1].convolution.weight for block in (first, second)]
    assert not torch.equal(*weights)
    deviation = nets[0].stages[2][0].layers[1].convolution.weight.std().item()
    assert deviation == pytest.approx(math.sqrt(2 / (20 * 9)), rel=0.05)


def test_with_a_mask_the_backbone_sees_each_picture_alone() -> None:
    net = ResNet(BASIC)
    lively(net)
    pixels, mask = batch((40, 50), (64, 80))
    pixels[0] = torch.where(mask[0], pixels[0], 9.0)
    together = net.eval()(pixels, pixel_mask=mask)
    alone = net(pixels[:1, :, :40, :50])
    torch.testing.assert_close(together[:1, :, :3, :4], alone, atol=1e-4, rtol=1e-4)
    assert together[0, :, 3:].abs().max() == 0
    assert together[0, :, :, 4:].abs().max() == 0


# Positions


def test_positions_by_hand() -> None:
    mask = torch.zeros(2, 3, 4, dtype=torch.bool)
    mask[0] = True
    mask[1, :2, :3] = True
    got = image_positions(mask, 8, dtype=torch.float64)
    assert got.shape == (2, 3, 4, 8)
    for picture, (rows, columns) in enumerate([(3, 4), (2, 3)]):
        for row, column in itertools.product(range(rows), range(columns)):
            angles = []
            for place, count in ((row, rows), (column, columns)):
                turn = (place + 1) / (count + 1e-6) * 2 * math.pi
                angles += [f(turn / 100**pair) for pair in (0, 1) for f in (math.sin, math.cos)]
            want = torch.tensor(angles, dtype=torch.float64)
            torch.testing.assert_close(got[picture, row, column], want, atol=1e-12, rtol=0)


@given(st.integers(1, 12), st.integers(1, 12), st.sampled_from([4, 8, 20]))
def test_positions_are_bounded_and_pairs_lie_on_circles(
    rows: int, columns: int, width: int
) -> None:
    got = image_positions(torch.ones(1, rows, columns, dtype=torch.bool), width)
    pairs = got.reshape(rows, columns, -1, 2)
    torch.testing.assert_close(pairs.square().sum(-1), torch.ones(rows, columns, width // 2))


# Boxes


def test_the_two_forms_of_a_box() -> None:
    corners = torch.tensor([[10.0, 20.0, 40.0, 60.0]])
    assert to_centres(corners).tolist() == [[25, 40, 30, 40]]
    assert to_corners(to_centres(corners)).tolist() == corners.tolist()
    assert to_corners(torch.zeros(0, 4)).shape == to_centres(torch.zeros(2, 0, 4)).shape[1:]


CELLS = st.integers(0, 6)
CORNERS = st.tuples(CELLS, CELLS, CELLS, CELLS).map(
    lambda c: (min(c[0], c[2]), min(c[1], c[3]), max(c[0], c[2]), max(c[1], c[3]))
)


@given(CORNERS, CORNERS)
def test_overlap_counts_cells(one: tuple[int, ...], two: tuple[int, ...]) -> None:
    def cells(box: tuple[int, ...]) -> set[tuple[int, int]]:
        return set(itertools.product(range(box[0], box[2]), range(box[1], box[3])))

    around = (*map(min, one[:2], two[:2]), *map(max, one[2:], two[2:]))
    union, both, hull = cells(one) | cells(two), cells(one) & cells(two), cells(around)
    overlap = len(both) / len(union) if union else 0
    empty = (len(hull) - len(union)) / len(hull) if hull else 0
    first, second = (torch.tensor(box, dtype=torch.float64) for box in (one, two))
    assert iou(first, second).item() == pytest.approx(overlap)
    assert generalized_iou(first, second).item() == pytest.approx(overlap - empty)
    assert generalized_iou(second, first).item() == generalized_iou(first, second).item()


def test_generalised_overlap_of_boxes_apart_nested_and_without_area() -> None:
    def giou(first: list[float], second: list[float]) -> float:
        return generalized_iou(torch.tensor(first) * 1.0, torch.tensor(second) * 1.0).item()

    assert giou([0, 0, 1, 1], [2, 2, 3, 3]) == pytest.approx(-0.777778, abs=1e-6)
    assert giou([0, 0, 2, 2], [1, 0, 3, 2]) == pytest.approx(0.333333, abs=1e-6)
    assert giou([1, 1, 1, 1], [1, 1, 1, 1]) == 0
    assert math.isnan(giou([0, 0, 1, math.nan], [0, 0, 1, 1]))
    assert math.isnan(giou([math.nan] * 4, [math.nan] * 4))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1.0, 1, 1, 1], [1.0, 1, 1, 1]),
        ([1.0, 1, 1, 1], [2.0, 2, 2, 2]),
        ([1.0, 1, 3, 1], [1.0, 1, 3, 1]),
        ([0.0, 0, 1, 1], [0.0, 0, 1, 1]),
    ],
)
def test_boxes_without_area_have_finite_gradients(first: list[float], second: list[float]) -> None:
    one, two = (torch.tensor(box, requires_grad=True) for box in (first, second))
    (generalized_iou(one, two) + iou(one, two)).backward()
    assert one.grad is not None
    assert one.grad.isfinite().all()
    assert two.grad.isfinite().all()


def test_overlap_has_the_right_gradients() -> None:
    first = torch.tensor([[0.0, 0, 2, 2.5], [0, 0, 1, 1]], dtype=torch.float64)
    second = torch.tensor([[[1.1, 0.5, 3, 2]], [[2.2, 2.6, 3.5, 3]]], dtype=torch.float64)
    boxes = first.requires_grad_(), second.requires_grad_()
    assert torch.autograd.gradcheck(generalized_iou, boxes)
    assert torch.autograd.gradcheck(iou, boxes)


def test_all_pairs_by_broadcasting_and_in_half_precision() -> None:
    first = torch.tensor([[0.0, 0, 300, 300], [0, 0, 100, 100]])
    second = torch.tensor([[0.0, 0, 300, 300], [100, 100, 200, 200], [50, 0, 100, 100]])
    pairs = iou(first[:, None], second[None])
    assert pairs.shape == (2, 3)
    assert pairs[1].tolist() == [pytest.approx(1 / 9), 0, 0.5]
    for dtype in (torch.float16, torch.bfloat16, torch.float64):  # 300² overflows float16
        got = iou(first.to(dtype)[:, None], second.to(dtype)[None])
        assert got.dtype == dtype
        torch.testing.assert_close(got.float(), pairs, atol=4e-3, rtol=0)
    assert iou(first[:0, None], second[None]).shape == (0, 3)


# Matching


def test_the_assignment_is_global_not_greedy() -> None:
    def pairs(costs: list[list[float]]) -> list[tuple[int, int]]:
        queries, objects = assign(torch.tensor(costs) * 1.0)
        return list(zip(queries.tolist(), objects.tolist(), strict=True))

    assert pairs([[1, 2], [1.5, 5]]) == [(0, 1), (1, 0)]
    assert pairs([[3, 1, 2], [1, 9, 9]]) == [(0, 1), (1, 0)]  # the third object is left out
    assert pairs([[5.0], [1.0], [3.0]]) == [(1, 0)]
    assert assign(torch.zeros(4, 0))[0].shape == (0,)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 1000))
def test_no_other_assignment_costs_less(n_queries: int, n_objects: int, seed: int) -> None:
    costs = torch.rand(n_queries, n_objects, generator=torch.Generator().manual_seed(seed))
    queries, objects = assign(costs)
    assert len(queries) == min(n_queries, n_objects)
    wide = costs if n_queries >= n_objects else costs.T
    least = min(
        sum(wide[row, column].item() for column, row in enumerate(rows))
        for rows in itertools.permutations(range(len(wide)), wide.shape[1])
    )
    assert costs[queries, objects].sum().item() == pytest.approx(least)


def guesses(seed: int = 3, layers: int = 3, queries: int = 6) -> Predictions:
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(layers, 3, queries, 4, generator=generator)
    boxes = torch.rand(layers, 3, queries, 4, generator=generator) * 0.5 + 0.1
    *earlier, last = zip(logits.requires_grad_(), boxes.requires_grad_(), strict=True)
    return Predictions(*last, tuple(earlier))


def as_published(targets: list[Target]) -> list[dict[str, Tensor]]:
    return [{"class_labels": target.labels, "boxes": target.boxes} for target in targets]


def test_matching_is_transformers() -> None:
    from transformers.loss.loss_for_object_detection import HungarianMatcher

    many = [replace(target) for target in OBJECTS]
    generator = torch.Generator().manual_seed(9)
    sizes = torch.rand(4, 2, generator=generator)
    centres = sizes / 2 + (1 - sizes) * torch.rand(4, 2, generator=generator)
    many[1] = Target(torch.tensor([2, 2, 0, 1]), torch.cat([centres, sizes], dim=-1))
    for seed in range(5):
        predictions = guesses(seed)
        theirs = HungarianMatcher(1, 5, 2)(
            {"logits": predictions.logits, "pred_boxes": predictions.boxes}, as_published(many)
        )
        for (queries, objects), (rows, columns) in zip(
            match(predictions, many), theirs, strict=True
        ):
            assert queries.tolist() == rows.tolist()
            assert objects.tolist() == columns.tolist()


# The loss


@pytest.mark.parametrize("auxiliary", [False, True])
@pytest.mark.parametrize("objects", ["some", "none"])
def test_the_loss_is_transformers_with_all_its_parts(auxiliary: bool, objects: str) -> None:
    from transformers.loss.loss_for_object_detection import ForObjectDetectionLoss

    targets = OBJECTS if objects == "some" else [OBJECTS[1]] * 3
    predictions = guesses(layers=3 if auxiliary else 1)
    config = SimpleNamespace(
        class_cost=1,
        bbox_cost=5,
        giou_cost=2,
        num_labels=3,
        eos_coefficient=0.1,
        bbox_loss_coefficient=5,
        giou_loss_coefficient=2,
        auxiliary_loss=auxiliary,
        decoder_layers=3,
    )
    layers = [*predictions.auxiliary, predictions[:2]]
    logits, boxes = (torch.stack(part) for part in zip(*layers, strict=True))
    labels = as_published(targets)
    loss, parts, _ = ForObjectDetectionLoss(
        logits[-1], labels, logits.device, boxes[-1], config, logits, boxes
    )
    ours = set_loss(predictions, targets)
    torch.testing.assert_close(ours["loss"], loss, atol=1e-5, rtol=1e-5)
    theirs = {name: part for name, part in parts.items() if "cardinality" not in name}
    assert set(theirs) == set(ours) - {"loss", "class_error"}
    for name, part in theirs.items():
        torch.testing.assert_close(ours[name], part, atol=1e-5, rtol=1e-5)
    inputs = [part for layer in layers for part in layer]
    mine, its = (torch.autograd.grad(each, inputs) for each in (ours["loss"], loss))
    for ours_, theirs_ in zip(mine, its, strict=True):
        torch.testing.assert_close(ours_, theirs_, atol=1e-6, rtol=1e-4)


def test_pictures_without_objects_teach_no_object_alone() -> None:
    none = [OBJECTS[1]] * 3
    predictions = guesses()
    losses = set_loss(predictions, none)
    assert losses["loss_bbox"].item() == losses["loss_giou"].item() == 0
    assert "class_error" not in losses
    want = -predictions.logits.log_softmax(-1)[..., -1].mean()
    assert losses["loss_ce"].item() == pytest.approx(want.item(), rel=1e-5)
    (gradient,) = torch.autograd.grad(losses["loss"], predictions.logits)
    assert (gradient[..., -1] < 0).all()
    assert [len(queries) for queries, _ in match(predictions, none)] == [0, 0, 0]


def test_an_empty_batch_has_a_loss_of_zero() -> None:
    empty = Predictions(torch.zeros(0, 5, 4, requires_grad=True), torch.zeros(0, 5, 4))
    losses = set_loss(empty, [])
    losses["loss"].backward()
    assert losses["loss"].item() == 0
    assert match(empty, []) == []


def sure(*classes: int, boxes: list[list[float]] | None = None) -> Predictions:
    """Return one picture whose queries are sure of these classes."""
    logits = torch.full((1, len(classes), 4), -4.0)
    for query, label in enumerate(classes):
        logits[0, query, label] = 4.0
    placed = torch.tensor([boxes or [[0.5, 0.5, 0.2, 0.2]] * len(classes)])
    return Predictions(logits.requires_grad_(), placed)


def one_object(label: int = 0) -> list[Target]:
    return [Target(torch.tensor([label]), torch.tensor([[0.5, 0.5, 0.2, 0.2]]))]


def test_a_duplicate_is_punished() -> None:
    twice = sure(0, 0)
    losses = set_loss(twice, one_object())
    losses["loss"].backward()
    ((queries, _),) = match(twice, one_object())
    other = 1 - queries.item()
    gradient = twice.logits.grad[0, other]
    assert gradient[0] > 0 > gradient[3]  # less "cat", more "no object"
    assert set_loss(sure(0, 3), one_object())["loss"] < losses["loss"]


def test_class_error_is_the_percentage_of_the_matched() -> None:
    assert set_loss(sure(0, 3), one_object())["class_error"].item() == 0
    assert set_loss(sure(1, 3), one_object())["class_error"].item() == 100
    # A matched query that says "no object" is wrong too; the unmatched do not count.
    assert set_loss(sure(3, 3), one_object())["class_error"].item() == 100
    boxes = [[0.2, 0.2, 0.1, 0.1], [0.5, 0.5, 0.1, 0.1], [0.8, 0.8, 0.1, 0.1], [0.5, 0.9, 0.1, 0.1]]
    three = [Target(torch.tensor([0, 1, 2]), torch.tensor(boxes[:3]))]
    error = set_loss(sure(0, 1, 1, 0, boxes=boxes), three)["class_error"].item()
    assert error == pytest.approx(33.33, abs=0.01)


def test_class_error_is_that_of_the_last_layer() -> None:
    right, wrong = sure(0, 3), sure(1, 3)
    assert set_loss(right._replace(auxiliary=(wrong[:2],)), one_object())["class_error"] == 0
    assert set_loss(wrong._replace(auxiliary=(right[:2],)), one_object())["class_error"] == 100


def test_more_objects_than_queries_warns_once_and_goes_on() -> None:
    predictions = guesses(queries=1)
    with pytest.warns(UserWarning, match="expected at most 1 objects .* got 2") as caught:
        losses = set_loss(predictions, OBJECTS)
    assert len(caught) == 1
    assert losses["loss"].isfinite()
    # Boxes are still divided by all three objects of the batch.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs = match(predictions, OBJECTS)
    total = sum(
        (predictions.boxes[picture][queries] - OBJECTS[picture].boxes[objects]).abs().sum()
        for picture, (queries, objects) in enumerate(pairs)
    )
    assert losses["loss_bbox"].item() == pytest.approx(total.item() / 3, rel=1e-5)


@given(st.permutations(range(6)), st.permutations(range(2)))
def test_neither_side_has_an_order(queries: list[int], objects: list[int]) -> None:
    predictions = guesses()
    first = OBJECTS[0]
    shuffled = Predictions(predictions.logits[:, queries], predictions.boxes[:, queries])
    targets = [Target(first.labels[objects], first.boxes[objects]), *OBJECTS[1:]]
    want = set_loss(predictions._replace(auxiliary=()), OBJECTS)["loss"].item()
    assert set_loss(shuffled, targets)["loss"].item() == pytest.approx(want, rel=1e-5)


def test_the_loss_has_the_right_gradients() -> None:
    predictions = guesses(layers=2, queries=3)
    inputs = [predictions.logits, predictions.boxes, *predictions.auxiliary[0]]
    inputs = [part.detach().double().requires_grad_() for part in inputs]
    targets = [Target(target.labels, target.boxes.double()) for target in OBJECTS]

    def loss(logits: Tensor, boxes: Tensor, earlier: Tensor, earlier_boxes: Tensor) -> Tensor:
        layers = ((earlier, earlier_boxes),)
        return set_loss(Predictions(logits, boxes, layers), targets)["loss"]

    assert torch.autograd.gradcheck(loss, inputs, fast_mode=True)


# The model


def hugging_face_model(transformers, config: DETRConfig):
    """Return transformers' model of a configuration, with weights of its own."""
    published = config_to_published(config)
    published["backbone_config"] = transformers.ResNetConfig(
        **{name: value for name, value in published["backbone_config"].items() if value is not None}
    )
    model = transformers.DetrForObjectDetection(transformers.DetrConfig(**published))
    lively(model)
    return model.eval()


@pytest.fixture(scope="module")
def hugging_face():
    """Import transformers once, quietly."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformers

        transformers.utils.logging.disable_progress_bar()
        transformers.utils.logging.set_verbosity_error()
        for name in ("DetrForObjectDetection", "ResNetConfig", "pipeline"):
            assert getattr(transformers, name)
    return transformers


@pytest.mark.parametrize("block", ["basic", "bottleneck"])
@pytest.mark.parametrize("between", [False, True])
def test_the_same_weights_give_transformers_numbers(
    hugging_face, block: str, between: bool, tmp_path
) -> None:
    backbone = replace(BASIC, block=block, frozen_norm=True)
    config = replace(CONFIG, backbone=backbone, norm_between_layers=between, n_encoder_layers=2)
    theirs = hugging_face_model(hugging_face, config)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = DETR.from_pretrained(tmp_path / "theirs")
    assert ours.config == config
    assert not ours.training

    pixels, mask = batch(*THREE)
    with torch.no_grad():
        want = theirs(pixel_values=pixels, pixel_mask=mask.long())
        got = ours(pixels, mask)
    torch.testing.assert_close(got.logits, want.logits, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(got.boxes, want.pred_boxes, atol=1e-5, rtol=1e-4)
    assert want.logits.std(dim=1).min() > 3e-3  # the queries say different things

    # In float64 no rounding hides a difference.
    pixels, theirs, ours = pixels.double(), theirs.double(), ours.double().requires_grad_()
    targets = [Target(target.labels, target.boxes.double()) for target in OBJECTS]
    labels = as_published(targets)
    torch.set_default_dtype(torch.float64)  # their loss makes weights of the default type
    try:
        want = theirs(pixel_values=pixels, pixel_mask=mask.long(), labels=labels)
    finally:
        torch.set_default_dtype(torch.float32)
    got = ours(pixels, mask)
    torch.testing.assert_close(got.logits, want.logits, atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(got.boxes, want.pred_boxes, atol=1e-9, rtol=1e-9)

    # transformers computes the losses of earlier layers only where it normalises between them.
    losses = set_loss(got if between else got._replace(auxiliary=()), targets)
    assert set(losses) - {"class_error", "loss"} <= set(want.loss_dict)
    for name, loss in (want.loss_dict | {"loss": want.loss}).items():
        if "cardinality" not in name:
            torch.testing.assert_close(losses[name], loss, atol=1e-7, rtol=1e-7)
    want.loss.backward()
    losses["loss"].backward()
    from transformers.core_model_loading import revert_weight_conversion

    gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    gradients = revert_weight_conversion(theirs, gradients)
    compared = 0
    for name, parameter in ours.named_parameters():
        if published_name(name) in gradients:  # its batch normalisation has none
            gradient = gradients[published_name(name)]
            torch.testing.assert_close(parameter.grad, gradient, atol=1e-9, rtol=1e-6)
            compared += 1
    assert compared == len(gradients)

    # And the way back: their library reads what ours wrote.
    ours.float().save_pretrained(tmp_path / "ours")
    again, report = hugging_face.DetrForObjectDetection.from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert not any(report.values())
    with torch.no_grad():
        back = again.double().eval()(pixel_values=pixels, pixel_mask=mask.long())
    torch.testing.assert_close(back.logits, want.logits)


@pytest.mark.slow
def test_their_pipeline_runs_on_what_ours_wrote(hugging_face, model, tmp_path) -> None:
    processor = ImageProcessor(64, 96)
    model.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    theirs = hugging_face.pipeline("object-detection", model=str(tmp_path), device="cpu")
    images = [noise_image(80, 50), noise_image(60, 90, seed=1)]
    ours = DETR.from_pretrained(tmp_path)
    for image, found in zip(images, theirs(images, threshold=0.2), strict=True):
        with torch.no_grad():
            (detections,) = postprocess(ours(*processor([image])), [image.size], threshold=0.2)
        assert len(found) == len(detections.scores) > 0
        for one, score, label, box in zip(found, *detections, strict=True):
            assert one["score"] == pytest.approx(score.item(), abs=1e-5)
            assert one["label"] == ours.config.labels[label]
            assert list(one["box"].values()) == pytest.approx(box.tolist(), abs=1)


def test_the_queries_are_a_set(model) -> None:
    pixels, mask = batch(*THREE)
    want = model(pixels, mask)
    order = [3, 1, 5, 0, 2, 4]
    shuffled = lively_detr()
    with torch.no_grad():
        shuffled.queries.copy_(model.queries[order])
    got = shuffled(pixels, mask)
    torch.testing.assert_close(got.logits, want.logits[:, order], atol=1e-5, rtol=1e-4)


def test_auxiliary_predictions_are_those_of_a_shorter_decoder(model) -> None:
    pixels, _ = batch((40, 40))
    for layers, (logits, centres) in enumerate(model(pixels).auxiliary, start=1):
        shorter = DETR(replace(CONFIG, n_decoder_layers=layers)).eval()
        shorter.load_state_dict(model.state_dict(), strict=False)
        torch.testing.assert_close(shorter(pixels).logits, logits)
        torch.testing.assert_close(shorter(pixels).boxes, centres)


@given(st.sampled_from([0.0, 1e-10, 1e10, -7.0]))
def test_what_stands_in_padding_changes_nothing(filling: float) -> None:
    model = lively_detr()
    pixels, mask = batch(*THREE)
    filled = pixels.masked_fill(~mask[:, None], filling)
    with torch.no_grad():
        for got, want in zip(model(filled, mask)[:2], model(pixels, mask)[:2], strict=True):
            assert torch.equal(got, want)


def test_with_a_masked_backbone_neighbours_in_the_batch_change_nothing() -> None:
    assert DETRConfig(LABELS).masked_backbone
    model = lively_detr(masked_backbone=True)
    pixels, mask = batch((48, 64), (30, 100), (75, 41))
    with torch.no_grad():
        together = model(pixels, mask)
        for number, (rows, columns) in enumerate([(48, 64), (30, 100), (75, 41)]):
            alone = model(pixels[number : number + 1, :, :rows, :columns])
            torch.testing.assert_close(
                together.logits[number : number + 1], alone.logits, atol=1e-5, rtol=1e-5
            )
            torch.testing.assert_close(
                together.boxes[number : number + 1], alone.boxes, atol=1e-6, rtol=0
            )
            # Without, they move a little, as in transformers: the option has something to do.
            usual = lively_detr()(pixels, mask).logits[number] - alone.logits[0]
            assert usual.abs().max() > (1e-3 if not mask[number].all() else 0)


def test_attention_sees_no_padding(model) -> None:
    pixels, mask = batch((32, 96), (64, 48))
    with record_attention(model) as weights:
        model(pixels, mask)
    places = torch.zeros(2, 4, 6, dtype=torch.bool)
    places[0, :2], places[1, :, :3] = True, True
    for name in ("encoder.layers.0.self_attention", "decoder.layers.2.cross_attention"):
        hidden = weights[name].amax(dim=(1, 2))[~places.flatten(1)]
        assert hidden.max() == 0
    # The queries see one another, those after them too.
    assert (weights["decoder.layers.0.self_attention"] > 0).all()


def test_a_picture_of_padding_alone_and_an_empty_batch(model) -> None:
    pixels, mask = batch(*THREE)
    mask[1] = False
    predictions = model(pixels, mask)
    assert predictions.logits.isfinite().all()
    assert predictions.boxes.isfinite().all()
    empty = model(pixels[:0], mask[:0])
    assert empty.logits.shape == (0, 6, 4)
    assert empty.auxiliary[1][1].shape == (0, 6, 4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_in_every_float_type(dtype: torch.dtype) -> None:
    model = lively_detr()
    pixels, mask = batch(*THREE)
    want = model(pixels, mask)
    got = model.to(dtype)(pixels.to(dtype), mask)
    assert got.logits.dtype == got.boxes.dtype == dtype
    tolerance = {torch.float16: 0.03, torch.bfloat16: 0.2, torch.float64: 1e-4}[dtype]
    torch.testing.assert_close(got.logits.float(), want.logits, atol=tolerance, rtol=tolerance)
    losses = set_loss(got, OBJECTS)
    assert losses["loss"].dtype == torch.promote_types(dtype, torch.float32)
    wanted = set_loss(want, OBJECTS)["loss"].item()
    assert losses["loss"].item() == pytest.approx(wanted, rel=tolerance)
    losses["loss"].backward()
    assert model.class_head.weight.grad.dtype == dtype
    (found, *_) = postprocess(got, [(640, 480)] * 3, threshold=0.0)
    assert found.scores.dtype == torch.promote_types(dtype, torch.float32)


@pytest.mark.slow
def test_it_learns_four_pictures() -> None:
    torch.manual_seed(0)
    model = DETR(replace(CONFIG, backbone=BASIC, n_decoder_layers=2)).train()
    pixels, mask = batch((64, 64), (64, 64), (48, 64), (64, 32))
    targets = [*OBJECTS, OBJECTS[0]]
    optimiser = torch.optim.AdamW(model.parameters(), 2e-3)
    losses = []
    for _ in range(30):
        losses.append(set_loss(model(pixels, mask), targets)["loss"])
        optimiser.zero_grad()
        losses[-1].backward()
        optimiser.step()
    assert losses[-1] < 0.5 * losses[0]
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_seed_gives_one_model_and_no_two_layers_are_alike() -> None:
    states = []
    for _ in range(2):
        torch.manual_seed(0)
        states.append(DETR(CONFIG).state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    name = "decoder.layers.{}.cross_attention.query_projection.weight"
    assert not torch.equal(states[0][name.format(0)], states[0][name.format(1)])


@pytest.mark.parametrize("block", ["basic", "bottleneck"])
def test_the_copy_for_detection_gives_the_same(block: str) -> None:
    model = lively_detr(backbone=replace(BASIC, block=block)).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    fast = for_detection(model)
    assert model.training
    assert not fast.training
    assert not [module for module in fast.modules() if isinstance(module, BatchNorm)]
    pixels, mask = batch(*THREE)
    got, want = fast(pixels, mask), model.eval()(pixels, mask)
    torch.testing.assert_close(got.logits, want.logits, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(got.boxes, want.boxes, atol=1e-5, rtol=1e-4)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_the_copy_for_detection_is_of_a_class_of_its_own_and_pickles() -> None:
    fast = for_detection(lively_detr())
    assert type(fast) is FoldedDETR
    pixels, mask = batch(*THREE)
    want = fast(pixels, mask)
    for again in (pickle.loads(pickle.dumps(fast)), copy.deepcopy(fast), for_detection(fast)):
        assert type(again) is FoldedDETR
        assert torch.equal(again(pixels, mask).logits, want.logits)
    assert fast.eval() is fast


# The published layout


def published_tensors() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield every tensor of facebook/detr-resnet-50, as it was published: names of timm."""
    body = "model.backbone.conv_encoder.model."

    def convolution(name: str, norm: str, out: int, into: int, size: int):
        yield f"{body}{name}.weight", (out, into, size, size)
        for part in ("weight", "bias", "running_mean", "running_var"):
            yield f"{body}{norm}.{part}", (out,)

    yield from convolution("conv1", "bn1", 64, 3, 7)
    into = 64
    for stage, (blocks, width) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)], start=1):
        for block in range(blocks):
            at = f"layer{stage}.{block}."
            yield from convolution(at + "conv1", at + "bn1", width, into, 1)
            yield from convolution(at + "conv2", at + "bn2", width, width, 3)
            yield from convolution(at + "conv3", at + "bn3", 4 * width, width, 1)
            if block == 0:
                old = at + "downsample."
                yield from convolution(old + "0", old + "1", 4 * width, into, 1)
                yield f"{body}{old}1.num_batches_tracked", ()
            into = 4 * width

    def linear(name: str, out: int, into: int):
        yield f"{name}.weight", (out, into)
        yield f"{name}.bias", (out,)

    def norm(name: str):
        yield f"{name}.weight", (256,)
        yield f"{name}.bias", (256,)

    yield "model.input_projection.weight", (256, 2048, 1, 1)
    yield "model.input_projection.bias", (256,)
    yield "model.query_position_embeddings.weight", (100, 256)
    for stack, attentions in (
        ("encoder", ["self_attn"]),
        ("decoder", ["self_attn", "encoder_attn"]),
    ):
        for layer in range(6):
            at = f"model.{stack}.layers.{layer}."
            for attention in attentions:
                for letter in ("k", "v", "q", "out"):
                    yield from linear(f"{at}{attention}.{letter}_proj", 256, 256)
                yield from norm(f"{at}{attention}_layer_norm")
            yield from linear(f"{at}fc1", 2048, 256)
            yield from linear(f"{at}fc2", 256, 2048)
            yield from norm(f"{at}final_layer_norm")
    yield from norm("model.decoder.layernorm")
    yield from linear("class_labels_classifier", 92, 256)
    for number, out in enumerate([256, 256, 4]):
        yield from linear(f"bbox_predictor.layers.{number}", out, 256)


PUBLISHED_CONFIG = {
    "model_type": "detr",
    "use_timm_backbone": True,
    "backbone": "resnet50",
    "backbone_config": None,
    "activation_function": "relu",
    "activation_dropout": 0.0,
    "attention_dropout": 0.0,
    "auxiliary_loss": False,
    "d_model": 256,
    "decoder_attention_heads": 8,
    "decoder_ffn_dim": 2048,
    "decoder_layers": 6,
    "dilation": False,
    "dropout": 0.1,
    "encoder_attention_heads": 8,
    "encoder_ffn_dim": 2048,
    "encoder_layers": 6,
    "id2label": {str(number): f"name {number}" for number in range(91)},
    "num_queries": 100,
    "position_embedding_type": "sine",
}


def test_the_names_and_shapes_of_the_published_detector() -> None:
    published = dict(published_tensors())
    with torch.device("meta"):
        model = DETR(config_from_published(PUBLISHED_CONFIG))
    ours = {
        published_name(name, timm=True): tuple(tensor.shape)
        for name, tensor in model.state_dict().items()
        if not name.endswith("num_batches_tracked")
    }
    counters = {name for name in published if name.endswith("num_batches_tracked")}
    assert len(counters) == 4
    assert ours == {name: shape for name, shape in published.items() if name not in counters}
    # Without batch normalisation these are the 41.3 million of the paper's repository, in whose
    # logs the stem and the first stage, which are not trained, are left out.
    trained = [
        tensor.numel()
        for name, tensor in model.named_parameters()
        if not name.startswith(("backbone.stem", "backbone.stages.0"))
        and not (name.startswith("backbone") and tensor.dim() == 1)
    ]
    assert sum(trained) == 41_302_368


def with_timm_names(folder, model: DETR) -> None:
    """Write a folder as the first models were published."""
    state = {
        published_name(name, timm=True): tensor
        for name, tensor in model.state_dict().items()
        if not name.endswith("num_batches_tracked")
    }
    state["model.backbone.conv_encoder.model.layer1.0.downsample.1.num_batches_tracked"] = (
        torch.tensor(0)
    )
    folder.mkdir()
    save_file(state, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config_to_published(model.config)))


def test_timm_s_names_are_read(model, tmp_path) -> None:
    with_timm_names(tmp_path / "timm", model)
    assert any(".layer1.0.bn1." in name for name in load_file(tmp_path / "timm/model.safetensors"))
    got = DETR.from_pretrained(tmp_path / "timm").state_dict()
    assert all(torch.equal(got[name], tensor) for name, tensor in model.state_dict().items())


def test_a_model_comes_back_as_it_was_saved(tmp_path) -> None:
    labels = {0: "고양이", 3: "dog"}
    model = lively_detr(labels=labels, norm_between_layers=True, masked_backbone=True)
    model.save_pretrained(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    again = DETR.from_pretrained(str(tmp_path))
    assert again.config == model.config
    assert again.config.labels == ("고양이", "LABEL_1", "LABEL_2", "dog")
    got = again.state_dict()
    assert all(torch.equal(got[name], tensor) for name, tensor in model.state_dict().items())
    # Batch normalisation that was trained is frozen from now on.
    with torch.no_grad():
        model.backbone.stages[0][0].layers[0].norm.running_mean.fill_(1.0)
    DETR(replace(model.config, backbone=replace(BOTTLENECK, frozen_norm=False))).save_pretrained(
        tmp_path
    )
    assert DETR.from_pretrained(tmp_path).config.backbone.frozen_norm


def test_configurations_round_trip() -> None:
    config = replace(CONFIG, labels={2: "cat"}, activation="silu", feed_forward_dropout=0.25)
    assert DETRConfig.from_json(config.to_json()) == config
    published = json.loads(json.dumps(config_to_published(config)))
    assert config_from_published(published) == config
    default = DETRConfig(["cat"])
    assert default.backbone == ResNetConfig()
    published_backbone = replace(ResNetConfig(), frozen_norm=True)
    want = replace(default, backbone=published_backbone, masked_backbone=False)
    assert config_from_published({"model_type": "detr", "id2label": {"0": "cat"}}) == want
    unnamed = config_from_published({"model_type": "detr", "num_labels": 3})
    assert unnamed.labels == ("LABEL_0", "LABEL_1", "LABEL_2")


@pytest.mark.parametrize(
    ("given", "depths", "block"),
    [
        ({"backbone": "resnet101"}, (3, 4, 23, 3), "bottleneck"),
        (
            {"backbone_config": {"model_type": "timm_backbone", "backbone": "resnet34"}},
            (3, 4, 6, 3),
            "basic",
        ),
        ({"backbone_config": {"model_type": "resnet"}}, (3, 4, 6, 3), "bottleneck"),
    ],
)
def test_backbones_by_name(given: dict, depths: tuple[int, ...], block: str) -> None:
    backbone = config_from_published({"model_type": "detr"} | given).backbone
    assert (backbone.depths, backbone.block, backbone.stem_width) == (depths, block, 64)


def test_ids_with_gaps() -> None:
    assert len(DETRConfig({1: "a", 23: "b", 24: "c", 56: "d"}).labels) == 57
    assert DETR(replace(CONFIG, labels={1: "a", 56: "d"})).class_head.out_features == 58
    assert DETR(replace(CONFIG, labels=[str(n) for n in range(10)])).class_head.out_features == 11
    config = replace(CONFIG, labels={0: "a", 2: "c"})
    found = postprocess(sure(1, 2, 3, 0), [(10, 10)])[0]
    assert [config.labels[label] for label in found.labels] == ["LABEL_1", "c", "a"]


def test_other_labels_keep_all_but_what_is_new(model, tmp_path) -> None:
    model.save_pretrained(tmp_path)
    with pytest.warns(UserWarning, match="^labels: all is loaded but") as caught:
        other = DETR.from_pretrained(tmp_path, labels=["beer", "cat", "donut", "horse"])
    (report,) = (str(warning.message) for warning in caught)
    assert "class_head for beer, horse, which start anew" in report
    assert "rows for dog are left out" in report
    old, new = model.state_dict(), other.state_dict()
    assert all(torch.equal(new[n], old[n]) for n in old if not n.startswith("class_head"))
    for part in ("class_head.weight", "class_head.bias"):
        assert torch.equal(new[part][[1, 2, 4]], old[part][[0, 2, 3]])
        assert not torch.isin(new[part][[0, 3]], old[part]).any()
    # The same labels in another order need no report.
    turned = DETR.from_pretrained(tmp_path, labels=LABELS[::-1]).state_dict()
    assert torch.equal(turned["class_head.weight"], old["class_head.weight"][[2, 1, 0, 3]])


def test_the_hub_is_asked_for_the_processor_too() -> None:
    from transformer_lib import hub

    assert {"config.json", "model.safetensors", "preprocessor_config.json"} < {*hub._FILES}


# Pictures and detections


def test_pixels_are_transformers(hugging_face, tmp_path) -> None:
    ours = ImageProcessor(64, 90, mean=(0.4, 0.5, 0.6), std=(0.2, 0.25, 0.3))
    ours.save_pretrained(tmp_path)
    try:
        theirs = hugging_face.AutoImageProcessor.from_pretrained(tmp_path)
    except ImportError:  # older releases want torchvision for that
        theirs = hugging_face.DetrImageProcessorPil.from_pretrained(tmp_path)
    for sizes in ([(200, 100), (90, 170)], [(90, 64)], [(37, 499)], [(64, 64), (640, 48)]):
        images = [noise_image(*size) for size in sizes]
        got, want = ours(images), theirs(images, return_tensors="pt")
        torch.testing.assert_close(got.pixels, want.pixel_values, atol=1e-6, rtol=0)
        assert torch.equal(got.pixel_mask, want.pixel_mask.bool())
    theirs.save_pretrained(tmp_path / "theirs")
    assert ImageProcessor.from_pretrained(tmp_path / "theirs") == ours


@given(st.integers(1, 3000), st.integers(1, 3000), st.sampled_from([(128, 160), (800, 1333)]))
def test_sizes_are_transformers(width: int, height: int, edges: tuple[int, int]) -> None:
    from transformers.image_transforms import get_size_with_aspect_ratio

    want = get_size_with_aspect_ratio((height, width), *edges)[::-1]
    got = ImageProcessor(*edges).resized(width, height)
    assert got == want or (min(want) == 0 and min(got) == 1 and max(got) == edges[1])
    assert max(got) <= edges[1] * 1.5


def test_elongated_pictures_keep_a_pixel() -> None:
    processor = ImageProcessor()
    assert processor.resized(5000, 1) == (1333, 1)
    assert processor.resized(1, 5000) == (1, 1333)
    assert processor.resized(20000, 2) == (1333, 1)
    assert processor.resized(1, 1) == (800, 800)
    assert processor([Image.new("RGB", (5000, 1))]).pixels.shape == (1, 3, 1, 1333)


def test_a_published_processor_of_the_first_kind(tmp_path) -> None:
    file = tmp_path / "preprocessor_config.json"
    colours = {"image_mean": [0.1, 0.2, 0.3], "image_std": [1, 2, 3]}
    file.write_text(json.dumps({"feature_extractor_type": "x", "size": 600, "max_size": 1000}))
    assert ImageProcessor.from_pretrained(tmp_path) == ImageProcessor(600, 1000)
    file.write_text(json.dumps(colours))
    want = ImageProcessor(mean=(0.1, 0.2, 0.3), std=(1.0, 2.0, 3.0))
    assert ImageProcessor.from_pretrained(tmp_path) == want


def test_detections_are_transformers(hugging_face) -> None:
    theirs = hugging_face.DetrImageProcessorPil()
    predictions = guesses()
    sizes = [(640, 480), (90, 17), (300, 300)]
    outputs = SimpleNamespace(logits=predictions.logits, pred_boxes=predictions.boxes)
    for threshold in (0.0, 0.5, 0.9):
        ours = postprocess(predictions, sizes, threshold=threshold)
        turned = [(height, width) for width, height in sizes]
        want = theirs.post_process_object_detection(outputs, threshold, turned)
        for detections, dictionary in zip(ours, want, strict=True):
            for name, value in dictionary.items():
                assert torch.equal(getattr(detections, name), value)


def test_boxes_are_scaled_by_the_picture_s_own_width_and_height() -> None:
    predictions = sure(0, boxes=[[0.5, 0.5, 0.5, 0.5]])
    assert postprocess(predictions, [(640, 480)])[0].boxes.tolist() == [[160, 120, 480, 360]]
    beyond = sure(0, boxes=[[0.02, 0.5, 0.1, 0.2]])  # as it is, not clipped
    assert postprocess(beyond, [(100, 100)])[0].boxes[0].tolist() == pytest.approx(
        [-3, 40, 7, 60], abs=1e-4
    )


def test_padding_of_the_batch_moves_no_box() -> None:
    model = lively_detr(masked_backbone=True)
    processor = ImageProcessor(48, 64)
    images = [noise_image(64, 48), noise_image(48, 64, seed=1)]
    with torch.no_grad():
        together = postprocess(model(*processor(images)), [i.size for i in images], threshold=0.0)
        for image, found in zip(images, together, strict=True):
            (alone,) = postprocess(model(*processor([image])), [image.size], threshold=0.0)
            torch.testing.assert_close(found.boxes, alone.boxes, atol=1e-3, rtol=0)
            torch.testing.assert_close(found.scores, alone.scores, atol=1e-5, rtol=0)


def test_only_scores_above_the_threshold() -> None:
    scores = torch.tensor([0.5, 0.500001, 0.9], dtype=torch.float64)
    logits = torch.stack([scores.log(), (1 - scores).log()], dim=-1)[None]
    predictions = Predictions(logits, torch.full((1, 3, 4), 0.5, dtype=torch.float64))
    counts = [
        len(postprocess(predictions, [(8, 8)], threshold=threshold)[0].scores)
        for threshold in (0.5, 0.0, 1.0)
    ]
    assert counts == [2, 3, 0]
    assert len(postprocess(predictions, [(8, 8)])[0].scores) == 2
    assert postprocess(Predictions(logits[:0], predictions.boxes[:0]), []) == []


def test_the_first_class_is_a_class_and_only_the_last_output_is_none() -> None:
    found = postprocess(sure(0, 2, 3), [(10, 10)])[0]
    assert found.labels.tolist() == [0, 2]
    quiet = postprocess(sure(3), [(10, 10)], threshold=0.0)[0]
    assert quiet.labels.item() < 3


# Scores


class Known(DETR):
    """A detector that predicts what it is told, picture by picture."""

    answers: list[Predictions]

    def forward(self, pixels: Tensor, pixel_mask: Tensor | None = None) -> Predictions:
        """Return the next answers."""
        assert not self.training
        now, self.answers = self.answers[: len(pixels)], self.answers[len(pixels) :]
        return Predictions(*(torch.cat(part) for part in list(zip(*now, strict=True))[:2]))


def labelled(width: int, height: int, *objects: tuple[str, tuple[float, ...]]) -> SimpleNamespace:
    return SimpleNamespace(
        image=Image.new("RGB", (width, height)),
        boxes=[box for _, box in objects],
        labels=[label for label, _ in objects],
    )


def told(*answers: Predictions) -> Known:
    model = Known(CONFIG).train()
    model.answers = [Predictions(a.logits.detach(), a.boxes) for a in answers]
    return model


PROCESSOR = ImageProcessor(16, 32)


def test_a_perfect_detector_scores_one() -> None:
    truth = [
        labelled(200, 100, ("cat", (0, 0, 100, 100)), ("dog", (150, 50, 200, 100))),
        labelled(100, 100, ("dog", (20, 20, 40, 40))),
        labelled(64, 64),
    ]
    model = told(
        sure(0, 1, boxes=[[0.25, 0.5, 0.5, 1.0], [0.875, 0.75, 0.25, 0.5]]),
        sure(1, 3, boxes=[[0.3, 0.3, 0.2, 0.2], [0.5, 0.5, 0.1, 0.1]]),
        sure(3, 3),
    )
    scores = evaluate(model, PROCESSOR, truth, batch_size=2)
    names = ("AP", "AP50", "AP75", "AP_small", "AP_medium", "AP_large")
    assert scores == dict.fromkeys(names, pytest.approx(1))
    assert model.training  # as before


def test_scores_worked_out_by_hand() -> None:
    # The surest detection is wrong, the next right: precision 1/2 up to recall 1/2, then nothing.
    truth = [labelled(100, 100, ("cat", (0, 0, 50, 50)), ("cat", (50, 50, 100, 100)))]
    answer = sure(0, 0, boxes=[[0.75, 0.25, 0.5, 0.5], [0.25, 0.25, 0.5, 0.5]])
    answer.logits.data[0, 0, 0] = 6.0
    scores = evaluate(told(answer), PROCESSOR, truth)
    assert scores["AP50"] == pytest.approx(51 / 101 / 2)
    assert scores["AP"] == scores["AP75"] == scores["AP50"]
    assert "AP_small" not in scores
    # An overlap of 2/3 counts at 0.5, 0.55, 0.6 and 0.65.
    truth = [labelled(100, 100, ("cat", (0, 0, 60, 100)))]
    scores = evaluate(told(sure(0, boxes=[[0.2, 0.5, 0.4, 1.0]])), PROCESSOR, truth)
    assert scores["AP50"] == pytest.approx(1)
    assert scores["AP75"] == pytest.approx(0)
    assert scores["AP"] == pytest.approx(0.4)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__.rpartition(".")[2])
def test_no_part_names_another_library(part: ModuleType) -> None:
    assert not {"transformers", "timm", "torchvision", "numpy"} & set(vars(part))
