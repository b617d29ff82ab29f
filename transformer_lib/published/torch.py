"""Weights of PyTorch's own modules, for the same modules of this library.

Explained in chapter 11, "The Transformer" (book/11_transformer.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

from collections.abc import Mapping

from torch import Tensor

from transformer_lib._checks import published as check_published
from transformer_lib.published.renaming import PROJECTIONS, count_layers, rename, tensor_names

__all__ = ["attention_from_torch", "layer_from_torch", "stack_from_torch", "transformer_from_torch"]


def attention_from_torch(
    state: Mapping[str, Tensor], old: str = "", new: str = ""
) -> dict[str, Tensor]:
    """Convert ``nn.MultiheadAttention``, which keeps the three input projections in one matrix.

    Args:
        state: A state dict that holds the attention.
        old: Prefix of its names there, with the dot.
        new: Prefix of the names returned, with the dot.
    """
    check_published.attention_from_torch(state, old)
    names: dict[str, str | tuple[str, ...]] = {}
    for part in ("weight", "bias") if f"{old}in_proj_bias" in state else ("weight",):
        names[f"{old}in_proj_{part}"] = tuple(f"{new}{name}.{part}" for name in PROJECTIONS[:3])
        names[f"{old}out_proj.{part}"] = f"{new}output_projection.{part}"
    return rename(state, names)


def layer_from_torch(
    state: Mapping[str, Tensor], old: str = "", new: str = ""
) -> dict[str, Tensor]:
    """Convert ``nn.TransformerEncoderLayer`` or ``nn.TransformerDecoderLayer``, as above."""
    attentions = {"self_attn": "self_attention"}
    if f"{old}norm3.weight" in state:
        attentions["multihead_attn"] = "cross_attention"
    modules = {"linear1": "feed_forward.inner", "linear2": "feed_forward.outer"}
    for number, ours in enumerate([*attentions.values(), "feed_forward"], start=1):
        modules[f"norm{number}"] = f"{ours}_norm.norm"
    converted: dict[str, Tensor] = {}
    for theirs, ours in attentions.items():
        converted |= attention_from_torch(state, f"{old}{theirs}.", f"{new}{ours}.")
    return converted | rename(state, tensor_names(modules, old, new))


def stack_from_torch(
    state: Mapping[str, Tensor], old: str = "", new: str = ""
) -> dict[str, Tensor]:
    """Convert ``nn.TransformerEncoder`` or ``nn.TransformerDecoder``; arguments as above."""
    converted: dict[str, Tensor] = {}
    for layer in range(count_layers(state, f"{old}layers.{{}}.norm1.weight")):
        converted |= layer_from_torch(state, f"{old}layers.{layer}.", f"{new}layers.{layer}.")
    if f"{old}norm.weight" in state:
        converted |= rename(state, tensor_names({"norm": "final_norm"}, old, new))
    return converted


def transformer_from_torch(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert ``nn.Transformer``: the encoder and the decoder, which are all it has."""
    stacks = (stack_from_torch(state, stack, stack) for stack in ("encoder.", "decoder."))
    return next(stacks) | next(stacks)
