"""The object detection pipeline: pictures in, names and boxes out; and teaching it new names.

Explained in chapter 18, "The object detection pipeline" (book/18_object_detection_pipeline.ipynb).
Generated from there by tools/export.py; edit the notebook.
"""

import copy
import difflib
import io
import json
import math
import os
import queue
import random
import threading
import urllib.error
import urllib.parse
import urllib.request
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from PIL import Image, ImageChops, ImageOps, UnidentifiedImageError
from torch import Tensor
from tqdm import tqdm

from transformer_lib._checks.common import require_corners, require_dataset, require_pixels
from transformer_lib.detr import (
    DETR,
    BatchNorm,
    Detections,
    ImageProcessor,
    Target,
    postprocess,
    set_loss,
    to_centres,
)
from transformer_lib.hub import find_published

__all__ = [
    "AnnotatedImage",
    "ObjectDetectionPipeline",
    "draw_detections",
    "fine_tune",
    "load_image",
    "pipeline",
    "read_coco",
]

_WITH_ALPHA = ("LA", "La", "P", "PA", "RGBA", "RGBa")


def load_image(
    image: Any,
    *,
    timeout: float | None = 30.0,
    background: tuple[int, int, int] = (255, 255, 255),
    name: str = "image",
) -> Image.Image:
    """Return a picture upright and in 8-bit colours, whatever it comes as.

    The rotation that a camera has noted (EXIF) is carried out and the note removed, so that it is
    not carried out again. Transparent pixels are laid over ``background``, greys of 16 bits scaled
    to 8, and of an animation the first frame is taken. Colour profiles are not applied.

    Args:
        image: A path; an address of http or https; the bytes of an image file, or the file, opened
            in binary mode; a PIL image, of which an animation shows the frame it is at; a NumPy
            array of shape (height, width) or (height, width, channels); or a tensor of shape
            (height, width) or (channels, height, width). One to four channels are grey, grey and
            alpha, RGB, RGBA. Numbers have 8 or 16 bits without sign, or are truth values, or floats
            from 0 to 1.
        timeout: Seconds within which an address must have answered completely; None waits for
            ever.
        background: Colour behind what is transparent, red, green, blue from 0 to 255.
        name: What messages call the picture.

    Returns:
        A new PIL image of mode RGB.

    Raises:
        FileNotFoundError: There is no such file; IsADirectoryError and PermissionError likewise.
        TimeoutError: The address did not answer in time.
        ConnectionError: The server could not be reached, answered with an error, broke off, or
            redirected to something else than http or https.
        TypeError: ``image``, or the numbers of an array, are of another type.
        ValueError: It is no image, is damaged or has no pixels, or more than Pillow takes
            (twice ``PIL.Image.MAX_IMAGE_PIXELS``, 179 million); an array has another shape or
            floats outside of 0 to 1; pixels have no known scale (mode F, and mode I with greys up
            to 255); or ``background`` is no colour.
    """
    if not (
        isinstance(background, tuple | list)
        and len(background) == 3
        and all(isinstance(part, Integral) and 0 <= part <= 255 for part in background)
    ):
        raise ValueError(f"background: expected three numbers from 0 to 255, got {background!r}")
    if isinstance(image, str | os.PathLike):
        image = os.fsdecode(image)
        name = f"{name}: {image if len(image) <= 200 else image[:200] + '…'}"
        if "://" in image:
            image = _decode(*_download(image, timeout, name), name)
        else:
            image = _decode(_read(image, name), "", name)
    elif isinstance(image, bytes | bytearray | memoryview):
        image = _decode(bytes(image), "", name)
    elif hasattr(image, "read"):
        image = _decode(image.read(), "", name)
    elif not isinstance(image, Image.Image):
        if not hasattr(image, "__array__"):  # tensors have it too
            raise TypeError(
                f"{name}: expected a path, an http or https address, an image file or its bytes, "
                f"a PIL image, a NumPy array or a tensor, got {type(image).__name__}"
            )
        image = _from_array(image, name)
    if 0 in image.size:
        raise ValueError(f"{name}: expected at least one pixel, got {image.width} × {image.height}")
    try:
        return _to_rgb(ImageOps.exif_transpose(image), background)
    except Exception as error:  # Pillow's readers raise whatever they stumble over
        raise ValueError(f"{name}: the picture cannot be read: {error}") from None


def _read(path: str, name: str) -> bytes:
    if not os.path.exists(path):
        raise FileNotFoundError(f"{name}: there is no such file")
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:  # a folder, or a file that is not ours to read
        raise type(error)(f"{name}: {error.strerror}") from None


def _decode(data: bytes, kind: str, name: str) -> Image.Image:
    """Return the picture in the bytes of a file; ``kind`` is what a server says that it is."""
    try:
        image = Image.open(io.BytesIO(data))
    except UnidentifiedImageError:
        if data[:99].lstrip().lower().startswith((b"<!doctype html", b"<html")):
            kind = "text/html"
        what = f"{len(data)} bytes that start with {data[:12]!r}" if data else "nothing"
        raise ValueError(f"{name}: expected an image, got {kind and kind + ', '}{what}") from None
    except Exception as error:  # more pixels than Pillow takes, or a damaged header
        raise ValueError(f"{name}: the picture cannot be read: {error}") from None
    if image.format == "PNG" and image.mode == "L" and "transparency" in image.info:
        # Pillow brings greys of 2 and 4 bits to 8, and leaves the one that is transparent.
        image.info["transparency"] *= {"L;2": 85, "L;4": 17}.get(str(image.tile[0][3]), 1)
    return image


