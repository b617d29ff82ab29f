"""Reading published models: all of their tensors, or none.

Explained in chapter 16, "Pretrained weights" (book/16_pretrained_weights.ipynb). Generated from
there by tools/export.py; edit the notebook.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from torch import Tensor, nn

from transformer_lib._checks import published as check_published
from transformer_lib.files import build_from, read_header, read_tensors

__all__ = ["Layout", "build_published", "read_model"]

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
