"""``python -m transformer_lib detect``: what it prints and draws, and how it ends."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import transformer_lib
from transformer_lib.__main__ import main
from transformer_lib.detection.configuration import DETRConfig, ResNetConfig
from transformer_lib.detection.detr import DETR
from transformer_lib.detection.pipeline import ObjectDetectionPipeline
from transformer_lib.detection.processing import ImageProcessor

ROOT = Path(transformer_lib.__file__).parent.parent
SHIPPED = ROOT / "transformer_lib/models/scenes-detr"


@pytest.fixture(scope="module")
def detector(tmp_path_factory) -> tuple[ObjectDetectionPipeline, str]:
    """Return a random detector that is sure of something, and the folder it was saved in."""
    folder = tmp_path_factory.mktemp("model")
    torch.manual_seed(0)
    backbone = ResNetConfig(depths=(1,), widths=(8,), stem_width=8, block="basic")
    model = DETR(DETRConfig(("cat", "cup of tea"), backbone, 8, 1, 0, 1, d_ff=8, n_queries=2))
    with torch.no_grad():
        model.class_head.bias += torch.tensor([0.0, 3.0, 0.0])
    detector = ObjectDetectionPipeline(model, ImageProcessor(16, 32))
    detector.save_pretrained(folder)
    return detector, str(folder)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys, detector):
    """Return a function that runs the command in this process, and checks how it ends."""

    def run(*arguments: str, status: int = 0, errors: str = "") -> str:
        monkeypatch.chdir(tmp_path)
        try:
            ended = main(["detect", *arguments, "--model", detector[1]])
        except SystemExit as end:  # how argparse ends
            ended = end.code
        output, problems = capsys.readouterr()
        assert (ended, bool(problems)) == (status, bool(errors)), problems
        assert errors in problems
        return output

    return run


@pytest.fixture
def photo(tmp_path) -> Image.Image:
    picture = Image.linear_gradient("L").convert("RGB").resize((64, 48))
    picture.save(tmp_path / "photo.png")
    return picture


def lines_of(name: str, found: list[dict]) -> str:
    lines = [f"{name}: {len(found)} object{'' if len(found) == 1 else 's'}"]
    for detection in found:
        box = detection["box"]
        sides = f"{box['xmin']} {box['ymin']} {box['xmax']} {box['ymax']}"
        lines.append(f"  {detection['score']:.4f}  {detection['label']}  {sides}")
    return "".join(f"{line}\n" for line in lines)


def test_what_it_prints(run, detector, photo):
    found = detector[0](photo)
    assert len(found) == 2
    assert run("photo.png") == lines_of("photo.png", found)
    assert run("photo.png", "--threshold", "0.999") == "photo.png: 0 objects\n"
    least = min(detection["score"] for detection in found)
    one = run("photo.png", "--threshold", str(least))
    assert one == lines_of("photo.png", [d for d in found if d["score"] > least])
    assert "photo.png: 1 object\n" in one


def test_a_bad_picture_is_named_and_the_others_follow(run, detector, photo, tmp_path):
    (tmp_path / "bad.png").write_bytes(b"no picture")
    errors = "python -m transformer_lib: picture: bad.png: expected an image (BMP, GIF, "
    out = run("photo.png", "bad.png", "photo.png", status=1, errors=errors)
    assert out == 2 * lines_of("photo.png", detector[0](photo))
    run("nowhere.png", status=1, errors="picture: nowhere.png: there is no such file")
    run("ftp://host/a.png", status=1, errors="ftp://host/a.png: expected a path, or an address")


def test_drawings_in_a_folder(run, photo, tmp_path):
    (tmp_path / "other").mkdir()
    photo.save(tmp_path / "other/photo.webp")
    run("photo.png", "other/photo.webp", "--output", "drawn/here")
    drawn = sorted(path.name for path in (tmp_path / "drawn/here").iterdir())
    assert drawn == ["photo-detections-2.png", "photo-detections.png"]
    with Image.open(tmp_path / "drawn/here/photo-detections.png") as drawing:
        assert drawing.size == (480, 360)
        colours = {colour for _, colour in drawing.convert("RGB").getcolors(2**20)}
    assert any(blue - red > 100 for red, _, blue in colours)  # the picture has only greys
    run("photo.png", "--output", ".")
    assert (tmp_path / "photo-detections.png").exists()
    with Image.open(tmp_path / "photo.png") as untouched:
        assert untouched.size == (64, 48)


@pytest.mark.parametrize("name", ["drawing.png", "drawing.jpg", "drawing.webp", "drawing.pdf"])
def test_a_drawing_in_a_file(run, photo, tmp_path, name):
    run("photo.png", "--output", name)
    assert (tmp_path / name).stat().st_size > 1000


def test_outputs_that_cannot_be(run, photo, tmp_path):
    errors = "output: expected a folder for 2 pictures, got drawing.png"
    assert run("photo.png", "photo.png", "--output", "drawing.png", status=1, errors=errors) == ""
    gif = "expected a folder or one of .png, .jpg, .jpeg, .webp, .pdf, .svg, got x.gif"
    run("photo.png", "--output", "x.gif", status=1, errors=gif)
    run("photo.png", "--output", "nowhere/x.png", status=1, errors="there is no folder nowhere")
    before = (tmp_path / "photo.png").read_bytes()
    run("photo.png", "--output", "photo.png", status=1, errors="photo.png is the picture itself")
    run("photo.png", "--output", "./photo.png", status=1, errors="is the picture itself")
    assert (tmp_path / "photo.png").read_bytes() == before


def test_no_picture_is_drawn_over(run, photo, tmp_path):
    photo.save(tmp_path / "photo-detections.png")
    before = (tmp_path / "photo-detections.png").read_bytes()
    run("photo.png", "photo-detections.png", "--output", ".")
    assert (tmp_path / "photo-detections.png").read_bytes() == before
    assert (tmp_path / "photo-detections-2.png").exists()
    assert (tmp_path / "photo-detections-detections.png").exists()


def test_drawings_leave_no_figure_open(run, photo):
    import matplotlib.pyplot as plt

    plt.close("all")
    run("photo.png", "photo.png", "--output", "drawn")
    assert plt.get_fignums() == []


@pytest.mark.slow
def test_labels_on_a_large_photo_can_be_read(run, tmp_path):
    """They grow with the picture: seen at a screen's width, their ground is as high as ever."""
    Image.new("RGB", (3000, 2000), "gray").save(tmp_path / "large.png")
    run("large.png", "--output", "drawn.png")
    with Image.open(tmp_path / "drawn.png") as drawn:
        assert drawn.size == (3000, 2000)
        small = drawn.convert("RGB").resize((900, 600))
    colours = np.asarray(small).astype(int)
    coloured = (colours.max(axis=-1) - colours.min(axis=-1) > 60).sum(axis=1)  # in each row
    rows = "".join("x" if many else " " for many in coloured > 30)  # lines of boxes are narrower
    assert max(map(len, rows.split())) >= 9


