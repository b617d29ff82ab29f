"""WAV files of the common kinds: whole numbers of 8 to 32 bits and floating-point ones."""

import os
import struct
from collections.abc import Callable
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = [
    "SAMPLE_RATE",
    "read_wav",
]

SAMPLE_RATE = 16_000
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE


def read_wav(file: str | os.PathLike[str]) -> Float[Tensor, " samples"]:
    """Read a recording: a WAV file of 16,000 samples a second; channels are averaged.

    Samples of 16, 24 and 32 bits, unsigned ones of 8, and floating-point ones of 32 and 64 are
    read, with an extensible header too. What is compressed or has another rate is refused with
    advice.

    Returns:
        The samples, from −1 to 1.
    """
    if not Path(file).is_file():
        raise FileNotFoundError(f"file: no such file: {file}")
    data = Path(file).read_bytes()
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise ValueError(f"file: {file} is no WAV file: it does not begin with RIFF and WAVE")
    chunks = _chunks(data)
    if len(chunks.get(b"fmt ", b"")) < 16 or b"data" not in chunks:
        raise ValueError(f"file: {file} is no WAV file: it ends too soon")
    kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", chunks[b"fmt "])
    if kind == _EXTENSIBLE and len(chunks[b"fmt "]) >= 26:
        (kind,) = struct.unpack_from("<H", chunks[b"fmt "], 24)  # how its identifier begins
    if rate != SAMPLE_RATE or not channels or (kind, bits) not in _READERS:
        names = {_PCM: "whole", _FLOAT: "floating-point"}
        raise ValueError(
            f"file: expected samples of 8 to 32 bits at {SAMPLE_RATE} Hz, got {bits} bits "
            f"({names.get(kind, f'compressed, kind {kind}')}) in {channels} channels at {rate} Hz; "
            f"convert it: ffmpeg -i {Path(file).name} -ar 16000 -c:a pcm_s16le new.wav"
        )
    frame = channels * bits // 8
    sound = bytearray(chunks[b"data"][: len(chunks[b"data"]) // frame * frame])
    if not sound:
        return torch.zeros(0)
    samples = _READERS[kind, bits](sound).reshape(-1, channels).float().mean(1)
    if not samples.isfinite().all():
        raise ValueError(f"file: {file} has samples that are no finite numbers")
    return samples


def _chunks(data: bytes) -> dict[bytes, bytes]:
    """Return the first part of each name; the last may be shorter than it says."""
    chunks: dict[bytes, bytes] = {}
    place = 12
    while place + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, place)
        chunks.setdefault(name, data[place + 8 : place + 8 + size])
        place += 8 + size + size % 2
    return chunks


def _whole(dtype: torch.dtype, bits: int, sound: bytearray) -> Tensor:
    return torch.frombuffer(sound, dtype=dtype).double() / 2 ** (bits - 1)


def _bytes(sound: bytearray) -> Tensor:
    return torch.frombuffer(sound, dtype=torch.uint8).double() / 128 - 1


def _three_bytes(sound: bytearray) -> Tensor:
    low, middle, high = torch.frombuffer(sound, dtype=torch.uint8).reshape(-1, 3).unbind(1)
    number = low.int() + (middle.int() << 8) + (high.view(torch.int8).int() << 16)
    return number.double() / 2**23


_READERS: dict[tuple[int, int], Callable[[bytearray], Tensor]] = {
    (_PCM, 8): _bytes,
    (_PCM, 16): lambda sound: _whole(torch.int16, 16, sound),
    (_PCM, 24): _three_bytes,
    (_PCM, 32): lambda sound: _whole(torch.int32, 32, sound),
    (_FLOAT, 32): lambda sound: torch.frombuffer(sound, dtype=torch.float32),
    (_FLOAT, 64): lambda sound: torch.frombuffer(sound, dtype=torch.float64),
}
