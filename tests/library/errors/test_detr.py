"""What DETR cannot do is refused by name before it is done, and nothing is half-loaded."""

import json
import math
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor

from transformer_lib.detection.boxes import generalized_iou, iou, to_centres, to_corners
from transformer_lib.detection.configuration import DETRConfig, ResNetConfig
from transformer_lib.detection.detr import DETR, Predictions, for_detection, image_positions
from transformer_lib.detection.evaluation import evaluate
from transformer_lib.detection.matching import Target, assign, match, set_loss
from transformer_lib.detection.processing import ImageProcessor, postprocess
from transformer_lib.detection.published import config_from_published, config_to_published
from transformer_lib.detection.resnet import BatchNorm, ResNet

BACKBONE = ResNetConfig(depths=(1,), widths=(8,), stem_width=8, block="basic")
CONFIG = DETRConfig(
    ("cat", "dog", "donut"),
    BACKBONE,
    d_model=8,
    n_heads=2,
    n_encoder_layers=1,
    n_decoder_layers=1,
    d_ff=8,
    n_queries=2,
)


@pytest.fixture(scope="module")
def model() -> DETR:
    torch.manual_seed(0)
    return DETR(CONFIG).eval()


@pytest.fixture
def folder(model, tmp_path):
    model.save_pretrained(tmp_path)
    ImageProcessor().save_pretrained(tmp_path)
    return tmp_path


def target(label: int = 0, box: tuple[float, ...] = (0.5, 0.5, 0.2, 0.2)) -> Target:
    return Target(torch.tensor([label]), torch.tensor([box]))


def predictions(batch: int = 2) -> Predictions:
    return Predictions(torch.zeros(batch, 2, 4), torch.full((batch, 2, 4), 0.5))


# Configurations


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"depths": [1, 1]}, TypeError, r"depths: expected a tuple of int, got \[1, 1\]"),
        ({"depths": (1.0,)}, TypeError, r"depths: expected a tuple of int, got \(1.0,\)"),
        ({"widths": ()}, ValueError, "widths: expected one or more numbers above 0"),
        ({"widths": (0,)}, ValueError, "widths: expected one or more numbers above 0"),
        ({"depths": (1, 1)}, ValueError, r"widths: expected one for each of 2 depths, got \(8,\)"),
        ({"stem_width": 0}, ValueError, "stem_width: expected 1 or more, got 0"),
        ({"block": "wide"}, ValueError, "block: expected one of .*'wide'"),
        ({"block": "bottleneck", "widths": (6,)}, ValueError, "widths: expected multiples of 4"),
        ({"frozen_norm": 1}, TypeError, "frozen_norm: expected bool, got 1"),
    ],
)
def test_backbones_that_cannot_be(options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=rf"^{message}"):
        replace(BACKBONE, **options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"labels": "cat"}, TypeError, "labels: expected names, or a mapping .*'cat'"),
        ({"labels": 3}, TypeError, "labels: expected names, or a mapping .*3"),
        ({"labels": []}, ValueError, "labels: expected at least one name"),
        ({"labels": {-1: "cat"}}, ValueError, "labels: expected ids from 0 on, .*got -1"),
        ({"labels": {"0": "cat"}}, ValueError, "labels: expected ids from 0 on, .*got '0'"),
        ({"labels": ["cat", 1]}, TypeError, "labels: expected names, got 1 for id 1"),
        ({"backbone": {}}, TypeError, "backbone: expected ResNetConfig"),
        ({"d_model": 10, "n_heads": 2}, ValueError, "d_model: expected a multiple of 4, got 10"),
        ({"d_model": 0}, ValueError, "d_model: expected 4 or more, got 0"),
        ({"n_heads": 3}, ValueError, "n_heads: expected a divisor of d_model = 8, got 3"),
        ({"n_decoder_layers": 0}, ValueError, "n_decoder_layers: expected 1 or more, got 0"),
        ({"n_queries": 0}, ValueError, "n_queries: expected 1 or more, got 0"),
        ({"dropout": 1.5}, ValueError, "dropout: expected a probability from 0 to 1, got 1.5"),
        ({"activation": "tanh"}, ValueError, "activation: expected one of .*'tanh'"),
    ],
)
def test_models_that_cannot_be(options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=rf"^{message}"):
        replace(CONFIG, **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "config: not valid JSON"),
        ("[]", "config: expected a JSON object with labels"),
        ('{"labels": ["a"], "width": 3}', "config: unknown fields width"),
        ('{"labels": ["a"], "backbone": {"wide": 3}}', "config: unknown fields wide"),
    ],
)
def test_configurations_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^{message}"):
        DETRConfig.from_json(text)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"shortest_edge": 0}, ValueError, "shortest_edge: expected 1 or more, got 0"),
        ({"longest_edge": 1.5}, TypeError, "longest_edge: expected int, got 1.5"),
        ({"mean": (0.5, 0.5)}, TypeError, "mean: expected a tuple of three float"),
        ({"std": (1, 1, 1)}, TypeError, "std: expected a tuple of three float"),
        ({"std": (1.0, 0.0, 1.0)}, ValueError, "std: expected numbers above 0"),
    ],
)
def test_processors_that_cannot_be(options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=rf"^{message}"):
        ImageProcessor(**options)