def _to_rgb(image: Image.Image, background: tuple[int, int, int]) -> Image.Image:
    if image.mode == "F":
        raise ValueError("floating-point pixels have no known scale: make 8-bit ones of them")
    if image.mode.startswith("I"):
        image = _scaled(image)
    if image.mode == "La":
        image = image.convert("LA")  # the only way out of this mode
    if image.mode in _WITH_ALPHA or "transparency" in image.info:
        behind = Image.new("RGBA", image.size, (*background, 255))
        image = Image.alpha_composite(behind, image.convert("RGBA"))
    return image.convert("RGB")


def _scaled(image: Image.Image) -> Image.Image:
    """Return 8-bit greys for 16-bit ones, which Pillow itself would clip at 255."""
    wide = image.convert("I")
    low, high = cast("tuple[int, int]", wide.getextrema())
    if low < 0 or high > 65535:
        raise ValueError(f"expected 16-bit greys from 0 to 65535, got {low} to {high}")
    if image.mode == "I" and 0 < high <= 255:
        raise ValueError(f"greys of mode I up to {high} may have 8 bits or 16: say which by mode L")
    transparent = wide.info.pop("transparency", None)
    grey = wide.point(lambda value: value * (1 / 257) + 0.5).convert("L")
    if transparent is not None:  # a grey of the 16-bit scale; one of the differences is above 0
        above = wide.point(lambda value: value * 1 - transparent).convert("L")
        below = wide.point(lambda value: value * -1 + transparent).convert("L")
        grey.putalpha(ImageChops.add(above, below).point(lambda value: 255 if value else 0))
    return grey


def _from_array(array: Any, name: str) -> Image.Image:
    import numpy as np

    shape = tuple(array.shape)
    if isinstance(array, Tensor):
        layout = "(channels, height, width)"
        array = array.detach().cpu()
        array = array.float() if array.dtype == torch.bfloat16 else array
        array = (array.movedim(0, -1) if array.dim() == 3 else array).numpy()
    else:
        layout = "(height, width, channels)"
        array = np.asarray(array)
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or not 1 <= array.shape[2] <= 4:
        raise ValueError(
            f"{name}: expected shape (height, width) or {layout} with 1 to 4 channels, got {shape}"
        )
    if not array.size:
        raise ValueError(f"{name}: expected at least one pixel, got shape {shape}")
    if array.dtype.kind == "f":
        low, high = array.min(), array.max()
        if not (low >= -1e-3 and high <= 1 + 1e-3):  # room for rounding; NaN is refused too
            raise ValueError(f"{name}: expected floats from 0 to 1, got {low:.4g} to {high:.4g}")
        array = np.rint(array.astype(np.float32) * 255)
    elif array.dtype.kind == "u" and array.dtype.itemsize == 2:
        array = (array.astype(np.uint32) + 128) // 257
    elif array.dtype.kind == "b":
        array = array * 255
    elif array.dtype != np.uint8:
        raise TypeError(
            f"{name}: expected numbers of 8 or 16 bits (uint8, uint16), truth values, or floats "
            f"from 0 to 1, got {array.dtype}"
        )
    array = np.ascontiguousarray(array.astype(np.uint8))
    return Image.fromarray(array[..., 0] if array.shape[2] == 1 else array)


_MOST_BYTES = 2**28
_FOR_EVER = 10**6  # seconds; clocks of sockets and threads hold no more than some billions


def _download(url: str, timeout: float | None, name: str) -> tuple[bytes, str]:
    """Return what a server answers, and of what kind it says that is, within ``timeout`` seconds.

    A socket's own timeout starts anew with every byte, and knows nothing of the look-up of the
    server's name. So another thread fetches, and this one waits.
    """
    if timeout is not None:
        if isinstance(timeout, bool) or not isinstance(timeout, Real):
            raise TypeError(f"timeout: expected seconds above 0, or None, got {timeout!r}")
        if not timeout > 0:
            raise ValueError(f"timeout: expected seconds above 0, or None, got {timeout}")
        timeout = None if timeout > _FOR_EVER else timeout
    if not url.lower().startswith(("http://", "https://")):
        raise ValueError(f"{name}: expected a path, or an address of http or https")
    answers: queue.SimpleQueue[tuple[bytes, str] | Exception] = queue.SimpleQueue()
    given_up = threading.Event()

    def fetch() -> None:
        try:
            answers.put(_fetch(url, timeout, given_up))
        except Exception as error:
            answers.put(error)

    threading.Thread(target=fetch, daemon=True).start()
    try:
        answer = answers.get(timeout=timeout)
    except queue.Empty:
        answer = TimeoutError()
    finally:
        given_up.set()
    if isinstance(answer, tuple):
        return answer
    if isinstance(answer, urllib.error.HTTPError):
        answer.close()
        reason = answer.reason.partition("\n")[0]
        raise ConnectionError(f"{name}: the server answered {answer.code} {reason}")
    cause = getattr(answer, "reason", answer)
    if isinstance(cause, TimeoutError):
        raise TimeoutError(f"{name}: no complete answer within {timeout} s")
    raise ConnectionError(f"{name}: {str(cause) or type(cause).__name__}")


