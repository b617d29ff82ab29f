"""Names: the tensors of other libraries under the names of this one.

Explained in chapter 11, "The Transformer" (book/11_transformer.ipynb) and chapter 16, "Pretrained
weights" (book/16_pretrained_weights.ipynb). Generated from these by tools/export.py; edit the
notebooks.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from torch import Tensor, nn

from transformer_lib._checks import published as check_published
from transformer_lib.files import build_from, read_header, read_tensors

__all__ = [
    "ACTIVATION_NAMES",
    "PROJECTIONS",
    "Layout",
    "build_published",
    "count_layers",
    "layer_names",
    "read_model",
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


_Published = TypeVar("_Published", bound=nn.Module)


class Layout(NamedTuple):
    """How one kind of model names its tensors where it is published."""

    names: Callable[[Mapping[str, Tensor]], Collection[str]]  # those that the model needs
    convert: Callable[[Mapping[str, Tensor]], dict[str, Tensor]]
    unused: str  # pattern of names that the model has no use for, or that repeat another


def build_published(
    model_class: type[_Published],
    config: Any,
    layout: Layout,
    header: Mapping[str, Tensor],
    read: Callable[[], Mapping[str, Tensor]],
) -> _Published:
    """Make a model of published tensors, all or none, in evaluation mode.

    Args:
        model_class: What to make of them.
        config: Its configuration, which is not believed before it is held against ``header``.
        layout: Their names.
        header: The tensors on the meta device, which has shapes and no numbers.
        read: Returns the tensors.
    """
    check_published.old_names(header, layout.names(header), layout.unused)
    n_layers = config.n_encoder_layers + config.n_decoder_layers
    model = build_from(lambda: model_class(config), header, n_layers, layout.convert)
    model.load_state_dict(layout.convert(read()))
    return model.eval()


def read_model(
    model_class: type[_Published], config: Any, layout: Layout, folder: Path
) -> _Published:
    """Read the ``model.safetensors`` of a folder, as :func:`build_published` does."""
    file = folder / "model.safetensors"
    return build_published(
        model_class, config, layout, read_header(file), partial(read_tensors, file)
    )
