"""The recipe of the shipped detector runs, resumes, and what it left behind belongs together."""

import hashlib
import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from transformer_lib.checkpoints import Run
from transformer_lib.detection.detr import DETR
from transformer_lib.detection.processing import ImageProcessor

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes"
SHIPPED = ROOT / "transformer_lib/models/scenes-detr"
RECORD = json.loads((RECIPES / "scenes_detr/scores.json").read_text(encoding="utf-8"))
LOG = [json.loads(line) for line in (RECIPES / "scenes_detr/log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def recipe():
    """Return the recipe as a module."""
    sys.path.insert(0, str(RECIPES))
    yield importlib.import_module("scenes_detr")
    sys.path.remove(str(RECIPES))


def test_the_shipped_weights_are_those_that_were_scored():
    weights = (SHIPPED / "model.safetensors").read_bytes()
    assert hashlib.sha256(weights).hexdigest() == RECORD["sha256"]
    assert len(weights) < 16e6


def test_the_log_is_that_of_the_whole_run(recipe):
    made = RECORD["recipe"]
    for phase in recipe.PHASES:
        lines = [line for line in LOG if line["phase"] == phase]
        assert [line["step"] for line in lines] == list(range(100, made[phase]["steps"] + 1, 100))
        assert lines[-1]["loss"] < lines[0]["loss"]
    assert sum(line["seconds"] for line in LOG) == pytest.approx(RECORD["seconds"], abs=5)
    assert RECORD["seconds"] * RECORD["threads"] <= 2 * 2 * 60 * 60
    assert json.loads(json.dumps(recipe.asdict(recipe.Recipe()))) == made


def test_the_card_says_what_was_scored():
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    for name, ap in RECORD["scores"].items():
        assert f"| {name} | " in card
        assert f"| {ap['AP']:.3f} | {ap['AP50']:.3f} |" in card
    model = DETR.from_pretrained(SHIPPED)
    assert f"{sum(p.numel() for p in model.parameters()):,} parameters" in card


def test_scored_again_it_has_about_the_recorded_scores(recipe):
    """A tenth of the scenes, drawn anew: a stale model or changed drawing would be far off."""
    model, processor = DETR.from_pretrained(SHIPPED), ImageProcessor.from_pretrained(SHIPPED)
    again = recipe.score(model, processor, recipe.draw_split("test", 100, recipe.LARGE[0]))
    assert again["AP50"] == pytest.approx(RECORD["scores"]["test"]["AP50"], abs=0.03)
    assert again["AP"] == pytest.approx(RECORD["scores"]["test"]["AP"], abs=0.03)


def small(recipe):
    """Return a run of a second or two, the last phase with larger pictures."""
    sizes = ((40, 32), (32, 40), (32, 32), (48, 32))
    short = recipe.Phase(steps=4, learning_rate=1e-3, warmup=2, edge=32, sizes=sizes)
    half_as_large_again = tuple((3 * width // 2, 3 * height // 2) for width, height in sizes)
    larger = replace(short, edge=48, sizes=sizes + half_as_large_again)
    return replace(
        recipe.Recipe(),
        pretraining=short,
        training=short,
        refining=larger,
        scenes=16,
        batch=4,
        sets=2,
    )


def train(recipe, folder: Path) -> dict[str, torch.Tensor]:
    """Train, or train on, and return the weights; progress is saved every second update."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipe, "score", lambda *_: {})
        patch.setattr(recipe, "draw_split", lambda *_: [])
        patch.setattr(recipe, "LOG_EVERY", 2)
        torch.manual_seed(0)
        model = DETR(recipe.CONFIG)
        recipe.train(model, small(recipe), folder)
    return model.state_dict()


@pytest.fixture(scope="module")
def through(recipe, tmp_path_factory) -> dict[str, torch.Tensor]:
    """Return the weights of a run that was not stopped."""
    return train(recipe, tmp_path_factory.mktemp("through"))


class StopError(Exception):
    """What stops a run."""


@pytest.mark.parametrize("stopped_in", ["pretraining", "training", "refining"])
def test_a_stopped_run_goes_on_to_the_same_weights(
    recipe, through, tmp_path, monkeypatch, stopped_in
):
    save = Run.save

    def save_and_stop(run):
        save(run)
        if run.folder.path.name == stopped_in and run.step == 2:
            raise StopError

    with monkeypatch.context() as patch:
        patch.setattr(Run, "save", save_and_stop)
        with pytest.raises(StopError):
            train(recipe, tmp_path)
    resumed = train(recipe, tmp_path)
    assert all(torch.equal(through[name], resumed[name]) for name in through)


def test_another_recipe_does_not_go_on(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(recipe, "score", lambda *_: {})
    monkeypatch.setattr(recipe, "draw_split", lambda *_: [])
    recipe.train(DETR(recipe.CONFIG), small(recipe), tmp_path)
    other = replace(small(recipe), seed=1)
    with pytest.raises(ValueError, match=r"^config: the checkpoint in .* has seed = 0, now 1"):
        recipe.train(DETR(recipe.CONFIG), other, tmp_path)


def test_a_place_learns_the_smallest_object_around_it(recipe):
    """By hand, on a 2 x 2 map: a large object on the left half, a small one in a corner of it."""
    target = recipe.Target(
        torch.tensor([3, 7]), torch.tensor([[0.25, 0.5, 0.5, 1.0], [0.25, 0.25, 0.4, 0.4]])
    )
    labels, boxes = recipe.place_targets([target], 2, 2)
    nothing = len(recipe.scenes.LABELS)
    assert labels.tolist() == [[7, nothing, 3, nothing]]
    assert torch.equal(boxes[0, 0], target.boxes[1])
    assert torch.equal(boxes[0, 2], target.boxes[0])


def test_one_set_of_queries_gives_the_loss_of_the_library(recipe):
    torch.manual_seed(0)
    model = DETR(recipe.CONFIG).eval()
    pixels = torch.randn(2, 3, 64, 64)
    targets = [recipe.Target(torch.tensor([1]), torch.tensor([[0.5, 0.5, 0.2, 0.2]]))] * 2
    expected = recipe.set_loss(model(pixels), targets)["loss"]
    torch.testing.assert_close(recipe.SetLoss(model, 1)(pixels, targets), expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--steps", "0"], "--steps: expected 1 or more"), (["--scenes", "3"], "--scenes: exp")],
)
def test_bad_arguments_are_named(arguments, message, tmp_path):
    done = subprocess.run(
        [sys.executable, str(RECIPES / "scenes_detr.py"), "--folder", str(tmp_path), *arguments],
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert message in done.stderr


def test_another_number_of_scenes_is_drawn_anew(recipe, tmp_path):
    for number in (2, 4, 2):
        ((pictures, targets),) = recipe.draw([(48, 48)], number, tmp_path)
        assert len(pictures) == len(targets) == number


def test_smaller_pictures_are_enlarged(recipe, tmp_path):
    """Batches of small and large scenes come in turn, all with the shorter edge of the phase."""
    made = small(recipe)
    batches = recipe.Batches(made, made.refining, tmp_path)
    shapes = [tuple(batches[number][0].shape[2:]) for number in range(8)]
    assert shapes == [(60, 48), (48, 48), (48, 72), (48, 60)] * 2