def _fetch(url: str, timeout: float | None, given_up: threading.Event) -> tuple[bytes, str]:
    opener = urllib.request.OpenerDirector()  # one that knows no files, no FTP and no data
    for handler in (
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.HTTPHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPSHandler,
        urllib.request.ProxyHandler,
        urllib.request.UnknownHandler,
    ):
        opener.add_handler(handler())
    parts = urllib.parse.urlsplit(url.strip())
    host = parts.netloc.encode("idna").decode()
    path, query = (
        urllib.parse.quote(part, safe="%/:=&?~+!$,;'@()*[]") for part in (parts.path, parts.query)
    )
    address = urllib.parse.urlunsplit((parts.scheme, host, path, query, ""))
    request = urllib.request.Request(address, headers={"User-Agent": "transformer_lib"})
    data = bytearray()
    with opener.open(request, timeout=timeout) as response:
        while (chunk := response.read1(2**16)) and not given_up.is_set():
            data += chunk
            if len(data) > _MOST_BYTES:
                raise ConnectionError(f"the answer has more than {_MOST_BYTES:,} bytes")
        expected = response.headers["Content-Length"]
        if expected and len(data) < int(expected):
            raise ConnectionError(f"the answer ends after {len(data)} of {expected} bytes")
        return bytes(data), response.headers.get_content_type()


