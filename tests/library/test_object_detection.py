"""The object detection pipeline: pictures and calls of every kind, boxes, drawings, new labels."""

import http.server
import io
import json
import math
import random
import struct
import threading
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from zlib import compress, crc32

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.patches import Rectangle
from PIL import Image

import transformer_lib
from transformer_lib.datasets import scenes
from transformer_lib.detection import addresses, drawing, fine_tuning
from transformer_lib.detection.boxes import iou
from transformer_lib.detection.coco import AnnotatedImage, read_coco
from transformer_lib.detection.configuration import DETRConfig, ResNetConfig
from transformer_lib.detection.detr import DETR, Predictions
from transformer_lib.detection.drawing import draw_detections
from transformer_lib.detection.fine_tuning import fine_tune
from transformer_lib.detection.images import load_image
from transformer_lib.detection.pipeline import ObjectDetectionPipeline, pipeline
from transformer_lib.detection.processing import ImageProcessor

LABELS = ("cat", "clock", "cup", "donut")
HERE = {"allow_private_addresses": True}  # the server is on this machine
TINY = ResNetConfig(depths=(1, 1), widths=(8, 16), stem_width=8, block="basic")


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    """Return a picture of random colours, which no lossy step leaves as it is."""
    chance = np.random.default_rng(seed)
    return Image.fromarray(chance.integers(0, 256, (height, width, 3), dtype=np.uint8))


def pixels(image: Image.Image) -> np.ndarray:
    assert image.mode == "RGB"
    return np.asarray(image).astype(int)


def saved(image: Image.Image, kind: str, **options) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    return noise(64, 48)


@pytest.fixture(scope="module")
def detector() -> ObjectDetectionPipeline:
    """Return a random detector whose scores spread from 0 to 1 and differ between pictures."""
    torch.manual_seed(0)
    config = DETRConfig(
        LABELS,
        TINY,
        d_model=32,
        n_heads=4,
        n_encoder_layers=1,
        n_decoder_layers=2,
        d_ff=32,
        n_queries=12,
    )
    model, processor = DETR(config).eval(), ImageProcessor(40, 64)
    last = model.box_head[-1]
    with torch.no_grad():
        for layer, read, spread in (
            (model.class_head, lambda found: found.logits, 2.0),
            (last, lambda found: found.boxes.logit(), 1.0),
        ):
            numbers = read(model(processor([noise(64, 48)]).pixels))
            layer.bias -= numbers.mean(dim=(0, 1))
            for weight in layer.parameters():
                weight *= spread / numbers.std(dim=(0, 1)).mean()
    return ObjectDetectionPipeline(model, processor)


class Fixed(DETR):
    """A model that predicts the same for every picture."""

    def __init__(self, logits: list, boxes: list, labels=LABELS) -> None:
        super().__init__(
            DETRConfig(labels, TINY, 8, 1, 0, 1, d_ff=8, n_queries=len(logits), dropout=0.0)
        )
        self.answer = torch.tensor(logits), torch.tensor(boxes)

    def forward(self, pixels, pixel_mask=None):
        """Predict what was given."""
        return Predictions(*(part.expand(len(pixels), -1, -1) for part in self.answer))


SURE = [9.0, 0.0, 0.0, 0.0, 0.0]


def boxes_of(centres: list[list[float]], size: tuple[int, int], **options) -> list[tuple]:
    """Return the boxes that the pipeline makes of (cx, cy, w, h)."""
    fixed = pipeline(model=Fixed([SURE] * len(centres), centres), image_processor=ImageProcessor())
    found = fixed(Image.new("RGB", size), **options)
    return [tuple(detection["box"].values()) for detection in found]


# -- pictures ---------------------------------------------------------------------------------


def test_a_picture_is_the_same_however_it_comes(photo, tmp_path):
    file = tmp_path / "그림 1.png"
    photo.save(file)
    data, array = file.read_bytes(), np.asarray(photo)
    tensor = torch.from_numpy(array.copy()).movedim(-1, 0)
    for image in (
        file,
        str(file),
        data,
        bytearray(data),
        memoryview(data),
        photo,
        array,
        array[::-1][::-1],
        tensor,
        tensor / 255,
        tensor.double() / 255,
        (tensor / 255).requires_grad_(),
        array / 255,
        array.astype(np.uint16) * 257,
        array.astype(">u2") * 257,
        Image.open(file),
    ):
        loaded = load_image(image)
        assert loaded.size == (64, 48)
        assert (pixels(loaded) == pixels(photo)).all()
    half = pixels(load_image((tensor / 255).half()))
    assert abs(half - pixels(photo)).max() <= 1
    assert abs(pixels(load_image((tensor / 255).bfloat16())) - pixels(photo)).max() <= 1
    assert (pixels(load_image(array[..., 0])) == array[..., :1]).all()
    assert (pixels(load_image(array[..., :1])) == array[..., :1]).all()
    assert (pixels(load_image(tensor[:1])) == array[..., :1]).all()
    assert (pixels(load_image(array > 127))[..., 0] == 255 * (array[..., 0] > 127)).all()


@pytest.mark.parametrize(
    ("kind", "options"),
    [("WEBP", {"lossless": True}), ("BMP", {}), ("TIFF", {}), ("PNG", {}), ("PPM", {})],
)
def test_lossless_files(photo, tmp_path, kind, options):
    file = tmp_path / f"picture.{kind.lower()}"
    photo.save(file, kind, **options)
    assert (pixels(load_image(file)) == pixels(photo)).all()


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
def test_lossy_files(tmp_path, kind):
    smooth = Image.linear_gradient("L").convert("RGB").resize((64, 48))
    file = tmp_path / f"picture.{kind.lower()}"
    smooth.save(file, kind, quality=95)
    assert abs(pixels(load_image(file)) - pixels(smooth)).max() <= 8


# huggingface/transformers#12886
@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_an_opaque_alpha_changes_nothing(detector, photo, kind):
    options = {"lossless": True} if kind == "WEBP" else {}
    with_alpha = saved(photo.convert("RGBA"), kind, **options)
    assert (pixels(load_image(with_alpha)) == pixels(photo)).all()
    assert detector(with_alpha, threshold=0.0) == detector(photo, threshold=0.0)
    grey = photo.convert("L")
    assert (pixels(load_image(saved(grey.convert("LA"), "PNG"))) == pixels(load_image(grey))).all()


