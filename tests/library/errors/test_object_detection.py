"""What the object detection pipeline says when it cannot go on: which picture, what came, why."""

import copy
import io
import json
import os
import re
import sys
import warnings
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from transformer_lib.datasets import scenes
from transformer_lib.detection.coco import read_coco
from transformer_lib.detection.configuration import DETRConfig, ResNetConfig
from transformer_lib.detection.detr import DETR, for_detection
from transformer_lib.detection.drawing import draw_detections
from transformer_lib.detection.evaluation import evaluate
from transformer_lib.detection.fine_tuning import fine_tune
from transformer_lib.detection.images import load_image
from transformer_lib.detection.pipeline import ObjectDetectionPipeline, pipeline
from transformer_lib.detection.processing import ImageProcessor

LABELS = ("cat", "clock")
FORMATS = "BMP, GIF, JPEG, PNG, PPM, TIFF, WEBP"
HERE = {"allow_private_addresses": True}
TINY = ResNetConfig(depths=(1,), widths=(8,), stem_width=8, block="basic")
PICTURE = Image.linear_gradient("L").convert("RGB").resize((64, 48))


def saved(image: Image.Image, kind: str) -> bytes:
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


@pytest.fixture(scope="module")
def detector() -> ObjectDetectionPipeline:
    torch.manual_seed(0)
    config = DETRConfig(LABELS, TINY, 8, 1, 0, 1, d_ff=8, n_queries=3)
    return ObjectDetectionPipeline(DETR(config), ImageProcessor(16, 32))


# -- pictures ---------------------------------------------------------------------------------


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^image: nowhere\.jpg: there is no such file$"):
        load_image("nowhere.jpg")
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        load_image("nul\0byte.jpg")
    with pytest.raises(FileNotFoundError, match=r"^image: x{200}…: there is no such file$"):
        load_image("x" * 5000)
    with pytest.raises(IsADirectoryError, match=re.escape(f"image: {tmp_path}: Is a directory")):
        load_image(tmp_path)


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() == 0, reason="all may be read")
def test_a_file_that_must_not_be_read(tmp_path):
    file = tmp_path / "secret.png"
    PICTURE.save(file)
    file.chmod(0)
    with pytest.raises(PermissionError, match=r"secret\.png: Permission denied"):
        load_image(file)


@pytest.mark.parametrize("address", ["ftp://host/a.png", "file:///etc/hostname", "s3://a/b.png"])
def test_addresses_that_are_not_of_the_web(address):
    with pytest.raises(ValueError, match=re.escape(f"image: {address}: expected a path, or an")):
        load_image(address)


def test_servers_that_cannot_be_reached(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(ConnectionError, match=r"^image: http://127\.0\.0\.1:1/a\.png: "):
        load_image("http://127.0.0.1:1/a.png", timeout=5, **HERE)
    with pytest.raises(ConnectionError, match=r"^image: http:///a: no host given"):
        load_image("http:///a", timeout=5)


@pytest.mark.parametrize(
    "background", [None, "red", (0, 0), (300, 0, 0), (0, -1, 0), (0.5, 0, 0), [0, 0, None]]
)
def test_backgrounds_that_are_no_colour(background):
    for picture in (PICTURE, b"no picture"):
        with pytest.raises(ValueError, match=r"^background: expected "):
            load_image(picture, background=background)


def test_greys_without_a_known_scale():
    """Of 8 bits or of 16: in mode I both may be, and the wrong guess makes the picture black."""
    greys = np.asarray(PICTURE.convert("L")).astype(np.int32)
    assert greys.max() > 1
    with pytest.raises(ValueError, match=r"^image: .* greys of mode I up to \d+ may have 8 bits"):
        load_image(Image.fromarray(greys))


def test_files_that_are_opened_as_text():
    with pytest.raises(ValueError, match=r"^image: the picture cannot be read"):
        load_image(io.StringIO("no picture"))


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_that_is_none(timeout):
    with pytest.raises(
        ValueError, match=f"^timeout: expected seconds above 0, or None, got {timeout}"
    ):
        load_image("http://127.0.0.1:1/a.png", timeout=timeout)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "nothing"),
        (b"hello, world", "12 bytes that start with b'hello, world'"),
        (b"\n<!DOCTYPE HTML><p>", "text/html, 19 bytes"),
        (b"<html>", "text/html, 6 bytes"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "41 bytes that start with b'<svg xmlns=\""),
    ],
)
def test_bytes_that_are_no_image(tmp_path, data, what):
    with pytest.raises(
        ValueError, match=re.escape(f"image: expected an image ({FORMATS}), got {what}")
    ):
        load_image(data)
    (tmp_path / "photo.jpg").write_bytes(data)
    with pytest.raises(ValueError, match=r"photo\.jpg: expected an image \(BMP, .*\), got"):
        load_image(tmp_path / "photo.jpg")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP"])
