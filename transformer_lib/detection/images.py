"""Pictures as they are found: opened, turned upright and brought to 8-bit colours.

This is the only place of the library that opens a picture's file. Pillow knows many more formats
than :data:`FORMATS`, and for some of them starts other programs; what a file's name ends in
has no say in that. An address may lead only where :func:`transformer_lib.detection.addresses.fetch`
says.
"""

import io
import os
from numbers import Integral
from typing import Any, cast

import torch
from PIL import Image, ImageChops, ImageOps, UnidentifiedImageError
from torch import Tensor

from transformer_lib.detection.addresses import fetch, shown

__all__ = ["FORMATS", "MOST_PIXELS", "is_stored", "load_image", "open_image", "upright"]

# The formats that are decoded. JPEG includes the MPO of phones; nothing else is even tried.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")

# A picture of more pixels is refused before they are decoded.
MOST_PIXELS = 100_000_000

_WITH_ALPHA = ("LA", "La", "P", "PA", "RGBA", "RGBa")


def load_image(
    image: Any,
    *,
    timeout: float | None = 30.0,
    background: tuple[int, int, int] = (255, 255, 255),
    allow_private_addresses: bool = False,
    name: str = "image",
) -> Image.Image:
    """Return a picture upright and in 8-bit colours (mode RGB), whatever it comes as.

    The rotation that a camera has noted (EXIF) is carried out and the note removed, so that it is
    not carried out again; a note that is damaged is ignored. Transparent pixels are laid over
    ``background``, greys of 16 bits scaled to 8, and of an animation the first frame is taken.
    Colour profiles are not applied.

    Files are of the formats BMP, GIF, JPEG, PNG, PPM, TIFF or WebP, whatever their names end in,
    and have at most 100 million pixels. Addresses lead to servers on the internet, by redirections
    too, and not to this machine or its own network, as
    :func:`transformer_lib.detection.addresses.fetch` says.

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
        allow_private_addresses: Let addresses lead anywhere, to a server on this machine or in a
            local network too. Not for addresses that others chose.
        name: What messages call the picture.

    Raises:
        FileNotFoundError: There is no such file; IsADirectoryError and PermissionError likewise.
        TimeoutError: The address did not answer in time.
        ConnectionError: The server could not be reached, answered with an error, broke off, or the
            address led, by itself or by a redirection, where it must not.
    """
    if not (
        isinstance(background, tuple | list)
        and len(background) == 3
        and all(isinstance(part, Integral) and 0 <= part <= 255 for part in background)
    ):
        raise ValueError(f"background: expected three numbers from 0 to 255, got {background!r}")
    if isinstance(image, str | os.PathLike):
        name = f"{name}: {shown(os.fsdecode(image))}"
    if is_stored(image):
        image = open_image(
            image, timeout=timeout, allow_private_addresses=allow_private_addresses, name=name
        )
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
        return _to_rgb(upright(image), background)
    except Exception as error:  # Pillow's readers raise whatever they stumble over
        raise ValueError(f"{name}: the picture cannot be read: {error}") from None


def is_stored(image: Any) -> bool:
    """Tell whether :func:`open_image` takes a value: a path, an address, bytes or a file."""
    kinds = (str, os.PathLike, bytes, bytearray, memoryview)
    return isinstance(image, kinds) or hasattr(image, "read")


def open_image(
    image: Any,
    *,
    timeout: float | None = 30.0,
    allow_private_addresses: bool = False,
    name: str = "image",
) -> Image.Image:
    """Open a picture that is stored somewhere; its pixels are decoded when they are asked for.

    Args:
        image: A path, an address of http or https, the bytes of a picture's file, or the file,
            opened in binary mode.
        timeout: As for :func:`load_image`, whose errors are those of this function too.
        allow_private_addresses: Likewise.
        name: What messages call the picture; :func:`transformer_lib.detection.addresses.shown`
            says more of paths and addresses.
    """
    kind = ""
    if isinstance(image, str | os.PathLike):
        image = os.fsdecode(image)
        if "://" in image:
            options: dict[str, Any] = {"allow_private_addresses": allow_private_addresses}
            data, kind = fetch(image, timeout=timeout, name=name, **options)
        else:
            data = _read(image, name)
    elif hasattr(image, "read"):
        data = image.read()
    else:
        data = bytes(image)
    return _decode(data, kind, name)


def upright(image: Image.Image) -> Image.Image:
    """Return a picture turned as a camera's note (EXIF) says; a note that is damaged is ignored."""
    image.load()  # what fails from here on is not the picture
    try:
        return ImageOps.exif_transpose(image)
    except MemoryError:
        raise
    except Exception:  # Pillow's readers raise whatever they stumble over
        plain = image.copy()
        for note in ("exif", "Raw profile type exif"):
            plain.info.pop(note, None)
        return plain


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
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError:
        if data[:99].lstrip().lower().startswith((b"<!doctype html", b"<html")):
            kind = "text/html"
        what = f"{len(data)} bytes that start with {data[:12]!r}" if data else "nothing"
        raise ValueError(
            f"{name}: expected an image ({', '.join(FORMATS)}), got {kind and kind + ', '}{what}"
        ) from None
    except Exception as error:  # more pixels than Pillow takes, or a damaged header
        raise ValueError(f"{name}: the picture cannot be read: {error}") from None
    if image.width * image.height > MOST_PIXELS:
        raise ValueError(
            f"{name}: expected at most {MOST_PIXELS:,} pixels, got {image.width} × {image.height}"
        )
    if image.format == "PNG" and image.mode == "1" and image.info.get("transparency") == 1:
        image.info["transparency"] = 255  # which older releases of Pillow call 1
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
