"""Average precision is COCO's own: with crowds, pictures without objects and doubled ids too."""

import json
import random

import pytest
import torch
from faster_coco_eval import COCO, COCOeval_faster
from PIL import Image

from transformer_lib.detection.boxes import to_centres
from transformer_lib.detection.coco import read_coco
from transformer_lib.detection.configuration import DETRConfig, ResNetConfig
from transformer_lib.detection.detr import DETR, Predictions
from transformer_lib.detection.evaluation import evaluate
from transformer_lib.detection.processing import ImageProcessor, detect

LABELS = ("cat", "dog")
SIZE = (200, 160)
NAMES = ("AP", "AP50", "AP75", "AP_small", "AP_medium", "AP_large")
CONFIG = DETRConfig(
    LABELS,
    ResNetConfig(depths=(1,), widths=(8,), stem_width=8, block="basic"),
    d_model=8,
    n_heads=2,
    n_encoder_layers=1,
    n_decoder_layers=1,
    d_ff=8,
)
PROCESSOR = ImageProcessor(16, 20)


class Told(DETR):
    """A detector that answers what it was told, by the number that colours a picture."""

    answers: dict[int, Predictions]

    def forward(self, pixels, pixel_mask=None):
        """Return the answers for the pictures of a batch."""
        numbers = [round((picture[0, 0, 0].item() * 0.229 + 0.485) * 255) for picture in pixels]
        given = [self.answers[number] for number in numbers]
        return Predictions(
            torch.cat([a.logits for a in given]), torch.cat([a.boxes for a in given])
        )


def a_box(chance: random.Random) -> list[float]:
    side = chance.choice([20, 60, 110])
    x, y = chance.randrange(0, SIZE[0] - side), chance.randrange(0, SIZE[1] - side)
    return [x, y, side, side + chance.randrange(0, SIZE[1] - side - y + 1) // 4]


@pytest.fixture
def world(tmp_path):
    """Return a file of annotations, and a detector that is right now and then."""
    chance = random.Random(5)
    images, annotations, model = [], [], Told(CONFIG).eval()
    model.answers = {}
    for number in range(12):
        Image.new("RGB", SIZE, (number, 0, 0)).save(tmp_path / f"{number}.png")
        images.append({"id": 100 + number, "file_name": f"{number}.png"})
        corners, labels = [], []
        for _ in range(0 if number % 4 == 3 else 5):  # every fourth picture is empty
            bbox, category = a_box(chance), chance.choice([3, 8])
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": 100 + number,
                    "category_id": category,
                    "bbox": bbox,
                    "area": bbox[2] * bbox[3] * chance.choice([0.3, 0.9]),
                    "iscrowd": int(chance.random() < 0.3),
                }
            )
            for _ in range(chance.randrange(3)):
                x, y, width, height = bbox
                shift = chance.uniform(-0.15, 0.15) * width
                corners.append([x + shift, y, x + shift + width, y + height])
                labels.append((3, 8).index(category))
        for _ in range(3):
            x, y, width, height = a_box(chance)
            corners.append([x, y, x + width, y + height])
            labels.append(chance.randrange(2))
        logits = torch.tensor([0.0, 0, 9]).repeat(1, 20, 1)  # the other queries find nothing
        corners += [[0.0, 0, 1, 1]] * (20 - len(corners))
        for query, label in enumerate(labels):
            logits[0, query] = 0
            logits[0, query, label] = chance.uniform(-1, 4)
        boxes = to_centres(torch.tensor(corners) / torch.tensor([*SIZE, *SIZE]))
        model.answers[number] = Predictions(logits, boxes[None])
    categories = [{"id": 3, "name": "cat"}, {"id": 8, "name": "dog"}]
    table = {"images": images, "annotations": annotations, "categories": categories}
    return tmp_path, table, model


def official(table, model) -> dict[str, float]:
    """Return what the official evaluation makes of a file and of the model's detections."""
    found = []
    for number, entry in enumerate(table["images"]):
        picture = Image.new("RGB", SIZE, (number, 0, 0))
        (detections,) = detect(model, PROCESSOR, [picture], threshold=0.0)
        for score, label, (x0, y0, x1, y1) in zip(
            *(column.tolist() for column in detections), strict=True
        ):
            box = {"bbox": [x0, y0, x1 - x0, y1 - y0], "score": score}
            found.append(box | {"image_id": entry["id"], "category_id": (3, 8)[label]})
    truth = COCO(table)
    scorer = COCOeval_faster(truth, truth.loadRes(found), "bbox")
    scorer.evaluate()
    scorer.accumulate()
    scorer.summarize()
    return dict(zip(NAMES, map(float, scorer.stats), strict=False))


def scored(folder, table, model) -> dict[str, float]:
    (folder / "boxes.json").write_text(json.dumps(table), encoding="utf-8")
    return evaluate(model, PROCESSOR, read_coco(folder / "boxes.json", folder), batch_size=5)


def test_scores_are_the_official_ones(world):
    folder, table, model = world
    got = scored(folder, table, model)
    assert got == pytest.approx(official(table, model))
    assert 0.05 < got["AP"] < 0.95
    assert set(got) == set(NAMES)


def test_crowds_are_no_objects_and_no_mistakes(world):
    folder, table, model = world
    crowds = [each for each in table["annotations"] if each["iscrowd"]]
    assert 3 < len(crowds) < 20
    left_out = table | {"annotations": [a for a in table["annotations"] if not a["iscrowd"]]}
    as_objects = table | {"annotations": [a | {"iscrowd": 0} for a in table["annotations"]]}
    got = scored(folder, table, model)["AP"]
    assert got > scored(folder, left_out, model)["AP"]  # what is found there is no false alarm
    assert got != scored(folder, as_objects, model)["AP"]


def test_what_is_found_in_an_empty_picture_is_wrong(world):
    folder, table, model = world
    full = {each["image_id"] for each in table["annotations"]}
    without = table | {"images": [each for each in table["images"] if each["id"] in full]}
    assert len(without["images"]) == 9
    assert scored(folder, table, model)["AP"] < scored(folder, without, model)["AP"]


def test_areas_decide_on_sizes(world):
    folder, table, model = world
    annotations = [{k: v for k, v in a.items() if k != "area"} for a in table["annotations"]]
    boxes = scored(folder, table | {"annotations": annotations}, model)
    given = scored(folder, table, model)
    assert boxes["AP"] == pytest.approx(given["AP"])
    assert boxes["AP_medium"] != pytest.approx(given["AP_medium"])


def test_annotations_with_one_id_count_each(world):
    folder, table, model = world
    doubled = [a | {"id": a["id"] // 2} for a in table["annotations"]]
    assert scored(folder, table | {"annotations": doubled}, model) == scored(folder, table, model)


def test_a_detector_that_finds_nothing_scores_zero(world):
    folder, table, model = world
    for number, answer in model.answers.items():
        logits = answer.logits.clone()
        logits[..., -1] = 1e4  # so sure of "no object" that no probability is above 0
        model.answers[number] = answer._replace(logits=logits)
    assert scored(folder, table, model) == dict.fromkeys(NAMES, 0.0)