def test_truncated_files(tmp_path, kind):
    chance = np.random.default_rng(0)
    picture = Image.fromarray(chance.integers(0, 256, (48, 64, 3), dtype=np.uint8))
    data = saved(picture, kind)
    file = tmp_path / "half"
    file.write_bytes(data[: len(data) // 2])
    with pytest.raises(
        ValueError, match=r"^image: .*half: (the picture cannot be read|expected an)"
    ):
        load_image(file)


def a_png(width: int, height: int) -> bytes:
    """Return the header of a PNG of any size, and a few bytes of data."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return len(data).to_bytes(4, "big") + kind + data + check.to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\x00\x00\x00"
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(1000)))
        + chunk(b"IEND", b"")
    )


def test_a_decompression_bomb(detector):
    with pytest.raises(ValueError, match=r"images\[1\]: .* exceeds limit of .* decompression bomb"):
        detector([PICTURE, a_png(50_000, 50_000)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        with pytest.raises(ValueError, match="cannot be read"):  # large, but allowed; its data end
            load_image(a_png(10_000, 10_000))


def test_pictures_without_pixels_or_scale():
    with pytest.raises(ValueError, match=r"^image: expected at least one pixel, got 0 × 5"):
        load_image(Image.new("RGB", (0, 5)))
    with pytest.raises(ValueError, match="floating-point pixels have no known scale"):
        load_image(Image.new("F", (2, 2)))
    with pytest.raises(ValueError, match="expected 16-bit greys from 0 to 65535, got 0 to 70000"):
        load_image(Image.fromarray(np.array([[0, 70_000]], dtype=np.int32)))


@pytest.mark.parametrize(
    ("array", "error", "message"),
    [
        (np.zeros((3, 48, 64), np.uint8), ValueError, "(height, width, channels) with 1 to 4"),
        (torch.zeros(48, 64, 3), ValueError, "(channels, height, width) with 1 to 4"),
        (np.zeros((1, 48, 64, 3), np.uint8), ValueError, "got (1, 48, 64, 3)"),
        (np.zeros(5, np.uint8), ValueError, "got (5,)"),
        (np.uint8(5), ValueError, "got ()"),
        (np.zeros((48, 64, 0), np.uint8), ValueError, "got (48, 64, 0)"),
        (np.zeros((0, 64, 3), np.uint8), ValueError, "at least one pixel, got shape (0, 64, 3)"),
        (np.zeros((4, 4), int), TypeError, "got int64"),
        (np.zeros((4, 4), complex), TypeError, "got complex128"),
        (np.full((4, 4), 255.0), ValueError, "expected floats from 0 to 1, got 255 to 255"),
        (np.full((4, 4), -0.1), ValueError, "expected floats from 0 to 1, got -0.1 to -0.1"),
        (torch.full((4, 4), float("nan")), ValueError, "expected floats from 0 to 1, got nan"),
        (np.full((4, 4), None), TypeError, "got object"),
    ],
)
def test_arrays_that_are_no_picture(detector, array, error, message):
    with pytest.raises(error, match=re.escape(message)) as raised:
        load_image(array)
    assert str(raised.value).startswith("image: ")
    with pytest.raises(error, match=re.escape(message)):
        detector(array)


@pytest.mark.parametrize("image", [None, 3, 0.5, {"image": "a.png"}, object()])
def test_what_is_no_picture_at_all(image):
    message = f"^image: expected a path, .* or a tensor, got {type(image).__name__}$"
    with pytest.raises(TypeError, match=message):
        load_image(image)


# -- calls ------------------------------------------------------------------------------------


@pytest.mark.parametrize("images", [None, 3, {"image": "a.png"}, {"a.png", "b.png"}])
def test_what_holds_no_pictures(detector, images):
    message = f"^images: expected a picture .* got {type(images).__name__}$"
    with pytest.raises(TypeError, match=message):
        detector(images)


@pytest.mark.parametrize("batch_size", [1, 2, 8])
def test_one_bad_picture_of_many_is_named(detector, tmp_path, batch_size):
    (tmp_path / "bad.png").write_bytes(b"no picture")
    images = [PICTURE, PICTURE, str(tmp_path / "bad.png"), PICTURE]
    message = r"^images\[2\]: .*bad\.png: expected an image"
    with pytest.raises(ValueError, match=message):
        detector(images, batch_size=batch_size)
    with pytest.raises(ValueError, match=message):
        list(detector(iter(images), batch_size=batch_size))
    with pytest.raises(TypeError, match=r"^images\[1\]: expected a path.*got list"):
        detector([PICTURE, [PICTURE]])
    with pytest.raises(FileNotFoundError, match=r"^images\[0\]: nowhere\.png"):
        detector(("nowhere.png",))


def test_options_out_of_range(detector):
    for threshold in (-0.1, 1.5, float("nan")):
        message = f"^threshold: expected a number from 0 to 1, got {threshold}"
        with pytest.raises(ValueError, match=message):
            detector(PICTURE, threshold=threshold)
        with pytest.raises(ValueError, match=message):
            ObjectDetectionPipeline(detector.model, detector.processor, threshold=threshold)
    with pytest.raises(ValueError, match=r"^batch_size: expected 1 or more, got 0"):
        detector([PICTURE], batch_size=0)
    for options in ({"threshold": "0.5"}, {"threshold": True}):
        with pytest.raises(TypeError, match=r"^threshold: expected a number"):
            detector(PICTURE, **options)
    with pytest.raises(TypeError, match=r"^batch_size: expected a whole number, got 2\.0"):
        detector([PICTURE], batch_size=2.0)
    with pytest.raises(ValueError, match=r"^threshold"):  # at once, not when the first is asked for
        detector(iter([PICTURE]), threshold=2)


def test_predictions_that_are_no_numbers(detector):
    broken = pipeline(model=detector.model, image_processor=detector.processor, dtype=torch.float64)
    with torch.no_grad():
        broken.model.class_head.weight.fill_(float("nan"))
    with pytest.raises(ValueError, match=r"^model: NaN or infinity .*torch\.float64"):
        broken(PICTURE)


# huggingface/transformers#19677
@pytest.mark.parametrize("task", ["object_detection", "Object-Detection", "foo", "", None])
def test_other_tasks(task):
    message = f"^task: expected 'object-detection', got {task!r}"
    with pytest.raises(ValueError, match=message):
        pipeline(task)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("detr-resnet-50", r"; is facebook/detr-resnet-50 meant\?"),
        ("facebook/detr-resnet50", r"; is facebook/detr-resnet-50 meant\?"),
        ("no-such-folder", "$"),
        ("", "$"),
    ],
)
def test_models_that_are_not_there(monkeypatch, name, hint):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(FileNotFoundError, match=f"^model: .*{name}.*{hint}"):
        pipeline("object-detection", name)


def test_the_shipped_name_is_suggested():
    with pytest.raises(FileNotFoundError, match=r"; is scenes-detr meant\?$"):
        pipeline("object-detection", "scenes_detr")


def test_models_of_another_kind_and_damaged_ones(detector, tmp_path):
    detector.save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace('"model_type": "detr"', '"model_type": "bert"'))
    with pytest.raises(ValueError, match=r"^model: .*bert"):
        pipeline("object-detection", tmp_path)
    config.write_text(text)
    weights = tmp_path / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:100])
    with pytest.raises(ValueError, match=r"^model: .*model\.safetensors"):
        pipeline("object-detection", tmp_path)
    weights.write_bytes(whole)
    (tmp_path / "preprocessor_config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"^model: no such file: .*preprocessor_config"):
        pipeline("object-detection", tmp_path)


def test_what_a_pipeline_is_not_made_of(detector):
    with pytest.raises(TypeError, match=r"^dtype: expected a type such as torch\.float16, got 'f"):
        pipeline(dtype="float16")
    with pytest.raises(TypeError, match=r"processor: expected an ImageProcessor, got 3"):
        pipeline(model=detector.model, image_processor=3)


def test_a_model_that_is_given_needs_a_processor(detector):
    with pytest.raises(ValueError, match=r"^image_processor: with a model that is no name"):
        pipeline(model=detector.model)


# -- drawings ---------------------------------------------------------------------------------

BOX = {"xmin": 1, "ymin": 2, "xmax": 3, "ymax": 4}


@pytest.mark.parametrize(
    ("detection", "error", "message"),
    [
        ({"label": "cat"}, ValueError, "expected a label, and a box with xmin, ymin, xmax, ymax"),
        ({"box": BOX}, ValueError, "expected a label, and a box"),
        ({"label": "cat", "box": [1, 2, 3, 4]}, ValueError, "expected a label, and a box"),
        ({"label": "cat", "box": {"x": 1, "y": 2}}, ValueError, "expected a label, and a box"),
        ({"label": "cat", "box": BOX | {"xmax": 0}}, ValueError, "maxima that are not below"),
        ({"label": "cat", "box": BOX | {"ymin": float("nan")}}, ValueError, "maxima that are not"),
        ("cat", TypeError, "expected a dictionary, got str"),
    ],
)
def test_detections_that_cannot_be_drawn(detection, error, message):
    import matplotlib.pyplot as plt

    good = {"label": "cat", "box": BOX}
    with pytest.raises(error, match=re.escape(message)) as raised:
        draw_detections(PICTURE, [good, detection])
    assert str(raised.value).startswith("detections[1]: ")
    assert plt.get_fignums() == []


# -- COCO -------------------------------------------------------------------------------------

CATEGORY, ENTRY = {"id": 2, "name": "beer"}, {"id": 7, "file_name": "a.png"}


def annotation(**changes) -> dict:
    return {"id": 1, "image_id": 7, "category_id": 2, "bbox": [10, 20, 30, 8]} | changes


@pytest.fixture
def coco(tmp_path):
    """Return a function that writes a picture and a JSON file, and reads them."""

    def read(content) -> list:
        PICTURE.save(tmp_path / "a.png")
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / "boxes.json").write_text(text, encoding="utf-8")
        return read_coco(tmp_path / "boxes.json", tmp_path)

    return read


def a_table(**changes) -> dict:
    return {"images": [ENTRY], "annotations": [annotation()], "categories": [CATEGORY]} | changes


def without(entry: dict, *names: str) -> dict:
    return {key: value for key, value in entry.items() if key not in names}


def test_the_good_table_passes(coco):
    assert coco(a_table())[0].labels == ("beer",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{'images'", "is no JSON: Expecting property name"),
        ("[]", "expected images, annotations and categories, got list"),
        (without(a_table(), "images"), "expected a list called 'images' in the file"),
        (without(a_table(), "categories"), "expected a list called 'categories' in the file"),
        (without(a_table(), "annotations"), "expected a list called 'annotations' in the file"),
        (a_table(images={}), "expected a list called 'images'"),
        (a_table(images=[3]), "images[0]: expected an object, got 3"),
        (a_table(images=[without(ENTRY, "id")]), "images[0]: expected 'id', of type int, got none"),
        (a_table(images=[without(ENTRY, "file_name")]), "images[0]: expected 'file_name'"),
        (a_table(images=[ENTRY, ENTRY]), "images[1]: id 7 is there twice"),
        (
            a_table(images=[ENTRY | {"width": 48, "height": 64}]),
            "a.png has 64 × 48 pixels, and not 48",
        ),
        (a_table(categories=[{"id": 2}]), "categories[0]: expected 'name', of type str, got none"),
        (a_table(categories=[CATEGORY | {"id": "2"}]), "expected 'id', of type int, got '2'"),
        (a_table(categories=[CATEGORY, CATEGORY]), "categories[1]: id 2 or name 'beer' is there"),
        (a_table(annotations=[without(annotation(), "bbox")]), "annotations[0]: expected 'bbox'"),
        (a_table(annotations=[annotation(image_id=8)]), "annotations[0]: image_id 8 is the id of"),
        (a_table(annotations=[annotation(category_id=1)]), "category_id 1 is the id of none"),
        (
            a_table(annotations=[annotation(bbox=[1, 2, 3])]),
            "a bbox of four numbers, got [1, 2, 3]",
        ),
        (a_table(annotations=[annotation(bbox=[1, 2, 3, "4"])]), "a bbox of four numbers"),
        (a_table(annotations=[annotation(bbox=[1, 2, 3, True])]), "a bbox of four numbers"),
        (
            a_table(annotations=[annotation(), annotation(bbox=[40, 20, 60, 40])]),
            "annotations[1]: expected a bbox [x, y, width, height] inside of 64 × 48 pixels, got "
            "[40, 20, 60, 40]; is it [xmin, ymin, xmax, ymax]?",
        ),
        (a_table(annotations=[annotation(bbox=[-5, 0, 9, 9])]), "inside of 64 × 48"),
        (a_table(annotations=[annotation(bbox=[9, 9, -3, 3])]), "inside of 64 × 48"),
        (a_table(annotations=[annotation(bbox=[9, 9, float("nan"), 3])]), "inside of 64 × 48"),
        (
            a_table(annotations=[annotation(bbox=[0.5, 0.5, 0.2, 0.3])]),
            "no box reaches beyond the first pixel: expected boxes in pixels",
        ),
        (  # centres and sizes as shares: the far corner lies beyond the first pixel
            a_table(annotations=[annotation(bbox=[0.6, 0.5, 0.6, 0.7])]),
            "no box reaches beyond the first pixel",
        ),
        *(
            (a_table(annotations=[annotation(iscrowd=crowd)]), "expected 'iscrowd' to be 0 or 1")
            for crowd in ("0", [0], 2)
        ),
    ],
)
def test_coco_files_that_cannot_be_right(coco, content, message):
    with pytest.raises(ValueError, match=re.escape(message)) as raised:
        coco(content)
    assert str(raised.value).startswith("annotations: ")


def test_coco_files_and_pictures_that_are_not_there(coco, tmp_path):
    message = r"^annotations: images\[0\]: there is no picture .*b\.png"
    with pytest.raises(FileNotFoundError, match=message):
        coco(a_table(images=[ENTRY | {"file_name": "b.png"}]))
    with pytest.raises(FileNotFoundError, match=r"^annotations: there is no such file: .*other"):
        read_coco(tmp_path / "other.json", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"^images: there is no such folder: .*pictures"):
        read_coco(tmp_path / "boxes.json", tmp_path / "pictures")
    (tmp_path / "bad.png").write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"images\[0\]: .*bad\.png: expected an image"):
        coco(a_table(images=[ENTRY | {"file_name": "bad.png"}]))


def test_only_a_detector_that_learns_can_be_taught(detector):
    with pytest.raises(TypeError, match=r"^detector: expected a pipeline, got DETR"):
        fine_tune(detector.model, [example()])
    fast = ObjectDetectionPipeline(for_detection(detector.model), detector.processor)
    with pytest.raises(TypeError, match=r"^detector: what for_detection returned cannot be"):
        fine_tune(fast, [example()])


@pytest.mark.parametrize("timeout", ["5", True, 1j])
def test_a_timeout_is_a_number(timeout):
    with pytest.raises(TypeError, match=r"^timeout: expected seconds above 0, or None, got"):
        load_image("http://127.0.0.1:1/a.png", timeout=timeout)


@pytest.mark.parametrize("timeout", [float("inf"), 1e10])
def test_a_timeout_may_be_longer_than_clocks_count(timeout):
    with pytest.raises(ConnectionError, match=r"^image: http://127.0.0.1:1/a.png: "):
        load_image("http://127.0.0.1:1/a.png", timeout=timeout, **HERE)


def test_a_model_is_a_name_a_folder_or_a_detr(detector):
    for other in (None, detector, 5):
        with pytest.raises(TypeError, match=r"^model: expected a name, a folder or a DETR, got"):
            pipeline("object-detection", other)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"id2label": None}, "an entry cannot be read"),
        ({"id2label": ["cat", "cup"]}, "expected numbers as keys of id2label"),
        ({"id2label": {"x": "cat"}}, "expected numbers as keys of id2label, got ['x']"),
        ({"backbone_config": "resnet"}, "an entry cannot be read"),
        ({"d_model": "8"}, "d_model: expected int, got '8'"),
    ],
)
def test_damaged_configurations(detector, tmp_path, entries, message):
    detector.save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    published = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(published | entries), encoding="utf-8")
    with pytest.raises(ValueError, match=f"^model: .*{re.escape(message)}"):
        pipeline("object-detection", tmp_path)


def test_a_damaged_processor(detector, tmp_path):
    detector.save_pretrained(tmp_path)
    file = tmp_path / "preprocessor_config.json"
    published = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(published | {"image_mean": None}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"^model: preprocessor_config.json: wrong type"):
        pipeline("object-detection", tmp_path)


def test_a_folder_beside_a_shipped_model_of_its_name(detector, tmp_path, monkeypatch):
    """The name is the library's, and said to be; a path is the folder."""
    monkeypatch.chdir(tmp_path)
    detector.save_pretrained("scenes-detr")
    own = detector.model.config.labels
    for folder in ("./scenes-detr", Path("scenes-detr"), tmp_path / "scenes-detr"):
        assert pipeline("object-detection", folder).model.config.labels == own
    with pytest.warns(UserWarning, match=r"the library's scenes-detr is read, not \./scenes-detr"):
        assert pipeline("object-detection").model.config.labels == scenes.LABELS


def test_a_turned_picture_whose_size_is_that_of_the_stored_one(coco, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    PICTURE.save(tmp_path / "turned.png", exif=exif)
    entry = ENTRY | {"file_name": "turned.png", "width": 64, "height": 48}
    message = "has 48 × 64 pixels, once it is turned upright as its EXIF says, and not 64 × 48"
    with pytest.raises(ValueError, match=message):
        coco(a_table(images=[entry]))


# -- fine-tuning ------------------------------------------------------------------------------


def example(**changes) -> SimpleNamespace:
    whole = {"image": PICTURE, "boxes": ((1, 2, 30, 40),), "labels": ("cat",)}
    return SimpleNamespace(**whole | changes)


@pytest.mark.parametrize(
    ("examples", "options", "error", "message"),
    [
        ([], {}, ValueError, "examples: expected at least one picture, got none"),
        ([example()], {"labels": "beer"}, TypeError, "labels: expected several names, got one"),
        ([example()], {"labels": {"beer"}}, TypeError, "labels: expected a list or tuple of"),
        ([example()], {"labels": None}, TypeError, "labels: expected a list or tuple of names"),
        ([example()], {"labels": [3]}, TypeError, "labels: expected a list or tuple of names"),
        ([example()], {"labels": ("cat",)}, ValueError, "labels: 'cat' is there twice, or known"),
        ([example()], {"labels": ("b", "b")}, ValueError, "labels: 'b' is there twice"),
        ([example()], {"steps": 0}, ValueError, "steps: expected a whole number above 0"),
        ([example()], {"batch_size": 2.5}, ValueError, "batch_size: expected a whole number"),
        (
            [example()],
            {"learning_rate": 0},
            ValueError,
            "learning_rate: expected a number above 0, got 0",
        ),
        (
            [example()],
            {"learning_rate": "a"},
            ValueError,
            "learning_rate: expected a number above 0, got 'a'",
        ),
        ([example()], {"keep": 1.5}, ValueError, "keep: expected a number from 0 to 1, got 1.5"),
        ([example()], {"keep": None}, ValueError, "keep: expected a number from 0 to 1, got None"),
        ([example()], {"seed": None}, ValueError, "seed: expected a whole number, got None"),
        (
            [example(boxes=((0.1, 0.2, 0.5, 1.0),))],
            {},
            ValueError,
            "examples: no box reaches beyond the first pixel: expected boxes in pixels, and not",
        ),
        ([example(), example(labels=("beer",))], {}, ValueError, "examples[1]: expected one of"),
        ([example(labels=("beer",))], {}, ValueError, "got 'beer'; new ones are named by labels="),
        (
            [example(boxes=((1, 2, 3, 4, 5),))],
            {},
            ValueError,
            "examples[0]: expected boxes of four",
        ),
        ([example(boxes=(None,))], {}, ValueError, "examples[0]: expected boxes of four numbers"),
        (
            (each for each in ()),
            {},
            TypeError,
            "examples: expected a list or dataset, got generator",
        ),
        ([example(labels=())], {}, ValueError, "examples[0]: expected as many boxes as labels"),
        ([example(boxes=((30, 2, 1, 40),))], {}, ValueError, "examples[0]: expected boxes (xmin"),
        ([example(boxes=((1, 2, 30, 90),))], {}, ValueError, "inside of 64 × 48 pixels, got (1, 2"),
        ([example(image=b"no")], {}, ValueError, "examples[0]: expected an image"),
        ([SimpleNamespace(image=PICTURE)], {}, TypeError, "examples[0]: expected image, boxes and"),
    ],
)
def test_what_cannot_be_taught(detector, examples, options, error, message):
    options = {"steps": 1, "batch_size": 1, "progress": False} | options
    with pytest.raises(error, match=re.escape(message)) as raised:
        fine_tune(detector, examples, **options)
    assert re.match(
        r"(examples(\[\d\])?|labels|steps|batch_size|learning_rate|keep|seed): ", str(raised.value)
    )


def test_half_precision_is_not_taught(detector):
    half = pipeline(model=detector.model, image_processor=detector.processor, dtype=torch.float16)
    with pytest.raises(TypeError, match=r"^detector: expected weights of float32 .*float16"):
        fine_tune(half, [example()], progress=False)


def test_more_objects_than_queries(detector):
    crowded = example(boxes=((1, 2, 30, 40),) * 5, labels=("cat",) * 5)
    with pytest.warns(UserWarning, match="at most 3 objects in a picture"):
        fine_tune(detector, [crowded], steps=1, batch_size=1, progress=False)


class DrawnAsAsked:
    """A dataset that has whatever number it is asked for, as many of those that draw do."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, number: int) -> SimpleNamespace:
        assert number < 2, "asked for more than there are"
        return example()


def test_datasets_end_at_their_length(detector):
    options = {"labels": ("beer",), "steps": 1, "progress": False}
    taught = fine_tune(detector, DrawnAsAsked(), **options)
    assert evaluate(taught.model, taught.processor, DrawnAsAsked())["AP50"] >= 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_models_of_other_types_are_scored(detector, dtype):
    model = copy.deepcopy(detector.model).to(dtype)
    assert evaluate(model, detector.processor, [example()])["AP50"] >= 0


@pytest.mark.parametrize(
    ("boxes", "options", "message"),
    [
        (((30, 40, 10, 5),), {}, "dataset: picture 1: expected boxes (xmin, ymin, xmax, ymax) ins"),
        (((1, 2, 30, 90),), {}, "inside of 64 × 48 pixels, got (1, 2, 30, 90)"),
        (((1, 2, 3),), {}, "dataset: picture 1: expected boxes of four numbers"),
        (((1, 2, 30, 40),), {"batch_size": 0}, "batch_size: expected 1 or more, got 0"),
    ],
)
def test_what_cannot_be_scored(detector, boxes, options, message):
    dataset = [example(), example(boxes=boxes)]
    with pytest.raises(ValueError, match=re.escape(message)):
        evaluate(detector.model, detector.processor, dataset, **options)


def test_predictions_that_are_no_numbers_are_not_scored(detector):
    model = copy.deepcopy(detector.model)
    torch.nn.init.constant_(model.class_head.bias, float("nan"))
    with pytest.raises(ValueError, match=r"^model: NaN or infinity in its predictions"):
        evaluate(model, detector.processor, [example()])
