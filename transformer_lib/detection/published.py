"""The layout in which transformers publishes DETR: configurations, names of tensors, files."""

import json
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from transformer_lib._checks import detection as check
from transformer_lib.detection.configuration import DETRConfig, ResNetConfig
from transformer_lib.files import read_json, read_tensors, require_state, write_json, write_model
from transformer_lib.hub import find_published

__all__ = [
    "config_from_published",
    "config_to_published",
    "fill",
    "published_name",
    "read",
    "read_processor",
    "write",
    "write_processor",
]

_Model = TypeVar("_Model", bound=nn.Module)
_Processor = TypeVar("_Processor")

# Configurations

_RESNETS: dict[str, dict[str, Any]] = {
    "resnet18": {"block": "basic", "depths": (2, 2, 2, 2), "widths": (64, 128, 256, 512)},
    "resnet34": {"block": "basic", "depths": (3, 4, 6, 3), "widths": (64, 128, 256, 512)},
    "resnet50": {"depths": (3, 4, 6, 3)},
    "resnet101": {"depths": (3, 4, 23, 3)},
    "resnet152": {"depths": (3, 8, 36, 3)},
}
_SAME = {
    "d_model": "d_model",
    "n_encoder_layers": "encoder_layers",
    "n_decoder_layers": "decoder_layers",
    "n_queries": "num_queries",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "feed_forward_dropout": "activation_dropout",
    "activation": "activation_function",
    "norm_between_layers": "auxiliary_loss",
    "masked_backbone": "masked_backbone",
}
_SAME_IN_BOTH_STACKS = {"n_heads": "attention_heads", "d_ff": "ffn_dim"}


def config_from_published(published: Mapping[str, Any]) -> DETRConfig:
    """Read the ``config.json`` of a DETR that transformers saved.

    Batch normalisation is frozen, as it is there. What a DETR is not, or cannot be, is refused.
    """
    if (kind := published.get("model_type")) != "detr":
        raise ValueError(f"published: expected a model of the kind detr, got {kind}")
    for name, expected in (("position_embedding_type", "sine"), ("dilation", False)):
        if published.get(name) not in (None, expected):
            raise ValueError(f"published: expected {name} = {expected}, got {published[name]}")
    try:
        sizes = {ours: published[name] for ours, name in _SAME.items() if name in published}
        for ours, part in _SAME_IN_BOTH_STACKS.items():
            encoder, decoder = (published.get(f"{side}_{part}") for side in ("encoder", "decoder"))
            if encoder != decoder:
                raise ValueError(
                    f"published: expected one {part} for both stacks, got {encoder} and {decoder}"
                )
            sizes |= {} if encoder is None else {ours: encoder}
        return DETRConfig(
            labels=_labels(published),
            backbone=_backbone(published),
            **{"masked_backbone": False} | sizes,
        )
    except (AttributeError, TypeError) as error:  # an entry of another type
        raise ValueError(f"published: an entry cannot be read: {error}") from None


def _labels(published: Mapping[str, Any]) -> dict[int, str]:
    if "id2label" not in published:
        # Left out of the file where it has two classes without names.
        count = published.get("num_labels", 2)
        check.number_of_labels(count)
        return {number: f"LABEL_{number}" for number in range(count)}
    named = published["id2label"]
    if not all(re.fullmatch(r"\d{1,9}", str(id_)) for id_ in named):
        raise ValueError(f"published: expected numbers as keys of id2label, got {list(named)[:9]}")
    return {int(id_): name for id_, name in named.items()}


def _backbone(published: Mapping[str, Any]) -> ResNetConfig:
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
    backbone = config.backbone
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
        "activation_function": config.activation,
        "position_embedding_type": "sine",
        "auxiliary_loss": config.norm_between_layers,
        "masked_backbone": config.masked_backbone,
        "id2label": {str(number): name for number, name in enumerate(config.labels)},
        "label2id": {name: number for number, name in enumerate(config.labels)},
    }


# Names of tensors

_BODY = "model.backbone.conv_encoder.model."
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
)
_RENAMED_BACKBONE = (
    (r"^backbone\.stem\.", _BODY + "embedder.embedder."),
    (r"^backbone\.stages\.(\d+)\.(\d+)\.", _BODY + r"encoder.stages.\1.layers.\2."),
    (r"\.layers\.(\d+)\.(convolution|norm)\.", r".layer.\1.\2."),
    (r"\.norm\.", ".normalization."),
)
_RENAMED_TIMM = (
    (r"^backbone\.stem\.convolution\.", _BODY + "conv1."),
    (r"^backbone\.stem\.norm\.", _BODY + "bn1."),
    (
        r"^backbone\.stages\.(\d+)\.(\d+)\.",
        lambda found: f"{_BODY}layer{int(found[1]) + 1}.{found[2]}.",
    ),
    (r"\.layers\.(\d+)\.convolution\.", lambda found: f".conv{int(found[1]) + 1}."),
    (r"\.layers\.(\d+)\.norm\.", lambda found: f".bn{int(found[1]) + 1}."),
    (r"\.shortcut\.convolution\.", ".downsample.0."),
    (r"\.shortcut\.norm\.", ".downsample.1."),
)
_COUNTER = ".num_batches_tracked"  # of no use with fixed averages