class ObjectDetectionPipeline:
    """A detector with all that stands around it: pictures in, names and boxes out.

    ::

        detector = pipeline("object-detection")
        detector("photo.jpg")

    Args:
        model: A detector; it is put into evaluation mode and stays on its device.
        processor: What makes the model's input of pictures, as it was in training.
        threshold: Scores above it are reported, if a call says nothing else.
        batch_size: Pictures that are loaded at a time, if a call says nothing else.

    Raises:
        TypeError: An option is of another type.
        ValueError: ``threshold`` is not from 0 to 1, or ``batch_size`` below 1.
    """

    def __init__(
        self,
        model: DETR,
        processor: ImageProcessor,
        *,
        threshold: float = 0.5,
        batch_size: int = 1,
    ) -> None:
        _require_options(threshold, batch_size)
        if not callable(processor):
            raise TypeError(f"processor: expected an ImageProcessor, got {processor!r}")
        self.model, self.processor = model.eval(), processor
        self.threshold, self.batch_size = threshold, batch_size

    def __call__(
        self,
        images: Any,
        *,
        threshold: float | None = None,
        batch_size: int | None = None,
        timeout: float | None = 30.0,
    ) -> Any:
        """Find the objects in one picture or many.

        Args:
            images: A picture as :func:`load_image` takes it; a list or tuple of pictures; or a
                generator, dataset or other iterable of them.
            threshold: Scores above it are reported, so that 0 reports every query and 1 none. A
                score is a probability the model gives, the greatest that is not that of "no
                object".
            batch_size: Pictures that are loaded at a time. Those of one size go through the model
                together, so that none is padded: it changes the speed, and the results no more
                than rounding does.
            timeout: Seconds an address may take, or None; as in :func:`load_image`.

        Returns:
            For a picture, a list with a dictionary for each object, in the order of the model's
            queries: "score", a float; "label", a name; and "box", a dictionary of the integers
            "xmin", "ymin", "xmax" and "ymax", pixels of the picture as :func:`load_image` returns
            it, counted from its upper left edge. A box is rounded outwards to whole pixels, but
            for a thousandth of one, and cut at the picture's edges; one that lies outside has no
            area. For a list or tuple, a list of such lists. For other iterables, a generator of
            such lists, which loads pictures as results are asked for.

        Raises:
            TypeError: ``images`` or an option are of another type.
            ValueError: An option is out of range, or the model's predictions are not finite.
            FileNotFoundError, TimeoutError, ConnectionError, TypeError, ValueError: A picture
                cannot be loaded; of several, the message says which, counted from 0.

        Source: Wolf et al. (2020); results are as those of transformers' pipeline, whose boxes
        are cut off to whole pixels towards 0 and may reach outside of the picture.
        """
        threshold = self.threshold if threshold is None else threshold
        batch_size = self.batch_size if batch_size is None else batch_size
        _require_options(threshold, batch_size)
        if _is_one(images):
            return self._detect([load_image(images, timeout=timeout)], threshold)[0]
        results = self._stream(_each(images), threshold, batch_size, timeout)
        return list(results) if isinstance(images, list | tuple) else results

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write model and processor in Hugging Face's layout, for :func:`pipeline` to read.

        Where transformers reads them otherwise is said at
        :meth:`transformer_lib.detr.DETR.save_pretrained`.
        """
        self.model.save_pretrained(folder)
        self.processor.save_pretrained(folder)

    def _stream(
        self, images: Iterable[Any], threshold: float, batch_size: int, timeout: float | None
    ) -> Iterator[list[dict[str, Any]]]:
        waiting: list[Image.Image] = []
        for number, image in enumerate(images):
            waiting.append(load_image(image, timeout=timeout, name=f"images[{number}]"))
            if len(waiting) == batch_size:
                yield from self._detect(waiting, threshold)
                waiting = []
        yield from self._detect(waiting, threshold)

    @torch.inference_mode()
    def _detect(self, pictures: list[Image.Image], threshold: float) -> list[list[dict[str, Any]]]:
        weight = self.model.class_head.weight
        alike: dict[tuple[int, ...], list[tuple[int, Tensor]]] = {}
        for place, picture in enumerate(pictures):
            pixels, _ = self.processor([picture])
            alike.setdefault(tuple(pixels.shape), []).append((place, pixels))
        results: list[list[dict[str, Any]]] = [[] for _ in pictures]
        for group in alike.values():
            places = [place for place, _ in group]
            pixels = torch.cat([pixels for _, pixels in group])
            predictions = self.model(pixels.to(weight.device, weight.dtype))
            if not all(tensor.isfinite().all() for tensor in predictions[:2]):
                raise ValueError(f"model: NaN or infinity in its predictions ({weight.dtype})")
            sizes = [pictures[place].size for place in places]
            found = postprocess(predictions, sizes, threshold=threshold)
            for place, detections, size in zip(places, found, sizes, strict=True):
                results[place] = self._named(detections, size)
        return results

    def _named(self, detections: Detections, size: tuple[int, int]) -> list[dict[str, Any]]:
        return [
            {"score": score, "label": self.model.config.labels[label], "box": _whole(box, size)}
            for score, label, box in zip(
                detections.scores.tolist(),
                detections.labels.tolist(),
                detections.boxes.tolist(),
                strict=True,
            )
        ]


def _whole(box: list[float], size: tuple[int, int]) -> dict[str, int]:
    """Return the smallest box of whole pixels around the part of ``box`` that is in the picture."""
    least = [math.floor(side + 1e-3) for side in box[:2]]
    greatest = [math.ceil(side - 1e-3) for side in box[2:]]
    corners = (min(max(side, 0), end) for side, end in zip(least + greatest, size * 2, strict=True))
    return dict(zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True))


def _require_options(threshold: float, batch_size: int) -> None:
    if isinstance(threshold, bool) or not isinstance(threshold, Real):
        raise TypeError(f"threshold: expected a number from 0 to 1, got {threshold!r}")
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold: expected a number from 0 to 1, got {threshold}")
    if isinstance(batch_size, bool) or not isinstance(batch_size, Integral):
        raise TypeError(f"batch_size: expected a whole number, got {batch_size!r}")
    if batch_size < 1:
        raise ValueError(f"batch_size: expected 1 or more, got {batch_size}")


def _is_one(images: Any) -> bool:
    kinds = (str, os.PathLike, bytes, bytearray, memoryview, Image.Image)
    return isinstance(images, kinds) or hasattr(images, "__array__") or hasattr(images, "read")


def _each(images: Any) -> Iterable[Any]:
    if not isinstance(images, Mapping | set | frozenset):  # their order or values are not meant
        if isinstance(images, Iterable):
            return images
        if hasattr(images, "__getitem__") and hasattr(images, "__len__"):  # a dataset
            return (images[place] for place in range(len(images)))
    raise TypeError(
        "images: expected a picture (a path, an address, bytes, a PIL image, an array, a tensor), "
        f"or a list, generator or dataset of pictures, got {type(images).__name__}"
    )


def pipeline(
    task: str = "object-detection",
    model: str | os.PathLike[str] | DETR = "scenes-detr",
    *,
    image_processor: ImageProcessor | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
    threshold: float = 0.5,
    batch_size: int = 1,
) -> ObjectDetectionPipeline:
    """Make a pipeline: a model and what stands around it.

    Args:
        task: "object-detection".
        model: "scenes-detr", which comes with the library and knows drawn rooms; a folder in
            Hugging Face's layout; a name on its hub, such as "facebook/detr-resnet-50"; or a
            model.
        image_processor: What prepares pictures; by default what is saved with the model. With a
            model that is no name it must be given.
        device: Where to compute; by default where the model is.
        dtype: Type of the weights; by default that of the model. With ``device`` or ``dtype`` a
            model that is given stays as it is, and a copy is used.
        threshold: As for :class:`ObjectDetectionPipeline`.
        batch_size: Likewise.

    Raises:
        ValueError: The task is another, the files of the model are damaged or make no DETR, or
            ``image_processor`` is missing.
        FileNotFoundError: There is no such model, or no way to get it.
    """
    if task != "object-detection":
        raise ValueError(f"task: expected 'object-detection', got {task!r}")
    if dtype is not None and not isinstance(dtype, torch.dtype):
        raise TypeError(f"dtype: expected a type such as torch.float16, got {dtype!r}")
    if isinstance(model, DETR):
        if image_processor is None:
            raise ValueError(
                "image_processor: with a model that is no name, expected what prepares its "
                "pictures as in training, got None"
            )
    elif isinstance(model, str | os.PathLike):
        model, image_processor = _read_model(model, image_processor)
    else:
        raise TypeError(f"model: expected a name, a folder or a DETR, got {type(model).__name__}")
    if device is not None or dtype is not None:
        model = copy.deepcopy(model).to(device=device, dtype=dtype)
    return ObjectDetectionPipeline(
        model, image_processor, threshold=threshold, batch_size=batch_size
    )


def _read_model(
    name: str | os.PathLike[str], processor: ImageProcessor | None
) -> tuple[DETR, ImageProcessor]:
    try:
        folder = find_published(name)
        return DETR.from_pretrained(folder), processor or ImageProcessor.from_pretrained(folder)
    except (FileNotFoundError, ValueError) as error:
        message = str(error).removeprefix("name: ")
        near = difflib.get_close_matches(str(name), _KNOWN, n=1)
        hint = f"; is {near[0]} meant?" if near and near[0] != name else ""
        kind = FileNotFoundError if isinstance(error, FileNotFoundError) else ValueError
        raise kind(f"model: {message}{hint}") from None


_KNOWN = ("scenes-detr", "facebook/detr-resnet-50", "facebook/detr-resnet-101")

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIDES = ("xmin", "ymin", "xmax", "ymax")


def draw_detections(
    image: Any,
    detections: Iterable[Mapping[str, Any]],
    *,
    ax: "Axes | None" = None,
    size: tuple[float, float] | None = None,
) -> "Axes":
    """Draw a picture with the box, the label and the score of each detection.

    A label stands at its box and inside the picture, and on no other label where that can be
    avoided.

    Args:
        image: The picture that was detected on, as :func:`load_image` takes it. It is turned
            upright as it was for the detection.
        detections: What an :class:`ObjectDetectionPipeline` returned for it. Without "score" the
            label is written alone.
        ax: Where to draw; a new figure when None.
        size: Width and height of the new figure in inches; by default 7.2 wide, and as high as
            the picture asks, from 1 to 9.

    Returns:
        The Axes drawn on. The figure is neither shown nor saved nor closed:
        ``plt.close(ax.figure)`` does the last, for those who draw many.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
        TypeError: ``detections`` are no dictionaries.
        ValueError: A detection lacks its label or box, or has a box without order.

    Warns:
        UserWarning: A label is Korean, and no font has its letters; question marks stand for them.
    """
    from transformer_lib.course import plotting  # says what to install, if matplotlib is missing

    picture = load_image(image)
    found = [_drawable(detection, number) for number, detection in enumerate(detections)]

    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke

    if ax is None:
        height = min(max(7.2 * picture.height / picture.width, 1.0), 9.0)
        figure = plt.figure(figsize=size or (7.2, height), layout="none")
        ax = figure.add_axes((0, 0, 1, 1))
    ax.imshow(picture, extent=(0, picture.width, picture.height, 0))  # boxes count from the edge
    ax.set_axis_off()
    palette = [plotting.BLUE, plotting.RED, plotting.GREEN, plotting.PURPLE, plotting.ORANGE]
    labels = list(dict.fromkeys(label for label, _, _ in found))
    families, legible = _font_for(" ".join(labels))
    texts = []
    for label, score, (xmin, ymin, xmax, ymax) in found:
        colour = palette[labels.index(label) % len(palette)]
        outline = [withStroke(linewidth=3.5, foreground="white")]
        ax.add_patch(
            Rectangle(
                (xmin, ymin),
                xmax - xmin,
                ymax - ymin,
                fill=False,
                edgecolor=colour,
                linewidth=1.8,
                path_effects=outline,
            )
        )
        ground = {"boxstyle": "square,pad=0.15", "fc": colour, "ec": "white", "lw": 0.8}
        text = ax.text(
            0,
            0,
            legible(label) + score,
            color="white",
            fontsize=8,
            family=families,
            bbox=ground,
            parse_math=False,
        )
        text.set_in_layout(False)
        texts.append(text)
    _place(ax, texts, [box for _, _, box in found], picture.size)
    return ax


def _drawable(detection: Mapping[str, Any], number: int) -> tuple[str, str, tuple[float, ...]]:
    """Return label, score in brackets, and box, of a detection that has them."""
    name = f"detections[{number}]"
    if not isinstance(detection, Mapping):
        raise TypeError(f"{name}: expected a dictionary, got {type(detection).__name__}")
    box = detection.get("box")
    if "label" not in detection or not isinstance(box, Mapping) or set(box) != set(_SIDES):
        raise ValueError(
            f"{name}: expected a label, and a box with {', '.join(_SIDES)}, got {dict(detection)}"
        )
    xmin, ymin, xmax, ymax = (float(box[side]) for side in _SIDES)
    if not (-math.inf < xmin <= xmax < math.inf and -math.inf < ymin <= ymax < math.inf):
        raise ValueError(f"{name}: expected maxima that are not below minima, got {dict(box)}")
    if not isinstance(detection.get("score", 0.0), Real):
        raise ValueError(f"{name}: expected a number as score, got {detection['score']!r}")
    score = f" ({detection['score']:.2f})" if "score" in detection else ""
    return str(detection["label"]), score, (xmin, ymin, xmax, ymax)


def _font_for(text: str) -> tuple[list[str], Callable[[str], str]]:
    """Return font families for the letters of a text, and what makes it fit them."""
    import matplotlib.pyplot as plt

    from transformer_lib.course import plotting

    families = list(plt.rcParams["font.family"])
    missing = _without_font(text, families)
    if missing and (font := plotting.korean_font()):
        families.append(font)
        missing = _without_font(text, families)
    if missing:
        warnings.warn(
            f"no font with the letters {''.join(missing)}: ? stands for them. Korean ones come "
            "with building-the-transformer[plots]; others go into rcParams['font.family']",
            stacklevel=3,
        )
    unknown = str.maketrans(dict.fromkeys(missing, "?"))
    return families, lambda label: label.translate(unknown)


def _without_font(text: str, families: Sequence[str]) -> list[str]:
    """Return the letters of a text that no font of the families has."""
    from matplotlib import font_manager

    wanted = [font_manager.FontProperties(family=[family]) for family in families]
    fonts = [font_manager.get_font(font_manager.findfont(each)) for each in wanted]
    letters = sorted(letter for letter in set(text) if not letter.isspace())
    return [
        letter for letter in letters if not any(font.get_char_index(ord(letter)) for font in fonts)
    ]


def _place(
    ax: "Axes", texts: Sequence[Any], boxes: Sequence[Sequence[float]], size: tuple[int, int]
) -> None:
    """Move each text to its box: the first place inside the picture with least on other texts."""
    if not texts:
        return
    ax.figure.canvas.figure.draw_without_rendering()  # only what is laid out can be measured
    to_picture = ax.transData.inverted()
    taken: list[tuple[float, float, float, float]] = []
    for text, (xmin, ymin, xmax, ymax) in zip(texts, boxes, strict=True):
        extent = text.get_bbox_patch().get_window_extent().transformed(to_picture)
        left, top = extent.x0, min(extent.y0, extent.y1)  # of a text at (0, 0)
        width, height = extent.width, abs(extent.height)
        places = []
        for x in (xmin, xmax - width):
            for y in (ymin - height, ymin, ymax, ymax - height):
                x_inside = max(min(x, size[0] - width), 0.0)
                y_inside = max(min(y, size[1] - height), 0.0)
                places.append((x_inside, y_inside, x_inside + width, y_inside + height))
        place = min(places, key=lambda place: sum(_shared(place, other) for other in taken))
        taken.append(place)
        text.set_position((place[0] - left, place[1] - top))


def _shared(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the area that two boxes share."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(width, 0.0) * max(height, 0.0)


_Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class AnnotatedImage:
    """A picture in a file, with the boxes and names of the objects in it.

    Attributes:
        file: The picture's file.
        boxes: (xmin, ymin, xmax, ymax) of each object, in pixels of the upright picture.
        labels: The name of each object.
    """

    file: Path
    boxes: tuple[_Box, ...]
    labels: tuple[str, ...]

    @property
    def image(self) -> Image.Image:
        """The picture, read anew each time."""
        return load_image(self.file)


def read_coco(
    annotations: str | os.PathLike[str], images: str | os.PathLike[str]
) -> list[AnnotatedImage]:
    """Read pictures whose objects are described in COCO's JSON.

    Of the file "images" (id, file_name), "annotations" (image_id, category_id, bbox) and
    "categories" (id, name) are read. A bbox is [x, y, width, height] in pixels. What is marked
    as a crowd (iscrowd) is left out.

    Args:
        annotations: The JSON file.
        images: The folder that the file names are relative to.

    Returns:
        The pictures in the file's order, those without objects too. Boxes are cut at the
        picture's edges.

    Raises:
        FileNotFoundError: The JSON file, the folder or a picture is missing.
        ValueError: The file is no JSON, lacks a field, has a value that cannot be right, such as
            a box that reaches outside of its picture, or does not fit the pictures. The message
            names the entry.

    Warns:
        UserWarning: Boxes without area are left out.

    Source: Lin et al. (2014).
    """
    table, folder = _read_json(Path(annotations)), Path(images)
    if not folder.is_dir():
        raise FileNotFoundError(f"images: there is no such folder: {folder}")
    names: dict[int, str] = {}
    for where, entry in _entries(table, "categories"):
        number, name = _field(entry, "id", int, where), _field(entry, "name", str, where)
        if number in names or name in names.values():
            raise ValueError(f"{where}: id {number} or name {name!r} is there twice")
        names[number] = name
    pictures: dict[int, tuple[Path, tuple[int, int]]] = {}
    for where, entry in _entries(table, "images"):
        number = _field(entry, "id", int, where)
        if number in pictures:
            raise ValueError(f"{where}: id {number} is there twice")
        file = folder / _field(entry, "file_name", str, where)
        pictures[number] = file, _size(file, entry, where)
    found: dict[int, list[tuple[_Box, str]]] = {number: [] for number in pictures}
    empty, greatest = 0, 0.0
    for where, entry in _entries(table, "annotations"):
        picture = _field(entry, "image_id", int, where)
        category = _field(entry, "category_id", int, where)
        for name, number, known in (
            ("image_id", picture, pictures),
            ("category_id", category, names),
        ):
            if number not in known:
                raise ValueError(f"{where}: {name} {number} is the id of none")
        box = _corners_of(_field(entry, "bbox", list, where), pictures[picture][1], where)
        greatest = max(greatest, *map(float, entry["bbox"]))
        if (crowd := entry.get("iscrowd")) not in (None, 0, 1):
            raise ValueError(f"{where}: expected 'iscrowd' to be 0 or 1, got {crowd!r}")
        if crowd:
            continue
        if box[0] < box[2] and box[1] < box[3]:
            found[picture].append((box, names[category]))
        else:
            empty += 1
    require_pixels("annotations", greatest)
    if empty:
        warnings.warn(f"annotations: {empty} boxes without area are left out", stacklevel=2)
    return [
        AnnotatedImage(
            file,
            tuple(box for box, _ in found[number]),
            tuple(name for _, name in found[number]),
        )
        for number, (file, _) in pictures.items()
    ]


def _read_json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise FileNotFoundError(f"annotations: there is no such file: {file}")
    try:
        table = json.loads(file.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"annotations: {file} is no JSON: {error}") from None
    if not isinstance(table, dict):
        raise ValueError(
            f"annotations: expected images, annotations and categories, got {type(table).__name__}"
        )
    return table


def _entries(table: dict[str, Any], part: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the entries of a part, each after words that say which it is."""
    if not isinstance(table.get(part), list):
        raise ValueError(f"annotations: expected a list called {part!r} in the file")
    for number, entry in enumerate(table[part]):
        if not isinstance(entry, dict):
            raise ValueError(f"annotations: {part}[{number}]: expected an object, got {entry!r}")
        yield f"annotations: {part}[{number}]", entry


