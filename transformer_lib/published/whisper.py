"""Whisper: speech in, text out.

Explained in chapter 16, "Pretrained weights" (book/16_pretrained_weights.ipynb). Generated from
there by tools/export.py; edit the notebook.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib._checks import published as check
from transformer_lib.decoding import LayerCache
from transformer_lib.embedding import Generator, InputLayer, TokenEmbedding
from transformer_lib.feed_forward import ACTIVATIONS
from transformer_lib.files import read_json
from transformer_lib.hub import find_published, read_published
from transformer_lib.interchange.ctranslate2 import read_ctranslate2, whisper_from_ctranslate2
from transformer_lib.layers import Cache, Decoder, Encoder
from transformer_lib.positional_encoding import LearnedPositions
from transformer_lib.published.reading import Layout, build_published, read_model
from transformer_lib.published.renaming import (
    ACTIVATION_NAMES,
    layer_names,
    rename,
    tensor_names,
)

__all__ = [
    "WHISPER",
    "SpeechConfig",
    "SpeechDecoder",
    "SpeechStem",
    "SpeechTransformer",
    "config_from_whisper",
    "read_whisper",
    "speech_from_whisper",
    "whisper_names",
    "whisper_of_ctranslate2",
]


class SpeechStem(nn.Module):
    """Two convolutions over time that turn a spectrogram into vectors, two frames into one.

    Args:
        n_mels: Number of frequency bands.
        d_model: Width of the vectors.

    Source: Radford et al. (2023), section 2.2.
    """

    def __init__(self, n_mels: int, d_model: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(n_mels, d_model, kernel_size=3, padding=1)
        self.second = nn.Conv1d(d_model, d_model, kernel_size=3, stride=2, padding=1)

    def forward(
        self, spectrogram: Float[Tensor, "batch n_mels frames"]
    ) -> Float[Tensor, "batch positions d_model"]:
        """Return one vector for every second frame: (batch, ⌈frames / 2⌉, d_model)."""
        return F.gelu(self.second(F.gelu(self.first(spectrogram)))).transpose(1, 2)


@dataclass(frozen=True)
class SpeechConfig:
    """Sizes of a :class:`SpeechTransformer`; the defaults are Whisper's tiny.en."""

    vocabulary: int = 51_864  # number of text tokens
    d_model: int = 384  # width of all vectors
    n_heads: int = 6  # attention heads a layer; divides d_model
    n_encoder_layers: int = 4
    n_decoder_layers: int = 4
    d_ff: int = 1536  # width inside the feed-forward networks
    n_mels: int = 80  # frequency bands of the spectrogram
    source_length: int = 1500  # positions of the encoder, two frames each
    target_length: int = 448  # positions of the decoder
    activation: str = "gelu"  # of the feed-forward networks

    def __post_init__(self) -> None:
        """Refuse what no model can be built from, naming the field."""
        check.speech_config(self, list(ACTIVATIONS))


