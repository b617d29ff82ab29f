"""Guards of chapter 16: tensors by name, settings beside them, sounds, sentences."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from transformer_lib._checks.attention import heads
from transformer_lib._checks.common import (
    require_at_least,
    require_count,
    require_fields,
    require_floating,
)
from transformer_lib._checks.translation import BEAMS

LOUDEST = 2.0  # a resampled recording may go a little beyond 1

# Settings


def entries(argument: str, mapping: Any, names: Collection[str]) -> None:
    """Stand before a function that reads entries of ``state``, ``published`` or ``settings``."""
    if not isinstance(mapping, Mapping):
        raise TypeError(f"{argument}: expected a dictionary, got {type(mapping).__name__}")
    for name in names:
        if name not in mapping:
            raise ValueError(f"{argument}: expected an entry {name!r}, got {len(mapping)} others")


def followed(argument: str, mapping: Mapping[str, Any], **neutral: Any) -> None:
    """Refuse settings that nothing here follows, unless they are those that change nothing.

    None, which means nothing in these files, always passes.
    """
    for name, value in neutral.items():
        came = mapping.get(name)
        if came is not None and came != value:
            raise ValueError(f"{argument}: expected {name} = {value!r}, got {str(came)[:40]}")


def both_stacks(published: Mapping[str, Any]) -> None:
    names = [f"{stack}_{part}" for part in _PARTS for stack in ("encoder", "decoder")]
    entries("published", published, names)
    for part in _PARTS:
        encoder, decoder = published[f"encoder_{part}"], published[f"decoder_{part}"]
        if encoder != decoder:
            raise ValueError(
                f"published: expected one {part} for both stacks, got {encoder} and {decoder}"
            )


_PARTS = ("attention_heads", "ffn_dim")


def config_from_marian(published: Any) -> None:
    needed = ("activation_function", "vocab_size", "d_model", "encoder_layers", "decoder_layers")
    entries("published", published, (*needed, "max_position_embeddings", "pad_token_id"))
    both_stacks(published)
    wrong = ("normalize_before", "normalize_embedding", "add_final_layer_norm")
    followed("published", published, **dict.fromkeys(wrong, False), static_position_embeddings=True)


def config_from_bert(published: Any) -> None:
    needed = ("vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers")
    more = ("intermediate_size", "hidden_act", "layer_norm_eps", "max_position_embeddings")
    entries("published", published, needed + more)
    if (kind := published.get("position_embedding_type") or "absolute") != "absolute":
        raise ValueError(f"published: expected absolute positions, got {str(kind)[:40]!r}")
    wrong = ("is_decoder", "add_cross_attention")
    followed("published", published, **dict.fromkeys(wrong, False), pruned_heads={})


def config_from_whisper(published: Any, names: Collection[str]) -> None:
    entries("published", published, names)
    both_stacks(published)
    followed("published", published, scale_embedding=False, tie_word_embeddings=True)


def speech_config(config: Any, activations: Collection[str]) -> None:
    require_fields(config)
    sizes = ("vocabulary", "d_model", "n_heads", "d_ff", "n_mels", "source_length", "target_length")
    require_at_least(1, **{name: getattr(config, name) for name in sizes})
    layers = ("n_encoder_layers", "n_decoder_layers")
    require_at_least(0, **{name: getattr(config, name) for name in layers})
    heads(config.d_model, config.n_heads)
    if config.activation not in activations:
        raise ValueError(
            f"activation: expected one of {', '.join(activations)}, got {config.activation!r}"
        )


# Tensors


def rename(state: Any, names: Mapping[str, str | Sequence[str]]) -> None:
    entries("state", state, names)
    for old, new in names.items():
        parts, tensor = (1 if isinstance(new, str) else len(new)), state[old]
        if not isinstance(tensor, Tensor):
            raise TypeError(f"state: {old}: expected a tensor, got {type(tensor).__name__}")
        if parts > 1 and (not tensor.dim() or len(tensor) % parts):
            raise ValueError(
                f"state: {old}: expected a first axis in {parts} parts, got shape "
                f"{tuple(tensor.shape)}"
            )


def attention_from_torch(state: Any, old: str) -> None:
    if f"{old}bias_k" in state:
        raise ValueError(f"state: {old}bias_k: an added key has no place here")


def tied(state: Mapping[str, Tensor], names: Sequence[str]) -> None:
    """Refuse matrices that the configuration says are one, if they differ."""
    first, *others = names
    for name in others:
        one, other = state[first], state[name]
        if one.is_meta or one is other:
            continue
        if not torch.equal(one, other):
            raise ValueError(f"state: expected {name} to be {first}, as the configuration says")


def added(name: str, table: Tensor, kinds: Tensor) -> None:
    if table.dim() != 2 or kinds.dim() != 2 or not len(kinds) or table.shape[1] != kinds.shape[1]:
        raise ValueError(
            f"state: {name}: expected vectors of one width in both tables, got shapes "
            f"{tuple(table.shape)} and {tuple(kinds.shape)}"
        )


def old_names(state: Mapping[str, Tensor], needed: Collection[str], unused: str) -> None:
    """Stand before the loading of a whole model; ``unused`` is a pattern."""
    problems = [f"{name} is missing" for name in needed if name not in state]
    problems += [
        f"{name} is unexpected"
        for name in state
        if name not in needed and not re.fullmatch(unused, name)
    ]
    if problems:
        raise ValueError(f"state: the tensors are not the model's: {'; '.join(problems)}")


# Sound


def log_mel_spectrogram(samples: Any, n_mels: int, seconds: int, rate: int) -> None:
    require_count("n_mels", n_mels, 1, 1000)
    require_count("seconds", seconds, 1, 3600)
    require_floating(samples=samples)
    if samples.dim() != 1 or not len(samples):
        raise ValueError(f"samples: expected shape (samples), got {tuple(samples.shape)}")
    if len(samples) > seconds * rate:
        raise ValueError(
            f"samples: expected at most {seconds} s, got {len(samples) / rate:.1f} s; cut "
            "the recording where nobody speaks"
        )
    if samples.is_meta:
        return
    loudest = samples.abs().max()
    if not loudest.isfinite():
        raise ValueError("samples: expected finite numbers, got NaN or infinity")
    if loudest > LOUDEST:
        raise ValueError(
            f"samples: expected numbers from -1 to 1, got up to {float(loudest):g}; divide those "
            "of 16 bits by 32768"
        )


def spectrogram(spectrogram: Any, n_mels: int, frames: int) -> None:
    require_floating(spectrogram=spectrogram)
    if spectrogram.dim() != 3 or spectrogram.shape[1:] != (n_mels, frames):
        raise ValueError(
            f"spectrogram: expected shape (batch, n_mels = {n_mels}, frames = {frames}), got "
            f"{tuple(spectrogram.shape)}"
        )


def evaluation(model: Any) -> None:
    if model.training:
        raise ValueError("model: expected evaluation mode, call model.eval() first")


def transcriber(config: Any, ids: Mapping[str, int | None], forbidden: Sequence[int]) -> None:
    for name, token in ids.items():
        if token is None:
            raise ValueError(f"tokenizer: expected a token {name}, got none")
        require_count(f"tokenizer: {name}", token, 0, config.vocabulary - 1)
    if config.vocabulary > 51_864:
        raise ValueError(
            "model: expected an English-only model with a vocabulary of 51864, got "
            f"{config.vocabulary}"
        )
    for token in forbidden:
        require_count("forbidden", token, 0, config.vocabulary - 1)


# Text


def sentences(texts: Any) -> None:
    if isinstance(texts, str):
        raise TypeError("texts: expected several texts, got one")


def length(tokens: int, most: int) -> None:
    if tokens > most:
        raise ValueError(f"texts: expected at most {most} tokens, got {tokens} in one text")


def marian_translator(settings: Any, vocabulary: int) -> None:
    names = ("decoder_start_token_id", "eos_token_id")
    entries("settings", settings, names)
    for name in (*names, "forced_eos_token_id"):
        if settings.get(name) is not None or name in names:
            require_count(f"settings: {name}", settings[name], 0, vocabulary - 1)
    none = ("no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "min_length", "min_new_tokens")
    lists = ("suppress_tokens", "begin_suppress_tokens", "sequence_bias", "forced_bos_token_id")
    unlike = {"repetition_penalty": 1.0, "encoder_repetition_penalty": 1.0, "num_beam_groups": 1}
    more = {"do_sample": False, "max_new_tokens": None, "exponential_decay_length_penalty": None}
    followed(
        "settings", settings, **dict.fromkeys(none, 0), **dict.fromkeys(lists), **unlike, **more
    )
    require_count("settings: num_beams", settings.get("num_beams") or 1, 1, BEAMS)
    require_count("settings: max_length", settings.get("max_length") or 512, 2)
    for word in settings.get("bad_words_ids") or []:
        if not isinstance(word, list) or len(word) != 1:
            raise ValueError("settings: expected bad_words_ids of one token each, got several")
        require_count("settings: bad_words_ids", word[0], 0, vocabulary - 1)


def generate(source: Any, beams: Any) -> None:
    if not isinstance(source, Tensor) or source.dim() != 2:
        came = tuple(source.shape) if isinstance(source, Tensor) else type(source).__name__
        raise ValueError(f"source: expected token ids of shape (batch, length), got {came}")
    require_count("beams", beams, 1, BEAMS)


def translate(texts: Any, tokenizer: Any) -> None:
    sentences(texts)
    if tokenizer is None:
        raise ValueError("tokenizer: translate needs one, and the folder had no source.spm")


# Files beside the weights


def axes(tensors: Mapping[str, Tensor], expected: Mapping[str, int]) -> None:
    for name, number in expected.items():
        if tensors[name].dim() != number:
            raise ValueError(
                f"state: {name}: expected {number} axes, got shape {tuple(tensors[name].shape)}"
            )


def lists(**values: Any) -> None:
    for name, value in values.items():
        if not isinstance(value, list):
            raise ValueError(f"{name}: expected a list of tokens, got {type(value).__name__}")