def _field(entry: dict[str, Any], name: str, kind: type, where: str) -> Any:
    if type(entry.get(name)) is not kind:
        got = repr(entry[name]) if name in entry else "none"
        raise ValueError(f"{where}: expected {name!r}, of type {kind.__name__}, got {got}")
    return entry[name]


def _size(file: Path, entry: dict[str, Any], where: str) -> tuple[int, int]:
    """Return a picture's width and height, upright, if they are those of its entry."""
    if not file.is_file():
        raise FileNotFoundError(f"{where}: there is no picture {file}")
    size = load_image(file, name=where).size
    described = entry.get("width", size[0]), entry.get("height", size[1])
    if described != size:
        with Image.open(file) as stored:
            turned = stored.size != size
        note = ", once it is turned upright as its EXIF says" if turned else ""
        raise ValueError(
            f"{where}: {file.name} has {size[0]} × {size[1]} pixels{note}, and not "
            f"{described[0]!r} × {described[1]!r}"
        )
    return size


def _corners_of(bbox: list[Any], size: tuple[int, int], where: str) -> _Box:
    if len(bbox) != 4 or any(isinstance(n, bool) or not isinstance(n, int | float) for n in bbox):
        raise ValueError(f"{where}: expected a bbox of four numbers, got {bbox}")
    x, y, width, height = map(float, bbox)
    right, bottom = x + width, y + height
    # a pixel of grace, for those who rounded; NaN is refused
    inside = x >= -1 and y >= -1 and right <= size[0] + 1 and bottom <= size[1] + 1
    if not (inside and width >= 0 and height >= 0):
        corners = 0 <= x < width <= size[0] and 0 <= y < height <= size[1]
        raise ValueError(
            f"{where}: expected a bbox [x, y, width, height] inside of {size[0]} × {size[1]} "
            f"pixels, got {bbox}" + ("; is it [xmin, ymin, xmax, ymax]?" if corners else "")
        )
    return max(x, 0.0), max(y, 0.0), min(right, float(size[0])), min(bottom, float(size[1]))


