"""DETR: objects in a picture, found as a set by a Transformer.

Explained in chapter 17, "DETR" (book/17_detr.ipynb). Generated from there by tools/export.py; edit
the notebook.
"""

import copy
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, NoReturn, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib._checks import detection as check
from transformer_lib.detection import published
from transformer_lib.detection.configuration import DETRConfig, label_names
from transformer_lib.detection.resnet import BatchNorm, NormalizedConvolution, ResNet, hide_padding
from transformer_lib.layers import Decoder, Encoder

__all__ = ["DETR", "FoldedDETR", "Predictions", "for_detection", "image_positions"]


def image_positions(
    mask: Bool[Tensor, "batch rows columns"],
    d_model: int,
    *,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "batch rows columns d_model"]:
    """Return the sinusoids of both coordinates of every place, side by side.

    Rows and columns of real places are counted from 1 and scaled so that the last is at 2π; so is
    padding after it, and where a whole row or column is padding, it is at 0. The first half of the
    result's columns belongs to the row and the second to the column; pair i of either holds the
    sine and cosine of the angle coordinate / 10000^(2i / (d_model / 2)).

    Args:
        mask: True on real places, which lie top left.
        d_model: Width of the vectors; a multiple of 4.
        dtype: Type of the result; half precision is computed in float32 and rounded once.

    Source: Parmar et al. (2018), section 3.1; Carion et al. (2020), section A.4.
    """
    check.image_positions(mask, d_model)
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


class Predictions(NamedTuple):
    """What a :class:`DETR` makes of a batch of pictures."""

    logits: Float[Tensor, "batch queries outputs"]
    """Scores of every class, and last of "no object", before the softmax."""
    boxes: Float[Tensor, "batch queries 4"]
    """Centre, width and height (cx, cy, w, h) from 0 to 1, as shares of the real picture's."""
    auxiliary: tuple[
        tuple[Float[Tensor, "batch queries outputs"], Float[Tensor, "batch queries 4"]], ...
    ] = ()
    """Logits and boxes that the heads read after each decoder layer but the last."""


def _hides_nothing(mask: Tensor | None) -> bool:
    """Look at the values of a mask, where there are any: not while compiling, not on "meta"."""
    if mask is None or mask.is_meta or torch.compiler.is_compiling():
        return False
    return bool(mask.all())