# huggingface/transformers#25694, #14875
def test_grey_and_other_modes(detector, photo, tmp_path):
    grey = photo.convert("L")
    assert detector(saved(grey, "PNG"), threshold=0.0) == detector(
        grey.convert("RGB"), threshold=0.0
    )
    bits = photo.convert("1")
    assert (pixels(load_image(saved(bits, "PNG"))) == pixels(bits.convert("RGB"))).all()
    cmyk = Image.new("CMYK", (64, 48), (255, 0, 0, 0))
    cmyk.save(tmp_path / "cyan.tif")
    assert pixels(load_image(tmp_path / "cyan.tif"))[0, 0].tolist() == [0, 255, 255]
    cmyk.save(tmp_path / "cyan.jpg", quality=95)
    assert abs(pixels(load_image(tmp_path / "cyan.jpg")) - (0, 255, 255)).max() <= 4
    for mode in (
        "1",
        "L",
        "LA",
        "La",
        "P",
        "PA",
        "RGB",
        "RGBA",
        "RGBa",
        "RGBX",
        "CMYK",
        "YCbCr",
        "LAB",
        "HSV",
        "I",
        "I;16",
        "I;16B",
    ):
        assert load_image(Image.new(mode, (64, 48))).mode == "RGB"
        assert isinstance(detector(Image.new(mode, (64, 48)), threshold=0.0), list)
    assert pixels(load_image(Image.new("LAB", (1, 1), (255, 128, 128)))).tolist()  # no alpha


