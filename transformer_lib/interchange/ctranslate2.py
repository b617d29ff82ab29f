"""CTranslate2's files: their tensors, and Whisper's under the names of Hugging Face.

A package that carries Whisper for places without a network has it in this format.
"""

import math
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer_lib._checks import published as check
from transformer_lib.published.renaming import count_layers, rename

_DTYPES = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)


class _Bytes:
    """The bytes of a file and the place up to which they are read. Numbers are little-endian."""

    def __init__(self, data: bytearray) -> None:
        self.data, self.place = data, 0

    def number(self, code: str) -> int:
        """Return the next number; ``code`` is the one of struct."""
        (value,) = struct.unpack_from(f"<{code}", self.data, self.place)
        self.place += struct.calcsize(code)
        return value

    def text(self) -> str:
        """Return the next text: its length, its bytes, and a zero that is counted."""
        length = self.number("H")
        self.place += length
        if self.place > len(self.data):
            raise ValueError("a text ends beyond the file")
        return self.data[self.place - length : self.place - 1].decode()

    def tensor(self) -> Tensor:
        """Return the next tensor: number of axes, sizes, dtype, number of bytes, bytes."""
        shape = [self.number("I") for _ in range(self.number("B"))]
        dtype, size = _DTYPES[self.number("B")], self.number("I")
        expected = math.prod(shape) * dtype.itemsize
        if size != expected or self.place + size > len(self.data):
            raise ValueError(f"a tensor of shape {tuple(shape)} has not {size} bytes")
        if not size:
            return torch.zeros(shape, dtype=dtype)
        part = torch.frombuffer(self.data, dtype=dtype, count=math.prod(shape), offset=self.place)
        self.place += size
        return part.reshape(shape)


def read_ctranslate2(file: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Read the tensors of a model file of CTranslate2, format version 6."""
    if not Path(file).is_file():
        raise FileNotFoundError(f"file: no such file: {file}")
    data = _Bytes(bytearray(Path(file).read_bytes()))
    tensors = {}
    try:
        if (version := data.number("I")) != 6:
            raise ValueError(f"version {version} instead of 6")
        data.text(), data.number("I")  # the kind of model and its revision
        for _ in range(data.number("I")):
            name = data.text()
            tensors[name] = data.tensor()
    except (struct.error, ValueError, IndexError, RuntimeError) as error:
        raise ValueError(f"file: {file} is truncated or no CTranslate2 file: {error}") from None
    return tensors


# Ours to theirs: which of CTranslate2's tensors of a layer hold which modules of Hugging Face's.
_LAYER = {
    "self_attention/linear_0": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "self_attention/linear_1": ("self_attn.out_proj",),
    "self_attention/layer_norm": ("self_attn_layer_norm",),
    "attention/linear_0": ("encoder_attn.q_proj",),
    "attention/linear_1": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "attention/linear_2": ("encoder_attn.out_proj",),
    "attention/layer_norm": ("encoder_attn_layer_norm",),
    "ffn/linear_0": ("fc1",),
    "ffn/linear_1": ("fc2",),
    "ffn/layer_norm": ("final_layer_norm",),
}
_PARTS = {"weight": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}


def whisper_from_ctranslate2(
    state: Mapping[str, Tensor],
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the configuration and tensors of a Whisper model as Hugging Face publishes them."""
    modules: dict[str, tuple[str, ...]] = {
        "encoder/conv1": ("encoder.conv1",),
        "encoder/conv2": ("encoder.conv2",),
        "decoder/embeddings": ("decoder.embed_tokens",),
    }
    for stack in ("encoder", "decoder"):
        modules[f"{stack}/layer_norm"] = (f"{stack}.layer_norm",)
        for n in range(count_layers(state, f"{stack}/layer_{{}}/ffn/linear_0/weight")):
            for old, new in _LAYER.items():
                ours = tuple(f"{stack}.layers.{n}.{name}" for name in new)
                modules[f"{stack}/layer_{n}/{old}"] = ours
    names: dict[str, str | tuple[str, ...]] = {
        f"{stack}/position_encodings/encodings": f"model.{stack}.embed_positions.weight"
        for stack in ("encoder", "decoder")
    }
    for old, several in modules.items():
        for theirs, part in _PARTS.items():
            if f"{old}/{theirs}" in state:
                names[f"{old}/{theirs}"] = tuple(f"model.{name}.{part}" for name in several)
    published = {name: tensor.float() for name, tensor in rename(state, names).items()}
    for name in [name for name in published if name.endswith("k_proj.bias")]:
        del published[name]  # zeros there; Whisper's keys have none
    return _config(state, published), published


def _config(state: Mapping[str, Tensor], published: Mapping[str, Tensor]) -> dict[str, Any]:
    """Read the sizes from the tensors."""
    embeddings, convolution = "model.decoder.embed_tokens.weight", "model.encoder.conv1.weight"
    check.entries("state", published, [embeddings, convolution])
    check.entries("state", state, ["encoder/num_heads", "decoder/num_heads"])
    check.axes(published, {embeddings: 2, convolution: 3})
    vocabulary, d_model = published[embeddings].shape
    config: dict[str, Any] = {"model_type": "whisper", "activation_function": "gelu"}
    config |= {"vocab_size": vocabulary, "d_model": d_model}
    config["num_mel_bins"] = published[convolution].shape[1]
    for stack, side in (("encoder", "source"), ("decoder", "target")):
        inner = f"model.{stack}.layers.0.fc1.weight"
        table = f"model.{stack}.embed_positions.weight"
        check.axes(published, {inner: 2, table: 2})
        check.axes(state, {f"{stack}/num_heads": 0})
        config |= {
            f"{stack}_layers": count_layers(published, f"model.{stack}.layers.{{}}.fc1.weight"),
            f"{stack}_attention_heads": int(state[f"{stack}/num_heads"]),
            f"{stack}_ffn_dim": len(published[inner]),
            f"max_{side}_positions": len(published[table]),
        }
    return config