class DETR(nn.Module):
    """Finds objects in pictures as a set: one box and class, or "no object", per object query.

    Source: Carion et al. (2020), section 3.2 and figures 2 and 10.
    """

    def __init__(self, config: DETRConfig) -> None:
        super().__init__()
        self.config, d_model = config, config.d_model
        self.backbone = ResNet(config.backbone)
        self.projection = nn.Conv2d(self.backbone.width, d_model, 1)
        same = "d_model n_heads d_ff activation dropout attention_dropout feed_forward_dropout"
        options = {name: getattr(config, name) for name in same.split()}
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
            pixels: Normalised pictures, padded to one size at the right and bottom. What is in the
                padding does not matter; without ``masked_backbone``, how much there is does.
            pixel_mask: True on real pixels, False on padding; by default all are real.
        """
        check.pixels(pixels, pixel_mask)
        if _hides_nothing(pixel_mask):
            pixel_mask = None  # nothing to hide: attention is quicker without a mask
        features, mask = self._features(pixels, pixel_mask)
        x = self.projection(features).flatten(2).transpose(1, 2)
        places = image_positions(mask, self.config.d_model, dtype=x.dtype).flatten(1, 2)
        key_mask = None if pixel_mask is None else mask.flatten(1)
        memory = self.encoder(x, key_mask=key_mask, positions=places)
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
        features = self.backbone(hide_padding(pixels, pixel_mask))
        mask = F.interpolate(pixel_mask[:, None].to(pixels.dtype), features.shape[2:])
        return features, mask[:, 0] > 0

    def _decode(
        self, memory: Tensor, places: Tensor, key_mask: Tensor | None
    ) -> Float[Tensor, "layers batch queries d_model"]:
        """Return the normalised output of every decoder layer."""
        norm = cast("nn.Module", self.decoder.final_norm)
        x = self.queries.new_zeros(len(memory), *self.queries.shape)
        outputs = []
        places_and_mask = {"memory_positions": places, "memory_key_mask": key_mask}
        for layer in self.decoder.layers:
            x = layer(x, memory, causal=False, positions=self.queries[None], **places_and_mask)
            outputs.append(norm(x))
            if self.config.norm_between_layers:
                x = outputs[-1]
        if self.config.norm_between_layers:
            outputs[-1] = norm(x)  # once more, as in transformers
        return torch.stack(outputs)

    def _heads(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Read class logits and boxes off the slots, of all layers at once."""
        return self.class_head(x), self.box_head(x).sigmoid()

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write ``config.json`` and ``model.safetensors``, as transformers has them.

        Its ``DetrForObjectDetection.from_pretrained`` reads the folder, and with the file that
        ``ImageProcessor.save_pretrained`` writes, its ``pipeline("object-detection")`` does.
        It knows no ``masked_backbone``: with that, give it pictures of one size, or one at a time.
        """
        published.write(folder, self.config, self.state_dict())

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        *,
        labels: Sequence[str] | Mapping[int, str] | None = None,
    ) -> "DETR":
        """Read a model that this library or transformers saved, into evaluation mode.

        Its batch normalisation is frozen, as in the paper. Pickled weights are not read.

        Args:
            name: A folder, or a name on the hub such as "facebook/detr-resnet-50".
            labels: Labels that the model is to have instead of its own, to be trained further. All
                is loaded but the rows of the class head for labels that are not among its own; a
                warning says which start anew, and which of its own are left out.
        """
        config, state = published.read(name)
        wanted = config if labels is None else replace(config, labels=labels)
        with torch.device("meta"):  # shapes only: the numbers come from the file
            model = cls(wanted)
        named = label_names(config.labels)
        return published.fill(model, state, named, replace_head=labels is not None).eval()


class FoldedDETR(DETR):
    """What :func:`for_detection` returns: a model to detect with, and for nothing else."""

    def __init__(self, model: DETR) -> None:
        nn.Module.__init__(self)
        self.config = model.config
        copied = copy.deepcopy(model).requires_grad_(False)
        for name, part in copied.named_children():
            self.add_module(name, part)
        self.queries = copied.queries
        for module in self.modules():
            if isinstance(module, NormalizedConvolution):
                _fold(module)
        self.eval()

    def train(self, mode: bool = True) -> "FoldedDETR":
        """Refuse: there is nothing left that could be trained."""
        if mode:
            raise TypeError(
                "model: what for_detection returned cannot be trained; train the model it was "
                "made from"
            )
        return super().train(False)

    def save_pretrained(self, folder: object) -> NoReturn:
        """Refuse: no published layout is without batch normalisation."""
        raise TypeError(
            "model: what for_detection returned cannot be saved; save the model it was made from"
        )


def for_detection(model: DETR) -> DETR:
    """Return a copy of a model, in evaluation mode, that computes the same in less time.

    Batch normalisation is folded into the convolutions, and their weights lie channels last.
    Results agree up to rounding. The copy can be moved, copied and pickled, and neither trained nor
    saved; the model is left as it is.
    """
    return copy.deepcopy(model) if isinstance(model, FoldedDETR) else FoldedDETR(model)


def _fold(layer: NormalizedConvolution) -> None:
    """Put a layer's normalisation into the weight and the bias of its convolution."""
    convolution, norm = layer.convolution, layer.norm
    if isinstance(norm, BatchNorm):
        scale = norm.weight / (norm.running_var + norm.eps).sqrt()
        weight = convolution.weight * scale[:, None, None, None]
        weight = weight.contiguous(memory_format=torch.channels_last)
        bias = norm.bias - norm.running_mean * scale
        convolution.weight = nn.Parameter(weight, requires_grad=False)
        convolution.bias = nn.Parameter(bias, requires_grad=False)
        layer.norm = nn.Identity()