def test_a_drawing_that_cannot_be_written_stops_no_other(run, photo, tmp_path):
    long = "x" * 245 + ".png"  # with "-detections" no name of a file any more
    photo.save(tmp_path / long)
    out = run(long, "photo.png", "--output", "drawn", status=1, errors="File name too long")
    assert out.count("2 objects") == 2
    assert (tmp_path / "drawn/photo-detections.png").exists()


def test_what_pillow_says_of_a_drawing_is_passed_on(run, photo, monkeypatch):
    """Its errors are OSErrors without a word from the system."""

    def fail(*arguments: object, **options: object) -> None:
        raise OSError("encoder error -2 when writing image file")

    monkeypatch.setattr("matplotlib.pyplot.savefig", fail)
    named = "output: drawing.jpg: encoder error -2 when writing image file"
    run("photo.png", "--output", "drawing.jpg", status=1, errors=named)


def test_wrong_options(run, photo, capsys):
    run(status=2, errors="required: picture")
    run(
        "photo.png", "--threshold", "2", status=1, errors="threshold: expected a number from 0 to 1"
    )
    run("photo.png", "--threshold", "high", status=2, errors="invalid float value")
    run("http://127.0.0.1:1/a", "--timeout", "0", status=1, errors="timeout: expected seconds")
    assert main(["detect", "photo.png", "--model", "scenes_detr"]) == 1
    assert "model: " in capsys.readouterr().err
    for word in ("--model", "--threshold", "--timeout", "--allow-private-addresses", "--output"):
        assert word in run("--help")


def test_without_matplotlib(run, photo, monkeypatch):
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    assert "photo.png: 2 objects" in run("photo.png")
    extra = "drawing needs matplotlib: pip install 'building-the-transformer[plots]'"
    assert run("photo.png", "--output", "drawn", status=1, errors=extra) == ""


@pytest.mark.slow
@pytest.mark.skipif(not SHIPPED.is_dir(), reason="the shipped detector is not there")
def test_the_shipped_detector_in_a_process_of_its_own(tmp_path):
    from transformer_lib.datasets.scenes import draw_scene

    scene = draw_scene(0, split="test", size=(320, 256))
    scene.image.save(tmp_path / "scene.png")
    command = [sys.executable, "-W", "error", "-m", "transformer_lib", "detect", "scene.png"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    first, *others = done.stdout.splitlines()
    assert first == f"scene.png: {len(others)} object{'s' * (len(others) != 1)}"
    found = sorted(line.split("  ")[2] for line in others)
    assert set(found) & set(scene.labels)
    assert json.loads((SHIPPED / "config.json").read_text(encoding="utf-8"))["id2label"]
