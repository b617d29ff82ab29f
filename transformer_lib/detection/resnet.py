"""The backbone: a residual network that makes features of pictures.

Explained in chapter 17, "DETR" (book/17_detr.ipynb). Generated from there by tools/export.py; edit
the notebook.
"""

from collections.abc import Sequence
from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib._checks import detection as check
from transformer_lib.detection.configuration import ResNetConfig

__all__ = ["BatchNorm", "NormalizedConvolution", "ResNet", "ResidualBlock", "hide_padding"]


class BatchNorm(nn.BatchNorm2d):
    """Batch normalisation that can be frozen: averages, weight and bias then stay as they are.

    Args:
        channels: Number of channels.
        frozen: Use the running averages in training too, and learn nothing.
        device: Where weights and averages lie.
        dtype: Their type.

    Source: Ioffe and Szegedy (2015), algorithms 1 and 2; frozen: Carion et al. (2020), section 4.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(
        self,
        channels: int,
        *,
        frozen: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(channels, device=device, dtype=dtype)
        self.frozen = frozen
        self.requires_grad_(not frozen).train()

    def train(self, mode: bool = True) -> "BatchNorm":
        """Go into training mode or out of it; a frozen one stays out."""
        return super().train(mode and not self.frozen)


def hide_padding(x: Tensor, mask: Tensor | None) -> Tensor:
    """Set features (batch, channels, height, width) to 0 where a mask of their places is False."""
    return x if mask is None else x.masked_fill(~mask[:, None], 0)


def _shrink(mask: Tensor | None, stride: int) -> Tensor | None:
    return None if mask is None else mask[..., ::stride, ::stride]


class NormalizedConvolution(nn.Module):
    """A convolution without bias, then batch normalisation, which would subtract it again."""

    def __init__(
        self, channels_in: int, channels_out: int, size: int, *, stride: int = 1, frozen: bool
    ) -> None:
        super().__init__()
        self.stride = stride
        self.convolution = nn.Conv2d(
            channels_in, channels_out, size, stride=stride, padding=size // 2, bias=False
        )
        self.norm: nn.Module = BatchNorm(channels_out, frozen=frozen)
        nn.init.kaiming_normal_(self.convolution.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Return what the convolution gives, normalised."""
        return self.norm(self.convolution(x))


class ResidualBlock(nn.Module):
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
        before, frozen = channels_in, config.frozen_norm
        for size, channels, step in layers:
            self.layers.append(
                NormalizedConvolution(before, channels, size, stride=step, frozen=frozen)
            )
            before = channels
        self.shortcut = None
        if channels_in != channels_out or stride != 1:
            self.shortcut = NormalizedConvolution(
                channels_in, channels_out, 1, stride=stride, frozen=frozen
            )

    def forward(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return the features and the mask at their resolution."""
        kept = x if self.shortcut is None else self.shortcut(x)
        *layers, last = cast("Sequence[NormalizedConvolution]", self.layers)
        for layer in layers:
            mask = _shrink(mask, layer.stride)
            x = hide_padding(F.relu(layer(x), inplace=True), mask)
        mask = _shrink(mask, last.stride)
        return hide_padding(F.relu(last(x) + kept, inplace=True), mask), mask


class ResNet(nn.Module):
    """A residual network: pictures to features at a 4th, 8th, 16th … of their height and width.

    The stem is a 7×7 convolution and a 3×3 maximum, each with stride 2; every stage but the first
    halves height and width in its first block, rounding up. A new network's convolutions are drawn
    from N(0, 2 / (channels out · size²)). ``stride`` is the number of pixels to a feature, in
    height and in width, and ``width`` that of the features' channels.

    Source: He et al. (2016), table 1. The stride of a bottleneck is in its 3×3 convolution, where
    PyTorch's and the published DETR's are; initial weights: He et al. (2015), equation 14.
    """

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__()
        self.config = config
        self.stride, self.width = 2 ** (len(config.depths) + 1), config.widths[-1]
        self.stem = NormalizedConvolution(
            3, config.stem_width, 7, stride=2, frozen=config.frozen_norm
        )
        self.stages = nn.ModuleList()
        before = config.stem_width
        for number, (depth, width) in enumerate(zip(config.depths, config.widths, strict=True)):
            blocks = nn.ModuleList()
            for block in range(depth):
                stride = 2 if number > 0 and block == 0 else 1
                blocks.append(ResidualBlock(before, width, stride=stride, config=config))
                before = width
            self.stages.append(blocks)

    def forward(
        self,
        pixels: Float[Tensor, "batch 3 height width"],
        *,
        pixel_mask: Bool[Tensor, "batch height width"] | None = None,
    ) -> Float[Tensor, "batch channels rows columns"]:
        """Return the features of the last stage: (batch, width, ⌈height/stride⌉, ⌈width/stride⌉).

        Args:
            pixels: Normalised pictures.
            pixel_mask: True on real pixels. If given, features of padding are set to 0 between all
                convolutions, which gives each picture the features it has alone.
        """
        check.pixels(pixels, pixel_mask)
        x, mask = hide_padding(pixels, pixel_mask), _shrink(pixel_mask, 2)
        x = hide_padding(F.relu(self.stem(x), inplace=True), mask)
        x, mask = F.max_pool2d(x, 3, stride=2, padding=1), _shrink(mask, 2)
        x = hide_padding(x, mask)
        for blocks in cast("Sequence[nn.ModuleList]", self.stages):
            for block in blocks:
                x, mask = block(x, mask)
        return x