# Pixels and masks


@pytest.mark.parametrize(
    ("pixels", "error", "message"),
    [
        (torch.zeros(3, 8, 8), ValueError, r"pixels: expected shape \(batch, 3, height, width\)"),
        (torch.zeros(1, 8, 8, 3), ValueError, r"pixels: expected shape .* got \(1, 8, 8, 3\)"),
        (torch.zeros(1, 3, 0, 8), ValueError, "pixels: expected shape"),
        (
            torch.zeros(1, 3, 8, 8, dtype=torch.uint8),
            TypeError,
            "pixels: expected a floating-point",
        ),
    ],
)
def test_what_are_no_pixels(model, pixels: Tensor, error: type, message: str) -> None:
    with pytest.raises(error, match=rf"^{message}"):
        model(pixels)
    with pytest.raises(error, match=rf"^{message}"):
        ResNet(BACKBONE)(pixels)


def test_what_is_no_pixel_mask(model) -> None:
    pixels = torch.zeros(1, 3, 8, 8)
    for call in (model, lambda pixels, mask: ResNet(BACKBONE)(pixels, pixel_mask=mask)):
        with pytest.raises(TypeError, match=r"^pixel_mask: expected a boolean"):
            call(pixels, torch.ones(1, 8, 8))
        with pytest.raises(ValueError, match=r"^pixel_mask: expected shape \(1, 8, 8\) as pixels"):
            call(pixels, torch.ones(8, 8, dtype=torch.bool))


def test_positions_that_cannot_be() -> None:
    with pytest.raises(TypeError, match=r"^mask: expected a boolean"):
        image_positions(torch.ones(1, 2, 2), 8)
    with pytest.raises(ValueError, match=r"^mask: expected shape \(batch, rows, columns\)"):
        image_positions(torch.ones(2, 2, dtype=torch.bool), 8)
    for d_model in (0, 6):
        with pytest.raises(ValueError, match=rf"^d_model: expected a multiple of 4, got {d_model}"):
            image_positions(torch.ones(1, 2, 2, dtype=torch.bool), d_model)