# python-pillow/Pillow#2574, #5991
@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bits_are_scaled_not_clipped(detector, kind):
    ramp = np.arange(256 * 256, dtype=np.uint16).reshape(256, 256)
    loaded = pixels(load_image(saved(Image.fromarray(ramp), kind)))
    assert abs(loaded.mean() - 127.5) < 0.01
    assert (loaded == ((ramp.astype(int) + 128) // 257)[..., None]).all()
    eight_bits = Image.fromarray((ramp >> 8).astype(np.uint8))
    wide, narrow = (detector(i, threshold=0.0) for i in (Image.fromarray(ramp), eight_bits))
    for one, other in zip(wide, narrow, strict=True):
        assert abs(one["score"] - other["score"]) < 0.05
    big_endian = Image.frombytes("I;16B", (256, 256), ramp.astype(">u2").tobytes())
    assert (pixels(load_image(big_endian)) == loaded).all()
    wide_mode = Image.fromarray(ramp.astype(np.int32))
    assert wide_mode.mode == "I"
    assert (pixels(load_image(wide_mode)) == loaded).all()


def test_an_open_file_is_a_picture(detector, tmp_path):
    picture = noise(64, 48)
    picture.save(tmp_path / "picture.png")
    with open(tmp_path / "picture.png", "rb") as file:
        assert load_image(file).tobytes() == picture.tobytes()
    found = detector(picture, threshold=0.0)
    assert detector(io.BytesIO(saved(picture, "PNG")), threshold=0.0) == found
    assert detector([io.BytesIO(saved(picture, "PNG"))], threshold=0.0) == [found]


def test_floats_may_be_rounded():
    white = np.full((4, 4, 3), 1 + 1e-6)
    assert (pixels(load_image(white)) == 255).all()
    assert (pixels(load_image(torch.full((3, 4, 4), -1e-6))) == 0).all()


RED, GREEN, GOLD = (255, 0, 0), (0, 255, 0), (200, 150, 0)


# huggingface/transformers#49003
def test_palettes_are_colours():
    picture = Image.new("P", (2, 1))
    picture.putpalette([*RED, *GREEN])
    picture.putpixel((1, 0), 1)
    for kind in ("PNG", "GIF", "BMP"):
        assert pixels(load_image(saved(picture, kind)))[0].tolist() == [[*RED], [*GREEN]]


def with_a_transparent_pixel(mode: str) -> bytes:
    """Return a PNG of two pixels: one transparent, then one that is green, or white."""
    if mode in ("RGBA", "RGB trns"):
        picture = Image.new("RGB", (2, 1), RED)
        picture.putpixel((1, 0), GREEN)
        if mode == "RGB trns":
            return saved(picture, "PNG", transparency=RED)
        picture.putalpha(Image.frombytes("L", (2, 1), bytes([0, 255])))
        return saved(picture, "PNG")
    if mode == "P trns":
        picture = Image.new("P", (2, 1))
        picture.putpalette([*RED, *GREEN])
        picture.putpixel((1, 0), 1)
        return saved(picture, "PNG", transparency=bytes([0, 255]))
    if mode == "I;16 trns":
        picture = Image.fromarray(np.array([[500, 65535]], dtype=np.uint16))
        return saved(picture, "PNG", transparency=500)
    picture = Image.frombytes("L", (2, 1), bytes([9, 255]))
    if mode == "L trns":
        return saved(picture, "PNG", transparency=9)
    assert mode == "LA"
    picture.putalpha(Image.frombytes("L", (2, 1), bytes([0, 255])))
    return saved(picture, "PNG")


@pytest.mark.parametrize("mode", ["RGBA", "RGB trns", "P trns", "L trns", "I;16 trns", "LA"])
def test_what_is_transparent_shows_the_background(mode):
    data = with_a_transparent_pixel(mode)
    shown = [*GREEN] if mode[0] in "RP" else [255, 255, 255]
    assert pixels(load_image(data))[0].tolist() == [[255, 255, 255], shown]
    assert pixels(load_image(data, background=GOLD))[0].tolist() == [[*GOLD], shown]


def test_16_bit_transparency_is_one_grey():
    greys = Image.fromarray(np.array([[100, 499, 500, 501, 65535]], dtype=np.uint16))
    loaded = load_image(saved(greys, "PNG", transparency=500), background=GOLD)
    assert pixels(loaded)[0, :, 0].tolist() == [0, 2, GOLD[0], 2, 255]


def a_png(bits: int, grey_row: bytes, width: int, transparent: int) -> bytes:
    """Return a grey PNG of one row; Pillow writes none with 2 or 4 bits."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc32(name + data))

    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, 1, bits, 0, 0, 0, 0)),
            chunk(b"tRNS", struct.pack(">H", transparent)),
            chunk(b"IDAT", compress(b"\0" + grey_row)),
            chunk(b"IEND", b""),
        )
    )


@pytest.mark.parametrize(
    ("bits", "row", "transparent", "expected"),
    [
        (1, 0b01_000000, 1, [0, 200]),
        (2, 0b00_01_10_11, 2, [0, 85, 200, 255]),
        (4, 0x0F, 15, [0, 200]),
        (8, 7, 7, [200]),
    ],
)
def test_the_transparent_grey_of_few_bits(bits, row, transparent, expected):
    data = a_png(bits, bytes([row]), len(expected), transparent)
    assert pixels(load_image(data, background=GOLD))[0, :, 0].tolist() == expected


def test_half_transparent_pixels_are_mixed():
    loaded = load_image(Image.new("RGBA", (1, 1), (255, 0, 0, 64)))
    expected = [255, 255 * (1 - 64 / 255), 255 * (1 - 64 / 255)]
    assert abs(pixels(loaded)[0, 0] - expected).max() <= 1


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP"])
def test_the_first_frame_of_an_animation(tmp_path, kind):
    frames = [Image.new("RGB", (64, 48), colour) for colour in (RED, GREEN, GOLD)]
    file = tmp_path / f"moving.{kind.lower()}"
    options = {"lossless": True} if kind == "WEBP" else {}
    frames[0].save(file, kind, save_all=True, append_images=frames[1:], duration=50, **options)
    with Image.open(file) as moving:
        assert moving.n_frames == 3
        moving.seek(1)
        assert (pixels(load_image(moving)) == GREEN).all()  # the frame it is at
    assert (pixels(load_image(file)) == RED).all()


def stored(upright: Image.Image, orientation: int) -> Image.Image:
    """Return the picture as a camera stores it that was held in one of eight ways."""
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    return upright.transpose(undo[orientation]) if orientation in undo else upright


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
def test_a_picture_is_turned_upright_once(detector, photo, tmp_path, kind, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = tmp_path / f"photo.{kind.lower()}"
    options = {"lossless": True} if kind == "WEBP" else {}
    stored(photo, orientation).save(file, kind, exif=exif, **options)
    loaded = load_image(file)
    assert (pixels(loaded) == pixels(photo)).all()
    assert (pixels(load_image(loaded)) == pixels(photo)).all()
    assert (pixels(load_image(Image.open(file))) == pixels(photo)).all()
    assert detector(file, threshold=0.0) == detector(photo, threshold=0.0)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photo_of_a_camera_is_turned_upright(tmp_path, orientation):
    """JPEG loses a little, so the corners tell: red, green, gold and black."""
    upright = Image.new("RGB", (64, 48))
    for corner, colour in (((0, 0), RED), ((32, 0), GREEN), ((0, 24), GOLD)):
        upright.paste(colour, (*corner, corner[0] + 32, corner[1] + 24))
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored(upright, orientation).save(tmp_path / "photo.jpg", quality=95, exif=exif)
    loaded = pixels(load_image(tmp_path / "photo.jpg")).astype(int)
    assert loaded.shape == (48, 64, 3)
    for row, column in ((12, 16), (12, 48), (36, 16), (36, 48)):
        assert abs(loaded[row, column] - upright.getpixel((column, row))).max() < 12


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
def test_a_damaged_exif_is_no_reason_to_refuse_a_picture(photo):
    for exif in (b"Exif\x00\x00nonsense", b"Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12"):
        assert load_image(saved(photo, "JPEG", exif=exif)).size == photo.size


def test_a_picture_that_is_given_stays_as_it_is(photo):
    given = photo.convert("RGBA")
    before = given.tobytes()
    load_image(given).putpixel((0, 0), (0, 0, 0))
    plain = photo.copy()
    load_image(plain).putpixel((0, 0), (0, 0, 0))
    assert given.tobytes() == before
    assert plain.tobytes() == photo.tobytes()


# -- addresses --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def web(photo):
    """Return the address of a server on this machine, which answers as its path says."""
    picture = saved(photo, "PNG")
    moved = {
        "/to-picture": "/picture",
        "/to-file": "file:///etc/hostname",
        "/to-ftp": "ftp://127.0.0.1/a.png",
        "/to-itself": "/to-itself",
        "/to-data": "data:image/png;base64,AAAA",
    }

    class Answers(http.server.BaseHTTPRequestHandler):
        def log_message(self, *arguments) -> None:
            pass

        def answer(self, data: bytes, kind: str = "image/png", length: int | None = None) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            if length is not None:
                self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            if self.path in moved:
                self.send_response(302)
                self.send_header("Location", moved[self.path])
                self.end_headers()
            elif self.path in ("/picture", "/%EA%B7%B8%EB%A6%BC%201.png?size=a%20b"):
                self.answer(picture, length=len(picture))
            elif self.path == "/page":
                self.answer(
                    b"\n <!DOCTYPE html><title>Not here</title>", "text/html; charset=utf-8"
                )
            elif self.path == "/page-called-picture":
                self.answer(b"<html><title>Not here</title>")
            elif self.path == "/short":
                self.answer(picture[:100], length=len(picture))
            elif self.path == "/long":
                self.answer(bytes(10_000))
            elif self.path == "/silent":
                ended.wait(5)
            elif self.path == "/drip":
                self.send_response(200)
                self.end_headers()
                try:
                    while not ended.wait(0.02):
                        self.wfile.write(b"x")
                except OSError:  # the other side has had enough
                    pass
            else:
                self.send_error(404)

    ended = threading.Event()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("no_proxy", "*")
        yield f"http://127.0.0.1:{server.server_port}"
    ended.set()
    server.shutdown()
    server.server_close()


def test_a_picture_from_an_address(detector, web, photo):
    for address in (
        f"{web}/picture",
        f"{web}/to-picture",
        f"{web}/그림 1.png?size=a b",
        f"{web.replace('http', 'HTTP')}/picture",
    ):
        assert (pixels(load_image(address, timeout=5.0, **HERE)) == pixels(photo)).all()
    assert (pixels(load_image(f"{web}/picture", timeout=None, **HERE)) == pixels(photo)).all()
    assert detector(f"{web}/picture", threshold=0.0, **HERE) == detector(photo, threshold=0.0)
    both = detector([f"{web}/picture", photo], threshold=0.0, timeout=5.0, **HERE)
    assert both[0] == both[1]


# huggingface/transformers#25168
@pytest.mark.parametrize("path", ["silent", "drip"])
def test_a_timeout_bounds_the_whole_download(web, path):
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=f"images\\[1\\]: {web}/{path}: .* within 0.3 s"):
        load_image(f"{web}/{path}", timeout=0.3, name="images[1]", **HERE)
    assert time.monotonic() - start < 2


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("nowhere", ConnectionError, "the server answered 404 Not Found"),
        ("page", ValueError, "expected an image .*, got text/html"),
        ("page-called-picture", ValueError, "expected an image .*, got text/html"),
        ("short", ConnectionError, "the answer ends after 100 of"),
        ("to-file", ConnectionError, "redirects to file:…, and only http and https"),
        ("to-data", ConnectionError, "redirects to data:…, and only http and https"),
        ("to-ftp", ConnectionError, "redirects to ftp:…, and only http and https"),
        ("to-itself", ConnectionError, "redirects in circles"),
    ],
)
def test_addresses_that_give_no_picture(detector, web, path, error, message):
    with pytest.raises(error, match=message) as raised:
        detector(f"{web}/{path}", timeout=5.0, **HERE)
    assert str(raised.value).startswith(f"image: {web}/{path}: ")
    assert "\n" not in str(raised.value)


def test_an_answer_without_end_is_not_kept(web, monkeypatch):
    monkeypatch.setattr(addresses, "MOST_BYTES", 5_000)
    with pytest.raises(ConnectionError, match="the answer has more than 5,000 bytes"):
        load_image(f"{web}/long", timeout=5.0, **HERE)


# -- calls ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def five() -> list[Image.Image]:
    """Return five pictures of four shapes, two of which the processor gives one size."""
    sizes = [(64, 48), (30, 90), (64, 48), (48, 48), (128, 96)]
    return [noise(*size, seed=seed) for seed, size in enumerate(sizes)]


def test_one_picture_gives_a_list_and_several_give_lists(detector, five):
    alone = [detector(picture, threshold=0.3) for picture in five]
    assert all(isinstance(found, list) for found in alone)
    assert any(alone)
    assert detector(five, threshold=0.3) == alone
    assert detector(tuple(five), threshold=0.3) == alone
    assert detector([five[0]], threshold=0.3) == [alone[0]]
    assert detector([]) == []
    assert detector(()) == []


def test_what_a_detection_is(detector, five):
    found = detector(five[0], threshold=0.0)
    assert len(found) == 12
    for detection in found:
        assert list(detection) == ["score", "label", "box"]
        assert type(detection["score"]) is float
        assert detection["label"] in LABELS
        assert list(detection["box"]) == ["xmin", "ymin", "xmax", "ymax"]
        assert {type(side) for side in detection["box"].values()} == {int}
    assert json.loads(json.dumps(found)) == found


def test_generators_and_datasets_give_generators_that_load_as_they_go(detector, five):
    expected = detector(five)
    asked = []

    def pictures():
        for number, picture in enumerate(five):
            asked.append(number)
            yield picture

    results = detector(pictures())
    assert iter(results) is results
    assert asked == []
    assert next(results) == expected[0]
    assert asked == [0]
    assert list(results) == expected[1:]

    class Dataset(torch.utils.data.Dataset):
        def __len__(self):
            return len(five)

        def __getitem__(self, place):
            asked.append(place)
            return five[place % len(five)]  # without an end of its own

    asked.clear()
    results = detector(Dataset(), batch_size=2)
    assert next(results) == expected[0]
    assert asked == [0, 1]
    assert list(results) == expected[1:]
    assert list(detector(iter([]))) == []


# huggingface/transformers#43058, #45223, #20207
@pytest.mark.parametrize("batch_size", [1, 2, 3, 5, 8])
def test_the_size_of_batches_changes_nothing(detector, five, batch_size):
    # in double precision: what float32 rounds in another order shows in the sixth decimal
    exact = pipeline(model=detector.model, image_processor=detector.processor, dtype=torch.float64)
    expected = [exact(picture, threshold=0.0) for picture in five]
    results = exact(five, threshold=0.0, batch_size=batch_size)
    assert len(results) == 5
    for found, wanted in zip(results, expected, strict=True):
        for one, other in zip(found, wanted, strict=True):
            assert abs(one["score"] - other["score"]) < 1e-6
            assert one["label"] == other["label"]
            assert one["box"] == other["box"]


# huggingface/transformers#23218, #39382; facebookresearch/detr#70, #191
def test_a_neighbour_of_another_shape_moves_nothing(detector):
    wide, tall = noise(640, 480), noise(480, 1200)
    alone, beside = (
        detector(wide, threshold=0.0),
        detector([wide, tall], threshold=0.0, batch_size=2),
    )
    assert max(abs(a["score"] - b["score"]) for a, b in zip(alone, beside[0], strict=True)) < 1e-6
    assert [a["box"] for a in alone] == [b["box"] for b in beside[0]]


def test_pictures_of_one_size_share_a_batch(detector, five, monkeypatch):
    batches = []
    forward = DETR.forward

    def counted(self, pixels, pixel_mask=None):
        batches.append(len(pixels))
        return forward(self, pixels, pixel_mask)

    monkeypatch.setattr(DETR, "forward", counted)
    detector(five, batch_size=5)
    assert sorted(batches) == [1, 1, 3]


def test_a_threshold_is_strict_and_does_not_stick():
    # Two outputs of equal logits: the score is exactly 0.5.
    half, more = [0.0, 0.0], [4e-6, 0.0]
    nine = [math.log(9.0), 0.0]
    model = Fixed([half, more, nine], [[0.5, 0.5, 0.2, 0.2]] * 3, labels=("cat",))
    fixed = pipeline(model=model, image_processor=ImageProcessor())
    picture = Image.new("RGB", (10, 10))
    # huggingface/transformers#30710
    assert [round(d["score"], 6) for d in fixed(picture)] == [0.500001, 0.9]
    assert len(fixed(picture, threshold=0.5)) == 2
    assert len(fixed(picture, threshold=0.0)) == 3
    assert fixed(picture, threshold=1.0) == []
    assert [round(d["score"], 6) for d in fixed(picture, threshold=0.6)] == [0.9]
    assert len(fixed(picture)) == 2
    careful = pipeline(model=model, image_processor=ImageProcessor(), threshold=0.6, batch_size=2)
    assert len(careful(picture)) == 1
    assert len(careful(picture, threshold=0.1)) == 3
    assert len(careful(picture)) == 1


# huggingface/transformers#12096
def test_width_and_height_keep_their_places():
    assert boxes_of([[0.5, 0.5, 0.5, 0.5]], (640, 480)) == [(160, 120, 480, 360)]


# roboflow/rf-detr#1167
def test_boxes_are_rounded_outwards_and_cut_at_the_edges():
    assert boxes_of([[0.02, 0.5, 0.1, 0.2]], (100, 100)) == [(0, 40, 7, 60)]
    assert boxes_of([[0.98, 0.97, 0.1, 0.2]], (100, 50)) == [(93, 43, 100, 50)]
    tiny = boxes_of([[0.5004, 0.5004, 1e-4, 1e-4]], (100, 100))
    assert tiny == [(50, 50, 51, 51)]
    # 0.3 and 0.6 of 10 pixels are no whole numbers to a computer, but they are to us
    assert boxes_of([[0.45, 0.5, 0.3, 1.0]], (10, 10)) == [(3, 0, 6, 10)]


# rohitg00/ai-engineering-from-scratch#43
def test_a_box_outside_of_the_picture_has_no_area():
    outside = boxes_of([[800 / 600, 0.1, 200 / 600, 0.1], [-0.5, 0.5, 0.2, 0.2]], (600, 400))
    for xmin, ymin, xmax, ymax in outside:
        assert 0 <= xmin == xmax <= 600
        assert 0 <= ymin <= ymax <= 400
    sides = ("xmin", "ymin", "xmax", "ymax")
    found = [{"label": "cat", "box": dict(zip(sides, box, strict=True))} for box in outside]
    plt.close(draw_detections(Image.new("RGB", (600, 400)), found).figure)


# facebookresearch/detr#23, #279
def test_ids_without_a_name_have_a_documented_one():
    no_object = [0.0, 0.0, 0.0, 9.0]
    logits = [[9.0, 0, 0, 0], [0, 9.0, 0, 0], [0, 0, 9.0, 0], no_object]
    model = Fixed(logits, [[0.5, 0.5, 0.2, 0.2]] * 4, labels={0: "a", 2: "c"})
    fixed = pipeline(model=model, image_processor=ImageProcessor())
    assert [d["label"] for d in fixed(Image.new("RGB", (9, 9)))] == ["a", "LABEL_1", "c"]
    every = fixed(Image.new("RGB", (9, 9)), threshold=0.0)
    assert len(every) == 4
    assert every[-1]["label"] in ("a", "LABEL_1", "c")


# mindee/doctr#695
@pytest.mark.parametrize("size", [(5000, 1), (1, 5000), (20_000, 2), (1, 1)])
def test_elongated_pictures(detector, size):
    for detection in detector(noise(*size), threshold=0.0):
        xmin, ymin, xmax, ymax = detection["box"].values()
        assert 0 <= xmin <= xmax <= size[0]
        assert 0 <= ymin <= ymax <= size[1]
    plt.close(draw_detections(noise(*size), []).figure)


# huggingface/transformers#32672
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_types_of_weights(detector, photo, dtype):
    other = pipeline(model=detector.model, image_processor=detector.processor, dtype=dtype)
    assert other.model.class_head.weight.dtype == dtype
    assert detector.model.class_head.weight.dtype == torch.float32  # a copy was made
    found = other(photo, threshold=0.0)
    assert json.loads(json.dumps(found)) == found
    assert {type(detection["score"]) for detection in found} == {float}
    tolerance = {torch.float16: 0.05, torch.bfloat16: 0.4, torch.float64: 1e-4}[dtype]
    wanted = detector(photo, threshold=0.0)
    assert max(abs(a["score"] - b["score"]) for a, b in zip(found, wanted, strict=True)) < tolerance


def test_a_model_is_used_as_it_is_and_without_dropout(detector, photo):
    model = DETR(detector.model.config).train()
    ours = ObjectDetectionPipeline(model, detector.processor)
    assert ours.model is model
    assert not model.training
    assert ours(photo, threshold=0.0) == ours(photo, threshold=0.0)
    assert ours.model.class_head.weight.requires_grad


def test_saving_and_reading(detector, photo, tmp_path):
    detector.save_pretrained(tmp_path / "mine")
    names = {"config.json", "model.safetensors", "preprocessor_config.json"}
    assert {file.name for file in (tmp_path / "mine").iterdir()} == names
    read = pipeline("object-detection", tmp_path / "mine")
    assert read.processor == detector.processor
    assert read(photo, threshold=0.0) == detector(photo, threshold=0.0)
    other = pipeline(model=str(tmp_path / "mine"), image_processor=ImageProcessor(48, 80))
    assert other.processor.shortest_edge == 48


def test_a_name_on_the_hub(detector, photo, tmp_path, monkeypatch):
    detector.save_pretrained(tmp_path / "mine")
    asked = []

    def find(name):
        asked.append(str(name))
        return tmp_path / "mine"

    monkeypatch.setattr("transformer_lib.detection.pipeline.find_published", find)
    found = pipeline("object-detection", "facebook/detr-resnet-50")
    assert asked == ["facebook/detr-resnet-50"]
    assert found(photo, threshold=0.0) == detector(photo, threshold=0.0)


# -- held against Hugging Face ----------------------------------------------------------------


def clipped(box: dict[str, int], size: tuple[int, int]) -> list[int]:
    return [min(max(side, 0), end) for side, end in zip(box.values(), size * 2, strict=True)]


def assert_alike(ours: list, theirs: list, files: list[str]) -> int:
    """Hold results for several files against each other; return how many detections there are."""
    assert [len(found) for found in ours] == [len(found) for found in theirs]
    for file, found, expected in zip(files, ours, theirs, strict=True):
        for one, other in zip(found, expected, strict=True):
            assert list(one) == list(other)
            assert one["label"] == other["label"]
            assert abs(one["score"] - other["score"]) < 1e-4
            inside = clipped(other["box"], load_image(file).size)
            pairs = zip(one["box"].values(), inside, strict=True)
            assert all(abs(side - wanted) <= 1 for side, wanted in pairs)
    return sum(map(len, ours))


@pytest.mark.slow
def test_the_same_as_hugging_faces_pipeline(detector, five, tmp_path):
    transformers = pytest.importorskip("transformers")
    detector.save_pretrained(tmp_path / "model")
    files = []
    for number, picture in enumerate([*five, five[0].convert("L"), five[0].convert("P")]):
        files.append(str(tmp_path / f"{number}.png"))
        picture.save(files[-1])
    exif = Image.Exif()
    exif[0x0112] = 6
    files.append(str(tmp_path / "turned.png"))
    five[1].save(files[-1], exif=exif)
    theirs = transformers.pipeline("object-detection", model=str(tmp_path / "model"))
    ours = pipeline("object-detection", tmp_path / "model")
    for threshold in (0.3, 0.5, 0.9):
        found, expected = (one(files, threshold=threshold) for one in (ours, theirs))
        assert assert_alike(found, expected, files) > 5
    single = theirs(files[0], threshold=0.3)
    assert [d["label"] for d in single] == [d["label"] for d in ours(files[0], threshold=0.3)]
    assert isinstance(single[0], dict)


# -- the detector that comes with the library -------------------------------------------------

SHIPPED = Path(transformer_lib.__file__).parent / "models/scenes-detr"


def test_the_shipped_detector_in_both_pipelines(tmp_path):
    transformers = pytest.importorskip("transformers")
    drawn = [scenes.draw_scene(seed, split="test", size=(240, 192)) for seed in range(6)]
    files = [str(tmp_path / f"{number}.png") for number in range(6)]
    for scene, file in zip(drawn, files, strict=True):
        scene.image.save(file)
    detector = pipeline("object-detection")
    found = detector(files)
    theirs = transformers.pipeline("object-detection", model=str(SHIPPED))
    assert assert_alike(found, theirs(files), files) > 20
    together = detector(files, batch_size=6)
    for alone, beside in zip(found, together, strict=True):
        assert [d["label"] for d in alone] == [d["label"] for d in beside]
        assert all(abs(a["score"] - b["score"]) < 2e-5 for a, b in zip(alone, beside, strict=True))
        assert [d["box"] for d in alone] == [d["box"] for d in beside]
    right = objects = 0
    for scene, detections in zip(drawn, found, strict=True):
        for label, box in zip(scene.labels, scene.boxes, strict=True):
            sides = [list(map(float, d["box"].values())) for d in detections if d["label"] == label]
            overlaps = iou(torch.tensor(box), torch.tensor(sides).reshape(-1, 4))
            right += any(overlaps > 0.5)
            objects += 1
    assert right > 0.7 * objects


# -- drawings ---------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def no_figure_stays():
    """Close what a test left open, and see that it left nothing that has no axes."""
    yield
    assert all(plt.figure(number).axes for number in plt.get_fignums())
    plt.close("all")


def detection(box=(10, 20, 40, 60), label="cat", score=0.98765) -> dict:
    sides = ("xmin", "ymin", "xmax", "ymax")
    return {"score": score, "label": label, "box": dict(zip(sides, box, strict=True))}


# ARM-DOE/ACT#20; matplotlib/matplotlib#30496
def test_one_figure_of_the_size_that_is_asked_for():
    before = plt.get_fignums()
    ax = draw_detections(noise(100, 80), [detection()], size=(3.0, 2.0))
    assert len(plt.get_fignums()) == len(before) + 1
    assert tuple(ax.figure.get_size_inches()) == (3, 2)
    assert not ax.axison
    plain = draw_detections(noise(100, 80), [])
    assert tuple(plain.figure.get_size_inches()) == pytest.approx((7.2, 7.2 * 0.8))


# pjreddie/darknet#243
def test_a_rectangle_has_width_and_height():
    ax = draw_detections(noise(100, 80), [detection()])
    (rectangle,) = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert rectangle.get_xy() == (10, 20)
    assert (rectangle.get_width(), rectangle.get_height()) == (30, 40)
    assert not rectangle.get_fill()
    (picture,) = ax.images
    assert list(picture.get_extent()) == [0, 100, 80, 0]  # y points down, from the upper edge
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    assert [text.get_text() for text in ax.texts] == ["cat (0.99)"]


# KosinskiLab/AlphaPulldown#229
def test_many_drawings_on_axes_of_their_own_make_no_figure():
    _, ax = plt.subplots()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(25):
            ax.clear()
            assert draw_detections(noise(20, 20), [detection((1, 2, 9, 9))], ax=ax) is ax
    assert len(plt.get_fignums()) == 1


def test_drawings_in_a_part_of_a_figure():
    part, other = plt.figure(layout="constrained").subfigures(1, 2)
    other.subplots()
    draw_detections(noise(20, 20), [detection((1, 2, 9, 9))], ax=part.subplots())
    assert len(plt.get_fignums()) == 1


def extents(ax) -> list:
    """Return the places of the labels in pixels of the picture, as drawn."""
    ax.figure.canvas.draw()
    back = ax.transData.inverted()
    boxes = [t.get_bbox_patch().get_window_extent().transformed(back) for t in ax.texts]
    return [(b.x0, min(b.y0, b.y1), b.x1, max(b.y0, b.y1)) for b in boxes]


def test_labels_stay_inside_the_picture_and_off_each_other():
    corners = [(0, 0, 60, 50), (300, 0, 400, 50), (330, 250, 400, 300), (0, 280, 30, 300)]
    crowd = [(100, 100, 200, 200), (102, 100, 205, 190), (100, 101, 180, 202), (101, 99, 210, 220)]
    found = [detection(box, label="potted plant") for box in corners + crowd]
    places = extents(draw_detections(noise(400, 300), found))
    for xmin, ymin, xmax, ymax in places:
        assert -0.5 <= xmin < xmax <= 400.5
        assert -0.5 <= ymin < ymax <= 300.5
    for number, one in enumerate(places):
        for other in places[:number]:
            width = min(one[2], other[2]) - max(one[0], other[0])
            height = min(one[3], other[3]) - max(one[1], other[1])
            assert width <= 0.5 or height <= 0.5
    # where there is room, above the upper left corner of the box
    (place,) = extents(draw_detections(noise(400, 300), [detection((100, 100, 200, 200))]))
    assert place[0] == pytest.approx(100, abs=1)
    assert place[3] == pytest.approx(100, abs=1)


def test_a_label_at_the_right_edge_stays_inside():
    ax = draw_detections(noise(400, 300), [detection((392, 100, 398, 140))])
    ax.figure.canvas.draw()
    extent = ax.texts[0].get_bbox_patch().get_window_extent()
    assert extent.x1 <= ax.get_window_extent().x1 + 1


def test_things_of_one_kind_have_one_colour():
    found = [detection(label=label) for label in ("cat", "cup", "cat")]
    ax = draw_detections(noise(400, 300), found)
    cat, cup, other = (patch.get_edgecolor() for patch in ax.patches)
    assert cat == other != cup


def test_labels_can_be_read_on_any_ground():
    ax = draw_detections(noise(400, 300), [detection(), detection(label="cup")])
    for text in ax.texts:
        assert text.get_color() == "white"
        ground = text.get_bbox_patch().get_facecolor()[:3]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in ground]
        luminance = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
        assert 1.05 / (luminance + 0.05) >= 4.5
    colours = {patch.get_edgecolor() for patch in ax.patches}
    assert len(colours) == 2
    assert all(patch.get_path_effects() for patch in ax.patches)


# matplotlib/matplotlib#14269, #22536
def test_korean_labels(monkeypatch):
    plt.get_backend()  # else drawing changes what is recorded there
    before = plt.rcParams.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = draw_detections(noise(400, 300), [detection(label="고양이")])
        ax.figure.canvas.draw()
    assert ax.texts[0].get_text() == "고양이 (0.99)"
    monkeypatch.setattr(drawing, "korean_font", lambda: None)
    with pytest.warns(UserWarning, match=r"no font with the letters 고.*\[plots\]") as caught:
        ax = draw_detections(noise(400, 300), [detection(label="고양이"), detection(label="컵")])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.figure.canvas.draw()
    assert ax.texts[0].get_text() == "??? (0.99)"
    assert plt.rcParams == before


def test_letters_that_no_font_has():
    with pytest.warns(UserWarning, match=r"no font with the letters 🐈: \? stands for them"):
        ax = draw_detections(noise(400, 300), [detection(label="🐈 고양이\ncat")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.figure.canvas.draw()
    assert ax.texts[0].get_text() == "? 고양이\ncat (0.99)"


def test_dollars_and_missing_scores_are_no_mathematics():
    plain = {"label": r"$5 \frac", "box": detection()["box"]}
    ax = draw_detections(noise(400, 300), [plain])
    ax.figure.canvas.draw()
    assert ax.texts[0].get_text() == r"$5 \frac"
    assert not ax.texts[0].get_parse_math()


def test_it_draws_on_the_picture_that_was_detected_on(detector, photo, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    photo.save(tmp_path / "photo.png", exif=exif)
    ax = draw_detections(tmp_path / "photo.png", detector(tmp_path / "photo.png", threshold=0.0))
    (picture,) = ax.images
    assert picture.get_array().shape == (64, 48, 3)
    assert all(0 <= p.get_x() <= p.get_x() + p.get_width() <= 48 for p in ax.patches)


# -- COCO -------------------------------------------------------------------------------------


@pytest.fixture
def coco(tmp_path):
    """Return a function that writes pictures and their JSON, changed by keywords."""

    def write(**changes):
        for number in (1, 2):
            noise(64, 48, seed=number).save(tmp_path / f"{number}.png")
        table = {
            "images": [
                {"id": 7, "file_name": "1.png", "width": 64, "height": 48},
                {"id": 3, "file_name": "2.png"},
            ],
            "annotations": [
                {"id": 1, "image_id": 7, "category_id": 5, "bbox": [10, 20, 30, 8.5]},
                {"id": 2, "image_id": 7, "category_id": 2, "bbox": [0, 0, 64, 48], "iscrowd": 0},
                {"id": 3, "image_id": 7, "category_id": 2, "bbox": [0, 0, 9, 9], "iscrowd": 1},
                {"id": 4, "image_id": 7, "category_id": 2, "bbox": [-0.4, 0, 64.9, 9]},
            ],
            "categories": [{"id": 5, "name": "beer"}, {"id": 2, "name": "fried chicken"}],
        }
        (tmp_path / "boxes.json").write_text(json.dumps(table | changes), encoding="utf-8")
        return tmp_path / "boxes.json", tmp_path

    return write


def test_pictures_and_boxes_of_coco(coco, tmp_path):
    one, other = read_coco(*coco())
    assert one.file == tmp_path / "1.png"
    assert one.labels == ("beer", "fried chicken", "fried chicken")
    assert one.boxes == ((10, 20, 40, 28.5), (0, 0, 64, 48), (0, 0, 64, 9))
    assert (pixels(one.image) == pixels(noise(64, 48, seed=1))).all()
    assert one.areas == (30 * 8.5, 64 * 48, 64.9 * 9)
    assert one.crowds == (("fried chicken", (0, 0, 9, 9)),)
    assert other == AnnotatedImage(tmp_path / "2.png", (), (), ())


def test_boxes_without_area_are_left_out(coco):
    flat = [{"id": 1, "image_id": 7, "category_id": 5, "bbox": [10, 20, 30, 0]}]
    with pytest.warns(UserWarning, match="1 boxes without area"):
        one, _ = read_coco(*coco(annotations=flat))
    assert one.boxes == ()


def test_sizes_are_those_of_the_upright_picture(coco, tmp_path):
    files = coco()
    exif = Image.Exif()
    exif[0x0112] = 6
    noise(48, 64).save(tmp_path / "1.png", exif=exif)  # upright 64 by 48
    one, _ = read_coco(*files)
    assert one.image.size == (64, 48)


@pytest.mark.parametrize("kind", ["jpg", "tif"])
def test_sizes_of_turned_photos_and_scans(tmp_path, kind):
    exif = Image.Exif()
    exif[0x0112] = 6
    noise(64, 40).save(tmp_path / f"a.{kind}", exif=exif)
    entry = {"id": 1, "file_name": f"a.{kind}", "width": 40, "height": 64}
    table = {
        "images": [entry],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [5, 30, 30, 30]}],
        "categories": [{"id": 1, "name": "x"}],
    }
    text = "\ufeff" + json.dumps(table)  # as some editors begin a file
    (tmp_path / "boxes.json").write_text(text, encoding="utf-8")
    (one,) = read_coco(tmp_path / "boxes.json", tmp_path)
    assert one.boxes == ((5, 30, 35, 60),)
    assert one.image.size == (40, 64)


def test_scenes_by_way_of_coco(tmp_path):
    drawn = [scenes.draw_scene(seed, labels=scenes.NEW_LABELS) for seed in range(2)]
    scenes.to_coco(drawn, tmp_path)
    (file,) = tmp_path.glob("*.json")
    for example, scene in zip(read_coco(file, tmp_path), drawn, strict=True):
        assert example.labels == scene.labels
        assert example.boxes == scene.boxes
        assert (pixels(example.image) == pixels(scene.image)).all()


# -- fine-tuning ------------------------------------------------------------------------------


class Example:
    """A picture with one coloured square."""

    def __init__(self, label: str, colour: tuple[int, int, int], left: int) -> None:
        picture = noise(64, 48, seed=left)
        picture.paste(colour, (left, 12, left + 24, 36))
        self.image, self.labels = picture, (label,)
        self.boxes = ((float(left), 12.0, float(left + 24), 36.0),)


EXAMPLES = [
    Example(label, colour, left)
    for left in (4, 20, 36)
    for label, colour in (("cat", (20, 20, 20)), ("beer", GOLD))
]


@pytest.fixture(scope="module")
def learner() -> ObjectDetectionPipeline:
    torch.manual_seed(1)
    config = DETRConfig(
        LABELS,
        TINY,
        d_model=32,
        n_heads=4,
        n_encoder_layers=0,
        n_decoder_layers=1,
        d_ff=32,
        n_queries=4,
        dropout=0.1,
    )
    return ObjectDetectionPipeline(DETR(config), ImageProcessor(40, 64), threshold=0.4)


def test_a_larger_head_keeps_what_it_knew(learner):
    old = learner.model
    new = fine_tuning.with_labels(old, ("beer", "fried chicken"))
    assert new.config.labels == (*LABELS, "beer", "fried chicken")
    pictures = torch.randn(2, 3, 40, 52)
    before, after = old(pictures), new.eval()(pictures)
    assert torch.equal(after.logits[..., :4], before.logits[..., :4])
    assert torch.equal(after.logits[..., -1], before.logits[..., -1])  # "no object"
    assert (after.logits[..., 4:6] == 0).all()
    assert torch.equal(after.boxes, before.boxes)


@pytest.mark.slow
def test_fine_tuning_finds_the_new_and_leaves_the_given(learner):
    before = {name: tensor.clone() for name, tensor in learner.model.state_dict().items()}
    state = torch.random.get_rng_state()
    taught = fine_tune(
        learner,
        EXAMPLES,
        labels=("beer",),
        steps=60,
        batch_size=6,
        learning_rate=5e-3,
        keep=0.1,
        progress=False,
    )
    assert torch.equal(torch.random.get_rng_state(), state)
    for name, tensor in learner.model.state_dict().items():
        assert torch.equal(tensor, before[name])
    assert learner.model.config.labels == LABELS
    assert taught.model.config.labels == (*LABELS, "beer")
    assert (taught.threshold, taught.processor) == (0.4, learner.processor)
    for name, tensor in taught.model.state_dict().items():
        if name.endswith(("mean", "variance")):
            assert torch.equal(tensor, before[name])
    overlaps = []
    for example in EXAMPLES:
        best = max(taught(example.image, threshold=0.0), key=lambda detection: detection["score"])
        assert best["label"] == example.labels[0]
        assert best["score"] > 0.5
        found = torch.tensor([float(side) for side in best["box"].values()])
        overlaps.append(float(iou(found, torch.tensor(example.boxes[0]))))
    assert sum(overlaps) / len(overlaps) > 0.35


def test_weights_go_back_a_part_of_the_way(learner):
    options = {"labels": ("beer",), "steps": 3, "batch_size": 2, "progress": False}
    all_the_way, half, none = (
        fine_tune(learner, EXAMPLES, keep=keep, **options).model.state_dict()
        for keep in (0.0, 0.5, 1.0)
    )
    for name, before in learner.model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        if name.startswith("class_head."):
            torch.testing.assert_close(half[name], all_the_way[name])
            assert not torch.equal(none[name][:4], before[:4])
        else:
            torch.testing.assert_close(none[name], before)
            torch.testing.assert_close(half[name], (all_the_way[name] + before) / 2)
    name = "decoder.layers.0.cross_attention.query_projection.weight"
    assert not torch.equal(all_the_way[name], learner.model.state_dict()[name])


def test_fine_tuning_repeats_itself(learner):
    options = {"labels": ("beer",), "steps": 2, "batch_size": 2, "progress": False}
    one, same, other = (fine_tune(learner, EXAMPLES, seed=seed, **options) for seed in (0, 0, 1))
    pictures = torch.randn(1, 3, 40, 52)
    with torch.no_grad():
        logits = [taught.model(pictures).logits for taught in (one, same, other)]
    assert torch.equal(logits[0], logits[1])
    assert not torch.equal(logits[0], logits[2])


def test_fine_tuning_leaves_out_boxes_without_area(learner):
    options = {"labels": ("beer",), "steps": 1, "batch_size": 1, "progress": False}
    scene = EXAMPLES[0]
    flat = SimpleNamespace(
        image=scene.image, boxes=[*scene.boxes, (5, 5, 5, 9)], labels=[*scene.labels, "beer"]
    )
    left_out = pytest.warns(UserWarning, match=r"^examples: 1 boxes without area are left out")
    with left_out, torch.no_grad():  # which is no obstacle
        taught = fine_tune(learner, [flat], **options)
    assert taught.model.config.labels[-1] == "beer"


class Chosen(random.Random):
    """Draws what is given, in this order: shares of the range for ``uniform``."""

    def __init__(self, *shares: float) -> None:
        super().__init__(0)
        self.shares = iter(shares)

    def random(self) -> float:
        """Return the next number; ``uniform`` is made of it."""
        return next(self.shares)


def varied(example, *chances: float):
    """Return the lesson that an example makes, varied by these numbers."""
    (lesson,) = fine_tuning._read_examples([example], ["cat"], ImageProcessor(1000, 2000))
    return fine_tuning.varied(*lesson, Chosen(*chances))


def test_mirrored_examples_have_mirrored_boxes():
    whole = (1, 1, 0, 0)  # all of width and height, from the upper left corner
    _, straight = varied(EXAMPLES[0], *whole, 0.9)
    picture, turned = varied(EXAMPLES[0], *whole, 0.1)
    torch.testing.assert_close(straight.boxes, torch.tensor([[16 / 64, 0.5, 24 / 64, 0.5]]))
    torch.testing.assert_close(turned.boxes, torch.tensor([[48 / 64, 0.5, 24 / 64, 0.5]]))
    assert picture.getpixel((63 - 4, 12)) == (20, 20, 20)
    assert picture.getpixel((4, 12)) != (20, 20, 20)


def test_cut_examples_have_cut_boxes():
    # nine tenths of the width, all of the height; the right end of what is left to choose from
    picture, target = varied(EXAMPLES[0], 0, 1, 1, 0, 0.9)
    xmin, xmax = 0.0, (28 - 6.4) / 57.6  # 6.4 pixels are gone, 57.6 left; 2.4 of the square's 24
    torch.testing.assert_close(
        target.boxes, torch.tensor([[(xmin + xmax) / 2, 0.5, xmax - xmin, 0.5]])
    )
    assert picture.size == (64, 48)
    assert picture.getpixel((10, 24)) == (20, 20, 20)

    class Edge:
        image, boxes, labels = noise(100, 50), ((0.0, 0.0, 12.0, 50.0),) * 2, ("cat", "cat")

    class Beyond(Edge):
        boxes = ((0.0, 0.0, 12.0, 50.0), (0.0, 0.0, 40.0, 50.0))

    _, none = varied(Edge(), 0, 1, 1, 0, 0.9)
    assert none.boxes.shape == (0, 4)  # 10 of 12 pixels are gone
    _, one = varied(Beyond(), 0, 1, 1, 0, 0.9)
    torch.testing.assert_close(one.boxes, torch.tensor([[1 / 6, 0.5, 1 / 3, 1.0]]))


def test_examples_are_read_once_and_kept_small():
    class Photo:
        labels = ("cat",)
        boxes = ((100.0, 50.0, 300.0, 200.0),)
        read = 0

        @property
        def image(self):
            self.read += 1
            return noise(400, 200)

    photo = Photo()
    ((picture, corners, labels),) = fine_tuning._read_examples(
        [photo], ["dog", "cat"], ImageProcessor(50, 1000)
    )
    assert (photo.read, picture.size, labels.tolist()) == (1, (100, 50), [1])
    torch.testing.assert_close(corners, torch.tensor([[0.25, 0.25, 0.75, 1.0]]))


def test_pictures_without_objects_and_of_several_sizes(learner):
    class Empty:
        image, boxes, labels = noise(30, 60), (), ()

    taught = fine_tune(
        learner, [Empty(), EXAMPLES[1]], labels=("beer",), steps=2, batch_size=2, progress=False
    )
    assert all(tensor.isfinite().all() for tensor in taught.model.state_dict().values())
