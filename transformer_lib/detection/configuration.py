"""What determines a detector but its weights.

Explained in chapter 17, "DETR" (book/17_detr.ipynb). Generated from there by tools/export.py; edit
the notebook.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from transformer_lib._checks import detection as check

__all__ = ["DETRConfig", "ResNetConfig", "label_names"]


@dataclass(frozen=True)
class ResNetConfig:
    """Everything that determines a ResNet but its weights; the defaults are ResNet-50."""

    depths: tuple[int, ...] = (3, 4, 6, 3)
    """Blocks in each stage."""
    widths: tuple[int, ...] = (256, 512, 1024, 2048)
    """Channels each stage gives; for a bottleneck, multiples of 4."""
    stem_width: int = 64
    """Channels between the stem and the first stage."""
    block: Literal["basic", "bottleneck"] = "bottleneck"
    """Two 3×3 convolutions, or 1×1, 3×3 and 1×1."""
    frozen_norm: bool = False
    """Keep batch normalisation as it is, in training too, as DETR does."""

    def __post_init__(self) -> None:
        """Refuse what no network can be built from, naming the field."""
        check.resnet_config(self)


@dataclass(frozen=True)
class DETRConfig:
    """Everything that determines a DETR but its weights; the defaults are the paper's."""

    labels: Sequence[str] | Mapping[int, str]
    """Names of the classes, the first of id 0. Of a mapping from ids to names, ids that are left
    out are named "LABEL_1" and so on. "No object" is no label: it has the output after the last."""
    backbone: ResNetConfig = field(default_factory=ResNetConfig)
    """What makes features of pictures."""
    d_model: int = 256
    """Width of all vectors; a multiple of 4."""
    n_heads: int = 8
    """Attention heads a layer; divides ``d_model``."""
    n_encoder_layers: int = 6
    """Layers of the encoder."""
    n_decoder_layers: int = 6
    """Layers of the decoder, at least 1."""
    d_ff: int = 2048
    """Width inside the feed-forward networks."""
    n_queries: int = 100
    """Number of object queries, the most objects that can be found in a picture."""
    dropout: float = 0.1
    """Dropout of sublayers."""
    attention_dropout: float = 0.0
    """Dropout of attention weights."""
    feed_forward_dropout: float = 0.0
    """Dropout inside the feed-forward networks."""
    activation: Literal["relu", "gelu", "silu"] = "relu"
    """Activation of the feed-forward networks."""
    masked_backbone: bool = True
    """Hide padding inside the backbone too, so that a picture's detections do not depend on who
    shares its batch. The published models are without, and round which places count as real."""
    norm_between_layers: bool = False
    """Normalise what goes from one decoder layer to the next, as the models do that transformers
    trained with its own auxiliary losses."""

    def __post_init__(self) -> None:
        """Refuse what no model can be built from, naming the field."""
        object.__setattr__(self, "labels", label_names(self.labels))
        check.detr_config(self)

    def to_json(self) -> str:
        """Return the configuration as a JSON object, one field a line."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "DETRConfig":
        """Read what :meth:`to_json` wrote; a field that is left out gets its default."""
        check.detr_json(text, cls, ResNetConfig)
        given: dict[str, Any] = json.loads(text)
        backbone = given.get("backbone", {})
        sizes = {name: tuple(backbone[name]) for name in backbone.keys() & {"depths", "widths"}}
        return cls(**given | {"backbone": ResNetConfig(**backbone | sizes)})  # JSON has no tuples


def label_names(labels: Sequence[str] | Mapping[int, str]) -> tuple[str, ...]:
    """Return a name for every id from 0 to the greatest; those without one are "LABEL_1" etc."""
    check.labels(labels)
    named = dict(labels) if isinstance(labels, Mapping) else dict(enumerate(labels))
    return tuple(named.get(number, f"LABEL_{number}") for number in range(max(named) + 1))