_Lesson = tuple[Image.Image, Tensor, Tensor]  # a picture, corners as shares of it, label ids


def fine_tune(
    detector: ObjectDetectionPipeline,
    examples: Sequence[Any],
    *,
    labels: Sequence[str] = (),
    updates: int = 250,
    batch_size: int = 8,
    rate: float = 3e-4,
    keep: float = 0.3,
    seed: int = 0,
    progress: bool = True,
) -> ObjectDetectionPipeline:
    """Teach a detector more labels, and what pictures of them look like.

    The class head gets an output for each new label; all else begins with the detector's weights,
    and all of them but frozen batch normalisation are trained, the class head at ten times the
    rate. Every update takes ``batch_size`` of the pictures, cut to nine tenths or more of width and
    height and enlarged again, and mirrored or not, at random. Batch normalisation keeps its
    statistics, frozen or not. The rate falls to 0 along half a cosine. In the end all weights but
    the class head's go back a part of the way to where they began, so that less is unlearnt. What
    is in the pictures and not among their objects is taught to be nothing: pictures that hold old
    objects must name these too.

    Args:
        detector: What to begin with; it stays as it is.
        examples: Pictures with their objects: what :func:`read_coco` returns, scenes, or others
            that have ``image``, ``boxes`` (xmin, ymin, xmax, ymax in pixels) and ``labels``.
        labels: New labels, in the order of their ids.
        updates: Number of updates.
        batch_size: Pictures an update.
        rate: Learning rate of AdamW at the beginning.
        keep: How far the weights go back, from 0 (they stay as they were trained) to 1.
        seed: Starting point of all chance.
        progress: Show a bar, in a terminal.

    Returns:
        A new detector for the old labels and the new ones.

    Raises:
        ModuleNotFoundError: scipy is not installed.
        TypeError: The detector has weights of half precision, or an option is of another type.
        ValueError: There are no examples, a label is new and old, an example has a label that is
            neither or boxes outside of its picture, no box reaches beyond the first pixel, or an
            option is out of range.

    Warns:
        UserWarning: Boxes without area are left out.

    Source: Carion et al. (2020), sections 3.1 and A.4; going back: Wortsman et al. (2022).
    """
    if not isinstance(detector, ObjectDetectionPipeline):
        raise TypeError(f"detector: expected a pipeline, got {type(detector).__name__}")
    if not any(isinstance(module, BatchNorm) for module in detector.model.modules()):
        raise TypeError("detector: what for_detection returned cannot be trained")
    if isinstance(labels, str):
        raise TypeError(f"labels: expected several names, got one: ({labels!r},) is a tuple of one")
    if not isinstance(labels, Sequence) or not all(isinstance(label, str) for label in labels):
        raise TypeError(f"labels: expected a list or tuple of names, got {labels!r}")
    names = [*detector.model.config.labels, *labels]
    if twice := [label for label in labels if names.count(label) > 1]:
        raise ValueError(f"labels: {twice[0]!r} is there twice, or known to the detector already")
    for name, number in (("updates", updates), ("batch_size", batch_size)):
        if type(number) is not int or number < 1:
            raise ValueError(f"{name}: expected a whole number above 0, got {number!r}")
    if not (isinstance(rate, Real) and rate > 0):
        raise ValueError(f"rate: expected a number above 0, got {rate!r}")
    if not (isinstance(keep, Real) and 0 <= keep <= 1):
        raise ValueError(f"keep: expected a share from 0 to 1, got {keep!r}")
    if type(seed) is not int:
        raise ValueError(f"seed: expected a whole number, got {seed!r}")
    weight = detector.model.class_head.weight
    if weight.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"detector: expected weights of float32 or float64, got {weight.dtype}")
    lessons = _lessons(examples, names, detector.processor)

    chance = random.Random(seed)
    with torch.enable_grad(), torch.random.fork_rng():
        torch.manual_seed(seed)
        model = _with_labels(detector.model, labels).train()
        model.backbone.eval()  # a few pictures say little about means and variances
        head = {"params": list(model.class_head.parameters()), "lr": 10 * rate}
        rest = [p for name, p in model.named_parameters() if not name.startswith("class_head.")]
        begun = [parameter.detach().clone() for parameter in rest]
        groups: list[dict[str, Any]] = [head, {"params": rest}]
        optimizer = torch.optim.AdamW(groups, lr=rate, weight_decay=1e-4)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates)
        order = _endless(len(lessons), chance)
        for _ in tqdm(range(updates), disable=None if progress else True):
            batch = [_varied(*lessons[next(order)], chance) for _ in range(batch_size)]
            pixels, mask = detector.processor([picture for picture, _ in batch])
            predictions = model(pixels.to(weight.device, weight.dtype), mask.to(weight.device))
            optimizer.zero_grad()
            loss = set_loss(predictions, [target for _, target in batch])["loss"]
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            schedule.step()
        with torch.no_grad():
            for parameter, before in zip(rest, begun, strict=True):
                parameter.lerp_(before, keep)
    return ObjectDetectionPipeline(
        model, detector.processor, threshold=detector.threshold, batch_size=detector.batch_size
    )