@pytest.mark.slow
def test_checks_of_values_leave_the_model_whole_to_compile(model) -> None:
    # Here, where no shape checks are wrapped around the functions that are to be compiled.
    pixels = torch.randn(2, 3, 20, 24, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(2, 20, 24, dtype=torch.bool)
    mask[1, :, 10:] = False
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    with torch.no_grad():
        torch.testing.assert_close(compiled(pixels, mask).boxes, model(pixels, mask).boxes)


def test_a_single_number_has_no_variance() -> None:
    with pytest.raises(ValueError, match=r"more than 1 value per channel"):
        BatchNorm(2)(torch.zeros(1, 2, 1, 1))


# Boxes


@pytest.mark.parametrize("function", [to_corners, to_centres])
def test_what_are_no_boxes(function) -> None:
    with pytest.raises(ValueError, match=r"^boxes: expected shape \(…, 4\), got \(2, 3\)"):
        function(torch.zeros(2, 3))
    with pytest.raises(TypeError, match=r"^boxes: expected a floating-point tensor"):
        function(torch.zeros(2, 4, dtype=torch.int64))


@pytest.mark.parametrize("function", [iou, generalized_iou])
def test_boxes_that_cannot_be_compared(function) -> None:
    box = torch.tensor([0.0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"^second: expected corners .* to_corners"):
        function(box, torch.tensor([0.5, 0.5, 0.2, 0.2]))
    with pytest.raises(ValueError, match=r"^first: expected corners"):
        function(torch.tensor([0.0, 2, 1, 1]), box)
    with pytest.raises(ValueError, match=r"^first, second: box axes do not broadcast"):
        function(box.expand(2, 4), box.expand(3, 4))
    with pytest.raises(TypeError, match=r"^second: expected dtype"):
        function(box, box.double())
    # A NaN is no degenerate box: it comes through as what it is.
    assert function(torch.tensor([0.0, 0, math.nan, 1]), box).isnan()


# Objects


@pytest.mark.parametrize(
    ("labels", "boxes", "error", "message"),
    [
        (torch.tensor([]), torch.zeros(0, 4), TypeError, "labels: expected integers"),
        ([1], torch.zeros(1, 4), TypeError, "labels: expected integers, got list"),
        (torch.tensor([True]), torch.zeros(1, 4), TypeError, "labels: expected integers"),
        (torch.tensor(1), torch.zeros(1, 4), ValueError, r"labels: expected shape \(objects,\)"),
        (torch.tensor([1]), torch.zeros(4), ValueError, r"boxes: expected shape .*\(1, 4\)"),
        (torch.tensor([1]), torch.zeros(2, 4), ValueError, r"boxes: .*\(1, 4\).* got \(2, 4\)"),
        (torch.tensor([1]), [[0.5] * 4], TypeError, "boxes: expected a torch.Tensor, got list"),
        (
            torch.tensor([1]),
            torch.zeros(1, 4, dtype=torch.int64),
            TypeError,
            "boxes: expected a fl",
        ),
    ],
)
def test_what_are_no_objects(labels, boxes, error: type, message: str) -> None:
    with pytest.raises(error, match=rf"^{message}"):
        Target(labels, boxes)


BOTH = pytest.mark.parametrize("function", [match, set_loss])


@BOTH
@pytest.mark.parametrize("label", [3, 40, -1])
def test_labels_out_of_range(function, label: int) -> None:
    with pytest.raises(
        ValueError, match=rf"^targets: label {label} in picture 1 is none of 3 classes, 0 to 2"
    ):
        function(predictions(), [target(), target(label)])


@BOTH
@pytest.mark.parametrize(
    "box",
    [
        (10.0, 10, 40, 40),  # pixels
        (0.7, 0.6, 0.9, 0.8),  # corners as shares, which lie from 0 to 1 as well
        (0.1, 0.2, 0.5, 0.3),
        (0.5, 0.5, -0.1, 0.1),
        (0.5, math.nan, 0.1, 0.1),
    ],
)
def test_boxes_in_another_form(function, box: tuple[float, ...]) -> None:
    with pytest.raises(
        ValueError, match=r"^targets: box \[.*\] in picture 1 is not \(cx, cy, w, h\) in norm"
    ):
        function(predictions(), [target(), target(box=box)])


@BOTH
def test_a_little_rounding_is_let_through(function) -> None:
    function(predictions(1), [target(box=(0.5, 0.5, 1 + 1e-6, 1))])


@BOTH
def test_a_box_may_reach_a_little_past_the_picture(function) -> None:
    function(predictions(1), [target(box=(0.1, 0.9, 0.3, 0.3))])


@BOTH
def test_not_one_a_picture(function) -> None:
    with pytest.raises(ValueError, match=r"^targets: expected 2, one a picture, got 1"):
        function(predictions(), [target()])
    with pytest.raises(TypeError, match=r"^targets: expected a Target for each picture"):
        function(predictions(1), [{"labels": torch.tensor([0])}])


@BOTH
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("part", ["logits", "boxes"])
def test_numbers_that_are_none(function, number: float, part: str) -> None:
    bad = predictions(3)
    getattr(bad, part)[1, 0, 2] = number
    for targets in ([target()] * 3, [Target(torch.zeros(0).long(), torch.zeros(0, 4))] * 3):
        with pytest.raises(ValueError, match=r"^predictions: NaN or infinity for picture 1 of"):
            function(bad, targets)
    getattr(bad, part)[:] = number
    with pytest.raises(ValueError, match=r"^predictions: NaN or infinity for picture 0 of"):
        function(bad, [target()] * 3)


def test_numbers_that_are_none_in_an_earlier_layer() -> None:
    bad = predictions()._replace(auxiliary=(predictions()[:2], predictions()[:2]))
    bad.auxiliary[1][0][1, 0, 0] = math.nan
    with pytest.raises(ValueError, match=r"^predictions: NaN or infinity for picture 1 of"):
        set_loss(bad, [target()] * 2)


def test_costs_that_are_none() -> None:
    with pytest.raises(ValueError, match=r"^costs: expected finite numbers"):
        assign(torch.tensor([[math.nan]]))


def test_without_scipy(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install .*\[detection\]"):
        assign(torch.zeros(1, 1))


# Pictures and detections


def test_what_are_no_pictures() -> None:
    processor = ImageProcessor(8, 8)
    picture = Image.new("RGB", (8, 8))
    with pytest.raises(TypeError, match=r"^images: expected several pictures, got one"):
        processor(picture)
    with pytest.raises(TypeError, match=r"^images: expected Pillow pictures, got str"):
        processor(["cat.jpg"])
    with pytest.raises(ValueError, match=r"^images: expected at least one picture"):
        processor([])
    for other in (Image.new("L", (8, 8)), Image.new("RGBA", (8, 8)), Image.new("RGB", (0, 8))):
        with pytest.raises(
            ValueError, match=rf"^images: picture 1 has mode '{other.mode}' and size"
        ):
            processor([picture, other])


def test_detections_that_cannot_be_read() -> None:
    with pytest.raises(ValueError, match=r"^sizes: expected 2, one a picture, got 1"):
        postprocess(predictions(), [(8, 8)])
    for threshold in (-0.1, 1.5, math.nan):
        with pytest.raises(ValueError, match=r"^threshold: expected a probability from 0 to 1"):
            postprocess(predictions(1), [(8, 8)], threshold=threshold)


# Files


def test_a_head_for_other_labels(folder) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = {str(number): f"name {number}" for number in range(5)}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(
        ValueError,
        match=r"^class_head: config.json has 5 labels, .* 6 outputs, but"
        r" model.safetensors has 4; with labels=\[…\] everything but the head",
    ):
        DETR.from_pretrained(folder)
    with pytest.warns(UserWarning, match=r"^labels: all is loaded but class_head, which starts"):
        other = DETR.from_pretrained(folder, labels=["a", "b"])
    assert other.class_head.out_features == 3


def test_labels_that_cannot_be(folder) -> None:
    with pytest.raises(ValueError, match=r"^labels: expected at least one name"):
        DETR.from_pretrained(folder, labels=[])


def test_files_that_are_not_there(folder, tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match=r"^name: neither a folder nor a name on the hub"):
        DETR.from_pretrained(tmp_path / "nowhere")
    weights = folder / "model.safetensors"
    weights.rename(folder / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match=r"no model.safetensors in .*; pickled weights are"):
        DETR.from_pretrained(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"^name: no model.safetensors in [^;]*$"):
        DETR.from_pretrained(folder)
    for file, kind in (("config.json", DETR), ("preprocessor_config.json", ImageProcessor)):
        (folder / file).write_text("{")
        with pytest.raises(ValueError, match=rf"^file: .*{file}: not valid JSON"):
            kind.from_pretrained(folder)
        (folder / file).write_text("[]")
        with pytest.raises(ValueError, match=rf"^file: .*{file}: expected a JSON object"):
            kind.from_pretrained(folder)
        (folder / file).unlink()
        with pytest.raises(FileNotFoundError, match=rf"^file: no such file: .*{file}"):
            kind.from_pretrained(folder)


def test_tensors_that_are_not_the_model_s(folder, model) -> None:
    weights = folder / "model.safetensors"
    good = load_file(weights)
    norm = "model.decoder.layernorm.weight"
    for name, change, message in (
        ("missing", {norm: None}, "decoder.final_norm.weight is missing"),
        ("unexpected", {"extra": torch.zeros(1)}, "extra is unexpected"),
        (
            "shape",
            {norm: torch.zeros(3)},
            r"decoder.final_norm.weight has shape \(3,\), expected \(8,",
        ),
        ("head", {"class_labels_classifier.bias": None}, "class_head.bias is missing"),
    ):
        changed = {key: tensor for key, tensor in (good | change).items() if tensor is not None}
        save_file(changed, weights)
        with pytest.raises(ValueError, match=rf"^state: .*{message}") as caught:
            DETR.from_pretrained(folder)
        assert name in str(caught.value) or name in ("shape", "head")
    weights.write_bytes(weights.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"truncated or no safetensors file"):
        DETR.from_pretrained(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "bert"}, "expected a model of the kind detr, got bert"),
        ({"position_embedding_type": "learned"}, "expected position_embedding_type = sine"),
        ({"dilation": True}, "expected dilation = False"),
        ({"decoder_ffn_dim": 5}, "expected one ffn_dim for both stacks, got 8 and 5"),
        ({"decoder_attention_heads": 1}, "expected one attention_heads for both stacks"),
        ({"backbone_config": None, "backbone": "swin"}, "expected a backbone of .* got swin"),
        ({"backbone_config": {"model_type": "swin"}}, "expected model_type = resnet"),
        (
            {"backbone_config": {"model_type": "resnet", "downsample_in_bottleneck": True}},
            "expected downsample_in_bottleneck = False for the backbone, got True",
        ),
        (
            {"backbone_config": {"model_type": "resnet", "out_features": ["stage2"]}},
            r"expected out_features = \['stage4'\]",
        ),
    ],
)
def test_published_models_of_other_kinds(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^published: {message}"):
        config_from_published(config_to_published(CONFIG) | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"do_normalize": False}, "do_normalize: expected true"),
        ({"resample": 3}, "resample: expected 2 in .* got 3"),
        ({"pad_size": {"height": 8, "width": 8}}, "pad_size: expected None"),
        ({"size": {"height": 8, "width": 8}}, "size: expected shortest_edge and longest_edge"),
    ],
)
def test_published_processors_of_other_kinds(folder, change: dict, message: str) -> None:
    file = folder / "preprocessor_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(ValueError, match=rf"^{message}"):
        ImageProcessor.from_pretrained(folder)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"encoder_layers": 2**63}, "asks for 9223372036854775810 layers"),
        ({"encoder_ffn_dim": 10**9, "decoder_ffn_dim": 10**9}, "asks for d_ff = 1000000000"),
        ({"num_queries": 10**9}, "asks for n_queries = 1000000000"),
        ({"d_model": 10**9}, "asks for d_model = 1000000000"),
        ({"id2label": {"999999999": "x"}}, "labels: expected ids from 0 on, .*got 999999999"),
        ({"id2label": {"9" * 30: "x"}}, "published: expected numbers as keys of id2label"),
    ],
)
def test_sizes_are_held_against_the_weights_before_anything_is_built(
    folder, entries: dict, message: str
) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | entries))
    with pytest.raises(ValueError, match=message):
        DETR.from_pretrained(folder)


