"""Settings that lie beside published weights: each is followed, or refused.

A model used otherwise than it was meant gives other numbers, and nothing tells. So what stands in
these files and is not followed here is compared with what is done here.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from transformer_lib._checks import published as check
from transformer_lib._checks.common import require_count
from transformer_lib.files import parse_json, read_json, read_text

__all__ = [
    "SentenceSettings",
    "marian_tokenizer",
    "sentence_settings",
    "settings_in",
    "transcriber_settings",
]


def settings_in(folder: Path, *files: str) -> dict[str, Any]:
    """Return the entries of JSON files, those that are there; a later one wins."""
    settings: dict[str, Any] = {}
    for name in files:
        if (folder / name).is_file():
            settings |= read_json(folder / name)
    return settings


class SentenceSettings(NamedTuple):
    """How vectors of sentences are made."""

    max_tokens: int | None = None  # what is longer is cut; None: what is too long is refused
    unit_length: bool = True  # whether vectors are scaled to length 1


def sentence_settings(folder: Path, max_length: int) -> SentenceSettings:
    """Read what sentence-transformers writes beside an encoder whose table has ``max_length``."""
    name = "sentence_bert_config.json"
    settings = settings_in(folder, name)
    check.followed(name, settings, do_lower_case=False)
    limit = settings.get("max_seq_length")
    if limit is not None:
        require_count(f"{name}: max_seq_length", limit, 3, max_length)
    _follow_pooling(settings_in(folder, "1_Pooling/config.json"))
    file = folder / "modules.json"
    if not file.is_file():
        return SentenceSettings(limit)
    modules = parse_json(read_text(file), f"file: {file}")
    kinds = _module_kinds(modules)
    return SentenceSettings(limit, "Normalize" in kinds)


def _module_kinds(modules: Any) -> list[str]:
    """Return the kinds that modules.json lists, or refuse those that nothing here computes."""
    known = {"Transformer", "Pooling", "Normalize"}
    if not isinstance(modules, list) or not all(isinstance(part, dict) for part in modules):
        raise ValueError("modules.json: expected a list of modules")
    kinds = [str(part.get("type", "")).rpartition(".")[2] for part in modules]
    if not set(kinds) <= known:
        other = sorted(set(kinds) - known)[0]
        raise ValueError(f"modules.json: expected {', '.join(sorted(known))}, got {other[:40]!r}")
    return kinds


def _follow_pooling(settings: Mapping[str, Any]) -> None:
    name = "1_Pooling/config.json"
    kinds = {key for key in settings if key.startswith("pooling_mode_")}
    check.followed(name, settings, pooling_mode="mean", pooling_mode_mean_tokens=True)
    for key in sorted(kinds - {"pooling_mode_mean_tokens"}):
        check.followed(name, settings, **{key: False})
    check.followed(name, settings, include_prompt=True)


def transcriber_settings(folder: Path, n_mels: int) -> dict[str, Any]:
    """Return which tokens a Whisper model never writes, and which not at first.

    In Hugging Face's files and in CTranslate2's they have different names. How the spectrogram is
    made is compared with what ``log_mel_spectrogram`` does.
    """
    name = "preprocessor_config.json"
    sound = {"sampling_rate": 16_000, "n_fft": 400, "hop_length": 160, "chunk_length": 30}
    check.followed(name, settings_in(folder, name), feature_size=n_mels, **sound)
    settings = settings_in(folder, "config.json", "generation_config.json")
    both = (("suppress_tokens", "suppress_ids"), ("begin_suppress_tokens", "suppress_ids_begin"))
    never, first = (settings.get(theirs) or settings.get(other) or [] for theirs, other in both)
    check.lists(never=never, first=first)
    return {"forbidden": never, "forbidden_first": first}


def marian_tokenizer(folder: Path) -> Any:
    """Return Hugging Face's tokenizer of a Marian model, or None where its files are not there."""
    if not (folder / "source.spm").is_file():
        return None
    try:
        import sentencepiece  # noqa: F401 - the tokenizer's own message is less clear
        from transformers import MarianTokenizer
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{error.name} is not installed: pip install 'building-the-transformer[pretrained]'"
        ) from None
    return MarianTokenizer.from_pretrained(folder)