def _with_labels(model: DETR, labels: Sequence[str]) -> DETR:
    """Return a copy of a model with outputs for more labels, which begin at 0."""
    state = model.state_dict()
    for name in ("class_head.weight", "class_head.bias"):
        classes, no_object = state[name][:-1], state[name][-1:]
        new = classes.new_zeros(len(labels), *classes.shape[1:])
        state[name] = torch.cat([classes, new, no_object])  # "no object" stays the last
    names = (*model.config.labels, *labels)
    larger = DETR(replace(model.config, labels=names)).to(classes.device, classes.dtype)
    larger.load_state_dict(state)
    return larger


def _endless(count: int, chance: random.Random) -> Iterator[int]:
    """Yield the numbers below ``count`` for ever, each once before any comes again."""
    while True:
        yield from chance.sample(range(count), count)


def _varied(
    picture: Image.Image, corners: Tensor, labels: Tensor, chance: random.Random
) -> tuple[Image.Image, Target]:
    """Return a picture cut and mirrored at random, and what is in it."""
    width, height = chance.uniform(0.9, 1), chance.uniform(0.9, 1)
    x, y = chance.uniform(0, 1 - width), chance.uniform(0, 1 - height)
    columns, rows = picture.size
    window = (x * columns, y * rows, (x + width) * columns, (y + height) * rows)
    picture = picture.resize(picture.size, Image.Resampling.BILINEAR, box=window)
    whole = (corners - torch.tensor([x, y, x, y])) / torch.tensor([width, height, width, height])
    inside = whole.clamp(0, 1)
    if chance.random() < 0.5:
        picture = ImageOps.mirror(picture)
        xmin, ymin, xmax, ymax = inside.unbind(dim=1)
        inside = torch.stack([1 - xmax, ymin, 1 - xmin, ymax], dim=1)
    kept = _areas(inside) > _areas(whole) / 2  # less than half of it would be no example
    return picture, Target(labels[kept], to_centres(inside[kept]))