def test_nested_too_deeply(folder) -> None:
    (folder / "config.json").write_text('{"a":' * 100_000)
    with pytest.raises(ValueError, match=r"config.json: expected JSON at most"):
        DETR.from_pretrained(folder)


def test_the_copy_for_detection_is_not_trained(model) -> None:
    fast = for_detection(model)
    with pytest.raises(TypeError, match=r"^model: what for_detection returned cannot be trained"):
        fast.train()
    assert not fast.training


def test_the_copy_for_detection_is_not_saved(model, tmp_path) -> None:
    with pytest.raises(TypeError, match=r"^model: what for_detection returned cannot be saved"):
        for_detection(model).save_pretrained(tmp_path)
    assert not list(tmp_path.iterdir())


# Scores


def labelled(*labels: str, boxes: int = 1) -> SimpleNamespace:
    return SimpleNamespace(
        image=Image.new("RGB", (8, 8)), boxes=[(0.0, 0.0, 4.0, 4.0)] * boxes, labels=labels
    )


def test_data_that_cannot_be_scored(model) -> None:
    processor = ImageProcessor(8, 8)
    with pytest.raises(
        ValueError, match=r"^dataset: label 'horse' in picture 1 is not the model's"
    ):
        evaluate(model, processor, [labelled("cat"), labelled("horse")])
    with pytest.raises(ValueError, match=r"^dataset: picture 0 has 2 boxes, but 1 labels"):
        evaluate(model, processor, [labelled("cat", boxes=2)])
    for nothing in ([], [labelled(boxes=0)]):
        with pytest.raises(ValueError, match=r"^dataset: expected objects to be found, got none"):
            evaluate(model, processor, nothing)

    shares = labelled("cat")
    shares.boxes = [(0.1, 0.2, 0.5, 1.0)]
    with pytest.raises(ValueError, match=r"^dataset: no box reaches beyond the first pixel"):
        evaluate(model, processor, [shares, shares])
    with pytest.raises(TypeError, match=r"^model: expected a DETR, got str"):
        evaluate("scenes-detr", processor, [labelled("cat")])
    with pytest.raises(TypeError, match=r"^dataset: expected a list or dataset, got generator"):
        evaluate(model, processor, (labelled("cat") for _ in range(2)))


def test_without_faster_coco_eval(model, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "faster_coco_eval", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install .*\[detection\]"):
        evaluate(model, ImageProcessor(8, 8), [labelled("cat")])
