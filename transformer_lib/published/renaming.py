"""Names: the tensors of other libraries under the names of this one.

Explained in chapter 11, "The Transformer" (book/11_transformer.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

from collections.abc import Mapping
from itertools import count

from torch import Tensor

from transformer_lib._checks import published as check_published

__all__ = [
    "ACTIVATION_NAMES",
    "PROJECTIONS",
    "count_layers",
    "layer_names",
    "rename",
    "tensor_names",
]

PROJECTIONS = ("query_projection", "key_projection", "value_projection", "output_projection")
ACTIVATION_NAMES = {"swish": "silu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}


def rename(
    state: Mapping[str, Tensor], names: Mapping[str, str | tuple[str, ...]]
) -> dict[str, Tensor]:
    """Return tensors under new names; what ``names`` does not have is left out.

    Args:
        state: Tensors by their old names.
        names: The new name of each; where one tensor holds several, one below the other, theirs.
    """
    check_published.rename(state, names)
    renamed: dict[str, Tensor] = {}
    for old, new in names.items():
        if isinstance(new, str):
            renamed[new] = state[old]
        else:
            renamed |= zip(new, state[old].chunk(len(new)), strict=True)
    return renamed


def tensor_names(modules: Mapping[str, str], old: str = "", new: str = "") -> dict[str, str]:
    """Return the new names of weights and biases, of those of their modules.

    Args:
        modules: The new name of each module.
        old: What stands before the old names, with the dot.
        new: What stands before the new names, with the dot.
    """
    return {
        f"{old}{theirs}.{part}": f"{new}{ours}.{part}"
        for theirs, ours in modules.items()
        for part in ("weight", "bias")
    }


def count_layers(state: Mapping[str, Tensor], name: str) -> int:
    """Count the numbers 0, 1, … with which ``name``, which has {} for them, is in ``state``."""
    check_published.entries("state", state, [name.format(0)])
    return next(number for number in count() if name.format(number) not in state)


def layer_names(state: Mapping[str, Tensor]) -> dict[str, str]:
    """Return the new names of both stacks' layers in a model of Marian's family."""
    names: dict[str, str] = {}
    attentions = {"self_attn": "self_attention"}
    for stack in ("encoder", "decoder"):
        modules = {"fc1": "feed_forward.inner", "fc2": "feed_forward.outer"}
        modules["final_layer_norm"] = "feed_forward_norm.norm"
        for theirs, ours in attentions.items():
            letters = zip(("q", "k", "v", "out"), PROJECTIONS, strict=True)
            modules |= {f"{theirs}.{letter}_proj": f"{ours}.{name}" for letter, name in letters}
            modules[f"{theirs}_layer_norm"] = f"{ours}_norm.norm"
        for n in range(count_layers(state, f"model.{stack}.layers.{{}}.fc1.weight")):
            names |= tensor_names(modules, f"model.{stack}.layers.{n}.", f"{stack}.layers.{n}.")
        attentions["encoder_attn"] = "cross_attention"  # the decoder has this, too
    return names
