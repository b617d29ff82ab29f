"""What cannot be drawn is refused by name."""

import re

import pytest
from PIL import Image

from transformer_lib.datasets.scenes import LABELS, Scene, draw_object, draw_scene, to_coco

KNOWN = (
    "'clock', 'horse', 'person', 'cat', 'potted plant', 'dining table', 'vase', 'donut', 'cup', "
    "'chair', 'fried chicken', 'beer'"
)


def refused(error, message, draw, *arguments, **named):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        draw(*arguments, **named)


SHARED = [
    ({"seed": -1}, ValueError, "seed: expected 0 or more, got -1"),
    ({"seed": True}, TypeError, "seed: expected an integer, got True"),
    ({"seed": 1.0}, TypeError, "seed: expected an integer, got 1.0"),
    ({"seed": None}, TypeError, "seed: expected an integer, got None"),
    (
        {"split": "dev"},
        ValueError,
        "split: expected 'train', 'valid', 'test', 'unfamiliar', got 'dev'",
    ),
    ({"size": 160}, TypeError, "size: expected width and height, got 160"),
    ({"size": "32"}, TypeError, "size: expected width and height, got '32'"),
    ({"size": (160,)}, TypeError, "size: expected width and height, got (160,)"),
    ({"size": (160, 128, 3)}, TypeError, "size: expected width and height, got (160, 128, 3)"),
    ({"size": (160, 128.0)}, TypeError, "size: expected an integer, got 128.0"),
    ({"size": (True, 64)}, TypeError, "size: expected an integer, got True"),
    (
        {"size": (31, 64)},
        ValueError,
        "size: expected at least 32 pixels along either side, got (31, 64)",
    ),
    (
        {"size": [64, 0]},
        ValueError,
        "size: expected at least 32 pixels along either side, got (64, 0)",
    ),
]


@pytest.mark.parametrize(("bad", "error", "message"), SHARED)
def test_bad_seeds_splits_and_sizes(bad, error, message):
    arguments = {"seed": 0, **bad}
    refused(error, message, draw_scene, **arguments)
    refused(error, message, draw_object, label="cat", **arguments)


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ((), ValueError, "labels: expected at least one name, got none"),
        (("cat", "dog"), ValueError, f"labels: expected one of {KNOWN}, got 'dog'"),
        ((3,), ValueError, f"labels: expected one of {KNOWN}, got 3"),
        ("cat", TypeError, "labels: expected a sequence of names, got 'cat'"),
        ({"cat"}, TypeError, "labels: expected a sequence of names, got {'cat'}"),
        (None, TypeError, "labels: expected a sequence of names, got None"),
    ],
)
def test_bad_labels(labels, error, message):
    refused(error, message, draw_scene, 0, labels=labels)


@pytest.mark.parametrize(
    ("objects", "error", "message"),
    [
        (0, ValueError, "objects: expected 1 to 20, got 0"),
        (21, ValueError, "objects: expected 1 to 20, got 21"),
        (True, TypeError, "objects: expected an integer, got True"),
        (2.0, TypeError, "objects: expected an integer, got 2.0"),
    ],
)
def test_bad_numbers_of_objects(objects, error, message):
    refused(error, message, draw_scene, 0, objects=objects)


def test_an_unknown_label_of_one_object():
    refused(ValueError, f"label: expected one of {KNOWN}, got 'dog'", draw_object, 0, "dog")


def test_the_bounds_themselves_are_drawn():
    assert draw_scene(0, size=[32, 33], labels=["cat"], objects=1).image.size == (32, 33)
    assert len(draw_scene(0, size=(32, 32), labels=("vase",), objects=20).boxes) == 20


IMAGE = Image.new("RGB", (8, 8))


def test_a_scene_needs_a_label_for_each_box():
    message = "labels: expected one for each of 1 boxes, got 2"
    refused(ValueError, message, Scene, IMAGE, ((0.0, 0.0, 1.0, 1.0),), ("cat", "cat"))


def test_coco_has_categories_for_all_labels(tmp_path):
    scenes = [Scene(IMAGE, (), ()), Scene(IMAGE, ((0.0, 0.0, 1.0, 1.0),), ("dog",))]
    expected = f"scenes: expected labels among {', '.join(LABELS)}; scene 2 has dog"
    refused(ValueError, expected, to_coco, scenes, tmp_path)
    refused(
        ValueError,
        "scenes: expected labels among cat, cup; scene 2 has dog",
        to_coco,
        scenes,
        labels=("cat", "cup"),
    )
    assert not (tmp_path / "annotations.json").exists()
