"""DETR: objects in a picture, found as a set by a Transformer.

Explained in chapter 17, "DETR" (book/17_detr.ipynb). Generated from there by tools/export.py; edit
the notebook.
"""

import copy
import json
import math
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib._checks.common import (
    require_broadcastable,
    require_corners,
    require_dataset,
    require_fields,
    require_floating,
    require_mask,
    require_pixels,
)
from transformer_lib.files import read_tensors, require_state
from transformer_lib.hub import find_published
from transformer_lib.layers import Decoder, DecoderLayer, Encoder

__all__ = [
    "DETR",
    "BatchNorm",
    "DETRConfig",
    "Detections",
    "ImageProcessor",
    "LabelledImage",
    "Pixels",
    "Predictions",
    "ResNet",
    "ResNetConfig",
    "Target",
    "assign",
    "config_from_published",
    "config_to_published",
    "evaluate",
    "for_detection",
    "generalized_iou",
    "image_positions",
    "iou",
    "match",
    "postprocess",
    "published_name",
    "set_loss",
    "to_centres",
    "to_corners",
]


class BatchNorm(nn.Module):
    """Give each channel mean 0 and variance 1, then a gain and a bias.

    While training, mean and (biased) variance are those of the batch and all its places, and
    running averages of the mean and the unbiased variance are kept; in evaluation, and always if
    frozen, these serve.

    Args:
        channels: Number of channels.
        frozen: Keep statistics, gain and bias as they are, in training too.
        eps: Added to the variance.
        momentum: Share of the newest batch in the running averages.

    Source: Ioffe and Szegedy (2015), algorithms 1 and 2; frozen: Carion et al. (2020), section 4.
    """

    mean: Tensor
    variance: Tensor

    def __init__(
        self, channels: int, *, frozen: bool = False, eps: float = 1e-5, momentum: float = 0.1
    ) -> None:
        super().__init__()
        self.frozen, self.eps, self.momentum = frozen, eps, momentum
        self.gain = nn.Parameter(torch.ones(channels), requires_grad=not frozen)
        self.bias = nn.Parameter(torch.zeros(channels), requires_grad=not frozen)
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))

    def forward(
        self, x: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch channels height width"]:
        """Normalise every channel.

        Args:
            x: Features of shape (batch, channels, height, width).

        Returns:
            Features of the same shape. While training, a NaN spoils its channel.

        Raises:
            ValueError: While training, a channel has a single number, whose variance says nothing.
        """
        training = self.training and not self.frozen
        return F.batch_norm(
            x, self.mean, self.variance, self.gain, self.bias, training, self.momentum, self.eps
        )


@dataclass(frozen=True)
class ResNetConfig:
    """Everything that determines a :class:`ResNet` but its weights; the defaults are ResNet-50.

    Attributes:
        depths: Blocks in each stage.
        widths: Channels each stage gives; for a bottleneck, multiples of 4.
        stem_width: Channels between the stem and the first stage.
        block: "basic" (two 3×3 convolutions) or "bottleneck" (1×1, 3×3, 1×1).
        frozen_norm: Keep batch normalisation as it is, in training too, as DETR does.

    Raises:
        TypeError: A field has another type than declared.
        ValueError: No network can be built from a field's value; the message names the field.
    """

    depths: tuple[int, ...] = (3, 4, 6, 3)
    widths: tuple[int, ...] = (256, 512, 1024, 2048)
    stem_width: int = 64
    block: Literal["basic", "bottleneck"] = "bottleneck"
    frozen_norm: bool = False

    def __post_init__(self) -> None:
        """Refuse what no network can be built from, naming the field."""
        require_fields(self)
        for name in ("depths", "widths"):
            sizes = getattr(self, name)
            if type(sizes) is not tuple or any(type(size) is not int for size in sizes):
                raise TypeError(f"{name}: expected a tuple of int, got {sizes!r}")
            if not sizes or min(sizes) < 1:
                raise ValueError(f"{name}: expected one or more numbers above 0, got {sizes}")
        if len(self.depths) != len(self.widths):
            raise ValueError(
                f"widths: expected one for each of {len(self.depths)} depths, got {self.widths}"
            )
        if self.stem_width < 1:
            raise ValueError(f"stem_width: expected 1 or more, got {self.stem_width}")
        if self.block == "bottleneck" and any(width % 4 for width in self.widths):
            raise ValueError(f"widths: expected multiples of 4 for a bottleneck, got {self.widths}")


class _Convolution(nn.Module):
    """A convolution without bias, then batch normalisation, which would subtract it again."""

    def __init__(
        self, channels_in: int, channels_out: int, size: int, *, stride: int = 1, frozen: bool
    ) -> None:
        super().__init__()
        self.stride = stride
        self.convolution = nn.Conv2d(
            channels_in, channels_out, size, stride=stride, padding=size // 2, bias=False
        )
        self.norm = BatchNorm(channels_out, frozen=frozen)
        nn.init.kaiming_normal_(self.convolution.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.convolution(x))


def _shrink(mask: Tensor | None, stride: int) -> Tensor | None:
    return None if mask is None else mask[..., ::stride, ::stride]


def _hide_padding(x: Tensor, mask: Tensor | None) -> Tensor:
    return x if mask is None else x.masked_fill(~mask[:, None], 0)


class _Block(nn.Module):
    """ReLU(x + change(x)), the change being convolutions with ReLU between them."""

    def __init__(
        self, channels_in: int, channels_out: int, *, stride: int, config: ResNetConfig
    ) -> None:
        super().__init__()
        layers = [(3, channels_out, stride), (3, channels_out, 1)]
        if config.block == "bottleneck":
            narrow = channels_out // 4
            layers = [(1, narrow, 1), (3, narrow, stride), (1, channels_out, 1)]
        self.layers = nn.ModuleList()
        before = channels_in
        for size, channels, step in layers:
            self.layers.append(
                _Convolution(before, channels, size, stride=step, frozen=config.frozen_norm)
            )
            before = channels
        self.shortcut = None
        if channels_in != channels_out or stride != 1:
            self.shortcut = _Convolution(
                channels_in, channels_out, 1, stride=stride, frozen=config.frozen_norm
            )

    def forward(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return the features and the mask at their resolution."""
        kept = x if self.shortcut is None else self.shortcut(x)
        *layers, last = cast("Sequence[_Convolution]", self.layers)
        for layer in layers:
            mask = _shrink(mask, layer.stride)
            x = _hide_padding(F.relu(layer(x), inplace=True), mask)
        mask = _shrink(mask, last.stride)
        return _hide_padding(F.relu(last(x) + kept, inplace=True), mask), mask


class ResNet(nn.Module):
    """A residual network: pictures to features at a 4th, 8th, 16th … of their height and width.

    The stem is a 7×7 convolution and a 3×3 maximum, each with stride 2; every stage but the first
    halves height and width in its first block, rounding up. A new network's convolutions are drawn
    from N(0, 2 / (channels out · size²)).

    Args:
        config: Sizes and variants.

    Attributes:
        stride: Pixels to a feature, in height and in width.
        width: Channels of the features.

    Source: He et al. (2016), table 1. The stride of a bottleneck is in its 3×3 convolution, where
    PyTorch's and the published DETR's are; initial weights: He et al. (2015), equation 14.
    """

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__()
        self.config = config
        self.stride, self.width = 2 ** (len(config.depths) + 1), config.widths[-1]
        self.stem = _Convolution(3, config.stem_width, 7, stride=2, frozen=config.frozen_norm)
        self.stages = nn.ModuleList()
        before = config.stem_width
        for number, (depth, width) in enumerate(zip(config.depths, config.widths, strict=True)):
            blocks = nn.ModuleList()
            for block in range(depth):
                stride = 2 if number > 0 and block == 0 else 1
                blocks.append(_Block(before, width, stride=stride, config=config))
                before = width
            self.stages.append(blocks)

    def forward(
        self,
        pixels: Float[Tensor, "batch 3 height width"],
        *,
        pixel_mask: Bool[Tensor, "batch height width"] | None = None,
    ) -> Float[Tensor, "batch channels rows columns"]:
        """Return the features of the last stage.

        Args:
            pixels: Normalised pictures of shape (batch, 3, height, width).
            pixel_mask: True on real pixels. If given, features of padding are set to 0 between all
                convolutions, which gives each picture the features it has alone.

        Returns:
            Features of shape (batch, widths[-1], ⌈height / stride⌉, ⌈width / stride⌉). NaN spreads
            to the features around it; in training, to whole channels.

        Raises:
            TypeError: ``pixels`` are not floating point.
            ValueError: ``pixels`` have another shape.
        """
        _require_pixels(pixels)
        if pixel_mask is not None:
            _require_pixel_mask(pixel_mask, pixels)
        x, mask = _hide_padding(pixels, pixel_mask), _shrink(pixel_mask, 2)
        x = _hide_padding(F.relu(self.stem(x), inplace=True), mask)
        x, mask = F.max_pool2d(x, 3, stride=2, padding=1), _shrink(mask, 2)
        x = _hide_padding(x, mask)
        for blocks in cast("Sequence[nn.ModuleList]", self.stages):
            for block in blocks:
                x, mask = block(x, mask)
        return x


def _require_pixels(pixels: Tensor) -> None:
    require_floating(pixels=pixels)
    if pixels.dim() != 4 or pixels.shape[1] != 3 or 0 in pixels.shape[2:]:
        raise ValueError(
            f"pixels: expected shape (batch, 3, height, width), got {tuple(pixels.shape)}"
        )


def _require_pixel_mask(pixel_mask: Tensor, pixels: Tensor) -> None:
    require_mask(pixel_mask, "pixel_mask")
    expected = (len(pixels), *pixels.shape[2:])
    if pixel_mask.shape != expected:
        raise ValueError(
            f"pixel_mask: expected shape {expected} as pixels, got {tuple(pixel_mask.shape)}"
        )


def image_positions(
    mask: Bool[Tensor, "batch rows columns"],
    d_model: int,
    *,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "batch rows columns d_model"]:
    """Return the sinusoids of both coordinates of every place, side by side.

    Rows and columns of real places are counted from 1 and scaled so that the last is at 2π. The
    first half of the result's columns belongs to the row and the second to the column; pair i of
    either holds the sine and cosine of the angle coordinate / 10000^(2i / (d_model / 2)).

    Args:
        mask: True on real places, which lie top left: (batch, rows, columns).
        d_model: Width of the vectors; a multiple of 4.
        dtype: Type of the result; half precision is computed in float32 and rounded once.

    Returns:
        A tensor of shape (batch, rows, columns, d_model), without unit, entries from −1 to 1.
        Padding after the last row or column has the coordinate of the last, and 0 where a whole
        row or column is padding.

    Raises:
        TypeError: ``mask`` is not boolean.
        ValueError: ``mask`` has not three axes, or ``d_model`` is no multiple of 4.

    Source: Parmar et al. (2018), section 3.1; Carion et al. (2020), section A.4.
    """
    require_mask(mask)
    if mask.dim() != 3:
        raise ValueError(f"mask: expected shape (batch, rows, columns), got {tuple(mask.shape)}")
    if d_model % 4 or d_model < 4:
        raise ValueError(f"d_model: expected a multiple of 4, got {d_model}")
    wide = torch.promote_types(dtype, torch.float32)
    pair = torch.arange(0, d_model // 2, 2, dtype=wide, device=mask.device)
    halves = []
    for axis in (1, 2):
        count = mask.cumsum(axis, dtype=wide)
        last = count.narrow(axis, -1, 1)
        coordinate = count / (last + 1e-6) * (2 * math.pi)  # 10⁻⁶ as published
        angle = coordinate[..., None] / 10000 ** (pair / (d_model // 2))
        halves.append(torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2))
    return torch.cat(halves, dim=-1).to(dtype)


@dataclass(frozen=True)
class DETRConfig:
    """Everything that determines a :class:`DETR` but its weights; the defaults are the paper's.

    Attributes:
        labels: Names of the classes, the first of id 0; a tuple. A mapping from ids to names may be
            given; ids that it leaves out, up to its greatest, are then named "LABEL_1" and so on.
            "No object" is no label: it has the output after the last.
        backbone: What makes features of pictures.
        d_model: Width of all vectors; a multiple of 4.
        n_heads: Attention heads a layer; divides ``d_model``.
        n_encoder_layers: Layers of the encoder.
        n_decoder_layers: Layers of the decoder, at least 1.
        d_ff: Width inside the feed-forward networks.
        n_queries: Object queries: the most objects that can be found in a picture.
        dropout: Dropout of sublayers.
        attention_dropout: Dropout of attention weights.
        feed_forward_dropout: Dropout inside the feed-forward networks.
        activation: "relu", "gelu" or "swish".
        masked_backbone: Hide padding inside the backbone too, so that a picture's detections do not
            depend on who shares its batch. The published models are without, and in them the rows
            and columns that count as real are rounded.
        norm_between_layers: Normalise what goes from one decoder layer to the next, as the models
            do that transformers trained with its own auxiliary losses.

    Raises:
        TypeError: A field has another type than declared.
        ValueError: No model can be built from a field's value; the message names the field.
    """

    labels: Sequence[str] | Mapping[int, str]
    backbone: ResNetConfig = field(default_factory=ResNetConfig)
    d_model: int = 256
    n_heads: int = 8
    n_encoder_layers: int = 6
    n_decoder_layers: int = 6
    d_ff: int = 2048
    n_queries: int = 100
    dropout: float = 0.1
    attention_dropout: float = 0.0
    feed_forward_dropout: float = 0.0
    activation: Literal["relu", "gelu", "swish"] = "relu"
    masked_backbone: bool = True
    norm_between_layers: bool = False

    def __post_init__(self) -> None:
        """Refuse what no model can be built from, naming the field."""
        object.__setattr__(self, "labels", _label_names(self.labels))
        require_fields(self)
        for name, least in (
            ("d_model", 4),
            ("n_heads", 1),
            ("n_encoder_layers", 0),
            ("n_decoder_layers", 1),
            ("d_ff", 1),
            ("n_queries", 1),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name}: expected {least} or more, got {getattr(self, name)}")
        for name in ("dropout", "attention_dropout", "feed_forward_dropout"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(
                    f"{name}: expected a probability from 0 to 1, got {getattr(self, name)}"
                )
        if self.d_model % 4:
            raise ValueError(f"d_model: expected a multiple of 4, got {self.d_model}")
        if self.d_model % self.n_heads:
            raise ValueError(
                f"n_heads: expected a divisor of d_model = {self.d_model}, got {self.n_heads}"
            )

    def to_json(self) -> str:
        """Return the configuration as a JSON object, one field a line."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "DETRConfig":
        """Read what :meth:`to_json` wrote; a field that is left out gets its default.

        Raises:
            TypeError: A field has another type than declared.
            ValueError: The text is no JSON object, has a field that no configuration has, or a
                value that no model can be built from.
        """
        try:
            given = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"config: not valid JSON: {error}") from None
        if not isinstance(given, dict) or "labels" not in given:
            raise ValueError("config: expected a JSON object with labels")
        backbone = dict(given.get("backbone", {}))
        for part, kind in ((given, cls), (backbone, ResNetConfig)):
            if unknown := part.keys() - {field.name for field in fields(kind)}:
                raise ValueError(f"config: unknown fields {', '.join(sorted(unknown))}")
        for name in backbone.keys() & {"depths", "widths"}:
            backbone[name] = tuple(backbone[name])  # JSON has lists only
        return cls(**given | {"backbone": ResNetConfig(**backbone)})


def _label_names(labels: Sequence[str] | Mapping[int, str]) -> tuple[str, ...]:
    """Return a name for every id from 0 to the greatest."""
    if isinstance(labels, str) or not isinstance(labels, Sequence | Mapping):
        raise TypeError(f"labels: expected names, or a mapping from ids to names, got {labels!r}")
    if not labels:
        raise ValueError("labels: expected at least one name, got none")
    named = dict(labels) if isinstance(labels, Mapping) else dict(enumerate(labels))
    for number, name in named.items():
        if type(number) is not int or number < 0:
            raise ValueError(f"labels: expected ids from 0 on, got {number!r}")
        if type(name) is not str:
            raise TypeError(f"labels: expected names, got {name!r} for id {number}")
    return tuple(named.get(number, f"LABEL_{number}") for number in range(max(named) + 1))


_STACK_OPTIONS = (
    "d_model",
    "n_heads",
    "d_ff",
    "dropout",
    "attention_dropout",
    "feed_forward_dropout",
    "activation",
)


class Predictions(NamedTuple):
    """What a :class:`DETR` makes of a batch of pictures.

    Attributes:
        logits: Scores of every class, and last of "no object", before the softmax: (batch,
            n_queries, classes + 1).
        boxes: Centre, width and height as shares of the real picture: cx, cy, w, h from 0 to 1, of
            shape (batch, n_queries, 4).
        auxiliary: Logits and boxes that the heads read after each decoder layer but the last.
    """

    logits: Float[Tensor, "batch queries outputs"]
    boxes: Float[Tensor, "batch queries 4"]
    auxiliary: tuple[
        tuple[Float[Tensor, "batch queries outputs"], Float[Tensor, "batch queries 4"]], ...
    ] = ()


class DETR(nn.Module):
    """Finds objects in pictures as a set: one box and class, or "no object", per object query.

    Args:
        config: Sizes and variants.

    Source: Carion et al. (2020), section 3.2 and figures 2 and 10.
    """

    def __init__(self, config: DETRConfig) -> None:
        super().__init__()
        self.config = config
        d_model = config.d_model
        self.backbone = ResNet(config.backbone)
        self.projection = nn.Conv2d(self.backbone.width, d_model, 1)
        options = {name: getattr(config, name) for name in _STACK_OPTIONS}
        self.encoder = Encoder(config.n_encoder_layers, **options)
        self.decoder = Decoder(config.n_decoder_layers, **options, final_norm=True)
        self.queries = nn.Parameter(torch.randn(config.n_queries, d_model))
        self.class_head = nn.Linear(d_model, len(config.labels) + 1)
        self.box_head = nn.Sequential(
            nn.Linear(d_model, d_model),
            nn.ReLU(),
            nn.Linear(d_model, d_model),
            nn.ReLU(),
            nn.Linear(d_model, 4),
        )

    def forward(
        self,
        pixels: Float[Tensor, "batch 3 height width"],
        pixel_mask: Bool[Tensor, "batch height width"] | None = None,
    ) -> Predictions:
        """Predict a box and class scores for every query.

        Args:
            pixels: Normalised pictures of shape (batch, 3, height, width), padded to one size at
                the right and bottom. What is in the padding does not matter.
            pixel_mask: True on real pixels, False on padding: (batch, height, width); by default
                all are real.

        Returns:
            Predictions for the batch. Without ``masked_backbone`` they also depend on how much
            padding a picture has. NaN in a picture spreads to all its predictions; while training
            with batch normalisation that is not frozen, to the batch.

        Raises:
            TypeError: ``pixels`` are not floating point, or ``pixel_mask`` is not boolean.
            ValueError: A shape is wrong.
        """
        _require_pixels(pixels)
        if pixel_mask is not None:
            _require_pixel_mask(pixel_mask, pixels)
            if not torch.compiler.is_compiling() and pixel_mask.all():
                pixel_mask = None  # nothing to hide: attention is quicker without a mask
        features, mask = self._features(pixels, pixel_mask)
        x = self.projection(features).flatten(2).transpose(1, 2)
        places = image_positions(mask, self.config.d_model, dtype=x.dtype).flatten(1, 2)
        key_mask = None if pixel_mask is None else mask.flatten(1)
        memory = self.encoder(x, key_mask=key_mask, positions=places)
        # One row of results per decoder layer, so that the heads read all at once.
        logits, boxes = self._heads(self._decode(memory, places, key_mask))
        *earlier, last = zip(logits, boxes, strict=True)
        return Predictions(*last, tuple(earlier))

    def _features(self, pixels: Tensor, pixel_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the backbone's features and which of them are real."""
        stride = self.backbone.stride
        if pixel_mask is None:
            features = self.backbone(pixels)
            return features, features.new_ones(len(pixels), *features.shape[2:], dtype=torch.bool)
        if self.config.masked_backbone:
            features = self.backbone(pixels, pixel_mask=pixel_mask)
            return features, pixel_mask[:, ::stride, ::stride]
        features = self.backbone(_hide_padding(pixels, pixel_mask))
        mask = F.interpolate(pixel_mask[:, None].to(pixels.dtype), features.shape[2:])
        return features, mask[:, 0] > 0

    def _decode(
        self, memory: Tensor, places: Tensor, key_mask: Tensor | None
    ) -> Float[Tensor, "layers batch queries d_model"]:
        """Return the normalised output of every decoder layer."""
        norm = cast("nn.Module", self.decoder.final_norm)
        layers = cast("Sequence[DecoderLayer]", self.decoder.layers)
        projected = self.decoder.project_memory(memory, positions=places)
        x = self.queries.new_zeros(len(memory), *self.queries.shape)
        outputs = []
        for layer, keys_values in zip(layers, projected, strict=True):
            x = layer(
                x,
                keys_values,
                causal=False,
                memory_key_mask=key_mask,
                positions=self.queries[None],
            )
            outputs.append(norm(x))
            if self.config.norm_between_layers:
                x = outputs[-1]
        if self.config.norm_between_layers:
            outputs[-1] = norm(x)  # once more, as in transformers
        return torch.stack(outputs)

    def _heads(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.class_head(x), self.box_head(x).sigmoid()

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write ``config.json`` and ``model.safetensors``, as transformers has them.

        Its ``DetrForObjectDetection.from_pretrained`` reads the folder, and with the file that
        :meth:`ImageProcessor.save_pretrained` writes, its ``pipeline("object-detection")`` does.
        It knows no ``masked_backbone``: with that, give it pictures of one size, or one at a time.
        """
        _save_detr(self, folder)

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        *,
        labels: Sequence[str] | Mapping[int, str] | None = None,
    ) -> "DETR":
        """Read a model that this library or transformers saved; it is in evaluation mode.

        Its batch normalisation is frozen, as in the paper.

        Args:
            name: A folder, or a name on the hub such as "facebook/detr-resnet-50".
            labels: Labels that the model is to have instead of its own, to be trained further. All
                is loaded but the rows of the class head for labels that are not among its own.

        Raises:
            FileNotFoundError: There is no such model, or a file is missing; pickled weights are not
                read.
            ValueError: A file is truncated or foreign, or the tensors are not those of the
                configuration; the message names them.

        Warns:
            UserWarning: With ``labels``: which start anew, and which of its own are left out.
        """
        return _load_detr(name, labels)


def to_corners(boxes: Float[Tensor, "*boxes 4"]) -> Float[Tensor, "*boxes 4"]:
    """Turn (cx, cy, w, h) into (xmin, ymin, xmax, ymax).

    Args:
        boxes: Boxes along the last axis, in any unit.

    Raises:
        TypeError: ``boxes`` are not floating point.
        ValueError: The last axis has not size 4.
    """
    _require_boxes(boxes=boxes)
    centre, size = boxes[..., :2], boxes[..., 2:]
    return torch.cat([centre - size / 2, centre + size / 2], dim=-1)


def to_centres(boxes: Float[Tensor, "*boxes 4"]) -> Float[Tensor, "*boxes 4"]:
    """Turn (xmin, ymin, xmax, ymax) into (cx, cy, w, h), the inverse of :func:`to_corners`.

    Args:
        boxes: Boxes along the last axis, in any unit.

    Raises:
        TypeError: ``boxes`` are not floating point.
        ValueError: The last axis has not size 4.
    """
    _require_boxes(boxes=boxes)
    least, greatest = boxes[..., :2], boxes[..., 2:]
    return torch.cat([(least + greatest) / 2, greatest - least], dim=-1)


def iou(
    first: Float[Tensor, "*#boxes 4"], second: Float[Tensor, "*#boxes 4"]
) -> Float[Tensor, "*boxes"]:
    """Return the intersection over union of boxes, pair by pair.

    Args:
        first: Boxes as corners (xmin, ymin, xmax, ymax).
        second: Boxes likewise; the axes before the last are broadcast, so that ``first[:, None]``
            and ``second[None]`` give every pair.

    Returns:
        A number from 0 to 1 for each pair; 0 where both boxes have no area. Half precision is
        computed in float32. NaN in a box makes its pairs NaN.

    Raises:
        TypeError: An argument is not floating point, or dtypes or devices differ.
        ValueError: The last axis has not size 4, other axes do not broadcast, or a corner is on the
            wrong side of the other.
    """
    first, second, dtype = _corners(first, second)
    intersection, union = _areas(first, second)
    return _ratio(intersection, union).to(dtype)


def generalized_iou(
    first: Float[Tensor, "*#boxes 4"], second: Float[Tensor, "*#boxes 4"]
) -> Float[Tensor, "*boxes"]:
    """Return the generalised intersection over union of boxes, pair by pair.

    It is the IoU less the share of the smallest box around both that neither of them fills.

    Args:
        first: Boxes as corners (xmin, ymin, xmax, ymax).
        second: Boxes likewise; axes before the last are broadcast as in :func:`iou`.

    Returns:
        A number from −1 to 1 for each pair; where the box around both has no area, 0. Gradients
        are finite. NaN in a box makes its pairs NaN.

    Raises:
        TypeError: An argument is not floating point, or dtypes or devices differ.
        ValueError: As for :func:`iou`.

    Source: Rezatofighi et al. (2019), algorithm 1.
    """
    first, second, dtype = _corners(first, second)
    intersection, union = _areas(first, second)
    least = torch.minimum(first[..., :2], second[..., :2])
    greatest = torch.maximum(first[..., 2:], second[..., 2:])
    around = _area(greatest - least)
    return (_ratio(intersection, union) - _ratio(around - union, around)).to(dtype)


def _corners(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor, torch.dtype]:
    """Check boxes given as corners and widen half precision, in which areas would overflow."""
    _require_boxes(first=first, second=second)
    require_broadcastable("box", first=first.shape[:-1], second=second.shape[:-1])
    if not torch.compiler.is_compiling():
        for name, boxes in (("first", first), ("second", second)):
            if (boxes[..., 2:] < boxes[..., :2]).any():
                raise ValueError(
                    f"{name}: expected corners (xmin, ymin, xmax, ymax), got a maximum below its "
                    "minimum; is it (cx, cy, w, h)? Then to_corners turns it"
                )
    wide = torch.promote_types(first.dtype, torch.float32)
    return first.to(wide), second.to(wide), first.dtype


def _areas(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Return the areas of intersection and union."""
    least = torch.maximum(first[..., :2], second[..., :2])
    greatest = torch.minimum(first[..., 2:], second[..., 2:])
    intersection = _area((greatest - least).clamp(min=0))
    both = _area(first[..., 2:] - first[..., :2]) + _area(second[..., 2:] - second[..., :2])
    return intersection, both - intersection


def _area(size: Tensor) -> Tensor:
    return size[..., 0] * size[..., 1]


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    """Return part / whole, and 0 with a gradient of 0 where both are 0."""
    return part / whole.where(whole != 0, 1)


def _require_boxes(**boxes: Tensor) -> None:
    require_floating(**boxes)
    for name, tensor in boxes.items():
        if tensor.dim() == 0 or tensor.shape[-1] != 4:
            raise ValueError(f"{name}: expected shape (…, 4), got {tuple(tensor.shape)}")


@dataclass(frozen=True, eq=False)
class Target:
    """The objects in a picture.

    Attributes:
        labels: Class ids, from 0 on: (objects,).
        boxes: (cx, cy, w, h) as shares of the picture, from 0 to 1: (objects, 4). A picture without
            objects has labels of shape (0,) and boxes of shape (0, 4).

    Raises:
        TypeError: Labels are no integers, or boxes no floating-point numbers.
        ValueError: A shape is wrong, or there are not as many labels as boxes.
    """

    labels: Int[Tensor, " objects"]
    boxes: Float[Tensor, "objects 4"]

    def __post_init__(self) -> None:
        """Refuse what cannot be objects, naming the field."""
        require_floating(boxes=self.boxes)
        if not isinstance(self.labels, Tensor) or self.labels.dtype not in _INTEGERS:
            came = getattr(self.labels, "dtype", type(self.labels).__name__)
            raise TypeError(f"labels: expected integers, got {came}")
        if self.labels.dim() != 1:
            raise ValueError(f"labels: expected shape (objects,), got {tuple(self.labels.shape)}")
        if self.boxes.shape != (len(self.labels), 4):
            raise ValueError(
                f"boxes: expected shape (objects, 4) = ({len(self.labels)}, 4) as there are "
                f"labels, got {tuple(self.boxes.shape)}"
            )


_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def assign(
    costs: Float[Tensor, "queries objects"],
) -> tuple[Int[Tensor, " matched"], Int[Tensor, " matched"]]:
    """Give every object a query of its own so that the sum of the costs is least.

    Args:
        costs: What each query would cost each object.

    Returns:
        The queries chosen, in ascending order, and the object of each. If there are more objects
        than queries, some objects are left out. On the CPU.

    Raises:
        ModuleNotFoundError: scipy is not installed.
        ValueError: A cost is not finite.

    Source: Kuhn (1955); solved by scipy's ``linear_sum_assignment``.
    """
    try:
        from scipy.optimize import linear_sum_assignment
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "matching needs scipy: pip install 'building-the-transformer[detection]'"
        ) from None
    if not costs.isfinite().all():
        raise ValueError("costs: expected finite numbers, got NaN or infinity")
    queries, objects = linear_sum_assignment(costs.detach().cpu().numpy())
    return torch.from_numpy(queries), torch.from_numpy(objects)


def match(
    predictions: Predictions,
    targets: Sequence[Target],
    *,
    box_weight: float = 5.0,
    giou_weight: float = 2.0,
) -> list[tuple[Int[Tensor, " matched"], Int[Tensor, " matched"]]]:
    """Match the queries of every picture with its objects.

    What a query costs an object is minus the probability of the object's class, plus ``box_weight``
    times the sum of the differences of their four box numbers, minus ``giou_weight`` times their
    generalised IoU.

    Args:
        predictions: What a :class:`DETR` returned; the last decoder layer counts.
        targets: The objects of each picture.
        box_weight: Weight of the differences.
        giou_weight: Weight of the generalised IoU.

    Returns:
        For each picture, what :func:`assign` returns: the queries chosen and the object of each.

    Raises:
        ModuleNotFoundError: scipy is not installed.
        TypeError: ``targets`` are no :class:`Target`.
        ValueError: There are not as many targets as pictures; a label is not that of a class; a box
            is not (cx, cy, w, h) from 0 to 1, or reaches out of the picture by more than a tenth of
            it; or predictions are not finite. The message names the picture.

    Warns:
        UserWarning: A picture has more objects than there are queries; some are left out.

    Source: Carion et al. (2020), section 3.1, equation 1, and section A.2.
    """
    labels, target_boxes = _require_targets(predictions.logits, targets)
    logits, boxes = _widen(predictions.logits, predictions.boxes)
    return _match(logits, boxes, labels, target_boxes, box_weight, giou_weight)


def _widen(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Turn half precision to float32, in which losses are summed and compared."""
    return tuple(tensor.to(torch.promote_types(tensor.dtype, torch.float32)) for tensor in tensors)


@torch.no_grad()
def _match(
    logits: Float[Tensor, "batch queries outputs"],
    boxes: Float[Tensor, "batch queries 4"],
    labels: Sequence[Tensor],
    target_boxes: Sequence[Tensor],
    box_weight: float,
    giou_weight: float,
) -> list[tuple[Tensor, Tensor]]:
    """Match one decoder layer's queries; the costs of all pictures come from one computation."""
    _require_finite(logits, boxes)
    if not labels:
        return []
    # Pictures have different numbers of objects: pad them, and cut the padding's costs off.
    classes = nn.utils.rnn.pad_sequence(list(labels), batch_first=True)
    objects = nn.utils.rnn.pad_sequence(list(target_boxes), batch_first=True)[:, None]
    probabilities = logits.softmax(dim=-1)
    index = classes[:, None].expand(-1, logits.shape[1], -1)
    found = boxes[:, :, None]
    costs = (found - objects).abs().sum(dim=-1) * box_weight
    costs -= generalized_iou(to_corners(found), to_corners(objects)) * giou_weight
    costs -= probabilities.gather(-1, index)
    return [
        assign(of_picture[:, : len(its_labels)])
        for of_picture, its_labels in zip(costs.cpu(), labels, strict=True)
    ]


def _require_finite(logits: Tensor, boxes: Tensor) -> None:
    finite = logits.isfinite().all(dim=-1) & boxes.isfinite().all(dim=-1)
    if not finite.all():
        picture = int((~finite).nonzero()[0, -2])
        raise ValueError(
            f"predictions: NaN or infinity for picture {picture} of the batch; has training "
            "diverged (lower the learning rate, clip gradients), or are the pixels not finite?"
        )


def _require_targets(
    logits: Tensor, targets: Sequence[Target]
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the labels and boxes of every picture on the predictions' device."""
    if any(not isinstance(target, Target) for target in targets):
        raise TypeError("targets: expected a Target for each picture")
    if len(targets) != len(logits):
        raise ValueError(f"targets: expected {len(logits)}, one a picture, got {len(targets)}")
    labels = [target.labels.to(logits.device, torch.int64) for target in targets]
    wide = torch.promote_types(logits.dtype, torch.float32)
    boxes = [target.boxes.to(logits.device, wide) for target in targets]
    if not targets:
        return labels, boxes
    n_queries, n_classes = logits.shape[1], logits.shape[2] - 1
    if (most := max(map(len, labels))) > n_queries:
        warnings.warn(
            f"targets: expected at most {n_queries} objects in a picture, as there are queries, "
            f"got {most}: the rest is left out",
            stacklevel=3,
        )
    every, places = torch.cat(labels), torch.cat(boxes)
    if not ((every >= 0) & (every < n_classes)).all():
        for picture, of_picture in enumerate(labels):
            for label in of_picture.tolist():
                if not 0 <= label < n_classes:
                    raise ValueError(
                        f"targets: label {label} in picture {picture} is none of {n_classes} "
                        f"classes, 0 to {n_classes - 1}"
                    )
    if not _are_centres(places).all():
        for picture, of_picture in enumerate(boxes):
            for box in of_picture:
                if not _are_centres(box):
                    raise ValueError(
                        f"targets: box {[round(x, 3) for x in box.tolist()]} in picture {picture} "
                        "is not (cx, cy, w, h) in shares of the picture, 0 to 1, and inside it: "
                        "to_centres turns corners, and pixels are divided by the picture's "
                        "width and height"
                    )
    return labels, boxes


def _are_centres(boxes: Float[Tensor, "*batch 4"]) -> Bool[Tensor, "*batch"]:
    """Say which boxes lie in the picture, as corners taken for centres seldom do; NaN never."""
    corners = to_corners(boxes)
    # Room for rounding, and at the edges for annotators who draw a little past the picture.
    are_shares = (boxes >= -1e-3) & (boxes <= 1 + 1e-3)
    lie_inside = (corners >= -0.1) & (corners <= 1 + 0.1)
    return (are_shares & lie_inside).all(dim=-1)


def set_loss(
    predictions: Predictions,
    targets: Sequence[Target],
    *,
    box_weight: float = 5.0,
    giou_weight: float = 2.0,
    no_object_weight: float = 0.1,
) -> dict[str, Tensor]:
    """Compute the loss between sets of predictions and of objects, for every decoder layer.

    Args:
        predictions: What a :class:`DETR` returned.
        targets: The objects of each picture.
        box_weight: Weight of the boxes' differences, in the matching and in the loss.
        giou_weight: Weight of the generalised IoU, in both as well.
        no_object_weight: Weight of "no object" among the classes.

    Returns:
        A dictionary of scalars, in float32 for half precision.

        - "loss": "loss_ce" + ``box_weight`` · "loss_bbox" + ``giou_weight`` · "loss_giou", summed
          over the decoder layers. The rest is for reading.
        - "loss_ce": cross-entropy in nats, the weighted mean over all queries.
        - "loss_bbox": sum of the four differences, "loss_giou": 1 − generalised IoU; both summed
          over the matched queries and divided by the number of objects in the batch, at least 1.
        - "loss_ce_0" and so on: the same of the earlier decoder layers, the first being 0.
        - "class_error": percentage of the *matched* queries whose most probable output is another
          than their object's class. With few objects in a batch it jumps; it is left out when
          there is none.

        Without objects in the batch the two losses of boxes are 0, and the gradient teaches
        "no object". An empty batch has a loss of 0.

    Raises:
        ModuleNotFoundError: scipy is not installed.
        TypeError: ``targets`` are no :class:`Target`.
        ValueError: As for :func:`match`.

    Warns:
        UserWarning: A picture has more objects than there are queries; some are left out.

    Source: Carion et al. (2020), section 3.1, equation 2, section A.2, and section 3.2 on auxiliary
    losses.
    """
    labels, target_boxes = _require_targets(predictions.logits, targets)
    n_objects = max(1, sum(map(len, labels)))
    layers = [*predictions.auxiliary, (predictions.logits, predictions.boxes)]
    losses: dict[str, Tensor] = {}
    totals = []
    for number, layer in enumerate(layers):
        logits, boxes = _widen(*layer)
        pairs = _match(logits, boxes, labels, target_boxes, box_weight, giou_weight)
        picture, query, label, box = _wanted(pairs, labels, target_boxes, logits)
        found = boxes[picture, query]
        parts = {
            "loss_ce": _class_loss(logits, picture, query, label, no_object_weight),
            "loss_bbox": (found - box).abs().sum() / n_objects,
            "loss_giou": (1 - generalized_iou(to_corners(found), to_corners(box))).sum()
            / n_objects,
        }
        weights = (1, box_weight, giou_weight)
        totals += [w * part for w, part in zip(weights, parts.values(), strict=True)]
        is_last = number == len(layers) - 1
        losses |= parts if is_last else {f"{name}_{number}": p for name, p in parts.items()}
        if is_last and len(label):
            wrong = logits[picture, query].argmax(dim=-1) != label
            losses["class_error"] = 100 * wrong.float().mean()
    return {"loss": torch.stack(totals).sum()} | losses


def _wanted(
    pairs: Sequence[tuple[Tensor, Tensor]],
    labels: Sequence[Tensor],
    target_boxes: Sequence[Tensor],
    logits: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return for every pair of the batch the picture, the query, and the label and box wanted."""
    none = torch.zeros(0, dtype=torch.int64)  # an empty batch has nothing to concatenate
    picture = [torch.full_like(queries, number) for number, (queries, _) in enumerate(pairs)]
    query = [queries for queries, _ in pairs]
    label = [of_picture[o] for of_picture, (_, o) in zip(labels, pairs, strict=True)]
    box = [of_picture[o] for of_picture, (_, o) in zip(target_boxes, pairs, strict=True)]
    return (
        torch.cat([none, *picture]).to(logits.device),
        torch.cat([none, *query]).to(logits.device),
        torch.cat([none.to(logits.device), *label]),
        torch.cat([logits.new_zeros(0, 4), *box]),
    )


def _class_loss(
    logits: Tensor, picture: Tensor, query: Tensor, label: Tensor, no_object_weight: float
) -> Tensor:
    """Return the weighted mean of the cross-entropy over all queries of the batch."""
    no_object = logits.shape[-1] - 1
    classes = label.new_full(logits.shape[:2], no_object)
    classes[picture, query] = label
    weight = logits.new_ones(no_object + 1)
    weight[no_object] = no_object_weight
    entropy = F.cross_entropy(logits.flatten(0, 1), classes.flatten(), weight, reduction="sum")
    total = weight[classes].sum()
    return entropy / total.where(total > 0, 1)  # an empty batch has a loss of 0


class Pixels(NamedTuple):
    """A batch as :class:`DETR` takes it: ``model(*pixels)``.

    Attributes:
        pixels: Normalised pictures, 0 in the padding: (batch, 3, height, width), float32.
        pixel_mask: True on real pixels: (batch, height, width).
    """

    pixels: Float[Tensor, "batch 3 height width"]
    pixel_mask: Bool[Tensor, "batch height width"]


@dataclass(frozen=True)
class ImageProcessor:
    """Turns pictures into the pixels that a :class:`DETR` takes.

    Attributes:
        shortest_edge: Pixels of the shorter edge after resizing.
        longest_edge: Pixels that the longer edge may have at most, up to rounding; where it would
            get more, the shorter gets fewer.
        mean: Subtracted from red, green and blue, which run from 0 to 1.
        std: What they are divided by then.

    Raises:
        TypeError: A field has another type than declared.
        ValueError: A size is below 1, or a colour is divided by 0.
    """

    shortest_edge: int = 800
    longest_edge: int = 1333
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)

    def __post_init__(self) -> None:
        """Refuse what cannot be, naming the field."""
        require_fields(self)
        for name in ("shortest_edge", "longest_edge"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: expected 1 or more, got {getattr(self, name)}")
        for name in ("mean", "std"):
            colours = getattr(self, name)
            if type(colours) is not tuple or [type(colour) for colour in colours] != [float] * 3:
                raise TypeError(f"{name}: expected a tuple of three float, got {colours!r}")
        if not all(colour > 0 for colour in self.std):
            raise ValueError(f"std: expected numbers above 0, got {self.std}")

    def __call__(self, images: Sequence[Image.Image]) -> Pixels:
        """Resize, normalise and pad pictures.

        Args:
            images: Pictures in mode "RGB".

        Raises:
            TypeError: What came are no Pillow pictures.
            ValueError: There is no picture, or one is empty or of another mode; which one is said.
        """
        if isinstance(images, Image.Image):
            raise TypeError("images: expected several pictures, got one; put it into a list")
        pictures = [self._picture(number, image) for number, image in enumerate(images)]
        if not pictures:
            raise ValueError("images: expected at least one picture, got none")
        height, width = (max(p.shape[axis] for p in pictures) for axis in (1, 2))
        pixels = torch.zeros(len(pictures), 3, height, width)
        pixel_mask = torch.zeros(len(pictures), height, width, dtype=torch.bool)
        for number, picture in enumerate(pictures):
            rows, columns = picture.shape[1:]
            pixels[number, :, :rows, :columns] = picture
            pixel_mask[number, :rows, :columns] = True
        return Pixels(pixels, pixel_mask)

    def resized(self, width: int, height: int) -> tuple[int, int]:
        """Return the width and height that a picture of these gets; neither is below 1."""
        edge: float = self.shortest_edge
        if max(width, height) / min(width, height) * edge > self.longest_edge:
            edge = self.longest_edge * min(width, height) / max(width, height)
        if min(width, height) == round(edge):
            return width, height
        shorter = max(1, round(edge))
        longer = max(1, int(edge * max(width, height) / min(width, height)))
        return (shorter, longer) if width < height else (longer, shorter)

    def _picture(self, number: int, image: Image.Image) -> Tensor:
        if not isinstance(image, Image.Image):
            raise TypeError(f"images: expected Pillow pictures, got {type(image).__name__}")
        if image.mode != "RGB" or 0 in image.size:
            raise ValueError(
                f"images: picture {number} has mode {image.mode!r} and size {image.size}, expected "
                'mode "RGB" and one pixel or more; image.convert("RGB") turns most others'
            )
        image = image.resize(self.resized(*image.size), Image.Resampling.BILINEAR)
        data = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
        colours = data.view(image.height, image.width, 3).permute(2, 0, 1)
        mean, std = (torch.tensor(numbers)[:, None, None] for numbers in (self.mean, self.std))
        return (colours / 255 - mean) / std

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write ``preprocessor_config.json``, as transformers has it, into ``folder``."""
        published = {
            "image_processor_type": "DetrImageProcessor",
            "do_resize": True,
            "size": {"shortest_edge": self.shortest_edge, "longest_edge": self.longest_edge},
            "resample": int(Image.Resampling.BILINEAR),
            "do_rescale": True,
            "rescale_factor": 1 / 255,
            "do_normalize": True,
            "image_mean": self.mean,
            "image_std": self.std,
            "do_pad": True,
            "format": "coco_detection",
        }
        _write(Path(folder) / "preprocessor_config.json", published)

    @classmethod
    def from_pretrained(cls, name: str | os.PathLike[str]) -> "ImageProcessor":
        """Read the ``preprocessor_config.json`` of a model.

        Args:
            name: A folder, or a name on the hub such as "facebook/detr-resnet-50".

        Raises:
            FileNotFoundError: There is no such model, or no such file.
            ValueError: The file is damaged, or asks for what this class does not do.
        """
        published = _read(name, "preprocessor_config.json")
        for key in ("do_resize", "do_rescale", "do_normalize", "do_pad"):
            if published.get(key, True) is not True:
                raise ValueError(f"{key}: expected true in preprocessor_config.json")
        for key, expected in (("resample", 2), ("rescale_factor", 1 / 255), ("pad_size", None)):
            if published.get(key, expected) != expected:
                raise ValueError(
                    f"{key}: expected {expected} in preprocessor_config.json, got {published[key]}"
                )
        size = published.get("size", {"shortest_edge": 800, "longest_edge": 1333})
        if isinstance(size, int):  # as published first
            size = {"shortest_edge": size, "longest_edge": published.get("max_size", 1333)}
        if not isinstance(size, dict) or size.keys() != {"shortest_edge", "longest_edge"}:
            raise ValueError(
                "size: expected shortest_edge and longest_edge in preprocessor_config.json, "
                f"got {size}"
            )
        try:
            colours: dict[str, Any] = {
                ours: tuple(map(float, published[its]))
                for ours, its in (("mean", "image_mean"), ("std", "image_std"))
                if its in published
            }
            return cls(**size, **colours)
        except TypeError as error:
            raise ValueError(f"preprocessor_config.json: wrong type: {error}") from None


def _write(file: Path, content: dict[str, Any]) -> None:
    """Write a JSON file in one step."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(file.name + ".part")
    part.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(file)


def _read(name: str | os.PathLike[str], file: str) -> dict[str, Any]:
    """Read a JSON file of a model in a folder or on the hub."""
    path = find_published(name) / file
    if not path.is_file():
        raise FileNotFoundError(f"name: no {file} in {path.parent}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"name: {path} is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"name: {path} is no JSON object")
    return content


class Detections(NamedTuple):
    """What was found in a picture, in the order of the queries.

    Attributes:
        scores: Probability of the class: (found,).
        labels: Class ids: (found,).
        boxes: (xmin, ymin, xmax, ymax) in pixels of the picture: (found, 4). They may reach a
            little beyond its edges.
    """

    scores: Float[Tensor, " found"]
    labels: Int[Tensor, " found"]
    boxes: Float[Tensor, "found 4"]


def postprocess(
    predictions: Predictions, sizes: Sequence[tuple[int, int]], *, threshold: float = 0.5
) -> list[Detections]:
    """Read detections off predictions.

    Each query tells of its most probable class, and never of "no object", the last output; any
    other id may be found, the first too.

    Args:
        predictions: What a :class:`DETR` returned.
        sizes: (width, height) of each picture as it was before it was resized and padded: Pillow's
            ``image.size``.
        threshold: Only scores *above* it count, so that 0 keeps every query and 1 none.

    Returns:
        The detections in each picture. Half precision is computed in float32. A NaN is not above
        the threshold.

    Raises:
        ValueError: There are not as many sizes as pictures, or ``threshold`` is no probability.
    """
    logits, boxes = predictions.logits, predictions.boxes
    if len(sizes) != len(logits):
        raise ValueError(f"sizes: expected {len(logits)}, one a picture, got {len(sizes)}")
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold: expected a probability from 0 to 1, got {threshold}")
    wide = torch.promote_types(logits.dtype, torch.float32)
    scores, labels = logits.to(wide).softmax(dim=-1)[..., :-1].max(dim=-1)
    scale = boxes.new_tensor([[*size, *size] for size in sizes], dtype=wide).view(-1, 1, 4)
    corners = to_corners(boxes.to(wide)) * scale
    return [
        Detections(scores[number][kept], labels[number][kept], corners[number][kept])
        for number, kept in enumerate(scores > threshold)
    ]


_RESNETS: dict[str, dict[str, Any]] = {
    "resnet18": {"block": "basic", "depths": (2, 2, 2, 2), "widths": (64, 128, 256, 512)},
    "resnet34": {"block": "basic", "depths": (3, 4, 6, 3), "widths": (64, 128, 256, 512)},
    "resnet50": {"depths": (3, 4, 6, 3)},
    "resnet101": {"depths": (3, 4, 23, 3)},
    "resnet152": {"depths": (3, 8, 36, 3)},
}
_BACKBONE = "model.backbone.conv_encoder.model."


def config_from_published(published: Mapping[str, Any]) -> DETRConfig:
    """Read the ``config.json`` of a DETR that transformers saved.

    Batch normalisation is frozen, as it is there.

    Raises:
        ValueError: An entry is missing, or asks for what a :class:`DETR` is not.
    """
    if (kind := published.get("model_type")) != "detr":
        raise ValueError(f"published: expected a model of the kind detr, got {kind}")
    try:
        return _config_of(published)
    except (AttributeError, TypeError) as error:  # an entry of another type
        raise ValueError(f"published: an entry cannot be read: {error}") from None


def _config_of(published: Mapping[str, Any]) -> DETRConfig:
    def entry(name: str, *default: Any) -> Any:
        if name not in published and not default:
            raise ValueError(f"published: expected an entry {name!r}")
        return published.get(name, *default)

    for name, expected in (("position_embedding_type", "sine"), ("dilation", False)):
        if entry(name, expected) not in (expected, None):
            raise ValueError(f"published: expected {name} = {expected}, got {published[name]}")
    sizes = {}
    for ours, part in (("n_heads", "attention_heads"), ("d_ff", "ffn_dim")):
        encoder, decoder = entry(f"encoder_{part}", None), entry(f"decoder_{part}", None)
        if encoder != decoder:
            raise ValueError(
                f"published: expected one {part} for both stacks, got {encoder} and {decoder}"
            )
        if encoder is not None:
            sizes[ours] = encoder
    for ours, name in (
        ("d_model", "d_model"),
        ("n_encoder_layers", "encoder_layers"),
        ("n_decoder_layers", "decoder_layers"),
        ("n_queries", "num_queries"),
        ("dropout", "dropout"),
        ("attention_dropout", "attention_dropout"),
        ("feed_forward_dropout", "activation_dropout"),
        ("norm_between_layers", "auxiliary_loss"),
    ):
        if name in published:
            sizes[ours] = published[name]
    activation = entry("activation_function", "relu")
    # Left out of the file where it has two classes without names.
    unnamed = {str(number): f"LABEL_{number}" for number in range(entry("num_labels", 2))}
    named = entry("id2label", unnamed)
    if not all(re.fullmatch(r"\d+", str(id_)) for id_ in named):
        raise ValueError(f"published: expected numbers as keys of id2label, got {list(named)}")
    return DETRConfig(
        labels=_label_names({int(id_): name for id_, name in named.items()}),
        backbone=_published_backbone(published),
        activation="swish" if activation == "silu" else activation,
        masked_backbone=entry("masked_backbone", False),
        **sizes,
    )


def _published_backbone(published: Mapping[str, Any]) -> ResNetConfig:
    given = published.get("backbone_config") or {}
    if given.get("model_type", "timm_backbone") == "timm_backbone":
        name = given.get("backbone") or published.get("backbone") or "resnet50"
        if name not in _RESNETS:
            raise ValueError(f"published: expected a backbone of {list(_RESNETS)}, got {name}")
        return ResNetConfig(**_RESNETS[name], frozen_norm=True)
    depths = given.get("depths", (3, 4, 6, 3))
    for name, expected in (
        ("model_type", "resnet"),
        ("num_channels", 3),
        ("hidden_act", "relu"),
        ("downsample_in_first_stage", False),
        ("downsample_in_bottleneck", False),
        ("out_features", [f"stage{len(depths)}"]),
    ):
        if given.get(name) not in (None, expected):
            raise ValueError(
                f"published: expected {name} = {expected} for the backbone, got {given[name]}"
            )
    return ResNetConfig(
        depths=tuple(depths),
        widths=tuple(given.get("hidden_sizes", (256, 512, 1024, 2048))),
        stem_width=given.get("embedding_size", 64),
        block=given.get("layer_type", "bottleneck"),
        frozen_norm=True,
    )


def config_to_published(config: DETRConfig) -> dict[str, Any]:
    """Return what transformers has in ``config.json`` for such a model."""
    labels, backbone = _label_names(config.labels), config.backbone
    return {
        "architectures": ["DetrForObjectDetection"],
        "model_type": "detr",
        "use_timm_backbone": False,
        "use_pretrained_backbone": False,
        "backbone": None,
        "backbone_config": {
            "model_type": "resnet",
            "num_channels": 3,
            "embedding_size": backbone.stem_width,
            "hidden_sizes": backbone.widths,
            "depths": backbone.depths,
            "layer_type": backbone.block,
            "hidden_act": "relu",
            "downsample_in_first_stage": False,
            "downsample_in_bottleneck": False,
            "out_features": [f"stage{len(backbone.depths)}"],
        },
        "num_queries": config.n_queries,
        "d_model": config.d_model,
        "encoder_layers": config.n_encoder_layers,
        "decoder_layers": config.n_decoder_layers,
        "encoder_attention_heads": config.n_heads,
        "decoder_attention_heads": config.n_heads,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.d_ff,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.feed_forward_dropout,
        "activation_function": "silu" if config.activation == "swish" else config.activation,
        "position_embedding_type": "sine",
        "auxiliary_loss": config.norm_between_layers,
        "masked_backbone": config.masked_backbone,
        "id2label": {str(number): name for number, name in enumerate(labels)},
        "label2id": {name: number for number, name in enumerate(labels)},
    }


_RENAMED = (
    (r"^queries$", "model.query_position_embeddings.weight"),
    (r"^projection\.", "model.input_projection."),
    (r"^class_head\.", "class_labels_classifier."),
    (r"^box_head\.(\d)\.", lambda found: f"bbox_predictor.layers.{int(found[1]) // 2}."),
    (r"^decoder\.final_norm\.", "model.decoder.layernorm."),
    (r"^(en|de)coder\.layers\.", r"model.\1coder.layers."),
    (r"\.self_attention(_norm\.norm)?\.", r".self_attn\1."),
    (r"\.cross_attention(_norm\.norm)?\.", r".encoder_attn\1."),
    (r"\.feed_forward_norm\.norm\.", ".final_layer_norm."),
    (r"_norm\.norm\.", "_layer_norm."),
    (r"\.(query|key|value)_projection\.", lambda found: f".{found[1][0]}_proj."),
    (r"\.output_projection\.", ".out_proj."),
    (r"\.feed_forward\.inner\.", ".fc1."),
    (r"\.feed_forward\.outer\.", ".fc2."),
    (r"\.gain$", ".weight"),
    (r"\.mean$", ".running_mean"),
    (r"\.variance$", ".running_var"),
)
_RENAMED_BACKBONE = (
    (r"^backbone\.stem\.", _BACKBONE + "embedder.embedder."),
    (r"^backbone\.stages\.(\d+)\.(\d+)\.", _BACKBONE + r"encoder.stages.\1.layers.\2."),
    (r"\.layers\.(\d+)\.(convolution|norm)\.", r".layer.\1.\2."),
    (r"\.norm\.", ".normalization."),
)
_RENAMED_TIMM = (
    (r"^backbone\.stem\.convolution\.", _BACKBONE + "conv1."),
    (r"^backbone\.stem\.norm\.", _BACKBONE + "bn1."),
    (
        r"^backbone\.stages\.(\d+)\.(\d+)\.",
        lambda found: f"{_BACKBONE}layer{int(found[1]) + 1}.{found[2]}.",
    ),
    (r"\.layers\.(\d+)\.convolution\.", lambda found: f".conv{int(found[1]) + 1}."),
    (r"\.layers\.(\d+)\.norm\.", lambda found: f".bn{int(found[1]) + 1}."),
    (r"\.shortcut\.convolution\.", ".downsample.0."),
    (r"\.shortcut\.norm\.", ".downsample.1."),
)


def published_name(name: str, *, timm: bool = False) -> str:
    """Return what a tensor of a :class:`DETR` is called in a file that transformers saved.

    Args:
        name: Its name in the model's state.
        timm: Whether the backbone's names are those of timm, as in the models published first.
    """
    rules: Sequence[tuple[str, Any]] = _RENAMED
    if name.startswith("backbone."):
        rules = (*(_RENAMED_TIMM if timm else _RENAMED_BACKBONE), *_RENAMED)
    for pattern, replacement in rules:
        name = re.sub(pattern, replacement, name)
    return name


def _save_detr(model: DETR, folder: str | os.PathLike[str]) -> None:
    folder = Path(folder)
    _write(folder / "config.json", config_to_published(model.config))
    state = {published_name(name): value.contiguous() for name, value in model.state_dict().items()}
    part = folder / "model.safetensors.part"
    save_file(state, part, metadata={"format": "pt"})
    part.replace(part.with_suffix(""))


def _load_detr(
    name: str | os.PathLike[str], labels: Sequence[str] | Mapping[int, str] | None
) -> DETR:
    folder = find_published(name)
    config = config_from_published(_read(folder, "config.json"))
    file = folder / "model.safetensors"
    if not file.is_file():
        pickled = "; pickled weights are not read" if any(folder.glob("*.bin")) else ""
        raise FileNotFoundError(f"name: no model.safetensors in {folder}{pickled}")
    state = {
        name: tensor
        for name, tensor in read_tensors(file).items()
        if not name.endswith(".num_batches_tracked")  # of no use with fixed statistics
    }
    outputs = len(state.get(published_name("class_head.bias"), ()))
    named = _label_names(config.labels) if outputs == len(config.labels) + 1 else ()
    if labels is not None:
        model = DETR(replace(config, labels=_label_names(labels)))
        _refit_head(model, state, named)
    elif named or not outputs:
        model = DETR(config)
    else:
        raise ValueError(
            f'class_head: config.json has {len(config.labels)} labels, which with "no object" are '
            f"{len(config.labels) + 1} outputs, but model.safetensors has {outputs}; with "
            "labels=[…] everything but the head is loaded"
        )
    timm = f"{_BACKBONE}conv1.weight" in state
    ours = {published_name(name, timm=timm): name for name in model.state_dict()}
    require_state(model, {ours.get(name, name): tensor for name, tensor in state.items()})
    model.load_state_dict({ours[name]: tensor for name, tensor in state.items()})
    return model.eval()


def _refit_head(model: DETR, state: dict[str, Tensor], named: Sequence[str]) -> None:
    """Make the file's class head one for the model's labels, and report what starts anew.

    Args:
        model: A new model, whose labels are wanted.
        state: Tensors under their published names; the head is replaced.
        named: The labels of the file's head, none if that is unknown.
    """
    wanted = _label_names(model.config.labels)
    kept = [row for row, label in enumerate(wanted) if label in named]
    for ours in ("class_head.weight", "class_head.bias"):
        fresh = model.state_dict()[ours].clone()
        old = state.get(published_name(ours), fresh)
        if named and old.shape[1:] == fresh.shape[1:]:
            fresh[kept] = old[[named.index(wanted[row]) for row in kept]].to(fresh.dtype)
            fresh[-1] = old[-1].to(fresh.dtype)  # no object
        state[published_name(ours)] = fresh
    anew = [label for label in wanted if label not in named]
    lost = [label for label in named if label not in wanted]
    if anew or lost:
        warnings.warn(
            f"labels: all is loaded but the rows of class_head for {', '.join(anew) or 'nothing'}, "
            f"which start anew; the file's rows for {', '.join(lost) or 'nothing'} are left out"
            if named
            else "labels: all is loaded but class_head, which starts anew",
            stacklevel=4,
        )


class _ForDetection(DETR):
    """A model without batch normalisation, which no published layout has."""

    def save_pretrained(self, folder: object) -> NoReturn:
        raise TypeError(
            "model: what for_detection returned cannot be saved; save the model it was made from"
        )


def for_detection(model: DETR) -> DETR:
    """Return a copy of a model, in evaluation mode, that computes the same in less time.

    Batch normalisation is folded into the convolutions, and their weights lie channels last.
    Results agree up to rounding. The copy cannot be trained or saved.

    Args:
        model: Any model; it is left as it is.
    """
    fast = copy.deepcopy(model).eval().requires_grad_(False)
    if isinstance(model, _ForDetection):
        return fast
    for module in fast.modules():
        if isinstance(module, _Convolution):
            convolution, norm = module.convolution, module.norm
            scale = norm.gain / (norm.variance + norm.eps).sqrt()
            weight = convolution.weight * scale[:, None, None, None]
            convolution.weight = _fixed(weight.contiguous(memory_format=torch.channels_last))
            convolution.bias = _fixed(norm.bias - norm.mean * scale)
            module.norm = nn.Identity()  # type: ignore[assignment]
    fast.__class__ = _ForDetection
    return fast


def _fixed(tensor: Tensor) -> nn.Parameter:
    return nn.Parameter(tensor, requires_grad=False)


@runtime_checkable
class LabelledImage(Protocol):
    """A picture and what is in it, such as a scene of ``transformer_lib.datasets.scenes``."""

    @property
    def image(self) -> Image.Image:
        """The picture, in mode "RGB"."""

    @property
    def boxes(self) -> Sequence[tuple[float, float, float, float]]:
        """The box (xmin, ymin, xmax, ymax) of every object, in pixels."""

    @property
    def labels(self) -> Sequence[str]:
        """The name of every object's class."""


def evaluate(
    model: DETR,
    processor: ImageProcessor,
    dataset: Sequence[LabelledImage],
    *,
    batch_size: int = 8,
) -> dict[str, float]:
    """Score a detector by COCO's average precision.

    Args:
        model: The detector; it is put into evaluation mode meanwhile.
        processor: What makes its pixels.
        dataset: Pictures with the boxes and labels of their objects.
        batch_size: Pictures at a time.

    Returns:
        "AP" (the mean over IoU 0.5, 0.55 … 0.95), "AP50" and "AP75", from 0 to 1, over the 100
        surest detections a picture, and "AP_small", "AP_medium" and "AP_large" for objects of up to
        32², up to 96² and more square pixels. Sizes that no object has are left out.

    Raises:
        ModuleNotFoundError: faster-coco-eval is not installed.
        TypeError: ``model`` is no module, or ``dataset`` has no length.
        ValueError: There are no objects, a label is unknown to the model, a picture has not as
            many boxes as labels, or a box is not inside of it; the message says which picture. Or
            no box reaches beyond the first pixel, the model's predictions are not finite, or
            ``batch_size`` is below 1.

    Source: Lin et al. (2014), and the evaluation code that goes with it.
    """
    try:
        from faster_coco_eval import COCO, COCOeval_faster
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "scoring needs faster-coco-eval: pip install 'building-the-transformer[detection]'"
        ) from None
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: expected a DETR, got {type(model).__name__}")
    require_dataset("dataset", dataset)
    if batch_size < 1:
        raise ValueError(f"batch_size: expected 1 or more, got {batch_size}")
    truth = _as_coco(dataset, _label_names(model.config.labels))
    found: list[dict[str, Any]] = []
    training = model.training
    model.eval()
    try:
        for first in range(0, len(dataset), batch_size):
            last = min(first + batch_size, len(dataset))
            images = [dataset[number].image for number in range(first, last)]
            for number, detections in enumerate(_detect(model, processor, images), start=first):
                boxes = detections.boxes.tolist()
                scores, labels = detections.scores.tolist(), detections.labels.tolist()
                for (x0, y0, x1, y1), score, label in zip(boxes, scores, labels, strict=True):
                    box = [x0, y0, x1 - x0, y1 - y0]
                    found.append(
                        {"image_id": number, "category_id": label, "bbox": box, "score": score}
                    )
    finally:
        model.train(training)
    expected = COCO(truth)
    scorer = COCOeval_faster(expected, expected.loadRes(found), "bbox")
    scorer.evaluate()
    scorer.accumulate()
    scorer.summarize()
    names = ("AP", "AP50", "AP75", "AP_small", "AP_medium", "AP_large")
    averages = zip(names, map(float, scorer.stats), strict=False)
    return {name: average for name, average in averages if average >= 0}  # −1: no such object


@torch.inference_mode()
def _detect(
    model: DETR, processor: ImageProcessor, images: Sequence[Image.Image]
) -> list[Detections]:
    pixels, pixel_mask = processor(images)
    queries = model.queries
    predictions = model(pixels.to(queries), pixel_mask.to(queries.device))
    _require_finite(predictions.logits, predictions.boxes)
    return postprocess(predictions, [image.size for image in images], threshold=0.0)


def _as_coco(dataset: Sequence[LabelledImage], labels: Sequence[str]) -> dict[str, Any]:
    """Return the objects in the form that COCO's evaluation takes."""
    categories = [{"id": number, "name": name} for number, name in enumerate(labels)]
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    greatest = 0.0
    for number in range(len(dataset)):
        item = dataset[number]
        if len(item.boxes) != len(item.labels):
            raise ValueError(
                f"dataset: picture {number} has {len(item.boxes)} boxes, but "
                f"{len(item.labels)} labels"
            )
        width, height = item.image.size  # once: a picture may be read anew each time
        images.append({"id": number, "width": width, "height": height})
        where = f"dataset: picture {number}"
        for box, label in zip(item.boxes, item.labels, strict=True):
            x0, y0, x1, y1 = require_corners(where, box, (width, height))
            greatest = max(greatest, x1, y1)
            if label not in labels:
                raise ValueError(f"dataset: label {label!r} in picture {number} is not the model's")
            annotations.append(
                {
                    "id": len(annotations) + 1,  # 0 would count as not found
                    "image_id": number,
                    "category_id": labels.index(label),
                    "bbox": [x0, y0, x1 - x0, y1 - y0],
                    "area": (x1 - x0) * (y1 - y0),
                    "iscrowd": 0,
                }
            )
    if not annotations:
        raise ValueError("dataset: expected objects to be found, got none")
    require_pixels("dataset", greatest)
    return {"images": images, "annotations": annotations, "categories": categories}
