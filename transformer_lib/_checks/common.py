"""Checks of arguments: every message names the argument, what came and what was expected."""

from dataclasses import fields
from importlib import import_module
from numbers import Integral
from typing import Any, Literal, get_args, get_origin

import torch
from torch import Tensor

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def kind(value: Any) -> str:
    """Say what came where a tensor of another kind was expected: its dtype, or its type."""
    return str(value.dtype) if isinstance(value, Tensor) else type(value).__name__


def require_floating(**tensors: Any) -> None:
    """Raise TypeError unless all are dense floating-point tensors of one dtype on one device.

    Under autocast the dtypes may differ, since every operation chooses its own.
    """
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
        if not tensor.is_floating_point():
            raise TypeError(f"{name}: expected a floating-point tensor, got {tensor.dtype}")
        if tensor.dtype not in DTYPES:
            raise TypeError(f"{name}: expected one of {DTYPES}, got {tensor.dtype}")
        if tensor.layout != torch.strided:
            raise TypeError(f"{name}: expected a dense tensor, got {tensor.layout}")
    (first, reference), *others = tensors.items()
    for name, tensor in others:
        if tensor.device != reference.device:
            raise differs(name, "device", tensor, first, reference)
        if tensor.dtype != reference.dtype and not autocasts(reference):
            raise differs(name, "dtype", tensor, first, reference)


def autocasts(tensor: Tensor) -> bool:
    """Tell whether autocast is on where a tensor is."""
    device_type = tensor.device.type
    return torch.amp.is_autocast_available(device_type) and torch.is_autocast_enabled(device_type)


def differs(name: str, what: str, tensor: Tensor, first: str, reference: Tensor) -> TypeError:
    """Return the error for a tensor whose dtype or device is not that of another argument."""
    came, expected = getattr(tensor, what), getattr(reference, what)
    return TypeError(f"{name}: expected {what} {expected} as in {first}, got {came}")


def require_mask(mask: Any, name: str = "mask") -> None:
    """Raise TypeError, with advice, unless ``mask`` is a boolean tensor."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise TypeError(
            f"{name}: expected a boolean tensor in which True means 'may attend', "
            f"got {kind(mask)}; "
            "mask_from_additive converts 0 and −inf, mask_from_hidden a mask in which True hides, "
            "and a score bias goes into the argument bias"
        )


def require_at_least(least: int, **numbers: int | None) -> None:
    """Raise ValueError when a number is below ``least``; None is no number."""
    for name, number in numbers.items():
        if number is not None and number < least:
            raise ValueError(f"{name}: expected {least} or more, got {number}")


def require_probability(**numbers: float) -> None:
    """Raise ValueError unless every number lies from 0 to 1."""
    for name, number in numbers.items():
        if not 0 <= number <= 1:
            raise ValueError(f"{name}: expected a probability from 0 to 1, got {number}")


def require_axes(names: str, **tensors: Tensor) -> None:
    """Raise ValueError when a tensor lacks one of the trailing axes ``names`` ("queries d_k")."""
    axes = names.split()
    for name, tensor in tensors.items():
        if tensor.dim() < len(axes):
            raise ValueError(
                f"{name}: expected at least {len(axes)} axes (…, {', '.join(axes)}), "
                f"got shape {tuple(tensor.shape)}"
            )


def require_same_size(size: str, **axes: tuple[Tensor, int]) -> None:
    """Raise ValueError when axes that must share the size called ``size`` differ.

    Each keyword is an argument's name with the tensor and the axis that is meant.
    """
    (first, (reference, reference_axis)), *others = axes.items()
    expected = reference.shape[reference_axis]
    for name, (tensor, axis) in others:
        if tensor.shape[axis] != expected:
            raise ValueError(
                f"{name}: expected {size} = {expected} as in {first} "
                f"(shape {tuple(reference.shape)}), "
                f"got {size} = {tensor.shape[axis]} (shape {tuple(tensor.shape)})"
            )


def require_broadcastable(axes: str, **shapes: torch.Size) -> torch.Size:
    """Return what the shapes of the axes called ``axes`` broadcast to, or raise ValueError."""
    first, *others = shapes.values()
    if all(shape == first for shape in others):
        return first  # the usual case, without the cost of broadcasting
    try:
        return torch.broadcast_shapes(*shapes.values())  # type: ignore[no-untyped-call]
    except RuntimeError:
        came = ", ".join(f"{name} has {tuple(shape)}" for name, shape in shapes.items())
        raise ValueError(f"{', '.join(shapes)}: {axes} axes do not broadcast: {came}") from None


def require_fields(config: Any) -> None:
    """Raise unless every field of a dataclass has a value of its declared type.

    An int may stand for a float. Fields declared as a collection are left to the dataclass itself.

    Raises:
        TypeError: A field has another type than declared.
        ValueError: A field declared as a Literal has none of its values.
    """
    for field in fields(config):
        value, kinds = getattr(config, field.name), get_args(field.type) or (field.type,)
        if get_origin(field.type) is Literal:
            if value not in kinds:
                raise ValueError(f"{field.name}: expected one of {kinds}, got {value!r}")
        elif get_origin(field.type) is tuple or any(map(get_origin, kinds)):
            continue
        elif type(value) not in kinds and not (float in kinds and type(value) is int):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise TypeError(f"{field.name}: expected {names}, got {value!r}")


def require_corners(
    name: str, box: Any, size: tuple[int, int]
) -> tuple[float, float, float, float]:
    """Return a box's four numbers, or raise ValueError unless they are corners in a picture.

    A pixel of grace is for those who rounded; NaN is refused.
    """
    try:
        xmin, ymin, xmax, ymax = map(float, box)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name}: expected boxes of four numbers (xmin, ymin, xmax, ymax), got {box!r}"
        ) from None
    width, height = size
    if not (-1 <= xmin <= xmax <= width + 1 and -1 <= ymin <= ymax <= height + 1):
        raise ValueError(
            f"{name}: expected boxes (xmin, ymin, xmax, ymax) inside of {width} × {height} pixels, "
            f"got ({xmin:g}, {ymin:g}, {xmax:g}, {ymax:g})"
        )
    return xmin, ymin, xmax, ymax


def require_dataset(name: str, value: Any) -> None:
    """Raise TypeError unless a value has a length and items by number."""
    if not (hasattr(value, "__len__") and hasattr(value, "__getitem__")):
        raise TypeError(f"{name}: expected a list or dataset, got {type(value).__name__}")


def require_pixels(name: str, greatest: float) -> None:
    """Raise ValueError if the greatest number of many boxes says that they are shares."""
    if 0 < greatest <= 1:
        raise ValueError(
            f"{name}: no box reaches beyond the first pixel: expected boxes in pixels, and not in "
            "shares of the picture"
        )


def require_package(package: str, sentence: str, extra: str) -> None:
    """Raise ModuleNotFoundError, with what to install, unless a package is there."""
    try:
        import_module(package)
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{sentence}: pip install 'building-the-transformer[{extra}]'"
        ) from None


def require_count(name: str, number: Any, least: int, most: int | None = None) -> None:
    """Raise unless ``number`` is a whole number from ``least`` to ``most``."""
    if isinstance(number, bool) or not isinstance(number, Integral):
        raise TypeError(f"{name}: expected a whole number, got {number!r}")
    if int(number) < least or (most is not None and int(number) > most):
        upto = "or more" if most is None else f"to {most}"
        raise ValueError(f"{name}: expected {least} {upto}, got {number}")