class SpeechTransformer(nn.Module):
    """Whisper: a spectrogram through the encoder, text out of the decoder.

    It is the Transformer of chapter 11 with pre-norm and learnt positions; only what comes before
    the encoder is new.

    Source: Radford et al. (2023), section 2.2 and figure 1.
    """

    def __init__(self, config: SpeechConfig) -> None:
        super().__init__()
        self.config = config
        d_model, n_heads, d_ff = config.d_model, config.n_heads, config.d_ff
        options: dict[str, Any] = {"activation": config.activation, "norm_first": True}
        options |= {"d_model": d_model, "n_heads": n_heads, "d_ff": d_ff, "dropout": 0.0}
        self.stem = SpeechStem(config.n_mels, d_model)
        self.source_input = InputLayer(d_model, LearnedPositions(d_model, config.source_length))
        self.encoder = Encoder(config.n_encoder_layers, **options)
        self.target_embedding = TokenEmbedding(config.vocabulary, d_model, scale=False)
        self.target_input = InputLayer(d_model, LearnedPositions(d_model, config.target_length))
        self.decoder = Decoder(config.n_decoder_layers, **options)
        self.generator = Generator(d_model, config.vocabulary, tied=self.target_embedding)

    def forward(
        self,
        spectrogram: Float[Tensor, "batch n_mels frames"],
        target: Int[Tensor, "batch target"],
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Return, for every text token, the logits of the one that follows it.

        Args:
            spectrogram: As ``log_mel_spectrogram`` makes it.
            target: Token ids up to and including each position.
        """
        return self.decode(target, memory=self.encode(spectrogram))

    def encode(
        self, spectrogram: Float[Tensor, "batch n_mels frames"]
    ) -> Float[Tensor, "batch positions d_model"]:
        """Return the encoder's output: one vector for every 20 ms.

        The spectrogram has 2 · source_length frames: Whisper was trained on 30 s, no more and no
        less, and is silent about shorter ones.
        """
        check.spectrogram(spectrogram, self.config.n_mels, 2 * self.config.source_length)
        return self.encoder(self.source_input(self.stem(spectrogram)))

    def decode(
        self,
        target: Int[Tensor, "batch target"],
        *,
        memory: Float[Tensor, "batch positions d_model"],
        offset: int = 0,
        cache: Sequence[Cache] | None = None,
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Return logits for text tokens, as ``Transformer.decode`` does."""
        x = self.target_input(self.target_embedding(target), offset=offset)
        return self.generator(self.decoder(x, memory, cache=cache))

    @classmethod
    def from_pretrained(cls, name: str | os.PathLike[str]) -> "SpeechTransformer":
        """Read a Whisper model; it is in evaluation mode.

        Args:
            name: A name on the hub, such as "openai/whisper-tiny.en", or a folder in Hugging
                Face's format or in CTranslate2's.
        """
        folder = find_published(name)
        if (folder / "model.bin").is_file() and not (folder / "model.safetensors").is_file():
            return whisper_of_ctranslate2(folder)
        return read_published(cls, read_json(folder / "config.json"), folder)


_SIZES = {
    "vocabulary": "vocab_size",
    "d_model": "d_model",
    "n_heads": "encoder_attention_heads",
    "n_encoder_layers": "encoder_layers",
    "n_decoder_layers": "decoder_layers",
    "d_ff": "encoder_ffn_dim",
    "n_mels": "num_mel_bins",
    "source_length": "max_source_positions",
    "target_length": "max_target_positions",
    "activation": "activation_function",
}


def config_from_whisper(published: Mapping[str, Any]) -> SpeechConfig:
    """Read the ``config.json`` of a Whisper model; one with stacks of two widths is refused."""
    check.config_from_whisper(published, _SIZES.values())
    given = {ours: published[theirs] for ours, theirs in _SIZES.items()}
    given["activation"] = ACTIVATION_NAMES.get(given["activation"], given["activation"])
    return SpeechConfig(**given)


def whisper_names(state: Mapping[str, Tensor]) -> dict[str, str]:
    """Return the new names of the tensors of a Whisper model."""
    modules = {"encoder.conv1": "stem.first", "encoder.conv2": "stem.second"}
    modules |= {f"{stack}.layer_norm": f"{stack}.final_norm" for stack in ("encoder", "decoder")}
    names = layer_names(state) | tensor_names(modules, "model.")
    names["model.decoder.embed_tokens.weight"] = "target_embedding.weight"
    for old, new in (("encoder", "source"), ("decoder", "target")):
        names[f"model.{old}.embed_positions.weight"] = f"{new}_input.positions.table"
    return {old: new for old, new in names.items() if not old.endswith("k_proj.bias")}


def speech_from_whisper(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert the tensors of a Whisper model under their published names.

    Whisper's keys have no bias, ours get one of zero: a bias of the keys adds the same number to
    all scores of a query, which the softmax takes out again.
    """
    converted = rename(state, whisper_names(state))
    keys = {name: tensor for name, tensor in converted.items() if "key_projection" in name}
    for name, weight in keys.items():
        converted[name.replace("weight", "bias")] = weight.new_zeros(len(weight))
    return converted


WHISPER = Layout(whisper_names, speech_from_whisper, unused=r"proj_out\.weight")


def read_whisper(published: Mapping[str, Any], folder: Path) -> SpeechTransformer:
    """Read a Whisper model, of which ``published`` is the ``config.json``."""
    return read_model(SpeechTransformer, config_from_whisper(published), WHISPER, folder)


def whisper_of_ctranslate2(folder: Path) -> SpeechTransformer:
    """Read a Whisper model from the ``model.bin`` of CTranslate2."""
    published, state = whisper_from_ctranslate2(read_ctranslate2(folder / "model.bin"))
    header = {name: tensor.to("meta") for name, tensor in state.items()}
    config = config_from_whisper(published)
    return build_published(SpeechTransformer, config, WHISPER, header, lambda: state)


class SpeechDecoder:
    """A speech model on its way through its text, which the searches of chapter 13 take.

    Args:
        model: A model in evaluation mode.
        spectrogram: One or more, of shape (batch, n_mels, frames).
    """

    @torch.inference_mode()
    def __init__(
        self, model: SpeechTransformer, spectrogram: Float[Tensor, "batch n_mels frames"]
    ) -> None:
        check.evaluation(model)
        self.model = model
        self._memory = model.encode(spectrogram)
        self._caches = [LayerCache() for _ in model.decoder.layers]
        self._length = 0

    @property
    def rows(self) -> int:
        """Number of rows of tokens; at first one for each spectrogram."""
        return len(self._memory)

    @torch.inference_mode()
    def advance(self, tokens: Int[Tensor, "rows new"]) -> Float[Tensor, "rows vocabulary"]:
        """Append tokens to every row and return the logits of what follows the last of them."""
        logits = self.model.decode(
            tokens.to(self._memory.device),
            memory=self._memory,
            offset=self._length,
            cache=self._caches,
        )
        self._length += tokens.shape[1]
        return logits[:, -1]

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " kept"]) -> None:
        """Go on with these rows, of which any may be repeated or left out."""
        rows = rows.to(self._memory.device)
        self._memory = self._memory.index_select(0, rows)
        for cache in self._caches:
            cache.select(rows)