def published_name(name: str, *, timm: bool = False) -> str:
    """Return what a tensor of a DETR is called in a file that transformers saved.

    Args:
        name: Its name in the model's state.
        timm: Whether the backbone's names are those of timm, as in the models published first.
    """
    rules: Sequence[tuple[str, Any]] = _RENAMED
    if name.startswith("backbone."):
        rules = _RENAMED_TIMM if timm else _RENAMED_BACKBONE
    for pattern, replacement in rules:
        name = re.sub(pattern, replacement, name)
    return name


# Files


def write(folder: str | os.PathLike[str], config: DETRConfig, state: Mapping[str, Tensor]) -> None:
    """Write ``config.json`` and ``model.safetensors`` of a model's state."""
    published = json.dumps(config_to_published(config), indent=2, ensure_ascii=False) + "\n"
    kept = {published_name(n): value for n, value in state.items() if not n.endswith(_COUNTER)}
    write_model(folder, published, kept)


def read(name: str | os.PathLike[str]) -> tuple[DETRConfig, dict[str, Tensor]]:
    """Return the configuration and the tensors, under their published names, of a model.

    The configuration is held against the tensors, so that nothing is built that these cannot fill.
    """
    folder = find_published(name)
    config = config_from_published(read_json(folder / "config.json"))
    file = folder / "model.safetensors"
    if not file.is_file():
        pickled = "; pickled weights are not read" if any(folder.glob("*.bin")) else ""
        raise FileNotFoundError(f"name: no model.safetensors in {folder}{pickled}")
    state = {n: tensor for n, tensor in read_tensors(file).items() if not n.endswith(_COUNTER)}
    check.fits_weights(config, state, folder)
    return config, state


def fill(
    model: _Model, state: Mapping[str, Tensor], named: Sequence[str], *, replace_head: bool
) -> _Model:
    """Put the tensors of a file into a model that has shapes only, and return it.

    Args:
        model: A model on the device "meta"; its weights get the default dtype.
        state: Tensors under their published names.
        named: The labels of the file's configuration.
        replace_head: Whether the model may have other labels, whose rows of the head then start
            anew.
    """
    timm = f"{_BODY}conv1.weight" in state
    ours = {published_name(name, timm=timm): name for name in model.state_dict()}
    renamed = {ours.get(name, name): tensor for name, tensor in state.items()}
    outputs = len(renamed.get("class_head.bias", ()))
    if replace_head:
        renamed |= _refit_head(model, renamed, named if outputs == len(named) + 1 else ())
    elif outputs not in (0, len(named) + 1):
        raise ValueError(
            f'class_head: config.json has {len(named)} labels, which with "no object" are '
            f"{len(named) + 1} outputs, but model.safetensors has {outputs}; with "
            "labels=[…] everything but the head is loaded"
        )
    counters = [name for name in model.state_dict() if name.endswith(_COUNTER)]
    renamed |= {name: torch.tensor(0) for name in counters}
    require_state(model, renamed)
    dtype = torch.get_default_dtype()
    model.load_state_dict(
        {n: t.to(dtype) if t.is_floating_point() else t for n, t in renamed.items()}, assign=True
    )
    return model


def _refit_head(
    model: nn.Module, state: Mapping[str, Tensor], named: Sequence[str]
) -> dict[str, Tensor]:
    """Return a class head for the model's labels, and report what of it starts anew.

    Args:
        model: Says which labels are wanted, and how wide the head is.
        state: Tensors of the file, under our names.
        named: The labels of the file's head, none if that is unknown.
    """
    wanted: Sequence[str] = model.config.labels  # type: ignore[union-attr, assignment]
    kept = [row for row, label in enumerate(wanted) if label in named]
    width = model.state_dict()["class_head.weight"].shape[1]
    head = nn.Linear(width, len(wanted) + 1)
    for part, fresh in head.state_dict().items():
        old = state.get(f"class_head.{part}", fresh)
        if named and old.shape[1:] == fresh.shape[1:]:
            fresh[kept] = old[[named.index(wanted[row]) for row in kept]].to(fresh.dtype)
            fresh[-1] = old[-1].to(fresh.dtype)  # no object
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
    return {f"class_head.{part}": tensor for part, tensor in head.state_dict().items()}


# Processors


def write_processor(folder: str | os.PathLike[str], processor: Any) -> None:
    """Write the ``preprocessor_config.json`` of an ImageProcessor."""
    published = {
        "image_processor_type": "DetrImageProcessor",
        "do_resize": True,
        "size": {
            "shortest_edge": processor.shortest_edge,
            "longest_edge": processor.longest_edge,
        },
        "resample": 2,  # bilinear
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": processor.mean,
        "image_std": processor.std,
        "do_pad": True,
        "format": "coco_detection",
    }
    write_json(Path(folder) / "preprocessor_config.json", published)


def read_processor(name: str | os.PathLike[str], kind: Callable[..., _Processor]) -> _Processor:
    """Return the ImageProcessor, which is the ``kind``, of a ``preprocessor_config.json``."""
    published = read_json(find_published(name) / "preprocessor_config.json")
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
            f"size: expected shortest_edge and longest_edge in preprocessor_config.json, got {size}"
        )
    try:
        colours = {
            ours: tuple(map(float, published[its]))
            for ours, its in (("mean", "image_mean"), ("std", "image_std"))
            if its in published
        }
        return kind(**size, **colours)
    except TypeError as error:
        raise ValueError(f"preprocessor_config.json: wrong type: {error}") from None