def _areas(corners: Tensor) -> Tensor:
    return (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])


def _lessons(
    examples: Sequence[Any], names: Sequence[str], processor: ImageProcessor
) -> list[_Lesson]:
    """Read every example once, and shrink pictures to what the processor will make of them."""
    require_dataset("examples", examples)
    if not len(examples):
        raise ValueError("examples: expected at least one picture, got none")
    lessons = []
    empty, greatest = 0, 0.0
    for number in range(len(examples)):
        example, where = examples[number], f"examples[{number}]"
        try:
            image, boxes, named = example.image, example.boxes, example.labels
        except AttributeError as error:
            raise TypeError(
                f"{where}: expected image, boxes and labels; {error.name} is missing"
            ) from None
        if len(boxes) != len(named):
            raise ValueError(
                f"{where}: expected as many boxes as labels, got {len(boxes)} and {len(named)}"
            )
        for label in named:
            if label not in names:
                raise ValueError(
                    f"{where}: expected one of the labels {names}, got {label!r}; new ones are "
                    f"named by labels=[…]"
                )
        picture = load_image(image, name=where)
        corners = torch.tensor([require_corners(where, box, picture.size) for box in boxes])
        shares = corners.reshape(-1, 4) / torch.tensor(picture.size * 2)
        greatest = max([greatest, *corners.flatten().tolist()])
        empty += int((_areas(shares) == 0).sum())
        if (smaller := processor.resized(*picture.size)) < picture.size:
            picture = picture.resize(smaller, Image.Resampling.BILINEAR, reducing_gap=2.0)
        labels = torch.tensor([names.index(label) for label in named], dtype=torch.int64)
        lessons.append((picture, shares, labels))
    require_pixels("examples", greatest)
    if empty:
        warnings.warn(f"examples: {empty} boxes without area are left out", stacklevel=3)
    return lessons
